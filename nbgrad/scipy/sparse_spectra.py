"""Eigenvalues and norms of sparse matrices of recorded values: `eigsh` and `norm` of `scipy.sparse.linalg`.

In: a sparse matrix, of ours or of SciPy's, or a full one. Out: Tensors. Called by code that `differentiable_source`
runs, by scipy_table.py. ARPACK runs when the function runs (a `host` node of the graph). The derivative of eigenvalues
has the entries only; that of eigenvectors solves a sparse system for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from .. import numpy as np
from ..errors import ArgumentError, DtypeError, ShapeError
from ..functions.linalg.matrix_batches import joint_results, packed
from ..graph.builders import broadcast, gather, reduce, reshape
from ..graph.host_functions import HostFunction, host
from ..graph.ir import Node, constant, make
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact, only
from .sparse_systems import Factors, Pattern, pattern_of
from .sparse_values import CscArray, SparseValues, as_recorded, is_sparse

Options = tuple[tuple[str, Any], ...]

# ----- Eigenvalues -----


def _arpack(values: numpy.ndarray, start: numpy.ndarray, pattern: Pattern, options: Options, vectors: bool) -> Any:
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import eigsh

    matrix = csc_array((values, pattern.indices, pattern.starts), shape=(pattern.n, pattern.n))
    routine: Any = eigsh
    return routine(matrix, v0=start.copy(), return_eigenvectors=vectors, **dict(options))


def _values(values: numpy.ndarray, start: numpy.ndarray, pattern: Pattern, options: Options, sorted_: bool) -> Any:
    """SciPy's eigenvalues, in the order that they have with vectors (which is sorted) or without."""
    lead = values.shape[:-1]
    found = numpy.empty((*lead, dict(options)["k"]), values.dtype)
    for position in numpy.ndindex(lead):
        one = _arpack(values[position], start[position], pattern, options, False)
        found[position] = numpy.sort(one) if sorted_ else one
    return found


def _both(values: numpy.ndarray, start: numpy.ndarray, pattern: Pattern, options: Options, sorted_: bool) -> Any:
    """Eigenvalues, then eigenvectors."""
    lead, k = values.shape[:-1], dict(options)["k"]
    found = numpy.empty((*lead, k), values.dtype), numpy.empty((*lead, pattern.n, k), values.dtype)
    for position in numpy.ndindex(lead):
        one, vectors = _arpack(values[position], start[position], pattern, options, True)
        order = numpy.argsort(one)
        if not sorted_:
            alone = _arpack(values[position], start[position], pattern, options, False)
            order = order[numpy.argsort(numpy.argsort(alone))]
        found[0][position], found[1][position] = one[order], vectors[:, order]
    return packed(*found, axes=(1, 2))


_VALUES = HostFunction(
    "eigsh, values",
    lambda inputs, params: ((*inputs[0].shape[:-1], dict(params[1])["k"]), inputs[0].dtype),
    _values,
)
_EIGSH = HostFunction(
    "eigsh",
    lambda inputs, params: ((*inputs[0].shape[:-1], dict(params[1])["k"] * (params[0].n + 1)), inputs[0].dtype),
    _both,
    alone=(_VALUES, lambda shape, *params: 0),
)


@dataclass(frozen=True)
class _Formula:
    """Cotangents at the entries: v v^T of an eigenvalue, -u v^T of its vector, where (A - w) u is the vector's own."""

    pattern: Pattern

    def __call__(
        self, given: Sequence[Node | None], results: Sequence[Node], operands: Sequence[Node]
    ) -> list[Node | None]:
        g_values, g_vectors = given
        w, v = results
        values = operands[0]
        n, k = v.shape[1:]
        vectors = reshape(v, (n, k))
        left: Any = None
        if g_values is not None:
            left = vectors * broadcast(reshape(g_values, (1, k)), (n, k))
        if g_vectors is not None:
            turned = -_bordered(
                reshape(values, (values.size,)), self.pattern, reshape(w, (k,)), vectors, reshape(g_vectors, (n, k))
            )
            left = turned if left is None else left + turned
        if left is None:
            return [None, None]
        rows, columns = _lines(left, self.pattern.indices), _lines(vectors, self.pattern.columns)
        return [reshape(reduce("sum", rows * columns, (1,)), values.shape), None]


def _lines(x: Node, index: numpy.ndarray) -> Node:
    """The rows of a matrix at an index."""
    k = x.shape[1]
    return gather(reshape(x, (x.size,)), constant(index.astype(numpy.int64)[:, None] * k + numpy.arange(k)))


def _bordered(values: Node, pattern: Pattern, w: Node, v: Node, g: Node) -> Node:
    """The solutions u of (A - w) u = g without what is along v, which are across v: one column for each eigenvalue.

    The matrix with v as a further row and column is regular where the eigenvalue is a simple one.
    """
    n, k = v.shape
    line, last = numpy.arange(n), numpy.full(n, n)
    rows = numpy.concatenate([pattern.indices, line, line, last])
    columns = numpy.concatenate([pattern.columns, line, last, line])
    found: list[Any] = []
    for i in range(k):
        vector, right = wrap(v)[:, i], wrap(g)[:, i]
        entries = np.concatenate([wrap(values), np.broadcast_to(-wrap(w)[i], (n,)), vector, vector])
        matrix = CscArray((entries, (rows, columns)), shape=(n + 1, n + 1))
        found.append(Factors(matrix).solve(np.concatenate([right, right[:1] * 0.0]))[:n])
    return as_node(np.stack(found, axis=1))


