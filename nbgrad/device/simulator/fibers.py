"""Kernels on this machine's CPU: the threads of a block are fibers.

In: a `DeviceKernel`, and the words of its parameters. Out: `HostKernel`, native code that runs a
whole grid, one block after the other. Called by simulator.py.

A fiber is a stack of its own, on which one thread of the block runs until it must wait for others: at a barrier, or
where a warp exchanges values. Then the next one runs, always in the same order, so that every run is the same and a
missing barrier gives the same wrong result each time, and another one in the reversed order. A kernel that never waits
is a plain loop over its threads.

What a thread knows (`FIBER` in cpu_dialect.py) lies at the top of its stack, which the stack pointer tells; nothing is
global. A shuffle writes to one of two slots in turn: no lane comes to its next but one before all have read.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Sequence
from typing import NamedTuple

import llvmlite.binding as llvm

from ...compiler.cpu import Function, function_address
from ...errors import DeviceError
from ...process.locks import ForkSafeLock
from ..kernels.launches import DeviceKernel
from .checked_accesses import ATOMIC, MANY
from .cpu_dialect import COLOURS, ENDED, FIBER, FIRST, GRID, GRID_BYTES, READY, STACK, WAITS, host_text, parameters
from .simulated_memory import Memories, Space

LARGEST_BLOCK = 1024
"""Threads of a block."""
PAGE = 4096
_FAULT = 2
"""The result of a kernel if an access is at fault: misaligned, to memory not the thread's own, or in a race."""


