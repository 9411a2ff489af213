"""Ufuncs of `scipy.special` that are integrals of other functions, or solutions of differential equations.

In: operand nodes. Out: nodes. `INTEGRALS` has a row of partial derivatives for each, as `PARTIALS` of
scipy_functions.py, `SOLUTIONS` one for each result of functions with several. Called by scipy_ufuncs.py. Formulas by
their numbers in the NIST Digital Library of Mathematical Functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...graph.formulas import choose
from ...graph.host_functions import HostFunction, host
from ...graph.ir import Node, broadcast, elementwise, literal, make
from ...graph.shapes import joint_shape
from .scipy_functions import (
    Partial,
    PartialsRule,
    apply,
    cos,
    cosh,
    exp,
    last_dtype,
    log,
    number,
    power,
    sin,
    unknown,
    unknown_by,
    zero,
)

_DEGREE = math.pi / 180
_TERMS = 16
"""Terms of power series at up to 1, and of theta series: the next one is below rounding."""


def _bessel_less_one(name: str, sign: int) -> Partial:
    """(1 - J0(x)) / x or (I0(x) - 1) / x; near 0 by the power series [10.2.2, 10.25.2], which loses no digits."""

    def slope(value: Node, x: Node) -> Node:
        near = elementwise("less", elementwise("absolute", x), 1)
        small, far = choose(near, x, 0, x), choose(near, 1, x, x)
        square = small * small * 0.25
        series = small * 0.25 * _nested(square, sign)
        return elementwise("select", near, series, (apply(name, far) - 1) * sign / far)

    return slope


def _nested(square: Node, sign: int) -> Node:
    """The sum of (sign square)**k / (k + 1)!**2, by Horner's rule."""
    total = number(1, square)
    for k in range(_TERMS, 0, -1):
        total = square * total * (sign / (k + 1) ** 2) + 1
    return total


def _airy(output: int, side: int) -> Partial:
    return lambda value, x: apply("airy", x * side, output=output)


def _scaled_airy(k: int) -> Partial:
    """Airy's functions times exp(+-2/3 x**(3/2)), for x > 0: those of the second kind are not scaled below."""

    def slope(value: Node, x: Node) -> Node:
        positive = elementwise("greater", x, 0)
        root = elementwise("sqrt", choose(positive, x, 1, x))
        scaled = elementwise("select", positive, root * value, value * 0) * (1 if k < 2 else -1)
        other = apply("airye", x, output=k ^ 1)
        return scaled + (other if k % 2 == 0 else x * other)

    return slope


def _scaled_hankel(name: str, factor: complex) -> tuple[Partial, ...]:
    """Hankel's functions times exp(-+ iz)."""

    def slope(value: Node, n: Node, z: Node) -> Node:
        return (apply(name, n - 1, z) - apply(name, n + 1, z)) * 0.5 + value * literal(factor, z.dtype)

    return (unknown, slope)


def _associated_legendre(value: Node, m: Node, n: Node, x: Node) -> Node:
    """[14.10.5]"""
    return (n * x * value - (n + m) * apply("lpmv", m, n - 1, x)) / (x * x - 1)


# ----- Kolmogorov's distribution -----


def _kolmogorov(value: Node | None, y: Node) -> Node:
    """The derivative of 2 sum of (-1)**(k-1) exp(-2 k**2 y**2), for small y as a theta function [20.7.32]."""
    low = elementwise("less", y, 1)
    small, large = choose(low, y, 1, y), choose(low, 1, y, y)
    far = number(0, y)
    for k in range(1, 6):
        far = far + exp(large * large * (-2 * k * k)) * ((-1) ** k * 8 * k * k)
    square, near = small * small, number(0, y)
    for k in (1, 3, 5):
        ratio = (k * math.pi) ** 2 / (square * 4)
        near = near + exp(ratio * -0.5) * (1 - ratio)
    found = elementwise("select", low, near * math.sqrt(2 * math.pi) / square, far * large)
    return elementwise("select", elementwise("greater", y, 0), found, y * 0)


# ----- Mathieu's functions, of degrees -----


