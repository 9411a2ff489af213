"""Arrays that the turns of a loop fill part by part: the parts are results of every turn, and are written at the end.

In: a loop that was found in a recording, and its items that are in use. Out: nothing; the items become what a loop
gives that does not carry these arrays. Called by rolling.py and growth.py, when a loop gets no more turns.

`x[k] = f(x[k - 1])` would otherwise copy the whole array in each turn, and choose between its elements. All positions
are numbers that are known, so that each element that a turn reads can be followed to where it comes from: it was
written so many turns ago, which is a carried value then, or by the same turn, or it is what the array holds before the
loop, which is scanned. An array of which this cannot be said of all turns alike, or that is read as a whole, stays
carried.

Positions are counted in *units*: as many elements as all reads and writes keep together, such as rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ..batch import batch_further
from ..builders import concatenate, gather, reshape, slice_axes, transpose
from ..formulas import Range, pattern_of, strides_in_elements, write
from ..interpret import interpret
from ..ir import Node, broadcast, constant, elementwise, make, placeholder, topological, zeros
from ..primitives import PRIMITIVES
from ..shapes import Shape
from .alignment import LONGEST_WAY
from .in_place import become, put_before
from .loop_body import Body, item, like
from .loop_rewrites import substituted
from .loop_rows import EVERY, LAST
from .repetition import BROADCAST, CONSTANT, SLICE, WRITE
from .scanned_parts import MOST_GATHERED, RESHAPE

GATHER = PRIMITIVES["gather"]
MOST_UNITS = 1 << 22
"""Units that all turns together read and write, whose ways are followed."""
MOST_PIECES = 16
"""Pieces that a value is put together of in each turn."""
INITIAL = -1
"""In place of a number of turns: what the array holds before the loop."""


@dataclass
class _Access:
    """A part that each turn reads or writes; `step` is the number of writes before it in the turn.

    `first` has the position of its first element in each turn, `pattern` those of all after it.
    """

    node: Node
    step: int
    first: np.ndarray
    pattern: np.ndarray
    units: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    """The position of each unit in each turn."""


@dataclass
class _Piece:
    """Units that follow each other: of a write so many turns ago, from the unit `start` on; or `INITIAL`."""

    lag: int
    write: int
    start: int
    count: int
    mixed: bool
    """Whether some turns read what the array holds before the loop instead."""


def fill(loop: Node, items: Sequence[Node]) -> None:
    """Let the parts of arrays that a loop fills be results of its turns.

    Parameters
    ----------
    loop : Node
    items : sequence of nodes
        All of its items that are in use.
    """
    body: Body = loop.params[0]
    asked = [body.nodes[position] for kind, position in (node.params for node in items) if kind == EVERY]
    live = topological([*body.following, *asked])
    users: dict[Node, list[Node]] = {}
    for node in live:
        for source in dict.fromkeys(node.inputs):
            users.setdefault(source, []).append(node)
    made = [_Filled(loop, position) for position in range(len(body.carried))]
    found = {one.position: one for one in made if one.follow(users, asked)}
    if found:
        _rebuilt(loop, items, found)


class _Filled:
    """The array that is the carried value at a position of a loop."""

    def __init__(self, loop: Node, position: int) -> None:
        self.loop, self.position = loop, position
        self.body: Body = loop.params[0]
        self.turns: int = loop.params[1]
        self.array = self.body.carried[position]
        self.start = loop.inputs[position]
        self._outer = dict(zip(self.body.inputs, loop.inputs, strict=True))
        self.writes: list[_Access] = []
        self.reads: list[_Access] = []
        self.pieces: list[list[_Piece]] = []
        """For each read."""
        self.written: list[np.ndarray] = []
        """For each read, whether each unit was written by the loop, in each turn."""
        self.before: list[np.ndarray] = []
        """For each write, the units that turns before the first would have written; the last of these comes first."""
        self.initial: list[tuple[Node, Node]] = []
        """The parts of the array before the loop that turns read, to be scanned: the placeholder, and all of them."""
        self.chains: list[list[Node]] = []
        """For each write, placeholders of what was written one turn ago, two turns ago, and so on; if that is more
        turns ago than values are carried through, one of all of them, the last at the end."""
        self.starts: list[list[Node]] = []
        self.survives: list[str] = []
        """For each write what is left of it in the end: the parts of every turn, that of the last one, or nothing."""
        self.unit = 1

    # ----- Where parts come from -----

    def follow(self, users: Mapping[Node, list[Node]], asked: Sequence[Node]) -> bool:
        """Whether each part that turns read can be followed to where it comes from."""
        return (
            self.array.ndim > 0
            and self._find(users, asked)
            and self._locate()
            and self._trace()
            and self._begin()
            and all(not kind or self._end(one, kind) for one, kind in zip(self.writes, self.survives, strict=True))
            and 2 * sum(node.size for chain in self.chains for node in chain) < self.array.size
        )

    @property
    def values(self) -> list[Node]:
        """The values that each turn writes."""
        return [one.node.inputs[1] for one in self.writes]

    def _find(self, users: Mapping[Node, list[Node]], asked: Sequence[Node]) -> bool:
        """Find the reads and writes of the array; whether there is nothing else."""
        steps = {self.array: 0}
        waiting = [self.array]
        writes: dict[int, Node] = {}
        for node in waiting:
            step = steps[node]
            for user in users.get(node, ()):
                if user.primitive is RESHAPE or (user.primitive is WRITE and node not in user.inputs[1:]):
                    steps[user] = step
                    waiting.append(user)
                    if user.primitive is WRITE:
                        steps[user] = step + 1
                        if writes.setdefault(step, user) is not user:
                            return False
                elif user.primitive is SLICE or (user.primitive is GATHER and user.inputs[1] is not node):
                    access = self._access(user, step)
                    if access is None:
                        return False
                    self.reads.append(access)
                else:
                    return False
        for step, node in writes.items():
            access = self._access(node, step)
            if access is None:
                return False
            self.writes.append(access)
        body = self.body
        others = [*body.following[: self.position], *body.following[self.position + 1 :], *asked]
        whole = steps.get(body.following[self.position]) == len(writes)
        return whole and bool(writes) and steps.keys().isdisjoint(others)

    def _access(self, node: Node, step: int) -> _Access | None:
        """The part that a node reads or writes; None if it is not known before the loop."""
        if node.primitive is GATHER:
            found = self._indexed(node.inputs[1])
            return None if found is None else _Access(node, step, *found)
        ranges, *rest = node.params
        strides = strides_in_elements(node.inputs[0])
        first = np.full(self.turns, int(np.dot([start for start, _, _ in ranges], strides)))
        for axis, start in zip(rest[0] if rest else (), node.inputs[2:], strict=True):
            values = self._known(start)
            if values is None:
                return None
            first += (values - ranges[axis][0]) * strides[axis]
        return _Access(node, step, first, pattern_of(node.inputs[0], ranges).ravel())

    def _indexed(self, index: Node) -> tuple[np.ndarray, np.ndarray] | None:
        """The first position and all after it of an index such as `part_at` makes."""
        pattern = np.zeros(index.size, np.int64)
        if index.primitive.name == "add":
            index, added = index.inputs
            source = self._outer.get(added)
            if source is None or not _is_known(source):
                return None
            pattern = source.value.ravel()
        while index.primitive in (BROADCAST, RESHAPE):
            index = index.inputs[0]
        values = None if index.size != 1 else self._known(index)
        return None if values is None else (values + pattern[0], pattern - pattern[0])

    def _known(self, number: Node) -> np.ndarray | None:
        """The values of a number in all turns; None if it is not known before the loop."""
        known: dict[Node, Node | None] = {}
        for node in topological([number]):
            if node in self._outer:
                if node not in self.body.scanned or not _is_known(self._outer[node]):
                    return None
                known[node] = self._outer[node]
        (values,) = interpret(batch_further([number], known, self.turns))
        return values.reshape(self.turns).astype(np.int64)

    def _locate(self) -> bool:
        """Find the unit, and the units of all parts; whether they are not too many."""
        unit = self.array.size
        everything = [*self.reads, *self.writes]
        for one in everything:
            if not one.pattern.size:
                continue
            runs = np.flatnonzero(np.diff(one.pattern, prepend=one.pattern[0] - 2) != 1)
            lengths = np.diff(runs, append=one.pattern.size)
            unit = int(np.gcd.reduce([unit, *one.first.tolist(), *one.pattern[runs].tolist(), *lengths.tolist()]))
        if sum(self.turns * (one.pattern.size // unit) for one in everything) > MOST_UNITS:
            return False
        self.unit = unit
        for one in everything:
            one.units = (one.first[:, None] + one.pattern[None, ::unit]) // unit
        return True

    def _trace(self) -> bool:
        """Follow each unit that is read to where it was written; whether that is the same in all turns."""
        turns, steps = self.turns, len(self.writes)
        shapes = [one.units.shape for one in self.writes]
        position = np.concatenate([one.units.ravel() for one in self.writes])
        turn = np.concatenate([np.repeat(np.arange(turns), count) for _, count in shapes])
        number = np.repeat(np.arange(steps), [turns * count for _, count in shapes])
        place = np.concatenate([np.tile(np.arange(count), turns) for _, count in shapes])
        key = (position * turns + turn) * steps + number
        order = np.argsort(key)
        key, sorted_position = key[order], position[order]
        now = np.arange(turns)[:, None]
        for read in self.reads:
            at = np.searchsorted(key, (read.units * turns + now) * steps + read.step) - 1
            written = (at >= 0) & (sorted_position[at] == read.units)
            event = order[at]
            way = np.where(written, now - turn[event], INITIAL)
            found = np.stack([way, np.where(written, number[event], 0), np.where(written, place[event], 0)])
            # The turn of the last write, if there is one, says how it is in all others.
            known = np.where(written.any(0), turns - 1 - np.argmax(written[::-1], 0), 0)
            usual = found[:, known, np.arange(known.size)]
            if (written & (found != usual[:, None]).any(0)).any():
                return False
            mixed = (written != (now >= usual[0]) & (usual[0] != INITIAL)).any(0)
            pieces = _pieces_of([*usual.T.tolist()], mixed.tolist())
            if len(pieces) > MOST_PIECES:
                return False
            self.pieces.append(pieces)
            self.written.append(written)
        stays = np.zeros(len(order), bool)
        stays[order] = np.append(sorted_position[1:] != sorted_position[:-1], True)
        bounds = np.cumsum([0, *[turns * count for _, count in shapes]]).tolist()
        for (low, high), shape in zip(pairwise(bounds), shapes, strict=True):
            left = stays[low:high].reshape(shape)
            if not left.any():
                self.survives.append("")
            elif left.all():
                self.survives.append(EVERY)
            elif left[-1].all() and not left[:-1].any():
                self.survives.append(LAST)
            else:
                return False
        return True

    # ----- What is carried and scanned instead -----

    def _begin(self) -> bool:
        """Find what is carried into the first turn, and what is scanned; whether it can be had."""
        for number, one in enumerate(self.writes):
            depth = max([p.lag for pieces in self.pieces for p in pieces if p.write == number], default=0)
            depth = max(depth, int(self.survives[number] == LAST))
            self.before.append(np.full((depth, one.units.shape[1]), -1))
        for read, pieces in zip(self.reads, self.pieces, strict=True):
            at = 0
            for piece in pieces:
                for turn in range(0 if piece.mixed else piece.lag):
                    there = self.before[piece.write][piece.lag - turn - 1, piece.start : piece.start + piece.count]
                    units = read.units[turn, at : at + piece.count]
                    if ((there >= 0) & (there != units)).any():
                        return False
                    there[:] = units
                at += piece.count
        for one, before in zip(self.writes, self.before, strict=True):
            value = one.node.inputs[1]
            shape = value.shape
            if len(before) > LONGEST_WAY:
                before, shape = before[None, ::-1], (len(before), *shape)
            starts = [zeros(shape, value.dtype) if (row < 0).all() else self._initial(row) for row in before]
            if any(start is None for start in starts):
                return False
            self.starts.append([reshape(start, shape) for start in starts if start is not None])
            self.chains.append([like(value, shape) for _ in starts])
        for read, pieces, written in zip(self.reads, self.pieces, self.written, strict=True):
            at = 0
            for piece in pieces:
                columns = slice(at, at + piece.count)
                if piece.lag == INITIAL or piece.mixed:
                    whole = self._initial(read.units[:, columns])
                    if whole is None:
                        return False
                    self._scan(whole)
                if piece.mixed:
                    self._scan(constant(np.ascontiguousarray(written[:, columns, None])))
                at += piece.count
        return True

    def _scan(self, whole: Node) -> None:
        self.initial.append((placeholder(whole.shape[1:], whole.dtype), whole))

    def _initial(self, units: np.ndarray) -> Node | None:
        """Units of the array as it is before the loop; None if they would have to be copied, and are too many."""
        units = np.maximum(units, 0)
        flat = units.ravel()
        step = _step(flat)
        if step:
            rows = reshape(self.start, (self.start.size // self.unit, self.unit))
            part = slice_axes(rows, ((int(flat[0]), flat.size, step), (0, self.unit, 1)))
            return reshape(part, (*units.shape, self.unit))
        if flat.size * self.unit > MOST_GATHERED:
            return None
        index = np.ascontiguousarray(units[..., None] * self.unit + np.arange(self.unit))
        return gather(reshape(self.start, (self.start.size,)), constant(index))

    def carried(self) -> Iterator[tuple[Node, Node, Node]]:
        """The values carried in place of the array: the placeholder, its first value, and the value after a turn."""
        for value, chain, starts in zip(self.values, self.chains, self.starts, strict=True):
            following = [value, *chain][: len(chain)]
            if chain and chain[0].ndim > value.ndim:
                others = slice_axes(chain[0], _rows(chain[0], 1))
                following = [concatenate([others, reshape(value, (1, *value.shape))], 0)]
            yield from zip(chain, starts, following, strict=True)

    def replaced(self) -> dict[Node, Node]:
        """The reads of the array, and the nodes that stand for them."""
        found: dict[Node, Node] = {}
        initial = iter(self.initial)
        for read, pieces in zip(self.reads, self.pieces, strict=True):
            parts: list[Node] = []
            for piece in pieces:
                before = next(initial)[0] if piece.lag == INITIAL or piece.mixed else None
                part = before if piece.lag == INITIAL else self._written_ago(piece)
                if piece.mixed and before is not None and part is not None:
                    mask = broadcast(next(initial)[0], part.shape)
                    part = elementwise("select", mask, part, before)
                assert part is not None
                parts.append(part)
            whole = concatenate(parts, 0) if parts else zeros((0,), read.node.dtype)
            found[read.node] = reshape(whole, read.node.shape)
        return found

    def _written_ago(self, piece: _Piece) -> Node:
        """The units of a piece that was written so many turns ago."""
        value, chain, start = self.values[piece.write], self.chains[piece.write], piece.start
        if piece.lag and chain[0].ndim > value.ndim:
            start += (len(self.before[piece.write]) - piece.lag) * (value.size // self.unit)
            value = chain[0]
        elif piece.lag:
            value = chain[piece.lag - 1]
        rows = reshape(value, (value.size // self.unit, self.unit))
        return slice_axes(rows, ((start, piece.count, 1), (0, self.unit, 1)))

    # ----- The array after the loop -----

    def _end(self, one: _Access, kind: str) -> _Place | None:
        """Where the parts that are left of a write go: rows of units, or a box of the array; None if it is neither."""
        units = one.units if kind == EVERY else one.units[-1:]
        flat = units.ravel()
        step = _step(flat)
        rows = self.array.size // self.unit
        if step:
            return _Place((rows, self.unit), ((int(flat[0]), flat.size, step), (0, self.unit, 1)))
        array, ranges = one.node.inputs[0], list(one.node.params[0])
        starts = np.unravel_index(one.first if kind == EVERY else one.first[-1:], array.shape)
        for axis, along in enumerate(starts):
            ranges[axis] = (int(along[0]), *ranges[axis][1:])
        moving = [axis for axis, along in enumerate(starts) if (along != along[0]).any()]
        # The slowest first: the number of turns before it moves.
        moving.sort(key=lambda axis: -int(np.argmax(starts[axis] != starts[axis][0])))
        left = starts[0].size
        for axis in moving:
            pause = int(np.argmax(starts[axis] != starts[axis][0]))
            along = starts[axis][:left:pause]
            step = _step(along)
            expected = np.tile(np.repeat(along, pause), starts[0].size // (along.size * pause))
            if not step or ranges[axis][1] != 1 or not np.array_equal(expected, starts[axis]):
                return None
            ranges[axis], left = (int(along[0]), along.size, step), pause
        return _Place(array.shape, tuple(ranges), tuple(moving)) if left == 1 or not moving else None

    def after(self, every: Callable[[Node], Node], last: Callable[[Node], Node]) -> Node:
        """The array after the loop, from what gives a value in every turn, and a carried one after the last."""
        array = self.start
        for one, kind, chain in zip(self.writes, self.survives, self.chains, strict=True):
            place = self._end(one, kind) if kind else None
            if place is not None:
                value = every(one.node.inputs[1]) if kind == EVERY else last(chain[0])
                if kind == LAST and value.ndim > one.node.inputs[1].ndim:
                    value = slice_axes(value, _rows(value, value.shape[0] - 1))
                array = place.written(array, value)
        return reshape(array, self.array.shape)


@dataclass
class _Place:
    """Ranges of an array in some shape, along some axes of which turns move: along the last of them in each turn."""

    shape: Shape
    ranges: tuple[Range, ...]
    moving: tuple[int, ...] = ()

    def written(self, array: Node, value: Node) -> Node:
        """The array after values of some turns were written to it."""
        counts = [count for _, count, _ in self.ranges]
        if self.moving:
            order = [*self.moving, *[axis for axis in range(len(counts)) if axis not in self.moving]]
            value = reshape(value, tuple([counts[axis] for axis in order]))
            value = transpose(value, tuple(np.argsort(order).tolist()))
        return write(reshape(array, self.shape), reshape(value, tuple(counts)), self.ranges)


def _rebuilt(loop: Node, items: Sequence[Node], found: Mapping[int, _Filled]) -> None:
    """Let the items be those of a loop that does not carry arrays that are filled."""
    body: Body = loop.params[0]
    turns: int = loop.params[1]
    count = len(body.carried)
    kept = [k for k in range(count) if k not in found]
    carried = [(body.carried[k], loop.inputs[k], body.following[k]) for k in kept]
    scanned = list(zip(body.scanned, loop.inputs[count:], strict=False))
    constants = list(zip(body.constants, loop.inputs[count + len(scanned) :], strict=True))
    replaced: dict[Node, Node] = {}
    results = {body.nodes[position]: None for kind, position in (node.params for node in items) if kind == EVERY}
    for one in found.values():
        carried += one.carried()
        scanned += one.initial
        replaced.update(one.replaced())
        results.update({value: None for value, kind in zip(one.values, one.survives, strict=True) if kind == EVERY})
    after = substituted([*[node for *_, node in carried], *results], replaced)
    following, given = after[: len(carried)], dict(zip(results, after[len(carried) :], strict=True))
    read = set(topological(after))
    scanned, constants = ([one for one in group if one[0] in read] for group in (scanned, constants))
    inside = [[one for one, *_ in group] for group in (carried, scanned, constants)]
    new = Body(inside[0], inside[1], inside[2], following, list(given.values()), body.again)
    inputs = tuple([outside for group in (carried, scanned, constants) for _, outside, *_ in group])
    made = make("loop", inputs, (new, turns, False))

    def every(node: Node) -> Node:
        return item(made, (EVERY, new.position[given[node]]))

    def last(node: Node) -> Node:
        return item(made, (LAST, new.carried.index(node)))

    values: list[Node] = []
    for node in items:
        kind, position = node.params
        if kind == EVERY:
            values.append(every(body.nodes[position]))
        else:
            values.append(found[position].after(every, last) if position in found else last(body.carried[position]))
    put_before(values, loop.serial)
    become(items, values)


def _rows(node: Node, first: int) -> list[Range]:
    """The ranges of the rows of an array from one on."""
    return [(first, node.shape[0] - first, 1), *[(0, n, 1) for n in node.shape[1:]]]


def _pieces_of(ways: Sequence[Sequence[int]], mixed: Sequence[bool]) -> list[_Piece]:
    """Units in pieces, from turns ago, the write and the unit there for each."""
    found: list[_Piece] = []
    for (lag, number, place), both in zip(ways, mixed, strict=True):
        one = found[-1] if found else None
        follows = lag == INITIAL or (one is not None and place == one.start + one.count)
        if one is not None and (one.lag, one.write, one.mixed) == (lag, number, both) and follows:
            one.count += 1
        else:
            found.append(_Piece(lag, number, place, 1, both))
    return found


def _step(places: np.ndarray) -> int:
    """The distance of places that are evenly spaced, 1 for a single one; 0 if they are not."""
    if places.size == 1:
        return 1
    steps = np.diff(places)
    return int(steps[0]) if (steps == steps[0]).all() else 0


def _is_known(node: Node) -> bool:
    return node.primitive is CONSTANT and isinstance(node.value, np.ndarray)
