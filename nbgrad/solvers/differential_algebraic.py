"""Differential-algebraic equations F(t, y, y') = 0 of index 1, with derivatives: `solve_dae`.

In: a residual, which may close over recorded values, a span of time, and a state with its slope that fulfil the
equations. Out: a result with SciPy's fields. Called by users.

Steps are those of collocation_steps.py. A solution along them is done again as graph, as for ordinary equations
(replayed_steps.py); its derivatives are those of the steps, a discrete adjoint or tangent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..control.scan import scan
from ..errors import ArgumentError, ShapeError
from ..functions.linalg.matrix_batches import MatrixError
from ..graph.builders import concatenate, reshape
from ..graph.ir import Node
from ..record.tensor import Tensor
from ..runtime.evaluate import computed, concrete
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .closed_functions import as_float, bound, one_output, recorded
from .collocation_steps import Limits, Residual, collocated_steps, corrected, turned
from .implicit import Solution, flat_start, float_node, is_plain, option_key, recorded_fields
from .replayed_steps import Problem, Steps
from .tableaus import RADAU_DENSE
from .trajectories import FIELDS, Events, Integration, Trajectory, last_event

TITLE = "solve_dae"


class AlgebraicRuns(Integration):
    """Runs of the compiled loop for a residual; they are remembered, as those of SciPy's integrators."""

    def _found(self, first: float, last: float, y0: np.ndarray, values: Sequence[np.ndarray]) -> Steps:
        slope0, *given = values
        limits = self._limits(first, last, y0, slope0)
        self._check_start_of(first, last, y0, slope0, given, limits)
        run = collocated_steps(self.function, limits, first, last, y0, slope0, given)
        fields = run.fields
        if not run.reached:
            where = f"Steps became too small at {run.ends[-1]:.6g}"
            fields["message"] = f"{where}: a residual is not finite, or the equations do not determine the solution."
        return Steps((run.ends - first) / ((last - first) or 1.0), run.stages, None, fields)

    def _limits(self, first: float, last: float, y0: np.ndarray, slope0: np.ndarray) -> Limits:
        given = self.options
        rtol = max(float(given["rtol"]), 100 * float(np.finfo(np.float64).eps))
        atol = np.broadcast_to(as_float(given["atol"]), y0.shape)
        scale = atol + rtol * np.abs(y0)
        size, speed = (float(np.sqrt(np.mean((one / scale) ** 2))) for one in (y0, slope0))
        step = given["first_step"] or (1e-6 if min(size, speed) < 1e-5 else 0.01 * size / speed)
        return Limits(rtol, atol, min(step, abs(last - first)), given["max_step"])

    def _check_start_of(
        self,
        first: float,
        last: float,
        y0: np.ndarray,
        slope0: np.ndarray,
        given: Sequence[np.ndarray],
        limits: Limits,
    ) -> None:
        """Raise unless a change of the state and the slope within the tolerances makes the residual zero."""
        rest = self.function.call(y0, slope0, as_float(first), *given)[0]
        if not np.isfinite(rest).all():
            message = f"The residual of {TITLE}() is not finite at the first time, {first:g}."
            raise ArgumentError(message)
        by_state = self.function.jacobian().call(y0, slope0, as_float(first), *given)[0]
        by_slope = turned(self.function).jacobian().call(slope0, y0, as_float(first), *given)[0]
        scales = [limits.atol + limits.rtol * np.abs(one) for one in (y0, slope0)]
        matrix = np.hstack([by_state * scales[0], by_slope * scales[1]])
        # What a change of each element by its tolerance makes of an equation.
        sizes = np.sqrt(np.sum(matrix**2, axis=1))
        wrong = np.abs(rest) > sizes
        if wrong.any():
            rows = ", ".join(f"{k} (residual {rest[k]:.3g})" for k in np.flatnonzero(wrong)[:5])
            message = (
                f"y0 and yp0 of {TITLE}() do not fulfil the equations at the first time, {first:g}: see equation "
                f"{rows}. Solve them for the slopes of differential elements and for the algebraic elements first, "
                "by solvers.root()."
            )
            raise ArgumentError(message)
        # Equations determine the solution if the matrix of some step is regular.
        if all(_is_singular(by_state + by_slope / h) for h in (limits.first or 1.0, (last - first) or 2.0)):
            message = (
                f"The equations of {TITLE}() do not determine the solution: the matrix of a step is singular at the "
                "first time. Each element of y must be in an equation, and no equation may follow from others."
            )
            raise MatrixError(message)


