"""Planning: a place for every array of a program.

In: the kernels of fuse.py, the program's arguments and outputs. Out: a `Plan`: groups of steps in order, each step with
its kernel, its chunks and a place for every access, and the size of the one arena that all intermediates share
(lifetimes.py). Kernels that go through their rows together (stages.py) are one group; what only lives within it takes
the memory of one block of rows for each thread. A kernel on its own may overwrite an array that it reads for the last
time, element by element. Called by cpu_program.py.
Nothing here touches memory or machine code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from ..compiler.fuse import HEAVY_WEIGHT, Fused, Special
from ..compiler.loops import LIGHT, Access, Loop, Reduction, Value, normalise
from ..compiler.scalar_turns import ScalarTurns, scalar_turns
from ..compiler.special import rows_of, shared_by_threads, works_apart, workspace_bytes
from ..compiler.views import View
from ..graph.ir import Node, placeholder
from ..graph.loops.loop_body import LOOP
from ..graph.shapes import contiguous_strides
from ..graph.window_rows import multiplications
from .front import literals_of
from .lifetimes import Lifetimes, Place, aligned, in_words, nbytes
from .loop_plan import TurnPlan, turn_plan
from .overwriting import Overwriting
from .row_groups import row_span
from .stages import Stage, make_stages

PARALLEL_WORK = 6_000_000
"""Units of work from which on a step is shared by threads: about 100 microseconds on one, measured on two cores of 2.5
GHz, where waking a sleeping thread takes up to 70. A light operation on one 32-bit element is about one unit."""
SPECIAL_WORK = 8
"""Units for one element of a special kernel."""


@dataclass
class Step:
    """One kernel call."""

    kernel: Loop | Special
    places: list[Place]
    chunks: int
    step: int
    apart: tuple[int, ...] = ()
    turns: ScalarTurns | TurnPlan | None = None


@dataclass
class Group:
    """Steps that run together, chunk by chunk; a single step does all its chunks in one call."""

    steps: list[Step]
    chunks: int
    parallel: bool = False


@dataclass
class Plan:
    """All calls in order and the memory they need; `slots` is how many threads the arena has room for."""

    groups: list[Group]
    slots: int
    arena_bytes: int
    bases: list[Node]
    places: dict[Node, Place]
    literals: list[Node]
    lifetimes: dict[Node, tuple[int, int]] = field(default_factory=dict)
    unshared_bytes: int = 0
    elements: int = 0
    """About as many elements of light kernels take the same time."""
    reasons: dict[Node, str] = field(default_factory=dict)

    @property
    def steps(self) -> list[Step]:
        """All kernel calls."""
        return [step for group in self.groups for step in group.steps]

    @property
    def width(self) -> int:
        """The most places of a step."""
        return max([len(step.places) for step in self.steps], default=0)

    def where(self, node: Node) -> str:
        """The place of an array, in words."""
        return in_words(node, self.places[node], self.bases, "arena")


def _elements(step: Step) -> int:
    """A step's part of `Plan.elements`."""
    if step.turns is not None:
        return step.turns.elements
    if isinstance(step.kernel, Loop):
        return math.prod(step.kernel.shape)
    node = step.kernel.node
    return multiplications(node) or node.size * 8


def plan(
    fused: Fused,
    arguments: Sequence[Node],
    constants: Sequence[Node],
    slots: int = 1,
    apart: Mapping[Node, Place] | None = None,
) -> Plan:
    """Place every array.

    Parameters
    ----------
    fused : Fused
    arguments, constants : sequences of nodes
        Leaves whose arrays are given at each call, and once.
    slots : int
        The most threads that will share a group of steps.
    apart : mapping, optional
        Arrays that have their places already, at leaves.

    Returns
    -------
    Plan
    """
    return _Planner(fused, arguments, constants, slots, apart or {}).run()


