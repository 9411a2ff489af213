"""The time of each group of kernels of a program on the CPU, measured.

In: a `Program` and the arrays of a call. Out: seconds of each group, the median of several runs. Called by
compiled/explain.py. Each run goes through all groups in their order, as a call does, with a table of steps for each
group alone and memory of its own: a group reads the arrays that the groups before it have written.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.fuse import Special
from ..graph.host_functions import is_call
from ..process.object_layout import scalar_values
from . import native
from .cpu_program import Program
from .lifetimes import ALIGNMENT, nbytes

LONGEST = 0.3
"""Seconds that all runs together should take."""
MOST_RUNS = 50


def group_times(program: Program, arrays: Sequence[Any]) -> list[float] | None:
    """Seconds of each group of a program; None where groups cannot run alone, since they call functions of the host or
    read a file.

    Parameters
    ----------
    program : Program
    arrays : sequence of ndarrays and scalars
        The arguments of a call, as the program takes them.
    """
    plan = program.plan
    nodes = [step.kernel.node for step in plan.steps if isinstance(step.kernel, Special)]
    if program.file is not None or any(node.name == "host" or is_call(node) for node in nodes):
        return None
    state = program.state
    bases = _words(int(state[native.BASES]), int(state[native.BASE_COUNT])).copy()
    arena = _aligned(plan.arena_bytes)
    bases[0] = arena.ctypes.data
    for position, value in enumerate(arrays):
        kind = type(value)
        bases[1 + position] = id(value) + scalar_values()[kind] if kind in scalar_values() else value.ctypes.data
    results = [_aligned(nbytes(output.node)) for output in program.outputs]
    first = len(bases) - len(results)
    for position, result in enumerate(results):
        bases[first + position] = result.ctypes.data
    scratch = np.zeros(native.GROUP_DATA + plan.width * plan.slots + 1, np.int64)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)(native.run_address())
    tables = _tables(int(state[native.TABLE]))
    calls = [
        (table.ctypes.data, bases.ctypes.data, scratch.ctypes.data, native.context().ctypes.data) for table in tables
    ]
    samples: list[list[float]] = []
    begin = time.perf_counter()
    while not samples or (len(samples) < MOST_RUNS and time.perf_counter() - begin < LONGEST):
        samples.append([_timed(run, call) for call in calls])
    # The last table has no groups: it costs as much as the call of any.
    *seconds, empty = np.median(samples, axis=0).tolist()
    return [max(0.0, one - empty) for one in seconds]


def _timed(run: Any, call: tuple[int, ...]) -> float:
    start = time.perf_counter()
    run(*call)
    return time.perf_counter() - start


def _words(address: int, count: int) -> np.ndarray:
    """Words in memory."""
    return np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(address))


def _aligned(size: int) -> np.ndarray:
    """Memory for so many bytes, which begins where arrays of the arena do."""
    block = np.zeros(size + 2 * ALIGNMENT, np.uint8)
    return block[-block.ctypes.data % ALIGNMENT :]


def _tables(address: int) -> list[np.ndarray]:
    """A table for each group of a program's table, and one without groups."""
    count, slots, width = _words(address, 3).tolist()
    at = address + 24
    found: list[np.ndarray] = []
    for _ in range(count):
        size = native.GROUP_HEAD + int(_words(at, native.GROUP_HEAD)[3])
        found.append(np.array([1, slots, width, *_words(at, size)], np.int64))
        at += 8 * size
    return [*found, np.array([0, slots, width], np.int64)]
