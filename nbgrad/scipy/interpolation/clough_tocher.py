"""`scipy.interpolate.CloughTocher2DInterpolator`, and `griddata`, for recorded values.

In: scattered points in the plane, which are constants for smooth surfaces, values, places. Out: callable objects that
give Tensors, with derivatives by values and places. Called by code that `differentiable_source` runs, by
scipy_table.py. SciPy finds the slopes at the points, once for each set of points, as a matrix that the values are
multiplied with; the cubic pieces are those of P. Alfeld, "A trivariate Clough-Tocher scheme for tetrahedral data",
1984, with normal derivatives along lines between centroids as SciPy has them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy

from ... import numpy as np
from ...errors import ArgumentError, ShapeError
from ...graph.host_functions import HostFunction, host
from ...graph.ir import INT64
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import only
from .line_interpolation import interp1d
from .scattered_points import (
    KEPT,
    LinearNDInterpolator,
    NearestNDInterpolator,
    Scattered,
    as_points,
    each,
    triangulation,
)

TOLERANCE = 1e-10
"""The error of slopes, in units of the largest one, at most."""


def _around(points: bytes, shape: tuple[int, int], places: numpy.ndarray) -> numpy.ndarray:
    """The corners of the triangle around each place, and those of its three neighbours; -1 where there is none."""
    found = triangulation(points, shape)
    index = found.find_simplex(places)
    corners = numpy.where(index[:, None] < 0, -1, found.simplices[index])
    beside = found.neighbors[index]
    others = numpy.where(beside[..., None] < 0, -1, found.simplices[beside])
    return numpy.concatenate([corners, others.reshape(-1, 9)], axis=1)


AROUND = HostFunction(
    "triangles and their neighbours",
    lambda i, params: ((*i[1].shape[:-1], 12), numpy.dtype(INT64)),
    lambda points, places: each(points, places, _around, 12),
)


@lru_cache(KEPT)
def _slopes(points: bytes, shape: tuple[int, int], tolerance: float, maxiter: int) -> numpy.ndarray:
    """The slopes at each point (first axis) for values of 1 at one point (second axis) and 0 elsewhere."""
    from scipy.interpolate import CloughTocher2DInterpolator as OfScipy

    known = triangulation(points, shape)
    return OfScipy(known, numpy.eye(shape[0]), tol=tolerance, maxiter=maxiter).grad


class CloughTocher2DInterpolator(Scattered):
    """Cubic in three parts of each triangle of Delaunay's triangulation, with continuous slopes."""

    def __init__(
        self,
        points: Any,
        values: Any,
        fill_value: Any = numpy.nan,
        tol: float = 1e-6,
        maxiter: int = 400,
        rescale: bool = False,
    ) -> None:
        super().__init__(points, values, fill_value, rescale)
        if self.points.shape[1] != 2:
            message = f"CloughTocher2DInterpolator needs points in the plane, but got shape {self.points.shape}."
            raise ShapeError(message)
        if as_node(self.points).traced:
            message = "CloughTocher2DInterpolator has no derivative by its points; take RBFInterpolator."
            raise ArgumentError(message)
        known = numpy.ascontiguousarray(self.points.asnumpy(), numpy.float64)
        slopes = _slopes(known.tobytes(), known.shape, min(tol, TOLERANCE), max(maxiter, 400))
        self.grad = np.tensordot(slopes, self.values, ((1,), (0,)))  # (points, 2, ...)

    @classmethod
    def of(cls, original: Any) -> Any:
        """SciPy's object as one of ours."""
        return cls._from(original, original.fill_value)

    def __call__(self, *args: Any) -> Any:
        """The values at places."""
        places = self._places(args)
        flat = np.reshape(places, (-1, 2))
        numbers = wrap(host(AROUND, (as_node(self.points), as_node(flat))))
        outside = numbers[:, 0] < 0
        corners = np.where(outside[:, None], np.arange(3), numbers[:, :3])
        at = self.points[corners]
        edges = np.where(outside[:, None, None], np.array([[1.0, 0.0], [0.0, 1.0]]), _matrix(at))
        shares = _shares(edges, at, flat)
        beside = np.reshape(numbers[:, 3:], (-1, 3, 3))
        alone = beside[..., 0] < 0
        centres = np.mean(self.points[np.where(beside < 0, 0, beside)], axis=2)
        normals = [_direction(k, _shares(edges, at, centres[:, k]), alone[:, k]) for k in range(3)]
        tail = (1,) * (self.values.ndim - 1)
        wide = [np.reshape(one, (-1, *tail)) for one in (*normals, *np.moveaxis(shares, 1, 0))]
        found = _surface(at, self.values[corners], self.grad[corners], wide[:3], wide[3:], tail)
        found = np.where(np.reshape(outside, (-1, *tail)), self.fill_value, found)
        return np.reshape(found, (*places.shape[:-1], *self.values.shape[1:]))


