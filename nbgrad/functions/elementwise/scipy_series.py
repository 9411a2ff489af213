"""Ufuncs of `scipy.special` that are differentiated as sums: zeta functions, Smirnov's and noncentral distributions.

In: operand nodes. Out: nodes. `SERIES` has a row of partial derivatives for each, as `PARTIALS` of scipy_functions.py.
Called by scipy_ufuncs.py, and the densities by distribution_forms.py. Sums run on the host, with as many terms as an
element needs; each term is differentiated as the exponential of its logarithm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...graph.builders import cast
from ...graph.formulas import choose
from ...graph.host_functions import HostFunction, host
from ...graph.ir import Node, broadcast, elementwise, make
from ...graph.shapes import joint_shape
from .scipy_cdfs import betainc_run, of_parameter
from .scipy_functions import (
    Partial,
    PartialsRule,
    apply,
    bell,
    cos,
    digamma,
    exp,
    gammainc_run,
    gammaln,
    last_dtype,
    log1p,
    number,
    sin,
    unknown_by,
    zero,
)

_TERMS = 12
"""Terms of Euler and Maclaurin's formula."""
_TAIL = 60.0
"""Terms below exp(-60) of the largest one are left away."""


def _together(*operands: Node) -> tuple[Node, ...]:
    """Nodes of one shape and of the dtype of the last one."""
    shape = operands[0].shape
    for node in operands[1:]:
        shape = joint_shape(shape, node.shape)
    dtype = operands[-1].dtype
    return tuple([broadcast(cast(node, dtype), shape) for node in operands])


def _summed(function: HostFunction, partials: tuple[Partial, ...], operands: tuple[Node, ...], *orders: int) -> Node:
    """A derivative that the host computes to some orders, with derivatives of its own."""
    nodes = _together(*operands)
    return make("custom", (host(function, nodes, *orders), *nodes), (PartialsRule(partials), 0))


# ----- Zeta functions -----


def _zeta_run(s: np.ndarray, q: np.ndarray, order: int) -> np.ndarray:
    """The derivative of zeta(s, q) by s: the first terms, and the rest by Euler and Maclaurin's formula [25.11.28]."""
    from scipy import special

    s, q = (np.asarray(v, np.float64) for v in np.broadcast_arrays(s, q))
    known = (q > 0) & np.isfinite(s) & np.isfinite(q) & (s != 1)
    p, a = np.where(known, s, 2.0), np.where(known, q, 1.0)
    total = np.zeros(p.shape)
    for _ in range(int(np.clip(2 * _TERMS + np.max(np.abs(p), initial=0.0), 0, 100))):
        length = np.log(a)
        total = total + (-length) ** order * np.exp(-p * length)
        a = a + 1.0
    length = np.log(a)
    for i in range(order + 1):
        times = math.comb(order, i) * (-length) ** i * np.exp(-p * length)
        rest = order - i
        total = total + times * a * (-1.0) ** rest * math.factorial(rest) / (p - 1) ** (rest + 1)
        total = total + times * (0.5 if rest == 0 else 0.0)
        rising = np.poly1d([1.0, 0.0])
        for j in range(1, _TERMS + 1):
            scale = special.bernoulli(2 * j)[-1] / math.factorial(2 * j)
            slope = rising if rest == 0 else rising.deriv(rest)
            total = total + times * scale * a ** (1.0 - 2 * j) * slope(p)
            rising = rising * np.poly1d([1.0, 2.0 * j - 1]) * np.poly1d([1.0, 2.0 * j])
    return np.where(known, total, math.nan).astype(q.dtype)


ZETA_BY_ITS_EXPONENT = HostFunction("zeta by its exponent", last_dtype, _zeta_run)


def _zeta_by_s(order: int) -> Partial:
    def slope(value: Node | None, s: Node, q: Node) -> Node:
        if order == 0:
            return apply("zeta", *_together(s, q))
        rule = (_zeta_by_s(order + 1), _zeta_by_q(order))
        return _summed(ZETA_BY_ITS_EXPONENT, rule, (s, q), order)

    return slope


