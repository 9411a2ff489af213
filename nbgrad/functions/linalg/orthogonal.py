"""QR decompositions, of one matrix or a batch.

In: array-likes of matrices. Out: Tensors. Called by users and by `np.linalg.qr(tensor)`. The derivative is that of the
factors as LAPACK scales them: the diagonal of R is real. The columns that complete a basis (`mode="complete"` with more
rows than columns) are no function of the matrix: what does not depend on their choice within the space that they span
is differentiated right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError
from ...graph.builders import cast, concatenate, pad
from ...graph.formulas import triangle
from ...graph.host_functions import host
from ...graph.ir import Node
from ...record.as_node import wrap
from ...record.tensor import Tensor
from .factorisations import triangular_node
from .matrix_batches import (
    adjoint,
    batched,
    diagonal,
    diagonal_matrices,
    first_columns,
    joint_results,
    last_columns,
    library,
    matrices,
    packed,
    product,
    real_part,
    summed,
    unbatched,
)


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Tensor
    R: Tensor


def _qr(a: np.ndarray, complete: bool) -> np.ndarray:
    q, r = np.linalg.qr(a, "complete" if complete else "reduced")
    return packed(q, r[..., : a.shape[-1], :], axes=(2, 2))


QR = library(
    "qr",
    lambda shape, dtype, complete: (
        (*shape[:-2], shape[-2] * (shape[-2] if complete else shape[-1]) + shape[-1] ** 2),
        dtype,
    ),
    _qr,
    "qr",
)


def _formula(given: Sequence[Node | None], results: Sequence[Node], operands: Sequence[Node]) -> list[Node | None]:
    """The cotangent of A = Q R with at least as many rows as columns.

    Source: Walter and Lehmann, "Algorithmic differentiation of linear algebra functions with application in optimum
    experimental design", 2010; with adjoints for complex matrices. More columns than rows as in Roberts and Roberts,
    "QR and LQ decomposition matrix backpropagation algorithms for square, wide, and deep matrices and their software
    implementation", 2020.
    """
    g_basis, g_r = given
    basis, r = results
    n = r.shape[-1]
    q = first_columns(basis, n)
    g_q = None if g_basis is None else first_columns(g_basis, n)
    others = basis.shape[-1] - n
    if g_q is not None and g_basis is not None and others:
        # Columns that complete the basis stay orthogonal to the others, and do not turn among themselves.
        rest, g_rest = last_columns(basis, others), last_columns(g_basis, others)
        g_q = g_q - product(rest, product(adjoint(g_rest), q))
    m: Node | None = None
    if g_r is not None:
        m = product(triangle(g_r, lower=False), adjoint(r))
    if g_q is not None:
        m = summed(m, -product(adjoint(q), g_q))
    if m is None:
        return [None]
    strict = triangle(m, lower=False, strict=True)
    symmetric = strict + adjoint(strict) + diagonal_matrices(cast(real_part(diagonal(m)), m.dtype))
    inner = summed(g_q, product(q, symmetric))
    assert inner is not None
    # inner @ inverse(adjoint(R)) is the adjoint of inverse(R) @ adjoint(inner).
    return [adjoint(triangular_node(r, adjoint(inner), lower=False))]


def qr_nodes(a: Node, complete: bool = False) -> tuple[Node, Node]:
    """Q (B, m, k) and R (B, k, n) of (B, m, n), with k = min(m, n), or k = m if `complete`."""
    _, m, n = a.shape
    if m < n:
        q, r = qr_nodes(first_columns(a, m))
        return q, concatenate([r, product(adjoint(q), last_columns(a, n - m))], 2)
    columns = m if complete else n
    q, r = joint_results(host(QR, (a,), columns > n), [(m, columns), (n, n)], _formula, a)
    return q, pad(r, [(0, 0), (0, columns - n), (0, 0)])


def qr(a: Any, mode: str = "reduced") -> Any:
    """QR decomposition `a = Q @ R` with orthonormal columns of Q and an upper triangular R.

    Parameters
    ----------
    a : array-like, shape (..., m, n)
        The first min(m, n) columns must be independent for the derivative to exist.
    mode : {"reduced", "complete", "r"}
        Whether Q is (m, k) and R (k, n) with k = min(m, n), or k = m, or R of the first kind is the only result.

    Returns
    -------
    Q : Tensor, shape (..., m, k)
    R : Tensor, shape (..., k, n)

    Raises
    ------
    ShapeError
        If there are no matrices.
    ArgumentError
        If the mode is "raw", whose reflections have no derivative here, or does not exist.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> q, r = np.linalg.qr(nb.Tensor(np.array([[0.0, 1.0], [2.0, 3.0]])))
    >>> np.abs(r).tolist()
    [[2.0, 3.0], [0.0, 1.0]]
    """
    if mode not in ("reduced", "complete", "r"):
        message = f"qr supports the modes 'reduced', 'complete' and 'r', but got {mode!r}" + (
            ": it gives LAPACK's reflections, use one of these instead." if mode == "raw" else "."
        )
        raise ArgumentError(message)
    node = matrices("qr", a)
    lead = node.shape[:-2]
    q, r = (unbatched(part, (*lead, *part.shape[1:]), node) for part in qr_nodes(batched(node), mode == "complete"))
    return wrap(r) if mode == "r" else QRResult(wrap(q), wrap(r))
