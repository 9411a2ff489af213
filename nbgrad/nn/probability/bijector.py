"""Bijections of random variables, MindSpore's `nn.probability.bijector`.

In: parameters; then values. Out: Tensors: values that are transformed, or logarithms of derivatives. Used by users. A
`Bijector` that is called with a distribution gives that of the transformed variable.
"""

from __future__ import annotations

from typing import Any

import numpy
from scipy import special as scipy_special

from ...dtype import DType, dtype_of
from ...errors import ArgumentError, DtypeError
from ...functions.arrays.shaping import common_shape
from ...graph.builders import cast
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import inexact, real_dtype
from ...tensors.parameter import Parameter
from ..cell import Cell
from .distribution_base import Distribution, known, parameter
from .transformed import TransformedDistribution

__all__ = ["Bijector", "Exp", "GumbelCDF", "Invert", "PowerTransform", "ScalarAffine", "Softplus"]

np: Any = numpy
special: Any = scipy_special
"""NumPy and SciPy, whose functions take Tensors, which their types do not know."""

QUANTITIES = ("forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian")


class Bijector(Cell):
    """The base of bijections; derive from it for one of your own, which defines `_forward` and its three kin.

    Parameters
    ----------
    is_constant_jacobian : bool
        Whether the derivative is the same everywhere.
    is_injective : bool
    name : str, optional
    dtype : dtype, optional
        The dtype of values; by default, they keep their own.
    param : dict, optional
        The parameters by their names, or this dict under "param_dict".

    Notes
    -----
    The four functions are methods, and `construct` takes their names: `one.forward(x)` is `one("forward", x)`.
    Parameters are converted to the dtype of values.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Cube(nb.nn.probability.bijector.Bijector):
    ...     def _forward(self, x):
    ...         return x**3
    ...
    ...     def _inverse(self, y):
    ...         return nb.numpy.cbrt(y)
    >>> print(Cube()("inverse", nb.Tensor([8.0])))
    [2.]
    """

    def __init__(
        self,
        is_constant_jacobian: bool = False,
        is_injective: bool = True,
        name: str | None = None,
        dtype: Any = None,
        param: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._is_constant_jacobian, self._is_injective = bool(is_constant_jacobian), bool(is_injective)
        self._name = type(self).__name__ if name is None else name
        self._dtype = None if dtype is None else dtype_of(dtype)
        given = param or {}
        given = given.get("param_dict", given)
        self.parameter_names = [key for key in given if key not in ("self", "name") and not key.startswith("_")]
        for key in self.parameter_names:
            value = given[key]
            if value is None or isinstance(value, bool):
                message = f"{key} of {type(self).__name__} must be a number or an array, but is {value!r}."
                raise DtypeError(message)
            setattr(self, f"_{key}", value if isinstance(value, Parameter) else wrap(inexact(as_node(value))))

    def _at_least(self, key: str, least: float, closed: bool) -> None:
        """Check a parameter that is known."""
        number = known(getattr(self, f"_{key}"))
        if number is not None and not np.all(number >= least if closed else number > least):
            bound = "at least" if closed else "greater than"
            message = f"{key} of {type(self).__name__} must be {bound} {least}, but is {number}."
            raise ArgumentError(message)

    def _value(self, value: Any) -> Any:
        node = inexact(as_node(value))
        return wrap(node if self._dtype is None else cast(node, real_dtype(self._dtype)))

    def cast_param_by_value(self, value: Any, para: Any) -> Any:
        """A parameter in the dtype of a value."""
        return wrap(cast(as_node(para), as_node(value).dtype))

    def _falls(self) -> Any:
        """Where larger values give smaller ones; None for nowhere."""
        return None

    def _run(self, quantity: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(type(self), f"_{quantity}"):
            message = f"{type(self).__name__} has no {quantity}: define _{quantity}(self, value)."
            raise ArgumentError(message)
        return getattr(self, f"_{quantity}")(self._value(value), *args, **kwargs)

    def forward(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The transformed value."""
        return self._run("forward", value, *args, **kwargs)

    def inverse(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The value that is transformed into this one."""
        return self._run("inverse", value, *args, **kwargs)

    def forward_log_jacobian(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the size of the derivative of `forward`."""
        return self._run("forward_log_jacobian", value, *args, **kwargs)

    def inverse_log_jacobian(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the size of the derivative of `inverse`."""
        return self._run("inverse_log_jacobian", value, *args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A function by its name, or the distribution of the transformed variable."""
        if args and isinstance(args[0], Distribution):
            return TransformedDistribution(self, args[0])
        return super().__call__(*args, **kwargs)

    def construct(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """A function by its name."""
        if name not in QUANTITIES:
            message = f"{type(self).__name__} has no function {name!r}, only {', '.join(QUANTITIES)}."
            raise ArgumentError(message)
        return getattr(self, name)(*args, **kwargs)

    name = property(lambda self: self._name, doc="The name that was given.")
    is_constant_jacobian = property(lambda self: self._is_constant_jacobian, doc="Whether the derivative is constant.")
    is_injective = property(lambda self: self._is_injective, doc="Whether no two values become one.")

    @property
    def dtype(self) -> DType | None:
        """The dtype of values, None for any."""
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by their names."""
        return {key: getattr(self, f"_{key}") for key in self.parameter_names}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The common shape of the parameters."""
        return tuple(common_shape([value.shape for value in self.parameters.values()]))

    @property
    def is_scalar_batch(self) -> bool:
        """Whether this is one bijection."""
        return self.batch_shape == ()

    def extend_repr(self) -> str:
        """The parameters of one bijection, or the shape of several."""
        if not self.is_scalar_batch:
            return f"batch_shape = {self.batch_shape}"
        return ", ".join(f"{key} = {value}" for key, value in self.parameters.items())


class PowerTransform(Bijector):
    """`(1 + c * x)**(1 / c)`, and `exp(x)` where c is 0.

    Parameters
    ----------
    power : number or array-like
        c, at least 0.
    name : str

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.probability.bijector.PowerTransform(0.5).forward(nb.Tensor([2.0])))
    [4.]
    """

    power = parameter("power")

    def __init__(self, power: Any = 0.0, name: str = "PowerTransform") -> None:
        super().__init__(name=name, param={"power": power})
        self._at_least("power", 0.0, closed=True)

    def _parts(self, value: Any) -> tuple[Any, Any, Any]:
        """The power, where it is 0, and the power with 1 there."""
        power = self.cast_param_by_value(value, self._power)
        none = power == 0
        return power, none, np.where(none, 1.0, power)

    def _forward(self, x: Any) -> Any:
        power, none, safe = self._parts(x)
        return np.exp(np.where(none, x, np.log1p(x * power) / safe))

    def _inverse(self, y: Any) -> Any:
        power, none, safe = self._parts(y)
        return np.where(none, np.log(y), np.expm1(np.log(y) * power) / safe)

    def _forward_log_jacobian(self, x: Any) -> Any:
        power, none, safe = self._parts(x)
        return np.where(none, x, (1.0 / safe - 1.0) * np.log1p(x * power))

    def _inverse_log_jacobian(self, y: Any) -> Any:
        return (self.cast_param_by_value(y, self._power) - 1.0) * np.log(y)


class Exp(PowerTransform):
    """`exp(x)`.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.probability.bijector.Exp().forward_log_jacobian(nb.Tensor([2.0])))
    [2.]
    """

    def __init__(self, name: str = "Exp") -> None:
        super().__init__(name=name)


class ScalarAffine(Bijector):
    """`scale * x + shift`.

    Parameters
    ----------
    scale, shift : number or array-like
    name : str

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.probability.bijector.ScalarAffine(2.0, 1.0).inverse(nb.Tensor([5.0])))
    [2.]
    """

    scale, shift = parameter("scale"), parameter("shift")

    def __init__(self, scale: Any = 1.0, shift: Any = 0.0, name: str = "ScalarAffine") -> None:
        super().__init__(is_constant_jacobian=True, name=name, param={"scale": scale, "shift": shift})

    def _falls(self) -> Any:
        return wrap(as_node(self._scale)) < 0

    def _forward(self, x: Any) -> Any:
        return self.cast_param_by_value(x, self._scale) * x + self.cast_param_by_value(x, self._shift)

    def _inverse(self, y: Any) -> Any:
        return (y - self.cast_param_by_value(y, self._shift)) / self.cast_param_by_value(y, self._scale)

    def _forward_log_jacobian(self, x: Any) -> Any:
        return np.log(np.abs(self.cast_param_by_value(x, self._scale)))

    def _inverse_log_jacobian(self, y: Any) -> Any:
        return -self._forward_log_jacobian(y)


class Softplus(Bijector):
    """`log(1 + exp(sharpness * x)) / sharpness`.

    Parameters
    ----------
    sharpness : number or array-like
    name : str

    Examples
    --------
    >>> import nbgrad as nb
    >>> softplus = nb.nn.probability.bijector.Softplus(2.0)
    >>> print(softplus.inverse(softplus.forward(nb.Tensor([1.0, 30.0]))))
    [ 1. 30.]
    """

    sharpness = parameter("sharpness")

    def __init__(self, sharpness: Any = 1.0, name: str = "Softplus") -> None:
        super().__init__(name=name, param={"sharpness": sharpness})

    def _forward(self, x: Any) -> Any:
        sharpness = self.cast_param_by_value(x, self._sharpness)
        return np.logaddexp(sharpness * x, 0.0) / sharpness

    def _inverse(self, y: Any) -> Any:
        sharpness = self.cast_param_by_value(y, self._sharpness)
        return y + np.log(-np.expm1(-sharpness * y)) / sharpness

    def _forward_log_jacobian(self, x: Any) -> Any:
        return -np.logaddexp(-self.cast_param_by_value(x, self._sharpness) * x, 0.0)

    def _inverse_log_jacobian(self, y: Any) -> Any:
        return -np.log(-np.expm1(-self.cast_param_by_value(y, self._sharpness) * y))


class GumbelCDF(Bijector):
    """`exp(-exp(-(x - loc) / scale))`.

    Parameters
    ----------
    loc, scale : number or array-like
        The scale is above 0.
    name : str

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.probability.bijector.GumbelCDF().forward(nb.Tensor([0.0])).round(4))
    [0.3679]
    """

    loc, scale = parameter("loc"), parameter("scale")

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, name: str = "GumbelCDF") -> None:
        super().__init__(name=name, param={"loc": loc, "scale": scale})
        self._at_least("scale", 0.0, closed=False)

    def _own(self, value: Any) -> tuple[Any, Any]:
        return self.cast_param_by_value(value, self._loc), self.cast_param_by_value(value, self._scale)

    def _forward(self, x: Any) -> Any:
        loc, scale = self._own(x)
        return np.exp(-np.exp(-(x - loc) / scale))

    def _inverse(self, y: Any) -> Any:
        loc, scale = self._own(y)
        return loc - scale * np.log(-np.log(y))

    def _forward_log_jacobian(self, x: Any) -> Any:
        loc, scale = self._own(x)
        z = (x - loc) / scale
        return -z - np.exp(-z) - np.log(scale)

    def _inverse_log_jacobian(self, y: Any) -> Any:
        return np.log(self._own(y)[1] / (-y * np.log(y)))


class Invert(Bijector):
    """The inverse of a bijection.

    Parameters
    ----------
    bijector : Bijector
    name : str
        By default "Invert" before the name of the bijection.

    Raises
    ------
    DtypeError
        If it is no Bijector.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.nn.probability import bijector
    >>> print(bijector.Invert(bijector.ScalarAffine(2.0, 1.0)).forward(nb.Tensor([5.0])))
    [2.]
    """

    def __init__(self, bijector: Any, name: str = "") -> None:
        if not isinstance(bijector, Bijector):
            message = f"bijector must be a Bijector, but got {type(bijector).__name__}."
            raise DtypeError(message)
        super().__init__(
            bijector.is_constant_jacobian, bijector.is_injective, name or f"Invert{bijector.name}", bijector.dtype
        )
        self._bijector = bijector

    bijector = property(lambda self: self._bijector, doc="The bijection that is inverted.")

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the parameters of the bijection."""
        return self._bijector.batch_shape

    def _falls(self) -> Any:
        return self._bijector._falls()

    def _forward(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return self._bijector.inverse(x, *args, **kwargs)

    def _inverse(self, y: Any, *args: Any, **kwargs: Any) -> Any:
        return self._bijector.forward(y, *args, **kwargs)

    def _forward_log_jacobian(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return self._bijector.inverse_log_jacobian(x, *args, **kwargs)

    def _inverse_log_jacobian(self, y: Any, *args: Any, **kwargs: Any) -> Any:
        return self._bijector.forward_log_jacobian(y, *args, **kwargs)
