"""Functions of NumPy's main namespace agree with NumPy on Tensors, and their derivatives with differences of NumPy:
sets, histograms, positions, polynomials, functions of slices and elements."""

from __future__ import annotations

import math

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, ShapeError, TracedValueError
from nbgrad.record.tensor import Tensor

from .agreement import agree, check_derivative, lift, quiet

pytestmark = pytest.mark.unoptimized

rng = np.random.default_rng(3)
X, Y = rng.normal(size=(3, 4)), rng.normal(size=7)
F4 = X.astype(np.float32)
I8 = rng.integers(-4, 5, (3, 4)).astype(np.int8)
TIES = np.array([3.0, 1.0, 3.0, 2.0, 1.0, 1.0])
NAN = np.array([2.0, np.nan, 1.0, np.nan])
EMPTY = np.zeros(0)


# ----- Sets -----


@pytest.mark.parametrize("function", [np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d], ids=lambda f: f.__name__)
def test_sets_of_two(function):
    others = np.array([1.0, 5.0, 3.0, 5.0])
    for pair in (
        (TIES, others),
        (I8, np.arange(3)),
        (EMPTY, TIES),
        (TIES, EMPTY),
        (NAN, others),
        (F4, X),
        (X > 0, X > 1),
    ):
        agree(function, *pair)
    if function is not np.union1d:
        agree(function, np.array([3.0, 1.0]), np.array([2.0, 1.0]), assume_unique=True)
    if function is np.intersect1d:
        agree(function, TIES, others, return_indices=True)
    check_derivative(lambda a, b: function(a, b) ** 2, np.array([0.3, -1.0, 2.0]), np.array([5.0, 0.2]), second=False)


def test_unique_values():
    for array in (TIES, I8, NAN, EMPTY, X > 0, F4):
        for function in (np.unique_all, np.unique_counts, np.unique_inverse):
            agree(function, array)
        # NumPy leaves the order open here.
        np.testing.assert_array_equal(np.unique_values(lift(array)), np.sort(np.unique_values(array)))
    assert type(np.unique_counts(lift(TIES))) is type(np.unique_counts(TIES))
    assert np.unique_all(lift(TIES)).indices.dtype == np.int64


# ----- Histograms -----


@pytest.mark.parametrize("bins", [5, np.int8(2), "auto", "fd", "sqrt", np.array([-1.0, 0.0, 0.5, 2.0]), [0, 1, 1, 2]])
def test_histogram(bins):
    weights = rng.normal(size=X.shape)
    for array in (X, I8, F4, TIES, X > 0, EMPTY):
        agree(np.histogram, array, bins)
        agree(np.histogram_bin_edges, array, bins)
        if array is not EMPTY:
            agree(np.histogram, array, bins, density=True)
        agree(np.histogram, array, bins, (-0.5, 1.0))
        agree(np.histogram_bin_edges, array, bins, (0, 2))
    if not isinstance(bins, str):
        agree(np.histogram, X, bins, weights=weights)
        agree(np.histogram, X, bins, weights=I8)
        agree(np.histogram, X, bins, weights=weights, density=True)
    else:
        agree(np.histogram, X, bins, weights=weights)


def test_histogram_errors():
    for arguments in (
        (NAN, 3),
        (X, 0),
        (X, 2.5),
        (X, [2, 1]),
        (X, [[1, 2]]),
        (X, 3, (2, 1)),
        (X, 3, (0, np.inf)),
        (X, "none of these"),
        (X, 3, None, None, Y),
    ):
        agree(np.histogram, *arguments)


