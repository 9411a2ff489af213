"""Values on demand: computes a node when Python needs its value.

In: a node and why its value is needed. Out: an ndarray (for what lives on a device, a copy). Called by Tensor
(`bool()`, `float()`, `asnumpy()`, printing) and by operations whose shape depends on values. While a function is
recorded for `jit`, asking for a truth value or an integer records a guard; asking for anything else is an error, since
the recorded program could not know.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, repeat
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .. import config
from ..errors import DeviceError, NbgradError, RangeError, TracedValueError, user_location
from ..graph.batch import batch_further
from ..graph.builders import reduce
from ..graph.graph_key import INPUT, structure
from ..graph.host_functions import is_call
from ..graph.interpret import interpret, interpret_order
from ..graph.ir import (
    CPU_PLACES,
    HOST,
    PRIMITIVES,
    RECORDED,
    Node,
    elementwise,
    make,
    on_host,
    plain,
    plain_dtype,
    topological,
    with_inputs,
)
from ..graph.known_values import KnownValues, Piece
from ..graph.loops.loop_body import LOOP
from ..graph.matrix_rows import takes_long
from ..graph.trace import Trace, current_trace
from ..process.gc_pause import RareCollection
from ..process.locks import ForkSafeLock
from ..process.modes import KEEPS, REMEMBERS, TRACED, USUAL, attentive, mode
from .budget import Budget
from .cpu_program import MISSED, Output, Program, missed
from .memory_order import strides_of

_programs: dict[Any, list[Any]] = {}
"""Programs of un-jitted computations by their structure, each with the time of its last use, and None or the places of
results that are None."""
_uses = count()
_lock = ForkSafeLock()


class _Pending(threading.local):
    """Parameters of this thread whose new values are not computed yet; the next computation finishes them."""

    def __init__(self) -> None:
        self.parameters: dict[Any, None] = {}

    def add(self, parameter: Any) -> None:
        """Remember a Parameter that was written to."""
        self.parameters[parameter] = None

    def take(self) -> list[Any]:
        """All of them; from now on they count as finished."""
        if not self.parameters:
            return []
        taken: list[Any] = []
        for parameter in self.parameters:
            leaf = parameter._leaf
            if leaf.value is None:
                taken.append(parameter)
            elif leaf.owner is None:
                # The value was asked for meanwhile.
                parameter._hold_all([parameter], [leaf.value])
        self.parameters = {}
        return taken


pending = _Pending()

JOIN = PRIMITIVES["complex"]
LINES: WeakKeyDictionary[Node, str] = WeakKeyDictionary()
"""The user's lines that nodes come from, noted while anomalies are looked for."""
INTERPRETED_SIZE = 20_000
"""Single values of at most so many elements, asked for in passing, are computed by the interpreter."""
CHECKED_AT_ONCE = 16
"""Conditions that are checked where they stand while jit records. In a loop, more wait for the compiled program, which
checks all of them, or until the function asks for a value."""
LONGEST_CHAIN = 500
"""Untraced lazy chains are computed when they get deeper than this."""


class _Questions:
    """How often a value was asked for: a function that has asked may do something else for another value."""

    def __init__(self) -> None:
        self.count = 0


questions = _Questions()


def concrete(node: Node, reason: str) -> np.ndarray:
    """The value of a node.

    Parameters
    ----------
    node : Node
    reason : {"bool", "int", "float", "array"}
        The use of the value, which decides what happens while `jit` records.

    Returns
    -------
    ndarray
        Not to be written to.
    """
    trace = current_trace()
    if trace is not None and trace.guards is not None and trace.varies(node):
        if reason not in ("bool", "int"):
            message = (
                f"The {'number' if reason == 'float' else 'array'} behind a Tensor of shape {node.shape} is "
                "needed while jit records the function, but it differs from call to call. Keep it a Tensor, take it "
                "out of the jitted function, or return it."
            )
            raise TracedValueError(message)
        if len(trace.checks) > CHECKED_AT_ONCE:
            _check(trace)
        decisive = _decisive(node, reason)
        trace.guards.append((decisive, on_host(computed(decisive))))
    return on_host(computed(node))


