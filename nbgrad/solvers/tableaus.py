"""Coefficients of Runge-Kutta methods, in one form for all: SciPy's explicit ones, and Radau's collocation.

In: the name of a method of `scipy.integrate.solve_ivp`. Out: a `Tableau`; and Radau's coefficients as
constants. Called by replayed_steps.py and stepping.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

EXPLICIT = ("RK23", "RK45", "DOP853")
IMPLICIT = ("Radau", "BDF", "LSODA")


@dataclass(frozen=True)
class Tableau:
    """An explicit method: stage k is f(t + c[k] h, y + h a[k] K), the step y + h b K.

    Within the step, the solution is y + h sum of x^(j + 1) (p[:, j] K) at the part x of it. An error is taken to the
    power of the exponent for the next size.
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    p: np.ndarray
    exponent: float


@cache
def tableau(method: str, dense: bool = True) -> Tableau:
    """The coefficients of one of SciPy's explicit methods, with the stages that its dense output takes, or without."""
    from scipy import integrate

    known: Any = getattr(integrate, method)
    stages = known.n_stages
    exponent = -1 / (known.error_estimator_order + 1)
    more = getattr(known, "A_EXTRA", np.zeros((0, 0))) if dense else np.zeros((0, 0))
    count = stages + 1 + len(more)
    a, b, c = np.zeros((count, count)), np.zeros(count), np.ones(count)
    a[:stages, : known.A.shape[1]] = known.A[:stages]
    a[stages, :stages] = b[:stages] = known.B
    c[:stages] = known.C[:stages]
    if not len(more):
        return Tableau(a, b, c, np.array(known.P) if dense else np.zeros((count, 0)), exponent)
    a[stages + 1 :, : more.shape[1]] = more
    c[stages + 1 :] = known.C_EXTRA
    first, last = np.eye(count)[0], np.eye(count)[stages]
    # Hairer, Norsett and Wanner, "Solving Ordinary Differential Equations I", 1993, II.6: the rows multiply x,
    # x (1 - x), x^2 (1 - x), and so on.
    rows = np.vstack([b, first - b, 2 * b - last - first, known.D])
    x = np.polynomial.Polynomial([0.0, 1.0])
    basis, factor = [], x
    for k in range(len(rows)):
        basis.append(factor)
        factor = factor * ((1 - x) if k % 2 == 0 else x)
    powers = np.zeros((len(rows), len(rows)))
    for k, polynomial in enumerate(basis):
        powers[k, : len(polynomial.coef) - 1] = polynomial.coef[1:]
    return Tableau(a, b, c, rows.T @ powers, exponent)


_ROOT = 6**0.5
RADAU_NODES = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0])
"""The nodes of Radau IIA with three stages: Hairer and Wanner, "Solving Ordinary Differential Equations II", 1996."""
_POWERS = RADAU_NODES[:, None] ** np.arange(1, 4)
RADAU_DENSE = np.linalg.inv(_POWERS)
"""From the stages to the coefficients of x, x^2 and x^3 of the collocation polynomial."""
RADAU_MATRIX = _POWERS @ np.diag(1 / np.arange(1.0, 4.0)) @ np.linalg.inv(RADAU_NODES[:, None] ** np.arange(3))
"""The integrals of the basis polynomials: stages are h times this matrix times the slopes at the nodes."""
