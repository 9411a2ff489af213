"""Functions over tuples and lists, and functions that choose by the types of their arguments, under MindSpore's names.

In: functions, and nested tuples of Tensors. Out: `HyperMap`, `Map`, `MultitypeFuncGraph`, `partial`.
Called by users, mostly in training steps that scale or clip gradients.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..dtype import DType
from ..errors import ArgumentError, DtypeError
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter

Marked = TypeVar("Marked")

_KINDS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda value: isinstance(value, Tensor),
    "RowTensor": lambda value: False,
    "MapTensor": lambda value: False,
    "COOTensor": lambda value: False,
    "CSRTensor": lambda value: False,
    "Ref[Tensor]": lambda value: isinstance(value, Parameter),
    "Bool": lambda value: isinstance(value, bool | np.bool_),
    "Number": lambda value: isinstance(value, bool | int | float | np.number),
    "Int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "Int64": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "Float": lambda value: isinstance(value, float),
    "Float32": lambda value: isinstance(value, float),
    "String": lambda value: isinstance(value, str),
    "Tuple": lambda value: isinstance(value, tuple),
    "List": lambda value: isinstance(value, list),
    "Dictionary": lambda value: isinstance(value, dict),
    "Function": callable,
    "TypeType": lambda value: isinstance(value, DType),
    "None": lambda value: value is None,
    "TypeNone": lambda value: value is None,
    "Slice": lambda value: isinstance(value, slice),
    "Ellipsis": lambda value: value is ...,
    "Any": lambda value: True,
}
"""Name of a type -> whether a value is of it. Sparse tensors do not exist here, so that no value is one."""


class MultitypeFuncGraph:
    """A function with a body for each combination of types.

    Parameters
    ----------
    name : str
    read_value : bool
        Has no effect.

    Raises
    ------
    ArgumentError
        At a call for whose arguments no body is registered. (A ValueError.)
    DtypeError
        For types that do not exist, and for ndarrays as arguments. (A TypeError.)

    Notes
    -----
    A single body takes everything, as in MindSpore.

    Examples
    --------
    >>> import nbgrad as nb
    >>> scaled = nb.ops.MultitypeFuncGraph("scaled")
    >>> @scaled.register("Number", "Tensor")
    ... def _(factor, gradient):
    ...     return gradient * factor
    >>> @scaled.register("Number", "None")
    ... def _(factor, gradient):
    ...     return None
    >>> print(scaled(0.5, nb.Tensor([4.0])), scaled(0.5, None))
    [2.] None
    """

    def __init__(self, name: str, read_value: bool = False) -> None:
        self.name = name
        self.entries: list[tuple[tuple[str, ...], Callable[..., Any]]] = []

    def register(self, *type_names: Any) -> Callable[[Marked], Marked]:
        """A decorator that adds a body for arguments of these types, named as MindSpore does ("Tensor", "Number")."""
        kinds = tuple([_kind(name) for name in type_names])

        def add(function: Any) -> Any:
            self.entries.append((kinds, function))
            return function

        return add

    def __call__(self, *args: Any) -> Any:
        if any(isinstance(value, np.ndarray) for value in args):
            message = f"{self.name} takes Tensors, but got an ndarray. Make it one with nb.Tensor(x)."
            raise DtypeError(message)
        if len(self.entries) == 1:
            return self.entries[0][1](*args)
        for kinds, function in self.entries:
            if len(kinds) == len(args) and all(_KINDS[kind](value) for kind, value in zip(kinds, args, strict=True)):
                return function(*args)
        given = ", ".join(type(value).__name__ for value in args)
        known = "; ".join(", ".join(kinds) for kinds, _ in self.entries) or "none"
        message = f"{self.name} has no body for arguments of the types ({given}); registered are: {known}."
        raise ArgumentError(message)

    def __repr__(self) -> str:
        return f"MultitypeFuncGraph({self.name!r})"


def _kind(name: Any) -> str:
    kind = str(name) if isinstance(name, str | DType) else ""
    if kind.rstrip("0123456789") in ("Int", "UInt"):
        kind = "Int"
    elif kind.rstrip("0123456789") == "Float":
        kind = "Float"
    if kind not in _KINDS:
        message = f"Types are named as {', '.join(map(repr, list(_KINDS)[:9]))}, ..., but got {name!r}."
        raise DtypeError(message)
    return kind


class HyperMap:
    """A function of the elements of nested tuples and lists.

    Parameters
    ----------
    ops : callable, optional
        The function; without it, the first argument of a call is the function.
    reverse : bool
        Has no effect: the order of recording does not change results.

    Raises
    ------
    ArgumentError
        At a call with structures that do not match.

    Examples
    --------
    >>> import nbgrad as nb
    >>> doubled = nb.ops.HyperMap(lambda x: 2 * x)
    >>> doubled((1, (2, [3])))
    (2, (4, (6,)))
    >>> nb.ops.HyperMap()(lambda x, y: x + y, (1, 2), (10, 20))
    (11, 22)
    """

    def __init__(self, ops: Callable[..., Any] | None = None, reverse: bool = False) -> None:
        self.ops = ops

    def __call__(self, *args: Any) -> Any:
        function, *values = args if self.ops is None else (self.ops, *args)
        if not values:
            message = f"{type(self).__name__} needs at least one tuple or list to take elements from."
            raise ArgumentError(message)
        return self._mapped(function, values, 0)

    def _mapped(self, function: Callable[..., Any], values: Any, depth: int) -> Any:
        if not isinstance(values[0], tuple | list):
            return function(*values)
        if not all(isinstance(value, tuple | list) and len(value) == len(values[0]) for value in values):
            message = (
                f"{type(self).__name__} needs tuples or lists of one length, but got "
                f"{', '.join(_said(value) for value in values)}."
            )
            raise ArgumentError(message)
        return tuple([self._element(function, parts, depth + 1) for parts in zip(*values, strict=True)])

    def _element(self, function: Callable[..., Any], parts: Any, depth: int) -> Any:
        return self._mapped(function, parts, depth)


class Map(HyperMap):
    """A function of the elements of tuples and lists; elements that are tuples themselves are given to it as they are.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.ops.Map()(lambda x, y: x + y, ((1, 2), (3,)), ((4,), (5,)))
    ((1, 2, 4), (3, 5))
    """

    def _element(self, function: Callable[..., Any], parts: Any, depth: int) -> Any:
        return function(*parts)


def _said(value: Any) -> str:
    return f"a {type(value).__name__} of {len(value)}" if isinstance(value, tuple | list) else type(value).__name__


def partial(func: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """A function with its first arguments given.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.ops.partial(lambda x, y: x - y, 5)(3)
    2
    """
    return functools.partial(func, *args)
