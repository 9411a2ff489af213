"""Values on demand: computes a node when Python needs its value.

In: a node and why its value is needed. Out: an ndarray. Called by Tensor (`bool()`, `float()`, `asnumpy()`, printing)
and by operations whose shape depends on values. While a function is recorded for `jit`, asking for a truth value or an
integer records a guard; asking for anything else is an error, since the recorded program could not know.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import config
from ..compiler.locks import ForkSafeLock
from ..errors import RangeError, TracedValueError
from ..graph.interpret import interpret
from ..graph.ir import PRIMITIVES, Node, plain_dtype, topological
from ..graph.primitives import reduce
from ..graph.trace import current_trace
from .program import Output, Program

_programs: dict[Any, Program] = {}
_lock = ForkSafeLock()


class _Pending(threading.local):
    """Parameters of this thread that were given values which are not computed yet; the next computation finishes them."""

    def __init__(self) -> None:
        self.parameters: dict[Any, None] = {}

    def add(self, parameter: Any) -> None:
        """Remember a Parameter that was written to."""
        self.parameters[parameter] = None

    def take(self) -> list[Any]:
        """All of them; from now on they count as finished."""
        if not self.parameters:
            return []
        taken = [parameter for parameter in self.parameters if parameter._leaf.value is None]
        self.parameters = {}
        return taken


pending = _Pending()

MOST_PROGRAMS = 4096
INTERPRETED_SIZE = 20_000
"""Single values of at most so many elements, asked for in passing, are computed by the interpreter."""
LONGEST_CHAIN = 500
"""Untraced lazy chains are computed when they get deeper than this."""


def concrete(node: Node, reason: str) -> np.ndarray:
    """The value of a node.

    Parameters
    ----------
    node : Node
    reason : {"bool", "int", "float", "array"}
        What the value is for; it decides what happens while `jit` records.

    Returns
    -------
    ndarray
        Not to be written to.
    """
    trace = current_trace()
    if trace is not None and trace.guards is not None and trace.varies(node):
        if reason not in ("bool", "int"):
            message = (
                f"The {'number' if reason == 'float' else 'array'} behind a Tensor of shape {node.shape} is "
                "needed while jit records the function, but it differs from call to call. Keep it a Tensor, take it "
                "out of the jitted function, or return it."
            )
            raise TracedValueError(message)
        value = _compute(node)
        trace.guards.append((node, value))
        return value
    return _compute(node)


def _compute(node: Node) -> np.ndarray:
    if node.value is None:
        value = compute([node])[0] if node.size > INTERPRETED_SIZE else np.array(interpret([node])[0])
        value.flags.writeable = False
        node.value = value
        if current_trace() is None and node.inputs:
            # Nothing will differentiate it: forget how it was made. (Sources stay: literals are shared.)
            node.primitive, node.inputs, node.params = PRIMITIVES["constant"], (), ()
            node.depth, node.traced = 0, False
    return node.value


def compute(nodes: Sequence[Node]) -> list[np.ndarray]:
    """The values of nodes, all by one compiled program.

    The program is found by the structure of the graph, so the same computation on other values, or on the same shapes
    again, compiles nothing.
    """
    written = pending.take() if current_trace() is None else []
    if written:
        count = len(nodes)
        arrays = _run([*nodes, *[parameter._leaf for parameter in written]])
        for parameter, array in zip(written, arrays[count:], strict=True):
            parameter._hold(array)
        return arrays[:count]
    return _run(nodes)


def finish_pending() -> None:
    """Compute what was written to Parameters and is not known yet."""
    compute([])


def _run(nodes: Sequence[Node]) -> list[np.ndarray]:
    if not nodes:
        return []
    if config.interpret():
        return [np.array(value) for value in interpret(nodes)]
    key, leaves = fingerprint(nodes)
    program = _programs.get(key)
    if program is None:
        program = Program([Output(node) for node in nodes], leaves)
        with _lock.held():
            while len(_programs) >= MOST_PROGRAMS:
                _programs.pop(next(iter(_programs)))
            _programs[key] = program
    return list(program.call(*[ready(leaf) for leaf in leaves]))


def ready(leaf: Node) -> np.ndarray:
    """A leaf's array as native code reads it: in C order and aligned."""
    value = leaf.value
    assert value is not None, leaf
    dtype = plain_dtype(leaf.dtype)
    if value.flags.c_contiguous and value.flags.aligned and value.dtype is dtype and type(value) is np.ndarray:
        return value
    return np.array(value, dtype=dtype, order="C", subok=False)


def fingerprint(nodes: Sequence[Node]) -> tuple[Any, list[Node]]:
    """What identifies a graph apart from the values of its leaves, and those leaves in order."""
    number: dict[Node, int] = {}
    leaves: list[Node] = []
    entries: list[Any] = []
    for node in topological(nodes):
        if node.name == "constant" or node.name == "input":
            entries.append((node.shape, node.dtype))
            leaves.append(node)
        elif node.name == "custom":
            entries.append(("custom", number[node.inputs[0]]))
        else:
            entries.append((node.name, node.params, node.dtype, *[number[source] for source in node.inputs]))
        number[node] = len(number)
    return (tuple(entries), tuple([number[node] for node in nodes])), leaves


def settle(node: Node) -> Node:
    """Compute a node that ends a very long chain which nothing is recording."""
    if node.depth > LONGEST_CHAIN and current_trace() is None:
        _compute(node)
    return node


def require(condition: Node, message: str) -> None:
    """Raise RangeError unless all of a boolean node is true; while jit records, every later call checks it too."""
    if condition.size == 0:
        return
    everything = reduce("min", condition, range(condition.ndim))
    trace = current_trace()
    if trace is not None and trace.varies(everything):
        trace.checks.append((everything, message))
    if not bool(_compute(everything)):
        raise RangeError(message)
