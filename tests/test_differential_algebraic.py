"""Differential-algebraic equations: values and derivatives against formulas, elliptic functions and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.special

import nbgrad as nb
from nbgrad import solvers
from nbgrad.errors import ArgumentError, ShapeError, TracedValueError
from nbgrad.functions.linalg.matrix_batches import MatrixError
from nbgrad.solvers.host_solves import ConvergenceError

pytestmark = pytest.mark.unoptimized(but=16)

TIGHT = {"rtol": 1e-10, "atol": 1e-12}
TIMES = np.array([0.0, 0.3, 1.1, 2.0])


def _circuit(k: Any, r: Any, v: Any, times: Any = TIMES, last: Any = 2.0) -> Any:
    """A voltage v exp(-k t / r), and the current by Ohm's law: shape (2, times)."""

    def residual(t: Any, y: Any, yp: Any) -> Any:
        return [yp[0] + k * y[1], r * y[1] - y[0]]

    start = [np.stack([v, v / r]), np.stack([-k * v / r, 0.0 * v])]
    return solvers.solve_dae(residual, (0.0, last), *start, times, **TIGHT).y


def test_values_and_first_derivatives_of_a_linear_system() -> None:
    k, r, v = 1.5, 2.0, 3.0
    decay = v * np.exp(-k * TIMES / r)
    np.testing.assert_allclose(_circuit(k, r, v), [decay, decay / r], atol=1e-9)
    by_k = np.stack([-TIMES / r * decay, -TIMES / r**2 * decay])
    by_r = np.stack([k * TIMES / r**2 * decay, (k * TIMES / r - 1) / r**2 * decay])
    by_v = np.stack([decay, decay / r]) / v
    for jacobian in (nb.jacfwd, nb.jacrev):
        for position, exact in enumerate((by_k, by_r, by_v)):
            found = nb.jit(jacobian(_circuit, position))(k, r, v)
            np.testing.assert_allclose(found, exact, atol=1e-8)


def test_second_derivatives() -> None:
    def current(k: Any) -> Any:
        return _circuit(k, 2.0, 3.0)[1, -1]

    exact = 1.5 * np.exp(-1.5)
    for second in (nb.grad(nb.grad(current)), nb.jacfwd(nb.grad(current))):
        assert float(second(1.5)) == pytest.approx(exact, rel=1e-7)


def test_times_and_ends() -> None:
    k, r, v = 1.5, 2.0, 3.0
    slope = -k / r * v * np.exp(-k / r)
    assert float(nb.grad(lambda t: _circuit(k, r, v, np.stack([t]))[0, 0])(1.0)) == pytest.approx(slope, rel=1e-6)

    def at_end(t: Any) -> Any:
        return _circuit(k, r, v, np.stack([t]), t)[0, 0]

    assert float(nb.grad(at_end)(1.0)) == pytest.approx(slope, rel=1e-7)


def test_batches() -> None:
    rates = np.array([0.5, 1.0, 4.0])
    found = nb.vmap(lambda k: _circuit(k, 2.0, 3.0)[0, -1])(rates)
    np.testing.assert_allclose(found, 3.0 * np.exp(-rates), atol=1e-9)


def _pendulum(gravity: Any) -> Any:
    """The position of a pendulum of length 1, which falls from the side: shape (2, times)."""

    def residual(t: Any, y: Any, yp: Any) -> Any:
        x, z, u, v, pull = y[0], y[1], y[2], y[3], y[4]
        # The rod's length, differentiated twice: index 1.
        rod = u * u + v * v - pull * (x * x + z * z) - gravity * z
        return [yp[0] - u, yp[1] - v, yp[2] + pull * x, yp[3] + pull * z + gravity, rod]

    slope = np.stack([0.0, 0.0, 0.0, -1.0, 0.0]) * gravity
    return solvers.solve_dae(residual, (0, 2), [1.0, 0.0, 0.0, 0.0, 0.0], slope, TIMES, **TIGHT).y[:4]


def test_pendulum_beside_elliptic_functions() -> None:
    gravity = 9.81
    sn, _, _, _ = scipy.special.ellipj(scipy.special.ellipk(0.5) + np.sqrt(gravity) * TIMES, 0.5)
    angle = 2 * np.arcsin(np.sqrt(0.5) * sn)
    found = _pendulum(gravity)
    np.testing.assert_allclose(found[:2], [np.sin(angle), -np.cos(angle)], atol=1e-7)
    # The angle is a function of the root of gravity times the time.
    exact = found[2:] * TIMES / (2 * gravity)
    np.testing.assert_allclose(nb.jacrev(_pendulum)(gravity)[:2], exact, atol=1e-6)


def _robertson(y: Any, k: Any) -> tuple[Any, Any]:
    slow, fast = k[0] * y[0] - k[1] * y[1] * y[2], k[2] * y[1] ** 2
    return -slow, slow - fast


