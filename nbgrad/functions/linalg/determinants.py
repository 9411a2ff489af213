"""Determinants and their logarithms, of one matrix or a batch.

In: array-likes of square matrices. Out: Tensors. Called by users, by `np.linalg.det(tensor)` and `slogdet`, and by
`nbgrad.ops`. Values come from the factors that also solve linear systems (factorisations.py). Determinants are
differentiable whatever the rank.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...graph import builders
from ...graph.builders import cast, iota, matmul, reduce, reshape, slice_axes
from ...graph.complex_numbers import conjugate, is_complex, pair
from ...graph.differentiate import pullback
from ...graph.formulas import choose
from ...graph.host_functions import host
from ...graph.ir import INT64, Node, broadcast, elementwise, make, zeros
from ...graph.matrix_rows import LAST_BLOCK
from ...record.as_node import wrap
from ...record.axes_and_dtypes import cut, filled, truth
from ...record.tensor import Tensor
from .factorisations import lu_node, places, solve_node
from .matrix_batches import (
    batched,
    diagonal,
    identity,
    library,
    mirrored,
    real_part,
    rows_in_order,
    square_matrices,
    unbatched,
    with_rule,
)


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


def _complete_pivots(a: np.ndarray) -> np.ndarray:
    """The result of the primitive `complete_pivots`, for complex matrices."""
    n = a.shape[-1]
    orders = np.empty((*a.shape[:-2], 2, n), np.int64)
    for position in np.ndindex(a.shape[:-2]):
        left, order = a[position].copy(), orders[position]
        order[:] = np.arange(1, n + 1)
        for k in range(n - 1):
            chosen = np.unravel_index(np.argmax(np.abs(left[k:, k:])), (n - k, n - k))
            for axis, other in enumerate(chosen):
                if other:
                    lines = np.swapaxes(left, 0, axis)
                    lines[[k, k + other]] = lines[[k + other, k]]
                    order[axis, [k, k + other]] = order[axis, [k + other, k]] * np.array([1, -1])
            if left[k, k] != 0:
                left[k + 1 :] -= np.outer(left[k + 1 :, k] / left[k, k], left[k])
    return orders


COMPLETE_PIVOTS = library(
    "complete pivots", lambda shape, dtype: ((*shape[:-2], 2, shape[-1]), INT64), _complete_pivots
)


def _pivots(a: Node) -> Node:
    return host(COMPLETE_PIVOTS, (a,)) if is_complex(a) else builders.complete_pivots(a)


def _sign(order: Node) -> Node:
    """(B,): the sign of a permutation as the primitives give it, which is the product of its entries' signs."""
    return reduce("prod", elementwise("sign", real_part(order)), (1,))


def _from_factors(factors: Node) -> Node:
    """(B,): the determinants of the matrices that were factored."""
    n = factors.shape[-1]
    order = reshape(cut(factors, 1, n, 1), (factors.shape[0], n))
    return reduce("prod", diagonal(factors), (1,)) * cast(_sign(order), factors.dtype)


def _inverses(a: Node, factors: Node) -> Node:
    """The adjoints of inverse matrices."""
    return solve_node(a, identity(a), factors, adjoint_system=True)


def _times(g: Node, matrices: Node) -> Node:
    """A number for each matrix times the matrix."""
    return cast(reshape(g, (*g.shape, 1, 1)), matrices.dtype) * matrices


def _logarithm_formula(g: Node, value: Node, a: Node, factors: Node) -> list[Node | None]:
    """The derivative of log |det a| is inverse(a)."""
    return [_times(g, _inverses(a, factors)), None]


def _regular_formula(g: Node, value: Node, a: Node, factors: Node) -> list[Node | None]:
    """The derivative of det a is det a times inverse(a), if there is one."""
    return [_times(g * conjugate(value), _inverses(a, factors)), None]


def _phase_formula(g: Node, value: Node, a: Node, factors: Node) -> list[Node | None]:
    """The sign of a complex determinant is exp(i angle), and the angle is the imaginary part of its logarithm."""
    turn = make("imag", (conjugate(value) * g,))
    return [_times(pair(zeros(turn.shape, turn.dtype), turn), _inverses(a, factors)), None]


def _any_rank_formula(g: Node, value: Node, a: Node) -> list[Node | None]:
    """The derivative of a determinant of any rank."""
    return pullback(_determinant_in_blocks, [a], g)


def _written_out(a: Node) -> Node:
    """(B,): the determinants of matrices of at most 3 rows."""
    batch, n, _ = a.shape

    def element(i: int, j: int) -> Node:
        return reshape(slice_axes(a, [(0, batch, 1), (i, 1, 1), (j, 1, 1)]), (batch,))

    def minor(j: int, k: int) -> Node:
        return element(n - 2, j) * element(n - 1, k) - element(n - 2, k) * element(n - 1, j)

    if n == 0:
        return filled((batch,), 1.0, a.dtype)
    if n == 1:
        return element(0, 0)
    if n == 2:
        return minor(0, 1)
    return element(0, 0) * minor(1, 2) - element(0, 1) * minor(0, 2) + element(0, 2) * minor(0, 1)


