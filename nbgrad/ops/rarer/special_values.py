"""Special functions and arithmetic: Bessel functions, incomplete gamma, bits, quotients that know zero.

In: array-likes. Out: Tensors. Called by users; class_table.py names some of them. The special functions are
SciPy's ufuncs, which nbgrad differentiates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ...errors import ArgumentError, DtypeError
from ...functions.elementwise.gamma_functions import multigammaln
from ...functions.elementwise.special_functions import logit as plain_logit
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import inexact, integer
from ...record.tensor import Tensor
from ..declarations import also, spelled
from ..docstrings import documented

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def value_of(x: Any) -> Any:
    """An array-like as a Tensor, for NumPy's functions."""
    return wrap(as_node(x))


def float_of(x: Any) -> Any:
    """An array-like as a Tensor of floats."""
    return wrap(inexact(as_node(x)))


# ----- SciPy's -----


def _of_scipy(name: str, says: str, scipy_name: str = "") -> Callable[[Any], Tensor]:
    """A function of one array that is a ufunc of `scipy.special`."""

    def function(input: Any) -> Tensor:
        import scipy.special

        return getattr(scipy.special, scipy_name or name.removeprefix("bessel_"))(float_of(input))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{says}, elementwise; SciPy's `{scipy_name or name.removeprefix('bessel_')}`."
    return documented(function)


_KINDS = {
    "j0": "first kind and order 0",
    "j1": "first kind and order 1",
    "y0": "second kind and order 0",
    "y1": "second kind and order 1",
}
bessel_j0, bessel_j1, bessel_y0, bessel_y1 = (
    _of_scipy(f"bessel_{name}", f"The Bessel function of the {kind}") for name, kind in _KINDS.items()
)
bessel_i0, bessel_i1, bessel_k0, bessel_k1 = (
    _of_scipy(f"bessel_{kind}{order}", f"The modified Bessel function {kind.upper()} of order {order}")
    for kind in "ik"
    for order in "01"
)
bessel_i0e, bessel_i1e, bessel_k0e, bessel_k1e = (
    _of_scipy(f"bessel_{kind}{order}e", f"The scaled modified Bessel function {kind.upper()} of order {order}")
    for kind in "ik"
    for order in "01"
)
i0 = bessel_i0
erfinv = _of_scipy("erfinv", "The inverse of the error function", "erfinv")


@documented
def igamma(input: Any, other: Any) -> Tensor:
    """The regularized lower incomplete gamma function of `input` at `other`, elementwise."""
    import scipy.special

    return scipy.special.gammainc(float_of(input), float_of(other))


@documented
def igammac(input: Any, other: Any) -> Tensor:
    """The regularized upper incomplete gamma function of `input` at `other`, elementwise."""
    import scipy.special

    return scipy.special.gammaincc(float_of(input), float_of(other))


@documented
def zeta(input: Any, other: Any) -> Tensor:
    """The zeta function of Hurwitz: the sum of `(other + k) ** -input` over k from 0 on, elementwise."""
    import scipy.special

    return scipy.special.zeta(float_of(input), float_of(other))


def beta_integral(a: Any, b: Any, x: Any) -> Tensor:
    """The regularized incomplete beta function, elementwise."""
    import scipy.special

    return scipy.special.betainc(float_of(a), float_of(b), float_of(x))


@documented
def mvlgamma(input: Any, p: int) -> Tensor:
    """The logarithm of the gamma function of `p` dimensions, elementwise.

    p : int
        At least 1; elements are greater than (p - 1) / 2.

    >>> print(nb.ops.mvlgamma(nb.Tensor([2.0]), 1))
    [0.]
    """
    return multigammaln(float_of(input), integer(p, "p"))


# ----- Quotients and products -----


@documented
def xdivy(x: Any, y: Any) -> Tensor:
    """x / y, and 0 where x is 0, elementwise.

    x, y : Tensor, ndarray or number
        They broadcast.

    >>> print(nb.ops.xdivy(nb.Tensor([0.0, 1.0]), nb.Tensor([0.0, 2.0])))
    [0.  0.5]
    """
    top, bottom = float_of(x), float_of(y)
    zero = top == 0
    return np.where(zero, top * bottom * 0.0 if top.size == 0 else 0.0 * top, top / np.where(zero, 1.0, bottom))


