"""The table of distributions: for each, its parameters and its quantities as plain functions of NumPy and SciPy.

In: values and parameters, as Tensors of one float dtype. Out: Tensors. Used by distribution.py, whose classes have one
row each, and which derives the quantities that a row leaves out: `prob` from `log_prob`, `survival_function` from
`cdf`, `sd` from `var` and so on.

Draws are functions of uniform or normal numbers and of the parameters, so that they differentiate in these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy
from scipy import special as scipy_special

from ...graph.shapes import Shape
from ...ops.draws import Source, draw_bits, fraction, normal_node
from ...record.as_node import as_node, wrap

np: Any = numpy
special: Any = scipy_special
"""NumPy and SciPy, whose functions take Tensors, which their types do not know."""

EULER = 0.5772156649015329
LOG_2 = math.log(2.0)
LOG_ROOT_2_PI = 0.5 * math.log(2.0 * math.pi)

Quantity = Callable[..., Any]


@dataclass(frozen=True)
class Law:
    """One distribution.

    `log_prob` and `cdf` and their kin take the value and the parameters, `mean` and its kin the parameters, `kl_loss`
    those of the other distribution and then its own, `sample` a source of numbers, a shape and the parameters.
    """

    parameters: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    """Parameters that must be above 0."""
    probabilities: tuple[str, ...] = ()
    """Parameters that must lie between 0 and 1."""
    counts: bool = False
    """Whether values are integers, as which MindSpore draws them."""
    support: Quantity | None = None
    """The least and the largest possible value, of the parameters; absent if every number is possible."""
    rows: bool = False
    """Whether the last axis of the parameters belongs to one distribution."""
    quantities: dict[str, Quantity] = field(default_factory=dict)


def _law(
    parameters: str, positive: str = "", probabilities: str = "", counts: bool = False, **quantities: Quantity
) -> Law:
    support = quantities.pop("support", None)
    first, second, third = (tuple(text.split()) for text in (parameters, positive, probabilities))
    return Law(first, second, third, counts, support, quantities=quantities)


class Draws:
    """The random numbers that samples are made of: uniform and standard normal ones."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def uniform(self, shape: Shape, like: Any) -> Any:
        """Numbers above 0 and below 1, in the dtype of an array."""
        return wrap(fraction(draw_bits(self.source, shape)[0], as_node(like).dtype, inside=True))

    def normal(self, shape: Shape, like: Any) -> Any:
        """Standard normal numbers in the dtype of an array."""
        return wrap(normal_node(self.source, shape, as_node(like).dtype))

    def exactly(self, inverse: Quantity, shape: Shape, *parameters: Any) -> Any:
        """Samples by the inverse of a distribution function, computed in float64."""
        wide = [parameter.astype(np.float64) for parameter in parameters]
        return inverse(self.uniform(shape, wide[0]), *wide).astype(parameters[0].dtype)


# ----- Formulas that several rows share -----


def _located(standard: Quantity) -> Quantity:
    """A function of the standardised value, as one of value, location and scale."""
    return lambda x, loc, scale: standard((x - loc) / scale)


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, x * 0)


def _relative_entropy(p: Any, q: Any) -> Any:
    return special.xlogy(p, p / q)


def _binary_entropy(p: Any) -> Any:
    return special.entr(p) + special.entr(1.0 - p)


def _binary_divergence(q: Any, p: Any) -> Any:
    return _relative_entropy(p, q) + _relative_entropy(1.0 - p, 1.0 - q)


def _poisson_draw(draws: Draws, shape: Shape, rate: Any) -> Any:
    def inverse(u: Any, mean: Any) -> Any:
        above = np.ceil(special.pdtrik(u, mean))
        below = np.maximum(above - 1.0, 0.0)
        return np.where(special.pdtr(below, mean) >= u, below, above)

    return draws.exactly(inverse, shape, rate)


def _student_entropy(df: Any, mean: Any, sd: Any) -> Any:
    half = 0.5 * (df + 1.0)
    parts = half * (special.digamma(half) - special.digamma(0.5 * df)) + special.betaln(0.5 * df, 0.5)
    return parts + 0.5 * np.log(df) + np.log(sd)


