"""A rank that fails ends all ranks, with its traceback: the others would wait for its messages without end.

In: nothing. Out: an exception hook. Called by `nbgrad.mpi` when it is imported.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType

from .communicators import library

Hook = Callable[[type[BaseException], BaseException, "TracebackType | None"], object]


def install() -> None:
    """Let uncaught exceptions end all processes, where there are several; once."""
    if library().COMM_WORLD.size > 1 and not isinstance(sys.excepthook, _Abort):
        sys.excepthook = _Abort(sys.excepthook)


class _Abort:
    """Shows an exception as before, and ends all processes of MPI."""

    def __init__(self, shown: Hook) -> None:
        self.shown = shown

    def __call__(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        mpi = library()
        try:
            print(f"Rank {mpi.COMM_WORLD.rank} of {mpi.COMM_WORLD.size} has failed:", file=sys.stderr)
            self.shown(kind, error, traceback)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            if mpi.Is_initialized() and not mpi.Is_finalized():
                # mpiexec drops what it has not passed on when ranks end.
                time.sleep(0.2)
                mpi.COMM_WORLD.Abort(1)
