"""Branches and loops of Python as calls: the rewriting of functions for recorded conditions.

In: a function's code and its text. Out: other code, in which `if`, `while`, `for`, `and`, `or`, `not` and `x if t else
y` ask the functions of statements.py, which decide when they run: a plain value runs Python's own statement, a recorded
one becomes `cond` or `while_loop`. Lines stay the user's. Called by rebinding.py.

A branch becomes a function for each of its sides, from the names that it sets to those that are read later. Where a
side ends in `return`, `break` or `continue`, the statements after the branch go into both sides, so that each side ends
in a `return`. A turn of a loop is a function, too, that says first whether there is a further turn: a `break` says no.
A `return` in a loop is a `break` with a number, and a branch after the loop on that number.
"""

from __future__ import annotations

import ast
import copy
import dis
import inspect
import linecache
from collections.abc import Callable, Collection, Sequence
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from .handled_errors import divisions_checked
from .live_names import SCOPES, Statements, assigned, bound, captured, mark_live, within, written

CALLS = "_nbgrad_statements"
"""The name of the functions of statements.py in rewritten code."""
_MOST_NODES = 30_000
_FORBIDDEN = frozenset("super locals eval exec vars dir __class__".split())
_CHANGING = frozenset(
    "append extend insert pop remove clear update add setdefault sort reverse discard popitem appendleft popleft fill "
    "itemset put resize write send close".split()
)
"""Methods that change their object, which a branch that may not be taken must not."""


class _NotRewritten(Exception):  # noqa: N818 - the function stays as it is
    """A function that stays as it is."""


_JUMPING = frozenset([*dis.hasjrel, *dis.hasjabs])


def has_flow(code: CodeType) -> bool:
    """Whether code has a branch or a loop that may be rewritten."""
    generator = code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)
    return not generator and code.co_name != "<lambda>" and not _JUMPING.isdisjoint(code.co_code[::2])


def rewritten(fn: FunctionType) -> CodeType | None:
    """The code of a function with branches and loops as calls; None where it has none, or its text is not there."""
    return _changed(fn, lambda node: [divisions_checked(node, CALLS), _Rewriter().function(node)] != [])


def with_checked_divisions(fn: FunctionType) -> CodeType | None:
    """The code of a function in which divisions raise for zero, where it handles that; None where it does not."""
    return _changed(fn, lambda node: divisions_checked(node, CALLS))


def _changed(fn: FunctionType, change: Callable[[ast.FunctionDef], bool]) -> CodeType | None:
    """The code of a function with another text; None where that does not change, or is not there."""
    code = fn.__code__
    try:
        return _code(code, _text(code), fn.__qualname__, change)
    except (_NotRewritten, OSError, SyntaxError, RecursionError):
        return None


def _text(code: CodeType) -> ast.FunctionDef:
    for node in _functions(parsed(code.co_filename)):
        if node.name == code.co_name and min([n.lineno for n in (node, *node.decorator_list)]) == code.co_firstlineno:
            return copy.deepcopy(node)
    raise _NotRewritten


def parsed(filename: str) -> ast.Module:
    """The statements of a file, as its text is now.

    Raises
    ------
    SyntaxError
    """
    return _parsed(filename, "".join(linecache.getlines(filename)))


@cache
def _parsed(filename: str, text: str) -> ast.Module:
    return ast.parse(text)


@cache
def _functions(tree: ast.Module) -> tuple[ast.FunctionDef, ...]:
    """The functions that a file defines."""
    return tuple([node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)])


def _code(code: CodeType, node: ast.FunctionDef, qualname: str, change: Callable[[ast.FunctionDef], bool]) -> CodeType:
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    attributes = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    mangled = any(name.startswith("__") and not name.endswith("__") for name in names | attributes)
    if mangled or names & _FORBIDDEN or _is_generator(node):
        raise _NotRewritten
    node.decorator_list = []
    _without_annotations(node)
    text = copy.deepcopy(node)
    if not change(node):
        raise _NotRewritten
    if _seen(_compiled(text, code)) != _seen(code):
        raise _NotRewritten  # the text is not that of the code
    if sum(1 for _ in ast.walk(node)) > _MOST_NODES:
        raise _NotRewritten
    made = _compiled(node, code)
    return made.replace(co_qualname=qualname) if hasattr(code, "co_qualname") else made  # type: ignore[arg-type]


def _seen(code: CodeType) -> tuple[Any, ...]:
    """The names and numbers of code, by which a text that has changed since is told."""
    # Until Python 3.10, constants have the long names of inner functions too.
    kept = [one for one in code.co_consts if not isinstance(one, CodeType) and "<locals>." not in str(one)]
    numbers = [repr(one) for one in kept]
    return code.co_varnames, sorted(code.co_freevars), code.co_names, numbers


