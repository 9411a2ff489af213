"""NCCL in the place of MPI, for arrays on GPUs: messages are work on their streams, and go from one GPU to another.

In: a communicator of mpi4py, by which the processes find each other. Out: `use_nccl`, and a `Nccl` in its `Group`.
Called by users; gpu_messages.py sends by it.

Sums are NCCL's own; all that only moves is sent as bytes. Parts of unequal length, and collectives that NCCL has not,
are groups of messages between two.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..device.driver.libraries import UniqueId
from ..device.memory.arrays import Device, device_named
from ..errors import DeviceError, NbgradError
from .agreed_errors import Agreement
from .communicators import Group, group_of, library
from .messages import Layout, Message, elements, seen
from .messages import nbytes as bytes_of

TYPES = {
    name: number for number, name in enumerate("int8 uint8 int32 uint32 int64 uint64 float16 float32 float64".split())
}
"""Of `ncclDataType_t`."""
BYTES = TYPES["uint8"]
OPERATIONS = {"sum": 0, "prod": 1, "max": 2, "min": 3}
REDUCTIONS = frozenset(["allreduce", "reduce", "reduce_scatter"])
MOVEMENTS = frozenset("bcast gather scatter allgather alltoall send recv sendrecv".split())


class Nccl:
    """One group of processes with a GPU each.

    Parameters
    ----------
    group : Group
    device : Device
    """

    def __init__(self, group: Group, device: Device) -> None:
        self.group, self.device = group, device
        self.library = device.driver.library("nccl", device.index)
        name, slot = UniqueId(), np.zeros(1, np.uint64)
        if group.rank == 0:
            self.library.call("ncclGetUniqueId", ctypes.addressof(name))
        name = UniqueId.from_buffer_copy(group.comm.bcast(bytes(name)))
        device.driver.use(device.index)
        self.library.call("ncclCommInitRank", slot.ctypes.data, group.size, name, group.rank)
        self.handle = int(slot[0])

    def end(self) -> None:
        """Give it back."""
        self.library.call("ncclCommDestroy", self.handle)

    def does(self, message: Message) -> bool:
        """Whether it sends a message; all ranks give the same answer."""
        if message.kind in REDUCTIONS:
            return _elements(_layout(message)[1], message.operation) is not None
        return message.kind in MOVEMENTS and message.tag == 0

    def send(self, message: Message, data: int | None, out: int, context: Any) -> None:
        """Put a message on a stream.

        Parameters
        ----------
        message : Message
        data : int or None
            The address of what is sent.
        out : int
            That of the result.
        context : object
            With the `stream` and the `device`.

        Raises
        ------
        DeviceError
            If it is another device, or NCCL fails.
        """
        if context.device is not self.device:
            text = f"{message} is of an array on {context.device!r}, but its ranks use NCCL on {self.device!r}."
            raise DeviceError(text)
        if not _is_filled(message, self.group):
            context.driver.fill(out, 0, bytes_of(seen(message.result)), context.stream)
        if message.kind in REDUCTIONS:
            self._reduce(message, data or out, out, context.stream)
        else:
            self._move(message, data or out, out, context.stream)

    def _reduce(self, message: Message, data: int, out: int, stream: int) -> None:
        found = _elements(_layout(message)[1], message.operation)
        assert found is not None
        kind, wide = found
        ending = (self.handle, stream)
        operation = OPERATIONS[message.operation]
        size = wide * elements(_layout(message))
        if not size:
            return
        if message.kind == "allreduce":
            self.library.call("ncclAllReduce", data, out, size, kind, operation, *ending)
        elif message.kind == "reduce":
            self.library.call("ncclReduce", data, out, size, kind, operation, message.root, *ending)
        elif not message.counts:
            self.library.call("ncclReduceScatter", data, out, size // self.group.size, kind, operation, *ending)
        else:
            row = size // sum(message.counts)
            itemsize = _layout(message)[1].itemsize // wide
            with self._together():
                for root, (start, rows) in enumerate(_parts(message.counts)):
                    if rows:
                        part = data + start * row * itemsize
                        self.library.call("ncclReduce", part, out, rows * row, kind, operation, root, *ending)

    def _move(self, message: Message, data: int, out: int, stream: int) -> None:
        ending, rank, size = (self.handle, stream), self.group.rank, self.group.size
        given, found = bytes_of(message.data), bytes_of(message.result)
        kind, root = message.kind, message.root
        if kind == "bcast":
            if found:
                self.library.call("ncclBroadcast", data, out, found, BYTES, root, *ending)
            return
        if kind == "allgather" and not message.counts:
            if given:
                self.library.call("ncclAllGather", data, out, given, BYTES, *ending)
            return
        counts, others = message.counts or (1,) * size, message.given_counts or (1,) * size
        if kind == "allgather":
            row = found // max(sum(counts), 1)
            with self._together():
                for r, (start, rows) in enumerate(_parts(counts)):
                    if rows * row:
                        into = out + start * row
                        self.library.call("ncclBroadcast", data, into, rows * row, BYTES, r, *ending)
            return
        sends: list[tuple[int, int, int]] = []
        receives: list[tuple[int, int, int]] = []
        if kind == "gather":
            sends = [(data, given, root)]
            receives = _of_all(out, found, counts) if rank == root else []
        elif kind == "scatter":
            sends = _of_all(data, given, counts) if rank == root else []
            receives = [(out, found, root)]
        elif kind == "alltoall":
            sends, receives = _of_all(data, given, counts), _of_all(out, found, others)
        else:
            sends = [(data, given, message.to)] if message.to >= 0 else []
            receives = [(out, found, message.source)] if message.source >= 0 else []
        with self._together():
            for address, nbytes, peer in sends:
                if nbytes:
                    self.library.call("ncclSend", address, nbytes, BYTES, peer, *ending)
            for address, nbytes, peer in receives:
                if nbytes:
                    self.library.call("ncclRecv", address, nbytes, BYTES, peer, *ending)

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Calls that wait for each other."""
        self.library.call("ncclGroupStart")
        try:
            yield
        finally:
            self.library.call("ncclGroupEnd")


