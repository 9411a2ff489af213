"""Rows of a few elements: several rows reduced at once, expensive functions on joined rows, rows that add nothing.

Everything is compared with NumPy on the same arrays, or with the sums written out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
from numpy.testing import assert_allclose, assert_array_equal

import nbgrad as nb
from nbgrad.compiler.fuse import fuse
from nbgrad.compiler.loops import Loop
from nbgrad.graph.builders import reduce, transpose
from nbgrad.graph.ir import Node, broadcast, elementwise, placeholder, zeros

LENGTHS = [3, 5, 7, 8, 10, 31, 64, 65]
ROWS = [3, 1001]
FLOAT = np.dtype(np.float64)


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    found = np.random.default_rng(len(shape) + shape[-1]).uniform(-2, 2, shape)
    return found > 0 if dtype == np.bool_ else found.astype(dtype)


def loops(output: Node) -> list[Loop]:
    """The loops of a graph."""
    return [one for one in fuse([output]).steps if isinstance(one, Loop)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.bool_])
@pytest.mark.parametrize("rows", ROWS)
def test_reductions_of_short_rows(rows: int, dtype: Any) -> None:
    for length in LENGTHS:
        x, row = numbers((rows, length), dtype), numbers((length,), dtype)
        for name in ("sum", "max", "min", "prod", "any", "all"):
            f = getattr(np, name)
            tolerance = 1e-4 if dtype == np.float32 else 1e-13
            assert_allclose(nb.jit(lambda v, f=f: f(v, axis=1))(x), f(x, axis=1), rtol=tolerance, atol=tolerance)
        if dtype != np.bool_:
            found = nb.jit(lambda v, w: np.sum((v - w) * w, axis=-1))(x, row)
            assert_allclose(found, np.sum((x - row) * row, axis=1), rtol=1e-4 if dtype == np.float32 else 1e-12)


def test_distances_of_all_pairs() -> None:
    for n, m, d in [(5, 4, 8), (50, 37, 16), (130, 101, 10)]:
        a, b = numbers((n, d), np.float64), numbers((m, d), np.float64)
        found = nb.jit(lambda u, v: np.sum((u[:, None] - v) ** 2, axis=-1))(a, b)
        assert_allclose(found, np.sum((a[:, None] - b) ** 2, axis=-1), rtol=1e-13)


def test_nan_and_infinities_in_short_rows() -> None:
    for length in (3, 5, 7, 10, 16):
        x = numbers((40, length), np.float64)
        x[3, -1], x[5, 0], x[7] = np.nan, np.inf, -np.inf
        assert_array_equal(nb.jit(lambda v: np.max(v, axis=1))(x), np.max(x, axis=1))
        assert_array_equal(nb.jit(lambda v: np.min(v, axis=1))(x), np.min(x, axis=1))
        assert_array_equal(np.isnan(nb.jit(lambda v: np.sum(v, axis=1))(x)), np.isnan(np.sum(x, axis=1)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", ROWS)
def test_expensive_functions_of_short_rows(rows: int, dtype: Any) -> None:
    def softmax(x: Any) -> Any:
        powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
        return powers / np.sum(powers, axis=-1, keepdims=True)

    tolerance = 1e-6 if dtype == np.float32 else 1e-13
    for length in LENGTHS:
        x = numbers((rows, length), dtype)
        scale, offset = numbers((length,), dtype), numbers((rows, 1), dtype)
        assert_allclose(nb.jit(softmax)(x), scipy.special.softmax(x, axis=1), rtol=10 * tolerance)
        found = nb.jit(nb.grad(lambda v: np.sum(np.log(np.sum(np.exp(v), axis=1)))))(x)
        assert_allclose(found, scipy.special.softmax(x, axis=1), rtol=10 * tolerance)
        found = nb.jit(lambda v, s, o: np.tanh(s * v + o))(x, scale, offset)
        assert_allclose(found, np.tanh(scale * x + offset), rtol=tolerance, atol=tolerance)
        cube = np.stack([x, x + 1, 2 * x])
        assert_allclose(nb.jit(softmax)(cube), scipy.special.softmax(cube, axis=-1), rtol=10 * tolerance)


def test_conditions_and_several_dtypes_in_short_rows() -> None:
    x, chosen = numbers((300, 5), np.float64), numbers((300, 1), np.bool_)
    counts = np.arange(300, dtype=np.int32)[:, None]
    f = nb.jit(lambda v, c, k: np.sum(np.where(c, np.exp(v), v * k), axis=1))
    assert_allclose(f(x, chosen, counts), np.sum(np.where(chosen, np.exp(x), x * counts), axis=1), rtol=1e-13)


def test_results_are_the_same_for_any_number_of_threads() -> None:
    x = numbers((20_001, 5), np.float64)
    f = nb.jit(lambda v: np.sum(np.exp(v - np.max(v, axis=1, keepdims=True)), axis=1))
    before, known = nb.get_num_threads(), f(x)
    try:
        nb.set_num_threads(1)
        assert_array_equal(f(x), known)
    finally:
        nb.set_num_threads(before)


def test_rows_that_add_nothing_are_left_out() -> None:
    """Sums over the points that are nearest to each of some others, where few are; unchosen NaN do not count."""
    points, others = numbers((500, 11), np.float64), numbers((9, 11), np.float64)

    def moved(c: Any, p: Any) -> Any:
        distances = np.sum((p[:, None] - c) ** 2, axis=-1)
        return np.sum(np.min(distances, axis=1))

    nearest = np.argmin(np.sum((points[:, None] - others) ** 2, axis=-1), axis=1)
    expected = np.stack([2 * np.sum(others[k] - points[nearest == k], axis=0) for k in range(9)])
    assert_allclose(nb.jit(nb.grad(moved))(others, points), expected, rtol=1e-11, atol=1e-11)
    mask = np.arange(600).reshape(30, 20, 1) % 7 == 0
    x = numbers((30, 20, 6), np.float64)
    poisoned = np.where(mask, x, np.nan)
    chosen = nb.jit(lambda m, v: np.sum(np.where(m, v, 0.0), axis=0))
    assert_allclose(chosen(mask, poisoned), np.sum(np.where(mask, x, 0.0), axis=0), rtol=1e-13)
    left = nb.jit(lambda m, v: np.sum(np.where(m, 0.0, v), axis=0))
    assert_allclose(left(~mask, poisoned), np.sum(np.where(mask, x, 0.0), axis=0), rtol=1e-13)
    inner = nb.jit(lambda m, v: np.sum(np.where(m, v, 0.0), axis=(0, 2)))
    assert_allclose(inner(mask, poisoned), np.sum(np.where(mask, x, 0.0), axis=(0, 2)), rtol=1e-12)


def test_the_loops_that_this_is_about() -> None:
    x, row = (placeholder(shape, np.dtype(np.float64)) for shape in [(100, 10), (100, 1)])
    (total,) = loops(reduce("sum", x * x, (1,)))
    assert total.short_rows and not total.narrow
    (heavy,) = loops(elementwise("exp", x - broadcast(row, x.shape)))
    assert heavy.narrow and heavy.lying == ("flat", "row", "flat")
    (light,) = loops(x - broadcast(row, x.shape))
    assert not light.narrow
    mask, values = placeholder((100, 10, 1), np.dtype(np.bool_)), placeholder((100, 10, 300), np.dtype(np.float64))
    chosen, other = broadcast(mask, values.shape), broadcast(row, (300, 100, 10))
    (some,) = loops(
        reduce("sum", elementwise("select", chosen, values, broadcast(zeros((), FLOAT), values.shape)), (0,))
    )
    assert some.choice_of_row(some.reductions[0]) == (0, True)
    (unknown,) = loops(reduce("sum", elementwise("select", chosen, values, transpose(other, (1, 2, 0))), (0,)))
    assert unknown.choice_of_row(unknown.reductions[0]) is None
