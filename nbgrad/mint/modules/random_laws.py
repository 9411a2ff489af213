"""PyTorch's `torch.distributions`: densities, moments and draws.

In: parameters as Tensors or numbers. Out: Tensors, which differentiate in values and parameters; `rsample` in the
parameters, too. Called by users, as `torch_names.distributions`. Formulas of most are those of `nn.probability`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy

from ... import ops
from ...autograd.grad_modes import no_grad
from ...errors import ArgumentError
from ...nn.probability import distribution as cells
from ...record.tensor import Tensor
from .default_dtype import get_default_dtype

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Cauchy",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "Gamma",
    "Gumbel",
    "HalfNormal",
    "Independent",
    "Laplace",
    "LogNormal",
    "MultivariateNormal",
    "Normal",
    "Poisson",
    "StudentT",
    "Uniform",
    "kl_divergence",
]


def _tensors(*values: Any) -> list[Any]:
    """Parameters as Tensors of one float dtype and one shape."""
    kept = [one if isinstance(one, Tensor) else Tensor(np.asarray(one)) for one in values]
    floats = [one.dtype for one in kept if isinstance(one, Tensor) and one.dtype.kind == "f"]
    given = [one.dtype for one, value in zip(kept, values, strict=True) if isinstance(value, Tensor)]
    dtype = (given or [get_default_dtype()])[0] if floats or not given else get_default_dtype()
    dtype = dtype if dtype.kind == "f" else get_default_dtype()
    shape = np.broadcast_shapes(*[one.shape for one in kept])
    return [ops.broadcast_to(one.astype(dtype), shape) for one in kept]


class Distribution:
    """The base of distributions.

    Parameters
    ----------
    batch_shape, event_shape : tuple of int
        The shapes of the parameters, and of one value.
    """

    has_rsample = False

    def __init__(self, batch_shape: Any = (), event_shape: Any = ()) -> None:
        self.batch_shape, self.event_shape = tuple(batch_shape), tuple(event_shape)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability."""
        message = f"{type(self).__name__} has no log_prob."
        raise NotImplementedError(message)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws that differentiate in the parameters."""
        message = f"{type(self).__name__} has no rsample: its draws have no derivative."
        raise NotImplementedError(message)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws."""
        with no_grad():
            return self.rsample(sample_shape).detach()

    def sample_n(self, n: int) -> Any:
        """`n` draws."""
        return self.sample((n,))

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return np.sqrt(self.variance)

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.stddev**2

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return np.exp(self.entropy())

    def entropy(self) -> Any:
        """The entropy."""
        message = f"{type(self).__name__} has no entropy."
        raise NotImplementedError(message)


class _Known(Distribution):
    """A distribution of `nn.probability`."""

    has_rsample = True
    home: ClassVar[str]
    names: ClassVar[tuple[str, ...]]

    def __init__(self, *args: Any, validate_args: Any = None, **kwargs: Any) -> None:
        del validate_args
        given = {**dict(zip(self.names, args, strict=False)), **kwargs}
        missing = [name for name in self.names if name not in given and name not in self.defaults]
        if missing or set(given) - set(self.names):
            message = f"{type(self).__name__} takes the parameters {', '.join(self.names)}, but got {', '.join(given)}."
            raise ArgumentError(message)
        values = _tensors(*[given.get(name, self.defaults.get(name)) for name in self.names])
        for name, value in zip(self.names, values, strict=True):
            setattr(self, name, value)
        super().__init__(values[0].shape)
        self._cell = getattr(cells, self.home)(dtype=values[0].dtype)

    defaults: ClassVar[dict[str, float]] = {}

    @property
    def _parameters(self) -> list[Any]:
        """The parameters as `nn.probability` has them."""
        return [getattr(self, name) for name in self.names]

    def _value(self, value: Any) -> Any:
        found = value if isinstance(value, Tensor) else Tensor(np.asarray(value))
        return found.astype(self._parameters[0].dtype)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability."""
        return self._cell.log_prob(self._value(value), *self._parameters)

    def cdf(self, value: Any) -> Any:
        """The probability of values up to this one."""
        return self._cell.cdf(self._value(value), *self._parameters)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws that differentiate in the parameters."""
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return self._cell.sample(shape, *self._parameters).reshape(shape + self.batch_shape)

    def entropy(self) -> Any:
        """The entropy."""
        return self._cell.entropy(*self._parameters)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self._cell.mean(*self._parameters)

    @property
    def mode(self) -> Any:
        """The likeliest value."""
        return self._cell.mode(*self._parameters)

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self._cell.sd(*self._parameters)

    @property
    def variance(self) -> Any:
        """The variance."""
        return self._cell.var(*self._parameters)


