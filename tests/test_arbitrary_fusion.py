"""Decisions about cost, made by coins: whatever loops compute, store and share, results are the same.

The compiler decides how large kernels become, which values are computed again instead of stored, in which order nodes
join kernels, which concatenations are assembled and which products are written transposed. Here each of these decisions
is random, where either answer is allowed. So mutants.py need not ask whether a mutant decides in another way.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbgrad.compiler import fuse, movements
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node
from nbgrad.runtime import evaluate
from nbgrad.runtime.evaluate import compute

from .test_random_graphs import QUICK, assert_same, graphs

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


@settings(QUICK, max_examples=100)
@given(graphs(steps=16), st.integers(0, 1000))
def test_results_do_not_depend_on_decisions_about_cost(outputs: list[Node], seed: int) -> None:
    wanted = interpret(outputs)
    with pytest.MonkeyPatch.context() as patch:
        decide_by(Coin(seed), patch)
        for _ in range(2):
            evaluate._programs.clear()
            assert_same(outputs, compute(outputs), wanted)
    evaluate._programs.clear()
