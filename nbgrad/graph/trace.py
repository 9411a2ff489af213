"""Recording: which transform is recording now, and what it has learnt.

In: transforms open a `Trace`. Out: `current_trace()` for whoever needs to know. This ContextVar is the only mutable
state of the recorder; threads and async tasks each have their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from ..errors import NbgradError
from .ir import Node, topological


class Trace:
    """One recording: its `arguments` are the nodes that stand for what the recorded function was called with.

    `guards` is None unless `jit` records: then each guard is (node, value it had), and `checks` are conditions that
    must hold in every call. A recording inside another shares the guards of the outer one.
    """

    __slots__ = ("arguments", "checks", "guards", "parent")

    def __init__(self, parent: Trace | None, arguments: Iterable[Node], jit: bool) -> None:
        self.parent = parent
        self.arguments = frozenset(arguments)
        self.guards: list[tuple[Node, np.ndarray]] | None = [] if jit else None
        self.checks: list[tuple[Node, str]] = []
        if parent is not None and not jit:
            self.guards, self.checks = parent.guards, parent.checks

    def owns(self, node: Node) -> bool:
        """Whether a node's value depends on the arguments."""
        return any(source in self.arguments for source in topological([node]))

    def varies(self, node: Node) -> bool:
        """Whether a value differs between calls of what `jit` records."""
        if self.guards is None or not node.traced:
            return False
        return any(source.name == "input" for source in topological([node]))


_current: ContextVar[Trace | None] = ContextVar("nbgrad_trace", default=None)


def current_trace() -> Trace | None:
    """The innermost recording, or None."""
    return _current.get()


@contextmanager
def recording(arguments: Iterable[Node] = (), jit: bool = False) -> Iterator[Trace]:
    """Open a recording for the time of a `with` block."""
    trace = Trace(_current.get(), arguments, jit)
    token = _current.set(trace)
    try:
        yield trace
    except ValueError as error:
        # NumPy hides why an element could not be stored behind "setting an array element with a sequence".
        if isinstance(error.__cause__, NbgradError):
            raise error.__cause__ from None
        raise
    finally:
        _current.reset(token)
