"""Reading and writing at positions under MindSpore's names: gather, scatter, one_hot, slices, searches.

In: Tensors, and positions as integer Tensors or ndarrays. Out: Tensors. Called by users. Positions
out of range are errors; negative ones count from the end. Nothing is written in place: the scatter functions give new
Tensors, differentiable in the array and in the updates.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..functions.analysis import statistics
from ..functions.arrays import sorting, taking
from ..functions.arrays.shaping import broadcast_node, common_shape
from ..graph.builders import cast, iota, reduce, reshape, slice_axes, transpose
from ..graph.ir import BOOL, INT64, Node, broadcast, elementwise
from ..record import indexing
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import axis_of, integer, integers, only, shape_of
from ..record.promotion import convert, promote
from ..record.tensor import Tensor
from .declarations import as_numpy, spelled
from .docstrings import documented
from .filled_arrays import zeros

# ----- Along an axis -----


def _index_node(function: str, indices: Any) -> Node:
    node = as_node(indices)
    if node.dtype.kind not in "iu":
        message = f"{function} needs integers as positions, but their dtype is {node.dtype}."
        raise DtypeError(message)
    return node


@documented
def gather(input_params: Any, input_indices: Any, axis: Any, batch_dims: int = 0) -> Tensor:
    """Slices at positions along an axis.

    input_params : Tensor or ndarray
    input_indices : Tensor or ndarray of int
        Positions, of any shape. An axis here, and positions as `axis`, are `gather_elements`.
    batch_dims : int
        The number of leading axes that both arrays share: each of their positions has its own indices.
    -> Tensor
        Of shape `params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]`.
    RangeError : If a position is out of range.
    DtypeError : If positions are no integers.
    ShapeError : If the axis does not exist, or the shared axes differ.

    >>> nb.ops.gather(nb.Tensor([[1.0, 2.0], [3.0, 4.0]]), nb.Tensor([1, 1, 0]), 0).tolist()
    [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]
    """
    if isinstance(input_indices, int) and isinstance(axis, Tensor | np.ndarray):
        return gather_elements(input_params, input_indices, axis)
    node, index = as_node(input_params), _index_node("gather", input_indices)
    at, shared = axis_of(axis, node.ndim), integer(batch_dims, "batch_dims")
    shared += index.ndim if shared < 0 else 0
    if shared == 0:
        return taking.take(Tensor._of(node), Tensor._of(index), at)
    lead = index.shape[:shared]
    if not 0 < shared <= builtins.min(at, index.ndim) or node.shape[:shared] != lead:
        message = (
            f"gather with batch_dims={batch_dims} needs that many leading axes before axis {at}, equal in both arrays, "
            f"but the shapes are {node.shape} and {index.shape}."
        )
        raise ShapeError(message)
    own = tuple([iota(n) for n in lead])
    key: list[Any] = [
        Tensor._of(reshape(place, (n,) + (1,) * (index.ndim - k - 1)))
        for k, (place, n) in enumerate(zip(own, lead, strict=True))
    ]
    between = at - shared
    key += [builtins.slice(None)] * between
    found = indexing.getitem(node, (*key, Tensor._of(index)))
    # Arrays in a key put their axes in front of the sliced ones; those before `axis` belong before the positions.
    count = index.ndim - shared
    places = builtins.range(shared + count, shared + count + between)
    order = (*builtins.range(shared), *places, *builtins.range(shared, shared + count))
    return wrap(transpose(found, (*order, *builtins.range(len(order), found.ndim))))


def _matching_part(function: str, node: Node, index: Node, axis: int) -> Node:
    """The part of an array that positions of a smaller shape speak of: equal extents beside the axis."""
    fits = node.ndim == index.ndim and builtins.all(
        k == axis or m <= n for k, (n, m) in enumerate(zip(node.shape, index.shape, strict=True))
    )
    if not fits:
        message = (
            f"{function} needs positions with as many axes as the array, none larger beside axis {axis}, but the "
            f"shapes are {index.shape} and {node.shape}."
        )
        raise ShapeError(message)
    extents = [n if k == axis else m for k, (n, m) in enumerate(zip(node.shape, index.shape, strict=True))]
    return slice_axes(node, [(0, n, 1) for n in extents])


@spelled
def gather_elements(input: Any, dim: int, index: Any) -> Tensor:
    """Per row along an axis, the elements at positions.

    index : Tensor or ndarray of int
        With as many axes as the input, none larger beside `dim`.
    -> Tensor
        In the shape of `index`: for axis 0 of two, `result[i, j] = input[index[i, j], j]`.
    RangeError : If a position is out of range.
    DtypeError, ShapeError : If the positions are no integers, or do not fit the input.

    >>> nb.ops.gather_elements(nb.Tensor([[1.0, 2.0], [3.0, 4.0]]), 1, nb.Tensor([[0, 0], [1, 0]])).tolist()
    [[1.0, 1.0], [4.0, 3.0]]
    """
    node, places = as_node(input), _index_node("gather_elements", index)
    at = axis_of(dim, node.ndim)
    part = _matching_part("gather_elements", node, places, at)
    return taking.take_along_axis(Tensor._of(part), Tensor._of(places), at)


gather_d = gather_elements


@spelled
def index_select(input: Any, axis: int, index: Any) -> Tensor:
    """Slices at the positions of a 1-d array along an axis."""
    return gather(input, _vector("index_select", index), axis)


def _vector(function: str, index: Any) -> Tensor:
    node = _index_node(function, index)
    if node.ndim > 1:
        message = f"{function} needs positions in one axis, but their shape is {node.shape}."
        raise ShapeError(message)
    return Tensor._of(reshape(node, (node.size,)))


def _axis_key(axis: int, index: Any) -> tuple[Any, ...]:
    return (*[builtins.slice(None)] * axis, index)


@spelled
def index_add(x: Any, indices: Any, y: Any, axis: int, use_lock: bool = True, check_index_bound: bool = True) -> Tensor:
    """The array with slices added at the positions of a 1-d array along an axis; repeated positions add up.

    `use_lock` and `check_index_bound` are MindSpore's and have no effect: positions are always checked.
    """
    del use_lock, check_index_bound
    node, index = as_node(x), _vector("index_add", indices)
    at = axis_of(axis, node.ndim)
    update = convert(as_node(y), node.dtype)
    wanted = (*node.shape[:at], index.size, *node.shape[at + 1 :])
    if update.shape != wanted:
        message = f"index_add needs slices of shape {wanted} together, but the shape of y is {update.shape}."
        raise ShapeError(message)
    return wrap(indexing.add_at(node, _axis_key(at, index), update))


@spelled
def index_fill(x: Any, axis: int, index: Any, value: Any) -> Tensor:
    """The array with one number at the positions of a 1-d array along an axis."""
    node = as_node(x)
    filling = as_node(value)
    if filling.ndim:
        message = f"index_fill needs one number as value, but its shape is {filling.shape}."
        raise ShapeError(message)
    key = _axis_key(axis_of(axis, node.ndim), _vector("index_fill", index))
    return wrap(indexing.setitem(node, key, convert(filling, node.dtype)))


@spelled
def tensor_scatter_elements(input_x: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "none") -> Tensor:
    """The array with elements written, or added, at positions along an axis: the inverse of `gather_elements`.

    indices : Tensor or ndarray of int
        With as many axes as the array, none larger beside `axis`.
    updates : Tensor, ndarray or number
        In the shape of `indices`; a number for all.
    reduction : {"none", "add"}
        "none" writes, where the last of several updates of one element wins; "add" adds all of them.
    RangeError : If a position is out of range.
    ArgumentError, DtypeError, ShapeError : If `reduction` does not exist, or the positions or updates do not fit.

    >>> x, where = nb.ops.zeros((2, 2)), nb.Tensor([[1, 1]])
    >>> nb.ops.tensor_scatter_elements(x, where, nb.Tensor([[5.0, 6.0]])).tolist()
    [[0.0, 0.0], [5.0, 6.0]]
    """
    only("reduction", reduction, "none", "add")
    node, index = as_node(input_x), _index_node("tensor_scatter_elements", indices)
    at = axis_of(axis, node.ndim)
    _matching_part("tensor_scatter_elements", node, index, at)
    key = [
        Tensor._of(index if k == at else reshape(iota(m), (m,) + (1,) * (index.ndim - k - 1)))
        for k, m in enumerate(index.shape)
    ]
    update = convert(as_node(updates), node.dtype)
    if update.ndim and update.shape != index.shape:
        message = f"The updates have shape {update.shape}, but the positions have shape {index.shape}."
        raise ShapeError(message)
    write = indexing.add_at if reduction == "add" else indexing.setitem
    return wrap(write(node, tuple(key), broadcast_node(update, index.shape)))


@spelled
def scatter(input: Any, axis: int, index: Any, src: Any) -> Tensor:
    """The array with elements of `src` written at positions along an axis, as `tensor_scatter_elements`."""
    return tensor_scatter_elements(input, index, src, axis)


# ----- At positions with several coordinates -----


def _nd_key(function: str, indices: Any, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """The key for positions whose coordinates are along the last axis."""
    node = _index_node(function, indices)
    if node.ndim == 0 or not 0 < node.shape[-1] <= len(shape):
        message = (
            f"{function} needs indices whose last axis holds 1 to {len(shape)} coordinates for an array of shape "
            f"{tuple(shape)}, but their shape is {node.shape}."
        )
        raise ShapeError(message)
    x = Tensor._of(node)
    return tuple([x[..., k] for k in builtins.range(node.shape[-1])])


@spelled
def gather_nd(input_x: Any, indices: Any) -> Tensor:
    """Elements or slices at positions, whose coordinates are along the last axis of `indices`."""
    node = as_node(input_x)
    return wrap(indexing.getitem(node, _nd_key("gather_nd", indices, node.shape)))


@spelled
def scatter_nd(indices: Any, updates: Any, shape: Any) -> Tensor:
    """Zeros with updates added at positions; repeated positions add up.

    indices : Tensor or ndarray of int
        Coordinates along the last axis.
    updates : Tensor or ndarray
        Of shape `indices.shape[:-1] + shape[indices.shape[-1]:]`.
    shape : tuple of int
        Of the result, which has the dtype of the updates.

    >>> nb.ops.scatter_nd(nb.Tensor([[1], [1], [3]]), nb.Tensor([1.0, 2.0, 3.0]), (4,)).tolist()
    [0.0, 3.0, 0.0, 3.0]
    """
    value = as_node(updates)
    return tensor_scatter_add(zeros(shape_of(shape), value.dtype), indices, Tensor._of(value))


def _scatter(function: str, write: Any, input_x: Any, indices: Any, updates: Any) -> Tensor:
    node = as_node(input_x)
    key = _nd_key(function, indices, node.shape)
    update = convert(as_node(updates), node.dtype)
    wanted = (*key[0].shape, *node.shape[len(key) :])
    if update.shape != wanted:
        message = f"{function} needs updates of shape {wanted} for these indices, but their shape is {update.shape}."
        raise ShapeError(message)
    return wrap(write(node, key, update))


@spelled
def tensor_scatter_update(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """The array with updates written at positions, whose coordinates are along the last axis; the last one wins."""
    return _scatter("tensor_scatter_update", indexing.setitem, input_x, indices, updates)


@spelled
def tensor_scatter_add(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """The array with updates added at positions, whose coordinates are along the last axis; repeated ones add up."""
    return _scatter("tensor_scatter_add", indexing.add_at, input_x, indices, updates)


@spelled
def tensor_scatter_sub(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """The array with updates subtracted at positions, whose coordinates are along the last axis."""
    return _scatter("tensor_scatter_sub", indexing.add_at, input_x, indices, -Tensor._of(as_node(updates)))


# ----- Slices -----


@spelled
def slice(input_x: Any, begin: Any, size: Any) -> Tensor:
    """`size[k]` positions of each axis k from `begin[k]` on; a size of -1 takes all that are left.

    ShapeError : If there are not as many numbers as axes, or an axis is too short.
    """
    node = as_node(input_x)
    starts, lengths = integers(begin, "begin"), integers(size, "size")
    if len(starts) != node.ndim or len(lengths) != node.ndim:
        message = f"slice needs one begin and one size per axis of shape {node.shape}, but got {starts} and {lengths}."
        raise ShapeError(message)
    ranges = []
    for axis, (n, start, length) in enumerate(zip(node.shape, starts, lengths, strict=True)):
        count = n - start if length == -1 else length
        if start < 0 or count < 0 or start + count > n:
            message = f"Axis {axis} of shape {node.shape} has no {length} positions from {start} on."
            raise ShapeError(message)
        ranges.append((start, count, 1))
    return wrap(slice_axes(node, ranges))


@spelled
def strided_slice(
    input_x: Any,
    begin: Any,
    end: Any,
    strides: Any,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    """`input_x[begin:end:strides]`, one slice per axis from the first on.

    begin, end, strides : tuple of int
        As many of each.
    begin_mask, end_mask : int
        Bit k set: slice k goes from the first, or to the last position.
    ellipsis_mask, new_axis_mask, shrink_axis_mask : int
        Bit k set: instead of slice k stands `...`, a new axis, or the one position `begin[k]`.

    >>> nb.ops.strided_slice(nb.ops.arange(6).reshape(2, 3), (0, 0), (2, 3), (1, 2)).tolist()
    [[0, 2], [3, 5]]
    """
    starts, stops, steps = integers(begin, "begin"), integers(end, "end"), integers(strides, "strides")
    if not len(starts) == len(stops) == len(steps) or 0 in steps:
        message = f"begin, end and strides must have one length, strides without 0, but got {begin}, {end}, {strides}."
        raise ArgumentError(message)
    key: list[Any] = []
    for k, (start, stop, step) in enumerate(zip(starts, stops, steps, strict=True)):
        bit = 1 << k
        if ellipsis_mask & bit:
            key.append(...)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(start)
        else:
            key.append(builtins.slice(None if begin_mask & bit else start, None if end_mask & bit else stop, step))
    return wrap(indexing.getitem(as_node(input_x), tuple(key)))


# ----- By values -----


def masked_select(input: Any, mask: Any) -> Tensor:
    """The elements where a mask is true, in one axis; array and mask broadcast. The mask's values must be known."""
    node, chosen = as_node(input), as_node(mask)
    if chosen.dtype != BOOL:
        message = f"masked_select needs a boolean mask, but its dtype is {chosen.dtype}. Use mask != 0."
        raise DtypeError(message)
    shape = common_shape([node.shape, chosen.shape])
    return wrap(indexing.getitem(broadcast(node, shape), Tensor._of(broadcast(chosen, shape))))


