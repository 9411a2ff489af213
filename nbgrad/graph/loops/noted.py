"""Notes of a recording for `explain`: which lines have recorded each operation, and which operations became loops.

In: every node, while a `noting` block is open, and the turns that rolling.py and growth.py put into loops. Out: a
`Notes`: flat arrays, which keep no node alive, so that the recording finds the same loops as without them. Called by
compiled/explain.py, through trace.py; usual recordings only ask once for each recording and each loop.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

from ...errors import is_installed, is_internal
from ..ir import Node
from .alignment import Stretch
from .mixed_turns import Mixture
from .origins import Origins, current, leave_notes, take_notes
from .repetition import SLICE, Recording, atom_key, fixed_part, is_source

MOST_NOTED = 2_000_000
"""Operations of which something is noted; of later ones only that they are turns of a loop."""


@dataclass(frozen=True)
class Place:
    """One instruction of a user's function, and its line."""

    code: CodeType
    position: int
    line: int


@dataclass
class NotedLoop:
    """Operations from `start` to `end` of the notes became a loop; its second turn begins at `second`.

    If it `moves`, elements are only moved, those of all turns at once. If its turns are of several `kinds`, `second` is
    its end, and turns have from `least` to `most` operations.
    """

    start: int
    second: int
    end: int
    turns: int
    moves: bool = False
    kinds: int = 1
    least: int = 0
    most: int = 0


