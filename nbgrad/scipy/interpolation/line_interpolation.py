"""`scipy.interpolate.interp1d` for recorded values.

In: abscissae, values, a kind. Out: a callable object that gives Tensors, with derivatives by points, values and
abscissae. Called by code that `differentiable_source` runs, by scipy_table.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ... import numpy as np
from ...record.as_node import as_node, holds_tensors
from ...record.axes_and_dtypes import only
from ...runtime.evaluate import require
from ..scipy_objects import ScipyObject
from .line_data import data, laid_out
from .spline_bases import make_interp_spline


class interp1d(ScipyObject):  # noqa: N801 - SciPy's name
    """Interpolation of lines, with SciPy's kinds."""

    def __init__(
        self, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True, bounds_error: Any = None,
        fill_value: Any = math.nan, assume_sorted: bool = False,
    ) -> None:  # fmt: skip
        del copy
        x, y, self.axis = data("interp1d", x, y, axis, 1)
        if not assume_sorted:
            order = np.argsort(x)
            x, y = np.take(x, order), np.take(y, order, axis=0)
        self.kind, self.x, self._y = kind, x, y
        self.bounds_error, self.fill_value = bounds_error, fill_value
        self._extrapolates = isinstance(fill_value, str) and fill_value == "extrapolate"
        if bounds_error is None:
            given = self._extrapolates or holds_tensors(fill_value) or not _is_nan(fill_value)
            self.bounds_error = not given
        self._spline: Any = None
        orders: dict[Any, int] = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
        if kind in orders or isinstance(kind, int):
            self._spline = make_interp_spline(x, y, orders.get(kind, kind))
        else:
            only("kind", kind, "linear", "nearest", "nearest-up", "previous", "next", *orders)

    @classmethod
    def of(cls, original: Any) -> Any:
        """SciPy's object as one of ours."""
        given = original._kind if not hasattr(original, "_spline") else original._spline.k
        fill = "extrapolate" if original._extrapolate else original.fill_value
        return cls(original.x, original.y, given, original.axis, True, original.bounds_error, fill, True)

    def __call__(self, x: Any) -> Any:
        """The values at points."""
        at = np.asarray(x) * 1.0
        knots, n = self.x, self.x.shape[0]
        below, above = at < knots[0], at > knots[-1]
        if self.bounds_error:
            require(as_node(~np.any(below | above)), "A point is outside of the interpolation range.")
        shape = (*at.shape, *[1] * (self._y.ndim - 1))
        if self._spline is not None:
            found = self._spline(at)
        elif self.kind == "linear":
            place = np.clip(np.searchsorted(knots, at) - 1, 0, max(n - 2, 0))
            low = np.take(knots, place)
            share = np.reshape((at - low) / (np.take(knots, place + 1) - low), shape)
            start = np.take(self._y, place, axis=0)
            found = start + share * (np.take(self._y, place + 1, axis=0) - start)
        else:
            found = np.take(self._y, self._nearest(at), axis=0) + 0.0 * np.reshape(at, shape)
        if not self._extrapolates:
            low, high = self.fill_value if isinstance(self.fill_value, tuple) else (self.fill_value, self.fill_value)
            found = np.where(np.reshape(below, shape), low, np.where(np.reshape(above, shape), high, found))
        return laid_out(found, at.ndim, self.axis)

    def _nearest(self, at: Any) -> Any:
        """The positions of the values that count at points, by a kind without slopes."""
        knots, n = self.x, self.x.shape[0]
        if self.kind == "previous":
            return np.clip(np.searchsorted(knots, at, side="right") - 1, 0, n - 1)
        if self.kind == "next":
            return np.clip(np.searchsorted(knots, at, side="left"), 0, n - 1)
        middle = knots[:-1] + np.diff(knots) / 2
        return np.clip(np.searchsorted(middle, at, side="left" if self.kind == "nearest" else "right"), 0, n - 1)


def _is_nan(value: Any) -> bool:
    return bool(numpy.all(numpy.isnan(numpy.asarray(value, float))))
