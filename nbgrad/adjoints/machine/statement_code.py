"""Statements of a derivative as LLVM IR.

In: a block, the parameters of the function, and the kinds of those. Out: `FunctionCode.text`, an internal function,
which gives 1 if there was no memory for a local array. Called by program_code.py. Variables are places on the stack,
which LLVM makes registers of. An array is the address of its elements, side by side in C order, and its extents. The
kinds of variables follow from the numbers that they are set to: the function is written again until none changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..kernel_statements import (
    Alias,
    Atom,
    Block,
    Break,
    Call,
    Copy,
    Extent,
    For,
    If,
    Load,
    New,
    Op,
    Part,
    Room,
    Set,
    Statement,
    Store,
    While,
    atoms_of,
    is_name,
    loaded,
    stored,
    walk,
)
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
_SORTED = {f"np.searchsorted({{1}}, {{0}}, side='{side}')": side == "right" for side in ("left", "right")}


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
        """What changes while kinds are found."""
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


class FunctionCode(NumberCode):
    """The IR of one function; `functions` are those that it calls, by name, and those that it makes of loops."""

    def __init__(
        self, symbol: str, parameters: Sequence[str], body: Block, results: Sequence[Atom], facts: Facts
    ) -> None:
        super().__init__()
        self.symbol, self.parameters, self.results, self.facts = symbol, list(parameters), list(results), facts
        self.returned: list[str | Layout] = []
        """The kinds of the numbers, and the layouts of the arrays, that are results."""
        self.calls: list[tuple[str, list[str | Number]]] = []
        """The functions that are called, with arrays by name, and numbers."""
        self.loops: list[tuple[str, list[str], Block]] = []
        """The parallel loops: the functions of their turns."""
        self.exits: list[str] = []
        self.slots: list[str] = []
        statements = list(walk(body))
        again = {one.array for loop in statements if isinstance(loop, For | While) for one in walk(loop.body)
                 if isinstance(one, New | Copy)}  # fmt: skip
        again |= {one.array for one in statements if isinstance(one, Room)}
        seen = {one.source for one in statements if isinstance(one, Alias)}
        seen |= {one for part in statements if isinstance(part, Part) for one in (part.parts, part.whole)}
        if again & seen:
            raise UnknownPartError  # another name of an array that is made anew
        self.own = sorted({one.array for one in statements if isinstance(one, New | Copy | Room)})
        self.definition = self.text(body)

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

    # ----- Arrays -----

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

    def allocate(self, array: str, extents: Sequence[str], zero: bool = False) -> None:
        """Make a local array instead of the one that there was."""
        size = constant(1).value
        for axis, extent in enumerate(extents):
            self.put(f"store i64 {extent}, ptr %{array}.extent{axis}")
            size = self.value(INT, f"mul i64 {size}, {extent}").value
        width = SIZES[ELEMENTS[self.layout(array).dtype]]
        count = self.value(INT, f"mul i64 {size}, {width}").value
        count = self.value(INT, f"add i64 {count}, 64").value
        old = self.value("ptr", f"load ptr, ptr %{array}.own").value
        self.put(f"call void @free(ptr {old})")
        self.put(f"store ptr null, ptr %{array}.own")
        call = f"@calloc(i64 1, i64 {count})" if zero else f"@malloc(i64 {count})"
        self.take(array, self.value("ptr", f"call noalias ptr {call}").value)

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

    # ----- Statements -----

    def write(self, body: Block) -> None:
        """Write a block."""
        for statement in body:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        """Write a statement."""
        match statement:
            case Set(target, Op(_, args, text, ())):
                self.set_number(target, self.operation(text, [self.atom(one) for one in args]))
            case Set(target, Op(_, (), "{0}.nbytes", (array,))):
                width = SIZES[ELEMENTS[self.layout(array).dtype]]
                self.set_number(target, self.value(INT, f"mul i64 {self.size(array).value}, {width}", natural=True))
            case Set(target, Op(_, (atom,), text, (array,))) if text in _SORTED:
                self.set_number(target, self.position(array, self.atom(atom), _SORTED[text]))
            case Set(target, Load(array, index)):
                self.set_number(target, self.load(array, self.element(array, index)))
            case Set(target, Extent(array, axis)):
                self.set_number(target, self.extent(array, axis))
            case Store(array, index, value, add):
                number = self.atom(value)
                place = self.element(array, index)
                if add:
                    old = self.load(array, place)
                    kind, (old, number) = self.alike(old, number)
                    number = self.value(kind, f"{'add' if kind == INT else 'fadd'} {kind} {old.value}, {number.value}")
                self.keep(array, place, number)
            case If():
                self.branch(statement)
            case For():
                self.turns(statement)
            case While(body, test):
                self.repeated(body, test)
            case Break():
                self.put(f"br label %{self.exits[-1]}")
                self.begin(*self.labels("never"))
            case _:
                self.array_statement(statement)

    def array_statement(self, statement: Statement) -> None:
        """Write a statement about whole arrays."""
        match statement:
            case New(array, shape, dtype, fill):
                if dtype.endswith(".dtype"):
                    dtype = self.layout(dtype.removesuffix(".dtype")).dtype
                kind_of(dtype)
                last = int(shape[-1]) if shape and shape[-1].isdigit() else 0
                self.facts.set_array(array, Layout(dtype, len(shape), last if len(shape) > 1 else 0))
                self.allocate(array, [self.not_negative(one) for one in shape], zero=fill in ("0", "0.0", "False"))
                if fill and fill not in ("0", "0.0", "False"):
                    self.fill(array, self.atom(fill))
            case Copy(array, source):
                layout = self.layout(source)
                self.facts.set_array(array, layout)
                extents = [self.extent(source, axis).value for axis in range(layout.rank)]
                self.allocate(array, extents)
                self.copy(self.data(array), source)
            case Alias(array, source):
                self.facts.set_array(array, self.layout(source))
                self.put(f"store ptr {self.data(source)}, ptr %{array}.data")
                for axis in range(self.layout(source).rank):
                    self.put(f"store i64 {self.extent(source, axis).value}, ptr %{array}.extent{axis}")
            case Room(array, length, keeps):
                self.room(array, self.integer(length), keeps)
            case Part(array, parts, part, count, whole):
                self.part(array, parts, self.integer(part), self.integer(count), whole)
            case Call("add_parts", (whole, parts)):
                self.add_parts(whole, parts)
            case Call(function, arguments):
                self.call_function(function, arguments)
            case _:
                raise UnknownPartError

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

    def copy(self, memory: str, source: str) -> None:
        """Copy the elements of an array."""
        width = SIZES[ELEMENTS[self.layout(source).dtype]]
        count = self.value(INT, f"mul nuw nsw i64 {self.size(source).value}, {width}").value
        self.put(f"call void @llvm.memcpy.p0.p0.i64(ptr {memory}, ptr {self.data(source)}, i64 {count}, i1 false)")

    def position(self, array: str, number: Number, right: bool) -> Number:
        """The place of a number in a sorted array."""
        if self.layout(array)[:2] != ("float64", 1):
            raise UnknownPartError  # another dtype
        given = f"ptr {self.data(array)}, i64 {self.extent(array, 0).value}, double {self.cast(number, FLOAT64).value}"
        return self.value(INT, f"call i64 @nbgrad.position({given}, i1 {str(right).lower()})", natural=True)

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

    def branch(self, statement: If) -> None:
        """Write an `if`."""
        then, orelse, join = self.labels("then", "else", "join")
        test = self.cast(self.atom(statement.test), BOOL)
        self.put(f"br i1 {test.value}, label %{then}, label %{orelse}")
        for label, body in ((then, statement.then), (orelse, statement.orelse)):
            self.begin(label)
            self.write(body)
            self.put(f"br label %{join}")
        self.begin(join)

    def repeated(self, body: Block, test: Atom) -> None:
        """Write a loop that goes on while a number is true."""
        head, turn, end = self.labels("head", "turn", "end")
        self.put(f"br label %{head}")
        self.begin(head)
        self.put(f"br i1 {self.cast(self.atom(test), BOOL).value}, label %{turn}, label %{end}")
        self.begin(turn)
        self.exits.append(end)
        self.write(body)
        self.exits.pop()
        self.put(f"br label %{head}")
        self.begin(end)

    def turns(self, loop: For) -> None:
        """Write a loop over numbers."""
        count = self.integer(loop.count)
        if loop.parallel:
            self.parallel(loop, count)
            return

        def turn(now: Number) -> None:
            if loop.backwards:
                rest = self.value(INT, f"sub nsw i64 {count.value}, {now.value}")
                now = self.value(INT, f"sub nsw i64 {rest.value}, 1", natural=True)
            self.set_number(loop.turn, now)
            self.write(loop.body)

        self.loop(count, turn)

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

    # ----- Functions -----

    def parallel(self, loop: For, count: Number) -> None:
        """Write a loop whose turns are those of a function, which threads call."""
        own = {name for one in walk((loop,)) for name in _own(one)}
        used = {name for one in walk(loop.body) for name in _used(one)} - own
        name = f"{self.symbol}.loop{len(self.loops)}"
        numbers = sorted(one for one in used if one not in self.facts.layouts)
        arrays = sorted(one for one in used if one in self.facts.layouts)
        parameters = [loop.turn, *numbers, *arrays]
        self.loops.append((name, parameters, loop.body))
        given = [Number("0", INT, natural=True), *map(self.atom, numbers), *arrays]
        self.calls.append((name, given))
        cells = [f"i64 {count.value}", *[text for one in given[1:] for text in self.passed(one, plain=True)]]
        frame = self.labels("frame")[0]
        self.slots.append(f"%{frame} = alloca [{len(cells) + 2} x i64]")
        for k, cell in enumerate(["i64 0", "i64 0", *cells]):
            place = self.value("ptr", f"getelementptr i64, ptr %{frame}, i64 {k}").value
            self.put(f"store {cell}, ptr {place}")
        self.put(f"call void @nbgrad.threads(ptr @{name}.worker, ptr %{frame}, i64 %threads, ptr %start)")
        place = self.value("ptr", f"getelementptr i64, ptr %{frame}, i64 1").value
        status = self.value(INT, f"load i64, ptr {place}")
        self.check(self.value(BOOL, f"icmp ne i64 {status.value}, 0").value)

    def call_function(self, function: str, arguments: Sequence[str]) -> None:
        """Write a call of a function of the program."""
        given = [one if one in self.facts.layouts else self.atom(one) for one in arguments]
        self.calls.append((function, given))
        texts = [text for one in given for text in self.passed(one)]
        status = self.value("i32", f"call i32 @{function}({', '.join([*texts, 'i64 %threads', 'ptr %start'])})")
        self.check(self.value(BOOL, f"icmp ne i32 {status.value}, 0").value)

    def passed(self, one: str | Number, plain: bool = False) -> list[str]:
        """The arguments that stand for a number or for an array."""
        if isinstance(one, Number):
            return [f"{one.kind} {one.value}"]
        extents = [self.extent(one, axis).value for axis in range(self.layout(one).rank)]
        return [f"ptr {'' if plain else 'noalias '}{self.data(one)}", *[f"i64 {extent}" for extent in extents]]

    def check(self, failed: str) -> None:
        """Leave the function if there was no memory."""
        (label,) = self.labels("ready")
        self.put(f"br i1 {failed}, label %{FAILED}, label %{label}")
        self.begin(label)

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

    # ----- The function -----

    def text(self, body: Block) -> str:
        """The function."""
        self.begin("body")
        self.write(body)
        for k, atom in enumerate(self.results):
            if atom in self.facts.layouts:
                self.give(k, atom)
                continue
            number = self.atom(atom)
            number = self.cast(number, INT if number.kind in (BOOL, INT) else FLOAT64)
            place = self.value("ptr", f"getelementptr i64, ptr %results, i64 {k}").value
            self.put(f"store {number.kind} {number.value}, ptr {place}")
            self.returned.append(number.kind)
        self.put("br label %done")
        for label, status in (("done", 0), (FAILED, 1)):
            self.begin(label)
            for array in self.own:
                self.put(f"call void @free(ptr {self.value('ptr', f'load ptr, ptr %{array}.own').value})")
            self.put(f"ret i32 {status}")
        lines = [f"define internal i32 @{self.symbol}({', '.join(self.signature())}) {{", "entry:"]
        lines += [f"  {line}" for line in [*self.slots, *self.places()]]
        return "\n".join([*lines, "  br label %body", *self.lines, "}"])

    def signature(self) -> list[str]:
        """The parameters in IR."""
        found: list[str] = []
        for name in self.parameters:
            if name in self.facts.layouts:
                found.append(f"ptr noalias %{name}.given")
                found += [f"i64 %{name}.given{axis}" for axis in range(self.layout(name).rank)]
            else:
                found.append(f"{self.facts.kinds[name]} %{name}.given")
        return [*found, *(["ptr %results", "ptr %give"] if self.results else []), "i64 %threads", "ptr %start"]

    def give(self, k: int, array: str) -> None:
        """Write the array that is a result to an array that Python makes."""
        layout = self.layout(array)
        (extents,) = self.labels("extents")
        self.slots.append(f"%{extents} = alloca [{layout.rank} x i64]")
        for axis in range(layout.rank):
            place = self.value("ptr", f"getelementptr i64, ptr %{extents}, i64 {axis}").value
            self.put(f"store i64 {self.extent(array, axis).value}, ptr {place}")
        memory = self.value("ptr", f"call ptr %give(i64 {k}, ptr %{extents})").value
        self.check(self.value(BOOL, f"icmp eq ptr {memory}, null").value)
        self.copy(memory, array)
        self.returned.append(layout)

    def places(self) -> list[str]:
        """The variables, with the values of parameters; all others are zero."""
        lines: list[str] = []

        def place(name: str, kind: str, value: str) -> None:
            lines.extend([f"%{name} = alloca {kind}", f"store {kind} {value}, ptr %{name}"])

        for name, kind in self.facts.kinds.items():
            zero = "0.0" if kind in (FLOAT32, FLOAT64) else "0"
            place(f"{name}.place", kind, f"%{name}.given" if name in self.parameters else zero)
        for name, layout in self.facts.layouts.items():
            given = name in self.parameters
            place(f"{name}.data", "ptr", f"%{name}.given" if given else "null")
            for axis in range(layout.rank):
                place(f"{name}.extent{axis}", INT, f"%{name}.given{axis}" if given else "0")
        for name in self.own:
            place(f"{name}.own", "ptr", "null")
        return lines


def _own(statement: Statement) -> set[str]:
    """The names that a statement itself gives a meaning."""
    match statement:
        case Set(name) | For(name) | New(name) | Copy(name) | Alias(name) | Room(name) | Part(name):
            return {name}
        case _:
            return set()


def _used(statement: Statement) -> set[str]:
    """The names of numbers and arrays that a statement uses."""
    found = {atom for atom in atoms_of(statement) if is_name(atom)}
    match statement:
        case Set(_, Extent(array)):
            found.add(array)
        case If() | For() | While():
            pass
        case _:
            found |= loaded([statement]) | stored([statement])
    return found