def _student_log_prob(x: Any, df: Any, mean: Any, sd: Any) -> Any:
    z = (x - mean) / sd
    return -0.5 * (df + 1.0) * np.log1p(z * z / df) - 0.5 * np.log(df) - special.betaln(0.5 * df, 0.5) - np.log(sd)


def _beta_divergence(a1: Any, a0: Any, b1: Any, b0: Any) -> Any:
    """Of the distribution (b1, b0) from (a1, a0)."""
    slope = (b1 - a1) * special.digamma(b1) + (b0 - a0) * special.digamma(b0)
    return special.betaln(a1, a0) - special.betaln(b1, b0) + slope + (a1 + a0 - b1 - b0) * special.digamma(b1 + b0)


def _gumbel_divergence(loc_b: Any, scale_b: Any, loc: Any, scale: Any) -> Any:
    ratio, step = scale / scale_b, (loc_b - loc) / scale_b
    return EULER * (ratio - 1.0) - np.log(ratio) - step + np.expm1(step + special.gammaln(ratio + 1.0))


def _laplace_divergence(mean_b: Any, sd_b: Any, mean: Any, sd: Any) -> Any:
    gap = np.abs(mean - mean_b)
    return np.log(sd_b / sd) + (gap + sd * np.exp(-gap / sd)) / sd_b - 1.0


def _normal_divergence(mean_b: Any, sd_b: Any, mean: Any, sd: Any) -> Any:
    step = np.log(sd) - np.log(sd_b)
    return 0.5 * ((mean - mean_b) / sd_b) ** 2 + 0.5 * np.expm1(2.0 * step) - step


def _uniform_divergence(low_b: Any, high_b: Any, low: Any, high: Any) -> Any:
    inside = (low_b <= low) & (high <= high_b)
    return np.where(inside, np.log((high_b - low_b) / (high - low)), math.inf)


# ----- Classes, whose parameters are rows -----


def _class_of(x: Any, probs: Any, table: Any, outside: float) -> Any:
    """For each value, the entry of its class in a table of the shape of the probabilities; `outside` below class 0."""
    index = np.trunc(x)[..., None]
    count = probs.shape[-1]
    shape = np.broadcast_shapes(index.shape[:-1], probs.shape[:-1])
    place = np.broadcast_to(np.clip(index, 0, count - 1).astype(np.int64), (*shape, 1))
    found = np.take_along_axis(np.broadcast_to(table, (*shape, count)), place, -1)
    return np.where(index >= 0, found, outside)[..., 0], index[..., 0] >= count


def _categorical_log_prob(x: Any, probs: Any) -> Any:
    found, above = _class_of(x, probs, np.log(probs), -math.inf)
    return np.where(above, -math.inf, found)


def _categorical_cdf(x: Any, probs: Any) -> Any:
    return _class_of(x, probs, np.cumsum(probs, -1), 0.0)[0]


def _power_mean(probs: Any, power: int) -> Any:
    return np.sum(np.arange(probs.shape[-1]).astype(probs.dtype) ** power * probs, -1, keepdims=True)


def _categorical_draw(draws: Draws, shape: Shape, probs: Any) -> Any:
    sums = np.cumsum(probs, -1)[..., :-1]
    return np.sum(draws.uniform(shape, probs)[..., None] >= sums, -1)


# ----- The rows -----