def _zeta_by_q(order: int) -> Partial:
    """-s zeta(s + 1, q) [25.11.17], differentiated by s to some order."""

    def slope(value: Node | None, s: Node, q: Node) -> Node:
        s, q = _together(s, q)
        found = _zeta_by_s(order)(None, s + 1, q)
        assert found is not None
        found = s * found
        if order:
            less = _zeta_by_s(order - 1)(None, s + 1, q)
            assert less is not None
            found = found + less * order
        return -found

    return slope


def _riemann(value: Node, s: Node) -> Node:
    """The derivative of zeta(s); for s < 0 by the functional equation [25.4.1], as the sum cancels there."""
    below = elementwise("less", s, 0)
    mirrored = choose(below, 1 - s, 2, s)
    by, one = _zeta_by_s(1), number(1, s)
    right, slope = by(None, choose(below, 2, s, s), one), by(None, mirrored, one)
    assert right is not None and slope is not None
    turn = math.log(2 * math.pi)
    size = exp((1 - mirrored) * turn + gammaln(mirrored)) * (1 / math.pi)
    angle = (1 - mirrored) * (math.pi / 2)
    factor = size * (sin(angle) * (turn - digamma(mirrored)) + cos(angle) * (math.pi / 2))
    left = factor * apply("zeta", mirrored, one) - size * sin(angle) * slope
    return elementwise("select", below, left, right)


# ----- Smirnov's distribution -----


def _smirnov_run(n: np.ndarray, x: np.ndarray, order: int) -> np.ndarray:
    """A derivative of x sum of C(n, j) (x + j/n)**(j-1) (1 - x - j/n)**(n-j), over all j with x + j/n < 1, by x.

    Z. W. Birnbaum and F. H. Tingey, "One-sided confidence contours for probability distribution functions", 1951.
    """
    n, x = np.broadcast_arrays(n, x)
    result = np.full(x.shape, math.nan)
    for at in np.ndindex(x.shape):
        count, y = int(n[at]), float(x[at])
        if count != n[at] or count < 1 or not 0 <= y <= 1:
            continue
        j = np.arange(1, count + 1)
        j = j[y + j / count < 1]
        up, down = y + j / count, 1 - y - j / count
        first = np.prod(np.arange(count, count - order, -1.0)) * (-1.0) ** order * (1 - y) ** max(count - order, 0)
        log_ways = _log_factorial(count) - _log_factorial(j) - _log_factorial(count - j)
        terms = np.exp(log_ways + (j - 1) * np.log(up) + (count - j) * np.log(down))

        def part(k: int, j: Any = j, up: Any = up, down: Any = down, count: int = count) -> Any:
            return math.factorial(k - 1) * ((-1.0) ** (k - 1) * (j - 1) / up**k - (count - j) / down**k)

        # x times a function: Leibniz' rule.
        slopes = y * bell(order, part) + (order * bell(order - 1, part) if order else 0.0)
        result[at] = first + np.sum(terms * slopes)
    return result.astype(x.dtype)


def _poisson(mean: float) -> tuple[np.ndarray, np.ndarray]:
    """The numbers that count, and their probabilities."""
    far = 12 * math.sqrt(mean) + _TAIL
    k = np.arange(max(0, math.floor(mean - far)), math.ceil(mean + far) + 1) if mean else np.arange(1)
    return k, np.exp(k * math.log(mean or 1.0) - mean - _log_factorial(k))


def _log_factorial(n: Any) -> Any:
    from scipy import special

    return special.gammaln(np.asarray(n) + 1.0)


SMIRNOV = HostFunction("Smirnov's distribution by its argument", last_dtype, _smirnov_run)


def _smirnov(order: int) -> Partial:
    return lambda value, n, x: _summed(SMIRNOV, (zero, _smirnov(order + 1)), (n, x), order)


