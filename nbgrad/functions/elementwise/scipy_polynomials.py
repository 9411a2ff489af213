"""More ufuncs of `scipy.special`: orthogonal polynomials, elliptic integrals, Kelvin functions, and others.

In: operand nodes. Out: nodes. `MORE` has a row of partial derivatives for each, as `PARTIALS` of scipy_functions.py, to
which it is added. Called by scipy_ufuncs.py. Formulas by their numbers in the NIST Digital Library of Mathematical
Functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...graph.builders import cast
from ...graph.formulas import choose
from ...graph.host_functions import HostFunction, host
from ...graph.ir import Node, broadcast, elementwise, make
from ...graph.shapes import joint_shape
from .scipy_functions import (
    Partial,
    PartialsRule,
    apply,
    exp,
    log,
    log1p,
    number,
    power,
    sin,
    unknown,
    unknown_by,
    zero,
)

_DEGREE = math.pi / 180


def _lower(name: str, scale: Any, *shift: int) -> tuple[Partial, ...]:
    """An orthogonal polynomial: its derivative is `scale` times one of a degree less, whose parameters are shifted."""
    count = len(shift)

    def slope(value: Node, n: Node, *rest: Node) -> Node:
        *given, x = rest
        none = _is_constant(name, n)
        below = choose(none, 0, n - 1, n)
        parameters = [p + s for p, s in zip(given, shift, strict=True)]
        found = apply(name, below, *parameters, x) * scale(cast(n, x.dtype), *given)
        return elementwise("select", none, found * 0, found)

    return (unknown, *[unknown_by(1 + k) for k in range(count)], slope)


def _is_constant(name: str, n: Node) -> Node:
    """Whether a polynomial of a degree is a constant; Gegenbauer's of degree -1 is zero."""
    constant = elementwise("equal", n, 0)
    return elementwise("logical_or", constant, elementwise("equal", n, -1)) if name == "eval_gegenbauer" else constant


def _as_gegenbauer(alpha: float, scale: float, sum_of_degrees: int, sign: float) -> tuple[Partial, ...]:
    """A polynomial whose derivative is a multiple of Gegenbauer's of a degree less. That of a degree is `sign` times
    that of the degree that adds up to `sum_of_degrees` with it [14.9.5], which is not negative for one of both."""

    def slope(value: Node, n: Node, x: Node) -> Node:
        negative = elementwise("less", n * 2, sum_of_degrees)
        degree = elementwise("select", negative, -n + sum_of_degrees, n)
        none = _is_constant("eval_gegenbauer", degree)
        found = apply("eval_gegenbauer", choose(none, 0, degree - 1, n), number(alpha, x), x) * scale
        found = elementwise("select", negative, found * sign, found)
        return elementwise("select", none, found * 0, found)

    return (unknown, slope)


def _spherical(name: str, below: float, first: float) -> tuple[Partial, ...]:
    """Spherical Bessel functions [10.51]: f_n' = +-f_(n-1) - (n+1)/z f_n, and f_0' = +-f_1."""

    def slope(value: Node, n: Node, z: Node) -> Node:
        none = elementwise("less", n, 1)
        lower = apply(name, choose(none, 0, n - 1, n), z) * below - (cast(n, z.dtype) + 1) / z * value
        return elementwise("select", none, apply(name, n * 0 + 1, z) * first, lower)

    return (unknown, slope)


_NEAR = 0.1
"""The parameter up to which differences of elliptic integrals lose digits."""


def _elliptic(numerator: Any, scale: float, *parameters: float) -> Partial:
    """A derivative of a complete integral, numerator / (2 m): near 0 a hypergeometric function [19.5.1, 19.5.2]."""

    def slope(value: Node, m: Node) -> Node:
        near = elementwise("less", elementwise("absolute", m), _NEAR)
        small, safe = choose(near, m, 0, m), choose(near, 0.5, m, m)
        series = apply("hyp2f1", *[number(p, m) for p in parameters], small) * scale
        return elementwise("select", near, series, numerator(safe) / (safe * 2))

    return slope


_elliptic_k = _elliptic(
    lambda m: apply("ellipe", m) / (1 - m) - apply("ellipk", m), math.pi / 8, 1.5, 1.5, 2.0
)  # [19.4.1]
_elliptic_e = _elliptic(lambda m: apply("ellipe", m) - apply("ellipk", m), -math.pi / 8, 0.5, 1.5, 2.0)  # [19.4.2]


def _elliptic_k_near_1(value: Node, p: Node) -> Node:
    """Of ellipk(1 - p) by p."""
    return (value - apply("ellipe", 1 - p) / p) / ((1 - p) * 2)


def _wright_omega(value: Node, z: Node) -> Node:
    return value / (value + 1)


