"""Elliptic integrals and functions of `scipy.special`: Carlson's, Jacobi's, and Legendre's incomplete ones.

In: operand nodes. Out: nodes. `ELLIPTIC` has a row of partial derivatives for each, as `PARTIALS` of
scipy_functions.py, `JACOBI` a row for each result of `ellipj`. Called by scipy_ufuncs.py. Formulas by their numbers in
the NIST Digital Library of Mathematical Functions.

All of them are integrals over t of powers of t + x. A derivative by an x raises an exponent, so that every order is an
integral of the same kind, of positive numbers: no digits are lost where arguments are equal, where differences of the
functions themselves would lose all.
"""

from __future__ import annotations

import math

import numpy as np

from ...graph.formulas import choose
from ...graph.host_functions import HostFunction, host
from ...graph.ir import Node, broadcast, elementwise, make
from ...graph.shapes import joint_shape
from .scipy_functions import MOST_TERMS, Partial, PartialsRule, apply, last_dtype, power, sin

STEP = 0.4
"""The distance of points of the trapezoidal rule in log(t). The nearest singularities are pi away from the real line,
so that the error is about exp(-2 pi**2 / STEP) (Trefethen and Weideman, SIAM Review 56, 2014)."""
NEGLIGIBLE = 40.0
"""Terms exp(NEGLIGIBLE) times smaller than others are left out."""


