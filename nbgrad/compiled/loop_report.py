"""The loops of a recording in words: those that were found, and why others were not.

In: `Notes` of a recording. Out: lines of text, none for functions without loops. Called by explain.py.

A loop of the text was found if its turns are inside of what became a loop of the graph. Otherwise each turn is compared
with the next one, for what rolling.py needs: as many turns and operations as pay, the same operations with the same
shapes, and operands in the same places.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from ..graph.loops.alignment import LONGEST_WAY
from ..graph.loops.noted import MOST_NOTED, NotedLoop, Notes, Place
from ..graph.loops.repetition import LEAST_NODES, LEAST_TURNS
from ..graph.loops.scanned_parts import LARGEST_PART
from .source_loops import Run, SourceLoop, source_runs

MOST_COMPARED = 1000
"""Turns that are compared."""
FEW = LONGEST_WAY + 2
"""Turns at the ends of a loop that may stay written out."""
VERBS = {"add": "adds", "subtract": "subtracts", "multiply": "multiplies by", "divide": "divides by"}
Difference = tuple[str, int]
"""How a turn differs from the one before, and the operation at which it does."""


def loop_report(notes: Notes) -> list[str]:
    """Lines about the loops of a recording."""
    runs = source_runs(notes)
    found, missed = _found(notes), _missed(notes, runs)
    alone = _alone(notes, 0, len(notes.serials))
    lines = ["loops found while recording:", *found] if found else []
    if missed:
        lines += ["loops written out:", *missed]
    elif alone >= LEAST_NODES and not found:
        lines.append(f"no loop: no repetition found in {alone:,} operations")
    elif alone >= LEAST_NODES:
        lines.append(f"in no loop: {alone:,} operations")
    if len(notes.serials) >= MOST_NOTED:
        lines.append(f"only the first {MOST_NOTED:,} operations were looked at")
    return lines


# ----- Loops of the graph -----


def _found(notes: Notes) -> list[str]:
    """A line for each group of equal loops, inner ones below and further to the right."""
    groups: dict[tuple[str, int], list[NotedLoop]] = {}
    for loop in notes.loops:
        if not loop.moves and loop.second > loop.start:
            groups.setdefault((_lines_of(notes, loop), loop.second - loop.start), []).append(loop)
    lines: list[str] = []

    def show(around: tuple[str, int] | None, indent: str) -> None:
        for key in sorted(groups, key=lambda key: groups[key][0].start):
            if parents[key] == around:
                lines.append(f"{indent}{key[0]}: {_turns(key[1], groups[key])}")
                show(key, indent + "  ")

    parents = {key: _parent(key, groups) for key in groups}
    show(None, "  ")
    return lines


def _turns(size: int, loops: Sequence[NotedLoop]) -> str:
    turns = sorted({loop.turns for loop in loops})
    many = f"{turns[0]:,}" if len(turns) == 1 else f"{turns[0]:,} to {turns[-1]:,}"
    times = f", {len(loops):,} times" if len(loops) > 1 else ""
    one = loops[0]
    if one.kinds > 1:
        sizes = f"{one.least:,} operations" if one.least == one.most else f"{one.least:,} to {one.most:,} operations"
        return f"{many} turns of {one.kinds} kinds, {sizes}{times}"
    size = one.most or size
    return f"{many} turns of {size:,} operation{'s' if size != 1 else ''}{times}"


def _parent(key: tuple[str, int], groups: Mapping[tuple[str, int], Sequence[NotedLoop]]) -> tuple[str, int] | None:
    """The group of the smallest turns around most loops of a group."""
    around: list[tuple[str, int]] = []
    for other, loops in groups.items():
        if other[1] > key[1]:
            inside = sum(any(o.start <= one.start and one.end <= o.end for o in loops) for one in groups[key])
            if 2 * inside > len(groups[key]):
                around.append(other)
    return min(around, key=lambda other: other[1], default=None)


def _lines_of(notes: Notes, loop: NotedLoop) -> str:
    """The lines of a turn, in the outermost function in which they are not all the same."""
    stacks = [notes.stacks[k] for k in sorted(set(notes.stack_of[loop.start : loop.second]))]
    level: list[Place] = []
    for depth in range(min(map(len, stacks))):
        level = [stack[depth] for stack in stacks]
        if len({(place.code, place.line) for place in level}) > 1:
            break
    code = level[0].code
    lines = [place.line for place in level if place.code is code]
    return _where(SourceLoop(code.co_filename, code.co_name, min(lines), max(lines)))


def _where(loop: SourceLoop) -> str:
    lines = f"{loop.first}-{loop.last}" if loop.last > loop.first else f"{loop.first}"
    return f"{file_name(loop.filename)}:{lines} ({loop.function})"


def file_name(path: str) -> str:
    """The name of a file; a notebook's cells have files of their own, whose names say nothing."""
    folder, name = os.path.split(path)
    return "cell" if os.path.basename(folder).startswith("ipykernel_") else name


def _alone(notes: Notes, start: int, end: int) -> int:
    """How many operations of a range are in no loop."""
    count, last = end - start, start
    for loop in sorted(notes.loops, key=lambda loop: loop.start):
        count -= max(0, min(loop.end, end) - max(last, loop.start))
        last = max(last, loop.end)
    return count


# ----- Loops of the text that stay written out -----


