"""`ufunc.accumulate`, `ufunc.reduceat` and `ufunc.at` for ufuncs that have no primitive for that.

In: the ufunc and the operands. Out: nodes; `at` writes to its first operand, as NumPy does. Called by
ufunc_protocol.py. Everything is composed from the ufunc itself, so that it can be differentiated as often as that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, RangeError
from ..graph.ir import INT64, Node, broadcast, constant
from ..graph.primitives import concatenate, gather, reshape, scatter_add
from ..runtime.evaluate import concrete
from ..tensor import Tensor
from .indexing import add_at, setitem
from .lifting import as_node
from .operands import cut, from_last, gather_axis, to_last
from .promotion import convert, loop_dtypes
from .reductions import reduce_ufunc
from .ufuncs import apply_ufunc

ASSOCIATIVE = frozenset(
    (
        "add multiply maximum minimum fmax fmin logaddexp logaddexp2 hypot bitwise_and bitwise_or bitwise_xor "
        "logical_and logical_or logical_xor gcd lcm"
    ).split()
)
INVERSE = {"subtract": "add", "divide": "multiply"}
"""Ufuncs that take away what another one puts together."""
MOST_SEGMENTS = 16
"""So many sums of segments are written out one by one."""
MOST_ROUNDS = 64
"""How often `at` may write to one position."""


def _binary(name: str, x: Node, y: Node) -> Node:
    result = apply_ufunc(getattr(np, name), x, y)
    assert isinstance(result, Node)
    return result


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
        reduce_ufunc(name, cut(node, axis, int(a), max(int(b - a), 1)), axis, True, None, True, dtype)
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
        If a position is named more than MOST_ROUNDS times.
    """
    name, node = ufunc.__name__, target._node
    operand = None if value is None else as_node(value)
    dtype = loop_dtypes(ufunc, [node] if operand is None else [node, operand])[-1]
    if not np.can_cast(dtype, node.dtype, "same_kind"):
        message = f"{name}.at gives {dtype}, which cannot be stored in a Tensor of {node.dtype}."
        raise DtypeError(message)
    if operand is not None and name in ("add", "subtract"):
        operand = convert(operand, node.dtype)
        target._replace(add_at(node, key, operand if name == "add" else -operand))
        return
    keys = key if isinstance(key, tuple) else (key,)
    plain: Any = tuple([_array(k) if isinstance(k, Tensor) else k for k in keys])
    where = np.arange(node.size).reshape(node.shape)[plain]
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
