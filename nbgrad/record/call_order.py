"""Calls whose order counts, such as messages between processes: a token runs through all of them.

In: nodes of calls, in the order in which the recorded functions make them. Out: tokens, and derivatives (`vjp`, `jvp`)
that send the token back or along too. Called by nbgrad.mpi, which makes such calls, and by the transforms, which
differentiate with this module in place of `graph.differentiate`.

A token is the number 0 that is known only once a call was done. Each call takes the token of the one before. So the
order is a dependency of data, which no pass can lose. The cotangent of a token is again one: that of a call sent back,
which the call before it waits for. So the calls of a backward pass have the reverse order, all of them are made,
whether or not this process uses their results, and the first of them waits for the last call of the forward pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from ..errors import ArgumentError, NbgradError
from ..graph import differentiate
from ..graph.batch import batch_further
from ..graph.builders import cast
from ..graph.complex_numbers import pair
from ..graph.host_functions import DEVICE_CALLS, HostFunction, host, is_call
from ..graph.ir import (
    PART_OF,
    PRIMITIVES,
    Earlier,
    Node,
    broadcast,
    constant,
    elementwise,
    literal,
    make,
    topological,
    zeros,
)
from ..graph.shapes import Shape
from ..graph.trace import Trace, current_trace

FLOAT64 = np.dtype(np.float64)
CONSTANT, CUSTOM, INPUT = (PRIMITIVES[name] for name in ("constant", "custom", "input"))
_AFTER_IR = """define void @kernel(ptr %pointers, ptr %sizes, i64 %begin, i64 %end) {
  %at = getelementptr ptr, ptr %pointers, i64 OPERANDS
  %out = load ptr, ptr %at
  %count = load i64, ptr %sizes
  %bytes = shl i64 %count, 3
  call void @llvm.memset.p0.i64(ptr %out, i8 0, i64 %bytes, i1 false)
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


def _after_native(params: Any, layouts: Any) -> tuple[str, list[int]]:
    operands = str(len(layouts) - 1)
    return _AFTER_IR.replace("OPERANDS", operands), [int(np.prod(layouts[-1][0], dtype=np.int64))]


AFTER = HostFunction(
    "after",
    lambda inputs, params: (inputs[0].shape[: inputs[0].ndim - params[0]], FLOAT64),
    lambda x, *rest: np.zeros(x.shape[: x.ndim - rest[-1]]),
    native=_after_native,
    ordered=True,
)
"""0 that is known once its operands are; the parameter is the number of the first one's axes, without a batch's."""


def _after_on_device(context: Any, addresses: Sequence[int], layouts: Sequence[Any]) -> None:
    """The order of the stream is that of the calls."""
    context.driver.fill(addresses[-1], 0, 8 * int(np.prod(layouts[-1][0], dtype=np.int64)), context.stream)


DEVICE_CALLS[AFTER] = lambda axes: _after_on_device


class _AfterRule:
    """Cotangents of a token: those of the call that it comes from, or of the call's token if that has none."""

    pure = False
    gives_token = True

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """Zeros for the call's result that wait for the token."""
        call = node.inputs[2]
        if differentiate.differentiable(call):
            return [None, waiting_zeros(call, g)]
        return [g, None]

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """The token of the tangent's call."""
        _, token, call = tangents
        found = token if call is None else after(call, token)
        return zeros(node.shape, FLOAT64) if found is None else found


_RULE = _AfterRule()


class _ZerosRule:
    """Cotangents of zeros that wait for a token: a token that waits for them, whose value is 0, too."""

    pure = False

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The token."""
        return [after(g)]

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """Zeros that wait for the token of the tangents."""
        token = tangents[1]
        assert token is not None
        return _waiting_zeros(token, node.shape, node.dtype)


def after(call: Node, token: Node | None = None) -> Node:
    """The token of a call that has taken a token."""
    known = not is_later(call)
    value = constant(np.zeros(())) if known else host(AFTER, (call,), call.ndim)
    return make("custom", (value, first_token() if token is None else token, call), (_RULE, 0))


def waiting_zeros(node: Node, token: Node) -> Node:
    """Zeros of a node's shape and dtype that are known once a token is."""
    return _waiting_zeros(token, node.shape, node.dtype)


def _waiting_zeros(token: Node, shape: Shape, dtype: np.dtype[Any]) -> Node:
    part = PART_OF.get(dtype, dtype)
    found = broadcast(cast(token, part), shape)
    if dtype.kind == "c":
        found = pair(found, zeros(shape, part))
    return make("custom", (found, token), (_ZerosRule(), 0))


def waiting(node: Node, token: Node) -> Node:
    """A node's value, known once a token is, too."""
    if node.dtype.kind == "b":
        return elementwise("logical_or", node, broadcast(elementwise("greater", token, 0), node.shape))
    if node.dtype.kind in "fc":
        return node + waiting_zeros(node, token)
    return node + broadcast(cast(token, node.dtype), node.shape)


def first_token() -> Node:
    """A token that waits for nothing."""
    return make("alias", (literal(0.0, FLOAT64),))


def is_later(node: Node) -> bool:
    """Whether a value is known only when a program runs, because it depends on arguments without values or on calls
    that are not done yet."""
    stack, seen = [node], {node}
    while stack:
        one = stack.pop()
        if one.value is not None or one.primitive is CONSTANT:
            continue
        if one.primitive is INPUT or is_call(one):
            return True
        for source in one.inputs[:1] if one.primitive is CUSTOM else one.inputs:
            if source not in seen:
                seen.add(source)
                stack.append(source)
    return False


def records_for_later() -> bool:
    """Whether the recorded calls are to be made by a program: by those of `jit`, of a loop's turns, of `vmap`."""
    trace = current_trace()
    while trace is not None:
        if trace.guards is not None or trace.turn_checks is not None or trace.mapping is not None:
            return True
        trace = trace.parent
    return False


# ----- The tokens of a recording -----


def last_token(trace: Trace) -> Node:
    """The token that the next call of a recording takes."""
    if not trace.tokens:
        trace.tokens.append(first_token())
    _begin_batches(trace)
    return trace.tokens[-1]


def _begin_batches(trace: Trace) -> None:
    """Let the calls of all batches that are recorded now begin, the outermost first."""
    batches: list[Batch] = []
    around: Trace | None = trace
    while around is not None:
        if around.batch is not None and around.batch.tokens is trace.tokens:
            batches.append(around.batch)
        around = around.parent
    for one in reversed(batches):
        one.begin()


def _since(trace: Trace | None, wrt: Sequence[Node]) -> Node | None:
    """The last token of a recording from before some nodes; None if no call was made since."""
    serial = min([node.serial for node in wrt], default=inf)
    if trace is None or not trace.tokens or trace.tokens[-1].serial < serial:
        return None
    _begin_batches(trace)
    tokens = trace.tokens
    earlier = [token for token in tokens if token.serial < serial] or tokens[:1]
    later = tokens[len(earlier) :]
    return None if all(token.params[:1] == (_IN_BATCH,) for token in later) else earlier[-1]


def vjp(outputs: Sequence[Node], cotangents: Sequence[Node | None], wrt: Sequence[Node]) -> list[Node | None]:
    """Reverse mode by `differentiate.vjp`; the recording's calls are sent back in reverse order, after all of them."""
    trace = current_trace()
    start = _since(trace, wrt)
    if trace is None or start is None:
        return differentiate.vjp(outputs, cotangents, wrt)
    last = trace.tokens[-1]
    *found, end = differentiate.vjp([*outputs, last], [*cotangents, last], [*wrt, start])
    if end is None:
        return found
    if trace.tokens[-1] is not last:
        # A user's rule has made calls of its own.
        end = end + trace.tokens[-1]
    trace.tokens.append(end)
    if is_later(end) and not _is_in_jit(trace):
        zeroed = [zeros(n.shape, n.dtype) if g is None else g for g, n in zip(found, wrt, strict=True)]
        return [*all_waiting(zeroed, end)]
    return found


def jvp(outputs: Sequence[Node], wrt: Sequence[Node], tangents: Sequence[Node | None]) -> list[Node | None]:
    """Forward mode by `differentiate.jvp`; the tangents' calls come after the recording's, in the same order."""
    trace = current_trace()
    start = _since(trace, wrt)
    if trace is None or start is None:
        return differentiate.jvp(outputs, wrt, tangents)
    last = trace.tokens[-1]
    *found, end = differentiate.jvp([*outputs, last], [*wrt, start], [*tangents, last])
    if end is None:
        return found
    trace.tokens.append(end)
    if is_later(end) and not _is_in_jit(trace):
        zeroed = [zeros(n.shape, n.dtype) if t is None else t for t, n in zip(found, outputs, strict=True)]
        return [*all_waiting(zeroed, end)]
    return found


def _is_in_jit(trace: Trace) -> bool:
    return trace.guards is not None


def all_waiting(
    nodes: Sequence[Node], token: Node | None, checks: list[tuple[Node, str, type[NbgradError]]] | None = None
) -> list[Node]:
    """Nodes to be computed together, of which one waits for a token, unless one depends on it anyway.

    If none has an element, one of the `checks` that are computed with them waits.

    Raises
    ------
    ArgumentError
        If none can wait.
    """
    found = list(nodes)
    if token is None or not is_later(token):
        return found
    call = token.inputs[0].inputs[0] if token.primitive is CUSTOM and token.inputs[0].inputs else token
    # What has no elements is not computed, whatever it depends on.
    some = [k for k, node in enumerate(found) if node.size]
    if call in topological([found[k] for k in some], Earlier(min(call.serial, token.serial))):
        return found
    if some:
        k = min(some, key=lambda k: (found[k].dtype.kind not in "fc", found[k].size))
        found[k] = waiting(found[k], token)
    elif checks is None:
        message = (
            "Messages in a loop, in vmap or in a solver need a result with elements, but there are none. Return a "
            "number, too, or put all into a function for nb.jit."
        )
        raise ArgumentError(message)
    else:
        checks.append((elementwise("equal", token, 0), "A token is not 0.", NbgradError))
    return found


class _InBatchRule:
    """Derivatives of the token that the calls for one value of a batch begin with."""

    pure = False
    gives_token = True

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """That of the token before."""
        return [g, None]

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """That of the token before."""
        return zeros(node.shape, FLOAT64) if tangents[1] is None else tangents[1]


_IN_BATCH = _InBatchRule()


class Batch:
    """Nodes that are recorded for one value of a batch and made for all of them at once, each node once.

    Calls that are recorded after its making and before its `end` are made for each value.
    """

    def __init__(self, trace: Trace, mapping: Mapping[Node, Node], size: int) -> None:
        self._known: dict[Node, Node | None] = dict(mapping)
        self._size, self._inside = size, next(iter(mapping))
        self._since = min([node.serial for node in mapping], default=inf)
        self._trace, self.tokens = trace, trace.tokens
        self._start: Node | None = None
        trace.batch = self

    def begin(self) -> None:
        """Make the token for each value that the first call takes, if it was not made yet."""
        if self._start is None:
            self._before = self.tokens[-1]
            value = host(AFTER, (self._inside, self._before), self._inside.ndim)
            self._start = make("custom", (value, self._before, self._inside), (_IN_BATCH, 0))
            self.tokens.append(self._start)

    def __call__(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes for all values at once."""
        return batch_further(nodes, self._known, self._size, self._since)

    def end(self) -> Node | None:
        """From now on, one token stands for those of all values; None without calls."""
        self._trace.batch = None
        if self._start is None:
            return None
        if self.tokens[-1] is self._start:
            self.tokens.pop()
            return None
        many = self([self.tokens[-1]])[0]
        self.tokens.append(make("custom", (host(AFTER, (many,), 1), self._before, many), (_RULE, 0)))
        return self.tokens[-1]
