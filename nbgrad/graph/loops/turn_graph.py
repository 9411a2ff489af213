"""The graph of one turn, made of a stretch of turns that are alike.

In: a `Stretch` of alignment.py. Out: a `TurnGraph`: the body over placeholders, with all that is carried, scanned, or
the same in all turns, and the loop of it. Called by rolling.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np

from ..batch import batch_further
from ..formulas import padded_at, part_at, write_at
from ..ir import Node, broadcast, constant, with_inputs, zeros
from .alignment import CONSTANT as SAME_IN_ALL
from .alignment import SAME, VARYING, Stretch
from .loop_body import ITEM, LoopNodes, like, make_loop
from .origins import walked
from .repetition import PAD, SLICE, WRITE, Recording, repeats_number
from .scanned_parts import (
    MOST_GATHERED,
    RESHAPE,
    Number,
    Origin,
    Parts,
    Varied,
    arrays_of,
    is_even,
    part_of,
    parts_of,
    slice_under,
    whole_of,
)

MOST_KEPT = 1 << 24
"""Bytes of an array of every turn of which only a few turns are read."""


class TurnGraph:
    """The body of a loop: `body` has a node for each place of a turn.

    `kept` has the number of the carried value that is a place's value of some turns ago, at the end. `only_moves` says
    that elements are moved and nothing is computed.
    """

    def __init__(self, recording: Recording, stretch: Stretch) -> None:
        self.recording, self.stretch = recording, stretch
        self.body: list[Node] = []
        self.scanned: list[tuple[Node, Node]] = []
        self.origins: list[tuple[Origin, Any]] = []
        """Where the scanned arrays come from, and what they are made of."""
        self.axes: list[tuple[int, list[int]]] = []
        """Places of slices, pads and writes that start elsewhere in other turns, and the axes along which."""
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
        turn = recording.nodes[stretch.start : stretch.start + stretch.period]
        for place, _ in enumerate(walked(turn)):
            node = made._node(place)
            if node is None:
                return None
            made.body.append(node)
        made._number_chains()
        made.only_moves = not made._chains and all(n.primitive.kind == "movement" or n.primitive is ITEM for n in turn)
        moving = made.of_parts and any(node.primitive is not RESHAPE for node in turn)
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
        self.axes.append((place, axes))
        if node.primitive is SLICE:
            fixed = stretch.kinds[int(recording.first[at] - recording.first[stretch.start])] == SAME_IN_ALL
            if fixed and (is_even(node, numbers) or stretch.turns * node.size <= MOST_GATHERED):
                return self._scan(parts_of(operands[0], node, numbers), Parts(place), numbers)
        starts = self._numbers(place, numbers)
        if node.primitive is PAD:
            return padded_at(operands[0], node.shape, starts)
        varying = [starts[axis] for axis in axes]
        if node.primitive is WRITE:
            return write_at(operands[0], operands[1], node.params[0], axes, varying)
        return part_at(operands[0], node.params[0], axes, varying)

    def _operand(self, slot: int) -> Node | None:
        kind, stretch = self.stretch.kinds[slot], self.stretch
        column = stretch.operands[:, slot]
        if kind == SAME:
            return self.body[stretch.places[slot]]
        if kind == SAME_IN_ALL:
            return self.outer(int(column[0]))
        if kind == VARYING:
            key = column.tobytes()
            known = self._varying.get(key)
            if known is None:
                values = [self.outer(k) for k in column.tolist()]
                self.of_parts = self.of_parts or slice_under(values[0]) is not None
                known = self._varied(slot, values)
                if known is not None:
                    self._varying[key] = known
            return known
        place = stretch.places[slot]
        starts = tuple(column[:kind].tolist())
        chain = self._chains.get((place, starts))
        if chain is None:
            one = self.recording.nodes[stretch.start + place]
            if one.dtype.kind == "O":
                # Loops are not carried, only what they give.
                return None
            chain = self._chains[place, starts] = [like(one) for _ in range(kind)]
        return chain[kind - 1]

    def outer(self, position: int) -> Node:
        """An operation before the loop, or an atom."""
        return self.recording.nodes[position] if position >= 0 else self.recording.atoms[-1 - position]

    def _scan(self, whole: Node, origin: Origin, pieces: Any) -> Node:
        """A placeholder for one turn's part of an array, which was made of pieces."""
        inside = like(whole, whole.shape[1:])
        self.scanned.append((inside, whole))
        self.origins.append((origin, pieces))
        return inside

    def _numbers(self, place: int, rows: np.ndarray) -> list[Node]:
        """Placeholders for columns of numbers."""
        columns = [np.ascontiguousarray(column) for column in rows.T]
        return [self._scan(constant(c), Number(place, axis), c) for axis, c in enumerate(columns)]

    def _varied(self, slot: int, values: Sequence[Node], repeated: int = 0) -> Node | None:
        """A placeholder for values that differ from turn to turn."""
        one = values[0]
        if any((node.shape, node.dtype) != (one.shape, one.dtype) for node in values):
            return None
        if all(map(repeats_number, values)):
            inner = self._varied(slot, [node.inputs[0] for node in values], repeated + 1)
            return None if inner is None else broadcast(inner, one.shape)
        arrays = arrays_of(values)
        pieces = list(values) if arrays is None else arrays
        whole = whole_of(pieces)
        if whole is None:
            return None
        if arrays is not None:
            whole.tensor, whole.place = one.tensor, one.place
        return self._scan(whole, Varied(slot, repeated), pieces)

    # ----- The loop -----

    def _number_chains(self) -> None:
        number = 0
        for (place, _), chain in self._chains.items():
            for back in range(len(chain)):
                self.kept.setdefault((place, back), number + back)
            number += len(chain)
        self._count = number

    def chains(self) -> Iterable[tuple[tuple[int, tuple[int, ...]], list[Node]]]:
        """The carried values of each place: those of the turn before, of the one before that, and so on."""
        return self._chains.items()

    def forget(self) -> None:
        """Let go of the recording, which is only needed until the loop is made."""
        del self.recording, self.stretch
        self._varying.clear()

    def of_all_turns(self, asked: Iterable[tuple[int, int]], turns: int) -> set[int]:
        """The places of which the loop must give every turn, if values are asked for (by turn and place).

        Others are carried to its end anyway.
        """
        return {place for turn, place in asked if (place, turns - 1 - turn) not in self.kept}

    def carry(self, place: int) -> None:
        """Let the loop carry the value that a place has in the last turn to its end."""
        self.kept[place, 0] = self._count
        self._count += 1
        self._added.append(place)

    def values(self, made: LoopNodes, asked: Iterable[tuple[int, int]], turns: int, every: Set[int]) -> list[Node]:
        """The values that are asked for, from a loop of so many turns, which gives some places in every turn."""
        whole = {place: made.every(self.body[place]) for place in sorted(every)}
        return [
            part_of(whole[place], turn) if place in whole else made.last(self.kept[place, turns - 1 - turn])
            for turn, place in asked
        ]

    def loop(self, every: Iterable[int]) -> LoopNodes:
        """The loop, which gives the values of some places for every turn."""
        carried: list[tuple[Node, Node, Node]] = []
        for (place, starts), chain in self._chains.items():
            after = self.body[place]
            for back, inside in enumerate(chain):
                carried.append((inside, self.outer(starts[len(chain) - 1 - back]), after))
                after = inside
        for place in self._added:
            node = self.body[place]
            carried.append((like(node), zeros(node.shape, node.dtype), node))
        results = [self.body[place] for place in every]
        return make_loop(self.stretch.turns, carried, self.scanned, results=results)
