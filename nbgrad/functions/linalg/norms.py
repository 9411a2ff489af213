"""Norms of vectors and of matrices, and condition numbers.

In: array-likes. Out: Tensors. Called by users and by `np.linalg.norm(tensor)` and its like. Every norm has derivative 0
at 0; where several elements, rows or singular values attain a maximum or minimum, they share its derivative.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ...graph.builders import cast, reduce, reshape, transpose
from ...graph.complex_numbers import is_complex, parts
from ...graph.ir import Node, broadcast, elementwise, make, zeros
from ...graph.shapes import Shape
from ...record.as_node import wrap
from ...record.axes_and_dtypes import (
    FLOAT16,
    FLOAT32,
    array_node,
    axes_of,
    cut,
    filled,
    inexact,
    keep,
    safe_sqrt,
    truth,
)
from ...record.tensor import Tensor
from ..arrays.reductions import reduce_ufunc
from .factorisations import lu_node, solve_node
from .matrix_batches import MatrixError, batched, diagonal, identity, matrices, square_matrices, unbatched
from .singular_values import svdvals_node

# ----- Norms -----


def _vector_norm(x: Node, order: Any, axes: tuple[int, ...]) -> Node:
    """The norm over axes, which stay with extent 1."""
    if x.dtype == FLOAT16:
        # Squares of halves overflow long before their root does.
        return cast(_vector_norm(cast(x, FLOAT32), order, axes), FLOAT16)
    if is_complex(x) and not (order is None or order == 2):
        x = elementwise("absolute", x)
    if order is None or order == 2:
        squares = [elementwise("multiply", part, part) for part in (parts(x) if is_complex(x) else (x,))]
        total = reduce("sum", squares[0] if len(squares) == 1 else squares[0] + squares[1], axes)
        result = safe_sqrt(total)
    elif order in (math.inf, -math.inf):
        if 0 in [x.shape[a] for a in axes] and order > 0:
            result = filled(_without(x.shape, axes), 0.0, x.dtype)
        else:
            name = "maximum" if order > 0 else "minimum"
            result = reduce_ufunc(name, elementwise("absolute", x), axes)
    elif order == 0:
        result = reduce("sum", cast(truth(x), x.dtype), axes)
    elif order == 1:
        result = reduce("sum", elementwise("absolute", x), axes)
    else:
        if not isinstance(order, int | float | np.integer | np.floating):
            message = f"A norm of vectors has a number as ord, but got {order!r}."
            raise ArgumentError(message)
        total = reduce("sum", elementwise("power", elementwise("absolute", x), float(order)), axes)
        zero = elementwise("equal", total, 0.0)
        inside = elementwise("select", zero, filled(total.shape, 1.0, x.dtype), total)
        root = elementwise("power", inside, 1.0 / float(order))
        at_zero = filled(total.shape, 0.0 if order > 0 else math.inf, x.dtype)
        result = elementwise("select", zero, at_zero, root)
    return reshape(result, keep(x.shape, axes))


_SPECTRAL: dict[Any, str] = {2: "max", -2: "min", "nuc": "sum"}
"""Norms of matrices that are norms of their singular values, and which."""


def _spectral_norm(x: Node, order: Any, axes: tuple[int, int]) -> Node:
    rows, columns = axes
    others = tuple([a for a in range(x.ndim) if a not in axes])
    lined_up = transpose(x, (*others, rows, columns))
    values = svdvals_node(batched(lined_up))
    if not values.shape[1]:
        if order == -2:
            message = "The smallest singular value of an empty matrix does not exist."
            raise ArgumentError(message)
        result = zeros((values.shape[0],), values.dtype)
    else:
        # As every norm, these have derivative 0 where they, or what they are sums of, are 0 up to rounding.
        resolution = max(lined_up.shape[-2:]) * float(np.finfo(values.dtype).eps)
        bound = broadcast(reshape(reduce("max", values, (1,)) * resolution, (values.shape[0], 1)), values.shape)
        positive = elementwise("greater", values, make("stop_gradient", (bound,)))
        values = elementwise("select", positive, values, make("stop_gradient", (values,)))
        result = reduce(_SPECTRAL[order], values, (1,))
    return reshape(unbatched(result, lined_up.shape[:-2], x), keep(x.shape, axes))


def _without(shape: Shape, axes: tuple[int, ...]) -> Shape:
    return tuple([n for a, n in enumerate(shape) if a not in axes])


def _matrix_norm(x: Node, order: Any, axes: tuple[int, int]) -> Node:
    rows, columns = axes
    if order in (None, "fro"):
        return _vector_norm(x, None, axes)
    if order in (1, -1, math.inf, -math.inf):
        inner_axis, outer_axis = (rows, columns) if order in (1, -1) else (columns, rows)
        sums = reduce_ufunc("add", elementwise("absolute", x), inner_axis, True)
        return reduce_ufunc("maximum" if order > 0 else "minimum", sums, outer_axis, True)
    if order in _SPECTRAL:
        return _spectral_norm(x, order, axes)
    message = f"There is no norm of matrices with ord={order!r}; use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf."
    raise ArgumentError(message)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Norm of vectors or matrices; its derivative where the norm is 0 is 0.

    Parameters
    ----------
    x : array-like
    ord : number, "fro" or None
        For vectors any number, inf and -inf included; for matrices None, "fro", "nuc" (the sum of the singular values),
        2 and -2 (the largest and the smallest of them), 1, -1, inf, -inf.
    axis : int, pair of int or None
        One axis means vectors, two mean matrices. None means the whole array: with `ord` None as one flat vector,
        otherwise it must have one or two axes.
    keepdims : bool
        Whether these axes stay, with extent 1.

    Returns
    -------
    Tensor

    Raises
    ------
    ArgumentError
        If there is no such norm.
    ShapeError
        If there are more than two axes, or they do not exist.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> float(np.linalg.norm(nb.Tensor(np.array([[3.0, 0.0], [0.0, 4.0]])), "nuc"))
    7.0
    """
    node = inexact(array_node(x))
    if axis is None and ord is None:
        axes = tuple(range(node.ndim))
        result = _vector_norm(node, None, axes)
    else:
        axes = tuple(range(node.ndim)) if axis is None else axes_of(axis, node.ndim)
        if len(axes) == 1:
            result = _vector_norm(node, ord, axes)
        elif len(axes) == 2:
            result = _matrix_norm(node, ord, (axes[0], axes[1]))
        else:
            message = f"A norm is over one axis or two, but there are {len(axes)}."
            raise ShapeError(message)
    return wrap(result if keepdims else reshape(result, _without(node.shape, axes)))


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Norm of the elements over axes; over all of them by default."""
    node = inexact(array_node(x))
    axes = axes_of(axis, node.ndim)
    result = _vector_norm(node, ord, axes)
    return wrap(result if keepdims else reshape(result, _without(node.shape, axes)))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Norm of the matrices in the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)


# ----- Condition numbers -----


def _inverse_or_nan(a: Node) -> Node:
    """Inverses of (B, n, n); NaN where there is none."""
    factors = lu_node(a)
    regular = reduce("min", truth(diagonal(factors)), (1,))
    usable = broadcast(reshape(regular, (a.shape[0], 1, 1)), a.shape)
    inverse = solve_node(a, identity(a), factors)
    return elementwise("select", usable, inverse, filled(a.shape, math.nan, a.dtype))


def cond(x: Any, p: Any = None) -> Tensor:
    """Condition numbers: a norm of a matrix times that of its inverse.

    Parameters
    ----------
    x : array-like, shape (..., m, n)
        Square, unless `p` is None, 2 or -2.
    p : as `ord` of `norm`
        Which norm; by default the largest singular value over the smallest.

    Returns
    -------
    Tensor, shape (...), real
        inf for singular matrices.

    Raises
    ------
    ShapeError
        If there are no (square) matrices.
    MatrixError
        If a matrix is empty.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> float(np.linalg.cond(nb.Tensor(np.array([[4.0, 0.0], [0.0, 2.0]]))))
    2.0
    """
    spectral = p is None or p in (2, -2)
    node = (matrices if spectral else square_matrices)("cond", x)
    if 0 in node.shape[-2:]:
        message = f"cond needs matrices with elements, but the shape is {node.shape}."
        raise MatrixError(message)
    matrix = batched(node)
    if spectral:
        values = svdvals_node(matrix)
        largest, smallest = (reshape(cut(values, 1, k, 1), values.shape[:1]) for k in (0, values.shape[1] - 1))
        result = smallest / largest if p == -2 else largest / smallest
    else:
        norms = [_matrix_norm(part, p, (1, 2)) for part in (matrix, _inverse_or_nan(matrix))]
        result = reshape(norms[0] * norms[1], matrix.shape[:1])
    known = elementwise("logical_not", reduce("max", elementwise("isnan", matrix), (1, 2)))
    lost = elementwise("logical_and", elementwise("isnan", result), known)
    result = elementwise("select", lost, filled(result.shape, math.inf, result.dtype), result)
    return wrap(unbatched(result, node.shape[:-2], node))
