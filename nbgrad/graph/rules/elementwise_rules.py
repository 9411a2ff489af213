"""Rules for elementwise nodes: neutral elements, double negations, choices inside choices.

In: a node whose inputs are simple. Out: a simpler node of the same value, or None. Called by simplify.py. No rule
changes a value by more than a rounding, and none assumes that NaN or infinity do not occur.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir import PRIMITIVES, Node, broadcast, elementwise, literal, literal_value, with_inputs

LITERAL, NEGATIVE, SQRT, SELECT, LOGICAL_NOT, FMOD, RESHAPE, BROADCAST, SLICE, PAD = (
    PRIMITIVES[name] for name in "literal negative sqrt select logical_not fmod reshape broadcast slice pad".split()
)
FLOAT16 = np.dtype(np.float16)
_CHEAP = frozenset(PRIMITIVES[name] for name in "negative add subtract multiply".split())
DEEPEST = 6
"""Operations that are looked through, and written again, to find a choice inside a choice; and how many at most."""


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
    left, right = _chosen(x, condition, 1), _chosen(y, condition, 2)
    return elementwise("select", condition, left, right) if left is not x or right is not y else None


def _chosen(node: Node, condition: Node, side: int, depth: int = 0) -> Node:
    """A node of one side of a choice, in which the same choice is always for this side."""
    if node.primitive is SELECT and node.inputs[0] is condition:
        return node.inputs[side]
    if node.primitive not in _CHEAP or depth == DEEPEST:
        return node
    inputs = tuple([_chosen(source, condition, side, depth + 1) for source in node.inputs])
    return node if inputs == node.inputs else Node(node.primitive, inputs, node.params, node.shape, node.dtype)


def _logical_and_or(node: Node) -> Node | None:
    x, y = node.inputs
    return x if x is y and x.dtype.kind == "b" else None


def _logical_not(node: Node) -> Node | None:
    source = node.inputs[0]
    return source.inputs[0] if source.primitive is LOGICAL_NOT and source.inputs[0].dtype.kind == "b" else None


ELEMENTWISE = {
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
    "logical_and": _logical_and_or,
    "logical_or": _logical_and_or,
    "logical_not": _logical_not,
}
"""The rule of each primitive that has one."""
