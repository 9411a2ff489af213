"""The memory of simulated devices: this machine's, in blocks that show how they are misused.

In: sizes and addresses. Out: addresses, and `DeviceError` for those that lie in no living block. Called by
simulator.py, and by fibers.py for the accesses of its threads.

All blocks lie in one range of addresses, of which a map tells the accessible bytes (checked_accesses.py). A block is
aligned to 256 bytes, holds NaN until it is written, has guards around it that are looked at when it is freed or read
back, because libraries and the host's copies do not ask the map, and stays unused for a while after it was freed, so
that old pointers to it are recognised. The range begins with the shared memory of the block of threads that runs.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from bisect import bisect_right, insort
from collections import deque

from ...errors import DeviceError
from ...process.locks import ForkSafeLock

ALIGNMENT = 256
GUARD = 256
"""Bytes before and after each block that no code may write."""
_PATTERN = b"\xa5\xa5\xf9\xff" * (GUARD // 4)
"""The content of these bytes: NaN in float32 and float64, so that reading one shows, too."""
UNSET = 0xFF
"""Every byte of memory that was not written yet, or was freed: NaN, or -1."""
KEPT = 64 << 20
"""Bytes of freed blocks that are not used again yet."""
SHARED = 227 << 10
"""The most bytes of shared memory that a block of threads can have, as on an H200."""
_SHARED_ROOM = 256 << 10
_LEAST_RANGE = 256 << 20
_PROTECTION = mmap.PROT_READ | mmap.PROT_WRITE
_FAR = 0x2000_0000_0000
"""Addresses that the system does not give by itself: compiled code must lie close together, so that nothing large may
come in between."""
_NO_RESERVE = 0x4000
"""Linux's MAP_NORESERVE, which Python's module has no name for."""


class Space:
    """Addresses without memory behind them until they are touched."""

    _next = _FAR

    def __init__(self, nbytes: int) -> None:
        system = ctypes.CDLL(None, use_errno=True)
        reserve, release = system.mmap, system.munmap
        reserve.restype = ctypes.c_void_p
        reserve.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        release.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._advise = system.madvise
        self._advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        hint = Space._next if Space._next < 2 * _FAR else _FAR
        Space._next = hint + -(-nbytes // _LEAST_RANGE) * _LEAST_RANGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        address = reserve(hint, nbytes, _PROTECTION, flags, -1, 0)
        if address in (None, ctypes.c_void_p(-1).value):
            message = f"The simulator could not reserve {nbytes} bytes of addresses: {os.strerror(ctypes.get_errno())}."
            raise DeviceError(message)
        self.address: int = address
        weakref.finalize(self, release, address, nbytes).atexit = False

    def forget(self, offset: int, nbytes: int) -> None:
        """Give the memory behind some addresses back to the system."""
        first = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (offset + nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        if last > first:
            self._advise(self.address + first, last - first, mmap.MADV_DONTNEED)


class _Block:
    """A block of one device's memory, in `room` bytes."""

    __slots__ = ("device", "freed", "nbytes", "pointer", "room")

    def __init__(self, pointer: int, nbytes: int, room: int, device: int) -> None:
        self.pointer, self.nbytes, self.room, self.device, self.freed = pointer, nbytes, room, device, False
        ctypes.memset(self.pointer, UNSET, nbytes)
        self.mend()

    def is_whole(self) -> bool:
        """Whether its guards are as they were."""
        before = ctypes.string_at(self.pointer - GUARD, GUARD)
        return before == _PATTERN == ctypes.string_at(self.pointer + self.nbytes, GUARD)

    def mend(self) -> None:
        """Write its guards."""
        ctypes.memmove(self.pointer - GUARD, _PATTERN, GUARD)
        ctypes.memmove(self.pointer + self.nbytes, _PATTERN, GUARD)


