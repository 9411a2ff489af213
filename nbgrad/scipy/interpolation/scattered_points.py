"""`scipy.interpolate.LinearNDInterpolator` and `NearestNDInterpolator` for recorded values.

In: scattered points, values, places. Out: callable objects that give Tensors, with derivatives by values, points and
places. Called by code that `differentiable_source` runs, by scipy_table.py. The triangles are Qhull's, found when the
program runs; they have no derivative, and the values inside of one are linear in its corners' values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy

from ... import numpy as np
from ...errors import ShapeError
from ...graph.host_functions import HostFunction, host
from ...graph.ir import INT64
from ...record.as_node import as_node, wrap
from ..scipy_objects import ScipyObject

KEPT = 8
"""Triangulations and trees that are kept, by the bytes of their points."""


@lru_cache(KEPT)
def triangulation(points: bytes, shape: tuple[int, int]) -> Any:
    """Delaunay's triangulation."""
    import scipy.spatial

    return scipy.spatial.Delaunay(numpy.frombuffer(points).reshape(shape))


@lru_cache(KEPT)
def _tree(points: bytes, shape: tuple[int, int]) -> Any:
    import scipy.spatial

    return scipy.spatial.KDTree(numpy.frombuffer(points).reshape(shape))


def each(points: numpy.ndarray, places: numpy.ndarray, find: Any, *tail: int) -> numpy.ndarray:
    """The numbers of points that a search finds, for each pair of a batch of points (..., n, k) and places (..., m, k).

    `tail` has the numbers of each place.
    """
    batch = numpy.broadcast_shapes(points.shape[:-2], places.shape[:-2])
    all_points = numpy.broadcast_to(numpy.asarray(points, numpy.float64), (*batch, *points.shape[-2:]))
    all_places = numpy.broadcast_to(numpy.asarray(places, numpy.float64), (*batch, *places.shape[-2:]))
    found = numpy.full((*batch, places.shape[-2], *tail), -1, INT64)
    if found.size:
        for at in numpy.ndindex(batch):
            found[at] = find(all_points[at].tobytes(), points.shape[-2:], all_places[at])
    return found


def _corners(points: bytes, shape: tuple[int, int], places: numpy.ndarray) -> numpy.ndarray:
    found = triangulation(points, shape)
    index = found.find_simplex(places)
    return numpy.where(index[:, None] < 0, -1, found.simplices[index])


def _nearest(points: bytes, shape: tuple[int, int], places: numpy.ndarray) -> numpy.ndarray:
    good = numpy.isfinite(places).all(axis=1)
    found = numpy.full(len(places), -1)
    found[good] = _tree(points, shape).query(places[good])[1]
    return found


CORNERS = HostFunction(
    "corners of simplices",
    lambda i, params: ((*i[1].shape[:-1], i[1].shape[-1] + 1), numpy.dtype(INT64)),
    lambda points, places: each(points, places, _corners, places.shape[-1] + 1),
)
"""The points at the corners of the simplex around each place, by number; -1 outside of all."""
NEAREST = HostFunction(
    "nearest points",
    lambda i, params: (i[1].shape[:-1], numpy.dtype(INT64)),
    lambda points, places: each(points, places, _nearest),
)
"""The nearest point of each place, by number; -1 for a place that is not finite."""


def as_points(given: Any, size: int | None = None) -> Any:
    """An array (..., dimensions) of points, or of arrays of coordinates that broadcast."""
    if isinstance(given, tuple) and len(given) == 1:
        given = given[0]
    if isinstance(given, tuple):
        return np.stack(np.broadcast_arrays(*[np.asarray(one) * 1.0 for one in given]), axis=-1)
    found = np.asarray(given) * 1.0
    return found[:, None] if found.ndim == 1 and size in (None, 1) else found


