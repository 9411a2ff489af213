"""The user's source lines that the kernels of a program come from, with their operations, bytes and times.

In: the plan of a program, the notes of its recording, and times of its groups. Out: a `Costs`: a `Line` for each line
of the text, the data that flows from one to another, and the lines of each kernel. Called by explain.py.

The nodes of a kernel are those between the arrays that it reads and those that it writes. Each node is counted once,
by the first kernel that computes it. A node comes from the line that has recorded it, or that has recorded the node
that it was made for (graph/loops/origins.py); else from the line of an operand or of the reader.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import NamedTuple

from ..compiler.fuse import HEAVY_WEIGHT, Special
from ..compiler.loops import LIGHT
from ..graph.ir import Node, by_serial
from ..graph.loops.loop_body import LOOP, Body
from ..graph.loops.noted import Notes
from ..graph.window_rows import multiplications
from ..runtime.cpu_plan import SPECIAL_WORK, Plan, Step
from ..runtime.lifetimes import nbytes
from .explain_kernels import cost
from .loop_report import file_name

NEAR = 64
"""Operands that are looked at for the line of a node that nothing else tells."""


class Key(NamedTuple):
    """A line of the text; `derivative` tells whether it is the derivative of the line. Line 0: no line is known."""

    filename: str = ""
    line: int = 0
    function: str = ""
    derivative: bool = False

    @property
    def where(self) -> str:
        """The file and the line."""
        return f"{file_name(self.filename)}:{self.line}" if self.line else "no line"

    @property
    def text(self) -> str:
        """The text of the line."""
        return linecache.getline(self.filename, self.line).strip() if self.line else ""


UNKNOWN = Key()


@dataclass
class Line:
    """The costs of a line: `work` is its part of the model of time, `seconds` of the time that was measured."""

    key: Key
    operations: int = 0
    bytes: int = 0
    kernels: dict[int, None] = field(default_factory=dict)
    work: float = 0.0
    seconds: float = 0.0


@dataclass
class Flow:
    """Data that goes from one line, or an argument, to another: bytes through memory, and bytes in registers."""

    stored: int = 0
    kept: int = 0

    @property
    def total(self) -> int:
        """All bytes."""
        return self.stored + self.kept


@dataclass
class Costs:
    """All lines of a program; `measured` tells whether the seconds are those of its kernels or of the model."""

    lines: dict[Key, Line] = field(default_factory=dict)
    flows: dict[tuple[Key | str, Key | str], Flow] = field(default_factory=dict)
    kernels: list[dict[Key, float]] = field(default_factory=list)
    """Of each kernel, the work of its lines."""
    seconds: list[float] = field(default_factory=list)
    """Of each kernel."""
    key_of: Callable[[Node], Key] = lambda _: UNKNOWN
    measured: bool = False

    def line(self, key: Key) -> Line:
        """The line of a key."""
        return self.lines.setdefault(key, Line(key))

    def ranked(self) -> list[Line]:
        """The lines, those first that take most of the time."""
        return sorted(self.lines.values(), key=lambda line: (-line.seconds, -line.work, line.key))

    def share(self, line: Line) -> float:
        """A line's part of the time of all kernels."""
        total = sum(self.seconds)
        return line.seconds / total if total else 0.0


def keys_by(notes: Notes) -> Callable[[Node], Key | None]:
    """The function from nodes to lines that the notes of a recording tell; None for nodes without a line."""
    known: dict[float, Key | None] = {}

    def key_of(node: Node) -> Key | None:
        serial = node.serial
        if serial not in known:
            found = notes.place_of(serial)
            known[serial] = None
            if found is not None:
                place, derivative = found
                known[serial] = Key(place.code.co_filename, place.line, place.code.co_name, derivative)
        return known[serial]

    return key_of


def operations_of(node: Node) -> int:
    """Operations of numbers in a node: an element each; for sums of products, products and sums."""
    kind = node.primitive.kind
    if kind in ("source", "movement") or node.name in ("cast", "alias", "item", "loop", "stop_gradient", "gather"):
        return 0
    if kind == "reduction":
        return node.inputs[0].size
    return 2 * multiplications(node) or node.size


