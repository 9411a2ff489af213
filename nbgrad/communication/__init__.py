"""MindSpore's `communication` for one process: rank 0 of 1.

In: nothing, or names of groups. Out: ranks and sizes. Called by users, mostly in scripts that may run on many devices,
and by the operations of `ops` that talk to other processes. Every group has this process only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..errors import ArgumentError, DtypeError

__all__ = [
    "WORLD_GROUP",
    "GlobalComm",
    "create_group",
    "destroy_group",
    "get_group_rank_from_world_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_rank",
    "get_world_rank_from_group_rank",
    "init",
    "release",
]

WORLD_GROUP = "mccl_world_group"
"""The group of all processes."""
_BACKENDS = ("hccl", "nccl", "mccl")
_groups = {WORLD_GROUP, "hccl_world_group", "nccl_world_group"}


class GlobalComm:
    """The state of communication, under MindSpore's names."""

    INITED: ClassVar[bool] = False
    BACKEND: ClassVar[str] = "mccl"
    WORLD_COMM_GROUP: ClassVar[str] = WORLD_GROUP


def init(backend_name: str | None = None) -> None:
    """Begin to communicate; with one process there is nothing to set up.

    Parameters
    ----------
    backend_name : {"hccl", "nccl", "mccl"}, optional
        Accepted; no library of a device is used.

    Raises
    ------
    DtypeError, ArgumentError
        If the backend is no string, or does not exist.

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
    GlobalComm.INITED = True  # pyright: ignore[reportAttributeAccessIssue, reportConstantRedefinition]


def release() -> None:
    """End communication."""
    GlobalComm.INITED = False


def check_group(group: str) -> None:
    """Raise unless a group exists.

    Raises
    ------
    DtypeError, ArgumentError
        If the name is no string, or no group has it.
    """
    if not isinstance(group, str):
        message = f"group must be the name of a group, but got {type(group).__name__}."
        raise DtypeError(message)
    if group not in _groups:
        message = f"There is no group {group!r}. Make it with create_group({group!r}, [0])."
        raise ArgumentError(message)


def get_rank(group: str = WORLD_GROUP) -> int:
    """The number of this process in a group: 0."""
    check_group(group)
    return 0


def get_group_size(group: str = WORLD_GROUP) -> int:
    """The number of processes in a group: 1."""
    check_group(group)
    return 1


get_local_rank = get_rank
get_local_rank_size = get_group_size


def _one(rank: int, name: str) -> int:
    if isinstance(rank, bool) or not isinstance(rank, int):
        message = f"{name} must be an integer, but got {type(rank).__name__}."
        raise DtypeError(message)
    if rank != 0:
        message = f"There is one process, of rank 0, but {name} is {rank}."
        raise ArgumentError(message)
    return 0


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The rank among all processes of a rank in a group: 0 for 0."""
    check_group(group)
    return _one(group_rank_id, "group_rank_id")


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The rank in a group of a rank among all processes: 0 for 0."""
    check_group(group)
    return _one(world_rank_id, "world_rank_id")


def create_group(group: str, rank_ids: Sequence[int]) -> None:
    """Make a group of ranks; only rank 0 exists.

    Raises
    ------
    DtypeError, ArgumentError
        If the name is no string, or the ranks are not [0].

    Examples
    --------
    >>> from nbgrad import communication
    >>> communication.create_group("pair", [0])
    >>> communication.get_group_size("pair")
    1
    >>> communication.destroy_group("pair")
    """
    if not isinstance(group, str) or not group:
        message = f"group must be a name, but got {group!r}."
        raise DtypeError(message)
    if list(rank_ids) != [0]:
        message = f"There is one process, of rank 0, so that a group has the ranks [0], but got {list(rank_ids)}."
        raise ArgumentError(message)
    _groups.add(group)


def destroy_group(group: str) -> None:
    """Forget a group."""
    check_group(group)
    if group != WORLD_GROUP:
        _groups.discard(group)
