"""Decompositions of matrices as kernels: eigenvalues, singular values, and what is made of them.

In: nothing. Out: `DECOMPOSITION_KERNELS`: kernels in plain loops, by NumPy's function and the ranks of its arguments,
and `LAPACK_ELEMENTS`. Called by array_kernels.py, whose table has them too. The vectors that LAPACK finds, with its
signs, are constants; two steps that converge quadratically begin there. They change no digit, and carry derivatives of
first and second order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

_SAME = 1e-13
"""Eigenvalues that differ by less, relative to the largest one, are the same."""


@njit
def symmetric_vector(a, row, column):
    """An element of LAPACK's eigenvectors: a call of it is known by itself, without a derivative."""
    return np.linalg.eigh(a)[1][row, column]


@njit
def right_vector(a, row, column):
    """An element of LAPACK's right singular vectors, a row for each, without a derivative."""
    return np.linalg.svd(a)[2][row, column]


@njit
def left_vector(a, row, column):
    """An element of LAPACK's left singular vectors, a column for each, without a derivative."""
    return np.linalg.svd(a)[0][row, column]


@njit
def general_vector(a, row, column):
    """An element of LAPACK's eigenvectors of any matrix, without a derivative."""
    return np.linalg.eig(a)[1][row, column]


LAPACK_ELEMENTS: dict[Any, str] = {
    symmetric_vector: "np.linalg.eigh({2})[1][{0}, {1}]",
    right_vector: "np.linalg.svd({2})[2][{0}, {1}]",
    left_vector: "np.linalg.svd({2})[0][{0}, {1}]",
    general_vector: "np.linalg.eig({2})[1][{0}, {1}]",
}
"""The texts of operations that are elements of what LAPACK finds."""


@njit
def _step_of_symmetric(s, r, v, values):
    """One step of Ogita and Aishima: better eigenvectors in the place of v, for S = V'AV and the products R = V'V."""
    n = v.shape[0]
    largest = 0.0
    for i in range(n):
        values[i] = s[i, i] / r[i, i]
        largest = max(largest, abs(values[i]))
    away = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i == j:
                away[i, i] = 0.5 * (1.0 - r[i, i])
            elif abs(values[i] - values[j]) <= _SAME * largest:
                away[i, j] = -0.5 * r[i, j]
            else:
                away[i, j] = (s[i, j] - values[j] * r[i, j]) / (values[j] - values[i])
    more = v @ away
    for i in range(n):
        for j in range(n):
            v[i, j] = v[i, j] + more[i, j]


@njit
def _without_equals(v, values):
    """No number in the place of vectors that belong to one value: none of them has a derivative."""
    n = values.shape[0]
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(values[i]))
    for j in range(n):
        equal = False
        for i in range(n):
            if i != j and abs(values[i] - values[j]) <= _SAME * largest:
                equal = True
        if equal:
            for i in range(v.shape[0]):
                v[i, j] = math.nan


@njit
def _eigenvalues_and_vectors(a):
    """The eigenvalues in order, and the eigenvectors, of the lower half of a matrix."""
    n = a.shape[0]
    full = np.empty((n, n))
    v = np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            full[i, j] = a[i, j]
            full[j, i] = a[i, j]
        for j in range(n):
            v[i, j] = symmetric_vector(a, i, j)
    numbers = np.empty(n)
    for _ in range(2):
        _step_of_symmetric(v.T @ (full @ v), v.T @ v, v, numbers)
    s, r = v.T @ (full @ v), v.T @ v
    values = np.empty(n, a.dtype)
    vectors = np.empty((n, n), a.dtype)
    for i in range(n):
        numbers[i] = s[i, i] / r[i, i]
        values[i] = numbers[i]
    _without_equals(v, numbers)
    for i in range(n):
        for j in range(n):
            vectors[i, j] = v[i, j]
    return values, vectors


@njit
def _eigenvalues(a):
    return _eigenvalues_and_vectors(a)[0]


