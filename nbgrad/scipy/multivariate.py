"""`scipy.stats.multivariate_normal` and `dirichlet` for recorded values.

In: points, means, covariances, concentrations. Out: Tensors, with derivatives by all of them. Called by
distributions.py. The covariance is factorised by Cholesky, so that a singular one is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import numpy as np
from ..record.as_node import as_node, holds_tensors
from ..runtime.evaluate import require

linalg: Any = np.linalg


class _Multivariate:
    """A distribution of `scipy.stats`: `logpdf` and `pdf` know Tensors, other names are as those of `Distribution`."""

    def __init__(self, original: Any, in_python: Callable[[Any], Any]) -> None:
        self._original, self._in_python = original, in_python

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._original, name)
        if not callable(found) or name.startswith("_"):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            if any(holds_tensors(value) for value in (*args, *kwargs.values())):
                return getattr(self._in_python(self._original), name)(*args, **kwargs)
            return found(*args, **kwargs)

        return call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(holds_tensors(value) for value in (*args, *kwargs.values())):
            return _FrozenMultivariate(self, args, kwargs)
        return self._original(*args, **kwargs)

    def logpdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the density."""
        if any(holds_tensors(value) for value in (x, *args, *kwargs.values())):
            return self._logpdf(x, *args, **kwargs)
        return self._original.logpdf(x, *args, **kwargs)

    def pdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The density."""
        if any(holds_tensors(value) for value in (x, *args, *kwargs.values())):
            return np.exp(self._logpdf(x, *args, **kwargs))
        return self._original.pdf(x, *args, **kwargs)

    def _logpdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


class _FrozenMultivariate:
    """A multivariate distribution with its parameters."""

    def __init__(self, dist: _Multivariate, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._dist, self._args, self._kwargs = dist, args, kwargs

    def __getattr__(self, name: str) -> Any:
        if name in ("cdf", "logcdf"):
            return lambda x, **options: getattr(self._dist, name)(x, *self._args, **self._kwargs, **options)
        if name == "entropy":
            return lambda: self._dist.entropy(*self._args, **self._kwargs)
        message = f"A multivariate distribution of recorded parameters has no {name!r}, but pdf and logpdf."
        raise AttributeError(message)

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density."""
        return self._dist.logpdf(x, *self._args, **self._kwargs)

    def pdf(self, x: Any) -> Any:
        """The density."""
        return self._dist.pdf(x, *self._args, **self._kwargs)


class MultivariateNormal(_Multivariate):
    """The normal distribution of vectors."""

    def _logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        x, cov = np.asarray(x), np.asarray(cov)
        mean = None if mean is None else np.atleast_1d(mean)
        n = cov.shape[0] if cov.ndim else mean.shape[0] if mean is not None else 1
        if cov.ndim < 2:
            cov = cov * np.eye(n)
        if n == 1 and (x.ndim == 0 or x.shape[-1] != 1 or x.ndim == 1):
            x = x[..., None]
        apart = x if mean is None else x - mean
        factor = linalg.cholesky(cov)
        lines = apart.reshape((-1, n))
        scaled = np.solve_triangular(factor, lines.T, lower=True)
        size = np.sum(np.log(np.diagonal(factor)))
        found = -np.sum(scaled * scaled, axis=0) / 2 - size - n * math.log(2 * math.pi) / 2
        return found.reshape(apart.shape[:-1])


class Dirichlet(_Multivariate):
    """The distribution of shares; the last one may be left out."""

    def _logpdf(self, x: Any, alpha: Any) -> Any:
        x, alpha = np.asarray(x), np.asarray(alpha) * 1.0
        if x.shape[0] + 1 == alpha.shape[0]:
            x = np.concatenate([x, 1.0 - np.sum(x, axis=0, keepdims=True)])
        require(as_node(np.all(np.abs(np.sum(x, axis=0) - 1.0) <= 1e-9)), "The shares of a dirichlet do not sum to 1.")
        require(as_node(np.all(alpha > 0)), "The parameters of a dirichlet must be greater than 0.")
        shape = (alpha.shape[0],) + (1,) * (x.ndim - 1)
        size = np.sum(np.gammaln(alpha)) - np.gammaln(np.sum(alpha))
        return np.sum(np.xlogy(alpha.reshape(shape) - 1, x), axis=0) - size


MULTIVARIATE: dict[str, type[_Multivariate]] = {"multivariate_normal": MultivariateNormal, "dirichlet": Dirichlet}
"""By SciPy's name."""
