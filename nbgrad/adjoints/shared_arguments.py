"""Arguments of a kernel that are the same memory under two names, one of which the kernel writes to.

In: the arguments by name, and the names that the kernel writes to. Out: an error, or nothing. Called by kernel.py, in
which each argument is an array of its own: what Numba's function would read under the other name differs from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..record.tensor import Tensor


def refuse_shared(kernel: str, leaves: Iterable[tuple[str, Any]], written: Sequence[str]) -> None:
    """Raise an error if an array that is written to shares memory with another argument.

    Parameters
    ----------
    kernel : str
        The kernel's name.
    leaves : iterable of str and object
        The arguments, and the parts of tuples among them.
    written : sequence of str
        The names of those that the kernel writes to.
    """
    if not written:
        return
    arrays = [(name, value) for name, value in leaves if isinstance(value, np.ndarray | Tensor)]
    for name, value in arrays:
        if name not in written:
            continue
        for other, another in arrays:
            if other != name and (other not in written or other > name) and _share_memory(value, another):
                message = (
                    f"{kernel}() writes to `{name}`, which shares memory with `{other}`: what Numba's function reads "
                    f"under one name is what it has written under the other. Pass a copy as `{other}` if it is to "
                    "read what was there before, or let the kernel take one array."
                )
                raise ArgumentError(message)


def _share_memory(one: Any, other: Any) -> bool:
    """Whether two arrays have elements in common, as far as this can be known."""
    if one is other:
        return np.size(one) > 0
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.may_share_memory(one, other) and np.shares_memory(one, other)
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        (root, keys), (same, others) = _root(one), _root(other)
        if root is not same:
            return False
        places = np.arange(np.size(root)).reshape(root.shape)
        return np.shares_memory(_part(places, keys), _part(places, others))
    return False


def _root(view: Tensor) -> tuple[Tensor, list[Any]]:
    """The array that a view is a part of, and the keys that lead there; itself where a key is no index."""
    keys: list[Any] = []
    found = view
    while (source := getattr(found, "_base", None)) is not None:
        found, key = source
        if not all(isinstance(part, slice | int | None) or part is Ellipsis for part in _parts(key)):
            return view, []
        keys.insert(0, key)
    return found, keys


def _parts(key: Any) -> Sequence[Any]:
    return key if isinstance(key, tuple) else (key,)


def _part(places: np.ndarray, keys: Sequence[Any]) -> np.ndarray:
    """A part of an array as an array of at least one axis, so that it is a view."""
    for key in keys:
        places = places[(*_parts(key), ...)] if Ellipsis not in _parts(key) else places[key]
    return places
