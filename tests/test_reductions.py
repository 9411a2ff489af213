"""Reductions, statistics and running sums of Tensors agree with NumPy, and their derivatives with differences."""

from __future__ import annotations

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError, NbgradError, ShapeError, TracedValueError
from nbgrad.functions.analysis.statistics import mean_node
from nbgrad.functions.arrays import cumulative, reductions
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import constant, placeholder
from nbgrad.graph.trace import recording
from nbgrad.record.tensor import Tensor
from nbgrad.transforms.arguments import lift

from .agreement import agree, check_derivative, gradients

rng = np.random.default_rng(0)
X, Y, Z = rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=(2, 3, 4))
B = X > 0
I8 = rng.integers(-9, 9, (3, 4)).astype(np.int8)
U8 = rng.integers(0, 9, (3, 4)).astype(np.uint8)
NAN = X.copy()
NAN[1, 2] = NAN[0] = np.nan
ARRAYS = [
    X,
    Y,
    Z,
    B,
    I8,
    U8,
    X.astype(np.float32),
    X.astype(np.float16),
    NAN,
    np.zeros((0, 3)),
    np.array(2.5),
    np.array(3),
    np.array([2, 1, 2, 1.0]),
    np.array([0.0, -0.0]),
]
REDUCTIONS = [
    np.sum,
    np.prod,
    np.max,
    np.min,
    np.mean,
    np.std,
    np.var,
    np.any,
    np.all,
    np.argmax,
    np.argmin,
    np.ptp,
    np.count_nonzero,
    np.nansum,
    np.nanprod,
    np.nanmax,
    np.nanmin,
    np.nanmean,
    np.nanvar,
    np.nanstd,
    np.median,
    np.cumsum,
    np.cumprod,
    np.nancumsum,
    np.nancumprod,
]
WITHOUT_KEEPDIMS = {np.cumsum, np.cumprod, np.nancumsum, np.nancumprod}
SINGLE_AXIS = {np.argmax, np.argmin, *WITHOUT_KEEPDIMS}


@pytest.mark.parametrize("function", REDUCTIONS, ids=lambda f: f.__name__)
def test_values(function):
    for array in ARRAYS:
        if function is np.ptp and array.dtype == bool:
            continue  # NumPy cannot subtract booleans
        for axis in (None, 0, -1, 1, 2, -4, (0, 1), (0, -1), (-1,)):
            if array.ndim == 0 and function.__name__.startswith("nan") and axis is not None:
                continue
            if isinstance(axis, tuple) and function in SINGLE_AXIS:
                continue
            agree(function, array, axis=axis)
            if function not in WITHOUT_KEEPDIMS:
                agree(function, array, axis=axis, keepdims=True)


@pytest.mark.parametrize("function", [np.sum, np.prod, np.max, np.min, np.nansum, np.nanmax], ids=lambda f: f.__name__)
def test_initial_and_where(function):
    agree(function, X, axis=0, initial=2.0)
    agree(function, X, axis=0, initial=2.0, where=B)
    agree(function, X, where=B, initial=-1.0)
    agree(function, X, where=B)
    agree(function, I8, initial=3, where=B[0])
    agree(function, np.zeros((0, 3)), initial=3.0)
    agree(function, np.zeros((0, 3)), axis=0)
    agree(function, np.zeros((0, 3)), axis=1, initial=1.0)


def test_options_of_means_and_variances():
    for function in (np.mean, np.var, np.std, np.any, np.all, np.nanmean):
        agree(function, X, axis=1, where=B)
        agree(function, X, where=B[0], keepdims=True)
    for function in (np.var, np.std):
        agree(function, X, axis=1, ddof=1)
        agree(function, X, correction=1)
        agree(function, X, ddof=1, correction=1)
        agree(function, I8, axis=0, ddof=2)
        agree(function, I8, axis=0, ddof=9)
        agree(function, X, axis=0, mean=X.mean(0, keepdims=True))
        agree(function, X.astype(np.float16), dtype=np.float64)
    agree(np.sum, I8, dtype=np.int8)
    agree(np.sum, X, dtype=np.float32, tolerance=1e-6)
    agree(np.mean, X, dtype=np.float32, tolerance=1e-6)
    agree(np.mean, I8, dtype=np.int32)


def test_average():
    agree(np.average, X, weights=np.abs(X))
    agree(np.average, X, axis=1, weights=np.abs(Y))
    agree(np.average, X, axis=0, returned=True)
    agree(np.average, I8, axis=1, weights=np.arange(4), keepdims=True)
    agree(np.average, Z, axis=(0, 2), weights=rng.random((2, 4)))
    agree(np.average, Z, axis=(2, 0), weights=rng.random((4, 2)), returned=True)
    agree(np.average, X, axis=1, weights=np.ones(3))


