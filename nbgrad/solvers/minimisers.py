"""Minima by SciPy's algorithms: `minimize` and `least_squares`.

In: a function of a vector that gives a number, or residuals, with SciPy's arguments. Out: the minimiser with SciPy's
fields, differentiated by all that the function closes over, by `args` and by the bounds. SciPy gets gradients,
Jacobians and Hessians as compiled programs. Called by users.

At a minimiser the gradient is zero, where no bound is active; there, the element is its bound. constraints.py has the
equations of constrained minimisers. The implicit function theorem holds for these equations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..graph.ir import Node, broadcast
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .closed_functions import LOSSES, as_float, bound, first_of, one_output, recorded
from .constraints import constraints_of
from .host_solves import HostSolve
from .implicit import (
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

GRADIENT = tuple("cg bfgs l-bfgs-b tnc slsqp newton-cg dogleg trust-ncg trust-krylov trust-exact trust-constr".split())
"""Methods that get the gradient."""
HESSIAN = ("dogleg", "trust-exact")
"""Methods that get the Hessian as a matrix."""
PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")
"""Methods that get products with the Hessian."""
BOUNDED = ("l-bfgs-b", "tnc", "slsqp", "nelder-mead", "powell")
"""Methods whose minimiser lies exactly on its active bounds."""
NEAR = 1e-7
"""The distance from a bound, in units of its size, at which an element is on it for SLSQP if the function pushes it
there: linear systems and short steps leave it next to the bound."""


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str | None = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: Mapping[str, Any] | None = None,
    linear_solver: str | None = None,
) -> Solution:
    """A minimiser, by `scipy.optimize.minimize`, with derivatives.

    Parameters
    ----------
    fun : callable
        `fun(x, *args)` gives a number, for an array of one axis. It may close over recorded values.
    x0 : array_like
        The start; one number is an array of one.
    args : tuple
        Further arguments of `fun`.
    method, tol, callback, options
        As for SciPy. Methods that take a gradient, a Hessian or products with it get nbgrad's.
    jac, hess, hessp : optional
        Accepted for SciPy's sake: with `jac=True`, `fun` gives a pair of which the second is not used.
    bounds : sequence of pairs, or scipy.optimize.Bounds, optional
        Lower and upper ends for each element, None for none. They may be recorded values.
    constraints : dict, NonlinearConstraint, LinearConstraint or sequence of them, optional
        As for SciPy, for the method SLSQP, which is the default then. Their functions and ends may be made of recorded
        values; the Jacobians are nbgrad's.
    linear_solver : {"dense", "gmres", "bicgstab", "cg"}, optional
        As for `custom_root`, for the system with the Hessian.

    Returns
    -------
    Solution
        With SciPy's fields `x`, `fun`, `jac`, `success`, `status`, `message`, `nfev`, `njev` and `nit`; with
        constraints, `multipliers` too: of the equations first, then of the inequalities, in the form c(x) >= 0. They
        have derivatives like `x`. Without convergence the values are SciPy's, and a derivative by them raises.

    Raises
    ------
    ArgumentError
        For arguments that SciPy refuses, or methods without derivatives.
    ShapeError, DtypeError
        If `fun` does not give one real number, or bounds or constraints do not fit.
    TracedValueError
        If `fun` branches by the values of `x`.
    MatrixError, ConvergenceError
        If a derivative is asked for where the Hessian is singular, or SciPy has not converged.

    Notes
    -----
    The derivative of the minimiser solves the system of the Hessian, where no bound is active; an element on a bound
    moves with the bound. With constraints it solves the equations of Karush, Kuhn and Tucker, of the rows whose
    multipliers are not zero (constraints.py). As precise as the minimiser: methods of first order stop where the
    gradient is about `tol`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def lowest(a):
    ...     return nb.solvers.minimize(lambda x: np.sum((x - a) ** 2) + x[0] ** 2, np.zeros(2)).x
    >>> nb.jacrev(lowest)(np.array([1.0, 2.0])).round(6)
    array([[0.5, 0. ],
           [0. , 1. ]])
    """
    title = "minimize"
    check_function(fun, title)
    start = flat_start(x0, title)
    n = start.size
    held = constraints_of(constraints, start, title)
    way = str(method or ("SLSQP" if held else "BFGS" if bounds is None else "L-BFGS-B")).lower()
    if held and way != "slsqp":
        message = f"minimize() with constraints has derivatives for method='SLSQP', but not for {method!r}."
        raise ArgumentError(message)
    ends = bound_nodes(bounds, n, title)
    if ends and way not in BOUNDED:
        message = f"minimize() with bounds has derivatives for {', '.join(BOUNDED)}, but not for {method!r}."
        raise ArgumentError(message)
    fn = bound(fun, args)
    fn = first_of(fn) if jac is True else fn
    function, captured = recorded(fn, [start], title, one_output(name_of(fun), title, ()))
    gradient = function.gradient()
    more = dict(options or {})

    def run(first: np.ndarray, *rest: np.ndarray) -> tuple[Any, dict[str, Any]]:
        from scipy.optimize import minimize

        values, of_rows = rest[len(ends) :][:mine], rest[len(ends) + mine :]
        both = function.with_gradient().call

        def value(x: np.ndarray) -> Any:
            found = both(as_float(x), *values)
            return (float(found[0]), found[1]) if way in GRADIENT else float(found[0])

        given: dict[str, Any] = {"jac": True} if way in GRADIENT else {}
        if way in HESSIAN:
            given["hess"] = lambda x: gradient.jacobian().program()(as_float(x), *values)[0]
        if way in PRODUCTS:
            product = gradient.tangent().program()
            given["hessp"] = lambda x, v: product(as_float(v), as_float(x), *values)[0]
        if ends:
            given["bounds"] = list(zip(*rest[:2], strict=True))
        if held:
            given["constraints"] = held.for_scipy(of_rows)
        found = as_scipy(
            title,
            host.place,
            lambda: minimize(value, first, method=method, tol=tol, callback=callback, options=more, **given),
        )
        fields = fields_of(found)
        x = as_float(found.x)
        next_to_bounds = ends and way == "slsqp"
        if not held and not next_to_bounds:
            return x, fields
        slope = gradient.call(x, *values)[0]
        if next_to_bounds:
            near = [np.isclose(x, end, rtol=NEAR, atol=NEAR) for end in rest[:2]]
            push = held.pushes(x, slope, of_rows, ~(near[0] | near[1])) if held else slope
            x = pushed_to_bounds(x, push, rest[:2], near)
        if not held:
            return x, fields
        free = (x > rest[0]) & (x < rest[1]) if ends else np.full(n, True)
        known = held.multipliers(x, slope, of_rows, free) if fields["success"] else np.full(held.count, np.nan)
        return np.concatenate([x, known]), fields

    mine = len(captured)
    captured = [*captured, *(held.captured if held else ())]
    inputs = [start, *ends, *captured]
    rows = (held.function, held.equalities) if held else ()
    key = ("minimize", function, rows, method, tol, option_key(callback), option_key(more), len(ends))
    size = n + (held.count if held else 0)
    host = HostSolve(title, key, [node.ndim for node in inputs], (size,), FIELDS, run)
    linear = linear_way(linear_solver, size)

    def rule() -> ImplicitRule:
        if held:
            return ImplicitRule(title, held.equations(function, n, bool(ends)), linear)
        return ImplicitRule(title, gradient.within_bounds() if ends else gradient, linear)

    plain = is_plain([x0], inputs)
    found, fields, node = solution(host, inputs, rule, [*ends, *captured], plain)
    x = found[:n] if held else found
    if held and node is not None:
        node = x._node
    more_values = {
        "fun": value_at(function, x, node, captured[:mine]),
        "jac": value_at(gradient, x, node, captured[:mine]),
    }
    if held:
        more_values["multipliers"] = found[n:]
    return Solution(title, {"x": x, **more_values, **fields})


def bound_nodes(bounds: Any, n: int, title: str) -> list[Node]:
    """The lower and the upper ends of n elements; an empty list without bounds.

    Raises
    ------
    ShapeError
        If there are not n of them.
    """
    if bounds is None:
        return []
    if hasattr(bounds, "lb"):
        ends = [bounds.lb, bounds.ub]
    elif len(bounds) == n and all(isinstance(pair, Sequence) and len(pair) == 2 for pair in bounds):
        ends = [[pair[side] for pair in bounds] for side in (0, 1)]
    else:
        message = f"bounds of {title}() must be {n} pairs of a lower and an upper end (or a scipy.optimize.Bounds)."
        raise ShapeError(message)
    return ends_of(ends, n, title)


def ends_of(ends: Sequence[Any], n: int, title: str) -> list[Node]:
    """Lower and upper ends, each one number or n, None for none."""
    nodes: list[Node] = []
    for end, none in zip(ends, (-np.inf, np.inf), strict=True):
        given = [none if one is None else one for one in end] if isinstance(end, Sequence) else end
        node = float_node(given, f"A bound of {title}()")
        if node.size not in (1, n) or node.ndim > 1:
            message = f"The bounds of {title}() must be numbers or have {n} elements, but one has shape {node.shape}."
            raise ShapeError(message)
        nodes.append(broadcast(node, (n,)))
    return nodes


def pushed_to_bounds(x: np.ndarray, push: np.ndarray, ends: Sequence[Any], near: Sequence[Any]) -> np.ndarray:
    """A point whose elements near a lower or an upper end are on it, if the function's gradient, or what constraints
    leave of it, pushes them there."""
    x = np.where(near[1] & (push < 0), ends[1], x)
    return np.where(near[0] & (push > 0), ends[0], x)


# ----- Residuals -----


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = None,
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    x_scale: Any = 1.0,
    loss: str = "linear",
    f_scale: float = 1.0,
    max_nfev: int | None = None,
    args: Any = (),
    linear_solver: str | None = None,
) -> Solution:
    """The minimiser of a sum of squares, by `scipy.optimize.least_squares`, with derivatives.

    Parameters
    ----------
    fun : callable
        `fun(x, *args)` gives the residuals, for an array of one axis. It may close over recorded values.
    x0 : array_like
        The start; one number is an array of one.
    jac : optional
        Accepted for SciPy's sake: the Jacobian is nbgrad's.
    bounds : pair of array_like
        The lower and the upper ends, numbers or an array each. They may be recorded values.
    method, ftol, xtol, gtol, x_scale, max_nfev
        As for SciPy.
    loss : {"linear", "soft_l1", "huber", "cauchy", "arctan"}
        The function rho of SciPy's robust fits.
    f_scale : float
        The residual C from which on one counts as an outlier: the cost is half the sum of C**2 rho((f / C)**2).
    args : tuple
        Further arguments of `fun`.
    linear_solver : {"dense", "gmres", "bicgstab", "cg"}, optional
        As for `custom_root`.

    Returns
    -------
    Solution
        With SciPy's fields `x`, `fun` (the residuals), `cost`, `success`, `status`, `message`, `nfev` and `njev`.
        Elements that SciPy finds to be on a bound are the bound itself.

    Raises
    ------
    ArgumentError
        For a loss of your own, or arguments that SciPy refuses.
    ShapeError, DtypeError, TracedValueError, MatrixError, ConvergenceError
        As `minimize`.

    Notes
    -----
    The derivative is exact also where the residuals are not small: the system is that of the whole Hessian of the cost,
    not of its Gauss-Newton part.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> def rate(data):
    ...     return nb.solvers.least_squares(lambda x: x[0] * np.exp(-x[1] * t) - data, np.ones(2)).x[1]
    >>> data = 2.0 * np.exp(-3.0 * t)
    >>> bool(abs(rate(data) - 3.0) < 1e-6)
    True
    >>> nb.grad(rate)(data).shape
    (5,)
    """
    title = "least_squares"
    del jac
    check_function(fun, title)
    if loss not in LOSSES:
        message = f"loss of least_squares() must be one of {', '.join(map(repr, LOSSES))}, but got {loss!r}."
        raise ArgumentError(message)
    start = flat_start(x0, title)
    n = start.size
    pair = [bounds.lb, bounds.ub] if hasattr(bounds, "lb") else list(bounds)
    if len(pair) != 2:
        message = f"bounds of least_squares() must be a pair of lower and upper ends, but has length {len(pair)}."
        raise ShapeError(message)
    free = all(isinstance(end, float) and np.isinf(end) for end in pair)
    ends = [] if free else ends_of(pair, n, title)
    function, captured = recorded(bound(fun, args), [start], title, one_output(name_of(fun), title, None))
    more: dict[str, Any] = {"method": method, "ftol": ftol, "xtol": xtol, "gtol": gtol, "x_scale": x_scale}
    more |= {"max_nfev": max_nfev, "loss": loss, "f_scale": float(f_scale)}

    def run(first: np.ndarray, *rest: np.ndarray) -> tuple[Any, dict[str, Any]]:
        from scipy.optimize import least_squares

        values = rest[len(ends) :]
        given: dict[str, Any] = {"bounds": rest[:2]} if ends else {}
        slope, routine = function.jacobian().program(), cast(Any, least_squares)
        found = as_scipy(
            title,
            host.place,
            lambda: routine(
                lambda x: function.call(as_float(x), *values)[0],
                first,
                jac=lambda x: slope(as_float(x), *values)[0],
                **more,
                **given,
            ),
        )
        x = found.x
        if ends:
            x = np.where(found.active_mask < 0, rest[0], np.where(found.active_mask > 0, rest[1], x))
        return x, fields_of(found)

    inputs = [start, *ends, *captured]
    key = ("least squares", function, option_key(more), len(ends))
    host = HostSolve(title, key, [node.ndim for node in inputs], (n,), FIELDS, run)
    total = function.cost(loss, float(f_scale))
    gradient = total.gradient()
    residual = gradient.within_bounds() if ends else gradient
    linear = linear_way(linear_solver, n)
    plain = is_plain([x0], inputs)
    x, fields, node = solution(host, inputs, lambda: ImplicitRule(title, residual, linear), [*ends, *captured], plain)
    more_values = {"fun": value_at(function, x, node, captured), "cost": value_at(total, x, node, captured)}
    return Solution(title, {"x": x, **more_values, **fields})