def test_histogram_of_several():
    points, weights = rng.normal(size=(20, 2)), rng.random(20)
    for bins in (4, [3, 2], [np.array([-1.0, 0, 2]), 3], [[-1, 0, 1], [-2.0, 0, 1, 2]]):
        agree(np.histogramdd, points, bins)
        agree(np.histogramdd, points, bins, density=True, weights=weights)
        agree(np.histogramdd, (points[:, 0], points[:, 1]), bins)
        agree(np.histogram2d, points[:, 0], points[:, 1], bins)
        agree(np.histogram2d, points[:, 0], points[:, 1], bins, weights=weights)
    agree(np.histogram2d, points[:, 0], points[:, 1], np.array([-1.0, 0, 0.5, 2]))
    agree(np.histogramdd, points, 3, ((-1, 1), (0, 2.0)))
    agree(np.histogramdd, points, [3])
    agree(np.histogram2d, points[:, 0], Y, 3)
    agree(np.histogramdd, points.astype(np.float32), 3)


def test_histogram_derivatives():
    edges = np.array([-1.0, 0.1, 0.9, 2.0])
    check_derivative(lambda x, w: np.histogram(x, edges, weights=w)[0] * w[0, :3], X, rng.random(X.shape))
    check_derivative(lambda x, w: np.histogram(x, edges, weights=w, density=True)[0], X, rng.random(X.shape))
    check_derivative(lambda x: np.histogram_bin_edges(x, 3) ** 2, X)
    check_derivative(lambda e, w: np.histogram(X, e, weights=w, density=True)[0], edges, rng.random(X.shape))
    check_derivative(lambda x, w: np.histogram2d(x, x * 2, 3, weights=w)[0] * w[0], Y, rng.random(7))
    # Counts are piecewise constant.
    counts = nb.grad(lambda x: np.sum(np.histogram(x, edges)[0] * 1.5) + np.sum(x))
    np.testing.assert_array_equal(counts(X), np.ones_like(X))


def test_histogram_compiled():
    edges = np.linspace(-2, 2, 5)
    compiled = nb.jit(lambda x, w: np.histogram(x, edges, weights=w)[0])
    for _ in range(3):
        points, weights = rng.normal(size=9), rng.random(9)
        np.testing.assert_allclose(compiled(points, weights), np.histogram(points, edges, weights=weights)[0])
    with pytest.raises(TracedValueError):
        nb.jit(lambda x: np.histogram(x, "auto")[0])(X)


# ----- Positions -----


def test_positions():
    square = np.zeros((4, 4))
    agree(np.diag_indices_from, square)
    agree(np.diag_indices_from, X)
    for k in (-1, 0, 2):
        agree(np.tril_indices_from, X, k)
        agree(np.triu_indices_from, X, k)
    agree(np.tril_indices_from, Y)
    agree(np.ix_, np.array([0, 2]), np.array([True, False, True]), [1])
    agree(np.ix_, X)
    agree(np.ix_, np.array([], np.int64), np.array([1]))
    np.testing.assert_array_equal(lift(X)[np.ix_(lift(np.array([0, 2])), [1, 3])], X[np.ix_([0, 2], [1, 3])])


@pytest.mark.parametrize("order", ["C", "F"])
def test_flat_positions(order):
    flat = np.array([[0, 5, 23], [7, 11, 2]])
    agree(np.unravel_index, flat, (2, 3, 4), order=order)
    agree(np.unravel_index, np.array(7), (2, 3, 4), order)
    agree(np.unravel_index, np.array([24]), (2, 3, 4), order)
    agree(np.unravel_index, np.array([-1]), (2, 3, 4), order)
    agree(np.unravel_index, np.array([1.5]), (2, 3, 4), order)
    parts = np.unravel_index(flat, (2, 3, 4))
    agree(np.ravel_multi_index, parts, (2, 3, 4), order=order)
    far = (np.array([-1, 5]), np.array([2, 9]))
    agree(np.ravel_multi_index, far, (3, 4), order=order)
    for mode in ("wrap", "clip", ("clip", "wrap")):
        agree(np.ravel_multi_index, far, (3, 4), mode, order)


def test_iteration_over_positions():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert [(k, float(v)) for k, v in nb.numpy.ndenumerate(x)] == [((0, 0), 1), ((0, 1), 2), ((1, 0), 3), ((1, 1), 4)]
    got = nb.grad(lambda x: sum(v**2 * (1 + i + 2 * j) for (i, j), v in nb.numpy.ndenumerate(x)))(np.ones((2, 2)))
    np.testing.assert_array_equal(got, [[2, 6], [4, 8]])


