"""Jacobians of a model by its parameters: nbgrad's, and those that it is measured against.

In: a dataset, and nbgrad's Jacobian of its model. Out: a `Comparison` of errors and times. Called by report.py. The
reference is the complex-step derivative, Im f(b + ih) / h: it subtracts nothing, so with a tiny h it is exact to
rounding (Squire and Trapp 1998), and it needs nothing but NumPy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from .datasets import Dataset
from .models import Model

Jacobian = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(b of shape (p,), x of shape (n,)) -> shape (n, p)."""


@dataclass(frozen=True)
class Comparison:
    """Worst relative errors against the complex step, and seconds for one Jacobian."""

    error: float
    error_of_differences: float
    seconds: float
    seconds_of_differences: float


def complex_step(model: Model, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The Jacobian by complex steps."""
    step = 1e-30
    columns: list[np.ndarray] = []
    for k in range(b.size):
        moved = b.astype(complex)
        moved[k] += 1j * step
        columns.append(model(moved, x).imag / step)
    return np.stack(columns, axis=1)


def central_differences(model: Model, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The Jacobian by central differences, with the step that balances truncation and rounding."""
    columns: list[np.ndarray] = []
    for k in range(b.size):
        step = np.cbrt(np.finfo(b.dtype).eps) * max(abs(b[k]), 1e-8)
        above, below = b.copy(), b.copy()
        above[k] += step
        below[k] -= step
        columns.append((model(above, x) - model(below, x)) / (above[k] - below[k]))
    return np.stack(columns, axis=1)


def relative_error(found: np.ndarray, reference: np.ndarray) -> float:
    """The worst relative error of an element; infinite if one is not finite."""
    if found.shape != reference.shape or not np.all(np.isfinite(found)):
        return float("inf")
    size = np.where(reference == 0, np.max(np.abs(reference)), np.abs(reference))
    return float(np.max(np.abs(found - reference) / np.where(size == 0, 1.0, size)))


def seconds_of(call: Callable[[], object], budget: float = 0.05) -> float:
    """Seconds for one call: the best of five rounds that take `budget` together."""
    call()
    once = _round(call, 1)
    count = max(1, int(budget / 5 / max(once, 1e-7)))
    return min(_round(call, count) for _ in range(5))


def _round(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def compare(dataset: Dataset, jacobian: Jacobian, points: Iterable[np.ndarray]) -> Comparison:
    """Compare Jacobians at several parameter vectors; time them at the certified one."""
    model, x = dataset.model, dataset.x
    error = error_of_differences = 0.0
    for b in points:
        reference = complex_step(model, b, x)
        error = max(error, relative_error(jacobian(b, x), reference))
        error_of_differences = max(error_of_differences, relative_error(central_differences(model, b, x), reference))
    b = dataset.certified
    return Comparison(
        error,
        error_of_differences,
        seconds_of(lambda: jacobian(b, x)),
        seconds_of(lambda: central_differences(model, b, x)),
    )