def _characteristic_run(m: np.ndarray, q: np.ndarray, odd: bool, order: int) -> np.ndarray:
    """The first or second derivative of a characteristic value by q.

    It is an eigenvalue of a matrix D + q B with three diagonals, that of the series of sines (if `odd`) or cosines
    [28.4, 28.6.15]; its derivatives are those of eigenvalues.
    """
    m, q = np.broadcast_arrays(m, q)
    result = np.full(q.shape, math.nan)
    for at in np.ndindex(q.shape):
        found, start = int(m[at]), 2 if odd else 0
        if found != m[at] or found < int(odd) or not np.isfinite(q[at]):
            continue
        size = found + 2 * int(math.sqrt(abs(q[at]))) + 40
        bent = np.eye(size, k=1) + np.eye(size, k=-1)
        if found % 2:
            start = 1
            bent[0, 0] = -1 if odd else 1
        elif not odd:
            bent[0, 1] = bent[1, 0] = math.sqrt(2)
        squares = (start + 2.0 * np.arange(size)) ** 2
        result[at] = _eigenvalue_slope(squares, bent, float(q[at]), (found - start) // 2, order)
    return result.astype(q.dtype)


def _eigenvalue_slope(line: np.ndarray, bent: np.ndarray, q: float, index: int, order: int) -> float:
    """The first or second derivative by q of an eigenvalue of the diagonal matrix of a line, plus q times a matrix."""
    values, vectors = np.linalg.eigh(np.diag(line) + q * bent)
    products = vectors.T @ bent @ vectors[:, index]
    others = np.arange(line.size) != index
    apart = (values[index] - values)[others]
    return products[index] if order == 1 else 2 * np.sum(products[others] ** 2 / apart)


MATHIEU = HostFunction("a characteristic value of Mathieu's by its parameter", last_dtype, _characteristic_run)


def _characteristic(odd: bool, order: int = 1) -> tuple[Partial, ...]:
    def slope(value: Node, m: Node, q: Node) -> Node | None:
        if order > 2:
            return unknown(value, q)
        shape = joint_shape(m.shape, q.shape)
        nodes = (broadcast(m, shape), broadcast(q, shape))
        rule = PartialsRule(_characteristic(odd, order + 1))
        return make("custom", (host(MATHIEU, nodes, odd, order), *nodes), (rule, 0))

    return (zero, slope)


def _mathieu(name: str, characteristic: str, modified: bool) -> tuple[tuple[Partial, ...], ...]:
    """y'' + (a - 2 q cos 2x) y = 0, of x in degrees, and y'' - (a - 2 q cosh 2x) y = 0 [28.2.1, 28.20.1]."""
    unit = 1.0 if modified else _DEGREE

    def by_q(value: Node, m: Node, q: Node, x: Node) -> Node | None:
        return unknown(value, q)

    def second(value: Node, m: Node, q: Node, x: Node) -> Node:
        wave = cosh(x * 2) if modified else cos(x * (2 * _DEGREE))
        curved = apply(characteristic, m, q) - q * wave * 2
        return curved * apply(name, m, q, x, output=0) * (unit if modified else -unit)

    first: Partial = lambda v, m, q, x: apply(name, m, q, x, output=1) * unit  # noqa: E731
    return ((zero, by_q, first), (zero, by_q, second))


def _cylinder(name: str, curved: Any) -> tuple[tuple[Partial, ...], ...]:
    """Parabolic cylinder functions and their derivatives: w'' = curved(a, x) w [12.2]."""
    return (
        (unknown, lambda v, a, x: apply(name, a, x, output=1)),
        (unknown, lambda v, a, x: curved(a, x) * apply(name, a, x, output=0)),
    )


# ----- Spheroidal wave functions -----


def _spheroidal_run(m: np.ndarray, n: np.ndarray, q: np.ndarray, order: int) -> np.ndarray:
    """The first or second derivative of a characteristic value by q, which is the square of the parameter.

    It is an eigenvalue of the operator of Legendre's functions plus q x**2, in the basis of these [30.2.1, 14.10.3].
    """
    m, n, q = np.broadcast_arrays(m, n, q)
    result = np.full(q.shape, math.nan)
    for at in np.ndindex(q.shape):
        low, degree = int(m[at]), int(n[at])
        if low != m[at] or degree != n[at] or not 0 <= low <= degree or not np.isfinite(q[at]):
            continue
        odd = (degree - low) % 2
        size = (degree - low) // 2 + 2 * int(abs(q[at]) ** 0.5) + 40
        every = np.arange(low, low + 2 * size + 2, dtype=float)
        steps = np.sqrt((every[1:] ** 2 - low**2) / (4 * every[1:] ** 2 - 1))
        times_x = np.diag(steps, 1) + np.diag(steps, -1)
        kept = np.arange(odd, 2 * size, 2)
        bent = (times_x @ times_x)[np.ix_(kept, kept)]
        result[at] = _eigenvalue_slope(every[kept] * (every[kept] + 1), bent, float(q[at]), (degree - low) // 2, order)
    return result.astype(q.dtype)


SPHEROIDAL = HostFunction("a spheroidal characteristic value by its parameter", last_dtype, _spheroidal_run)


def _spheroidal_slope(sign: int) -> tuple[Partial, ...]:
    """The derivative of a characteristic value by c, whose square with a sign is q."""

    def by_q(k: int, m: Node, n: Node, q: Node) -> Node | None:
        if k > 2:
            return unknown(q, q)
        shape = joint_shape(joint_shape(m.shape, n.shape), q.shape)
        nodes = (broadcast(m, shape), broadcast(n, shape), broadcast(q, shape))
        rule = PartialsRule((zero, zero, lambda value, m, n, q: by_q(k + 1, m, n, q)))
        return make("custom", (host(SPHEROIDAL, nodes, k), *nodes), (rule, 0))

    def slope(value: Node, m: Node, n: Node, c: Node) -> Node:
        found = by_q(1, m, n, c * c * sign)
        assert found is not None
        return found * c * (2 * sign)

    return (zero, zero, slope)


def _spheroidal(name: str, sign: int) -> dict[str, tuple[tuple[Partial, ...], ...]]:
    """w and w' for (1 - y**2) w'' = 2 y w' - (a - q y**2 - m**2 / (1 - y**2)) w [30.2.1], where y is x; for radial
    oblate functions y is i x [30.11]."""
    turned = sign < 0 and "rad" in name
    letters = name.split("_")[0]

    def curved(characteristic: Node, m: Node, c: Node, x: Node, first: Node, second: Node) -> Node:
        square = x * x * (-1 if turned else 1)
        bent = characteristic - c * c * square * sign - m * m / (1 - square)
        found = (x * second * 2 - bent * first) / (1 - square)
        return -found if turned else found

    def second(value: Node, m: Node, n: Node, c: Node, x: Node) -> Node:
        first = apply(name, m, n, c, x, output=0)
        return curved(apply(f"{letters}_cv", m, n, c), m, c, x, first, value)

    def known(value: Node, m: Node, n: Node, c: Node, a: Node, x: Node) -> Node:
        return curved(a, m, c, x, apply(f"{name}_cv", m, n, c, a, x, output=0), value)

    slope: Partial = lambda v, *operands: apply(name, *operands, output=1)  # noqa: E731
    slope_known: Partial = lambda v, *operands: apply(f"{name}_cv", *operands, output=1)  # noqa: E731
    orders = (zero, zero, unknown_by(2))
    return {
        name: ((*orders, slope), (*orders, second)),
        f"{name}_cv": ((*orders, unknown_by(3), slope_known), (*orders, unknown_by(3), known)),
    }


# ----- Modified Fresnel integrals -----


def _modified_fresnel(name: str, side: int) -> dict[str, tuple[tuple[Partial, ...], ...]]:
    """Real and imaginary parts of F, the integral of exp(+-i t**2) from x on, and of K, a multiple of exp(-+i x**2) F:
    K' = -+2i x K - exp(-+i pi/4) / sqrt(pi)."""
    scale = math.sqrt(0.5 / math.pi)

    def moved(other: str, sign: int, shift: float) -> Partial:
        return lambda v, x: x * apply(f"{name} {other}", x, output=1) * (2 * sign) + shift

    return {
        f"{name} real": ((lambda v, x: -cos(x * x),), (moved("imag", side, -scale),)),
        f"{name} imag": ((lambda v, x: sin(x * x) * -side,), (moved("real", -side, side * scale),)),
    }


# ----- Tukey's lambda distribution -----


def _tukey(which: str) -> Partial:
    """The inverse is (p**m - (1-p)**m) / m, its limit log(p / (1-p)) for m = 0; the support is bounded for m > 0."""

    def slope(value: Node, x: Node, m: Node) -> Node:
        inside = elementwise("logical_and", elementwise("greater", value, 0), elementwise("less", value, 1))
        p = choose(inside, value, 0.5, x)
        steep = power(p, m - 1) + power(1 - p, m - 1)
        if which == "x":
            return elementwise("select", inside, 1 / steep, x * 0)
        bent = _by_exponent(log(p), m) - _by_exponent(log(1 - p), m)
        return elementwise("select", inside, -bent / steep, x * 0)

    return slope


def _by_exponent(logarithm: Node, m: Node) -> Node:
    """The derivative of (exp(m l) - 1) / m by m."""
    series = apply("hyp1f1", number(2, m), number(3, m), logarithm * m)
    return logarithm * logarithm * series * 0.5


INTEGRALS: dict[str, tuple[Partial, ...]] = {
    "itstruve0": (lambda v, x: apply("struve", number(0, x), x),),
    "it2struve0": (lambda v, x: -apply("struve", number(0, x), x) / x,),
    "itmodstruve0": (lambda v, x: apply("modstruve", number(0, x), x),),
    "besselpoly": (
        lambda v, a, p, n: apply("besselpoly", a, p + 1, n - 1) - apply("besselpoly", a, p + 1, n + 1),
        unknown_by(1),
        unknown_by(2),
    ),
    "hankel1e": _scaled_hankel("hankel1e", -1j),
    "hankel2e": _scaled_hankel("hankel2e", 1j),
    "lpmv": (zero, unknown_by(1), _associated_legendre),
    "wright_bessel": (unknown_by(0), unknown_by(1), lambda v, a, b, x: apply("wright_bessel", a, b + a, x)),
    "log_wright_bessel": (
        unknown_by(0),
        unknown_by(1),
        lambda v, a, b, x: exp(apply("log_wright_bessel", a, b + a, x) - v),
    ),
    "kolmogorov": (_kolmogorov,),
    "kolmogi": (lambda v, p: 1 / _kolmogorov(None, v),),
    "mathieu_a": _characteristic(False),
    "mathieu_b": _characteristic(True),
    "tklmbda": (_tukey("x"), _tukey("m")),
    "pro_cv": _spheroidal_slope(1),
    "obl_cv": _spheroidal_slope(-1),
}
"""By the ufunc's name: its partial derivatives, from the value and the operands."""

SOLUTIONS: dict[str, tuple[tuple[Partial, ...], ...]] = {
    "itj0y0": ((lambda v, x: apply("j0", x),), (lambda v, x: apply("y0", x),)),
    "iti0k0": ((lambda v, x: apply("i0", x),), (lambda v, x: apply("k0", x),)),
    "it2j0y0": ((_bessel_less_one("j0", -1),), (lambda v, x: -apply("y0", x) / x,)),
    "it2i0k0": ((_bessel_less_one("i0", 1),), (lambda v, x: -apply("k0", x) / x,)),
    "itairy": ((_airy(0, 1),), (_airy(2, 1),), (_airy(0, -1),), (_airy(2, -1),)),
    "airye": tuple([(_scaled_airy(k),) for k in range(4)]),
    "pbdv": _cylinder("pbdv", lambda v, x: x * x * 0.25 - v - 0.5),
    "pbvv": _cylinder("pbvv", lambda v, x: x * x * 0.25 - v - 0.5),
    "pbwa": _cylinder("pbwa", lambda a, x: a - x * x * 0.25),
    **_spheroidal("pro_ang1", 1),
    **_spheroidal("pro_rad1", 1),
    **_spheroidal("pro_rad2", 1),
    **_spheroidal("obl_ang1", -1),
    **_spheroidal("obl_rad1", -1),
    **_spheroidal("obl_rad2", -1),
    **_modified_fresnel("modfresnelp", 1),
    **_modified_fresnel("modfresnelm", -1),
    "mathieu_cem": _mathieu("mathieu_cem", "mathieu_a", False),
    "mathieu_sem": _mathieu("mathieu_sem", "mathieu_b", False),
    "mathieu_modcem1": _mathieu("mathieu_modcem1", "mathieu_a", True),
    "mathieu_modcem2": _mathieu("mathieu_modcem2", "mathieu_a", True),
    "mathieu_modsem1": _mathieu("mathieu_modsem1", "mathieu_b", True),
    "mathieu_modsem2": _mathieu("mathieu_modsem2", "mathieu_b", True),
}
"""Functions with several results: a row for each of them."""
