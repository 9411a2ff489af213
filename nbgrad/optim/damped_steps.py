"""One turn of Gauss and Newton's and of Levenberg and Marquardt's method: one trial step, and the residuals there.

In: residuals with their Jacobian and the state of an iteration. Out: the next state, and how the iteration has ended.
Called by compiled_minimisers.py inside a compiled loop. Steps solve the least-squares problem of the Jacobian by a QR
decomposition, not the normal equations, whose condition is the square. J. J. More, "The Levenberg-Marquardt algorithm:
implementation and theory", 1978 (the scaling); K. Madsen, H. B. Nielsen and O. Tingleff, "Methods for non-linear least
squares problems", 2nd edition, 2004, algorithm 3.16 (the damping).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..control.scan import scan
from .endings import FLAT, LOWEST, SHORT, SMALL_GRADIENT, STEPS


class State(NamedTuple):
    """The point, the residuals and their Jacobian, the scales of the unknowns, the damping (or the length of the trial
    step) and the factor by which a failure changes it, and the count of steps."""

    x: Any
    residuals: Any
    jacobian: Any
    scales: Any
    damping: Any
    factor: Any
    steps: Any


def start(x: np.ndarray, residuals: np.ndarray, jacobian: np.ndarray, damping: float) -> State:
    """The state at the start."""
    sizes = np.sqrt(np.sum(jacobian**2, axis=0))
    scales = np.where(sizes == 0, 1.0, sizes)
    return State(x, residuals, jacobian, scales, np.array(damping), np.array(2.0), np.array(0.0))


def damped(evaluate: Any, state: State, limits: Any) -> tuple[State, Any]:
    """A turn of Levenberg and Marquardt's. `limits` are the most turns, gtol, ftol, xtol and the most steps."""
    n = state.x.shape[0]
    edge = np.sqrt(state.damping) * state.scales
    whole = np.concatenate([state.jacobian, edge[:, None] * np.eye(n)])
    step = _solved(whole, np.concatenate([-state.residuals, 0.0 * state.x]))
    trial = state.x + step
    residuals, jacobian = evaluate(trial)
    before, after = _cost(state.residuals), _cost(residuals)
    predicted = 0.5 * (np.sum((state.jacobian @ step) ** 2) + 2.0 * np.sum((edge * step) ** 2))
    finite = np.isfinite(after) & np.all(np.isfinite(jacobian))
    ratio = (before - after) / np.where(predicted > 0, predicted, 1.0)
    good = finite & (before - after > 0)
    eased = state.damping * np.maximum(1.0 / 3.0, 1.0 - (2.0 * ratio - 1.0) ** 3)
    damping = np.where(good, eased, state.damping * state.factor)
    factor = np.where(good, 2.0, 2.0 * state.factor)
    free = state.damping <= 1e-3
    return _after(
        state, trial, residuals, jacobian, good, step, damping, factor, predicted, limits, free, damping > 1e60
    )


def undamped(evaluate: Any, state: State, limits: Any) -> tuple[State, Any]:
    """A turn of Gauss and Newton's: the whole step, or a part that halves until the sum of squares decreases."""
    whole = _solved(state.jacobian, -state.residuals)
    step = state.damping * whole
    trial = state.x + step
    residuals, jacobian = evaluate(trial)
    before, after = _cost(state.residuals), _cost(residuals)
    expected = np.sum((state.jacobian @ whole) ** 2)
    good = np.isfinite(after) & np.all(np.isfinite(jacobian)) & (before - after > 1e-4 * state.damping * expected)
    length = np.where(good, 1.0, 0.5 * state.damping)
    free, lost = state.damping == 1.0, length < 1e-15
    return _after(
        state, trial, residuals, jacobian, good, step, length, state.factor, 0.5 * expected, limits, free, lost
    )


def _after(
    state: State,
    trial: Any,
    residuals: Any,
    jacobian: Any,
    good: Any,
    step: Any,
    damping: Any,
    factor: Any,
    predicted: Any,
    limits: Any,
    free: Any,
    lost: Any,
) -> tuple[State, Any]:
    """The state after a trial, and how the iteration has ended; `free`: the step is as long as the problem wants."""
    before, after = _cost(state.residuals), _cost(residuals)
    sizes = np.sqrt(np.sum(jacobian**2, axis=0))
    steps = state.steps + np.where(good, 1.0, 0.0)
    kept = State(
        np.where(good, trial, state.x),
        np.where(good, residuals, state.residuals),
        np.where(good, jacobian, state.jacobian),
        np.where(good, np.maximum(state.scales, sizes), state.scales),
        damping,
        factor,
        steps,
    )
    # The cosine of the angle between the residuals and each column, as in MINPACK.
    length = np.sqrt(np.sum(kept.residuals**2))
    columns = np.sqrt(np.sum(kept.jacobian**2, axis=0))
    along = np.abs(kept.residuals @ kept.jacobian)
    scale = columns * length
    cosine = np.max(along / np.where(scale == 0, 1.0, scale))
    moved, size = np.sqrt(np.sum((kept.scales * step) ** 2)), np.sqrt(np.sum((kept.scales * kept.x) ** 2))
    # A step that only the damping makes short is no sign of a minimum, unless little can be gained at all.
    free = free | (cosine <= 1e-4)
    flat = free & (np.abs(before - after) <= limits[2] * before) & (predicted <= limits[2] * before)
    short = free & (moved <= limits[3] * size)
    end = np.where(good & (steps >= limits[4]), STEPS, np.where(lost, LOWEST, 0.0))
    end = np.where(short, SHORT, end)
    end = np.where(flat, FLAT, end)
    return kept, np.where(cosine <= limits[1], SMALL_GRADIENT, end)


def _cost(residuals: Any) -> Any:
    return 0.5 * np.sum(residuals**2)


def _solved(matrix: Any, right: Any) -> Any:
    """The solution of a least-squares problem by a QR decomposition of the matrix with columns of length one."""
    sizes = np.sqrt(np.sum(matrix**2, axis=0))
    sizes = np.where(sizes == 0, 1.0, sizes)
    n = matrix.shape[1]
    r, turned = _orthogonalised(matrix / sizes, right)
    diagonal = np.abs(np.diagonal(r))
    # A column that depends on the others gets no part.
    weak = diagonal <= 1e-15 * np.max(diagonal)
    regular = np.where(weak[:, None] & (np.eye(n) > 0), 1.0, np.where(weak[:, None], 0.0, r))
    return np.linalg.solve(regular, np.where(weak, 0.0, turned)) / sizes


def _orthogonalised(matrix: Any, right: Any) -> tuple[Any, Any]:
    """R, and Q^T times the right-hand side, by modified Gram-Schmidt, a loop in which all is compiled.

    With the right-hand side as a further column this is as stable as Householder's reflections: A. Bjorck, "Solving
    linear least squares problems by Gram-Schmidt orthogonalization", 1967.
    """
    n = matrix.shape[1]

    def column(rest: Any, of: Any) -> tuple[Any, Any]:
        place, later = of
        one = place @ rest
        length = np.sqrt(np.sum(one**2))
        unit = one / np.where(length == 0, 1.0, length)
        parts = later * (rest @ unit)
        return rest - parts[:, None] * unit, parts + length * place

    later = np.triu(np.ones((n, n + 1)), 1)
    _, rows = scan(column, np.concatenate([matrix.T, right[None]]), (np.eye(n, n + 1), later))
    return rows[:, :n], rows[:, n]
