"""Order statistics: median, quantiles, percentiles, with and without NaN.

In: array-likes. Out: Tensors. Called by users. The elements are sorted once; quantiles are read from them and
interpolated, so that they differentiate in the elements and in the quantile.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError
from ...graph.builders import argsort, cast, gather, iota, reduce, reshape, transpose
from ...graph.formulas import choose
from ...graph.ir import INT64, PART_OF, Node, broadcast, elementwise, extent
from ...record.as_node import as_node
from ...record.axes_and_dtypes import axes_of, cut, deliver, filled, inexact, keep, only, take_last
from ...record.numbers import FLOAT64
from ...record.promotion import promote
from ...record.tensor import Tensor
from ...runtime.evaluate import require
from ...runtime.memory_order import like_reduction
from ..arrays.cumulative import accumulate_ufunc
from .statistics import dropped, mean_node


def _lined(node: Node, axes: tuple[int, ...]) -> Node:
    """The given axes flattened into the last one."""
    kept = tuple([a for a in range(node.ndim) if a not in axes])
    n = math.prod(node.shape[a] for a in axes)
    return reshape(transpose(node, kept + axes), (*[node.shape[a] for a in kept], n))


def _sorted_last(node: Node, axes: tuple[int, ...]) -> Node:
    """The given axes flattened into a sorted last one."""
    rows = _lined(node, axes)
    return take_last(rows, argsort(rows))


def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Tensor:
    """Middle of the sorted elements over axes, the mean of the two middle ones if their number is even."""
    node = as_node(a)
    axes = axes_of(axis, node.ndim)
    kept = keep(node.shape, axes) if keepdims else dropped(node, axes)
    ordered = _sorted_last(inexact(node), axes)
    n, last = ordered.shape[-1], ordered.ndim - 1
    if n == 0:
        return deliver(reshape(filled(ordered.shape[:-1], np.nan, ordered.dtype), kept), out)
    middle = cut(ordered, last, (n - 1) // 2, 2 - n % 2)
    result = reshape(mean_node(middle, last), kept)
    top = reshape(cut(ordered, last, n - 1, 1), kept)
    # NaN sorts last, so the greatest element tells whether there is one.
    found = elementwise("select", elementwise("isnan", top), top, result)
    return deliver(found if keepdims else like_reduction(found, node, axes), out)


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
    """Quantiles over axes; differentiable in `a`, and in `q` where the method interpolates.

    Parameters
    ----------
    a : array-like
    q : array-like
        Between 0 and 1.
    axis : int, tuple of int or None
    out : Tensor or ndarray, optional
    overwrite_input : bool
        Has no effect.
    method : str
        One of NumPy's thirteen, which are Hyndman and Fan's nine and four of NumPy's own.
    keepdims : bool
    weights : array-like, optional
        How much each element counts, of the shape of `a` or of its axes; for the method "inverted_cdf" only. The
        derivative by them is zero: quantiles with weights jump from element to element.

    Returns
    -------
    Tensor
        With the axes of `q` in front.

    Examples
    --------
    >>> quantile(np.array([1.0, 2.0, 4.0, 7.0]), [0.25, 0.5], method="weibull").tolist()
    [1.25, 3.0]
    """
    return deliver(_quantile(as_node(a), as_node(q), axis, method, keepdims, as_node(q).weak, weights=weights), out)


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
    q_node = as_node(q)
    return deliver(
        _quantile(as_node(a), inexact(q_node) / 100.0, axis, method, keepdims, q_node.weak, weights=weights), out
    )


def nanquantile(
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
    """Quantiles over axes of the elements that are not NaN."""
    return deliver(_quantile(as_node(a), as_node(q), axis, method, keepdims, as_node(q).weak, True, weights), out)


def nanpercentile(
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
    """Percentiles over axes of the elements that are not NaN."""
    q_node = as_node(q)
    share = inexact(q_node) / 100.0
    return deliver(_quantile(as_node(a), share, axis, method, keepdims, q_node.weak, True, weights), out)


def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Tensor:
    """Middle of the sorted elements over axes that are not NaN."""
    middle = _quantile(as_node(a), as_node(0.5), axis, "linear", keepdims, True, True, any_order=True)
    return deliver(middle, out)


# ----- On nodes -----

_CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
"""Hyndman and Fan's alpha and beta (Sample quantiles in statistical packages, 1996, definitions 4 to 9)."""
_DISCRETE = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
_METHODS = (None, "linear", "midpoint", "averaged_inverted_cdf", *_DISCRETE, *_CONTINUOUS)


