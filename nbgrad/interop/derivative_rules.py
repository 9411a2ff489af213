"""The rules of a function's derivatives as functions of arrays themselves, so that rules of any order are of one kind.

In: a function of arrays and other values. Out: functions of the same arguments, and of the cotangents of its results
(reverse mode) or of the tangents of arguments (forward mode). Called by torch_functions.py, jax_operations.py and
pytensor_functions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..transforms.jacobians import jvp, vjp


def pullback(function: Callable[..., Any], count: int, wanted: Sequence[int]) -> Callable[..., Any]:
    """The function from `count` arguments and all cotangents to the cotangents of the `wanted` arguments."""

    def pulled(*given: Any) -> tuple[Any, ...]:
        part, points = _of_wanted(function, given[:count], wanted)
        return vjp(part, *points)[1](*given[count:])

    return pulled


def pushforward(function: Callable[..., Any], count: int, wanted: Sequence[int]) -> Callable[..., Any]:
    """The function from `count` arguments and tangents of the `wanted` ones to the tangents of all results.

    All results are floating-point or complex numbers (`floats_of`).
    """

    def pushed(*given: Any) -> tuple[Any, ...]:
        part, points = _of_wanted(function, given[:count], wanted)
        return tuple(jvp(part, points, tuple(given[count:]))[1])

    return pushed


def floats_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The results of a function that have derivatives, always as a tuple."""

    def floats(*args: Any) -> tuple[Any, ...]:
        found = function(*args)
        return tuple([one for one in (found if isinstance(found, tuple) else (found,)) if one.dtype.kind in "fc"])

    return floats


def _of_wanted(
    function: Callable[..., Any], arguments: Sequence[Any], wanted: Sequence[int]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function of the `wanted` arguments, and these."""
    full = list(arguments)

    def part(*points: Any) -> Any:
        for position, point in zip(wanted, points, strict=True):
            full[position] = point
        return function(*full)

    return part, tuple([full[position] for position in wanted])