def test_robertson_beside_scipy_with_sensitivities() -> None:
    """Values and derivatives of the ordinary equations, by SciPy: the sensitivities are further equations."""
    k, last = np.array([0.04, 1e4, 3e7]), 40.0
    atol = np.array([1e-10, 1e-14, 1e-10])

    def reacted(k: Any) -> Any:
        def residual(t: Any, y: Any, yp: Any) -> Any:
            one, two = _robertson(y, k)
            return [yp[0] - one, yp[1] - two, y[0] + y[1] + y[2] - 1.0]

        slope = np.stack([-k[0], k[0], 0.0 * k[0]])
        return solvers.solve_dae(residual, (0.0, last), [1.0, 0.0, 0.0], slope, [last], rtol=1e-9, atol=atol).y[:, 0]

    def with_sensitivities(t: float, w: np.ndarray) -> np.ndarray:
        y, s = w[:3], w[3:].reshape(3, 3)
        one, two = _robertson(y, k)
        third = -one - two
        a = np.array([[-k[0], k[1] * y[2], k[1] * y[1]], [k[0], -k[1] * y[2] - 2 * k[2] * y[1], -k[1] * y[1]]])
        b = np.array([[-y[0], y[1] * y[2], 0.0], [y[0], -y[1] * y[2], -(y[1] ** 2)]])
        moved = a @ s + b
        return np.concatenate([[one, two, third], moved.ravel(), -moved.sum(0)])

    start = np.concatenate([[1.0, 0.0, 0.0], np.zeros(9)])
    # The sizes of the sensitivities are those of one over the rates.
    slack = np.concatenate([atol, np.outer(atol, 1 / k).ravel()])
    known = scipy.integrate.solve_ivp(with_sensitivities, (0, last), start, "Radau", rtol=1e-9, atol=slack).y[:, -1]
    np.testing.assert_allclose(reacted(k), known[:3], rtol=1e-6)
    np.testing.assert_allclose(nb.jit(nb.jacrev(reacted))(k), known[3:].reshape(3, 3), rtol=1e-5)
    np.testing.assert_allclose(nb.jacfwd(reacted)(k), known[3:].reshape(3, 3), rtol=1e-5)


def test_equations_that_are_not_linear_in_the_slope() -> None:
    def waved(p: Any, span: Any = (0.0, 2.0)) -> Any:
        def residual(t: Any, y: Any, yp: Any) -> Any:
            wanted = p * np.cos(t)
            return yp**3 + yp - wanted**3 - wanted

        start = [np.stack([p * np.sin(span[0])]), np.stack([p * np.cos(span[0])])]
        found = solvers.solve_dae(residual, span, *start, [span[1]], **TIGHT)
        return np.stack([found.y[0, 0], found.yp[0, 0]])

    np.testing.assert_allclose(waved(0.7), [0.7 * np.sin(2.0), 0.7 * np.cos(2.0)], atol=1e-8)
    np.testing.assert_allclose(waved(0.7, (2.0, 0.0)), [0.0, 0.7], atol=1e-8)
    np.testing.assert_allclose(nb.jacrev(waved)(0.7), [np.sin(2.0), np.cos(2.0)], atol=1e-7)


def test_the_points_of_all_steps() -> None:
    def residual(t: Any, y: Any, yp: Any) -> Any:
        return [yp[0] + y[1], y[1] - y[0]]

    found = solvers.solve_dae(residual, (0.0, 1.0), [1.0, 1.0], [-1.0, 0.0], rtol=1e-6, atol=1e-9)
    assert found.success and found.t[0] == 0.0 and found.t[-1] == 1.0 and found.nit == len(found.t) - 1
    np.testing.assert_allclose(found.y[0], np.exp(-found.t), atol=1e-6)
    np.testing.assert_allclose(found.yp[0], -np.exp(-found.t), atol=1e-6)

    def total(v: Any) -> Any:
        start = [np.stack([v, v]), np.stack([-v, 0.0 * v])]
        return np.sum(solvers.solve_dae(residual, (0.0, 1.0), *start, rtol=1e-6, atol=1e-9).y[0, -1])

    assert float(nb.grad(total)(1.0)) == pytest.approx(np.exp(-1.0), abs=1e-6)
    with pytest.raises(TracedValueError, match=r"solve_dae\(\) needs t_eval"):
        nb.jit(total)(1.0)


def test_a_start_that_is_found_first() -> None:
    """The algebraic element at the start is a root, by which derivatives go on."""

    def last(a: Any) -> Any:
        def algebraic(w: Any) -> Any:
            return w + a * w**3 - 1.0

        w = solvers.brentq(algebraic, 0.0, 1.0)

        def residual(t: Any, y: Any, yp: Any) -> Any:
            return [yp[0] - y[1], algebraic(y[1])]

        return solvers.solve_dae(
            residual, (0, 1), np.stack([0.0 * w, w]), np.stack([w, 0.0 * w]), [0.0, 2.0 / 3], **TIGHT
        ).y

    w = np.real(next(root for root in np.roots([2.0, 0.0, 1.0, -1.0]) if abs(root.imag) < 1e-12))
    by_a = -(w**3) / (1 + 6 * w**2)
    np.testing.assert_allclose(nb.jacrev(last)(2.0), [[0.0, by_a * 2 / 3], [by_a, by_a]], atol=1e-9)


