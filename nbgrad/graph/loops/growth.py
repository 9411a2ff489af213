"""Loops that grow while their turns are still being recorded.

In: a stretch that becomes a loop, and the operations that are recorded after it. Out: a `Growing`: operations that do
the same as a turn become more turns, without being looked at one by one; at the end, one loop does all turns. Called by
window.py.

Whether a turn is the same is known by known_turn.py. Each time, the turns that were found become a loop of their own
over the same body, so that the graph is right at any moment; `join` makes one of them in the end.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..builders import reduce
from ..ir import LEFT_OUT, Node, make, with_inputs, zeros
from .fills import fill
from .follower import finish_alone, finished
from .in_place import Settle, become, put_before, references, settled
from .known_turn import KnownTurn
from .loop_body import ITEM, Body, LoopNodes, item, real_parts
from .loop_rows import EVERY, LAST
from .noted import current_notes
from .repetition import SLICE, repeats_number, starts_of
from .scanned_parts import MOST_GATHERED, Number, Parts, arrays_of, is_even, part_of, parts_of, whole_of
from .turn_graph import MOST_KEPT, TurnGraph

Asked = list[tuple[int, int]]
"""Values that are in use: turn and place."""


@dataclass
class _Member:
    """A loop of some of the turns; `pieces` are those of its scanned arrays, `items` its items that are in use."""

    loop: Node
    turns: int
    pieces: list[Any]
    items: list[weakref.ref[Node]]
    sparse: bool
    """Whether it gives an array of every turn of which little is in use."""


class Growing:
    """A loop that goes on; made before the nodes of its stretch become parts of it.

    Attributes
    ----------
    period : int
        Operations of a turn.
    kept : list of references to nodes
        The recorded nodes that are now parts of what the loops give.
    """

    def __init__(self, graph: TurnGraph, settle: Settle) -> None:
        stretch, nodes = graph.stretch, graph.recording.nodes
        self.period = period = stretch.period
        self.kept: list[weakref.ref[Node]] = []
        self._graph = graph
        self._members: list[_Member] = []
        self._made: LoopNodes
        turn = nodes[stretch.start : stretch.start + period]
        self.turn = KnownTurn(graph, turn)
        self._back = self.turn.back
        self._slices = {
            origin.place: with_inputs(turn[origin.place], turn[origin.place].inputs)
            for origin, _ in graph.origins
            if isinstance(origin, Parts)
        }
        self._recent: list[list[weakref.ref[Node] | None]] = []
        first = stretch.end - self._back * period
        self._remember([nodes[k : k + period] for k in range(first, stretch.end, period)])
        self._layouts = self._steady_layouts(nodes[stretch.end - 2 * period : stretch.end], settle)

    def _remember(self, turns: Sequence[Sequence[Node]]) -> None:
        """Take note of the values that later turns may read, of as many turns as they may."""
        carried = {place for place, _ in self._graph.kept}
        noted = [[weakref.ref(node) if k in carried else None for k, node in enumerate(turn)] for turn in turns]
        self._recent = [*self._recent, *noted][len(self._recent) + len(noted) - self._back :]

    def _steady_layouts(self, turns: Sequence[Node], settle: Settle) -> dict[int, Any] | None:
        """How carried values lie in memory, if that is the same after both of two turns: so it is after all others."""
        found: dict[int, Any] = {}
        for place, _ in self._graph.kept:
            both = turns[place], turns[place + self.period]
            settled(both, settle)
            if both[0].layout != both[1].layout:
                return None
            found[place] = both[1].layout
        return found

    # ----- The first turns -----

    def begin(self, made: LoopNodes, asked: Asked, nodes: Sequence[Node]) -> None:
        """Take the loop of the first turns, and the nodes that have become parts of it."""
        self._made = made
        self._add(made.node, [pieces for _, pieces in self._graph.origins], asked, nodes)
        self._graph.forget()

    def _add(self, loop: Node, pieces: list[Any], asked: Asked, nodes: Sequence[Node]) -> None:
        turns = loop.params[1]
        read: dict[int, int] = {}
        for _, place in asked:
            read[place] = read.get(place, 0) + 1
        items = items_of(loop, nodes)
        every = any(node.params[0] == EVERY and _is_large(node) for node in items)
        sparse = every and any(count * 4 < turns for count in read.values())
        self._members.append(_Member(loop, turns, pieces, [weakref.ref(node) for node in items], sparse))
        self.kept += map(weakref.ref, nodes)

    # ----- More turns -----

    def extend(
        self,
        operations: list[Node],
        known: Collection[Node],
        settle: Settle,
        all_turns: bool,
        same: int,
        checks: list[Any],
    ) -> int:
        """Let operations that do the same again become turns.

        Parameters
        ----------
        operations : list of nodes
            What was recorded after the turns so far.
        known : collection of nodes
            Those that two references keep which are not to count.
        settle : callable
            See `Settle`.
        all_turns : bool
            Whether the last turns are taken as well: that one of which more values may be in use now than later, and
            those that the next one may read, for a follower.
        same : int
            How many of the operations are known to be the same; some of these may be `LEFT_OUT`.
        checks : list
            Gets the conditions among those, of all turns at once.

        Returns
        -------
        int
            How many operations there were.
        """
        begun = same - same % self.period
        operations[begun:] = finished(operations[begun:], checks)
        recent = [[one and one() for one in turn] for turn in self._recent]
        turns, varying = self.turn.matching(operations, recent, same)
        count = len(turns) - (0 if all_turns else self.turn.held)
        if count < 1:
            return 0
        asked = self._asked(turns[:count], known)
        count = self._end_of_large(turns, asked, count)
        asked = sorted({*[one for one in asked if one[0] < count], *self._carried_out(count)})
        pieces = self._pieces(turns[:count], varying[:count])
        arrays = None if pieces is None else self._arrays(pieces)
        hidden = [place for place in self.turn.conditions if any(turn[place] is LEFT_OUT for turn in turns[:count])]
        every = self._graph.of_all_turns(asked, count).union(hidden)
        if pieces is None or arrays is None or not all(self._made.gives(self._graph.body[place]) for place in every):
            return 0
        first = self._members[0].loop
        body: Body = self._made.body
        starts = self._starts()
        rest = first.inputs[len(starts) : len(body.carried)], first.inputs[len(body.carried) + len(body.scanned) :]
        inputs = (*starts, *rest[0], *real_parts(arrays), *rest[1])
        made = self._made.another(make("loop", inputs, (body, count, False)))
        nodes = [turns[turn][place] for turn, place in asked]
        for node in nodes:
            finish_alone(node)
        self._settle(nodes, asked, varying[:count], settle)
        new = self._graph.values(made, asked, count, every)
        conditions = [reduce("min", made.every(self._graph.body[place]), (0,)) for place in hidden]
        put_before([made.node, *new, *conditions], next(node for node in turns[0] if node is not LEFT_OUT).serial)
        become(nodes, new)
        self._remember(turns[max(0, count - self._back) : count])
        self._add(made.node, pieces, asked, [*nodes, *conditions])
        checks += [(node, *self.turn.conditions[place]) for node, place in zip(conditions, hidden, strict=True)]
        notes = current_notes()
        if notes is not None:
            notes.grow(self, turns[count - 1][-1], count)
        return count * self.period

    def is_next(self, operations: Sequence[Node]) -> bool:
        """Whether operations begin with as many turns that do the same again as later ones may read."""
        recent = [[one and one() for one in turn] for turn in self._recent]
        held = self.turn.held
        return len(self.turn.matching(list(operations[: held * self.period]), recent)[0]) == held

    def _settle(self, nodes: Sequence[Node], asked: Asked, varying: Sequence[Sequence[Node]], settle: Settle) -> None:
        """Let nodes know how they lie in memory."""
        known = self._layouts if all(node.layout is None for one in varying for node in one) else None
        if known is None:
            settled(nodes, settle)
            return
        for node, (_, place) in zip(nodes, asked, strict=True):
            if place in known:
                node.layout = known[place]
            else:
                settled([node], settle)

    def _asked(self, turns: Sequence[Sequence[Node]], known: Collection[Node]) -> Asked:
        """The values that something else refers to: the function that is recorded, or what follows."""
        usual = [1 + readers for readers in self.turn.readers]
        places = [place for place in range(self.period) if place not in self.turn.hidden]
        usual_shown = [1 + usual[place] for place in places]
        found: Asked = []
        for number, turn in enumerate(turns):
            if turn.count(LEFT_OUT) == len(self.turn.hidden):
                if references([turn[place] for place in places]) == usual_shown:
                    continue
            elif references(turn) == usual:
                continue
            for place, (node, count) in enumerate(zip(turn, references(turn), strict=True)):
                if node is not LEFT_OUT and count > (own := usual[place]) and count > own + 2 * (node in known):
                    found.append((number, place))
        return found

    def _carried_out(self, turns: int) -> Asked:
        """The values that turns carry to the next ones."""
        return [(turns - 1 - back, place) for place, back in self._graph.kept if back < turns]

    def _end_of_large(self, turns: Sequence[Sequence[Node]], asked: Asked, count: int) -> int:
        """The number of turns up to one of which a large value is in use that is not in use in most others.

        It is then the last value of a loop: an array of every turn would need more memory.
        """
        read: dict[int, list[int]] = {}
        for turn, place in asked:
            read.setdefault(place, []).append(turn)
        for place, those in read.items():
            node = turns[0][place]
            if len(those) * 4 < count and (place, 0) in self._graph.kept and count * _nbytes(node) > MOST_KEPT:
                count = min(count, those[0] + 1)
        return count

    def _starts(self) -> list[Node]:
        """The values carried into the next turn."""
        recent = [[one and one() for one in turn] for turn in self._recent]
        found: list[Node] = []
        for (place, _), inside in self._graph.chains():
            for back, placeholder in enumerate(inside):
                node = recent[-1 - back][place]
                # A value that nothing refers to any more is never read.
                found.append(zeros(placeholder.shape, placeholder.dtype) if node is None else node)
        return real_parts(found)

    # ----- Scanned arrays -----

    def _pieces(self, turns: Sequence[Sequence[Node]], varying: Sequence[Sequence[Node]]) -> list[Any] | None:
        """The pieces of the scanned arrays of some turns; None if they are of another kind than before."""
        found: list[Any] = []
        for origin, first in self._graph.origins:
            if isinstance(origin, Number):
                found.append(np.array([starts_of(turn[origin.place])[origin.axis] for turn in turns], np.int64))
            elif isinstance(origin, Parts):
                found.append(np.array([starts_of(turn[origin.place]) for turn in turns], np.int64))
            else:
                values = [one[self.turn.number_of[origin.slot]] for one in varying]
                for _ in range(origin.repeated):
                    if not all(map(repeats_number, values)):
                        return None
                    values = [node.inputs[0] for node in values]
                arrays = arrays_of(values) if isinstance(first, np.ndarray) else values
                if arrays is None:
                    return None
                found.append(arrays)
        return found

    def _arrays(self, pieces: Sequence[Any]) -> list[Node] | None:
        """The scanned arrays; None if one would be too large."""
        found: list[Node] = []
        for (origin, _), piece in zip(self._graph.origins, pieces, strict=True):
            if isinstance(origin, Parts):
                node = self._slices[origin.place]
                if not is_even(node, piece) and len(piece) * node.size > MOST_GATHERED:
                    return None
                array = parts_of(node.inputs[0], node, piece)
            else:
                array = whole_of(piece)
            if array is None:
                return None
            found.append(array)
        return found

    # ----- The end -----

    def join(self) -> None:
        """Let one loop do all turns, or few of them do; arrays that they fill are written afterwards."""
        loops = self._joined()
        # What only the loops of some turns have read is gone with them.
        self._members.clear()
        alive = [node for node in [one() for one in self.kept] if node is not None]
        for loop in loops:
            fill(loop, items_of(loop, alive))

    def _joined(self) -> list[Node]:
        """Join loops as far as no large array of every turn comes of it; the loops that are left."""
        groups: list[list[_Member]] = [[]]
        turns = sum(member.turns for member in self._members)
        for member, after in pairwise([*self._members, None]):
            assert member is not None
            if member.sparse and groups[-1]:
                groups.append([])
            groups[-1].append(member)
            if after is not None and (member.sparse or _is_read(member, after, turns)):
                groups.append([])
        left: list[Node] = []
        for group in groups:
            if len(group) == 1 or self._join(group):
                left.append(group[0].loop)
            else:
                left += [member.loop for member in group]
        return left

    def _join(self, group: Sequence[_Member]) -> bool:
        """Let the first loop do the turns of all; whether it can."""
        first, last = group[0], group[-1]
        columns = list(zip(*[member.pieces for member in group], strict=True))
        pieces = [_side_by_side(column) for column in columns]
        if any(piece is None for piece in pieces):
            return False
        arrays = self._arrays(pieces)
        if arrays is None:
            return False
        body: Body = first.loop.params[0]
        old, carried, scanned = first.loop.inputs, len(body.carried), len(body.scanned)
        put_before(arrays, first.loop.serial)
        first.loop.inputs = (*old[:carried], *real_parts(arrays), *old[carried + scanned :])
        first.loop.params = (body, sum(member.turns for member in group), False)
        every: dict[int, Node] = {}
        nodes: list[Node] = []
        new: list[Node] = []
        offset = 0
        for member in group:
            for node in filter(None, [one() for one in member.items]):
                kind, position = node.params
                if kind == LAST and member is last:
                    node.inputs = (first.loop,)
                    continue
                place = body.position[body.following[position]] if kind == LAST else position
                if place not in every:
                    every[place] = item(first.loop, (EVERY, place))
                whole = every[place]
                nodes.append(node)
                if kind == LAST:
                    new.append(part_of(whole, offset + member.turns - 1))
                else:
                    ranges = ((offset, member.turns, 1), *[(0, n, 1) for n in node.shape[1:]])
                    new.append(Node(SLICE, (whole,), (ranges,), node.shape, node.dtype))
            offset += member.turns
        if not nodes:
            return True
        put_before(new, min(node.serial for node in nodes))
        where = {node: value for node, value in zip(nodes, new, strict=True) if value.primitive is SLICE}
        for part in _readers([node for node in [one() for one in self.kept] if node is not None], where):
            # A turn of one of the loops is a turn of all of them.
            value = where[part.inputs[0]]
            (start, *rest), *others = part.params[0]
            part.inputs, part.params = value.inputs, (((start + starts_of(value)[0], *rest), *others),)
        become(nodes, new)
        return True


def _side_by_side(pieces: Iterable[Any]) -> Any:
    """Pieces of several loops as one; None if they are of different kinds."""
    pieces = list(pieces)
    if all(isinstance(piece, np.ndarray) for piece in pieces):
        return np.concatenate(pieces)
    return (
        None if any(isinstance(piece, np.ndarray) for piece in pieces) else [node for piece in pieces for node in piece]
    )


def items_of(loop: Node, nodes: Sequence[Node]) -> list[Node]:
    """The items of a loop that nodes are made of."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    waiting = list(nodes)
    for node in waiting:
        if node not in seen:
            seen.add(node)
            if node.primitive is ITEM and node.inputs[0] is loop:
                found[node] = None
            elif node is not loop and node.serial > loop.serial:
                waiting += node.inputs
    return list(found)