def _layout(message: Message) -> Layout:
    """The layout of the elements of a reduction."""
    return message.data or message.result


def _elements(dtype: np.dtype[Any], operation: str) -> tuple[int, int] | None:
    """NCCL's type for elements of a dtype in a reduction, and how many of it they are; None if it has none."""
    if dtype.kind == "c" and operation == "sum":
        return TYPES[f"float{4 * dtype.itemsize}"], 2
    found = TYPES.get(dtype.name)
    return None if found is None else (found, 1)


def _parts(counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first row of each rank, and its rows."""
    return zip(itertools.accumulate(counts, initial=0), counts, strict=False)


def _of_all(address: int, nbytes: int, counts: Sequence[int]) -> list[tuple[int, int, int]]:
    """The parts of all ranks in an array with these rows: address, bytes, rank."""
    row = nbytes // max(sum(counts), 1)
    return [(address + start * row, rows * row, rank) for rank, (start, rows) in enumerate(_parts(counts))]


def _is_filled(message: Message, group: Group) -> bool:
    """Whether the message fills the result on this rank; it is zeros otherwise."""
    if not elements(message.result):
        return False
    if message.kind in ("reduce", "gather"):
        return group.rank == message.root
    if message.kind in ("send", "recv", "sendrecv"):
        return message.source >= 0
    return True


def use_nccl(comm: Any = None, device: Any = None) -> Any:
    """Let NCCL send the arrays on GPUs of a communicator from now on; all ranks must call this at once.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
    device : str or Device, optional
        This rank's GPU, which no other rank has. By default, the first rank of a machine has its first GPU, the second
        one the second.

    Returns
    -------
    Device
        This rank's GPU: `nb.Tensor(x, device=device)` puts an array there.

    Raises
    ------
    NbgradError
        On all ranks, if one has no GPU, no NCCL, or the GPU of another one.

    Notes
    -----
    From then on, all ranks of the communicator must give arrays on their GPUs to a collective, or all arrays of the
    CPU. `scan`, `isend`, `irecv`, messages with a tag, and sums of dtypes that NCCL does not know go on by MPI.

    NCCL is NVIDIA's library of messages between GPUs (NVIDIA Collective Communications Library). Install it with
    pip install nvidia-nccl-cu13, or nvidia-nccl-cu12 for drivers of CUDA 12.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad import mpi
    >>> with nb.cuda.simulator():
    ...     device = mpi.use_nccl()
    ...     print(mpi.allreduce(nb.Tensor([1.0, 2.0], device=device)))
    [1. 2.]
    """
    group = group_of(comm)
    agreement = Agreement(group.comm, NbgradError, "NCCL is not used")
    with agreement:
        place = device_named(f"cuda:{_local_rank(group)}" if device is None else device)
        if place is None:
            text = f"NCCL sends arrays on GPUs, but device is {device!r}."
            raise DeviceError(text)
        place.driver.library("nccl", place.index)
    assert place is not None
    with agreement:
        if group.nccl is not None:
            group.nccl.end()
        group.nccl = None
        group.nccl = Nccl(group, place)
    return place


def _local_rank(group: Group) -> int:
    """This rank's number among those of its machine."""
    near = group.comm.Split_type(library().COMM_TYPE_SHARED)
    try:
        return int(near.rank)
    finally:
        near.Free()
