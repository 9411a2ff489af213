"""Borders and edits along an axis: pad, insert, delete.

In: array-likes, widths, positions. Out: Tensors. Called by users. Everything here is slices that are joined; positions
that follow no pattern are gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, RangeError, ShapeError
from ...functions.arrays.result_order import memory_order
from ...graph.builders import cast, reshape, transpose
from ...graph.builders import concatenate as join_nodes
from ...graph.builders import pad as pad_node
from ...graph.ir import BOOL, INT64, Node, broadcast
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import Runs, at_least, axis_of, integer, take_positions, take_runs
from ...record.tensor import Tensor
from ...record.zero_dimensional import as_array
from ...runtime.evaluate import concrete
from ...runtime.memory_order import copied, may_differ, strides_of, with_axis_order
from ..arrays.result_order import like_argument
from .borders import STATISTICS, with_function, with_odd_reflection, with_ramps, with_statistics

# ----- Pad -----

_STAT, _REFLECT = {"stat_length": None}, {"reflect_type": "even"}
_OPTIONS: dict[str, dict[str, Any]] = {
    "constant": {"constant_values": 0},
    "edge": {},
    "empty": {},
    "linear_ramp": {"end_values": 0},
    "maximum": _STAT,
    "mean": _STAT,
    "median": _STAT,
    "minimum": _STAT,
    "reflect": _REFLECT,
    "symmetric": _REFLECT,
    "wrap": {},
}
"""The modes of `pad`, and the options of each with their defaults."""


def _pairs(value: Any, name: str, ndim: int) -> list[tuple[Any, Any]]:
    """A (before, after) pair per axis from a number, a pair, or a sequence of pairs."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return [(value, value)] * ndim
    items = [v.tolist() if isinstance(v, np.ndarray) else v for v in value]
    if not any(isinstance(v, list | tuple) for v in items):
        if len(items) == 1:
            return [(items[0], items[0])] * ndim
        if len(items) == 2:
            return [(items[0], items[1])] * ndim
    else:
        pairs = [tuple(v) * (2 if len(v) == 1 else 1) for v in items if isinstance(v, list | tuple)]
        if len(pairs) in (1, ndim) and all(len(p) == 2 for p in pairs):
            return [(p[0], p[1]) for p in (pairs * ndim)[:ndim]]
    message = f"{name}={value!r} is neither a number, a pair, nor one pair per axis of {ndim} axes."
    raise ShapeError(message)


@like_argument(order="A")
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Tensor:
    """The array with borders.

    Parameters
    ----------
    array : array-like
    pad_width : int, pair, or sequence of pairs
        Widths before and after each axis.
    mode : str or callable
        "constant", "edge", "empty" (zeros here), "linear_ramp", "maximum", "mean", "median", "minimum", "reflect",
        "symmetric" or "wrap"; or a function of a line with zeros in its borders, their widths, the axis and the
        options, which writes into the line.
    constant_values : number, pair, or sequence of pairs
        For "constant": the values before and after each axis; 0 by default. Tensors differentiate.
    end_values : number, pair, or sequence of pairs
        For "linear_ramp": the values at which the ramps start; 0 by default. Tensors differentiate.
    stat_length : int, pair, or sequence of pairs
        For "maximum", "mean", "median", "minimum": of how many elements at each end; all by default.
    reflect_type : {"even", "odd"}
        For "reflect" and "symmetric": mirrored at the edge, or turned around the point there.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> pad(np.array([1.0, 3.0]), 2, "linear_ramp").tolist()
    [0.0, 0.5, 1.0, 3.0, 1.5, 0.0]
    """
    node = as_node(array)
    options = dict(kwargs)
    if not callable(mode):
        if mode not in _OPTIONS:
            message = f"pad knows the modes {', '.join(map(repr, _OPTIONS))} and functions, but got {mode!r}."
            raise ArgumentError(message)
        for name in kwargs:
            if name not in _OPTIONS[mode]:
                message = f"pad with mode {mode!r} has no option {name!r}."
                raise ArgumentError(message)
        options = {**_OPTIONS[mode], **kwargs}
    reflection = options.get("reflect_type", "even")
    if not callable(mode) and reflection not in ("even", "odd"):
        message = f"reflect_type must be 'even' or 'odd', but is {reflection!r}."
        raise ArgumentError(message)
    if isinstance(pad_width, dict):
        pairs: list[Any] = [(0, 0)] * node.ndim
        for axis, pair in pad_width.items():
            pairs[axis_of(axis, node.ndim)] = pair if isinstance(pair, tuple) else (pair, pair)
        pad_width = pairs
    widths = [
        (integer(lo, "pad_width"), integer(hi, "pad_width")) for lo, hi in _pairs(pad_width, "pad_width", node.ndim)
    ]
    if any(lo < 0 or hi < 0 for lo, hi in widths):
        message = f"pad_width must not be negative, but got {pad_width!r}."
        raise ShapeError(message)
    if not node.ndim:
        return as_array(wrap(node))
    if callable(mode):
        node = pad_node(node, widths)
        for axis, pair in enumerate(widths):
            node = with_function(node, axis, pair, mode, options)
        return wrap(node)
    if mode == "empty":
        return wrap(pad_node(node, widths))
    if mode == "constant":
        return wrap(_pad_constant(node, widths, options["constant_values"]))
    lengths = _pairs(options.get("stat_length"), "stat_length", node.ndim)
    ends = _pairs(options.get("end_values"), "end_values", node.ndim)
    for axis, (lo, hi) in enumerate(widths):
        if not (lo or hi):
            continue
        n = node.shape[axis]
        if n == 0:
            message = f"Axis {axis} of shape {node.shape} is empty, so mode {mode!r} has nothing to pad it with."
            raise ShapeError(message)
        if mode in STATISTICS:
            node = with_statistics(node, axis, (lo, hi), mode, lengths[axis])
        elif mode == "linear_ramp":
            node = with_ramps(node, axis, (lo, hi), ends[axis])
        else:
            wide = take_runs(node, axis, [*_border(n, lo, mode, True), (0, n, 1), *_border(n, hi, mode, False)])
            node = with_odd_reflection(node, wide, axis, (lo, hi), mode) if reflection == "odd" else wide
    return wrap(node)


