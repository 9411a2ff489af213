"""The number of threads that a program may use, and the OpenMP runtime that provides them.

In: the environment, `set_num_threads`, and forks. Out: a number that native code reads before each parallel step.
Results never depend on it: work is split by the problem. GCC's OpenMP runtime is used where the system has one;
without it everything is serial. A forked child of a process that has used threads is serial, because that runtime
does not survive a fork.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np

from ..errors import ArgumentError

_wanted: list[int] = []
"""The number of threads, once it was asked for or set."""
_cells: list[np.ndarray] = []


@cache
def openmp() -> ctypes.CDLL | None:
    """GCC's OpenMP runtime, or None."""
    for find in (lambda: "libgomp.so.1", _found):
        name = find()
        if name is None:
            continue
        try:
            with _sleeping_waits():
                library = ctypes.CDLL(name)
        except OSError:
            continue
        if hasattr(library, "GOMP_parallel"):
            return library
    return None


def _found() -> str | None:
    """The runtime's file by another name; looking for it starts other programs, so only if need be."""
    from ctypes.util import find_library

    return find_library("gomp")


@contextmanager
def _sleeping_waits() -> Iterator[None]:
    """Have the runtime, which reads the environment when it is loaded, put idle threads to sleep at once.

    Threads that spin until the next parallel step hold the cores that BLAS wants in between: a small network's
    gradient took 26 ms on two cores instead of 1. Waking them costs a few microseconds.
    """
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "0"
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def start_of_threads() -> ctypes.c_void_p | None:
    """The address of the function that runs another one in several threads; None without the runtime."""
    library = openmp()
    return None if library is None else ctypes.cast(library.GOMP_parallel, ctypes.c_void_p)


def available() -> int:
    """The number of threads that the machine and the environment allow."""
    for variable in ("NBGRAD_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(variable, "").split(",")[0].strip()
        if text.isdigit() and int(text) > 0:
            return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def attach(cell: np.ndarray) -> None:
    """Let native code read the number of threads in `cell`."""
    cell[0] = get_num_threads()
    _cells.append(cell)


def set_num_threads(count: int) -> None:
    """Set how many threads compiled programs may use.

    Parameters
    ----------
    count : int
        At least 1. The results do not depend on it, bit for bit.

    Raises
    ------
    ArgumentError
        If `count` is not a positive integer.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.set_num_threads(2)
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        message = f"The number of threads must be an integer of at least 1, but got {count!r}."
        raise ArgumentError(message)
    _wanted[:] = [count if openmp() is not None else 1]
    for cell in _cells:
        cell[0] = _wanted[0]


def get_num_threads() -> int:
    """The number of threads that compiled programs may use."""
    if not _wanted:
        _wanted.append(available() if openmp() is not None else 1)
    return _wanted[0]


def _serial_after_fork() -> None:
    _wanted[:] = [1]
    for cell in _cells:
        cell[0] = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_serial_after_fork)
