"""Sparse matrices of recorded values, in place of those of `scipy.sparse`.

In: values, which may be recorded, and the places of the entries, which are plain integers. Out: an object with the
operators and methods of SciPy's that keep, move, add or multiply entries. Called by code that `differentiable_source`
runs, by scipy_table.py; systems with such matrices are in sparse_systems.py.

Places are not recorded: SciPy itself moves them. What becomes of a matrix whose entries are the numbers of the entries
(`_numbered`) tells where each value goes, for slices, transposes, stacks and other structure; the values are gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from .. import numpy as np
from ..errors import ArgumentError, DtypeError, ShapeError
from ..functions.linalg.sparse_products import added_up, of_operators
from ..graph.builders import gather, scatter_add, transpose
from ..graph.ir import Node, constant
from ..record.as_node import as_node, wrap
from ..record.promotion import promote
from ..record.tensor import Tensor
from .scipy_objects import RecordedMatrix
from .sparse_entries import EntriesToSet, gathered, plain_integers, plain_key, sparse_module

_ELEMENTWISE = frozenset(
    (
        "sqrt sin tan arcsin arctan sinh tanh arcsinh arctanh expm1 log1p sign floor ceil rint trunc deg2rad rad2deg"
    ).split()
)
"""Functions that are zero at zero, which are methods of SciPy's matrices."""


