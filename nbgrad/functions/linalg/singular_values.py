"""Singular values, and the functions made of them: `svd`, `svdvals`, `pinv`, `matrix_rank`, and the spectral norms.

In: array-likes of matrices. Out: Tensors. Called by users, by `np.linalg.svd(tensor)` and its like, by norms.py and
least_squares.py. LAPACK finds values and vectors together (a `host` node of the graph); their derivatives read both.

Singular vectors are differentiated as LAPACK scales them: where they are complex, the first component of each is real
(of the right ones, or of the left ones if there are more columns than rows). Vectors of equal singular values, and the
vectors that complete a basis (`full_matrices`), are no function of the matrix: what does not depend on their choice
within the space that they span is differentiated right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError
from ...graph.builders import argsort, cast, reduce, reshape
from ...graph.complex_numbers import conjugate, is_complex, pair
from ...graph.formulas import triangle
from ...graph.host_functions import host
from ...graph.ir import INT64, Node, broadcast, elementwise, make, zeros
from ...record.as_node import wrap
from ...record.axes_and_dtypes import array_node, filled, take_last
from ...record.tensor import Tensor
from ..arrays.shaping import flip_node
from .eigenvalues import eigh_nodes, eigvalsh_node, in_row, with_real_component
from .matrix_batches import (
    adjoint,
    batched,
    diagonal,
    diagonal_matrices,
    filled_like,
    first_columns,
    first_rows,
    joint_results,
    last_columns,
    last_rows,
    library,
    matrices,
    mirrored,
    packed,
    product,
    real_dtype_of,
    real_part,
    reciprocal_gaps,
    reciprocal_or_zero,
    rows_in_order,
    scaled_columns,
    scaled_rows,
    skew,
    square_matrices,
    summed,
    unbatched,
    with_rule,
)


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


# ----- The library functions -----


def _shapes(m: int, n: int, full: bool) -> list[tuple[int, ...]]:
    k = min(m, n)
    return [(m, m if full else k), (k,), (n if full else k, n)]


def _svd(a: np.ndarray, full: bool) -> np.ndarray:
    u, s, vh = np.linalg.svd(a, full_matrices=full)
    return packed(u, s.astype(a.dtype), vh, axes=(2, 1, 2))


def _packed_shape(shape: tuple[int, ...], dtype: Any, full: bool) -> tuple[tuple[int, ...], Any]:
    m, n = shape[-2:]
    return (*shape[:-2], sum(int(np.prod(part)) for part in _shapes(m, n, full))), dtype


SVDVALS = library(
    "svdvals",
    lambda shape, dtype, full: ((*shape[:-2], min(shape[-2:])), real_dtype_of(dtype)),
    lambda a, full: np.linalg.svd(a, compute_uv=False),
    "svdvals",
)
SVD = library(
    "svd",
    _packed_shape,
    _svd,
    "svd",
    (SVDVALS, lambda shape, full: int(np.prod(_shapes(shape[-2], shape[-1], full)[0]))),
)


# ----- Singular value decompositions -----


def _formula(given: Sequence[Node | None], results: Sequence[Node], operands: Sequence[Node]) -> list[Node | None]:
    """The cotangent of A = U S V^H.

    Source: Townsend, "Differentiating the singular value decomposition", 2016; the phase of complex vectors as in Wan
    and Zhang, "Automatic differentiation for complex valued SVD", 2019; the part of vectors that complete a basis
    follows from the orthogonality of U and of V.
    """
    g_u, g_s, g_vh = given
    u, s, vh = results
    k, m, n = s.shape[-1], u.shape[-2], vh.shape[-1]
    if is_complex(u) and k:
        g_u, g_vh = _with_phase(g_u, g_vh, u, vh)
    u1, vh1 = first_columns(u, k), first_rows(vh, k)
    inverse = reciprocal_or_zero(s, elementwise("greater", s, 0.0))
    inner: Node | None = None if g_s is None else diagonal_matrices(cast(g_s, u.dtype))
    gaps = cast(_reciprocal_gaps_of_squares(s), u.dtype)
    left: Node | None = None
    right: Node | None = None
    if g_u is not None:
        g_u1 = first_columns(g_u, k)
        turned = product(adjoint(u1), g_u1)
        inner = summed(inner, scaled_columns(gaps * skew(turned), s))
        if is_complex(u):
            phase = make("imag", (diagonal(turned),)) * inverse
            inner = summed(inner, diagonal_matrices(pair(filled_like(phase, 0.0), phase)))
        if m > k:
            if u.shape[-1] > k:
                u2, g_u2 = last_columns(u, m - k), last_columns(g_u, m - k)
                outside = product(u2, product(adjoint(u2), g_u1) - product(adjoint(g_u2), u1))
            else:
                outside = g_u1 - product(u1, turned)
            left = scaled_columns(outside, inverse)
    if g_vh is not None:
        g_vh1 = first_rows(g_vh, k)
        turned = product(vh1, adjoint(g_vh1))
        inner = summed(inner, scaled_rows(s, gaps * skew(turned)))
        if n > k:
            if vh.shape[-2] > k:
                vh2, g_vh2 = last_rows(vh, n - k), last_rows(g_vh, n - k)
                outside = product(product(g_vh1, adjoint(vh2)) - product(vh1, adjoint(g_vh2)), vh2)
            else:
                outside = g_vh1 - product(adjoint(turned), vh1)
            right = scaled_rows(inverse, outside)
    if inner is None:
        return [None]
    whole = product(u1, inner)
    if left is not None:
        whole = whole + left
    total = product(whole, vh1)
    return [total if right is None else total + product(u1, right)]


def _reciprocal_gaps_of_squares(s: Node) -> Node:
    """1 / (s[k]^2 - s[j]^2); small values that differ are not lost beside the largest one's rounding, squared."""
    batch, k = s.shape
    sums = reshape(s, (batch, 1, k)) + broadcast(reshape(s, (batch, k, 1)), (batch, k, k))
    return reciprocal_gaps(s) * reciprocal_or_zero(sums, elementwise("greater", sums, 0.0))


