"""Elements added at computed positions that few numbers tell: gradients without a position for every element.

In: a simplified graph. Out: an equal graph in which a `scatter_add` whose positions are the starts of rows plus
0, 1, ..., L - 1 became a "scatter_rows", which reads one position for each row; called by fuse.py. The gradient of
`table[index]` is such a sum. For the CPU, one whose positions are the starts of rows plus the same numbers for each row
became a "scatter_sums"; called by front.py. The gradient of `np.take(x, index, axis=1)` is such a sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.builders import reshape
from ..graph.ir import PRIMITIVES, Node, Params, Primitive, topological
from ..graph.loops.origins import walked
from ..graph.shapes import Shape

SCATTER_ADD = PRIMITIVES["scatter_add"]


def _rule(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return (params[0],), inputs[-1].dtype


SCATTER_ROWS = Primitive("scatter_rows", "special", _rule)
"""(starts of rows, rows) -> zeros of a given length with the rows added. Only compiled graphs hold it."""
SCATTER_SUMS = Primitive("scatter_sums", "special", _rule)
"""(starts of rows, positions in each row, rows) -> zeros with elements added, in the order of `scatter_add`."""
DTYPES = frozenset("int32 int64 float32 float64".split())
"""Those of the elements that its kernel adds."""
LEAST_ROWS = 4


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
    if index.name != "add" or not index.ndim or index.shape[-1] < 2:
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


# ----- The same positions in each row -----


def add_by_rows(outputs: list[Node]) -> list[Node]:
    """Equal outputs, in which sums at the same positions of each row read these once."""
    order = topological(outputs)
    if SCATTER_ADD not in {node.primitive for node in order}:
        return outputs
    new: dict[Node, Node] = {}
    for node in walked(order):
        inputs = tuple([new[source] for source in node.inputs])
        found = _sums(*inputs) if node.primitive is SCATTER_ADD and node.dtype.name in DTYPES else None
        if found is not None:
            new[node] = Node(SCATTER_SUMS, found, node.params, node.shape, node.dtype)
        elif inputs == node.inputs:
            new[node] = node
        else:
            new[node] = Node(node.primitive, inputs, node.params, node.shape, node.dtype)
    return [new[node] for node in outputs]


def _sums(index: Node, updates: Node) -> tuple[Node, Node, Node] | None:
    """The starts, the positions and the rows, if an index is the sum of starts that vary along its first axes only and
    positions that vary along the others; or None."""
    if index.name != "add" or _row_starts(index) is not None:
        return None
    for first, second in (index.inputs, index.inputs[::-1]):
        if first.name != "broadcast" or second.name != "broadcast":
            continue
        starts, positions = first.inputs[0], second.inputs[0]
        varying = next((k for k, n in enumerate(positions.shape) if n != 1), positions.ndim)
        leading = index.ndim - positions.ndim + varying
        rows, length = math.prod(index.shape[:leading]), math.prod(index.shape[leading:])
        if starts.size == rows and positions.size == length and rows >= LEAST_ROWS <= length:
            return reshape(starts, (rows,)), reshape(positions, (length,)), reshape(updates, (rows, length))
    return None