def _missed(notes: Notes, runs: Sequence[Run]) -> list[str]:
    """A line for each loop of the text whose turns are in no loop of the graph."""
    longest: dict[SourceLoop, tuple[int, Run]] = {}
    for run in runs:
        rolled = _rolled(notes, run)
        apart = len(run.starts) - 1 - rolled
        if len(run.starts) > 1 and (apart > FEW or rolled == 0) and apart > longest.get(run.loop, (0, run))[0]:
            longest[run.loop] = apart, run
    return [f"  {_where(loop)}: {_reason(notes, run, apart)}" for loop, (apart, run) in longest.items()]


def _rolled(notes: Notes, run: Run) -> int:
    """How many turns begin inside of a loop of the graph."""
    inside: set[int] = set()
    for loop in notes.loops:
        inside.update(range(bisect_right(run.starts, loop.start), bisect_left(run.starts, loop.end)))
    return len(inside - {0})


def _reason(notes: Notes, run: Run, apart: int) -> str:
    """Why turns of a loop are written out."""
    turns, operations = run.turns(), run.end - run.starts[0]
    many = f"{len(turns):,} turns"
    if apart + 1 < len(turns):
        many = f"{apart:,} of {many}"
    if len(turns) < LEAST_TURNS:
        return f"{many}, fewer than {LEAST_TURNS}"
    if operations < LEAST_NODES:
        return f"{many} of {operations:,} operations together, fewer than {LEAST_NODES}"
    inner = [loop for loop in notes.loops if run.starts[0] <= loop.start and loop.end <= run.end]
    rest = _alone(notes, run.starts[0], run.end)
    if inner and apart + 1 == len(turns) and rest + len(inner) < LEAST_NODES:
        loops = f"{len(inner):,} loop{'s' if len(inner) > 1 else ''}"
        return f"{many} of {rest:,} operations and {loops} together, fewer than {LEAST_NODES}"
    found: list[tuple[int, Difference]] = []
    for number in range(1, min(len(turns), MOST_COMPARED)):
        difference = _difference(notes, turns, number)
        if difference is not None:
            found.append((number, difference))
    if not found:
        return f"{many}, no reason is known"
    kind = Counter(kind for _, (kind, _) in found).most_common(1)[0][0]
    number, (_, at) = next(one for one in found if one[1][0] == kind)
    often = 2 * sum(one[1][0] == kind for one in found) >= min(len(turns), MOST_COMPARED) - 1
    return f"{many}, {_sentence(notes, kind, at, number + 1, often)}: line {_line(notes, run, at)}"


def _sentence(notes: Notes, kind: str, at: int, turn: int, often: bool) -> str:
    """How turns differ; often: most of them do."""
    if kind in ("shape", "dtype"):
        return f"{kind}s vary" if often else f"turn {turn} has another {kind}"
    if kind == "way":
        return "turns take different ways" if often else f"turn {turn} takes another way"
    if kind == "large":
        return f"turns read different arrays of more than {LARGEST_PART} elements"
    name = notes.labels[notes.label_of[at]][0]
    verb = VERBS.get(name, f"gives {name}")
    return f"{'each turn' if often else f'turn {turn}'} {verb} a different operand"


def _lines(notes: Notes, operation: int) -> list[tuple[str, int]]:
    """The lines of all functions that run while an operation is recorded."""
    return [(place.code.co_name, place.line) for place in notes.stacks[notes.stack_of[operation]]]


def _line(notes: Notes, run: Run, at: int) -> str:
    """The line of an operation; with its file, if that is another one than the loop's."""
    place = notes.stacks[notes.stack_of[at]][-1]
    filename = place.code.co_filename
    return str(place.line) if filename == run.loop.filename else f"{place.line} of {file_name(filename)}"


def _difference(notes: Notes, turns: Sequence[range], number: int) -> Difference | None:
    """How a turn differs from the one before."""
    before, now = turns[number - 1], turns[number]
    for old, new in zip(before, now, strict=False):
        if notes.stack_of[old] != notes.stack_of[new] and _lines(notes, old) != _lines(notes, new):
            return "way", new
        one, other = notes.labels[notes.label_of[old]], notes.labels[notes.label_of[new]]
        if one != other:
            kinds = ("way", "shape", "dtype", "shape")
            return next(kind for kind, a, b in zip(kinds, one, other, strict=True) if a != b), new
    if len(before) != len(now):
        return "way", (before if len(before) > len(now) else now)[min(len(before), len(now))]
    for old, new in zip(before, now, strict=True):
        kind = _operand_difference(notes, turns, number, old, new)
        if kind:
            return kind, new
    return None


def _operand_difference(notes: Notes, turns: Sequence[range], number: int, old: int, new: int) -> str:
    """Whether an operand of an operation is elsewhere than in the turn before: "operand", or "large" if it is read."""
    first = turns[0].start
    for a, b in zip(_operands(notes, old), _operands(notes, new), strict=True):
        if a == b or (a < 0 and b < 0):
            continue
        x, y = _position(notes, a), _position(notes, b)
        if x is not None and y is not None and x >= first and y >= first:
            if turns[number - 1].start - x != turns[number].start - y:
                return "operand"
        elif (x is None or x < first) and (y is None or y < first):
            if prod(notes.labels[notes.label_of[new]][1]) > LARGEST_PART:
                return "large"
        elif number > LONGEST_WAY:
            # Before that, values that are carried begin with something from outside.
            return "operand"
    return ""


def _operands(notes: Notes, operation: int) -> Sequence[float]:
    return notes.operands[notes.first[operation] : notes.first[operation + 1]]


def _position(notes: Notes, serial: float) -> int | None:
    """The operation with a serial number."""
    position = bisect_left(notes.serials, serial)
    return position if position < len(notes.serials) and notes.serials[position] == serial else None
