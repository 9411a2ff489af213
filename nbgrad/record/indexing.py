"""Indexing: reading and writing `x[key]`.

In: nodes, keys, values. Out: nodes (`getitem`, `setitem`, `add_at`) and Tensors (take, put and their relatives). Called
by Tensor and by users. Basic keys are slices. All others become one flat int64 position per element and one gather, or,
to write, `scatter_last`, which lets the last of several writes to a position win, as NumPy does; gradients follow it.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError, TracedValueError
from ..graph.builders import cast, gather, iota, reshape, scatter_add, scatter_last, slice_axes
from ..graph.formulas import unslice, write
from ..graph.ir import Node, broadcast, elementwise, literal
from ..graph.primitives import PRIMITIVES
from ..graph.shapes import Shape, broadcasts, contiguous_strides
from ..graph.trace import current_trace
from ..runtime.memory_order import strides_of, with_axis_order
from .as_node import as_node, constant_again
from .index_keys import (
    Entry,
    Truth,
    broadcast_positions,
    checked_position,
    entries_of,
    has_positions,
    is_advanced,
    merged,
)
from .moving_slices import MovingSlice
from .tensor import Tensor

ALIAS, RESHAPE, SLICE = PRIMITIVES["alias"], PRIMITIVES["reshape"], PRIMITIVES["slice"]
SLICES = range | MovingSlice
SHORT = 16
"""Elements of arguments that a recording remembers."""
APART = 0.01 / math.pi
"""Between the serial numbers of elements, which no other node has."""

# ----- Reading -----


def getitem(node: Node, key: Any) -> Node:
    """`x[key]`."""
    if type(key) is int and node.shape:
        shape, dtype = node.shape, node.dtype
        position = checked_position(key, shape[0], 0)
        ranges = ((position, 1, 1), *[(0, n, 1) for n in shape[1:]])
        if shape[0] == 1 or dtype.kind == "c":
            return reshape(slice_axes(node, ranges), shape[1:])
        part = Node(SLICE, (node,), (ranges,), (1, *shape[1:]), dtype)
        return Node(RESHAPE, (part,), (shape[1:],), shape[1:], dtype)
    found = _slices(node.shape, key)
    if found is not None:
        return reshape(slice_axes(node, found[0]), found[1])
    entries = entries_of(node.shape, key)
    if has_positions(entries):
        flat, shape = flat_positions(node.shape, entries)
        return _laid_out(reshape(_pick(node, flat), shape), node, entries)
    ranges, shape = _basic(entries)
    return reshape(slice_axes(node, ranges), shape)


def element(node: Node, position: int) -> Node:
    """`x[position]` of a vector of real numbers. A recording has each element of a short argument once.

    Those of longer ones, such as data, are read in another turn of a loop each, and shall look alike there.
    """
    (length,) = node.shape
    at = position + length if position < 0 else position
    if not 0 <= at < length:
        checked_position(position, length, 0)
    trace = current_trace() if length <= SHORT and (node.primitive is ALIAS or not node.inputs) else None
    if trace is not None:
        noted = trace.elements.get((node, at))
        known = noted and noted()
        if known is not None:
            part = known.inputs[0]
            # A loop that was found meanwhile may give it instead.
            untouched = part is node or (part.primitive is SLICE and part.inputs[0] is node)
            if untouched and known.serial > node.serial + 1:
                _put_first(known, node, at)
            return known
    # Loops index at every turn: their nodes are made without asking the rules for what is known.
    dtype = node.dtype
    part = node if length == 1 else Node(SLICE, (node,), (((at, 1, 1),),), (1,), dtype)
    made = Node(RESHAPE, (part,), ((),), (), dtype)
    if trace is not None:
        trace.elements[node, at] = weakref.ref(made)
    return made


def _put_first(known: Node, node: Node, at: int) -> None:
    """Number an element that is read again before all that is computed: it belongs to no turn of a loop."""
    known.serial = node.serial + (2 * at + 2) * APART
    if known.inputs[0] is not node:
        known.inputs[0].serial = node.serial + (2 * at + 1) * APART


def _laid_out(picked: Node, node: Node, entries: Sequence[Entry]) -> Node:
    """The elements that a key with arrays picks, as NumPy lays them out: the axes of the arrays are the slowest,
    wherever they stand; those of slices follow as they lie in the array."""
    before, together = _place_of_arrays(entries)
    if picked.ndim < 2 or (before == 0 and node.layout is None):
        return picked
    strides = iter(strides_of(node))
    kept: list[int] = []
    for entry in entries:
        step = 0 if entry is None or entry is Ellipsis or isinstance(entry, Truth) else next(strides)
        if entry is None or isinstance(entry, SLICES):
            kept.append(step)
    rest = [*range(before), *range(before + together, picked.ndim)]
    slowest_first = sorted(range(len(kept)), key=lambda k: -abs(kept[k]))
    return with_axis_order(picked, [*range(before, before + together), *[rest[k] for k in slowest_first]])


def _place_of_arrays(entries: Sequence[Entry]) -> tuple[int, int]:
    """The first position of the axes of a key's arrays in the result, and the number of these axes."""
    places = [place for place, entry in enumerate(entries) if is_advanced(entry) or isinstance(entry, int)]
    neighbours = bool(places) and places == list(range(places[0], places[-1] + 1))
    before = sum(1 for e in entries[: places[0]] if e is not Ellipsis) if neighbours else 0
    return before, len(broadcast_positions(entries)[1])