# ----- Polynomials -----

P, Q = np.array([2.0, -1.0, 0.5, 3.0]), np.array([1.0, 4.0])


@pytest.mark.parametrize("name", ["polyadd", "polysub", "polymul", "polydiv"])
def test_polynomial_arithmetic(name):
    function = getattr(np, name)
    for pair in ((P, Q), (Q, P), (P, 2.0), (P.astype(np.float32), Q.astype(np.float32)), (P, [1, 2]), ([1, 2], Q)):
        agree(function, *pair)
    agree(function, np.array([1, 2]), np.array([3, 1, 4]))
    agree(function, X, Q)
    agree(function, np.array([0.0, 0.0, 1.0, 2.0]), np.array([3.0, 0.0]))
    if name != "polydiv":
        agree(function, np.array([1.0, 2.0]), np.array([0.0, 3.0]))
        agree(function, EMPTY, np.array([0.0, 3.0]))
    check_derivative(lambda p, q: function(p, q), P, Q)
    whole = function(np.poly1d(P), lift(Q))
    assert all(isinstance(part, np.poly1d) for part in (whole if isinstance(whole, tuple) else (whole,)))


def test_polynomial_calculus():
    for m in (0, 1, 2, 5):
        agree(np.polyder, P, m)
        agree(np.polyint, P, m)
    agree(np.polyder, P, -1)
    agree(np.polyint, P, -1)
    agree(np.polyint, P, 2, 3.0)
    agree(np.polyint, P, 2, np.array([3.0, 1.0]))
    agree(np.polyint, P, 3, np.array([3.0, 1.0]))
    agree(np.polyint, np.array([1, 2]))
    check_derivative(lambda p: np.polyder(p) ** 2, P)
    check_derivative(lambda p, k: np.polyint(p, 2, k) ** 2, P, Q)


def test_polynomial_values():
    agree(np.polyval, np.poly1d(P), X)
    agree(np.polyval, P, X.astype(np.float32))
    agree(np.polyval, rng.normal(size=(3, 4)), X)
    check_derivative(lambda p, x: np.polyval(p, x), P, X)
    composed = np.polyval(lift(P), np.poly1d(Q))
    np.testing.assert_allclose(composed.coeffs, np.polyval(P, np.poly1d(Q)).coeffs)
    # A np.poly1d calls polyval.
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(np.poly1d(P)(x)))(X), np.polyval(np.polyder(P), X))


VALUES = {
    "polynomial": "polyval",
    "chebyshev": "chebval",
    "legendre": "legval",
    "hermite": "hermval",
    "hermite_e": "hermeval",
    "laguerre": "lagval",
}


@pytest.mark.parametrize("module", VALUES)
def test_series_of_numpy_polynomial(module):
    """`numpy.polynomial` is arithmetic on x, which differentiates as it is."""
    library = getattr(np.polynomial, module)
    value = getattr(library, VALUES[module])
    slope = getattr(library, value.__name__.replace("val", "der"))
    got = nb.grad(lambda x: np.sum(value(x, P)))(X)
    np.testing.assert_allclose(got, value(X, slope(P)), rtol=1e-12)


def test_products_of_polynomials_in_vmap():
    """Under vmap, coefficients at the end may be zero in some rows only: all stay."""

    def product(p):
        one = np.polynomial.Legendre(p)
        return (one**2 * one.deriv()).integ(lbnd=-1)(1.5)

    rows = np.array([[1.0, 2.0, 0.5], [0.5, -1.0, 0.0]])
    ours = nb.differentiable_source(product)
    np.testing.assert_allclose(nb.vmap(ours)(rows), [product(row) for row in rows], rtol=1e-12)
    np.testing.assert_allclose(nb.vmap(nb.grad(ours))(rows)[0], nb.grad(ours)(rows[0]), rtol=1e-12)


