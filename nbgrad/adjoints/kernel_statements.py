"""The form in which kernels are differentiated: statements on numbers and on elements of arrays.

In: nothing. Out: the classes of statements, and walks over blocks of them. Called by every other module of this folder:
scalar_form.py makes blocks of a kernel's text, reverse.py and tangent.py make others of them, and kernel_text.py writes
them as Python.

An atom is a text: the name of a number, or a literal. Every operation has atoms as operands, and its result has a name;
an expression of a kernel is a sequence of such statements. Names may be assigned again. Arrays are other names, which
stand for the same array throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

Atom = str
UNKNOWN = "?"
RESERVED = frozenset(
    "abs add_parts bool cuda float int kept len math max min np plus pow prange range room round sum_block sum_half "
    "sum_parts sum_place this_thread zero_k True False".split()
)
"""Names that the text of derivatives uses for functions."""


@dataclass(frozen=True)
class Op:
    """An operation on numbers: `text` with the atoms, and then the arrays, in its places `{0}`, `{1}`.

    `name` is the primitive of nbgrad's table that it is; empty where no derivative goes through it, `UNKNOWN` where
    none is known.
    """

    name: str
    args: tuple[Atom, ...]
    text: str
    arrays: tuple[str, ...] = ()


@dataclass(frozen=True)
class Load:
    """An element of an array."""

    array: str
    index: tuple[Atom, ...]


@dataclass(frozen=True)
class Extent:
    """The length of an axis of an array."""

    array: str
    axis: int


Expression = Op | Load | Extent


@dataclass(frozen=True)
class Set:
    """A number gets a value."""

    target: str
    value: Expression


@dataclass(frozen=True)
class Store:
    """An element of an array gets a value, or is increased by it."""

    array: str
    index: tuple[Atom, ...]
    value: Atom
    add: bool = False


@dataclass(frozen=True)
class If:
    """One of two blocks."""

    test: Atom
    then: Block
    orelse: Block


@dataclass(frozen=True)
class For:
    """A block for each number below `count`, from the first to the last, or backwards; `parallel`: in any order.

    `line` is the place of the user's loop, as a file and a line; empty where it is none.
    """

    turn: str
    count: Atom
    body: Block
    parallel: bool = False
    backwards: bool = False
    line: str = ""


@dataclass(frozen=True)
class While:
    """A block again and again: while an atom, a name, is true, or until a `Break` that stands in it."""

    body: Block
    test: Atom = "True"
    line: str = ""


@dataclass(frozen=True)
class Break:
    """The end of the loop around it. It is the last statement of its block."""


@dataclass(frozen=True)
class New:
    """A local array. `fill` is the value of its elements; empty: undefined."""

    array: str
    shape: tuple[Atom, ...]
    dtype: str
    fill: Atom = ""


@dataclass(frozen=True)
class Copy:
    """An array of its own with the elements of another one."""

    array: str
    source: str


@dataclass(frozen=True)
class Alias:
    """Another name of an array."""

    array: str
    source: str


@dataclass(frozen=True)
class Room:
    """An array of one or two axes gets at least `length` elements along the first; `keeps` those that it has."""

    array: str
    length: Atom
    keeps: bool


@dataclass(frozen=True)
class Sync:
    """A barrier: no thread of a block goes on before all have come here."""


@dataclass(frozen=True)
class Part:
    """An array is one part of an array of `count` parts; if there is only one, it is the whole array itself."""

    array: str
    parts: str
    part: Atom
    count: Atom
    whole: str


@dataclass(frozen=True)
class Call:
    """A call of a function with numbers and arrays, which writes to some of the arrays."""

    function: str
    arguments: tuple[str, ...]


Statement = Set | Store | If | For | While | Break | New | Copy | Alias | Room | Sync | Part | Call
Block = tuple[Statement, ...]


def is_name(atom: Atom) -> bool:
    """Whether an atom is the name of a number and no literal."""
    return atom.isidentifier() and atom not in ("True", "False")


def copied(atom: Atom) -> Op:
    """The operation that gives its operand."""
    return Op("alias", (atom,), "{0}")


def blocks_in(statement: Statement) -> tuple[Block, ...]:
    """The blocks inside a statement."""
    match statement:
        case If(_, then, orelse):
            return then, orelse
        case For(_, _, body) | While(body):
            return (body,)
        case _:
            return ()


def with_blocks(statement: Statement, block: Callable[[Block], Block]) -> Statement:
    """A statement with other blocks inside."""
    match statement:
        case If(test, then, orelse):
            return If(test, block(then), block(orelse))
        case For() | While():
            return replace(statement, body=block(statement.body))
        case _:
            return statement


def on_line(statement: Statement, line: str) -> Statement:
    """A statement whose loops stand on a line of the user's, unless they have one already."""
    if isinstance(statement, For | While) and statement.line:
        return statement
    found = with_blocks(statement, lambda inner: tuple([on_line(one, line) for one in inner]))
    return replace(found, line=line) if isinstance(found, For | While) else found


