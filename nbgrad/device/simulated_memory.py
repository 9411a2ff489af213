"""The memory of simulated devices: this machine's, in blocks that show how they are misused.

In: sizes and addresses. Out: addresses, and `DeviceError` for those that lie in no living block. Called by
simulator.py.

A block is aligned to 256 bytes, holds NaN until it is written, has guards around it that are looked at when it is freed
or read back, and stays unused for a while after it was freed, so that old pointers to it are recognised.
"""

from __future__ import annotations

import ctypes
import threading
from bisect import bisect_right, insort
from collections import deque

import numpy as np

from ..errors import DeviceError

ALIGNMENT = 256
GUARD = 256
"""Bytes that nobody may write, before and after each block."""
_PATTERN = b"\xa5\xa5\xf9\xff" * (GUARD // 4)
"""What guards hold: NaN in float32 and float64, so that reading one shows, too."""
UNSET = 0xFF
"""Every byte of memory that was not written yet, or was freed: NaN, or -1."""
KEPT = 64 << 20
"""Bytes of freed blocks that are not used again yet."""


class _Block:
    """A block of one device's memory, in a buffer that is larger."""

    __slots__ = ("buffer", "device", "freed", "nbytes", "pointer")

    def __init__(self, nbytes: int, device: int) -> None:
        self.buffer = np.empty(nbytes + 2 * GUARD + ALIGNMENT, np.uint8)
        self.pointer = -(-(self.buffer.ctypes.data + GUARD) // ALIGNMENT) * ALIGNMENT
        self.nbytes, self.device, self.freed = nbytes, device, False
        ctypes.memmove(self.pointer - GUARD, _PATTERN, GUARD)
        ctypes.memset(self.pointer, UNSET, nbytes)
        ctypes.memmove(self.pointer + nbytes, _PATTERN, GUARD)

    def is_whole(self) -> bool:
        """Whether its guards are as they were."""
        before = ctypes.string_at(self.pointer - GUARD, GUARD)
        return before == _PATTERN == ctypes.string_at(self.pointer + self.nbytes, GUARD)

    def mend(self) -> None:
        """Write its guards again."""
        ctypes.memmove(self.pointer - GUARD, _PATTERN, GUARD)
        ctypes.memmove(self.pointer + self.nbytes, _PATTERN, GUARD)


class Memories:
    """The memory of all devices: `total` bytes each."""

    def __init__(self, devices: int, total: int) -> None:
        self.total = total
        self.used = [0] * devices
        self._starts: list[int] = []
        self._blocks: dict[int, _Block] = {}
        self._freed: deque[_Block] = deque()
        self._kept = 0
        self._lock = threading.RLock()

    def allocate(self, nbytes: int, device: int) -> int:
        """A new block.

        Raises
        ------
        DeviceError
            If the device has no room for it.
        """
        with self._lock:
            if self.used[device] + nbytes > self.total:
                free = self.total - self.used[device]
                message = (
                    f"Out of memory on cuda:{device}: {nbytes} bytes were asked for, {free} of {self.total} are free. "
                    "Drop arrays that are not needed any more, or work on smaller pieces."
                )
                raise DeviceError(message)
            block = _Block(nbytes, device)
            self.used[device] += nbytes
            self._forget()
            self._blocks[block.pointer] = block
            insort(self._starts, block.pointer)
            return block.pointer

    def _forget(self) -> None:
        """Let go of the oldest freed blocks. Not done by `free`, which a garbage collection may call at any point."""
        while self._kept > KEPT:
            oldest = self._freed.popleft()
            self._kept -= oldest.nbytes + 2 * GUARD
            del self._starts[bisect_right(self._starts, oldest.pointer) - 1]
            del self._blocks[oldest.pointer]

    def free(self, pointer: int, device: int) -> bool:
        """Give a block back; whether its guards are as they were.

        Raises
        ------
        DeviceError
            If there is no such block, or not any more.
        """
        with self._lock:
            block = self._blocks.get(pointer)
            if block is None or block.freed or block.device != device:
                was = "has been freed before" if block is not None and block.freed else "is no block of this device"
                message = f"Memory at {pointer:#x} cannot be freed on cuda:{device}: it {was}."
                raise DeviceError(message)
            block.freed = True
            whole = block.is_whole()
            ctypes.memset(block.pointer, UNSET, block.nbytes)
            self.used[device] -= block.nbytes
            self._freed.append(block)
            self._kept += block.nbytes + 2 * GUARD
            return whole

    def _find(self, pointer: int) -> _Block | None:
        """The block in which an address lies, or at whose end."""
        with self._lock:
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

    def is_whole(self, pointer: int) -> bool:
        """Whether the guards of the block with this address are as they were."""
        block = self._find(pointer)
        return block is None or block.freed or block.is_whole()

    def damaged(self) -> list[int]:
        """The blocks whose guards have been written since the last call."""
        with self._lock:
            blocks = list(self._blocks.values())
        found = [block for block in blocks if not block.freed and not block.is_whole()]
        for block in found:
            block.mend()
        return [block.pointer for block in found]