def _work(loop: Loop) -> float:
    """The work of a loop in units: operations and accesses, by the width of what they work on."""
    work = 0
    for operation, dtype, operands, _, _ in loop.values:
        if operands:
            work += (1 if operation in LIGHT else HEAVY_WEIGHT) * dtype.itemsize
    for access in loop.accesses:
        work += 2 * access.dtype.itemsize
    return work / 4 * math.prod(loop.shape)


def combining_loop(node: Node, kind: str, chunks: int) -> Loop:
    """The kernel that reduces the results of several chunks to the value of a reduction node."""
    shape = (chunks, node.size) if node.size > 1 else (chunks,)
    axes = len(shape)
    read = View(shape, contiguous_strides(shape), 0, (None,) * axes)
    write = View(shape, (0, 1)[:axes], 0, (None,) * axes)
    return normalise(
        Loop(
            shape,
            (Value("load", node.dtype, access=0),),
            (Access(0, read, node.dtype), Access(1, write, node.dtype)),
            (),
            (Reduction(kind, 0, 1, (True, False)[:axes]),),
            (node, node),
            (node,),
        )
    )


def combining_loops(loop: Loop) -> list[Loop]:
    """Kernels like those that a loop would need if it were long enough to be done in chunks: their code is the same."""
    found: list[Loop] = []
    for reduction in loop.reductions:
        if reduction.axes[0]:
            node = loop.buffers[loop.accesses[reduction.access].buffer]
            found.append(_example(reduction.kind, node.dtype, node.size > 1))
    return found


@lru_cache
def _example(kind: str, dtype: np.dtype[Any], many: bool) -> Loop:
    """A combining loop of one value or many; the code depends on nothing else."""
    return combining_loop(placeholder((2,) if many else (), dtype), kind, 2)


