"""Planning for devices: which kernels run as one, and where every array of a program lives.

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
from .cpu_plan import LITERAL, Arena, nbytes, reads_and_writes
from .stages import rows_apart

FEWEST_ROW_ELEMENTS = 32
"""Shorter rows are no work for a warp."""
SMALL = 1 << 16
"""So many elements are done by few blocks, whatever the rows are."""
MOST_PARTS = 24


class Operand(NamedTuple):
    """An offset in bytes from a base: 0 is scratch, then come arguments, constants, literals and outputs."""

    base: int
    offset: int


class Planned(NamedTuple):
    """An action of a unit (by its number), and where each of the action's pointers lies."""

    action: Launch | Routine | Fill
    operands: tuple[Operand, ...]
    unit: int


@dataclass
class DevicePlan:
    """All actions in order and the memory they need."""

    actions: list[Planned]
    bytes: int
    bases: list[Node]
    literals: list[Node]
    places: dict[Node, Operand]
    units: list[list[Kernel]]
    kept: dict[Node, int]
    """Arrays that stay in the memory of a block, and the units that they belong to."""

    def where(self, node: Node) -> str:
        """Where an array lives, in words."""
        if node in self.kept:
            return "shared memory"
        base, offset = self.places[node]
        if base == 0:
            return f"scratch[{offset}:{offset + nbytes(node)}]"
        if base <= len(self.bases):
            return f"{self.bases[base - 1].name} {base - 1}"
        return "literals" if base == 1 + len(self.bases) else f"output {base - 2 - len(self.bases)}"


Kernel = Loop | Special


def plan(fused: Fused, arguments: Sequence[Node], constants: Sequence[Node], device: Device) -> DevicePlan:
    """Place every array and make every recipe."""
    multiprocessors = device.properties.multiprocessors
    steps = fused.steps
    if any(isinstance(step, Special) for step in steps):
        from ..device.recipes import needed

        steps = needed(steps, fused.outputs)
    units = _units(steps, multiprocessors)
    literals = list(dict.fromkeys(n for s in fused.steps for n in reads_and_writes(s)[0] if n.primitive is LITERAL))
    bases = [*arguments, *constants]
    places: dict[Node, Operand] = {node: Operand(1 + k, 0) for k, node in enumerate(bases)}
    pool = 1 + len(bases)
    places.update({node: Operand(pool, 8 * k) for k, node in enumerate(literals)})
    places.update({node: Operand(pool + 1 + k, 0) for k, node in enumerate(fused.outputs)})
    last: dict[Node, int] = {}
    for position, unit in enumerate(units):
        for kernel in unit:
            for nodes in reads_and_writes(kernel):
                last.update(dict.fromkeys(nodes, position))
    ending: dict[int, list[Node]] = {}
    for node, position in last.items():
        ending.setdefault(position, []).append(node)
    arena = Arena()
    held: dict[Node, tuple[int, int]] = {}
    kept: dict[Node, int] = {}
    actions: list[Planned] = []
    for position, unit in enumerate(units):
        within = {node for node in ending.get(position, []) if node not in places}
        done = _row_pass(unit, within, multiprocessors)
        if done is not None:
            # What stays in a block takes no place; no kernel is given its address.
            places.update(dict.fromkeys(done.kept, Operand(0, 0)))
            kept.update(dict.fromkeys(done.kept, position))
        for kernel in unit:
            for node in reads_and_writes(kernel)[1]:
                if node not in places:
                    held[node] = arena.take(nbytes(node))
                    places[node] = Operand(0, held[node][0])
        recipe = _recipe(unit[0], device) if done is None else row_passes.row_pass_recipe(done)
        operands = [_placed(places, *operand) for kernel in unit for operand in _operands(kernel)]
        blocks = [arena.take(size) for size in recipe.workspaces]
        operands += [Operand(0, start) for start, _ in blocks]
        for action in recipe.actions:
            pointers = (action.pointer,) if isinstance(action, Fill) else action.pointers
            actions.append(Planned(action, tuple([operands[p] for p in pointers]), position))
        for block in blocks:
            arena.give(*block)
        for node in ending.get(position, []):
            if node in held:
                arena.give(*held.pop(node))
    return DevicePlan(actions, arena.end, bases, literals, places, units, kept)


