"""Abscissae and values of splines as arrays, checks of them, points outside of them, integrals over periods.

In: arguments as users give them. Out: arrays with the axis of the abscissae first, or an error. Called by the classes
of splines and grids in this folder.
"""

from __future__ import annotations

from typing import Any

from ... import numpy as np
from ...errors import ShapeError
from ...record.as_node import as_node
from ...record.axes_and_dtypes import only
from ...runtime.evaluate import require


def points_in(x: Any, low: Any, high: Any, extrapolate: Any) -> tuple[Any, Any]:
    """Points at which a function is evaluated, and where the result is NaN, or None."""
    if isinstance(extrapolate, str):
        only("extrapolate", extrapolate, "periodic")
        return low + np.mod(x - low, high - low), None
    return x, None if extrapolate else (x < low) | (x > high)


def between(whole: Any, a: Any, b: Any, low: Any, high: Any) -> Any:
    """The integral from a to b of a periodic function, by its antiderivative in one period."""
    start, over = whole(low), whole(high) - whole(low)

    def up_to(x: Any) -> Any:
        turns = np.floor((np.asarray(x) - low) / (high - low))
        return turns * over + whole(np.asarray(x) - turns * (high - low)) - start

    return up_to(b) - up_to(a)


def laid_out(found: Any, count: int, axis: int) -> Any:
    """Values with the axes of points, `count` of them, first, moved to the place of the axis of the data."""
    order = [*range(found.ndim)]
    return np.transpose(found, order[count : count + axis] + order[:count] + order[count + axis :])


def data(name: str, x: Any, y: Any, axis: int, least: int) -> tuple[Any, Any, int]:
    """Abscissae and values as arrays, with the axis of the abscissae first; and that axis.

    Raises
    ------
    ShapeError
        If the lengths differ, or there are too few.
    """
    x, y = np.asarray(x) * 1.0, np.asarray(y)
    if y.dtype.kind not in "fc":
        y = y * 1.0
    axis = axis % max(y.ndim, 1)
    if x.ndim != 1 or y.ndim < 1 or y.shape[axis] != x.shape[0] or x.shape[0] < least:
        message = (
            f"{name} needs {least} abscissae or more and as many values, but the shapes are {x.shape} and {y.shape}."
        )
        raise ShapeError(message)
    return x, np.moveaxis(y, axis, 0), axis


def rising(name: str, x: Any) -> None:
    """Require that abscissae rise."""
    steps = as_node(np.all(np.diff(x) > 0))
    require(steps, f"{name} needs abscissae that rise.")


def finite(name: str, y: Any) -> None:
    """Require that values are finite numbers."""
    require(as_node(np.all(np.isfinite(y))), f"{name} needs finite values.")


def column(values: Any, like: Any) -> Any:
    """A line of numbers, shaped to multiply along the first axis."""
    return np.reshape(values, (-1,) + (1,) * (like.ndim - 1))
