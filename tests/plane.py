"""What the tests of functions of real and complex matrices share: are the value and all derivatives those of NumPy?

The reference is a difference of NumPy's (or SciPy's) own function along a random direction, in the plane for complex
numbers. The convention is that the gradient of a real L by z = x + i y is dL/dx + i dL/dy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nbgrad as nb

from .agreement import quiet

Function = Callable[..., Any]
STEP = 3e-4


def listed(result: Any) -> list[Any]:
    """The results of a function, of which there may be one."""
    return list(result) if isinstance(result, list | tuple) else [result]


def like(rng: np.random.Generator, array: Any) -> np.ndarray:
    """Random numbers, complex where an array is."""
    array = np.asarray(array)
    found = rng.normal(size=array.shape)
    return found + 1j * rng.normal(size=array.shape) if array.dtype.kind == "c" else found


def inner(a: Any, b: Any) -> float:
    """The inner product of two arrays as vectors of real numbers."""
    return float(np.sum(np.real(np.conj(a) * b)))


def slope(function: Callable[..., float], arrays: tuple[np.ndarray, ...], directions: list[np.ndarray]) -> float:
    """The derivative along a direction, by a central difference of fourth order."""

    def at(t: float) -> float:
        with quiet():
            return function(*[a + t * d for a, d in zip(arrays, directions, strict=True)])

    return (at(-2 * STEP) - 8 * at(-STEP) + 8 * at(STEP) - at(2 * STEP)) / (12 * STEP)


def check(
    function: Function,
    *arrays: np.ndarray,
    reference: Function | None = None,
    order: int = 2,
    tolerance: float = 1e-6,
) -> None:
    """Assert that a function has the values of NumPy and derivatives in both modes, to second order, that differences
    of it have."""
    rng = np.random.default_rng(11)
    reference = reference or function
    want = [np.asarray(part) for part in listed(reference(*arrays))]
    got = [part.asnumpy() for part in listed(function(*[nb.Tensor(a) for a in arrays]))]
    for one, other in zip(got, want, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * max(1.0, np.max(np.abs(other), initial=0.0)))
    weights = [like(rng, part) for part in want]

    def weighted(*values: Any) -> Any:
        total: Any = 0.0
        for weight, part in zip(weights, listed(function(*values)), strict=True):
            total = total + np.sum(np.real(np.conj(weight) * part))
        return total

    def plain(*values: np.ndarray) -> float:
        return sum(inner(weight, part) for weight, part in zip(weights, listed(reference(*values)), strict=True))

    positions = tuple(range(len(arrays)))
    directions = [like(rng, a) for a in arrays]
    expected = slope(plain, arrays, directions)
    scale = tolerance * (1 + abs(expected))
    gradients = gradient(weighted, positions, arrays)
    for g, a in zip(gradients, arrays, strict=True):
        assert (g.shape, g.dtype) == (a.shape, a.dtype)
    backward = sum(inner(g, d) for g, d in zip(gradients, directions, strict=True))
    assert abs(backward - expected) <= scale, f"reverse mode: {backward}, differences: {expected}"
    tangents = listed(nb.jvp(function, arrays, tuple(directions))[1])
    forward = sum(inner(weight, np.asarray(t)) for weight, t in zip(weights, tangents, strict=True))
    assert abs(forward - expected) <= scale, f"forward mode: {forward}, differences: {expected}"
    if order == 1:
        return

    def projected(*values: Any) -> Any:
        found = gradient(weighted, positions, values)
        total: Any = 0.0
        for d, g in zip(others, found, strict=True):
            total = total + np.sum(np.real(np.conj(d) * g))
        return total

    others = [like(rng, a) for a in arrays]
    expected = slope(lambda *values: float(projected(*values)), arrays, directions)
    found = sum(inner(g, d) for g, d in zip(gradient(projected, positions, arrays), directions, strict=True))
    assert abs(found - expected) <= 10 * tolerance * (1 + abs(expected)), f"second: {found}, differences: {expected}"


def gradient(function: Function, positions: tuple[int, ...], values: Any) -> tuple[Any, ...]:
    """The gradients by all arguments."""
    found = nb.grad(function, positions)(*values)
    return found if isinstance(found, tuple) else (found,)
