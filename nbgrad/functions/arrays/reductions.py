"""Reductions: sum, prod, extrema, any, all, and the positions of extrema.

In: array-likes. Out: Tensors. Called by users, by Tensor's methods, and by the ufunc layer (`reduce_ufunc`). The four
reduction primitives do the work; masks are selects before them. Extremes share their gradient between ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ...graph.builders import cast, concatenate, reduce, reshape, take_last
from ...graph.ir import BOOL, INT64, Node, broadcast, elementwise, extent
from ...graph.primitives import PRIMITIVES
from ...graph.shapes import broadcasts
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import (
    Dtype,
    axis_of,
    cut,
    deliver,
    demand,
    filled,
    keep,
    positions,
    real_dtype,
    reduced_axes,
    truth,
)
from ...record.tensor import Tensor
from ...runtime.memory_order import copied, like_copy

_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
_IDENTITIES = {"add": 0, "multiply": 1, "logical_and": 1, "logical_or": 0}
_INT_LIMITS = {"maximum": "min", "minimum": "max"}


# ----- On nodes -----


def widened(dtype: Dtype) -> Dtype:
    """The dtype in which NumPy adds and multiplies: booleans and short integers become platform integers."""
    if dtype.kind in "bi" and dtype.itemsize < 8:
        return INT64
    if dtype.kind == "u" and dtype.itemsize < 8:
        return np.dtype(np.uint64)
    return dtype


def mask_of(where: Any, node: Node) -> Node | None:
    """The `where` argument as a boolean node of the array's shape; None if it selects everything."""
    if where is None or where is True:
        return None
    mask = cast(as_node(where), BOOL)
    if not broadcasts(mask.shape, node.shape):
        message = f"where has shape {mask.shape}, which does not broadcast to the array's shape {node.shape}."
        raise ShapeError(message)
    return broadcast(mask, node.shape)


def reduce_ufunc(
    name: str,
    node: Node,
    axis: Any = 0,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    dtype: Any = None,
) -> Node:
    """`getattr(np, name).reduce` on a node.

    Parameters
    ----------
    name : {"add", "multiply", "maximum", "minimum", "logical_and", "logical_or"}
    node : Node
    axis : int, tuple of int or None
    keepdims : bool
    initial : array-like or None
        A value to start from; None for none.
    where : array-like or None
        Elements to include.
    dtype : dtype or None
        The dtype to compute in; None for NumPy's default.
    """
    if name not in _REDUCTIONS and name not in _IDENTITIES:
        message = (
            f"Reducing with {name} is not supported; use add, multiply, maximum, minimum, logical_and or logical_or."
        )
        raise ArgumentError(message)
    axes = tuple(range(len(node.shape))) if axis is None else reduced_axes(axis, node.ndim)
    usual = initial is None and dtype is None and (where is True or where is None)
    if usual and node.dtype.kind in "fc" and name in _REDUCTIONS and 0 not in node.shape:
        result = reduce(_REDUCTIONS[name], node, axes)
        return reshape(result, keep(node.shape, axes)) if keepdims else result
    start = None if initial is None else as_node(initial)
    if name in ("logical_and", "logical_or"):
        node = truth(node)
        start = None if start is None else truth(start)
    elif dtype is not None:
        node = cast(node, real_dtype(dtype))
    elif name in ("add", "multiply"):
        node = cast(node, widened(node.dtype))
    mask = mask_of(where, node)
    empty = not node.size and any_empty(node, axes)
    if name in _INT_LIMITS and start is None and (empty or mask is not None):
        message = (
            f"{name} has no identity, so a reduction with where= needs an initial value."
            if mask is not None
            else f"The {_REDUCTIONS[name]} of no elements does not exist: the shape is {node.shape}, axes are {axes}."
        )
        raise ShapeError(message)
    if mask is not None:
        neutral = _IDENTITIES[name] if name in _IDENTITIES else _limit(node.dtype, _INT_LIMITS[name])
        node = elementwise("select", mask, node, filled(node.shape, neutral, node.dtype))
    kept = keep(node.shape, axes)
    if empty and name in _INT_LIMITS:
        assert start is not None
        return broadcast(cast(start, node.dtype), kept if keepdims else _left(node, axes))
    if empty and name not in ("add", "multiply"):
        result = filled(_left(node, axes), _IDENTITIES[name], BOOL)
    else:
        result = reduce(_primitive(name), node, axes)
    if start is not None:
        # As NumPy, from the start on: which of two zeros is the greatest depends on the order.
        result = elementwise(name, cast(start, node.dtype), result)
    return reshape(result, kept) if keepdims else result