@documented
def one_hot(indices: Any, depth: Any, on_value: Any = 1, off_value: Any = 0, axis: int = -1) -> Tensor:
    """Rows that hold one value at a position, another everywhere else.

    indices : Tensor or ndarray of int
        Positions; for those out of range there is no `on_value`.
    depth : int
        The extent of the new axis.
    on_value, off_value : number or 0-d Tensor
        They give the dtype: int64 for Python ints, float32 for Python floats.
    axis : int
        The position of the new axis in the result.
    ArgumentError : If the depth is negative.

    >>> nb.ops.one_hot(nb.Tensor([0, 2]), 3, 1.0, 0.0).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    node, count = _index_node("one_hot", indices), integer(depth, "depth")
    if count < 0:
        message = f"The depth of one_hot must not be negative, but got {count}."
        raise ArgumentError(message)
    at = axis_of(axis, node.ndim + 1)
    column = reshape(cast(node, INT64), (*node.shape[:at], 1, *node.shape[at:]))
    place = reshape(iota(count), (count,) + (1,) * (node.ndim - at))
    on, off = promote([Tensor(on_value)._node, Tensor(off_value)._node])
    return wrap(elementwise("select", elementwise("equal", column, place), on, off))


def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """Positions of the elements that are not 0, one row each; or one Tensor per axis. Their values must be known."""
    return tuple([Tensor(place) for place in sorting.nonzero(input)]) if as_tuple else argwhere(input)


@as_numpy(
    sorting.argwhere,
    "Positions of the elements that are not 0, one row each. Their values must be known.",
    result=Tensor,
)
def argwhere(input: Any) -> Tensor: ...
@as_numpy(
    statistics.bincount,
    "How often each number from 0 on appears in a 1-d array of integers, or the sum of its weights.",
)
def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Tensor: ...


@documented
def searchsorted(
    sorted_sequence: Any,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Tensor:
    """The positions at which values belong in sorted rows.

    sorted_sequence : Tensor or ndarray
        1-d, or one sorted row for each row of `values`: their shapes differ in the last axis only.
    values : Tensor or ndarray
    out_int32 : bool
        Whether the result is int32 instead of int64.
    right : bool
        Whether equal elements come before the position instead of after it.
    side : {None, "left", "right"}
        The same in words.
    sorter : Tensor or ndarray of int, optional
        Positions that sort the rows, if they are not sorted.
    -> Tensor
        Positions, in the shape of `values`.
    ArgumentError : If `side` is something else, or contradicts `right`.
    ShapeError : If the rows do not belong to each other.

    >>> nb.ops.searchsorted(nb.Tensor([1, 3, 5]), nb.Tensor([3, 6]), right=True).tolist()
    [2, 3]
    """
    only("side", side, None, "left", "right")
    if right and side == "left":
        message = "right=True contradicts side='left'. Give only one of them."
        raise ArgumentError(message)
    rows = Tensor._of(as_node(sorted_sequence))
    if sorter is not None:
        rows = gather_elements(rows, -1, sorter)
    dtype = np.dtype(np.int32) if out_int32 else INT64
    after = "right" if right or side == "right" else "left"
    if rows.ndim == 1:
        return Tensor(sorting.searchsorted(rows, values, after), dtype)
    return Tensor(wrap(_search_rows(rows._node, as_node(values), after)), dtype)


def _search_rows(rows: Node, values: Node, side: str) -> Node:
    """Positions in rows of their own: the number of elements before each value. NaN comes after all numbers."""
    if rows.ndim != values.ndim or rows.ndim == 0 or rows.shape[:-1] != values.shape[:-1]:
        message = (
            f"searchsorted needs one sorted row, or one for each row of values, but the shapes are {rows.shape} and "
            f"{values.shape}."
        )
        raise ShapeError(message)
    rows, values = promote([rows, values])
    shape = (*values.shape, rows.shape[-1])
    row = broadcast(reshape(rows, (*rows.shape[:-1], 1, rows.shape[-1])), shape)
    value = broadcast(reshape(values, (*values.shape, 1)), shape)
    before = elementwise("less" if side == "left" else "less_equal", row, value)
    if row.dtype.kind == "f":
        beyond = elementwise("isnan", value)
        if side == "left":
            beyond = elementwise("logical_and", beyond, elementwise("logical_not", elementwise("isnan", row)))
        before = elementwise("logical_or", before, beyond)
    return reduce("sum", cast(before, INT64), (len(shape) - 1,))
