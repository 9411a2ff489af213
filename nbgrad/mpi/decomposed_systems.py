"""Linear systems whose unknowns lie on several ranks: `linear_solve`, by products with an operator that sends messages.

In: a linear function of this rank's part of a vector, and this rank's part of a right-hand side. Out: this rank's part
of the solution, differentiated by the right-hand side and by all that the function closes over. Called by users. The
iterations and their derivatives are in decomposed_solves.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError
from ..graph.builders import reshape
from ..graph.ir import Node, topological, zeros
from ..graph.trace import current_trace
from ..process.modes import KEEPS
from ..record.call_order import FLOAT64, after, first_token, last_token
from ..record.tensor import Tensor
from ..solvers.closed_functions import ClosedFunction, bound, one_output, recorded
from ..solvers.complex_systems import by_parts, is_complex, joined, parted
from ..solvers.implicit import float_node
from ..solvers.matrix_free import beside, check_linear
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .arrays_given import chosen, line, returned
from .communicators import Group, group_of, groups
from .decomposed_solves import METHODS, DecomposedSystem, solution_of, solved
from .messages import Message

TITLE = "linear_solve"


def linear_solve(
    matvec: Callable[..., Any],
    b: Any,
    args: Any = (),
    method: str = "cg",
    x0: Any = None,
    rtol: float = 1e-10,
    atol: float = 0.0,
    maxiter: int | None = None,
    comm: Any = None,
    preconditioner: Callable[[Any], Any] | None = None,
) -> Any:
    """The solution of A x = b, whose unknowns lie on several ranks, where a function multiplies by A.

    Parameters
    ----------
    matvec : callable
        `matvec(v, *args)` gets this rank's part of a vector and gives this rank's part of A v, of the same shape. It is
        linear in `v`, sends messages as it needs, and may close over recorded values.
    b : array_like
        This rank's part of the right-hand side, of any shape; there may be ranks without any. Complex, on all ranks,
        for a complex matrix.
    args : tuple
        Further arguments of `matvec`.
    method : {"cg", "bicgstab", "gmres"}
        The iteration: "cg" is for Hermitian positive definite matrices. A turn of "gmres", which restarts after 50
        directions, is slower than one of the others, whose turns are compiled.
    x0 : array_like, optional
        This rank's part of the start, without a derivative; given on all ranks or on none.
    rtol, atol, maxiter
        The norm of the residual, over all ranks, is at most `max(rtol * norm(b), atol)` after at most `maxiter` turns
        (cycles of "gmres"), by default ten for each unknown.
    comm : mpi4py.MPI.Comm, optional
        The ranks that have parts of this system. By default those that `matvec` exchanges messages with, or all
        processes if it sends none.
    preconditioner : callable, optional
        `preconditioner(v)` gives about this rank's part of A^-1 v, without messages: fewer turns are needed. On all
        ranks or on none. Linear, and for "cg" symmetric and positive definite; derivatives use its transposed.

    Returns
    -------
    array of float64 or complex128, of the shape of `b`

    Raises
    ------
    ConvergenceError
        If the iteration does not converge; on all ranks.
    ArgumentError
        If `matvec` or `preconditioner` is not linear; if `preconditioner` sends messages, or `matvec` does over several
        communicators and `comm` does not say which ranks have parts.
    ShapeError, DtypeError, TracedValueError
        As `nbgrad.solvers.linear_solve`, which is for systems on one rank.

    Notes
    -----
    For x = A(p)^-1 b: dx = A^-1 (db - dA x), and the cotangent of b is A^-T g, each by the same method over the same
    ranks. "cg" is that of Hestenes and Stiefel (1952), "bicgstab" that of van der Vorst (1992), "gmres"
    that of Saad and Schultz (1986); sums over ranks are two, three and four a turn.

    Examples
    --------
    A row of springs, of which each rank has a part:

    >>> import numpy as np, nbgrad as nb
    >>> from nbgrad import mpi
    >>> grid = mpi.Grid((3,), halo=1)
    >>> def bent(k, load):
    ...     def stiffness(v):
    ...         near = grid.exchange(v)
    ...         return k * (2 * v - near[2:] - near[:-2])
    ...     return mpi.linear_solve(stiffness, load)
    >>> load = np.ones(3)[grid.slices]
    >>> bent(2.0, load).round(12)
    array([0.75, 1.  , 0.75])
    >>> nb.grad(lambda k: np.sum(bent(mpi.replicated(k), load)))(2.0).round(12)
    np.float64(-1.25)
    """
    check_function(matvec, TITLE)
    chosen(method, METHODS, "method")
    if is_complex(b, x0):
        inside, around = by_parts(matvec, TITLE), by_parts(preconditioner, TITLE)
        found = linear_solve(inside, parted(b), args, method, parted(x0), rtol, atol, maxiter, comm, around)
        return joined(found)
    right = float_node(b, "b of linear_solve()")
    start = None if x0 is None else float_node(x0, "x0 of linear_solve()")
    if start is not None and start.shape != right.shape:
        message = f"x0 of linear_solve() has shape {start.shape}, but b has {right.shape}."
        raise ArgumentError(message)
    operator, captured = _operator(matvec, args, right)
    check_linear(operator, name_of(matvec), DecomposedSystem.moved, advice="")
    number = _group(operator, comm).number
    inverse = None
    if preconditioner is not None:
        operator, inverse, more = _preconditioned(operator, preconditioner, right)
        captured = [*captured, *more]
    system = DecomposedSystem(operator, right.shape, method, (rtol, atol), maxiter, number, line(), inverse)
    trace = current_trace()
    if trace is None:
        if any(node.traced & KEEPS for node in (right, *captured)):
            message = (
                "linear_solve of Tensors that remember how they were made has no derivative: call it in a function "
                "that nb.grad or another transform differentiates, or give x.detach()."
            )
            raise ArgumentError(message)
        row = solved(system, first_token(), right, captured, start)
    else:
        token = last_token(trace)
        row = solved(system, token, right, captured, start)
        trace.tokens.append(after(row, token))
    return returned(reshape(solution_of(row, right.size), right.shape), b, x0, *map(Tensor._of, _recorded(captured)))


def _recorded(captured: Sequence[Node]) -> list[Node]:
    return [node for node in captured if node.traced]


def _operator(matvec: Callable[..., Any], args: Any, right: Node) -> tuple[ClosedFunction, list[Node]]:
    """A function from a vector and a token to the product and the token after its messages; what it closes over."""
    call, check = bound(matvec, args), one_output(name_of(matvec), TITLE, right.shape)

    def multiplied(v: Tensor, token: Tensor) -> Any:
        _tokens().append(token._node)
        return call(v)

    multiplied.__name__ = name_of(matvec)
    return recorded(
        multiplied, [right, zeros((), FLOAT64)], TITLE, lambda nodes: [*check(nodes), after_all(_tokens()[-1])]
    )


def _preconditioned(
    operator: ClosedFunction, preconditioner: Callable[[Any], Any], right: Node
) -> tuple[ClosedFunction, ClosedFunction, list[Node]]:
    """The operator, and a function of the same arguments for about its inverse; what the latter closes over besides."""
    check_function(preconditioner, TITLE)
    name = name_of(preconditioner)
    call, check = bound(preconditioner, ()), one_output(name, TITLE, right.shape)

    def about(v: Tensor, token: Tensor) -> Any:
        return call(v)

    about.__name__ = name
    found, captured = recorded(about, [right, zeros((), FLOAT64)], TITLE, check)
    if _messages_in(found):
        message = f"{name}(), the preconditioner of linear_solve(), must not send messages: it has one rank's part."
        raise ArgumentError(message)
    check_linear(found, name)
    return (*beside(operator, found), captured)


def _messages_in(function: ClosedFunction) -> list[Message]:
    """The messages that a function sends."""
    rules = [node.params[0] for node in topological(function.outputs) if node.name == "custom"]
    return [rule.message for rule in rules if isinstance(getattr(rule, "message", None), Message)]


def _tokens() -> list[Node]:
    trace = current_trace()
    assert trace is not None
    return trace.tokens


def after_all(token: Node) -> Node:
    """A node of its own for a token, which may be an argument of the function."""
    return token + 0.0 if not token.inputs else token


def _group(operator: ClosedFunction, comm: Any) -> Group:
    """The ranks with parts of a system: as said, or those that the operator talks to."""
    if comm is not None:
        return group_of(comm)
    used = {message.group for message in _messages_in(operator)}
    if len(used) > 1:
        text = (
            "The function of linear_solve() sends messages over several communicators. Say by comm= which ranks have "
            "parts of the vector."
        )
        raise ArgumentError(text)
    return groups[used.pop()] if used else group_of(None)
