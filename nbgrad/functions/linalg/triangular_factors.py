"""Triangular factors as SciPy gives them: `lu`, `lu_factor`, `lu_solve`, `cho_factor`, `cho_solve`.

In: array-likes of one matrix or a batch. Out: Tensors. Called by users, as `nb.ops.lu` and its like with the arguments
of `scipy.linalg`. The order of the rows is a constant to every derivative; the factors have derivatives where no pivot
is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...graph.builders import cast, concatenate, iota, pad, reduce, reshape
from ...graph.complex_numbers import conjugate, is_complex
from ...graph.differentiate import pullback
from ...graph.formulas import triangle
from ...graph.host_functions import host
from ...graph.ir import INT64, Node, broadcast, elementwise
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import only
from ...record.tensor import Tensor
from .factorisations import cholesky, right_hand_sides, triangular_node
from .matrix_batches import (
    adjoint,
    batched,
    computed,
    first_columns,
    first_rows,
    identity,
    last_columns,
    last_rows,
    library,
    matrices,
    packed,
    product,
    real_dtype_of,
    real_part,
    rows_in_order,
    unbatched,
    unpacked,
    with_rule,
)

INT32 = np.dtype(np.int32)


def _lu_factor(a: np.ndarray) -> np.ndarray:
    """The factors in one matrix, the order of the rows, and LAPACK's exchanges."""
    from scipy.linalg import get_lapack_funcs

    (getrf,) = get_lapack_funcs(("getrf",), (a,))
    m, n = a.shape[-2:]
    both, orders = np.zeros_like(a), np.zeros((*a.shape[:-2], m), a.dtype)
    exchanges = np.zeros((*a.shape[:-2], min(m, n)), a.dtype)
    for position in np.ndindex(a.shape[:-2]):
        order = np.arange(m)
        if m and n:
            both[position], found, _ = getrf(a[position])
            exchanges[position] = found
            for k, other in enumerate(found):
                order[[k, other]] = order[[other, k]]
        orders[position] = order
    return packed(both, orders, exchanges, axes=(2, 1, 1))


def _order_of(exchanges: np.ndarray) -> np.ndarray:
    """The order of the rows after exchanges, one after the other."""
    orders = np.empty(exchanges.shape, np.int64)
    for position in np.ndindex(exchanges.shape[:-1]):
        order = np.arange(exchanges.shape[-1])
        for k, other in enumerate(exchanges[position]):
            order[[k, other]] = order[[other, k]]
        orders[position] = order
    return orders


LU_FACTOR = library(
    "lu_factor",
    lambda shape, dtype: ((*shape[:-2], shape[-2] * shape[-1] + shape[-2] + min(shape[-2:])), dtype),
    _lu_factor,
)
ORDER_OF_EXCHANGES = library("order of exchanges", lambda shape, dtype: (shape, INT64), _order_of)


def _lower(both: Node) -> Node:
    return triangle(both, lower=True, strict=True) + identity(both)


def _upper(both: Node) -> Node:
    return triangle(both, lower=False)


def _formula(g: Node, both: Node, a: Node) -> list[Node | None]:
    """The cotangent of a square A = L U: L^-H (strict lower part of L^H gL + upper part of gU U^H) U^-H.

    Source: as for other factors, from inverse(L) dA inverse(U) = inverse(L) dL + dU inverse(U), whose terms are lower
    (without a diagonal) and upper triangular.
    """
    lower, upper = _lower(both), _upper(both)
    below = triangle(product(adjoint(lower), triangle(g, lower=True, strict=True)), lower=True, strict=True)
    inner = below + triangle(product(triangle(g, lower=False), adjoint(upper)), lower=False)
    half = triangular_node(lower, inner, lower=True, adjoint_system=True, unit=True)
    return [adjoint(triangular_node(upper, adjoint(half), lower=False))]


def _as_composed(value: Node, composed: Callable[..., Node], *operands: Node) -> Node:
    """A value that LAPACK has found, with the derivative of `composed`, which computes it of other nodes."""

    def formula(g: Node, node: Node, *sources: Node) -> list[Node | None]:
        return pullback(composed, sources, g)

    return with_rule(value, formula, *operands)


