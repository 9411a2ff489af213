"""Results of own kernels, each in an array of its own.

In: a simplified graph. Out: an equal graph in which the results of a call of a user's kernel are `item` nodes of it, as
those of a loop are, instead of parts of a packed row; results of several dtypes are items of the same call. Called by
fuse.py. So a kernel runs once and writes where its results are wanted. Calls whose parts something reads across stay as
they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..graph.builders import reshape, slice_axes
from ..graph.custom_calls import OWN_KERNEL, Call
from ..graph.ir import PRIMITIVES, Node, topological
from ..graph.shapes import ends_of_slice

HOST, ITEM, SLICE = (PRIMITIVES[name] for name in ("host", "item", "slice"))
RESULT = "result"
"""The items of calls: (RESULT, position of a result)."""
_Cut = tuple[int, int, int] | None
"""The start, the count and the step of the elements of a result; None for the result itself."""


def with_results_apart(outputs: list[Node], order: list[Node]) -> tuple[list[Node], list[Node]]:
    """Equal outputs in which the results of kernels are items, and all their nodes in order."""
    calls: dict[tuple[tuple[Node, ...], Call], list[Node]] = {}
    for node in order:
        if node.primitive is HOST and node.params[0] is OWN_KERNEL and len(node.params[1].outputs) > 1:
            calls.setdefault((node.inputs, node.params[1]), []).append(node)
    if not calls:
        return outputs, order
    readers: dict[Node, list[Node]] = {row: [] for rows in calls.values() for row in rows}
    for node in order:
        for source in node.inputs:
            if source in readers:
                readers[source].append(node)
    first: dict[Node, Node] = {}
    cuts: dict[Node, tuple[int, _Cut]] = {}
    for (_, call), rows in calls.items():
        found = [_cuts(row, call, readers[row], row in outputs) for row in rows]
        if None not in found:
            first.update(dict.fromkeys(rows, max(rows, key=lambda row: row.size)))
            cuts.update({node: cut for one in found for node, cut in (one or {}).items()})
    new: dict[Node, Node] = {}
    called: dict[Node, Node] = {}
    items: dict[tuple[Node, int], Node] = {}
    for node in order:
        inputs = tuple([new[source] for source in node.inputs])
        if node in first:
            one = first[node]
            new[node] = called.setdefault(one, Node(HOST, inputs, one.params, one.shape, one.dtype))
        elif inputs != node.inputs:
            new[node] = Node(node.primitive, inputs, node.params, node.shape, node.dtype)
        else:
            new[node] = node
        if node in cuts:
            position, cut = cuts[node]
            call = new[node] if node in first else inputs[0]
            shape, dtype = call.params[1].outputs[position]
            item = items.setdefault((call, position), Node(ITEM, (call,), (RESULT, position), shape, dtype))
            new[node] = item if cut is None else slice_axes(reshape(item, (math.prod(shape),)), [cut])
    results = [new[node] for node in outputs]
    return results, topological(results)


def _cuts(row: Node, call: Call, readers: Sequence[Node], is_output: bool) -> dict[Node, tuple[int, _Cut]] | None:
    """The nodes that are results of a call, or parts of one: the result, and the part; None if some are of several."""
    shape, dtype = row.params[-1][-1]
    if dtype != row.dtype or not shape == row.shape == call.packed[dtype].shape:
        return None  # complex numbers, or results for a batch
    places = call.packed[dtype].places
    if len(places) == 1:
        return {row: (next(iter(places)), None)}
    if is_output or any(node.primitive is not SLICE for node in readers):
        return None
    found: dict[Node, tuple[int, _Cut]] = {}
    for node in readers:
        ((start, count, step),) = node.params[0]
        low, high = ends_of_slice(start, count, step)
        for position, place in places.items():
            size = math.prod(call.outputs[position][0])
            if count and place <= low and high < place + size:
                found[node] = position, (start - place, count, step)
        if node not in found:
            return None
    return found