@njit
def _general_eigenvalues_and_vectors(a):
    """The eigenvalues and eigenvectors of length 1 of a matrix that has real ones, in LAPACK's order."""
    n = a.shape[0]
    v = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            v[i, j] = general_vector(a, i, j)
    full = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            full[i, j] = a[i, j]
    numbers = np.empty(n)
    for step in range(3):
        s = np.linalg.solve(v, full @ v)
        largest = 0.0
        for i in range(n):
            numbers[i] = s[i, i]
            largest = max(largest, abs(numbers[i]))
        if step < 2:
            away = np.zeros((n, n))
            for i in range(n):
                for j in range(n):
                    if abs(numbers[i] - numbers[j]) > _SAME * largest:
                        away[i, j] = s[i, j] / (numbers[j] - numbers[i])
            more = v @ away
            for j in range(n):
                length = 0.0
                for i in range(n):
                    v[i, j] = v[i, j] + more[i, j]
                    length += v[i, j] * v[i, j]
                for i in range(n):
                    v[i, j] = v[i, j] / math.sqrt(length)
    values = np.empty(n, a.dtype)
    vectors = np.empty((n, n), a.dtype)
    for i in range(n):
        values[i] = numbers[i]
    _without_equals(v, numbers)
    for i in range(n):
        for j in range(n):
            vectors[i, j] = v[i, j]
    return values, vectors


@njit
def _general_eigenvalues(a):
    return _general_eigenvalues_and_vectors(a)[0]


@njit
def _tall_parts(a):
    """Of a matrix, or of its transpose if that has more rows: the singular values, the right vectors as columns, and
    the products with these."""
    rows, columns = a.shape[0], a.shape[1]
    n = min(rows, columns)
    tall = np.empty((max(rows, columns), n))
    v = np.empty((n, n))
    values = np.empty(n)
    for i in range(rows):
        for j in range(columns):
            if rows >= columns:
                tall[i, j] = a[i, j]
            else:
                tall[j, i] = a[i, j]
    for i in range(n):
        for j in range(n):
            v[i, j] = right_vector(a, j, i) if rows >= columns else left_vector(a, i, j)
    for _ in range(2):
        w = tall @ v
        _step_of_symmetric(w.T @ w, v.T @ v, v, values)
    w = tall @ v
    for j in range(n):
        values[j] = math.sqrt(np.sum(w[:, j] * w[:, j]) / np.sum(v[:, j] * v[:, j]))
    return values, v, w


@njit
def _all_columns(given):
    """Columns of length 1 at right angles, and as many more, of any directions, as make a square."""
    rows, n = given.shape[0], given.shape[1]
    found = np.zeros((rows, rows))
    used = np.zeros(rows, np.int64)
    found[:, :n] = given
    for j in range(n, rows):
        best = 0
        least = math.inf
        for k in range(rows):
            inside = np.sum(found[k, :j] * found[k, :j])
            if used[k] == 0 and inside < least:
                least = inside
                best = k
        used[best] = 1
        found[best, j] = 1.0
        for again in range(2 * j):
            column = again % j
            product = np.sum(found[:, column] * found[:, j])
            for i in range(rows):
                found[i, j] = found[i, j] - product * found[i, column]
        length = math.sqrt(np.sum(found[:, j] * found[:, j]))
        for i in range(rows):
            found[i, j] = found[i, j] / length
    return found


@njit
def _singular(a, full_matrices=True):
    rows, columns = a.shape[0], a.shape[1]
    numbers, v, w = _tall_parts(a)
    n = numbers.shape[0]
    for j in range(n):
        for i in range(w.shape[0]):
            w[i, j] = w[i, j] / numbers[j]
    _without_equals(v, numbers)
    _without_equals(w, numbers)
    long = w.shape[0] if full_matrices else n
    whole = np.empty((w.shape[0], long))
    if long > n:
        whole[:, :] = _all_columns(w)
    else:
        whole[:, :] = w
    values = np.empty(n, a.dtype)
    for i in range(n):
        values[i] = numbers[i]
    u = np.empty((rows, long if rows >= columns else n), a.dtype)
    vt = np.empty((n if rows >= columns else long, columns), a.dtype)
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = whole[i, j] if rows >= columns else v[i, j]
    for i in range(vt.shape[0]):
        for j in range(vt.shape[1]):
            vt[i, j] = v[j, i] if rows >= columns else whole[j, i]
    return u, values, vt


