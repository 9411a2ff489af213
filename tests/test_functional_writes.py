"""`x.at[k]`, JAX's copies with other elements, beside what NumPy writes into a copy."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import nbgrad as nb
import nbgrad.numpy as np
from nbgrad.errors import ArgumentError, RangeError

pytestmark = pytest.mark.unoptimized

A = numpy.random.default_rng(0).uniform(0.5, 2.0, (3, 4, 2))
X = numpy.array([0.5, 1.0, 2.0, 3.0])
OUTSIDE = numpy.array([1, 7, -1, -6])
"""Two indices of four elements are out of range."""
UFUNCS = {
    "add": numpy.add,
    "subtract": numpy.subtract,
    "multiply": numpy.multiply,
    "mul": numpy.multiply,
    "divide": numpy.divide,
    "power": numpy.power,
    "min": numpy.minimum,
    "max": numpy.maximum,
}
KEYS: list[Any] = [
    1,
    -1,
    slice(1, 3),
    numpy.array([0, 0, 2]),
    (numpy.array([0, 2]), slice(None), 1),
    (Ellipsis, numpy.array([1, 0])),
    (slice(None), numpy.array([1, 3]), numpy.array([0, 1])),
    (None, numpy.array([0, 1])),
    numpy.array([True, False, True]),
    (numpy.array([[0], [2]]), numpy.array([1, 2, 3])),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_copies_with_other_elements(key: Any) -> None:
    x = np.asarray(A)
    want = A.copy()
    want[key] = 0.75
    numpy.testing.assert_array_equal(x.at[key].set(0.75), want)
    numpy.testing.assert_array_equal(x.at[key].get(), A[key])
    for name, ufunc in UFUNCS.items():
        want = A.copy()
        ufunc.at(want, key, 0.75)
        numpy.testing.assert_allclose(getattr(x.at[key], name)(0.75), want)
    want = A.copy()
    want[key] = numpy.sin(want[key])
    numpy.testing.assert_allclose(x.at[key].apply(np.sin), want)
    numpy.testing.assert_array_equal(x, A)


def padded(ufunc: Any, fill: float, values: Any) -> Any:
    """Four elements with one behind them for all that is out of range."""
    whole = numpy.append(X, fill)
    index = numpy.array([1, 4, 3, 4])
    if ufunc is None:
        whole[index] = values
    else:
        ufunc.at(whole, index, values)
    return whole[:4]


@pytest.mark.parametrize("mode", ["drop", "fill"])
def test_what_is_out_of_range_is_left_out(mode: str) -> None:
    values = numpy.array([10.0, 20.0, 30.0, 40.0])
    for name, ufunc in {"set": None, **UFUNCS}.items():
        want = padded(ufunc, 1.0, values)

        def changed(x: Any, index: Any, name: str = name) -> Any:
            return getattr(x.at[index], name)(values, mode=mode)

        numpy.testing.assert_allclose(changed(np.asarray(X), OUTSIDE), want)
        numpy.testing.assert_allclose(nb.jit(changed)(X, OUTSIDE), want)
        numpy.testing.assert_allclose(nb.vmap(changed)(X[None], OUTSIDE[None])[0], want)
    numpy.testing.assert_allclose(np.asarray(X).at[OUTSIDE].get(mode=mode), [1.0, numpy.nan, 3.0, numpy.nan])
    assert np.arange(4).at[OUTSIDE].get(mode=mode).tolist() == [1, numpy.iinfo(int).min, 3, numpy.iinfo(int).min]
    squares = nb.grad(lambda x: np.sum(x.at[OUTSIDE].get(mode=mode, fill_value=7.0) ** 2))
    numpy.testing.assert_allclose(squares(X), [0.0, 2.0, 0.0, 6.0])


def test_the_nearest_index() -> None:
    x = np.asarray(X)
    assert x.at[OUTSIDE].get(mode="clip").tolist() == [1.0, 3.0, 3.0, 0.5]
    assert x.at[OUTSIDE].add(1.0, mode="clip").tolist() == [1.5, 2.0, 2.0, 5.0]
    assert x.at[9].set(0.0, mode="clip").tolist() == [0.5, 1.0, 2.0, 0.0]
    assert np.asarray(A).at[:, 9, 1].get(mode="clip").tolist() == A[:, 3, 1].tolist()
    with pytest.raises(RangeError):
        x.at[9].set(1.0)
    with pytest.raises(ArgumentError, match="mode must be one of 'promise_in_bounds', 'fill', 'drop', 'clip'"):
        x.at[0].set(1.0, mode="wrap")


def test_derivatives_of_copies() -> None:
    """Products of neighbours: x1 becomes x0 x1, x2 becomes x0 x1 x2; and a matrix of a number and its square."""

    def total(x: Any) -> Any:
        return np.sum(nb.fori_loop(1, 3, lambda i, x: x.at[i].multiply(x[i - 1]), x))

    want = [1 + X[1] + X[1] * X[2], X[0] + X[0] * X[2], X[0] * X[1], 1.0]
    for make in (lambda f: f, nb.jit):
        numpy.testing.assert_allclose(make(nb.grad(total))(X), want)
        mixed = make(nb.hessian(total))(X)
        numpy.testing.assert_allclose(mixed[:3, :3], [[0, 1 + X[2], X[1]], [1 + X[2], 0, X[0]], [X[1], X[0], 0]])
    matrix = nb.jacfwd(lambda a: np.zeros((2, 2)).at[0, 1].set(-a).at[numpy.diag_indices(2)].set(a * a))
    numpy.testing.assert_allclose(matrix(3.0), [[6.0, -1.0], [0.0, 6.0]])
    assert nb.vmap(lambda i: np.zeros(3).at[i].set(1.0))(numpy.arange(3)).tolist() == numpy.eye(3).tolist()
    assert np.zeros(2, np.float32).at[0].add(1.0).dtype == np.float32