def _without_annotations(node: ast.FunctionDef) -> None:
    node.returns = None
    arguments = node.args
    for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if one is not None:
            one.annotation = None
    arguments.defaults = [ast.copy_location(ast.Constant(None), default) for default in arguments.defaults]
    arguments.kw_defaults = [d and ast.copy_location(ast.Constant(None), d) for d in arguments.kw_defaults]


def _compiled(node: ast.FunctionDef, code: CodeType) -> CodeType:
    """The code of a function inside another that has the variables of its closure."""
    free = code.co_freevars
    outer = ast.parse(f"def outer({', '.join(free)}):\n  pass").body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.body = [node]
    module = ast.fix_missing_locations(ast.Module([outer], []))
    (inside,) = [
        c
        for c in compile(module, code.co_filename, "exec", dont_inherit=True, flags=_flags(code)).co_consts
        if isinstance(c, CodeType)
    ]
    (found,) = [c for c in inside.co_consts if isinstance(c, CodeType)]
    return found


def _flags(code: CodeType) -> int:
    import __future__

    return code.co_flags & __future__.annotations.compiler_flag


def _is_generator(node: ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Yield | ast.YieldFrom | ast.Await) for one in within(node.body))


# ----- Statements -----


def _template(text: str, like: ast.AST, **parts: Any) -> list[ast.stmt]:
    """Statements from a text, at the place of another node; names in capitals stand for expressions."""
    made = ast.parse(text).body
    for node in made:
        for one in ast.walk(node):
            if hasattr(one, "lineno"):
                ast.copy_location(one, like)
                one.end_lineno, one.end_col_offset = one.lineno, one.col_offset  # type: ignore[attr-defined]
    filler = _Filler(parts)
    return [filler.visit(node) for node in made]


class _Filler(ast.NodeTransformer):
    def __init__(self, parts: dict[str, ast.AST]) -> None:
        self.parts = parts

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.parts.get(node.id, node)


def _change_blocks(node: ast.stmt, change: Callable[[list[ast.stmt]], list[ast.stmt]]) -> None:
    """Change the blocks of statements that a statement has."""
    for name in ("body", "orelse", "finalbody"):
        part = getattr(node, name, None)
        if isinstance(part, list):
            setattr(node, name, change(part))
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        part.body = change(part.body)


def _escapes(statements: Statements, loops: bool = True) -> bool:
    """Whether statements leave by `return`, or by `break` or `continue` of a loop around them."""
    for node in statements:
        if isinstance(node, ast.Return) or (loops and isinstance(node, ast.Break | ast.Continue)):
            return True
        inner = loops and not isinstance(node, ast.While | ast.For)
        for name in ("body", "orelse", "finalbody"):
            part = getattr(node, name, None)
            of_loop = loops if name == "orelse" else inner
            if isinstance(part, list) and not isinstance(node, SCOPES) and _escapes(part, of_loop):
                return True
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            if _escapes(part.body, inner):
                return True
    return False


def _reason(nodes: Statements, declared: frozenset[str], loop: bool = False) -> str | None:
    """Why statements must not run where they are not chosen."""
    for node in within(nodes):
        line = f"line {getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            return f"{line} sets the attribute {node.attr}"
        if isinstance(node, ast.Raise | ast.Assert) and not loop:
            return f"{line} may raise an error"
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name != "print":
                return f"{line} calls {name or 'a function'} for what it does, not for a result"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            return f"{line} changes an object by {node.func.attr}()"
        if isinstance(node, ast.Try | ast.ClassDef | ast.Delete):
            return f"{line} has a {type(node).__name__.lower()} statement"
    if assigned(nodes) & declared:
        return f"line {nodes[0].lineno} sets {', '.join(sorted(assigned(nodes) & declared))} of an outer scope"
    return None


