"""Large matrix products: cut by the problem, shared by threads, the same bits with any number of them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler.matrices import blas_guard, matmul
from nbgrad.graph.ir import make, placeholder

# Shapes (batch, m, k, n), and how many pieces at least: rows, columns, both, many matrices, vectors.
SHAPES = [
    ((1, 700, 300, 260), 2),
    ((1, 70, 500, 1500), 2),
    ((1, 1030, 1025, 1027), 8),
    ((1, 40, 9000, 130), 2),
    ((40, 65, 257, 63), 40),
    ((3, 257, 300, 129), 3),
    ((1, 3001, 900, 1), 2),
    ((1, 1, 900, 3001), 2),
    ((1, 100, 100, 100), 1),
]


@pytest.fixture(autouse=True)
def restore_threads() -> Iterator[None]:
    before = nb.get_num_threads()
    yield
    nb.set_num_threads(before)


def operands(shape: tuple[int, ...], dtype: type, turned: bool) -> tuple[np.ndarray, np.ndarray]:
    """Two factors; turned ones are stored the other way round."""
    batch, m, k, n = shape
    rng = np.random.default_rng(sum(shape))
    a = rng.standard_normal((batch, k, m) if turned else (batch, m, k)).astype(dtype)
    b = rng.standard_normal((batch, n, k) if turned else (batch, k, n)).astype(dtype)
    return a, b


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("shape", "count"), SHAPES, ids=[str(shape) for shape, _ in SHAPES])
def test_products_do_not_depend_on_threads(shape: tuple[int, ...], count: int, dtype: type, turned: bool) -> None:
    a, b = operands(shape, dtype, turned)
    if turned:
        product = nb.jit(lambda a, b: np.swapaxes(a, 1, 2) @ np.swapaxes(b, 1, 2))
        expected = np.swapaxes(a, 1, 2).astype(float) @ np.swapaxes(b, 1, 2).astype(float)
    else:
        product = nb.jit(lambda a, b: a @ b)
        expected = a.astype(float) @ b.astype(float)
    nb.set_num_threads(1)
    alone = product(a, b)
    limit = 20 * np.finfo(dtype).eps * np.sqrt(shape[2])
    np.testing.assert_allclose(alone, expected, rtol=0, atol=limit * np.abs(expected).max())
    for threads in (2, 5):
        nb.set_num_threads(threads)
        assert np.array_equal(product(a, b), alone)
    node = make("matmul", tuple(placeholder(s, np.dtype(dtype)) for s in (shape[:3], (shape[0], *shape[2:]))))
    if dtype is np.float64:
        assert matmul.pieces(node).total >= count


def test_pieces_cover_a_product() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        batch, m, k, n = (int(v) for v in np.exp(rng.uniform(0, [3, 8.5, 8.5, 8.5])))
        node = make("matmul", (placeholder((batch, m, k), np.dtype("f4")), placeholder((batch, k, n), np.dtype("f4"))))
        cut = matmul.pieces(node)
        assert (cut.down - 1) * cut.rows < m <= cut.down * cut.rows
        assert (cut.across - 1) * cut.columns < n <= cut.across * cut.columns
        assert cut.total == batch * cut.down * cut.across
        assert cut.down * cut.across <= 2 * matmul.MOST_PIECES


def blas_threads() -> int:
    """How many threads SciPy's OpenBLAS has now; 0 if it is another library."""
    get = int(blas_guard.guard()[blas_guard.GET])
    return ctypes.CFUNCTYPE(ctypes.c_int)(get)() if get else 0


def test_threads_of_blas_are_given_back() -> None:
    before = blas_threads()
    a = np.random.default_rng(2).standard_normal((500, 500))
    product = nb.jit(lambda a: a @ a)
    expected = product(a)
    failed: list[int] = []

    def work() -> None:
        for k in range(10):
            if not np.array_equal(product(a), expected):
                failed.append(k)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert blas_threads() == before
    assert list(blas_guard.guard()[[blas_guard.LOCK, blas_guard.COUNT]]) == [0, 0]


FORK = """
import ctypes, os, threading, numpy as np, nbgrad as nb
from nbgrad.compiler.matrices import blas_guard
nb.set_num_threads(2)
a = np.random.default_rng(0).standard_normal((600, 600))
product = nb.jit(lambda a: a @ a)
expected = product(a)
running = True
def work():
    while running:
        product(a)
thread = threading.Thread(target=work, daemon=True)  # an error here ends the process
thread.start()
for _ in range(8):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert np.array_equal(product(a), expected)
            assert np.array_equal(nb.jit(lambda a: a.T @ a)(a).shape, a.shape)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
guard = blas_guard.guard()
for _ in range(4 if guard[blas_guard.SET] else 0):
    child = ctypes.PyDLL(None).fork()  # without Python's hooks, which open the guard in a child
    if child == 0:
        os._exit(int(guard[blas_guard.COUNT]))  # no product runs at the fork
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
running = False
thread.join()
"""


@pytest.mark.fork
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_while_a_thread_multiplies() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
