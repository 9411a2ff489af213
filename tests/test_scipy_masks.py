"""Masks that are made of recorded values: SciPy's own results, which have no derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import nbgrad as nb
from nbgrad.errors import ArgumentError, ShapeError

pytestmark = pytest.mark.unoptimized

ndimage: Any = scipy.ndimage
IMAGE = np.cos(np.arange(56.0) ** 1.4).reshape(7, 8)
OTHER = np.sin(np.arange(56.0) ** 1.2).reshape(7, 8)
CROSS = np.array([[False, True, False], [True, True, True], [False, True, False]])

MASKS: dict[str, Callable[[Any], Any]] = {
    "edt": lambda x: ndimage.distance_transform_edt(x > -0.6),
    "edt of numbers": lambda x: ndimage.distance_transform_edt(np.maximum(x, 0.0), sampling=[0.5, 1.5]),
    "edt, distances and places": lambda x: ndimage.distance_transform_edt(x > -0.6, return_indices=True),
    "edt, places": lambda x: ndimage.distance_transform_edt(x > -0.6, return_distances=False, return_indices=True),
    "cdt": lambda x: ndimage.distance_transform_cdt(x > -0.6, "taxicab"),
    "cdt with places": lambda x: ndimage.distance_transform_cdt(x > -0.6, CROSS, return_indices=True),
    "bf": lambda x: ndimage.distance_transform_bf(x > -0.6, sampling=0.5),
    "bf in steps": lambda x: ndimage.distance_transform_bf(x > -0.6, "taxicab", return_indices=True),
    "erosion": lambda x: ndimage.binary_erosion(x > -0.6, CROSS, border_value=1),
    "dilation": lambda x: ndimage.binary_dilation(x > 0.5, iterations=2, mask=x > -0.5),
    "dilation until nothing changes": lambda x: ndimage.binary_dilation(x > 0.9, iterations=-1, mask=OTHER > -0.5),
    "opening": lambda x: ndimage.binary_opening(x > -0.4, np.ones((2, 1)), origin=(0, 0)),
    "closing": lambda x: ndimage.binary_closing(x > 0.4, np.ones((1, 3))),
    "propagation": lambda x: ndimage.binary_propagation(x > 0.8, CROSS, mask=x > -0.7),
    "holes": lambda x: ndimage.binary_fill_holes(x > -0.2),
    "hit or miss": lambda x: ndimage.binary_hit_or_miss(x > 0.0, structure1=np.array([[True, True]])),
    "labels": lambda x: ndimage.label(x > 0.2, np.ones((3, 3)))[0],
    "the number of labels": lambda x: ndimage.label(x > 0.2)[1],
    "no labels": lambda x: ndimage.label(x > 9.0),
}


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("name", MASKS)
def test_masks(name: str) -> None:
    """SciPy's values and kinds; a product with them has the derivative of a product with constants."""
    function = MASKS[name]
    converted = nb.differentiable_source(lambda x: tuple([part * 1 for part in listed(function(x))]))
    for way in (lambda x: nb.vjp(converted, x)[0], nb.jit(converted)):
        for found, want in zip(way(IMAGE), listed(function(IMAGE)), strict=True):
            assert np.asarray(found).dtype.kind == np.asarray(want * 1).dtype.kind
            np.testing.assert_array_equal(found, want)

    def total(x: Any) -> Any:
        return sum(np.sum(x**2 * part) for part in listed(function(x)))

    parts = [np.reshape(part, (-1, *np.shape(part)[-2:])).sum(axis=0) for part in listed(function(IMAGE))]
    weights = sum(np.broadcast_to(part, IMAGE.shape) * 1.0 for part in parts)
    gradient = nb.grad(nb.differentiable_source(total))
    np.testing.assert_allclose(gradient(IMAGE), 2 * IMAGE * weights, rtol=1e-12)
    np.testing.assert_allclose(nb.jit(gradient)(OTHER), gradient(OTHER), rtol=1e-12)
    images = np.stack([IMAGE, OTHER, IMAGE.copy()[::-1]])
    np.testing.assert_allclose(nb.vmap(gradient)(images), [gradient(one) for one in images], rtol=1e-12)
    along = nb.jvp(gradient, (IMAGE,), (OTHER,))[1]
    np.testing.assert_allclose(along, 2 * OTHER * weights, rtol=1e-12)


def test_the_number_of_labels_counts_loops() -> None:
    """A function of as many parts as an image has."""

    def parts(x: Any) -> Any:
        labels, count = ndimage.label(x > 0.2)
        return sum(np.max(np.where(labels == k + 1, x, 0.0)) ** 2 for k in range(count))

    labels, count = ndimage.label(IMAGE > 0.2)
    want = np.zeros_like(IMAGE)
    for k in range(count):
        place = np.unravel_index(np.argmax(np.where(labels == k + 1, IMAGE, 0.0)), IMAGE.shape)
        want[place] = 2 * IMAGE[place]
    np.testing.assert_allclose(nb.grad(nb.differentiable_source(parts))(IMAGE), want, rtol=1e-12)


ERRORS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "nothing asked": (
        lambda x: ndimage.distance_transform_edt(x > 0, return_distances=False),
        ArgumentError,
        "ask for one",
    ),
    "an array to write to": (
        lambda x: ndimage.binary_erosion(x > 0, output=np.zeros((7, 8), bool)),
        ArgumentError,
        "output",
    ),
    "a mask of another shape": (lambda x: ndimage.binary_dilation(x > 0, mask=x[1:] > 0), ShapeError, "of its shape"),
    "a number": (lambda x: ndimage.distance_transform_edt(x[0, 0] > 0), ShapeError, "with axes"),
    "a structure of other axes": (lambda x: ndimage.binary_erosion(x > 0, np.ones(3)), RuntimeError, "dimensionality"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    function, kind, words = ERRORS[name]
    with pytest.raises(kind, match=words):
        nb.vjp(nb.differentiable_source(lambda x: function(x) * x), IMAGE)


@pytest.mark.parametrize("factors", [(2.0, 1.5), [0.5, 2.2], (1.0, 3.0), np.array([1.4, 0.8])])
@pytest.mark.parametrize("order", [1, 3])
def test_zoom_by_several_factors(factors: Any, order: int) -> None:
    """A zoom is linear in the image: its derivative along a direction is the zoom of that."""
    function = nb.differentiable_source(lambda x: ndimage.zoom(x, factors, order=order))
    value, along = nb.jvp(function, (IMAGE,), (OTHER,))
    np.testing.assert_allclose(value, ndimage.zoom(IMAGE, factors, order=order), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(along, ndimage.zoom(OTHER, factors, order=order), rtol=1e-9, atol=1e-12)
    weights = np.cos(np.arange(value.size)).reshape(value.shape)
    back = nb.grad(lambda x: np.sum(function(x) * weights))(IMAGE)
    np.testing.assert_allclose(np.sum(back * OTHER), np.sum(along * weights), rtol=1e-9)
