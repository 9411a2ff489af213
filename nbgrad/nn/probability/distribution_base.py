"""The class `Distribution`: a Cell whose quantities are looked up in a table, or are methods, or are derived.

In: parameters, or none for those that come with each call; then the name of a quantity and a value. Out: Tensors, which
differentiate in values and parameters. Used by distribution.py and by users who derive from it. densities.py has the
formulas, one row for each distribution; a class that derives may have methods such as `_log_prob` instead. One quantity
is derived from another: `prob` from `log_prob`, `survival_function` from `cdf`, `cross_entropy` from `entropy` and
`kl_loss`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from ...dtype import DType, dtype_of
from ...errors import ArgumentError, DtypeError, TracedValueError
from ...functions.arrays.shaping import common_shape
from ...graph.builders import cast
from ...graph.trace import forget_refusal
from ...ops.draws import Source
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import real_dtype, shape_of
from ...record.tensor import Tensor
from ...tensors.generator import Generator, default_generator
from ...tensors.parameter import Parameter
from ..cell import Cell
from ..layer_arguments import whole
from .densities import Draws, Law

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

OF_VALUES = ("prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival")
OF_PARAMETERS = ("mean", "sd", "var", "mode", "entropy")
OF_TWO = ("kl_loss", "cross_entropy")

DERIVED: dict[str, tuple[tuple[str, Callable[[Any], Any]], ...]] = {
    "prob": (("log_prob", np.exp),),
    "log_prob": (("prob", np.log),),
    "sd": (("var", np.sqrt),),
    "var": (("sd", np.square),),
    "cdf": (
        ("log_cdf", np.exp),
        ("survival_function", lambda tail: 1.0 - tail),
        ("log_survival", lambda tail: -np.expm1(tail)),
    ),
    "survival_function": (("log_survival", np.exp), ("cdf", lambda below: 1.0 - below)),
}
"""Quantity -> pairs of another one and of the function that makes this of it, the exact ways first."""

LOGARITHMS = {"log_cdf": ("cdf", "survival_function"), "log_survival": ("survival_function", "cdf")}
"""Logarithm -> the probability that it is of, and the rest up to 1, which has the digits where this is almost 1."""

OUTSIDE = {
    "prob": (0.0, 0.0),
    "log_prob": (-math.inf, -math.inf),
    "cdf": (0.0, 1.0),
    "log_cdf": (-math.inf, 0.0),
    "survival_function": (1.0, 0.0),
    "log_survival": (0.0, -math.inf),
}
"""Quantity -> its values below and above all possible values."""


class Distribution(Cell):
    """The base of distributions; derive from it for one of your own.

    Parameters
    ----------
    seed : int or None
        Of the draws. With 0 or None they come from nbgrad's generator, which `nb.set_seed` seeds.
    dtype : dtype
        Of values and draws. Parameters have it too, or float32 if it is one of integers.
    name : str
    param : dict
        The parameters by their names, or this dict under "param_dict". None stands for one that each call brings.

    Raises
    ------
    ArgumentError, DtypeError
        For parameters, a seed or a dtype that cannot be; for a quantity that a distribution does not have.

    Notes
    -----
    Every quantity is a method, and `construct` takes its name: `normal.log_prob(x)` is `normal("log_prob", x)`. After
    the value come parameters, in their order or by name, that replace those of the distribution in this call:
    `normal.log_prob(x, mean, sd)`, `normal.sample((3,), mean, sd)`. `kl_loss` and `cross_entropy` take the name of the
    type and the parameters of the other distribution: `normal.kl_loss("Normal", mean_b, sd_b)`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Triangle(nb.nn.probability.distribution.Distribution):
    ...     def __init__(self):
    ...         super().__init__(None, nb.float32, "Triangle", {})
    ...
    ...     def _prob(self, value):
    ...         return 2.0 * value
    ...
    ...     def _cdf(self, value):
    ...         return value**2
    >>> one = Triangle()
    >>> print(one("prob", nb.Tensor([0.25, 0.5])), one.survival_function(nb.Tensor(0.5)))
    [0.5 1. ] 0.75
    """

    law: Law = Law()

    def __init__(self, seed: int | None, dtype: Any, name: str, param: dict[str, Any]) -> None:
        super().__init__()
        found = real_dtype(dtype)
        if found.kind not in ("iuf" if self.law.counts else "f"):
            kinds = "a float or an integer dtype" if self.law.counts else "a float dtype"
            message = f"{type(self).__name__} needs {kinds}, but got {found}."
            raise DtypeError(message)
        if not isinstance(name, str):
            message = f"name must be a string, but got {type(name).__name__}."
            raise DtypeError(message)
        self._name, self._dtype = name, dtype_of(found)
        self._seed = 0 if seed is None else whole(seed, "seed")
        self._generator = Generator(self._seed) if self._seed else None
        self.parameter_type = dtype_of(found if found.kind == "f" else np.float32)
        given = param.get("param_dict", param)
        others = ("self", "seed", "dtype", "name")
        self.parameter_names = [key for key in given if key not in others and not key.startswith("_")]
        for key in self.parameter_names:
            setattr(self, _attribute(key), self._as_parameter(given[key], key))
        self._check_together()

    # ----- Parameters -----

    def _as_parameter(self, value: Any, name: str) -> Any:
        """A parameter as the Cell keeps it: a Parameter as it is, everything else in the dtype of parameters."""
        if value is None:
            return None
        if isinstance(value, bool):
            message = f"{name} must be a number or an array, but is {value!r}."
            raise DtypeError(message)
        number = known(value)
        if number is not None and name in self.law.positive and not np.all(number > 0):
            message = f"{name} of {type(self).__name__} must be greater than 0, but is {value}."
            raise ArgumentError(message)
        if number is not None and name in self.law.probabilities and not np.all((number > 0) & (number < 1)):
            message = f"{name} of {type(self).__name__} must lie between 0 and 1, but is {value}."
            raise ArgumentError(message)
        return value if isinstance(value, Parameter) else self._number(value, self.parameter_type)

    def _check_together(self) -> None:
        """Conditions on all parameters; for classes that derive."""

    @property
    def default_parameters(self) -> list[Any]:
        """The parameters, with None for those that each call brings."""
        return [getattr(self, _attribute(key)) for key in self.parameter_names]

    def _all(self, args: tuple[Any, ...], kwargs: dict[str, Any], quantity: str) -> list[Any]:
        """The parameters of a call, in one dtype and shape."""
        given = dict(zip(self.parameter_names, args, strict=False))
        for key, value in kwargs.items():
            given[_plain(key)] = value
        if len(args) > len(self.parameter_names) or not {*given} <= {*self.parameter_names}:
            message = (
                f"{quantity} of {type(self).__name__} takes the parameters {', '.join(self.parameter_names)}, but got "
                f"{len(args)} by position and {', '.join(kwargs) or 'none'} by name."
            )
            raise ArgumentError(message)
        found = []
        for key, default in zip(self.parameter_names, self.default_parameters, strict=True):
            value = given.get(key)
            if value is None:
                value = default
            if value is None:
                message = (
                    f"{type(self).__name__} was made without {key}: give it to {quantity}, after the other arguments."
                )
                raise DtypeError(message)
            found.append(self._number(value, self.parameter_type))
        return list(np.broadcast_arrays(*found)) if len(found) > 1 else found

    def _number(self, value: Any, dtype: DType) -> Tensor:
        return wrap(cast(as_node(value), real_dtype(dtype)))

    # ----- Quantities -----

    def _find(self, quantity: str) -> Callable[..., Any] | None:
        """A quantity as the class has it: by a method of its own, or by the table."""
        if hasattr(type(self), f"_{quantity}"):
            return getattr(self, f"_{quantity}")
        return self._by_law(quantity) if quantity in self.law.quantities else None

    def _compute(self, quantity: str, *args: Any, **kwargs: Any) -> Any:
        """A quantity, perhaps derived from another one."""
        function = self._find(quantity)
        if function is not None:
            return function(*args, **kwargs)
        if quantity in LOGARITHMS:
            own, rest = (self._compute(name, *args, **kwargs) for name in LOGARITHMS[quantity])
            return np.where(own < 0.5, np.log(own), np.log1p(-rest))
        for other, derive in DERIVED.get(quantity, ()):
            function = self._find(other)
            if function is not None:
                return derive(function(*args, **kwargs))
        message = f"{type(self).__name__} has no {quantity}: it is not defined, or has no closed form."
        raise ArgumentError(message)

    def _by_law(self, quantity: str) -> Callable[..., Any]:
        """A function of the table, as one of a value (or another distribution) and of optional parameters."""
        row = self.law.quantities[quantity]

        def formula(*args: Any) -> Tensor:
            return self._number(row(*args), self.parameter_type)

        def of_value(value: Any, *args: Any, **kwargs: Any) -> Any:
            parameters = self._all(args, kwargs, quantity)
            x = self._number(value, self.parameter_type)
            if self.law.support is None:
                return formula(x, *parameters)
            low, high = self.law.support(*parameters)
            below, above = OUTSIDE[quantity]
            endless = isinstance(high, float) and math.isinf(high)
            inside = np.where((x < low) | (x > high), low + 1.0 if endless else 0.5 * (low + high), x)
            return np.where(x < low, below, np.where(x > high, above, formula(inside, *parameters)))

        def of_parameters(*args: Any, **kwargs: Any) -> Any:
            return formula(*self._all(args, kwargs, quantity))

        def of_two(dist: str, *args: Any, **kwargs: Any) -> Any:
            count = len(self.parameter_names)
            others = {key[:-2]: kwargs.pop(key) for key in [*kwargs] if key.endswith("_b")}
            first = args[: count - len(others)]
            parameters = self._all(args[len(first) :], kwargs, quantity)
            second = dict(
                zip([key for key in self.parameter_names if key not in map(_plain, others)], first, strict=False)
            )
            second |= {_plain(key): value for key, value in others.items()}
            if {*second} != {*self.parameter_names}:
                message = (
                    f"{quantity} of {type(self).__name__} needs all parameters of the other distribution: "
                    f"{', '.join(key + '_b' for key in self.parameter_names)}."
                )
                raise ArgumentError(message)
            return formula(
                *(self._number(second[key], self.parameter_type) for key in self.parameter_names), *parameters
            )

        return of_value if quantity in OF_VALUES else of_two if quantity in OF_TWO else of_parameters

    def prob(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The density at a value, or its probability if values are counts."""
        return self._compute("prob", value, *args, **kwargs)

    def log_prob(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of `prob`."""
        return self._compute("log_prob", value, *args, **kwargs)

    def cdf(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of a number up to a value."""
        return self._compute("cdf", value, *args, **kwargs)

    def log_cdf(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of `cdf`."""
        return self._compute("log_cdf", value, *args, **kwargs)

    def survival_function(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of a number above a value."""
        return self._compute("survival_function", value, *args, **kwargs)

    def log_survival(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of `survival_function`."""
        return self._compute("log_survival", value, *args, **kwargs)

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """The mean."""
        return self._compute("mean", *args, **kwargs)

    def sd(self, *args: Any, **kwargs: Any) -> Any:
        """The standard deviation."""
        return self._compute("sd", *args, **kwargs)

    def var(self, *args: Any, **kwargs: Any) -> Any:
        """The variance."""
        return self._compute("var", *args, **kwargs)

    def mode(self, *args: Any, **kwargs: Any) -> Any:
        """The most likely value, in the dtype of values."""
        return self._number(self._compute("mode", *args, **kwargs), self._dtype)

    def entropy(self, *args: Any, **kwargs: Any) -> Any:
        """The entropy, in nats."""
        return self._compute("entropy", *args, **kwargs)

    def kl_loss(self, dist: str, *args: Any, **kwargs: Any) -> Any:
        """The Kullback-Leibler divergence of another distribution of the type that `dist` names from this one.

        The parameters of the other distribution come first, or as keywords that end in `_b`.
        """
        if dist != self._get_dist_type():
            message = f"kl_loss of {self._get_dist_type()} takes dist={self._get_dist_type()!r}, but got {dist!r}."
            raise ArgumentError(message)
        return self._compute("kl_loss", dist, *args, **kwargs)

    def cross_entropy(self, dist: str, *args: Any, **kwargs: Any) -> Any:
        """The mean of minus the other distribution's `log_prob`; arguments as in `kl_loss`."""
        if (own := self._find("cross_entropy")) is not None:
            return own(dist, *args, **kwargs)
        count = len(self.parameter_names) - sum(key.endswith("_b") for key in kwargs)
        rest = {key: value for key, value in kwargs.items() if not key.endswith("_b")}
        return self.entropy(*args[count:], **rest) + self.kl_loss(dist, *args, **kwargs)

    def sample(self, shape: Any = (), *args: Any, **kwargs: Any) -> Any:
        """Draws, in a shape before that of the parameters."""
        if hasattr(type(self), "_sample"):
            return self._sample(shape, *args, **kwargs)
        return self._drawn(default_generator() if self._generator is None else self._generator, shape, args, kwargs)

    def _drawn(self, source: Source, shape: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A sample from the numbers of a source."""
        if "sample" not in self.law.quantities:
            return self._compute("sample", shape)
        parameters = self._all(args, kwargs, "sample")
        own = tuple(parameters[0].shape[:-1] if self.law.rows else parameters[0].shape)
        found = self.law.quantities["sample"](Draws(source), (*shape_of(shape), *own), *parameters)
        return self._number(found, self._dtype)

    def get_dist_args(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The parameters: those given here, and the distribution's own for others."""
        own = self.default_parameters
        given = [*args, *[None] * (len(own) - len(args))]
        for key, value in kwargs.items():
            given[self.parameter_names.index(_plain(key))] = value
        return tuple(mine if value is None else value for value, mine in zip(given, own, strict=True))

    def get_dist_type(self) -> str:
        """The name of the type, which `kl_loss` takes."""
        return self._get_dist_type()

    def _get_dist_type(self) -> str:
        return type(self).__name__

    def construct(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """A quantity by its name."""
        if name not in (*OF_VALUES, *OF_PARAMETERS, *OF_TWO, "sample", "get_dist_args", "get_dist_type"):
            message = f"{type(self).__name__} has no quantity {name!r}."
            raise ArgumentError(message)
        return getattr(self, name)(*args, **kwargs)

    # ----- Properties -----

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The element type of values."""
        return self._dtype

    @property
    def seed(self) -> int:
        """The seed that was given, 0 for none."""
        return self._seed

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by their names."""
        return dict(zip(self.parameter_names, self.default_parameters, strict=True))

    @property
    def batch_shape(self) -> tuple[int, ...] | None:
        """The common shape of the parameters; None if a call brings some."""
        own = self.default_parameters
        return None if any(value is None for value in own) else tuple(common_shape([v.shape for v in own]))

    @property
    def broadcast_shape(self) -> tuple[int, ...] | None:
        """The shape of distributions, which is `batch_shape` without the axis of classes."""
        shape = self.batch_shape
        return shape[:-1] if self.law.rows and shape is not None else shape

    @property
    def is_scalar_batch(self) -> bool:
        """Whether this is one distribution."""
        return self.broadcast_shape in (None, ())

    def extend_repr(self) -> str:
        """The parameters of one distribution, or the shape of several."""
        if not self.is_scalar_batch:
            return f"batch_shape = {self.broadcast_shape}"
        return ", ".join(f"{key} = {value}" for key, value in self.parameters.items())


def _plain(key: str) -> str:
    """The name of a parameter that MindSpore also calls `concentration_a` or `probs1`."""
    return {"probs1": "probs"}.get(key, key.removesuffix("_a"))


def _attribute(key: str) -> str:
    """The attribute of a parameter; methods have some of the names."""
    return f"_{key}_value" if key in OF_PARAMETERS else f"_{key}"


def known(value: Any) -> Any:
    """A parameter as an ndarray, or None while it is recorded or still to come."""
    try:
        return None if value is None else np.asarray(wrap(as_node(value)))
    except TracedValueError:
        forget_refusal()
        return None


def parameter(key: str) -> Any:
    """A property that gives a parameter."""
    return property(lambda self: getattr(self, _attribute(key)), doc=f"The parameter `{key}`, or None.")
