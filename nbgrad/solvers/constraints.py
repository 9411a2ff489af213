"""Constraints of `minimize`, and the equations of Karush, Kuhn and Tucker that hold at its result.

In: SciPy's constraints (dicts, `NonlinearConstraint`, `LinearConstraint`). Out: `Constraints`, one function c(x) whose
first rows are zero at a result and whose others are not negative; its form for SciPy; the multipliers at a result, and
the equations that the minimiser and the multipliers fulfil together. Called by minimisers.py.

At a result, grad f(x) = J(x)^T m, with the Jacobian J of c; where a row is not negative, either it or its multiplier is
zero. J. Nocedal and S. J. Wright, "Numerical Optimization", 2006, chapter 12; the derivatives of x and m by parameters
are those of A. V. Fiacco, "Introduction to Sensitivity and Stability Analysis in Nonlinear Programming", 1983.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..graph.builders import cast, concatenate, reshape, slice_axes
from ..graph.ir import Node, broadcast, elementwise, placeholder
from ..record.as_node import as_node
from ..record.foreign_arrays import a_full_name
from ..record.tensor import Tensor
from ..transforms.arguments import name_of
from .closed_functions import FLOAT, ClosedFunction, as_float, bound, one_output, recorded

ACTIVE = 1e-6
"""How far from zero an active row may be, in units of its gradient's and the minimiser's size."""
SMALLEST = 1e-9
"""Multipliers that count as zero, in units of the largest slope of the function."""


@dataclass(frozen=True)
class Constraints:
    """The rows of all constraints as one function of the minimiser: first `equalities` rows that are zero, then those
    that are not negative."""

    function: ClosedFunction
    captured: Sequence[Node]
    equalities: int

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.function.outputs[0].size

    def for_scipy(self, values: Sequence[np.ndarray]) -> list[Any]:
        """SciPy's form of the rows, for the values of what they have captured, with compiled Jacobians."""
        first, count = self.equalities, self.count

        def rows(x: np.ndarray, part: slice = slice(None)) -> np.ndarray:
            return self.function.call(as_float(x), *values)[0][part]

        def slopes(x: np.ndarray, part: slice = slice(None)) -> np.ndarray:
            return self.function.jacobian().program()(as_float(x), *values)[0][part]

        parts = {"eq": slice(0, first), "ineq": slice(first, count)}
        return [
            {"type": kind, "fun": rows, "jac": slopes, "args": (part,)}
            for kind, part in parts.items()
            if part.stop > part.start
        ]

    def multipliers(
        self, x: np.ndarray, slope: np.ndarray, values: Sequence[np.ndarray], free: np.ndarray
    ) -> np.ndarray:
        """The multipliers at a result, given the function's gradient there; zero for rows that are not active.

        They are those of least squares, over the elements that are on no bound (`free`).
        """
        rows = self.function.call(x, *values)[0]
        jacobian = self.function.jacobian().program()(x, *values)[0]
        steep = np.linalg.norm(jacobian, axis=1)
        inequality = np.arange(self.count) >= self.equalities
        active = ~inequality | (rows <= ACTIVE * np.maximum(steep * max(1.0, float(np.linalg.norm(x))), 1.0))
        found = np.zeros(self.count)
        floor = SMALLEST * max(float(np.abs(slope).max(initial=0.0)), 1e-300)
        while active.any():
            gradients = jacobian[active][:, free].T
            found[:] = 0.0
            found[active], _, rank, _ = np.linalg.lstsq(gradients, slope[free], rcond=None)
            # The function decreases away from a row with a negative multiplier: it is not that row that holds the
            # minimiser. Of rows that say the same, one is enough.
            rest = active & inequality & ((found * steep <= floor) | (rank < gradients.shape[1]))
            if not rest.any():
                return found
            active[np.flatnonzero(rest)[np.argmin((found * steep)[rest])]] = False
        return np.zeros(self.count)

    def pushes(self, x: np.ndarray, slope: np.ndarray, values: Sequence[np.ndarray], free: np.ndarray) -> np.ndarray:
        """The function's gradient without the parts that the constraints hold: where it is not zero, a bound does."""
        jacobian = self.function.jacobian().program()(x, *values)[0]
        return slope - self.multipliers(x, slope, values, free) @ jacobian

    def equations(self, function: ClosedFunction, n: int, bounded: bool) -> ClosedFunction:
        """The equations of the minimiser and the multipliers, one after the other in one vector.

        Lower and upper ends are captured first if `bounded`, then what the function and what the rows have captured.
        """

        def how() -> ClosedFunction:
            m = self.count
            both = placeholder((n + m,), FLOAT)
            x, multipliers = slice_axes(both, [(0, n, 1)]), slice_axes(both, [(n, m, 1)])
            ends = [placeholder((n,), FLOAT) for _ in range(2 * bounded)]
            mine = [placeholder(one.shape, one.dtype) for one in function.captured]
            theirs = [placeholder(one.shape, one.dtype) for one in self.function.captured]
            pull = self.function.cotangent().at([multipliers, x, *theirs])[0]
            stationary = function.gradient().at([x, *mine])[0] - pull
            for end, beyond in zip(ends, ("less_equal", "greater_equal"), strict=False):
                stationary = elementwise("select", elementwise(beyond, x, end), x - end, stationary)
            rows = self.function.at([x, *theirs])[0]
            if self.equalities < m:
                held = elementwise("not_equal", multipliers, 0.0)
                if self.equalities:
                    always = broadcast(as_node(np.array(True)), (self.equalities,))
                    held = concatenate([always, slice_axes(held, [(self.equalities, m - self.equalities, 1)])], 0)
                rows = elementwise("select", held, rows, multipliers)
            checks = function.checks
            return ClosedFunction([both], [*ends, *mine, *theirs], [concatenate([stationary, rows], 0)], checks)

        return function.made(("equations", self.function, self.equalities, bounded), how)


