"""Products and sums of unit vectors: contracted on paper instead of in a loop.

In: a matrix product or a sum whose operands are made of the unit vectors that Jacobians are built from. Out: the same
array without that product or sum. Called by simplify.py. A Jacobian pushes all unit vectors at once through a linear
graph, so it meets a matrix product of a diagonal matrix, D @ A, which is a scaling of the rows of A; a sum over an axis
on which a unit vector is 1 at one place only is that one term.

Two pieces do the work. `supports` finds where a node is zero by construction: it tells pairs of digits of its index
that must be equal, or else the element is zero. (A digit is a part of an axis: axes that were merged or split by a
reshape keep their pairs.) `_Sampler` reads a node at given digits, so that the summed digit becomes the digit that it
must be equal to, and comparisons of equal digits disappear.

The zeros of unit vectors are exact: the other factor is not looked at, so that an infinity or a NaN in A does not
spread to the derivatives that it has no part in, as 0 * inf = NaN would make it. Only unit vectors made by
`unit_vectors` count; an identity matrix of the user's is multiplied as NumPy does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from .builders import cast, reduce, reshape, slice_axes, transpose
from .ir import Node, broadcast, elementwise, literal, make
from .shapes import Shape

BASIS = "basis"
"""Marks the positions that unit vectors are made of; they are ordinary positions otherwise."""
DEEPEST = 60
"""A longer chain of operations is read as it is, and not sampled at its sources."""


class Digit(NamedTuple):
    """The number index[axis] // step % extent: a digit of the index along an axis."""

    axis: int
    step: int
    extent: int


Pair = tuple[Digit, Digit]
Pairs = frozenset[Pair]
Positions = dict[Digit, int]
"""An integer array as a sum of digits times factors."""


def unit_vectors(n: int, dtype: np.dtype) -> Node:
    """The identity matrix, which takes no memory and whose zeros are exact.

    Examples
    --------
    >>> from nbgrad.graph.interpret import interpret
    >>> interpret([unit_vectors(2, np.dtype(np.float64))])[0]
    array([[1., 0.],
           [0., 1.]])
    """
    place = make("iota", (), (n, BASIS))
    row = broadcast(reshape(place, (n, 1)), (n, n))
    return cast(elementwise("equal", row, broadcast(place, (n, n))), dtype)


# ----- Where a node is zero -----

ALL: Pairs = frozenset([(Digit(-1, 0, 0), Digit(-1, 0, 0))])
"""The pairs of a node that is zero everywhere, which fulfils any pair."""
NONE: Pairs = frozenset()
KEEP_ZERO = frozenset("cast negative absolute sign floor ceil rint trunc".split())
"""Functions of one operand that are 0 at 0."""
ANY_ZERO = frozenset(["multiply", "logical_and"])
"""Zero where any operand is."""
ALL_ZERO = frozenset("add subtract maximum minimum logical_or not_equal".split())
"""Zero where all operands are."""

_supports: WeakKeyDictionary[Node, Pairs] = WeakKeyDictionary()
_positions: WeakKeyDictionary[Node, Positions] = WeakKeyDictionary()


def supports(node: Node) -> Pairs:
    """The pairs of digits that must be equal where a node is not zero."""
    found = _supports.get(node)
    if found is not None:
        return found
    stack = [node]
    while stack:
        current = stack[-1]
        if current in _supports:
            stack.pop()
            continue
        missing = [source for source in _operands(current) if source not in _supports]
        if missing:
            stack.extend(missing)
            continue
        _supports[current] = _support(current)
        stack.pop()
    return _supports[node]


def _operands(node: Node) -> tuple[Node, ...]:
    """The operands that decide where a node is zero."""
    kind = node.primitive.kind
    if kind == "movement":
        return node.inputs[:1] if node.name in ("reshape", "transpose", "broadcast") else ()
    if node.name == "divide":
        return node.inputs[:1]
    known = node.name in KEEP_ZERO or node.name in ANY_ZERO or node.name in ALL_ZERO or node.name == "select"
    return node.inputs if known else ()


