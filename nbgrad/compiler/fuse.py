"""Fusion: graph in, ordered kernels out.

In: simplified output nodes. Out: `Fused`, a list of loop nests and special kernels in an order that respects their
dependencies, with the node that each output is stored as. Called by the runtime when it makes a program.

How. (0) Short axes are taken apart (components.py) and rows are added as a whole (rows.py). (1) `_lower` turns every
chain of movement operations into a view of what it reads; where strides cannot say it, the array is stored first. (2)
Walking from the outputs back, each elementwise node or reduction joins the kernel of its first consumer if both loop
over the same domain, else an earlier kernel of that domain, else opens a new one in front. So values are computed as
late as possible, next to their use. (3) A node is stored only if another kernel, or the user, needs it, and computing
it again there would cost more (`_is_repeated`); a piece of a concatenation is stored in it.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from ..graph.ir import PRIMITIVES, Node, Shape, broadcast, elementwise, literal, make, topological
from ..graph.primitives import pad, reshape, transpose
from .builder import TRUE, LoopBuilder
from .components import take_apart
from .loops import Loop, Value
from .rows import add_whole_rows
from .views import View, contiguous_strides, matrix_layout, view_in_domain, view_through, without_ones

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
MATMUL, GATHER, DIVIDE = (PRIMITIVES[name] for name in ("matmul", "gather", "divide"))
CONCATENATE, TRANSPOSE = PRIMITIVES["concatenate"], PRIMITIVES["transpose"]
LEAVES = frozenset([PRIMITIVES["input"], PRIMITIVES["constant"]])
VIRTUAL = frozenset([PRIMITIVES["literal"], PRIMITIVES["iota"]])
SIMPLE = frozenset(
    [p for p in PRIMITIVES.values() if p.kind == "elementwise" and p.name in LIGHT - frozenset(["gather", "divide"])]
)
"""What may be computed again where it is used, instead of being stored."""


@dataclass
class Special:
    """A kernel of its own: the node and the views through which it reads its operands.

    `interleaved` products of matrices lie side by side: the first rows of all matrices, then the second. `call` is what
    a host kernel calls.
    """

    node: Node
    sources: tuple[Node, ...]
    views: tuple[View, ...]
    interleaved: bool = False
    call: Any = None


@dataclass
class Fused:
    """Kernels in order, the stored node of each output, and why arrays are stored, or values are not."""

    steps: list[Loop | Special]
    outputs: list[Node]
    reasons: dict[Node, str] = field(default_factory=dict)


class _Source:
    """A node that is no movement, so that views end at it, with all that is found out about it.

    `number` is its place in the graph's order. `reads` are what it is made of, and `waiting` how many of its `readers`
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
        self.reads: list[tuple[_Source, View]] = []
        self.uses: list[_Use] = []


@dataclass
class _Group:
    """Nodes that will be one kernel."""

    domain: Shape
    sources: list[_Source] = field(default_factory=list)
    weight: int = 0

    def add(self, source: _Source) -> None:
        self.sources.append(source)
        self.weight += 1 if source.node.primitive.name in LIGHT else HEAVY_WEIGHT


class _Use(NamedTuple):
    """One use of a node: by which kernel, whether at the same point of the same loop, whether that loop may compute the
    node again instead of reading it, whether it needs an array (a piece of a concatenation is written into it), and
    whether the kernel is a loop that reads the node through a view."""

    group: int
    direct: bool
    repeatable: bool
    stored: bool = True
    in_loop: bool = False


def _used(place: int, domain: Shape, source: _Source, view: View, whole: bool, direct: bool = True) -> _Use:
    """The use of a source in a loop over a domain; `whole`: it is read as it is, not through a movement."""
    direct = (
        direct
        and source.domain == domain
        and source.node.primitive.kind == "elementwise"
        and (whole or view.is_contiguous)
    )
    return _loop_use(place, direct, domain != () and (whole or not view.is_masked))


@lru_cache
def _loop_use(place: int, direct: bool, repeatable: bool) -> _Use:
    """Most uses are equal, so that few objects are made."""
    return _Use(place, direct, repeatable, in_loop=True)


def fuse(outputs: Sequence[Node]) -> Fused:
    """Group a simplified graph into kernels."""
    return _Fuser(outputs).run()


UNCOMPUTED = frozenset(p for p in PRIMITIVES.values() if p.kind in ("source", "movement")) - {CONCATENATE}
"""Primitives that have no kernel: leaves and views. Concatenations are assembled by copies."""


