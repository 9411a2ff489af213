"""Primitives on batches of matrices: products, factors, triangular systems.

In: nothing. Out: a table of rows. Called by primitives.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .builders import matmul, reshape, spread, spread_all, transpose, triangular_solve
from .formulas import triangle
from .ir import INT64, Node, Params, make
from .rows import INTEGER, Multilinear, NoDerivative, ShapeAndDtype, Tangent, named, row, same

Array = np.ndarray


def _product(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    a, b = inputs
    assert a.ndim == b.ndim == 3 and a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1], inputs
    return (a.shape[0], a.shape[1], b.shape[2]), a.dtype


def _factors(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    (a,) = inputs
    assert a.ndim == 3 and a.shape[1] == a.shape[2], inputs
    return (a.shape[0], a.shape[1] + 2, a.shape[1]), a.dtype


def _solution(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    a, b = inputs
    assert a.ndim == b.ndim == 3 and a.shape == (*b.shape[:2], b.shape[1]) and a.dtype == b.dtype, inputs
    return b.shape, b.dtype


def _system(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    factors, b = inputs
    batch, n, _ = b.shape
    assert factors.shape == (batch, n + 2, n) and factors.dtype == b.dtype, inputs
    return b.shape, b.dtype


def _pivots(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    return (inputs[0].shape[0], 2, inputs[0].shape[1]), INT64


def _eigen(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    (a,) = inputs
    batch, n, _ = a.shape
    return (batch, n * (n + 1) if params[1] else n), a.dtype


# ----- Meanings -----


def _library(name: str, like: Array) -> Any:
    """A routine of BLAS or LAPACK for a dtype."""
    import scipy.linalg

    find: Any = scipy.linalg.get_blas_funcs if name == "trsm" else scipy.linalg.get_lapack_funcs
    return find(name, (like,))


SHORT = 16
"""Rows up to which nothing asks LAPACK: for questions about small matrices SciPy is not imported."""


def _wide(a: Array) -> Array:
    """A copy, in single precision where it is half: LAPACK computes with no less."""
    return a.astype(np.promote_types(a.dtype, np.float32))


def _eliminated(a: Array) -> tuple[Array, Array]:
    """The factors of a matrix by Gauss, side by side, and the rows that take part in exchanges, as LAPACK's getrf."""
    a, n = _wide(a), len(a)
    pivots = np.arange(n)
    with np.errstate(all="ignore"):
        for k in range(n):
            sizes = abs(np.real(a[k:, k])) + abs(np.imag(a[k:, k]))
            sizes[np.isnan(sizes)] = -1.0
            pivots[k] = k + sizes.argmax()
            a[[k, pivots[k]]] = a[[pivots[k], k]]
            if a[k, k] != 0:
                a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :]
    return a, pivots


def _lu(params: tuple[Any, ...], a: Array) -> Array:
    batch, n, _ = a.shape
    out = np.empty((batch, n + 2, n), a.dtype)
    factors = _eliminated if n <= SHORT else lambda matrix: _library("getrf", a)(matrix)[:2]
    for k in range(batch if n else 0):
        packed, pivots = factors(a[k].T)
        order, steps = np.arange(n), np.arange(n)
        for step, other in enumerate(pivots):
            order[[step, other]] = order[[other, step]]
        out[k] = [*packed.T, (order + 1) * np.where(pivots == steps, 1, -1), np.argsort(order) + 1]
    return out


def _cholesky(params: tuple[Any, ...], a: Array) -> Array:
    out = np.zeros_like(a)
    for k in range(len(a) if a.size else 0):
        try:
            out[k] = np.linalg.cholesky(_wide(a[k]))
        except np.linalg.LinAlgError:
            out[k] = np.tril(np.full_like(a[k], np.nan))
    return out


