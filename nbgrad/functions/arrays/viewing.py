"""Functions that give views: their results share the memory of a Tensor, where NumPy's do.

In: a function whose first argument is an array and that only moves elements. Out: the same function, whose results are
views. Called as a decorator by the files of `nbgrad.functions`; shared_memory.py decides, by strides, what is a view.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...graph.ir import placeholder
from ...record import shared_memory
from ...record.numbers import supported
from ...record.tensor import Tensor
from ...record.zero_dimensional import as_array, is_scalar

Function = TypeVar("Function", bound=Callable[..., Any])
FLOAT64 = np.dtype(np.float64)


def viewing(function: Function, in_order: bool = False) -> Function:
    """The function, whose results are views of its first argument; with `in_order`, if their elements are side by
    side."""

    @functools.wraps(function)
    def with_views(*args: Any, **kwargs: Any) -> Any:
        if args:
            args = sharing(args[0]), *args[1:]
        if args and isinstance(args[0], Tensor):
            return _views(function, args[0], args[1:], kwargs, in_order)
        if not args and kwargs:
            name, *others = kwargs
            if isinstance(kwargs[name], Tensor):
                rest = {other: kwargs[other] for other in others}
                return _views(lambda base, **rest: function(**{name: base}, **rest), kwargs[name], (), rest, in_order)
        result = function(*args, **kwargs)
        # Of a Python number, NumPy makes an array first; its own scalars, of which some are Python's too, stay scalars.
        of_number = args and isinstance(args[0], int | float | complex) and not isinstance(args[0], np.generic)
        return _each(as_array, result) if of_number else result

    return with_views  # type: ignore[return-value]


def sharing(value: Any) -> Any:
    """A plain ndarray as a Tensor that shares its memory, if there are such; else the value itself."""
    if type(value) is np.ndarray and supported(value.dtype):
        return shared_memory.from_numpy(value, tensor_rules=False)
    return value


def viewing_each(function: Function) -> Function:
    """The function of any number of arrays, which gives a view of each, in a tuple if there are several."""

    @functools.wraps(function)
    def with_views(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1:
            return viewing(function)(*args, **kwargs)
        return tuple([viewing(function)(a) for a in args])

    return with_views  # type: ignore[return-value]


def _views(
    function: Callable[..., Any], base: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], in_order: bool
) -> Any:
    if is_scalar(base):
        # Nothing shares memory with a scalar. Of a Python number, NumPy makes an array first.
        result = function(base, *args, **kwargs)
        return _each(as_array, result) if base._node.weak else result
    aliasing = shared_memory
    result = function(base, *args, **kwargs)
    if base.__class__ is Tensor and base._node.dtype.kind != "c":
        if isinstance(result, Tensor):
            return aliasing.moved(base, result, in_order)
        return _each(lambda part: aliasing.moved(base, part, in_order), result)
    # How elements are moved shows on an array of the same shape.
    example = placeholder(base.shape, FLOAT64)
    moved = function(Tensor._of(example), *args, **kwargs)
    keys = iter([aliasing.moves_between(example, part._node) for part in _parts(moved)])
    return _each(lambda part: aliasing.view_by_moves(base, next(keys), part, in_order), result)


def _parts(result: Any) -> list[Tensor]:
    return list(result) if isinstance(result, list | tuple) else [result]


def _each(change: Callable[[Tensor], Tensor], result: Any) -> Any:
    if isinstance(result, list | tuple):
        return type(result)([change(part) for part in result])
    return change(result)
