"""The reference interpreter: runs any graph with plain NumPy, one node at a time.

In: output nodes and the arrays of the placeholders. Out: one array per output, by the meaning that the row of each
primitive gives. It is the oracle for every optimisation, the target of `NBGRAD_DISABLE_JIT=1`, and computes the small
values that Python control flow asks for. SciPy is imported only where a special function needs it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import TracedValueError
from .ir import Node, on_host, topological

Array = np.ndarray


def evaluate_node(node: Node, operands: Sequence[Array]) -> Array:
    """The value of one node, given those of its inputs; always of the node's dtype and shape."""
    primitive = node.primitive
    meaning = primitive.meaning
    assert meaning is not None, node
    value = meaning(node.params, *operands) if primitive.takes_params else meaning(*operands)
    if value.__class__ is not np.ndarray:
        value = np.asarray(value)
    assert value.shape == node.shape, (node, value.shape)
    return value if value.dtype == node.dtype else value.astype(node.dtype)


def interpret(outputs: Sequence[Node], arguments: Mapping[Node, Array] | None = None) -> list[Array]:
    """Run a graph with NumPy.

    `arguments` gives the arrays of placeholders; those it leaves out use their example value.
    """
    known = arguments or {}
    return interpret_order(topological(outputs, known), known, outputs)


def interpret_order(order: Sequence[Node], known: Mapping[Node, Array], outputs: Sequence[Node]) -> list[Array]:
    """The values of outputs, by computing nodes in an order; their inputs must be known or come before them."""
    values = dict(known)
    uses: dict[Node, int] = dict.fromkeys(outputs, 1)
    quiet = True
    for node in order:
        for source in node.inputs:
            uses[source] = uses.get(source, 0) + 1
        if node.primitive.kind == "special":
            quiet = False
    with np.errstate(all="ignore"):
        if quiet:
            _compute(order, values, uses)
        else:
            # Library functions warn in other ways, too.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                _compute(order, values, uses)
    return [values[node] for node in outputs]


def _compute(order: Sequence[Node], values: dict[Node, Array], uses: dict[Node, int]) -> None:
    """Enter the values of nodes; each is forgotten after its last use."""
    for node in order:
        primitive = node.primitive
        if primitive.kind != "source":
            values[node] = evaluate_node(node, [values[source] for source in node.inputs])
            for source in node.inputs:
                uses[source] -= 1
                if uses[source] == 0 and source.inputs:
                    values.pop(source, None)
        elif primitive.name == "literal":
            values[node] = _number(node.params[0], node.dtype)
        elif node.value is not None:
            values[node] = on_host(node.value)
        elif primitive.name in ("constant", "input"):
            message = "A Tensor that jit or vmap recorded is used after the recording, when it has no value."
            raise TracedValueError(message)
        else:
            values[node] = evaluate_node(node, ())


@lru_cache(maxsize=4096)
def _number(data: bytes, dtype: np.dtype[Any]) -> Array:
    """A literal's value, for all to read."""
    return np.frombuffer(data, dtype).reshape(())
