"""Arrays of which each turn of a loop reads a part, made of the parts that turns have read one by one.

In: slices, numbers or arrays, one for each turn. Out: the array in which they stand side by side. Called by
turn_graph.py, growth.py and rolling.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..builders import concatenate, gather, reshape, slice_axes, transpose
from ..formulas import pattern_of, strides_in_elements
from ..ir import Node, constant, literal_value
from ..primitives import PRIMITIVES
from .repetition import CONSTANT, LITERAL, SLICE, is_number

RESHAPE = PRIMITIVES["reshape"]
FEW_PIECES = 8
MOST_GATHERED = 1 << 20
"""Elements of the parts of an array that overlap, which are copied out of it before the loop."""
LARGEST_PART = 4096
"""Elements of arrays that are copied side by side, so that each turn can have one of them."""


@dataclass(frozen=True)
class Number:
    """A number of a slice or a pad at a place of a turn: where it starts along an axis."""

    place: int
    axis: int


@dataclass(frozen=True)
class Parts:
    """The slice at a place of a turn, of an array that is the same in all turns."""

    place: int


@dataclass(frozen=True)
class Varied:
    """An operand of a turn, without how often it is `repeated`."""

    slot: int
    repeated: int


Origin = Number | Parts | Varied
"""Where the parts come from."""


def arrays_of(values: Sequence[Node]) -> np.ndarray | None:
    """Numbers side by side, or small arrays that are known; None for other values."""
    one = values[0]
    if all(map(is_number, values)):
        return np.array([literal_value(n) if n.primitive is LITERAL else n.value for n in values], one.dtype)
    if one.size <= LARGEST_PART and all(n.primitive is CONSTANT and type(n.value) is np.ndarray for n in values):
        return np.stack([node.value for node in values])
    return None


def whole_of(pieces: Any) -> Node | None:
    """The array in which values stand side by side; None if they are too large to be copied there."""
    if isinstance(pieces, np.ndarray):
        return constant(pieces)
    one = pieces[0]
    whole, count = stacked(pieces)
    if whole is not None and count == len(pieces):
        return whole
    if one.size > LARGEST_PART or one.dtype.kind == "O":
        return None
    return concatenate(joined([reshape(node, (1, *node.shape)) for node in pieces], 0), 0)


def part_of(whole: Node, turn: int) -> Node:
    """The part of an array of every turn that belongs to one turn; always a node of its own."""
    axes = [(turn, 1, 1), *[(0, n, 1) for n in whole.shape[1:]]]
    if whole.dtype.kind == "c":
        return reshape(slice_axes(whole, axes), whole.shape[1:])
    return Node(RESHAPE, (slice_axes(whole, axes),), (whole.shape[1:],), whole.shape[1:], whole.dtype)


def stacked(parts: Sequence[Node], begin: int = 0) -> tuple[Node | None, int]:
    """Some nodes, from one on, along a new axis in front, as far as they are evenly spaced slices of one array.

    Returns the array, None if the first two are no such slices, and the number of the nodes that it holds.
    """
    shape, first = parts[begin].shape, slice_under(parts[begin])
    if first is None:
        return None, 0
    source, ranges = first.inputs[0], first.params[0]
    steps: list[int] | None = None
    axis, count = 0, 1
    before = [start for start, _, _ in ranges]
    for at in range(begin + 1, len(parts)):
        part = parts[at]
        one = slice_under(part)
        if one is None or one.inputs[0] is not source or part.shape != shape:
            break
        if [r[1:] for r in one.params[0]] != [r[1:] for r in ranges]:
            break
        now = [start for start, _, _ in one.params[0]]
        moved = [b - a for a, b in zip(before, now, strict=True)]
        if steps is None:
            axes = [axis for axis, step in enumerate(moved) if step]
            if len(axes) != 1 or ranges[axes[0]][1] != 1:
                return None, 0  # at once: equal slices may be as many as a loop has turns
            (axis,), steps = axes, moved
        if moved != steps:
            break
        before = now
        count += 1
    if steps is None:
        return None, 0
    wider = list(ranges)
    wider[axis] = (ranges[axis][0], count, steps[axis])
    whole = slice_axes(source, wider)
    whole = transpose(whole, (axis, *[a for a in range(whole.ndim) if a != axis]))
    return reshape(whole, (count, *shape)), count


def joined(pieces: Sequence[Node], axis: int) -> list[Node]:
    """Pieces of a concatenation, in which those that follow each other in one array are one piece."""
    found: list[Node] = []
    start = 0
    while start < len(pieces):
        whole, count = stacked(pieces, start)
        if whole is None or count < FEW_PIECES:
            found.append(pieces[start])
            start += 1
            continue
        one = pieces[start].shape
        moved = transpose(whole, (*range(1, axis + 1), 0, *range(axis + 1, whole.ndim)))
        found.append(reshape(moved, (*one[:axis], count * one[axis], *one[axis + 1 :])))
        start += count
    return found


def slice_under(node: Node) -> Node | None:
    """The slice that a node is, in another shape."""
    while node.primitive is RESHAPE:
        node = node.inputs[0]
    return node if node.primitive is SLICE else None


def is_even(node: Node, starts: np.ndarray) -> bool:
    """Whether slices like `node` take one element of one axis after the other, at equal distances."""
    moves = np.diff(starts, axis=0)
    axes = np.flatnonzero((moves != 0).any(0)).tolist()
    return len(axes) == 1 and node.params[0][axes[0]][1] == 1 and bool((moves == moves[0]).all())


def parts_of(source: Node, node: Node, starts: np.ndarray) -> Node:
    """The parts of an array that slices like `node` take, with a row of starts for each, along a new axis in front.

    Where `node` itself starts does not matter.
    """
    ranges = node.params[0]
    if is_even(node, starts):
        step = starts[1] - starts[0]
        axis = int(np.flatnonzero(step)[0])
        wider = list(ranges)
        wider[axis] = (int(starts[0, axis]), len(starts), int(step[axis]))
        whole = slice_axes(source, wider)
        order = (axis, *[a for a in range(whole.ndim) if a != axis])
        return reshape(transpose(whole, order), (len(starts), *node.shape))
    index = (starts * strides_in_elements(source)).sum(1).reshape(-1, *[1] * node.ndim) + pattern_of(source, ranges)
    return gather(reshape(source, (source.size,)), constant(np.ascontiguousarray(index)))
