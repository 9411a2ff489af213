"""The graph of one turn, made of a stretch of turns that are alike.

In: a `Stretch` of alignment.py. Out: a `TurnGraph`: the body over placeholders, with all that is carried, scanned, or
the same in all turns, and the loop of it. Called by rolling.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np

from ..batch import batch_further
from ..builders import concatenate, gather, iota, reshape, slice_axes, transpose
from ..ir import INT64, Node, broadcast, constant, elementwise, filled, literal, literal_value, with_inputs, zeros
from ..primitives import PRIMITIVES
from .alignment import CONSTANT as SAME_IN_ALL
from .alignment import SAME, VARYING, Stretch
from .loop_body import ITEM, LoopNodes, like, make_loop
from .repetition import BROADCAST, CONSTANT, LITERAL, SLICE, Recording, is_number

RESHAPE = PRIMITIVES["reshape"]
FEW_PIECES = 8
MOST_GATHERED = 1 << 20
"""Elements of the parts of an array that overlap, which are copied out of it before the loop."""
LARGEST_PART = 4096
"""Elements of arrays that are copied side by side, so that each turn can have one of them."""


class TurnGraph:
    """The body of a loop: `body` has a node for each place of a turn.

    `kept` has the number of the carried value that is a place's value of some turns ago, at the end. `only_moves` says
    that elements are moved and nothing is computed.
    """

    def __init__(self, recording: Recording, stretch: Stretch) -> None:
        self.recording, self.stretch = recording, stretch
        self.body: list[Node] = []
        self.scanned: list[tuple[Node, Node]] = []
        self.kept: dict[tuple[int, int], int] = {}
        self._chains: dict[tuple[int, tuple[int, ...]], list[Node]] = {}
        self._varying: dict[bytes, Node] = {}
        self._added: list[int] = []
        self.only_moves = self.of_parts = False

    @staticmethod
    def of(recording: Recording, stretch: Stretch) -> TurnGraph | None:
        """The graph of a turn; None if a loop would not pay: nothing is computed, or large arrays would be copied.

        Where elements are moved only, that is of use for parts of what another loop gives.
        """
        made = TurnGraph(recording, stretch)
        for place in range(stretch.period):
            node = made._node(place)
            if node is None:
                return None
            made.body.append(node)
        made._number_chains()
        nodes = recording.nodes[stretch.start : stretch.start + stretch.period]
        made.only_moves = not made._chains and all(n.primitive.kind == "movement" or n.primitive is ITEM for n in nodes)
        moving = made.of_parts and any(node.primitive is not RESHAPE for node in nodes)
        return None if made.only_moves and not moving else made

    def at_once(self, places: Iterable[int]) -> dict[int, Node]:
        """The values of places in all turns, where they are moved only: the whole arrays are moved."""
        known: dict[Node, Node | None] = dict(self.scanned)
        wanted = sorted(places)
        whole = batch_further([self.body[place] for place in wanted], known, self.stretch.turns)
        return dict(zip(wanted, whole, strict=True))

    # ----- Operands -----

    def _node(self, place: int) -> Node | None:
        stretch, recording = self.stretch, self.recording
        at = stretch.start + place
        node = recording.nodes[at]
        low, high = recording.first[at : at + 2] - recording.first[stretch.start]
        operands: list[Node] = []
        for slot in range(low, high):
            operand = self._operand(slot)
            if operand is None:
                return None
            operands.append(operand)
        low, high = recording.numbers_from[at : at + 2] - recording.numbers_from[stretch.start]
        numbers = stretch.numbers[:, low:high]
        axes = np.flatnonzero((numbers != numbers[0]).any(0)).tolist()
        if not axes:
            return with_inputs(node, tuple(operands))
        if node.primitive is SLICE:
            fixed = stretch.kinds[int(recording.first[at] - recording.first[stretch.start])] == SAME_IN_ALL
            if fixed and (is_even(node, numbers) or stretch.turns * node.size <= MOST_GATHERED):
                return self._scan(parts_of(operands[0], node, numbers))
            return _slice_at(operands[0], node, axes, self._numbers(numbers))
        return _pad_at(operands[0], node, axes, self._numbers(numbers))

    def _operand(self, slot: int) -> Node | None:
        kind, stretch = self.stretch.kinds[slot], self.stretch
        column = stretch.operands[:, slot]
        if kind == SAME:
            return self.body[stretch.places[slot]]
        if kind == SAME_IN_ALL:
            return self._outer(int(column[0]))
        if kind == VARYING:
            key = column.tobytes()
            known = self._varying.get(key)
            if known is None:
                values = [self._outer(k) for k in column.tolist()]
                self.of_parts = self.of_parts or slice_under(values[0]) is not None
                known = self._varied(values)
                if known is not None:
                    self._varying[key] = known
            return known
        place = stretch.places[slot]
        starts = tuple(column[:kind].tolist())
        chain = self._chains.get((place, starts))
        if chain is None:
            one = self.recording.nodes[stretch.start + place]
            chain = self._chains[place, starts] = [like(one) for _ in range(kind)]
        return chain[kind - 1]

    def _outer(self, position: int) -> Node:
        return self.recording.nodes[position] if position >= 0 else self.recording.atoms[-1 - position]

    def _scan(self, whole: Node) -> Node:
        """A placeholder for one turn's part of an array."""
        inside = like(whole, whole.shape[1:])
        self.scanned.append((inside, whole))
        return inside

    def _numbers(self, rows: np.ndarray) -> list[Node]:
        """Placeholders for columns of numbers."""
        return [self._scan(constant(np.ascontiguousarray(column))) for column in rows.T]

    def _varied(self, values: Sequence[Node]) -> Node | None:
        """A placeholder for values that differ from turn to turn."""
        one = values[0]
        if any((node.shape, node.dtype) != (one.shape, one.dtype) for node in values):
            return None
        if all(node.primitive is BROADCAST and is_number(node.inputs[0]) for node in values):
            inner = self._varied([node.inputs[0] for node in values])
            return None if inner is None else broadcast(inner, one.shape)
        if all(map(is_number, values)):
            numbers = [literal_value(node) if node.primitive is LITERAL else node.value for node in values]
            return self._scan(constant(np.array(numbers, one.dtype)))
        whole, count = stacked(values)
        if whole is not None and count == len(values):
            return self._scan(whole)
        if one.size > LARGEST_PART or one.dtype.kind == "O":
            return None
        if all(node.primitive is CONSTANT and type(node.value) is np.ndarray for node in values):
            whole = constant(np.stack([node.value for node in values]))
            whole.tensor, whole.place = one.tensor, one.place
            return self._scan(whole)
        return self._scan(concatenate(joined([reshape(node, (1, *node.shape)) for node in values], 0), 0))

    # ----- The loop -----

    def _number_chains(self) -> None:
        number = 0
        for (place, _), chain in self._chains.items():
            for back in range(len(chain)):
                self.kept.setdefault((place, back), number + back)
            number += len(chain)
        self._count = number

    def keeps(self, place: int, turns: Set[int]) -> bool:
        """Whether the loop carries a place's values of some turns to its end; that of the last turn it can."""
        last = self.stretch.turns - 1
        if all((place, last - turn) in self.kept for turn in turns):
            return True
        if turns != {last} or self.body[place].dtype.kind == "O":
            return False
        self.kept[place, 0] = self._count
        self._count += 1
        self._added.append(place)
        return True

    def loop(self, every: Iterable[int]) -> LoopNodes:
        """The loop, which gives the values of some places for every turn."""
        carried: list[tuple[Node, Node, Node]] = []
        for (place, starts), chain in self._chains.items():
            after = self.body[place]
            for back, inside in enumerate(chain):
                carried.append((inside, self._outer(starts[len(chain) - 1 - back]), after))
                after = inside
        for place in self._added:
            node = self.body[place]
            carried.append((like(node), zeros(node.shape, node.dtype), node))
        results = [self.body[place] for place in every]
        return make_loop(self.stretch.turns, carried, self.scanned, results=results)


