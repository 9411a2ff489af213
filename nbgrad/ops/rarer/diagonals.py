"""Diagonals and bands of matrices, and arrays with a part of them written anew.

In: arrays whose last two axes are matrices. Out: Tensors. Called by users; class_table.py names some of them.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...errors import ArgumentError, ShapeError
from ...record.axes_and_dtypes import axis_of, integer, real_dtype
from ...record.tensor import Tensor
from ..declarations import spelled
from ..docstrings import documented
from .special_values import value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

_SIDES = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def _number(value: Any, name: str) -> int:
    return integer(np.asarray(value).reshape(()).item(), name)


# ----- Parts written anew -----


def _written(x: Any, key: Any, part: Any) -> Tensor:
    target = value_of(x).copy()
    target[key] = part
    return target


@spelled
def select_scatter(input: Any, src: Any, axis: int, index: int) -> Tensor:
    """The array with `src` in place of one position of an axis.

    src : Tensor or ndarray
        Of the input's shape without the axis.
    """
    at = axis_of(axis, value_of(input).ndim)
    return _written(input, (*[slice(None)] * at, integer(index, "index")), src)


@spelled
def slice_scatter(
    input: Any, src: Any, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The array with `src` in place of a slice of an axis.

    src : Tensor or ndarray
    start, end : int, optional
        The whole axis by default.
    step : int
    """
    at = axis_of(axis, value_of(input).ndim)
    return _written(input, (*[slice(None)] * at, slice(start, end, step)), src)


@documented
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The array with `src` in place of a diagonal of two axes.

    src : Tensor or ndarray
        The shape that `diagonal` gives.
    offset, dim1, dim2 : int
        The diagonal, and the axes.
    ShapeError : If `src` has another shape.
    """
    x = np.moveaxis(value_of(input), (dim1, dim2), (-2, -1))
    rows = np.arange(x.shape[-2])
    rows = rows[(rows + offset >= 0) & (rows + offset < x.shape[-1])]
    if value_of(src).shape != (*x.shape[:-2], rows.size):
        message = f"The diagonal has the shape {(*x.shape[:-2], rows.size)}, but src has {value_of(src).shape}."
        raise ShapeError(message)
    return np.moveaxis(_written(x, (..., rows, rows + offset), src), (-2, -1), (dim1, dim2))


# ----- Diagonals -----


@documented
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Rows as diagonals of new matrices, zeros elsewhere.

    offset : int
        The diagonal; above 0 over the main one.
    dim1, dim2 : int
        The axes of the matrices in the result.

    >>> print(nb.ops.diag_embed(nb.Tensor([1, 2])))
    [[1 0]
     [0 2]]
    """
    x = value_of(input)
    n = x.shape[-1] + abs(offset)
    rows = np.arange(x.shape[-1]) + max(-offset, 0)
    matrices = np.zeros((*x.shape[:-1], n, n), np.dtype(x.dtype.name))
    return np.moveaxis(_written(matrices, (..., rows, rows + offset), x), (-2, -1), (dim1, dim2))


@documented
def matrix_band_part(x: Any, lower: Any, upper: Any) -> Tensor:
    """Matrices with zeros outside of a band around the main diagonal.

    lower, upper : int or 0-d Tensor
        The numbers of diagonals below and above it; all, if negative.
    """
    array = value_of(x)
    distance = np.arange(array.shape[-1]) - np.arange(array.shape[-2])[:, None]
    below, above = _number(lower, "lower"), _number(upper, "upper")
    inside = ((below < 0) | (-distance <= below)) & ((above < 0) | (distance <= above))
    return np.where(inside, array, np.zeros_like(array))


def _bands(k: Any) -> tuple[int, int]:
    """The lowest and the highest diagonal."""
    ends = np.asarray(k).reshape(-1).tolist()
    if len(ends) not in (1, 2) or ends[0] > ends[-1]:
        message = f"k must be one diagonal, or the lowest and the highest one, but is {k}."
        raise ArgumentError(message)
    return ends[0], ends[-1]


