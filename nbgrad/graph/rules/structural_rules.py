"""Rules for nodes that move elements, reduce or multiply matrices.

In: a node whose inputs are simple. Out: a simpler node of the same value, or None. Called by simplify.py.
"""

from __future__ import annotations

import math

import numpy as np

from ..builders import cast, concatenate, reduce, reshape, slice_axes, transpose
from ..ir import PRIMITIVES, Node, broadcast, extent, literal, zeros
from ..loops.loop_body import turns_of
from ..loops.loop_rows import LAST
from ..shapes import Shape, contiguous_strides, without_ones

RESHAPE, TRANSPOSE, BROADCAST, SLICE, PAD, JOIN = (
    PRIMITIVES[name] for name in "reshape transpose broadcast slice pad concatenate".split()
)


def _reshape(node: Node) -> Node | None:
    source = node.inputs[0]
    if source.shape == node.shape:
        return source
    return reshape(source.inputs[0], node.shape) if source.primitive is RESHAPE else None


def _transpose(node: Node) -> Node | None:
    source = node.inputs[0]
    axes: tuple[int, ...] = node.params[0]
    if axes == tuple(range(node.ndim)):
        return source
    if source.primitive is TRANSPOSE:
        return transpose(source.inputs[0], tuple([source.params[0][a] for a in axes]))
    moved = [a for a in axes if source.shape[a] != 1]
    return reshape(source, node.shape) if moved == sorted(moved) else None


def _broadcast(node: Node) -> Node | None:
    source = node.inputs[0]
    if source.shape == node.shape:
        return source
    if source.primitive is BROADCAST:
        return broadcast(source.inputs[0], node.shape)
    if source.primitive is RESHAPE and source.inputs[0].shape == source.shape[source.ndim - source.inputs[0].ndim :]:
        return broadcast(source.inputs[0], node.shape)
    return None


def _slice(node: Node) -> Node | None:
    source = node.inputs[0]
    ranges = node.params[0]
    if all(r == (0, n, 1) for r, n in zip(ranges, source.shape, strict=True)):
        return source
    if source.primitive is SLICE:
        inner = source.params[0]
        both = [(s0 + s * t0, n, t * t0) for (s0, _, t0), (s, n, t) in zip(inner, ranges, strict=True)]
        return slice_axes(source.inputs[0], both)
    if source.primitive is PAD and all(
        start >= lo and start + (n - 1) * step < lo + extent and start + (n - 1) * step >= lo and start < lo + extent
        for (start, n, step), (lo, _), extent in zip(ranges, source.params[0], source.inputs[0].shape, strict=True)
    ):
        moved = [(start - lo, n, step) for (start, n, step), (lo, _) in zip(ranges, source.params[0], strict=True)]
        return slice_axes(source.inputs[0], moved)
    if source.primitive is RESHAPE:
        return _line(node)
    if source.primitive is JOIN:
        axis = source.params[0]
        start, n, step = ranges[axis]
        low, high = min(start, start + (n - 1) * step), max(start, start + (n - 1) * step)
        offset = 0
        for piece in source.inputs:
            if offset <= low and high < offset + piece.shape[axis]:
                return slice_axes(piece, [*ranges[:axis], (start - offset, n, step), *ranges[axis + 1 :]])
            offset += piece.shape[axis]
    return None


