"""Positions: indices of diagonals and triangles, of grids, of flat arrays; and iteration over positions.

In: shapes, and array-likes of integers. Out: Tensors of integers; where the result follows from shapes alone, NumPy's
own arrays. Called by users and through table.py. Positions are integers: they have no derivative.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError
from ...graph.builders import cast, reshape
from ...graph.ir import BOOL, INT64, Node, elementwise, extent
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import demand, only, shape_of
from ...record.tensor import Tensor
from .shaping import common_shape
from .sorting import nonzero_nodes

# ----- Of shapes -----


def diag_indices_from(arr: Any) -> tuple[np.ndarray, ...]:
    """Positions of the main diagonal of an array whose axes have one extent."""
    shape = as_node(arr).shape
    if len(shape) < 2 or len(set(shape)) > 1:
        message = f"diag_indices_from needs two or more axes of one extent, but the shape is {shape}."
        raise ShapeError(message)
    return np.diag_indices(shape[0], len(shape))


def _matrix_shape(arr: Any, name: str) -> tuple[int, int]:
    shape = as_node(arr).shape
    if len(shape) != 2:
        message = f"{name} needs a matrix, but the shape is {shape}."
        raise ShapeError(message)
    return shape[0], shape[1]


def tril_indices_from(arr: Any, k: int = 0) -> tuple[np.ndarray, ...]:
    """Positions of the elements of a matrix that are on or below the k-th diagonal."""
    rows, columns = _matrix_shape(arr, "tril_indices_from")
    return np.tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[np.ndarray, ...]:
    """Positions of the elements of a matrix that are on or above the k-th diagonal."""
    rows, columns = _matrix_shape(arr, "triu_indices_from")
    return np.triu_indices(rows, k, columns)


# ----- Grids -----


def ix_(*args: Any) -> tuple[Tensor, ...]:
    """Index arrays that together name the grid of all combinations of their elements; booleans become positions.

    Examples
    --------
    >>> [part.shape for part in ix_([0, 1], [2, 4, 5])]
    [(2, 1), (1, 3)]
    """
    parts = []
    for k, given in enumerate(args):
        node = as_node(given)
        if node.ndim != 1:
            message = f"ix_ needs 1-d index arrays, but one has shape {node.shape}."
            raise ShapeError(message)
        if node.dtype == BOOL:
            node = nonzero_nodes(node)[0]
        elif not node.size:
            node = cast(node, INT64)
        parts.append(wrap(reshape(node, tuple([node.size if axis == k else 1 for axis in range(len(args))]))))
    return tuple(parts)


# ----- Flat positions -----


def _integers(value: Any, name: str) -> Node:
    node = as_node(value)
    if node.dtype.kind not in "iu":
        message = f"{name} needs integers, but got {node.dtype}."
        raise DtypeError(message)
    return cast(node, INT64)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """The position along each axis of elements that are given by their flat positions.

    Parameters
    ----------
    indices : array-like of int
    shape : tuple of int
    order : {"C", "F"}
        Which index changes fastest: the last or the first.

    Examples
    --------
    >>> [part.tolist() for part in unravel_index([22, 6], (7, 6))]
    [[3, 1], [4, 0]]
    """
    only("order", order, "C", "F")
    rest, extents = _integers(indices, "unravel_index"), shape_of(shape)
    size = math.prod(extents)
    inside = elementwise("logical_and", elementwise("greater_equal", rest, 0), elementwise("less", rest, size))
    demand(inside, f"A flat position is out of range for an array of shape {extents}.")
    found: list[Tensor] = []
    ordered = extents[::-1] if order == "C" else extents
    for n in ordered[:-1]:
        # A division takes longer than all else; of the last axis, what is left is the position.
        above = elementwise("floor_divide", rest, n)
        found.append(wrap(rest - above * extent(n, rest.dtype)))
        rest = above
    if ordered:
        found.append(wrap(rest))
    return tuple(reversed(found)) if order == "C" else tuple(found)


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Tensor:
    """The flat positions of elements that are given by their position along each axis.

    Parameters
    ----------
    multi_index : sequence of array-like of int
    dims : tuple of int
    mode : {"raise", "wrap", "clip"}, or one for each axis
        The treatment of positions out of range.
    order : {"C", "F"}

    Examples
    --------
    >>> ravel_multi_index(([3, 6], [4, 5]), (7, 6)).tolist()
    [22, 41]
    """
    only("order", order, "C", "F")
    parts, extents = [_integers(part, "ravel_multi_index") for part in multi_index], shape_of(dims)
    modes = [mode] * len(extents) if isinstance(mode, str) else list(mode)
    if len(parts) != len(extents) or len(modes) != len(extents):
        message = f"ravel_multi_index needs a position for each of {len(extents)} axes, but got {len(parts)}."
        raise ShapeError(message)
    common_shape([part.shape for part in parts])
    flat: Node | None = None
    axes = list(zip(parts, extents, modes, strict=True))
    for part, n, how in axes if order == "C" else reversed(axes):
        if how == "raise":
            inside = elementwise("logical_and", elementwise("greater_equal", part, 0), elementwise("less", part, n))
            demand(inside, f"A position is out of range for an array of shape {extents}.")
        elif how == "wrap":
            part = elementwise("remainder", part, n)
        elif how == "clip":
            part = elementwise("minimum", elementwise("maximum", part, 0), n - 1)
        else:
            message = f"mode must be 'raise', 'wrap' or 'clip', but is {how!r}."
            raise ArgumentError(message)
        flat = part if flat is None else elementwise("add", elementwise("multiply", flat, n), part)
    assert flat is not None
    return wrap(flat)


# ----- Iteration -----


class ndenumerate:  # noqa: N801 - NumPy's name
    """Pairs of a position and the element there, as a 0-d Tensor that keeps its gradient.

    Parameters
    ----------
    arr : array-like

    Examples
    --------
    >>> [(index, float(value)) for index, value in ndenumerate(Tensor([[1.0, 2.0]]))]
    [((0, 0), 1.0), ((0, 1), 2.0)]
    """

    def __init__(self, arr: Any) -> None:
        self._array = wrap(as_node(arr))
        self._positions = np.ndindex(*self._array.shape)

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], Tensor]]:
        return self

    def __next__(self) -> tuple[tuple[int, ...], Tensor]:
        position = next(self._positions)
        return position, self._array[position]