class Normal(_Known):
    """The normal distribution: `Normal(loc, scale)`.

    Examples
    --------
    >>> import nbgrad.mint.torch_names as torch
    >>> law = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
    >>> print(law.log_prob(torch.zeros(2)).round(decimals=4), law.rsample((3,)).shape)
    [-0.9189 -0.9189] (3, 2)
    """

    home, names = "Normal", ("loc", "scale")


class Laplace(_Known):
    """The Laplace distribution: `Laplace(loc, scale)`."""

    home, names = "Laplace", ("loc", "scale")


class Cauchy(_Known):
    """The Cauchy distribution: `Cauchy(loc, scale)`."""

    home, names = "Cauchy", ("loc", "scale")


class Gumbel(_Known):
    """The Gumbel distribution: `Gumbel(loc, scale)`."""

    home, names = "Gumbel", ("loc", "scale")


class LogNormal(_Known):
    """The exponentials of normal values: `LogNormal(loc, scale)`."""

    home, names = "LogNormal", ("loc", "scale")


class Uniform(_Known):
    """The uniform distribution: `Uniform(low, high)`."""

    home, names = "Uniform", ("low", "high")


class Exponential(_Known):
    """The exponential distribution: `Exponential(rate)`."""

    home, names = "Exponential", ("rate",)


class Gamma(_Known):
    """The gamma distribution: `Gamma(concentration, rate)`."""

    home, names = "Gamma", ("concentration", "rate")


class Beta(_Known):
    """The beta distribution: `Beta(concentration1, concentration0)`."""

    home, names = "Beta", ("concentration1", "concentration0")


class StudentT(_Known):
    """Student's distribution: `StudentT(df, loc=0.0, scale=1.0)`."""

    home, names = "StudentT", ("df", "loc", "scale")
    defaults: ClassVar = {"loc": 0.0, "scale": 1.0}


class HalfNormal(_Known):
    """The absolute values of normal values: `HalfNormal(scale)`."""

    home, names = "HalfNormal", ("scale",)
    scale: Any

    @property
    def _parameters(self) -> list[Any]:
        return [self.scale * 0, self.scale]


class Poisson(_Known):
    """The Poisson distribution: `Poisson(rate)`."""

    home, names = "Poisson", ("rate",)
    rate: Any
    has_rsample = False

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws."""
        with no_grad():
            return _Known.rsample(self, sample_shape).detach().astype(self.rate.dtype)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Counts have no derivative."""
        return Distribution.rsample(self, sample_shape)


# ----- Choices -----


