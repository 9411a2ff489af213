"""Solutions of differential equations: the runs that find their steps, the values along them, and their events.

In: the equations as a `ClosedFunction`, SciPy's options, and nodes of the ends, of the first state and of parameters.
Out: nodes of the solution at times, which have the derivatives of replayed_steps.py, and SciPy's own result. Called by
differential_equations.py and differential_algebraic.py.

SciPy's integrator runs on plain arrays and calls the right-hand side, and for implicit methods its Jacobian, as
compiled programs. Where solutions are recorded, compiled loops find the steps (stepping.py, collocation_steps.py),
SciPy's integrators only those of many implicit equations. In `grad` the number of steps is known, so that a result may
have the points of all steps; in `jit` and `vmap` the points must be said.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, TracedValueError, user_location
from ..graph.builders import concatenate, reshape, slice_axes, transpose
from ..graph.ir import Node, broadcast, constant, make
from ..process.locks import ForkSafeLock
from ..record.tensor import Tensor
from ..runtime.evaluate import computed, concrete
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .closed_functions import FLOAT, ClosedFunction, as_float, bound, one_output, recorded
from .collocation_steps import ordinary_steps, takes
from .host_solves import HostSolve, said
from .implicit import ELEMENTWISE, ImplicitRule, Solution, as_scipy, float_node, recorded_fields
from .replayed_steps import FEWEST_STEPS, TITLE, Problem, ReplayRule, Steps, replayed_solution
from .stepping import explicit_steps
from .tableaus import EXPLICIT, IMPLICIT, RADAU_NODES

FIELDS = ("success", "status", "message", "nfev", "njev", "nlu", "nit")
NOT_STIFF, MOST_ATTEMPTS = "DOP853", 1000
"""The method that stands for LSODA's where the equations are not stiff, and the attempts at steps that it is given."""
MOST_BYTES = 1 << 26
MOST_KEPT = 256
"""Bytes and number of the steps that are remembered for derivatives of the same values."""


class Integration:
    """SciPy's integrator for a right-hand side, with its options; it remembers the steps of its last calls."""

    def __init__(self, function: ClosedFunction, method: str, options: dict[str, Any]) -> None:
        self.function, self.method, self.options = function, method, options
        self._known: OrderedDict[bytes, Steps] = OrderedDict()
        self._bytes = 0
        self._lock = ForkSafeLock()

    def scipys(self, first: Any, last: Any, y0: np.ndarray, values: Sequence[np.ndarray], **more: Any) -> Any:
        """SciPy's result."""
        from scipy.integrate import solve_ivp

        def slope(t: float, y: np.ndarray) -> np.ndarray:
            return self.function.call(as_float(y), as_float(t), *values)[0]

        self._check_start(float(first), y0, values)
        given = dict(self.options)
        if self.method in IMPLICIT and "jac" not in given:
            jacobian = self.function.jacobian().program()
            given["jac"] = lambda t, y: jacobian(as_float(y), as_float(t), *values)[0]
        return solve_ivp(slope, (float(first), float(last)), y0, method=self.method, **given, **more)

    def steps(self, first: Any, last: Any, y0: np.ndarray, *values: np.ndarray) -> Steps:
        """The accepted steps between two times."""
        key = b"|".join([np.asarray(one).tobytes() for one in (first, last, y0, *values)])
        known = self._known.get(key)
        if known is None:
            known = self._found(float(first), float(last), y0, values)
            with self._lock.held():
                self._bytes += known.bytes
                self._known[key] = known
                while len(self._known) > 1 and (self._bytes > MOST_BYTES or len(self._known) > MOST_KEPT):
                    self._bytes -= self._known.popitem(last=False)[1].bytes
        return known

    def _found(self, first: float, last: float, y0: np.ndarray, values: Sequence[np.ndarray]) -> Steps:
        scale = (last - first) or 1.0
        own = takes(self.options, y0.size)
        if self.method in EXPLICIT or own:
            self._check_start(first, y0, values)
        if self.method in EXPLICIT or (self.method == "LSODA" and own):
            method, most = (self.method, None) if self.method in EXPLICIT else (NOT_STIFF, MOST_ATTEMPTS)
            known = explicit_steps(self.function, method, self.options, first, last, y0, values, most)
            if known.reached or self.method in EXPLICIT:
                return Steps((known.ends - first) / scale, known.no_stages, None, known.fields, method)
        if own:
            run = ordinary_steps(self.function, self.options, first, last, y0, values)
            return Steps((run.ends - first) / scale, run.stages, None, run.fields)
        found = self.scipys(first, last, y0, values, dense_output=True)
        counts = {name: float(found[name]) for name in ("nfev", "njev", "nlu")}
        ends, status = np.asarray(found.sol.ts), int(found.status)
        places = ends[:-1, None] + np.diff(ends)[:, None] * RADAU_NODES
        inside = found.sol(places.reshape(-1)).T.reshape(len(places), 3, y0.size)
        stages = inside - found.sol(ends[:-1]).T[:, None]
        fields = {"success": status == 0, "status": status, "message": found.message, "nit": len(ends) - 1, **counts}
        return Steps((ends - first) / scale, stages, lambda times: found.sol(times).T, fields)

    def _check_start(self, first: float, y0: np.ndarray, values: Sequence[np.ndarray]) -> None:
        """Raise where SciPy's choice of the first step would not end."""
        if not np.isfinite(self.function.call(as_float(y0), as_float(first), *values)[0]).all():
            message = f"The right-hand side of solve_ivp() is not finite at the first time, {first:g}."
            raise ArgumentError(message)