def _substituted(a: Array, x: Array, lower: bool, transposed: bool, unit: bool) -> Array:
    """The solution of a triangular system, row by row, as BLAS' trsm."""
    if transposed:
        a, lower = a.T, not lower
    a, x, n = _wide(a), _wide(x), len(a)
    with np.errstate(all="ignore"):
        for k in range(n) if lower else range(n - 1, -1, -1):
            done = slice(k) if lower else slice(k + 1, n)
            x[k] -= a[k, done] @ x[done]
            if not unit:
                x[k] /= a[k, k]
    return x


def _triangular_solve(params: tuple[Any, ...], a: Array, b: Array) -> Array:
    lower, transposed, unit = map(bool, params)
    systems = [(x, y) for x, y in zip(a, b, strict=True) if y.size]
    if a.shape[-1] <= SHORT:
        found = [_substituted(x, y, lower, transposed, unit) for x, y in systems]
    else:
        solve = _library("trsm", b)
        found = [solve(1.0, x, y, lower=lower, trans_a=transposed, diag=unit) for x, y in systems]
    return np.array(found, b.dtype) if found else b


def _lu_solve(params: tuple[Any, ...], factors: Array, b: Array) -> Array:
    n = b.shape[1]
    packed, order = factors[:, :n], np.abs(factors[:, n, :, None]).astype(np.int64) - 1
    if params[0]:
        half = _triangular_solve((False, True, True), packed, np.take_along_axis(b, order, 1))
        return _triangular_solve((True, True, False), packed, half)
    whole = _triangular_solve((False, False, True), packed, _triangular_solve((True, False, False), packed, b))
    return np.take_along_axis(whole, np.argsort(order, 1), 1)


LAST_BLOCK = 3
"""Rows of the last block of a determinant, which is written out; the one before it is regular by `complete_pivots`."""


def _complete_pivots(params: tuple[Any, ...], a: Array) -> Array:
    batch, n, _ = a.shape
    out = np.empty((batch, 2, n), np.int64)
    for matrix, orders in zip(a.copy(), out, strict=True):
        orders[:] = np.arange(1, n + 1)
        for k in range(n - 1):
            rest = np.abs(matrix[k:, k:])
            rest[~(rest > rest[0, 0])] = 0.0
            best = np.unravel_index(np.argmax(rest), rest.shape) if rest.any() else (0, 0)
            row, column = k + int(best[0]), k + int(best[1])
            matrix[[k, row]] = matrix[[row, k]]
            matrix[:, [k, column]] = matrix[:, [column, k]]
            for order, other in zip(orders, (row, column), strict=True):
                order[[k, other]] = order[[other, k]]
                order[k] *= 1 if other == k else -1
            if matrix[k, k] != 0:
                matrix[k + 1 :] -= matrix[k + 1 :, [k]] / matrix[k, k] * matrix[k]
    return out


def _symmetric_eigen(params: tuple[Any, ...], a: Array) -> Array:
    lower, vectors = params
    triangle = "L" if lower else "U"
    wide = a.astype(np.promote_types(a.dtype, np.float32))
    if not vectors:
        return np.linalg.eigvalsh(wide, triangle).astype(a.dtype)
    values, columns = np.linalg.eigh(wide, triangle)
    return np.concatenate([values, columns.swapaxes(1, 2).reshape(len(a), -1)], 1).astype(a.dtype)


# ----- Derivatives -----


def _unmatmul_a(g: Node, node: Node) -> Node:
    return matmul(g, transpose(node.inputs[1], (0, 2, 1)))


def _unmatmul_b(g: Node, node: Node) -> Node:
    return matmul(transpose(node.inputs[0], (0, 2, 1)), g)


def _triangular_tangent(node: Node, tangents: Sequence[Node | None]) -> Node:
    """From a x = b: a dx = db - da x."""
    a, _ = node.inputs
    lower, transposed, unit = node.params
    ta, tb = tangents
    drive = tb
    if ta is not None:
        ta = triangle(ta, lower, strict=unit)
        term = matmul(transpose(ta, (0, 2, 1)) if transposed else ta, node)
        drive = -term if drive is None else drive - term
    assert drive is not None
    return triangular_solve(a, drive, lower, transposed, unit)


