"""MindSpore's `scipy.linalg`: functions of matrices with SciPy's parameters.

In: Tensors or ndarrays. Out: Tensors. Called by ported scripts, as `nbgrad.scipy.linalg`. Options of memory and of
checks (`overwrite_a`, `check_finite`, `debug`, `turbo`, `driver`) have no effect.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...functions.linalg import factorisations
from ...functions.linalg.triangular_factors import cho_factor as cho_factor
from ...functions.linalg.triangular_factors import cho_solve as cho_solve
from ...functions.linalg.triangular_factors import lu as lu
from ...functions.linalg.triangular_factors import lu_factor as lu_factor
from ...record.axes_and_dtypes import only
from ...record.tensor import Tensor
from .. import linear_systems
from ..decompositions import block_diag as block_diag
from .special_values import value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "eigh",
    "inv",
    "lstsq",
    "lu",
    "lu_factor",
    "solve_triangular",
]


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """The Cholesky factor of a positive definite matrix, above the diagonal by default."""
    del overwrite_a, check_finite
    return linear_systems.cholesky(a, not lower)


def eigh(
    a: Any,
    b: None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """The eigenvalues of a symmetric matrix, and its eigenvectors unless `eigvals_only`; `b` and `eigvals` are None."""
    del overwrite_a, overwrite_b, turbo, check_finite
    only("b", b, None)
    only("eigvals", eigvals, None)
    only("type", type, 1)
    values, vectors = np.linalg.eigh(value_of(a), "L" if lower else "U")
    return values if eigvals_only else (values, vectors)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """The inverse of a matrix."""
    del overwrite_a, check_finite
    return np.linalg.inv(value_of(a))


def lstsq(A: Any, B: Any, rcond: Any = None, driver: Any = None) -> tuple[Tensor, ...]:
    """The solution of least squares, its residuals, the rank, and the singular values."""
    del driver
    return tuple(np.linalg.lstsq(value_of(A), value_of(B), rcond))


def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Tensor:
    """The solution of `a @ x = b` for a triangular matrix, or of its transpose, for `trans` 1 or "T"."""
    del overwrite_b, debug, check_finite
    return factorisations.solve_triangular(a, b, trans, lower, unit_diagonal)