class SparseValues(RecordedMatrix):
    """A sparse matrix: `data` at `row` and `col`; formats other than "coo" have each place once, in SciPy's order."""

    __array_ufunc__ = None
    """ndarrays leave operators to this class."""
    ndim = 2
    format = "coo"
    is_array = True
    """Whether `*` is the product of elements, as of SciPy's arrays; its older matrices multiply as matrices."""

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> None:
        del copy
        if isinstance(arg1, RecordedMatrix) or sparse_module().issparse(arg1):
            other = as_recorded(arg1)
            self._set(other.values, other.row, other.col, other.shape)
        elif isinstance(arg1, tuple) and len(arg1) == 2 and isinstance(arg1[1], tuple | list):
            row, col = (plain_integers(places, "places") for places in arg1[1])
            if shape is None:
                shape = (int(row.max(initial=-1)) + 1, int(col.max(initial=-1)) + 1)
            self._set(as_node(arg1[0]), row, col, shape)
        elif isinstance(arg1, tuple) and len(arg1) == 3:
            indices, starts = plain_integers(arg1[1], "indices"), plain_integers(arg1[2], "indptr")
            line = numpy.repeat(numpy.arange(starts.size - 1), numpy.diff(starts))
            row, col = (indices, line) if self.format == "csc" else (line, indices)
            if shape is None:
                counts = starts.size - 1, int(indices.max(initial=-1)) + 1
                shape = counts[::-1] if self.format == "csc" else counts
            self._set(as_node(arg1[0]), row, col, shape)
        else:
            node = as_node(arg1)
            if node.ndim != 2:
                message = (
                    f"A sparse matrix is made of (values, (rows, columns)) or of a matrix, not of shape {node.shape}."
                )
                raise ShapeError(message)
            row, col = (places.ravel() for places in numpy.indices(node.shape))
            self._set(as_node(wrap(node).reshape(-1)), row, col, node.shape)
        if dtype is not None:
            self.values = as_node(wrap(self.values).astype(dtype))

    def _set(self, values: Node, row: numpy.ndarray, col: numpy.ndarray, shape: Sequence[int]) -> None:
        if values.ndim != 1 or not values.size == row.size == col.size:
            message = f"{values.size} values of a sparse matrix have {row.size} rows and {col.size} columns."
            raise ShapeError(message)
        self.shape: tuple[int, int] = (int(shape[0]), int(shape[1]))
        for places, end, name in ((row, self.shape[0], "row"), (col, self.shape[1], "column")):
            if places.size and not 0 <= places.min() <= places.max() < end:
                message = f"A {name} of a sparse matrix of shape {self.shape} is out of bounds."
                raise ArgumentError(message)
        self.values, self.row, self.col = values, row, col
        if self.format != "coo":
            self._in_order()

    def _in_order(self) -> None:
        """Each place once, in the order of the format; values of one place are added."""
        rows, columns = self.shape
        order = self.col * rows + self.row if self.format == "csc" else self.row * columns + self.col
        places, target = numpy.unique(order, return_inverse=True)
        if places.size == order.size and (numpy.diff(order) > 0).all():
            return
        self.values = scatter_add(places.size, constant(target.astype(numpy.int64)), self.values)
        line, rest = numpy.divmod(places, max(rows if self.format == "csc" else columns, 1))
        self.row, self.col = (rest, line) if self.format == "csc" else (line, rest)

    @classmethod
    def of(cls, original: Any) -> Any:
        """SciPy's own object stays: its values are constants."""
        return original

    def like_this(
        self, values: Any, row: Any = None, col: Any = None, shape: Any = None, format: str = ""
    ) -> SparseValues:
        """A matrix of this kind with other values, or places."""
        kind = KINDS[format or self.format, self.is_array]
        made = object.__new__(kind)
        made._set(
            values._node if isinstance(values, Tensor) else values,
            *(self.row if row is None else row, self.col if col is None else col),
            self.shape if shape is None else shape,
        )
        return made

    @property
    def values(self) -> Node:  # type: ignore[override]
        """The node of the entries."""
        return self._data._node

    @values.setter
    def values(self, node: Node) -> None:
        self._data = wrap(node)

    def as_scipys(self) -> Any:
        """SciPy's matrix, for a matrix of constants."""
        name = f"{self.format}_{'array' if self.is_array else 'matrix'}"
        values = self.data.asnumpy()
        made = sparse_module().coo_array((values, (self.row, self.col)), shape=self.shape)
        return getattr(sparse_module(), name)(made)

    # ----- Structure -----

    def _numbered(self) -> Any:
        """SciPy's matrix with the numbers of the entries, from 1 on, as its entries."""
        one = self.tocsr() if self.format == "coo" else self
        kind = sparse_module().csr_array if self.is_array else sparse_module().csr_matrix
        return one, kind((numpy.arange(1, one.row.size + 1), (one.row, one.col)), shape=self.shape)

    def rearranged(self, move: Callable[[Any], Any], format: str = "") -> Any:
        """The result of a function that only moves entries."""
        one, numbered = self._numbered()
        return moved(move(numbered), one.values, format or self.format, self.is_array)

    def __getitem__(self, key: Any) -> Any:
        plain = plain_key(key)
        return self.rearranged(lambda numbered: numbered[plain], self._sliced)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.format == "coo":
            message = "A sparse matrix in the format coo has no elements to set. Set those of tocsr() or tolil()."
            raise DtypeError(message)
        self._set_entries(key, value)

    def _set_entries(self, key: Any, value: Any) -> None:
        entries = EntriesToSet(self.values, self.row, self.col, self.shape)
        entries.set(plain_key(key), value.toarray() if is_sparse(value) else value, without_zeros=False)
        self._set(*entries.all(), self.shape)

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Set the entries along a diagonal."""
        first, second = max(-k, 0), max(k, 0)
        length = min(self.shape[0] - first, self.shape[1] - second)
        given = as_node(values)
        if given.ndim and given.size != 1:
            length = min(length, given.size)
            values = wrap(given)[:length]
        line = numpy.arange(length)
        self._set_entries((line + first, line + second), values)

    @property
    def _sliced(self) -> str:
        """The format of a part."""
        return self.format if self.format in ("csc", "lil", "dok") else "csr"

    def getrow(self, i: int) -> SparseValues:
        """One row, as a matrix."""
        return self[[i], :]

    def getcol(self, j: int) -> SparseValues:
        """One column, as a matrix."""
        return self[:, [j]]

    @property
    def T(self) -> SparseValues:  # noqa: N802
        """The transposed matrix."""
        return self.transpose()

    def transpose(self, axes: Any = None, copy: bool = False) -> SparseValues:
        """The transposed matrix."""
        del axes, copy
        other = {"csr": "csc", "csc": "csr"}.get(self.format, self.format)
        return self.like_this(self.values, self.col, self.row, self.shape[::-1], other)

    def conj(self) -> SparseValues:
        """The conjugate matrix."""
        return self.like_this(np.conj(self.data))

    conjugate = conj

    @property
    def H(self) -> SparseValues:  # noqa: N802
        """The adjoint matrix."""
        return self.conj().transpose()

    def tocsr(self, copy: bool = False) -> SparseValues:
        """Rows in compressed form; values of one place are added."""
        del copy
        return self.asformat("csr")

    def tocsc(self, copy: bool = False) -> SparseValues:
        """Columns in compressed form; values of one place are added."""
        del copy
        return self.asformat("csc")

    def tolil(self, copy: bool = False) -> SparseValues:
        """The format whose elements are set."""
        del copy
        return self.asformat("lil")

    def todok(self, copy: bool = False) -> SparseValues:
        """The format of single elements."""
        del copy
        return self.asformat("dok")

    def tocoo(self, copy: bool = True) -> SparseValues:
        """Entries with their rows and columns."""
        del copy
        return self.asformat("coo")

    def asformat(self, format: Any, copy: bool = False) -> SparseValues:
        """The matrix in another format; those that are not known here become "csr"."""
        del copy
        name = format if (format, self.is_array) in KINDS else "csr"
        return self if name == self.format else self.like_this(self.values, format=name)

    def copy(self) -> SparseValues:
        """Another object."""
        return self.like_this(self.values)

    def sum_duplicates(self) -> None:
        """Add the values of one place."""
        one = self.tocsr()
        self.values, self.row, self.col = one.values, one.row, one.col

    def eliminate_zeros(self) -> None:
        """Keep all entries: whether one is zero is not known while it is recorded."""

    def sort_indices(self) -> None:
        """Entries are in order."""

    def diagonal(self, k: int = 0) -> Tensor:
        """The values along a diagonal."""
        one, numbered = self._numbered()
        return gathered(one.values, numbered.diagonal(k))

    def trace(self, offset: int = 0) -> Tensor:
        """The sum along a diagonal."""
        return np.sum(self.diagonal(offset))

    def toarray(self, order: Any = None, out: Any = None) -> Tensor:
        """The full matrix."""
        del order, out
        rows, columns = self.shape
        places = constant(self.row * columns + self.col)
        return wrap(scatter_add(rows * columns, places, self.values)).reshape(rows, columns)

    todense = toarray

    # ----- Fields -----

    @property
    def data(self) -> Tensor:
        """The values, which may be written to."""
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        self._set(as_node(value), self.row, self.col, self.shape)

    @property
    def indices(self) -> numpy.ndarray:
        """The columns of the entries, or their rows if the format is "csc"."""
        return (self.row if self.format == "csc" else self.col).astype(numpy.int32)

    @property
    def indptr(self) -> numpy.ndarray:
        """The first entry of each row, or of each column if the format is "csc"."""
        line, count = (self.col, self.shape[1]) if self.format == "csc" else (self.row, self.shape[0])
        return numpy.searchsorted(line, numpy.arange(count + 1)).astype(numpy.int32)

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self.row.size

    size = nnz

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """The type of the values."""
        return self.values.dtype

    def nonzero(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """The places of the entries."""
        return self.row, self.col

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> SparseValues:
        """Other values of another type."""
        del casting, copy
        return self.like_this(self.data.astype(dtype))

    def __array__(self, dtype: Any = None, copy: Any = None) -> numpy.ndarray:
        del dtype, copy
        return of_operators(self)

    def __repr__(self) -> str:
        return f"<{self.format} matrix of recorded values, shape {self.shape}, {self.nnz} entries>"

    # ----- Sums and products -----

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
        """The sum of all values, or along an axis."""
        del dtype, out
        if axis is None:
            return np.sum(self.data)
        along = axis % 2
        places, count = (self.col, self.shape[1]) if along == 0 else (self.row, self.shape[0])
        found = wrap(scatter_add(count, constant(places), self.values))
        return found if self.is_array else found.reshape((1, -1) if along == 0 else (-1, 1))

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
        """The mean of all elements, or along an axis."""
        count = self.shape[0] * self.shape[1] if axis is None else self.shape[axis % 2]
        return self.sum(axis, dtype, out) / count

    def dot(self, other: Any) -> Any:
        """The product with a matrix or a vector."""
        return self @ other

    def __matmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return self._times(as_recorded(other))
        entries, x = promote([self.values, as_node(other)])
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[1]:
            message = f"A sparse matrix of shape {self.shape} cannot be multiplied with an array of shape {x.shape}."
            raise ShapeError(message)
        return wrap(added_up(entries, self.col, self.row, x, self.shape[0]))

    def __rmatmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return as_recorded(other)._times(self)
        x = as_node(other)
        if x.ndim == 1:
            return self.transpose() @ other
        return wrap(transpose(as_node(self.transpose() @ wrap(transpose(x, (1, 0)))), (1, 0)))

    def _times(self, other: SparseValues) -> SparseValues:
        """The product of two sparse matrices: pairs of entries that meet are known beforehand."""
        if self.shape[1] != other.shape[0]:
            message = f"Sparse matrices of shapes {self.shape} and {other.shape} cannot be multiplied."
            raise ShapeError(message)
        left, right = self.tocsr(), other.tocsr()
        starts = right.indptr.astype(numpy.int64)
        counts = (starts[1:] - starts[:-1])[left.col]
        first = numpy.repeat(numpy.arange(left.nnz), counts)
        offset = numpy.arange(counts.sum()) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
        second = starts[left.col[first]] + offset
        a, b = promote([gather(left.values, constant(first)), gather(right.values, constant(second))])
        return left.like_this(a * b, left.row[first], right.col[second], (self.shape[0], other.shape[1]))

    def multiply(self, other: Any) -> Any:
        """The product of elements, which has entries where this matrix has."""
        if is_sparse(other):
            left, right = self.tocsr(), as_recorded(other).tocsr()
            numbers = right._numbered()[1]
            places = numpy.asarray(numbers[left.row, left.col]).reshape(-1).astype(numpy.int64)
            kept = places > 0
            both = (
                gather(left.values, constant(numpy.flatnonzero(kept))),
                gather(right.values, constant(places[kept] - 1)),
            )
            a, b = promote(list(both))
            return left.like_this(a * b, left.row[kept], left.col[kept])
        other = wrap(as_node(other))
        if other.ndim:
            other = np.broadcast_to(other, self.shape)[self.row, self.col]
        return self.like_this(self.data * other)

    def __mul__(self, other: Any) -> Any:
        return self.multiply(other) if self.is_array or _is_number(other) else self @ other

    def __rmul__(self, other: Any) -> Any:
        return self.multiply(other) if self.is_array or _is_number(other) else self.__rmatmul__(other)

    def __truediv__(self, other: Any) -> Any:
        return self.multiply(1.0 / wrap(as_node(other)))

    def __neg__(self) -> Any:
        return self.like_this(-self.data)

    def __pow__(self, power: Any) -> Any:
        return self.power(power) if self.is_array else _power(self, power)

    def power(self, n: Any, dtype: Any = None) -> SparseValues:
        """Powers of the elements."""
        del dtype
        return self.like_this(self.data**n)

    def __abs__(self) -> SparseValues:
        return self.like_this(np.abs(self.data))

    def __add__(self, other: Any) -> Any:
        if _is_number(other) and not isinstance(other, Tensor) and other == 0:
            return self
        if not is_sparse(other):
            return self.toarray() + other
        one, two = self, as_recorded(other)
        if one.shape != two.shape:
            message = f"Sparse matrices of shapes {one.shape} and {two.shape} cannot be added."
            raise ShapeError(message)
        values = np.concatenate([wrap(node) for node in promote([one.values, two.values])])
        row, col = numpy.concatenate([one.row, two.row]), numpy.concatenate([one.col, two.col])
        return self.like_this(values, row, col, format="csc" if self.format == "csc" else "csr")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-as_recorded(other) if is_sparse(other) else -wrap(as_node(other)))

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __getattr__(self, name: str) -> Any:
        if name in _ELEMENTWISE:
            function = getattr(numpy, name)
            return lambda: self.like_this(function(self.data))
        message = (
            f"A sparse matrix of recorded values has no {name!r}. It has products, sums, slices, transposes, toarray() "
            "and the other formats; make the rest of its .data, .row and .col."
        )
        raise AttributeError(message)


def _power(matrix: SparseValues, power: int) -> SparseValues:
    if not isinstance(power, int) or power < 1:
        message = f"Powers of sparse matrices are whole numbers from 1 on, but got {power!r}."
        raise DtypeError(message)
    found = matrix
    for _ in range(power - 1):
        found = found @ matrix
    return found


def _is_number(value: Any) -> bool:
    return numpy.ndim(value) == 0 and not is_sparse(value)


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse matrix, of ours or of SciPy's."""
    return isinstance(value, SparseValues) or sparse_module().issparse(value)