# ----- Noncentral Student -----


def _student_run(n: np.ndarray, c: np.ndarray, t: np.ndarray, i: int, p: int, m: int) -> np.ndarray:
    """The integral of s**p N(t s - c) and the density of s = sqrt(chi-squared / n), the latter differentiated by n.

    N is the normal distribution function for m = -1, its derivative of order m + 1 otherwise; i derivatives by n. The
    trapezoidal rule in log(s), whose integrand is analytic: twice as many points change nothing.
    """
    n, c, t = (np.asarray(v, np.float64) for v in np.broadcast_arrays(n, c, t))
    result = np.full(t.shape, math.nan)
    for at in np.ndindex(t.shape):
        if n[at] > 0 and math.isfinite(n[at]) and math.isfinite(c[at]) and math.isfinite(t[at]):
            result[at] = _student_integral(float(n[at]), float(c[at]), float(t[at]), i, p, m)
    return result.astype(t.dtype)


def _student_integral(n: float, c: float, t: float, i: int, p: int, m: int) -> float:
    from scipy import special

    width = 1 / math.sqrt(2 * n + p)
    step = min(width / 3, 0.1, 0.5 / (1 + abs(c)))
    low = -max(2 * _TAIL / n, 12 * width)
    high = min(12 * width, math.log(1 + 12 * width) + 1)
    u = np.arange(math.floor(low / step), math.ceil(high / step) + 1) * step
    square = np.exp(2 * u)
    size = math.log(2) + n / 2 * math.log(n / 2) - special.gammaln(n / 2) + (n + p) * u - n * square / 2
    density = np.exp(size)

    def part(k: int) -> Any:
        if k == 1:
            return (math.log(n / 2) + 1 - special.digamma(n / 2) + 2 * u - square) / 2
        powers = (-1.0) ** k * math.factorial(k - 2) / n ** (k - 1)
        return powers / 2 - special.polygamma(k - 1, n / 2) / 2**k

    z = t * np.exp(u) - c
    if m < 0:
        inner = special.ndtr(z)
    else:
        inner = (-1.0) ** m * special.eval_hermitenorm(m, z) * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return float(np.sum(density * bell(i, part) * inner) * step)


STUDENT = HostFunction("noncentral Student's distribution", last_dtype, _student_run)


def _student(i: int, p: int, m: int, sign: int = 1) -> Partial:
    """An integral of `_student_run`, of (n, c, t), with its derivatives, which are such integrals."""

    def slope(value: Node | None, n: Node, c: Node, t: Node) -> Node:
        rule = (_student(i + 1, p, m), _student(i, p, m + 1, -1), _student(i, p + 1, m + 1))
        found = _summed(STUDENT, rule, (n, c, t), i, p, m)
        return found if sign > 0 else -found

    return slope


_STUDENT = (_student(1, 0, -1), _student(0, 0, 0, -1), _student(0, 1, 0))


def noncentral_student_density(t: Node, n: Node, c: Node) -> Node:
    """The density at t for n degrees of freedom and the noncentrality c."""
    found = _student(0, 1, 0)(None, n, c, t)
    assert found is not None
    return found


# ----- Noncentral chi-squared -----


def _chi_density_run(x: np.ndarray, n: np.ndarray, c: np.ndarray, order: int) -> np.ndarray:
    """The sum of Poisson's probabilities of k times the density of chi-squared for n + 2 k, differentiated by n."""
    from scipy import special

    x, n, c = (np.asarray(v, np.float64) for v in np.broadcast_arrays(x, n, c))
    result = np.full(x.shape, math.nan)
    for at in np.ndindex(x.shape):
        if n[at] > 0 and 0 <= c[at] < math.inf and 0 <= x[at] < math.inf:
            k, weights = _poisson(float(c[at]) / 2)
            half, a = float(x[at]) / 2, n[at] / 2 + k
            terms = weights * np.exp(special.xlogy(a - 1, half) - half - special.gammaln(a))

            def part(m: int, half: float = half, a: Any = a) -> Any:
                return np.log(half) - special.digamma(a) if m == 1 else -special.polygamma(m - 1, a)

            result[at] = np.sum(terms * bell(order, part)) / 2 ** (order + 1)
    return result.astype(c.dtype)


