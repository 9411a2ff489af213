"""Minima by SciPy's other algorithms: of a function of one number, `minimize_scalar`, and global ones.

In: a function that gives a number, bounds, SciPy's own options. Out: the minimiser with SciPy's fields, differentiated
by all that the function closes over, by `args` and by the bounds. Called by users, and, for the functions that
`scipy.optimize` names after their algorithms, by scipy_minimisers.py of nbgrad.source.

However a minimum was found, the gradient is zero there, or the element is on its bound: the derivative is that of
`minimize`. Global algorithms find one minimum of several; where another one becomes the lowest, the minimiser jumps,
which no derivative sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..graph.builders import reshape
from ..graph.ir import Node, constant
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .closed_functions import as_float, bound, one_output, recorded
from .host_solves import HostSolve
from .implicit import (
    ELEMENTWISE,
    FIELDS,
    ImplicitRule,
    Solution,
    as_scipy,
    fields_of,
    flat_start,
    float_node,
    is_plain,
    linear_way,
    option_key,
    solution,
    value_at,
)
from .minimisers import bound_nodes, pushed_to_bounds

NEAR = 1e-4
"""The distance from a bound, in units of the distance of both, at which an element may lie short of it."""


def minimiser(
    title: str,
    fun: Callable[..., Any],
    args: Any,
    shape: tuple[int, ...],
    given: Sequence[Node],
    key: Any,
    call: Callable[[Callable[[Any], float], list[np.ndarray]], Any],
    bounded: bool,
) -> Solution:
    """The minimiser that a function of SciPy's finds.

    Parameters
    ----------
    title : str
        The solver, for errors.
    fun, args
        The function, which may close over recorded values.
    shape : tuple of int
        That of the unknowns: one number or a vector.
    given : sequence of Node
        What `call` needs: if the minimum is `bounded`, first the lower and the upper bounds, of that shape.
    key : hashable
        The options that `call` closes over.
    call : callable
        `call(value, arrays)` gives SciPy's result, whose `x` is the minimiser, from the arrays that are given.
    bounded : bool

    Returns
    -------
    Solution
    """
    check_function(fun, title)
    start = constant(np.zeros(shape))
    function, captured = recorded(bound(fun, args), [start], title, one_output(name_of(fun), title, ()))
    gradient = function.gradient()

    def run(*arrays: np.ndarray) -> tuple[Any, dict[str, Any]]:
        first, values = list(arrays[: len(given)]), arrays[len(given) :]

        def value(x: Any) -> float:
            return float(function.call(as_float(x).reshape(shape), *values)[0])

        found = as_scipy(title, host.place, lambda: call(value, first))
        x = as_float(found.x).reshape(shape)
        if bounded:
            slope = np.asarray(gradient.call(x, *values)[0])
            moved = _on_bounds(x, slope, *first[:2])
            x = moved if value(moved) <= value(x) else x
        fields = fields_of(found)
        # Where a function falls without end, SciPy's search ends at numbers that overflow.
        fields["success"] = bool(fields["success"] and np.isfinite(value(x)))
        return x, fields

    inputs = [*given, *captured]
    host = HostSolve(title, (title, function, key, bounded), [node.ndim for node in inputs], shape, FIELDS, run)
    linear = linear_way(None, start.size) if shape else ELEMENTWISE

    def rule() -> ImplicitRule:
        return ImplicitRule(title, gradient.within_bounds() if bounded else gradient, linear)

    x, fields, node = solution(host, inputs, rule, [*given[: 2 * bounded], *captured], is_plain([], inputs))
    return Solution(title, {"x": x, "fun": value_at(function, x, node, captured), **fields})


def _on_bounds(x: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The point, with its elements moved to bounds that they were stopped short of."""
    short = NEAR * np.where(np.isfinite(high - low), high - low, 1.0)
    return pushed_to_bounds(x, slope, (low, high), (x - low <= short, high - x <= short))


