"""Functions of `scipy.special` at their edges, and derivatives that SciPy does not have, against mpmath and paper."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse.linalg
import scipy.special as sp
import scipy.stats

import nbgrad as nb
from nbgrad.errors import DtypeError, RangeError

pytestmark = pytest.mark.unoptimized

INF, NAN = math.inf, math.nan
EDGES: list[tuple[str, Any, Any, Any]] = [
    ("log_ndtr far down", sp.log_ndtr, -1e5, 1e5 + 1e-5),
    ("log_ndtr far up", sp.log_ndtr, 60.0, 0.0),
    ("exprel at 0", sp.exprel, 0.0, 0.5),
    ("i0 at 0", sp.i0, 0.0, 0.0),
    ("i1 at 0", sp.i1, 0.0, 0.5),
    ("j1 at 0", sp.j1, 0.0, 0.5),
    ("sine integral at 0", lambda x: sp.sici(x)[0], 0.0, 1.0),
    ("dawsn at 0", sp.dawsn, 0.0, 1.0),
    ("erfinv at 0", sp.erfinv, 0.0, math.sqrt(math.pi) / 2),
    ("erfinv at 1", sp.erfinv, 1.0, INF),
    ("ndtri at 1/2", sp.ndtri, 0.5, math.sqrt(2 * math.pi)),
    ("spence at 1", sp.spence, 1.0, -1.0),
    ("boxcox without power", lambda x: sp.boxcox(x, 0.0), 2.0, 0.5),
    ("boxcox by a power of 0", lambda m: sp.boxcox(2.0, m), 0.0, math.log(2) ** 2 / 2),
    ("betainc at 0", lambda x: sp.betainc(1.0, 2.0, x), 0.0, 2.0),
    ("betainc at 1", lambda x: sp.betainc(2.0, 1.0, x), 1.0, 2.0),
    ("gammainc at 0", lambda x: sp.gammainc(1.0, x), 0.0, 1.0),
    ("gamma at 1", sp.gamma, 1.0, -np.euler_gamma),
    ("erfcx far up", sp.erfcx, 1e8, -1 / (math.sqrt(math.pi) * 1e16)),
    ("expn of order 0", lambda x: sp.expn(0.0, x), 1.0, -2 * math.exp(-1)),
    ("expn of order 1", lambda x: sp.expn(1.0, x), 2.0, -math.exp(-2) / 2),
    ("comb where there is none", lambda k: nb.ops.comb(3.0, k), 4.0, 0.0),
    ("factorial below 0", nb.ops.factorial, -0.5, 0.0),
    ("fresnel at 0", lambda x: sp.fresnel(x)[1], 0.0, 1.0),
]


@pytest.mark.parametrize(("function", "x", "want"), [e[1:] for e in EDGES], ids=[e[0] for e in EDGES])
def test_slopes_at_edges(function: Any, x: float, want: float) -> None:
    got = nb.grad(lambda v: np.sum(function(v)))(np.array([x]))[0]
    np.testing.assert_allclose(got, want, rtol=2e-8 if abs(x) > 1e4 else 1e-12, atol=1e-15)


@pytest.mark.parametrize("a", [0.05, 0.7, 1.0, 5.5, 40.0])
@pytest.mark.parametrize("x", [1e-3, 0.4, 3.0, 30.0, 90.0])
def test_gammainc_by_its_parameter(a: float, x: float) -> None:
    """Three derivatives, against differences in forty digits."""
    function: Any = lambda v: np.sum(sp.gammainc(v, x))  # noqa: E731
    with mpmath.workdps(60):
        for order in (1, 2, 3):
            function = nb.grad(function)
            want = float(
                mpmath.diff(lambda t: mpmath.gammainc(t, 0, x, regularized=True), a, order, h=mpmath.mpf(10) ** -12)
            )
            np.testing.assert_allclose(function(np.array(a)), want, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("a", "b", "x"), [(0.3, 0.6, 0.2), (1.7, 2.6, 0.9), (40.0, 9.0, 0.83), (3.0, 25.0, 1e-3)])
def test_betainc_by_its_parameters(a: float, b: float, x: float) -> None:
    """Derivatives by both parameters to third order, against differences in sixty digits."""
    with mpmath.workdps(60):
        for orders in ((1, 0), (0, 1), (1, 1), (0, 2), (2, 1)):
            function: Any = lambda a, b: sp.betainc(a, b, x)  # noqa: E731
            for which, order in enumerate(orders):
                for _ in range(order):
                    function = nb.grad(function, which)
            want = mpmath.diff(lambda p, q: mpmath.betainc(p, q, 0, x, regularized=True), (a, b), orders, h=1e-12)
            np.testing.assert_allclose(function(a, b), float(want), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("t", [-2.5, 0.0, 0.4])
def test_student_by_its_degrees(t: float) -> None:
    """Two derivatives by n, and one more by t, also where t is 0."""
    with mpmath.workdps(60):

        def exact(n: Any, t: Any) -> Any:
            scale = mpmath.gamma((n + 1) / 2) / (mpmath.sqrt(n * mpmath.pi) * mpmath.gamma(n / 2))
            return t * scale * mpmath.hyp2f1(0.5, (n + 1) / 2, 1.5, -t * t / n)

        by_n = nb.grad(sp.stdtr, 0)
        for function, orders in ((by_n, (1, 0)), (nb.grad(by_n, 0), (2, 0)), (nb.grad(by_n, 1), (1, 1))):
            want = mpmath.diff(exact, (3.4, t), orders, h=1e-12)
            np.testing.assert_allclose(function(3.4, t), float(want), rtol=1e-8, atol=1e-10)


def test_gammaincc_is_the_rest() -> None:
    a, x = np.array([0.7, 5.5]), np.array([0.4, 9.0])
    for which in (0, 1):
        lower = nb.grad(lambda a, x: np.sum(sp.gammainc(a, x)), which)(a, x)
        upper = nb.grad(lambda a, x: np.sum(sp.gammaincc(a, x)), which)(a, x)
        np.testing.assert_allclose(upper, -lower, rtol=1e-13)


def transformed(v: Any, power: Any, shift: int) -> Any:
    """The transform of Box and Cox of v, or that of Yeo and Johnson, whose numbers have a distance of 1."""
    v, sign, power = (mpmath.mpf(v), 1, power) if v >= 0 or not shift else (-mpmath.mpf(v), -1, 2 - power)
    return sign * (mpmath.log(v + shift) if power == 0 else (mpmath.expm1(power * mpmath.log(v + shift))) / power)


def yeo_johnson(v: float, at: float) -> tuple[Any, Any]:
    return (
        nb.differentiable_source(lambda x: np.sum(scipy.stats.yeojohnson(np.array([v]), x + at))),
        lambda x: transformed(v, x + at, 1),
    )


def likelihood(name: str, data: list[float], at: float) -> tuple[Any, Any]:
    """A likelihood as a function of the power's distance from `at`."""
    shift = int(name.startswith("yeo"))

    def exact(x: Any) -> Any:
        y = [transformed(v, x + at, shift) for v in data]
        mean = sum(y) / 3
        logs = sum(mpmath.sign(v) ** shift * mpmath.log(abs(mpmath.mpf(v)) + shift) for v in data)
        return (x + at - 1) * logs - mpmath.mpf(1.5) * mpmath.log(sum((one - mean) ** 2 for one in y) / 3)

    return nb.differentiable_source(lambda x: getattr(scipy.stats, name)(x + at, np.array(data))), exact


