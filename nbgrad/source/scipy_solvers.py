"""SciPy's solvers in code that `differentiable_source` runs: by `nbgrad.solvers`, which have derivatives.

In: a function of `scipy.optimize`, `scipy.integrate` or `scipy.sparse.linalg`. Out: a function with its signature that
hands calls with recorded values, which functions may close over, to nbgrad's solver, and all others to SciPy. Called by
replacements.py.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .. import solvers
from ..errors import ArgumentError
from ..graph.trace import current_trace
from ..record.tensor import Tensor
from ..solvers import iterated_integrals
from ..solvers.boundary_values import solve_bvp
from ..solvers.linear_fits import linear_fit
from .scipy_doors import plain, recorded
from .scipy_minimisers import MINIMISERS

Function = Callable[..., Any]


def _fsolve(func: Function, x0: Any, args: Any = (), full_output: Any = 0, xtol: float = 1.49012e-8) -> Any:
    found = solvers.root(func, x0, args, tol=xtol)
    if not full_output:
        return found.x
    return found.x, {"nfev": found.nfev, "fvec": found.fun}, found.status, found.message


def _bracketed(method: str) -> Function:
    def scalar(
        f: Function,
        a: Any,
        b: Any,
        args: Any = (),
        xtol: float | None = None,
        rtol: float | None = None,
        maxiter: int | None = None,
        full_output: bool = False,
    ) -> Any:
        found = solvers.root_scalar(f, args, method, (a, b), xtol=xtol, rtol=rtol, maxiter=maxiter)
        return (found.root, found) if full_output else found.root

    return scalar


def _iterative(method: str) -> Function:
    def solved(
        A: Any, b: Any, x0: Any = None, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None
    ) -> tuple[Any, int]:
        # SciPy's right-hand sides may be columns.
        shape = (b.shape[0],) if hasattr(b, "shape") and len(b.shape) == 2 and b.shape[1] == 1 else None
        right = b if shape is None else b.reshape(shape)
        return solvers.linear_solve(_product(A), right, (), method, x0, rtol, atol, maxiter), 0

    return solved


def _product(matrix: Any) -> Function:
    """The product with a matrix, a sparse one, a LinearOperator or whatever has `matvec`, of recorded vectors."""
    if isinstance(matrix, Tensor | np.ndarray):
        return lambda v: matrix @ v
    if hasattr(matrix, "_matvec"):  # a LinearOperator's own function, without its checks of ndarrays
        return lambda v: matrix._matvec(v)
    return lambda v: matrix @ v


def _turned_product(matrix: Any) -> Function:
    """The product with the transposed of what `_product` takes."""
    if hasattr(matrix, "_rmatvec"):
        return lambda v: matrix._rmatvec(v)
    return lambda v: matrix.T @ v


def _fitted(method: str, A: Any, b: Any, damp: Any, x0: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """The fit, and what SciPy says of it: the numbers of its end and of its turns; the norms of the residual, of the
    way from the start, of the gradient and of the solution; and that of the residual with the damping."""
    product, turned = _product(A), _turned_product(A)
    found = linear_fit(method, product, turned, b, A.shape[1], damp, x0, options)
    x = found.x
    rest = b.reshape(-1) - product(x)
    pull = x if x0 is None else x - x0
    slope = turned(rest) - damp * damp * pull
    norms = [np.sqrt(np.sum(one * one)) for one in (rest, pull, slope, x)]
    undamped = not isinstance(damp, Tensor) and damp == 0
    damped = norms[0] if undamped else np.sqrt(norms[0] * norms[0] + damp * damp * norms[1] * norms[1])
    return x, found.status, found.nit, *norms, damped


def _lsqr(
    A: Any,
    b: Any,
    damp: Any = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    iter_lim: int | None = None,
    x0: Any = None,
) -> tuple[Any, ...]:
    options = {"atol": atol, "btol": btol, "conlim": conlim, "iter_lim": iter_lim}
    x, stop, turns, rest, pull, slope, _, damped = _fitted("lsqr", A, b, damp, x0, options)
    # SciPy's last norm is that of the step from x0; the norm and the condition of A are not computed.
    return x, stop, turns, rest, damped, np.nan, np.nan, slope, pull, np.zeros(A.shape[1])


def _lsmr(
    A: Any,
    b: Any,
    damp: Any = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    maxiter: int | None = None,
    x0: Any = None,
) -> tuple[Any, ...]:
    options = {"atol": atol, "btol": btol, "conlim": conlim, "maxiter": maxiter}
    x, stop, turns, _, _, slope, size, damped = _fitted("lsmr", A, b, damp, x0, options)
    return x, stop, turns, damped, slope, np.nan, np.nan, size


TABLE: dict[str, dict[str, Function]] = {
    "scipy.optimize": {
        "root": solvers.root,
        "root_scalar": solvers.root_scalar,
        "brentq": _bracketed("brentq"),
        "brenth": _bracketed("brenth"),
        "ridder": _bracketed("ridder"),
        "bisect": _bracketed("bisect"),
        "toms748": _bracketed("toms748"),
        "newton": solvers.newton,
        "fsolve": _fsolve,
        "fixed_point": solvers.fixed_point,
        "minimize": solvers.minimize,
        "least_squares": solvers.least_squares,
        "curve_fit": solvers.curve_fit,
        **MINIMISERS,
    },
    "scipy.integrate": {
        "solve_ivp": solvers.solve_ivp,
        "odeint": solvers.odeint,
        "solve_bvp": solve_bvp,
        "quad": solvers.quad,
        "quad_vec": solvers.quad_vec,
        "dblquad": iterated_integrals.dblquad,
        "tplquad": iterated_integrals.tplquad,
        "nquad": iterated_integrals.nquad,
    },
    "scipy.sparse.linalg": {
        **{name: _iterative(name) for name in "cg gmres bicgstab minres cgs tfqmr lgmres gcrotmk bicg qmr".split()},
        "lsqr": _lsqr,
        "lsmr": _lsmr,
    },
}
"""By module and name: the function that does the same with derivatives."""


REFUSED: dict[str, tuple[str, str]] = {
    "scipy.optimize": (
        "it finds its result by comparisons. Use the root, minimize or least_squares of nb.solvers, or nb.custom_root.",
        (
            "fmin_cobyla bracket line_search brute direct isotonic_regression linprog milp linear_sum_assignment "
            "quadratic_assignment"
        ),
    ),
    "scipy.interpolate": (
        "its code has none at the abscissae. Use BarycentricInterpolator or make_interp_spline.",
        "FloaterHormannInterpolator AAA",
    ),
}
"""By module, with the reason: functions whose recorded steps would not have the derivative of the result."""


def _refusing(name: str, original: Function, reason: str) -> Function:
    """A function of SciPy's that is called by constants only."""

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is None or not recorded((args, kwargs)):
            return original(*plain(args), **plain(kwargs))
        message = f"{name} has no derivative: {reason}"
        raise ArgumentError(message)

    dispatch.__name__ = dispatch.__qualname__ = original.__name__
    dispatch.__doc__ = f"As `{name}`, of constants."
    return dispatch


