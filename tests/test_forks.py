"""Forks while other threads record, compile, import or run: the child works, and soon."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest


def finish(script: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a script in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **(environment or {})},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


WORKING = """
import faulthandler, os, signal, sys, threading, time, warnings
import numpy as np
import nbgrad as nb
faulthandler.register(signal.SIGALRM, chain=True)  # a child that hangs says where
warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks in processes with threads
sys.setswitchinterval(1e-4)
stop = threading.Event()
failures = []

def distinct(number):
    def f(x):
        y = x
        for digit in f"{number:b}":
            y = np.sin(y) * x if digit == "1" else np.exp(-y) + x
        return np.sum(y)
    return f

def work(seed):
    number = 512 + 50 * seed
    try:
        while not stop.is_set():
            number += 1
            WORK
    except BaseException as error:
        failures.append(error)
        raise

threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(3)]
for thread in threads:
    thread.start()
x = np.linspace(0.1, 0.9, 5)
for k in range(FORKS):
    time.sleep(0.02 * (k % 5))
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        f = distinct(600000 + k)
        step = 1e-6
        difference = (f(x + step) - f(x - step)) / (2 * step)
        assert abs(np.sum(nb.jit(nb.grad(f))(x)) - difference) < 1e-6
        assert abs(np.sum(nb.grad(f)(x)) - difference) < 1e-6
        os._exit(0)
    start = time.monotonic()
    status = os.waitpid(child, 0)[1]
    assert status == 0, (k, status)
stop.set()
for thread in threads:
    thread.join()
assert not failures, failures
"""
WORKS = {
    "compile": "nb.jit(nb.grad(distinct(number)))(np.ones(3))",
    "record": "nb.grad(distinct(700))(np.ones(3))",
    "run": "nb.grad(lambda a: np.sum(np.tanh(a * a)))(np.ones(300_000))",
}


@pytest.mark.fork
@pytest.mark.parametrize("cached", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("work", WORKS)
def test_a_child_works_whatever_other_threads_did_at_the_fork(work: str, cached: bool, tmp_path: Path) -> None:
    """Also while they import, for the first time in this process, what they need."""
    if not cached and work != "compile":
        pytest.skip("only compilation asks the cache")
    environment = {} if cached else {"NBGRAD_CACHE_DIR": str(tmp_path)}
    finish(WORKING.replace("WORK", WORKS[work]).replace("FORKS", "3"), environment)


@pytest.mark.fork
@pytest.mark.slow
@pytest.mark.parametrize("work", WORKS)
def test_many_children(work: str, tmp_path: Path) -> None:
    finish(WORKING.replace("WORK", WORKS[work]).replace("FORKS", "100"), {"NBGRAD_CACHE_DIR": str(tmp_path)})


@pytest.mark.fork
def test_a_fork_waits_for_the_compiler_and_for_imports(tmp_path: Path) -> None:
    """The child finds neither LLVM's locks closed nor a module half imported."""
    (tmp_path / "nbgrad_slow_import.py").write_text("import time\ntime.sleep(0.5)\nDONE = True\n")
    script = """
import os, signal, sys, threading, time, warnings
import numpy as np
import nbgrad as nb
from nbgrad.process import locks
warnings.simplefilter("ignore", DeprecationWarning)
locks._OURS = frozenset([*locks._OURS, "nbgrad_slow_import"])
nb.grad(np.sin)(1.0)
begun = threading.Event()

def build():
    with locks.building.held():
        begun.set()
        time.sleep(0.5)

def imports():
    begun.set()
    import nbgrad_slow_import

for work in (build, imports):
    begun.clear()
    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    time.sleep(0.1)
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        import nbgrad_slow_import
        assert nbgrad_slow_import.DONE
        nb.jit(lambda x: np.sin(x) * 12.5)(np.ones(3))
        os._exit(0)
    assert time.monotonic() - start > 0.2, work
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
"""
    finish(script, {"PYTHONPATH": str(tmp_path)})


@pytest.mark.fork
def test_no_import_begins_between_a_look_and_the_fork(tmp_path: Path) -> None:
    """A thread imports all the time; another one forks, and each child imports the same module."""
    (tmp_path / "nbgrad_quick_import.py").write_text("")
    script = """
import os, signal, sys, threading, warnings
from nbgrad.process import locks
warnings.simplefilter("ignore", DeprecationWarning)
locks._OURS = frozenset([*locks._OURS, "nbgrad_quick_import"])
sys.setswitchinterval(1e-6)
stop = threading.Event()

def imports():
    while not stop.is_set():
        import nbgrad_quick_import
        del sys.modules["nbgrad_quick_import"]

thread = threading.Thread(target=imports, daemon=True)
thread.start()
for k in range(15):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        import nbgrad_quick_import
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, k
stop.set()
thread.join()
"""
    finish(script, {"PYTHONPATH": str(tmp_path)})


@pytest.mark.fork
def test_two_threads_fork_at_once() -> None:
    script = """
import os, signal, threading, warnings
import numpy as np
import nbgrad as nb
warnings.simplefilter("ignore", DeprecationWarning)
failures = []
def work():
    for k in range(5):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            nb.grad(np.sin)(1.0)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            failures.append(k)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures
assert nb.grad(np.sin)(0.0) == 1.0
"""
    finish(script)


@pytest.mark.fork
def test_the_collectors_limit_in_a_child() -> None:
    """A block of another thread ends in the parent only."""
    script = """
import gc, os, threading
from nbgrad.process.gc_pause import RareCollection
usual = gc.get_threshold()
inside, done = threading.Event(), threading.Event()
def work():
    with RareCollection():
        inside.set()
        done.wait()
thread = threading.Thread(target=work)
thread.start()
inside.wait()
for own in (False, True):
    block = RareCollection()
    if own:
        block.__enter__()
    child = os.fork()
    if child == 0:
        raised = gc.get_threshold()[0] > usual[0]
        if own:
            block.__exit__(None, None, None)
        os._exit(0 if raised is own and gc.get_threshold() == usual else 1)
    assert os.waitpid(child, 0)[1] == 0, own
done.set()
thread.join()
"""
    finish(script)


@pytest.mark.fork
def test_a_fork_and_a_thread_that_compiles_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """Executors of the standard library have a lock that a fork takes before ours; threads that compile must not."""
    script = """
import os, threading, time, warnings
from nbgrad.compiler import cpu
import concurrent.futures.thread  # after ours, so that a fork asks its rule first
warnings.simplefilter("ignore", DeprecationWarning)
begun = threading.Event()

def text(symbol):
    begun.set()
    time.sleep(0.3)
    return f"define i64 @{symbol}(i64 %a) {{ ret i64 %a }}"

def compile_two():
    functions = [cpu.Function(f"test {s}", s, lambda s=s: text(s)) for s in ("one", "two")]
    assert len(cpu.function_codes(functions, threads=2)) == 2

thread = threading.Thread(target=compile_two)
thread.start()
begun.wait()
start = time.monotonic()
child = os.fork()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
thread.join()
assert time.monotonic() - start < 15
"""
    finish(script, {"NBGRAD_CACHE_DIR": str(tmp_path)})