def eigsh(
    A: Any, k: int = 6, sigma: Any = None, which: str = "LM", v0: Any = None, ncv: Any = None, maxiter: Any = None,
    tol: float = 0, return_eigenvectors: bool = True, mode: str = "normal", rng: Any = None,
) -> Any:  # fmt: skip
    """Some eigenvalues of a real symmetric matrix, and its eigenvectors, by ARPACK.

    Without `v0`, iterations begin with the same vector each time. Vectors of equal eigenvalues have no derivative, and
    what comes out for them has no meaning.

    Raises
    ------
    DtypeError
        For complex matrices.
    ShapeError
        If the matrix is not square.
    ArgumentError
        If `k` is not less than its size.
    """
    del rng
    only("mode", mode, "normal", "buckling", "cayley")
    only("which", which, "LM", "SM", "LA", "SA", "BE")
    known = as_recorded(A if is_sparse(A) else CscArray(A)).tocsc()
    n = known.shape[0]
    if known.shape[0] != known.shape[1]:
        message = f"eigsh needs a square matrix, but its shape is {known.shape}."
        raise ShapeError(message)
    if known.dtype.kind == "c":
        message = "eigsh of recorded values needs a real matrix: take numpy.linalg.eigvalsh(A.toarray())."
        raise DtypeError(message)
    if not 0 < k < n:
        message = f"eigsh needs k from 1 to {n - 1} for {n} rows, but got {k}: take numpy.linalg.eigh(A.toarray())."
        raise ArgumentError(message)
    values = inexact(known.values)
    start = numpy.random.default_rng(0).uniform(-1.0, 1.0, n) if v0 is None else v0
    begin = make("stop_gradient", (as_node(np.asarray(start).astype(values.dtype)),))
    if begin.shape != (n,):
        message = f"v0 has shape {begin.shape}, but the matrix has {n} rows."
        raise ShapeError(message)
    sigma = None if sigma is None else float(sigma)
    options = {"k": int(k), "sigma": sigma, "which": which, "ncv": ncv, "maxiter": maxiter, "tol": tol, "mode": mode}
    pattern = pattern_of(known)
    inputs = reshape(values, (1, values.size)), reshape(begin, (1, n))
    found = host(_EIGSH, inputs, pattern, tuple(options.items()), return_eigenvectors)
    w, v = joint_results(found, [(k,), (n, k)], _Formula(pattern), *inputs)
    first = wrap(reshape(w, (k,)))
    return (first, wrap(reshape(v, (n, k)))) if return_eigenvectors else first


# ----- Norms -----


def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """The norm of a sparse matrix, or of its rows or columns.

    Raises
    ------
    DtypeError
        If the matrix is not sparse.
    ArgumentError
        For an order that SciPy has not.
    """
    if not is_sparse(x):
        message = "scipy.sparse.linalg.norm needs a sparse matrix: take numpy.linalg.norm."
        raise DtypeError(message)
    matrix = as_recorded(x).tocsr()
    axes: Any = (0, 1) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if (
        not axes
        or len(axes) > 2
        or any(not -2 <= one < 2 for one in axes)
        or len({one % 2 for one in axes}) < len(axes)
    ):
        message = f"A norm of a matrix is along axis 0, 1 or both, but got axis={axis!r}."
        raise ArgumentError(message)
    if len(axes) == 1:
        return _of_lines(matrix, ord, axes[0])
    sums = {1: axes[0], -1: axes[0], math.inf: axes[1], -math.inf: axes[1]}
    if ord in (None, "fro", "f"):
        return np.linalg.norm(matrix.data)
    if ord in sums:
        along = np.ravel(abs(matrix).sum(axis=sums[ord]))
        return np.max(along) if ord > 0 else np.min(along)
    if ord == 2:
        rows, columns = matrix.shape
        gram = matrix @ matrix.transpose() if rows < columns else matrix.transpose() @ matrix
        return np.sqrt(eigsh(gram, 1, which="LA", return_eigenvectors=False)[0])
    message = f"A sparse matrix has no norm of order {ord!r}: take numpy.linalg.norm(A.toarray(), ...)."
    raise ArgumentError(message)


def _of_lines(matrix: SparseValues, order: Any, axis: int) -> Any:
    """The norms of rows or columns; elements without an entry are zero."""
    size = abs(matrix)
    if order == 0:
        return np.ravel(size.like_this((size.data != 0.0).astype(numpy.int64)).sum(axis=axis))
    if order in (math.inf, -math.inf):
        whole = size.toarray()
        return np.max(whole, axis=axis) if order > 0 else np.min(whole, axis=axis)
    if order is not None and (isinstance(order, str) or not numpy.isscalar(order)):
        message = f"A row or column has no norm of order {order!r}: take a number."
        raise ArgumentError(message)
    if order == 1:
        return np.ravel(size.sum(axis=axis))
    power: Any = 2 if order is None else order
    even = power % 2 == 0 and matrix.dtype.kind == "f"
    total = np.ravel((matrix if even else size).power(power).sum(axis=axis))
    # A line without entries has norm 0, whose derivative is 0.
    some = total != 0.0
    return np.where(some, np.where(some, total, 1.0) ** (1 / power), 0.0)
