"""The most turns of loops that end by a value, where one number has to serve many values.

In: the ends of loops that were given room for some turns. Out: nothing where the room was enough; else an exception,
by which the outermost loop is made again with other room. While `jit` records, the room becomes a guard: up to twice as
many turns as a call needs, so that a number of specializations that grows as the logarithm serves all calls. Called by
while_loops.py, scan.py and recorded_turn.py.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..graph.batch import batch_further
from ..graph.builders import reduce
from ..graph.ir import Node, constant, elementwise, on_host
from ..graph.trace import Trace, current_trace, open_traces
from ..runtime.evaluate import computed

Made = TypeVar("Made")

FEW = 16
"""The turns that a loop is given at first, where its number cannot be counted beforehand."""
LEAST = 4
"""The least room in a compiled function."""


@dataclass
class Room:
    """The most turns of the loops of one place in the code; `final` once the number that is needed is known."""

    turns: int = FEW
    final: bool = False


@dataclass
class End:
    """The end of a loop: whether it would go on, the turns that it made, its place, and the room that it had."""

    still: Node
    count: Node
    place: Hashable
    room: int


class MoreTurns(BaseException):
    """A loop inside another needs other room; nothing of users' shall catch it."""

    def __init__(self, place: Hashable, room: Room) -> None:
        super().__init__()
        self.place, self.room = place, room


_rooms: ContextVar[dict[Hashable, Room] | None] = ContextVar("nbgrad_rooms", default=None)


def with_room(make: Callable[[], Made]) -> Made:
    """Make a loop, again and again until all loops inside it have room for their turns."""
    if _rooms.get() is not None and is_in_turn():
        return make()
    rooms: dict[Hashable, Room] = {}
    token = _rooms.set(rooms)
    try:
        while True:
            try:
                return make()
            except MoreTurns as more:
                rooms[more.place] = more.room
    finally:
        _rooms.reset(token)


def room_of(place: Hashable) -> int:
    """The most turns of the loops of a place."""
    rooms = _rooms.get()
    return (rooms or {}).get(place, Room()).turns


def is_in_turn() -> bool:
    """Whether a turn of a loop is being recorded."""
    return any(trace.turn_ends is not None for trace in open_traces())


def serves_many(node: Node) -> bool:
    """Whether a node has several values at once, in `vmap` or in the turns of a loop."""
    return any((trace.mapping or trace.turn_ends is not None) and trace.owns(node) for trace in open_traces())


def rounded(turns: int) -> int:
    """The room of a compiled function for so many turns: a power of two."""
    return max(LEAST, 1 << max(turns - 1, 0).bit_length())


def check_end(end: End) -> None:
    """Check that a loop had room for all its turns, and not too much.

    Raises
    ------
    MoreTurns
        Otherwise.
    """
    still, count = end.still, end.count
    for trace in open_traces():
        if trace.turn_ends is not None and (trace.owns(still) or trace.owns(count)):
            trace.turn_ends.append(End(still, count, end.place, end.room))
            return
        if trace.mapping and (trace.owns(still) or trace.owns(count)):
            still, count = (
                reduce("max", node, (0,)) for node in batch_further([still, count], trace.batched, trace.size)
            )
    trace = current_trace()
    compiled = trace is not None and trace.guards is not None and trace.varies(still)
    known = (_rooms.get() or {}).get(end.place, Room(end.room))
    if bool(on_host(computed(still))):
        raise MoreTurns(end.place, Room(4 * end.room, known.final))
    turns = int(on_host(computed(count)))
    wanted = rounded(turns) if compiled else max(turns, 1)
    if not known.final and wanted != end.room:
        raise MoreTurns(end.place, Room(wanted, final=True))
    if compiled:
        guard_room(trace, still, count, end.room)


def guard_room(trace: Trace | None, still: Node, count: Node, room: int) -> None:
    """Let a compiled function serve the calls that have room for their turns, and need more than half of it."""
    assert trace is not None and trace.guards is not None
    trace.guards.append((still, np.array(False)))
    # The same condition in all rooms, on a number that is no part of the code.
    least = constant(np.array(room // 2 if room > LEAST else -1))
    more = elementwise("greater", count, least)
    trace.guards.append((more, np.array(bool(on_host(computed(more))))))


def place_of(*functions: Any) -> Hashable:
    """The place in the code that functions of users come from."""
    return tuple([getattr(function, "__code__", None) or type(function) for function in functions])
