"""Arrays with few elements that are not zero: RowTensor, COOTensor and CSRTensor, and functions of their elements.

In: positions, values and a shape. Out: sparse arrays, or Tensors. Called by users. Values are Tensors, so that what is
computed from them differentiates; positions are known numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy

from ...errors import ShapeError
from ...record.axes_and_dtypes import axis_of
from ...record.tensor import Tensor
from ..class_table import ELEMENTWISE_OF_SPARSE
from .special_values import value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _shown(name: str, x: Any) -> str:
    return f"{name}=Tensor(shape={list(x.shape)}, dtype={x.dtype}, value={x})"


class _SparseTensor:
    """The members that sparse arrays share: facts of their values and their shape."""

    values: Tensor
    shape: tuple[int, ...]

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of values."""
        return self.values.size

    @property
    def itemsize(self) -> int:
        """The bytes of a value."""
        return self.values.itemsize


class RowTensor(_SparseTensor):
    """An array by the positions and values of its rows that are not zero.

    Parameters
    ----------
    indices : Tensor or ndarray of int, shape (k,)
    values : Tensor or ndarray, shape (k, ...)
    shape : tuple of int

    Raises
    ------
    ShapeError
        If there are not as many positions as rows, or the rows have another shape.

    Examples
    --------
    >>> import nbgrad as nb
    >>> rows = nb.RowTensor(nb.Tensor([2, 0]), nb.Tensor([[1.0, 2.0], [3.0, 4.0]]), (3, 2))
    >>> print(rows.to_dense())
    [[3. 4.]
     [0. 0.]
     [1. 2.]]
    """

    def __init__(self, indices: Any, values: Any, shape: Any) -> None:
        self.indices, self.values = value_of(indices), value_of(values)
        self.shape = tuple(int(n) for n in shape)
        if self.values.shape != (*self.indices.shape, *self.shape[1:]) or self.indices.ndim != 1:
            message = (
                f"A RowTensor of shape {self.shape} needs indices (k,) and values (k, ...), but their shapes are "
                f"{self.indices.shape} and {self.values.shape}."
            )
            raise ShapeError(message)

    def __repr__(self) -> str:
        parts = [_shown("indices", self.indices), _shown("values", self.values)]
        return f"RowTensor(shape={list(self.shape)}, {', '.join(parts)})"

    @property
    def dense_shape(self) -> tuple[int, ...]:
        """The shape of the whole array."""
        return self.shape

    def to_dense(self) -> Tensor:
        """The array with all its zeros; rows of one position add up."""
        target = value_of(np.zeros(self.shape, np.dtype(self.dtype.name))).copy()
        np.add.at(target, self.indices, self.values)
        return target


