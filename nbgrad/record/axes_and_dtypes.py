"""Steps that the array functions share: axes, common dtypes, positions along an axis, and `out`.

In: nodes, and users' axes, shapes, dtypes. Out: normalised arguments and nodes. Called by the functions of
`nbgrad.functions` and `nbgrad.ops`; nothing here is public. Errors are raised here, at the user's line, before any
graph is built.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, AxisError, DtypeError, ShapeError, TracedValueError
from ..graph.builders import cast, concatenate, gather, iota, reshape, slice_axes, transpose
from ..graph.builders import take_last as take_last
from ..graph.builders import truth as truth
from ..graph.ir import INT64, Node, broadcast, constant, elementwise, extent, literal, make, plain_dtype, strong
from ..graph.shapes import Shape, broadcasts
from ..runtime.evaluate import concrete, require
from .as_node import as_node, lists_hold, wrap
from .numbers import python_numbers, supported
from .promotion import float_of
from .tensor import Tensor

Dtype = np.dtype[Any]
FLOAT32 = np.dtype(np.float32)
FLOAT16 = np.dtype(np.float16)
Runs = Sequence[tuple[int, int, int]]
"""Positions along an axis as (start, length, step); a step of 0 repeats one position."""


# ----- Arguments -----


def integer(value: Any, name: str) -> int:
    """A Python int from anything that can be an index."""
    try:
        return operator.index(value)
    except TypeError:
        message = f"Expected {name} to be an integer, but got {value!r}."
        raise DtypeError(message) from None


def integers(value: Any, name: str) -> tuple[int, ...]:
    """A tuple of ints from one integer or a sequence of them."""
    if isinstance(value, Tensor | np.ndarray):
        value = concrete(value._node, "int") if isinstance(value, Tensor) else value
        value = value.tolist()
    if isinstance(value, Iterable):
        return tuple([integer(v, name) for v in value])
    return (integer(value, name),)


def axis_of(axis: Any, ndim: int) -> int:
    """One axis, counted from the front."""
    position = integer(axis, "axis")
    if not -ndim <= position < ndim:
        message = f"Axis {position} is out of bounds for an array with {ndim} axes."
        raise AxisError(message)
    return position % ndim


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Several axes, counted from the front; None means all."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple([axis_of(a, ndim) for a in integers(axis, "axis")])
    if len(set(axes)) != len(axes):
        message = f"An axis appears twice in axis={axis!r}."
        raise ShapeError(message)
    return axes


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes of a reduction. As in NumPy, a 0-d array may be reduced over the axis that it does not have."""
    if ndim == 0 and isinstance(axis, int) and axis in (0, -1):
        return ()
    return axes_of(axis, ndim)


def shape_of(shape: Any) -> Shape:
    """A shape without negative extents."""
    extents = integers(shape, "shape")
    if any(n < 0 for n in extents):
        message = f"The extents of a shape must not be negative, but got {extents}."
        raise ShapeError(message)
    return extents


def real_dtype(dtype: Any) -> Dtype:
    """A dtype that nodes can have."""
    result = np.dtype(dtype)
    if not supported(result):
        message = f"Expected a dtype of booleans, integers, floats (64 bits at most) or complex ones, but got {result}."
        raise DtypeError(message)
    return plain_dtype(result)


def only(name: str, value: Any, *allowed: Any) -> None:
    """Raise unless an option has a value that is supported."""
    for choice in allowed:
        if value is choice or (value.__class__ is choice.__class__ and value == choice):
            return
    message = f"{name}={value!r} is not supported; use {' or '.join(repr(choice) for choice in allowed)}."
    raise ArgumentError(message)


# ----- Dtypes -----


def array_node(value: Any) -> Node:
    """A node that is not weak, for functions that make arrays of Python numbers before they promote."""
    return strong(as_node(value))


def inexact(node: Node) -> Node:
    """Integers and booleans as float64, floats as they are."""
    return cast(node, float_of(node))


