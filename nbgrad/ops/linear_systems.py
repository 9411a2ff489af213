"""Determinants, inverses, Cholesky factors and linear systems with MindSpore's names and arguments.

In: array-likes of square matrices in the last two axes. Out: Tensors. Called by users. All is done, and documented, in
`nbgrad.functions.linalg.factorisations`: matrices that are singular, or not positive definite where they must be, raise
its `MatrixError`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..functions.arrays.shaping import swap
from ..functions.linalg import determinants, factorisations
from ..graph.builders import cast
from ..graph.ir import broadcast
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact
from ..record.tensor import Tensor
from .declarations import as_numpy, spelled


def _transposed(value: Any, name: str) -> Tensor:
    """Matrices with their last two axes swapped."""
    node = inexact(as_node(value))
    if node.ndim < 2:
        message = f"{name} needs matrices in the last two axes, but the shape is {node.shape}."
        raise ShapeError(message)
    return wrap(swap(node, -1, -2))


@as_numpy(determinants.det)
def det(input: Any) -> Tensor:
    """Determinants of matrices; differentiable where they are singular, too.

    input : array-like, shape (..., n, n)
    -> Tensor, shape (...)
    ShapeError : If there are no square matrices.

    >>> float(nb.ops.det(nb.Tensor([[2.0, 1.0], [0.0, 4.0]])))
    8.0
    """
    ...


@as_numpy(determinants.slogdet, "Signs of determinants and logarithms of their absolute values.")
def slogdet(input: Any) -> tuple[Tensor, Tensor]: ...


matrix_determinant, log_matrix_determinant = det, slogdet


@as_numpy(factorisations.inv)
def inverse(input: Any) -> Tensor:
    """Inverses of matrices.

    input : array-like, shape (..., n, n)
    -> Tensor, shape (..., n, n)
    MatrixError, ShapeError : If a matrix is singular, or not square.

    >>> nb.ops.inverse(nb.Tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    ...


@as_numpy(factorisations.cholesky)
def cholesky(input: Any, upper: bool = False) -> Tensor:
    """Cholesky factors of symmetric positive definite matrices, of which one triangle is read.

    input : array-like, shape (..., n, n)
    upper : bool
        Whether the upper triangle is read and an upper triangular factor U with `U.T @ U = input` is given, instead
        of a lower one.
    -> Tensor, shape (..., n, n)
    MatrixError, ShapeError : If a matrix is not positive definite, or not square.

    >>> nb.ops.cholesky(nb.Tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    ...


@spelled
def cholesky_solve(input: Any, input2: Any, upper: bool = False) -> Tensor:
    """The x of `a @ x = input`, where `input2` is the Cholesky factor of a (the upper one, if `upper`)."""
    factor = input2 if upper else _transposed(input2, "cholesky_solve")
    half = factorisations.solve_triangular(factor, input, trans=1)
    return factorisations.solve_triangular(factor, half)


@spelled
def cholesky_inverse(input: Any, upper: bool = False) -> Tensor:
    """The inverse of a, where `input` is the Cholesky factor of a (the upper one, if `upper`)."""
    factor = _transposed(input, "cholesky_inverse")._node
    units = wrap(broadcast(cast(as_node(np.eye(factor.shape[-1])), factor.dtype), factor.shape))
    return cholesky_solve(units, input, upper)


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False) -> Tensor:
    """The x of `matrix @ x = rhs`, or of its transpose if `adjoint`."""
    return factorisations.solve(_transposed(matrix, "matrix_solve") if adjoint else matrix, rhs)