class _Rewriter:
    """Rewrites one function; `end` of a block is what a block that runs to its end returns, by lines."""

    def __init__(self) -> None:
        self.count = self.copied = 0
        self.keywords: dict[str, str] = {}
        self.declared: frozenset[str] = frozenset()
        self.captured: frozenset[str] = frozenset()

    def name(self, what: str) -> str:
        self.count += 1
        return f"_nbgrad_{what}_{self.count}"

    def function(self, node: ast.FunctionDef) -> None:
        """Rewrite a function, in place."""
        outer = self.keywords, self.declared, self.captured
        self.keywords = {
            name: type(one).__name__.lower()
            for one in within(node.body)
            if isinstance(one, ast.Global | ast.Nonlocal)
            for name in one.names
        }
        self.declared = frozenset(self.keywords)
        self.captured = captured(node.body)
        node.body = self.without_returns(node.body)
        mark_live(node.body, self.captured)
        node.body = self.block(node.body, None, tail=True) or [ast.Pass()]
        self.keywords, self.declared, self.captured = outer

    # ----- Returns in loops, and what comes after them -----

    def without_returns(self, statements: Statements) -> list[ast.stmt]:
        """Loops without `else`, and without `return`: a branch after the loop does these."""
        found: list[ast.stmt] = []
        for node in statements:
            if isinstance(node, SCOPES):
                found.append(node)
                continue
            if isinstance(node, ast.While | ast.For) and not self.is_kept(node):
                found += self.loop_without_returns(node)
                continue
            _change_blocks(node, self.without_returns)
            found.append(node)
        return found

    def loop_without_returns(self, loop: ast.While | ast.For) -> list[ast.stmt]:
        if isinstance(loop, ast.While) and _sets_names(loop.test):  # a turn sets them, not a function for the test
            ending = ast.If(ast.copy_location(ast.UnaryOp(ast.Not(), loop.test), loop), [_break(loop)], [])
            loop.body = [ast.copy_location(ending, loop), *loop.body]
            loop.test = _expression("True", loop)
        loop.body = self.without_returns(loop.body)
        after: list[ast.stmt] = []
        before: list[ast.stmt] = []
        returns: list[ast.Return] = []
        leaving = self.name("exit")
        loop.body = _Returns(leaving, returns).block(loop.body)
        if returns:
            before = _template(f"{leaving} = 0", loop)
        for number, node in enumerate(returns, 1):
            branch = ast.If(_expression(f"{leaving} == {number}", node), [node], [])
            after.append(ast.copy_location(branch, node))
        if loop.orelse:
            loop.sets = (self.name("broke"),)  # type: ignore[attr-defined]
            branch = ast.If(_expression(f"not {loop.sets[0]}", loop), self.without_returns(loop.orelse), [])  # type: ignore[attr-defined]
            after.append(ast.copy_location(branch, loop))
            loop.orelse = []
        return [*before, loop, *after]

    def is_kept(self, loop: ast.stmt) -> bool:
        """Whether a loop stays Python's: a function that is defined elsewhere reads what it sets, or leaving it runs
        further statements, or calls in a block that handles errors."""
        inside = any(
            isinstance(one, ast.Delete | ast.Global | ast.Nonlocal) or _holds_exit(one) for one in within([loop])
        )
        inside = inside or (isinstance(loop, ast.While) and bool(loop.orelse) and _sets_names(loop.test))
        return inside or bool((self.captured - captured([loop])) & assigned([loop]))

    # ----- Blocks -----

    def block(self, statements: Statements, ends: tuple[str, str, str] | None, tail: bool) -> list[ast.stmt]:
        """A block; `ends` are the lines for its end, `break` and `continue`, or None in a function or a kept loop.

        `tail` says whether the block may return what comes after it.
        """
        found: list[ast.stmt] = []
        for position, node in enumerate(statements):
            if isinstance(node, ast.Break | ast.Continue) and ends is not None:
                return found + _template(ends[1 if isinstance(node, ast.Break) else 2], node)
            if isinstance(node, ast.Return | ast.Break | ast.Continue):
                found.append(self.expressions(node))
                return found
            if isinstance(node, ast.If):
                if _escapes([node]):
                    if tail:
                        return found + self.tail_branch(node, statements[position + 1 :], ends)
                    node.test = self.expression(node.test)
                    node.body = self.block(node.body, ends, tail=False) or [ast.Pass()]
                    node.orelse = self.block(node.orelse, ends, tail=False)
                    found.append(node)
                else:
                    found += self.branch(node)
            elif isinstance(node, ast.While | ast.For):
                found += self.loop(node, ends)
            elif isinstance(node, ast.FunctionDef):
                if not _is_generator(node):
                    self.function(node)
                found.append(node)
            elif isinstance(node, SCOPES):
                found.append(node)
            else:
                _change_blocks(node, lambda part: self.block(part, ends, tail=False) or [ast.Pass() for _ in part[:1]])
                found.append(self.expressions(node))
        if ends is not None and tail:
            found += _template(ends[0], statements[-1] if statements else _LINE)
        return found

    def taken(self, nodes: Statements) -> list[str]:
        """The names that statements set, as parameters of a function that they become."""
        return sorted(assigned(nodes) - self.declared)

    def made(self, name: str, parameters: Sequence[str], body: list[ast.stmt], like: ast.stmt) -> ast.stmt:
        """The definition of a function."""
        (made,) = _template(f"def {name}({', '.join(parameters)}):\n  pass", like)
        assert isinstance(made, ast.FunctionDef)
        outer = sorted(assigned(body) & self.declared)
        made.body = [one for n in outer for one in _template(f"{self.keywords[n]} {n}", like)] + body
        return made

    def sets(self, names: Sequence[str], nodes: Statements, bound: Collection[str] = ()) -> str:
        """An expression: the names that statements set, those of which they set elements, with their values, and those
        that they bind."""
        here = sorted(written(nodes))
        return f"{CALLS}.Names({list(names)!r}, {here!r}, {_values(here)}, {sorted(bound)!r})"

    def branch(self, node: ast.If) -> list[ast.stmt]:
        """A branch both sides of which end where the next statement begins."""
        both = [*node.body, *node.orelse]
        names = self.taken(both)
        given = [name for name in names if name in node.live]  # type: ignore[attr-defined]
        reason = _reason(both, self.declared)
        end = f"return {_values(given)}"
        sides = [self.block(copy.deepcopy(part), (end, end, end), tail=True) for part in (node.body, node.orelse)]
        labels = [self.name("yes"), self.name("no")]
        found = [self.made(label, names, side, node) for label, side in zip(labels, sides, strict=True)]
        shown = f"{_values(names)}, {self.sets(names, both)}, {given!r}, {reason!r}"
        call = f"{CALLS}.branch(TEST_, {', '.join(labels)}, {shown})"
        found += _template(f"{_targets(given)}{call}", node, TEST_=self.expression(node.test))
        return [*found, *self.unset(given, node)]

    def unset(self, names: Sequence[str], like: ast.stmt) -> list[ast.stmt]:
        """Delete what no side has set."""
        return [one for name in names for one in _template(f"if {name} is {CALLS}.UNSET: del {name}", like)]

    def tail_branch(self, node: ast.If, rest: Statements, ends: tuple[str, str, str] | None) -> list[ast.stmt]:
        """A branch that may leave: what comes after it goes into both sides."""
        self.copied += 2 * sum(1 for one in rest for _ in ast.walk(one))
        if self.copied > _MOST_NODES:
            raise _NotRewritten
        parts = [[*part, *copy.deepcopy(list(rest))] for part in (node.body, node.orelse)]
        names = self.taken([one for part in parts for one in part])
        reason = _reason([*node.body, *node.orelse, *rest], self.declared)
        labels = [self.name("yes"), self.name("no")]
        found: list[ast.stmt] = []
        for label, part in zip(labels, parts, strict=True):
            side = self.block(part, ends, tail=True)
            found.append(self.made(label, names, side or [ast.Pass()], node))
        shown = f"{_values(names)}, {self.sets(names, [node, *rest])}, {reason!r}"
        call = f"return {CALLS}.leave(TEST_, {', '.join(labels)}, {shown})"
        return found + _template(call, node, TEST_=self.expression(node.test))

    def loop(self, node: ast.While | ast.For, outer: tuple[str, str, str] | None) -> list[ast.stmt]:
        """A loop as a call."""
        is_while = isinstance(node, ast.While)
        if self.is_kept(node) or node.orelse or _escapes_by_return(node.body):
            node.body = self.block(node.body, None, tail=False) or [ast.Pass()]
            node.orelse = self.block(node.orelse, outer, tail=False)
            if isinstance(node, ast.While):
                node.test = self.expression(node.test)
            else:
                node.iter = self.expression(node.iter)
            return [node]
        names = [name for name in self.taken([node]) if name in node.live]  # type: ignore[attr-defined]
        names = [name for name in names if name not in getattr(node, "sets", ())]
        reason = _reason(node.body, self.declared, loop=True)
        going, broken = (f"return ({go}, {_values(names)})" for go in (True, False))
        label, question = self.name("turn"), self.name("test")
        body = [*node.body]
        item = self.name("item")
        if isinstance(node, ast.For):
            (first,) = _template(f"TARGET_ = {item}", node, TARGET_=node.target)
            body = [first, *body]
        body = self.block(body, (going, broken, going), tail=True)
        found: list[ast.stmt] = []
        broke = [*getattr(node, "sets", ()), _NOWHERE][0]
        shown = f"{_values(names)}, {self.sets(names, node.body, bound([node]))}, {reason!r}"
        if is_while:
            found.append(self.made(label, names, body, node))
            test = self.made(question, names, _template("return TEST_", node, TEST_=self.expression(node.test)), node)
            found.append(test)
            call = _template(f"{broke}, {_pattern(names)} = {CALLS}.while_({question}, {label}, {shown})", node)
        else:
            assert isinstance(node, ast.For)
            found.append(self.made(label, [item, *names], body, node))
            over = self.expression(node.iter)
            if (
                isinstance(over, ast.Call)
                and isinstance(over.func, ast.Name)
                and over.func.id == "range"
                and not over.keywords
            ):
                over = ast.copy_location(
                    ast.Call(_expression(f"{CALLS}.range_", node), [over.func, *over.args], []), over
                )
            call = _template(f"{broke}, {_pattern(names)} = {CALLS}.for_(OVER_, {label}, {shown})", node, OVER_=over)
        return [*found, *call, *self.unset(names, node)]

    # ----- Expressions -----

    def expression(self, node: ast.expr) -> ast.expr:
        """An expression in which `and`, `or`, `not` and `x if t else y` are calls."""
        return _Expressions().visit(node)

    def expressions(self, node: ast.stmt) -> ast.stmt:
        """A statement with such expressions; statements in it stay."""
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, name, self.expression(value))
            elif isinstance(value, list):
                setattr(node, name, [self.expression(v) if isinstance(v, ast.expr) else v for v in value])
        return node


