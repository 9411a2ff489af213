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
def _lower(a, k):
    found = np.zeros((a.shape[0], a.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if j - i <= k:
                found[i, j] = a[i, j]
    return found


@njit
def _lower_half(a):
    return _lower(a, 0)


@njit
def _upper(a, k):
    found = np.zeros((a.shape[0], a.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if j - i >= k:
                found[i, j] = a[i, j]
    return found


@njit
def _upper_half(a):
    return _upper(a, 0)


@njit
def _ones_below(n):
    return np.tril(np.ones((n, n)))


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
def lapack_vector(a, row, column):
    """An element of LAPACK's eigenvectors: a call of it is known by itself, without a derivative."""
    return np.linalg.eigh(a)[1][row, column]


@njit
def _rotated(a, vectors):
    """Jacobi's rotations make a symmetric matrix diagonal, and their product the eigenvectors.

    After the last rotation that changes a number, three more rounds run: they carry derivatives of first and second
    order to where those of the numbers are.
    """
    n = a.shape[0]
    more = 3
    for _ in range(60):
        away = 0.0
        size = 0.0
        for p in range(n):
            size += abs(a[p, p])
            for q in range(p + 1, n):
                away += abs(a[p, q])
        if away <= 1e-16 * size:
            more -= 1
        if more < 0:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                b = 2.0 * a[p, q]
                d = a[q, q] - a[p, p]
                if b != 0.0 or d != 0.0:
                    root = math.sqrt(d * d + b * b)
                    t = b / (d + root if d >= 0.0 else d - root)
                    c = 1.0 / math.sqrt(1.0 + t * t)
                    s = t * c
                    for k in range(n):
                        x = a[k, p]
                        y = a[k, q]
                        a[k, p] = c * x - s * y
                        a[k, q] = s * x + c * y
                    for k in range(n):
                        x = a[p, k]
                        y = a[q, k]
                        a[p, k] = c * x - s * y
                        a[q, k] = s * x + c * y
                        x = vectors[k, p]
                        y = vectors[k, q]
                        vectors[k, p] = c * x - s * y
                        vectors[k, q] = s * x + c * y


@njit
def _eigenvalues(a):
    return _eigensystem(a, False)[0]


@njit
def _eigenvalues_and_vectors(a):
    return _eigensystem(a, True)


@njit
def _eigensystem(a, signed):
    """The eigenvalues in order, and the eigenvectors, of the lower half of a matrix."""
    n = a.shape[0]
    full = np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            full[i, j] = a[i, j]
            full[j, i] = a[i, j]
    turned = np.eye(n)
    _rotated(full, turned)
    numbers = np.empty(n)
    for k in range(n):
        numbers[k] = full[k, k]
    order = np.argsort(numbers)
    values = np.empty(n, a.dtype)
    vectors = np.empty((n, n), a.dtype)
    for k in range(n):
        values[k] = numbers[order[k]]
        sign = 1.0
        if signed:
            largest = 0
            for i in range(n):
                if abs(turned[i, order[k]]) > abs(turned[largest, order[k]]):
                    largest = i
            if turned[largest, order[k]] * lapack_vector(a, largest, k) < 0.0:
                sign = -1.0
        for i in range(n):
            vectors[i, k] = sign * turned[i, order[k]]
    return values, vectors


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
def _powers(x, columns):
    found = np.empty((x.shape[0], columns))
    for i in range(x.shape[0]):
        power = 1.0
        for back in range(columns):
            found[i, columns - 1 - back] = power
            power = power * x[i]
    return found


@njit
def _powers_of_all(x):
    return _powers(x, x.shape[0])


@njit
def _covariance(a):
    rows, n = a.shape[0], a.shape[1]
    away = np.empty((rows, n))
    for i in range(rows):
        mean = np.mean(a[i])
        for k in range(n):
            away[i, k] = a[i, k] - mean
    found = np.empty((rows, rows))
    for i in range(rows):
        for j in range(rows):
            total = 0.0
            for k in range(n):
                total += away[i, k] * away[j, k]
            found[i, j] = total / (n - 1)
    return found


@njit
def _covariance_of_two(a, b):
    return _covariance(np.vstack((a, b)))


@njit
def _correlation(a):
    found = _covariance(a)
    n = found.shape[0]
    widths = np.empty(n)
    for i in range(n):
        widths[i] = math.sqrt(found[i, i])
    for i in range(n):
        for j in range(n):
            found[i, j] = found[i, j] / widths[i] / widths[j]
    return found


@njit
def _correlation_of_two(a, b):
    return _correlation(np.vstack((a, b)))


@njit
def _sine_over_argument(x):
    t = math.pi * x
    return math.sin(t) / t if x != 0.0 else 1.0 - t * t / 6.0


@njit
def _sines_over_arguments(x):
    found = np.empty(x.shape[0], x.dtype)
    for i in range(x.shape[0]):
        found[i] = _sine_over_argument(x[i])
    return found


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
def _trapezoid_of_steps(y, dx):
    total = 0.0
    for i in range(y.shape[0] - 1):
        total = total + 0.5 * dx * (y[i] + y[i + 1])
    return total


@njit
def _trapezoid_of_ones(y):
    return _trapezoid_of_steps(y, 1.0)


ALGEBRA_KERNELS: dict[tuple[Any, tuple[int, ...]], Any] = {
    (np.tril, (2,)): _lower_half,
    (np.tril, (2, 0)): _lower,
    (np.triu, (2,)): _upper_half,
    (np.triu, (2, 0)): _upper,
    (np.tri, (0,)): _ones_below,
    (np.kron, (2, 2)): _kronecker,
    (np.linalg.matrix_power, (2, 0)): _power_of_matrix,
    (np.linalg.qr, (2,)): _orthogonal,
    (np.linalg.eigvalsh, (2,)): _eigenvalues,
    (np.linalg.eigh, (2,)): _eigenvalues_and_vectors,
    (np.linalg.slogdet, (2,)): _sign_and_logarithm,
    (np.linalg.norm, (1, 0)): _norm_of_order,
    (np.vander, (1,)): _powers_of_all,
    (np.vander, (1, 0)): _powers,
    (np.cov, (2,)): _covariance,
    (np.cov, (1, 1)): _covariance_of_two,
    (np.corrcoef, (2,)): _correlation,
    (np.corrcoef, (1, 1)): _correlation_of_two,
    (np.sinc, (0,)): _sine_over_argument,
    (np.sinc, (1,)): _sines_over_arguments,
    (np.cumprod, (1,)): _multiplied,
    (np.logspace, (0, 0, 0)): _evenly_scaled,
    (getattr(np, "trapezoid", None) or np.trapz, (1,)): _trapezoid_of_ones,  # type: ignore[attr-defined]
    (getattr(np, "trapezoid", None) or np.trapz, (1, 0)): _trapezoid_of_steps,  # type: ignore[attr-defined]
}
"""Kernels by function and the ranks of all arguments, 0 for numbers."""
