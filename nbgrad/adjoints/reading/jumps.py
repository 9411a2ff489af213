"""Kernels without `return`, `continue` and early `break`: what follows a jump stands in the other branch.

In: the body of a function, as Python's syntax tree. Out: a body in which a `break` is the last statement of its branch,
`continue` and `return` do not occur, and the value of the function is the variable `RESULT`. Called by plain_form.py.
Statements that raise are left out: derivatives are taken where the kernel has not raised.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

RESULT = "returned"
"""The variable that holds the value of the function."""
_LEFT = "has_returned"
_SMALL = 40
"""The most pieces of syntax that are repeated in two branches."""

_Jump = ast.Return | ast.Continue | ast.Break | ast.Raise


def without_jumps(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The body of a function in which every statement runs that is reached."""
    found = _Jumps().block(list(body), 0)
    if any(isinstance(node, ast.Name) and node.id == _LEFT for one in found for node in ast.walk(one)):
        return [_assign(_LEFT, ast.Constant(False), body[0]), *found]
    return found


def _assign(name: str, value: ast.expr, place: ast.stmt) -> ast.stmt:
    made = ast.Assign([ast.Name(name, ast.Store())], value)
    return ast.fix_missing_locations(ast.copy_location(made, place))


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether nothing runs that would follow a block."""
    if not body:
        return False
    last = body[-1]
    return isinstance(last, _Jump) or (isinstance(last, ast.If) and _ends(last.body) and _ends(last.orelse))


def _returns(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Return) for node in ast.walk(statement))


def _jumps(statement: ast.stmt) -> bool:
    """Whether a statement may leave the block that it stands in."""
    if isinstance(statement, ast.If):
        return any(_jumps(one) for one in (*statement.body, *statement.orelse))
    if isinstance(statement, ast.For | ast.While):
        return _returns(statement) or any(_jumps(one) for one in statement.orelse)
    return isinstance(statement, _Jump)


def _flagged(body: Sequence[ast.stmt], flag: str, *jumps: type[ast.stmt]) -> list[ast.stmt]:
    """A block that sets a flag before some kinds of jumps; of those of inner loops, before `return` only."""
    found: list[ast.stmt] = []
    for statement in body:
        made: Any = copy.copy(statement)
        if isinstance(statement, jumps):
            found.append(_assign(flag, ast.Constant(True), statement))
        elif isinstance(statement, ast.If):
            made.body, made.orelse = [_flagged(side, flag, *jumps) for side in (statement.body, statement.orelse)]
        elif isinstance(statement, ast.For | ast.While):
            made.body = _flagged(statement.body, flag, *[one for one in jumps if one is ast.Return])
            made.orelse = _flagged(statement.orelse, flag, *jumps)
        found.append(made)
    return found


def _sets(body: Sequence[ast.stmt], flag: str) -> bool:
    """Whether a block gives a variable a value."""
    return any(isinstance(node, ast.Name) and node.id == flag for one in body for node in ast.walk(one))


class _Jumps:
    def __init__(self) -> None:
        self.flags = 0

    def block(self, body: list[ast.stmt], depth: int) -> list[ast.stmt]:
        """A block, in `depth` loops of its function."""
        found: list[ast.stmt] = []
        for position, statement in enumerate(body):
            rest = body[position + 1 :]
            match statement:
                case ast.Return(value):
                    if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
                        found.append(_assign(RESULT, value, statement))
                    if depth:
                        found += [
                            _assign(_LEFT, ast.Constant(True), statement),
                            ast.copy_location(ast.Break(), statement),
                        ]
                    return found
                case ast.Continue() | ast.Raise():
                    return found
                case ast.Break():
                    return [*found, statement]
                case ast.If() if _jumps(statement):
                    return found + self.branches(statement, rest, depth)
                case ast.For() | ast.While():
                    made = copy.copy(statement)
                    if not all(isinstance(one, ast.Raise | ast.Assert | ast.Pass) for one in statement.orelse):
                        self.flags += 1
                        flag = f"has_broken_{self.flags}"
                        found.append(_assign(flag, ast.Constant(False), statement))
                        check = ast.If(ast.Name(flag, ast.Load()), [ast.Pass()], statement.orelse)
                        rest = [ast.fix_missing_locations(ast.copy_location(check, statement)), *rest]
                        made.body = _flagged(statement.body, flag, ast.Break)
                    made.body = self.block(made.body, depth + 1)
                    made.orelse = []
                    found.append(made)
                    if any(_returns(one) for one in statement.body):
                        left = ast.Name(_LEFT, ast.Load())
                        leave: list[ast.stmt] = [ast.Break()] if depth else [ast.Pass()]
                        check = ast.If(left, leave, self.block(rest, depth))
                        return [*found, ast.fix_missing_locations(ast.copy_location(check, statement))]
                    if statement.orelse:
                        return found + self.block(rest, depth)
                case ast.If():
                    made = ast.If(
                        statement.test, self.block(statement.body, depth), self.block(statement.orelse, depth)
                    )
                    found.append(ast.copy_location(made, statement))
                case _:
                    found.append(statement)
        return found

    def branches(self, statement: ast.If, rest: list[ast.stmt], depth: int) -> list[ast.stmt]:
        """An `if` that may jump, and what follows it."""
        then, orelse = list(statement.body), list(statement.orelse)
        if not _ends(then) and not _ends(orelse) and sum(1 for one in rest for _ in ast.walk(one)) > _SMALL:
            return self.apart(statement, rest, depth)
        made = ast.If(
            statement.test,
            self.block(then if _ends(then) else then + copy.deepcopy(rest), depth),
            self.block(orelse if _ends(orelse) else orelse + rest, depth),
        )
        return [ast.copy_location(made, statement)]

    def apart(self, statement: ast.If, rest: list[ast.stmt], depth: int) -> list[ast.stmt]:
        """An `if` that may jump, and after it once what follows it.

        Flags say whether it has jumped. A `break` sets one too: a derivative runs turns again to their end, also the
        one that has left.
        """
        self.flags += 1
        sides, before = [list(statement.body), list(statement.orelse)], []
        found: list[ast.stmt] = [*self.block(rest, depth)]
        leave: ast.stmt = ast.Break() if depth else ast.Pass()
        kinds: list[tuple[str, tuple[type[ast.stmt], ...], ast.stmt]] = [
            (f"has_jumped_{self.flags}", (ast.Continue,), ast.Pass()),
            (f"has_left_{self.flags}", (ast.Break, ast.Return), leave),
        ]
        for flag, jumps, last in kinds:
            flagged = [_flagged(side, flag, *jumps) for side in sides]
            if any(_sets(side, flag) for side in flagged):
                before.append(_assign(flag, ast.Constant(False), statement))
                sides = flagged
                found = [ast.If(ast.Name(flag, ast.Load()), [last], found)]
        made: list[ast.stmt] = [ast.If(statement.test, *[self.block(side, depth) for side in sides]), *found]
        return [*before, *[ast.fix_missing_locations(ast.copy_location(one, statement)) for one in made]]
