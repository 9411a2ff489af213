"""Threads and forks: the same bits, whoever calls, how often, and with how many threads."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiled import doors
from nbgrad.compiler import cpu
from nbgrad.graph.trace import CELLS
from nbgrad.process.gc_pause import RareCollection
from nbgrad.process.locks import ForkSafeLock
from nbgrad.process.side_by_side import SideBySide

LARGE = 300_000
SHAPES = [(3,), (1000,), (0,), (7, 11), (LARGE,), (400, 300), (2, 50_000), ()]


def loss(x: Any, y: Any) -> Any:
    """Elementwise functions, a scan, sums along both ends, and a maximum."""
    rows = np.cumsum(x * y, axis=-1) if np.ndim(x) else x * y
    return np.sum(np.log1p(np.exp(np.tanh(rows) * y))) + np.sum(np.sin(x)) ** 2 + np.sum(np.maximum(x, y))


def point(shape: tuple[int, ...], seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=shape)), np.asarray(rng.normal(size=shape))


def run_in_turns(work: Callable[[int], None]) -> None:
    """Run a function of a number in four threads that are interrupted as often as can be."""
    running = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    finally:
        sys.setswitchinterval(before)


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


def test_threads_make_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program points to the tables of its entry: those of a second one would be gone as soon as it is dropped."""
    made = []
    make = doors._entry

    def slowly(*args: Any) -> Any:
        made.append(args)
        time.sleep(0.05)
        return make(*args)

    monkeypatch.setattr(doors, "_entry", slowly)
    f = nb.jit(lambda x: x * 2.0)
    x = nb.Tensor([1.0, 2.0])
    f(x)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(f, [x] * 8))
    assert len(made) == 1
    assert all(value.asnumpy().tolist() == [2.0, 4.0] for value in found)


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


# ----- State of the process -----


def test_the_collectors_limit_is_restored_by_the_last_of_many_threads() -> None:
    """Blocks of several threads overlap in every order; a limit that a user sets meanwhile stays."""
    usual = gc.get_threshold()
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        barrier.wait()
        for _ in range(300):
            with RareCollection(), RareCollection():
                for _ in range(rng.integers(200)):
                    pass

    try:
        run_in_turns(work)
        assert gc.get_threshold() == usual
        with RareCollection():
            gc.set_threshold(123, *usual[1:])
        assert gc.get_threshold()[0] == 123
    finally:
        gc.set_threshold(*usual)


def test_the_collectors_limit_when_blocks_end_in_the_order_of_their_begin() -> None:
    usual = gc.get_threshold()
    first, second = RareCollection(), RareCollection()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] > usual[0]
    second.__exit__(None, None, None)
    assert gc.get_threshold() == usual


