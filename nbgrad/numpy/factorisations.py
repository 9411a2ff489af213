"""Solving linear systems, inverses, determinants and Cholesky factors, of one matrix or a batch.

In: array-likes. Out: Tensors. Called by users, by `np.linalg.solve(tensor, b)` and its like, and by `nbgrad.ops`. A
matrix is factored once (`lu`), and its factors serve the solution, the determinant and both their derivatives: to them
the factors are constants, and the rules below (`custom` nodes) say how a result depends on the matrix. Factorisations
are computed in float32 or float64; float16 is converted and back, integers become floats as in quotients.

A matrix that is exactly singular raises, as in NumPy; under `jit` every call checks it again. Determinants are
differentiable whatever the rank.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..graph import primitives
from ..graph.derivatives import choose
from ..graph.differentiate import vjp
from ..graph.ir import INT64, Node, Shape, broadcast, elementwise, extent, make, zeros
from ..graph.primitives import cast, gather, iota, matmul, reduce, reshape, slice_axes, transpose, triangular_solve
from ..runtime.evaluate import concrete, require
from ..tensor import Tensor
from .lifting import wrap
from .operands import FLOAT16, FLOAT32, array_node, cut, filled, inexact, only, promote, truth
from .shaping import common_shape

FORMULA_EXTENT = 3
"""Determinants of up to so many rows are written out; larger ones end with so many rows."""


class MatrixError(ArgumentError, np.linalg.LinAlgError):
    """A matrix is singular, or not positive definite, where it must be."""


class SlogdetResult(NamedTuple):
    """What `slogdet` gives."""

    sign: Tensor
    logabsdet: Tensor


# ----- Words -----


def _matrices(name: str, value: Any) -> Node:
    """An array of square matrices, floating point."""
    node = inexact(array_node(value))
    if node.ndim < 2 or node.shape[-1] != node.shape[-2]:
        message = f"{name} needs square matrices in the last two axes, but the shape is {node.shape}."
        raise ShapeError(message)
    return node


def _batch(node: Node) -> Node:
    """(B, n, k) of any number of leading axes, in a dtype that LAPACK has."""
    wide = cast(node, FLOAT32) if node.dtype == FLOAT16 else node
    return reshape(wide, (math.prod(node.shape[:-2]), *node.shape[-2:]))


def _unbatch(result: Node, shape: Shape, like: Node) -> Node:
    """A result with its leading axes and its dtype."""
    return reshape(cast(result, like.dtype), shape)


def _mirrored(a: Node) -> Node:
    """Each matrix transposed."""
    return transpose(a, (0, 2, 1))


def _diagonal(a: Node) -> Node:
    """(B, n): the diagonals of (B, n, n), or of what `lu` gives."""
    batch, rows, n = a.shape
    return slice_axes(reshape(a, (batch, rows * n)), [(0, batch, 1), (0, n, n + 1)])


def _identity(like: Node) -> Node:
    """Unit matrices of the shape of others."""
    n = like.shape[-1]
    same = elementwise("equal", reshape(iota(n), (n, 1)), iota(n))
    return broadcast(cast(same, like.dtype), like.shape)


def _sign(order: Node) -> Node:
    """(B,): the sign of a permutation as the primitives give it, which is the product of its entries' signs."""
    return reduce("prod", elementwise("sign", order), (1,))


def _places(order: Node) -> Node:
    """Such a permutation as positions that count from 0."""
    return cast(elementwise("absolute", order), INT64) - 1


def _rows(x: Node, order: Node) -> Node:
    """x[:, order], with an order of its own for each matrix of the batch: (B, n, k) and (B, m)."""
    batch, n, k = x.shape
    row = order + reshape(iota(batch) * extent(n, INT64), (batch, 1))
    index = reshape(row, (*row.shape, 1)) * extent(k, INT64) + iota(k)
    return gather(reshape(x, (x.size,)), index)


