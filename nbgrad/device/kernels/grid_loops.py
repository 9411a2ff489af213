"""Recipes of fused loops on a device: the kernels, the number of their threads, and their arguments.

In: a `Loop`, and how many multiprocessors the device has. Out: a `Recipe`; its operands are the accesses of the loop
that have a buffer, in order. Called by the runtime's device plan. Which kernel and how many threads share a sum is
decided here; how many points a thread does at once, in variants.py; several loops over the same rows, in row_passes.py.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ...compiler.emitters.emit import identity_element
from ...compiler.loops import Access, Loop, Reduction, Store, Value, normalise
from ...compiler.views import View
from ...graph.ir import Node
from ...graph.shapes import contiguous_strides
from .block_reductions import COLUMN_THREADS, COLUMNS, WARP, ReductionEmitter, shared_bytes
from .emitter import LINEAR_LIMIT, DeviceEmitter, Variant
from .launches import DeviceKernel, Launch, Recipe
from .transposes import transpose_recipe
from .variants import THREADS, threads_of, variant_of

LONG_SUM = 1024
"""A sum of more steps is worth a whole block."""
WAVES = 8
"""Blocks for each multiprocessor, from which on it is busy."""
SHARE = 8
"""Steps that each thread of a part of a sum has at least."""


def recipe(loop: Loop, multiprocessors: int) -> Recipe:
    """The recipe of a loop."""
    if 0 in loop.shape:
        return _empty(loop)
    if not loop.reductions:
        return transpose_recipe(loop) or Recipe((_map(loop),))
    patterns: dict[tuple[bool, ...], list[Reduction]] = {}
    for r in loop.reductions:
        patterns.setdefault(r.axes, []).append(r)
    actions: list[Launch] = []
    workspaces: list[int] = []
    operands = sum(access.buffer >= 0 for access in loop.accesses)
    for number, reductions in enumerate(patterns.values()):
        part = replace(loop, reductions=tuple(reductions), stores=() if number else loop.stores)
        done = _reduction(part, multiprocessors)
        # Workspaces are counted on from those of the kernels before.
        moved = len(workspaces)
        for launch in done.actions:
            assert isinstance(launch, Launch)
            pointers = tuple([p + moved if p >= operands else p for p in launch.pointers])
            actions.append(launch._replace(pointers=pointers))
        workspaces += done.workspaces
    return Recipe(tuple(actions), tuple(workspaces))


# ----- Kernels that only store -----


def _map(loop: Loop) -> Launch:
    variant = variant_of(loop)
    emitter = DeviceEmitter(loop, variant)
    kernel = DeviceKernel(f"map {loop.identity} {variant}", lambda: DeviceEmitter(loop, variant).map_text())
    steps = math.prod([emitter.units(axis) for axis in range(len(loop.shape))])
    threads = min(threads_of(loop, variant), -(-steps // WARP) * WARP)
    pointers = tuple(range(len(emitter.used)))
    return Launch(kernel, -(-steps // threads), threads, 0, pointers, tuple(emitter.arguments()))


# ----- Reductions over one set of axes -----


def _reduction(loop: Loop, multiprocessors: int) -> Recipe:
    axes = loop.reductions[0].axes
    reduced = [axis for axis, flag in enumerate(axes) if flag]
    kept = [axis for axis, flag in enumerate(axes) if not flag]
    outputs = math.prod([loop.shape[axis] for axis in kept])
    if axes[-1]:
        return _rows(loop, reduced, kept, outputs, multiprocessors)
    return _columns(loop, reduced, kept, outputs, multiprocessors)


def _rows(loop: Loop, reduced: list[int], kept: list[int], outputs: int, multiprocessors: int) -> Recipe:
    steps = math.prod([loop.shape[axis] for axis in reduced]) // variant_of(loop).vector
    busy = WAVES * multiprocessors
    group = 8 if steps <= 16 else WARP if steps <= LONG_SUM or outputs >= 64 * busy else THREADS
    parts = 1
    if group == THREADS and outputs < busy:
        parts = max(1, min(-(-busy // outputs), steps // (THREADS * SHARE)))
    variant = variant_of(loop, group, parts > 1)
    emitter = ReductionEmitter(loop, variant, reduced)
    kernel = DeviceKernel(
        f"rows {loop.identity} {variant} {reduced}", lambda: ReductionEmitter(loop, variant, reduced).rows_text()
    )
    threads = THREADS
    while threads > max(group, WARP) and outputs * parts * group < threads * multiprocessors:
        threads //= 2
    blocks = -(-outputs * parts * group // threads)
    shared = shared_bytes([emitter]) if group > WARP else 0
    return _finished(loop, emitter, kernel, (blocks, threads, shared), kept, parts, False, multiprocessors)


def _columns(loop: Loop, reduced: list[int], kept: list[int], outputs: int, multiprocessors: int) -> Recipe:
    steps = math.prod([loop.shape[axis] for axis in reduced])
    tiles = -(-outputs // COLUMNS)
    busy = WAVES * multiprocessors
    parts = 1
    if tiles < busy:
        parts = max(1, min(-(-busy // tiles), steps // (COLUMN_THREADS * SHARE)))
    variant = Variant(1, False, math.prod(loop.shape) >= LINEAR_LIMIT, 1, parts > 1)
    emitter = ReductionEmitter(loop, variant, reduced)
    kernel = DeviceKernel(
        f"columns {loop.identity} {variant} {reduced}", lambda: ReductionEmitter(loop, variant, reduced).columns_text()
    )
    threads = COLUMNS * COLUMN_THREADS
    shared = threads * max(emitter.accumulator(r).itemsize for r in loop.reductions)
    return _finished(loop, emitter, kernel, (tiles * parts, threads, shared), kept, parts, True, multiprocessors)


def _finished(
    loop: Loop,
    emitter: ReductionEmitter,
    kernel: DeviceKernel,
    launched: tuple[int, int, int],
    kept: list[int],
    parts: int,
    columns: bool,
    multiprocessors: int,
) -> Recipe:
    """The launch, and those that combine the parts of results."""
    operands = len(emitter.used)
    own = tuple(range(operands))
    numbers = tuple(emitter.arguments())
    if parts == 1:
        return Recipe((Launch(kernel, *launched, own, numbers),))
    extra = tuple(range(operands, operands + len(loop.reductions)))
    actions = [Launch(kernel, *launched, own + extra, (*numbers, parts))]
    workspaces: list[int] = []
    for r, workspace in zip(loop.reductions, extra, strict=True):
        dtype = emitter.accumulator(r)
        extents = tuple([loop.shape[axis] for axis in kept])
        workspaces.append(math.prod(extents) * parts * (1 if dtype.kind == "b" else dtype.itemsize))
        combine = _combining(loop, r, dtype, extents, kept, parts)
        target = emitter.used.index(r.access)
        last = _reduction(combine, multiprocessors)
        assert not last.workspaces, "parts of parts"
        for launch in last.actions:
            assert isinstance(launch, Launch)
            actions.append(launch._replace(pointers=(workspace, target)))
    return Recipe(tuple(actions), tuple(workspaces))


def _combining(
    loop: Loop, r: Reduction, dtype: np.dtype, extents: tuple[int, ...], kept: list[int], parts: int
) -> Loop:
    """The loop that reduces `[row, part]` to the value of a reduction."""
    shape = (*extents, parts)
    nothing = (None,) * len(shape)
    target = loop.accesses[r.access]
    strides = tuple([target.view.strides[axis] for axis in kept])
    read = Access(0, View(shape, contiguous_strides(shape), 0, nothing), dtype)
    write = Access(1, View(shape, (*strides, 0), 0, nothing), target.dtype)
    node = loop.buffers[target.buffer]
    reduction = Reduction(r.kind, 0, 1, (*[False] * len(extents), True))
    value = Value("load", dtype, access=0)
    return normalise(Loop(shape, (value,), (read, write), (), (reduction,), (node, node), (node,)))


def _empty(loop: Loop) -> Recipe:
    """A loop over no points: nothing to store, and reductions give what they start from."""
    actions: list[Launch] = []
    used = [position for position, access in enumerate(loop.accesses) if access.buffer >= 0]
    for r in loop.reductions:
        target = loop.accesses[r.access]
        extents = [n for n, flag in zip(loop.shape, r.axes, strict=True) if not flag]
        if 0 in extents:
            continue
        strides = [s for s, flag in zip(target.view.strides, r.axes, strict=True) if not flag]
        shape = tuple(extents) or (1,)
        view = View(shape, tuple(strides) or (0,), 0, (None,) * len(shape))
        value = np.array(identity_element(r.kind, target.dtype)).astype(target.dtype)
        node = loop.buffers[target.buffer]
        fill = _filling(shape, view, value, node)
        actions.append(_map(fill)._replace(pointers=(used.index(r.access),)))
    return Recipe(tuple(actions))


def _filling(shape: tuple[int, ...], view: View, value: np.ndarray, node: Node) -> Loop:
    values = (Value("literal", value.dtype, literal=value.tobytes()),)
    return normalise(Loop(shape, values, (Access(0, view, value.dtype),), (Store(0, 0),), (), (node,), (node,)))
