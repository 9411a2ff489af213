"""Functions of arrays as kernels: where a kernel calls one, the one here is taken apart in its place.

In: nothing. Out: `ARRAY_KERNELS`: kernels in plain loops, by NumPy's function and the ranks of its arguments. Called by
array_functions.py, which imports it late, as it needs Numba. Derivatives of all orders follow from the loops, as for
any function that a kernel calls; that a matrix is singular is noticed where the user's own kernel runs, not here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from .algebra_kernels import ALGEBRA_KERNELS
from .counting_kernels import COUNTING_KERNELS
from .decomposition_kernels import DECOMPOSITION_KERNELS
from .forming_kernels import FORMING_KERNELS
from .order_kernels import ORDER_KERNELS


@njit
def _factorized(a, swaps):
    """Gaussian elimination with row exchanges, in place: L below the diagonal, U on it and above."""
    n = a.shape[0]
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        swaps[k] = p
        if p != k:
            for j in range(n):
                held = a[k, j]
                a[k, j] = a[p, j]
                a[p, j] = held
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]


@njit
def _substituted(a, swaps, x):
    """The solution for a right-hand side, in its place."""
    n = a.shape[0]
    for k in range(n):
        held = x[k]
        x[k] = x[swaps[k]]
        x[swaps[k]] = held
    for i in range(1, n):
        total = x[i]
        for j in range(i):
            total = total - a[i, j] * x[j]
        x[i] = total
    for back in range(n):
        i = n - 1 - back
        total = x[i]
        for j in range(i + 1, n):
            total = total - a[i, j] * x[j]
        x[i] = total / a[i, i]


@njit
def _solved_vector(a, b):
    factors = a.copy()
    swaps = np.zeros(a.shape[0], np.int64)
    _factorized(factors, swaps)
    x = b.copy()
    _substituted(factors, swaps, x)
    return x


@njit
def _solved_matrix(a, b):
    factors = a.copy()
    swaps = np.zeros(a.shape[0], np.int64)
    _factorized(factors, swaps)
    found = np.empty((b.shape[0], b.shape[1]), b.dtype)
    for column in range(b.shape[1]):
        x = b[:, column].copy()
        _substituted(factors, swaps, x)
        for i in range(b.shape[0]):
            found[i, column] = x[i]
    return found


@njit
def _inverse(a):
    n = a.shape[0]
    factors = a.copy()
    swaps = np.zeros(n, np.int64)
    _factorized(factors, swaps)
    found = np.empty((n, n), a.dtype)
    for column in range(n):
        x = np.zeros(n, a.dtype)
        x[column] = 1.0
        _substituted(factors, swaps, x)
        for i in range(n):
            found[i, column] = x[i]
    return found


@njit
def _determinant(a):
    factors = a.copy()
    swaps = np.zeros(a.shape[0], np.int64)
    _factorized(factors, swaps)
    found = 1.0
    for k in range(a.shape[0]):
        found = found * factors[k, k]
        if swaps[k] != k:
            found = -found
    return found


@njit
def _cholesky(a):
    n = a.shape[0]
    found = np.zeros((n, n), a.dtype)
    for j in range(n):
        total = a[j, j]
        for k in range(j):
            total = total - found[j, k] * found[j, k]
        found[j, j] = math.sqrt(total)
        for i in range(j + 1, n):
            total = a[i, j]
            for k in range(j):
                total = total - found[i, k] * found[j, k]
            found[i, j] = total / found[j, j]
    return found


@njit
def _norm(a):
    return math.sqrt(np.sum(a * a))


@njit
def _cross(a, b):
    found = np.empty(3, (a * b).dtype)
    found[0] = a[1] * b[2] - a[2] * b[1]
    found[1] = a[2] * b[0] - a[0] * b[2]
    found[2] = a[0] * b[1] - a[1] * b[0]
    return found


@njit
def _outer(a, b):
    found = np.empty((a.shape[0], b.shape[0]), (a[:1] * b[:1]).dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            found[i, j] = a[i] * b[j]
    return found


@njit
def _eye(n):
    found = np.zeros((n, n))
    for i in range(n):
        found[i, i] = 1.0
    return found


@njit
def _cumulated(a):
    found = np.empty(a.shape[0], a.dtype)
    total = 0.0
    for i in range(a.shape[0]):
        total = total + a[i]
        found[i] = total
    return found


@njit
def _trapezoid(y, x):
    total = 0.0
    for i in range(y.shape[0] - 1):
        total = total + 0.5 * (y[i] + y[i + 1]) * (x[i + 1] - x[i])
    return total


@njit
def _evenly_spaced(start, stop, count):
    found = np.empty(count)
    for i in range(count):
        found[i] = start + (stop - start) * i / max(count - 1, 1)
    return found


@njit
def _interpolated(x, knots, values):
    last = knots.shape[0] - 1
    if x <= knots[0]:
        return values[0]
    if x >= knots[last]:
        return values[last]
    k = np.searchsorted(knots, x, side="right") - 1
    return values[k] + (values[k + 1] - values[k]) * (x - knots[k]) / (knots[k + 1] - knots[k])


@njit
def _interpolated_each(x, knots, values):
    found = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        found[i] = _interpolated(x[i], knots, values)
    return found


@njit
def _variance(a):
    away = a - np.mean(a)
    return np.mean(away * away)


@njit
def _deviation(a):
    return math.sqrt(_variance(a))


@njit
def _sum_of_numbers(a):
    total = 0.0
    for x in a.ravel():
        if not math.isnan(x):
            total = total + x
    return total


@njit
def _sums_of_matrix(a, axis):
    if axis == 0:
        found = np.zeros(a.shape[1], a.dtype)
    else:
        found = np.zeros(a.shape[0], a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            found[j if axis == 0 else i] += a[i, j]
    return found


@njit
def _sums_of_three_axes(a, axis):
    if axis == 0:
        found = np.zeros((a.shape[1], a.shape[2]), a.dtype)
    elif axis == 1:
        found = np.zeros((a.shape[0], a.shape[2]), a.dtype)
    else:
        found = np.zeros((a.shape[0], a.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                found[j if axis == 0 else i, j if axis == 2 else k] += a[i, j, k]
    return found


@njit
def _product_of_numbers(a):
    total = 1.0
    for x in a.ravel():
        if not math.isnan(x):
            total = total * x
    return total


@njit
def _count_of_numbers(a):
    count = 0
    for x in a.ravel():
        if not math.isnan(x):
            count += 1
    return count


@njit
def _mean_of_numbers(a):
    return _sum_of_numbers(a) / _count_of_numbers(a)


@njit
def _variance_of_numbers(a):
    mean = _mean_of_numbers(a)
    total = 0.0
    for x in a.ravel():
        if not math.isnan(x):
            total = total + (x - mean) * (x - mean)
    return total / _count_of_numbers(a)


@njit
def _deviation_of_numbers(a):
    return math.sqrt(_variance_of_numbers(a))


@njit
def _largest_number(a):
    found = math.nan
    for x in a.ravel():
        if not found >= x and not math.isnan(x):
            found = x
    return found


@njit
def _smallest_number(a):
    found = math.nan
    for x in a.ravel():
        if not found <= x and not math.isnan(x):
            found = x
    return found


@njit
def _order(a):
    """The positions of the elements from the smallest to the largest, by merging runs; NaN comes last."""
    n = a.shape[0]
    order = np.empty(n, np.int64)
    merged = np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            stop = min(start + 2 * width, n)
            i = start
            j = middle
            for k in range(start, stop):
                if i < middle and (j >= stop or a[order[i]] <= a[order[j]] or math.isnan(a[order[j]])):
                    merged[k] = order[i]
                    i += 1
                else:
                    merged[k] = order[j]
                    j += 1
        for k in range(n):
            order[k] = merged[k]
        width *= 2
    return order


@njit
def _sorted(a):
    order = _order(a)
    found = np.empty(a.shape[0], a.dtype)
    for k in range(a.shape[0]):
        found[k] = a[order[k]]
    return found


@njit
def _median(a):
    flat = a.ravel()
    order = _order(flat)
    n = flat.shape[0]
    return 0.5 * (flat[order[(n - 1) // 2]] + flat[order[n // 2]])


@njit
def _range(a):
    flat = a.ravel()
    smallest = flat[0]
    largest = flat[0]
    for x in flat:
        smallest = min(smallest, x)
        largest = max(largest, x)
    return largest - smallest


@njit
def _equal_vectors(a, b):
    if a.shape[0] != b.shape[0]:
        return False
    for i in range(a.shape[0]):  # noqa: SIM110 - Numba takes no generators
        if a[i] != b[i]:
            return False
    return True


@njit
def _equal_matrices(a, b):
    if a.shape[0] != b.shape[0] or a.shape[1] != b.shape[1]:
        return False
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] != b[i, j]:
                return False
    return True


@njit
def _flipped(a):
    return a[::-1]


OF_COMPLEX = (np.linalg.solve, np.linalg.inv, np.linalg.det, np.trace, np.cumsum, np.diff, np.roll, np.flip, np.diag)
"""The functions whose kernels hold for complex numbers too."""
ARRAY_KERNELS: dict[tuple[Any, tuple[int | None, ...]], Any] = {
    **ALGEBRA_KERNELS,
    **COUNTING_KERNELS,
    **DECOMPOSITION_KERNELS,
    **FORMING_KERNELS,
    **ORDER_KERNELS,
    (np.linalg.solve, (2, 1)): _solved_vector,
    (np.linalg.solve, (2, 2)): _solved_matrix,
    (np.linalg.inv, (2,)): _inverse,
    (np.linalg.det, (2,)): _determinant,
    (np.linalg.cholesky, (2,)): _cholesky,
    (np.linalg.norm, (1,)): _norm,
    (np.cross, (1, 1)): _cross,
    (np.outer, (1, 1)): _outer,
    (np.identity, (0,)): _eye,
    (np.cumsum, (1,)): _cumulated,
    (getattr(np, "trapezoid", None) or np.trapz, (1, 1)): _trapezoid,  # type: ignore[attr-defined]
    (np.linspace, (0, 0, 0)): _evenly_spaced,
    (np.interp, (0, 1, 1)): _interpolated,
    (np.interp, (1, 1, 1)): _interpolated_each,
    **{
        (function, (ndim,)): kernel
        for function, kernel in {
            np.nansum: _sum_of_numbers,
            np.nanprod: _product_of_numbers,
            np.nanmean: _mean_of_numbers,
            np.nanvar: _variance_of_numbers,
            np.nanstd: _deviation_of_numbers,
            np.nanmax: _largest_number,
            np.nanmin: _smallest_number,
            np.median: _median,
            np.ptp: _range,
        }.items()
        for ndim in (1, 2, 3)
    },
    (np.sum, (2, 0)): _sums_of_matrix,
    (np.sum, (3, 0)): _sums_of_three_axes,
    (np.sort, (1,)): _sorted,
    (np.array_equal, (1, 1)): _equal_vectors,
    (np.array_equal, (2, 2)): _equal_matrices,
    (np.flip, (1,)): _flipped,
    **{(np.var, (ndim,)): _variance for ndim in (1, 2, 3)},
    **{(np.std, (ndim,)): _deviation for ndim in (1, 2, 3)},
}
"""Kernels by function and the ranks of all arguments, 0 for numbers."""