def _support(node: Node) -> Pairs:
    name = node.name
    if name == "literal":
        return NONE if any(node.params[0]) else ALL
    if name == "equal":
        return _compared(node)
    operands = [_supports[source] for source in _operands(node)]
    if not operands:
        return NONE
    if name in ANY_ZERO:
        return ALL if ALL in operands else operands[0] | operands[1]
    if name in ALL_ZERO:
        return _common(operands[0], operands[1])
    if name == "select":
        condition, x, y = operands
        return _common(ALL if ALL in (condition, x) else condition | x, y)
    pairs = operands[0]
    if node.primitive.kind != "movement" or pairs is ALL or not pairs:
        return pairs
    moved: list[Pair] = []
    for pair in pairs:
        moved += zip(*_moved(node, pair), strict=True)
    return frozenset(moved)


def _common(a: Pairs, b: Pairs) -> Pairs:
    return b if a is ALL else a if b is ALL else a & b


def _compared(node: Node) -> Pairs:
    """The pairs of digits that are equal wherever two arrays of positions are."""
    x, y = (positions(source) for source in node.inputs)
    left = sorted((factor, digit) for digit, factor in x.items() if y.get(digit) != factor)
    right = sorted((factor, digit) for digit, factor in y.items() if x.get(digit) != factor)
    if len(left) != len(right) or not left:
        return NONE
    bound = 0
    for (factor, digit), (other, partner) in zip(left, right, strict=True):
        # Numbers with these digits are equal only if all their digits are.
        if factor != other or digit.extent != partner.extent or factor <= bound:
            return NONE
        bound += factor * (digit.extent - 1)
    return frozenset([(digit, partner) for (_, digit), (_, partner) in zip(left, right, strict=True)])


def positions(node: Node) -> Positions:
    """The positions of unit vectors as sums of digits; empty for anything else."""
    chain: list[Node] = []
    while node not in _positions and node.name in ("reshape", "transpose", "broadcast"):
        chain.append(node)
        node = node.inputs[0]
    if node not in _positions:
        basis = node.name == "iota" and BASIS in node.params
        _positions[node] = {Digit(0, 1, node.size): 1} if basis and node.size > 1 else {}
    found = _positions[node]
    for moving in reversed(chain):
        moved: Positions = {}
        for digit, factor in found.items():
            pieces = _moved(moving, (digit,))[0]
            for piece in pieces:
                moved[piece] = factor
                factor *= piece.extent
            if not pieces:
                moved = {}
                break
        _positions[moving] = found = moved
    return found


# ----- Digits under movement -----


