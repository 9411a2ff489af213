"""Nodes that become others, in place: so that whatever holds one of them has the new form.

In: nodes of a recording, and the nodes that have the same values. Out: nothing. Called by rolling.py and growth.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount

from ..ir import Node
from .origins import current
from .repetition import LITERAL

Settle = Callable[[Node], object]
"""Makes a node know how its value lies in memory, which then no longer follows from its operands."""


def settled(nodes: Sequence[Node], settle: Settle) -> None:
    """Let nodes know how they lie in memory, before they become others."""
    for node in nodes:
        if node.size < 2:
            node.layout = None
        elif node.layout is not None:
            settle(node)


def become(nodes: Sequence[Node], values: Sequence[Node]) -> None:
    """Let nodes be made as those are that have the same values."""
    for node, value in zip(nodes, values, strict=True):
        node.primitive, node.inputs, node.params = value.primitive, value.inputs, value.params


def put_before(new: Sequence[Node], before: float) -> None:
    """Number new nodes, and all that was made for them, after what they are made of and before a serial number."""
    fresh: dict[Node, None] = {}
    after = before - 1
    waiting = list(new)
    for node in waiting:
        if node.serial < before:
            after = max(after, node.serial)
        elif node not in fresh:
            fresh[node] = None
            waiting += node.inputs
    step = (before - after) / (len(fresh) + 1)
    notes = current()
    for number, node in enumerate(sorted(fresh, key=lambda node: node.serial), 1):
        if notes is not None:
            notes.renumber(node, after + number * step)
        node.serial = after + number * step


def references(nodes: Sequence[Node]) -> list[int]:
    """How many references there are to each of some nodes, apart from that of the sequence itself.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad.graph.ir import constant
    >>> x = constant(np.ones(2))
    >>> y = x * x
    >>> references([x, y])
    [3, 1]
    """
    return [getrefcount(node) - _OWN for node in nodes]


_OWN = 0
(_OWN,) = references([Node(LITERAL, (), (), (), None)])  # type: ignore[arg-type]
"""The references of a list, and of counting itself."""