@njit
def _count_of_larger(values, a, tol=None):
    limit = values[0] * max(a.shape[0], a.shape[1]) * np.finfo(a.dtype).eps if tol is None else tol
    count = 0
    for one in values:
        if one > limit:
            count += 1
    return count


@njit
def _rank(a, tol=None):
    return _count_of_larger(_tall_parts(a)[0], a, tol)


@njit
def _norm_of_matrix(a, ord=None):
    if ord is None:
        return math.sqrt(np.sum(a * a))
    if abs(ord) == 2:
        values = _tall_parts(a)[0]
        return values[0] if ord > 0 else values[values.shape[0] - 1]
    columns = abs(ord) == 1
    found = math.inf if ord < 0 else 0.0
    for i in range(a.shape[1] if columns else a.shape[0]):
        total = 0.0
        for j in range(a.shape[0] if columns else a.shape[1]):
            total += abs(a[j, i] if columns else a[i, j])
        if (total < found) if ord < 0 else (total > found):
            found = total
    return found


@njit
def _condition(x, p=None):
    if p is None or abs(p) == 2:
        values = _tall_parts(x)[0]
        ratio = values[0] / values[values.shape[0] - 1]
        return 1.0 / ratio if p is not None and p == -2 else ratio
    return _norm_of_matrix(x, p) * _norm_of_matrix(np.linalg.inv(x), p)


@njit
def _pseudo_inverse(a, rcond=1e-15):
    """Of a matrix whose rows or columns are independent: elsewhere it has no derivative."""
    found = np.empty((a.shape[1], a.shape[0]), a.dtype)
    if a.shape[0] >= a.shape[1]:
        q, r = np.linalg.qr(a)
        found[:, :] = np.linalg.solve(r, q.T)
    else:
        q, r = np.linalg.qr(a.T)
        found[:, :] = np.linalg.solve(r, q.T).T
    return found


@njit
def _least_squares(a, b, rcond=-1.0):
    n = a.shape[1]
    found = np.zeros((n, b.shape[1]), b.dtype)
    found[:, :] = _pseudo_inverse(a) @ b
    rest = np.zeros(b.shape[1] if a.shape[0] > n else 0, b.dtype)
    if a.shape[0] > n:
        away = a @ found
        for j in range(b.shape[1]):
            for i in range(a.shape[0]):
                rest[j] += (b[i, j] - away[i, j]) * (b[i, j] - away[i, j])
    numbers = _tall_parts(a)[0]
    values = np.empty(numbers.shape[0], a.dtype)
    for i in range(numbers.shape[0]):
        values[i] = numbers[i]
    return found, rest, _count_of_larger(numbers, a), values


@njit
def _least_squares_of_vector(a, b, rcond=-1.0):
    column = np.zeros((b.shape[0], 1))
    column[:, 0] = b
    found, rest, rank, values = _least_squares(a, column, rcond)
    return found[:, 0].copy(), rest, rank, values


DECOMPOSITION_KERNELS: dict[tuple[Any, tuple[int, ...]], Any] = {
    (np.linalg.eigvalsh, (2,)): _eigenvalues,
    (np.linalg.eigh, (2,)): _eigenvalues_and_vectors,
    (np.linalg.eigvals, (2,)): _general_eigenvalues,
    (np.linalg.eig, (2,)): _general_eigenvalues_and_vectors,
    (np.linalg.svd, (2,)): _singular,
    (np.linalg.matrix_rank, (2,)): _rank,
    (np.linalg.norm, (2,)): _norm_of_matrix,
    (np.linalg.cond, (2,)): _condition,
    (np.linalg.pinv, (2,)): _pseudo_inverse,
    (np.linalg.lstsq, (2, 1)): _least_squares_of_vector,
    (np.linalg.lstsq, (2, 2)): _least_squares,
}
"""Kernels by function and the ranks of their arrays, 0 for numbers."""
