"""Functions with many options agree with NumPy for random arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .agreement import agree

pytestmark = pytest.mark.unoptimized

SEEDS = st.integers(0, 2**32 - 1)
DTYPES = st.sampled_from([np.float64, np.float32, np.int64, np.int8, np.complex128])


def array(seed: int, shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """Random numbers; some of them are equal."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape) * 3
    values = np.where(rng.random(shape) < 0.3, np.rint(values), values)
    if np.dtype(dtype).kind == "c":
        return values + 1j * np.rint(rng.normal(size=shape) * 2)
    return values.astype(dtype)


shapes = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)
full_shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)


def axes(shape: tuple[int, ...]) -> st.SearchStrategy[int]:
    """An axis, also a negative one, and now and then one that does not exist."""
    return st.integers(-len(shape) - 1, len(shape))


@given(st.data(), SEEDS, full_shapes, DTYPES)
def test_pad(data, seed, shape, dtype):
    x = array(seed, shape, dtype)
    width = st.integers(0, 7)
    widths = data.draw(st.one_of(width, st.tuples(width, width), st.tuples(*[st.tuples(width, width)] * len(shape))))
    mode = data.draw(
        st.sampled_from("constant edge linear_ramp maximum mean median minimum reflect symmetric wrap".split())
    )
    options: dict[str, Any] = {}
    number = st.integers(-3, 3)
    if mode == "constant":
        options["constant_values"] = data.draw(st.one_of(number, st.tuples(number, number)))
    if mode == "linear_ramp":
        options["end_values"] = data.draw(st.one_of(number, st.tuples(*[st.tuples(number, number)] * len(shape))))
    if mode in ("maximum", "mean", "median", "minimum"):
        options["stat_length"] = data.draw(st.one_of(st.none(), st.integers(1, 5)))
    if mode in ("reflect", "symmetric"):
        options["reflect_type"] = data.draw(st.sampled_from(["even", "odd"]))
    # Odd reflections of reflections grow to hundreds, and differences of these are small again.
    agree(np.pad, x, widths, mode, tolerance=1e-3 if dtype is np.float32 else 1e-9, **options)


@given(st.data(), SEEDS, full_shapes)
def test_quantiles(data, seed, shape):
    x = array(seed, shape)
    if data.draw(st.booleans()):
        x.flat[0] = np.nan
    q = data.draw(st.lists(st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.75, 0.9, 1.0]), min_size=1, max_size=3))
    methods = (
        "linear lower higher midpoint nearest inverted_cdf averaged_inverted_cdf closest_observation "
        "interpolated_inverted_cdf hazen weibull median_unbiased normal_unbiased"
    ).split()
    function = data.draw(st.sampled_from([np.quantile, np.nanquantile]))
    axis = data.draw(st.one_of(st.none(), axes(shape)))
    method, keepdims = data.draw(st.sampled_from(methods)), data.draw(st.booleans())
    agree(function, x, np.array(q), axis=axis, method=method, keepdims=keepdims)


@given(st.data(), SEEDS, st.integers(1, 30), DTYPES)
def test_histogram(data, seed, count, dtype):
    x = array(seed, (count,), np.float64 if dtype is np.complex128 else dtype)
    edges = st.lists(st.integers(-5, 5), min_size=1, max_size=5).map(lambda e: np.array(e, float))
    bins = data.draw(st.one_of(st.integers(1, 6), st.sampled_from(["auto", "sturges", "fd"]), edges))
    limits = data.draw(st.one_of(st.none(), st.tuples(st.integers(-4, 2), st.integers(-1, 4))))
    density = data.draw(st.booleans())
    weights = array(seed + 1, (count,), dtype) if data.draw(st.booleans()) else None
    if density and weights is not None and not np.sum(weights):
        return
    if isinstance(bins, np.ndarray) and bins.size < 2:
        return  # NumPy gives no bins, a Tensor an error
    agree(np.histogram, x, bins, limits, density, weights, tolerance=1e-6)


@given(st.data(), SEEDS, full_shapes, DTYPES)
def test_insert_and_delete(data, seed, shape, dtype):
    x = array(seed, shape, dtype)
    axis = data.draw(st.one_of(st.none(), axes(shape)))
    n = x.size if axis is None else shape[axis % len(shape)]
    place = st.integers(-n - 1, n)
    where = data.draw(
        st.one_of(
            place,
            st.lists(st.integers(-n, n), max_size=3),
            st.builds(slice, st.integers(-3, 3), st.integers(-3, 5), st.sampled_from([None, 1, 2, -1])),
        )
    )
    agree(np.delete, x, where, axis)
    agree(np.insert, x, where, 7, axis)
    if not isinstance(where, slice) and isinstance(where, list) and where:
        count = len(where)
        rest = () if axis is None else tuple(m for k, m in enumerate(shape) if k != axis % len(shape))
        if axis is None or axis in (0, -len(shape)):
            agree(np.insert, x, where, array(seed + 1, (count, *rest), dtype), axis)


