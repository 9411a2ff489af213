"""Sorting under MindSpore's names: functions that give the values and where they were.

In: Tensors or ndarrays. Out: Tensors, or pairs of values and int32 positions. Called by users.
Sorting is stable in both directions; NaN counts as the greatest number. Values pass their derivative to where they
were.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..functions.arrays import sets, sorting
from ..graph.builders import argsort as argsort_rows
from ..graph.builders import cast
from ..graph.ir import INT64, Node, elementwise, extent
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import axis_of, cut, from_last, integer, take_last, to_last
from ..record.pairs import ValuesAndIndices
from ..record.tensor import Tensor
from .declarations import spelled

INT32 = np.dtype(np.int32)


def _order(rows: Node, descending: bool) -> Node:
    """Positions that sort the last axis, stable."""
    if not descending or not rows.size:
        return argsort_rows(rows)
    n, last = rows.shape[-1], rows.ndim - 1
    # Sorted backwards and read backwards, so that equal elements keep their order.
    order = cut(argsort_rows(cut(rows, last, n - 1, n, -1)), last, n - 1, n, -1)
    return elementwise("subtract", extent(n - 1, INT64), order)


def _sorted(input: Any, axis: Any, descending: bool, count: int | None = None) -> tuple[Tensor, Tensor]:
    node = as_node(input)
    if node.ndim == 0:
        axis_of(axis, 1)
        return ValuesAndIndices(wrap(node), Tensor(0, INT32))
    at = axis_of(axis, node.ndim)
    rows = to_last(node, at)
    order = _order(rows, descending)
    if count is not None:
        order = cut(order, order.ndim - 1, 0, count)
    values = wrap(from_last(take_last(rows, order), at))
    return ValuesAndIndices(values, wrap(cast(from_last(order, at), INT32)))


@spelled
def sort(input_x: Any, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Elements sorted along an axis, and their positions.

    descending : bool
        Whether the greatest comes first.
    -> values : Tensor
        Differentiable.
    -> positions : Tensor
        int32; equal elements keep their order.
    ShapeError : If the axis does not exist.

    >>> values, positions = nb.ops.sort(nb.Tensor([3.0, 1.0, 2.0]))
    >>> values.tolist(), positions.tolist()
    ([1.0, 2.0, 3.0], [1, 2, 0])
    """
    return _sorted(input_x, axis, descending)


@spelled
def argsort(input: Any, axis: int = -1, descending: bool = False) -> Tensor:
    """Positions that sort along an axis, as int32; equal elements keep their order."""
    return _sorted(input, axis, descending)[1]


@spelled
def topk(
    input: Any, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """The k greatest (or least) elements along an axis, and their positions.

    k : int
        At least 0, at most the extent of the axis.
    dim : int, optional
        The axis; the last by default.
    largest : bool
        False for the least elements.
    sorted : bool
        Has no effect: the result is always sorted.
    -> values : Tensor
        The best first; differentiable.
    -> positions : Tensor
        int32.
    ArgumentError : If the axis has less than k elements.

    >>> values, positions = nb.ops.topk(nb.Tensor([1.0, 5.0, 3.0]), 2)
    >>> values.tolist(), positions.tolist()
    ([5.0, 3.0], [1, 2])
    """
    node, count = as_node(input), integer(k, "k")
    at = -1 if dim is None else dim
    n = node.shape[axis_of(at, node.ndim)] if node.ndim else 1
    if not 0 <= count <= n or (not node.ndim and count != 1):
        message = f"topk needs k between 0 and the {n} elements of the axis, but got {count}."
        raise ArgumentError(message)
    return _sorted(Tensor._of(node), at, largest, count)


@spelled
def top_k(input_x: Any, k: int, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The k greatest elements along the last axis, and their positions, as `topk`.

    k : int
    sorted : bool
        Has no effect: the result is always sorted.
    """
    return topk(input_x, k, sorted=sorted)


@spelled
def unique(input: Any) -> tuple[Tensor, Tensor]:
    """The different elements in the order in which they first occur, and for each element of the input the position of
    its value among them.

    -> values : Tensor
        1-d. Each passes its derivative to the first element that has its value.
    -> positions : Tensor
        int32, in the shape of the input.

    >>> values, positions = nb.ops.unique(nb.Tensor([1, 2, 5, 2]))
    >>> values.tolist(), positions.tolist()
    ([1, 2, 5], [0, 1, 2, 1])
    """
    node = as_node(input)
    values, first, positions = sets.unique(Tensor._of(node), return_index=True, return_inverse=True)
    order = sorting.argsort(first)
    rank = sorting.argsort(order)
    return values[order], Tensor(rank[positions.reshape(node.shape)], INT32)
