"""A driver without a GPU: kernels run on this machine's CPU, and misuse of devices is an error.

In: calls of a `Driver`. Out: the same results as on a GPU, but for the order in which sums are added up. Used by the
tests, and wherever the variable NBGRAD_CUDA_SIMULATOR is 1.

Work runs at once, in the order in which it is enqueued; errors that a GPU would find later are kept and raised by the
next method that waits. Errors that a GPU may not show are raised here: memory that was freed, never allocated, of
another device, or too small; writes beyond an array; threads that wait in vain; operations that cannot be captured; a
stream that is unknown.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ArgumentError, DeviceError
from ..driver.driver import Properties
from ..kernels.launches import LARGEST_GRID, DeviceKernel
from . import fibers
from .simulated_memory import SHARED, Memories

SHARED_UNASKED = 48 << 10
"""Bytes of shared memory that a kernel may use without asking for them when its function is made."""
MEMORY = 1 << 30
SPECIAL_STREAMS = (0, 1, 2)
"""The default stream, and its two explicit names (legacy, and per thread)."""
_BUFFER_POINTER, _BUFFER_SIZE = 1, 2
"""cuLaunchKernel's names for entries of the list of extra arguments."""
_LAUNCH_FAILED = 719
"""CUDA_ERROR_LAUNCH_FAILED."""
_FAILURES = ("allocate", "launch", "fault", "compile", "upload", "download", "copy")

LaunchFunction = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    *[ctypes.c_uint] * 7,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
)
"""The signature of cuLaunchKernel."""


def words_of(extra: Any) -> tuple[int, int]:
    """The address and the size in bytes of the parameters that the `extra` argument of cuLaunchKernel tells."""
    found: dict[int, int] = {}
    position = 0
    while extra[position]:
        found[extra[position]] = extra[position + 1]
        position += 2
    return found[_BUFFER_POINTER], ctypes.c_size_t.from_address(found[_BUFFER_SIZE]).value


class _Function:
    """A kernel that is loaded on a device, and the bytes of shared memory that were asked for."""

    def __init__(self, kernel: fibers.HostKernel, device: int) -> None:
        self.kernel, self.device, self.shared = kernel, device, SHARED_UNASKED


class _Graph:
    """The captured work, in order; while the capture goes on, the streams that take part."""

    def __init__(self) -> None:
        self.actions: list[Callable[[], None]] = []
        self.streams: set[int] = set()