def _required(factors: Node, condition: Node, message: str) -> None:
    """Raise unless a condition on factors holds. They are computed here if nothing records, and not once more."""
    if not factors.traced:
        concrete(factors, "array")
    require(condition, message, MatrixError)


# ----- Solving -----


def solve_node(a: Node, b: Node, factors: Node, transposed: bool = False) -> Node:
    """The x of `a @ x = b`, or of `a.T @ x = b`: `a` is (B, n, n) with its factors, `b` is (B, n, k)."""
    value = make("stop_gradient", (b,))
    n = a.shape[-1]
    packed, rows = cut(factors, 1, 0, n), [_places(reshape(cut(factors, 1, n + k, 1), b.shape[:2])) for k in (0, 1)]
    order, inverse = rows
    if transposed:
        value = triangular_solve(packed, _rows(value, order), lower=False, transposed=True, unit=True)
        value = triangular_solve(packed, value, lower=True, transposed=True)
    else:
        value = triangular_solve(packed, value, lower=True)
        value = _rows(triangular_solve(packed, value, lower=False, unit=True), inverse)
    return make("custom", (value, a, b, factors), (_SolveRule(transposed), 0))


class _SolveRule:
    """The derivative of x = inverse(a) @ b: the cotangent of b is w = inverse(a).T @ g, that of a is -w @ x.T."""

    def __init__(self, transposed: bool) -> None:
        self.transposed = transposed

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The cotangents of matrix, right-hand side and factors."""
        _, a, _, factors = node.inputs
        w = solve_node(a, g, factors, not self.transposed)
        left, right = (node, w) if self.transposed else (w, node)
        return [-matmul(left, _mirrored(right)), w, None]


def _regular_factors(name: str, a: Node) -> Node:
    """The LU factors of matrices that must not be singular."""
    factors = primitives.lu(a)
    message = (
        f"{name} needs a regular matrix, but {'one of the matrices' if a.shape[0] > 1 else 'the matrix'} is singular: "
        "elimination met a pivot of exactly 0."
    )
    _required(factors, truth(_diagonal(factors)), message)
    return factors


def _right_hand_sides(name: str, a: Any, b: Any) -> tuple[Node, Node, Shape, Node]:
    """Matrices (B, n, n), right-hand sides (B, n, k), the shape of the solution, and an example of its dtype."""
    matrix, right = promote([_matrices(name, a), inexact(array_node(b))])
    n = matrix.shape[-1]
    vector = right.ndim == 1
    given = right.shape
    right = reshape(right, (*given, 1)) if vector else right
    if right.ndim < 2 or right.shape[-2] != n:
        message = (
            f"{name} needs right-hand sides with {n} rows for matrices of shape {matrix.shape}, but they have shape "
            f"{given}; a 1-d array is one column, any other is a batch of matrices."
        )
        raise ShapeError(message)
    lead = common_shape([matrix.shape[:-2], right.shape[:-2]])
    columns = right.shape[-1]
    shape = (*lead, n) if vector else (*lead, n, columns)
    return (
        _batch(broadcast(matrix, (*lead, n, n))),
        _batch(broadcast(right, (*lead, n, columns))),
        shape,
        matrix,
    )


def solve(a: Any, b: Any) -> Tensor:
    """Solve linear systems `a @ x = b`.

    Parameters
    ----------
    a : array-like, shape (..., n, n)
    b : array-like, shape (n,) or (..., n, k)
        Leading axes broadcast with those of `a`.

    Returns
    -------
    Tensor, shape (..., n) or (..., n, k)

    Raises
    ------
    MatrixError
        If a matrix is exactly singular. It is a `numpy.linalg.LinAlgError`.
    ShapeError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> x = np.linalg.solve(nb.Tensor(np.array([[2.0, 1.0], [0.0, 4.0]])), np.array([4.0, 8.0]))
    >>> x.tolist()
    [1.0, 2.0]
    """
    matrix, right, shape, like = _right_hand_sides("solve", a, b)
    return wrap(_unbatch(solve_node(matrix, right, _regular_factors("solve", matrix)), shape, like))


def inv(a: Any) -> Tensor:
    """Inverses of matrices.

    Parameters
    ----------
    a : array-like, shape (..., n, n)

    Returns
    -------
    Tensor, shape (..., n, n)

    Raises
    ------
    MatrixError
        If a matrix is exactly singular. It is a `numpy.linalg.LinAlgError`.
    ShapeError
        If there are no square matrices.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> np.linalg.inv(nb.Tensor(np.array([[2.0, 0.0], [0.0, 4.0]]))).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    node = _matrices("inv", a)
    matrix = _batch(node)
    result = solve_node(matrix, _identity(matrix), _regular_factors("inv", matrix))
    return wrap(_unbatch(result, node.shape, node))


