"""Minimisers as compiled loops, with derivatives: L-BFGS, trust regions, Gauss-Newton, Levenberg-Marquardt.

In: a function of a container of arrays that gives a number, or residuals, and a start. Out: a `Solution` with SciPy's
fields, its `x` and `jac` containers like the start. Called by users. The function is recorded once for each call;
functions of one structure share a program, which does some turns of the method in one call. What the function closes
over is an input of the program: other numbers compile nothing, and the minimum is differentiated by them (design/0099).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..record.tensor import Tensor
from ..solvers.closed_functions import FLOAT, ClosedFunction, as_float, bound, one_output, recorded
from ..solvers.compiled_iterations import iterated
from ..solvers.host_solves import HostSolve
from ..solvers.implicit import (
    FIELDS,
    ImplicitRule,
    Solution,
    float_node,
    is_plain,
    linear_way,
    solution,
    value_at,
)
from ..transforms.argument_positions import check_function
from ..transforms.arguments import flatten, name_of
from ..transforms.ravel import ravel
from . import damped_steps, endings, limited_memory, trust_region
from .endings import SMALL_GRADIENT, UNDEFINED

Run = Callable[[ClosedFunction, np.ndarray, Sequence[np.ndarray]], tuple[np.ndarray, float, int, int, float]]
"""From a function, a start and captured values to the minimiser, how the run has ended, and the counts of evaluations,
gradients and steps."""


def lbfgs(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    *,
    gtol: float = 1e-8,
    ftol: float = 1e-13,
    maxiter: int = 1000,
    memory: int = 10,
    turns: int = 8,
) -> Solution:
    """A minimiser by L-BFGS with a line search for the strong Wolfe conditions, as a compiled loop.

    Parameters
    ----------
    fun : callable
        `fun(x, *args)` gives a number, for a container like `x0`. It may close over recorded values.
    x0 : array, float, or nested containers of them
        The start. The method computes with float64; `fun` gets the shapes and dtypes of the start.
    args : tuple
        Further arguments of `fun`.
    gtol : float
        It ends when no element of the gradient is greater.
    ftol : float
        It ends when two steps decrease the value by less, relative to it: one may have ended at a kink.
    maxiter : int
        The most steps; there are at most four times as many evaluations.
    memory : int
        The number of steps from which the Hessian is estimated.
    turns : int
        The evaluations in one call of the program: up to so many less one come after the end. Take 1 for functions that
        take milliseconds.

    Returns
    -------
    Solution
        `x` and `jac` (containers like the start), `fun`, `success`, `status` (as of `scipy.optimize.least_squares`: 1
        gtol, 2 ftol, 0 maxiter; -1 where no lower value is found), `message`, `nfev`, `njev`, `nit`.

    Raises
    ------
    DtypeError, ShapeError
        If `fun` does not give one real number, or `x0` holds anything but floats.
    ArgumentError
        For options out of range.
    TracedValueError
        If `fun` branches by the values of `x`.
    MatrixError, ConvergenceError
        If a derivative is asked for where the Hessian is singular, or the method has not converged.

    Notes
    -----
    J. Nocedal, "Updating quasi-Newton matrices with limited storage", Math. Comp. 35, 1980; J. More and D. Thuente,
    "Line search algorithms with guaranteed sufficient decrease", ACM TOMS 20, 1994. The derivative of the minimiser is
    that of the implicit function theorem, as for `nb.solvers.minimize`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def rosenbrock(x, a):
    ...     return np.sum(a * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    >>> found = nb.optim.lbfgs(rosenbrock, np.zeros(10), args=(100.0,))
    >>> found.success, found.x.round(6)
    (True, array([1., 1., 1., 1., 1., 1., 1., 1., 1., 1.]))
    """

    def run(function: ClosedFunction, x: np.ndarray, values: Sequence[np.ndarray]) -> Any:
        both = function.with_gradient()
        value, gradient = both.call(x, *values)
        ended = _at_start(value, gradient, gtol)
        state = limited_memory.start(x, value, gradient, memory)
        limits = [4 * maxiter, gtol, ftol, maxiter]
        end, count, last = iterated([both], f"lbfgs {memory}", limited_memory.turn, limits, state, values, ended, turns)
        return last.x, end, count + 1, count + 1, last.steps

    _check_options(gtol=gtol, ftol=ftol, maxiter=maxiter, memory=memory, turns=turns)
    return _minimum("lbfgs", fun, x0, args, (gtol, ftol, maxiter, memory, turns), run)


def newton_cg(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    *,
    gtol: float = 1e-8,
    ftol: float = 1e-15,
    maxiter: int = 200,
    radius: float = 1.0,
    products: int | None = None,
    turns: int = 4,
) -> Solution:
    """A minimiser by Newton's method in a trust region, with conjugate gradients (Steihaug's), as a compiled loop.

    Parameters
    ----------
    fun, x0, args, gtol, maxiter, turns
        As for `lbfgs`. A turn makes up to four products with the Hessian and one evaluation.
    ftol : float
        It ends when the predicted decrease is less, relative to the value.
    radius : float
        Of the first region.
    products : int, optional
        The most products with the Hessian in one step; by default the number of unknowns.

    Returns
    -------
    Solution
        As of `lbfgs`; `nfev` counts the ends of steps, `njev` the turns.

    Raises
    ------
    DtypeError, ShapeError, ArgumentError, TracedValueError, MatrixError, ConvergenceError
        As `lbfgs`.

    Notes
    -----
    T. Steihaug, "The conjugate gradient method and trust regions in large scale optimization", SIAM J. Numer. Anal. 20,
    1983. Products with the Hessian are derivatives of the gradient along a direction: no matrix is formed.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def hills(p):
    ...     return np.cosh(p["a"] - 1.0) + (p["b"] @ p["b"]) ** 2
    >>> found = nb.optim.newton_cg(hills, {"a": 3.0, "b": np.ones(2)})
    >>> found.success, round(float(found.x["a"]), 6)
    (True, 1.0)
    """

    def run(function: ClosedFunction, x: np.ndarray, values: Sequence[np.ndarray]) -> Any:
        both = function.with_gradient()
        value, gradient = both.call(x, *values)
        ended = _at_start(value, gradient, gtol)
        most = x.size if products is None else products
        state = trust_region.start(x, value, gradient, radius)
        limits = [(4 + most // trust_region.PRODUCTS) * maxiter, gtol, ftol, maxiter]
        functions = [both, function.gradient().tangent()]
        turn = trust_region.turn_with(most)
        end, count, last = iterated(functions, f"newton_cg {most}", turn, limits, state, values, ended, turns)
        return last.x, end, int(last.values) + 1, count + 1, last.steps

    _check_options(gtol=gtol, ftol=ftol, maxiter=maxiter, radius=radius, turns=turns)
    if products is not None:
        _check_options(products=products)
    return _minimum("newton_cg", fun, x0, args, (gtol, ftol, maxiter, radius, products, turns), run)


def levenberg_marquardt(
    residuals: Callable[..., Any],
    x0: Any,
    args: Any = (),
    *,
    gtol: float = 1e-12,
    ftol: float = 1e-14,
    xtol: float = 1e-12,
    maxiter: int = 500,
    damping: float = 1e-3,
    turns: int = 4,
) -> Solution:
    """The minimiser of a sum of squares by Levenberg and Marquardt's method, as a compiled loop.

    Parameters
    ----------
    residuals : callable
        `residuals(x, *args)` gives an array of any shape, for a container like `x0`; at least as many elements as
        unknowns. It may close over recorded values.
    x0, args, maxiter, turns
        As for `lbfgs`.
    gtol : float
        It ends when the cosine of the angle between the residuals and each column of the Jacobian is less.
    ftol : float
        It ends when the decrease of the sum of squares, predicted and real, is less, relative to it.
    xtol : float
        It ends when a step is shorter, relative to `x`, both in the scales of the unknowns.
    damping : float
        The first one, relative to the columns of the Jacobian.

    Returns
    -------
    Solution
        As of `lbfgs`, with `cost` (half the sum of squares), and `fun` the residuals along one axis; status 3 for xtol.

    Raises
    ------
    DtypeError, ShapeError, ArgumentError, TracedValueError, MatrixError, ConvergenceError
        As `lbfgs`.

    Notes
    -----
    K. Levenberg, 1944; D. Marquardt, 1963; the scaling is J. More's (1978), the damping that of K. Madsen, H. B.
    Nielsen and O. Tingleff, "Methods for non-linear least squares problems", 2nd edition, 2004, algorithm 3.16. Steps
    come from a QR decomposition.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> t = np.linspace(0.0, 4.0, 9)
    >>> def misfit(p, counts):
    ...     return p["size"] * np.exp(-p["rate"] * t) - counts
    >>> counts = 5.0 * np.exp(-0.7 * t)
    >>> found = nb.optim.levenberg_marquardt(misfit, {"size": 1.0, "rate": 0.1}, args=(counts,))
    >>> round(float(found.x["size"]), 9), round(float(found.x["rate"]), 9)
    (5.0, 0.7)
    """
    limits = [4 * maxiter, gtol, ftol, xtol, maxiter]
    _check_options(gtol=gtol, ftol=ftol, xtol=xtol, maxiter=maxiter, damping=damping, turns=turns)
    return _least_squares("levenberg_marquardt", residuals, x0, args, damped_steps.damped, limits, damping, turns)


def gauss_newton(
    residuals: Callable[..., Any],
    x0: Any,
    args: Any = (),
    *,
    gtol: float = 1e-12,
    ftol: float = 1e-14,
    xtol: float = 1e-12,
    maxiter: int = 200,
    turns: int = 4,
) -> Solution:
    """The minimiser of a sum of squares by Gauss and Newton's method, as a compiled loop.

    For residuals that are nearly linear or small at the minimum; `levenberg_marquardt` goes further from bad starts.

    Parameters
    ----------
    residuals, x0, args, gtol, ftol, xtol, maxiter, turns
        As for `levenberg_marquardt`. A step is halved until the sum of squares decreases.

    Returns
    -------
    Solution
        As of `levenberg_marquardt`.

    Raises
    ------
    DtypeError, ShapeError, ArgumentError, TracedValueError, MatrixError, ConvergenceError
        As `lbfgs`.

    Notes
    -----
    J. Nocedal and S. Wright, "Numerical Optimization", 2nd edition, section 10.3, with Armijo's condition.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> found = nb.optim.gauss_newton(lambda x: np.stack([x[0] ** 2 - 2.0, x[0] * x[1] - 1.0]), np.ones(2))
    >>> found.success, found.x.round(9), found.nit
    (True, array([1.41421356, 0.70710678]), 5)
    """
    limits = [4 * maxiter, gtol, ftol, xtol, maxiter]
    _check_options(gtol=gtol, ftol=ftol, xtol=xtol, maxiter=maxiter, turns=turns)
    return _least_squares("gauss_newton", residuals, x0, args, damped_steps.undamped, limits, 1.0, turns)


METHODS = {
    "lbfgs": lbfgs,
    "newton_cg": newton_cg,
    "levenberg_marquardt": levenberg_marquardt,
    "gauss_newton": gauss_newton,
}


def minimize(fun: Callable[..., Any], x0: Any, args: Any = (), method: str = "lbfgs", **options: Any) -> Solution:
    """A minimiser, by the method of a name.

    Parameters
    ----------
    fun : callable
        `fun(x, *args)` gives a number; residuals for the methods of least squares.
    x0, args
        As for `lbfgs`.
    method : {"lbfgs", "newton_cg", "levenberg_marquardt", "gauss_newton"}
        The function of `nb.optim` with this name.
    **options
        Its options.

    Returns
    -------
    Solution
        As of the method.

    Raises
    ------
    ArgumentError
        For another name, and as the method.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.optim.minimize(lambda x: np.sum((x - 2.0) ** 4), np.zeros(2), method="newton_cg", gtol=1e-12).x.round(3)
    array([2., 2.])
    """
    if method not in METHODS:
        message = f"method must be one of {', '.join(map(repr, METHODS))}, but got {method!r}."
        raise ArgumentError(message)
    return METHODS[method](fun, x0, args, **options)


# ----- All methods -----


def _check_options(**options: Any) -> None:
    for name, value in options.items():
        whole = name in ("maxiter", "memory", "turns", "products")
        if isinstance(value, bool) or not isinstance(value, int | np.integer if whole else int | float | np.number):
            message = f"{name} must be {'an integer' if whole else 'a number'}, but got {value!r}."
            raise DtypeError(message)
        least = 1 if whole else 0
        if not value >= least or (name in ("radius", "damping") and not value > 0):
            message = f"{name} must be {'at least 1' if whole else 'positive'}, but got {value!r}."
            raise ArgumentError(message)


def _at_start(value: np.ndarray, gradient: np.ndarray, gtol: float) -> float:
    """How a run ends before its first turn; 0 if it does not."""
    if not np.isfinite(value) or not np.isfinite(gradient).all():
        return UNDEFINED
    return SMALL_GRADIENT if np.max(np.abs(gradient)) <= gtol else 0.0


def _recorded(
    title: str, fun: Callable[..., Any], x0: Any, args: Any, shape: tuple[int, ...] | None
) -> tuple[Any, Callable[[Any], Any], ClosedFunction, list[Any]]:
    """The start as a node, the way back to containers, and the function of a vector, with what it has captured."""
    check_function(fun, title)
    vector, unravel = ravel(x0)
    if np.size(vector) == 0:
        message = f"The start of {title}() holds no numbers: there is nothing to minimise by."
        raise ArgumentError(message)
    if vector.dtype.kind == "c":
        message = f"The start of {title}() holds complex numbers. Give their real and imaginary parts."
        raise DtypeError(message)
    called = bound(fun, args)

    def of_vector(x: Any) -> Any:
        return called(unravel(x))

    of_vector.__name__ = name_of(fun)
    start = float_node(vector, f"The start of {title}()")
    function, captured = recorded(of_vector, [start], title, one_output(name_of(fun), title, shape))
    return start, unravel, function, captured


def _minimum(title: str, fun: Callable[..., Any], x0: Any, args: Any, options: Any, run: Run) -> Solution:
    """The minimiser of a function that gives one number."""
    start, unravel, function, captured = _recorded(title, fun, x0, args, ())
    x, fields, node = _solved(title, start, function, function.gradient(), captured, options, run, x0)
    more = {"fun": value_at(function, x, node, captured)}
    slope = value_at(function.gradient(), x, node, captured)
    return Solution(title, {"x": unravel(x), **more, "jac": unravel(slope), **fields})


def _least_squares(
    title: str, fun: Callable[..., Any], x0: Any, args: Any, turn: Any, limits: Any, damping: float, turns: int
) -> Solution:
    """The minimiser of a sum of squares."""
    start, unravel, function, captured = _recorded(title, fun, x0, args, None)
    if function.outputs[0].size < start.size:
        count = function.outputs[0].size
        message = (
            f"{name_of(fun)}() gives {count} residuals to {title}() for {start.size} unknowns: there must be at least "
            "as many."
        )
        raise ArgumentError(message)

    def run(function: ClosedFunction, x: np.ndarray, values: Sequence[np.ndarray]) -> Any:
        both = function.made(
            "with jacobian",
            lambda: ClosedFunction(
                *(function.variables, function.captured),
                *([*function.outputs, *function.jacobian().outputs], function.checks),
            ),
        )
        residuals, jacobian = both.call(x, *values)
        ended = 0.0 if np.isfinite(residuals).all() and np.isfinite(jacobian).all() else UNDEFINED
        if not ended and not (residuals @ jacobian).any():
            ended = SMALL_GRADIENT
        state = damped_steps.start(x, residuals, jacobian, damping)
        end, count, last = iterated([both], title, turn, limits, state, values, ended, turns)
        return last.x, end, count + 1, count + 1, last.steps

    squares = function.cost()
    key = (*limits, damping, turns)
    x, fields, node = _solved(title, start, function, squares.gradient(), captured, key, run, x0)
    more = {"fun": value_at(function, x, node, captured), "cost": value_at(squares, x, node, captured)}
    slope = value_at(squares.gradient(), x, node, captured)
    return Solution(title, {"x": unravel(x), **more, "jac": unravel(slope), **fields})


def _solved(
    title: str,
    start: Any,
    function: ClosedFunction,
    gradient: ClosedFunction,
    captured: Sequence[Any],
    options: Any,
    run: Run,
    x0: Any,
) -> tuple[Any, dict[str, Any], Any]:
    """The minimiser as a vector, with its derivative where it is recorded; the fields of the run; its node."""
    n = start.size

    def solved(first: np.ndarray, *values: np.ndarray) -> tuple[Any, dict[str, Any]]:
        x, end, evaluations, gradients, steps = run(function, as_float(first), values)
        x = np.asarray(x, FLOAT)
        return x, endings.fields(end, evaluations, gradients, float(steps), bool(np.isfinite(x).all()))

    inputs = [start, *captured]
    host = HostSolve(title, (title, function, options), [node.ndim for node in inputs], (n,), FIELDS, solved)
    linear = linear_way(None, n)
    plain = is_plain([leaf for leaf in flatten(x0)[0] if isinstance(leaf, Tensor)], inputs)
    return solution(host, inputs, lambda: ImplicitRule(title, gradient, linear), captured, plain)
