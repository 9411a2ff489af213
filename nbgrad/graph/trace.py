"""Recording: the transform that records now, and the facts that it has learnt.

In: transforms open a `Trace`. Out: `current_trace()`, which any code may ask. A ContextVar is the only mutable state
of the recorder; threads and async tasks each have their own. (`CELLS` only says that something has changed.)
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar, Token
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from .. import config
from ..errors import NbgradError, shorten, users_frame
from ..process.gc_pause import RareCollection
from ..process.modes import TRACED
from .ir import RECORDED, Node, due, next_serial
from .known_values import KnownValues
from .loops.in_place import Settle
from .loops.noted import NotedNodes, current_notes
from .loops.watch import Watch
from .loops.window import Window


class Trace:
    """One recording: its `arguments` are the nodes that stand for the arguments of the recorded function.

    `guards` is None unless `jit` records: then each guard is (node, value it had), and `checks` are conditions that
    must hold in every call; those from number `unchecked` on may have waited. `cells` maps Cells (and Parameters)
    that took part to the state that they had. A recording inside another shares all that. `written` maps Parameters
    to the nodes that they had before the function wrote to them, and `outside` does so for other Tensors that were
    there before the recording began, at node number `start`; only `jit`, `vmap` and loops, which undo such writes,
    collect them. `numbers` has the nodes of Python numbers that the function has used so far: a recording of `jit`
    has each of them once (`frozen`); otherwise equal numbers stay apart, because the same program serves later
    calls, in which they may differ. For `vmap`, `mapping` maps each argument to all its values, of which there are
    `size`, and `batched` has those of every node that they were needed of. `callers` knows the arrays that the
    arguments stand for; `orders` is not empty once something depended on how they lie in memory. `known`, `owned`
    and `varying` remember values and answers about nodes (the latter two by serial number, so that they keep no
    node alive). `turn_checks` is None unless one turn of a loop is recorded: then it has the conditions that must
    hold in every turn, and `turn_ends` the loops in it that end by a value. `budgets` are those of jitted functions
    that became part of it. `refused` is the last error for a value that would have left the recording, with the
    user's frame at that moment. `window` has the nodes in which loops are looked for; None where they are not.
    `watch` looks at recordings that take long; those inside have the same. `elements` are those of short arguments that
    it has read.
    """

    __slots__ = (
        "arguments",
        "batched",
        "budgets",
        "callers",
        "cells",
        "checks",
        "collects",
        "elements",
        "frozen",
        "guards",
        "known",
        "mapping",
        "numbers",
        "orders",
        "outside",
        "owned",
        "parent",
        "refused",
        "size",
        "start",
        "turn_checks",
        "turn_ends",
        "unchecked",
        "varying",
        "watch",
        "window",
        "written",
    )

    def __init__(
        self,
        parent: Trace | None,
        arguments: Iterable[Node],
        jit: bool,
        mapping: Mapping[Node, Node] | None,
        size: int,
        callers: Any = None,
        turn: bool = False,
    ) -> None:
        self.parent = parent
        self.window: Window | None = None
        self.watch: Watch | None = None if parent is None else parent.watch
        self.unchecked = 0
        self.elements: dict[tuple[Node, int], weakref.ref[Node]] = {}
        self.turn_checks: list[tuple[Node, str, type[NbgradError]]] | None = [] if turn else None
        self.turn_ends: list[Any] | None = [] if turn else None
        self.arguments = frozenset(arguments)
        self.mapping, self.size = mapping, size
        self.guards: list[tuple[Node, np.ndarray]] | None = [] if jit else None
        self.checks: list[tuple[Node, str, type[NbgradError]]] = []
        self.cells: dict[Any, Any] = {}
        self.written: dict[Any, Node] = {}
        self.outside: dict[int, tuple[Any, Node]] = {}
        self.start = next_serial()
        self.collects = jit or turn or mapping is not None
        self.frozen = jit
        self.numbers: dict[Any, Node] = {}
        self.batched: dict[Node, Node | None] = {} if mapping is None else dict(mapping)
        self.owned: dict[float, bool] = {}
        self.refused: tuple[NbgradError, FrameType | None, int] | None = None
        self.orders: list[bool] = []
        self.callers = callers
        self.budgets: list[Any] = [] if parent is None else parent.budgets
        if parent is not None and not jit:
            self.guards, self.checks, self.cells = parent.guards, parent.checks, parent.cells
            self.orders = parent.orders
            self.frozen, self.numbers = parent.frozen, parent.numbers
            self.known, self.varying = parent.known, parent.varying
            if not self.collects:
                self.collects, self.written = parent.collects, parent.written
                self.outside, self.start = parent.outside, parent.start
        else:
            self.known = KnownValues()
            self.varying: dict[float, bool] = {}

    def note_write(self, tensor: Any, node: Node) -> None:
        """A Tensor that had this node is written to: note it if it was there before the recording."""
        trace: Trace | None = self
        while trace is not None:
            if trace.callers and node in trace.callers:
                trace.callers.check_write(node)
            trace = trace.parent
        if not self.collects or node.value is None or node.serial >= self.start:
            return
        trace = self
        while trace is not None:
            if node in trace.arguments:
                return
            trace = trace.parent
        self.outside.setdefault(id(tensor), (tensor, node))

    def note_order(self) -> None:
        """Note that the recording depends on how arguments lie in memory."""
        if not self.orders:
            self.orders.append(True)

    def undo_writes(self) -> list[tuple[Any, Node]]:
        """Give Parameters and outside Tensors their values back; the Parameters, and the node written to each."""
        written = [(parameter, parameter._leaf) for parameter in self.written]
        for parameter, before in self.written.items():
            parameter._restore(before)
        for tensor, node in self.outside.values():
            tensor._node = node
        return written

    def owns(self, node: Node) -> bool:
        """Whether a node's value depends on the arguments, or for `jit` on Parameters."""
        jit = self.guards is not None

        def is_input(n: Node) -> bool:
            return n in self.arguments or (jit and n.owner is not None and n.name == "input")

        return _reaches(node, self.owned, is_input)

    def varies(self, node: Node) -> bool:
        """Whether a value differs between calls of the function that `jit` records."""
        if self.guards is None or not node.traced:
            return False
        return _reaches(node, self.varying, lambda n: n.name == "input")