def _slices(shape: Shape, key: Any) -> tuple[list[tuple[int, int, int]], Shape] | None:
    """The result of `_basic`, straight from a key of integers and slices; None for other keys."""
    parts = key if key.__class__ is tuple else (key,)
    if len(parts) > len(shape):
        return None
    ranges: list[tuple[int, int, int]] = []
    kept: list[int] = []
    for axis, part in enumerate(parts):
        if part.__class__ is slice:
            try:
                named = range(*part.indices(shape[axis]))
            except TracedValueError:
                return None  # a slice that moves from turn to turn
            # The step of no element, or of one, says nothing.
            ranges.append((named[0], len(named), named.step if len(named) > 1 else 1) if named else (0, 0, 1))
            kept.append(len(named))
        elif part.__class__ is int:
            ranges.append((checked_position(part, shape[axis], axis), 1, 1))
        else:
            return None
    rest = shape[len(parts) :]
    return [*ranges, *[(0, n, 1) for n in rest]], (*kept, *rest)


def _basic(entries: Sequence[Entry]) -> tuple[list[tuple[int, int, int]], Shape]:
    """The slice per axis and the shape of the result, for a key without arrays."""
    ranges: list[tuple[int, int, int]] = []
    shape: list[int] = []
    for entry in entries:
        if entry is Ellipsis:
            continue
        if entry is None:
            shape.append(1)
        elif isinstance(entry, int):
            ranges.append((entry, 1, 1))
        else:
            assert isinstance(entry, range)
            ranges.append((entry.start, len(entry), entry.step))
            shape.append(len(entry))
    return ranges, tuple(shape)


def _pick(node: Node, flat: Node) -> Node:
    """Elements at flat positions; nothing is read where there are none."""
    if flat.size == 0:
        return broadcast(literal(0, node.dtype), flat.shape)
    return gather(reshape(node, (node.size,)), flat)


def flat_positions(shape: Shape, entries: Sequence[Entry]) -> tuple[Node, Shape]:
    """The flat position of every element that a key with arrays names, and the shape that NumPy gives the result.

    The arrays broadcast together; their axes stand where the arrays stood if these are neighbours, else in front.
    """
    result_shape = _result_shape(entries)
    extents, parts = merged(shape, entries)
    arrays, together = broadcast_positions(parts)
    places = [place for place, part in enumerate(parts) if is_advanced(part) or isinstance(part, int)]
    neighbours = bool(places) and places == list(range(places[0], places[-1] + 1))
    before = sum(1 for part in parts[: places[0]] if part is None or isinstance(part, SLICES)) if neighbours else 0
    kept = [1 if part is None else len(part) for part in parts if part is None or isinstance(part, SLICES)]
    out = (*kept[:before], *together, *kept[before:])

    def spread(array: Any, axis: int) -> Any:
        """An array whose last axis belongs at `axis` of the result."""
        target = array.shape + (1,) * (len(out) - axis - 1)
        return reshape(array, target) if isinstance(array, Node) else array.reshape(target)

    strides = iter(contiguous_strides(tuple(extents)))
    known: np.ndarray = np.zeros((), np.int64)
    terms: list[Node] = []
    waiting = iter(arrays)
    position = 0
    for part in parts:
        if part is Ellipsis:
            continue
        if part is None:
            position += 1
        elif isinstance(part, SLICES):
            stride, axis = next(strides), position if position < before else position + len(together)
            steps = iota(len(part))
            scale = part.step * stride
            terms.append(spread(steps * scale if scale != 1 else steps, axis))
            if isinstance(part, range):
                known = known + part.start * stride
            else:
                terms.append(part.start * stride)
            position += 1
        else:
            stride = 0 if isinstance(part, Truth) else next(strides)
            array = spread(next(waiting), before + len(together) - 1)
            if isinstance(array, Node):
                terms.append(array * stride if stride != 1 else array)
            else:
                known = known + array * stride
    flat = None if known.ndim == 0 and known == 0 and terms else constant_again(np.asarray(known, np.int64))
    for term in terms:
        flat = term if flat is None else elementwise("add", flat, term)
    assert flat is not None
    return broadcast(flat, out), result_shape


