"""Iterations for linear systems whose unknowns lie on several ranks, and their derivatives by further such systems.

In: an operator with a token, nodes of a right-hand side and of what the operator closes over. Out: a node with this
rank's part of the solution, one of the calls whose order counts. Called by decomposed_systems.py.

A run is one call from a compiled program into Python, which calls a program of some turns: products by the operator
with their messages, and sums over ranks. All decisions rest on sums that are equal on all ranks, so that all end in
the same turn, or fail together. The transposed call of a run is the run of the adjoint system, and then the messages of
the cotangents of what the operator closes over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from .. import config
from ..compiler.host_calls import has_failed
from ..errors import ArgumentError
from ..graph.builders import reshape, slice_axes
from ..graph.differentiate import jvp, vjp
from ..graph.host_functions import HostFunction, host
from ..graph.ir import Node, Params, constant, make, on_host, zeros
from ..graph.loops.loop_body import like
from ..graph.shapes import Shape
from ..graph.trace import current_trace
from ..record.call_order import FLOAT64, after, is_later, last_token, records_for_later
from ..record.tensor import Tensor
from ..runtime.evaluate import computed
from ..solvers.closed_functions import ClosedFunction, as_float
from ..solvers.compiled_iterations import iterated
from ..solvers.host_solves import ConvergenceError
from ..solvers.krylov import gmres
from .collectives import allreduce
from .communicators import groups
from .message_nodes import known_result
from .messages import Message

METHODS = ("cg", "bicgstab", "gmres")
RESTART = 50
"""The most directions of a cycle of gmres."""
NO_TOKEN = np.zeros(())


@dataclass(frozen=True)
class DecomposedSystem:
    """A(p) x = b: the operator, from a vector, a token and p to a vector and a token, and how it is solved.

    `inverse` takes the same, and gives about the rank's part of A(p)^-1 times a vector, without messages.
    """

    operator: ClosedFunction
    shape: Shape
    method: str
    tolerances: tuple[float, float]
    most: int | None
    group: int
    line: str
    inverse: ClosedFunction | None = None

    @staticmethod
    def moved(operator: ClosedFunction) -> ClosedFunction:
        """The tangent of an operator's product along one of the vector; of new messages alone."""

        def how() -> tuple[list[Node], list[Node]]:
            moves = [like(node) for node in operator.variables]
            found, last = jvp(operator.outputs, operator.variables, moves)
            product = zeros(operator.outputs[0].shape, FLOAT64) if found is None else found
            return moves, [product, moves[1] + 0.0 if last is None or last is moves[1] else last]

        return operator.derived("tangent with messages", how)

    def adjoint(self) -> DecomposedSystem:
        """The system with the transposed operator, which closes over a vector and a token besides."""

        def how() -> tuple[list[Node], list[Node]]:
            given = [like(node) for node in self.operator.outputs]
            found, last = vjp(self.operator.outputs, given, self.operator.variables[:2])
            product = zeros(self.shape, FLOAT64) if found is None else found
            return given, [product, given[1] + 0.0 if last is None or last is given[1] else last]

        def about() -> tuple[list[Node], list[Node]]:
            assert self.inverse is not None
            given = [like(node) for node in self.inverse.variables]
            (found,) = vjp(self.inverse.outputs, given[:1], self.inverse.variables[:1])
            return given, [zeros(self.shape, FLOAT64) if found is None else found]

        operator = self.operator.derived("adjoint with messages", how)
        inverse = None if self.inverse is None else self.inverse.derived("adjoint without messages", about)
        return replace(self, operator=operator, inverse=inverse)

    @property
    def size(self) -> int:
        """The unknowns on this rank."""
        return int(np.prod(self.shape, dtype=np.int64))

    def sums(self, *numbers: float) -> list[float]:
        """Sums over all ranks, now."""
        layout = ((len(numbers),), FLOAT64)
        message = Message("allreduce", self.group, layout, layout, "sum", line=self.line)
        return known_result(message, np.array(numbers)).tolist()

    def run(self, b: np.ndarray, start: np.ndarray | None, values: Sequence[np.ndarray]) -> np.ndarray:
        """This rank's part of the solution.

        Raises
        ------
        ArgumentError
            If the operator gives other numbers than zeros for zeros, on any rank.
        ConvergenceError
            If the residual stays too large; on all ranks.
        """
        product = self.operator.program()
        at_zero = product(np.zeros(self.shape), NO_TOKEN, *values)[0]
        first = np.zeros(self.shape) if start is None else as_float(start)
        rest = b if start is None else b - product(first, NO_TOKEN, *values)[0]
        right, square, bent, unknowns = self.sums(
            float(np.sum(b * b)), float(np.sum(rest * rest)), float(at_zero.any()), float(b.size)
        )
        if bent:
            message = "The function of linear_solve() gives other numbers than zeros for zeros: it is not linear."
            raise ArgumentError(message)
        if right == 0:
            return np.zeros(self.shape)
        rtol, atol = self.tolerances
        limit = max(atol, rtol * float(np.sqrt(right)))
        most = self.most or 10 * int(unknowns)
        if self.method == "gmres":
            return self._by_gmres(b, start, values, limit, min(int(unknowns), RESTART), most)
        turn, carried = (_cg_turn, [first, rest, rest, square])
        if self.method == "bicgstab":
            turn, carried = _bicgstab_turn, [first, rest, rest, rest, square]
        elif self.inverse is not None:
            way = self.inverse.program()(rest, NO_TOKEN, *values)[0]
            carried = [first, rest, way, *self.sums(float(np.sum(rest * way)))]
        functions = [self.operator, *([] if self.inverse is None else [self.inverse])]
        end, _, (x, *_) = iterated(
            functions,
            (self.method, self.group, self.inverse),
            lambda value, before, limits: turn(_Products(value, self.group, len(functions) > 1), before, limits),
            [most, limit],
            carried,
            values,
            float(np.sqrt(square) <= limit),
        )
        if not end:
            self._refuse(f"{most} turns")
        return x

    def _by_gmres(
        self,
        b: np.ndarray,
        start: np.ndarray | None,
        values: Sequence[np.ndarray],
        limit: float,
        restart: int,
        most: int,
    ) -> np.ndarray:
        """The solution by generalised minimal residuals, whose steps are Python's."""

        def applied(function: ClosedFunction) -> Callable[[np.ndarray], np.ndarray]:
            program = function.program()
            return lambda v: program(v.reshape(self.shape), NO_TOKEN, *values)[0].reshape(-1)

        inverse = None if self.inverse is None else applied(self.inverse)
        known = None if start is None else as_float(start).reshape(-1)

        def summed(parts: Any) -> Any:
            return np.array(self.sums(*np.ravel(parts).tolist())).reshape(np.shape(parts))

        found, info = gmres(applied(self.operator), b.reshape(-1), known, limit, restart, most, inverse, summed)
        if info:
            self._refuse(f"{info} restarts")
        return found.reshape(self.shape)

    def _refuse(self, tried: str) -> NoReturn:
        message = (
            f"{self.method} has not converged in linear_solve() after {tried}: the residual is above "
            f"rtol={self.tolerances[0]:g}. Allow more with maxiter, choose another method, or check the operator."
        )
        raise ConvergenceError(message)


