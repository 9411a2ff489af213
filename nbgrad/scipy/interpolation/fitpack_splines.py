"""FITPACK's splines of `scipy.interpolate` for recorded values: UnivariateSpline unsmoothed, those of two variables.

In: abscissae, values, degrees, a rule for points outside; knots and coefficients. Out: callable objects that give
Tensors, with derivatives by points, values and abscissae. Called by code that `differentiable_source` runs, by
scipy_table.py. A spline that SciPy has smoothed, of plain arrays, is one of ours by `of`.
"""

from __future__ import annotations

from typing import Any

import numpy

from ... import numpy as np
from ...errors import ArgumentError
from ..scipy_objects import ScipyObject
from .line_data import rising
from .spline_bases import BSpline, make_interp_spline, splev


def _whole(knots: Any, k: int) -> Any:
    """All knots, of those that differ."""
    return numpy.concatenate([numpy.repeat(knots[:1], k), knots, numpy.repeat(knots[-1:], k)])


class UnivariateSpline(ScipyObject):
    """A spline through points, as `scipy.interpolate.UnivariateSpline` with s=0."""

    def __init__(
        self, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, s: Any = None, ext: Any = 0,
        check_finite: bool = False,
    ) -> None:  # fmt: skip
        if w is not None or s != 0 or any(end is not None for end in bbox):
            message = (
                "A spline of Tensors goes through its points: s=0, without w and bbox. To smooth, choose the knots: "
                "scipy.interpolate.make_interp_spline(x, y, t=...)."
            )
            raise ArgumentError(message)
        del check_finite
        found = make_interp_spline(x, y, k)
        self._t, self._c, self._k, self.ext = found.t, found.c, found.k, ext

    @classmethod
    def of(cls, original: Any) -> UnivariateSpline:
        """SciPy's object as one of ours."""
        made = object.__new__(cls)
        knots, coefficients = original.get_knots(), original.get_coeffs()
        made._k = len(coefficients) - len(knots) + 1
        made._t, made._c, made.ext = _whole(knots, made._k), coefficients, original.ext
        return made

    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Any:
        """The values, or derivatives, at points."""
        names: dict[Any, Any] = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}
        chosen: Any = self.ext if ext is None else ext
        return splev(x, (self._t, self._c, self._k), nu, names.get(chosen, chosen))

    def derivative(self, n: int = 1) -> UnivariateSpline:
        """The spline's derivative."""
        return self._like(BSpline(self._t, self._c, self._k).derivative(n), 1 if self.ext in (3, "const") else self.ext)

    def antiderivative(self, n: int = 1) -> UnivariateSpline:
        """The spline whose derivative this is, 0 at the first knot."""
        return self._like(BSpline(self._t, self._c, self._k).antiderivative(n), self.ext)

    @staticmethod
    def _like(found: BSpline, ext: Any) -> UnivariateSpline:
        made = object.__new__(UnivariateSpline)
        made._t, made._c, made._k, made.ext = found.t, found.c, found.k, ext
        return made

    def integral(self, a: Any, b: Any) -> Any:
        """The integral between two points; outside of the knots the spline counts as 0."""
        return BSpline(self._t, self._c, self._k).integrate(a, b, False)

    def derivatives(self, x: Any) -> Any:
        """The value and all derivatives at a point."""
        return np.stack([self(x, nu) for nu in range(self._k + 1)])

    def get_coeffs(self) -> Any:
        """The coefficients."""
        return np.asarray(self._c)[: np.shape(self._t)[0] - self._k - 1]


class InterpolatedUnivariateSpline(UnivariateSpline):
    """A spline through points."""

    def __init__(
        self, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0,
        check_finite: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(x, y, w, bbox, k, 0, ext, check_finite)


class BivariateSpline(ScipyObject):
    """A spline of two variables."""

    _knots: tuple[Any, Any]
    _degrees: tuple[int, int]
    _c: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs
        message = (
            f"{type(self).__name__} smooths, or chooses its knots, which has no derivative by Tensors. "
            "RectBivariateSpline goes through values on a grid; a spline made of arrays takes Tensors as points."
        )
        raise ArgumentError(message)

    @classmethod
    def of(cls, original: Any) -> BivariateSpline:
        """SciPy's object as one of ours."""
        (tx, ty), (kx, ky) = original.get_knots(), original.degrees
        return cls._made(tx, ty, original.get_coeffs(), kx, ky)

    @classmethod
    def _made(cls, tx: Any, ty: Any, c: Any, kx: int, ky: int) -> BivariateSpline:
        """One of knots, coefficients and degrees, as `bisplrep` gives them."""
        made = object.__new__(cls)
        made._knots, made._degrees = (tx, ty), (kx, ky)
        made._c = np.asarray(c).reshape(len(tx) - kx - 1, len(ty) - ky - 1)
        return made

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        """The values on the grid of two lines of points, or at pairs of points; outside, those at the border."""
        if not grid:
            return self.ev(x, y, dx, dy)
        x, y = np.atleast_1d(np.asarray(x) * 1.0), np.atleast_1d(np.asarray(y) * 1.0)
        for points in (x, y):
            if points.size > 1:
                rising(f"{type(self).__name__}, with grid=True,", points)
        rows = self._spline(0, self._c)(self._inside(0, x), dx)
        return self._spline(1, rows, axis=-1)(self._inside(1, y), dy)

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        """The values at pairs of points."""
        xi, yi = np.broadcast_arrays(np.asarray(xi) * 1.0, np.asarray(yi) * 1.0)
        bases: list[Any] = []
        for which, (points, order) in enumerate(((xi, dx), (yi, dy))):
            count = self._c.shape[which]
            bases.append(self._spline(which, np.eye(count))(self._inside(which, points), order))
        return np.einsum("...i,...j,ij->...", bases[0], bases[1], self._c)

    def _spline(self, which: int, c: Any, axis: int = 0) -> BSpline:
        return BSpline(self._knots[which], c, self._degrees[which], axis=axis)

    def _inside(self, which: int, points: Any) -> Any:
        t, k = np.asarray(self._knots[which]), self._degrees[which]
        return np.clip(points, t[k], t[t.shape[0] - k - 1])


class SmoothBivariateSpline(BivariateSpline):
    """A smoothed spline, which SciPy has made of arrays."""


class LSQBivariateSpline(BivariateSpline):
    """A spline of given knots, which SciPy has fitted to arrays."""


class RectBivariateSpline(BivariateSpline):
    """A spline of two variables through values on a grid."""

    def __init__(
        self, x: Any, y: Any, z: Any, bbox: Any = (None, None, None, None), kx: int = 3, ky: int = 3, s: Any = 0,
        maxit: int = 20,
    ) -> None:  # fmt: skip
        del maxit
        if s != 0 or any(end is not None for end in bbox):
            message = "A RectBivariateSpline of Tensors goes through its values: s=0, without bbox."
            raise ArgumentError(message)
        down = make_interp_spline(x, z, kx)
        across = make_interp_spline(y, down.c, ky, axis=1)
        self._knots, self._degrees = (down.t, across.t), (down.k, across.k)
        self._c = np.moveaxis(across.c, 0, 1)


def bisplev(x: Any, y: Any, tck: Any, dx: int = 0, dy: int = 0) -> Any:
    """The values of a spline of two variables on the grid of two lines of points, without axes of one."""
    found = BivariateSpline._made(*tck)(x, y, dx, dy)
    rows, columns = found.shape
    return found if rows > 1 else found[0] if columns > 1 else found[0, 0]
