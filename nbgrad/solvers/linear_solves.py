"""Linear systems at a solution, for derivatives by the implicit function theorem: dense, diagonal, or by an operator.

In: nodes of a matrix (or a `ClosedFunction` that multiplies by it), of a right-hand side, and of the fields that say
whether the solution was found. Out: the node of the system's solution; its derivative is such a system again, so that
derivatives of all orders exist. Called by implicit.py and matrix_free.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..functions.linalg.matrix_batches import MatrixError
from ..graph.builders import matmul, reshape, transpose
from ..graph.differentiate import jvp, vjp
from ..graph.ir import Node, broadcast, make, zeros
from .closed_functions import ClosedFunction, as_float
from .compiled_iterations import conjugate_gradients
from .host_solves import ConvergenceError, HostSolve, check_converged
from .krylov import gmres

EPS = float(np.finfo(np.float64).eps)
METHODS = ("cg", "bicgstab", "gmres", "dense", "minres", "cgs", "tfqmr", "lgmres", "gcrotmk", "bicg", "qmr")
TWO_SIDED = ("bicg", "qmr")
"""Iterations that multiply by the transposed matrix, too."""
Product = Callable[[np.ndarray], np.ndarray]


def _refuse_singular(title: str) -> None:
    message = (
        f"The Jacobian at the solution of {title}() is singular (or nearly so), so that the solution has no derivative "
        "there: it is not isolated, or a multiple root."
    )
    raise MatrixError(message)


def _refuse_infinite(title: str) -> None:
    message = f"The derivative of the function of {title}() is not finite at the solution."
    raise MatrixError(message)


# ----- A matrix -----


def _solve_matrix(title: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """LU with partial pivoting; a reciprocal condition number at the level of rounding is a singular matrix."""
    n = len(a)
    if n == 1:
        if not np.isfinite(a[0, 0]):
            _refuse_infinite(title)
        if a[0, 0] == 0:
            _refuse_singular(title)
        return b / a[0, 0]
    from scipy.linalg import lapack

    routines: Any = lapack
    turned = a.T  # in Fortran's order, so that nothing is copied to turn it
    norm = routines.dlange("1", turned)
    if not math.isfinite(norm) and not np.isfinite(a).all():
        _refuse_infinite(title)
    factors, pivots, info = routines.dgetrf(turned)
    if info > 0 or routines.dgecon(factors, norm)[0] < n * EPS:
        _refuse_singular(title)
    return routines.dgetrs(factors, pivots, b, trans=1)[0]


@dataclass(frozen=True)
class _MatrixRule:
    """For x = inverse(A) b: inputs are the value, A, b and the fields of the run behind A."""

    title: str
    pure = True

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        _, a, _, fields = node.inputs
        moved = solve_matrix(self.title, transpose(a, (1, 0)), g, fields)
        return [-_outer(moved, node), moved, None]

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        _, a, b, fields = node.inputs
        right = zeros(b.shape, b.dtype) if tangents[2] is None else tangents[2]
        if tangents[1] is not None:
            right = right - _times(tangents[1], node)
        return solve_matrix(self.title, a, right, fields)


def _outer(a: Node, b: Node) -> Node:
    return broadcast(reshape(a, (a.size, 1)), (a.size, b.size)) * broadcast(b, (a.size, b.size))


def _times(a: Node, x: Node) -> Node:
    n, m = a.shape
    return reshape(matmul(reshape(a, (1, n, m)), reshape(x, (1, m, 1))), (n,))


def solve_matrix(title: str, a: Node, b: Node, fields: Node) -> Node:
    """The solution of A x = b, shapes (n, n) and (n,)."""

    def run(a: np.ndarray, b: np.ndarray, fields: np.ndarray) -> tuple[Any, dict[str, Any]]:
        check_converged(title, fields)
        return _solve_matrix(title, a, b), {}

    value, _ = HostSolve(title, "matrix", (2, 1, 1), b.shape, (), run).nodes((a, b, fields))
    return make("custom", (value, a, b, fields), (_MatrixRule(title), 0))


# ----- A diagonal -----


@dataclass(frozen=True)
class _DiagonalRule:
    """For x = b / d: inputs are the value, d, b and the fields of the run behind d."""

    title: str
    pure = True

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        _, d, _, fields = node.inputs
        moved = solve_diagonal(self.title, d, g, fields)
        return [-(moved * node), moved, None]

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        _, d, b, fields = node.inputs
        right = zeros(b.shape, b.dtype) if tangents[2] is None else tangents[2]
        if tangents[1] is not None:
            right = right - tangents[1] * node
        return solve_diagonal(self.title, d, right, fields)


def solve_diagonal(title: str, d: Node, b: Node, fields: Node) -> Node:
    """The solution of d x = b for each element."""

    def run(d: np.ndarray, b: np.ndarray, fields: np.ndarray) -> tuple[Any, dict[str, Any]]:
        check_converged(title, fields)
        if not np.isfinite(d).all():
            _refuse_infinite(title)
        if not d.all():
            _refuse_singular(title)
        return b / d, {}

    value, _ = HostSolve(title, "diagonal", (d.ndim, d.ndim, 1), b.shape, (), run).nodes((d, b, fields))
    return make("custom", (value, d, b, fields), (_DiagonalRule(title), 0))


# ----- An operator -----


@dataclass(frozen=True)
class Iteration:
    """An iterative method with its tolerances, as SciPy's functions take them."""

    method: str = "gmres"
    rtol: float = 1e-10
    atol: float = 0.0
    maxiter: int | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            message = f"method must be one of {', '.join(METHODS)}, but got {self.method!r}."
            raise ArgumentError(message)

    def run(
        self,
        title: str,
        product: Product,
        b: np.ndarray,
        start: Any,
        inverse: Product | None = None,
        turned: Sequence[Product | None] = (None, None),
    ) -> tuple[np.ndarray, int]:
        """The solution, and SciPy's `info`, which is 0 for success; `inverse` multiplies by about the inverse, and
        `turned` are the transposed products of both, for methods that need them."""
        if self.method == "dense":
            matrix = np.stack([product(unit) for unit in np.eye(b.size)], axis=1)
            return _solve_matrix(title, matrix, b), 0
        if self.method == "gmres":
            limit = max(self.atol, self.rtol * float(np.linalg.norm(b)))
            most = 10 * b.size if self.maxiter is None else self.maxiter
            return gmres(product, b, start, limit, min(b.size, 50), most, inverse)
        from scipy.sparse import linalg

        routines: Any = linalg

        def as_operator(one: Product, transposed: Product | None) -> Any:
            return routines.LinearOperator((b.size, b.size), matvec=one, rmatvec=transposed, dtype=b.dtype)

        operator = as_operator(product, turned[0])
        more: dict[str, Any] = {}
        if inverse is not None:
            more["M1" if self.method == "qmr" else "M"] = as_operator(inverse, turned[1])
            if self.method == "qmr":
                more["M2"] = as_operator(np.array, np.array)
        rtol = self.rtol
        if self.method == "minres":
            # It has a relative tolerance alone.
            size = float(np.linalg.norm(b))
            rtol = max(rtol, self.atol / size) if size else rtol
        else:
            more["atol"] = self.atol
        given = {**more, **({} if self.maxiter is None else {"maxiter": self.maxiter})}
        found, info = getattr(routines, self.method)(operator, b, x0=start, rtol=rtol, **given)
        return found, info


