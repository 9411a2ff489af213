"""Running sums, products and extrema, and differences of neighbours.

In: array-likes. Out: Tensors. Called by users, by Tensor's methods, and by the ufunc layer (`accumulate_ufunc`). The
scan primitives work on the last axis, so the axis is moved there and back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ...graph.builders import accumulate, cast, concatenate, recurrence, reduce, reshape
from ...graph.formulas import cumulative_product
from ...graph.ir import Node, broadcast, elementwise
from ...process.private_interfaces import NOT_GIVEN
from ...record.as_node import as_node
from ...record.axes_and_dtypes import (
    axis_of,
    cut,
    deliver,
    filled,
    from_last,
    inexact,
    integer,
    real_dtype,
    scalar,
    to_last,
    truth,
)
from ...record.promotion import promote
from ...record.tensor import Tensor
from ...runtime.memory_order import like_copy
from .joining import join
from .reductions import widened, without_nan
from .result_order import like_loop

# ----- On nodes -----


def accumulate_ufunc(name: str, node: Node, axis: Any = 0, dtype: Any = None) -> Node:
    """`getattr(np, name).accumulate` on a node.

    Parameters
    ----------
    name : {"add", "multiply", "maximum", "minimum", "logical_and", "logical_or"}
    node : Node
    axis : int
    dtype : dtype or None
        The dtype to compute in; None for NumPy's default.
    """
    at = axis_of(axis, node.ndim)
    if name in ("logical_and", "logical_or"):
        node, name = truth(node), "minimum" if name == "logical_and" else "maximum"
    elif dtype is not None:
        node = cast(node, real_dtype(dtype))
    elif name in ("add", "multiply"):
        node = cast(node, widened(node.dtype))
    if node.size == 0:
        return node
    rows = to_last(node, at)
    if name == "add":
        rows = recurrence(filled(rows.shape, 1, rows.dtype), rows)
    elif name == "multiply":
        rows = cumulative_product(rows)
    elif name in ("maximum", "minimum"):
        rows = accumulate(name, rows)
    else:
        message = f"Accumulating with {name} is not supported; use add, multiply, maximum, minimum or logical ones."
        raise ArgumentError(message)
    return like_loop(from_last(rows, at), [node])


def _running(name: str, node: Node, axis: Any, dtype: Any) -> Node:
    if axis is None:
        node, axis = reshape(node, (node.size,)), 0
    elif node.ndim == 0 and axis in (0, -1):
        node = reshape(node, (1,))
    return accumulate_ufunc(name, node, axis, dtype)


def difference(node: Node, axis: int) -> Node:
    """Each element minus the one before it; for booleans, whether they differ."""
    n = node.shape[axis]
    if n < 2:
        return cut(node, axis, 0, 0)
    name = "not_equal" if node.dtype.kind == "b" else "subtract"
    return elementwise(name, cut(node, axis, 1, n - 1), cut(node, axis, 0, n - 1))


# ----- Functions -----


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
    """Running sums along an axis (of the flat array, if None)."""
    return deliver(_running("add", as_node(a), axis, dtype), out)


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
    """Running products along an axis (of the flat array, if None); the derivative is exact where elements are zero."""
    return deliver(_running("multiply", as_node(a), axis, dtype), out)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
    """Running sums that count NaN as zero."""
    return deliver(_running("add", without_nan(as_node(a), 0.0), axis, dtype), out)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
    """Running products that count NaN as one."""
    return deliver(_running("multiply", without_nan(as_node(a), 1.0), axis, dtype), out)


def _array_api(name: str, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool) -> Tensor:
    node = as_node(x)
    if node.ndim == 0 and axis in (0, -1, None):
        node = reshape(node, (1,))
    if axis is None and node.ndim != 1:
        message = f"axis is required where the array does not have one axis, but its shape is {node.shape}."
        raise ShapeError(message)
    at = 0 if axis is None else axis_of(axis, node.ndim)
    result = accumulate_ufunc(name, node, at, dtype)
    if include_initial:
        shape = list(result.shape)
        shape[at] = 1
        first = filled(tuple(shape), 0 if name == "add" else 1, result.dtype)
        result = concatenate([like_copy(first, result), result], at)
    return deliver(result, out)


def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Tensor:
    """Running sums along an axis; with `include_initial`, from 0 on."""
    return _array_api("add", x, axis, dtype, out, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Tensor:
    """Running products along an axis; with `include_initial`, from 1 on."""
    return _array_api("multiply", x, axis, dtype, out, include_initial)


def diff(a: Any, n: int = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours along an axis, `n` times.

    Parameters
    ----------
    a : array-like
    n : int
        How often differences are taken.
    axis : int
    prepend, append : array-like, optional
        Values to put before and after the array; a number stands for one along the axis.
    """
    node = as_node(a)
    times = integer(n, "n")
    if times < 0:
        message = f"Expected n to be 0 or more, but got {times}."
        raise ArgumentError(message)
    if node.ndim == 0:
        message = "diff needs an array with at least one axis."
        raise ShapeError(message)
    if times == 0:
        return deliver(node)
    at = axis_of(axis, node.ndim)
    parts = [node]
    for extra, place in ((prepend, 0), (append, 2)):
        if extra is not None and extra is not NOT_GIVEN:
            part = as_node(extra)
            if part.ndim == 0:
                shape = list(node.shape)
                shape[at] = 1
                # NumPy makes an array of the number first, so it is not weak here.
                part = broadcast(part, tuple(shape))
            parts.insert(place, part)
    node = join(parts, at)
    for _ in range(times):
        node = difference(node, at)
    return deliver(node)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """Differences of neighbours in the flat array, between optional values."""
    node = as_node(ary)
    result = difference(reshape(node, (node.size,)), 0)
    parts = [result]
    for extra, place in ((to_begin, 0), (to_end, 2)):
        if extra is not None:
            part = as_node(extra)
            if not np.can_cast(part.dtype, node.dtype, "same_kind"):
                message = f"The dtype {part.dtype} of to_begin and to_end does not fit the array's {node.dtype}."
                raise ArgumentError(message)
            parts.insert(place, reshape(cast(part, node.dtype), (part.size,)))
    return deliver(concatenate(parts, 0))


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Tensor:
    """Integral along an axis by the trapezoidal rule, over positions `x` or steps `dx`."""
    node = as_node(y)
    at = axis_of(axis, node.ndim)
    n = node.shape[at]
    if x is None:
        step = as_node(dx)
        if step.ndim == 1:
            step = reshape(step, (step.size, *[1] * (node.ndim - at - 1)))
    else:
        place = as_node(x)
        step = difference(place, 0 if place.ndim == 1 else axis_of(axis, place.ndim))
        if place.ndim == 1:
            step = reshape(step, (step.size, *[1] * (node.ndim - at - 1)))
    length = n - 1 if n else 0
    ends = elementwise("add", cut(node, at, 1, length), cut(node, at, 0, length))
    step, ends = promote([step, ends])
    product = inexact(elementwise("multiply", step, ends))
    return deliver(reduce("sum", product * scalar(0.5, product.dtype), (at,)))