def walk(block: Iterable[Statement]) -> Iterator[Statement]:
    """All statements of a block, those inside others after these."""
    for statement in block:
        yield statement
        for inner in blocks_in(statement):
            yield from walk(inner)


def atoms_of(statement: Statement) -> tuple[Atom, ...]:
    """The atoms that a statement itself reads, without the blocks in it."""
    match statement:
        case Set(_, Op(_, args)):
            return args
        case Set(_, Load(_, index)):
            return index
        case Store(_, index, value):
            return (*index, value)
        case If(test):
            return (test,)
        case For(_, count):
            return (count,)
        case While(_, test):
            return (test,)
        case New(_, shape, _, fill):
            return (*shape, fill) if fill else shape
        case Room(_, length):
            return (length,)
        case Part(_, _, part, count):
            return part, count
        case Call(_, arguments):
            return arguments
        case _:
            return ()


def defined(statement: Statement) -> str | None:
    """The number that a statement itself gives a value."""
    match statement:
        case Set(target):
            return target
        case For(turn):
            return turn
        case _:
            return None


def assigned(block: Iterable[Statement]) -> set[str]:
    """The numbers that a block gives values."""
    return {name for statement in walk(block) if (name := defined(statement)) is not None}


def loaded(block: Iterable[Statement]) -> set[str]:
    """The arrays of which a block reads elements."""
    found: set[str] = set()
    for statement in walk(block):
        match statement:
            case Set(_, Load(array)):
                found.add(array)
            case Set(_, Op(arrays=arrays)):
                found.update(arrays)
            case Copy(_, source) | Alias(_, source):
                found.add(source)
            case Part(_, parts, _, _, whole):
                found.update((parts, whole))
            case Call(_, arguments):
                found.update(arguments)
            case _:
                pass
    return found


def stored(block: Iterable[Statement]) -> set[str]:
    """The arrays of which a block writes elements."""
    found = {statement.array for statement in walk(block) if isinstance(statement, Store)}
    return found.union(*[statement.arguments for statement in walk(block) if isinstance(statement, Call)])


def made(block: Iterable[Statement]) -> set[str]:
    """The arrays that a block makes."""
    return {statement.array for statement in walk(block) if isinstance(statement, New | Copy | Alias | Part)}


def breaks(block: Iterable[Statement]) -> bool:
    """Whether a block ends the loop that it stands in."""
    return any(
        isinstance(statement, Break)
        or (isinstance(statement, If) and (breaks(statement.then) or breaks(statement.orelse)))
        for statement in block
    )


def renamed(block: Block, number: Callable[[str], str], array: Callable[[str], str] = lambda name: name) -> Block:
    """A block with other names."""

    def atom(one: Atom) -> Atom:
        return number(one) if is_name(one) else one

    def atoms(many: tuple[Atom, ...]) -> tuple[Atom, ...]:
        return tuple([atom(one) for one in many])

    def expression(value: Expression) -> Expression:
        match value:
            case Op(name, args, text, arrays):
                return Op(name, atoms(args), text, tuple([array(one) for one in arrays]))
            case Load(source, index):
                return Load(array(source), atoms(index))
            case Extent(source, axis):
                return Extent(array(source), axis)

    def one(statement: Statement) -> Statement:
        match statement:
            case Set(target, value):
                return Set(number(target), expression(value))
            case Store(target, index, value, add):
                return Store(array(target), atoms(index), atom(value), add)
            case If(test, then, orelse):
                return If(atom(test), all_of(then), all_of(orelse))
            case For(turn, count, body):
                return replace(statement, turn=number(turn), count=atom(count), body=all_of(body))
            case While(body, test):
                return replace(statement, body=all_of(body), test=atom(test))
            case New(target, shape, dtype, fill):
                return New(array(target), atoms(shape), dtype, atom(fill) if fill else fill)
            case Copy(target, source):
                return Copy(array(target), array(source))
            case Alias(target, source):
                return Alias(array(target), array(source))
            case Room(target, length, keeps):
                return Room(array(target), atom(length), keeps)
            case Break() | Sync() | Part() | Call():
                return statement

    def all_of(many: Block) -> Block:
        return tuple([one(statement) for statement in many])

    return all_of(block)
