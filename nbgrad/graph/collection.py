"""Python's garbage collector, slowed down while many nodes are made.

In: a `with` block that records, builds or rewrites a graph. Out: nothing. Called by `recording` and by the passes over
graphs. Nodes refer to earlier nodes only, so a graph has no cycles to be found; but every few hundred new objects make
the collector look, and now and then it walks through all objects of the process, which costs more than the pass itself.
In such a block it looks at every hundred thousandth, so that cyclic garbage of a user's function is still found.
"""

from __future__ import annotations

import gc
from types import TracebackType

SELDOM = 100_000


class RareCollection:
    """A context manager: the collector waits for more new objects. A nested block changes nothing.

    Examples
    --------
    >>> import gc
    >>> usual = gc.get_threshold()
    >>> with RareCollection():
    ...     gc.get_threshold()[0]
    100000
    >>> gc.get_threshold() == usual
    True
    """

    __slots__ = ("usual",)

    def __enter__(self) -> None:
        self.usual = gc.get_threshold()
        # 0 stands for never. A block that finds the limit raised leaves it to the other block, or thread, to lower it.
        if 0 < self.usual[0] < SELDOM:
            gc.set_threshold(SELDOM, *self.usual[1:])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if 0 < self.usual[0] < SELDOM:
            gc.set_threshold(*self.usual)
