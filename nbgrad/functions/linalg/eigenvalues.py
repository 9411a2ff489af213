"""Eigenvalues and eigenvectors: `eigh`, `eigvalsh`, `eig` and `eigvals`, of one matrix or a batch.

In: array-likes of square matrices. Out: Tensors. Called by users, by `np.linalg.eigh(tensor)` and its like, and by the
functions that rest on them. LAPACK finds values and vectors together (a `host` node of the graph), and Jacobi's
rotations the values of small symmetric matrices; derivatives read both.

An eigenvector may be multiplied by any number of absolute value 1, and vectors of equal eigenvalues may be mixed.
Vectors are differentiated as LAPACK scales them: of norm 1, and where they are complex, with one component real (the
first one of `eigh`, the last one if it reads the upper triangle, the largest one of `eig`). For equal eigenvalues no
derivative of the vectors exists: what does not depend on their choice within the space that they span is differentiated
right, as are functions of the eigenvalues alone that treat equal ones alike (their sum, the trace norm).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError, TracedValueError
from ...graph import builders
from ...graph.builders import cast, iota, reduce, reshape
from ...graph.complex_numbers import conjugate, is_complex, pair
from ...graph.formulas import choose
from ...graph.host_functions import host
from ...graph.ir import Node, broadcast, elementwise, make, zeros
from ...record.as_node import wrap
from ...record.tensor import Tensor
from ...runtime.evaluate import concrete
from ..arrays.result_order import in_c_order
from .factorisations import lu_node, solve_node
from .matrix_batches import (
    Formula,
    adjoint,
    batched,
    complex_dtype_of,
    computed,
    diagonal,
    diagonal_matrices,
    filled_like,
    joint_results,
    library,
    like_operand,
    lower_product,
    mirrored,
    on_diagonal,
    only_read,
    packed,
    product,
    real_dtype_of,
    real_part,
    reciprocal_gaps,
    scaled_columns,
    skew,
    square_matrices,
    summed,
    unbatched,
)


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


# ----- The library functions -----


def _eigh(a: np.ndarray, triangle: Any) -> np.ndarray:
    """Eigenvalues, then the eigenvectors: in rows for real matrices, in columns for complex ones."""
    values, vectors = np.linalg.eigh(a, triangle)
    return packed(values, vectors if np.iscomplexobj(a) else np.swapaxes(vectors, -1, -2), axes=(1, 2))


def _eig(a: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eig(a)
    dtype = complex_dtype_of(a.dtype)
    return packed(values.astype(dtype), vectors.astype(dtype), axes=(1, 2))


EIGVALSH = library(
    "eigvalsh", lambda shape, dtype, triangle: (shape[:-1], real_dtype_of(dtype)), np.linalg.eigvalsh, "eigvalsh"
)
EIGH = library(
    "eigh",
    lambda shape, dtype, triangle: ((*shape[:-2], shape[-1] * (shape[-1] + 1)), dtype),
    _eigh,
    "eigh",
    (EIGVALSH, lambda shape, triangle: 0),
)
EIG = library(
    "eig", lambda shape, dtype: ((*shape[:-2], shape[-1] * (shape[-1] + 1)), complex_dtype_of(dtype)), _eig, "eig"
)
EIGVALS = library("eigvals", lambda shape, dtype: (shape[:-1], complex_dtype_of(dtype)), np.linalg.eigvals, "eigvals")


# ----- Hermitian matrices -----


def with_real_component(g: Node, vectors: Node, chosen: Node, further: Node | None = None) -> Node:
    """The cotangent of vectors that are free up to a phase, for those whose chosen component is real.

    A phase that keeps this component of v real turns v by -i v Im(dv[p]) / v[p]; this is the transpose. Components that
    are 0 fix no phase. `further` is Im(g^H u) of other vectors u that turn with these.
    """
    along = make("imag", (reduce("sum", conjugate(g) * vectors, (1,)),))
    along = along if further is None else along + further
    zero = filled_like(vectors, 0.0)
    component = make("real", (reduce("sum", elementwise("select", chosen, vectors, zero), (1,)),))
    fixed = elementwise("greater", elementwise("absolute", component), float(np.finfo(component.dtype).eps))
    safe = elementwise("select", fixed, component, filled_like(component, 1.0))
    turn = elementwise("select", fixed, along / safe, filled_like(component, 0.0))
    spread = broadcast(reshape(turn, (turn.shape[0], 1, turn.shape[1])), vectors.shape)
    nothing = zeros(spread.shape, spread.dtype)
    return g + pair(nothing, elementwise("select", chosen, spread, nothing))


def in_row(vectors: Node, row: int) -> Node:
    """Whether an element is in one row of each matrix."""
    rows, columns = vectors.shape[-2:]
    position = elementwise("equal", reshape(iota(rows), (rows, 1)), row % max(rows, 1))
    return broadcast(broadcast(position, (rows, columns)), vectors.shape)


def _hermitian_formula(triangle: str) -> Formula:
    """The cotangent of A = V diag(w) V^H.

    Source: Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic
    differentiation", 2008, section 3.1; with adjoints for complex matrices, as in Boeddeker et al., "On the computation
    of complex-valued gradients with application to statistically optimum beamforming", 2017.
    """

    def formula(given: Sequence[Node | None], results: Sequence[Node], operands: Sequence[Node]) -> list[Node | None]:
        g_values, g_vectors = given
        values, vectors = results
        if not is_complex(vectors):
            vectors = mirrored(vectors)
            g_vectors = None if g_vectors is None else mirrored(g_vectors)
        turned = adjoint(vectors)
        inner: Node | None = None
        if g_vectors is not None:
            if is_complex(vectors):
                chosen = in_row(vectors, 0 if triangle == "L" else -1)
                g_vectors = with_real_component(g_vectors, vectors, chosen)
            inner = 0.5 * (cast(reciprocal_gaps(values), vectors.dtype) * skew(product(turned, g_vectors)))
            if g_values is not None:
                wide = cast(reshape(g_values, (*g_values.shape, 1)), inner.dtype)
                inner = elementwise("select", on_diagonal(inner), broadcast(wide, inner.shape), inner)
            half = product(vectors, inner)
        elif g_values is not None:
            half = scaled_columns(vectors, g_values)
        else:
            return [None]
        if triangle == "U":
            return [only_read(product(half, turned), triangle)]
        return [only_read(lower_product(half, turned), triangle)]

    return formula


_HERMITIAN = {triangle: _hermitian_formula(triangle) for triangle in "LU"}


def eigh_nodes(a: Node, triangle: str = "L") -> tuple[Node, Node]:
    """Eigenvalues (B, n) in ascending order and eigenvectors (B, n, n), in columns, of Hermitian matrices."""
    n = a.shape[-1]
    found = host(EIGH, (a,), triangle)
    values, vectors = joint_results(found, [(n,), (n, n)], _HERMITIAN[triangle], a, real=(0,))
    return values, vectors if is_complex(a) else mirrored(vectors)


ROTATED = 5
"""Rows up to which Jacobi's rotations find eigenvalues; their vectors have other signs than LAPACK's."""


def eigvalsh_node(a: Node, triangle: str = "L") -> Node:
    """Eigenvalues (B, n) of Hermitian matrices; programs find vectors where the derivative reads them."""
    n, lower = a.shape[-1], triangle == "L"
    rotated = n <= ROTATED and not is_complex(a)
    if not a.traced:
        return builders.symmetric_eigen(a, lower, vectors=False) if rotated else host(EIGVALSH, (a,), triangle)
    if rotated:
        found = builders.symmetric_eigen(make("stop_gradient", (a,)), lower, vectors=True)
    else:
        found = host(EIGH, (a,), triangle)
    return joint_results(found, [(n,), (n, n)], _HERMITIAN[triangle], a, real=(0,))[0]


def _triangle(name: str, UPLO: Any) -> str:
    letter = str(UPLO).upper()
    if letter not in ("L", "U"):
        message = f"{name} needs UPLO to be 'L' or 'U' (the triangle that is read), but got {UPLO!r}."
        raise ArgumentError(message)
    return letter


@in_c_order
def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Parameters
    ----------
    a : array-like, shape (..., n, n)
        One triangle is read; so the gradient of the other one is 0.
    UPLO : {"L", "U"}
        Which triangle.

    Returns
    -------
    eigenvalues : Tensor, shape (..., n), real
        In ascending order.
    eigenvectors : Tensor, shape (..., n, n)
        In columns. Where eigenvalues are equal up to rounding, only what does not depend on the choice of vectors in
        the space that they span has the right derivative: no other exists.

    Raises
    ------
    ShapeError
        If there are no square matrices.
    ArgumentError
        If `UPLO` is none of these letters.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> np.linalg.eigh(nb.Tensor(np.array([[2.0, 0.0], [0.0, 1.0]]))).eigenvalues.tolist()
    [1.0, 2.0]
    >>> nb.grad(lambda a: np.sum(np.linalg.eigh(a)[0]))(np.eye(2))
    array([[1., 0.],
           [0., 1.]])
    """
    node = square_matrices("eigh", a)
    values, vectors = eigh_nodes(batched(node), _triangle("eigh", UPLO))
    return EighResult(wrap(unbatched(values, node.shape[:-1], node)), wrap(unbatched(vectors, node.shape, node)))