@dataclass(frozen=True)
class _OperatorRule:
    """For A(p) x = b: inputs are the value, b, the fields of the run behind A, and p; `inverse` is about A(p)^-1."""

    title: str
    operator: ClosedFunction
    iteration: Iteration
    inverse: ClosedFunction | None = None
    pure = True

    def _at(self, x: Node, parameters: Sequence[Node]) -> tuple[list[Node], Node]:
        """Nodes that stand for the parameters, and A(p) x over them, where x is a constant."""
        inside = [make("alias", (node,)) for node in parameters]
        product = self.operator.at([reshape(x, self.operator.variables[0].shape), *inside])[0]
        return inside, reshape(product, x.shape)

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        _, _, fields, *parameters = node.inputs
        # Also for conjugate gradients: the matrix may be less symmetric than was thought.
        anywhere = zeros(self.operator.variables[0].shape, node.dtype)
        turned = self.operator.cotangent()
        about = None if self.inverse is None else self.inverse.cotangent()
        moved = solve_operator(self.title, turned, [anywhere, *parameters], g, fields, self.iteration, None, about)
        inside, product = self._at(node, parameters)
        return [moved, None, *vjp([product], [-moved], inside)]

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        _, b, fields, *parameters = node.inputs
        right = zeros(b.shape, b.dtype) if tangents[1] is None else tangents[1]
        inside, product = self._at(node, parameters)
        moved = jvp([product], inside, tangents[3:])[0]
        if moved is not None:
            right = right - moved
        return solve_operator(self.title, self.operator, parameters, right, fields, self.iteration, None, self.inverse)


