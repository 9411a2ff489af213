"""Derivatives of kernels with loops over `prange`, on several threads: `nb.kernel`.

First and second derivatives of these kernels are compared with differences by test_adjoints.py, on one thread. Here
they are compiled: the bits do not depend on the number of threads, and the values are those of the same kernel without
threads.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit

from nbgrad.adjoints.rule_text import RuleText
from nbgrad.adjoints.specializations import Specialization
from nbgrad.adjoints.turns import thread_parts

from .adjoint_kernels import ROWS
from .threaded_kernels import THREADED

pytestmark = pytest.mark.unoptimized


class Reverse:
    """The reverse kernel of a row, for cotangents of the results that are all different."""

    def __init__(self, kernel: Any, name: str) -> None:
        names = inspect.signature(kernel.py_func).parameters
        self.given = dict(zip(names, ROWS[name].arguments, strict=True))
        self.spec = Specialization(kernel, self.given, (), (), "never")
        self.asked = self.spec.differentiable_inputs
        self.derived = self.spec.reverse(self.asked)[0]

    def gradients(self) -> dict[str, np.ndarray]:
        """The cotangents of the arguments."""
        spec, random = self.spec, np.random.default_rng(5)
        shapes = {one: np.shape(self.given[one]) if isinstance(one, str) else () for one in spec.float_outputs}
        cotangents = {one: np.asarray(random.standard_normal(shape)) for one, shape in shapes.items()}
        found = {one: np.zeros(np.shape(self.given[one])) for one in self.asked}
        spec.run_reverse(self.asked, self.given, cotangents, found)
        return found


def serial(name: str) -> Reverse:
    """The reverse kernel of a row without threads."""
    return Reverse(njit(ROWS[name].kernel.py_func), name)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels and their derivatives run as Python."""
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")


@pytest.mark.parametrize("name", THREADED)
def test_loops_run_in_the_way_of_the_table(name: str, plain: None) -> None:
    row = THREADED[name]
    reverse = Reverse(ROWS[name].kernel, name)
    spec, derived = reverse.spec, reverse.derived
    lines = [line.strip() for line in derived.text.splitlines()]
    copied = {line.split("_part =")[0] for line in lines if "_part = " in line}
    assert copied == row.copies
    assert ("prange(" in derived.text) == (not row.serial)
    assert ("if not (" in derived.whole) == row.gathers
    assert any(derived.text.count(f"{part}(") == 2 for part in derived.parts) == row.edges
    for tangent in (spec.forward(reverse.asked), spec.second(reverse.asked, reverse.asked)):
        assert ("prange(" in tangent.derived.text) == (not row.serial)
    assert "prange" not in serial(name).derived.whole


@pytest.mark.parametrize("name", THREADED)
def test_parts_give_the_derivative_of_the_loop(name: str, plain: None, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = serial(name).gradients()
    for longest in (thread_parts._LONGEST, 100, 1):
        monkeypatch.setattr(thread_parts, "_LONGEST", longest)
        found = Reverse(ROWS[name].kernel, name).gradients()
        for one, other in expected.items():
            assert np.allclose(found[one], other, rtol=1e-13, atol=1e-14)


def compiled_bits(name: str) -> None:
    """Write whether the compiled derivatives are those of Python, with the same bits for all numbers of threads."""
    reverse = Reverse(ROWS[name].kernel, name)
    by_threads = []
    for threads in (1, 2, 4):
        numba.set_num_threads(threads)
        by_threads.append(reverse.gradients())
    os.environ["NBGRAD_DISABLE_JIT"] = "1"
    expected = serial(name).gradients()
    same = all(np.array_equal(one[k], by_threads[0][k]) for one in by_threads for k in one)
    right = all(np.allclose(by_threads[0][k], expected[k], rtol=1e-12, atol=1e-13) for k in expected)
    sys.stdout.write(f"{same} {right}\n")


@pytest.mark.parametrize("name", ["plane_stencil", pytest.param("tapes", marks=pytest.mark.slow)])
def test_bits_do_not_depend_on_threads(name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_NUM_THREADS": "4", "NBGRAD_CACHE_DIR": str(tmp_path)}
    code = f"from tests.test_adjoint_threads import compiled_bits; compiled_bits({name!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "True True\n", done.stderr


def test_compiled_derivatives_come_from_the_disk() -> None:
    first = Reverse(ROWS["pushed"].kernel, "pushed").gradients()
    again = Reverse(ROWS["pushed"].kernel, "pushed")
    found = again.gradients()
    assert sum(vars(again.derived.function)["_cache_hits"].values()) == 1
    assert all(np.array_equal(found[name], first[name]) for name in first)


def test_the_text_runs_as_it_is(plain: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    reverse = Reverse(ROWS["pair_energy"].kernel, "pair_energy")
    namespace: dict[str, Any] = {}
    exec(RuleText(reverse.spec).source, namespace)
    found = np.zeros((21, 3))
    cotangent = np.random.default_rng(5).standard_normal(())
    namespace["pair_energy_rule"](*ROWS["pair_energy"].arguments, np.zeros(()), np.asarray(cotangent), found)
    assert np.allclose(found, reverse.gradients()["p"], rtol=1e-14)
