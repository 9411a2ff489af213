"""The backward run of a loop, turn by turn.

In: a loop, the values before it, and tapes of the numbers that it carries. Out: `BackwardLoop`, whose `backward` writes
the backward run. Called by reverse_loops.py and taped_loops.py, which write the forward run: the first runs each turn
forward again, with the arrays as they were, and the second has all that is needed on tapes.
"""

from __future__ import annotations

from abc import abstractmethod

from .array_plans import Arrays
from .cotangents import Names, Scope, Values, bar
from .dataflow import live_in_turns
from .kernel_statements import Atom, For, Load, Set, Statement, While, assigned, breaks, copied


class BackwardLoop:
    """A loop: its forward run is written when this is made, `backward` writes the other one.

    Attributes
    ----------
    after : dict
        The values after the loop of the numbers that it sets.
    tapes : dict
        The tape of each number that turns carry.
    total : Atom
        The number of turns.
    """

    after: dict[str, str]
    tapes: dict[str, str]
    total: Atom

    def __init__(self, outer: Values, loop: For | While, ver: Names, scope: Scope) -> None:
        self.outer, self.scope = outer, scope
        outer.count += 1
        self.serial = outer.count
        self.body, self.line = loop.body, loop.line
        self.turn = loop.turn if isinstance(loop, For) else None
        self.count = ver.get(loop.count, loop.count) if isinstance(loop, For) else None
        self.parallel = isinstance(loop, For) and loop.parallel
        self.before = dict(ver)
        self.counted = self.turn is None or breaks(loop.body)
        names = assigned(loop.body) - ({self.turn} if self.turn else set())
        header = live_in_turns(loop.body, frozenset())
        self.carried = sorted(name for name in names if name in ver or name in header)
        self.names = sorted(names | ({self.turn} if self.turn else set()))

    def leave(self, ver: Names) -> None:
        """Let the values after the loop be the present ones."""
        for name, value in self.after.items():
            ver[name] = value
            self.scope.mine.add(value)

    @abstractmethod
    def before_turns(self, out: list[Statement]) -> None:
        """Write the statements before the first turn that runs backwards."""

    @abstractmethod
    def start_turn(self, out: list[Statement]) -> Atom:
        """Write the statements at the start of a turn that runs backwards; gives its place on the tapes."""

    @abstractmethod
    def restore(self, out: list[Statement]) -> None:
        """Put the elements of arrays back that the turn has overwritten."""

    @abstractmethod
    def state(self) -> Arrays:
        """The arrays at the start of a turn that runs backwards."""

    def backward(self, out: list[Statement]) -> None:
        """Write the backward run."""
        outer = self.outer
        running = {name for name, value in self.after.items() if value in self.scope.open}
        while True:
            before = outer.snapshot()
            inner = Scope(self.scope)
            lines, fed = self.turn_backward(running, inner)
            if fed <= running:
                break
            running |= fed
            outer.count, outer.dtypes, outer.active, outer.head, outer.logs = before
        self.before_turns(out)
        self.require_running(running, out)
        outer.require(inner.demanded, self.scope, out)
        out.append(For(self.place, self.total, tuple(lines), self.parallel, True, self.line))
        for name in sorted(running):
            if name in self.before and self.after[name] in self.scope.open:
                outer.add(self.before[name], bar(self.after[name]), self.scope, out)

    def require_running(self, running: set[str], out: list[Statement]) -> None:
        """Give the sums that run from turn to turn their first value."""
        for name in sorted(running):
            value = self.after[name]
            if value not in self.scope.open:
                self.scope.open.add(value)
                self.outer.dtypes[bar(value)] = "float64"
                out.append(Set(bar(value), copied("0.0")))

    def turn_backward(self, running: set[str], inner: Scope) -> tuple[list[Statement], set[str]]:
        """The backward run of one turn, and the carried numbers that it sends cotangents to.

        A turn that may run on a thread of its own makes the tapes and logs of loops in it itself.
        """
        outer = self.outer
        lines: list[Statement] = []
        head, logs = outer.head, dict(outer.logs)
        if self.parallel:
            outer.head = []
        self.place = outer.new(f"back_{self.serial}", "int64")
        ver = {name: value for name, value in self.before.items() if name not in self.after}
        starts: dict[str, str] = {}
        at = self.start_turn(lines)
        for name in self.carried:
            starts[name] = ver[name] = outer.value_of(name)
            inner.mine.add(ver[name])
            lines.append(Set(ver[name], Load(self.tapes[name], (at,))))
        if self.turn is not None:
            ver[self.turn] = self.place
        self.restore(lines)
        state = self.state()
        outer.depth += 1
        step = outer.block(self.body, ver, state, inner, lines)
        back: list[Statement] = []
        for name in sorted(running):
            if name in ver:
                outer.add(ver[name], bar(self.after[name]), inner, back)
        step(back)
        outer.depth -= 1
        fed = {name for name, value in starts.items() if value in inner.open and outer.is_active(value)}
        for name in sorted(running):
            start = starts.get(name)
            again = bar(start) if start is not None and start in inner.open else "0.0"
            back.append(Set(bar(self.after[name]), copied(again)))
        if self.parallel:
            lines = [*outer.head, *lines]
            outer.head, outer.logs = head, logs
        return [*lines, *back], fed
