"""Ufuncs of `scipy.special` that are distribution functions, or inverses of these, with all their derivatives.

In: operand nodes. Out: nodes. `CDFS` has a row of partial derivatives for each, as `PARTIALS` of scipy_functions.py, to
which it is added. Called by scipy_ufuncs.py. The incomplete beta function is differentiated by its parameters term by
term, as the incomplete gamma function is there; the others are both of these with other operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...graph.builders import cast
from ...graph.formulas import choose
from ...graph.host_functions import HostFunction, host
from ...graph.ir import Node, elementwise, make
from .scipy_functions import (
    Partial,
    PartialsRule,
    digamma,
    exp,
    gammainc_density,
    gammainc_slope,
    gammaln,
    last_dtype,
    log,
    log1p,
    number,
    polygamma,
    unknown,
    zero,
)

_BLOCK = 64
"""Terms of a power series that are added at once."""


def _of_exponential(i: int, j: int, parts: Callable[[int, int], Any]) -> Any:
    """The derivative of exp(h) by two variables to orders i and j, over exp(h), from those of h."""
    known: dict[tuple[int, int], Any] = {(0, 0): 1.0}
    for n in range(i + 1):
        for m in range(j + 1):
            if n + m == 0:
                continue
            first, second = (1, 0) if n else (0, 1)
            total: Any = 0.0
            for k in range(n - first + 1):
                for h in range(m - second + 1):
                    times = math.comb(n - first, k) * math.comb(m - second, h)
                    total = parts(k + first, h + second) * known[n - first - k, m - second - h] * times + total
            known[n, m] = total
    return known[i, j]


def betainc_run(a: np.ndarray, b: np.ndarray, x: np.ndarray, i: int, j: int) -> np.ndarray:
    """The derivative of betainc(a, b, x) by `a` to order i and by `b` to order j.

    The terms of betainc = sum of x**(a+n) (1-x)**b gamma(a+b+n) / (gamma(a+n+1) gamma(b)) [8.17.8] are all positive;
    each is differentiated as the exponential of its logarithm. Above the mean, the arguments change places [8.17.4].
    """
    flat = [np.asarray(v, np.float64).ravel() for v in np.broadcast_arrays(a, b, x)]
    result = np.where((flat[0] > 0) & (flat[1] > 0) & (flat[2] >= 0) & (flat[2] <= 1), 0.0, math.nan)
    inside = (result == 0) & (flat[2] > 0) & (flat[2] < 1)
    above = flat[2] > (flat[0] + 1) / (flat[0] + flat[1] + 2)
    below, rest = np.flatnonzero(inside & ~above), np.flatnonzero(inside & above)
    result[below] = _betainc_series(flat[0][below], flat[1][below], flat[2][below], i, j)
    result[rest] = -_betainc_series(flat[1][rest], flat[0][rest], 1 - flat[2][rest], j, i)
    return result.reshape(np.shape(x)).astype(np.asarray(x).dtype)


def _betainc_series(a: np.ndarray, b: np.ndarray, x: np.ndarray, i: int, j: int) -> np.ndarray:
    """The sum of the series' derivatives, for x that is not above the mean."""
    from scipy import special

    total, left, n = np.zeros(a.shape), np.arange(a.size), np.arange(_BLOCK)
    while left.size:
        p, q, y = a[left, None], b[left, None], x[left, None]
        both, next_one = p + q + n, p + n + 1
        size = (p + n) * np.log(y) + q * np.log1p(-y)
        terms = np.exp(size + special.gammaln(both) - special.gammaln(next_one) - special.gammaln(q))

        def parts(k: int, h: int, p: Any = (q, y, both, next_one)) -> Any:
            q, y, both, next_one = p
            if k + h == 1:
                slope = special.digamma(both)
                return slope + (np.log(y) - special.digamma(next_one) if k else np.log1p(-y) - special.digamma(q))
            found = special.polygamma(k + h - 1, both)
            if h == 0:
                found = found - special.polygamma(k - 1, next_one)
            return found - special.polygamma(h - 1, q) if k == 0 else found

        slopes = terms * _of_exponential(i, j, parts)
        total[left] += slopes.sum(axis=1)
        last = np.abs(slopes[:, -1]) + terms[:, -1]
        left = left[last > 1e-18 * np.abs(total[left]) + 1e-300]
        n = n + _BLOCK
    return total