class Stacks:
    """The stacks of fibers: address space for as many as a block may have, of which little is ever touched."""

    def __init__(self) -> None:
        self._space = Space((LARGEST_BLOCK + 1) * STACK)
        self.address = -(-self._space.address // STACK) * STACK
        self._guarded = 0
        libc = ctypes.CDLL(None, use_errno=True)
        self._protect = libc.mprotect
        self._protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def guard(self, count: int) -> None:
        """Make the last page of the first stacks one that stops the process instead of letting it go on into others."""
        for number in range(self._guarded, count):
            self._protect(self.address + number * STACK, PAGE, 0)
        self._guarded = max(self._guarded, count)

    def kind(self, number: int) -> int:
        """The state of a fiber, or the number of the operation at which it waits."""
        base = self.address + number * STACK
        fiber = base + FIRST + (base // STACK % COLOURS) * 128
        return ctypes.c_int32.from_address(fiber + FIBER["kind"]).value


class HostKernel(NamedTuple):
    """A kernel compiled for the host."""

    key: str
    address: int
    pointers: int
    """The number of parameters that are pointers; the others are integers."""
    numbers: int


_lock = ForkSafeLock()
_stacks: list[Stacks] = []
_compiled: dict[str, HostKernel] = {}
_entry = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
"""Keeps the interpreter's lock, so that no other launch takes the same stacks."""


def compile_kernel(kernel: DeviceKernel) -> HostKernel:
    """Native code of a kernel: from this process, from the disk, or compiled now.

    Raises
    ------
    DeviceError
        On machines that it is not made for.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        message = f"The CUDA simulator runs on Linux on x86-64 only; this is {sys.platform} on {platform.machine()}."
        raise DeviceError(message)
    done = _compiled.get(kernel.key)
    if done is None:
        llvm.initialize_native_asmparser()
        source = kernel.make()
        types = parameters(source)
        text = host_text(source)
        address = function_address(Function("kernel in the simulator\n" + text, "nbgrad.host", lambda: text))
        pointers = types.count("ptr")
        done = _compiled[kernel.key] = HostKernel(kernel.key, address, pointers, len(types) - pointers)
    return done


def run(
    kernel: HostKernel,
    blocks: int,
    threads: int,
    shared: int,
    words: int,
    memories: Memories,
    backwards: bool = False,
    races: bool = True,
) -> None:
    """Run a grid.

    Parameters
    ----------
    kernel : HostKernel
        What runs.
    blocks, threads, shared : int
        Blocks, threads of each, and bytes of shared memory of each.
    words : int
        The address of the parameters, 64 bits each.
    memories : Memories
        What it may access.
    backwards : bool
        Whether the last block and the last thread begin.
    races : bool
        Whether to look for races in shared memory.

    Raises
    ------
    DeviceError
        If threads wait for each other in vain, one accesses memory that is not its own, or two race.
    """
    with _lock.held():
        if not _stacks:
            _stacks.append(Stacks())
        stacks = _stacks[0]
        stacks.guard(threads)
        grid = (ctypes.c_char * GRID_BYTES)()
        at = ctypes.addressof(grid)
        long = {
            "fibers": stacks.address,
            "words": words,
            "shared": memories.shared(shared),
            "bytes": shared,
            "range": memories.range,
            "reserved": memories.reserved,
            "map": memories.map,
            "races": memories.races if races else 0,
            "epoch": memories.epoch,
            "shared.end": memories.shared_end,
        }
        for name, value in long.items():
            ctypes.c_uint64.from_address(at + GRID[name]).value = value
        for name, value in {"threads": threads, "blocks": blocks, "reversed": backwards}.items():
            ctypes.c_uint32.from_address(at + GRID[name]).value = value
        code = _entry(kernel.address)(at)
        memories.epoch = ctypes.c_uint64.from_address(at + GRID["epoch"]).value
        if code:
            block = ctypes.c_uint32.from_address(at + GRID["block"]).value
            if code == _FAULT:
                thread = ctypes.c_uint32.from_address(at + GRID["thread"]).value
                address, size, align, other = (
                    ctypes.c_uint64.from_address(at + GRID[name]).value
                    for name in ("address", "size", "align", "other")
                )
                if other:
                    raise DeviceError(_race(kernel, block, thread, memories.place(address), other))
                raise DeviceError(_fault(kernel, f"block {block}, thread {thread}", address, size, align, memories))
            raise DeviceError(_disagreement(kernel, block, [stacks.kind(number) for number in range(threads)]))


def _race(kernel: HostKernel, block: int, thread: int, place: str, other: int) -> str:
    """The message about threads that access the same byte without a barrier in between."""
    names = {ATOMIC: "an atomic operation", MANY: "several threads"}
    return (
        f"Threads of the kernel {kernel.key[:200]!r} race: in block {block}, thread {thread} accesses {place}, as does "
        f"{names.get(other, f'thread {other - 1}')} without a barrier in between, and one of them writes."
    )


def _fault(kernel: HostKernel, who: str, address: int, size: int, align: int, memories: Memories) -> str:
    """The message about an access that a thread must not make."""
    start = f"The kernel {kernel.key[:200]!r} has accessed {size} bytes at {address:#x} ({who})"
    inside = 0 <= address - memories.range < memories.reserved
    place = f"that is {memories.place(address)}" if inside else "no memory is there"
    if address % align:
        return f"{start}, which is not a multiple of {align}, as the kernel promises; {place}."
    return f"{start}, which is not its own: {place}."


def _disagreement(kernel: HostKernel, block: int, kinds: Sequence[int]) -> str:
    """The message about threads that wait at different operations, as far as they ran."""
    names = {number: name.removeprefix("nbgrad.") for name, number in WAITS.items()}
    found: dict[int, list[int]] = {}
    for thread, kind in enumerate(kinds):
        found.setdefault(kind, []).append(thread)
    texts = {READY: "have not begun or may go on", ENDED: "have ended"}
    parts = [
        f"{len(threads)} threads (the first is {threads[0]}) "
        + (texts[kind] if kind in texts else f"wait at {names[kind]}")
        for kind, threads in found.items()
    ]
    start = f"Threads of the kernel {kernel.key[:200]!r} wait for each other in vain: in block {block}"
    return (
        f"{start}, {', '.join(parts)}. All threads of a block must come to a barrier, and all 32 lanes of a warp to "
        "the same shuffle, ballot or match."
    )
