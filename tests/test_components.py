"""Short trailing axes taken apart: functions of points agree with NumPy and become one loop over the points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler.fuse import Special, fuse
from nbgrad.graph.builders import reduce, reshape
from nbgrad.graph.ir import elementwise, placeholder
from nbgrad.graph.simplify import simplify

pytestmark = pytest.mark.unoptimized

RNG = np.random.default_rng(11)
POINTS = RNG.normal(size=(200, 3))
OTHERS = RNG.normal(size=(200, 3))
MATRICES = RNG.normal(size=(100, 3, 3))
WIDE = RNG.normal(size=(40, 11))
CHOICE = RNG.integers(-40, 40, 300)


def cross(a: Any, b: Any) -> Any:
    """The cross product, from components."""
    parts = [a[:, i] * b[:, j] - a[:, j] * b[:, i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.stack(parts, axis=1)


def gathered(table: Any, b: Any) -> Any:
    """Slices of gathered rows, as in bundle adjustment."""
    rows = table[CHOICE]
    return np.sum((rows[:, 3:6] - rows[:, :3]) * rows[:, 9:10] + rows[:, 10:] ** 2 * rows[:, 6:9], axis=1)


def pairwise(a: Any, b: Any) -> Any:
    """Distances between all pairs of points."""
    apart = a[:, None, :] - b[None, :50]
    return np.sum(1.0 / np.sqrt(np.sum(apart**2, axis=-1) + 0.1), axis=1)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "norms": lambda a, b: np.sqrt(np.sum(a * a, axis=1)),
    "kept norms": lambda a, b: a / np.sqrt(np.sum(a * a, axis=1, keepdims=True)),
    "cross": cross,
    "cross of cross": lambda a, b: cross(a, cross(b, a)),
    "pairwise": pairwise,
    "means over points": lambda a, b: (a - a.mean(axis=0)) * b,
    "largest coordinate": lambda a, b: np.max(a * b, axis=1) - np.min(a, axis=1),
    "product of coordinates": lambda a, b: np.prod(a, axis=1),
    "reversed": lambda a, b: np.sin(a[:, ::-1]) * b,
    "strided": lambda a, b: np.exp(a[:, ::2]) * b[::-1, 1:],
    "joined": lambda a, b: np.concatenate([a[:, 1:] * b[:, :2], np.sin(b[:, :1])], axis=1),
    "joined points": lambda a, b: np.concatenate([a * 2, b[:10] ** 2]) * np.arange(3.0),
    "transposed": lambda a, b: (a * b[:, 1:2]).T[::-1],
    "reshaped": lambda a, b: (a * b[:, 1:2]).reshape(-1, 4, 3) + 1.0,
    "flattened": lambda a, b: np.cos(np.sum((a * b[:, 1:2]).reshape(-1, 24), axis=1)),
    "padded": lambda a, b: np.pad(a * b[:, :1], ((1, 2), (1, 0))),
    "by position": lambda a, b: a * np.arange(3.0) + np.where(np.arange(3) == 1, b, -a[:, :1]),
    "product with a matrix": lambda a, b: (a * b[:, :1]) @ np.arange(9.0).reshape(3, 3),
    "ties": lambda a, b: np.max(np.round(a), axis=1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_agree_with_numpy(name: str) -> None:
    function = FUNCTIONS[name]
    np.testing.assert_allclose(nb.jit(function)(POINTS, OTHERS), function(POINTS, OTHERS), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_agree_with_differences(name: str) -> None:
    function = FUNCTIONS[name]
    points, others = POINTS[:104], OTHERS[:104]
    nb.check_grads(lambda a, b: np.sum(np.sin(function(a, b))), (points, others), order=1)


def test_gathered_rows() -> None:
    np.testing.assert_allclose(nb.jit(gathered)(WIDE, 0.0), gathered(WIDE, 0.0), rtol=1e-14)
    nb.check_grads(lambda table: np.sum(np.sin(gathered(table, 0.0))), (WIDE,), order=1)


def test_matrices_at_points() -> None:
    def function(m: Any, v: Any) -> Any:
        turned = np.sum(m * v[:, None, :], axis=2)
        return np.sum(turned * np.swapaxes(m, 1, 2)[:, 0], axis=1)

    np.testing.assert_allclose(nb.jit(function)(MATRICES, POINTS[:100]), function(MATRICES, POINTS[:100]), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "bool"])
def test_dtypes(dtype: str) -> None:
    points = (POINTS * 3).astype(dtype)
    for function in (
        lambda a: np.max(a, axis=1),
        lambda a: np.where(a[:, :1], a, a[:, ::-1]),
        lambda a: np.any(a, axis=1),
        lambda a: np.sum(a[:, 1:], axis=1),
    ):
        result = nb.jit(function)(points)
        np.testing.assert_allclose(result, function(points), rtol=2e-3)
        assert result.dtype == function(points).dtype


def test_zero_coordinates_keep_infinities_apart() -> None:
    # A padded coordinate is zero, not zero times what lies elsewhere.
    infinite = np.where(np.arange(200)[:, None] % 7 == 0, np.inf, POINTS)

    def function(a: Any) -> Any:
        return np.pad(a[:, :1], ((0, 0), (0, 2))) + np.pad(a[:, 1:], ((0, 0), (0, 1)))

    np.testing.assert_array_equal(nb.jit(function)(infinite), function(infinite))


def test_a_function_of_points_is_one_loop() -> None:
    array = placeholder((500, 3), np.dtype(float), np.ones((500, 3)))
    length = reshape(reduce("sum", array * array, (1,)), (500, 1))
    (loop,) = fuse(simplify([elementwise("divide", array, length)])).steps
    assert not isinstance(loop, Special)
    assert loop.shape == (500,)
    assert len(loop.stores) == 3


def test_contiguous_arithmetic_is_left_alone() -> None:
    array = placeholder((500, 3), np.dtype(float), np.ones((500, 3)))
    (loop,) = fuse(simplify([array * array + array])).steps
    assert not isinstance(loop, Special)
    assert loop.shape == (1500,)
