"""Minimisers of nb.optim: published minima, Wolfe's conditions, derivatives by hand, NIST's parameters."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import optim
from nbgrad.nist.datasets import load
from nbgrad.optim import line_search

pytestmark = pytest.mark.unoptimized(but=16)

T10 = np.arange(1.0, 11.0)
BARD = np.array([0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39])
KOWALIK_Y = np.array([0.1957, 0.1947, 0.1735, 0.1600, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246])
KOWALIK_U = np.array([4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625])


def rosenbrock(x: Any) -> Any:
    return np.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def powell_singular(x: Any) -> Any:
    return np.stack([x[0] + 10 * x[1], 5**0.5 * (x[2] - x[3]), (x[1] - 2 * x[2]) ** 2, 10**0.5 * (x[0] - x[3]) ** 2])


def beale(x: Any) -> Any:
    return np.array([1.5, 2.25, 2.625]) - x[0] * np.stack([1 - x[1], 1 - x[1] ** 2, 1 - x[1] ** 3])


def bard(x: Any) -> Any:
    u = np.arange(1.0, 16.0)
    v, w = 16 - u, np.minimum(u, 16 - u)
    return BARD - (x[0] + u / (v * x[1] + w * x[2]))


def kowalik(x: Any) -> Any:
    return KOWALIK_Y - x[0] * (KOWALIK_U**2 + KOWALIK_U * x[1]) / (KOWALIK_U**2 + KOWALIK_U * x[2] + x[3])


def helical_valley(x: Any) -> Any:
    angle = np.arctan2(x[1], x[0]) / (2 * np.pi)
    return np.stack([10 * (x[2] - 10 * angle), 10 * (np.sqrt(x[0] ** 2 + x[1] ** 2) - 1), x[2]])


def wood(x: Any) -> Any:
    return np.stack(
        [
            10 * (x[1] - x[0] ** 2),
            1 - x[0],
            90**0.5 * (x[3] - x[2] ** 2),
            1 - x[2],
            10**0.5 * (x[1] + x[3] - 2),
            (x[1] - x[3]) / 10**0.5,
        ]
    )


def jennrich_sampson(x: Any) -> Any:
    return 2 + 2 * T10 - (np.exp(T10 * x[0]) + np.exp(T10 * x[1]))


# J. More, B. Garbow and K. Hillstrom, "Testing unconstrained optimization software", ACM TOMS 7, 1981: starts, and
# sums of squares at the minimum.
PROBLEMS: dict[str, tuple[Any, list[float], float]] = {
    "rosenbrock": (rosenbrock, [-1.2, 1.0], 0.0),
    "powell_singular": (powell_singular, [3.0, -1.0, 0.0, 1.0], 0.0),
    "beale": (beale, [1.0, 1.0], 0.0),
    "bard": (bard, [1.0, 1.0, 1.0], 8.21487e-3),
    "kowalik": (kowalik, [0.25, 0.39, 0.415, 0.39], 3.07505e-4),
    "helical_valley": (helical_valley, [-1.0, 0.0, 0.0], 0.0),
    "wood": (wood, [-3.0, -1.0, -3.0, -1.0], 0.0),
    "jennrich_sampson": (jennrich_sampson, [0.3, 0.4], 124.362),
}


METHODS = ["lbfgs", "newton_cg", "levenberg_marquardt", "gauss_newton"]
TOO_LARGE = ("jennrich_sampson", "gauss_newton")
"""Large residuals: Gauss-Newton steps become short far from the minimum."""


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize(("name", "method"), [(n, m) for n in PROBLEMS for m in METHODS if (n, m) != TOO_LARGE])
def test_published_minima(name: str, method: str) -> None:
    residuals, start, lowest = PROBLEMS[name]
    scalar = method in ("lbfgs", "newton_cg")
    fun = (lambda x: np.sum(residuals(x) ** 2)) if scalar else residuals
    found = optim.minimize(fun, np.array(start), method=method)
    assert found.success, found
    value = found.fun if scalar else 2 * found.cost
    assert value == pytest.approx(lowest, rel=3e-6, abs=1e-11)
    assert 0 < found.nit <= found.nfev


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("method", [optim.levenberg_marquardt, optim.gauss_newton])
def test_certified_parameters(method: Any, start: int) -> None:
    for data in load():
        found = method(lambda b, data=data: data.model(b, data.x) - data.y, data.starts[start])
        assert found.success
        np.testing.assert_allclose(found.x, data.certified, rtol=1e-7)


SEARCHES: dict[str, tuple[Any, Any]] = {
    # More and Thuente 1994, section 5: functions with flat, steep and oscillating parts.
    "1": (lambda a: -a / (a**2 + 2), lambda a: (a**2 - 2) / (a**2 + 2) ** 2),
    "2": (lambda a: (a + 0.004) ** 5 - 2 * (a + 0.004) ** 4, lambda a: 5 * (a + 0.004) ** 4 - 8 * (a + 0.004) ** 3),
    "quadratic": (lambda a: (a - 1) ** 2, lambda a: 2 * (a - 1)),
    "waves": (lambda a: np.cos(3 * a) - a, lambda a: -3 * np.sin(3 * a) - 1),
    "logarithm": (lambda a: a - np.log(a + 1e-3), lambda a: 1 - 1 / (a + 1e-3)),
}


@pytest.mark.parametrize("first", [1e-3, 1e-1, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("name", SEARCHES)
def test_accepted_steps_fulfil_wolfes_conditions(name: str, first: float) -> None:
    value, slope = SEARCHES[name]
    zero = np.float64(0.0)
    search = line_search.begun(np.float64(value(zero)), np.float64(slope(zero)), np.float64(first))
    for trials in range(1, 40):  # noqa: B007
        at = search.at
        search, good, hopeless = line_search.tried(search, value(at), slope(at))
        assert not hopeless
        if good:
            break
    assert trials < 20
    assert value(at) <= value(zero) + 1e-4 * at * slope(zero)
    assert abs(slope(at)) <= 0.9 * abs(slope(zero))


MATRIX = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])


@pytest.mark.parametrize("method", METHODS)
def test_the_minimiser_is_differentiated(method: str) -> None:
    root = np.linalg.cholesky(MATRIX).T

    def lowest(b: Any) -> Any:
        if method in ("lbfgs", "newton_cg"):
            return optim.minimize(lambda x: 0.5 * x @ MATRIX @ x - b @ x, np.zeros(3), method=method).x
        return optim.minimize(lambda x: root @ x - np.linalg.solve(root.T, b), np.zeros(3), method=method).x

    b = np.array([1.0, -2.0, 0.5])
    inverse = np.linalg.inv(MATRIX)
    np.testing.assert_allclose(lowest(b), inverse @ b, rtol=1e-7)
    np.testing.assert_allclose(nb.jacrev(lowest)(b), inverse, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(nb.jit(nb.jacfwd(lowest))(b), inverse, rtol=1e-9, atol=1e-12)
    many = np.stack([b, 2 * b])
    np.testing.assert_allclose(nb.vmap(lowest)(many), many @ inverse, rtol=1e-6, atol=1e-8)


@dataclasses.dataclass
class Line:
    slope: Any
    shift: Any
    name: str = "line"


@pytest.mark.parametrize("method", METHODS)
def test_containers_and_dtypes(method: str) -> None:
    t = np.linspace(0.0, 1.0, 6)
    y = 2.0 * t - 1.0

    def residuals(line: Any, data: Any) -> Any:
        assert line.name == "line" and line.slope.dtype == np.float32
        return line.slope * t + line.shift[0] - data

    scalar = method in ("lbfgs", "newton_cg")
    fun = (lambda line, data: np.sum(residuals(line, data) ** 2)) if scalar else residuals
    start = Line(np.float32(0.0), [0.0])
    for data, expected in ((y, (2.0, -1.0)), (y + 3.0, (2.0, 2.0))):
        found = optim.minimize(fun, start, (data,), method=method)
        assert isinstance(found.x, Line) and isinstance(found.jac, Line)
        np.testing.assert_allclose([found.x.slope, found.x.shift[0]], expected, rtol=1e-6, atol=1e-6)
    shift = nb.grad(lambda c: optim.minimize(fun, start, (y + c,), method=method).x.shift[0])(0.5)
    assert float(shift) == pytest.approx(1.0, rel=1e-5)


def test_what_the_function_closes_over_is_read_at_each_call() -> None:
    held = {"at": 1.0}

    def fun(x: Any) -> Any:
        return np.sum((x - held["at"]) ** 2)

    for at in (1.0, 5.0):
        held["at"] = at
        np.testing.assert_allclose(optim.lbfgs(fun, np.zeros(2)).x, [at, at], rtol=1e-9)


def test_large_problems_and_single_turns() -> None:
    n = 2000
    target = np.sin(np.arange(n))
    for turns in (1, 8):
        found = optim.lbfgs(
            lambda x: np.sum((x - target) ** 2 * np.linspace(1.0, 100.0, n)), np.zeros(n), turns=turns, gtol=1e-7
        )
        assert found.success
        np.testing.assert_allclose(found.x, target, atol=1e-7)


def test_runs_that_fail_say_so() -> None:
    short = optim.lbfgs(lambda x: np.sum(rosenbrock(x) ** 2), np.array([-1.2, 1.0]), maxiter=3)
    assert (short.success, short.status, short.nit) == (False, 0, 3)
    assert short.message == "the number of steps has reached maxiter"
    for method in ("lbfgs", "newton_cg"):
        undefined = optim.minimize(lambda x: np.sum(np.log(x)), np.array([-1.0]), method=method)
        assert (undefined.success, undefined.status) == (False, -2)
        barrier = optim.minimize(lambda x: np.sum(x - np.log(x)), np.array([30.0]), method=method)
        np.testing.assert_allclose(barrier.x, [1.0], rtol=1e-6)
    below = optim.lbfgs(lambda x: -np.sum(x), np.zeros(2), maxiter=20)
    assert not below.success
    with pytest.raises(RuntimeError, match="has not converged"):
        nb.grad(lambda a: optim.lbfgs(lambda x: np.sum(rosenbrock(a * x) ** 2), np.array([-1.2, 1.0]), maxiter=3).x[0])(
            1.0
        )


def test_starts_at_the_minimum_end_at_once() -> None:
    for method in ("lbfgs", "newton_cg"):
        found = optim.minimize(lambda x: np.sum(x**2), np.zeros(2), method=method)
        assert (found.success, found.nit, found.nfev) == (True, 0, 1)
    found = optim.gauss_newton(lambda x: x, np.zeros(2))
    assert (found.success, found.nit) == (True, 0)


def test_dependent_columns_get_no_part() -> None:
    found = optim.gauss_newton(lambda x: np.stack([x[0] + x[1] - 2.0, 2.0 * (x[0] + x[1]) - 4.0]), np.zeros(2))
    assert found.success and float(found.x[0] + found.x[1]) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: optim.minimize(np.sum, np.zeros(2), method="BFGS"), ValueError, "method must be one of 'lbfgs', "),
        (lambda: optim.lbfgs(np.sum, np.zeros(2), maxiter=0), ValueError, "maxiter must be at least 1, but got 0"),
        (lambda: optim.lbfgs(np.sum, np.zeros(2), gtol="a"), TypeError, "gtol must be a number"),
        (lambda: optim.lbfgs(np.sum, np.zeros(2), memory=2.5), TypeError, "memory must be an integer, but got 2.5"),
        (lambda: optim.newton_cg(np.sum, np.zeros(2), radius=0.0), ValueError, "radius must be positive"),
        (lambda: optim.lbfgs(np.sin, np.zeros(2)), ValueError, "must return an array of shape"),
        (lambda: optim.lbfgs(np.sum, {}), ValueError, "holds no numbers"),
        (lambda: optim.lbfgs(np.sum, np.zeros(2, int)), TypeError, "floating-point numbers, but found int64"),
        (lambda: optim.lbfgs(np.sum, np.zeros(2, complex)), TypeError, "real and imaginary parts"),
        (lambda: optim.gauss_newton(np.sum, np.zeros(2)), ValueError, "gives 1 residuals to gauss_newton"),
    ],
)
def test_errors(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


KINKS: dict[str, Any] = {
    "lbfgs": (lambda x: np.sum(np.abs(x - 1.0)), [5.0, 3.0]),
    "newton_cg": (lambda x: np.abs(x[0] - 1.0) + 3.0 * np.abs(x[1] - 0.3 * x[0]), [5.0, 3.1]),
    "levenberg_marquardt": (lambda x: np.stack([np.abs(x[0] - 1.0) + 1.0, np.abs(x[1] - x[0]) + 2.0]), [5.0, 3.1]),
    "gauss_newton": (lambda x: np.stack([np.abs(x[0] - 1.0) + 1.0, np.abs(x[1] - x[0]) + 2.0]), [5.0, 3.1]),
}


@pytest.mark.parametrize("method", METHODS)
def test_kinks_are_no_minima(method: str) -> None:
    fun, start = KINKS[method]
    found = optim.minimize(fun, np.array(start), method=method, maxiter=100)
    lowest = fun(np.array([1.0, 1.0 if method != "newton_cg" else 0.3]))
    assert not found.success or np.allclose(fun(found.x), lowest, atol=1e-6), found
