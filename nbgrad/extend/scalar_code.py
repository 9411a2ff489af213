"""The text of a function of numbers: its syntax tree, and the meaning of its names.

In: a Python function, or one that Numba compiles. Out: `ScalarCode`. Called by if_conversion.py, and by
elementwise_functions.py and device_function.py, which check a function when it is decorated. Nothing is executed here.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import textwrap
from types import CodeType, FunctionType
from typing import Any

from ..errors import ArgumentError, DtypeError
from ..record.foreign_arrays import full_name

Definition = ast.FunctionDef | ast.Lambda
MISSING = object()


def python_function(function: Any) -> FunctionType | None:
    """The Python function behind one that Numba compiles, or the function itself; None for anything else."""
    for found in (function, getattr(function, "py_func", None)):
        if isinstance(found, FunctionType):
            return found
    # numba.vectorize keeps it one level deeper.
    inner = getattr(getattr(function, "_dispatcher", None), "py_func", None)
    return inner if isinstance(inner, FunctionType) else None


class ScalarCode:
    """A function's definition, where its lines are, and the objects that its names stand for."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.name = function.__name__
        self.definition, self.first_line = _definition(function.__code__, function)
        self.signature = inspect.signature(function)

    def lookup(self, name: str) -> Any:
        """The present value of a name that is no local variable; `MISSING` if it has none."""
        code = self.function.__code__
        if name in code.co_freevars:
            cell = (self.function.__closure__ or ())[code.co_freevars.index(name)]
            try:
                return cell.cell_contents
            except ValueError:
                return MISSING
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        return getattr(builtins, name, MISSING)

    def place(self, node: ast.AST) -> str:
        """The place of a piece of the text, for messages."""
        return f"{self.name}() ({self.line(node)})"

    def line(self, node: ast.AST) -> str:
        """The file and the line of a piece of the text."""
        return f"{self.function.__code__.co_filename}:{self.first_line + getattr(node, 'lineno', 1) - 1}"


def scalar_code(function: Any) -> ScalarCode:
    """The code of a function of numbers.

    Raises
    ------
    DtypeError
        If it is no Python function, nor compiled from one.
    ArgumentError
        If its text cannot be found.
    """
    found = python_function(function)
    if found is None:
        what = getattr(function, "__name__", full_name(function))
        message = f"Expected a Python function of numbers, or one that numba.njit compiles, but got {what}."
        raise DtypeError(message)
    return ScalarCode(found)


@functools.lru_cache(maxsize=4096)
def _parsed(code: Any, text: str) -> Definition | None:
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:
        # A lambda in the middle of an expression: take what begins there.
        start = text.find("lambda")
        tree = None
        for end in range(len(text), start, -1) if start >= 0 else ():
            try:
                tree = ast.parse(text[start:end].strip())
                break
            except SyntaxError:
                continue
        if tree is None:
            return None
    if code.co_name != "<lambda>":
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
                return node
        return None
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and _same_code(node, code)]
    return found[0] if found and len({ast.dump(node) for node in found}) == 1 else None


def _same_code(node: ast.Lambda, code: Any) -> bool:
    """Whether a lambda in the text is the one that has a code object."""
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    if names != list(code.co_varnames[: len(names)]) or len(names) != code.co_argcount + code.co_kwonlyargcount:
        return False
    constants = compile(ast.Expression(node), "<lambda>", "eval").co_consts
    compiled = next(one for one in constants if isinstance(one, CodeType) and one.co_name == "<lambda>")
    same_names = set(compiled.co_names) <= {*code.co_names, *code.co_freevars}
    return same_names and _plain_constants(compiled) == _plain_constants(code)


def _plain_constants(code: CodeType) -> list[str]:
    """The constants of a code object that do not depend on where it stands."""
    return [repr(one) for one in code.co_consts if not isinstance(one, CodeType) and "<locals>" not in str(one)]


def _definition(code: Any, function: FunctionType) -> tuple[Definition, int]:
    name = function.__name__
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        message = (
            f"The text of {name}() cannot be found, so that it cannot be recorded. Define it in a file or a notebook, "
            "not by exec() or in Python's own prompt."
        )
        raise ArgumentError(message) from None
    found = _parsed(code, text)
    if found is None:
        message = (
            f"{name}() cannot be told apart from the other text around it. Define it by `def`, without `async`, or put "
            "one lambda on a line."
        )
        raise ArgumentError(message)
    return found, code.co_firstlineno
