"""Loops on devices, planned: the body as a plan of its own, and where its arrays are in each turn.

In: a `Special` whose node is a loop. Out: a `DeviceTurns`: the plan of the body, the scratch memory of the loop, and
tables of addresses, a row for each turn. Called by device_plan.py, which passes its own function for bodies;
device_segments.py runs the turns. The counterpart of loop_plan.py, which says what goes where. Nothing here touches
memory. `device_front`, which chooses what becomes a loop, is for device_program.py too.

A loop of few operations in all turns together is written out instead: then turns are fused, and more kernels may run
as one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..compiler.fuse import Special
from ..compiler.sorted_values import sorted_on_device
from ..device.kernels.sorts import by_digits
from ..graph.ir import Node
from ..graph.loops.loop_body import Body, is_reversed, turns_of
from ..graph.loops.loop_rewrites import written_out
from ..graph.window_rows import without_convolutions
from .front import Front, front
from .lifetimes import aligned, nbytes
from .loop_plan import Written, what_turns_write

ALIGNMENT = 16
"""Kernels may read several elements at once of arrays that begin at multiples of this many bytes."""
WRITTEN_OUT, FUSED = 100, 400
"""A loop is written out up to this many nodes in all turns; up to the second number if they become one kernel."""
ROWS = 4096
"""Turns of a table of addresses."""


def is_short(loop: Node) -> bool:
    """Whether a loop is written out."""
    body: Body = loop.params[0]
    fused = all(node.primitive.kind in ("source", "elementwise") or node.name == "broadcast" for node in body.nodes)
    return turns_of(loop) * max(1, len(body.nodes)) <= (FUSED if fused else WRITTEN_OUT)


def device_front(outputs: Sequence[Node], arguments: Sequence[Node]) -> Front:
    """The kernels of a graph of what devices have kernels for: of a program, or of the body of a loop."""
    graph = without_convolutions(written_out(outputs, is_short))
    return front(graph, arguments, partial(sorted_on_device, by_digits=by_digits), copies=False)


def anywhere(constants: Sequence[Node]) -> frozenset[Node]:
    """Of some constants, other libraries' arrays that begin elsewhere than at a multiple of `ALIGNMENT`."""
    return frozenset([node for node in constants if getattr(node.value, "pointer", 0) % ALIGNMENT])


@dataclass
class DeviceTurns:
    """A loop's body, planned; `plan` is a `DevicePlan`.

    Its operands are what the loop reads, its scratch memory, and its items, in the order of `loop_plan`'s pointers.
    """

    kernel: Special
    front: Front
    plan: Any
    written: list[Written]
    carried: list[int]
    copies: list[tuple[int, int]]
    firsts: list[tuple[int, int]]
    arena: int
    workspace: int

    @property
    def count(self) -> int:
        """The number of turns."""
        return turns_of(self.kernel.node)

    def _at(self, turn: Any) -> Any:
        """The position of turns along arrays of every turn."""
        return self.count - 1 - turn if is_reversed(self.kernel.node) else turn

    def _target(self, one: Written, turn: np.ndarray, pointers: np.ndarray) -> np.ndarray:
        """The addresses that a value is written to in turns."""
        size = nbytes(one.node)
        if one.every >= 0:
            return pointers[one.every] + self._at(turn) * size
        found = pointers[len(self.kernel.reads)] + one.buffers + (turn & 1) * aligned(size)
        final = turn == self.count - 1
        if one.before >= 0:
            found = np.where(final, found, pointers[one.before] + self._at(turn + 1) * size)
        return np.where(final, pointers[one.last], found) if one.last >= 0 else found

    def tables(self, pointers: Sequence[int], fixed: Sequence[int]) -> Iterator[np.ndarray]:
        """The addresses of the body's bases, a row for each turn.

        Parameters
        ----------
        pointers : sequence of int
            Of the operands.
        fixed : sequence of int
            Of the body's constants and literals.
        """
        body: Body = self.kernel.node.params[0]
        given = np.array(pointers, np.int64)
        scratch, inputs = given[len(self.kernel.reads)], len(body.inputs)
        first = 1 + inputs + len(fixed)
        for start in range(0, self.count, ROWS):
            turn = np.arange(start, min(start + ROWS, self.count))
            table = np.empty((len(turn), first + len(self.written)), np.int64)
            table[:, 0] = scratch + self.arena
            table[:, 1 + inputs : first] = fixed
            for number, one in enumerate(self.written):
                table[:, first + number] = self._target(one, turn, given)
            for position, node in enumerate(body.inputs):
                table[:, 1 + position] = given[position]
                if body.is_scanned(position):
                    table[:, 1 + position] += self._at(turn) * nbytes(node)
                elif position < len(self.carried):
                    later = turn[turn > 0]
                    table[turn > 0, 1 + position] = self._target(self.written[self.carried[position]], later - 1, given)
            yield table

    def beginnings(self, pointers: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """(target, source, bytes) of what is copied before the first turn."""
        body: Body = self.kernel.node.params[0]
        for target, number in self.firsts if self.count else ():
            size = nbytes(body.carried[number])
            yield pointers[target] + self._at(0) * size, pointers[number], size

    def endings(self, pointers: Sequence[int], last: np.ndarray) -> Iterator[tuple[int, int, int]]:
        """(target, source, bytes) of what is copied after the last turn, whose row of the table is given."""
        for target, number in self.copies:
            yield pointers[target], int(last[len(last) - len(self.written) + number]), nbytes(self.written[number].node)


def _apart(
    kernel: Special, made: Front, written: Sequence[Written], carried: Sequence[int], outside: Collection[Node]
) -> frozenset[Node]:
    """The arrays of a body that may begin elsewhere than at a multiple of `ALIGNMENT`, as those `outside` do."""
    body: Body = kernel.node.params[0]
    first = len(kernel.reads) + 1
    given = {first + k for k, node in enumerate(kernel.targets) if node in outside}
    moving = [
        (max(one.every, one.before) >= 0 and nbytes(one.node) % ALIGNMENT > 0)
        or not given.isdisjoint((one.every, one.before, one.last))
        for one in written
    ]
    found = {node for node, moves in zip(made.fused.outputs, moving, strict=True) if moves}
    for position, (node, source, view) in enumerate(zip(made.arguments, kernel.reads, kernel.views, strict=True)):
        carries = position < len(carried) and moving[carried[position]]
        scans = body.is_scanned(position) and nbytes(node) % ALIGNMENT > 0
        if carries or scans or source in outside or view.offset * node.dtype.itemsize % ALIGNMENT:
            found.add(node)
    return frozenset(found) | anywhere(made.constants)


def device_turns(kernel: Special, plan: Callable[..., Any], outside: Collection[Node]) -> DeviceTurns:
    """Plan the body of a loop for the items that something reads.

    Parameters
    ----------
    kernel : Special
    plan : callable
        Makes a plan of kernels, arguments, constants, and the arrays that begin anywhere.
    outside : collection of nodes
        The arrays around the loop that begin anywhere.
    """
    body: Body = kernel.node.params[0]
    written, carried, copies, firsts = what_turns_write(kernel, body)
    made = device_front([one.node for one in written], body.inputs)
    end = 0
    for number in set(carried):
        one = written[number]
        if one.every < 0:
            one.buffers, end = end, end + 2 * aligned(nbytes(one.node))
    apart = _apart(kernel, made, written, carried, outside)
    inner = plan(made.fused, made.arguments, made.constants, apart)
    return DeviceTurns(kernel, made, inner, written, carried, copies, firsts, end, end + inner.bytes)