LIMITS: list[tuple[str, Any, Any]] = [
    ("ellipk", sp.ellipk, mpmath.ellipk),
    ("ellipe", sp.ellipe, mpmath.ellipe),
    ("agm", lambda x: sp.agm(1.0 + x, 1.0), lambda x: mpmath.agm(1 + x, 1)),
    ("inv_boxcox", lambda x: sp.inv_boxcox(0.7, x), lambda x: mpmath.exp(0.7) if x == 0 else (1 + x * 0.7) ** (1 / x)),
    (
        "generalised Pareto",
        nb.differentiable_source(lambda x: scipy.stats.genpareto.logpdf(1.3, x)),
        lambda x: -1.3 if x == 0 else -(1 + 1 / x) * mpmath.log(1 + x * 1.3),
    ),
    (
        "Rice",
        nb.differentiable_source(lambda x: scipy.stats.rice.logpdf(1.3, x)),
        lambda x: mpmath.log(1.3) - (mpmath.mpf(1.3) ** 2 + x * x) / 2 + mpmath.log(mpmath.besseli(0, 1.3 * x)),
    ),
    (
        "von Mises",
        nb.differentiable_source(lambda x: scipy.stats.vonmises.logpdf(1.3, x)),
        lambda x: x * mpmath.cos(1.3) - mpmath.log(2 * mpmath.pi * mpmath.besseli(0, x)),
    ),
    ("Yeo and Johnson, above 0", *yeo_johnson(1.3, 0)),
    ("Yeo and Johnson, below 0", *yeo_johnson(-1.3, 2)),
    ("the likelihood of Yeo and Johnson, above 0", *likelihood("yeojohnson_llf", [0.3, 1.1, 2.5], 0)),
    ("the likelihood of Yeo and Johnson, below 0", *likelihood("yeojohnson_llf", [-0.3, -1.1, 0.5], 2)),
    ("the likelihood of Box and Cox", *likelihood("boxcox_llf", [0.3, 1.1, 2.5], 0)),
]


