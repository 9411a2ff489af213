"""Factors of matrices in the forms of MindSpore's functions.

In: matrices. Out: Tensors. Called by users; class_table.py names some of them.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...errors import ShapeError
from ...functions.linalg.factorisations import inverse
from ...functions.linalg.triangular_factors import lu_solve as by_factors
from ...record.tensor import Tensor
from ..decompositions import eig, eigvals, qr, svd
from ..docstrings import documented
from .special_values import float_of, value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


@documented
def lstsq(input: Any, A: Any) -> Tensor:
    """The solution of least squares of `input @ x = A`.

    input : Tensor or ndarray, shape (m, n)
    A : Tensor or ndarray, shape (m,) or (m, k)
    """
    right = float_of(A)
    columns = right[:, None] if right.ndim == 1 else right
    return np.linalg.pinv(float_of(input)) @ columns


@documented
def lu_solve(b: Any, LU_data: Any, LU_pivots: Any = None) -> Tensor:
    """The solution of equations from both triangular factors in one matrix, and the exchanged rows.

    b : Tensor or ndarray, shape (..., n) or (..., n, k)
    LU_data : Tensor or ndarray, shape (..., n, n)
    LU_pivots : Tensor or ndarray of int, shape (..., n)
        The row that each row was exchanged with, from 1.

    Notes
    -----
    SciPy's order, `lu_solve(lu_factor(a), b)`, is taken too.

    >>> import numpy as np, nbgrad as nb
    >>> both, rows = nb.Tensor([[4.0, 2.0], [0.5, 1.0]]), nb.Tensor([1, 2])
    >>> print(nb.ops.lu_solve(nb.Tensor([[6.0], [4.0]]), both, rows))
    [[1.]
     [1.]]
    """
    if isinstance(b, tuple | list):
        return by_factors(b, LU_data, 0 if LU_pivots is None else LU_pivots)
    return by_factors((value_of(LU_data), value_of(LU_pivots) - 1), float_of(b))


@documented
def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Permutation, lower and upper factor from one matrix of both factors and exchanged rows.

    LU_data : Tensor or ndarray, shape (..., m, n)
    LU_pivots : Tensor or ndarray of int, shape (..., min(m, n))
        The row that each row was exchanged with, from 1.
    unpack_data, unpack_pivots : bool
        Whether to give the factors, and the permutation; else None.
    -> tuple of three Tensors
    """
    both, pivots = value_of(LU_data), np.asarray(value_of(LU_pivots))
    m, n = both.shape[-2:]
    least = min(m, n)
    if pivots.shape != (*both.shape[:-2], least):
        message = f"The factors {both.shape} need {least} pivots each, but their shape is {pivots.shape}."
        raise ShapeError(message)
    lower = upper = permutation = None
    if unpack_data:
        lower = np.tril(both[..., :, :least], -1) + np.eye(m, least, dtype=np.dtype(both.dtype.name))
        upper = np.triu(both[..., :least, :])
    if unpack_pivots:
        matrices = np.zeros((*pivots.shape[:-1], m, m), np.dtype(both.dtype.name))
        for place in np.ndindex(pivots.shape[:-1]):
            order = np.arange(m)
            for row, other in enumerate(pivots[place].tolist()):
                order[[row, other - 1]] = order[[other - 1, row]]
            matrices[place][order, np.arange(m)] = 1
        permutation = Tensor(matrices)
    return permutation, lower, upper


@documented
def geqrf(input: Any) -> tuple[Tensor, Tensor]:
    """The factors of `qr` in LAPACK's form: reflections below the diagonal, and their scales.

    input : Tensor or ndarray, shape (m, n)
    """
    x = np.asarray(float_of(input)).copy()
    m, n = x.shape
    scales = np.zeros(min(m, n), x.dtype)
    for k in range(min(m, n)):
        column = x[k:, k].copy()
        length = np.linalg.norm(column)
        if length == 0 or k == m - 1:
            continue
        end = -np.copysign(length, column[0])
        scales[k] = (end - column[0]) / end
        reflection = column / (column[0] - end)
        reflection[0] = 1
        x[k:, k + 1 :] -= scales[k] * np.outer(reflection, reflection @ x[k:, k + 1 :])
        x[k, k], x[k + 1 :, k] = end, reflection[1:]
    return Tensor(x), Tensor(scales)


# ----- Class forms -----


def orthogonal_factors(x: Any, full_matrices: bool) -> tuple[Tensor, Tensor]:
    """Q and R."""
    return qr(x, "complete" if full_matrices else "reduced")


def eigen_pairs(x: Any, compute_v: bool) -> Any:
    """Eigenvalues, and eigenvectors or an empty array."""
    return eig(x) if compute_v else (eigvals(x), Tensor(np.zeros(0, np.complex64)))


def singular_factors(x: Any, full_matrices: bool, compute_uv: bool) -> Any:
    """Singular values, and left and right vectors or empty arrays."""
    found = svd(x, full_matrices, compute_uv)
    nothing = Tensor(np.zeros(0, np.float32))
    return found if compute_uv else (found, nothing, nothing)


def inverse_of(x: Any, adjoint: bool) -> Tensor:
    """The inverse of matrices, or of their transposes."""
    matrix = float_of(x)
    return inverse(np.swapaxes(matrix, -1, -2) if adjoint else matrix)
