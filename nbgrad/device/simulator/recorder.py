"""A driver that does nothing but write down its calls.

In: calls of a `Driver`. Out: `log`, one tuple for each call: its name and its arguments. Used by tests of everything
between programs and drivers (order, streams, graphs, parameters), and by benchmarks of the host's cost of a launch.

Addresses and handles are made up; nothing is computed, so that downloads give zeros.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from typing import Any

import numpy as np

from ...compiler.cpu import Function, function_address
from ..driver.driver import Properties
from ..kernels.launches import DeviceKernel
from .simulated_memory import SHARED
from .simulator import LaunchFunction, words_of

_FIRST_ADDRESS = 0x7F00_0000_0000
_ALIGNMENT = 256
_MEMORY = 141 << 30

_COUNT = """
define i32 @nbgrad.count(ptr %function, i32 %gx, i32 %gy, i32 %gz, i32 %bx, i32 %by, i32 %bz, i32 %shared, ptr %stream,
                         ptr %parameters, ptr %extra) {
  %before = load i64, ptr %function
  %after = add i64 %before, 1
  store i64 %after, ptr %function
  ret i32 0
}
"""
"""In place of cuLaunchKernel: a function's handle is the address of its count."""


class Recorder:
    """Devices that do nothing.

    Parameters
    ----------
    devices : int
        How many there are.
    native : bool
        Whether native code's launches are only counted, by native code, as fast as that is possible. Otherwise they
        are in the log, too.

    Examples
    --------
    >>> from nbgrad.device.simulator.recorder import Recorder
    >>> recorder = Recorder()
    >>> stream = recorder.new_stream(0)
    >>> recorder.wait(stream, 0)
    >>> [name for name, *_ in recorder.log]
    ['new_stream', 'wait']
    """

    name = "recorder"

    def __init__(self, devices: int = 1, native: bool = False) -> None:
        self.log: list[tuple[Any, ...]] = []
        self._devices = devices
        self._counts: dict[tuple[str, int], np.ndarray] = {}
        self._functions: dict[int, tuple[str, np.ndarray]] = {}
        self._starts: list[int] = []
        self._blocks: list[tuple[int, int]] = []
        self._address = _FIRST_ADDRESS
        self._handle = 0x1000
        self._libraries: dict[tuple[str, int], Any] = {}
        self._callback = LaunchFunction(self._launch_native)
        if native:
            self.launch_address = function_address(Function("recorder " + _COUNT, "nbgrad.count", lambda: _COUNT))
        else:
            self.launch_address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    @property
    def counts(self) -> dict[str, int]:
        """The number of launches of each kernel by native code, by the kernel's key."""
        total: dict[str, int] = {}
        for (key, _), count in self._counts.items():
            total[key] = total.get(key, 0) + int(count[0])
        return total

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of all calls of one name so far."""
        return [entry[1:] for entry in self.log if entry[0] == name]

    def count(self) -> int:
        """The number of devices."""
        return self._devices

    def properties(self, device: int) -> Properties:
        """Properties like those of an H200."""
        return Properties("recorded", (9, 0), 132, _MEMORY, SHARED, (13, 0))

    def use(self, device: int) -> None:
        """Write it down."""
        self.log.append(("use", device))

    def function(self, kernel: DeviceKernel, device: int, shared: int = 0) -> int:
        """A handle for a kernel; nothing is compiled, but its text is made."""
        count = self._counts.get((kernel.key, device))
        if count is None:
            kernel.make()
            count = self._counts[kernel.key, device] = np.zeros(1, np.int64)
            self._functions[count.ctypes.data] = (kernel.key, count)
            self.log.append(("function", kernel.key, device, shared))
        return count.ctypes.data

    def allocate(self, nbytes: int, stream: int, device: int) -> int:
        """An address that nothing lies at."""
        pointer = self._address
        self._address += -(-max(nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
        self._starts.append(pointer)
        self._blocks.append((nbytes, device))
        self.log.append(("allocate", nbytes, stream, device, pointer))
        return pointer

    def free(self, pointer: int, stream: int, device: int) -> None:
        """Write it down."""
        self.log.append(("free", pointer, stream, device))

    def upload(self, pointer: int, array: np.ndarray, stream: int) -> None:
        """Write down where, and a copy of the array."""
        self.log.append(("upload", pointer, array.copy(), stream))

    def download(self, array: np.ndarray, pointer: int, stream: int) -> None:
        """Write down how many bytes; the array is set to zeros."""
        array[...] = np.zeros((), array.dtype)
        self.log.append(("download", array.nbytes, pointer, stream))

    def pinned(self, nbytes: int) -> np.ndarray:
        """Bytes in the host's memory."""
        return np.empty(nbytes, np.uint8)

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Write it down."""
        self.log.append(("copy", target, source, nbytes, stream))

    def fill(self, pointer: int, byte: int, nbytes: int, stream: int) -> None:
        """Write it down."""
        self.log.append(("fill", pointer, byte, nbytes, stream))

    def launch(
        self, function: int, blocks: int, threads: int, shared: int, parameters: np.ndarray, stream: int
    ) -> None:
        """Write down the kernel's key, the sizes, the parameters as a tuple, and the stream."""
        words = tuple(np.asarray(parameters).view(np.int64).tolist())
        self.log.append(("launch", self._functions[function][0], blocks, threads, shared, words, stream))

    def _launch_native(self, function: int, *arguments: Any) -> int:
        """Stands in for cuLaunchKernel in native code."""
        blocks, _, _, threads, _, _, shared, stream, _, extra = arguments
        if function not in self._functions:
            return 400  # CUDA_ERROR_INVALID_HANDLE
        address, nbytes = words_of(extra)
        words = np.frombuffer(ctypes.string_at(address, nbytes), np.int64)
        self._functions[function][1][0] += 1
        self.launch(function, blocks, threads, shared, words, stream or 0)
        return 0

    def synchronise(self, stream: int) -> None:
        """Write it down."""
        self.log.append(("synchronise", stream))

    def wait(self, stream: int, other: int) -> None:
        """Write it down."""
        self.log.append(("wait", stream, other))

    def new_stream(self, device: int) -> int:
        """A handle."""
        handle = self._new_handle()
        self.log.append(("new_stream", device, handle))
        return handle

    def free_stream(self, stream: int) -> None:
        """Write it down."""
        self.log.append(("free_stream", stream))

    def begin_capture(self, stream: int) -> None:
        """Write the call down; calls that follow are in the log as always."""
        self.log.append(("begin_capture", stream))

    def end_capture(self, stream: int) -> int:
        """A handle."""
        handle = self._new_handle()
        self.log.append(("end_capture", stream, handle))
        return handle

    def launch_graph(self, graph: int, stream: int) -> None:
        """Write it down."""
        self.log.append(("launch_graph", graph, stream))

    def free_graph(self, graph: int) -> None:
        """Write it down."""
        self.log.append(("free_graph", graph))

    def _new_handle(self) -> int:
        self._handle += 16
        return self._handle

    def owner_of(self, pointer: int) -> int | None:
        """The device that an address was made up for."""
        number = bisect_right(self._starts, pointer) - 1
        if number < 0:
            return None
        nbytes, device = self._blocks[number]
        return device if pointer < self._starts[number] + max(nbytes, 1) else None

    def memory(self, device: int) -> tuple[int, int]:
        """(free, total) bytes: all of it."""
        return _MEMORY, _MEMORY

    def library(self, name: str, device: int) -> Any:
        """A library whose every routine is written down."""
        from .simulated_libraries import recorded_library

        found = self._libraries.get((name, device))
        if found is None:
            found = self._libraries[name, device] = recorded_library(self.log, name)
        return found
