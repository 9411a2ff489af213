"""Groups of processes by MindSpore's names, each with its communicator of MPI, or without one where this process is
alone.

In: names of groups, ranks. Out: communicators, ranks and sizes. Called by the functions of `nbgrad.communication`, by
the operations of `ops` that talk to other processes, and by training in parallel.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from ..errors import ArgumentError, DtypeError, NbgradError
from ..process.launchers import launched, launcher, unconnected

WORLD_GROUP = "mccl_world_group"
"""The group of all processes."""
WORLD_NAMES = (WORLD_GROUP, "hccl_world_group", "nccl_world_group")


@dataclass(frozen=True)
class ProcessGroup:
    """The communicators of a group: of all its processes, and of those on this machine; None for this process alone.

    A group that this process is no member of has no `members`.
    """

    members: Any = None
    neighbours: Any = None
    is_member: bool = True


_ALONE = ProcessGroup()
_groups: dict[str, ProcessGroup] = {}


def begin() -> None:
    """Make the group of all processes, once; of this one alone where there is no MPI.

    Raises
    ------
    NbgradError
        If mpiexec or srun has started several processes, and mpi4py cannot connect them.
    """
    if WORLD_GROUP in _groups:
        return
    group = _ALONE
    if launched() > 1 or find_spec("mpi4py") is not None:
        # nbgrad.mpi ends all processes when one fails.
        from ..mpi.communicators import library

        try:
            group = _of(library().COMM_WORLD)
        except NbgradError:
            if launched() > 1:
                raise
        if group is _ALONE and (message := unconnected()) is not None:
            raise NbgradError(message)
    _groups.update(dict.fromkeys(WORLD_NAMES, group))


def _of(comm: Any) -> ProcessGroup:
    if comm.size == 1:
        return _ALONE
    from ..mpi.communicators import library

    return ProcessGroup(comm, comm.Split_type(library().COMM_TYPE_SHARED, comm.rank))


def end() -> None:
    """Forget all groups."""
    _groups.clear()


def found(group: Any) -> ProcessGroup:
    """The group of a name, or of a communicator of mpi4py.

    Raises
    ------
    DtypeError, ArgumentError, NbgradError
        If it is no name, if no group has it, or if there are several processes and `init` was not called.
    """
    if not isinstance(group, str) and hasattr(group, "Get_rank"):
        return ProcessGroup(group) if group.size > 1 else _ALONE
    if not isinstance(group, str):
        message = f"group must be the name of a group, but got {type(group).__name__}."
        raise DtypeError(message)
    if group in WORLD_NAMES and group not in _groups:
        if launched() > 1:
            message = (
                f"{launcher()} has started {launched()} processes, which are not connected yet. Call "
                "nbgrad.communication.init() first."
            )
            raise NbgradError(message)
        return _ALONE
    if group not in _groups:
        message = f"There is no group {group!r}. Make it with create_group({group!r}, [0])."
        raise ArgumentError(message)
    return _groups[group]


def communicator(group: Any = WORLD_GROUP) -> Any:
    """The communicator of a group; None where this process is its only one.

    Raises
    ------
    DtypeError, ArgumentError, NbgradError
        As `found`, and if this process is no member.
    """
    one = found(group)
    if not one.is_member:
        message = f"This process, of rank {rank()}, is no member of the group {group!r}. Only its members call this."
        raise ArgumentError(message)
    return one.members


def rank(group: Any = WORLD_GROUP) -> int:
    """The number of this process in a group."""
    comm = communicator(group)
    return 0 if comm is None else comm.rank


def size(group: Any = WORLD_GROUP) -> int:
    """The number of processes in a group."""
    comm = communicator(group)
    return 1 if comm is None else comm.size


def on_this_machine(group: Any) -> tuple[int, int]:
    """The number of this process among those of a group on this machine, and their number."""
    communicator(group)
    comm = found(group).neighbours
    return (0, 1) if comm is None else (comm.rank, comm.size)


def translated(given: Any, name: str, source: Any, target: Any) -> int:
    """The rank in a group of the process that has this rank in another group.

    Raises
    ------
    DtypeError, ArgumentError
        If it is no integer, or no such rank.
    """
    if isinstance(given, bool) or not isinstance(given, int):
        message = f"{name} must be an integer, but got {type(given).__name__}."
        raise DtypeError(message)
    one, other = communicator(source), communicator(target)
    count = 1 if one is None else one.size
    if not 0 <= given < count:
        message = f"{name} must be a rank from 0 to {count - 1}, but got {given}."
        raise ArgumentError(message)
    if one is other:
        return given
    # A group of this process alone has no communicator.
    from ..mpi.communicators import library

    alone = library().COMM_SELF
    known = (one or alone).Get_group().Translate_ranks([given], (other or alone).Get_group())[0]
    if known < 0:
        message = f"The process with {name} {given} is no member of the group {target!r}."
        raise ArgumentError(message)
    return known


def create(group: str, rank_ids: Sequence[int]) -> None:
    """Make a group of some of all processes; each of them calls it.

    Raises
    ------
    DtypeError, ArgumentError
        If the name is no string or is taken, or if the ranks are none.
    """
    if not isinstance(group, str) or not group:
        message = f"group must be a name, but got {group!r}."
        raise DtypeError(message)
    world = communicator()
    count = 1 if world is None else world.size
    try:
        ranks = [operator.index(one) for one in rank_ids]
    except TypeError:
        ranks = []
    if not ranks or len({*ranks}) < len(ranks) or not all(0 <= one < count for one in ranks):
        message = f"rank_ids must be different ranks from 0 to {count - 1}, but got {rank_ids!r}."
        raise ArgumentError(message)
    if group in WORLD_NAMES or (group in _groups and world is not None):
        message = f"There is a group {group!r} already. Call destroy_group({group!r}) first."
        raise ArgumentError(message)
    if world is None:
        _groups[group] = _ALONE
    elif world.rank not in ranks:
        _groups[group] = ProcessGroup(is_member=False)
    else:
        _groups[group] = _of(world.Create_group(world.Get_group().Incl(ranks)))


def communicator_of_ranks(rank_ids: Sequence[int]) -> Any:
    """The communicator of some of all processes, each of which calls this; None for this process alone."""
    name = f"ranks {list(rank_ids)}"
    if name not in _groups:
        create(name, rank_ids)
    return communicator(name)


def destroy(group: str) -> None:
    """Forget a group."""
    found(group)
    if group not in WORLD_NAMES:
        del _groups[group]
