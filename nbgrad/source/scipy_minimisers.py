"""Functions of `scipy.optimize` that are named after an algorithm, in code that `differentiable_source` runs.

In: SciPy's arguments, with functions that may close over recorded values. Out: what SciPy's function gives, with
derivatives. Called by scipy_solvers.py, whose table has them. Minima are found by `minimize` with the same algorithm or
by the function itself, roots by `root`; gradients that are given are left aside, where nbgrad has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import numpy as np
from .. import solvers
from ..errors import ArgumentError
from ..solvers.implicit import Solution, float_node, option_key
from ..solvers.minimisers import ends_of
from ..solvers.other_minimisers import basin_hopping, global_minimum, minimiser

Function = Callable[..., Any]


_CONSTRAINTS = frozenset("eqcons f_eqcons ieqcons f_ieqcons cons consargs".split())


def _alone(name: str, given: dict[str, Any]) -> None:
    for wanted in [one for one in ("full_output", "retall") if given.get(one)]:
        message = f"{name} gives its result alone in a function that is recorded: leave {wanted} away."
        raise ArgumentError(message)


def _fmin(name: str, first: str, method: str, options: dict[str, str]) -> Function:
    """A function that SciPy calls as `minimize` with a method; `options` has its parameters as options of that."""

    def minimum(**given: Any) -> Any:
        _alone(name, given)
        if any(one in _CONSTRAINTS and value for one, value in given.items()):
            message = f"{name} takes no constraints in a function that is recorded: take minimize with constraints."
            raise ArgumentError(message)
        chosen = {options[one]: value for one, value in given.items() if one in options and value is not None}
        if "factr" in given:
            chosen["ftol"] = given["factr"] * float(np.finfo(np.float64).eps)
        # Without a function for it, these two take the gradient from the function itself.
        pair = name in _OF_PAIRS and given.get("fprime") is None and not given.get("approx_grad")
        found = solvers.minimize(
            given[first],
            given["x0"],
            given.get("args", ()),
            method,
            jac=True if pair else None,
            bounds=given.get("bounds") or None,
            options=chosen,
        )
        if name == "fmin_l_bfgs_b":
            return found.x, found.fun, {"grad": found.jac, "nit": found.nit, "funcalls": found.nfev}
        return (found.x, found.nfev, found.status) if name == "fmin_tnc" else found.x

    return minimum


_OF_PAIRS = ("fmin_l_bfgs_b", "fmin_tnc")
_COUNT = {"maxiter": "maxiter"}
_FMIN: dict[str, tuple[str, str, dict[str, str]]] = {
    "fmin": ("func", "Nelder-Mead", {"xtol": "xatol", "ftol": "fatol", "maxfun": "maxfev", **_COUNT}),
    "fmin_powell": ("func", "Powell", {"xtol": "xtol", "ftol": "ftol", "maxfun": "maxfev", **_COUNT}),
    "fmin_bfgs": ("f", "BFGS", {"gtol": "gtol", "norm": "norm", **_COUNT}),
    "fmin_cg": ("f", "CG", {"gtol": "gtol", "norm": "norm", **_COUNT}),
    "fmin_ncg": ("f", "Newton-CG", {"avextol": "xtol", **_COUNT}),
    "fmin_l_bfgs_b": ("func", "L-BFGS-B", {"pgtol": "gtol", "maxfun": "maxfun", "m": "maxcor", **_COUNT}),
    "fmin_tnc": ("func", "TNC", {"ftol": "ftol", "xtol": "xtol", "pgtol": "gtol", "maxfun": "maxfun"}),
    "fmin_slsqp": ("func", "SLSQP", {"iter": "maxiter", "acc": "ftol"}),
}
"""By name: the first parameter of SciPy's, the method, and options of that by SciPy's parameters."""


def _scalar(method: str) -> Function:
    def minimum(func: Function, args: Any = (), brack: Any = None, **given: Any) -> Any:
        _alone(method, given)
        chosen = {"xtol": given["tol"]} if "tol" in given else {}
        if "maxiter" in given:
            chosen["maxiter"] = given["maxiter"]
        return solvers.minimize_scalar(func, brack, None, args, method, options=chosen).x

    return minimum


def _fminbound(func: Function, x1: Any, x2: Any, args: Any = (), **given: Any) -> Any:
    _alone("fminbound", given)
    chosen = {"xatol": given["xtol"]} if "xtol" in given else {}
    if "maxfun" in given:
        chosen["maxiter"] = given["maxfun"]
    return solvers.minimize_scalar(func, None, (x1, x2), args, "bounded", options=chosen).x


def _global(name: str) -> Function:
    def minimum(func: Function, bounds: Any, args: Any = (), **given: Any) -> Any:
        if given.get("constraints") not in (None, ()) or given.get("integrality") is not None:
            message = f"{name} takes no constraints and no integers in a function that is recorded."
            raise ArgumentError(message)
        return global_minimum(name, func, bounds, args, given)

    return minimum


def _basinhopping(func: Function, x0: Any, **given: Any) -> Any:
    of_minimiser = dict(given.get("minimizer_kwargs") or {})
    args = of_minimiser.pop("args", ())
    given["minimizer_kwargs"] = {one: value for one, value in of_minimiser.items() if one not in ("jac", "hess")}
    return basin_hopping(func, x0, args, given)


_ITERATIONS = {"f_tol": "fatol", "f_rtol": "ftol", "x_tol": "xatol", "x_rtol": "xtol", "iter": "nit"}


def _large_root(method: str) -> Function:
    def found(F: Function, xin: Any, **given: Any) -> Any:
        chosen = {_ITERATIONS.get(one, one): value for one, value in given.items() if value is not None}
        kept = ("fatol", "ftol", "xatol", "xtol", "nit", "maxiter", "line_search")
        return solvers.root(F, xin, method=method, options={one: chosen[one] for one in kept if one in chosen}).x

    return found


def _leastsq(func: Function, x0: Any, args: Any = (), **given: Any) -> Any:
    _alone("leastsq", given)
    chosen = {one: given[one] for one in ("ftol", "xtol", "gtol") if given.get(one)}
    found = solvers.least_squares(func, x0, args=args, method="lm", **chosen)
    return found.x, found.status


def _distance(A: Any, b: Any) -> Function:
    return lambda x: np.sum((A @ x - b) ** 2) * 0.5


def _nnls(A: Any, b: Any, **given: Any) -> Any:
    x = _bounded_fit("nnls", A, b, (0.0, np.inf), given, lambda found: found[0]).x
    return x, np.sqrt(np.sum((A @ x - b) ** 2))


def _lsq_linear(A: Any, b: Any, bounds: Any = (-np.inf, np.inf), **given: Any) -> Any:
    if hasattr(bounds, "lb"):
        bounds = (bounds.lb, bounds.ub)
    found = _bounded_fit("lsq_linear", A, b, bounds, given, lambda found: found.x)
    fields = {name: found[name] for name in ("success", "status", "message", "nit")}
    return Solution("lsq_linear", {"x": found.x, "fun": A @ found.x - b, "cost": found.fun, **fields})


def _bounded_fit(name: str, A: Any, b: Any, bounds: Any, options: dict[str, Any], pick: Function) -> Any:
    matrix, right = float_node(A, f"A of {name}()"), float_node(b, f"b of {name}()")
    count = matrix.shape[1]
    ends = ends_of(bounds, count, name)

    def call(value: Function, given: list[Any]) -> Any:
        import scipy.optimize

        low, high, a, target = given
        limits = {"bounds": (low, high)} if name == "lsq_linear" else {}
        found = pick(getattr(scipy.optimize, name)(a, target, **limits, **options))
        return scipy.optimize.OptimizeResult(x=found, success=True, status=1, message="")

    return minimiser(
        name, _distance(A, b), (), (count,), [*ends, matrix, right], option_key(options), call, bounded=True
    )


MINIMISERS: dict[str, Function] = {
    **{name: _fmin(name, *row) for name, row in _FMIN.items()},
    **{name: _global(name) for name in ("differential_evolution", "dual_annealing", "shgo")},
    **{
        name: _large_root(name) for name in "anderson broyden1 broyden2 diagbroyden excitingmixing linearmixing".split()
    },
    "newton_krylov": _large_root("krylov"),
    "minimize_scalar": solvers.minimize_scalar,
    "fminbound": _fminbound,
    "brent": _scalar("brent"),
    "golden": _scalar("golden"),
    "basinhopping": _basinhopping,
    "leastsq": _leastsq,
    "nnls": _nnls,
    "lsq_linear": _lsq_linear,
}
"""By name in `scipy.optimize`: the function that does the same with derivatives."""