class Scattered(ScipyObject):
    """Values at scattered points, which may be scaled to a unit box."""

    def __init__(self, points: Any, values: Any, fill_value: Any, rescale: bool) -> None:
        self._given, self.values = as_points(points), np.asarray(values)
        if self._given.ndim != 2 or self.values.ndim < 1 or self._given.shape[0] != self.values.shape[0]:
            message = (
                f"{type(self).__name__} needs points of shape (n, dimensions) and n values, but the shapes are "
                f"{self._given.shape} and {self.values.shape}."
            )
            raise ShapeError(message)
        self.fill_value, self._rescale = fill_value, bool(rescale)
        self._offset, self._scale = 0.0, 1.0
        if rescale:
            apart = np.ptp(self._given, axis=0)
            self._offset, self._scale = np.mean(self._given, axis=0), np.where(apart > 0, apart, 1.0)
        self.points = (self._given - self._offset) / self._scale

    def _places(self, args: tuple[Any, ...]) -> Any:
        size = self.points.shape[1]
        found = as_points(args, size)
        if found.shape[-1] != size:
            message = f"{type(self).__name__} takes places with {size} coordinates, but got shape {found.shape}."
            raise ShapeError(message)
        return (found - self._offset) / self._scale

    @classmethod
    def _from(cls, original: Any, *more: Any) -> Any:
        points = original.points
        rescale = original.scale is not None
        if rescale:
            points = points * original.scale + original.offset
        values = original.values
        if values.ndim == 1 or values.shape[1:] != getattr(original, "values_shape", values.shape[1:]):
            values = values.reshape((len(values), *getattr(original, "values_shape", ())))
        return cls(points, values, *more, rescale=rescale)


class LinearNDInterpolator(Scattered):
    """Linear in each simplex of Delaunay's triangulation."""

    def __init__(self, points: Any, values: Any, fill_value: Any = numpy.nan, rescale: bool = False) -> None:
        super().__init__(points, values, fill_value, rescale)

    @classmethod
    def of(cls, original: Any) -> Any:
        """SciPy's object as one of ours."""
        return cls._from(original, original.fill_value)

    def __call__(self, *args: Any) -> Any:
        """The values at places."""
        places = self._places(args)
        flat = np.reshape(places, (-1, places.shape[-1]))
        corners = wrap(host(CORNERS, (as_node(self.points), as_node(flat))))
        outside = corners[:, 0] < 0
        inside = np.where(outside[:, None], np.arange(corners.shape[1]), corners)
        around = self.points[inside]
        edges = np.swapaxes(around[:, :-1] - around[:, -1:], 1, 2)
        size = flat.shape[1]
        edges = np.where(outside[:, None, None], np.eye(size), edges)
        shares = np.linalg.solve(edges, (flat - around[:, -1])[..., None])[..., 0]
        shares = np.concatenate([shares, 1.0 - np.sum(shares, axis=1, keepdims=True)], axis=1)
        values = self.values[inside]
        shares = np.reshape(shares, shares.shape + (1,) * (values.ndim - 2))
        found = np.sum(shares * values, axis=1)
        found = np.where(np.reshape(outside, outside.shape + (1,) * (found.ndim - 1)), self.fill_value, found)
        return np.reshape(found, (*places.shape[:-1], *self.values.shape[1:]))


class NearestNDInterpolator(Scattered):
    """The value of the nearest point."""

    def __init__(self, x: Any, y: Any, rescale: bool = False, tree_options: Any = None) -> None:
        del tree_options
        super().__init__(x, y, numpy.nan, rescale)

    @classmethod
    def of(cls, original: Any) -> Any:
        """SciPy's object as one of ours."""
        return cls._from(original)

    def __call__(self, *args: Any) -> Any:
        """The values at places."""
        places = self._places(args)
        flat = np.reshape(places, (-1, places.shape[-1]))
        nearest = wrap(host(NEAREST, (as_node(self.points), as_node(flat))))
        lost = nearest < 0
        found = self.values[np.where(lost, 0, nearest)] * 1.0
        found = np.where(np.reshape(lost, lost.shape + (1,) * (found.ndim - 1)), numpy.nan, found)
        return np.reshape(found, (*places.shape[:-1], *self.values.shape[1:]))