class _Choice(Distribution):
    """Distributions by probabilities or by their logits."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        del validate_args
        if (probs is None) == (logits is None):
            message = "Either `probs` or `logits` must be specified, but not both."
            raise ArgumentError(message)
        (given,) = _tensors(logits if probs is None else probs)
        self.probs, self.logits = self._both(given, probs is None)
        super().__init__(given.shape if self.single else given.shape[:-1])

    single: ClassVar[bool]
    _both: Callable[[Any, bool], tuple[Any, Any]]
    """The static method that gives probabilities and logits, of either."""


def _clamped(probs: Any) -> Any:
    small = float(np.finfo(np.dtype(str(probs.dtype).lower())).eps)
    return np.clip(probs, small, 1.0 - small)


class Bernoulli(_Choice):
    """One with the probability `probs`, else zero: `Bernoulli(probs)` or `Bernoulli(logits=x)`."""

    single = True

    @staticmethod
    def _both(given: Any, logits: bool) -> tuple[Any, Any]:
        if logits:
            return ops.sigmoid(given), given
        clamped = _clamped(given)
        return given, np.log(clamped) - np.log1p(-clamped)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        x = self.logits
        return -(np.maximum(x, 0) - x * value + np.log1p(np.exp(-np.abs(x))))

    def entropy(self) -> Any:
        """The entropy."""
        return -self.log_prob(self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws."""
        with no_grad():
            shape = tuple(sample_shape) + self.batch_shape
            draws = ops.rand(shape, dtype="float64") < self.probs.astype("float64")
            return draws.astype(self.probs.dtype).detach()

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.probs

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.probs * (1 - self.probs)


