"""Arrays as users give them to functions of messages, and results as they get them back.

In: arrays, and ranks, tags and counts to check. Out: nodes, checked numbers, Tensors or ndarrays. Called by
collectives.py and point_to_point.py.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError, user_location
from ..graph.ir import Node, on_host
from ..graph.trace import current_trace
from ..record.as_node import as_node
from ..record.foreign_arrays import described
from ..record.tensor import Tensor
from ..runtime.evaluate import computed
from ..transforms.lent_arrays import kind_of
from .communicators import Group
from .message_nodes import sent
from .messages import Message

SENT = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split())


def given(value: Any, name: str) -> Node:
    """The node of an array that a function of this name sends.

    Raises
    ------
    DtypeError
        If it is no array of a dtype that MPI knows.
    """
    if kind_of(value) == "other" and not isinstance(value, list | tuple):
        message = f"{name} sends arrays and numbers, but got {described(value)}."
        raise DtypeError(message)
    node = as_node(value)
    if node.dtype.name not in SENT:
        way = "Convert it: x.astype(np.float32)."
        message = f"{name} got an array of dtype {node.dtype}, which MPI does not know. {way}"
        raise DtypeError(message)
    return node


def returned(node: Node, *values: Any) -> Any:
    """A result: a Tensor where something is recorded or where one of the values is one, otherwise an ndarray."""
    if current_trace() is not None or any(isinstance(value, Tensor) for value in values):
        return Tensor._of(node)
    found = np.array(on_host(computed(node)))
    return found if found.ndim else found[()]


def sent_from(message: Message, node: Node | None, *values: Any, like: Node | None = None) -> Any:
    """The result of a message, as `returned` gives it; the user's line becomes part of the message."""
    return returned(sent(message, node, like), *values)


def line() -> str:
    """The user's line, for messages of errors."""
    return user_location()


def checked_rank(value: Any, name: str, group: Group, none: bool = False) -> int:
    """A rank of a group; -1 for None, where that is allowed.

    Raises
    ------
    ArgumentError
        If there is no such rank.
    """
    if value is None and none:
        return -1
    rank = -1 if value is None or not hasattr(value, "__index__") else operator.index(value)
    if not 0 <= rank < group.size:
        message = f"{name} must be a rank from 0 to {group.size - 1}{' or None' if none else ''}, but got {value!r}."
        raise ArgumentError(message)
    return rank


def checked_tag(value: Any) -> int:
    """A tag of a message.

    Raises
    ------
    ArgumentError
        If it is not one that every MPI knows.
    """
    if not isinstance(value, int) or not 0 <= value <= 32767:
        message = f"tag must be an int from 0 to 32767, but got {value!r}."
        raise ArgumentError(message)
    return value


def checked_counts(counts: Any, name: str, group: Group, rows: int | None) -> tuple[int, ...]:
    """The numbers of rows of all ranks, of which there must be `rows` together.

    Raises
    ------
    ArgumentError, ShapeError
        If they are no such numbers.
    """
    try:
        found = tuple([operator.index(n) for n in counts])
    except TypeError:
        found = (-1,)
    if len(found) != group.size or min(found) < 0:
        message = f"{name} must be {group.size} numbers of rows, one for each rank, but got {counts!r}."
        raise ArgumentError(message)
    if rows is not None and sum(found) != rows:
        message = f"{name} are {list(found)}, {sum(found)} rows together, but the array has {rows}."
        raise ShapeError(message)
    return found


def rows_for_ranks(node: Node, name: str, group: Group) -> tuple[int, ...]:
    """The shape of the part of each rank, of an array with a row for each.

    Raises
    ------
    ShapeError
        If it has another number of rows.
    """
    if not node.shape or node.shape[0] != group.size:
        message = (
            f"{name} takes an array with a row for each of the {group.size} ranks, but got one of shape {node.shape}. "
            "Parts of several rows are given by counts."
        )
        raise ShapeError(message)
    return node.shape[1:]


def rows_of(node: Node, name: str) -> int:
    """The number of rows of an array.

    Raises
    ------
    ShapeError
        If it has no axis.
    """
    if not node.shape:
        message = f"{name} with counts takes an array with rows, but got a number."
        raise ShapeError(message)
    return node.shape[0]


def chosen(value: Any, known: Sequence[str], name: str) -> str:
    """One of several words.

    Raises
    ------
    ArgumentError
        If it is none of them.
    """
    if value not in known:
        message = f"{name} must be one of {', '.join(map(repr, known))}, but got {value!r}."
        raise ArgumentError(message)
    return value
