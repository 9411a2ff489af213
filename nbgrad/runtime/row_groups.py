"""Groups of rows: kernels that go through the same rows together, so that what passes between them stays near.

In: the kernels of fuse.py in order, and the `Limits` of a target. Out: groups in an order that respects dependencies; a
limit turns each into what its target runs. Called by stages.py for the CPU, where kernels take turns on blocks of rows
that stay in cache, and by device_plan.py, where they become one GPU kernel.

Kernels belong to one group if they loop over the same rows on their outermost axis (or over a multiple of them), and if
a row of what one writes is made of, and becomes, the same row elsewhere. A sum over rows is finished when all rows are:
its reader starts a new group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from ..compiler.fuse import Special
from ..compiler.loops import Access, Loop
from ..graph.ir import Node

Made = TypeVar("Made")
Kernel = Loop | Special


class RowGroup:
    """Kernels over the same rows, to which more may come."""

    def __init__(self, kernel: Loop) -> None:
        self.kernels: list[Loop] = [kernel]
        self.rows = kernel.shape[0]
        self.touched: set[Node] = set(kernel.buffers)
        self.written: set[Node] = set(kernel.targets)
        self.sums: set[Node] = _sums_over_rows(kernel)
        self.steps: dict[Node, int] = {}
        """The distances between rows of arrays that are written; empty before they are known."""

    def independent(self, kernel: Kernel) -> bool:
        """Whether a kernel may run before the group."""
        return self.written.isdisjoint(kernel.buffers)

    def accepts(self, kernel: Kernel, limits: Limits[Made]) -> bool:
        """Add a kernel, if its rows are those of the group and the limits allow it."""
        if isinstance(kernel, Special) or len(self.kernels) >= limits.most or 0 in kernel.shape:
            return False
        if not self.sums.isdisjoint(kernel.buffers):
            return False
        extent = kernel.shape[0]
        rows = min(self.rows, extent)
        if extent % rows or self.rows % rows or not limits.accept(self, kernel, rows):
            return False
        written = self.written | set(kernel.targets)
        sums = self.sums | _sums_over_rows(kernel)
        known = self.steps if rows == self.rows else {}
        # No kernel reads what a later one writes: for as many rows, the others need not be looked at again.
        steps = _rows_apart([kernel] if known else [*self.kernels, kernel], rows, written - sums, known)
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


class Limits(ABC, Generic[Made]):
    """The limits of a target for kernels over the same rows."""

    most: int
    """The most kernels of a group."""

    @abstractmethod
    def begins(self, kernel: Loop) -> bool:
        """Whether a group may begin with a kernel, which has elements."""

    @abstractmethod
    def accept(self, group: RowGroup, kernel: Loop, rows: int) -> bool:
        """Whether a kernel may join a group that has `rows` rows then."""

    @abstractmethod
    def close(self, group: RowGroup) -> list[Made]:
        """The work of the target for a complete group: the kernels together, or each on its own."""

    @abstractmethod
    def alone(self, kernel: Kernel) -> Made:
        """The work of the target for a kernel on its own."""


def grouped(kernels: Sequence[Kernel], limits: Limits[Made]) -> list[Made]:
    """Group kernels; the order respects their dependencies."""
    result: list[Made] = []
    group: RowGroup | None = None
    for kernel in kernels:
        if group is not None:
            if group.accepts(kernel, limits):
                continue
            if group.independent(kernel):
                result.append(limits.alone(kernel))
                continue
            result.extend(limits.close(group))
            group = None
        if isinstance(kernel, Loop) and 0 not in kernel.shape and limits.begins(kernel):
            group = RowGroup(kernel)
        else:
            result.append(limits.alone(kernel))
    if group is not None:
        result.extend(limits.close(group))
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


def _sums_over_rows(kernel: Loop) -> set[Node]:
    return {kernel.buffers[kernel.accesses[r.access].buffer] for r in kernel.reductions if r.axes[0]}


def _rows_apart(
    kernels: Sequence[Loop], rows: int, written: set[Node], known: Mapping[Node, int]
) -> dict[Node, int] | None:
    """The distances between rows of each array that is written, in elements, beside those of `known`.

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
