"""`scipy.interpolate` of recorded values beside SciPy itself: grids, splines that are integrated, other bases.

Values are SciPy's own, derivatives differences of those, to second order; compiled and mapped they are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse.linalg

import nbgrad as nb
from nbgrad.errors import ArgumentError, RangeError, ShapeError, TracedValueError
from nbgrad.record.tensor import Tensor

from .agreement import check_derivative

pytestmark = pytest.mark.unoptimized

Function = Callable[..., Any]
interpolate: Any = scipy.interpolate
spsolve: Any = scipy.sparse.linalg.spsolve

# ----- Grids -----

FIRST = np.array([-0.4, 0.3, 0.9, 1.7, 2.2, 3.1, 3.6])
SECOND = np.array([0.2, 0.7, 1.5, 1.9, 2.6, 3.0])
PLANE = np.sin(2.0 * FIRST)[:, None] * np.cos(SECOND) + 0.3 * FIRST[:, None] * SECOND
RISING = np.exp(0.4 * FIRST)[:, None] * (0.5 + SECOND) + FIRST[:, None]
POINTS = np.array([[0.1, 0.45], [2.9, 2.71], [1.2, 1.55], [-0.33, 2.93]])
BEYOND = np.array([[-1.1, 0.4], [1.4, 3.3], [2.0, 1.7], [np.nan, 1.0]])
SPACE = np.cos(np.arange(60.0) ** 1.3).reshape(4, 5, 3)
ALONG = (np.arange(4.0), np.array([0.0, 0.4, 1.1, 1.7, 2.5]), np.array([0.0, 1.2, 2.0]))
INSIDE = np.array([[0.3, 0.9, 0.4], [2.7, 2.2, 1.9]])


def grid(points: Any, values: Any, *args: Any, **options: Any) -> Any:
    """SciPy's object, whose splines are solved for by a direct method: by default they have five digits."""
    if args and args[0] in ("slinear", "cubic", "quintic"):
        options["solver"] = spsolve
    return interpolate.RegularGridInterpolator(points, values, *args, **options)


def by_all(x: Any, y: Any, values: Any, points: Any, method: str) -> Any:
    return grid((x, y), values, method)(points)


GRIDS: dict[str, tuple[Function, list[np.ndarray]]] = {
    **{
        method: (lambda x, y, v, p, m=method: by_all(x, y, v, p, m), [FIRST, SECOND, RISING, POINTS])
        for method in ("slinear", "cubic", "quintic", "pchip", "cubic_legacy")
    },
    "pchip in three dimensions": (lambda v, p: grid(ALONG[:2], v, "pchip")(p[:, :2]), [SPACE, INSIDE]),
    "splines of columns": (lambda v, p: grid(ALONG[:2], v, "cubic")(p[:, :2]), [SPACE, INSIDE]),
    "lines in space": (lambda v, p: grid(ALONG, v, "slinear")(p), [SPACE, INSIDE]),
    "one axis": (lambda x, v, p: grid((x,), v, "quintic")(p[:, :1]), [FIRST, PLANE[:, 0], POINTS]),
    "a tuple of coordinates": (lambda v, p: grid((FIRST, SECOND), v, "cubic")((p[:, 0], 1.1)), [PLANE, POINTS]),
    "another method at the call": (
        lambda v, p: interpolate.RegularGridInterpolator((FIRST, SECOND), v, "cubic_legacy")(p, "pchip"),
        [RISING, POINTS],
    ),
    "derivatives": (
        lambda v, p: [grid((FIRST, SECOND), v, "cubic")(p, nu=nu) for nu in ([1, 0], [0, 2], [3, 1], [0, 4])],
        [PLANE, POINTS],
    ),
    "extrapolated": (
        lambda v, p: grid((FIRST, SECOND), v, "cubic", bounds_error=False, fill_value=None)(p),
        [PLANE, BEYOND[:3]],
    ),
    "extrapolated by PCHIP": (
        lambda v, p: grid((FIRST, SECOND), v, "pchip", False, None)(p),
        [PLANE, BEYOND[:3]],
    ),
    "filled": (lambda v: grid((FIRST, SECOND), v, "quintic", False, 7.5)(BEYOND), [PLANE]),
    "a fall": (lambda v: grid((FIRST[::-1], SECOND), v, "cubic")(POINTS), [PLANE]),
    "interpn": (lambda v, p: interpolate.interpn((FIRST, SECOND), v, p, "pchip"), [RISING, POINTS]),
    "interpn at one point": (lambda v, p: interpolate.interpn(ALONG[:2], v, p, "cubic_legacy"), [SPACE, INSIDE[0, :2]]),
    "interpn by FITPACK": (
        lambda v, p: interpolate.interpn((FIRST, SECOND), v, p, "splinef2d"),
        [PLANE, POINTS],
    ),
    "interpn, filled": (
        lambda v: interpolate.interpn((FIRST, SECOND), v, BEYOND[:3], "splinef2d", False, -2.0),
        [PLANE],
    ),
    "linear at one point": (lambda v, p: grid(ALONG[:2], v)(p), [SPACE, INSIDE[0, :2]]),
}


