"""Single mutations of a file of Python.

In: its text. Out: mutations, each with the changed text and a description of it that does not depend on line numbers.
Called by mutants.py. Annotations, docstrings, decorators, imports, assertions (`strict=True` is one), errors and texts
are left alone.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

OTHER_OPERATOR: dict[type[ast.AST], tuple[str, tuple[str, ...]]] = {
    ast.Add: ("+", ("-",)),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("/",)),
    ast.Div: ("/", ("*",)),
    ast.FloorDiv: ("//", ("*",)),
    ast.Mod: ("%", ("*",)),
    ast.Pow: ("**", ("*",)),
    ast.And: ("and", ("or",)),
    ast.Or: ("or", ("and",)),
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
"""Operators whose operands may not be exchanged."""
_PAIRS = (
    "cos sin, cosh sinh, greater less, greater_equal less_equal, both either, min max, any all, maximum minimum, "
    "logical_and logical_or, sum prod, real imag, append extend, union intersection"
)
OTHER_NAME = {a: b for pair in _PAIRS.split(", ") for a, b in (pair.split(), pair.split()[::-1])}
"""Names, and texts that are names, with the ones that are mistaken for them."""
SKIPPED = (ast.Import, ast.ImportFrom, ast.Assert, ast.Raise, ast.JoinedStr)


@dataclass(frozen=True)
class Mutation:
    """One change: the function it is in, its line with `{before => after}` and as it was, the new text, and the first
    line of the innermost function or lambda around it, which runs if the change does (0: when the module is imported).
    In a table, the function is the name of the row."""

    function: str
    change: str
    line: str
    text: str
    runs_with: int


@dataclass(frozen=True)
class _Scope:
    function: str = ""
    runs_with: int = 0
    known: frozenset[str] = frozenset()
    """Names that have a value before this statement, as far as one can see."""


def mutations(text: str) -> list[Mutation]:
    """All mutations of a text, in its order."""
    found: dict[str, Mutation] = {}
    names: Counter[str] = Counter()
    for mutation in Mutator(text).statements(ast.parse(text).body, _Scope()):
        if mutation.text not in found:
            names[name := f"{mutation.function}: {mutation.change}"] += 1
            # Equal lines of a function are numbered.
            number = f" (line {names[name]} of this kind)" if names[name] > 1 else ""
            found[mutation.text] = replace(mutation, change=mutation.change + number)
    return list(found.values())


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _inverted(test: ast.expr) -> bool:
    """Whether another mutation negates a condition."""
    equality = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
    single = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], equality)
    return single or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))


class Mutator:
    """One walk over a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw = text.encode()
        self.starts = [0]
        for line in self.raw.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    # ----- Texts -----

    def span(self, node: ast.AST) -> tuple[int, int]:
        lines = node.lineno, node.end_lineno  # pyright: ignore[reportAttributeAccessIssue]
        columns = node.col_offset, node.end_col_offset  # pyright: ignore[reportAttributeAccessIssue]
        start, end = (self.starts[line - 1] + column for line, column in zip(lines, columns, strict=True))
        return start, end

    def part(self, start: int, end: int) -> str:
        return self.raw[start:end].decode()

    def source(self, node: ast.AST) -> str:
        return self.part(*self.span(node))

    def changed(self, start: int, end: int, new: str, scope: _Scope) -> Mutation:
        """The text with the bytes from `start` to `end` replaced."""
        before = self.raw.rfind(b"\n", 0, start) + 1
        after = self.raw.find(b"\n", end)
        after = len(self.raw) if after < 0 else after
        change = f"{self.part(before, start)}{{{self.part(start, end)} => {new}}}{self.part(end, after)}"
        line, text = self.part(before, after), self.part(0, start) + new + self.part(end, len(self.raw))
        return Mutation(scope.function, " ".join(change.split()), " ".join(line.split()), text, scope.runs_with)

    def replaced(self, node: ast.AST, new: str, scope: _Scope) -> Mutation:
        return self.changed(*self.span(node), new, scope)

    def exchanged(self, first: ast.AST, second: ast.AST, scope: _Scope) -> Iterator[Mutation]:
        (start, middle), (other, end) = self.span(first), self.span(second)
        one, two = self.part(start, middle), self.part(other, end)
        if one != two:
            yield self.changed(start, end, two + self.part(middle, other) + one, scope)

    def operator(self, left: ast.AST, op: ast.AST, right: ast.AST, scope: _Scope) -> Iterator[Mutation]:
        """Other operators between two operands."""
        name, others = OTHER_OPERATOR.get(type(op), ("", ()))
        start = self.span(left)[1]
        place = self.part(start, self.span(right)[0]).find(name)
        for other in others:
            yield self.changed(start + place, start + place + len(name), other, scope)

    # ----- Statements -----

    def statements(self, body: list[ast.stmt], scope: _Scope) -> Iterator[Mutation]:
        for statement in body:
            yield from self.statement(statement, scope)
            names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            scope = _Scope(scope.function, scope.runs_with, scope.known | names)

    def statement(self, node: ast.stmt, scope: _Scope) -> Iterator[Mutation]:
        if isinstance(node, SKIPPED):
            return
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = f"{scope.function}.{node.name}" if scope.function else node.name
            if isinstance(node, ast.ClassDef):
                yield from self.statements(node.body, _Scope(name, scope.runs_with))
                return
            arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            for default in (*node.args.defaults, *node.args.kw_defaults):
                if default is not None:
                    yield from self.expression(default, scope)
            first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
            yield from self.statements(node.body, _Scope(name, first, frozenset(arguments)))
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if self.may_go(node, scope):
            yield self.replaced(node, "pass", scope)
        if isinstance(node, ast.If | ast.While):
            yield from self.condition(node.test, scope)
            if isinstance(node, ast.If) and not isinstance(node.body[0], ast.Raise):
                yield self.replaced(node.test, "False", scope)
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "target", "targets") and not isinstance(value, list):
                continue
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.expr):
                    yield from self.expression(part, scope)
                elif isinstance(part, ast.withitem):
                    yield from self.expression(part.context_expr, scope)
        for field in ("body", "orelse", "finalbody"):
            yield from self.statements(getattr(node, field, []), scope)

    def may_go(self, node: ast.stmt, scope: _Scope) -> bool:
        """Whether a statement may be missing without an undefined name."""
        if isinstance(node, ast.Expr | ast.AugAssign | ast.Continue | ast.Break):
            return True
        if isinstance(node, ast.Return):
            return node.value is None
        if isinstance(node, ast.Assign):
            names = [n for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name | ast.Attribute)]
            stored = [n for n in names if isinstance(n.ctx, ast.Store)]
            return all(isinstance(n, ast.Name) and n.id in scope.known for n in stored)
        return False

    # ----- Expressions -----

    def condition(self, test: ast.expr, scope: _Scope) -> Iterator[Mutation]:
        if not _inverted(test):
            yield self.replaced(test, f"not ({self.source(test)})", scope)

    def expression(self, node: ast.expr, scope: _Scope) -> Iterator[Mutation]:
        if isinstance(node, SKIPPED):
            return
        if isinstance(node, ast.Lambda):
            inner = _Scope(scope.function, node.lineno, scope.known)
            for default in node.args.defaults:
                yield from self.expression(default, scope)
            yield from self.expression(node.body, inner)
            return
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                row = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else scope.function
                yield from self.expression(value, _Scope(row, scope.runs_with, scope.known))
            return
        yield from self.own(node, scope)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Constant):
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from self.expression(child, scope)
            elif isinstance(child, ast.keyword) and child.arg != "strict":
                row = child.arg if isinstance(node, ast.Call) and ast.unparse(node.func) == "named" else None
                inner = scope if row is None else _Scope(row, scope.runs_with, scope.known)
                yield from self.expression(child.value, inner)
            elif isinstance(child, ast.comprehension):
                yield from self.expression(child.iter, scope)
                for test in child.ifs:
                    yield from self.condition(test, scope)
                    yield from self.expression(test, scope)

    def own(self, node: ast.expr, scope: _Scope) -> Iterator[Mutation]:
        """Mutations of a node itself, not of its parts."""
        match node:
            case ast.BinOp(left, op, right):
                yield from self.operator(left, op, right, scope)
                if isinstance(op, ORDERED):
                    yield from self.exchanged(left, right, scope)
            case ast.Compare(left, ops, comparators):
                for a, op, b in zip([left, *comparators], ops, comparators, strict=False):
                    yield from self.operator(a, op, b, scope)
            case ast.BoolOp(op, values):
                for a, b in pairwise(values):
                    yield from self.operator(a, op, b, scope)
                for value in values:
                    yield self.replaced(value, str(isinstance(op, ast.And)), scope)
            case ast.UnaryOp():
                yield self.replaced(node, re.sub(r"(not|\W)\s*", "", self.source(node), count=1), scope)
            case ast.IfExp(test):
                yield from self.condition(test, scope)
                yield self.replaced(test, "True", scope)
                yield self.replaced(test, "False", scope)
            case ast.Call(func, args):
                for a, b in pairwise(args):
                    if not any(isinstance(e, ast.Starred) or _is_text(e) for e in (a, b)):
                        yield from self.exchanged(a, b, scope)
                if isinstance(func, ast.Attribute) and func.attr == "split" and isinstance(func.value, ast.Constant):
                    yield from self.words(func.value, scope)
            case ast.Tuple(elements, ast.Load()):
                if len(elements) == 2 and not any(isinstance(e, ast.Starred) for e in elements):
                    yield from self.exchanged(elements[0], elements[1], scope)
                if len(elements) > 1 and all(map(_is_text, elements)):
                    for one, following in pairwise(elements):
                        yield self.changed(self.span(one)[0], self.span(following)[0], "", scope)
            case ast.Name(name, ast.Load()) if name in OTHER_NAME:
                yield self.replaced(node, OTHER_NAME[name], scope)
            case ast.Constant(value):
                yield from self.constant(node, value, scope)
            case _:
                pass

    def constant(self, node: ast.Constant, value: object, scope: _Scope) -> Iterator[Mutation]:
        if isinstance(value, bool):
            yield self.replaced(node, str(not value), scope)
        elif isinstance(value, int):
            yield self.replaced(node, str(value + 1), scope)
            if value > 0:
                yield self.replaced(node, str(value - 1), scope)
        elif isinstance(value, float):
            yield self.replaced(node, repr(value + 1.0), scope)
        elif isinstance(value, str) and value in OTHER_NAME:
            yield self.replaced(node, f'"{OTHER_NAME[value]}"', scope)

    def words(self, node: ast.Constant, scope: _Scope) -> Iterator[Mutation]:
        """A list of names in one text without one of them."""
        start, end = self.span(node)
        literal = self.part(start, end)
        for word in re.finditer(r"(?<=[\s\"])[a-z_0-9]+ ?(?=[\s\"a-z_])", literal):
            yield self.changed(start + word.start(), start + word.end(), "", scope)
