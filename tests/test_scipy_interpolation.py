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
from nbgrad.errors import ArgumentError, RangeError, ShapeError
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


def agrees(function: Function, arrays: list[np.ndarray], tolerance: float = 1e-9) -> None:
    """Assert that a function of recorded values gives SciPy's values, shapes and derivatives, compiled ones too."""
    converted = nb.differentiable_source(function)

    def either(*given: Any) -> Any:
        return results(converted(*given) if any(isinstance(one, Tensor) for one in given) else function(*given))

    want = results(function(*arrays))
    for found in (nb.vjp(lambda *given: tuple(either(*given)), *arrays)[0], nb.jit(converted)(*arrays)):
        for one, other in zip(results(list(found) if isinstance(found, tuple) else found), want, strict=True):
            assert np.shape(one) == np.shape(other)
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    finite = [bool(np.all(np.isfinite(one))) for one in want]
    if all(finite):
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
