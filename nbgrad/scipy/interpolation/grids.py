"""`scipy.interpolate.RegularGridInterpolator` and `interpn` for recorded values.

In: the points of a grid along each axis, values on it. Out: a callable object that gives Tensors, with derivatives by
points, values and the grid. Called by code that `differentiable_source` runs, by scipy_table.py. Splines of several
variables are products of splines of one; PCHIP goes axis after axis, the last one first, as SciPy does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy

from ... import numpy as np
from ...errors import ArgumentError, ShapeError
from ...record.as_node import as_node
from ...record.axes_and_dtypes import only
from ...runtime.evaluate import require
from ..scipy_objects import ScipyObject
from .line_data import rising
from .piecewise import PchipInterpolator
from .spline_bases import bases_at, derived, knots_of, make_interp_spline

DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5}
DEGREES |= {f"{name}_legacy": degree for name, degree in DEGREES.items()}
METHODS = ("linear", "nearest", *DEGREES, "pchip")


class RegularGridInterpolator(ScipyObject):
    """Interpolation on a rectangular grid, with SciPy's methods; splines are solved for to the last digits."""

    def __init__(
        self, points: Any, values: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = math.nan,
        *, solver: Any = None, solver_args: Any = None,
    ) -> None:  # fmt: skip
        only("method", method, *METHODS)
        if (solver is not None or solver_args) and method not in ("slinear", "cubic", "quintic"):
            message = f"method={method!r} solves no system: leave solver and solver_args away."
            raise ArgumentError(message)
        self.grid = tuple([np.asarray(p) * 1.0 for p in points])
        self.values, self.method, self.bounds_error, self.fill_value = (
            _inexact(np.asarray(values)),
            method,
            bounds_error,
            fill_value,
        )
        extents = tuple([p.shape[0] for p in self.grid])
        if self.values.shape[: len(extents)] != extents:
            message = f"The grid has {extents} points along its axes, but the values have shape {self.values.shape}."
            raise ShapeError(message)
        if fill_value is not None and self.values.dtype.kind == "f" and np.asarray(fill_value).dtype.kind == "c":
            message = "fill_value must be None or a real number where values are real, but it is complex."
            raise ArgumentError(message)
        for axis, along in enumerate(self.grid):
            if not along._node.traced and np.all(np.diff(along) < 0):
                self.grid = (*self.grid[:axis], along[::-1], *self.grid[axis + 1 :])
                self.values = np.flip(self.values, axis)
            rising("RegularGridInterpolator", self.grid[axis])
        self._kept: dict[int, Any] = {}
        self._check(method)

    @classmethod
    def of(cls, original: Any) -> RegularGridInterpolator:
        """SciPy's object as one of ours."""
        made = object.__new__(cls)
        made.grid, made.values, made.method = original.grid, original.values, original.method
        made.bounds_error, made.fill_value = original.bounds_error, original.fill_value
        spline = getattr(original, "_spline", None)
        made._kept = {} if spline is None else {DEGREES[original.method]: spline.c}
        return made

    def __call__(self, xi: Any, method: Any = None, *, nu: Any = None) -> Any:
        """The values, or derivatives of splines, at points, whose coordinates are the last axis or a tuple."""
        method = self.method if method is None else method
        only("method", method, *METHODS)
        if method != self.method:
            self._check(method)
        at = self._points(xi)
        count, values = len(self.grid), np.asarray(self.values)
        trailing = values.shape[count:]
        flat = np.reshape(at, (-1, count))
        inside, outside = True, False
        for k, points in enumerate(self.grid):
            inside = inside & (flat[:, k] >= points[0]) & (flat[:, k] <= points[-1])
            outside = outside | (flat[:, k] < points[0]) | (flat[:, k] > points[-1])
        if self.bounds_error:
            require(
                as_node(np.all(inside)), "A point is outside of the grid: give bounds_error=False, fill_value=None."
            )
        if method in DEGREES:
            found = self._splined(flat, DEGREES[method], self._orders(nu, method))
        else:
            self._orders(nu, method)
            found = self._pchip(flat, values) if method == "pchip" else self._cornered(flat, values, method)
        if method in ("pchip", "nearest"):
            found = found.astype(values.dtype)
        if not self.bounds_error and self.fill_value is not None:
            found = np.where(np.reshape(outside, (-1, *[1] * len(trailing))), self.fill_value, found)
        return np.reshape(found, (*at.shape[:-1], *trailing))

    def _points(self, xi: Any) -> Any:
        """Points as an array, their coordinates last."""
        count = len(self.grid)
        if isinstance(xi, tuple):
            at = np.stack(np.broadcast_arrays(*[np.asarray(x) * 1.0 for x in xi]), axis=-1)
        else:
            at = np.asarray(xi) * 1.0
            if at.ndim == 1 and at.shape[0] % count == 0:
                at = np.reshape(at, (-1, count))
        if at.ndim == 0 or at.shape[-1] != count:
            message = f"Points on this grid have {count} coordinates, but their shape is {at.shape}."
            raise ShapeError(message)
        return at

    def _check(self, method: str) -> None:
        """Raise an error where the grid has too few points for a method, or values are of the wrong kind."""
        least = {**DEGREES, "pchip": 3}.get(method, 0) + 1
        for axis, points in enumerate(self.grid):
            if method not in ("linear", "nearest") and points.shape[0] < least:
                message = f"method={method!r} needs {least} points, but axis {axis} of the grid has {points.shape[0]}."
                raise ShapeError(message)
        if method == "pchip" and self.values.dtype.kind == "c":
            message = "method='pchip' needs real values: interpolate the parts, np.real and np.imag."
            raise ArgumentError(message)

    def _orders(self, nu: Any, method: str) -> Sequence[int]:
        """The orders of the derivatives along the axes."""
        if nu is None:
            return [0] * len(self.grid)
        if method not in ("slinear", "cubic", "quintic"):
            message = f"nu= is for method='slinear', 'cubic' or 'quintic', but this is {method!r}; use nb.grad."
            raise ArgumentError(message)
        orders = [int(order) for order in numpy.atleast_1d(nu)]
        if len(orders) != len(self.grid) or min(orders) < 0:
            message = f"nu= needs {len(self.grid)} orders of 0 or more, one for each axis, but got {nu!r}."
            raise ArgumentError(message)
        return orders

    def _cornered(self, flat: Any, values: Any, method: str) -> Any:
        """Values of the linear function between the corners around points, or at the nearest corner."""
        sides: list[list[tuple[Any, Any]]] = []
        for k, points in enumerate(self.grid):
            x, points = flat[:, k], np.asarray(points)
            n = points.shape[0]
            place = np.clip(np.searchsorted(points, x) - 1, 0, max(n - 2, 0))
            if n == 1:
                sides.append([(place, 1.0 + 0.0 * x)])
                continue
            low = np.take(points, place)
            share = (x - low) / (np.take(points, place + 1) - low)
            if method == "nearest":
                sides.append([(np.where(share <= 0.5, place, place + 1), 1.0 + 0.0 * x)])
            else:
                sides.append([(place, 1 - share), (place + 1, share)])
        shape = (-1, *[1] * (values.ndim - len(self.grid)))
        total: Any = 0.0
        for corner in itertools.product(*sides):
            weight = math.prod([share for _, share in corner])
            total = total + values[tuple([place for place, _ in corner])] * np.reshape(weight, shape)
        return total

    def _coefficients(self, degree: int) -> Any:
        """The coefficients of the products of B-splines through the values."""
        if degree not in self._kept:
            found = np.asarray(self.values)
            for axis, points in enumerate(self.grid):
                found = np.moveaxis(make_interp_spline(points, found, degree, axis=axis).c, 0, axis)
            self._kept[degree] = found
        return np.asarray(self._kept[degree])

    def _splined(self, flat: Any, degree: int, orders: Sequence[int]) -> Any:
        """Values of a product of splines, or derivatives: the coefficients around each point, by all bases there."""
        count, c = len(self.grid), self._coefficients(degree)
        if max(orders) > degree:
            return np.zeros((flat.shape[0], *c.shape[count:])) + 0.0 * np.reshape(
                np.sum(flat, axis=1), (-1, *[1] * (c.ndim - count))
            )
        index: list[Any] = []
        weight: Any = 1.0
        for axis, points in enumerate(self.grid):
            t, k = knots_of(np.asarray(points), degree), degree
            c = np.moveaxis(c, axis, 0)
            for _ in range(orders[axis]):
                t, c, k = derived(t, c, k)
            c = np.moveaxis(c, 0, axis)
            first, bases = bases_at(t, k, flat[:, axis], t.shape[0] - k - 1)
            along = [k + 1 if j == axis else 1 for j in range(count)]
            index.append(np.reshape(first, (-1, *[1] * count)) + numpy.arange(k + 1).reshape(along))
            weight = weight * np.reshape(np.stack(bases, axis=1), (flat.shape[0], *along))
        around = c[tuple(index)]
        weight = np.reshape(weight, (*weight.shape, *[1] * (c.ndim - count)))
        return np.sum(around * weight, axis=tuple(range(1, count + 1)))

    def _pchip(self, flat: Any, values: Any) -> Any:
        """Values of PCHIP interpolation along the last axis, then along the one before of what that gives."""
        count, which = len(self.grid), numpy.arange(flat.shape[0])
        found = PchipInterpolator(self.grid[-1], values, axis=count - 1)(flat[:, -1])
        found = np.moveaxis(found, count - 1, 0)
        for axis in reversed(range(count - 1)):
            # A spline for each point, along the last axis that is left.
            lines = PchipInterpolator(self.grid[axis], found, axis=axis + 1)
            place = lines.interval(flat[:, axis])
            step = np.reshape(flat[:, axis] - np.take(lines.x, place), (-1, *[1] * (lines.c.ndim - 3)))
            found = 0.0
            for row in lines.c:
                found = found * step + row[place, which]
        return found


def _inexact(values: Any) -> Any:
    return values if values.dtype.kind in "fc" else values * 1.0


def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = math.nan
) -> Any:
    """The values at points of a function on a rectangular grid."""
    if method != "splinef2d":
        return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)
    if len(points) != 2 or np.ndim(values) != 2 or (fill_value is None and not bounds_error):
        message = "method='splinef2d' needs values of two axes, and does not extrapolate; take method='cubic'."
        raise ArgumentError(message)
    return RegularGridInterpolator(points, values, "cubic", bounds_error, fill_value)(xi)