def test_no_change_of_a_cell_is_lost_when_threads_change_cells() -> None:
    """A compiled call sees each change that its own thread has made, whatever other threads change at the same time."""

    class Switch(nb.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.factor = 1

        def construct(self, x: Any) -> Any:
            return x * self.factor

    failures: list[Any] = []

    def work(_: int) -> None:
        net = Switch()
        call = nb.jit(net)
        for k in range(60):
            net.factor = k % 3
            got = [call(np.ones(2))[0].item() for _ in range(3)]
            if got != [k % 3] * 3:
                failures.append((k, got))

    run_in_turns(work)
    assert not failures


def test_each_change_gives_the_cells_a_token_of_its_own() -> None:
    """Numbers that two threads count up at once could be the same for two changes."""
    net = nb.nn.Dense(2, 2)
    tokens = [CELLS.token]
    changes = [lambda: net.set_train(True), lambda: setattr(net, "other", 1), lambda: delattr(net, "other")]
    for change in [*changes, lambda: setattr(net.weight, "requires_grad", False)]:
        change()
        assert all(CELLS.token is not token for token in tokens)
        tokens.append(CELLS.token)


def test_first_products_of_many_threads() -> None:
    """SciPy's pointers to BLAS can be loaded only once."""
    script = """
import threading
import numpy as np
import nbgrad as nb
failures = []
def work(size):
    try:
        a = np.full((size, size), 0.5)
        np.testing.assert_allclose(nb.grad(lambda a: np.sum(a @ a))(a), size)
    except BaseException as error:
        failures.append(error)
threads = [threading.Thread(target=work, args=(100 + k,)) for k in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


# ----- Compilation by several threads -----


def many_kernels(x: Any) -> Any:
    """Sums between maps keep kernels apart."""
    for k in range(4):
        x = np.sin(x * (k + 1.25)) / (1 + np.sum(x * x, axis=k % 2, keepdims=True))
    return np.sum(np.cumsum(x, axis=1))


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The object code of all that is compiled, by its symbol; no kernel was compiled before."""
    monkeypatch.setenv("NBGRAD_CACHE_DIR", os.devnull)
    monkeypatch.setattr(cpu, "_loaded", {})
    found: dict[str, bytes] = {}
    load = cpu._load_object

    def keep(data: bytes, symbol: str, called: Mapping[str, int]) -> cpu.Code:
        found[symbol] = data
        return load(data, symbol, called)

    monkeypatch.setattr(cpu, "_load_object", keep)
    return found


@pytest.mark.unoptimized
def test_threads_that_compile_make_the_same_code(
    threads: Callable[[int], None], objects: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.linspace(0.1, 0.9, 12).reshape(3, 4)
    results, codes = [], []
    for count in (1, 4):
        threads(count)
        results.append(nb.jit(nb.grad(many_kernels))(x))
        codes.append({symbol: data for symbol, data in objects.items() if symbol.startswith("kernel.")})
        monkeypatch.setattr(cpu, "_loaded", {})
        objects.clear()
    assert np.array_equal(*results)
    assert codes[0] == codes[1] and len(codes[0]) >= 5


@pytest.mark.unoptimized
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="object code is no ELF")
def test_code_does_not_depend_on_what_was_compiled_before(objects: dict[str, bytes]) -> None:
    # A machine of LLVM remembers the addresses of functions that are marked as used, and takes later ones for these.
    # Object code with such functions says in its head that it has GNU's extensions.
    nb.jit(lambda x: x * 2 + 1)(np.ones(3, np.float16))
    heads = [data[:8] for symbol, data in objects.items() if symbol.startswith("kernel.")]
    assert heads and all(head[:4] == b"\x7fELF" and head[7] == 0 for head in heads)


@pytest.mark.unoptimized
def test_without_more_threads_one_compiles(
    threads: Callable[[int], None], objects: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threads(4)
    x = np.ones((3, 4))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        found = nb.jit(nb.grad(many_kernels))(x)
    assert np.allclose(found, nb.grad(many_kernels)(x), rtol=1e-13) and objects


@pytest.mark.unoptimized
@pytest.mark.parametrize("place", ["emitted", "_load_object"])
def test_an_interrupted_compilation_leaves_nothing(
    place: str, threads: Callable[[int], None], objects: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    step, numbers = getattr(cpu, place), itertools.count(1)

    def interrupted(*given: Any) -> Any:
        if next(numbers) == 2:
            raise KeyboardInterrupt
        return step(*given)

    threads(2)
    function, x = nb.jit(nb.grad(many_kernels)), np.ones((3, 4))
    with monkeypatch.context() as patch:
        patch.setattr(cpu, place, interrupted)
        with pytest.raises(KeyboardInterrupt):
            function(x)
        assert not [thread for thread in threading.enumerate() if "nbgrad compiles" in thread.name]
    assert np.allclose(function(x), nb.grad(many_kernels)(x), rtol=1e-13)


def test_work_side_by_side_gives_its_values_or_errors_in_order() -> None:
    with SideBySide(3, "test") as pool:
        results = [pool.begin(lambda k=k: 6 // k) for k in (1, 2, 0, 3)]
        assert [results[k]() for k in (0, 1, 3)] == [6, 3, 2]
        with pytest.raises(ZeroDivisionError):
            results[2]()


@pytest.mark.parametrize("threads", [1, 2])
def test_work_without_other_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with SideBySide(threads, "test") as pool:
        assert [result() for result in [pool.begin(pow, 2, k) for k in range(3)]] == [1, 2, 4]


def test_an_interrupt_reaches_the_one_who_waits_and_ends_the_work() -> None:
    done: list[int] = []

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), SideBySide(1, "test") as pool:
        first = pool.begin(interrupted)
        pool.begin(done.append, 1)
        first()
    assert not done
