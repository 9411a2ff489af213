"""Initial values of Parameters by name: "zeros", "ones", "normal", "xavier_uniform", "he_uniform", ...

In: the name of an initializer (or an `Initializer`, a number, an array), a shape and a dtype. Out: a Tensor. Called by
the layers and by users. Random ones draw from nbgrad's generator, so that `nb.set_seed` makes them repeatable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, CellError, DtypeError, ShapeError
from ..record.tensor import Tensor

Shape = tuple[int, ...]

_host = [np.random.default_rng()]


def host_generator() -> np.random.Generator:
    """The source of initial values: NumPy's, since they are drawn once and on the host."""
    return _host[0]


def seed_host(seed: int) -> None:
    """Make the initial values that are drawn from now on repeatable; `nb.set_seed` does it."""
    _host[0] = np.random.default_rng(seed)


class Initializer:
    """A rule for initial values; call it with a shape.

    Subclasses define `values(shape)`, which gives a float64 array, or as in MindSpore `_initialize(arr)`, which fills
    an array.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.common.initializer import Initializer, initializer
    >>> class Ramp(Initializer):
    ...     def _initialize(self, arr):
    ...         arr[:] = range(len(arr))
    >>> print(initializer(Ramp(), (3,)))
    [0. 1. 2.]
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    def values(self, shape: Shape) -> np.ndarray:
        """The values as float64; defined by subclasses."""
        fill: Any = getattr(self, "_initialize", None)
        if fill is not None:
            values = np.zeros(shape)
            fill(values)
            return values
        message = f"{type(self).__name__} has no values method. Define values(self, shape) to say what it draws."
        raise CellError(message)

    def __call__(self, shape: Sequence[int], dtype: Any = np.float32) -> Tensor:
        """A Tensor of initial values."""
        return Tensor(self.values(tuple(shape)).astype(np.dtype(dtype)))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if name != "_kwargs")
        return f"{type(self).__name__}({inside})"


class Constant(Initializer):
    """One number everywhere."""

    def __init__(self, value: float) -> None:
        self.value = value

    def values(self, shape: Shape) -> np.ndarray:
        return np.full(shape, self.value, np.float64)


class Zero(Constant):
    """Zeros."""

    def __init__(self) -> None:
        super().__init__(0.0)


class One(Constant):
    """Ones."""

    def __init__(self) -> None:
        super().__init__(1.0)


class Normal(Initializer):
    """Normal numbers; MindSpore's default standard deviation is 0.01."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0) -> None:
        self.sigma, self.mean = sigma, mean

    def values(self, shape: Shape) -> np.ndarray:
        return host_generator().normal(self.mean, self.sigma, shape)


class TruncatedNormal(Initializer):
    """Normal numbers, drawn again where they lie outside of `a` to `b` standard deviations."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0) -> None:
        self.sigma, self.mean, self.a, self.b = sigma, mean, a, b

    def values(self, shape: Shape) -> np.ndarray:
        generator = host_generator()
        drawn = generator.normal(size=shape)
        outside = (drawn < self.a) | (drawn > self.b)
        while outside.any():
            drawn[outside] = generator.normal(size=int(outside.sum()))
            outside = (drawn < self.a) | (drawn > self.b)
        return self.mean + self.sigma * drawn


class Uniform(Initializer):
    """Uniform numbers in [-scale, scale); MindSpore's default scale is 0.07."""

    def __init__(self, scale: float = 0.07) -> None:
        self.scale = scale

    def values(self, shape: Shape) -> np.ndarray:
        return host_generator().uniform(-self.scale, self.scale, shape)


class XavierUniform(Initializer):
    """Uniform with variance 2 / (fan_in + fan_out), times gain**2 (Glorot and Bengio 2010)."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def values(self, shape: Shape) -> np.ndarray:
        bound = self.gain * math.sqrt(6.0 / sum(fans(shape)))
        return host_generator().uniform(-bound, bound, shape)


class XavierNormal(Initializer):
    """Normal with variance 2 / (fan_in + fan_out), times gain**2 (Glorot and Bengio 2010)."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def values(self, shape: Shape) -> np.ndarray:
        return host_generator().normal(0.0, self.gain * math.sqrt(2.0 / sum(fans(shape))), shape)