def _slope_of_log(t: Node) -> Node:
    """The derivative of log(1 + t) / t, by its power series near 0."""
    near = elementwise("less", elementwise("absolute", t), 0.01)
    small, safe = choose(near, t, 0, t), choose(near, 1, t, t)
    series = number(-0.5, t)
    power_of = number(1, t)
    for k in range(2, 12):
        power_of = power_of * small
        series = series + power_of * ((-1.0) ** k * k / (k + 1))
    return elementwise("select", near, series, (safe / (safe + 1) - log1p(safe)) / (safe * safe))


def _inverse_box_cox(one: float) -> tuple[Partial, ...]:
    """(1 + y m)**(1/m) and its limit exp(y), for m = 0; less `one`."""

    def by_y(value: Node, y: Node, m: Node) -> Node:
        return (value + one) / (y * m + 1)

    def by_m(value: Node, y: Node, m: Node) -> Node:
        return (value + one) * y * y * _slope_of_log(y * m)

    return (by_y, by_m)


def _voigt(kind: str) -> Partial:
    """The profile is re w(z) / (s sqrt(2 pi)) with z = (x + ig) / (s sqrt 2), w' = -2 z w + 2i / sqrt(pi) [7.10.2]."""

    def slope(value: Node, x: Node, s: Node, g: Node) -> Node:
        from ...graph.complex_numbers import pair, parts

        scale = s * math.sqrt(2)
        z = pair(x / scale, g / scale)
        re, im = parts(z * apply("wofz", z) * -2)
        im = im + 2 / math.sqrt(math.pi)
        size = s * s * (2 * math.sqrt(math.pi))
        if kind == "x":
            return re / size
        if kind == "g":
            return -im / size
        return -value / s - (re * x - im * g) / (size * s)

    return slope


def _struve(name: str) -> tuple[Partial, ...]:
    """[11.4.27, 11.4.30]"""
    return (unknown, lambda v, n, x: apply(name, n - 1, x) - n / x * v)


def _hankel(name: str) -> tuple[Partial, ...]:
    return (unknown, lambda v, n, z: (apply(name, n - 1, z) - apply(name, n + 1, z)) * 0.5)


def _elliptic_slope(k: Node, m: Node) -> Node:
    found = _elliptic_k(k, m)
    assert found is not None
    return found


def _mean(which: int) -> Partial:
    """The arithmetic-geometric mean is pi (a + b) / (4 K(m)) with m = ((a - b) / (a + b))**2 [19.8.5]."""

    def slope(value: Node, a: Node, b: Node) -> Node:
        total, apart = a + b, a - b
        ratio = apart / total
        m = ratio * ratio
        k = apply("ellipk", m)
        by_m = (b if which == 0 else -a) * apart * 4 / (total * total * total)
        return value / total - value / k * _elliptic_slope(k, m) * by_m

    return slope


# ----- Lambert's function, of complex numbers and an integer branch -----


