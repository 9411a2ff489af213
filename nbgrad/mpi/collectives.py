"""Messages that all ranks of a communicator take part in: sums, broadcasts, parts gathered and spread.

In: arrays, and communicators of mpi4py. Out: arrays; recorded values while something is being recorded. Called by
users.

All ranks must call the same functions in the same order, in gradients too, which send the messages of their backward
pass in the reverse order. A derivative is that of the sum over all ranks of what each differentiates.
"""

from __future__ import annotations

from typing import Any

from ..errors import DtypeError, ShapeError
from ..graph.builders import reduce as reduced
from ..graph.builders import reshape, slice_axes
from ..graph.ir import Node, zeros
from .arrays_given import (
    checked_counts,
    checked_rank,
    chosen,
    given,
    line,
    returned,
    rows_for_ranks,
    rows_of,
    sent_from,
)
from .communicators import group_of, reverse_of
from .message_nodes import sent
from .messages import Message

OPERATIONS = ("sum", "max", "min", "prod")


def _reducible(x: Any, op: Any, name: str) -> Node:
    """The node of an array to reduce.

    Raises
    ------
    ArgumentError, DtypeError
        If the operation is unknown, or not one of the array's numbers.
    """
    chosen(op, OPERATIONS, f"op of {name}")
    node = given(x, name)
    if node.dtype.kind == "b" or (node.dtype.kind == "c" and op in ("max", "min")):
        message = f"{name} has no {op} of {node.dtype}. " + (
            "Convert it: x.astype(np.int64)." if node.dtype.kind == "b" else "Take that of np.abs(x)."
        )
        raise DtypeError(message)
    return node


def allreduce(x: Any, op: str = "sum", comm: Any = None) -> Any:
    """The sum, maximum, minimum or product over all ranks, on all ranks.

    Parameters
    ----------
    x : array
        Of one shape and dtype on all ranks.
    op : {"sum", "max", "min", "prod"}
    comm : mpi4py.MPI.Comm, optional
        By default all processes.

    Returns
    -------
    array
        Of the shape and dtype of `x`, equal on all ranks.

    Raises
    ------
    ArgumentError, DtypeError
        If the operation, the dtype or the communicator is none for it.

    Notes
    -----
    The cotangent of `x` is the sum over all ranks of the cotangents of the results; for a maximum or minimum, on the
    first rank that has it, and zero on the others. The product gathers the parts of all ranks: it takes the memory of
    `x` once for each.

    Examples
    --------
    On one rank:

    >>> import numpy as np, nbgrad as nb
    >>> from nbgrad import mpi
    >>> mpi.allreduce(np.array([1.0, 2.0]))
    array([1., 2.])
    >>> nb.grad(lambda x: mpi.allreduce(x**2))(3.0)
    np.float64(6.0)
    """
    node, group = _reducible(x, op, "allreduce"), group_of(comm)
    if op == "prod" and node.dtype.kind in "fc":
        return returned(_over_ranks(node, op, group.size, comm), x)
    layout = (node.shape, node.dtype)
    return sent_from(Message("allreduce", group.number, layout, layout, op, line=line()), node, x)


def _over_ranks(node: Node, op: str, count: int, comm: Any) -> Node:
    """A reduction of the parts of the first ranks."""
    group = group_of(comm)
    result = ((group.size, *node.shape), node.dtype)
    every = sent(Message("allgather", group.number, (node.shape, node.dtype), result, line=line()), node)
    first = slice_axes(every, [(0, count, 1), *[(0, n, 1) for n in node.shape]])
    return reduced(op, first, (0,))