BETAINC_BY_ITS_PARAMETERS = HostFunction("betainc by its parameters", last_dtype, betainc_run)


def _by_parameters(i: int, j: int) -> Partial:
    """The derivative of betainc by its parameters, to orders i and j."""

    def slope(value: Node | None, a: Node, b: Node, x: Node) -> Node:
        rule = PartialsRule((_by_parameters(i + 1, j), _by_parameters(i, j + 1), _beta_density(i, j)))
        return make("custom", (host(BETAINC_BY_ITS_PARAMETERS, (a, b, x), i, j), a, b, x), (rule, 0))

    return slope


def _beta_density(i: int, j: int) -> Partial:
    """The derivative of betainc by x [8.17.20], differentiated by the parameters to orders i and j."""

    def slope(value: Node | None, a: Node, b: Node, x: Node) -> Node:
        powers = elementwise("xlogy", a - 1, x) + elementwise("xlogy", b - 1, 1 - x)
        density = exp(powers + gammaln(a + b) - gammaln(a) - gammaln(b))
        if i + j == 0:
            return density

        def parts(k: int, h: int) -> Node:
            if k + h == 1:
                return digamma(a + b) + (log(x) - digamma(a) if k else log1p(-x) - digamma(b))
            found = polygamma(k + h - 1, a + b)
            if h == 0:
                found = found - polygamma(k - 1, a)
            return found - polygamma(h - 1, b) if k == 0 else found

        return density * _of_exponential(i, j, parts)

    return slope


# ----- Distribution functions as one of the two -----

_beta_a, _beta_b, _beta_x = _by_parameters(1, 0), _by_parameters(0, 1), _beta_density(0, 0)
_gamma_a, _gamma_x = gammainc_slope(1, False), gammainc_density(0, False)


def _negative(*partials: Partial) -> tuple[Partial, ...]:
    """The partial derivatives of one minus a function."""

    def turned(partial: Partial) -> Partial:
        def slope(value: Node, *operands: Node) -> Node | None:
            found = partial(value, *operands)
            return None if found is None else -found

        return slope

    return tuple([turned(partial) for partial in partials])


def of_parameter(partials: tuple[Partial, ...], place: int, *order: int | None) -> tuple[Partial, ...]:
    """The partial derivatives of the operand of a distribution function for which it has a probability, by the implicit
    function theorem.

    `order` has the operands of the distribution function by their numbers among those of the inverse; None: its value.
    The operand number `place` of the inverse is the probability.
    """
    count = len(order)

    def at(value: Node, operands: tuple[Node, ...]) -> list[Node]:
        return [value if k is None else operands[k] for k in order]

    def steep(value: Node, operands: tuple[Node, ...]) -> Node:
        found = partials[order.index(None)](value, *at(value, operands))
        assert found is not None
        return found

    def by(k: int) -> Partial:
        if k == place:
            return lambda value, *operands: 1 / steep(value, operands)

        def slope(value: Node, *operands: Node) -> Node | None:
            found = partials[order.index(k)](value, *at(value, operands))
            return None if found is None else -found / steep(value, operands)

        return slope

    return tuple([by(k) for k in range(count)])


def _inverse(*partials: Partial) -> tuple[Partial, ...]:
    """The partial derivatives of a function's inverse by its last operand."""
    last = len(partials) - 1
    return of_parameter(partials, last, *range(last), None)


def _half(partial: Partial, *operands: Node) -> Node:
    found = partial(None, *operands)
    assert found is not None
    return found * 0.5


def _student_density(value: Node | None, n: Node, t: Node) -> Node:
    size = gammaln((n + 1) * 0.5) - gammaln(n * 0.5) - log(n * math.pi) * 0.5
    return exp(size - (n + 1) * 0.5 * log1p(t * t / n))


def _student_slope(n: Node, t: Node) -> Node:
    """The derivative of the logarithm of Student's density by n."""
    square = t * t / n
    slope = digamma((n + 1) * 0.5) - digamma(n * 0.5) - 1 / n - log1p(square)
    return slope * 0.5 + (n + 1) * 0.5 * square / (n * (square + 1))


