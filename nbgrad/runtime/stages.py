"""Stages: kernels that go through their rows together, so that what passes between them stays in cache.

In: the kernels of fuse.py in order. Out: `Stage`s in order; a stage of several kernels runs all of them on one block of
rows before it goes on to the next block. Called by cpu_plan.py, which gives the arrays that live within a stage the
memory of one block. A softmax, a layer norm or a logistic regression reads its data from memory once in this way.

Kernels belong to one stage if they loop over the same rows on their outermost axis (or over a multiple of them), and
if a row of what one writes is made of, and becomes, the same row elsewhere. Sums over rows are formed per block; what
reads such a sum starts a new stage.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..compiler.fuse import Special
from ..compiler.loops import Access, Loop
from ..graph.ir import Node

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
    result: list[Stage] = []
    opened: _Open | None = None
    for kernel in kernels:
        if opened is not None:
            if opened.accepts(kernel):
                continue
            if opened.independent(kernel):
                result.append(Stage([kernel]))
                continue
            result.extend(opened.close())
            opened = None
        if isinstance(kernel, Loop) and 0 not in kernel.shape and kernel.shape[0] > 1:
            opened = _Open(kernel)
        else:
            result.append(Stage([kernel]))
    if opened is not None:
        result.extend(opened.close())
    return result


def row_span(loop: Loop, access: Access, factor: int) -> tuple[int, int, int]:
    """(elements from one row to the next, lowest and highest element of the first row)."""
    view = access.view
    low = high = view.offset
    extents = (factor, *loop.shape[1:])
    for extent, stride in zip(extents, view.strides, strict=True):
        low += min(0, (extent - 1) * stride)
        high += max(0, (extent - 1) * stride)
    return view.strides[0] * factor, low, high


class _Open:
    """A stage that may still grow."""

    def __init__(self, kernel: Loop) -> None:
        self.kernels: list[Loop] = [kernel]
        self.rows = kernel.shape[0]
        self.touched: set[Node] = set(kernel.buffers)
        self.written: set[Node] = set(kernel.targets)
        self.sums: set[Node] = _sums_over_rows(kernel)
        self.steps: dict[Node, int] = {}
        """How far apart the rows of what is written lie; empty before that was looked at."""

    def independent(self, kernel: Loop | Special) -> bool:
        """Whether a kernel may run before the stage."""
        nodes = kernel.sources if isinstance(kernel, Special) else kernel.buffers
        return self.written.isdisjoint(nodes)

    def accepts(self, kernel: Loop | Special) -> bool:
        """Add a kernel, if its rows are those of the stage."""
        if isinstance(kernel, Special) or len(self.kernels) >= MOST_KERNELS or 0 in kernel.shape:
            return False
        if self.touched.isdisjoint(kernel.buffers) or not self.sums.isdisjoint(kernel.buffers):
            return False
        extent = kernel.shape[0]
        rows = min(self.rows, extent)
        if rows < 2 or extent % rows or self.rows % rows:
            return False
        written = self.written | set(kernel.targets)
        sums = self.sums | _sums_over_rows(kernel)
        known = self.steps if rows == self.rows else {}
        # No kernel reads what a later one writes: for as many rows, the others need not be looked at again.
        steps = rows_apart([kernel] if known else [*self.kernels, kernel], rows, written - sums, known)
        if steps is None:
            return False
        if known:
            known.update(steps)
        else:
            self.steps = steps
        self.kernels.append(kernel)
        self.rows, self.written, self.sums = rows, written, sums
        self.touched.update(kernel.buffers)
        return True

    def close(self) -> list[Stage]:
        """The finished stage, or its kernels one by one if blocks would not help."""
        apart = [Stage([kernel]) for kernel in self.kernels]
        if len(self.kernels) < 2:
            return apart
        steps: dict[Node, int] = {}
        for kernel in self.kernels:
            factor = kernel.shape[0] // self.rows
            for position, access in enumerate(kernel.accesses):
                # A table that is gathered from has no rows.
                if access.buffer >= 0 and position not in kernel.gathered:
                    node = kernel.buffers[access.buffer]
                    steps[node] = max(steps.get(node, 0), abs(access.view.strides[0] * factor))
        row_bytes = sum(step * node.dtype.itemsize for node, step in steps.items())
        if row_bytes * self.rows < SMALLEST_STAGE or row_bytes > LARGEST_ROW:
            return apart
        partial = sum(node.size * node.dtype.itemsize for node in self.sums)
        most = max(FEW_BLOCKS, PARTIAL_BYTES // max(partial, 1)) if partial else self.rows
        block = max(1, BLOCK_BYTES // max(row_bytes, 1), -(-self.rows // most))
        if block >= self.rows:
            return apart
        return [Stage([*self.kernels], self.rows, block)]


def _sums_over_rows(kernel: Loop) -> set[Node]:
    return {kernel.buffers[kernel.accesses[r.access].buffer] for r in kernel.reductions if r.axes[0]}


def rows_apart(
    kernels: Sequence[Loop], rows: int, written: set[Node], known: Mapping[Node, int]
) -> dict[Node, int] | None:
    """How many elements the rows of each array that is written lie apart, beside those of `known`.

    None unless a row of each is made and read by the same row of every kernel.
    """
    steps: dict[Node, int] = {}
    for kernel in kernels:
        factor = kernel.shape[0] // rows
        for position, access in enumerate(kernel.accesses):
            node = kernel.buffers[access.buffer] if access.buffer >= 0 else None
            if node is None or node not in written:
                continue
            if position in kernel.gathered or access.view.valid[0] is not None:
                return None
            step, low, high = row_span(kernel, access, factor)
            if low < 0 or high >= step or known.get(node, step) != step or steps.setdefault(node, step) != step:
                return None
    return steps
