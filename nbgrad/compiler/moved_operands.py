"""Movements of maps: where one is all that is read of a map, its operands are moved instead.

In: a simplified graph. Out: an equal graph in which the slice, transpose or reversal of an elementwise expression that
nothing else reads, but for other slices of other elements, became that expression of the moved operands; the graph
itself if there is none. Called by front.py before fusing. Such an expression would be stored in its own order and read
in another; and what a slice leaves out need not be computed. Moved operands are views, which loops read as they are.

An array that a loop reads across the order of memory costs a pass of its own, so that transposes go to the operands
only where no more arrays are read across than before: the gradient of `x.T * w` then reads `w` across, instead of
reading `x` across and turning the product again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ..graph.builders import slice_axes, transpose
from ..graph.ir import PRIMITIVES, Node, topological
from ..graph.shapes import ends_of_slice
from ..graph.simplify import Simplifier
from .views import View, view_through

RESHAPE, SLICE, TRANSPOSE, BROADCAST, GATHER, CUSTOM, ALIAS = (
    PRIMITIVES[name] for name in "reshape slice transpose broadcast gather custom alias".split()
)
MOVES = frozenset([RESHAPE, SLICE, TRANSPOSE])
VIEWS = frozenset(PRIMITIVES[name] for name in "reshape slice transpose broadcast pad".split())
SMALL = 1 << 10
"""Arrays of fewer elements may be read in any order."""
MOST_PIECES = 8
"""Slices of one map that its operands are cut into."""
Readers = dict[Node, set[Node | None]]
"""The nodes that read a node; None stands for the caller."""
FACING = frozenset([-1, 0, 1])
"""Steps from element to element that are not across the order of memory."""


def with_moved_operands(outputs: list[Node]) -> list[Node]:
    """Equal outputs, whose maps are moved by their operands where that is better."""
    order = topological(outputs)
    if not any(node.primitive is SLICE or node.primitive is TRANSPOSE for node in order):
        return outputs
    readers: Readers = {node: {None} for node in outputs}
    for node in order:
        for source in node.inputs:
            readers.setdefault(source, set()).add(node)
    replaced: dict[Node, Node] = {}
    done: set[Node] = set()
    for node in reversed(order):
        if node in done or (node.primitive is not SLICE and node.primitive is not TRANSPOSE):
            continue
        moved = _Moved(node, readers)
        if moved.is_better():
            replaced[node] = moved.result()
            done.update(moved.chain)
            for operand in moved.operands:
                done.update(_chain_of(operand))
    return Simplifier(replaced).run(outputs) if replaced else outputs


class _Moved:
    """A movement of a map: the `chain` of moves, the last one first, the nodes of the map, and its operands."""

    def __init__(self, node: Node, readers: Readers) -> None:
        self.node, self.readers = node, readers
        self.chain = [node]
        while (source := self.chain[-1].inputs[0]).primitive in MOVES and len(readers[source]) == 1:
            self.chain.append(source)
        self.top = self.chain[-1].inputs[0]
        self.nodes: set[Node | None] = set()
        self.operands: dict[Node, None] = {}
        if (len(readers[self.top]) == 1 or _are_apart(readers[self.top])) and _is_map(self.top):
            self._collect()

    def _collect(self) -> None:
        stack = [self.top]
        while stack:
            node = stack.pop()
            self.nodes.add(node)
            for source in node.inputs:
                if source in self.nodes:
                    continue
                if self.readers[source] <= self.nodes and _is_map(source):
                    self.operands.pop(source, None)
                    stack.append(source)
                else:
                    self.operands[source] = None

    def is_better(self) -> bool:
        """Whether the operands should be moved."""
        if not self.nodes:
            return False
        before = after = computed = 0
        for operand in self.operands:
            if _is_number(operand):
                continue
            chain = _chain_of(operand)
            root = chain[-1].inputs[0] if chain else operand
            if root.primitive.kind == "elementwise" and len(self.readers[root]) > 1:
                computed += 1
            view = _viewed(View.contiguous(root.shape), chain)
            if view is None:
                # It is copied, whether it is moved or not.
                view = View.contiguous(operand.shape)
            moved = _viewed(view, self.chain)
            if moved is None:
                return False
            before += _is_across(view)
            after += _is_across(moved)
        result = _viewed(View.contiguous(self.top.shape), self.chain)
        before += result is None or _is_across(result)
        # What something else computes anyway, in one loop with the map, has to be stored if the map is moved.
        return after <= before and computed <= 1

    def result(self) -> Node:
        """The map of moved operands."""
        new: dict[Node, Node] = {}
        for node in topological([self.top], self.operands):
            if node in self.nodes:
                inputs = tuple([new.get(source) or self._moved(source) for source in node.inputs])
                new[node] = Node(node.primitive, inputs, node.params, self.node.shape, node.dtype)
        return new[self.top]

    def _moved(self, operand: Node) -> Node:
        for move in reversed(self.chain):
            if move.primitive is SLICE and operand.primitive is TRANSPOSE:
                # A slice of what is turned, such as pieces side by side, may be one of these.
                axes = operand.params[0]
                ranges = sorted(zip(axes, move.params[0], strict=True))
                operand = transpose(slice_axes(operand.inputs[0], [part for _, part in ranges]), axes)
            else:
                operand = Node(move.primitive, (operand,), move.params, move.shape, operand.dtype)
        return operand


def _are_apart(readers: set[Node | None]) -> bool:
    """Whether all that read a map are slices without common elements, so that none is computed twice."""
    if len(readers) > MOST_PIECES or not all(node is not None and node.primitive is SLICE for node in readers):
        return False
    pieces = [[ends_of_slice(*part) for part in node.params[0]] for node in readers if node is not None]
    return all(
        any(before[1] < after[0] or after[1] < before[0] for before, after in zip(one, other, strict=True))
        for one, other in combinations(pieces, 2)
    )


def _is_map(node: Node) -> bool:
    """Whether each element of a node is a function of the same elements of its inputs."""
    primitive = node.primitive
    return (
        primitive.kind == "elementwise"
        and primitive not in (GATHER, CUSTOM, ALIAS)
        and all(source.shape == node.shape for source in node.inputs)
    )


def _chain_of(node: Node) -> list[Node]:
    """The movements through which a node is read, the last one first."""
    chain: list[Node] = []
    while node.primitive in VIEWS:
        chain.append(node)
        node = node.inputs[0]
    return chain


def _viewed(view: View | None, chain: Sequence[Node]) -> View | None:
    """A view through a chain of movements; None where strides cannot say it."""
    for move in reversed(chain):
        if view is None:
            return None
        view = view_through(move, view)
    return view


def _is_number(node: Node) -> bool:
    """Whether all elements are one number."""
    return node.primitive is BROADCAST and node.inputs[0].size == 1


def _is_across(view: View) -> bool:
    """Whether elements that follow one another are far apart in memory."""
    steps = [(n, stride) for n, stride in zip(view.shape, view.strides, strict=True) if n > 1]
    return bool(steps) and steps[-1][1] not in FACING and _size(view) >= SMALL


def _size(view: View) -> int:
    size = 1
    for n, stride in zip(view.shape, view.strides, strict=True):
        size *= n if stride else 1
    return size
