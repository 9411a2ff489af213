"""Roots of equations of one number each: `root_scalar`, `brentq`, and `newton` for arrays of them.

In: functions of a number, or of arrays by element, with SciPy's arguments. Out: their roots, with SciPy's fields,
differentiated by all that the functions close over and by `args`. Called by users.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..graph.builders import reshape
from ..graph.ir import Node
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .closed_functions import ClosedFunction, as_float, bound, one_output, recorded
from .host_solves import ConvergenceError, HostSolve, said
from .implicit import (
    ELEMENTWISE,
    ImplicitRule,
    Solution,
    as_scipy,
    float_node,
    is_plain,
    option_key,
    solution,
)


def root_scalar(
    f: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    bracket: Sequence[Any] | None = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Solution:
    """A root of one equation of a number, by `scipy.optimize.root_scalar`, with derivatives.

    Parameters
    ----------
    f : callable
        `f(x, *args)` gives a number. It may close over recorded values.
    args : tuple
        Further arguments of `f`.
    method, bracket, x0, x1, xtol, rtol, maxiter, options
        As for SciPy. The ends of the bracket, and starts, have no derivative.
    fprime, fprime2 : optional
        Accepted for SciPy's sake: "newton" and "halley" get both derivatives from nbgrad.

    Returns
    -------
    Solution
        With SciPy's fields `root`, `converged`, `flag`, `iterations` and `function_calls`.

    Raises
    ------
    ArgumentError
        If SciPy refuses an argument: where `f` has equal signs at the ends of the bracket, say.
    ShapeError, DtypeError
        If `f` does not give one real number.
    TracedValueError
        If `f` branches by the value of `x`.
    MatrixError, ConvergenceError
        If a derivative is asked for where the slope of `f` is zero, or SciPy has not converged.

    See Also
    --------
    newton : for arrays of equations at once.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def root_of(a):
    ...     return nb.solvers.root_scalar(lambda x: x**3 - a, bracket=(0.0, 10.0)).root
    >>> nb.grad(root_of)(8.0).round(12)
    np.float64(0.083333333333)
    """
    title = "root_scalar"
    check_function(f, title)
    if bracket is not None and len(bracket) != 2:
        message = f"The bracket of root_scalar() must be a pair of numbers, but has length {len(bracket)}."
        raise ArgumentError(message)
    given: dict[str, Any] = {"x0": x0, "x1": x1}
    if bracket is not None:
        given["a"], given["b"] = bracket
    more = {"method": method, "xtol": xtol, "rtol": rtol, "maxiter": maxiter, "options": dict(options or {})}
    if method is None and bracket is None and x0 is not None and x1 is None:
        more["method"] = "newton"
    return _scalar(title, f, args, {name: value for name, value in given.items() if value is not None}, more)


def brentq(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    xtol: float = 2e-12,
    rtol: float = 8.881784197001252e-16,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """A root of one equation between two numbers, by Brent's method, with derivatives.

    Parameters
    ----------
    f : callable
        `f(x, *args)` gives a number; its signs at `a` and `b` differ. It may close over recorded values.
    a, b : float
        The ends of the bracket, which have no derivative.
    args : tuple
        Further arguments of `f`.
    xtol, rtol, maxiter
        As for `scipy.optimize.brentq`.
    full_output : bool
        Whether to return the pair of the root and a `Solution` with SciPy's fields.
    disp : bool
        Whether to raise if there is no convergence.

    Returns
    -------
    float, or pair

    Raises
    ------
    ArgumentError, ConvergenceError, MatrixError, ShapeError, DtypeError, TracedValueError
        As `root_scalar`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.grad(lambda a: nb.solvers.brentq(lambda x: np.exp(x) - a, 0.0, 5.0))(2.0).round(12)
    np.float64(0.5)
    """
    check_function(f, "brentq")
    more = {"method": "brentq", "xtol": xtol, "rtol": rtol, "maxiter": maxiter, "options": {}, "raises": disp}
    found = _scalar("brentq", f, args, {"a": a, "b": b}, more)
    return (found.root, found) if full_output else found.root


def _scalar(title: str, f: Callable[..., Any], args: Any, given: dict[str, Any], more: dict[str, Any]) -> Solution:
    numbers = [float_node(value, f"{name} of {title}()") for name, value in given.items()]
    numbers = [_one_number(title, name, node) for name, node in zip(given, numbers, strict=True)]
    if not numbers:
        message = f"{title}() needs a bracket or a start x0."
        raise ArgumentError(message)
    function, captured = recorded(bound(f, args), [numbers[0]], title, one_output(name_of(f), title, ()))
    raises = bool(more.pop("raises", False))
    method = more["method"]
    names = tuple(given)

    def run(*arrays: np.ndarray) -> tuple[Any, dict[str, Any]]:
        from scipy.optimize import root_scalar

        starts: dict[str, Any] = dict(zip(names, map(float, arrays), strict=False))
        values = arrays[len(names) :]

        def at(made: ClosedFunction) -> Callable[[float], float]:
            return lambda x: float(made.call(np.array(x, np.float64), *values)[0])

        slopes: dict[str, Any] = {}
        if method in ("newton", "halley"):
            slopes["fprime"] = at(function.gradient())
        if method == "halley":
            slopes["fprime2"] = at(function.gradient().gradient())
        if "a" in starts:
            starts["bracket"] = [starts.pop("a"), starts.pop("b")]
        found = as_scipy(title, host.place, lambda: root_scalar(at(function), **slopes, **starts, **more))
        status = 0 if found.converged else 1
        if raises and status:
            message = f"{said(title, host.place)}: {found.flag} after {found.iterations} iterations."
            raise ConvergenceError(message)
        good = bool(found.converged) and bool(np.isfinite(found.root))
        counts = {"iterations": found.iterations, "function_calls": found.function_calls}
        return found.root, {"converged": good, "status": status, "message": found.flag, **counts}

    inputs = [*numbers, *captured]
    key = ("scalar", function, names, raises, option_key(more))
    fields = ["converged", "status", "message", "iterations", "function_calls"]
    host = HostSolve(title, key, [node.ndim for node in inputs], (), fields, run)
    plain = is_plain(list(given.values()), inputs)
    x, found, _ = solution(host, inputs, lambda: ImplicitRule(title, function, ELEMENTWISE), captured, plain)
    return Solution(title, {"root": x, **found})


def _one_number(title: str, name: str, node: Node) -> Node:
    if node.size != 1:
        message = f"{name} of {title}() must be one number, but has shape {node.shape}. For arrays there is newton()."
        raise ArgumentError(message)
    return reshape(node, ())


def newton(
    func: Callable[..., Any],
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
    fprime2: Any = None,
    x1: Any = None,
    rtol: float = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Roots of many equations of one number each, by Newton's method on arrays, with derivatives.

    Parameters
    ----------
    func : callable
        `func(x, *args)` gives an array of the shape of `x`, each element of which depends on that element of `x` only.
        It may close over recorded values.
    x0 : array_like
        The starts, of any shape.
    fprime, fprime2, x1 : optional
        Accepted for SciPy's sake: the slope is nbgrad's.
    args : tuple
        Further arguments of `func`.
    tol, maxiter, rtol
        As for `scipy.optimize.newton`.
    full_output : bool
        Whether to return the pair of the roots and a `Solution` with the field `converged`, true if all elements are.
    disp : bool
        Whether to raise if an element has not converged.

    Returns
    -------
    array of the shape of `x0`, or pair

    Raises
    ------
    ConvergenceError
        If there is no convergence.
    ArgumentError
        If elements of `func` depend on other elements of `x`; there is `root` for those.
    MatrixError
        If a derivative is asked for where a slope is zero.
    ShapeError, DtypeError, TracedValueError
        As `root`.

    Examples
    --------
    Kepler's equation, for many times at once:

    >>> import numpy as np, nbgrad as nb
    >>> def anomaly(e, m):
    ...     return nb.solvers.newton(lambda E: E - e * np.sin(E) - m, m)
    >>> m = np.array([0.5, 1.0])
    >>> E = anomaly(0.3, m)
    >>> slopes = nb.jacfwd(anomaly)(0.3, m)
    >>> np.allclose(slopes, np.sin(E) / (1 - 0.3 * np.cos(E)))
    True
    """
    del fprime, fprime2, x1
    title = "newton"
    check_function(func, title)
    start = float_node(x0, "The start of newton()")
    shape = start.shape
    called = bound(func, tuple(args))  # SciPy takes any sequence here
    function, captured = recorded(called, [start], title, one_output(name_of(func), title, shape))

    def run(x: np.ndarray, *values: np.ndarray) -> tuple[Any, dict[str, Any]]:
        program, ones = function.with_tangent().call, np.ones(shape)
        good, count = not x.size, 0
        said_of = "an element has not converged", "converged"
        with np.errstate(all="ignore"):
            while not good and count < maxiter:
                value, slope = program(ones, x, *values)
                step = np.where(value == 0, 0.0, value / slope)
                x, count = as_float(x - step), count + 1
                good = bool((np.abs(step) <= tol + rtol * np.abs(x)).all())
        if disp and not good:
            message = f"{said(title, host.place)} has not converged in {count} iterations."
            raise ConvergenceError(message)
        if good and not function.is_elementwise:
            _check_elementwise(program, x, values, name_of(func))
            function.is_elementwise = True
        return x, {"converged": good, "status": int(not good), "message": said_of[good], "iterations": count}

    inputs = [start, *captured]
    key = ("newton", function, tol, maxiter, rtol, disp)
    fields = ["converged", "status", "message", "iterations"]
    host = HostSolve(title, key, [node.ndim for node in inputs], shape, fields, run)
    plain = is_plain([x0], inputs)
    x, found, _ = solution(host, inputs, lambda: ImplicitRule(title, function, ELEMENTWISE), captured, plain)
    return (x, Solution(title, {"root": x, **found})) if full_output else x


def _check_elementwise(
    program: Callable[..., Sequence[np.ndarray]], x: np.ndarray, values: Sequence[np.ndarray], name: str
) -> None:
    """Raise if elements depend on each other: then the tangents are not the slopes times a vector."""
    if x.size < 2:
        return
    vector = np.random.default_rng(1).uniform(1.0, 2.0, x.shape)
    moved, slope = program(vector, x, *values)[1], program(np.ones(x.shape), x, *values)[1]
    if not np.allclose(moved, slope * vector, rtol=1e-6, atol=1e-12, equal_nan=True):
        message = (
            f"Each element of {name}() must depend on that element of x only, for newton(). Use root() for systems."
        )
        raise ArgumentError(message)
