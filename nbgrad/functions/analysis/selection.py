"""Selection by conditions, and functions of sampled data: interpolation, convolution, gradients.

In: array-likes. Out: Tensors. Called by users. Selection is nested `select`s, which differentiate only in what they
take; sampled functions are slices, shifted sums and gathers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError
from ...graph.builders import argsort, cast, concatenate, gather, iota, pad, reduce, reshape
from ...graph.complex_numbers import conjugate
from ...graph.ir import BOOL, INT64, Node, broadcast, elementwise, extent, zeros
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import (
    array_node,
    axes_of,
    axis_of,
    cut,
    deliver,
    demand,
    filled,
    from_last,
    inexact,
    nodes_of,
    only,
    to_last,
    truth,
)
from ...record.numbers import FLOAT64
from ...record.promotion import promote
from ...record.tensor import Tensor
from ...record.zero_dimensional import as_array
from ...runtime.evaluate import concrete
from ...runtime.memory_order import copied
from ..arrays.cumulative import accumulate_ufunc, difference
from ..arrays.reductions import extremum_position
from ..arrays.result_order import in_c_order, like_argument
from ..arrays.shaping import common_shape
from ..arrays.sorting import searchsorted_node
from ..arrays.viewing import viewing
from .long_convolutions import DTYPES, backwards, long_convolution

_FEW = 64
"""Up to this many taps, a convolution is a sum of shifted slices; beyond, NumPy's, or a gather of windows."""


# ----- By conditions -----


def _condition(value: Any, name: str) -> Node:
    node = as_node(value)
    if node.dtype != BOOL:
        message = f"The conditions given to {name} must be boolean, but one has dtype {node.dtype}."
        raise DtypeError(message)
    return node


@in_c_order
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """For each element the first choice whose condition holds.

    Parameters
    ----------
    condlist : sequence of array-like of bool
    choicelist : sequence of array-like
        As many as conditions; all broadcast together.
    default : array-like
        The values where no condition holds.
    """
    conditions = [_condition(c, "select") for c in condlist]
    choices = [as_node(c) for c in choicelist]
    if not conditions or len(conditions) != len(choices):
        message = f"select needs as many choices as conditions, but got {len(choices)} and {len(conditions)}."
        raise ArgumentError(message)
    *choices, result = promote([*choices, as_node(default)])
    shape = common_shape([node.shape for node in (*conditions, *choices, result)])
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = elementwise("select", condition, choice, result)
    return as_array(wrap(broadcast(result, shape)))


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Tensor:
    """For each element of an integer array, the element of the choice with that number."""
    only("mode", mode, "raise", "wrap", "clip")
    number, options = as_node(a), promote(nodes_of(choices))
    if number.dtype.kind not in "iub" or not options:
        message = f"choose needs integers and at least one choice, but got dtype {number.dtype} and {len(options)}."
        raise DtypeError(message)
    number = cast(number, INT64)
    n = len(options)
    if mode == "raise":
        inside = elementwise("logical_and", elementwise("greater_equal", number, 0), elementwise("less", number, n))
        demand(inside, f"The numbers given to choose must lie between 0 and {n - 1}.")
    elif mode == "wrap":
        number = elementwise("remainder", number, n)
    else:
        number = elementwise("minimum", elementwise("maximum", number, 0), n - 1)
    shape = common_shape([node.shape for node in (number, *options)])
    result = options[-1]
    for k in range(n - 2, -1, -1):
        result = elementwise("select", elementwise("equal", number, k), options[k], result)
    return deliver(copied(broadcast(result, shape), "C"), out)


