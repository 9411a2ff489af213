"""Messages of arrays on GPUs: by NCCL, by an MPI library that takes their memory, or through memory of the host.

In: a `Message`, and addresses or arrays on a device. Out: the result there. Called by message_nodes.py where values are
known, and by the runtime's device programs, through `DEVICE_CALLS`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from ..device.memory.arrays import Device, DeviceArray
from ..graph.host_functions import DeviceCall
from . import call_check
from .communicators import groups
from .gpu_memory import GpuArray, cuda_aware, staged
from .message_calls import send_into
from .messages import REQUESTS, Layout, Message, nbytes, seen


def known_on_device(message: Message, data: DeviceArray | None, device: Device) -> DeviceArray:
    """The result of a message that is sent now."""
    device.driver.use(device.index)
    found = DeviceArray.empty(*seen(message.result), device)
    context = SimpleNamespace(driver=device.driver, device=device, stream=found.stream)
    address = data.ready_on(found.stream) if data is not None and data.size else None
    _send(message, address, found.pointer, context)
    return found


def device_call(message: Message) -> DeviceCall:
    """The routine of a device program for a message, and for a batch of it, whose axes its token has."""

    def call(context: Any, addresses: Sequence[int], layouts: Sequence[Layout]) -> None:
        for at in range(math.prod(layouts[0][0])):
            data = None
            if len(layouts) > 2:
                data = addresses[1] + at * nbytes(message.data)
            _send(message, data, addresses[-1] + at * nbytes(seen(message.result)), context)

    return call


def _send(message: Message, data: int | None, out: int, context: Any) -> None:
    """One message, whose result goes to the address `out`."""
    driver, stream, result = context.driver, context.stream, seen(message.result)
    nccl = groups[message.group].nccl
    if nccl is not None and nccl.does(message):
        call_check.before(message, "NCCL")
        nccl.send(message, data, out, context)
    elif cuda_aware() and message.kind not in REQUESTS:
        driver.synchronise(stream)
        given = None if data is None or message.data is None else GpuArray(data, message.data, context)
        send_into(message, given, GpuArray(out, result, context))
    else:
        copy = None
        if data is not None and message.data is not None:
            copy = staged(message.data, "data", driver)
            driver.download(copy, data, stream)
        found = staged(result, "result", driver)
        send_into(message, copy, found)
        driver.upload(out, found, stream)
