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
from dataclasses import dataclass, field, replace

import numpy as np

from ..graph.ir import BOOL, Node, Shape, broadcast, elementwise, literal, literal_value, make, topological
from ..graph.primitives import iota, pad, reshape, transpose
from .components import take_apart
from .loops import Access, Loop, Reduction, Store, Value, normalise
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
LEAVES = frozenset(["input", "constant"])
VIRTUAL = frozenset(["literal", "iota"])
ANYWHERE = iota(1)
"""Stands for no array at all in accesses that only have ranges."""
TRUE = literal(True, BOOL)


@dataclass
class Special:
    """A kernel of its own: the node and the views through which it reads its operands."""

    node: Node
    sources: tuple[Node, ...]
    views: tuple[View, ...]


@dataclass
class Fused:
    """Kernels in order, and the stored node of each output."""

    steps: list[Loop | Special]
    outputs: list[Node]


@dataclass
class _Group:
    """Nodes that will be one kernel."""

    domain: Shape
    nodes: list[Node] = field(default_factory=list)
    weight: int = 0

    def add(self, node: Node) -> None:
        self.nodes.append(node)
        self.weight += 1 if node.name in LIGHT else HEAVY_WEIGHT


@dataclass(frozen=True)
class _Use:
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
        outputs = take_apart(outputs)
        self.assembled = _assembled(outputs)
        self.outputs = self._lower(outputs)
        self.order = topological(self.outputs)
        self.groups: list[_Group] = []
        self.stored: set[Node] = set(self.outputs)
        self.free: set[Node] = set()
        self.written: dict[Node, list[tuple[Node, int]]] = {}
        self.readers: dict[Node, int] = {}

    def run(self) -> Fused:
        self._group()
        steps: list[Loop | Special] = []
        for group in reversed(self.groups):
            first = group.nodes[0]
            if first.primitive.kind == "special":
                reads = [self.views[source] for source in first.inputs]
                steps.append(Special(first, tuple([s for s, _ in reads]), tuple([v for _, v in reads])))
            elif first.name == "concatenate":
                steps.extend(self._assemble(first))
            else:
                steps.append(self._loop(group))
        return Fused(steps, self.outputs)

    # ----- Lowering -----

    def _lower(self, outputs: Sequence[Node]) -> list[Node]:
        new: dict[Node, Node] = {}
        for node in topological(outputs):
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
        if inputs != node.inputs:
            node = Node(node.primitive, inputs, node.params, node.shape, node.dtype)
        if node.name == "concatenate" and not stored:
            return self._chosen(node)
        if node.name == "matmul" and 1 in node.shape[1:]:
            return self._summed_product(node, *inputs)
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
                for use in uses[node]:
                    self.groups[use.group].weight += 1
                    for operand in node.inputs:
                        source, view = self.views[operand]
                        if source.name not in LEAVES and source.name not in VIRTUAL:
                            theirs = self._use(use.group, node, source, view)
                            uses.setdefault(source, []).append(replace(theirs, direct=theirs.direct and use.direct))
                continue
            place = self._choose(node, uses.get(node, []), by_domain)
            self.groups[place].add(node)
            if any(use.stored and (use.group != place or not use.direct) for use in uses.get(node, [])):
                self.stored.add(node)
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
        if node in self.stored or not self._is_light(node) or not all(use.in_loop for use in own):
            return False
        places = {use.group for use in own}
        if all(use.direct for use in own):
            return len(places) > 1 and self._is_near(node, max(places), places, uses, MOST_REPEATED)
        # Read through views: only a function of one array, which can be read through the same views.
        arrays = [operand for operand in node.inputs if self.views[operand][0].size > 1]
        if len(arrays) != 1 or sum(not use.direct for use in own) > MOST_SHIFTED:
            return False
        source, view = self.views[arrays[0]]
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
        builder = _LoopBuilder(group.domain)
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

    def _operand(self, builder: _LoopBuilder, inside: set[Node], operand: Node) -> int:
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

    def _shifted(self, builder: _LoopBuilder, inside: set[Node], node: Node, view: View) -> int:
        """A function of one array computed again from what a view of that array reads; outside the view it is zero."""
        key = (node, view)
        if key in builder.known:
            return builder.known[key]
        squeezed = view.squeeze()
        if squeezed is None:
            return builder.literal(literal(0, node.dtype))
        spread = squeezed.broadcast(builder.domain)
        parts = tuple(
            [
                builder.read(self.views[part][0], spread)
                if self.views[part][0].size > 1
                else self._operand(builder, inside, part)
                for part in node.inputs
            ]
        )
        position = builder.apply(node, parts)
        if spread.is_masked:
            nothing = builder.literal(literal(0, node.dtype))
            within = builder.read(TRUE, replace(spread, strides=(0,) * len(spread.shape), offset=0))
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
            builder = _LoopBuilder(target.shape)
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