def line_costs(
    plan: Plan,
    notes: Notes,
    arguments: Sequence[Node],
    groups: Sequence[float] | None,
    total: float,
    names: Sequence[str] = (),
) -> Costs:
    """The lines of a plan's kernels.

    Parameters
    ----------
    plan : Plan
    notes : Notes
        Those of the recording.
    arguments : sequence of nodes
        The leaves that calls give.
    groups : sequence of float or None
        Measured seconds of each group.
    total : float
        Seconds of a call, which the model divides where groups are not measured.
    names : sequence of str
        Those of arguments.
    """
    return _Reader(plan, notes, arguments, names).run(groups, total)


class _Reader:
    """Goes through the kernels of a plan."""

    def __init__(self, plan: Plan, notes: Notes, arguments: Sequence[Node], given: Sequence[str]) -> None:
        names = chain(given, repeat(""))
        self.plan, self.noted = plan, keys_by(notes)
        self.names = dict(zip(plan.bases, map(_name, arguments, range(len(arguments)), names), strict=False))
        self.costs = Costs(measured=False, key_of=self.key)
        self.seen: set[Node] = set()
        self.known: dict[Node, Key] = {}
        self.flowed: set[tuple[Node, Key | str]] = set()

    def run(self, groups: Sequence[float] | None, total: float) -> Costs:
        costs, plan = self.costs, self.plan
        for number, step in enumerate(plan.steps):
            work = self._step(step, number)
            costs.kernels.append(work)
            for key, part in work.items():
                line = costs.line(key)
                line.work += part
                line.kernels[number] = None
        costs.measured = groups is not None
        whole = sum(sum(work.values()) for work in costs.kernels) or 1.0
        number = 0
        for position, group in enumerate(plan.groups):
            kernels = costs.kernels[number : number + len(group.steps)]
            number += len(group.steps)
            together = sum(sum(work.values()) for work in kernels)
            seconds = total * together / whole if groups is None else groups[position]
            for work in kernels:
                own = seconds * sum(work.values()) / together if together else seconds / len(kernels)
                costs.seconds.append(own)
                for key, part in work.items():
                    costs.line(key).seconds += own * part / (sum(work.values()) or 1.0)
        outputs = 2 + len(plan.bases)
        for node, place in plan.places.items():
            if place.base >= outputs:
                self._flow(node, f"result {place.base - outputs}", True)
        return costs

    def key(self, node: Node, reader: Key = UNKNOWN) -> Key:
        """The line of a node."""
        known = self.known.get(node)
        if known is not None:
            return known
        waiting = [node]
        for one in waiting:
            found = self.noted(one)
            if found is not None:
                self.known[node] = found
                return found
            if len(waiting) < NEAR:
                waiting += [source for source in one.inputs if source not in waiting]
        if reader is not UNKNOWN:
            self.known[node] = reader
        return reader

    # ----- Kernels -----

    def _step(self, step: Step, number: int) -> dict[Key, float]:
        """The work of each line in a kernel."""
        kernel = step.kernel
        if step.turns is not None:
            assert isinstance(kernel, Special)
            body, turns, _ = kernel.node.params
            work = self._body(body, turns, kernel.node.inputs)
            whole = sum(work.values()) or 1.0
            moved = cost(step)[0]
            for key, part in work.items():
                self.costs.line(key).bytes += round(moved * part / whole)
            main = max(work, key=lambda key: work[key], default=UNKNOWN)
            for node in kernel.targets:
                self.known[node] = main
            return work or {UNKNOWN: 1.0}
        work: dict[Key, float] = {}
        nodes = self._nodes(kernel.targets, set(kernel.reads))
        for node, key in nodes.items():
            self.costs.line(key).operations += operations_of(node)
            work[key] = work.get(key, 0.0) + _work(node)
        for node in dict.fromkeys(kernel.buffers):
            key = self.key(node) if node in kernel.targets else self.readers.get(node, UNKNOWN)
            size = nbytes(node)
            self.costs.line(key).bytes += size
            work[key] = work.get(key, 0.0) + size / 2
        return work

    def _nodes(self, targets: Iterable[Node], given: set[Node]) -> dict[Node, Key]:
        """The nodes that a kernel is the first to compute, and the line of each; `readers` gets the lines that read its
        arrays."""
        found: dict[Node, Key] = {}
        self.readers: dict[Node, Key] = {}
        waiting = list(dict.fromkeys(targets))
        visited: set[Node] = set()
        reader_of: dict[Node, Key] = {}
        for node in waiting:
            if node in visited:
                continue
            visited.add(node)
            key = self.key(node, reader_of.get(node, UNKNOWN))
            if node.primitive.kind == "movement":
                # A movement costs nothing: its reader has the cost.
                key = reader_of.get(node, key)
            elif node not in self.seen:
                self.seen.add(node)
                found[node] = key
            for source in node.inputs:
                reader_of.setdefault(source, key)
                if source in given or source in self.plan.places or source.primitive.kind == "source":
                    self.readers.setdefault(source, key)
                    self._flow(source, key, True)
                else:
                    if source.primitive.kind != "movement":
                        self._flow(source, key, False)
                    waiting.append(source)
        return found

    def _flow(self, source: Node, key: Key | str, stored: bool, times: int = 1) -> None:
        """Note data that a line, or the caller, gets."""
        if source.name == "literal" or source.dtype.kind == "O" or (source, key) in self.flowed:
            return
        self.flowed.add((source, key))
        start: Key | str
        if source.inputs:
            start = self.key(source)
        elif source in self.names:
            start = self.names[source]
        else:
            return
        if start == key:
            return
        flow = self.costs.flows.setdefault((start, key), Flow())
        if stored:
            flow.stored += times * nbytes(source)
        else:
            flow.kept += times * nbytes(source)

    # ----- Loops -----

    def _body(self, body: Body, turns: int, outside: Sequence[Node]) -> dict[Key, float]:
        """The work of each line in all turns of a loop, whose operations are counted."""
        work: dict[Key, float] = {}
        given = dict(zip(body.inputs, outside, strict=True))
        before = dict(zip(body.carried, body.following, strict=True))
        for node in by_serial([*body.following, *body.results], set(body.inputs)):
            if node.primitive is LOOP:
                inner, repeated, _ = node.params
                for key, part in self._body(inner, turns * repeated, node.inputs).items():
                    work[key] = work.get(key, 0.0) + part
                continue
            operations = turns * operations_of(node)
            if operations:
                key = self.key(node)
                for source in map(_moved, node.inputs):
                    if source in given:
                        self._flow(_moved(given[source]), key, True)
                    if source in before or source not in given:
                        self._flow(before.get(source, source), key, False, turns)
                self.costs.line(key).operations += operations
                work[key] = work.get(key, 0.0) + turns * _work(node)
        return work


