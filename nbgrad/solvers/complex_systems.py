"""Complex linear systems as real ones of twice the size, whose unknowns are the real and the imaginary parts.

In: a function that multiplies by a complex matrix, and complex arrays. Out: a function of both parts, along a first
axis, and its arrays. Called by `linear_solve`, on one rank and on several (nbgrad.mpi).

A Hermitian matrix becomes a symmetric one with each of its eigenvalues twice, so that iterations need the same turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..record.tensor import Tensor
from ..transforms.arguments import name_of


def is_complex(*arrays: Any) -> bool:
    """Whether one of several arrays holds complex numbers."""
    return any(
        isinstance(x, np.ndarray | np.generic | Tensor | complex | list | tuple) and _kind(x) == "c" for x in arrays
    )


def _kind(x: Any) -> str:
    return np.dtype(x.dtype).kind if hasattr(x, "dtype") else np.asarray(x).dtype.kind


def parted(x: Any) -> Any:
    """The real and the imaginary parts along a new first axis; None as it is."""
    return None if x is None else np.stack([np.real(x), np.imag(x)])


def joined(x: Any) -> Any:
    """The complex numbers of both parts."""
    return x[0] + 1j * x[1]


def by_parts(fn: Callable[..., Any] | None, title: str) -> Any:
    """A linear function of complex numbers as one of their parts; None as it is."""
    if fn is None or not callable(fn):
        return fn
    name = name_of(fn)

    def of_parts(v: Any, *args: Any) -> Any:
        given = joined(v)
        found = fn(given, *args)
        if np.shape(found) != given.shape:
            message = (
                f"{name}() must return an array of shape {given.shape} to {title}(), but returned {np.shape(found)}."
            )
            raise ShapeError(message)
        return parted(found)

    of_parts.__name__ = name
    return of_parts
