"""Gradients of random kernels that overwrite arrays in nested loops, beside differences of the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

from .random_kernels import random_kernel

pytestmark = pytest.mark.unoptimized
STEP = 1e-6


def total(kernel: Callable[..., Any], arrays: list[np.ndarray], at: np.ndarray) -> float:
    """A number that depends on all results of a kernel."""
    u, m, c = [one.copy() for one in arrays]
    returned = kernel(u, m, c, at)
    return float(np.sum(np.sin(u)) + np.sum(np.cos(m)) + returned)


def check(seed: int) -> None:
    """Compare the gradient along a direction with differences of several steps: one that agrees is enough at kinks."""
    kernel, arrays, at, text = random_kernel(seed)
    derived = nb.kernel(kernel, check="never")

    def objective(*given: Any) -> Any:
        results = derived(*given, at)
        parts = list(results) if isinstance(results, tuple) else [results]
        returned = parts.pop()
        written = [name for name in "um" if any(f"{name}[" in line.split("=")[0] for line in stores(text))]
        by_name = dict(zip(written, parts, strict=True))
        u, m = by_name.get("u", given[0]), by_name.get("m", given[1])
        return np.sum(np.sin(u)) + np.sum(np.cos(m)) + returned

    found = nb.grad(objective, (0, 1, 2))(*arrays)
    random = np.random.default_rng(seed + 1)
    along = [random.standard_normal(one.shape) for one in arrays]
    slope = sum(float(np.sum(g * v)) for g, v in zip(found, along, strict=True))
    scale = sum(float(np.sum(np.abs(g * v))) for g, v in zip(found, along, strict=True))
    numeric = []
    for step in (STEP, STEP / 10, STEP * 10):
        ahead, behind = [
            total(kernel, [x + sign * step * v for x, v in zip(arrays, along, strict=True)], at) for sign in (1, -1)
        ]
        numeric.append((ahead - behind) / (2 * step))
    assert min(abs(slope - one) for one in numeric) <= 1e-5 * (scale + 1), f"{slope} {numeric}\n{text}"


def stores(text: str) -> list[str]:
    """The lines of a kernel that write to elements."""
    return [line for line in text.splitlines() if line.strip()[:2] in ("u[", "m[")]


@pytest.mark.parametrize("seed", range(8))
def test_gradients_are_those_of_the_kernels(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    check(seed)


@pytest.mark.parametrize("seed", range(8, 12))
def test_logs_give_the_same_as_tapes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    monkeypatch.setattr("nbgrad.adjoints.reverse.is_no_longer", lambda *_: False)
    check(seed)


@pytest.mark.fuzz
def test_gradients_of_many_kernels(pytestconfig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    start, count = pytestconfig.getoption("seed") * 1_000_003, pytestconfig.getoption("count") // 15
    for seed in range(start, start + count):
        check(seed)
