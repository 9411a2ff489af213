"""Values on demand: computes a node when Python needs its value.

In: a node and why its value is needed. Out: an ndarray. Called by Tensor (`bool()`, `float()`, `asnumpy()`, printing)
and by operations whose shape depends on values. While a function is recorded for `jit`, asking for a truth value or an
integer records a guard; asking for anything else is an error, since the recorded program could not know.
"""

from __future__ import annotations

import numpy as np

from ..errors import RangeError, TracedValueError
from ..graph.interpret import interpret
from ..graph.ir import PRIMITIVES, Node
from ..graph.primitives import reduce
from ..graph.trace import current_trace

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
    if trace is not None and trace.guards is not None and node.traced and trace.depends(node):
        if reason not in ("bool", "int"):
            message = (
                f"The {'number' if reason == 'float' else 'array'} behind a Tensor of shape {node.shape} is needed while "
                "jit records the function, but it differs from call to call. Keep it a Tensor, take it out of the "
                "jitted function, or return it."
            )
            raise TracedValueError(message)
        value = _compute(node)
        trace.guards.append((node, value))
        return value
    return _compute(node)


def _compute(node: Node) -> np.ndarray:
    if node.value is None:
        (value,) = interpret([node])
        value = np.array(value)
        value.flags.writeable = False
        node.value = value
        if not node.traced:
            # Nothing differentiates it: forget how it was made.
            node.primitive, node.inputs, node.params = PRIMITIVES["constant"], (), ()
            node.depth = 0
    return node.value


def settle(node: Node) -> Node:
    """Compute a node that ends a very long chain which nothing is recording."""
    if node.depth > LONGEST_CHAIN and not node.traced:
        _compute(node)
    return node


def require(condition: Node, message: str) -> None:
    """Raise RangeError unless all of a boolean node is true; while jit records, every later call checks it too."""
    everything = reduce("min", condition, range(condition.ndim))
    trace = current_trace()
    if trace is not None and trace.guards is not None and everything.traced and trace.depends(everything):
        trace.checks.append((everything, message))
    if not bool(_compute(everything)):
        raise RangeError(message)

