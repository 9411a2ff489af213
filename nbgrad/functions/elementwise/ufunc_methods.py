"""`ufunc.reduce`, `accumulate`, `reduceat` and `at` for ufuncs that have no primitive for that.

In: the ufunc and the operands. Out: nodes; `at` writes to its first operand, as NumPy does. Called by
ufunc_protocol.py. Everything is composed from the ufunc itself, so that it can be differentiated as often as that.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, RangeError, ShapeError, TracedValueError
from ...graph.builders import argsort, cast, concatenate, gather, iota, reshape, scatter_add, slice_axes, transpose
from ...graph.formulas import both, choose
from ...graph.ir import INT64, Node, broadcast, constant, elementwise, literal
from ...record.as_node import as_node
from ...record.axes_and_dtypes import cut, from_last, gather_axis, keep, reduced_axes, to_last, truth
from ...record.indexing import add_at, getitem, setitem
from ...record.promotion import convert, loop_dtypes
from ...record.tensor import Tensor
from ...runtime.evaluate import concrete
from ..arrays.reductions import mask_of, reduce_ufunc
from .ufuncs import apply_ufunc

ASSOCIATIVE = frozenset(
    (
        "add multiply maximum minimum fmax fmin logaddexp logaddexp2 hypot bitwise_and bitwise_or bitwise_xor "
        "logical_and logical_or logical_xor gcd lcm"
    ).split()
)
REORDERABLE = ASSOCIATIVE - {"lcm"}
"""The ufuncs that `reduce` may group, and NumPy reduces over several axes; grouped, lcm overflows in another way."""
INVERSE = {"subtract": "add", "divide": "multiply"}
"""Ufuncs that undo another one."""
MOST_SEGMENTS = 16
"""At most this many sums of segments are written out one by one."""
MOST_ROUNDS = 64
"""The most times that `at` may write to one position."""


def _binary(name: str, x: Node, y: Node) -> Node:
    result = apply_ufunc(getattr(np, name), x, y)
    assert isinstance(result, Node)
    return result


# ----- reduce -----

_PRIMITIVES = frozenset("add multiply maximum minimum logical_and logical_or".split())


def reduce_any(ufunc: np.ufunc, node: Node, axis: Any, keepdims: bool, initial: Any, where: Any, dtype: Any) -> Node:
    """`ufunc.reduce` for any ufunc of two operands: by halves where they may be grouped, else from first to last.

    Raises
    ------
    DtypeError
        If the ufunc's results cannot be its operands again.
    ShapeError, ArgumentError
        If there is nothing to reduce and no value to start from; if the order of several axes would matter.
    """
    name = ufunc.__name__
    if name in _PRIMITIVES:
        return reduce_ufunc(name, node, axis, keepdims, initial, where, dtype)
    if name == "logical_xor":
        node = truth(node)
    axes = tuple(range(node.ndim)) if axis is None else reduced_axes(axis, node.ndim)
    dtypes = loop_dtypes(ufunc, [node, node], dtype) if ufunc.nin == 2 and ufunc.nout == 1 else None
    if ufunc.signature is not None or dtypes is None or dtypes[0] != dtypes[1] or dtypes[0] != dtypes[2]:
        message = f"numpy.{name}.reduce does not work: its results cannot be its operands again."
        raise DtypeError(message)
    if len(axes) > 1 and name not in REORDERABLE:
        message = f"numpy.{name}.reduce takes one axis, because the order matters, but got {axis!r}."
        raise ArgumentError(message)
    node = convert(node, dtypes[0])
    others = tuple([k for k in range(node.ndim) if k not in axes])
    lead = tuple([node.shape[k] for k in others])
    count = node.size // math.prod(lead) if math.prod(lead) else math.prod(node.shape[k] for k in axes)
    mask = mask_of(where, node)

    def lined(x: Node) -> Node:
        return reshape(transpose(x, others + axes), (*lead, count))

    rows, inside = lined(node), None if mask is None else lined(mask)
    # All bits are one in what NumPy calls -1.
    identity = None if ufunc.identity is None else constant(np.array(ufunc.identity).astype(node.dtype))
    start = identity if initial is None else convert(as_node(initial), node.dtype)
    if start is None and (inside is not None or (count == 0 and math.prod(lead))):
        message = f"numpy.{name}.reduce has no value to start from: give initial."
        raise ShapeError(message)
    begin = None if start is None else broadcast(start, lead)
    if inside is not None and identity is not None:
        rows, inside = elementwise("select", inside, rows, broadcast(identity, rows.shape)), None
    # NumPy starts from the identity, which shows where there is one element: hypot(0, -1) is 1.
    needed = initial is not None or count < 2 or inside is not None
    result = _folded(name, rows, inside, begin if needed else None)
    return reshape(result, keep(node.shape, axes)) if keepdims else result


def _folded(name: str, rows: Node, inside: Node | None, begin: Node | None) -> Node:
    """The elements of the last axis put together, from `begin` on; those outside of a mask are left out."""
    at, count = rows.ndim - 1, rows.shape[-1]

    def element(x: Node, k: int) -> Node:
        return reshape(cut(x, at, k, 1), x.shape[:-1])

    if count == 0:
        return begin if begin is not None else broadcast(literal(0, rows.dtype), rows.shape[:-1])
    if inside is None and (name in REORDERABLE or name in INVERSE):
        first = begin
        if name in INVERSE and first is None:
            first, rows = element(rows, 0), cut(rows, at, 1, count - 1)
        while rows.shape[-1] > 1:
            half, odd = divmod(rows.shape[-1], 2)
            joined = _binary(INVERSE.get(name, name), cut(rows, at, 0, half), cut(rows, at, half, half))
            rows = concatenate([joined, cut(rows, at, 2 * half, 1)], at) if odd else joined
        if not rows.shape[-1]:
            assert first is not None
            return first
        whole = element(rows, 0)
        return whole if first is None else _binary(name, first, whole)
    total = element(rows, 0) if begin is None else begin
    for k in range(1 if begin is None else 0, count):
        joined = _binary(name, total, element(rows, k))
        total = joined if inside is None else elementwise("select", element(inside, k), joined, total)
    return total


# ----- accumulate -----


def accumulate_ufunc(ufunc: np.ufunc, node: Node, axis: int) -> Node:
    """Running results along an axis: a scan in as many steps as the length has binary digits (Hillis and Steele 1986).

    Raises
    ------
    DtypeError
        If the order of the operations matters, so that they cannot be grouped.
    """
    name = ufunc.__name__
    length = node.shape[axis]
    if name in INVERSE and length > 1:
        first = cut(node, axis, 0, 1)
        taken = accumulate_ufunc(getattr(np, INVERSE[name]), cut(node, axis, 1, length - 1), axis)
        later = _binary(name, broadcast(first, taken.shape), taken)
        return concatenate([convert(first, later.dtype), later], axis)
    if name not in ASSOCIATIVE | set(INVERSE):
        message = f"numpy.{name}.accumulate does not work on Tensors. Write a loop over x[i], or use cumsum or cumprod."
        raise DtypeError(message)
    last, step = to_last(convert(node, loop_dtypes(ufunc, [node, node])[-1]), axis), 1
    while step < length:
        behind, ahead = cut(last, last.ndim - 1, 0, length - step), cut(last, last.ndim - 1, step, length - step)
        joined = _binary(name, behind, ahead)
        last = concatenate([convert(cut(last, last.ndim - 1, 0, step), joined.dtype), joined], last.ndim - 1)
        step *= 2
    return from_last(last, axis)


# ----- reduceat -----


def reduce_at(ufunc: np.ufunc, node: Node, indices: Any, axis: int, dtype: Any) -> Node:
    """Reductions of the pieces of an axis that begin at `indices`; a piece that would end before it begins is one
    element.

    Raises
    ------
    RangeError
        If an index is out of range.
    """
    starts = _array(indices).astype(np.int64, casting="same_kind").ravel()
    length = node.shape[axis]
    if starts.size and (starts.min() < 0 or starts.max() >= length):
        message = f"numpy.{ufunc.__name__}.reduceat needs indices from 0 to {length - 1}, but got {starts.tolist()}."
        raise RangeError(message)
    ends = np.append(starts[1:], length)[: starts.size]
    name = ufunc.__name__
    if name == "add" and starts.size > MOST_SEGMENTS and bool(np.all(ends > starts)) and node.dtype.kind in "fc":
        return _segment_sums(node, starts, axis) if dtype is None else convert(_segment_sums(node, starts, axis), dtype)
    if not starts.size:
        return reduce_ufunc(name, cut(node, axis, 0, 0), axis, True, 0, True, dtype) if name == "add" else node
    parts = [
        reduce_any(ufunc, cut(node, axis, int(a), max(int(b - a), 1)), axis, True, None, True, dtype)
        for a, b in zip(starts, ends, strict=True)
    ]
    return concatenate(parts, axis)


def _segment_sums(node: Node, starts: np.ndarray, axis: int) -> Node:
    """Sums of adjacent pieces of an axis: each element is added to its piece's number."""
    rows = to_last(node, axis)
    rows = cut(rows, rows.ndim - 1, int(starts[0]), node.shape[axis] - int(starts[0]))
    number = np.searchsorted(starts, np.arange(starts[0], node.shape[axis]), side="right") - 1
    flat = np.arange(rows.size // number.size)[:, None] * starts.size + number
    sums = scatter_add(rows.size // number.size * starts.size, constant(flat.ravel()), reshape(rows, (rows.size,)))
    return from_last(reshape(sums, (*rows.shape[:-1], starts.size)), axis)


def _array(value: Any) -> np.ndarray:
    """A concrete array."""
    return concrete(value._node, "array") if isinstance(value, Tensor) else np.asarray(value)


# ----- at -----


def at(ufunc: np.ufunc, target: Tensor, key: Any, value: Any) -> None:
    """`ufunc.at(target, key, value)`; for positions that are named several times, once for each of them, in order.

    Raises
    ------
    ArgumentError
        If a position is named more than MOST_ROUNDS times, and values cannot be grouped.
    """
    name, node = ufunc.__name__, target._node
    operand = None if value is None else as_node(value)
    dtype = loop_dtypes(ufunc, [node] if operand is None else [node, operand])[-1]
    if dtype.kind == "c" and node.dtype.kind != "c":
        message = f"{name}.at gives {dtype}, which cannot be stored in a Tensor of {node.dtype}."
        raise DtypeError(message)
    # As NumPy does it, a result of another kind is converted at each position that is named, not once for all.
    if operand is not None and name in ("add", "subtract") and np.can_cast(dtype, node.dtype, "same_kind"):
        operand = convert(operand, node.dtype)
        target._replace(add_at(node, key, operand if name == "add" else -operand))
        return
    if operand is not None and name in ("maximum", "minimum") and dtype == node.dtype and dtype.kind in "fiu":
        target._replace(_extremes_at(name, node, key, convert(operand, dtype)))
        return
    keys = key if isinstance(key, tuple) else (key,)
    groups = operand is not None and name in REORDERABLE and dtype == node.dtype
    try:
        plain: Any = tuple([_array(k) if isinstance(k, Tensor) else k for k in keys])
        where = np.arange(node.size).reshape(node.shape)[plain]
    except TracedValueError:
        if not groups:
            raise
        where = None
    if groups and (where is None or np.bincount(where.ravel(), minlength=1).max() > MOST_ROUNDS):
        assert operand is not None
        target._replace(_joined_at(name, node, key, convert(operand, dtype)))
        return
    assert where is not None
    given = None if operand is None else reshape(broadcast(operand, where.shape), (where.size,))
    flat = reshape(node, (node.size,))
    for chosen in _rounds(where.ravel(), name):
        places = constant(where.ravel()[chosen].astype(INT64))
        now = gather(flat, places)
        result = (
            apply_ufunc(ufunc, now)
            if given is None
            else apply_ufunc(ufunc, now, gather_axis(given, 0, constant(chosen)))
        )
        assert isinstance(result, Node)
        flat = setitem(flat, Tensor._of(places), convert(result, node.dtype))
    target._replace(reshape(flat, node.shape))


def _extremes_at(name: str, node: Node, key: Any, operand: Node) -> Node:
    """The largest (or least) of each element and of the values for its position; gradients go to all that are it, in
    equal parts. Values are written in their order, so that the last one written to a position is the extreme one."""
    where = getitem(reshape(iota(node.size), node.shape), key)
    places = reshape(where, (where.size,))
    given, flat = reshape(broadcast(operand, where.shape), (where.size,)), reshape(node, (node.size,))
    if not where.size:
        return node
    floats = node.dtype.kind == "f"
    still, before = (elementwise("stop_gradient", one) if floats else one for one in (given, flat))
    order = argsort(-still if floats and name == "minimum" else still)
    if not floats and name == "minimum":
        order = slice_axes(order, [(where.size - 1, where.size, -1)])
    written = setitem(before, Tensor._of(gather(places, order)), gather(still, order))
    best = elementwise(name, before, written)
    if floats:
        there = gather(best, places)
        mine, theirs = elementwise("equal", before, best), elementwise("equal", still, there)
        finite = elementwise("isfinite", still)
        count = cast(mine, node.dtype) + scatter_add(node.size, places, cast(theirs, node.dtype))
        moved = choose(both(mine, elementwise("isfinite", before)), flat - before, 0.0, flat)
        moved = moved + scatter_add(node.size, places, choose(both(theirs, finite), given - still, 0.0, given))
        best = best + moved / elementwise("maximum", count, 1.0)
    return reshape(best, node.shape)


def _joined_at(name: str, node: Node, key: Any, operand: Node) -> Node:
    """Each element joined with the values for its position, which may come with each call: values are sorted by
    position, and joined over 1, 2, 4, ... places where the position is the same."""
    where = getitem(reshape(iota(node.size), node.shape), key)
    count = where.size
    if not count:
        return node
    order = argsort(reshape(where, (count,)))
    places = gather(reshape(where, (count,)), order)
    values, flat = gather(reshape(broadcast(operand, where.shape), (count,)), order), reshape(node, (node.size,))
    step = 1
    while step < count:
        early, late = (slice_axes(values, [(start, count - step, 1)]) for start in (0, step))
        same = elementwise("equal", *(slice_axes(places, [(start, count - step, 1)]) for start in (0, step)))
        joined = choose(same, _binary(name, early, late), late, late)
        values = concatenate([slice_axes(values, [(0, step, 1)]), joined], 0)
        step *= 2
    # The last value of each position has all of them.
    result = _binary(name, gather(flat, places), values)
    return reshape(setitem(flat, Tensor._of(places), convert(result, node.dtype)), node.shape)


def _rounds(places: np.ndarray, name: str) -> list[np.ndarray]:
    """The entries that name each place for the first time, for the second time, and so on."""
    if not places.size:
        return []
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    turn = np.arange(places.size) - np.repeat(first, np.diff(np.append(first, places.size)))
    if turn.max() >= MOST_ROUNDS:
        message = (
            f"numpy.{name}.at names one position {turn.max() + 1} times, more than {MOST_ROUNDS}. Sort the values by "
            f"position and use numpy.{name}.reduceat, or numpy.add.at, which has no such limit."
        )
        raise ArgumentError(message)
    return [np.sort(order[turn == k]) for k in range(int(turn.max()) + 1)]
