"""Exponentials of sparse matrices: `expm`, `expm_multiply`.

In: a sparse matrix, of ours or of SciPy's, and vectors or matrices that it acts on. Out: Tensors, or a sparse matrix.
Called by code that `differentiable_source` runs, by scipy_table.py. Of a matrix of constants SciPy computes the action
at run time (a `host` node), which is linear: its transpose is the action of the adjoint matrix. The exponential of a
matrix of recorded values is that of the full matrix.
"""

from __future__ import annotations

from typing import Any

import numpy

from .. import numpy as np
from ..functions.linalg.matrix_batches import with_rule
from ..graph.host_functions import HostFunction, host
from ..graph.ir import Node
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact
from ..record.tensor import Tensor
from .sparse_values import CscArray, SparseValues, as_recorded, is_sparse


class _Constant:
    """A matrix of constants, times a number; it is equal to itself alone."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self._adjoint: _Constant | None = None

    def adjoint(self) -> _Constant:
        """The conjugate transposed matrix."""
        if self._adjoint is None:
            self._adjoint = _Constant(self.matrix.conj().T)
            self._adjoint._adjoint = self
        return self._adjoint


def _dtype(inputs: Any, params: Any) -> Any:
    return inputs[0].shape, numpy.result_type(params[0].matrix.dtype, inputs[0].dtype)


def _run(b: numpy.ndarray, known: _Constant) -> numpy.ndarray:
    from scipy.sparse.linalg import expm_multiply

    found = numpy.empty(b.shape, numpy.result_type(known.matrix.dtype, b.dtype))
    for at in numpy.ndindex(b.shape[:-2]):
        found[at] = expm_multiply(known.matrix, b[at])
    return found


ACTION = HostFunction("action of an exponential", _dtype, _run)


def _action(b: Node, known: _Constant) -> Node:
    """exp(A) B, shape (1, n, k)."""
    return with_rule(host(ACTION, (b,), known), _transposed, b, static=(known,))


def _transposed(g: Node, x: Node, b: Node, known: _Constant) -> list[Node | None]:
    found = _action(g, known.adjoint())
    return [found if b.dtype.kind == "c" else as_node(np.real(wrap(found)))]


def _times(matrix: Any, b: Any) -> Any:
    """exp(A) B for a matrix of constants."""
    wide = inexact(as_node(b))
    columns = wide.shape[1] if wide.ndim == 2 else 1
    sides = as_node(wrap(wide).reshape(1, wide.shape[0], columns))
    return wrap(_action(sides, _Constant(matrix))).reshape(wide.shape)


def expm(A: Any) -> Any:
    """The exponential of a sparse matrix, as a sparse matrix of all elements."""
    return CscArray(np.expm(as_recorded(A).toarray()))


def expm_multiply(
    A: Any,
    B: Any,
    start: Any = None,
    stop: Any = None,
    num: int | None = None,
    endpoint: bool | None = None,
    traceA: Any = None,
) -> Any:
    """exp(A) B, or exp(t A) B at `num` equal steps from `start` to `stop`."""
    del traceA
    if isinstance(A, SparseValues) and not A.values.traced:
        A = A.as_scipys()
    known = not isinstance(A, SparseValues | Tensor)
    matrix: Any = A.toarray() if isinstance(A, SparseValues) else A

    def acted(time: Any, b: Any) -> Any:
        if known and not isinstance(time, Tensor):
            return _times(matrix * time, b)
        full = matrix.toarray() if is_sparse(matrix) else matrix
        return np.expm(full * time) @ b

    if all(one is None for one in (start, stop, num, endpoint)):
        return acted(1.0, B)
    first, last = (0.0 if start is None else start), (1.0 if stop is None else stop)
    count = 50 if num is None else num
    step = (last - first) / max(count - 1 if endpoint is not False else count, 1)
    found = [acted(first, B)]
    for _ in range(count - 1):
        found.append(acted(step, found[-1]))
    return np.stack(found)