class COOTensor(_SparseTensor):
    """An array by the coordinates and values of its elements.

    Parameters
    ----------
    indices : Tensor or ndarray of int, shape (k, ndim)
    values : Tensor or ndarray, shape (k,)
    shape : tuple of int

    Raises
    ------
    ShapeError
        If there are not as many coordinates as values, or axes.

    Examples
    --------
    >>> import nbgrad as nb
    >>> x = nb.COOTensor(nb.Tensor([[0, 1], [1, 0]]), nb.Tensor([1.0, 2.0]), (2, 2))
    >>> print(x.to_dense())
    [[0. 1.]
     [2. 0.]]
    """

    def __init__(self, indices: Any, values: Any, shape: Any) -> None:
        self.indices, self.values = value_of(indices), value_of(values)
        self.shape = tuple(int(n) for n in np.asarray(shape).tolist())
        if self.indices.shape != (*self.values.shape, len(self.shape)) or self.values.ndim != 1:
            message = (
                f"A COOTensor of shape {self.shape} needs values (k,) and indices (k, {len(self.shape)}), but their "
                f"shapes are {self.values.shape} and {self.indices.shape}."
            )
            raise ShapeError(message)

    def astype(self, dtype: Any) -> COOTensor:
        """The array in another dtype."""
        return self._with(self.values.astype(dtype))

    def abs(self) -> COOTensor:
        """The absolute values."""
        return self._with(np.abs(self.values))

    def to_tuple(self) -> tuple[Any, ...]:
        """Indices, values and shape."""
        return self.indices, self.values, self.shape

    def to_dense(self) -> Tensor:
        """The array with all its zeros; values of one position add up."""
        zeros = value_of(np.zeros(self.shape, np.dtype(self.dtype.name)))
        target = zeros.copy()
        np.add.at(target, tuple([self.indices[:, k] for k in range(self.ndim)]), self.values)
        return target

    def to_csr(self) -> CSRTensor:
        """A matrix by its rows."""
        ordered = _in_order(self)
        rows = np.bincount(np.asarray(ordered.indices)[:, 0], minlength=self.shape[0])
        dtype = np.dtype(self.indices.dtype.name)
        pointers = Tensor(np.append(0, np.cumsum(rows)).astype(dtype))
        return CSRTensor(pointers, ordered.indices[:, 1], ordered.values, self.shape)

    def coalesce(self) -> COOTensor:
        """The array with each position once, in the order of the axes."""
        flat = np.ravel_multi_index(tuple(np.asarray(self.indices).T), self.shape)
        places, inverse = np.unique(flat, return_inverse=True)
        target = value_of(np.zeros(places.size, np.dtype(self.dtype.name))).copy()
        np.add.at(target, inverse, self.values)
        indices = np.stack(np.unravel_index(places, self.shape), -1).astype(np.dtype(self.indices.dtype.name))
        return COOTensor(Tensor(indices), target, self.shape)

    def add(self, other: COOTensor, thresh: Any) -> COOTensor:
        """The sum of two arrays, without elements whose size is below a threshold."""
        joined = COOTensor(
            np.concatenate([self.indices, other.indices]), np.concatenate([self.values, other.values]), self.shape
        ).coalesce()
        kept = np.flatnonzero(np.abs(np.asarray(joined.values)) >= np.asarray(thresh))
        return COOTensor(joined.indices[kept], joined.values[kept], self.shape)

    def __add__(self, other: COOTensor) -> COOTensor:
        return self.add(other, 0)

    def __mul__(self, other: Any) -> COOTensor:
        whole = value_of(other)
        part = whole if whole.ndim == 0 else whole[tuple([self.indices[:, k] for k in range(self.ndim)])]
        return self._with(self.values * part)

    def _with(self, values: Any) -> COOTensor:
        return COOTensor(self.indices, values, self.shape)

    def __repr__(self) -> str:
        return (
            f"COOTensor(shape={list(self.shape)}, dtype={self.dtype}, {_shown('indices', self.indices)}, "
            f"{_shown('values', self.values)})"
        )


def _in_order(x: COOTensor) -> COOTensor:
    order = np.lexsort(tuple(np.asarray(x.indices).T[::-1]))
    return COOTensor(x.indices[order], x.values[order], x.shape)


