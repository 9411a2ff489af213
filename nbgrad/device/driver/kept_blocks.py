"""Small blocks of device memory that are kept for the next array of their size.

In: addresses that the driver gave, their sizes and streams. Out: `KeptBlocks`, one for each device. Used by
cuda_driver.py. The driver's own pool takes some microseconds for a block and for its return, and more while the device
still works with it; a small program runs for less. On one stream, work that is enqueued later also runs later, so that
a block is free for it at once.
"""

from __future__ import annotations

SMALL, GRAIN, MOST = 1 << 20, 512, 64
"""Blocks up to so many bytes are kept, in sizes that are multiples of the second number, at most so many of each."""
PER_THREAD = 2
"""The handle by which threads name default streams of their own: no block is kept for them."""


class KeptBlocks:
    """The small blocks of a device; threads may share them.

    Examples
    --------
    >>> from nbgrad.device.driver.kept_blocks import KeptBlocks
    >>> blocks = KeptBlocks()
    >>> blocks.made(0x7000, 512)
    >>> blocks.given(0x7000, stream=9), blocks.taken(512, stream=0), blocks.taken(512, stream=9) == 0x7000
    (True, 0, True)
    """

    __slots__ = ("_idle", "_sizes")

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._idle: dict[tuple[int, int], list[int]] = {}

    def taken(self, nbytes: int, stream: int) -> int:
        """A block of so many bytes for a stream; 0 if there is none."""
        idle = self._idle.get((stream, nbytes))
        if idle:
            try:
                return idle.pop()
            except IndexError:  # another thread was faster
                pass
        return 0

    def made(self, pointer: int, nbytes: int) -> None:
        """The driver has made a block that may be kept."""
        self._sizes[pointer] = nbytes

    def given(self, pointer: int, stream: int) -> bool:
        """Whether a block is kept that nothing but earlier work on a stream uses; if not, it is the driver's again."""
        nbytes = self._sizes.get(pointer)
        if nbytes is None:
            return False
        idle = self._idle.setdefault((stream, nbytes), [])
        if len(idle) >= MOST or stream == PER_THREAD:
            del self._sizes[pointer]
            return False
        idle.append(pointer)
        return True

    def all_given_up(self) -> list[tuple[int, int]]:
        """Forget all idle blocks: (address, stream) of each."""
        found: list[tuple[int, int]] = []
        for (stream, _), idle in list(self._idle.items()):
            while idle:
                pointer = idle.pop()
                self._sizes.pop(pointer, None)
                found.append((pointer, stream))
        return found

    @property
    def nbytes(self) -> int:
        """The bytes of idle blocks."""
        return sum([nbytes * len(idle) for (_, nbytes), idle in list(self._idle.items())])


def in_grains(nbytes: int) -> int:
    """The size of a small block for so many bytes."""
    return -(-nbytes // GRAIN) * GRAIN