def _places(
    shape: tuple[int, int], band: tuple[int, int], align: str
) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """Rows and columns of the elements of diagonals, the highest one first, and which elements are there."""
    if align not in _SIDES:
        message = f"align must be one of {', '.join(_SIDES)}, but is {align!r}."
        raise ArgumentError(message)
    above, below = align.split("_")
    diagonals = range(band[1], band[0] - 1, -1)
    lengths = [min(shape[0] + min(d, 0), shape[1] - max(d, 0)) for d in diagonals]
    longest = max(lengths)
    rows = np.zeros((len(lengths), longest), np.int64)
    there = np.zeros(rows.shape, bool)
    for line, (d, length) in enumerate(zip(diagonals, lengths, strict=True)):
        left = (d >= 0 and above == "LEFT") or (d <= 0 and below == "LEFT")
        first = 0 if left else longest - length
        rows[line, first : first + length] = np.arange(length) + max(-d, 0)
        there[line, first : first + length] = True
    columns = np.where(there, rows + np.array(list(diagonals))[:, None], 0)
    return rows, columns, there


@documented
def matrix_diag_part(x: Any, k: Any, padding_value: Any, align: str = "RIGHT_LEFT") -> Tensor:
    """Diagonals of matrices as rows, the highest one first.

    k : int, or pair of int
        One diagonal, or the lowest and the highest one.
    padding_value : number or Tensor
        Fills rows of shorter diagonals.
    align : str
        The side at which diagonals above and below the main one begin, such as "RIGHT_LEFT".
    -> Tensor, shape (..., diagonals, length), without the former axis for one diagonal
    """
    array, band = value_of(x), _bands(k)
    rows, columns, there = _places((array.shape[-2], array.shape[-1]), band, align)
    found = np.where(there, array[..., rows, columns], value_of(padding_value).astype(np.dtype(array.dtype.name)))
    return found[..., 0, :] if band[0] == band[1] else found


@documented
def matrix_set_diag(x: Any, diagonal: Any, k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Matrices with diagonals written anew; parameters as `matrix_diag_part`.

    diagonal : Tensor or ndarray
        In the shape of the result of `matrix_diag_part`.
    k : int, or pair of int
    align : str
    """
    array, lines, band = value_of(x), value_of(diagonal), _bands(k)
    rows, columns, there = _places((array.shape[-2], array.shape[-1]), band, align)
    lines = lines[..., None, :] if band[0] == band[1] else lines
    which = np.nonzero(there)
    return _written(array, (..., rows[which], columns[which]), lines[(..., *which)])


@documented
def matrix_diag(
    x: Any, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Matrices with given diagonals; parameters as `matrix_diag_part`.

    k : int, or pair of int
    num_rows, num_cols : int
        The extents of the matrices; -1 for the least ones, of square matrices if both are.
    padding_value : number or Tensor
        The other elements.
    align : str
    """
    lines, band = value_of(x), _bands(k)
    longest = lines.shape[-1]
    rows, columns = _number(num_rows, "num_rows"), _number(num_cols, "num_cols")
    least = longest - min(band[1], 0), longest + max(band[0], 0)
    if rows < 0 and columns < 0:
        rows = columns = max(least)
    rows, columns = least[0] if rows < 0 else rows, least[1] if columns < 0 else columns
    lead = lines.shape[: -1 if band[0] == band[1] else -2]
    filling = value_of(padding_value).astype(np.dtype(lines.dtype.name))
    return matrix_set_diag(np.zeros_like(filling, shape=(*lead, rows, columns)) + filling, lines, band, align)


# ----- Positions -----


def _indices(found: Any, dtype: Any) -> Tensor:
    return Tensor(np.stack(found).astype(np.dtype(real_dtype(dtype))))


@documented
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = "int64") -> Tensor:
    """Positions on and below a diagonal of a matrix of `row` rows and `col` columns: a row of each coordinate.

    row, col : int
    offset : int
        The diagonal.
    dtype : dtype
    """
    return _indices(np.tril_indices(row, offset, col), dtype)


@documented
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = "int64") -> Tensor:
    """Positions on and above a diagonal; parameters as `tril_indices`.

    row, col : int
    offset : int
    dtype : dtype
    """
    return _indices(np.triu_indices(row, offset, col), dtype)


def triangle_positions(row: int, col: int, offset: int, dtype: Any, upper: bool) -> Tensor:
    """The positions of a triangle, by the options of a class form."""
    return (triu_indices if upper else tril_indices)(row, col, offset, dtype=dtype)


@documented
def vander(x: Any, N: int | None = None) -> Tensor:
    """The matrix of falling powers of the elements of a vector.

    N : int, optional
        The number of columns; as many as rows by default.
    """
    array = value_of(x)
    return array[:, None] ** np.arange(array.shape[0] if N is None else N)[::-1].astype(np.dtype(array.dtype.name))
