"""Functions of `scipy.linalg` for matrices with a structure: Toeplitz, circulant, block diagonal, banded.

In: array-likes, the elements that a matrix is made of. Out: Tensors. Called by code that `differentiable_source` runs,
by scipy_table.py. Matrices are gathered from their elements; banded systems are those of functions/linalg/banded.py,
and a Toeplitz system is solved by SciPy's own recursion, whose derivative is that of any linear system.
"""

from __future__ import annotations

from typing import Any

import numpy

from .. import numpy as np
from ..errors import ShapeError
from ..functions.linalg.banded import solve_banded
from ..functions.linalg.matrix_batches import MatrixError, with_rule
from ..graph.host_functions import HostFunction, host
from ..graph.ir import Node
from ..record.as_node import as_node, wrap

linalg: Any = np.linalg


def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with constant diagonals, of its first column and first row; leading axes are a batch."""
    c = np.asarray(c)
    r = np.conj(c) if r is None else np.asarray(r)
    rows, columns = c.shape[-1], r.shape[-1]
    lead = numpy.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    line = np.concatenate(
        [np.broadcast_to(r, (*lead, columns))[..., :0:-1], np.broadcast_to(c, (*lead, rows))], axis=-1
    )
    places = numpy.arange(rows)[:, None] - numpy.arange(columns) + max(columns - 1, 0)
    return np.take(line, places, axis=-1)


def circulant(c: Any) -> Any:
    """The matrix whose columns are one line, turned by one element each; leading axes are a batch."""
    c = np.asarray(c)
    n = c.shape[-1]
    return np.take(c, (numpy.arange(n)[:, None] - numpy.arange(n)) % max(n, 1), axis=-1)


def hankel(c: Any, r: Any = None) -> Any:
    """The matrix with constant diagonals of the other direction, of its first column and last row."""
    c = np.ravel(np.asarray(c))
    r = np.zeros_like(c) if r is None else np.ravel(np.asarray(r))
    line = np.concatenate([c, r[1:]])
    return np.take(line, numpy.arange(c.shape[0])[:, None] + numpy.arange(r.shape[0]), axis=0)


def block_diag(arrs: Any) -> Any:
    """Matrices along the diagonal of a larger one; lines are matrices of one row."""
    blocks = [np.atleast_2d(a) for a in arrs]
    for block in blocks:
        if block.ndim != 2:
            message = f"block_diag needs matrices for Tensors, but one has shape {block.shape}."
            raise ShapeError(message)
    width, at, rows = sum(block.shape[1] for block in blocks), 0, []
    for block in blocks:
        rows.append(np.pad(block, ((0, 0), (at, width - at - block.shape[1]))))
        at += block.shape[1]
    return np.concatenate(rows, axis=0)


# ----- Banded systems -----


def _shifted(row: Any, steps: int) -> Any:
    """row[j + steps] at j, zeros where there is no such element."""
    if steps >= 0:
        return np.pad(row[..., steps:], [(0, 0)] * (row.ndim - 1) + [(0, steps)])
    return np.pad(row[..., :steps], [(0, 0)] * (row.ndim - 1) + [(-steps, 0)])


def _both_sides(ab: Any, lower: bool) -> Any:
    """The diagonals of a Hermitian matrix on both sides, of those on one side."""
    count = ab.shape[-2] - 1
    if lower:
        above = [_shifted(np.conj(ab[..., k, :]), -k) for k in range(count, 0, -1)]
        rows = [*above, *[ab[..., k, :] for k in range(count + 1)]]
    else:
        below = [_shifted(np.conj(ab[..., count - k, :]), k) for k in range(1, count + 1)]
        rows = [*[ab[..., k, :] for k in range(count + 1)], *below]
    return np.stack(rows, axis=-2)


def solveh_banded(ab: Any, b: Any, lower: bool = False) -> Any:
    """The solution of a banded system with a Hermitian matrix, of which the diagonals on one side are given."""
    ab = np.asarray(ab)
    count = ab.shape[-2] - 1
    return solve_banded((count, count), _both_sides(ab, lower), b)


def cholesky_banded(ab: Any, lower: bool = False) -> Any:
    """The diagonals of the Cholesky factor; it is found as a full matrix. Elements outside of it stay, as in SciPy."""
    ab = np.asarray(ab)
    count, n = ab.shape[-2] - 1, ab.shape[-1]
    rows, columns = numpy.indices((n, n))
    place = count + rows - columns
    full = np.take_along_axis(_both_sides(ab, lower), numpy.clip(place, 0, 2 * count), axis=-2)
    full = np.where((place >= 0) & (place <= 2 * count), full, 0.0)
    factor = linalg.cholesky(full, upper=not lower)
    if lower:
        lines = [np.pad(np.diagonal(factor, -k), (0, k)) for k in range(count + 1)]
    else:
        lines = [np.pad(np.diagonal(factor, k), (k, 0)) for k in range(count, -1, -1)]
    row, place = numpy.indices((count + 1, n))
    inside = row + place < n if lower else row + place >= count
    return np.where(inside, np.stack(lines), ab)


def cho_solve_banded(cb_and_lower: Any, b: Any) -> Any:
    """The solution of a system with the factor that `cholesky_banded` has found."""
    cb, lower = np.asarray(cb_and_lower[0]), cb_and_lower[1]
    count = cb.shape[-2] - 1
    if lower:
        above = [_shifted(np.conj(cb[..., k, :]), -k) for k in range(count, -1, -1)]
        return solve_banded((0, count), np.stack(above, axis=-2), solve_banded((count, 0), cb, b))
    below = [_shifted(np.conj(cb[..., count - k, :]), k) for k in range(count + 1)]
    return solve_banded((0, count), cb, solve_banded((count, 0), np.stack(below, axis=-2), b))


def dgtsv(
    dl: Any,
    d: Any,
    du: Any,
    b: Any,
    overwrite_dl: int = 0,
    overwrite_d: int = 0,
    overwrite_du: int = 0,
    overwrite_b: int = 0,
) -> Any:
    """LAPACK's tridiagonal solver: the fourth of its results is the solution; the factors before it are None."""
    del overwrite_dl, overwrite_d, overwrite_du, overwrite_b  # nothing is written to
    rows = [np.pad(np.asarray(du), (1, 0)), np.asarray(d), np.pad(np.asarray(dl), (0, 1))]
    return None, None, None, solve_banded((1, 1), np.stack(rows), b), 0


