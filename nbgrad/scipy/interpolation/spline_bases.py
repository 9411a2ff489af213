"""B-splines of `scipy.interpolate`: BSpline, make_interp_spline, make_lsq_spline, splev, splint, splrep unsmoothed.

In: knots, coefficients, degrees, points; abscissae and values. Out: callable objects and Tensors, with derivatives by
all of them. Called by code that `differentiable_source` runs, by scipy_table.py. The bases follow from the
recursion of de Boor and Cox (de Boor, A Practical Guide to Splines, X).
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy

from ... import numpy as np
from ...errors import ArgumentError, ShapeError
from ...record.as_node import as_node
from ...record.axes_and_dtypes import only
from ...runtime.evaluate import require
from ..scipy_objects import ScipyObject
from .line_data import between, column, data, finite, laid_out, points_in, rising

linalg: Any = np.linalg


def bases_at(t: Any, k: int, x: Any, n: int) -> tuple[Any, list[Any]]:
    """The first basis that is not zero at each point, and the values of the k + 1 from there on."""
    place = np.clip(np.searchsorted(t, x, side="right") - 1, k, n - 1)
    found: list[Any] = [x * 0 + 1.0]
    for d in range(1, k + 1):
        parts = [0.0 * x] * (d + 1)
        for j in range(d):
            low, high = np.take(t, place + 1 + j - d), np.take(t, place + 1 + j)
            width = np.where(high == low, 1.0, high - low)
            share = np.where(high == low, 0.0, found[j] / width)
            parts[j] = parts[j] + share * (high - x)
            parts[j + 1] = parts[j + 1] + share * (x - low)
        found = parts
    return place - k, found


class BSpline(ScipyObject):
    """A spline as a sum of B-splines, as `scipy.interpolate.BSpline`."""

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        self.t, self.k, self.extrapolate = np.asarray(t) * 1.0, operator.index(k), extrapolate
        c = np.asarray(c)
        self.axis = axis % max(c.ndim, 1)
        self.c = np.moveaxis(c, self.axis, 0)
        if self.t.ndim != 1 or self.t.shape[0] < 2 * self.k + 2 or self.c.shape[0] < self.t.shape[0] - self.k - 1:
            message = (
                f"A spline of degree {k} needs 2 k + 2 knots or more and coefficients for them, but the shapes are "
                f"{self.t.shape} and {c.shape}."
            )
            raise ArgumentError(message)
        require(as_node(np.all(np.diff(self.t) >= 0)), "BSpline needs knots that do not fall.")

    @classmethod
    def of(cls, original: Any) -> BSpline:
        """SciPy's object as one of ours."""
        made = object.__new__(cls)
        made.t, made.c, made.k = original.t, original.c, original.k
        made.extrapolate, made.axis = original.extrapolate, original.axis
        return made

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """Knots, coefficients and degree."""
        return self.t, self.c, self.k

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The values, or derivatives, at points."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        at = np.asarray(x) * 1.0
        t, c, k = np.asarray(self.t), np.asarray(self.c), self.k
        n = t.shape[0] - k - 1
        inside, outside = points_in(at, t[k], t[n], extrapolate)
        shape = (*at.shape, *[1] * (c.ndim - 1))
        if nu > k:
            found = np.zeros((*at.shape, *c.shape[1:])) + 0.0 * np.reshape(at, shape)
        else:
            for _ in range(nu):
                t, c, k = derived(t, c, k)
            first, bases = bases_at(t, k, inside, t.shape[0] - k - 1)
            found = sum(np.take(c, first + j, axis=0) * np.reshape(basis, shape) for j, basis in enumerate(bases))
        if outside is not None:
            found = np.where(np.reshape(outside, shape), math.nan, found)
        return laid_out(found, at.ndim, self.axis)

    @classmethod
    def construct_fast(cls, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> BSpline:
        """The spline of knots and coefficients, without checks."""
        return spline_of(t, c, k, axis, extrapolate)

    def derivative(self, nu: int = 1) -> BSpline:
        """The spline's derivative; its coefficients are as many as its knots, as SciPy's are."""
        if nu < 0:
            return self.antiderivative(-nu)
        if nu > self.k:
            message = f"A spline of degree {self.k} has {self.k} derivatives that are splines, but nu={nu}."
            raise ArgumentError(message)
        t, c, k = np.asarray(self.t), np.asarray(self.c), self.k
        for _ in range(nu):
            t, c, k = derived(t, c, k)
        if nu:
            c = np.concatenate([c, np.zeros((k + 1, *c.shape[1:]))])
        return spline_of(t, c, k, self.axis, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> BSpline:
        """The spline whose derivative this is, 0 at the first knot."""
        if nu < 0:
            return self.derivative(-nu)
        t, c, k = np.asarray(self.t), np.asarray(self.c), self.k
        for _ in range(nu):
            widths = column(t[k + 1 :] - t[: -k - 1], c)
            grown = np.cumsum(c[: t.shape[0] - k - 1] * widths, axis=0) / (k + 1)
            c = np.concatenate([np.zeros((1, *c.shape[1:])), grown, np.repeat(grown[-1:], k + 2, axis=0)])
            t, k = np.concatenate([t[:1], t, t[-1:]]), k + 1
        return spline_of(t, c, k, self.axis, False if isinstance(self.extrapolate, str) else self.extrapolate)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral between two points; without extrapolation, over the part of it that has knots."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        t, whole = np.asarray(self.t), self.antiderivative()
        low, high = t[self.k], t[t.shape[0] - self.k - 1]
        whole.extrapolate, whole.axis = True, 0
        if isinstance(extrapolate, str):
            only("extrapolate", extrapolate, "periodic")
            return between(whole, a, b, low, high)
        if not extrapolate:
            a, b = np.clip(a, low, high), np.clip(b, low, high)
        return whole(b) - whole(a)


def derived(t: Any, c: Any, k: int) -> tuple[Any, Any, int]:
    """Knots, coefficients and degree of a derivative."""
    n = t.shape[0] - k - 1
    width = t[k + 1 : n + k] - t[1:n]
    width = np.reshape(np.where(width == 0, 1.0, width), (-1, *[1] * (c.ndim - 1)))
    return t[1:-1], np.diff(c[:n], axis=0) * k / width, k - 1


def knots_of(x: Any, k: int) -> Any:
    """The knots of interpolation without further conditions: not-a-knot."""
    inner = x if k % 2 else (x[1:] + x[:-1]) / 2
    half = (k + 1) // 2 if k % 2 else k // 2
    inner = inner[half : inner.shape[0] - half]
    return np.concatenate([np.repeat(x[:1], k + 1), inner, np.repeat(x[-1:], k + 1)])


def make_interp_spline(x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0) -> BSpline:
    """The spline of a degree through points, with conditions on derivatives at the ends.

    Raises
    ------
    ArgumentError
        If conditions and knots do not determine the spline.
    """
    k = operator.index(k)
    x, y, axis = data("make_interp_spline", x, y, axis, 1 if k == 0 else 2)
    finite("make_interp_spline", y)
    rising("make_interp_spline", x)
    periodic = isinstance(bc_type, str) and bc_type == "periodic"
    if periodic:
        close = np.abs(y[0] - y[-1]) <= 1e-15 + 1e-5 * np.abs(y[-1])
        require(as_node(np.all(close)), "A periodic spline needs a last value that is the first one.")
    sides = _sides(None if periodic else bc_type)
    if k == 0:
        return spline_of(np.concatenate([x, x[-1:]]), y, 0, axis)
    if k == 1 and t is None and not any(sides):
        return spline_of(np.concatenate([x[:1], x, x[-1:]]), y, 1, axis)
    if periodic:
        if t is not None:
            message = "The knots of a periodic spline follow from the abscissae: leave t away."
            raise ArgumentError(message)
        return _periodic(x, y, k, axis)
    extra = [len(side) for side in sides]
    if t is None:
        if any(sides):
            t = np.concatenate([np.repeat(x[:1], k), x, np.repeat(x[-1:], k)])
        else:
            t = knots_of(x, k)
    t = np.asarray(t) * 1.0
    n = t.shape[0] - k - 1
    if n != x.shape[0] + sum(extra):
        message = f"make_interp_spline needs {n - x.shape[0]} conditions at the ends, but got {sum(extra)}."
        raise ArgumentError(message)
    rows = _collocation(t, k, x, n)
    ends = [x[:1], x[-1:]]
    unit = spline_of(t, np.eye(n), k, 0)
    parts, right = [[], []], [[], []]
    for which, side in enumerate(sides):
        for order, value in side:
            parts[which].append(unit(ends[which], order))
            right[which].append(np.broadcast_to(np.asarray(value) * 1.0, y.shape[1:])[None])
    matrix = np.concatenate([*parts[0], rows, *parts[1]])
    given = np.concatenate([*right[0], y, *right[1]])
    found = linalg.solve(matrix, np.reshape(given, (n, -1)))
    return spline_of(t, np.reshape(found, (n, *y.shape[1:])), k, axis)


def _collocation(t: Any, k: int, x: Any, n: int) -> Any:
    """The values of all n bases at points, a row for each point."""
    first, bases = bases_at(t, k, x, n)
    columns = numpy.arange(n)
    return sum(basis[:, None] * (np.reshape(first + j, (-1, 1)) == columns) for j, basis in enumerate(bases))


def _periodic(x: Any, y: Any, k: int, axis: int) -> BSpline:
    """The periodic spline: knots go around the circle, and so do coefficients, which are one less than the points."""
    around = x.shape[0] - 1
    if k % 2 == 0:
        x_knots = np.concatenate([x[:1], (x[1:-1] + x[:-2]) / 2, x[-1:]])
    else:
        x_knots = x
    period, turns = x_knots[-1:] - x_knots[:1], numpy.arange(-k, around + k + 1)
    t = np.take(x_knots, turns % around) + (turns // around) * period
    count = around + k
    fold = numpy.zeros((count, around))
    fold[numpy.arange(count), (numpy.arange(count) - k // 2) % around] = 1.0
    matrix = _collocation(t, k, x[:-1], count) @ fold
    found = linalg.solve(matrix, np.reshape(y[:-1], (around, -1)))
    return spline_of(t, np.reshape(fold @ found, (count, *y.shape[1:])), k, axis, "periodic")


def make_lsq_spline(
    x: Any, y: Any, t: Any, k: int = 3, w: Any = None, axis: int = 0, check_finite: bool = True, *, method: str = "qr"
) -> BSpline:
    """The spline of given knots that is nearest to points, each distance times its weight.

    Raises
    ------
    ShapeError
        If there are fewer points than the degree needs, or weights and values do not belong to them.
    RangeError
        If abscissae or knots fall, or points are outside of the knots.
    """
    only("method", method, "qr", "norm-eq")
    k = operator.index(k)
    x, y, axis = data("make_lsq_spline", x, y, axis, k + 1)
    t, weights = np.asarray(t) * 1.0, np.ones_like(x) if w is None else np.asarray(w) * 1.0
    if check_finite:
        finite("make_lsq_spline", y)
    if weights.shape != x.shape or t.ndim != 1 or t.shape[0] < 2 * k + 2:
        message = (
            f"make_lsq_spline needs {2 * k + 2} knots or more and a weight for each point, but the shapes are "
            f"{t.shape} and {weights.shape} for {x.shape[0]} points."
        )
        raise ShapeError(message)
    require(as_node(np.all(np.diff(t) >= 0)), "make_lsq_spline needs knots that do not fall.")
    require(as_node(np.all(np.diff(x) >= 0)), "make_lsq_spline needs abscissae that do not fall.")
    n = t.shape[0] - k - 1
    require(as_node(np.all((x >= t[k]) & (x <= t[n]))), "make_lsq_spline needs points between the inner knots.")
    rows = _collocation(t, k, x, n) * weights[:, None]
    found = linalg.lstsq(rows, np.reshape(y * column(weights, y), (x.shape[0], -1)))[0]
    return spline_of(t, np.reshape(found, (n, *y.shape[1:])), k, axis)


def spline_of(t: Any, c: Any, k: int, axis: int = 0, extrapolate: Any = True) -> BSpline:
    """The spline of knots and coefficients that are known to fit."""
    made = object.__new__(BSpline)
    made.t, made.c, made.k, made.extrapolate, made.axis = t, c, k, extrapolate, axis
    return made


def _sides(bc_type: Any) -> list[list[tuple[int, Any]]]:
    """The derivatives that are given at both ends, by order."""
    names: dict[str, list[tuple[int, Any]]] = {"not-a-knot": [], "natural": [(2, 0.0)], "clamped": [(1, 0.0)]}
    pair = [bc_type, bc_type] if bc_type is None or isinstance(bc_type, str) else [*bc_type]
    found: list[list[tuple[int, Any]]] = []
    for one in pair:
        if isinstance(one, str):
            only("bc_type", one, *names)
        found.append([] if one is None else names[one] if isinstance(one, str) else [*one])
    return found


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """The values of a spline of knots, coefficients and degree; `ext` says what is outside.

    Raises
    ------
    ArgumentError
        For a list of splines, and ext=2, which raises where a point is outside.
    """
    if isinstance(tck, BSpline):
        tck = tck.tck
    t, c, k = tck
    if ext not in (0, 1, 3) or isinstance(c, list | tuple):
        message = f"splev of Tensors takes one spline and ext=0, 1 or 3, but got ext={ext!r}."
        raise ArgumentError(message)
    t = np.asarray(t)
    low, high = t[k], t[t.shape[0] - k - 1]
    at = np.asarray(x) * 1.0
    found = BSpline(t, np.asarray(c)[: t.shape[0] - k - 1], k)(np.clip(at, low, high) if ext == 3 else at, der)
    return np.where((at < low) | (at > high), 0.0, found) if ext == 1 else found


def splint(a: Any, b: Any, tck: Any) -> Any:
    """The integral of a spline of knots, coefficients and degree, as far as it has knots."""
    t, c, k = tck.tck if isinstance(tck, BSpline) else tck
    if isinstance(c, list | tuple):
        message = "splint of Tensors takes one spline: call it for each one."
        raise ArgumentError(message)
    return BSpline(t, c, k).integrate(a, b, False)


def splrep(x: Any, y: Any, k: int = 3, s: Any = None) -> tuple[Any, Any, int]:
    """Knots, coefficients and degree of the spline through points.

    Raises
    ------
    ArgumentError
        For smoothing: its knots follow from the values.
    """
    if s not in (None, 0):
        message = (
            "splrep of Tensors interpolates: s=0. For smoothing, choose the knots: make_interp_spline(x, y, t=...)."
        )
        raise ArgumentError(message)
    found = make_interp_spline(x, y, k)
    return found.t, np.concatenate([found.c, np.zeros(k + 1)]), found.k
