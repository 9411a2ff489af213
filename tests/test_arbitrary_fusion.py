"""Decisions about cost, made by coins: whatever loops compute, store and share, results are the same.

The compiler decides how large kernels become, which values are computed again instead of stored, in which order nodes
join kernels, which concatenations are assembled and which products are written transposed. Here each of these decisions
is random, where either answer is allowed. So mutants.py need not ask whether a mutant decides in another way.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbgrad.compiler import fuse, movements
from nbgrad.graph.builders import reduce
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, broadcast, elementwise, literal, placeholder
from nbgrad.runtime import evaluate
from nbgrad.runtime.evaluate import compute

from .test_random_graphs import QUICK, assert_same, graphs
from .test_simplify_patterns import Chain, Shape

pytestmark = pytest.mark.unoptimized


class Coin:
    """Says yes or no; as a bound, numbers are above or below it at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def yes(self, *_: Any) -> bool:
        return self.random.random() < 0.5

    __lt__ = __le__ = __gt__ = __ge__ = yes

    def where(self, condition: Callable[..., bool]) -> Callable[..., bool]:
        """A condition that fails more often."""
        return lambda *arguments: condition(*arguments) and self.yes()


def decide_by(coin: Coin, patch: pytest.MonkeyPatch) -> None:
    """Let a coin make the decisions about cost."""
    assembled, turned = movements._assembled, movements._turned
    patch.setattr(fuse, "LARGEST_KERNEL", coin)
    patch.setattr(movements, "MOST_PIECES", coin)
    for name in ("_is_free", "_is_written"):
        patch.setattr(fuse._Fuser, name, coin.where(getattr(fuse._Fuser, name)))
    patch.setattr(fuse._Fuser, "_is_cheaper", coin.yes)
    patch.setattr(fuse, "_entry", lambda source: (coin.random.random(), -source.number, source))
    patch.setattr(movements, "_assembled", lambda *graph: {node for node in assembled(*graph) if coin.yes()})
    patch.setattr(
        movements, "_turned", lambda *graph: {node: order for node, order in turned(*graph).items() if coin.yes()}
    )


def check(outputs: Sequence[Node], coin: Coin) -> None:
    """Machine code computes what the interpreter computes, however the coin falls."""
    wanted = interpret(outputs)
    with pytest.MonkeyPatch.context() as patch:
        decide_by(coin, patch)
        for _ in range(2):
            evaluate._programs.clear()
            assert_same(outputs, compute(outputs), wanted)
    evaluate._programs.clear()


@settings(QUICK, max_examples=60)
@given(graphs(steps=16), st.integers(0, 1000))
def test_results_do_not_depend_on_decisions_about_cost(outputs: list[Node], seed: int) -> None:
    check(outputs, Coin(seed))


class Loops(Chain):
    """A graph of light operations between movements and reductions, which kernels may share in many ways. Its numbers
    are small whole ones."""

    def leaf(self, shape: Shape | None = None, kind: str = "") -> Node:
        chosen = self.random.choice([(4,), (3, 4), (2, 3), (2, 1, 3), ()]) if shape is None else shape
        values = [self.random.choice([-2.0, -1.0, 1.0, 2.0, 3.0]) for _ in range(math.prod(chosen))]
        return placeholder(chosen, np.dtype(float), np.array(values).reshape(chosen))

    def beside(self, x: Node) -> Node:
        alike = [node for node in self.nodes if node.shape == x.shape]
        number = broadcast(literal(self.random.choice([1.0, 2.0]), x.dtype), x.shape)
        return self.random.choice([number, number, self.leaf(x.shape), *alike])

    # ----- Operations -----

    def light(self) -> Node:
        x = self.last()
        return elementwise(self.random.choice(["add", "subtract", "multiply", "maximum"]), x, self.beside(x))

    def single(self) -> Node:
        return elementwise(self.random.choice(["negative", "absolute", "trunc"]), self.last())

    def heavy(self) -> Node:
        return elementwise("remainder", self.last(), 5.0)

    def shared(self) -> Node:
        """An array and a number that is made of one."""
        x = self.last()
        summed = self.random.choice([x, *self.nodes])
        number = reduce("sum", summed, range(summed.ndim))
        if self.random.random() < 0.5:
            number = elementwise("subtract", number, 1.0)
        return elementwise("add", x, broadcast(number, x.shape))

    OPERATIONS = (
        light, light, light, single, single, heavy, shared, Chain.reshaped, Chain.transposed, Chain.repeated, Chain.cut,
        Chain.padded, Chain.padded, Chain.joined, Chain.reduced, Chain.product,
    )  # fmt: skip

    def grow(self) -> None:
        node = self.random.choice(self.OPERATIONS)(self)
        if 0 < node.size <= 100 and np.abs(interpret([node])[0]).max() < 1e4:
            self.nodes.append(node)


@pytest.mark.parametrize("seed", range(4))
def test_kernels_that_are_shared_in_other_ways(seed: int) -> None:
    for number in range(50 * seed, 50 * seed + 50):
        chain = Loops(number)
        for _ in range(chain.random.randint(3, 8)):
            chain.grow()
        outputs = [chain.nodes[-1], chain.random.choice(chain.nodes)]
        check(outputs, Coin(number))
