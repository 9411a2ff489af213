"""Statements as Python that people and Numba read.

In: a block of kernel_statements.py, the names of arguments and results. Out: the text of a function. Called by
derived.py. Numbers that are used once are written where they are used, unless something that they depend on changes
in between.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from .kernel_statements import (
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
    Sync,
    While,
    assigned,
    atoms_of,
    blocks_in,
    defined,
    is_name,
    loaded,
    stored,
    walk,
)

_LONGEST = 100
"""The longest text of a number that is written where it is used."""


def function_text(name: str, parameters: Sequence[str], body: Block, results: Sequence[str]) -> str:
    """The text of a function."""
    writer = Writer(body, results)
    lines = writer.block(body, 1)
    returned = [f"    return {', '.join(results)}" + ("," if len(results) == 1 else "")] if results else []
    head = f"def {name}({', '.join(parameters)}):"
    text = "\n".join([head, *(lines or ["    pass"]), *returned])
    return ast.unparse(ast.parse(text)) + "\n"


class Writer:
    def __init__(self, body: Block, results: Iterable[str]) -> None:
        self.times = Counter(name for statement in walk(body) if (name := defined(statement)) is not None)
        self.uses: Counter[Atom] = Counter(atom for statement in walk(body) for atom in atoms_of(statement))
        self.uses.update(results)
        self.texts: dict[Atom, str] = {}

    def block(self, body: Block, depth: int) -> list[str]:
        """The lines of a block."""
        pad = "    " * depth
        lines: list[str] = []
        pending: dict[str, tuple[str, set[str], set[str]]] = {}
        """Numbers that are not written yet: their text, the names and the arrays that it reads."""

        def settle(names: Iterable[str]) -> None:
            for name in list(names):
                if name in pending:
                    text, _, _ = pending.pop(name)
                    self.texts.pop(name, None)
                    lines.append(f"{pad}{name} = {text}")

        for position, statement in enumerate(body):
            inner = [name for block in blocks_in(statement) for one in walk(block) for name in atoms_of(one)]
            again = isinstance(statement, While)
            settle([name for name in pending if name in inner or (again and name in atoms_of(statement))])
            if any(isinstance(one, Sync) for one in walk([statement])):
                settle([name for name, (_, _, arrays) in pending.items() if arrays])
            changed = {defined(statement)} | (assigned([statement]) if inner or blocks_in(statement) else set())
            written = stored([statement]) | {
                one.array for one in walk([statement]) if isinstance(one, New | Copy | Alias | Room)
            }
            own = set(atoms_of(statement))
            settle(
                [
                    name
                    for name, (_, names, arrays) in pending.items()
                    if (names & changed or arrays & written) and (name not in own or blocks_in(statement))
                ]
            )
            if isinstance(statement, Set) and self.movable(statement, body[position + 1 :]):
                text = self.value(statement)
                if len(text) <= _LONGEST:
                    names = {one for atom in own for one in self.names_in(atom, pending)}
                    arrays = loaded([statement]) | {a for atom in own if atom in pending for a in pending[atom][2]}
                    for atom in own:
                        pending.pop(atom, None)
                    pending[statement.target] = (text, names | own, arrays)
                    self.texts[statement.target] = f"({text})" if not _simple(text) else text
                    continue
            lines += self.lines(statement, pad, depth)
            for atom in own:
                pending.pop(atom, None)
        settle(pending)
        return lines

    def names_in(self, atom: Atom, pending: dict[str, tuple[str, set[str], set[str]]]) -> set[str]:
        """The names that the text of an atom reads."""
        return pending[atom][1] if atom in pending else {atom}

    def movable(self, statement: Set, rest: Sequence[Statement]) -> bool:
        """Whether a number may be written where it is used: once, later in the same block."""
        name = statement.target
        if self.times[name] != 1 or self.uses[name] != 1:
            return False
        return any(name in atoms_of(one) for one in rest)

    def atom(self, atom: Atom) -> str:
        """The text of an operand."""
        if atom in self.texts:
            return self.texts[atom]
        return atom if is_name(atom) or not atom.startswith("-") else f"({atom})"

    def value(self, statement: Set) -> str:
        """The text of what a number is set to."""
        match statement.value:
            case Op(_, args, text, arrays):
                return text.format(*map(self.atom, args), *arrays)
            case Load(array, index):
                return f"{array}[{self.index(index)}]"
            case Extent(array, axis):
                return f"{array}.shape[{axis}]"

    def index(self, index: Sequence[Atom]) -> str:
        """The text of an index."""
        return ", ".join(map(self.atom, index)) if index else "()"

    def lines(self, statement: Statement, pad: str, depth: int) -> list[str]:
        """The lines of a statement."""
        match statement:
            case Set(target, Op("add", (first, other), "{0} + {1}")) if first == target and first not in self.texts:
                return [f"{pad}{target} += {self.atom(other)}"]
            case Set(target):
                return [f"{pad}{target} = {self.value(statement)}"]
            case Store(array, index, value, add):
                return [f"{pad}{array}[{self.index(index)}] {'+=' if add else '='} {self.atom(value)}"]
            case If(test, then, orelse):
                if not then and not orelse:
                    return []
                if not then:
                    return [f"{pad}if not {self.atom(test)}:", *self.block(orelse, depth + 1)]
                lines = [f"{pad}if {self.atom(test)}:", *self.block(then, depth + 1)]
                return [*lines, f"{pad}else:", *self.block(orelse, depth + 1)] if orelse else lines
            case For(turn, count, body, parallel, backwards):
                name = "prange" if parallel else "range"
                bounds = f"{self.atom(count)} - 1, -1, -1" if backwards else self.atom(count)
                return [f"{pad}for {turn} in {name}({bounds}):", *(self.block(body, depth + 1) or [f"{pad}    pass"])]
            case While(body, test):
                return [f"{pad}while {test}:", *(self.block(body, depth + 1) or [f"{pad}    pass"])]
            case Break():
                return [f"{pad}break"]
            case New(array, shape, dtype, fill):
                extents = f"({', '.join(map(self.atom, shape))}{',' if len(shape) == 1 else ''})"
                kind = dtype if "." in dtype else f"np.{dtype}" if dtype != "bool" else "np.bool_"
                if not fill:
                    return [f"{pad}{array} = np.empty({extents}, {kind})"]
                if fill in ("0", "0.0"):
                    return [f"{pad}{array} = np.zeros({extents}, {kind})"]
                return [f"{pad}{array} = np.full({extents}, {self.atom(fill)}, {kind})"]
            case Sync():
                return [f"{pad}cuda.syncthreads()"]
            case Copy(array, source):
                return [f"{pad}{array} = {source}.copy()"]
            case Alias(array, source):
                return [f"{pad}{array} = {source}"]
            case Part(array, parts, part, count, whole):
                return [f"{pad}{array} = {parts}[{self.atom(part)}] if {self.atom(count)} > 1 else {whole}"]
            case Call(function, arguments):
                return [f"{pad}{function}({', '.join(map(self.atom, arguments))})"]
            case Room(array, length, keeps):
                grow = "kept" if keeps else "room"
                return [
                    f"{pad}if {array}.shape[0] < {self.atom(length)}:",
                    f"{pad}    {array} = {grow}({array}, {self.atom(length)})",
                ]


def _simple(text: str) -> bool:
    return (
        text.isidentifier()
        or text.replace(".", "").isdigit()
        or (text.endswith(("]", ")")) and text[0].isalpha() and " " not in text)
    )


def function_of(name: str, text: str, namespace: dict[str, Any]) -> Any:
    """The function that a text defines, with lines that tracebacks and readers of sources find."""
    place = f"<derived {name} {hashlib.sha256(text.encode()).hexdigest()[:12]}>"
    linecache.cache[place] = (len(text), None, text.splitlines(True), place)
    exec(compile(text, place, "exec"), namespace)
    return namespace[name]
