"""The choice between logs of overwritten elements and tapes, for nests of loops.

In: a reverse kernel. Out: `nests_that_log`: the nests that log elements or copy arrays turn by turn; `is_no_longer`:
whether a reverse kernel with tapes stores no more than one with logs. Called by reverse.py, which writes both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from .cotangents import Stored
from .kernel_statements import Block, Copy, For, Statement, Store, Sync, While, blocks_in, made, walk

_MOST = 2
"""How many times more bytes tapes may take than logs, if both grow with the same loops."""


def nests_that_log(body: Block, kernel: Block, stored: Mapping[str, Stored]) -> frozenset[int]:
    """The outermost loops of a kernel, by identity, in which its derivative `body` logs or copies turn by turn."""
    nests = {one.nest for name in made(body) if (one := stored.get(name)) is not None and one.is_log}
    for statement, depth in _with_depths(body):
        if depth and isinstance(statement, Copy) and statement.array in stored:
            nests.add(stored[statement.array].nest)
    return frozenset(
        id(loop)
        for loop in walk(kernel)
        if id(loop) in nests
        and not any(isinstance(one, Sync) or (isinstance(one, For) and one.parallel) for one in walk((loop,)))
    )


def is_no_longer(taped: Block, logged: Block, tapes: Mapping[str, Stored], logs: Mapping[str, Stored]) -> bool:
    """Whether a derivative with tapes stores no more than one with logs, as far as the depth of loops tells."""
    one = _bytes(taped, lambda array: array in tapes)
    other = _bytes(logged, lambda array: array in logs)
    deepest = max([*one, *other], default=0)
    return one[deepest] <= _MOST * other[deepest]


def _bytes(body: Block, counts: Callable[[str], bool], depth: int = 0) -> Counter[int]:
    """The bytes that are stored a turn, by the number of loops around; a copy of an array is a loop of its own.

    A backward run comes after the forward run, and uses the same memory for what its turns store.
    """
    found: Counter[int] = Counter()
    later: Counter[int] = Counter()
    for statement in body:
        match statement:
            case Store(array) if counts(array):
                found[depth] += 1 if array.startswith("tape_test_") else 8
            case Copy(array) if counts(array) and depth:
                found[depth + 1] += 8
            case _:
                for inner in blocks_in(statement):
                    own = _bytes(inner, counts, depth + isinstance(statement, For | While))
                    if isinstance(statement, For) and statement.backwards:
                        later |= own
                    else:
                        found += own
    return found | later


def _with_depths(body: Block, depth: int = 0) -> Iterator[tuple[Statement, int]]:
    """The statements of a block, each with the number of loops around it."""
    for statement in body:
        yield statement, depth
        for inner in blocks_in(statement):
            yield from _with_depths(inner, depth + isinstance(statement, For | While))
