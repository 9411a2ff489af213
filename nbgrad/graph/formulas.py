"""Words of formulas, so that derivatives read as mathematics, and compositions that several of them share.

In: nodes. Out: nodes. Called by the tables of primitives and by functions of arrays.

`write` is one node for `x[ranges] = v`, so that a recording tells what each turn of a loop writes. No kernel knows it:
simplification makes a choice between elements of both arrays of it (`expanded`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from .builders import gather, iota, pad, recurrence, reduce, reshape, slice_axes
from .ir import INT64, Node, broadcast, constant, elementwise, filled, literal, literal_value, make, zeros
from .shapes import Shape


def _call(name: str) -> Callable[..., Node]:
    return lambda *operands: elementwise(name, *operands)


sqrt, exp, log, sin, cos, sinh, cosh, sign, floor_divide, trunc, copysign, hypot, power = map(
    _call, "sqrt exp log sin cos sinh cosh sign floor_divide trunc copysign hypot power".split()
)
equal, greater, less, greater_equal, both, either, isnan = map(
    _call, "equal greater less greater_equal logical_and logical_or isnan".split()
)


def choose(condition: Node, yes: Node | float, no: Node | float, like: Node) -> Node:
    """`select` whose numbers take the dtype of `like`."""
    branches = [v if isinstance(v, Node) else literal(v, like.dtype) for v in (yes, no)]
    return elementwise("select", condition, *branches)


def is_finite_number(node: Node) -> bool:
    """Whether a node is one finite literal number everywhere."""
    while node.name == "broadcast":
        node = node.inputs[0]
    return node.name == "literal" and bool(np.isfinite(literal_value(node)))


def unbroadcast(g: Node, shape: Shape) -> Node:
    """Sum a cotangent over the axes that broadcasting added or stretched."""
    extra = g.ndim - len(shape)
    axes = [a for a in range(g.ndim) if a < extra or (shape[a - extra] == 1 and g.shape[a] != 1)]
    return reshape(reduce("sum", g, axes), shape)


def unslice(g: Node, shape: Shape, ranges: Sequence[tuple[int, int, int]]) -> Node:
    """Put the elements of g where a slice with `ranges` of an array of `shape` read them; zeros elsewhere."""
    if g.size == 0:
        return zeros(shape, g.dtype)
    g = slice_axes(g, [(n - 1, n, -1) if step < 0 else (0, n, 1) for _, n, step in ranges])
    split: list[int] = []
    widths: list[tuple[int, int]] = []
    whole: list[int] = []
    for extent, (start, length, step) in zip(shape, ranges, strict=True):
        first = start if step > 0 else start + (length - 1) * step
        stride = abs(step)
        if stride == 1 or length == 1:
            split.append(length)
            widths.append((first, extent - first - length))
            whole.append(extent)
            continue
        # Zeros around and between the elements: in rows of length `stride`, of which g is one column.
        before, column = divmod(first, stride)
        rows = -(-extent // stride)
        split += [length, 1]
        widths += [(before, rows - before - length), (column, stride - 1 - column)]
        whole.append(rows * stride)
    g = reshape(pad(reshape(g, tuple(split)), widths), tuple(whole))
    return slice_axes(g, [(0, extent, 1) for extent in shape])


def cumulative_product(x: Node, reverse: bool = False) -> Node:
    """Running products along the last axis: the recurrence s[i] = x[i] s[i-1] started with the first element."""
    n = x.shape[-1]
    first = n - 1 if reverse else 0
    lead = [(0, m, 1) for m in x.shape[:-1]]
    start = slice_axes(x, [*lead, (first, 1, 1)])
    # What is added to each product is minus zero, which changes none, not even minus zero.
    rest = filled(-0.0, x.dtype, (*x.shape[:-1], n - 1))
    added = make("concatenate", (rest, start) if reverse else (start, rest), (x.ndim - 1,)) if n > 1 else start
    return recurrence(x, added, reverse)


def triangle(x: Node, lower: bool, strict: bool = False) -> Node:
    """One triangle of the matrices in the last two axes, without the diagonal if `strict`; zeros elsewhere."""
    n = x.shape[-1]
    row, column = broadcast(reshape(iota(n), (n, 1)), x.shape), broadcast(iota(n), x.shape)
    high, low = (row, column) if lower else (column, row)
    return choose(greater(high, low) if strict else greater_equal(high, low), x, 0.0, x)


# ----- Parts of arrays, also at places that are computed -----

Range = tuple[int, int, int]
"""Start, length and step along an axis."""


def write(node: Node, value: Node, ranges: Sequence[Range]) -> Node:
    """The node after `node[ranges] = value`; in a `write` all steps are positive."""
    value = slice_axes(value, [(n - 1, n, -1) if step < 0 else (0, n, 1) for _, n, step in ranges])
    if value.size == node.size:
        return reshape(value, node.shape)
    ranges = [(start + (n - 1) * step, n, -step) if step < 0 else (start, n, step) for start, n, step in ranges]
    return make("write", (node, value), (tuple(ranges), ()))


def write_at(node: Node, value: Node, ranges: Sequence[Range], axes: Sequence[int], starts: Sequence[Node]) -> Node:
    """The node after a write to ranges that start where numbers say along some axes."""
    return make("write", (node, value, *starts), (tuple(ranges), tuple(axes)))


def part_at(source: Node, ranges: Sequence[Range], axes: Sequence[int], starts: Sequence[Node]) -> Node:
    """A slice that starts where numbers say along some axes."""
    if not axes:
        return slice_axes(source, ranges)
    shape = tuple([count for _, count, _ in ranges])
    known = dict(zip(axes, starts, strict=True))
    offset: Node | None = None
    for axis, stride in enumerate(strides_in_elements(source).tolist()):
        term = known[axis] * stride if axis in known else literal(ranges[axis][0] * stride, INT64)
        offset = term if offset is None else offset + term
    assert offset is not None
    pattern = pattern_of(source, ranges)
    index = broadcast(offset, shape)
    if pattern.size > 1:
        index = index + constant(np.ascontiguousarray(np.broadcast_to(pattern, shape)))
    return gather(reshape(source, (source.size,)), index)


def padded_at(source: Node, shape: Shape, starts: Sequence[Node]) -> Node:
    """Zeros around an array, which begins where numbers say along each axis."""
    inside, value = _placed(source, shape, starts, [1] * len(shape))
    return elementwise("select", inside, value, zeros(shape, source.dtype))


def expanded(node: Node) -> Node:
    """A `write` as a choice between elements of both arrays."""
    (array, value, *starts), (ranges, axes) = node.inputs, node.params
    if axes:
        known = dict(zip(axes, starts, strict=True))
        places = [known.get(axis, literal(start, INT64)) for axis, (start, _, _) in enumerate(ranges)]
        inside, placed = _placed(value, node.shape, places, [step for _, _, step in ranges])
        return elementwise("select", inside, placed, array)
    if value.name == "broadcast" and value.inputs[0].size == 1:
        placed = broadcast(reshape(value.inputs[0], ()), node.shape)
    else:
        placed = unslice(value, node.shape, ranges)
    named = _named(node.shape, ranges)
    return placed if named is None else elementwise("select", named, placed, array)


def strides_in_elements(source: Node) -> np.ndarray:
    """Elements from one index of each axis to the next, in C order."""
    return np.array([math.prod(source.shape[axis + 1 :]) for axis in range(source.ndim)], np.int64)


def pattern_of(source: Node, ranges: Sequence[Range]) -> np.ndarray:
    """The positions of a slice's elements after its first, in C order."""
    total = np.zeros((1,) * len(ranges), np.int64)
    for axis, ((_, count, step), stride) in enumerate(zip(ranges, strides_in_elements(source), strict=True)):
        along = np.arange(count) * step * stride
        total = total + along.reshape([-1 if a == axis else 1 for a in range(len(ranges))])
    return total


