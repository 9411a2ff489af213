"""The loops of the user's source text that recorded operations come from, turn by turn.

In: `Notes` of a recording. Out: `Run`s: for each time that a `for` or a `while` of the text ran, where its turns begin
among the recorded operations. Called by loop_report.py. Python says only which instruction recorded an operation; a new
turn is where that goes back in the text, or from one branch of an `if` to the other. Text that cannot be read, such as
that of the prompt, has no loops.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..graph.loops.noted import Notes, Place

Position = tuple[tuple[int, int], ...]
"""Where in a turn: the lines of statements, each with the branch that was taken, and the instruction; so in the loop's
function, then in those that it calls, up to a loop inside."""


@dataclass(frozen=True)
class SourceLoop:
    """A loop of the text: the lines of its function's file."""

    filename: str
    function: str
    first: int
    last: int


@dataclass
class Run:
    """A loop that ran: its turns begin at `starts` among the noted operations, and it ends before `end`."""

    loop: SourceLoop
    starts: list[int]
    end: int = 0
    positions: set[Position] = field(default_factory=set)

    def turns(self) -> list[range]:
        """The operations of each turn."""
        return [range(a, b) for a, b in zip(self.starts, [*self.starts[1:], self.end], strict=True)]


def source_runs(notes: Notes) -> list[Run]:
    """All loops of the text that ran, in the order of their beginnings."""
    chains = [_chain(stack) for stack in notes.stacks]
    found: list[Run] = []
    open_: list[tuple[Run, Position]] = []
    for number, stack in enumerate(notes.stack_of):
        chain = chains[stack]
        for depth, (loop, position) in enumerate(chain):
            if depth < len(open_) and open_[depth][0].loop == loop:
                run, last = open_[depth]
                if _goes_back(last, position):
                    run.starts.append(number)
                    del open_[depth + 1 :]
            else:
                run = Run(loop, [number])
                found.append(run)
                del open_[depth:]
                open_.append((run, position))
            open_[depth] = run, position
            run.end = number + 1
            run.positions.add(position)
        del open_[len(chain) :]
    for run in found:
        if len(run.positions) == 1:
            # One instruction, again and again: each of its operations that is the first one's may be a turn.
            names = [notes.labels[label][0] for label in notes.label_of[run.starts[0] : run.end]]
            run.starts = [run.starts[0] + k for k, name in enumerate(names) if name == names[0]]
    return found


def _goes_back(last: Position, now: Position) -> bool:
    """Whether an operation belongs to a later turn than the one before."""
    for (line, branch), (other, taken) in zip(last, now, strict=False):
        if line != other:
            return other < line
        if branch != taken:
            return True
    return False


def _chain(stack: tuple[Place, ...]) -> list[tuple[SourceLoop, Position]]:
    """The loops around an operation, from the outermost, and where it is in a turn of each."""
    steps: list[tuple[tuple[int, int], SourceLoop | None]] = []
    for place in stack:
        path = _path(place.code.co_filename, place.line)
        for depth, statement in enumerate(path):
            inside = path[depth + 1] if depth + 1 < len(path) else None
            branch = int(isinstance(statement, ast.If) and inside in statement.orelse)
            steps.append(((statement.lineno, branch), _loop(statement, place)))
        if path and _loop(path[-1], place) is not None:
            # The head of the loop comes before its statements.
            steps.append(((0, 0), None))
        steps.append(((place.position, 0), None))
    found: list[tuple[SourceLoop, Position]] = []
    for k, (_, loop) in enumerate(steps):
        if loop is not None:
            inner = next((j for j in range(k + 1, len(steps)) if steps[j][1] is not None), len(steps))
            found.append((loop, tuple([where for where, _ in steps[k + 1 : inner + 1]])))
    return found


def _loop(statement: ast.stmt, place: Place) -> SourceLoop | None:
    """A statement as a loop, if it is one."""
    if not isinstance(statement, ast.For | ast.While):
        return None
    last = statement.end_lineno or statement.lineno
    return SourceLoop(place.code.co_filename, place.code.co_name, statement.lineno, last)


def _path(filename: str, line: int) -> list[ast.stmt]:
    """The statements around a line that are in the same function, from the outermost."""
    node: ast.AST | None = _tree(filename)
    found: list[ast.stmt] = []
    while node is not None:
        node = next((one for one in _statements(node) if one.lineno <= line <= (one.end_lineno or 0)), None)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found = []
        elif isinstance(node, ast.stmt):
            found.append(node)
    return found


def _statements(node: ast.AST) -> Iterator[Any]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.excepthandler | ast.match_case):
            yield from _statements(child)


@functools.lru_cache(maxsize=32)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _tree(filename: str) -> ast.Module | None:
    lines = linecache.getlines(filename)
    return _parsed("".join(lines)) if lines else None
