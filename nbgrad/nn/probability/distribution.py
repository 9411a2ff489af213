"""Probability distributions with MindSpore's names, `nn.probability.distribution`.

In: parameters, or none for those that come with each call; then values. Out: Tensors, which differentiate in values and
parameters; so do draws of all distributions but those of counts. Used by users. densities.py has the formulas,
distribution_base.py the methods, transformed.py the class `TransformedDistribution`.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...errors import ArgumentError, ShapeError
from . import densities
from .distribution_base import Distribution, known, parameter
from .transformed import TransformedDistribution

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfNormal",
    "Laplace",
    "LogNormal",
    "Logistic",
    "Normal",
    "Poisson",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
]

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


class Bernoulli(Distribution):
    """1 with a probability, else 0.

    Parameters
    ----------
    probs : number or array-like, optional
        The probability of 1, between 0 and 1.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.Bernoulli(0.25).log_prob(nb.Tensor([0, 1])))
    [-0.28768206 -1.3862944 ]
    """

    law = densities.BERNOULLI
    probs = parameter("probs")

    def __init__(
        self, probs: Any = None, seed: int | None = None, dtype: Any = np.int32, name: str = "Bernoulli"
    ) -> None:
        super().__init__(seed, dtype, name, {"probs": probs})


class Beta(Distribution):
    """Numbers between 0 and 1, with density proportional to `x**(c1 - 1) * (1 - x)**(c0 - 1)`.

    Parameters
    ----------
    concentration1, concentration0 : number or array-like, optional
        Above 0.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.Beta([2.0], [2.0]).prob(nb.Tensor([0.25, 0.5])))
    [1.125 1.5  ]
    """

    law = densities.BETA
    concentration1 = parameter("concentration1")
    concentration0 = parameter("concentration0")

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        seed: int | None = None,
        dtype: Any = np.float32,
        name: str = "Beta",
    ) -> None:
        super().__init__(seed, dtype, name, {"concentration1": concentration1, "concentration0": concentration0})


class Categorical(Distribution):
    """Classes 0, 1, ..., each with a probability of its own.

    Parameters
    ----------
    probs : number or array-like, optional
        The probabilities of classes along the last axis; their sum is 1.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.Categorical([0.5, 0.25, 0.25]).log_prob(nb.Tensor([0, 2])))
    [-0.6931472 -1.3862944]
    """

    law = densities.CATEGORICAL
    probs = parameter("probs")

    def __init__(
        self, probs: Any = None, seed: int | None = None, dtype: Any = np.int32, name: str = "Categorical"
    ) -> None:
        super().__init__(seed, dtype, name, {"probs": probs})

    def _check_together(self) -> None:
        number = known(self.probs)
        if number is None:
            return
        if number.ndim == 0:
            message = "probs of Categorical needs an axis of classes, but is a number."
            raise ShapeError(message)
        if not (
            np.all(number >= 0)
            and np.allclose(number.sum(-1), 1.0, rtol=0.0, atol=1e-3 if number.itemsize == 2 else 1e-5)
        ):
            message = f"probs of Categorical must be at least 0, with the sum 1 along the last axis, but is {number}."
            raise ArgumentError(message)


class Cauchy(Distribution):
    """Numbers with density proportional to `1 / (1 + ((x - loc) / scale)**2)`; they have no mean.

    Parameters
    ----------
    loc : number or array-like, optional
        The mode and the median.
    scale : number or array-like, optional
        Above 0.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.Cauchy(0.0, 1.0).cdf(nb.Tensor([0.0, 1.0])))
    [0.5  0.75]
    """

    law = densities.CAUCHY
    loc = parameter("loc")
    scale = parameter("scale")

    def __init__(
        self, loc: Any = None, scale: Any = None, seed: int | None = None, dtype: Any = np.float32, name: str = "Cauchy"
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})


class Exponential(Distribution):
    """Numbers above 0 with density `rate * exp(-rate * x)`.

    Parameters
    ----------
    rate : number or array-like, optional
        One over the mean.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.Exponential(0.5).log_survival(nb.Tensor([0.0, 1.0])))
    [-0.  -0.5]
    """

    law = densities.EXPONENTIAL
    rate = parameter("rate")

    def __init__(
        self, rate: Any = None, seed: int | None = None, dtype: Any = np.float32, name: str = "Exponential"
    ) -> None:
        super().__init__(seed, dtype, name, {"rate": rate})


class Gamma(Distribution):
    """Numbers above 0, with density proportional to `x**(concentration - 1) * exp(-rate * x)`.

    Parameters
    ----------
    concentration, rate : number or array-like, optional
        Above 0.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.Gamma([2.0], [4.0]).mean())
    [0.5]
    """

    law = densities.GAMMA
    concentration = parameter("concentration")
    rate = parameter("rate")

    def __init__(
        self,
        concentration: Any = None,
        rate: Any = None,
        seed: int | None = None,
        dtype: Any = np.float32,
        name: str = "Gamma",
    ) -> None:
        super().__init__(seed, dtype, name, {"concentration": concentration, "rate": rate})


class Geometric(Distribution):
    """The number of failures before the first success.

    Parameters
    ----------
    probs : number or array-like, optional
        The probability of a success, between 0 and 1.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.Geometric(0.5).prob(nb.Tensor([0, 1, 2])))
    [0.5   0.25  0.125]
    """

    law = densities.GEOMETRIC
    probs = parameter("probs")

    def __init__(
        self, probs: Any = None, seed: int | None = None, dtype: Any = np.int32, name: str = "Geometric"
    ) -> None:
        super().__init__(seed, dtype, name, {"probs": probs})


class Gumbel(Distribution):
    """Extreme values: the distribution function is `exp(-exp(-(x - loc) / scale))`.

    Parameters
    ----------
    loc : number or array-like, optional
        The mode.
    scale : number or array-like, optional
        Above 0.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.Gumbel(0.0, 1.0).log_cdf(nb.Tensor([0.0])))
    [-1.]
    """

    law = densities.GUMBEL
    loc = parameter("loc")
    scale = parameter("scale")

    def __init__(
        self, loc: Any = None, scale: Any = None, seed: int | None = None, dtype: Any = np.float32, name: str = "Gumbel"
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})


class HalfNormal(Distribution):
    """Numbers above `mean`, as far as those of a normal distribution are from its mean.

    Parameters
    ----------
    mean : number or array-like, optional
        The least number, which is not the mean of the distribution.
    sd : number or array-like, optional
        The standard deviation of the normal distribution, above 0.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.HalfNormal(0.0, 1.0).cdf(nb.Tensor([-1.0, 0.0])))
    [0. 0.]
    """

    law = densities.HALF_NORMAL

    def __init__(
        self,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: Any = np.float32,
        name: str = "HalfNormal",
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})


class Laplace(Distribution):
    """Numbers with density `exp(-|x - mean| / sd) / (2 * sd)`.

    Parameters
    ----------
    mean : number or array-like, optional
        The mean.
    sd : number or array-like, optional
        The scale, above 0; the standard deviation is this times the root of 2.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.Laplace(0.0, 0.5).prob(nb.Tensor([0.0])))
    [1.]
    """

    law = densities.LAPLACE

    def __init__(
        self, mean: Any = None, sd: Any = None, seed: int | None = None, dtype: Any = np.float32, name: str = "Laplace"
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})


class Logistic(Distribution):
    """Numbers whose distribution function is the sigmoid of `(x - loc) / scale`.

    Parameters
    ----------
    loc : number or array-like, optional
        The mean.
    scale : number or array-like, optional
        Above 0.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.Logistic(1.0, 2.0).cdf(nb.Tensor([1.0])))
    [0.5]
    """

    law = densities.LOGISTIC
    loc = parameter("loc")
    scale = parameter("scale")

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        seed: int | None = None,
        dtype: Any = np.float32,
        name: str = "Logistic",
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})


class LogNormal(Distribution):
    """Numbers whose logarithms are normal.

    Parameters
    ----------
    loc : number or array-like, optional
        The mean of the logarithm.
    scale : number or array-like, optional
        Its standard deviation, above 0.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.LogNormal(0.0, 1.0).cdf(nb.Tensor([-1.0, 1.0])))
    [0.  0.5]
    """

    law = densities.LOG_NORMAL
    loc = parameter("loc")
    scale = parameter("scale")

    def __init__(
        self, loc: Any = None, scale: Any = None, seed: int | None = 0, dtype: Any = np.float32, name: str = "LogNormal"
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})


class Normal(Distribution):
    """Normal numbers.

    Parameters
    ----------
    mean : number or array-like, optional
        The mean.
    sd : number or array-like, optional
        The standard deviation, above 0.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> normal = nb.nn.probability.distribution.Normal(1.0, 2.0)
    >>> print(normal.cdf(nb.Tensor([1.0])), normal("mean"), normal.mean(nb.Tensor(5.0)))
    [0.5] 1.0 5.0
    >>> print(nb.grad(lambda mean: normal.log_prob(nb.Tensor([3.0]), mean).sum())(nb.Tensor(1.0)))
    0.5
    """

    law = densities.NORMAL

    def __init__(
        self, mean: Any = None, sd: Any = None, seed: int | None = None, dtype: Any = np.float32, name: str = "Normal"
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})


class Poisson(Distribution):
    """Counts of rare events.

    Parameters
    ----------
    rate : number or array-like, optional
        The mean, above 0.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.Poisson([1.0]).log_prob(nb.Tensor([0.0, 1.0])))
    [-1. -1.]
    """

    law = densities.POISSON
    rate = parameter("rate")

    def __init__(
        self, rate: Any = None, seed: int | None = None, dtype: Any = np.float32, name: str = "Poisson"
    ) -> None:
        super().__init__(seed, dtype, name, {"rate": rate})


class StudentT(Distribution):
    """Student's distribution, moved by `mean` and stretched by `sd`.

    Parameters
    ----------
    df : number or array-like, optional
        The degrees of freedom, above 0.
    mean : number or array-like, optional
        The mode, and the mean if there is one.
    sd : number or array-like, optional
        The scale, above 0; not the standard deviation.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.StudentT(2.0, 3.0, 4.0).cdf(nb.Tensor([3.0])))
    [0.5]
    """

    law = densities.STUDENT_T
    df = parameter("df")

    def __init__(
        self,
        df: Any = None,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: Any = np.float32,
        name: str = "StudentT",
    ) -> None:
        super().__init__(seed, dtype, name, {"df": df, "mean": mean, "sd": sd})


class Uniform(Distribution):
    """Numbers between two bounds, all equally likely.

    Parameters
    ----------
    low, high : number or array-like, optional
        The bounds; `low` is less.
    seed, dtype, name
        As in `Distribution`, which says how quantities are asked for.

    Examples
    --------
    >>> import nbgrad as nb
    >>> D = nb.nn.probability.distribution
    >>> print(D.Uniform(0.0, 4.0).prob(nb.Tensor([-1.0, 1.0])))
    [0.   0.25]
    """

    law = densities.UNIFORM
    low = parameter("low")
    high = parameter("high")

    def __init__(
        self, low: Any = None, high: Any = None, seed: int | None = None, dtype: Any = np.float32, name: str = "Uniform"
    ) -> None:
        super().__init__(seed, dtype, name, {"low": low, "high": high})

    def _check_together(self) -> None:
        low, high = known(self.low), known(self.high)
        if low is not None and high is not None and not np.all(low < high):
            message = f"low of Uniform must be less than high, but they are {low} and {high}."
            raise ArgumentError(message)
