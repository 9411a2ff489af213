"""Rows for products, `numpy.linalg`, and SciPy's matrix functions as `nb.ops`.

Where a result is only defined up to signs or phases (eigenvectors, singular vectors), a function of it is taken that
is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

import nbgrad as nb

from .operation import Operation, between, given, operation, real, regular

NARROW = ("float32",)
"""LAPACK has no float16."""


def product(name: str, function: Any, *samples: Any, peers: str = "", **options: Any) -> Operation:
    return operation(name, function, *samples, peers=peers, **{"complexes": True, **options})


PRODUCTS = [
    product(
        "matmul",
        lambda a, b: a @ b,
        (real(3, 4), real(4, 2)),
        (real(4), real(4)),
        (real(2, 3, 4), real(4)),
        (real(2, 1, 3, 4), real(5, 4, 2)),
        (real(0, 4), real(4, 3)),
        (real(3, 0), real(0, 2)),
        peers=(
            "torch:matmul torch:mm torch:mv torch:bmm torch:__rmatmul__ jax:testDotGrad "
            "jax:testDotGeneralContractAndBatchGrads"
        ),
    ),
    product(
        "matmul with a constant",
        lambda a: (np.ones((2, 3)) @ a, a @ np.arange(4.0)),
        real(3, 4),
        peers="torch:__rmatmul__",
        dtypes=(),
    ),
    product(
        "dot",
        np.dot,
        (real(3, 4), real(4, 2)),
        (real(4), real(4)),
        (real(2, 3, 4), real(5, 4, 2)),
        (real(), real(3)),
        peers="torch:dot torch:mv torch:mm jax:testDotGrad",
    ),
    product("vdot", np.vdot, (real(3, 4), real(3, 4)), peers="torch:vdot"),
    product("inner", np.inner, (real(3, 4), real(2, 4)), (real(4), real(4)), peers="torch:inner"),
    product("outer", np.outer, (real(3), real(4)), (real(2, 2), real()), peers="jax:outer torch:outer torch:ger"),
    product(
        "tensordot",
        lambda a, b: (np.tensordot(a, b, axes=([1, 0], [0, 2])), np.tensordot(a, a, 3)),
        (real(2, 3, 4), real(3, 5, 2)),
        peers="torch:tensordot jax:testDotGeneralContractAndBatchGrads",
    ),
    product("vecdot", np.vecdot, (real(3, 4), real(4)), peers="torch:linalg.vecdot"),
    product(
        "matvec and vecmat",
        lambda a, x, y: (np.matvec(a, x), np.vecmat(y, a)),
        (real(2, 3, 4), real(4), real(2, 3)),
        peers="torch:mv",
        needs="matvec",
    ),
    product("kron", np.kron, (real(2, 3), real(3, 2)), (real(2), real(2, 2)), peers="jax:kron torch:kron"),
    product("cross", np.cross, (real(4, 3), real(3)), peers="torch:cross torch:linalg.cross"),
    product(
        "einsum",
        lambda a, b: (np.einsum("ijk,kj->i", a, b), np.einsum("ijk,lk", a, b), np.einsum("ii...->i...", a[:, :2])),
        (real(2, 3, 3), real(3, 3)),
        peers="torch:einsum jax:testDotGeneralContractAndBatchGrads",
    ),
    product(
        "einsum of three",
        lambda a, b, c: np.einsum("ij,jk,kl->il", a, b, c, optimize=True),
        (real(2, 3), real(3, 4), real(4, 2)),
        peers="torch:einsum",
    ),
    product(
        "multi_dot",
        lambda a, b, c: np.linalg.multi_dot([a, b, c]),
        (real(2, 3), real(3, 4), real(4, 2)),
        peers="torch:linalg.multi_dot torch:chain_matmul",
    ),
    product(
        "addmm",
        lambda c, a, b: 0.5 * c + 2.0 * (a @ b),
        (real(3, 2), real(3, 4), real(4, 2)),
        (real(2), real(3, 4), real(4, 2)),
        peers="torch:addmm torch:addmm.decomposed torch:sparse.sampled_addmm",
    ),
    product("addmv", lambda c, a, x: 0.5 * c + 2.0 * (a @ x), (real(3), real(3, 4), real(4)), peers="torch:addmv"),
    product("addr", lambda c, x, y: 0.5 * c + 2.0 * np.outer(x, y), (real(3, 4), real(3), real(4)), peers="torch:addr"),
    product(
        "baddbmm", lambda c, a, b: 0.5 * c + a @ b, (real(2, 3, 2), real(2, 3, 4), real(2, 4, 2)), peers="torch:baddbmm"
    ),
    product(
        "addbmm",
        lambda c, a, b: 0.5 * c + np.sum(a @ b, axis=0),
        (real(3, 2), real(2, 3, 4), real(2, 4, 2)),
        peers="torch:addbmm",
    ),
    product("polyval", np.polyval, (real(4), real(3)), (real(3), real(2, 2)), peers="jax:polyval"),
    product(
        "convolve",
        lambda a, v: (np.convolve(a, v), np.convolve(a, v, "same"), np.convolve(a, v, "valid")),
        (real(6), real(3)),
        peers="jax:convolve",
    ),
    product(
        "correlate",
        lambda a, v: (np.correlate(a, v), np.correlate(a, v, "full")),
        (real(6), real(3)),
        peers="jax:correlate",
    ),
]


def matrix(name: str, function: Any, *samples: Any, peers: str = "", **options: Any) -> Operation:
    """A function of square matrices, alone and batched."""
    samples = samples or (regular(3, 3), regular(2, 4, 4), regular(1, 1))
    return operation(
        name, function, *samples, peers=peers, **{"complexes": True, "dtypes": NARROW, "tolerance": 1e-6, **options}
    )


def hermitian(a: Any) -> Any:
    """A Hermitian matrix with distinct eigenvalues, made of any regular one."""
    return a + np.conj(np.matrix_transpose(a))


def definite(a: Any) -> Any:
    """A positive definite matrix."""
    return a @ np.conj(np.matrix_transpose(a)) + np.eye(a.shape[-1])


def adjoint(a: Any) -> Any:
    return np.conj(np.matrix_transpose(a))


def eigenvectors(a: Any) -> Any:
    """Eigenvalues, and projections on eigenvectors, which have no phase."""
    w, v = np.linalg.eig(a)
    order = np.argsort(w.real)
    w, v = w[order], v[:, order]
    left = np.linalg.inv(v)
    return w, v[:, :1] @ left[:1]


def eigh_parts(a: Any) -> Any:
    w, v = np.linalg.eigh(hermitian(a))
    return w, v[..., :, :1] @ adjoint(v[..., :, :1])


def eigh_squares(a: Any) -> Any:
    """Of real matrices: the eigenvectors without their signs."""
    w, v = np.linalg.eigh(hermitian(a))
    return w, v * v


def svd_parts(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return s, u[..., :, :1] @ vh[..., :1, :], (u * s[..., None, :]) @ vh


def svd_squares(a: Any, full_matrices: bool = True) -> Any:
    """Of real matrices: the singular vectors without their signs."""
    u, s, vh = np.linalg.svd(a, full_matrices=full_matrices)
    return u * u, s, vh * vh


def qr_parts(a: Any) -> Any:
    q, r = np.linalg.qr(a)
    return q @ adjoint(q), adjoint(r) @ r, (q @ r)


LINALG = [
    matrix(
        "det",
        np.linalg.det,
        regular(3, 3),
        regular(2, 4, 4),
        regular(1, 1),
        real(2, 2),
        peers="jax:det torch:linalg.det torch:det jax:testDetGradIssue",
    ),
    matrix(
        "det of a matrix of low rank",
        np.linalg.det,
        given([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]]),
        given([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]]),
        peers="jax:testDetGradOfSingularMatrixCorank jax:det",
        complexes=False,
    ),
    matrix("slogdet", lambda a: tuple(np.linalg.slogdet(a)), peers="jax:slogdet torch:linalg.slogdet torch:slogdet"),
    matrix("logarithm of the determinant", lambda a: np.linalg.slogdet(definite(a))[1], peers="torch:logdet"),
    matrix("inv", np.linalg.inv, peers="jax:inv torch:linalg.inv torch:inverse torch:linalg.inv_ex"),
    matrix(
        "pinv",
        np.linalg.pinv,
        regular(3, 3),
        regular(5, 3),
        regular(2, 3, 4),
        peers="jax:pinv torch:linalg.pinv torch:pinverse",
    ),
    matrix(
        "pinv of low rank",
        lambda a, b: np.linalg.pinv(a @ b),
        (real(4, 2), real(2, 4)),
        peers="jax:testPinvGradIssue2792 torch:linalg.pinv.singular",
        tolerance=1e-5,
        dtypes=(),
    ),
    matrix(
        "pinv of hermitian matrices",
        lambda a: np.linalg.pinv(hermitian(a), hermitian=True),
        peers="torch:linalg.pinv.hermitian torch:linalg.pinv",
    ),
    matrix(
        "solve",
        np.linalg.solve,
        (regular(3, 3), real(3)),
        (regular(2, 4, 4), real(2, 4, 3)),
        (regular(4, 4), real(4, 1)),
        peers="jax:solve torch:linalg.solve torch:linalg.solve_ex jax:test_custom_linear_solve",
    ),
    matrix(
        "tensorsolve",
        lambda a, b: np.linalg.tensorsolve(a.reshape(2, 3, 6), b),
        (regular(6, 6), real(2, 3)),
        peers="torch:linalg.tensorsolve",
    ),
    matrix(
        "tensorinv",
        lambda a: np.linalg.tensorinv(a.reshape(2, 3, 6), ind=2),
        regular(6, 6),
        peers="torch:linalg.tensorinv",
    ),
    matrix(
        "lstsq",
        lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0],
        (regular(5, 3), real(5)),
        (regular(4, 3), real(4, 2)),
        (regular(3, 4), real(3)),
        peers="jax:lstsq torch:linalg.lstsq",
    ),
    matrix(
        "cholesky",
        lambda a: np.linalg.cholesky(definite(a)),
        regular(3, 3),
        regular(2, 4, 4),
        regular(1, 1),
        regular(3, 0, 0),
        peers="jax:cholesky torch:linalg.cholesky torch:cholesky torch:linalg.cholesky_ex",
    ),
    matrix("qr", qr_parts, regular(3, 3), regular(5, 3), regular(2, 4, 3), peers="jax:qr torch:linalg.qr torch:qr"),
    matrix(
        "qr of real matrices",
        lambda a: tuple(np.linalg.qr(a)),
        regular(3, 3),
        regular(5, 3),
        regular(2, 4, 3),
        peers="jax:qr torch:linalg.qr torch:qr",
        complexes=False,
    ),
    matrix(
        "qr of wide matrices", lambda a: tuple(np.linalg.qr(a)), regular(3, 5), peers="torch:linalg.qr", complexes=False
    ),
    matrix(
        "svd", svd_parts, regular(3, 3), regular(5, 3), regular(2, 3, 4), peers="jax:svd torch:linalg.svd torch:svd"
    ),
    matrix(
        "svd of real matrices",
        lambda a: svd_squares(a, False),
        regular(3, 3),
        regular(5, 3),
        regular(2, 3, 4),
        peers="torch:svd_lowrank torch:pca_lowrank",
        complexes=False,
    ),
    matrix(
        "svdvals",
        lambda a: (np.linalg.svd(a, compute_uv=False), np.linalg.svdvals(a)),
        regular(3, 3),
        regular(5, 3),
        regular(2, 3, 4),
        peers="torch:linalg.svdvals jax:svd",
    ),
    matrix("eigh", eigh_parts, peers="jax:eigh torch:linalg.eigh jax:_normalizing_eigh"),
    matrix("eigh of real matrices", eigh_squares, peers="jax:eigh", complexes=False),
    matrix(
        "eigvalsh",
        lambda a: (np.linalg.eigvalsh(hermitian(a)), np.linalg.eigvalsh(hermitian(a), UPLO="U")),
        peers="jax:eigvalsh torch:linalg.eigvalsh",
    ),
    matrix(
        "eigvals",
        lambda a: np.sum(np.linalg.eigvals(a) ** 3, axis=-1),
        peers="jax:testEigvalsGrad torch:linalg.eigvals",
    ),
    matrix("eig", eigenvectors, regular(3, 3), peers="jax:eig jax:testEigGradRealInputs-f torch:linalg.eig"),
    matrix(
        "matrix_power",
        lambda a: (np.linalg.matrix_power(a, 3), np.linalg.matrix_power(a, -2), np.linalg.matrix_power(a, 0)),
        peers="jax:matrix_power torch:linalg.matrix_power torch:matrix_power",
        dtypes=(),
    ),
    matrix(
        "norm of vectors",
        lambda x: [np.linalg.norm(x, p, axis=-1) for p in (None, 1, 2, 3, np.inf, -np.inf, 0.5, -1)],
        real(3, 4),
        peers="jax:norm torch:linalg.norm torch:linalg.vector_norm torch:norm torch:masked.norm",
    ),
    matrix(
        "norm of matrices",
        lambda a: [np.linalg.norm(a, p) for p in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)],
        regular(3, 3),
        regular(4, 3),
        peers="jax:norm torch:linalg.norm torch:linalg.matrix_norm torch:norm",
    ),
    matrix(
        "norm over axes",
        lambda a: (
            np.linalg.norm(a, axis=(0, 2), keepdims=True),
            np.linalg.norm(a, "nuc", axis=(1, 2)),
            np.linalg.norm(a),
        ),
        regular(2, 3, 3),
        peers="jax:norm torch:linalg.norm",
    ),
    matrix(
        "matrix_norm and vector_norm",
        lambda a: (np.linalg.matrix_norm(a), np.linalg.vector_norm(a, axis=1, ord=3)),
        regular(2, 3, 3),
        peers="torch:linalg.matrix_norm torch:linalg.vector_norm",
    ),
    matrix(
        "cond",
        lambda a: [np.real(np.linalg.cond(a, p)) for p in (None, "fro", 1, 2, -2, np.inf)],
        given([[2.0, 0.6, -0.7], [0.5, 3.1, 0.8], [-0.6, 0.9, 4.7]]),
        peers="jax:cond torch:linalg.cond",
    ),
    matrix(
        "distance",
        lambda x, y: np.linalg.norm(x - y),
        (real(3, 4), real(4)),
        peers="torch:dist torch:nn.functional.pairwise_distance",
    ),
    matrix(
        "all distances",
        lambda x, y: np.sqrt(np.sum(np.abs(x[:, None] - y) ** 2, axis=-1)),
        (real(3, 4), real(2, 4)),
        peers="torch:cdist torch:nn.functional.pdist",
    ),
    matrix(
        "largest norm of rows",
        lambda x: x * np.minimum(1, 1.5 / np.linalg.norm(x, axis=1, keepdims=True)),
        real(3, 4),
        peers="torch:renorm",
        complexes=False,
    ),
    matrix(
        "inverse from a Cholesky factor",
        lambda a: np.linalg.inv(np.tril(a) @ np.tril(a).T),
        regular(3, 3),
        peers="torch:cholesky_inverse",
        complexes=False,
    ),
]

OPS = [
    matrix(
        "solve_triangular",
        lambda a, b: (nb.ops.solve_triangular(a, b), nb.ops.solve_triangular(a, b, lower=True)),
        (regular(3, 3), real(3, 2)),
        (regular(4, 4), real(4)),
        reference=lambda a, b: (scipy.linalg.solve_triangular(a, b), scipy.linalg.solve_triangular(a, b, lower=True)),
        peers="jax:triangular_solve torch:linalg.solve_triangular torch:triangular_solve",
    ),
    matrix(
        "expm",
        lambda a: nb.ops.expm(a),
        regular(3, 3),
        regular(1, 1),
        reference=scipy.linalg.expm,
        peers="jax:expm torch:matrix_exp torch:linalg.matrix_exp",
    ),
    matrix("logm", lambda a: nb.ops.logm(a), regular(3, 3), reference=scipy.linalg.logm),
    matrix(
        "sqrtm",
        lambda a: nb.ops.sqrtm(a),
        regular(3, 3),
        reference=lambda a: scipy.linalg.sqrtm(a).astype(a.dtype),
        peers="jax:sqrtm",
    ),
    matrix(
        "cho_solve",
        lambda a, b: nb.ops.cho_solve((nb.ops.cholesky(a @ a.T + np.eye(3)), True), b),
        (regular(3, 3), real(3, 2)),
        reference=lambda a, b: np.linalg.solve(a @ a.T + np.eye(3), b),
        peers="torch:cholesky_solve jax:cho_solve",
        complexes=False,
    ),
    matrix(
        "lu",
        lambda a: tuple(nb.ops.lu(a)),
        regular(3, 3),
        regular(5, 3),
        regular(3, 5),
        reference=scipy.linalg.lu,
        peers="jax:lu torch:linalg.lu torch:lu torch:lu_unpack",
    ),
    matrix(
        "solution by factors",
        lambda a, b: nb.ops.lu_solve(nb.ops.lu_factor(a), b),
        (regular(3, 3), real(3, 2)),
        reference=np.linalg.solve,
        peers="torch:lu_solve torch:linalg.lu_solve torch:linalg.lu_factor torch:linalg.lu_factor_ex",
    ),
]


def tridiagonal(low: Any, middle: Any, high: Any, right: Any) -> Any:
    """Solves a system with three diagonals by elimination, row by row (Thomas)."""
    n = middle.shape[-1]
    c, d = [high[0] / middle[0]], [right[0] / middle[0]]
    for k in range(1, n):
        pivot = middle[k] - low[k] * c[-1]
        c.append(high[k] / pivot)
        d.append((right[k] - low[k] * d[-1]) / pivot)
    x = [d[-1]]
    for k in range(n - 2, -1, -1):
        x.append(d[k] - c[k] * x[-1])
    return np.stack(x[::-1])


EMPTY = [
    matrix(
        "decompositions of empty matrices",
        lambda a: (
            np.linalg.cholesky(a),
            np.linalg.eigvalsh(a),
            np.linalg.inv(a),
            np.linalg.det(a),
            *np.linalg.eigh(a),
        ),
        regular(0, 0),
        regular(2, 0, 0),
        peers="jax:cholesky jax:eigh",
    ),
    matrix(
        "factors of matrices without columns",
        lambda a: (*np.linalg.qr(a), *np.linalg.svd(a, full_matrices=False), np.linalg.pinv(a)),
        regular(3, 0),
        regular(2, 3, 0),
        regular(0, 2),
        peers="jax:qr jax:svd jax:pinv",
    ),
    matrix("qr complete", lambda a: np.linalg.qr(a, mode="complete"), regular(3, 3), peers="jax:qr", complexes=False),
    matrix(
        "svd with square factors",
        svd_squares,
        regular(3, 3),
        regular(2, 4, 4),
        peers="jax:svd",
        complexes=False,
    ),
    matrix(
        "singular values of many matrices",
        lambda a: np.linalg.svd(a, compute_uv=False),
        regular(3, 5, 2),
        regular(2, 3, 9, 9),
        peers="jax:svd",
    ),
]

SYSTEMS = [
    matrix(
        "a tridiagonal system",
        tridiagonal,
        (real(4), between(4, 5, 4), real(4), real(4, 2)),
        peers="jax:test_tridiagonal_solve_grad",
    ),
    matrix(
        "householder product",
        lambda v: np.linalg.multi_dot([np.eye(4) - 2 * np.outer(v[k], v[k]) / (v[k] @ v[k]) for k in range(3)]),
        real(3, 4),
        peers="torch:linalg.householder_product torch:ormqr",
        complexes=False,
        dtypes=(),
    ),
]


OPERATIONS = [*PRODUCTS, *LINALG, *OPS, *EMPTY, *SYSTEMS]
