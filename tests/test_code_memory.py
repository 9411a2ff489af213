"""Programs and kernels that nothing holds any more give back their memory, machine code included."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler import cpu, passes
from nbgrad.runtime import evaluate

X = np.linspace(0.1, 0.9, 5)
numbers = itertools.count(1)


def distinct(number: int) -> Any:
    """A function that has a kernel of its own: the number in binary says which operations it is made of."""

    def f(x: Any) -> Any:
        y = x
        for digit in f"{number:b}":
            y = y * x + 1.5 if digit == "1" else y - x * y
        return np.sum(y)

    return f


def loaded_loops() -> set[str]:
    gc.collect()
    return {key for key in list(cpu._loaded) if key.startswith("loop")}


@pytest.fixture
def few_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept that is not in use, except for one program."""
    monkeypatch.setenv("NBGRAD_KEPT_PROGRAMS", "1")


def test_code_is_unloaded_with_its_program(few_kept: None) -> None:
    before = loaded_loops()
    compiled = nb.jit(nb.value_and_grad(distinct(6 << 20)))
    want = compiled(X)
    held = loaded_loops() - before
    assert held and all(cpu._loaded[key].address for key in held)
    call = compiled._door.call  # what a thread holds while it runs the code
    del compiled
    assert held <= loaded_loops()
    np.testing.assert_array_equal(call(X)[1], want[1])
    del call
    assert not held & loaded_loops()
    assert not cpu._dropped


def test_the_same_function_again_after_its_code_was_unloaded(few_kept: None) -> None:
    results = [nb.jit(nb.value_and_grad(distinct(5 << 20)))(X) for _ in range(3) if loaded_loops() is not None]
    for value, gradient in results:
        assert value == results[0][0]
        np.testing.assert_array_equal(gradient, results[0][1])


def test_kernels_that_are_made_again_soon_are_not_loaded_again() -> None:
    nb.jit(distinct(7 << 20))(X)
    kept = loaded_loops()
    assert kept
    counters = dict(nb.compiler.cache.counters)
    nb.jit(distinct(7 << 20))(X)
    assert nb.compiler.cache.counters == counters


def test_the_programs_of_gradients_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_KEPT_PROGRAMS", "3")
    often = distinct(9 << 20)
    gradient = nb.grad(often)
    want = gradient(X)
    program = next(reversed(evaluate._programs.values()))[1]
    for k in range(8):
        nb.grad(distinct((9 << 20) + 1 + k))(X)
        np.testing.assert_array_equal(gradient(X), want)
        assert len(evaluate._programs) <= 3
        assert any(entry[1] is program for entry in evaluate._programs.values())


def test_a_jitted_function_keeps_the_signatures_that_were_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_KEPT_PROGRAMS", "3")
    recorded: list[int] = []

    def f(x: Any) -> Any:
        recorded.append(len(x))
        return np.sum(x * x)

    compiled = nb.jit(f)
    for length in (1, 2, 3, 1, 4, 1, 5, 1):
        assert compiled(np.ones(length)) == length
    assert compiled.compiled_signatures == 3
    assert recorded == [1, 2, 3, 4, 5]
    assert compiled(np.ones(2)) == 2
    assert recorded[-1] == 2


def test_threads_that_drop_compiled_functions_while_others_compile(few_kept: None) -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for k in range(6):
                number = (11 << 20) + (seed + k) % 5
                value, gradient = nb.jit(nb.value_and_grad(distinct(number)))(X)
                np.testing.assert_allclose(value, distinct(number)(X), rtol=1e-12)
                assert gradient.shape == X.shape
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures and not any(thread.is_alive() for thread in threads)
    loaded_loops()
    assert not cpu._dropped


MANY = """
import ctypes, gc
import numpy as np
import nbgrad as nb
from tests.test_code_memory import X, distinct

def resident():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def run(start):
    for number in range(start, start + {count}):
        nb.jit(nb.value_and_grad(distinct(number)))(X)
        nb.grad(distinct(number))(X)

run(1 << 20)
before = resident()
run((1 << 20) + {count})
print((resident() - before) / {count})
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads Linux's /proc")
@pytest.mark.parametrize(("count", "optimize"), [(60, "0"), pytest.param(500, "1", marks=pytest.mark.slow)])
def test_memory_of_programs_that_nothing_holds(count: int, optimize: str) -> None:
    """About 15 kB of LLVM's tables stay for a kernel that is compiled; each took 170 kB before."""
    done = subprocess.run(
        [sys.executable, "-c", MANY.format(count=count)],
        capture_output=True,
        text=True,
        timeout=60 + 3 * count,
        env={**os.environ, "NBGRAD_KEPT_PROGRAMS": "4", "NBGRAD_CACHE_DIR": os.devnull, "NBGRAD_OPTIMIZE": optimize},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert float(done.stdout) < 60_000


def test_modules_and_contexts_in_cycles() -> None:
    """The traceback of an interrupt holds both in a cycle, which Python's collector takes apart in any order."""
    for turned in (False, True) * 5:
        module = passes.parsed("define i64 @f() {\n  ret i64 42\n}\n")
        held: list[Any] = [module, module._context]
        if turned:
            held.reverse()
        for one in held:
            one.cycle = held
        del module, one, held
        gc.collect()
    with pytest.raises(RuntimeError, match="parsing error"):
        passes.parsed("define")
