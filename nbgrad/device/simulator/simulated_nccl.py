"""NCCL without GPUs: its routines over sockets between the processes of one machine.

In: the numbers and addresses that the real routines get, of memory of this machine. Out: a `Library`
(driver/libraries.py). Called by simulated_libraries.py. As with the real one, processes find each other by a name of
128 bytes that one of them makes, and calls between `ncclGroupStart` and `ncclGroupEnd` wait for each other. A bad
argument gives NCCL's status.
"""

from __future__ import annotations

import ctypes
import re
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DeviceError
from ..driver.libraries import SIGNATURES, Library, UniqueId

INVALID_ARGUMENT, INVALID_USAGE = 4, 5
TYPES = [np.dtype(name) for name in "int8 uint8 int32 uint32 int64 uint64 float16 float32 float64".split()]
OPERATIONS: list[np.ufunc] = [np.add, np.multiply, np.maximum, np.minimum]
LONGEST = 60.0
"""Seconds that a process waits for the others to be there."""


class _RefusedError(Exception):
    """A call that NCCL refuses, with the status."""


class _Group:
    """One process of a group, connected with each of the others."""

    def __init__(self, name: bytes, size: int, rank: int) -> None:
        self.size, self.rank = size, rank
        self.others: dict[int, Connection] = {}
        folder = Path(name.rstrip(b"\0").decode())
        with Listener(str(folder / str(rank)), family="AF_UNIX", backlog=size) as listener:
            for other in range(rank):
                connection = _connected(folder / str(other))
                connection.send(rank)
                self.others[other] = connection
            for _ in range(size - 1 - rank):
                connection = listener.accept()
                self.others[connection.recv()] = connection
        # Each has closed its socket, which is gone then.
        if rank:
            self.others[0].send(rank)
        else:
            for connection in self.others.values():
                connection.recv()
            folder.rmdir()

    def moved(self, sends: list[tuple[int, bytes]], receives: list[tuple[int, int]]) -> list[bytes]:
        """Send bytes to ranks and receive so many from ranks, at once."""
        own = iter([data for rank, data in sends if rank == self.rank])

        def send() -> None:
            for rank, data in sends:
                if rank != self.rank:
                    self.others[rank].send_bytes(data)

        thread = threading.Thread(target=send)
        thread.start()
        found = [next(own) if rank == self.rank else self.others[rank].recv_bytes() for rank, _ in receives]
        thread.join()
        if [len(data) for data in found] != [nbytes for _, nbytes in receives]:
            raise _RefusedError(INVALID_USAGE)
        return found

    def from_all(self, data: bytes) -> list[bytes]:
        """The bytes of all ranks, in their order."""
        every = range(self.size)
        return self.moved([(rank, data) for rank in every], [(rank, len(data)) for rank in every])


def _connected(path: Path) -> Connection:
    """A connection with a process that may not listen yet."""
    end = time.monotonic() + LONGEST
    while True:
        try:
            return Client(str(path), family="AF_UNIX")
        except OSError:
            if time.monotonic() > end:
                raise _RefusedError(INVALID_USAGE) from None
            time.sleep(0.005)


