"""Planning for devices: kernels that run as one, and a place for every array of a program.

In: the kernels of fuse.py, the program's arguments and constants. Out: a `DevicePlan`: actions in order, each with a
place for every pointer, and the size of the one block of memory that all intermediates share. Called by
device_program.py. Nothing here touches memory or machine code.

Loops over the same rows, of which one reduces each row and another one reads that, become one kernel: so a softmax or a
layer norm reads its data from memory once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..compiler.fuse import Fused, Special
from ..compiler.loops import Loop
from ..compiler.views import View
from ..device.kernels import grid_loops as loops
from ..device.kernels import row_passes
from ..device.kernels.launches import Fill, Launch, Recipe, Routine
from ..device.memory.arrays import Device
from ..graph.ir import Node
from ..graph.loops.loop_body import LOOP
from .device_turns import DeviceTurns, device_turns
from .front import literals_of
from .lifetimes import Arena, Lifetimes, Place, in_words
from .row_groups import Kernel, Limits, RowGroup, grouped

FEWEST_ROW_ELEMENTS = 32
"""Shorter rows are no work for a warp."""
SMALL = 1 << 16
"""So many elements are done by few blocks, whatever the rows are."""
MOST_PARTS = 24


class Planned(NamedTuple):
    """An action of a unit (by its number), and where its pointers lie: a base, as `Place` has it, and an offset."""

    action: Launch | Routine | Fill | DeviceTurns
    operands: tuple[tuple[int, int], ...]
    unit: int


@dataclass
class DevicePlan:
    """All actions in order and the memory they need."""

    actions: list[Planned]
    bytes: int
    bases: list[Node]
    literals: list[Node]
    places: dict[Node, Place]
    units: list[list[Kernel]]
    kept: dict[Node, int]
    """Arrays that stay in the memory of a block, and the units that they belong to."""

    def where(self, node: Node) -> str:
        """The place of an array, in words."""
        if node in self.kept:
            return "shared memory"
        return in_words(node, self.places[node], self.bases, "scratch")


def plan(
    fused: Fused,
    arguments: Sequence[Node],
    constants: Sequence[Node],
    device: Device,
    apart: frozenset[Node] = frozenset(),
) -> DevicePlan:
    """Place every array and make every recipe. Arrays in `apart` may begin anywhere: their elements are read singly."""
    multiprocessors = device.properties.multiprocessors
    steps = [
        replace(step, together=False) if isinstance(step, Loop) and not apart.isdisjoint(step.buffers) else step
        for step in fused.steps
    ]
    if any(isinstance(step, Special) for step in steps):
        from ..device.recipes import needed

        steps = needed(steps, fused.outputs)
    units = _units(steps, multiprocessors)
    literals = literals_of(fused.steps)
    bases = [*arguments, *constants]
    times = Lifetimes(bases, literals, fused.outputs, units)
    places, arena = times.places, times.arena
    kept: dict[Node, int] = {}
    actions: list[Planned] = []
    for position, unit in enumerate(units):
        within = {node for node in times.ending(position) if node not in places}
        done = _row_pass(unit, within, multiprocessors)
        if done is not None:
            # What stays in a block takes no place; no kernel is given its address.
            places.update(dict.fromkeys(done.kept, Place(0, 0)))
            kept.update(dict.fromkeys(done.kept, position))
        for kernel in unit:
            for node in kernel.targets:
                if node not in places:
                    times.hold(node)
        if isinstance(unit[0], Special) and unit[0].node.primitive is LOOP:
            actions.append(_turns(unit[0], places, arena, position, device, apart))
            times.end(position)
            continue
        recipe = _recipe(unit[0], device) if done is None else row_passes.row_pass_recipe(done)
        operands = [_placed(places, *operand) for kernel in unit for operand in _operands(kernel)]
        blocks = [arena.take(size) for size in recipe.workspaces]
        operands += [(0, start) for start, _ in blocks]
        for action in recipe.actions:
            pointers = (action.pointer,) if isinstance(action, Fill) else action.pointers
            actions.append(Planned(action, tuple([operands[p] for p in pointers]), position))
        for block in blocks:
            arena.give(*block)
        times.end(position)
    return DevicePlan(actions, arena.end, bases, literals, places, units, kept)


def _turns(
    kernel: Special, places: dict[Node, Place], arena: Arena, position: int, device: Device, apart: frozenset[Node]
) -> Planned:
    """A loop whose turns are run one after the other."""

    def of_body(
        fused: Fused, arguments: Sequence[Node], constants: Sequence[Node], inside: frozenset[Node]
    ) -> DevicePlan:
        return plan(fused, arguments, constants, device, inside)

    turns = device_turns(kernel, of_body, apart)
    block = arena.take(turns.workspace)
    reads = [_placed(places, *operand) for operand in zip(kernel.reads, kernel.views, strict=True)]
    written = [_placed(places, node, None) for node in kernel.targets]
    arena.give(*block)
    return Planned(turns, (*reads, (0, block[0]), *written), position)


def _placed(places: dict[Node, Place], node: Node, view: View | None) -> tuple[int, int]:
    """The base and the offset that a kernel is given for an array, or for a view of it."""
    base, offset, *_ = places[node]
    if view is None or view.is_masked:
        # What lies before an array is read from nowhere, but an address should not point there.
        return base, offset
    return base, offset + view.offset * node.dtype.itemsize


def _operands(kernel: Kernel) -> list[tuple[Node, View | None]]:
    """The arrays that a kernel is called with, and the views that may begin elsewhere than the array."""
    if isinstance(kernel, Special):
        return [*zip(kernel.reads, kernel.views, strict=True), *[(node, None) for node in kernel.targets]]
    return [(kernel.buffers[access.buffer], access.view) for access in kernel.accesses if access.buffer >= 0]


def _recipe(kernel: Kernel, device: Device) -> Recipe:
    if isinstance(kernel, Special):
        from ..device import recipes as specials

        return specials.recipe(kernel, device)
    return loops.recipe(kernel, device.properties.multiprocessors)


def _row_pass(unit: Sequence[Kernel], within: set[Node], multiprocessors: int) -> row_passes.RowPass | None:
    """The pass that runs the loops of a unit together; None for a kernel on its own."""
    if len(unit) == 1:
        return None
    parts = [kernel for kernel in unit if isinstance(kernel, Loop)]
    written = {node for loop in parts for node in loop.targets}
    return row_passes.row_pass(parts, frozenset(within & written), multiprocessors)


# ----- Loops over the same rows -----


def _units(kernels: Sequence[Kernel], multiprocessors: int) -> list[list[Kernel]]:
    """The kernels that run as one, in an order that respects dependencies. Kernels without work are left out."""
    working = [kernel for kernel in kernels if isinstance(kernel, Loop) or kernel.node.size]
    return grouped(working, _WarpLimits(multiprocessors))


class _WarpLimits(Limits[list[Kernel]]):
    """Groups that become one kernel, in which a warp or a block has a row: they begin with a loop that reduces each of
    its rows, and the others read what it, or one of them, has written."""

    most = MOST_PARTS

    def __init__(self, multiprocessors: int) -> None:
        self.multiprocessors = multiprocessors

    def begins(self, kernel: Loop) -> bool:
        if not kernel.reductions or len(kernel.shape) < 2 or not _reduces_rows(kernel):
            return False
        return math.prod(kernel.shape[1:]) >= FEWEST_ROW_ELEMENTS

    def accept(self, group: RowGroup, kernel: Loop, rows: int) -> bool:
        if rows != group.rows or group.written.isdisjoint(kernel.buffers):
            return False
        split = _split(kernel, rows)
        return split is not None and _reduces_rows(split)

    def alone(self, kernel: Kernel) -> list[Kernel]:
        return [kernel]

    def close(self, group: RowGroup) -> list[list[Kernel]]:
        """One kernel, or each on its own where there are too few rows for the device."""
        elements = max(math.prod(loop.shape) for loop in group.kernels)
        if len(group.kernels) > 1 and (group.rows >= self.multiprocessors or elements <= SMALL):
            split = [_split(loop, group.rows) for loop in group.kernels]
            return [[loop for loop in split if loop is not None]]
        return [[kernel] for kernel in group.kernels]


def _reduces_rows(loop: Loop) -> bool:
    """Whether a loop reduces over all axes but the first, if at all."""
    return all(not r.axes[0] and all(r.axes[1:]) and len(r.axes) > 1 for r in loop.reductions)


def _split(loop: Loop, rows: int) -> Loop | None:
    """The loop with its rows as the first axis: that is taken apart if it has a multiple of so many steps."""
    extent = loop.shape[0]
    if extent == rows:
        return loop
    factor = extent // rows
    accesses = []
    for position, access in enumerate(loop.accesses):
        view = access.view
        if position not in loop.gathered:
            if view.valid[0] is not None:
                return None
            step = view.strides[0]
            shape = (rows, factor, *view.shape[1:])
            view = View(shape, (step * factor, step, *view.strides[1:]), view.offset, (None, *view.valid))
        accesses.append(access._replace(view=view))
    if any(r.axes[0] for r in loop.reductions):
        return None
    reductions = tuple([r._replace(axes=(False, *r.axes)) for r in loop.reductions])
    return replace(loop, shape=(rows, factor, *loop.shape[1:]), accesses=tuple(accesses), reductions=reductions)
