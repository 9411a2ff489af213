"""The guard of BLAS: one thread for each product, and forks that wait for products.

In: nothing. Out: an array of words that native code holds while it calls BLAS, and the IR that holds it. Called by
matmul.py. Each product that runs is counted; the first one puts the threads of OpenBLAS to rest, the last one wakes
them. OpenBLAS has locks of its own, for its threads and its memory, that a forked child would find closed for ever if a
thread of the parent held them: a fork waits until no product runs, `LONGEST_WAIT` at most.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache

import numpy as np

from .. import cpu
from .blas_provider import provider
from .blas_routines import exported

LOCK, COUNT, HELD, GET, SET, GUARD_LENGTH = range(6)
"""A guard: a lock, how many products are running, the number of threads before, and BLAS's functions for it."""
LONGEST_WAIT = 1000
"""How many milliseconds a fork waits for products. It holds the interpreter's lock meanwhile."""


@cache
def guard() -> np.ndarray:
    """The guard by which native code holds BLAS to one thread; all zeros if this BLAS is not OpenBLAS."""
    words = np.zeros(GUARD_LENGTH, np.int64)
    words[[GET, SET]] = _functions()
    if words[SET] and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_released(words))
        _hold_forks(words)
    return words


def _functions() -> tuple[int, int]:
    """The addresses of OpenBLAS's functions that get and set its number of threads; 0 if it is another library."""
    chosen = provider()
    if chosen is not None:
        return chosen.get, chosen.set
    source = exported("cython_blas").__file__
    assert source is not None
    library = ctypes.CDLL(source)
    for prefix in ("scipy_openblas", "openblas"):
        for suffix in ("", "64_"):
            names = [f"{prefix}_{name}_num_threads{suffix}" for name in ("get", "set")]
            if all(hasattr(library, name) for name in names):
                get, to = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names]
                return get, to
    return 0, 0


# ----- Forks -----


def _released(words: np.ndarray) -> Callable[[], None]:
    """Frees a guard in a forked child, where the threads that held it do not exist."""
    resize = ctypes.CFUNCTYPE(None, ctypes.c_int)(int(words[SET]))

    def release() -> None:
        if words[COUNT]:
            resize(int(words[HELD]))
        words[LOCK] = words[COUNT] = 0

    return release


_held: list[cpu.Code] = []
"""The code that the C library calls at forks."""


def _hold_forks(words: np.ndarray) -> None:
    """Have the C library call `prepare` before each fork and `after` in the parent.

    Python's own hooks run earlier, and others between them and the fork may hand the interpreter's lock to a thread
    that then waits for the guard. A hook that is registered later runs earlier: this one before OpenBLAS's.
    """
    library = ctypes.CDLL(None)
    at_fork = getattr(library, "pthread_atfork", None) or getattr(library, "__register_atfork", None)
    sleep = getattr(library, "usleep", None)
    if at_fork is None or sleep is None:
        return
    code = cpu.function_code(cpu.Function("forks wait for products", "install", lambda: FORK_IR))
    _held.append(code)
    addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in (at_fork, sleep)]
    install = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(code.address)
    install(words.ctypes.data, *addresses)


# ----- Native code -----

_LOCK_IR = """
define internal void @lock(ptr %guard) {
entry:
  br label %spin
spin:
  %both = cmpxchg ptr %guard, i64 0, i64 1 acquire monotonic
  %done = extractvalue { i64, i1 } %both, 1
  br i1 %done, label %out, label %spin
out:
  ret void
}
"""
GUARD_IR = (
    _LOCK_IR
    + """define internal void @resize(ptr %guard, i64 %threads) {
  %at = getelementptr i64, ptr %guard, i64 4
  %address = load i64, ptr %at
  %function = inttoptr i64 %address to ptr
  %short = trunc i64 %threads to i32
  call void %function(i32 %short)
  ret void
}
define internal void @hold(i64 %address) {
  %guard = inttoptr i64 %address to ptr
  %count.at = getelementptr i64, ptr %guard, i64 1
  %held.at = getelementptr i64, ptr %guard, i64 2
  %get.at = getelementptr i64, ptr %guard, i64 3
  call void @lock(ptr %guard)
  %count = load i64, ptr %count.at
  %more = add i64 %count, 1
  store i64 %more, ptr %count.at
  %first = icmp eq i64 %count, 0
  br i1 %first, label %change, label %out
change:
  %get.address = load i64, ptr %get.at
  %get = inttoptr i64 %get.address to ptr
  %threads = call i32 %get()
  %wide = sext i32 %threads to i64
  store i64 %wide, ptr %held.at
  %several = icmp sgt i64 %wide, 1
  br i1 %several, label %set, label %out
set:
  call void @resize(ptr %guard, i64 1)
  br label %out
out:
  store atomic i64 0, ptr %guard release, align 8
  ret void
}
define internal void @release(i64 %address) {
  %guard = inttoptr i64 %address to ptr
  %count.at = getelementptr i64, ptr %guard, i64 1
  %held.at = getelementptr i64, ptr %guard, i64 2
  call void @lock(ptr %guard)
  %count = load i64, ptr %count.at
  %less = sub i64 %count, 1
  store i64 %less, ptr %count.at
  %threads = load i64, ptr %held.at
  %last = icmp eq i64 %less, 0
  %several = icmp sgt i64 %threads, 1
  %change = and i1 %last, %several
  br i1 %change, label %set, label %out
set:
  call void @resize(ptr %guard, i64 %threads)
  br label %out
out:
  store atomic i64 0, ptr %guard release, align 8
  ret void
}
"""
)
"""IR of `hold` and `release`, which take the address of a guard."""
FORK_IR = (
    _LOCK_IR
    + f"""@guard = internal global ptr null
@sleep = internal global ptr null
define void @install(i64 %address, ptr %at.fork, ptr %sleep) {{
  %guard = inttoptr i64 %address to ptr
  store ptr %guard, ptr @guard
  store ptr %sleep, ptr @sleep
  %failed = call i32 %at.fork(ptr @prepare, ptr @after, ptr null, ptr null)
  ret void
}}
define internal void @prepare() {{
entry:
  %guard = load ptr, ptr @guard
  %sleep = load ptr, ptr @sleep
  %count.at = getelementptr i64, ptr %guard, i64 {COUNT}
  br label %look
look:
  %turn = phi i64 [ 0, %entry ], [ %next, %wait ]
  call void @lock(ptr %guard)
  %count = load i64, ptr %count.at
  %none = icmp eq i64 %count, 0
  %late = icmp sge i64 %turn, {LONGEST_WAIT}
  %done = or i1 %none, %late
  br i1 %done, label %out, label %wait
wait:
  store atomic i64 0, ptr %guard release, align 8
  %slept = call i32 %sleep(i32 1000)
  %next = add i64 %turn, 1
  br label %look
out:
  ret void
}}
define internal void @after() {{
  %guard = load ptr, ptr @guard
  store atomic i64 0, ptr %guard release, align 8
  ret void
}}
"""
)