def any_empty(node: Node, axes: tuple[int, ...]) -> bool:
    """Whether one of the axes has no elements."""
    return 0 in [node.shape[axis] for axis in axes]


def _left(node: Node, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([n for axis, n in enumerate(node.shape) if axis not in axes])


def _primitive(name: str) -> str:
    return {"logical_and": "min", "logical_or": "max"}.get(name) or _REDUCTIONS[name]


def _limit(dtype: Dtype, side: str) -> Any:
    """The least or the greatest value of a dtype."""
    if dtype.kind == "f":
        return -np.inf if side == "min" else np.inf
    if dtype.kind == "c":
        return complex(-np.inf, -np.inf) if side == "min" else complex(np.inf, np.inf)
    if dtype == BOOL:
        return side == "max"
    return int(getattr(np.iinfo(dtype), side))


LONG = 1 << 13
"""Elements of an axis along which an extremum is looked for in blocks."""
BLOCK = 1 << 10
"""Elements of a block."""


def extremum_position(node: Node, axis: Any, keepdims: bool, name: str) -> Node:
    """The first position of the "max" or "min", as int64; NaN wins, as in NumPy."""
    kept = (1,) * node.ndim
    if axis is None or (node.ndim == 0 and not reduced_axes(axis_of(axis, 1), 0)):
        node, at = reshape(node, (node.size,)), 0
    else:
        at = axis_of(axis, node.ndim)
        kept = keep(node.shape, (at,))
    n = node.shape[at]
    if n == 0:
        message = f"arg{name} of no elements does not exist: the shape is {node.shape} and the axis is {at}."
        raise ShapeError(message)
    if n >= LONG and at == node.ndim - 1 and node.dtype.kind != "c":
        result = _position_in_blocks(node, name)
    else:
        result = _first_position(node, at, name)
    return reshape(result, kept) if keepdims else result


def _position_in_blocks(node: Node, name: str) -> Node:
    """The first position of an extremum along a long last axis: the first block that attains it, and its first element
    that does, so that all others are read once."""
    last, n = node.ndim - 1, node.shape[-1]
    count, rest = divmod(n, BLOCK)
    blocks = reshape(cut(node, last, 0, count * BLOCK), (*node.shape[:-1], count, BLOCK))
    best = reduce(name, blocks, (last + 1,))
    if rest:
        left = reduce(name, cut(node, last, count * BLOCK, rest), (last,))
        best = concatenate([best, reshape(left, (*left.shape, 1))], last)
    start = _first_position(best, last, name) * extent(BLOCK, INT64)
    # Behind the end is the last element again, which is not the first one.
    shape = (*node.shape[:-1], BLOCK)
    index = broadcast(reshape(start, (*start.shape, 1)), shape) + positions(shape, last)
    elements = take_last(node, elementwise("minimum", index, extent(n - 1, INT64)))
    return start + _first_position(elements, last, name)


def _first_position(node: Node, at: int, name: str) -> Node:
    """The first position of an extremum along an axis, without that axis."""
    n = node.shape[at]
    best = reshape(reduce(name, node, (at,)), keep(node.shape, (at,)))
    hit = elementwise("equal", node, best)
    if node.dtype.kind in "fc":
        hit = elementwise("logical_or", hit, elementwise("isnan", node))
    # A vector holds twice as many positions of half the width; beside float64 in a row they only have to be packed.
    fits = n < 1 << 31 and (node.dtype.itemsize <= 4 or at < node.ndim - 1)
    small = np.dtype(np.int32) if fits else INT64
    place = elementwise("select", hit, cast(positions(node.shape, at), small), broadcast(extent(n, small), node.shape))
    return cast(reduce("min", place, (at,)), INT64)


def not_nan(node: Node) -> Node | None:
    """Whether each element is a number; None if all are, because the dtype has no NaN."""
    return elementwise("logical_not", elementwise("isnan", node)) if node.dtype.kind in "fc" else None


def without_nan(node: Node, value: float) -> Node:
    """NaN replaced by a number."""
    if node.dtype.kind not in "fc":
        return node
    found = elementwise("select", elementwise("isnan", node), filled(node.shape, value, node.dtype), node)
    return like_copy(found, node)


# ----- Functions -----


def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """Sum over axes.

    Parameters
    ----------
    a : array-like
    axis : int, tuple of int or None
        The axes to sum over; None for all.
    dtype : dtype, optional
        Dtype of the result. Booleans and integers shorter than 64 bits are added as 64-bit integers by default.
    out : Tensor or ndarray, optional
    keepdims : bool
        Whether the reduced axes stay, with extent 1.
    initial : array-like, optional
        The value to start from.
    where : array-like of bool
        Elements to include.

    Returns
    -------
    Tensor
    """
    if a.__class__ is Tensor and axis is None and out is None:
        node: Node = a._node
        usual = where is True and not keepdims and initial is None and dtype is None
        if usual and node.dtype.kind == "f" and node.shape and not node.weak and 0 not in node.shape:
            return wrap(Node(_SUM, (node,), (tuple(range(len(node.shape))),), (), node.dtype))
    return deliver(reduce_ufunc("add", as_node(a), axis, keepdims, initial, where, dtype), out)


_SUM = PRIMITIVES["sum"]


def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """Product over axes; parameters as in `sum`. Its derivative is exact where elements are zero."""
    return deliver(reduce_ufunc("multiply", as_node(a), axis, keepdims, initial, where, dtype), out)


def max(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor:
    """Greatest element over axes; parameters as in `sum`. NaN wins; equal greatest elements share the gradient."""
    return deliver(reduce_ufunc("maximum", as_node(a), axis, keepdims, initial, where), out)


def min(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor:
    """Least element over axes; parameters as in `sum`. NaN wins; equal least elements share the gradient."""
    return deliver(reduce_ufunc("minimum", as_node(a), axis, keepdims, initial, where), out)


amax, amin = max, min


def any(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> Tensor:
    """Whether any element over axes is not zero."""
    return deliver(reduce_ufunc("logical_or", as_node(a), axis, keepdims, where=where), out)


def all(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> Tensor:
    """Whether all elements over axes are not zero."""
    return deliver(reduce_ufunc("logical_and", as_node(a), axis, keepdims, where=where), out)


def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
    """Position of the first greatest element along an axis (of the flat array, if None); NaN wins."""
    return deliver(copied(extremum_position(as_node(a), axis, keepdims, "max"), "C"), out)


def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
    """Position of the first least element along an axis (of the flat array, if None); NaN wins."""
    return deliver(copied(extremum_position(as_node(a), axis, keepdims, "min"), "C"), out)


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Tensor:
    """Greatest minus least element over axes."""
    node = as_node(a)
    top = reduce_ufunc("maximum", node, axis, keepdims)
    return deliver(elementwise("subtract", top, reduce_ufunc("minimum", node, axis, keepdims)), out)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Number of elements over axes that are not zero."""
    return deliver(reduce_ufunc("add", truth(as_node(a)), axis, keepdims))


# ----- Without NaN -----


def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """Sum over axes that counts NaN as zero; parameters as in `sum`."""
    return deliver(reduce_ufunc("add", without_nan(as_node(a), 0.0), axis, keepdims, initial, where, dtype), out)


def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """Product over axes that counts NaN as one; parameters as in `sum`."""
    return deliver(reduce_ufunc("multiply", without_nan(as_node(a), 1.0), axis, keepdims, initial, where, dtype), out)


def _nan_extremum(name: str, a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, where: Any) -> Tensor:
    node = as_node(a)
    bound = -np.inf if name == "maximum" else np.inf
    result = reduce_ufunc(name, without_nan(node, bound), axis, keepdims, initial, where)
    numbers = not_nan(node)
    if numbers is not None and initial is None:
        found = reduce_ufunc("logical_or", numbers, axis, keepdims)
        result = elementwise("select", found, result, filled(result.shape, np.nan, result.dtype))
    return deliver(result, out)


def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor:
    """Greatest element over axes that is not NaN; NaN where there is none."""
    return _nan_extremum("maximum", a, axis, out, keepdims, initial, where)


def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor:
    """Least element over axes that is not NaN; NaN where there is none."""
    return _nan_extremum("minimum", a, axis, out, keepdims, initial, where)


def _nan_position(name: str, a: Any, axis: Any, out: Any, keepdims: bool) -> Tensor:
    node = as_node(a)
    numbers = not_nan(node)
    if numbers is not None and node.size:
        found = reduce_ufunc("logical_or", numbers, axis)
        demand(found, f"nanarg{name} met a slice of nothing but NaN.")
    position = extremum_position(without_nan(node, -np.inf if name == "max" else np.inf), axis, keepdims, name)
    return deliver(copied(position, "C"), out)


def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
    """Position of the first greatest element that is not NaN; a slice of nothing but NaN is an error."""
    return _nan_position("max", a, axis, out, keepdims)


def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
    """Position of the first least element that is not NaN; a slice of nothing but NaN is an error."""
    return _nan_position("min", a, axis, out, keepdims)
