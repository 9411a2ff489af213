"""Calls of SciPy in converted code take the way that their arguments need: SciPy, nbgrad's forms, or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.spatial.distance
import scipy.stats

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError, NbgradError, RangeError, ShapeError, TracedValueError

pytestmark = pytest.mark.unoptimized

ndimage: Any = scipy.ndimage
interpolate: Any = scipy.interpolate
optimize: Any = scipy.optimize
stats: Any = scipy.stats
signal: Any = scipy.signal
distance: Any = scipy.spatial.distance

X = np.array([0.3, -0.7, 1.2, 0.4, 0.9, -0.2])
SPLINE = interpolate.CubicSpline(np.arange(6.0), X)
POLYNOMIAL = interpolate.BarycentricInterpolator(np.arange(6.0), X)
LINES = interpolate.interp1d(np.arange(6.0), X)
FROZEN = stats.gamma(2.0, scale=3.0)
SMOOTH = interpolate.UnivariateSpline(np.arange(6.0), X, s=0.3)
TABLE = interpolate.RectBivariateSpline(np.arange(6.0), np.arange(4.0), np.outer(X, X[:4]))
KDE = stats.gaussian_kde(X)
SHORT = signal.ShortTimeFFT(np.ones(4), 2, 1.0)


def later() -> Any:
    made = interpolate.BarycentricInterpolator(np.arange(6.0))
    made.set_yi(X)
    return made(2.5)


class Ramp(stats.rv_continuous):
    def _pdf(self, x: Any) -> Any:
        return 2 * x


def derived(x: Any) -> Any:
    class Ramp(stats.rv_continuous):
        def _pdf(self, x: Any) -> Any:
            return 2 * x

    return x * Ramp(a=0, b=1).cdf(0.5)


class Model:
    """An object that holds a spline, a distribution and a density."""

    def __init__(self) -> None:
        self.spline, self.prior, self.density, self.scale = SPLINE, FROZEN, KDE, 2.0

    def __call__(self, x: Any) -> Any:
        return self.scale * self.spline(x + 1.0) + self.prior.logpdf(x**2) + self.density(x)


MODEL = Model()


WAYS: dict[str, Callable[[Any], Any]] = {
    # Constants stay plain arrays, also inside of functions that are differentiated.
    "a spline of constants": lambda x: interpolate.CubicSpline(np.arange(6.0), np.linspace(0.0, 1.0, 6) ** 2)(x + 1.0),
    "a smoothing spline of constants": lambda x: x * interpolate.make_smoothing_spline(np.arange(6.0), X)(2.5),
    "a minimum of constants": lambda x: x * optimize.minimize(lambda z: (z[0] - 2.0) ** 2, [0.0]).x[0],
    "a root of constants": lambda x: x * optimize.brentq(lambda z: z - 0.5, 0.0, 1.0),
    "random numbers": lambda x: x * stats.norm.rvs(size=6, random_state=1),
    "a fit of constants": lambda x: x * stats.norm.fit(X)[1],
    # Recorded values are found in closures, arguments of functions, and containers.
    "a closure": lambda x: scipy.integrate.solve_ivp(lambda t, y: -x[0] * y, (0.0, 0.5), [1.0]).y[:, -1],
    "a list": lambda x: scipy.integrate.simpson([x[0], x[1], x[0] * x[1]], dx=0.1) * x,
    "args": lambda x: optimize.newton(lambda z, a: z**2 - a, 1.0, args=(x[2],)) * x,
    # Methods of distributions without a form are SciPy's Python code.
    "moments": lambda x: stats.gamma.mean(x**2) * stats.beta.var(x**2, 2.0) + stats.lognorm.std(0.5, scale=x**2),
    "a median": lambda x: stats.beta.median(x**2 + 1.0, 2.0) + stats.norm(x[0], 1.0).mean(),
    # Objects that were made elsewhere.
    "a spline": lambda x: SPLINE(x + 1.0) * SPLINE.derivative()(2.5),
    "lines": lambda x: LINES(x + 2.0),
    "a smoothed spline": lambda x: SMOOTH(x + 1.0) * SMOOTH.derivative()(x + 1.0),
    "a table of two variables": lambda x: TABLE.ev(x + 1.0, x) * TABLE(2.5, 1.5)[0, 0] + TABLE(x + 2, x, grid=False),
    "a polynomial": lambda x: POLYNOMIAL(x + 1.0) + POLYNOMIAL.derivative(1.0 + x),
    # Names that are SciPy's alone.
    "roots of a spline of constants": lambda x: x[:2] * SPLINE.roots(extrapolate=False)[:2],
    "an integral of constants": lambda x: x * KDE.integrate_box_1d(0.0, 1.0),
    "an entropy of vectors": lambda x: stats.multivariate_normal(X[:2], np.eye(2) * x[0]).entropy() * x,
    "a smoothed spline that is made here": lambda x: x * interpolate.UnivariateSpline(np.arange(6.0), X)(1.5),
    "a density that is made here": lambda x: x * stats.gaussian_kde(np.sort(X)).integrate_box_1d(0.0, 1.0),
    "values that come later": lambda x: x * later(),
    "a class's own name": lambda x: interpolate.BSpline.basis_element([0.0, 0.3, 0.7, 2.0])(x + 1.0),
    "a frozen distribution": lambda x: FROZEN.logpdf(x**2) + FROZEN.cdf(1.5),
    "a density estimate": lambda x: KDE(x) + KDE.logpdf(0.3),
    "short transforms": lambda x: np.abs(SHORT.stft(x)).sum(),
    "attributes of an object": lambda x: MODEL(x),
    # Classes.
    "a class of SciPy's as a question": lambda x: x * isinstance(SPLINE, interpolate.CubicSpline),
    "a derived class": derived,
    "a derived class from elsewhere": lambda x: x * Ramp(a=0, b=1).cdf(0.5),
}


@pytest.mark.parametrize("name", WAYS)
def test_the_way_fits_the_arguments(name: str) -> None:
    function = WAYS[name]
    converted = nb.differentiable_source(function)
    np.testing.assert_allclose(nb.vjp(converted, X)[0], function(X), rtol=1e-9)
    direction, step = np.array([0.2, -0.4, 0.3, 0.5, 0.1, -0.3]), 1e-5
    want = (function(X + step * direction) - function(X - step * direction)) / (2 * step)
    np.testing.assert_allclose(nb.jvp(converted, X, direction)[1], want, rtol=2e-5, atol=1e-6)


def test_modules_of_scipy_need_not_be_named() -> None:
    for modules in ("scipy", "scipy.optimize", ()):
        function = nb.differentiable_source(optimize.rosen, modules=modules)
        np.testing.assert_allclose(nb.grad(function)(X), optimize.rosen_der(X), rtol=1e-12)


def test_compiled_and_mapped() -> None:
    """One program of forms of each sort: gathered, filtered by SciPy, quantiles."""

    def function(x: Any) -> Any:
        moved = ndimage.shift(x, x[0], mode="nearest")
        return np.sum(signal.lfilter([1.0, 0.2], [1.0, x[3]], moved) ** 2) + np.sum(stats.t.ppf([0.1, 0.7], 2.0 + x[4]))

    gradient = nb.grad(nb.differentiable_source(function))
    compiled, both = nb.jit(gradient), np.stack([X, 0.9 * X])
    want = [gradient(one) for one in both]
    np.testing.assert_allclose([compiled(one) for one in both], want, rtol=1e-9)
    np.testing.assert_allclose(nb.vmap(gradient)(both), want, rtol=1e-9)


ERRORS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "a recorded zoom": (lambda x: ndimage.zoom(X, x[0]), ArgumentError, "affine_transform"),
    "a recorded angle": (lambda x: ndimage.rotate(np.outer(X, X), x[0]), ArgumentError, "reshape=False"),
    "a recorded width": (lambda x: ndimage.gaussian_filter(X, x[2]), ArgumentError, "radius="),
    "integers": (lambda x: ndimage.shift(np.arange(4), x[0]), DtypeError, "astype"),
    "an output": (lambda x: ndimage.shift(x, 0.3, output=np.zeros(6)), ArgumentError, "output"),
    "no such mode": (lambda x: ndimage.shift(x, 0.3, mode="far"), ArgumentError, "mode='far'"),
    "coordinates": (lambda x: ndimage.map_coordinates(x, np.zeros((2, 3))), ShapeError, "1 rows"),
    "abscissae that fall": (lambda x: interpolate.CubicSpline(-np.arange(6.0), x)(0.5), RangeError, "rise"),
    "few values": (lambda x: interpolate.CubicSpline([0.0, 1.0], x)(0.5), ShapeError, "abscissae"),
    "a point outside": (lambda x: interpolate.interp1d(np.arange(6.0), x)(9.0), RangeError, "outside"),
    "a point beyond a grid": (
        lambda x: interpolate.RegularGridInterpolator((np.arange(6.0),), x)([9.0]),
        RangeError,
        "outside of the grid",
    ),
    "a smoothing spline": (lambda x: interpolate.splrep(np.arange(6.0), x, s=1.0), ArgumentError, "s=0"),
    "a spline smoothed by default": (lambda x: interpolate.UnivariateSpline(np.arange(6.0), x), ArgumentError, "s=0"),
    "no shape parameter": (lambda x: stats.gamma.logpdf(x), ArgumentError, "needs a"),
    "too many parameters": (lambda x: stats.norm.logpdf(x, 1, 2, 3), ArgumentError, "takes loc, scale"),
    "a quantile of counts": (lambda x: stats.poisson.ppf(0.3, x**2), DtypeError, "no quantiles"),
    "an entropy by compiled code": (lambda x: stats.gamma.entropy(x**2), TracedValueError, "nb.primitive|nbgrad.numpy"),
    "shapes of distances": (lambda x: distance.cdist(x[None], X[None, :3]), ShapeError, "coordinates"),
    "a metric of truth values": (lambda x: distance.pdist(x[:, None], "jaccard"), ArgumentError, "jaccard"),
    "a singular matrix": (lambda x: scipy.linalg.solve_toeplitz(0 * x, X), ArgumentError, "singular"),
    "a state": (lambda x: signal.lfilter([1.0], [1.0, 0.3], x, zi=x), ShapeError, "zi"),
    "compiled code": (lambda x: ndimage.fourier_gaussian(x, 1.0), TracedValueError, "nb.primitive"),
    "compiled code in Cython": (lambda x: signal.find_peaks(x)[0], DtypeError, "find_peaks.*nb.primitive"),
    "a rational function": (lambda x: interpolate.AAA(np.arange(6.0), x)(2.0), ArgumentError, "abscissae"),
    "a rational function without poles": (
        lambda x: interpolate.FloaterHormannInterpolator(np.arange(6.0), x)(2.0),
        ArgumentError,
        "abscissae",
    ),
    "shares beyond one": (lambda x: stats.dirichlet.logpdf([0.2, 0.3, 0.9], x[::2] ** 2), RangeError, "sum to 1"),
    "concentrations below 0": (lambda x: stats.dirichlet.logpdf([0.2, 0.3, 0.5], x[:3]), RangeError, "than 0"),
    "a minimum on a grid": (
        lambda x: optimize.brute(lambda z: (z - x[0]) ** 2, ((0, 1),)),
        ArgumentError,
        "nb.solvers",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_the_way_out_and_name_the_line(name: str) -> None:
    function, kind, words = ERRORS[name]
    with pytest.raises(kind, match=words) as caught:
        nb.vjp(nb.differentiable_source(function), X)
    assert isinstance(caught.value, NbgradError)
    assert f"(at {__file__}:" in str(caught.value)


@pytest.mark.parametrize("empty", [(0,), (0, 3)])
def test_empty_arrays(empty: tuple[int, ...]) -> None:
    none = np.zeros(empty)
    one_axis: list[Callable[[Any], Any]] = [
        lambda x: signal.fftconvolve(x, x),
        lambda x: signal.lfilter([1.0], [1.0, 0.5], x),
        lambda x: ndimage.gaussian_filter1d(x, 1.0, axis=0) if x.shape[-1] else x,
        lambda x: stats.norm.logpdf(x),
    ]
    for function in one_axis if len(empty) == 1 else [lambda x: distance.cdist(x, x), lambda x: SPLINE(x)]:
        found = nb.vjp(nb.differentiable_source(function), none)[0]
        assert found.shape == np.shape(function(none))


def test_narrow_dtypes_are_those_of_scipy() -> None:
    narrow = X.astype(np.float32)
    functions: list[Callable[[Any], Any]] = [
        lambda x: ndimage.shift(x, 0.3),
        lambda x: ndimage.gaussian_filter(x, 1.0),
        lambda x: signal.convolve(x, x),
        lambda x: signal.lfilter(np.ones(1, np.float32), np.ones(2, np.float32) / 2, x),
        lambda x: distance.pdist(x[:, None]),
        lambda x: interpolate.CubicSpline(np.arange(6.0), x)(0.3),
        lambda x: stats.norm.logpdf(x),
    ]
    for function in functions:
        found, want = nb.vjp(nb.differentiable_source(function), narrow)[0], function(narrow)
        assert found.dtype == want.dtype
        np.testing.assert_allclose(found, want, rtol=2e-5, atol=1e-6)


def test_objects_that_are_changed() -> None:
    """SciPy's object would change, and not the one that gives the values."""

    def wider(x: Any) -> Any:
        made = stats.gaussian_kde(X)
        made.set_bandwidth(0.9)
        return made(x)

    with pytest.raises(AttributeError, match=r"set_bandwidth.*anew"):
        nb.vjp(nb.differentiable_source(wider), X)