def _place(method: str, count: Node, q: Node) -> tuple[Node, Node, Node | None]:
    """Two places among `count` sorted elements, as floats that may be out of range, and the share of the second one.

    A discrete method has no share: the first place is the answer.
    """
    if method in ("inverted_cdf", "closest_observation", "averaged_inverted_cdf"):
        at = elementwise("multiply", count, q) - (1.5 if method == "closest_observation" else 1.0)
        before = elementwise("floor", at)
        exact = elementwise("equal", at, before)
        if method == "averaged_inverted_cdf":
            return before, before + 1.0, choose(exact, 0.5, 1.0, at)
        if method == "closest_observation":
            # The order statistic with an even number, counted from 1.
            odd = elementwise("equal", elementwise("remainder", before, 2.0), 1.0)
            exact = elementwise("logical_and", exact, odd)
        return choose(exact, before, before + 1.0, at), before, None
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        at = elementwise("multiply", count, q) + (q * (1.0 - alpha - beta) + alpha) - 1.0
    else:
        at = elementwise("multiply", q, count - 1.0)
    floor, ceil = elementwise("floor", at), elementwise("ceil", at)
    if method in ("lower", "higher", "nearest"):
        return {"lower": floor, "higher": ceil}.get(method, elementwise("rint", at)), ceil, None
    share = at - floor
    if method == "midpoint":
        share = choose(elementwise("equal", share, 0.0), 0.0, 0.5, share)
    return floor, ceil, share


def _quantile(
    node: Node,
    q: Node,
    axis: Any,
    method: str,
    keepdims: bool,
    weak: bool,
    skip: bool = False,
    weights: Any = None,
    any_order: bool = False,
) -> Node:
    """Quantiles on a node, one row per quantile in front of the axes that stay; `skip` leaves out NaN.

    Complex numbers have the order of `sort` only where `any_order` allows it, which is for medians.
    """
    if method not in _METHODS:
        message = f"A quantile knows the methods {', '.join(repr(m) for m in _METHODS[1:])}, but got {method!r}."
        raise ArgumentError(message)
    if q.ndim > 2:
        message = f"The quantiles must be a number, or an array of one or two axes, but their shape is {q.shape}."
        raise ShapeError(message)
    axes = axes_of(axis, node.ndim)
    if node.dtype.kind == "c" and not any_order:
        message = "Quantiles are of real numbers, but got complex ones. Apply them to x.real or np.abs(x)."
        raise DtypeError(message)
    given, node, q = node, inexact(node), inexact(q)
    if not weak:
        node, q = promote([node, q])
    q = cast(q, PART_OF.get(node.dtype, node.dtype))
    inside = elementwise("logical_and", elementwise("greater_equal", q, 0.0), elementwise("less_equal", q, 1.0))
    require(inside, "Quantiles must lie between 0 and 1 (percentiles between 0 and 100).", ArgumentError)
    kept = keep(node.shape, axes) if keepdims else dropped(node, axes)
    # The elements that a discrete method takes keep their dtype.
    rows = _lined(given if method in _DISCRETE and given.dtype.kind in "iuf" else node, axes)
    order = argsort(rows)
    ordered = take_last(rows, order)
    lead, n = ordered.shape[:-1], ordered.shape[-1]
    if n == 0:
        return filled((*q.shape, *kept), np.nan, node.dtype)
    full = (*q.shape, *lead)
    wide = reshape(q, (*q.shape, *[1] * len(lead)))
    last = extent(n - 1, q.dtype)
    if skip and ordered.dtype.kind in "fc":
        # NaN sorts last: the numbers of a row are its first ones.
        numbers = cast(elementwise("equal", ordered, ordered), q.dtype)
        last = elementwise("maximum", reduce("sum", numbers, (ordered.ndim - 1,)) - 1.0, 0.0)

    def read(place: Node) -> Node:
        place = elementwise("minimum", elementwise("maximum", place, 0.0), last)
        index = broadcast(cast(place, INT64), full)
        if ordered.ndim > 1:
            index = index + reshape(iota(math.prod(lead)) * extent(n, INT64), lead)
        return gather(reshape(ordered, (ordered.size,)), index)

    if weights is not None:
        result = read(_weighted_place(weights, given, axis, axes, order, ordered, q, method, skip))
    else:
        first, second, share = _place(method, last + 1.0, wide)
        result = read(first)
        if share is not None and any_order:
            # A median is a mean, also of infinite elements.
            one = broadcast(elementwise("equal", share, 0.0), result.shape)
            result = elementwise("select", one, result, (result + read(second)) * 0.5)
        elif share is not None:
            # From the nearer one, so that between an infinite and a finite element it is not always NaN.
            high = read(second)
            step = high - result
            up = elementwise("add", result, elementwise("multiply", step, share))
            down = high - elementwise("multiply", step, 1.0 - share)
            nearer = broadcast(elementwise("greater_equal", share, 0.5), step.shape)
            result = elementwise("select", nearer, down, up)
    if not skip and ordered.dtype.kind in "fc":
        top = broadcast(reshape(cut(ordered, ordered.ndim - 1, n - 1, 1), lead), full)
        result = elementwise("select", elementwise("isnan", top), top, result)
    return reshape(result, (*q.shape, *kept))


