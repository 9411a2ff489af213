"""The error of a gradient, beside slopes of the function that no derivative was derived for.

In: a function, its gradient, and arguments. Out: the largest relative error. Called by gradient_benchmarks.py. A
complex step of 1e-30 along a direction has the slope in its imaginary part, without any difference, so that it is right
to the last digits (Squire and Trapp 1998).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..record.container_leaves import leaves_of, map_leaves

DIRECTIONS = 3
STEP = 1e-30
WIDEST = 1e-3
"""The first of four real steps, whose central differences are extrapolated to none."""


def largest_error(
    function: Callable[..., Any],
    gradient: Callable[..., Any],
    arguments: tuple[Any, ...],
    wrt: int | tuple[int, ...],
    steps: str,
) -> float:
    """The largest error of slopes along random directions, relative to the largest slope of their length.

    Raises
    ------
    ArgumentError
        If `steps` is neither "complex" nor "real", or if complex arguments give no complex number.
    """
    if steps not in ("complex", "real"):
        message = f"steps is 'complex' or 'real', not {steps!r}."
        raise ArgumentError(message)
    slope = complex_slope if steps == "complex" else real_slope
    positions = wrt if isinstance(wrt, tuple) else (wrt,)
    points = tuple([arguments[k] for k in positions])
    found = gradient(*arguments)
    slopes = [np.asarray(one) for one in leaves_of(found if isinstance(wrt, tuple) else (found,))]
    rng = np.random.default_rng(0)

    def along(way: Any, step: Any) -> Any:
        given = list(arguments)
        moved = map_leaves(lambda x, v: np.asarray(x, np.result_type(x, np.float64)) + step * v, points, way)
        for position, point in zip(positions, moved, strict=True):
            given[position] = point
        return function(*given)

    worst = 0.0
    for _ in range(DIRECTIONS):
        way = map_leaves(lambda x: rng.standard_normal(np.shape(x)), points)
        ways = leaves_of(way)
        product = sum(float(np.sum(g * v)) for g, v in zip(slopes, ways, strict=True))
        right = slope(lambda step, way=way: along(way, step))
        largest = norm(slopes) * norm(ways)
        error = abs(product - right)
        worst = max(worst, error / max(largest, abs(right))) if error else worst
    return worst


def norm(arrays: list[Any]) -> float:
    """The length of all numbers as one vector."""
    return float(np.sqrt(sum(np.sum(np.square(array)) for array in arrays)))


def complex_slope(moved: Callable[[Any], Any]) -> float:
    """The derivative at zero of a function of one number, by a complex step."""
    value = moved(1j * STEP)
    if not np.iscomplexobj(value):
        message = (
            "The function returned a real number for complex arguments, so that a complex step shows no derivative. "
            'Set steps = "real" in the class of benchmarks.'
        )
        raise ArgumentError(message)
    return float(np.imag(value)) / STEP


def real_slope(moved: Callable[[Any], Any]) -> float:
    """The derivative at zero by central differences of four steps, each half as wide, extrapolated (Richardson)."""
    widths = [WIDEST / 2**k for k in range(4)]
    column = [(float(moved(width)) - float(moved(-width))) / (2.0 * width) for width in widths]
    for order in range(1, len(column)):
        factor = 4.0**order
        column = [(factor * fine - coarse) / (factor - 1.0) for coarse, fine in pairwise(column)]
    return column[0]
