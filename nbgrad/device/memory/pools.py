"""Device memory from other libraries' pools: CuPy's, PyTorch's, RMM's.

In: the name of a library. Out: an `Allocator` (arrays.py) that asks it for memory. Called by `nbgrad.cuda.use_pool`.
The library is imported when its pool is chosen. An allocator gives an address and the object that gives the memory back
when nothing refers to it any more; all three pools keep the order of the stream that memory was asked for on.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...errors import ArgumentError, DeviceError
from .arrays import Allocator, Device


def _cupy(device: Device) -> Allocator:
    cupy = import_module("cupy")
    # CuPy 14 takes a stream by NVIDIA's protocol; those before it by its handle.
    taken = getattr(cupy.cuda.Stream, "from_external", None)
    opened = cupy.cuda.ExternalStream if taken is None else lambda stream, _: taken(_Handle(stream))

    def allocate(nbytes: int, stream: int) -> tuple[int, Any]:
        with cupy.cuda.Device(device.index), opened(stream, device.index):
            memory = cupy.cuda.alloc(nbytes)
        return int(memory.ptr), memory

    return allocate


class _TorchMemory:
    """A block of PyTorch's pool."""

    __slots__ = ("__weakref__", "free", "pointer")

    def __init__(self, pointer: int, free: Callable[[int], None]) -> None:
        self.pointer, self.free = pointer, free

    def __del__(self) -> None:
        self.free(self.pointer)


def _torch(device: Device) -> Allocator:
    torch = import_module("torch")

    def allocate(nbytes: int, stream: int) -> tuple[int, Any]:
        pointer = int(torch.cuda.caching_allocator_alloc(nbytes, device.index, stream))
        return pointer, _TorchMemory(pointer, torch.cuda.caching_allocator_delete)

    return allocate


def _rmm(device: Device) -> Allocator:
    rmm, streams = import_module("rmm"), import_module("rmm.pylibrmm.stream")

    def allocate(nbytes: int, stream: int) -> tuple[int, Any]:
        device.driver.use(device.index)
        buffer = rmm.DeviceBuffer(size=nbytes, stream=streams.Stream(obj=_Handle(stream)))
        return int(buffer.ptr), buffer

    return allocate


class _Handle:
    """A stream by its handle, as NVIDIA's protocol has it."""

    __slots__ = ("handle",)

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


POOLS: dict[str, Callable[[Device], Allocator]] = {"cupy": _cupy, "torch": _torch, "rmm": _rmm}


def pool(name: Any, device: Device) -> Allocator:
    """The allocator that takes memory from a library's pool.

    Raises
    ------
    ArgumentError
        For another name.
    DeviceError
        If the library is not installed.
    """
    if not isinstance(name, str) or name not in POOLS:
        message = f"There are adapters for the pools of {', '.join(POOLS)}, but not for {name!r}. Use set_allocator."
        raise ArgumentError(message)
    try:
        return POOLS[name](device)
    except ImportError as error:
        message = f"The pool of {name} needs the package {name}, which cannot be imported: {error}."
        raise DeviceError(message) from error