class Trajectory:
    """The solution for nodes of the ends, the first state and the parameters."""

    title, fields = TITLE, FIELDS

    def __init__(self, integration: Integration, key: Any, inputs: Sequence[Node]) -> None:
        self.integration, self.function, self.inputs = integration, integration.function, list(inputs)
        self.options_key = key
        self.key = (self.title, key, self.function)
        self.problem = self.function.made(("problem", key), self._problem)

    def _problem(self) -> Problem:
        rough = not takes(self.integration.options, self.inputs[2].size)
        return Problem(self.function, self.integration.steps, rough)

    @property
    def states(self) -> int:
        """The number of elements of the solution at a time."""
        return self.inputs[2].size

    def at(self, times: Node) -> tuple[Node, Node]:
        """The states at times of one axis, shape (times, states), and the fields of the run."""
        inputs = [times, *self.inputs]
        layouts = tuple([(node.shape, node.dtype) for node in inputs])

        def run(times: np.ndarray, first: np.ndarray, last: np.ndarray, *rest: np.ndarray) -> tuple[Any, Any]:
            low, high = min(first, last), max(first, last)
            if not ((times >= low) & (times <= high)).all():
                message = (
                    f"{said(self.title, host.place)}: times of the result lie outside of t_span ({first:g}, {last:g})."
                )
                raise ArgumentError(message)
            steps = as_scipy(self.title, host.place, lambda: self.integration.steps(first, last, *rest))
            if steps.values is None:
                found = replayed.values(steps, [times, first, last, *rest]).reshape(times.size, -1)
            else:
                found = steps.values(times)
            found[(times - first) / ((last - first) or 1.0) > steps.fractions[-1]] = np.nan
            return found, steps.fields

        host = HostSolve(
            self.title, self.key, [node.ndim for node in inputs], (times.size * self.states,), self.fields, run
        )
        value, row = host.nodes(inputs)
        replayed = self.function.made(
            (self.key, layouts),
            lambda: replayed_solution((self.key, layouts), self.problem, inputs, times.size * self.states),
        )
        found = make("custom", (value, *inputs, row), (ReplayRule(replayed), 0))
        return reshape(found, (times.size, self.states)), row

    def at_any(self, times: Node) -> tuple[Node, Node]:
        """The states at times whose number may be another one in each call, by programs for some numbers of them."""
        count = times.size
        more = max(FEWEST_STEPS, 1 << (count - 1).bit_length()) - count
        last = broadcast(slice_axes(times, [(count - 1, 1, 1)]), (more,))
        states, row = self.at(concatenate([times, last], 0) if more else times)
        return slice_axes(states, [(0, count, 1), (0, self.states, 1)]), row

    def known(self, why: str) -> list[np.ndarray]:
        """The values of the inputs, where each call is recorded for itself.

        Raises
        ------
        TracedValueError
            In `jit` and `vmap`.
        """
        try:
            return [np.asarray(concrete(node, "array")) for node in self.inputs]
        except TracedValueError as error:
            message = f"In jit and vmap, {self.title}() {why}."
            raise TracedValueError(message) from error

    def plain(self, times: Node | None, dense_output: bool, events: Events) -> Any:
        """SciPy's own result."""
        first, last, y0, *values = [np.asarray(computed(node)) for node in self.inputs]
        more: dict[str, Any] = {"dense_output": dense_output, "t_eval": None if times is None else computed(times)}
        more["events"] = events.functions([np.asarray(computed(node)) for node in events.captured])
        call = self.integration.scipys
        return as_scipy(TITLE, user_location(), lambda: call(first, last, y0, values, **more))

    def recorded(self, times: Node | None, dense_output: bool, events: Events) -> Solution:
        """The result as recorded values."""
        path, found, said_times = self, {}, times is not None and not events
        if events:
            start, end, y0, *values = self.known("takes no events: their number is not known")
            own = [np.asarray(concrete(node, "array")) for node in events.captured]
            scipys = self.integration.scipys(start, end, y0, values, events=events.functions(own))
            found["status"], found["message"] = int(scipys.status), scipys.message
            if scipys.status == 1:
                path = self._until(scipys.t[-1])
            found["t_events"], found["y_events"] = path.events(events, scipys.t_events)
            if scipys.status == 1:
                times = path.times_before(times, last_event(found["t_events"], scipys))
        if times is None:
            times = path.ends("needs t_eval: the number of its steps is not known")
        states, row = path.at(times) if said_times else path.at_any(times)
        result: dict[str, Any] = {"t": Tensor._of(times), "y": Tensor._of(transpose(states, (1, 0)))}
        result |= {**recorded_fields(row, FIELDS), **found}
        if dense_output:
            result["sol"] = path.dense
        return Solution(TITLE, result)

    def _until(self, reached: float) -> Trajectory:
        """The part of the solution before a terminal event."""
        first, _, *rest = self.inputs
        return type(self)(self.integration, self.options_key, [first, constant(np.array(reached, FLOAT)), *rest])

    def ends(self, why: str) -> Node:
        """The ends of all steps."""
        first, last = self.inputs[:2]
        start, end, *rest = self.known(why)
        fractions = constant(self.integration.steps(start, end, *rest).fractions)
        return broadcast(first, fractions.shape) + broadcast(last - first, fractions.shape) * fractions

    def times_before(self, times: Node | None, stop: Node) -> Node:
        """The times of the result up to a terminal event, which is the end; without any, the ends of steps and it."""
        if times is None:
            ends = self.ends("takes no events: their number is not known")
            return concatenate([slice_axes(ends, [(0, ends.size - 1, 1)]), stop], 0)
        first, last, *_ = self.known("takes no events: their number is not known")
        values = np.asarray(concrete(times, "array"))
        return slice_axes(times, [(0, int(((values - last) * np.sign(last - first) <= 0).sum()), 1)])

    def dense(self, t: Any) -> Tensor:
        """The states at any times: shape (states,) or (states, times)."""
        node = float_node(t, "The times of sol()")
        states = transpose(self.at(reshape(node, (node.size,)))[0], (1, 0))
        return Tensor._of(reshape(states, (self.states, *node.shape)))

    def events(self, events: Events, times: Sequence[np.ndarray]) -> tuple[list[Any], list[Any]]:
        """The times of events, as roots of their functions along the solution, and the states there."""
        found: tuple[list[Any], list[Any]] = [], []
        for event, values in zip(events.given, times, strict=True):
            count = len(values)
            if not count:
                found[0].append(np.array([]))
                found[1].append(np.array([]))
                continue

            def along(t: Tensor, event: Callable[..., Any] = event, count: int = count) -> Any:
                states = Tensor._of(self.at(t._node)[0])
                return [event(t[k], states[k]) for k in range(count)]

            start = constant(np.array(values, FLOAT))
            title = f"An event of {self.title}"
            residual, captured = recorded(along, [start], title, one_output("event", self.title, (count,)))
            row = self.at(start)[1]
            rule = ImplicitRule(title, residual, ELEMENTWISE)
            time = make("custom", (start, *captured, row), (rule, 0))
            found[0].append(Tensor._of(time))
            found[1].append(Tensor._of(self.at(time)[0]))
        return found