def constraints_of(given: Any, start: Node, title: str) -> Constraints | None:
    """The rows of SciPy's constraints, or None if there are none.

    Raises
    ------
    ArgumentError, ShapeError
        If one is no constraint, or its ends do not fit its values.
    """
    listed = [given] if isinstance(given, Mapping) or hasattr(given, "lb") else list(given)
    if not listed:
        return None
    counts: list[int] = []

    def rows(x: Tensor) -> Tensor:
        zero: list[Node] = []
        others: list[Node] = []
        for one in listed:
            for is_equality, row in _rows(one, x, title):
                (zero if is_equality else others).append(row)
        counts.append(sum(row.size for row in zero))
        return Tensor._of(concatenate([*zero, *others], 0))

    rows.__name__ = "constraints"
    function, captured = recorded(rows, [start], title, one_output("constraints", title, None))
    return Constraints(function, captured, counts[-1])


def _rows(one: Any, x: Tensor, title: str) -> Iterator[tuple[bool, Node]]:
    """Whether the rows of one constraint are zero, and the rows."""
    if isinstance(one, Mapping):
        kind, fun = one.get("type"), one.get("fun")
        if kind not in ("eq", "ineq") or not callable(fun):
            message = f"A constraint of {title}() must have a 'type', 'eq' or 'ineq', and a callable 'fun'."
            raise ArgumentError(message)
        yield kind == "eq", _vector(bound(fun, one.get("args", ()))(x), name_of(fun), title)
        return
    if not hasattr(one, "lb") or not (hasattr(one, "fun") or hasattr(one, "A")):
        message = (
            f"A constraint of {title}() must be a dict, a NonlinearConstraint or a LinearConstraint, but is "
            f"{a_full_name(one)}."
        )
        raise ArgumentError(message)
    name = name_of(one.fun) if hasattr(one, "fun") else "a LinearConstraint"
    value = _vector(one.fun(x) if hasattr(one, "fun") else _product(one.A, x), name, title)
    low, high = (_end(end, value.size, name, title) for end in (one.lb, one.ub))
    equal = (_known(one.lb, value.size) == _known(one.ub, value.size)) | (one.lb is one.ub)
    for is_equality, chosen in ((True, equal), (False, ~equal & ~np.isneginf(_known(one.lb, value.size)))):
        if chosen.any():
            yield is_equality, _part(value - low, chosen)
    chosen = ~equal & ~np.isposinf(_known(one.ub, value.size))
    if chosen.any():
        yield False, _part(high - value, chosen)


def _vector(value: Any, name: str, title: str) -> Node:
    if value is None:
        message = f"{name}() must return numbers as a constraint of {title}(), but returned None."
        raise ArgumentError(message)
    node = cast(as_node(value), FLOAT)
    return reshape(node, (node.size,))


def _product(matrix: Any, x: Tensor) -> Any:
    dense = matrix.toarray() if hasattr(matrix, "toarray") else np.atleast_2d(matrix)
    return dense @ x


def _end(end: Any, size: int, name: str, title: str) -> Node:
    node = cast(as_node(end), FLOAT)
    if node.ndim > 1 or node.size not in (1, size):
        message = f"{name} has {size} values in a constraint of {title}(), but an end of shape {node.shape}."
        raise ShapeError(message)
    return broadcast(node, (size,))


def _known(end: Any, size: int) -> np.ndarray:
    """The values of ends as far as they are plain; NaN, which equals nothing, for those that are recorded."""
    if isinstance(end, Tensor):
        return np.full(size, np.nan)
    listed = [np.nan if isinstance(one, Tensor) else one for one in end] if isinstance(end, list | tuple) else end
    return np.broadcast_to(np.asarray(listed, FLOAT), (size,))


def _part(node: Node, chosen: np.ndarray) -> Node:
    return node if chosen.all() else Tensor._of(node)[np.flatnonzero(chosen)]._node