# ----- Functions of slices and elements -----


def test_apply_along_axis():
    for axis in (0, 1, -1):
        agree(np.apply_along_axis, lambda v: np.sum(v * v), axis, X)
        agree(np.apply_along_axis, lambda v: np.sort(v)[:2], axis, X)
        agree(np.apply_along_axis, lambda v, k: np.outer(v, v) * k, axis, X, 2.0)
        agree(np.apply_along_axis, lambda v, k=1.0: (v[0] * k, v[-1]), axis, X, k=3.0)
        agree(np.apply_along_axis, lambda v: 1.5, axis, X)
        agree(np.apply_along_axis, lambda v: np.argmax(v), axis, X)
        # One that branches on values.
        agree(np.apply_along_axis, lambda v: v[0] if v[0] > 0 else np.sum(v), axis, X)
        check_derivative(lambda x, axis=axis: np.apply_along_axis(lambda v: np.cumsum(v) * v[0], axis, x), X)
        check_derivative(
            lambda x, axis=axis: np.apply_along_axis(lambda v: v[1] ** 2 if v[0] > 0 else np.prod(v), axis, x), X
        )
    agree(np.apply_along_axis, np.sum, 2, X)
    agree(np.apply_along_axis, np.sum, 0, np.zeros((3, 0)))
    compiled = nb.jit(nb.grad(lambda x: np.sum(np.apply_along_axis(lambda v: np.sin(v) * v[0], 0, x))))
    np.testing.assert_allclose(compiled(X), nb.grad(lambda x: np.sum(np.sin(x) * x[0]))(X))


def test_apply_over_axes():
    agree(np.apply_over_axes, np.sum, rng.normal(size=(2, 3, 4)), [0, 2])
    agree(np.apply_over_axes, lambda a, axis: np.cumsum(a, axis), X, (0, -1))
    agree(np.apply_over_axes, np.mean, X, 1)
    agree(np.apply_over_axes, lambda a, axis: np.sum(a), X, (0, 1))
    check_derivative(lambda x: np.apply_over_axes(np.std, x, [1]) ** 2, X)


def _bend(x, low=0.0):
    return math.sqrt(2.0) * x if x > low else low + x * x


def test_vectorize():
    ours, theirs = nb.numpy.vectorize(_bend), np.vectorize(_bend)
    for arguments in ((X,), (X, 0.3), (X, Y[:4]), (2.0, -1.0)):
        np.testing.assert_allclose(ours(*arguments), theirs(*arguments))
        np.testing.assert_allclose(ours(*map(lift, arguments)), theirs(*arguments))
    np.testing.assert_allclose(ours(X, low=0.5), theirs(X, low=0.5))
    expected = np.where(X > 0, math.sqrt(2.0), 2 * X)
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(ours(x)))(X), expected)
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(nb.numpy.vectorize(theirs)(x)))(X), expected)
    # Without a branch it is recorded once, also while jit records.
    smooth = nb.numpy.vectorize(lambda x, y: (np.sin(x) * y, x))
    np.testing.assert_allclose(nb.jit(nb.grad(lambda x: np.sum(smooth(x, Y[:4])[0])))(X), np.cos(X) * Y[:4])


def test_vectorize_options():
    calls = []

    def function(x, table, power=1):
        calls.append(x)
        return table[0] * x**power

    ours = nb.numpy.vectorize(function, otypes=[np.float32], excluded={1, "power"})
    got = ours(X, [2.0, 3.0], power=2)
    assert got.dtype == np.float32 and len(calls) == 2
    np.testing.assert_allclose(got, 2 * X**2, rtol=1e-6)
    assert ours(EMPTY, [2.0]).shape == (0,)
    with pytest.raises(ShapeError, match="otypes"):
        nb.numpy.vectorize(_bend)(EMPTY)

    @nb.numpy.vectorize(signature="(m,n),(n)->(m)")
    def product(a, b):
        return a @ b

    matrices, vectors = rng.normal(size=(5, 2, 3)), rng.normal(size=(4, 1, 3))
    theirs = np.vectorize(np.dot, signature="(m,n),(n)->(m)")
    np.testing.assert_allclose(product(matrices, vectors), theirs(matrices, vectors))
    for wrong in ("(m,n->(m)", "m->m"):
        with pytest.raises(ArgumentError, match="signature"):
            nb.numpy.vectorize(_bend, signature=wrong)
    with pytest.raises(ShapeError, match="extents"):
        product(matrices, rng.normal(size=2))


