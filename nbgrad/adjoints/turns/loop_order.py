"""Loops that run from the first turn to the last where the order does not matter, and sums that LLVM may vectorise.

In: a block of a derivative. Out: the block with loops that run forward, and with `plus(x, y)` for sums. Called by
derived.py. LLVM sees that the index of a loop that runs forward is not negative, which Numba would count from the end
of an axis; and it does not change the order of a sum unless told so, as `plus` tells it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..dataflow import live_in_turns
from ..kernel_statements import Block, For, Op, Set, Statement, assigned, with_blocks
from .independence import aliased_arrays, independence, is_positive, is_sum, with_loops

PLUS = "plus({0}, {1})"


def with_loops_forward(block: Block, after: Iterable[str]) -> Block:
    """A block in which loops run forward where they may."""
    aliased = aliased_arrays(block)

    def replace(loop: For, live: frozenset[str]) -> tuple[Statement, ...] | None:
        if not loop.backwards:
            return None
        found = independence(loop, live, aliased)
        if found is None or not (loop.parallel or all(is_positive(one, loop.turn) for one in found.own.values())):
            return None
        inner = live | live_in_turns(loop.body, live)
        return (For(loop.turn, loop.count, with_loops(loop.body, inner, replace, live), loop.parallel),)

    return with_loops(block, frozenset(after), replace)


def with_free_sums(block: Block, sums: frozenset[str]) -> Block:
    """A block in which LLVM may choose the order in which loops add to some of the sums."""
    found: list[Statement] = []
    for statement in block:
        if isinstance(statement, For):
            body = statement.body
            free = frozenset([name for name in assigned(body) & sums if is_sum(body, name)])
            statement = with_blocks(statement, lambda inner, free=free: _free(inner, free))
        found.append(with_blocks(statement, lambda inner: with_free_sums(inner, sums)))
    return tuple(found)


def _free(block: Block, sums: frozenset[str]) -> Block:
    return tuple(
        [
            Set(one.target, Op("add", one.value.args, PLUS))
            if isinstance(one, Set) and one.target in sums and isinstance(one.value, Op)
            else with_blocks(one, lambda inner: _free(inner, sums))
            for one in block
        ]
    )