class Notes(Origins):
    """The operations that were recorded inside of the frame `base`.

    Of each operation there is its serial number, the place of the user's code that it comes from (a number of `stacks`:
    the places of all functions that run, the outermost first), a label (a number of `labels`) and operands, which begin
    at `first`. An operand is a serial number; numbers are negative, equal ones for equal values.
    """

    def __init__(self, base: FrameType) -> None:
        super().__init__()
        self._base = base
        self._depth = 0
        self._apart, self._stack_apart = array("d"), array("l")
        """Operations in which loops are not looked for."""
        self.serials, self.stack_of, self.label_of = array("d"), array("l"), array("l")
        self.operands, self.first = array("d"), array("l", [0])
        self.stacks: list[tuple[Place, ...]] = []
        self.labels: list[tuple[Any, ...]] = []
        self.loops: list[NotedLoop] = []
        self._stacks: dict[Any, int] = {}
        self._labels: dict[Any, int] = {}
        self._atoms: dict[Any, int] = {}
        self._growing: dict[int, NotedLoop] = {}

    def add(self, node: Node) -> None:
        """Note a node that was made now."""
        if is_source(node) or len(self.serials) >= MOST_NOTED:
            return
        stack = self._placed(node)
        if stack is None:
            self._note_apart(node, self._layer())
            return
        label = (node.primitive.name, node.shape, node.dtype.str, fixed_part(node) if node.primitive is SLICE else ())
        number = self._labels.setdefault(label, len(self.labels))
        if number == len(self.labels):
            self.labels.append(label)
        self.serials.append(node.serial)
        self.stack_of.append(stack)
        self.label_of.append(number)
        self.operands.extend([self._operand(source) for source in node.inputs])
        self.first.append(len(self.operands))

    def add_apart(self, node: Node) -> None:
        """Note the line of a node that was made now, where loops are not looked for."""
        if is_source(node) or len(self._apart) >= MOST_NOTED:
            return
        stack = self._placed(node)
        self._note_apart(node, self._layer() if stack is None else stack)

    def _note_apart(self, node: Node, stack: int | None) -> None:
        if stack is not None:
            self._apart.append(node.serial)
            self._stack_apart.append(stack)

    def _placed(self, node: Node) -> int | None:
        """The user's place that makes a node now; the node that it is made for is noted, if a pass makes it."""
        stack = self._stack()
        # Where a pass calls a user's rule, its own lines say more than the operation that it is the rule of.
        if self.now == self.now and (stack is None or len(self.stacks[stack]) <= self._depth):
            self.made(node)
        return stack

    def _operand(self, node: Node) -> float:
        key = atom_key(node) if is_source(node) else node
        return node.serial if key is node else -1.0 - self._atoms.setdefault(key, len(self._atoms))

    def walk(self, nodes: Iterable[Node], derivative: bool) -> Iterator[Node]:
        """The nodes of a pass, each of which is the origin of the nodes that are made before the next one."""
        before = self._depth
        stack = self._stack()
        self._depth = 0 if stack is None else len(self.stacks[stack])
        try:
            yield from super().walk(nodes, derivative)
        finally:
            self._depth = before

    def place_of(self, serial: float) -> tuple[Place, bool] | None:
        """The user's line that a node comes from, and whether as a derivative of it; None if no line is known."""
        serial, derivative = self._recorded_as(serial)
        for serials, stack_of in ((self.serials, self.stack_of), (self._apart, self._stack_apart)):
            at = _position(serials, serial)
            if at is not None:
                return self.stacks[stack_of[at]][-1], derivative
        return None

    def turns_before(self, serial: float) -> int:
        """For a node in the body of a loop, the turns before the first one that the loop does."""
        at = _position(self.serials, self._recorded_as(serial)[0])
        loop = next((one for one in self.loops if at is not None and one.start <= at < one.second), None)
        if at is None or loop is None:
            return 0
        kind = self.stack_of[at], self.label_of[at]
        kinds = list(zip(self.stack_of[: loop.second], self.label_of[: loop.second], strict=True))
        return kinds[: loop.start].count(kind) // max(1, kinds[loop.start :].count(kind))

    def _recorded_as(self, serial: float) -> tuple[float, bool]:
        """The serial number of the operation that a node comes from, and whether as a derivative of it."""
        derivative = False
        while True:
            origin = self.origin_of(serial)
            if origin is None:
                break
            serial, derivative = origin[0], derivative or origin[1]
        return self.first_number(serial), derivative

    def _stack(self) -> int | None:
        """The places of the user's functions that are running; of packages, if there are no others."""
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        found: list[FrameType] = []
        packages: list[FrameType] = []
        while frame is not None and frame is not self._base:
            if not is_internal(frame):
                (packages if is_installed(frame.f_code.co_filename) else found).append(frame)
            frame = frame.f_back
        frames = found or packages
        if frame is None or not frames:
            return None
        return self._number(frames)

    def _layer(self) -> int | None:
        """The place in a layer of nbgrad's own that is running, for operations that no function of the user's calls."""
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and frame is not self._base:
            if frame.f_code.co_name == "construct" and is_internal(frame):
                return self._number([frame])
            frame = frame.f_back
        return None

    def _number(self, frames: Sequence[FrameType]) -> int:
        """The number of the places where functions are, the innermost first."""
        key = tuple([(id(frame.f_code), frame.f_lasti) for frame in frames])
        number = self._stacks.get(key)
        if number is None:
            number = self._stacks[key] = len(self.stacks)
            self.stacks.append(tuple([Place(f.f_code, f.f_lasti, f.f_lineno) for f in reversed(frames)]))
        return number

    def begin(self, recording: Recording, stretch: Stretch, growing: object) -> None:
        """A stretch has become a loop, which may grow; None if its elements are moved at once."""
        nodes = recording.nodes
        start = bisect_left(self.serials, nodes[stretch.start].serial)
        second = bisect_left(self.serials, nodes[stretch.start + stretch.period].serial)
        end = bisect_right(self.serials, nodes[stretch.end - 1].serial)
        if start < end:
            loop = NotedLoop(start, second, end, stretch.turns, growing is None)
            self.loops.append(loop)
            self._growing[id(growing)] = loop

    def mix(self, recording: Recording, mixture: Mixture) -> None:
        """Turns of several kinds have become a loop."""
        nodes = recording.nodes
        begins = [bisect_left(self.serials, nodes[k].serial) for k in mixture.begins.tolist()]
        end = bisect_right(self.serials, nodes[mixture.end - 1].serial)
        if begins[0] < end:
            sizes = [b - a for a, b in pairwise([*begins, end])]
            kinds = len(set(mixture.kind_of.tolist()))
            self.loops.append(
                NotedLoop(begins[0], end, end, mixture.turns, kinds=kinds, least=min(sizes), most=max(sizes))
            )

    def grow(self, growing: object, last: Node, turns: int) -> None:
        """More turns up to a node belong to a loop."""
        loop = self._growing.get(id(growing))
        if loop is not None:
            loop.end, loop.turns = bisect_right(self.serials, last.serial), loop.turns + turns


def _position(serials: array[float], serial: float) -> int | None:
    """The position of a serial number among ascending ones."""
    at = bisect_left(serials, serial)
    return at if at < len(serials) and serials[at] == serial else None


class NotedNodes(list[Node]):
    """A list of recorded nodes that notes what is appended to it."""

    def __init__(self, add: Callable[[Node], None]) -> None:
        super().__init__()
        self._add = add

    def append(self, node: Node) -> None:
        super().append(node)
        self._add(node)


current_notes: Callable[[], Notes | None] = current
"""The notes that are taken now."""


@contextmanager
def noting(base: FrameType) -> Iterator[Notes]:
    """Take notes of what is recorded inside of a frame."""
    notes = Notes(base)
    token = take_notes(notes)
    try:
        yield notes
    finally:
        leave_notes(token)