def test_vectorized_functions_may_draw_random_numbers():
    """They are called for each element, as in NumPy, since they do not do the same in each call."""

    def noisy(draws):
        return lambda x: x * draws.normal() + draws.integers(3)

    got = nb.grad(lambda x: np.sum(nb.numpy.vectorize(noisy(np.random.default_rng(1)))(x) * 2.0))(X)
    assert len(np.unique(got)) == X.size
    draws = np.random.default_rng(1)
    # The two calls of the recording draw first.
    for _ in range(2):
        draws.normal(), draws.integers(3)
    np.testing.assert_allclose(got.ravel()[0], 2 * draws.normal())

    count = 0

    def counted(v):
        nonlocal count
        count += 1
        return v * count

    got = np.apply_along_axis(counted, 1, lift(X)).asnumpy()
    assert len(np.unique(np.round(got / X, 9))) == 3
    same = np.apply_along_axis(lambda v: v * 0.12345 + np.array([1.0, np.nan, 3.0, 4.0]), 1, lift(X))
    np.testing.assert_allclose(same, X * 0.12345 + np.array([1.0, np.nan, 3.0, 4.0]))


def test_numpy_vectorize_says_what_to_do():
    with pytest.raises(TracedValueError):
        nb.grad(lambda x: np.sum(np.vectorize(_bend)(x)))(X)


def test_frompyfunc():
    """What NumPy made of a Python function works on Tensors, because NumPy asks them."""
    ufunc = np.frompyfunc(lambda x, y: x * y if x > 0 else y, 2, 1)
    with quiet():
        want = ufunc(X, Y[:4]).astype(float)
    np.testing.assert_allclose(ufunc(lift(X), lift(Y[:4])), want)
    got = nb.grad(lambda x: np.sum(ufunc(x, Y[:4])))(X)
    np.testing.assert_allclose(got, np.where(X > 0, Y[:4], 0))
    two = np.frompyfunc(lambda x: (x + 1, x * 2), 1, 2)
    np.testing.assert_allclose(two(lift(X))[1], 2 * X)
    np.testing.assert_allclose(nb.numpy.frompyfunc(lambda x: x + 1, 1, 1)(X), X + 1)


def test_piecewise_calls_functions_with_their_piece():
    def centred(v):
        return v - np.mean(v)

    agree(np.piecewise, X, [X > 0], [centred, lambda v: v * len(v)])
    check_derivative(lambda x: np.piecewise(x, [x > 0], [centred, lambda v: v**2]), X)
    compiled = nb.jit(lambda x: np.piecewise(x, [x > 0], [np.sqrt, lambda v: v**2]))
    for array in (X, -X):
        with quiet():
            np.testing.assert_allclose(compiled(array), np.piecewise(array, [array > 0], [np.sqrt, lambda v: v**2]))
    with pytest.raises(TracedValueError, match="element by element"):
        nb.jit(lambda x: np.piecewise(x, [x > 0], [centred]))(X)
    agree(np.piecewise, np.array(2.0), [np.array(True)], [lambda v: v * 3])
    agree(np.piecewise, I8, [I8 > 0, I8 < -1], [lambda v: v * 1.5, -7])


# ----- Windows -----


