"""Primitives that reduce over axes, and those that run along the last one: recurrences, running extrema.

In: nothing. Out: tables of rows. Called by primitives.py.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from operator import mul
from typing import Any

import numpy as np

from .builders import accumulate, cast, gather, iota, pad, recurrence, reduce, reshape, slice_axes, spread, transpose
from .formulas import choose, cumulative_product, either, equal, isnan
from .ir import INT64, Node, Params, broadcast, elementwise, extent, make, zeros
from .rows import Linear, ShapeAndDtype, Tangent, named, row, same

Array = np.ndarray


def _reduce(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    axes = params[0]
    return tuple([n for axis, n in enumerate(inputs[0].shape) if axis not in axes]), inputs[0].dtype


def _unsum(g: Node, node: Node) -> Node:
    source = node.inputs[0]
    kept = tuple([1 if axis in node.params[0] else n for axis, n in enumerate(source.shape)])
    return broadcast(reshape(g, kept), source.shape)


SHORT = 8
"""Elements of an axis along which products are written out."""
LONG = 512
"""The longest axis along which products of all others are running products."""


def _prod_tangent(node: Node, tangents: Sequence[Node | None]) -> Node:
    """Sum of t[i] times the product of all others, exact with zeros: products from the left times from the right."""
    x, t = node.inputs[0], tangents[0]
    assert t is not None
    axes = node.params[0]
    if len(axes) != 1:
        kept = tuple([a for a in range(x.ndim) if a not in axes])
        flat = (*[x.shape[a] for a in kept], math.prod(x.shape[a] for a in axes))
        x, t = (reshape(transpose(v, kept + axes), flat) for v in (x, t))
        axes = (len(kept),)
    return reduce("sum", _products_of_others(x, axes[0]) * t, axes)


def _products_of_others(x: Node, axis: int) -> Node:
    """Along an axis, the product of all elements but each one.

    A long axis is cut into a few parts, one below the other: the product of all others is that of the others in a
    column times that of the other columns. Running products are formed one after the other, and only of short axes.
    """
    n = x.shape[axis]
    if 1 < n <= SHORT:
        return make("concatenate", tuple(_products_of_few([_part(x, axis, k, 1) for k in range(n)])), (axis,))
    if n <= LONG:
        last = x.ndim - 1
        along = transpose(x, (*range(axis), *range(axis + 1, x.ndim), axis))
        others = _products_before(along, reverse=False) * _products_before(along, reverse=True)
        return transpose(others, (*range(axis), last, *range(axis, last)))
    m = n // SHORT
    rows = [_part(x, axis, k * m, m) for k in range(SHORT)]
    left = _part(x, axis, SHORT * m, n % SHORT)
    columns = functools.reduce(mul, rows)
    others = _products_of_others(make("concatenate", (columns, left), (axis,)) if n % SHORT else columns, axis)
    of_columns = _part(others, axis, 0, m)
    pieces = [row * of_columns for row in _products_of_few(rows)]
    if n % SHORT:
        pieces.append(_part(others, axis, m, n % SHORT))
    return make("concatenate", tuple(pieces), (axis,))


def _part(x: Node, axis: int, start: int, length: int) -> Node:
    """Some elements along an axis."""
    return slice_axes(x, [(start, length, 1) if a == axis else (0, n, 1) for a, n in enumerate(x.shape)])


def _products_of_few(elements: Sequence[Node]) -> list[Node]:
    """The product of all nodes but each one, which loops take into their bodies."""
    before = list(itertools.accumulate(elements[:-1], mul))
    after = list(itertools.accumulate(elements[:0:-1], mul))[::-1]
    inner = [left * right for left, right in zip(before, after[1:], strict=False)]
    return [after[0], *inner, before[-1]]


def _products_before(x: Node, reverse: bool) -> Node:
    """Along the last axis, the product of the elements before each (after each, if `reverse`)."""
    n = x.shape[-1]
    lead = [(0, m, 1) for m in x.shape[:-1]]
    ones = zeros((*x.shape[:-1], 1), x.dtype) + 1.0
    if n <= 1:
        return ones
    shifted = (
        make("concatenate", (slice_axes(x, [*lead, (1, n - 1, 1)]), ones), (x.ndim - 1,))
        if reverse
        else make("concatenate", (ones, slice_axes(x, [*lead, (0, n - 1, 1)])), (x.ndim - 1,))
    )
    return cumulative_product(shifted, reverse)


def _extremum_tangent(node: Node, tangents: Sequence[Node | None]) -> Node:
    """The mean of the tangents at all elements that attain the extremum; NaN if that is NaN."""
    x, t = node.inputs[0], tangents[0]
    assert t is not None
    axes = node.params[0]
    kept = tuple([1 if axis in axes else n for axis, n in enumerate(x.shape)])
    extremum = broadcast(reshape(node, kept), x.shape)
    # All elements attain a NaN, whose count is NaN.
    attained = elementwise("logical_not", elementwise("less" if node.name == "max" else "greater", x, extremum))
    count = choose(isnan(node), math.nan, reduce("sum", cast(attained, x.dtype), axes), x)
    return reduce("sum", choose(attained, t, 0.0, t), axes) / count


def _recurrence_tangent(node: Node, tangents: Sequence[Node | None]) -> Node:
    a, _ = node.inputs
    reverse = node.params[0]
    ta, tb = tangents
    drive = tb
    if ta is not None:
        term = ta * _previous(node, reverse)
        drive = term if drive is None else drive + term
    assert drive is not None
    return recurrence(a, drive, reverse)


def _previous(s: Node, reverse: bool) -> Node:
    """s[i-1] along the last axis (s[i+1] if `reverse`), zero at the start."""
    n = s.shape[-1]
    if n == 0:
        return s
    lead = [(0, m, 1) for m in s.shape[:-1]]
    none = [(0, 0)] * (s.ndim - 1)
    if reverse:
        return pad(slice_axes(s, [*lead, (1, n - 1, 1)]), [*none, (0, 1)])
    return pad(slice_axes(s, [*lead, (0, n - 1, 1)]), [*none, (1, 0)])


def _unrecurrence(g: Node, node: Node) -> Node:
    """The transpose in b: the recurrence from the other end, with the factor of the neighbour it came from."""
    reverse = node.params[0]
    return recurrence(_previous(node.inputs[0], not reverse), g, not reverse)


def _accumulate_tangent(node: Node, tangents: Sequence[Node | None]) -> Node:
    """The tangent of the element that holds the running extremum (the latest of equal ones)."""
    x, t = node.inputs[0], tangents[0]
    assert t is not None
    n = x.shape[-1]
    rows = math.prod(x.shape[:-1])
    position = broadcast(iota(n), x.shape)
    held = either(equal(x, node), isnan(x))
    position = accumulate("maximum", choose(held, position, 0, position))
    row = broadcast(reshape(iota(rows) * extent(n, INT64), (*x.shape[:-1], 1)), x.shape)
    return gather(reshape(t, (x.size,)), row + position)


def _recurrence(params: tuple[Any, ...], a: Array, b: Array) -> Array:
    out = np.empty_like(b)
    steps = range(b.shape[-1])
    state = None  # nothing to multiply with the first factor, which may be infinite
    for i in reversed(steps) if params[0] else steps:
        state = b[..., i] if state is None else a[..., i] * state + b[..., i]
        out[..., i] = state
    return out


def _over_axes(node: Node, operands: Sequence[Node | None], size: int) -> Node:
    full = spread(node.inputs[0], operands[0], size)
    return make(node.name, (full,), (tuple([axis + 1 for axis in node.params[0]]),))


def _reduction(ufunc: np.ufunc, derivative: Any) -> Any:
    return row(
        "reduction",
        _reduce,
        lambda params, x: ufunc.reduce(x, axis=params[0]),
        derivative,
        light=True,
        batch=_over_axes,
    )


REDUCTIONS = named(
    sum=_reduction(np.add, Linear(lambda node: (_unsum,), index_map=True)),
    prod=_reduction(np.multiply, Tangent(_prod_tangent)),
    max=_reduction(np.maximum, Tangent(_extremum_tangent)),
    min=_reduction(np.minimum, Tangent(_extremum_tangent)),
)
SCANS = named(
    recurrence=row("special", same, _recurrence, Tangent(_recurrence_tangent, (None, _unrecurrence))),
    accumulate=row(
        "special", same, lambda params, x: getattr(np, params[0]).accumulate(x, axis=-1), Tangent(_accumulate_tangent)
    ),
)