def solve_operator(
    title: str,
    operator: ClosedFunction,
    parameters: Sequence[Node],
    b: Node,
    fields: Node,
    iteration: Iteration,
    start: Node | None = None,
    inverse: ClosedFunction | None = None,
) -> Node:
    """The solution of A(p) x = b, where `operator` has the one variable x and `parameters` are p.

    `inverse`, over the same parameters, multiplies by about the inverse.
    """

    def run(b: np.ndarray, fields: np.ndarray, *rest: np.ndarray) -> tuple[Any, dict[str, Any]]:
        check_converged(title, fields)
        given, first = (rest[1:], rest[0]) if start is not None else (rest, None)
        shape = operator.variables[0].shape

        def by(function: ClosedFunction) -> Product:
            product = function.program()
            return lambda v: product(as_float(v).reshape(shape), *given)[0].reshape(-1)

        def by_adjoint(function: ClosedFunction) -> Product:
            program, anywhere = function.cotangent().program(), np.zeros(shape)
            return lambda v: program(as_float(v).reshape(shape), anywhere, *given)[0].reshape(-1)

        multiplied = by(operator)
        if multiplied(np.zeros(b.shape)).any():
            message = f"The function of {title}() gives other numbers than zeros for zeros: it is not linear."
            raise ArgumentError(message)
        if iteration.method == "cg":
            limit = max(iteration.atol, iteration.rtol * float(np.linalg.norm(b)))
            most = iteration.maxiter or 10 * b.size
            start_at = None if first is None else first.reshape(shape)
            good, found = conjugate_gradients(operator, b.reshape(shape), start_at, given, limit, most, inverse)
            info = 0 if good else most
        else:
            turned = [None, None]
            if iteration.method in TWO_SIDED:
                turned = [None if one is None else by_adjoint(one) for one in (operator, inverse)]
            about = None if inverse is None else by(inverse)
            found, info = iteration.run(title, multiplied, b, first, about, turned)
        if info:
            message = (
                f"{iteration.method} has not converged in {title}() (SciPy's info {info}): the residual is above "
                f"rtol={iteration.rtol:g}. Allow more with maxiter, choose another method, or check the operator."
            )
            raise ConvergenceError(message)
        return found, {}

    inputs = [b, fields, *([] if start is None else [start]), *parameters]
    key = ("operator", operator, iteration, start is None, inverse)
    value, _ = HostSolve(title, key, [node.ndim for node in inputs], b.shape, (), run).nodes(inputs)
    return make("custom", (value, b, fields, *parameters), (_OperatorRule(title, operator, iteration, inverse), 0))