@given(st.data(), SEEDS, full_shapes)
def test_gradient(data, seed, shape):
    x = array(seed, shape)
    order = data.draw(st.sampled_from([1, 2]))
    if data.draw(st.booleans()):
        agree(np.gradient, x, data.draw(st.sampled_from([1.0, 0.5, 2])), edge_order=order)
    axis = data.draw(axes(shape))
    spacing = np.cumsum(np.random.default_rng(seed).random(shape[axis % len(shape)]) + 0.1)
    agree(np.gradient, x, spacing, axis=axis, edge_order=order, tolerance=1e-9)


@given(st.data(), SEEDS, DTYPES)
def test_convolve(data, seed, dtype):
    n, m = data.draw(st.integers(0, 90)), data.draw(st.integers(0, 90))
    mode = data.draw(st.sampled_from(["full", "same", "valid"]))
    for function in (np.convolve, np.correlate):
        agree(function, array(seed, (n,), dtype), array(seed + 1, (m,), dtype), mode, tolerance=1e-4)


@given(st.data(), SEEDS)
def test_interp(data, seed):
    rng = np.random.default_rng(seed)
    n = data.draw(st.integers(1, 6))
    points, values = np.sort(rng.normal(size=n)), rng.normal(size=n)
    at = np.concatenate([rng.normal(size=4) * 2, points])
    options = data.draw(st.sampled_from([{}, {"left": -1.0}, {"right": 5.0}, {"period": 1.7}, {"period": 9.0}]))
    agree(np.interp, at, points, values, tolerance=1e-9, **options)


@given(st.data(), SEEDS, full_shapes, DTYPES)
def test_movement(data, seed, shape, dtype):
    x = array(seed, shape, dtype)
    axis, number = data.draw(axes(shape)), st.integers(-5, 5)
    agree(np.roll, x, data.draw(number), axis)
    agree(np.roll, x, (data.draw(number), data.draw(number)), (axis, data.draw(axes(shape))))
    agree(np.repeat, x, abs(data.draw(number)), axis)
    agree(np.tile, x, tuple(data.draw(st.lists(st.integers(0, 3), max_size=4))))
    agree(np.array_split, x, data.draw(st.integers(1, 5)), axis)
    agree(np.split, x, data.draw(st.lists(st.integers(-6, 6), max_size=3)), axis)
    agree(np.resize, x, data.draw(st.lists(st.integers(0, 4), max_size=3).map(tuple)))
    agree(np.rollaxis, x, axis, data.draw(number))
    agree(np.moveaxis, x, axis, data.draw(axes(shape)))
    agree(np.flip, x, axis)
    agree(np.diff, x, data.draw(st.integers(0, 3)), axis)
    agree(np.take, x, data.draw(st.lists(number, max_size=3)), axis, mode=data.draw(st.sampled_from(["wrap", "clip"])))
    agree(np.trim_zeros, np.rint(x), data.draw(st.sampled_from(["f", "b", "fb"])))
    if len(shape) > 1:
        agree(np.rot90, x, data.draw(number), (axis, data.draw(axes(shape))))
        agree(np.trace, x, data.draw(number))
        agree(np.diagonal, x, data.draw(number), 0, 1)
        agree(np.tril, x, data.draw(number))


@given(st.data(), SEEDS, shapes, DTYPES)
def test_sets_and_order(data, seed, shape, dtype):
    x = np.rint(array(seed, shape, dtype))
    y = np.rint(array(seed + 1, (data.draw(st.integers(0, 6)),), dtype))
    for function in (np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d, np.isin):
        agree(function, x, y)
    agree(np.unique, x, True, True, True)
    axis = data.draw(axes(shape))
    agree(np.unique, x, axis=axis)
    agree(np.sort, x, axis)
    agree(np.argsort, x, axis, kind="stable")
    agree(np.lexsort, (x, np.rint(x * 0.5)), axis)
    agree(np.searchsorted, np.sort(y), x, data.draw(st.sampled_from(["left", "right"])))


@given(st.data(), SEEDS, st.integers(1, 6), st.integers(1, 6))
def test_polynomials(data, seed, n, m):
    p, q = array(seed, (n,)), array(seed + 1, (m,))
    q[0] = q[0] or 1.0
    for function in (np.polyadd, np.polysub, np.polymul):
        agree(function, p, q)
    agree(np.polyval, p, q)
    agree(np.polyder, p, data.draw(st.integers(0, 4)))
    agree(np.polyint, p, data.draw(st.integers(0, 4)), k=2.0)
    agree(np.poly, p, tolerance=1e-9)