def dptsv(d: Any, e: Any, b: Any, overwrite_d: int = 0, overwrite_e: int = 0, overwrite_b: int = 0) -> Any:
    """LAPACK's solver of symmetric tridiagonal systems: the solution is the third of its results; the factors are
    None."""
    del overwrite_d, overwrite_e, overwrite_b  # nothing is written to
    rows = [np.pad(np.asarray(e), (1, 0)), np.asarray(d), np.pad(np.asarray(e), (0, 1))]
    return None, None, solve_banded((1, 1), np.stack(rows), b), 0


# ----- Toeplitz systems -----


def _run(c: Any, r: Any, b: Any) -> Any:
    from scipy.linalg import solve_toeplitz as solve

    found = numpy.empty(b.shape, b.dtype)
    for place in numpy.ndindex(b.shape[:-2]):
        try:
            found[place] = solve((c[place], r[place]), b[place], check_finite=False)
        except numpy.linalg.LinAlgError:
            message = (
                "solve_toeplitz needs leading minors that are regular, but Levinson's recursion met a singular one."
            )
            raise MatrixError(message) from None
    return found


SOLVE_TOEPLITZ = HostFunction("solve_toeplitz", lambda inputs, params: (inputs[2].shape, inputs[2].dtype), _run)


def _solution(c: Node, r: Node, b: Node) -> Node:
    return with_rule(host(SOLVE_TOEPLITZ, (c, r, b)), _formula, c, r, b)


def _formula(g: Node, x: Node, c: Node, r: Node, b: Node) -> list[Node | None]:
    """w = inverse(A)^H g of the right-hand side; -w x^H, summed along diagonals, of the matrix."""
    w = _solution(as_node(np.conj(wrap(r))), as_node(np.conj(wrap(c))), g)
    sides, found = wrap(w), np.conj(wrap(x))
    n = c.shape[0]
    total: Any = 0
    for k in range(b.shape[1]):
        total = total - np.convolve(sides[:, k], found[::-1, k])
    row = total[n - 1 :: -1]
    row = np.concatenate([np.zeros(1, row.dtype), row[1:]])
    return [as_node(total[n - 1 :]), as_node(row), w]


def solve_toeplitz(c_or_cr: Any, b: Any) -> Any:
    """The solution of a system whose matrix has constant diagonals."""
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    c = np.ravel(np.asarray(c))
    r = np.conj(c) if r is None else np.ravel(np.asarray(r))
    b = np.asarray(b)
    n = c.shape[0]
    if r.shape[0] != n or b.ndim not in (1, 2) or b.shape[0] != n or n == 0:
        message = f"solve_toeplitz needs n elements of column, row and sides, but got {c.shape}, {r.shape}, {b.shape}."
        raise ShapeError(message)
    dtype = numpy.result_type(c.dtype, r.dtype, b.dtype, numpy.float64)
    line = np.concatenate([c[:1], r[1:]])
    parts = [as_node(a.astype(dtype)) for a in (c, line, b.reshape((n, -1)))]
    return wrap(_solution(parts[0], parts[1], parts[2])).reshape(b.shape)
