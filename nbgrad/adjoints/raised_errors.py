"""The errors that a kernel may raise: its own, and those of Numba where it divides by zero.

In: a kernel. Out: whether it raises by a statement, or can by a division, itself or in a function that it calls. Called
by specializations.py: derivatives are compiled without statements that raise and without checks of divisors, and call
the kernel where these matter.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..extend.scalar_code import python_function

NOTHING, DIVISIONS, STATEMENTS = range(3)
"""Kinds of code that raises, from the least to the most."""

_DIVISIONS = frozenset(["BINARY_TRUE_DIVIDE", "BINARY_FLOOR_DIVIDE", "BINARY_MODULO"])
_DIVISIONS_IN_PLACE = frozenset([name.replace("BINARY", "INPLACE") for name in _DIVISIONS])
_SIGNS = frozenset(["/", "//", "%", "/=", "//=", "%="])


def raises(function: Any) -> int:
    """The kind of code that may raise in a function that Numba compiles: `NOTHING`, `DIVISIONS` or `STATEMENTS`.

    Examples
    --------
    >>> def share(part, whole):
    ...     assert whole > 0
    ...     return part / whole
    >>> raises(share) == STATEMENTS, raises(lambda a, b: a / b) == DIVISIONS, raises(lambda a: a + 1) == NOTHING
    (True, True, True)
    """
    found, seen, todo = NOTHING, set[FunctionType](), [function]
    while todo:
        one = python_function(todo.pop())
        if one is None or one in seen:
            continue
        seen.add(one)
        for code in _codes(one.__code__):
            found = max([found, *map(_raised_by, dis.get_instructions(code))])
            todo += _named(one, code)
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those defined inside."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _raised_by(instruction: dis.Instruction) -> int:
    # `assert` raises by the same instruction.
    if instruction.opname == "RAISE_VARARGS":
        return STATEMENTS
    divides = instruction.opname in _DIVISIONS | _DIVISIONS_IN_PLACE or (
        instruction.opname == "BINARY_OP" and instruction.argrepr in _SIGNS
    )
    return DIVISIONS if divides else NOTHING


def _named(function: FunctionType, code: CodeType) -> list[Any]:
    """The functions that some code may mean by the names in it: global ones, enclosed ones, and those of modules."""
    enclosed = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells = [cell.cell_contents for name, cell in enclosed.items() if name in code.co_freevars and _is_filled(cell)]
    objects = [function.__globals__[name] for name in code.co_names if name in function.__globals__] + cells
    modules = [one for one in objects if isinstance(one, ModuleType)]
    parts = [getattr(module, name, None) for module in modules for name in code.co_names]
    return [one for one in (*objects, *parts) if python_function(one) is not None]


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