class _LoopBuilder:
    """Collects the values, accesses and results of one loop."""

    def __init__(self, domain: Shape) -> None:
        self.domain = domain
        self.values: list[Value] = []
        self.value_of: dict[Node, int] = {}
        self.accesses: list[Access] = []
        self.buffers: list[Node] = []
        self.targets: list[Node] = []
        self.stores: list[Store] = []
        self.reductions: list[Reduction] = []
        self.known: dict[object, int] = {}

    def access(self, node: Node, view: View) -> int:
        """The position of an access, new or known."""
        if node.name == "iota":
            slot = -1
        elif node in self.buffers:
            slot = self.buffers.index(node)
        else:
            slot = len(self.buffers)
            self.buffers.append(node)
        access = Access(slot, view, node.dtype)
        if access in self.accesses:
            return self.accesses.index(access)
        self.accesses.append(access)
        return len(self.accesses) - 1

    def literal(self, node: Node) -> int:
        """The position of a literal value."""
        key = ("literal", node.params[0], node.dtype)
        if key not in self.known:
            self.values.append(Value("literal", node.dtype, literal=node.params[0]))
            self.known[key] = len(self.values) - 1
        return self.known[key]

    def read(self, source: Node, view: View) -> int:
        """The position of a value read through a view."""
        if source.name == "literal" and not view.is_masked and baked(source):
            return self.literal(source)
        # A padded truth is the question whether the point lies inside.
        inside = source.name == "literal" and source.dtype == BOOL and bool(literal_value(source))
        position = self.access(ANYWHERE if inside else source, view)
        if position not in self.known:
            operation = "inside" if inside else "iota" if source.name == "iota" else "load"
            self.values.append(Value(operation, source.dtype, access=position))
            self.known[position] = len(self.values) - 1
        return self.known[position]

    def apply(self, node: Node, operands: tuple[int, ...]) -> int:
        """The position of a primitive's value."""
        if node.name in ("alias", "custom", "stop_gradient"):
            return operands[0]
        self.values.append(Value(node.name, node.dtype, operands))
        return len(self.values) - 1

    def store(self, node: Node) -> None:
        """Store a node of this kernel in its own array."""
        view = View.contiguous(node.shape).squeeze()
        assert view is not None
        self.store_at(node, self.value_of[node], view)

    def store_at(self, node: Node, value: int, view: View) -> None:
        """Store a value in a node's array through a view."""
        self.stores.append(Store(value, self.access(node, view)))
        self.targets.append(node)

    def reduce(self, node: Node, value: int) -> None:
        """Reduce a value into a node's array."""
        source = node.inputs[0]
        strides = list(contiguous_strides(node.shape))
        full: list[int] = []
        axes: list[bool] = []
        for axis, n in enumerate(source.shape):
            reduced = axis in node.params[0]
            stride = 0 if reduced else strides.pop(0)
            if n != 1:
                full.append(stride)
                axes.append(reduced)
        view = View(self.domain, tuple(full), 0, (None,) * len(full))
        self.reductions.append(Reduction(node.name, value, self.access(node, view), tuple(axes)))
        self.targets.append(node)

    def finish(self) -> Loop:
        """The loop in normal form."""
        return normalise(
            Loop(
                self.domain,
                tuple(self.values),
                tuple(self.accesses),
                tuple(self.stores),
                tuple(self.reductions),
                tuple(self.buffers),
                tuple(self.targets),
            )
        )


def _assembled(outputs: Sequence[Node]) -> set[Node]:
    """The concatenations that are needed as arrays in memory, directly or through other movements."""
    result: set[Node] = set()
    stack = list(outputs)
    for node in topological(outputs):
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


def baked(node: Node) -> bool:
    """Whether a literal is part of the kernel. Others are read from memory, so that equal kernels stay equal."""
    value = literal_value(node)
    return not np.isfinite(value) or value in (-1, -0.5, 0, 0.5, 1, 2)
