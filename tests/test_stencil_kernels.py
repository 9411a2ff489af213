"""Functions of `numba.stencil` in kernels that are differentiated: values by NumPy's slices, gradients by differences.

Numba compiles a stencil anew at each call from Python, so that most run as the loops that stand for them.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit

import nbgrad as nb
from nbgrad.adjoints.reading.numba_types import dtype_given
from nbgrad.adjoints.reading.stencil_kernels import is_stencil, stencil_kernel
from nbgrad.errors import ArgumentError

pytestmark = pytest.mark.unoptimized
stencil: Any = getattr(numba, "stencil")  # noqa: B009 - Numba's stubs leave it out
WEIGHT = 0.3


@stencil
def five_points(u, c):
    if c > 100.0:
        return 0.0
    return c * (u[0, 1] + u[0, -1] + u[1, 0] + u[-1, 0]) - WEIGHT * u[0, 0] * u[0, 1]


@stencil(neighborhood=((-2, 0),), standard_indexing=("weights",), cval=0.5)
def moving(x, weights):
    total = 0.0
    for k in range(-2, 1):
        total += x[k] * weights[k + 2]
    return total


@stencil
def without_literals(x, k):
    return x[k]


def as_kernel(function: Any, arguments: tuple[Any, ...], writes: bool = False) -> Any:
    """The kernel of a stencil for some arguments."""
    return stencil_kernel(function, [numba.typeof(one) for one in arguments], writes, dtype_given)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels and their derivatives run as Python."""
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")


def test_inner_points_and_borders(plain: None) -> None:
    assert is_stencil(five_points)
    u = np.random.default_rng(1).uniform(0.5, 1.5, (4, 5))
    expected = np.zeros((4, 5))
    around = u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1]
    expected[1:-1, 1:-1] = 0.7 * around - 0.3 * u[1:-1, 1:-1] * u[1:-1, 2:]
    kernel = nb.kernel(as_kernel(five_points, (u, 0.7)))
    assert np.allclose(kernel(u, 0.7), expected, rtol=1e-14)
    out = np.ones((4, 5))
    written = nb.kernel(as_kernel(five_points, (u, 0.7), True))(u, 0.7, out)
    assert np.array_equal(written[0], np.ones(5))
    assert np.allclose(written[1:-1, 1:-1], expected[1:-1, 1:-1], rtol=1e-14)
    x, weights = np.arange(6.0), np.array([1.0, 10.0, 100.0])
    smoothed = nb.kernel(as_kernel(moving, (x, weights)))(x, weights)
    assert np.allclose(smoothed, [0.5, 0.5, 210.0, 321.0, 432.0, 543.0], rtol=1e-15)


def test_gradients(plain: None) -> None:
    x, weights = np.arange(6.0), np.array([1.0, 10.0, 100.0])
    function = nb.kernel(as_kernel(moving, (x, weights)))
    by_x, by_weights = nb.grad(lambda x, w: np.sum(function(x, w)), (0, 1))(x, weights)
    # Each x counts with the weights of the windows that it is in, each weight with the sum of four numbers.
    assert np.allclose(by_x, [1.0, 11.0, 111.0, 111.0, 110.0, 100.0], rtol=1e-15)
    assert np.allclose(by_weights, [0 + 1 + 2 + 3, 1 + 2 + 3 + 4, 2 + 3 + 4 + 5], rtol=1e-15)


def test_indices_without_bounds(plain: None) -> None:
    with pytest.raises(ArgumentError, match=r"without_literals\(\) \(.*has indices that are no literals"):
        as_kernel(without_literals, (np.ones(3), 1))


@njit
def _twice(u, c):
    v = five_points(u, c)
    five_points(v * u, c, out=u)
    return np.sum(v * v)


@pytest.mark.slow
def test_stencils_that_a_kernel_calls() -> None:
    function = nb.kernel(_twice)
    u = np.random.default_rng(1).uniform(0.5, 1.5, (4, 4))

    def total(u: Any, c: Any) -> Any:
        after, squares = function(u, c)
        return np.sum(np.sin(after)) + squares

    _, by_c = nb.grad(total, (0, 1))(u, 0.7)
    near = [total(u, 0.7 + step) for step in (1e-6, -1e-6)]
    assert math.isclose(by_c, (near[0] - near[1]) / 2e-6, rel_tol=1e-7)