@pytest.mark.parametrize("at", [0.0, 1e-9, 0.004, 0.09])
@pytest.mark.parametrize(("function", "exact"), [e[1:] for e in LIMITS], ids=[e[0] for e in LIMITS])
def test_derivatives_where_formulas_have_limits(function: Any, exact: Any, at: float) -> None:
    """Two derivatives at 0, where quotients become limits, and close by, where they lose digits."""
    with mpmath.workdps(60):
        for order in (1, 2):
            function = nb.grad(function)
            want = float(mpmath.diff(exact, mpmath.mpf(at), order, h=mpmath.mpf(10) ** -15))
            np.testing.assert_allclose(function(at), want, rtol=3e-11, atol=1e-15)


@pytest.mark.parametrize("z", [0.3 + 0.2j, -2.5 + 0.1j, 4 - 7j, -20.3 + 3j, 100 + 1j])
def test_polygamma_of_complex_numbers(z: complex) -> None:
    """Derivatives of `psi`, which are conjugated in gradients of the real part."""
    function: Any = lambda v: np.real(sp.psi(v))  # noqa: E731
    want = complex(mpmath.psi(1, z))
    np.testing.assert_allclose(nb.grad(function)(z), want.conjugate(), rtol=1e-13)
    _, along = nb.jvp(lambda v: nb.jvp(sp.psi, (v,), (1 + 0j,))[1], (z,), (1 + 0j,))
    np.testing.assert_allclose(along, complex(mpmath.psi(2, z)), rtol=1e-12)


def test_derivatives_that_nobody_knows_are_nan() -> None:
    assert np.isnan(nb.grad(lambda v: sp.jv(v, 1.5))(0.5))
    assert np.isnan(nb.grad(lambda a: sp.hyp1f1(a, 2.0, 0.5))(1.5))
    by_x = nb.jit(nb.grad(lambda v, x: sp.jv(v, x), 1))(0.5, 1.5)
    np.testing.assert_allclose(by_x, sp.jvp(0.5, 1.5), rtol=1e-13)


def test_integer_orders_are_constants() -> None:
    orders = np.array([0, 1, 2, 5])
    for name, slope in (("jv", sp.jvp), ("yv", sp.yvp), ("iv", sp.ivp), ("kv", sp.kvp)):
        got = nb.jacfwd(partial(getattr(sp, name), orders))(1.7)
        np.testing.assert_allclose(got, slope(orders, 1.7), rtol=1e-13)


def test_what_is_no_order_or_dimension() -> None:
    with pytest.raises(RangeError, match="order of 0 or more"):
        nb.ops.polygamma(-1, 1.0)
    with pytest.raises(RangeError, match="dimension of 1 or more"):
        nb.ops.multigammaln(3.0, 0)
    with pytest.raises(DtypeError, match="integer"):
        nb.ops.polygamma(1.5, 1.0)


def test_values_are_those_of_scipy() -> None:
    x = np.array([-1.5, -1.0, 0.0, 0.5, 3.0, np.inf, np.nan])
    for name in ("gamma", "erfcx", "dawsn", "k0e", "j0", "exp1", "ndtri", "loggamma", "rgamma"):
        want = getattr(sp, name)(x)
        np.testing.assert_array_equal(nb.vjp(getattr(sp, name), x)[0], want, err_msg=name)
    np.testing.assert_allclose(nb.ops.comb(x[:, None], x[:-2]).asnumpy(), sp.comb(x[:, None], x[:-2]), rtol=1e-15)
    np.testing.assert_allclose(nb.ops.factorial(x).asnumpy(), sp.factorial(x), rtol=1e-15)
    np.testing.assert_allclose(nb.ops.multigammaln(np.array([1.6, 7.0]), 4).asnumpy(), sp.multigammaln([1.6, 7.0], 4))