def test_what_is_refused() -> None:
    def residual(t: Any, y: Any, yp: Any) -> Any:
        return [yp[0] + y[1], y[1] - y[0]]

    with pytest.raises(ArgumentError, match=r"do not fulfil the equations .* see equation 1 \(residual 1\)"):
        solvers.solve_dae(residual, (0.0, 1.0), [1.0, 2.0], [-2.0, 0.0])
    solvers.solve_dae(residual, (0.0, 1.0), [1.0, 1.0 + 1e-4], [-1.0, 0.0])  # within the tolerances
    with pytest.raises(ArgumentError, match="not finite at the first time"):
        solvers.solve_dae(lambda t, y, yp: yp - 1.0 / t, (0.0, 1.0), [1.0], [0.0])
    with pytest.raises(ShapeError, match="of one shape"):
        solvers.solve_dae(residual, (0.0, 1.0), [1.0, 1.0], [-1.0])
    with pytest.raises(ShapeError, match="must return an array of shape"):
        solvers.solve_dae(lambda t, y, yp: yp[0], (0.0, 1.0), [1.0, 1.0], [-1.0, 0.0])
    with pytest.raises(ArgumentError, match="must be positive"):
        solvers.solve_dae(residual, (0.0, 1.0), [1.0, 1.0], [-1.0, 0.0], rtol=0.0)
    with pytest.raises(ArgumentError, match="lie outside of t_span"):
        solvers.solve_dae(residual, (0.0, 1.0), [1.0, 1.0], [-1.0, 0.0], [2.0])
    with pytest.raises(MatrixError, match=r"solve_dae\(\) do not determine the solution"):
        solvers.solve_dae(lambda t, y, yp: [yp[0] + y[0], y[0] + yp[0]], (0.0, 1.0), [1.0, 1.0], [-1.0, 0.0])


def test_an_end_that_is_not_reached() -> None:
    """The solution 1 / (1 - t) ends before the time 1."""

    def last(v: Any) -> Any:
        return solvers.solve_dae(lambda t, y, yp: yp - y**2, (0.0, 2.0), np.stack([v]), np.stack([v * v]), [2.0])

    found = last(1.0)
    assert not found.success and found.status == -1 and "too small at 1" in found.message and np.isnan(found.y).all()
    with pytest.raises(ConvergenceError, match=r"solve_dae\(\) has not converged"):
        nb.grad(lambda v: last(v).y[0, 0])(1.0)


def test_events() -> None:
    """A ball on a spring, whose pull is an algebraic element: times of rest, and of a terminal crossing."""

    def residual(t: Any, y: Any, yp: Any, k: Any) -> Any:
        return [yp[0] - y[1], yp[1] - y[2], y[2] + k * y[0]]

    def rests(t: Any, y: Any, yp: Any, k: Any) -> Any:
        return y[1]

    def crosses(t: Any, y: Any, yp: Any, k: Any) -> Any:
        return yp[1]  # the pull, zero where the place is

    crosses.direction, crosses.terminal = -1, 1  # type: ignore[attr-defined]

    def found(k: Any, t_eval: Any = None) -> Any:
        start = [np.stack([1.0, 0.0, -k]), np.stack([0.0, -k, 0.0])]
        return solvers.solve_dae(residual, (0.0, 20.0), *start, t_eval, [rests, crosses], (k,), **TIGHT)

    k = 4.0
    plain = found(k)
    assert plain.status == 1 and plain.success and "termination" in plain.message
    # The place is cos(sqrt(k) t); the pull falls through zero at three quarters of the period.
    np.testing.assert_allclose(plain.t_events[0], np.array([0.0, np.pi]) / 2.0, atol=1e-8)
    np.testing.assert_allclose(plain.t_events[1], [1.5 * np.pi / 2.0], atol=1e-8)
    np.testing.assert_allclose(plain.y_events[1], [[0.0, 2.0, 0.0]], atol=1e-7)
    assert float(plain.t[-1]) == pytest.approx(1.5 * np.pi / 2.0)
    assert found(k, [0.0, 1.0, 3.0]).t.tolist() == [0.0, 1.0]
    slope = nb.grad(lambda k: found(k).t_events[1][0])(k)
    assert float(slope) == pytest.approx(-1.5 * np.pi / (2 * k**1.5), rel=1e-5)  # `yp` is of third order
    with pytest.raises(TracedValueError, match="takes no events"):
        nb.jit(lambda k: found(k).t_events[1][0])(k)
