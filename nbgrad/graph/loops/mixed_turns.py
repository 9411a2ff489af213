"""Turns of several kinds: where a few known turns alternate irregularly, such as those of a loop in a loop whose length
differs from turn to turn of the outer one, or turns that take one side of a branch or the other.

In: a `Recording`. Out: `Mixture`s: stretches of it in which each turn is of one of a few kinds. Called by rolling.py.

Turns begin at *marks*: at all operations with certain labels. Of all labels, those are taken that leave the fewest
operations to be said: the different kinds once, and what is in no turn. One label of the innermost loop makes turns of
a loop in a loop: most are one turn of the inner one, some of both. So both sorts of loops are one sequence of kinds.

Kinds begin alike, up to where they take different ways: they form a tree, whose parts are *branches*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np

from .repetition import LEAST_NODES, LEAST_TURNS, Recording

MOST_KINDS = 8
LEAST_TIMES = 3
"""A turn that comes more rarely is no kind: it stays written out."""
MOST_MARKS = 4
"""Labels at which turns begin."""
MOST_TRIED = 24
"""Labels that are tried as marks."""
MOST_SEARCHED = 1 << 14
"""Operations among which marks are looked for."""
MOST_WAYS = 8
MOST_IMPROVED = 3
"""Ways to cut a recording into turns that are tried, and of these such as have several marks."""
PIECE = 8
"""Operations of a piece that comes several times."""
OF_TURN = 8
"""The operations that a turn costs beside its own."""
LENGTHS = (1, 2, 4)
"""How many neighbouring operations are looked at together."""
LONGEST = 4
"""How near an operand is that belongs to what an operation is like."""
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))


@dataclass(eq=False)
class Branch:
    """Operations that turns of some kinds have in common: those of a turn from the `first` to before the `after`-th.

    `turns` are the numbers of these turns, `starts` the positions of the branch's operations in them.
    """

    first: int
    after: int
    parent: Branch | None
    turns: np.ndarray
    starts: np.ndarray


@dataclass(eq=False)
class Mixture:
    """Turns that begin at `begins`, of the kinds `kind_of`."""

    begins: np.ndarray
    end: int
    kind_of: np.ndarray

    @property
    def start(self) -> int:
        """The position of the first operation."""
        return int(self.begins[0])

    @property
    def turns(self) -> int:
        """The number of turns."""
        return len(self.begins)

    def operations(self, recording: Recording) -> int:
        """The number of different operations."""
        return sum(branch.after - branch.first for branch in branches(recording, self))


def mixtures(recording: Recording) -> Iterator[list[Mixture]]:
    """Ways to see stretches of a recording as turns of a few kinds, the one that costs least first."""
    if len(recording.nodes) < LEAST_NODES:
        return
    labels = _Hashes(recording.labels)
    details = [_Hashes(_details(recording, near)) for near in (0, LONGEST)]
    for steps in _Marks(recording.labels, labels, details).ways():
        cuts = np.zeros(0, np.int64)
        for step in steps:
            cuts = step.taken(cuts, labels, details)
        if len(cuts) > LEAST_TURNS:
            cuts = _turned_back(recording, cuts)
            kinds = _split(recording, cuts, _kinds(labels, cuts))
            yield [Mixture(cuts[a:b], int(cuts[b]), kinds[a:b]) for a, b in _runs(kinds, cuts)]


# ----- Where turns begin -----


class _Hashes:
    """Numbers for all pieces of a sequence, equal for equal ones."""

    def __init__(self, values: np.ndarray) -> None:
        count = len(values)
        powers = np.cumprod(np.concatenate([[np.uint64(1)], np.full(count, _FACTOR)]))
        self._inverse = np.cumprod(np.concatenate([[np.uint64(1)], np.full(count, _INVERSE)]))
        self._sums = np.concatenate([[np.uint64(0)], np.cumsum(_mixed(values) * powers[:-1])])
        self.count = count

    def of(self, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The numbers of the pieces from some positions to others."""
        return (self._sums[ends] - self._sums[begins]) * self._inverse[begins]


