"""NumPy's linear algebra under its names: `nbgrad.numpy.linalg` in place of `numpy.linalg`.

In: array-likes. Out: Tensors. Imported by users. It gathers what the other modules define, and defines nothing itself.
"""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError as LinAlgError

from ..tensor import Tensor
from . import creation
from .determinants import det as det
from .determinants import slogdet as slogdet
from .eigenvalues import eig as eig
from .eigenvalues import eigh as eigh
from .eigenvalues import eigvals as eigvals
from .eigenvalues import eigvalsh as eigvalsh
from .factorisations import cholesky as cholesky
from .factorisations import inv as inv
from .factorisations import solve as solve
from .least_squares import lstsq as lstsq
from .least_squares import tensorinv as tensorinv
from .least_squares import tensorsolve as tensorsolve
from .linear_algebra import linalg_cross as cross
from .linear_algebra import linalg_outer as outer
from .linear_algebra import linalg_trace as trace
from .linear_algebra import matmul as matmul
from .linear_algebra import matrix_power as matrix_power
from .linear_algebra import multi_dot as multi_dot
from .linear_algebra import tensordot as tensordot
from .linear_algebra import vecdot as vecdot
from .norms import cond as cond
from .norms import matrix_norm as matrix_norm
from .norms import norm as norm
from .norms import vector_norm as vector_norm
from .orthogonal import qr as qr
from .shaping import matrix_transpose as matrix_transpose
from .singular_values import matrix_rank as matrix_rank
from .singular_values import pinv as pinv
from .singular_values import svd as svd
from .singular_values import svdvals as svdvals

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The diagonals of the matrices in the last two axes."""
    return creation.diagonal(x, offset, -2, -1)
