"""Which kernel of array_kernels.py stands for a call of a function of NumPy's.

In: the function and its arguments, as pieces of a kernel's text or as Numba's types. Out: the kernel, and the arguments
by the names of its parameters. Called by array_functions.py and numba_types.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def chosen_kernel(
    function: Any,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    rank: Callable[[Any], int | None],
    literal: Callable[[Any], Any],
) -> tuple[Any, dict[str, Any]] | None:
    """The kernel for a call, and its arguments by name; None if there is none.

    Parameters
    ----------
    rank : callable
        The number of axes of an argument: 0 for numbers and tuples, None for texts and None.
    literal : callable
        A Python object as an argument.
    """
    from .array_kernels import ARRAY_KERNELS

    known = [(ranks, kernel) for (one, ranks), kernel in ARRAY_KERNELS.items() if one is function]
    if not known:
        return None
    arguments, keywords = _by_position(function, arguments, keywords, literal)
    for ranks, kernel in known:
        signature = inspect.signature(kernel)
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError:
            continue
        given = [rank(bound.arguments[name]) if name in bound.arguments else None for name in signature.parameters]
        if tuple(given[: len(ranks)]) == ranks and not any(given[len(ranks) :]):
            return kernel, bound.arguments
    return None


def _by_position(
    function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], literal: Callable[[Any], Any]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Arguments by position, as far as the function says the places of its keywords."""
    if not keywords:
        return arguments, keywords
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*arguments, **keywords)
    except (TypeError, ValueError):
        return arguments, keywords
    given: list[Any] = []
    left = len(bound.arguments)
    for name, parameter in signature.parameters.items():
        if not left:
            break
        if name in bound.arguments:
            left -= 1
            given.append(bound.arguments[name])
        elif isinstance(parameter.default, bool | int | float | str | None):
            given.append(literal(parameter.default))
        else:
            return arguments, keywords
    return given, {}