def minimize_scalar(
    fun: Callable[..., Any],
    bracket: Sequence[float] | None = None,
    bounds: Sequence[Any] | None = None,
    args: Any = (),
    method: str | None = None,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Solution:
    """A minimum of a function of one number, by `scipy.optimize.minimize_scalar`, with derivatives.

    Parameters
    ----------
    fun : callable
        `fun(x, *args)` gives a number. It may close over recorded values.
    bracket : sequence of 2 or 3 floats, optional
        Where to look, for "brent" and "golden"; without a derivative.
    bounds : pair of float, optional
        The ends of the interval, for "bounded"; they may be recorded values.
    args : tuple
        Further arguments of `fun`.
    method : {"brent", "golden", "bounded"}, optional
        By default "bounded" with bounds, and else "brent".
    tol : float, optional
        As for SciPy. The minimiser is as precise as about its square root.
    options : dict, optional
        SciPy's options of the method.

    Returns
    -------
    Solution
        With the fields `x`, `fun`, `success`, `status`, `message`, `nfev` and `nit`.

    Raises
    ------
    ArgumentError
        For arguments that SciPy refuses.
    ShapeError, DtypeError
        If `fun` does not give one real number.
    MatrixError, ConvergenceError
        If a derivative is asked for where the second derivative is zero, or SciPy has not converged.

    Notes
    -----
    f'(x, p) = 0 at the minimiser, so that dx/dp = -f'_p / f''; a minimiser on a bound moves with the bound.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def lowest(a):
    ...     return nb.solvers.minimize_scalar(lambda x: np.cosh(x - a) + 0.1 * x).x
    >>> nb.grad(lowest)(2.0).round(6)
    np.float64(1.0)
    """
    title = "minimize_scalar"
    if bounds is not None and len(bounds) != 2:
        message = f"bounds of {title}() must be a pair of numbers, but got {len(bounds)} of them."
        raise ArgumentError(message)
    ends = [] if bounds is None else [_scalar_end(end, title) for end in bounds]
    more = {"method": method, "tol": tol, "options": dict(options or {}), "bracket": bracket}

    def call(value: Callable[[Any], float], limits: list[np.ndarray]) -> Any:
        from scipy.optimize import minimize_scalar as of_scipy

        limited = {"bounds": [float(one) for one in limits]} if limits else {}
        given = {name: one for name, one in more.items() if one is not None and one != {}}
        return of_scipy(value, **given, **limited)

    return minimiser(title, fun, args, (), ends, option_key(more), call, bool(ends))


def _scalar_end(end: Any, title: str) -> Node:
    node = float_node(end, f"A bound of {title}()")
    if node.size != 1:
        message = f"A bound of {title}() must be one number, but has shape {node.shape}."
        raise ArgumentError(message)
    return reshape(node, ())


def global_minimum(name: str, fun: Callable[..., Any], bounds: Any, args: Any, options: Mapping[str, Any]) -> Solution:
    """The minimum that a global algorithm of SciPy's finds within bounds.

    Parameters
    ----------
    name : {"differential_evolution", "dual_annealing", "shgo"}
    fun, args
        The function of a vector, which may close over recorded values.
    bounds : sequence of pairs, or scipy.optimize.Bounds
        They may be recorded values.
    options
        SciPy's own.

    Returns
    -------
    Solution

    Raises
    ------
    ArgumentError, ShapeError, DtypeError, MatrixError, ConvergenceError
        As `minimize`.
    """
    count = len(bounds.lb) if hasattr(bounds, "lb") else len(bounds)
    ends = bound_nodes(bounds, count, name)

    def call(value: Callable[[Any], float], limits: list[np.ndarray]) -> Any:
        import scipy.optimize

        return getattr(scipy.optimize, name)(value, list(zip(*map(np.ndarray.tolist, limits), strict=True)), **options)

    return minimiser(name, fun, args, (count,), ends, option_key(dict(options)), call, True)


def basin_hopping(fun: Callable[..., Any], x0: Any, args: Any, options: Mapping[str, Any]) -> Solution:
    """The lowest minimum that `scipy.optimize.basinhopping` finds from a start.

    Raises
    ------
    ArgumentError, ShapeError, DtypeError, MatrixError, ConvergenceError
        As `minimize`.
    """
    first = flat_start(x0, "basinhopping")

    def call(value: Callable[[Any], float], given: list[np.ndarray]) -> Any:
        from scipy.optimize import basinhopping

        found = basinhopping(value, given[0], **options)
        found.status = 0 if found.success else 1
        return found

    return minimiser("basinhopping", fun, args, (first.size,), [first], option_key(dict(options)), call, False)
