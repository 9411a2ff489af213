"""Numba kernels that call decompositions of matrices, and what is made of them.

More rows of the table of adjoint_kernels.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .adjoint_kernels import numbers, row

values = numbers(19)
tall = values(12).reshape(4, 3) + np.eye(4, 3)
square = values(9).reshape(3, 3) + 2.0 * np.eye(3)


@row(tall, values(3))
@njit
def singular_values(a, x):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return (u * s) @ (vt[::-1] @ x) + s[0] * u[:, 2], np.sum(s * x) * vt[1]


@row(tall)
@njit
def singular_vectors_that_make_a_square(a):
    u, s, vt = np.linalg.svd(a.T)
    last = vt[3]
    return np.outer(last, last) * s[0] + (u @ u.T)[0, 0]


@row(tall, values(4))
@njit
def least_squares(a, b):
    found, rest, rank, _ = np.linalg.lstsq(a, b)
    return found * rest[0] + rank * np.linalg.pinv(a) @ b + np.linalg.lstsq(a.T.copy(), found)[0][:3]


@row(square)
@njit
def norms_and_conditions(a):
    total = np.linalg.norm(a, 1) * np.linalg.norm(a, np.inf) + np.linalg.norm(a, ord=-1) + np.linalg.norm(a, 2)
    total += np.linalg.norm(a, -2) + np.linalg.cond(a) + np.linalg.cond(a, 1)
    return total + np.linalg.matrix_rank(a) * np.linalg.norm(a) + np.linalg.matrix_rank(a, 1e-3)


@row(np.diag([1.0, 2.0, 4.0]) + 0.2 * values(9).reshape(3, 3))
@njit
def real_eigenvalues_of_any_matrix(a):
    numbers, vectors = np.linalg.eig(a)
    return vectors * numbers + np.linalg.eigvals(a)[0]
