"""The table of primitives: every operation that a graph can hold, with its kind and its shape rule.

In: nothing. Out: `PRIMITIVES` filled, and small builders for the primitives that take parameters. The table of
derivatives (derivatives.py) and the reference interpreter (interpret.py) list the same names in the same order.
Everything else that users call is composed from these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .ir import (
    BOOL,
    COMPLEX_OF,
    INT64,
    PART_OF,
    PRIMITIVES,
    Node,
    Params,
    Primitive,
    ShapeRule,
    elementwise,
    extent,
    make,
    plain_dtype,
)
from .shapes import Shape

FLOAT_UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh "
    "arccosh arctanh erf erfc gammaln digamma expit logit"
).split()
ANY_UNARY = "negative absolute sign floor ceil rint trunc invert".split()
BINARY = (
    "add subtract multiply divide power remainder fmod floor_divide maximum minimum fmax fmin copysign hypot arctan2 "
    "logaddexp logaddexp2 xlogy polygamma sinc_derivative nextafter bitwise_and bitwise_or bitwise_xor left_shift "
    "right_shift random_bits"
).split()
COMPARISON = (
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not isnan isinf "
    "isfinite signbit"
).split()


def _same(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    """Shape and dtype of the last input; every input has them (a select's condition is bool)."""
    last = inputs[-1]
    for node in inputs:
        assert node.shape == last.shape, (node, last)
    return last.shape, last.dtype


def _compare(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return _same(inputs, params)[0], BOOL


def _first(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    """A custom rule's value is its first input; the others are what the rule reads."""
    return inputs[0].shape, inputs[0].dtype


def _cast(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return inputs[0].shape, params[0]


def _join(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    shape, dtype = _same(inputs, params)
    return shape, COMPLEX_OF[dtype]


def _part(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return inputs[0].shape, PART_OF[inputs[0].dtype]


def _iota(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return (params[0],), INT64


def _reshape(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    assert math.prod(params[0]) == inputs[0].size, (inputs[0], params)
    return params[0], inputs[0].dtype


def _transpose(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    shape = inputs[0].shape
    return tuple([shape[axis] for axis in params[0]]), inputs[0].dtype


def _broadcast(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return params[0], inputs[0].dtype


def _slice(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return tuple([length for _, length, _ in params[0]]), inputs[0].dtype


def _pad(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return tuple([lo + n + hi for n, (lo, hi) in zip(inputs[0].shape, params[0], strict=True)]), inputs[0].dtype


def _concatenate(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    axis = params[0]
    shape = list(inputs[0].shape)
    shape[axis] = sum(node.shape[axis] for node in inputs)
    return tuple(shape), inputs[0].dtype


def _reduce(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    axes = params[0]
    return tuple([n for axis, n in enumerate(inputs[0].shape) if axis not in axes]), inputs[0].dtype


def _gather(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    source, index = inputs
    assert source.ndim == 1 and index.dtype == INT64, inputs
    return index.shape, source.dtype


def _scatter_add(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    index, updates = inputs
    assert index.shape == updates.shape and index.dtype == INT64, inputs
    return (params[0],), updates.dtype


def _scatter_last(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return (params[0],), INT64


def _argsort(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return inputs[0].shape, INT64


def _matmul(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    a, b = inputs
    assert a.ndim == b.ndim == 3 and a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1], inputs
    return (a.shape[0], a.shape[1], b.shape[2]), a.dtype


def _unfold(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    count, channels = inputs[0].shape[:2]
    return (channels, *params[0], count, *params[4]), inputs[0].dtype


def _fold(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    channels, kh, kw, count, oh, ow = inputs[0].shape
    assert (kh, kw) == params[0] and (oh, ow) == params[4], (inputs, params)
    return (count, channels, *params[5]), inputs[0].dtype


def _window_argmax(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return (*inputs[0].shape[:2], *params[4]), INT64


def _lu(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    (a,) = inputs
    assert a.ndim == 3 and a.shape[1] == a.shape[2], inputs
    return (a.shape[0], a.shape[1] + 2, a.shape[1]), a.dtype


def _triangular_solve(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    a, b = inputs
    assert a.ndim == b.ndim == 3 and a.shape == (*b.shape[:2], b.shape[1]) and a.dtype == b.dtype, inputs
    return b.shape, b.dtype


def _complete_pivots(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return (inputs[0].shape[0], 2, inputs[0].shape[1]), INT64


def _host(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    from .host_functions import shape_rule

    return shape_rule(tuple(inputs), params)


def _given(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    message = "source nodes are made by their own builders in ir.py"
    raise AssertionError(message)


def _table(kind: str, rule: ShapeRule, names: Sequence[str]) -> None:
    for name in names:
        PRIMITIVES[name] = Primitive(name, kind, rule, boolean=rule is _compare)


# ----- Sources -----
_table("source", _given, ["input", "constant", "literal"])
_table("source", _iota, ["iota"])
# ----- Elementwise: all operands have one shape -----
_table("elementwise", _same, FLOAT_UNARY)
_table("elementwise", _same, ANY_UNARY)
_table("elementwise", _same, BINARY)
_table("elementwise", _compare, COMPARISON)
_table("elementwise", _same, ["select", "alias", "stop_gradient"])
_table("elementwise", _first, ["custom"])
_table("elementwise", _cast, ["cast"])
_table("elementwise", _join, ["complex"])
_table("elementwise", _part, ["real", "imag"])
_table("elementwise", _gather, ["gather"])
# ----- Movement: index maps -----
_table("movement", _reshape, ["reshape"])
_table("movement", _transpose, ["transpose"])
_table("movement", _broadcast, ["broadcast"])
_table("movement", _slice, ["slice"])
_table("movement", _pad, ["pad"])
_table("movement", _concatenate, ["concatenate"])
# ----- Reductions over a set of axes, which disappear -----
_table("reduction", _reduce, ["sum", "prod", "max", "min"])
# ----- Special kernels -----
_table("special", _same, ["recurrence", "accumulate"])
_table("special", _scatter_add, ["scatter_add"])
_table("special", _scatter_last, ["scatter_last"])
_table("special", _argsort, ["argsort"])
_table("special", _matmul, ["matmul"])
_table("special", _unfold, ["unfold"])
_table("special", _fold, ["fold"])
_table("special", _window_argmax, ["window_argmax"])
_table("special", _lu, ["lu"])
_table("special", _same, ["cholesky"])
_table("special", _triangular_solve, ["triangular_solve"])
_table("special", _complete_pivots, ["complete_pivots"])
_table("special", _host, ["host"])


# ----- Builders for primitives with parameters -----


def iota(length: int) -> Node:
    """0, 1, ..., length - 1 as int64; takes no memory."""
    return make("iota", (), (length,))


def cast(node: Node, dtype: np.dtype[Any]) -> Node:
    """The node in another dtype."""
    return node if node.dtype == dtype else make("cast", (node,), (plain_dtype(dtype),))


def reshape(node: Node, shape: Shape) -> Node:
    """The same elements in C order in another shape."""
    return node if node.shape == shape else make("reshape", (node,), (shape,))


def transpose(node: Node, axes: tuple[int, ...]) -> Node:
    """Axes permuted; `axes[k]` is the input axis that becomes axis k."""
    return node if axes == tuple(range(node.ndim)) else make("transpose", (node,), (axes,))


def slice_axes(node: Node, ranges: Sequence[tuple[int, int, int]]) -> Node:
    """Per axis (start, length, step): elements start, start + step, ...; steps may be negative."""
    ranges = tuple(ranges)
    if all(r == (0, n, 1) for r, n in zip(ranges, node.shape, strict=True)):
        return node
    return make("slice", (node,), (ranges,))


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


def reduce_kept(name: str, node: Node, axes: Sequence[int]) -> Node:
    """Reduce over axes and read the result in the input's shape."""
    kept = tuple([1 if axis in axes else n for axis, n in enumerate(node.shape)])
    reduced = reshape(reduce(name, node, axes), kept)
    return make("broadcast", (reduced,), (node.shape,)) if kept != node.shape else reduced


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


def complete_pivots(a: Node) -> Node:
    """The orders of rows and of columns in which elimination meets the largest pivots: `(B, 2, n)`, as in `lu`."""
    return make("complete_pivots", (a,))
