"""Fusion: graph in, ordered kernels out.

In: simplified output nodes. Out: `Fused`, a list of loop nests and special kernels in an order that respects their
dependencies, with the node that each output is stored as. Called by the runtime when it makes a program.

How. (0) Short axes are taken apart (unroll_axes.py), rows are added as a whole (row_scatter.py), and results of own
kernels are arrays of their own (results_apart.py). (1) Every chain of
movement operations becomes a view of its source (movements.py); where strides cannot say it, the array is stored first.
(2) Walking from the outputs back, each elementwise node or reduction joins the kernel of its first consumer if both
loop over the same domain, else an earlier kernel of that domain, else opens a new one in front. So values are computed
as late as possible, next to their use. (3) A node is stored only if another kernel, or the user, needs it, and
computing it again there would cost more (`_is_cheaper`); a piece of a concatenation is stored in it.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ..graph.ir import PRIMITIVES, Node, literal, topological
from ..graph.shapes import Shape, contiguous_strides, without_ones
from .loop_builder import TRUE, LoopBuilder
from .loops import Loop, Value
from .movements import CONCATENATE, GATHER, UNCOMPUTED, VIRTUAL, Lowered, Source, Use
from .results_apart import with_results_apart
from .row_scatter import add_whole_rows
from .unroll_axes import take_apart
from .views import View, view_in_domain

LARGEST_KERNEL = 256
"""Weight of the nodes in one kernel; more would make LLVM slow and run out of registers."""
HEAVY_WEIGHT = 16
"""Primitives that are a few instructions; all others weigh more."""
MOST_REPEATED = 2
"""The most values in a row that may be computed again."""
MOST_BESIDE = 8
"""Pieces of a concatenation, one element each, that one loop copies."""
MOST_SHIFTED = 10
"""The most times that a value may be computed again at other points, as in a stencil."""
DIVIDE, ITEM = PRIMITIVES["divide"], PRIMITIVES["item"]
LEAVES = frozenset([PRIMITIVES["input"], PRIMITIVES["constant"]])
SIMPLE = frozenset(
    [p for p in PRIMITIVES.values() if p.kind == "elementwise" and p.light and p.name not in ("gather", "divide")]
)
"""Primitives whose values may be computed again where they are used, instead of being stored."""


@dataclass
class Special:
    """A kernel of its own: the node, the arrays that it reads and writes, and the views through which it reads them.

    A loop and an own kernel of several results write their items, everything else the node. `interleaved` products of
    matrices lie side by side: the first rows of all matrices, then the second. `call` is the function that a host
    kernel calls.
    """

    node: Node
    reads: tuple[Node, ...]
    views: tuple[View, ...]
    interleaved: bool = False
    call: Any = None
    targets: tuple[Node, ...] = ()

    def __post_init__(self) -> None:
        self.targets = self.targets or (self.node,)

    @property
    def buffers(self) -> tuple[Node, ...]:
        """The nodes whose arrays it reads and writes, as of a `Loop`."""
        return (*self.reads, *self.targets)


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
    sources: list[Source] = field(default_factory=list)
    weight: int = 0

    def add(self, source: Source) -> None:
        self.sources.append(source)
        self.weight += 1 if source.node.primitive.light else HEAVY_WEIGHT


def _used(place: int, domain: Shape, source: Source, view: View, whole: bool, direct: bool = True) -> Use:
    """The use of a source in a loop over a domain; `whole`: it is read as it is, not through a movement."""
    direct = (
        direct
        and source.domain == domain
        and source.node.primitive.kind == "elementwise"
        and (whole or view.is_contiguous)
    )
    return _loop_use(place, direct, domain != () and (whole or not view.is_masked))


@lru_cache
def _loop_use(place: int, direct: bool, repeatable: bool) -> Use:
    """Most uses are equal, so that few objects are made."""
    return Use(place, direct, repeatable, in_loop=True)


def fuse(outputs: Sequence[Node]) -> Fused:
    """Group a simplified graph into kernels."""
    return _Fuser(outputs).run()


def domain_of(node: Node) -> Shape:
    """The shape that a node's kernel loops over, without axes of length 1."""
    return without_ones(node.inputs[0].shape if node.primitive.kind == "reduction" else node.shape)