TAILS: list[tuple[str, str, float, tuple[float, ...], float]] = [
    # The slope is minus the hazard rate, or the reversed one.
    ("expon", "logsf", 800.0, (), -1.0),
    ("logistic", "logsf", 800.0, (), -1.0),
    ("logistic", "logcdf", -800.0, (), 1.0),
    ("gumbel_r", "logcdf", -9.0, (), math.exp(9.0)),
    ("gumbel_l", "logsf", 9.0, (), -math.exp(9.0)),
    ("rayleigh", "logsf", 50.0, (), -50.0),
    ("weibull_min", "logsf", 40.0, (2.0,), -80.0),
    ("weibull_max", "logcdf", -40.0, (2.0,), 80.0),
    ("gompertz", "logsf", 3.0, (0.7,), -0.7 * math.exp(3.0)),
    ("pareto", "logsf", 1e100, (2.0,), -2e-100),
    ("lomax", "logsf", 1e100, (2.0,), -2e-100),
    ("genextreme", "logcdf", -99.0, (0.5,), (1 + 0.5 * 99)),
    ("norm", "logcdf", 3.0, (), 0.0044378),
    ("expon", "logsf", -1.0, (), 0.0),
    ("weibull_max", "logcdf", 1.0, (2.0,), 0.0),
]


@pytest.mark.parametrize(("name", "method", "x", "shapes", "want"), TAILS)
def test_logarithms_of_tails(name: str, method: str, x: float, shapes: tuple[float, ...], want: float) -> None:
    function = getattr(getattr(scipy.stats, name), method)
    converted = nb.differentiable_source(lambda v: getattr(getattr(scipy.stats, name), method)(v, *shapes))
    value, slope = nb.value_and_grad(converted)(x)
    np.testing.assert_allclose(value, function(x, *shapes), rtol=1e-12)
    np.testing.assert_allclose(slope, want, rtol=1e-5)


def jacobi(kind: str) -> Any:
    return lambda u, m: mpmath.ellipfun(kind, u, m=m)


ELLIPTIC: list[tuple[str, Any, Any, tuple[float, ...]]] = [
    # Equal arguments, of which differences would be 0 / 0, and arguments of very different sizes.
    *[("elliprc", sp.elliprc, mpmath.elliprc, at) for at in [(0.7, 0.7), (0.0, 0.5), (1.3, -0.4), (1e-9, 3e4)]],
    *[("elliprf", sp.elliprf, mpmath.elliprf, at) for at in [(0.7, 0.7, 0.7), (1e-9, 2.0, 3e5), (1e-150, 1.0, 1e150)]],
    *[("elliprd", sp.elliprd, mpmath.elliprd, at) for at in [(0.7, 0.7, 0.7), (2.0, 1e-9, 3e5), (0.7, 2.0, 0.7)]],
    *[("elliprg", sp.elliprg, mpmath.elliprg, at) for at in [(0.7, 0.7, 0.7), (2.0, 1e-9, 3e5)]],
    *[("elliprj", sp.elliprj, mpmath.elliprj, at) for at in [(0.7, 0.7, 0.7, 0.7), (2.0, 1e-9, 3e5, 0.1)]],
    # No parameter, a small one, and more than a half period.
    *[("ellipkinc", sp.ellipkinc, mpmath.ellipf, at) for at in [(0.7, 0.0), (5.3, 1e-9), (-2.0, -3.0), (1.5, 0.999)]],
    *[("ellipeinc", sp.ellipeinc, mpmath.ellipe, at) for at in [(0.7, 0.0), (5.3, 1e-9), (-2.0, -3.0), (1.5, 0.999)]],
    *[
        (kind, lambda u, m, k=k: sp.ellipj(u, m)[k], jacobi(kind), at)
        for k, kind in enumerate(["sn", "cn", "dn"])
        for at in [(0.7, 0.0), (5.3, 1e-9), (-2.0, 0.3), (1.5, 0.999)]
    ],
]


