"""Steps of Radau's collocation of fifth order through F(t, y, y') = 0, found by a compiled loop.

In: a residual as a `ClosedFunction` over the state, its slope and the time; tolerances; plain arrays. Out: the ends of
the accepted steps with their stages. Called by differential_algebraic.py, and by trajectories.py for SciPy's implicit
methods, where only the steps are wanted: the solution follows from them.

Estimate of the error and control of the step's size are those of RADAU5, as SciPy's are: E. Hairer and G. Wanner,
"Solving Ordinary Differential Equations II", 1996, IV.8 and VI.1. Other than there, stages are found by Newton's method
with new Jacobians, as one system. A turn of the loop is one of Newton's iterations; a program has a fixed number of
turns, and is called until the end is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..control.scan import scan
from ..graph.ir import placeholder
from ..graph.loops.loop_body import like
from ..numpy import linalg
from ..record.tensor import Tensor
from ..transforms.vmap import vmap
from .closed_functions import FLOAT, ClosedFunction, HostProgram, as_float, recorded
from .tableaus import RADAU_DENSE, RADAU_MATRIX, RADAU_NODES

TURNS = 32
MOST_ITERATIONS = 10
RADAU_INVERSE = np.linalg.inv(RADAU_MATRIX)
"""From stages, the distances from the first state, to slopes at the nodes times the length."""
_POLE = 3 + 3 ** (2 / 3) - 3 ** (1 / 3)
_ERROR = np.array([-13 - 7 * 6**0.5, -13 + 7 * 6**0.5, -1]) / 3
"""Of the estimate of the error: the real eigenvalue of `RADAU_INVERSE`, and the weights of the stages."""
STATE = 9
"""Numbers of a loop's state beside arrays: the time and the size to try, size and error of the last step, the norm of
the last iteration and their count, whether the last attempt failed, whether all has, and the number of turns."""


@dataclass(frozen=True)
class Limits:
    """Tolerances and lengths of steps, of which `first` is that of the first one."""

    rtol: float
    atol: np.ndarray
    first: float
    longest: float


@dataclass(frozen=True)
class Collocated:
    """The ends of steps, the first time in front; their stages, shape (steps, 3, states); and facts about the run."""

    ends: np.ndarray
    stages: np.ndarray
    reached: bool
    turns: int

    @property
    def fields(self) -> dict[str, Any]:
        """SciPy's facts about a run."""
        message = "The solver successfully reached the end of the integration interval."
        if not self.reached:
            message = "Required step size is less than spacing between numbers."
        counts = {"nfev": 3 * self.turns, "njev": 3 * self.turns, "nlu": self.turns, "nit": len(self.ends) - 1}
        return {"success": self.reached, "status": 0 if self.reached else -1, "message": message, **counts}


def turned(function: ClosedFunction) -> ClosedFunction:
    """F of the slope, the state and the time."""
    y, slope, t = function.variables
    inputs = (slope, y, t), function.captured
    return function.made("by the slope", lambda: ClosedFunction(*inputs, function.outputs, function.checks))


class Residual:
    """F, with its Jacobians by the state and by its slope, each of Tensors: `value(t, y, slope)`."""

    def __init__(self, function: ClosedFunction, given: Sequence[Any]) -> None:
        by_state, by_slope = function.jacobian(), turned(function).jacobian()

        def at(made: ClosedFunction, *variables: Any) -> Tensor:
            return Tensor._of(made.at([*[one._node for one in variables], *given])[0])

        self.value: Callable[..., Any] = lambda t, y, slope: at(function, y, slope, t)
        self.by_state: Callable[..., Any] = lambda t, y, slope: at(by_state, y, slope, t)
        self.by_slope: Callable[..., Any] = lambda t, y, slope: at(by_slope, slope, y, t)


def corrected(residual: Residual, z: Any, t: Any, h: Any, y: Any) -> Any:
    """The stages after one of Newton's iterations; those of a step of no length stay."""
    n = y.shape[0]
    rests = h == 0
    length = np.where(rests, 1.0, h)
    given = t + RADAU_NODES * h, y + z, (RADAU_INVERSE @ z) / length
    rest = vmap(residual.value)(*given)
    by_state, by_slope = vmap(residual.by_state)(*given), vmap(residual.by_slope)(*given)
    blocks = np.eye(3)[:, None, :, None] * by_state[:, :, None, :]
    blocks = blocks + RADAU_INVERSE[:, None, :, None] * by_slope[:, :, None, :] / length
    matrix = np.where(rests, np.eye(3 * n), blocks.reshape(3 * n, 3 * n))
    return z - linalg.solve(matrix, np.where(rests, 0.0, rest.reshape(3 * n))).reshape(3, n)