def _with_phase(g_u: Node | None, g_vh: Node | None, u: Node, vh: Node) -> tuple[Node | None, Node | None]:
    """The cotangents of vectors that share a free phase, for vectors of which one component is real.

    It is the first component of the right vectors, or of the left ones if there are more columns than rows.
    """
    k = min(u.shape[-1], vh.shape[-2])
    v = adjoint(vh)
    g_v = None if g_vh is None else adjoint(g_vh)
    held, other, g_held, g_other = (v, u, g_v, g_u) if u.shape[-2] >= vh.shape[-1] else (u, v, g_u, g_v)
    g_held = filled_like(held, 0.0) if g_held is None else g_held
    extra = None
    if g_other is not None:
        extra = make("imag", (reduce("sum", conjugate(first_columns(g_other, k)) * first_columns(other, k), (1,)),))
        missing = held.shape[-1] - k
        if missing:
            batch = held.shape[0]
            extra = make("concatenate", (extra, zeros((batch, missing), extra.dtype)), (1,))
    g_held = with_real_component(g_held, held, in_row(held, 0), extra)
    return (g_other, adjoint(g_held)) if held is v else (g_held, None if g_other is None else adjoint(g_other))


def svd_nodes(a: Node, full: bool = False) -> tuple[Node, Node, Node]:
    """U (B, m, k), S (B, k) and V^H (B, k, n) of (B, m, n); square U and V^H if `full`."""
    shapes = _shapes(a.shape[1], a.shape[2], full)
    u, s, vh = joint_results(host(SVD, (a,), full), shapes, _formula, a, real=(1,))
    return u, s, vh


def svdvals_node(a: Node) -> Node:
    """Singular values (B, k) in descending order; programs find vectors where the derivative reads them."""
    return svd_nodes(a)[1] if a.traced else host(SVDVALS, (a,), False)


def _descending(values: Node) -> Node:
    """The positions that sort each row of (B, n) in descending order."""
    return flip_node(argsort(values), (1,))