def _decisive(node: Node, reason: str) -> Node:
    """The node that decides about the truth value or the integer of a value, and has no other digits of it."""
    kind = node.dtype.kind
    if reason == "bool" and kind != "b":
        return elementwise("not_equal", node, 0)
    return elementwise("trunc", node) if kind == "f" else node


def known(node: Node) -> Any:
    """The value of a node where it lives: an ndarray, or a `DeviceArray`."""
    return computed(node) if node.device is not None and current_trace() is None else concrete(node, "array")


def computed(node: Node) -> Any:
    """The value of a node where it lives: an ndarray, or a `DeviceArray`.

    Only what has no known value yet is computed. Values that may be needed again are kept: while a function is
    recorded, by the recording; otherwise by their nodes.
    """
    questions.count += 1
    if node.value is None:
        trace = current_trace()
        known = None if trace is None else trace.known
        if known is not None and node in known.values:
            return known.values[node]
        piece = Piece(node, {} if known is None else known.values)
        for source in piece.readers:
            if source.primitive is INPUT:
                refuse(node, source)
            if trace is not None and is_call(source):
                refuse_calls(node)
        kept = [one for one in piece.held() if one is not node]
        value, *values = _piece_values(piece, [node, *kept], known)
        if known is not None:
            known.keep(piece, kept, values)
        take_value(node, value, trace is None)
        if known is None:
            for one, found in zip(kept, values, strict=True):
                take_value(one, found, True)
    return node.value


def _piece_values(piece: Piece, nodes: Sequence[Node], known: KnownValues | None) -> Sequence[Any]:
    """The values of nodes of a piece: small ones by the interpreter, others by a compiled program."""
    values: Mapping[Node, Any] = {} if known is None else known.values
    asked = nodes if known is None else nodes[:1]
    heavy = any(node.primitive is LOOP or takes_long(node) for node in piece.readers)
    if not heavy and all(node.device is None and node.size <= INTERPRETED_SIZE for node in asked):
        at_hand = {node: on_host(values.get(node, node.value)) for node in piece.known}
        return interpret_order(list(piece.readers), at_hand, nodes)
    if not any(node.inputs for node in piece.known):
        return compute(nodes)
    return compute(piece.over_constants(nodes, values))


def take_value(node: Node, value: Any, forget: bool) -> None:
    """Let a node have a value; if nothing will differentiate it, it can `forget` how it was made. If it depends on a
    differentiable leaf, it remembers.

    Sources stay what they are, since literals are shared.
    """
    if isinstance(value, np.ndarray) and node.size <= INTERPRETED_SIZE:
        value = np.array(value, order="C")
        value.flags.writeable = False
    node.value = value
    if node.traced & KEEPS and node.dtype.kind in "fc":
        node.depth = 0
        return
    if forget and node.inputs:
        if node.layout is not None:
            strides_of(node)
        node.primitive, node.inputs, node.params = PRIMITIVES["constant"], (), ()
        node.depth, node.traced = 0, False


def refuse(node: Node, source: Node) -> None:
    """Raise for a value that does not exist, because `source` stands for many values or for none any more."""
    trace = current_trace()
    while trace is not None:
        if trace.mapping and source in trace.mapping:
            message = (
                f"The value of a Tensor of shape {node.shape} is needed while vmap records the function, but there it "
                "stands for many values at once. Use np.where instead of a branch, "
                "nbgrad.numpy.asarray(table)[k:k + 3] instead of a slice of an ndarray, or take it out of the function."
            )
            raise TracedValueError(message)
        if trace.turn_checks is not None and source in trace.arguments:
            message = (
                f"The value of a Tensor of shape {node.shape} is needed while one turn of a loop is recorded, but "
                "there it stands for the values of all turns. Use np.where instead of a branch, "
                "nbgrad.numpy.asarray(table)[k:k + 3] instead of a slice of an ndarray, or take it out of the loop."
            )
            raise TracedValueError(message)
        trace = trace.parent
    message = (
        f"A Tensor of shape {node.shape} that jit or vmap recorded is used after the recording, when it has no value. "
        "Return it from the function instead of storing it elsewhere."
    )
    raise TracedValueError(message)