def _dispatching(name: str, original: Function, ours: Function) -> Function:
    """A solver of SciPy's that is nbgrad's where something is recorded."""
    theirs, taken = inspect.signature(original), inspect.signature(ours).parameters
    any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is None or not recorded((args, kwargs)):
            return original(*plain(args), **plain(kwargs))
        given = dict(theirs.bind(*args, **kwargs).arguments)
        for further in [name for name in given if theirs.parameters[name].kind is inspect.Parameter.VAR_KEYWORD]:
            given.update(given.pop(further))
        given.update(given.pop("options", {}) if any_name else {})
        for parameter in list(given):
            if parameter in taken or any_name:
                continue
            default = theirs.parameters[parameter].default if parameter in theirs.parameters else None
            value = given.pop(parameter)
            if value is not default and value != default and parameter not in _NEUTRAL:
                message = f"{name} does not take {parameter} in a function that is recorded; leave it away."
                raise ArgumentError(message)
        return ours(**given)

    dispatch.__name__ = dispatch.__qualname__ = original.__name__
    dispatch.__doc__ = f"As `{name}`; in a recorded function, with derivatives."
    return dispatch


_NEUTRAL = frozenset(
    "fprime Dfun col_deriv jac_options disp restart callback_type mxstep full_output maxfev show fun_jac bc_jac".split()
)
"""Parameters that change SciPy's method or what it prints, but not its result."""


@cache
def _found(module: str) -> dict[int, tuple[Any, Any]]:
    """By identity: functions of an imported module, and their replacements."""
    found: dict[int, tuple[Any, Any]] = {}
    for name, ours in TABLE.get(module, {}).items():
        original = getattr(sys.modules[module], name)
        found[id(original)] = original, _dispatching(f"{module}.{name}", original, ours)
    reason, names = REFUSED.get(module, ("", ""))
    for name in names.split():
        if hasattr(sys.modules[module], name):
            original = getattr(sys.modules[module], name)
            found[id(original)] = original, _refusing(f"{module}.{name}", original, reason)
    return found


def replaced_solver(value: Any) -> Any:
    """The replacement of a solver of SciPy's; other objects as they are."""
    for module in {**TABLE, **REFUSED}:
        if hasattr(sys.modules.get(module), "__all__"):
            known = _found(module).get(id(value))
            if known is not None and known[0] is value:
                return known[1]
    return value