@dataclass(frozen=True)
class Located:
    """The times of events, by event; the times that are known of, the last of which is the end; and SciPy's status."""

    t_events: list[np.ndarray]
    t: np.ndarray
    status: int


def located(
    steps: Steps,
    first: float,
    last: float,
    y0: np.ndarray,
    slope0: np.ndarray,
    events: Sequence[Callable[..., float]],
) -> Located:
    """The zeros of functions of the time and of the state with its slope, along steps, by SciPy's rules for events."""
    from scipy import optimize

    root: Any = optimize.brentq
    ends = first + (last - first) * steps.fractions
    states = y0 + np.concatenate([np.zeros((1, y0.size)), np.cumsum(steps.stages[:, 2], axis=0)])

    def at(k: int, t: float) -> np.ndarray:
        length = ends[k + 1] - ends[k]
        x = (t - ends[k]) / length
        weights = np.array([[x, x**2, x**3], [1 / length, 2 * x / length, 3 * x**2 / length]]) @ RADAU_DENSE
        return np.concatenate([states[k], np.zeros(y0.size)]) + (weights @ steps.stages[k]).reshape(-1)

    found: list[list[float]] = [[] for _ in events]
    before = [event(first, np.concatenate([y0, slope0])) for event in events]
    for k in range(len(ends) - 1):
        after = [event(ends[k + 1], at(k, ends[k + 1])) for event in events]
        seen: list[tuple[float, int]] = []
        for which, event in enumerate(events):
            up, down = before[which] <= 0 <= after[which], before[which] >= 0 >= after[which]
            direction = getattr(event, "direction", 0)
            if (up and direction >= 0) or (down and direction <= 0):
                zero = root(
                    lambda t, k=k, event=event: event(t, at(k, t)), ends[k], ends[k + 1], xtol=1e-15, rtol=1e-15
                )
                seen.append((zero, which))
        for zero, which in sorted(seen, key=lambda one: abs(one[0] - first)):
            found[which].append(zero)
            if len(found[which]) == int(getattr(events[which], "terminal", None) or 0):
                return Located([np.array(one) for one in found], np.array([zero]), 1)
        before = after
    return Located([np.array(one) for one in found], ends, 0)


def _is_singular(matrix: np.ndarray) -> bool:
    """Whether a matrix is, with rows and columns of length one, singular to rounding."""
    for axis in (0, 1):
        sizes = np.sqrt(np.sum(matrix**2, axis=axis, keepdims=True))
        matrix = matrix / np.where(sizes == 0, 1.0, sizes)
    return int(np.linalg.matrix_rank(matrix)) < len(matrix)


class AlgebraicProblem(Problem):
    """A residual over the state, its slope and the time; the solution at a time is the state, then the slope."""

    title = TITLE

    def replay(
        self,
        method: str,
        iterations: int,
        fractions: Tensor,
        stages: Tensor,
        positions: Tensor,
        times: Tensor,
        first: Tensor,
        last: Tensor,
        y0: Tensor,
        *parameters: Tensor,
    ) -> Any:
        """The states and slopes at times, flat, in operations that are recorded; the first parameter is the slope."""
        del method
        slope0, *given = parameters
        residual = Residual(self.function, [one._node for one in given])
        ends = first + (last - first) * fractions
        lengths = ends[1:] - ends[:-1]

        def step(y: Any, of: Any) -> tuple[Any, Any]:
            t, h, z = of
            for _ in range(iterations):
                z = corrected(residual, z, t, h, y)
            return y + z[2], (y, z)

        _, (states, found) = scan(step, y0, (ends[:-1], lengths, stages))
        length = lengths[positions]
        length = np.where(length == 0, 1.0, length)
        part = ((times - ends[positions]) / length)[:, None]
        inside = np.einsum("ms,msn->mn", (part ** np.arange(1, 4)) @ RADAU_DENSE, found[positions])
        # The slope of the polynomial.
        weights = np.concatenate([np.ones_like(part), 2.0 * part, 3.0 * part**2], axis=1) @ RADAU_DENSE
        slopes = np.einsum("ms,msn->mn", weights, found[positions]) / length[:, None]
        slopes = np.where((times == first)[:, None], slope0, slopes)
        return np.concatenate([states[positions] + inside, slopes], axis=1).reshape(-1)


