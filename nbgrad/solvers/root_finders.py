"""Roots and fixed points of systems by SciPy's algorithms: `root`, `fixed_point`.

In: functions of arrays, with SciPy's arguments. Out: their roots, with SciPy's fields, differentiated by all that the
functions close over and by `args`. SciPy gets the function, and where its algorithm takes them its derivatives, as
compiled programs. Called by users.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from . import compiled_iterations
from .closed_functions import as_float, bound, first_of, one_output, recorded
from .host_solves import ConvergenceError, HostSolve, said
from .implicit import (
    FIELDS,
    FINITE,
    ImplicitRule,
    Solution,
    as_scipy,
    fields_of,
    finite_fields,
    flat_start,
    float_node,
    is_plain,
    linear_way,
    option_key,
    solution,
    value_at,
)

WITH_JACOBIAN = ("hybr", "lm")


def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: Mapping[str, Any] | None = None,
    linear_solver: str | None = None,
) -> Solution:
    """A root of a system of equations, by `scipy.optimize.root`, with derivatives.

    Parameters
    ----------
    fun : callable
        `fun(x, *args)` gives as many numbers as `x`, an array of one axis, has. It may close over recorded values.
    x0 : array_like
        The start; one number is an array of one.
    args : tuple
        Further arguments of `fun`.
    method, tol, callback, options
        As for SciPy. "hybr" and "lm" get the Jacobian from nbgrad, the others work without.
    jac : optional
        Accepted for SciPy's sake: with True, `fun` gives a pair of which the second is not used.
    linear_solver : {"dense", "gmres", "bicgstab", "cg"}, optional
        As for `custom_root`.

    Returns
    -------
    Solution
        With SciPy's fields `x`, `fun`, `success`, `status`, `message`, `nfev`, `njev` and `nit`. Without convergence
        the values are SciPy's, and a derivative by them raises.

    Raises
    ------
    ShapeError, DtypeError, ArgumentError
        If `fun` does not return as many real numbers as `x0` has, or SciPy refuses an argument.
    TracedValueError
        If `fun` branches by the values of `x`.
    MatrixError, ConvergenceError
        If a derivative is asked for where the Jacobian is singular, or SciPy has not converged.

    Notes
    -----
    The derivative is that of the implicit function theorem, as for `custom_root`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def both(x, a):
    ...     return [x[0] ** 2 + x[1] ** 2 - a, x[0] - x[1]]
    >>> nb.solvers.root(both, np.ones(2), (8.0,)).x
    array([2., 2.])
    >>> nb.grad(lambda a: nb.solvers.root(both, np.ones(2), (a,)).x[0])(8.0).round(12)
    np.float64(0.125)
    """
    title = "root"
    check_function(fun, title)
    start = flat_start(x0, title)
    fn = bound(fun, args)
    if jac is True:
        fn = first_of(fn)
    n = start.size
    function, captured = recorded(fn, [start], title, one_output(name_of(fun), title, (n,)))
    more = dict(options or {})

    def run(first: np.ndarray, *values: np.ndarray) -> tuple[Any, dict[str, Any]]:
        from scipy.optimize import root

        def value(x: np.ndarray) -> np.ndarray:
            return function.call(as_float(x), *values)[0]

        jacobian = function.jacobian().program() if method in WITH_JACOBIAN else None

        def slope(x: np.ndarray) -> np.ndarray:
            assert jacobian is not None
            return jacobian(as_float(x), *values)[0]

        own = None if jacobian is None else slope
        found = as_scipy(
            title,
            host.place,
            lambda: root(value, first, method=method, jac=own, tol=tol, callback=callback, options=more),
        )
        return found.x, fields_of(found)

    inputs = [start, *captured]
    host = HostSolve(
        title,
        ("root", function, method, tol, option_key(callback), option_key(more)),
        [node.ndim for node in inputs],
        (n,),
        FIELDS,
        run,
    )
    way = linear_way(linear_solver, n)
    plain = is_plain([x0], inputs)
    x, fields, node = solution(host, inputs, lambda: ImplicitRule(title, function, way), captured, plain)
    return Solution(title, {"x": x, "fun": value_at(function, x, node, captured), **fields})


def fixed_point(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    xtol: float = 1e-8,
    maxiter: int = 500,
    method: str = "del2",
    linear_solver: str | None = None,
) -> Any:
    """A fixed point, by `scipy.optimize.fixed_point`, with derivatives.

    Parameters
    ----------
    func : callable
        `func(x, *args)` gives an array of the shape of `x`. It may close over recorded values.
    x0 : array_like
        The start, of any shape.
    args : tuple
        Further arguments of `func`.
    xtol, maxiter : float, int
        As for SciPy.
    method : {"del2", "iteration"}
        Steffensen's method with Aitken's convergence acceleration for each element, or plain iteration.
    linear_solver : {"dense", "gmres", "bicgstab", "cg"}, optional
        As for `custom_root`.

    Returns
    -------
    array of the shape of `x0`

    Raises
    ------
    ConvergenceError
        If there is no convergence.
    ShapeError, DtypeError, ArgumentError, TracedValueError, MatrixError
        As `root`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def equal_to_cosine(a):
    ...     return nb.solvers.fixed_point(lambda x: np.cos(a * x), 0.7)
    >>> x = equal_to_cosine(1.0)
    >>> expected = -x * np.sin(x) / (1 + np.sin(x))
    >>> bool(abs(nb.grad(equal_to_cosine)(1.0) - expected) < 1e-10)
    True
    """
    title = "fixed_point"
    check_function(func, title)
    if method not in ("del2", "iteration"):
        message = f"method of fixed_point() must be 'del2' or 'iteration', but got {method!r}."
        raise ArgumentError(message)
    start = float_node(x0, "The start of fixed_point()")
    if not start.size:
        message = "The start of fixed_point() has no elements: there is nothing to solve for."
        raise ShapeError(message)
    shape = start.shape
    function, captured = recorded(bound(func, args), [start], title, one_output(name_of(func), title, shape))

    def run(x: np.ndarray, *values: np.ndarray) -> tuple[Any, dict[str, Any]]:
        good, found = compiled_iterations.fixed_point(function, method, x, values, xtol, maxiter)
        if not good:
            message = f"{said(title, host.place)} has not converged in {maxiter} iterations."
            raise ConvergenceError(message)
        return found, finite_fields(found)

    inputs = [start, *captured]
    key = ("fixed point", function, xtol, maxiter, method)
    host = HostSolve(title, key, [node.ndim for node in inputs], shape, FINITE, run)
    way = linear_way(linear_solver, start.size)
    plain = is_plain([x0], inputs)
    return solution(host, inputs, lambda: ImplicitRule(title, function.minus_variable(), way), captured, plain)[0]