def _not_negative(weight: Node) -> Node:
    return elementwise("logical_not", elementwise("less", weight, 0))


def _weighted_place(
    weights: Any,
    node: Node,
    axis: Any,
    axes: tuple[int, ...],
    order: Node,
    ordered: Node,
    q: Node,
    method: str,
    skip: bool,
) -> Node:
    """The positions at which the share of the sorted elements' weights reaches each quantile; piecewise constant."""
    only("method", method, "inverted_cdf")
    weight = as_node(weights)
    if weight.shape != node.shape:
        if axis is None or weight.shape != tuple([node.shape[k] for k in axes]):
            message = f"weights of shape {weight.shape} fit neither the array's shape {node.shape} nor axis={axis!r}."
            raise ShapeError(message)
        places = sorted(range(len(axes)), key=lambda k: axes[k])
        weight = transpose(weight, tuple(places))
        weight = reshape(weight, tuple([n if k in axes else 1 for k, n in enumerate(node.shape)]))
    require(_not_negative(weight), "The weights of quantiles must not be negative.", ArgumentError)
    rows = take_last(cast(_lined(broadcast(weight, node.shape), axes), FLOAT64), order)
    if skip and ordered.dtype.kind == "f":
        rows = choose(elementwise("isnan", ordered), 0.0, rows, rows)
    n, at = rows.shape[-1], rows.ndim - 1
    sums = accumulate_ufunc("add", rows, at)
    total = cut(sums, at, n - 1, 1)
    usable = elementwise("logical_and", elementwise("isfinite", total), elementwise("greater", total, 0.0))
    require(usable, "The weights of quantiles must be finite, and some must not be zero.", ArgumentError)
    share = cast(sums / broadcast(total, sums.shape), q.dtype)
    sought = reshape(q, (*q.shape, *[1] * rows.ndim))
    # Elements without weight in front of all others are never taken.
    before = elementwise("logical_or", elementwise("less", share, sought), elementwise("less_equal", share, 0.0))
    return reduce("sum", cast(before, q.dtype), (before.ndim - 1,))