CHI_DENSITY = HostFunction("noncentral chi-squared's density by its degrees of freedom", last_dtype, _chi_density_run)


def _chi_density(order: int) -> Partial:
    """x f' = (n/2 - 1 - x/2) f + c/2 g, where g has two more degrees of freedom; by c, it is (g - f) / 2."""

    def slope(value: Node | None, x: Node, n: Node, c: Node) -> Node:
        return _summed(CHI_DENSITY, (by_x, _chi_density(order + 1), by_noncentrality), (x, n, c), order)

    def by_noncentrality(value: Node, x: Node, n: Node, c: Node) -> Node:
        return (slope(None, x, n + 2, c) - value) * 0.5

    def by_x(value: Node, x: Node, n: Node, c: Node) -> Node:
        found = (n * 0.5 - 1 - x * 0.5) * value + c * 0.5 * slope(None, x, n + 2, c)
        if order:
            less = _chi_density(order - 1)(None, x, n, c)
            assert less is not None
            found = found + less * (order * 0.5)
        return found / x

    return slope


def noncentral_chi_density(x: Node, n: Node, c: Node) -> Node:
    """The density at x for n degrees of freedom and the noncentrality c."""
    found = _chi_density(0)(None, x, n, c)
    assert found is not None
    return found


def _chi_run(x: np.ndarray, n: np.ndarray, c: np.ndarray, order: int) -> np.ndarray:
    """The sum of Poisson's probabilities of k times gammainc(n/2 + k, x/2), differentiated by n."""
    x, n, c = (np.asarray(v, np.float64) for v in np.broadcast_arrays(x, n, c))
    result = np.full(x.shape, math.nan)
    for at in np.ndindex(x.shape):
        if n[at] > 0 and 0 <= c[at] < math.inf and 0 <= x[at] < math.inf:
            k, weights = _poisson(float(c[at]) / 2)
            found = gammainc_run(n[at] / 2 + k, np.full(k.shape, x[at] / 2), order, False)
            result[at] = np.sum(weights * found) / 2**order
    return result.astype(c.dtype)


CHI = HostFunction("noncentral chi-squared by its degrees of freedom", last_dtype, _chi_run)


def _chi_by_degrees(order: int) -> Partial:
    def slope(value: Node | None, x: Node, n: Node, c: Node) -> Node:
        rule = (_chi_density(order), _chi_by_degrees(order + 1), by_noncentrality)
        return _summed(CHI, rule, (x, n, c), order)

    def by_noncentrality(value: Node, x: Node, n: Node, c: Node) -> Node:
        more = slope(None, x, n + 2, c)
        return (more - value) * 0.5

    return slope


_CHI: tuple[Partial, ...] = (
    _chi_density(0),
    _chi_by_degrees(1),
    lambda v, x, n, c: (apply("chndtr", x, n + 2, c) - apply("chndtr", x, n, c)) * 0.5,
)


# ----- Noncentral Fisher -----


def _fisher_run(n: np.ndarray, d: np.ndarray, c: np.ndarray, x: np.ndarray, i: int, j: int) -> np.ndarray:
    """The sum of Poisson's probabilities of k times betainc(n/2 + k, d/2, n x / (d + n x)), of which the beta functions
    are differentiated by n to order i and by d to order j."""
    n, d, c, x = (np.asarray(v, np.float64) for v in np.broadcast_arrays(n, d, c, x))
    result = np.full(x.shape, math.nan)
    for at in np.ndindex(x.shape):
        if not (n[at] > 0 and d[at] > 0 and 0 <= c[at] < math.inf and 0 <= x[at] < math.inf):
            continue
        k, weights = _poisson(float(c[at]) / 2)
        found = betainc_run(n[at] / 2 + k, np.full(k.shape, d[at] / 2), np.full(k.shape, _share(n, d, x, at)), i, j)
        result[at] = np.sum(weights * found) / 2 ** (i + j)
    return result.astype(x.dtype)