# ----- Parts of arrays -----


def part_of(whole: Node, turn: int) -> Node:
    """The part of an array of every turn that belongs to one turn; always a node of its own."""
    axes = [(turn, 1, 1), *[(0, n, 1) for n in whole.shape[1:]]]
    if whole.dtype.kind == "c":
        return reshape(slice_axes(whole, axes), whole.shape[1:])
    return Node(RESHAPE, (slice_axes(whole, axes),), (whole.shape[1:],), whole.shape[1:], whole.dtype)


def stacked(parts: Sequence[Node]) -> tuple[Node | None, int]:
    """The first of some nodes along a new axis in front, as far as they are evenly spaced slices of one array.

    Returns the array, None if the first is no slice, and the number of the nodes that it holds.
    """
    first = slice_under(parts[0])
    if first is None or len(parts) < 2:
        return None, 0
    source, ranges = first.inputs[0], first.params[0]
    steps: list[int] | None = None
    count = 1
    before = [start for start, _, _ in ranges]
    for part in parts[1:]:
        one = slice_under(part)
        if one is None or one.inputs[0] is not source or part.shape != parts[0].shape:
            break
        if [r[1:] for r in one.params[0]] != [r[1:] for r in ranges]:
            break
        now = [start for start, _, _ in one.params[0]]
        moved = [b - a for a, b in zip(before, now, strict=True)]
        if steps is None:
            steps = moved
        if moved != steps:
            break
        before = now
        count += 1
    axes = [axis for axis, step in enumerate(steps or []) if step]
    if steps is None or len(axes) != 1 or ranges[axes[0]][1] != 1:
        return None, 0
    (axis,) = axes
    wider = list(ranges)
    wider[axis] = (ranges[axis][0], count, steps[axis])
    whole = slice_axes(source, wider)
    whole = transpose(whole, (axis, *[a for a in range(whole.ndim) if a != axis]))
    return reshape(whole, (count, *parts[0].shape)), count