_NOWHERE = "_nbgrad_nowhere"
_LINE = ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


def _break(like: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Break(), like)


def _holds_exit(node: ast.AST) -> bool:
    """Whether a statement has more to do when the function, or a loop around it, is left from inside."""
    if not isinstance(node, ast.With | ast.Try) and type(node).__name__ != "TryStar":
        return False
    statements: list[Any] = [node]
    return _escapes_by_return(statements) or (bool(getattr(node, "finalbody", ())) and _escapes(statements))


def _escapes_by_return(statements: Statements) -> bool:
    return any(isinstance(one, ast.Return) for one in within(statements))


def _expression(text: str, like: ast.AST) -> Any:
    (made,) = _template(text, like)
    assert isinstance(made, ast.Expr)
    return made.value


def _values(names: Sequence[str]) -> str:
    """The values of names, some of which may not be set."""
    return f"{CALLS}.values({', '.join(f'lambda: {name}' for name in names)})"


def _pattern(names: Sequence[str]) -> str:
    return f"({''.join(f'{name}, ' for name in names)})" if names else _NOWHERE


def _targets(names: Sequence[str]) -> str:
    return f"{''.join(f'{name}, ' for name in names)} = " if names else ""


class _Returns:
    """Turns `return` in a loop into `break`, with a number that says which."""

    def __init__(self, leaving: str, returns: list[ast.Return]) -> None:
        self.leaving, self.returns = leaving, returns

    def block(self, statements: Statements) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for node in statements:
            if isinstance(node, ast.Return):
                self.returns.append(node)
                found += _template(f"{self.leaving} = {len(self.returns)}", node)
                found.append(ast.copy_location(ast.Break(), node))
                return found
            if not isinstance(node, SCOPES):
                _change_blocks(node, self.block)
            found.append(node)
        return found


