"""How the arrays that a loop overwrites are had again when it runs backwards.

In: the body of a loop, and what is asked of the arrays around it. Out: a `Plan` for each array. Called by reverse.py.

A turn that runs backwards runs forward once more, from the state of the arrays at its start. That state comes from
one of:
- nowhere: nothing in the loop reads the array, so that its writes are left out;
- the array before the loop: each turn has elements of its own, and the forward loop writes to a copy;
- the array after the loop: no element is overwritten after it was read, as in dynamic programming;
- the turn itself: it writes every element before it reads it;
- one number a turn for each statement that overwrites an element;
- a log of overwritten elements, which is read backwards.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .dataflow import Affine, accesses, affine, definitions, owned_by_turn
from .kernel_statements import (
    Atom,
    Block,
    For,
    Load,
    Op,
    Set,
    Store,
    While,
    assigned,
    blocks_in,
    breaks,
    loaded,
    made,
    stored,
    walk,
)
from .lasting import Known, lasting_loads


class Plan(Enum):
    """The way to an array's elements at the start of a turn."""

    NOT_READ = "nothing in the loop reads it"
    OWN = "each turn has elements of its own"
    FINAL = "no element is overwritten after it was read"
    KEPT = "each turn overwrites elements that are known when it starts"
    REFILLED = "each turn writes before it reads"
    LOGGED = "overwritten elements are logged"


@dataclass
class Arrays:
    """The state of the arrays at a point of a block that runs forward in order to be run backwards.

    Attributes
    ----------
    names : dict
        The array that stands for each one of the kernel.
    skipped : set
        Arrays that are not written.
    kept : set
        Arrays that must be as they were when the block is done.
    seen : set
        Arrays that loops before this point read.
    later : set
        Arrays that something after this point reads.
    turn : Turn, optional
        The turn of a nest of loops whose values are on tapes (taped_loops.py).
    """

    names: dict[str, str] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    turn: Any = None

    def name(self, array: str) -> str:
        """The name in use of an array."""
        return self.names.get(array, array)


def plans(loop: For | While, state: Arrays, known: Known, common: Collection[str] = frozenset()) -> dict[str, Plan]:
    """The plans for the arrays that a loop writes to; elements of `common` ones may change in other threads."""
    body, turn = loop.body, loop.turn if isinstance(loop, For) else None
    read = loaded(body)
    lasting = lasting_loads(loop, known)
    found: dict[str, Plan] = {}
    for array in sorted(stored(body) - made(body)):
        if array in state.skipped:
            continue
        if array not in read:
            found[array] = Plan.NOT_READ
        elif turn is not None and array not in common and owned_by_turn(body, array, turn):
            found[array] = Plan.OWN
        elif array not in common and all_last(body, array, lasting[array]):
            found[array] = Plan.FINAL
        elif refilled(body, array):
            found[array] = Plan.REFILLED
        elif turn is not None and overwritten(body, array, turn) is not None:
            found[array] = Plan.KEPT
        else:
            found[array] = Plan.LOGGED
    return found


def all_last(body: Block, array: str, lasting: Collection[int]) -> bool:
    """Whether all elements of an array that a loop reads stay as they were read until its end."""
    reads = [one for one in walk(body) if isinstance(one, Set) and isinstance(one.value, Load)]
    uses = accesses(body, array)
    return uses is not None and all(id(one) in lasting for one in reads if loaded([one]) == {array})


def refilled(body: Block, array: str) -> bool:
    """Whether a block certainly writes every element of an array that it reads, before it reads it.

    It is certain where each read is matched by an earlier write with the same index, under loops of the same lengths.
    """
    writes: list[tuple[object, ...]] = []
    known = definitions(body)
    changing = assigned(body)

    def shape(index: tuple[Atom, ...], loops: Mapping[str, Atom]) -> tuple[object, ...] | None:
        turns = {turn: f"turn of {count}" for turn, count in loops.items()}
        found: list[object] = []
        for atom in index:
            form = affine(atom, known)
            if any(name in changing and name not in turns for name in form if name != "1"):
                return None
            found.append(frozenset((turns.get(name, name), count) for name, count in form.items()))
        return tuple(found)

    def visit(block: Block, loops: dict[str, Atom], certain: bool) -> bool:
        for statement in block:
            match statement:
                case Set(_, Load(name, index)) if name == array:
                    found = shape(index, loops)
                    if found is None or found not in writes:
                        return False
                case Set(_, Op(arrays=arrays)) if array in arrays:
                    return False
                case Store(name, index, _, add) if name == array:
                    found = shape(index, loops)
                    if add and (found is None or found not in writes):
                        return False
                    if certain and found is not None and not add:
                        writes.append(found)
                case For(turn, count, inner):
                    constant = count not in changing or count in known
                    if not visit(inner, {**loops, turn: _fixed(count, known)}, certain and constant):
                        return False
                case _:
                    for inner in blocks_in(statement):
                        if not visit(inner, loops, False):
                            return False
        return True

    return visit(body, {}, True)


def _fixed(count: Atom, known: Mapping[str, Op]) -> Atom:
    return str(sorted(affine(count, known).items()))


def overwritten(body: Block, array: str, turn: str) -> list[tuple[Store, tuple[Affine, ...]]] | None:
    """The statements that write to an array, with their indices as sums, if every turn runs each of them once.

    None if it does not, or if an index is not known when the turn starts.
    """
    sites = [one for one in body if isinstance(one, Store) and one.array == array]
    if breaks(body) or len(sites) != sum(1 for one in walk(body) if isinstance(one, Store) and one.array == array):
        return None
    known = definitions(body)
    changing = assigned(body)
    found: list[tuple[Store, tuple[Affine, ...]]] = []
    for site in sites:
        forms = tuple([affine(atom, known) for atom in site.index])
        if any(name in changing and name != turn for form in forms for name in form):
            return None
        found.append((site, forms))
    return found
