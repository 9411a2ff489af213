"""Containers of parameters as one vector, which optimisers of other libraries want.

In: nested containers of floating-point arrays. Out: a vector of all numbers, and the way back. Called by users.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import optree

from ..errors import ArgumentError, DtypeError
from ..record.container_leaves import fields_without_floats, flatten
from ..record.tensor import Tensor
from .arguments import has_floats
from .lent_arrays import ndarrays


class Piece(NamedTuple):
    """The part of a vector that holds one array."""

    start: int
    end: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def ravel(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """One vector of all numbers in a container, and the function that makes such a container of a vector.

    Both may be differentiated, recorded and compiled.

    Parameters
    ----------
    tree : nested tuples, lists, dicts, dataclasses and the like
        Its arrays, Tensors and Python floats hold real or complex floating-point numbers. None stays where it is, and
        so does what else the fields of dataclasses and attrs classes hold.

    Returns
    -------
    vector : numpy.ndarray or Tensor
        Shape (n,): the arrays in the order of the container (dicts by their keys), each in C order. Its dtype holds
        those of all arrays; float64 if there are none.
    unravel : callable
        Of an array of shape (n,): a container like `tree`, with arrays of its shapes and dtypes; for real ones the real
        parts of a complex vector.

    Raises
    ------
    DtypeError
        If there is anything else in `tree`: an optimiser cannot move integers.
    ArgumentError
        By `unravel`, if the array has another shape.

    Examples
    --------
    >>> import numpy as np, scipy.optimize
    >>> import nbgrad as nb
    >>> start = {"rate": 1.0, "weights": np.zeros((2, 2))}
    >>> vector, unravel = nb.ravel(start)
    >>> vector
    array([1., 0., 0., 0., 0.])
    >>> def loss(p):
    ...     return (p["rate"] - 3.0) ** 2 + np.sum((p["weights"] - np.eye(2)) ** 2)
    >>> function = nb.jit(nb.value_and_grad(lambda v: loss(unravel(v))))
    >>> found = scipy.optimize.minimize(function, vector, jac=True)
    >>> unravel(np.round(found.x, 4))
    {'rate': np.float64(3.0), 'weights': array([[1., 0.],
           [0., 1.]])}
    """
    leaves, treespec = flatten(tree)
    leaves = ndarrays(leaves)
    without = fields_without_floats(treespec, [has_floats(leaf) for leaf in leaves])
    kept = {position: leaf for position, leaf in enumerate(leaves) if leaf is None or position in without}
    held = [leaf for position, leaf in enumerate(leaves) if position not in kept]
    for leaf in held:
        dtype = getattr(leaf, "dtype", np.asarray(leaf).dtype if isinstance(leaf, float | complex) else None)
        if dtype is None or np.dtype(dtype).kind not in "fc":
            kind = type(leaf).__name__ if dtype is None else f"{dtype} {type(leaf).__name__}"
            message = f"nb.ravel takes floating-point numbers, but found {kind}. Keep other values elsewhere."
            raise DtypeError(message)
    pieces: list[Piece] = []
    end = 0
    for leaf in held:
        start, end = end, end + int(np.size(leaf))
        pieces.append(Piece(start, end, tuple(np.shape(leaf)), np.dtype(getattr(leaf, "dtype", type(leaf)))))
    dtype = np.result_type(*[piece.dtype for piece in pieces]) if pieces else np.dtype(float)
    parts = [_as_vector(leaf, dtype) for leaf in held]
    vector = np.concatenate(parts) if parts else np.zeros(0)

    def unravel(vector: Any) -> Any:
        return optree.tree_unflatten(treespec, _parts(vector, pieces, kept))

    return vector, unravel


def _as_vector(leaf: Any, dtype: np.dtype[Any]) -> Any:
    if not isinstance(leaf, Tensor):
        leaf = np.asarray(leaf)
    return leaf.reshape(-1).astype(dtype)


def _parts(vector: Any, pieces: Sequence[Piece], kept: Mapping[int, Any]) -> list[Any]:
    """The arrays that a vector holds, in their places among the leaves that are kept."""
    if not isinstance(vector, Tensor):
        vector = np.asarray(vector)
    length = pieces[-1].end if pieces else 0
    if vector.shape != (length,):
        message = f"The container holds {length} numbers; the array for it has the shape {vector.shape}."
        raise ArgumentError(message)
    following = iter(pieces)
    found: list[Any] = []
    for position in range(len(pieces) + len(kept)):
        if position in kept:
            found.append(kept[position])
            continue
        piece = next(following)
        part = vector[piece.start : piece.end].reshape(piece.shape) if piece.shape else vector[piece.start]
        if part.dtype.kind == "c" != piece.dtype.kind:
            part = part.real
        found.append(part if part.dtype == piece.dtype else part.astype(piece.dtype))
    return found
