"""Variables and arrays of a derivative as LLVM IR.

In: names, and `Facts`, which are known of them. Out: `ArrayCode`, which has collected the lines of IR. Called by
statement_code.py. Variables are places on the stack, which LLVM makes registers of. An array is the address of its
elements, side by side in C order, and its extents; an array that a function makes is freed at its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..kernel_statements import Atom, is_name
from .number_code import BOOL, FLOAT32, FLOAT64, INT, Number, NumberCode, UnknownPartError, constant, joined, literal

ELEMENTS = {
    "float64": FLOAT64,
    "float32": FLOAT32,
    "int64": INT,
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint32": "i32",
    "uint16": "i16",
    "uint8": "i8",
    "bool": "i8",
}
"""The types in memory of the dtypes that arrays may have."""
SIZES = {FLOAT64: 8, FLOAT32: 4, INT: 8, "i32": 4, "i16": 2, "i8": 1}
FAILED = "out_of_memory"
_TOO_MUCH = 2**62
SMALL = 1024
"""Bytes up to which an array of a known shape lies on the stack."""


class Layout(NamedTuple):
    """The dtype and rank of an array, and the length of its last axis; 0 if that is not known."""

    dtype: str
    rank: int
    last: int = 0


def kind_of(dtype: str) -> str:
    """The kind of the numbers of a dtype."""
    if dtype not in ELEMENTS:
        raise UnknownPartError
    if dtype == "bool":
        return BOOL
    return {FLOAT64: FLOAT64, FLOAT32: FLOAT32}.get(ELEMENTS[dtype], INT)


class Facts:
    """The kinds of the numbers of a function, the layouts of its arrays, and the integers that may be negative."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self.layouts: dict[str, Layout] = {}
        self.signed: set[str] = set()

    def state(self) -> tuple[object, ...]:
        """The state that changes while kinds are found."""
        return dict(self.kinds), dict(self.layouts), len(self.signed)

    def set_number(self, name: str, number: Number) -> str:
        """Note that a variable is set to a number; gives its kind."""
        known = self.kinds.get(name)
        self.kinds[name] = kind = number.kind if known is None else joined(known, number.kind)
        if not number.natural:
            self.signed.add(name)
        return kind

    def set_array(self, array: str, layout: Layout) -> None:
        """Note the layout of an array."""
        known = self.layouts.setdefault(array, layout)
        if known[:2] != layout[:2]:
            raise UnknownPartError  # an array of several dtypes or ranks
        if known.last != layout.last:
            self.layouts[array] = known._replace(last=0)

    def layout(self, array: str) -> Layout:
        """The dtype and rank of an array, which was made or given before."""
        if array not in self.layouts:
            raise UnknownPartError
        return self.layouts[array]