class AlgebraicTrajectory(Trajectory):
    """The states and slopes for nodes of the ends, the first state and slope, and the parameters."""

    title = TITLE

    def _problem(self) -> Problem:
        return AlgebraicProblem(self.function, self.integration.steps, rough=False)

    @property
    def states(self) -> int:
        """The numbers of the solution at a time."""
        return 2 * self.inputs[2].size

    def found(self, times: Node | None, events: Events) -> Solution:
        """The result as recorded values."""
        n, path, more = self.inputs[2].size, self, {}
        if events:
            first, last, y0, slope0, *values = self.known("takes no events: their number is not known")
            own = [np.asarray(concrete(node, "array")) for node in events.captured]
            steps = self.integration.steps(first, last, y0, slope0, *values)
            run = located(steps, float(first), float(last), y0, slope0, events.functions(own) or ())
            if run.status == 1:
                path = self._until(run.t[-1])
                more = {"status": 1, "message": "A termination event occurred."}
            more["t_events"], both = path.events(events, run.t_events)
            more["y_events"] = [one[:, :n] if len(one) else one for one in both]
            if run.status == 1:
                times = path.times_before(times, last_event(more["t_events"], run))
        if times is None:
            times = path.ends("needs t_eval: the number of its steps is not known")
            node, row = path.at_any(times)
        else:
            node, row = path.at(times)
        both = Tensor._of(node).T
        values = {"t": Tensor._of(times), "y": both[:n], "yp": both[n:]}
        return Solution(TITLE, {**values, **recorded_fields(row, FIELDS), **more})


def _events_of(events: Any, args: Any, start: Node, slope: Node, first: Node) -> Events:
    """Events as functions of the time, and of the state and the slope in one array."""
    n = start.size

    def joined(event: Callable[..., Any]) -> Callable[..., Any]:
        check_function(event, TITLE)

        def of_both(t: Any, both: Any, *rest: Any) -> Any:
            return event(t, both[:n], both[n:], *rest)

        of_both.__name__ = name_of(event)
        vars(of_both).update({k: getattr(event, k) for k in ("terminal", "direction") if hasattr(event, k)})
        return of_both

    given = [] if events is None else list(events) if isinstance(events, list | tuple) else [events]
    return Events.of([joined(event) for event in given], args, concatenate([start, slope], 0), first, TITLE)


