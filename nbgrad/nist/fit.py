"""Fitting a dataset with SciPy and nbgrad's Jacobian.

In: a dataset and one of its starting points. Out: a `Fit`. Called by report.py. SciPy's Levenberg-Marquardt goes from
the start to the minimum. It compares sums of squares, which are flat there, and so stops at half of the digits that
float64 has; Gauss-Newton steps, which ask only where the projected residual vanishes, find the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from .datasets import Dataset
from .jacobian import Jacobian

TOLERANCE = 1e-15
MOST_STEPS = 100


@dataclass(frozen=True)
class Fit:
    """Parameters found from one starting point, and how much work it was."""

    start: int
    parameters: np.ndarray
    residual_sum_of_squares: float
    evaluations: int
    steps: int


def fit(dataset: Dataset, jacobian: Jacobian, start: int) -> Fit:
    """Fit a dataset from its starting point number `start`, counted from 0."""
    x, y = dataset.x, dataset.y
    found = least_squares(
        lambda b: dataset.model(b, x) - y,
        dataset.starts[start],
        jac=lambda b: jacobian(b, x),  # pyright: ignore[reportArgumentType] (SciPy's stub names strings only)
        method="lm",
        ftol=TOLERANCE,
        xtol=TOLERANCE,
        gtol=TOLERANCE,
    )
    b, steps = refine(dataset, jacobian, found.x)
    residual = dataset.model(b, x) - y
    return Fit(start, b, float(residual @ residual), int(found.nfev), steps)


def refine(dataset: Dataset, jacobian: Jacobian, b: np.ndarray) -> tuple[np.ndarray, int]:
    """Gauss-Newton steps until they are rounding noise, or do not become shorter; the parameters and their number."""
    shortest = np.inf
    for steps in range(MOST_STEPS):
        scaled = jacobian(b, dataset.x) * b
        residual = dataset.y - dataset.model(b, dataset.x)
        if not (np.all(np.isfinite(scaled)) and np.all(np.isfinite(residual))):
            return b, steps
        change = np.linalg.lstsq(scaled, residual, rcond=None)[0]
        length = float(np.max(np.abs(change)))
        if length >= shortest or length < 4 * np.finfo(np.float64).eps:
            return b, steps
        shortest = length
        b = b * (1 + change)
    return b, MOST_STEPS
