"""NumPy's linear algebra under its names: `nbgrad.numpy.linalg` in place of `numpy.linalg`.

In: array-likes. Out: Tensors. Imported by users. It gathers what the other modules define, and defines nothing itself.
"""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError as LinAlgError

from ..functions.arrays import creation
from ..functions.arrays.shaping import matrix_transpose as matrix_transpose
from ..functions.linalg.determinants import det as det
from ..functions.linalg.determinants import slogdet as slogdet
from ..functions.linalg.eigenvalues import eig as eig
from ..functions.linalg.eigenvalues import eigh as eigh
from ..functions.linalg.eigenvalues import eigvals as eigvals
from ..functions.linalg.eigenvalues import eigvalsh as eigvalsh
from ..functions.linalg.factorisations import cholesky as cholesky
from ..functions.linalg.factorisations import inv as inv
from ..functions.linalg.factorisations import solve as solve
from ..functions.linalg.least_squares import lstsq as lstsq
from ..functions.linalg.least_squares import tensorinv as tensorinv
from ..functions.linalg.least_squares import tensorsolve as tensorsolve
from ..functions.linalg.matrix_products import linalg_cross as cross
from ..functions.linalg.matrix_products import linalg_outer as outer
from ..functions.linalg.matrix_products import linalg_trace as trace
from ..functions.linalg.matrix_products import matmul as matmul
from ..functions.linalg.matrix_products import matrix_power as matrix_power
from ..functions.linalg.matrix_products import multi_dot as multi_dot
from ..functions.linalg.matrix_products import tensordot as tensordot
from ..functions.linalg.matrix_products import vecdot as vecdot
from ..functions.linalg.norms import cond as cond
from ..functions.linalg.norms import matrix_norm as matrix_norm
from ..functions.linalg.norms import norm as norm
from ..functions.linalg.norms import vector_norm as vector_norm
from ..functions.linalg.orthogonal import qr as qr
from ..functions.linalg.singular_values import matrix_rank as matrix_rank
from ..functions.linalg.singular_values import pinv as pinv
from ..functions.linalg.singular_values import svd as svd
from ..functions.linalg.singular_values import svdvals as svdvals
from ..record.tensor import Tensor

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
