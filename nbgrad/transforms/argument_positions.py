"""The arguments of a transform: `grad_position`, flags, other libraries' names of them; and its function.

In: a user's arguments of a transform. Out: positions as a tuple of ints, flags as bools, or an error that says what was
expected. Called by the transforms: grad.py, jacobians.py, vmap.py, jit.py, sparse/sparse_derivatives.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..errors import ArgumentError, DtypeError

Positions = int | tuple[int, ...] | None
Transform = TypeVar("Transform", bound=Callable[..., Any])


def check_positions(grad_position: Any, weights: Any = ()) -> tuple[int, ...]:
    """The positions as a tuple.

    Raises
    ------
    ArgumentError
        If there is nothing to differentiate, or a position is negative or repeated.
    DtypeError
        If it is neither an int nor a tuple of ints.
    """
    if grad_position is None:
        if weights is None:
            message = (
                "grad_position and weights are both None, so there is nothing to differentiate with respect to. "
                "Give a position, a tuple of positions, or weights."
            )
            raise ArgumentError(message)
        return ()
    positions = grad_position if isinstance(grad_position, tuple) else (grad_position,)
    for position in positions:
        if not isinstance(position, int | np.integer):
            message = (
                f"grad_position must be an int, a tuple of ints or None, but got {grad_position!r} of type "
                f"{type(grad_position).__name__}."
            )
            raise DtypeError(message)
        if position < 0:
            message = f"grad_position must not be negative, but got {grad_position!r}. Positions count from 0."
            raise ArgumentError(message)
    if len(set(positions)) != len(positions):
        message = f"grad_position names an argument twice (a duplicate): {grad_position!r}."
        raise ArgumentError(message)
    return tuple([int(position) for position in positions])


def with_positions(transform: Transform) -> Transform:
    """A transform that knows other libraries' name of `grad_position`, and says so."""

    @functools.wraps(transform)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if kwargs and ("argnums" in kwargs or "argnum" in kwargs):
            name = transform.__name__
            message = f"{name}() has no argument argnums, which is grad_position here: {name}(f, grad_position=(0, 1))."
            raise DtypeError(message)
        return transform(*args, **kwargs)

    return checked  # type: ignore[return-value]


def check_function(fn: Any, transform: str) -> None:
    """Raise if something that is not a function or a Cell is given to a transform."""
    if not callable(fn):
        message = f"{transform} expects a function or a Cell, but got {type(fn).__name__}."
        raise DtypeError(message)


def check_flag(value: Any, name: str) -> bool:
    """A flag that must be a bool.

    Raises
    ------
    DtypeError
        If it is not.
    """
    if not isinstance(value, bool):
        message = f"{name} must be a bool, True or False, but got {value!r} of type {type(value).__name__}."
        raise DtypeError(message)
    return value
