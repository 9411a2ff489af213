"""Order statistics: median, quantiles, percentiles, with and without NaN.

In: array-likes. Out: Tensors. Called by users. The elements are sorted once; quantiles are read from them and
interpolated, so that they differentiate in the elements and in the quantile.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..graph.ir import INT64, Node, broadcast, elementwise, extent
from ..graph.primitives import argsort, cast, gather, iota, reduce, reshape, transpose
from ..tensor import Tensor
from .lifting import as_node
from .operands import axes_of, cut, deliver, demand, filled, inexact, keep, only, promote, take_last
from .statistics import dropped, mean_node


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
    kept = keep(node.shape, axes) if keepdims else dropped(node, axes)
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
    only("method", method, "linear", "lower", "higher", "midpoint")
    only("weights", weights, None)
    return deliver(_quantile(as_node(a), as_node(q), axis, method, keepdims, as_node(q).weak, skip=True), out)


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
    only("method", method, "linear", "lower", "higher", "midpoint")
    only("weights", weights, None)
    q_node = as_node(q)
    share = inexact(q_node) / 100.0
    return deliver(_quantile(as_node(a), share, axis, method, keepdims, q_node.weak, skip=True), out)


def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Tensor:
    """Middle of the sorted elements over axes that are not NaN."""
    return nanquantile(a, 0.5, axis, out, keepdims=keepdims)


def _quantile(node: Node, q: Node, axis: Any, method: str, keepdims: bool, weak: bool, skip: bool = False) -> Node:
    """Quantiles on a node, one row per quantile in front of the axes that stay; `skip` leaves out NaN."""
    axes = axes_of(axis, node.ndim)
    node, q = inexact(node), inexact(q)
    if not weak:
        node, q = promote([node, q])
    q = cast(q, node.dtype)
    inside = elementwise("logical_and", elementwise("greater_equal", q, 0.0), elementwise("less_equal", q, 1.0))
    demand(inside, "Quantiles must lie between 0 and 1 (percentiles between 0 and 100).")
    kept = keep(node.shape, axes) if keepdims else dropped(node, axes)
    ordered = _sorted_last(node, axes)
    lead, n = ordered.shape[:-1], ordered.shape[-1]
    if n == 0:
        return filled((*q.shape, *kept), np.nan, node.dtype)
    full = (*q.shape, *lead)
    wide = (*q.shape, *[1] * len(lead))
    last = extent(n - 1, q.dtype)
    if skip:
        # NaN sorts last: the numbers of a row are its first ones.
        numbers = cast(elementwise("equal", ordered, ordered), q.dtype)
        last = elementwise("maximum", reduce("sum", numbers, (ordered.ndim - 1,)) - 1.0, 0.0)
    virtual = elementwise("multiply", reshape(q, wide), last)
    floor, upper = elementwise("floor", virtual), elementwise("ceil", virtual)
    fraction = virtual - floor

    def read(place: Node) -> Node:
        index = broadcast(cast(place, INT64), full)
        if ordered.ndim > 1:
            index = index + reshape(iota(math.prod(lead)) * extent(n, INT64), lead)
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
    if not skip:
        top = broadcast(reshape(cut(ordered, ordered.ndim - 1, n - 1, 1), lead), full)
        result = elementwise("select", elementwise("isnan", top), top, result)
    return reshape(result, (*q.shape, *kept))


NUMPY = {
    np.median: median,
    np.quantile: quantile,
    np.percentile: percentile,
    np.nanmedian: nanmedian,
    np.nanquantile: nanquantile,
    np.nanpercentile: nanpercentile,
}
