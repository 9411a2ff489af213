"""Rows added as a whole, products written as they are read, values computed again: all as NumPy has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler.fuse import Special, fuse
from nbgrad.graph.builders import matmul, transpose
from nbgrad.graph.ir import placeholder
from nbgrad.graph.simplify import simplify

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 2, 3, 8, 40])
def test_gradient_of_a_table(width: int, dtype: str) -> None:
    table = RNG.normal(size=(7, width)).astype(dtype)
    index = np.array([[0, 3, 3], [6, -1, 2]])
    weights = RNG.normal(size=(2, 3, width)).astype(dtype)
    expected = np.zeros_like(table)
    np.add.at(expected, index, weights)
    found = nb.jit(nb.grad(lambda t: np.sum(t[index] * weights)))(table)
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-14)


def test_gradient_of_no_rows() -> None:
    found = nb.jit(nb.grad(lambda t: np.sum(t[np.zeros(0, int)])))(np.ones((3, 4)))
    np.testing.assert_array_equal(found, np.zeros((3, 4)))


def test_rows_need_one_position_each() -> None:
    table = np.ones((50, 8))
    index = RNG.integers(0, 50, 400)
    gradient = nb.jit(nb.grad(lambda t: np.sum(np.sin(t[index]))))
    text = nb.explain(gradient, table)
    assert "scatter_rows" in text


ORDERS = ["kni", "kin", "nki", "nik", "ikn", "ink"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_in_any_order(order: str, dtype: str) -> None:
    a = RNG.normal(size=(5, 6, 7)).astype(dtype)
    b = RNG.normal(size=(9, 5, 7)).astype(dtype)

    def function(a: Any, b: Any) -> Any:
        return np.exp(np.einsum(f"kij,nkj->{order}", a, b) * 0.1)

    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(nb.jit(function)(a, b), function(a, b), rtol=tolerance)
    nb.check_grads(lambda a, b: np.sum(function(a, b) ** 2), (a.astype(float), b.astype(float)), order=1)


@pytest.mark.parametrize("axes", [(0, 2, 1), (1, 0, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_large_products_in_any_order_are_shared_by_threads(axes: tuple[int, ...]) -> None:
    a, b = RNG.normal(size=(2, 300, 310)), RNG.normal(size=(2, 310, 290))
    before = nb.get_num_threads()
    results = []
    for threads in (1, 2):
        nb.set_num_threads(threads)
        results.append(nb.jit(lambda a, b: np.transpose(a @ b, axes) + 1.0)(a, b))
    nb.set_num_threads(before)
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], np.transpose(a @ b, axes) + 1.0, rtol=1e-11, atol=1e-11)


def test_a_transposed_product_is_written_as_it_is_read() -> None:
    a = placeholder((5, 6, 7), np.dtype(float), np.ones((5, 6, 7)))
    b = placeholder((5, 7, 9), np.dtype(float), np.ones((5, 7, 9)))
    product, loop = fuse(simplify([transpose(matmul(a, b), (2, 0, 1)) * 2.0])).steps
    assert isinstance(product, Special)
    assert product.interleaved
    assert not isinstance(loop, Special)
    assert len(loop.shape) == 1


@pytest.mark.parametrize("shape", [(1, 30), (30, 1), (4, 30), (30, 4), (1, 1)])
def test_products_with_vectors(shape: tuple[int, int]) -> None:
    a = RNG.normal(size=(shape[0], 50))
    b = RNG.normal(size=(50, shape[1]))
    np.testing.assert_allclose(nb.jit(lambda a, b: a @ b)(a, b), a @ b, rtol=1e-12)
    np.testing.assert_allclose(nb.jit(lambda a, b: np.exp(a) @ b)(a, b), np.exp(a) @ b, rtol=1e-12)
    nb.check_grads(lambda a, b: np.sum(np.sin(a @ b)), (a, b), order=2)


def rolled(u: Any, steps: int) -> Any:
    """A periodic stencil whose adjoint reads a multiple of the cotangent at other points."""
    for _ in range(steps):
        around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4.0 * u
        u = u + 0.2 * around + 0.05 * (u - u * u * u)
    return u


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 2), (17, 33), (64, 64), (5, 200)])
def test_stencils(shape: tuple[int, int]) -> None:
    u = RNG.normal(size=shape)
    np.testing.assert_allclose(nb.jit(rolled)(u, 4), rolled(u, 4), rtol=1e-12, atol=1e-13)
    nb.check_grads(lambda u: np.sum(rolled(u, 3) ** 2), (u,), order=1)


@pytest.mark.parametrize("scale", [np.inf, np.nan, 2.0])
def test_values_computed_again_stay_zero_outside(scale: float) -> None:
    # A padded multiple is zero in its padding, whatever the factor.
    u = np.arange(1.0, 101.0)

    def function(u: Any, s: Any) -> Any:
        scaled = u * s
        return np.pad(scaled[1:], (0, 1)) + np.pad(scaled[:-1], (1, 0)) + np.roll(scaled, 20) * 0.5 + np.sum(u * s) * 0

    with np.errstate(invalid="ignore"):
        expected = function(u, scale)
    np.testing.assert_allclose(nb.jit(function)(u, scale), expected)


def test_padded_numbers_are_no_numbers() -> None:
    # The cotangent of one element is a padded 1, which is not 1 everywhere.
    x = RNG.normal(size=4)
    found = nb.grad(lambda x: (x[:, None] * x[None, :]).sum(0)[0])(x)
    np.testing.assert_allclose(found, x[0] + np.sum(x) * (np.arange(4) == 0), rtol=1e-14)


@pytest.mark.parametrize("length", [1, 2, 3, 5, 16, 17, 40, 1000])
def test_borders_of_any_length(length: int) -> None:
    x = RNG.normal(size=length)

    def function(x: Any) -> Any:
        return np.pad(x[1:], (0, 1)) * 2 + np.pad(x, (3, 0))[:length] - np.concatenate([x[-1:], x[:-1]])

    np.testing.assert_array_equal(nb.jit(function)(x), function(x))
    np.testing.assert_allclose(nb.jit(lambda x: np.sum(function(x)))(x), np.sum(function(x)), rtol=1e-12, atol=1e-12)


def test_new_lengths_compile_nothing() -> None:
    gradient = nb.jit(nb.grad(lambda u: np.sum(rolled(u, 2) ** 2)))
    gradient(RNG.normal(size=(40, 50)))
    before = nb.counters["compiled"]
    for shape in ((41, 50), (64, 200), (200, 64), (1000, 100)):
        gradient(RNG.normal(size=shape))
    assert nb.counters["compiled"] == before


def test_explain_gives_reasons() -> None:
    u = RNG.normal(size=(64, 64))
    text = nb.explain(nb.grad(lambda u: np.sum(rolled(u, 3) ** 2)), u)
    assert "it is read at other points than it is computed at" in text
    assert "not stored: computed again in" in text
    x = RNG.normal(size=(700, 130))
    text = nb.explain(lambda x: np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True), x)
    assert "go through their rows together" in text
    assert "its loop ends before it is known" in text