def test_quantiles():
    for q in (0.3, 0.5, 0.0, 1.0, np.array([0.1, 0.7]), np.array([[0.2, 0.9], [0.5, 0.0]])):
        for array in (X, Y, X.astype(np.float32), I8, Z, NAN):
            for axis in (None, 0, -1):
                agree(np.quantile, array, q, axis=axis)
                agree(np.percentile, array, q * 100, axis=axis, keepdims=True)
        agree(np.quantile, Z, q, axis=(0, 2))
    agree(np.quantile, X, 1.5)
    agree(np.quantile, X, np.zeros((1, 1, 1)))


METHODS = (
    "linear lower higher midpoint nearest inverted_cdf averaged_inverted_cdf closest_observation "
    "interpolated_inverted_cdf hazen weibull median_unbiased normal_unbiased"
).split()


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_quantiles(method):
    shares = np.array([0.0, 0.1, 0.25, 0.3, 0.5, 0.625, 0.99, 1.0])
    for array in (X, Y, NAN, Z, np.arange(8.0), X.astype(np.float32), np.array([2.0])):
        agree(np.quantile, array, shares, axis=-1, method=method)
        agree(np.nanquantile, array, shares, axis=-1, method=method)
        agree(np.percentile, array, 40, method=method)
    for array in (I8, np.arange(9)):
        agree(np.quantile, array, shares, axis=-1, method=method)
    apart = np.array([0.13, 0.31, 0.87])
    check_derivative(lambda x, q: np.quantile(x, q, axis=1, method=method) ** 2, X, apart)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="NumPy 2.0 takes leading zeros into account")
def test_quantiles_with_weights():
    shares = np.array([0.0, 0.2, 0.5, 0.77, 1.0])
    weights = rng.integers(0, 4, X.shape) * 1.0
    weights[:, 1] = 1.0
    for array in (X, NAN, I8):
        agree(np.quantile, array, shares, axis=1, weights=weights, method="inverted_cdf")
        agree(np.quantile, array, 0.3, weights=weights, method="inverted_cdf", keepdims=True)
        agree(np.percentile, array, 30, axis=1, weights=weights[0], method="inverted_cdf")
        agree(np.nanquantile, array, shares, axis=0, weights=weights + 0.5, method="inverted_cdf")
    agree(np.quantile, X, 0.3, weights=weights)
    agree(np.quantile, X, 0.3, weights=-weights, method="inverted_cdf")
    agree(np.quantile, X, 0.3, weights=0 * weights, method="inverted_cdf")
    agree(np.quantile, X, 0.3, weights=weights[0], method="inverted_cdf")
    check_derivative(
        lambda x, w: np.quantile(x, 0.4, axis=1, weights=w, method="inverted_cdf") ** 2, X, rng.random(X.shape)
    )


def test_quantiles_without_nan():
    for array in (NAN, X, Z, I8, X.astype(np.float32)):
        for axis in (None, 0, 1):
            agree(np.nanmedian, array, axis)
            agree(np.nanquantile, array, np.array([0.0, 0.3, 1.0]), axis=axis)
            agree(np.nanpercentile, array, 40.0, axis=axis, keepdims=True)


def test_covariance():
    for array in (X, Y, X.astype(np.float32), I8, X[:1]):
        agree(np.cov, array)
        agree(np.cov, array, rowvar=False)
        agree(np.corrcoef, array)
        agree(np.cov, array, bias=True)
        agree(np.cov, array, ddof=9)
    agree(np.cov, X, Y)
    agree(np.corrcoef, X, Y)
    agree(np.cov, Z)
    counts, amounts = np.array([1, 2, 0, 3]), np.array([0.5, 1.5, 1.0, 0.2])
    for ddof in (None, 0, 1, 2, 9, 0.5):
        agree(np.cov, X, fweights=counts, ddof=ddof)
        agree(np.cov, X, Y, aweights=amounts, ddof=ddof)
        agree(np.cov, Y, fweights=counts, aweights=amounts, ddof=ddof)
    agree(np.cov, X, fweights=counts + 0.5)
    agree(np.cov, X, fweights=-counts)
    agree(np.cov, X, aweights=-amounts)
    check_derivative(lambda x, w: np.cov(x, aweights=w, fweights=counts), X, amounts)


def test_bincount():
    numbers = np.array([3, 1, 1, 0, 5])
    agree(np.bincount, numbers)
    agree(np.bincount, numbers, minlength=9)
    agree(np.bincount, numbers, weights=np.arange(5) * 0.5)
    agree(np.bincount, numbers[:0])
    agree(np.bincount, -numbers)
    agree(np.bincount, numbers, weights=np.ones(3))
    check_derivative(lambda w: np.bincount(numbers, weights=w * w), rng.normal(size=5))


