"""Sums of the cotangents of slices: pieces of one array are put together, not padded with zeros and added.

In: for one array, the parts that slices of it read, and the cotangent of each. Out: the cotangent of the whole array.
Called by differentiate.py. A slice's transpose pads with zeros, so an array that is read in n slices would get a sum of
n arrays of its own size: quadratic for a loop over its elements. Here, cotangents of the same part are added while they
are small (by the caller), parts that lie side by side are concatenated, along the last axis first, and only parts that
overlap are padded and added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..builders import concatenate, pad
from ..ir import Node, zeros
from ..shapes import Shape

Span = tuple[int, int]
"""Start and end along an axis."""
Box = tuple[Span, ...]
"""A span per axis: the part that a slice with steps of 1 reads."""
FEW = 2
"""Up to this many parts with gaps in between are padded and added; the gaps between more are filled with zeros."""


def box_of(ranges: Sequence[tuple[int, int, int]]) -> Box | None:
    """The box that a slice with these (start, length, step) reads; None if it is empty, skips or reverses elements."""
    if any(length == 0 or (step != 1 and length != 1) for _, length, step in ranges):
        return None
    return tuple([(start, start + length) for start, length, _ in ranges])


def merged(boxes: Iterable[Box], dimensions: int) -> set[Box]:
    """Fewer boxes that cover the same elements: those that differ along one axis only are joined where they touch."""
    left = set(boxes)
    for axis in reversed(range(dimensions)):
        rows: dict[Box, list[Span]] = {}
        for box in left:
            rows.setdefault(box[:axis] + box[axis + 1 :], []).append(box[axis])
        left = set()
        for others, spans in rows.items():
            spans.sort()
            first, last = spans[0]
            for start, end in spans:
                if start > last:
                    left.add((*others[:axis], (first, last), *others[axis:]))
                    first = start
                last = max(last, end)
            left.add((*others[:axis], (first, last), *others[axis:]))
    return left


def assembled(parts: Mapping[Box, Node], shape: Shape, add: Callable[[Node, Node], Node]) -> Node:
    """The sum of all parts, each at its place in an array of zeros.

    Parameters
    ----------
    parts : mapping of boxes to nodes
        At least one; a node's shape is that of its box.
    shape : tuple of int
        The shape of the whole array.
    add : callable
        Adds two nodes of one shape.

    Returns
    -------
    Node
        Of that shape.
    """
    left = dict(parts)
    for axis in reversed(range(len(shape))):
        left = _joined(left, axis, shape[axis], add)
    total: Node | None = None
    for box, node in left.items():
        padded = pad(node, [(start, n - end) for (start, end), n in zip(box, shape, strict=True)])
        total = padded if total is None else add(total, padded)
    assert total is not None, shape
    return total


def _joined(parts: Mapping[Box, Node], axis: int, extent: int, add: Callable[[Node, Node], Node]) -> dict[Box, Node]:
    """Parts with an equal sum: those that differ along one axis only are concatenated where they do not overlap."""
    rows: dict[Box, dict[Span, Node]] = {}
    for box, node in parts.items():
        rows.setdefault(box[:axis] + box[axis + 1 :], {})[box[axis]] = node
    result: dict[Box, Node] = {}

    def put(others: Box, span: Span, node: Node) -> None:
        box = (*others[:axis], span, *others[axis:])
        result[box] = add(result[box], node) if box in result else node

    for others, row in rows.items():
        while chain := _tiling(row, extent) or _spread(row):
            put(others, (0, extent), _filled([(span, row.pop(span)) for span in chain], axis, extent))
        for span, node in row.items():
            put(others, span, node)
    return result


def _tiling(spans: Mapping[Span, Node], extent: int) -> list[Span]:
    """Spans that cover an axis, each starting where the one before ends; none if there are no such."""
    by_start: dict[int, list[Span]] = {}
    for span in spans:
        by_start.setdefault(span[0], []).append(span)
    for first in by_start.get(0, ()):
        chain = [first]
        while chain[-1][1] != extent and chain[-1][1] in by_start:
            chain.append(by_start[chain[-1][1]][0])
        if chain[-1][1] == extent:
            return chain
    return []


def _spread(spans: Mapping[Span, Node]) -> list[Span]:
    """A chain of spans that do not overlap, in order; none if they are too few to be worth it."""
    chain: list[Span] = []
    if len(spans) > FEW:
        for span in sorted(spans, key=lambda span: span[1]):
            if not chain or span[0] >= chain[-1][1]:
                chain.append(span)
    return chain if len(chain) > FEW else []


def _filled(pieces: Sequence[tuple[Span, Node]], axis: int, extent: int) -> Node:
    """Pieces along an axis, with zeros before, between and after them."""
    nodes: list[Node] = []
    place = 0

    def skip(end: int, like: Node) -> None:
        if end > place:
            nodes.append(zeros((*like.shape[:axis], end - place, *like.shape[axis + 1 :]), like.dtype))

    for (start, end), node in pieces:
        skip(start, node)
        nodes.append(node)
        place = end
    skip(extent, nodes[-1])
    return concatenate(nodes, axis)