def eigvalsh(a: Any, UPLO: str = "L") -> Tensor:
    """Eigenvalues of symmetric or Hermitian matrices, in ascending order; differentiable where some are equal, too."""
    node = square_matrices("eigvalsh", a)
    values = eigvalsh_node(batched(node), _triangle("eigvalsh", UPLO))
    return wrap(unbatched(values, node.shape[:-1], node))


# ----- General matrices -----


def _general_formula(
    given: Sequence[Node | None], results: Sequence[Node], operands: Sequence[Node]
) -> list[Node | None]:
    """The derivatives of eigenvalues and of eigenvectors of norm 1.

    Source: Boeddeker et al., "On the computation of complex-valued gradients with application to statistically optimum
    beamforming", 2017.
    """
    g_values, g_vectors = given
    values, vectors = results
    inner: Node | None = None
    if g_values is not None:
        inner = diagonal_matrices(g_values)
    if g_vectors is not None:
        size = elementwise("absolute", vectors)
        largest = _first_largest(size)
        g_vectors = with_real_component(g_vectors, vectors, largest)
        turned = product(adjoint(vectors), g_vectors)
        own = real_part(diagonal(turned))
        inside = turned - scaled_columns(product(adjoint(vectors), vectors), own)
        inner = summed(inner, conjugate(reciprocal_gaps(values)) * inside)
    if inner is None:
        return [None]
    total = solve_node(vectors, product(inner, adjoint(vectors)), lu_node(vectors), adjoint_system=True)
    return [like_operand(total, operands[0])]


