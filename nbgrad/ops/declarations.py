"""Declarations of functions of `nbgrad.ops`: with other spellings of parameters, and as rows that NumPy's fill in.

In: a function; for a row its signature only. Out: the function that users call, with its docstring completed. Called by
the modules of functions. MindSpore spells `axis`, `keepdims` and `input` differently from function to function, and
from release to release, so that `spelled` takes all of them. A row is a function with other names of parameters::

    @as_numpy(shaping.rot90, "Turned `k` times by a quarter in the plane of two axes.")
    def rot90(input: Any, k: int, dims: Any) -> Tensor: ...

A row with more to say has a docstring instead of the sentence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypeVar, cast

from ..errors import ArgumentError
from .docstrings import SPELLINGS, completed

Function = TypeVar("Function", bound=Callable[..., Any])

# ----- Spellings -----


def spelled(function: Function) -> Function:
    """The function, taking its parameters under every name that `SPELLINGS` has for them; its docstring is completed.

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
    signature = inspect.signature(function)
    parameters = list(signature.parameters)
    if function.__doc__:
        function.__doc__ = completed(function.__doc__, signature, spelled=True)
    own_name = {
        other: name
        for name in parameters
        for group in SPELLINGS
        if name in group
        for other in group
        if other not in parameters
    }
    return _taking(function, parameters, own_name) if own_name else function


def also(**words: str) -> Callable[[Function], Function]:
    """Let a function take parameters under names of its own kind too.

    Parameters
    ----------
    **words : str
        Parameter -> its other names.

    Examples
    --------
    >>> @also(multiples="reps dims")
    ... def tiled(input, multiples):
    ...     return input, multiples
    >>> tiled(1, reps=2), tiled(1, dims=3)
    ((1, 2), (1, 3))
    """

    def named(function: Function) -> Function:
        own_name = {other: name for name, others in words.items() for other in others.split()}
        return _taking(function, list(inspect.signature(function).parameters), own_name)

    return named


def _taking(function: Function, parameters: Sequence[str], own_name: dict[str, str]) -> Function:
    """A function that takes some parameters under other names too."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            return function(*args)
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


# ----- Rows -----


def as_numpy(
    function: Callable[..., Any],
    says: str = "",
    /,
    *,
    result: Callable[[Any], Any] | None = None,
    **conversions: Callable[[Any], Any],
) -> Callable[[Function], Function]:
    """Fill in the body of a function: a call of another one.

    A parameter is given to the one of its name, or of another spelling of it, or else to the one in its place.

    Parameters
    ----------
    function : callable
        The function to call.
    says : str
        The docstring, if the function has none.
    result : callable, optional
        Applied to the result.
    **conversions : callable
        Applied to the parameters of these names.

    Examples
    --------
    >>> def product(a, b, keepdims=False):
    ...     return a * b, keepdims
    >>> @as_numpy(product, "The product.", y=int)
    ... def mul(x, y="2", *, keep_dims=True): ...
    >>> mul(3), mul(x=3, y="4", keepdim=False)
    ((6, True), (12, False))
    """

    def fill(row: Function) -> Function:
        if says:
            row.__doc__ = says
        return cast(Function, spelled(_filled(row, function, result, conversions)))

    return fill


def _filled(
    row: Callable[..., Any],
    function: Callable[..., Any],
    result: Callable[[Any], Any] | None,
    conversions: Mapping[str, Callable[[Any], Any]],
) -> Callable[..., Any]:
    """A function with the row's signature that calls another one, as it would be written by hand."""
    call = f"_function({', '.join(_arguments(row, function, conversions))})"
    made_with = ", ".join(["_function", "_result", *map(_converter, conversions)])
    text = (
        f"def make({made_with}):\n"
        f"  def {row.__name__}({', '.join(_parameters(row))}):\n"
        f"    return {call if result is None else f'_result({call})'}\n"
        f"  return {row.__name__}\n"
    )
    made: dict[str, Any] = {}
    exec(compile(text, row.__code__.co_filename, "exec"), row.__globals__, made)
    filled = made["make"](function, result, **{_converter(name): by for name, by in conversions.items()})
    # Tracebacks and `inspect.getsource` show the row.
    filled.__code__ = filled.__code__.replace(co_firstlineno=row.__code__.co_firstlineno)
    filled.__defaults__, filled.__kwdefaults__ = row.__defaults__, row.__kwdefaults__
    del (filled := update_wrapper(filled, row)).__wrapped__
    return filled


def _parameters(function: Callable[..., Any]) -> list[str]:
    """The names of parameters as a `def` has them, with a star before those by keyword only."""
    code = inspect.unwrap(function).__code__
    count, end = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    star = f"*{code.co_varnames[end] if code.co_flags & inspect.CO_VARARGS else ''}"
    return [*code.co_varnames[:count], *([star] if star != "*" or end > count else []), *code.co_varnames[count:end]]


def _converter(name: str) -> str:
    return f"{name}_converted"


def _arguments(row: Callable[..., Any], function: Callable[..., Any], conversions: Mapping[str, Any]) -> Iterator[str]:
    """The arguments of the call, by position as long as both signatures have the same order."""
    theirs, in_order = _parameters(function), True
    for place, name in enumerate(_parameters(row)):
        if name.startswith("*"):
            in_order = False
            yield from [name] if name != "*" else []
            continue
        value = f"{_converter(name)}({name})" if name in conversions else name
        spellings = next((group for group in SPELLINGS if name in group), ())
        wanted = next((one for one in (name, *spellings) if one in theirs), None) or theirs[place]
        in_order &= theirs[place : place + 1] == [wanted]
        yield value if in_order else f"{wanted}={value}"
