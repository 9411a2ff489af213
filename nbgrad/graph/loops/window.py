"""The operations of a recording that goes on: loops are put in their place time and again, so that memory stays small.

In: every node that the recording makes, in the order of their making. Out: nothing; nodes that are still in use change
in place, and what nothing refers to any more is gone. Called by trace.py, which opens a `Window`, and between two
operations of the recorded function by whatever sees that it is full.

What was recorded is three parts: `before`, which was looked at; a loop that may go on (`growing`); `nodes`, which are
new. As a rule, the new nodes are more turns of that loop. Otherwise they are looked at as rolling.py does it, with what
is in use as outputs. The last turn stays as it is, because more of its values are in use than will be later; and so do
as many turns as the next one may read.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from math import inf, nextafter
from operator import attrgetter
from typing import Any

from ..ir import CPU_PLACES, HOST, RECORDED, Earlier, Node, by_serial, next_serial
from ..known_values import KnownValues
from .alignment import Stretch
from .follower import Follower, finished
from .growth import Growing
from .in_place import Settle, references
from .mixed_turns import Mixture
from .repetition import BROADCAST, INPUT, LEAST_NODES, LEAST_TURNS, Recording, is_source
from .rolling import MOST_PASSES, contract, contract_mixed, may_be_mixed, mixed_in, roll, stretches_in

FIRST = 1024
"""New nodes that are looked at."""
MOST_HELD = 1 << 18
"""Nodes that may wait for further turns of several kinds."""
MOST = 1 << 15
"""While a loop goes on, ever more are, up to this."""
_serial = attrgetter("serial")


class Window:
    """The nodes that a recording has made.

    Parameters
    ----------
    known : KnownValues
        The values that the recording keeps: its two references to a node do not count as a use.
    settle : callable
        See `Settle`.
    checks : list
        The conditions that the recording has noted, each with the message and class of its error.
    nodes : list of Node
        Where the recording notes them.
    since : int
        The serial number at which it has begun.
    """

    __slots__ = (
        "_checks",
        "_known",
        "_settle",
        "_strange",
        "before",
        "follower",
        "fresh",
        "growing",
        "limit",
        "nodes",
        "since",
        "waits",
    )

    def __init__(self, known: KnownValues, settle: Settle, checks: list[Any], nodes: list[Node], since: int) -> None:
        self._known, self._settle, self._checks = known, settle, checks
        # What loops need at their start is numbered up to one place before their first node.
        self.nodes, self.since = nodes, nextafter(since - 1, inf)
        self._strange = False
        """Whether some of the last nodes stand for nothing."""
        self.before: list[Node] = []
        self.growing: Growing | None = None
        self.fresh: list[Node] = []
        """Nodes that were made for the loop that grows."""
        self.follower: Follower | None = None
        """The operations that come next, if they are known."""
        self.limit = FIRST
        self.waits = False
        """Whether turns of several kinds wait for more: they are one loop at the end."""

    def is_full(self) -> bool:
        """Whether there is enough that is new."""
        return len(self.nodes) >= self.limit

    def roll(self) -> None:
        """Look for loops, while the recording goes on."""
        taken = self._roll(False)
        if taken and self.follower is not None:
            self.follower.go_on(taken)
        else:
            self.follow(self.growing)

    def follow(self, growing: Growing | None) -> None:
        """Expect the turns of a loop that grows; nothing more, if there is none."""
        if self.follower is not None:
            self.follower.stop()
            self.follower = None
            self.nodes[:] = finished(self.nodes, self._checks)
        if growing is None or self._strange or type(self.nodes) is not list:
            return
        # A follower does not look where operands are.
        if {node.place for node in self.nodes} <= CPU_PLACES and growing.is_next(self.nodes):
            self.follower = Follower(growing.turn, self.nodes)

    def note_conditions(self) -> None:
        """Let the conditions of expected calls be noted, each by itself."""
        if self.growing is not None and self.growing.turn.conditions:
            self.follow(None)

    def finish(self, outputs: Sequence[Node], outside: Collection[Node]) -> None:
        """Take the turns that are left, at the end of the recording, and look at all that its outputs are made of.

        Nodes `outside`, by which something is differentiated, stay as they are.
        """
        noted = len(self._checks)
        if self.growing is not None:
            self._roll(True)
            self._close()
            outputs = [*outputs, *[node for node, _, _ in self._checks[noted:]]]
        if next_serial() - self.since >= LEAST_NODES and _in_one_place(outputs):
            token = RECORDED.set(None)
            try:
                roll(outputs, outside, self._settle, self.since)
            finally:
                RECORDED.reset(token)
            self.nodes[:] = by_serial(outputs, Earlier(self.since))
        else:
            self.nodes[:0] = self.before
        self.before = []

    # ----- The loop that grows -----

    def _roll(self, at_end: bool) -> int:
        """Look for loops; if the one that is followed goes on, how many operations it has taken, otherwise 0."""
        follower = self.follower
        if follower is not None and follower.steps:
            follower.fits()
        same = 0 if follower is None else follower.at
        if follower is not None and (at_end or not follower.steps):
            follower.stop()  # its notes refer to nodes
        goes_on = follower is not None and follower.goes_on and same == len(self.nodes)
        new = [node for node in self._computed(same) if node.primitive is not BROADCAST or not is_source(node)]
        new.sort(key=_serial)
        if not _in_one_place(new):
            self.limit = sys.maxsize
            return 0
        new[:0] = self.nodes[:same]
        if 0 < same < len(new) and new[same].serial < new[same - 1].serial:
            new = sorted(finished(new, self._checks), key=_serial)
            same = 0
        self.nodes.clear()
        self.waits = False
        count, progress, all_taken = len(new), False, 0
        token = RECORDED.set(None)
        try:
            while True:
                growing = self.growing
                taken = 0
                if growing is not None:
                    taken = growing.extend(new, self._known.values, self._settle, at_end, same, self._checks)
                if taken:
                    del new[:taken]
                    same = max(0, same - taken)
                    progress = True
                    all_taken += taken
                    continue
                if goes_on and progress:
                    break
                goes_on, same = False, 0
                self.follow(None)
                new[:] = finished(new, self._checks)
                if growing is None and self.before:
                    new[:0] = self.before
                    self.before = []
                if self._look(new, at_end):
                    progress = True
                elif growing is None or progress or at_end or len(new) < (growing.turn.held + 1) * growing.period:
                    break
                else:
                    self._close()
        finally:
            RECORDED.reset(token)
            self.nodes[:0] = new
        del new[:]
        self._known.forget_unused()
        if self.waits:
            held = len(self.nodes)
            self.limit = max(min(4 * held, MOST_HELD), held + held // 2)
        elif not progress:
            self.limit = 2 * max(count, FIRST)
        else:
            self.limit = min(MOST, 2 * self.limit) if self.growing is not None else FIRST + len(self.nodes)
        return all_taken if goes_on else 0

    def _computed(self, since: int) -> list[Node]:
        """The nodes since some that have inputs, without those that stand for nothing in the recording.

        Such are made of placeholders that came up in it: of one of many values, say, before all of them were computed,
        or of a turn of a loop inside, when the derivative of its body was made.
        """
        self._strange = False
        # Those before did what was expected of them.
        stands = dict.fromkeys(self.nodes[:since], True)
        found: list[Node] = []
        for node in self.nodes[since:]:
            inputs = node.inputs
            for source in inputs:
                if stands.get(source) is not True:
                    break
            else:
                if inputs:
                    stands[node] = True
                    found.append(node)
                    continue
            if self._stands(node, stands) and inputs:
                found.append(node)
        return found

    def _stands(self, node: Node, known: dict[Node, bool]) -> bool:
        """Whether a node stands for a value of the recording; those that are `known` are not looked at again."""
        waiting = [node]
        while waiting:
            one = waiting[-1]
            if one in known:
                waiting.pop()
            elif one.serial < self.since:
                known[one] = True
            elif not one.inputs:
                known[one] = one.primitive is not INPUT or one.value is not None or one.owner is not None
                self._strange = self._strange or not known[one]
            elif more := [source for source in one.inputs if source not in known]:
                waiting += more
            else:
                known[one] = all(known[source] for source in one.inputs)
        return known[node]

    def _close(self) -> None:
        """Let the loop that has grown be one, which stands among what was looked at."""
        growing, self.growing = self.growing, None
        if growing is not None:
            token = RECORDED.set(self.fresh)
            try:
                growing.join()
            finally:
                RECORDED.reset(token)
            alive = [node for node in [one() for one in growing.kept] if node is not None]
            self.before = _left([*self.before, *alive], {*self.before, *alive, *self.fresh})
            self.fresh = []

    # ----- Other loops -----

    def _look(self, new: list[Node], at_end: bool) -> bool:
        """Put loops in place of what repeats itself among operations; whether there was anything."""
        growing = self.growing
        passes = 0
        while passes < MOST_PASSES and len(new) >= LEAST_NODES and self._pass(new, at_end):
            passes += 1
            if self.growing is not growing:
                break
        return passes > 0

    def _pass(self, new: list[Node], at_end: bool) -> bool:
        used = _in_use(new, self._known.values)
        recording = Recording.of(new, ())
        if lost := _between(recording):
            new[:] = sorted([*new, *lost], key=_serial)
            recording = Recording.of(new, ())
        found = stretches_in(recording)
        fresh: list[Node] = []
        token = RECORDED.set(fresh)
        try:
            mixed = mixed_in(recording, found)
            self.waits = (bool(mixed) or may_be_mixed(recording, found)) and (at_end or len(new) < MOST_HELD)
            if self.waits:
                return False
            rolled = contract_mixed(recording, mixed, used, self._settle)
        finally:
            RECORDED.reset(token)
        if rolled:
            new[:] = _left([*used, *_outside(new, rolled)], {*new, *fresh})
            return True
        goes_on: Stretch | None = None
        chosen: list[Stretch] = []
        for stretch in found:
            if at_end or stretch.end + stretch.period <= len(new):
                chosen.append(stretch)
            elif stretch.turns > LEAST_TURNS and 2 * (stretch.end - stretch.start) > len(new):
                # Other loops that may go on are short: they are whole the next time.
                goes_on = stretch.without_last()
                chosen.append(goes_on)
        token = RECORDED.set(fresh)
        try:
            last = contract(recording, chosen, used, self._settle, goes_on) if chosen else None
        finally:
            RECORDED.reset(token)
        if last is None:
            return False
        own = {*new, *fresh}
        outside = _outside(new, chosen)
        if goes_on is None or last.growing is None or last.stretch is not goes_on:
            new[:] = _left([*used, *outside], own)
            return True
        self._close()
        self.growing, self.fresh = last.growing, fresh
        start, rest = new[goes_on.start].serial, new[goes_on.end :]
        self.before += _left([node for node in (*used, *outside) if node.serial < start], own)
        new[:] = rest
        return True


def _in_use(operations: Sequence[Node], known: Collection[Node]) -> list[Node]:
    """The operations that something refers to beside those that read them, which is in use by the recorded function."""
    readers = dict.fromkeys(operations, 0)
    for node in operations:
        for source in node.inputs:
            if source in readers:
                readers[source] += 1
    # The dict refers to each, too.
    usual = [count + 1 + 2 * (node in known) for node, count in readers.items()]
    counts = references(operations)
    return [node for node, count, own in zip(operations, counts, usual, strict=True) if count > own]


def _outside(operations: Sequence[Node], stretches: Iterable[Stretch | Mixture]) -> list[Node]:
    """The operations that are in none of some stretches."""
    found: list[Node] = []
    at = 0
    for stretch in stretches:
        found += operations[at : stretch.start]
        at = stretch.end
    return [*found, *operations[at:]]


def _between(recording: Recording) -> list[Node]:
    """Nodes that are made of those of a recording, and that others of it are made of, but that are not in it.

    A turn of a loop that has grown may be read when nothing seemed to use it any more. Without it, a loop around its
    reader would be made of itself.
    """
    nodes, places = recording.nodes, recording.places
    waiting = [atom for atom in recording.atoms if nodes and atom.inputs and atom.serial > nodes[0].serial]
    depends: dict[Node, bool] = {}
    while waiting:
        node = waiting[-1]
        if node in depends:
            waiting.pop()
        elif places.get(node, -1) >= 0 or node.serial <= nodes[0].serial:
            depends[node] = places.get(node, -1) >= 0
        elif more := [source for source in node.inputs if source not in depends]:
            waiting += more
        else:
            depends[node] = any(depends[source] for source in node.inputs)
    return [node for node, found in depends.items() if found and places.get(node, -1) < 0]


def _left(roots: Iterable[Node], own: Collection[Node]) -> list[Node]:
    """Of some nodes, the operations that others are made of, in the order of their making."""
    found: set[Node] = set()
    waiting = list(roots)
    for node in waiting:
        if node in own and node not in found:
            found.add(node)
            waiting += node.inputs
    return sorted([node for node in found if not is_source(node)], key=_serial)


def _in_one_place(nodes: Iterable[Node]) -> bool:
    """Whether values belong to the CPU, or to one device."""
    places = {node.place for node in nodes}
    return places <= CPU_PLACES or (HOST not in places and len(places - CPU_PLACES) == 1)