def _hermitian_nodes(a: Node) -> tuple[Node, Node, Node]:
    """The decomposition of Hermitian matrices by their eigenvectors."""
    values, vectors = eigh_nodes(a)
    size = elementwise("absolute", values)
    order = _descending(size)
    u = mirrored(rows_in_order(mirrored(vectors), order))
    one = filled_like(values, 1.0)
    signs = take_last(elementwise("select", elementwise("less", values, 0.0), -one, one), order)
    return u, take_last(size, order), scaled_rows(signs, adjoint(u))


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Singular value decomposition `a = U @ diag(S) @ Vh`.

    Parameters
    ----------
    a : array-like, shape (..., m, n)
    full_matrices : bool
        Whether U is (m, m) and Vh is (n, n); otherwise they have k = min(m, n) columns, or rows.
    compute_uv : bool
        Whether to give U and Vh, too.
    hermitian : bool
        Whether the matrices are Hermitian; then one triangle is read.

    Returns
    -------
    U : Tensor, shape (..., m, m) or (..., m, k)
    S : Tensor, shape (..., k), real
        In descending order. The only result if not `compute_uv`.
    Vh : Tensor, shape (..., n, n) or (..., k, n)
        Derivatives of vectors exist where singular values differ and are not 0; see the head of this module.

    Raises
    ------
    ShapeError
        If there are no matrices, or Hermitian ones are not square.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> np.linalg.svd(nb.Tensor(np.array([[0.0, 2.0], [3.0, 0.0]]))).S.tolist()
    [3.0, 2.0]
    >>> nb.grad(lambda a: np.sum(np.linalg.svd(a, compute_uv=False)))(np.eye(2))
    array([[1., 0.],
           [0., 1.]])
    """
    node = (square_matrices if hermitian else matrices)("svd", a)
    matrix = batched(node)
    lead, (m, n) = node.shape[:-2], node.shape[-2:]
    if not compute_uv:
        values = _hermitian_values(matrix) if hermitian else svdvals_node(matrix)
        return wrap(unbatched(values, (*lead, min(m, n)), node))
    found = _hermitian_nodes(matrix) if hermitian else svd_nodes(matrix, bool(full_matrices))
    return SVDResult(*[wrap(unbatched(part, (*lead, *part.shape[1:]), node)) for part in found])


def _hermitian_values(a: Node) -> Node:
    size = elementwise("absolute", eigvalsh_node(a))
    return take_last(size, _descending(size))


def svdvals(x: Any, /) -> Tensor:
    """Singular values in descending order; differentiable where some are equal or 0, too."""
    return svd(x, compute_uv=False)


# ----- Pseudo-inverses -----


def hermitian_from_lower(a: Node) -> Node:
    """Hermitian matrices of which the lower triangle is given."""
    strict = triangle(a, lower=True, strict=True)
    return strict + adjoint(strict) + diagonal_matrices(cast(real_part(diagonal(a)), a.dtype))


def _pinv_formula(g: Node, p: Node, a: Node, cutoff: Node) -> list[Node | None]:
    """The derivative at constant rank.

    Source: Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
    variables separate", 1973, eq. 4.12, transposed.
    """
    turned, g_turned = adjoint(p), adjoint(g)
    total = -product(turned, g, turned)
    m, n = a.shape[1:]
    # Where rows or columns are independent, one of the projections is zero up to rounding; it is left in, because the
    # rank is known only when the program runs.
    rest = product(g_turned, p, turned)
    total = total + rest - product(a, product(p, rest))
    rest = product(turned, p, g_turned)
    return [total + rest - product(product(rest, p), a) if m and n else total, None]


def reciprocals(s: Node, cutoff: Node) -> Node:
    """The reciprocals of singular values (B, k), 0 for those up to `cutoff` (B,) times the largest."""
    if not s.size:
        return s
    bound = reshape(reduce("max", s, (1,)) * cutoff, (s.shape[0], 1))
    return reciprocal_or_zero(s, elementwise("greater", s, broadcast(bound, s.shape)))


def pinv_node(a: Node, cutoff: Node) -> Node:
    """Pseudo-inverses (B, n, m); singular values up to `cutoff` (B,) times the largest count as zero."""
    u, s, vh = svd_nodes(a)
    inverse = product(scaled_columns(adjoint(vh), reciprocals(s, cutoff)), adjoint(u))
    return with_rule(inverse, _pinv_formula, a, cutoff)


def relative_cutoff(node: Node, given: Any, standard: float) -> Node:
    """A relative bound on singular values, one for each matrix of a batch."""
    lead = node.shape[:-2]
    dtype = real_dtype_of(batched(node).dtype)
    value = filled((), standard, dtype) if given is None else cast(array_node(given), dtype)
    return reshape(broadcast(make("stop_gradient", (value,)), lead), (int(np.prod(lead)),))


_NOT_GIVEN = object()


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _NOT_GIVEN) -> Tensor:
    """Pseudo-inverses (Moore and Penrose's), differentiable where the rank does not change.

    Parameters
    ----------
    a : array-like, shape (..., m, n)
    rcond : array-like, shape (...), optional
        Singular values up to this number times the largest one count as zero; by default 1e-15.
    rtol : array-like, shape (...), or None
        The same under its newer name, of which None means max(m, n) times the resolution of the dtype.
    hermitian : bool
        Whether the matrices are Hermitian; then the lower triangle is read.

    Returns
    -------
    Tensor, shape (..., n, m)

    Raises
    ------
    ShapeError
        If there are no matrices.
    ArgumentError
        If both bounds are given.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> np.linalg.pinv(nb.Tensor(np.array([[2.0, 0.0], [0.0, 0.0]]))).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    node = (square_matrices if hermitian else matrices)("pinv", a)
    if rcond is not None and rtol is not _NOT_GIVEN:
        message = "pinv takes rcond or rtol, not both: they are two names of one bound."
        raise ArgumentError(message)
    matrix = hermitian_from_lower(batched(node)) if hermitian else batched(node)
    resolution = float(np.finfo(real_dtype_of(matrix.dtype)).eps)
    standard = 1e-15 if rtol is _NOT_GIVEN else max(node.shape[-2:]) * resolution
    cutoff = relative_cutoff(node, rcond if rtol is _NOT_GIVEN else rtol, standard)
    result = pinv_node(matrix, cutoff)
    return wrap(unbatched(result, (*node.shape[:-2], node.shape[-1], node.shape[-2]), node))


# ----- Ranks -----


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    """The number of singular values above a bound; an integer, which has no derivative.

    Parameters
    ----------
    A : array-like, shape (..., m, n), or one vector
    tol : array-like, shape (...), optional
        The bound itself.
    hermitian : bool
        Whether the matrices are Hermitian.
    rtol : array-like, shape (...), optional
        The bound, relative to the largest singular value; by default max(m, n) times the resolution of the dtype.

    Returns
    -------
    Tensor, shape (...), int64
    """
    if tol is not None and rtol is not None:
        message = "matrix_rank takes tol or rtol, not both."
        raise ArgumentError(message)
    given = array_node(A)
    if given.ndim < 2:
        nonzero = elementwise("not_equal", given, 0)
        return wrap(cast(reduce("max", nonzero, range(given.ndim)) if given.size else zeros((), nonzero.dtype), INT64))
    node = (square_matrices if hermitian else matrices)("matrix_rank", A)
    matrix = batched(node)
    lead, (m, n) = node.shape[:-2], node.shape[-2:]
    if not min(m, n):
        return wrap(zeros(lead, INT64))
    values = _hermitian_values(matrix) if hermitian else svdvals_node(matrix)
    if tol is not None:
        bound = relative_cutoff(node, tol, 0.0)
    else:
        standard = max(m, n) * float(np.finfo(values.dtype).eps)
        bound = relative_cutoff(node, rtol, standard) * reduce("max", values, (1,))
    above = elementwise("greater", values, broadcast(reshape(bound, (*bound.shape, 1)), values.shape))
    return wrap(reshape(reduce("sum", cast(above, INT64), (1,)), lead))
