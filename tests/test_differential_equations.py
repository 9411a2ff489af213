"""Differential equations and integrals: derivatives against exponentials of matrices, formulas and differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

import nbgrad as nb
from nbgrad import solvers
from nbgrad.errors import ArgumentError, ShapeError, TracedValueError
from nbgrad.solvers.host_solves import ConvergenceError

pytestmark = pytest.mark.unoptimized(but=16)

TIGHT = {"rtol": 1e-10, "atol": 1e-12}
EXPLICIT, IMPLICIT = ["RK45", "DOP853", "RK23"], ["Radau", "BDF", "LSODA"]


@pytest.mark.parametrize("method", EXPLICIT + IMPLICIT)
def test_linear_systems(method: str) -> None:
    a, y0 = np.array([[-0.5, 2.0], [-2.0, -0.1]]), np.array([1.0, 0.5])
    times = np.array([0.0, 0.4, 1.5])
    rtol = 1e-7 if method in ("RK23", "BDF") else 1e-9

    def states(k: Any, y0: Any) -> Any:
        return solvers.solve_ivp(lambda t, y: k * (a @ y), (0, 1.5), y0, method, times, rtol=rtol, atol=1e-12).y.T

    exact = [scipy.linalg.expm(a * t) for t in times]
    slack = 1e-5 if method in ("RK23", "BDF") else 1e-7
    np.testing.assert_allclose(states(1.0, y0), [e @ y0 for e in exact], atol=slack)
    by_rate = [t * a @ e @ y0 for t, e in zip(times, exact, strict=True)]
    np.testing.assert_allclose(nb.jacfwd(states)(1.0, y0), by_rate, atol=slack)
    np.testing.assert_allclose(nb.jacrev(states, 1)(1.0, y0), exact, atol=slack)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau"])
def test_second_derivatives(method: str) -> None:
    def last(rate: Any) -> Any:
        return solvers.solve_ivp(lambda t, y: -rate * y, (0, 2), [1.0], method, [1.0, 2.0], **TIGHT).y[0, 1]

    expected = 4 * np.exp(-1.0)
    for second in (nb.grad(nb.grad(last)), nb.jacfwd(nb.grad(last)), nb.jit(nb.hessian(last))):
        assert float(second(0.5)) == pytest.approx(expected, rel=1e-7)


def _caught(p: Any, method: str = "RK45") -> Any:
    """Hares and lynxes."""

    def slope(t: Any, y: Any) -> Any:
        return [p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]]

    found = solvers.solve_ivp(slope, (0, 4), [10.0, 5.0], method, np.linspace(0, 4, 5), rtol=1e-9, atol=1e-9)
    return np.sum(found.y**2)


def test_another_parameter_compiles_nothing() -> None:
    p = np.array([1.1, 0.4, 0.1, 0.4])
    fast = nb.jit(nb.grad(_caught))
    fast(p)
    before = dict(nb.counters)
    for factor in (0.9, 1.05, 1.2):
        found = fast(factor * p)
        np.testing.assert_allclose(found, nb.grad(_caught)(factor * p), rtol=1e-12)
        direction = np.array([1.0, -1.0, 0.5, 2.0])
        moved = [_caught(factor * p + h * direction, "DOP853") for h in (1e-4, -1e-4)]
        assert found @ direction == pytest.approx((moved[0] - moved[1]) / 2e-4, rel=1e-5)
    assert fast.compiled_signatures == 1 and nb.counters["compiled"] == before["compiled"]


def test_another_number_of_steps_compiles_nothing() -> None:
    def last(k: Any) -> Any:
        found = solvers.solve_ivp(lambda t, y: [y[1], -(k**2) * y[0]], (0, 3), [1.0, 0.0], rtol=1e-6, atol=1e-8)
        sizes.append(found.t.size)
        return found.y[0, -1]

    sizes: list[int] = []
    slope = nb.grad(last)
    slope(1.5)
    before = nb.counters["compiled"] + nb.counters["loaded"]
    for k in (1.6, 1.8, 1.4):
        assert slope(k) == pytest.approx(-3 * np.sin(3 * k), abs=1e-4)
    assert len(set(sizes)) > 2 and nb.counters["compiled"] + nb.counters["loaded"] == before


def test_stiff_equations() -> None:
    # A fast part that has died out, and a slow one: y[1] is exp(-t), y[0] follows cos(k y[1]).
    def last(k: Any, method: str) -> Any:
        def slope(t: Any, y: Any) -> Any:
            return [-1e4 * (y[0] - np.cos(k * y[1])), -y[1]]

        return solvers.solve_ivp(slope, (0, 1), [np.cos(2.0), 1.0], method, [1.0], rtol=1e-8, atol=1e-10).y[0, 0]

    y = np.exp(-1.0)
    for method in IMPLICIT:
        # To the first order in 1e-4.
        assert nb.grad(last)(2.0, method) == pytest.approx(-y * np.sin(2 * y), rel=1e-3)
    exact = (last(2.01, "Radau") - last(1.99, "Radau")) / 0.02
    assert nb.grad(last)(2.0, "BDF") == pytest.approx(exact, rel=1e-4)


ENDS: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "the end": (lambda t: solvers.solve_ivp(lambda t, y: -y, (0, t), [1.0], **TIGHT).y[0, -1], 2.0, -np.exp(-2.0)),
    "the start": (
        lambda t: solvers.solve_ivp(lambda t, y: -y, (t, 2), [1.0], t_eval=[2.0], **TIGHT).y[0, 0],
        0.0,
        np.exp(-2.0),
    ),
    "a time": (
        lambda t: solvers.solve_ivp(lambda t, y: -y, (0, 2), [1.0], t_eval=t * np.ones(1), **TIGHT).y[0, 0],
        1.0,
        -np.exp(-1.0),
    ),
    "dense output": (
        lambda t: solvers.solve_ivp(lambda t, y: -y, (0, 2), [1.0], dense_output=True, **TIGHT).sol(t)[0],
        1.0,
        -np.exp(-1.0),
    ),
    "backwards": (
        lambda a: solvers.solve_ivp(lambda t, y: -a * y, (2, 0), [1.0], t_eval=[0.0], **TIGHT).y[0, 0],
        0.5,
        2 * np.exp(1.0),
    ),
    "no time at all": (
        lambda a: solvers.solve_ivp(lambda t, y: y, (1, 1), a * np.ones(2), t_eval=[1.0]).y[0, 0],
        3.0,
        1.0,
    ),
    "times in the slope": (
        lambda a: solvers.solve_ivp(lambda t, y: [a * np.cos(a * t)], (0, 1), [0.0], "DOP853", [1.0], **TIGHT).y[0, 0],
        2.0,
        np.cos(2.0),
    ),
    "odeint": (lambda a: solvers.odeint(lambda y, t: -a * y, [1.0], [0.0, 1.0, 2.0])[-1, 0], 0.5, -2 * np.exp(-1.0)),
    "odeint, time first": (
        lambda a: solvers.odeint(lambda t, y, a: -a * y, 1.0, [0.0, 2.0], (a,), tfirst=True, hmax=0.5)[-1, 0],
        0.5,
        -2 * np.exp(-1.0),
    ),
    "an integral": (lambda a: solvers.quad(lambda x: np.exp(-a * x), 0.0, np.inf)[0], 2.0, -0.25),
    "an integral's end": (lambda b: solvers.quad(lambda x, k: np.cos(k * x), 0.0, b, (2.0,))[0], 0.3, np.cos(0.6)),
}


@pytest.mark.parametrize("name", ENDS)
def test_times_and_ends(name: str) -> None:
    f, at, slope = ENDS[name]
    assert nb.grad(f)(at) == pytest.approx(slope, rel=1e-7)
    assert nb.jvp(f, (at,), (3.0,))[1] == pytest.approx(3 * slope, rel=1e-7)


def test_batches() -> None:
    rates = np.array([0.5, 1.0])

    def last(rate: Any) -> Any:
        return solvers.solve_ivp(lambda t, y: -rate * y, (0, 2), [1.0], t_eval=[2.0], **TIGHT).y[0, 0]

    np.testing.assert_allclose(nb.vmap(nb.grad(last))(rates), -2 * np.exp(-2 * rates), rtol=1e-8)
    integral = nb.grad(lambda a: solvers.quad(lambda x: np.exp(-a * x), 0.0, np.inf)[0])
    np.testing.assert_allclose(nb.vmap(integral)(rates), -1 / rates**2, rtol=1e-8)


@pytest.mark.parametrize("method", EXPLICIT)
def test_recorded_steps_are_scipys(method: str) -> None:
    def slope(t: Any, y: Any) -> Any:
        return [y[1], 5.0 * (1 - y[0] ** 2) * y[1] - y[0] + np.sin(t)]

    span, y0, rtol = (0, 16), [2.0, 0.0], 1e-6 if method == "DOP853" else 1e-4
    theirs = scipy.integrate.solve_ivp(slope, span, y0, method, rtol=rtol)
    assert theirs.t.size > 70, "more than one program's turns, and attempts that are rejected"

    def inside(scale: Any) -> Any:
        found = solvers.solve_ivp(slope, span, scale * np.array(y0), method, rtol=rtol)
        return np.sum(found.y), (found.t, found.y, found.nfev)

    (_, (t, y, count)), _ = nb.value_and_grad(inside, has_aux=True)(1.0)
    assert t == pytest.approx(theirs.t, rel=1e-6) and count == theirs.nfev
    np.testing.assert_allclose(y, theirs.y, rtol=1e-5, atol=1e-6)
    middle = np.array([0.1, 4.4, 15.9])
    dense = nb.jit(lambda k: solvers.solve_ivp(slope, span, k * np.array(y0), method, middle, rtol=rtol).y)(1.0)
    expected = scipy.integrate.solve_ivp(slope, span, y0, method, middle, rtol=rtol).y
    np.testing.assert_allclose(dense, expected, rtol=1e-6, atol=1e-8)


# ----- Events -----

G = 9.81


def _ground(t: Any, y: Any) -> Any:
    return y[0]


_ground.terminal, _ground.direction = True, -1


def _fallen(height: Any, **options: Any) -> Any:
    slope = lambda t, y: [y[1], -G]  # noqa: E731
    return solvers.solve_ivp(slope, (0, 10), [height, 0.0], events=_ground, **TIGHT, **options)


def test_events() -> None:
    plain, theirs = _fallen(2.0), np.sqrt(2 * 2.0 / G)
    assert plain.status == 1 and plain.t_events[0] == pytest.approx([theirs])
    assert plain.t[-1] == pytest.approx(theirs)
    time = lambda h: _fallen(h).t_events[0][0]  # noqa: E731
    assert nb.grad(time)(2.0) == pytest.approx(1 / np.sqrt(2 * G * 2.0), rel=1e-9)
    assert nb.grad(nb.grad(time))(2.0) == pytest.approx(-1 / np.sqrt(2 * G) / 2 * 2.0**-1.5, rel=1e-9)
    speed = -np.sqrt(G / 2 / 2.0)
    assert nb.grad(lambda h: _fallen(h).y_events[0][0, 1])(2.0) == pytest.approx(speed, rel=1e-9)
    assert nb.grad(lambda h: _fallen(h).y[1, -1])(2.0) == pytest.approx(speed, rel=1e-9)
    cut = nb.value_and_grad(lambda h: _fallen(h, t_eval=[0.0, 0.5, 1.0, 5.0]).y[0, -1])(2.0)
    np.testing.assert_allclose(cut, (2 - G / 8, 1.0), rtol=1e-9)


def test_the_solution_after_a_terminal_event_does_not_count() -> None:
    def large(t: Any, y: Any) -> Any:
        return y[0] - 2.0

    large.terminal = True

    def time(a: Any) -> Any:  # y is 1 / (1 - a t), which is infinite at t = 1 / a
        return solvers.solve_ivp(lambda t, y: a * y**2, (0, 9), [1.0], events=large, **TIGHT).t_events[0][0]

    assert nb.grad(time)(2.0) == pytest.approx(-1 / 8, rel=1e-8)


def test_events_that_pass() -> None:
    def zeros(rate: Any) -> Any:
        found = solvers.solve_ivp(
            lambda t, y: [y[1], -(rate**2) * y[0]], (0, 4), [1.0, 0.0], "DOP853", events=[lambda t, y: y[0]], **TIGHT
        )
        return found.t_events[0]

    expected = np.pi * np.array([0.5, 1.5, 2.5]) / 2
    np.testing.assert_allclose(zeros(2.0), expected, rtol=1e-8)
    np.testing.assert_allclose(nb.jacfwd(zeros)(2.0), -expected / 2, rtol=1e-7)


# ----- Integrals -----


def test_integrals_of_many_parameters() -> None:
    def f(w: Any, start: Any) -> Any:
        return solvers.quad(lambda x: np.sum(np.cos(w * x)), start, 2.0)[0]

    w, start = np.array([1.0, 2.0]), 0.3
    value = np.sum((np.sin(2 * w) - np.sin(w * start)) / w)
    slope = (2 * np.cos(2 * w) - start * np.cos(w * start)) / w - (np.sin(2 * w) - np.sin(w * start)) / w**2
    assert f(w, start) == pytest.approx(value)
    by_w, by_start = nb.grad(f, (0, 1))(w, start)
    np.testing.assert_allclose(by_w, slope, rtol=1e-10)
    assert by_start == pytest.approx(-np.sum(np.cos(w * start)), rel=1e-12)
    mixed = nb.grad(lambda s: np.sum(nb.grad(lambda w: f(w, s))(w)))(start)
    assert mixed == pytest.approx(np.sum(start * np.sin(w * start)), rel=1e-9)


# ----- In converted code, and failures -----

CONVERTED: dict[str, Callable[[Any], Any]] = {
    "solve_ivp": lambda a: scipy.integrate.solve_ivp(lambda t, y: -a * y, (0, 1), [1.0], **TIGHT).y[0, -1],
    "odeint": lambda a: scipy.integrate.odeint(lambda y, t: -a * y, 1.0, [0.0, 1.0])[-1, 0],
    "quad": lambda a: 1 - scipy.integrate.quad(lambda x: a * np.exp(-a * x), 0, 1)[0],
}


@pytest.mark.parametrize("name", CONVERTED)
def test_scipys_own_names(name: str) -> None:
    f = CONVERTED[name]
    assert nb.grad(nb.differentiable_source(f))(0.5) == pytest.approx(-np.exp(-0.5), rel=1e-6)
    assert nb.grad(nb.differentiable_source(f, modules="scipy"))(0.5) == pytest.approx(-np.exp(-0.5), rel=1e-6)
    with pytest.raises(TracedValueError, match=rf"nb\.solvers\.{name} has derivatives"):
        nb.grad(f)(0.5)


def _exploding(a: Any) -> Any:
    return solvers.solve_ivp(lambda t, y: a * y**2, (0, 2), [1.0], t_eval=[0.5, 2.0]).y[0]


FAILURES: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (
        ConvergenceError,
        "step size is less than spacing.*no derivative",
        lambda: nb.grad(lambda a: _exploding(a)[0])(1.0),
    ),
    (ConvergenceError, "quad.*subdivisions", lambda: solvers.quad(lambda x: 1 / x, 0.0, 1.0)),
    (ArgumentError, "not finite at the first time", lambda: solvers.solve_ivp(lambda t, y: y * np.nan, (0, 1), [1.0])),
    (ArgumentError, "method of solve_ivp", lambda: solvers.solve_ivp(lambda t, y: y, (0, 1), [1.0], "Euler")),
    (ArgumentError, "pair of times", lambda: solvers.solve_ivp(lambda t, y: y, (0, 1, 2), [1.0])),
    (
        ArgumentError,
        "lie outside of t_span",
        lambda: nb.grad(lambda a: solvers.solve_ivp(lambda t, y: a * y, (0, 1), [1.0], t_eval=[2.0]).y[0, 0])(1.0),
    ),
    (ArgumentError, "ends of quad", lambda: solvers.quad(lambda x: x, np.zeros(2), 1.0)),
    (ShapeError, r"shape \(2,\) to solve_ivp", lambda: solvers.solve_ivp(lambda t, y: y[:1], (0, 1), [1.0, 2.0])),
    (ShapeError, r"shape \(\) to quad", lambda: solvers.quad(lambda x: x * np.ones(2), 0.0, 1.0)),
    (ShapeError, "one axis", lambda: solvers.solve_ivp(lambda t, y: y, (0, 1), np.ones((2, 2)))),
    (ShapeError, "no elements", lambda: solvers.solve_ivp(lambda t, y: y, (0, 1), [])),
    (ShapeError, "t_eval", lambda: solvers.solve_ivp(lambda t, y: y, (0, 1), [1.0], t_eval=[])),
    (ShapeError, "t of odeint", lambda: solvers.odeint(lambda y, t: y, [1.0], [])),
    (TracedValueError, "asks for a value", lambda: solvers.solve_ivp(lambda t, y: y if t > 1 else -y, (0, 1), [1.0])),
    (
        TracedValueError,
        "needs t_eval",
        lambda: nb.jit(lambda a: solvers.solve_ivp(lambda t, y: a * y, (0, 1), [1.0]).y)(1.0),
    ),
    (TracedValueError, "events", lambda: nb.jit(lambda h: _fallen(h).t_events)(1.0)),
]


@pytest.mark.parametrize("row", range(len(FAILURES)))
def test_failures_say_what_to_do(row: int) -> None:
    kind, text, call = FAILURES[row]
    with pytest.raises(kind, match=text) as caught:
        call()
    assert "test_differential_equations.py:" in str(caught.value), "the user's line"


def test_an_integration_that_ends_early_gives_scipys_status() -> None:
    plain = solvers.solve_ivp(lambda t, y: y**2, (0, 2), [1.0], t_eval=[0.5, 2.0])
    assert plain.status == -1 and plain.t.tolist() == [0.5]
    values = nb.jit(_exploding)(1.0)
    assert values[0] == pytest.approx(2.0, rel=1e-2) and np.isnan(values[1])


STIFF = {"not stiff": 2.0, "stiff": 1e5}


@pytest.mark.parametrize("name", STIFF)
@pytest.mark.parametrize("method", IMPLICIT)
def test_steps_of_compiled_loops_beside_scipys(name: str, method: str) -> None:
    """A fast element follows a slow one, cos(t): recorded values agree with SciPy's, whichever loop finds the steps."""
    rate = STIFF[name]

    def slope(t: Any, y: Any, rate: Any = rate) -> Any:
        return np.stack([-np.sin(t) + 0.0 * y[0], -rate * (y[1] - y[0])])

    options: dict[str, Any] = {"method": method, "t_eval": [1.0, 3.0], "rtol": 1e-8, "atol": 1e-10}
    plain = scipy.integrate.solve_ivp(slope, (0.0, 3.0), [1.0, 1.0], **options).y
    times = np.array([1.0, 3.0])
    # The solution of y' = -r (y - cos t), y(0) = 1.
    exact = (rate**2 * np.cos(times) + rate * np.sin(times) + np.exp(-rate * times)) / (1 + rate**2)

    def fast(rate: Any) -> Any:
        return solvers.solve_ivp(lambda t, y: slope(t, y, rate), (0.0, 3.0), [1.0, 1.0], **options).y

    recorded = nb.jit(fast)(rate)
    np.testing.assert_allclose(recorded, plain, atol=1e-5 if method == "BDF" else 1e-6)
    np.testing.assert_allclose(recorded, [np.cos(times), exact], atol=1e-6)
    moved = np.imag(
        ((rate + 1e-30j) ** 2 * np.cos(times) + (rate + 1e-30j) * np.sin(times) + np.exp(-(rate + 1e-30j) * times))
        / (1 + (rate + 1e-30j) ** 2)
    )
    np.testing.assert_allclose(nb.jacfwd(fast)(rate)[1], moved / 1e-30, rtol=2e-3, atol=1e-9)


