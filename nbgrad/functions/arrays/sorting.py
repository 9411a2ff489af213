"""Sorting, searching and the positions of nonzero elements.

In: array-likes. Out: Tensors. Called by users and by Tensor's methods. Sorting is a gather by `argsort`, so it
differentiates: each sorted element passes its gradient to where it came from. Functions whose result's shape depends on
values (`nonzero`, `extract`, ...) compute those values at once; what they select still differentiates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...graph import builders
from ...graph.builders import beside, cast, concatenate, gather, reshape
from ...graph.ir import BOOL, INT64, Node, constant, elementwise, extent, zeros
from ...graph.trace import stands_for_many
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import (
    axis_of,
    cut,
    deliver,
    from_last,
    gather_axis,
    integers,
    nodes_of,
    only,
    take_last,
    to_last,
    truth,
)
from ...record.masked_elements import positions_of
from ...record.promotion import promote
from ...record.tensor import Tensor
from ...runtime.evaluate import concrete
from .result_order import in_c_order, like_argument

_KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")

# ----- On nodes -----


def _lined_up(node: Node, axis: Any) -> tuple[Node, int]:
    """The node with the axis to sort along at the end, and that axis; None sorts the flat array."""
    if axis is None:
        return reshape(node, (node.size,)), 0
    at = axis_of(axis, node.ndim)
    return to_last(node, at), at


def argsort_node(node: Node, axis: Any = -1) -> Node:
    """Positions that sort along an axis; stable, NaN last. A 0-d array counts as one element, as in NumPy."""
    if node.ndim == 0 and axis in (0, -1, None):
        node, axis = reshape(node, (1,)), 0
    rows, at = _lined_up(node, axis)
    return from_last(builders.argsort(rows), at)


def sort_node(node: Node, axis: Any = -1) -> Node:
    """Elements sorted along an axis; NaN last."""
    rows, at = _lined_up(node, axis)
    return from_last(take_last(rows, builders.argsort(rows)), at)


def searchsorted_node(sorted_values: Node, values: Node, side: str) -> Node:
    """The positions where values belong in a sorted 1-d array.

    A search that halves the array in equal steps for all values, without a branch: loops take it into their bodies and
    vectorise it. Complex numbers, which have no order of their own in loops, are ranked by sorting.
    """
    n = sorted_values.size
    on_device = sorted_values.device is not None or values.device is not None
    if not (sorted_values.traced or values.traced or on_device):
        found = np.searchsorted(concrete(sorted_values, "array"), concrete(values, "array"), side)  # pyright: ignore
        return constant(np.asarray(found, INT64))
    if sorted_values.dtype.kind == "c":
        return _ranked(sorted_values, values, side)

    if n == 0:
        return zeros(values.shape, INT64)
    if values.dtype == BOOL:
        sorted_values, values = cast(sorted_values, INT64), cast(values, INT64)
    unknown = elementwise("isnan", values) if values.dtype.kind == "f" else None

    def behind(position: Node) -> Node:
        """Whether a value belongs behind the element at a position; NaN is the last of all."""
        element = gather(sorted_values, position)
        if side == "right":
            found = elementwise("greater_equal", values, element)
            return found if unknown is None else elementwise("logical_or", found, unknown)
        if unknown is None:
            return elementwise("less", element, values)
        before = elementwise("logical_or", elementwise("greater_equal", element, values), elementwise("isnan", element))
        return elementwise("logical_not", before)

    at, left = zeros(values.shape, INT64), n
    while left > 1:
        step = extent(left // 2, INT64)
        further = at + step
        at = elementwise("select", behind(further - 1), further, at)
        left -= left // 2
    return at + cast(behind(at), INT64)


def _ranked(sorted_values: Node, values: Node, side: str) -> Node:
    """Positions in a sorted array by sorting: a value's rank among all minus its rank among the values."""
    n, count = sorted_values.size, values.size
    flat = reshape(values, (count,))
    parts, first = ([flat, sorted_values], 0) if side == "left" else ([sorted_values, flat], n)
    order = builders.argsort(concatenate(parts, 0))
    rank = cut(builders.argsort(order), 0, first, count)
    among = builders.argsort(builders.argsort(flat))
    return reshape(elementwise("subtract", rank, among), values.shape)


# ----- Sort -----


def _stable_only(kind: Any, order: Any, stable: Any) -> None:
    only("kind", kind, *_KINDS)
    only("order", order, None)
    only("stable", stable, None, True, False)


@like_argument()
def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False
) -> Tensor:
    """Elements sorted along an axis (of the flat array, if None). Always stable; differentiable.

    Parameters
    ----------
    a : array-like
    axis : int or None
    kind, stable
        Accepted as in NumPy; the result is the same.
    order : None
        Tensors have no fields to order by.
    descending : bool
        The largest first, and NaN before it: of the array API standard, which NumPy does not have.

    Returns
    -------
    Tensor
    """
    _stable_only(kind, order, stable)
    node = sort_node(as_node(a), axis)
    return wrap(_reversed(node, axis) if descending else node)


@in_c_order
def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False
) -> Tensor:
    """Positions that sort along an axis (of the flat array, if None); equal elements keep their order."""
    _stable_only(kind, order, stable)
    node = as_node(a)
    if not descending or node.ndim == 0:
        return wrap(argsort_node(node, axis))
    if axis is None:
        node, axis = reshape(node, (node.size,)), 0
    # Sorted from the end and read from the end, equal elements keep their order.
    backwards = _reversed(argsort_node(_reversed(node, axis), axis), axis)
    return wrap(elementwise("subtract", extent(node.shape[axis] - 1, INT64), backwards))


