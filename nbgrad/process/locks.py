"""Locks that survive a fork, and forks that wait until the compiler is at rest.

In: nothing. Out: `ForkSafeLock`, used wherever threads share a table, and `building`, held while LLVM and Numba work.
A child process gets a copy of every lock as it is, and the threads that held some of them are gone: an ordinary lock
could stay closed for ever. Our own locks are open in a child. What LLVM, Numba or an import had begun cannot be
repaired there, so a fork waits until they have finished, and no import begins meanwhile: some milliseconds, and never
longer than `LONGEST_WAIT`.
"""

from __future__ import annotations

import _imp
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

LONGEST_WAIT = 30.0
"""Seconds. The thread that builds may itself wait for the one that forks."""


class ForkSafeLock:
    """A re-entrant lock that is open in a forked child, whichever thread held it in the parent."""

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

    def acquire(self, timeout: float = -1) -> Any:
        """Take the lock: the object to release, or None if that took longer than `timeout` seconds (0: do not wait)."""
        lock = self._lock
        return lock if lock.acquire(timeout != 0, timeout or -1) else None

    def renew(self) -> None:
        """Forget the lock's holder."""
        self._lock = threading.RLock()


_locks: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()

building = ForkSafeLock()
"""Held while code is compiled, loaded or unloaded, by LLVM or Numba. A fork waits for it."""


# ----- Forks -----

_OURS = frozenset(["nbgrad", "numpy", "scipy", "numba", "llvmlite", "optree", "opt_einsum"])
_releases: list[Callable[[], object]] = []
"""These give back the locks that are held over the fork."""


def _before_fork() -> None:
    """Wait until no other thread builds, or imports modules that we need, and keep others from beginning to."""
    end = time.monotonic() + LONGEST_WAIT
    while True:
        _hold(end)
        if not _imports_of_others() or time.monotonic() >= end:
            return
        # The thread that imports may want these locks.
        _release()
        time.sleep(1e-3)


def _hold(end: float) -> None:
    building_lock = building.acquire(max(0.0, end - time.monotonic()))
    if building_lock is not None:
        _releases.append(building_lock.release)
    # A library's own lock, which Numba holds too when users compile.
    llvmlite = sys.modules.get("llvmlite.binding.ffi")
    theirs = getattr(getattr(getattr(llvmlite, "lib", None), "_lock", None), "_lock", None)
    if theirs is not None and theirs.acquire(timeout=max(0.0, end - time.monotonic())):
        _releases.append(theirs.release)
    # Python's own, without which no thread finds the lock of a module, so that no import begins until the fork.
    _imp.acquire_lock()
    _releases.append(_imp.release_lock)


def _imports_of_others() -> bool:
    """Whether another thread imports a module that we need, or is about to: it has found the module's lock."""
    locks: dict[str, Any] = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    me = threading.get_ident()
    for name, reference in list(locks.items()):
        lock = reference()
        package = name.partition(".")[0]
        if lock is not None and lock.owner != me and (package in _OURS or package in sys.stdlib_module_names):
            return True
    return False


def _release() -> None:
    while _releases:
        # Python renews its lock in a child, in some versions without an owner.
        with suppress(RuntimeError):
            _releases.pop()()


def _after_fork_in_child() -> None:
    _release()
    for lock in list(_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_release, after_in_child=_after_fork_in_child)