@pytest.mark.parametrize(("name", "function", "exact", "at"), ELLIPTIC)
def test_slopes_of_elliptic_functions(name: str, function: Any, exact: Any, at: tuple[float, ...]) -> None:
    """First and second derivatives; those by an argument that is 0 are one-sided or infinite, and are left out."""
    with mpmath.workdps(50):
        for k, value in enumerate(at):
            if value == 0 and name.startswith("ellipr"):
                continue

            def along(x: Any, k: int = k) -> Any:
                return exact(*at[:k], x, *at[k + 1 :])

            wanted: Any = lambda order, value=value, along=along: float(  # noqa: E731
                mpmath.re(mpmath.diff(along, mpmath.mpf(value), order, h=mpmath.mpf(10) ** -15 * (abs(value) or 1)))
            )
            slope = nb.grad(function, k)
            np.testing.assert_allclose(slope(*at), wanted(1), rtol=3e-12, atol=1e-300)
            curved = nb.grad(lambda x, slope=slope, k=k: slope(*at[:k], x, *at[k + 1 :]))(value)
            np.testing.assert_allclose(curved, wanted(2), rtol=3e-10, atol=1e-300)


POLYNOMIALS = {
    # Values by hypergeometric functions, which mpmath has for any degree.
    "eval_legendre": (mpmath.legendre, ()),
    "eval_chebyt": (mpmath.chebyt, ()),
    "eval_chebyu": (mpmath.chebyu, ()),
    "eval_gegenbauer": (mpmath.gegenbauer, (1.3,)),
    "eval_jacobi": (mpmath.jacobi, (0.4, 1.7)),
    "eval_genlaguerre": (mpmath.laguerre, (0.6,)),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_slopes_of_orthogonal_functions_of_any_degree(name: str) -> None:
    """Of degrees that are no whole numbers, also below 1, where polynomials are constant."""
    exact, parameters = POLYNOMIALS[name]
    function = getattr(sp, name)
    for degree in (-2.3, -1.3, -0.5, 0.0, 0.5, 0.99, 1.0, 2.1, 3.0):
        for x in (0.45, -0.3):
            wanted = float(mpmath.diff(lambda t, n=degree: exact(n, *parameters, t), x).real)
            found = nb.grad(lambda t, n=degree: function(n, *parameters, t))(x)
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("name", "mirrored", "sign"), [("eval_legendre", -1, 1), ("eval_chebyu", -2, -1)])
@pytest.mark.parametrize("kind", [int, float])
def test_slopes_of_negative_whole_degrees(name: str, mirrored: int, sign: int, kind: type) -> None:
    """P(-n-1) is P(n), and U(-n-2) is -U(n)."""
    function = getattr(sp, name)
    for degree in (0, 1, 2, 3):
        other = kind(mirrored - degree)
        found = nb.grad(lambda t, n=other: function(n, t))(0.45)
        np.testing.assert_allclose(found, sign * nb.grad(lambda t, n=degree: function(n, t))(0.45), atol=1e-14)


def test_objects_of_constants_take_recorded_values() -> None:
    """Made inside of the function, where SciPy's own function makes them of plain arrays, and outside."""
    places = np.arange(5.0)
    spline = nb.differentiable_source(lambda x: scipy.interpolate.make_interp_spline(places, places**2)(x))
    np.testing.assert_allclose(nb.grad(spline)(1.5), 3.0)
    matrix = scipy.sparse.csc_array(np.array([[3.0, 1.0, 0.0], [0.0, 4.0, 2.0], [1.0, 0.0, 5.0]]))
    made = scipy.sparse.linalg.splu(matrix)
    weights = np.array([1.0, 2.0, 3.0])
    for trans, wanted in (("N", matrix.T), ("T", matrix), ("H", matrix)):
        for factors in (lambda: made, lambda: scipy.sparse.linalg.splu(matrix)):
            solve = nb.differentiable_source(lambda b, f=factors, t=trans: np.sum(f().solve(b, t) * weights))
            np.testing.assert_allclose(nb.grad(solve)(weights), np.linalg.solve(wanted.toarray(), weights))
    factorized = nb.differentiable_source(lambda b: np.sum(scipy.sparse.linalg.factorized(matrix)(b) * weights))
    expected = np.linalg.solve(matrix.toarray().T, weights)
    np.testing.assert_allclose(nb.grad(factorized)(weights), expected)
    square = nb.differentiable_source(lambda b: np.sum(np.abs(made.solve(b + 1j * weights)) ** 2))
    solution = np.linalg.solve(matrix.toarray(), weights)
    np.testing.assert_allclose(nb.grad(square)(weights), 2 * np.linalg.solve(matrix.toarray().T, solution))
    np.testing.assert_allclose(nb.jvp(square, weights, weights)[1], 2 * solution @ solution)


