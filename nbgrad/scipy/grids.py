"""`scipy.interpolate.RegularGridInterpolator` and `interpn` for recorded values.

In: the points of a grid along each axis, values on it. Out: a callable object that gives Tensors, with derivatives by
points, values and the grid. Called by code that `differentiable_source` runs, by scipy_table.py.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from .. import numpy as np
from ..errors import ShapeError
from ..record.as_node import as_node
from ..record.axes_and_dtypes import only
from ..runtime.evaluate import require
from .piecewise import rising
from .scipy_objects import ScipyObject


class RegularGridInterpolator(ScipyObject):
    """Linear interpolation, or the nearest value, on a rectangular grid."""

    def __init__(
        self, points: Any, values: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = math.nan
    ) -> None:
        only("method", method, "linear", "nearest")
        self.grid = tuple([np.asarray(p) * 1.0 for p in points])
        self.values, self.method, self.bounds_error, self.fill_value = (
            np.asarray(values),
            method,
            bounds_error,
            fill_value,
        )
        extents = tuple([p.shape[0] for p in self.grid])
        if self.values.shape[: len(extents)] != extents:
            message = f"The grid has {extents} points along its axes, but the values have shape {self.values.shape}."
            raise ShapeError(message)
        for axis, along in enumerate(self.grid):
            if not along._node.traced and np.all(np.diff(along) < 0):
                self.grid = (*self.grid[:axis], along[::-1], *self.grid[axis + 1 :])
                self.values = np.flip(self.values, axis)
            rising("RegularGridInterpolator", self.grid[axis])

    @classmethod
    def of(cls, original: Any) -> RegularGridInterpolator:
        """SciPy's object as one of ours."""
        made = object.__new__(cls)
        made.grid, made.values, made.method = original.grid, original.values, original.method
        made.bounds_error, made.fill_value = original.bounds_error, original.fill_value
        return made

    def __call__(self, xi: Any, method: Any = None) -> Any:
        """The values at points, whose coordinates are the last axis or a tuple of arrays."""
        method = self.method if method is None else method
        only("method", method, "linear", "nearest")
        if isinstance(xi, tuple):
            at = np.stack(np.broadcast_arrays(*[np.asarray(x) * 1.0 for x in xi]), axis=-1)
        else:
            at = np.asarray(xi) * 1.0
        count = len(self.grid)
        if at.ndim == 1 and count == 1:
            at = at[:, None]
        if at.shape[-1] != count:
            message = f"Points on this grid have {count} coordinates, but their shape is {at.shape}."
            raise ShapeError(message)
        values = np.asarray(self.values)
        shape = (*at.shape[:-1], *[1] * (values.ndim - count))
        outside: Any = False
        sides: list[list[tuple[Any, Any]]] = []
        for k, points in enumerate(self.grid):
            x, points = at[..., k], np.asarray(points)
            n = points.shape[0]
            outside = outside | (x < points[0]) | (x > points[-1])
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
        if self.bounds_error:
            require(
                as_node(~np.any(outside)), "A point is outside of the grid: give bounds_error=False, fill_value=None."
            )
        total: Any = 0.0
        for corner in itertools.product(*sides):
            weight = math.prod([share for _, share in corner])
            total = total + values[tuple([place for place, _ in corner])] * np.reshape(weight, shape)
        if self.bounds_error or self.fill_value is None:
            return total
        return np.where(np.reshape(outside, shape), self.fill_value, total)


def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = math.nan
) -> Any:
    """The values at points of a function on a rectangular grid."""
    found = RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)
    return np.reshape(found, (1, *found.shape)) if found.ndim == 0 else found
