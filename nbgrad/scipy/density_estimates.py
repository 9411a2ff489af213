"""`scipy.stats.gaussian_kde` for recorded values.

In: samples as columns, a rule for the width or a factor, weights. Out: a callable object that gives Tensors, with
derivatives by points, samples and weights. Called by code that `differentiable_source` runs, by scipy_table.py.
"""

from __future__ import annotations

import math
from typing import Any

from .. import numpy as np
from ..errors import ArgumentError, ShapeError
from ..record.axes_and_dtypes import only
from .scipy_objects import ScipyObject

linalg: Any = np.linalg


class GaussianKde(ScipyObject):
    """A density that is a mean of normal densities around samples."""

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        self.dataset = np.atleast_2d(np.asarray(dataset) * 1.0)
        self.d, self.n = self.dataset.shape
        given = np.ones(self.n) if weights is None else np.asarray(weights) * 1.0
        self.weights = given / np.sum(given)
        self.neff = 1 / np.sum(self.weights * self.weights)
        self.factor = self._factor(bw_method)
        spread = np.atleast_2d(np.cov(self.dataset, aweights=None if weights is None else self.weights))
        self.covariance = spread * self.factor**2

    def _factor(self, rule: Any) -> Any:
        """The width of the normal densities, over that of the samples (Scott 1992, Silverman 1986)."""
        power = -1 / (self.d + 4)
        if rule is None or isinstance(rule, str):
            only("bw_method", rule, None, "scott", "silverman")
            return (self.neff * (self.d + 2) / 4) ** power if rule == "silverman" else self.neff**power
        if callable(rule):
            message = "gaussian_kde of Tensors takes a rule for bw_method by its name, or a number."
            raise ArgumentError(message)
        return rule

    @classmethod
    def of(cls, original: Any) -> GaussianKde:
        """SciPy's object as one of ours."""
        made = object.__new__(cls)
        made.dataset, made.d, made.n, made.weights = original.dataset, original.d, original.n, original.weights
        made.neff, made.factor, made.covariance = original.neff, original.factor, original.covariance
        return made

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at points, which are columns."""
        points = np.atleast_2d(np.asarray(x) * 1.0)
        if points.shape[0] != self.d:
            if points.shape[0] != 1 or points.shape[1] != self.d:
                message = f"The points of this density have {self.d} coordinates, but their shape is {points.shape}."
                raise ShapeError(message)
            points = np.reshape(points, (self.d, 1))
        factor = linalg.cholesky(np.asarray(self.covariance))
        at, centres = [np.solve_triangular(factor, p, lower=True) for p in (points, np.asarray(self.dataset))]
        apart = at[:, None, :] - centres[:, :, None]
        size = np.sum(np.log(np.diagonal(factor))) + self.d * math.log(2 * math.pi) / 2
        energy = -np.sum(apart * apart, axis=0) / 2 + np.log(np.asarray(self.weights))[:, None]
        return np.logsumexp(energy, 0) - size

    def evaluate(self, points: Any) -> Any:
        """The density at points, which are columns."""
        return np.exp(self.logpdf(points))

    pdf = __call__ = evaluate