def _reaches(node: Node, known: dict[float, bool], wanted: Callable[[Node], bool]) -> bool:
    """Whether a node, or anything that it was made of, is wanted; `known` remembers the answers."""
    stack = [node]
    while stack:
        current = stack[-1]
        unknown: Node | None = None
        answer = wanted(current)
        for source in current.inputs:
            found = known.get(source.serial)
            if found:
                answer = True
                break
            if found is None:
                unknown = source
        if answer or unknown is None:
            known[current.serial] = answer
            stack.pop()
        else:
            stack.append(unknown)
    return known[node.serial]


class Version:
    """The state of all Cells: while `token` stays the same object, no compiled program has to look at its Cells.

    Code that changes a Cell sets a new token afterwards. Threads may do so at once: no token is like another.
    """

    __slots__ = ("token",)

    def __init__(self) -> None:
        self.token = object()


CELLS = Version()

_current: ContextVar[Trace | None] = ContextVar("nbgrad_trace", default=None)


def current_trace() -> Trace | None:
    """The innermost recording, or None."""
    return _current.get()


def roll_if_full() -> None:
    """Between two operations of a recorded function: look for loops, if enough was recorded since the last time."""
    due.clear()
    trace = current_trace()
    if trace is None or trace.window is None or trace.watch is None:
        return
    if trace.window.is_full() or trace.watch.is_long(trace.window):
        trace.window.roll()
        # What is gone needs no answers.
        trace.owned.clear()
        trace.varying.clear()
    trace.watch.look(trace.window)
    follower = trace.window.follower
    if follower is not None and follower.goes_on and follower not in due:
        due.append(follower)


