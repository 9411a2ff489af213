"""Movements, which only say where elements are read; reading and writing at computed positions; sorting.

In: nothing. Out: tables of rows. Called by primitives.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .builders import gather, offsets, reshape, scatter_add, scatter_last, slice_axes, spread, spread_all, transpose
from .formulas import part_at, unbroadcast, unslice, write_at
from .ir import INT64, Node, Params, broadcast, elementwise, make, zeros
from .rows import INTEGER, Linear, ShapeAndDtype, Transpose, light, named, row
from .shapes import Shape

Array = np.ndarray
SMALL = 1000
"""Arrays of at most this many elements are repeated by copies."""

# ----- Shapes -----


def _reshape(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    assert math.prod(params[0]) == inputs[0].size, (inputs[0], params)
    return params[0], inputs[0].dtype


def _transpose(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    shape = inputs[0].shape
    return tuple([shape[axis] for axis in params[0]]), inputs[0].dtype


def _broadcast(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    return params[0], inputs[0].dtype


def _slice(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    return tuple([length for _, length, _ in params[0]]), inputs[0].dtype


def _pad(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    return tuple([lo + n + hi for n, (lo, hi) in zip(inputs[0].shape, params[0], strict=True)]), inputs[0].dtype


def _concatenate(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    axis = params[0]
    shape = list(inputs[0].shape)
    shape[axis] = sum(node.shape[axis] for node in inputs)
    return tuple(shape), inputs[0].dtype


def _gather(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    source, index = inputs
    assert source.ndim == 1 and index.dtype == INT64, inputs
    return index.shape, source.dtype


# ----- Meanings -----


def slices_of(ranges: Sequence[tuple[int, int, int]]) -> tuple[slice, ...]:
    """The slices that a `slice` node takes."""
    found: list[slice] = []
    for start, length, step in ranges:
        stop = start + length * step
        found.append(slice(start, None if stop < 0 else stop, step) if length else slice(0, 0))
    return tuple(found)


def _repeated(params: tuple[Any, ...], x: Array) -> Array:
    shape: Shape = params[0]
    if math.prod(shape) > SMALL:
        return np.broadcast_to(x, shape)
    # A copy of few elements is made in a tenth of the time of a view.
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


def _padded(params: tuple[Any, ...], x: Array) -> Array:
    out = np.zeros([low + n + high for n, (low, high) in zip(x.shape, params[0], strict=True)], x.dtype)
    out[tuple([slice(low, low + n) for n, (low, _) in zip(x.shape, params[0], strict=True)])] = x
    return out


# ----- Transposes -----


def _untranspose(g: Node, node: Node) -> Node:
    axes: list[int] = [0] * node.ndim
    for position, axis in enumerate(node.params[0]):
        axes[axis] = position
    return transpose(g, tuple(axes))


def _unpad(g: Node, node: Node) -> Node:
    source = node.inputs[0]
    return slice_axes(g, [(lo, n, 1) for n, (lo, _) in zip(source.shape, node.params[0], strict=True)])


def _unconcatenate(node: Node) -> Sequence[Transpose]:
    axis = node.params[0]
    rules: list[Transpose] = []
    start = 0
    for source in node.inputs:
        ranges = [(0, n, 1) for n in source.shape]
        ranges[axis] = (start, source.shape[axis], 1)
        start += source.shape[axis]
        rules.append(lambda g, _node, ranges=ranges: slice_axes(g, ranges))
    return rules


# ----- Batches -----


def _batched_broadcast(node: Node, operands: Sequence[Node | None], size: int) -> Node:
    source = node.inputs[0]
    padded = (size, *[1] * (node.ndim - source.ndim), *source.shape)
    return broadcast(reshape(spread(source, operands[0], size), padded), (size, *node.shape))


def _batched_gather(node: Node, operands: Sequence[Node | None], size: int) -> Node:
    source, index = node.inputs
    if operands[0] is None:
        return make("gather", (source, spread(index, operands[1], size)))
    flat = reshape(operands[0], (size * source.size,))
    return gather(flat, spread(index, operands[1], size) + offsets(size, source.size, index.shape))


def _with_params(change: Any) -> Any:
    """A batch rule that only changes the parameter, for the axis in front."""

    def batched(node: Node, operands: Sequence[Node | None], size: int) -> Node:
        full = [spread(source, operand, size) for source, operand in zip(node.inputs, operands, strict=True)]
        return make(node.name, tuple(full), (change(size, node.params[0]),))

    return batched


def _movement(shape: Any, meaning: Any, derivative: Linear, batch: Any) -> Any:
    return row("movement", shape, meaning, derivative, batch=batch)


MOVEMENTS = named(
    reshape=_movement(
        _reshape,
        lambda params, x: x.reshape(params[0]),
        Linear(lambda node: (lambda g, node: reshape(g, node.inputs[0].shape),), index_map=True),
        _with_params(lambda size, shape: (size, *shape)),
    ),
    transpose=_movement(
        _transpose,
        lambda params, x: x.transpose(params[0]),
        Linear(lambda node: (_untranspose,), index_map=True),
        _with_params(lambda size, axes: (0, *[axis + 1 for axis in axes])),
    ),
    broadcast=_movement(
        _broadcast,
        _repeated,
        Linear(lambda node: (lambda g, node: unbroadcast(g, node.inputs[0].shape),), index_map=True),
        _batched_broadcast,
    ),
    slice=_movement(
        _slice,
        lambda params, x: x[slices_of(params[0])],
        Linear(lambda node: (lambda g, node: unslice(g, node.inputs[0].shape, node.params[0]),), index_map=True),
        _with_params(lambda size, ranges: ((0, size, 1), *ranges)),
    ),
    pad=_movement(
        _pad,
        _padded,
        Linear(lambda node: (_unpad,), index_map=True),
        _with_params(lambda size, widths: ((0, 0), *widths)),
    ),
    concatenate=_movement(
        _concatenate,
        lambda params, *xs: np.concatenate(xs, params[0]),
        Linear(_unconcatenate, index_map=True),
        _with_params(lambda size, axis: axis + 1),
    ),
)
GATHER = named(
    gather=light(
        lambda source, index: source[index],
        Linear(lambda node: (lambda g, node: scatter_add(node.inputs[0].size, node.inputs[1], g), None)),
        _gather,
        batch=_batched_gather,
    )
)


# ----- Computed positions -----


def _added(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    index, updates = inputs
    assert index.shape == updates.shape and index.dtype == INT64, inputs
    return (params[0],), updates.dtype


def _last(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    return (params[0],), INT64


def _order(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    return inputs[0].shape, INT64


def _array(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    array, value, *starts = inputs
    ranges, axes = params
    assert value.dtype == array.dtype and len(starts) == len(axes), inputs
    assert value.shape == tuple([length for _, length, _ in ranges]), (value, ranges)
    return array.shape, array.dtype


def _written(params: tuple[Any, ...], array: Array, value: Array, *starts: Array) -> Array:
    ranges = list(params[0])
    for axis, start in zip(params[1], starts, strict=True):
        ranges[axis] = (int(start), *ranges[axis][1:])
    out = np.array(array)
    out[slices_of(ranges)] = value
    return out


def _unwritten(node: Node) -> Sequence[Transpose | None]:
    """The cotangents of an array and of what is written to it: zeros there, and that part."""
    (_, value, *starts), (ranges, axes) = node.inputs, node.params
    return [
        lambda g, _node: write_at(g, zeros(value.shape, g.dtype), ranges, axes, starts),
        lambda g, _node: part_at(g, ranges, axes, starts),
        *[None] * len(starts),
    ]


def _batched_write(node: Node, operands: Sequence[Node | None], size: int) -> Node:
    assert not any(operands[2:]), "turns of loops write at numbers that are the same for all of a batch"
    array, value = (spread(node.inputs[k], operands[k], size) for k in (0, 1))
    ranges, axes = node.params
    return write_at(array, value, ((0, size, 1), *ranges), [axis + 1 for axis in axes], node.inputs[2:])


def _scatter_add(params: tuple[Any, ...], index: Array, updates: Array) -> Array:
    out = np.zeros(params[0], updates.dtype)
    np.add.at(out, index.ravel(), updates.ravel())
    return out


def _scatter_last(params: tuple[Any, ...], index: Array) -> Array:
    out = np.full(params[0], -1, np.int64)
    out[index.ravel()] = np.arange(index.size)
    return out


def _batched_add(node: Node, operands: Sequence[Node | None], size: int) -> Node:
    index, updates = spread_all(node, operands, size)
    length = node.params[0]
    index = index + offsets(size, length, node.inputs[0].shape)
    return reshape(scatter_add(size * length, index, updates), (size, length))


def _batched_last(node: Node, operands: Sequence[Node | None], size: int) -> Node:
    length = node.params[0]
    index = spread_all(node, operands, size)[0] + offsets(size, length, node.inputs[0].shape)
    winner = reshape(scatter_last(size * length, index), (size, length))
    own = winner - offsets(size, node.inputs[0].size, (length,))
    return elementwise("select", elementwise("less", winner, 0), winner, own)


POSITIONS = named(
    scatter_add=row(
        "special",
        _added,
        _scatter_add,
        Linear(lambda node: (None, lambda g, node: gather(g, node.inputs[0])), index_map=True),
        batch=_batched_add,
    ),
    scatter_last=row("special", _last, _scatter_last, INTEGER, batch=_batched_last),
    write=row("special", _array, _written, Linear(_unwritten, index_map=True), batch=_batched_write),
    argsort=row("special", _order, lambda params, x: np.argsort(x, axis=-1, kind="stable"), INTEGER),
)
