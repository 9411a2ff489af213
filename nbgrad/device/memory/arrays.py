"""Arrays in the memory of a device.

In: ndarrays, foreign memory, or a shape. Out: `DeviceArray`, the `value` of a node that lives on a device: an address,
a shape and a dtype, in C order. Called by the runtime, by Tensor, and by the exchange with other libraries. Memory is
given back, in the order of its stream, when the last array that needs it is gone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...errors import ArgumentError, DeviceError
from ..driver.driver import Driver, Properties
from .chosen_driver import driver


class Device:
    """One GPU of one driver. There is one object for each, so that `is` compares them."""

    __slots__ = ("_hash", "driver", "index")

    def __init__(self, driver: Driver, index: int) -> None:
        self.driver = driver
        self.index = index
        self._hash = hash(f"cuda:{index}")

    def __repr__(self) -> str:
        return f"cuda:{self.index}"

    def __eq__(self, other: object) -> bool:
        """`x.device == "cuda:1"` holds for the second GPU; "cuda" is the first."""
        if isinstance(other, str):
            return other in ("cuda", repr(self)) if self.index == 0 else other == repr(self)
        return self is other

    def __hash__(self) -> int:
        return self._hash

    @property
    def properties(self) -> Properties:
        """Its name, capability and sizes."""
        return self.driver.properties(self.index)

    @property
    def stream(self) -> int:
        """The handle of this thread's current stream on the device."""
        streams = _current.streams
        return streams.get(self, 0) if streams else 0


class _Current(threading.local):
    """The streams that `nbgrad.cuda.stream` has made current in this thread, by device."""

    def __init__(self) -> None:
        self.streams: dict[Device, int] = {}


_current = _Current()


def set_stream(device: Device, stream: int) -> int:
    """Make a stream current in this thread; gives the one that was."""
    before = device.stream
    _current.streams[device] = stream
    return before


@cache
def _device(used: Driver, index: int) -> Device:
    return Device(used, index)


def device_named(name: Any) -> Device | None:
    """The device of a name: None for "cpu", a `Device` for "cuda", "cuda:1", "gpu" or a number.

    Raises
    ------
    ArgumentError
        For another name, or a device that this machine does not have.
    DeviceError
        If there is no driver.
    """
    if isinstance(name, Device):
        return name
    text = str(name).lower() if isinstance(name, str) else f"cuda:{name}" if type(name) is int else ""
    kind, _, number = text.partition(":")
    if text == "cpu":
        return None
    if kind not in ("cuda", "gpu") or not (number == "" or number.isdigit()):
        message = f'device must be "cpu", "cuda" or "cuda:1" (or another number), but is {name!r}.'
        raise ArgumentError(message)
    used, index = driver(), int(number or 0)
    if index >= used.count():
        message = f"There is no device {text!r}: this machine has {used.count()}, counted from cuda:0."
        raise ArgumentError(message)
    return _device(used, index)


Allocator = Callable[[int, int], tuple[int, Any]]
"""`allocator(nbytes, stream)` gives an address and an object that gives the memory back when it is gone."""
_allocators: dict[Device, Allocator] = {}


def set_allocator(device: Device, allocator: Allocator | None) -> None:
    """Let memory of a device come from another library's pool from now on; None: from the driver's."""
    if allocator is None:
        _allocators.pop(device, None)
    else:
        _allocators[device] = allocator


