"""SciPy's shortest iterations as compiled loops: fixed points, and conjugate gradients.

In: a function as a `ClosedFunction`, plain arrays, and SciPy's tolerances. Out: the results of SciPy's routines, up to
rounding. Called by root_finders.py and linear_solves.py. A program has a few turns, and is called until an iteration
has converged: a turn after that changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ..control.scan import scan
from ..graph.ir import Node, placeholder
from ..record.tensor import Tensor
from .closed_functions import FLOAT, ClosedFunction, HostProgram, as_float, recorded

TURNS = 8
Turn = Callable[..., tuple[tuple[Any, ...], Any]]
"""`turn(function, carried, limits)` gives what is carried on, and whether that has converged."""


def _program(function: ClosedFunction, name: Hashable, turn: Turn, carried: Sequence[tuple[int, ...]]) -> HostProgram:
    """A program of some turns.

    It takes whether the iteration has converged and the number of turns, limits, carried values, and parameters. It
    gives a row of the first two and the carried values.
    """
    shapes = [(2,), (2,), *carried]
    given = [*[placeholder(shape, FLOAT) for shape in shapes], *function.captured]

    def turns(state: Tensor, limits: Tensor, *rest: Tensor) -> Any:
        nodes = [one._node for one in rest[len(carried) :]]

        def value(x: Any) -> Tensor:
            return Tensor._of(function.at([x._node, *nodes])[0])

        def one(carry: Any, _: Any) -> tuple[Any, None]:
            done, count, *before = carry
            after, good = turn(value, before, limits)
            going = (done == 0) & (count < limits[1])
            kept = [np.where(going, new, old) for new, old in zip(after, before, strict=True)]
            return (np.where(going & good, 1.0, done), count + np.where(going, 1.0, 0.0), *kept), None

        (done, count, *last), _ = scan(one, (state[0], state[1], *rest[: len(carried)]), length=TURNS)
        return np.concatenate([np.stack([done, count]), *[part.reshape(-1) for part in last]])

    def how() -> HostProgram:
        made, outside = recorded(turns, given, str(name), _as_given)
        return HostProgram(made.at([*made.variables, *outside]), made.variables)

    return function.made(("iteration", name), how)


def _as_given(nodes: Sequence[Node]) -> Sequence[Node]:
    return nodes


def _run(
    program: HostProgram,
    limit: float,
    most: int,
    carried: Sequence[np.ndarray],
    values: Sequence[np.ndarray],
    done: bool,
) -> tuple[bool, list[np.ndarray]]:
    """Whether the iteration has converged, and what it carries at the end."""
    state, limits = np.array([float(done), 0.0]), np.array([limit, float(most)])
    while not state[0] and state[1] < most:
        (row,) = program(state, limits, *carried, *values)
        state, start, found = row[:2], 2, []
        for part in carried:
            found.append(row[start : start + part.size].reshape(part.shape))
            start += part.size
        carried = found
    return bool(state[0]), list(carried)


def fixed_point(
    function: ClosedFunction, method: str, x: np.ndarray, values: Sequence[np.ndarray], xtol: float, maxiter: int
) -> tuple[bool, np.ndarray]:
    """Whether there is convergence, and the last value, by plain iteration or by Steffensen's method for each element.

    Steffensen's method is Aitken's delta squared process with a new start each time: Burden and Faires, "Numerical
    Analysis", 5th edition, p. 80.
    """

    def turn(value: Any, before: Sequence[Any], limits: Any) -> tuple[tuple[Any, ...], Any]:
        (x,) = before
        after = value(x)
        if method == "del2":
            second = value(after)
            bend = second - 2.0 * after + x
            straight = bend == 0
            after = np.where(straight, second, x - (after - x) ** 2 / np.where(straight, 1.0, bend))
        moved = np.where(x == 0, after, (after - x) / np.where(x == 0, 1.0, x))
        return (after,), np.all(np.abs(moved) < limits[0])

    program = _program(function, f"fixed_point by {method}", turn, [x.shape])
    good, (x,) = _run(program, xtol, maxiter, [x], values, False)
    return good, x


def conjugate_gradients(
    operator: ClosedFunction,
    b: np.ndarray,
    start: np.ndarray | None,
    values: Sequence[np.ndarray],
    limit: float,
    most: int,
) -> tuple[bool, np.ndarray]:
    """Whether the residual's norm came below a limit, and the solution: Hestenes and Stiefel, 1952."""

    def turn(value: Any, before: Sequence[Any], limits: Any) -> tuple[tuple[Any, ...], Any]:
        x, rest, way, square = before
        product = value(way)
        step = square / np.sum(way * product)
        x, rest = x + step * way, rest - step * product
        after = np.sum(rest * rest)
        return (x, rest, rest + (after / square) * way, after), np.sqrt(after) < limits[0]

    if not b.any():
        return True, b
    x = np.zeros(b.shape) if start is None else start
    rest = b if start is None else b - operator.program()(as_float(x), *values)[0]
    square = np.sum(rest * rest)
    carried = [as_float(x), as_float(rest), as_float(rest), np.array(square)]
    program = _program(operator, "cg", turn, [b.shape, b.shape, b.shape, ()])
    good, (x, *_) = _run(program, limit, most, carried, values, bool(np.sqrt(square) <= limit))
    return good, x