def _determinant_in_blocks(a: Node) -> Node:
    """The determinants of matrices of more than 3 rows, such that their derivatives are right whatever the rank.

    With rows and columns in the order of `complete_pivots`, the leading block of n - 3 rows is regular unless the rank
    is less than n - 3. Then the determinant is that of this block times that of its Schur complement, which is written
    out: nothing is divided by a number that may vanish. Otherwise all minors of n - 3 rows or more are 0, and with them
    the determinant and its derivatives up to the third.
    """
    batch, n, _ = a.shape
    lead = n - LAST_BLOCK
    both = _pivots(a)
    rows, columns = (reshape(cut(both, 1, k, 1), (batch, n)) for k in (0, 1))
    sorted_rows = rows_in_order(a, places(rows))
    ordered = mirrored(rows_in_order(mirrored(sorted_rows), places(columns)))
    top, bottom = cut(ordered, 1, 0, lead), cut(ordered, 1, lead, LAST_BLOCK)
    block, right = cut(top, 2, 0, lead), cut(top, 2, lead, LAST_BLOCK)
    left, corner = cut(bottom, 2, 0, lead), cut(bottom, 2, lead, LAST_BLOCK)
    factors = lu_node(block)
    regular = reduce("min", truth(diagonal(factors)), (1,))
    # Where the block is singular, the factors of a unit matrix keep what is thrown away finite.
    usable = broadcast(reshape(regular, (batch, 1, 1)), factors.shape)
    factors = elementwise("select", usable, factors, broadcast(_unit_factors(lead, a), factors.shape))
    complement = corner - matmul(left, solve_node(block, right, factors))
    leading = with_rule(_from_factors(factors), _regular_formula, block, factors)
    whole = leading * _written_out(complement) * cast(_sign(rows) * _sign(columns), a.dtype)
    return choose(regular, whole, 0.0, whole)


def _unit_factors(n: int, like: Node) -> Node:
    """The result of `lu` for a unit matrix."""
    unit = identity(zeros((1, n, n), like.dtype))
    order = reshape(cast(iota(n) + 1, like.dtype), (1, 1, n))
    return builders.concatenate([unit, order, order], 1)


def det(a: Any) -> Tensor:
    """Determinants of matrices; their derivatives (the cofactors) are right for singular matrices too.

    Parameters
    ----------
    a : array-like, shape (..., n, n)

    Returns
    -------
    Tensor, shape (...)

    Raises
    ------
    ShapeError
        If there are no square matrices.

    Notes
    -----
    Third derivatives, and all lower ones, are right whatever the rank; higher ones where the rank is at least n - 3.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.grad(np.linalg.det)(np.array([[1.0, 2.0], [2.0, 4.0]]))
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    node = square_matrices("det", a)
    matrix = batched(node)
    if matrix.shape[-1] <= LAST_BLOCK:
        result = _written_out(matrix)
    else:
        result = with_rule(_from_factors(lu_node(matrix)), _any_rank_formula, matrix)
    return wrap(unbatched(result, node.shape[:-2], node))


def slogdet(a: Any) -> SlogdetResult:
    """Sign and logarithm of the absolute value of determinants, which neither overflow nor vanish.

    Parameters
    ----------
    a : array-like, shape (..., n, n)

    Returns
    -------
    sign, logabsdet : Tensors, shape (...)
        0 and -inf for a singular matrix, where the derivative does not exist (use `det`).

    Raises
    ------
    ShapeError
        If there are no square matrices.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> sign, logabsdet = np.linalg.slogdet(nb.Tensor(np.array([[-2.0, 0.0], [0.0, 3.0]])))
    >>> float(sign), float(np.exp(logabsdet))
    (-1.0, 6.0)
    """
    node = square_matrices("slogdet", a)
    matrix = batched(node)
    factors = lu_node(matrix)
    pivots = diagonal(factors)
    n = matrix.shape[-1]
    order = reshape(cut(factors, 1, n, 1), (matrix.shape[0], n))
    sign = cast(_sign(order), matrix.dtype) * reduce("prod", elementwise("sign", pivots), (1,))
    if is_complex(matrix):
        sign = with_rule(sign, _phase_formula, matrix, factors)
    value = reduce("sum", elementwise("log", elementwise("absolute", pivots)), (1,))
    logarithm = with_rule(value, _logarithm_formula, matrix, factors)
    lead = node.shape[:-2]
    return SlogdetResult(wrap(unbatched(sign, lead, node)), wrap(unbatched(logarithm, lead, node)))