def collocated_steps(
    function: ClosedFunction,
    limits: Limits,
    first: float,
    last: float,
    y0: np.ndarray,
    slope0: np.ndarray,
    values: Sequence[np.ndarray],
) -> Collocated:
    """The accepted steps between two times."""
    n = y0.size
    program = function.made("collocated steps", lambda: _program(function))
    row = np.concatenate([[first, limits.first], np.zeros(STATE - 2), y0, slope0, np.zeros(3 * n)])
    ends, stages = [np.array([first])], [np.zeros((0, 3, n))]
    given = np.array([last, limits.longest, limits.rtol])
    absolute = as_float(np.broadcast_to(limits.atol, y0.shape))
    while row[0] != last and not row[7]:
        row, times, kinds, every = program(row, given, absolute, *values)
        ends.append(times[kinds == 1])
        stages.append(every[kinds == 1])
    return Collocated(np.concatenate(ends), np.concatenate(stages), not row[7], int(row[8]))


MOST_STATES = 32
"""The most elements of a state for which one system of all stages, anew in each iteration, is a good way."""
_OPTIONS = frozenset(["rtol", "atol", "max_step", "first_step"])


def takes(options: Mapping[str, Any], states: int) -> bool:
    """Whether steps for SciPy's implicit methods with such options are found here."""
    return states <= MOST_STATES and _OPTIONS.issuperset(options) and np.ndim(options.get("rtol", 0.0)) == 0


def ordinary_steps(
    function: ClosedFunction,
    options: Mapping[str, Any],
    first: float,
    last: float,
    y0: np.ndarray,
    values: Sequence[np.ndarray],
) -> Collocated:
    """The accepted steps for a right-hand side, a function of the state and the time, with SciPy's options."""
    from scipy import integrate

    def how() -> ClosedFunction:
        y, t = function.variables
        slope = like(y)
        return ClosedFunction((y, slope, t), function.captured, [slope - function.outputs[0]], function.checks)

    def slope(t: float, y: np.ndarray) -> np.ndarray:
        return function.call(as_float(y), as_float(t), *values)[0]

    # SciPy checks the options and chooses the first step.
    solver: Any = integrate.Radau(slope, first, y0, last, jac=np.eye(y0.size), **options)
    limits = Limits(solver.rtol, solver.atol, solver.h_abs, solver.max_step)
    return collocated_steps(function.made("residual", how), limits, first, last, y0, solver.f, values)


def _program(function: ClosedFunction) -> HostProgram:
    """A program of some iterations: from a row of the state to that, with times, kinds and stages of each turn.

    A kind is 1 for an accepted step, and 0 otherwise.
    """
    n = function.variables[0].size
    given = [*[placeholder(shape, FLOAT) for shape in ((STATE + 5 * n,), (3,), (n,))], *function.captured]

    def iterations(row: Tensor, limits: Tensor, absolute: Tensor, *parameters: Tensor) -> Any:
        residual = Residual(function, [one._node for one in parameters])

        def turn(carry: Any, _: Any) -> tuple[Any, Any]:
            return _turn(residual, carry, limits, absolute)

        numbers = [row[k] for k in range(STATE)]
        y, slope, before = row[STATE : STATE + n], row[STATE + n : STATE + 2 * n], row[STATE + 2 * n :].reshape(3, n)
        (*numbers, y, slope, before), (times, kinds, stages) = scan(turn, (*numbers, y, slope, before), length=TURNS)
        return np.concatenate([np.stack(numbers), y, slope, before.reshape(-1)]), times, kinds, stages

    made, outside = recorded(iterations, given, "collocation", lambda nodes: nodes)
    return HostProgram(made.at([*made.variables, *outside]), made.variables)


