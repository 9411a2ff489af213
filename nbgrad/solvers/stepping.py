"""The steps of SciPy's explicit Runge-Kutta methods, found by a compiled loop.

In: a right-hand side as a `ClosedFunction` over the state and the time, a method, SciPy's options, and plain arrays.
Out: the ends of the accepted steps, and whether they reach the last time. Called by trajectories.py, where only
the steps are wanted: the solution follows from them (replayed_steps.py), which takes the stages from here.

The control of the step's size is that of SciPy, and so are the steps, up to rounding: E. Hairer, S. P. Norsett and G.
Wanner, "Solving Ordinary Differential Equations I", 1993, II.4. A turn of the loop is an attempt at a step; a program
has a fixed number of turns, and is called until the end is reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..control.scan import scan
from ..graph.ir import placeholder
from ..record.tensor import Tensor
from .closed_functions import FLOAT, ClosedFunction, HostProgram, as_float, recorded
from .tableaus import Tableau, tableau

TURNS = 64
SAFETY, LEAST, MOST = 0.9, 0.2, 10.0
"""Of the factor between the sizes of steps."""


@dataclass(frozen=True)
class Found:
    """The ends of steps, the first time in front; whether the last time was reached; SciPy's count and message."""

    ends: np.ndarray
    reached: bool
    evaluations: int
    message: str

    @property
    def no_stages(self) -> np.ndarray:
        """The stages, which follow from the ends."""
        return np.zeros((len(self.ends) - 1, 0, 0))

    @property
    def fields(self) -> dict[str, Any]:
        """SciPy's facts about a run."""
        counts = {"nfev": self.evaluations, "njev": 0, "nlu": 0, "nit": len(self.ends) - 1}
        return {"success": self.reached, "status": 0 if self.reached else -1, "message": self.message, **counts}


def explicit_steps(
    function: ClosedFunction,
    method: str,
    options: Mapping[str, Any],
    first: float,
    last: float,
    y0: np.ndarray,
    values: Sequence[np.ndarray],
    most: int | None = None,
) -> Found:
    """The accepted steps between two times.

    With `most`, steps end before the last time if there are more attempts than that for next to no part of the span,
    and 20 times as many for all of it.
    """
    from scipy import integrate

    def slope(t: float, y: np.ndarray) -> np.ndarray:
        return function.call(as_float(y), as_float(t), *values)[0]

    # SciPy checks the options and chooses the first step.
    solver: Any = getattr(integrate, method)(slope, first, y0, last, **options)
    program = function.made(("steps", method), lambda: _program(function, method))
    absolute = np.broadcast_to(np.asarray(solver.atol, FLOAT), y0.shape)
    n = y0.size
    state = np.array([first, solver.h_abs, 0.0, 0.0])
    y, ends, attempts = y0, [np.array([first])], 0
    limits = np.array([last, solver.max_step, solver.rtol])
    allowed = np.inf if most is None else most
    while state[0] != last and not state[3] and attempts < allowed * (1 + 20 * (state[0] - first) / (last - first)):
        (row,) = program(state, y, limits, as_float(absolute), *values)
        state, y = row[:4].copy(), row[4 : 4 + n].copy()
        times, kinds = row[4 + n :].reshape(2, TURNS)
        ends.append(times[kinds == 1])
        attempts += int((kinds >= 0).sum())
    reached = bool(state[0] == last)
    said = "The solver successfully reached the end of the integration interval." if reached else solver.TOO_SMALL_STEP
    return Found(np.concatenate(ends), reached, solver.nfev + attempts * solver.n_stages, said)


def _program(function: ClosedFunction, method: str) -> HostProgram:
    """A program of attempts at steps.

    It takes the time, the size, whether the last attempt was rejected and whether no smaller one is possible; the
    state; limits; and parameters. It gives the first five again, the time of each turn, and 1 for an accepted step, 0
    for a rejected one and -1 for no attempt.
    """
    known = tableau(method, dense=False)
    y = function.variables[0]
    shapes = [(4,), y.shape, (3,), y.shape]
    given = [*[placeholder(shape, FLOAT) for shape in shapes], *function.captured]

    def attempts(state: Tensor, y: Tensor, limits: Tensor, absolute: Tensor, *parameters: Tensor) -> Any:
        nodes = [one._node for one in parameters]

        def slope(t: Any, y: Any) -> Any:
            return Tensor._of(function.at([y._node, t._node, *nodes])[0])

        last, longest, relative = limits[0], limits[1], limits[2]

        def turn(carry: Any, _: Any) -> tuple[Any, Any]:
            t, size, rejected, failed, y = carry
            running = (t != last) & (failed == 0)
            sign = np.where(last >= t, 1.0, -1.0)
            least = 10 * np.abs(np.nextafter(t, sign * np.inf) - t)
            size = np.where(rejected == 0, np.minimum(np.maximum(size, least), longest), size)
            too_small = running & (size < least)
            tried = running & (size >= least)
            target = t + sign * size
            target = np.where(sign * (target - last) > 0, last, target)
            h = np.where(tried, target - t, 0.0)
            slopes = stages(known, slope, t, h, y)
            after = y + h * (known.b @ slopes)
            error = _error(method, slopes, h, absolute + relative * np.maximum(np.abs(y), np.abs(after)))
            factor = SAFETY * error**known.exponent
            grown = np.where(error == 0, MOST, np.minimum(MOST, factor))
            grown = np.where(rejected == 0, grown, np.minimum(1.0, grown))
            accepted = tried & (error < 1)
            # Of an error that is no number, the factor is none either.
            shrunk = np.where(factor > LEAST, factor, LEAST)
            kind = np.where(tried, np.where(accepted, 1.0, 0.0), -1.0)
            carried = (
                np.where(accepted, target, t),
                np.where(tried, np.abs(h) * np.where(accepted, grown, shrunk), size),
                np.where(tried & (error < 1), 0.0, np.where(tried, 1.0, rejected)),
                np.where(too_small, 1.0, failed),
                np.where(accepted, after, y),
            )
            return carried, (carried[0], kind)

        start = (state[0], state[1], state[2], state[3], y)
        (t, size, rejected, failed, y), (times, kinds) = scan(turn, start, length=TURNS)
        return np.concatenate([np.stack([t, size, rejected, failed]), y, times, kinds])

    made, outside = recorded(attempts, given, "solve_ivp", lambda nodes: nodes)
    constants = dict(zip(made.captured, outside, strict=True))
    outputs = made.at([*made.variables, *constants.values()])
    return HostProgram(outputs, made.variables)


def stages(known: Tableau, slope: Any, t: Any, h: Any, y: Any) -> Any:
    """The slopes at the stages of a step."""
    count = len(known.b)

    def stage(slopes: Any, row: Any) -> tuple[Any, None]:
        weights, part, place = row
        return slopes + place[:, None] * slope(t + part * h, y + h * (weights @ slopes)), None

    return scan(stage, np.zeros((count, y.shape[0])), (known.a, known.c, np.eye(count)))[0]


def _error(method: str, slopes: Any, h: Any, scale: Any) -> Any:
    """The estimate of a step's error, in units of what is allowed."""
    from scipy import integrate

    known: Any = getattr(integrate, method)
    size = scale.shape[0]
    if method != "DOP853":
        return np.sqrt(np.sum((h * (known.E @ slopes) / scale) ** 2) / size)
    fifth, third = (np.sum((weights @ slopes / scale) ** 2) for weights in (known.E5, known.E3))
    whole = fifth + 0.01 * third
    return np.where(whole == 0, 0.0, np.abs(h) * fifth / np.sqrt(np.where(whole == 0, 1.0, whole) * size))
