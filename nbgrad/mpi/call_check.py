"""Ranks that make different calls: an error with the lines of both, in place of a wait without end.

In: each message before it is sent, and requests that are waited for. Out: nothing, or an error. Called by
message_calls.py. Off by default: `check_calls` switches it on.

Before each collective, all ranks of its communicator send each other what they are about to do, and compare.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, NbgradError
from .communicators import Group, groups, library
from .messages import Message, elements

BETWEEN_TWO = frozenset("send recv sendrecv isend irecv wait_send wait_receive".split())
SAME_SIZES = frozenset(["allreduce", "reduce", "bcast", "scan"])
PAUSE = 1e-4
"""Seconds between two looks at messages under way."""
LONGEST = 400
"""Bytes of a call in words."""


class _Check:
    """Whether calls are compared, and how long a rank waits for the others."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds: float | None = None


_check = _Check()


def check_calls(on: bool = True, seconds: float = 5.0) -> None:
    """Compare the calls of all ranks before they are made, to find what would wait forever.

    Parameters
    ----------
    on : bool
        Whether to compare from now on. Programs that were compiled before keep what they do: switch it on at the start.
    seconds : float
        How long a rank waits for the others before it raises.

    Raises
    ------
    ArgumentError
        If `seconds` is not positive. From then on, messages raise NbgradError where ranks make different calls, with
        the lines of both, or where one makes none.

    Notes
    -----
    Every collective costs a message from each rank to each other one.

    Examples
    --------
    >>> from nbgrad import mpi
    >>> mpi.check_calls()
    >>> mpi.check_calls(False)
    """
    if not seconds > 0:
        message = f"check_calls waits for a positive number of seconds, but got {seconds!r}."
        raise ArgumentError(message)
    _check.seconds = seconds if on else None


def is_on() -> bool:
    """Whether calls are compared."""
    return _check.seconds is not None


def before(message: Message, engine: str = "") -> None:
    """Compare a call with those of the other ranks; the engine is named if it is not MPI.

    Raises
    ------
    NbgradError
        If they differ, or a rank makes none in time.
    """
    if not is_on() or message.kind in BETWEEN_TWO:
        return
    mpi, group = library(), groups[message.group]
    tag = group.comm.Get_attr(mpi.TAG_UB) - 1
    own, others = np.zeros(LONGEST, np.uint8), np.zeros((group.size, LONGEST), np.uint8)
    by = f", by {engine}" if engine else ""
    text = f"{_key(message)}{by}\n{message}{by}".encode()[:LONGEST]
    own[: len(text)] = np.frombuffer(text, np.uint8)
    ranks = [rank for rank in range(group.size) if rank != group.rank]
    requests = [group.comm.Irecv(others[rank], rank, tag) for rank in ranks]
    requests += [group.comm.Isend(own, rank, tag) for rank in ranks]
    late = _unfinished(requests, [None] * len(requests))
    for rank, request in zip(ranks, requests, strict=False):
        if request in late:
            message_text = (
                f"Rank {group.rank} has waited {_check.seconds:g} seconds in {message} for rank {rank}, which has made "
                "no such call. All ranks of a communicator must make the same calls in the same order."
            )
            raise NbgradError(message_text)
        key, _, shown = bytes(others[rank]).rstrip(b"\0").decode(errors="replace").partition("\n")
        if key != f"{_key(message)}{by}":
            message_text = (
                f"Rank {group.rank} makes the call {message}{by}, but rank {rank} makes {shown}. All ranks of a "
                "communicator must make the same calls in the same order."
            )
            raise NbgradError(message_text)


def _key(message: Message) -> str:
    """All that must be equal on all ranks."""
    layout = message.data or message.result
    size = elements(layout) if message.kind in SAME_SIZES else ""
    return f"{message.kind} {message.operation} {message.root} {layout[1]} {size}"


def finish(message: Message, requests: Sequence[Any]) -> list[Any]:
    """Wait for requests, and give their statuses.

    Raises
    ------
    NbgradError
        If calls are compared and one is not done in time.
    """
    statuses = [library().Status() for _ in requests]
    if not is_on():
        for request, status in zip(requests, statuses, strict=True):
            request.Wait(status)
    elif _unfinished(requests, statuses):
        group: Group = groups[message.group]
        message_text = (
            f"Rank {group.rank} has waited {_check.seconds:g} seconds in {message}, for which the other rank has made "
            "no call. Every message needs a send and a receive with the same tag."
        )
        raise NbgradError(message_text)
    return statuses


def _unfinished(requests: Sequence[Any], statuses: Sequence[Any]) -> list[Any]:
    """The requests that are not done in time; those that are fill their statuses."""
    assert _check.seconds is not None
    end = time.monotonic() + _check.seconds
    left = list(zip(requests, statuses, strict=True))
    while left:
        left = [(request, status) for request, status in left if not request.Test(status)]
        if left and time.monotonic() > end:
            return [request for request, _ in left]
        time.sleep(PAUSE)
    return []
