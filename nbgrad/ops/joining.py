"""Joining and splitting: concatenate, stack, split, tile, repeat, pad, append, insert, delete.

In: array-likes and lists of them. Out: Tensors. Called by users and by `lifting.as_node`, for which `stack` turns nested
lists that hold Tensors into one Tensor. Everything here is slices that are joined; positions that follow no pattern are
gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, RangeError, ShapeError
from ..graph.ir import BOOL, INT64, Node, Shape, broadcast
from ..graph.primitives import cast, reshape, transpose
from ..graph.primitives import concatenate as join_nodes
from ..graph.primitives import pad as pad_node
from ..runtime.evaluate import concrete
from ..tensor import Tensor
from .lifting import as_node, wrap
from .operands import (
    Dtype,
    Runs,
    axis_of,
    cut,
    deliver,
    integer,
    integers,
    nodes_of,
    promote,
    real_dtype,
    take_positions,
    take_runs,
)

# ----- On nodes -----


def join(nodes: Sequence[Node], axis: Any, dtype: Any = None, casting: str = "same_kind") -> Node:
    """Nodes promoted and concatenated; an axis of None joins the flat arrays."""
    if not nodes:
        message = "Joining needs at least one array."
        raise ShapeError(message)
    if axis is None:
        nodes, axis = [reshape(node, (node.size,)) for node in nodes], 0
    first = nodes[0]
    at = axis_of(axis, first.ndim)
    for node in nodes[1:]:
        same = node.ndim == first.ndim and all(
            n == m for k, (n, m) in enumerate(zip(node.shape, first.shape, strict=True)) if k != at
        )
        if not same:
            message = (
                f"The arrays differ in shape beyond axis {at}, so they cannot be joined: "
                f"{', '.join(str(node.shape) for node in nodes)}."
            )
            raise ShapeError(message)
    wanted = None if dtype is None else _castable(nodes, real_dtype(dtype), casting)
    return join_nodes(promote(nodes, wanted), at)


def _castable(nodes: Sequence[Node], dtype: Dtype, casting: Any) -> Dtype:
    for node in nodes:
        if not np.can_cast(node.dtype, dtype, casting):
            message = f"The dtype {node.dtype} cannot be cast to {dtype} by the rule {casting!r}."
            raise DtypeError(message)
    return dtype


def stack_nodes(nodes: Sequence[Node], axis: Any, dtype: Any = None, casting: str = "same_kind") -> Node:
    """Nodes of one shape joined along a new axis."""
    if not nodes:
        message = "Joining needs at least one array."
        raise ShapeError(message)
    shape = nodes[0].shape
    if any(node.shape != shape for node in nodes):
        message = f"All arrays must have one shape to be stacked, but got {', '.join(str(n.shape) for n in nodes)}."
        raise ShapeError(message)
    at = axis_of(axis, len(shape) + 1)
    nodes = promote(nodes)
    return join([reshape(node, (*shape[:at], 1, *shape[at:])) for node in nodes], at, dtype, casting)


def _at_least(node: Node, ndim: int) -> Node:
    return node if node.ndim >= ndim else reshape(node, (1,) * (ndim - node.ndim) + node.shape)


def repeat_axis(node: Node, axis: int, times: int) -> Node:
    """Each element along an axis `times` times in a row."""
    before, n, after = node.shape[:axis], node.shape[axis], node.shape[axis + 1 :]
    wide = broadcast(reshape(node, (*before, n, 1, *after)), (*before, n, times, *after))
    return reshape(wide, (*before, n * times, *after))


# ----- Join -----


def stack(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Tensor:
    """Arrays of one shape joined along a new axis.

    Parameters
    ----------
    arrays : sequence of array-like
        Python numbers among them do not widen the dtype of the Tensors and arrays.
    axis : int
        Where the new axis is in the result.
    out : Tensor or ndarray, optional
    dtype : dtype, optional
    casting : str
        Which casts to `dtype` are allowed.
    """
    return deliver(stack_nodes(nodes_of(arrays), axis, dtype, casting), out)


def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Tensor:
    """Arrays joined along an axis (the flat arrays, if None)."""
    return deliver(join(nodes_of(arrays), axis, dtype, casting), out)


def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Arrays joined as rows: along the first axis, 1-d arrays being rows."""
    return wrap(join([_at_least(node, 2) for node in nodes_of(tup)], 0, dtype, casting))