def as_recorded(value: Any) -> SparseValues:
    """A sparse matrix of SciPy's, whose values are constants, as one of ours."""
    if isinstance(value, SparseValues):
        return value
    entries = value.tocoo()
    is_array = isinstance(value, sparse_module().sparray)
    kind = KINDS.get((value.format, is_array), KINDS["coo", is_array])
    return kind((entries.data, (entries.row, entries.col)), shape=value.shape)


def by_elements(ufunc: Any, left: Any, right: Any) -> SparseValues:
    """The product or quotient by elements of a sparse matrix of SciPy's and a Tensor."""
    if ufunc is numpy.divide:
        return as_recorded(left) / right
    return as_recorded(left) * right if is_sparse(left) else as_recorded(right) * left


def moved(numbered: Any, values: Node, format: str, is_array: bool) -> Any:
    """The matrix, array or number of values that stands where a matrix of numbers has come to."""
    if not sparse_module().issparse(numbered):
        return gathered(values, numbered)
    entries = numbered.tocoo()
    if entries.ndim == 1:
        return gathered(values, entries.toarray())
    made = object.__new__(KINDS[format, is_array])
    chosen = gather(values, constant(entries.data.astype(numpy.int64) - 1))
    made._set(chosen, entries.row.astype(numpy.int64), entries.col.astype(numpy.int64), entries.shape)
    return made


