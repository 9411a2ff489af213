"""NVIDIA's driver, through the package cuda.bindings.

In: kernels, sizes, addresses. Out: `CudaDriver`, a `Driver` (driver.py). Called by `driver()` the first time that
something is put on a GPU. Devices are used through their primary contexts, which PyTorch, CuPy and Numba share.

Memory comes from the device's own pool, in the order of streams. What fails is a `DeviceError`; after an error that
makes a context useless (a kernel that faulted), the same error is raised at once by all that uses the device.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections import deque
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np

from ...errors import DeviceError
from ...process.locks import ForkSafeLock
from ..kernels import ptx
from ..kernels.launches import DeviceKernel
from . import cuda_errors
from .driver import Properties
from .kept_blocks import SMALL, KeptBlocks, in_grains

FREE_SHARED = 48 * 1024
"""Bytes of shared memory that a kernel may use without asking."""
LOG_BYTES = 8192
SMALL_UPLOAD, MOST_STAGED = 64 * 1024, 64
"""Arrays of at most this many bytes are copied here first; a stream keeps at most this many copies."""
REMEMBERED = 8
"""The number of last kernels that are named when one of them has failed."""
SHOWN = 200
"""The characters of a kernel's key that messages show."""
NON_BLOCKING, NO_TIMING = 1, 2
PARAMETER_BUFFER, PARAMETER_SIZE, PARAMETER_END = 1, 2, 0
"""Marks in the list that is cuLaunchKernel's last argument."""
ATTRIBUTES = {
    "major": "COMPUTE_CAPABILITY_MAJOR",
    "minor": "COMPUTE_CAPABILITY_MINOR",
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "shared": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "pools": "MEMORY_POOLS_SUPPORTED",
}


def _bindings() -> Any:
    try:
        return import_module("cuda.bindings.driver")
    except ImportError as error:
        raise DeviceError(cuda_errors.no_bindings(error)) from error


def _bindings_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cuda-bindings")
    except PackageNotFoundError:
        return ""


class _Thread(threading.local):
    """The device that this thread has used last."""

    device: int = -1


class _Context:
    """The driver's objects for one device."""

    def __init__(self, handle: Any, pool: Any) -> None:
        self.handle, self.number, self.pool = handle, int(handle), pool
        self.events: list[Any] = []
        self.blocks = KeptBlocks()
        self.functions: dict[str, tuple[int, int]] = {}
        self.lost = ""


