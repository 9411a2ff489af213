"""Decompositions and functions of matrices with MindSpore's names and arguments, and special matrices.

In: array-likes of matrices in the last two axes. Out: Tensors. Called by users. All is done, and documented, in
`nbgrad.numpy`; only the order of results and the names differ.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ShapeError
from ..functions.arrays.shaping import swap
from ..functions.arrays.taking import take
from ..functions.linalg import determinants, eigenvalues, matrix_functions, norms, orthogonal, singular_values
from ..functions.linalg.matrix_batches import adjoint, batched, complex_dtype_of, identity, matrices, part, unbatched
from ..graph.builders import cast, concatenate, iota, matmul, pad, reshape, slice_axes
from ..graph.complex_numbers import conjugate, is_complex
from ..graph.ir import Node, broadcast, elementwise, make, zeros
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import array_node, filled, inexact
from ..record.promotion import promote
from ..record.tensor import Tensor
from .declarations import also, as_numpy, spelled
from .docstrings import documented


@spelled
def svd(input: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """Singular value decomposition `input = u @ diag(s) @ adjoint(v)`.

    input : array-like, shape (..., m, n)
    full_matrices : bool
        Whether u and v are square.
    compute_uv : bool
        Whether to give u and v, too.
    -> s : Tensor, shape (..., k)
        The only result if not `compute_uv`.
    -> u : Tensor, shape (..., m, k)
    -> v : Tensor, shape (..., n, k)
    ShapeError : If there are no matrices.

    >>> s, u, v = nb.ops.svd(nb.Tensor([[0.0, 2.0], [3.0, 0.0]]))
    >>> s.tolist()
    [3.0, 2.0]
    """
    if not compute_uv:
        return singular_values.svd(input, compute_uv=False)
    u, s, vh = singular_values.svd(input, full_matrices)
    return s, u, wrap(conjugate(swap(vh._node, -1, -2)))


@spelled
def qr(input: Any, mode: str = "reduced", *, some: bool = True) -> tuple[Tensor, Tensor]:
    """QR decomposition; `mode` is "reduced" or "complete".

    some : bool
        False for "complete", as methods of Tensors say it.
    """
    mode = mode if some else "complete"
    if mode not in ("reduced", "complete"):
        message = f"qr needs mode to be 'reduced' or 'complete', but got {mode!r}."
        raise ArgumentError(message)
    return orthogonal.qr(input, mode)


@spelled
def eig(input: Any) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of square matrices, always complex."""
    values, vectors = eigenvalues.eig(input)
    return _complex(values), _complex(vectors)


@spelled
def eigvals(input: Any) -> Tensor:
    """Eigenvalues of square matrices, always complex."""
    return _complex(eigenvalues.eigvals(input))


def _complex(value: Tensor) -> Tensor:
    node = value._node
    return value if is_complex(node) else wrap(cast(node, complex_dtype_of(node.dtype)))


