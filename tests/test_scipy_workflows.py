"""SciPy's solvers take nbgrad's functions as they are: as gradients, Jacobians, Hessians, products and sparse matrices.

What they find is compared with solutions that are known from elsewhere.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.sparse.linalg

import nbgrad as nb

pytestmark = pytest.mark.unoptimized(but=16)

# SciPy's annotations do not know what its functions take and return.
optimize: Any = scipy.optimize
integrate: Any = scipy.integrate
linalg: Any = scipy.sparse.linalg
Function = Callable[..., Any]
COMPILED: list[Function] = [lambda function: function, nb.jit]


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


START = np.array([1.3, 0.7, 0.8, 1.9, 1.2])


# ----- minimize -----


@pytest.mark.parametrize("compiled", COMPILED, ids=["recorded", "compiled"])
@pytest.mark.parametrize("method", ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP"])
def test_minimize_with_a_gradient(method: str, compiled: Function) -> None:
    for options in (
        {"fun": rosenbrock, "jac": compiled(nb.grad(rosenbrock))},
        {"fun": compiled(nb.value_and_grad(rosenbrock)), "jac": True},
    ):
        found = optimize.minimize(x0=START, method=method, tol=1e-10, **options)
        assert found.x.dtype == np.float64 and type(found.fun) is not nb.Tensor
        np.testing.assert_allclose(found.x, 1.0, atol=1e-4)


@pytest.mark.parametrize("compiled", COMPILED, ids=["recorded", "compiled"])
@pytest.mark.parametrize("method", ["Newton-CG", "dogleg", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr"])
def test_minimize_with_second_derivatives(method: str, compiled: Function) -> None:
    gradient = compiled(nb.grad(rosenbrock))
    products = compiled(functools.partial(nb.hvp, rosenbrock))
    ways = [{"hess": compiled(nb.hessian(rosenbrock))}]
    if method not in ("dogleg", "trust-exact"):
        ways.append({"hessp": products})
    if method in ("Newton-CG", "trust-constr"):
        ways.append({"hess": nb.sparse_hessian(rosenbrock)})
    start = np.full(5, 1.1) if method == "dogleg" else START  # dogleg needs a positive definite Hessian
    for second in ways:
        found = optimize.minimize(rosenbrock, start, method=method, jac=gradient, tol=1e-10, **second)
        np.testing.assert_allclose(found.x, 1.0, atol=1e-6)


def test_minimize_under_constraints() -> None:
    """Hock and Schittkowski's problem 71, whose solution is given with it."""

    def objective(x: Any) -> Any:
        return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]

    def constraint(x: Any) -> Any:
        return np.stack([np.prod(x), np.sum(x**2)])

    solution = [1.0, 4.74299963, 3.82114998, 1.37940829]
    both = [
        {"type": "ineq", "fun": lambda x: np.prod(x) - 25.0, "jac": nb.grad(np.prod)},
        {"type": "eq", "fun": lambda x: np.sum(x**2) - 40.0, "jac": nb.grad(lambda x: np.sum(x**2))},
    ]
    bounds, start = [(1.0, 5.0)] * 4, np.array([1.0, 5.0, 5.0, 1.0])
    found = optimize.minimize(
        nb.value_and_grad(objective), start, jac=True, method="SLSQP", bounds=bounds, constraints=both, tol=1e-12
    )
    np.testing.assert_allclose(found.x, solution, atol=1e-6)
    for jacobian in (nb.jacfwd, nb.jacrev, nb.sparse_jacobian):
        condition = optimize.NonlinearConstraint(
            constraint,
            [25.0, 40.0],
            [np.inf, 40.0],
            jac=jacobian(constraint),
            hess=lambda x, v: nb.hessian(lambda x: v @ constraint(x))(x),
        )
        found = optimize.minimize(
            objective,
            start,
            jac=nb.grad(objective),
            hess=nb.hessian(objective),
            method="trust-constr",
            bounds=bounds,
            constraints=condition,
            options={"gtol": 1e-10, "xtol": 1e-12},
        )
        np.testing.assert_allclose(found.x, solution, atol=1e-5)
        np.testing.assert_allclose(found.fun, 17.0140173, atol=1e-4)


def test_scipy_agrees_that_the_gradient_is_right() -> None:
    assert optimize.check_grad(rosenbrock, nb.grad(rosenbrock), START) < 1e-4
    numeric = optimize.approx_fprime(START, nb.grad(rosenbrock))
    np.testing.assert_allclose(nb.hessian(rosenbrock)(START), numeric, rtol=1e-5, atol=1e-3)


# ----- Least squares -----

