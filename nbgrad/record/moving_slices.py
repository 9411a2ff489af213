"""Slices of a known length at a place that differs from turn to turn: `x[k:k + 3]`, `x[i * n:(i + 1) * n]`.

In: ends that are recorded and have no value yet. Out: the place of the first element, checked to lie in the array, and
the number of elements, which follows from how the ends were computed. Called by index_keys.py and by `arange`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from ..errors import RangeError, TracedValueError
from ..graph.builders import cast
from ..graph.ir import INT64, Node, elementwise, literal_value
from ..runtime.evaluate import require
from .as_node import as_node
from .tensor import Tensor

_DEPTH = 32
"""Ends that take more operations in a row are compared as values that have nothing in common."""
_ONE: Hashable = ()
"""The term of a number."""


@dataclass(frozen=True, eq=False)
class MovingSlice:
    """A slice whose first position is a node, counted from the front and in range."""

    start: Node
    length: int
    step: int

    def __len__(self) -> int:
        return self.length


def has_tensors(key: Any) -> bool:
    """Whether a slice, or one of a tuple, has ends that are Tensors."""
    for part in key if key.__class__ is tuple else (key,):
        if part.__class__ is slice and (
            isinstance(part.start, Tensor) or isinstance(part.stop, Tensor) or isinstance(part.step, Tensor)
        ):
            return True
    return False


def at_first_place(part: slice) -> slice:
    """A slice of as many elements as one that moves, as near to the first element as it may be."""
    if not has_tensors(part):
        return part
    step = 1 if part.step is None else part.step
    count = len(range(0, distance(part.start, part.stop) or 0, step))
    return slice(0, (count - 1) * step + 1 if count else 0, step) if step > 0 else slice((1 - count) * step, None, step)


def moving_slice(part: slice, extent: int, axis: int) -> MovingSlice | range:
    """A slice with recorded ends of which no value can be asked.

    Raises
    ------
    TracedValueError
        If its length differs from turn to turn.
    RangeError
        If it has more elements than the axis.
    """
    step: Any = 1 if part.step is None else part.step
    recorded = isinstance(part.step, Tensor) or part.start is None or part.stop is None
    length = None if recorded else distance(part.start, part.stop)
    if length is None:
        message = (
            "The length of a slice depends on values that differ from turn to turn of a loop, or between the values of "
            f"vmap, but shapes must be known: axis {axis} has size {extent}. Take a slice of one length, "
            "x[k:k + 3], or all elements with np.where(np.arange(n) < k, x, 0.0)."
        )
        raise TracedValueError(message)
    count = len(range(0, length, step))
    if not count:
        return range(0)
    low, high = sorted([0, (count - 1) * step])
    what = f"A slice of {count} elements, at a place that is recorded, reaches out of axis {axis} with size {extent}, "
    what += "where NumPy gives fewer elements."
    if high - low >= extent:
        raise RangeError(what)
    start, stop = (cast(as_node(end), INT64) for end in (part.start, part.stop))
    last = start + (count - 1) * step
    if step > 0:
        behind, before = _all(_less(stop, 0), _less(-extent - 1, start)), _less(last, extent)
    else:
        behind, before = _less(-extent - 1, last), _all(_less(start, extent), _less(-1, stop))
    negative = _less(start, 0)
    require(elementwise("select", negative, behind, before), what)
    start = elementwise("select", negative, start + extent, start)
    # The compiled program finds out that the check fails after it has read or written there.
    return MovingSlice(elementwise("maximum", elementwise("minimum", start, extent - 1 - high), -low), count, step)


def _less(one: Node | int, other: Node | int) -> Node:
    return elementwise("less", one, other)


def _all(one: Node, other: Node) -> Node:
    return elementwise("logical_and", one, other)


def distance(start: Any, stop: Any) -> int | None:
    """`stop - start` of integers, where it follows from how they are computed; None where it does not."""
    terms = [as_node(end) for end in (start, stop)]
    if any(node.ndim or node.dtype.kind not in "iu" for node in terms):
        return None
    found = _terms(terms[1], _DEPTH)
    found.subtract(_terms(terms[0], _DEPTH))
    number = found.pop(_ONE, 0)
    return None if any(found.values()) else number


def _terms(node: Node, depth: int) -> Counter[Hashable]:
    """An integer as a sum of terms, how often each one."""
    name = node.name
    if name == "literal" or (node.value is not None and not node.traced and node.size == 1):
        return Counter({_ONE: int(literal_value(node) if name == "literal" else node.value.item())})
    if depth == 0:
        return Counter({node: 1})
    inputs = node.inputs
    if name in ("reshape", "alias", "cast", "broadcast") and inputs[0].size == 1:
        dtype = inputs[0].dtype
        if dtype.kind in "iu" and node.dtype.itemsize >= dtype.itemsize:
            return _terms(inputs[0], depth - 1)
    if name in ("add", "subtract", "multiply", "negative") and node.dtype.itemsize > 2:  # small integers overflow
        sides = [_terms(one, depth - 1) for one in inputs]
        if name == "multiply":
            known = [side for side in sides if not any(count for term, count in side.items() if term != _ONE)]
            if known:
                factor = known[0][_ONE]
                other = sides[1] if known[0] is sides[0] else sides[0]
                return Counter({term: factor * count for term, count in other.items()})
        elif name == "add":
            sides[0].update(sides[1])
            return sides[0]
        else:
            found = Counter[Hashable]() if name == "negative" else sides.pop(0)
            found.subtract(sides[0])
            return found
    return Counter({_same(node, depth): 1})


def _same(node: Node, depth: int) -> Hashable:
    """A key that is equal for nodes that compute the same of the same values."""
    if depth == 0 or not node.inputs:
        return int(literal_value(node)) if node.name == "literal" and node.dtype.kind in "iu" else node
    return node.primitive, node.params, *[_same(one, depth - 1) for one in node.inputs]