class _Nccl:
    """The routines."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.groups: dict[int, _Group] = {}
        self.depth = 0
        self.waiting: list[Callable[[], None]] = []
        self.sends: list[tuple[_Group, int, bytes]] = []
        self.receives: list[tuple[_Group, int, int, int]] = []

    def find(self, function: str) -> Callable[..., int]:
        """The function of a name, which gives a status."""
        if function not in SIGNATURES["nccl"]:
            message = f"This version of nccl has no {function}."
            raise DeviceError(message)
        work = getattr(self, re.sub("(?<!^)(?=[A-Z])", "_", function.removeprefix("nccl")).lower())

        def call(*arguments: Any) -> int:
            assert len(arguments) == len(SIGNATURES["nccl"][function].replace(" ", "")), (function, arguments)
            try:
                work(*arguments)
            except _RefusedError as refused:
                return int(refused.args[0])
            return 0

        return call

    # ----- Groups -----

    def get_unique_id(self, at: int) -> None:
        """A folder for the sockets of a group."""
        name = tempfile.mkdtemp(prefix="nccl-").encode()
        ctypes.memmove(at, name.ljust(128, b"\0"), 128)

    def comm_init_rank(self, at: int, size: int, name: UniqueId, rank: int) -> None:
        """Connect with the others."""
        if not 0 <= rank < size:
            raise _RefusedError(INVALID_ARGUMENT)
        handle = 0x2CC1 + len(self.groups)
        self.groups[handle] = _Group(bytes(name), size, rank)
        ctypes.c_uint64.from_address(at).value = handle

    def comm_destroy(self, handle: int) -> None:
        """Close the connections."""
        for connection in self._group(handle).others.values():
            connection.close()

    comm_abort = comm_destroy

    def _group(self, handle: int) -> _Group:
        if handle not in self.groups:
            raise _RefusedError(INVALID_ARGUMENT)
        return self.groups[handle]

    def group_start(self) -> None:
        """Keep calls until `GroupEnd`."""
        self.depth += 1

    def group_end(self) -> None:
        """Do the kept calls: messages between two at once, collectives in their order."""
        self.depth -= 1
        if self.depth < 0:
            raise _RefusedError(INVALID_USAGE)
        if self.depth:
            return
        sends, receives, waiting = self.sends, self.receives, self.waiting
        self.sends, self.receives, self.waiting = [], [], []
        for act in waiting:
            act()
        for group in {entry[0] for entry in (*sends, *receives)}:
            found = group.moved(
                [(rank, data) for one, rank, data in sends if one is group],
                [(rank, nbytes) for one, rank, nbytes, _ in receives if one is group],
            )
            into = [address for one, *_, address in receives if one is group]
            for address, data in zip(into, found, strict=True):
                ctypes.memmove(address, data, len(data))

    def _do(self, act: Callable[[], None], stream: int) -> None:
        self.group_start()
        self.driver.enqueue(lambda: self.waiting.append(act), stream)
        self.group_end()

    # ----- Messages -----

    def _read(self, address: int, nbytes: int) -> bytes:
        self.driver.memories.check(address, nbytes, "NCCL")
        return ctypes.string_at(address, nbytes)

    def _write(self, address: int, data: bytes) -> None:
        self.driver.memories.check(address, len(data), "NCCL")
        ctypes.memmove(address, data, len(data))

    def _reduced(self, group: _Group, data: int, count: int, kind: int, operation: int) -> np.ndarray:
        if not (0 <= kind < len(TYPES) and 0 <= operation < len(OPERATIONS)):
            raise _RefusedError(INVALID_ARGUMENT)
        parts = group.from_all(self._read(data, count * TYPES[kind].itemsize))
        total = np.frombuffer(parts[0], TYPES[kind])
        for part in parts[1:]:
            total = OPERATIONS[operation](total, np.frombuffer(part, TYPES[kind]))
        return total

    def all_reduce(self, data: int, out: int, count: int, kind: int, operation: int, handle: int, stream: int) -> None:
        """The sum, product, maximum or minimum on all ranks."""
        group = self._group(handle)
        self._do(lambda: self._write(out, self._reduced(group, data, count, kind, operation).tobytes()), stream)

    def reduce(
        self, data: int, out: int, count: int, kind: int, operation: int, root: int, handle: int, stream: int
    ) -> None:
        """The sum, product, maximum or minimum on one rank."""
        group = self._group(handle)

        def act() -> None:
            found = self._reduced(group, data, count, kind, operation)
            if group.rank == root:
                self._write(out, found.tobytes())

        self._do(act, stream)

    def reduce_scatter(
        self, data: int, out: int, count: int, kind: int, operation: int, handle: int, stream: int
    ) -> None:
        """The part of a sum for each rank."""
        group = self._group(handle)

        def act() -> None:
            found = self._reduced(group, data, count * group.size, kind, operation)
            self._write(out, found[group.rank * count :][:count].tobytes())

        self._do(act, stream)

    def broadcast(self, data: int, out: int, count: int, kind: int, root: int, handle: int, stream: int) -> None:
        """One rank's data on all."""
        group, nbytes = self._group(handle), count * TYPES[kind].itemsize

        def act() -> None:
            at_root = group.rank == root
            sends = [(rank, self._read(data, nbytes)) for rank in range(group.size)] if at_root else []
            self._write(out, group.moved(sends, [(root, nbytes)])[0])

        self._do(act, stream)

    def all_gather(self, data: int, out: int, count: int, kind: int, handle: int, stream: int) -> None:
        """The data of all ranks on all."""
        group, nbytes = self._group(handle), count * TYPES[kind].itemsize
        self._do(lambda: self._write(out, b"".join(group.from_all(self._read(data, nbytes)))), stream)

    def send(self, data: int, count: int, kind: int, peer: int, handle: int, stream: int) -> None:
        """Data to one rank."""
        group, nbytes = self._group(handle), count * TYPES[kind].itemsize
        self.group_start()
        self.driver.enqueue(lambda: self.sends.append((group, peer, self._read(data, nbytes))), stream)
        self.group_end()

    def recv(self, out: int, count: int, kind: int, peer: int, handle: int, stream: int) -> None:
        """Data from one rank."""
        group, nbytes = self._group(handle), count * TYPES[kind].itemsize
        self.driver.memories.check(out, nbytes, "NCCL")
        self.group_start()
        self.driver.enqueue(lambda: self.receives.append((group, peer, nbytes, out)), stream)
        self.group_end()


def nccl(driver: Any) -> Library:
    """The library of a simulator, for all its devices."""
    known = driver.__dict__.setdefault("_libraries", {})
    if "nccl" not in known:
        double = _Nccl(driver)
        known["nccl"] = Library("nccl", double.find)
    return known["nccl"]
