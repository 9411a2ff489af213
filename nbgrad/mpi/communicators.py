"""Communicators of mpi4py by numbers, which programs and the keys of graphs can hold.

In: communicators of mpi4py, or None for all processes. Out: `Group`s with a number each. Called by all of nbgrad.mpi.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError, NbgradError
from ..process.launchers import unconnected


def library() -> Any:
    """The module `mpi4py.MPI`, which starts MPI when it is first imported.

    Raises
    ------
    NbgradError
        If mpi4py or the MPI library is missing.
    """
    try:
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        message = (
            f"nbgrad.mpi needs mpi4py and an MPI library ({error}). On one machine, install both with "
            'pip install "nbgrad[mpi]"; on a cluster, pip install mpi4py beside the MPI that is there.'
        )
        raise NbgradError(message) from error


@dataclass(eq=False)
class Group:
    """A communicator, its number, and this process' place in it; `reverse` has the ranks in reverse order."""

    comm: Any
    number: int
    rank: int
    size: int
    reverse: int = -1
    checks: Any = None
    """The communicator over which calls are compared (call_check.py)."""
    nccl: Any = None
    """The group of NCCL that sends arrays on GPUs (nccl.py)."""


groups: list[Group] = []
"""By their numbers."""
_numbers: dict[int, int] = {}
"""By the handles of communicators."""


def group_of(comm: Any = None) -> Group:
    """The group of a communicator of mpi4py, or of all processes.

    Raises
    ------
    ArgumentError
        If it is no communicator within which this process has a rank.
    NbgradError
        If it is that of all processes, of which several were started but not connected.
    """
    mpi, all_processes = library(), comm is None
    if all_processes:
        comm = mpi.COMM_WORLD
    if not isinstance(comm, mpi.Comm) or comm == mpi.COMM_NULL or comm.Is_inter():
        message = (
            "comm must be a communicator of mpi4py within which this process has a rank, such as MPI.COMM_WORLD or "
            f"what comm.Split() gives, but got {comm!r}."
        )
        raise ArgumentError(message)
    found = _numbers.get(comm.handle)
    # A handle may be used again for another communicator once the first was freed.
    if found is None or groups[found].comm != comm:
        if all_processes and comm.size == 1 and (message := unconnected()) is not None:
            raise NbgradError(message)
        found = _numbers[comm.handle] = len(groups)
        groups.append(Group(comm, found, comm.rank, comm.size))
    return groups[found]


def reverse_of(group: Group) -> int:
    """The number of the communicator with the ranks in reverse order; all ranks must ask for it at once."""
    if group.reverse < 0:
        comm = group.comm.Split(0, group.size - 1 - group.rank)
        other = group_of(comm)
        group.reverse, other.reverse = other.number, group.number
    return group.reverse
