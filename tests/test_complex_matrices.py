"""Complex matrices: solutions, inverses, determinants, Cholesky factors, triangular systems and sorting.

Values are NumPy's and SciPy's; derivatives are compared with differences of their functions in the plane.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import nbgrad as nb

pytestmark = pytest.mark.unoptimized

RNG = np.random.default_rng(5)


def random(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


A = random(2, 4, 4) + 3 * np.eye(4)
B = random(2, 4, 3)
POSITIVE = A @ A.conj().swapaxes(-1, -2)


def _from_hermitian(a: Any) -> Any:
    return np.linalg.cholesky(a @ np.conj(a).swapaxes(-1, -2))


CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "solve": (np.linalg.solve, (A, B)),
    "solve, real matrix": (lambda a, b: np.linalg.solve(a.real, b), (A, B)),
    "inv": (np.linalg.inv, (A,)),
    "det": (np.linalg.det, (A,)),
    "det of a large matrix": (np.linalg.det, (random(5, 5),)),
    "slogdet": (lambda a: np.linalg.slogdet(a)[1], (A,)),
    "cholesky": (_from_hermitian, (A,)),
    "sort": (lambda a: np.sort(a, axis=-1), (A,)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str) -> None:
    f, arguments = CASES[name]
    np.testing.assert_allclose(nb.jit(f)(*arguments), f(*arguments), rtol=1e-12, atol=1e-13)
    nb.check_grads(f, arguments, order=1 if name == "sort" else 2)
    single = [a.astype(np.complex64) for a in arguments]
    found = nb.jit(f)(*single)
    np.testing.assert_allclose(found, f(*arguments), rtol=1e-3, atol=1e-4)
    assert found.dtype == f(*single).dtype


def test_only_one_triangle_is_read() -> None:
    changed = POSITIVE + np.triu(random(2, 4, 4), 1)
    np.testing.assert_allclose(nb.jit(np.linalg.cholesky)(changed), np.linalg.cholesky(POSITIVE), rtol=1e-12)
    nb.check_grads(np.linalg.cholesky, (changed,))


@pytest.mark.parametrize(("lower", "trans", "unit"), list(itertools.product([False, True], [0, 1], [False, True])))
def test_triangular_systems(lower: bool, trans: int, unit: bool) -> None:
    options: dict[str, Any] = {"lower": lower, "trans": trans, "unit_diagonal": unit}

    def f(a: Any, b: Any) -> Any:
        if isinstance(a, nb.Tensor):
            return nb.numpy.solve_triangular(a, b, **options)
        return np.stack([scipy.linalg.solve_triangular(x, y, **options) for x, y in zip(a, b, strict=True)])

    np.testing.assert_allclose(nb.jit(f)(A, B), f(A, B), rtol=1e-12)
    nb.check_grads(f, (A, B))


def test_sorting_is_by_the_real_part_first() -> None:
    np.testing.assert_array_equal(nb.jit(np.sort)(np.round(A)), np.sort(np.round(A)))


def test_batches() -> None:
    np.testing.assert_allclose(nb.vmap(np.linalg.inv)(A), np.linalg.inv(A), rtol=1e-12)
    gradients = nb.vmap(nb.grad(lambda a: np.abs(np.linalg.det(a))))(A)
    size = np.abs(np.linalg.det(A))[:, None, None]
    # d|det a| = |det a| Re tr(inverse(a) da)
    np.testing.assert_allclose(gradients, size * np.linalg.inv(A).conj().swapaxes(-1, -2), rtol=1e-11)
