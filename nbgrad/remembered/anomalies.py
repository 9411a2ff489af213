"""The operation whose derivative made a NaN, and the user's line that it comes from.

In: outputs, their cotangents, and the nodes whose lines were noted in anomaly mode. Out: nothing, or an error that
names the line. Called by backward.py, which computes with these checks only in that mode.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import AutogradError
from ..graph.differentiate import vjp
from ..graph.ir import Node, broadcast, constant, literal, on_host
from ..runtime.evaluate import LINES, compute
from .hooks import replaced, stopped


def check_anomalies(
    outputs: Sequence[Node], seeds: Sequence[Node | None], noted: Sequence[Node], wanted: Sequence[Node]
) -> None:
    """Compute the cotangents of all noted operations, and look where the first NaN comes from.

    Raises
    ------
    AutogradError
        If the derivative of an operation is NaN, of the first one that gets a cotangent that is not, or of all.
    """
    places = [*dict.fromkeys([*wanted, *noted])]
    whole = [
        broadcast(literal(1, node.dtype), node.shape) if seed is None else seed
        for node, seed in zip(outputs, seeds, strict=True)
    ]
    found = _values(vjp(outputs, whole, places))
    cotangents = dict(zip(places, found, strict=True))
    bad = [node for node, value in cotangents.items() if value is not None and np.isnan(value).any()]
    if not bad:
        return
    last = max(bad, key=lambda node: node.serial)
    for node in sorted(noted, key=lambda node: -node.serial):
        value = cotangents[node]
        if node is last or value is None:
            continue
        (alone,), _ = replaced([node], {one: stopped for one in noted if one is not node and one is not last})
        sent = _values(vjp([alone], [constant(value)], [last]))[0]
        if sent is not None and np.isnan(sent).any():
            _refuse(node, node.inputs.index(last) if last in node.inputs else 0)
    if last in LINES:  # its cotangent was given so
        _refuse(last, 0)


def _refuse(node: Node, place: int) -> None:
    name = node.name.title().replace("_", "")
    message = (
        f"Function '{name}Backward0' returned nan values in its {place}th output. The operation is the one "
        f"{LINES[node].strip(' ()')}; its gradient was asked for"
    )
    raise AutogradError(message)


def _values(nodes: Sequence[Node | None]) -> list[np.ndarray | None]:
    """The values of nodes; None for those that are None."""
    values = iter(compute([node for node in nodes if node is not None]))
    return [None if node is None else on_host(next(values)) for node in nodes]