def _placed(source: Node, shape: Shape, starts: Sequence[Node], steps: Sequence[int]) -> tuple[Node, Node]:
    """Where an array is in another one, and its elements there; anything elsewhere."""
    inside: Node | None = None
    index: Node | None = None
    strides = strides_in_elements(source).tolist()
    for axis, (start, step, stride) in enumerate(zip(starts, steps, strides, strict=True)):
        extent = source.shape[axis]
        form = tuple([shape[axis] if a == axis else 1 for a in range(len(shape))])
        along = iota(shape[axis]) - broadcast(start, (shape[axis],))
        valid = elementwise("logical_and", elementwise("greater_equal", along, 0), _below(along, extent * step))
        if step > 1:
            valid = elementwise("logical_and", valid, elementwise("equal", elementwise("remainder", along, step), 0))
        spread = broadcast(reshape(valid, form), shape)
        inside = spread if inside is None else elementwise("logical_and", inside, spread)
        if extent > 1:
            along = elementwise("floor_divide", along, step) if step > 1 else along
            clipped = elementwise("select", valid, along, zeros(along.shape, INT64))
            term = broadcast(reshape(clipped * stride, form), shape)
            index = term if index is None else index + term
    assert inside is not None
    if index is None:
        return inside, broadcast(reshape(source, (1,) * len(shape)), shape)
    return inside, gather(reshape(source, (source.size,)), index)


def _below(along: Node, extent: int) -> Node:
    return elementwise("less", along, extent)


def _named(shape: Shape, ranges: Sequence[Range]) -> Node | None:
    """Whether ranges name each element; None if they name all."""
    inside: Node | None = None
    for axis, (extent, (start, length, step)) in enumerate(zip(shape, ranges, strict=True)):
        if length == extent:
            continue
        stop = start + (length - 1) * step + 1
        place = iota(extent)
        tests: list[Node] = []
        if length == 1:
            tests.append(elementwise("equal", place, start))
        else:
            if start > 0:
                tests.append(elementwise("greater_equal", place, start))
            if stop < extent:
                tests.append(elementwise("less", place, stop))
            if step > 1:
                tests.append(elementwise("equal", elementwise("remainder", place - start, step), 0))
        for test in tests:
            test = reshape(test, (extent,) + (1,) * (len(shape) - axis - 1))
            inside = test if inside is None else elementwise("logical_and", inside, test)
    return None if inside is None else broadcast(inside, shape)
