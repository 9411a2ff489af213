"""`scipy.interpolate.RBFInterpolator` for recorded values: sums of radial functions around scattered points.

In: points, values, options. Out: a callable object that gives Tensors, with derivatives by points, values, smoothing,
the shape parameter and the places of evaluation. Called by code that `differentiable_source` runs, by scipy_table.py.

Radial functions are written in the square of the distance, which is smooth where the distance is not. At a point of the
data, where the square is 0, the slopes of all of them but "linear" are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

from ... import numpy as np
from ...errors import ArgumentError, ShapeError
from ...record.axes_and_dtypes import only
from ..scipy_objects import ScipyObject

_ROOTS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda s: -np.sqrt(s),
    "thin_plate_spline": lambda s: s * np.log(s) * 0.5,
    "cubic": lambda s: s * np.sqrt(s),
    "quintic": lambda s: -(s * s) * np.sqrt(s),
}
"""Those that are no functions of any scale; they are 0 at 0."""
_SMOOTH: dict[str, Callable[[Any], Any]] = {
    "multiquadric": lambda s: -np.sqrt(s + 1.0),
    "inverse_multiquadric": lambda s: 1.0 / np.sqrt(s + 1.0),
    "inverse_quadratic": lambda s: 1.0 / (s + 1.0),
    "gaussian": lambda s: np.exp(-s),
}
_LEAST_DEGREES = {"multiquadric": 0, "linear": 0, "thin_plate_spline": 1, "cubic": 1, "quintic": 2}
"""The degrees of polynomials with which the system has one solution (Fasshauer 2007, chapter 8)."""


def _kernel(name: str, square: Any) -> Any:
    if name in _SMOOTH:
        return _SMOOTH[name](square)
    none = square == 0.0
    return np.where(none, 0.0, _ROOTS[name](np.where(none, 1.0, square)))


def _squares(a: Any, b: Any, epsilon: Any) -> Any:
    """Squared distances of (..., n, k) and (..., m, k) points, times epsilon squared: (..., n, m)."""
    apart = (a[..., :, None, :] - b[..., None, :, :]) * epsilon
    return np.sum(apart * apart, axis=-1)


class RBFInterpolator(ScipyObject):
    """Radial functions and a polynomial through values at scattered points, or the nearest ones of each place."""

    def __init__(
        self,
        y: Any,
        d: Any,
        neighbors: int | None = None,
        smoothing: Any = 0.0,
        kernel: str = "thin_plate_spline",
        epsilon: Any = None,
        degree: int | None = None,
    ) -> None:
        name = kernel.lower()
        only("kernel", name, *_ROOTS, *_SMOOTH)
        if epsilon is None and name in _SMOOTH:
            message = f"The kernel {name!r} needs epsilon: only those of {', '.join(_ROOTS)} have no scale."
            raise ArgumentError(message)
        self.y, self.d = np.asarray(y) * 1.0, np.asarray(d) * 1.0
        if self.y.ndim != 2 or self.d.ndim < 1 or self.d.shape[0] != self.y.shape[0]:
            message = (
                "RBFInterpolator needs points of shape (n, dimensions) and n values, but the shapes are "
                f"{self.y.shape} and {self.d.shape}."
            )
            raise ShapeError(message)
        count, size = self.y.shape
        self.smoothing = np.asarray(smoothing) * np.ones(count)
        self.kernel, self.epsilon = name, 1.0 if epsilon is None else epsilon
        self.neighbors = None if neighbors is None else min(int(neighbors), count)
        self._degree = max(_LEAST_DEGREES.get(name, -1), 0) if degree is None else int(degree)
        self._terms = [t for n in range(self._degree + 1) for t in combinations_with_replacement(range(size), n)]
        if len(self._terms) > (self.neighbors or count):
            message = (
                f"RBFInterpolator needs {len(self._terms)} points or more for a polynomial of degree {self._degree} in "
                f"{size} dimensions."
            )
            raise ShapeError(message)
        self._values = np.reshape(self.d, (count, -1))
        self._whole = self._solved(self.y, self._values, self.smoothing) if self.neighbors is None else None

    @classmethod
    def of(cls, original: Any) -> Any:
        """SciPy's object as one of ours."""
        values = original.d.view(original.d_dtype).reshape((len(original.y), *original.d_shape))
        # SciPy keeps the powers of the terms, and not the degree.
        degree = int(original.powers.sum(axis=1).max(initial=0)) if len(original.powers) else -1
        options = (original.neighbors, original.smoothing, original.kernel, original.epsilon, degree)
        return cls(original.y, values, *options)

    def _polynomial(self, x: Any, low: Any, high: Any) -> Any:
        """The terms at points of shape (..., n, k), scaled to a box around the data."""
        middle, half = (low + high) * 0.5, (high - low) * 0.5
        at = (x - middle) / np.where(half == 0.0, 1.0, half)
        one = np.ones(at.shape[:-1])
        columns = []
        for term in self._terms:
            column = one
            for k in term:
                column = column * at[..., k]
            columns.append(column)
        return np.stack(columns, axis=-1) if columns else np.zeros((*at.shape[:-1], 0))

    def _solved(self, y: Any, values: Any, smoothing: Any) -> tuple[Any, ...]:
        """Weights of the functions around points (..., n, k), and of the terms; and the box of the points."""
        low, high = np.min(y, axis=-2, keepdims=True), np.max(y, axis=-2, keepdims=True)
        inner = _kernel(self.kernel, _squares(y, y, self.epsilon)) + smoothing[..., None] * np.eye(y.shape[-2])
        terms = self._polynomial(y, low, high)
        corner = np.zeros((*terms.shape[:-2], len(self._terms), len(self._terms)))
        upper = np.concatenate([inner, terms], axis=-1)
        lower = np.concatenate([np.swapaxes(terms, -1, -2), corner], axis=-1)
        rest = np.zeros((*values.shape[:-2], len(self._terms), values.shape[-1]))
        right = np.concatenate([values, rest], axis=-2)
        return np.linalg.solve(np.concatenate([upper, lower], axis=-2), right), low, high

    def _at(self, x: Any, y: Any, solved: tuple[Any, ...]) -> Any:
        weights, low, high = solved
        functions = _kernel(self.kernel, _squares(x, y, self.epsilon))
        return np.concatenate([functions, self._polynomial(x, low, high)], axis=-1) @ weights

    def __call__(self, x: Any) -> Any:
        """The values at places of shape (m, dimensions)."""
        at = np.asarray(x) * 1.0
        if at.ndim != 2 or at.shape[1] != self.y.shape[1]:
            message = f"RBFInterpolator takes places of shape (m, {self.y.shape[1]}), but got {at.shape}."
            raise ShapeError(message)
        if self._whole is not None:
            found = self._at(at, self.y, self._whole)
        else:
            order = np.argsort(_squares(at, self.y, 1.0), axis=1, stable=True)[:, : self.neighbors]
            near, values = self.y[order], self._values[order]
            found = self._at(at[:, None, :], near, self._solved(near, values, self.smoothing[order]))[:, 0, :]
        return np.reshape(found, (at.shape[0], *self.d.shape[1:]))
