"""Elementwise primitives: one line each, with its meaning in NumPy and its derivative.

In: nothing. Out: tables of rows. Called by primitives.py. A partial derivative is a function of (output, *operands).
Scalar kernels of the same names are in kernels/ (`SCALARS` in kernels/__init__.py).

Conventions at points without a derivative: abs'(0) = 0; maximum, minimum and max, min share ties equally; sqrt'(0),
log'(0) = inf; hypot'(0, 0) = 0; d(x**y)/dx = 0 where x = y = 0, d(x**y)/dy = 0 where x = 0 and y >= 0; rounding and
sign have derivative 0; a NaN operand gives a NaN derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .builders import cast
from .formulas import (
    both,
    choose,
    copysign,
    cos,
    cosh,
    either,
    equal,
    exp,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    is_finite_number,
    isnan,
    less,
    log,
    power,
    sign,
    sin,
    sinh,
    sqrt,
    trunc,
)
from .ir import COMPLEX_OF, PART_OF, Node, Params, elementwise, make, zeros
from .rows import (
    CONSTANT,
    INTEGER,
    Linear,
    Partials,
    ShapeAndDtype,
    light,
    named,
    pointwise,
    same,
    slope,
    slopes,
    truth_of,
)

Array = np.ndarray
_LN2, _LN10 = math.log(2.0), math.log(10.0)

# ----- Meanings that NumPy has no function for -----


def _scipy(name: str) -> Callable[..., Any]:
    def call(*operands: Array) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*operands)

    return call


def _polygamma(n: Array, x: Array) -> Array:
    import scipy.special

    dtype = np.result_type(x.dtype, np.float32)
    return np.where(n == 0, scipy.special.digamma(x), scipy.special.polygamma(n.astype(int), x)).astype(dtype)


def sinc_derivative(n: Array, x: Array) -> Array:
    """The n-th derivative of sin(pi x)/(pi x).

    It is the integral over t in (0, 1) of (pi t)^n cos(pi x t + n pi/2). Near zero its Taylor series is summed; far
    from zero, repeated integration by parts gives the recurrence x f_n = pi^(n-1) sin(pi x + n pi/2) - n f_(n-1),
    which is stable where |pi x| exceeds n.
    """
    n, x = np.broadcast_arrays(np.asarray(n, float), np.asarray(x, float))
    out = np.empty(x.shape)
    for index in np.ndindex(*x.shape):
        out[index] = _sinc_derivative_at(int(n[index]), float(x[index]))
    return out


def _sinc_derivative_at(n: int, x: float) -> float:
    if not np.isfinite(x):
        return np.nan if np.isnan(x) else 0.0
    z = np.pi * x
    if abs(z) > n + 1:
        value = np.sinc(x)
        for k in range(1, n + 1):
            value = (np.pi ** (k - 1) * _shifted_sine(x, k) - k * value) / x
        return float(value)
    total, term, k = 0.0, 1.0, 0
    # sum over m of (-1)^m z^(2m) / (2m+1)!, differentiated n times term by term
    k = n + (n % 2)
    term = np.pi**n * (-1.0) ** (k // 2) / (k + 1)
    for j in range(1, k - n + 1):
        term *= z / j
    while abs(term) > 1e-18 * abs(total) or total == 0.0:
        total += term
        power = k - n
        term *= -z * z * (k + 1) / ((power + 1) * (power + 2) * (k + 3))
        k += 2
        if term == 0.0:
            break
    return float(total)


def _shifted_sine(x: float, quarters: int) -> float:
    """sin(pi x + quarters pi / 2), with pi x reduced exactly."""
    r = np.fmod(x, 2.0)
    s, c = np.sin(np.pi * r), np.cos(np.pi * r)
    return [s, c, -s, -c][quarters % 4]


def _random_bits(key: Array, counter: Array) -> Array:
    """Philox2x32-10 (Salmon, Moraes, Dror and Shaw 2011) on the two words of each counter."""
    left, right = (np.array([counter & 0xFFFFFFFF, counter >> 32], np.uint64)).copy()
    for number in range(10):
        product = left * np.uint64(0xD256D193)
        left = (product >> 32) ^ right ^ ((key + np.uint64(number * 0x9E3779B9)) & 0xFFFFFFFF)
        right = product & 0xFFFFFFFF
    return left | right << 32


def _select(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


def _join(re: Array, im: Array) -> Array:
    out = np.empty(re.shape, np.result_type(re.dtype, np.complex64))
    out.real, out.imag = re, im
    return out


# ----- Formulas -----


def _of_extremum(wins: Node, loses: Node, x: Node, y: Node) -> Node:
    """The derivative of `maximum` or `minimum` by an operand: 1, one half at a tie, NaN at NaN; masked where it loses.

    A partial derivative of the form select(condition, p, 0) is a mask: what is multiplied by it stays zero, even inf.
    Its p is finite where the operand loses, too: derivatives of higher order multiply by p before they mask.
    """
    differ = elementwise("logical_or", wins, loses)
    shared = choose(differ, 1.0, choose(equal(x, y), 0.5, math.nan, x), x)
    return choose(elementwise("logical_not", loses), shared, 0.0, x)


def _of_winner(wins: Node, x: Node, y: Node) -> Node:
    """The derivative by x of `fmax` or `fmin`, which x wins or shares where it `wins`; a NaN operand loses."""
    return choose(either(wins, isnan(y)), choose(equal(x, y), 0.5, 1.0, x), 0.0, x)


def _share(x: Node, y: Node, scale: float) -> Node:
    """The part of x in exp(scale x) + exp(scale y), smooth where x = y; one half where both are the same infinity."""
    difference = x - y
    part = elementwise("expit", difference if scale == 1.0 else difference * scale)
    if is_finite_number(x) or is_finite_number(y):
        return part
    infinite = both(equal(x, y), elementwise("isinf", x))
    return choose(infinite, 0.5, part, x)


def _cast(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    return inputs[0].shape, params[0]


def _joined(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    shape, dtype = same(inputs, params)
    return shape, COMPLEX_OF[dtype]


def _part(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    return inputs[0].shape, PART_OF[inputs[0].dtype]


# ----- One operand -----
FLOAT_UNARY = named(
    exp=pointwise(np.exp, slope(lambda z, x: z)),
    exp2=pointwise(np.exp2, slope(lambda z, x: z * _LN2)),
    expm1=pointwise(np.expm1, slope(lambda z, x: z + 1.0)),
    log=pointwise(np.log, slope(lambda z, x: 1.0, over=lambda z, x: x)),
    log2=pointwise(np.log2, slope(lambda z, x: 1.0 / _LN2, over=lambda z, x: x)),
    log10=pointwise(np.log10, slope(lambda z, x: 1.0 / _LN10, over=lambda z, x: x)),
    log1p=pointwise(np.log1p, slope(lambda z, x: 1.0, over=lambda z, x: x + 1.0)),
    sqrt=light(np.sqrt, slope(lambda z, x: 0.5, over=lambda z, x: z)),
    rsqrt=pointwise(lambda x: 1 / np.sqrt(x), slope(lambda z, x: -0.5 * (z * (z * z)), infinite=True)),
    cbrt=pointwise(np.cbrt, slope(lambda z, x: 1.0, over=lambda z, x: 3.0 * z * z)),
    sin=pointwise(np.sin, slope(lambda z, x: cos(x))),
    cos=pointwise(np.cos, slope(lambda z, x: -sin(x))),
    tan=pointwise(np.tan, slope(lambda z, x: z * z + 1.0)),
    arcsin=pointwise(np.arcsin, slope(lambda z, x: 1.0, over=lambda z, x: sqrt((1.0 - x) * (1.0 + x)))),
    arccos=pointwise(np.arccos, slope(lambda z, x: -1.0, over=lambda z, x: sqrt((1.0 - x) * (1.0 + x)))),
    arctan=pointwise(np.arctan, slope(lambda z, x: 1.0, over=lambda z, x: x * x + 1.0)),
    sinh=pointwise(np.sinh, slope(lambda z, x: cosh(x))),
    cosh=pointwise(np.cosh, slope(lambda z, x: sinh(x))),
    tanh=pointwise(np.tanh, slope(lambda z, x: (1.0 - z) * (1.0 + z))),
    arcsinh=pointwise(np.arcsinh, slope(lambda z, x: 1.0, over=lambda z, x: hypot(x, 1.0))),
    arccosh=pointwise(np.arccosh, slope(lambda z, x: 1.0, over=lambda z, x: sqrt(x - 1.0) * sqrt(x + 1.0))),
    arctanh=pointwise(np.arctanh, slope(lambda z, x: 1.0, over=lambda z, x: (1.0 - x) * (1.0 + x))),
    erf=pointwise(_scipy("erf"), slope(lambda z, x: (2.0 / math.sqrt(math.pi)) * exp(-(x * x)))),
    erfc=pointwise(_scipy("erfc"), slope(lambda z, x: (-2.0 / math.sqrt(math.pi)) * exp(-(x * x)))),
    gammaln=pointwise(_scipy("gammaln"), slope(lambda z, x: elementwise("digamma", x), infinite=True)),
    digamma=pointwise(
        _scipy("digamma"), slope(lambda z, x: elementwise("polygamma", zeros(x.shape, x.dtype) + 1.0, x), infinite=True)
    ),
    expit=pointwise(_scipy("expit"), slope(lambda z, x: z * (1.0 - z))),
    logit=pointwise(_scipy("logit"), slope(lambda z, x: 1.0, over=lambda z, x: x * (1.0 - x))),
    # Modified Bessel functions, as they are and times exp(-|x|): NIST Digital Library of Mathematical Functions, 10.29.
    i0=pointwise(_scipy("i0"), slope(lambda z, x: elementwise("i1", x))),
    i1=pointwise(_scipy("i1"), slope(lambda z, x: elementwise("i0", x) - choose(equal(x, 0.0), 0.5, z / x, x))),
    i0e=pointwise(_scipy("i0e"), slope(lambda z, x: elementwise("i1e", x) - sign(x) * z)),
    i1e=pointwise(
        _scipy("i1e"),
        slope(lambda z, x: elementwise("i0e", x) - sign(x) * z - choose(equal(x, 0.0), 0.5, z / x, x)),
    ),
)
ANY_UNARY = named(
    negative=light(np.negative, slope(lambda z, x: -1.0)),
    absolute=light(np.absolute, slope(lambda z, x: sign(x))),
    sign=light(np.sign, CONSTANT),
    floor=light(np.floor, CONSTANT),
    ceil=light(np.ceil, CONSTANT),
    rint=light(np.rint, CONSTANT),
    trunc=light(np.trunc, CONSTANT),
    invert=light(np.invert, INTEGER),
    bit_count=pointwise(lambda x: np.bitwise_count(x).astype(x.dtype), INTEGER),
    frexp_fraction=pointwise(
        lambda x: np.frexp(x)[0],
        slope(lambda z, x: elementwise("exp2", -elementwise("frexp_exponent", x))),
    ),
    frexp_exponent=pointwise(lambda x: np.frexp(x)[1].astype(x.dtype), CONSTANT),
)
# ----- Two operands -----
BINARY = named(
    add=light(np.add, slopes(lambda z, x, y: 1.0, lambda z, x, y: 1.0)),
    subtract=light(np.subtract, slopes(lambda z, x, y: 1.0, lambda z, x, y: -1.0)),
    multiply=light(np.multiply, slopes(lambda z, x, y: y, lambda z, x, y: x)),
    divide=light(np.divide, Partials((lambda z, x, y: 1.0, lambda z, x, y: -z), lambda z, x, y: y)),
    power=pointwise(
        np.power,
        slopes(
            lambda z, x, y: choose(both(equal(x, 0.0), equal(y, 0.0)), 0.0, y * power(x, y - 1.0), x),
            lambda z, x, y: choose(both(equal(x, 0.0), greater_equal(y, 0.0)), 0.0, z * log(x), x),
            infinite=True,
        ),
    ),
    remainder=pointwise(np.remainder, slopes(lambda z, x, y: 1.0, lambda z, x, y: -floor_divide(x, y))),
    fmod=pointwise(np.fmod, slopes(lambda z, x, y: 1.0, lambda z, x, y: -trunc(x / y))),
    floor_divide=pointwise(np.floor_divide, CONSTANT),
    maximum=light(
        np.maximum,
        slopes(
            lambda z, x, y: _of_extremum(greater(x, y), less(x, y), x, y),
            lambda z, x, y: _of_extremum(less(x, y), greater(x, y), x, y),
        ),
    ),
    minimum=light(
        np.minimum,
        slopes(
            lambda z, x, y: _of_extremum(less(x, y), greater(x, y), x, y),
            lambda z, x, y: _of_extremum(greater(x, y), less(x, y), x, y),
        ),
    ),
    fmax=light(
        np.fmax,
        slopes(
            lambda z, x, y: _of_winner(greater_equal(x, y), x, y), lambda z, x, y: _of_winner(greater_equal(y, x), y, x)
        ),
    ),
    fmin=light(
        np.fmin,
        slopes(
            lambda z, x, y: _of_winner(greater_equal(y, x), x, y), lambda z, x, y: _of_winner(greater_equal(x, y), y, x)
        ),
    ),
    copysign=light(np.copysign, slopes(lambda z, x, y: sign(x) * copysign(1.0, y), None)),
    hypot=pointwise(
        np.hypot,
        slopes(
            lambda z, x, y: choose(equal(z, 0.0), 0.0, x / z, x),
            lambda z, x, y: choose(equal(z, 0.0), 0.0, y / z, y),
        ),
    ),
    arctan2=pointwise(
        np.arctan2,
        slopes(
            lambda z, y, x: x / hypot(x, y) / hypot(x, y), lambda z, y, x: -y / hypot(x, y) / hypot(x, y), infinite=True
        ),
    ),
    logaddexp=pointwise(np.logaddexp, slopes(lambda z, x, y: _share(x, y, 1.0), lambda z, x, y: _share(y, x, 1.0))),
    logaddexp2=pointwise(np.logaddexp2, slopes(lambda z, x, y: _share(x, y, _LN2), lambda z, x, y: _share(y, x, _LN2))),
    xlogy=pointwise(
        _scipy("xlogy"),
        slopes(
            lambda z, x, y: log(y),
            lambda z, x, y: choose(both(equal(x, 0.0), equal(y, 0.0)), 0.0, x / y, x),
            infinite=True,
        ),
    ),
    polygamma=pointwise(_polygamma, slopes(None, lambda z, n, x: elementwise("polygamma", n + 1.0, x), infinite=True)),
    sinc_derivative=pointwise(
        sinc_derivative, slopes(None, lambda z, n, x: elementwise("sinc_derivative", n + 1.0, x))
    ),
    nextafter=pointwise(np.nextafter, slopes(lambda z, x, y: 1.0, None)),
    gcd=pointwise(np.gcd, INTEGER),
    lcm=pointwise(np.lcm, INTEGER),
    bitwise_and=light(np.bitwise_and, INTEGER),
    bitwise_or=light(np.bitwise_or, INTEGER),
    bitwise_xor=light(np.bitwise_xor, INTEGER),
    left_shift=light(np.left_shift, INTEGER),
    right_shift=light(np.right_shift, INTEGER),
    random_bits=pointwise(_random_bits, INTEGER),
)
COMPARISON = named(
    **{
        name: truth_of(getattr(np, name))
        for name in """
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor
    logical_not isnan isinf isfinite signbit
""".split()
    }
)
# ----- Choices, dtypes, parts of complex numbers -----
CHOICES = named(
    select=light(
        _select,
        Linear(
            lambda node: (
                None,
                lambda g, node: choose(node.inputs[0], g, 0.0, g),
                lambda g, node: choose(elementwise("logical_not", node.inputs[0]), g, 0.0, g),
            )
        ),
    )
)
CONVERSIONS = named(
    cast=light(
        lambda params, x: x.astype(params[0]),
        Linear(lambda node: (lambda g, node: cast(g, node.inputs[0].dtype),)),
        _cast,
        takes_params=True,
    ),
    # A complex number is its two parts, and so is its cotangent.
    complex=pointwise(
        _join,
        Linear(lambda node: (lambda g, node: make("real", (g,)), lambda g, node: make("imag", (g,)))),
        shape=_joined,
    ),
    real=pointwise(
        np.real, Linear(lambda node: (lambda g, node: make("complex", (g, zeros(g.shape, g.dtype))),)), shape=_part
    ),
    imag=pointwise(
        np.imag, Linear(lambda node: (lambda g, node: make("complex", (zeros(g.shape, g.dtype), g)),)), shape=_part
    ),
)