def _lambert_run(z: np.ndarray, k: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    from scipy.special import lambertw

    branch: Any = k
    return lambertw(z, branch, float(tolerance.flat[0]) if tolerance.size else 1e-8)


LAMBERT = HostFunction("lambertw", lambda inputs, params: (inputs[0].shape, inputs[0].dtype), _lambert_run)


def lambert(z: Node, k: Node, tolerance: Node) -> Node:
    """The solution w of w exp(w) = z on a branch; its derivative is exp(-w) / (1 + w) [4.13.4]."""
    shape = joint_shape(joint_shape(z.shape, k.shape), tolerance.shape)
    nodes = tuple([broadcast(node, shape) for node in (z, k, tolerance)])
    rule = PartialsRule((lambda w, *operands: exp(-w) / (w + 1), zero, zero))
    return make("custom", (host(LAMBERT, nodes), *nodes), (rule, 0))


def _at(row: tuple[Partial, ...], scale: float, shift: float, factor: float = 1) -> tuple[Partial, ...]:
    """A polynomial of a row at scale x + shift, times a factor."""
    inner = row[-1]

    def slope(value: Node, n: Node, x: Node) -> Node:
        found = inner(value, n, x * scale + shift)
        assert found is not None
        return found * (scale * factor)

    return (unknown, slope)


def _shifted_jacobi(value: Node, n: Node, p: Node, q: Node, x: Node) -> Node:
    """G_n(p, q, x) is P_n^(p-q, q-1)(2x-1) over binom(2n+p-1, n) [18.1.2]."""
    none = elementwise("equal", n, 0)
    whole = cast(n, x.dtype)
    lower = apply("eval_jacobi", choose(none, 0, n - 1, n), p - q + 1, q, x * 2 - 1)
    return elementwise("select", none, x * 0, lower * (whole + p) / apply("binom", whole * 2 + p - 1, whole))


_LEGENDRE, _CHEBYSHEV_U = _as_gegenbauer(1.5, 1, -1, 1), _as_gegenbauer(2.0, 2, -2, -1)
_CHEBYSHEV_T: tuple[Partial, ...] = (unknown, lambda v, n, x: apply("eval_chebyu", n - 1, x) * cast(n, x.dtype))

MORE: dict[str, tuple[Partial, ...]] = {
    # ----- Orthogonal polynomials [18.9] -----
    "eval_legendre": _LEGENDRE,
    "eval_chebyt": _CHEBYSHEV_T,
    "eval_chebyu": _CHEBYSHEV_U,
    "eval_chebyc": _at(_CHEBYSHEV_T, 0.5, 0, 2),
    "eval_chebys": _at(_CHEBYSHEV_U, 0.5, 0),
    "eval_sh_legendre": _at(_LEGENDRE, 2, -1),
    "eval_sh_chebyt": _at(_CHEBYSHEV_T, 2, -1),
    "eval_sh_chebyu": _at(_CHEBYSHEV_U, 2, -1),
    "eval_sh_jacobi": (unknown, unknown_by(1), unknown_by(2), _shifted_jacobi),
    "eval_gegenbauer": _lower("eval_gegenbauer", lambda n, a: a * 2, 1),
    "eval_jacobi": _lower("eval_jacobi", lambda n, a, b: (n + a + b + 1) * 0.5, 1, 1),
    "eval_genlaguerre": _lower("eval_genlaguerre", lambda n, a: -1, 1),
    "eval_laguerre": (
        unknown,
        lambda v, n, x: elementwise(
            "select",
            elementwise("equal", n, 0),
            x * 0,
            -apply("eval_genlaguerre", choose(elementwise("equal", n, 0), 0, n - 1, n), number(1, x), x),
        ),
    ),
    "eval_hermite": _lower("eval_hermite", lambda n: n * 2),
    "eval_hermitenorm": _lower("eval_hermitenorm", lambda n: n),
    # ----- Elliptic integrals [19.4] -----
    "ellipk": (_elliptic_k,),
    "ellipe": (_elliptic_e,),
    "ellipkm1": (_elliptic_k_near_1,),
    # ----- Bessel functions and their relatives -----
    "yn": (zero, lambda v, n, x: (apply("yn", n - 1, x) - apply("yn", n + 1, x)) * 0.5),
    "kn": (zero, lambda v, n, x: (apply("kn", n - 1, x) + apply("kn", n + 1, x)) * -0.5),
    "_spherical_jn": _spherical("_spherical_jn", 1, -1),
    "_spherical_yn": _spherical("_spherical_yn", 1, -1),
    "_spherical_in": _spherical("_spherical_in", 1, 1),
    "_spherical_kn": _spherical("_spherical_kn", -1, -1),
    "jve": (unknown, lambda v, n, x: (apply("jve", n - 1, x) - apply("jve", n + 1, x)) * 0.5),
    "yve": (unknown, lambda v, n, x: (apply("yve", n - 1, x) - apply("yve", n + 1, x)) * 0.5),
    "ber": (lambda v, x: apply("berp", x),),
    "bei": (lambda v, x: apply("beip", x),),
    "ker": (lambda v, x: apply("kerp", x),),
    "kei": (lambda v, x: apply("keip", x),),
    "berp": (lambda v, x: -apply("bei", x) - v / x,),
    "beip": (lambda v, x: apply("ber", x) - v / x,),
    "kerp": (lambda v, x: -apply("kei", x) - v / x,),
    "keip": (lambda v, x: apply("ker", x) - v / x,),
    "struve": _struve("struve"),
    "modstruve": _struve("modstruve"),
    "hankel1": _hankel("hankel1"),
    "hankel2": _hankel("hankel2"),
    # ----- Hypergeometric functions [13.3.22, 16.3.1] -----
    "hyp0f1": (unknown, lambda v, b, z: apply("hyp0f1", b + 1, z) / b),
    "hyperu": (
        unknown,
        lambda v, a, b, x: unknown(v, b),
        lambda v, a, b, x: -a * apply("hyperu", a + 1, b + 1, x),
    ),
    # ----- Elementary functions and distributions -----
    "wrightomega": (_wright_omega,),
    "inv_boxcox": _inverse_box_cox(0.0),
    "inv_boxcox1p": _inverse_box_cox(1.0),
    "powm1": (lambda v, x, y: y * power(x, y - 1), lambda v, x, y: (v + 1) * log(x)),
    "agm": (_mean(0), _mean(1)),
    "radian": tuple([lambda v, d, m, s, k=k: d * 0 + _DEGREE / 60**k for k in range(3)]),
    "cosm1": (lambda v, x: -sin(x),),
    "sindg": (lambda v, x: apply("cosdg", x) * _DEGREE,),
    "cosdg": (lambda v, x: apply("sindg", x) * -_DEGREE,),
    "tandg": (lambda v, x: (v * v + 1) * _DEGREE,),
    "cotdg": (lambda v, x: (v * v + 1) * -_DEGREE,),
    "ndtri_exp": (lambda v, y: exp(y + v * v * 0.5) * math.sqrt(2 * math.pi),),
    "voigt_profile": tuple([_voigt(kind) for kind in "xsg"]),
}
"""By the ufunc's name: its partial derivatives, from the value and the operands."""
