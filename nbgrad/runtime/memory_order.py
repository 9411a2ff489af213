"""Memory order: the strides that NumPy's array in place of a node would have.

In: a node. Out: its strides in bytes, by NumPy's rules; the value itself is always in C order. Called where the order
can be seen: by shared_memory.py for views that are written to, by functions with `order=`, for `strides` and `flags`,
and by evaluate.py before a node forgets how it was made. Recording finds out nothing: a node's `layout` only says
whether anything that it was made of was ever out of C order.

NumPy's rules are those of its iterator ("K": results lie as their operands do), of `NPY_KEEPORDER` for copies, and of
strides for what only moves elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..compiler.views import View, view_through
from ..graph.complex_numbers import COMPLEX, is_zero
from ..graph.ir import PRIMITIVES, Node, make
from ..graph.shapes import Shape

Strides = tuple[int, ...]
_ALIAS, _BROADCAST, _CONCATENATE, _CUSTOM, _GATHER, _PAD, _RESHAPE = (
    PRIMITIVES[name] for name in "alias broadcast concatenate custom gather pad reshape".split()
)
_LIKE_THEIR_INPUT = frozenset([PRIMITIVES[name] for name in ("recurrence", "accumulate", "write")])


# ----- Strides and orders of axes -----


def contiguous(shape: Shape, itemsize: int, order: Sequence[int] | None = None) -> Strides:
    """The strides of an array without gaps whose axes lie in an order, the slowest first: by default in C order."""
    strides = [0] * len(shape)
    step = itemsize
    for axis in reversed(order if order is not None else range(len(shape))):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def is_contiguous(shape: Shape, strides: Strides, itemsize: int, order: str = "C") -> bool:
    """Whether strides are those of an array without gaps in "C" or "F" order."""
    if 0 in shape:
        return True
    step = itemsize
    axes = zip(shape, strides, strict=True)
    for extent, stride in reversed(list(axes)) if order == "C" else axes:
        if extent != 1:
            if stride != step:
                return False
            step *= extent
    return True


def order_of_copy(shape: Shape, strides: Strides, itemsize: int) -> list[int]:
    """The order of axes that a copy with `order="K"` has."""
    if is_contiguous(shape, strides, itemsize):
        return list(range(len(shape)))
    if is_contiguous(shape, strides, itemsize, "F"):
        return list(range(len(shape)))[::-1]
    return sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))


def order_of_loop(shape: Shape, operands: Sequence[Strides]) -> list[int]:
    """The order of axes, the slowest first, in which NumPy's iterator runs over operands and lays out results.

    An axis goes outside of another where all operands that say anything step farther along it; repeated and single
    elements say nothing, and where operands disagree, or none says anything, C order stays.
    """
    order: list[int] = []
    known = [[0 if n == 1 else abs(s) for n, s in zip(shape, strides, strict=True)] for strides in operands]
    for axis in reversed(range(len(shape))):  # `order` is kept with the fastest axis first
        place = len(order)
        for position in range(len(order) - 1, -1, -1):
            other = order[position]
            votes = [strides[axis] >= strides[other] for strides in known if strides[axis] and strides[other]]
            if votes:
                if any(votes):
                    break
                place = position
        order.insert(place, axis)
    return order[::-1]


def order_in_memory(shape: Shape, strides: Strides) -> tuple[int, ...] | None:
    """The order of axes, the slowest first, of an array's result by NumPy's iterator; None for C order."""
    order = order_of_loop(shape, [strides])
    return None if order == sorted(order) else tuple(order)


def order_of_pieces(pieces: Sequence[tuple[Shape, Strides]]) -> list[int]:
    """The order of axes, the slowest first, in which a concatenation of pieces lies.

    An axis goes outside of another where all pieces step farther along it; those that have one element along either say
    nothing, and where pieces disagree, or none says anything, C order stays.
    """
    order: list[int] = []
    for axis in range(len(pieces[0][0])):
        place = len(order)
        for position in range(len(order) - 1, -1, -1):
            other = order[position]
            votes = [abs(s[axis]) > abs(s[other]) for shape, s in pieces if shape[axis] != 1 != shape[other]]
            if votes:
                if not all(votes):
                    break
                place = position
        order.insert(place, axis)
    return order


# ----- Nodes -----


def strides_of(node: Node) -> Strides:
    """The strides that NumPy's array would have; what was found out stays known."""
    known: dict[Node, Strides] = {}
    stack = [node]
    while stack:
        current = stack[-1]
        layout = current.layout
        if current in known:
            stack.pop()
        elif layout.__class__ is tuple:
            known[current] = layout
        elif layout is None and current.primitive.kind != "movement":
            known[current] = contiguous(current.shape, current.dtype.itemsize)
        elif waiting := [source for source in current.inputs if source not in known]:
            stack += waiting
        else:
            strides = known[current] = _derived(current, [known[source] for source in current.inputs])
            if layout is not None:
                current.layout = None if is_contiguous(current.shape, strides, current.dtype.itemsize) else strides
    return known[node]


