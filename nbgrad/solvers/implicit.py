"""Solutions of equations, differentiated by the implicit function theorem; `custom_root` for users' own solvers.

In: a residual as a `ClosedFunction`, the values that it has captured, and a run that finds its root. Out: the root, as
a node that carries its derivative. Called by the root finders and the minimisers, and, for `custom_root`, by users.

Where R(x, p) = 0 and dR/dx is regular, dx = -(dR/dx)^-1 dR/dp dp. The rule is made of graph, so that it can itself be
differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
import optree

from ..errors import ArgumentError, DtypeError, NbgradError, ShapeError
from ..graph.builders import cast, reshape, slice_axes, transpose
from ..graph.differentiate import jvp, vjp
from ..graph.ir import BOOL, INT64, Node, make, zeros
from ..graph.trace import current_trace
from ..record.as_node import as_node
from ..record.foreign_arrays import a_full_name
from ..record.tensor import Tensor
from ..runtime.evaluate import computed
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from ..transforms.lent_arrays import kind_of
from .closed_functions import FLOAT, ClosedFunction, as_float, jacobian_at, one_output, recorded
from .host_solves import ConvergenceError, HostSolve, said, text_of
from .linear_solves import METHODS, Iteration, solve_diagonal, solve_matrix, solve_operator

LARGEST_MATRIX = 1000
"""The most unknowns whose Jacobian at the solution is a matrix; for more, it is an operator."""
ELEMENTWISE = "elementwise"


@dataclass(frozen=True)
class ImplicitRule:
    """The derivative of a root: inputs are its value, what the residual has captured, and the fields of the run.

    `linear` is the way to solve linear systems: by a matrix, by an iteration of SciPy's, or, where each element is an
    equation of its own, elementwise.
    """

    title: str
    residual: ClosedFunction
    linear: str | Iteration
    pure = True

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The cotangents of captured values: those of the residual, given minus the adjoint system's solution."""
        inside, residual = self._at(node)
        moved = self._solved(node, residual, inside, g, adjoint=True)
        return [*vjp([residual], [-moved], inside[1:]), None]

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """The tangent of the root: minus the solution of the system, given the tangent of the residual."""
        inside, residual = self._at(node)
        moved = jvp([residual], inside[1:], tangents[1:-1])[0]
        if moved is None:
            return zeros(node.shape, node.dtype)
        return self._solved(node, residual, inside, -moved, adjoint=False)

    def _at(self, node: Node) -> tuple[list[Node], Node]:
        """Nodes for the root and what was captured, which do not depend on each other, and the residual over them."""
        inside = [make("alias", (one,)) for one in (node, *node.inputs[1:-1])]
        return inside, self.residual.at(inside)[0]

    def _solved(self, node: Node, residual: Node, inside: Sequence[Node], right: Node, adjoint: bool) -> Node:
        fields = node.inputs[-1]
        if self.linear == ELEMENTWISE:
            ones = zeros(node.shape, node.dtype) + 1.0
            diagonal = jvp([residual], [inside[0]], [ones])[0]
            diagonal = zeros(node.shape, node.dtype) if diagonal is None else diagonal
            return solve_diagonal(self.title, diagonal, right, fields)
        flat = reshape(right, (right.size,))
        if isinstance(self.linear, Iteration):
            operator = self.residual.cotangent() if adjoint else self.residual.tangent()
            found = solve_operator(self.title, operator, [node, *node.inputs[1:-1]], flat, fields, self.linear)
        else:
            matrix = jacobian_at(residual, inside[0])
            matrix = transpose(matrix, (1, 0)) if adjoint else matrix
            found = solve_matrix(self.title, matrix, flat, fields)
        return reshape(found, node.shape)


def linear_way(given: str | None, size: int) -> str | Iteration:
    """The way to solve linear systems for derivatives: as said, or by size."""
    if given is None:
        given = "dense" if size <= LARGEST_MATRIX else "gmres"
    if given not in METHODS:
        message = f"linear_solver must be one of {', '.join(map(repr, METHODS))}, but got {given!r}."
        raise ArgumentError(message)
    return given if given == "dense" else Iteration(given)


# ----- What a caller gets -----


