"""NumPy's functions that read and write at positions: take, put, putmask, fill_diagonal and their relatives.

In: array-likes and positions. Out: Tensors; or nothing, after a Tensor or an ndarray was written to. Called by users.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, RangeError, ShapeError
from ...graph.builders import cast, iota, reshape
from ...graph.ir import BOOL, INT64, Node, constant, elementwise
from ...graph.shapes import Shape, contiguous_strides
from ...record.as_node import as_node
from ...record.axes_and_dtypes import axis_of, deliver, only, repeated, write
from ...record.index_keys import (
    Entry,
    checked_array,
    checked_node,
    mask_value,
)
from ...record.indexing import _pick, _write, fitted, flat_positions
from ...record.tensor import Tensor
from .shaping import common_shape


def _positions(indices: Any, extent: int, axis: int, mode: str) -> np.ndarray | Node:
    """The positions that a function was given, in range."""
    node = as_node(indices)
    if node.size == 0:
        return np.zeros(node.shape, np.int64)
    if node.dtype.kind not in "iub":
        message = f"Positions must be integers, not {node.dtype}."
        raise DtypeError(message)
    if extent == 0:
        message = f"Nothing can be taken from axis {axis}, which has size 0."
        raise RangeError(message)
    node = cast(node, INT64)
    if mode == "clip":
        node = elementwise("minimum", elementwise("maximum", node, 0), extent - 1)
    elif mode == "wrap":
        node = elementwise("remainder", node, extent)
    elif mode != "raise":
        message = f"mode must be 'raise', 'wrap' or 'clip', not {mode!r}."
        raise ArgumentError(message)
    if not node.traced and node.device is None:
        return checked_array(np.asarray(Tensor._of(node)), extent, axis)
    return checked_node(node, extent, axis) if mode == "raise" else node


def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Tensor:
    """Elements at positions along an axis.

    Parameters
    ----------
    a : array-like
    indices : array-like of int
        Positions, of any shape.
    axis : int, optional
        The axis to take along; of the flat array if None.
    out : Tensor or ndarray, optional
    mode : {"raise", "wrap", "clip"}
        The treatment of positions out of range.

    Returns
    -------
    Tensor
        Of shape `a.shape[:axis] + indices.shape + a.shape[axis + 1:]`.
    """
    node = as_node(a)
    if axis is None or (node.ndim == 0 and axis in (0, -1)):
        node, axis = reshape(node, (node.size,)), 0
    axis = axis_of(axis, node.ndim)
    positions = _positions(indices, node.shape[axis], axis, mode)
    entries: list[Entry] = [range(n) for n in node.shape]
    entries[axis] = positions
    flat, shape = flat_positions(node.shape, entries)
    return deliver(reshape(_pick(node, flat), shape), out)


def _along_axis(shape: Shape, indices: Any, axis: int) -> Node:
    """Flat positions for `take_along_axis`: positions on one axis, each of the others its own."""
    index = as_node(indices)
    if index.ndim != len(shape):
        message = f"The indices have {index.ndim} axes, but the array has {len(shape)}."
        raise ShapeError(message)
    if index.dtype.kind not in "iu":
        message = f"Arrays that are used as indices must hold integers, not {index.dtype}."
        raise IndexDtypeError(message)
    positions = _positions(Tensor._of(index), shape[axis], axis, "raise")
    entries: list[Entry] = []
    for other, extent in enumerate(shape):
        if other != axis and index.shape[other] != extent and 1 not in (index.shape[other], extent):
            message = (
                f"The indices of shape {index.shape} do not broadcast to the array of shape {shape} beside axis {axis}."
            )
            raise ShapeError(message)
        entries.append(reshape(iota(extent), (extent,) + (1,) * (len(shape) - other - 1)))
    entries[axis] = positions
    return flat_positions(shape, entries)[0]


class IndexDtypeError(DtypeError, IndexError):
    """Indices that are not integers: NumPy raises IndexError here."""


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Tensor:
    """Per row along an axis, the elements at `indices`, which has as many axes as `arr` (or is flat, for axis None).

    Beside the axis, the two broadcast.
    """
    node = as_node(arr)
    if axis is None:
        node, axis = reshape(node, (node.size,)), 0
    flat = _along_axis(node.shape, indices, axis_of(axis, node.ndim))
    return deliver(_pick(node, flat))


def store(target: Any, node: Node) -> None:
    """Write a result to a Tensor or ndarray that a function was told to change."""
    if isinstance(target, Tensor):
        target._replace(node)
    elif isinstance(target, np.ndarray):
        np.copyto(target, np.asarray(Tensor._of(node)))
    else:
        message = f"Expected a Tensor or an ndarray to write to, but got {type(target).__name__}."
        raise DtypeError(message)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write to the places that `take_along_axis` would read; a Tensor takes the values with their gradients."""
    node = as_node(arr)
    shape = node.shape if axis is not None else (node.size,)
    flat = _along_axis(shape, indices, 0 if axis is None else axis_of(axis, node.ndim))
    value = fitted(cast(as_node(values), node.dtype), flat.shape)
    store(arr, _write(node, flat, value))


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values to flat positions; values are repeated as needed."""
    node, value = as_node(a), as_node(v)
    positions = _positions(ind, node.size, 0, mode)
    flat = positions if isinstance(positions, Node) else constant(positions)
    if flat.size and value.size:
        flat = reshape(flat, (flat.size,))
        store(a, _write(node, flat, repeated(cast(value, node.dtype), flat.size)))


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write `values` where a mask is true; values of another size are repeated over the whole array."""
    node, value = as_node(a), as_node(values)
    condition = cast(as_node(mask), BOOL)
    if condition.size != node.size:
        message = f"The mask has shape {condition.shape}, but the array has shape {node.shape}."
        raise ShapeError(message)
    if value.size and node.size:
        spread = reshape(repeated(cast(value, node.dtype), node.size), node.shape)
        store(a, elementwise("select", reshape(condition, node.shape), spread, node))


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write the first values, in order, to the elements where a mask is true."""
    node = as_node(arr)
    condition = cast(as_node(mask), BOOL)
    if condition.size != node.size:
        message = f"place needs a mask of {node.size} elements, as many as the array has, but got {condition.size}."
        raise ShapeError(message)
    where = np.flatnonzero(mask_value(condition))
    if where.size:
        value = as_node(vals)
        if value.size == 0:
            message = "There must be at least one value to place."
            raise ArgumentError(message)
        store(arr, _write(node, constant(where), repeated(cast(value, node.dtype), where.size)))


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write to the main diagonal, in place."""
    node, value = as_node(a), as_node(val)
    if node.ndim < 2 or (node.ndim > 2 and len(set(node.shape)) > 1):
        message = f"fill_diagonal needs two axes, or more of equal extent, but the shape is {node.shape}."
        raise ShapeError(message)
    step = sum(contiguous_strides(node.shape))
    end = node.size if node.ndim > 2 or wrap else min(node.size, node.shape[1] ** 2)
    where = np.arange(0, end, step)
    if where.size and value.size:
        store(a, _write(node, constant(where), repeated(cast(value, node.dtype), where.size)))


def _fitting(node: Node, ndim: int) -> Node:
    """A node without axes of length one before the last `ndim`, which NumPy leaves out when it assigns."""
    extra = node.ndim - ndim
    return reshape(node, node.shape[extra:]) if extra > 0 and set(node.shape[:extra]) == {1} else node


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Write `src` to `dst`, where a mask is true."""
    result = _fitting(as_node(src), np.ndim(dst))
    if where is not True:
        target = as_node(dst)
        mask = cast(as_node(where), BOOL)
        only("casting", casting, "same_kind", "unsafe")
        common_shape([mask.shape, result.shape, target.shape])
        result = elementwise("select", mask, cast(result, target.dtype), target)
    if isinstance(dst, Tensor):
        write(dst, result, "copyto", casting)
    else:
        np.copyto(dst, np.asarray(Tensor._of(result)), casting=casting)