def _line(node: Node) -> Node | None:
    """A slice of a reshaped array that varies along one axis, as a slice along one axis of that array."""
    source = node.inputs[0]
    inner = source.inputs[0]
    if sum([n != 1 for n in node.shape]) > 1:
        return None
    start, step = 0, 0
    for (first, n, pace), stride in zip(node.params[0], contiguous_strides(source.shape), strict=True):
        start += first * stride
        step += pace * stride if n != 1 else 0
    axes = [*zip(inner.shape, contiguous_strides(inner.shape), strict=True)]
    places = [start // stride % n for n, stride in axes]
    for axis, (n, stride) in enumerate(axes):
        if step % stride == 0 and 0 <= places[axis] + (node.size - 1) * (step // stride) < n:
            ranges = [(place, 1, 1) for place in places]
            ranges[axis] = (places[axis], node.size, step // stride if node.size > 1 else 1)
            return reshape(slice_axes(inner, ranges), node.shape)
    return None


def _concatenate(node: Node) -> Node | None:
    axis = node.params[0]
    pieces: list[Node] = []
    for piece in node.inputs:
        if piece.primitive is JOIN and piece.params[0] == axis:
            pieces.extend(piece.inputs)
        elif piece.shape[axis]:
            pieces.append(piece)
    merged = [pieces[0]]
    for piece in pieces[1:]:
        both = _neighbours(merged[-1], piece, axis)
        if both is None:
            merged.append(piece)
        else:
            merged[-1] = both
    return concatenate(merged, axis) if tuple(merged) != node.inputs else None


def _neighbours(first: Node, second: Node, axis: int) -> Node | None:
    """One slice for two of the same array, if the second starts where the first ends."""
    if first.primitive is not SLICE or second.primitive is not SLICE or first.inputs != second.inputs:
        return None
    mine, theirs = list(first.params[0]), list(second.params[0])
    start, count, step = mine[axis]
    following, more, pace = theirs[axis]
    theirs[axis] = (following - count * step, count, pace)
    if theirs != mine:
        return None
    mine[axis] = (start, count + more, step)
    return slice_axes(first.inputs[0], mine)


def _item(node: Node) -> Node | None:
    """A carried value of a loop without turns is its first."""
    kind, position = node.params
    loop = node.inputs[0]
    return loop.inputs[position] if kind == LAST and not turns_of(loop) else None


def _reduction(node: Node) -> Node | None:
    source = node.inputs[0]
    axes: tuple[int, ...] = node.params[0]
    if not axes:
        return source
    if source.size == 0 and node.name in ("sum", "prod"):
        return broadcast(literal(0 if node.name == "sum" else 1, node.dtype), node.shape)
    trivial = [axis for axis in axes if source.shape[axis] == 1]
    if trivial:
        kept = tuple([n for axis, n in enumerate(source.shape) if axis not in trivial])
        moved = [axis - sum(t < axis for t in trivial) for axis in axes if axis not in trivial]
        if node.name == "sum" and not moved and node.dtype.kind == "f":
            # A sum begins with zero, so that it is never minus zero.
            return reshape(source, kept) + 0.0
        return reduce(node.name, reshape(source, kept), moved)
    if source.primitive is BROADCAST:
        inner = source.inputs[0]
        extra = source.ndim - inner.ndim
        stretched = [a for a, n in enumerate(source.shape) if n != 1 and (a < extra or inner.shape[a - extra] == 1)]
        count = math.prod(source.shape[a] for a in axes if a in stretched)
        if stretched and (node.name in ("sum", "max", "min") or count == 1):
            leading = reshape_leading(inner, source.ndim)
            reduced = reduce(node.name, leading, [a for a in axes if a not in stretched])
            kept: Shape = tuple([n for a, n in enumerate(leading.shape) if a not in axes])
            reduced = broadcast(reshape(reduced, kept), node.shape)
            return reduced if count == 1 or node.name != "sum" else reduced * extent(count, node.dtype)
    if node.name in ("sum", "prod") and node.dtype == np.float16:
        return cast(reduce(node.name, cast(source, np.dtype(np.float32)), axes), node.dtype)
    if source.name == node.name:
        remaining = [a for a in range(source.inputs[0].ndim) if a not in source.params[0]]
        return reduce(node.name, source.inputs[0], (*source.params[0], *[remaining[a] for a in axes]))
    return None


def reshape_leading(node: Node, ndim: int) -> Node:
    """The node with axes of length 1 in front, so that it has `ndim` axes."""
    return reshape(node, (1,) * (ndim - node.ndim) + node.shape)


def _matmul(node: Node) -> Node | None:
    a, b = node.inputs
    batch, m, k = a.shape
    n = b.shape[2]
    if k == 0:
        return zeros(node.shape, node.dtype)
    if k == 1:
        return broadcast(a, (batch, m, n)) * broadcast(b, (batch, m, n))
    if m == 1 and n == 1:
        product = reshape(a, (batch, k)) * reshape(b, (batch, k))
        return reshape(reduce("sum", product, (1,)), (batch, 1, 1))
    return None


def is_turned(a: Node, b: Node) -> bool:
    """Whether matrices are the transposes of others, (B, m, k) and (B, k, m)."""
    (one, axes), (other, turned) = _origin(a), _origin(b)
    return one is other and axes == (turned[0], turned[2], turned[1])


def are_same(a: Node, b: Node) -> bool:
    """Whether arrays of one shape have the same elements, seen through transposes and axes of one element."""
    return a is b or (a.shape == b.shape and _origin(a) == _origin(b))


def _origin(node: Node) -> tuple[Node, tuple[int | None, ...]]:
    """The node whose elements another one has, with its axes in an order, and that order; None for axes of 1."""
    places = [axis if n != 1 else None for axis, n in enumerate(node.shape)]
    while True:
        source = node.inputs[0] if node.inputs else node
        if node.primitive is TRANSPOSE:
            places = [place if place is None else node.params[0][place] for place in places]
        elif node.primitive is RESHAPE and without_ones(source.shape) == without_ones(node.shape):
            longer = iter([axis for axis, n in enumerate(source.shape) if n != 1])
            moved = {axis: next(longer) for axis, n in enumerate(node.shape) if n != 1}
            places = [place if place is None else moved[place] for place in places]
        else:
            return node, tuple(places)
        node = source


STRUCTURAL = {
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "concatenate": _concatenate,
    "sum": _reduction,
    "prod": _reduction,
    "max": _reduction,
    "min": _reduction,
    "matmul": _matmul,
    "item": _item,
}
"""The rule of each primitive that has one."""
