"""Parts of a call that succeed on all ranks, or fail on all.

In: a communicator, and a block of code. Out: nothing, or an error on all ranks. Called by checkpoints.py, and by
training in parallel (nn/data_parallel.py).
"""

from __future__ import annotations

from typing import Any

from ..errors import NbgradError


class Agreement:
    """A `with` block at whose end all ranks tell each other whether they have failed: none waits for one that has.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    kind : type
        The error on ranks that have not failed themselves.
    outcome : str
        What follows from it, in its message.
    """

    def __init__(self, comm: Any, kind: type[NbgradError], outcome: str) -> None:
        self.comm, self.kind, self.outcome = comm, kind, outcome

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None and not isinstance(error, Exception):
            return
        text = None
        if error is not None:
            text = error.args[0] if isinstance(error, NbgradError) and error.args else f"{kind.__name__}: {error}"
        texts = self.comm.allgather(text)
        failed = next((rank for rank, text in enumerate(texts) if text is not None), None)
        if error is None and failed is not None:
            message = f"Rank {failed} has failed, so that {self.outcome}: {texts[failed]}".removesuffix(".")
            raise self.kind(message)
