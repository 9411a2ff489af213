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
from .builders import cast, reshape, transpose
from .formulas import expanded
from .interpret import evaluate_node
from .ir import PRIMITIVES, Node, broadcast, literal, literal_value, make, topological, zeros
from .loops.loop_body import LOOP
from .loops.loop_rewrites import joined
from .loops.origins import walked
from .products import BASIS, contracted_product, contracted_sum
from .rules.elementwise_rules import ELEMENTWISE, uniform_source
from .rules.structural_rules import STRUCTURAL, are_same, is_turned
from .shapes import Shape, joint_shape

Rule = Callable[[Node], Node | None]
COMMUTATIVE = frozenset(
    PRIMITIVES[name] for name in "add multiply logical_and logical_or equal not_equal bitwise_and".split()
)
"""Of a positive and a negative zero, the second is the maximum and the minimum."""
INPUT, CONSTANT, LITERAL, IOTA, ALIAS, CUSTOM, GATHER = (
    PRIMITIVES[name] for name in "input constant literal iota alias custom gather".split()
)
ADD, RESHAPE, TRANSPOSE, BROADCAST, PAD, JOIN, SUM, MATMUL, COMPLEX = (
    PRIMITIVES[name] for name in "add reshape transpose broadcast pad concatenate sum matmul complex".split()
)
LEAST_JOINED = 16
"""The least rows and columns of matrices whose sum is formed in front of a product."""
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
        simple = Simplifier(turned).run(simple) if turned else simple
        sums = _joined_products(simple) if walk.transposes else {}
        return Simplifier(sums).run(simple) if sums else simple


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
    order, uses = _counted(outputs)
    transposes = [node for node in order if node.primitive is TRANSPOSE]
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


def _counted(outputs: Sequence[Node]) -> tuple[list[Node], dict[Node, int]]:
    """All nodes in order, and how often each is read."""
    order = topological(outputs)
    uses: dict[Node, int] = dict.fromkeys(outputs, 1)
    for node in order:
        for source in node.inputs:
            uses[source] = uses.get(source, 0) + 1
    return order, uses


def _joined_products(outputs: Sequence[Node]) -> dict[Node, Node]:
    """Sums of a matrix and its transpose, each times the same one, and the product that they equal: the gradients of
    covariances and quadratic forms."""
    order, uses = _counted(outputs)
    found: dict[Node, Node] = {}
    for node in order:
        if node.primitive is not ADD or node.dtype == FLOAT16:
            continue  # a sum of two large numbers of float16 may be infinite
        products = [s.inputs[0] if s.primitive is RESHAPE and uses[s] == 1 else s for s in node.inputs]
        one, other = products
        if one.primitive is not MATMUL or other.primitive is not MATMUL or max(uses[one], uses[other]) > 1:
            continue
        (a, x), (b, y) = one.inputs, other.inputs
        if one.shape == other.shape and min(a.shape[1:]) >= LEAST_JOINED <= min(x.shape[1:]):
            if is_turned(a, b) and are_same(x, y):
                found[node] = reshape(make("matmul", (a + b, x)), node.shape)
            elif is_turned(x, y) and are_same(a, b):
                found[node] = reshape(make("matmul", (a, x + y)), node.shape)
    return found


def _is_zeros(node: Node) -> bool:
    return node.primitive is BROADCAST and node.inputs[0].primitive is LITERAL


def _fold(node: Node, scalars: Sequence[Node]) -> Node | None:
    with np.errstate(all="ignore"):
        scalar_node = Node(node.primitive, tuple(scalars), node.params, (), node.dtype)
        value = evaluate_node(scalar_node, [np.asarray(literal_value(s)) for s in scalars])
    return literal(value.item(), node.dtype)


RULES: dict[str, Rule] = {"write": expanded, **ELEMENTWISE, **STRUCTURAL}
_RULES = {PRIMITIVES[name]: rule for name, rule in RULES.items()}
