"""`linearize`, whose map is the Jacobian at a point, and `linear_transpose`, beside products written by hand."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError, ShapeError

X = np.array([0.5, 1.0, 2.0])
MATRIX = np.array([[1.0, 2.0, 0.0], [-1.0, 0.5, 3.0]])
MODES: list[Callable[[Any], Any]] = [lambda f: f, nb.jit]


def both(x: Any, table: Any) -> Any:
    """Two outputs, with a container among the arguments; the first one's slope by x is exp(x) sum(x) + sum(exp x)."""
    return {"product": np.exp(x) * np.sum(x), "scaled": x * table["scale"], "count": 3}


def test_the_map_at_a_point_takes_many_vectors() -> None:
    out, product = nb.linearize(both, X, {"scale": 2.0})
    np.testing.assert_allclose(out["product"], np.exp(X) * np.sum(X))
    for v, s in ((np.array([1.0, 0.0, 0.0]), 0.0), (np.array([1.0, -2.0, 4.0]), 3.0)):
        found = product(v, {"scale": s})
        np.testing.assert_allclose(found["product"], np.exp(X) * v * np.sum(X) + np.exp(X) * np.sum(v))
        np.testing.assert_allclose(found["scaled"], v * 2.0 + X * s)
    columns = nb.vmap(lambda v: product(v, {"scale": 0.0})["product"])(np.eye(3))
    np.testing.assert_allclose(columns.T, nb.jacfwd(lambda x: np.exp(x) * np.sum(x))(X))
    value, product, kept = nb.linearize(lambda x, y: (x * y, {"first": x}), 2.0, 3.0, has_aux=True)
    assert (value, product(1.0, 10.0), kept) == (6.0, 23.0, {"first": 2.0})


@pytest.mark.parametrize("make", MODES)
def test_linear_maps_inside_of_other_transforms(make: Any) -> None:
    """The slope of x^3 along v is 3 x^2 v, whose own slope is 6 x v."""

    def along(x: Any) -> Any:
        return np.sum(nb.linearize(lambda x: x**3, x)[1](np.array([1.0, 10.0, 100.0])))

    np.testing.assert_allclose(make(along)(X), np.sum(3 * X**2 * [1, 10, 100]))
    np.testing.assert_allclose(make(nb.grad(along))(X), 6 * X * [1, 10, 100])
    np.testing.assert_allclose(make(nb.vmap(along))(np.array([X, 2 * X]))[1], np.sum(12 * X**2 * [1, 10, 100]))


def test_linear_maps_of_loops() -> None:
    """x^(2^20) by squaring: its slope is 2^20 x^(2^20 - 1)."""

    def power(x: Any) -> Any:
        for _ in range(20):
            x = x * x
        return x

    x = 1.0 + 2.0**-21
    for function in (power, lambda x: nb.fori_loop(0, 20, lambda _, x: x * x, x)):
        value, product = nb.linearize(function, x)
        np.testing.assert_allclose([product(1.0), product(-2.0)], np.array([1, -2]) * 2.0**20 * value / x, rtol=1e-9)


def test_what_the_point_needs_is_computed_once() -> None:
    """Later writes to the arguments change nothing, and code on plain numbers is not run again."""
    calls: list[float] = []

    def slow(x: Any) -> Any:
        calls.append(float(x))
        return np.cos(float(x))

    x = np.array([1.0])
    _, product = nb.linearize(lambda x: x[0] * nb.callback(slow, shape=lambda x: x)(nb.stop_gradient(x[0])), x)
    before = len(calls)
    x[0] = 5.0
    np.testing.assert_allclose([product(np.array([k])) for k in (1.0, 2.0)], np.array([1, 2]) * np.cos(1.0))
    assert len(calls) == before


def test_kinds_and_errors_of_linear_maps() -> None:
    narrow = X.astype(np.float32)
    assert nb.linearize(np.sin, narrow)[1](narrow).dtype == np.float32
    assert isinstance(nb.linearize(np.sin, nb.Tensor(X))[1](nb.Tensor(X)), nb.Tensor)
    product = nb.linearize(lambda x, y: x * y, X, X)[1]
    with pytest.raises(ArgumentError, match="linearized at 2 arguments, so its linear map takes as many"):
        product(X)
    with pytest.raises(ShapeError, match=r"Tangent 1 must have the shape \(3,\)"):
        product(X, np.ones(2))
    with pytest.raises(DtypeError):
        nb.linearize(np.sin, 3)


# ----- Transposes -----


@pytest.mark.parametrize("make", MODES)
def test_transposes(make: Any) -> None:
    y = np.array([10.0, 100.0])
    np.testing.assert_allclose(make(lambda y: nb.linear_transpose(lambda x: MATRIX @ x, X)(y)[0])(y), MATRIX.T @ y)

    def summed(x: Any, table: Any) -> Any:
        return {"a": 2 * x + np.sum(table["z"]), "b": table["z"]}

    x, table = make(nb.linear_transpose(summed, X, {"z": np.zeros(2)}))({"a": X, "b": y})
    np.testing.assert_allclose(x, 2 * X)
    np.testing.assert_allclose(table["z"], y + np.sum(X))
    horner = nb.linear_transpose(lambda x: nb.scan(lambda c, a: (3 * c + a, c), 0.0, x)[0], X)
    np.testing.assert_allclose(make(horner)(1.0)[0], [9.0, 3.0, 1.0])


def test_a_transpose_of_a_linear_map_is_a_reverse_derivative() -> None:
    def function(x: Any) -> Any:
        return np.sin(MATRIX @ x) * x[0]

    product = nb.linearize(function, X)[1]
    want = nb.jacrev(function)(X).T @ [1.0, 10.0]
    np.testing.assert_allclose(nb.linear_transpose(product, X)(np.array([1.0, 10.0]))[0], want)
    np.testing.assert_allclose(nb.grad(lambda c: np.sum(nb.linear_transpose(lambda x: c * x, X)(X)[0]))(2.0), np.sum(X))


def test_transposes_know_shapes_alone() -> None:
    like = SimpleNamespace(shape=(3,), dtype=np.dtype(np.float32))
    found = nb.linear_transpose(lambda x: 3 * x, like)(np.ones(3, np.float32))[0]
    assert found.dtype == np.float32 and found.tolist() == [3.0, 3.0, 3.0]
    z = np.array([1.0 + 2.0j, 3.0])
    np.testing.assert_allclose(nb.linear_transpose(lambda x: (1 + 2j) * x, z)(z)[0], (1 + 2j) * z)
    with pytest.raises(ArgumentError, match="looks at values, but linear_transpose knows the shapes"):
        nb.linear_transpose(lambda x: x if x[0] > 0 else -x, X)
    with pytest.raises(ArgumentError, match="is not linear in its arguments"):
        nb.linear_transpose(lambda x: x * x, X)(X)
    with pytest.raises(ArgumentError, match="has 1 output, so its transpose takes as many"):
        nb.linear_transpose(lambda x: 2 * x, X)(X, X)
    with pytest.raises(DtypeError, match="has dtype int64: linear functions"):
        nb.linear_transpose(lambda x: 2 * x, np.arange(3))