def _student_by_degrees(value: Node | None, n: Node, t: Node) -> Node:
    """stdtr(n, t) = 1/2 + sign(t)/2 betainc(1/2, n/2, t**2 / (n + t**2)): of t/sqrt(n), and of n/2.

    The derivatives by t are those of the density, which exist at 0, too.
    """
    side = elementwise("sign", t)
    first = side * 0.25 * _beta_b(None, *_of_square(n, t)) - _student_density(None, n, t) * t / (n * 2)  # type: ignore
    rule = PartialsRule((_student_twice, lambda v, n, t: _student_density(None, n, t) * _student_slope(n, t)))
    return make("custom", (first, n, t), (rule, 0))


def _student_twice(value: Node, n: Node, t: Node) -> Node:
    """The second derivative by n; that of third order by n is not known."""
    square, total = t * t, n + t * t
    half, other, share = _of_square(n, t)
    curved = _by_parameters(0, 2)(None, half, other, share)
    crossed = _beta_density(0, 1)(None, half, other, share)
    assert curved is not None and crossed is not None
    density = _student_density(None, n, t)
    value = elementwise("sign", t) * 0.25 * (curved * 0.5 - crossed * square / (total * total))
    value = value - density * t / (n * 2) * (_student_slope(n, t) - 1 / n)
    rule = PartialsRule((lambda v, n, t: unknown(v, n), lambda v, n, t: unknown(v, t)))
    return make("custom", (value, n, t), (rule, 0))


def _of_square(n: Node, t: Node) -> tuple[Node, Node, Node]:
    """The operands of the beta function; at t = 0, where its factors are 0, any share will do."""
    share = choose(elementwise("equal", t, 0), 0.5, t * t / (n + t * t), t)
    return number(0.5, n), n * 0.5, share


def _share(n: Node, d: Node, x: Node) -> tuple[Node, Node]:
    """The operand of the beta function in Fisher's distribution, and the denominator."""
    total = d + n * x
    return n * x / total, total


def _fisher(kind: str) -> Partial:
    def slope(value: Node | None, n: Node, d: Node, x: Node) -> Node | None:
        share, total = _share(n, d, x)
        density = _beta_x(None, n * 0.5, d * 0.5, share)
        assert density is not None
        if kind == "x":
            return density * n * d / (total * total)
        if kind == "n":
            return _half(_beta_a, n * 0.5, d * 0.5, share) + density * d * x / (total * total)
        return _half(_beta_b, n * 0.5, d * 0.5, share) - density * n * x / (total * total)

    return slope


_BETA = (_beta_a, _beta_b, _beta_x)
_GAMMA = (_gamma_a, _gamma_x)
_STUDENT: tuple[Partial, ...] = (_student_by_degrees, _student_density)
_CHI: tuple[Partial, ...] = (
    lambda v, n, x: _half(_gamma_a, n * 0.5, x * 0.5),
    lambda v, n, x: _half(_gamma_x, n * 0.5, x * 0.5),
)
_FISHER = tuple([_fisher(kind) for kind in "ndx"])
_GAMMA_OF_RATE: tuple[Partial, ...] = (
    lambda v, a, b, x: _gamma_x(None, b, a * x) * x,  # type: ignore[operator]
    lambda v, a, b, x: _gamma_a(None, b, a * x),
    lambda v, a, b, x: _gamma_x(None, b, a * x) * a,  # type: ignore[operator]
)


def _floor(k: Node) -> Node:
    return elementwise("floor", k) if k.dtype.kind == "f" else k


_POISSON: tuple[Partial, ...] = (
    zero,
    lambda v, k, m: -_gamma_x(None, cast(_floor(k), m.dtype) + 1, m),  # type: ignore[operator]
)


def _binomial(value: Node | None, k: Node, n: Node, p: Node) -> Node:
    below = (_floor(k) + 1) * (p * 0 + 1)
    return -_beta_x(None, n * (p * 0 + 1) - below + 1, below, 1 - p)  # type: ignore[operator]


def _negative_binomial(value: Node | None, k: Node, n: Node, p: Node) -> Node | None:
    return _beta_x(None, n * (p * 0 + 1), (_floor(k) + 1) * (p * 0 + 1), p)


def _of_beta(sign: int, which: int) -> Partial:
    """betainc(n, k + 1, p) by k, n or p: the negative binomial distribution for any real k."""
    place = (1, 0, 2)[which]
    return lambda v, k, n, p: _BETA[place](None, n, k + 1, p) * sign  # type: ignore[operator]