def test_many_steps_that_are_not_stiff_stay_explicit() -> None:
    """500 turns of a spring take more attempts than what is given without progress."""

    def last(w: Any) -> Any:
        found = solvers.odeint(lambda y, t: [y[1], -(w**2) * y[0]], [1.0, 0.0], [0.0, 1.0], rtol=1e-10, atol=1e-10)
        return found[-1, 0]

    w = 2 * np.pi * 500
    value, slope = nb.jit(nb.value_and_grad(last))(w)
    assert float(value) == pytest.approx(np.cos(w), abs=1e-5)
    assert float(slope) == pytest.approx(-np.sin(w), abs=1e-5)


@pytest.mark.parametrize(("method", "count", "rtol"), [("Radau", 40, 1e-9), ("LSODA", 3, np.full(3, 1e-9))])
def test_tolerances_and_sizes_that_scipys_integrators_take(method: str, count: int, rtol: Any) -> None:
    """More elements than the compiled loop takes, and a relative tolerance for each, are SciPy's."""
    rates = np.linspace(0.5, 2.0, count)
    options: dict[str, Any] = {"method": method, "t_eval": [1.0], "rtol": rtol, "atol": 1e-12}

    def last(p: Any) -> Any:
        return solvers.solve_ivp(lambda t, y: -p * y, (0, 1), np.ones(count), **options).y[:, 0]

    np.testing.assert_allclose(nb.jit(last)(rates), np.exp(-rates), atol=1e-7)
    np.testing.assert_allclose(np.diag(nb.jacrev(last)(rates)), -np.exp(-rates), atol=1e-6)


@pytest.mark.parametrize("method", ["Radau", "DOP853"])
def test_third_derivatives(method: str) -> None:
    """Newton's iterations at the stages are as many as the order needs."""

    def last(rate: Any) -> Any:
        return solvers.solve_ivp(lambda t, y: -rate * y, (0, 2), [1.0], method, [2.0], **TIGHT).y[0, 0]

    third = nb.jit(nb.grad(nb.grad(nb.grad(last))))
    assert float(third(0.5)) == pytest.approx(-8 * np.exp(-1.0), rel=1e-6)
