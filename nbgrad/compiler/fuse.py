"""Fusion: graph in, ordered kernels out.

In: simplified output nodes. Out: `Fused`, a list of loop nests and special kernels in an order that respects their
dependencies, with the node that each output is stored as. Called by the runtime when it makes a program.

How. (1) `_lower` turns every chain of movement operations into a view of what it reads; where strides cannot say it,
the array is stored first. (2) Walking from the outputs back, each elementwise node or reduction joins the kernel of its
first consumer if both loop over the same domain, else an earlier kernel of that domain, else opens a new one in front.
So values are computed as late as possible, next to their use. (3) A node is stored only if another kernel, or the user,
needs it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..graph.ir import PRIMITIVES, Node, Shape, broadcast, elementwise, literal, make, topological
from ..graph.primitives import pad, reshape, transpose
from .builder import TRUE, LoopBuilder
from .components import take_apart
from .loops import Loop, Value
from .rows import add_whole_rows
from .views import View, contiguous_strides, view_through

LARGEST_KERNEL = 256
"""Weight of the nodes in one kernel; more would make LLVM slow and run out of registers."""
HEAVY_WEIGHT = 16
LIGHT = frozenset(
    "negative absolute sign floor ceil rint trunc invert sqrt add subtract multiply divide maximum minimum fmax fmin "
    "copysign bitwise_and bitwise_or bitwise_xor left_shift right_shift select alias stop_gradient custom cast gather "
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not isnan isinf "
    "isfinite signbit sum prod max min".split()
)
"""Primitives that are a few instructions; all others weigh more."""
MOST_REPEATED = 2
"""How many values in a row may be computed again."""
MOST_SHIFTED = 10
"""How often a value may be computed again at other points, as in a stencil."""
MOST_PIECES = 4
"""Concatenations of more pieces are assembled by copies instead of by tests on the index."""
MATMUL = PRIMITIVES["matmul"]
LEAVES = frozenset(["input", "constant"])
VIRTUAL = frozenset(["literal", "iota"])


@dataclass
class Special:
    """A kernel of its own: the node and the views through which it reads its operands.

    `interleaved` products of matrices lie side by side: the first rows of all matrices, then the second.
    """

    node: Node
    sources: tuple[Node, ...]
    views: tuple[View, ...]
    interleaved: bool = False


@dataclass
class Fused:
    """Kernels in order, the stored node of each output, and why arrays are stored, or values are not."""

    steps: list[Loop | Special]
    outputs: list[Node]
    reasons: dict[Node, str] = field(default_factory=dict)


@dataclass
class _Group:
    """Nodes that will be one kernel."""

    domain: Shape
    nodes: list[Node] = field(default_factory=list)
    weight: int = 0

    def add(self, node: Node) -> None:
        self.nodes.append(node)
        self.weight += 1 if node.name in LIGHT else HEAVY_WEIGHT


class _Use(NamedTuple):
    """One use of a node: by which kernel, whether at the same point of the same loop, whether that loop may compute the
    node again instead of reading it, whether it needs an array (a piece of a concatenation is written into it), and
    whether the kernel is a loop that reads the node through a view."""

    group: int
    direct: bool
    repeatable: bool
    stored: bool = True
    in_loop: bool = False


def fuse(outputs: Sequence[Node]) -> Fused:
    """Group a simplified graph into kernels."""
    return _Fuser(outputs).run()


def is_computed(node: Node) -> bool:
    """Whether a node has a kernel, rather than being a leaf or a view. Concatenations are assembled by copies."""
    return node.primitive.kind not in ("source", "movement") or node.name == "concatenate"


def domain_of(node: Node) -> Shape:
    """The shape that a node's kernel loops over, without axes of length 1."""
    shape = node.inputs[0].shape if node.primitive.kind == "reduction" else node.shape
    return tuple([n for n in shape if n != 1])


