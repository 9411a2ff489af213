"""Extrema and their positions: NaN wins wherever it stands, the first position counts, long axes go in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import nbgrad as nb

RNG = np.random.default_rng(5)
SINGLE, WHOLE = (1, 2, 63, 64, 65, 127, 128, 130, 400), (8191, 8192, 8193, 9216, 20000)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 31, 64, 65, 100, 1000, 40000])
def test_nan_wins_wherever_it_stands(length: int, dtype: Any) -> None:
    extrema = nb.jit(lambda x: (np.max(x), np.min(x)))
    x = RNG.integers(-99, 99, length).astype(dtype)
    assert extrema(x) == (x.max(), x.min())
    for place in {0, length // 3, length // 2, length - 1}:
        for sign in (1, -1):
            broken = x.copy()
            broken[place] = sign * np.nan
            assert np.isnan(extrema(broken)).all()
            broken[place] = sign * np.inf
            assert extrema(broken) == (broken.max(), broken.min())
    for same in (np.nan, np.inf, -np.inf):
        assert_array_equal(extrema(np.full(length, same, dtype)), (same, same))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_extrema_along_an_axis_with_nan(axis: int) -> None:
    x = RNG.normal(size=(5, 70, 90))
    x[RNG.random(x.shape) < 0.002] = np.nan
    for f in (np.max, np.min, np.ptp):
        assert_array_equal(nb.jit(lambda x, f=f: f(x, axis=axis))(x), f(x, axis=axis))
    total, largest = nb.jit(lambda x: (np.sum(x, axis=axis), np.max(np.exp(x), axis=axis)))(x)
    assert_array_equal(np.isnan(total), np.isnan(x).any(axis=axis))
    assert_array_equal(np.isnan(largest), np.isnan(x).any(axis=axis))


def values(length: int, dtype: Any) -> list[Any]:
    """Arrays with equal elements, an extremum at the end, NaN, infinities."""
    plain = RNG.integers(0, 50, length).astype(dtype)
    last = np.zeros(length, dtype)
    last[-1] = 1
    found = [plain, last, 1 - last, np.ones(length, dtype)]
    if np.dtype(dtype).kind == "f":
        broken, infinite = plain.copy(), plain.copy()
        broken[RNG.integers(length, size=2)] = np.nan
        infinite[length // 2 :] = np.inf
        found += [broken, infinite, -infinite, np.full(length, np.nan, dtype), np.full(length, -np.inf, dtype)]
    return found


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.bool_, np.float16])
@pytest.mark.parametrize("lengths", [SINGLE, WHOLE], ids=["short", "long"])
def test_first_positions_of_extrema(lengths: tuple[int, ...], dtype: Any) -> None:
    for f in (np.argmax, np.argmin):
        single = nb.jit(lambda x, f=f: f(x))
        along = [nb.jit(lambda x, f=f, axis=axis: f(x, axis=axis)) for axis in (0, 1)]
        for length in lengths:
            for x in values(length, dtype):
                assert single(x) == f(x)
                rows = np.stack([x, x[::-1], np.roll(x, 5)])
                for axis in (0, 1):
                    assert_array_equal(along[axis](rows), f(rows, axis=axis))


@pytest.mark.parametrize("length", [3, 64, 65, 128, 200, 40000])
@pytest.mark.parametrize("otherwise", [-1, 0, 5, 70, 10**6])
def test_the_least_position_at_which_something_holds(otherwise: int, length: int) -> None:
    """What stands for none may be less than the positions, also where it holds everywhere."""
    places = np.arange(length) + 6
    least = nb.jit(lambda holds: np.min(np.where(holds, np.arange(length) + 6, otherwise), axis=-1))
    for share in (0.0, 0.002, 0.5, 1.0):
        holds = RNG.random((3, length)) < share
        assert_array_equal(least(holds), np.where(holds, places, otherwise).min(axis=-1))


def test_positions_are_the_same_for_any_number_of_threads() -> None:
    x = RNG.integers(0, 1000, (3, 300_000)).astype(float)
    before = nb.get_num_threads()
    try:
        for threads in (1, 2):
            nb.set_num_threads(threads)
            assert_array_equal(nb.jit(lambda x: np.argmax(x, axis=1))(x), np.argmax(x, axis=1))
            assert nb.jit(np.argmin)(x) == np.argmin(x)
    finally:
        nb.set_num_threads(before)


def test_a_long_axis_is_read_once() -> None:
    text = str(nb.explain(nb.jit(lambda x: np.argmax(x)), np.ones(100_000)))
    flops = int(text.splitlines()[0].split(" flops")[0].split()[-1].replace(",", ""))
    assert flops < 120_000
