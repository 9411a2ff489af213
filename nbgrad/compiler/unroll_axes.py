"""Short axes, taken apart: an array of points in space becomes one array for each coordinate.

In: a simplified graph. Out: an equal graph in which every value with a last axis of a few elements, where that axis is
summed over, cut or stretched, is several values without the axis. A loop over three coordinates inside a loop over
points is too short to be fast, and splits a function of points into many kernels; without it everything that happens to
a point is one loop over the points. Called by fuse.py. Where the whole array is needed (an output, a special kernel),
it is a concatenation, and the loops write their coordinate where it belongs.

A few long rows that are summed are added to each other before, by front.py's call, so that the sums are not read and
written again for each row.

A region is a set of nodes that share one short axis. It is taken apart as a whole or not at all: arithmetic that only
runs along contiguous memory is faster as it is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from ..graph.builders import concatenate, reduce, reshape, slice_axes
from ..graph.ir import Node, broadcast, elementwise, literal, make, topological, zeros
from ..graph.loops.origins import walked
from ..graph.shapes import MEMO, Shape
from ..graph.simplify import Simplifier
from .loop_builder import SAME

T = TypeVar("T")

LONGEST = 4
"""The longest axis that is taken apart."""
MOST_ROWS = 16
"""The rows of an array that are combined in one pass."""
LONGEST_OF_PARTS = 16
"""The longest axis that is taken apart where it only holds shorter ones side by side: gathered, or added up."""
PLACING = frozenset(["add", "gather"])
FEWEST_POINTS = 32
MOST_AXES = 3
REPEATS = 8
"""A part that is read this many times is first copied to contiguous memory."""
COMBINED = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}
OF_TRUTHS = {"sum": "logical_or", "prod": "logical_and", "max": "logical_or", "min": "logical_and"}
"""The operation that combines two elements of a reduction: of numbers, of truth values."""


@functools.lru_cache(MEMO)
def short_axis(shape: Shape) -> int | None:
    """The last axis longer than 1, if it is short and there are many points."""
    for axis in range(len(shape) - 1, -1, -1):
        if shape[axis] != 1:
            length = shape[axis]
            fits = length <= LONGEST_OF_PARTS and math.prod(shape) >= FEWEST_POINTS * length
            return axis if fits else None
    return None


def without(values: tuple[T, ...], axis: int) -> tuple[T, ...]:
    """A shape, or other values for each axis, without one of its axes."""
    return values[:axis] + values[axis + 1 :]


class _Regions:
    """Regions of nodes that share a short axis, and the choice of those that are taken apart."""

    def __init__(self, order: Sequence[Node]) -> None:
        self.axis = {node: axis for node in order if (axis := short_axis(node.shape)) is not None}
        self.parent: dict[Node, Node] = {}
        self.mixed: set[Node] = set()
        if not self.axis:
            order = ()
        for node in order:
            self._visit(node)
        working: set[Node] = set()
        wide: set[Node] = set()
        joining: set[Node] = set()
        others: set[Node] = set()
        for node, axis in self.axis.items():
            region = self.find(node)
            arithmetic = node.primitive.kind == "elementwise"
            # Zeros around a single part are the cotangent of a strided slice.
            if arithmetic or node.name == "concatenate" or (node.name == "pad" and node.inputs[0].shape[axis] == 1):
                working.add(region)
            if node.shape[axis] > LONGEST:
                wide.add(region)
                if node.name in ("gather", "concatenate"):
                    joining.add(region)
                elif arithmetic and node.name not in PLACING:
                    others.add(region)
        self.split = ({self.find(node) for node in self.mixed} & working) - (wide - joining) - others

    def __contains__(self, node: Node) -> bool:
        return node in self.axis and node.primitive.kind not in ("source", "special") and self.find(node) in self.split

    def find(self, node: Node) -> Node:
        """The region's representative."""
        root = node
        while (above := self.parent.get(root, root)) is not root:
            root = above
        while (above := self.parent.get(node, node)) is not root:
            self.parent[node] = root
            node = above
        return root

    def join(self, node: Node, source: Node) -> None:
        """Two nodes with the same short axis are of one region; arrays that exist belong to none."""
        if source.primitive.kind not in ("source", "special"):
            self.parent[self.find(node)] = self.find(source)

    def mix(self, *nodes: Node) -> None:
        """The short axis of a node is not just a part of contiguous memory."""
        self.mixed.update(node for node in nodes if node in self.axis and node.primitive.kind != "source")

    def _visit(self, node: Node) -> None:
        axis = self.axis.get(node)
        for source in node.inputs:
            if node.name == "gather" and source is node.inputs[0]:
                continue
            theirs = self.axis.get(source)
            if axis is None and theirs is None:
                continue
            same = axis is not None and theirs is not None and node.shape[axis] == source.shape[theirs]
            match node.primitive.kind:
                case "elementwise":
                    if same:
                        self.join(node, source)
                case "reduction":
                    self.mix(source)
                    if same and theirs not in node.params[0]:
                        self.join(node, source)
                case "movement":
                    if same and image_of_axis(node, source, theirs) == axis:
                        self.join(node, source)
                        if node.name not in ("reshape", "slice"):
                            self.mix(node)
                    else:
                        self.mix(node, source)


