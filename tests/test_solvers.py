"""Roots, fixed points, minimisers and linear systems: derivatives against formulas on paper and differences."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg

import nbgrad as nb
from nbgrad import solvers
from nbgrad.errors import ArgumentError, DtypeError, ShapeError, TracedValueError
from nbgrad.solvers.host_solves import ConvergenceError
from nbgrad.solvers.linear_solves import METHODS

pytestmark = pytest.mark.unoptimized(but=16)

EIGHT = 8.0
ROOT, SLOPE, BEND = 2.0, 1 / 12, -2 / 9 * 8.0 ** (-5 / 3)
"""The cube root at 8, its slope and its second derivative."""


def _newton(g: Any, x: Any) -> Any:
    for _ in range(30):
        x = x - g(x) * 2e-6 / (g(x + 1e-6) - g(x - 1e-6))
    return x


CUBE_ROOTS: dict[str, Callable[[Any], Any]] = {
    "root": lambda a: solvers.root(lambda x: x**3 - a, [1.0], tol=1e-14).x[0],
    "root with args": lambda a: solvers.root(lambda x, a: x**3 - a, [1.0], (a,), tol=1e-14).x[0],
    "root by lm": lambda a: solvers.root(lambda x: [x[0] ** 3 - a], 1.0, method="lm", tol=1e-14).x[0],
    "root by krylov": lambda a: solvers.root(lambda x: x**3 - a, [1.5], method="krylov", tol=1e-13).x[0],
    "root by gmres": lambda a: solvers.root(lambda x: x**3 - a, [1.0], tol=1e-14, linear_solver="gmres").x[0],
    "root with a pair": lambda a: solvers.root(lambda x: (x**3 - a, None), [1.0], jac=True, tol=1e-14).x[0],
    "brentq": lambda a: solvers.brentq(lambda x: x**3 - a, 0.0, 9.0),
    "bisect": lambda a: solvers.root_scalar(lambda x: x**3 - a, method="bisect", bracket=(0.0, 9.0), xtol=1e-15).root,
    "newton's method": lambda a: solvers.root_scalar(lambda x: x**3 - a, x0=1.0, xtol=1e-14).root,
    "halley": lambda a: solvers.root_scalar(lambda x: x**3 - a, x0=1.0, method="halley", xtol=1e-14).root,
    "secant": lambda a: solvers.root_scalar(lambda x, a: x**3 - a, (a,), x0=1.0, x1=2.0, xtol=1e-14).root,
    "newton": lambda a: solvers.newton(lambda x: x**3 - a, 1.0, tol=1e-14),
    "fixed point": lambda a: solvers.fixed_point(lambda x: (2 * x + a / x**2) / 3, 1.0),
    "iteration": lambda a: solvers.fixed_point(lambda x: (2 * x + a / x**2) / 3, 1.0, method="iteration"),
    "custom root": lambda a: nb.custom_root(lambda x: x**3 - a, 1.0, _newton),
    "least squares": lambda a: solvers.least_squares(lambda x: x**3 - a, [1.0], xtol=1e-15, ftol=1e-15).x[0],
    "minimize": lambda a: solvers.minimize(lambda x: x[0] ** 4 / 4 - a * x[0], [1.0], tol=1e-8).x[0],
    "newton-cg": lambda a: solvers.minimize(lambda x: x[0] ** 4 / 4 - a * x[0], 1.5, method="Newton-CG", tol=1e-8).x[0],
    "trust-exact": lambda a: solvers.minimize(
        lambda x: x[0] ** 4 / 4 - a * x[0], [1.0], method="trust-exact", tol=1e-7
    ).x[0],
}


@pytest.mark.parametrize("name", CUBE_ROOTS)
def test_cube_roots(name: str) -> None:
    f = CUBE_ROOTS[name]
    assert float(f(EIGHT)) == pytest.approx(ROOT, rel=1e-7)
    assert nb.grad(f)(EIGHT) == pytest.approx(SLOPE, rel=1e-6)
    assert nb.jvp(f, (EIGHT,), (2.0,))[1] == pytest.approx(2 * SLOPE, rel=1e-6)
    assert nb.grad(nb.grad(f))(EIGHT) == pytest.approx(BEND, rel=1e-5)


def test_all_of_them_compiled_and_mapped() -> None:
    fast = nb.jit(lambda a: [nb.grad(f)(a) for f in CUBE_ROOTS.values()])
    np.testing.assert_allclose(fast(EIGHT), SLOPE, rtol=1e-6)
    fast(27.0)  # a method may need a Hessian for some values only
    before = dict(nb.counters)
    np.testing.assert_allclose(fast(1.0), 1 / 3, rtol=1e-6)
    assert nb.counters == before and fast.compiled_signatures == 1, "another parameter compiles nothing"
    many = np.array([1.0, 8.0, 27.0])
    for name in ("root", "brentq", "fixed point"):
        np.testing.assert_allclose(nb.vmap(nb.grad(CUBE_ROOTS[name]))(many), many ** (-2 / 3) / 3, rtol=1e-6)


# ----- Systems -----


def test_keplers_equation() -> None:
    m, e = np.array([0.1, 1.0, 2.5]), 0.3

    def anomaly(e: Any, m: Any) -> Any:
        return solvers.newton(lambda E: E - e * np.sin(E) - m, m, tol=1e-14)

    exact = [float(mpmath.findroot(lambda E, k=k: E - e * mpmath.sin(E) - k, k)) for k in m]
    np.testing.assert_allclose(anomaly(e, m), exact, rtol=1e-12)
    slope = np.sin(exact) / (1 - e * np.cos(exact))
    np.testing.assert_allclose(nb.jacfwd(anomaly)(e, m), slope, rtol=1e-11)
    np.testing.assert_allclose(nb.jacrev(anomaly, 1)(e, m), np.diag(1 / (1 - e * np.cos(exact))), atol=1e-12)

    def bend(k: float) -> float:
        return float(mpmath.diff(lambda e: mpmath.findroot(lambda E: E - e * mpmath.sin(E) - k, k), e, 2))

    np.testing.assert_allclose(nb.jacfwd(nb.jacfwd(anomaly))(e, m), [bend(k) for k in m], rtol=1e-6)


def test_systems_that_close_over_arrays() -> None:
    rng = np.random.default_rng(1)
    w, b = 0.3 * rng.normal(size=(3, 3)), rng.normal(size=3)

    def equilibrium(w: Any, b: Any) -> Any:
        return np.sum(
            solvers.fixed_point(lambda x: np.tanh(w @ x + b), np.zeros(3), method="iteration", xtol=1e-14) ** 2
        )

    x = np.zeros(3)
    for _ in range(200):
        x = np.tanh(w @ x + b)
    inner = np.diag(1 - x**2)
    adjoint = np.linalg.solve(np.eye(3) - (inner @ w).T, 2 * x)
    found = nb.grad(equilibrium, (0, 1))(w, b)
    np.testing.assert_allclose(found[0], np.outer(inner @ adjoint, x), rtol=1e-9)
    np.testing.assert_allclose(found[1], inner @ adjoint, rtol=1e-9)
    nb.check_grads(lambda b: equilibrium(w, b), (b,), order=2)


def test_parameters_of_cells() -> None:
    weight = nb.Parameter(np.array([1.0, 2.0]), name="w")

    class Solved(nb.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = weight

        def construct(self, x: Any) -> Any:
            return np.sum(solvers.root(lambda z: z**3 * self.w - x, np.ones(2)).x)

    net = Solved()
    gradient = nb.grad(net, 0, [weight])
    for g in (gradient, nb.jit(gradient)):
        by_x, (by_w,) = g(nb.Tensor([1.0, 2.0]))
        np.testing.assert_allclose(by_x.asnumpy(), [1 / 3, 1 / 6], rtol=1e-6)
        np.testing.assert_allclose(by_w.asnumpy(), [-1 / 3, -1 / 6], rtol=1e-9)


@pytest.mark.parametrize("method", [None, "L-BFGS-B", "TNC", "SLSQP", "Nelder-Mead", "CG", "trust-krylov", "dogleg"])
def test_quadratic_programs(method: str | None) -> None:
    h, c = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, -1.0])
    options = {"xatol": 1e-10, "fatol": 1e-14} if method == "Nelder-Mead" else {}

    def lowest(c: Any) -> Any:
        return solvers.minimize(lambda x: x @ h @ x / 2 - c @ x, np.zeros(2), method=method, options=options).x

    np.testing.assert_allclose(lowest(c), np.linalg.solve(h, c), atol=1e-5)
    np.testing.assert_allclose(nb.jacrev(lowest)(c), np.linalg.inv(h), rtol=1e-9)


def test_active_bounds_move_the_minimiser() -> None:
    # x[0] is 1 - x[1] / 2, and x[1] is on its bound.
    def lowest(b: Any) -> Any:
        return solvers.minimize(
            lambda x: (x[0] - 1) ** 2 + (x[1] - 2) ** 2 + x[0] * x[1], np.zeros(2), bounds=[(None, None), (0.0, b)]
        ).x

    np.testing.assert_allclose(nb.jacfwd(lowest)(0.5), [-0.5, 1.0], atol=1e-8)
    np.testing.assert_allclose(nb.jacfwd(lowest)(9.0), [0.0, 0.0], atol=1e-8)

    def nearest(b: Any) -> Any:
        return solvers.least_squares(
            lambda x: np.stack([x[0] - 3.0, x[1] - 1.0, x[0] + x[1]]), [0.5, 0.5], bounds=(0.0, b)
        ).x

    # With x[0] on its bound b, x[1] is (1 - b) / 2.
    np.testing.assert_allclose(nb.jacrev(nearest)(0.8), [1.0, -0.5], atol=1e-6)


@pytest.mark.parametrize("method", ["brent", "golden"])
def test_minima_of_one_number(method: str) -> None:
    # exp(a x) - x is lowest at -log(a) / a.
    def lowest(a: Any) -> Any:
        return solvers.minimize_scalar(lambda x: np.exp(a * x) - x, method=method).x

    a, slope = 0.7, (np.log(0.7) - 1) / 0.7**2
    for function in (nb.grad(lowest), nb.jit(nb.grad(lowest)), lambda a: nb.jvp(lowest, (a,), (1.0,))[1]):
        np.testing.assert_allclose(function(a), slope, rtol=1e-6)
    np.testing.assert_allclose(nb.grad(nb.grad(lowest))(a), (3 - 2 * np.log(a)) / a**3, rtol=1e-6)


def test_a_bound_of_one_number() -> None:
    def nearest(a: Any, low: Any) -> Any:
        return solvers.minimize_scalar(lambda x: (x - a) ** 2, bounds=(low, 5.0)).x

    assert nb.value_and_grad(nearest, (0, 1))(1.0, 2.0) == (2.0, (0.0, 1.0))
    np.testing.assert_allclose(nb.grad(nearest, (0, 1))(3.0, 2.0), (1.0, 0.0), atol=1e-9)


def test_fits_that_stay_positive() -> None:
    """With the active element at 0, the rest is the fit without it (Lawson and Hanson 1974, chapter 23)."""
    rng = np.random.default_rng(3)
    a = rng.normal(size=(6, 3))
    b = a @ [1.0, 0.5, -1.0]
    fit = nb.differentiable_source(lambda b: scipy.optimize.nnls(a, b)[0])
    np.testing.assert_allclose(fit(b)[2], 0.0)
    np.testing.assert_allclose(nb.jacrev(fit)(b)[:2], np.linalg.pinv(a[:, :2]), atol=1e-12)
    np.testing.assert_allclose(nb.jacrev(fit)(b)[2], 0.0)


def test_residuals_that_stay() -> None:
    t = np.linspace(0.0, 1.0, 6)
    data = 2 * np.exp(-3 * t) + 0.1 * np.sin(40 * t)

    def rate(data: Any) -> Any:
        found = solvers.least_squares(
            lambda x: x[0] * np.exp(-x[1] * t) - data, np.ones(2), xtol=1e-15, ftol=1e-15, gtol=1e-15
        )
        return found.x[1]

    found, step = nb.grad(rate)(data), 1e-4
    for k in range(6):
        moved = step * np.eye(6)[k]
        assert found[k] == pytest.approx((rate(data + moved) - rate(data - moved)) / (2 * step), rel=1e-5)


def test_fits_of_curves() -> None:
    rng = np.random.default_rng(3)
    t = np.linspace(0.0, 2.0, 8)
    data, sigma = 2 * np.exp(-1.5 * t) + 0.05 * rng.normal(size=8), np.linspace(0.5, 1.0, 8)

    def curve(t: Any, a: Any, b: Any) -> Any:
        return a * np.exp(-b * t)

    for options in ({}, {"sigma": sigma}, {"sigma": sigma, "absolute_sigma": True}, {"bounds": (0.0, 9.0)}):
        for ours, theirs in zip(
            solvers.curve_fit(curve, t, data, **options),
            scipy.optimize.curve_fit(curve, t, data, **options),
            strict=True,
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4)

    def error_of_rate(data: Any) -> Any:
        return solvers.curve_fit(curve, t, data, xtol=1e-15, ftol=1e-15, gtol=1e-15)[1][1, 1]

    found, moved = nb.grad(error_of_rate)(data), 1e-4 * np.eye(8)[2]
    assert found[2] == pytest.approx((error_of_rate(data + moved) - error_of_rate(data - moved)) / 2e-4, rel=1e-5)


# ----- Linear systems -----


@pytest.mark.parametrize("method", METHODS)
def test_linear_systems(method: str) -> None:
    rng = np.random.default_rng(2)
    a = rng.normal(size=(4, 4)) + 4 * np.eye(4)
    a, b = (a @ a.T if method in ("cg", "minres") else a), rng.normal(size=4)

    def solved(k: Any, b: Any) -> Any:
        return solvers.linear_solve(
            lambda v: k * (a @ v), b, method=method, rtol=1e-15 if method == "minres" else 1e-13
        )

    x = np.linalg.solve(2 * a, b)
    np.testing.assert_allclose(solved(2.0, b), x, rtol=1e-9)
    np.testing.assert_allclose(nb.jacrev(solved, 1)(2.0, b), np.linalg.inv(2 * a), rtol=1e-8)
    np.testing.assert_allclose(nb.jacfwd(solved)(2.0, b), -x / 2, rtol=1e-9)
    second = nb.grad(nb.grad(lambda k: np.sum(solved(k, b))))
    assert second(2.0) == pytest.approx(np.sum(x) / 2, rel=1e-8)
    matrices = nb.grad(lambda a: np.sum(solvers.linear_solve(lambda v: a @ v, b, method="gmres", rtol=1e-13)))(a)
    np.testing.assert_allclose(matrices, -np.outer(np.linalg.solve(a.T, np.ones(4)), np.linalg.solve(a, b)), rtol=1e-8)


@pytest.mark.parametrize("method", ["cg", "gmres", "bicgstab", "dense"])
def test_complex_systems(method: str) -> None:
    rng = np.random.default_rng(6)
    a, b, w = rng.normal(size=(4, 4, 2)), rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    a, b, w = (one[..., 0] + 1j * one[..., 1] for one in (a, b, w))
    a = a @ a.conj().T + np.eye(4) if method == "cg" else a + 4 * np.eye(4)

    def solved(k: Any, b: Any) -> Any:
        inverse = None if method == "dense" else lambda v: v / (k * np.diag(a))
        return solvers.linear_solve(
            lambda v: k * (a @ v), b, method=method, x0=0.1 * b, rtol=1e-13, preconditioner=inverse
        )

    x = np.linalg.solve(2 * a, b)
    np.testing.assert_allclose(solved(2.0, b), x, rtol=1e-9)
    np.testing.assert_allclose(nb.jit(solved)(2.0, b), x, rtol=1e-9)
    np.testing.assert_allclose(nb.jacfwd(solved)(2.0, b), -x / 2, rtol=1e-9)
    pulled = nb.vjp(solved, 2.0, b)[1](w)
    np.testing.assert_allclose(pulled[0], np.sum(np.real(w * np.conj(-x / 2))), rtol=1e-9)
    np.testing.assert_allclose(pulled[1], np.linalg.solve((2 * a).conj().T, w), rtol=1e-9)


@pytest.mark.parametrize("method", ["cg", "gmres", "bicgstab", "dense"])
def test_preconditioned_systems(method: str) -> None:
    """A hundred unknowns of all magnitudes, of which the diagonal knows most: few turns, and the same derivatives."""
    rng = np.random.default_rng(3)
    scales, rest, b = np.logspace(0, 5, 100), 0.02 * rng.normal(size=(100, 100)), rng.normal(size=100)
    rest = rest + rest.T if method == "cg" else rest

    def matrix(k: Any) -> Any:
        return np.diag(scales) + k * rest

    def solved(k: Any, b: Any, known: bool = True, maxiter: int = 30) -> Any:
        options: Any = {"method": method, "rtol": 1e-13, "maxiter": maxiter}
        inverse = (lambda v: v / (scales + k * np.diag(rest))) if known else None
        return solvers.linear_solve(lambda v: scales * v + k * (rest @ v), b, preconditioner=inverse, **options)

    x = np.linalg.solve(matrix(2.0), b)
    np.testing.assert_allclose(solved(2.0, b), x, rtol=1e-9)
    # dx/dk = -A^-1 rest x, and the second derivative is 2 A^-1 rest A^-1 rest x.
    slope = np.linalg.solve(matrix(2.0), rest @ x)
    for transformed in (nb.jacfwd(solved), nb.jit(nb.jacfwd(solved))):
        np.testing.assert_allclose(transformed(2.0, b), -slope, rtol=1e-8, atol=1e-12)
    total = nb.grad(lambda k, b: np.sum(solved(k, b) * b), (0, 1))
    by_k, by_b = total(2.0, b)
    assert by_k == pytest.approx(-slope @ b, rel=1e-9)
    np.testing.assert_allclose(by_b, x + np.linalg.solve(matrix(2.0).T, b), rtol=1e-8, atol=1e-12)
    second = nb.grad(nb.grad(lambda k: np.sum(solved(k, b) * b)))(2.0)
    assert second == pytest.approx(2 * np.linalg.solve(matrix(2.0), rest @ slope) @ b, rel=1e-8)
    if method != "dense":
        with pytest.raises(ConvergenceError):
            solved(2.0, b, known=False, maxiter=1 if method == "gmres" else 30)


@pytest.mark.parametrize("method", ["del2", "iteration"])
def test_iterations_stop_where_scipys_do(method: str) -> None:
    def cosine(x: Any) -> Any:
        return np.cos(np.array([0.3, 0.9, 0.0]) * x)

    start, xtol = np.array([0.7, 0.0, 1.0]), 1e-2
    theirs = scipy.optimize.fixed_point(cosine, start, xtol=xtol, method=method)
    np.testing.assert_allclose(solvers.fixed_point(cosine, start, xtol=xtol, method=method), theirs, rtol=1e-13)


def test_conjugate_gradients_stop_where_scipys_do() -> None:
    a, b = np.diag(np.arange(1.0, 20.0)) + 0.1, np.ones(19)
    theirs, x0 = scipy.sparse.linalg.cg, np.arange(19.0)
    for rtol, start in ((1e-2, None), (1e-5, x0)):
        found = solvers.linear_solve(lambda v: a @ v, b, method="cg", rtol=rtol, x0=start)
        np.testing.assert_allclose(found, theirs(a, b, rtol=rtol, x0=start)[0], rtol=1e-10)
    assert not solvers.linear_solve(lambda v: a @ v, 0 * b, method="cg", x0=x0).any()


# ----- Inside code that is converted -----

K = scipy.sparse.diags_array([[-1.0] * 3, [3.0] * 4, [-1.0] * 3], offsets=[-1, 0, 1]).tocsr()
INVERSE = np.linalg.inv(K.toarray())


def _operator(k: Any) -> Any:
    made: Any = scipy.sparse.linalg.LinearOperator
    operator = made((4, 4), matvec=lambda v: k * v, dtype=np.float64)
    return np.sum(scipy.sparse.linalg.gmres(operator, np.ones(4), rtol=1e-12)[0])


CONVERTED: dict[str, tuple[Callable[[Any], Any], float]] = {
    "brentq": (lambda a: scipy.optimize.brentq(lambda z: z**3 - a, 0, 5), SLOPE),
    "ridder": (lambda a: scipy.optimize.ridder(lambda z: z**3 - a, 0, 5), SLOPE),
    "fsolve": (lambda a: scipy.optimize.fsolve(lambda z: z**3 - a, 1.0)[0], SLOPE),
    "newton": (lambda a: scipy.optimize.newton(lambda z: z**3 - a, 1.0), SLOPE),
    "root": (lambda a: scipy.optimize.root(lambda z: z**3 - a, [1.0]).x[0], SLOPE),
    "root_scalar": (lambda a: scipy.optimize.root_scalar(lambda z: z**3 - a, bracket=[0, 5]).root, SLOPE),
    "fixed_point": (lambda a: scipy.optimize.fixed_point(lambda z: (2 * z + a / z**2) / 3, 1.0), SLOPE),
    "minimize": (lambda a: scipy.optimize.minimize(lambda z: (z[0] - a) ** 2, [1.0]).x[0], 1.0),
    "least_squares": (lambda a: scipy.optimize.least_squares(lambda z: z - a, [1.0]).x[0], 1.0),
    "curve_fit": (
        lambda a: scipy.optimize.curve_fit(lambda t, k: k * t, np.ones(2), a * np.array([1.0, 3.0]))[0][0],
        2.0,
    ),
    "cg": (lambda a: np.sum(scipy.sparse.linalg.cg(K, a * np.ones(4), rtol=1e-12)[0]), float(INVERSE.sum())),
    "gmres by an operator": (_operator, -4 / 64),
    "a root of constants": (lambda a: a * scipy.optimize.brentq(lambda z: z - 1 if z > 0 else -1.0, 0, 5), 1.0),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_scipys_own_names(name: str) -> None:
    f, slope = CONVERTED[name]
    converted = nb.differentiable_source(f)
    assert nb.grad(converted)(EIGHT) == pytest.approx(slope, rel=1e-7)
    assert float(converted(EIGHT)) == pytest.approx(float(f(EIGHT)), rel=1e-12), "without derivatives it is SciPy's"


def test_plain_calls_are_told_what_to_do() -> None:
    for f in (CONVERTED["brentq"][0], CONVERTED["minimize"][0]):
        with pytest.raises(TracedValueError, match=r"nb\.solvers\.(brentq|minimize) has derivatives"):
            nb.grad(f)(EIGHT)


# ----- Results, and what fails -----


def test_results_have_scipys_fields() -> None:
    plain = solvers.root(lambda x: x**3 - 8, [1.0])
    theirs = scipy.optimize.root(lambda x: x**3 - 8, [1.0], jac=lambda x: 3 * np.diag(x**2))
    assert plain.x == pytest.approx(theirs.x)
    assert (plain.success, plain.status, plain.message, plain["nfev"]) == (True, 1, theirs.message, theirs.nfev)
    assert type(plain.nfev) is int and type(plain.x) is np.ndarray
    inside = nb.jit(lambda a: solvers.root(lambda x: x**3 - a, [1.0]))(8.0)
    assert inside.status == 1 and inside.message == theirs.message and inside.x == pytest.approx(theirs.x)
    by_lm = nb.jit(lambda a: solvers.root(lambda x: x**3 - a, [1.0], method="lm"))(8.0)
    assert by_lm.message != inside.message == theirs.message, "each has the message of its own run"
    failed = solvers.root(lambda x: x**2 + 1, [1.0])
    assert not failed.success and "good progress" in failed.message
    again = pickle.loads(pickle.dumps(copy.deepcopy(plain)))
    assert again.x == plain.x and again.message == plain.message and type(again) is type(plain)
    with pytest.raises(AttributeError, match=r"root\(\) has no 'roots'; it has x, fun, success"):
        _ = plain.roots


def squared(v: Any) -> Any:
    return v * v


def _stuck(a: Any) -> Any:
    return solvers.root(lambda x: x**2 + a, [1.0]).x[0]


CURVATURES = {
    "linear": lambda u: np.ones_like(u),
    "soft_l1": lambda u: (1 + u**2) ** -1.5,
    "huber": lambda u: (np.abs(u) < 1) * 1.0,
    "cauchy": lambda u: (1 - u**2) / (1 + u**2) ** 2,
    "arctan": lambda u: (1 - 3 * u**4) / (1 + u**4) ** 2,
}
"""The second derivatives of the losses by the residual, in units of the scale."""


@pytest.mark.parametrize("loss", CURVATURES)
def test_robust_means(loss: str) -> None:
    """The mean moves with each number by its part of the curvature of the cost."""
    data, scale = np.array([0.1, 0.4, -0.2, 3.0, 0.25, -1.5]), 0.7
    given: dict[str, Any] = {"loss": loss, "f_scale": scale, "xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}

    def mean(d: Any) -> Any:
        return solvers.least_squares(lambda x: x - d, [0.1], **given)

    known = scipy.optimize.least_squares(lambda x: x - data, [0.1], **given)
    np.testing.assert_allclose(mean(data).x, known.x, atol=1e-7)
    np.testing.assert_allclose(mean(data).cost, known.cost, rtol=1e-12)
    parts = CURVATURES[loss]((known.x - data) / scale)
    np.testing.assert_allclose(nb.grad(lambda d: mean(d).x[0])(data), parts / parts.sum(), atol=1e-6)


FAILURES: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (
        ConvergenceError,
        r"root\(\) has not converged \(SciPy's status \d: .*no derivative",
        lambda: nb.grad(_stuck)(1.0),
    ),
    (ConvergenceError, r"root\(\) has not converged", lambda: nb.jit(nb.grad(_stuck))(1.0)),
    (ConvergenceError, "newton.*50 iterations", lambda: solvers.newton(lambda x: x**2 + 1, 1.0)),
    (ConvergenceError, "brentq.*converge", lambda: solvers.brentq(lambda x: x**3 - 8, 0.0, 9.0, maxiter=2)),
    (
        ConvergenceError,
        r"fixed_point\(\)",
        lambda: solvers.fixed_point(lambda x: x + 1, 1.0, method="iteration", maxiter=9),
    ),
    (
        ConvergenceError,
        r"cg has not converged in linear_solve\(\) \(SciPy's info 1\)",
        lambda: solvers.linear_solve(lambda v: np.array([1.0, 50.0, 900.0]) * v, np.ones(3), method="cg", maxiter=1),
    ),
    (
        ConvergenceError,
        "not finite",
        lambda: nb.grad(lambda a: nb.custom_root(lambda x: x - a, 1.0, lambda g, x: x * np.nan))(1.0),
    ),
    (
        np.linalg.LinAlgError,
        "singular.*no derivative",
        lambda: nb.grad(lambda a: solvers.root(lambda x: [x[0] + x[1] - a, x[0] + x[1] - a], [1.0, 1.0]).x[0])(2.0),
    ),
    (np.linalg.LinAlgError, "singular", lambda: nb.grad(lambda a: solvers.newton(lambda x: a * x**2, 0.0))(1.0)),
    (np.linalg.LinAlgError, "singular", lambda: solvers.linear_solve(lambda v: v * 0.0, np.ones(2), method="dense")),
    (ArgumentError, "different signs", lambda: nb.grad(lambda a: solvers.brentq(lambda x: x - a, 3.0, 4.0))(1.0)),
    (ArgumentError, "bracket .* must be a pair", lambda: solvers.root_scalar(lambda x: x, bracket=(1.0,))),
    (ArgumentError, "needs a bracket or a start", lambda: solvers.root_scalar(lambda x: x)),
    (ArgumentError, "one number, but has shape", lambda: solvers.brentq(lambda x: x, np.zeros(2), 1.0)),
    (ArgumentError, "Unknown solver", lambda: solvers.root(lambda x: x, [1.0], method="bar")),
    (ArgumentError, "linear_solver must be", lambda: solvers.root(lambda x: x, [1.0], linear_solver="lu")),
    (ArgumentError, "Each element of", lambda: solvers.newton(lambda x: x - x[::-1] / 2 - 1, np.zeros(2))),
    (ArgumentError, "not linear", lambda: solvers.linear_solve(lambda v: v * v, np.ones(2))),
    (ArgumentError, "not linear", lambda: solvers.linear_solve(lambda v: v + 1, np.ones(2), method="dense")),
    (ArgumentError, "method must be one of", lambda: solvers.linear_solve(lambda v: v, np.ones(2), method="lu")),
    (
        ArgumentError,
        "squared.. is not linear",
        lambda: solvers.linear_solve(lambda v: v, np.ones(2), preconditioner=squared),
    ),
    (
        ShapeError,
        r"returned \(\)",
        lambda: solvers.linear_solve(lambda v: v, np.ones(2), preconditioner=lambda v: v.sum()),
    ),
    (ArgumentError, "pair of numbers, but got 3", lambda: solvers.minimize_scalar(lambda x: x, bounds=(1, 2, 3))),
    (ArgumentError, "exceeds the upper", lambda: solvers.minimize_scalar(lambda x: x * x, bounds=(3.0, 1.0))),
    (
        ConvergenceError,
        "not converged",
        lambda: nb.grad(lambda a: solvers.minimize_scalar(lambda x: -a * x * x).x)(1.0),
    ),
    (ArgumentError, "must be a dict", lambda: solvers.minimize(np.sum, [1.0], constraints=[np.sum])),
    (ArgumentError, "loss of least_squares.* 'cauchy'", lambda: solvers.least_squares(lambda x: x, [1.0], loss="l1")),
    (ArgumentError, "bounds", lambda: solvers.minimize(np.sum, [1.0], method="trust-constr", bounds=[(0, 1)])),
    (ArgumentError, "give a start by p0", lambda: solvers.curve_fit(lambda *x: x[0], np.ones(2), np.ones(2))),
    (ArgumentError, "only 1 data", lambda: solvers.curve_fit(lambda x, a, b: a * x + b, np.ones(1), np.ones(1))),
    (ShapeError, "2 pairs", lambda: solvers.minimize(np.sum, [1.0, 2.0], bounds=[(0, 1)])),
    (ShapeError, r"shape \(2,\) to root\(\), but returned \(1,\)", lambda: solvers.root(lambda x: x[:1], np.ones(2))),
    (ShapeError, r"shape \(\) to minimize\(\)", lambda: solvers.minimize(lambda x: x, np.ones(2))),
    (ShapeError, "no elements", lambda: solvers.root(lambda x: x, [])),
    (ShapeError, "no elements", lambda: solvers.linear_solve(lambda v: v, [])),
    (DtypeError, "give b as complex numbers", lambda: solvers.linear_solve(lambda v: 1j * v, np.ones(2))),
    (ShapeError, r"of shape \(2,\) to linear_solve", lambda: solvers.linear_solve(lambda v: v[0], 1j * np.ones(2))),
    (ShapeError, "returned shape", lambda: nb.custom_root(lambda x: x, 1.0, lambda g, x: np.ones(2))),
    (DtypeError, "returned NoneType", lambda: solvers.root(lambda x: None, [1.0])),
    (DtypeError, "complex numbers", lambda: solvers.root(lambda x: x * 1j, [1.0])),
    (DtypeError, "real numbers", lambda: solvers.root(lambda x: x, [1j])),
    (TracedValueError, "root.* asks for a value", lambda: solvers.root(lambda x: x if x[0] > 0 else -x, [1.0])),
]


@pytest.mark.parametrize("row", range(len(FAILURES)))
def test_failures_say_what_to_do(row: int) -> None:
    kind, text, call = FAILURES[row]
    with pytest.raises(kind, match=text) as caught:
        call()
    assert re.search(r"test_solvers\.py:\d+", str(caught.value)), "the user's line"


def test_errors_in_the_function_are_its_own() -> None:
    def broken(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        solvers.root(broken, [1.0])
