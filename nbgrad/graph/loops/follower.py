"""Operations of a loop that is known already: most of them need no look at rules, only at where their operands are.

In: the recorded nodes of a loop that grows, and what the recorded function calls in one of its turns (`note`). Out: a
`Follower`: for the next operation, the call to expect and the nodes that it makes. Called by record/followed.py between
two operations, and by window.py, which keeps it.

A call that is the expected one, of the same operands, makes the same nodes as in the turn before, because they follow
from that alone. So it makes `Followed` nodes: they have inputs, and learn the rest when something asks. All other
calls are recorded as ever, and their nodes are looked at one by one (`catch_up`); where these are not as expected, the
window finds out what the function does now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir import CPU_PLACES, DERIVED, Node, due
from .known_turn import KnownTurn
from .repetition import BROADCAST, INPUT, is_source

FEW = 0.3
"""The least part of a turn's operations that are to be expected: others cost more when they are followed."""
SHORT = 64
"""Shorter turns are followed several at a time."""
OFTEN = 1024
"""Operations between two looks at the recording."""
Source = tuple[int, Node | None]
"""An operand: its place, counted from the end of what is recorded, or 0 and a constant."""
Made = tuple["Pattern", int, int, Node | None, int, Node | None, Sequence[Source]]
"""A node that is made: the number of its inputs, the first, the second, and all of them."""
Step = tuple[Any, int, Any, Any, int, Any, tuple[Made, ...]]
"""What is expected: a call, its first operand, the class of the second, the second, and the nodes that are made.

A number stands for itself."""
NOT_EXPECTED: Step = (None, 0, None, None, 0, None, ())
"""Calls that are recorded as ever, and the end of a turn."""


class Pattern(int):
    """What nodes of the same place have in common; as a number it is 0, the depth of recorded nodes."""

    facts: tuple[Any, ...]

    @staticmethod
    def of(node: Node) -> Pattern:
        """The pattern of a node."""
        made = Pattern()
        layout = None if node.layout is None else DERIVED
        made.facts = (*_steady(node)[:-1], node.primitive, node.params, layout)
        return made


def _steady(node: Node) -> tuple[Any, ...]:
    """What a node has from its operands' facts: so it is the same in all turns if it is the same in two."""
    return node.shape, node.dtype, node.weak, node.traced, node.tensor, node.place, node.layout is None


