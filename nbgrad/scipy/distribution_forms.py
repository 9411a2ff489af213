"""Densities and distribution functions of the standard forms of SciPy's distributions, as functions of all parameters.

In: values inside of the support, and the shape parameters in SciPy's order. Out: Tensors. `CONTINUOUS` and `DISCRETE`
have a row for each distribution. Called by distributions.py, which adds location, scale, support and inverses. Formulas
are those of SciPy's documentation, and of Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from .. import numpy as np
from ..functions.elementwise.scipy_functions import apply
from ..functions.elementwise.scipy_series import (
    noncentral_chi_density,
    noncentral_fisher_density,
    noncentral_student_density,
)
from ..functions.elementwise.ufuncs import call
from ..record.as_node import as_node, wrap

Formula = Callable[..., Any]
_NEAR, _TERMS = 0.01, 12
"""Where log(1 + t) / t is a power series, and the terms that are exact to rounding there, with some derivatives."""
_ROOT = math.log(2 * math.pi) / 2


class Form(NamedTuple):
    """One distribution: logarithm of the density, distribution function, survival function, and support.

    `low` and `high` are numbers, or functions of the shape parameters; `inside` is a point of the support; `needs`
    tells whether parameters are allowed, if not all have to be positive; the density of an `open` one is 0 at `low`.
    """

    logpdf: Formula
    cdf: Formula | None = None
    sf: Formula | None = None
    low: Any = -math.inf
    high: Any = math.inf
    inside: Any = 0.0
    needs: Formula | None = None
    open: bool = False


def _ufunc(name: str) -> Formula:
    """A ufunc of `scipy.special`, which is imported at the first call."""

    def function(*operands: Any) -> Any:
        import scipy.special

        return call(getattr(scipy.special, name), *map(np.asarray, operands))

    return function


(
    gammaln, betaln, ndtr, log_ndtr, betainc, betaincc, gammainc, gammaincc, stdtr, xlogy, xlog1py, i0e, owens_t, fdtr,
    fdtrc, pdtr, pdtrc, nctdtr, ncfdtr, chndtr,
) = map(
    _ufunc,
    "gammaln betaln ndtr log_ndtr betainc betaincc gammainc gammaincc stdtr xlogy xlog1py i0e owens_t fdtr fdtrc pdtr "
    "pdtrc nctdtr ncfdtr chndtr".split(),
)  # fmt: skip


def _any(*shapes: Any) -> Any:
    return True


def _log_i0e(x: Any) -> Any:
    """log(I0(x)) - x, where x is not negative: from above also at 0, where i0e has a kink."""
    return np.log(i0e(x)) + (np.abs(x) - x)


def _normal(x: Any) -> Any:
    return -x * x / 2 - _ROOT


def _f(x: Any, n: Any, d: Any) -> Any:
    size = n / 2 * np.log(n) + d / 2 * np.log(d) - betaln(n / 2, d / 2)
    return size + xlogy(n / 2 - 1, x) - (n + d) / 2 * np.log(d + n * x)


def _student(x: Any, n: Any) -> Any:
    return gammaln((n + 1) / 2) - gammaln(n / 2) - np.log(n * math.pi) / 2 - (n + 1) / 2 * np.log1p(x * x / n)


def _of_power(x: Any, c: Any) -> Any:
    """(1 + c x)**(-1/c), and its limit exp(-x): minus its logarithm."""
    t = c * x
    near = np.abs(t) < _NEAR
    small, safe = np.where(near, t, 0.0), np.where(near, 1.0, t)
    series = sum(((-1.0) ** k / (k + 1) * small**k for k in range(1, _TERMS)), 1.0)
    return x * np.where(near, series, np.log1p(safe) / safe)


def _between(a: Any, b: Any) -> Any:
    """The logarithm of the normal probability of an interval, on the side where nothing is lost."""
    turned = a > 0
    low, high = np.where(turned, -b, a), np.where(turned, -a, b)
    return log_ndtr(high) + np.log1p(-np.exp(log_ndtr(low) - log_ndtr(high)))


def _invgauss_cdf(x: Any, mu: Any, sign: float) -> Any:
    root = 1 / np.sqrt(x)
    return ndtr(sign * root * (x / mu - 1)) + sign * np.exp(2 / mu + log_ndtr(-root * (x / mu + 1)))


def _two_sided(x: Any) -> Any:
    """Laplace's distribution function, whose sides meet with one slope."""
    up = x > 0
    return np.where(up, 1 - np.exp(-np.where(up, x, 0.0)) / 2, np.exp(np.where(up, 0.0, x)) / 2)


