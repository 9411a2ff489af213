"""Python's garbage collector, slowed down while many nodes are made.

In: a `with` block that records, builds or rewrites a graph. Out: nothing. Called by `recording` and by the passes over
graphs. Nodes refer to earlier nodes only, so a graph has no cycles to be found; but every few hundred new objects make
the collector look, and now and then it walks through all objects of the process, which costs more than the pass itself.
In such a block it looks at every hundred thousandth, so that cyclic garbage of a user's function is still found.

The limit belongs to the process. The first block of any thread raises it and the last one lowers it, unless other code
has set another one meanwhile.
"""

from __future__ import annotations

import gc
import os
import threading
from types import TracebackType

SELDOM = 100_000

_open: dict[int, int] = {}
"""The open blocks, each with its thread. Adding to a dict, taking from it and asking whether it is empty are one step
each, so that no lock is needed: two threads at the same time do the same."""
_usual = gc.get_threshold()


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

    __slots__ = ()

    def __enter__(self) -> None:
        global _usual
        _open[id(self)] = threading.get_ident()
        now = gc.get_threshold()
        # 0 stands for never.
        if 0 < now[0] < SELDOM:
            _usual = now
            gc.set_threshold(SELDOM, *now[1:])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _open.pop(id(self), None)
        if not _open:
            _restore()


def _restore() -> None:
    if gc.get_threshold() == (SELDOM, *_usual[1:]):
        gc.set_threshold(*_usual)


def _after_fork_in_child() -> None:
    """The blocks of other threads never end here."""
    own = threading.get_ident()
    for block, thread in list(_open.items()):
        if thread != own:
            del _open[block]
    if not _open:
        _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