def domain_of(node: Node) -> Shape:
    """The shape that a node's kernel loops over, without axes of length 1."""
    return without_ones(node.inputs[0].shape if node.primitive.kind == "reduction" else node.shape)


class _Fuser:
    def __init__(self, outputs: Sequence[Node]) -> None:
        self.views: dict[Node, tuple[_Source, View]] = {}
        outputs, order = add_whole_rows(list(outputs), topological(outputs))
        outputs, order = take_apart(outputs, order)
        self.assembled = _assembled(outputs, order)
        self.turned = _turned(outputs, order)
        self.interleaved: set[Node] = set()
        self.outputs = self._lower(outputs, order)
        self.groups: list[_Group] = []
        self.written: dict[Node, list[tuple[Node, int]]] = {}
        self.reasons: dict[Node, str] = {}

    def run(self) -> Fused:
        self._group()
        steps: list[Loop | Special] = []
        for group in reversed(self.groups):
            first = group.sources[0].node
            if first.primitive.kind == "special":
                reads = group.sources[0].reads
                sources, views = tuple([s.node for s, _ in reads]), tuple([v for _, v in reads])
                steps.append(Special(first, sources, views, first in self.interleaved))
            elif first.primitive is CONCATENATE:
                steps.extend(self._assemble(first))
            else:
                steps.append(self._loop(group))
        return Fused(steps, self.outputs, self.reasons)

    # ----- Lowering -----

    def _lower(self, outputs: Sequence[Node], order: Sequence[Node]) -> list[Node]:
        new: dict[Node, Node] = {}
        for node in order:
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
            self.views[node] = (_Source(node), View.contiguous(node.shape))
        return node

    def _lowered(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        primitive = node.primitive
        if primitive is MATMUL:
            if 1 in node.shape[1:]:
                return self._summed_product(node.shape, *inputs)
            if node in self.turned:
                return self._turned_product(self.turned[node], *inputs)
            inputs = (self._buffer(inputs[0], 2), self._buffer(inputs[1], 2))
        elif primitive is GATHER:
            inputs = (self._buffer(inputs[0], 1), inputs[1])
        elif primitive.kind == "special":
            inputs = tuple([self._buffer(source, 0) for source in inputs])
        elif primitive is CONCATENATE and node not in self.assembled and len(inputs) <= MOST_PIECES:
            return self._chosen(node.shape, node.params[0], inputs)
        if inputs != node.inputs:
            node = Node(primitive, inputs, node.params, node.shape, node.dtype)
        return self._visit(node)

    def _summed_product(self, shape: Shape, a: Node, b: Node) -> Node:
        """A product of a matrix and a vector: a sum of products, which fuses with what makes its operands."""
        if shape[2] == 1:
            full, axis = a.shape, 2
            b = self._spread(self._visit(transpose(b, (0, 2, 1))), full)
        else:
            full, axis = b.shape, 1
            a = self._spread(self._visit(transpose(a, (0, 2, 1))), full)
        product = self._visit(make("multiply", (a, b)))
        return self._visit(reshape(self._visit(make("sum", (product,), ((axis,),))), shape))

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
        self.views[product] = (_Source(product), View(product.shape, strides, 0, (None,) * 3))
        return self._visit(transpose(product, (0, 2, 1))) if swapped else product

    def _buffer(self, node: Node, freedom: int) -> Node:
        """The node itself if it is stored memory of the right layout, else a copy of it.

        `freedom` 0 asks for C order; 1 for any strides; 2 for matrices with one contiguous axis.
        """
        source, view = self.views[node]
        good = source.node.primitive not in VIRTUAL and not view.is_masked
        if good and freedom == 0:
            good = view.is_contiguous
        elif good and freedom == 2:
            good = matrix_layout(view) is not None
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

    # ----- Grouping -----

    def _group(self) -> None:
        by_domain: dict[Shape, list[int]] = {}
        for source in self._backwards():
            node, own = source.node, source.uses
            if not source.stored:
                if not node.shape and self._is_free(source):
                    source.free = True
                    continue
                if self._is_repeated(source):
                    self._repeat(source)
                    continue
            place = self._choose(source, by_domain)
            self.groups[place].add(source)
            for group, direct, _, stored, _ in own:
                if stored and (group != place or not direct):
                    source.stored = True
                    self.reasons[node] = self._reason(node, own)
                    break
            self._use(source, place)

    def _use(self, reader: _Source, place: int) -> None:
        """Note what a node in a kernel reads."""
        node = reader.node
        primitive, domain = node.primitive, self.groups[place].domain
        loops = primitive.kind in ("elementwise", "reduction")
        for position, (source, view) in enumerate(reader.reads):
            if source.number < 0:
                continue
            if loops and (position or primitive is not GATHER):
                use = _used(place, domain, source, view, node.inputs[position] is source.node)
            elif primitive is CONCATENATE and self._is_written(source, view):
                self.written.setdefault(source.node, []).append((node, position))
                use = _Use(place, False, False, stored=False)
            else:
                use = _Use(place, False, False)
            source.uses.append(use)

    def _repeat(self, repeated: _Source) -> None:
        """Let each loop that uses a node compute it again; so they use what it reads."""
        repeated.free = True
        node, own = repeated.node, repeated.uses
        places = len({use.group for use in own})
        kernels = f"{places} kernels" if places > 1 else "a kernel, at each point it is read from"
        self.reasons[node] = f"not stored: computed again in {kernels}, from an array that they read"
        for use in own:
            self.groups[use.group].weight += 1
            for (source, view), operand in zip(repeated.reads, node.inputs, strict=True):
                if source.number >= 0:
                    source.anchored = True
                    whole = operand is source.node
                    source.uses.append(_used(use.group, repeated.domain, source, view, whole, use.direct))

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

    def _is_repeated(self, repeated: _Source) -> bool:
        """Whether a value is computed again by each loop that uses it, because that is cheaper than an array of it.

        It is a few instructions on at most one array that a loop would not read anyway, and those arrays exist anyway.
        """
        node, own = repeated.node, repeated.uses
        if node.primitive not in SIMPLE or repeated.anchored:
            return False
        indirect = 0
        for use in own:
            if not use.in_loop:
                return False
            indirect += not use.direct
        if not indirect:
            if len(own) == 1:
                return False
            places = {use.group for use in own}
            return len(places) > 1 and self._is_near(repeated, max(places), places, MOST_REPEATED)
        # Read through views: only a function of one array, which can be read through the same views.
        arrays = [(source, view) for source, view in repeated.reads if source.node.size > 1 or view.is_masked]
        if len(arrays) != 1 or indirect > MOST_SHIFTED:
            return False
        source, view = arrays[0]
        primitive = source.node.primitive
        return (
            view.is_contiguous
            and source.node.shape == node.shape
            and primitive not in VIRTUAL
            and (primitive in LEAVES or source.stored or source.readers > 1)
        )

    def _is_near(self, near: _Source, home: int, places: set[int], depth: int) -> bool:
        fresh = 0
        for source, view in near.reads:
            primitive = source.node.primitive
            if primitive in VIRTUAL:
                continue
            known = source.uses
            exists = (
                primitive in LEAVES
                or primitive.kind != "elementwise"
                or source.stored
                or source.readers > 1
                or any(use.stored and (use.group != home or not use.direct) for use in known)
            )
            if not exists:
                if depth == 0 or primitive not in SIMPLE or not view.is_contiguous:
                    return False
                if source.domain != near.domain or not self._is_near(source, home, places, depth - 1):
                    return False
            elif source.node.size > 1 and not places - {home} <= {use.group for use in known}:
                fresh += not any(view.strides[axis] == 0 and view.shape[axis] > 1 for axis in range(len(view.shape)))
        return fresh <= 1

    def _backwards(self) -> Iterator[_Source]:
        """The computed nodes, each after all its consumers; small domains first.

        So the nodes of a large domain that wait for each other's small results (a loss, say) become ready together, and
        share one pass over memory.
        """
        views = self.views
        computed: list[_Source] = []
        for node in topological(self.outputs):
            if node.primitive not in UNCOMPUTED:
                source = views[node][0]
                source.number = len(computed)
                computed.append(source)
                source.domain = domain_of(node)
                reads = source.reads = [views[operand] for operand in node.inputs]
                for operand, _ in reads:
                    operand.readers += 1
        for node in self.outputs:
            views[node][0].stored = True
        # By the size of the domain, then the latest first; numbers are unique, so that nodes are never compared.
        ready: list[tuple[int, int, _Source]] = []
        for source in computed:
            source.waiting = source.readers
            if not source.readers:
                ready.append(_entry(source))
        heapq.heapify(ready)
        while ready:
            source = heapq.heappop(ready)[2]
            yield source
            for operand, _ in source.reads:
                operand.waiting -= 1
                if not operand.waiting and operand.number >= 0:
                    heapq.heappush(ready, _entry(operand))

    def _is_free(self, scalar: _Source) -> bool:
        """Whether a light scalar is computed again by each loop that uses it: a few instructions, ahead of the loop."""
        primitive = scalar.node.primitive
        return (
            (primitive in SIMPLE or primitive is DIVIDE)
            and False not in [use.repeatable for use in scalar.uses]
            and all(source.number < 0 for source, _ in scalar.reads)
        )

    def _choose(self, source: _Source, by_domain: dict[Shape, list[int]]) -> int:
        """The kernel that a node joins. Kernels are numbered from the last to the first that runs."""
        primitive = source.node.primitive
        if primitive.kind == "special" or primitive is CONCATENATE:
            self.groups.append(_Group(()))
            return len(self.groups) - 1
        # The kernels of this domain that are not full, by their numbers.
        known = by_domain.get(source.domain)
        if known is None:
            known = by_domain[source.domain] = []
        first, direct = -1, True
        for use in source.uses:
            if use.group > first:
                first, direct = use.group, use.direct
            elif use.group == first:
                direct = direct and use.direct
        at = bisect(known, first)
        if at and known[at - 1] == first and direct and self.groups[first].weight < LARGEST_KERNEL:
            return first
        while at < len(known):
            if self.groups[known[at]].weight < LARGEST_KERNEL:
                return known[at]
            del known[at]
        self.groups.append(_Group(source.domain))
        known.append(len(self.groups) - 1)
        return known[-1]

    # ----- Building kernels -----

    def _loop(self, group: _Group) -> Loop:
        builder = LoopBuilder(group.domain)
        for source in reversed(group.sources):
            node, reads = source.node, source.reads
            if node.primitive is GATHER:
                slot = builder.access(reads[0][0].node, reads[0][1])
                index = self._operand(builder, *reads[1])
                builder.values.append(Value("gather", node.dtype, (index,), slot))
                builder.value_of[node] = len(builder.values) - 1
            elif node.primitive.kind == "reduction":
                builder.reduce(node, self._operand(builder, *reads[0]))
                continue
            else:
                positions = tuple([self._operand(builder, operand, view) for operand, view in reads])
                builder.value_of[node] = builder.apply(node, positions)
            if source.stored:
                builder.store(node)
            if node in self.written:
                for whole, position in self.written[node]:
                    builder.store_at(whole, builder.value_of[node], _piece_view(whole, position))
        return builder.finish()

    def _operand(self, builder: LoopBuilder, source: _Source, view: View) -> int:
        node = source.node
        if source.free:
            if node.size > 1 and not (view.is_contiguous and source.domain == builder.domain):
                return self._shifted(builder, source, view)
            if node not in builder.value_of:
                parts = tuple([self._operand(builder, *part) for part in source.reads])
                builder.value_of[node] = builder.apply(node, parts)
        known = builder.value_of.get(node)
        if known is not None:
            return known
        spread = view_in_domain(view, builder.domain)
        if spread is None:
            return builder.literal(literal(0, node.dtype))
        return builder.read(node, spread)

    def _shifted(self, builder: LoopBuilder, source: _Source, view: View) -> int:
        """A function of one array computed again from what a view of that array reads; outside the view it is zero."""
        node = source.node
        key = (node, view)
        if key in builder.known:
            return builder.known[key]
        spread = view_in_domain(view, builder.domain)
        if spread is None:
            return builder.literal(literal(0, node.dtype))
        parts = tuple(
            [
                builder.read(part.node, spread) if part.node.size > 1 else self._operand(builder, part, whole)
                for part, whole in [self.views[part.node] for part, _ in source.reads]
            ]
        )
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
            if (node, position) in self.written.get(self.views[piece][0].node, ()):
                continue
            target = _piece_view(node, position)
            builder = LoopBuilder(target.shape)
            value = self._operand(builder, *self.views[piece])
            builder.store_at(node, value, target)
            loops.append(builder.finish())
        return loops

    def _is_written(self, source: _Source, view: View) -> bool:
        """Whether the loop that computes a piece of a concatenation can write it where it belongs."""
        return (
            source.node.primitive.kind == "elementwise"
            and view.is_contiguous
            and without_ones(view.shape) == source.domain
        )


def _entry(source: _Source) -> tuple[int, int, _Source]:
    """A source among those that are ready."""
    whole = source.node.primitive.kind == "special"
    return 0 if whole else math.prod(source.domain), -source.number, source


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
    """Products of matrices that are only read transposed, all in one way that BLAS can write."""
    orders: dict[Node, set[tuple[int, ...]]] = {}
    for node in order:
        for source in node.inputs:
            if source.primitive is MATMUL:
                orders.setdefault(source, set()).add(node.params[0] if node.primitive is TRANSPOSE else ())
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
