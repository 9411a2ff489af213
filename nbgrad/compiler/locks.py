"""Locks that survive a fork.

In: nothing. Out: `ForkSafeLock`. Used wherever threads share a table of compiled things. A child process gets a copy of
every lock as it is, and the threads that held some of them are gone: an ordinary lock could stay closed for ever.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager


class ForkSafeLock:
    """A re-entrant lock that is open in a forked child, whoever held it in the parent."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock for the time of a `with` block."""
        # The same object is released, even if a fork inside the block has put another in its place.
        lock = self._lock
        with lock:
            yield

    def renew(self) -> None:
        """Forget who holds the lock."""
        self._lock = threading.RLock()


_locks: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
