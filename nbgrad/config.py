"""Settings from the environment, read when they are needed.

NBGRAD_DISABLE_JIT=1 runs every graph with the NumPy interpreter instead of compiled code. NBGRAD_CACHE_DIR, read by
compiler/cache.py, names the cache folder. NBGRAD_NUM_THREADS, read by runtime/threads.py, limits the threads.
NBGRAD_CPU_NAME compiles for another CPU than this one.
"""

from __future__ import annotations

import os


def interpret() -> bool:
    """Whether graphs run in the interpreter."""
    return os.environ.get("NBGRAD_DISABLE_JIT", "") not in ("", "0")
