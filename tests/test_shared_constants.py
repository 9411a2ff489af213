"""Large plain arrays that turns of a loop share or compute: the same contents are one constant, other ones are not.

Values are NumPy's own, derivatives those on paper or differences of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
import nbgrad.numpy as xp

pytestmark = pytest.mark.unoptimized(but=16)


def _pairs(count: int = 1500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points in space, and two arrays of positions of more elements than a loop would take a copy of for each turn."""
    rng = np.random.default_rng(11)
    return rng.normal(size=(40, 3)), rng.integers(0, 40, count), rng.integers(0, 40, count)


def _spread(x: Any, first: Any, second: Any, turns: int = 60) -> Any:
    """Points that attract each other by pairs: positions are made of the indices in each turn anew."""
    v = x * 0.0
    for _ in range(turns):
        apart = x[first] - x[second]
        pull = xp.zeros_like(x)
        np.add.at(pull, first, apart)
        v = v + 1e-4 * pull / (1.0 + np.sum(apart * apart, axis=1).mean())
        x = x - 0.01 * v
    return np.sum(v * v)


@pytest.mark.parametrize("given", ["closed over", "as arguments", "columns"])
def test_indices_that_turns_share(given: str) -> None:
    """One loop, whose derivative has the index's own zeros."""
    x, first, second = _pairs()
    if given == "columns":
        first, second = np.stack([first, second], axis=1).T
    if given == "as arguments":
        function = nb.jit(nb.grad(_spread))
        arguments: tuple[Any, ...] = (x, first, second)
    else:
        function = nb.jit(nb.grad(lambda x: _spread(x, first, second)))
        arguments = (x,)
    found = function(*arguments)
    step = np.random.default_rng(2).normal(size=x.shape)
    sides = [_spread_plainly(x + sign * 1e-5 * step, first, second) for sign in (1, -1)]
    np.testing.assert_allclose(np.sum(found * step), (sides[0] - sides[1]) / 2e-5, rtol=1e-6)
    loops = "found while recording" if given != "as arguments" else "turns"
    assert loops in str(nb.explain(function, *arguments)) and "written out" not in str(nb.explain(function, *arguments))


def _spread_plainly(x: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    v = x * 0.0
    for _ in range(60):
        apart = x[first] - x[second]
        pull = np.zeros_like(x)
        np.add.at(pull, first, apart)
        v = v + 1e-4 * pull / (1.0 + np.sum(apart * apart, axis=1).mean())
        x = x - 0.01 * v
    return float(np.sum(v * v))


COMPUTED: dict[str, Callable[[int, np.ndarray], np.ndarray]] = {
    "the same": lambda turn, data: data * 2.0,
    "with another axis": lambda turn, data: data[:, None][:, 0],
    "other numbers": lambda turn, data: data + turn,
    "two by turns": lambda turn, data: data * (turn % 2),
    "the same for some turns": lambda turn, data: data * (turn // 20),
    "not a number": lambda turn, data: np.where(data > 0, data, np.nan),
    "zeros of another sign": lambda turn, data: np.where(data > 0, data, 0.0 if turn % 3 else -0.0),
    "another order": lambda turn, data: np.asfortranarray(data.reshape(100, 60)).reshape(-1, order="A"),
}
"""Plain arrays that a turn computes."""


@pytest.mark.parametrize("name", COMPUTED)
def test_plain_arrays_that_turns_compute(name: str) -> None:
    data = np.random.default_rng(4).normal(size=6000)

    def program(x: Any) -> Any:
        for turn in range(50):
            computed = COMPUTED[name](turn, data)
            x = x * 0.9 + np.where(np.isnan(computed), 1.0, computed) * 1e-3 + np.copysign(1e-3, computed)
        return x

    x = np.linspace(-1, 1, 6000)
    np.testing.assert_allclose(nb.jit(program)(x), program(x), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(nb.jit(nb.grad(lambda x: np.sum(program(x))))(x), 0.9**50, rtol=1e-12)
