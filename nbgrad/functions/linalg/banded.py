"""Linear systems with banded matrices, such as tridiagonal ones.

In: array-likes: the diagonals of the matrix as rows, as SciPy has them, and right-hand sides. Out: Tensors. Called by
users, as `nb.ops.solve_banded`. SciPy solves the system (a `host` node of the graph); the derivative is that of any
linear system, read along the diagonals, so that no full matrix is ever made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ...graph.builders import concatenate, pad, reduce, reshape, slice_axes
from ...graph.complex_numbers import conjugate
from ...graph.host_functions import HostFunction, host
from ...graph.ir import Node, broadcast, zeros
from ...record.as_node import wrap
from ...record.axes_and_dtypes import array_node, inexact, integers
from ...record.promotion import promote
from ...record.tensor import Tensor
from ..arrays.shaping import common_shape
from .matrix_batches import MatrixError, batched, unbatched, with_rule


def _solve(diagonals: np.ndarray, b: np.ndarray, lower: int, upper: int) -> np.ndarray:
    from scipy.linalg import solve_banded as solve

    found = np.empty_like(b)
    for position in np.ndindex(b.shape[:-2]):
        if found[position].size:
            try:
                found[position] = solve((lower, upper), diagonals[position], b[position], check_finite=False)
            except np.linalg.LinAlgError:
                message = "solve_banded needs a regular matrix, but elimination met a pivot of exactly 0."
                raise MatrixError(message) from None
    return found


SOLVE_BANDED = HostFunction("solve_banded", lambda inputs, params: (inputs[1].shape, inputs[1].dtype), _solve)


def _shifted(x: Node, steps: int, axis: int) -> Node:
    """x[j + steps] at j along an axis; zeros where there is no such element."""
    n = x.shape[axis]
    if abs(steps) >= n:
        return zeros(x.shape, x.dtype)
    start, length = max(steps, 0), n - abs(steps)
    kept = slice_axes(x, [(start, length, 1) if k == axis else (0, m, 1) for k, m in enumerate(x.shape)])
    return pad(kept, [(max(-steps, 0), max(steps, 0)) if k == axis else (0, 0) for k in range(x.ndim)])


def _row(diagonals: Node, row: int) -> Node:
    batch, _, n = diagonals.shape
    return slice_axes(diagonals, [(0, batch, 1), (row, 1, 1), (0, n, 1)])


def _adjoint(diagonals: Node, lower: int, upper: int) -> Node:
    """The diagonals of the adjoint matrix, which has `upper` below and `lower` above the main one."""
    rows = [_shifted(_row(diagonals, lower + upper - r), r - lower, 2) for r in range(lower + upper + 1)]
    return conjugate(concatenate(rows, 1))


def _solution(diagonals: Node, b: Node, lower: int, upper: int) -> Node:
    found = host(SOLVE_BANDED, (diagonals, b), lower, upper)
    return with_rule(found, _formula, diagonals, b, static=(lower, upper))


def _formula(g: Node, x: Node, diagonals: Node, b: Node, lower: int, upper: int) -> list[Node | None]:
    """Cotangents, as for any system: w = inverse(A)^H g of the right-hand side, -w x^H of the matrix's diagonals."""
    w = _solution(_adjoint(diagonals, lower, upper), g, upper, lower)
    batch, n, _ = x.shape
    rows: list[Node] = []
    for r in range(lower + upper + 1):
        products = _shifted(w, r - upper, 1) * conjugate(x)
        rows.append(reshape(-reduce("sum", products, (2,)), (batch, 1, n)))
    return [concatenate(rows, 1), w]


def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, check_finite: bool = True
) -> Tensor:
    """Solve `a @ x = b` for a banded matrix, with the arguments of `scipy.linalg.solve_banded`.

    Parameters
    ----------
    l_and_u : pair of int
        How many diagonals there are below and above the main one.
    ab : array-like, shape (..., l + u + 1, n)
        The diagonals: `a[i, j]` is `ab[u + i - j, j]`. Elements outside of the matrix are not read.
    b : array-like, shape (n,) or (..., n, k)
    overwrite_ab, overwrite_b, check_finite : bool
        SciPy's; have no effect.

    Returns
    -------
    Tensor, shape (..., n) or (..., n, k)

    Raises
    ------
    MatrixError
        If a matrix is singular. It is a `numpy.linalg.LinAlgError`.
    ShapeError, ArgumentError
        If the shapes, or the number of diagonals, do not fit.

    Examples
    --------
    >>> import nbgrad as nb
    >>> diagonals = nb.Tensor([[0.0, 1.0, 1.0], [2.0, 2.0, 2.0], [1.0, 1.0, 0.0]])
    >>> nb.ops.solve_banded((1, 1), diagonals, nb.Tensor([3.0, 4.0, 3.0])).tolist()
    [1.0, 1.0, 1.0]
    """
    del overwrite_ab, overwrite_b, check_finite
    counts = integers(l_and_u, "l_and_u")
    if len(counts) != 2 or min(counts) < 0:
        message = f"solve_banded needs l_and_u to be two numbers of diagonals, but got {l_and_u!r}."
        raise ArgumentError(message)
    lower, upper = counts
    diagonals, right = promote([inexact(array_node(ab)), inexact(array_node(b))])
    vector = right.ndim == 1
    sides = reshape(right, (*right.shape, 1)) if vector else right
    if diagonals.ndim < 2 or diagonals.shape[-2] != lower + upper + 1 or sides.ndim < 2:
        message = f"solve_banded needs {lower + upper + 1} diagonals as rows, but the shape is {diagonals.shape}."
        raise ShapeError(message)
    n, columns = diagonals.shape[-1], sides.shape[-1]
    if sides.shape[-2] != n:
        message = f"solve_banded needs right-hand sides with {n} rows, but they have shape {right.shape}."
        raise ShapeError(message)
    lead = common_shape([diagonals.shape[:-2], sides.shape[:-2]])
    wide = batched(broadcast(diagonals, (*lead, *diagonals.shape[-2:])))
    found = _solution(wide, batched(broadcast(sides, (*lead, n, columns))), lower, upper)
    return wrap(unbatched(found, (*lead, n) if vector else (*lead, n, columns), right))