# Misra1a, and Thurber's first parameters, from NIST's Statistical Reference Datasets.
MISRA_X = np.array([77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0])
MISRA_Y = np.array([10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78])
MISRA = [2.3894212918e02, 5.5015643181e-04]
MISRA_ERRORS = [2.7070075241e00, 7.2668688436e-06]


def misra(x: Any, b1: Any, b2: Any) -> Any:
    return b1 * (1.0 - np.exp(-b2 * x))


def residuals(b: Any) -> Any:
    return misra(MISRA_X, b[0], b[1]) - MISRA_Y


@pytest.mark.parametrize("compiled", COMPILED, ids=["recorded", "compiled"])
@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares_finds_certified_parameters(method: str, compiled: Function) -> None:
    for jacobian in (nb.jacfwd, nb.jacrev):
        found = optimize.least_squares(
            residuals,
            [250.0, 5e-4],
            jac=compiled(jacobian(residuals)),
            method=method,
            x_scale=[100.0, 1e-4],
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
        )
        np.testing.assert_allclose(found.x, MISRA, rtol=1e-8)


def test_curve_fit_finds_certified_parameters_and_errors() -> None:
    def jacobian(x: Any, *parameters: Any) -> Any:
        return np.stack(nb.jacfwd(misra, (1, 2))(x, *parameters), axis=1)

    found, covariance = optimize.curve_fit(misra, MISRA_X, MISRA_Y, p0=[250.0, 5e-4], jac=jacobian)
    np.testing.assert_allclose(found, MISRA, rtol=1e-7)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), MISRA_ERRORS, rtol=1e-6)


def test_least_squares_with_a_sparse_jacobian() -> None:
    """Broyden's tridiagonal function, as in SciPy's own documentation of least_squares."""

    def broyden(x: Any) -> Any:
        padded = np.pad(x, 1)
        return (3.0 - x) * x + 1.0 - padded[:-2] - 2.0 * padded[2:]

    jacobian = nb.sparse_jacobian(broyden)
    found = optimize.least_squares(broyden, -np.ones(10_000), jac=jacobian, xtol=1e-14, ftol=1e-14, gtol=1e-12)
    assert jacobian.products(found.x) == 1
    assert np.max(np.abs(broyden(found.x))) < 1e-9


# ----- Roots -----


@pytest.mark.parametrize("compiled", COMPILED, ids=["recorded", "compiled"])
@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_root(method: str, compiled: Function) -> None:
    """The example of `scipy.optimize.root`, whose root is documented there."""

    def fun(x: Any) -> Any:
        return np.stack([x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0, 0.5 * (x[1] - x[0]) ** 3 + x[1]])

    for jacobian in (nb.jacfwd, nb.jacrev):
        found = optimize.root(fun, [0.0, 0.0], jac=compiled(jacobian(fun)), method=method, tol=1e-12)
        np.testing.assert_allclose(found.x, [0.8411639, 0.1588361], atol=1e-7)
    roots = optimize.fsolve(fun, [0.0, 0.0], fprime=compiled(nb.jacfwd(fun)))
    np.testing.assert_allclose(roots, [0.8411639, 0.1588361], atol=1e-7)


@pytest.mark.parametrize("compiled", COMPILED, ids=["recorded", "compiled"])
def test_root_of_a_function_of_one_number(compiled: Function) -> None:
    """Kepler's equation; and the cube root of two, by Halley's method."""

    def kepler(e: Any) -> Any:
        return e - 0.5 * np.sin(e) - 1.0

    slope, curvature = compiled(nb.grad(kepler)), compiled(nb.grad(nb.grad(kepler)))
    found = optimize.root_scalar(kepler, x0=1.0, fprime=slope, method="newton", xtol=1e-14)
    assert found.root == pytest.approx(1.4987011335178482, rel=1e-13)
    found = optimize.root_scalar(kepler, x0=1.0, fprime=slope, fprime2=curvature, method="halley", xtol=1e-14)
    assert found.root == pytest.approx(1.4987011335178482, rel=1e-13)
    several = optimize.newton(lambda x: x**3 - 2.0, np.ones(3), fprime=nb.vmap(nb.grad(lambda x: x**3)))
    np.testing.assert_allclose(several, 2.0 ** (1 / 3), rtol=1e-12)


def test_newton_krylov_steps_by_products() -> None:
    """A LinearOperator of products with the Jacobian; the solution solves the dense system."""

    def fun(x: Any) -> Any:
        return x + 0.1 * np.roll(x, 1) ** 2 - np.arange(6.0)

    x = np.zeros(6)
    for _ in range(20):
        operator = linalg.LinearOperator(
            (6, 6),
            matvec=lambda v, x=x: nb.jvp(fun, x, v.ravel())[1],
            rmatvec=lambda w, x=x: nb.vjp(fun, x)[1](w.ravel())[0],
            dtype=np.float64,
        )
        step, failed = linalg.gmres(operator, -fun(x), rtol=1e-12)
        assert not failed
        np.testing.assert_allclose(operator @ np.eye(6), nb.jacrev(fun)(x), atol=1e-14)
        np.testing.assert_allclose(operator.T @ np.eye(6), nb.jacrev(fun)(x).T, atol=1e-14)
        x = x + step
    np.testing.assert_allclose(fun(x), 0.0, atol=1e-12)


