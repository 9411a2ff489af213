"""Messages of arrays on GPUs: by NCCL, by an MPI library that takes their memory, or through memory of the host.

In: a `Message`, and addresses or arrays on a device. Out: the result there. Called by message_nodes.py where values are
known, and by the runtime's device programs, through `DEVICE_CALLS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ..device.memory.arrays import Device, DeviceArray
from ..graph.host_functions import DeviceCall
from . import call_check
from .communicators import groups
from .gpu_memory import GpuArray, cuda_aware, staged
from .messages import REQUESTS, Layout, Message

Send = Callable[[Message, Any, Any], None]
"""`send(message, data, out)`, of arrays that MPI takes."""


def known_on_device(message: Message, data: DeviceArray | None, result: Layout, device: Device, send: Send) -> Any:
    """The result of a message that is sent now, a `DeviceArray` of the layout `result`."""
    device.driver.use(device.index)
    found = DeviceArray.empty(*result, device)
    context = SimpleNamespace(driver=device.driver, device=device, stream=found.stream)
    address = data.ready_on(found.stream) if data is not None and data.size else None
    _send(message, address, found.pointer, result, context, send)
    return found


def device_call(message: Message, result: Layout, send: Send) -> DeviceCall:
    """The routine of a device program for a message, and for a batch of it, whose axes its token has."""

    def call(context: Any, addresses: Sequence[int], layouts: Sequence[Layout]) -> None:
        for at in range(math.prod(layouts[0][0])):
            data = None
            if len(layouts) > 2:
                assert message.data is not None
                data = addresses[1] + at * _nbytes(message.data)
            _send(message, data, addresses[-1] + at * _nbytes(result), result, context, send)

    return call


def _nbytes(layout: Layout) -> int:
    return math.prod(layout[0]) * layout[1].itemsize


def _send(message: Message, data: int | None, out: int, result: Layout, context: Any, send: Send) -> None:
    """One message, whose result gets the layout `result` at the address `out`."""
    driver, stream = context.driver, context.stream
    nccl = groups[message.group].nccl
    if nccl is not None and nccl.does(message):
        call_check.before(message, "NCCL")
        nccl.send(message, data, out, _nbytes(result), context)
    elif cuda_aware() and message.kind not in REQUESTS:
        driver.synchronise(stream)
        given = None if data is None or message.data is None else GpuArray(data, message.data, context)
        send(message, given, GpuArray(out, result, context))
    else:
        copy = None
        if data is not None and message.data is not None:
            copy = staged(message.data, "data", driver)
            driver.download(copy, data, stream)
        found = staged(result, "result", driver)
        send(message, copy, found)
        driver.upload(out, found, stream)
