"""Solving linear systems, inverses and Cholesky factors, of one matrix or a batch.

In: array-likes. Out: Tensors. Called by users, by `np.linalg.solve(tensor, b)` and its like, and by `nbgrad.ops`. A
matrix is factored once (`lu`), and its factors serve the solution, the determinant (determinants.py) and both their
derivatives: to them the factors are constants, and the rules below (`custom` nodes) say how a result depends on the
matrix. Factorisations are computed in single or double precision; float16 is converted and back, integers become floats
as in quotients. Real matrices are factored inside of compiled programs, small ones by code of ours, others by LAPACK;
complex ones by SciPy (`host` nodes).

A matrix that is exactly singular raises, as in NumPy; under `jit` every call checks it again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...graph import builders
from ...graph.builders import cast, reshape
from ...graph.complex_numbers import conjugate, is_complex
from ...graph.formulas import triangle
from ...graph.host_functions import HostFunction, host
from ...graph.ir import INT64, Node, broadcast, elementwise, make
from ...graph.shapes import Shape
from ...record.as_node import wrap
from ...record.axes_and_dtypes import array_node, cut, inexact, only, truth
from ...record.promotion import promote
from ...record.tensor import Tensor
from ..arrays.result_order import in_c_order
from ..arrays.shaping import common_shape
from .matrix_batches import (
    MatrixError,
    adjoint,
    batched,
    diagonal,
    diagonal_matrices,
    identity,
    library,
    lower_product_of_lower,
    only_read,
    product,
    real_part,
    required,
    rows_in_order,
    square_matrices,
    unbatched,
    with_rule,
)

__all__ = ["MatrixError"]

# ----- Factors of complex matrices, by SciPy -----


def _each(out: np.ndarray, function: Any, *arrays: np.ndarray) -> np.ndarray:
    """A function of matrices applied to each of a batch."""
    lead = arrays[0].shape[:-2]
    for position in np.ndindex(lead):
        out[position] = function(*[array[position] for array in arrays])
    return out


def _lu(a: np.ndarray) -> np.ndarray:
    """The result of the primitive `lu`, for complex matrices."""
    from scipy.linalg import get_lapack_funcs

    (getrf,) = get_lapack_funcs(("getrf",), (a,))
    n = a.shape[-1]

    def factor(matrix: np.ndarray) -> np.ndarray:
        found, pivots, _ = getrf(matrix.T)
        order = np.arange(1, n + 1)
        for k, other in enumerate(pivots):
            held = order[other]
            order[other] = order[k]
            order[k] = held if other == k else -held
        inverse = np.empty(n)
        inverse[np.abs(order) - 1] = np.arange(1, n + 1)
        return np.concatenate([found.T, [order, inverse]])

    return _each(np.empty((*a.shape[:-2], n + 2, n), a.dtype), factor, a) if n else np.empty((*a.shape[:-2], 2, 0))


def _triangular_solve(a: np.ndarray, b: np.ndarray, lower: bool, adjoint: bool, unit: bool) -> np.ndarray:
    from scipy.linalg import get_blas_funcs

    (trsm,) = get_blas_funcs(("trsm",), (a, b))
    mode = 2 if adjoint else 0
    return _each(np.empty_like(b), lambda m, r: trsm(1, m, r, lower=lower, trans_a=mode, diag=unit), a, b)


def _cholesky(a: np.ndarray) -> np.ndarray:
    from scipy.linalg import get_lapack_funcs

    (potrf,) = get_lapack_funcs(("potrf",), (a,))

    def factor(matrix: np.ndarray) -> np.ndarray:
        found, failure = potrf(matrix, lower=True, clean=True)
        return np.full_like(found, np.nan) if failure else found

    return _each(np.empty_like(a), factor, a)


LU = library("lu", lambda shape, dtype: ((*shape[:-2], shape[-1] + 2, shape[-1]), dtype), _lu)
CHOLESKY = library("cholesky", lambda shape, dtype: (shape, dtype), _cholesky)
TRIANGULAR_SOLVE = HostFunction(
    "triangular solve", lambda inputs, params: (inputs[1].shape, inputs[1].dtype), _triangular_solve
)


def lu_node(a: Node) -> Node:
    """The factors of square matrices as the primitive `lu` gives them: constants to every derivative."""
    return host(LU, (a,)) if is_complex(a) else builders.lu(a)


def places(order: Node) -> Node:
    """A permutation of `lu` as positions that count from 0."""
    return cast(elementwise("absolute", real_part(order)), INT64) - 1


# ----- Triangular systems -----


def triangular_node(a: Node, b: Node, lower: bool, adjoint_system: bool = False, unit: bool = False) -> Node:
    """The x of `a @ x = b`, or of `adjoint(a) @ x = b`, for one triangle of (B, n, n) and (B, n, k)."""
    if not is_complex(a):
        return builders.triangular_solve(a, b, lower, adjoint_system, unit)
    options = (lower, adjoint_system, unit)
    return with_rule(host(TRIANGULAR_SOLVE, (a, b), *options), _triangular_formula, a, b, static=options)


def _triangular_formula(
    g: Node, x: Node, a: Node, b: Node, lower: bool, adjoint_system: bool, unit: bool
) -> list[Node | None]:
    w = triangular_node(a, g, lower, not adjoint_system, unit)
    left, right = (x, w) if adjoint_system else (w, x)
    return [-triangle(product(left, adjoint(right)), lower, strict=unit), w]


# ----- Solving -----

WHOLE_SOLUTION = 16
"""Rows and columns up to which one primitive solves with both factors."""


def solve_node(a: Node, b: Node, factors: Node, adjoint_system: bool = False) -> Node:
    """The x of `a @ x = b`, or of `adjoint(a) @ x = b`: `a` is (B, n, n) with its factors, `b` is (B, n, k)."""
    value = make("stop_gradient", (b,))
    n = a.shape[-1]
    if max(n, b.shape[-1]) <= WHOLE_SOLUTION and not is_complex(a):
        value = builders.lu_solve(factors, value, adjoint_system)
        return with_rule(value, _solve_formula, a, b, factors, static=(adjoint_system,))
    packed = cut(factors, 1, 0, n)
    # The rows after the factors hold the order of a's rows, and the inverse of it.
    order = places(reshape(cut(factors, 1, n + (not adjoint_system), 1), b.shape[:2]))
    if adjoint_system:
        value = triangular_node(packed, rows_in_order(value, order), lower=False, adjoint_system=True, unit=True)
        value = triangular_node(packed, value, lower=True, adjoint_system=True)
    else:
        value = triangular_node(packed, value, lower=True)
        value = rows_in_order(triangular_node(packed, value, lower=False, unit=True), order)
    return with_rule(value, _solve_formula, a, b, factors, static=(adjoint_system,))


def _solve_formula(g: Node, x: Node, a: Node, b: Node, factors: Node, adjoint_system: bool) -> list[Node | None]:
    """For x = inverse(a) @ b, the cotangent of b is w = adjoint(inverse(a)) @ g, that of a is -w @ adjoint(x)."""
    w = solve_node(a, g, factors, not adjoint_system)
    left, right = (x, w) if adjoint_system else (w, x)
    return [-product(left, adjoint(right)), w, None]


def regular_factors(name: str, a: Node) -> Node:
    """The LU factors of matrices that must not be singular."""
    factors = lu_node(a)
    message = (
        f"{name} needs a regular matrix, but {'one of the matrices' if a.shape[0] > 1 else 'the matrix'} is singular: "
        "elimination met a pivot of exactly 0."
    )
    required(factors, truth(diagonal(factors)), message)
    return factors


def right_hand_sides(name: str, a: Any, b: Any) -> tuple[Node, Node, Shape, Node]:
    """Matrices (B, n, n), right-hand sides (B, n, k), the shape of the solution, and an example of its dtype."""
    matrix, right = promote([square_matrices(name, a), inexact(array_node(b))])
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
        batched(broadcast(matrix, (*lead, n, n))),
        batched(broadcast(right, (*lead, n, columns))),
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
    matrix, right, shape, like = right_hand_sides("solve", a, b)
    return wrap(unbatched(solve_node(matrix, right, regular_factors("solve", matrix)), shape, like))


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
    node = square_matrices("inv", a)
    matrix = batched(node)
    result = solve_node(matrix, identity(matrix), regular_factors("inv", matrix))
    return wrap(unbatched(result, node.shape, node))


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
        Whether to solve with the transposed matrix (1, "T"), or the transposed and conjugated one (2, "C").
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
    matrix, right, shape, like = right_hand_sides("solve_triangular", a, b)
    if not unit_diagonal:
        message = "solve_triangular needs a regular matrix, but there is a 0 on its diagonal."
        required(matrix, truth(diagonal(matrix)), message)
    transposed = trans in (1, "T") and is_complex(matrix)
    right = conjugate(right) if transposed else right
    result = triangular_node(matrix, right, bool(lower), trans not in (0, "N"), bool(unit_diagonal))
    result = conjugate(result) if transposed else result
    return wrap(unbatched(result, shape, like))


def cholesky_node(a: Node) -> Node:
    """The lower triangular factors of Hermitian matrices, whose lower triangle is read; NaN if there are none."""
    found = host(CHOLESKY, (a,)) if is_complex(a) else builders.cholesky(make("stop_gradient", (a,)))
    return with_rule(found, _cholesky_formula, a)


def _cholesky_formula(g: Node, factor: Node, a: Node) -> list[Node | None]:
    """With P the lower triangle of adjoint(L) @ g, its diagonal halved: inverse(L)^H (P + P^H) / 2 inverse(L).

    Source: Murray, "Differentiation of the Cholesky decomposition", 2016.
    """
    turned = lower_product_of_lower(factor, g)
    lower = triangle(turned, lower=True, strict=True)
    both = 0.5 * (lower + adjoint(lower) + diagonal_matrices(cast(real_part(diagonal(turned)), a.dtype)))
    half = triangular_node(factor, both, lower=True, adjoint_system=True)
    whole = triangular_node(factor, adjoint(half), lower=True, adjoint_system=True)
    return [only_read(whole, "L")]


@in_c_order
def cholesky(a: Any, /, *, upper: bool = False) -> Tensor:
    """Cholesky factors: the lower triangular L with `L @ L.T = a`.

    Parameters
    ----------
    a : array-like, shape (..., n, n)
        Symmetric or Hermitian, and positive definite. Only the lower triangle is read (the upper one, if `upper`); so
        the gradient of the other one is 0.
    upper : bool
        Whether to give the upper triangular factor, `L.T`, instead (its adjoint, if complex).

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
    node = square_matrices("cholesky", a)
    matrix = batched(node)
    factor = cholesky_node(adjoint(matrix) if upper else matrix)
    message = (
        f"cholesky needs positive definite matrices, but {'one' if matrix.shape[0] > 1 else 'this one'} is not "
        f"(only the {'upper' if upper else 'lower'} triangle is read)."
    )
    required(factor, elementwise("greater", real_part(diagonal(factor)), 0.0), message)
    return wrap(unbatched(adjoint(factor) if upper else factor, node.shape, node))
