"""Loops that read arrays across, in tiles: the IR of transposes within maps.

In: a `Loop`, as emit.py takes it. Out: its IR. Called by loop_ir.py. An array whose elements lie side by side along
the axis before the last one is read in tiles of 8 rows and columns, which vector instructions turn; the loop then reads
the turned tile along the last axis, as all its other arrays. What is left over at the ends of rows and columns is read
element by element.
"""

from __future__ import annotations

from ..loops import TILE, Access, Loop
from .emit import Emitter, memory_type

BAND = 32
"""Rows that go through all columns together: so many elements are read from memory in a row."""


ROW = "!6"
"""The metadata that a row of a tile is a vector; none of the loops of emit.py has it."""


class TileEmitter(Emitter):
    """Writes a map that turns arrays."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.hints.append(f'{ROW} = !{{!"llvm.loop.vectorize.width", i32 {TILE}}}')
        self.tiles: dict[int, str] = {}
        """Memory for a turned tile, by the access."""
        self.corner: tuple[str, str] | None = None
        """The first row and column of the tile that is being computed; None at the ends."""

    def nest(self, axis: int, low: str, high: str) -> None:
        """The loops from `axis` inwards; the last two go through tiles."""
        if axis != self.last - 1:
            super().nest(axis, low, high)
            return
        rows = self.let(f"and i64 {self.let(f'sub nsw i64 {high}, {low}')}, {-TILE}")
        stop = self.let(f"add nsw i64 {low}, {rows}")
        columns = self.let(f"and i64 %n{self.last}, {-TILE}")

        def lines(row: str, below: str, first: str, last: str) -> None:
            def line(index: str) -> None:
                self.indices.append(index)
                self.innermost(first, last)
                self.indices.pop()

            self.counted(self.slot("i64", "line"), row, below, line)

        def band(row: str) -> None:
            below = self.clamped(self.let(f"add nsw i64 {row}, {BAND}"), row, stop)

            def strip(column: str) -> None:
                right = self.let(f"add nsw i64 {column}, {TILE}")

                def tile(top: str) -> None:
                    for position in sorted(self.loop.turned):
                        self.turn(position, self.loop.accesses[position], top, column)
                    self.corner = top, column
                    lines(top, self.let(f"add nsw i64 {top}, {TILE}"), column, right)
                    self.corner = None

                self.counted(self.slot("i64", "tile"), row, below, tile, stride=str(TILE))

            self.counted(self.slot("i64", "strip"), "0", columns, strip, stride=str(TILE))
            lines(row, below, columns, f"%n{self.last}")

        self.counted(self.slot("i64", "band"), low, stop, band, stride=str(BAND))
        super().nest(axis, stop, high)

    def hint(self) -> str:
        """The hint to LLVM: a row of a tile is one vector, not as many turns to be written out."""
        return super().hint() if self.corner is None else self.told(f"!4, {ROW}")

    def wide_turns(self) -> int | None:
        """No row of a tile has as many points as a call of an elementary function takes."""
        return super().wide_turns() if self.corner is None else None

    def turn(self, position: int, access: Access, row: str, column: str) -> None:
        """Read a tile along the rows of memory, and store it with rows and columns exchanged."""
        kind = memory_type(access.dtype)
        vector, stride = f"<{TILE} x {kind}>", f"%a{position}.s{self.last}"
        self.indices.append(row)
        start = self.row(position, access)
        self.indices.pop()
        parts: list[str] = []
        for k in range(TILE):
            at = self.let(f"mul nsw i64 {self.let(f'add nsw i64 {column}, {k}')}, {stride}")
            address = self.let(f"getelementptr {kind}, ptr {start}, i64 {at}")
            parts.append(self.let(f"load {vector}, ptr {address}, align {access.dtype.itemsize}"))
        parts = self.turned(kind, TILE, parts)
        if position not in self.tiles:
            self.tiles[position] = self.slot(f"[{TILE * TILE} x {kind}], align 64", "tile")
        for k, part in enumerate(parts):
            address = self.let(f"getelementptr {kind}, ptr {self.tiles[position]}, i64 {k * TILE}")
            self.put(f"store {vector} {part}, ptr {address}, align {TILE * access.dtype.itemsize}")

    def address(self, position: int, index: str) -> str:
        """The address of a point's element, in the tile where there is one."""
        if self.corner is None or position not in self.tiles:
            return super().address(position, index)
        row, column = self.corner
        line = self.let(f"mul nsw i64 {self.let(f'sub nsw i64 {self.indices[-1]}, {row}')}, {TILE}")
        place = self.let(f"add nsw i64 {line}, {self.let(f'sub nsw i64 {index}, {column}')}")
        kind = memory_type(self.loop.accesses[position].dtype)
        return self.let(f"getelementptr {kind}, ptr {self.tiles[position]}, i64 {place}")
