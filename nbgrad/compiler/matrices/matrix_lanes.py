"""Algorithms on many small matrices at once: each lane of a vector belongs to another matrix.

In: an algorithm, written in Python as for one matrix. Out: the IR text of a kernel that runs it on a block of matrices,
as many as a vector has lanes. Called by small_factors.py. A matrix lies in memory as a run of elements; a block of runs
is turned by shuffles, so that a vector has the same element of all matrices. All lanes do the same, so that decisions
are selections. Loops over rows and columns are written out for the smallest matrices, whose elements then live in
registers, and are loops of the code for others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..emitters.emit import number
from ..ir_text import IRText, kernel_text
from ..scalars import LLVM_TYPES

BYTES = 64
"""Of a vector."""


LOOP = "!1000"
HINT = f"""{LOOP} = distinct !{{{LOOP}, !1001, !1002}}
!1001 = !{{!"llvm.loop.vectorize.enable", i1 false}}
!1002 = !{{!"llvm.loop.unroll.disable"}}
"""


class Value:
    """A vector, one number for each matrix, or a truth value for each."""

    def __init__(self, lanes: MatrixLanes, name: str) -> None:
        self.lanes, self.name = lanes, name

    def _with(self, operation: str, other: Value) -> Value:
        return self.lanes.value(f"{operation} {self.lanes.vector} {self.name}, {other.name}")

    def __add__(self, other: Value) -> Value:
        return self._with("fadd contract", other)

    def __sub__(self, other: Value) -> Value:
        return self._with("fsub contract", other)

    def __mul__(self, other: Value) -> Value:
        return self._with("fmul contract", other)

    def rounded_product(self, other: Value) -> Value:
        """A product that is rounded before something is added."""
        return self._with("fmul", other)

    def __truediv__(self, other: Value) -> Value:
        return self._with("fdiv", other)

    def __neg__(self) -> Value:
        return self.lanes.value(f"fneg {self.lanes.vector} {self.name}")

    def __abs__(self) -> Value:
        return self.lanes.function("fabs", self)

    def __gt__(self, other: Value) -> Value:
        return self._with("fcmp ogt", other)

    def not_up_to(self, other: Value) -> Value:
        """Whether it is larger, or one of them is no number."""
        return self._with("fcmp ugt", other)

    def same(self, other: Value) -> Value:
        """Whether numbers are equal."""
        return self._with("fcmp oeq", other)


class Index:
    """A row or a column that the code counts."""

    def __init__(self, lanes: MatrixLanes, name: str) -> None:
        self.lanes, self.name = lanes, name

    def _with(self, operation: str, left: str, right: str) -> Index:
        return Index(self.lanes, self.lanes.let(f"{operation} nsw i64 {left}, {right}"))

    def __add__(self, other: Place) -> Index:
        return self._with("add", self.name, text(other))

    def __mul__(self, other: Place) -> Index:
        return self._with("mul", self.name, text(other))

    def __rsub__(self, other: int) -> Index:
        return self._with("sub", text(other), self.name)

    __radd__, __rmul__ = __add__, __mul__


Place = int | Index


def text(place: Place) -> str:
    """A place as an operand."""
    return str(place) if isinstance(place, int) else place.name


class Grid:
    """Numbers of each matrix, in rows of some columns."""

    def __init__(self, lanes: MatrixLanes, count: int, columns: int = 1) -> None:
        self.lanes, self.count, self.columns = lanes, count, columns
        self.memory = lanes.slot(f"[{count} x {lanes.vector}], align {BYTES}", "grid")

    def address(self, place: tuple[Place, Place]) -> str:
        """Of the vector at a row and a column."""
        row, column = place
        at = text(row * self.columns + column)
        return self.lanes.let(f"getelementptr {self.lanes.vector}, ptr {self.memory}, i64 {at}")

    def __getitem__(self, place: tuple[Place, Place]) -> Value:
        return self.lanes.value(f"load {self.lanes.vector}, ptr {self.address(place)}")

    def __setitem__(self, place: tuple[Place, Place], value: Value) -> None:
        self.lanes.put(f"store {self.lanes.vector} {value.name}, ptr {self.address(place)}")


class MatrixLanes(IRText):
    """The kernel that is being written.

    Parameters
    ----------
    dtype : str
    written_out : bool
        Whether loops over rows and columns are written out.
    """

    def __init__(self, dtype: str, written_out: bool) -> None:
        super().__init__()
        self.dtype, self.written_out = np.dtype(dtype), written_out
        self.kind = LLVM_TYPES[dtype]
        self.width = lanes_of(dtype)
        self.vector, self.truths = (f"<{self.width} x {kind}>" for kind in (self.kind, "i1"))
        self.declared: set[str] = set()
        self.matrices: list[str] = []
        """The number of each lane's matrix in the block that is being written."""

    # ----- Numbers -----

    def value(self, expression: str) -> Value:
        """The result of an instruction."""
        return Value(self, self.let(expression))

    def number(self, value: Place | float) -> Value:
        """A number, in all lanes."""
        if not isinstance(value, Index):
            element = f"{self.kind} {number(self.dtype.type(value), self.dtype)}"
            return Value(self, f"<{', '.join([element] * self.width)}>")
        one = self.let(f"sitofp i64 {value.name} to {self.kind}")
        first = self.let(f"insertelement {self.vector} poison, {self.kind} {one}, i64 0")
        return Value(self, self.shuffled(self.kind, self.width, first, "poison", [0] * self.width))

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """A selection, lane by lane."""
        return self.value(f"select {self.truths} {condition.name}, {self.vector} {yes.name}, {self.vector} {no.name}")

    def either(self, first: Value, second: Value) -> Value:
        """Whether one of them is true."""
        return self.value(f"or {self.truths} {first.name}, {second.name}")

    def power_of_two(self, x: Value) -> Value:
        """The largest power of 2 up to a positive number: its exponent, without its other digits."""
        bits = 8 * self.dtype.itemsize
        exponent = np.array(np.inf, self.dtype).view(f"int{bits}")
        words = f"<{self.width} x i{bits}>"
        mask = f"<{', '.join([f'i{bits} {exponent}'] * self.width)}>"
        cut = self.let(f"and {words} {self.let(f'bitcast {self.vector} {x.name} to {words}')}, {mask}")
        return self.value(f"bitcast {words} {cut} to {self.vector}")

    def function(self, name: str, x: Value) -> Value:
        """A function that LLVM knows: fabs or sqrt."""
        full = f"@llvm.{name}.v{self.width}f{8 * self.dtype.itemsize}"
        self.declared.add(f"declare {self.vector} {full}({self.vector})")
        return self.value(f"call {self.vector} {full}({self.vector} {x.name})")

    # ----- Rows and columns -----

    def range(self, start: Place, stop: Place) -> Iterator[Any]:
        """The places from `start` to `stop`: one after the other, or once with the place that the code counts."""
        if self.written_out and isinstance(start, int) and isinstance(stop, int):
            yield from range(start, stop)
            return
        variable = self.slot("i64", "place")
        mark, index = self.begin_loop(variable, text(start), text(stop))
        yield Index(self, index)
        self.end_loop(mark, variable, index, f", !llvm.loop {LOOP}")

    def until_still(self, most: int) -> Iterator[list[Value]]:
        """Turns of a loop, `most` at most, as long as one of the conditions holds in a lane that the body lists."""
        variable = self.slot("i64", "turn")
        mark, index = self.begin_loop(variable, "0", str(most))
        moving: list[Value] = []
        yield moving
        together = functools.reduce(self.either, moving)
        some = self.let(f"call i1 @llvm.vector.reduce.or.v{self.width}i1({self.truths} {together.name})")
        self.end_loop(mark, variable, self.let(f"select i1 {some}, i64 {index}, i64 {most}"), f", !llvm.loop {LOOP}")

    # ----- Memory -----

    def pointers(self, array: int, distance: int, kind: str) -> list[str]:
        """Where the matrices of the block begin. The last one stands for those beyond the end."""
        return [
            self.let(f"getelementptr {kind}, ptr %p{array}, i64 {self.let(f'mul nsw i64 {lane}, {distance}')}")
            for lane in self.matrices
        ]

    def read(self, array: int, distance: int, count: int, columns: int, room: int = 0) -> Grid:
        """The first elements of each matrix of an array, at a distance of each other, with room for more in a grid."""
        grid, starts = Grid(self, max(count, room), columns), self.pointers(array, distance, self.kind)
        for first, size in self.groups(count):
            group = f"<{size} x {self.kind}>"
            rows = [
                self.let(f"load {group}, ptr {at}, align {self.dtype.itemsize}")
                for at in self.moved(starts, first, self.kind)
            ]
            for place, column in enumerate(self.turned(self.kind, self.width, self.side_by_side(rows, size))):
                grid[0, first + place] = Value(self, column)
        return grid

    def write(self, array: int, grid: Grid, integers: bool = False) -> None:
        """The whole of a result, which may be of integers."""
        kind, align = ("i64", 8) if integers else (self.kind, self.dtype.itemsize)
        starts = self.pointers(array, grid.count, kind)
        for first, size in self.groups(grid.count):
            columns = [grid[0, first + place].name for place in range(size)]
            if integers:
                columns = [self.let(f"fptosi {self.vector} {c} to <{self.width} x i64>") for c in columns]
            rows = self.turned(kind, self.width, columns)
            for lane, at in enumerate(self.moved(starts, first, kind)):
                start = lane // size * size
                row = rows[lane % size]
                if size < self.width:
                    row = self.shuffled(kind, self.width, row, "poison", range(start, start + size))
                self.put(f"store <{size} x {kind}> {row}, ptr {at}, align {align}")

    def moved(self, starts: list[str], first: Place, kind: str) -> list[str]:
        """Pointers some elements further."""
        return [self.let(f"getelementptr {kind}, ptr {start}, i64 {text(first)}") for start in starts]

    def groups(self, count: int) -> Iterator[tuple[Any, int]]:
        """A run of elements in groups of a power of 2, each with its first element."""
        whole = count // self.width
        for group in self.range(0, whole):
            yield group * self.width, self.width
        first, size = whole * self.width, self.width
        while first < count:
            size //= 2
            if count - first >= size:
                yield first, size
                first += size

    def side_by_side(self, parts: list[str], size: int) -> list[str]:
        """Short vectors, one for each lane, as `size` long ones: the first has those of every `size`-th lane."""
        rows: list[str] = []
        for start in range(size):
            row, length = parts[start::size], size
            while len(row) > 1:
                pairs = zip(row[::2], row[1::2], strict=True)
                row = [self.shuffled(self.kind, length, one, other, range(2 * length)) for one, other in pairs]
                length *= 2
            rows += row
        return rows

    # ----- The kernel -----

    def kernel(self, arrays: int, algorithm: Callable[[MatrixLanes], None]) -> str:
        """The text of a kernel whose last array is its result; `sizes` has the number of matrices."""
        last = self.let(f"sub nsw i64 {self.let('load i64, ptr %sizes')}, 1")

        def block(position: str) -> None:
            first = self.let(f"mul nsw i64 {position}, {self.width}")
            self.matrices = [
                self.let(f"call i64 @llvm.smin.i64(i64 {self.let(f'add nsw i64 {first}, {lane}')}, i64 {last})")
                for lane in range(self.width)
            ]
            algorithm(self)

        self.counted(self.slot("i64", "block"), "%begin", "%end", block, f", !llvm.loop {LOOP}")
        attributes = ["readonly"] * (arrays - 1) + [""]
        lines = [*self.slots, "  br label %start", "start:", *self.lines]
        return "\n".join([*sorted(self.declared), kernel_text(attributes, lines), HINT])


def lanes_of(dtype: str) -> int:
    """Matrices in a block."""
    return BYTES // np.dtype(dtype).itemsize
