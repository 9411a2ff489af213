"""Convolutions of two long lines by NumPy's own routine, with a derivative.

In: two 1-d nodes of one floating or complex dtype, the longer first; a mode, "full" or "valid". Out: a node. Called by
selection.py. A convolution is linear in each operand, so that cotangents are correlations: convolutions with the other
operand reversed and conjugated, in the other mode for the longer operand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.complex_numbers import conjugate
from ...graph.host_functions import HostFunction, host
from ...graph.ir import Node
from ...record.axes_and_dtypes import cut
from ..linalg.matrix_batches import with_rule

DTYPES = frozenset(np.dtype(code) for code in "fdFD")
"""Those that NumPy adds in the precision of the elements."""


def _length(long: int, short: int, mode: str) -> int:
    return long + short - 1 if mode == "full" else long - short + 1


def _run(long: np.ndarray, short: np.ndarray, mode: str) -> Any:
    if long.ndim == 1:
        return np.convolve(long, short, mode)  # type: ignore[call-overload]
    lead = long.shape[:-1]
    pairs = zip(long.reshape(-1, long.shape[-1]), short.reshape(-1, short.shape[-1]), strict=True)
    found = [np.convolve(one, other, mode) for one, other in pairs]  # type: ignore[call-overload]
    return np.reshape(found, (*lead, _length(long.shape[-1], short.shape[-1], mode)))


CONVOLVE = HostFunction(
    "convolve",
    lambda inputs, params: (
        (*inputs[0].shape[:-1], _length(inputs[0].shape[-1], inputs[1].shape[-1], params[0])),
        inputs[0].dtype,
    ),
    _run,
)


def long_convolution(long: Node, short: Node, mode: str) -> Node:
    """The convolution of two lines; `long` has at least as many elements as `short`."""
    return with_rule(host(CONVOLVE, (long, short), mode), _formula, long, short, static=(mode,))


def _formula(g: Node, node: Node, long: Node, short: Node, mode: str) -> list[Node | None]:
    taps, signal = conjugate(backwards(short)), conjugate(backwards(long))
    if mode == "full":
        return [long_convolution(g, taps, "valid"), long_convolution(g, signal, "valid")]
    full = long_convolution(g, taps, "full") if g.size >= taps.size else long_convolution(taps, g, "full")
    return [full, long_convolution(signal, g, "valid")]


def backwards(node: Node) -> Node:
    """A line from its last element to its first."""
    return cut(node, 0, node.size - 1, node.size, -1)
