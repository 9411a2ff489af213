"""`scipy.sparse` matrices beside Tensors: `A @ x`, `A.dot(x)`, `x @ A` and the like, unmodified.

In: a matrix or array of scipy.sparse, which is a constant, and a Tensor. Out: a Tensor. Called by Tensor's operators,
and by `Tensor.__array__`, for which scipy.sparse asks first: for a product it gets an object array, upon which it
leaves the operator to Tensor. A product gathers the elements of x that the entries of A meet and adds them up by rows;
so it compiles, and both modes of its derivative are products of the same kind, to any order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from ...errors import DtypeError, ShapeError, TracedValueError, users_frame
from ...graph.builders import cast, gather, reshape, scatter_add, transpose
from ...graph.ir import BOOL, INT64, Node, broadcast, constant, elementwise
from ...record.as_node import as_node, wrap
from ...record.leaks import is_converted
from ...record.promotion import promote
from ...record.tensor import Tensor

_BY_ELEMENTS = ("multiply", "_multiply_2d_with_broadcasting", "_divide")
_INSTEAD = (
    "A scipy.sparse array is a constant here: write D A x as d * (A @ x), a multiple as t * (A @ x), and use "
    "A.toarray() where a dense array is meant. In code that nb.differentiable_source runs, A * t (in place of "
    "A.multiply(t)) and A / t are sparse matrices of recorded values: see docs/sparse.md."
)


multiples: list[Callable[[np.ufunc, Any, Any], Any]] = []
"""The function that makes the product or quotient of a sparse array and a Tensor by elements, a matrix of recorded
values: it is here once `differentiable_source` has been used."""


def is_sparse(value: Any) -> bool:
    """Whether a value is a matrix or array of scipy.sparse, which is not imported for that."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(value)


def asked_by_scipy(tensor: Tensor, function: str) -> np.ndarray | None:
    """The array that a function of scipy.sparse gets when it asks for a Tensor as an ndarray; None for its value.

    Raises
    ------
    TracedValueError
        If that would cut a recorded Tensor off.
    """
    if function in ("_matmul_dispatch", "_mul_dispatch") or (function in _BY_ELEMENTS and _in_converted_code()):
        found = np.empty((), object)
        found[()] = tensor
        return found
    if function == "dot":
        # It only looks whether this is an array, and then calls the operator.
        return np.empty(0)
    if tensor._node.traced and function in _BY_ELEMENTS:
        message = f"scipy.sparse cannot multiply or divide element by element by a Tensor. {_INSTEAD}"
        raise TracedValueError(message)
    return None


def beside_sparse(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    """The result of an operator between a Tensor and a scipy.sparse array; NotImplemented without a sparse operand.

    Raises
    ------
    DtypeError
        If the result would be sparse, or there is none.
    ShapeError
        If the shapes do not fit.
    """
    if not (is_sparse(left) or is_sparse(right)):
        return NotImplemented
    matrix, other = (left, right) if is_sparse(left) else (right, left)
    if ufunc is np.matmul or (ufunc is np.multiply and _is_matrix(matrix) and np.ndim(other)):
        node = as_node(other)
        return wrap(product(left, node) if matrix is left else reverse_product(node, right))
    scaling = ufunc is np.multiply or (ufunc is np.divide and matrix is left)
    if scaling and _in_converted_code() and multiples:
        return multiples[0](ufunc, left, right)
    if ufunc is np.add or ufunc is np.subtract:
        return ufunc(*[value.toarray() if is_sparse(value) else value for value in (left, right)])
    message = f"numpy.{ufunc.__name__} does not work on a {type(matrix).__name__} and a Tensor. {_INSTEAD}"
    raise DtypeError(message)


def _in_converted_code() -> bool:
    """Whether code that `differentiable_source` runs uses an operator."""
    frame, called = _asking()
    return frame is not None and called.startswith("__") and is_converted(frame)


def _asking() -> tuple[FrameType | None, str]:
    """The frame that has called scipy.sparse, and the name of the function there."""
    frame, called = users_frame(), "__mul__"
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("scipy.sparse."):
        called, frame = frame.f_code.co_name, frame.f_back
    return frame, called


def of_operators(matrix: Any) -> np.ndarray:
    """The array as which scipy.sparse's operators see a sparse matrix of recorded values: it leaves them to that.

    Raises
    ------
    TracedValueError
        If anything but an operator asks for an array.
    """
    called = _asking()[1]
    if not called.startswith("__"):
        message = (
            f"A sparse matrix of recorded values does not become an ndarray for {called}(). Write A * B for "
            "A.multiply(B), or use its toarray(), which is a Tensor."
        )
        raise TracedValueError(message)
    found = np.empty((), object)
    found[()] = matrix
    return found


def _is_matrix(value: Any) -> bool:
    """Whether `*` is the product of matrices, as for scipy's older kind."""
    return isinstance(value, sys.modules["scipy.sparse"].spmatrix)


def product(matrix: Any, x: Node) -> Node:
    """`matrix @ x`, for x of shape (k,) or (k, n)."""
    if x.ndim not in (1, 2) or matrix.ndim > 2 or matrix.shape[-1] != x.shape[0]:
        message = f"A scipy.sparse array of shape {matrix.shape} cannot be multiplied with a Tensor of shape {x.shape}."
        raise ShapeError(message)
    rows = matrix.reshape((1, -1)).tocsr() if matrix.ndim == 1 else matrix.tocsr()
    count, columns = rows.shape[0], rows.indices.astype(INT64)
    target = np.repeat(np.arange(count), np.diff(rows.indptr))
    entries, x = promote([constant(np.array(rows.data)), x])
    if x.dtype == BOOL:
        counted = added_up(cast(entries, INT64), columns, target, cast(x, INT64), count)
        result = elementwise("greater", counted, 0)
    elif x.dtype.itemsize == 2 and x.dtype.kind == "f":
        # As NumPy: products of float16 are added in float32.
        wide = np.dtype(np.float32)
        result = cast(added_up(cast(entries, wide), columns, target, cast(x, wide), count), x.dtype)
    else:
        result = added_up(entries, columns, target, x, count)
    return reshape(result, x.shape[1:]) if matrix.ndim == 1 else result


def added_up(entries: Node, columns: np.ndarray, target: np.ndarray, x: Node, count: int) -> Node:
    """The product of a matrix of `count` rows with x, (k,) or (k, n): its entries, and their columns and rows."""
    if x.ndim == 1:
        return scatter_add(count, constant(target), entries * gather(x, constant(columns)))
    n = x.shape[1]
    inner = np.arange(n)
    met = gather(reshape(x, (x.size,)), constant(columns[:, None] * n + inner))
    factor = broadcast(reshape(entries, (entries.size, 1)), met.shape)
    return reshape(scatter_add(count * n, constant(target[:, None] * n + inner), factor * met), (count, n))


def reverse_product(x: Node, matrix: Any) -> Node:
    """`x @ matrix`, for x of shape (k,) or (n, k)."""
    if x.ndim not in (1, 2) or matrix.ndim > 2 or matrix.shape[0] != x.shape[-1]:
        message = f"A Tensor of shape {x.shape} cannot be multiplied with a scipy.sparse array of shape {matrix.shape}."
        raise ShapeError(message)
    if x.ndim == 1:
        return product(matrix.T, x)
    turned = product(matrix.T, transpose(x, (1, 0)))
    return turned if turned.ndim == 1 else transpose(turned, (1, 0))
