"""Builders of nodes whose primitives take parameters: reshape, transpose, slice, pad, gather, matmul and the others.

In: nodes and parameters. Out: nodes; the node itself where there is nothing to do. Called by everything that builds
graph: the tables of primitives, the passes, the functions of arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .ir import (
    BOOL,
    HOST,
    INT64,
    PRIMITIVES,
    Node,
    broadcast,
    constant,
    elementwise,
    extent,
    make,
    plain_dtype,
    refuse_places,
)
from .shapes import Shape


def iota(length: int) -> Node:
    """0, 1, ..., length - 1 as int64; takes no memory."""
    return make("iota", (), (length,))


def cast(node: Node, dtype: np.dtype[Any]) -> Node:
    """The node in another dtype."""
    return node if node.dtype == dtype else make("cast", (node,), (plain_dtype(dtype),))


def reshape(node: Node, shape: Shape) -> Node:
    """The elements of a node, in C order, in another shape."""
    if node.shape == shape:
        return node
    if node.dtype.kind == "c":
        return make("reshape", (node,), (shape,))
    return Node(PRIMITIVES["reshape"], (node,), (shape,), shape, node.dtype)


def transpose(node: Node, axes: tuple[int, ...]) -> Node:
    """Axes permuted; `axes[k]` is the input axis that becomes axis k."""
    return node if axes == tuple(range(node.ndim)) else make("transpose", (node,), (axes,))


def slice_axes(node: Node, ranges: Sequence[tuple[int, int, int]]) -> Node:
    """Per axis (start, length, step): elements start, start + step, ...; steps may be negative."""
    ranges = tuple(ranges)
    if ranges == tuple([(0, n, 1) for n in node.shape]):
        return node
    if node.dtype.kind == "c":
        return make("slice", (node,), (ranges,))
    return Node(PRIMITIVES["slice"], (node,), (ranges,), tuple([r[1] for r in ranges]), node.dtype)


def pad(node: Node, widths: Sequence[tuple[int, int]]) -> Node:
    """Zeros before and after each axis."""
    widths = tuple(widths)
    return node if all(w == (0, 0) for w in widths) else make("pad", (node,), (widths,))


def concatenate(nodes: Sequence[Node], axis: int) -> Node:
    """Nodes joined along an axis; all other extents and the dtype agree."""
    return nodes[0] if len(nodes) == 1 else make("concatenate", tuple(nodes), (axis,))


def reduce(name: str, node: Node, axes: Sequence[int]) -> Node:
    """Reduce ("sum", "prod", "max", "min") over axes, which disappear from the shape."""
    axes = tuple(sorted(axes))
    return node if not axes else make(name, (node,), (axes,))


def gather(source: Node, index: Node) -> Node:
    """`source[index]` of a 1-d source; `index` is int64 of any shape, every element in range."""
    return make("gather", (source, index))


def take_last(node: Node, index: Node) -> Node:
    """`take_along_axis` on the last axis: per row, the elements at `index`, which is int64 and in range."""
    if node.ndim == 1:
        return gather(node, index)
    rows = math.prod(node.shape[:-1])
    first = reshape(iota(rows) * extent(node.shape[-1], INT64), (*node.shape[:-1], 1))
    return gather(reshape(node, (node.size,)), index + first)


def truth(node: Node) -> Node:
    """Whether each element is not zero (NaN is not)."""
    return node if node.dtype == BOOL else elementwise("not_equal", node, 0)


def scatter_add(size: int, index: Node, updates: Node) -> Node:
    """Zeros of length `size` with `updates` added at `index`; repeated positions add up."""
    return make("scatter_add", (index, updates), (size,))


def scatter_last(size: int, index: Node) -> Node:
    """For each of `size` positions, the flat position in `index` that names it last, or -1."""
    return make("scatter_last", (index,), (size,))


def argsort(node: Node) -> Node:
    """Positions that sort the last axis, stable, NaN last."""
    return make("argsort", (node,))


def matmul(a: Node, b: Node) -> Node:
    """`(B, m, k) @ (B, k, n)`."""
    return make("matmul", (a, b))


def recurrence(a: Node, b: Node, reverse: bool = False) -> Node:
    """`s[i] = a[i] * s[i-1] + b[i]` along the last axis, `s[-1] = 0`; from the end if `reverse`."""
    return make("recurrence", (a, b), (reverse,))


def accumulate(name: str, node: Node) -> Node:
    """Running "maximum" or "minimum" along the last axis."""
    return make("accumulate", (node,), (name,))


Pair = tuple[int, int]
Windows = tuple[Pair, Pair, Pair, Pair, Pair]
"""Windows on the last two axes: kernel, stride, dilation, padding before, number of windows. Window y has its element i
at `y * stride + i * dilation - padding`; there are zeros outside."""


def unfold(node: Node, windows: Windows) -> Node:
    """The windows of images: `(N, C, H, W)` becomes `(C, kh, kw, N, oh, ow)`."""
    return make("unfold", (node,), windows)


def fold(node: Node, windows: Windows, size: Pair) -> Node:
    """The transpose of `unfold`: windows are added up in images of the given height and width."""
    return make("fold", (node,), (*windows, size))


def window_argmax(node: Node, windows: Windows) -> Node:
    """Per window, the flat position in its plane of its first maximum; a kernel of (0, 0) means adaptive windows."""
    return make("window_argmax", (node,), windows)


def lu(a: Node) -> Node:
    """Both factors of `a[:, order] = lower @ upper`, then `order` and its inverse: `(B, n + 2, n)` of `(B, n, n)`.

    The ones on the diagonal of `upper` are left out. Positions count from 1; the product of the signs in `order` is the
    sign of the permutation.
    """
    return make("lu", (a,))


def cholesky(a: Node) -> Node:
    """The lower triangular factor of symmetric `(B, n, n)`, of which only the lower triangle is read; NaN if none."""
    return make("cholesky", (a,))


def triangular_solve(a: Node, b: Node, lower: bool, transposed: bool = False, unit: bool = False) -> Node:
    """The x of `a @ x = b` (of `a.T @ x = b`, if `transposed`) for one triangle of `(B, n, n)` and `(B, n, k)`.

    The other triangle is not read, nor is the diagonal if `unit`: it is 1.
    """
    return make("triangular_solve", (a, b), (lower, transposed, unit))


def lu_solve(factors: Node, b: Node, transposed: bool = False) -> Node:
    """The x of `a @ x = b` (of `a.T @ x = b`, if `transposed`) for the result of `lu(a)` and `(B, n, k)`."""
    return make("lu_solve", (factors, b), (transposed,))


def complete_pivots(a: Node) -> Node:
    """The orders of rows and of columns in which elimination meets the largest pivots: `(B, 2, n)`, as in `lu`."""
    return make("complete_pivots", (a,))


def symmetric_eigen(a: Node, lower: bool, vectors: bool) -> Node:
    """Eigenvalues of symmetric `(B, n, n)`, of which one triangle is read, in ascending order: `(B, n)`.

    Or `(B, n + n * n)`, with the eigenvectors behind them, one after the other, if `vectors`.
    """
    return make("symmetric_eigen", (a,), (lower, vectors))


# ----- For batches: values with a leading axis -----


def spread(node: Node, batched: Node | None, size: int) -> Node:
    """A batched operand, or the same value for all."""
    return broadcast(node, (size, *node.shape)) if batched is None else batched


def spread_all(node: Node, operands: Sequence[Node | None], size: int) -> list[Node]:
    """All operands of a node, batched."""
    return [spread(source, operand, size) for source, operand in zip(node.inputs, operands, strict=True)]


def offsets(size: int, step: int, shape: Shape) -> Node:
    """`step` times the position in the batch, in the shape (size, *shape)."""
    column = reshape(iota(size) * extent(step, INT64), (size, *[1] * len(shape)))
    return broadcast(column, (size, *shape))


# ----- Places -----


def placed(node: Node, device: Any) -> Node:
    """The node on a device; one that has another place already is refused."""
    if node.place is device:
        return node
    made = Node(PRIMITIVES["alias"], (node,), (), node.shape, node.dtype)
    if made.place is not None:
        refuse_places(node, _example(device))
    made.place = device
    return made


def beside(node: Node, other: Node) -> Node:
    """A node without a place, put on the device of `other`, of which a function has only used the shape."""
    return placed(node, other.device) if node.place is None and other.device is not None else node


def _example(device: Any) -> Node:
    node = Node(PRIMITIVES["literal"], (), (), (), BOOL)
    node.place = device
    return node


def users_constant(value: Any) -> Node:
    """An array that a user has put where it is."""
    return users_leaf(constant(value))


def users_leaf(node: Node) -> Node:
    """Let a new leaf be an array that a user has put where it is: it stays there, unless it has one element only."""
    node.tensor = True
    if node.place is None and node.size > 1:
        node.place = HOST
    return node
