"""Linear least squares by products with a matrix: SciPy's `lsqr` and `lsmr`, with derivatives.

In: functions that multiply by a matrix and by its transposed one, a right-hand side, a damping. Out: the fit with
SciPy's fields, differentiated by all that the functions close over. Called by scipy_solvers.py of nbgrad.source.

The fit x has A^T (A x - b) + damp**2 (x - x0) = 0. Without damping, of more unknowns than equations, it is the shortest
one: x = x0 + A^T y with A A^T y = b - A x0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..graph.builders import reshape
from ..graph.ir import Node, constant
from ..record.as_node import wrap
from .closed_functions import ClosedFunction, as_float, one_output, recorded
from .host_solves import HostSolve
from .implicit import ImplicitRule, Solution, as_scipy, float_node, linear_way, option_key, solution

FIELDS = ("success", "status", "message", "nit")
_GOOD = (0, 1, 2, 4, 5)
"""Numbers of ends at which SciPy has found a fit; the others say that conditions or turns are too many."""
_ALL_TURNS, _NEAR = 7, 1e-8
"""After all turns a fit counts whose gradient or residual is as small as this, whatever tolerance was asked for."""
_REASONS = "the matrix has nearly dependent columns, or the turns do not suffice"


def linear_fit(
    method: str,
    product: Callable[[Any], Any],
    turned: Callable[[Any], Any],
    b: Any,
    count: int,
    damp: Any,
    x0: Any,
    options: Mapping[str, Any],
) -> Solution:
    """The vector x of `count` elements for which norm(A x - b)**2 + norm(damp (x - x0))**2 is least.

    Parameters
    ----------
    method : {"lsqr", "lsmr"}
    product, turned : callable
        A v and A^T u, of vectors. They may close over recorded values.
    b, damp, x0 : array_like
        They may be recorded; x0 may be None.
    count : int
    options : dict
        SciPy's.

    Returns
    -------
    Solution
        With the fields `x`, `success`, `status` (SciPy's `istop`) and `nit`.

    Raises
    ------
    ShapeError
        If b does not fit.
    MatrixError, ConvergenceError
        If a derivative is asked for where the columns of A are not independent, or SciPy has not converged.
    """
    given = float_node(b, f"b of {method}()")
    right = reshape(given, (given.size,))
    start = constant(np.zeros(count)) if x0 is None else float_node(x0, f"x0 of {method}()")
    if start.shape != (count,):
        message = f"x0 of {method}() must have shape ({count},), but has shape {start.shape}."
        raise ShapeError(message)
    damping = float_node(damp, f"damp of {method}()")
    shortest = right.size < count and not damping.traced and not np.asarray(damp).any()
    rows, values = recorded(lambda x: product(x), [start], method, one_output("the product", method, right.shape))

    def equations(x: Any) -> Any:
        if shortest:
            return product(wrap(start) + turned(x)) - wrap(right)
        weight = wrap(damping)
        return turned(product(x) - wrap(right)) + weight * weight * (x - wrap(start))

    unknown = right if shortest else start
    residual, captured = recorded(equations, [unknown], method, one_output("the product", method, unknown.shape))
    found = _solved(method, residual, captured, rows, values, (right, start, damping), options)
    return Solution(method, {**found, "x": wrap(start) + turned(found.x)}) if shortest else found


def _solved(
    method: str,
    residual: ClosedFunction,
    captured: list[Node],
    rows: ClosedFunction,
    values: list[Node],
    given: tuple[Node, Node, Node],
    options: Mapping[str, Any],
) -> Solution:
    """The root of the residual that SciPy's iteration with the matrix of `rows` finds: the fit, or, if the residual has
    as many unknowns as there are rows, y in x = start + A^T y."""
    count, unknowns, turned = rows.variables[0].size, residual.variables[0].size, rows.cotangent()

    def run(b: np.ndarray, start: np.ndarray, damp: np.ndarray, *rest: np.ndarray) -> tuple[Any, dict[str, Any]]:
        from scipy.sparse import linalg

        routines: Any = linalg
        anywhere = np.zeros(count)
        operator = routines.LinearOperator(
            (b.size, count),
            matvec=lambda v: rows.program()(as_float(v).reshape(-1), *rest)[0],
            rmatvec=lambda u: turned.program()(as_float(u).reshape(-1), anywhere, *rest)[0],
            dtype=b.dtype,
        )
        fit = getattr(routines, method)
        found = as_scipy(method, host.place, lambda: fit(operator, b, float(damp), x0=start, **options))
        x, stop, turns = found[:3]
        norm, slope, of_matrix = (found[4], found[7], found[5]) if method == "lsqr" else found[3:6]
        near = slope <= _NEAR * of_matrix * norm or norm <= _NEAR * np.linalg.norm(b)
        good = (stop in _GOOD or (stop == _ALL_TURNS and near)) and bool(np.isfinite(x).all())
        if unknowns != count:
            x = fit(operator.T, x - start, atol=1e-15, btol=1e-15, conlim=0.0)[0]
        return x, {"success": good, "status": stop, "message": "" if good else _REASONS, "nit": turns}

    inputs = [*given, *values]
    key = ("linear fit", method, residual, rows, option_key(options))
    host = HostSolve(method, key, [node.ndim for node in inputs], (unknowns,), FIELDS, run)
    way = linear_way(None, unknowns)
    x, fields, _ = solution(host, inputs, lambda: ImplicitRule(method, residual, way), captured, plain=False)
    return Solution(method, {"x": x, **fields})
