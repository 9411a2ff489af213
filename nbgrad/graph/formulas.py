"""Words of formulas, so that derivatives read as mathematics, and compositions that several of them share.

In: nodes. Out: nodes. Called by the tables of primitives and by functions of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .builders import iota, pad, recurrence, reduce, reshape, slice_axes
from .ir import Node, broadcast, elementwise, filled, literal, literal_value, make, zeros
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
    widths: list[tuple[int, int]] = []
    for axis, (start, length, step) in enumerate(ranges):
        first = start if step > 0 else start + (length - 1) * step
        stride = abs(step)
        if stride > 1 and length > 1:
            # Zeros between the elements: a new axis of length `stride` whose first column is g.
            before, after = g.shape[:axis], g.shape[axis + 1 :]
            g = reshape(g, (*before, length, 1, *after))
            g = pad(g, [(0, stride - 1) if a == axis + 1 else (0, 0) for a in range(g.ndim)])
            g = reshape(g, (*before, length * stride, *after))
            span = (length - 1) * stride + 1
            g = slice_axes(g, [(0, span if a == axis else n, 1) for a, n in enumerate(g.shape)])
        widths.append((first, shape[axis] - first - g.shape[axis]))
    return pad(g, widths)


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
