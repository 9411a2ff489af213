"""accumulate, reduceat and at of NumPy's ufuncs: as NumPy's on arrays, with derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError, RangeError
from nbgrad.transforms.arguments import lift

from .agreement import agree, check_derivative

pytestmark = pytest.mark.unoptimized

X = np.array([[1.5, -2.0, 0.5, 3.0, -1.0], [0.25, 4.0, -0.75, 2.0, 1.0]])
N = np.array([[6, 4, 12, 9, 3], [1, 7, 2, 5, 8]])

SCANS = "add multiply maximum minimum fmax fmin logaddexp logaddexp2 hypot subtract divide".split()


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_accumulate(name: str, axis: int) -> None:
    def function(x: Any) -> Any:
        return getattr(np, name).accumulate(x, axis=axis)

    for array in (X, X.astype(np.float32), X[:, :1], X[:, :0], X[0] if axis != 1 else X, N):
        agree(function, array)
    check_derivative(function, X)


@pytest.mark.parametrize(
    "name", "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor gcd lcm".split()
)
def test_accumulate_of_integers(name: str) -> None:
    agree(getattr(np, name).accumulate, N)
    agree(getattr(np, name).accumulate, N[:, :1], axis=1)


def test_accumulate_that_cannot_be_grouped() -> None:
    with pytest.raises(DtypeError, match=r"power\.accumulate"):
        np.power.accumulate(lift(X))


@pytest.mark.parametrize("name", "add multiply maximum minimum".split())
@pytest.mark.parametrize("indices", [[0, 2, 3], [3, 1, 1, 4], [2], [0, 1, 2, 3, 4]])
def test_reduceat(name: str, indices: list[int]) -> None:
    def function(x: Any) -> Any:
        return getattr(np, name).reduceat(x, indices, axis=1)

    agree(function, X)
    agree(function, N)
    check_derivative(function, X)
    agree(getattr(np, name).reduceat, X, [1, 0])


def test_many_segments() -> None:
    x = np.linspace(-1, 1, 120).reshape(2, 60)
    starts = np.array([1, 2, 5, *range(6, 60, 2)])
    agree(np.add.reduceat, x, starts, axis=1)
    agree(np.add.reduceat, x.T.copy(), starts)
    check_derivative(lambda v: np.add.reduceat(v * v, starts, axis=1), x)
    with pytest.raises(RangeError, match="0 to 4"):
        np.add.reduceat(lift(X), [0, 5], axis=1)


AT = "add subtract multiply divide maximum minimum fmax fmin power arctan2".split()
KEYS: list[Any] = [
    np.array([0, 1, 0, 0]),
    (slice(None), np.array([4, 2, 4])),
    X > 0,
    (0, slice(1, 3)),
    (np.array([0, 0, 1]), np.array([2, 2, 2])),
]


@pytest.mark.parametrize("name", AT)
@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_at(name: str, key: Any) -> None:
    def function(x: Any, v: Any) -> Any:
        z = x * 1.0
        getattr(np, name).at(z, key, v)
        return z

    base = np.abs(X)
    values = np.linspace(0.7, 2.1, X[key].size).reshape(X[key].shape)
    agree(function, base, values)
    agree(function, base, np.array(1.3))
    check_derivative(function, base, values)


def test_at_of_one_operand() -> None:
    def function(x: Any) -> Any:
        z = x * 1.0
        np.square.at(z, np.array([0, 0]))
        return z

    agree(function, X)
    check_derivative(function, X)


def test_at_of_integers() -> None:
    def function(n: Any) -> Any:
        z = n * 1
        np.bitwise_or.at(z, np.array([1, 1]), 8)
        return z

    agree(function, N)
    expected, found = N.copy(), lift(N) * 1
    np.divide.at(expected, [0], 2)  # NumPy casts what it writes
    np.divide.at(found, [0], 2)
    np.testing.assert_array_equal(np.asarray(found), expected)
    with pytest.raises(ArgumentError, match="65 times"):
        np.power.at(lift(X), np.zeros(65, int), 1.0)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_at_positions_that_calls_bring(name: str) -> None:
    """Positions may be arguments of a compiled function, and be named any number of times."""
    generator = np.random.default_rng(3)
    x, y, places = generator.normal(size=20), generator.normal(size=500), generator.integers(-20, 20, 500)

    def function(x: Any, y: Any, places: Any) -> Any:
        z = x * 1.0
        getattr(np, name).at(z, places, y)
        return z

    compiled = nb.jit(function)
    for values in (y, -y):
        for number in (1.0, np.nan, np.inf, -np.inf):
            values[7] = number
            expected = x.copy()
            with np.errstate(invalid="ignore"):
                getattr(np, name).at(expected, places, values)
            np.testing.assert_array_equal(compiled(x, values, places), expected)
    whole = nb.jit(function)(np.arange(3), np.array([5, -4, 1]), np.array([0, 2, 2]))
    np.testing.assert_array_equal(whole, [5, 1, 2] if name == "maximum" else [0, 1, -4])


@pytest.mark.parametrize("name", ["multiply", "fmax", "logaddexp", "hypot", "bitwise_xor"])
def test_values_joined_at_positions_that_calls_bring(name: str) -> None:
    generator = np.random.default_rng(4)
    whole = name == "bitwise_xor"
    x, y = generator.normal(size=(3, 4)), generator.normal(size=300) / 4 + 1
    x, y = ((values * 100).astype(int) if whole else values for values in (x, y))
    y[5] = 0
    rows, columns = generator.integers(-3, 3, 300), generator.integers(0, 4, 300)
    rows[:100] = 1
    columns[:100] = 2

    def function(x: Any, y: Any, rows: Any, columns: Any) -> Any:
        z = x * 1
        getattr(np, name).at(z, (rows, columns), y)
        return z

    expected = function(x, y, rows, columns)
    np.testing.assert_allclose(nb.jit(function)(x, y, rows, columns), expected, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(function(lift(x), lift(y), rows, columns)), expected, rtol=1e-12)
    if not whole:
        nb.check_grads(lambda x, y: function(x, y, rows, columns), (x, y[:300]))


def test_gradients_of_extremes_at_positions_go_to_all_in_equal_parts() -> None:
    """Position 0 holds 3 and is named with 3, 3 and 1: three of these are its largest element."""

    def function(x: Any, y: Any, places: Any) -> Any:
        z = x * 1.0
        np.maximum.at(z, places, y)
        return np.sum(z * np.array([3.0, 5.0]))

    x, y, places = np.array([3.0, 4.0]), np.array([3.0, 3.0, 1.0]), np.array([0, 0, 0])
    by_x, by_y = nb.jit(nb.grad(function, (0, 1)))(x, y, places)
    np.testing.assert_allclose(by_x, [1.0, 5.0], rtol=1e-15)
    np.testing.assert_allclose(by_y, [1.0, 1.0, 0.0], rtol=1e-15)
