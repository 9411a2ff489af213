"""Functions of matrices, of powers and of whole arrays as kernels, as those of array_kernels.py.

In: nothing. Out: `ALGEBRA_KERNELS`: kernels in plain loops, by NumPy's function and the ranks of its arguments. Called
by array_kernels.py, whose table has them too. The signs of factors are those of LAPACK's routines.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit
def _lower(a, k=0):
    found = np.zeros((a.shape[0], a.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if j - i <= k:
                found[i, j] = a[i, j]
    return found


@njit
def _upper(a, k=0):
    found = np.zeros((a.shape[0], a.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if j - i >= k:
                found[i, j] = a[i, j]
    return found


@njit
def _kronecker(a, b):
    n, m = b.shape[0], b.shape[1]
    found = np.empty((a.shape[0] * n, a.shape[1] * m), (a[:1, :1] * b[:1, :1]).dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(n):
                for m_ in range(m):
                    found[i * n + k, j * m + m_] = a[i, j] * b[k, m_]
    return found


@njit
def _power_of_matrix(a, n):
    found = np.zeros((a.shape[0], a.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        found[i, i] = 1.0
    base = np.linalg.inv(a) if n < 0 else a.copy()
    for _ in range(abs(n)):
        found = found @ base
    return found


@njit
def _reflected(a, scales):
    """LAPACK's factors of a matrix in its place: R on the diagonal and above, below it the reflections."""
    rows, columns = a.shape[0], a.shape[1]
    for k in range(min(rows, columns)):
        below = 0.0
        for i in range(k + 1, rows):
            below = below + a[i, k] * a[i, k]
        if below == 0.0:
            scales[k] = 0.0
        else:
            head = a[k, k]
            length = math.sqrt(head * head + below)
            if head >= 0.0:
                length = -length
            scales[k] = (length - head) / length
            for i in range(k + 1, rows):
                a[i, k] = a[i, k] / (head - length)
            a[k, k] = length
            for j in range(k + 1, columns):
                total = a[k, j]
                for i in range(k + 1, rows):
                    total = total + a[i, k] * a[i, j]
                total = total * scales[k]
                a[k, j] = a[k, j] - total
                for i in range(k + 1, rows):
                    a[i, j] = a[i, j] - a[i, k] * total


@njit
def _orthogonal(a):
    rows, columns = a.shape[0], a.shape[1]
    n = min(rows, columns)
    factors = a.copy()
    scales = np.zeros(n, a.dtype)
    _reflected(factors, scales)
    upper = np.zeros((n, columns), a.dtype)
    for i in range(n):
        for j in range(i, columns):
            upper[i, j] = factors[i, j]
    found = np.zeros((rows, n), a.dtype)
    for k in range(n):
        found[k, k] = 1.0
    for back in range(n):
        k = n - 1 - back
        for j in range(k, n):
            total = found[k, j]
            for i in range(k + 1, rows):
                total = total + factors[i, k] * found[i, j]
            total = total * scales[k]
            found[k, j] = found[k, j] - total
            for i in range(k + 1, rows):
                found[i, j] = found[i, j] - factors[i, k] * total
    return found, upper


@njit
def _sign_and_logarithm(a):
    factors = a.copy()
    n = a.shape[0]
    sign = 1.0
    total = 0.0
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(factors[i, k]) > abs(factors[p, k]):
                p = i
        if p != k:
            sign = -sign
            for j in range(n):
                held = factors[k, j]
                factors[k, j] = factors[p, j]
                factors[p, j] = held
        if factors[k, k] < 0.0:
            sign = -sign
        total = total + math.log(abs(factors[k, k]))
        for i in range(k + 1, n):
            factors[i, k] = factors[i, k] / factors[k, k]
            for j in range(k + 1, n):
                factors[i, j] = factors[i, j] - factors[i, k] * factors[k, j]
    return sign, total


@njit
def _norm_of_order(a, order):
    if order == math.inf:
        return np.max(np.abs(a))
    if order == -math.inf:
        return np.min(np.abs(a))
    if order == 2:
        return math.sqrt(np.sum(a * a))
    total = 0.0
    for x in a:
        if order == 0:
            total += 1.0 if x != 0.0 else 0.0
        elif x != 0.0:
            total += abs(x) ** order
    if order == 0 or order == 1:
        return total
    return total ** (1.0 / order)


@njit
def _covariance(m, y=None, rowvar=True, bias=False, ddof=None):
    turned = not rowvar and m.shape[0] != 1
    rows = m.shape[1] if turned else m.shape[0]
    n = m.shape[0] if turned else m.shape[1]
    less = 1 - int(bias) if ddof is None else ddof
    away = np.empty((rows, n))
    for i in range(rows):
        mean = 0.0
        for k in range(n):
            away[i, k] = m[k, i] if turned else m[i, k]
            mean += away[i, k] / n
        for k in range(n):
            away[i, k] -= mean
    found = np.empty((rows, rows))
    for i in range(rows):
        for j in range(rows):
            found[i, j] = np.sum(away[i] * away[j]) / (n - less)
    return found


@njit
def _covariance_of_two(m, y, rowvar=True, bias=False, ddof=None):
    return _covariance(np.vstack((m, y)), None, True, bias, ddof)


@njit
def _correlation(x, y=None, rowvar=True):
    found = _covariance(x, None, rowvar)
    n = found.shape[0]
    widths = np.empty(n)
    for i in range(n):
        widths[i] = math.sqrt(found[i, i])
    for i in range(n):
        for j in range(n):
            found[i, j] = found[i, j] / widths[i] / widths[j]
    return found


@njit
def _correlation_of_two(x, y, rowvar=True):
    return _correlation(np.vstack((x, y)))


@njit
def _sine_over_argument(x):
    t = math.pi * x
    return math.sin(t) / t if x != 0.0 else 1.0 - t * t / 6.0


@njit
def _multiplied(a):
    found = np.empty(a.shape[0], a.dtype)
    total = 1.0
    for i in range(a.shape[0]):
        total = total * a[i]
        found[i] = total
    return found


@njit
def _evenly_scaled(start, stop, count):
    return 10.0 ** np.linspace(start, stop, count)


@njit
def _trapezoid_of_steps(y, x=None, dx=1.0):
    total = 0.0
    for i in range(y.shape[0] - 1):
        total = total + 0.5 * dx * (y[i] + y[i + 1])
    return total


ALGEBRA_KERNELS: dict[tuple[Any, tuple[int, ...]], Any] = {
    (np.tril, (2,)): _lower,
    (np.triu, (2,)): _upper,
    (np.kron, (2, 2)): _kronecker,
    (np.linalg.matrix_power, (2, 0)): _power_of_matrix,
    (np.linalg.qr, (2,)): _orthogonal,
    (np.linalg.slogdet, (2,)): _sign_and_logarithm,
    (np.linalg.norm, (1, 0)): _norm_of_order,
    (np.cov, (2,)): _covariance,
    (np.cov, (1, 1)): _covariance_of_two,
    (np.corrcoef, (2,)): _correlation,
    (np.corrcoef, (1, 1)): _correlation_of_two,
    (np.sinc, (0,)): _sine_over_argument,
    (np.cumprod, (1,)): _multiplied,
    (np.logspace, (0, 0, 0)): _evenly_scaled,
    (getattr(np, "trapezoid", None) or np.trapz, (1,)): _trapezoid_of_steps,  # type: ignore[attr-defined]
}
"""Kernels by function and the ranks of all arguments, 0 for numbers."""
