"""Functions of complex numbers: exp, log, powers, quotients, circular and hyperbolic functions and their inverses.

In: a primitive's name and complex nodes. Out: a `custom` node, whose value is a formula on real and imaginary parts,
and whose derivative is the complex one: the formulas have branches and square roots of differences that are better not
differentiated. Called by expand_complex.py for functions that are not linear.

Branch cuts are those of C99 and NumPy, and the sign of a zero tells the side of a cut. Infinite parts and NaN follow
C99's Annex G. Inverse functions follow W. Kahan, Branch cuts for complex elementary functions, in The State of the Art
in Numerical Analysis (1987); quotients R. L. Smith, Algorithm 116, Comm. ACM 5 (1962).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .complex_numbers import (
    Expansion,
    conjugate,
    is_zero,
    joint_mask,
    literal_number,
    pair,
    parts,
    unmasked,
)
from .formulas import choose
from .ir import Node, Params, elementwise, make, zeros

Value = Callable[..., Node]
"""From operands to the value."""
Partial = Callable[..., Node | complex | None]
"""From (result, *operands) to the complex derivative by one operand; None for a zero."""


def f(name: str, *operands: Node | float) -> Node:
    """An elementwise primitive."""
    return elementwise(name, *operands)


class Holomorphic:
    """The rule of a holomorphic function: the vjp multiplies by the conjugate of each complex derivative."""

    pure = True
    """The rule follows from the function's name, which is part of the identity of a graph."""

    def __init__(self, name: str, partials: tuple[Partial | None, ...]) -> None:
        self.name = name
        self.partials = partials

    def __repr__(self) -> str:
        return f"derivative of {self.name}"

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The cotangents of the operands; zeros of a mask stay zero, whatever the derivative is there."""
        operands = node.inputs[1:]
        condition = joint_mask(g)
        inner = g if condition is None else unmasked(g)
        found: list[Node | None] = []
        for partial in self.partials:
            slope = None if partial is None else partial(node, *operands)
            if slope is None:
                found.append(None)
                continue
            product = inner * conjugate(slope) if isinstance(slope, Node) else inner * slope.conjugate()
            found.append(
                product if condition is None else f("select", condition, product, zeros(product.shape, product.dtype))
            )
        return found


# ----- Values -----


def _exp(z: Node) -> Node:
    x, y = parts(z)
    return _turned_size(f("exp", x), x, y)


def _turned_size(size: Node, x: Node, y: Node) -> Node:
    """A number of a size, which is a power with exponent x, at an angle y."""
    flat, lost = f("equal", y, 0), _without_angle(x, y)
    # exp(inf) * sin(0) is no number, and neither is exp(-inf) * cos(inf).
    re = choose(f("logical_or", flat, lost), size, size * f("cos", y), x)
    return pair(re, choose(flat, y, choose(lost, size - size, size * f("sin", y), x), x))


def _without_angle(x: Node, y: Node) -> Node:
    """Whether a number has no direction, but its size is zero or infinite all the same."""
    return f("logical_and", f("isinf", x), f("logical_not", f("isfinite", y)))


def _exp2(z: Node) -> Node:
    x, y = parts(z)
    return _turned_size(f("exp2", x), x, y * math.log(2))


def _expm1(z: Node) -> Node:
    x, y = parts(z)
    half, size, more = f("sin", y * 0.5), f("exp", x), f("expm1", x)
    lost = _without_angle(x, y)
    re = choose(lost, more, more * f("cos", y) - half * half * 2.0, x)
    return pair(re, choose(f("equal", y, 0), y, choose(lost, size - size, size * f("sin", y), x), x))


def _log_size(x: Node, y: Node) -> Node:
    """log |x + i y|, also where that is near 0."""
    large, small = f("maximum", f("absolute", x), f("absolute", y)), f("minimum", f("absolute", x), f("absolute", y))
    near = f("logical_and", f("greater", large, 0.5), f("less", large, 2.0))
    close = f("log1p", (large - 1.0) * (large + 1.0) + small * small) * 0.5
    factor = choose(_is_huge(large), 0.25, 1.0, x)
    return choose(near, close, f("log", f("hypot", x * factor, y * factor)) - f("log", factor), x)


def _is_huge(size: Node) -> Node:
    """Whether the absolute value of a number with a part of this size might overflow."""
    return f("greater", size, float(np.finfo(size.dtype).max) / 4)


def _log(z: Node) -> Node:
    x, y = parts(z)
    return pair(_log_size(x, y), f("arctan2", y, x))


def _scaled_log(base: float) -> Value:
    def value(z: Node) -> Node:
        re, im = parts(_log(z))
        return pair(re * (1 / math.log(base)), im * (1 / math.log(base)))

    return value


def _log1p(z: Node) -> Node:
    x, y = parts(z)
    moved = x + 1.0
    near = f("less", f("absolute", x) + f("absolute", y), 0.5)
    size = choose(near, f("log1p", x * (x + 2.0) + y * y) * 0.5, _log_size(moved, y), x)
    return pair(size, f("arctan2", y, moved))


def _sqrt(z: Node) -> Node:
    given, height = parts(z)
    huge = _is_huge(f("maximum", f("absolute", given), f("absolute", height)))
    x, y = (choose(huge, part * 0.0625, part, part) for part in (given, height))
    size = f("absolute", x)
    root = f("sqrt", size * 0.5 + f("hypot", x, y) * 0.5)
    origin = f("equal", root, 0)
    other = f("absolute", y) / (choose(origin, 1.0, root, x) * 2.0)
    left = f("signbit", x)
    endless = f("isinf", y)
    re = choose(endless, math.inf, choose(left, other, root, x), x)
    im = choose(endless, y, f("copysign", choose(left, root, other, x), y), x)
    factor = choose(huge, 4.0, 1.0, x)
    return pair(choose(origin, 0.0, re, x) * factor, choose(origin, y, im, x) * factor)


def _sin(z: Node) -> Node:
    return _turned_back(_sinh(_turned(z)))


def _cos(z: Node) -> Node:
    return _cosh(_turned(z))


def _sinh(z: Node) -> Node:
    x, y = parts(z)
    wild = f("logical_not", f("isfinite", y))
    held = f("logical_and", wild, f("logical_or", f("equal", x, 0), f("isinf", x)))
    cosine = choose(held, 1.0, f("cos", y), x)
    im = choose(f("equal", y, 0), y, f("sin", y) * f("cosh", x), x)
    return pair(_finite_product(cosine, f("sinh", x), x), im)


def _cosh(z: Node) -> Node:
    x, y = parts(z)
    wild = f("logical_not", f("isfinite", y))
    cosine = choose(f("logical_and", wild, f("isinf", x)), 1.0, f("cos", y), x)
    sine = choose(f("logical_and", wild, f("equal", x, 0)), 1.0, f("sin", y), x)
    rest = _finite_product(sine, f("sinh", x), x)
    return pair(cosine * f("cosh", x), choose(f("equal", y, 0), y * f("copysign", 1.0, x), rest, x))


def _finite_product(bounded: Node, large: Node, odd: Node) -> Node:
    """A product that is zero, with its sign, where its odd factor is."""
    return choose(f("equal", odd, 0), bounded * odd, bounded * large, odd)


def _tanh(z: Node) -> Node:
    x, y = parts(z)
    far = f("greater", f("absolute", x), 20.0)
    near = choose(far, 1.0, x, x)
    slope = f("tan", y)
    beta, rise = slope * slope + 1.0, f("sinh", near)
    below = beta * rise * rise + 1.0
    re = beta * f("cosh", near) * rise / below
    tail = f("exp", f("absolute", x) * -2.0) * f("sin", y) * f("cos", y) * 4.0
    limit, endless = f("copysign", 1.0, x), f("isinf", x)
    unknown = choose(f("equal", x, 0), x, math.nan, x)
    known = f("logical_or", endless, f("isfinite", y))
    re = choose(known, choose(far, limit, re, x), unknown, x)
    im = choose(f("equal", y, 0), y, choose(far, tail, slope / below, x), x)
    return pair(re, choose(endless, f("copysign", 0.0, y), im, x))


def _tan(z: Node) -> Node:
    return _turned_back(_tanh(_turned(z)))


def _turned(z: Node) -> Node:
    """i z."""
    x, y = parts(z)
    return pair(-y, x)


def _turned_back(z: Node) -> Node:
    """-i z."""
    x, y = parts(z)
    return pair(y, -x)


def _roots(z: Node) -> tuple[tuple[Node, Node], tuple[Node, Node]]:
    """The parts of sqrt(1 - z) and of sqrt(1 + z)."""
    x, y = parts(z)
    return parts(_sqrt(pair(1.0 - x, -y))), parts(_sqrt(pair(x + 1.0, y)))


def _far(x: Node, y: Node) -> tuple[Node, Node, Node]:
    """Whether 1 is nothing beside |x + i y|; log |2 (x + i y)|; and the larger of the absolute values of both."""
    size = f("fmax", f("absolute", x), f("absolute", y))  # infinite also where the other part is unknown
    far = f("greater", size, 2 / math.sqrt(float(np.finfo(x.dtype).eps)))
    return far, _log_size(x, y) + math.log(2), size


def _arcsin(z: Node) -> Node:
    (a, b), (c, d) = _roots(z)
    x, y = parts(z)
    far, size, _ = _far(x, y)
    re = choose(far, f("arctan2", x, f("absolute", y)), f("arctan2", x, a * c - b * d), x)
    im = choose(far, f("copysign", size, y), f("arcsinh", a * d - b * c), x)
    return pair(choose(f("equal", x, 0), x, re, x), im)


def _arccos(z: Node) -> Node:
    (a, b), (c, d) = _roots(z)
    x, y = parts(z)
    far, size, _ = _far(x, y)
    re = choose(far, f("arctan2", f("absolute", y), x), f("arctan2", a, c) * 2.0, x)
    im = choose(far, -f("copysign", size, y), f("arcsinh", c * b - d * a), x)
    return pair(choose(f("equal", x, 0), math.pi / 2, re, x), im)


def _arccosh(z: Node) -> Node:
    x, y = parts(z)
    (a, b), (c, d) = parts(_sqrt(pair(x - 1.0, y))), parts(_sqrt(pair(x + 1.0, y)))
    far, size, _ = _far(x, y)
    im = choose(far, f("arctan2", y, x), f("arctan2", b, c) * 2.0, x)
    im = choose(f("equal", x, 0), f("copysign", math.pi / 2, y), im, x)
    return pair(choose(far, size, f("arcsinh", a * c + b * d), x), im)


def _arctanh(z: Node) -> Node:
    x, y = parts(z)
    size = f("absolute", x)
    apart = 1.0 - size
    far, _, largest = _far(x, y)
    # 1 / z, of which the imaginary part is only needed for its sign.
    distance = f("hypot", x, y)
    inverse = choose(f("isinf", largest), 0.0, size / distance / distance, x)
    re = choose(far, inverse, f("log1p", size * 4.0 / (apart * apart + y * y)) * 0.25, x)
    im = f("arctan2", y * 2.0, apart * (size + 1.0) - y * y) * 0.5
    unknown = f("logical_or", f("isnan", y), f("logical_and", f("isnan", x), f("isfinite", y)))
    quarter = choose(unknown, math.nan, f("copysign", math.pi / 2, y), x)
    return pair(choose(f("equal", x, 0), x, f("copysign", re, x), x), choose(far, quarter, im, x))


def _divide(z: Node, w: Node) -> Node:
    (a, b), (c, d) = parts(z), parts(w)
    wide = f("greater_equal", f("absolute", c), f("absolute", d))
    large, small = choose(wide, c, d, c), choose(wide, d, c, c)
    ratio = choose(f("equal", large, 0), small, small / large, c)
    below = large + small * ratio
    first, second = choose(wide, a, b, a), choose(wide, b, a, a)
    re = (first + second * ratio) / below
    im = (second - first * ratio) / below
    return pair(re, choose(wide, im, -im, im))


def _power(z: Node, w: Node) -> Node:
    zero = f("logical_not", f("not_equal", z, 0))
    safe = f("select", zero, z + 1.0, z)
    value = _exp(w * _log(safe))
    nothing = f("equal", w, 0)
    upwards = f("greater", parts(w)[0], 0)
    at_zero = choose(nothing, 1.0, choose(upwards, 0.0, math.nan, value), value)
    return f("select", zero, at_zero, value)


def _power_by_base(result: Node, z: Node, w: Node) -> Node:
    nothing = f("equal", w, 0)
    return w * f("select", nothing, z * 0.0, f("power", z, w - 1.0))


def _power_by_exponent(result: Node, z: Node, w: Node) -> Node:
    zero = f("equal", z, 0)
    safe = f("select", zero, z + 1.0, z)
    return f("select", zero, z * 0.0, result * f("log", safe))


# ----- Expansions -----


def _function(name: str, value: Value, *partials: Partial | None) -> Expansion:
    rule = Holomorphic(name, partials)

    def expansion(inputs: tuple[Node, ...], params: Params) -> Node:
        return make("custom", (value(*inputs), *inputs), (rule, 0))

    return expansion


_quotient = _function("divide", _divide, lambda q, z, w: f("divide", 1.0, w), lambda q, z, w: f("divide", -q, w))
_general_power = _function("power", _power, _power_by_base, _power_by_exponent)


def _division(inputs: tuple[Node, ...], params: Params) -> Node:
    """A quotient; by a number with no imaginary part, of each part."""
    z, w = inputs
    below, nothing = parts(w)
    if is_zero(nothing):
        return pair(*[part if k and is_zero(part) else part / below for k, part in enumerate(parts(z))])
    return _quotient(inputs, params)


MOST_FACTORS = 100


def _raise(inputs: tuple[Node, ...], params: Params) -> Node:
    """A power; small integer exponents that are written in the program are products, as in NumPy."""
    z, w = inputs
    number = literal_number(w)
    if number is None or number.imag or number.real % 1 or abs(number.real) >= MOST_FACTORS:
        return _general_power(inputs, params)
    count = abs(int(number.real))
    result: Node | None = None
    factor = z
    while count:
        if count & 1:
            result = factor if result is None else result * factor
        count >>= 1
        if count:
            factor = factor * factor
    if result is None:
        return z * 0.0 + 1.0
    return 1.0 / result if number.real < 0 else result


def _reciprocal_of(below: Value) -> Partial:
    return lambda result, z: f("divide", 1.0, below(result, z))


def _root_product(result: Node, z: Node) -> Node:
    """sqrt(1 - z) sqrt(1 + z), the derivative's denominator on every branch of arcsin.

    By parts: `1.0 - z` would lose the sign of an imaginary part that is zero, which says on which side of the cut z is.
    """
    x, y = parts(z)
    return f("sqrt", pair(1.0 - x, -y)) * f("sqrt", pair(x + 1.0, y))


def _distance_product(result: Node, z: Node) -> Node:
    """sqrt(z - 1) sqrt(z + 1), the same for arccosh."""
    x, y = parts(z)
    return f("sqrt", pair(x - 1.0, y)) * f("sqrt", pair(x + 1.0, y))


FUNCTIONS: dict[str, Expansion] = {
    "divide": _division,
    "power": _raise,
    "exp": _function("exp", _exp, lambda e, z: e),
    "exp2": _function("exp2", _exp2, lambda e, z: e * math.log(2)),
    "expm1": _function("expm1", _expm1, lambda e, z: f("exp", z)),
    "log": _function("log", _log, _reciprocal_of(lambda r, z: z)),
    "log2": _function("log2", _scaled_log(2), _reciprocal_of(lambda r, z: z * math.log(2))),
    "log10": _function("log10", _scaled_log(10), _reciprocal_of(lambda r, z: z * math.log(10))),
    "log1p": _function("log1p", _log1p, _reciprocal_of(lambda r, z: z + 1.0)),
    "sqrt": _function("sqrt", _sqrt, lambda r, z: f("divide", 0.5, r)),
    "sin": _function("sin", _sin, lambda r, z: f("cos", z)),
    "cos": _function("cos", _cos, lambda r, z: -f("sin", z)),
    "tan": _function("tan", _tan, lambda r, z: r * r + 1.0),
    "sinh": _function("sinh", _sinh, lambda r, z: f("cosh", z)),
    "cosh": _function("cosh", _cosh, lambda r, z: f("sinh", z)),
    "tanh": _function("tanh", _tanh, lambda r, z: 1.0 - r * r),
    "arcsin": _function("arcsin", _arcsin, _reciprocal_of(_root_product)),
    "arccos": _function("arccos", _arccos, lambda r, z: -f("divide", 1.0, _root_product(r, z))),
    "arctan": _function(
        "arctan", lambda z: _turned_back(_arctanh(_turned(z))), _reciprocal_of(lambda r, z: z * z + 1.0)
    ),
    "arcsinh": _function(
        "arcsinh",
        lambda z: _turned_back(_arcsin(_turned(z))),
        _reciprocal_of(lambda r, z: _root_product(r, _turned(z))),
    ),
    "arccosh": _function("arccosh", _arccosh, _reciprocal_of(_distance_product)),
    "arctanh": _function("arctanh", _arctanh, _reciprocal_of(lambda r, z: (1.0 - z) * (z + 1.0))),
}
"""The function of complex numbers that each primitive is."""
