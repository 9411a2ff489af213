"""Messages from one rank to another.

In: arrays, ranks and tags. Out: arrays; recorded values while something is being recorded; requests of messages under
way. Called by users. The derivative of a message is a message back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..errors import ArgumentError
from ..graph.ir import Node
from .arrays_given import checked_rank, checked_tag, given, line, returned, sent_from
from .communicators import group_of
from .message_nodes import sent
from .messages import NOTHING, Message


def send(x: Any, dest: int | None, tag: int = 0, comm: Any = None) -> None:
    """Send an array to a rank, which must call `recv`.

    Parameters
    ----------
    x : array
    dest : int or None
        None sends nothing, for ranks at the end of a row.
    tag : int
        That of the `recv`.
    comm : mpi4py.MPI.Comm, optional

    Raises
    ------
    ArgumentError, DtypeError
        For arrays and ranks that do not fit.

    Notes
    -----
    It may wait until the other rank receives. In a backward pass it receives the cotangent of `x` from there.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.send(np.ones(3), None)
    """
    node, group = given(x, "send"), group_of(comm)
    to = checked_rank(dest, "dest", group, none=True)
    data = (node.shape, node.dtype)
    sent(Message("send", group.number, data, to=to, tag=checked_tag(tag), line=line()), node)


def recv(like: Any, source: int | None, tag: int = 0, comm: Any = None) -> Any:
    """Receive an array from a rank, which must call `send`.

    Parameters
    ----------
    like : array
        Of the shape and dtype of the message; its values do not count.
    source : int or None
        None receives nothing and gives zeros, for ranks at the end of a row.
    tag : int
        That of the `send`.
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    array

    Raises
    ------
    ArgumentError, DtypeError
        For arrays and ranks that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.recv(np.empty(3), None)
    array([0., 0., 0.])
    """
    node, group = given(like, "recv"), group_of(comm)
    place = checked_rank(source, "source", group, none=True)
    result = (node.shape, node.dtype)
    message = Message("recv", group.number, None, result, source=place, tag=checked_tag(tag), line=line())
    return sent_from(message, None, like, like=node)


def sendrecv(x: Any, dest: int | None, source: int | None, like: Any = None, tag: int = 0, comm: Any = None) -> Any:
    """Send an array to one rank and receive one from another, or the same, at once.

    Parameters
    ----------
    x : array
        What is sent.
    dest, source : int or None
        None for none: nothing is sent, or zeros are received.
    like : array, optional
        Of the shape and dtype of what is received; by default that of `x`.
    tag : int
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    array
        What was received.

    Raises
    ------
    ArgumentError, DtypeError
        For arrays and ranks that do not fit.

    Notes
    -----
    The cotangent of the result goes back to `source`, and that of `x` comes from `dest`.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.sendrecv(np.arange(3.0), 0, 0)
    array([0., 1., 2.])
    """
    node, group = given(x, "sendrecv"), group_of(comm)
    there = node if like is None else given(like, "sendrecv")
    to, place = (checked_rank(rank, name, group, none=True) for rank, name in ((dest, "dest"), (source, "source")))
    data, result = (node.shape, node.dtype), (there.shape, there.dtype)
    known = checked_tag(tag)
    message = Message("sendrecv", group.number, data, result, to=to, source=place, tag=known, line=line())
    return sent_from(message, node, x, like)


@dataclass
class Request:
    """A message under way, for `wait`. Made by `isend` and `irecv`."""

    _message: Message
    _number: Node
    _like: Any
    _done: bool = False

    def wait(self) -> Any:
        """Wait for it, by `nbgrad.mpi.wait`."""
        return wait(self)


def isend(x: Any, dest: int | None, tag: int = 0, comm: Any = None) -> Request:
    """Begin to send an array, of which a copy is kept until it is sent.

    Parameters
    ----------
    x : array
    dest : int or None
    tag : int
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    Request
        To be waited for, once.

    Raises
    ------
    ArgumentError, DtypeError
        For arrays and ranks that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> there, here = mpi.irecv(np.empty(2), 0), mpi.isend(np.ones(2), 0)
    >>> mpi.wait(here)
    >>> mpi.wait(there)
    array([1., 1.])
    """
    node, group = given(x, "isend"), group_of(comm)
    data = (node.shape, node.dtype)
    to = checked_rank(dest, "dest", group, none=True)
    message = Message("isend", group.number, data, to=to, tag=checked_tag(tag), pending=data, line=line())
    return Request(message, sent(message, node), x)


def irecv(like: Any, source: int | None, tag: int = 0, comm: Any = None) -> Request:
    """Begin to receive an array.

    Parameters
    ----------
    like : array
        Of the shape and dtype of the message.
    source : int or None
    tag : int
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    Request
        To be waited for, once: `wait` gives the array.

    Raises
    ------
    ArgumentError, DtypeError
        For arrays and ranks that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.wait(mpi.irecv(np.empty(2), None))
    array([0., 0.])
    """
    node, group = given(like, "irecv"), group_of(comm)
    layout = (node.shape, node.dtype)
    place = checked_rank(source, "source", group, none=True)
    message = Message("irecv", group.number, None, source=place, tag=checked_tag(tag), pending=layout, line=line())
    return Request(message, sent(message, None, node), like)


def wait(request: Request) -> Any:
    """Wait until a message is sent, or received.

    Parameters
    ----------
    request : Request

    Returns
    -------
    array or None
        What was received; None for what was sent.

    Raises
    ------
    ArgumentError
        If it is no request, or was waited for before.

    Notes
    -----
    In a backward pass, `wait` begins the message back, and `isend` or `irecv` waits for it.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.wait(mpi.isend(np.ones(2), None))
    """
    if not isinstance(request, Request):
        message = f"wait takes what isend or irecv gives, but got {type(request).__name__}."
        raise ArgumentError(message)
    if request._done:
        message = "This request was waited for before. A message is waited for once."
        raise ArgumentError(message)
    request._done = True
    begun = request._message
    receives = begun.kind == "irecv"
    assert begun.pending is not None
    message = replace(
        begun,
        kind="wait_receive" if receives else "wait_send",
        data=NOTHING,
        result=begun.pending if receives else NOTHING,
        line=line(),
    )
    found = sent(message, request._number)
    return returned(found, request._like) if receives else None