class _Fuser:
    def __init__(self, outputs: Sequence[Node]) -> None:
        self.views: dict[Node, tuple[Node, View]] = {}
        outputs, order = add_whole_rows(list(outputs), topological(outputs))
        outputs, order = take_apart(outputs, order)
        self.assembled = _assembled(outputs, order)
        self.turned = _turned(outputs, order)
        self.interleaved: set[Node] = set()
        self.outputs = self._lower(outputs, order)
        self.order = topological(self.outputs)
        self.groups: list[_Group] = []
        self.stored: set[Node] = set(self.outputs)
        self.free: set[Node] = set()
        self.written: dict[Node, list[tuple[Node, int]]] = {}
        self.readers: dict[Node, int] = {}
        self.anchored: set[Node] = set()
        self.reasons: dict[Node, str] = {}

    def run(self) -> Fused:
        self._group()
        steps: list[Loop | Special] = []
        for group in reversed(self.groups):
            first = group.nodes[0]
            if first.primitive.kind == "special":
                reads = [self.views[source] for source in first.inputs]
                sources, views = tuple([s for s, _ in reads]), tuple([v for _, v in reads])
                steps.append(Special(first, sources, views, first in self.interleaved))
            elif first.name == "concatenate":
                steps.extend(self._assemble(first))
            else:
                steps.append(self._loop(group))
        return Fused(steps, self.outputs, self.reasons)

    # ----- Lowering -----

    def _lower(self, outputs: Sequence[Node], order: Sequence[Node]) -> list[Node]:
        new: dict[Node, Node] = {}
        for node in order:
            stored = node in self.assembled or len(node.inputs) > MOST_PIECES
            new[node] = self._lowered(node, tuple([new[source] for source in node.inputs]), stored)
        result: list[Node] = []
        for node in outputs:
            lowered = new[node]
            source, view = self.views[lowered]
            if source.primitive.kind != "source" and view.is_contiguous and source.size == lowered.size:
                # The same elements in another shape: what is computed is the output.
                lowered = source
            if not is_computed(lowered) or lowered in result:
                lowered = self._visit(make("alias", (lowered,)))
            result.append(lowered)
        return result

    def _visit(self, node: Node) -> Node:
        """Note the view of a new node."""
        if node.primitive.kind == "movement" and node.name != "concatenate":
            source, view = self.views[node.inputs[0]]
            through = view_through(node, view)
            if through is None:
                copied = self._visit(make("alias", (node.inputs[0],)))
                return self._visit(make(node.name, (copied,), node.params))
            self.views[node] = (source, through)
        else:
            shape = (1,) if node.name == "literal" else node.shape
            view = View.contiguous(shape) if node.name != "literal" else View((), (), 0, ())
            self.views[node] = (node, view)
        return node

    def _lowered(self, node: Node, inputs: tuple[Node, ...], stored: bool) -> Node:
        original = node
        if inputs != node.inputs:
            node = Node(node.primitive, inputs, node.params, node.shape, node.dtype)
        if node.name == "concatenate" and not stored:
            return self._chosen(node)
        if node.name == "matmul" and 1 in node.shape[1:]:
            return self._summed_product(node, *inputs)
        if original in self.turned:
            return self._turned_product(self.turned[original], *inputs)
        if node.name == "gather":
            node = Node(node.primitive, (self._buffer(inputs[0], 1), inputs[1]), node.params, node.shape, node.dtype)
        elif node.primitive.kind == "special":
            loose = node.name == "matmul"
            inputs = tuple([self._buffer(source, 2 if loose else 0) for source in inputs])
            node = Node(node.primitive, inputs, node.params, node.shape, node.dtype)
        return self._visit(node)

    def _summed_product(self, node: Node, a: Node, b: Node) -> Node:
        """A product of a matrix and a vector: a sum of products, which fuses with what makes its operands."""
        if node.shape[2] == 1:
            full, axis = a.shape, 2
            b = self._spread(self._visit(transpose(b, (0, 2, 1))), full)
        else:
            full, axis = b.shape, 1
            a = self._spread(self._visit(transpose(a, (0, 2, 1))), full)
        product = self._visit(make("multiply", (a, b)))
        return self._visit(reshape(self._visit(make("sum", (product,), ((axis,),))), node.shape))

    def _turned_product(self, order: tuple[int, ...], a: Node, b: Node) -> Node:
        """A product of matrices in memory that is in C order when its axes are transposed."""
        swapped = order[-1] == 1
        if swapped:
            a, b = (self._visit(transpose(node, (0, 2, 1))) for node in (b, a))
        product = make("matmul", (self._buffer(a, 2), self._buffer(b, 2)))
        batch, rows, columns = product.shape
        strides = (rows * columns, columns, 1)
        if order[0] != 0:
            strides = (columns, batch * columns, 1)
            self.interleaved.add(product)
        self.views[product] = (product, View(product.shape, strides, 0, (None,) * 3))
        return self._visit(transpose(product, (0, 2, 1))) if swapped else product

    def _buffer(self, node: Node, freedom: int) -> Node:
        """The node itself if it is stored memory of the right layout, else a copy of it.

        `freedom` 0 asks for C order; 1 for any strides; 2 for matrices with one contiguous axis.
        """
        source, view = self.views[node]
        good = source.name not in VIRTUAL and not view.is_masked
        if good and freedom == 0:
            good = view.is_contiguous
        elif good and freedom == 2:
            good = matrix_layout(view) is not None
        return node if good else self._visit(make("alias", (node,)))

    def _chosen(self, node: Node) -> Node:
        """A concatenation of few pieces: at each point, the piece in which the index lies."""
        axis = node.params[0]
        end = node.shape[axis]
        result: Node | None = None
        for piece in reversed(node.inputs):
            start = end - piece.shape[axis]
            widths = [(start, node.shape[axis] - end) if a == axis else (0, 0) for a in range(node.ndim)]
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

    # ----- Grouping -----

    def _group(self) -> None:
        uses: dict[Node, list[_Use]] = {}
        by_domain: dict[Shape, list[int]] = {}
        for node in self._backwards():
            kind = node.primitive.kind
            if self._is_free(node, uses.get(node, [])):
                self.free.add(node)
                continue
            if self._is_repeated(node, uses):
                self.free.add(node)
                places = len({use.group for use in uses[node]})
                kernels = f"{places} kernels" if places > 1 else "a kernel, at each point it is read from"
                self.reasons[node] = f"not stored: computed again in {kernels}, from an array that they read"
                for use in uses[node]:
                    self.groups[use.group].weight += 1
                    for operand in node.inputs:
                        source, view = self.views[operand]
                        if source.name not in LEAVES and source.name not in VIRTUAL:
                            self.anchored.add(source)
                            theirs = self._use(use.group, node, source, view)
                            uses.setdefault(source, []).append(theirs._replace(direct=theirs.direct and use.direct))
                continue
            place = self._choose(node, uses.get(node, []), by_domain)
            self.groups[place].add(node)
            if any(use.stored and (use.group != place or not use.direct) for use in uses.get(node, [])):
                self.stored.add(node)
                self.reasons[node] = self._reason(node, uses[node])
            for position, operand in enumerate(node.inputs):
                source, view = self.views[operand]
                if source.name in LEAVES or source.name in VIRTUAL:
                    continue
                in_loop = kind in ("elementwise", "reduction") and not (node.name == "gather" and position == 0)
                if in_loop:
                    use = self._use(place, node, source, view)
                elif node.name == "concatenate" and self._is_written(source, view):
                    self.written.setdefault(source, []).append((node, position))
                    use = _Use(place, False, False, stored=False)
                else:
                    use = _Use(place, False, False)
                uses.setdefault(source, []).append(use)

    @staticmethod
    def _reason(node: Node, uses: Sequence[_Use]) -> str:
        """Why an array is stored."""
        if node.primitive.kind == "reduction":
            return "its loop ends before it is known"
        if any(not use.in_loop for use in uses):
            return "a kernel that is no loop reads it"
        if any(not use.direct for use in uses):
            return "it is read at other points than it is computed at"
        return "several kernels read it, and it is too much to compute again"

    def _use(self, place: int, node: Node, source: Node, view: View) -> _Use:
        """The use of a source by a node in a loop."""
        domain = domain_of(node)
        direct = source.primitive.kind == "elementwise" and domain_of(source) == domain and view.is_contiguous
        return _Use(place, direct, not view.is_masked and domain != (), in_loop=True)

    def _is_repeated(self, node: Node, uses: dict[Node, list[_Use]]) -> bool:
        """Whether a value is computed again by each loop that uses it, because that is cheaper than an array of it.

        It is a few instructions on at most one array that a loop would not read anyway, and those arrays exist anyway.
        """
        own = uses.get(node, [])
        if (
            node in self.stored
            or node in self.anchored
            or not self._is_light(node)
            or not all(use.in_loop for use in own)
        ):
            return False
        places = {use.group for use in own}
        if all(use.direct for use in own):
            return len(places) > 1 and self._is_near(node, max(places), places, uses, MOST_REPEATED)
        # Read through views: only a function of one array, which can be read through the same views.
        reads = [self.views[operand] for operand in node.inputs]
        arrays = [(source, view) for source, view in reads if source.size > 1 or view.is_masked]
        if len(arrays) != 1 or sum(not use.direct for use in own) > MOST_SHIFTED:
            return False
        source, view = arrays[0]
        return (
            view.is_contiguous
            and source.shape == node.shape
            and source.name not in VIRTUAL
            and (source.name in LEAVES or source in self.stored or self.readers[source] > 1)
        )

    def _is_light(self, node: Node) -> bool:
        return node.primitive.kind == "elementwise" and node.name in LIGHT and node.name not in ("gather", "divide")

    def _is_near(self, node: Node, home: int, places: set[int], uses: dict[Node, list[_Use]], depth: int) -> bool:
        fresh = 0
        for operand in node.inputs:
            source, view = self.views[operand]
            if source.name in VIRTUAL:
                continue
            known = uses.get(source, [])
            exists = (
                source.name in LEAVES
                or source.primitive.kind != "elementwise"
                or source in self.stored
                or any(use.stored and (use.group != home or not use.direct) for use in known)
                or self.readers[source] > 1
            )
            if not exists:
                if depth == 0 or not self._is_light(source) or not view.is_contiguous:
                    return False
                if domain_of(source) != domain_of(node) or not self._is_near(source, home, places, uses, depth - 1):
                    return False
            elif source.size > 1 and not places - {home} <= {use.group for use in known}:
                fresh += not any(view.strides[axis] == 0 and view.shape[axis] > 1 for axis in range(len(view.shape)))
        return fresh <= 1

    def _backwards(self) -> Iterator[Node]:
        """The computed nodes, each after all its consumers; small domains first.

        So the nodes of a large domain that wait for each other's small results (a loss, say) become ready together, and
        share one pass over memory.
        """
        computed = [node for node in self.order if is_computed(node)]
        waiting = dict.fromkeys(computed, 0)
        for node in computed:
            for operand in node.inputs:
                source = self.views[operand][0]
                if source in waiting:
                    waiting[source] += 1
        self.readers = dict(waiting)
        position = {node: -k for k, node in enumerate(computed)}

        def entry(node: Node) -> tuple[int, int, Node]:
            loops = node.primitive.kind != "special"
            return (math.prod(domain_of(node)) if loops else 0, position[node], node)

        ready = [entry(node) for node in computed if waiting[node] == 0]
        heapq.heapify(ready)
        while ready:
            node = heapq.heappop(ready)[2]
            yield node
            for operand in node.inputs:
                source = self.views[operand][0]
                if source in waiting:
                    waiting[source] -= 1
                    if waiting[source] == 0:
                        heapq.heappush(ready, entry(source))

    def _is_free(self, node: Node, uses: Sequence[_Use]) -> bool:
        """Whether a scalar is computed again by each loop that uses it: a few instructions, ahead of the loop."""
        return (
            node not in self.stored
            and node.ndim == 0
            and node.primitive.kind == "elementwise"
            and node.name in LIGHT
            and node.name != "gather"
            and all(use.repeatable for use in uses)
            and all(self.views[operand][0].primitive.kind == "source" for operand in node.inputs)
        )

    def _choose(self, node: Node, uses: Sequence[_Use], by_domain: dict[Shape, list[int]]) -> int:
        """The kernel that a node joins. Kernels are numbered from the last to the first that runs."""
        if node.primitive.kind == "special" or node.name == "concatenate":
            self.groups.append(_Group(()))
            return len(self.groups) - 1
        domain = domain_of(node)
        known = by_domain.setdefault(domain, [])
        first = max((use.group for use in uses), default=-1)
        if (
            first >= 0
            and self.groups[first].domain == domain
            and first in known
            and all(use.direct for use in uses if use.group == first)
            and self.groups[first].weight < LARGEST_KERNEL
        ):
            return first
        for group in known:
            if group > first and self.groups[group].weight < LARGEST_KERNEL:
                return group
        self.groups.append(_Group(domain))
        known.append(len(self.groups) - 1)
        return known[-1]

    # ----- Building kernels -----

    def _loop(self, group: _Group) -> Loop:
        builder = LoopBuilder(group.domain)
        inside = set(group.nodes)
        for node in reversed(group.nodes):
            operands = node.inputs
            if node.name == "gather":
                source, view = self.views[node.inputs[0]]
                slot = builder.access(source, view)
                index = self._operand(builder, inside, node.inputs[1])
                builder.values.append(Value("gather", node.dtype, (index,), slot))
                builder.value_of[node] = len(builder.values) - 1
            elif node.primitive.kind == "reduction":
                builder.reduce(node, self._operand(builder, inside, operands[0]))
                continue
            else:
                positions = tuple([self._operand(builder, inside, operand) for operand in operands])
                builder.value_of[node] = builder.apply(node, positions)
            if node in self.stored:
                builder.store(node)
            for whole, position in self.written.get(node, ()):
                builder.store_at(whole, builder.value_of[node], _piece_view(whole, position))
        return builder.finish()

    def _operand(self, builder: LoopBuilder, inside: set[Node], operand: Node) -> int:
        source, view = self.views[operand]
        if source in self.free and source.size > 1 and not (view.is_contiguous and domain_of(source) == builder.domain):
            return self._shifted(builder, inside, source, view)
        if source in builder.value_of and (source in inside or source in self.free):
            return builder.value_of[source]
        if source in self.free:
            parts = tuple([self._operand(builder, inside, part) for part in source.inputs])
            builder.value_of[source] = builder.apply(source, parts)
            return builder.value_of[source]
        squeezed = view.squeeze()
        if squeezed is None:
            return builder.literal(literal(0, operand.dtype))
        return builder.read(source, squeezed.broadcast(builder.domain))

    def _shifted(self, builder: LoopBuilder, inside: set[Node], node: Node, view: View) -> int:
        """A function of one array computed again from what a view of that array reads; outside the view it is zero."""
        key = (node, view)
        if key in builder.known:
            return builder.known[key]
        squeezed = view.squeeze()
        if squeezed is None:
            return builder.literal(literal(0, node.dtype))
        spread = squeezed.broadcast(builder.domain)
        sources = [self.views[part][0] for part in node.inputs]
        parts = tuple([builder.read(s, spread) if s.size > 1 else self._operand(builder, inside, s) for s in sources])
        position = builder.apply(node, parts)
        if spread.is_masked:
            nothing = builder.literal(literal(0, node.dtype))
            within = builder.read(TRUE, spread._replace(strides=(0,) * len(spread.shape), offset=0))
            builder.values.append(Value("select", node.dtype, (within, position, nothing)))
            position = len(builder.values) - 1
        builder.known[key] = position
        return position

    def _assemble(self, node: Node) -> list[Loop]:
        """A concatenation: one copy for each piece that no loop writes into it."""
        loops: list[Loop] = []
        for position, piece in enumerate(node.inputs):
            if (node, position) in self.written.get(self.views[piece][0], ()):
                continue
            target = _piece_view(node, position)
            builder = LoopBuilder(target.shape)
            value = self._operand(builder, set(), piece)
            builder.store_at(node, value, target)
            loops.append(builder.finish())
        return loops

    def _is_written(self, source: Node, view: View) -> bool:
        """Whether the loop that computes a piece of a concatenation can write it where it belongs."""
        return (
            source.primitive.kind == "elementwise"
            and view.is_contiguous
            and tuple([n for n in view.shape if n != 1]) == domain_of(source)
        )