def _untriangular_b(g: Node, node: Node) -> Node:
    lower, transposed, unit = node.params
    return triangular_solve(node.inputs[0], g, lower, not transposed, unit)


def _cholesky_tangent(node: Node, tangents: Sequence[Node | None]) -> Node:
    """L F(inverse(L) S inverse(L).T) for a symmetric S; F takes the lower triangle and halves the diagonal.

    Source: Murray, "Differentiation of the Cholesky decomposition", 2016, eq. 9.
    """
    (t,) = tangents
    assert t is not None
    symmetric = triangle(t, lower=True) + transpose(triangle(t, lower=True, strict=True), (0, 2, 1))
    half = triangular_solve(node, symmetric, lower=True)
    both = triangular_solve(node, transpose(half, (0, 2, 1)), lower=True)
    return matmul(node, 0.5 * (triangle(both, lower=True) + triangle(both, lower=True, strict=True)))


# ----- Batches -----


def _batched_matmul(node: Node, operands: Sequence[Node | None], size: int) -> Node:
    a, b = node.inputs
    many, m, k = a.shape
    n = b.shape[2]
    if operands[1] is None and operands[0] is not None and many == 1:
        # One right-hand side for all: a single product with more rows.
        product = make("matmul", (reshape(operands[0], (1, size * m, k)), b))
        return reshape(product, (size, 1, m, n))
    full_a = reshape(spread(a, operands[0], size), (size * many, m, k))
    full_b = reshape(spread(b, operands[1], size), (size * many, k, n))
    return reshape(make("matmul", (full_a, full_b)), (size, many, m, n))


def _side_by_side(node: Node, operands: Sequence[Node | None], size: int) -> Node:
    """The matrices of all values one after the other."""
    full = spread_all(node, operands, size)
    flat = [reshape(operand, (size * operand.shape[1], *operand.shape[2:])) for operand in full]
    return reshape(make(node.name, tuple(flat), node.params), (size, *node.shape))


MATRICES = named(
    matmul=row(
        "special",
        _product,
        lambda params, a, b: np.matmul(a, b),
        Multilinear((_unmatmul_a, _unmatmul_b)),
        batch=_batched_matmul,
    ),
    lu=row(
        "special",
        _factors,
        _lu,
        NoDerivative("solving and determinants have rules of their own, which read its factors as constants"),
        batch=_side_by_side,
    ),
    cholesky=row("special", same, _cholesky, Tangent(_cholesky_tangent), batch=_side_by_side),
    triangular_solve=row(
        "special",
        _solution,
        _triangular_solve,
        Tangent(_triangular_tangent, (None, _untriangular_b)),
        batch=_side_by_side,
    ),
    lu_solve=row(
        "special",
        _system,
        _lu_solve,
        NoDerivative("solving has a rule of its own, to which the factors are constants"),
        batch=_side_by_side,
    ),
    symmetric_eigen=row(
        "special",
        _eigen,
        _symmetric_eigen,
        NoDerivative("eigenvalues have a rule of their own, which reads the vectors as constants"),
        batch=_side_by_side,
    ),
    complete_pivots=row("special", _pivots, _complete_pivots, INTEGER, batch=_side_by_side),
)

_ROW_BY_ROW = frozenset("lu cholesky triangular_solve lu_solve complete_pivots".split())
"""Primitives whose meaning goes through matrices, and through the rows of small ones, in Python."""
_MOST_ROWS = 16


def takes_long(node: Node) -> bool:
    """Whether the meaning of a node in NumPy takes much longer than a compiled kernel."""
    return node.name in _ROW_BY_ROW and node.shape[0] * node.shape[-1] > _MOST_ROWS