def _turn(residual: Residual, carry: Any, limits: Any, absolute: Any) -> tuple[Any, Any]:
    """One of Newton's iterations; with the last one of a step, the estimate of its error, and the next size.

    `before` has the stages of the last step, or those of the step that is being found.
    """
    t, size, old_size, old_error, old_norm, count, failed, over, turns, y, slope, before = carry
    last, longest, relative = limits[0], limits[1], limits[2]
    sign = np.where(last >= t, 1.0, -1.0)
    begins = count == 0
    least = 10 * np.abs(np.nextafter(t, sign * np.inf) - t)
    size = np.where(begins & (failed == 0), np.minimum(np.maximum(size, least), longest), size)
    running = (t != last) & (over == 0)
    tried = running & (size >= least)
    target = t + sign * size
    target = np.where(sign * (target - last) > 0, last, target)
    h = np.where(tried, target - t, 0.0)
    length = np.where(tried, h, 1.0)
    z = np.where(begins, _guess(before, h, old_size, slope), before)
    found = corrected(residual, z, t, h, y)
    scale = absolute + relative * np.abs(y)
    norm = _norm((found - z) / scale)
    tolerance = np.maximum(10 * np.finfo(FLOAT).eps / relative, np.minimum(0.03, np.sqrt(relative)))
    done = tried & (norm < tolerance)
    # A norm that is no number compares with nothing.
    hopeless = tried & ~done & (~(norm < 1e100) | (~begins & (norm > 2 * old_norm)) | (count >= MOST_ITERATIONS))
    error = _error(residual, found, t, h, y, slope, absolute, relative, (failed != 0) | (old_size == 0))
    error = np.where(np.isfinite(error), error, 1e10)
    root = np.where(error == 0, 1.0, error) ** -0.25
    trend = np.where((old_size > 0) & (old_error > 0), np.abs(h) / np.where(old_size > 0, old_size, 1.0), 1.0)
    trend = trend * np.where((old_size > 0) & (old_error > 0), old_error**0.25 * root, 1.0)
    factor = 0.9 * 13 / (13 + count) * np.where(error == 0, 10.0, np.minimum(1.0, trend) * root)
    accepted, rejected = done & (error < 1), done & (error >= 1)
    grown = np.minimum(np.where(failed == 0, 10.0, 1.0), factor)
    next_size = np.where(hopeless, 0.5, np.where(accepted, grown, np.maximum(0.2, factor))) * np.abs(h)
    goes_on = tried & ~done & ~hopeless
    lost = hopeless | rejected
    # After a failure the next guess follows the slope, as at the start.
    carried = (
        np.where(accepted, target, t),
        np.where(done | hopeless, next_size, size),
        np.where(accepted, np.abs(h), np.where(lost, 0.0, old_size)),
        np.where(accepted, np.maximum(error, 1e-8), np.where(lost, 0.0, old_error)),
        norm,
        np.where(goes_on, count + 1.0, 0.0),
        np.where(lost, 1.0, np.where(accepted, 0.0, failed)),
        np.where(running & ~tried, 1.0, over),
        turns + np.where(tried, 1.0, 0.0),
        np.where(accepted, y + found[2], y),
        np.where(accepted, (RADAU_INVERSE[2] @ found) / length, slope),
        np.where(tried, found, before),
    )
    return carried, (carried[0], np.where(accepted, 1.0, 0.0), found)


def _guess(before: Any, h: Any, old_size: Any, slope: Any) -> Any:
    """Stages to begin with: along the last step's polynomial, or along the slope."""
    places = 1.0 + RADAU_NODES * np.abs(h) / np.where(old_size == 0, 1.0, old_size)
    further = (places[:, None] ** np.arange(1, 4)) @ (RADAU_DENSE @ before) - before[2]
    return np.where(old_size == 0, RADAU_NODES[:, None] * h * slope, further)


def _error(
    residual: Residual, z: Any, t: Any, h: Any, y: Any, slope: Any, absolute: Any, relative: Any, doubtful: Any
) -> Any:
    """The estimate of a step's error, in units of what is allowed; where it is doubtful, filtered once more."""
    by_slope = residual.by_slope(t, y, slope)
    length = np.where(h == 0, 1.0, h)
    matrix = np.where(h == 0, np.eye(y.shape[0]), _POLE / length * by_slope + residual.by_state(t, y, slope))
    right = by_slope @ (slope + (_ERROR @ z) / length)
    error = linalg.solve(matrix, right)
    scale = absolute + relative * np.maximum(np.abs(y), np.abs(y + z[2]))
    size = _norm(error / scale)
    again = _norm(linalg.solve(matrix, right - residual.value(t, y + error, slope)) / scale)
    return np.where(doubtful & (size >= 1), again, size)


def _norm(x: Any) -> Any:
    return np.sqrt(np.mean(x**2))
