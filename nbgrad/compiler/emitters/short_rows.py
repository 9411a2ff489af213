"""Sums along short rows, several rows side by side: distances between points, norms of vectors, softmax over classes.

In: a `Loop` whose innermost axis is short and reduced, and the axis around it is not (`Loop.short_rows`). Out: its IR.
Called by loop_ir.py. Four rows go through the innermost loop together: operands that they share are read once, and
the preparation of the loop and the sum over the lanes of a vector, which cost more than a short row itself, are shared
or overlap. Rows that are left over go one by one.
"""

from __future__ import annotations

from ..loops import Loop
from .emit import INTERIOR, Emitter, register_type

ROWS = 4
"""Rows that go together."""


class ShortRowEmitter(Emitter):
    """Writes reductions of short rows."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.starts: list[list[str]] = []
        """For each row of a group, where its accesses begin."""
        self.totals: list[dict[int, str]] = []
        """For each row of a group, the register of each reduction, by its access."""

    def hint(self) -> str:
        """The hint to LLVM: what is left over at the end of a row is a vector with a mask, where that pays."""
        return self.told(INTERIOR) if self.loop.left_over else super().hint()

    def nest(self, axis: int, low: str, high: str) -> None:
        """The loops from `axis` inwards; the last but one goes through groups of rows."""
        if axis != self.last - 1:
            super().nest(axis, low, high)
            return
        rows = self.let(f"and i64 {self.let(f'sub nsw i64 {high}, {low}')}, {-ROWS}")
        stop = self.let(f"add nsw i64 {low}, {rows}")
        variable = self.slot("i64", f"x{axis}")
        self.counted(variable, low, stop, lambda first: self.group(first, ROWS), stride=str(ROWS))
        self.counted(variable, stop, high, lambda first: self.group(first, 1))

    def group(self, first: str, count: int) -> None:
        """Rows from `first` on, together."""
        loop = self.loop
        self.starts, self.totals = [], []
        for k in range(count):
            self.indices.append(self.let(f"add nsw i64 {first}, {k}") if k else first)
            starts = [
                self.starts[0][position] if k and position in loop.shared_rows else self.row(position, access)
                for position, access in enumerate(loop.accesses)
            ]
            self.starts.append(starts)
            self.indices.pop()
            totals: dict[int, str] = {}
            for r in loop.reductions:
                kind = register_type(self.accumulator(r))
                totals[r.access] = self.slot(kind, "acc")
                self.store(kind, self.start_value(r), totals[r.access])
            self.totals.append(totals)
        self.counted(self.slot("i64", "j"), "0", f"%n{self.last}", self.point, self.hint())
        for k in range(count):
            self.indices.append(self.let(f"add nsw i64 {first}, {k}") if k else first)
            self.rows, self.registers = self.starts[k], self.totals[k]
            for r in loop.reductions:
                self.finish(r, None)
            self.indices.pop()

    def point(self, index: str) -> None:
        """A point of each row of the group."""
        loop = self.loop
        common: dict[int, str] = {}
        for k, (starts, totals) in enumerate(zip(self.starts, self.totals, strict=True)):
            self.rows, self.registers = starts, totals
            names: list[str] = []
            for position, value in enumerate(loop.values):
                if k and position in loop.shared_values:
                    names.append(common[position])
                else:
                    names.append(self.value(value, names, index))
                    common.setdefault(position, names[-1])
            for r in loop.reductions:
                self.reduce(r, names[r.value], index)
