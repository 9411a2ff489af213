"""SciPy's steps through a differential equation, done again as graph: the derivative of an integrator.

In: the right-hand side as a `ClosedFunction` over the state and the time, and the steps that SciPy has accepted. Out: a
`Replayed`, the solution as a function of the times, the ends, the first state and the parameters, in which the steps'
parts of the whole are constants. Its derivatives are of that form again, in both modes and of all orders. Called by
differential_equations.py.

The steps are one loop. It is compiled for a number of turns, which is the next power of two: further steps have no
length. So another parameter, which takes other steps, compiles nothing.

Explicit methods do the same arithmetic as SciPy. For implicit ones a step is one of Radau IIA with three stages, of
fifth order, from stages that are known, by Newton's iterations: k of them make derivatives of up to the order 2^k - 1
exact. Stages that are SciPy's, which other methods have found, get one more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..control.scan import scan
from ..graph.builders import concatenate, reshape, slice_axes
from ..graph.differentiate import jvp, vjp
from ..graph.ir import Node, constant, make, placeholder, zeros
from ..numpy import linalg
from ..record.tensor import Tensor
from ..transforms.vmap import vmap
from .closed_functions import FLOAT, ClosedFunction, recorded
from .host_solves import HostSolve, check_converged
from .stepping import stages
from .tableaus import EXPLICIT, RADAU_DENSE, RADAU_MATRIX, RADAU_NODES, tableau

TITLE = "solve_ivp"
FEWEST_STEPS = 16
Way = tuple[int, str, int]
"""The number of steps, their method, and the number of Newton's iterations."""


@dataclass(frozen=True, eq=False)
class Steps:
    """Accepted steps: `fractions` of the whole at which they end, and, for implicit methods, the stages of each.

    `values` gives the solution at times, or is None where it is that of the steps done again; `fields` are those of
    the run; `method` is an explicit one, or Radau's.
    """

    fractions: np.ndarray
    stages: np.ndarray
    values: Callable[[np.ndarray], np.ndarray] | None
    fields: dict[str, Any]
    method: str = "Radau"

    @property
    def bytes(self) -> int:
        """The memory of the arrays."""
        return self.stages.nbytes + self.fractions.nbytes

    def padded(self) -> list[np.ndarray]:
        """Fractions and stages of as many steps as a program has turns; those at the end have no length."""
        count = len(self.fractions) - 1
        more = max(FEWEST_STEPS, 1 << max(count - 1, 0).bit_length()) - count
        fractions = np.concatenate([self.fractions, np.full(more, self.fractions[-1])])
        return [fractions, np.concatenate([self.stages, np.zeros((more, *self.stages.shape[1:]))])]

    def positions(self, fractions: np.ndarray) -> np.ndarray:
        """The steps in which parts of the whole lie."""
        last = max(len(self.fractions) - 2, 0)
        return np.clip(np.searchsorted(self.fractions, fractions, side="left") - 1, 0, last)


class Problem:
    """A right-hand side, and a way to find the steps: `find(t0, t1, y0, *parameters)`.

    `rough`: stages are those of another method than Radau's.
    """

    title = TITLE
    """For messages."""

    def __init__(self, function: ClosedFunction, find: Callable[..., Steps], rough: bool) -> None:
        self.function, self.find, self.rough = function, find, rough

    def iterations(self, method: str, order: int) -> int:
        """Newton's iterations for a derivative."""
        return 0 if method in EXPLICIT else max(order.bit_length(), 1) + self.rough

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
        """The solution at times, shape (times, elements), in operations that are recorded."""
        given = [one._node for one in parameters]

        def slope(t: Tensor, y: Tensor) -> Tensor:
            return Tensor._of(self.function.at([y._node, t._node, *given])[0])

        ends = first + (last - first) * fractions
        lengths = ends[1:] - ends[:-1]
        if method in EXPLICIT:
            states, weighted, dense = _explicit(slope, method, ends, lengths, y0)
        else:
            states, weighted, dense = _implicit(*(slope, ends, lengths, stages, y0, self._jacobian(given), iterations))
        length = lengths[positions]
        part = (times - ends[positions]) / np.where(length == 0, 1.0, length)
        powers = part[:, None] ** np.arange(1, dense.shape[1] + 1)
        inside = np.einsum("ms,msn->mn", powers @ dense.T, weighted[positions])
        return (states[positions] + inside).reshape(-1)

    def _jacobian(self, given: Sequence[Node]) -> Callable[[Tensor, Tensor], Tensor]:
        made = self.function.jacobian()
        return lambda t, y: Tensor._of(made.at([y._node, t._node, *given])[0])