def joined(pieces: Sequence[Node], axis: int) -> list[Node]:
    """Pieces of a concatenation, in which those that follow each other in one array are one piece."""
    found: list[Node] = []
    start = 0
    while start < len(pieces):
        whole, count = stacked(pieces[start:])
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
    """The parts of an array that slices like `node` take, with a row of starts for each, along a new axis in front."""
    ranges = node.params[0]
    if is_even(node, starts):
        step = starts[1] - starts[0]
        axis = int(np.flatnonzero(step)[0])
        wider = [(r[0], len(starts), int(step[axis])) if a == axis else r for a, r in enumerate(ranges)]
        whole = slice_axes(source, wider)
        order = (axis, *[a for a in range(whole.ndim) if a != axis])
        return reshape(transpose(whole, order), (len(starts), *node.shape))
    index = (starts * _strides(source)).sum(1).reshape(-1, *[1] * node.ndim) + _pattern(source, ranges)
    return gather(reshape(source, (source.size,)), constant(np.ascontiguousarray(index)))


def _strides(source: Node) -> np.ndarray:
    """Elements from one index of each axis to the next, in C order."""
    return np.array([math.prod(source.shape[axis + 1 :]) for axis in range(source.ndim)], np.int64)


def _pattern(source: Node, ranges: Sequence[Any]) -> np.ndarray:
    """The positions of a slice's elements after its first, in C order."""
    total = np.zeros((1,) * len(ranges), np.int64)
    for axis, ((_, count, step), stride) in enumerate(zip(ranges, _strides(source), strict=True)):
        along = np.arange(count) * step * stride
        total = total + along.reshape([-1 if a == axis else 1 for a in range(len(ranges))])
    return total


def _slice_at(source: Node, node: Node, axes: Sequence[int], starts: Sequence[Node]) -> Node:
    """A slice that starts where numbers say, along some axes."""
    offset: Node | None = None
    strides = _strides(source).tolist()
    for axis, start in enumerate(starts):
        if axis in axes:
            term = start * strides[axis]
        else:
            term = literal(node.params[0][axis][0] * strides[axis], INT64)
        offset = term if offset is None else offset + term
    assert offset is not None
    pattern = _pattern(source, node.params[0])
    index = broadcast(offset, node.shape)
    if pattern.size > 1:
        index = index + constant(np.ascontiguousarray(np.broadcast_to(pattern, node.shape)))
    return gather(reshape(source, (source.size,)), index)


def _pad_at(source: Node, node: Node, axes: Sequence[int], starts: Sequence[Node]) -> Node:
    """Zeros around an array, which begins where numbers say along some axes."""
    inside: Node | None = None
    index: Node | None = None
    shape = node.shape
    for axis, (start, stride) in enumerate(zip(starts, _strides(source).tolist(), strict=True)):
        low = start if axis in axes else literal(node.params[0][axis][0], INT64)
        along = iota(shape[axis]) - broadcast(low, (shape[axis],))
        extent = source.shape[axis]
        valid = elementwise(
            "logical_and",
            elementwise("greater_equal", along, 0),
            elementwise("less", along, filled(extent, INT64, along.shape)),
        )
        form = tuple([shape[axis] if a == axis else 1 for a in range(len(shape))])
        spread = broadcast(reshape(valid, form), shape)
        inside = spread if inside is None else elementwise("logical_and", inside, spread)
        if extent > 1:
            clipped = elementwise("select", valid, along, zeros(along.shape, INT64))
            term = broadcast(reshape(clipped * stride, form), shape)
            index = term if index is None else index + term
    assert inside is not None
    if index is None:
        value = broadcast(reshape(source, (1,) * len(shape)), shape)
    else:
        value = gather(reshape(source, (source.size,)), index)
    return elementwise("select", inside, value, zeros(shape, node.dtype))