# ----- Interpolation -----


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Tensor:
    """Piecewise linear interpolation of the points (xp, fp) at x; differentiable in all three.

    At a point of `xp` the derivative in x is the slope on its right; outside of the points it is 0.

    Parameters
    ----------
    x : array-like
    xp : array-like
        Increasing, 1-d.
    fp : array-like
        Values at `xp`.
    left, right : number, optional
        Values before and after the points; the first and the last of `fp` by default.
    period : number, optional
        The points repeat with this period, in any order; `left` and `right` are not used then.
    """
    given, grid, values = (as_node(v) for v in (x, xp, fp))
    at, grid = cast(reshape(given, given.shape or (1,)), FLOAT64), cast(grid, FLOAT64)
    wide = np.dtype(np.complex128) if values.dtype.kind == "c" else FLOAT64
    values = cast(values, wide)
    n = grid.size
    if n == 0 and grid.shape == values.shape:
        if not given.size:
            return wrap(zeros(given.shape, wide))
        message = "interp needs at least one point to interpolate between, but xp and fp are empty."
        raise ShapeError(message)
    if grid.ndim != 1 or values.shape != grid.shape:
        message = f"interp needs 1-d points of one length, but the shapes are {grid.shape} and {values.shape}."
        raise ShapeError(message)
    if period is not None:
        at, grid, values = _one_period(at, grid, values, as_node(period))
        left = right = None
        n += 2
    first, last = (reshape(cut(values, 0, k, 1), ()) for k in (0, n - 1))
    low, high = (reshape(cut(grid, 0, k, 1), ()) for k in (0, n - 1))
    if n == 1:
        result = broadcast(first, at.shape)
    else:
        found = searchsorted_node(grid, at, "right")
        index = elementwise("minimum", elementwise("maximum", found - 1, 0), extent(n - 2, INT64))
        x0, x1 = gather(grid, index), gather(grid, index + 1)
        y0, y1 = gather(values, index), gather(values, index + 1)
        result = (y1 - y0) / (x1 - x0) * (at - x0) + y0
        result = elementwise("select", elementwise("equal", at, high), broadcast(last, at.shape), result)
    before = first if left is None else cast(as_node(left), wide)
    after = last if right is None else cast(as_node(right), wide)
    result = elementwise("select", elementwise("less", at, low), broadcast(before, at.shape), result)
    result = elementwise("select", elementwise("greater", at, high), broadcast(after, at.shape), result)
    return wrap(reshape(result, given.shape))


def _one_period(at: Node, grid: Node, values: Node, period: Node) -> tuple[Node, Node, Node]:
    """Everything moved into one period, in order, with a point of the neighbouring periods on each side."""
    if period.ndim:
        message = f"The period of interp must be one number, but its shape is {period.shape}."
        raise ShapeError(message)
    period = elementwise("absolute", cast(period, FLOAT64))
    demand(elementwise("not_equal", period, 0.0), "The period of interp must not be zero.")
    at, grid = elementwise("remainder", at, period), elementwise("remainder", grid, period)
    order = argsort(grid)
    grid, values = gather(grid, order), gather(values, order)
    n = grid.size
    ends = [cut(grid, 0, n - 1, 1) - broadcast(period, (1,)), grid, cut(grid, 0, 0, 1) + broadcast(period, (1,))]
    around = [cut(values, 0, n - 1, 1), values, cut(values, 0, 0, 1)]
    return at, concatenate(ends, 0), concatenate(around, 0)


# ----- Convolution -----