class CudaDriver:
    """The driver of this machine.

    Parameters
    ----------
    bindings : module, optional
        Stands for `cuda.bindings.driver`.
    version : str, optional
        The version of the bindings; that of the installed package by default.

    Raises
    ------
    DeviceError
        If the bindings, the driver, or a device is missing, or the driver is too old.
    """

    name = "cuda"

    def __init__(self, bindings: Any = None, version: str | None = None) -> None:
        self._cuda = cuda = _bindings() if bindings is None else bindings
        try:
            started = cuda.cuInit(0)
        except Exception as error:
            # Each version of the bindings has its own exception for a driver that is not there.
            raise DeviceError(cuda_errors.no_driver(error)) from error
        if int(started[0]):
            raise DeviceError(cuda_errors.not_started(_name(started[0])))
        self._get_current = cuda.cuCtxGetCurrent
        self._launch_address = 0
        self._process = os.getpid()
        self._thread = _Thread()
        self._lock = ForkSafeLock()
        self._contexts: dict[int, _Context] = {}
        self._by_number: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._recent: deque[tuple[str, ...]] = deque(maxlen=REMEMBERED)
        self._modules: list[Any] = []
        self._staged: dict[int, list[np.ndarray]] = {}
        self._properties: dict[int, Properties] = {}
        self._libraries: dict[tuple[str, int], Any] = {}
        number = self._done(cuda.cuDriverGetVersion(), "ask for the driver's version")
        self.version = (number // 1000, number % 1000 // 10)
        known = version if version is not None else _bindings_version() if bindings is None else ""
        if self.version < cuda_errors.LEAST_VERSION or self.version[0] < int(known.partition(".")[0] or 0):
            raise DeviceError(cuda_errors.driver_too_old(self.version, known))

    # ----- Errors -----

    def failure(self, code: Any, doing: str) -> DeviceError:
        """The error of a code that the driver gave (an int, if native code got it)."""
        return DeviceError(self._told(code, doing))

    def _told(self, code: Any, doing: str) -> str:
        """The message for an error code; a device that the error makes useless is marked as lost."""
        name = _name(self._cuda.CUresult(int(code)))
        if os.getpid() != self._process:
            return cuda_errors.FORKED
        if name not in cuda_errors.STICKY:
            return f"The NVIDIA driver could not {doing}: {cuda_errors.meaning(name)}."
        device = self._thread.device
        kernels = [key for keys in self._recent for key in keys]
        message = cuda_errors.device_lost(device, name, [key[:SHOWN] for key in dict.fromkeys(kernels)])
        context = self._contexts.get(device)
        if context is not None and not context.lost:
            context.lost = message
        return message

    def note(self, kernels: tuple[str, ...]) -> None:
        """Remember the kernels that native code launches, to be named if one fails."""
        self._recent.append(kernels)

    def raise_launch_error(self, code: int, kernel: str) -> None:
        """Raise the error that a launch by native code has given instead of 0.

        Raises
        ------
        DeviceError
            Always.
        """
        raise self.failure(code, f"launch a kernel: {kernel[:SHOWN]}")

    def _done(self, results: tuple[Any, ...], doing: str) -> Any:
        """The value of a call, unless it failed."""
        if int(results[0]):
            raise self.failure(results[0], doing)
        return results[1] if len(results) > 1 else None

    def _check_current(self) -> None:
        """Raise the error again that made this thread's device useless."""
        context = self._contexts.get(self._thread.device)
        if context is None:
            self.use(0)
        elif context.lost:
            raise DeviceError(context.lost)

    # ----- Devices -----

    def count(self) -> int:
        """The number of devices."""
        return int(self._done(self._cuda.cuDeviceGetCount(), "count the devices"))

    def _device(self, device: int) -> Any:
        return self._done(self._cuda.cuDeviceGet(device), f"find cuda:{device}")

    def _attribute(self, handle: Any, name: str) -> int:
        attribute = getattr(self._cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{ATTRIBUTES[name]}")
        return int(self._done(self._cuda.cuDeviceGetAttribute(attribute, handle), "ask for a device's properties"))

    def properties(self, device: int) -> Properties:
        """Properties of a device."""
        known = self._properties.get(device)
        if known is None:
            handle = self._device(device)
            doing = "ask for a device's properties"
            name = self._done(self._cuda.cuDeviceGetName(256, handle), doing)
            known = self._properties[device] = Properties(
                name.split(b"\0")[0].decode(),
                (self._attribute(handle, "major"), self._attribute(handle, "minor")),
                self._attribute(handle, "multiprocessors"),
                int(self._done(self._cuda.cuDeviceTotalMem(handle), doing)),
                self._attribute(handle, "shared"),
                self.version,
            )
        return known

    def use(self, device: int) -> None:
        """Make a device's primary context the one of this thread."""
        context = self._contexts.get(device)
        if context is None:
            context = self._start(device)
        self._thread.device = device
        if context.lost:
            raise DeviceError(context.lost)
        # Other libraries change the current context of a thread, too.
        code, current = self._get_current()
        if code or int(current) != context.number:
            self._done(self._cuda.cuCtxSetCurrent(context.handle), f"use cuda:{device}")

    def _start(self, device: int) -> _Context:
        with self._lock.held():
            if device not in self._contexts:
                cuda, handle = self._cuda, self._device(device)
                primary = self._done(cuda.cuDevicePrimaryCtxRetain(handle), f"start cuda:{device}")
                pool = None
                if self._attribute(handle, "pools"):
                    doing = f"find the memory pool of cuda:{device}"
                    pool = self._done(cuda.cuDeviceGetDefaultMemPool(handle), doing)
                    # Memory that is given back stays in the pool, not with the operating system, which is slow.
                    keep = cuda.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
                    self._done(cuda.cuMemPoolSetAttribute(pool, keep, cuda.cuuint64_t(2**64 - 1)), doing)
                self._contexts[device] = context = _Context(primary, pool)
                self._by_number[context.number] = device
            return self._contexts[device]

    # ----- Kernels -----

    @property
    def launch_address(self) -> int:
        """The address of cuLaunchKernel."""
        if not self._launch_address:
            self._launch_address = self._find_launch()
        return self._launch_address

    def _find_launch(self) -> int:
        flag = self._cuda.CUdriverProcAddress_flags.CU_GET_PROC_ADDRESS_LEGACY_STREAM
        major, minor = cuda_errors.LEAST_VERSION
        return int(
            self._done(
                self._cuda.cuGetProcAddress(b"cuLaunchKernel", 1000 * major + 10 * minor, flag), "find cuLaunchKernel"
            )
        )

    def function(self, kernel: DeviceKernel, device: int, shared: int = 0) -> int:
        """The handle of a kernel for launches with `shared` bytes; compiled and loaded if it was not before."""
        self.use(device)
        functions = self._contexts[device].functions
        handle, allowed = functions.get(kernel.key, (0, FREE_SHARED))
        if not handle:
            handle = self._load(kernel, device)
            self._names[handle] = kernel.key[:SHOWN]
        if shared > allowed:
            most = self.properties(device).shared
            if shared > most:
                message = (
                    f"A kernel needs {shared} bytes of shared memory; cuda:{device} has {most}: {kernel.key[:SHOWN]}"
                )
                raise DeviceError(message)
            wish = self._cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._done(
                self._cuda.cuFuncSetAttribute(handle, wish, shared), f"share {shared} bytes: {kernel.key[:SHOWN]}"
            )
            allowed = shared
        functions[kernel.key] = handle, allowed
        return handle

    def prepare(self, kernels: Iterable[DeviceKernel], device: int, threads: int) -> None:
        """Compile kernels that `function` will be asked for, by several threads."""
        self.use(device)
        loaded = self._contexts[device].functions
        new = [kernel for kernel in kernels if kernel.key not in loaded]
        ptx.compile_ahead(new, self.properties(device).capability, threads)

    def _load(self, kernel: DeviceKernel, device: int) -> int:
        capability = self.properties(device).capability
        code = ptx.cubin(kernel, capability)
        results, log = self._load_module(code)
        if int(results[0]) and isinstance(code, bytes) and _name(results[0]) in cuda_errors.UNREADABLE:
            # The linker is newer than the driver. The driver has one of its own.
            results, log = self._load_module(ptx.ptx(kernel, capability))
        if int(results[0]):
            told = self._told(results[0], f"load a kernel for cuda:{device}")
            supports, version = ".".join(map(str, self.version)), ptx.target_of(capability).version
            versions = f"The driver supports CUDA {supports}; the PTX has version {version // 10}.{version % 10}."
            message = f"{told} {versions} Kernel: {kernel.key[:SHOWN]}. {log}"
            raise DeviceError(message.rstrip())
        module = results[1]
        self._modules.append(module)
        found = self._cuda.cuModuleGetFunction(module, ptx.SYMBOL.encode())
        return int(self._done(found, f"find a kernel in its module: {kernel.key[:SHOWN]}"))

    def _load_module(self, code: bytes | str) -> tuple[tuple[Any, ...], str]:
        """Load a module: the driver's results, and its log."""
        option = self._cuda.CUjit_option
        log = bytearray(LOG_BYTES)
        image = code if isinstance(code, bytes) else code.encode() + b"\0"
        options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        results = self._cuda.cuModuleLoadDataEx(image, len(options), options, [log, LOG_BYTES])
        return results, bytes(log).split(b"\0")[0].decode(errors="replace").strip()

    def launch(
        self, function: int, blocks: int, threads: int, shared: int, parameters: np.ndarray, stream: int
    ) -> None:
        """Launch a kernel whose parameters are the 64-bit words of an array."""
        self._check_current()
        size = np.array([parameters.nbytes], np.uint64)
        words = [PARAMETER_BUFFER, parameters.ctypes.data, PARAMETER_SIZE, size.ctypes.data, PARAMETER_END]
        extra = np.array(words, np.uint64)
        name = self._names.get(function, "a kernel")
        self._recent.append((name,))
        results = self._cuda.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream, 0, extra.ctypes.data)
        if int(results[0]):
            raise self.failure(
                results[0], f"launch {blocks} blocks of {threads} threads with {shared} shared bytes: {name}"
            )

    # ----- Memory -----

    def allocate(self, nbytes: int, stream: int, device: int) -> int:
        """Memory for work on a stream."""
        if nbytes > SMALL:
            return self._new_block(nbytes, stream, device)
        context = self._contexts.get(device) or self._start(device)
        if context.lost:
            raise DeviceError(context.lost)
        nbytes = in_grains(nbytes)
        pointer = context.blocks.taken(nbytes, stream)
        if not pointer:
            pointer = self._new_block(nbytes, stream, device)
            context.blocks.made(pointer, nbytes)
        return pointer

    def _new_block(self, nbytes: int, stream: int, device: int) -> int:
        self.use(device)
        results = self._allocated(nbytes, stream, device)
        if not results[0]:
            return int(results[1])
        if _name(results[0]) == "CUDA_ERROR_OUT_OF_MEMORY":
            self._make_room(stream, device)
            results = self._allocated(nbytes, stream, device)
        if _name(results[0]) == "CUDA_ERROR_OUT_OF_MEMORY":
            free, total = self.memory(device)
            asked, left, whole = map(cuda_errors.readable, (nbytes, free, total))
            message = (
                f"cuda:{device} is out of memory: {asked} were asked for, {left} of {whole} are free. Delete arrays "
                "that are not needed, or use smaller ones."
            )
            raise DeviceError(message)
        return int(self._done(results, f"allocate {nbytes} bytes on cuda:{device}"))

    def _allocated(self, nbytes: int, stream: int, device: int) -> tuple[Any, ...]:
        pool = self._contexts[device].pool
        if pool is None:
            return self._cuda.cuMemAlloc(nbytes)
        return self._cuda.cuMemAllocFromPoolAsync(nbytes, pool, stream)

    def _make_room(self, stream: int, device: int) -> None:
        """Give back unused memory: arrays in cycles, small blocks, and memory that the pool keeps."""
        gc.collect()
        for block in self._contexts[device].blocks.all_given_up():
            self._free_block(*block, device)
        pool = self._contexts[device].pool
        if pool is not None:
            self.synchronise(stream)
            self._done(self._cuda.cuMemPoolTrimTo(pool, 0), "give memory back")

    def free(self, pointer: int, stream: int, device: int) -> None:
        """Give memory back after all work that is now on the stream."""
        context = self._contexts.get(device)
        if context is not None and context.lost:
            raise DeviceError(context.lost)
        if context is None or not context.blocks.given(pointer, stream):
            self._free_block(pointer, stream, device)

    def _free_block(self, pointer: int, stream: int, device: int) -> None:
        before = self._thread.device
        self.use(device)
        try:
            if self._contexts[device].pool is None:
                # This waits until the device has nothing to do.
                self._done(self._cuda.cuMemFree(pointer), "give memory back")
            else:
                self._done(self._cuda.cuMemFreeAsync(pointer, stream), "give memory back")
        finally:
            # Arrays end anywhere, also amid work on another device.
            if before not in (device, -1):
                self.use(before)

    def upload(self, pointer: int, array: np.ndarray, stream: int) -> None:
        """Copy an array in C order to the device; the array may be changed when this returns."""
        self._check_current()
        doing = f"copy {array.nbytes} bytes to the device"
        # Memory may be pinned, or the device may read the process's memory itself: then the driver keeps no copy.
        staged = self._staged.setdefault(stream, [])
        small = array.nbytes <= SMALL_UPLOAD and len(staged) < MOST_STAGED
        if small:
            array = array.copy()
            staged.append(array)
        self._done(self._cuda.cuMemcpyHtoDAsync(pointer, array.ctypes.data, array.nbytes, stream), doing)
        if not small:
            self._wait_for(stream, doing)

    def download(self, array: np.ndarray, pointer: int, stream: int) -> None:
        """Copy memory of the device to an array in C order and wait for the end of the copy."""
        self._check_current()
        doing = f"copy {array.nbytes} bytes from the device"
        self._done(self._cuda.cuMemcpyDtoHAsync(array.ctypes.data, pointer, array.nbytes, stream), doing)
        self._wait_for(stream, doing)

    def pinned(self, nbytes: int) -> np.ndarray:
        """Bytes in the host's memory that devices copy from and to at full speed. They are never given back."""
        self._check_current()
        results = self._cuda.cuMemHostAlloc(nbytes, self._cuda.CU_MEMHOSTALLOC_PORTABLE)
        address = int(self._done(results, f"allocate {nbytes} pinned bytes of the host"))
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within a device, or from one to another."""
        self._check_current()
        self._done(self._cuda.cuMemcpyAsync(target, source, nbytes, stream), f"copy {nbytes} bytes")

    def fill(self, pointer: int, byte: int, nbytes: int, stream: int) -> None:
        """Set every byte."""
        self._check_current()
        self._done(self._cuda.cuMemsetD8Async(pointer, byte, nbytes, stream), f"fill {nbytes} bytes")

    def memory(self, device: int) -> tuple[int, int]:
        """(free, total) bytes; memory that is kept for later, here or in the pool, is free."""
        self.use(device)
        results = self._cuda.cuMemGetInfo()
        self._done(results, "ask for free memory")
        free, total = int(results[1]), int(results[2])
        pool = self._contexts[device].pool
        if pool is not None:
            kind = self._cuda.CUmemPool_attribute
            attributes = (kind.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, kind.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
            held, used = (
                int(self._done(self._cuda.cuMemPoolGetAttribute(pool, name), "ask for free memory"))
                for name in attributes
            )
            free += held - used
        return free + self._contexts[device].blocks.nbytes, total

    def owner_of(self, pointer: int) -> int | None:
        """The number of the device whose memory an address lies in; None for other memory."""
        self._check_current()
        kinds = self._cuda.CUpointer_attribute
        results = self._cuda.cuPointerGetAttribute(kinds.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer)
        if _name(results[0]) == "CUDA_ERROR_INVALID_VALUE":
            return None
        if int(self._done(results, "find the owner of memory")) != int(self._cuda.CUmemorytype.CU_MEMORYTYPE_DEVICE):
            return None
        results = self._cuda.cuPointerGetAttribute(kinds.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer)
        return int(self._done(results, "find the owner of memory"))

    # ----- Streams -----

    def synchronise(self, stream: int) -> None:
        """Wait for a stream; errors of earlier work on the device are raised here."""
        self._check_current()
        self._wait_for(stream, "wait for a stream")

    def _wait_for(self, stream: int, doing: str) -> None:
        # Another thread may stage more copies meanwhile.
        staged = self._staged.pop(stream, None)
        self._done(self._cuda.cuStreamSynchronize(stream), doing)
        self._recent.clear()
        del staged

    def wait(self, stream: int, other: int) -> None:
        """Let a stream wait for the work that is now on another one, without waiting here."""
        self._check_current()
        cuda, before = self._cuda, self._thread.device
        device = self._device_of(other)
        if device != before:
            self.use(device)
        events = self._contexts[device].events
        try:
            event = events.pop()
        except IndexError:
            event = self._done(cuda.cuEventCreate(NO_TIMING), "make an event")
        try:
            self._done(cuda.cuEventRecord(event, other), "record an event")
            # The wait is for this record: the event may be recorded again at once.
            self._done(cuda.cuStreamWaitEvent(stream, event, 0), "wait for an event")
        finally:
            events.append(event)
            if device != before:
                self.use(before)

    def _device_of(self, stream: int) -> int:
        """The device of a stream; the current one for default streams, which every device has."""
        if stream <= 2:
            return self._thread.device
        context = int(self._done(self._cuda.cuStreamGetCtx(stream), "find the device of a stream"))
        return self._by_number.get(context, self._thread.device)

    def new_stream(self, device: int) -> int:
        """A stream that does not wait for the default stream."""
        self.use(device)
        return int(self._done(self._cuda.cuStreamCreate(NON_BLOCKING), "make a stream"))

    def free_stream(self, stream: int) -> None:
        """Give back a stream of `new_stream`."""
        self._check_current()
        self._done(self._cuda.cuStreamDestroy(stream), "give a stream back")

    # ----- Graphs -----

    def begin_capture(self, stream: int) -> None:
        """Collect the work that follows on a stream of `new_stream` into a graph instead of doing it."""
        self._check_current()
        mode = self._cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._done(self._cuda.cuStreamBeginCapture(stream, mode), "begin a CUDA graph")

    def end_capture(self, stream: int) -> int:
        """The handle of the graph that was collected, ready for launches."""
        self._check_current()
        graph = self._done(self._cuda.cuStreamEndCapture(stream), "end a CUDA graph")
        try:
            return int(self._done(self._cuda.cuGraphInstantiate(graph, 0), "make a CUDA graph ready"))
        finally:
            self._cuda.cuGraphDestroy(graph)

    def launch_graph(self, graph: int, stream: int) -> None:
        """Do the work of a graph."""
        self._check_current()
        self._recent.append(("a CUDA graph",))
        self._done(self._cuda.cuGraphLaunch(graph, stream), "launch a CUDA graph")

    def free_graph(self, graph: int) -> None:
        """Give back a graph."""
        self._check_current()
        self._done(self._cuda.cuGraphExecDestroy(graph), "give a CUDA graph back")

    # ----- Libraries -----

    def library(self, name: str, device: int) -> Any:
        """The routines of "cublas", "cusolver" or "nccl"."""
        known = self._libraries.get((name, device))
        if known is None:
            from .libraries import open_library

            self.use(device)
            known = self._libraries[name, device] = open_library(name)
        return known


def _name(code: Any) -> str:
    """The name of an error code."""
    return getattr(code, "name", str(code))
