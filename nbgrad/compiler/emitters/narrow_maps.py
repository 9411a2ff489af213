"""Functions of short rows, as of one long row: softmax over a few classes, features scaled by column.

In: a `Loop` over rows of a few elements, with an expensive value or of float32 (`Loop.narrow`). Out: its IR. Called by
loop_ir.py. A vector holds more elements than are left at the end of a short row, which would be computed one by one. So
rows that follow one another in memory are one long row here: numbers that rows or columns share are first written out
for a block of rows, and results that are reduced along rows are reduced after it.
"""

from __future__ import annotations

from ..loops import COLUMN, NARROW, ROW, Loop, Reduction
from .emit import Emitter, memory_type, register_type

BLOCK = 512
"""Elements of a block of rows, at most."""
SPLAT = 4
"""Elements that are written at once; what is written beyond a row, the next one overwrites."""


class NarrowEmitter(Emitter):
    """Writes loops over rows of a few elements."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.copies: dict[int, str] = {}
        """Memory for the elements of a block, by the access that they are of."""
        for position, access in enumerate(loop.accesses):
            if loop.lying[position] in (ROW, COLUMN) or position in self.reduced():
                kind = memory_type(access.dtype)
                self.copies[position] = self.slot(f"[{BLOCK + NARROW} x {kind}], align 64", "copy")

    def reduced(self) -> set[int]:
        """The accesses that reductions write to."""
        return {r.access for r in self.loop.reductions}

    def nest(self, axis: int, low: str, high: str) -> None:
        """The loops from `axis` inwards; the last two are one."""
        if axis != self.last - 1:
            super().nest(axis, low, high)
            return
        self.width = f"%n{self.last}"
        step = self.let(f"sdiv i64 {BLOCK}, {self.width}")
        for position, lies in enumerate(self.loop.lying):
            if lies == COLUMN:
                self.indices.append(low)
                start = self.row(position, self.loop.accesses[position])
                self.indices.pop()
                self.counted(
                    self.slot("i64", "row"), "0", step, lambda k, p=position, s=start: self.write_columns(p, k, s)
                )

        def group(first: str) -> None:
            after = self.clamped(self.let(f"add nsw i64 {first}, {step}"), first, high)
            self.joined(first, after)

        self.counted(self.slot("i64", f"x{axis}"), low, high, group, stride=step)

    def write_columns(self, position: int, row: str, start: str) -> None:
        """Write what rows share into the copy, for one row."""
        kind = memory_type(self.loop.accesses[position].dtype)
        offset = self.let(f"mul nsw i64 {row}, {self.width}")

        def one(column: str) -> None:
            value = self.let(f"load {kind}, ptr {self.let(f'getelementptr {kind}, ptr {start}, i64 {column}')}")
            place = self.let(f"add nsw i64 {offset}, {column}")
            self.store(kind, value, self.copied(position, place))

        self.counted(self.slot("i64", "column"), "0", self.width, one)

    def write_row(self, position: int, row: str, offset: str) -> None:
        """Write a number that a row shares into the copy, as often as there are elements."""
        access = self.loop.accesses[position]
        kind = memory_type(access.dtype)
        self.indices.append(row)
        value = self.let(f"load {kind}, ptr {self.row(position, access)}")
        self.indices.pop()
        one = self.let(f"insertelement <{SPLAT} x {kind}> poison, {kind} {value}, i32 0")
        all_ = self.shuffled(kind, SPLAT, one, "poison", [0] * SPLAT)

        def some(column: str) -> None:
            place = self.let(f"add nsw i64 {offset}, {column}")
            address = self.copied(position, place)
            self.put(f"store <{SPLAT} x {kind}> {all_}, ptr {address}, align {access.dtype.itemsize}")

        self.counted(self.slot("i64", "column"), "0", self.width, some, stride=str(SPLAT))

    def joined(self, first: str, after: str) -> None:
        """Rows `first` to `after` as one."""
        loop = self.loop
        rows = [position for position, lies in enumerate(loop.lying) if lies == ROW and position not in self.reduced()]

        def elements(row: str) -> str:
            """The elements of the block in front of a row."""
            return self.let(f"mul nsw i64 {self.let(f'sub nsw i64 {row}, {first}')}, {self.width}")

        def fill(row: str) -> None:
            offset = elements(row)
            for position in rows:
                self.write_row(position, row, offset)

        if rows:
            self.counted(self.slot("i64", "row"), first, after, fill)
        self.indices.append(first)
        self.rows = [self.row(position, access) for position, access in enumerate(loop.accesses)]
        self.indices.pop()
        self.points(self.slot("i64", "j"), "0", elements(after))

        def reduce(row: str) -> None:
            offset = elements(row)
            self.indices.append(row)
            for r in loop.reductions:
                self.reduce_row(r, offset)
            self.indices.pop()

        if loop.reductions:
            self.counted(self.slot("i64", "row"), first, after, reduce)

    def reduce_row(self, r: Reduction, offset: str) -> None:
        """Reduce one row of what was computed for the block."""
        access = self.loop.accesses[r.access]
        kind = register_type(self.accumulator(r))
        self.registers = {r.access: self.slot(kind, "acc")}
        self.store(kind, self.start_value(r), self.registers[r.access])
        self.rows[r.access] = self.row(r.access, access)

        def one(column: str) -> None:
            place = self.let(f"add nsw i64 {offset}, {column}")
            value = self.read(access.dtype, self.copied(r.access, place))
            super(NarrowEmitter, self).reduce(r, value, column)

        self.counted(self.slot("i64", "column"), "0", self.width, one)
        self.finish(r, None)

    def reduce(self, r: Reduction, value: str, index: str) -> None:
        """Keep one point's contribution for `reduce_row`."""
        self.write(self.loop.accesses[r.access].dtype, value, self.copied(r.access, index))

    def address(self, position: int, index: str) -> str:
        """The address of a point's element, in the copy where there is one."""
        return self.copied(position, index) if position in self.copies else super().address(position, index)

    def copied(self, position: int, place: str) -> str:
        """The address of an element of a copy."""
        kind = memory_type(self.loop.accesses[position].dtype)
        return self.let(f"getelementptr {kind}, ptr {self.copies[position]}, i64 {place}")
