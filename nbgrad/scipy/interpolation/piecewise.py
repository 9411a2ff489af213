"""Piecewise polynomials of `scipy.interpolate`: PPoly, cubic splines, PCHIP and Akima interpolation.

In: abscissae, values, slopes, conditions at the ends. Out: callable objects that give Tensors, with derivatives by
points, values and abscissae. Called by code that `differentiable_source` runs, by scipy_table.py. An object that SciPy
has made is one of ours by `of`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ... import numpy as np
from ...errors import ArgumentError, DtypeError, ShapeError
from ...functions.linalg.banded import solve_banded
from ...record.as_node import as_node
from ...record.axes_and_dtypes import only
from ...runtime.evaluate import concrete, require
from ..scipy_objects import ScipyObject
from .line_data import between, column, data, finite, laid_out, points_in, rising
from .spline_bases import BSpline

linalg: Any = np.linalg


class Pieces(ScipyObject):
    """Polynomials between breakpoints, by coefficients in some basis: the first axis; intervals are the second."""

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        self.axis = axis
        self.c = np.asarray(c) if axis == 0 else np.moveaxis(np.moveaxis(np.asarray(c), axis + 1, 0), axis + 1, 0)
        self.x = np.asarray(x) * 1.0
        self.extrapolate = True if extrapolate is None else extrapolate
        name, pieces = type(self).__name__, self.c.shape[1] if self.c.ndim > 1 and self.c.shape[0] else 0
        if self.x.ndim != 1 or pieces == 0 or self.x.shape[0] != pieces + 1:
            message = (
                f"{name} needs coefficients of one or more pieces and one breakpoint more, but the shapes are "
                f"{np.shape(c)} and {self.x.shape}."
            )
            raise ShapeError(message)
        require(as_node(np.all(np.diff(self.x) >= 0)), f"{name} of recorded values needs breakpoints that do not fall.")

    @classmethod
    def of(cls, original: Any) -> Any:
        """SciPy's object as one of ours."""
        made = object.__new__(cls)
        made.c, made.x, made.extrapolate, made.axis = original.c, original.x, original.extrapolate, original.axis
        return made

    @classmethod
    def construct_fast(cls, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> Any:
        """The object of coefficients and breakpoints, without checks."""
        made = object.__new__(cls)
        made.c, made.x, made.axis = c, x, axis
        made.extrapolate = True if extrapolate is None else extrapolate
        return made

    def interval(self, x: Any) -> Any:
        """The numbers of the polynomials that belong to points."""
        knots = np.asarray(self.x)
        return np.clip(np.searchsorted(knots, x, side="right") - 1, 0, knots.shape[0] - 2)


class PPoly(Pieces):
    """Polynomials between breakpoints, as `scipy.interpolate.PPoly`: c[k, i] belongs to (x - x[i])**(degree - k)."""

    @classmethod
    def from_spline(cls, tck: Any, extrapolate: Any = None) -> PPoly:
        """The polynomials of a spline of knots, coefficients and degree, or of a BSpline."""
        made = BSpline(*tck) if isinstance(tck, tuple | list) else tck
        t = np.asarray(made.t)
        rows = [made(t[:-1], m, True) / math.factorial(m) for m in range(made.k, -1, -1)]
        return PPoly.construct_fast(np.stack(rows), t, made.extrapolate if extrapolate is None else extrapolate)

    @classmethod
    def from_bernstein_basis(cls, bp: Any, extrapolate: Any = None) -> PPoly:
        """A BPoly's polynomials in powers of the distance from the breakpoints."""
        if not hasattr(bp, "in_powers"):
            message = f"from_bernstein_basis takes a BPoly, but got a {type(bp).__name__}."
            raise DtypeError(message)
        return bp.in_powers(extrapolate)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The values, or derivatives, at points."""
        at = np.asarray(x) * 1.0
        knots, c = np.asarray(self.x), np.asarray(self.c)
        inside, outside = points_in(at, knots[0], knots[-1], self.extrapolate if extrapolate is None else extrapolate)
        place = self.interval(inside)
        step = inside - np.take(knots, place)
        step = np.reshape(step, (*step.shape, *[1] * (c.ndim - 2)))
        total: Any = 0.0
        degree = c.shape[0] - 1
        for k in range(degree + 1 - nu):
            total = total * step + np.take(c[k], place, axis=0) * (math.perm(degree - k, nu) * 1.0)
        total = total + np.zeros((*at.shape, *c.shape[2:]))
        if outside is not None:
            total = np.where(np.reshape(outside, (*at.shape, *[1] * (c.ndim - 2))), math.nan, total)
        return laid_out(total, at.ndim, self.axis)

    def derivative(self, nu: int = 1) -> PPoly:
        """The polynomials' derivative."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = np.asarray(self.c)
        degree = c.shape[0] - 1
        rows = [c[k] * (math.perm(degree - k, nu) * 1.0) for k in range(degree + 1 - nu)]
        found = np.stack(rows) if rows else np.zeros((1, *c.shape[1:]))
        return PPoly.construct_fast(found, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The continuous function whose derivative this is, 0 at the first breakpoint."""
        if nu <= 0:
            return self.derivative(-nu)
        found = self
        for _ in range(nu):
            c, steps = np.asarray(found.c), np.diff(np.asarray(found.x))
            degree = c.shape[0]
            rows = [c[k] / (degree - k) for k in range(degree)]
            width = column(steps, c[0])
            growth: Any = sum(row * width ** (degree - k) for k, row in enumerate(rows))
            start = np.concatenate([growth[:1] * 0.0, np.cumsum(growth[:-1], axis=0)])
            known = False if isinstance(found.extrapolate, str) else found.extrapolate
            found = PPoly.construct_fast(np.stack([*rows, start]), found.x, known, self.axis)
        return found

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral between two points."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if isinstance(extrapolate, str):
            only("extrapolate", extrapolate, "periodic")
            whole = self.antiderivative()
            whole.extrapolate = True
            return between(whole, a, b, np.asarray(self.x)[0], np.asarray(self.x)[-1])
        whole = self.antiderivative()
        whole.extrapolate = extrapolate
        return whole(b) - whole(a)

    def roots(self, discontinuity: bool = True, extrapolate: Any = None) -> Any:
        """Where the polynomials are 0."""
        return self.solve(0.0, discontinuity, extrapolate)

    def solve(self, y: Any = 0.0, discontinuity: bool = True, extrapolate: Any = None) -> Any:
        """Where the polynomials have a value: SciPy's places, as functions of coefficients, breakpoints and value.

        Raises
        ------
        TracedValueError
            While `jit` records, because the number of places depends on values.
        ArgumentError
            For several columns, whose places SciPy gives as objects.
        RangeError
            If the polynomial only touches the value: the place has no derivative.
        """
        from scipy.interpolate import PPoly as Plain

        nodes = [as_node(np.asarray(one) * 1.0) for one in (self.c, self.x, y)]
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        c, x, value = [concrete(node, "array") for node in nodes]
        found = Plain.construct_fast(numpy.array(c), numpy.array(x)).solve(float(value), discontinuity, extrapolate)
        if not any(node.traced for node in nodes):
            return found
        if c.ndim > 2:
            message = f"Roots of recorded values are those of one polynomial a piece, but c has shape {c.shape}."
            raise ArgumentError(message)
        # Three steps of Newton's method from the places make derivatives right up to the seventh; where the polynomials
        # jump over the value, the place is the breakpoint.
        place: Any = found
        rest = concrete(as_node(self(found, extrapolate=True) - y), "array")
        jump = numpy.isin(found, x) & (numpy.abs(rest) > 1e-8 * numpy.max(numpy.abs(c[-1])))
        for _ in range(3):
            slope = np.where(jump, 1.0, self(place, 1, True))
            require(as_node(np.all(slope != 0)), "A root where the slope is 0 has no derivative.")
            place = place - np.where(jump, 0.0, self(place, extrapolate=True) - y) / slope
        breakpoint = np.asarray(self.x)[numpy.clip(numpy.searchsorted(x, found), 0, x.size - 1)]
        return np.where(jump, breakpoint, place)


class CubicHermiteSpline(PPoly):
    """Cubic polynomials with given values and slopes."""

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        x, y, axis = data("CubicHermiteSpline", x, y, axis, 2)
        self._from_slopes(x, y, np.moveaxis(np.asarray(dydx) * 1.0, axis, 0), axis, extrapolate)

    def _from_slopes(self, x: Any, y: Any, slopes: Any, axis: int, extrapolate: Any) -> None:
        rising(type(self).__name__, x)
        finite(type(self).__name__, y)
        dx = column(np.diff(x), y)
        slope = np.diff(y, axis=0) / dx
        bend = (slopes[:-1] + slopes[1:] - 2 * slope) / dx
        self.c = np.stack([bend / dx, (slope - slopes[:-1]) / dx - bend, slopes[:-1], y[:-1]])
        self.x, self.axis, self.extrapolate = x, axis, True if extrapolate is None else extrapolate


class PchipInterpolator(CubicHermiteSpline):
    """Cubic interpolation that keeps the order of the values (Fritsch and Butland 1984)."""

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        x, y, axis = data("PchipInterpolator", x, y, axis, 2)
        h = column(np.diff(x), y)
        m = np.diff(y, axis=0) / h
        if x.shape[0] == 2:
            slopes = np.concatenate([m, m])
        else:
            turn = (np.sign(m[1:]) != np.sign(m[:-1])) | (m[1:] == 0) | (m[:-1] == 0)
            first, second = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
            mean = first / np.where(turn, 1.0, m[:-1]) + second / np.where(turn, 1.0, m[1:])
            inner = np.where(turn, 0.0, (first + second) / np.where(turn, 1.0, mean))
            slopes = np.concatenate([_end(h[0], h[1], m[0], m[1])[None], inner, _end(h[-1], h[-2], m[-1], m[-2])[None]])
        self._from_slopes(x, y, slopes, axis, extrapolate)


def _end(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """The slope at an end, of three points, kept in order."""
    d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    against = np.sign(d) != np.sign(m0)
    steep = (np.sign(m0) != np.sign(m1)) & (np.abs(d) > 3 * np.abs(m0)) & ~against
    return np.where(against, 0.0, np.where(steep, 3 * m0, d))


class Akima1DInterpolator(CubicHermiteSpline):
    """Cubic interpolation of slopes from four neighbours (Akima 1970)."""

    def __init__(self, x: Any, y: Any, axis: int = 0, method: str = "akima", extrapolate: Any = None) -> None:
        only("method", method, "akima", "makima")
        x, y, axis = data("Akima1DInterpolator", x, y, axis, 2)
        inner = np.diff(y, axis=0) / column(np.diff(x), y)
        if x.shape[0] == 2:
            slopes = np.concatenate([inner, inner])
        else:
            before, after = 2 * inner[0] - inner[1], 2 * inner[-1] - inner[-2]
            m = np.concatenate([(2 * before - inner[0])[None], before[None], inner, after[None],
                                (2 * after - inner[-1])[None]])  # fmt: skip
            apart = np.abs(np.diff(m, axis=0))
            if method == "makima":
                apart = apart + np.abs(m[1:] + m[:-1]) / 2
            right, left = apart[2:], apart[:-2]
            total = right + left
            known = total > 1e-9 * np.max(total, initial=-math.inf)
            share = left / np.where(known, total, 1.0)
            slopes = np.where(known, m[1:-2] + share * (m[2:-1] - m[1:-2]), (m[3:] + m[:-3]) / 2)
        self._from_slopes(x, y, slopes, axis, False if extrapolate is None else extrapolate)


class CubicSpline(CubicHermiteSpline):
    """Cubic interpolation with two continuous derivatives."""

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
        x, y, axis = data("CubicSpline", x, y, axis, 2)
        periodic = isinstance(bc_type, str) and bc_type == "periodic"
        if extrapolate is None:
            extrapolate = "periodic" if periodic else True
        self._from_slopes(
            x, y, _periodic(x, y) if periodic else _natural(x, y, _conditions(bc_type)), axis, extrapolate
        )


def _conditions(bc_type: Any) -> list[tuple[int, Any]]:
    """The order and the value of the derivative at both ends; order 0 for not-a-knot."""
    names = {"not-a-knot": (0, 0.0), "clamped": (1, 0.0), "natural": (2, 0.0)}
    pair = [bc_type, bc_type] if isinstance(bc_type, str) else [*bc_type]
    found: list[tuple[int, Any]] = []
    for one in pair:
        if isinstance(one, str):
            only("bc_type", one, *names)
        order, value = names[one] if isinstance(one, str) else one
        only("the order in bc_type", order, 0, 1, 2)
        found.append((order, value))
    if len(found) != 2:
        message = f"bc_type must have two conditions, but got {bc_type!r}."
        raise ArgumentError(message)
    return found


def _natural(x: Any, y: Any, conditions: list[tuple[int, Any]]) -> Any:
    """The slopes of a spline with conditions at its ends: a tridiagonal system."""
    n, dx = x.shape[0], np.diff(x)
    h = column(dx, y)
    slope = np.diff(y, axis=0) / h
    if n == 2:
        conditions = [(1, slope[0]) if order == 0 else (order, value) for order, value in conditions]
    if n == 3 and all(order == 0 for order, _ in conditions):
        # One parabola: the two conditions are the same.
        bend = (slope[1] - slope[0]) / (h[0] + h[1])
        return np.stack([slope[0] - bend * h[0], slope[0] + bend * h[0], slope[1] + bend * h[1]])
    sides = [_side(*conditions[0], dx, h, slope, 1), _side(*conditions[1], dx[::-1], h[::-1], slope[::-1], -1)]
    (first, above, start), (last, below, end) = sides
    one = dx[:1]
    main = np.concatenate([first * one / one, 2 * (dx[:-1] + dx[1:]), last * one / one])
    upper = np.concatenate([one * 0, above * one / one, dx[:-1]])
    lower = np.concatenate([dx[1:], below * one / one, one * 0])
    inner = 3 * (h[1:] * slope[:-1] + h[:-1] * slope[1:])
    right = np.concatenate([np.broadcast_to(start, y[:1].shape), inner, np.broadcast_to(end, y[:1].shape)])
    found = solve_banded((1, 1), np.stack([upper, main, lower]), np.reshape(right, (n, -1)))
    return np.reshape(found, y.shape)


def _side(order: int, value: Any, dx: Any, h: Any, slope: Any, sign: int) -> tuple[Any, Any, Any]:
    """The row of the system at an end, read towards the middle: on the diagonal, beside it, on the right."""
    if order == 1:
        return 1.0, 0.0, (np.asarray(value) * 1.0)[None]
    if order == 2:
        bend = -sign * np.asarray(value) * h[0] / 2
        return 2.0, 1.0, (bend + 3 * slope[0])[None]
    both = dx[0] + dx[1]
    wide = h[0] + h[1]
    right = ((h[0] + 2 * wide) * h[1] * slope[0] + h[0] ** 2 * slope[1]) / wide
    return dx[1], both, right[None]


def _periodic(x: Any, y: Any) -> Any:
    """The slopes of a periodic spline."""
    require(as_node(np.all(np.abs(y[0] - y[-1]) <= 1e-15 + 1e-15 * np.abs(y[0]))), "The first and last values differ.")
    n, dx = x.shape[0] - 1, np.diff(x)
    h = column(dx, y)
    slope = np.diff(y, axis=0) / h
    if n == 1:
        return np.concatenate([slope * 0, slope * 0])
    before = np.roll(dx, 1)
    eye = numpy.eye(n)
    matrix = eye * (2 * (dx + before))[:, None] + numpy.roll(eye, 1, axis=1) * before[:, None]
    matrix = matrix + numpy.roll(eye, -1, axis=1) * dx[:, None]
    right = 3 * (np.roll(h, 1, axis=0) * slope + h * np.roll(slope, 1, axis=0))
    found = np.reshape(linalg.solve(matrix, np.reshape(right, (n, -1))), slope.shape)
    return np.concatenate([found, found[:1]])
