"""Axis orders: a graph whose arrays lie in memory as NumPy's would, made of one in which all are in C order.

In: a simplified graph, with the orders in which the axes of its leaves lie in memory, and in which those of its outputs
shall. Out: the graph of the arrays in memory: each leaf, output and intermediate with its axes in such an order, the
slowest first, which is C order for kernels. Called by front.py where arguments or results are not all in C order.

Maps and reductions follow their operands; where these lie in different orders, maps take the one in which more of the
leaves and outputs lie, as a vote. Movements move orders of axes instead of elements. Special kernels, and reshapes that
run across the order, read transposed views.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..graph.builders import reduce, reshape, slice_axes, transpose
from ..graph.ir import PRIMITIVES, Node, broadcast, placeholder, topological
from ..graph.loops.origins import walked
from ..graph.rules.structural_rules import reshape_leading
from ..graph.shapes import Shape
from .memory_order import contiguous, order_of_pieces

Order = tuple[int, ...]
BROADCAST, CONCATENATE, GATHER, PAD, RESHAPE, SLICE, TRANSPOSE = (
    PRIMITIVES[name] for name in "broadcast concatenate gather pad reshape slice transpose".split()
)


class _Laid(NamedTuple):
    """A node in memory: `array` is the node with its axes in an order."""

    array: Node
    order: Order

    def strides(self) -> tuple[int, ...]:
        """The strides of the node, in elements."""
        shape = [0] * len(self.order)
        for extent, axis in zip(self.array.shape, self.order, strict=True):
            shape[axis] = extent
        return contiguous(tuple(shape), 1, self.order)

    def turned(self, order: Order) -> Node:
        """The node with its axes in another order."""
        array, own = self
        if order == own:
            return array
        axes = tuple([own.index(axis) for axis in order])
        if array.primitive is BROADCAST:
            # Its few elements are turned.
            source = transpose(reshape_leading(array.inputs[0], array.ndim), axes)
            return broadcast(source, tuple([array.shape[axis] for axis in axes]))
        return transpose(array, axes)


class _Votes:
    """The elements of the leaves and outputs that lie in each order, axes of one element left out."""

    def __init__(self) -> None:
        self.elements: Counter[Order] = Counter()

    def add(self, node: Node, order: Order) -> None:
        """Count a leaf or an output."""
        self.elements[_among_longer(order, node.shape)] += node.size

    def chosen(self, node: Node, orders: set[Order]) -> Order:
        """The order of most elements, of some or of any; C order before others of as many."""
        longer = [axis for axis, extent in enumerate(node.shape) if extent != 1]
        if not orders:
            ones = [axis for axis, extent in enumerate(node.shape) if extent == 1]
            known = [ranks for ranks in self.elements if len(ranks) == len(longer)]
            orders = {(*ones, *[longer[rank] for rank in ranks]) for ranks in known}
        return self.first(node, [_in_c(node), *sorted(orders)])

    def first(self, node: Node, orders: Sequence[Order]) -> Order:
        """The order of most elements among some, the first of as many."""
        return max(orders, key=lambda order: self.elements[_among_longer(order, node.shape)])


def _among_longer(order: Order, shape: Shape) -> Order:
    """An order of the axes longer than 1, which count as if they were alone."""
    longer = [axis for axis in order if shape[axis] != 1]
    ranks = {axis: rank for rank, axis in enumerate(sorted(longer))}
    return tuple([ranks[axis] for axis in longer])


def in_memory_order(
    outputs: Sequence[Node], wanted: Sequence[Order | None], leaves: Sequence[Node], orders: Sequence[Order | None]
) -> tuple[list[Node], list[Node]]:
    """The outputs as they shall lie in memory, and the leaves as they do.

    Parameters
    ----------
    outputs, leaves : sequences of nodes
    wanted, orders : sequences of (tuple of int or None)
        Of each output and each leaf, its axes in the order of memory, the slowest first; None is C order.
    """
    laid: dict[Node, _Laid] = {}
    arrays: list[Node] = []
    votes = _Votes()
    for node, order in zip([*outputs, *leaves], [*wanted, *orders], strict=True):
        votes.add(node, _in_c(node) if order is None else order)
    for leaf, order in zip(leaves, orders, strict=True):
        array = leaf
        if order is not None:
            array = placeholder(tuple([leaf.shape[axis] for axis in order]), leaf.dtype)
            laid[leaf] = _Laid(array, order)
        arrays.append(array)
    for node in walked(topological(outputs)):
        if node in laid:
            continue
        diagonal = _diagonal(node, laid) if node.primitive is SLICE and node.inputs[0].primitive is RESHAPE else None
        laid[node] = diagonal or _laid(node, [laid[source] for source in node.inputs], votes)
    pairs = zip(outputs, wanted, strict=True)
    return [laid[node].turned(_in_c(node) if order is None else order) for node, order in pairs], arrays


def _in_c(node: Node) -> Order:
    return tuple(range(node.ndim))


def _like(node: Node, inputs: Sequence[Node], params: tuple = (), shape: Shape | None = None) -> Node:
    inputs = tuple(inputs)
    if inputs == node.inputs and shape is None:
        return node
    return Node(node.primitive, inputs, params or node.params, node.shape if shape is None else shape, node.dtype)


def _laid(node: Node, operands: Sequence[_Laid], votes: _Votes) -> _Laid:
    """A node in the order in which it follows from its operands with the least movement."""
    primitive, shape = node.primitive, node.shape
    if primitive is GATHER:
        source, index = operands
        inputs = (source.turned((0,)), index.array)
        return _Laid(_like(node, inputs, node.params, index.array.shape), index.order)
    if primitive.kind == "elementwise" and shape:
        said = {one.order for one in operands if one.array.primitive is not BROADCAST}
        if not said and node.dtype.kind in "iu":
            # Positions, of which row_scatter.py finds the rows.
            said.add(_in_c(node))
        order = said.pop() if len(said) == 1 else votes.chosen(node, said)
        inputs = [one.turned(order) for one in operands]
        return _Laid(_like(node, inputs, node.params, tuple([shape[axis] for axis in order])), order)
    if primitive.kind == "reduction":
        source, order = operands[0]
        axes = node.params[0]
        left = [axis for axis in range(len(order)) if axis not in axes]
        reduced = reduce(node.name, source, [order.index(axis) for axis in axes])
        return _Laid(reduced, tuple([left.index(axis) for axis in order if axis in left]))
    if primitive is CONCATENATE:
        pieces = [(source.shape, one.strides()) for source, one in zip(node.inputs, operands, strict=True)]
        order, axis = tuple(order_of_pieces(pieces)), node.params[0]
        if all(source.shape[axis] == 1 for source in node.inputs):
            # Stacked pieces lie as they do wherever the axis goes between theirs.
            others = [other for other in order if other != axis]
            places = [order.index(axis), *range(node.ndim)]
            order = votes.first(node, [(*others[:at], axis, *others[at:]) for at in places])
        inputs = [one.turned(order) for one in operands]
        return _Laid(_like(node, inputs, (order.index(axis),), tuple([shape[a] for a in order])), order)
    if primitive.kind == "movement":
        moved = _moved(node, operands[0])
        if moved is not None:
            return moved
    inputs = [one.turned(_in_c(source)) for source, one in zip(node.inputs, operands, strict=True)]
    return _Laid(_like(node, inputs), _in_c(node))


def _moved(node: Node, operand: _Laid) -> _Laid | None:
    """A movement of one array that leaves its elements where they are; None for a reshape across the order of axes."""
    (source, order), primitive, shape = operand, node.primitive, node.shape
    if primitive is TRANSPOSE:
        axes = node.params[0]
        return _Laid(source, tuple([axes.index(axis) for axis in order]))
    if primitive is BROADCAST:
        new = node.ndim - len(order)
        order = (*range(new), *[new + axis for axis in order])
        return _Laid(broadcast(source, tuple([shape[axis] for axis in order])), order)
    if primitive is SLICE or primitive is PAD:
        changes = tuple([node.params[0][axis] for axis in order])
        return _Laid(_like(node, (source,), (changes,), tuple([shape[axis] for axis in order])), order)
    assert primitive is RESHAPE, node
    new_order = _reshaped_order(node.inputs[0].shape, shape, order)
    if new_order is None:
        return None
    return _Laid(reshape(source, tuple([shape[axis] for axis in new_order])), new_order)


def _diagonal(node: Node, laid: Mapping[Node, _Laid]) -> _Laid | None:
    """A slice of flat matrices whose elements lie equally many rows and columns apart, as one of the flat transposes,
    where these lie in memory; None for others."""
    flat = node.inputs[0]
    matrices = flat.inputs[0]
    *others, (start, length, step) = node.params[0]
    if flat.shape != (*matrices.shape[:-2], math.prod(matrices.shape[-2:])):
        return None
    array, order = laid[matrices]
    (rows, columns), last = matrices.shape[-2:], matrices.ndim - 1
    (row, column), (down, right) = divmod(start, columns), divmod(step, columns)
    at = order.index(last)
    if order[at + 1 : at + 2] != (last - 1,) or not 0 <= column + (length - 1) * right < columns:
        return None
    joined = reshape(array, (*array.shape[:at], rows * columns, *array.shape[at + 2 :]))
    new_order = (*order[:at], last - 1, *order[at + 2 :])
    ranges = [*others, (column * rows + row, length, right * rows + down)]
    return _Laid(slice_axes(joined, [ranges[axis] for axis in new_order]), new_order)


def _reshaped_order(before: Shape, after: Shape, order: Order) -> Order | None:
    """The order of the axes of an array in another shape, whose elements stay where they are; None if they cannot.

    Runs of axes that hold equally many elements before and after must lie side by side in the order of memory.
    """
    if 0 in before:
        return None
    old = [axis for axis, extent in enumerate(before) if extent != 1]
    new = [axis for axis, extent in enumerate(after) if extent != 1]
    places: dict[int, int] = {}
    while old:
        one, other = [old.pop(0)], [new.pop(0)]
        size, wanted = before[one[0]], after[other[0]]
        while size != wanted:
            if size < wanted:
                one.append(old.pop(0))
                size *= before[one[-1]]
            else:
                other.append(new.pop(0))
                wanted *= after[other[-1]]
        memory = [axis for axis in order if before[axis] != 1]
        start = memory.index(one[0])
        if memory[start : start + len(one)] != one:
            return None
        places |= dict.fromkeys(other, start)
    ones = [axis for axis in range(len(after)) if axis not in places]
    ordered = sorted(places, key=lambda axis: (places[axis], axis))
    return tuple(range(len(after))) if ordered == sorted(ordered) else (*ones, *ordered)
