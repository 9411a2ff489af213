"""MindSpore's `communication`: ranks and groups of the processes that `mpiexec` has started; without it, rank 0 of 1.

In: nothing, or names of groups. Out: ranks and sizes. Called by users, mostly in scripts that may run on many devices,
and by the operations of `ops` that talk to other processes. MPI connects them: pip install "nbgrad[mpi]".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..errors import ArgumentError, DtypeError
from . import process_groups as _processes
from .process_groups import WORLD_GROUP

__all__ = [
    "WORLD_GROUP",
    "GlobalComm",
    "create_group",
    "destroy_group",
    "get_group_rank_from_world_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_process_group_ranks",
    "get_rank",
    "get_world_rank_from_group_rank",
    "init",
    "release",
]

_BACKENDS = ("hccl", "nccl", "mccl")


class GlobalComm:
    """The state of communication, under MindSpore's names."""

    INITED: ClassVar[bool] = False
    BACKEND: ClassVar[str] = "mccl"
    WORLD_COMM_GROUP: ClassVar[str] = WORLD_GROUP


def init(backend_name: str | None = None) -> None:
    """Connect all processes that `mpiexec` has started; all of them call it. One process alone is rank 0 of 1.

    Parameters
    ----------
    backend_name : {"hccl", "nccl", "mccl"}, optional
        Accepted; MPI is used in any case.

    Raises
    ------
    DtypeError, ArgumentError
        If the backend is no string, or does not exist.
    NbgradError
        If there are several processes, and mpi4py or its MPI library is missing.

    Examples
    --------
    >>> from nbgrad.communication import init, get_rank, get_group_size
    >>> init()
    >>> get_rank(), get_group_size()
    (0, 1)
    """
    if backend_name is not None and not isinstance(backend_name, str):
        message = f"backend_name must be a string, but got {type(backend_name).__name__}."
        raise DtypeError(message)
    if backend_name is not None and backend_name not in _BACKENDS:
        message = f"backend_name must be one of {', '.join(_BACKENDS)}, but got {backend_name!r}."
        raise ArgumentError(message)
    _processes.begin()
    GlobalComm.INITED = True  # pyright: ignore[reportAttributeAccessIssue, reportConstantRedefinition]


def release() -> None:
    """End communication, and forget all groups."""
    _processes.end()
    GlobalComm.INITED = False


def get_rank(group: str = WORLD_GROUP) -> int:
    """The number of this process in a group.

    Raises
    ------
    DtypeError, ArgumentError, NbgradError
        If there is no such group, this process is no member, or `init` was not called under mpiexec.
    """
    return _processes.rank(group)


def get_group_size(group: str = WORLD_GROUP) -> int:
    """The number of processes in a group.

    Raises
    ------
    DtypeError, ArgumentError, NbgradError
        As `get_rank`.
    """
    return _processes.size(group)


def get_local_rank(group: str = WORLD_GROUP) -> int:
    """The number of this process among those of a group on this machine."""
    return _processes.on_this_machine(group)[0]


def get_local_rank_size(group: str = WORLD_GROUP) -> int:
    """The number of processes of a group on this machine."""
    return _processes.on_this_machine(group)[1]


def get_process_group_ranks(group: str = WORLD_GROUP) -> list[int]:
    """The ranks among all processes of the members of a group.

    Examples
    --------
    >>> from nbgrad import communication
    >>> communication.get_process_group_ranks()
    [0]
    """
    return [get_world_rank_from_group_rank(group, rank) for rank in range(get_group_size(group))]


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The rank among all processes of a rank in a group."""
    return _processes.translated(group_rank_id, "group_rank_id", group, WORLD_GROUP)


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The rank in a group of a rank among all processes."""
    return _processes.translated(world_rank_id, "world_rank_id", WORLD_GROUP, group)


def create_group(group: str, rank_ids: Sequence[int]) -> None:
    """Make a group of some of all processes; each member calls it, and the others may.

    Parameters
    ----------
    group : str
        Its name.
    rank_ids : sequence of int
        The ranks of its members among all processes, in their order in the group.

    Raises
    ------
    DtypeError, ArgumentError
        If the name is no string or is taken, or if the ranks are none.

    Examples
    --------
    >>> from nbgrad import communication
    >>> communication.create_group("pair", [0])
    >>> communication.get_group_size("pair")
    1
    >>> communication.destroy_group("pair")
    """
    _processes.create(group, rank_ids)


def destroy_group(group: str) -> None:
    """Forget a group."""
    _processes.destroy(group)