def test_differences_and_integrals():
    for n in (0, 1, 2, 5, -1):
        agree(np.diff, X, n)
        agree(np.diff, B, n, axis=0)
        agree(np.diff, Y, n, prepend=0.0, append=Y)
    agree(np.diff, U8)
    agree(np.diff, I8, prepend=1.5)
    agree(np.diff, np.array(1.0))
    agree(np.ediff1d, X)
    agree(np.ediff1d, X, 1.0, [2.0, 3.0])
    for array in (X, I8, Z, X.astype(np.float32)):
        agree(np.trapezoid, array)
        agree(np.trapezoid, array, dx=2)
        agree(np.trapezoid, array, axis=0, dx=0.5)
        agree(np.trapezoid, array, np.sort(Y))
    agree(np.trapezoid, Z, Z, axis=1)


def test_array_api_scans():
    agree(np.cumulative_sum, Y, include_initial=True)
    agree(np.cumulative_prod, I8, axis=1, include_initial=True)
    agree(np.cumulative_sum, X)


def test_ufunc_methods():
    for name in ("add", "multiply", "maximum", "minimum", "logical_and", "logical_or"):
        for array in (X, I8, B, NAN):
            agree(getattr(np, name).reduce, array)
            (got,) = interpret([cumulative.accumulate_ufunc(name, constant(array), 1)])
            np.testing.assert_allclose(got, getattr(np, name).accumulate(array, axis=1))
    node = constant(I8)
    assert reductions.reduce_ufunc("add", node, None, dtype=np.int8).dtype == np.int8
    with pytest.raises(ArgumentError, match="not supported"):
        reductions.reduce_ufunc("subtract", node)
    with pytest.raises(ArgumentError, match="not supported"):
        cumulative.accumulate_ufunc("subtract", node)


DERIVATIVES = {
    "sum": lambda x: np.sum(x * x, axis=(0, -1)),
    "sum where": lambda x: np.sum(x**3, axis=1, where=B),
    "prod": lambda x: np.prod(x, axis=1),
    "prod initial": lambda x: np.prod(x, initial=2.0),
    "mean": lambda x: np.mean(np.exp(x), axis=0),
    "max": lambda x: np.max(x * x, axis=1),
    "min": lambda x: np.min(x),
    "ptp": lambda x: np.ptp(x, axis=0),
    "var": lambda x: np.var(x, axis=1, ddof=1),
    "var all": lambda x: np.var(x),
    "var where": lambda x: np.var(x * x, axis=0, where=B | (np.arange(3)[:, None] == 1)),
    "std": lambda x: np.std(x, axis=0),
    "nanmean": lambda x: np.nanmean(np.where(B, x, np.nan) * 2.0),
    "nanvar": lambda x: np.nanvar(np.where(B, x, np.nan)),
    "average": lambda x: np.average(x, axis=1, weights=x[0] ** 2 + 1.0),
    "median": lambda x: np.median(x, axis=1),
    "median odd": lambda x: np.median(x, axis=0),
    "quantile": lambda x: np.quantile(x, np.array([0.2, 0.55]), axis=1),
    "nanmedian": lambda x: np.nanmedian(np.where(B, x, np.nan) ** 2, axis=1),
    "cov": lambda x: np.cov(x, x[0] ** 2),
    "corrcoef": lambda x: np.corrcoef(x)[0, 1:],
    "cumsum": lambda x: np.cumsum(x * x, axis=0),
    "cumsum flat": lambda x: np.cumsum(np.sin(x)),
    "cumprod": lambda x: np.cumprod(x, axis=1),
    "maximum.accumulate": lambda x: np.maximum.accumulate(x * x, axis=0),
    "diff": lambda x: np.diff(x * x, n=2, axis=1, prepend=0.5),
    "ediff1d": lambda x: np.ediff1d(x**2),
    "trapezoid": lambda x: np.trapezoid(x * x, x[0], axis=1),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    check_derivative(DERIVATIVES[name], X)


def test_quantile_differentiates_in_q():
    check_derivative(lambda x, q: np.quantile(x, q, axis=1), X, np.array([0.21, 0.6]))


def test_product_with_zeros():
    x = np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0]])
    (g,) = gradients(lambda x: np.prod(x, axis=1), x)
    np.testing.assert_array_equal(g, [[0, 6, 0], [0, 0, 0]])
    (g,) = gradients(lambda x: np.cumprod(x, axis=1), x)
    np.testing.assert_array_equal(g, [[1, 2 + 6, 0], [1, 0, 0]])