def _moved(node: Node, digits: Sequence[Digit]) -> list[list[Digit]]:
    """Digits of the operand as digits of a movement node, all cut alike, lowest first; empty if there are none."""
    source = node.inputs[0]
    if node.name == "transpose":
        return [[digit._replace(axis=node.params[0].index(digit.axis))] for digit in digits]
    if node.name == "broadcast":
        return [[digit._replace(axis=digit.axis + node.ndim - source.ndim)] for digit in digits]
    before, after = _strides(source.shape), _strides(node.shape)
    extent = digits[0].extent
    starts = [before[digit.axis] * digit.step for digit in digits]
    cuts = {1, extent}
    for start in starts:
        for stride in after:
            if start < stride < start * extent:
                if stride % start:
                    return [[] for _ in digits]
                cuts.add(stride // start)
    steps = sorted(cuts)
    if any(high % low for low, high in pairwise(steps)):
        return [[] for _ in digits]
    moved: list[list[Digit]] = []
    for start in starts:
        found = [_located(start * low, high // low, node.shape, after) for low, high in pairwise(steps)]
        if any(digit is None for digit in found):
            return [[] for _ in digits]
        moved.append([digit for digit in found if digit is not None])
    return moved


def _strides(shape: Shape) -> list[int]:
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _located(start: int, extent: int, shape: Shape, strides: Sequence[int]) -> Digit | None:
    """The digit that advances by `start` elements in memory."""
    for axis, (n, stride) in enumerate(zip(shape, strides, strict=True)):
        if n > 1 and stride <= start and start * extent <= stride * n and start % stride == 0:
            return Digit(axis, start // stride, extent)
    return None


# ----- Contracting -----

Labels = tuple[int, ...]
"""The digits of an axis, highest first, as numbers of digits of the result."""


def contracted_product(node: Node) -> Node | None:
    """A matrix product of which one operand selects, as a product of elements; None for others."""
    batch, m, n = node.shape
    k = node.inputs[0].shape[2]
    for position, axis in ((1, 1), (0, 2)):
        pairs = supports(node.inputs[position])
        chosen = _cover(pairs, axis, k) if pairs is not ALL else None
        if not chosen:
            continue
        layout = _Layout((batch, m, n), chosen)
        rows, columns = layout.labels[1], layout.labels[2]
        groups = [(layout.labels[0], rows, layout.summed), (layout.labels[0], layout.summed, columns)]
        sampler = _Sampler(layout.extents)
        a, b = (sampler.read(source, group) for source, group in zip(node.inputs, groups, strict=True))
        return reshape(broadcast(elementwise("multiply", a, b), layout.extents), node.shape)
    return None


def contracted_sum(node: Node) -> Node | None:
    """A sum over an axis that unit vectors select from, without that axis; None for others."""
    source = node.inputs[0]
    pairs = supports(source)
    if not pairs or pairs is ALL:
        return None
    axes: tuple[int, ...] = node.params[0]
    for axis in axes:
        chosen = _cover(pairs, axis, source.shape[axis])
        if not chosen:
            continue
        kept = tuple([n for a, n in enumerate(source.shape) if a != axis])
        layout = _Layout(kept, [(low, q._replace(axis=q.axis - (q.axis > axis))) for low, q in chosen])
        groups = list(layout.labels)
        groups.insert(axis, layout.summed)
        read = broadcast(_Sampler(layout.extents).read(source, tuple(groups)), layout.extents)
        return reduce("sum", reshape(read, kept), [a - (a > axis) for a in axes if a != axis])
    return None


def _cover(pairs: Iterable[Pair], axis: int, extent: int) -> list[tuple[int, Digit]] | None:
    """For each digit of an axis, lowest first, its step and the digit of another axis that it equals."""
    chosen: list[tuple[int, Digit]] = []
    oriented = sorted({(p, q) for a, b in pairs for p, q in ((a, b), (b, a)) if p.axis == axis != q.axis})
    step = 1
    while step < extent:
        fitting = (q for p, q in oriented if p.step == step and not any(_overlap(q, other) for _, other in chosen))
        q = next(fitting, None)
        if q is None:
            return None
        chosen.append((step, q))
        step *= q.extent
    return chosen


def _overlap(a: Digit, b: Digit) -> bool:
    return a.axis == b.axis and a.step < b.step * b.extent and b.step < a.step * a.extent


class _Layout:
    """The digits of a result: `extents` from the first to the last, `labels` by axis, and those of the summed axis."""

    def __init__(self, shape: Shape, chosen: Sequence[tuple[int, Digit]]) -> None:
        extents: list[int] = []
        place: dict[Digit, int] = {}
        self.labels: list[Labels] = []
        for axis, n in enumerate(shape):
            cuts = {1, n}
            for _, digit in chosen:
                if digit.axis == axis:
                    cuts |= {digit.step, digit.step * digit.extent}
            group: list[int] = []
            for low, high in reversed(list(pairwise(sorted(cuts)))):
                place[Digit(axis, low, high // low)] = len(extents)
                group.append(len(extents))
                extents.append(high // low)
            self.labels.append(tuple(group))
        self.extents: Shape = tuple(extents)
        self.summed: Labels = tuple([place[digit] for _, digit in reversed(chosen)])


class _Sampler:
    """Reads nodes at the digits of a result: `read` gives an array with one axis per digit, of length 1 if unused."""

    def __init__(self, extents: Shape) -> None:
        self.extents = extents
        self.known: dict[tuple[Node, tuple[Labels, ...]], Node] = {}

    def read(self, node: Node, groups: tuple[Labels, ...], depth: int = 0) -> Node:
        """The node at the digits that `groups` lists for each of its axes."""
        key = (node, groups)
        found = self.known.get(key)
        if found is None:
            self.known[key] = found = self._read(node, groups, depth)
        return found

    def _read(self, node: Node, groups: tuple[Labels, ...], depth: int) -> Node:
        if depth < DEEPEST:
            source = node.inputs[0] if node.inputs else node
            if node.name == "transpose":
                moved = dict(zip(node.params[0], groups, strict=True))
                return self.read(source, tuple([moved[axis] for axis in range(node.ndim)]), depth + 1)
            if node.name == "broadcast":
                inner = groups[node.ndim - source.ndim :]
                kept = [group if n > 1 else () for group, n in zip(inner, source.shape, strict=True)]
                return self.read(source, tuple(kept), depth + 1)
            if node.name == "reshape":
                regrouped = self._regrouped(source.shape, groups)
                if regrouped is not None:
                    return self.read(source, regrouped, depth + 1)
            elif self._fewer(groups) and node.primitive.kind == "elementwise" and node.name not in ("gather", "custom"):
                parts = [self.read(operand, groups, depth + 1) for operand in node.inputs]
                if node.name == "equal" and parts[0] is parts[1] and node.inputs[0].dtype.kind != "f":
                    return literal(True, node.dtype)
                shape = np.broadcast_shapes(*[part.shape for part in parts])
                return make(node.name, tuple([broadcast(part, shape) for part in parts]), node.params)
        return self._leaf(node, groups)

    def _fewer(self, groups: tuple[Labels, ...]) -> bool:
        """Whether a digit occurs twice, so that not all of a node is read."""
        labels = [label for group in groups for label in group]
        return len(set(labels)) < len(labels)

    def _regrouped(self, shape: Shape, groups: tuple[Labels, ...]) -> tuple[Labels, ...] | None:
        """The digits of a node of another shape with the same elements in order."""
        rest = [label for group in groups for label in group]
        regrouped: list[Labels] = []
        for n in shape:
            group: list[int] = []
            while prod(self.extents[label] for label in group) < n:
                group.append(rest.pop(0))
            if prod(self.extents[label] for label in group) != n:
                return None
            regrouped.append(tuple(group))
        return tuple(regrouped)

    def _leaf(self, node: Node, groups: tuple[Labels, ...]) -> Node:
        """The node itself, reshaped and transposed; for a digit that occurs twice, its diagonal."""
        labels = [label for group in groups for label in group]
        read = reshape(node, tuple([self.extents[label] for label in labels]))
        for label in sorted(set(labels)):
            while labels.count(label) > 1:
                first = labels.index(label)
                second = labels.index(label, first + 1)
                others = [axis for axis in range(len(labels)) if axis not in (first, second)]
                n = self.extents[label]
                moved = transpose(read, (*others, first, second))
                outer = moved.shape[:-2]
                flat = reshape(moved, (*outer, n * n))
                read = slice_axes(flat, [*[(0, size, 1) for size in outer], (0, n, n + 1)])
                labels = [*[labels[axis] for axis in others], label]
        order = sorted(range(len(labels)), key=labels.__getitem__)
        placed: Mapping[int, int] = {labels[axis]: read.shape[axis] for axis in order}
        read = transpose(read, tuple(order))
        return reshape(read, tuple([placed.get(label, 1) for label in range(len(self.extents))]))
