"""Recursive filters of `scipy.signal`: `lfilter`, `sosfilt`; and medians of windows.

In: coefficients, signals, states. Out: Tensors, with derivatives by all of them. Called by code that
`differentiable_source` runs, by scipy_table.py; SciPy's `filtfilt` and what else it writes in Python calls these. SciPy
filters (a `host` node): a filter is linear in the signal, and its transpose is itself on the signal turned round.
"""

from __future__ import annotations

from typing import Any

import numpy

from .. import numpy as np
from ..errors import ArgumentError, ShapeError
from ..functions.linalg.matrix_batches import with_rule
from ..graph.host_functions import HostFunction, host
from ..graph.ir import Node
from ..record.as_node import as_node, wrap
from .image_filters import median_filter


def _run(b: numpy.ndarray, a: numpy.ndarray, x: numpy.ndarray) -> Any:
    from scipy.signal import lfilter

    if b.ndim == 1:
        return lfilter(b, a, x)
    found = numpy.empty(x.shape, x.dtype)
    for place in numpy.ndindex(b.shape[:-1]):
        found[place] = lfilter(b[place], a[place], x[place])
    return found


LFILTER = HostFunction("lfilter", lambda inputs, params: (inputs[2].shape, inputs[2].dtype), _run)


def _filtered(b: Node, a: Node, x: Node) -> Node:
    """The signals in the last axis, filtered; the first of `a` is 1."""
    return with_rule(host(LFILTER, (b, a, x)), _formula, b, a, x)


def _formula(g: Node, y: Node, b: Node, a: Node, x: Node) -> list[Node | None]:
    """Of y = B/A x: by x, B/A g backwards in time; by b_k and a_k, products of g with x/A and -y/A, k later."""
    grad, filters = wrap(g), [np.conj(wrap(f)) for f in (b, a)]
    back = wrap(_filtered(as_node(filters[0]), as_node(filters[1]), as_node(grad[..., ::-1])))[..., ::-1]
    one = as_node(np.ones(1, x.dtype))
    inside, again = wrap(_filtered(one, a, x)), wrap(_filtered(one, a, y))

    def products(moved: Any, count: int) -> Any:
        n = moved.shape[-1]
        found = [
            np.sum(grad[..., k:] * np.conj(moved[..., : n - k])) if k < n else 0.0 * np.sum(moved) for k in range(count)
        ]
        return np.stack(found)

    by_a = -products(again, a.shape[0])
    return [as_node(products(inside, b.shape[0])), as_node(by_a), as_node(back)]


def _line(name: str, value: Any) -> Any:
    found = np.atleast_1d(np.asarray(value))
    if found.ndim != 1 or found.shape[0] == 0:
        message = f"lfilter needs {name} to be a line of coefficients, but its shape is {found.shape}."
        raise ShapeError(message)
    return found


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """A signal filtered along an axis: y(z) = b(z) / a(z) x(z), from rest or from a state `zi`.

    The state adds to the first elements of b(z) x(z), as SciPy's transposed direct form has it.
    """
    b, a, x = _line("b", b), _line("a", a), np.asarray(x)
    first = a[:1]
    dtype = numpy.result_type(b.dtype, a.dtype, x.dtype, *([] if zi is None else [np.asarray(zi).dtype]))
    dtype = dtype if dtype.kind in "fc" else numpy.dtype(numpy.float64)
    b, a = (b / first).astype(dtype), (a / first).astype(dtype)
    nodes = as_node(b), as_node(a), as_node(np.moveaxis(x, axis, -1).astype(dtype))
    y = wrap(_filtered(*nodes))
    if zi is None:
        return np.moveaxis(y, -1, axis)
    line = wrap(nodes[2])
    n, states = line.shape[-1], max(a.shape[0], b.shape[0]) - 1
    state = np.moveaxis(np.asarray(zi), axis, -1).astype(dtype)
    if state.shape[-1] != states:
        message = f"lfilter needs {states} elements of zi along the axis, but its shape is {np.asarray(zi).shape}."
        raise ShapeError(message)
    state = np.broadcast_to(state, (*line.shape[:-1], states))
    start = np.pad(state, [(0, 0)] * (state.ndim - 1) + [(0, max(n - states, 0))])[..., :n]
    y = y + wrap(_filtered(as_node(np.ones(1, dtype)), nodes[1], as_node(start)))
    last = [_state(k, b, a, line, y, state) for k in range(states)]
    end = np.stack(last, axis=-1) if last else state
    return np.moveaxis(y, -1, axis), np.moveaxis(end, -1, axis)


def _state(k: int, b: Any, a: Any, x: Any, y: Any, start: Any) -> Any:
    """The element k of the state after the last element."""
    n, total = x.shape[-1], np.zeros(x.shape[:-1], x.dtype)
    for j in range(k + 1, start.shape[-1] + 1):
        at = n - j + k
        if at < 0:
            continue
        if j < b.shape[0]:
            total = total + b[j] * x[..., at]
        if j < a.shape[0]:
            total = total - a[j] * y[..., at]
    return total + start[..., k + n] if k + n < start.shape[-1] else total


def lfilter_zi(b: Any, a: Any) -> Any:
    """The state in which a step of height 1 gives a constant result."""
    b, a = _line("b", b), _line("a", a)
    n = max(b.shape[0], a.shape[0])
    b, a = [np.pad(line / a[0], (0, n - line.shape[0])) for line in (b, a)]
    parts = b[1:] - a[1:] * b[0]
    first = np.sum(parts) / np.sum(a)
    return np.cumsum(a)[:-1] * first - np.concatenate([np.zeros(1), np.cumsum(parts)[:-1]])


def sosfilt_zi(sos: Any) -> Any:
    """The states of sections in which a step of height 1 gives a constant result."""
    sos, scale = np.asarray(sos), 1.0
    states: list[Any] = []
    for k in range(sos.shape[0]):
        b, a = sos[k, :3], sos[k, 3:]
        states.append(lfilter_zi(b, a) * scale)
        scale = scale * np.sum(b) / np.sum(a)
    return np.stack(states)


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """A signal filtered by sections of second order, one after the other."""
    sos, x = np.asarray(sos), np.asarray(x)
    if sos.ndim != 2 or sos.shape[1] != 6:
        message = f"sosfilt needs sections with six coefficients as rows, but the shape is {sos.shape}."
        raise ShapeError(message)
    states: list[Any] = []
    for k in range(sos.shape[0]):
        if zi is None:
            x = lfilter(sos[k, :3], sos[k, 3:], x, axis)
        else:
            x, state = lfilter(sos[k, :3], sos[k, 3:], x, axis, np.asarray(zi)[k])
            states.append(state)
    return x if zi is None else (x, np.stack(states))


def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """Medians of windows, with zeros beyond the borders.

    Raises
    ------
    ArgumentError
        If an extent of the window is even.
    """
    volume = np.atleast_1d(np.asarray(volume))
    sizes = [3] * volume.ndim if kernel_size is None else numpy.broadcast_to(kernel_size, (volume.ndim,)).tolist()
    if any(size % 2 != 1 for size in sizes):
        message = f"medfilt needs windows of odd extents, but got {kernel_size}."
        raise ArgumentError(message)
    return median_filter(volume, tuple(sizes), mode="constant")


def medfilt2d(input: Any, kernel_size: Any = 3) -> Any:
    """Medians of windows of a matrix, with zeros beyond the borders."""
    return medfilt(input, kernel_size)