def _assembled(outputs: Sequence[Node], order: Sequence[Node]) -> set[Node]:
    """The concatenations that are needed as arrays in memory, directly or through other movements."""
    result: set[Node] = set()
    stack = list(outputs)
    for node in order:
        if node.primitive.kind == "special":
            stack.extend(node.inputs)
        elif node.name == "gather":
            stack.append(node.inputs[0])
    while stack:
        node = stack.pop()
        if node.primitive.kind != "movement" or node in result:
            continue
        if node.name == "concatenate":
            result.add(node)
        stack.extend(node.inputs)
    return result


def _turned(outputs: Sequence[Node], order: Sequence[Node]) -> dict[Node, tuple[int, ...]]:
    """Products of matrices that are only read transposed, all in one way that BLAS can write."""
    orders: dict[Node, set[tuple[int, ...]]] = {}
    for node in order:
        for source in node.inputs:
            if source.primitive is MATMUL:
                orders.setdefault(source, set()).add(node.params[0] if node.name == "transpose" else ())
    for node in outputs:
        orders.pop(node, None)
    possible = ((0, 2, 1), (1, 0, 2), (2, 0, 1))
    return {node: order for node, (order, *others) in orders.items() if not others and order in possible}


def _piece_view(whole: Node, position: int) -> View:
    """Where a piece of a concatenation lies in it."""
    axis = whole.params[0]
    strides = contiguous_strides(whole.shape)
    start = sum(piece.shape[axis] for piece in whole.inputs[:position])
    shape = whole.inputs[position].shape
    view = View(shape, strides, start * strides[axis], (None,) * whole.ndim).squeeze()
    assert view is not None
    return view


def matrix_layout(view: View) -> tuple[bool, int] | None:
    """(transposed, leading dimension) of a batch of matrices for BLAS, or None if neither axis is contiguous."""
    _, rows, columns = view.shape
    _, row, column = view.strides
    if (column == 1 or columns == 1) and row >= max(1, columns):
        return False, row
    if (row == 1 or rows == 1) and column >= max(1, rows):
        return True, column
    if rows == 1 and (column == 1 or columns == 1):
        return False, max(1, columns)
    if columns == 1 and (row == 1 or rows == 1):
        return True, max(1, rows)
    return None
