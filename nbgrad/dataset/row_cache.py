"""MindSpore's `DatasetCache`: rows of files that were read once are kept in memory.

In: how much memory; then rows. Out: copies of them. Made by users, who give it to a dataset as `cache`; called by the
datasets of sources.py whenever they read a row. MindSpore's caches are servers; this one is the process's own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..nn.layer_arguments import flag, whole
from .row_values import Row


class DatasetCache:
    """Keeps the rows of datasets in memory, for the epochs after the first.

    Parameters
    ----------
    session_id : int
        MindSpore's number of a session; has no effect.
    size : int
        The most memory in megabytes, after which rows are read again every time; 0 for no limit.
    spilling : bool
        MindSpore's way to keep rows on disk; has no effect, because they are there already.
    hostname, port, num_connections, prefetch_size : optional
        MindSpore's, of its server; have no effect.

    Raises
    ------
    DtypeError, ArgumentError
        For numbers that cannot be.

    Examples
    --------
    >>> import nbgrad as nb
    >>> cache = nb.dataset.DatasetCache(1, size=100)
    >>> cache.get_stat()
    {'rows': 0, 'bytes': 0}
    """

    def __init__(
        self,
        session_id: int,
        size: int = 0,
        spilling: bool = False,
        hostname: str | None = None,
        port: int | None = None,
        num_connections: int | None = None,
        prefetch_size: int | None = None,
    ) -> None:
        del hostname, port, num_connections, prefetch_size
        self.session_id, self.spilling = whole(session_id, "session_id"), flag(spilling, "spilling")
        self.size = whole(size, "size")
        if self.size < 0:
            message = f"size must not be negative, but is {size}."
            raise ArgumentError(message)
        self._kept: dict[tuple[Any, int], Row] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def row(self, source: Any, index: int, read: Callable[[int], Row]) -> Row:
        """A row of a dataset, read now or earlier; the arrays are the caller's."""
        found = self._kept.get((source, index))
        if found is None:
            found = read(index)
            count = sum(np.asarray(one).nbytes for one in found)
            with self._lock:
                fits = not self.size or self._bytes + count <= self.size * 2**20
                if fits and (source, index) not in self._kept:
                    self._kept[source, index] = tuple([np.array(one) for one in found])
                    self._bytes += count
            return found
        return tuple([one.copy() for one in found])

    def get_stat(self) -> dict[str, int]:
        """How many rows are kept, and their bytes."""
        return {"rows": len(self._kept), "bytes": self._bytes}


def checked_cache(cache: Any) -> DatasetCache | None:
    """A DatasetCache, or None.

    Raises
    ------
    DtypeError
        For anything else.
    """
    if cache is not None and not isinstance(cache, DatasetCache):
        message = f"cache must be a DatasetCache, but got {type(cache).__name__}."
        raise DtypeError(message)
    return cache
