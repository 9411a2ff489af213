"""Movements: every chain of them becomes a view of the array that it moves.

In: the nodes of a simplified graph. Out: `Lowered`, equal nodes in which each is computed, a leaf, or seen through a
`View` of such a `Source`. Called by fuse.py. Where strides cannot say a movement, or a special kernel wants another
layout, the array is copied (an "alias") first. Products of a matrix and a vector become sums of products, and
concatenations of few pieces a choice at each point, both of which fuse with the loops around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..graph.builders import pad, reshape, transpose
from ..graph.ir import PRIMITIVES, Node, broadcast, elementwise, make
from ..graph.loops.origins import walked
from ..graph.shapes import Shape
from .loop_builder import TRUE
from .views import View, matrix_layout, view_through

MOST_PIECES = 4
"""Concatenations of more pieces are assembled by copies instead of by tests on the index."""
MATMUL, GATHER, LOOP = (PRIMITIVES[name] for name in ("matmul", "gather", "loop"))
CONCATENATE, TRANSPOSE = PRIMITIVES["concatenate"], PRIMITIVES["transpose"]
VIRTUAL = frozenset([PRIMITIVES["literal"], PRIMITIVES["iota"]])
UNCOMPUTED = frozenset(p for p in PRIMITIVES.values() if p.kind in ("source", "movement")) - {CONCATENATE}
"""Primitives that have no kernel: leaves and views. Concatenations are assembled by copies."""


class Use(NamedTuple):
    """One use of a node: by which kernel, whether at the same point of the same loop, whether that loop may compute the
    node again instead of reading it, whether it needs an array (a piece of a concatenation is written into it), and
    whether the kernel is a loop that reads the node through a view."""

    group: int
    direct: bool
    repeatable: bool
    stored: bool = True
    in_loop: bool = False


class Source:
    """A node that is no movement, so that views end at it, with all facts found about it.

    `number` is its place in the graph's order. `reads` are its operands, and `waiting` the number of its `readers` that
    are not in a kernel yet, each in a list of its own in `uses`. It may be `stored` in an array, or `free`: computed
    again by each loop that uses it. `anchored` sources are read by such a one, and are not free themselves.
    """

    __slots__ = ("anchored", "domain", "free", "node", "number", "readers", "reads", "stored", "uses", "waiting")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.number = -1
        self.readers = self.waiting = 0
        self.stored = self.free = self.anchored = False
        self.domain: Shape = ()
        self.reads: list[tuple[Source, View]] = []
        self.uses: list[Use] = []


class Lowered:
    """The outputs, each of which is computed, and the view of a source that each node is.

    `interleaved` products of matrices lie side by side in memory.
    """

    def __init__(self, outputs: Sequence[Node], order: Sequence[Node]) -> None:
        self.views: dict[Node, tuple[Source, View]] = {}
        self.interleaved: set[Node] = set()
        self._assembled = _assembled(outputs, order)
        self._turned = _turned(outputs, order)
        self.outputs = self._lower(outputs, order)

    def _lower(self, outputs: Sequence[Node], order: Sequence[Node]) -> list[Node]:
        new: dict[Node, Node] = {}
        for node in walked(order):
            new[node] = self._lowered(node, tuple([new[source] for source in node.inputs]))
        result: dict[Node, None] = {}
        for node in outputs:
            lowered = new[node]
            source, view = self.views[lowered]
            computed = source.node
            if computed.primitive.kind != "source" and view.is_contiguous and computed.size == lowered.size:
                # The same elements in another shape: what is computed is the output.
                lowered = computed
            if lowered.primitive in UNCOMPUTED or lowered in result:
                lowered = self._visit(make("alias", (lowered,)))
            result[lowered] = None
        return list(result)

    def _visit(self, node: Node) -> Node:
        """Note the view of a new node."""
        if node.primitive.kind == "movement" and node.primitive is not CONCATENATE:
            source, view = self.views[node.inputs[0]]
            through = view_through(node, view)
            if through is None:
                copied = self._visit(make("alias", (node.inputs[0],)))
                return self._visit(make(node.name, (copied,), node.params))
            self.views[node] = (source, through)
        else:
            self.views[node] = (Source(node), View.contiguous(node.shape))
        return node

    def _lowered(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        primitive = node.primitive
        if primitive is MATMUL:
            if 1 in node.shape[1:]:
                return self._summed_product(node.shape, *inputs)
            if node in self._turned:
                return self._turned_product(self._turned[node], *inputs)
            inputs = (self._buffer(inputs[0], 2), self._buffer(inputs[1], 2))
        elif primitive is GATHER:
            inputs = (self._buffer(inputs[0], 1), inputs[1])
        elif primitive.kind == "special":
            inputs = tuple([self._buffer(source, 3 if primitive is LOOP else 0) for source in inputs])
        elif primitive is CONCATENATE and node not in self._assembled and len(inputs) <= MOST_PIECES:
            return self._chosen(node.shape, node.params[0], inputs)
        if inputs != node.inputs:
            node = Node(primitive, inputs, node.params, node.shape, node.dtype)
        return self._visit(node)

    def _summed_product(self, shape: Shape, a: Node, b: Node) -> Node:
        """A product of a matrix and a vector: a sum of products, which fuses with the loops that make its operands."""
        if shape[2] == 1:
            full, axis = a.shape, 2
            b = self._spread(self._visit(transpose(b, (0, 2, 1))), full)
        else:
            full, axis = b.shape, 1
            a = self._spread(self._visit(transpose(a, (0, 2, 1))), full)
        product = self._visit(make("multiply", (a, b)))
        return self._visit(reshape(self._visit(make("sum", (product,), ((axis,),))), shape))

    def _turned_product(self, order: tuple[int, ...], a: Node, b: Node) -> Node:
        """Products of matrices side by side in memory, which is in C order when their axes are transposed."""
        swapped = order[-1] == 1
        if swapped:
            a, b = (self._visit(transpose(node, (0, 2, 1))) for node in (b, a))
        product = make("matmul", (self._buffer(a, 2), self._buffer(b, 2)))
        batch, _, columns = product.shape
        self.interleaved.add(product)
        self.views[product] = (Source(product), View(product.shape, (columns, batch * columns, 1), 0, (None,) * 3))
        return self._visit(transpose(product, (0, 2, 1))) if swapped else product

    def _buffer(self, node: Node, freedom: int) -> Node:
        """The node itself if it is stored memory of the right layout, else a copy of it.

        `freedom` 0 asks for C order; 1 for any strides; 2 for matrices with one contiguous axis; 3 for C order within
        a part of the memory.
        """
        source, view = self.views[node]
        good = source.node.primitive not in VIRTUAL and not view.is_masked
        if good and freedom == 0:
            good = view.is_contiguous
        elif good and freedom == 2:
            good = matrix_layout(view) is not None
        elif good and freedom == 3:
            good = view._replace(offset=0).is_contiguous
        return node if good else self._visit(make("alias", (node,)))

    def _chosen(self, shape: Shape, axis: int, pieces: tuple[Node, ...]) -> Node:
        """A concatenation of few pieces: at each point, the piece in which the index lies."""
        end = shape[axis]
        result: Node | None = None
        for piece in reversed(pieces):
            start = end - piece.shape[axis]
            widths = [(start, shape[axis] - end) if a == axis else (0, 0) for a in range(len(shape))]
            part = self._visit(pad(piece, widths))
            if result is None:
                result = part
            else:
                inside = self._spread(self._visit(TRUE), piece.shape)
                inside = self._visit(pad(inside, widths))
                result = self._visit(elementwise("select", inside, part, result))
            end = start
        assert result is not None
        return result

    def _spread(self, node: Node, shape: Shape) -> Node:
        return node if node.shape == shape else self._visit(broadcast(node, shape))


def _assembled(outputs: Sequence[Node], order: Sequence[Node]) -> set[Node]:
    """The concatenations that are needed as arrays in memory, directly or through other movements."""
    result: set[Node] = set()
    stack = list(outputs)
    for node in order:
        if node.primitive.kind == "special":
            stack.extend(node.inputs)
        elif node.primitive is GATHER:
            stack.append(node.inputs[0])
    while stack:
        node = stack.pop()
        if node.primitive.kind != "movement" or node in result:
            continue
        if node.primitive is CONCATENATE:
            result.add(node)
        stack.extend(node.inputs)
    return result


def _turned(outputs: Sequence[Node], order: Sequence[Node]) -> dict[Node, tuple[int, ...]]:
    """Products of matrices that are only read transposed, all in one way that BLAS can write.

    Where each matrix is transposed by itself, simplify.py has made the product of the transposes.
    """
    orders: dict[Node, set[tuple[int, ...]]] = {}
    for node in order:
        for source in node.inputs:
            if source.primitive is MATMUL:
                orders.setdefault(source, set()).add(node.params[0] if node.primitive is TRANSPOSE else ())
    for node in outputs:
        orders.pop(node, None)
    possible = ((1, 0, 2), (2, 0, 1))
    return {node: order for node, (order, *others) in orders.items() if not others and order in possible}
