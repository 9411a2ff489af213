"""Messages in graphs: nodes that send them, with their derivatives, in the order of the recording.

In: a `Message` and a node with its data. Out: a node with its result. Called by arrays_given.py, collectives.py,
point_to_point.py and grid.py.

Where all values are known, as in `grad` outside of `jit`, a message is sent at once and its result is a constant, on a
GPU if its data or the array that it is like is there; a
graph with only its derivative's messages left to send is differentiated further. Programs of `jit`, of loops and of
`vmap` send theirs when they run. Arrays without elements, which programs leave out, are no operands of these nodes, and
the result in place of one is the number 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import config
from ..device.memory.arrays import DeviceArray
from ..errors import ArgumentError
from ..graph.host_functions import DEVICE_CALLS, HostFunction, host
from ..graph.ir import INT64, Node, Params, broadcast, constant, elementwise, literal, make, zeros
from ..graph.trace import current_trace
from ..process.modes import KEEPS
from ..record.call_order import after, is_later, last_token, records_for_later, waiting_zeros
from ..runtime.evaluate import computed
from .communicators import groups
from .gpu_messages import device_call, known_on_device
from .message_calls import native, send_into
from .messages import DERIVED, NOTHING, Layout, Message, is_empty, seen


def _rule(inputs: Sequence[Node], params: Params) -> Layout:
    shape, dtype = seen(params[0].result)
    return (*inputs[0].shape, *shape), dtype


def _run(token: np.ndarray, *rest: Any) -> np.ndarray:
    shape, dtype = seen(rest[-1].result)
    found = np.empty((*token.shape, *shape), dtype)
    _run_into(found, token, *rest)
    return found


def _run_into(out: np.ndarray, token: np.ndarray, *rest: Any) -> None:
    """Send a message; of a batch, whose axes the token has, one after the other."""
    *data, message = rest
    for at in np.ndindex(*token.shape):
        send_into(message, data[0][at] if data else None, out[(*at, ...)] if at else out)


MESSAGE = HostFunction("message", _rule, _run, _run_into, native, ordered=True)
DEVICE_CALLS[MESSAGE] = device_call


def known_result(message: Message, data: np.ndarray | None) -> np.ndarray:
    """The result of a message that is sent now; the number 0 for an array without elements."""
    found = np.empty(*seen(message.result))
    send_into(message, data, found)
    return found


def _known(message: Message, data: Node | None, like: Node | None) -> Node:
    """The result of a message that is sent now, on the device of its data, or of a node that it is like."""
    device = next((node.device for node in (data, like) if node is not None and node.device is not None), None)
    value = None if data is None else computed(data)
    if device is None:
        return constant(known_result(message, value))
    if isinstance(value, np.ndarray):
        value = DeviceArray.of(value, device)
    return constant(known_on_device(message, value, device))


def sent(message: Message, data: Node | None, like: Node | None = None) -> Node:
    """The result of a message: the next one of this recording, or sent at once where nothing is recorded.

    Of a message without data, `like` says on which device the result is.
    """
    trace = current_trace()
    if trace is None:
        if data is not None and data.traced & KEEPS:
            text = (
                "A message of a Tensor that remembers how it was made has no derivative: send it in a function that "
                "nb.grad or another transform differentiates, or send x.detach()."
            )
            raise ArgumentError(text)
        node = _known(message, data, like)
    else:
        token = last_token(trace)
        node = call(message, token, data, like)
        trace.tokens.append(after(node, token))
    return zeros(*message.result) if is_empty(message.result) else node


def call(message: Message, token: Node, data: Node | None, like: Node | None = None) -> Node:
    """The node of a message that waits for a token, and for its data; on the device of these or of `like`."""
    if is_empty(message.data):
        data, like = None, data if like is None else like
    inputs = (token,) if data is None else (token, data)
    if message.kind == "replicated":
        value = zeros(*NOTHING) if data is None else data
    elif records_for_later() or any(map(is_later, inputs)):
        if config.interpret():
            text = f"The interpreter would send messages in programs more than once: {message}. Use compiled programs."
            raise ArgumentError(text)
        value = host(MESSAGE, inputs, message)
    else:
        value = _known(message, data, like)
    return make("custom", (value, *inputs), (_Rule(message), 0))


def _unordered(what: Any) -> ArgumentError:
    """The error for a derivative of messages by code that keeps no order of them."""
    text = (
        f"This solver differentiates a function that sends messages, {what}, but keeps no order of them. "
        "mpi.linear_solve does, for linear systems."
    )
    return ArgumentError(text)


class _Rule:
    """The derivative of a message: the message of the tangents, or the transpose of the cotangents."""

    pure = False

    def __init__(self, message: Message) -> None:
        self.message = message

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """Those of the token and of the data."""
        message, has_data = self.message, len(node.inputs) > 2
        if not message.linear and message.operation and has_data:
            return self._of_extremum(g, node)
        if not message.linear:
            return [after(g), *[None] * has_data]
        other = message.transposed(groups[message.group].reverse)
        found = call(other, after(g), g if other.data is not None else None, node)
        return [after(found), *([found] if has_data else [])]

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """The message of the tangents."""
        _, token, *data = tangents
        if token is None:
            raise _unordered(self.message)
        if not self.message.linear and self.message.operation and data:
            return self._moved_extremum(node, token, data[0])
        if not self.message.linear:
            return waiting_zeros(node, token)
        source = node.inputs[-1]
        moved = None
        if data:
            moved = zeros(source.shape, source.dtype) if data[0] is None else data[0]
        return call(self.message, token, moved, node)

    def _of_extremum(self, g: Node, node: Node) -> list[Node | None]:
        owner, mine = self._owned(after(g), node)
        total = call(self._sum(), after(owner), g)
        return [after(total), elementwise("select", mine, total, zeros(node.shape, node.dtype))]

    def _moved_extremum(self, node: Node, token: Node, moved: Node | None) -> Node:
        owner, mine = self._owned(token, node)
        nothing = zeros(node.shape, node.dtype)
        return call(self._sum(), after(owner, token), elementwise("select", mine, moved or nothing, nothing))

    def _owned(self, token: Node, node: Node) -> tuple[Node, Node]:
        """Of each element of a maximum or minimum, the first rank that has it, and whether that is this one."""
        group = groups[self.message.group]
        equal = elementwise("equal", node.inputs[2], node)
        rank, none = (broadcast(literal(number, INT64), node.shape) for number in (group.rank, group.size))
        of_ranks: Layout = (node.shape, INT64)
        message = replace(self.message, data=of_ranks, result=of_ranks, operation="min", line=self._line())
        owner = call(message, token, elementwise("select", equal, rank, none))
        return owner, elementwise("equal", owner, rank)

    def _sum(self) -> Message:
        return replace(self.message, operation="sum", line=self._line())

    def _line(self) -> str:
        line = self.message.line
        return line if line.endswith(DERIVED) else f"{line}{DERIVED}"
