"""Sorting, searching, selection and functions of samples agree with NumPy; what they select differentiates."""

from __future__ import annotations

import numpy as np
import pytest

from nbgrad.errors import ArgumentError, DtypeError, NbgradError, ShapeError, TracedValueError
from nbgrad.functions.arrays import sorting
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import placeholder
from nbgrad.graph.trace import recording
from nbgrad.record.tensor import Tensor

from .agreement import agree, check_derivative, gradients, record

pytestmark = pytest.mark.unoptimized

rng = np.random.default_rng(4)
X, Y, Z = rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=(2, 3, 4))
F4 = X.astype(np.float32)
I8 = rng.integers(-9, 9, (3, 4)).astype(np.int8)
B = X > 0
S, E = np.array(2.5), np.zeros((0, 3))
TIES = np.array([[3.0, 1, 3, np.nan, 1, -0.0, 0.0], [2, 2, 2, 1, 1, np.nan, np.inf]])
SORTED = np.sort(rng.integers(0, 5, 9)).astype(float)
WANTED = np.array([[0.0, 1, 2.5], [9, -1, np.nan]])


def test_sort():
    for array in (X, Y, Z, I8, B, F4, TIES, E):
        for axis in (-1, 0, None, 3):
            agree(np.sort, array, axis)
            agree(np.argsort, array, axis, stable=True)
    agree(np.sort, S, None)
    agree(np.sort, S)
    agree(np.lexsort, [I8, I8[::-1].copy()])
    agree(np.lexsort, I8)
    agree(np.lexsort, [I8, I8], axis=0)
    agree(np.partition, X, 7)
    assert np.partition(Tensor(Y), 2).asnumpy()[2] == np.sort(Y)[2]
    assert np.argpartition(Tensor(Y), 2).asnumpy()[2] == np.argsort(Y)[2]


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side):
    falling = SORTED[::-1].copy()
    for values in (WANTED, 3, 3.5, I8):
        agree(np.searchsorted, SORTED, values, side)
    agree(np.searchsorted, falling, WANTED, side, np.argsort(falling, stable=True))
    agree(np.searchsorted, np.zeros(0), WANTED, side)
    # The same by sorting, which is what a recording does.
    nodes = [placeholder(a.shape, a.dtype) for a in (SORTED, WANTED)]
    (found,) = interpret([sorting.searchsorted_node(*nodes, side)], dict(zip(nodes, (SORTED, WANTED), strict=True)))
    np.testing.assert_array_equal(found, np.searchsorted(SORTED, WANTED, side))


def test_digitize():
    bins = np.array([0.0, 1, 2.5, 3])
    for right in (False, True):
        agree(np.digitize, WANTED, bins, right)
        agree(np.digitize, WANTED, bins[::-1].copy(), right)
    agree(np.digitize, WANTED, np.array([0.0, 2, 1]))


def test_positions_and_sets():
    for array in (X, B, I8, Y, Z):
        for function in (np.nonzero, np.flatnonzero, np.argwhere):
            agree(function, array)
        agree(np.extract, array > 0, array)
        agree(np.unique, array, True, True, True)
        agree(np.unique, array, axis=0)
    agree(np.unique, TIES, return_counts=True)
    agree(np.compress, np.array([True, False, True]), X, axis=0)
    agree(np.compress, np.array([True, False, True]), X)
    agree(np.compress, np.array([0, 1, 1, 1]), X, 1)
    agree(np.compress, np.ones(7), X, 1)
    agree(np.argwhere, S)
    agree(np.nonzero, S)
    agree(np.isin, I8, np.array([1, 2, 3]))
    agree(np.isin, I8, np.array([1, 2, 3]), invert=True)
    agree(np.isin, X, np.array([]))
    agree(np.isin, I8, np.zeros(0, int))


def test_select():
    agree(np.select, [X > 0, X < -1], [X, X * 2])
    agree(np.select, [X > 0, X < -1], [X, I8], default=7)
    agree(np.select, [B, B], [I8, I8])
    agree(np.select, [B], [F4], default=1.5)
    agree(np.select, [B[0]], [S], default=Y)
    agree(np.select, [B, B], [X])
    numbers = rng.integers(0, 3, (3, 4))
    agree(np.choose, numbers, [X, X + 1, X * 2])
    agree(np.choose, numbers, [X, Y])
    agree(np.choose, numbers, [X, Y], mode="wrap")
    agree(np.choose, numbers - 1, [X, Y], mode="clip")
    agree(np.piecewise, X, [X < 0, X >= 0], [lambda t: -t, lambda t: t * t])
    agree(np.piecewise, X, [X < 0], [1, 2])
    agree(np.piecewise, X[0], X[0] < 0, [1.5, lambda t: t])
    agree(np.piecewise, X[0], X[0] < 0, [1.5, 2.5, 3.5])


def test_interp():
    points, values = np.sort(rng.normal(size=6)), rng.normal(size=6)
    for at in (X, points, float(points[2]), 5.0, -5, F4, I8):
        agree(np.interp, at, points, values)
        agree(np.interp, at, points, values, -9.0, 9.0)
    agree(np.interp, X, points[:1], values[:1])
    agree(np.interp, X, points, values[:3])
    for period in (1.5, -2.0):
        agree(np.interp, X, points, values, period=period)
    agree(np.interp, X, points, values, period=0)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve(mode):
    lines = [rng.normal(size=n) for n in (200, 90, 6, 4, 3, 1)] + [np.arange(5)]
    for a in lines:
        for v in lines:
            agree(np.convolve, a, v, mode)
            agree(np.correlate, a, v, mode)
    agree(np.convolve, X, Y, mode)
    agree(np.convolve, Y, np.zeros(0), mode)