def lu_nodes(a: Node) -> tuple[Node, Node, Node, Node]:
    """L (B, m, k), U (B, k, n), the order of the rows (B, m) and LAPACK's exchanges (B, k): a[order] = L @ U."""
    _, m, n = a.shape
    k = min(m, n)
    both, order, exchanges = unpacked(computed(host(LU_FACTOR, (a,))), [(m, n), (m,), (k,)])
    order, exchanges = cast(real_part(order), INT64), cast(real_part(exchanges), INT32)
    sorted_rows = rows_in_order(a, order)
    square = first_columns(first_rows(both, k), k)
    block = first_columns(first_rows(sorted_rows, k), k)
    factors = with_rule(square, _formula, block)
    lower, upper = _lower(factors), _upper(factors)
    if m > k:
        below = _as_composed(
            last_rows(both, m - k),
            lambda rows, factor: adjoint(triangular_node(factor, adjoint(rows), lower=False, adjoint_system=True)),
            last_rows(sorted_rows, m - k),
            upper,
        )
        lower = concatenate([lower, below], 1)
    if n > k:
        beside = _as_composed(
            last_columns(both, n - k),
            lambda columns, factor: triangular_node(factor, columns, lower=True, unit=True),
            last_columns(sorted_rows, n - k),
            lower,
        )
        upper = concatenate([upper, beside], 2)
    return lower, upper, order, exchanges


def lu(
    a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, p_indices: bool = False
) -> tuple[Tensor, ...]:
    """LU decomposition with row exchanges, `a = P @ L @ U`, with the arguments of `scipy.linalg.lu`.

    Parameters
    ----------
    a : array-like, shape (..., m, n)
    permute_l : bool
        Whether to give `P @ L` instead of P and L.
    overwrite_a, check_finite : bool
        SciPy's; have no effect.
    p_indices : bool
        Whether P is given as positions, with `a = L[P] @ U`.

    Returns
    -------
    P : Tensor, shape (..., m, m) or (..., m)
        Without a derivative.
    L : Tensor, shape (..., m, k)
        Lower triangular with ones on its diagonal; k = min(m, n).
    U : Tensor, shape (..., k, n)

    Raises
    ------
    ShapeError
        If there are no matrices.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> P, L, U = nb.numpy.lu(nb.Tensor(np.array([[1.0, 2.0], [2.0, 2.0]])))
    >>> L.tolist(), U.tolist()
    ([[1.0, 0.0], [0.5, 1.0]], [[2.0, 2.0], [0.0, 1.0]])
    """
    del overwrite_a, check_finite
    node = matrices("lu", a)
    lead = node.shape[:-2]
    lower, upper, order, _ = lu_nodes(batched(node))
    batch, m = order.shape

    def shown(part: Node) -> Tensor:
        return wrap(unbatched(part, (*lead, *part.shape[1:]), node))

    same = elementwise("equal", reshape(iota(m), (m, 1)), broadcast(reshape(order, (batch, 1, m)), (batch, m, m)))
    permutation = cast(same, real_dtype_of(lower.dtype))
    if permute_l:
        return shown(product(cast(permutation, lower.dtype), lower)), shown(upper)
    if p_indices:
        return wrap(reshape(_inverse_order(order), (*lead, m))), shown(lower), shown(upper)
    return shown(permutation), shown(lower), shown(upper)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Tensor, Tensor]:
    """Both factors in one matrix, and LAPACK's row exchanges, for `lu_solve`."""
    del overwrite_a, check_finite
    node = matrices("lu_factor", a)
    lead, (m, n) = node.shape[:-2], node.shape[-2:]
    lower, upper, _, exchanges = lu_nodes(batched(node))
    k = min(m, n)
    strict = lower - identity(lower)
    both = pad(strict, [(0, 0), (0, 0), (0, n - k)]) + pad(upper, [(0, 0), (0, m - k), (0, 0)])
    return wrap(unbatched(both, node.shape, node)), wrap(reshape(exchanges, (*lead, k)))