def depends_on_recording(node: Node) -> bool:
    """Whether a value belongs to a function that is being recorded now."""
    trace = current_trace()
    while trace is not None:
        if trace.owns(node):
            return True
        trace = trace.parent
    return False


def is_being_recorded(node: Node) -> bool:
    """Whether a recording works with a value, other than a Parameter's that nothing differentiates now, or one of
    which `stop_gradient` says that it is a constant."""
    if not node.traced or current_trace() is None:
        return False
    waiting = [node]
    found: set[Node] = set(waiting)
    for one in waiting:
        if one.name == "stop_gradient":
            continue
        sources = [source for source in one.inputs if source.traced]
        here = one.traced & TRACED and one.owner is None
        if not sources and (here or depends_on_recording(one)):
            return True
        waiting += [source for source in sources if source not in found]
        found.update(sources)
    return False


class recording:  # noqa: N801 - used like a function
    """Open a recording for the time of a `with` block, which gets the `Trace`.

    With `rolls`, loops are looked for while it goes on: nodes that are in use may change, but not their values. It
    makes a node know how its value lies in memory. `of` is the recorded function.
    """

    __slots__ = ("collection", "noted", "own_watch", "token", "trace")

    def __init__(
        self,
        arguments: Iterable[Node] = (),
        jit: bool = False,
        mapping: Mapping[Node, Node] | None = None,
        size: int = 0,
        callers: Any = None,
        turn: bool = False,
        rolls: Settle | None = None,
        of: Callable[..., Any] | None = None,
    ) -> None:
        self.trace = Trace(_current.get(), arguments, jit, mapping, size, callers, turn)
        self.collection = RareCollection()
        self.noted: Token[list[Node] | None] | None = None
        self.own_watch: Watch | None = None
        if rolls is not None and config.roll():
            self.trace.window = Window(self.trace.known, rolls, self.trace.checks)
            notes = current_notes()
            if notes is not None:
                self.trace.window.nodes = NotedNodes(notes)
            if self.trace.watch is None:
                self.own_watch = self.trace.watch = Watch(of)

    def __enter__(self) -> Trace:
        self.token = _current.set(self.trace)
        window = self.trace.window
        if window is not None or self.trace.turn_checks is not None:
            self.noted = RECORDED.set(None if window is None else window.nodes)
        self.collection.__enter__()
        return self.trace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        window = self.trace.window
        try:
            _current.reset(self.token)
            if window is not None:
                window.follow(None)
            if self.own_watch is not None:
                self.own_watch.end()
            if self.noted is not None:
                RECORDED.reset(self.noted)
                around = RECORDED.get()
                if around is not None and window is not None:
                    around += window.nodes
        finally:
            # Not before: CPython may lose the value of a context variable that a finalizer reads while it is reset.
            self.collection.__exit__(kind, error, traceback)
        if error is not None:
            hidden = _hidden_behind(error, self.trace)
            self.trace.refused = None
            shorten(error)
            if hidden is not None:
                raise hidden.with_traceback(error.__traceback__) from None


def note_refusal(error: NbgradError) -> None:
    """A recorded value would have left: remember the error, which compiled code may lose."""
    trace = current_trace()
    frame = users_frame()
    if trace is not None and frame is not None:
        trace.refused = error, frame, frame.f_lasti


def _hidden_behind(error: BaseException, trace: Trace) -> NbgradError | None:
    """The error that another one hides.

    NumPy hides why an element could not be stored behind "setting an array element with a sequence". Other compiled
    code forgets errors, or goes on without looking, and then something else fails within the same call.
    """
    if isinstance(error, ValueError) and isinstance(error.__cause__, NbgradError):
        return error.__cause__
    if trace.refused is not None and not isinstance(error, NbgradError):
        refused, frame, position = trace.refused
        entry = error.__traceback__
        while entry is not None:
            if entry.tb_frame is frame and entry.tb_lasti == position:
                entry.tb_next = None
                return refused
            entry = entry.tb_next
    return None
