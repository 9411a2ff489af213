"""Blocks: large results get memory that was used before, and nobody sees the difference."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.runtime import blocks, native

pytestmark = pytest.mark.skipif(os.name != "posix", reason="NumPy's own allocator is used")
SIZE = 50_000
X = np.arange(float(SIZE))


@nb.jit
def shifted(x: np.ndarray, by: float) -> np.ndarray:
    return x + by


def kept() -> int:
    return int(blocks.table[blocks.KEPT])


def test_freed_memory_is_used_again() -> None:
    first = shifted(X, 1.0)
    address = first.ctypes.data
    del first
    again = shifted(X, 2.0)
    assert again.ctypes.data == address
    np.testing.assert_array_equal(again, X + 2)


def test_what_is_alive_is_left_alone() -> None:
    results = [shifted(X, float(k)) for k in range(5)]
    view = shifted(X, 7.0)[10:20]
    memory = memoryview(shifted(X, 8.0))
    for _ in range(40):
        shifted(X, -1.0)
    for k, result in enumerate(results):
        np.testing.assert_array_equal(result, X + k)
    np.testing.assert_array_equal(view, X[10:20] + 7)
    np.testing.assert_array_equal(np.asarray(memory), X + 8)


def test_results_are_ordinary_arrays() -> None:
    result = shifted(X, 0.0)
    assert type(result) is np.ndarray
    assert result.base is None
    flags = result.flags
    assert flags.owndata and flags.writeable and flags.aligned and flags.c_contiguous and flags.f_contiguous
    result.resize(2 * SIZE, refcheck=False)
    np.testing.assert_array_equal(result[:SIZE], X)
    result[SIZE:] = 3.0
    result.resize(10, refcheck=False)
    np.testing.assert_array_equal(result, X[:10])
    del result
    small = shifted(X, 1.0)
    viewed = small.reshape(SIZE // 10, 10).view(np.int64)
    del small
    np.testing.assert_array_equal(viewed.view(np.float64).reshape(-1), X + 1)
    del viewed
    np.testing.assert_array_equal(shifted(X, 1.0), X + 1)


@pytest.mark.parametrize("size", [SIZE, 100_000, 1_000_000, 3_000_000])
def test_little_is_kept(size: int) -> None:
    x = np.zeros(size)
    results = [shifted(x, float(k)) for k in range(40)]
    assert [result[-1] for result in results] == list(range(40))
    del results
    gc.collect()
    assert 0 < kept() <= blocks.MOST_BLOCKS
    held = [int(blocks.table[blocks.FIRST_BLOCK + 2 * k + 1]) for k in range(kept())]
    assert sum(held) == blocks.table[blocks.KEPT_BYTES] <= blocks.MOST_KEPT


def test_threads_and_sizes_mix() -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        alive: list[tuple[np.ndarray, float]] = []
        for k in range(150):
            x = X[: int(rng.integers(native.LEAST_BLOCK // 8 - 100, SIZE))]
            alive.append((shifted(x, float(k)), float(k)))
            if len(alive) > 5:
                result, by = alive.pop(int(rng.integers(len(alive))))
                if not np.array_equal(result, X[: len(result)] + by):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arrays_that_outlive_everything() -> None:
    script = """
import sys, numpy as np, nbgrad as nb
result = nb.jit(lambda x: x + 1.0)(np.zeros(1_000_000))
class Late:
    def __init__(self, kept): self.kept = kept
    def __del__(self): self.kept = None
sys.late = Late(result)
np.late = [result, Late(nb.jit(lambda x: x * 2.0)(np.zeros(500_000)))]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