class Simulator:
    """Devices on this machine's CPU.

    Parameters
    ----------
    devices : int
        How many there are.
    order : {"forward", "reversed"}
        Whether block 0 and thread 0 run first or last. Kernels without races give the same in both.
    memory : int
        Bytes of each device.
    races : bool
        Whether threads that race in shared memory are an error.

    Raises
    ------
    ArgumentError
        For another order.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad.device.simulator.simulator import Simulator
    >>> simulator = Simulator()
    >>> pointer = simulator.allocate(24, 0, 0)
    >>> simulator.upload(pointer, np.array([1.0, 2.0, 3.0]), 0)
    >>> back = np.empty(3)
    >>> simulator.download(back, pointer, 0)
    >>> back
    array([1., 2., 3.])
    """

    name = "simulator"

    def __init__(self, devices: int = 1, order: str = "forward", memory: int = MEMORY, races: bool = False) -> None:
        if order not in ("forward", "reversed"):
            message = f'order must be "forward" or "reversed", but is {order!r}.'
            raise ArgumentError(message)
        self.backwards = order == "reversed"
        self.races = races
        self.memories = Memories(devices, memory)
        self.waits: list[tuple[int, int]] = []
        """(stream, other) of every call of `wait`."""
        self.launches: Counter[str] = Counter()
        """The number of launches of each kernel, by its key."""
        self._devices = devices
        self._functions: dict[int, _Function] = {}
        self._handles: dict[tuple[str, int], int] = {}
        self._streams: dict[int, int] = {}
        self._captures: dict[int, _Graph] = {}
        self._graphs: dict[int, _Graph] = {}
        self._next = 0x1000
        self._pending: list[DeviceError] = []
        self._failures: dict[str, int] = {}
        self._recent: deque[str] = deque(maxlen=8)
        self._current = threading.local()
        self._callback = LaunchFunction(self._launch_native)
        address = ctypes.cast(self._callback, ctypes.c_void_p).value
        assert address is not None
        self.launch_address: int = address

    # ----- What tests ask for -----

    def fail(self, what: str, after: int = 0) -> None:
        """Let one operation fail, once `after` more of its kind have gone well.

        Parameters
        ----------
        what : {"allocate", "launch", "fault", "compile", "upload", "download", "copy"}
            Which; "allocate" is out of memory, "launch" is refused at once, "fault" is a kernel that stops, which the
            next method that waits raises.
        after : int
            How many go well before.

        Raises
        ------
        ArgumentError
            For another name.
        """
        if what not in _FAILURES:
            message = f"what must be one of {', '.join(_FAILURES)}, but is {what!r}."
            raise ArgumentError(message)
        self._failures[what] = after

    def _fails(self, what: str) -> bool:
        left = self._failures.get(what)
        if left is None:
            return False
        if left:
            self._failures[what] = left - 1
            return False
        del self._failures[what]
        return True

    def raise_pending(self) -> None:
        """Raise the first error that is not known yet.

        Raises
        ------
        DeviceError
            If there is one. The others are dropped, because they are likely to follow from it.
        """
        if self._pending:
            first = self._pending[0]
            self._pending.clear()
            raise first

    def raise_launch_error(self, code: int, key: str) -> None:
        """Raise why native code could not launch a kernel.

        Raises
        ------
        DeviceError
            Always.
        """
        self.raise_pending()
        message = f"The kernel {key!r} could not be launched: error {code}."
        raise DeviceError(message)

    def check(self) -> None:
        """Raise pending errors, or one about writes beyond any array.

        Raises
        ------
        DeviceError
            If there is such a thing.
        """
        self.raise_pending()
        damaged = self.memories.damaged()
        if damaged:
            raise self._damage(damaged[0])

    def _damage(self, pointer: int) -> DeviceError:
        last = ", ".join(dict.fromkeys(self._recent)) or "none"
        message = f"Something has written outside of the memory at {pointer:#x}. The last kernels were: {last}."
        return DeviceError(message)

    # ----- Devices and kernels -----

    def _check_device(self, device: int) -> None:
        if not 0 <= device < self._devices:
            message = f"There is no device cuda:{device}: there are {self._devices}, counted from cuda:0."
            raise DeviceError(message)

    def count(self) -> int:
        """The number of devices."""
        return self._devices

    def properties(self, device: int) -> Properties:
        """A small device of the Hopper class."""
        self._check_device(device)
        return Properties("simulated", (9, 0), 4, self.memories.total, SHARED, (13, 0))

    def use(self, device: int) -> None:
        """Make a device the one of this thread."""
        self._check_device(device)
        self._current.device = device

    def function(self, kernel: DeviceKernel, device: int, shared: int = 0) -> int:
        """The handle of a kernel for launches with `shared` bytes.

        Raises
        ------
        DeviceError
            If its text is wrong, or no block can have as much shared memory.
        """
        self._check_device(device)
        if shared > SHARED:
            message = (
                f"The kernel {kernel.key[:200]!r} needs {shared} bytes of shared memory; a block can have {SHARED}."
            )
            raise DeviceError(message)
        handle = self._handles.get((kernel.key, device))
        if handle is None:
            if self._fails("compile"):
                message = f"The kernel {kernel.key[:200]!r} could not be compiled."
                raise DeviceError(message)
            handle = self._handle()
            self._functions[handle] = _Function(fibers.compile_kernel(kernel), device)
            self._handles[kernel.key, device] = handle
        function = self._functions[handle]
        function.shared = max(function.shared, shared)
        return handle

    def _handle(self) -> int:
        self._next += 16
        return self._next

    # ----- Memory -----

    def allocate(self, nbytes: int, stream: int, device: int) -> int:
        """Memory, aligned to 256 bytes.

        Raises
        ------
        DeviceError
            If there is not enough.
        """
        self._check_device(device)
        self._uncaptured(stream, "Memory cannot be allocated")
        if self._fails("allocate"):
            message = f"Out of memory on cuda:{device}: {nbytes} bytes were asked for."
            raise DeviceError(message)
        return self.memories.allocate(nbytes, device)

    def free(self, pointer: int, stream: int, device: int) -> None:
        """Give memory back. If something was written around it, the next method that waits raises that.

        Raises
        ------
        DeviceError
            If there is no such memory.
        """
        self._uncaptured(stream, "Memory cannot be freed")
        if not self.memories.free(pointer, device):
            self._pending.append(self._damage(pointer))

    def upload(self, pointer: int, array: np.ndarray, stream: int) -> None:
        """Copy an array in C order to the device."""
        self.raise_pending()
        self._uncaptured(stream, "Arrays of the host cannot be copied")
        self._transfer(pointer, array, "upload")
        ctypes.memmove(pointer, array.ctypes.data, array.nbytes)

    def download(self, array: np.ndarray, pointer: int, stream: int) -> None:
        """Copy memory of the device to an array in C order."""
        self._uncaptured(stream, "Arrays of the host cannot be copied")
        self.raise_pending()
        self._transfer(pointer, array, "download")
        ctypes.memmove(array.ctypes.data, pointer, array.nbytes)
        if not self.memories.is_whole(pointer):
            self.check()

    def _transfer(self, pointer: int, array: np.ndarray, what: str) -> None:
        if not array.flags.c_contiguous:
            message = f"An {what} needs an array in C order; this one has the strides {array.strides}."
            raise DeviceError(message)
        if self._fails(what):
            message = f"The {what} of {array.nbytes} bytes failed."
            raise DeviceError(message)
        self.memories.check(pointer, array.nbytes, f"An {what}")

    def pinned(self, nbytes: int) -> np.ndarray:
        """Bytes in the host's memory."""
        return np.empty(nbytes, np.uint8)

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within a device, or from one to another."""

        def act() -> None:
            self.memories.check(target, nbytes, "A copy")
            self.memories.check(source, nbytes, "A copy")
            ctypes.memmove(target, source, nbytes)

        if self._fails("copy"):
            message = f"The copy of {nbytes} bytes failed."
            raise DeviceError(message)
        self.enqueue(act, stream)

    def fill(self, pointer: int, byte: int, nbytes: int, stream: int) -> None:
        """Set every byte."""

        def act() -> None:
            self.memories.check(pointer, nbytes, "A fill")
            ctypes.memset(pointer, byte, nbytes)

        self.enqueue(act, stream)

    def owner_of(self, pointer: int) -> int | None:
        """The number of the device whose memory an address lies in; None for other memory."""
        return self.memories.owner_of(pointer)

    def memory(self, device: int) -> tuple[int, int]:
        """(free, total) bytes."""
        self._check_device(device)
        return self.memories.total - self.memories.used[device], self.memories.total

    # ----- Launches -----

    def launch(
        self, function: int, blocks: int, threads: int, shared: int, parameters: np.ndarray, stream: int
    ) -> None:
        """Launch a kernel whose parameters are the 64-bit words of an array.

        Raises
        ------
        DeviceError
            If the launch is impossible; errors in the kernel are raised by the next method that waits.
        """
        words = np.array(parameters).view(np.uint64)
        self._launch(function, (blocks, 1, 1), (threads, 1, 1), shared, words, stream)

    def _launch_native(self, function: int, *arguments: Any) -> int:
        """Stands in for cuLaunchKernel in native code."""
        try:
            *sizes, stream, _, extra = arguments
            address, nbytes = words_of(extra)
            words = np.frombuffer(ctypes.string_at(address, nbytes), np.uint64)
            self._launch(function or 0, tuple(sizes[:3]), tuple(sizes[3:6]), sizes[6], words, stream or 0)
        except DeviceError as error:
            self._pending.append(error)
            return _LAUNCH_FAILED
        except Exception as error:
            self._pending.append(DeviceError(f"A launch failed in the simulator: {error!r}."))
            return _LAUNCH_FAILED
        return 0

    def _launch(
        self, handle: int, grid: tuple[int, ...], block: tuple[int, ...], shared: int, words: np.ndarray, stream: int
    ) -> None:
        function = self._functions.get(handle)
        if function is None:
            message = f"{handle:#x} is no kernel of this driver."
            raise DeviceError(message)
        kernel = function.kernel
        (blocks, *grid_rest), (threads, *block_rest) = grid, block
        problem = ""
        if self._fails("launch"):
            problem = "the device refuses"
        elif not 1 <= blocks <= LARGEST_GRID or grid_rest != [1, 1]:
            problem = f"a grid has 1 to {LARGEST_GRID} blocks along one axis, not {grid}"
        elif not 1 <= threads <= fibers.LARGEST_BLOCK or block_rest != [1, 1]:
            problem = f"a block has 1 to {fibers.LARGEST_BLOCK} threads along one axis, not {block}"
        elif not 0 <= shared <= function.shared:
            problem = f"{function.shared} bytes of shared memory were asked for when it was loaded, not {shared}"
        elif len(words) != kernel.pointers + kernel.numbers:
            problem = f"it has {kernel.pointers + kernel.numbers} parameters, but {len(words)} are given"
        elif self._device_of(stream) not in (None, function.device):
            problem = f"it is loaded on cuda:{function.device}, but the stream is of cuda:{self._device_of(stream)}"
        if problem:
            message = f"The kernel {kernel.key[:200]!r} cannot be launched: {problem}."
            raise DeviceError(message)
        self.enqueue(lambda: self._run(function, blocks, threads, shared, words), stream)

    def _run(self, function: _Function, blocks: int, threads: int, shared: int, words: np.ndarray) -> None:
        """Run a grid now; errors are for later."""
        kernel = function.kernel
        try:
            for pointer in words[: kernel.pointers].tolist():
                if pointer:
                    self.memories.check(pointer, 0, f"The kernel {kernel.key[:200]!r}", function.device)
            if self._fails("fault"):
                message = f"The kernel {kernel.key[:200]!r} stopped at an illegal address."
                raise DeviceError(message)
            self._recent.append(kernel.key)
            self.launches[kernel.key] += 1
            fibers.run(kernel, blocks, threads, shared, words.ctypes.data, self.memories, self.backwards, self.races)
        except DeviceError as error:
            self._pending.append(error)

    # ----- Streams and graphs -----

    def _device_of(self, stream: int) -> int | None:
        """The device of a stream; None for the default stream, which every device has.

        Raises
        ------
        DeviceError
            If there is no such stream.
        """
        if stream in SPECIAL_STREAMS:
            return None
        if stream not in self._streams:
            message = f"{stream:#x} is no stream of this driver, or not any more."
            raise DeviceError(message)
        return self._streams[stream]

    def _uncaptured(self, stream: int, what: str) -> None:
        self._device_of(stream)
        if stream in self._captures:
            message = f"{what} while the stream {stream:#x} is being captured into a graph."
            raise DeviceError(message)

    def enqueue(self, action: Callable[[], None], stream: int) -> None:
        """Do something now, or keep it if its stream is being captured; simulated libraries work so, too."""
        self._device_of(stream)
        capture = self._captures.get(stream)
        if capture is None:
            action()
        else:
            capture.actions.append(action)

    def synchronise(self, stream: int) -> None:
        """Raise errors of work on any stream, or of writes beyond any array.

        Raises
        ------
        DeviceError
            If there is such a thing.
        """
        self._uncaptured(stream, "Nothing can wait for a stream")
        self.check()

    def wait(self, stream: int, other: int) -> None:
        """Note that a stream waits for another; if that is being captured, so is this one from now on."""
        self._device_of(stream)
        self._device_of(other)
        capture, target = self._captures.get(other), self._captures.get(stream)
        if target is not None and capture is not target:
            message = f"The stream {stream:#x}, which is being captured, cannot wait for {other:#x}, which is not."
            raise DeviceError(message)
        if capture is not None:
            self._captures[stream] = capture
            capture.streams.add(stream)
        self.waits.append((stream, other))

    def new_stream(self, device: int) -> int:
        """A stream of a device."""
        self._check_device(device)
        handle = self._handle()
        self._streams[handle] = device
        return handle

    def free_stream(self, stream: int) -> None:
        """Give back a stream of `new_stream`."""
        if stream in SPECIAL_STREAMS:
            message = f"The default stream ({stream}) cannot be given back."
            raise DeviceError(message)
        self._uncaptured(stream, "A stream cannot be given back")
        del self._streams[stream]

    def begin_capture(self, stream: int) -> None:
        """Collect the work that follows on a stream of `new_stream` into a graph instead of doing it.

        Raises
        ------
        DeviceError
            For the default stream, or one that is being captured.
        """
        if stream in SPECIAL_STREAMS:
            message = "The default stream cannot be captured into a graph; use one that was made."
            raise DeviceError(message)
        self._uncaptured(stream, "No second graph can begin")
        graph = self._captures[stream] = _Graph()
        graph.streams.add(stream)

    def end_capture(self, stream: int) -> int:
        """The handle of the graph that was collected.

        Raises
        ------
        DeviceError
            If the stream is not being captured.
        """
        graph = self._captures.get(stream)
        if graph is None:
            message = f"The stream {stream:#x} is not being captured into a graph."
            raise DeviceError(message)
        for one in graph.streams:
            del self._captures[one]
        handle = self._handle()
        self._graphs[handle] = graph
        return handle

    def launch_graph(self, graph: int, stream: int) -> None:
        """Do the work of a graph, with the parameters that were captured."""
        actions = self._graph(graph).actions
        for action in actions:
            self.enqueue(action, stream)

    def free_graph(self, graph: int) -> None:
        """Give back a graph."""
        self._graph(graph)
        del self._graphs[graph]

    def _graph(self, handle: int) -> _Graph:
        if handle not in self._graphs:
            message = f"{handle:#x} is no graph of this driver, or not any more."
            raise DeviceError(message)
        return self._graphs[handle]

    def library(self, name: str, device: int) -> Any:
        """An object with the routines of a library, done by NumPy and SciPy."""
        self._check_device(device)
        from .simulated_libraries import library

        return library(self, name, device)
