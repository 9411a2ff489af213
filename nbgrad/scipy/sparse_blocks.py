"""Functions of `scipy.sparse` that put matrices together or take them apart, for recorded values.

In: sparse matrices, of ours or of SciPy's, dense ones, and lines of values. Out: sparse matrices of recorded values.
Called by code that `differentiable_source` runs, by scipy_table.py. As in sparse_values.py, SciPy moves the numbers of
the entries, and the values are gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from .. import numpy as np
from ..errors import ShapeError
from ..graph.builders import gather
from ..graph.ir import constant
from ..record.as_node import as_node, wrap
from ..record.promotion import promote
from ..record.tensor import Tensor
from .sparse_entries import plain_integers, sparse_module
from .sparse_values import KINDS, CsrArray, SparseValues, as_recorded, is_sparse, moved


def _combined(matrices: Sequence[Any], function: Callable[[list[Any]], Any], format: Any) -> Any:
    """The result of a function that puts matrices together; None stays None."""
    parts = [None if one is None else as_recorded(one if is_sparse(one) else CsrArray(one)) for one in matrices]
    start, numbered = 1, []
    for part in parts:
        if part is None:
            numbered.append(None)
            continue
        numbers = numpy.arange(start, start + part.nnz)
        kind = sparse_module().coo_array if part.is_array else sparse_module().coo_matrix
        numbered.append(kind((numbers, (part.row, part.col)), shape=part.shape))
        start += part.nnz
    held = [part for part in parts if part is not None]
    values = as_node(np.concatenate([wrap(node) for node in promote([part.values for part in held])]))
    name = format if format in ("csr", "csc", "coo") else "csr"
    return moved(function(numbered), values, name, any(part.is_array for part in held))


def _flat(part: Any) -> Any:
    return part.tocsr() if isinstance(part, SparseValues) and part.format == "coo" else part


def hstack(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    """Matrices beside each other."""
    del dtype
    return _combined(list(map(_flat, blocks)), lambda parts: sparse_module().hstack(parts), format)


def vstack(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    """Matrices below each other."""
    del dtype
    return _combined(list(map(_flat, blocks)), lambda parts: sparse_module().vstack(parts), format)


def block_diag(mats: Any, format: Any = None, dtype: Any = None) -> Any:
    """Matrices along the diagonal."""
    del dtype
    return _combined(list(map(_flat, mats)), lambda parts: sparse_module().block_diag(parts), format)


def block_array(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    """Matrices in rows and columns; None for a block of zeros."""
    del dtype
    rows = [list(map(_flat, row)) for row in blocks]
    width = len(rows[0])

    def together(parts: list[Any]) -> Any:
        return sparse_module().block_array([parts[k : k + width] for k in range(0, len(parts), width)])

    return _combined([one for row in rows for one in row], together, format)


def tril(A: Any, k: int = 0, format: Any = None) -> Any:
    """The entries on and below a diagonal."""
    return _part(A, lambda numbered: sparse_module().tril(numbered, k), format)


def triu(A: Any, k: int = 0, format: Any = None) -> Any:
    """The entries on and above a diagonal."""
    return _part(A, lambda numbered: sparse_module().triu(numbered, k), format)


def _part(matrix: Any, move: Callable[[Any], Any], format: Any) -> Any:
    known = as_recorded(matrix if is_sparse(matrix) else CsrArray(matrix))
    return known.rearranged(move, format if format in ("csr", "csc", "coo") else known.format)


def diags_array(diagonals: Any, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None) -> Any:
    """The matrix with lines along its diagonals; a line of one number is repeated."""
    return _diagonals(diagonals, offsets, shape, format, dtype, True)


def diags(diagonals: Any, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None) -> Any:
    """The older matrix with lines along its diagonals."""
    return _diagonals(diagonals, offsets, shape, format, dtype, False)


def _diagonals(diagonals: Any, offsets: Any, shape: Any, format: Any, dtype: Any, is_array: bool) -> Any:
    if numpy.ndim(offsets) == 0:
        single = isinstance(diagonals, Tensor) or numpy.ndim(diagonals[0]) == 0
        diagonals, offsets = [diagonals if single else diagonals[0]], [offsets]
    lines = [np.atleast_1d(wrap(as_node(line))) for line in diagonals]
    places = plain_integers(offsets, "offsets")
    if shape is None:
        n = int(lines[0].shape[0] + abs(places[0]))
        shape = (n, n)
    values, rows, columns = [], [], []
    for line, k in zip(lines, places, strict=True):
        first, second = max(-int(k), 0), max(int(k), 0)
        length = min(shape[0] - first, shape[1] - second)
        if line.shape[0] not in (1, length):
            message = (
                f"The diagonal {k} of a sparse matrix of shape {shape} has {length} elements, not {line.shape[0]}."
            )
            raise ShapeError(message)
        values.append(np.broadcast_to(line, (length,)))
        rows.append(numpy.arange(first, first + length))
        columns.append(numpy.arange(second, second + length))
    kind = KINDS[format if format in ("csr", "csc") else "coo", is_array]
    entries = np.concatenate([wrap(node) for node in promote([as_node(one) for one in values])])
    return kind(
        (entries, (numpy.concatenate(rows), numpy.concatenate(columns))),
        shape=shape,
        dtype=dtype if isinstance(dtype, str | type | numpy.dtype) else None,
    )


def issparse(x: Any) -> bool:
    """Whether a value is a sparse matrix, of recorded values too."""
    return is_sparse(x)


def isspmatrix(x: Any) -> bool:
    """Whether a value is one of the older matrices."""
    return isinstance(x, SparseValues) and not x.is_array


def kron(A: Any, B: Any, format: Any = None) -> Any:
    """The Kronecker product."""
    one, two = (as_recorded(m if is_sparse(m) else CsrArray(m)) for m in (A, B))
    first = numpy.repeat(numpy.arange(one.nnz), two.nnz)
    second = numpy.tile(numpy.arange(two.nnz), one.nnz)
    a, b = promote([gather(one.values, constant(first)), gather(two.values, constant(second))])
    rows, columns = two.shape
    shape = (one.shape[0] * rows, one.shape[1] * columns)
    name = format if format in ("csr", "csc") else "coo"
    row, col = one.row[first] * rows + two.row[second], one.col[first] * columns + two.col[second]
    return one.like_this(a * b, row, col, shape, name)
