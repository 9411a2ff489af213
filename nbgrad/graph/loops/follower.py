"""Operations of a loop that is known already: most of them need no look at rules, only at where their operands are.

In: the recorded nodes of a loop that grows, and what the recorded function calls in one of its turns (`note`). Out: a
`Follower`: for the next operation, the call to expect and the nodes that it makes. Called by record/followed.py between
two operations, and by window.py, which keeps it.

A call that is the expected one, of the same operands, makes the same nodes as in the turn before, because they follow
from that alone. So only its result is made, a `Followed` node, which learns the rest when something asks. All other
calls are recorded as ever, and their nodes are looked at one by one (`catch_up`); where these are not as expected, the
window finds out what the function does now.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..ir import CPU_PLACES, DERIVED, LEFT_OUT, Node, due
from .known_turn import KnownTurn
from .repetition import BROADCAST, INPUT, atom_key, is_source

FEW = 0.5
"""The least part of a turn's operations that are to be expected: others cost more when they are followed."""
SHORT = 64
"""Shorter turns are followed several at a time."""
OFTEN = 1024
"""Operations between two looks at the recording."""
Source = tuple[int, Node | None]
"""An operand: its place, counted from the end of what is recorded; 0 and a constant; or, from 1 on, which of the arrays
and numbers that the call is given."""
Given = tuple[Any, list[tuple[int, int]]]
"""An array or a number that a call is given: the key that it must have, or None if it may be another one in each turn;
and the operands that it must be equal to: the place of a reader, counted from the end, and the operand's number."""
AT, K, BEGIN, CYCLE, NEXT_LOOK, FOLLOWER, WORDS = range(7)
"""The words of a follower: how many operations are known to be turns, the step that is next, where its turn begins,
operations of a turn, when loops are looked for again, and who it is, or 0 if it has ended."""
ROOM = 16
"""Words that native code finds there: those, and its own."""
Part = tuple["Pattern", Sequence[Source], list[Node]]
"""A node of a call that something else reads, made of sources, after others that nothing else reads."""
Step = tuple[Any, int, Node | None, Any, int, Any, Sequence[Part], Any, tuple[Any, Sequence[int]], Sequence[Given]]
"""An expected call: the call, the source that is its first operand, the class of the second, the second, and the nodes
that it makes; whether the result is a view of the first operand: True for the part that the second operand says, or how
elements are moved; the results, by number, with the class of the tuple if that is one; and the arrays that it gets.

The second operand is a source; or 0 and a number or a key; or class, dtype and shape of a number that varies; or, for a
function or an array, the description of its arguments, their sources, and their outline.
"""
Condition = tuple[int, str, type[Exception]]
NO_STEP: Step = (None, 0, None, None, 0, None, (), False, (None, ()), ())
"""Calls that are recorded as ever, and the end of a turn."""


class Arguments:
    """The arguments of a call: the nodes among them, arrays, and all else, in `frame`, which is compared by value.

    `outline` says the same for native code, and `given` has the constants that the arrays are, once they are noted.
    """

    __slots__ = ("arrays", "frame", "given", "nodes", "outline")

    def __init__(self, frame: list[Any], nodes: list[Node], arrays: Sequence[Any] = ()) -> None:
        self.frame, self.nodes, self.arrays = frame, nodes, arrays
        self.outline: Any = None
        self.given: list[Node] = []


class Number(Arguments):
    """A number in an operation that depends on it by its operand only; `given` has the operand that it has become."""

    __slots__ = ("value",)

    def __init__(self, value: float, operand: Node) -> None:
        super().__init__([value.__class__, operand.dtype, operand.shape], [])
        self.value, self.given = value, [operand]


class Pattern(int):
    """The facts that results of a call share in all turns; as a number it is 0, the depth of recorded nodes.

    `facts` has the fixed part of all nodes that the call makes, the result last, and for each which of the sources or,
    by negative numbers, of these nodes are its inputs.
    `conditions` are those that the call notes: which of the nodes must be true, by negative numbers, and the error.
    `made` has the other nodes of results that know all of themselves.
    """

    facts: list[tuple[Any, ...]]
    inputs: list[tuple[int, ...]]
    conditions: list[Condition]
    made: WeakKeyDictionary[Node, list[Node]]

    @staticmethod
    def of(nodes: Sequence[Node], inputs: list[tuple[int, ...]], conditions: list[Condition]) -> Pattern:
        """The pattern of the nodes of a call."""
        made = Pattern()
        made.inputs, made.conditions, made.made = inputs, conditions, WeakKeyDictionary()
        made.facts = [
            (*_steady(node)[:-1], node.primitive, node.params, None if node.layout is None else DERIVED)
            for node in nodes
        ]
        return made


