"""One parameter, several names: `axis` or `dim`, `keepdims`, `keep_dims` or `keepdim`, `input` or `x`.

In: a function with one name for each. Out: the same function, which takes the other names as keywords too. Used by the
modules of `nbgrad.ops`, because MindSpore spells these parameters differently from function to function, and from
release to release.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypeVar, cast

from ..errors import ArgumentError

SPELLINGS = (
    ("axis", "dim", "dims"),
    ("keepdims", "keep_dims", "keepdim"),
    ("input", "x", "input_x", "A"),
    ("indices", "index"),
)
"""Names that mean the same."""

Function = TypeVar("Function", bound=Callable[..., Any])


def spelled(function: Function) -> Function:
    """The function, taking its parameters under every name that `SPELLINGS` has for them.

    Parameters
    ----------
    function : callable
        The names in its signature are the ones that it shows.

    Returns
    -------
    callable
        Raises ArgumentError when a parameter is given under two names.

    Examples
    --------
    >>> @spelled
    ... def total(values, axis=0):
    ...     return values, axis
    >>> total([1, 2], dim=1)
    ([1, 2], 1)
    """
    parameters = list(inspect.signature(function).parameters)
    own_name = {
        other: name
        for name in parameters
        for group in SPELLINGS
        if name in group
        for other in group
        if other not in parameters
    }

    def call(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name in own_name:
                return function(*args, **renamed(kwargs, len(args)))
        return function(*args, **kwargs)

    def renamed(given: dict[str, Any], positional: int) -> dict[str, Any]:
        return _renamed(function.__name__, parameters, own_name, given, positional)

    # In the globals of the function's module, so that doctest finds its examples there.
    here = FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    return cast(Function, update_wrapper(here, function))


def _renamed(
    function: str, parameters: Sequence[str], own_name: dict[str, str], given: dict[str, Any], positional: int
) -> dict[str, Any]:
    """Keywords under the function's own names."""
    result: dict[str, Any] = {}
    first: dict[str, str] = {}
    for spelling, value in given.items():
        name = own_name.get(spelling, spelling)
        before = first.get(name)
        if before is None and name in parameters[:positional]:
            before = "a positional argument"
        if before is not None:
            message = f"{function}() got {spelling}= as well as {before}, but both are its {name}. Give only one."
            raise ArgumentError(message)
        first[name] = f"{spelling}="
        result[name] = value
    return result