def _explicit(slope: Callable[..., Any], method: str, ends: Any, lengths: Any, y0: Any) -> tuple[Any, Any, np.ndarray]:
    """States before the steps, the slopes at the stages times the lengths, and the dense output's coefficients."""
    known = tableau(method)

    def step(y: Any, of: Any) -> tuple[Any, Any]:
        t, h = of
        slopes = stages(known, slope, t, h, y)
        return y + h * (known.b @ slopes), (y, h * slopes)

    _, (states, weighted) = scan(step, y0, (ends[:-1], lengths))
    return states, weighted, known.p


def _implicit(
    slope: Callable[..., Any],
    ends: Any,
    lengths: Any,
    stages: Any,
    y0: Any,
    jacobian: Callable[..., Any],
    iterations: int,
) -> tuple[Any, Any, np.ndarray]:
    """States before the steps, the stages' distances from them, and the collocation polynomial's coefficients."""
    n = y0.shape[0]
    unit = np.eye(3 * n)
    slopes, jacobians = vmap(slope), vmap(jacobian)

    def corrected(z: Any, t: Any, h: Any, y: Any) -> Any:
        times, states = t + RADAU_NODES * h, y + z
        rest = z - h * (RADAU_MATRIX @ slopes(times, states))
        blocks = RADAU_MATRIX[:, None, :, None] * np.transpose(jacobians(times, states), (1, 0, 2))[None]
        matrix = unit - h * blocks.reshape(3 * n, 3 * n)
        return z - linalg.solve(matrix, rest.reshape(3 * n)).reshape(3, n)

    def step(y: Any, of: Any) -> tuple[Any, Any]:
        t, h, z = of
        for _ in range(iterations):
            z = corrected(z, t, h, y)
        return y + z[2], (y, z)

    _, (states, found) = scan(step, y0, (ends[:-1], lengths, stages))
    return states, found, RADAU_DENSE.T


# ----- The solution, and its derivatives, as operations -----