# ----- The turns -----


class _Products:
    """Products by an operator and by about its inverse, and sums over ranks, in the turn that is being recorded."""

    def __init__(self, value: Any, group: int, preconditioned: bool) -> None:
        self.value, self.inverse = value if preconditioned else (value, None)
        self.group = group

    def times(self, v: Any) -> Any:
        """The product; its messages come next."""
        trace = current_trace()
        assert trace is not None
        found, token = self.value(v, Tensor._of(last_token(trace)))
        trace.tokens.append(token._node)
        return found

    def towards(self, rest: Any) -> Any:
        """The way to go for a residual."""
        return rest if self.inverse is None else self.inverse(rest, Tensor._of(zeros((), FLOAT64)))

    def sums(self, *numbers: Any) -> Any:
        """Sums over all ranks, by one message."""
        return allreduce(np.stack(numbers), comm=groups[self.group].comm)


def _cg_turn(a: _Products, before: Sequence[Any], limits: Any) -> tuple[list[Any], Any]:
    """Of conjugate gradients: Hestenes and Stiefel, 1952."""
    x, rest, way, before_it = before
    product = a.times(way)
    (bend,) = a.sums(np.sum(way * product))
    step = before_it / bend
    x, rest = x + step * way, rest - step * product
    towards = a.towards(rest)
    after_it, square = a.sums(np.sum(rest * towards), np.sum(rest * rest))
    return [x, rest, towards + (after_it / before_it) * way, after_it], np.sqrt(square) < limits[1]


