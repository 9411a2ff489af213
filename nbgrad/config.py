"""Settings: from the environment, read when they are needed, and `rolled` for a block of code.

NBGRAD_DISABLE_JIT=1 runs every graph with the NumPy interpreter instead of compiled code. NBGRAD_CACHE_DIR, read by
compiler/cache.py, names the cache folder. NBGRAD_NUM_THREADS, read by runtime/threads.py, limits the threads.
NBGRAD_CPU_NAME compiles for another CPU than this one. NBGRAD_OPTIMIZE=0 compiles without LLVM's optimisations: a tenth
of the time, for slower loops. NBGRAD_ROLL=0 leaves Python loops written out as they were recorded, where no `rolled`
block says otherwise.
NBGRAD_PROGRESS=0 shows no line while recording or compiling takes long.
NBGRAD_FULL_TRACEBACKS=1 shows nbgrad's own lines in the tracebacks of errors. NBGRAD_KEPT_PROGRAMS bounds the memory of
compiled code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["rolled"]

_known = type(getattr(os.environ, "_data", None)) is dict
_variables: Any = os.environ._data if _known else os.environ  # pyright: ignore[reportAttributeAccessIssue]
"""The environment as Python keeps it. Un-jitted calls ask it, and `os.environ` takes a microsecond to answer."""
_DISABLE_JIT, _ROLL = map(os.environ.encodekey if _known else str, ("NBGRAD_DISABLE_JIT", "NBGRAD_ROLL"))

_rolls: ContextVar[bool | None] = ContextVar("nbgrad_rolls", default=None)
blocks: dict[object, None] = {}
"""The `rolled` blocks that are open in some thread. Without one, all calls are recorded in the same way."""


def interpret() -> bool:
    """Whether graphs run in the interpreter."""
    return _DISABLE_JIT in _variables and os.environ.get("NBGRAD_DISABLE_JIT", "") not in ("", "0")


def roll() -> bool:
    """Whether loops are put in place of what Python loops record."""
    said = _rolls.get() if blocks else None
    if said is None:
        return _ROLL not in _variables or os.environ.get("NBGRAD_ROLL", "") != "0"
    return said


@contextmanager
def rolled(on: bool = True) -> Iterator[None]:
    """A `with` block in which Python loops become loops when they are recorded, or stay written out.

    Parameters
    ----------
    on : bool
        Whether they become loops. Outside of all blocks they do, unless the environment has `NBGRAD_ROLL=0`.

    Notes
    -----
    It holds for this thread, or this task of asyncio, and for recordings that begin in the block. A jitted function
    keeps those of both kinds apart, and each call takes the kind of the block that it is in. Loops that are said, such
    as `nb.scan`, stay loops.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def grown(x):
    ...     for _ in range(300):
    ...         x = x + 0.01 * np.sin(x)
    ...     return x
    >>> slope = nb.jit(nb.grad(grown))
    >>> with nb.config.rolled(False):
    ...     written_out = slope(1.0)
    >>> bool(abs(slope(1.0) - written_out) < 1e-12)
    True
    """
    block = object()
    blocks[block] = None
    token = _rolls.set(bool(on))
    try:
        yield
    finally:
        _rolls.reset(token)
        del blocks[block]


def progress() -> bool:
    """Whether a line shows how far recordings and compilations are that take long."""
    return os.environ.get("NBGRAD_PROGRESS", "") != "0"


def optimize() -> bool:
    """Whether kernels are optimised when they are compiled."""
    return os.environ.get("NBGRAD_OPTIMIZE", "") != "0"


def full_tracebacks() -> bool:
    """Whether tracebacks have nbgrad's own lines."""
    return os.environ.get("NBGRAD_FULL_TRACEBACKS", "") not in ("", "0")


def kept_programs() -> int:
    """The most programs of un-jitted computations, and signatures of each jitted function, to keep: those used last."""
    text = os.environ.get("NBGRAD_KEPT_PROGRAMS", "").strip()
    return max(1, int(text)) if text.isdigit() else KEPT_PROGRAMS


def kept_kernels() -> int:
    """The number of kernels that stay loaded although no program holds them, for programs that are made again."""
    return kept_programs() // 2


KEPT_PROGRAMS = 512
