"""Matrices of zeros with one diagonal, by a choice at each element.

In: a graph that is as simple as it gets. Out: an equal graph. Called by front.py, last: `unslice` makes such matrices
of longer rows, a reshape and a slice, which rules for slices see through where only diagonals are read of them. What is
left would take memory and a copy, where loops may make a choice between other operations.
"""

from __future__ import annotations

from ...graph.builders import iota, pad, reshape
from ...graph.ir import PRIMITIVES, Node, broadcast, elementwise, topological, zeros
from ...graph.simplify import Simplifier

RESHAPE, SLICE, PAD = (PRIMITIVES[name] for name in ("reshape", "slice", "pad"))


def with_diagonals(outputs: list[Node]) -> list[Node]:
    """Equal outputs, in which matrices with one diagonal are choices."""
    replaced: dict[Node, Node] = {}
    for node in topological(outputs):
        if node.primitive is RESHAPE and node.inputs[0].primitive is SLICE:
            found = _with_choice(node)
            if found is not None:
                replaced[node] = found
    return Simplifier(replaced).run(outputs) if replaced else outputs


def _with_choice(node: Node) -> Node | None:
    """A choice at each element in place of matrices that `unslice` has made; None for other nodes."""
    cut = node.inputs[0]
    rows = cut.inputs[0]
    padded = rows.inputs[0] if rows.primitive is RESHAPE else rows
    if padded.primitive is not PAD or node.ndim < 2 or not cut.ndim + 1 == padded.ndim == node.ndim:
        return None
    given, widths = padded.inputs[0], padded.params[0]
    *batch, height, width = node.shape
    count = given.shape[-2]
    starts_at_once = all(r == (0, n, 1) for r, n in zip(cut.params[0], cut.shape, strict=True))
    if not starts_at_once or given.shape != (*batch, count, 1) or padded.shape[-1] != width + 1:
        return None
    if cut.shape != (*batch, height * width) or rows.shape[:-1] != (*batch,) or any(map(any, widths[:-2])):
        return None
    row, column = divmod(widths[-2][0] * (width + 1) + widths[-1][0], width)
    if column + count > width or row + count > height:
        return None
    below = pad(given, [*[(0, 0)] * len(batch), (row, height - row - count), (0, 0)])
    along = broadcast(iota(width), node.shape)
    down = broadcast(reshape(iota(height), (height, 1)), node.shape) + (column - row)
    return elementwise(
        "select", elementwise("equal", along, down), broadcast(below, node.shape), zeros(node.shape, node.dtype)
    )
