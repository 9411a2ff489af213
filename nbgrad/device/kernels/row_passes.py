"""Several loops over the same rows in one kernel.

In: loops that have the rows as their first axis, and reduce over all other axes or over none. Out: a `Recipe` of one
launch. Called through grid_loops.py by the runtime's device plan, which found the loops. Each group of threads does a
row by one loop after the other. What is written and read by these loops alone takes no memory of the device where it
fits into the memory that a block shares: a softmax reads its data once and writes its result once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...compiler.emitters.emit import memory_type
from ...compiler.loops import Loop
from ...graph.ir import Node
from .block_reductions import WARP, ReductionEmitter, shared_bytes
from .emitter import text_of
from .launches import DeviceKernel, Launch, Recipe
from .variants import THREADS, variant_of

LONG_ROW = 1024
"""A row of this many elements, or a longer one, is worth a whole block."""
MOST_SHARED = 40 << 10
"""Bytes of a block's memory that rows take at most: more would leave room for too few blocks."""


class RowPass(NamedTuple):
    """One kernel for several loops over the same rows: blocks have `threads` threads, of which `group` do a row.

    `kept` are the arrays in shared memory, each with its offset and the number of elements in a row of it.
    """

    loops: tuple[Loop, ...]
    threads: int
    group: int
    kept: dict[Node, tuple[int, int]]
    shared: int


