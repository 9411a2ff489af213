"""Python's garbage collector, held off while many nodes are made.

In: a `with` block that builds or rewrites a graph. Out: nothing. Called by the passes over graphs. Nodes refer to
earlier nodes only, so a graph has no cycles to be found; but each few hundred new objects make the collector look, and
now and then it walks through all objects of the process, which costs more than the pass itself. It resumes, and looks
at what was made meanwhile, when the block ends. A nested block, or one in another thread, changes nothing.
"""

from __future__ import annotations

import gc
from types import TracebackType


class NoCollection:
    """A context manager: no garbage collection of this process starts by itself inside.

    Examples
    --------
    >>> import gc
    >>> with NoCollection():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """

    __slots__ = ("resume",)

    def __enter__(self) -> None:
        self.resume = gc.isenabled()
        if self.resume:
            gc.disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.resume:
            gc.enable()