def scalar(value: complex, dtype: Dtype) -> Node:
    """A number of a given dtype. Sizes and users' floats are run-time inputs: programs do not depend on them."""
    if isinstance(value, complex):
        return cast(as_node(value), dtype)
    if not -16 <= value <= 16 or not float(4 * value).is_integer():
        return constant(np.array(value).astype(dtype)) if np.isfinite(value) else literal(value, dtype)
    return literal(value, dtype)


def filled(shape: Shape, value: complex, dtype: Dtype) -> Node:
    """One number everywhere; takes no memory."""
    return broadcast(scalar(value, dtype), shape)


# ----- Axes and positions -----


def positions(shape: Shape, axis: int) -> Node:
    """Each element's position along an axis, as int64."""
    n = shape[axis]
    return broadcast(reshape(iota(n), (n,) + (1,) * (len(shape) - axis - 1)), shape)


def to_last(node: Node, axis: int) -> Node:
    """The node with one axis moved to the end."""
    return transpose(node, (*[a for a in range(node.ndim) if a != axis], axis))


def from_last(node: Node, axis: int) -> Node:
    """The inverse of `to_last`."""
    last = node.ndim - 1
    axes = list(range(last))
    axes.insert(axis, last)
    return transpose(node, tuple(axes))


def keep(shape: Shape, axes: Sequence[int]) -> Shape:
    """The shape after a reduction that keeps its axes with extent 1."""
    return tuple([1 if axis in axes else n for axis, n in enumerate(shape)])


def cut(node: Node, axis: int, start: int, length: int, step: int = 1) -> Node:
    """A slice along one axis."""
    ranges = [(0, n, 1) for n in node.shape]
    ranges[axis] = (start, length, step)
    return slice_axes(node, ranges)


def take_runs(node: Node, axis: int, runs: Runs) -> Node:
    """Positions along an axis, given as runs: slices that are joined."""
    parts: list[Node] = []
    for start, length, step in runs:
        if length == 0:
            continue
        if step == 0:
            shape = list(node.shape)
            shape[axis] = length
            parts.append(broadcast(cut(node, axis, start, 1), tuple(shape)))
        else:
            parts.append(cut(node, axis, start, length, step))
    return concatenate(parts, axis) if parts else cut(node, axis, 0, 0)


def take_positions(node: Node, axis: int, where: np.ndarray) -> Node:
    """Known positions along an axis: a few slices where they come in runs, else a gather."""
    runs = _runs(where, 16)
    return take_runs(node, axis, runs) if runs is not None else gather_axis(node, axis, constant(where))


def _runs(where: np.ndarray, limit: int) -> list[tuple[int, int, int]] | None:
    """Positions as runs of equal steps, or None if there are more than `limit`."""
    steps = np.diff(where)
    runs: list[tuple[int, int, int]] = []
    start = 0
    while start < len(where):
        if len(runs) == limit:
            return None
        if start == len(where) - 1:
            length, step = 1, 1
        else:
            step = int(steps[start])
            others = np.flatnonzero(steps[start:] != step)
            length = 1 + (int(others[0]) if others.size else len(where) - 1 - start)
            if length == 2 and step != 1 and start + 2 < len(where):
                # The second position may be the first one of a longer run.
                length, step = 1, 1
        runs.append((int(where[start]), length, step))
        start += length
    return runs


def gather_axis(node: Node, axis: int, index: Node) -> Node:
    """`take(node, index, axis)` for a 1-d int64 index with all elements in range."""
    if node.ndim == 1:
        return gather(node, index)
    outer, n, inner = node.shape[:axis], node.shape[axis], node.shape[axis + 1 :]
    count = index.size
    shape = (math.prod(outer), count, math.prod(inner))
    row = broadcast(reshape(index, (count, 1)), shape)
    if shape[0] > 1:
        row = row + positions(shape, 0) * extent(n, INT64)
    if shape[2] > 1:
        row = row * extent(shape[2], INT64) + positions(shape, 2)
    return reshape(gather(reshape(node, (node.size,)), row), (*outer, count, *inner))


