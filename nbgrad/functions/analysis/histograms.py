"""Histograms: how many samples, or how much weight, falls into each bin; and the edges of the bins.

In: array-likes. Out: Tensors. Called by users and through table.py. Counts are piecewise constant: their derivative is
zero. Derivatives exist by the weights, by the bin widths of a density, and by edges that were found from the least and
the greatest sample.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError
from ...graph.builders import cast, reduce, reshape, scatter_add
from ...graph.ir import BOOL, INT64, Node, elementwise, extent
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import cut, filled, inexact, nodes_of, truth
from ...record.numbers import FLOAT64
from ...record.promotion import common_dtype, promote
from ...record.tensor import Tensor
from ...runtime.evaluate import concrete, require
from ..arrays.creation import linspace
from ..arrays.cumulative import difference
from ..arrays.sorting import searchsorted_node

_range = range


def _flat(node: Node) -> Node:
    return reshape(node, (node.size,))


# ----- Edges -----


def _outer_edges(samples: Node, limits: Any, name: str) -> tuple[Node, Node]:
    """The first and the last edge: given, or the least and the greatest sample."""
    if limits is not None:
        first, last = (as_node(limit) for limit in limits)
    elif samples.size == 0:
        first, last = as_node(0.0), as_node(1.0)
    else:
        first, last = (reduce(kind, samples, range(samples.ndim)) for kind in ("min", "max"))
    first, last = promote([first, last])
    if first.dtype.kind == "f":
        finite = elementwise("isfinite", first - first + (last - last))
        require(finite, f"{name} needs a finite range, but a limit is NaN or infinite.", ArgumentError)
    require(
        elementwise("less_equal", first, last),
        f"{name} needs a range whose first limit is the smaller one.",
        ArgumentError,
    )
    # A range of no width is widened, so that nothing is divided by zero.
    first, last = inexact(first), inexact(last)
    half = elementwise("select", elementwise("equal", first, last), _half(first), filled((), 0.0, first.dtype))
    return first - half, last + half


def _half(like: Node) -> Node:
    return filled((), 0.5, like.dtype)


def _edges(samples: Node, bins: Any, limits: Any, weighted: bool, name: str, alone: bool = False) -> Node:
    """The edges of the bins, from a number of bins, the name of a rule, or the edges themselves.

    `alone` tells that the dtype follows from the limits alone, if there are any.
    """
    if isinstance(bins, str):
        if weighted:
            message = f"{name} cannot find the number of bins of weighted samples; give it as a number."
            raise DtypeError(message)
        # NumPy's rules count bins; where these are follows from the samples.
        known = concrete(samples, "array")
        around = None if limits is None else [concrete(as_node(v), "float").item() for v in limits]
        bins = len(np.histogram_bin_edges(known, bins, None if around is None else (around[0], around[1]))) - 1
    if np.ndim(bins) == 0:
        try:
            count = operator.index(bins)
        except TypeError:
            message = f"{name} needs bins to be an integer, the name of a rule, or edges, but got {bins!r}."
            raise DtypeError(message) from None
        if count < 1:
            message = f"{name} needs at least one bin, but got bins={count}."
            raise ArgumentError(message)
        first, last = _outer_edges(samples, limits, name)
        given = [] if limits is None else [as_node(limit) for limit in limits]
        wide = common_dtype(given if given and alone else [*given, samples])
        return cast(linspace(wrap(first), wrap(last), count + 1)._node, wide if wide.kind == "f" else first.dtype)
    edges = as_node(bins)
    if edges.ndim != 1 or edges.size < 2:
        message = f"{name} needs 1-d edges, at least two, but their shape is {edges.shape}."
        raise ShapeError(message)
    n = edges.size - 1
    rising = elementwise("less_equal", cut(edges, 0, 0, n), cut(edges, 0, 1, n))
    require(rising, f"The edges of {name} must increase.", ArgumentError)
    return edges


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:
    """The edges of the bins that `histogram` would use.

    Parameters
    ----------
    a : array-like
    bins : int, str or array-like
        How many, the name of one of NumPy's rules, or the edges themselves.
    range : pair of numbers, optional
        The first and the last edge; the least and the greatest sample by default, which differentiate.
    weights : array-like, optional
        Has no effect on the edges, as in NumPy.

    Returns
    -------
    Tensor of shape (bins + 1,)

    Examples
    --------
    >>> histogram_bin_edges(np.array([0.0, 4.0, 1.0]), 2).tolist()
    [0.0, 2.0, 4.0]
    """
    return wrap(_edges(_flat(as_node(a)), bins, range, weights is not None, "histogram_bin_edges"))


# ----- Counts -----


def _bin_of(samples: Node, edges: Node) -> Node:
    """The bin of each sample; those outside, and NaN, get the number of bins. The last bin has both its edges."""
    n = edges.size - 1
    values, bounds = promote([samples, edges])
    found = searchsorted_node(bounds, values, "right") - 1
    last = elementwise("equal", values, reshape(cut(bounds, 0, n, 1), ()))
    found = elementwise("select", last, extent(n - 1, INT64), found)
    inside = elementwise("logical_and", elementwise("greater_equal", found, 0), elementwise("less", found, n))
    return elementwise("select", inside, found, extent(n, INT64))


def _weights(weights: Any, count: int, name: str) -> Node:
    node = _flat(as_node(weights))
    if node.size != count:
        message = f"{name} needs one weight for each of {count} samples, but got {node.size}."
        raise ShapeError(message)
    return cast(node, INT64) if node.dtype == BOOL else node


def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """The number of samples in each bin, or the sum of their weights; and the edges of the bins.

    Parameters
    ----------
    a : array-like
        Its derivative is zero, except through edges that are found from it.
    bins : int, str or array-like
        How many, the name of one of NumPy's rules, or the edges themselves.
    range : pair of numbers, optional
        The first and the last edge; the least and the greatest sample by default.
    density : bool, optional
        Whether to divide by the widths of the bins and by the total.
    weights : array-like, optional
        One for each sample; they differentiate.

    Returns
    -------
    hist : Tensor of shape (bins,)
        Integers for samples without weights.
    bin_edges : Tensor of shape (bins + 1,)

    Examples
    --------
    >>> [part.tolist() for part in histogram(np.array([1.0, 2.0, 1.0]), bins=[0.0, 1.0, 2.0, 3.0])]
    [[0, 2, 1], [0.0, 1.0, 2.0, 3.0]]
    """
    samples = _flat(as_node(a))
    samples = cast(samples, np.dtype(np.uint8)) if samples.dtype == BOOL else samples
    edges = _edges(samples, bins, range, weights is not None, "histogram")
    n = edges.size - 1
    amounts = filled(samples.shape, 1, INT64) if weights is None else _weights(weights, samples.size, "histogram")
    counts = cut(scatter_add(n + 1, _bin_of(samples, edges), amounts), 0, 0, n)
    if density:
        widths = cast(difference(edges, 0), FLOAT64)
        shares, widths = promote([inexact(counts), widths])
        counts = shares / widths / reduce("sum", shares, (0,))
    return wrap(counts), wrap(edges)


def _per_axis(value: Any, count: int, name: str) -> list[Any]:
    """One value for each axis, from one for all or from a sequence of them."""
    if (
        value is None
        or not isinstance(value, list | tuple | np.ndarray | Tensor)
        or (isinstance(value, np.ndarray | Tensor) and value.ndim == 0)
    ):
        return [value] * count
    if len(value) != count:
        message = f"{name} needs one entry for each of {count} axes, but got {len(value)}."
        raise ShapeError(message)
    return [value[k] for k in _range(count)]


def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """The number of samples with several coordinates in each cell of a grid, or the sum of their weights.

    Parameters
    ----------
    sample : array-like of shape (N, D), or sequence of D arrays of shape (N,)
    bins : int, or sequence of int or array-like
        For all axes, or for each: how many bins, or their edges.
    range : sequence of pairs, optional
    density : bool, optional
    weights : array-like of shape (N,), optional

    Returns
    -------
    H : Tensor
        Floats, one axis for each coordinate.
    edges : tuple of Tensor
    """
    if isinstance(sample, list | tuple):
        columns = [_flat(node) for node in nodes_of(sample)]
    else:
        node = as_node(sample)
        if node.ndim == 1:
            node = reshape(node, (node.size, 1))
        if node.ndim != 2:
            message = f"histogramdd needs samples of shape (N, D), but the shape is {node.shape}."
            raise ShapeError(message)
        columns = [reshape(cut(node, 1, k, 1), node.shape[:1]) for k in _range(node.shape[1])]
    return _grid(columns, bins, range, density, weights, "histogramdd")


def _grid(columns: Sequence[Node], bins: Any, limits: Any, density: Any, weights: Any, name: str) -> Any:
    d, count = len(columns), columns[0].size
    if any(column.size != count for column in columns):
        message = f"{name} needs as many values of each coordinate, but got {[column.size for column in columns]}."
        raise ShapeError(message)
    each = zip(columns, _per_axis(bins, d, "bins"), _per_axis(limits, d, "range"), strict=True)
    edges = [_edges(column, b, r, False, name, True) for column, b, r in each]
    shape = tuple([edge.size - 1 for edge in edges])
    place = filled((count,), 0, INT64)
    outside = filled((count,), False, BOOL)
    for column, edge, n in zip(columns, edges, shape, strict=True):
        found = _bin_of(column, edge)
        outside = elementwise("logical_or", outside, elementwise("equal", found, n))
        place = place * n + found
    size = math.prod(shape)
    place = elementwise("select", outside, extent(size, INT64), place)
    amounts = filled((count,), 1.0, FLOAT64) if weights is None else cast(_weights(weights, count, name), FLOAT64)
    counts = reshape(cut(scatter_add(size + 1, place, amounts), 0, 0, size), shape)
    if density:
        total = reduce("sum", counts, _range(d))
        for axis, edge in enumerate(edges):
            widths = cast(difference(edge, 0), FLOAT64)
            counts = counts / reshape(widths, tuple([n if k == axis else 1 for k, n in enumerate(shape)]))
        counts = counts / total
    return wrap(counts), tuple([wrap(edge) for edge in edges])


def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """The number of points in each cell of a grid, or the sum of their weights; and the edges along x and along y.

    Parameters
    ----------
    x, y : array-like of shape (N,)
    bins : int, array-like, or pair of them
    range : pair of pairs, optional
    density : bool, optional
    weights : array-like of shape (N,), optional

    Returns
    -------
    H : Tensor of shape (nx, ny)
    xedges, yedges : Tensor
    """
    if isinstance(bins, list | tuple | np.ndarray | Tensor) and len(bins) not in (1, 2):
        bins = [bins, bins]
    counts, edges = _grid([_flat(as_node(x)), _flat(as_node(y))], bins, range, density, weights, "histogram2d")
    return counts, *edges


def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """The number of the bin that each element falls into; bins increase or decrease."""
    values, edges = promote([as_node(x), as_node(bins)])
    if values.dtype.kind == "c":
        message = "digitize works on real numbers, but got complex ones. Apply it to x.real or np.abs(x)."
        raise DtypeError(message)
    if edges.ndim != 1:
        message = f"digitize needs 1-d bins, but their shape is {edges.shape}."
        raise ShapeError(message)
    n = edges.size
    first, second = cut(edges, 0, 0, max(n - 1, 0)), cut(edges, 0, min(n, 1), max(n - 1, 0))

    def all_of(name: str) -> Tensor:
        steps = elementwise(name, first, second)
        return wrap(reduce("min", steps, (0,)) if steps.size else truth(as_node(1)))

    if all_of("less_equal"):
        return wrap(searchsorted_node(edges, values, "left" if right else "right"))
    if not all_of("greater_equal"):
        message = "The bins given to digitize must increase or decrease."
        raise ShapeError(message)
    found = searchsorted_node(cut(edges, 0, n - 1, n, -1), values, "left" if right else "right")
    return wrap(elementwise("subtract", extent(n, INT64), found))