def _steady(node: Node) -> tuple[Any, ...]:
    """The facts that a node has from its operands: equal in all turns if they are equal in two."""
    return node.shape, node.dtype, node.weak, node.traced, node.tensor, node.place, node.layout is None


_params: Any = Node.__dict__["params"]
hold = _params.__set__
"""Let a `Followed` node know the sources of its call."""
_FACTS: dict[str, Any] = {
    name: Node.__dict__[name]
    for name in ("shape", "dtype", "weak", "traced", "tensor", "place", "layout", "value", "owner")
}
_lock = Lock()


class Followed(Node):
    """The result of an expected call: it has a serial number and the pattern, in the place of its depth.

    It has its inputs, too, if the call makes no other nodes; otherwise the sources of the call, in the place of its
    parameters. When something asks for its shape and the like, it has these as well; for more, it becomes a `Node`.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name in _FACTS:
            pattern: Any = self.depth
            if pattern.__class__ is Pattern:
                _know(self, pattern.facts[-1])
                return _FACTS[name].__get__(self)
        finish(self)
        return getattr(self, name)

    @property
    def params(self) -> Any:
        """The parameters, once the node knows itself."""
        finish(self)
        return self.params


def _know(node: Node, facts: tuple[Any, ...]) -> None:
    """Let a node have the facts that follow from those of its operands."""
    node.value = node.owner = None
    node.shape, node.dtype, node.weak, node.traced, node.tensor, node.place = facts[:6]
    node.layout = facts[8]


def finish(node: Node) -> None:
    """Let a node know all of itself."""
    with _lock:
        if node.__class__ is Followed:
            pattern: Any = node.depth
            count = len(pattern.facts)
            if count > 1:
                sources = _params.__get__(node)
                made: list[Node] = []
                for number, inputs in enumerate(pattern.inputs):
                    one = object.__new__(Node) if number < count - 1 else node
                    one.inputs = tuple([sources[k] if k >= 0 else made[count + k] for k in inputs])
                    one.serial = node.serial - 1 + (number + 1) / count
                    made.append(one)
            else:
                made = [node]
            for one, facts in zip(made, pattern.facts, strict=True):
                _know(one, facts)
                one.primitive = facts[6]
                one.depth = pattern if one is node else 0
                hold(one, facts[7])
            node.__class__ = Node
            if count > 1:
                pattern.made[node] = made[:-1]


def finish_alone(node: Node) -> None:
    """Let a node know all of itself, of which the nodes that its call has left out are no longer asked for."""
    finish(node)
    if node.depth.__class__ is Pattern:
        pattern: Any = node.depth
        pattern.made.pop(node, None)


def finished(nodes: Sequence[Node], checks: list[Any]) -> list[Node]:
    """Recorded nodes, with those that calls have left out; their conditions are noted among the checks."""
    found: list[Node] = []
    missing = False
    for node in nodes:
        if node is LEFT_OUT:
            missing = True
            continue
        if missing:
            finish(node)
            pattern: Any = node.depth
            found += pattern.made.pop(node)
            found.append(node)
            checks += [(found[k], message, error) for k, message, error in pattern.conditions]
            missing = False
        else:
            found.append(node)
    return found


def _position(node: Node, given: Sequence[Node]) -> int | None:
    """The one among the operands that a call was given which a node is equal to; None if none is, or more than one."""
    found = [number for number, one in enumerate(given) if is_same_source(node, one)]
    return found[0] if len(found) == 1 else None


def is_same_source(one: Node, other: Node) -> bool:
    """Whether two sources have the same bits."""
    if atom_key(one) == atom_key(other):
        return True
    a, b = one.value, other.value
    if one.inputs or type(a) is not np.ndarray or type(b) is not np.ndarray or one.layout or other.layout:
        return False
    return (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes()


class Follower:
    """The next operation of a loop that grows.

    Attributes
    ----------
    nodes : list of nodes
        What is recorded, from the beginning of a turn on.
    words : array of int
        Its state, which native code shares.
    at : int
        How many of these are known to be turns of the loop.
    steps, k : list of steps, int
        What is expected in a turn, and which of it is next; no steps while calls are noted.
    tables : any
        What native code knows of the steps.
    goes_on : bool
        Whether anything can be expected.
    log : list
        The calls that were noted.
    fixed : dict
        Elements of constants, which make no nodes.
    """

    def __init__(self, turn: KnownTurn, nodes: list[Node]) -> None:
        self.nodes, self._turn = nodes, turn
        self.words = array("q", [0] * ROOM)
        self.words[FOLLOWER] = id(self)
        self._cycle = self.words[CYCLE] = turn.period * -(-SHORT // turn.period)
        self.steps: list[Step] = []
        self.tables: Any = None
        self.fixed: dict[tuple[Any, Node, int], Node] = {}
        self.log: list[tuple[Any, ...]] = []
        self._step_at: dict[int, int] = {}
        self.words[BEGIN] = self.words[NEXT_LOOK] = len(nodes)
        self.words[AT] = turn.held * turn.period
        self.goes_on = True
        if not self.fits():
            self.stop()

    @property
    def at(self) -> int:
        """How many operations are known to be turns."""
        return self.words[AT]

    def stop(self) -> None:
        """Follow no longer; what is known stays known."""
        self.words[FOLLOWER] = 0
        self.goes_on = False
        self.steps = []
        if self.tables is not None:
            self.tables.forget()
            self.tables = None
        self.log = []
        with suppress(ValueError):
            due.remove(self)

    def go_on(self, taken: int) -> None:
        """Operations at the beginning have become a part of the loop."""
        self.words[AT] -= taken
        self.words[BEGIN] -= taken
        self.words[NEXT_LOOK] = len(self.nodes) + OFTEN

    # ----- What is recorded -----

    def fits(self) -> bool:
        """Whether what was recorded since the last look is as expected."""
        nodes, at = self.nodes, self.words[AT]
        fresh = nodes[at:]
        if any(node.primitive is INPUT and node.value is None for node in fresh if not node.inputs):
            return False
        nodes[at:] = [node for node in fresh if node.inputs and not (node.primitive is BROADCAST and is_source(node))]
        while at < len(nodes):
            if nodes[at].place not in CPU_PLACES or not self._turn.fits(nodes, at):
                return False
            at += 1
            self.words[AT] = at
        return True

    def catch_up(self) -> bool:
        """Look at what was recorded as ever, or begin the next turn; False if nothing more can be expected."""
        words = self.words
        if not self.fits():
            self.stop()
            return False
        if not self.steps:
            count = words[AT] - words[BEGIN]
            if count < self._cycle:
                return True
            if count > self._cycle or not self._learn():
                self.stop()
                return False
        while words[AT] - words[BEGIN] >= self._cycle:
            words[BEGIN] += self._cycle
        k = self._step_at.get(words[AT] - words[BEGIN])
        if k is None:
            self.stop()
            return False
        words[K] = k
        if words[AT] >= words[NEXT_LOOK]:
            words[NEXT_LOOK] = words[AT] + OFTEN
            due.append(None)
        return True

    def ends_turn(self) -> bool:
        """Whether all of a turn was recorded; then the next one is expected."""
        return self.words[K] == len(self.steps) - 1 and self.catch_up() and self.words[K] == 0

    # ----- Learning -----

    def note(
        self,
        key: Any,
        one: Node | None,
        other: Any,
        results: tuple[Node, ...],
        of: Any,
        is_view: Any,
        conditions: Sequence[Any],
        begin: int,
        since: int,
    ) -> None:
        """Take note of a call that may be expected, in place of those that were noted `since` and are parts of it.

        `other` is a node, the `Arguments` of a function, or what stands for itself; `of` the class of the tuple that it
        gives, or None for one result. `conditions` are the checks that it has noted.
        """
        if self.goes_on and not self.steps and self.fits():
            del self.log[since:]
            self.log.append((key, one, other, results, of, is_view, conditions, begin, self.at))

    def _learn(self) -> bool:
        """Know what to expect in a turn; False if that is too little."""
        nodes, period, cycle = self.nodes, self._turn.period, self._cycle
        begin = self.words[BEGIN]
        if any(_steady(nodes[k]) != _steady(nodes[k - period]) for k in range(begin, begin + cycle)):
            return False
        places = {node: k for k, node in enumerate(nodes)}
        steps: list[Step] = []
        at, expected = begin, 0
        for key, one, other, results, of, is_view, noted, first, end in self.log:
            if first > at:
                self._step_at[at - begin] = len(steps)
                steps.append(NO_STEP)
            if end > first:
                at = end
                step = self._step(key, one, other, results, of, is_view, first, end, noted, places)
                self._step_at[first - begin] = len(steps)
                steps.append(step or NO_STEP)
                expected += (end - first) * (step is not None)
            elif one is not None and other.__class__ is int and not {one, *results} & places.keys():
                (self.fixed[key, one, other],) = results
        self.log = []
        if expected < FEW * cycle:
            return False
        if at < begin + cycle:
            self._step_at[at - begin] = len(steps)
            steps.append(NO_STEP)
        self.steps = [*steps, NO_STEP]
        return True

    def _step(
        self,
        key: Any,
        one: Node | None,
        other: Any,
        results: tuple[Node, ...],
        of: Any,
        is_view: Any,
        first: int,
        end: int,
        noted: Sequence[Any],
        places: dict[Node, int],
    ) -> Step | None:
        """The step to expect where a call has made some nodes; None if that does not follow from the call."""
        at_results = [places.get(node, -1) for node in results]
        varies = any(None in (self._turn.steady_inputs(at) or ()) for at in range(first, end))
        if isinstance(other, Number) and not varies:
            other = other.value
        if min(at_results) < first or (isinstance(other, float) and (not other or other != other)):
            return None
        ends = self._ends(first, end, at_results)
        arrays = other.given if isinstance(other, Arguments) else []
        given = self._given(first, end, ends or (), arrays)
        if ends is None or given is None:
            return None
        conditions = {places.get(node, -1): (message, error) for node, message, error in noted}
        if not all(first <= at < end and at not in ends for at in conditions):
            return None
        known = {at % self._turn.period: condition for at, condition in conditions.items()}
        if any(self._turn.conditions.setdefault(at, one) != one for at, one in known.items()):
            return None
        self._turn.hidden.update([at % self._turn.period for at in range(first, end) if at not in ends])
        parts = [self._part(a + 1, b + 1, conditions, arrays) for a, b in pairwise([first - 1, *ends])]

        def source(node: Node | None) -> Source:
            at = first if node is None else places.get(node, first)
            return (at - first, None) if at < first else (0, node)

        kind: Any = other.__class__
        way, second = 0, other
        if isinstance(other, Node):
            kind = Node
            way, second = source(other)
        elif isinstance(other, Number):
            second = other.frame
        elif isinstance(other, Arguments):
            kind = Arguments
            second = other.frame, [source(node) for node in other.nodes], other.outline
        numbers = [ends.index(at) for at in at_results]
        return key, *source(one), kind, way, second, parts, is_view, (of, numbers), given

    def _given(self, first: int, end: int, ends: Sequence[int], arrays: Sequence[Node]) -> list[Given] | None:
        """The facts of the arrays or the number that a call gets; None if an operand varies that is none of them.

        Only nodes that are `ends` may read such operands: loops ask each turn's for them.
        """
        known: list[Given] = [(atom_key(array), []) for array in arrays]
        for at in range(first, end):
            for number, way in enumerate(self._turn.steady_inputs(at) or ()):
                if way is None:
                    which = _position(self.nodes[at].inputs[number], arrays)
                    before, same = self._turn.same_as(at, number)
                    if which is None or at not in ends or (first <= at + before and (before, same) != (0, number)):
                        return None
                    known[which] = None, known[which][1]
                    if at + before < first:
                        known[which][1].append((at + before - first, same))
        return known

    def _ends(self, first: int, end: int, results: Sequence[int]) -> list[int] | None:
        """The last places of the parts of a call; None if its nodes are not the same in all turns.

        All other nodes of a part are read in this part and turn only: those that the next turn reads are carried.
        """
        ways = {at: self._turn.steady_inputs(at) for at in range(first, end)}
        if None in ways.values():
            return None
        shown = {*results, end - 1, *[at for at, way in ways.items() if None in (way or ())]}
        period = self._turn.period
        reads = [(at, at + step) for at, way in ways.items() for step in way or () if step]
        shown |= {read for at, read in reads if read >= first and read // period != at // period}
        while True:
            ends = sorted(shown)
            inside: Counter[int] = Counter()
            for at in range(first, end):
                for way in ways[at] or ():
                    if way and at + way >= first and bisect_left(ends, at + way) == bisect_left(ends, at):
                        inside[at + way] += 1
            readers = self._turn.readers
            more = {at for at in ways if at not in shown and inside[at] != readers[at % self._turn.period]}
            if not more:
                return ends
            shown |= more

    def _part(self, begin: int, end: int, conditions: Mapping[int, Any], arrays: Sequence[Node]) -> Part:
        """The pattern of the nodes from a place to another, and their sources."""
        sources: list[Source] = []
        inputs: list[tuple[int, ...]] = []
        for at in range(begin, end):
            numbers: list[int] = []
            for way, operand in zip(self._turn.steady_inputs(at) or (), self.nodes[at].inputs, strict=True):
                if way and at + way >= begin:
                    numbers.append(at + way - end)
                elif way is None:
                    numbers.append(len(sources))
                    sources.append((1 + (_position(operand, arrays) or 0), None))
                else:
                    numbers.append(len(sources))
                    sources.append((way and at + way - begin, None if way else operand))
            inputs.append(tuple(numbers))
        own = [(at - end, *condition) for at, condition in conditions.items() if begin <= at < end]
        return Pattern.of(self.nodes[begin:end], inputs, own), sources, [LEFT_OUT] * (end - begin - 1)