def solve_dae(
    fun: Callable[..., Any],
    t_span: Sequence[Any],
    y0: Any,
    yp0: Any,
    t_eval: Any = None,
    events: Any = None,
    args: Any = (),
    rtol: float = 1e-3,
    atol: Any = 1e-6,
    max_step: float = np.inf,
    first_step: float | None = None,
) -> Solution:
    """The solution of differential-algebraic equations F(t, y, y') = 0, with derivatives.

    Parameters
    ----------
    fun : callable
        `fun(t, y, yp, *args)` gives the residuals, an array of the shape of `y`, of one axis. It may close over
        recorded values. Equations without `yp` are algebraic; equations with a mass matrix are `M @ yp - f(t, y)`.
    t_span : pair of float
        The first and the last time. They may be recorded values.
    y0, yp0 : array_like
        The state and its slope at the first time, which must fulfil the equations. Slopes of algebraic elements do not
        matter.
    t_eval : array_like, optional
        The times of the result. They may be recorded values. Without them, those of all steps, which are not known in
        `jit` and `vmap`.
    events : callable or list of callables, optional
        `event(t, y, yp, *args)` gives a number; its attributes `terminal` and `direction` are SciPy's. Times and states
        of events have derivatives; there must be `grad` around, not `jit`.
    args : tuple
        Further arguments of `fun` and of events.
    rtol, atol : float, array_like
        The error of a step is at most about `atol + rtol * abs(y)` for each element.
    max_step, first_step : float, optional
        The largest step, and the first one.

    Returns
    -------
    Solution
        With `t`; `y` and `yp`, of shape (states, times); `success`, `status`, `message`, and the counts `nfev`,
        `njev`, `nlu` and `nit`; with events, `t_events` and `y_events`.

    Raises
    ------
    ArgumentError
        If `y0` and `yp0` do not fulfil the equations within the tolerances, or times lie outside of the span.
    MatrixError
        If the equations do not determine the solution.
    ConvergenceError
        If a derivative is asked for and the end has not been reached.
    ShapeError, DtypeError, TracedValueError
        As `solve_ivp`.

    Notes
    -----
    Radau's collocation of three stages and fifth order, with RADAU5's control of the error: E. Hairer and G. Wanner,
    "Solving Ordinary Differential Equations II", 1996. The index must be 1: the algebraic equations determine the
    algebraic elements. Matrices of a step have three rows for each element of the state.

    Derivatives are those of the accepted steps, by the time, `y0`, and all that `fun` reads; the parts of the span
    where steps end count as constants. `yp` between the ends of steps is the slope of the collocation polynomial, of
    third order. That `y0` fulfils the equations for other parameters, too, is the caller's part: find it by
    `solvers.root`, which has derivatives.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def circuit(t, y, yp):                      # a condenser's voltage; the current, by Ohm's law
    ...     return np.stack([yp[0] + y[1], 2.0 * y[1] - y[0]])
    >>> found = nb.solvers.solve_dae(circuit, (0, 1), [1.0, 0.5], [-0.5, 0.0], t_eval=[1.0], rtol=1e-8, atol=1e-10)
    >>> np.allclose(found.y[:, 0], [np.exp(-0.5), 0.5 * np.exp(-0.5)], atol=1e-8)
    True
    """
    check_function(fun, TITLE)
    if len(t_span) != 2:
        message = f"t_span of {TITLE}() must be a pair of times, but has length {len(t_span)}."
        raise ArgumentError(message)
    if not (rtol > 0 and max_step > 0 and np.min(atol) >= 0 and (first_step is None or first_step > 0)):
        message = f"rtol, max_step and first_step of {TITLE}() must be positive, and atol at least zero."
        raise ArgumentError(message)
    start, slope = flat_start(y0, TITLE), flat_start(yp0, TITLE)
    if start.shape != slope.shape or np.shape(atol) not in ((), start.shape):
        message = (
            f"y0, yp0 and atol of {TITLE}() must be of one shape, but have {start.shape}, {slope.shape} and "
            f"{np.shape(atol)}."
        )
        raise ShapeError(message)
    first, last = (reshape(float_node(t, f"t_span of {TITLE}()"), ()) for t in t_span)
    fn = bound(fun, args)
    shapes = one_output(name_of(fun), TITLE, start.shape)
    function, captured = recorded(lambda y, yp, t: fn(t, y, yp), [start, slope, first], TITLE, shapes)
    options = {"rtol": rtol, "atol": atol, "max_step": max_step, "first_step": first_step}
    key = option_key(options)
    runs: AlgebraicRuns = function.made(("dae", key), lambda: AlgebraicRuns(function, "Radau", options))
    times = None if t_eval is None else float_node(t_eval, f"t_eval of {TITLE}()")
    if times is not None and (times.ndim != 1 or not times.size):
        message = f"t_eval of {TITLE}() must have one axis with a time or more, but has shape {times.shape}."
        raise ShapeError(message)
    path = AlgebraicTrajectory(runs, key, [first, last, start, slope, *captured])
    ask = _events_of(events, args, start, slope, first)
    found = path.found(times, ask)
    if not is_plain([*t_span, y0, yp0, t_eval], [*path.inputs, *ask.captured]):
        return found
    return Solution(TITLE, {name: _plain(name, value) for name, value in found.items()})


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(name, one) for one in value]
    if not isinstance(value, Tensor):
        return value
    array = np.asarray(computed(value._node))
    return array if array.ndim else bool(array) if name == "success" else int(array)
