"""Users' own kernels on a device: the arguments of their launchers, and the checks of these.

In: a call of graph/custom_calls.py, addresses, and a context with `stream` and `device`. Out: the launcher has put its
work on the stream. Called by the runtime's device program, through `DEVICE_CALLS`. Nothing is copied: a launcher reads
and writes the arrays of the program where they are.
"""

from __future__ import annotations

import ctypes
import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DeviceError
from ...graph.custom_calls import Call, Layout, check_written, fill_unwritten, invoke, leading_axes, remember
from ...graph.host_functions import DeviceCall
from ..driver.driver import Driver
from .arrays import Device, DeviceArray


class KernelStream:
    """The stream that a launcher must use: `int(stream)` is its handle, and it has `__cuda_stream__`."""

    __slots__ = ("handle",)

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        """Version of the protocol, and the handle."""
        return 0, self.handle

    def __int__(self) -> int:
        return self.handle

    __index__ = __int__

    def __repr__(self) -> str:
        return f"<CUDA stream {self.handle:#x}>"


class KernelArray:
    """An array in C order as a launcher gets it, with `__cuda_array_interface__` version 3.

    The interface names no stream: the memory is ready for work on the stream that the launcher gets. `owner` keeps the
    memory, if the caller of the launcher does not.
    """

    __slots__ = ("address", "device", "dtype", "owner", "shape")

    def __init__(
        self, address: int, shape: tuple[int, ...], dtype: np.dtype[Any], device: Any = None, owner: Any = None
    ) -> None:
        self.address, self.shape, self.dtype = address, shape, dtype
        self.device, self.owner = device, owner

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address if self.size else 0, False),
            "version": 3,
            "strides": None,
            "stream": None,
        }

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            message = "len() of an array without axes"
            raise TypeError(message)
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{self.dtype} array of shape {self.shape} at {self.address:#x}>"


class SimulatedArray(np.ndarray):
    """An array in memory of this machine, which the simulator uses: an ndarray, as Numba's simulator wants it."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.ctypes.data if self.size else 0, False),
            "version": 3,
            "strides": None if self.flags.c_contiguous else self.strides,
            "stream": None,
        }


def kernel_array(device: Device, address: int, layout: Layout) -> Any:
    """Memory of a device as a launcher gets it."""
    shape, dtype = layout
    if device.driver.name != "simulator":
        return KernelArray(address, shape, dtype, device)
    if not address or not math.prod(shape):
        return np.empty(shape, dtype).view(SimulatedArray)
    memory: Any = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(address)
    return np.ndarray(shape, dtype, memory).view(SimulatedArray)


def launcher_call(call: Call, dtype: np.dtype[Any], positions: Sequence[int] | None = None) -> DeviceCall:
    """A `DeviceCall` that runs a kernel's launcher for the packed results of one dtype, or for results apart."""

    def run(context: Any, addresses: Sequence[int], layouts: Sequence[Layout]) -> None:
        inputs, results = addresses[: len(layouts) - 1], addresses[len(layouts) - 1 :]
        lead = leading_axes(call, layouts[0][0])
        bases = [(shape[len(lead) :], kind) for shape, kind in layouts[:-1]]
        count = math.prod(lead)
        if positions is not None:
            _launch(context, call, inputs, bases, dict(zip(positions, results, strict=True)))
            return
        (result,) = results
        places = call.packed[dtype].places
        if count and lead and call.kernel.batched and len(places) == len(call.outputs) == 1:
            many = Call(call.kernel, call.ranks, tuple([((count, *s), d) for s, d in call.outputs]), call.statics)
            _launch(context, many, inputs, [((count, *s), d) for s, d in bases], {0: result})
            return
        row = math.prod(call.packed[dtype].shape) * dtype.itemsize
        for k in range(count):
            at = [a + k * _nbytes(base) for a, base in zip(inputs, bases, strict=True)]
            own = {position: result + k * row + place * dtype.itemsize for position, place in places.items()}
            _launch(context, call, at, bases, own)

    return run


def _nbytes(layout: Layout) -> int:
    return math.prod(layout[0]) * layout[1].itemsize


def _launch(
    context: Any, call: Call, inputs: Sequence[int], layouts: Sequence[Layout], results: dict[int, int]
) -> None:
    """Run the launcher once for results at some addresses; the first time, see that it writes them."""
    device, stream = context.device, context.stream
    driver: Driver = device.driver
    memory: list[DeviceArray] = []
    outputs: list[tuple[int, Layout]] = []
    for position, (shape, kind) in enumerate(call.outputs):
        if position in results:
            outputs.append((results[position], (shape, kind)))
        else:
            memory.append(DeviceArray.empty(shape, kind, device))
            outputs.append((memory[-1].ready_on(stream), (shape, kind)))
    first = call not in call.kernel.checked and driver.name != "recorder" and not getattr(context, "capturing", False)
    if first:
        for address, layout in outputs:
            _mark(driver, address, layout, stream)
    arrays = [kernel_array(device, a, layout) for a, layout in zip(inputs, layouts, strict=True)]
    arrays += [kernel_array(device, address, layout) for address, layout in outputs]
    assert call.kernel.cuda is not None
    invoke(call, call.kernel.cuda, arrays, {**call.keywords, "stream": KernelStream(stream)})
    if first:
        found = [np.empty(shape, kind) for _, (shape, kind) in outputs]
        for array, (address, _) in zip(found, outputs, strict=True):
            if array.size:
                driver.download(array, address, stream)
        check_written(call, found)
        remember(call)


def _mark(driver: Driver, address: int, layout: Layout, stream: int) -> None:
    shape, dtype = layout
    if math.prod(shape):
        one = np.empty(1, dtype)
        fill_unwritten(one)
        driver.fill(address, int(one.view(np.uint8)[0]), _nbytes(layout), stream)


def numba_cuda() -> Any:
    """Numba's CUDA module.

    Raises
    ------
    DeviceError
        If it is not installed.
    """
    try:
        return importlib.import_module("numba.cuda")
    except ImportError as error:
        message = f"numba.cuda cannot be imported ({error}). Install numba-cuda, or give the decorator of your own."
        raise DeviceError(message) from error
