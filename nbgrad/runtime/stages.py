"""Stages: kernels that go through their rows together, so that what passes between them stays in cache.

In: the kernels of fuse.py in order. Out: `Stage`s in order; a stage of several kernels runs all of them on one block of
rows before it goes on to the next block. Called by cpu_plan.py, which gives the arrays that live within a stage the
memory of one block. A softmax, a layer norm or a logistic regression reads its data from memory once in this way.
row_groups.py says which kernels may go together; sums over rows are formed per block.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from ..compiler.fuse import Special
from ..compiler.loops import Loop
from ..graph.ir import Node
from .row_groups import Limits, RowGroup, grouped

BLOCK_BYTES = 1 << 17
"""Bytes of all arrays that a block of rows touches: a part of the cache that each core has for itself."""
SMALLEST_STAGE = 1 << 18
"""Kernels that touch less than this find it in cache anyway."""
LARGEST_ROW = 1 << 19
MOST_KERNELS = 32
PARTIAL_BYTES = 1 << 20
"""Sums over rows are kept per block, in this much memory at most (or 64 blocks)."""
FEW_BLOCKS = 64


@dataclass
class Stage:
    """Kernels that run together. `rows` is how many rows they share and `block` how many they do at a time; one kernel
    on its own has 0 of both."""

    kernels: list[Loop | Special]
    rows: int = 0
    block: int = 0

    def factor(self, loop: Loop) -> int:
        """Steps of a loop's outermost axis that make one row."""
        return loop.shape[0] // self.rows


def make_stages(kernels: Sequence[Loop | Special]) -> list[Stage]:
    """Group kernels; the order respects their dependencies."""
    largest = heapq.nlargest(MOST_KERNELS, [k.bytes for k in kernels if isinstance(k, Loop)])
    if sum(largest) < SMALLEST_STAGE:
        return [Stage([kernel]) for kernel in kernels]
    return grouped(kernels, _CacheLimits())


class _CacheLimits(Limits[Stage]):
    """Groups whose blocks of rows stay in a core's cache."""

    most = MOST_KERNELS

    def begins(self, kernel: Loop) -> bool:
        return kernel.shape[0] > 1

    def accept(self, group: RowGroup, kernel: Loop, rows: int) -> bool:
        return rows > 1 and not group.touched.isdisjoint(kernel.buffers)

    def alone(self, kernel: Loop | Special) -> Stage:
        return Stage([kernel])

    def close(self, group: RowGroup) -> list[Stage]:
        """One stage, or the kernels one by one if blocks would not help."""
        apart = [Stage([kernel]) for kernel in group.kernels]
        if len(group.kernels) < 2:
            return apart
        steps: dict[Node, int] = {}
        for kernel in group.kernels:
            factor = kernel.shape[0] // group.rows
            for position, access in enumerate(kernel.accesses):
                # A table that is gathered from has no rows.
                if access.buffer >= 0 and position not in kernel.gathered:
                    node = kernel.buffers[access.buffer]
                    steps[node] = max(steps.get(node, 0), abs(access.view.strides[0] * factor))
        row_bytes = sum(step * node.dtype.itemsize for node, step in steps.items())
        if row_bytes * group.rows < SMALLEST_STAGE or row_bytes > LARGEST_ROW:
            return apart
        partial = sum(node.size * node.dtype.itemsize for node in group.sums)
        most = max(FEW_BLOCKS, PARTIAL_BYTES // max(partial, 1)) if partial else group.rows
        block = max(1, BLOCK_BYTES // max(row_bytes, 1), -(-group.rows // most))
        if block >= group.rows:
            return apart
        return [Stage([*group.kernels], group.rows, block)]