inverse = inv


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, check_finite: bool = True
) -> Tensor:
    """Solve systems with triangular matrices, with the arguments of `scipy.linalg.solve_triangular`.

    Parameters
    ----------
    a : array-like, shape (..., n, n)
        Only one triangle is read, and gets a gradient.
    b : array-like, shape (n,) or (..., n, k)
    trans : {0, 1, 2, "N", "T", "C"}
        Whether to solve with the transposed matrix.
    lower : bool
        Which triangle is read.
    unit_diagonal : bool
        Whether the diagonal is 1 and not read.
    check_finite : bool
        SciPy's; has no effect.

    Returns
    -------
    Tensor, shape (..., n) or (..., n, k)

    Raises
    ------
    MatrixError
        If there is a zero on a diagonal.
    ShapeError, ArgumentError
        If the shapes do not fit, or `trans` is none of these values.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.numpy.solve_triangular([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0], lower=True).tolist()
    [1.0, 2.0]
    """
    del check_finite
    only("trans", trans, 0, 1, 2, "N", "T", "C")
    matrix, right, shape, like = _right_hand_sides("solve_triangular", a, b)
    if not unit_diagonal:
        message = "solve_triangular needs a regular matrix, but there is a 0 on its diagonal."
        _required(matrix, truth(_diagonal(matrix)), message)
    result = triangular_solve(matrix, right, bool(lower), trans not in (0, "N"), bool(unit_diagonal))
    return wrap(_unbatch(result, shape, like))


def cholesky(a: Any, /, *, upper: bool = False) -> Tensor:
    """Cholesky factors: the lower triangular L with `L @ L.T = a`.

    Parameters
    ----------
    a : array-like, shape (..., n, n)
        Symmetric and positive definite. Only the lower triangle is read (the upper one, if `upper`); so the gradient
        of the other one is 0.
    upper : bool
        Whether to give the upper triangular factor, `L.T`, instead.

    Returns
    -------
    Tensor, shape (..., n, n)

    Raises
    ------
    MatrixError
        If a matrix is not positive definite. It is a `numpy.linalg.LinAlgError`.
    ShapeError
        If there are no square matrices.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> np.linalg.cholesky(nb.Tensor(np.array([[4.0, 2.0], [2.0, 5.0]]))).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    node = _matrices("cholesky", a)
    matrix = _batch(node)
    factor = primitives.cholesky(_mirrored(matrix) if upper else matrix)
    message = (
        f"cholesky needs positive definite matrices, but {'one' if matrix.shape[0] > 1 else 'this one'} is not "
        f"(only the {'upper' if upper else 'lower'} triangle is read)."
    )
    _required(factor, elementwise("greater", _diagonal(factor), 0.0), message)
    return wrap(_unbatch(_mirrored(factor) if upper else factor, node.shape, node))


# ----- Determinants -----


def _from_factors(factors: Node) -> Node:
    """(B,): the determinants of what was factored."""
    n = factors.shape[-1]
    order = reshape(cut(factors, 1, n, 1), (factors.shape[0], n))
    return reduce("prod", _diagonal(factors), (1,)) * _sign(order)


class _LogarithmRule:
    """The derivative of log |det a| is inverse(a).T; that of det a, if `factor`, is det a times that."""

    def __init__(self, factor: bool) -> None:
        self.factor = factor

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The cotangents of matrix and factors."""
        _, a, factors = node.inputs
        g = g * node if self.factor else g
        inverses = solve_node(a, _identity(a), factors, transposed=True)
        return [reshape(g, (*g.shape, 1, 1)) * inverses, None]


