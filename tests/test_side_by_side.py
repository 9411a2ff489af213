"""Elements that are read and written together, and sums and products in fewer passes: all as NumPy has it.

Coordinates of points, products of all others, symmetric products, sums at the same positions of each row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import nbgrad as nb
from nbgrad.compiler.fuse import fuse
from nbgrad.compiler.loops import Loop
from nbgrad.compiler.unroll_axes import with_rows_combined
from nbgrad.graph.builders import reduce, reshape, slice_axes
from nbgrad.graph.ir import Node, elementwise, placeholder
from nbgrad.graph.simplify import simplify

RNG = np.random.default_rng(17)

# ----- Coordinates -----


def column(points: Node, k: int, step: int = 1) -> Node:
    n = points.shape[0]
    return reshape(slice_axes(points, [(0 if step > 0 else n - 1, n, step), (k, 1, 1)]), (n,))


def loop_of(*outputs: Node) -> Loop:
    (loop,) = fuse(simplify(outputs)).steps
    assert isinstance(loop, Loop)
    return loop


@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize("step", [1, -1])
def test_columns_of_points_have_one_address(width: int, step: int) -> None:
    points = placeholder((100, width), np.dtype(float))
    loop = loop_of(column(points, width - 1, step) * column(points, 0, step))
    assert sorted(distance for _, distance in loop.beside.values()) == [width - 1]
    assert all(walk != "s" for walk in loop.walks)


def test_a_column_alone_and_wider_rows_are_read_in_steps() -> None:
    points, rows = placeholder((100, 3), np.dtype(float)), placeholder((100, 5), np.dtype(float))
    for loop in (loop_of(elementwise("sin", column(points, 1))), loop_of(column(rows, 0) * column(rows, 4))):
        assert "s" in loop.walks
        assert not loop.beside


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.bool_, np.complex128])
@pytest.mark.parametrize("width", [2, 3, 4, 5])
def test_functions_of_columns(width: int, dtype: Any) -> None:
    for n in (1, 7, 8, 33, 1001):
        x = RNG.integers(-4, 5, (n, width)).astype(dtype)

        def f(x: Any, width: int = width) -> Any:
            last, first, back = x[:, width - 1], x[:, 0], x[::-1, 1]
            return np.stack([last * first, back + first, last, x[::-1, 0] * back][:width], axis=1)

        assert_array_equal(nb.jit(f)(x), f(x))


def test_columns_of_a_part_of_an_array() -> None:
    x = RNG.integers(-9, 9, (50, 9)).astype(float)

    def f(x: Any) -> Any:
        part = x[5:40:2, 1::3]
        return part[:, 0] * part[:, 1] + part[::-1, 2] - np.pad(part[:, 0], 2)[1:-3]

    assert_array_equal(nb.jit(f)(x), f(x))


def test_the_gradient_of_cross_products() -> None:
    a, b = RNG.normal(size=(2, 101, 3))
    w = RNG.normal(size=(101, 3))
    found = nb.jit(nb.grad(lambda a, b: np.sum(np.cross(a, b[::-1]) * w), (0, 1)))(a, b)
    assert_allclose(found[0], np.cross(b[::-1], w), rtol=1e-12, atol=1e-13)
    assert_allclose(found[1], np.cross(w, a)[::-1], rtol=1e-12, atol=1e-13)


# ----- Products of all others -----


@pytest.mark.parametrize("length", [1, 2, 8, 9, 512, 513, 520, 1000, 4097])
@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_gradient_of_a_long_product(length: int, zeros: int) -> None:
    x = RNG.choice([0.5, 1.0, 2.0, -1.0], length)
    x[RNG.permutation(length)[:zeros]] = 0.0
    places = [k for k, v in enumerate(x) if v == 0.0]
    # All others are powers of two, whose products are exact.
    others = math.prod(np.sign(x[x != 0])) * 2.0 ** np.sum(np.log2(np.abs(x[x != 0])))
    expected = np.zeros(length)
    if len(places) == 1:
        expected[places[0]] = others
    elif not places:
        expected = others / x
    found = nb.jit(nb.grad(np.prod))(x)
    assert_array_equal(found, expected)
    if length < 600:
        rows = np.stack([x, x[::-1]])
        assert_array_equal(nb.jit(nb.grad(lambda x: np.sum(np.prod(x, axis=1))))(rows), [expected, expected[::-1]])


def test_a_long_product_with_nan_and_infinity() -> None:
    x = np.ones(2000)
    x[7], x[1900] = np.inf, 2.0
    found = nb.jit(nb.grad(np.prod))(x)
    assert found[7] == 2.0
    assert np.isinf(np.delete(found, 7)).all()
    x[7] = np.nan
    found = nb.jit(nb.grad(np.prod))(x)
    assert found[7] == 2.0
    assert np.isnan(np.delete(found, 7)).all()


def test_second_derivatives_of_a_long_product() -> None:
    x = RNG.choice([0.5, 2.0, -1.0], 1100)
    slope = nb.jit(nb.grad(lambda x: nb.grad(np.prod)(x)[3]))(x)
    expected = np.array([np.prod(np.delete(x, [3, k])) if k != 3 else 0.0 for k in range(0, 1100, 100)])
    assert_array_equal(slope[::100], expected)


# ----- Symmetric products -----


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(96, 20), (100, 100), (130, 300), (517, 33), (1030, 1000)])
def test_symmetric_products(shape: tuple[int, int], dtype: Any) -> None:
    x = RNG.normal(size=shape).astype(dtype)
    before, results = nb.get_num_threads(), []
    try:
        for threads in (1, 2):
            nb.set_num_threads(threads)
            results.append(nb.jit(lambda x: (x @ x.T, x.T @ x))(x))
    finally:
        nb.set_num_threads(before)
    for one, other, expected in zip(*results, (x @ x.T, x.T @ x), strict=True):
        assert_array_equal(one, other)
        assert_array_equal(one, one.T)
        scale = np.abs(expected).max()
        assert_allclose(one, expected, atol=scale * (1e-5 if dtype == np.float32 else 1e-13), rtol=0)


def test_a_product_with_the_transpose_of_another_is_not_symmetric() -> None:
    x, y = RNG.normal(size=(2, 120, 40))
    for f in (lambda x, y: x @ y.T, lambda x, y: x @ (2 * x).T, lambda x, y: x[::-1] @ x.T):
        assert_allclose(nb.jit(f)(x, y), f(x, y), rtol=1e-10, atol=1e-12)


def test_tangents_of_symmetric_products_are_not() -> None:
    x, t = RNG.normal(size=(2, 120, 40))
    found = nb.jit(lambda x, t: nb.jvp(lambda x: x @ x.T, (x,), (t,))[1])(x, t)
    assert_allclose(found, t @ x.T + x @ t.T, rtol=1e-10, atol=1e-12)
    side = nb.jit(nb.vmap(lambda t, x: x @ t.T, (0, None)))(np.stack([x, t]), x)
    assert_allclose(side, [x @ x.T, x @ t.T], rtol=1e-10, atol=1e-12)


def test_the_last_turn_of_a_loop_of_symmetric_products() -> None:
    x = RNG.normal(size=(100, 100)) / 20

    def f(x: Any) -> Any:
        for _ in range(12):
            x = np.tanh(x @ x.T + x)
        return np.sum(x**2)

    assert_allclose(nb.jit(f)(x), f(x), rtol=1e-11)
    t = RNG.normal(size=x.shape)
    slope = np.sum(nb.jit(nb.grad(f))(x) * t)
    assert_allclose(slope, (f(x + 1e-6 * t) - f(x - 1e-6 * t)) / 2e-6, rtol=1e-6)


def test_symmetric_products_of_batches_with_nan() -> None:
    x = RNG.normal(size=(3, 100, 30))
    x[1, 5, 6] = np.nan
    found = nb.jit(lambda x: x @ np.swapaxes(x, 1, 2))(x)
    expected = x @ np.swapaxes(x, 1, 2)
    assert_array_equal(np.isnan(found), np.isnan(expected))
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_the_gradient_of_a_quadratic_form_is_one_product() -> None:
    x, w = RNG.normal(size=(40, 130)), RNG.normal(size=(40, 40))
    gradient = nb.jit(nb.grad(lambda x, w: np.sum((x @ x.T) * w)))
    assert_allclose(gradient(x, w), (w + w.T) @ x, rtol=1e-11, atol=1e-12)
    assert str(nb.explain(gradient, x, w)).count("\nmatmul(") == 1
    gradient = nb.jit(nb.grad(lambda x, w: np.sum((x.T @ w @ x) ** 2)))
    form = x.T @ w @ x
    assert_allclose(gradient(x, w), 2 * (w @ x @ form.T + w.T @ x @ form), rtol=1e-9, atol=1e-9)


def test_the_gradient_of_covariances() -> None:
    x, w = RNG.normal(size=(30, 50)), RNG.normal(size=(30, 30))
    found = nb.jit(nb.grad(lambda x, w: np.sum(np.cov(x) * w)))(x, w)
    centred = x - x.mean(axis=1, keepdims=True)
    assert_allclose(found, (w + w.T) @ centred / 49, rtol=1e-11, atol=1e-12)


# ----- Sums at the same positions of each row -----


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_the_gradient_of_the_same_positions_of_each_row(dtype: Any) -> None:
    x = RNG.normal(size=(6, 30))
    index = RNG.integers(-30, 30, (5, 9))
    w = RNG.integers(-9, 9, (6, 5, 9)).astype(dtype)
    expected = np.zeros_like(x)
    for k in range(6):
        np.add.at(expected[k], index, w[k])
    gradient = nb.jit(nb.grad(lambda x, i, w: np.sum(np.take(x, i, axis=1) * w)))
    assert_array_equal(gradient(x, index, w), expected)
    assert "scatter_sums" in str(nb.explain(gradient, x, index, w))
    stacked = nb.jit(nb.grad(lambda x, i, w: np.sum(np.take(x[None] + 0.0, i, axis=2) * w)))
    assert_array_equal(stacked(x, index, w), expected)


def test_positions_that_leave_their_row() -> None:
    """Positions in the flat array are sums of two parts, of which neither stays within a row."""
    x = RNG.normal(size=60)
    start, place = np.array([0, 10, 13, 31, 40]), np.array([0, 19, 3, 19, 8])
    w = RNG.normal(size=(5, 5))
    expected = np.zeros(60)
    np.add.at(expected, start[:, None] + place, w)
    found = nb.jit(nb.grad(lambda x, s, p, w: np.sum(x[s[:, None] + p] * w)))(x, start, place, w)
    assert_allclose(found, expected, rtol=1e-15)


# ----- Rows that share an operand -----


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("length", [65, 100, 400, 512, 513])
def test_matrices_times_vectors(length: int, dtype: Any) -> None:
    for rows in (1, 3, 4, 5, 130):
        x, y = RNG.normal(size=(rows, length)).astype(dtype), RNG.normal(size=length).astype(dtype)
        exact = x.astype(np.longdouble) @ y.astype(np.longdouble)
        scale = np.abs(x).astype(float) @ np.abs(y).astype(float)
        for f in (lambda x, y: x @ y, lambda x, y: np.sum((x - y) * y, axis=1) + np.sum(y * y)):
            assert (np.abs(nb.jit(f)(x, y) - exact) <= 8 * np.finfo(dtype).eps * (scale + y.astype(float) @ y)).all()


# ----- Sums of a few rows -----

ROWS = {"sum": np.sum, "product": np.prod, "largest": np.max, "least": np.min, "any": np.any, "all": np.all}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.bool_, np.float16])
@pytest.mark.parametrize("name", ROWS)
def test_reductions_of_a_few_rows(name: str, dtype: Any) -> None:
    for shape, axis in (((2, 65), 0), ((3, 1001), 0), ((2, 16, 700), 1), ((17, 800), 0), ((3, 2, 130), (0,))):
        x = RNG.integers(-2, 3, shape).astype(dtype)
        if dtype == np.float64:
            x[(0,) * (x.ndim - 1)][::7] = np.nan
        function = ROWS[name]
        assert_array_equal(nb.jit(lambda x, axis=axis, f=function: f(x, axis=axis))(x), function(x, axis=axis))


def test_a_few_rows_are_reduced_in_one_pass() -> None:
    def reductions(node: Node) -> int:
        steps = fuse(simplify(with_rows_combined([node]))).steps
        return sum(len(step.reductions) for step in steps if isinstance(step, Loop))

    few, computed, many = (placeholder((rows, 4000), np.dtype(float)) for rows in (16, 4, 17))
    assert not reductions(reduce("sum", few, (0,)))
    assert not reductions(reduce("max", computed * computed, (0,)))
    assert reductions(reduce("sum", many, (0,)))
    assert reductions(reduce("sum", few * few, (0,)))


@pytest.mark.parametrize("shape", [(3, 40), (2, 9, 5), (5, 1), (1, 5), (4, 1100, 2), (0, 3)])
def test_products_of_all_others_along_any_axis(shape: tuple[int, ...]) -> None:
    x = RNG.uniform(0.9, 1.1, shape)
    for axis in range(x.ndim):
        weights = RNG.normal(size=np.prod(x, axis=axis).shape)
        found = nb.grad(lambda x, axis=axis, w=weights: np.sum(np.prod(x, axis=axis) * w))(x)
        expected = np.expand_dims(weights * np.prod(x, axis=axis), axis) / x
        assert_allclose(found, expected, rtol=1e-12)
        if x.size:
            zero = x.copy()
            zero[(0,) * x.ndim] = 0.0
            found = nb.grad(lambda x, axis=axis: np.sum(np.prod(x, axis=axis)))(zero)
            others = np.delete(zero, 0, axis)[tuple(slice(None) if a == axis else 0 for a in range(x.ndim))]
            assert_allclose(found[(0,) * x.ndim], np.prod(others), rtol=1e-12)