def _readers(nodes: Iterable[Node], sources: Collection[Node]) -> list[Node]:
    """The slices of some sources that nodes are made of."""
    found: list[Node] = []
    seen: set[Node] = set()
    waiting = list(nodes)
    for node in waiting:
        if node not in seen:
            seen.add(node)
            if node.primitive is SLICE and node.inputs[0] in sources:
                found.append(node)
            elif node.primitive.kind == "movement" or node.dtype.kind == "c":
                waiting += node.inputs
    return found


def _nbytes(node: Node) -> int:
    return node.size * node.dtype.itemsize


def _is_large(node: Node) -> bool:
    """Whether an array of every turn is large; more turns will make it larger."""
    return _nbytes(node) > MOST_KEPT >> 4


def _is_read(member: _Member, after: _Member, turns: int) -> bool:
    """Whether something other than the next turns reads what is carried out of some, and it is large."""
    found = [node for node in [one() for one in member.items] if node is not None and node.params[0] == LAST]
    if not any(turns * _nbytes(node) > MOST_KEPT for node in found):
        return False
    inputs = after.loop.inputs
    own = [sum(source is node for source in inputs) for node in found]
    counts = zip(found, references(found), own, strict=True)
    return any(count > by_loop and turns * _nbytes(node) > MOST_KEPT for node, count, by_loop in counts)