class ArrayCode(NumberCode):
    """Lines of IR about the variables and arrays of a function."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self.facts = facts
        self.slots: list[str] = []
        """Places on the stack."""
        self.exits: list[str] = []
        """The labels after the loops at hand."""

    # ----- Variables -----

    def layout(self, array: str) -> Layout:
        return self.facts.layout(array)

    def atom(self, atom: Atom) -> Number:
        """The number of an atom."""
        if not is_name(atom):
            return literal(atom)
        kind = self.facts.kinds.setdefault(atom, BOOL)
        natural = kind == INT and atom not in self.facts.signed
        return self.value(kind, f"load {kind}, ptr %{atom}.place", natural)

    def integer(self, atom: Atom) -> Number:
        """The integer of an atom."""
        found = self.atom(atom)
        if found.kind in (FLOAT32, FLOAT64):
            raise UnknownPartError  # a float as an integer
        return self.cast(found, INT)

    def set_number(self, name: str, number: Number) -> None:
        """Give a variable a value."""
        kind = self.facts.set_number(name, number)
        self.put(f"store {kind} {self.cast(number, kind).value}, ptr %{name}.place")

    # ----- Elements -----

    def data(self, array: str) -> str:
        """The address of an array's elements."""
        return self.value("ptr", f"load ptr, ptr %{array}.data").value

    def extent(self, array: str, axis: int) -> Number:
        """The length of an axis."""
        if axis >= self.layout(array).rank:
            raise UnknownPartError  # an axis
        if axis == self.layout(array).rank - 1 and self.layout(array).last:
            return constant(self.layout(array).last)
        return self.value(INT, f"load i64, ptr %{array}.extent{axis}", natural=True)

    def size(self, array: str) -> Number:
        """The number of elements."""
        found = constant(1)
        for axis in range(self.layout(array).rank):
            found = self.value(INT, f"mul nuw nsw i64 {found.value}, {self.extent(array, axis).value}")
        return found

    def element(self, array: str, index: Sequence[Atom]) -> str:
        """The address of an element; negative indices count from the end."""
        layout = self.layout(array)
        if len(index) != layout.rank:
            raise UnknownPartError  # an index of a row
        offset = "0"
        for axis, atom in enumerate(index):
            at = self.integer(atom)
            extent = self.extent(array, axis)
            if not at.natural:
                negative = self.value(BOOL, f"icmp slt i64 {at.value}, 0")
                turned = self.value(INT, f"add i64 {at.value}, {extent.value}")
                at = self.value(INT, f"select i1 {negative.value}, i64 {turned.value}, i64 {at.value}")
            if axis:
                row = self.value(INT, f"mul nsw i64 {offset}, {extent.value}")
                at = self.value(INT, f"add nsw i64 {row.value}, {at.value}")
            offset = at.value
        element = ELEMENTS[layout.dtype]
        return self.value("ptr", f"getelementptr inbounds {element}, ptr {self.data(array)}, i64 {offset}").value

    def load(self, array: str, place: str) -> Number:
        """The number at an address."""
        dtype = self.layout(array).dtype
        element, kind = ELEMENTS[dtype], kind_of(dtype)
        found = self.value(element, f"load {element}, ptr {place}")
        if kind == BOOL:
            return self.value(BOOL, f"icmp ne i8 {found.value}, 0")
        if kind == INT and element != INT:
            unsigned = dtype.startswith("u")
            return self.value(INT, f"{'z' if unsigned else 's'}ext {element} {found.value} to i64", natural=unsigned)
        return found

    def keep(self, array: str, place: str, number: Number) -> None:
        """Store a number at an address."""
        dtype = self.layout(array).dtype
        element, kind = ELEMENTS[dtype], kind_of(dtype)
        value = self.cast(number, kind).value
        if element != kind:
            value = self.value(element, f"{'zext' if kind == BOOL else 'trunc'} {kind} {value} to {element}").value
        self.put(f"store {element} {value}, ptr {place}")

    # ----- Control -----

    def loop(self, count: Number, body: Callable[[Number], None]) -> None:
        """Write a loop of some turns; `body` writes one, given its number."""
        head, turn, end, slot = self.labels("head", "turn", "end", "counter")
        self.slots.append(f"%{slot} = alloca i64")
        self.put(f"store i64 0, ptr %{slot}")
        self.put(f"br label %{head}")
        self.begin(head)
        now = self.value(INT, f"load i64, ptr %{slot}", natural=True)
        more = self.value(BOOL, f"icmp slt i64 {now.value}, {count.value}")
        self.put(f"br i1 {more.value}, label %{turn}, label %{end}")
        self.begin(turn)
        self.exits.append(end)
        body(now)
        self.exits.pop()
        later = self.value(INT, f"add nuw nsw i64 {now.value}, 1")
        self.put(f"store i64 {later.value}, ptr %{slot}")
        self.put(f"br label %{head}")
        self.begin(end)

    def check(self, failed: str) -> None:
        """Leave the function if there was no memory."""
        (label,) = self.labels("ready")
        self.put(f"br i1 {failed}, label %{FAILED}, label %{label}")
        self.begin(label)

    # ----- Whole arrays -----

    def allocate(self, array: str, extents: Sequence[str], zero: bool = False) -> None:
        """Make a local array instead of the one that there was."""
        width = SIZES[ELEMENTS[self.layout(array).dtype]]
        old = self.value("ptr", f"load ptr, ptr %{array}.own").value
        self.put(f"call void @free(ptr {old})")
        self.put(f"store ptr null, ptr %{array}.own")
        count = str(width)
        for axis, extent in enumerate(extents):
            self.put(f"store i64 {extent}, ptr %{array}.extent{axis}")
            count = self.bytes(count, extent)
        # At least one byte: memory without any may have no address.
        count = self.value(INT, f"add i64 {count}, {width}").value
        call = f"@calloc(i64 1, i64 {count})" if zero else f"@malloc(i64 {count})"
        self.take(array, self.value("ptr", f"call noalias ptr {call}").value)

    def on_stack(self, array: str, shape: Sequence[int], zero: bool) -> bool:
        """Make a local array of a known shape on the stack, the same one each time, if it is small."""
        element = ELEMENTS[self.layout(array).dtype]
        size = math.prod(shape)
        if size * SIZES[element] > SMALL:
            return False
        slot = f"%{array}.stack = alloca [{max(size, 1)} x {element}], align 16"
        if slot not in self.slots:
            self.slots.append(slot)
        for axis, extent in enumerate(shape):
            self.put(f"store i64 {extent}, ptr %{array}.extent{axis}")
        self.put(f"store ptr %{array}.stack, ptr %{array}.data")
        if zero:
            count = size * SIZES[element]
            self.put(f"call void @llvm.memset.p0.i64(ptr %{array}.stack, i8 0, i64 {count}, i1 false)")
        return True

    def bytes(self, size: str, count: str) -> str:
        """A number of bytes; more than there is, if it has more digits than an integer."""
        pair = self.value("{i64, i1}", f"call {{i64, i1}} @llvm.smul.with.overflow.i64(i64 {size}, i64 {count})").value
        found = self.value(INT, f"extractvalue {{i64, i1}} {pair}, 0").value
        over = self.value(BOOL, f"extractvalue {{i64, i1}} {pair}, 1").value
        return self.value(INT, f"select i1 {over}, i64 {_TOO_MUCH}, i64 {found}").value

    def take(self, array: str, memory: str) -> None:
        """Have memory as that of a local array, unless there is none."""
        failed = self.value(BOOL, f"icmp eq ptr {memory}, null").value
        (label,) = self.labels("made")
        self.put(f"br i1 {failed}, label %{FAILED}, label %{label}")
        self.begin(label)
        self.put(f"store ptr {memory}, ptr %{array}.own")
        self.put(f"store ptr {memory}, ptr %{array}.data")

    def not_negative(self, atom: Atom) -> str:
        """An extent."""
        found = self.integer(atom)
        if found.natural:
            return found.value
        below = self.value(BOOL, f"icmp slt i64 {found.value}, 0")
        return self.value(INT, f"select i1 {below.value}, i64 0, i64 {found.value}").value

    def copy(self, memory: str, source: str) -> None:
        """Copy the elements of an array."""
        width = SIZES[ELEMENTS[self.layout(source).dtype]]
        count = self.value(INT, f"mul nuw nsw i64 {self.size(source).value}, {width}").value
        self.put(f"call void @llvm.memcpy.p0.p0.i64(ptr {memory}, ptr {self.data(source)}, i64 {count}, i1 false)")

    def fill(self, array: str, number: Number) -> None:
        """Set all elements of an array to a number."""
        data, size = self.data(array), self.size(array)
        element = ELEMENTS[self.layout(array).dtype]

        def body(turn: Number) -> None:
            place = self.value("ptr", f"getelementptr inbounds {element}, ptr {data}, i64 {turn.value}").value
            self.keep(array, place, number)

        self.loop(size, body)

    def room(self, array: str, length: Number, keeps: bool) -> None:
        """Have at least some length along the one axis of an array."""
        layout = self.layout(array)
        if layout.rank != 1:
            raise UnknownPartError  # room along several axes
        short, ready = self.labels("short", "ready")
        old = self.extent(array, 0)
        less = self.value(BOOL, f"icmp slt i64 {old.value}, {length.value}").value
        self.put(f"br i1 {less}, label %{short}, label %{ready}")
        self.begin(short)
        if keeps:
            more = self.value(INT, f"shl i64 {length.value}, 1").value
            more = self.value(INT, f"add i64 {more}, 64").value
            count = self.value(INT, f"mul i64 {more}, {SIZES[ELEMENTS[layout.dtype]]}").value
            own = self.value("ptr", f"load ptr, ptr %{array}.own").value
            self.take(array, self.value("ptr", f"call ptr @realloc(ptr {own}, i64 {count})").value)
            self.put(f"store i64 {more}, ptr %{array}.extent0")
        else:
            half = self.value(INT, f"ashr i64 {length.value}, 1").value
            self.allocate(array, [self.value(INT, f"add i64 {length.value}, {half}").value])
        self.put(f"br label %{ready}")
        self.begin(ready)

    def position(self, array: str, number: Number, right: bool) -> Number:
        """The place of a number in a sorted array."""
        if self.layout(array)[:2] != ("float64", 1):
            raise UnknownPartError  # another dtype
        given = f"ptr {self.data(array)}, i64 {self.extent(array, 0).value}, double {self.cast(number, FLOAT64).value}"
        return self.value(INT, f"call i64 @nbgrad.position({given}, i1 {str(right).lower()})", natural=True)

    def vector_element(self, kind: int, matrix: str, row: Atom, column: Atom) -> Number:
        """An element of the vectors that LAPACK finds for a matrix."""
        layout = self.layout(matrix)
        if layout.rank != 2 or layout.dtype not in ("float32", "float64"):
            raise UnknownPartError  # a matrix of another dtype
        data = self.value(INT, f"ptrtoint ptr {self.data(matrix)} to i64")
        given = [constant(kind), data, constant(int(layout.dtype == "float64"))]
        given += [self.extent(matrix, 0), self.extent(matrix, 1), self.integer(row), self.integer(column)]
        asked = self.value("ptr", "load ptr, ptr @nbgrad.lapack").value
        return self.value(FLOAT64, f"call double {asked}({', '.join([f'i64 {one.value}' for one in given])})")

    def part(self, array: str, parts: str, part: Number, count: Number, whole: str) -> None:
        """Have an array as one of the copies of another, or as that itself, if there is only one."""
        layout = self.layout(whole)
        self.facts.set_array(array, layout)
        first = self.value(INT, f"mul nsw i64 {part.value}, {self.size(whole).value}").value
        element = ELEMENTS[layout.dtype]
        place = self.value("ptr", f"getelementptr {element}, ptr {self.data(parts)}, i64 {first}").value
        several = self.value(BOOL, f"icmp sgt i64 {count.value}, 1").value
        data = self.value("ptr", f"select i1 {several}, ptr {place}, ptr {self.data(whole)}").value
        self.put(f"store ptr {data}, ptr %{array}.data")
        for axis in range(layout.rank):
            self.put(f"store i64 {self.extent(whole, axis).value}, ptr %{array}.extent{axis}")

    def add_parts(self, whole: str, parts: str) -> None:
        """Add the copies of an array to it, in order."""
        size, element = self.size(whole), ELEMENTS[self.layout(whole).dtype]

        def part(number: Number) -> None:
            first = self.value(INT, f"mul nsw i64 {number.value}, {size.value}")

            def one(turn: Number) -> None:
                at = self.value(INT, f"add nsw i64 {first.value}, {turn.value}")
                data = self.data(parts)
                source = self.value("ptr", f"getelementptr inbounds {element}, ptr {data}, i64 {at.value}").value
                place = self.value(
                    "ptr", f"getelementptr inbounds {element}, ptr {self.data(whole)}, i64 {turn.value}"
                ).value
                kind, (old, more) = self.alike(self.load(whole, place), self.load(parts, source))
                self.keep(whole, place, self.value(kind, f"fadd {kind} {old.value}, {more.value}"))

            self.loop(size, one)

        self.loop(self.extent(parts, 0), part)