class _Fuser:
    def __init__(self, outputs: Sequence[Node]) -> None:
        outputs, order = add_whole_rows(list(outputs), topological(outputs))
        outputs, order = take_apart(*with_results_apart(outputs, order))
        lowered = Lowered(outputs, order)
        self.outputs, self.views, self.interleaved = lowered.outputs, lowered.views, lowered.interleaved
        self.groups: list[_Group] = []
        self.written: dict[Node, list[tuple[Node, int]]] = {}
        self.reasons: dict[Node, str] = {}
        self.copied: set[tuple[Node, int]] = set()
        """Pieces of concatenations, by their positions, that loops copy."""

    def run(self) -> Fused:
        self._group()
        steps: list[Loop | Special] = []
        items: dict[Node, list[Node]] = {}
        for group in self.groups:
            first = group.sources[0]
            if first.node.primitive is ITEM:
                items.setdefault(first.reads[0][0].node, []).append(first.node)
        for group in reversed(self.groups):
            first = group.sources[0].node
            if first.primitive is ITEM:
                continue
            if first.primitive.kind == "special":
                operands = group.sources[0].reads
                reads, views = tuple([s.node for s, _ in operands]), tuple([v for _, v in operands])
                targets = tuple(items.get(first, ()))
                steps.append(Special(first, reads, views, first in self.interleaved, targets=targets))
            elif first.primitive is CONCATENATE:
                steps.extend(self._assemble(first))
            else:
                steps.append(self._loop(group))
        return Fused(steps, self.outputs, self.reasons)

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

    def _use(self, reader: Source, place: int) -> None:
        """Note the reads of a node in a kernel."""
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
                use = Use(place, False, False, stored=False)
            else:
                use = Use(place, False, False)
            source.uses.append(use)

    def _repeat(self, repeated: Source) -> None:
        """Let each loop that uses a node compute it again; so these loops read the node's operands."""
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
    def _reason(node: Node, uses: Sequence[Use]) -> str:
        """The reason for which an array is stored."""
        if node.primitive.kind == "reduction":
            return "its loop ends before it is known"
        if any(not use.in_loop for use in uses):
            return "a kernel that is no loop reads it"
        if any(not use.direct for use in uses):
            return "it is read at other points than it is computed at"
        return "several kernels read it, and it is too much to compute again"

    def _is_repeated(self, repeated: Source) -> bool:
        """Whether a value is computed again by each loop that uses it, because that is cheaper than an array of it."""
        return self._is_repeatable(repeated) and self._is_cheaper(repeated)

    @staticmethod
    def _is_repeatable(repeated: Source) -> bool:
        """Whether loops that use a value could compute it again."""
        node = repeated.node
        if node.primitive not in SIMPLE or repeated.anchored:
            return False
        direct = True
        for use in repeated.uses:
            if not use.in_loop:
                return False
            direct = direct and use.direct
        if direct:
            return True
        # Read through views: only a function of one array, which can be read through the same views.
        arrays = _arrays(repeated)
        if len(arrays) != 1:
            return False
        source, view = arrays[0]
        return view.is_contiguous and source.node.shape == node.shape and source.node.primitive not in VIRTUAL

    def _is_cheaper(self, repeated: Source) -> bool:
        """Whether a value that loops could compute again costs less than an array of it; no result depends on that.

        It is a few instructions on at most one array that a loop would not read anyway, and those arrays exist anyway.
        """
        own = repeated.uses
        if len(own) == 1 and own[0].direct:
            return False
        indirect = sum([not use.direct for use in own])
        if not indirect:
            places = {use.group for use in own}
            return len(places) > 1 and self._is_near(repeated, max(places), places, MOST_REPEATED)
        if indirect > MOST_SHIFTED:
            return False
        ((source, _),) = _arrays(repeated)
        return source.node.primitive in LEAVES or source.stored or source.readers > 1

    def _is_near(self, near: Source, home: int, places: set[int], depth: int) -> bool:
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

    def _backwards(self) -> Iterator[Source]:
        """The computed nodes, each after all its consumers; small domains first.

        So the nodes of a large domain that wait for each other's small results (a loss, say) become ready together, and
        share one pass over memory.
        """
        views = self.views
        computed: list[Source] = []
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
        ready: list[tuple[int, int, Source]] = []
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

    def _is_free(self, scalar: Source) -> bool:
        """Whether a light scalar is computed again by each loop that uses it: a few instructions, ahead of the loop."""
        primitive = scalar.node.primitive
        return (
            (primitive in SIMPLE or primitive is DIVIDE)
            and False not in [use.repeatable for use in scalar.uses]
            and all(source.number < 0 for source, _ in scalar.reads)
        )

    def _choose(self, source: Source, by_domain: dict[Shape, list[int]]) -> int:
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
                    self._store_beside(builder, whole)
        return builder.finish()

    def _operand(self, builder: LoopBuilder, source: Source, view: View) -> int:
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

    def _shifted(self, builder: LoopBuilder, source: Source, view: View) -> int:
        """A function of one array, computed again from a view of that array; outside the view it is zero."""
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

    def _store_beside(self, builder: LoopBuilder, whole: Node) -> None:
        """The other pieces of a concatenation that lie between those which a loop writes, if nothing computes them."""
        if not _is_interleaved(whole):
            return
        for position in self._copied(whole):
            if self.views[whole.inputs[position]][0].node.primitive in LEAVES:
                self._copy(builder, whole, position)

    def _copy(self, builder: LoopBuilder, whole: Node, position: int) -> None:
        value = self._operand(builder, *self.views[whole.inputs[position]])
        builder.store_at(whole, value, _piece_view(whole, position))
        self.copied.add((whole, position))

    def _copied(self, whole: Node) -> list[int]:
        """The pieces of a concatenation that no loop writes into it yet."""
        return [
            position
            for position, piece in enumerate(whole.inputs)
            if (whole, position) not in self.written.get(self.views[piece][0].node, ())
            and (whole, position) not in self.copied
        ]

    def _assemble(self, node: Node) -> list[Loop]:
        """A concatenation: one copy for each piece that no loop writes into it; pieces of one element share theirs."""
        left = [[position] for position in self._copied(node)]
        if left and _is_interleaved(node):
            left = [self._copied(node)]
        loops: list[Loop] = []
        for positions in left:
            builder = LoopBuilder(_piece_view(node, positions[0]).shape)
            for position in positions:
                self._copy(builder, node, position)
            loops.append(builder.finish())
        return loops

    def _is_written(self, source: Source, view: View) -> bool:
        """Whether the loop that computes a piece of a concatenation can write it where it belongs."""
        return (
            source.node.primitive.kind == "elementwise"
            and view.is_contiguous
            and without_ones(view.shape) == source.domain
        )


def _arrays(repeated: Source) -> list[tuple[Source, View]]:
    """The operands of a value that are not one number everywhere, with their views."""
    return [(source, view) for source, view in repeated.reads if source.node.size > 1 or view.is_masked]


def _entry(source: Source) -> tuple[int, int, Source]:
    """A source among those that are ready."""
    whole = source.node.primitive.kind == "special"
    return 0 if whole else math.prod(source.domain), -source.number, source


def _is_interleaved(whole: Node) -> bool:
    """Whether the pieces of a concatenation lie side by side, element by element, as the parts of complex numbers."""
    axis = whole.params[0]
    few = 1 < len(whole.inputs) <= MOST_BESIDE
    return few and math.prod(whole.shape[axis:]) == len(whole.inputs) and whole.size > len(whole.inputs)


def _piece_view(whole: Node, position: int) -> View:
    """The view of a piece in its concatenation."""
    axis = whole.params[0]
    strides = contiguous_strides(whole.shape)
    start = sum(piece.shape[axis] for piece in whole.inputs[:position])
    shape = whole.inputs[position].shape
    view = View(shape, strides, start * strides[axis], (None,) * whole.ndim).squeeze()
    assert view is not None
    return view