def _result_shape(entries: Sequence[Entry]) -> Shape:
    _, together = broadcast_positions(entries)
    kept = [1 if e is None else len(e) for e in entries if e is None or isinstance(e, SLICES)]
    before, _ = _place_of_arrays(entries)
    return (*kept[:before], *together, *kept[before:])


# ----- Writing -----


def setitem(node: Node, key: Any, value: Node) -> Node:
    """The node after `x[key] = value`; the value is cast to the dtype of x, as NumPy does."""
    value = cast(value, node.dtype)
    masked = _set_masked(node, key, value)
    if masked is not None:
        return masked
    found = _slices(node.shape, key)
    if found is None:
        entries = entries_of(node.shape, key)
        if has_positions(entries):
            flat, shape = flat_positions(node.shape, entries)
            return _write(node, flat, fitted(value, shape))
        found = _basic(entries)
    ranges, shape = found
    value = fitted(value, shape)
    if math.prod(shape) == 0:
        return node
    return write(node, reshape(value, tuple([length for _, length, _ in ranges])), ranges)


def fitted(value: Node, shape: Shape) -> Node:
    """A value broadcast to the shape that it is written to; extra axes in front are dropped if their extent is 1."""
    extra = value.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in value.shape[:extra]):
        value = reshape(value, value.shape[extra:])
    if not broadcasts(value.shape, shape):
        message = f"A value of shape {value.shape} does not broadcast to the shape {shape} that it is written to."
        raise ShapeError(message)
    return broadcast(value, shape)


def _set_masked(node: Node, key: Any, value: Node) -> Node | None:
    """`x[mask] = value` for a value that does not depend on how many elements the mask has: a select."""
    if not isinstance(key, Tensor | np.ndarray) or key.dtype != np.bool_ or key.ndim == 0:
        return None
    if key.shape != node.shape[: key.ndim]:
        return None
    rest = node.shape[key.ndim :]
    if value.ndim == len(rest) + 1 and value.shape[0] == 1:
        value = reshape(value, value.shape[1:])
    if value.ndim > len(rest):
        return None
    mask = reshape(as_node(key), key.shape + (1,) * len(rest))
    return elementwise("select", mask, broadcast(fitted(value, rest), node.shape), node)


def _write(node: Node, flat: Node, value: Node) -> Node:
    """The node with values at flat positions; the last one wins."""
    if flat.size == 0:
        return node
    winner = scatter_last(node.size, flat)
    written = elementwise("greater_equal", winner, 0)
    if value.name == "broadcast" and value.inputs[0].size == 1:
        placed = broadcast(reshape(value.inputs[0], ()), (node.size,))
    else:
        placed = gather(reshape(value, (value.size,)), elementwise("maximum", winner, 0))
    result = elementwise("select", written, placed, reshape(node, (node.size,)))
    return reshape(result, node.shape)


def add_at(node: Node, key: Any, value: Node) -> Node:
    """`numpy.add.at(x, key, value)`: repeated positions add up."""
    entries = entries_of(node.shape, key)
    if has_positions(entries):
        flat, shape = flat_positions(node.shape, entries)
        value = reshape(fitted(value, shape), flat.shape)
        if flat.size == 0:
            return node
        return elementwise("add", node, reshape(scatter_add(node.size, flat, value), node.shape))
    ranges, shape = _basic(entries)
    full = tuple([length for _, length, _ in ranges])
    return elementwise("add", node, unslice(reshape(fitted(value, shape), full), node.shape, ranges))
