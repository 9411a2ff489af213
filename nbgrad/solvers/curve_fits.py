"""Fits of curves to data by `curve_fit`, with derivatives by the data.

In: a curve with parameters, and data, with SciPy's arguments. Out: the best parameters and their covariance, as
least squares (minimisers.py) and the Jacobian there give them. Called by users.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..numpy import linalg
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from ..transforms.jacobians import jacfwd
from .minimisers import least_squares


def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    bounds: Any = (-np.inf, np.inf),
    method: str | None = None,
    ftol: float = 1e-8,
    xtol: float = 1e-8,
    gtol: float = 1e-8,
) -> tuple[Any, Any]:
    """The parameters that fit a curve to data best, by `scipy.optimize.least_squares`, with derivatives.

    Parameters
    ----------
    f : callable
        `f(xdata, *parameters)` gives the values of the curve.
    xdata : array_like or object
        Given to `f`.
    ydata : array_like, shape (m,)
        The data.
    p0 : array_like, optional
        The start; ones by default.
    sigma : array_like, shape (m,), optional
        The uncertainty of each datum.
    absolute_sigma : bool
        Whether the covariance is that of `sigma` as it is, or scaled by the residuals.
    bounds : pair of array_like
        As for `least_squares`.
    method : {"lm", "trf", "dogbox"}, optional
        "lm" without bounds, "trf" with.
    ftol, xtol, gtol : float
        As for `least_squares`.

    Returns
    -------
    popt : array, shape (n,)
        The parameters.
    pcov : array, shape (n, n)
        Their covariance.

    Raises
    ------
    ArgumentError
        If the number of parameters cannot be seen, or there are more than data.
    ShapeError
        If `sigma` is no vector.
    MatrixError, ConvergenceError, DtypeError, TracedValueError
        As `least_squares`.

    Notes
    -----
    The covariance is inv(J^T J), times the sum of squares over m - n unless `absolute_sigma`, as SciPy's.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> x = np.linspace(0.0, 1.0, 5)
    >>> def line(x, a, b):
    ...     return a + b * x
    >>> popt, pcov = nb.solvers.curve_fit(line, x, 1.0 + 2.0 * x)
    >>> np.allclose(popt, [1.0, 2.0])
    True
    >>> slopes = nb.grad(lambda y: nb.solvers.curve_fit(line, x, y)[0][1])(1.0 + 2.0 * x)
    >>> np.allclose(slopes, [-0.8, -0.4, 0.0, 0.4, 0.8])
    True
    """
    title = "curve_fit"
    check_function(f, title)
    if p0 is None:
        p0 = np.ones(_parameters(f))
    count, data = int(np.size(p0)), int(np.size(ydata))
    if count > data:
        message = f"curve_fit() has {count} parameters, but only {data} data."
        raise ArgumentError(message)
    if sigma is not None and np.ndim(sigma) > 1:
        message = f"sigma of curve_fit() must have one axis, but has shape {np.shape(sigma)}: whiten the data instead."
        raise ShapeError(message)

    def residuals(p: Any) -> Any:
        rest = f(xdata, *[p[k] for k in range(count)]) - ydata
        return rest if sigma is None else rest / sigma

    residuals.__name__ = name_of(f)
    free = isinstance(bounds, tuple) and all(np.ndim(end) == 0 and np.isinf(end) for end in bounds)
    way = method or ("lm" if free else "trf")
    found = least_squares(residuals, p0, bounds=bounds, method=way, ftol=ftol, xtol=xtol, gtol=gtol)
    jacobian = jacfwd(residuals)(found.x)
    covariance = linalg.inv(jacobian.T @ jacobian)
    if not absolute_sigma:
        covariance = covariance * (2 * found.cost / (data - count) if data > count else np.inf)
    return found.x, np.asarray(covariance) if isinstance(found.x, np.ndarray) else covariance


def _parameters(f: Callable[..., Any]) -> int:
    """The number of parameters of a curve: of its arguments but the first."""
    kinds = [one.kind for one in inspect.signature(f).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds or len(kinds) < 2:
        message = f"curve_fit() cannot see how many parameters {name_of(f)}() has: give a start by p0."
        raise ArgumentError(message)
    return len(kinds) - 1