def _convolve(signal: Node, kernel: Node, mode: str) -> Node:
    """Full, same or valid convolution of 1-d nodes, the signal being the longer.

    Products are padded, not the signal: zero times an infinite tap would be NaN.
    """
    n, m = signal.size, kernel.size
    start = {"full": 0, "same": (m - 1) // 2, "valid": m - 1}[mode]
    length = {"full": n + m - 1, "same": n, "valid": n - m + 1}[mode]
    if m <= _FEW:
        total: Node | None = None
        for k in range(m):
            # Tap k meets the signal from element k of the full result on.
            first, last = (k, k + n) if mode != "valid" else (start, start + length)
            term = elementwise("multiply", cut(signal, 0, first - k, last - first), reshape(cut(kernel, 0, k, 1), ()))
            term = pad(term, [(k, m - 1 - k)]) if mode != "valid" else term
            total = term if total is None else total + term
        assert total is not None
        return cut(total, 0, start, length) if mode == "same" else total
    if signal.dtype in DTYPES and signal.device is None and kernel.device is None:
        whole = long_convolution(signal, kernel, "valid" if mode == "valid" else "full")
        return cut(whole, 0, start, length) if mode == "same" else whole
    place = elementwise("add", reshape(iota(length), (length, 1)), extent(start, INT64)) - iota(m)
    inside = elementwise("logical_and", elementwise("greater_equal", place, 0), elementwise("less", place, n))
    met = gather(signal, elementwise("minimum", elementwise("maximum", place, 0), n - 1))
    products = elementwise("multiply", met, kernel)
    return reduce("sum", elementwise("select", inside, products, filled(products.shape, 0, products.dtype)), (1,))


def _two_lines(name: str, a: Any, v: Any) -> tuple[Node, Node]:
    first, second = promote([array_node(a), array_node(v)])
    first, second = (reshape(n, (1,)) if n.ndim == 0 else n for n in (first, second))
    if first.ndim != 1 or second.ndim != 1 or not (first.size and second.size):
        message = f"{name} needs two 1-d arrays with elements, but the shapes are {first.shape} and {second.shape}."
        raise ShapeError(message)
    return first, second


def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """Convolution of 1-d arrays: all overlaps ("full"), the length of the longer ("same"), whole overlaps ("valid")."""
    only("mode", mode, "full", "same", "valid")
    first, second = _two_lines("convolve", a, v)
    if second.size > first.size:
        first, second = second, first
    return wrap(_convolve(first, second, mode))


def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """Correlation of two 1-d arrays: sums of products at each shift, the second array conjugated."""
    only("mode", mode, "full", "same", "valid")
    first, second = _two_lines("correlate", a, v)
    second = conjugate(second)
    if second.size <= first.size:
        return wrap(_convolve(first, backwards(second), mode))
    # NumPy computes with the longer one first and turns the result around.
    return wrap(backwards(_convolve(second, backwards(first), mode)))


# ----- Differences of samples -----


@like_argument()
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences along axes, one-sided at the ends.

    Parameters
    ----------
    f : array-like
    *varargs : number or 1-d array-like
        Nothing (a spacing of 1), one spacing for all axes, or per axis a spacing or the coordinates.
    axis : int, tuple of int or None
    edge_order : {1, 2}
        Order of the differences at the ends.

    Returns
    -------
    Tensor or tuple of Tensor
        One per axis.
    """
    only("edge_order", edge_order, 1, 2)
    node = inexact(as_node(f))
    axes = axes_of(axis, node.ndim)
    spacings: Sequence[Any] = varargs or (1.0,)
    if len(spacings) == 1 and np.ndim(spacings[0]) == 0:
        spacings = tuple(spacings) * len(axes)
    if len(spacings) != len(axes):
        message = f"gradient takes no spacing, one, or one per axis, but got {len(spacings)} for {len(axes)} axes."
        raise ArgumentError(message)
    results = [wrap(_gradient(node, as_node(h), at, edge_order)) for h, at in zip(spacings, axes, strict=True)]
    return results[0] if len(results) == 1 else tuple(results)


def _gradient(node: Node, spacing: Node, axis: int, edge_order: int) -> Node:
    n = node.shape[axis]
    if n < edge_order + 1:
        message = f"gradient needs at least {edge_order + 1} samples along an axis, but the shape is {node.shape}."
        raise ShapeError(message)
    along = [1] * node.ndim
    if spacing.ndim:
        if spacing.shape != (n,):
            message = f"The coordinates of axis {axis} have shape {spacing.shape}, but its extent is {n}."
            raise ShapeError(message)
        along[axis] = n - 1
        h = reshape(inexact(difference(spacing, 0)), tuple(along))
        rows, h = promote([node, h])
    else:
        # A number does not widen the dtype; a Tensor does.
        rows, h = promote([node, spacing])
    rows, h = inexact(rows), inexact(h)

    def at(start: int, length: int) -> Node:
        return cut(rows, axis, start, length)

    def step(k: int) -> Node:
        return h if h.ndim == 0 else cut(h, axis, k, 1)

    if h.ndim == 0:
        inside = elementwise("divide", at(2, n - 2) - at(0, n - 2), h * 2.0)
    else:
        a, b = cut(h, axis, 0, n - 2), cut(h, axis, 1, n - 2)
        inside = (
            -(b / (a * (a + b))) * at(0, n - 2) + (b - a) / (a * b) * at(1, n - 2) + a / (b * (a + b)) * at(2, n - 2)
        )
    if edge_order == 1:
        head = (at(1, 1) - at(0, 1)) / step(0)
        tail = (at(n - 1, 1) - at(n - 2, 1)) / step(n - 2)
    elif h.ndim == 0:
        head = (at(0, 1) * -1.5 + at(1, 1) * 2.0 - at(2, 1) * 0.5) / h
        tail = (at(n - 3, 1) * 0.5 - at(n - 2, 1) * 2.0 + at(n - 1, 1) * 1.5) / h
    else:
        a, b = step(0), step(1)
        head = -(2.0 * a + b) / (a * (a + b)) * at(0, 1) + (a + b) / (a * b) * at(1, 1) - a / (b * (a + b)) * at(2, 1)
        a, b = step(n - 3), step(n - 2)
        tail = (
            b / (a * (a + b)) * at(n - 3, 1)
            - (b + a) / (a * b) * at(n - 2, 1)
            + (2.0 * b + a) / (b * (a + b)) * at(n - 1, 1)
        )
    parts = [head, inside, tail] if n > 2 else [head, tail]
    return cast(concatenate(parts, axis), node.dtype)


@like_argument()
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Tensor:
    """Jumps of more than half a period taken out of phases along an axis; the derivative is that of the phases."""
    node = inexact(as_node(p))
    at = axis_of(axis, node.ndim)
    rows = to_last(node, at)
    n, last = rows.shape[-1], rows.ndim - 1
    if n < 2:
        return wrap(node)
    limit = period / 2 if discont is None else discont
    jump = difference(rows, last)
    wrapped = elementwise("remainder", jump + period / 2, period) - period / 2
    edge = elementwise("logical_and", elementwise("equal", wrapped, -period / 2), elementwise("greater", jump, 0.0))
    wrapped = elementwise("select", edge, filled(jump.shape, period / 2, jump.dtype), wrapped)
    small = elementwise("less", elementwise("absolute", jump), limit)
    correction = elementwise("select", small, filled(jump.shape, 0.0, jump.dtype), wrapped - jump)
    # The correction is a multiple of the period: it does not vary.
    correction = elementwise("stop_gradient", correction)
    added = accumulate_ufunc("add", correction, last)
    widths = [(0, 0)] * last + [(1, 0)]
    return wrap(from_last(rows + pad(added, widths), at))


# ----- Without zeros at the ends -----


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Tensor:
    """An array without the zeros at its front ("f") and back ("b"), along axes (all of them, if None).

    Along an axis, only positions that are zero everywhere on the other axes are left out.
    """
    node = as_node(filt)
    if set(trim.lower()) - set("fb"):
        message = f"trim_zeros needs trim to be made of 'f' and 'b', but got {trim!r}."
        raise ArgumentError(message)
    spans: list[tuple[int, int, int]] = []
    for at in axes_of(axis, node.ndim):
        others = tuple([k for k in range(node.ndim) if k != at])
        full = reduce("max", truth(node), others) if node.size else filled((node.shape[at],), False, BOOL)
        # Asked for as integers, so that jit can record what they were.
        counts = cast(full, INT64)
        total = int(concrete(reduce("max", counts, (0,)), "int")) if full.size else 0
        if not total:
            spans.append((at, 0, 0))
            node = cut(node, *spans[-1])
            continue
        start = int(concrete(extremum_position(counts, 0, False, "max"), "int")) if "f" in trim.lower() else 0
        behind = (
            int(concrete(extremum_position(backwards(counts), 0, False, "max"), "int")) if "b" in trim.lower() else 0
        )
        spans.append((at, start, node.shape[at] - behind - start))
        node = cut(node, *spans[-1])
    return _within(filt, spans) if spans else wrap(node)


@viewing
def _within(array: Any, spans: Sequence[tuple[int, int, int]]) -> Tensor:
    """The part of an array within spans, each of which is an axis, its first position and how many there are."""
    node = as_node(array)
    for span in spans:
        node = cut(node, *span)
    return wrap(node)
