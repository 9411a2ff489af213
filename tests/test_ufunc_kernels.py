"""`nb.kernel` of ufuncs that Numba makes: values are those of the ufunc itself, derivatives those of formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import float32, float64, guvectorize, vectorize

import nbgrad as nb
from nbgrad.errors import ArgumentError, BroadcastError, DtypeError


@guvectorize([(float32[:], float32, float32[:]), (float64[:], float64, float64[:])], "(n),()->(n)")
def smoothed(x: Any, rate: Any, out: Any) -> None:
    carry = 0.0
    for i in range(x.shape[0]):
        carry = rate * carry + x[i]
        out[i] = carry


@guvectorize([(float64[:], float64[:], float64[:], float64[:])], "(n),()->(),(n)")
def moments(x: Any, power: Any, total: Any, away: Any) -> None:
    total[0] = 0.0
    for i in range(x.shape[0]):
        total[0] += x[i] ** power[0]
    for i in range(x.shape[0]):
        away[i] = x[i] - total[0]


@vectorize
def root(a: Any, start: Any) -> Any:
    x = start
    while abs(x * x - a) > 1e-14 * a:
        x = 0.5 * (x + a / x)
    return x


X = np.linspace(0.5, 2.0, 12).reshape(3, 4)


@pytest.mark.parametrize(
    ("ufunc", "inputs"),
    [
        (smoothed, (X, 0.5)),
        (smoothed, (X[0], np.array([[0.5], [0.25]]))),
        (smoothed, (np.arange(4), 0.5)),
        (smoothed, (X.astype(np.float32), np.float32(0.5))),
        (smoothed, (np.zeros((0, 4)), 0.5)),
        (smoothed, ([1.0, 2.0], 0.5)),
        (moments, (X.T[1:], 2.0)),
        (root, (X, 1.0)),
        (root, (2.0, 1.0)),
        (root, (X[:, None], np.ones(4))),
    ],
)
def test_values(ufunc: Any, inputs: tuple[Any, ...]) -> None:
    found, expected = nb.kernel(ufunc)(*inputs), ufunc(*inputs)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for one, other in pairs:
        assert np.shape(one) == np.shape(other) and np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-6 if np.asarray(other).dtype == np.float32 else 1e-15)


def test_derivatives() -> None:
    a = nb.grad(lambda a: np.sum(nb.kernel(root)(a, 1.0)))(X)
    np.testing.assert_allclose(a, 0.5 / np.sqrt(X), rtol=1e-12)
    filtered = nb.kernel(smoothed)
    x, rate = nb.grad(lambda x, rate: np.sum(filtered(x, rate)[:, 2]), (0, 1))(X, 0.5)
    np.testing.assert_allclose(x, np.tile([0.25, 0.5, 1.0, 0.0], (3, 1)), rtol=1e-13)
    np.testing.assert_allclose(rate, np.sum(2 * 0.5 * X[:, 0] + X[:, 1]), rtol=1e-13)
    second = nb.hessian(lambda rate: np.sum(filtered(X, rate)[:, 2]))(0.5)
    np.testing.assert_allclose(second, np.sum(2 * X[:, 0]), rtol=1e-13)
    power = nb.kernel(moments, constant="x")
    slope = nb.jit(nb.grad(lambda p: np.sum(power(X, p)[0])))(2.0)
    np.testing.assert_allclose(slope, np.sum(X**2 * np.log(X)), rtol=1e-13)
    rates = np.array([0.5, 0.25])
    by_hand: Any = smoothed
    np.testing.assert_allclose(nb.vmap(lambda rate: filtered(X, rate))(rates), by_hand(X, rates[:, None]), rtol=1e-15)
    assert "def smoothed_for_each_vjp(x, rate, out" in filtered.vjp.source


@pytest.mark.parametrize(
    ("ufunc", "inputs", "kind", "message"),
    [
        (smoothed, (X,), ArgumentError, r"smoothed\(\) takes 2 inputs, but got 1"),
        (smoothed, (1.0, 0.5), BroadcastError, "needs 1 axes, but has 0"),
        (smoothed, (X, np.ones(2)), BroadcastError, r"cannot be broadcast: they are for \(3,\), \(2,\)"),
        (smoothed, (X * 1j, 0.5), DtypeError, "no signature for complex128, float64"),
        (smoothed, ("x", 0.5), DtypeError, "is a str"),
    ],
)
def test_sentences(ufunc: Any, inputs: tuple[Any, ...], kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        nb.kernel(ufunc)(*inputs)


def test_a_ufunc_without_its_function() -> None:
    @guvectorize([(float64[:], float64[:])], "(n)->(n)", target="parallel")
    def doubled(x, out):
        for i in range(len(x)):
            out[i] = 2.0 * x[i]

    with pytest.raises(DtypeError, match='Make it with target="cpu"'):
        nb.kernel(doubled)