class Memories:
    """The memory of all devices: `total` bytes each."""

    def __init__(self, devices: int, total: int) -> None:
        self.total = total
        self.used = [0] * devices
        self.reserved = max(8 * total * devices, _LEAST_RANGE)
        self._range = Space(self.reserved)
        self._map = Space(self.reserved // 8)
        self.range, self.map = self._range.address, self._map.address
        self._top = 2 * ALIGNMENT + _SHARED_ROOM
        self._shared = 0
        self.shared_end = ALIGNMENT + _SHARED_ROOM
        """The end of shared memory, from the beginning of the range."""
        self._races = Space(16 * self.shared_end)
        self.races = self._races.address
        """The address of the records of shared memory; `epoch` is the last epoch (checked_accesses.py)."""
        self.epoch = 0
        self._rooms: dict[int, list[int]] = {}
        self._starts: list[int] = []
        self._blocks: dict[int, _Block] = {}
        self._freed: deque[_Block] = deque()
        self._kept = 0
        self._lock = ForkSafeLock()

    def _mark(self, pointer: int, nbytes: int, accessible: bool) -> None:
        """Let a block be accessed from now on, or not."""
        at = self.map + (pointer - self.range) // 8
        ctypes.memset(at, 8 if accessible else 0, nbytes // 8)
        if nbytes % 8:
            ctypes.memset(at + nbytes // 8, nbytes % 8 if accessible else 0, 1)

    def shared(self, nbytes: int) -> int:
        """The address of the shared memory, which has that many bytes from now on."""
        pointer = self.range + ALIGNMENT
        if nbytes != self._shared:
            self._mark(pointer, self._shared, False)
            self._mark(pointer, nbytes, True)
            self._shared = nbytes
        return pointer

    def _take(self, nbytes: int) -> tuple[int, int]:
        """Room for a block and its guards: where the block begins, and how much it is."""
        step = max(ALIGNMENT, 1 << max(nbytes.bit_length() - 4, 0))
        room = -(-(nbytes + 2 * GUARD) // step) * step
        known = self._rooms.get(room)
        if known:
            return known.pop(), room
        if self._top + room > self.reserved:
            message = f"The simulator has run out of addresses for {nbytes} bytes: make another one."
            raise DeviceError(message)
        self._top += room
        return self.range + self._top - room + GUARD, room

    def allocate(self, nbytes: int, device: int) -> int:
        """A new block.

        Raises
        ------
        DeviceError
            If the device has no room for it.
        """
        with self._lock.held():
            if self.used[device] + nbytes > self.total:
                free = self.total - self.used[device]
                message = (
                    f"Out of memory on cuda:{device}: {nbytes} bytes were asked for, {free} of {self.total} are free. "
                    "Drop arrays that are not needed any more, or work on smaller pieces."
                )
                raise DeviceError(message)
            self._forget()
            pointer, room = self._take(nbytes)
            block = _Block(pointer, nbytes, room, device)
            self._mark(pointer, nbytes, True)
            self.used[device] += nbytes
            self._blocks[block.pointer] = block
            insort(self._starts, block.pointer)
            return block.pointer

    def _forget(self) -> None:
        """Let go of the oldest freed blocks. Not done by `free`, which a garbage collection may call at any point."""
        while self._kept > KEPT:
            oldest = self._freed.popleft()
            self._kept -= oldest.room
            del self._starts[bisect_right(self._starts, oldest.pointer) - 1]
            del self._blocks[oldest.pointer]
            self._range.forget(oldest.pointer - GUARD - self.range, oldest.room)
            self._rooms.setdefault(oldest.room, []).append(oldest.pointer)

    def free(self, pointer: int, device: int) -> bool:
        """Give a block back; whether its guards are as they were.

        Raises
        ------
        DeviceError
            If there is no such block, or not any more.
        """
        with self._lock.held():
            block = self._blocks.get(pointer)
            if block is None or block.freed or block.device != device:
                was = "has been freed before" if block is not None and block.freed else "is no block of this device"
                message = f"Memory at {pointer:#x} cannot be freed on cuda:{device}: it {was}."
                raise DeviceError(message)
            block.freed = True
            whole = block.is_whole()
            self._mark(block.pointer, block.nbytes, False)
            ctypes.memset(block.pointer, UNSET, block.nbytes)
            self.used[device] -= block.nbytes
            self._freed.append(block)
            self._kept += block.room
            return whole

    def _find(self, pointer: int) -> _Block | None:
        """The block in which an address lies, or at whose end."""
        with self._lock.held():
            number = bisect_right(self._starts, pointer) - 1
            if number < 0:
                return None
            block = self._blocks[self._starts[number]]
        return block if pointer <= block.pointer + block.nbytes else None

    def owner_of(self, pointer: int) -> int | None:
        """The device whose memory an address lies in."""
        block = self._find(pointer)
        return None if block is None or block.freed else block.device

    def check(self, pointer: int, nbytes: int, what: str, device: int | None = None) -> None:
        """Make sure that `nbytes` bytes from an address on can be used by a device (None: by any).

        Raises
        ------
        DeviceError
            If they lie in no block, in a freed one, or in another device's.
        """
        block = self._find(pointer)
        if block is None:
            message = f"{what} uses the address {pointer:#x}, which is in no memory of a device."
        elif block.freed:
            message = f"{what} uses the address {pointer:#x}, whose memory has been freed."
        elif device is not None and block.device != device:
            message = (
                f"{what} on cuda:{device} uses memory of cuda:{block.device}; copy the array to cuda:{device} first."
            )
        elif pointer + nbytes > block.pointer + block.nbytes:
            message = (
                f"{what} uses {nbytes} bytes from {pointer:#x} on, but the block there ends after "
                f"{block.pointer + block.nbytes - pointer}."
            )
        else:
            return
        raise DeviceError(message)

    def place(self, address: int) -> str:
        """The place of an address, in words."""
        with self._lock.held():
            offset = address - self.range
            if offset < self.shared_end:
                return f"byte {offset - ALIGNMENT} of the block's {self._shared} bytes of shared memory"
            number = bisect_right(self._starts, address) - 1
            near = [self._blocks[start] for start in self._starts[max(number, 0) : number + 2]]
        if not near:
            return "in no array"
        block = min(near, key=lambda b: max(b.pointer - address, address - b.pointer - b.nbytes))
        freed = ", which has been freed" if block.freed else ""
        return f"byte {address - block.pointer} of an array of {block.nbytes} bytes{freed}"

    def is_whole(self, pointer: int) -> bool:
        """Whether the guards of the block with this address are as they were."""
        block = self._find(pointer)
        return block is None or block.freed or block.is_whole()

    def damaged(self) -> list[int]:
        """The blocks whose guards have been written since the last call."""
        with self._lock.held():
            blocks = list(self._blocks.values())
        found = [block for block in blocks if not block.freed and not block.is_whole()]
        for block in found:
            block.mend()
        return [block.pointer for block in found]