def _bicgstab_turn(a: _Products, before: Sequence[Any], limits: Any) -> tuple[list[Any], Any]:
    """Of the stabilized biconjugate gradients: van der Vorst, 1992."""
    x, rest, way, shadow, rho = before
    forth = a.towards(way)
    product = a.times(forth)
    (bend,) = a.sums(np.sum(shadow * product))
    step = rho / bend
    half = rest - step * product
    aside = a.towards(half)
    turned = a.times(aside)
    share, square = a.sums(np.sum(turned * half), np.sum(turned * turned))
    damping = np.where(square == 0, 0.0, share / np.where(square == 0, 1.0, square))
    x, rest = x + step * forth + damping * aside, half - damping * turned
    following, square = a.sums(np.sum(shadow * rest), np.sum(rest * rest))
    way = rest + (following / rho) * (step / damping) * (way - damping * product)
    return [x, rest, way, shadow, following], np.sqrt(square) < limits[1]


# ----- Nodes -----


def _rule(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    return (*inputs[0].shape, params[0].size + 1), FLOAT64


def _run(token: np.ndarray, *rest: Any) -> np.ndarray:
    """The row of a run; of a batch, whose axes the token has, one after the other."""
    *arrays, system, has_start, empty = rest
    found = np.zeros((*token.shape, system.size + 1))
    for at in np.ndindex(*token.shape):
        if has_failed():
            break  # the program goes on to its end, but sends nothing more
        given = iter([array[at] for array in arrays])
        b, *others = [next(given) if layout is None else np.zeros(*layout) for layout in empty]
        start = others.pop(0) if has_start else None
        found[(*at, slice(0, system.size))] = system.run(b, start, others).reshape(-1)
    return found


SOLVE = HostFunction("linear_solve over ranks", _rule, _run, ordered=True)


def solved(
    system: DecomposedSystem, token: Node, b: Node, parameters: Sequence[Node], start: Node | None = None
) -> Node:
    """The row of a run that waits for a token: this rank's part of the solution, and a number that is 0.

    So it has an element on ranks without unknowns, too. Arrays without elements, which programs leave out, are no
    operands.
    """
    nodes = [b, *([] if start is None else [start]), *parameters]
    empty = tuple([None if node.size else (node.shape, node.dtype) for node in nodes])
    inputs = (token, *[node for node in nodes if node.size])
    if records_for_later() or any(map(is_later, inputs)):
        if config.interpret():
            text = "The interpreter would run linear_solve() over ranks more than once. Use compiled programs."
            raise ArgumentError(text)
        value = host(SOLVE, inputs, system, start is not None, empty)
    else:
        value = constant(_run(*[on_host(computed(node)) for node in inputs], system, start is not None, empty))
    return make("custom", (value, token, b, *parameters), (_SolveRule(system), 0))


def solution_of(row: Node, size: int) -> Node:
    """The part of a row that is the solution."""
    return slice_axes(row, [(0, size, 1)])


class _SolveRule:
    """The derivative of a run: a run for the tangents, or one of the adjoint system."""

    pure = False

    def __init__(self, system: DecomposedSystem) -> None:
        self.system = system

    def _product(self, node: Node, token: Node) -> tuple[list[Node], list[Node]]:
        """A(p) x at the solution, and the token after it, over stand-ins for p and for a token."""
        inside = [make("alias", (one,)) for one in (*node.inputs[3:], token)]
        x = reshape(solution_of(node, self.system.size), self.system.shape)
        return inside, self.system.operator.at([x, inside[-1], *inside[:-1]])

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """Those of the token, the right-hand side and what the operator closes over."""
        system, nothing = self.system, zeros((), FLOAT64)
        right = reshape(solution_of(g, system.size), system.shape)
        adjoint = system.adjoint()
        row = solved(adjoint, after(g), right, [zeros(system.shape, FLOAT64), nothing, *node.inputs[3:]])
        found = reshape(solution_of(row, system.size), system.shape)
        inside, product = self._product(node, after(row))
        *others, last = vjp(product, [-found, product[1]], inside)
        return [product[1] if last is None else last, found, *others]

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """The row of the tangents."""
        _, token, moved, *others = tangents
        assert token is not None
        inside, product = self._product(node, token)
        bent, last = jvp(product, inside, [*others, product[1]])
        right = zeros(self.system.shape, FLOAT64) if moved is None else moved
        right = right if bent is None else right - bent
        return solved(self.system, product[1] if last is None else last, right, node.inputs[3:])