def test_ties_share_and_nan_wins():
    (g,) = gradients(lambda x: np.max(x, axis=1), np.array([[3.0, 1, 3], [1, 2, 0]]))
    np.testing.assert_array_equal(g, [[0.5, 0, 0.5], [0, 1, 0]])
    assert np.argmax(lift(np.array([1.0, np.nan, 5, np.nan]))).item() == 1
    assert np.argmin(lift(np.array([3.0, 1, 1]))).item() == 1
    assert np.argmax(lift(X)).dtype == np.int64


def test_std_of_equal_elements_has_derivative_zero():
    for function in (np.std, np.nanstd):
        (g,) = gradients(function, np.full(5, 3.0))
        np.testing.assert_array_equal(g, np.zeros(5))


def test_variance_is_computed_in_two_passes():
    x = 1e9 + np.array([4.0, 7, 13, 16])
    assert float(np.var(lift(x), ddof=1)) == 30.0


def test_variance_gradient_of_a_long_array():
    x = rng.normal(size=1000) + 1e6
    (g,) = gradients(np.var, x)
    np.testing.assert_allclose(g, 2 * (x - x.mean()) / 1000, rtol=1e-6, atol=1e-12)


def test_nan_positions():
    agree(np.nanargmax, NAN[1:], axis=1)
    agree(np.nanargmin, NAN[1:], axis=0)
    agree(np.nanargmax, NAN, axis=1)
    agree(np.nanargmin, I8)


def test_out():
    target = lift(np.zeros(4))
    assert np.sum(lift(X), axis=0, out=target) is target
    np.testing.assert_allclose(target.asnumpy(), X.sum(0))
    plain = np.zeros(4)
    np.sum(lift(X), axis=0, out=plain)
    np.testing.assert_allclose(plain, X.sum(0))
    with pytest.raises(ShapeError, match="out has shape"):
        np.sum(lift(X), axis=1, out=lift(np.zeros(4)))
    with pytest.raises(DtypeError, match="cannot be stored"):
        np.sum(lift(X), out=lift(np.array(1)))
    traced = Tensor._of(placeholder((3, 4), np.dtype(float), X))
    with recording(), pytest.raises(TracedValueError, match="cut off"):
        np.sum(traced, axis=0, out=plain)


def test_out_differentiates():
    def function(x):
        target = lift(np.zeros(4))
        np.sum(x * x, axis=0, out=target)
        return target * 1.0

    (g,) = gradients(function, X)
    np.testing.assert_allclose(g, 2 * X)


def test_errors_name_the_shape_and_the_line():
    with pytest.raises(ShapeError, match=r"out of bounds.*test_reductions.py"):
        np.sum(lift(X), axis=2)
    with pytest.raises(ShapeError, match="twice"):
        np.sum(lift(X), axis=(0, 0))
    with pytest.raises(ShapeError, match="max of no elements"):
        np.max(lift(np.zeros((0, 3))), axis=0)
    with pytest.raises(ShapeError, match="initial"):
        np.max(lift(X), where=B)
    with pytest.raises(ArgumentError, match="method"):
        np.quantile(lift(X), 0.5, method="middle")
    with pytest.raises(NbgradError, match="nothing but NaN"):
        np.nanargmax(lift(NAN), axis=1)


def test_sizes_are_not_part_of_the_program():
    """Different counts give graphs that differ in constants only, so that one compiled kernel serves them."""
    graphs = [reductions.reduce_ufunc("add", constant(np.ones(n)), None) for n in (100, 200)]
    assert [g.primitive for g in graphs] == [graphs[0].primitive] * 2
    names = []
    for n in (100, 200):
        mean = mean_node(constant(np.ones(n)))
        assert float(interpret([mean])[0]) == 1.0
        names.append([source.name for source in mean.inputs])
    assert names == [["sum", "constant"]] * 2


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 9, 12])
def test_derivative_of_products_along_short_and_long_axes(n):
    """Each element's is the product of all others, also where some are 0."""
    x = np.random.default_rng(n).normal(size=(4, n))
    x[0, 0] = x[1, 0] = x[1, -1] = 0.0
    want = [[np.prod(np.delete(row, k)) for k in range(n)] for row in x]
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(np.prod(x, axis=1)))(x), want, rtol=1e-14)
    nb.check_grads(lambda x: np.prod(x, axis=1), (x,), order=2)


def test_running_extrema_of_three_axes():
    x, w = np.random.default_rng(8).normal(size=(2, 2, 3, 4))
    found = nb.grad(lambda x: np.sum(np.maximum.accumulate(x, axis=-1) * w))(x)
    expected = np.zeros_like(x)
    for i, j in np.ndindex(2, 3):
        for k in range(4):
            expected[i, j, np.argmax(x[i, j, : k + 1])] += w[i, j, k]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