def refuse_calls(node: Node) -> None:
    """Raise for a value behind calls whose order counts, which would be made once more when the program runs."""
    message = (
        f"The value of a Tensor of shape {node.shape} is needed while a function is recorded, but it depends on "
        "messages between processes, which only the recorded program sends. Return it, or choose with np.where."
    )
    raise TracedValueError(message)


def compute(nodes: Sequence[Node], budget: Budget | None = None) -> list[Any]:
    """The values of nodes, all by one compiled program (one for each place where they live).

    The program is found by the structure of the graph, so the same computation on other values, or on the same shapes
    again, compiles nothing.
    """
    written = pending.take() if current_trace() is None else []
    if not (nodes or written):
        return []
    arrays = _run([*nodes, *[parameter._leaf for parameter in written]], [], list, budget)
    return _finish(written, arrays, len(nodes))


def compute_derived(
    nodes: Sequence[Node], sources: Sequence[Node], derive: Callable[[], list[Node]], budget: Budget | None = None
) -> list[Any]:
    """The values of `nodes`, then those of the nodes that `derive` makes of `sources`: their gradients, say.

    The result of `derive` must follow from the structure of `sources`, so that it is only called for a structure that
    was not seen before: recorded functions are then neither differentiated nor simplified again.

    If any of them lives on a device, all results do.
    """
    if pending.parameters and not CPU_PLACES.issuperset([node.place for node in (*nodes, *sources)]):
        finish_pending()
    written = pending.take() if pending.parameters else []
    if not written:
        return _run(list(nodes), sources, derive, budget)
    given = [*nodes, *[parameter._leaf for parameter in written]]
    arrays = _run(given, sources, derive, budget)
    derived = arrays[len(given) :]
    return [*_finish(written, arrays[: len(given)], len(nodes)), *derived]


def finish_pending() -> None:
    """Compute what was written to Parameters and is not known yet."""
    compute([])


def _finish(written: list[Any], arrays: list[Any], count: int) -> list[Any]:
    """The first arrays; the others become the values of the Parameters that were written to."""
    if written:
        type(written[0])._hold_all(written, arrays[count:])
    return arrays[:count]


def _run(
    nodes: list[Node], sources: Sequence[Node], derive: Callable[[], list[Node]], budget: Budget | None = None
) -> list[Any]:
    if not sources:
        nodes, derive = [*nodes, *derive()], list
    device = None
    places = set(map(_place, (*nodes, *sources)))
    if not places <= CPU_PLACES:
        if not sources and len({None if place is HOST else place for place in places}) > 1:
            return _run_apart(nodes)
        device, *others = places - CPU_PLACES
        if others:
            return _run([*nodes, *derive()], [], list)
    if config.interpret():
        nodes = [*nodes, *derive()]
        values = [np.array(value, order="C") for value in interpret(nodes)]
        return values if device is None else at_home([uploaded(value, device) for value in values], nodes)
    custom: list[Node] = []
    key, leaves = structure([*nodes, *sources], custom)
    if sources and custom:
        # A user's rule may do something else each time.
        return _run([*nodes, *derive()], [], list, budget)
    key = (len(nodes), device, budget, key) if sources else (device, budget, key)
    return _found(key, leaves, lambda: [*nodes, *derive()], device, budget)


