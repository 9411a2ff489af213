"""Boundary value problems by `scipy.integrate.solve_bvp`, with derivatives.

In: SciPy's arguments, with functions that may close over recorded values. Out: SciPy's fields, differentiated by all
that the functions close over. Called by scipy_solvers.py of nbgrad.source.

SciPy chooses the mesh, for given values; on that mesh the solution is a root of the equations of collocation, whose
derivative is that of an implicit function. J. Kierzenka and L. F. Shampine, "A BVP Solver Based on Residual Control and
the MATLAB PSE", 2001. The system for derivatives is solved with the full matrix of all unknowns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import numpy as np
from ..errors import ArgumentError, TracedValueError
from ..graph.ir import constant
from ..record.tensor import Tensor
from ..runtime.evaluate import concrete
from ..scipy.interpolation.piecewise import CubicHermiteSpline
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .closed_functions import ClosedFunction, as_float, one_output, recorded
from .host_solves import ConvergenceError
from .implicit import Solution, as_scipy, custom_root, float_node

TITLE = "solve_bvp"
Function = Callable[..., Any]


class _OfAnyShape:
    """A function of recorded values as one of plain arrays, recorded once for each of the shapes that it is called
    with."""

    def __init__(self, fn: Function, name: str, like_second: bool) -> None:
        self.fn, self.name, self.like_second = fn, name, like_second
        self._made: dict[Any, tuple[ClosedFunction, list[Any]]] = {}

    def __call__(self, *arrays: Any) -> Any:
        given = [as_float(one) for one in arrays]
        shapes = tuple([one.shape for one in given])
        if shapes not in self._made:
            shape = shapes[1] if self.like_second else None
            expected = one_output(self.name, TITLE, shape)
            function, captured = recorded(self._stacked, [constant(one) for one in given], TITLE, expected)
            self._made[shapes] = function, [_known(node) for node in captured]
        function, values = self._made[shapes]
        return function.call(*given, *values)[0]

    def _stacked(self, *arrays: Any) -> Any:
        return np.asarray(self.fn(*arrays)) * 1.0


def _known(node: Any) -> Any:
    try:
        return np.asarray(concrete(node, "array")).asnumpy()
    except TracedValueError as error:
        message = f"In jit and vmap, {TITLE}() does not know how many points its mesh has. Call it outside of these."
        raise TracedValueError(message) from error


def solve_bvp(
    fun: Function,
    bc: Function,
    x: Any,
    y: Any,
    p: Any = None,
    S: Any = None,
    tol: float = 1e-3,
    max_nodes: int = 1000,
    verbose: int = 0,
    bc_tol: float | None = None,
) -> Solution:
    """The solution of y' = f(x, y, p) with conditions at both ends, as `scipy.integrate.solve_bvp` finds it.

    Parameters
    ----------
    fun, bc : callable
        `fun(x, y)` or `fun(x, y, p)`, and `bc(ya, yb)` or `bc(ya, yb, p)`. They may close over recorded values.
    x, y, p : array_like
        The first mesh and guesses, which are without derivatives.
    S : None
        Singular terms are not taken.
    tol, max_nodes, verbose, bc_tol
        As for SciPy.

    Returns
    -------
    Solution
        With SciPy's fields `sol`, `p`, `x`, `y`, `yp`, `rms_residuals`, `niter`, `status`, `message` and `success`.

    Raises
    ------
    ArgumentError
        For a singular term.
    TracedValueError
        In `jit` and `vmap`.
    ConvergenceError
        If SciPy has not converged.
    """
    if S is not None:
        message = f"{TITLE}() takes no singular term S in a function that is recorded."
        raise ArgumentError(message)
    check_function(fun, TITLE)
    check_function(bc, TITLE)
    guesses = [_known(float_node(one, f"{name} of {TITLE}()")) for name, one in (("x", x), ("y", y))]
    parameters = None if p is None else _known(float_node(p, f"p of {TITLE}()"))
    inside, ends = _OfAnyShape(fun, name_of(fun), True), _OfAnyShape(bc, name_of(bc), False)

    def run() -> Any:
        from scipy.integrate import solve_bvp as of_scipy

        routine: Any = of_scipy
        options = {"tol": tol, "max_nodes": max_nodes, "verbose": verbose, "bc_tol": bc_tol}
        return routine(inside, ends, *guesses, parameters, **options)

    found = as_scipy(TITLE, "", run)
    if not found.success:
        message = f"{TITLE}() has not converged: {found.message}"
        raise ConvergenceError(message)
    mesh, steps = found.x, found.x[1:] - found.x[:-1]
    size, count = found.y.size, 0 if parameters is None else parameters.size
    middles = mesh[:-1] + 0.5 * steps

    def parts(z: Any) -> tuple[Any, tuple[Any, ...]]:
        return np.reshape(z[:size], found.y.shape), (z[size:],) if count else ()

    def equations(z: Any) -> Any:
        values, more = parts(z)
        slopes = np.asarray(fun(mesh, values, *more))
        middle = 0.5 * (values[:, 1:] + values[:, :-1]) - 0.125 * steps * (slopes[:, 1:] - slopes[:, :-1])
        between = np.asarray(fun(middles, middle, *more))
        defects = values[:, 1:] - values[:, :-1] - steps / 6 * (slopes[:, :-1] + slopes[:, 1:] + 4 * between)
        return np.concatenate([defects.reshape(-1), np.asarray(bc(values[:, 0], values[:, -1], *more)).reshape(-1)])

    first = np.concatenate([found.y.reshape(-1), *([found.p] if count else [])]).asnumpy()
    # An iteration does not converge: the equations carry values over the whole mesh.
    root = custom_root(equations, first, lambda _, start: start, linear_solver="dense")
    values, more = parts(root if isinstance(root, Tensor) else np.asarray(root))
    slopes = np.asarray(fun(mesh, values, *more))
    solution = CubicHermiteSpline(mesh, values, slopes, axis=1)
    fields = {"sol": solution, "p": more[0] if more else None, "x": mesh, "y": values, "yp": slopes}
    kept = ("rms_residuals", "niter", "status", "message", "success")
    return Solution(TITLE, {**fields, **{name: found[name] for name in kept}})