# ----- Differential equations -----


def robertson(t: Any, y: Any) -> Any:
    slow, fast, fastest = 0.04 * y[0], 3e7 * y[1] ** 2, 1e4 * y[1] * y[2]
    return np.stack([fastest - slow, slow - fastest - fast, fast])


def robertson_as_list(t: float, y: Any) -> list[Any]:
    a, b, c = y
    return [1e4 * b * c - 0.04 * a, 0.04 * a - 1e4 * b * c - 3e7 * b**2, 3e7 * b**2]


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
@pytest.mark.parametrize("fun", [robertson, robertson_as_list])
def test_stiff_equations(method: str, fun: Function) -> None:
    """Robertson's reaction until t = 1e11; the solution is that of the Test Set for IVP Solvers (Mazzia, Magherini)."""
    expected = [0.2083340149701255e-07, 0.8333360770334713e-13, 0.9999999791665050e00]
    jacobian = nb.jit(nb.jacfwd(fun, 1))
    np.testing.assert_allclose(
        np.asarray(jacobian(0.0, np.array([1.0, 2.0, 3.0]))),
        [[-0.04, 3e4, 2e4], [0.04, -3e4 - 1.2e8, -2e4], [0.0, 1.2e8, 0.0]],
    )
    found = integrate.solve_ivp(
        fun, (0.0, 1e11), [1.0, 0.0, 0.0], method=method, jac=jacobian, rtol=1e-8, atol=[1e-14, 1e-18, 1e-14]
    )
    assert found.success
    np.testing.assert_allclose(found.y[:, -1], expected, rtol=1e-4)


@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_stiff_equations_with_a_sparse_jacobian(method: str) -> None:
    """The heat equation with a source whose solution is exp(-t) sin(pi x), on a grid where that solves it exactly."""
    n = 200
    h = 1.0 / (n + 1)
    mode = np.sin(np.pi * h * np.arange(1, n + 1))
    eigenvalue = (2.0 - 2.0 * np.cos(np.pi * h)) / h**2

    def heat(t: Any, u: Any) -> Any:
        padded = np.pad(u, 1)
        return (padded[2:] - 2.0 * u + padded[:-2]) / h**2 + (eigenvalue - 1.0) * np.exp(-t) * mode + u**3 - u**3

    jacobian = nb.sparse_jacobian(heat, 1)
    found = integrate.solve_ivp(heat, (0.0, 1.0), mode, method=method, jac=jacobian, rtol=1e-7, atol=1e-9)
    assert found.success and jacobian.products(0.0, mode) == 1
    np.testing.assert_allclose(found.y[:, -1], np.exp(-1.0) * mode, atol=1e-6)


def test_boundary_values() -> None:
    """Bratu's equation again; `solve_bvp` wants Jacobians at all points at once, which is a vmap."""

    def fun(x: Any, y: Any) -> Any:
        return np.stack([y[1], -np.exp(y[0])])

    def ends(left: Any, right: Any) -> Any:
        return np.stack([left[0], right[0]])

    def fun_jac(x: Any, y: Any) -> Any:
        return nb.vmap(nb.jacfwd(fun, 1), in_axes=(0, 1), out_axes=2)(x, y)

    grid = np.linspace(0.0, 1.0, 5)
    found = integrate.solve_bvp(
        fun, ends, grid, np.zeros((2, 5)), fun_jac=fun_jac, bc_jac=nb.jacfwd(ends, (0, 1)), tol=1e-10, max_nodes=10_000
    )
    c = optimize.brentq(lambda c: 8 * c**2 / np.cosh(c) ** 2 - 1.0, 0.1, 0.5)
    exact = 2 * np.log(np.cosh(c) / np.cosh(c * (1 - 2 * grid)))
    assert found.success
    np.testing.assert_allclose(found.sol(grid)[0], exact, atol=1e-10)


def test_integrals_of_derivatives() -> None:
    """The fundamental theorem; numbers go in and come out."""
    for slope in (nb.grad(np.tanh), nb.jit(nb.grad(np.tanh))):
        value, _ = integrate.quad(slope, -1.0, 2.0)
        assert value == pytest.approx(np.tanh(2.0) - np.tanh(-1.0), rel=1e-13)
