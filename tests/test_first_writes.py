"""Cotangents that are written before they are read: gradients of linear kernels are the transposed matrices, whatever
was in the memory of the gradients before (a first call finds NaN there), for boxes at every place of an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import nbgrad as nb


def whole(x: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = 3.0 * x[i, j]


def inner(x: Any, out: Any) -> None:
    for i in range(2, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 2):
            out[i, j] = x[i + 1, j] - 2.0 * x[i, j - 1]


def column(x: Any, out: Any) -> None:
    for i in range(1, x.shape[0]):
        out[i, 0] = 2.0 * x[i, 1]


def transposed(x: Any, out: Any) -> None:
    for j in range(x.shape[1]):
        for i in range(3, x.shape[0]):
            out[i, j] = 5.0 * x[i, j]


def backwards(x: Any, out: Any) -> None:
    n = x.shape[0]
    for i in range(n):
        for j in range(x.shape[1]):
            out[i, j] = x[n - 1 - i, j]


def triangle(x: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(min(i, x.shape[1])):
            out[i, j] = 7.0 * x[i, j]


def twice(x: Any, out: Any) -> None:
    for k in range(2):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j] += (k + 1.0) * x[i, j]


def guarded(x: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if j != 1:
                out[i, j] = 4.0 * x[i, j]


def until(x: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        if i == 3:
            break
        for j in range(x.shape[1]):
            out[i, j] = 6.0 * x[i, j]


def before_and_after(x: Any, out: Any) -> None:
    if x.shape[0] > 1 and x.shape[1] > 1:
        out[0, 0] += x[1, 1]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] += x[i, j]
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] += x[i - 1, j]


def rows_at_once(x: Any, out: Any) -> None:
    for i in numba.prange(1, x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = 2.0 * x[i, j]


def wrapped(x: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i - 1, j]


KERNELS = [
    whole,
    inner,
    column,
    transposed,
    backwards,
    triangle,
    twice,
    guarded,
    until,
    before_and_after,
    rows_at_once,
    wrapped,
]
SHAPES = [(6, 7), (4, 4), (3, 2), (2, 2), (1, 3), (0, 3), (3, 0)]


@pytest.mark.parametrize("plain", KERNELS, ids=lambda one: one.__name__)
def test_gradients_are_transposed_matrices(plain: Callable[..., None]) -> None:
    kernel = nb.kernel(numba.njit(parallel=plain is rows_at_once)(plain), check="never")
    for shape in SHAPES:
        if plain is column and shape[1] < 2:
            continue
        size = int(np.prod(shape))
        matrix = np.zeros((size, size))
        for k in range(size):
            out = np.zeros(shape)
            plain(np.eye(size)[k].reshape(shape), out)
            matrix[:, k] = out.ravel()
        weights = np.cos(np.arange(float(size)))

        def loss(x: Any, shape: tuple[int, ...] = shape, weights: np.ndarray = weights) -> Any:
            return np.sum(weights.reshape(shape) * kernel(x, np.zeros(shape)))

        for gradient in (nb.grad(loss), nb.jit(nb.grad(loss))):
            found = gradient(np.ones(shape))
            np.testing.assert_allclose(found.ravel(), matrix.T @ weights, rtol=1e-14, atol=1e-14)


@numba.njit
def _cube(x, out):  # type: ignore[no-untyped-def]
    for i in range(1, x.shape[0] - 1):
        for j in range(x.shape[1]):
            for k in range(2, x.shape[2]):
                out[i, j, k] = x[i, j, k] ** 2


@pytest.mark.parametrize("shape", [(4, 3, 5), (2, 3, 5), (3, 1, 2), (3, 2, 1)])
def test_three_axes_and_second_derivatives(shape: tuple[int, ...]) -> None:
    kernel = nb.kernel(_cube)
    x = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    inside = np.zeros(shape)
    inside[1:-1, :, 2:] = 1.0

    def loss(x: Any) -> Any:
        return np.sum(kernel(x, np.zeros(shape)))

    np.testing.assert_array_equal(nb.grad(loss)(x), 2.0 * x * inside)
    np.testing.assert_array_equal(nb.hvp(loss, x, x), 2.0 * x * inside)


def test_no_array_of_zeros_is_asked_for() -> None:
    kernel = nb.kernel(numba.njit(inner))
    kernel(np.ones((6, 6)), np.zeros((6, 6)))
    text = kernel.vjp.source
    assert "x_gradient[...] = 0.0" not in text
    assert "x_b[" in text
