"""Errors of Python's arithmetic that a `try` statement of converted code waits for.

In: code that `differentiable_source` converts, and later a recorded result that is not finite. Out: the error that
Python's own numbers raise, where the code handles it: `math.sqrt(-1.0)` a ValueError, `math.exp(1000.0)` an
OverflowError, `1.0 / 0.0` a ZeroDivisionError. Everywhere else recorded values give NaN and infinity, as in NumPy, and
no value is asked for. Called by rebinding.py, control_flow.py, statements.py and math_functions.py.
"""

from __future__ import annotations

import ast
import dis
import operator
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from ..errors import TracedValueError
from ..record.tensor import Tensor

_ALL = frozenset(["Exception", "BaseException"])
_OF_MATH = _ALL | {"ValueError", "ArithmeticError", "OverflowError"}
_OF_DIVISION = _ALL | {"ArithmeticError", "ZeroDivisionError"}
_DIVISIONS = {ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod"}
_AT_POLES: dict[str, Callable[..., Any]] = {
    **{name: lambda *given: np.True_ for name in "log log2 log10 log1p lgamma atanh fmod remainder".split()},
    "gamma": lambda x: x <= 0,
    "pow": lambda x, y: x == 0,
}
"""By function of `math`: whether an infinite result is a pole, a ValueError; others are an OverflowError."""
_tried: dict[str, tuple[tuple[int, int], ...]] = {}
"""By file: the lines of `try` blocks that handle errors of `math`."""


def has_handlers(code: CodeType) -> bool:
    """Whether code, or that of a function in it, may have a `try` statement."""
    table = getattr(code, "co_exceptiontable", None)
    found = bool(table) if table is not None else dis.opmap["SETUP_FINALLY"] in code.co_code[::2]  # until Python 3.10
    return found or any(isinstance(one, CodeType) and has_handlers(one) for one in code.co_consts)


def note_file(filename: str, parsed: Callable[[str], ast.Module]) -> None:
    """Remember where a file has `try` statements; `parsed` gives its statements."""
    if filename not in _tried:
        try:
            _tried[filename] = _blocks(parsed(filename))
        except SyntaxError:
            _tried[filename] = ()


def _blocks(tree: ast.Module) -> tuple[tuple[int, int], ...]:
    return tuple(
        (node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and _handles(node, _OF_MATH)
    )


def _handles(node: ast.Try, kinds: frozenset[str]) -> bool:
    """Whether a statement handles one of these errors."""
    for handler in node.handlers:
        names = () if handler.type is None else [one.id for one in ast.walk(handler.type) if isinstance(one, ast.Name)]
        if handler.type is None or not kinds.isdisjoint(names):
            return True
    return False


def _is_handled(depth: int) -> bool:
    """Whether a converted function around handles an error of `math`."""
    frame = sys._getframe(depth + 1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        blocks = _tried.get(frame.f_code.co_filename)
        if blocks and frame.f_globals.__class__ is not dict:
            line = frame.f_lineno
            if any(first <= line <= last for first, last in blocks):
                return True
        frame = frame.f_back
    return False


def raise_as_math(name: str, given: tuple[Any, ...], found: Any) -> None:
    """Raise for a recorded result as `math` does for a number, if that is handled; called by its replacement.

    Raises
    ------
    ValueError
        For arguments outside the function's domain.
    OverflowError
        For a result that is too large.
    """
    if not _tried or not isinstance(found, Tensor) or found.dtype.kind != "f" or not _is_handled(2):
        return
    values = [value for value in given if isinstance(value, Tensor | float)]
    nan, infinite = np.isnan(found), np.isinf(found)
    for value in values:
        nan = np.logical_and(nan, np.logical_not(np.isnan(value)))
        infinite = np.logical_and(infinite, np.isfinite(value))
    try:
        if not bool(np.logical_or(nan, infinite)):
            return
        pole = bool(nan) or bool(_AT_POLES[name](*given) if name in _AT_POLES else False)
    except TracedValueError:  # it stands for many values: NaN and infinity, as in NumPy
        return
    raise ValueError("math domain error") if pole else OverflowError("math range error")


def division(name: str, a: Any, b: Any) -> Any:
    """A quotient in a `try` block that handles divisions by zero, by the function of `operator` with this name.

    Raises
    ------
    ZeroDivisionError
        If both stand for Python's numbers, and the divisor is zero.
    """
    if is_pythons_number(a) and is_pythons_number(b) and (isinstance(a, Tensor) or isinstance(b, Tensor)):
        try:
            zero = bool(b == 0)
        except TracedValueError:
            zero = False
        if zero:
            message = "float division by zero"
            raise ZeroDivisionError(message)
    return getattr(operator, name)(a, b)


def is_pythons_number(value: Any) -> bool:
    """Whether a value is one of Python's numbers, or recorded in its place."""
    return value._node.weak if isinstance(value, Tensor) else type(value) in (int, float, bool)


def divisions_checked(node: ast.FunctionDef, calls: str) -> bool:
    """Divisions in the `try` blocks of a function that handle those by zero become calls of `division`, in place.

    Returns
    -------
    bool
        Whether there are any.
    """
    changed = False
    for one in ast.walk(node):
        if isinstance(one, ast.Try) and _handles(one, _OF_DIVISION):
            divisions = _Divisions(calls)
            one.body = [divisions.visit(statement) for statement in one.body]
            changed = changed or divisions.count > 0
    return changed


class _Divisions(ast.NodeTransformer):
    """Quotients as calls."""

    def __init__(self, calls: str) -> None:
        self.calls, self.count = calls, 0

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = _DIVISIONS.get(type(node.op))
        return node if name is None else self._call(node, name, node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        name = _DIVISIONS.get(type(node.op))
        if name is None or not isinstance(node.target, ast.Name):
            return node
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        return ast.copy_location(ast.Assign([node.target], self._call(node, f"i{name}", read, node.value)), node)

    def _call(self, node: ast.AST, name: str, a: ast.expr, b: ast.expr) -> ast.expr:
        self.count += 1
        made = ast.parse(f"{self.calls}.division({name!r})", mode="eval").body
        assert isinstance(made, ast.Call)
        for one in ast.walk(made):
            ast.copy_location(one, node)
        made.args += [a, b]
        return made