def quotient_or_zero(x: Any, y: Any) -> Tensor:
    """x / y, and 0 where y is 0, elementwise."""
    top, bottom = value_of(x), value_of(y)
    zero = bottom == 0
    quotient = top / np.where(zero, np.ones_like(bottom), bottom)
    return np.where(zero, np.zeros_like(quotient), quotient)


def product_or_zero(x: Any, y: Any) -> Tensor:
    """x * y, and 0 where y is 0, even of NaN and infinities, elementwise."""
    first, second = value_of(x), value_of(y)
    zero = second == 0
    return np.where(zero, np.zeros_like(second), np.where(zero, np.zeros_like(first), first) * second)


@also(exponent="other")
@documented
def float_power(input: Any, exponent: Any) -> Tensor:
    """`input ** exponent` in double precision, elementwise."""
    first, second = value_of(input), value_of(exponent)
    wide = np.complex128 if "c" in (first.dtype.kind, second.dtype.kind) else np.float64
    return first.astype(wide) ** second.astype(wide)


# ----- Integers -----


@documented
def gcd(input: Any, other: Any) -> Tensor:
    """The greatest common divisor of integers, elementwise."""
    return np.gcd(value_of(input), value_of(other))


@documented
def lcm(input: Any, other: Any) -> Tensor:
    """The least common multiple of integers, elementwise."""
    return np.lcm(value_of(input), value_of(other))


@documented
def bitwise_not(input: Any) -> Tensor:
    """The bits of integers turned over, elementwise; of booleans, the other one."""
    return np.invert(value_of(input))


invert = bitwise_not


@documented
def population_count(input: Any) -> Tensor:
    """The number of bits that are 1 in each integer, as uint8.

    DtypeError : If the elements are no integers.

    >>> print(nb.ops.population_count(nb.Tensor([0, 1, 3])))
    [0 1 2]
    """
    x = value_of(input)
    if x.dtype.kind not in "iu":
        message = f"population_count needs integers, but got {x.dtype}."
        raise DtypeError(message)
    bits = sum(((x >> k) & 1) for k in range(8 * x.dtype.itemsize))
    return value_of(bits).astype(np.uint8)


# ----- Facts -----


@documented
def isneginf(input: Any) -> Tensor:
    """Whether it is minus infinity, elementwise."""
    return np.isneginf(value_of(input))


@documented
def isposinf(input: Any) -> Tensor:
    """Whether it is plus infinity, elementwise."""
    return np.isposinf(value_of(input))


def is_floating_point(input: Any) -> bool:
    """Whether the elements are floating-point numbers."""
    return value_of(input).dtype.kind == "f"


def is_nonzero(input: Any) -> bool:
    """Whether the only element of an array is not 0; ArgumentError if there are several."""
    x = value_of(input)
    if x.size != 1:
        message = f"is_nonzero needs an array of one element, but its shape is {x.shape}."
        raise ArgumentError(message)
    return bool(x.reshape(()) != 0)


@documented
def eps(x: Any) -> Tensor:
    """The distance of 1 to the next number of the dtype of x, in the shape of x."""
    value = value_of(x)
    return np.full_like(value, np.finfo(np.dtype(value.dtype.name)).eps)


@also(y="other")
@documented
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-5) -> Tensor:
    """Whether two differ by less than a tolerance, elementwise.

    x, y : Tensor, ndarray or number
    tolerance : float
    """
    return np.abs(value_of(x) - value_of(y)) < tolerance


# ----- Others -----


@documented
def logit(input: Any, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), elementwise.

    eps : float, optional
        Elements are limited to the interval from `eps` to `1 - eps` first.

    >>> print(nb.ops.logit(nb.Tensor([0.0, 0.5]), eps=0.25).asnumpy().round(4))
    [-1.0986  0.    ]
    """
    x = float_of(input)
    return plain_logit(x if eps is None or eps < 0 else np.clip(x, eps, 1 - eps))


@documented
def fast_gelu(x: Any) -> Tensor:
    """`x / (1 + exp(-1.702 |x|)) * exp(0.851 (x - |x|))`, close to `gelu`."""
    value = float_of(x)
    size = np.abs(value)
    return value / (1 + np.exp(-1.702 * size)) * np.exp(0.851 * (value - size))


@spelled
def logcumsumexp(input: Any, axis: int) -> Tensor:
    """The logarithm of the running sum of exponentials along an axis."""
    return np.logaddexp.accumulate(float_of(input), axis)


def square_sums(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """The sums of squares of two arrays."""
    return np.sum(value_of(x) ** 2), np.sum(value_of(y) ** 2)
