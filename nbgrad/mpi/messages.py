"""Messages between processes as values: their kinds, shapes, and what a derivative sends in their place.

In: the facts about a message. Out: `Message`, and its transpose. Called by message_nodes.py, which makes nodes of them,
and message_calls.py, which sends them.

Every message is a linear map from the data of all ranks together to the results of all ranks, where a rank may give or
get nothing. Its transpose, which takes the cotangents of all ranks to those of their data, is again a message. Maximum,
minimum and product are no linear maps: message_nodes.py makes their derivatives of other messages, or collectives.py
them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..graph.shapes import Shape

Layout = tuple[Shape, "np.dtype[np.generic]"]
NOTHING: Layout = ((), np.dtype(np.float64))
"""The layout of the result of a message that gives none: the number 0; of a request, its number."""
TRANSPOSES = {
    "allreduce": "allreduce",
    "reduce": "bcast",
    "bcast": "reduce",
    "gather": "scatter",
    "scatter": "gather",
    "allgather": "reduce_scatter",
    "reduce_scatter": "allgather",
    "alltoall": "alltoall",
    "scan": "scan",
    "send": "recv",
    "recv": "send",
    "sendrecv": "sendrecv",
    "isend": "wait_receive",
    "wait_receive": "isend",
    "irecv": "wait_send",
    "wait_send": "irecv",
    "replicated": "allreduce",
}
REQUESTS = frozenset("isend irecv wait_send wait_receive".split())
"""The kinds of messages that are begun, or waited for."""


def is_empty(layout: Layout | None) -> bool:
    """Whether there is no element, or no array."""
    return layout is None or 0 in layout[0]


def seen(result: Layout) -> Layout:
    """The layout of a node in place of a result."""
    return NOTHING if is_empty(result) else result


def elements(layout: Layout | None) -> int:
    """The number of elements; 0 for no array."""
    return 0 if layout is None else math.prod(layout[0])


def nbytes(layout: Layout | None) -> int:
    """Bytes of all elements."""
    return 0 if layout is None else elements(layout) * layout[1].itemsize


@dataclass(frozen=True)
class Message:
    """One call of MPI on this rank.

    Parameters
    ----------
    kind : str
        A key of `TRANSPOSES`, or "barrier".
    group : int
        The number of the communicator (communicators.py).
    data, result : Layout or None
        What the call reads and what it gives here; None for no data.
    operation : str
        Of a reduction: "sum", "max", "min" or "prod".
    root : int
        Of a collective that has one.
    to, source : int
        The ranks of a message between two; negative for none.
    tag : int
        Of a message between two.
    counts, given_counts : tuple of int
        The rows of each rank, where they differ: of all parts that are sent, and of those that are received.
    pending : Layout or None
        Of a message that is waited for: the array that is under way.
    line : str
        The user's line, for messages of errors.
    """

    kind: str
    group: int
    data: Layout | None
    result: Layout = NOTHING
    operation: str = ""
    root: int = 0
    to: int = -1
    source: int = -1
    tag: int = 0
    counts: tuple[int, ...] = ()
    given_counts: tuple[int, ...] = ()
    pending: Layout | None = None
    line: str = ""

    @property
    def linear(self) -> bool:
        """Whether its derivative is a message."""
        known = [layout[1].kind in "fc" for layout in (self.data, self.result, self.pending) if layout is not None]
        return all(known) and self.kind in TRANSPOSES and self.operation in ("", "sum")

    def transposed(self, back: int) -> Message:
        """The message that takes cotangents of results to those of the data; `back` is the group in reverse order."""
        data = None if self.kind in ("send", "wait_send") else self.result
        return replace(
            self,
            kind=TRANSPOSES[self.kind],
            group=back if self.kind == "scan" else self.group,
            data=data,
            result=NOTHING if self.data is None else self.data,
            operation="sum" if TRANSPOSES[self.kind] in ("allreduce", "reduce", "reduce_scatter", "scan") else "",
            to=self.source,
            source=self.to,
            counts=self.given_counts if self.kind == "alltoall" else self.counts,
            given_counts=self.counts if self.kind == "alltoall" else (),
            line=self.line if self.line.endswith(DERIVED) else f"{self.line}{DERIVED}",
        )

    def __str__(self) -> str:
        parts = [] if self.data is None else [f"{self.data[1]}{list(self.data[0])}"]
        parts += [self.operation] if self.operation else []
        parts += [f"root={self.root}"] if self.kind in ("bcast", "reduce", "gather", "scatter") else []
        parts += [f"dest={self.to}"] if self.kind in ("send", "sendrecv", "isend") else []
        parts += [f"source={self.source}"] if self.kind in ("recv", "sendrecv", "irecv") else []
        return f"{self.kind}({', '.join(parts)}){self.line}"


DERIVED = ", for a derivative"
"""The end of the line of a message that is sent for a derivative."""
