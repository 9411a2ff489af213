"""The errors that a kernel may raise: its own, and those of Numba where it divides by zero.

In: a kernel. Out: whether it raises by a statement, or can by a division, itself or in a function that it calls. Called
by specializations.py: derivatives are compiled without statements that raise and without checks of divisors, and call
the kernel where these matter.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..compiled.frozen_arrays import named_values
from ..extend.scalar_code import python_function

NOTHING, DIVISIONS, STATEMENTS = range(3)
"""Kinds of code that raises, from the least to the most."""

_DIVISIONS = frozenset(
    [f"{kind}_{name}" for kind in ("BINARY", "INPLACE") for name in ("TRUE_DIVIDE", "FLOOR_DIVIDE", "MODULO")]
)
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
        codes = list(_codes(one.__code__))
        found = max([found, *[_raised_by(step) for code in codes for step in dis.get_instructions(code)]])
        todo += _named(one, codes)
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
    divides = instruction.opname in _DIVISIONS or (instruction.opname == "BINARY_OP" and instruction.argrepr in _SIGNS)
    return DIVISIONS if divides else NOTHING


def _named(function: FunctionType, codes: Sequence[CodeType]) -> list[Any]:
    """The values that a function names, and those of the modules among them by the names in its code."""
    objects = [value for _, value in named_values(function)]
    names = {name for code in codes for name in code.co_names}
    return objects + [getattr(one, name, None) for one in objects if isinstance(one, ModuleType) for name in names]
