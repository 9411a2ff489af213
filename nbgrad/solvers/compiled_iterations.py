"""Iterations as compiled loops, and SciPy's shortest ones: fixed points, and conjugate gradients.

In: functions as `ClosedFunction`s, plain arrays, and tolerances. Out: the values at the end of an iteration; of SciPy's
routines, their results up to rounding. Called by root_finders.py, linear_solves.py and nbgrad.optim. A program has a
few turns, and is called until an iteration has ended: a turn after that changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import optree

from ..control.scan import scan
from ..graph.ir import Node, placeholder
from ..record.container_leaves import flatten
from ..record.tensor import Tensor
from .closed_functions import FLOAT, ClosedFunction, HostProgram, as_float, recorded

TURNS = 8
_trees: Any = optree
Turn = Callable[..., tuple[Any, Any]]
"""`turn(evaluate, carried, limits)` gives what is carried on, in the same containers, and how the iteration has ended:
a positive number, or zero if it goes on. `limits[0]` is the most turns."""


def iterated(
    functions: Sequence[ClosedFunction],
    name: Hashable,
    turn: Turn,
    limits: Sequence[float],
    carried: Any,
    values: Sequence[np.ndarray],
    ended: float = 0.0,
    turns: int = TURNS,
) -> tuple[float, int, Any]:
    """How an iteration has ended, 0 if by the number of turns; that number; and what it carries at the end.

    Parameters
    ----------
    functions : sequence of ClosedFunction
        Over the same captured values; `evaluate` has one function for each, or is that function.
    name : hashable
        Equal names mean equal turns.
    carried : containers of float64 arrays
    values : sequence of numpy.ndarray
        Of what the functions have captured.
    ended : float
        Positive if there is nothing to do.
    turns : int
        That a program has.
    """
    parts, structure = flatten(carried)
    parts = [np.asarray(part, FLOAT) for part in parts]
    row = np.concatenate([np.array([ended, 0.0]), *[part.reshape(-1) for part in parts]])
    given = np.array(limits, FLOAT)
    shapes = [part.shape for part in parts]
    program = _program(functions, (name, turns), turn, shapes, structure, given.size, turns)
    while not row[0] and row[1] < given[0]:
        (row,) = program(row, given, *values)
    return float(row[0]), int(row[1]), _trees.tree_unflatten(structure, _split(row[2:], shapes))


def _split(row: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """The arrays that lie in a row one after the other."""
    found, start = [], 0
    for shape in shapes:
        size = math.prod(shape)
        found.append(row[start : start + size].reshape(shape))
        start += size
    return found


def _program(
    functions: Sequence[ClosedFunction],
    name: Hashable,
    turn: Turn,
    shapes: Sequence[tuple[int, ...]],
    structure: Any,
    limit_count: int,
    length: int,
) -> HostProgram:
    """A program of some turns.

    It takes and gives a row of how the iteration has ended, the number of turns, and the carried values; it also takes
    limits, and parameters.
    """
    function = functions[0]

    def turns(row: Tensor, limits: Tensor, *parameters: Tensor) -> Any:
        nodes = [one._node for one in parameters]

        def evaluation(function: ClosedFunction) -> Callable[..., Any]:
            def evaluate(*variables: Any) -> Any:
                found = function.at([*[variable._node for variable in variables], *nodes])
                return Tensor._of(found[0]) if len(found) == 1 else tuple(map(Tensor._of, found))

            return evaluate

        every = [evaluation(one) for one in functions]

        def one(carry: Any, _: Any) -> tuple[Any, None]:
            done, count, *before = carry
            after, end = turn(every[0] if len(every) == 1 else every, _trees.tree_unflatten(structure, before), limits)
            going = (done == 0) & (count < limits[0])
            kept = [np.where(going, new, old) for new, old in zip(flatten(after)[0], before, strict=True)]
            return (np.where(going, end * 1.0, done), count + np.where(going, 1.0, 0.0), *kept), None

        (done, count, *last), _ = scan(one, (row[0], row[1], *_split(row[2:], shapes)), length=length)
        return np.concatenate([np.stack([done, count]), *[part.reshape(-1) for part in last]])

    def how() -> HostProgram:
        size = 2 + sum(map(math.prod, shapes))
        given = [placeholder((size,), FLOAT), placeholder((limit_count,), FLOAT), *function.captured]
        made, outside = recorded(turns, given, str(name), _as_given)
        return HostProgram(made.at([*made.variables, *outside]), made.variables)

    return function.made(("iteration", name), how)


def _as_given(nodes: Sequence[Node]) -> Sequence[Node]:
    return nodes


def fixed_point(
    function: ClosedFunction, method: str, x: np.ndarray, values: Sequence[np.ndarray], xtol: float, maxiter: int
) -> tuple[bool, np.ndarray]:
    """Whether there is convergence, and the last value, by plain iteration or by Steffensen's method for each element.

    Steffensen's method is Aitken's delta squared process with a new start each time: Burden and Faires, "Numerical
    Analysis", 5th edition, p. 80.
    """

    def turn(value: Any, before: Sequence[Any], limits: Any) -> tuple[list[Any], Any]:
        (x,) = before
        after = value(x)
        if method == "del2":
            second = value(after)
            bend = second - 2.0 * after + x
            straight = bend == 0
            after = np.where(straight, second, x - (after - x) ** 2 / np.where(straight, 1.0, bend))
        moved = np.where(x == 0, after, (after - x) / np.where(x == 0, 1.0, x))
        return [after], np.all(np.abs(moved) < limits[1])

    end, _, (x,) = iterated([function], f"fixed_point by {method}", turn, [maxiter, xtol], [x], values)
    return bool(end), x


def conjugate_gradients(
    operator: ClosedFunction,
    b: np.ndarray,
    start: np.ndarray | None,
    values: Sequence[np.ndarray],
    limit: float,
    most: int,
    inverse: ClosedFunction | None = None,
) -> tuple[bool, np.ndarray]:
    """Whether the residual's norm came below a limit, and the solution: Hestenes and Stiefel, 1952.

    `inverse` multiplies by about the inverse of the matrix (Saad, Iterative Methods for Sparse Linear Systems, 2nd
    edition, algorithm 9.1).
    """

    def turn(value: Any, before: Sequence[Any], limits: Any) -> tuple[list[Any], Any]:
        times, about = (value, None) if inverse is None else value
        x, rest, way, square = before
        product = times(way)
        step = square / np.sum(way * product)
        x, rest = x + step * way, rest - step * product
        left = np.sum(rest * rest)
        towards, after = rest, left
        if about is not None:
            towards = about(rest)
            after = np.sum(rest * towards)
        return [x, rest, towards + (after / square) * way, after], np.sqrt(left) < limits[1]

    if not b.any():
        return True, b
    x = np.zeros(b.shape) if start is None else start
    rest = b if start is None else b - operator.program()(as_float(x), *values)[0]
    way = rest if inverse is None else inverse.program()(as_float(rest), *values)[0]
    functions = [operator] if inverse is None else [operator, inverse]
    name = "cg" if inverse is None else ("cg", inverse)
    ended = float(np.sqrt(np.sum(rest * rest)) <= limit)
    end, _, (x, *_) = iterated(functions, name, turn, [most, limit], [x, rest, way, np.sum(rest * way)], values, ended)
    return bool(end), x
