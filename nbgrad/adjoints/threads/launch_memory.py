"""Memory of the launches of kernels: arrays of this machine, or of a device.

In: arrays as launchers get them, and kernels of `cuda.jit`. Out: `memory()`, which makes, fills and copies arrays and
launches kernels. Called by launched_kernels.py. Numba copies ndarrays to the device and back; arrays on a device stay
where they are, and all work is put on their stream.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from ...device.memory.arrays import Memory
from ...device.memory.custom_launches import KernelArray, numba_cuda


class HostMemory:
    """Arrays are ndarrays, those of simulated devices too."""

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        """A new array."""
        return np.empty(tuple(shape), dtype)

    def fill(self, target: Any, value: Any) -> None:
        """Copy an array, or 0, into another one."""
        target[...] = value

    def element(self, value: Any, dtype: Any) -> Any:
        """A number as an array of one element."""
        return np.asarray(value, dtype).reshape(1)

    def element_at(self, array: Any, position: int) -> Any:
        """One element of an array, by its position among all."""
        return array.reshape(-1)[position : position + 1]

    def host(self, value: Any) -> Any:
        """The value in this machine's memory."""
        return value

    def launch(self, kernel: Any, grid: Any, block: Any, given: Sequence[Any], read: Collection[int] = ()) -> None:
        """Launch a kernel; arguments at the positions in `read` are not written to."""
        cuda = numba_cuda()
        arrays = {k: one for k, one in enumerate(given) if isinstance(one, np.ndarray)}
        copies = {k: cuda.to_device(one) for k, one in arrays.items()}
        with _quiet():
            kernel[grid, block](*[copies.get(k, one) for k, one in enumerate(given)])
        for k, found in copies.items():
            if k not in read:
                found.copy_to_host(arrays[k])


class DeviceMemory(HostMemory):
    """Arrays are `KernelArray`s. Memory, copies and fills are nbgrad's own: Numba's wait for the device to be idle."""

    def __init__(self, device: Any, stream: Any) -> None:
        self.device, self.driver, self.stream = device, device.driver, int(stream)

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        extents, kind = tuple([int(n) for n in shape]), np.dtype(dtype)
        owner = Memory(self.device, math.prod(extents) * kind.itemsize, self.stream)
        return KernelArray(owner.pointer, extents, kind, self.device, owner)

    def fill(self, target: Any, value: Any) -> None:
        if not target.nbytes:
            return
        if isinstance(value, KernelArray):
            self.driver.copy(target.address, value.address, target.nbytes, self.stream)
        elif isinstance(value, int) and value == 0:
            self.driver.fill(target.address, 0, target.nbytes, self.stream)
        else:
            self.driver.upload(target.address, np.full(target.shape, value, target.dtype), self.stream)

    def element(self, value: Any, dtype: Any) -> Any:
        if isinstance(value, KernelArray):
            return self.element_at(value, 0)
        made = self.empty((1,), dtype)
        self.driver.upload(made.address, np.full((1,), value, made.dtype), self.stream)
        return made

    def element_at(self, array: Any, position: int) -> Any:
        address = array.address + position * array.dtype.itemsize
        return KernelArray(address, (1,), array.dtype, self.device, array)

    def host(self, value: Any) -> Any:
        if not isinstance(value, KernelArray):
            return value
        found = np.empty(value.shape, value.dtype)
        if found.size:
            self.driver.download(found, value.address, self.stream)
        return found[()]

    def launch(self, kernel: Any, grid: Any, block: Any, given: Sequence[Any], read: Collection[int] = ()) -> None:
        cuda = numba_cuda()
        arrays = [cuda.as_cuda_array(one, sync=False) if isinstance(one, KernelArray) else one for one in given]
        with _quiet():
            kernel[grid, block, cuda.external_stream(self.stream)](*arrays)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """A context without Numba's warnings of small launches."""
    from numba.core.errors import NumbaPerformanceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaPerformanceWarning)
        yield


_HOST = HostMemory()
_MEMORY: ContextVar[HostMemory | None] = ContextVar("memory", default=None)


def memory() -> HostMemory:
    """The memory of the arrays that kernels work on now."""
    return _MEMORY.get() or _HOST


@contextlib.contextmanager
def using(found: HostMemory) -> Iterator[None]:
    """A context in which kernels work on arrays of some memory."""
    token = _MEMORY.set(found)
    try:
        yield
    finally:
        _MEMORY.reset(token)


def memory_of(arrays: Sequence[Any], stream: Any) -> HostMemory:
    """The memory of arrays that a launcher gets."""
    device = next((one.device for one in arrays if isinstance(one, KernelArray)), None)
    return _HOST if device is None else DeviceMemory(device, stream)
