"""Least squares, and linear systems whose unknowns are arrays of several axes.

In: array-likes. Out: Tensors. Called by users and by `np.linalg.lstsq(tensor, b)` and its like. A least squares
solution is the pseudo-inverse times the right-hand side, factor by factor of a singular value decomposition, and so is
its derivative.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError, TracedValueError
from ...graph.builders import cast, reduce, reshape
from ...graph.complex_numbers import is_complex, parts
from ...graph.ir import Node, elementwise, zeros
from ...record.as_node import wrap
from ...record.axes_and_dtypes import array_node, inexact, integer, integers
from ...record.promotion import promote
from ...record.tensor import Tensor
from ...runtime.evaluate import concrete
from ..arrays.shaping import transpose_node
from .factorisations import inv, solve
from .matrix_batches import adjoint, batched, matrices, product, required, scaled_rows, unbatched, with_rule
from .singular_values import pinv_node, reciprocals, relative_cutoff, svd_nodes

# ----- Least squares -----


def _formula(g: Node, x: Node, a: Node, b: Node, cutoff: Node) -> list[Node | None]:
    """The derivative at constant rank, of the pseudo-inverse times the right-hand side, by products with columns only.

    Source: Golub and Pereyra, as for `pinv`, with the cotangent g b^H.
    """
    inverse = pinv_node(a, cutoff)
    turned = adjoint(inverse)
    right = product(turned, g)
    total = product(b - product(a, x), adjoint(product(inverse, right))) - product(right, adjoint(x))
    # Zero up to rounding if the rank is that of the columns, which is known only when the program runs.
    total = total + product(product(turned, x), adjoint(g - product(adjoint(a), right)))
    return [total, right, None]


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The x of least norm that minimises the norm of `b - a @ x`.

    Parameters
    ----------
    a : array-like, shape (m, n)
    b : array-like, shape (m,) or (m, k)
    rcond : float, optional
        Singular values up to this number times the largest one count as zero; by default max(m, n) times the
        resolution of double precision. A negative one stands for the resolution itself.

    Returns
    -------
    x : Tensor, shape (n,) or (n, k)
        Differentiable where the rank does not change, also where it is less than n.
    residuals : Tensor, shape (k,), (1,) or (0,)
        The squared norms of `b - a @ x`; empty if the rank is less than n, or m <= n.
    rank : Tensor, int32
    s : Tensor, shape (min(m, n),)
        The singular values.

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    MatrixError
        Under `vmap`, where shapes cannot depend on values, if m > n and the rank is less than n.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> A = nb.Tensor(np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]))
    >>> x, residuals, rank, s = np.linalg.lstsq(A, np.array([1.0, 3.0, 5.0]))
    >>> np.round(x, 12).tolist(), int(rank)
    ([2.0, 1.0], 2)
    """
    left, right = promote([matrices("lstsq", a), inexact(array_node(b))])
    vector = right.ndim == 1
    if left.ndim != 2 or right.ndim not in (1, 2) or left.shape[0] != right.shape[0]:
        message = (
            "lstsq needs one matrix and a vector or matrix with as many rows, but the shapes are "
            f"{left.shape} and {right.shape}."
        )
        raise ShapeError(message)
    m, n = left.shape
    columns = 1 if vector else right.shape[1]
    matrix, sides = batched(left), batched(reshape(right, (m, columns)))
    standard = max(m, n) * float(np.finfo(np.float64).eps)
    if rcond is not None and not isinstance(rcond, Tensor) and float(rcond) < 0:
        rcond = float(np.finfo(np.float64).eps) / 2
    cutoff = relative_cutoff(left, rcond, standard)
    u, values, vh = svd_nodes(matrix)
    x = product(adjoint(vh), scaled_rows(reciprocals(values, cutoff), product(adjoint(u), sides)))
    x = with_rule(x, _formula, matrix, sides, cutoff)
    if min(m, n):
        bound = reshape(reduce("max", values, (1,)) * cutoff, (1, 1))
        above = cast(elementwise("greater", values, bound), np.dtype(np.int32))
        rank = reshape(reduce("sum", above, (1,)), ())
    else:
        rank = zeros((), np.dtype(np.int32))
    missing = sides - product(matrix, x)
    squares = [part * part for part in (parts(missing) if is_complex(missing) else (missing,))]
    residuals = reshape(reduce("sum", squares[0] if len(squares) == 1 else squares[0] + squares[1], (1,)), (columns,))
    if m <= n or not _full(rank, n):
        residuals = zeros((0,), residuals.dtype)
    shape = (n,) if vector else (n, columns)
    found = [unbatched(x, shape, left), unbatched(residuals, residuals.shape, left), rank]
    return (*[wrap(node) for node in found], wrap(unbatched(values, (min(m, n),), left)))  # pyright: ignore[reportReturnType]


def _full(rank: Node, n: int) -> bool:
    """Whether a rank is n; under `vmap` it must be."""
    try:
        return int(concrete(rank, "int")) == n
    except TracedValueError:
        message = (
            f"lstsq under vmap needs matrices of full rank, here {n}, because the shape of its residuals depends on it."
        )
        required(rank, elementwise("equal", rank, n), message)
        return True


# ----- Systems of arrays -----


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Tensor:
    """The x of `tensordot(a, x, x.ndim) = b`.

    Parameters
    ----------
    a : array-like, shape b.shape + Q
        As many elements in Q as in `b`.
    b : array-like, any shape
    axes : sequence of int, optional
        Axes of `a` that are moved to its end first.

    Returns
    -------
    Tensor, shape Q

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    MatrixError
        If the system is singular.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> a = np.eye(4).reshape(2, 2, 4)
    >>> np.linalg.tensorsolve(nb.Tensor(a), np.ones((2, 2))).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    left, right = inexact(array_node(a)), inexact(array_node(b))
    if axes is not None:
        moved = [axis % left.ndim for axis in integers(axes, "axes")]
        left = transpose_node(left, [*[k for k in range(left.ndim) if k not in moved], *moved])
    shape = left.shape[right.ndim :]
    if math.prod(shape) ** 2 != left.size or math.prod(shape) != right.size:
        message = (
            f"tensorsolve needs as many unknowns as equations, but the shapes are {left.shape} and {right.shape}: "
            f"{math.prod(shape)} unknowns and {right.size} equations."
        )
        raise ShapeError(message)
    flat = reshape(left, (right.size, math.prod(shape)))
    found = solve(wrap(flat), wrap(reshape(right, (right.size,))))
    return wrap(reshape(found._node, shape))


def tensorinv(a: Any, ind: int = 2) -> Tensor:
    """The inverse of `a` as a linear map from its last axes to its first `ind` ones, which come last in the result."""
    node, count = inexact(array_node(a)), integer(ind, "ind")
    if count <= 0:
        message = f"tensorinv needs ind to be positive, but got {ind!r}."
        raise ArgumentError(message)
    rows, columns = node.shape[:count], node.shape[count:]
    if math.prod(rows) != math.prod(columns):
        message = f"tensorinv needs as many elements in the axes {rows} as in the axes {columns}."
        raise ShapeError(message)
    flat = reshape(node, (math.prod(rows), math.prod(columns)))
    return wrap(reshape(inv(wrap(flat))._node, (*columns, *rows)))
