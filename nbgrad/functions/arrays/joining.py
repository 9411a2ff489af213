"""Joining and splitting: concatenate, stack, split, tile, repeat, append, resize, sliding windows.

In: array-likes and lists of them. Out: Tensors. Called by users and by `lifting.as_node`, for which `stack` turns
nested lists that hold Tensors into one Tensor. All is movement; only repeats without a pattern are gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError
from ...graph.builders import concatenate as join_nodes
from ...graph.builders import reshape
from ...graph.ir import Node, broadcast
from ...graph.primitives import PRIMITIVES
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import (
    Dtype,
    at_least,
    axis_of,
    cut,
    deliver,
    integer,
    integers,
    nodes_of,
    real_dtype,
    take_positions,
)
from ...record.promotion import promote
from ...record.tensor import Tensor
from ...record.view_chain import windows_node
from ...record.zero_dimensional import as_array
from ...runtime.evaluate import concrete
from ...runtime.memory_order import copied
from .result_order import in_c_order
from .viewing import viewing

CONCATENATE, RESHAPE = PRIMITIVES["concatenate"], PRIMITIVES["reshape"]

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


def stack_nodes(nodes: Sequence[Node], axis: Any, dtype: Any = None, casting: str = "same_kind") -> Node:
    """Nodes of one shape joined along a new axis."""
    if not nodes:
        message = "Joining needs at least one array."
        raise ShapeError(message)
    shape, kind = nodes[0].shape, nodes[0].dtype
    if axis == 0 and dtype is None and kind.kind != "c" and len(nodes) > 1:
        # Loops stack at every turn: their nodes are made without asking the rules for what is known.
        one = (1, *shape)
        parts = [
            Node(RESHAPE, (node,), (one,), one, kind)
            for node in nodes
            if node.shape == shape and node.dtype is kind and not node.weak
        ]
        if len(parts) == len(nodes):
            return Node(CONCATENATE, tuple(parts), (0,), (len(parts), *shape), kind)
    if any(node.shape != shape for node in nodes):
        message = f"All arrays must have one shape to be stacked, but got {', '.join(str(n.shape) for n in nodes)}."
        raise ShapeError(message)
    at = axis_of(axis, len(shape) + 1)
    nodes = promote(nodes)
    if dtype is None:
        return join_nodes([reshape(node, (*shape[:at], 1, *shape[at:])) for node in nodes], at)
    return join([reshape(node, (*shape[:at], 1, *shape[at:])) for node in nodes], at, dtype, casting)


def _castable(nodes: Sequence[Node], dtype: Dtype, casting: Any) -> Dtype:
    for node in nodes:
        if not np.can_cast(node.dtype, dtype, casting):
            message = f"The dtype {node.dtype} cannot be cast to {dtype} by the rule {casting!r}."
            raise DtypeError(message)
    return dtype


def repeat_axis(node: Node, axis: int, times: int) -> Node:
    """Each element along an axis `times` times in a row."""
    before, n, after = node.shape[:axis], node.shape[axis], node.shape[axis + 1 :]
    wide = broadcast(reshape(node, (*before, n, 1, *after)), (*before, n, times, *after))
    return reshape(wide, (*before, n * times, *after))


# ----- Join -----


def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
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
    return wrap(join([at_least(node, 2) for node in nodes_of(tup)], 0, dtype, casting))


def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Arrays joined along the second axis, 1-d arrays along their only one."""
    nodes = [at_least(node, 1) for node in nodes_of(tup)]
    return wrap(join(nodes, 0 if nodes and nodes[0].ndim == 1 else 1, dtype, casting))


def dstack(tup: Any) -> Tensor:
    """Arrays joined along the third axis."""
    nodes = [at_least(node, 1) for node in nodes_of(tup)]
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
        ndim = max(ndim, leaf.ndim)

    def build(value: Any, level: int) -> Node:
        if level == depth:
            return at_least(as_node(value), ndim)
        return join([build(v, level + 1) for v in value], ndim - depth + level)

    return as_array(wrap(build(arrays, 0)))


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
            message = (
                f"An axis of extent {n} cannot be split into {count} equal parts; array_split allows unequal ones."
            )
            raise ShapeError(message)
        width, longer = divmod(n, count)
        ends = [(k + 1) * width + (k + 1 if k < longer else longer) for k in range(count)]
        edges = list(zip([0, *ends[:-1]], ends, strict=True))
    return [wrap(cut(node, axis, lo, hi - lo if hi > lo else 0)) for lo, hi in edges]


