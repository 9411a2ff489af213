"""Whole rows added at computed positions: a table's gradient without a position for every element.

In: a simplified graph. Out: an equal graph in which a `scatter_add` whose positions are the starts of rows plus
0, 1, ..., L - 1 became a "scatter_rows", which reads one position for each row. Called by fuse.py. The gradient of
`table[index]` is such a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.builders import reshape
from ..graph.ir import PRIMITIVES, Node, Params, Primitive, topological
from ..graph.shapes import Shape

SCATTER_ADD = PRIMITIVES["scatter_add"]


def _rule(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return (params[0],), inputs[1].dtype


SCATTER_ROWS = Primitive("scatter_rows", "special", _rule)
"""(starts of rows, rows) -> zeros of a given length with the rows added. Only compiled graphs hold it."""


def add_whole_rows(outputs: list[Node], order: list[Node]) -> tuple[list[Node], list[Node]]:
    """Equal outputs in which rows are added as a whole, and all their nodes in order."""
    if SCATTER_ADD not in {node.primitive for node in order}:
        return outputs, order
    new: dict[Node, Node] = {}
    for node in order:
        inputs = tuple([new[source] for source in node.inputs])
        starts = _row_starts(inputs[0]) if node.name == "scatter_add" else None
        new[node] = node
        if starts is not None:
            parts = (reshape(starts, (starts.size,)), reshape(inputs[1], (starts.size, inputs[0].shape[-1])))
            new[node] = Node(SCATTER_ROWS, parts, node.params, node.shape, node.dtype)
        elif inputs != node.inputs:
            new[node] = Node(node.primitive, inputs, node.params, node.shape, node.dtype)
    outputs = [new[node] for node in outputs]
    return outputs, topological(outputs)


def _row_starts(index: Node) -> Node | None:
    """The starts of rows, if an index is the sum of them and 0, 1, ..., L - 1 along the last axis; or None."""
    if index.name != "add" or index.shape[-1] < 2:
        return None
    for start, line in (index.inputs, index.inputs[::-1]):
        if line.name != "broadcast" or start.name != "broadcast":
            continue
        column, counted = start.inputs[0], line.inputs[0]
        while counted.name == "reshape":
            counted = counted.inputs[0]
        counts = counted.name == "iota" and counted.shape[0] == index.shape[-1] == line.inputs[0].shape[-1]
        if counts and column.shape == (*index.shape[:-1], 1):
            return column
    return None
