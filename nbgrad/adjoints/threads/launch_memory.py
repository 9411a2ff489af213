"""Memory of the launches of kernels: arrays of this machine, or of a device.

In: arrays as launchers get them, and kernels of `cuda.jit`. Out: `memory()`, which makes, fills and copies arrays and
launches kernels. Called by launched_kernels.py. Numba copies ndarrays to the device and back; arrays on a device stay
where they are, and all work is put on their stream.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

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
    """Arrays are `KernelArray`s and Numba's device arrays."""

    def __init__(self, stream: Any) -> None:
        self.cuda = numba_cuda()
        self.stream = self.cuda.external_stream(int(stream))

    def array(self, value: Any) -> Any:
        """An array as Numba has it, flat."""
        return (self.shaped(value) if isinstance(value, KernelArray) else value).ravel()

    def shaped(self, value: KernelArray) -> Any:
        """An array of a launcher as Numba has it."""
        return self.cuda.as_cuda_array(value, sync=False)

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        return self.cuda.device_array(tuple(shape), dtype, stream=self.stream)

    def fill(self, target: Any, value: Any) -> None:
        if not target.size:
            return
        if isinstance(value, int | float):
            self.array(target).setitem(slice(None), np.asarray(value, target.dtype), stream=self.stream)
        else:
            self.array(target).copy_to_device(self.array(value), stream=self.stream)

    def element(self, value: Any, dtype: Any) -> Any:
        if isinstance(value, KernelArray):
            return KernelArray(value.address, (1,), value.dtype)
        return self.cuda.to_device(np.asarray(value, dtype).reshape(1), stream=self.stream)

    def element_at(self, array: Any, position: int) -> Any:
        return self.array(array)[position : position + 1]

    def host(self, value: Any) -> Any:
        if isinstance(value, int | float | np.generic):
            return value
        found = self.array(value).copy_to_host(stream=self.stream)
        self.stream.synchronize()
        return found.reshape(value.shape)[()]

    def launch(self, kernel: Any, grid: Any, block: Any, given: Sequence[Any], read: Collection[int] = ()) -> None:
        with _quiet():
            kernel[grid, block, self.stream](
                *[self.shaped(one) if isinstance(one, KernelArray) else one for one in given]
            )


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
    return DeviceMemory(stream) if any(isinstance(one, KernelArray) for one in arrays) else _HOST
