"""A rank that fails ends all ranks, with its traceback: the others would wait for its messages without end.

In: nothing. Out: an exception hook. Called by `nbgrad.mpi` when it is imported.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

Hook = Callable[[type[BaseException], BaseException, "TracebackType | None"], object]
PASSED_ON = 0.2
"""Seconds within which mpiexec passes on the output of a rank; what is left when ranks are ended is lost."""


def install() -> None:
    """Let exceptions that nothing catches end all processes, where MPI has several; once."""
    if not isinstance(sys.excepthook, _Abort):
        sys.excepthook = _Abort(sys.excepthook)


class _Abort:
    """Shows an exception as before, and ends all processes of MPI."""

    def __init__(self, shown: Hook) -> None:
        self.shown = shown

    def __call__(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        # MPI may not have begun, and need not begin now.
        mpi: Any = sys.modules.get("mpi4py.MPI")
        world: Any = None
        if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized() and mpi.COMM_WORLD.size > 1:
            world = mpi.COMM_WORLD
        try:
            if world is not None:
                sys.stderr.write(f"Rank {world.rank} of {world.size} has failed:\n")
            self.shown(kind, error, traceback)
        finally:
            if world is not None:
                sys.stdout.flush()
                sys.stderr.flush()
                time.sleep(PASSED_ON)
                world.Abort(1)