@pytest.mark.parametrize("name", ["cg", "gmres", "bicgstab"])
def test_iterations_with_sparse_matrices_of_recorded_values(name: str) -> None:
    places = np.arange(3)

    def total(v: Any) -> Any:
        matrix = scipy.sparse.csr_array((v, (places, places)), shape=(3, 3))
        return np.sum(getattr(scipy.sparse.linalg, name)(matrix, np.ones(3), rtol=1e-12)[0])

    v = np.array([2.0, 4.0, 5.0])
    np.testing.assert_allclose(nb.grad(nb.differentiable_source(total))(v), -1 / v**2, rtol=1e-9)


def test_options_that_change_nothing() -> None:
    from scipy.linalg.lapack import dgtsv
    from scipy.optimize import curve_fit

    off = np.ones(2)
    solved = nb.differentiable_source(lambda d: np.sum(dgtsv(off, d, off, np.ones(3), overwrite_b=1)[3]))
    matrix = np.diag(np.full(3, 4.0)) + np.diag(off, 1) + np.diag(off, -1)
    solution = np.linalg.solve(matrix, np.ones(3))
    np.testing.assert_allclose(nb.grad(solved)(np.full(3, 4.0)), -(solution**2))
    x = np.linspace(0, 1, 9)
    line = nb.differentiable_source(
        lambda y: curve_fit(lambda x, a, b: a * x + b, x, y, p0=[1.0, 1.0], ftol=1e-12, maxfev=500)[0][0]
    )
    np.testing.assert_allclose(nb.grad(line)(3 * x + 1), (x - x.mean()) / np.sum((x - x.mean()) ** 2), atol=1e-9)


class Holder:
    """An object that holds a factorisation, and a method of one."""

    def __init__(self, matrix: Any) -> None:
        self.factors = scipy.sparse.linalg.splu(matrix)
        self.solve = self.factors.solve

    def both(self, b: Any) -> Any:
        return np.sum(self.factors.solve(b)) + np.sum(self.solve(b))


def test_factorisations_that_are_held_elsewhere() -> None:
    matrix = scipy.sparse.csc_array(np.diag([2.0, 3.0, 4.0]))
    solve, held = scipy.sparse.linalg.factorized(matrix), Holder(matrix)
    wanted = 1 / np.array([2.0, 3.0, 4.0])
    for function, expected in (
        (lambda b: np.sum(solve(b)), wanted),
        (lambda b: np.sum(held.factors.solve(b)), wanted),
        (lambda b: np.sum(held.solve(b)), wanted),
        (held.both, 2 * wanted),
    ):
        np.testing.assert_allclose(nb.grad(nb.differentiable_source(function))(np.ones(3)), expected)


def test_grids_and_knots_out_of_order() -> None:
    """SciPy refuses them, and turns grids that fall."""
    y = np.array([0.0, 1.0, 4.0, 9.0])
    grid: Any = scipy.interpolate.RegularGridInterpolator
    falling, mixed = np.array([3.0, 2.0, 1.0, 0.0]), np.array([0.0, 2.0, 1.0, 3.0])

    def at(points: Any) -> Any:
        return nb.differentiable_source(lambda y: grid((points,), y)(np.array([[1.25]]))[0])

    np.testing.assert_allclose(nb.value_and_grad(at(falling))(y)[0], grid((falling,), y)([[1.25]])[0])
    np.testing.assert_allclose(nb.grad(at(falling))(y), [0.0, 0.25, 0.75, 0.0])
    plane = np.arange(12.0).reshape(4, 3) ** 2
    both = nb.differentiable_source(lambda v: grid((falling, np.array([5.0, 3.0, 0.0])), v)(np.array([[1.25, 4.0]]))[0])
    np.testing.assert_allclose(nb.jit(both)(plane), grid((falling, [5.0, 3.0, 0.0]), plane)([[1.25, 4.0]])[0])
    with pytest.raises(RangeError, match="abscissae that rise"):
        nb.grad(at(mixed))(y)
    knots = np.array([0.0, 2.0, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    spline = nb.differentiable_source(lambda c: scipy.interpolate.BSpline(knots, c, 3)(1.5))
    with pytest.raises(RangeError, match="knots that do not fall"):
        nb.grad(spline)(y)
    with pytest.raises(RangeError, match="finite"):
        nb.grad(nb.differentiable_source(lambda y: scipy.interpolate.CubicSpline(np.arange(4.0), y)(1.5)))(
            np.array([0.0, np.nan, 1.0, 2.0])
        )