class Memory:
    """A block of device memory. `streams` are those besides `stream` that have used it."""

    __slots__ = ("__weakref__", "device", "nbytes", "owner", "pointer", "stream", "streams")

    def __init__(self, device: Device, nbytes: int, stream: int) -> None:
        self.device, self.nbytes, self.stream = device, nbytes, stream
        self.streams: set[int] | None = None
        allocator = _allocators.get(device) if _allocators else None
        self.owner: Any = None
        self.pointer = 0
        if not nbytes:
            return
        if allocator is None:
            self.pointer = device.driver.allocate(nbytes, stream, device.index)
        else:
            self.pointer, self.owner = allocator(nbytes, stream)

    def used_on(self, stream: int) -> None:
        """Another stream works with this memory: that work must end before the memory is given back."""
        if stream != self.stream:
            self.streams = {*(self.streams or ()), stream}

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        pointer, self.pointer = getattr(self, "pointer", 0), 0
        if not pointer or ending():
            return
        try:
            for stream in self.streams or ():
                self.device.driver.wait(self.stream, stream)
            if self.owner is None:
                self.device.driver.free(pointer, self.stream, self.device.index)
        except DeviceError:
            # A device that has failed gives everything back at once.
            pass


class DeviceArray:
    """An array in C order in the memory of a device.

    `owner` keeps the memory alive (a `Memory`, or another library's array); `stream` is the one that wrote it last.
    """

    __slots__ = ("__weakref__", "device", "dtype", "owner", "pointer", "shape", "stream")

    def __init__(
        self, pointer: int, shape: tuple[int, ...], dtype: np.dtype[Any], device: Device, stream: int, owner: Any
    ) -> None:
        self.pointer, self.shape, self.dtype = pointer, shape, dtype
        self.device, self.stream, self.owner = device, stream, owner

    def __repr__(self) -> str:
        return f"<{self.dtype} array of shape {self.shape} on {self.device}>"

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: np.dtype[Any], device: Device) -> DeviceArray:
        """Memory for an array, on the device's current stream."""
        count = dtype.itemsize
        for extent in shape:
            count *= extent
        stream = device.stream
        memory = Memory(device, count, stream)
        return DeviceArray(memory.pointer, shape, dtype, device, stream, memory)

    @staticmethod
    def of(array: np.ndarray, device: Device) -> DeviceArray:
        """A copy of an ndarray on a device."""
        made = DeviceArray.empty(array.shape, array.dtype, device)
        if made.pointer:
            device.driver.use(device.index)
            device.driver.upload(made.pointer, np.ascontiguousarray(array), made.stream)
        return made

    def to_host(self) -> np.ndarray:
        """A copy as an ndarray, once all work on the array's stream has ended."""
        array = np.empty(self.shape, self.dtype)
        if self.pointer:
            self.device.driver.use(self.device.index)
            self.device.driver.download(array, self.pointer, self.stream)
        return array

    def ready_on(self, stream: int) -> int:
        """The address, for work on a stream, which waits for the array's own stream if that is another one."""
        if stream != self.stream:
            self.device.driver.wait(stream, self.stream)
            if isinstance(self.owner, Memory):
                self.owner.used_on(stream)
        return self.pointer

    def free_on(self, stream: int) -> int:
        """The address, for a stream that writes to it, which also waits for others that still read or write."""
        memory = self.owner
        if isinstance(memory, Memory) and (memory.streams or memory.stream != stream):
            for other in {memory.stream, *(memory.streams or ())}:
                if other not in (stream, self.stream):
                    self.device.driver.wait(stream, other)
        return self.ready_on(stream)

    def to(self, device: Device) -> DeviceArray:
        """The array on a device; itself if it is there. Waits for both devices, whose streams are not one order."""
        if device is self.device:
            return self
        made = DeviceArray.empty(self.shape, self.dtype, device)
        if made.pointer:
            self.device.driver.use(self.device.index)
            self.device.driver.synchronise(self.stream)
            device.driver.use(device.index)
            device.driver.copy(made.pointer, self.pointer, self.nbytes, made.stream)
            device.driver.synchronise(made.stream)
        return made

    def reshape(self, shape: tuple[int, ...]) -> DeviceArray:
        """This memory in another shape."""
        return DeviceArray(self.pointer, shape, self.dtype, self.device, self.stream, self.owner)

    def view(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceArray:
        """This memory as elements of another dtype."""
        return DeviceArray(self.pointer, shape, dtype, self.device, self.stream, self.owner)
