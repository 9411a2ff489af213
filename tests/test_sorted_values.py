"""Sorting, selecting and searching: NumPy's results, in programs that need positions and in those that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler.cache import cpu_features
from nbgrad.compiler.sorted_values import FEWEST, SELECTED, SORTED, sorts_by_values, without_positions
from nbgrad.graph.builders import argsort, gather
from nbgrad.graph.ir import placeholder, topological
from nbgrad.record.axes_and_dtypes import cut

pytestmark = pytest.mark.unoptimized

rng = np.random.default_rng(17)
SHAPES = [(1,), (2,), (11,), (12,), (13,), (25,), (100,), (777,), (7, 9), (3, 200), (60, 12)]


def numbers(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """Numbers with equal ones among them, and for floats zeros of both signs and NaN."""
    x = rng.integers(-40, 40, shape).astype(dtype)
    if x.dtype.kind == "f" and x.size > 9:
        x = x / 4
        x.flat[:8] = [np.nan, 0.0, -0.0, np.inf, -np.inf, -np.nan, 0.0, -0.0]
    return rng.permuted(x.ravel()).reshape(shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_positions_keep_the_order_of_equal_elements(shape):
    x = numbers(shape)
    np.testing.assert_array_equal(nb.jit(np.argsort)(x), np.argsort(x, kind="stable"))


@pytest.mark.parametrize("dtype", ["uint64", "int64", "uint8", "float32", "bool"])
def test_positions_of_extreme_numbers(dtype):
    info = np.array([0, 1]) if dtype == "bool" else np.iinfo(dtype) if dtype[0] != "f" else np.finfo(dtype)
    ends = info if dtype == "bool" else np.array([info.max, info.min, info.max - 1, 0, 1], dtype)
    x = rng.choice(ends, 40).astype(dtype)
    np.testing.assert_array_equal(nb.jit(np.argsort)(x), np.argsort(x, kind="stable"))


BY_RANKS = {
    "numbers": lambda shape: rng.normal(size=shape) * 10.0 ** rng.integers(-300, 300, shape),
    "equal ones": lambda shape: numbers(shape),
    "last digits": lambda shape: 1.0 + rng.integers(0, 500, shape) * 2.0**-52,
    "last digits in few places": lambda shape: (
        np.sort(rng.normal(size=shape), -1) * (1 + (rng.random(shape) < 0.01) * 2e-16)
    ),
    "last digits, downwards": lambda shape: -1.0 - np.arange(np.prod(shape)).reshape(shape) * 2.0**-52,
    "float32": lambda shape: rng.normal(size=shape).astype(np.float32),
    "float16": lambda shape: rng.normal(size=shape).astype(np.float16),
    "subnormal": lambda shape: rng.integers(-99, 99, shape) * 5e-324,
    "int64": lambda shape: rng.integers(-(2**63), 2**63 - 1, shape),
    "neighbours": lambda shape: rng.integers(2**63 - 400, 2**63 - 1, shape),
    "uint64": lambda shape: rng.integers(0, 2**64 - 1, shape, dtype=np.uint64),
    "int8": lambda shape: rng.integers(-128, 127, shape).astype(np.int8),
    "bool": lambda shape: rng.random(shape) < 0.5,
    "all equal": lambda shape: np.full(shape, -0.0),
}


@pytest.mark.parametrize("name", BY_RANKS)
def test_positions_by_a_sort_of_ranks(name):
    for shape in [(600,), (3, 257), (300, 2), (8000,), (4, 4, 40)]:
        x = BY_RANKS[name](shape)
        assert sorts_by_values(argsort(placeholder(shape, x.dtype))) == ("+avx2" in cpu_features())
        np.testing.assert_array_equal(nb.jit(np.argsort)(x), np.argsort(x, kind="stable"))


FUNCTIONS = {
    "sort": lambda x: np.sort(x),
    "sort of columns": lambda x: np.sort(x, axis=0),
    "sort of all": lambda x: np.sort(x, axis=None),
    "median": lambda x: np.median(x, axis=-1),
    "quantile": lambda x: np.quantile(x, 0.3),
    "quantiles": lambda x: np.quantile(x, [0.1, 0.8], axis=-1),
    "partition": lambda x: np.sort(np.partition(x, 2)),
    "sorted twice": lambda x: np.sort(x) + np.sort(x)[..., ::-1],
    "other starts of rows": lambda x: x.ravel()[np.argsort(x.ravel()) // 2],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(20, 30), (600,), (2, 3)])
@pytest.mark.parametrize("missing", [False, True])
def test_values_are_those_of_numpy(name, shape, missing):
    x = rng.normal(size=shape)
    if missing:
        x.flat[4] = np.nan
    compiled = nb.jit(FUNCTIONS[name])
    for y in (x, -x):
        np.testing.assert_allclose(compiled(y), FUNCTIONS[name](y), rtol=1e-14)


@pytest.mark.parametrize("name", ["sort", "median", "quantile"])
def test_derivatives_of_large_arrays_agree_with_differences(name):
    nb.check_grads(nb.jit(FUNCTIONS[name]), (rng.permutation(np.linspace(-1.0, 1.0, 520)).reshape(13, 40),), order=1)


@pytest.mark.parametrize(("name", "function"), [("sort", SORTED), ("median", SELECTED)])
def test_large_arrays_are_left_to_numpy(name, function):
    """Unless the positions are a result, too."""
    x = placeholder((FEWEST,), np.dtype(float))
    ordered = gather(x, argsort(x))
    result = ordered if name == "sort" else cut(ordered, 0, 3, 1)
    found = topological(without_positions([result], [x]))
    assert [node.params[0] for node in found if node.name == "host"] == [function]
    positions = ordered.inputs[1]
    assert without_positions([result, positions], [x]) == [result, positions]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 9, 64])
@pytest.mark.parametrize("dtype", ["float64", "int32", "bool"])
def test_searches(side, size, dtype):
    knots, values = np.sort(numbers((size,), dtype)), numbers((4, 5), dtype)
    found = nb.jit(lambda a, v: np.searchsorted(a, v, side))(knots, values)
    np.testing.assert_array_equal(found, np.searchsorted(knots, values, side))