def _first_largest(size: Node) -> Node:
    """Whether an element is the first of the largest ones of its column."""
    batch, rows, columns = size.shape
    if not rows:
        return zeros(size.shape, np.dtype(np.bool_))
    most = broadcast(reshape(reduce("max", size, (1,)), (batch, 1, columns)), size.shape)
    position = broadcast(reshape(iota(rows), (rows, 1)), (rows, columns))
    position = broadcast(position, size.shape)
    candidate = choose(elementwise("equal", size, most), position, rows, position)
    first = broadcast(reshape(reduce("min", candidate, (1,)), (batch, 1, columns)), size.shape)
    return elementwise("equal", position, first)


def eig_nodes(a: Node) -> tuple[Node, Node]:
    """Eigenvalues (B, n) and eigenvectors (B, n, n), in columns, as complex numbers."""
    n = a.shape[-1]
    values, vectors = joint_results(host(EIG, (a,)), [(n,), (n, n)], _general_formula, a)
    return values, vectors


ALWAYS_COMPLEX = np.lib.NumpyVersion(np.__version__) >= "2.5.0"
"""Whether the dtype of NumPy's `eig` does not depend on values, as the array API standard has it, too."""


def _all_real(a: Node, values: Node) -> bool:
    """Whether NumPy would give real results: before its version 2.5 for real matrices with real eigenvalues only.

    Under `jit` that is a guard, so that a call with other matrices is recorded anew; under `vmap`, where it may differ
    from value to value, results stay complex.
    """
    if is_complex(a) or ALWAYS_COMPLEX:
        return False
    imaginary = make("imag", (values,))
    none = elementwise("equal", imaginary, 0.0)
    everything = reduce("min", none, range(none.ndim)) if none.size else None
    if everything is None:
        return True
    try:
        return bool(concrete(everything, "bool"))
    except TracedValueError:
        return False


def eig(a: Any) -> EigResult:
    """Eigenvalues and right eigenvectors of square matrices.

    Parameters
    ----------
    a : array-like, shape (..., n, n)

    Returns
    -------
    eigenvalues : Tensor, shape (..., n)
    eigenvectors : Tensor, shape (..., n, n)
        In columns, of norm 1, the largest component real. Both are complex, as in the NumPy that is installed: before
        its version 2.5 (and not under `vmap`) they are real if the matrices and all eigenvalues are.

    Raises
    ------
    ShapeError
        If there are no square matrices.

    Notes
    -----
    Eigenvalues that are equal have no derivative, unless the matrix has a full set of eigenvectors and the
    function that is differentiated treats them alike.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> np.linalg.eig(nb.Tensor(np.array([[2.0, 0.0], [0.0, 1.0]]))).eigenvalues.real.tolist()
    [2.0, 1.0]
    """
    node = square_matrices("eig", a)
    matrix = batched(node)
    values, vectors = eig_nodes(matrix)
    if _all_real(matrix, values):
        values, vectors = real_part(values), real_part(vectors)
    return EigResult(wrap(unbatched(values, node.shape[:-1], node)), wrap(unbatched(vectors, node.shape, node)))


def eigvals(a: Any) -> Tensor:
    """Eigenvalues of square matrices, as `eig` gives them."""
    node = square_matrices("eigvals", a)
    matrix = batched(node)
    # LAPACK may find the values in another order without the vectors, which the derivative needs.
    values = eig_nodes(matrix)[0] if matrix.traced else computed(host(EIGVALS, (matrix,)))
    if _all_real(matrix, values):
        values = real_part(values)
    return wrap(unbatched(values, node.shape[:-1], node))