def _of_rest(which: int) -> Partial:
    """betainc(n - k, k + 1, 1 - p) by k, n or p: the binomial distribution for any real k."""

    def slope(value: Node, k: Node, n: Node, p: Node) -> Node:
        a, b, x = [partial(None, n - k, k + 1, 1 - p) for partial in _BETA]
        assert a is not None and b is not None and x is not None
        return (b - a, a, -x)[which]

    return slope


_REAL_POISSON: tuple[Partial, ...] = (
    lambda v, k, m: -_gamma_a(None, k + 1, m),  # type: ignore[operator]
    lambda v, k, m: -_gamma_x(None, k + 1, m),  # type: ignore[operator]
)
_REAL_BINOMIAL = tuple([_of_rest(which) for which in range(3)])
_REAL_NEGATIVE_BINOMIAL = tuple([_of_beta(1, which) for which in range(3)])


def _quantile_slope(z: Node) -> Node:
    """The derivative of the normal quantile z by its probability."""
    return exp(z * z * 0.5) * math.sqrt(2 * math.pi)


_NORMAL_MEAN: tuple[Partial, ...] = (
    lambda v, p, s, x: -s * _quantile_slope((x - v) / s),
    lambda v, p, s, x: (v - x) / s,
    lambda v, p, s, x: x * 0 + 1,
)
"""x - s z."""
_NORMAL_DEVIATION: tuple[Partial, ...] = (
    lambda v, m, p, x: v / (m - x),
    lambda v, m, p, x: v * v / (m - x) * _quantile_slope((x - m) / v),
    lambda v, m, p, x: v / (x - m),
)
"""(x - m) / z."""

CDFS: dict[str, tuple[Partial, ...]] = {
    "betainc": _BETA,
    "betaincc": _negative(*_BETA),
    "betaincinv": _inverse(*_BETA),
    "betainccinv": _inverse(*_negative(*_BETA)),
    "gammaincinv": _inverse(*_GAMMA),
    "gammainccinv": _inverse(*_negative(*_GAMMA)),
    "stdtr": _STUDENT,
    "stdtrit": _inverse(*_STUDENT),
    "chdtr": _CHI,
    "chdtrc": _negative(*_CHI),
    "chdtri": _inverse(*_negative(*_CHI)),
    "fdtr": _FISHER,
    "fdtrc": _negative(*_FISHER),
    "fdtri": _inverse(*_FISHER),
    "gdtr": _GAMMA_OF_RATE,
    "gdtrc": _negative(*_GAMMA_OF_RATE),
    "gdtrix": _inverse(*_GAMMA_OF_RATE),
    "pdtr": _POISSON,
    "pdtrc": _negative(*_POISSON),
    "bdtr": (zero, unknown, _binomial),
    "bdtrc": (zero, unknown, *_negative(_binomial)),
    "nbdtr": (zero, unknown, _negative_binomial),
    "nbdtrc": (zero, unknown, *_negative(_negative_binomial)),
    # ----- Parameters for which a probability is reached -----
    "bdtri": of_parameter((zero, unknown, _binomial), 2, 0, 1, None),
    "bdtrik": of_parameter(_REAL_BINOMIAL, 0, None, 1, 2),
    "bdtrin": of_parameter(_REAL_BINOMIAL, 1, 0, None, 2),
    "nbdtri": of_parameter((zero, unknown, _negative_binomial), 2, 0, 1, None),
    "nbdtrik": of_parameter(_REAL_NEGATIVE_BINOMIAL, 0, None, 1, 2),
    "nbdtrin": of_parameter(_REAL_NEGATIVE_BINOMIAL, 1, 0, None, 2),
    "pdtri": of_parameter(_POISSON, 1, 0, None),
    "pdtrik": of_parameter(_REAL_POISSON, 0, None, 1),
    "btdtria": of_parameter(_BETA, 0, None, 1, 2),
    "btdtrib": of_parameter(_BETA, 1, 0, None, 2),
    "gdtria": of_parameter(_GAMMA_OF_RATE, 0, None, 1, 2),
    "gdtrib": of_parameter(_GAMMA_OF_RATE, 1, 0, None, 2),
    "stdtridf": of_parameter(_STUDENT, 0, None, 1),
    "chdtriv": of_parameter(_CHI, 0, None, 1),
    "fdtridfd": of_parameter(_FISHER, 1, 0, None, 2),
    "nrdtrimn": _NORMAL_MEAN,
    "nrdtrisd": _NORMAL_DEVIATION,
}
"""By the ufunc's name: its partial derivatives, from the value and the operands."""