class _Planner:
    def __init__(
        self,
        fused: Fused,
        arguments: Sequence[Node],
        constants: Sequence[Node],
        slots: int,
        apart: Mapping[Node, Place],
    ) -> None:
        self.slots = slots
        self.reasons = fused.reasons
        self.stages = make_stages(fused.steps)
        self.bases = [*arguments, *constants]
        self.literals = literals_of(fused.steps)
        self.lifetimes = Lifetimes(self.bases, self.literals, fused.outputs, [stage.kernels for stage in self.stages])
        self.places, self.arena = self.lifetimes.places, self.lifetimes.arena
        self.places.update(apart)
        self.groups: list[Group] = []

    def run(self) -> Plan:
        times = self.lifetimes
        for position, stage in enumerate(self.stages):
            written = [node for kernel in stage.kernels for node in kernel.targets]
            fresh = [node for node in dict.fromkeys(written) if node not in self.places]
            block = None
            if stage.rows:
                block = self._blocks(stage, {node for node in fresh if times.first[node] == times.last[node]})
            overwriting = Overwriting(stage.kernels[0]) if len(stage.kernels) == 1 else None
            for node in fresh:
                if node not in self.places:
                    times.hold(node, self._replaced(overwriting, node, times.ending(position)))
            if isinstance(stage.kernels[0], Special):
                self._special(stage.kernels[0])
            else:
                self._loops(stage)
            times.end(position)
            if block is not None:
                self.arena.give(*block)
        elements = sum(_elements(step) for group in self.groups for step in group.steps)
        lifetimes = {n: (first, times.last[n]) for n, first in times.first.items() if self.places[n].base == 0}
        return Plan(
            self.groups,
            self.slots,
            self.arena.end,
            self.bases,
            self.places,
            self.literals,
            lifetimes,
            self.arena.total,
            elements,
            self.reasons,
        )

    def _replaced(self, overwriting: Overwriting | None, node: Node, ending: Sequence[Node]) -> Node | None:
        """An array that a kernel reads for the last time, and whose memory what it writes may take."""
        if overwriting is None:
            return None
        for dead in ending:
            fits = (
                dead in self.lifetimes.held and dead is not node and dead.dtype == node.dtype and dead.size == node.size
            )
            if fits and overwriting.may(node, dead):
                return dead
        return None

    def _blocks(self, stage: Stage, within: set[Node]) -> tuple[int, int] | None:
        """Place what lives within a stage in memory for one block of rows, for each thread."""
        sizes: dict[Node, int] = {}
        for kernel in stage.kernels:
            assert isinstance(kernel, Loop)
            sums = {r.access for r in kernel.reductions if r.axes[0]}
            for position, access in enumerate(kernel.accesses):
                node = kernel.buffers[access.buffer] if access.buffer >= 0 else None
                if node is not None and node in within and position not in sums:
                    step = row_span(kernel, access, stage.factor(kernel))[0]
                    sizes[node] = step * stage.block * node.dtype.itemsize
                elif node is not None and position in sums:
                    within.discard(node)
        sizes = {node: size for node, size in sizes.items() if node in within}
        if not sizes:
            return None
        starts: dict[Node, int] = {}
        total = 0
        for node, size in sizes.items():
            starts[node] = total
            total += aligned(size)
        block = self.arena.take(total * self.slots)
        for node, start in starts.items():
            self.places[node] = Place(0, block[0] + start, sizes[node], total)
        return block

    def _access_place(self, node: Node, view: View) -> Place:
        place = self.places[node]
        if not view.offset:
            return place
        return Place(place.base, place.offset + view.offset * node.dtype.itemsize, place.shift, place.apart)

    def _loops(self, stage: Stage) -> None:
        """The steps of a stage, and those that combine what its chunks have summed."""
        steps: list[Step] = []
        after: list[Group] = []
        held: list[tuple[int, int]] = []
        work = 0.0
        chunks = 1
        for kernel in stage.kernels:
            assert isinstance(kernel, Loop)
            if 0 in kernel.shape:
                continue
            work += _work(kernel)
            if stage.rows:
                chunks, step = -(-stage.rows // stage.block), stage.block * stage.factor(kernel)
            else:
                chunks, step = kernel.chunks
            temporary: dict[int, Place] = {}
            apart = [0] * len(kernel.reductions)
            for position, reduction in enumerate(kernel.reductions):
                if chunks > 1 and reduction.axes[0]:
                    node = kernel.buffers[kernel.accesses[reduction.access].buffer]
                    block = self.arena.take(chunks * nbytes(node))
                    held.append(block)
                    temporary[reduction.access] = Place(0, block[0])
                    apart[position] = node.size
                    combine = combining_loop(node, reduction.kind, chunks)
                    places = [temporary[reduction.access], self.places[node]]
                    after.append(Group([Step(combine, places, 1, combine.shape[0], (0,))], 1))
            places = [
                temporary[position]
                if position in temporary
                else self._access_place(kernel.buffers[access.buffer], access.view)
                for position, access in enumerate(kernel.accesses)
                if access.buffer >= 0
            ]
            steps.append(Step(kernel, places, chunks, step, tuple(apart)))
        if steps:
            self.groups.append(Group(steps, chunks, chunks > 1 and work >= PARALLEL_WORK))
            self.groups.extend(after)
        for block in held:
            self.arena.give(*block)

    def _special(self, kernel: Special) -> None:
        if kernel.node.size == 0:
            return
        places = [self._access_place(s, v) for s, v in zip(kernel.reads, kernel.views, strict=True)]
        turns: ScalarTurns | TurnPlan | None = None
        if kernel.node.primitive is LOOP:
            turns = scalar_turns(kernel) or turn_plan(kernel, plan, self.slots)
        extra = turns.workspace if isinstance(turns, TurnPlan) else 0 if turns else workspace_bytes(kernel)
        apart = aligned(extra) if works_apart(kernel) else 0
        block = self.arena.take(apart * self.slots or extra) if extra else None
        if block is not None:
            places.append(Place(0, block[0], 0, apart))
        rows = rows_of(kernel)
        heavy = rows > 1 and kernel.node.size * SPECIAL_WORK >= PARALLEL_WORK
        parallel = heavy or shared_by_threads(kernel)
        places += [self.places[node] for node in kernel.targets]
        self.groups.append(Group([Step(kernel, places, rows, 1, turns=turns)], rows, parallel))
        if block is not None:
            self.arena.give(*block)
