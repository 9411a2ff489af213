"""Functions of `scipy.linalg` whose arguments differ from those of `numpy.linalg`.

In: array-likes, and SciPy's options. Out: Tensors. Called by code that `differentiable_source` runs, by scipy_table.py.
"""

from __future__ import annotations

from typing import Any

from .. import numpy as np
from ..errors import ArgumentError
from ..record.axes_and_dtypes import only

linalg: Any = np.linalg


def eig(a: Any) -> Any:
    """Eigenvalues and right eigenvectors."""
    return tuple(linalg.eig(a))


def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    type: int = 1,
    subset_by_index: Any = None,
) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix, of which one triangle is read; of a pair of them, by the
    Cholesky factor of the second one (Golub and Van Loan, Matrix Computations, 8.7.2)."""
    chosen = slice(None) if subset_by_index is None else slice(int(subset_by_index[0]), int(subset_by_index[1]) + 1)
    uplo = "L" if lower else "U"
    if b is None:
        if eigvals_only:
            return linalg.eigvalsh(a, uplo)[..., chosen]
        values, vectors = linalg.eigh(a, uplo)
        return values[..., chosen], vectors[..., chosen]
    only("type", type, 1, 2, 3)
    whole, factor = _hermitian(a, lower), linalg.cholesky(_hermitian(b, lower))
    turned = np.conj(np.swapaxes(factor, -1, -2))
    if type == 1:
        half = np.solve_triangular(factor, whole, lower=True)
        standard = np.solve_triangular(factor, np.conj(np.swapaxes(half, -1, -2)), lower=True)
    else:
        standard = turned @ whole @ factor
    if eigvals_only:
        return linalg.eigvalsh(standard)[..., chosen]
    values, vectors = linalg.eigh(standard)
    vectors = factor @ vectors if type == 3 else np.solve_triangular(turned, vectors, lower=False)
    return values[..., chosen], vectors[..., chosen]


def _hermitian(a: Any, lower: bool) -> Any:
    """The matrix whose triangle is given."""
    a = np.asarray(a)
    strict = np.tril(a, -1) if lower else np.triu(a, 1)
    diagonal = np.eye(a.shape[-1]) * np.real(np.diagonal(a, axis1=-2, axis2=-1))[..., None, :]
    return strict + np.conj(np.swapaxes(strict, -1, -2)) + diagonal


def eigvalsh(a: Any, b: Any = None, *, lower: bool = True, type: int = 1, subset_by_index: Any = None) -> Any:
    """Eigenvalues of a Hermitian matrix, or of a pair of them."""
    return eigh(a, b, lower=lower, eigvals_only=True, type=type, subset_by_index=subset_by_index)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """The singular value decomposition, or the singular values alone."""
    found = linalg.svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def qr(a: Any, mode: str = "full") -> Any:
    """The QR decomposition.

    Raises
    ------
    ArgumentError
        For modes that give LAPACK's own form of the factors.
    """
    names = {"full": "complete", "economic": "reduced", "r": "r"}
    if mode not in names:
        message = f"qr with mode={mode!r} is not supported for Tensors; use {', '.join(map(repr, names))}."
        raise ArgumentError(message)
    found = linalg.qr(a, names[mode])
    return (found,) if mode == "r" else tuple(found)


def cholesky(a: Any, lower: bool = False) -> Any:
    """The triangular factor of a positive definite matrix."""
    return linalg.cholesky(a, upper=not lower)


def solve(a: Any, b: Any, lower: bool = False, assume_a: Any = None, transposed: bool = False) -> Any:
    """The solution of a square system; of a matrix that is said to be symmetric, one triangle is read.

    Raises
    ------
    ArgumentError
        If `assume_a` is no structure that SciPy has.
    """
    a = np.asarray(a)
    mirrored = {
        "sym": False,
        "symmetric": False,
        "her": True,
        "hermitian": True,
        "pos": True,
        "positive definite": True,
    }
    parts = {
        "upper triangular": np.triu,
        "lower triangular": np.tril,
        "diagonal": lambda a: np.triu(np.tril(a)),
        "tridiagonal": lambda a: np.triu(np.tril(a, 1), -1),
    }
    kind = assume_a
    if kind in mirrored:
        part = np.tril(a) if lower else np.triu(a)
        other = np.swapaxes(np.tril(a, -1) if lower else np.triu(a, 1), -1, -2)
        a = part + (np.conj(other) if mirrored[kind] else other)
    elif kind in parts:
        a = parts[kind](a)
    elif kind not in (None, "gen", "general", "banded"):
        message = f"solve has no assume_a={assume_a!r}; leave it away."
        raise ArgumentError(message)
    return linalg.solve(np.swapaxes(a, -1, -2) if transposed else a, b)


def lstsq(a: Any, b: Any, cond: Any = None) -> Any:
    """The least squares solution, its residuals, the rank and the singular values."""
    return tuple(linalg.lstsq(a, b, cond))


def fractional_matrix_power(A: Any, t: float) -> Any:
    """A power of a matrix: exp(t log(A))."""
    return np.expm(np.logm(A) * t)


def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """The solution X of a X + X a^H = q."""
    a = np.asarray(a)
    return np.solve_sylvester(a, np.conj(a).T, q)


def eigh_tridiagonal(d: Any, e: Any) -> Any:
    """Eigenvalues and eigenvectors of a symmetric tridiagonal matrix, which is made as a full one."""
    e = np.asarray(e)
    return tuple(linalg.eigh(np.diag(np.asarray(d)) + np.diag(e, 1) + np.diag(e, -1)))


def eigvalsh_tridiagonal(d: Any, e: Any) -> Any:
    """Eigenvalues of a symmetric tridiagonal matrix, which is made as a full one."""
    e = np.asarray(e)
    return linalg.eigvalsh(np.diag(np.asarray(d)) + np.diag(e, 1) + np.diag(e, -1))
