"""MindSpore's operations that all processes of a group take part in, over `nbgrad.mpi`; alone, a process is its group.

In: Tensors, and options of the class forms of `ops` (`ops.AllReduce(op, group)`). Out: Tensors. Called through the
class forms. All have derivatives: each process differentiates its own loss, and a gradient is that of the sum of all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..functions.arrays.joining import concatenate
from ..functions.arrays.shaping import moveaxis
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import axis_of, real_dtype
from ..record.tensor import Tensor
from .process_groups import WORLD_GROUP, communicator

_OPERATIONS = ("sum", "max", "min", "prod")


class ReduceOp:
    """How the arrays of several processes become one."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


def _checked(op: Any) -> str:
    if op not in _OPERATIONS:
        message = f'op must be "sum", "max", "min" or "prod", but got {op!r}.'
        raise ArgumentError(message)
    return op


def _given(value: Any) -> Any:
    return wrap(as_node(value))


def _rows(x: Any, count: int, name: str, axis: int = 0) -> int:
    """The rows of each of so many equal parts.

    Raises
    ------
    ShapeError
        If there are none.
    """
    if x.ndim <= axis or x.shape[axis] % count:
        message = f"{name} cuts axis {axis} into {count} equal parts, but got an array of shape {x.shape}."
        raise ShapeError(message)
    return x.shape[axis] // count


def _of_several(group: Any, name: str) -> Any:
    """The communicator of a group with other processes.

    Raises
    ------
    ArgumentError
        If there is none.
    """
    comm = communicator(group)
    if comm is None:
        message = f"{name} needs another process, but this one is alone in its group. Start several with mpiexec."
        raise ArgumentError(message)
    return comm


def all_reduce(input: Any, op: str = "sum", group: Any = WORLD_GROUP) -> Tensor:
    """The sum (or "max", "min", "prod") of the arrays of all processes; of one process, its own.

    Parameters
    ----------
    input : Tensor
        Of one shape and dtype in all processes.
    op : {"sum", "max", "min", "prod"}
    group : str
        The name of a group, or a communicator of mpi4py.

    Returns
    -------
    Tensor

    Raises
    ------
    ArgumentError
        For an unknown operation or group.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.ops.AllReduce()(nb.Tensor([1.0, 2.0])))
    [1. 2.]
    """
    x, comm = _given(input), communicator(group)
    if _checked(op) and comm is None:
        return x
    from ..mpi import allreduce

    return allreduce(x, op, comm)


def all_gather(input: Any, group: Any = WORLD_GROUP) -> Tensor:
    """The arrays of all processes one after the other along the first axis; of one process, its own.

    Parameters
    ----------
    input : Tensor
        Of one shape and dtype in all processes.
    group : str
        The name of a group, or a communicator of mpi4py.

    Returns
    -------
    Tensor

    Raises
    ------
    ArgumentError
        For an unknown group.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.ops.AllGather()(nb.Tensor([1.0, 2.0])))
    [1. 2.]
    """
    x, comm = _given(input), communicator(group)
    if comm is None:
        return x
    from ..mpi import allgather

    every = allgather(x, comm=comm)
    return every.reshape(-1, *x.shape[1:]) if x.ndim else every


def reduce_scatter(x: Any, op: str, group: Any) -> Tensor:
    """The sum (or "max", "min", "prod") of the arrays of all processes; each gets an equal part of the rows."""
    given, comm = _given(x), communicator(group)
    if _checked(op) and comm is None:
        return given
    from ..mpi import reduce_scatter

    rows = _rows(given, comm.size, "ReduceScatter")
    return reduce_scatter(given.reshape(comm.size, rows, *given.shape[1:]), op, comm=comm)


def broadcast(inputs: Any, root_rank: int, group: Any) -> Any:
    """The array of one process, in all of them; or a tuple of arrays."""
    comm = communicator(group)
    several = isinstance(inputs, tuple | list)
    given = [_given(x) for x in (inputs if several else [inputs])]
    if comm is not None:
        from ..mpi import bcast

        given = [bcast(x, root_rank, comm) for x in given]
    return tuple(given) if several else given[0]


def reduce(x: Any, dest_rank: int, op: str, group: Any) -> Tensor:
    """The sum (or "max", "min", "prod") of the arrays of all processes, in one of them; zeros in the others."""
    given, comm = _given(x), communicator(group)
    if _checked(op) and comm is None:
        return given
    from ..mpi import reduce

    return reduce(given, op, dest_rank, comm)


def all_to_all(x: Any, split_count: int, split_dim: int, concat_dim: int, group: Any) -> Tensor:
    """A part of each process's array for each process: one axis is cut, and the parts are joined along another."""
    given, comm = _given(x), communicator(group)
    count = 1 if comm is None else comm.size
    if split_count != count:
        message = f"split_count must be the {count} processes of the group, but got {split_count!r}."
        raise ArgumentError(message)
    axis, joined = axis_of(split_dim, given.ndim), axis_of(concat_dim, given.ndim)
    rows = _rows(given, count, "AlltoAll", axis)
    if comm is None:
        return given
    from ..mpi import alltoall

    shape = (*given.shape[:axis], count, rows, *given.shape[axis + 1 :])
    every = alltoall(moveaxis(given.reshape(shape), axis, 0), comm=comm)
    return concatenate([every[k] for k in range(count)], joined)


def barrier(group: Any) -> None:
    """Wait until all processes are here."""
    comm = communicator(group)
    if comm is not None:
        from ..mpi import barrier

        barrier(comm)


def collective_scatter(x: Any, src_rank: int, group: Any) -> Tensor:
    """An equal part of the rows of one process's array for each process; only its values count."""
    given, comm = _given(x), communicator(group)
    if comm is None:
        return given
    from ..mpi import scatter

    rows = _rows(given, comm.size, "CollectiveScatter")
    return scatter(given, src_rank, [rows] * comm.size, comm)


def collective_gather(x: Any, dest_rank: int, group: Any) -> Tensor:
    """The arrays of all processes one after the other along the first axis, in one of them; no rows in the others."""
    given, comm = _given(x), communicator(group)
    if comm is None:
        return given
    from ..mpi import gather

    return gather(given, dest_rank, [given.shape[0]] * comm.size, comm)


def send(x: Any, sr_tag: int, dest_rank: int, group: Any, group_back: Any) -> Tensor:
    """An array sent to another process, which receives it by `Receive` with the same tag; gives the array."""
    from ..mpi import send

    given = _given(x)
    send(given, dest_rank, sr_tag, _of_several(group, "Send"))
    return given


def receive(
    x: Any = None, *, sr_tag: int, src_rank: int, shape: Any, dtype: Any, group: Any, group_back: Any
) -> Tensor:
    """The array that another process sends by `Send` with the same tag."""
    from ..mpi import recv

    like = Tensor(np.empty(tuple(shape), real_dtype(dtype)))
    return recv(like, src_rank, sr_tag, _of_several(group, "Receive"))