def test_gradient():
    for edge_order in (1, 2):
        for array in (X, Y, Z, F4, I8):
            agree(np.gradient, array, edge_order=edge_order)
            agree(np.gradient, array, 2.0, edge_order=edge_order)
            agree(np.gradient, array, np.cumsum(rng.random(array.shape[-1])), axis=-1, edge_order=edge_order)
    agree(np.gradient, X, 2.0, 3.0)
    agree(np.gradient, X, 2.0, np.array([0.0, 1, 3, 4]))
    agree(np.gradient, Y[:2])
    agree(np.gradient, Y[:2], edge_order=2)
    agree(np.gradient, X, 1.0, 2.0, 3.0)


def test_unwrap_and_polynomials():
    phases = np.cumsum(rng.normal(size=(3, 20)) * 3, axis=1)
    agree(np.unwrap, phases)
    agree(np.unwrap, phases, axis=0)
    agree(np.unwrap, phases, period=3.0)
    agree(np.unwrap, phases, 4.0)
    agree(np.unwrap, phases.astype(np.float32))
    agree(np.polyval, Y, X)
    agree(np.polyval, [1, 2, 3], I8)
    agree(np.polyval, Y, 2.0)
    agree(np.polyval, np.array([]), X)
    agree(np.trim_zeros, np.array([0, 0, 1, 2, 0, 3, 0]), "f")
    agree(np.trim_zeros, np.array([0, 0, 1.0, 2, 0, 3, 0]))


POINTS, VALUES = np.array([-2.0, -0.7, 0.1, 0.9, 2.5]), rng.normal(size=5)
DERIVATIVES = {
    "sort": lambda x: np.sort(x * x, axis=0) * np.arange(3.0)[:, None],
    "sort flat": lambda x: np.sort(x**3, axis=None) * np.arange(12.0),
    "partition": lambda x: np.partition(x, 2, axis=1)[:, 2] ** 2,
    "unique": lambda x: np.unique(x) ** 2,
    "extract": lambda x: np.extract(B, x * x),
    "compress": lambda x: np.compress([True, False, True, True], x * x, axis=1),
    "select": lambda x: np.select([x > 0.5, x > -0.5], [x * x, np.sin(x)], default=x**3),
    "choose": lambda x: np.choose(np.arange(4) % 3, [x * x, np.sin(x), x**3]),
    "piecewise": lambda x: np.piecewise(x, [x > 0], [lambda t: t**3, lambda t: -t * t]),
    "interp in x": lambda x: np.interp(x * 1.1, POINTS, VALUES),
    "interp in fp": lambda x: np.interp(0.3 * np.arange(5.0) - 0.7, POINTS[:4], x[0] ** 2),
    "interp in xp": lambda x: np.interp(0.3 * np.arange(5.0) - 0.7, POINTS[:4] + 0.01 * x[0], VALUES[:4]),
    "convolve": lambda x: np.convolve(x[0] * x[1], x[2], mode="same"),
    "correlate": lambda x: np.correlate(x[0] * x[1], x[2][:3], mode="full"),
    "gradient": lambda x: np.gradient(x * x, axis=1, edge_order=2),
    "gradient in coordinates": lambda x: np.gradient(x, np.arange(4.0) + 0.1 * x[0], axis=1, edge_order=2),
    "unwrap": lambda x: np.unwrap(4.0 * x) ** 2,
    "polyval": lambda x: np.polyval(x[0], x[1:]),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    check_derivative(DERIVATIVES[name], X)


def test_long_convolution_differentiates():
    check_derivative(lambda a, v: np.convolve(a, v, "valid"), rng.normal(size=80), rng.normal(size=70), second=False)


def test_equal_elements_keep_their_order():
    (g,) = gradients(lambda x: np.sort(x) * np.arange(4.0), np.array([2.0, 1.0, 2.0, 1.0]))
    np.testing.assert_array_equal(g, [2, 0, 3, 1])


def test_a_branch_that_is_not_taken_leaks_no_nan():
    x = np.array([-1.0, 0.0, 4.0])
    for function in (
        lambda x: np.select([x > 0], [np.sqrt(x)], default=x * 2.0),
        lambda x: np.piecewise(x, [x > 0], [np.sqrt, lambda t: t * 2.0]),
    ):
        (g,) = gradients(function, x)
        np.testing.assert_array_equal(g, [2.0, 2.0, 0.25])


def test_values_are_not_asked_for_while_jit_records():
    node = placeholder((4,), np.dtype(float), Y)
    with recording([node], jit=True):
        tensor = Tensor._of(node)
        assert np.interp(tensor, POINTS, VALUES).shape == (4,)
        assert np.searchsorted(POINTS, tensor).shape == (4,)
        assert np.median(tensor).shape == ()
        with pytest.raises(TracedValueError, match="jit"):
            np.unique(tensor)
        with pytest.raises(TracedValueError, match="jit"):
            np.argwhere(tensor)


def test_sort_of_one_axis_is_one_gather():
    _, outputs = record(np.sort, (Y,))
    assert [node.name for node in (outputs[0], *outputs[0].inputs)] == ["gather", "input", "argsort"]


def test_errors():
    t = Tensor(X)
    with pytest.raises(ArgumentError, match=r"order='x'.*test_sorting.py"):
        np.sort(t, order="x")
    with pytest.raises(ShapeError, match="kth=9"):
        np.partition(t, 9)
    with pytest.raises(ShapeError, match="1-d"):
        np.searchsorted(t, 1.0)
    with pytest.raises(DtypeError, match="boolean"):
        np.select([t], [t])
    with pytest.raises(NbgradError, match="between 0 and 1"):
        np.choose(Tensor(np.array([0, 2])), [1.0, 2.0])
    with pytest.raises(ArgumentError, match="mode"):
        np.convolve(Tensor(Y), Y, mode="circular")
