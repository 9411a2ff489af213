"""Small random graphs of what the rules of simplification look for: their values stay what the interpreter gives.

Each graph is a chain of a few operations, most of which take up the one before: selections with the same condition,
negatives of negatives, slices of padded arrays, sums of repeated rows. Their numbers are powers of two, zeros of both
signs, infinities and NaN, so that what is exact must stay so to the bit, the sign of zeros included.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from nbgrad.graph.builders import cast, concatenate, iota, matmul, pad, reduce, reshape, slice_axes, transpose
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, broadcast, elementwise, literal, placeholder
from nbgrad.graph.show import show
from nbgrad.graph.simplify import simplify

pytestmark = pytest.mark.unoptimized

Shape = tuple[int, ...]
NUMBERS = [0.0, -0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 4.0, -4.0, 0.25]
LITERALS = [*NUMBERS, 0.5, 1.0, 1.0, -1.0, 3.0, math.inf, -math.inf, math.nan, 1e-4, 2.0**-14, -(2.0**14)]
POWERS = [0.0, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0]
SHAPES: list[Shape] = [(), (1,), (3,), (2, 3), (1, 3), (2, 1), (3, 1, 2), (1, 2, 2), (2, 3, 2), (0, 2)]
GRAPHS = 250
SEEDS = range(8)


class Chain:
    """A graph that grows by one operation at a time."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.nodes: list[Node] = [self.leaf() for _ in range(2)]

    def leaf(self, shape: Shape | None = None, kind: str = "") -> Node:
        chosen = self.random.choice(SHAPES) if shape is None else shape
        dtype = np.dtype(kind or self.random.choice(["float64"] * 5 + ["float16", "bool", "int8", "uint8"]))
        values = np.array([self.random.choice(NUMBERS) for _ in range(math.prod(chosen))]).reshape(chosen)
        values = values > 0 if dtype.kind == "b" else np.abs(values) if dtype.kind == "u" else values
        return placeholder(chosen, dtype, values.astype(dtype))

    def last(self) -> Node:
        """Most often the node made last, so that operations meet."""
        return self.nodes[-1] if self.random.random() < 0.75 else self.random.choice(self.nodes)

    def number(self) -> Node:
        x = self.last()
        return cast(x, np.dtype(float)) if x.dtype.kind == "b" else x

    def beside(self, x: Node) -> Node:
        """Another operand of the same shape and dtype: a literal, the node itself, a known node, or a new one."""
        alike = [node for node in self.nodes if node.shape == x.shape and node.dtype == x.dtype]
        numbers = LITERALS if x.dtype.kind == "f" else [0, 1, 2, 3]
        repeated = literal(self.random.choice(numbers), x.dtype) if x.dtype.kind != "b" else literal(True, x.dtype)
        options: list[Callable[[], Node]] = [
            lambda: broadcast(repeated, x.shape),
            lambda: self.random.choice(alike) if alike else x,
            lambda: self.leaf(x.shape, x.dtype.name),
            lambda: broadcast(self.leaf(x.shape[1:], x.dtype.name), x.shape),
            lambda: broadcast(self.leaf(tuple([1] * len(x.shape)), x.dtype.name), x.shape),
        ]
        return self.random.choice(options)()

    # ----- Operations -----

    def arithmetic(self) -> Node:
        x = self.number()
        names = ["add", "subtract", "multiply", "maximum", "minimum"] + ["divide"] * 2 * (x.dtype.kind == "f")
        operands = [x, self.beside(x)]
        self.random.shuffle(operands)
        return elementwise(self.random.choice(names), *operands)

    def unary(self) -> Node:
        x = self.number()
        return elementwise(self.random.choice(["negative", "negative", "absolute", "alias", "stop_gradient"]), x)

    def power(self) -> Node:
        x = cast(self.number(), np.dtype(float))
        return elementwise("power", x, broadcast(literal(self.random.choice(POWERS), x.dtype), x.shape))

    def by_root(self) -> Node:
        """A quotient by a square root, which is repeated in one of several ways."""
        x = cast(self.number(), np.dtype(float))
        root = elementwise("sqrt", self.leaf(x.shape[1:], "float64") * 1.0)
        return elementwise("divide", x, broadcast(reshape(root, (1, *root.shape)) if x.ndim else root, x.shape))

    def truth(self) -> Node:
        x = self.last()
        if x.dtype.kind == "b" and self.random.random() < 0.6:
            name = self.random.choice(["logical_not", "logical_not", "logical_and", "logical_or", "equal", "not_equal"])
            return elementwise(name, x) if name == "logical_not" else elementwise(name, x, self.beside(x))
        name = self.random.choice(["equal", "not_equal", "less", "greater_equal"])
        return elementwise(name, x, self.beside(x))

    def bits(self) -> Node:
        x = cast(self.number(), np.dtype(np.int8))
        return elementwise(self.random.choice(["bitwise_and", "bitwise_or"]), x, self.beside(x))

    def selection(self) -> Node:
        x = self.last()
        conditions = [node for node in self.nodes if node.shape == x.shape and node.dtype.kind == "b"]
        condition = self.random.choice(conditions) if conditions else self.leaf(x.shape, "bool")
        if self.random.random() < 0.2:
            condition = elementwise("logical_not", condition)
        self.nodes.append(condition)
        branches = [x, self.beside(x)]
        self.random.shuffle(branches)
        return elementwise("select", condition, *branches)

    def nested_selection(self) -> Node:
        """A branch of a selection is a selection by the same condition."""
        x = self.last()
        condition = self.leaf(x.shape, "bool")
        inner = elementwise("select", condition, x, self.beside(x))
        branches = [inner, self.beside(x)]
        self.random.shuffle(branches)
        return elementwise("select", condition, *branches)

    def reshaped(self) -> Node:
        x = self.last()
        extents = [n for n in x.shape if n != 1]
        for _ in range(self.random.randrange(3)):
            extents.insert(self.random.randrange(len(extents) + 1), 1)
        return reshape(x, tuple(extents) if self.random.random() < 0.7 else (x.size,))

    def transposed(self) -> Node:
        x = self.last()
        return transpose(x, tuple(self.random.sample(range(x.ndim), x.ndim)))

    def repeated(self) -> Node:
        x = self.last()
        shape = tuple([self.random.choice([1, 2, 3]) if n == 1 else n for n in x.shape])
        return broadcast(x, (self.random.choice([1, 2]), *shape) if x.ndim < 3 else shape)

    def cut(self) -> Node:
        x = self.last()
        ranges = []
        for n in x.shape:
            start, step = self.random.randrange(max(n, 1)), self.random.choice([1, 1, 2, -1])
            most = (n - start + step - 1) // step if step > 0 else start // -step + 1
            ranges.append((start, self.random.randint(min(1, n), max(most, 0)) if n else 0, step))
        return slice_axes(x, [r if r[1] else (0, 0, 1) for r in ranges])

    def padded(self) -> Node:
        x = self.last()
        return pad(x, [(self.random.randrange(3), self.random.randrange(3)) for _ in x.shape])

    def joined(self) -> Node:
        x = self.last()
        if not x.ndim:
            return x
        axis = self.random.randrange(x.ndim)
        pieces = [x, self.beside(x)][:: self.random.choice([1, -1])]
        if self.random.random() < 0.5 and x.shape[axis] > 1:
            middle = self.random.randrange(1, x.shape[axis])
            pieces = [
                slice_axes(x, [(0, n, 1) if a != axis else part for a, n in enumerate(x.shape)])
                for part in ((0, middle, 1), (middle, x.shape[axis] - middle, 1))
            ]
        return concatenate(pieces, axis)

    def reduced(self) -> Node:
        x = self.number()
        axes = self.random.sample(range(x.ndim), self.random.randint(0, x.ndim))
        if self.random.random() < 0.4:
            axes = [axis for axis, n in enumerate(x.shape) if n == 1]
        names = ["sum", "sum", "prod"] + ["max", "min"] * all(x.shape[a] for a in axes)
        return reduce(self.random.choice(names), x, axes)

    def product(self) -> Node:
        x = cast(self.number(), np.dtype(float))
        rows = reshape(x, (1, *x.shape)) if x.ndim == 2 else reshape(x, (1, 1, x.size))
        other = self.leaf((1, rows.shape[2], self.random.choice([1, 2])), "float64")
        made = matmul(rows, other)
        # It may be one number times another, without the zero that a sum begins with: the sign of zeros is let go.
        return elementwise("absolute", transpose(made, (0, 2, 1)) if self.random.random() < 0.5 else made)

    def unit_rows(self) -> Node:
        """Rows of a matrix, picked by comparing positions, as in Jacobians."""
        n = self.random.choice([2, 3])
        here = broadcast(reshape(iota(n), (n, 1)), (n, n))
        return cast(elementwise("equal", here, broadcast(iota(n), (n, n))), np.dtype(float))

    OPERATIONS = (
        arithmetic, arithmetic, arithmetic, unary, unary, power, by_root, truth, bits, selection, nested_selection,
        reshaped, reshaped, transposed, transposed, repeated, repeated, cut, cut, padded, joined, reduced, reduced,
        product, unit_rows,
    )  # fmt: skip

    def grow(self) -> None:
        node = self.random.choice(self.OPERATIONS)(self)
        if node.size <= 400:
            self.nodes.append(node)


def same(found: np.ndarray, expected: np.ndarray, outputs: Sequence[Node]) -> None:
    __tracebackhide__ = True
    assert found.dtype == expected.dtype and found.shape == expected.shape, show(outputs)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            found, expected, 2e-3 if found.dtype == np.float16 else 1e-14, 0, err_msg=show(outputs)
        )
    if found.dtype.kind == "f":
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]), show(outputs))


@pytest.mark.parametrize("seed", SEEDS)
def test_values_stay(seed: int) -> None:
    for number in range(GRAPHS):
        chain = Chain(1000 * seed + number)
        for _ in range(chain.random.randint(2, 9)):
            chain.grow()
        # All of them, or the last ones: what only one node reads is treated in other ways.
        outputs = chain.nodes[-2:] if number % 2 else chain.nodes[2:]
        simple = simplify(outputs)
        for node, was in zip(simple, outputs, strict=True):
            assert (node.shape, node.dtype) == (was.shape, was.dtype)
        for found, expected in zip(interpret(simple), interpret(outputs), strict=True):
            same(found, expected, outputs)
