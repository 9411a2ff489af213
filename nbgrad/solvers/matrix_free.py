"""Linear systems whose matrix is a function: `linear_solve`.

In: a linear function of a vector, which may close over recorded values, and a right-hand side. Out: the solution by an
iteration, differentiated by the right-hand side and by all that the function closes over. Called by users.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..graph.builders import reshape
from ..graph.ir import constant, topological
from ..graph.simplify import simplify
from ..record.tensor import Tensor
from ..runtime.evaluate import computed
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .closed_functions import ClosedFunction, bound, one_output, recorded
from .complex_systems import by_parts, is_complex, joined, parted
from .implicit import float_node, is_plain
from .linear_solves import Iteration, solve_operator


def linear_solve(
    matvec: Callable[..., Any],
    b: Any,
    args: Any = (),
    method: str = "gmres",
    x0: Any = None,
    rtol: float = 1e-10,
    atol: float = 0.0,
    maxiter: int | None = None,
    preconditioner: Callable[[Any], Any] | None = None,
) -> Any:
    """The solution of A x = b, where a function multiplies by A, with derivatives.

    Parameters
    ----------
    matvec : callable
        `matvec(v, *args)` gives A v, an array of the shape of `v`; it is linear in `v`. It may close over recorded
        values.
    b : array_like
        The right-hand side, of any shape; complex for a complex matrix.
    args : tuple
        Further arguments of `matvec`.
    method : {"gmres", "bicgstab", "cg", "minres", "cgs", "tfqmr", "lgmres", "gcrotmk", "bicg", "qmr", "dense"}
        SciPy's iteration: "cg" is for Hermitian positive definite matrices, "minres" for symmetric ones. "dense" makes
        the matrix and factors it.
    x0 : array_like, optional
        The start, without a derivative.
    rtol, atol, maxiter
        As for SciPy: the norm of the residual is at most `max(rtol * norm(b), atol)`.
    preconditioner : callable, optional
        `preconditioner(v)` gives about A^-1 v: fewer turns are needed. Linear, and for "cg" symmetric and positive
        definite. It may close over what `matvec` does. Derivatives use its transposed.

    Returns
    -------
    array of the shape of `b`

    Raises
    ------
    ConvergenceError
        If the iteration does not converge.
    ArgumentError
        If `matvec` or `preconditioner` is not linear.
    MatrixError
        If the matrix is singular, for "dense".
    ShapeError, DtypeError, TracedValueError
        As `root`.

    Notes
    -----
    For x = A(p)^-1 b: dx = A^-1 (db - dA x), and the cotangent of b is A^-T g, each by the same method and tolerance.
    A complex system is solved as the real one of its parts.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def bent(k, load):
    ...     def stiffness(v):
    ...         pull = k * np.diff(v, prepend=0.0, append=0.0)
    ...         return pull[:-1] - pull[1:]
    ...     return nb.solvers.linear_solve(stiffness, load, method="cg")
    >>> bent(2.0, np.ones(3)).round(12)
    array([0.75, 1.  , 0.75])
    >>> nb.grad(bent)(2.0, np.ones(3)).round(12)
    np.float64(-1.25)

    The diagonal, as a preconditioner:

    >>> weights = np.array([1.0, 100.0, 1e4])
    >>> nb.solvers.linear_solve(lambda v: weights * v + v.sum(), weights, method="cg",
    ...                         preconditioner=lambda v: v / (weights + 1.0)).round(3)
    array([-0.492,  0.985,  1.   ])
    """
    title = "linear_solve"
    check_function(matvec, title)
    if is_complex(b, x0):
        inside, around = by_parts(matvec, title), by_parts(preconditioner, title)
        found = linear_solve(inside, parted(b), args, method, parted(x0), rtol, atol, maxiter, around)
        return joined(found)
    right = float_node(b, "b of linear_solve()")
    if not right.size:
        message = "b of linear_solve() has no elements: there is nothing to solve for."
        raise ShapeError(message)
    name = name_of(matvec)
    iteration = Iteration(method, rtol, atol, maxiter)
    operator, captured = recorded(bound(matvec, args), [right], title, one_output(name, title, right.shape))
    check_linear(operator, name)
    inverse = None
    if preconditioner is not None and method != "dense":
        check_function(preconditioner, title)
        about = name_of(preconditioner)
        other, more = recorded(preconditioner, [right], title, one_output(about, title, right.shape))
        check_linear(other, about)
        operator, inverse = beside(operator, other)
        captured = [*captured, *more]
    flat = reshape(right, (right.size,))
    start = None if x0 is None else reshape(float_node(x0, "x0 of linear_solve()"), (right.size,))
    good = constant(np.array([1.0, 0.0, 0.0]))
    found = solve_operator(title, operator, captured, flat, good, iteration, start, inverse)
    result = reshape(found, right.shape)
    return computed(result)[()] if is_plain([b, x0], [result]) else Tensor._of(result)


def beside(one: ClosedFunction, other: ClosedFunction) -> tuple[ClosedFunction, ClosedFunction]:
    """Two functions over the captured values of both."""

    def how() -> tuple[ClosedFunction, ClosedFunction]:
        captured = (*one.captured, *other.captured)
        first, second = [ClosedFunction(f.variables, captured, f.outputs, f.checks) for f in (one, other)]
        return first, second

    return one.made(("beside", other), how)


def check_linear(
    operator: ClosedFunction,
    name: str,
    tangent: Callable[[ClosedFunction], ClosedFunction] = ClosedFunction.tangent,
    advice: str = " Use root() instead.",
) -> None:
    """Raise if a function's derivative depends on where it is taken. (Its value at zero is looked at in each run.)"""

    def constant_slope() -> bool:
        return operator.variables[0] not in topological(simplify(list(tangent(operator).outputs)))

    if not operator.made("constant slope", constant_slope):
        message = f"{name}() is not linear in its vector, but linear_solve() solves linear systems.{advice}"
        raise ArgumentError(message)