def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Tensor:
    """Solve `a @ x = b` with the result of `lu_factor(a)`, as `scipy.linalg.lu_solve`.

    Parameters
    ----------
    lu_and_piv : pair of array-like, shapes (..., n, n) and (..., n)
    b : array-like, shape (n,) or (..., n, k)
    trans : {0, 1, 2}
        1 for the transposed system, 2 for the transposed and conjugated one.
    overwrite_b, check_finite : bool
        SciPy's; have no effect.

    Returns
    -------
    Tensor, shape (..., n) or (..., n, k)

    Raises
    ------
    ShapeError, ArgumentError
        If the shapes do not fit, or `trans` is none of these values.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> factors = nb.numpy.lu_factor(nb.Tensor(np.array([[0.0, 2.0], [4.0, 0.0]])))
    >>> nb.numpy.lu_solve(factors, np.array([2.0, 4.0])).tolist()
    [1.0, 1.0]
    """
    del overwrite_b, check_finite
    only("trans", trans, 0, 1, 2)
    both, exchanges = lu_and_piv
    matrix, right, shape, like = right_hand_sides("lu_solve", both, b)
    pivots = as_node(exchanges)
    if pivots.shape[-1:] != matrix.shape[-1:]:
        message = f"lu_solve needs {matrix.shape[-1]} exchanges for each matrix, but their shape is {pivots.shape}."
        raise ShapeError(message)
    lead = shape[: len(shape) - (1 if as_node(b).ndim == 1 else 2)]
    pivots = reshape(broadcast(pivots, (*lead, matrix.shape[-1])), matrix.shape[:2])
    order = host(ORDER_OF_EXCHANGES, (pivots,))
    if trans == 0:
        half = triangular_node(matrix, rows_in_order(right, order), lower=True, unit=True)
        return wrap(unbatched(triangular_node(matrix, half, lower=False), shape, like))
    flipped = trans == 1 and is_complex(matrix)
    right = conjugate(right) if flipped else right
    half = triangular_node(matrix, right, lower=False, adjoint_system=True)
    whole = triangular_node(matrix, half, lower=True, adjoint_system=True, unit=True)
    back = rows_in_order(whole, _inverse_order(order))
    return wrap(unbatched(conjugate(back) if flipped else back, shape, like))


def _inverse_order(order: Node) -> Node:
    """(B, n): where each position went."""
    batch, n = order.shape
    same = elementwise("equal", reshape(iota(n), (n, 1)), broadcast(reshape(order, (batch, 1, n)), (batch, n, n)))
    return reduce("sum", cast(same, INT64) * broadcast(iota(n), (batch, n, n)), (2,))


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, bool]:
    """The Cholesky factor of `a`, upper unless `lower`, and which it is, for `cho_solve`; 0 in the other triangle."""
    del overwrite_a, check_finite
    return cholesky(a, upper=not lower), bool(lower)


def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Tensor:
    """Solve `a @ x = b` with the result of `cho_factor(a)`, as `scipy.linalg.cho_solve`.

    Parameters
    ----------
    c_and_lower : pair of array-like, shape (..., n, n), and bool
        The factor, and whether it is the lower triangular one.
    b : array-like, shape (n,) or (..., n, k)
    overwrite_b, check_finite : bool
        SciPy's; have no effect.

    Returns
    -------
    Tensor, shape (..., n) or (..., n, k)

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> factor = nb.numpy.cho_factor(nb.Tensor(np.array([[4.0, 0.0], [0.0, 1.0]])))
    >>> nb.numpy.cho_solve(factor, np.array([4.0, 3.0])).tolist()
    [1.0, 3.0]
    """
    del overwrite_b, check_finite
    factor, lower = c_and_lower
    matrix, right, shape, like = right_hand_sides("cho_solve", factor, b)
    half = triangular_node(matrix, right, lower=bool(lower), adjoint_system=not lower)
    return wrap(unbatched(triangular_node(matrix, half, lower=bool(lower), adjoint_system=bool(lower)), shape, like))