class _He(Initializer):
    """Variance gain**2 / fan (He, Zhang, Ren and Sun 2015)."""

    def __init__(self, negative_slope: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
        if mode not in ("fan_in", "fan_out"):
            message = f"mode must be 'fan_in' or 'fan_out', but got {mode!r}."
            raise ArgumentError(message)
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def deviation(self, shape: Shape) -> float:
        """The standard deviation."""
        return gain_of(self.nonlinearity, self.negative_slope) / math.sqrt(fans(shape)[self.mode == "fan_out"])


class HeUniform(_He):
    """Uniform with variance gain**2 / fan_in (He, Zhang, Ren and Sun 2015)."""

    def values(self, shape: Shape) -> np.ndarray:
        bound = math.sqrt(3.0) * self.deviation(shape)
        return host_generator().uniform(-bound, bound, shape)


class HeNormal(_He):
    """Normal with variance gain**2 / fan_in (He, Zhang, Ren and Sun 2015)."""

    def values(self, shape: Shape) -> np.ndarray:
        return host_generator().normal(0.0, self.deviation(shape), shape)


class VarianceScaling(Initializer):
    """Numbers of variance scale / fan: truncated normal, normal or uniform ones.

    Parameters
    ----------
    scale : float
    mode : {"fan_in", "fan_out", "fan_avg"}
        The fan that divides; "fan_avg" for the mean of both.
    distribution : {"truncated_normal", "untruncated_normal", "uniform"}

    Raises
    ------
    ArgumentError
        For other words, or a scale that is not positive.
    """

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal") -> None:
        if mode not in ("fan_in", "fan_out", "fan_avg") or distribution not in _DISTRIBUTIONS or not scale > 0:
            message = (
                "VarianceScaling takes a positive scale, the mode 'fan_in', 'fan_out' or 'fan_avg', and one of the "
                f"distributions {', '.join(_DISTRIBUTIONS)}, but got {scale}, {mode!r} and {distribution!r}."
            )
            raise ArgumentError(message)
        self.scale, self.mode, self.distribution = scale, mode, distribution

    def values(self, shape: Shape) -> np.ndarray:
        into, out = fans(shape)
        fan = {"fan_in": into, "fan_out": out, "fan_avg": (into + out) / 2}[self.mode]
        return _DISTRIBUTIONS[self.distribution](math.sqrt(self.scale / fan)).values(shape)


_DISTRIBUTIONS = {
    "truncated_normal": lambda deviation: TruncatedNormal(deviation / 0.8796256610342398),
    "untruncated_normal": Normal,
    "uniform": lambda deviation: Uniform(math.sqrt(3.0) * deviation),
}
"""Distribution -> the initializer with a standard deviation; one that is cut off at 2 deviations loses an eighth."""


class Dirac(Initializer):
    """Weights of a convolution that gives its input: 1 in the middle of the kernel of each channel, in each group.

    Parameters
    ----------
    groups : int
        The parts of the output's channels that see the same input.
    """

    def __init__(self, groups: int = 1) -> None:
        self.groups = groups

    def values(self, shape: Shape) -> np.ndarray:
        if len(shape) not in (3, 4, 5) or shape[0] % self.groups:
            message = (
                f"Dirac needs three to five axes, the first one a multiple of {self.groups} groups, but the shape is "
                f"{shape}."
            )
            raise ShapeError(message)
        found, each = np.zeros(shape), shape[0] // self.groups
        middle = tuple([n // 2 for n in shape[2:]])
        for group in range(self.groups):
            for k in range(min(each, shape[1])):
                found[(group * each + k, k, *middle)] = 1.0
        return found


class Orthogonal(Initializer):
    """A matrix with orthonormal rows or columns, times gain (Saxe, McClelland and Ganguli 2013)."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def values(self, shape: Shape) -> np.ndarray:
        if len(shape) < 2:
            message = f"Orthogonal needs at least two axes, but the shape is {shape}."
            raise ShapeError(message)
        rows, columns = shape[0], math.prod(shape[1:])
        drawn = host_generator().normal(size=(max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(drawn)
        q = q * np.sign(np.diag(r))
        return self.gain * (q if rows >= columns else q.T).reshape(shape)


class Identity(Initializer):
    """The identity matrix."""

    def values(self, shape: Shape) -> np.ndarray:
        if len(shape) != 2:
            message = f"Identity needs two axes, but the shape is {shape}."
            raise ShapeError(message)
        return np.eye(*shape)


class Sparse(Initializer):
    """A matrix of normal numbers in which a part of each column is zero (Martens 2010)."""

    def __init__(self, sparsity: float, sigma: float = 0.01) -> None:
        self.sparsity, self.sigma = sparsity, sigma

    def values(self, shape: Shape) -> np.ndarray:
        if len(shape) != 2:
            message = f"Sparse needs two axes, but the shape is {shape}."
            raise ShapeError(message)
        generator = host_generator()
        drawn = generator.normal(0.0, self.sigma, shape)
        for column in range(shape[1]):
            drawn[generator.permutation(shape[0])[: math.ceil(self.sparsity * shape[0])], column] = 0.0
        return drawn


NAMES: dict[str, type[Initializer]] = {
    "zeros": Zero,
    "zero": Zero,
    "ones": One,
    "one": One,
    "normal": Normal,
    "truncatednormal": TruncatedNormal,
    "uniform": Uniform,
    "xavier_uniform": XavierUniform,
    "xavieruniform": XavierUniform,
    "xavier_normal": XavierNormal,
    "xaviernormal": XavierNormal,
    "he_uniform": HeUniform,
    "heuniform": HeUniform,
    "he_normal": HeNormal,
    "henormal": HeNormal,
    "orthogonal": Orthogonal,
    "identity": Identity,
    "dirac": Dirac,
    "variancescaling": VarianceScaling,
    "variance_scaling": VarianceScaling,
}


def initializer(init: Any, shape: Any = None, dtype: Any = np.float32) -> Tensor:
    """A Tensor of initial values.

    Parameters
    ----------
    init : str, Initializer, number, Tensor or ndarray
        The name of an initializer ("zeros", "ones", "normal", "truncatedNormal", "uniform", "xavier_uniform",
        "xavier_normal", "he_uniform", "he_normal", "orthogonal", "identity", "dirac", "varianceScaling"), one with its
        own parameters, a number for all elements, or the values.
    shape : int or sequence of int
        May be left out if `init` holds the values.
    dtype : dtype
        float32 by default.

    Returns
    -------
    Tensor

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For an unknown name, another type, or values of another shape.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.common.initializer import initializer
    >>> print(initializer("ones", (2,)), initializer(0.5, 3, nb.float64))
    [1. 1.] [0.5 0.5 0.5]
    """
    wanted = (shape,) if isinstance(shape, int) else None if shape is None else tuple(shape)
    if isinstance(init, Tensor | np.ndarray):
        values = Tensor(init).astype(dtype) if isinstance(init, Tensor) else Tensor(np.asarray(init, np.dtype(dtype)))
        if wanted is not None and values.shape != wanted:
            message = f"The initial values have shape {values.shape}, but the Parameter has shape {wanted}."
            raise ShapeError(message)
        return values
    if isinstance(init, str):
        rule = NAMES.get(init.lower())
        if rule is None:
            message = f"There is no initializer {init!r}; there are {', '.join(NAMES)}."
            raise ArgumentError(message)
        init = rule()
    elif isinstance(init, bool | int | float):
        init = Constant(init)
    if not isinstance(init, Initializer):
        message = (
            "An initial value is given by the name of an initializer, an Initializer, a number, a Tensor or an "
            f"ndarray, but got {type(init).__name__}."
        )
        raise DtypeError(message)
    if wanted is None:
        message = "initializer needs a shape, unless it is given the values."
        raise ArgumentError(message)
    if any(not isinstance(n, int | np.integer) or n < 0 for n in wanted):
        message = f"The shape must be made of integers that are not negative, but got {shape!r}."
        raise ShapeError(message)
    return init(wanted, dtype)


def fans(shape: Shape) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight of shape (out, in, *kernel)."""
    if len(shape) < 2:
        message = f"Fans need a weight of at least two axes, (out, in, ...), but the shape is {shape}."
        raise ShapeError(message)
    field = math.prod(shape[2:])
    return max(shape[1] * field, 1), max(shape[0] * field, 1)


def fan_of(shape: Shape, mode: str) -> int:
    """The fan of a weight that a mode names, "fan_in" or "fan_out"."""
    if mode.lower() not in ("fan_in", "fan_out"):
        message = f"mode must be 'fan_in' or 'fan_out', but is {mode!r}."
        raise ArgumentError(message)
    return fans(shape)[mode.lower() == "fan_out"]


def fill(arr: np.ndarray, num: Any) -> None:
    """Write numbers into an array, which may have no axes."""
    arr[...] = num


def register(*aliases: str) -> Any:
    """A decorator for subclasses of Initializer, which `initializer` then knows by name, in small letters."""

    def noted(rule: type[Initializer]) -> type[Initializer]:
        NAMES.update({name.lower(): rule for name in (rule.__name__, *aliases)})
        return rule

    return noted


def gain_of(nonlinearity: str, slope: float | None = None) -> float:
    """The factor that keeps the variance of activations (He, Zhang, Ren and Sun 2015); a slope of None is 0.01."""
    gains = {
        "linear": 1.0,
        "sigmoid": 1.0,
        "tanh": 5.0 / 3.0,
        "relu": math.sqrt(2.0),
        "leaky_relu": math.sqrt(2.0 / (1.0 + (0.01 if slope is None else slope) ** 2)),
        **dict.fromkeys([f"conv{way}{n}d" for way in ("", "_transpose") for n in (1, 2, 3)], 1.0),
    }
    if nonlinearity not in gains:
        message = f"There is no gain for {nonlinearity!r}; there are {', '.join(gains)}."
        raise ArgumentError(message)
    return gains[nonlinearity]
