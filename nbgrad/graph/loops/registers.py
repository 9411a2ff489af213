"""Registers, the values that turns of several kinds carry: which operations set a value that later turns read.

In: the operands that were made in earlier turns. Out: a `Register` for each of them. Called by mixed_graph.py.

What is carried has no name in a recording. A register is set by some operations: by the last of them that a turn goes
through. An operand reads what was set last, or some times before; or, of a register that keeps `all` values, any of
them. A register may also be set by an operand: Python keeps a value in a second variable, such as the one that an inner
loop begins with, and that is no operation. All that is assumed is checked for every read, so what is found is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .alignment import LONGEST_WAY
from .mixed_turns import Branch, Mixture


@dataclass(eq=False)
class Read:
    """An operand of a branch, in each of `turns`; its sources that are `earlier` were made in earlier turns.

    If it is `local`, all were made in the same turn.
    """

    branch: int
    slot: int
    turns: np.ndarray
    sources: np.ndarray
    earlier: np.ndarray
    local: bool = False


@dataclass(eq=False)
class Register:
    """A value that the places of some branches set, in their order, or an operand (`kept`).

    In the turns `set_in` it is set to the values of the operations `values`, or to the operand's. `length` of the last
    values are held, or `all`. `starts` are what it holds before the first turn, the newest first: operations or atoms,
    None if nothing reads it.
    """

    sets: list[tuple[Branch, int]]
    kept: Read | None
    set_in: np.ndarray
    values: np.ndarray
    count: np.ndarray
    """How often it is set before a turn can read it."""
    all: bool = False
    length: int = 1
    starts: list[int | None] = field(default_factory=list)

    def back(self, read: Read) -> int | None:
        """Which of the last values an operand reads in all turns; None if it is not always the same one."""
        sources, count = read.sources[read.earlier], self.count[read.turns[read.earlier]]
        if not len(self.values):
            return None
        for back in range(1, 2 if self.kept else LONGEST_WAY + 1):
            if (count >= back).all() and (self.values[count - back] == sources).all():
                return back
        return None

    def numbers(self, read: Read) -> np.ndarray | None:
        """For each read, the number of the value among all that were set; None if one was not set before."""
        order = np.argsort(self.values)
        sources = np.where(read.earlier, read.sources, self.values[0])
        found = order[np.minimum(np.searchsorted(self.values[order], sources), len(order) - 1)]
        good = (self.values[found] == sources) & ((found < self.count[read.turns]) | ~read.earlier)
        return found if good.all() else None

    def take_starts(self, read: Read, back: int) -> None:
        """Hold what an operand reads from before the first turn, as far as it is one value at a time."""
        self.length = max(self.length, back)
        self.starts += [None] * (self.length - len(self.starts))
        before, sources = self.count[read.turns][~read.earlier], read.sources[~read.earlier]
        for k in range(back):
            found = np.unique(sources[before == k])
            if len(found) == 1 and self.starts[back - 1 - k] is None:
                self.starts[back - 1 - k] = int(found[0])

    def outside(self, read: Read, back: int) -> np.ndarray:
        """In which turns an operand is neither what was set nor what the register holds at the start."""
        found = ~read.earlier
        for k in range(0 if self.all else back):
            held = self.starts[back - 1 - k]
            if held is not None:
                found = found & ~((self.count[read.turns] == k) & (read.sources == held))
        return found


Found = dict[tuple[int, int], tuple[Read, Register, int]]
"""By branch and slot of an operand: its register, and which of the last values it is."""


def registers_of(reads: Sequence[Read], branches: Sequence[Branch], mixture: Mixture, keeps_all: bool) -> Found | None:
    """The registers of all operands that are not local; None if there is an operand for which there is none.

    Registers hold all values where nothing else serves, if `keeps_all`.
    """
    places = _Places(branches, mixture)
    kept = [_kept(read, mixture.turns) for read in reads if read.local]
    reads = [read for read in reads if not read.local]
    sets = [places.of(read.sources[read.earlier]) for read in reads]
    known: dict[frozenset[int], Register] = {}
    found: Found = {}
    left: list[tuple[Read, frozenset[int]]] = []
    for read, own in zip(reads, sets, strict=True):
        for tried in (_connected(own, sets), own):
            register = known.get(tried) or places.register(tried)
            if _take(found, read, register):
                known[tried] = register
                break
        else:
            left.append((read, own))
    if left:
        kept += [_kept(read, mixture.turns) for read, _, _ in found.values()]
    while left:
        still = [(read, own) for read, own in left if not any(_take(found, read, register) for register in kept)]
        if len(still) == len(left):
            break
        kept += [_kept(read, mixture.turns) for read, own in left if (read, own) not in still]
        left = still
    of_all: dict[frozenset[int], Register] = {}
    for read, own in left:
        register = of_all.setdefault(own, places.register(own))
        if not keeps_all or register.numbers(read) is None:
            return None
        register.all = True
        found[read.branch, read.slot] = read, register, 0
    return found


def _kept(read: Read, turns: int) -> Register:
    """The register that keeps what an operand was in the last of its turns."""
    is_set = np.zeros(turns, int)
    is_set[read.turns] = 1
    count = np.cumsum(is_set)
    return Register([], read, read.turns, read.sources, count - is_set if read.local else count)


def _take(found: Found, read: Read, register: Register) -> bool:
    """Let an operand be what a register holds, if it is."""
    back = register.back(read)
    if back is not None:
        register.take_starts(read, back)
        found[read.branch, read.slot] = read, register, back
    return back is not None


def _connected(one: frozenset[int], sets: Sequence[frozenset[int]]) -> frozenset[int]:
    """A set, with all that have something in common with it, and so on."""
    while True:
        more = one.union(*[other for other in sets if one & other])
        if more == one:
            return one
        one = more


class _Places:
    """Numbers for the places of all branches."""

    def __init__(self, branches: Sequence[Branch], mixture: Mixture) -> None:
        self._mixture = mixture
        self._number = np.zeros(mixture.end - mixture.start, np.int64)
        self._places: list[tuple[Branch, int]] = []
        for branch in branches:
            length = branch.after - branch.first
            at = branch.starts[:, None] + np.arange(length) - mixture.start
            self._number[at] = len(self._places) + np.arange(length)
            self._places += [(branch, place) for place in range(length)]

    def of(self, positions: np.ndarray) -> frozenset[int]:
        """The places of some operations."""
        return frozenset(np.unique(self._number[positions - self._mixture.start]).tolist())

    def register(self, places: frozenset[int]) -> Register:
        """The register that these places set."""
        winners = np.full(self._mixture.turns, -1)
        sets = sorted([self._places[k] for k in places], key=lambda one: one[0].first + one[1])
        for branch, place in sets:
            winners[branch.turns] = branch.starts + place
        set_in = np.flatnonzero(winners >= 0)
        count = np.concatenate([[0], np.cumsum(winners >= 0)[:-1]])
        return Register(sets, None, set_in, winners[set_in], count)