def _name(argument: Node, number: int, name: str) -> str:
    """The name of an argument, or of a Parameter."""
    parameter = argument.owner() if argument.owner is not None else None
    return name or f"argument {number}" if parameter is None else str(getattr(parameter, "name", "a Parameter"))


def _moved(node: Node) -> Node:
    """The node that a chain of movements moves."""
    while node.primitive.kind == "movement":
        node = node.inputs[0]
    return node


def _work(node: Node) -> float:
    """The work of a node in the model of cpu_plan.py: operations, by the width of their results."""
    operations = operations_of(node)
    if node.primitive.kind == "special":
        return operations * (1 if multiplications(node) else SPECIAL_WORK)
    light = node.name in LIGHT or node.primitive.kind == "reduction"
    return operations * (1 if light else HEAVY_WEIGHT) * node.dtype.itemsize / 4


def lines_table(costs: Costs, most: int) -> list[str]:
    """The lines that take most of the time, as text."""
    ranked = [line for line in costs.ranked() if line.operations or line.seconds > 0]
    lines = ["lines, by their share of the time:"]
    for line in ranked[:most]:
        key, count = line.key, len(line.kernels)
        said = " (derivative)" if key.derivative else ""
        lines.append(
            f"  {costs.share(line):4.0%}  {key.where}{said}: {line.operations:,} operations, {line.bytes:,} bytes, "
            f"{count} kernel{'s' if count != 1 else ''}{key.text and ': '}{key.text}"
        )
    if len(ranked) > most:
        lines.append(f"  and {len(ranked) - most} further lines")
    return lines
