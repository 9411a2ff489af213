"""`nb.explain` of kernels: what their derivatives store, in bytes that follow from the kernels by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import njit

import nbgrad as nb
from nbgrad.errors import ArgumentError

pytestmark = pytest.mark.unoptimized


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels and their derivatives run as Python."""
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")


@njit
def pointwise(x: Any, out: Any) -> None:
    for i in range(len(x)):
        out[i] = math.exp(x[i])


@njit
def carried(x: Any) -> float:
    s = 0.5
    for i in range(len(x)):
        s = s * math.sin(x[i])
    return s


@njit
def two_carried(x: Any, rows: int) -> float:
    total = 0.0
    for k in range(rows):
        s = total
        for i in range(len(x)):
            s = s * math.sin(x[i])
        total += s * s + k
    return total


@njit
def filtered(u: Any, c: Any) -> None:
    for i in range(1, len(u)):
        u[i] = math.sin(u[i - 1]) * c[i]


@njit
def sweeps(u: Any, times: int) -> None:
    for _ in range(times):
        for i in range(1, len(u) - 1):
            u[i] = 0.5 * u[i - 1] * u[i + 1] + math.sin(u[i])


@njit
def least(table: Any, cost: Any, back: Any) -> None:
    for i in range(1, len(table)):
        for k in range(len(back)):
            reached = table[i - back[k]] + cost[i]
            if reached < table[i]:
                table[i] = reached


@njit
def many_reads(u: Any, times: int) -> None:
    for _ in range(times):
        for i in range(3, len(u) - 3):
            a, b, c = u[i - 3] * u[i + 3], u[i - 2] * u[i + 2], u[i - 1] * u[i + 1]
            u[i] = math.sin(a + b + c) * math.cos(a * b * c)


@njit
def twice(u: Any, w: Any) -> None:
    for i in range(1, len(u) - 1):
        for _ in range(3):
            w[i] = math.sin(w[i] * u[i])
            w[0] += 0.1 * w[i] * w[0]
    for _ in range(2):
        for i in range(1, len(u) - 1):
            w[i] = w[i - 1] * w[i + 1] + 0.5 * math.sin(u[i])


X = np.linspace(0.1, 0.9, 11)


@pytest.mark.parametrize(
    ("kernel", "arguments", "expected"),
    [
        # Nothing is carried and nothing is read again.
        (pointwise, (X, np.zeros(11)), 0),
        # One number for each turn.
        (carried, (X,), 11 * 8),
        # The sum of the lengths of the loops, not their product: 5 totals, and 11 s for the turn at hand, with room for
        # half as many more, as the number of inner turns may grow.
        (two_carried, (X, 5), 5 * 8 + (11 + 5) * 8),
        # u is an argument, which must stay as it is: a copy of it has the results, which are read backwards.
        (filtered, (X, X.copy()), 11 * 8),
        # A copy, and the three elements that each of 4 * 9 turns reads, which later turns overwrite.
        (sweeps, (X, 4), 11 * 8 + 3 * 4 * 9 * 8),
        # A copy, and one byte for the branch of each of 10 * 2 turns.
        (least, (X, X.copy(), np.array([1, 1])), 11 * 8 + 10 * 2),
    ],
)
def test_bytes_are_those_of_the_scheme(kernel: Any, arguments: tuple[Any, ...], expected: int) -> None:
    said = nb.explain(nb.kernel(kernel), *arguments).splitlines()
    stored = [line for line in said if line.startswith("stored")]
    if expected:
        assert stored == [f"stored: {expected:,} bytes beside the arguments and their gradients"]
    else:
        assert stored == ["stored: nothing; all values are computed again from the arguments"]
    assert said[-1].startswith("kernel ")


def test_the_users_lines_are_named() -> None:
    function = nb.kernel(two_carried)
    function(X, 5)
    said = nb.explain(function)
    first = two_carried.py_func.__code__.co_firstlineno
    outer, inner = (f"the loop at test_kernel_storage.py:{first + k}" for k in (3, 5))
    assert f"total, its value at the start of each turn ({outer})" in said
    assert f"s, its value at the start of each turn ({inner})" in said
    assert "bytes" not in said
    assert "us, derivative" not in said


def test_tapes_are_not_much_longer_than_logs() -> None:
    # Six of the elements that a turn reads are overwritten later, but only one element is, in each of 20 * 5 turns.
    function = nb.kernel(many_reads)
    function(X, 20)
    said = nb.explain(function)
    assert "the elements that are overwritten" in said
    assert "elements that are overwritten after they were read" not in said


def test_each_nest_has_tapes_of_its_own() -> None:
    function = nb.kernel(twice)
    function(X, X.copy())
    said = nb.explain(function)
    assert "the elements that are overwritten" not in said
    first = twice.py_func.__code__.co_firstlineno
    for line in (first + 3, first + 7):
        assert (
            f"w, elements that are overwritten after they were read (the loop at test_kernel_storage.py:{line})" in said
        )


def test_errors() -> None:
    with pytest.raises(ArgumentError, match=r"Call carried\(\) once"):
        nb.explain(nb.kernel(carried))