def reduce(x: Any, op: str = "sum", root: int = 0, comm: Any = None) -> Any:
    """The sum, maximum, minimum or product over all ranks, on one rank; zeros on the others.

    Parameters
    ----------
    x : array
        Of one shape and dtype on all ranks.
    op : {"sum", "max", "min", "prod"}
    root : int
        The rank that gets it.
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    array
        Of the shape and dtype of `x`. So the sum over all ranks of what they get is the result, once: a loss of all
        ranks that is reduced is differentiated once.

    Raises
    ------
    ArgumentError, DtypeError
        As `allreduce`, and for a root that is no rank.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> from nbgrad import mpi
    >>> nb.grad(lambda x: mpi.reduce(np.sum(x**2)))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    node, group = _reducible(x, op, "reduce"), group_of(comm)
    root = checked_rank(root, "root", group)
    layout = (node.shape, node.dtype)
    if op == "sum":
        return sent_from(Message("reduce", group.number, layout, layout, op, root, line=line()), node, x)
    if op == "prod" and node.dtype.kind in "fc":
        found = _over_ranks(node, op, group.size, comm)
    else:
        found = sent(Message("allreduce", group.number, layout, layout, op, line=line()), node)
    return returned(found if group.rank == root else zeros(*layout), x)


def bcast(x: Any, root: int = 0, comm: Any = None) -> Any:
    """The array of one rank, on all ranks.

    Parameters
    ----------
    x : array
        Of one shape and dtype on all ranks; only the root's values count.
    root : int
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    array
        The root's.

    Raises
    ------
    ArgumentError, DtypeError
        For arrays and ranks that do not fit.

    Notes
    -----
    The cotangent of the root's `x` is the sum of those of all results; that of the other ranks' is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.bcast(np.arange(3.0))
    array([0., 1., 2.])
    """
    node, group = given(x, "bcast"), group_of(comm)
    layout = (node.shape, node.dtype)
    root = checked_rank(root, "root", group)
    return sent_from(Message("bcast", group.number, layout, layout, root=root, line=line()), node, x)


def gather(x: Any, root: int = 0, counts: Any = None, comm: Any = None) -> Any:
    """The arrays of all ranks, on one rank.

    Parameters
    ----------
    x : array
        Of one shape on all ranks; with `counts`, of as many rows as they say.
    root : int
    counts : sequence of int, optional
        The rows of each rank, on all ranks the same.
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    array
        On the root of shape `(ranks, *x.shape)`, or with `counts` `(sum(counts), *x.shape[1:])`; on the others with no
        rows: shape (0, ...).

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arrays, counts and ranks that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.gather(np.array([1.0, 2.0]))
    array([[1., 2.]])
    """
    node, group = given(x, "gather"), group_of(comm)
    root = checked_rank(root, "root", group)
    known, shape = _gathered(node, counts, "gather", group)
    result = (shape if group.rank == root else (0, *shape[1:]), node.dtype)
    data = (node.shape, node.dtype)
    message = Message("gather", group.number, data, result, root=root, counts=known, line=line())
    return sent_from(message, node, x)


def _gathered(node: Node, counts: Any, name: str, group: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The checked counts, and the shape of the parts of all ranks together."""
    if counts is None:
        return (), (group.size, *node.shape)
    known = checked_counts(counts, "counts", group, None)
    if rows_of(node, name) != known[group.rank]:
        message = f"{name}: rank {group.rank} gives {node.shape[0]} rows, but counts say {known[group.rank]}."
        raise ShapeError(message)
    return known, (sum(known), *node.shape[1:])


def allgather(x: Any, counts: Any = None, comm: Any = None) -> Any:
    """The arrays of all ranks, on all ranks.

    Parameters
    ----------
    x : array
        Of one shape on all ranks; with `counts`, of as many rows as they say.
    counts : sequence of int, optional
        The rows of each rank, on all ranks the same.
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    array
        Of shape `(ranks, *x.shape)`, or with `counts` `(sum(counts), *x.shape[1:])`.

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arrays and counts that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.allgather(np.array([1.0, 2.0]), counts=[2])
    array([1., 2.])
    """
    node, group = given(x, "allgather"), group_of(comm)
    known, shape = _gathered(node, counts, "allgather", group)
    data, result = (node.shape, node.dtype), (shape, node.dtype)
    return sent_from(Message("allgather", group.number, data, result, counts=known, line=line()), node, x)


def scatter(x: Any, root: int = 0, counts: Any = None, comm: Any = None) -> Any:
    """A part of the root's array for each rank.

    Parameters
    ----------
    x : array
        On the root a row for each rank; with `counts`, as many rows as they say together. On the others an array of the
        same dtype and the same axes after the first, of which only these count: np.empty((0, 5)), say.
    root : int
    counts : sequence of int, optional
        The rows of each rank, on all ranks the same.
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    array
        Of shape x.shape[1:]; with `counts` `(counts[rank], *x.shape[1:])`.

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arrays, counts and ranks that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.scatter(np.array([[1.0, 2.0]]))
    array([1., 2.])
    """
    node, group = given(x, "scatter"), group_of(comm)
    root = checked_rank(root, "root", group)
    rows = rows_of(node, "scatter")
    if counts is None:
        known, shape = (), node.shape[1:]
        if group.rank == root:
            rows_for_ranks(node, "scatter", group)
    else:
        known = checked_counts(counts, "counts", group, rows if group.rank == root else None)
        shape = (known[group.rank], *node.shape[1:])
    data, result = (node.shape, node.dtype), (shape, node.dtype)
    return sent_from(Message("scatter", group.number, data, result, root=root, counts=known, line=line()), node, x)