def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Arrays joined along the second axis, 1-d arrays along their only one."""
    nodes = [_at_least(node, 1) for node in nodes_of(tup)]
    return wrap(join(nodes, 0 if nodes and nodes[0].ndim == 1 else 1, dtype, casting))


def dstack(tup: Any) -> Tensor:
    """Arrays joined along the third axis."""
    nodes = [_at_least(node, 1) for node in nodes_of(tup)]
    nodes = [reshape(n, (1, *n.shape)) if n.ndim == 1 else n for n in nodes]
    return wrap(join([reshape(n, (*n.shape, 1)) if n.ndim == 2 else n for n in nodes], 2))


def column_stack(tup: Any) -> Tensor:
    """Arrays joined as columns: along the second axis, 1-d arrays being columns."""
    nodes = nodes_of(tup)
    return wrap(join([reshape(n, (n.size, 1)) if n.ndim < 2 else n for n in nodes], 1))


def append(arr: Any, values: Any, axis: Any = None) -> Tensor:
    """Values joined to the end of an array (of the flat array, if the axis is None)."""
    return wrap(join([as_node(arr), as_node(values)], axis))


def block(arrays: Any) -> Tensor:
    """An array from nested lists of blocks: the innermost lists join along the last axis, the next ones before it."""
    depth = _depth(arrays)
    leaves = _leaves(arrays)
    ndim = depth
    for leaf in leaves:
        ndim = leaf.ndim if leaf.ndim > ndim else ndim

    def build(value: Any, level: int) -> Node:
        if level == depth:
            return _at_least(as_node(value), ndim)
        return join([build(v, level + 1) for v in value], ndim - depth + level)

    return wrap(build(arrays, 0))


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        message = "block needs at least one array in each list."
        raise ShapeError(message)
    depths = {_depth(value) for value in arrays}
    if len(depths) > 1:
        message = "The lists given to block must all be nested to the same depth."
        raise ShapeError(message)
    return 1 + depths.pop()


def _leaves(arrays: Any) -> list[Node]:
    return [leaf for v in arrays for leaf in _leaves(v)] if isinstance(arrays, list) else [as_node(arrays)]


# ----- Split -----


def _split(node: Node, sections: Any, axis: int, even: bool) -> list[Tensor]:
    n = node.shape[axis]
    if isinstance(sections, list | tuple | np.ndarray | Tensor) and np.ndim(sections):
        bounds = [slice(0, k).indices(n)[1] for k in integers(sections, "indices_or_sections")]
        # NumPy slices between successive positions, so that decreasing ones give empty pieces.
        edges = list(zip([0, *bounds], [*bounds, n], strict=True))
    else:
        count = integer(sections, "indices_or_sections")
        if count <= 0:
            message = f"The number of sections must be positive, but got {count}."
            raise ArgumentError(message)
        if even and n % count:
            message = f"An axis of extent {n} cannot be split into {count} equal parts; array_split allows unequal ones."
            raise ShapeError(message)
        width, longer = divmod(n, count)
        ends = [(k + 1) * width + (k + 1 if k < longer else longer) for k in range(count)]
        edges = list(zip([0, *ends[:-1]], ends, strict=True))
    return [wrap(cut(node, axis, lo, hi - lo if hi > lo else 0)) for lo, hi in edges]


def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Tensor]:
    """Equal parts along an axis, or the parts between given positions."""
    node = as_node(ary)
    return _split(node, indices_or_sections, axis_of(axis, node.ndim), True)


def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Tensor]:
    """Parts along an axis whose lengths differ by at most one, or the parts between given positions."""
    node = as_node(ary)
    return _split(node, indices_or_sections, axis_of(axis, node.ndim), False)


def _split_at(name: str, ary: Any, sections: Any, axis: int, least: int) -> list[Tensor]:
    node = as_node(ary)
    if node.ndim < least:
        message = f"{name} needs at least {least} axes, but the shape is {node.shape}."
        raise ShapeError(message)
    return _split(node, sections, axis, True)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the second axis, of a 1-d array along its only one."""
    return _split_at("hsplit", ary, indices_or_sections, 0 if as_node(ary).ndim == 1 else 1, 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the first axis."""
    return _split_at("vsplit", ary, indices_or_sections, 0, 2)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the third axis."""
    return _split_at("dsplit", ary, indices_or_sections, 2, 3)


def unstack(x: Any, /, *, axis: Any = 0) -> tuple[Tensor, ...]:
    """The arrays along an axis, which disappears."""
    node = as_node(x)
    at = axis_of(axis, node.ndim)
    rest = node.shape[:at] + node.shape[at + 1 :]
    return tuple([wrap(reshape(cut(node, at, k, 1), rest)) for k in range(node.shape[at])])


# ----- Repeat -----


def tile(A: Any, reps: Any) -> Tensor:  # noqa: N803
    """The array repeated as a whole along each axis."""
    node, counts = as_node(A), integers(reps, "reps")
    if any(r < 0 for r in counts):
        message = f"The repetitions must not be negative, but got {counts}."
        raise ShapeError(message)
    counts = (1,) * (node.ndim - len(counts)) + counts
    node = _at_least(node, len(counts))
    if all(r == 1 for r in counts):
        return wrap(node)
    spread: list[int] = []
    wide: list[int] = []
    for r, n in zip(counts, node.shape, strict=True):
        spread += [n] if r == 1 else [1, n]
        wide += [n] if r == 1 else [r, n]
    shape = tuple([r * n for r, n in zip(counts, node.shape, strict=True)])
    return wrap(reshape(broadcast(reshape(node, tuple(spread)), tuple(wide)), shape))


def repeat(a: Any, repeats: Any, axis: Any = None) -> Tensor:
    """Each element repeated along an axis (of the flat array, if None); `repeats` may be one number per element."""
    node = as_node(a)
    if axis is None:
        node, axis = reshape(node, (node.size,)), 0
    at = axis_of(axis, node.ndim)
    counts = as_node(repeats)
    if counts.dtype.kind not in "iub":
        message = f"Expected repeats to be integers, but got dtype {counts.dtype}."
        raise DtypeError(message)
    times = np.atleast_1d(concrete(counts, "int" if counts.ndim == 0 else "array"))
    if times.min(initial=0) < 0:
        message = "The repeats must not be negative."
        raise ShapeError(message)
    if times.shape == (1,):
        return wrap(repeat_axis(node, at, int(times[0])))
    if times.shape != (node.shape[at],):
        message = f"repeats has shape {times.shape}, but the axis has extent {node.shape[at]}."
        raise ShapeError(message)
    return wrap(take_positions(node, at, np.repeat(np.arange(node.shape[at]), times)))


def resize(a: Any, new_shape: Any) -> Tensor:
    """The elements, repeated as often as needed, in another shape."""
    node = as_node(a)
    shape = integers(new_shape, "new_shape")
    size = 1
    for n in shape:
        size *= n
    if size < 0 or any(n < 0 for n in shape):
        message = f"The extents of a shape must not be negative, but got {shape}."
        raise ShapeError(message)
    if node.size == 0:
        return wrap(broadcast(as_node(np.zeros((), node.dtype)), shape))
    times = -(-size // node.size)
    flat = reshape(broadcast(reshape(node, (1, node.size)), (times, node.size)), (times * node.size,))
    return wrap(reshape(cut(flat, 0, 0, size), shape))


# ----- Pad -----

_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def _pairs(value: Any, name: str, ndim: int) -> list[tuple[Any, Any]]:
    """A (before, after) pair per axis from a number, a pair, or a sequence of pairs."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return [(value, value)] * ndim
    items = [v.tolist() if isinstance(v, np.ndarray) else v for v in value]
    if not any(isinstance(v, list | tuple) for v in items):
        if len(items) == 1:
            return [(items[0], items[0])] * ndim
        if len(items) == 2:
            return [(items[0], items[1])] * ndim
    else:
        pairs = [tuple(v) * (2 if len(v) == 1 else 1) for v in items if isinstance(v, list | tuple)]
        if len(pairs) in (1, ndim) and all(len(p) == 2 for p in pairs):
            return [(p[0], p[1]) for p in (pairs * ndim)[:ndim]]
    message = f"{name}={value!r} is neither a number, a pair, nor one pair per axis of {ndim} axes."
    raise ShapeError(message)


def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Tensor:
    """The array with borders.

    Parameters
    ----------
    array : array-like
    pad_width : int, pair, or sequence of pairs
        Widths before and after each axis.
    mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
    constant_values : number, pair, or sequence of pairs
        For "constant": what to put before and after each axis; 0 by default. Tensors differentiate.

    Returns
    -------
    Tensor
    """
    node = as_node(array)
    if mode not in _MODES:
        message = f"pad knows the modes {', '.join(map(repr, _MODES))}, but got {mode!r}."
        raise ArgumentError(message)
    allowed = {"constant": ("constant_values",), "reflect": ("reflect_type",), "symmetric": ("reflect_type",)}
    for name, value in kwargs.items():
        if name not in allowed.get(mode, ()) or (name == "reflect_type" and value != "even"):
            message = f"pad with mode {mode!r} does not support {name}={value!r}."
            raise ArgumentError(message)
    if isinstance(pad_width, dict):
        pairs: list[Any] = [(0, 0)] * node.ndim
        for axis, pair in pad_width.items():
            pairs[axis_of(axis, node.ndim)] = pair if isinstance(pair, tuple) else (pair, pair)
        pad_width = pairs
    widths = [
        (integer(lo, "pad_width"), integer(hi, "pad_width")) for lo, hi in _pairs(pad_width, "pad_width", node.ndim)
    ]
    if any(lo < 0 or hi < 0 for lo, hi in widths):
        message = f"pad_width must not be negative, but got {pad_width!r}."
        raise ShapeError(message)
    if mode == "constant":
        return wrap(_pad_constant(node, widths, kwargs.get("constant_values", 0)))
    for axis, (lo, hi) in enumerate(widths):
        if lo or hi:
            n = node.shape[axis]
            if n == 0:
                message = f"Axis {axis} of shape {node.shape} is empty, so mode {mode!r} has nothing to pad it with."
                raise ShapeError(message)
            node = take_runs(node, axis, [*_border(n, lo, mode, True), (0, n, 1), *_border(n, hi, mode, False)])
    return wrap(node)


def _pad_constant(node: Node, widths: Sequence[tuple[int, int]], values: Any) -> Node:
    if isinstance(values, int | float) and values == 0:
        return pad_node(node, widths)
    for axis, ((lo, hi), pair) in enumerate(zip(widths, _pairs(values, "constant_values", node.ndim), strict=True)):
        parts = [node]
        for width, value, place in ((lo, pair[0], 0), (hi, pair[1], 2)):
            if width:
                shape = list(node.shape)
                shape[axis] = width
                border = cast(as_node(value), node.dtype)
                if border.ndim:
                    message = f"Each of constant_values must be a number, but got shape {border.shape}."
                    raise ShapeError(message)
                parts.insert(place, broadcast(border, tuple(shape)))
        node = join_nodes(parts, axis)
    return node


def _border(n: int, width: int, mode: str, before: bool) -> Runs:
    """The runs of positions that make a border of a given width, before or after an axis of extent n."""
    if mode == "edge" or n == 1:
        return [(0 if before else n - 1, width, 0)]
    period = {"wrap": n, "symmetric": 2 * n, "reflect": 2 * n - 2}[mode]
    runs: list[tuple[int, int, int]] = []
    position, end = (-width, 0) if before else (n, n + width)
    while position < end:
        phase = position % period
        if phase < n:
            # Up from `phase`; a reflection leaves the last element to the way down.
            length = (n - phase) if mode != "reflect" else (n - 1 - phase)
            start, step = phase, 1
        else:
            start, step = (2 * n - 1 - phase, -1) if mode == "symmetric" else (2 * n - 2 - phase, -1)
            length = start + 1 if mode == "symmetric" else start
        if length == 0:
            # The turning point of a reflection.
            start, length, step = n - 1, 1, 1
        length = length if position + length <= end else end - position
        runs.append((start, length, step))
        position += length
    return runs


# ----- Insert and delete -----


def _positions(obj: Any, n: int, most: int) -> np.ndarray:
    """Positions from a slice, an integer, integers or a mask, counted from the front."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n))
    node = as_node(obj)
    value = np.asarray(concrete(node, "int" if node.ndim == 0 else "array"))
    if value.dtype == BOOL and value.ndim:
        if value.shape != (n,):
            message = f"The mask has shape {value.shape}, but the axis has extent {n}."
            raise ShapeError(message)
        return np.flatnonzero(value)
    if value.size and value.dtype.kind not in "iu":
        message = f"Expected positions to be integers or a mask, but got dtype {value.dtype}."
        raise DtypeError(message)
    value = value.astype(INT64).ravel()
    if value.size and (value.min() < -n or value.max() > most):
        message = f"A position is out of range for an axis of extent {n}."
        raise RangeError(message)
    return np.where(value < 0, value + n, value)


def delete(arr: Any, obj: Any, axis: Any = None) -> Tensor:
    """The array without some positions of an axis (of the flat array, if None)."""
    node = as_node(arr)
    if axis is None:
        node, axis = reshape(node, (node.size,)), 0
    at = axis_of(axis, node.ndim)
    n = node.shape[at]
    left = np.ones(n, bool)
    left[_positions(obj, n, n - 1)] = False
    return wrap(take_positions(node, at, np.flatnonzero(left)))


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Tensor:
    """The array with values before some positions of an axis (of the flat array, if None)."""
    node, new = as_node(arr), as_node(values)
    if axis is None:
        node, axis = reshape(node, (node.size,)), 0
    at = axis_of(axis, node.ndim)
    n = node.shape[at]
    where = _positions(obj, n, n)
    new = cast(new, node.dtype)
    single = not isinstance(obj, slice) and as_node(obj).ndim == 0
    if single:
        # NumPy: with one position given as a number, the first axis of the values is the axis of insertion.
        new = _at_least(new, node.ndim)
        order = [*range(1, at + 1), 0, *range(at + 1, node.ndim)]
        new = transpose(new, tuple(order)) if at else new
        count = new.shape[at]
        where = np.repeat(where, count)
    else:
        count = len(where) if len(where) != 1 or new.ndim < node.ndim else new.shape[at]
        where = np.repeat(where, count) if len(where) == 1 else where
    shape = list(node.shape)
    shape[at] = len(where)
    new = _fit(new, tuple(shape))
    # Element k of the values lands before position where[k]; equal positions keep their order.
    order = np.argsort(where, kind="stable")
    landing = where[order] + np.arange(len(where))
    source = np.empty(n + len(where), INT64)
    taken = np.zeros(n + len(where), bool)
    taken[landing] = True
    source[landing] = n + order
    source[~taken] = np.arange(n)
    return wrap(take_positions(join_nodes([node, new], at), at, source))


def _fit(node: Node, shape: Shape) -> Node:
    try:
        fits = np.broadcast_shapes(node.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        message = f"The values have shape {node.shape}, which does not broadcast to {shape}."
        raise ShapeError(message)
    return broadcast(node, shape)


NUMPY = {
    np.stack: stack,
    np.concatenate: concatenate,
    np.concat: concatenate,
    np.vstack: vstack,
    np.hstack: hstack,
    np.dstack: dstack,
    np.column_stack: column_stack,
    np.append: append,
    np.block: block,
    np.split: split,
    np.array_split: array_split,
    np.hsplit: hsplit,
    np.vsplit: vsplit,
    np.dsplit: dsplit,
    np.tile: tile,
    np.repeat: repeat,
    np.resize: resize,
    np.pad: pad,
    np.insert: insert,
    np.delete: delete,
}
if hasattr(np, "unstack"):  # since NumPy 2.1
    NUMPY |= {np.unstack: unstack}