def _placed(places: dict[Node, Operand], node: Node, view: View | None) -> Operand:
    place = places[node]
    if view is None or view.is_masked:
        # What lies before an array is read from nowhere, but an address should not point there.
        return place
    return Operand(place.base, place.offset + view.offset * node.dtype.itemsize)


def _operands(kernel: Kernel) -> list[tuple[Node, View | None]]:
    """The arrays that a kernel is called with, and the views that may begin elsewhere than the array."""
    if isinstance(kernel, Special):
        return [*zip(kernel.sources, kernel.views, strict=True), (kernel.node, None)]
    return [(kernel.buffers[access.buffer], access.view) for access in kernel.accesses if access.buffer >= 0]


def _recipe(kernel: Kernel, device: Device) -> Recipe:
    if isinstance(kernel, Special):
        from ..device import recipes as specials

        return specials.recipe(kernel, device)
    return loops.recipe(kernel, device.properties.multiprocessors)


def _row_pass(unit: Sequence[Kernel], within: set[Node], multiprocessors: int) -> row_passes.RowPass | None:
    """How the loops of a unit are done together; None for a kernel on its own."""
    if len(unit) == 1:
        return None
    parts = [kernel for kernel in unit if isinstance(kernel, Loop)]
    written = {node for loop in parts for node in loop.targets}
    return row_passes.row_pass(parts, frozenset(within & written), multiprocessors)


# ----- Loops over the same rows -----


def _units(kernels: Sequence[Kernel], multiprocessors: int) -> list[list[Kernel]]:
    """What runs as one kernel, in an order that respects dependencies. Kernels without work are left out."""
    result: list[list[Kernel]] = []
    opened: _Rows | None = None
    for kernel in kernels:
        if isinstance(kernel, Special) and kernel.node.size == 0:
            continue
        if opened is not None:
            if opened.accepts(kernel):
                continue
            if opened.independent(kernel):
                result.append([kernel])
                continue
            result.extend(opened.close(multiprocessors))
        opened = _Rows.open(kernel)
        if opened is None:
            result.append([kernel])
    if opened is not None:
        result.extend(opened.close(multiprocessors))
    return result


class _Rows:
    """Loops that may become one kernel."""

    def __init__(self, loop: Loop) -> None:
        self.rows = loop.shape[0]
        self.loops = [loop]
        self.originals = [loop]
        self.written: set[Node] = set(loop.targets)

    @staticmethod
    def open(kernel: Kernel) -> _Rows | None:
        """Rows that begin with a kernel, which must be a loop that reduces each of its rows."""
        if not isinstance(kernel, Loop) or not kernel.reductions or len(kernel.shape) < 2 or 0 in kernel.shape:
            return None
        if not _reduces_rows(kernel) or math.prod(kernel.shape[1:]) < FEWEST_ROW_ELEMENTS:
            return None
        return _Rows(kernel)

    def independent(self, kernel: Kernel) -> bool:
        """Whether a kernel may run before these."""
        nodes = kernel.sources if isinstance(kernel, Special) else kernel.buffers
        return self.written.isdisjoint(nodes)

    def accepts(self, kernel: Kernel) -> bool:
        """Add a kernel, if its rows are the same."""
        if not isinstance(kernel, Loop) or len(self.loops) >= MOST_PARTS or 0 in kernel.shape:
            return False
        if self.written.isdisjoint(kernel.buffers) or kernel.shape[0] % self.rows:
            return False
        split = _split(kernel, self.rows)
        if split is None or not _reduces_rows(split):
            return False
        written = self.written | set(split.targets)
        if rows_apart([*self.loops, split], self.rows, written, {}) is None:
            return False
        self.loops.append(split)
        self.originals.append(kernel)
        self.written = written
        return True

    def close(self, multiprocessors: int) -> list[list[Kernel]]:
        """One kernel, or each on its own where there are too few rows for the device."""
        elements = max(math.prod(loop.shape) for loop in self.loops)
        if len(self.loops) > 1 and (self.rows >= multiprocessors or elements <= SMALL):
            return [[*self.loops]]
        return [[kernel] for kernel in self.originals]


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
