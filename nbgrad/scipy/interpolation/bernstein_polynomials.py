"""`scipy.interpolate.BPoly` for recorded values: piecewise polynomials in Bernstein's bases.

In: coefficients and breakpoints, or values and derivatives at points. Out: callable objects that give Tensors, with
derivatives by points, coefficients and breakpoints. Called by code that `differentiable_source` runs, by
scipy_table.py.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy

from ... import numpy as np
from ...errors import ArgumentError, DtypeError, ShapeError
from .line_data import between, laid_out, points_in, rising
from .piecewise import Pieces, PPoly


class BPoly(Pieces):
    """Polynomials between breakpoints: c[a, i] belongs to the basis of number a in the interval i."""

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The values, or derivatives, at points, by de Casteljau's mean values."""
        if nu > 0:
            return self.derivative(nu)(x, 0, extrapolate)
        at = np.asarray(x) * 1.0
        knots, c = np.asarray(self.x), np.asarray(self.c)
        inside, outside = points_in(at, knots[0], knots[-1], self.extrapolate if extrapolate is None else extrapolate)
        place = self.interval(inside)
        low = np.take(knots, place)
        shape = (*at.shape, *[1] * (c.ndim - 2))
        share = np.reshape((inside - low) / (np.take(knots, place + 1) - low), shape)
        rows = [np.take(row, place, axis=0) for row in c]
        for _ in range(len(rows) - 1):
            rows = [(1 - share) * one + share * other for one, other in itertools.pairwise(rows)]
        found = rows[0] + 0.0 * share
        if outside is not None:
            found = np.where(np.reshape(outside, shape), math.nan, found)
        return laid_out(found, at.ndim, self.axis)

    def derivative(self, nu: int = 1) -> Any:
        """The polynomials' derivative."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = np.asarray(self.c)
        for _ in range(nu):
            degree = c.shape[0] - 1
            c = np.zeros_like(c) if degree == 0 else degree * np.diff(c, axis=0) / self._widths(c)
        return BPoly.construct_fast(c, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Any:
        """The continuous function whose derivative this is, 0 at the first breakpoint."""
        if nu <= 0:
            return self.derivative(-nu)
        c = np.asarray(self.c)
        for _ in range(nu):
            grown = np.cumsum(c, axis=0) * self._widths(c) / c.shape[0]
            within = np.concatenate([np.zeros_like(c[:1]), grown])
            ends = np.cumsum(within[-1], axis=0)
            c = within + np.concatenate([np.zeros_like(ends[:1]), ends[:-1]])
        return BPoly.construct_fast(
            c, self.x, False if isinstance(self.extrapolate, str) else self.extrapolate, self.axis
        )

    def _widths(self, c: Any) -> Any:
        return np.reshape(np.diff(np.asarray(self.x)), (1, -1, *[1] * (c.ndim - 2)))

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral between two points."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        whole = self.antiderivative()
        whole.axis = 0
        if isinstance(extrapolate, str):
            whole.extrapolate = True
            return between(whole, a, b, np.asarray(self.x)[0], np.asarray(self.x)[-1])
        whole.extrapolate = extrapolate
        return whole(b) - whole(a)

    def in_powers(self, extrapolate: Any = None) -> PPoly:
        """The PPoly of the same polynomials."""
        c = np.asarray(self.c)
        degree, width = c.shape[0] - 1, self._widths(c)[0]
        rows: list[Any] = []
        for s in range(degree, -1, -1):
            # The difference of order s of the coefficients, at the left end.
            total: Any = 0.0
            for a in range(s + 1):
                total = total + c[a] * float((-1) ** (s - a) * math.comb(s, a))
            rows.append(total * math.comb(degree, s) / width**s)
        return PPoly.construct_fast(
            np.stack(rows), self.x, self.extrapolate if extrapolate is None else extrapolate, self.axis
        )

    @classmethod
    def from_power_basis(cls, pp: Any, extrapolate: Any = None) -> BPoly:
        """The polynomials of a PPoly in Bernstein's bases."""
        if not isinstance(pp, PPoly):
            message = f"from_power_basis takes a PPoly, but got a {type(pp).__name__}."
            raise DtypeError(message)
        c = np.asarray(pp.c)
        degree = c.shape[0] - 1
        width = np.reshape(np.diff(np.asarray(pp.x)), (-1, *[1] * (c.ndim - 2)))
        scaled = [c[degree - m] * width**m / math.comb(degree, m) for m in range(degree + 1)]
        rows = [sum(scaled[m] * float(math.comb(j, m)) for m in range(j + 1)) for j in range(degree + 1)]
        return BPoly.construct_fast(
            np.stack(rows), pp.x, pp.extrapolate if extrapolate is None else extrapolate, pp.axis
        )

    @classmethod
    def from_derivatives(cls, xi: Any, yi: Any, orders: Any = None, extrapolate: Any = None) -> BPoly:
        """The polynomials with given values and derivatives at points.

        Raises
        ------
        ShapeError
            If there are not as many rows of derivatives as points.
        ArgumentError
            If an order asks for more derivatives than are there.
        RangeError
            If points do not rise.
        """
        xi = np.asarray(xi) * 1.0
        if len(yi) != xi.shape[0] or any(np.ndim(row) == 0 for row in yi):
            message = (
                f"from_derivatives needs a row of derivatives for each of {xi.shape[0]} points; reshape y to (-1, 1)."
            )
            raise ShapeError(message)
        rising("BPoly.from_derivatives", xi)
        pieces = xi.shape[0] - 1
        given = [orders] * pieces if orders is None or isinstance(orders, int | numpy.integer) else [*orders]
        found: list[list[Any]] = []
        for i, order in enumerate(given):
            first, last = (np.asarray(yi[i]) * 1.0, np.asarray(yi[i + 1]) * 1.0)
            left, right = _taken(first.shape[0], last.shape[0], order)
            found.append(_hermite(first[:left], last[:right], xi[i + 1] - xi[i]))
        count = max([len(yi[i]) + len(yi[i + 1]) for i in range(pieces)] + [int(order) for order in given if order])
        rows = [np.stack(_raised(row, max(count - len(row), 0))) for row in found]
        return cls(np.stack(rows, axis=1), xi, extrapolate)