def strides_of_owned(node: Node) -> Strides:
    """The strides of an array that is no view: where its node only moves elements, NumPy has made a copy."""
    if node.layout is None:
        return contiguous(node.shape, node.dtype.itemsize)
    strides = strides_of(node)
    if node.primitive.kind == "movement":
        order = order_of_copy(node.shape, strides, node.dtype.itemsize)
        strides = contiguous(node.shape, node.dtype.itemsize, order)
    return strides


def _derived(node: Node, operands: Sequence[Strides]) -> Strides:
    """The strides of a node, given those of its inputs."""
    shape, itemsize = node.shape, node.dtype.itemsize
    if 0 in shape or not shape or not operands:
        return contiguous(shape, itemsize)
    primitive, first = node.primitive, node.inputs[0]
    if primitive is _ALIAS:
        return _arranged(node, operands[0])
    if primitive is _CUSTOM:
        return operands[0]
    if primitive is _CONCATENATE:
        pieces = [(piece.shape, strides) for piece, strides in zip(node.inputs, operands, strict=True)]
        return contiguous(shape, itemsize, order_of_pieces(pieces))
    if primitive is _BROADCAST and first.primitive is _ALIAS and first.params == _OF_ARRAY:
        return contiguous(shape, itemsize)
    if primitive.kind == "movement":
        strides = operands[0]
        if _is_full(first):
            strides = contiguous(first.shape, itemsize)
        moved = None if primitive is _PAD else view_through(node, View.strided(first.shape, strides))
        return contiguous(shape, itemsize) if moved is None else moved.strides
    if primitive.kind == "reduction":
        return contiguous(shape, itemsize, _order_of_reduction(first.shape, operands[0], node.params[0]))
    if primitive is COMPLEX and node.inputs[1].primitive is _CONCATENATE and any(map(is_zero, node.inputs[1].inputs)):
        operands = [operands[0]] * 2  # zeros that stand for no array
    if (primitive.kind == "elementwise" and primitive is not _GATHER) or primitive in _LIKE_THEIR_INPUT:
        alike = [strides for source, strides in zip(node.inputs, operands, strict=True) if source.shape == shape]
        return contiguous(shape, itemsize, order_of_loop(shape, alike))
    return contiguous(shape, itemsize)


_OF_ARRAY = ("array",)
"""The params of an alias of a number that an array repeats."""


def element_of_array(node: Node) -> Node:
    """A number whose repetition, unlike that of others, is an array in memory: it says how results lie."""
    return make("alias", (node,), _OF_ARRAY)


def _is_full(node: Node) -> bool:
    """Whether a node repeats a number: `full` and assignments make those, more often than `broadcast_to`."""
    source = node
    while source.primitive is _BROADCAST or source.primitive is _RESHAPE:
        source = source.inputs[0]
    return source is not node and not source.shape


