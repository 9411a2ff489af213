"""The interface of a driver.

In: nothing. Out: `Driver`, the methods that cuda_driver.py (NVIDIA's driver), simulator.py (this machine's CPU) and
recorder.py (which only writes down its calls) have in common. Called by everything that touches device memory. Nothing
is started before the first call of `driver()`.

Addresses and handles are Python ints. A stream is the driver's handle; 0 is the default stream, which PyTorch, CuPy and
Numba use too unless they are told otherwise. Everything is asynchronous and in the order of its stream, unless it says
otherwise.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..kernels.launches import DeviceKernel


class Properties(NamedTuple):
    """Properties of a device. `capability` is (9, 0) for sm_90; `shared` the most bytes a block may share."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory: int
    shared: int
    driver: tuple[int, int]


class Driver(Protocol):
    """The operations on devices. All raise `DeviceError` with the driver's message."""

    name: str

    @property
    def launch_address(self) -> int:
        """The address of a C function with the signature of cuLaunchKernel."""
        ...

    def count(self) -> int:
        """The number of devices."""
        ...

    def properties(self, device: int) -> Properties:
        """Properties of a device."""
        ...

    def use(self, device: int) -> None:
        """Make a device's primary context the one of this thread; cheap if it is already."""
        ...

    def function(self, kernel: DeviceKernel, device: int, shared: int = 0) -> int:
        """The handle of a kernel for launches with `shared` bytes; compiled and loaded if it was not before."""
        ...

    def allocate(self, nbytes: int, stream: int, device: int) -> int:
        """Memory, aligned to 256 bytes, for work on a stream."""
        ...

    def free(self, pointer: int, stream: int, device: int) -> None:
        """Give memory back after all work that is now on the stream."""
        ...

    def upload(self, pointer: int, array: np.ndarray, stream: int) -> None:
        """Copy an array in C order to the device; the array may be changed when this returns."""
        ...

    def download(self, array: np.ndarray, pointer: int, stream: int) -> None:
        """Copy memory of the device to an array in C order and wait for the end of the copy."""
        ...

    def pinned(self, nbytes: int) -> np.ndarray:
        """Bytes in the host's memory that devices copy from and to at full speed. They are never given back."""
        ...

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within a device, or from one to another."""
        ...

    def fill(self, pointer: int, byte: int, nbytes: int, stream: int) -> None:
        """Set every byte."""
        ...

    def launch(
        self, function: int, blocks: int, threads: int, shared: int, parameters: np.ndarray, stream: int
    ) -> None:
        """Launch a kernel whose parameters are the 64-bit words of an array."""
        ...

    def synchronise(self, stream: int) -> None:
        """Wait for a stream; errors of earlier work on the device are raised here."""
        ...

    def wait(self, stream: int, other: int) -> None:
        """Let a stream wait for the work that is now on another one, without waiting here."""
        ...

    def new_stream(self, device: int) -> int:
        """A stream that does not wait for the default stream."""
        ...

    def free_stream(self, stream: int) -> None:
        """Give back a stream of `new_stream`."""
        ...

    def begin_capture(self, stream: int) -> None:
        """Collect the work that follows on a stream of `new_stream` into a graph instead of doing it."""
        ...

    def end_capture(self, stream: int) -> int:
        """The handle of the graph that was collected, ready for launches."""
        ...

    def launch_graph(self, graph: int, stream: int) -> None:
        """Do the work of a graph."""
        ...

    def free_graph(self, graph: int) -> None:
        """Give back a graph."""
        ...

    def owner_of(self, pointer: int) -> int | None:
        """The number of the device whose memory an address lies in; None for other memory."""
        ...

    def memory(self, device: int) -> tuple[int, int]:
        """(free, total) bytes."""
        ...

    def library(self, name: str, device: int) -> Any:
        """An object with the routines of "cublas", "cusolver" or "nccl"; `DeviceError` if it is not installed."""
        ...