class _DeterminantRule:
    """The derivative of a determinant of any rank."""

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The cotangent of the matrix."""
        a = node.inputs[1]
        return vjp([_determinant_in_blocks(a)], [g], [a])


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

    With rows and columns in the order of complete pivoting, the leading block of n - 3 rows is regular unless the rank
    is less than n - 3. Then the determinant is that of this block times that of its Schur complement, which is written
    out: nothing is divided by what may vanish. Otherwise all minors of n - 3 rows or more are 0, and with them the
    determinant and its derivatives up to the third.
    """
    batch, n, _ = a.shape
    lead = n - FORMULA_EXTENT
    both = primitives.complete_pivots(a)
    rows, columns = (reshape(cut(both, 1, k, 1), (batch, n)) for k in (0, 1))
    sorted_rows = _rows(a, _places(rows))
    ordered = _mirrored(_rows(_mirrored(sorted_rows), _places(columns)))
    top, bottom = cut(ordered, 1, 0, lead), cut(ordered, 1, lead, FORMULA_EXTENT)
    block, right = cut(top, 2, 0, lead), cut(top, 2, lead, FORMULA_EXTENT)
    left, corner = cut(bottom, 2, 0, lead), cut(bottom, 2, lead, FORMULA_EXTENT)
    factors = primitives.lu(block)
    regular = reduce("min", truth(_diagonal(factors)), (1,))
    # Where the block is singular, the factors of a unit matrix keep what is thrown away finite.
    usable = broadcast(reshape(regular, (batch, 1, 1)), factors.shape)
    factors = elementwise("select", usable, factors, broadcast(_unit_factors(lead, a), factors.shape))
    complement = corner - matmul(left, solve_node(block, right, factors))
    leading = make("custom", (_from_factors(factors), block, factors), (_LogarithmRule(factor=True), 0))
    product = leading * _written_out(complement) * cast(_sign(rows) * _sign(columns), a.dtype)
    return choose(regular, product, 0.0, product)


def _unit_factors(n: int, like: Node) -> Node:
    """What `lu` gives for a unit matrix."""
    unit = _identity(zeros((1, n, n), like.dtype))
    order = reshape(cast(iota(n) + 1, like.dtype), (1, 1, n))
    return primitives.concatenate([unit, order, order], 1)


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
    node = _matrices("det", a)
    matrix = _batch(node)
    if matrix.shape[-1] <= FORMULA_EXTENT:
        result = _written_out(matrix)
    else:
        result = make("custom", (_from_factors(primitives.lu(matrix)), matrix), (_DeterminantRule(), 0))
    return wrap(_unbatch(result, node.shape[:-2], node))


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
    node = _matrices("slogdet", a)
    matrix = _batch(node)
    factors = primitives.lu(matrix)
    diagonal = _diagonal(factors)
    n = matrix.shape[-1]
    order = reshape(cut(factors, 1, n, 1), (matrix.shape[0], n))
    sign = _sign(order) * _sign(diagonal)
    value = reduce("sum", elementwise("log", elementwise("absolute", diagonal)), (1,))
    logarithm = make("custom", (value, matrix, factors), (_LogarithmRule(factor=False), 0))
    lead = node.shape[:-2]
    return SlogdetResult(wrap(_unbatch(sign, lead, node)), wrap(_unbatch(logarithm, lead, node)))


NUMPY = {
    np.linalg.solve: solve,
    np.linalg.inv: inv,
    np.linalg.cholesky: cholesky,
    np.linalg.det: det,
    np.linalg.slogdet: slogdet,
}
