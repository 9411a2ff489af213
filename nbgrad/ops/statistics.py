"""Statistics: mean, var, std, average, median, quantiles, covariance.

In: array-likes. Out: Tensors. Called by users and by Tensor's methods. Variances are computed in two passes: the mean
first, then the mean of squared deviations. The derivative of `std` where all elements are equal is 0, as a norm's is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..graph.ir import INT64, Node, broadcast, elementwise
from ..graph.primitives import argsort, cast, gather, iota, reduce, reshape, transpose
from ..runtime.evaluate import require
from ..tensor import Tensor
from .lifting import FLOAT64, as_node
from .operands import (
    FLOAT16,
    FLOAT32,
    Dtype,
    axes_of,
    cut,
    deliver,
    everywhere,
    filled,
    inexact,
    keep,
    only,
    promote,
    real_dtype,
    safe_sqrt,
    scalar,
    take_last,
)
from .reductions import mask_of, not_nan, reduce_ufunc

# ----- On nodes -----


def _dtypes(node: Node, dtype: Any) -> tuple[Dtype, Dtype]:
    """The dtype to compute in and the dtype of the result; float16 is computed in float32."""
    if dtype is not None:
        wanted = real_dtype(dtype)
        return wanted, wanted
    if node.dtype.kind != "f":
        return FLOAT64, FLOAT64
    return (FLOAT32 if node.dtype == FLOAT16 else node.dtype), node.dtype


def _count(node: Node, axes: tuple[int, ...], mask: Node | None, keepdims: bool) -> Node:
    """How many elements are averaged: 0-d, or with a mask one number per result."""
    if mask is None:
        return scalar(math.prod(node.shape[axis] for axis in axes), node.dtype)
    return _total(cast(mask, node.dtype), axes, keepdims)


def _total(node: Node, axes: tuple[int, ...], keepdims: bool) -> Node:
    total = reduce("sum", node, axes)
    return reshape(total, keep(node.shape, axes)) if keepdims else total


def _mean(node: Node, axes: tuple[int, ...], mask: Node | None, keepdims: bool) -> Node:
    count = _count(node, axes, mask, keepdims)
    if mask is not None:
        node = elementwise("select", mask, node, filled(node.shape, 0.0, node.dtype))
    return _total(node, axes, keepdims) / count


def mean_node(node: Node, axis: Any = None, dtype: Any = None, keepdims: bool = False, where: Any = True) -> Node:
    """The mean over axes, on a node."""
    axes = axes_of(axis, node.ndim)
    work, final = _dtypes(node, dtype)
    if work.kind != "f":
        # NumPy divides the integer sum and casts back.
        total = cast(reduce_ufunc("add", node, axes, keepdims, where=where, dtype=work), FLOAT64)
        count = _count(cast(node, FLOAT64), axes, mask_of(where, node), keepdims)
        return cast(total / count, work)
    return cast(_mean(cast(node, work), axes, mask_of(where, node), keepdims), final)


def _dropped(node: Node, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([n for axis, n in enumerate(node.shape) if axis not in axes])


def var_node(
    node: Node,
    axis: Any = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: Any = True,
    mean: Any = None,
) -> Node:
    """The variance over axes, on a node."""
    axes = axes_of(axis, node.ndim)
    work, final = _dtypes(node, dtype)
    mask = mask_of(where, node)
    x = cast(node, work)
    center = _mean(x, axes, mask, True) if mean is None else cast(as_node(mean), work)
    if np.broadcast_shapes(center.shape, x.shape) != x.shape:
        message = f"mean has shape {center.shape}, which does not broadcast to the array's shape {x.shape}."
        raise ShapeError(message)
    deviation = x - center
    square = deviation * deviation
    if mask is not None:
        square = elementwise("select", mask, square, filled(x.shape, 0.0, work))
    total = _total(square, axes, keepdims)
    if mask is None:
        size = math.prod(x.shape[axis] for axis in axes)
        degrees = scalar(size - ddof if size > ddof else 0.0, work)
    else:
        degrees = elementwise("maximum", _count(x, axes, mask, keepdims) - scalar(ddof, work), 0.0)
    return cast(total / degrees, final)


def _freedom(ddof: float, correction: float | None) -> float:
    if correction is None:
        return ddof
    if ddof != 0:
        message = "Give either ddof or correction, not both: they mean the same."
        raise ArgumentError(message)
    return correction


# ----- Means and variances -----


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Tensor:
    """Arithmetic mean over axes.

    Parameters
    ----------
    a : array-like
    axis : int, tuple of int or None
        The axes to average over; None for all.
    dtype : dtype, optional
        The dtype to compute in. Default: float64 for integers; float16 is computed in float32 and cast back.
    out : Tensor or ndarray, optional
    keepdims : bool
    where : array-like of bool

    Returns
    -------
    Tensor
    """
    return deliver(mean_node(as_node(a), axis, dtype, keepdims, where), out)


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Tensor:
    """Variance over axes: the mean of squared deviations from the mean, whose divisor is the count minus `ddof`."""
    return deliver(var_node(as_node(a), axis, dtype, _freedom(ddof, correction), keepdims, where, mean), out)


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Tensor:
    """Standard deviation over axes, the root of `var`. Its derivative is 0 where all elements are equal."""
    variance = var_node(as_node(a), axis, dtype, _freedom(ddof, correction), keepdims, where, mean)
    return deliver(safe_sqrt(variance), out)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """Weighted mean over axes; with `returned`, also the sum of weights."""
    node = as_node(a)
    axes = axes_of(axis, node.ndim)
    if weights is None:
        result = mean_node(node, axes, keepdims=keepdims)
        if not returned:
            return deliver(result)
        return deliver(result), deliver(filled(result.shape, node.size / (result.size or 1), result.dtype))
    weight = as_node(weights)
    if weight.shape != node.shape:
        if axis is None or weight.shape != tuple([node.shape[a] for a in axes]):
            message = f"weights of shape {weight.shape} fit neither the array's shape {node.shape} nor axis={axis!r}."
            raise ShapeError(message)
        order = sorted(range(len(axes)), key=lambda k: axes[k])
        weight = reshape(
            transpose(weight, tuple(order)), tuple([n if k in axes else 1 for k, n in enumerate(node.shape)])
        )
    node, weight = (inexact(v) for v in promote([node, weight]))
    total = reduce_ufunc("add", broadcast(weight, node.shape), axes, keepdims)
    result = reduce_ufunc("add", elementwise("multiply", node, weight), axes, keepdims) / total
    return (deliver(result), deliver(total)) if returned else deliver(result)


# ----- Without NaN -----


def _number_mask(node: Node, where: Any) -> Any:
    """The `where` of a NaN-ignoring function."""
    numbers, mask = not_nan(node), mask_of(where, node)
    if numbers is None or mask is None:
        found = numbers if numbers is not None else mask
        return True if found is None else Tensor._of(found)
    return Tensor._of(elementwise("logical_and", numbers, mask))


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Tensor:
    """Mean over axes of the elements that are not NaN."""
    node = as_node(a)
    return deliver(mean_node(node, axis, dtype, keepdims, _number_mask(node, where)), out)


def _nan_var(node: Node, axis: Any, dtype: Any, freedom: float, keepdims: bool, where: Any, mean: Any) -> Node:
    """As `var_node`; too few elements give NaN, as in NumPy."""
    mask = _number_mask(node, where)
    result = var_node(node, axis, dtype, freedom, keepdims, mask, mean)
    if mask is True:
        return result
    count = reduce_ufunc("add", cast(as_node(mask), result.dtype), axis, keepdims)
    enough = elementwise("greater", count, freedom)
    return elementwise("select", enough, result, filled(result.shape, np.nan, result.dtype))


def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Tensor:
    """Variance over axes of the elements that are not NaN."""
    return deliver(_nan_var(as_node(a), axis, dtype, _freedom(ddof, correction), keepdims, where, mean), out)


def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Tensor:
    """Standard deviation over axes of the elements that are not NaN."""
    variance = _nan_var(as_node(a), axis, dtype, _freedom(ddof, correction), keepdims, where, mean)
    return deliver(safe_sqrt(variance), out)


# ----- Order statistics -----


def _sorted_last(node: Node, axes: tuple[int, ...]) -> Node:
    """The given axes flattened into a sorted last one."""
    kept = tuple([a for a in range(node.ndim) if a not in axes])
    n = math.prod(node.shape[a] for a in axes)
    node = reshape(transpose(node, kept + axes), (*[node.shape[a] for a in kept], n))
    return take_last(node, argsort(node))


def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Tensor:
    """Middle of the sorted elements over axes, the mean of the two middle ones if their number is even."""
    node = as_node(a)
    axes = axes_of(axis, node.ndim)
    kept = keep(node.shape, axes) if keepdims else _dropped(node, axes)
    ordered = _sorted_last(inexact(node), axes)
    n, last = ordered.shape[-1], ordered.ndim - 1
    if n == 0:
        return deliver(reshape(filled(ordered.shape[:-1], np.nan, ordered.dtype), kept), out)
    middle = cut(ordered, last, (n - 1) // 2, 2 - n % 2)
    result = reshape(mean_node(middle, last), kept)
    top = reshape(cut(ordered, last, n - 1, 1), kept)
    # NaN sorts last, so the greatest element tells whether there is one.
    return deliver(elementwise("select", elementwise("isnan", top), top, result), out)


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Tensor:
    """Quantiles over axes, by linear interpolation of the sorted elements; differentiable in `a` and in `q`."""
    only("method", method, "linear", "lower", "higher", "midpoint")
    only("weights", weights, None)
    return deliver(_quantile(as_node(a), as_node(q), axis, method, keepdims, as_node(q).weak), out)


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Tensor:
    """Percentiles over axes: `quantile` of q / 100."""
    only("method", method, "linear", "lower", "higher", "midpoint")
    only("weights", weights, None)
    q_node = as_node(q)
    return deliver(_quantile(as_node(a), inexact(q_node) / 100.0, axis, method, keepdims, q_node.weak), out)


def _quantile(node: Node, q: Node, axis: Any, method: str, keepdims: bool, weak: bool) -> Node:
    axes = axes_of(axis, node.ndim)
    node, q = inexact(node), inexact(q)
    if not weak:
        node, q = promote([node, q])
    q = cast(q, node.dtype)
    inside = elementwise("logical_and", elementwise("greater_equal", q, 0.0), elementwise("less_equal", q, 1.0))
    require(everywhere("min", inside), "Quantiles must lie between 0 and 1 (percentiles between 0 and 100).")
    kept = keep(node.shape, axes) if keepdims else _dropped(node, axes)
    ordered = _sorted_last(node, axes)
    lead, n = ordered.shape[:-1], ordered.shape[-1]
    if n == 0:
        return filled((*q.shape, *kept), np.nan, node.dtype)
    # One row per quantile, in front of the axes that stay: the sorted array, flat, read at lower and upper positions.
    full = (*q.shape, *lead)
    virtual = q * scalar(n - 1, q.dtype)
    floor = elementwise("floor", virtual)
    fraction = reshape(virtual - floor, (*q.shape, *[1] * len(lead)))
    upper = elementwise("ceil", virtual)

    def read(place: Node) -> Node:
        index = reshape(cast(place, INT64), (*q.shape, *[1] * len(lead)))
        index = broadcast(index, full)
        if ordered.ndim > 1:
            rows = reshape(iota(math.prod(lead)) * scalar(n, INT64), lead)
            index = elementwise("add", index, rows)
        return gather(reshape(ordered, (ordered.size,)), index)

    low = read(upper if method == "higher" else floor)
    result = low
    if method in ("linear", "midpoint"):
        high = read(upper)
        if method == "midpoint":
            whole = elementwise("equal", fraction, 0.0)
            fraction = elementwise(
                "select", whole, filled(fraction.shape, 0.0, q.dtype), filled(fraction.shape, 0.5, q.dtype)
            )
        result = elementwise("add", low, elementwise("multiply", high - low, fraction))
    top = broadcast(reshape(cut(ordered, ordered.ndim - 1, n - 1, 1), lead), full)
    result = elementwise("select", elementwise("isnan", top), top, result)
    return reshape(result, (*q.shape, *kept))


NUMPY = {
    np.mean: mean,
    np.var: var,
    np.std: std,
    np.average: average,
    np.nanmean: nanmean,
    np.nanvar: nanvar,
    np.nanstd: nanstd,
    np.median: median,
    np.quantile: quantile,
    np.percentile: percentile,
}