class Replayed:
    """A vector that is computed along the steps of a problem, from inputs of given shapes and dtypes.

    `graph(way)` gives its graph: over fractions, stages, positions, and the inputs. The first inputs are times, the
    ends, the first state, and the parameters, from which the steps follow.
    """

    def __init__(
        self,
        key: Any,
        problem: Problem,
        base: int,
        inputs: Sequence[Node],
        size: int,
        graph: Callable[[Way], ClosedFunction],
        order: int = 0,
    ) -> None:
        self.key, self.problem, self.base, self.size, self.order = key, problem, base, size, order
        self.inputs = [placeholder(node.shape, node.dtype) for node in inputs]
        self._graph = graph
        self._graphs: dict[Way, ClosedFunction] = {}
        self._derivatives: dict[Any, Replayed] = {}

    def graph(self, way: Way) -> ClosedFunction:
        """The graph for a number of steps of a method."""
        if way not in self._graphs:
            self._graphs[way] = self._graph(way)
        return self._graphs[way]

    def values(self, steps: Steps, given: Sequence[np.ndarray]) -> np.ndarray:
        """The vector for plain arrays of the inputs."""
        times, first, last = given[:3]
        fractions, stages = steps.padded()
        positions = steps.positions((times - first) / ((last - first) or 1.0))
        way = (len(fractions) - 1, steps.method, self.problem.iterations(steps.method, self.order))
        return self.graph(way).program()(fractions, stages, positions, *given)[0]

    def node(self, inputs: Sequence[Node], fields: Node) -> Node:
        """The vector for nodes of the inputs; `fields` say whether SciPy has found the solution."""

        def run(*arrays: np.ndarray) -> tuple[Any, dict[str, Any]]:
            *given, state = arrays
            check_converged(self.problem.title, state)
            first, last, *rest = given[1 : self.base]
            return self.values(self.problem.find(first, last, *rest), given), {}

        nodes = [*inputs, fields]
        host = HostSolve(self.problem.title, self.key, [node.ndim for node in nodes], (self.size,), (), run)
        return make("custom", (host.nodes(nodes)[0], *inputs, fields), (ReplayRule(self), 0))

    def floats(self) -> list[int]:
        """The positions of inputs that have derivatives."""
        return [k for k, node in enumerate(self.inputs) if node.dtype.kind == "f"]

    def cotangents(self) -> Replayed:
        """The cotangents of the inputs of floats, one after the other; the vector's cotangent is a further input."""
        wanted = self.floats()

        def graph(way: Way) -> ClosedFunction:
            made = self.graph(way)
            given = placeholder((self.size,), FLOAT)
            found = vjp(made.outputs, [given], [made.variables[3 + k] for k in wanted])
            return ClosedFunction((*made.variables, given), (), [_joined(found, [self.inputs[k] for k in wanted])])

        size = sum(self.inputs[k].size for k in wanted)
        inputs = [*self.inputs, placeholder((self.size,), FLOAT)]
        return self._derived("cotangents", inputs, size, graph)

    def tangent(self, moved: tuple[int, ...]) -> Replayed:
        """The vector's tangent; the tangents of the inputs at positions are further inputs."""

        def graph(way: Way) -> ClosedFunction:
            made = self.graph(way)
            moves = [placeholder(self.inputs[k].shape, self.inputs[k].dtype) for k in moved]
            found = jvp(made.outputs, [made.variables[3 + k] for k in moved], moves)[0]
            result = zeros((self.size,), FLOAT) if found is None else found
            return ClosedFunction((*made.variables, *moves), (), [result])

        return self._derived(moved, [*self.inputs, *[self.inputs[k] for k in moved]], self.size, graph)

    def _derived(self, way: Any, inputs: Sequence[Node], size: int, graph: Callable[[Way], ClosedFunction]) -> Replayed:
        if way not in self._derivatives:
            key = (self.key, way)
            self._derivatives[way] = Replayed(key, self.problem, self.base, inputs, size, graph, self.order + 1)
        return self._derivatives[way]


def _joined(found: Sequence[Node | None], like: Sequence[Node]) -> Node:
    parts = [
        zeros((n.size,), FLOAT) if one is None else reshape(one, (n.size,)) for one, n in zip(found, like, strict=True)
    ]
    return concatenate(parts, 0)


@dataclass(frozen=True)
class ReplayRule:
    """The derivative of a `Replayed` vector: inputs are its value, its inputs, and the fields of the run."""

    replayed: Replayed
    pure = True

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The parts of the vector of cotangents."""
        *inputs, fields = node.inputs[1:]
        row = self.replayed.cotangents().node([*inputs, g], fields)
        found: list[Node | None] = [None] * (len(inputs) + 1)
        start = 0
        for k in self.replayed.floats():
            shape, size = inputs[k].shape, inputs[k].size
            found[k] = reshape(slice_axes(row, [(start, size, 1)]), shape)
            start += size
        return found

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """The vector's tangent."""
        *inputs, fields = node.inputs[1:]
        moves = {k: t for k, t in enumerate(tangents[1:-1]) if t is not None}
        return self.replayed.tangent(tuple(moves)).node([*inputs, *moves.values()], fields)


def replayed_solution(key: Any, problem: Problem, inputs: Sequence[Node], size: int) -> Replayed:
    """The solution at times, flat, for inputs such as these: times, the ends, the first state, the parameters."""
    times, _, _, y0, *_ = inputs

    def graph(way: Way) -> ClosedFunction:
        steps, method, iterations = way
        shapes = [(steps + 1,), (steps, 0, 0) if method in EXPLICIT else (steps, 3, y0.size)]
        given = [placeholder(shape, FLOAT) for shape in shapes]
        given += [placeholder(times.shape, np.dtype(np.int64)), *inputs]
        made, outside = recorded(partial(problem.replay, method, iterations), given, problem.title, lambda nodes: nodes)
        values = [node if node.value is None else constant(node.value) for node in outside]
        return made if not outside else ClosedFunction(made.variables, (), made.at([*made.variables, *values]))

    return Replayed((key, *[(n.shape, n.dtype) for n in inputs]), problem, len(inputs), inputs, size, graph)
