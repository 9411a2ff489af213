"""The borders that `pad` makes of values instead of copies: statistics, ramps, odd reflections, users' functions.

In: a node, an axis, the widths before and after it. Out: the wider node. Called by padding.py only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError
from ...graph.builders import cast, concatenate, reshape
from ...graph.ir import Node, broadcast, constant, elementwise
from ...record.as_node import wrap
from ...record.axes_and_dtypes import cut, filled, from_last, integer, to_last
from ..arrays.creation import linspace
from ..arrays.reductions import reduce_ufunc
from .quantiles import median
from .statistics import mean_node

Pair = tuple[Any, Any]


# ----- Statistics of the elements next to the border -----


def _mean(node: Node, axis: int) -> Node:
    return _whole(mean_node(node, axis, keepdims=True), node)


def _median(node: Node, axis: int) -> Node:
    return _whole(median(wrap(node), axis, keepdims=True)._node, node)


def _whole(value: Node, like: Node) -> Node:
    """Rounded for arrays of integers."""
    return cast(value if like.dtype.kind in "fc" else elementwise("rint", value), like.dtype)


STATISTICS: dict[str, Callable[[Node, int], Node]] = {
    "maximum": lambda node, axis: reduce_ufunc("maximum", node, axis, True),
    "minimum": lambda node, axis: reduce_ufunc("minimum", node, axis, True),
    "mean": _mean,
    "median": _median,
}


def with_statistics(node: Node, axis: int, widths: tuple[int, int], mode: str, lengths: Pair) -> Node:
    """Borders that repeat a statistic of the first (and last) `lengths` elements; None for all of them."""
    n = node.shape[axis]
    counts = []
    for length in lengths:
        count = n if length is None else integer(length, "stat_length")
        if count < 0 or (count == 0 and mode in ("maximum", "minimum")):
            message = f"stat_length must be positive for mode {mode!r}, but is {length!r}."
            raise ArgumentError(message)
        counts.append(min(count, n))
    ends = [
        STATISTICS[mode](cut(node, axis, 0, counts[0]), axis),
        STATISTICS[mode](cut(node, axis, n - counts[1], counts[1]), axis),
    ]
    return _between(node, axis, widths, [_repeated(end, axis, width) for end, width in zip(ends, widths, strict=True)])


def _repeated(node: Node, axis: int, width: int) -> Node:
    return broadcast(node, tuple([width if k == axis else n for k, n in enumerate(node.shape)]))


def _between(node: Node, axis: int, widths: tuple[int, int], borders: list[Node]) -> Node:
    parts = [border for border, width in zip(borders, widths, strict=True) if width]
    if not parts:
        return node
    return concatenate([*parts[: 1 if widths[0] else 0], node, *parts[1 if widths[0] else 0 :]], axis)


# ----- Ramps -----


def with_ramps(node: Node, axis: int, widths: tuple[int, int], ends: Pair) -> Node:
    """Borders that go in equal steps from an end value to the element at the edge, which is not repeated."""
    n = node.shape[axis]
    borders: list[Node] = []
    for side, place in enumerate((0, n - 1)):
        width, end = widths[side], ends[side]
        edge = cut(node, axis, place, 1)
        edge = reshape(edge, edge.shape[:axis] + edge.shape[axis + 1 :])
        ramp = linspace(end, wrap(edge), width, endpoint=False, dtype=node.dtype, axis=axis)._node
        borders.append(cut(ramp, axis, width - 1, width, -1) if side and width else ramp)
    return _between(node, axis, widths, borders)


# ----- Odd reflections -----


def with_odd_reflection(node: Node, even: Node, axis: int, widths: tuple[int, int], mode: str) -> Node:
    """Borders reflected at the points of the edges, from those that are reflected at the edges (`even`).

    Beyond the first edge an element is 2 x[0] minus its mirror image; after a whole period the function has grown by
    twice the difference of the edges.
    """
    n = node.shape[axis]
    if n == 1:
        return even
    place = np.arange(-widths[0], n + widths[1])
    half = n if mode == "symmetric" else n - 1
    turns, phase = np.divmod(place, 2 * half)
    down = phase >= n if mode == "symmetric" else phase > half
    shape = [1] * node.ndim
    shape[axis] = place.size

    def factors(values: np.ndarray) -> Node:
        return broadcast(reshape(constant(values), tuple(shape)), even.shape)

    def where(test: np.ndarray, value: Node) -> Node:
        # Zero times what is infinite would be NaN.
        return elementwise("select", factors(test), value, filled(even.shape, 0, even.dtype))

    first, last = (_repeated(cut(node, axis, k, 1), axis, place.size) for k in (0, n - 1))
    grown = where(turns != 0, elementwise("multiply", cast(factors(2 * turns), node.dtype), last - first))
    mirrored = elementwise("select", factors(down), elementwise("negative", even), even)
    return mirrored + where(down, last + last) + grown


# ----- Users' functions -----


def with_function(
    node: Node, axis: int, widths: tuple[int, int], function: Callable[..., Any], options: dict[str, Any]
) -> Node:
    """Borders that a function writes into each line along an axis, which has zeros there."""
    lines = to_last(node, axis)
    count = lines.size // max(lines.shape[-1], 1)
    rows = reshape(lines, (count, lines.shape[-1]))
    results: list[Node] = []
    for k in range(count):
        line = wrap(reshape(cut(rows, 0, k, 1), rows.shape[1:]))
        function(line, widths, axis, options)
        if line.shape != rows.shape[1:]:
            message = f"The function given to pad changed the shape of a line from {rows.shape[1:]} to {line.shape}."
            raise DtypeError(message)
        results.append(reshape(line._node, (1, rows.shape[1])))
    return from_last(reshape(concatenate(results, 0), lines.shape), axis) if results else node