class Solution(dict[str, Any]):
    """A solver's result, with SciPy's names as attributes and as keys.

    In a recorded function its arrays and numbers are Tensors. `message` is SciPy's text for the status.
    """

    def __init__(self, title: str, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._title = title

    def __getattr__(self, name: str) -> Any:
        try:
            return self["message" if name == "flag" else name]
        except KeyError:
            title = self.__dict__.get("_title", "a solver")
            message = f"The result of {title}() has no {name!r}; it has {', '.join(self)}."
            raise AttributeError(message) from None

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        return value if name != "message" or isinstance(value, str) else text_of(int(value))

    def __repr__(self) -> str:
        shown = {name: value if isinstance(value, Tensor) else self[name] for name, value in self.items()}
        return f"{self.__dict__['_title']}: {shown}"

    def __dir__(self) -> list[str]:
        return [*self, *dict.__dir__(self)]


def _parts(one: Any) -> tuple[list[Any], Any, tuple[str, ...]]:
    return list(one.values()), (one.__dict__["_title"], tuple(one)), tuple(one)


def _together(kept: Any, values: Any) -> Solution:
    return Solution(kept[0], dict(zip(kept[1], values, strict=True)))


_trees: Any = optree
_trees.register_pytree_node(Solution, _parts, _together, namespace=_trees.registry.__GLOBAL_NAMESPACE)


def float_node(value: Any, what: str) -> Node:
    """A start or another number of a solver's as a node of float64.

    Raises
    ------
    DtypeError
        If it is no array of real numbers.
    """
    if kind_of(value) == "other" and not isinstance(value, list | tuple):
        message = f"{what} must be an array or a number, but got {a_full_name(value)}."
        raise DtypeError(message)
    node = as_node(value)
    if node.dtype.kind not in "fiu":
        message = f"{what} must hold real numbers, but has dtype {node.dtype}."
        raise DtypeError(message)
    return cast(node, FLOAT)


def flat_start(value: Any, title: str) -> Node:
    """The start of a solver that works on vectors, as SciPy's do: along one axis.

    Raises
    ------
    ShapeError
        If it is empty.
    """
    node = float_node(value, f"The start of {title}()")
    if not node.size:
        message = f"The start of {title}() has no elements: there is nothing to solve for."
        raise ShapeError(message)
    return reshape(node, (node.size,))


def is_plain(given: Sequence[Any], nodes: Sequence[Node]) -> bool:
    """Whether nothing is recorded, so that a solver runs at once on plain arrays."""
    return (
        current_trace() is None and not any(isinstance(v, Tensor) for v in given) and not any(n.traced for n in nodes)
    )


_BOOLS = frozenset(["success", "converged"])


def solution(
    solve: HostSolve,
    inputs: Sequence[Node],
    rule: Callable[[], Any],
    captured: Sequence[Node],
    plain: bool,
) -> tuple[Any, dict[str, Any], Node | None]:
    """The solution, the fields by name, and the solution's node; on plain arrays at once, without one.

    `inputs` are those of the run, `captured` those of the derivative's rule, which is asked for only if needed.
    """
    if plain:
        row = solve.row(*[np.asarray(computed(node)) for node in inputs])
        fields = {
            name: bool(v) if name in _BOOLS else text_of(int(v)) if name == "message" else int(v)
            for name, v in zip(solve.fields, row[solve.size :], strict=True)
        }
        return row[: solve.size].reshape(solve.shape)[()], fields, None
    value, row = solve.nodes(inputs)
    node = make("custom", (value, *captured, row), (rule(), 0))
    return Tensor._of(node), recorded_fields(row, solve.fields), node


def recorded_fields(row: Node, names: Sequence[str]) -> dict[str, Tensor]:
    """The fields of a run that is recorded, by name, from the row of them."""
    found: dict[str, Tensor] = {}
    for k, name in enumerate(names):
        one = make("stop_gradient", (reshape(slice_axes(row, [(k, 1, 1)]), ()),))
        found[name] = Tensor._of(cast(one, BOOL if name in _BOOLS else INT64))
    return found


def as_scipy(title: str, place: str, call: Callable[[], Any]) -> Any:
    """The result of a call of SciPy's; its errors name the solver and the line that it was called from."""
    try:
        return call()
    except NbgradError:
        raise
    except RuntimeError as error:
        message = f"{said(title, place)}: {str(error).rstrip('.')}."
        raise ConvergenceError(message) from error
    except (ValueError, TypeError) as error:
        message = f"{said(title, place)}: {str(error).rstrip('.')}."
        raise ArgumentError(message) from error


class _Itself:
    """An object that is equal to itself alone, and is kept."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def option_key(value: Any) -> Hashable:
    """A key of options: equal ones do the same. Functions that close over nothing do if they have one code."""
    if isinstance(value, Mapping):
        return tuple(sorted((str(name), option_key(one)) for name, one in value.items()))
    if isinstance(value, list | tuple):
        return tuple([option_key(one) for one in value])
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, FunctionType):
        if value.__closure__ or value.__dict__:
            return _Itself(value)
        defaults = (value.__defaults__ or (), value.__kwdefaults__ or {})
        return value.__code__, _Itself(value.__globals__), option_key(defaults)
    try:
        hash(value)
    except TypeError:
        return _Itself(value)
    return type(value).__name__, value


_COUNTS = ("nfev", "njev", "nit")
FIELDS = ("success", "status", "message", *_COUNTS)
"""The facts that SciPy's results of several unknowns have."""


def fields_of(found: Any) -> dict[str, Any]:
    """The success, the status and the counts of one of SciPy's results."""
    status = int(found.get("status", 0))
    good = bool(found.success) and bool(np.isfinite(found.x).all())
    counts = {name: found.get(name, 0) for name in _COUNTS}
    return {"success": good, "status": status, "message": found.get("message", ""), **counts}


FINITE = ("success", "status", "message")
"""The facts about a run of a solver that gives nothing but its solution."""


def finite_fields(found: np.ndarray) -> dict[str, Any]:
    """The fields of a run whose success is a finite solution."""
    good = bool(np.isfinite(found).all())
    return {"success": good, "status": int(not good), "message": "" if good else "the solution is not finite"}


def value_at(function: ClosedFunction, x: Any, node: Node | None, captured: Sequence[Node]) -> Any:
    """The value of the function at the solution, as the solution is given."""
    if node is not None:
        return Tensor._of(function.at([node, *captured])[0])
    return function.call(as_float(x), *[np.asarray(computed(one)) for one in captured])[0][()]


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[..., Any],
    tangent_solve: Any = None,
    linear_solver: str | None = None,
) -> Any:
    """A root that your own solver finds, differentiated by the implicit function theorem.

    Parameters
    ----------
    f : callable
        `f(x)` gives an array of the shape of `x`, which is zero at the solution. It may close over recorded values: the
        root is differentiated by all of them.
    initial_guess : array_like
        The start, of any shape.
    solve : callable
        `solve(g, x)` gets `f` as a compiled function from plain arrays to plain arrays, and the start as a float64
        ndarray; it returns the root. It may do anything: it is never recorded.
    tangent_solve : callable, optional
        Accepted for code written for JAX, and not called.
    linear_solver : {"dense", "gmres", "bicgstab", "cg"}, optional
        The way to solve the linear system of a derivative: with the Jacobian as a matrix, which is the default for up
        to 1000 unknowns, or by products with it.

    Returns
    -------
    array
        The root, float64, of the shape of the start.

    Raises
    ------
    ShapeError, DtypeError
        If `f` or `solve` returns another shape, or no real numbers.
    TracedValueError
        If `f` branches by the values of `x`.
    MatrixError
        If a derivative is asked for where the Jacobian of `f` by `x` is singular.
    ConvergenceError
        If a derivative is asked for and the root is not finite.

    Notes
    -----
    Where f(x, p) = 0, dx = -(df/dx)^-1 (df/dp) dp: S. G. Krantz and H. R. Parks, "The Implicit Function Theorem", 2003.
    The derivative is that of an exact root: it is as precise as the root that `solve` returns.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def newton(g, x):
    ...     for _ in range(30):
    ...         slope = (g(x + 1e-6) - g(x - 1e-6)) / 2e-6
    ...         x = x - g(x) / slope
    ...     return x
    >>> def cube_root(a):
    ...     return nb.custom_root(lambda x: x**3 - a, 1.0, newton)
    >>> bool(abs(nb.grad(cube_root)(8.0) - 1 / 12) < 1e-12)
    True
    """
    check_function(f, "custom_root")
    check_function(solve, "custom_root")
    del tangent_solve
    start = float_node(initial_guess, "The start of custom_root()")
    if not start.size:
        message = "The start of custom_root() has no elements: there is nothing to solve for."
        raise ShapeError(message)
    shape = start.shape
    title = "custom_root"
    function, captured = recorded(f, [start], title, one_output(name_of(f), title, shape))

    def run(first: np.ndarray, *values: np.ndarray) -> tuple[Any, dict[str, Any]]:
        found = np.asarray(solve(lambda x: function.call(as_float(x), *values)[0][()], first[()]), FLOAT)
        if found.shape != shape:
            message = f"{name_of(solve)}() returned shape {found.shape} to custom_root(), but must return {shape}."
            raise ShapeError(message)
        return found, finite_fields(found)

    inputs = [start, *captured]
    host = HostSolve(
        title,
        ("custom", option_key(solve), function),
        [node.ndim for node in inputs],
        shape,
        FINITE,
        run,
    )
    way = linear_way(linear_solver, start.size)
    plain = is_plain([initial_guess], inputs)
    return solution(host, inputs, lambda: ImplicitRule(title, function, way), captured, plain)[0]
