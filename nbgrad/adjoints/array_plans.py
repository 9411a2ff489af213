"""How the arrays that a loop overwrites are had again when it runs backwards.

In: the body of a loop, and what is asked of the arrays around it. Out: a `Plan` for each array. Called by reverse.py.

A turn that runs backwards runs forward once more, from the state of the arrays at its start. That state comes from
one of:
- nowhere: nothing in the loop reads the array, so that its writes are left out;
- the array before the loop: each turn has elements of its own, and the forward loop writes to a copy;
- the array after the loop: each element is written once, and read only afterwards, as in dynamic programming;
- the turn itself: it writes every element before it reads it;
- one number a turn for each statement that overwrites an element;
- a log of overwritten elements, which is read backwards.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

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


class Plan(Enum):
    """The way to an array's elements at the start of a turn."""

    NOT_READ = "nothing in the loop reads it"
    OWN = "each turn has elements of its own"
    FINAL = "each element is written once, before it is read"
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
    """

    names: dict[str, str] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)

    def name(self, array: str) -> str:
        """The name in use of an array."""
        return self.names.get(array, array)


def plans(body: Block, turn: str | None, state: Arrays, common: Collection[str] = frozenset()) -> dict[str, Plan]:
    """The plans for the arrays that a loop writes to; elements of `common` ones may change in other threads."""
    read = loaded(body)
    found: dict[str, Plan] = {}
    for array in sorted(stored(body) - made(body)):
        if array in state.skipped:
            continue
        if array not in read:
            found[array] = Plan.NOT_READ
        elif turn is not None and array not in common and owned_by_turn(body, array, turn):
            found[array] = Plan.OWN
        elif turn is not None and array not in common and written_before_read(body, array, turn):
            found[array] = Plan.FINAL
        elif refilled(body, array):
            found[array] = Plan.REFILLED
        elif turn is not None and overwritten(body, array, turn) is not None:
            found[array] = Plan.KEPT
        else:
            found[array] = Plan.LOGGED
    return found


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


def written_before_read(body: Block, array: str, turn: str) -> bool:
    """Whether loops write each element of an array at most once, and read it in later turns only, or never written.

    The index of the only write must have the number of each loop around it along an axis of its own; a read must be of
    an element that an earlier turn of the outermost loop, in which it differs, has written.
    """
    known = definitions(body)
    changing = assigned(body) | {turn}
    sites: list[tuple[tuple[Atom, ...], tuple[str, ...]]] = []

    def find(block: Block, loops: tuple[str, ...]) -> bool:
        for statement in block:
            match statement:
                case Store(name, index) if name == array:
                    sites.append((index, loops))
                case For(inner_turn, _, inner):
                    if not find(inner, (*loops, inner_turn)):
                        return False
                case While(inner) if array in stored(inner):
                    return False
                case _:
                    for inner in blocks_in(statement):
                        if not find(inner, loops):
                            return False
        return True

    indices = accesses(body, array)
    if indices is None or not find(body, (turn,)) or len(sites) != 1:
        return False
    index, loops = sites[0]
    written = [affine(atom, known) for atom in index]
    axes: list[tuple[int, int]] = []
    """For each loop around the write, the axis along which its number stands, and its sign."""
    for loop in loops:
        places = [axis for axis, form in enumerate(written) if loop in form]
        if len(places) != 1 or abs(written[places[0]][loop]) != 1:
            return False
        axes.append((places[0], written[places[0]][loop]))
    if len({axis for axis, _ in axes}) != len(axes):
        return False
    if any(name in changing and name not in loops for form in written for name in form):
        return False

    def earlier(read: tuple[Atom, ...]) -> bool:
        for axis, sign in axes:
            form = affine(read[axis], known)
            names = {*form, *written[axis]} - {"1"}
            if any(form.get(name, 0) != written[axis].get(name, 0) for name in names):
                return False
            moved = (form.get("1", 0) - written[axis].get("1", 0)) * sign
            if moved:
                return moved < 0
        return False

    reads = list(indices)
    reads.remove(index)
    return all(earlier(read) for read in reads)


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