def compute_remembered(
    nodes: Sequence[Node],
    sources: Sequence[Node],
    derive: Callable[[Sequence[Node]], list[Node | None]],
    wanted: Sequence[Node] | None = None,
    way: Any = None,
    order: Sequence[Node] | None = None,
) -> tuple[list[Any], Sequence[Node]]:
    """The values of `nodes`, then of what `derive` makes of `wanted`; and `wanted`, by default all leaves of `sources`.

    As `compute_derived`, but one walk over the graph finds the differentiable leaves and the program, and `derive` may
    give None, which follows from the structure too. Several such functions for one structure differ by their `way`.
    `order` has all nodes that take part, if they are known.
    """
    custom: list[Node] = []
    everything = [*nodes, *sources, *(wanted or ())]
    key, leaves = structure(everything, custom, order)
    places = ()
    if wanted is None:
        places = tuple([k for k, leaf in enumerate(leaves) if leaf.owner is not None and leaf.traced & REMEMBERS])
        wanted = [leaves[k] for k in places]
    simple = not (custom or pending.parameters or config.interpret())
    if simple and CPU_PLACES.issuperset(map(_place, everything)):
        return _found((len(nodes), places, way, key, None), leaves, lambda: [*nodes, *derive(wanted)]), wanted
    made = derive(wanted)
    return _with_gaps(compute([*nodes, *filter(None, made)]), [*nodes, *made]), wanted


def _with_gaps(values: Iterable[Any], nodes: Sequence[Any]) -> list[Any]:
    """The values of nodes, and None for those that are None."""
    given = iter(values)
    return [None if node is None else next(given) for node in nodes]


def put_in_front(watcher: Callable[..., Any] | None) -> None:
    """Let a function call programs from now on, to measure them, or none any more.

    It gets a function that runs the program, one that gives the program afterwards, and whether it was made anew.
    """
    global _found
    if watcher is None:
        _found = _found_and_run
        return

    def watched(key: Any, *args: Any) -> list[Any]:
        is_new = key not in _programs
        return watcher(lambda: _found_and_run(key, *args), lambda: _programs[key][1], is_new)

    _found = watched