def _taken(left: int, right: int, order: Any) -> tuple[int, int]:
    """How many derivatives at the ends of an interval determine a polynomial of an order."""
    if order is None:
        return left, right
    count = int(order) + 1
    first = min(count // 2, left)
    last = min(count - first, right)
    first = min(count - last, left)
    if order <= 0 or first + last != count:
        message = (
            f"An order of {order} needs {count} derivatives at the ends of an interval, but got {left} and {right}."
        )
        raise ArgumentError(message)
    return first, last


def _hermite(first: Any, last: Any, width: Any) -> list[Any]:
    """The coefficients in Bernstein's basis of the polynomial with given derivatives at the ends of an interval."""
    count = first.shape[0] + last.shape[0]
    ends: list[list[Any]] = []
    for given, sign in ((first, 1.0), (last, -1.0)):
        row: list[Any] = []
        for q in range(given.shape[0]):
            value = given[q] / math.perm(count - 1, q) * (sign * width) ** q
            for j in range(q):
                value = value - row[j] * float((-1) ** (q - j) * math.comb(q, j))
            row.append(value)
        ends.append(row)
    return ends[0] + ends[1][::-1]


def _raised(c: list[Any], more: int) -> list[Any]:
    """The coefficients of the same polynomial in a basis of a degree that is higher."""
    degree = len(c) - 1
    found: list[Any] = [0.0 * c[0] for _ in range(len(c) + more)]
    for a, value in enumerate(c):
        for j in range(more + 1):
            share = math.comb(degree, a) * math.comb(more, j) / math.comb(degree + more, a + j)
            found[a + j] = found[a + j] + value * share
    return found
