"""Loops whose turns may run in any order.

In: the body of a loop of a derivative. Out: `Independence`: the numbers and arrays that its turns only add to, and the
arrays of which each turn has elements of its own; None if the order of turns matters, or may matter. Called by
loop_order.py, gathers.py and thread_parts.py.

Sums are rounded differently in another order; everything else stays the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..dataflow import Affine, carried_by_turns, live_at_start, live_in_turns, own_index
from ..kernel_statements import (
    Alias,
    Atom,
    Block,
    Copy,
    For,
    If,
    Op,
    Room,
    Set,
    Statement,
    Store,
    While,
    assigned,
    atoms_of,
    breaks,
    defined,
    loaded,
    made,
    stored,
    walk,
    with_blocks,
)

_SUMS = ("{0} + {1}", "plus({0}, {1})")


@dataclass(frozen=True)
class Independence:
    """The numbers and arrays that the turns of a loop share.

    Attributes
    ----------
    sums : tuple of str
        Numbers that turns add to.
    added : frozenset of str
        Arrays whose elements turns add to, and do not read.
    own : dict of str to Affine
        Arrays of which each turn has elements of its own, and the index that differs from turn to turn, as a sum.
    """

    sums: tuple[str, ...]
    added: frozenset[str]
    own: dict[str, Affine]


def independence(loop: For, after: frozenset[str], aliased: frozenset[str]) -> Independence | None:
    """The numbers and arrays that the turns of a loop share, if their order does not matter.

    Parameters
    ----------
    after : frozenset of str
        The numbers that are read after the loop.
    aliased : frozenset of str
        The arrays that have several names.
    """
    body, turn = loop.body, loop.turn
    if breaks(body):
        return None
    numbers = assigned(body)
    sums = tuple(sorted((carried_by_turns(body) | after) & numbers))
    if turn in after or turn in numbers or not all(is_sum(body, name) for name in sums):
        return None
    inside = made(body)
    if any(isinstance(one, Room) and one.array not in inside for one in walk(body)):
        return None
    read = loaded(body)
    added: set[str] = set()
    own: dict[str, Affine] = {}
    for array in sorted(stored(body) - inside):
        if array in aliased:
            return None
        if array not in read and all(one.add for one in walk(body) if isinstance(one, Store) and one.array == array):
            added.add(array)
            continue
        form = own_index(body, array, turn)
        if form is None:
            return None
        own[array] = form
    if any(isinstance(one, Copy | Alias) and one.source in stored(body) - inside for one in walk(body)):
        return None
    return Independence(sums, frozenset(added), own)


def is_sum(body: Block, name: str) -> bool:
    """Whether a block only adds to a number, and does not read it otherwise."""
    for statement in walk(body):
        match statement:
            case Set(target, Op(_, (first, other), text)) if target == name and first == name and text in _SUMS:
                if other == name:
                    return False
            case _:
                if name in atoms_of(statement) or defined(statement) == name:
                    return False
    return True


def is_positive(form: Mapping[Atom, int], turn: str) -> bool:
    """Whether an index is certainly not counted from the end of its axis."""
    return set(form) <= {turn, "1"} and form.get(turn, 0) >= 0 and form.get("1", 0) >= 0


def aliased_arrays(block: Block) -> frozenset[str]:
    """The arrays of a block that have several names."""
    return frozenset(name for one in walk(block) if isinstance(one, Alias) for name in (one.array, one.source))


class NewNames:
    """Names that a block does not use yet, nor others that are given."""

    def __init__(self, block: Block, others: Iterable[str] = ()) -> None:
        self.used = {name for one in walk(block) for name in (*atoms_of(one), defined(one) or "")}
        self.used |= loaded(block) | stored(block) | made(block) | set(others)

    def new(self, base: str) -> str:
        """A new name."""
        name, count = base, 0
        while name in self.used:
            count += 1
            name = f"{base}_{count}"
        self.used.add(name)
        return name


Replace = Callable[[For, frozenset[str]], "tuple[Statement, ...] | None"]
"""The statements in place of a loop, given the numbers that are read after it; None where its body is looked at."""


def with_loops(block: Block, after: frozenset[str], replace: Replace, at_break: frozenset[str] = frozenset()) -> Block:
    """A block with other statements in place of loops; those around come before those inside."""
    found: list[Statement] = []
    live = after
    for statement in reversed(block):
        match statement:
            case For(_, _, body):
                new = replace(statement, live)
                if new is None:
                    inner = live | live_in_turns(body, live)
                    new = (with_blocks(statement, lambda one, i=inner, b=live: with_loops(one, i, replace, b)),)
            case While(body):
                inner = live_in_turns(body, frozenset(), live)
                new = (with_blocks(statement, lambda one, i=inner, b=live: with_loops(one, i, replace, b)),)
            case If():
                new = (with_blocks(statement, lambda one, i=live: with_loops(one, i, replace, at_break)),)
            case _:
                new = (statement,)
        found += reversed(new)
        live = live_at_start((statement,), live, at_break)
    return tuple(reversed(found))