def _order_of_reduction(shape: Shape, strides: Strides, axes: Sequence[int]) -> list[int]:
    """The order of the axes that a reduction over others leaves."""
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    return [kept.index(axis) for axis in order_of_loop(shape, [strides]) if axis in kept]


def like_reduction(node: Node, source: Node, axes: Sequence[int]) -> Node:
    """A node without some axes of another one, laid out as a reduction over them."""
    if node.ndim < 2 or not may_differ(source):
        return node
    return with_axis_order(node, _order_of_reduction(source.shape, strides_of(source), axes))


def _arranged(node: Node, strides: Strides) -> Strides:
    """The strides of an alias: those of its input, or of a copy of it in the order that is asked for."""
    shape, itemsize = node.shape, node.dtype.itemsize
    if node.layout == "C":
        return contiguous(shape, itemsize)
    if node.layout == "F":
        return contiguous(shape, itemsize, range(node.ndim)[::-1])
    return contiguous(shape, itemsize, order_of_copy(shape, strides, itemsize)) if node.layout == "K" else strides


def copied(node: Node, order: str = "K") -> Node:
    """A copy of a node that NumPy would lay out in an order: "C", "F", or "K", as the node itself lies."""
    if node.ndim < 2:
        order = "C"
    if node.layout is None and (order == "C" or (order == "K" and not may_differ(node))):
        return node
    return _alias(node, order)


def kept(node: Node, before: Node) -> Node:
    """The new value of an array that stays where it is: with the strides of the old one."""
    if node.shape != before.shape:
        return node
    if node.layout is None and before.layout is None:
        # Repeated elements become elements of their own.
        repeats = may_differ(node) and not is_contiguous(node.shape, strides_of(node), node.dtype.itemsize)
        return _alias(node, "C") if repeats else node
    strides = strides_of_owned(before)
    same = node.primitive.kind != "movement" and strides == strides_of(node)
    return node if same else with_strides(node, strides)


def laid_out(value: np.ndarray, node: Node) -> np.ndarray:
    """A value as NumPy would have it in memory: itself if it is in C order, else a copy."""
    if node.layout is None:
        return value
    strides, itemsize = strides_of(node), node.dtype.itemsize
    if is_contiguous(node.shape, strides, itemsize):
        return value
    order = order_of_copy(node.shape, strides, itemsize)
    return np.ascontiguousarray(value.transpose(order)).transpose(np.argsort(order))


def with_strides(node: Node, strides: Strides) -> Node:
    """A node that NumPy would lay out with these strides."""
    layout = None if is_contiguous(node.shape, strides, node.dtype.itemsize) else strides
    if layout is None and node.layout is None:
        return node
    return _alias(node, layout)


def _alias(node: Node, layout: Strides | str | None) -> Node:
    made = make("alias", (node,))
    made.layout = layout
    return made


def with_axis_order(node: Node, order: Sequence[int]) -> Node:
    """A node that NumPy would lay out without gaps, its axes in an order, the slowest first."""
    return with_strides(node, contiguous(node.shape, node.dtype.itemsize, order))


def may_differ(node: Node) -> bool:
    """Whether a copy of a node may be anything but in C order."""
    return node.ndim > 1 and (node.layout is not None or node.primitive.kind == "movement")


def same_order(one: Node, other: Node) -> bool:
    """Whether NumPy's arrays in place of two nodes of one shape and dtype lie in memory in one way."""
    return not (may_differ(one) or may_differ(other)) or strides_of(one) == strides_of(other)


def like_array(node: Node, source: Node) -> Node:
    """A node that lies in memory as another one of its shape and dtype."""
    return with_strides(node, strides_of(source)) if may_differ(source) else node


def like_copy(node: Node, source: Node) -> Node:
    """A node with as many axes as another one, laid out as a copy of that in order "K"."""
    if node.layout is None and not may_differ(source):
        return node
    return with_axis_order(node, order_of_copy(source.shape, strides_of(source), source.dtype.itemsize))
