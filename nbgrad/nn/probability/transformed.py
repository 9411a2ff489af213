"""`TransformedDistribution`: that of a random variable after a bijection.

In: a bijection and a distribution; then values. Out: Tensors. Used by distribution.py, whose public name it is, and by
bijector.py.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...errors import ArgumentError, DtypeError
from ...functions.arrays.shaping import common_shape
from ...ops.draws import Source
from .distribution_base import Distribution

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


class TransformedDistribution(Distribution):
    """The distribution of `g(X)`, for a number X of a distribution and a bijection g.

    Parameters
    ----------
    bijector : Bijector
        The bijection.
    distribution : Distribution
        That of X, with all its parameters.
    seed, name
        As in `Distribution`; without a seed, draws are those of X's distribution.

    Raises
    ------
    DtypeError
        If one of the two is something else, or X is a count.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.nn.probability import bijector, distribution
    >>> one = distribution.TransformedDistribution(bijector.Exp(), distribution.Normal(0.0, 1.0))
    >>> print(one.cdf(nb.Tensor([1.0])))
    [0.5]
    """

    def __init__(
        self, bijector: Any, distribution: Any, seed: int | None = None, name: str = "transformed_distribution"
    ) -> None:
        if not hasattr(type(bijector), "inverse_log_jacobian"):
            message = f"bijector must be a Bijector, but got {type(bijector).__name__}."
            raise DtypeError(message)
        if not isinstance(distribution, Distribution):
            message = f"distribution must be a Distribution, but got {type(distribution).__name__}."
            raise DtypeError(message)
        super().__init__(seed, distribution.dtype, name, {})
        self._bijector, self._distribution = bijector, distribution
        self.parameter_type = distribution.parameter_type

    bijector = property(lambda self: self._bijector, doc="The bijection.")
    distribution = property(lambda self: self._distribution, doc="The distribution that is transformed.")
    is_linear_transformation = property(
        lambda self: self._bijector.is_constant_jacobian, doc="Whether the bijection is affine."
    )

    @property
    def default_parameters(self) -> list[Any]:
        """The parameters of X's distribution."""
        return self._distribution.default_parameters

    @property
    def batch_shape(self) -> tuple[int, ...] | None:
        """The shape of the parameters of X's distribution."""
        return self._distribution.batch_shape

    @property
    def broadcast_shape(self) -> tuple[int, ...] | None:
        """The common shape of the parameters of the distribution and of the bijection."""
        own = self._distribution.broadcast_shape
        return None if own is None else tuple(common_shape([own, self._bijector.batch_shape]))

    def _log_prob(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        x = self._bijector.inverse(self._number(value, self.parameter_type))
        inner = self._distribution.log_prob(x, *args, **kwargs)
        whole = inner + self._bijector.inverse_log_jacobian(self._number(value, self.parameter_type))
        return np.where(np.isneginf(inner), inner, whole)

    def _split(self, quantity: str, other: str, value: Any, args: Any, kwargs: Any) -> Any:
        """A quantity of values up to one, or of those above it where the bijection falls."""
        x = self._bijector.inverse(self._number(value, self.parameter_type))
        rising = getattr(self._distribution, quantity)(x, *args, **kwargs)
        falls = self._bijector._falls()
        return (
            rising if falls is None else np.where(falls, getattr(self._distribution, other)(x, *args, **kwargs), rising)
        )

    def _cdf(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return self._split("cdf", "survival_function", value, args, kwargs)

    def _survival_function(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return self._split("survival_function", "cdf", value, args, kwargs)

    def _log_cdf(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return self._split("log_cdf", "log_survival", value, args, kwargs)

    def _log_survival(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return self._split("log_survival", "log_cdf", value, args, kwargs)

    def _drawn(self, source: Source, shape: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inner = self._distribution
        own = self._generator is None or hasattr(type(inner), "_sample")
        x = inner.sample(shape, *args, **kwargs) if own else inner._drawn(source, shape, args, kwargs)
        return self._bijector.forward(x)

    def _mean(self, *args: Any, **kwargs: Any) -> Any:
        if not self._bijector.is_constant_jacobian:
            message = "The mean of a TransformedDistribution is known for affine bijections only."
            raise ArgumentError(message)
        return self._bijector.forward(self._distribution.mean(*args, **kwargs))
