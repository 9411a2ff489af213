"""Recording: which transform is recording now, and what it has learnt.

In: transforms open a `Trace`. Out: `current_trace()` for whoever needs to know. This ContextVar is the only mutable state of
the recorder; threads and async tasks each have their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from .ir import Node, topological


class Trace:
    """One recording. `guards` is None unless `jit` records: then each guard is (node, value it had)."""

    __slots__ = ("arguments", "checks", "guards", "parent")

    def __init__(self, parent: Trace | None, jit: bool) -> None:
        inherits = parent is not None and parent.guards is not None
        self.parent = parent
        self.arguments: set[Node] = parent.arguments if parent is not None and inherits else set()
        self.guards: list[tuple[Node, np.ndarray]] | None = (
            parent.guards if parent is not None and inherits else [] if jit else None
        )
        self.checks: list[tuple[Node, str]] = parent.checks if parent is not None and inherits else []

    def depends(self, node: Node) -> bool:
        """Whether a node's value depends on an argument of the function that jit records."""
        return any(source in self.arguments for source in topological([node]))


_current: ContextVar[Trace | None] = ContextVar("nbgrad_trace", default=None)


def current_trace() -> Trace | None:
    """The innermost recording, or None."""
    return _current.get()


@contextmanager
def recording(jit: bool = False) -> Iterator[Trace]:
    """Open a recording for the time of a `with` block; an inner recording shares the guards of the outer one."""
    trace = Trace(_current.get(), jit)
    token = _current.set(trace)
    try:
        yield trace
    finally:
        _current.reset(token)
