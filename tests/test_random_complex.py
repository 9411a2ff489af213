"""Random compositions of functions of real and complex arrays: compiled, mapped and differentiated, beside NumPy.

Every function is NumPy's, so that NumPy itself gives the values, and differences of it the derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

SHAPE = (3, 4)
UNARY: list[Callable[[Any], Any]] = [
    np.exp, np.sin, np.tanh, np.arctan, np.conj, np.negative, np.square, np.abs, np.real, np.imag, np.angle,
    lambda x: np.sqrt(x + 3), lambda x: np.log(x * x + 4), lambda x: 1 / (x + 2.5 + 1j), lambda x: x * (0.3 - 0.8j),
    lambda x: x[::-1], lambda x: x.T.reshape(SHAPE), lambda x: np.roll(x, 1, axis=1), lambda x: np.cumsum(x, axis=0),
    lambda x: x - np.mean(x, axis=1, keepdims=True), lambda x: np.where(np.abs(x) > 0.5, x, x * 2j),
    lambda x: x @ np.ones((4, 4)) / 4, lambda x: np.concatenate([x[:, 2:], x[:, :2] * 1j], axis=1),
    lambda x: x.astype(np.complex128), lambda x: np.sum(x, axis=0) + x, lambda x: np.cumprod(x / 2 + 0.5, axis=1),
]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    np.add, np.subtract, np.multiply, lambda x, y: x / (np.abs(y) + 1), lambda x, y: x / (y + 4),
    lambda x, y: x @ y.T @ np.ones((3, 4)) / 9, lambda x, y: np.where(np.real(x) > np.real(y), x, y),
    lambda x, y: np.einsum("ij,kj->ki", x, y) @ np.ones((3, 4)) / 9,
]  # fmt: skip


def composition(seed: int) -> Callable[..., Any]:
    """A function of two arrays, made of a dozen of the functions above."""
    rng = np.random.default_rng(seed)
    plan = [
        (int(rng.integers(len(UNARY) + 2 * len(BINARY))), *rng.integers(0, 1_000_000, 2).tolist()) for _ in range(12)
    ]

    def f(x: Any, z: Any) -> Any:
        known = [x, z]
        for number, first, second in plan:
            a, b = known[first % len(known)], known[second % len(known)]
            made = UNARY[number](a) if number < len(UNARY) else BINARY[(number - len(UNARY)) % len(BINARY)](a, b)
            # The size stays moderate, so that differences are accurate.
            known.append(made / (1 + np.mean(np.abs(made))))
        return known[-1] + known[-2]

    return f


def inner(a: Any, b: Any) -> float:
    """The real inner product, of complex numbers as of pairs."""
    return float(np.sum(np.real(np.conj(a) * b)))


@pytest.mark.parametrize("seed", range(20))
def test_random_compositions(seed: int) -> None:
    f = composition(seed)
    rng = np.random.default_rng(1000 + seed)

    def random() -> tuple[np.ndarray, np.ndarray]:
        return rng.normal(size=SHAPE), rng.normal(size=SHAPE) + 1j * rng.normal(size=SHAPE)

    x, z = random()
    value = f(x, z)
    np.testing.assert_allclose(nb.jit(f)(x, z), value, rtol=1e-10, atol=1e-12)
    dx, dz = random()
    h = 1e-5  # small, so that no branch is crossed
    expected = (f(x + h * dx, z + h * dz) - f(x - h * dx, z - h * dz)) / (2 * h)
    tangent = nb.jvp(f, (x, z), (dx, dz))[1]
    np.testing.assert_allclose(tangent, expected, rtol=1e-7, atol=1e-8)
    g = rng.normal(size=value.shape) + (1j * rng.normal(size=value.shape) if np.iscomplexobj(value) else 0)
    by_x, by_z = nb.vjp(f, x, z)[1](g)
    assert by_x.dtype == np.float64 and by_z.dtype == np.complex128
    np.testing.assert_allclose(inner(by_x, dx) + inner(by_z, dz), inner(g, tangent), rtol=1e-9, atol=1e-10)
    if seed % 5 == 0:
        batch = np.stack([z, z * 0.5j])
        mapped = nb.vmap(lambda z: f(nb.Tensor(x), z))(batch)
        np.testing.assert_allclose(np.asarray(mapped), np.stack([f(x, w) for w in batch]), rtol=1e-10, atol=1e-12)