def _mixed(values: np.ndarray) -> np.ndarray:
    mixed = (values.astype(np.uint64) + np.uint64(1)) * _FACTOR
    return (mixed ^ (mixed >> np.uint64(29))) * _FACTOR


def _details(recording: Recording, nearest: int) -> np.ndarray:
    """A number for each operation: its label, with operands that many operations have, or one of the `nearest`."""
    first, operands = recording.first, recording.operands
    sizes = np.diff(first)
    readers = np.repeat(np.arange(len(sizes)), sizes)
    slots = np.arange(len(operands)) - first[readers]
    times = np.bincount(np.maximum(-1 - operands, 0))
    often = (operands < 0) & (times[np.maximum(-1 - operands, 0)] > LEAST_TURNS)
    near = (operands >= 0) & (readers - operands <= nearest)
    seen = np.where(often, 2 * operands, np.where(near, 2 * (readers - operands) + 1, 0))
    found = _mixed(recording.labels)
    np.add.at(found, readers, _mixed(_mixed(seen) + slots.astype(np.uint64)))
    return found


def _kinds(labels: _Hashes, cuts: np.ndarray) -> np.ndarray:
    """The kind of each turn from one cut to the next; -1 for turns that are of none."""
    _, which, counts = np.unique(labels.of(cuts[:-1], cuts[1:]), return_inverse=True, return_counts=True)
    return _frequent(which, counts)


@dataclass(frozen=True)
class _Step:
    """Further cuts where `length` operations have a hash of their details; if it is 0, none before turns of a hash."""

    length: int
    which: int
    """Which details."""
    hash: Any

    def taken(self, cuts: np.ndarray, labels: _Hashes, details: Sequence[_Hashes]) -> np.ndarray:
        """The cuts after this step."""
        if not self.length:
            return np.delete(cuts, np.flatnonzero(labels.of(cuts[:-1], cuts[1:]) == self.hash))
        hashes = details[self.which]
        begins = np.arange(hashes.count - self.length + 1)
        return np.union1d(cuts, np.flatnonzero(hashes.of(begins, begins + self.length) == self.hash))