@spelled
def pinv(input: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """Pseudo-inverses; singular values up to `atol` or `rtol` times the largest one count as zero.

    input : array-like, shape (..., m, n)
    atol : float or array-like, optional
        By default 0.
    rtol : float or array-like, optional
        By default max(m, n) times the resolution of the dtype, or 0 if there is an `atol`.
    hermitian : bool
        Whether the matrices are Hermitian; then one triangle is read.
    -> Tensor, shape (..., n, m)
    ShapeError : If there are no matrices.

    >>> nb.ops.pinv(nb.Tensor([[2.0, 0.0], [0.0, 0.1]]), atol=0.5).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    if atol is None:
        return singular_values.pinv(input, hermitian=hermitian, rtol=rtol)
    node = matrices("pinv", input)
    largest = norms.norm(wrap(make("stop_gradient", (node,))), 2, (-2, -1))._node
    relative = cast(array_node(atol), largest.dtype) / elementwise("maximum", largest, 1e-300)
    bound = relative if rtol is None else elementwise("maximum", relative, cast(array_node(rtol), largest.dtype))
    return singular_values.pinv(input, hermitian=hermitian, rtol=wrap(bound))


@as_numpy(matrix_functions.expm, "Exponentials of square matrices.")
def matrix_exp(input: Any) -> Tensor: ...
@as_numpy(norms.cond, "Condition numbers of matrices.")
def cond(input: Any, p: Any = None) -> Tensor: ...


@spelled
def logdet(input: Any) -> Tensor:
    """Logarithms of determinants; NaN where a real determinant is negative."""
    sign, logarithm = determinants.slogdet(input)
    if is_complex(sign._node):
        return wrap(elementwise("log", sign._node) + cast(logarithm._node, sign._node.dtype))
    node, positive = logarithm._node, elementwise("greater_equal", sign._node, 0.0)
    return wrap(elementwise("select", positive, node, filled(node.shape, float("nan"), node.dtype)))


# ----- Reflections -----


@spelled
def orgqr(input: Any, input2: Any) -> Tensor:
    """The first columns of the product of reflections that LAPACK's QR decompositions give.

    input : array-like, shape (..., m, n)
        The reflections' vectors below the diagonal; the ones on it and zeros above are not read.
    input2 : array-like, shape (..., k)
        Their factors tau.
    -> Tensor, shape (..., m, n)
    ShapeError : If there are no matrices, or more reflections than columns.

    >>> import numpy as np, nbgrad as nb
    >>> h, tau = np.linalg.qr(np.array([[3.0], [4.0]]), "raw")
    >>> np.round(nb.ops.orgqr(nb.Tensor(h.T), tau), 12).tolist()
    [[-0.6], [-0.8]]
    """
    vectors, factors, shape, like = _reflections("orgqr", input, input2)
    start = identity(vectors)
    return wrap(unbatched(_reflected(vectors, factors, start, adjoint_order=False), shape, like))


@also(tau="input2", other="input3")
@spelled
def ormqr(input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Tensor:
    """A matrix times the product Q of reflections (its adjoint, if `transpose`), from the left or from the right.

    input : array-like, shape (..., m, n)
        The reflections' vectors, as for `orgqr`.
    tau : array-like, shape (..., k)
    other : array-like, shape (..., m, p), or (..., p, m) if not `left`
    -> Tensor, of the shape of `other`
    ShapeError : If the shapes do not fit.

    >>> import numpy as np, nbgrad as nb
    >>> h, tau = np.linalg.qr(np.array([[3.0], [4.0]]), "raw")
    >>> np.round(nb.ops.ormqr(nb.Tensor(h.T), tau, np.array([[3.0], [4.0]]), transpose=True), 12).tolist()
    [[-5.0], [0.0]]
    """
    vectors, factors, _, like = _reflections("ormqr", input, tau)
    node = inexact(array_node(other))
    m = vectors.shape[1]
    if node.ndim < 2 or node.shape[-2 if left else -1] != m:
        message = f"ormqr needs a matrix with {m} {'rows' if left else 'columns'}, but the shape is {node.shape}."
        raise ShapeError(message)
    flat = cast(batched(node), vectors.dtype)
    if left:
        found = _reflected(vectors, factors, flat, adjoint_order=transpose)
    else:
        found = adjoint(_reflected(vectors, factors, adjoint(flat), adjoint_order=not transpose))
    return wrap(unbatched(found, node.shape, like))


def _reflections(name: str, input: Any, tau: Any) -> tuple[Node, Node, tuple[int, ...], Node]:
    """The vectors (B, m, n), with ones on the diagonal, and factors (B, k) of reflections."""
    node, factors = promote([matrices(name, input), inexact(array_node(tau))])
    if factors.shape[:-1] != node.shape[:-2] or factors.shape[-1] > min(node.shape[-2:]):
        message = (
            f"{name} needs at most as many reflections as rows and columns, but the shapes are {node.shape} and "
            f"{factors.shape}."
        )
        raise ShapeError(message)
    flat = batched(node)
    rows, columns = flat.shape[1:]
    row, column = reshape(iota(rows), (rows, 1)), iota(columns)
    below = broadcast(elementwise("greater", row, column), flat.shape)
    vectors = elementwise("select", below, flat, zeros(flat.shape, flat.dtype)) + identity(flat)
    return vectors, cast(reshape(factors, (flat.shape[0], factors.shape[-1])), flat.dtype), node.shape, node


def _reflected(vectors: Node, factors: Node, x: Node, adjoint_order: bool) -> Node:
    """The reflections 1 - tau v v^H applied one after the other, the last one first unless `adjoint_order`."""
    batch, m, _ = vectors.shape
    count = factors.shape[1]
    for k in range(count) if adjoint_order else reversed(range(count)):
        v = part(vectors, 0, m, k, k + 1)
        tau = reshape(slice_axes(factors, [(0, batch, 1), (k, 1, 1)]), (batch, 1, 1))
        tau = conjugate(tau) if adjoint_order else tau
        x = x - tau * matmul(v, matmul(adjoint(v), x))
    return x


# ----- Special matrices -----


@documented
def block_diag(*inputs: Any) -> Tensor:
    """The matrix with the given ones on its diagonal and zeros elsewhere; a vector is one row, a number one element.

    *inputs : array-like, at most 2-d
    -> Tensor, 2-d
    ShapeError : If an operand has more than two axes.

    >>> nb.ops.block_diag(nb.Tensor([[1.0, 2.0]]), nb.Tensor(3.0)).tolist()
    [[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]]
    """
    nodes = promote([array_node(value) for value in inputs])
    blocks: list[Node] = []
    for node in nodes:
        if node.ndim > 2:
            message = f"block_diag needs matrices, vectors or numbers, but a shape is {node.shape}."
            raise ShapeError(message)
        blocks.append(reshape(node, (1,) * (2 - node.ndim) + node.shape))
    width, left = sum(block.shape[1] for block in blocks), 0
    rows: list[Node] = []
    for block in blocks:
        rows.append(pad(block, [(0, 0), (left, width - left - block.shape[1])]))
        left += block.shape[1]
    if not rows:
        message = "block_diag needs at least one matrix."
        raise ShapeError(message)
    return wrap(concatenate(rows, 0))


@documented
def toeplitz(c: Any, r: Any = None) -> Tensor:
    """The matrix with constant diagonals that has a first column and a first row, as `scipy.linalg.toeplitz`.

    c : array-like, shape (m,)
        The first column.
    r : array-like, shape (n,), optional
        The first row, whose first element is not read; by default the conjugate of `c`.
    -> Tensor, shape (m, n)
    ShapeError : If an operand is not 1-d.

    >>> nb.ops.toeplitz(nb.Tensor([1.0, 2.0]), nb.Tensor([1.0, 5.0, 6.0])).tolist()
    [[1.0, 5.0, 6.0], [2.0, 1.0, 5.0]]
    """
    column = as_node(c)
    column, row = promote([column, conjugate(column) if r is None else as_node(r)])
    if column.ndim != 1 or row.ndim != 1:
        message = f"toeplitz needs a vector as column and as row, but the shapes are {column.shape} and {row.shape}."
        raise ShapeError(message)
    m, n = column.size, row.size
    line = concatenate([slice_axes(row, [(n - 1, n - 1, -1)]), column], 0) if n > 1 else column
    place = reshape(iota(m), (m, 1)) + (n - 1)
    places = broadcast(place, (m, n)) - broadcast(iota(n), (m, n))
    return take(wrap(line), wrap(places))