def _reversed(node: Node, axis: Any) -> Node:
    """The elements along an axis (the only one, for None) from the last to the first."""
    if node.ndim == 0:
        return node
    at = axis_of(-1 if axis is None else axis, node.ndim)
    return cut(node, at, max(node.shape[at] - 1, 0), node.shape[at], -1)


def _kth(kth: Any, node: Node, axis: Any) -> None:
    n = node.size if axis is None else node.shape[axis_of(axis, node.ndim)]
    if node.size == 0:
        return
    for k in integers(kth, "kth"):
        if not -n <= k < n:
            message = f"kth={k} is out of bounds for an axis of extent {n}."
            raise ShapeError(message)


@like_argument()
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Tensor:
    """Elements with the k-th smallest in its place, smaller ones before it; here they are sorted altogether."""
    only("kind", kind, "introselect")
    only("order", order, None)
    node = as_node(a)
    _kth(kth, node, axis)
    return wrap(sort_node(node, axis))


@in_c_order
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Tensor:
    """Positions that partition along an axis; here they sort it."""
    only("kind", kind, "introselect")
    only("order", order, None)
    node = as_node(a)
    _kth(kth, node, axis)
    return wrap(argsort_node(node, axis))


@like_argument()
def sort_complex(a: Any) -> Tensor:
    """Elements sorted along the last axis by their real parts, then by their imaginary parts; complex numbers."""
    node = as_node(a)
    if node.dtype.kind != "c":
        # NumPy makes complex64 of integers of one or two bytes only.
        small = node.dtype.kind in "iu" and node.dtype.itemsize <= 2
        return wrap(cast(sort_node(node), np.dtype(np.complex64 if small else np.complex128)))
    return wrap(sort_node(node))


def lexsort(keys: Any, axis: Any = -1) -> Tensor:
    """Positions that sort by several keys, the last key first."""
    nodes = nodes_of(keys)
    if not nodes or any(node.shape != nodes[0].shape for node in nodes):
        message = "lexsort needs at least one key, and all keys of one shape."
        raise ShapeError(message)
    if nodes[0].ndim == 0:
        return wrap(constant(np.zeros((), INT64)))
    at = axis_of(axis, nodes[0].ndim)
    rows = [to_last(node, at) for node in nodes]
    order = builders.argsort(rows[0])
    for row in rows[1:]:
        order = take_last(order, builders.argsort(take_last(row, order)))
    return wrap(from_last(order, at))


# ----- Search -----


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Positions in the sorted 1-d array `a` before (side "left") or after (side "right") elements equal to `v`."""
    only("side", side, "left", "right")
    where, values = promote([as_node(a), as_node(v)])
    if where.ndim != 1:
        message = f"searchsorted needs a sorted 1-d array, but its shape is {where.shape}."
        raise ShapeError(message)
    if sorter is not None:
        where = gather(where, cast(as_node(sorter), INT64))
    return wrap(searchsorted_node(where, values, side))


# ----- Positions of nonzero elements: the shape depends on values -----


def nonzero_nodes(node: Node) -> tuple[Node, ...]:
    """Positions of the nonzero elements, one node per axis."""
    if node.ndim == 0:
        message = "nonzero needs at least one axis; use atleast_1d."
        raise ShapeError(message)
    return tuple([_found(p, node) for p in np.nonzero(concrete(truth(node), "array"))])


def _found(positions: np.ndarray, node: Node) -> Node:
    """Positions that the CPU has found, on the device that the array is on."""
    return beside(constant(np.asarray(positions, INT64)), node)


def nonzero(a: Any) -> tuple[Tensor, ...]:
    """Positions of the nonzero elements, one Tensor per axis."""
    mask = truth(as_node(a))
    if mask.ndim and stands_for_many(mask):
        return positions_of(Tensor._of(mask))  # type: ignore[return-value]
    return tuple([wrap(node) for node in nonzero_nodes(as_node(a))])


def flatnonzero(a: Any) -> Tensor:
    """Positions of the nonzero elements in the flat array."""
    node = as_node(a)
    return nonzero(wrap(reshape(node, (node.size,))))[0]


def argwhere(a: Any) -> Tensor:
    """Positions of the nonzero elements, one row each."""
    node = as_node(a)
    return wrap(_found(np.argwhere(concrete(truth(node), "array")), node))


def _selected(node: Node) -> np.ndarray:
    return np.flatnonzero(concrete(truth(reshape(node, (node.size,))), "array"))


def extract(condition: Any, arr: Any) -> Tensor:
    """The elements of the flat array where a condition holds."""
    node = as_node(arr)
    where = _selected(as_node(condition))
    if where.size and where[-1] >= node.size:
        message = f"The condition holds beyond the {node.size} elements of the array."
        raise ShapeError(message)
    return wrap(gather(reshape(node, (node.size,)), constant(where.astype(INT64))))


def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Tensor:
    """The positions of an axis (of the flat array, if None) where a 1-d condition holds."""
    node, mask = as_node(a), as_node(condition)
    if mask.ndim != 1:
        message = f"compress needs a 1-d condition, but its shape is {mask.shape}."
        raise ShapeError(message)
    if axis is None:
        node, axis = reshape(node, (node.size,)), 0
    at = axis_of(axis, node.ndim)
    where = _selected(mask)
    if where.size and where[-1] >= node.shape[at]:
        message = f"The condition holds beyond the extent {node.shape[at]} of the axis."
        raise ShapeError(message)
    return deliver(gather_axis(node, at, constant(where.astype(INT64))), out)