class _Marks:
    """The search for the labels at which turns begin, in the middle of a long recording."""

    def __init__(self, labels: np.ndarray, hashes: _Hashes, details: Sequence[_Hashes]) -> None:
        self.first = max(0, (len(labels) - MOST_SEARCHED) // 2)
        self.after = min(len(labels), self.first + MOST_SEARCHED)
        self.labels, self._hashes, self._details = labels, hashes, details

    def ways(self) -> Iterator[list[_Step]]:
        """Steps to cuts that cost much less than all operations; see `_cost`."""
        if not self._repeats():
            return
        tried = self._candidates()
        costs = [self._cost(cuts) for cuts, _ in tried]
        seen: set[bytes] = set()
        for number, first in enumerate(np.argsort(costs, kind="stable")[:MOST_WAYS].tolist()):
            cuts, step = tried[first]
            found = [(cuts, costs[first], list[_Step]())]
            if number < MOST_IMPROVED:
                found.insert(0, self._improved(cuts, costs[first], tried))
            for one, its_cost, more in found:
                if its_cost < 0.5 * (self.after - self.first) and one.tobytes() not in seen:
                    seen.add(one.tobytes())
                    yield [step, *more]

    def _repeats(self) -> bool:
        """Whether most pieces of a few operations come several times: otherwise there are no kinds of turns."""
        begins = np.arange(self.first, self.after - PIECE)
        return len(np.unique(self._hashes.of(begins, begins + PIECE))) * LEAST_TIMES < len(begins)

    def _improved(
        self, cuts: np.ndarray, cost: float, tried: Sequence[tuple[np.ndarray, _Step]]
    ) -> tuple[np.ndarray, float, list[_Step]]:
        """Cuts with further marks, as long as they cost less; then without those that are not needed."""
        steps: list[_Step] = []
        for _ in range(MOST_MARKS - 1):
            found = [np.union1d(cuts, more) for more, _ in tried]
            least, which = min([(self._cost(one), k) for k, one in enumerate(found)])
            if not least < 0.9 * cost:
                break
            cost, cuts = least, found[which]
            steps.append(tried[which][1])
        while True:
            hashes = self._hashes.of(cuts[:-1], cuts[1:])
            kinds = _kinds(self._hashes, cuts)
            removed = [hashes[kinds == kind][0] for kind in range(int(kinds.max(initial=-1)) + 1)]
            found = [np.delete(cuts, np.flatnonzero(hashes == one)) for one in removed]
            least, which = min([(self._cost(one), k) for k, one in enumerate(found) if len(one) > 1], default=(inf, 0))
            if not least < cost:
                return cuts, cost, steps
            cost, cuts = least, found[which]
            steps.append(_Step(0, 0, removed[which]))

    def _candidates(self) -> list[tuple[np.ndarray, _Step]]:
        """The positions of operations that may be marks, and how to find them: most operations first."""
        found: dict[bytes, tuple[np.ndarray, _Step]] = {}
        times: dict[int, int] = {}
        for length in LENGTHS:
            begins = np.arange(self.first, self.after - length + 1)
            for which, details in enumerate(self._details):
                hashes = details.of(begins, begins + length)
                order = np.argsort(hashes, kind="stable")
                edges = np.flatnonzero(np.diff(hashes[order])) + 1
                for places in np.split(order, edges):
                    if len(places) > LEAST_TURNS:
                        times[len(places)] = times.get(len(places), 0) + len(places)
                        one = begins[places], _Step(length, which, hashes[places[0]])
                        # Operations that always follow each other make the same turns.
                        found.setdefault(np.diff(places).tobytes(), one)
        return sorted(found.values(), key=lambda one: -times[len(one[0])])[:MOST_TRIED]

    def _cost(self, cuts: np.ndarray) -> float:
        """The operations that are left to be said, times those that are done, in parts of what was recorded.

        Where there are too many kinds, it is more the longer all of them are together.
        """
        kinds = _kinds(self._hashes, cuts)
        count = self.after - self.first
        left = done = count
        runs = _runs(kinds, cuts)
        if not runs:
            _, at = np.unique(self._hashes.of(cuts[:-1], cuts[1:]), return_index=True)
            return count + float(np.diff(cuts)[at].sum())
        for a, b in runs:
            _, at = np.unique(kinds[a:b], return_index=True)
            begins, lengths = cuts[a:b][at], np.diff(cuts[a : b + 1])[at]
            said = int(lengths.sum()) - (len(at) - 1) * self._common(begins, int(lengths.min()))
            left += said - int(cuts[b] - cuts[a])
            done += (said + OF_TURN) * (b - a) - int(cuts[b] - cuts[a])
        return left * done / count

    def _common(self, begins: np.ndarray, least: int) -> int:
        """The number of labels with which turns from some positions on begin, of the `least` that they have."""
        rows = np.stack([self.labels[begin : begin + least] for begin in begins.tolist()])
        apart = np.flatnonzero((rows != rows[0]).any(0))
        return int(apart[0]) if len(apart) else least


def _frequent(which: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Numbers of kinds, the most frequent ones; -1 for others."""
    order = np.argsort(-counts, kind="stable")[:MOST_KINDS]
    order = order[counts[order] >= LEAST_TIMES]
    numbers = np.full(len(counts), -1)
    numbers[order] = np.arange(len(order))
    return numbers[which]


def _runs(kinds: np.ndarray, cuts: np.ndarray) -> list[tuple[int, int]]:
    """The longest runs of turns of known kinds: the first and the one after the last."""
    edges = np.concatenate([[-1], np.flatnonzero(kinds < 0), [len(kinds)]])
    found = [(int(a) + 1, int(b)) for a, b in pairwise(edges)]
    return [(a, b) for a, b in found if b - a >= LEAST_TURNS and cuts[b] - cuts[a] >= LEAST_NODES]


def _turned_back(recording: Recording, cuts: np.ndarray) -> np.ndarray:
    """The cuts as far before the marks as all turns end alike: what they have in common comes first."""
    labels, first, operands = recording.labels, recording.first, recording.operands
    least = int(np.diff(cuts).min())
    for back in range(1, min(least, int(cuts[0]) + 1)):
        at = cuts - back
        if (labels[at] != labels[at[0]]).any():
            break
        width = int(first[at[0] + 1] - first[at[0]])
        relative = operands[first[at][:, None] + np.arange(width)] - at[:, None]
        near = relative >= back - least
        if (near != near[-1]).any() or (near & (relative != relative[-1])).any():
            break
        cuts = at
        least -= 1
    return cuts


def _split(recording: Recording, cuts: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Kinds of turns that have the same labels, and operands of the same turn in the same places."""
    which, lengths = np.full(len(kinds), -1), np.diff(cuts)
    counts: list[int] = []
    for kind in range(int(kinds.max(initial=-1)) + 1):
        left = np.flatnonzero(kinds == kind)
        left = left[lengths[left] == lengths[left[:1]]]
        while len(left):
            rows = _pattern(recording, cuts[left], int(lengths[left[0]]))
            same = (rows == rows[0]).all(1)
            which[left[same]] = len(counts)
            counts.append(int(same.sum()))
            left = left[~same]
            if len(counts) > 4 * MOST_KINDS:
                return np.full(len(kinds), -1)
    found = np.full(len(kinds), -1)
    found[which >= 0] = _frequent(which[which >= 0], np.array(counts, int))
    return found


def _pattern(recording: Recording, begins: np.ndarray, length: int) -> np.ndarray:
    """A row for each of some turns: the labels, and where operands of the same turn are."""
    labels = recording.labels[begins[:, None] + np.arange(length)]
    relative = operands_at(recording, begins, length) - begins[:, None]
    return np.concatenate([labels, np.where(relative >= 0, relative, -1)], axis=1)


def operands_at(recording: Recording, begins: np.ndarray, length: int) -> np.ndarray:
    """The operands of some operations from each of several positions on, a row for each."""
    return _rows(recording.operands, recording.first, begins, length)


def numbers_at(recording: Recording, begins: np.ndarray, length: int) -> np.ndarray:
    """The numbers of some operations from each of several positions on, a row for each."""
    return _rows(recording.numbers, recording.numbers_from, begins, length)


def _rows(values: np.ndarray, first: np.ndarray, begins: np.ndarray, length: int) -> np.ndarray:
    width = int(first[begins[0] + length] - first[begins[0]])
    return values[first[begins][:, None] + np.arange(width)]


# ----- What kinds have in common -----


def branches(recording: Recording, mixture: Mixture) -> list[Branch]:
    """The tree of the kinds of a mixture, each branch after the one that it leaves."""
    found: list[Branch] = []
    texts = {kind: _text(recording, mixture, kind) for kind in np.unique(mixture.kind_of).tolist()}

    def grow(kinds: list[int], first: int, parent: Branch | None) -> None:
        after = first
        shortest = min(len(texts[kind]) for kind in kinds)
        while after < shortest and all(texts[kind][after] == texts[kinds[0]][after] for kind in kinds):
            after += 1
        if after > first:
            turns = np.flatnonzero(np.isin(mixture.kind_of, kinds))
            parent = Branch(first, after, parent, turns, mixture.begins[turns] + first)
            found.append(parent)
        ways: dict[Any, list[int]] = {}
        for kind in kinds:
            if len(texts[kind]) > after:
                ways.setdefault(texts[kind][after], []).append(kind)
        for way in ways.values():
            grow(way, after, parent)

    grow(list(texts), 0, None)
    return found


def _text(recording: Recording, mixture: Mixture, kind: int) -> Sequence[Any]:
    """The operations of a kind, equal for equal ones: labels, and where operands of the same turn are."""
    turn = int(np.flatnonzero(mixture.kind_of == kind)[0])
    begin = int(mixture.begins[turn])
    end = int(mixture.begins[turn + 1]) if turn + 1 < mixture.turns else mixture.end
    found: list[Any] = []
    for at in range(begin, end):
        low, high = recording.first[at : at + 2]
        operands: Iterable[int] = recording.operands[low:high].tolist()
        found.append((int(recording.labels[at]), *[max(-1, k - begin) for k in operands]))
    return found