def _found_and_run(
    key: Any,
    leaves: Sequence[Node],
    nodes: Callable[[], Sequence[Node | None]],
    device: Any = None,
    budget: Budget | None = None,
) -> list[Any]:
    """The results of the program with a key, for the values of leaves; without one, it is made of the nodes."""
    entry = _programs.get(key)
    if entry is None:
        # A recorded function may ask for a value: the nodes of the program are none of its operations.
        token = RECORDED.set(None)
        try:
            with RareCollection():
                made = nodes()
                outputs, arguments = _without_values([node for node in made if node is not None], leaves)
                program = make_program([Output(node) for node in outputs], arguments, device, budget)
        finally:
            RECORDED.reset(token)
        entry = [next(_uses), program, None if len(outputs) == len(made) else [node and True for node in made]]
        with _lock.held():
            _programs[key] = entry
            if len(_programs) > config.kept_programs():
                # An eighth at once, so that not every new program looks at all others.
                longest_ago = sorted(_programs, key=lambda key: _programs[key][0])
                for old in longest_ago[: max(len(_programs) - config.kept_programs(), len(_programs) // 8)]:
                    del _programs[old]
    else:
        entry[0] = next(_uses)
        program = entry[1]
    try:
        found: Any = program.call(*map(_value, leaves)) if device is None else MISSED
        if found is MISSED:
            found = program.call(*map(ready, leaves, repeat(device)))
        assert found is not MISSED
    except MemoryError as error:
        if error.args or device is not None:
            raise
        lacking = program.out_of_memory("The computation")
        raise lacking from None
    if entry[2] is not None:
        return _with_gaps(found, entry[2])
    return list(found) if device is None else at_home(found, [output.node for output in program.outputs])


_found: Callable[..., list[Any]] = _found_and_run


def at_home(values: Sequence[Any], nodes: Sequence[Node]) -> list[Any]:
    """The results of a device; the values of nodes that belong to the CPU are copied there."""
    return [on_host(v) if node.place is HOST else v for v, node in zip(values, nodes, strict=True)]


_place, _value = attrgetter("place"), attrgetter("value")


def _run_apart(nodes: Sequence[Node]) -> list[Any]:
    """The values of nodes in several places, by a program for each place."""
    found: dict[Node, Any] = {}
    for device in dict.fromkeys([node.device for node in nodes]):
        group = [node for node in dict.fromkeys(nodes) if node.device is device]
        found.update(zip(group, _run(group, [], list), strict=True))
    return [found[node] for node in nodes]


def _without_values(nodes: Sequence[Node], leaves: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """A copy of a graph over leaves without values, so that a program does not keep the arrays of its first call."""
    new: dict[Node, Node] = {}
    given = set(leaves)
    for node in topological([*nodes, *leaves]):
        inputs = tuple([new[source] for source in node.inputs])
        new[node] = with_inputs(node, inputs) if node in given or inputs != node.inputs else node
    return [new[node] for node in nodes], [new[leaf] for leaf in leaves]


def make_program(
    outputs: Sequence[Output], arguments: Sequence[Node], device: Any, budget: Budget | None = None
) -> Any:
    """A program for the CPU, or for a device, whose results all live there."""
    if device is None:
        return Program(outputs, arguments, fallback=missed, budget=budget)
    if budget is not None:
        message = "A memory budget is for programs of the CPU: on a device, loops keep all turns. Leave out memory=."
        raise DeviceError(message)
    from .device_program import DeviceProgram

    return DeviceProgram(outputs, arguments, device)


def uploaded(value: np.ndarray, device: Any) -> Any:
    """An ndarray's copy on a device."""
    from ..device.memory.arrays import DeviceArray

    return DeviceArray.of(value, device)


def ready(leaf: Node, device: Any = None) -> Any:
    """A leaf's array as programs of a device (None: the CPU) read it: there, or in C order and aligned."""
    value = leaf.value
    if value is None:
        refuse(leaf, leaf)
    assert value is not None
    dtype = plain_dtype(leaf.dtype)
    if value.__class__ is np.ndarray:
        if value.flags.c_contiguous and value.flags.aligned and value.dtype is dtype:
            return value
    elif not isinstance(value, np.ndarray | np.generic):
        if value.device is device:
            return value
        value = value.to_host()
    return plain(np.array(value, dtype=dtype, order="C", subok=False))


def settle(node: Node) -> Node:
    """A node as the mode wants it; one that ends a very long chain which nothing is recording is computed."""
    if attentive:
        node = _finished(node)
    if node.depth > LONGEST_CHAIN and current_trace() is None:
        computed(node)
    return node


def _finished(node: Node) -> Node:
    """The value of an operation as the mode wants it: one that does not remember, if nothing is to be remembered."""
    now = mode()
    if node.primitive is JOIN and node.traced & KEEPS:
        # A complex value is two nodes for most of its uses; it can be differentiated by if it is one.
        node = make("alias", (node,))
    if now is USUAL or not node.traced:
        return node
    if not now.remembers:
        here = now.recording is current_trace()
        if not here and not node.traced & KEEPS:
            return node
        node = make("stop_gradient" if here else "alias", (node,))
        node.traced &= TRACED
        return node
    if now.anomaly:
        LINES[node] = user_location()
    return node


def _check(trace: Trace) -> None:
    """Check the conditions that have waited: what follows may depend on whether they hold."""
    around: Trace | None = trace
    while around is not None:
        if around.window is not None:
            around.window.note_conditions()
        around = around.parent
    while trace.unchecked < len(trace.checks):
        condition, message, error = trace.checks[trace.unchecked]
        if not bool(on_host(computed(condition))):
            raise error(message)
        trace.unchecked += 1


def require(condition: Node, message: str, error: type[NbgradError] = RangeError) -> None:
    """Raise an error unless all of a boolean node is true; while jit records, every later call checks it too."""
    if condition.size == 0:
        return
    everything = reduce("min", condition, range(condition.ndim))
    trace = current_trace()
    while trace is not None:
        if trace.turn_checks is not None and trace.owns(everything):
            trace.turn_checks.append((everything, message, error))
            return
        if trace.mapping and trace.owns(everything):
            # It must hold for each of the values that vmap maps.
            everything = reduce("min", batch_further([everything], trace.batched, trace.size)[0], (0,))
        trace = trace.parent
    trace = current_trace()
    if trace is not None and trace.varies(everything):
        trace.checks.append((everything, message, error))
        if len(trace.checks) > CHECKED_AT_ONCE:
            return
    if not bool(on_host(computed(everything))):
        raise error(message)
