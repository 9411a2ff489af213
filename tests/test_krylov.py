"""Generalised minimal residuals beside a direct solution, and beside the least residual of a Krylov space."""

from __future__ import annotations

import numpy as np
import pytest

from nbgrad.solvers.krylov import gmres

RNG = np.random.default_rng(0)
MATRIX = np.eye(40) + 0.3 * RNG.normal(size=(40, 40)) / np.sqrt(40)
RIGHT = RNG.normal(size=40)


@pytest.mark.parametrize("restart", [5, 40])
def test_solution(restart: int) -> None:
    x, info = gmres(lambda v: MATRIX @ v, RIGHT, None, 1e-12, restart, 100)
    assert info == 0
    np.testing.assert_allclose(x, np.linalg.solve(MATRIX, RIGHT), atol=1e-11)


def test_the_residual_of_a_cycle_is_the_least() -> None:
    x, info = gmres(lambda v: MATRIX @ v, RIGHT, None, 1e-12, 4, 1)
    space = np.stack([np.linalg.matrix_power(MATRIX, k) @ RIGHT for k in range(4)], axis=1)
    least = np.linalg.lstsq(MATRIX @ space, RIGHT, rcond=None)[1][0]
    assert info == 1
    assert np.sum((RIGHT - MATRIX @ x) ** 2) == pytest.approx(least, rel=1e-9)


def test_preconditioner_and_start() -> None:
    scales = np.logspace(0, 6, 40)
    calls = []

    def product(v: np.ndarray) -> np.ndarray:
        calls.append(1)
        return MATRIX @ (scales * v)

    exact = np.linalg.solve(MATRIX * scales, RIGHT)
    x, info = gmres(product, RIGHT, np.ones(40), 1e-10, 40, 20, lambda v: v / scales)
    assert info == 0 and len(calls) < 80
    np.testing.assert_allclose(x, exact, rtol=1e-6, atol=1e-12)
    calls.clear()
    assert gmres(product, RIGHT, exact, 1e-6, 40, 20)[1] == 0
    assert len(calls) == 1, "a start that is the solution needs nothing"


def test_systems_without_solution_end() -> None:
    singular = np.diag([1.0, 1.0, 0.0])
    x, info = gmres(lambda v: singular @ v, np.ones(3), None, 1e-12, 3, 1000)
    assert info > 0 and np.isfinite(x).all()
    turn = np.roll(np.eye(4), 1, axis=0)  # restarts gain nothing
    assert 0 < gmres(lambda v: turn @ v, np.eye(4)[0], None, 1e-12, 2, 10**6)[1] < 5
    assert gmres(lambda v: v * np.nan, np.ones(3), None, 1e-12, 3, 1000)[1] > 0


def test_an_exact_end_of_the_space() -> None:
    """A right-hand side that is an eigenvector takes one product."""
    x, info = gmres(lambda v: 3.0 * v, RIGHT, None, 1e-12, 40, 10)
    assert info == 0
    np.testing.assert_allclose(x, RIGHT / 3.0, rtol=1e-14)