class _Expressions(ast.NodeTransformer):
    """Rewrites expressions."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if _sets_names(node):
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return self.call(name, node, [], node.values)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return self.call("not_", node, [node.operand], []) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if _sets_names(node):
            return node
        return self.call("choose", node, [node.test], [node.body, node.orelse])

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        between = node.comparators[:-1]
        if not between or _sets_names(node) or not all(isinstance(one, ast.Name | ast.Constant) for one in between):
            return node
        values = [node.left, *node.comparators]
        pairs: list[ast.expr] = [
            ast.copy_location(ast.Compare(copy.deepcopy(a), [op], [copy.deepcopy(b)]), node)
            for a, op, b in zip(values, node.ops, values[1:], strict=False)
        ]
        return self.call("and_", node, [], pairs)

    def call(self, name: str, like: ast.expr, given: list[ast.expr], later: list[ast.expr]) -> ast.Call:
        thunks: list[ast.expr] = []
        for value in later:
            thunk = _expression("lambda: 0", like)
            thunk.body = value
            thunks.append(thunk)
        return ast.copy_location(ast.Call(_expression(f"{CALLS}.{name}", like), [*given, *thunks], []), like)


def _sets_names(node: ast.expr) -> bool:
    return any(isinstance(one, ast.NamedExpr | ast.Yield | ast.Await) for one in ast.walk(node))