class Categorical(_Choice):
    """A class, by probabilities along the last axis: `Categorical(probs)` or `Categorical(logits=x)`."""

    single = False

    @staticmethod
    def _both(given: Any, logits: bool) -> tuple[Any, Any]:
        if logits:
            normal = ops.log_softmax(given, -1)
            return np.exp(normal), normal
        probs = given / np.sum(given, axis=-1, keepdims=True)
        return probs, np.log(_clamped(probs))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        positions = value if isinstance(value, Tensor) else Tensor(np.asarray(value))
        positions = positions.astype("int64")
        shape = np.broadcast_shapes(positions.shape, self.batch_shape)
        table = ops.broadcast_to(self.logits, (*shape, self.logits.shape[-1]))
        return np.take_along_axis(table, ops.broadcast_to(positions, shape)[..., None], -1)[..., 0]

    def entropy(self) -> Any:
        """The entropy."""
        return -np.sum(self.probs * self.logits, axis=-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws."""
        with no_grad():
            limits = np.cumsum(self.probs.asnumpy().astype(np.float64), axis=-1)
            draws = ops.rand((*sample_shape, *self.batch_shape, 1), dtype="float64").asnumpy()
            found = (draws * limits[..., -1:] >= limits).sum(axis=-1)
            return Tensor(np.minimum(found, limits.shape[-1] - 1).astype(np.int64))


# ----- Several values together -----


class Dirichlet(Distribution):
    """Parts of a whole: `Dirichlet(concentration)`."""

    has_rsample = True

    def __init__(self, concentration: Any, validate_args: Any = None) -> None:
        del validate_args
        (self.concentration,) = _tensors(concentration)
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:])

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        a = self.concentration
        whole = ops.lgamma(np.sum(a, axis=-1)) - np.sum(ops.lgamma(a), axis=-1)
        return np.sum((a - 1) * np.log(value), axis=-1) + whole

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws that differentiate in the parameters."""
        draws = Gamma(self.concentration, 1.0).rsample(sample_shape)
        return draws / np.sum(draws, axis=-1, keepdims=True)

    def entropy(self) -> Any:
        """The entropy."""
        a = self.concentration
        total = np.sum(a, axis=-1)
        whole = np.sum(ops.lgamma(a), axis=-1) - ops.lgamma(total)
        return whole - (a.shape[-1] - total) * ops.digamma(total) - np.sum((a - 1) * ops.digamma(a), axis=-1)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.concentration / np.sum(self.concentration, axis=-1, keepdims=True)

    @property
    def variance(self) -> Any:
        """The variance."""
        mean, total = self.mean, np.sum(self.concentration, axis=-1, keepdims=True)
        return mean * (1 - mean) / (total + 1)


class MultivariateNormal(Distribution):
    """Normal vectors, by a covariance, its inverse, or the covariance's Cholesky factor."""

    has_rsample = True

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: Any = None,
    ) -> None:
        del validate_args
        if sum(one is not None for one in (covariance_matrix, precision_matrix, scale_tril)) != 1:
            message = "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            raise ArgumentError(message)
        if scale_tril is None:
            known = np.linalg.inv(precision_matrix) if covariance_matrix is None else covariance_matrix
            scale_tril = np.linalg.cholesky(known)
        shape = np.broadcast_shapes(loc.shape[:-1], scale_tril.shape[:-2])
        self.loc = ops.broadcast_to(loc, (*shape, loc.shape[-1]))
        self.scale_tril = ops.broadcast_to(scale_tril, (*shape, *scale_tril.shape[-2:]))
        super().__init__(shape, loc.shape[-1:])

    @property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return self.scale_tril @ np.swapaxes(self.scale_tril, -1, -2)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.loc

    @property
    def variance(self) -> Any:
        """The variances of the elements."""
        return np.sum(self.scale_tril**2, axis=-1)

    def _half_log_det(self) -> Any:
        return np.sum(np.log(np.diagonal(self.scale_tril, axis1=-2, axis2=-1)), axis=-1)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        difference = value - self.loc
        factor = ops.broadcast_to(self.scale_tril, (*difference.shape[:-1], *self.scale_tril.shape[-2:]))
        z = np.linalg.solve(factor, difference[..., None])[..., 0]
        return -0.5 * (self.loc.shape[-1] * math.log(2 * math.pi) + np.sum(z * z, axis=-1)) - self._half_log_det()

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws that differentiate in the parameters."""
        z = ops.randn((*sample_shape, *self.loc.shape), dtype=self.loc.dtype)
        return self.loc + np.sum(self.scale_tril * z[..., None, :], axis=-1)

    def entropy(self) -> Any:
        """The entropy."""
        return 0.5 * self.loc.shape[-1] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()


class Independent(Distribution):
    """A distribution whose last axes of parameters belong to one value."""

    def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: Any = None) -> None:
        del validate_args
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        shape = base_distribution.batch_shape + base_distribution.event_shape
        at = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        super().__init__(shape[:at], shape[at:])
        self.has_rsample = base_distribution.has_rsample

    def _summed(self, x: Any) -> Any:
        return np.sum(x, axis=tuple(range(-self.reinterpreted_batch_ndims, 0))) if self.reinterpreted_batch_ndims else x

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability."""
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Any:
        """The entropy."""
        return self._summed(self.base_dist.entropy())

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws that differentiate in the parameters."""
        return self.base_dist.rsample(sample_shape)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.base_dist.mean

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.base_dist.variance


def kl_divergence(p: Any, q: Any) -> Any:
    """The divergence of two distributions of one kind (Kullback and Leibler 1951).

    Parameters
    ----------
    p, q : Distribution

    Raises
    ------
    NotImplementedError
        For kinds without a formula.
    """
    if isinstance(p, Independent) and isinstance(q, Independent):
        return p._summed(kl_divergence(p.base_dist, q.base_dist))
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        return np.sum(p.probs * (p.logits - q.logits), axis=-1)
    if isinstance(p, Bernoulli) and isinstance(q, Bernoulli):
        return p.probs * (p.logits - q.logits) + (p.log_prob(0.0) - q.log_prob(0.0))
    if isinstance(p, MultivariateNormal) and isinstance(q, MultivariateNormal):
        between = np.linalg.solve(q.scale_tril, p.scale_tril)
        z = np.linalg.solve(q.scale_tril, (q.loc - p.loc)[..., None])[..., 0]
        square = np.sum(between**2, axis=(-2, -1)) + np.sum(z * z, axis=-1)
        return 0.5 * (square - p.loc.shape[-1]) + q._half_log_det() - p._half_log_det()
    if type(p) is type(q) and isinstance(p, _Known):
        return p._cell.kl_loss(p.home, *q._parameters, *p._parameters)
    message = f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
    raise NotImplementedError(message)