def row_pass(loops: Sequence[Loop], within: frozenset[Node], multiprocessors: int) -> RowPass:
    """Decide how loops over the same rows are done; nothing else reads the arrays in `within`."""
    most = max(math.prod(loop.shape[1:]) for loop in loops)
    group = THREADS if most >= LONG_ROW else WARP
    rows = loops[0].shape[0]
    threads = THREADS
    while threads > group and rows * group < threads * multiprocessors:
        # Small blocks, rather than multiprocessors without work.
        threads //= 2
    start = _scratch(loops, group)
    kept: dict[Node, tuple[int, int]] = {}
    whole = within - _read_from_within(loops)
    for node in sorted((n for n in whole if n.size % rows == 0), key=lambda n: n.size * n.dtype.itemsize):
        step = node.size // rows
        size = -(-step * node.dtype.itemsize * (threads // group) // 16) * 16
        if start + size > MOST_SHARED:
            break
        kept[node] = (start, step)
        start += size
    return RowPass(tuple(loops), threads, group, kept, start)


def _read_from_within(loops: Sequence[Loop]) -> set[Node]:
    """The arrays that a loop reads or writes from a later element on: kernels get the beginning of kept arrays only."""
    return {
        loop.buffers[access.buffer]
        for loop in loops
        for access in loop.accesses
        if access.buffer >= 0 and access.view.offset and not access.view.is_masked
    }


def _scratch(loops: Sequence[Loop], group: int) -> int:
    """Shared memory for the totals of warps."""
    if group <= WARP:
        return 0
    return shared_bytes([ReductionEmitter(loop, variant_of(loop, group), []) for loop in loops])


def row_pass_recipe(done: RowPass) -> Recipe:
    """The launch; its operands are the accesses that have a buffer, of one loop after the other."""
    rows = done.loops[0].shape[0]
    parts = _parts(done)
    shared = _written_and_read(done.loops)
    numbers: list[int] = []
    pointers: list[int] = []
    operand = 0
    for part in parts:
        numbers += part.arguments()
        for position in part.used:
            if part.loop.buffers[part.loop.accesses[position].buffer] not in done.kept:
                pointers.append(operand)
            operand += 1
    for start, step in done.kept.values():
        numbers += [start, step]
    order = list(done.kept)
    marks = [
        [(node in shared, order.index(node) if node in done.kept else -1) for node in part.arrays] for part in parts
    ]
    loops = " ".join(f"{part.loop.identity}{part.variant}" for part in parts)
    kernel = DeviceKernel(f"row pass {loops} {marks}", lambda: _text(_parts(done), shared, done))
    blocks = -(-rows * done.group // done.threads)
    launch = Launch(kernel, blocks, done.threads, done.shared, tuple(pointers), (*numbers, rows))
    return Recipe((launch,))


def _parts(done: RowPass) -> list[ReductionEmitter]:
    return [
        ReductionEmitter(loop, variant_of(loop, done.group, rows=True), list(range(1, len(loop.shape))), False, part)
        for part, loop in enumerate(done.loops)
    ]


def _written_and_read(loops: Sequence[Loop]) -> frozenset[Node]:
    """The arrays that one loop writes and another one accesses."""
    result: set[Node] = set()
    for position, loop in enumerate(loops):
        for node in loop.targets:
            if any(node in other.buffers for k, other in enumerate(loops) if k != position):
                result.add(node)
    return frozenset(result)


def _text(parts: Sequence[ReductionEmitter], shared: frozenset[Node], done: RowPass) -> str:
    functions: list[str] = []
    pointers: list[str] = []
    numbers: list[str] = []
    calls: list[str] = []
    places = {node: k for k, node in enumerate(done.kept)}
    for k, part in enumerate(parts):
        part.along_row("%row", "%lane", "0", "%valid")
        own = [*part.pointers(shared), *part.number_parameters()]
        signature = ", ".join([*own, "i64 %row", "i64 %lane", "i1 %valid"])
        functions += part.function(f"internal void @part{k}({signature}) alwaysinline")
        given: list[str] = []
        for parameter, node in zip(part.pointers(shared), part.arrays, strict=True):
            if node in places:
                given.append(f"ptr %kept{places[node]}")
            else:
                name = parameter.split()[-1][1:]
                pointers.append(parameter.replace(f"%{name}", f"%q{k}.{name}"))
                given.append(f"ptr %q{k}.{name}")
        for parameter in part.number_parameters():
            name = parameter.split()[-1][1:]
            numbers.append(f"i64 %q{k}.{name}")
            given.append(f"i64 %q{k}.{name}")
        if k:
            calls.append("  call void @nbgrad.barrier()")
        calls.append(f"  call void @part{k}({', '.join([*given, 'i64 %row', 'i64 %lane', 'i1 %valid'])})")
    for k in range(len(done.kept)):
        numbers += [f"i64 %start{k}", f"i64 %step{k}"]
    shift = done.group.bit_length() - 1
    lines = [
        f"define void @kernel({', '.join([*pointers, *numbers, 'i64 %rows'])}) {{",
        "  %t32 = call i32 @nbgrad.thread()",
        "  %b32 = call i32 @nbgrad.block()",
        "  %w32 = call i32 @nbgrad.threads()",
        "  %t = zext i32 %t32 to i64",
        "  %b = zext i32 %b32 to i64",
        "  %w = zext i32 %w32 to i64",
        "  %before = mul nuw nsw i64 %b, %w",
        "  %linear = add nuw nsw i64 %before, %t",
        f"  %lane = and i64 %linear, {done.group - 1}",
        f"  %row = lshr i64 %linear, {shift}",
        "  %valid = icmp slt i64 %row, %rows",
    ]
    if done.kept:
        # Row r of an array in shared memory lies where the block's row of that number lies.
        lines += [
            "  %shared = call ptr @nbgrad.shared()",
            f"  %local = lshr i64 %t, {shift}",
            "  %back = sub nsw i64 %local, %row",
        ]
    for node, k in places.items():
        lines += [
            f"  %from{k} = getelementptr i8, ptr %shared, i64 %start{k}",
            f"  %move{k} = mul nsw i64 %back, %step{k}",
            f"  %kept{k} = getelementptr {memory_type(node.dtype)}, ptr %from{k}, i64 %move{k}",
        ]
    return text_of(parts, [*functions, *lines, *calls, "  ret void", "}"])