class CooArray(SparseValues):
    """`scipy.sparse.coo_array` of recorded values."""


class CsrArray(SparseValues):
    """`scipy.sparse.csr_array` of recorded values."""

    format = "csr"


class CscArray(SparseValues):
    """`scipy.sparse.csc_array` of recorded values."""

    format = "csc"


class CooMatrix(CooArray):
    """`scipy.sparse.coo_matrix` of recorded values."""

    is_array = False


class CsrMatrix(CsrArray):
    """`scipy.sparse.csr_matrix` of recorded values."""

    is_array = False


class CscMatrix(CscArray):
    """`scipy.sparse.csc_matrix` of recorded values."""

    is_array = False


class LilArray(SparseValues):
    """`scipy.sparse.lil_array`, whose entries can be set to recorded values one after the other."""

    format = "lil"
    _entries: EntriesToSet | None = None
    _held: tuple[Tensor, numpy.ndarray, numpy.ndarray] | None = None

    @classmethod
    def of(cls, original: Any) -> Any:
        """Recorded values are set later."""
        return as_recorded(original)

    def _set(self, values: Node, row: numpy.ndarray, col: numpy.ndarray, shape: Sequence[int]) -> None:
        self._entries, self._held = None, (wrap(values), row, col)
        super()._set(values, row, col, shape)

    def _set_entries(self, key: Any, value: Any) -> None:
        if self._entries is None:
            self._entries = EntriesToSet(self.values, self.row, self.col, self.shape)
        self._entries.set(plain_key(key), value.toarray() if is_sparse(value) else value, without_zeros=True)
        self._held = None

    def __getitem__(self, key: Any) -> Any:
        if self._entries is None:
            return super().__getitem__(key)
        return moved(*self._entries.at(plain_key(key)), self.format, self.is_array)

    def _part(self, place: int) -> Any:
        if self._held is None:
            assert self._entries is not None
            values, row, col = self._entries.all()
            self._held = wrap(values), row, col
        return self._held[place]

    def _put(self, place: int, value: Any) -> None:
        held = [self._part(k) for k in range(3)]
        held[place] = value
        self._entries, self._held = None, tuple(held)  # type: ignore[assignment]

    _data = property(lambda self: self._part(0), lambda self, value: self._put(0, value))  # type: ignore[assignment]
    row = property(lambda self: self._part(1), lambda self, value: self._put(1, value))  # type: ignore[assignment]
    col = property(lambda self: self._part(2), lambda self, value: self._put(2, value))  # type: ignore[assignment]


class DokArray(LilArray):
    """`scipy.sparse.dok_array`, whose entries can be set to recorded values one after the other."""

    format = "dok"


class LilMatrix(LilArray):
    """`scipy.sparse.lil_matrix`, whose entries can be set to recorded values one after the other."""

    is_array = False


class DokMatrix(DokArray):
    """`scipy.sparse.dok_matrix`, whose entries can be set to recorded values one after the other."""

    is_array = False


_CLASSES = (CooArray, CsrArray, CscArray, LilArray, DokArray, CooMatrix, CsrMatrix, CscMatrix, LilMatrix, DokMatrix)
KINDS: dict[tuple[str, bool], type[SparseValues]] = {(kind.format, kind.is_array): kind for kind in _CLASSES}
"""By format, and whether it is one of SciPy's arrays."""