class CSRTensor(_SparseTensor):
    """A matrix by the columns and values of its rows.

    Parameters
    ----------
    indptr : Tensor or ndarray of int, shape (rows + 1,)
        The first element of each row.
    indices, values : Tensor or ndarray, shape (k, ...)
        The columns, and the elements.
    shape : tuple of int

    Raises
    ------
    ShapeError
        If there are not as many columns as values, or rows.

    Examples
    --------
    >>> import nbgrad as nb
    >>> x = nb.CSRTensor(nb.Tensor([0, 1, 2]), nb.Tensor([1, 0]), nb.Tensor([1.0, 2.0]), (2, 2))
    >>> print(x.to_dense(), x.mv(nb.Tensor([[1.0], [10.0]])).tolist())
    [[0. 1.]
     [2. 0.]] [[10.0], [2.0]]
    """

    def __init__(self, indptr: Any, indices: Any, values: Any, shape: Any) -> None:
        self.indptr, self.indices, self.values = value_of(indptr), value_of(indices), value_of(values)
        self.shape = tuple(int(n) for n in np.asarray(shape).tolist())
        if self.indptr.shape != (self.shape[0] + 1,) or self.indices.shape[:1] != self.values.shape[:1]:
            message = (
                f"A CSRTensor of shape {self.shape} needs {self.shape[0] + 1} pointers, and as many columns as values, "
                f"but the shapes are {self.indptr.shape}, {self.indices.shape} and {self.values.shape}."
            )
            raise ShapeError(message)

    @property
    def _rows(self) -> numpy.ndarray:
        """The row of each value."""
        return np.repeat(np.arange(self.shape[0]), np.diff(np.asarray(self.indptr)))

    def astype(self, dtype: Any) -> CSRTensor:
        """The matrix in another dtype."""
        return self._with(self.values.astype(dtype))

    def abs(self) -> CSRTensor:
        """The absolute values."""
        return self._with(np.abs(self.values))

    def to_tuple(self) -> tuple[Any, ...]:
        """Pointers, columns, values and shape."""
        return self.indptr, self.indices, self.values, self.shape

    def to_coo(self) -> COOTensor:
        """The matrix by coordinates."""
        rows = Tensor(self._rows.astype(np.dtype(self.indices.dtype.name)))
        return COOTensor(np.stack([rows, self.indices], -1), self.values, self.shape)

    def to_dense(self) -> Tensor:
        """The matrix with all its zeros."""
        zeros = value_of(np.zeros((*self.shape[:2], *self.values.shape[1:]), np.dtype(self.dtype.name)))
        target = zeros.copy()
        np.add.at(target, (self._rows, self.indices), self.values)
        return target

    def mv(self, dense_vector: Any) -> Tensor:
        """The product with a vector, which has a second axis of extent 1."""
        return self.mm(dense_vector)

    def mm(self, matrix: Any) -> Tensor:
        """The product with a matrix."""
        other = value_of(matrix)
        target = value_of(np.zeros((self.shape[0], *other.shape[1:]), np.dtype(other.dtype.name))).copy()
        np.add.at(target, self._rows, self.values[:, None] * other[self.indices])
        return target

    def sum(self, axis: int) -> Tensor:
        """The sums along an axis, which stays with extent 1."""
        return np.sum(self.to_dense(), axis_of(axis, 2), keepdims=True)

    def add(self, b: CSRTensor, alpha: Any, beta: Any) -> CSRTensor:
        """`alpha * self + beta * b`."""
        total = _scaled(self.to_coo(), alpha).add(_scaled(b.to_coo(), beta), 0)
        found = total.to_csr()
        return CSRTensor(found.indptr.astype(self.indptr.dtype), found.indices, found.values, self.shape)

    def __mul__(self, other: Any) -> CSRTensor:
        whole = value_of(other)
        if whole.ndim:
            whole = np.broadcast_to(whole, self.shape)[self._rows, self.indices]
        return self._with(self.values * whole)

    def _with(self, values: Any) -> CSRTensor:
        return CSRTensor(self.indptr, self.indices, values, self.shape)

    def __repr__(self) -> str:
        return (
            f"CSRTensor(shape={list(self.shape)}, dtype={self.dtype}, {_shown('indptr', self.indptr)}, "
            f"{_shown('indices', self.indices)}, {_shown('values', self.values)})"
        )


def _scaled(x: COOTensor, factor: Any) -> COOTensor:
    return COOTensor(x.indices, x.values * value_of(factor).reshape(()), x.shape)


# ----- Functions of the elements -----


def _elementwise(kind: str, name: str) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        return x._with(getattr(import_module("nbgrad.ops"), name)(x.values))

    function.__name__ = function.__qualname__ = f"{kind}_{name}"
    function.__doc__ = f"`nbgrad.ops.{name}` of the values of a {kind.upper()}Tensor."
    return function


def __getattr__(name: str) -> Any:
    kind, _, function = name.partition("_")
    if kind not in ("coo", "csr") or function not in ELEMENTWISE_OF_SPARSE.split():
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    made = globals()[name] = _elementwise(kind, function)
    return made


def coo_add(x1: COOTensor, x2: COOTensor, thresh: Any) -> COOTensor:
    """The sum of two sparse arrays, without elements whose size is below a threshold."""
    return x1.add(x2, thresh)


def coo_concat(sp_input: Any, concat_dim: int = 0) -> COOTensor:
    """Sparse arrays joined along an axis."""
    arrays = list(sp_input)
    axis = axis_of(concat_dim, arrays[0].ndim)
    shift, indices = 0, []
    for x in arrays:
        move = np.zeros(x.ndim, np.dtype(x.indices.dtype.name))
        move[axis] = shift
        indices.append(x.indices + move)
        shift += x.shape[axis]
    shape = list(arrays[0].shape)
    shape[axis] = shift
    joined = COOTensor(np.concatenate(indices), np.concatenate([x.values for x in arrays]), shape)
    return _in_order(joined)


def csr_add(a: CSRTensor, b: CSRTensor, alpha: Any, beta: Any) -> CSRTensor:
    """`alpha * a + beta * b` of two sparse matrices."""
    return a.add(b, alpha, beta)


