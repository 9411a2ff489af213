"""Names in Python's statements: which ones are set, which ones are read, and which ones are read later.

In: statements of a function as a syntax tree. Out: sets of names; `mark_live` notes at each branch and loop the names
that something reads after it. Called by control_flow.py, for which a branch gives only such names, and a loop carries
only them: what a turn sets and reads by itself is its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

Statements = Sequence[ast.stmt]
Names = frozenset[str]
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
CONTROL = (ast.If, ast.While, ast.For)


def within(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes in statements, without what is in functions and classes that they define."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, SCOPES):
            waiting.extend(ast.iter_child_nodes(node))


def assigned(nodes: Iterable[ast.AST]) -> Names:
    """The names that statements set."""
    found: set[str] = set()
    for node in nodes:
        hidden: set[int] = set()
        for one in within([node]):
            if isinstance(one, _COMPREHENSIONS):
                for part in one.generators:
                    hidden.update(id(name) for name in ast.walk(part.target))
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store | ast.Del) and id(one) not in hidden:
                found.add(one.id)
            elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(one.name)
            elif isinstance(one, ast.alias):
                found.add((one.asname or one.name).partition(".")[0])
            elif isinstance(one, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and one.name:
                found.add(one.name)
            elif isinstance(one, ast.MatchMapping) and one.rest:
                found.add(one.rest)
            found.update(getattr(one, "sets", ()))
    return frozenset(found)


def bound(nodes: Sequence[ast.AST]) -> Names:
    """The names that statements set otherwise than by `x += y`, which leaves an array where it is."""
    targets = {id(one.target) for one in within(nodes) if isinstance(one, ast.AugAssign)}
    stored = [one for one in within(nodes) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
    others = {one.id for one in stored if id(one) not in targets}
    return assigned(nodes) - ({one.id for one in stored} - others)


def written(nodes: Iterable[ast.AST]) -> Names:
    """The names of arrays, or other objects, of which statements set elements: `x[k] = y`, `x += y`, `f(y, out=x)`,
    `x.sort()`, `np.copyto(x, y)`."""
    found: set[str] = set()
    for one in within(nodes):
        if isinstance(one, ast.Call):
            found |= {name.id for name in _written_by(one) if isinstance(name, ast.Name)}
            continue
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            method = one.value.func
            if isinstance(method, ast.Attribute) and method.attr in _WRITING_METHODS:
                found |= {method.value.id} if isinstance(method.value, ast.Name) else set()
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
        for target in targets:
            base = target
            while isinstance(base, ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name) and (base is not target or isinstance(one, ast.AugAssign)):
                found.add(base.id)
    return frozenset(found)


_WRITING_METHODS = frozenset("fill partition sort".split())
"""Methods that a statement calls: `x.sort()`, but not `y = np.sort(x)`."""
_WRITING_FUNCTIONS = frozenset("copyto fill_diagonal place put put_along_axis putmask".split())


def _written_by(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call that it writes to, as far as its text tells."""
    found: list[ast.expr] = []
    for keyword in call.keywords:
        if keyword.arg == "out":
            found += keyword.value.elts if isinstance(keyword.value, ast.Tuple) else [keyword.value]
    if isinstance(call.func, ast.Attribute) and call.func.attr in _WRITING_FUNCTIONS:
        found += call.args[:1]
    return found


def read(nodes: Iterable[ast.AST]) -> Names:
    """The names that statements read, functions in them included."""
    found: set[str] = set()
    for node in nodes:
        for one in ast.walk(node):
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Store):
                found.add(one.id)
            elif isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
                found.add(one.target.id)
            elif isinstance(one, ast.Global | ast.Nonlocal):
                found.update(one.names)
    return frozenset(found)


def captured(nodes: Iterable[ast.AST]) -> Names:
    """The names that functions defined in statements read."""
    return frozenset().union(*[_free(one) for one in within(nodes) if isinstance(one, SCOPES)])


def _free(scope: ast.AST) -> Names:
    """The names that a function or class reads from outside."""
    if isinstance(scope, ast.ClassDef):
        return read([scope])
    arguments: ast.arguments = scope.args  # type: ignore[attr-defined]
    own = {one.arg for one in ast.walk(arguments) if isinstance(one, ast.arg)}
    body = scope.body if isinstance(scope.body, list) else [scope.body]  # type: ignore[attr-defined]
    declared = {n for one in within(body) if isinstance(one, ast.Nonlocal) for n in one.names}
    return (read(body) - own - (assigned(body) - declared)) | declared


def mark_live(statements: Statements, after: Names = frozenset()) -> Names:
    """Note at each branch and loop, as `live`, the names that are read after it, and for loops before a further turn.

    Returns the names that are read after the start.
    """
    return _live(statements, after, frozenset(), frozenset())


def _live(statements: Statements, after: Names, at_break: Names, at_continue: Names) -> Names:
    for statement in reversed(statements):
        after = _before(statement, after, at_break, at_continue)
    return after


def _before(statement: ast.stmt, after: Names, at_break: Names, at_continue: Names) -> Names:
    """The names that are read from a statement on."""
    if isinstance(statement, ast.Return | ast.Raise):
        return read([statement])
    if isinstance(statement, ast.Break):
        return at_break
    if isinstance(statement, ast.Continue):
        return at_continue
    if isinstance(statement, ast.If):
        statement.live = after  # type: ignore[attr-defined]
        parts = [_live(part, after, at_break, at_continue) for part in (statement.body, statement.orelse)]
        return parts[0] | parts[1] | read([statement.test])
    if isinstance(statement, ast.While | ast.For):
        return _before_loop(statement, after, at_break, at_continue)
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        # What its body reads is read when it is called, its own name then being known.
        arguments = statement.args
        first = [*statement.decorator_list, *arguments.defaults, *[one for one in arguments.kw_defaults if one]]
        return ((after | read([statement])) - {statement.name}) | read(first)
    if isinstance(statement, ast.Try | ast.With | ast.Match) or not isinstance(statement, ast.Assign | ast.AnnAssign):
        inner = [part for part in ast.walk(statement) if isinstance(part, ast.stmt) and part is not statement]
        everything = after | at_break | at_continue | read([statement])
        for part in inner if not isinstance(statement, SCOPES) else ():
            if isinstance(part, CONTROL):
                part.live = everything  # type: ignore[attr-defined]
        return after | at_break | at_continue | read([statement]) if inner else after | read([statement])
    return (after - assigned([statement])) | read([statement])


def _before_loop(loop: ast.While | ast.For, after: Names, at_break: Names, at_continue: Names) -> Names:
    out = _live(loop.orelse, after, at_break, at_continue)
    entry = read([loop.test if isinstance(loop, ast.While) else loop.iter])
    target = assigned([loop.target]) if isinstance(loop, ast.For) else frozenset[str]()
    top = out | (entry if isinstance(loop, ast.While) else frozenset())
    while True:
        body = _live(loop.body, top, out, top) - target
        if body <= top:
            break
        top |= body
    loop.live = top  # type: ignore[attr-defined]
    return top | entry