@viewing
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Tensor]:
    """Equal parts along an axis, or the parts between given positions."""
    node = as_node(ary)
    return _split(node, indices_or_sections, axis_of(axis, node.ndim), True)


@viewing
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


@viewing
def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the second axis, of a 1-d array along its only one."""
    return _split_at("hsplit", ary, indices_or_sections, 0 if as_node(ary).ndim == 1 else 1, 1)


@viewing
def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the first axis."""
    return _split_at("vsplit", ary, indices_or_sections, 0, 2)


@viewing
def dsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the third axis."""
    return _split_at("dsplit", ary, indices_or_sections, 2, 3)


@viewing
def unstack(x: Any, /, *, axis: Any = 0) -> tuple[Tensor, ...]:
    """The arrays along an axis, which disappears."""
    node = as_node(x)
    at = axis_of(axis, node.ndim)
    rest = node.shape[:at] + node.shape[at + 1 :]
    return tuple([wrap(reshape(cut(node, at, k, 1), rest)) for k in range(node.shape[at])])


# ----- Repeat -----


def tile(A: Any, reps: Any) -> Tensor:
    """The array repeated as a whole along each axis."""
    node, counts = as_node(A), integers(reps, "reps")
    if any(r < 0 for r in counts):
        message = f"The repetitions must not be negative, but got {counts}."
        raise ShapeError(message)
    counts = (1,) * (node.ndim - len(counts)) + counts
    node = at_least(node, len(counts))
    if all(r == 1 for r in counts):
        return as_array(wrap(node))
    spread: list[int] = []
    wide: list[int] = []
    for r, n in zip(counts, node.shape, strict=True):
        spread += [n] if r == 1 else [1, n]
        wide += [n] if r == 1 else [r, n]
    shape = tuple([r * n for r, n in zip(counts, node.shape, strict=True)])
    return wrap(copied(reshape(broadcast(reshape(node, tuple(spread)), tuple(wide)), shape), "C"))


@in_c_order
def repeat(a: Any, repeats: Any, axis: Any = None) -> Tensor:
    """Each element repeated along an axis (of the flat array, if None); `repeats` may be one number per element."""
    node = as_node(a)
    if axis is None or (node.ndim == 0 and axis in (0, -1)):
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
    times, rest = divmod(size, node.size)
    flat = reshape(node, (node.size,))
    whole = reshape(broadcast(reshape(node, (1, node.size)), (times, node.size)), (times * node.size,))
    pieces = [piece for piece in (whole, cut(flat, 0, 0, rest)) if piece.size] or [whole]
    return wrap(reshape(join_nodes(pieces, 0), shape))


# ----- Windows -----


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Tensor:
    """All windows of an array along axes; their elements lie along new axes at the end.

    Parameters
    ----------
    x : array-like
    window_shape : int or tuple of int
    axis : int or tuple of int, optional
        The axis of each extent of the window; all axes, if None.
    subok : bool
        Accepted as in NumPy.
    writeable : bool
        Has no effect: elements of windows share memory, so that windows are only read.

    Returns
    -------
    Tensor
        A view: values written to the array show in its windows.

    Raises
    ------
    ShapeError
        If a window does not fit.
    ArgumentError
        If windows are written to.

    Examples
    --------
    >>> sliding_window_view([1.0, 2.0, 3.0, 4.0], 3).tolist()
    [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]
    """
    node = as_node(x)
    extents = integers(window_shape, "window_shape")
    axes = tuple(range(node.ndim)) if axis is None else tuple([axis_of(k, node.ndim) for k in integers(axis, "axis")])
    if len(axes) != len(extents) or any(width < 0 for width in extents):
        message = f"sliding_window_view needs an extent for each of the axes {axes}, but got {extents}."
        raise ShapeError(message)
    del subok, writeable
    left = list(node.shape)
    for at, width in zip(axes, extents, strict=True):
        left[at] -= width - 1
        if left[at] < 0:
            message = f"A window of extent {width} does not fit into axis {at} of shape {node.shape}."
            raise ShapeError(message)
    if not isinstance(x, Tensor):
        return wrap(windows_node(node, extents, axes))
    from ...record.shared_memory import view
    from ...record.view_chain import WINDOWS, Moves

    return view(x, Moves([(WINDOWS, (extents, axes))]))