def test_sliding_windows():
    view = np.lib.stride_tricks.sliding_window_view
    agree(view, Y, 3)
    agree(view, X, (2, 3))
    agree(view, X, 2, axis=0)
    agree(view, X, (2, 2), axis=(1, 1))
    agree(view, rng.normal(size=50), 40)
    agree(view, rng.normal(size=(2, 50, 3)), (40, 2), (1, 2))
    agree(view, Y, 0)
    agree(view, Y, 7)
    agree(view, Y, 9)
    agree(view, X, 3)
    agree(view, X, -1, axis=0)
    check_derivative(lambda x: view(x, (2, 3)) ** 2, X)
    check_derivative(lambda x: np.mean(view(x, 3), axis=-1), Y)


# ----- Infinite and complex elements -----


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("count", [4, 80])
def test_an_infinite_element_spoils_only_what_it_meets(mode, count):
    line, taps = rng.normal(size=100), rng.normal(size=count)
    line[3], taps[1] = np.inf, np.nan
    for function in (np.convolve, np.correlate):
        agree(function, line, taps, mode)
        agree(function, taps, line, mode)
        agree(function, line[:60], taps[:2] * 1j, mode)


def test_pad_with_infinite_elements():
    line = np.array([1.0, np.inf, 3.0, np.nan, 2.0])
    for mode in ("reflect", "symmetric"):
        agree(np.pad, line, 4, mode, reflect_type="odd")


def test_quantiles_between_finite_and_infinite():
    for array in ([1.0, 2.0, np.inf], [-np.inf, 1.0, 2.0, 3.0], [-np.inf, np.inf, 0.0]):
        for q in (0.1, 0.3, 0.7, 0.9):
            agree(np.nanquantile, np.array([*array, np.nan]), q)


C = rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))
COMPLEX = {
    "linspace": (lambda z: np.linspace(z[0], z[1], 5, axis=1), True),
    "geomspace": (lambda z: np.geomspace(z[0], z[1], 5), True),
    "logspace": (lambda z: np.logspace(z[0], z[1], 4), True),
    "interp": (lambda z: np.interp(X, np.arange(4.0), z[0], left=z[0, 0] * 2), True),
    "cov": (lambda z: np.cov(z, aweights=[1.0, 2.0, 0.5, 1.5]), True),
    "corrcoef": (lambda z: np.corrcoef(z), True),
    "histogram": (lambda z: np.histogram(X, [-1.0, 0.0, 2.0], weights=z)[0], True),
    "median": (lambda z: np.median(z, axis=1), True),
    "nanmedian": (lambda z: np.nanmedian(np.where(X > 1, np.nan, z), axis=1), True),
    "unique": (lambda z: np.unique(z), False),
    "trim_zeros": (lambda z: np.trim_zeros(np.concatenate([z[0] * 0, z[1]])), False),
    "polyval": (lambda z: np.polyval(z[0], z[1]), True),
    "polyfit": (lambda z: np.polyfit(np.arange(4.0), z[0], 2), True),
    "poly": (lambda z: np.poly(z[0]), True),
    "pad": (lambda z: np.pad(z, 1, "mean"), True),
    "ramp": (lambda z: np.pad(z, 2, "linear_ramp", end_values=1j), True),
    "piecewise": (lambda z: np.piecewise(z, [X > 0], [lambda v: v**2, 1j]), True),
    "along axis": (lambda z: np.apply_along_axis(lambda v: v * np.sum(v), 0, z), True),
    "isin": (lambda z: np.isin(z, [z[0, 1], 2.0]), False),
    "union": (lambda z: np.union1d(z[0], z[1]), False),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name):
    function, smooth = COMPLEX[name]
    agree(function, C)
    if smooth:

        def parts(x, y):
            result = function(x + 1j * y)
            return [np.real(result), np.imag(result)]

        check_derivative(parts, C.real.copy(), C.imag.copy(), tolerance=1e-6)


def test_complex_numbers_have_no_quantiles():
    for function in (np.quantile, np.nanquantile):
        agree(function, C, 0.3)
    agree(np.digitize, C, [0.0, 1.0])
    agree(np.geomspace, np.float32(2), np.array([3, 5], np.float32), 4)
    agree(np.geomspace, -1.0, np.array([-8.0, np.nan]), 4)
