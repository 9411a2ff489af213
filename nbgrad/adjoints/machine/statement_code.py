"""Statements of a derivative as LLVM IR.

In: a block, the parameters of the function, and the kinds of those. Out: `FunctionCode.definition`, an internal
function, which gives 1 if there was no memory for a local array. Called by program_code.py. The kinds of variables
follow from the numbers that they are set to: program_code.py has the function written again until none changes.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from .array_code import ELEMENTS, FAILED, SIZES, ArrayCode, Facts, Layout, kind_of
from .lapack_elements import TEXTS
from .number_code import BOOL, FLOAT32, FLOAT64, INT, Number, UnknownPartError

_SORTED = {f"np.searchsorted({{1}}, {{0}}, side='{side}')": side == "right" for side in ("left", "right")}


class FunctionCode(ArrayCode):
    """The IR of one function; `functions` are those that it calls, by name, and those that it makes of loops."""

    def __init__(
        self,
        symbol: str,
        parameters: Sequence[str],
        body: Block,
        results: Sequence[Atom],
        facts: Facts,
        deciding: frozenset[str],
    ) -> None:
        super().__init__(facts)
        self.deciding = deciding
        self.symbol, self.parameters, self.results = symbol, list(parameters), list(results)
        self.returned: list[str | Layout] = []
        """The kinds of the numbers, and the layouts of the arrays, that are results."""
        self.calls: list[tuple[str, list[str | Number]]] = []
        """The functions that are called, with arrays by name, and numbers."""
        self.loops: list[tuple[str, list[str], Block]] = []
        """The parallel loops: the functions of their turns."""
        statements = list(walk(body))
        again = {one.array for loop in statements if isinstance(loop, For | While) for one in walk(loop.body)
                 if isinstance(one, New | Copy)}  # fmt: skip
        again |= {one.array for one in statements if isinstance(one, Room)}
        seen = {one.source for one in statements if isinstance(one, Alias)}
        seen |= {one for part in statements if isinstance(part, Part) for one in (part.parts, part.whole)}
        if again & seen:
            raise UnknownPartError  # another name of an array that is made anew
        self.own = sorted({one.array for one in statements if isinstance(one, New | Copy | Room)})
        made = {(one.array, one.shape, one.dtype) for one in statements if isinstance(one, New)}
        names = [array for array, *_ in made]
        others = {one.array for one in statements if isinstance(one, Copy | Room | Part | Alias)}
        self.fixed = {array for array, shape, _ in made if names.count(array) == 1 and all(map(str.isdigit, shape))}
        self.fixed -= others
        """The arrays that have one shape, which is known."""
        self.definition = self.text(body)

    # ----- Statements -----

    def write(self, body: Block) -> None:
        """Write a block."""
        for statement in body:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        """Write a statement."""
        match statement:
            case Set(target, Op(_, args, text, ())):
                self.exact = target in self.deciding
                self.set_number(target, self.operation(text, [self.atom(one) for one in args]))
            case Set(target, Op(_, (), "{0}.nbytes", (array,))):
                width = SIZES[ELEMENTS[self.layout(array).dtype]]
                self.set_number(target, self.value(INT, f"mul i64 {self.size(array).value}, {width}", natural=True))
            case Set(target, Op(_, (atom,), text, (array,))) if text in _SORTED:
                self.set_number(target, self.position(array, self.atom(atom), _SORTED[text]))
            case Set(target, Op(_, (row, column), text, (array,))) if text in TEXTS:
                self.set_number(target, self.vector_element(TEXTS[text], array, row, column))
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
                zero = fill in ("0", "0.0", "False")
                if array not in self.fixed or not self.on_stack(array, [int(one) for one in shape], zero):
                    self.allocate(array, [self.not_negative(one) for one in shape], zero)
                if fill and not zero:
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