def _powers_run(*bases: np.ndarray, exponents: tuple[int, ...], moment: int) -> np.ndarray:
    """The integral of t**moment times the product of (t + x)**(-n/2) over t from 0 on, for each x and its n.

    It is infinite if exponents at x = 0 are too large, and NaN for negative x.
    """
    arrays = np.broadcast_arrays(*bases)
    x = np.stack([np.asarray(one, np.float64).ravel() for one in arrays])
    n = np.asarray(exponents)[:, None]
    scale = x.max(axis=0, initial=0.0)
    below, above = moment + 1 - np.sum(n * (x == 0), axis=0) / 2, sum(exponents) / 2 - moment - 1
    usual = np.all((x >= 0) & np.isfinite(x), axis=0)
    result = np.where(usual, math.inf, math.nan)
    inside = np.flatnonzero(usual & (below > 0))
    if inside.size:
        x, scale = x[:, inside] / scale[inside], scale[inside]
        least = float(np.min(x, where=x > 0, initial=1.0))
        first = math.log(least) - NEGLIGIBLE / float(below[inside].min())
        points = np.arange(first, NEGLIGIBLE / above, STEP)[:, None]
        t, size = np.exp(points), points * (moment + 1) + math.log(STEP)
        count = max(1, MOST_TERMS // points.size)
        for begin in range(0, inside.size, count):
            part = slice(begin, begin + count)
            # Powers may be too large for floats where their product is not.
            logarithm = sum([np.log(t + one[part]) * (-e / 2) for one, e in zip(x, exponents, strict=True)], size)
            result[inside[part]] = np.exp(logarithm - above * np.log(scale[part])).sum(axis=0)
    return result.reshape(arrays[0].shape).astype(np.asarray(bases[-1]).dtype)


POWERS = HostFunction(
    "an integral of powers", last_dtype, lambda *a: _powers_run(*a[:-2], exponents=a[-2], moment=a[-1])
)


def _powers(exponents: tuple[int, ...], moment: int, *bases: Node) -> Node:
    rule = PartialsRule(_slopes(1.0, exponents, moment))
    return make("custom", (host(POWERS, bases, exponents, moment), *bases), (rule, 0))


def _slopes(scale: float, exponents: tuple[int, ...], moment: int = 0) -> tuple[Partial, ...]:
    """The partial derivatives of an integral of powers, times a factor: each raises an exponent [19.16]."""

    def by(k: int) -> Partial:
        raised = (*exponents[:k], exponents[k] + 2, *exponents[k + 1 :])
        return lambda value, *x: _powers(raised, moment, *x) * (-scale * exponents[k] / 2)

    return tuple([by(k) for k in range(len(exponents))])


def _degenerate(which: int) -> Partial:
    """R_C(x, y) = R_F(x, y, y) [19.2.20], for y < 0 a principal value: there by its differential equation, y - x being
    far from 0 [19.6.15]."""

    def slope(value: Node, x: Node, y: Node) -> Node:
        negative = elementwise("less", y, 0)
        by_x = (value - power(x, -0.5)) / ((choose(negative, y, -1, y) - x) * 2)
        outside = by_x if which == 0 else -(value * 0.5 + x * by_x) / choose(negative, y, -1, y)
        safe = choose(negative, 1, y, y)
        inside = (
            apply("elliprd", safe, safe, x) * (-1 / 6) if which == 0 else apply("elliprd", x, safe, safe) * (-1 / 3)
        )
        return elementwise("select", negative, outside, inside)

    return slope


def _first_kind(which: int) -> Partial:
    """R_F [19.18.1]"""

    def slope(value: Node, *x: Node) -> Node:
        return apply("elliprd", *[x[k] for k in range(3) if k != which], x[which]) * (-1 / 6)

    return slope


def _third_kind(which: int) -> Partial:
    """R_G, of which an integral with t as a factor is the derivative [19.16.9, 19.18.4]."""
    exponents = tuple([3 if k == which else 1 for k in range(3)])
    return lambda value, *x: _powers(exponents, 1, *x) * 0.125


# ----- Legendre's integrals and Jacobi's functions -----


def _legendre_run(phi: np.ndarray, m: np.ndarray, order: int, root: int) -> np.ndarray:
    """The integral of sin(a)**(2 order) / (1 - m sin(a)**2)**(root/2) over a from 0 to phi.

    With t = 1 / sin(a)**2 - 1 / sin(phi)**2 it is an integral of powers, within a quarter period; the rest of phi are
    whole half periods.
    """
    import scipy.special

    wide_phi, wide_m = (np.asarray(v, np.float64) for v in np.broadcast_arrays(phi, m))
    turns = np.round(wide_phi / math.pi)
    rest = wide_phi - turns * math.pi

    def within(sine: np.ndarray, square: np.ndarray) -> np.ndarray:
        """`square`: of the cosine."""
        delta, one = 1 - wide_m * sine**2, np.ones_like(wide_m)
        if order == 1 and root in (1, 3):
            found = scipy.special.elliprd(square, *((delta, one) if root == 1 else (one, delta))) / 3
        else:
            exponents = (1, root, 2 * order - root + 2)
            found = _powers_run(square, delta, one, exponents=exponents, moment=0) / 2
        return sine ** (2 * order + 1) * found

    total = within(np.sin(rest), np.cos(rest) ** 2)
    if np.any(turns):
        whole = within(np.ones_like(wide_m), np.zeros_like(wide_m))
        total = total + np.where(turns == 0, 0.0, 2 * turns * whole)
    return total.astype(np.asarray(m).dtype)


LEGENDRE = HostFunction("an incomplete elliptic integral", last_dtype, _legendre_run)


def _legendre(order: int, root: int, phi: Node, m: Node) -> Node:
    shape = joint_shape(phi.shape, m.shape)
    nodes = (broadcast(phi, shape), broadcast(m, shape))
    rule = PartialsRule(
        (
            lambda v, phi, m: power(sin(phi), 2 * order) * power(_squared_root(phi, m), -root / 2),
            lambda v, phi, m: _legendre(order + 1, root + 2, phi, m) * (root / 2),
        )
    )
    return make("custom", (host(LEGENDRE, nodes, order, root), *nodes), (rule, 0))


def _squared_root(phi: Node, m: Node) -> Node:
    sine = sin(phi)
    return 1 - m * sine * sine


def _root(phi: Node, m: Node) -> Node:
    return elementwise("sqrt", _squared_root(phi, m))


ELLIPTIC: dict[str, tuple[Partial, ...]] = {
    "elliprc": (_degenerate(0), _degenerate(1)),
    "elliprd": _slopes(1.5, (1, 1, 3)),
    "elliprf": tuple([_first_kind(k) for k in range(3)]),
    "elliprg": tuple([_third_kind(k) for k in range(3)]),
    "elliprj": _slopes(1.5, (1, 1, 1, 2)),
    "ellipkinc": (lambda v, phi, m: 1 / _root(phi, m), lambda v, phi, m: _legendre(1, 3, phi, m) * 0.5),
    "ellipeinc": (lambda v, phi, m: _root(phi, m), lambda v, phi, m: _legendre(1, 1, phi, m) * -0.5),
}
"""By the ufunc's name: its partial derivatives, from the value and the operands."""


def _amplitude_by_m(u: Node, m: Node) -> Node:
    """The amplitude solves F(amplitude, m) = u."""
    _, _, dn, amplitude = _jacobi(u, m)
    return -dn * _legendre(1, 3, amplitude, m) * 0.5


def _jacobi(u: Node, m: Node) -> list[Node]:
    return [apply("ellipj", u, m, output=k) for k in range(4)]


def _sn(value: Node, u: Node, m: Node) -> Node:
    _, cn, dn, _ = _jacobi(u, m)
    return cn * dn


def _cn(value: Node, u: Node, m: Node) -> Node:
    sn, _, dn, _ = _jacobi(u, m)
    return -sn * dn


def _dn(value: Node, u: Node, m: Node) -> Node:
    sn, cn, _, _ = _jacobi(u, m)
    return -m * sn * cn


def _dn_by_m(value: Node, u: Node, m: Node) -> Node:
    sn, cn, dn, _ = _jacobi(u, m)
    return -(sn * sn * 0.5 + m * sn * cn * _amplitude_by_m(u, m)) / dn


JACOBI: tuple[tuple[Partial, ...], ...] = (
    (_sn, lambda v, u, m: apply("ellipj", u, m, output=1) * _amplitude_by_m(u, m)),
    (_cn, lambda v, u, m: -apply("ellipj", u, m, output=0) * _amplitude_by_m(u, m)),
    (_dn, _dn_by_m),
    (lambda v, u, m: apply("ellipj", u, m, output=2), lambda v, u, m: _amplitude_by_m(u, m)),
)
"""The partial derivatives of sn, cn, dn and the amplitude [22.13.1]."""
