"""Small random graphs with infinite slopes: wherever a graph is smooth, so are its derivatives, in both modes.

Roots, logarithms and quotients meet zeros, and most of these are not chosen: by selections, slices, extrema, gathers
and padding. Where the difference quotients of a number, made by NumPy from the graph's values alone, agree from both
sides, the derivative is that quotient, and never 0 * inf. What would be 0 * inf by itself is not drawn: products with
zeros, and zeros that are left when equal values cancel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from nbgrad.graph.builders import argsort, gather, reduce, reshape, scatter_add, slice_axes
from nbgrad.graph.differentiate import jvp, vjp
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, broadcast, constant, elementwise, literal, placeholder, topological
from nbgrad.graph.show import show

from .test_simplify_patterns import Chain, Shape

pytestmark = pytest.mark.unoptimized(but=16)

FLOAT = np.dtype(float)
EXTREMA = frozenset(["maximum", "minimum", "fmax", "fmin", "max", "min"])
POSITIVE = [0.5, 1.0, 2.0, 3.0]
SHAPES: list[Shape] = [(), (2,), (3,), (2, 3), (3, 1), (1, 2, 2)]
GRAPHS = 60
SEEDS = range(8)
STEP = 1e-6


class Slopes(Chain):
    """A graph most of whose operations move elements, or choose some of them."""

    def leaf(self, shape: Shape | None = None, kind: str = "") -> Node:
        chosen = self.random.choice(SHAPES) if shape is None else shape
        return placeholder(chosen, FLOAT, self.numbers(chosen))

    def numbers(self, shape: Shape) -> np.ndarray:
        """Zeros, and numbers of which no two are equal."""
        signs = [self.random.choice([0.0, 1.0, 1.0, -0.3]) for _ in range(math.prod(shape))]
        return np.array([sign * self.random.uniform(0.2, 4.0) for sign in signs]).reshape(shape)

    def beside(self, x: Node) -> Node:
        alike = [node for node in self.nodes if node.shape == x.shape]
        repeated = broadcast(literal(self.random.choice([0.0, 0.7]), FLOAT), x.shape)
        return self.random.choice([constant(self.numbers(x.shape)), repeated, self.leaf(x.shape), *alike, *alike])

    def condition(self, shape: Shape) -> Node:
        """Some elements, or those whose value is positive."""
        alike = [node for node in self.nodes if node.shape == shape]
        if alike and self.random.random() < 0.4:
            return elementwise(self.random.choice(["greater", "less_equal"]), self.random.choice(alike), 0.125)
        chosen = constant(np.array([self.random.random() < 0.6 for _ in range(math.prod(shape))]).reshape(shape))
        return elementwise("logical_not", chosen) if self.random.random() < 0.2 else chosen

    # ----- Operations -----

    def steep(self) -> Node:
        x = self.last()
        names = ["sqrt", "sqrt", "sqrt", "log", "rsqrt", "divide", "power", "exp", "arctan2"]
        # Of an infinite number, only its root is infinite, too.
        name = self.random.choice(names) if np.isfinite(interpret([x])[0]).all() else "sqrt"
        if name in ("divide", "arctan2"):
            return elementwise(name, broadcast(literal(self.random.choice(POSITIVE), FLOAT), x.shape), x)
        return elementwise("power", x, 0.5) if name == "power" else elementwise(name, x)

    def scaled(self) -> Node:
        return self.last() * self.random.choice(POSITIVE)

    def added(self) -> Node:
        x = self.last()
        return x + self.beside(x)

    def extremum(self) -> Node:
        x = self.last()
        operands = [x, self.beside(x)]
        self.random.shuffle(operands)
        return elementwise(self.random.choice(["maximum", "minimum", "fmax", "fmin"]), *operands)

    def selection(self) -> Node:
        x = self.last()
        branches = [x, self.beside(x)]
        self.random.shuffle(branches)
        return elementwise("select", self.condition(x.shape), *branches)

    def gathered(self) -> Node:
        x = self.last()
        if not x.size:
            return x
        if x.ndim == 1 and self.random.random() < 0.5:
            order = argsort(x)
            some = slice_axes(order, [(x.size // 2, x.size - x.size // 2, 1)])
            return gather(x, self.random.choice([order, some, elementwise("minimum", order, x.size // 2)]))
        index = [self.random.randrange(x.size) for _ in range(self.random.randint(1, 4))]
        return gather(reshape(x, (x.size,)), constant(np.array(index, int)))

    def scattered(self) -> Node:
        x = self.last()
        flat = reshape(x, (x.size,))
        places = [self.random.randrange(x.size + 1) for _ in range(x.size)]
        return scatter_add(x.size + 1, constant(np.array(places, int)), flat)

    def copied(self) -> Node:
        return elementwise("alias", self.last())

    def reduced(self) -> Node:
        x = self.last()
        axes = self.random.sample(range(x.ndim), self.random.randint(0, x.ndim))
        return reduce(self.random.choice(["sum", "max", "min"]) if x.size else "sum", x, axes)

    OPERATIONS = (
        steep, steep, steep, steep, scaled, added, added, extremum, extremum, selection, selection, gathered, gathered,
        scattered, copied, reduced, Chain.reshaped, Chain.transposed, Chain.repeated, Chain.cut, Chain.cut,
        Chain.padded, Chain.joined,
    )  # fmt: skip

    def grow(self) -> None:
        node = self.random.choice(self.OPERATIONS)(self)
        if node.size <= 40:
            self.nodes.append(node)

    def total(self) -> Node:
        """One number of what is finite in the last node and another, chosen in one of several ways."""
        found: list[Node] = []
        for node in (self.nodes[-1], self.random.choice(self.nodes[2:])):
            flat = reshape(node, (node.size,))
            weights = constant(np.array([self.random.choice(POSITIVE) for _ in range(node.size)]))
            (value,) = interpret([flat])
            finite = np.isfinite(value) & np.array([self.random.random() < 0.7 for _ in range(node.size)], bool)
            chosen = np.flatnonzero(finite)
            if self.random.random() < 0.5:
                found.append(reduce("sum", gather(flat * weights, constant(chosen)), (0,)))
            elif self.random.random() < 0.5:
                found.append(reduce("sum", elementwise("select", constant(finite), flat * weights, 0.0), (0,)))
            else:
                found += [reshape(slice_axes(flat, [(int(k), 1, 1)]), ()) for k in chosen]
        total = literal(0.0, FLOAT)
        for part in found:
            total = total + part
        return total


def is_convention(total: Node) -> bool:
    """Whether operands of an extremum are equal or NaN somewhere, so that its derivative is a convention."""
    nodes = [node for node in topological([total]) if node.name in EXTREMA]
    values = interpret([*nodes, *[source for node in nodes for source in node.inputs]])
    sources = iter(values[len(nodes) :])
    for node, value in zip(nodes, values, strict=False):
        operands = [next(sources) for _ in node.inputs]
        if any(np.isnan(operand).any() for operand in operands):
            return True
        if len(operands) == 2 and (operands[0] == operands[1]).any():
            return True
        if len(operands) == 1:
            kept = tuple([1 if axis in node.params[0] else n for axis, n in enumerate(operands[0].shape)])
            if ((operands[0] == value.reshape(kept)).sum(node.params[0]) > 1).any():
                return True
    return False


def quotients(total: Node, leaf: Node, direction: np.ndarray) -> tuple[float, float]:
    """The difference quotients of a number from above and from below."""
    assert leaf.value is not None
    below, here, above = [float(interpret([total], {leaf: leaf.value + k * STEP * direction})[0]) for k in (-1, 0, 1)]
    return (above - here) / STEP, (here - below) / STEP


def agrees(found: float, above: float, below: float) -> bool:
    """Whether a derivative is the quotient, if there is one."""
    size = 1 + abs(above) + abs(below)
    if not np.isfinite(size) or abs(above - below) > 1e-3 * size:
        return True
    return abs(found - (above + below) / 2) <= 1e-5 * size


@pytest.mark.parametrize("seed", SEEDS)
def test_smooth_where_the_values_are(seed: int) -> None:
    with np.errstate(all="ignore"):
        for number in range(GRAPHS):
            chain = Slopes(1000 * seed + number)
            for _ in range(chain.random.randint(2, 8)):
                chain.grow()
            total = chain.total()
            if abs(float(interpret([total])[0])) > 1e3 or is_convention(total):
                continue
            leaves = [node for node in chain.nodes[:2] if node.size]
            check(total, leaves, f"graph {1000 * seed + number}:")


def check(total: Node, leaves: Sequence[Node], where: str) -> None:
    """Both modes against difference quotients."""
    found = vjp([total], [literal(1.0, FLOAT)], leaves)
    for leaf, gradient in zip(leaves, found, strict=True):
        (values,) = interpret([gradient]) if gradient is not None else (np.zeros(leaf.shape),)
        for place in np.ndindex(*leaf.shape):
            unit = np.zeros(leaf.shape)
            unit[place] = 1
            above, below = quotients(total, leaf, unit)
            message = f"{where} {leaf!r}{place}: {values[place]}, not {above} or {below} in\n{show([total])}"
            assert agrees(float(values[place]), above, below), message
        ones = np.ones(leaf.shape)
        (tangent,) = jvp([total], [leaf], [constant(ones)])
        slope = float(interpret([tangent])[0]) if tangent is not None else 0.0
        above, below = quotients(total, leaf, ones)
        message = f"{where} forward, {leaf!r}: {slope}, not {above} or {below} in\n{show([total])}"
        assert agrees(slope, above, below), message