class Followed(Node):
    """A node of an expected call: it has inputs, a serial number, and the pattern in the place of its depth.

    It becomes a `Node` when something asks for more.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        finish(self)
        return getattr(self, name)


def finish(node: Node) -> None:
    """Let a node know all of itself."""
    pattern: Any = node.depth
    if pattern.__class__ is Pattern:
        node.value = node.owner = None
        node.shape, node.dtype, node.weak, node.traced, node.tensor, node.place = pattern.facts[:6]
        node.primitive, node.params, node.layout = pattern.facts[6:]
        node.depth = 0
        node.__class__ = Node


class Follower:
    """The next operation of a loop that grows.

    Attributes
    ----------
    nodes : list of nodes
        What is recorded, from the beginning of a turn on.
    at : int
        How many of these are known to be turns of the loop.
    steps, k : list of steps, int
        What is expected in a turn, and which of it is next; no steps while calls are noted.
    fixed : dict
        Elements of constants, which make no nodes.
    """

    __slots__ = ("_begin", "_cycle", "_log", "_next_look", "_step_at", "_turn", "at", "fixed", "k", "nodes", "steps")

    def __init__(self, turn: KnownTurn, nodes: list[Node], turns: int) -> None:
        self.nodes, self._turn = nodes, turn
        self._cycle = turn.period * -(-SHORT // turn.period)
        self.steps: list[Step] = []
        self.fixed: dict[tuple[Any, Node, int], Node] = {}
        self._log: list[tuple[Any, ...]] = []
        self._step_at: dict[int, int] = {}
        self.k = 0
        self._begin = self._next_look = len(nodes)
        self.at = turns * turn.period
        if not self._fits():
            self.stop()

    def stop(self) -> None:
        """Follow no longer; what is known stays known."""
        self.steps = []
        self._log = []
        while self in due:
            due.remove(self)

    def go_on(self, taken: int) -> None:
        """Operations at the beginning have become a part of the loop."""
        self.at -= taken
        self._begin -= taken
        self._next_look = len(self.nodes) + OFTEN

    # ----- What is recorded -----

    def _fits(self) -> bool:
        """Whether what was recorded since the last look is as expected."""
        nodes, at = self.nodes, self.at
        fresh = nodes[at:]
        if any(node.primitive is INPUT and node.value is None for node in fresh if not node.inputs):
            return False
        nodes[at:] = [node for node in fresh if node.inputs and not (node.primitive is BROADCAST and is_source(node))]
        while self.at < len(nodes):
            if nodes[self.at].place not in CPU_PLACES or not self._turn.fits(nodes, self.at):
                return False
            self.at += 1
        return True

    def catch_up(self) -> bool:
        """Look at what was recorded as ever, or begin the next turn; False if nothing more can be expected."""
        if not self._fits():
            self.stop()
            return False
        if not self.steps:
            return True
        while self.at - self._begin >= self._cycle:
            self._begin += self._cycle
        k = self._step_at.get(self.at - self._begin)
        if k is None:
            self.stop()
            return False
        self.k = k
        if self.at >= self._next_look:
            self._next_look = self.at + OFTEN
            due.append(None)
        return True

    def ends_turn(self) -> bool:
        """Whether all of a turn was recorded; then the next one is expected."""
        return self.k == len(self.steps) - 1 and self.catch_up() and self.k == 0

    # ----- Learning -----

    def note(self, key: Any, one: Node | None, other: Any, result: Node | None, begin: int) -> None:
        """Take note of a call and of the nodes that it has made; without a result, of one that must not be expected.

        `other` is a node, all arguments of a function (a description, and the nodes), or what stands for itself.
        """
        if not self.catch_up():
            return
        end = self.at
        self._log.append((key, one, other, result, begin, end))
        count = end - self._begin
        if count > self._cycle:
            self.stop()
        elif count == self._cycle:
            self._learn()

    def _learn(self) -> None:
        nodes, period, cycle = self.nodes, self._turn.period, self._cycle
        begin = self._begin
        if any(_steady(nodes[k]) != _steady(nodes[k - period]) for k in range(begin, begin + cycle)):
            self.stop()
            return
        places = {node: k for k, node in enumerate(nodes)}
        steps: list[Step] = []
        at, expected = begin, 0
        for key, one, other, result, first, end in self._log:
            if first > at:
                self._step_at[at - begin] = len(steps)
                steps.append(NOT_EXPECTED)
            at = end
            if end > first:
                step = self._step(key, one, other, result, first, end, places)
                self._step_at[first - begin] = len(steps)
                steps.append(step or NOT_EXPECTED)
                expected += (end - first) * (step is not None)
            elif (
                result is not None and one is not None and other.__class__ is int and not {one, result} & places.keys()
            ):
                self.fixed[key, one, other] = result
        self._log = []
        if expected < FEW * cycle:
            self.stop()
            return
        if at < begin + cycle:
            self._step_at[at - begin] = len(steps)
            steps.append(NOT_EXPECTED)
        self.steps = [*steps, NOT_EXPECTED]
        self.catch_up()

    def _step(
        self, key: Any, one: Node | None, other: Any, result: Node | None, first: int, end: int, places: dict[Node, int]
    ) -> Step | None:
        """What to expect where a call has made some nodes; None if that does not follow from the call."""
        nodes = self.nodes
        if result is not nodes[end - 1]:
            return None
        made: list[Made] = []
        for at in range(first, end):
            inputs = self._turn.steady_inputs(at)
            if inputs is None:
                return None
            sources = [(way, None if way else node) for way, node in zip(inputs, nodes[at].inputs, strict=True)]
            one_of, two_of = [*sources, (0, None), (0, None)][:2]
            made.append((Pattern.of(nodes[at]), len(sources), *one_of, *two_of, sources))

        def place(node: Node) -> Source:
            at = places.get(node, first)
            return (at - first, None) if at < first else (0, node)

        first_of = (0, None) if one is None else place(one)
        if isinstance(other, Node):
            return (key, *first_of, Node, *place(other), tuple(made))
        if other.__class__ is tuple:
            frame, operands = other
            return (key, *first_of, tuple, 0, (frame, [place(node) for node in operands]), tuple(made))
        if other.__class__ is float and (not other or other != other):
            return None
        return (key, *first_of, other.__class__, 0, other, tuple(made))
