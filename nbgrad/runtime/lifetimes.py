"""Lifetimes: when each array of a program is first and last used, and the place that it has meanwhile.

In: the leaves, literals and outputs of a program, and its kernels in the order of their run. Out: `Lifetimes`, with a
`Place` for every array that has one; a plan asks it for memory as it goes through the kernels. Arrays share memory if
they do not live at the same time. Called by cpu_plan.py and device_plan.py. Nothing here touches memory.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..compiler.fuse import Special
from ..compiler.loops import Loop
from ..graph.ir import Node

ALIGNMENT = 64
"""Arrays in the arena begin at multiples of this many bytes."""


class Place(NamedTuple):
    """A position in memory: a base (0 is the arena, then arguments, constants, literals, outputs), an offset in bytes.

    An array of which only a block of rows exists lies `shift` bytes lower for each block and `apart` bytes higher for
    each thread.
    """

    base: int
    offset: int
    shift: int = 0
    apart: int = 0


@dataclass
class Arena:
    """A first-fit allocator over time."""

    end: int = 0
    free: list[tuple[int, int]] = field(default_factory=list)
    total: int = 0

    def take(self, size: int) -> tuple[int, int]:
        """The start and the size of a part that was free."""
        size = max(ALIGNMENT, aligned(size))
        self.total += size
        for position, (start, room) in enumerate(self.free):
            if room >= size:
                if room == size:
                    del self.free[position]
                else:
                    self.free[position] = (start + size, room - size)
                return start, size
        start = self.end
        if self.free and sum(self.free[-1]) == self.end:
            start = self.free.pop()[0]
        self.end = start + size
        return start, size

    def give(self, start: int, size: int) -> None:
        """Make a part free again."""
        at = bisect(self.free, (start, size))
        if at < len(self.free) and self.free[at][0] == start + size:
            size += self.free.pop(at)[1]
        if at and sum(self.free[at - 1]) == start:
            before = self.free.pop(at - 1)
            start, size, at = before[0], before[1] + size, at - 1
        self.free.insert(at, (start, size))


class Lifetimes:
    """The places of arrays, while kernels are planned in order.

    Parameters
    ----------
    bases : sequence of nodes
        Arguments and constants.
    literals, outputs : sequences of nodes
    units : sequence of sequences of kernels
        Kernels that run at the same time, in order; their positions are the time.
    """

    def __init__(
        self,
        bases: Sequence[Node],
        literals: Sequence[Node],
        outputs: Sequence[Node],
        units: Sequence[Sequence[Loop | Special]],
    ) -> None:
        pool = 1 + len(bases)
        self.places: dict[Node, Place] = {node: Place(1 + k, 0) for k, node in enumerate(bases)}
        self.places.update({node: Place(pool, 8 * k) for k, node in enumerate(literals)})
        self.places.update({node: Place(pool + 1 + k, 0) for k, node in enumerate(outputs)})
        self.first: dict[Node, int] = {}
        self.last: dict[Node, int] = {}
        for position, unit in enumerate(units):
            for kernel in unit:
                for nodes in (kernel.reads, kernel.targets):
                    for node in nodes:
                        if node not in self.first:
                            self.first[node] = position
                        self.last[node] = position
        self._ending: dict[int, list[Node]] = {}
        for node, position in self.last.items():
            self._ending.setdefault(position, []).append(node)
        self.arena = Arena()
        self.held: dict[Node, tuple[int, int]] = {}
        """Parts of the arena that arrays have now."""

    def ending(self, position: int) -> Sequence[Node]:
        """The arrays that are used at a position for the last time."""
        return self._ending.get(position, ())

    def hold(self, node: Node, dead: Node | None = None) -> None:
        """Give an array a part of the arena, that of a dead one if there is one."""
        self.held[node] = self.arena.take(nbytes(node)) if dead is None else self.held.pop(dead)
        self.places[node] = Place(0, self.held[node][0])

    def end(self, position: int) -> None:
        """Give back the parts of arrays that end at a position."""
        for node in self.ending(position):
            if node in self.held:
                self.arena.give(*self.held.pop(node))


def in_words(node: Node, place: Place, bases: Sequence[Node], arena: str) -> str:
    """The place of an array, for `explain`; `arena` is the name of the memory for intermediates."""
    outputs = 2 + len(bases)
    if place.shift:
        return f"{arena}[{place.offset}:{place.offset + place.shift}] (a block of rows for each thread)"
    if place.base == 0:
        return f"{arena}[{place.offset}:{place.offset + nbytes(node)}]"
    if place.base < outputs - 1 and node.inputs:
        return f"file[{place.offset}:{place.offset + nbytes(node)}]"
    if place.base < outputs - 1:
        return f"{bases[place.base - 1].name} {place.base - 1}"
    return "literals" if place.base < outputs else f"output {place.base - outputs}"


def aligned(size: int) -> int:
    """A size up to the next array."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def nbytes(node: Node) -> int:
    """Bytes of a node's array."""
    return node.size * node.dtype.itemsize