def _matrix(at: Any) -> Any:
    """The edges from the last corner as columns."""
    return np.swapaxes(at[:, :2] - at[:, 2:], 1, 2)


def _shares(edges: Any, at: Any, places: Any) -> Any:
    """Barycentric coordinates, shape (places, 3)."""
    first = np.linalg.solve(edges, (places - at[:, 2])[..., None])[..., 0]
    return np.concatenate([first, 1.0 - np.sum(first, axis=1, keepdims=True)], axis=1)


def _direction(k: int, centre: Any, alone: Any) -> Any:
    """Where the line to a neighbour's centroid crosses the edge opposite to corner k; along the normal at the rim."""
    a, b = centre[:, (k + 1) % 3], centre[:, (k + 2) % 3]
    below = np.where(alone, 1.0, 2 - 3 * a - 3 * b)
    return np.where(alone, -0.5, (2 * b + a - 1) / below)


def _surface(at: Any, values: Any, slopes: Any, g: list[Any], shares: list[Any], tail: tuple[int, ...]) -> Any:
    """The cubic with these values and slopes at the corners, from its coefficients in Bernstein's form."""
    f1, f2, f3 = (values[:, k] for k in range(3))
    e12, e23, e31 = at[:, 1] - at[:, 0], at[:, 2] - at[:, 1], at[:, 0] - at[:, 2]
    e14, e24, e34 = (e12 - e31) / 3, (e23 - e12) / 3, (e31 - e23) / 3

    def along(k: int, edge: Any) -> Any:
        return sum(slopes[:, k, j] * np.reshape(edge[:, j], (-1, *tail)) for j in range(2)) / 3

    c2100, c2010, c2001 = f1 + along(0, e12), f1 - along(0, e31), f1 + along(0, e14)
    c1200, c0210, c0201 = f2 - along(1, e12), f2 + along(1, e23), f2 + along(1, e24)
    c1020, c0120, c0021 = f3 + along(2, e31), f3 - along(2, e23), f3 + along(2, e34)
    c0111 = (g[0] * (3 * c0210 - f2 - 3 * c0120 + f3) + 2 * c0210 - f2 - c0120 + c0021 + c0201) / 2
    c1011 = (g[1] * (3 * c1020 - f3 - 3 * c2010 + f1) + 2 * c1020 - f3 - c2010 + c2001 + c0021) / 2
    c1101 = (g[2] * (3 * c2100 - f1 - 3 * c1200 + f2) + 2 * c2100 - f1 - c1200 + c2001 + c0201) / 2
    c1002, c0102, c0012 = (c1101 + c1011 + c2001) / 3, (c1101 + c0111 + c0201) / 3, (c1011 + c0111 + c0021) / 3
    c0003 = (c1002 + c0102 + c0012) / 3
    least = np.minimum(np.minimum(shares[0], shares[1]), shares[2])
    b1, b2, b3, b4 = shares[0] - least, shares[1] - least, shares[2] - least, 3 * least
    squares = b1**2 * (b2 * c2100 + b3 * c2010 + b4 * c2001) + b2**2 * (b1 * c1200 + b3 * c0210 + b4 * c0201)
    squares = squares + b3**2 * (b1 * c1020 + b2 * c0120 + b4 * c0021) + b4**2 * (b1 * c1002 + b2 * c0102 + b3 * c0012)
    mixed = b1 * b2 * b4 * c1101 + b1 * b3 * b4 * c1011 + b2 * b3 * b4 * c0111
    return b1**3 * f1 + b2**3 * f2 + b3**3 * f3 + b4**3 * c0003 + 3 * squares + 6 * mixed


def griddata(
    points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = numpy.nan, rescale: bool = False
) -> Any:
    """Values at places, between scattered points."""
    at = as_points(points)
    if at.shape[-1] == 1:
        only("method", method, "nearest", "linear", "cubic")
        x = np.reshape(at, (-1,))
        order = np.argsort(x)
        fill_value = "extrapolate" if method == "nearest" else fill_value
        found = interp1d(
            x[order], np.asarray(values)[order], kind=method, axis=0, bounds_error=False, fill_value=fill_value
        )
        return found(xi[0] if isinstance(xi, tuple) else xi)
    only("method", method, "nearest", "linear", "cubic")
    if method == "cubic":
        return CloughTocher2DInterpolator(at, values, fill_value, rescale=rescale)(as_points(xi))
    if method == "nearest":
        return NearestNDInterpolator(at, values, rescale)(as_points(xi))
    return LinearNDInterpolator(at, values, fill_value, rescale)(as_points(xi))
