"""How a fused loop is done on a device: which kernels, with how many threads, and what they are called with.

In: a `Loop`, or several that share their rows, and what the device is. Out: a `Recipe`; its operands are the accesses
of each loop that have a buffer, in order. Called by the runtime's device plan. Which kernel, how many points a thread
does at once and how many threads share a sum is decided here, and only here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..compiler.emit import identity_element
from ..compiler.fuse import HEAVY_WEIGHT, LIGHT
from ..compiler.loops import Access, Loop, Reduction, Store, Value, normalise
from ..compiler.views import View, contiguous_strides
from ..graph.ir import Node
from .emitter import LINEAR_LIMIT, DeviceEmitter, Variant
from .launches import DeviceKernel, Launch, Recipe
from .reductions import COLUMN_THREADS, COLUMNS, WARP, ReductionEmitter, row_pass_text

THREADS = 256
VECTOR_BYTES = 16
MOST_AT_ONCE = 8
HEAVIEST = 256
"""Weight of the operations that a thread does in one step; heavier points are done fewer at a time."""
LONG_ROW = 1024
"""A row of this many elements, or a long one, is worth a whole block."""
WAVES = 4
"""Blocks for each multiprocessor, from which on it is busy."""
SHARE = 8
"""Steps that each thread of a part of a sum has at least."""


def recipe(loop: Loop, multiprocessors: int) -> Recipe:
    """How a loop is done."""
    if 0 in loop.shape:
        return _empty(loop)
    if not loop.reductions:
        return Recipe((_map(loop),))
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


def row_pass(loops: Sequence[Loop], multiprocessors: int) -> Recipe:
    """How several loops over the same rows are done by one kernel; operands are those of the first loop, and so on.

    Every loop has the rows as its first axis, and reduces over all other axes or none.
    """
    rows = loops[0].shape[0]
    most = max(math.prod(loop.shape[1:]) for loop in loops)
    group = THREADS if most >= LONG_ROW else WARP
    parts: list[ReductionEmitter] = []
    for loop in loops:
        variant = _variant(loop, group) if len(loop.shape) > 1 else Variant(group=group)
        parts.append(ReductionEmitter(loop, variant, list(range(1, len(loop.shape)))))
    shared = _written_and_read(loops)
    numbers: list[int] = []
    for part in parts:
        numbers += part.arguments()
    variants = " ".join(f"{part.loop.identity}{part.variant}" for part in parts)
    marks = [[loop.buffers[a.buffer] in shared for a in loop.accesses if a.buffer >= 0] for loop in loops]
    kernel = DeviceKernel(
        f"row pass {variants} {marks}",
        lambda: row_pass_text([ReductionEmitter(p.loop, p.variant, p.reduced) for p in parts], shared),
    )
    operands = sum(len(part.used) for part in parts)
    blocks = -(-rows * group // THREADS)
    launch = Launch(kernel, blocks, THREADS, _shared_bytes(parts), tuple(range(operands)), (*numbers, rows))
    return Recipe((launch,))


def _written_and_read(loops: Sequence[Loop]) -> frozenset[Node]:
    """The arrays that one loop writes and another one accesses."""
    result: set[Node] = set()
    for position, loop in enumerate(loops):
        for node in loop.targets:
            if any(node in other.buffers for k, other in enumerate(loops) if k != position):
                result.add(node)
    return frozenset(result)


def _shared_bytes(parts: Sequence[ReductionEmitter]) -> int:
    """Shared memory for the totals of warps."""
    sizes = [part.accumulator(r).itemsize for part in parts for r in part.loop.reductions]
    return WARP * max(sizes, default=0)


# ----- Variants -----


def _weight(loop: Loop) -> int:
    return sum(1 if value.operation in LIGHT else HEAVY_WEIGHT for value in loop.values if value.operands)


def _variant(loop: Loop, group: int = 1, split: bool = False) -> Variant:
    """How many points a thread does at once: as many as 16 bytes hold, where all arrays are laid out for it."""
    wide = math.prod(loop.shape) >= LINEAR_LIMIT
    plain = Variant(1, False, wide, group, split)
    along = [a for p, a in enumerate(loop.accesses) if a.kind == "c" and a.buffer >= 0 and p not in loop.gathered]
    if not along or loop.is_single:
        return plain
    vector = min(MOST_AT_ONCE, VECTOR_BYTES // max(access.dtype.itemsize for access in along))
    while vector > 1 and vector * _weight(loop) > HEAVIEST:
        vector //= 2
    aligned = all(
        stride % vector == 0 for access in along for stride in (*access.view.strides[:-1], access.view.offset)
    )
    tail = loop.shape[-1] % vector != 0
    if vector == 1 or not aligned or loop.shape[-1] < vector or (tail and len(loop.shape) > 1):
        return plain
    return Variant(vector, tail, wide, group, split)


def _map(loop: Loop) -> Launch:
    variant = _variant(loop)
    emitter = DeviceEmitter(loop, variant)
    kernel = DeviceKernel(f"map {loop.identity} {variant}", lambda: DeviceEmitter(loop, variant).map_text())
    steps = math.prod([emitter.units(axis) for axis in range(len(loop.shape))])
    threads = min(THREADS, -(-steps // WARP) * WARP)
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
    steps = math.prod([loop.shape[axis] for axis in reduced]) // _variant(loop).vector
    busy = WAVES * multiprocessors
    group = 8 if steps <= 16 else WARP if steps <= LONG_ROW or outputs >= 64 * busy else THREADS
    parts = 1
    if group == THREADS and outputs < busy:
        parts = max(1, min(-(-busy // outputs), steps // (THREADS * SHARE)))
    variant = _variant(loop, group, parts > 1)
    emitter = ReductionEmitter(loop, variant, reduced)
    kernel = DeviceKernel(
        f"rows {loop.identity} {variant} {reduced}", lambda: ReductionEmitter(loop, variant, reduced).rows_text()
    )
    threads = min(THREADS, -(-outputs * parts * group // WARP) * WARP)
    blocks = -(-outputs * parts * group // threads)
    shared = _shared_bytes([emitter]) if group > WARP else 0
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