BERNOULLI = _law(
    "probs",
    probabilities="probs",
    counts=True,
    log_prob=lambda x, p: special.xlogy(x, p) + special.xlog1py(1.0 - x, -p),
    cdf=lambda x, p: np.where(x < 0, 0.0, np.where(x < 1, 1.0 - p, 1.0)),
    mean=lambda p: p,
    var=lambda p: p * (1.0 - p),
    mode=lambda p: (p > 0.5).astype(p.dtype),
    entropy=_binary_entropy,
    kl_loss=_binary_divergence,
    sample=lambda draws, shape, p: draws.uniform(shape, p) < p,
)
BETA = _law(
    "concentration1 concentration0",
    positive="concentration1 concentration0",
    support=lambda a, b: (0.0, 1.0),
    log_prob=lambda x, a, b: special.xlogy(a - 1.0, x) + special.xlog1py(b - 1.0, -x) - special.betaln(a, b),
    cdf=lambda x, a, b: special.betainc(a, b, x),
    survival_function=lambda x, a, b: special.betaincc(a, b, x),
    mean=lambda a, b: a / (a + b),
    var=lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1.0)),
    mode=lambda a, b: np.where((a > 1) & (b > 1), (a - 1.0) / (a + b - 2.0), math.nan),
    entropy=lambda a, b: (
        special.betaln(a, b)
        - (a - 1.0) * special.digamma(a)
        - (b - 1.0) * special.digamma(b)
        + (a + b - 2.0) * special.digamma(a + b)
    ),
    kl_loss=_beta_divergence,
    sample=lambda draws, shape, a, b: draws.exactly(lambda u, c, d: special.betaincinv(c, d, u), shape, a, b),
)
CATEGORICAL = Law(
    ("probs",),
    counts=True,
    rows=True,
    quantities={
        "log_prob": _categorical_log_prob,
        "cdf": _categorical_cdf,
        "mean": lambda p: _power_mean(p, 1),
        "var": lambda p: _power_mean(p, 2) - _power_mean(p, 1) ** 2,
        "mode": lambda p: np.argmax(p, -1),
        "entropy": lambda p: np.sum(special.entr(p), -1),
        "kl_loss": lambda q, p: np.sum(_relative_entropy(p, q), -1),
        "sample": _categorical_draw,
    },
)
CAUCHY = _law(
    "loc scale",
    positive="scale",
    log_prob=lambda x, loc, scale: -np.log1p(((x - loc) / scale) ** 2) - np.log(math.pi * scale),
    cdf=_located(lambda z: np.arctan2(1.0 + 0 * z, -z) / math.pi),
    survival_function=_located(lambda z: np.arctan2(1.0 + 0 * z, z) / math.pi),
    mode=lambda loc, scale: loc,
    entropy=lambda loc, scale: np.log(4.0 * math.pi * scale),
    kl_loss=lambda loc_b, scale_b, loc, scale: np.log(
        ((scale + scale_b) ** 2 + (loc - loc_b) ** 2) / (4.0 * scale * scale_b)
    ),
    sample=lambda draws, shape, loc, scale: loc + scale * np.tan(math.pi * (draws.uniform(shape, loc) - 0.5)),
)
EXPONENTIAL = _law(
    "rate",
    positive="rate",
    support=lambda rate: (0.0, math.inf),
    log_prob=lambda x, rate: np.log(rate) - rate * x,
    cdf=lambda x, rate: -np.expm1(-rate * x),
    log_survival=lambda x, rate: -rate * x,
    mean=lambda rate: 1.0 / rate,
    sd=lambda rate: 1.0 / rate,
    mode=lambda rate: rate * 0,
    entropy=lambda rate: 1.0 - np.log(rate),
    kl_loss=lambda rate_b, rate: np.log(rate / rate_b) + rate_b / rate - 1.0,
    sample=lambda draws, shape, rate: -np.log(draws.uniform(shape, rate)) / rate,
)
GAMMA = _law(
    "concentration rate",
    positive="concentration rate",
    support=lambda a, rate: (0.0, math.inf),
    log_prob=lambda x, a, rate: special.xlogy(a - 1.0, x) - rate * x + a * np.log(rate) - special.gammaln(a),
    cdf=lambda x, a, rate: special.gammainc(a, rate * x),
    survival_function=lambda x, a, rate: special.gammaincc(a, rate * x),
    mean=lambda a, rate: a / rate,
    var=lambda a, rate: a / rate**2,
    mode=lambda a, rate: np.where(a > 1, (a - 1.0) / rate, math.nan),
    entropy=lambda a, rate: a - np.log(rate) + special.gammaln(a) + (1.0 - a) * special.digamma(a),
    kl_loss=lambda a_b, rate_b, a, rate: (
        (a - a_b) * special.digamma(a)
        + special.gammaln(a_b)
        - special.gammaln(a)
        + a_b * np.log(rate / rate_b)
        + a * (rate_b / rate - 1.0)
    ),
    sample=lambda draws, shape, a, rate: draws.exactly(lambda u, b: special.gammaincinv(b, u), shape, a) / rate,
)
GEOMETRIC = _law(
    "probs",
    probabilities="probs",
    counts=True,
    support=lambda p: (0.0, math.inf),
    log_prob=lambda x, p: np.floor(x) * np.log1p(-p) + np.log(p),
    cdf=lambda x, p: -np.expm1((np.floor(x) + 1.0) * np.log1p(-p)),
    log_survival=lambda x, p: (np.floor(x) + 1.0) * np.log1p(-p),
    mean=lambda p: (1.0 - p) / p,
    var=lambda p: (1.0 - p) / p**2,
    mode=lambda p: p * 0,
    entropy=lambda p: _binary_entropy(p) / p,
    kl_loss=lambda q, p: _binary_divergence(q, p) / p,
    sample=lambda draws, shape, p: np.floor(np.log(draws.uniform(shape, p)) / np.log1p(-p)),
)
GUMBEL = _law(
    "loc scale",
    positive="scale",
    log_prob=lambda x, loc, scale: -((x - loc) / scale + np.exp(-(x - loc) / scale)) - np.log(scale),
    log_cdf=_located(lambda z: -np.exp(-z)),
    survival_function=_located(lambda z: -np.expm1(-np.exp(-z))),
    mean=lambda loc, scale: loc + EULER * scale,
    sd=lambda loc, scale: scale * (math.pi / math.sqrt(6.0)),
    mode=lambda loc, scale: loc,
    entropy=lambda loc, scale: np.log(scale) + (1.0 + EULER),
    kl_loss=_gumbel_divergence,
    sample=lambda draws, shape, loc, scale: loc - scale * np.log(-np.log(draws.uniform(shape, loc))),
)
HALF_NORMAL = _law(
    "mean sd",
    positive="sd",
    support=lambda mean, sd: (mean, math.inf),
    log_prob=lambda x, mean, sd: (LOG_2 - LOG_ROOT_2_PI) - np.log(sd) - 0.5 * ((x - mean) / sd) ** 2,
    cdf=_located(lambda z: special.erf(z * math.sqrt(0.5))),
    log_survival=_located(lambda z: LOG_2 + special.log_ndtr(-z)),
    mean=lambda mean, sd: mean + sd * math.sqrt(2.0 / math.pi),
    var=lambda mean, sd: sd**2 * (1.0 - 2.0 / math.pi),
    mode=lambda mean, sd: mean,
    entropy=lambda mean, sd: np.log(sd) + 0.5 * (1.0 + math.log(0.5 * math.pi)),
    sample=lambda draws, shape, mean, sd: mean + sd * np.abs(draws.normal(shape, mean)),
)
LAPLACE = _law(
    "mean sd",
    positive="sd",
    log_prob=lambda x, mean, sd: -np.abs((x - mean) / sd) - np.log(2.0 * sd),
    cdf=_located(lambda z: np.where(z < 0, 0.5 * np.exp(-np.abs(z)), 1.0 - 0.5 * np.exp(-np.abs(z)))),
    survival_function=_located(lambda z: np.where(z > 0, 0.5 * np.exp(-np.abs(z)), 1.0 - 0.5 * np.exp(-np.abs(z)))),
    log_cdf=_located(lambda z: np.where(z < 0, z - LOG_2, np.log1p(-0.5 * np.exp(-np.abs(z))))),
    log_survival=_located(lambda z: np.where(z > 0, -z - LOG_2, np.log1p(-0.5 * np.exp(-np.abs(z))))),
    mean=lambda mean, sd: mean,
    var=lambda mean, sd: 2.0 * sd**2,
    mode=lambda mean, sd: mean,
    entropy=lambda mean, sd: np.log(sd) + (1.0 + LOG_2),
    kl_loss=_laplace_divergence,
    sample=lambda draws, shape, mean, sd: mean + sd * np.log(draws.uniform(shape, mean) / draws.uniform(shape, mean)),
)
LOG_NORMAL = _law(
    "loc scale",
    positive="scale",
    support=lambda loc, scale: (float(np.finfo(loc.dtype).tiny), math.inf),
    log_prob=lambda x, loc, scale: -0.5 * ((np.log(x) - loc) / scale) ** 2 - LOG_ROOT_2_PI - np.log(scale) - np.log(x),
    cdf=lambda x, loc, scale: special.ndtr((np.log(x) - loc) / scale),
    log_cdf=lambda x, loc, scale: special.log_ndtr((np.log(x) - loc) / scale),
    survival_function=lambda x, loc, scale: special.ndtr((loc - np.log(x)) / scale),
    log_survival=lambda x, loc, scale: special.log_ndtr((loc - np.log(x)) / scale),
    mean=lambda loc, scale: np.exp(loc + 0.5 * scale**2),
    var=lambda loc, scale: np.expm1(scale**2) * np.exp(2.0 * loc + scale**2),
    mode=lambda loc, scale: np.exp(loc - scale**2),
    entropy=lambda loc, scale: loc + np.log(scale) + (0.5 + LOG_ROOT_2_PI),
    kl_loss=_normal_divergence,
    sample=lambda draws, shape, loc, scale: np.exp(loc + scale * draws.normal(shape, loc)),
)
LOGISTIC = _law(
    "loc scale",
    positive="scale",
    log_prob=lambda x, loc, scale: -_softplus((x - loc) / scale) - _softplus((loc - x) / scale) - np.log(scale),
    cdf=_located(special.expit),
    log_cdf=_located(lambda z: -_softplus(-z)),
    survival_function=_located(lambda z: special.expit(-z)),
    log_survival=_located(lambda z: -_softplus(z)),
    mean=lambda loc, scale: loc,
    sd=lambda loc, scale: scale * (math.pi / math.sqrt(3.0)),
    mode=lambda loc, scale: loc,
    entropy=lambda loc, scale: np.log(scale) + 2.0,
    sample=lambda draws, shape, loc, scale: loc + scale * special.logit(draws.uniform(shape, loc)),
)
NORMAL = _law(
    "mean sd",
    positive="sd",
    log_prob=lambda x, mean, sd: -0.5 * ((x - mean) / sd) ** 2 - LOG_ROOT_2_PI - np.log(sd),
    cdf=_located(special.ndtr),
    log_cdf=_located(special.log_ndtr),
    survival_function=_located(lambda z: special.ndtr(-z)),
    log_survival=_located(lambda z: special.log_ndtr(-z)),
    mean=lambda mean, sd: mean,
    sd=lambda mean, sd: sd,
    mode=lambda mean, sd: mean,
    entropy=lambda mean, sd: np.log(sd) + (0.5 + LOG_ROOT_2_PI),
    kl_loss=_normal_divergence,
    sample=lambda draws, shape, mean, sd: mean + sd * draws.normal(shape, mean),
)
POISSON = _law(
    "rate",
    positive="rate",
    support=lambda rate: (0.0, math.inf),
    log_prob=lambda x, rate: special.xlogy(x, rate) - rate - special.gammaln(x + 1.0),
    cdf=lambda x, rate: special.gammaincc(np.floor(x) + 1.0, rate),
    survival_function=lambda x, rate: special.gammainc(np.floor(x) + 1.0, rate),
    mean=lambda rate: rate,
    var=lambda rate: rate,
    mode=np.floor,
    kl_loss=lambda rate_b, rate: _relative_entropy(rate, rate_b) - rate + rate_b,
    sample=_poisson_draw,
)
STUDENT_T = _law(
    "df mean sd",
    positive="df sd",
    log_prob=_student_log_prob,
    cdf=lambda x, df, mean, sd: special.stdtr(df, (x - mean) / sd),
    survival_function=lambda x, df, mean, sd: special.stdtr(df, (mean - x) / sd),
    mean=lambda df, mean, sd: np.where(df > 1, mean, math.nan),
    var=lambda df, mean, sd: np.where(
        df > 2, sd**2 * (df / np.where(df > 2, df - 2.0, 1.0)), np.where(df > 1, math.inf, math.nan)
    ),
    mode=lambda df, mean, sd: mean,
    entropy=_student_entropy,
    sample=lambda draws, shape, df, mean, sd: (
        mean + sd * draws.exactly(lambda u, freedom: special.stdtrit(freedom, u), shape, df)
    ),
)
UNIFORM = _law(
    "low high",
    support=lambda low, high: (low, high),
    log_prob=lambda x, low, high: -np.log(high - low),
    cdf=lambda x, low, high: (x - low) / (high - low),
    survival_function=lambda x, low, high: (high - x) / (high - low),
    mean=lambda low, high: 0.5 * (low + high),
    var=lambda low, high: (high - low) ** 2 / 12.0,
    entropy=lambda low, high: np.log(high - low),
    kl_loss=_uniform_divergence,
    sample=lambda draws, shape, low, high: low + (high - low) * draws.uniform(shape, low),
)
