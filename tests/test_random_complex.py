"""Random programs on complex arrays: gradients are those of differences, compiled or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbgrad as nb

from .operation import interpreted, richardson

pytestmark = pytest.mark.unoptimized(but=16)

SHAPE = (2, 3)
Step = Callable[..., Any]

SMOOTH: dict[str, Step] = {
    "exp": lambda z: np.exp(z / (1 + np.abs(z))),
    "sin": lambda z: np.sin(z / (1 + np.abs(z))),
    "tanh": lambda z: np.tanh(z / (2 + np.abs(z))),
    "log": lambda z: np.log(z + 4),
    "sqrt": lambda z: np.sqrt(z * z + 9j + 20),
    "conj": np.conj,
    "real": lambda z: np.real(z) * (1 + 2j),
    "imag": lambda z: np.imag(z) - z,
    "abs": lambda z: np.abs(z + 0.3) * z,
    "angle": lambda z: np.angle(z + 5),
    "square": np.square,
    "reciprocal": lambda z: 1 / (z + 6),
    "power": lambda z: (z + 5) ** 1.5,
    "scaled": lambda z: 1j * z * 0.5,
    "transposed": lambda z: (z.T @ z / (1 + np.sum(np.abs(z) ** 2)))[:2],
    "cumsum": lambda z: np.cumsum(z, axis=1) * 0.3,
    "cumprod": lambda z: np.cumprod(z / (1 + np.abs(z)), axis=0),
    "flip": lambda z: z[::-1, ::-1] * z,
    "roll": lambda z: np.roll(z, 1, axis=1) - z,
    "sum": lambda z: z - np.sum(z, axis=0) / 3,
    "mean": lambda z: z * np.mean(z),
    "gather": lambda z: z[:, [2, 0, 0]] * z[[1]],
    "where": lambda z: np.where([True, False, True], z * z, np.conj(z)),
    "parts": lambda z: z.real * z.imag + 1j * np.hypot(z.real, z.imag + 3),
    "stack": lambda z: np.stack([z[0], z[1] * 1j]),
    "einsum": lambda z: np.einsum("ij,kj->ki", z, np.conj(z))[:, [0, 1, 1]] / (1 + np.sum(np.abs(z) ** 2)),
    "solve": lambda z: np.linalg.solve(z @ np.conj(z.T) + 3 * np.eye(2), z),
    "prod": lambda z: z + np.prod(z / (1 + np.abs(z)), axis=1, keepdims=True),
    "std": lambda z: z * np.std(z),
    "assigned": lambda z: assigned(z),
}
JOINED: dict[str, Step] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": lambda x, y: x * y / 2,
    "divide": lambda x, y: x / (1 + np.abs(y) ** 2),
    "real factor": lambda x, y: np.real(x) * y,
    "outer": lambda x, y: np.outer(x[:, 0], y[0]),
    "pair": lambda x, y: np.real(x) + 1j * np.imag(y),
    "vdot": lambda x, y: x - np.vdot(x, y) * 0.1,
}


def assigned(z: Any) -> Any:
    y = z * 1.0
    y[0] = z[1] * 1j
    y[:, 1] += z[:, 0]
    return y


Program = list[tuple[str, int, int]]


def run(program: Program, z: Any, x: Any) -> Any:
    """Each step takes earlier results; the last ones are summed up to a real number."""
    values = [z, x * (0.5 + 1j)]
    for name, first, second in program:
        one, other = values[first % len(values)], values[second % len(values)]
        values.append(SMOOTH[name](one) if name in SMOOTH else JOINED[name](one, other))
    weights = np.arange(1.0, 7.0).reshape(SHAPE) * (1 - 0.5j)
    last = values[-1]
    return np.sum(np.real(weights * last)) + 0.1 * np.sum(np.abs(last) ** 2)


programs = st.lists(
    st.tuples(st.sampled_from([*SMOOTH, *JOINED]), st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=6
)


def limit(estimate: Callable[[float], Any], step: float, tolerance: float) -> Any:
    """What differences tend to; None near a point without derivative, where smaller steps give something else."""
    one, other = richardson(estimate, step), richardson(estimate, step / 3)
    if not np.isfinite(one) or abs(one) > 1e6 or not abs(one - other) <= tolerance * max(1.0, abs(one)):
        return None
    return one


def check(program: Program, seed: int, compiled: bool) -> None:
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, SHAPE) + 1j * rng.uniform(-1, 1, SHAPE)
    x = rng.uniform(-1, 1, SHAPE)
    d = rng.uniform(-1, 1, SHAPE) + 1j * rng.uniform(-1, 1, SHAPE)
    e = rng.uniform(-1, 1, SHAPE)

    def function(z: Any, x: Any) -> Any:
        return run(program, z, x)

    def gradient(z: Any, x: Any) -> Any:
        return nb.grad(function, (0, 1))(z, x)

    def slope(h: float) -> Any:
        return (function(z + h * d, x + h * e) - function(z - h * d, x - h * e)) / (2 * h)

    def bend(h: float) -> Any:
        return (function(z + h * d, x + h * e) - 2 * function(z, x) + function(z - h * d, x - h * e)) / (h * h)

    with interpreted():
        want, bent = limit(slope, 1e-2, 3e-8), limit(bend, 2e-2, 1e-6)
        if want is None:
            return
        scale = 1e-7 * max(1.0, abs(want))
        value, tangent = nb.jvp(function, (z, x), (d, e))
        np.testing.assert_allclose(value, function(z, x), rtol=1e-11)
        np.testing.assert_allclose(tangent, want, rtol=1e-7, atol=scale)
        by_z, by_x = gradient(z, x)
        assert by_z.dtype == np.complex128 and by_x.dtype == np.float64
        found = np.sum(np.real(np.conj(by_z) * d)) + np.sum(by_x * e)
        np.testing.assert_allclose(found, want, rtol=1e-7, atol=scale)
        if bent is not None:
            along = nb.jvp(gradient, (z, x), (d, e))[1]
            second = np.sum(np.real(np.conj(along[0]) * d)) + np.sum(along[1] * e)
            np.testing.assert_allclose(second, bent, rtol=1e-5, atol=1e-5 * max(1.0, abs(want), abs(bent)))
    if compiled:
        with interpreted(on=False):
            jitted = nb.jit(gradient)
            for _ in range(2):
                for got, other in zip(jitted(z, x), (by_z, by_x), strict=True):
                    np.testing.assert_allclose(got, other, rtol=1e-9, atol=1e-9 * max(1.0, float(np.abs(other).max())))


@settings(max_examples=60)
@given(programs, st.integers(0, 1000))
def test_gradients_are_those_of_differences(program: Program, seed: int) -> None:
    check(program, seed, compiled=False)


@settings(max_examples=8)
@given(programs, st.integers(0, 1000))
def test_compiled_gradients(program: Program, seed: int) -> None:
    check(program, seed, compiled=True)


@pytest.mark.slow
@settings(max_examples=1500)
@given(programs, st.integers(0, 100_000))
def test_many(program: Program, seed: int) -> None:
    check(program, seed, compiled=seed % 8 == 0)