def results(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def agrees(function: Function, arrays: list[np.ndarray], tolerance: float = 1e-9, compiled: bool = True) -> None:
    """Assert that a function of recorded values gives SciPy's values, shapes and derivatives, compiled ones too."""
    converted = nb.differentiable_source(function)

    def either(*given: Any) -> Any:
        return results(converted(*given) if any(isinstance(one, Tensor) for one in given) else function(*given))

    want = results(function(*arrays))
    ways = [nb.vjp(lambda *given: tuple(either(*given)), *arrays)[0]]
    if compiled:
        ways.append(nb.jit(converted)(*arrays))
    for found in ways:
        for one, other in zip(results(list(found) if isinstance(found, tuple) else found), want, strict=True):
            assert np.shape(one) == np.shape(other)
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    if all(bool(np.all(np.isfinite(one))) for one in want):
        check_derivative(either, *arrays, tolerance=2e-6)


@pytest.mark.parametrize("name", GRIDS)
def test_grids(name: str) -> None:
    agrees(*GRIDS[name])


def test_maps_of_grids() -> None:
    function = nb.differentiable_source(lambda v, p: np.sum(by_all(FIRST, SECOND, v, p, "cubic") ** 2))
    planes, places = np.stack([PLANE, PLANE**2]), np.stack([POINTS, POINTS[::-1]])
    want = [nb.grad(function)(v, p) for v, p in zip(planes, places, strict=True)]
    np.testing.assert_allclose(nb.vmap(nb.grad(function))(planes, places), want, rtol=1e-9)


def test_a_grid_that_scipy_has_made() -> None:
    """Its coefficients are used as they are, with what SciPy's iterations have left."""
    made = interpolate.RegularGridInterpolator((FIRST, SECOND), PLANE, "cubic")
    agrees(lambda p: made(p), [POINTS], 1e-12)
    agrees(lambda p: made(p, "pchip"), [POINTS], 1e-12)


def test_polynomials_are_their_own_splines() -> None:
    """A quintic spline is the polynomial that it interpolates; its slopes are the polynomial's."""
    x, y = FIRST[:, None], SECOND

    def at(p: Any) -> Any:
        return p[:, 0] ** 5 - 2 * p[:, 0] ** 2 * p[:, 1] ** 4 + p[:, 1]

    made = nb.differentiable_source(lambda v, p: grid((FIRST, SECOND), v, "quintic")(p))
    slopes = nb.grad(lambda p: np.sum(made(x**5 - 2 * x**2 * y**4 + y, p)))(POINTS)
    px, py = POINTS.T
    np.testing.assert_allclose(slopes[:, 0], 5 * px**4 - 4 * px * py**4, rtol=1e-8)
    np.testing.assert_allclose(slopes[:, 1], 1 - 8 * px**2 * py**3, rtol=1e-8)


def test_complex_values() -> None:
    values = PLANE + 1j * PLANE[::-1]
    for method in ("cubic", "quintic", "slinear"):
        function = nb.differentiable_source(lambda v, m=method: grid((FIRST, SECOND), v, m)(POINTS))
        want = grid((FIRST, SECOND), values, method)(POINTS)
        np.testing.assert_allclose(nb.vjp(function, values)[0], want, rtol=1e-9)


@pytest.mark.parametrize("method", ["linear", "nearest", "slinear", "cubic", "pchip"])
def test_narrow_values_and_no_points(method: str) -> None:
    """Dtypes are SciPy's, which keeps those of values where it selects, and by PCHIP."""
    for points, dtype in ((POINTS, np.float32), (np.zeros((0, 2)), np.float64)):
        values = RISING.astype(dtype)
        want = grid((FIRST, SECOND), values, method)(points)
        found = nb.vjp(nb.differentiable_source(lambda v, p=points: grid((FIRST, SECOND), v, method)(p)), values)[0]
        assert (found.shape, found.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(found, want, rtol=2e-6)


GRID_ERRORS: dict[str, tuple[Function, type[Exception], str]] = {
    "a point outside": (lambda v: grid((FIRST, SECOND), v, "cubic")(BEYOND[:3]), RangeError, "outside of the grid"),
    "a point that is no number": (lambda v: grid((FIRST, SECOND), v)(BEYOND[3:]), RangeError, "outside of the grid"),
    "few points": (lambda v: grid((FIRST[:3], SECOND), v[:3], "cubic")(POINTS), ShapeError, "needs 4 points"),
    "few points for another method": (
        lambda v: interpolate.RegularGridInterpolator((FIRST[:3], SECOND), v[:3])(POINTS[2:3], "pchip"),
        ShapeError,
        "needs 4 points",
    ),
    "no such method": (lambda v: grid((FIRST, SECOND), v, "septic"), ArgumentError, "septic"),
    "no such method of interpn": (
        lambda v: interpolate.interpn((FIRST, SECOND), v, POINTS, "septic"),
        ArgumentError,
        "septic",
    ),
    "a solver of nothing": (
        lambda v: interpolate.RegularGridInterpolator((FIRST, SECOND), v, "pchip", solver=spsolve),
        ArgumentError,
        "solver",
    ),
    "derivatives of lines": (lambda v: grid((FIRST, SECOND), v)(POINTS, nu=[1, 0]), ArgumentError, "nu="),
    "an order below 0": (lambda v: grid((FIRST, SECOND), v, "cubic")(POINTS, nu=[-1, 0]), ArgumentError, "orders of 0"),
    "a complex number": (lambda v: grid((FIRST, SECOND), v, "linear", False, 1j), ArgumentError, "complex"),
    "PCHIP of complex numbers": (lambda v: grid((FIRST, SECOND), v + 1j, "pchip"), ArgumentError, "real"),
    "extrapolation by FITPACK": (
        lambda v: interpolate.interpn((FIRST, SECOND), v, POINTS, "splinef2d", False, None),
        ArgumentError,
        "splinef2d",
    ),
}


@pytest.mark.parametrize("name", GRID_ERRORS)
def test_errors_of_grids(name: str) -> None:
    """SciPy refuses these, too."""
    function, kind, words = GRID_ERRORS[name]
    with pytest.raises(ValueError):
        function(PLANE)
    with pytest.raises(kind, match=words):
        nb.vjp(nb.differentiable_source(function), PLANE)


# ----- Splines: integrals, derivatives, roots, other bases -----

TURNS = np.array([0.0, 0.6, 1.1, 1.9, 2.4, 3.2, 3.7])
KNOTS = np.concatenate([np.zeros(4), TURNS[1:-1:2], np.full(4, 3.7)])
APART = KNOTS + 0.1 * np.arange(-5.0, 6.0)
WEIGHTS = np.array([0.4, -1.2, 0.7, 1.5, -0.3, 0.9, 0.2])
TABLE = np.outer(WEIGHTS, [1.0, -0.4]) + np.cos(np.arange(14.0)).reshape(7, 2)
LIMITS = np.array([0.7, 2.6])
FAR = np.array([-5.3, 9.9])
PIECES = np.sin(np.arange(12.0)).reshape(4, 3) + 0.3
BREAKS = np.array([-0.2, 0.5, 1.4, 1.9])
MANY = np.linspace(0.0, 3.7, 15)
HEIGHTS = np.cos(1.7 * MANY) + 0.1 * MANY**2


def closed(y: Any) -> Any:
    return np.append(y[:-1], y[:1], axis=0)


SPLINES: dict[str, tuple[Function, list[np.ndarray]]] = {
    "BSpline, integrated": (
        lambda t, c, e: interpolate.BSpline(t, c, 3).integrate(e[0], e[1]),
        [APART, WEIGHTS, LIMITS],
    ),
    "BSpline, integrated backwards and beyond": (
        lambda c, e: [
            interpolate.BSpline(KNOTS, c, 3).integrate(e[1], e[0]),
            interpolate.BSpline(KNOTS, c, 3, extrapolate=False).integrate(e[0], e[1]),
            interpolate.BSpline(KNOTS, c, 3).integrate(e[0], e[1], extrapolate="periodic"),
        ],
        [WEIGHTS, FAR],
    ),
    "BSpline of columns, integrated": (
        lambda c, e: [
            interpolate.BSpline(KNOTS, c, 3).integrate(e[0], e[1]),
            interpolate.BSpline(KNOTS, c, 3, extrapolate="periodic").integrate(e[0], e[1] + 8.0),
            interpolate.BSpline(KNOTS, c.T, 3, axis=1).integrate(e[0], e[1]),
        ],
        [TABLE, LIMITS],
    ),
    "BSpline, its antiderivatives": (
        lambda t, c, x: [
            interpolate.BSpline(t, c, 3).antiderivative()(x),
            interpolate.BSpline(t, c, 3).antiderivative(2).c,
            interpolate.BSpline(t, c, 3).antiderivative(3).derivative(2)(x),
            interpolate.BSpline(t, c, 3).derivative(2).c,
            interpolate.BSpline(t, c, 3).derivative(-1).t,
            interpolate.BSpline(t, c, 3).antiderivative(-1)(x),
        ],
        [APART, WEIGHTS, LIMITS],
    ),
    "BSpline of columns, its antiderivative": (
        lambda c, x: interpolate.BSpline(KNOTS, c.T, 3, axis=1).antiderivative()(x),
        [TABLE, LIMITS],
    ),
    "PPoly, integrated": (
        lambda c, x, e: [
            interpolate.PPoly(c, x).integrate(e[0], e[1]),
            interpolate.PPoly(c, x).integrate(e[1], e[0] - 2.0),
            interpolate.PPoly(c, x, extrapolate="periodic").integrate(e[0] - 7.1, e[1] + 3.3),
            interpolate.PPoly(c, x).integrate(e[0], e[1] + 5.4, extrapolate="periodic"),
        ],
        [PIECES, BREAKS, LIMITS],
    ),
    "PPoly, its antiderivatives": (
        lambda c, x, p: [
            interpolate.PPoly(c, x).antiderivative(2)(p),
            interpolate.PPoly(c, x).derivative(2)(p),
            interpolate.PPoly(c, x).antiderivative(-1)(p),
        ],
        [PIECES, BREAKS, LIMITS],
    ),
    "CubicSpline, over its period": (
        lambda y, e: interpolate.CubicSpline(TURNS, closed(y), bc_type="periodic").integrate(e[0], e[1]),
        [WEIGHTS, FAR],
    ),
    "Akima, integrated": (
        lambda x, y, e: interpolate.Akima1DInterpolator(x, y).integrate(e[0], e[1]),
        [TURNS, WEIGHTS, LIMITS],
    ),
    "CubicHermiteSpline, integrated": (
        lambda y, s, e: interpolate.CubicHermiteSpline(TURNS, y, s).integrate(e[0], e[1]),
        [TABLE, TABLE[::-1].copy(), LIMITS],
    ),
    "CubicSpline, its roots": (
        lambda x, y: interpolate.CubicSpline(x, y).roots(extrapolate=False),
        [TURNS, WEIGHTS],
    ),
    "PPoly, where it is 0.3": (lambda c, x: interpolate.PPoly(c, x).solve(0.3), [PIECES, BREAKS]),
    "CubicSpline, extrema": (
        lambda y: interpolate.CubicSpline(TURNS, y).derivative().roots(extrapolate=False),
        [WEIGHTS],
    ),
    "CubicSpline, where it reaches a value": (
        lambda y, v: interpolate.CubicSpline(TURNS, y).solve(v[0] - 0.6, extrapolate=False),
        [WEIGHTS, LIMITS],
    ),
    "PPoly, jumps over 0": (
        lambda c, x: interpolate.PPoly(c, x).roots(extrapolate=False),
        [np.array([[0.1, 0.2, -0.1], [1.0, -1.0, 1.0]]), BREAKS],
    ),
    "PPoly of a spline": (
        lambda t, c, x: [
            interpolate.PPoly.from_spline((t, c, 3))(x),
            interpolate.PPoly.from_spline(interpolate.BSpline(t, c, 3)).derivative()(x),
        ],
        [APART, WEIGHTS, LIMITS],
    ),
    "BPoly": (
        lambda c, x, p: [
            interpolate.BPoly(c, x)(p),
            interpolate.BPoly(c, x)(p, 2),
            interpolate.BPoly(c, x, extrapolate="periodic")(p + 4.3),
            interpolate.BPoly(c, x).derivative()(p),
            interpolate.BPoly(c, x).derivative(4)(p),
            interpolate.BPoly(c, x).antiderivative(2)(p),
            interpolate.BPoly(c, x).antiderivative().derivative(-1)(p),
            interpolate.BPoly(c, x).integrate(p[0], p[1]),
            interpolate.BPoly(c, x, extrapolate="periodic").integrate(p[1] + 0.3, p[0] - 9.0),
        ],
        [PIECES, BREAKS, LIMITS],
    ),
    "BPoly of columns": (
        lambda c, p: [
            interpolate.BPoly(c.reshape(2, 3, 2), BREAKS)(p),
            interpolate.BPoly(np.moveaxis(c.reshape(2, 3, 2), 2, 0), BREAKS, axis=1)(p),
            interpolate.BPoly(c.reshape(2, 3, 2), BREAKS).integrate(p[0], p[1]),
        ],
        [PIECES, LIMITS],
    ),
    "BPoly to powers and back": (
        lambda c, x, p: [
            interpolate.PPoly.from_bernstein_basis(interpolate.BPoly(c, x)).c,
            interpolate.BPoly.from_power_basis(interpolate.PPoly(c, x)).c,
            interpolate.BPoly.from_power_basis(interpolate.CubicSpline(x, c[:, 0]))(p),
        ],
        [PIECES, BREAKS, LIMITS],
    ),
    "BPoly by derivatives": (
        lambda x, y, p: [
            interpolate.BPoly.from_derivatives(x, y)(p),
            interpolate.BPoly.from_derivatives(x, y, orders=3)(p),
            interpolate.BPoly.from_derivatives(x, [[y[0, 0]], [y[1, 0], y[1, 1]], y[2], [y[3, 1]]])(p, 1),
        ],
        [BREAKS, PIECES.T.reshape(4, 3), LIMITS],
    ),
    **{
        f"a periodic spline of degree {k}": (
            lambda x, y, e, k=k: [
                interpolate.make_interp_spline(x, closed(y), k, bc_type="periodic")(e * 3.0),
                interpolate.make_interp_spline(x, closed(y), k, bc_type="periodic").c,
                interpolate.make_interp_spline(x, closed(y), k, bc_type="periodic").t,
            ],
            [TURNS, WEIGHTS, LIMITS],
        )
        for k in (1, 2, 3, 4, 5)
    },
    "a periodic spline of columns and few points": (
        lambda y, p: [
            interpolate.make_interp_spline(TURNS, closed(y).T, bc_type="periodic", axis=1)(p),
            interpolate.make_interp_spline(TURNS[:3], closed(y[:3]), bc_type="periodic")(p),
        ],
        [TABLE, LIMITS],
    ),
    "a periodic spline, integrated": (
        lambda y, e: interpolate.make_interp_spline(TURNS, closed(y), bc_type="periodic").integrate(e[0], e[1]),
        [WEIGHTS, FAR],
    ),
    "the nearest spline": (
        lambda x, y, t, w, p: [
            interpolate.make_lsq_spline(x, y, np.concatenate([x[:1]] * 4 + [t] + [x[-1:]] * 4), w=w)(p),
            interpolate.make_lsq_spline(x, y, np.concatenate([x[:1]] * 3 + [t] + [x[-1:]] * 3), 2).c,
        ],
        [MANY, HEIGHTS, BREAKS[1:], 1.0 + np.abs(HEIGHTS), LIMITS],
    ),
    "the nearest spline of columns": (
        lambda y, p: interpolate.make_lsq_spline(MANY, np.stack([y, y**2]), KNOTS, axis=1)(p),
        [HEIGHTS, LIMITS],
    ),
    "FITPACK's integral": (
        lambda t, c, e: [
            interpolate.splint(e[0], e[1], (t, c, 3)),
            interpolate.splint(e[1], e[0], (t, c, 3)),
            interpolate.splint(-1.0, e[0], interpolate.BSpline(t, c, 3)),
        ],
        [APART, WEIGHTS, LIMITS],
    ),
    "UnivariateSpline": (
        lambda y, e: [
            interpolate.UnivariateSpline(TURNS, y, s=0).integral(e[0], e[1]),
            interpolate.InterpolatedUnivariateSpline(TURNS, y, k=2).integral(-3.0, e[1]),
            interpolate.UnivariateSpline(TURNS, y, s=0).antiderivative(2)(e),
            interpolate.UnivariateSpline(TURNS, y, s=0).derivatives(e[0]),
            interpolate.UnivariateSpline(TURNS, y, s=0).derivative().get_coeffs(),
        ],
        [WEIGHTS, LIMITS],
    ),
}
TAKES_VALUES = ("roots", "where it", "extrema", "jumps")
"""Names of cases whose number of results depends on values: `jit` refuses them."""


@pytest.mark.parametrize("name", SPLINES)
def test_splines(name: str) -> None:
    agrees(*SPLINES[name], compiled=not any(word in name for word in TAKES_VALUES))


def test_roots_have_derivatives_of_high_order() -> None:
    """The root of x**3 = v, whose derivatives are known, to fourth order."""
    cubic = np.array([[1.0], [0.0], [0.0], [0.0]])

    def root(v: Any) -> Any:
        return interpolate.PPoly(cubic, np.array([0.0, 9.0])).solve(v, extrapolate=False)[0]

    function, want, power = nb.differentiable_source(root), 1.0, 1 / 3
    for _ in range(4):
        function, want, power = nb.grad(function), want * power, power - 1
        np.testing.assert_allclose(function(2.7), want * 2.7**power, rtol=1e-9)


def test_a_spline_of_constants_keeps_its_roots() -> None:
    """They are SciPy's arrays, also those of its derivative, in a function that is compiled."""
    spline = interpolate.CubicSpline(TURNS, WEIGHTS)
    function = nb.differentiable_source(
        lambda x: x * spline.derivative().roots(extrapolate=False)[0] + spline.roots()[0]
    )
    want = spline.derivative().roots(extrapolate=False)[0]
    np.testing.assert_allclose(nb.jit(nb.grad(function))(2.0), want, rtol=1e-12)
    np.testing.assert_allclose(nb.jit(function)(2.0), 2.0 * want + spline.roots()[0], rtol=1e-12)


def test_objects_that_scipy_has_made() -> None:
    """Splines of constants, made outside, are integrated between recorded limits."""
    bernstein = interpolate.BPoly(PIECES, BREAKS)
    made = [
        interpolate.BSpline(KNOTS, WEIGHTS, 3),
        interpolate.make_interp_spline(TURNS, closed(WEIGHTS), bc_type="periodic"),
        interpolate.make_lsq_spline(MANY, HEIGHTS, KNOTS),
        interpolate.CubicSpline(TURNS, WEIGHTS),
        bernstein,
    ]
    agrees(lambda e: [one.integrate(e[0], e[1]) for one in made], [LIMITS])
    agrees(lambda e: [one.antiderivative()(e) for one in made], [LIMITS])
    agrees(lambda e: interpolate.PPoly.from_bernstein_basis(bernstein)(e) + bernstein(e[0]), [LIMITS])


def test_classes_are_told_apart() -> None:
    """A BPoly is no PPoly, and a CubicSpline is one: of recorded values as of others."""

    def kinds(c: Any) -> Any:
        made = [interpolate.BPoly(c, BREAKS), interpolate.PPoly(c, BREAKS), interpolate.CubicSpline(BREAKS, c[:, 0])]
        answers = [[isinstance(one, cls) for cls in (interpolate.BPoly, interpolate.PPoly)] for one in made]
        return np.sum(c) * np.array(answers).astype(float)

    np.testing.assert_array_equal(nb.vjp(nb.differentiable_source(kinds), PIECES)[0], kinds(PIECES))


def test_maps_of_splines() -> None:
    function = nb.differentiable_source(
        lambda y: (
            interpolate.make_interp_spline(TURNS, closed(y), bc_type="periodic").integrate(0.3, 9.0)
            + interpolate.make_lsq_spline(TURNS, y, np.array([0.0] * 3 + [2.0] + [3.7] * 3), 2).antiderivative()(1.3)
        )
    )
    several = np.stack([WEIGHTS, WEIGHTS[::-1], WEIGHTS**2])
    want = [nb.grad(function)(y) for y in several]
    np.testing.assert_allclose(nb.vmap(nb.grad(function))(several), want, rtol=1e-9)


SPLINE_ERRORS: dict[str, tuple[Function, type[Exception], str]] = {
    "a derivative too many": (
        lambda c: interpolate.BSpline(KNOTS, c, 3).derivative(4),
        ArgumentError,
        "degree 3",
    ),
    "values that do not close": (
        lambda y: interpolate.make_interp_spline(TURNS, y, bc_type="periodic"),
        RangeError,
        "last value",
    ),
    "few points": (lambda y: interpolate.make_lsq_spline(TURNS[:3], y[:3], KNOTS), ShapeError, "4 abscissae"),
    "points beyond the knots": (lambda y: interpolate.make_lsq_spline(TURNS + 1, y, KNOTS), RangeError, "between"),
    "weights for others": (
        lambda y: interpolate.make_lsq_spline(TURNS, y, KNOTS, w=np.ones(3)),
        ShapeError,
        "weight for each",
    ),
    "knots that fall": (lambda y: interpolate.make_lsq_spline(TURNS, y, KNOTS[::-1]), RangeError, "do not fall"),
    "no such method": (lambda y: interpolate.make_lsq_spline(TURNS, y, KNOTS, method="svd"), ArgumentError, "svd"),
    "few breakpoints": (lambda c: interpolate.BPoly(c[:, None], [0.0]), ShapeError, "one breakpoint more"),
    "other breakpoints": (lambda c: interpolate.PPoly(c[:, None], BREAKS), ShapeError, "one breakpoint more"),
    "few derivatives": (
        lambda y: interpolate.BPoly.from_derivatives([0.0, 1.0], [y[:2], y[2:3]], orders=4),
        ArgumentError,
        "order of 4",
    ),
    "values without rows": (lambda y: interpolate.BPoly.from_derivatives(TURNS, y), ShapeError, "reshape"),
    "points that fall": (
        lambda y: interpolate.BPoly.from_derivatives(-TURNS, y.reshape(-1, 1)),
        RangeError,
        "rise",
    ),
}


@pytest.mark.parametrize("name", SPLINE_ERRORS)
def test_errors_of_splines(name: str) -> None:
    """SciPy refuses these, too."""
    function, kind, words = SPLINE_ERRORS[name]
    with pytest.raises(ValueError):
        function(WEIGHTS)
    with pytest.raises(kind, match=words):
        nb.vjp(nb.differentiable_source(function), WEIGHTS)


REFUSED: dict[str, tuple[Function, type[Exception], str]] = {
    "roots of several columns": (
        lambda y: interpolate.CubicSpline(TURNS, np.stack([y, 2 * y], axis=1)).roots(),
        ArgumentError,
        "one polynomial",
    ),
    "a double root": (
        lambda y: interpolate.PPoly(y[:3, None] * np.array([[1.0], [0.0], [0.0]]), [-1.0, 1.0]).roots(),
        RangeError,
        "slope is 0",
    ),
    "knots of a periodic spline": (
        lambda y: interpolate.make_interp_spline(TURNS, closed(y), t=KNOTS, bc_type="periodic"),
        ArgumentError,
        "leave t away",
    ),
    "splint of two splines": (
        lambda y: interpolate.splint(0.0, 1.0, (KNOTS, [y, y], 3)),
        ArgumentError,
        "one spline",
    ),
    "breakpoints that fall": (
        lambda y: interpolate.PPoly(y[None, :3], BREAKS[::-1])(0.7),
        RangeError,
        "do not fall",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_recorded_values_do_not_do(name: str) -> None:
    function, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        nb.vjp(nb.differentiable_source(function), WEIGHTS)


def test_roots_are_not_compiled() -> None:
    """Their number depends on values."""
    function = nb.differentiable_source(lambda y: interpolate.CubicSpline(TURNS, y).roots()[0])
    with pytest.raises(TracedValueError, match="jit"):
        nb.jit(function)(WEIGHTS)