def _share(n: np.ndarray, d: np.ndarray, x: np.ndarray, at: tuple[int, ...]) -> float:
    return n[at] * x[at] / (d[at] + n[at] * x[at])


FISHER = HostFunction("noncentral Fisher's distribution by its degrees of freedom", last_dtype, _fisher_run)


def noncentral_fisher_density(x: Node, n: Node, d: Node, c: Node) -> Node:
    """The density at x, by a hypergeometric function (Johnson, Kotz and Balakrishnan 1995, 30.7)."""
    n, d, c, x = _together(n, d, c, x)
    total = d + n * x
    share = n * x / total
    a, b = n * 0.5, d * 0.5
    size = gammaln(a + b) - gammaln(a) - gammaln(b) + (b - 1) * log1p(-share)
    size = size + elementwise("xlogy", a - 1, share) + c * (share - 1) * 0.5
    # Kummer's transformation [13.2.39], which does not overflow.
    return exp(size) * apply("hyp1f1", -b, a, c * share * -0.5) * n * d / (total * total)


def _fisher_density(value: Node | None, n: Node, d: Node, c: Node, x: Node) -> Node:
    return noncentral_fisher_density(x, n, d, c)


def _fisher_by_noncentrality(value: Node | None, n: Node, d: Node, c: Node, x: Node) -> Node:
    """Half the difference to two more degrees of freedom, at the same share."""
    n, d, c, x = _together(n, d, c, x)
    return (apply("ncfdtr", n + 2, d, c, x * n / (n + 2)) - apply("ncfdtr", n, d, c, x)) * 0.5


def _fisher_by_degrees(i: int, j: int) -> Partial:
    """The derivative by n or d: that of the beta functions, and that of the share, which is one of x."""

    def slope(value: Node | None, n: Node, d: Node, c: Node, x: Node) -> Node:
        n, d, c, x = _together(n, d, c, x)
        rule = tuple([unknown_by(k) for k in range(4)])
        beta = _summed(FISHER, rule, (n, d, c, x), i, j)
        moved = noncentral_fisher_density(x, n, d, c) * x
        return beta + moved / n if i else beta - moved / d

    return slope


_FISHER: tuple[Partial, ...] = (
    _fisher_by_degrees(1, 0),
    _fisher_by_degrees(0, 1),
    _fisher_by_noncentrality,
    _fisher_density,
)

SERIES: dict[str, tuple[Partial, ...]] = {
    "zeta": (_zeta_by_s(1), _zeta_by_q(0)),
    "_riemann_zeta": (_riemann,),
    "zetac": (_riemann,),
    "smirnov": (zero, _smirnov(1)),
    "smirnovi": of_parameter((zero, _smirnov(1)), 1, 0, None),
    "chndtr": _CHI,
    "chndtrix": of_parameter(_CHI, 0, None, 1, 2),
    "chndtridf": of_parameter(_CHI, 1, 0, None, 2),
    "chndtrinc": of_parameter(_CHI, 2, 0, 1, None),
    "nctdtr": _STUDENT,
    "nctdtrit": of_parameter(_STUDENT, 2, 0, 1, None),
    "nctdtridf": of_parameter(_STUDENT, 0, None, 1, 2),
    "nctdtrinc": of_parameter(_STUDENT, 1, 0, None, 2),
    "ncfdtr": _FISHER,
    "ncfdtri": of_parameter(_FISHER, 3, 0, 1, 2, None),
}
"""By the ufunc's name: its partial derivatives, from the value and the operands."""
