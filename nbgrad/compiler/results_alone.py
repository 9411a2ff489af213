"""Results alone: decompositions of which only the values are read are found without their vectors, and slopes of
functions of which only the slope is read without the function.

In: a simplified graph. Out: an equal graph, in which library functions and kernels that find several results find only
those that are read, where that is faster; the graph itself if there are none. Called by front.py. Functions record
whatever a derivative may need, and only a program knows what is left of it.
"""

from __future__ import annotations

from ..graph.builders import reshape, slice_axes
from ..graph.ir import PRIMITIVES, Node, elementwise, placeholder, topological
from ..graph.rules.elementwise_rules import literal_of
from ..graph.shapes import ends_of_slice
from ..graph.simplify import Simplifier

SLICE, TANH, SUBTRACT, ADD, MULTIPLY = (PRIMITIVES[name] for name in "slice tanh subtract add multiply".split())


def with_results_alone(outputs: list[Node]) -> list[Node]:
    """Equal outputs, of decompositions that give no more than is read."""
    order = topological(outputs)
    several = [node for node in order if _has_parts(node)]
    tangents = [node for node in order if node.primitive is TANH]
    if not several and not tangents:
        return outputs
    readers: dict[Node, list[Node]] = {node: [] for node in order}
    for node in order:
        for source in node.inputs:
            readers[source].append(node)
    replaced: dict[Node, Node] = {}
    for node in several:
        axis, first, alone = _alone(node)
        reads = {reader: _read(reader, axis, first, alone) for reader in readers[node]}
        if None not in reads.values():
            replaced.update(reads)  # pyright: ignore[reportArgumentType, reportCallIssue]
    for node in tangents:
        slope = _slope_alone(node, readers)
        if slope is not None and not {node, *slope.inputs}.intersection(outputs):
            replaced[slope] = _square_of_secant(node.inputs[0])
    return Simplifier(replaced).run(outputs) if replaced else outputs


def _has_parts(node: Node) -> bool:
    if node.name == "host":
        return node.params[0].alone is not None
    return node.name == "symmetric_eigen" and bool(node.params[1])


def _alone(node: Node) -> tuple[int, int, Node]:
    """The axis of a node along which its results lie, the place of some there, and a node of these alone, real ones."""
    if node.name == "symmetric_eigen":
        (a,) = node.inputs
        return 1, 0, Node(node.primitive, node.inputs, (node.params[0], False), a.shape[:-1], node.dtype)
    function, *static, layouts = node.params
    other, begin = function.alone
    operands, result = layouts[:-1], layouts[-1]
    shape, dtype = other.rule([placeholder(*layout) for layout in operands], static)
    params = (other, *static, (*operands, (shape, dtype)))
    alone = Node(node.primitive, node.inputs, params, shape, dtype)
    return len(result[0]) - 1, begin(operands[0][0], *static), alone


def _read(reader: Node, axis: int, first: int, alone: Node) -> Node | None:
    """A slice of a node as one of the node that has some results alone, from `first` on; None if it reads others."""
    if reader.primitive is not SLICE:
        return None
    ranges = list(reader.params[0])
    start, count, step = ranges[axis]
    low, high = ends_of_slice(start, count, step)
    if low < first or high >= first + alone.shape[axis]:
        return None
    ranges[axis] = (start - first, count, step)
    if alone.ndim < len(ranges) and ranges.pop() != (0, 1, 1):
        # The real results lie in the first parts of complex numbers.
        return None
    return reshape(slice_axes(alone, ranges), reader.shape)


def _slope_alone(tangent: Node, readers: dict[Node, list[Node]]) -> Node | None:
    """The product (1 - t)(1 + t) if nothing else reads a hyperbolic tangent t, and nothing its factors."""
    if len(readers[tangent]) != 2:
        return None
    less, more = sorted(readers[tangent], key=lambda node: node.primitive is ADD)
    if less.primitive is not SUBTRACT or more.primitive is not ADD or less.inputs[1] is not tangent:
        return None
    (other,) = [source for source in more.inputs if source is not tangent]
    if literal_of(less.inputs[0]) != 1 or literal_of(other) != 1:
        return None
    product = readers[less][0] if readers[less] else tangent
    alone = readers[less] == readers[more] == [product]
    return product if alone and product.primitive is MULTIPLY else None


def _square_of_secant(x: Node) -> Node:
    """1 - tanh(x)**2 with one exponential and without the tangent: 4 e / (1 + e)**2 of e = exp(-2 |x|)."""
    shrunk = elementwise("exp", elementwise("absolute", x) * -2.0)
    part = 1.0 / (shrunk + 1.0)
    return shrunk * 4.0 * (part * part)