def last_event(times: Sequence[Any], scipys: Any) -> Node:
    """The time of the terminal event, along one axis."""
    which = next(k for k, some in enumerate(scipys.t_events) if scipys.t[-1] in some)
    event = times[which]._node
    return slice_axes(event, [(event.size - 1, 1, 1)])


class Events:
    """Functions whose zeros are events: as the caller gave them, and closed over what they read."""

    def __init__(self, given: list[Callable[..., Any]], closed: list[tuple[ClosedFunction, list[Node]]]) -> None:
        self.given, self.closed = given, closed
        self.captured = [node for _, captured in closed for node in captured]

    def __bool__(self) -> bool:
        return bool(self.given)

    @staticmethod
    def of(events: Any, args: Any, y0: Node, first: Node, title: str = TITLE) -> Events:
        """The events of a call."""
        functions = [] if events is None else list(events) if isinstance(events, list | tuple) else [events]
        given: list[Callable[..., Any]] = []
        closed: list[tuple[ClosedFunction, list[Node]]] = []
        for function in functions:
            check_function(function, title)
            one = bound(function, args)
            made = recorded(
                lambda y, t, one=one: one(t, y),
                [y0, first],
                f"An event of {title}",
                one_output(name_of(function), title, ()),
            )
            given.append(one)
            closed.append(made)
            for name in ("terminal", "direction"):
                if hasattr(function, name) and one is not function:
                    setattr(one, name, getattr(function, name))
        return Events(given, closed)

    def functions(self, captured: Sequence[np.ndarray]) -> list[Callable[..., Any]] | None:
        """The events as functions of plain arrays, with SciPy's attributes; None if there are none."""
        left = iter(captured)
        found: list[Callable[..., Any]] = []
        for event, (function, nodes) in zip(self.given, self.closed, strict=True):
            values = [next(left) for _ in nodes]

            def value(t: float, y: np.ndarray, function: Any = function, values: Any = values) -> float:
                return float(function.call(as_float(y), as_float(t), *values)[0])

            for name in ("terminal", "direction"):
                if hasattr(event, name):
                    setattr(value, name, getattr(event, name))
            found.append(value)
        return found or None