def csr_softmax(logits: CSRTensor, dtype: Any) -> CSRTensor:
    """The softmax of the elements that each row has."""
    rows, values = logits._rows, logits.values
    greatest = np.full(logits.shape[0], -np.inf)
    np.maximum.at(greatest, rows, np.asarray(values))
    powers = np.exp(values - greatest[rows].astype(np.dtype(values.dtype.name)))
    total = value_of(np.zeros(logits.shape[0], np.dtype(values.dtype.name))).copy()
    np.add.at(total, rows, powers)
    return logits._with((powers / total[rows]).astype(dtype))


def csr_to_dense(csr_tensor: CSRTensor) -> Tensor:
    """A sparse matrix with all its zeros."""
    return csr_tensor.to_dense()


def csr_to_coo(tensor: CSRTensor) -> COOTensor:
    """A sparse matrix by coordinates."""
    return tensor.to_coo()


def csr_mm(a: CSRTensor, b: Any) -> Tensor:
    """The product of a sparse matrix with a matrix."""
    return a.mm(b)


def csr_mv(csr_tensor: CSRTensor, dense: Any) -> Tensor:
    """The product of a sparse matrix with a vector, which has a second axis of extent 1."""
    return csr_tensor.mv(dense)


def csr_mul(x: CSRTensor, y: Any) -> Tensor:
    """The elements of a sparse matrix times those of an array that broadcasts to it."""
    return (x * y).values


def csr_div(x: CSRTensor, y: Any) -> Tensor:
    """The elements of a sparse matrix divided by those of an array that broadcasts to it."""
    whole = np.broadcast_to(value_of(y), x.shape)
    return x.values / whole[x._rows, x.indices]


def csr_reduce_sum(csr_tensor: CSRTensor, axis: int) -> Tensor:
    """The sums of a sparse matrix along an axis, which stays with extent 1."""
    return csr_tensor.sum(axis)


def csr_gather(indptr: Any, indices: Any, dense: Any, sparse_shape: Any) -> Tensor:
    """The elements of an array at the places of a sparse matrix."""
    pointers = np.asarray(value_of(indptr))
    rows = np.repeat(np.arange(pointers.size - 1), np.diff(pointers))
    del sparse_shape
    return value_of(dense)[rows, value_of(indices)]


def coo2csr(row_indices: Any, height: int) -> Tensor:
    """The first element of each row, from the rows of all elements, in order."""
    rows = np.asarray(value_of(row_indices))
    return Tensor(np.append(0, np.cumsum(np.bincount(rows, minlength=height))).astype(rows.dtype))


def csr2coo(indptr: Any, nnz: int) -> Tensor:
    """The rows of all elements, from the first element of each row."""
    pointers = np.asarray(value_of(indptr))
    return Tensor(np.repeat(np.arange(pointers.size - 1), np.diff(pointers))[:nnz].astype(pointers.dtype))


def dense_to_sparse_coo(tensor: Any) -> COOTensor:
    """The elements that are not zero, which must be known, by coordinates."""
    x = value_of(tensor)
    places = np.argwhere(np.asarray(x)).astype(np.int32)
    return COOTensor(Tensor(places), x[tuple(places.T)], x.shape)


def dense_to_sparse_csr(tensor: Any) -> CSRTensor:
    """The elements of a matrix that are not zero, which must be known, by rows."""
    found = dense_to_sparse_coo(tensor).to_csr()
    return CSRTensor(found.indptr.astype("int32"), found.indices.astype("int32"), found.values, found.shape)


# ----- By coordinates and values -----


def dense_of(indices: Any, values: Any, sparse_shape: Any) -> Tensor:
    """Zeros with values at coordinates."""
    return COOTensor(indices, values, sparse_shape).to_dense()


def added_to_dense(x1_indices: Any, x1_values: Any, x1_shape: Any, x2: Any) -> Tensor:
    """An array with values added at coordinates."""
    return dense_of(x1_indices, x1_values, x1_shape) + value_of(x2)


def product_with_dense(
    indices: Any, values: Any, sparse_shape: Any, dense: Any, adjoint_st: bool, adjoint_dt: bool
) -> Tensor:
    """The product of a sparse matrix with another one, each transposed first if asked for."""
    sparse = COOTensor(indices, values, sparse_shape)
    if adjoint_st:
        sparse = COOTensor(sparse.indices[:, ::-1], sparse.values, sparse.shape[::-1])
    other = value_of(dense)
    return sparse.to_csr().mm(other.T if adjoint_dt else other)
