"""Constrained minimisers and their multipliers have the derivatives of closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint

import nbgrad as nb
from nbgrad import solvers
from nbgrad.errors import ArgumentError, NbgradError, ShapeError

pytestmark = pytest.mark.unoptimized

POINT = np.array([3.0, 4.0, 2.0])
"""A direction d of length 5, and a radius r."""
LENGTH = 5.0
WEIGHTS = np.array([0.5, 0.8, -0.3, 0.1])


def furthest(p: Any) -> Any:
    """The point of the disc of radius r that is furthest along d: r d / |d|, with the multiplier |d| / (2 r)."""
    disc = {"type": "ineq", "fun": lambda x, r: r**2 - np.sum(x**2), "args": (p[2],)}
    return solvers.minimize(lambda x: -np.sum(x * p[:2]), [0.1, 0.2], constraints=disc, tol=1e-10)


def on_a_line(p: Any) -> Any:
    """The point on x + y = c that is closest to (a, b)."""
    line = LinearConstraint([[1.0, 1.0]], p[2], p[2])
    return solvers.minimize(lambda x: np.sum((x - p[:2]) ** 2), np.zeros(2), constraints=line, tol=1e-10)


def shares(w: Any) -> Any:
    """The projection of w on the simplex: w - t where that is positive, with the sum 1."""
    whole = {"type": "eq", "fun": lambda x: np.sum(x) - 1}
    bounds = [(0, None)] * 4
    return solvers.minimize(lambda x: np.sum((x - w) ** 2), np.ones(4), bounds=bounds, constraints=whole, tol=1e-10)


def test_a_linear_function_on_a_disc() -> None:
    unit = POINT[:2] / LENGTH
    exact = np.column_stack([2 * (np.eye(2) - np.outer(unit, unit)) / LENGTH, unit])
    for derivative in (nb.jacrev, nb.jacfwd):
        found = derivative(lambda p: furthest(p).x)(POINT)
        np.testing.assert_allclose(found, exact, atol=1e-5)
    result = furthest(POINT)
    np.testing.assert_allclose(result.x, 2 * unit, atol=1e-5)
    np.testing.assert_allclose(result.multipliers, LENGTH / 4, rtol=1e-5)
    slope = nb.jit(nb.grad(lambda p: furthest(p).multipliers[0]))(POINT)
    np.testing.assert_allclose(slope, [*unit / 4, -LENGTH / 8], atol=1e-5)


def test_second_derivatives() -> None:
    """Those of r d0 / |d|."""
    found = nb.hessian(lambda p: furthest(p).x[0])(POINT)
    d0, d1, r = POINT
    n = LENGTH
    exact = np.array(
        [
            [-3 * r * d0 * d1**2 / n**5, r * d1 * (2 * d0**2 - d1**2) / n**5, d1**2 / n**3],
            [r * d1 * (2 * d0**2 - d1**2) / n**5, r * d0 * (2 * d1**2 - d0**2) / n**5, -d0 * d1 / n**3],
            [d1**2 / n**3, -d0 * d1 / n**3, 0.0],
        ]
    )
    np.testing.assert_allclose(found, exact, atol=1e-5)


def test_an_equation_with_a_recorded_end() -> None:
    exact = [[0.5, -0.5, 0.5], [-0.5, 0.5, 0.5]]
    np.testing.assert_allclose(nb.jacrev(lambda p: on_a_line(p).x)(np.array([1.0, 2.0, 1.0])), exact, atol=1e-6)


def test_bounds_beside_an_equation() -> None:
    inside = np.array([True, True, False, False])
    exact = np.diag(inside * 1.0) - np.outer(inside, inside) / 2
    np.testing.assert_allclose(shares(WEIGHTS).x, [0.35, 0.65, 0, 0], atol=1e-6)
    np.testing.assert_allclose(nb.jacrev(lambda w: shares(w).x)(WEIGHTS), exact, atol=1e-6)
    several = nb.vmap(lambda w: shares(w).x)(np.stack([WEIGHTS, WEIGHTS[::-1]]))
    np.testing.assert_allclose(several, [[0.35, 0.65, 0, 0], [0, 0, 0.65, 0.35]], atol=1e-6)


def test_bounds_are_met_where_slsqp_stops_next_to_them() -> None:
    """The projection on the simplex with a tolerance that leaves elements at 1e-9, not at zero."""
    for seed in range(20):
        w = np.random.default_rng(seed).normal(size=6)
        order = np.sort(w)[::-1]
        sums = np.cumsum(order) - 1
        last = np.flatnonzero(order * np.arange(1, 7) > sums)[-1]
        exact = np.maximum(w - sums[last] / (last + 1), 0.0)

        def projected(w: Any) -> Any:
            whole = {"type": "eq", "fun": lambda x: np.sum(x) - 1}
            start, bounds = np.full(6, 0.9), [(0, None)] * 6
            return solvers.minimize(lambda x: np.sum((x - w) ** 2), start, bounds=bounds, constraints=whole)

        result, inside = projected(w), exact > 0
        np.testing.assert_array_equal(result.x == 0, ~inside)
        found = nb.jacrev(lambda w: projected(w).x)(w)
        np.testing.assert_allclose(found, np.diag(inside * 1.0) - np.outer(inside, inside) / inside.sum(), atol=1e-6)


def test_more_rows_than_elements_that_are_free() -> None:
    """At a corner the lowest return that is asked for is the one that there is."""
    expected, covariance = np.array([0.02, 0.04]), np.diag([0.0004, 0.09])

    def risk(required: Any) -> Any:
        rows = [
            {"type": "eq", "fun": lambda w: np.sum(w) - 1},
            {"type": "ineq", "fun": lambda w: w @ expected - required},
        ]
        return solvers.minimize(
            lambda w: w @ covariance @ w + 0.02 * w[1], [0.5, 0.5], bounds=[(0, None)] * 2, constraints=rows, tol=1e-10
        ).fun

    np.testing.assert_allclose([risk(0.02), nb.grad(risk)(0.02)], [0.0004, 0.0], atol=1e-6)


def test_only_what_holds_the_minimiser_counts() -> None:
    def f(p: Any) -> Any:
        ring = NonlinearConstraint(lambda x: [np.sum(x**2), x[0]], [-np.inf, p[0]], [p[1], np.inf])
        return solvers.minimize(lambda x: np.sum((x - 1) ** 2), np.ones(2), constraints=ring, tol=1e-10)

    result = f(np.array([1.5, 9.0]))
    np.testing.assert_allclose(result.x, [1.5, 1.0], atol=1e-6)
    np.testing.assert_allclose(result.multipliers, [1.0, 0.0], atol=1e-5)
    np.testing.assert_allclose(nb.jacrev(lambda p: f(p).x)(np.array([1.5, 9.0])), [[1, 0], [0, 0]], atol=1e-6)


def test_ends_of_all_kinds_at_once() -> None:
    """x = p holds although its multiplier is zero, y <= q holds, z and u are on recorded bounds, v is free."""

    def f(p: Any) -> Any:
        equation = {"type": "eq", "fun": lambda x: x[0] - p[0]}
        both = NonlinearConstraint(lambda x: x[1:3], [-np.inf, -9.0], [p[1], 9.0])
        bounds = [(None, None), (None, None), (p[2], None), (None, p[3]), (None, None)]
        wanted = np.array([1.0, 2.0, 0.5, 4.0, 7.0])
        return solvers.minimize(
            lambda x: np.sum((x - wanted) ** 2), np.ones(5), bounds=bounds, constraints=[both, equation], tol=1e-10
        ).x

    at = np.array([1.0, 1.5, 0.75, 3.0])
    np.testing.assert_allclose(f(at), [*at, 7.0], atol=1e-6)
    np.testing.assert_allclose(nb.jacrev(f)(at), np.eye(5)[:, :4], atol=1e-6)


def test_rows_with_one_value_and_rows_with_two_ends() -> None:
    rows = LinearConstraint(np.eye(3)[:2], [1.0, -np.inf], [1.0, 2.0])
    found = solvers.minimize(lambda x: np.sum((x - 5.0) ** 2), np.zeros(3), constraints=rows, tol=1e-10)
    np.testing.assert_allclose(found.x, [1, 2, 5], atol=1e-5)
    np.testing.assert_allclose(found.multipliers, [-8, 6], atol=1e-4)


def test_by_scipys_name_in_converted_code() -> None:
    from scipy.optimize import minimize

    def f(c: Any) -> Any:
        line = {"type": "eq", "fun": lambda x: x[0] + 2 * x[1] - c}
        return minimize(lambda x: np.sum(x**2), np.zeros(2), constraints=[line], tol=1e-10).fun

    np.testing.assert_allclose(nb.grad(nb.differentiable_source(f))(3.0), 2 * 3.0 / 5, rtol=1e-6)


def test_constraints_that_say_the_same_have_no_multipliers_of_their_own() -> None:
    def f(c: Any) -> Any:
        line = {"type": "eq", "fun": lambda x: x[0] - c}
        return solvers.minimize(lambda x: np.sum(x**2), np.zeros(2), constraints=[line] * 2).x[0]

    with pytest.raises(NbgradError, match=r"singular|not converged"):
        nb.grad(f)(1.0)


def test_a_run_that_fails_has_no_derivative() -> None:
    def f(c: Any) -> Any:
        apart = [{"type": "eq", "fun": lambda x: x[0] - c}, {"type": "eq", "fun": lambda x: x[0] + c}]
        return solvers.minimize(lambda x: np.sum(x**2), np.zeros(2), constraints=apart)

    assert not f(1.0).success
    with pytest.raises(NbgradError, match="has not converged"):
        nb.grad(lambda c: f(c).x[0])(1.0)


@pytest.mark.parametrize(
    ("constraints", "method", "error", "text"),
    [
        ({"type": "eq"}, None, ArgumentError, "a callable 'fun'"),
        ({"type": "le", "fun": np.sum}, None, ArgumentError, "'eq' or 'ineq'"),
        ([np.sum], None, ArgumentError, "must be a dict"),
        ({"type": "eq", "fun": lambda x: None}, None, ArgumentError, "but returned None"),
        (NonlinearConstraint(lambda x: x, [0, 0, 0], 1), None, ShapeError, "has 2 values"),
        ({"type": "eq", "fun": np.sum}, "trust-constr", ArgumentError, r"method='SLSQP', but not for 'trust-constr'"),
    ],
)
def test_what_is_no_constraint(constraints: Any, method: str | None, error: type[NbgradError], text: str) -> None:
    with pytest.raises(error, match=text):
        solvers.minimize(lambda x: np.sum(x**2), np.ones(2), method=method, constraints=constraints)
