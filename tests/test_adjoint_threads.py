"""Derivatives of kernels with loops over `prange`, on several threads: `nb.kernel`.

First and second derivatives of these kernels are compared with differences by test_adjoints.py, on one thread. Here
they are compiled: the bits do not depend on the number of threads, and the values are those of the same kernel without
threads.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit

import nbgrad as nb
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
def threads() -> Iterator[None]:
    """The number of threads is that of before at the end."""
    before = nb.get_num_threads()
    yield
    nb.set_num_threads(before)


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


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("name", THREADED)
def test_bits_do_not_depend_on_threads(name: str, threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    reverse, found = Reverse(ROWS[name].kernel, name), []
    for count in (1, 2, 4):
        nb.set_num_threads(count)
        found.append(reverse.gradients())
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    expected = serial(name).gradients()
    for one in expected:
        assert np.allclose(found[0][one], expected[one], rtol=1e-12, atol=1e-13)
        assert all(np.array_equal(found[0][one], other[one]) for other in found[1:])


def test_numba_compiles_what_machine_code_does_not_know() -> None:
    expected = Reverse(ROWS["pushed"].kernel, "pushed").gradients()
    for hits in (None, 1):
        reverse = Reverse(ROWS["pushed"].kernel, "pushed")
        vars(reverse.derived)["function"] = function = reverse.derived.by_numba()
        found = reverse.gradients()
        assert all(np.allclose(found[name], expected[name], rtol=1e-13) for name in expected)
        assert hits is None or sum(vars(function)["_cache_hits"].values()) == hits


def test_the_text_runs_as_it_is(plain: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    reverse = Reverse(ROWS["pair_energy"].kernel, "pair_energy")
    namespace: dict[str, Any] = {}
    exec(RuleText(reverse.spec).source, namespace)
    found = np.zeros((21, 3))
    cotangent = np.random.default_rng(5).standard_normal(())
    namespace["pair_energy_rule"](*ROWS["pair_energy"].arguments, np.zeros(()), np.asarray(cotangent), found)
    assert np.allclose(found, reverse.gradients()["p"], rtol=1e-14)
