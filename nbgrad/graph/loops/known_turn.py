"""A turn of a loop that was found: its operations, and where each of their operands stands.

In: the graph of a turn, with the stretch that it was made of. Out: a `KnownTurn`, which says whether operations that
are recorded later are the same turn again, all at once or one by one. Called by growth.py and follower.py.

An operation is the same if its primitive and parameters are, and each operand is where it was: at the same place of the
turn, so many turns ago, the same constant, or anything where operands vary.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any

from ..ir import Node
from .alignment import SAME, VARYING
from .repetition import atom_key, fixed_part, starts_of
from .turn_graph import TurnGraph


class KnownTurn:
    """The common structure of a loop's turns.

    Attributes
    ----------
    period : int
        Operations of a turn.
    back : int
        The most turns between an operation and one that reads it.
    held : int
        How many turns a follower needs before the next one; at least one.
    readers : list of int
        How often operations of turns read that of each place.
    number_of : dict
        The number of each operand that varies, among those.
    hidden : set of int
        Places that are `LEFT_OUT` in turns of which only the results of calls were made (follower.py).
    conditions : dict
        Of these, the places that must be true, with the message and class of the error.
    """

    def __init__(self, graph: TurnGraph, turn: Sequence[Node]) -> None:
        stretch = graph.stretch
        self.period = period = stretch.period
        self._primitives = [node.primitive for node in turn]
        self._params = [node.params for node in turn]
        self._counts = [len(node.inputs) for node in turn]
        self._moving = {place: (fixed_part(turn[place]), starts_of(turn[place]), axes) for place, axes in graph.axes}
        self._kinds, self._places = stretch.kinds, stretch.places
        self.back = max([kind for kind in stretch.kinds if kind > SAME], default=0)
        self.held = max(self.back, 1)
        operands = [(place, number) for place, node in enumerate(turn) for number in range(len(node.inputs))]
        self._first_slot = [0, *accumulate(self._counts)]
        self._constants: list[Node | None] = [None]
        self._by_value: list[tuple[int, Node, Any]] = []
        self._varying: dict[int, tuple[int, Any, Any]] = {}
        self._varying_at: list[tuple[int, int]] = []
        self.readers = [0] * period
        self.hidden: set[int] = set()
        self.conditions: dict[int, tuple[str, type[Exception]]] = {}
        where: list[tuple[int, int]] = []
        columns: dict[bytes, int] = {}
        for slot, (kind, target) in enumerate(zip(stretch.kinds, stretch.places, strict=True)):
            if kind >= SAME:
                self.readers[target] += 1
                where.append(((self.back - kind) * period + target, 1))
            elif kind == VARYING:
                same = columns.setdefault(stretch.operands[:, slot].tobytes(), slot)
                place, number = operands[slot]
                source = turn[place].inputs[number]
                self._varying[slot] = same, source.shape, source.dtype
                self._varying_at.append((place, number))
                where.append((0, 0))
            else:
                node = graph.outer(int(stretch.operands[0, slot]))
                key = atom_key(node)
                if key is not node:
                    self._by_value.append((slot, node, key))
                where.append((len(self._constants), 0))
                self._constants.append(node)
        self.number_of = {slot: number for number, slot in enumerate(self._varying)}
        self._constant_of = {slot: self._constants[k] for slot, (k, inside) in enumerate(where) if not inside}
        positions = [k + len(self._constants) * inside for k, inside in where]
        self._operands_in = itemgetter(0, *positions)

    # ----- Whole turns -----

    def matching(
        self, operations: list[Node], recent: Sequence[Sequence[Node | None]], known: int = 0
    ) -> tuple[list[list[Node]], list[list[Node]]]:
        """The turns that are the same, and their varying operands.

        Parameters
        ----------
        operations : list of nodes
            What was recorded.
        recent : list of lists of nodes
            The turns before, as many as turns may read of.
        known : int
            How many of the operations are known to be the same: in these turns, some are left out.
        """
        period = self.period
        turns = [list(operations[k : k + period]) for k in range(0, known - period + 1, period)]
        varying = [[turn[place].inputs[number] for place, number in self._varying_at] for turn in turns]
        recent = [*recent, *turns][len(turns) :]
        while (len(turns) + 1) * period <= len(operations):
            turn = list(operations[len(turns) * period : (len(turns) + 1) * period])
            values = self._varying_operands(turn, recent)
            if values is None:
                break
            turns.append(turn)
            varying.append(values)
            recent = [*recent, turn][1:] if recent else recent
        return turns, varying

    def _varying_operands(self, turn: Sequence[Node], recent: Sequence[Sequence[Node | None]]) -> list[Node] | None:
        """The operands that vary, if all else in a turn is the same; otherwise None."""
        if [node.primitive for node in turn] != self._primitives or [len(n.inputs) for n in turn] != self._counts:
            return None
        params = [node.params for node in turn]
        for place in self._moving:
            if not self._moves(place, turn[place]):
                return None
            params[place] = self._params[place]
        if params != self._params:
            return None
        operands: list[Node | None] = [source for node in turn for source in node.inputs]
        varying: list[Node] = []
        for slot, (same, shape, dtype) in self._varying.items():
            node = operands[slot]
            assert node is not None
            if node.shape != shape or node.dtype != dtype:
                return None
            if same != slot and atom_key(node) != atom_key(varying[self.number_of[same]]):
                return None
            varying.append(node)
            operands[slot] = None
        for slot, node, key in self._by_value:
            other = operands[slot]
            if other is not node and (other is None or atom_key(other) != key):
                return None
            operands[slot] = node
        pool = [*self._constants, *chain.from_iterable(recent), *turn]
        return varying if (None, *operands) == self._operands_in(pool) else None

    def _moves(self, place: int, node: Node) -> bool:
        """Whether an operation differs from that of a place only where it may start elsewhere in each turn."""
        form, starts, axes = self._moving[place]
        return fixed_part(node) == form and all(
            a in axes or now == start for a, (now, start) in enumerate(zip(starts_of(node), starts, strict=True))
        )

    # ----- Single operations -----

    def fits(self, operations: Sequence[Node], at: int) -> bool:
        """Whether an operation is the same, in a list of operations that begins with a turn and is the same so far.

        There must be as many turns before it as it may read of.
        """
        place = at % self.period
        begin = at - place
        node = operations[at]
        if node.primitive is not self._primitives[place] or len(node.inputs) != self._counts[place]:
            return False
        if not (self._moves(place, node) if place in self._moving else node.params == self._params[place]):
            return False
        for slot, source in enumerate(node.inputs, self._first_slot[place]):
            kind = self._kinds[slot]
            if kind >= SAME:
                if operations[begin + self._places[slot] - kind * self.period] is not source:
                    return False
            elif kind == VARYING:
                same, shape, dtype = self._varying[slot]
                place_of, number = self._varying_at[self.number_of[same]]
                first = operations[begin + place_of].inputs[number]
                if source.shape != shape or source.dtype != dtype or atom_key(source) != atom_key(first):
                    return False
            else:
                constant = self._constant_of[slot]
                if source is not constant and (constant is None or atom_key(source) != atom_key(constant)):
                    return False
        return True

    def steady_inputs(self, at: int) -> list[int | None] | None:
        """Where the operands of an operation are, counted from it: 0 for a constant, None for one that varies.

        None for all of them if a part starts elsewhere in each turn.
        """
        place = at % self.period
        kinds = self._kinds[self._first_slot[place] : self._first_slot[place + 1]]
        places = self._places[self._first_slot[place] : self._first_slot[place + 1]]
        if place in self._moving:
            return None
        return [
            None if kind == VARYING else where - place - kind * self.period if kind >= SAME else 0
            for kind, where in zip(kinds, places, strict=True)
        ]

    def same_as(self, at: int, number: int) -> tuple[int, int]:
        """For an operand that varies, the first one of the turn that is the same in all turns.

        How far its reader is from this one, and its number among that one's operands: 0 and the number itself if there
        is none before it.
        """
        place = at % self.period
        same = self._varying[self._first_slot[place] + number][0]
        reader, number = self._varying_at[self.number_of[same]]
        return reader - place, number