def _johnson(x: Any, a: Any, b: Any) -> Any:
    return a + b * np.arcsinh(x)


def _triangular(x: Any, c: Any) -> Any:
    left = np.where(c > 0, c, 1.0)
    right = np.where(c < 1, 1 - c, 1.0)
    return np.where((x < c) | (c == 1), 2 * x / left, 2 * (1 - x) / right)


def _triangular_cdf(x: Any, c: Any) -> Any:
    left = np.where(c > 0, c, 1.0)
    right = np.where(c < 1, 1 - c, 1.0)
    return np.where((x < c) | (c == 1), x * x / left, 1 - (1 - x) ** 2 / right)


def _of_nodes(function: Formula) -> Formula:
    """A function of nodes, of Tensors and numbers."""
    return lambda *operands: wrap(function(*[as_node(np.asarray(v) * 1.0) for v in operands]))


nct_pdf, ncf_pdf = _of_nodes(noncentral_student_density), _of_nodes(noncentral_fisher_density)
ncx2_pdf = _of_nodes(noncentral_chi_density)
zeta = _of_nodes(partial(apply, "zeta"))


_HALF = math.log(2 / math.pi) / 2
CONTINUOUS: dict[str, Form] = {
    "norm": Form(_normal, ndtr, lambda x: ndtr(-x)),
    "uniform": Form(lambda x: x * 0, lambda x: x, lambda x: 1 - x, 0.0, 1.0, 0.5),
    "expon": Form(lambda x: -x, lambda x: -np.expm1(-x), lambda x: np.exp(-x), 0.0, inside=1.0),
    "gamma": Form(lambda x, a: xlogy(a - 1, x) - x - gammaln(a), lambda x, a: gammainc(a, x),
                  lambda x, a: gammaincc(a, x), 0.0, inside=1.0),
    "chi2": Form(lambda x, n: xlogy(n / 2 - 1, x) - x / 2 - gammaln(n / 2) - n * math.log(2) / 2,
                 lambda x, n: gammainc(n / 2, x / 2), lambda x, n: gammaincc(n / 2, x / 2), 0.0, inside=1.0),
    "chi": Form(lambda x, n: math.log(2) - math.log(2) * n / 2 - gammaln(n / 2) + xlogy(n - 1, x) - x * x / 2,
                lambda x, n: gammainc(n / 2, x * x / 2), lambda x, n: gammaincc(n / 2, x * x / 2), 0.0, inside=1.0),
    "beta": Form(lambda x, a, b: xlog1py(b - 1, -x) + xlogy(a - 1, x) - betaln(a, b),
                 lambda x, a, b: betainc(a, b, x), lambda x, a, b: betaincc(a, b, x), 0.0, 1.0, 0.5),
    "t": Form(_student, lambda x, n: stdtr(n, x), lambda x, n: stdtr(n, -x)),
    "f": Form(_f, lambda x, n, d: fdtr(n, d, x), lambda x, n, d: fdtrc(n, d, x), 0.0, inside=1.0),
    "lognorm": Form(lambda x, s: _normal(np.log(x) / s) - np.log(s * x), lambda x, s: ndtr(np.log(x) / s),
                    lambda x, s: ndtr(-np.log(x) / s), 0.0, inside=1.0, open=True),
    "cauchy": Form(lambda x: -math.log(math.pi) - np.log1p(x * x), lambda x: np.arctan2(1.0, -x) / math.pi,
                   lambda x: np.arctan2(1.0, x) / math.pi),
    "laplace": Form(lambda x: -np.abs(x) - math.log(2), lambda x: _two_sided(x), lambda x: _two_sided(-x)),
    "logistic": Form(lambda x: -x - 2 * np.logaddexp(0.0, -x), lambda x: np.expit(x),
                     lambda x: np.expit(-x)),
    "gumbel_r": Form(lambda x: -x - np.exp(-x), lambda x: np.exp(-np.exp(-x)), lambda x: -np.expm1(-np.exp(-x))),
    "gumbel_l": Form(lambda x: x - np.exp(x), lambda x: -np.expm1(-np.exp(x)), lambda x: np.exp(-np.exp(x))),
    "weibull_min": Form(lambda x, c: np.log(c) + xlogy(c - 1, x) - x**c, lambda x, c: -np.expm1(-(x**c)),
                        lambda x, c: np.exp(-(x**c)), 0.0, inside=1.0),
    "weibull_max": Form(lambda x, c: np.log(c) + xlogy(c - 1, -x) - (-x) ** c, lambda x, c: np.exp(-((-x) ** c)),
                        lambda x, c: -np.expm1(-((-x) ** c)), -math.inf, 0.0, -1.0),
    "pareto": Form(lambda x, b: np.log(b) - (b + 1) * np.log(x), lambda x, b: -np.expm1(-b * np.log(x)),
                   lambda x, b: x**-b, 1.0, inside=2.0),
    "lomax": Form(lambda x, c: np.log(c) - (c + 1) * np.log1p(x), lambda x, c: -np.expm1(-c * np.log1p(x)),
                  lambda x, c: np.exp(-c * np.log1p(x)), 0.0, inside=1.0),
    "fisk": Form(lambda x, c: np.log(c) + (c - 1) * np.log(x) - 2 * np.log1p(x**c),
                 lambda x, c: np.expit(c * np.log(x)), lambda x, c: np.expit(-c * np.log(x)), 0.0, inside=1.0),
    "rayleigh": Form(lambda x: np.log(x) - x * x / 2, lambda x: -np.expm1(-x * x / 2), lambda x: np.exp(-x * x / 2),
                     0.0, inside=1.0),
    "maxwell": Form(lambda x: _HALF + 2 * np.log(x) - x * x / 2, lambda x: gammainc(1.5, x * x / 2),
                    lambda x: gammaincc(1.5, x * x / 2), 0.0, inside=1.0),
    "invgamma": Form(lambda x, a: -(a + 1) * np.log(x) - gammaln(a) - 1 / x, lambda x, a: gammaincc(a, 1 / x),
                     lambda x, a: gammainc(a, 1 / x), 0.0, inside=1.0, open=True),
    "halfnorm": Form(lambda x: _HALF - x * x / 2, lambda x: np.erf(x / math.sqrt(2)), lambda x: 2 * ndtr(-x), 0.0,
                     inside=1.0),
    "halfcauchy": Form(lambda x: math.log(2 / math.pi) - np.log1p(x * x), lambda x: 2 / math.pi * np.arctan(x),
                       lambda x: 2 / math.pi * np.arctan2(1.0, x), 0.0, inside=1.0),
    "halflogistic": Form(lambda x: math.log(2) - x - 2 * np.log1p(np.exp(-x)), lambda x: np.tanh(x / 2),
                         lambda x: 2 * np.expit(-x), 0.0, inside=1.0),
    "triang": Form(lambda x, c: np.log(_triangular(x, c)), _triangular_cdf, lambda x, c: 1 - _triangular_cdf(x, c), 0.0,
                   1.0, 0.5, lambda c: (c >= 0) & (c <= 1)),
    "genpareto": Form(lambda x, c: -_of_power(x, c) * (c + 1), lambda x, c: -np.expm1(-_of_power(x, c)),
                      lambda x, c: np.exp(-_of_power(x, c)), 0.0,
                      lambda c: np.where(c < 0, -1 / np.where(c < 0, c, -1.0), math.inf),
                      lambda c: np.where(c < 0, -0.5 / np.where(c < 0, c, -1.0), 1.0), _any),
    "genextreme": Form(lambda x, c: -np.exp(-_of_power(x, -c)) - (1 - c) * _of_power(x, -c),
                       lambda x, c: np.exp(-np.exp(-_of_power(x, -c))),
                       lambda x, c: -np.expm1(-np.exp(-_of_power(x, -c))),
                       lambda c: np.where(c < 0, 1 / np.where(c < 0, c, -1.0), -math.inf),
                       lambda c: np.where(c > 0, 1 / np.where(c > 0, c, 1.0), math.inf), 0.0, _any),
    "loguniform": Form(lambda x, a, b: -np.log(x) - np.log(np.log(b) - np.log(a)),
                       lambda x, a, b: (np.log(x) - np.log(a)) / (np.log(b) - np.log(a)),
                       lambda x, a, b: (np.log(b) - np.log(x)) / (np.log(b) - np.log(a)),
                       lambda a, b: a, lambda a, b: b, lambda a, b: (a + b) / 2, lambda a, b: (a > 0) & (b > a)),
    "truncnorm": Form(lambda x, a, b: _normal(x) - _between(a, b),
                      lambda x, a, b: np.exp(_between(a, x) - _between(a, b)),
                      lambda x, a, b: np.exp(_between(x, b) - _between(a, b)),
                      lambda a, b: a, lambda a, b: b,
                      lambda a, b: np.clip((np.maximum(a, -9e9) + np.minimum(b, 9e9)) / 2, a, b), lambda a, b: a < b),
    "truncexpon": Form(lambda x, b: -x - np.log(-np.expm1(-b)), lambda x, b: np.expm1(-x) / np.expm1(-b),
                       lambda x, b: (np.exp(-b) - np.exp(-x)) / np.expm1(-b), 0.0, lambda b: b, lambda b: b / 2),
    "powerlaw": Form(lambda x, a: np.log(a) + xlogy(a - 1, x), lambda x, a: x**a, lambda x, a: -np.expm1(a * np.log(x)),
                     0.0, 1.0, 0.5),
    "skewnorm": Form(lambda x, a: _normal(x) + math.log(2) + log_ndtr(a * x), lambda x, a: ndtr(x) - 2 * owens_t(x, a),
                     lambda x, a: ndtr(-x) + 2 * owens_t(x, a), needs=_any),
    "invgauss": Form(lambda x, mu: -_ROOT - 1.5 * np.log(x) - ((x - mu) / mu) ** 2 / (2 * x),
                     lambda x, mu: _invgauss_cdf(x, mu, 1.0), lambda x, mu: _invgauss_cdf(x, mu, -1.0), 0.0, inside=1.0,
                     open=True),
    "wald": Form(lambda x: -_ROOT - 1.5 * np.log(x) - (x - 1) ** 2 / (2 * x), lambda x: _invgauss_cdf(x, 1.0, 1.0),
                 lambda x: _invgauss_cdf(x, 1.0, -1.0), 0.0, inside=1.0, open=True),
    "nakagami": Form(lambda x, n: math.log(2) + xlogy(n, n) - gammaln(n) + xlogy(2 * n - 1, x) - n * x * x,
                     lambda x, n: gammainc(n, n * x * x), lambda x, n: gammaincc(n, n * x * x), 0.0, inside=1.0),
    "gennorm": Form(lambda x, b: np.log(b / 2) - gammaln(1 / b) - np.abs(x) ** b,
                    lambda x, b: 0.5 + np.sign(x) * gammainc(1 / b, np.abs(x) ** b) / 2,
                    lambda x, b: 0.5 - np.sign(x) * gammainc(1 / b, np.abs(x) ** b) / 2),
    "johnsonsu": Form(lambda x, a, b: _normal(_johnson(x, a, b)) + np.log(b) - np.log1p(x * x) / 2,
                      lambda x, a, b: ndtr(_johnson(x, a, b)), lambda x, a, b: ndtr(-_johnson(x, a, b)),
                      needs=lambda a, b: b > 0),
    "loggamma": Form(lambda x, c: c * x - np.exp(x) - gammaln(c), lambda x, c: gammainc(c, np.exp(x)),
                     lambda x, c: gammaincc(c, np.exp(x))),
    "hypsecant": Form(lambda x: -math.log(math.pi) - np.logaddexp(x, -x) + math.log(2),
                      lambda x: 2 / math.pi * np.arctan(np.exp(x)), lambda x: 2 / math.pi * np.arctan(np.exp(-x))),
    "arcsine": Form(lambda x: -math.log(math.pi) - np.log(x * (1 - x)) / 2,
                    lambda x: 2 / math.pi * np.arcsin(np.sqrt(x)), lambda x: 2 / math.pi * np.arccos(np.sqrt(x)), 0.0,
                    1.0, 0.5),
    "levy": Form(lambda x: -_ROOT - 1.5 * np.log(x) - 1 / (2 * x), lambda x: np.erfc(np.sqrt(0.5 / x)),
                 lambda x: np.erf(np.sqrt(0.5 / x)), 0.0, inside=1.0, open=True),
    "moyal": Form(lambda x: -(x + np.exp(-x)) / 2 - _ROOT, lambda x: np.erfc(np.exp(-x / 2) / math.sqrt(2)),
                  lambda x: np.erf(np.exp(-x / 2) / math.sqrt(2))),
    "gompertz": Form(lambda x, c: np.log(c) + x - c * np.expm1(x), lambda x, c: -np.expm1(-c * np.expm1(x)),
                     lambda x, c: np.exp(-c * np.expm1(x)), 0.0, inside=1.0),
    "vonmises": Form(lambda x, k: k * (np.cos(x) - 1) - math.log(2 * math.pi) - _log_i0e(k), inside=0.0,
                     needs=lambda k: k >= 0),
    "rice": Form(lambda x, b: np.log(x) - (x - b) ** 2 / 2 + _log_i0e(x * b), None, None, 0.0, inside=1.0,
                 needs=lambda b: b >= 0),
    "exponnorm": Form(lambda x, k: 1 / (2 * k * k) - x / k - np.log(k) + log_ndtr(x - 1 / k)),
    "burr12": Form(lambda x, c, d: np.log(c * d) + xlogy(c - 1, x) - (d + 1) * np.log1p(x**c),
                   lambda x, c, d: -np.expm1(-d * np.log1p(x**c)), lambda x, c, d: np.exp(-d * np.log1p(x**c)), 0.0,
                   inside=1.0),
    "ncx2": Form(lambda x, n, c: np.log(ncx2_pdf(x, n, c)), lambda x, n, c: chndtr(x, n, c),
                 lambda x, n, c: 1 - chndtr(x, n, c), 0.0, inside=1.0, needs=lambda n, c: (n > 0) & (c >= 0)),
    "nct": Form(lambda x, n, c: np.log(nct_pdf(x, n, c)), lambda x, n, c: nctdtr(n, c, x),
                lambda x, n, c: nctdtr(n, -c, -x), needs=lambda n, c: (n > 0) & np.isfinite(c)),
    "ncf": Form(lambda x, n, d, c: np.log(ncf_pdf(x, n, d, c)), lambda x, n, d, c: ncfdtr(n, d, c, x),
                lambda x, n, d, c: 1 - ncfdtr(n, d, c, x), 0.0, inside=1.0,
                needs=lambda n, d, c: (n > 0) & (d > 0) & (c >= 0)),
}  # fmt: skip
"""By SciPy's name."""
LOGARITHMS: dict[str, dict[str, Formula]] = {
    "norm": {"logcdf": lambda x: log_ndtr(x), "logsf": lambda x: log_ndtr(-x)},
    "lognorm": {"logcdf": lambda x, s: log_ndtr(np.log(x) / s), "logsf": lambda x, s: log_ndtr(-np.log(x) / s)},
    "halfnorm": {"logsf": lambda x: math.log(2) + log_ndtr(-x)},
    "logistic": {"logcdf": lambda x: -np.logaddexp(0.0, -x), "logsf": lambda x: -np.logaddexp(0.0, x)},
    "gumbel_r": {"logcdf": lambda x: -np.exp(-x)},
    "gumbel_l": {"logsf": lambda x: -np.exp(x)},
    "expon": {"logsf": lambda x: -x},
    "rayleigh": {"logsf": lambda x: -x * x / 2},
    "weibull_min": {"logsf": lambda x, c: -(x**c)},
    "weibull_max": {"logcdf": lambda x, c: -((-x) ** c)},
    "gompertz": {"logsf": lambda x, c: -c * np.expm1(x)},
    "pareto": {"logsf": lambda x, b: -b * np.log(x)},
    "lomax": {"logsf": lambda x, c: -c * np.log1p(x)},
    "genextreme": {"logcdf": lambda x, c: -np.exp(-_of_power(x, -c))},
}
"""Logarithms of distribution functions that do not underflow, inside of the support."""
CONTINUOUS["erlang"] = CONTINUOUS["gamma"]
CONTINUOUS["reciprocal"] = CONTINUOUS["loguniform"]


