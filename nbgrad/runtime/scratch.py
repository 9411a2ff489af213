"""Scratch memory of devices: one block for each stream, which all programs on that stream share.

In: a device, a stream and a number of bytes. Out: memory that nothing else uses until it is given back. Called by
device_program.py. Programs on one stream run one after the other, so that one block serves all of them, as long as
nobody else enqueues work in between: for other threads there is a lock. Within the same thread, a user's launcher may
run programs while one is being enqueued; these get blocks of their own.
"""

from __future__ import annotations

from typing import Any

from ..device.memory.arrays import Device, Memory
from ..process.locks import ForkSafeLock

SMALLEST = 1 << 16


class StreamScratch:
    """The blocks of one stream: one for each program that is being enqueued, one within the other.

    Between `enter` and `leave`, the lock is held.
    """

    __slots__ = ("_taken", "blocks", "depth", "device", "lock", "stream")

    def __init__(self, device: Device, stream: int) -> None:
        self.device, self.stream = device, stream
        self.lock = ForkSafeLock()
        self._taken: list[Any] = []
        self.blocks: list[Memory | None] = []
        self.depth = 0

    def enter(self, nbytes: int) -> int:
        """The address of at least so many bytes; 0 for none."""
        taken = self.lock.acquire()
        self._taken.append(taken)
        depth = self.depth
        self.depth += 1
        if not nbytes:
            return 0
        while len(self.blocks) <= depth:
            self.blocks.append(None)
        block = self.blocks[depth]
        if block is None or block.nbytes < nbytes:
            try:
                # What it was before is freed in the order of the stream.
                block = self.blocks[depth] = Memory(self.device, max(nbytes, SMALLEST), self.stream)
            except BaseException:
                self.leave()
                raise
        return block.pointer

    def leave(self) -> None:
        """The work is enqueued."""
        self.depth -= 1
        self._taken.pop().release()


_streams: dict[tuple[Device, int], StreamScratch] = {}


def scratch_of(device: Device, stream: int) -> StreamScratch:
    """The scratch memory of a stream."""
    key = (device, stream)
    own = _streams.get(key)
    return _streams.setdefault(key, StreamScratch(device, stream)) if own is None else own