def image_of_axis(node: Node, source: Node, axis: int | None) -> int | None:
    """The axis of a movement node's result that an axis of its input becomes; None if it is spread over others."""
    if axis is None:
        return None
    match node.name:
        case "reshape":
            for place in range(len(node.shape) - 1, -1, -1):
                if node.shape[place] != 1:
                    return place if node.shape[place] == source.shape[axis] else None
            return None
        case "transpose":
            return node.params[0].index(axis)
        case "broadcast":
            return axis + len(node.shape) - len(source.shape)
        case _:
            return axis


class _Parts:
    """The values of a node along one axis, and the node put together again, if it is needed."""

    def __init__(self, axis: int, parts: list[Node]) -> None:
        self.axis = axis
        self.parts = parts
        self.whole: Node | None = None

    def assembled(self) -> Node:
        """The concatenation of the parts."""
        if self.whole is None:
            shape = list(self.parts[0].shape)
            shape.insert(self.axis, 1)
            self.whole = concatenate([reshape(part, tuple(shape)) for part in self.parts], self.axis)
        return self.whole


class _Splitter:
    def __init__(self, regions: _Regions) -> None:
        self.regions = regions
        self.state: dict[Node, Node | _Parts] = {}
        self.views: dict[tuple[Node, int, int], Node] = {}
        self.copies: dict[Node, Node] = {}
        self.zeros: dict[tuple[Shape, int], Node] = {}

    def run(self, order: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
        for node in walked(order):
            self.state[node] = self.visit(node)
        return [self.whole(node) for node in outputs]

    def whole(self, node: Node) -> Node:
        state = self.state[node]
        return state.assembled() if isinstance(state, _Parts) else state

    def visit(self, node: Node) -> Node | _Parts:
        if node in self.regions:
            axis = self.regions.axis[node]
            parts = self.parts(node, axis)
            if parts is not None:
                return _Parts(axis, parts)
        if node.primitive.kind == "reduction":
            reduced = self.reduced(node)
            if reduced is not None:
                return reduced
        if node.name == "slice":
            taken = self.taken(node)
            if taken is not None:
                return taken
        inputs = self.pieces(node) if node.name == "concatenate" else tuple([self.whole(s) for s in node.inputs])
        return node if inputs == node.inputs else Node(node.primitive, inputs, node.params, node.shape, node.dtype)

    def part(self, node: Node, axis: int, position: int) -> Node:
        """A node at one position of an axis."""
        state = self.state[node]
        if isinstance(state, _Parts):
            if state.axis == axis:
                return state.parts[position]
            state = state.assembled()
        key = (state, axis, position)
        if key not in self.views:
            self.views[key] = self.view(state, axis, position)
        return self.views[key]

    def close(self, node: Node, axis: int, position: int) -> Node:
        """A part in contiguous memory: an array that is read many times should not be read in strides."""
        part = self.part(node, axis, position)
        if isinstance(self.state[node], _Parts) or part.primitive.kind != "movement":
            return part
        return self.copies.setdefault(part, make("alias", (part,)))

    def view(self, node: Node, axis: int, position: int) -> Node:
        if node.name == "iota":
            return literal(position, node.dtype)
        shape = without(node.shape, axis)
        if node.name == "broadcast" and node.inputs[0].name == "literal":
            return broadcast(node.inputs[0], shape)
        ranges = [(position, 1, 1) if a == axis else (0, n, 1) for a, n in enumerate(node.shape)]
        return reshape(slice_axes(node, ranges), shape)

    # ----- One node of a region -----

    def parts(self, node: Node, axis: int) -> list[Node] | None:
        """The parts of a node; None if they cannot be told from those of its inputs."""
        positions = range(node.shape[axis])
        if node.primitive in SAME:
            return [self.part(node.inputs[0], axis, k) for k in positions]
        if node.primitive.kind == "elementwise":
            return [self.applied(node, axis, k) for k in positions]
        if node.primitive.kind == "reduction":
            return None
        if node.name == "concatenate":
            return self.joined(node, axis)
        (source,) = node.inputs
        shape = without(node.shape, axis)
        match node.name:
            case "broadcast":
                theirs = axis - (node.ndim - source.ndim)
                if theirs < 0 or source.shape[theirs] == 1:
                    plain = self.whole(source)
                    if theirs >= 0:
                        plain = reshape(plain, without(source.shape, theirs))
                    return [broadcast(plain, shape)] * len(positions)
                if node.size >= REPEATS * source.size:
                    return [broadcast(self.close(source, theirs, k), shape) for k in positions]
                return [broadcast(self.part(source, theirs, k), shape) for k in positions]
            case "reshape":
                theirs = next((a for a in range(source.ndim - 1, -1, -1) if source.shape[a] != 1), None)
                if theirs is None or source.shape[theirs] != len(positions):
                    return None
                return [reshape(self.part(source, theirs, k), shape) for k in positions]
            case "transpose":
                theirs = node.params[0][axis]
                order = [a - (a > theirs) for a in node.params[0] if a != theirs]
                return [make("transpose", (self.part(source, theirs, k),), (tuple(order),)) for k in positions]
            case "slice":
                start, _, step = node.params[0][axis]
                ranges = without(node.params[0], axis)
                return [slice_axes(self.part(source, axis, start + k * step), ranges) for k in positions]
            case "pad":
                low = node.params[0][axis][0]
                widths = without(node.params[0], axis)
                inside = range(low, low + source.shape[axis])
                return [
                    self.padded(self.part(source, axis, k - low), widths) if k in inside else self.zero(node, shape)
                    for k in positions
                ]
            case _:
                raise AssertionError(node)

    def applied(self, node: Node, axis: int, position: int) -> Node:
        inputs = node.inputs
        if node.name == "gather":
            parts = (self.whole(inputs[0]), self.part(inputs[1], axis, position))
        else:
            parts = tuple([self.part(source, axis, position) for source in inputs])
        shape = without(node.shape, axis)
        if node.name == "add":
            nothing = self.zeros.get((shape, node.dtype.num))
            if nothing is not None and nothing in parts:
                return parts[1] if parts[0] is nothing else parts[0]
        return Node(node.primitive, parts, node.params, shape, node.dtype)

    def joined(self, node: Node, axis: int) -> list[Node]:
        along = node.params[0]
        if along == axis:
            return [self.part(piece, axis, k) for piece in node.inputs for k in range(piece.shape[axis])]
        return [
            concatenate([self.part(piece, axis, k) for piece in node.inputs], along - (along > axis))
            for k in range(node.shape[axis])
        ]

    def zero(self, node: Node, shape: Shape) -> Node:
        return self.zeros.setdefault((shape, node.dtype.num), zeros(shape, node.dtype))

    @staticmethod
    def padded(node: Node, widths: Sequence[tuple[int, int]]) -> Node:
        return node if all(w == (0, 0) for w in widths) else make("pad", (node,), (tuple(widths),))

    # ----- Nodes that read a region -----

    def pieces(self, node: Node) -> tuple[Node, ...]:
        """The nodes that a concatenation joins: parts one by one, so that they are written once."""
        inputs: list[Node] = []
        for source in node.inputs:
            state = self.state[source]
            if isinstance(state, _Parts) and state.axis == node.params[0]:
                shape = [1 if axis == state.axis else n for axis, n in enumerate(source.shape)]
                inputs.extend(reshape(part, tuple(shape)) for part in state.parts)
            else:
                inputs.append(self.whole(source))
        return tuple(inputs)

    def reduced(self, node: Node) -> Node | _Parts | None:
        """A reduction of parts: the parts combined, if it runs over the short axis, else a reduction of each."""
        state = self.state[node.inputs[0]]
        if not isinstance(state, _Parts):
            return None
        axis, axes = state.axis, node.params[0]
        rest = [a - (a > axis) for a in axes if a != axis]
        if axis not in axes:
            return _Parts(axis - sum(a < axis for a in axes), [reduce(node.name, part, rest) for part in state.parts])
        return reduce(node.name, _combined(node, state.parts), rest)

    def taken(self, node: Node) -> Node | None:
        """A single part: a slice of length 1."""
        state = self.state[node.inputs[0]]
        if not isinstance(state, _Parts):
            return None
        start, length, _ = node.params[0][state.axis]
        if length != 1:
            return None
        part = slice_axes(state.parts[start], without(node.params[0], state.axis))
        return reshape(part, node.shape)


def with_rows_combined(outputs: list[Node]) -> list[Node]:
    """Equal outputs, in which a few long rows that are reduced are combined with each other."""
    replaced = {node: _combined_rows(node) for node in topological(outputs) if _is_of_few_rows(node)}
    return Simplifier(replaced).run(outputs) if replaced else outputs


def _is_of_few_rows(node: Node) -> bool:
    """Whether a node reduces an axis of a few long rows."""
    if node.primitive.kind != "reduction" or len(node.params[0]) != 1 or node.dtype == np.float16:
        # Sums in float16 are rounded once.
        return False
    (axis,), (source,) = node.params[0], node.inputs
    most = MOST_ROWS if source.primitive.kind in ("source", "special") else LONGEST
    rows, points = source.shape[axis], math.prod(source.shape[axis + 1 :])
    return 1 < rows <= most and points >= FEWEST_POINTS * rows


def _combined_rows(node: Node) -> Node:
    """A reduction of a few rows as a combination of these, in one pass that keeps no results in memory between."""
    (axis,), (source,) = node.params[0], node.inputs
    every = [(0, n, 1) for n in source.shape]
    rows = [
        reshape(slice_axes(source, [*every[:axis], (k, 1, 1), *every[axis + 1 :]]), node.shape)
        for k in range(source.shape[axis])
    ]
    return _combined(node, rows)


def _combined(node: Node, parts: Sequence[Node]) -> Node:
    """The parts of what a reduction reduces, combined."""
    operation = (OF_TRUTHS if node.dtype.kind == "b" else COMBINED)[node.name]
    return functools.reduce(functools.partial(elementwise, operation), parts)


def take_apart(outputs: list[Node], order: list[Node]) -> tuple[list[Node], list[Node]]:
    """Equal outputs whose short trailing axes are taken apart where that helps, and all their nodes in order."""
    for _ in range(MOST_AXES):
        regions = _Regions(order)
        if not regions.split:
            break
        outputs = _Splitter(regions).run(order, outputs)
        order = topological(outputs)
    return outputs, order
