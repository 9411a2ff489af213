"""Memory budgets: how much of what loops store is computed again, so that a program stays within so many bytes.

In: a `Budget` and the graph of a program. Out: a plan that fits, with the schedule of each tape
(graph/loops/segments.py), or an error that names the smallest figure. Called by cpu_program.py.

The program is planned as it is; as long as it needs too much, the tape that takes the most memory gets its next
schedule, which stores less and repeats more. The plan tells the memory, not an estimate. Nothing is compiled meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import ArgumentError, OutOfMemoryError
from ..graph.ir import Node
from ..graph.loops.segments import Key, Schedule, Tape, tapes
from .tape_files import check_folder

UNITS = {"": 1, "b": 1, **{f"{letter}b": 1000**k for k, letter in enumerate("kmgt", 1)}}
UNITS |= {f"{letter}ib": 1024**k for k, letter in enumerate("kmgt", 1)}


NO_ROOM = 1 << 62
"""Bytes of a program whose file is too large for the disk."""


@dataclass(frozen=True)
class Budget:
    """The bytes that intermediates and results of a call may take, and the folder for checkpoints, if they go there."""

    size: int
    offload: str | None = None


def budget_of(memory: Any, offload: Any = None) -> Budget | None:
    """A user's budget; None for none.

    Raises
    ------
    ArgumentError
        If it is no size.

    Examples
    --------
    >>> budget_of("1.5 MB").size, budget_of("2 KiB").size, budget_of(300).size
    (1500000, 2048, 300)
    """
    if memory is None:
        if offload is not None:
            message = 'offload= needs a budget beside it, such as memory="2 GB".'
            raise ArgumentError(message)
        return None
    size = 0
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*", memory)
        size = int(float(found[1]) * UNITS.get(found[2].lower(), 0)) if found else 0
    elif isinstance(memory, int) and not isinstance(memory, bool):
        size = memory
    if size <= 0:
        message = f'memory is a number of bytes or a text such as "10 MB" or "2 GiB", above zero, but got {memory!r}.'
        raise ArgumentError(message)
    return Budget(size, None if offload is None else check_folder(offload))


def smallest(budgets: Iterable[Budget | None]) -> Budget | None:
    """The budget that all others are met with."""
    return min([budget for budget in budgets if budget is not None], key=lambda one: one.size, default=None)


@dataclass
class Scheduled:
    """A tape with its schedule, for `explain`."""

    tape: Tape
    schedule: Schedule

    def __str__(self) -> str:
        turns, (carried, given) = self.tape.turns, (self.tape.carried, self.tape.given)
        stored = self.schedule.stored(turns, carried, given)
        repeated = self.schedule.repeated(turns)
        parts = []
        if self.schedule.lengths:
            lengths = ", ".join(f"{length:,}" for length in self.schedule.lengths)
            kept = f", everything of the last {self.schedule.cut(turns)[1]:,}" if self.schedule.kept else ""
            parts.append(f"checkpoints every {lengths} turns{kept}")
        if self.schedule.again:
            parts.append("only carried values kept")
        how = "; ".join(parts) or "everything kept"
        return (
            f"loop of {turns:,} turns: {how}; {stored:,} bytes stored instead of {turns * given:,}, {repeated:,} turns "
            f"done again ({repeated / max(turns, 1):.2f} of all)"
        )


def fitted(budget: Budget, graph: Sequence[Node], needs: Callable[[Mapping[Key, Schedule]], int]) -> list[Scheduled]:
    """The schedules of a graph's tapes with which it fits; those of the last plan that was made.

    Parameters
    ----------
    budget : Budget
    graph : sequence of nodes
        Simplified.
    needs : callable
        Plans the program with schedules; gives the bytes that this needs, or NO_ROOM.

    Raises
    ------
    OutOfMemoryError
        If nothing fits.
    """
    known = {tape.key: tape for tape in tapes(graph)}
    options = {key: tape.schedules() for key, tape in known.items()}
    chosen = {key: one.pop(0) for key, one in options.items()}
    found = least = needs(chosen)
    while found > budget.size:
        further = [key for key, one in options.items() if one]
        if not further:
            raise _too_much(budget, least)
        largest = max(further, key=lambda key: _stored(known[key], chosen[key]))
        chosen[largest] = options[largest].pop(0)
        found = needs(chosen)
        least = min(least, found)
    for key in sorted(known, key=lambda key: -chosen[key].repeated(known[key].turns)):
        if chosen[key].lengths and not chosen[key].even:
            found = _keep_more(budget, known[key], chosen, found, needs)
    return [Scheduled(known[key], chosen[key]) for key in known]


def _stored(tape: Tape, schedule: Schedule) -> int:
    return schedule.stored(tape.turns, tape.carried, tape.given)


def _keep_more(
    budget: Budget,
    tape: Tape,
    chosen: dict[Key, Schedule],
    found: int,
    needs: Callable[[Mapping[Key, Schedule]], int],
) -> int:
    """Let the memory that is left be of use: keep everything of as many turns at the end as there is room for."""
    before = chosen[tape.key]
    count, rest = before.cut(tape.turns)
    given = max(1, tape.carried if before.again else tape.given)
    room = (budget.size - found + _stored(tape, before) - count * tape.carried) // given
    for kept in (room, room * 3 // 4, room // 2):
        if kept <= 2 * rest or tape.turns - kept < 2:
            break
        chosen[tape.key] = replace(before, kept=kept)
        now = needs(chosen)
        if now <= budget.size:
            return now
    if chosen[tape.key] != before:
        chosen[tape.key] = before
        needs(chosen)
    return found


def _too_much(budget: Budget, least: int) -> OutOfMemoryError:
    if least == NO_ROOM:
        message = f"There is no room on the disk for checkpoints in {budget.offload}. Give another folder as offload=."
        return OutOfMemoryError(message)
    message = (
        f"memory={budget.size:,} bytes are too few: the intermediates and results of a call need at least {least:,} "
        f"bytes. Give memory={least} or more; what is stored outside of loops, nb.checkpoint can save."
    )
    return OutOfMemoryError(message)
