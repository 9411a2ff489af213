"""Threads and forks: the same bits, whoever calls, how often, and with how many threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler.locks import ForkSafeLock

LARGE = 300_000
SHAPES = [(3,), (1000,), (0,), (7, 11), (LARGE,), (400, 300), (2, 50_000), ()]


def loss(x: Any, y: Any) -> Any:
    """Elementwise functions, a scan, sums along both ends, and a maximum."""
    rows = np.cumsum(x * y, axis=-1) if np.ndim(x) else x * y
    return np.sum(np.log1p(np.exp(np.tanh(rows) * y))) + np.sum(np.sin(x)) ** 2 + np.sum(np.maximum(x, y))


def point(shape: tuple[int, ...], seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=shape)), np.asarray(rng.normal(size=shape))


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """`set_num_threads`, undone at the end."""
    before = nb.get_num_threads()
    yield nb.set_num_threads
    nb.set_num_threads(before)


@pytest.mark.parametrize("jitted", [False, True])
def test_eight_threads_call_one_gradient(jitted: bool) -> None:
    """Different shapes at once; first calls and so compilations too."""
    gradient = nb.value_and_grad(loss, (0, 1))
    want = {shape: gradient(*point(shape, 1)) for shape in SHAPES}
    called = nb.jit(nb.value_and_grad(lambda x, y: loss(x, y) * 1.0, (0, 1))) if jitted else gradient
    barrier = threading.Barrier(8)
    failures: list[str] = []

    def work(number: int) -> None:
        barrier.wait()
        order = np.random.default_rng(number).permutation(len(SHAPES))
        for _ in range(3):
            for k in order:
                shape = SHAPES[k]
                value, (gx, gy) = called(*point(shape, 1))
                expected, (wx, wy) = want[shape]
                if not (value == expected and np.array_equal(gx, wx) and np.array_equal(gy, wy)):
                    failures.append(f"thread {number}, shape {shape}: {value} instead of {expected}")

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, number) for number in range(8)]:
            future.result()
    assert not failures, failures[:5]


def test_one_large_program_in_many_threads() -> None:
    """The program's own arena is taken by the first; the others get one each."""
    f = nb.jit(lambda x: np.cumsum(np.sin(x)) @ np.cos(x[::-1]) + np.sort(x)[:3].sum())
    inputs = [np.random.default_rng(k).normal(size=50_000) for k in range(8)]
    want = [f(x) for x in inputs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            assert list(pool.map(f, inputs)) == want


@pytest.mark.parametrize("shape", SHAPES)
def test_results_do_not_depend_on_the_number_of_threads(shape: tuple[int, ...], threads: Callable[[int], None]) -> None:
    gradient = nb.jit(nb.value_and_grad(loss, (0, 1)))
    x, y = point(shape, 2)
    results = []
    for count in (1, 2, 3, 8, 1):
        threads(count)
        assert nb.get_num_threads() == count
        value, (gx, gy) = gradient(x, y)
        results.append((count, value, gx, gy))
    for count, *parts in results[1:]:
        for one, other in zip(parts, results[0][1:], strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{count} threads, shape {shape}")


def test_reductions_along_each_axis_with_threads(threads: Callable[[int], None]) -> None:
    x = np.random.default_rng(0).normal(size=(300, 20, 30))
    f = nb.jit(
        lambda x: [np.sum(x, axis=a) for a in (None, 0, 1, 2, (0, 2))] + [np.max(x, axis=0), np.prod(x[:, 0], axis=0)]
    )
    threads(1)
    want = f(x)
    threads(4)
    for one, other in zip(f(x), want, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(want[4], x.sum(axis=(0, 2)), rtol=1e-12, atol=1e-10)


def test_other_threads_run_while_a_large_program_runs() -> None:
    f = nb.jit(lambda x: np.sum(np.exp(np.sin(np.exp(np.sin(x))))))
    x = np.linspace(0, 1, 2_000_000)
    f(x)
    turns = 0
    done = threading.Event()

    def work() -> None:
        for _ in range(5):
            f(x)
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    while not done.is_set():
        turns += 1
        done.wait(0.0005)
    worker.join()
    assert turns > 3


def test_recordings_of_threads_do_not_mix() -> None:
    """Each thread records its own function; a recording waits in the middle of another."""
    inside, go_on = threading.Event(), threading.Event()

    def slow(x: Any) -> Any:
        y = x * 2
        inside.set()
        assert go_on.wait(30)
        return y * x

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(nb.grad(slow), np.array([3.0]))
        assert inside.wait(30)
        assert nb.grad(lambda x: x**3)(2.0) == 12.0
        t = nb.Tensor(np.ones(2)) + 1
        np.testing.assert_array_equal(t.asnumpy(), [2, 2])
        go_on.set()
        np.testing.assert_array_equal(future.result(), [12.0])


def test_recursive_calls_of_one_program() -> None:
    """A jitted function that is called while its arguments are made by itself."""
    f = nb.jit(lambda x: x * 2 + 1)
    assert f(f(f(1.0))) == 15.0


FORK = """
import os, sys
import numpy as np, nbgrad as nb
nb.set_num_threads(4)
x = np.linspace(-1, 1, 400_000)
f = nb.jit(nb.value_and_grad(lambda x: np.sum(np.exp(x) * np.sin(x))))
value, gradient = f(x)
children = []
for k in range(3):
    child = os.fork()
    if child == 0:
        try:
            again, other = f(x)
            assert again == value and np.array_equal(other, gradient)
            fresh = nb.grad(lambda x: np.sum(np.cos(x) * x))(x)
            np.testing.assert_allclose(fresh, np.cos(x) - x * np.sin(x), rtol=1e-10, atol=1e-12)
            a = np.ones((60, 60))
            np.testing.assert_array_equal(nb.jit(lambda a: a @ a)(a), np.full((60, 60), 60.0))
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    children.append(child)
for child in children:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
again, other = f(x)
assert again == value and np.array_equal(other, gradient)
"""


@pytest.mark.fork
def test_fork_after_parallel_use() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.fork
def test_multiprocessing_with_fork() -> None:
    script = """
import multiprocessing, numpy as np, nbgrad as nb
f = nb.jit(nb.grad(lambda x: np.sum(x ** 3)))
x = np.ones(200_000)
want = f(x)
def work(k):
    return float(f(x * k).sum())
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(work, range(6)) == [3.0 * k * k * 200_000 for k in range(6)]
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.fork
def test_locks_are_open_in_a_forked_child() -> None:
    """A thread of the parent holds the lock at the time of the fork; the child does not have that thread."""
    lock = ForkSafeLock()
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock.held():
            holding.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(30)
    with warnings.catch_warnings():
        # Python warns of forks in processes with threads, which is what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.alarm(20)
        with lock.held():
            os._exit(0)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