def alltoall(x: Any, counts: Any = None, received: Any = None, comm: Any = None) -> Any:
    """A part of each rank's array for each rank.

    Parameters
    ----------
    x : array
        A row for each rank; with `counts`, as many rows for each as they say.
    counts, received : sequence of int, optional
        The rows for each rank, and those that come from each: both or neither.
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    array
        The rows that come from each rank: of the shape of `x`, or `(sum(received), *x.shape[1:])`.

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arrays and counts that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.alltoall(np.array([[1.0, 2.0]]))
    array([[1., 2.]])
    """
    node, group = given(x, "alltoall"), group_of(comm)
    data, result, there, back = (node.shape, node.dtype), (node.shape, node.dtype), (), ()
    if counts is None and received is None:
        rows_for_ranks(node, "alltoall", group)
    else:
        there = checked_counts(counts, "counts", group, rows_of(node, "alltoall"))
        back = checked_counts(received, "received", group, None)
        result = ((sum(back), *node.shape[1:]), node.dtype)
    message = Message("alltoall", group.number, data, result, counts=there, given_counts=back, line=line())
    return sent_from(message, node, x)


def reduce_scatter(x: Any, op: str = "sum", counts: Any = None, comm: Any = None) -> Any:
    """The sum, maximum, minimum or product over all ranks, of which each rank gets a part.

    Parameters
    ----------
    x : array
        Of one shape and dtype on all ranks: a row for each rank; with `counts`, as many rows as they say together.
    op : {"sum", "max", "min", "prod"}
    counts : sequence of int, optional
        The rows of each rank, on all ranks the same.
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    array
        Of shape x.shape[1:]; with `counts` `(counts[rank], *x.shape[1:])`.

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arrays and counts that do not fit.

    Notes
    -----
    The cotangent of `x` is the cotangents of all results, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.reduce_scatter(np.array([[1.0, 2.0]]))
    array([1., 2.])
    """
    node, group = _reducible(x, op, "reduce_scatter"), group_of(comm)
    if counts is None:
        known, shape = (), rows_for_ranks(node, "reduce_scatter", group)
    else:
        known = checked_counts(counts, "counts", group, rows_of(node, "reduce_scatter"))
        shape = (known[group.rank], *node.shape[1:])
    data, result = (node.shape, node.dtype), (shape, node.dtype)
    if op == "sum":
        message = Message("reduce_scatter", group.number, data, result, op, counts=known, line=line())
        return sent_from(message, node, x)
    own, every = len(known) and known[group.rank], (group.size * (shape[0] if known else 1), *node.shape[1:])
    received = (own,) * len(known)
    message = Message(
        "alltoall", group.number, data, (every, node.dtype), counts=known, given_counts=received, line=line()
    )
    parts = reshape(sent(message, node), (group.size, *shape))
    return returned(reduced(op, parts, (0,)), x)


def scan(x: Any, op: str = "sum", comm: Any = None) -> Any:
    """The sum, maximum, minimum or product over this rank and all before it.

    Parameters
    ----------
    x : array
        Of one shape and dtype on all ranks.
    op : {"sum", "max", "min", "prod"}
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    array
        Of the shape and dtype of `x`.

    Raises
    ------
    ArgumentError, DtypeError
        As `allreduce`.

    Notes
    -----
    The cotangent of `x` is the sum of those of this rank's result and of the results after it. All but sums gather the
    parts of all ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.scan(np.array([1.0, 2.0]))
    array([1., 2.])
    """
    node, group = _reducible(x, op, "scan"), group_of(comm)
    if op != "sum" and node.dtype.kind in "fc":
        return returned(_over_ranks(node, op, group.rank + 1, comm), x)
    reverse_of(group)
    layout = (node.shape, node.dtype)
    return sent_from(Message("scan", group.number, layout, layout, op, line=line()), node, x)


def barrier(comm: Any = None) -> None:
    """Wait until all ranks are here; in a compiled program, each time it runs.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional

    Raises
    ------
    ArgumentError
        If it is no communicator.

    Examples
    --------
    >>> from nbgrad import mpi
    >>> mpi.barrier()
    """
    sent(Message("barrier", group_of(comm).number, None, line=line()), None)


def replicated(x: Any, comm: Any = None) -> Any:
    """An array that is the same on all ranks, as one variable: its gradient is the sum over all of them.

    Parameters
    ----------
    x : array
        Equal on all ranks, such as parameters that all share.
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    array
        `x`. Nothing is sent; in a backward pass, the cotangents of all ranks are summed, once for each call of this
        function.

    Raises
    ------
    ArgumentError, DtypeError
        For arrays and communicators that do not fit.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> from nbgrad import mpi
    >>> data = np.array([1.0, 2.0])  # another part on each rank
    >>> nb.grad(lambda w: np.sum((mpi.replicated(w) - data) ** 2))(0.0)
    np.float64(-6.0)
    """
    node, group = given(x, "replicated"), group_of(comm)
    layout = (node.shape, node.dtype)
    return sent_from(Message("replicated", group.number, layout, layout, line=line()), node, x)