def _pad_constant(node: Node, widths: Sequence[tuple[int, int]], values: Any) -> Node:
    if isinstance(values, int | float) and values == 0:
        return pad_node(node, widths)
    for axis, ((lo, hi), pair) in enumerate(zip(widths, _pairs(values, "constant_values", node.ndim), strict=True)):
        parts = [node]
        for width, value, place in ((lo, pair[0], 0), (hi, pair[1], 2)):
            if width:
                shape = list(node.shape)
                shape[axis] = width
                border = cast(as_node(value), node.dtype)
                if border.ndim:
                    message = f"Each of constant_values must be a number, but got shape {border.shape}."
                    raise ShapeError(message)
                parts.insert(place, broadcast(border, tuple(shape)))
        node = join_nodes(parts, axis)
    return node


def _border(n: int, width: int, mode: str, before: bool) -> Runs:
    """The runs of positions that make a border of a given width, before or after an axis of extent n."""
    if mode == "edge" or n == 1:
        return [(0 if before else n - 1, width, 0)]
    period = {"wrap": n, "symmetric": 2 * n, "reflect": 2 * n - 2}[mode]
    runs: list[tuple[int, int, int]] = []
    position, end = (-width, 0) if before else (n, n + width)
    while position < end:
        phase = position % period
        if phase < n:
            # Up from `phase`; a reflection leaves the last element to the way down.
            length = (n - phase) if mode != "reflect" else (n - 1 - phase)
            start, step = phase, 1
        else:
            start, step = (2 * n - 1 - phase, -1) if mode == "symmetric" else (2 * n - 2 - phase, -1)
            length = start + 1 if mode == "symmetric" else start
        if length == 0:
            # The turning point of a reflection.
            start, length, step = n - 1, 1, 1
        length = length if position + length <= end else end - position
        runs.append((start, length, step))
        position += length
    return runs


# ----- Insert and delete -----


def _positions(obj: Any, n: int, most: int) -> np.ndarray:
    """Positions from a slice, an integer, integers or a mask, counted from the front."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n))
    node = as_node(obj)
    value = np.asarray(concrete(node, "int" if node.ndim == 0 else "array"))
    if value.dtype == BOOL and value.ndim:
        if value.shape != (n,):
            message = f"The mask has shape {value.shape}, but the axis has extent {n}."
            raise ShapeError(message)
        return np.flatnonzero(value)
    if value.size and value.dtype.kind not in "iu":
        message = f"Expected positions to be integers or a mask, but got dtype {value.dtype}."
        raise DtypeError(message)
    value = value.astype(INT64).ravel()
    if value.size and (value.min() < -n or value.max() > most):
        message = f"A position is out of range for an axis of extent {n}."
        raise RangeError(message)
    return np.where(value < 0, value + n, value)


def delete(arr: Any, obj: Any, axis: Any = None) -> Tensor:
    """The array without some positions of an axis (of the flat array, if None)."""
    node = as_node(arr)
    if axis is None:
        node, axis = reshape(node, (node.size,)), 0
    at = axis_of(axis, node.ndim)
    n = node.shape[at]
    left = np.ones(n, bool)
    left[_positions(obj, n, n - 1)] = False
    found = take_positions(node, at, np.flatnonzero(left))
    if isinstance(obj, slice) or (as_node(obj).size == 1 and as_node(obj).dtype.kind in "iu"):
        return wrap(copied(found, memory_order(arr, "A", "A")))
    if not at and not may_differ(node):
        return wrap(found)
    # NumPy indexes by a mask: the axis of what is left is the slowest, the others follow as they lie.
    strides = strides_of(node)
    others = sorted([axis for axis in range(node.ndim) if axis != at], key=lambda axis: -abs(strides[axis]))
    return wrap(with_axis_order(found, [at, *others]))


@like_argument(order="A")
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Tensor:
    """The array with values before some positions of an axis (of the flat array, if None)."""
    node, new = as_node(arr), as_node(values)
    if axis is None:
        node, axis = reshape(node, (node.size,)), 0
    at = axis_of(axis, node.ndim)
    n = node.shape[at]
    where = _positions(obj, n, n)
    new = cast(new, node.dtype)
    single = not isinstance(obj, slice) and as_node(obj).ndim == 0
    if single:
        # NumPy: with one position given as a number, the first axis of the values is the axis of insertion.
        new = at_least(new, node.ndim)
        order = [*range(1, at + 1), 0, *range(at + 1, node.ndim)]
        new = transpose(new, tuple(order)) if at else new
        count = new.shape[at]
        where = np.repeat(where, count)
    else:
        count = len(where) if len(where) != 1 or new.ndim < node.ndim else new.shape[at]
        where = np.repeat(where, count) if len(where) == 1 else where
    shape = list(node.shape)
    shape[at] = len(where)
    new = broadcast(new, tuple(shape))
    # Element k of the values lands before position where[k]; equal positions keep their order.
    order = np.argsort(where, kind="stable")
    landing = where[order] + np.arange(len(where))
    source = np.empty(n + len(where), INT64)
    taken = np.zeros(n + len(where), bool)
    taken[landing] = True
    source[landing] = n + order
    source[~taken] = np.arange(n)
    return wrap(take_positions(join_nodes([node, new], at), at, source))
