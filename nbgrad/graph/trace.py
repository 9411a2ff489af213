"""Recording: the transform that records now, and the facts that it has learnt.

In: transforms open a `Trace`. Out: `current_trace()`, which any code may ask. A ContextVar is the only mutable state
of the recorder; threads and async tasks each have their own. (`CELLS` only says that something has changed.)
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import numpy as np

from .. import config
from ..errors import DtypeError, NbgradError, shorten, users_frame
from ..process.gc_pause import RareCollection
from ..process.modes import TRACED
from .ir import RECORDED, Node, due, next_serial
from .known_values import KnownValues
from .loops.in_place import Settle
from .loops.noted import NotedNodes, current_notes
from .loops.repetition import LEAST_NODES
from .loops.watch import Watch
from .loops.window import Window

_current: ContextVar[Trace | None] = ContextVar("nbgrad_trace", default=None)
current_trace: Callable[[], Trace | None] = _current.get
"""The innermost recording, or None."""


class Written(NamedTuple):
    """A Tensor that was written to, its nodes before and after that, and the class that it had before."""

    tensor: Any
    before: Node
    after: Node
    kind: type


class Trace:
    """One recording, for the time of a `with` block: its `arguments` are the nodes that stand for the arguments of the
    recorded function, `fn`. With `rolls`, loops are looked for while it goes on: nodes that are in use may change, but
    not their values. It makes a node know how its value lies in memory.

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
    node alive). `turn_checks` is None unless one turn of a loop is recorded: then it has the conditions that must hold
    in every turn, `turn_ends` the loops in it that end by a value, and `examples`, which gives the values of its
    arguments in the first turn; it is `optional` where Python's own statement would do. `budgets` are those of jitted
    functions that became part of it. `refused` is the last error for a value that would have left the recording, with
    the user's frame at that moment. `nodes` are those in which loops are looked for, in the order of their making;
    None where they are not. `elements` are those of short arguments that it has read, and `taken` has NumPy's arrays
    that it has met last, by `id`: references to their nodes. `tokens` are those of the calls whose order counts
    (call_order.py), in the order of their making, and `batch` is the `Batch` for each value of which they are made.
    `met` is a list where somebody wants to know which arrays from outside became constants, with the values that they
    had. `chosen` has the arrays that statements have chosen by a value (record/chosen_arrays.py). `journal` is a dict
    where a side of a branch or a turn of a loop is recorded: by `id`, each Tensor that it has written to, with the
    node and the class that it had before. `fresh` has, by `id`, Tensors that the function has made of arrays from
    outside, as copies are: their nodes are older than the recording, and it may write to them.
    """

    __slots__ = (
        "_apart",
        "_collection",
        "_known",
        "_noted",
        "_token",
        "_watch",
        "_window",
        "alike",
        "arguments",
        "batch",
        "batched",
        "began",
        "budgets",
        "callers",
        "cells",
        "checks",
        "chosen",
        "collects",
        "elements",
        "examples",
        "fn",
        "fresh",
        "frozen",
        "guards",
        "journal",
        "mapping",
        "met",
        "nodes",
        "numbers",
        "optional",
        "orders",
        "outside",
        "owned",
        "parent",
        "refused",
        "settle",
        "size",
        "start",
        "taken",
        "tokens",
        "turn_checks",
        "turn_ends",
        "unchecked",
        "varying",
        "written",
    )

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
        parent = self.parent = current_trace()
        self.fn, self.settle = of, rolls
        self._window: Window | None = None
        self._watch: Watch | None = None
        self._collection: RareCollection | None = None
        self.nodes: list[Node] | None = None
        self._apart: list[Node] | None = None
        if rolls is not None or turn:
            notes = current_notes()
            if rolls is not None and config.roll():
                self.nodes = [] if notes is None else NotedNodes(notes.add)
            elif notes is not None:
                self._apart = NotedNodes(notes.add_apart)
        self.unchecked = 0
        self.elements: dict[tuple[Node, int], weakref.ref[Node]] = {}
        self.turn_checks: list[tuple[Node, str, type[NbgradError]]] | None = [] if turn else None
        self.turn_ends: list[Any] | None = [] if turn else None
        self.examples: Callable[[], Mapping[Node, Node]] | None = None
        self.optional = False
        self.arguments = frozenset(arguments)
        self.mapping, self.size = mapping, size
        self.guards: list[tuple[Node, np.ndarray]] | None = [] if jit else None
        self.checks: list[tuple[Node, str, type[NbgradError]]] = []
        self.cells: dict[Any, Any] = {}
        self.written: dict[Any, Node] = {}
        self.outside: dict[int, tuple[Any, Node]] = {}
        self.fresh: dict[int, weakref.ref[Any]] = {}
        self.start = self.began = next_serial()
        self.collects = jit or turn or mapping is not None
        self.frozen = jit
        self.numbers: dict[Any, Node] = {}
        self.batched: dict[Node, Node | None] = {} if mapping is None else dict(mapping)
        self.owned: dict[float, bool] = {}
        self.varying: dict[float, bool] = {}
        self.refused: tuple[NbgradError, FrameType | None, int] | None = None
        self.orders: list[bool] = []
        self.callers = callers
        self.taken: dict[int, weakref.ref[Node]] = {} if parent is None else parent.taken
        self.alike: dict[Any, list[weakref.ref[Node]]] = {} if parent is None else parent.alike
        self.batch: Any = None
        self.tokens: list[Node] = [] if parent is None or turn else parent.tokens
        self._known: KnownValues | None = None
        self.budgets: list[Any] = [] if parent is None else parent.budgets
        self.met: list[tuple[Any, Any]] | None = None if parent is None else parent.met
        self.chosen: Any = None if parent is None else parent.chosen
        self.journal: dict[int, tuple[Any, Node, type]] | None = None if parent is None or jit else parent.journal
        if parent is not None and not jit:
            self.guards, self.checks, self.cells = parent.guards, parent.checks, parent.cells
            self.orders = parent.orders
            self.frozen, self.numbers = parent.frozen, parent.numbers
            self._known, self.varying = parent.known, parent.varying
            if not self.collects:
                self.collects, self.written = parent.collects, parent.written
                self.outside, self.start, self.fresh = parent.outside, parent.start, parent.fresh
            elif turn and parent.collects:
                # A journal has the writes to what the function around has made.
                self.start, self.fresh = parent.start, parent.fresh

    def __enter__(self) -> Trace:
        self._token = _current.set(self)
        recorded = self._apart if self.nodes is None else self.nodes
        noted = recorded is not None or self.turn_checks is not None
        self._noted = RECORDED.set(recorded) if noted else None
        if self.nodes is None:
            self._collect_seldom()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            _current.reset(self._token)
            if self._window is not None:
                self._window.follow(None)
            if self._watch is not None:
                self._watch.end()
            if self._noted is not None:
                RECORDED.reset(self._noted)
                around = RECORDED.get()
                if around is not None and self.nodes is not None:
                    around += self.nodes
        finally:
            # Not before: CPython may lose the value of a context variable that a finalizer reads while it is reset.
            if self._collection is not None:
                self._collection.__exit__(kind, error, traceback)
        if error is None and self.refused is not None:
            raise _caught(self.refused[0])
        if error is None and self.chosen is not None:
            self.chosen.check_containers()
        if error is not None:
            hidden = _hidden_behind(error, self)
            self.refused = None
            shorten(error)
            if hidden is not None:
                raise hidden.with_traceback(error.__traceback__) from None

    @property
    def known(self) -> KnownValues:
        """The values that it keeps."""
        if self._known is None:
            self._known = KnownValues()
        return self._known

    # ----- Long recordings -----

    def _collect_seldom(self) -> None:
        """Slow the garbage collector down until the end; where nodes are noted, when there are many."""
        if self._collection is None:
            self._collection = RareCollection()
            self._collection.__enter__()

    def is_long(self) -> bool:
        """Whether so much was recorded that there may be a loop."""
        return self.nodes is not None and next_serial() - self.began >= LEAST_NODES

    @property
    def window(self) -> Window | None:
        """The look for loops among its nodes; None where they are not looked for."""
        if self._window is None and self.nodes is not None and self.settle is not None:
            self._window = Window(self.known, self.settle, self.checks, self.nodes, self.began)
        return self._window

    def watch(self) -> Watch:
        """The look at recordings that take long: one for this recording and all around it that look for loops."""
        root = trace = self
        while trace.parent is not None:
            trace = trace.parent
            root = trace if trace.nodes is not None else root
        if root._watch is None:
            root._watch = Watch(root.fn, root.began)
        return root._watch

    def look(self) -> None:
        """Between two operations of the recorded function: look for loops, if enough was recorded since the last
        time."""
        window = self.window
        if window is None:
            return
        self._collect_seldom()
        watch = self.watch()
        if window.is_full() or watch.is_long(window):
            window.roll()
            # What is gone needs no answers.
            self.owned.clear()
            self.varying.clear()
        watch.look(window)
        follower = window.follower
        if follower is not None and follower.goes_on and follower not in due:
            due.append(follower)

    # ----- Writes -----

    def note_write(self, tensor: Any, node: Node) -> None:
        """A Tensor that had this node is written to: note it if it was there before the recording."""
        trace: Trace | None = self
        while trace is not None:
            if trace.callers and node in trace.callers:
                trace.callers.check_write(node)
            trace = trace.parent
        if self.chosen is not None:
            self.chosen.check_write(tensor)
        if self.journal is not None:
            self.journal.setdefault(id(tensor), (tensor, node, type(tensor)))
        if not self.collects or node.value is None or node.serial >= self.start:
            return
        known = self.fresh.get(id(tensor))
        if known is not None and known() is tensor:
            return
        trace = self
        while trace is not None:
            if node in trace.arguments:
                return
            trace = trace.parent
        self.outside.setdefault(id(tensor), (tensor, node))

    def note_made(self, tensor: Any, node: Node) -> None:
        """A Tensor has been made of a node with a value, or has become one: it is no Tensor from outside."""
        if self.collects and node.serial < self.start and id(tensor) not in self.outside:
            self.fresh[id(tensor)] = weakref.ref(tensor)

    def note_order(self) -> None:
        """Note that the recording depends on how arguments lie in memory."""
        if not self.orders:
            self.orders.append(True)

    def undo_journal(self) -> list[Written]:
        """Give Tensors in the journal the values back that they had before the recording."""
        assert self.journal is not None
        found = [Written(tensor, before, tensor._node, kind) for tensor, before, kind in self.journal.values()]
        for one in found:
            one.tensor._node = one.before
        self.journal = {}
        return found

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


def open_traces() -> list[Trace]:
    """The recordings that are going on in this thread, from the innermost outwards."""
    found: list[Trace] = []
    trace = current_trace()
    while trace is not None:
        found.append(trace)
        trace = trace.parent
    return found


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


def roll_if_full() -> None:
    """Between two operations of a recorded function: let its recording look for loops."""
    due.clear()
    trace = current_trace()
    if trace is not None:
        trace.look()


def depends_on_recording(node: Node) -> bool:
    """Whether a value belongs to a function that is being recorded now."""
    trace = current_trace()
    while trace is not None:
        if trace.owns(node):
            return True
        trace = trace.parent
    return False


def stands_for_many(node: Node) -> bool:
    """Whether a value differs between calls, or between the values that are mapped or carried."""
    trace = current_trace()
    while trace is not None:
        if (trace.mapping or trace.turn_checks is not None) and trace.owns(node):
            return True
        if trace.guards is not None and trace.varies(node):
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


recording = Trace
"""Opens a recording: `with recording(arguments) as trace`."""


def note_refusal(error: NbgradError) -> None:
    """A recorded value would have left: remember the error, which compiled code may lose."""
    trace = current_trace()
    frame = users_frame()
    if trace is not None and frame is not None:
        trace.refused = error, frame, frame.f_lasti


def forget_refusal() -> None:
    """nbgrad itself has caught such an error, and goes another way."""
    trace = current_trace()
    if trace is not None:
        trace.refused = None


def _caught(refusal: NbgradError) -> NbgradError:
    """A refusal that the recorded function has caught: it took another way than it takes with plain values."""
    text, place, line = str(refusal).rpartition(" (at ")
    refusal.args = (f"{text} The function caught this error; with plain values there is none.{place}{line}",)
    return refusal


_OTHER_LIBRARIES = {
    "PyTorch": ("from_torch", r"must be Tensor, not Tensor$|expected Tensor .*but got Tensor$"),
    "JAX": (
        "from_jax",
        r"nbgrad\.record.* is not a valid JAX|requires ndarray or scalar .*nbgrad\.record",
    ),
}
"""By library: the way in for its functions, and the words in which it refuses a Tensor of nbgrad's."""


def _hidden_behind(error: BaseException, trace: Trace) -> NbgradError | None:
    """The error that another one hides.

    NumPy hides why an element could not be stored behind "setting an array element with a sequence". Other compiled
    code forgets errors, or goes on without looking, and then something else fails within the same call.
    """
    if isinstance(error, ValueError) and isinstance(error.__cause__, NbgradError):
        return error.__cause__
    if isinstance(error, TypeError):
        text = str(error)
        for library, (door, words) in _OTHER_LIBRARIES.items():
            if re.search(words, text):
                message = (
                    f"The function calls {library} with nbgrad's Tensor, which it does not know ({text.rstrip('.')}). "
                    f"Write it with NumPy's functions, or call nb.interop.{door}(f)."
                )
                return DtypeError(message)
    if trace.refused is not None and not isinstance(error, NbgradError):
        refused, frame, position = trace.refused
        entry = error.__traceback__
        while entry is not None:
            if entry.tb_frame is frame and entry.tb_lasti == position:
                entry.tb_next = None
                return refused
            entry = entry.tb_next
    return None
