"""Simplification: graph in, smaller graph out, same values.

One walk over the graph rebuilds it bottom-up. Each node passes the rules of its primitive and is then looked up by
content, so equal subexpressions become one node; nodes that no output needs are never visited. Scalars that are
broadcast are computed as scalars, and literals are folded. Called before fusing. Floating point: no rule changes a
value by more than a rounding, and none assumes that NaN or infinity do not occur.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..process.gc_pause import RareCollection
from .builders import cast, concatenate, reduce, reshape, slice_axes, transpose
from .formulas import expanded
from .interpret import evaluate_node
from .ir import (
    PRIMITIVES,
    Node,
    broadcast,
    elementwise,
    extent,
    literal,
    literal_value,
    make,
    topological,
    with_inputs,
    zeros,
)
from .loops.loop_body import LOOP, turns_of
from .loops.loop_rewrites import joined
from .loops.loop_rows import LAST
from .loops.origins import walked
from .products import BASIS, contracted_product, contracted_sum
from .shapes import Shape, joint_shape

Rule = Callable[[Node], Node | None]
COMMUTATIVE = frozenset(
    PRIMITIVES[name] for name in "add multiply logical_and logical_or equal not_equal bitwise_and".split()
)
"""Of a positive and a negative zero, the second is the maximum and the minimum."""
INPUT, CONSTANT, LITERAL, IOTA, ALIAS, CUSTOM, GATHER, NEGATIVE, SQRT, SELECT, LOGICAL_NOT, FMOD = (
    PRIMITIVES[name]
    for name in "input constant literal iota alias custom gather negative sqrt select logical_not fmod".split()
)
RESHAPE, TRANSPOSE, BROADCAST, SLICE, PAD, JOIN, SUM, MATMUL, COMPLEX = (
    PRIMITIVES[name] for name in "reshape transpose broadcast slice pad concatenate sum matmul complex".split()
)
FLOAT16 = np.dtype(np.float16)
_ANY_DTYPE = frozenset(PRIMITIVES[name] for name in "scatter_last host loop item write".split())
"""Special primitives that work on float16 as it is."""


def simplify(outputs: Sequence[Node]) -> list[Node]:
    """The simplified outputs, in order."""
    with RareCollection():
        walk = Simplifier({})
        simple = walk.run(outputs)
        turned = _turned_products(simple) if walk.transposes else {}
        if walk.loops:
            turned.update(joined(simple))
        return Simplifier(turned).run(simple) if turned else simple


def uniform_source(node: Node) -> Node | None:
    """The 0-d node that a node repeats everywhere, or None."""
    while node.primitive is BROADCAST:
        source = node.inputs[0]
        if source.shape and source.size != 1:
            return None
        node = source
        if node.primitive is RESHAPE:
            node = node.inputs[0]
    return None if node.shape else node


def literal_of(node: Node) -> Any:
    """The number that a node is everywhere, or None."""
    if node.shape and node.primitive is not BROADCAST:
        return None
    source = uniform_source(node)
    return literal_value(source) if source is not None and source.primitive is LITERAL else None


class Simplifier:
    """One walk: `number` has the canonical nodes, in the order of their making, `known` the canonical node of each
    combination of primitive, parameters and canonical inputs."""

    def __init__(self, replaced: dict[Node, Node]) -> None:
        self.replaced = replaced
        self.known: dict[tuple[Any, ...], Node] = {}
        self.number: dict[Node, int] = {}
        self.transposes = self.loops = False
        self.unit_vectors = False
        """Whether there were any."""

    def run(self, outputs: Sequence[Node]) -> list[Node]:
        new: dict[Node, Node] = {}
        replaced, intern = self.replaced, self.intern
        for node in walked(topological(outputs)):
            if node in replaced:
                better = replaced[node]
                for part in topological([better], new):
                    new[part] = intern(part, tuple([new[source] for source in part.inputs]))
                new[node] = new[better]
                continue
            inputs = node.inputs
            if len(inputs) == 2:
                one, two = inputs
                new[node] = intern(node, (new[one], new[two]))
            elif len(inputs) == 1:
                new[node] = intern(node, (new[inputs[0]],))
            else:
                new[node] = intern(node, tuple([new[source] for source in inputs]))
        return [new[node] for node in outputs]

    def intern(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        """The canonical node for `node` with simplified inputs."""
        primitive, number = node.primitive, self.number
        if not inputs:
            if primitive is INPUT or primitive is CONSTANT:
                number.setdefault(node, len(number))
                return node
            key = (primitive, node.params, node.dtype.num)
            if primitive is IOTA and BASIS in node.params:
                self.unit_vectors = True
        else:
            if primitive in COMMUTATIVE and number[inputs[1]] < number[inputs[0]]:
                inputs = (inputs[1], inputs[0])
            # The dtype follows from the rest.
            key = (primitive, node.params, inputs)
        found = self.known.get(key)
        if found is not None:
            return found
        if inputs != node.inputs:
            node = Node(primitive, inputs, node.params, node.shape, node.dtype)
        better = self.rewrite(node)
        if better is not None:
            # A rule's result is new graph over canonical nodes: make that canonical too.
            if better not in number:
                new: dict[Node, Node] = {}
                for part in topological([better], number):
                    new[part] = self.intern(part, tuple([new.get(source, source) for source in part.inputs]))
                better = new[better]
            self.known[key] = better
            return better
        if primitive is TRANSPOSE:
            self.transposes = True
        elif primitive is LOOP:
            self.loops = True
        self.known[key] = node
        number[node] = len(number)
        return node

    def rewrite(self, node: Node) -> Node | None:
        """A simpler node of the same value, or None."""
        primitive = node.primitive
        kind = primitive.kind
        if 0 in node.shape and kind != "source":
            return zeros(node.shape, node.dtype) if not _is_zeros(node) else None
        if kind == "elementwise":
            for source in node.inputs:
                if source.shape and source.primitive is not BROADCAST:
                    break
            else:
                repeated = _repeated(node)
                if repeated is not None:
                    return repeated
        elif kind == "movement":
            source = node.inputs[0]
            if (source.primitive is BROADCAST or not source.shape) and primitive is not PAD and primitive is not JOIN:
                only = uniform_source(source)
                if only is not None and not (primitive is BROADCAST and source is only):
                    return broadcast(only, node.shape)
        elif kind == "special" and primitive not in _ANY_DTYPE and any(s.dtype == FLOAT16 for s in node.inputs):
            # Special kernels have no float16 version; float32 holds every float16.
            wide = [cast(s, np.dtype(np.float32)) if s.dtype == FLOAT16 else s for s in node.inputs]
            return cast(make(node.name, tuple(wide), node.params), node.dtype)
        rule = _RULES.get(primitive)
        better = rule(node) if rule is not None else None
        if better is None and self.unit_vectors:
            if primitive is SUM:
                return contracted_sum(node)
            if primitive is MATMUL:
                return contracted_product(node)
        return better


def _repeated(node: Node) -> Node | None:
    """An elementwise node whose operands are all repeated along an axis: computed once, then repeated."""
    # A repeated complex number is the join of its repeated parts, so that nothing would change.
    if node.primitive in (GATHER, CUSTOM, COMPLEX):
        return None
    if not node.shape:
        # Only literals can be folded, and nothing is repeated.
        for source in node.inputs:
            if source.primitive is not LITERAL:
                return None
    sources = [uniform_source(source) for source in node.inputs]
    scalars = tuple([source for source in sources if source is not None])
    if len(scalars) == len(sources):
        if node.primitive is not ALIAS and all(source.primitive is LITERAL for source in scalars):
            value = _fold(node, scalars)
            if value is not None:
                return broadcast(value, node.shape)
        return broadcast(make(node.name, scalars, node.params), node.shape) if node.shape else None
    shape: Shape = ()
    for source in node.inputs:
        shape = joint_shape(shape, source.inputs[0].shape)
    while shape and shape[0] == 1:
        shape = shape[1:]
    if math.prod(shape) == node.size:
        return None
    parts: list[Node] = []
    for source in node.inputs:
        part = source.inputs[0]
        # A shape that was longer had extents of 1 in front.
        part = reshape(part, part.shape[part.ndim - len(shape) :]) if part.ndim > len(shape) else part
        parts.append(broadcast(part, shape))
    return broadcast(make(node.name, tuple(parts), node.params), node.shape)


def _turned_products(outputs: Sequence[Node]) -> dict[Node, Node]:
    """Transposes of matrix products that nothing else reads, and the products of transposes that they equal.

    A product of transposed views costs nothing extra, a transposed result a copy: the gradient of a weight that is used
    transposed, `x @ w.T`, is such a result.
    """
    order = topological(outputs)
    transposes = [node for node in order if node.primitive is TRANSPOSE]
    uses: dict[Node, int] = dict.fromkeys(outputs, 1)
    for node in order:
        for source in node.inputs:
            uses[source] = uses.get(source, 0) + 1
    turned: dict[Node, Node] = {}
    for node in transposes:
        product, axes = node.inputs[0], (0, 2, 1)
        if product.primitive is RESHAPE and uses[product] == 1 and product.inputs[0].shape == (1, *product.shape):
            product, axes = product.inputs[0], (1, 0)
        if product.primitive is MATMUL and uses[product] == 1 and node.params[0] == axes:
            a, b = product.inputs
            swapped = make("matmul", (transpose(b, (0, 2, 1)), transpose(a, (0, 2, 1))))
            turned[node] = reshape(swapped, node.shape)
    return turned


def _is_zeros(node: Node) -> bool:
    return node.primitive is BROADCAST and node.inputs[0].primitive is LITERAL


def _fold(node: Node, scalars: Sequence[Node]) -> Node | None:
    with np.errstate(all="ignore"):
        scalar_node = Node(node.primitive, tuple(scalars), node.params, (), node.dtype)
        value = evaluate_node(scalar_node, [np.asarray(literal_value(s)) for s in scalars])
    return literal(value.item(), node.dtype)


# ----- Elementwise -----


def _first(node: Node) -> Node | None:
    return node.inputs[0]


def _cast(node: Node) -> Node | None:
    return node.inputs[0] if node.inputs[0].dtype == node.dtype else None


def _negative(node: Node) -> Node | None:
    source = node.inputs[0]
    return source.inputs[0] if source.primitive is NEGATIVE else None


def _add(node: Node) -> Node | None:
    x, y = node.inputs
    if y.primitive is NEGATIVE:
        return x - y.inputs[0]
    if x.primitive is NEGATIVE:
        return y - x.inputs[0]
    for a, b in ((x, y), (y, x)):
        # Adding minus zero changes nothing; adding zero would turn a minus zero to zero.
        value = literal_of(b)
        if (
            value is not None
            and value == 0
            and node.dtype.kind != "b"
            and (node.dtype.kind != "f" or np.signbit(value))
        ):
            return a
    return _same_table(x, y)


def _same_table(x: Node, y: Node) -> Node | None:
    """The sum of two cotangents of strided slices, which are columns of one table, as a sum of tables."""
    views: list[Node] = []
    while x.primitive is y.primitive and x.primitive in (RESHAPE, SLICE) and x.params == y.params:
        views.append(x)
        (x,), (y,) = x.inputs, y.inputs
        if x.shape != y.shape:
            return None
    if y.primitive is not PAD or all(view.primitive is SLICE for view in views):
        return None
    total = x + y
    for view in reversed(views):
        total = with_inputs(view, (total,))
    return total


def _subtract(node: Node) -> Node | None:
    x, y = node.inputs
    if y.primitive is NEGATIVE:
        return x + y.inputs[0]
    value = literal_of(y)
    return x if value is not None and value == 0 and not np.signbit(value) else None


def _multiply(node: Node) -> Node | None:
    for x, y in (node.inputs, node.inputs[::-1]):
        if y.primitive is NEGATIVE:
            # Outside, it may meet a sum or another one.
            return -(x * y.inputs[0])
        value = literal_of(y)
        if value is not None and node.dtype.kind != "b":
            if value == 1:
                return x
            if value == -1 and node.dtype.kind != "u":
                return elementwise("negative", x)
    return None


def _divide(node: Node) -> Node | None:
    x, y = node.inputs
    root, movements = y, []
    while root.primitive is BROADCAST or root.primitive is RESHAPE:
        movements.append(root)
        root = root.inputs[0]
    if root.primitive is SQRT and node.dtype != FLOAT16:
        # No quotient by a root, which is never small, overflows or underflows where the product does not.
        (square,) = root.inputs
        inverse = elementwise("rsqrt", square)
        for movement in reversed(movements):
            inverse = Node(movement.primitive, (inverse,), movement.params, movement.shape, movement.dtype)
        return x * inverse
    if x.primitive is NEGATIVE:
        return -(x.inputs[0] / y)
    value = literal_of(y)
    if value is None or value == 0 or not np.isfinite(value):
        return None
    if value == 1:
        return x
    # Dividing by a power of two is multiplying by its inverse, exactly.
    inverse = 1.0 / float(value)
    exact = math.frexp(float(value))[0] in (0.5, -0.5) and 1e-4 < abs(inverse) < 1e4
    return x * inverse if exact else None


def _remainder(node: Node) -> Node | None:
    """The rest of a division by 1: the part behind the point, which is exact."""
    x, y = node.inputs
    if node.dtype.kind != "f" or literal_of(y) != 1:
        return None
    if node.primitive is FMOD:
        return elementwise("copysign", x - elementwise("trunc", x), x)
    return x - elementwise("floor", x)


def _power(node: Node) -> Node | None:
    x, y = node.inputs
    value = literal_of(y)
    if value is None or node.dtype.kind != "f":
        return None
    if value == 0:
        return broadcast(literal(1, node.dtype), node.shape)
    if value == 0.5:
        return elementwise("sqrt", x)
    if value in (1, 2, 3, 4):
        square = x * x
        return {1: x, 2: square, 3: square * x, 4: square * square}[int(value)]
    if value in (-1, -2):
        return 1.0 / (x if value == -1 else x * x)
    return None


def _select(node: Node) -> Node | None:
    condition, x, y = node.inputs
    if x is y:
        return x
    if condition.primitive is LOGICAL_NOT and condition.inputs[0].dtype.kind == "b":
        return elementwise("select", condition.inputs[0], y, x)
    value = literal_of(condition)
    if value is not None:
        return x if value else y
    if x.primitive is SELECT and x.inputs[0] is condition:
        return elementwise("select", condition, x.inputs[1], y)
    if y.primitive is SELECT and y.inputs[0] is condition:
        return elementwise("select", condition, x, y.inputs[2])
    return None


def _logical_not(node: Node) -> Node | None:
    source = node.inputs[0]
    return source.inputs[0] if source.primitive is LOGICAL_NOT and source.inputs[0].dtype.kind == "b" else None


# ----- Movement -----


def _reshape(node: Node) -> Node | None:
    source = node.inputs[0]
    if source.shape == node.shape:
        return source
    return reshape(source.inputs[0], node.shape) if source.primitive is RESHAPE else None


def _transpose(node: Node) -> Node | None:
    source = node.inputs[0]
    axes: tuple[int, ...] = node.params[0]
    if axes == tuple(range(node.ndim)):
        return source
    if source.primitive is TRANSPOSE:
        return transpose(source.inputs[0], tuple([source.params[0][a] for a in axes]))
    moved = [a for a in axes if source.shape[a] != 1]
    return reshape(source, node.shape) if moved == sorted(moved) else None


def _broadcast(node: Node) -> Node | None:
    source = node.inputs[0]
    if source.shape == node.shape:
        return source
    if source.primitive is BROADCAST:
        return broadcast(source.inputs[0], node.shape)
    if source.primitive is RESHAPE and source.inputs[0].shape == source.shape[source.ndim - source.inputs[0].ndim :]:
        return broadcast(source.inputs[0], node.shape)
    return None


def _slice(node: Node) -> Node | None:
    source = node.inputs[0]
    ranges = node.params[0]
    if all(r == (0, n, 1) for r, n in zip(ranges, source.shape, strict=True)):
        return source
    if source.primitive is SLICE:
        inner = source.params[0]
        both = [(s0 + s * t0, n, t * t0) for (s0, _, t0), (s, n, t) in zip(inner, ranges, strict=True)]
        return slice_axes(source.inputs[0], both)
    if source.primitive is PAD and all(
        start >= lo and start + (n - 1) * step < lo + extent and start + (n - 1) * step >= lo and start < lo + extent
        for (start, n, step), (lo, _), extent in zip(ranges, source.params[0], source.inputs[0].shape, strict=True)
    ):
        moved = [(start - lo, n, step) for (start, n, step), (lo, _) in zip(ranges, source.params[0], strict=True)]
        return slice_axes(source.inputs[0], moved)
    if source.primitive is JOIN:
        axis = source.params[0]
        start, n, step = ranges[axis]
        low, high = min(start, start + (n - 1) * step), max(start, start + (n - 1) * step)
        offset = 0
        for piece in source.inputs:
            if offset <= low and high < offset + piece.shape[axis]:
                return slice_axes(piece, [*ranges[:axis], (start - offset, n, step), *ranges[axis + 1 :]])
            offset += piece.shape[axis]
    return None


def _concatenate(node: Node) -> Node | None:
    axis = node.params[0]
    pieces: list[Node] = []
    for piece in node.inputs:
        if piece.primitive is JOIN and piece.params[0] == axis:
            pieces.extend(piece.inputs)
        elif piece.shape[axis]:
            pieces.append(piece)
    merged = [pieces[0]]
    for piece in pieces[1:]:
        both = _neighbours(merged[-1], piece, axis)
        if both is None:
            merged.append(piece)
        else:
            merged[-1] = both
    return concatenate(merged, axis) if tuple(merged) != node.inputs else None


def _neighbours(first: Node, second: Node, axis: int) -> Node | None:
    """One slice for two of the same array, if the second starts where the first ends."""
    if first.primitive is not SLICE or second.primitive is not SLICE or first.inputs != second.inputs:
        return None
    mine, theirs = list(first.params[0]), list(second.params[0])
    start, count, step = mine[axis]
    following, more, pace = theirs[axis]
    theirs[axis] = (following - count * step, count, pace)
    if theirs != mine:
        return None
    mine[axis] = (start, count + more, step)
    return slice_axes(first.inputs[0], mine)


# ----- Reductions and special kernels -----


def _item(node: Node) -> Node | None:
    """A carried value of a loop without turns is its first."""
    kind, position = node.params
    loop = node.inputs[0]
    return loop.inputs[position] if kind == LAST and not turns_of(loop) else None


def _reduction(node: Node) -> Node | None:
    source = node.inputs[0]
    axes: tuple[int, ...] = node.params[0]
    if not axes:
        return source
    if source.size == 0 and node.name in ("sum", "prod"):
        return broadcast(literal(0 if node.name == "sum" else 1, node.dtype), node.shape)
    trivial = [axis for axis in axes if source.shape[axis] == 1]
    if trivial:
        kept = tuple([n for axis, n in enumerate(source.shape) if axis not in trivial])
        moved = [axis - sum(t < axis for t in trivial) for axis in axes if axis not in trivial]
        if node.name == "sum" and not moved and node.dtype.kind == "f":
            # A sum begins with zero, so that it is never minus zero.
            return reshape(source, kept) + 0.0
        return reduce(node.name, reshape(source, kept), moved)
    if source.primitive is BROADCAST:
        inner = source.inputs[0]
        extra = source.ndim - inner.ndim
        stretched = [a for a in axes if a < extra or (inner.shape[a - extra] == 1)]
        if stretched and node.name in ("sum", "max", "min"):
            rest = tuple([a for a in axes if a not in stretched])
            shape: Shape = tuple([1 if a in stretched else n for a, n in enumerate(source.shape)])
            count = math.prod(source.shape[a] for a in stretched)
            leading = broadcast(reshape_leading(inner, source.ndim), shape)
            reduced = reshape(reduce(node.name, leading, rest), node.shape)
            return reduced * extent(count, node.dtype) if node.name == "sum" else reduced
    if node.name in ("sum", "prod") and node.dtype == np.float16:
        return cast(reduce(node.name, cast(source, np.dtype(np.float32)), axes), node.dtype)
    if source.name == node.name:
        remaining = [a for a in range(source.inputs[0].ndim) if a not in source.params[0]]
        return reduce(node.name, source.inputs[0], (*source.params[0], *[remaining[a] for a in axes]))
    return None


def reshape_leading(node: Node, ndim: int) -> Node:
    """The node with axes of length 1 in front, so that it has `ndim` axes."""
    return reshape(node, (1,) * (ndim - node.ndim) + node.shape)


def _matmul(node: Node) -> Node | None:
    a, b = node.inputs
    batch, m, k = a.shape
    n = b.shape[2]
    if k == 0:
        return zeros(node.shape, node.dtype)
    if k == 1:
        return broadcast(a, (batch, m, n)) * broadcast(b, (batch, m, n))
    if m == 1 and n == 1:
        product = reshape(a, (batch, k)) * reshape(b, (batch, k))
        return reshape(reduce("sum", product, (1,)), (batch, 1, 1))
    return None


RULES: dict[str, Rule] = {
    "alias": _first,
    "stop_gradient": _first,
    "custom": _first,
    "cast": _cast,
    "negative": _negative,
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "power": _power,
    "fmod": _remainder,
    "remainder": _remainder,
    "select": _select,
    "logical_not": _logical_not,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "concatenate": _concatenate,
    "sum": _reduction,
    "prod": _reduction,
    "max": _reduction,
    "min": _reduction,
    "matmul": _matmul,
    "write": expanded,
    "item": _item,
}

_RULES = {PRIMITIVES[name]: rule for name, rule in RULES.items()}