def at_least(node: Node, ndim: int) -> Node:
    """New axes in front, up to a number of axes."""
    return node if node.ndim >= ndim else reshape(node, (1,) * (ndim - node.ndim) + node.shape)


# ----- Values and results -----


def safe_sqrt(node: Node) -> Node:
    """Square root whose derivative at zero is zero, as a norm's is by convention."""
    zero = elementwise("equal", node, 0.0)
    root = elementwise("sqrt", elementwise("select", zero, filled(node.shape, 1.0, node.dtype), node))
    return elementwise("select", zero, filled(node.shape, 0.0, node.dtype), root)


def demand(condition: Node, message: str) -> None:
    """Raise unless a boolean node is true everywhere; an empty one is."""
    if condition.size:
        require(condition, message)


def nodes_of(values: Any) -> list[Node]:
    """The nodes of a sequence of arrays. Lists of Python numbers do not widen the dtype of arrays that they meet."""
    if isinstance(values, Tensor | np.ndarray):
        array = as_node(values)
        if array.ndim == 0:
            message = "Expected a sequence of arrays, but got a 0-d array."
            raise ShapeError(message)
        return [reshape(cut(array, 0, k, 1), array.shape[1:]) for k in range(array.shape[0])]
    nodes: list[Node] = []
    for value in values:
        node: Node = value._node if value.__class__ is Tensor else as_node(value)
        if isinstance(value, list | tuple) and not lists_hold(value, Tensor) and python_numbers(value):
            assert node.value is not None
            node = constant(node.value, weak=True)
        nodes.append(node)
    return nodes


def deliver(node: Node, out: Any = None) -> Any:
    """The Tensor of a result, or `out` with the result in it.

    A Tensor `out` becomes the result (recorded, so it differentiates); an ndarray `out` is filled, which only works
    where nothing has to be recorded.
    """
    if out is None:
        return wrap(strong(node))
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if not isinstance(out, Tensor | np.ndarray):
        message = f"Expected out to be a Tensor or an ndarray, but got {type(out).__name__}."
        raise DtypeError(message)
    if tuple(out.shape) != node.shape:
        message = f"The result has shape {node.shape}, but out has shape {tuple(out.shape)}."
        raise ShapeError(message)
    if not np.can_cast(node.dtype, out.dtype, "same_kind"):
        message = f"The result has dtype {node.dtype}, which cannot be stored in an out of dtype {np.dtype(out.dtype)}."
        raise DtypeError(message)
    if isinstance(out, Tensor):
        out._replace(cast(node, out._node.dtype))  # pyright: ignore[reportPrivateUsage]
        return out
    if node.traced:
        message = (
            "An ndarray cannot be the out of an operation on a Tensor that is being differentiated or compiled: "
            "the result would be cut off from the gradient. Leave out= away, or give it a Tensor."
        )
        raise TracedValueError(message)
    np.copyto(out, concrete(node, "array"), casting="same_kind")
    return out


def write(target: Tensor, result: Node, what: str, casting: Any = "same_kind") -> None:
    """Make a result the value of a Tensor, whose shape and dtype stay."""
    if not np.can_cast(result.dtype, target.dtype, casting):
        message = f"{what} gives {result.dtype}, which cannot be stored in a Tensor of {target._node.dtype}."
        raise DtypeError(message)
    if not broadcasts(result.shape, target.shape):
        message = f"{what} gives shape {result.shape}, which does not fit into a Tensor of shape {target.shape}."
        raise ShapeError(message)
    node = broadcast(cast(result, target._node.dtype), target.shape)
    if node.tensor != target._node.tensor:
        # The target keeps the rules of promotion that it has.
        node = make("alias", (node,))
        node.tensor = target._node.tensor
    target._replace(node)


def repeated(value: Node, count: int) -> Node:
    """The flat elements, repeated from the start until there are `count`."""
    value = reshape(value, (value.size,))
    if value.size == count:
        return value
    if value.size > count:
        return slice_axes(value, [(0, count, 1)])
    if value.size == 1:
        return broadcast(value, (count,))
    return gather(value, elementwise("remainder", iota(count), value.size))
