"""Alignment: how the operands of a repetition change from turn to turn, and where it breaks.

In: a repetition of repetition.py. Out: `Stretch`es of turns in which each operand is of one kind. Called by rolling.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .repetition import LEAST_NODES, LEAST_TURNS, Recording

SAME, CONSTANT, VARYING = 0, -1, -2
"""Kinds of operands: of the same turn; one value for all turns; another value in each. A positive kind is the number of
turns since the operand was made."""
LONGEST_WAY = 8
"""The most turns that a value is carried through before it is read."""


@dataclass
class Stretch:
    """Turns from `start` on, all alike: for each operand of a turn its kind, and the place in its turn if it has one.

    `operands` and `numbers` have a row for each turn.
    """

    start: int
    period: int
    turns: int
    kinds: list[int]
    places: list[int]
    operands: np.ndarray
    numbers: np.ndarray

    @property
    def end(self) -> int:
        """The position after the last operation."""
        return self.start + self.period * self.turns

    def without_last(self) -> Stretch:
        """This stretch without the last turn."""
        operands, numbers = self.operands[:-1], self.numbers[:-1]
        return Stretch(self.start, self.period, self.turns - 1, self.kinds, self.places, operands, numbers)

    def cut_at(self, turns: Sequence[int]) -> list[Stretch]:
        """The parts between some turns; those that are too short are left out."""
        found: list[Stretch] = []
        for first, after in pairwise([0, *turns, self.turns]):
            if after - first >= LEAST_TURNS:
                rows, start = slice(first, after), self.start + self.period * first
                operands, numbers = self.operands[rows], self.numbers[rows]
                found.append(Stretch(start, self.period, after - first, self.kinds, self.places, operands, numbers))
        return found


def stretches(recording: Recording, start: int, period: int, turns: int) -> Iterator[Stretch]:
    """The stretches of a repetition in which the turns are alike."""
    if turns < LEAST_TURNS:
        return
    operands = recording.operands_of(start, period, turns)
    begins = start + period * np.arange(turns)[:, None]
    relative = operands - begins
    kinds, steps = _kinds(operands, relative, start, period)
    cuts = _cuts(operands, relative, kinds, steps, start, period)
    for first, after in pairwise(cuts):
        count = after - first
        if count < LEAST_TURNS or count * period < LEAST_NODES:
            continue
        rows = slice(first, after)
        if _is_aligned(operands[rows], relative[rows], kinds, steps, start + period * first):
            begin = start + period * first
            numbers = recording.numbers_of(begin, period, count)
            places = (steps % period).tolist()
            yield Stretch(begin, period, count, kinds.tolist(), places, operands[rows], numbers)


def _kinds(operands: np.ndarray, relative: np.ndarray, start: int, period: int) -> tuple[np.ndarray, np.ndarray]:
    """For each operand its kind, and its position relative to the beginning of its reader's turn."""
    steady = (operands[1:] == operands[:-1]).sum(0)
    moving = ((relative[1:] == relative[:-1]) & (operands[1:] >= start)).sum(0)
    least = len(operands) // 2
    steps = relative[len(operands) // 2].copy()
    for k in np.flatnonzero((moving >= least) & (moving < len(operands) - 1 - LONGEST_WAY)):
        steps[k] = Counter(relative[operands[:, k] >= start, k].tolist()).most_common(1)[0][0]
    turns_back = -(steps // period)
    kinds = np.where(steady >= np.maximum(moving, least), CONSTANT, np.where(moving >= least, turns_back, VARYING))
    return kinds, steps


def _cuts(
    operands: np.ndarray, relative: np.ndarray, kinds: np.ndarray, steps: np.ndarray, start: int, period: int
) -> list[int]:
    """The turns at which a stretch must begin, and the number of turns."""
    turns = len(operands)
    cuts = {0, turns}
    for k in np.flatnonzero(kinds >= SAME):
        odd = np.flatnonzero(relative[:, k] != steps[k])
        cuts.update(odd[odd >= kinds[k]].tolist())
        if kinds[k] == SAME:
            cuts.update((odd + 1).tolist())
    for k in np.flatnonzero(kinds < SAME):
        inside = operands[operands[:, k] >= start, k]
        cuts.update(((inside - start) // period + 1).tolist())
        if kinds[k] == CONSTANT:
            cuts.update((np.flatnonzero(operands[1:, k] != operands[:-1, k]) + 1).tolist())
    return sorted(cut for cut in cuts if cut <= turns)


def _is_aligned(operands: np.ndarray, relative: np.ndarray, kinds: np.ndarray, steps: np.ndarray, start: int) -> bool:
    """Whether all operands of some turns are as their kinds say; `start` is where the first of these begins."""
    for k, kind in enumerate(kinds.tolist()):
        if kind > LONGEST_WAY:
            return False
        if kind >= SAME:
            good = (relative[kind:, k] == steps[k]).all() and (operands[:kind, k] < start).all()
        elif kind == CONSTANT:
            good = operands[0, k] < start and (operands[:, k] == operands[0, k]).all()
        else:
            good = (operands[:, k] < start).all()
        if not good:
            return False
    return True