def _counted(n: Any, k: Any) -> Any:
    """The logarithm of the number of ways to choose k of n."""
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


DISCRETE: dict[str, Form] = {
    "poisson": Form(lambda k, m: xlogy(k, m) - gammaln(k + 1) - m, lambda k, m: pdtr(k, m), lambda k, m: pdtrc(k, m),
                    0.0, needs=lambda m: m >= 0),
    "binom": Form(lambda k, n, p: _counted(n, k) + xlogy(k, p) + xlog1py(n - k, -p),
                  lambda k, n, p: betaincc(k + 1, n - k, p), lambda k, n, p: betainc(k + 1, n - k, p), 0.0,
                  lambda n, p: n, 0.0, lambda n, p: (n >= 0) & _probability(p)),
    "bernoulli": Form(lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p), lambda k, p: 1 - p + 0 * k, lambda k, p: p + 0 * k,
                      0.0, 1.0, 0.0, _probability),
    "geom": Form(lambda k, p: xlog1py(k - 1, -p) + np.log(p), lambda k, p: -np.expm1(np.log1p(-p) * k),
                 lambda k, p: np.exp(np.log1p(-p) * k), 1.0, inside=1.0, needs=lambda p: (p > 0) & (p <= 1)),
    "nbinom": Form(lambda k, n, p: gammaln(n + k) - gammaln(k + 1) - gammaln(n) + n * np.log(p) + xlog1py(k, -p),
                   lambda k, n, p: betainc(n, k + 1, p), lambda k, n, p: betaincc(n, k + 1, p), 0.0,
                   needs=lambda n, p: (n > 0) & (p > 0) & (p <= 1)),
    "zipf": Form(lambda k, a: -a * np.log(k) - np.log(zeta(a, 1.0)), lambda k, a: 1 - zeta(a, k + 1) / zeta(a, 1.0),
                 lambda k, a: zeta(a, k + 1) / zeta(a, 1.0), 1.0, inside=1.0, needs=lambda a: a > 1),
}  # fmt: skip
"""By SciPy's name: logarithms of probabilities in place of densities."""
