"""Smooth surfaces over scattered points, by `scipy.interpolate` of recorded values: beside SciPy, and of planes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import nbgrad as nb
from nbgrad.errors import ArgumentError, ShapeError

from .agreement import check_derivative

pytestmark = pytest.mark.unoptimized

interpolate: Any = scipy.interpolate
SCATTERED = np.random.default_rng(7).uniform(-1.0, 1.0, (15, 2))
HEIGHTS = np.sin(2.0 * SCATTERED[:, 0]) + SCATTERED[:, 1] ** 2
PLACES = np.array([[0.1, 0.2], [-0.4, 0.3], [0.35, -0.5], [0.02, -0.1], [9.0, 0.0]])


@pytest.mark.parametrize("rescale", [False, True])
def test_clough_and_tochers_surface(rescale: bool) -> None:
    stretch = np.array([1.0, 30.0])

    def surface(heights: Any, places: Any) -> Any:
        made = interpolate.CloughTocher2DInterpolator(SCATTERED * stretch, heights, 0.5, 1e-13, rescale=rescale)
        return made(places * stretch) * np.array([1.0, 2.0, -1.0, 0.5, 3.0])

    ours, want = nb.differentiable_source(surface), surface(HEIGHTS, PLACES)
    for each in (lambda *given: nb.vjp(ours, *given)[0], nb.jit(ours)):
        np.testing.assert_allclose(each(HEIGHTS, PLACES), want, rtol=1e-11)
    many = nb.vmap(ours)(np.stack([HEIGHTS, 2.0 * HEIGHTS]), np.stack([PLACES, PLACES]))
    np.testing.assert_allclose(many[1], surface(2.0 * HEIGHTS, PLACES), rtol=1e-11)
    check_derivative(ours, HEIGHTS, PLACES, tolerance=2e-5)


def test_clough_and_tochers_slopes_are_those_of_a_plane() -> None:
    """A plane is among the surfaces, and its slopes are its coefficients."""

    def heights(coefficients: Any, places: Any) -> Any:
        plane = SCATTERED @ coefficients
        found = interpolate.griddata(SCATTERED, plane, places, method="cubic")
        return found + interpolate.CloughTocher2DInterpolator(SCATTERED, plane)(places[:, 0], places[:, 1])

    ours, slopes = nb.differentiable_source(heights), np.array([0.7, -1.3])
    np.testing.assert_allclose(nb.vjp(ours, slopes, PLACES[:4])[0], 2 * PLACES[:4] @ slopes, rtol=1e-9)
    np.testing.assert_allclose(nb.jacrev(ours)(slopes, PLACES[:4]), 2 * PLACES[:4], rtol=1e-9)
    by_places = nb.jacfwd(ours, 1)(slopes, PLACES[:4])
    np.testing.assert_allclose(np.sum(by_places, axis=1), np.tile(2 * slopes, (4, 1)), rtol=1e-8)


def test_clough_and_tochers_points_are_constants() -> None:
    by_points = nb.differentiable_source(lambda x: interpolate.CloughTocher2DInterpolator(x, HEIGHTS)(0.1, 0.2))
    with pytest.raises(ArgumentError, match="no derivative by its points; take RBFInterpolator"):
        nb.grad(by_points)(SCATTERED)
    in_space = nb.differentiable_source(lambda v: interpolate.CloughTocher2DInterpolator(np.eye(2, 3), v)(0.1, 0.2))
    with pytest.raises(ShapeError, match="points in the plane"):
        nb.grad(in_space)(np.ones(2))
