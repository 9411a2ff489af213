"""Eigenvalues, singular values, QR, LU, least squares and norms agree with NumPy and SciPy, real and complex."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import nbgrad as nb
import nbgrad.numpy as dropped_in
from nbgrad.errors import ArgumentError, ShapeError
from nbgrad.functions.linalg import factorisations, triangular_factors
from nbgrad.functions.linalg.matrix_batches import MatrixError, pieces_of
from nbgrad.graph.builders import concatenate, pad
from nbgrad.graph.complex_numbers import pair
from nbgrad.graph.ir import constant, literal, zeros
from nbgrad.numpy import linalg

from .agreement import agree
from .plane import check

pytestmark = pytest.mark.unoptimized

L = np.linalg


def numbers(kind: str, *shape: int, seed: int = 4) -> np.ndarray:
    """Random numbers, real or complex; the same for the same shape."""
    rng = np.random.default_rng([seed, *shape])
    found = rng.normal(size=shape)
    return found + 1j * rng.normal(size=shape) if kind == "complex" else found


def separate(kind: str, *shape: int) -> np.ndarray:
    """Random numbers with a diagonal that keeps eigenvalues, and singular values, apart."""
    n = min(shape[-2:])
    return 0.5 * numbers(kind, *shape) + np.eye(*shape[-2:]) @ np.diag(2.0 * np.arange(1, shape[-1] + 1) - n * (n == 4))


def signed(vectors: Any) -> Any:
    """Real vectors with a positive first component: LAPACK's sign may jump where nothing else does."""
    return vectors if np.iscomplexobj(vectors) else vectors * np.sign(vectors[..., :1, :])


def eigenvectors(result: Any) -> Any:
    """Eigenvalues and `signed` eigenvectors."""
    return result[0], signed(result[1])


def singular_vectors(result: Any) -> Any:
    """Singular values and vectors, the real ones of which have a sign that does not jump."""
    u, s, vh = result
    if np.iscomplexobj(u):
        return u, s, vh
    k = s.shape[-1]
    sign = np.sign(u[..., :1, :k])
    return u[..., :k] * sign, s, vh[..., :k, :] * np.swapaxes(sign, -1, -2)


def adjoint(a: Any) -> Any:
    """Matrices transposed and conjugated."""
    return np.conj(np.swapaxes(a, -1, -2))


def positive(a: Any) -> Any:
    """A Hermitian positive definite matrix of any matrix."""
    return a @ adjoint(a) + 2 * np.eye(a.shape[-1])


def projections(a: Any) -> Any:
    """What the vectors that complete the bases of a decomposition span."""
    u, _, vh = L.svd(a)
    k = min(a.shape)
    return u[:, k:] @ adjoint(u[:, k:]), adjoint(vh[k:]) @ vh[k:]


def qr_projection(a: Any) -> Any:
    """As `projections`, of a complete QR decomposition, and its R."""
    q, r = L.qr(a, "complete")
    n = a.shape[1]
    return q[:, n:] @ adjoint(q[:, n:]), r


SHAPES = {"square": (4, 4), "batch": (2, 3, 3), "tall": (5, 3), "wide": (3, 5), "one": (1, 1)}
SQUARE = ("square", "batch", "one")
ANY = tuple(SHAPES)
NORMS = ("tall", "wide")
CASES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "eigh": (lambda a: eigenvectors(L.eigh(a)), SQUARE),
    "eigh upper": (lambda a: eigenvectors(L.eigh(a, "U")), SQUARE),
    "eigvalsh": (L.eigvalsh, SQUARE),
    "eigvals": (L.eigvals, SQUARE),
    "eig": (lambda a: eigenvectors(L.eig(a)), SQUARE),
    "svd": (lambda a: singular_vectors(L.svd(a, full_matrices=False)), ANY),
    "svd full": (lambda a: singular_vectors(L.svd(a)), SQUARE),
    "svd projections": (projections, ("tall", "wide")),
    "svd hermitian": (lambda a: singular_vectors(L.svd(a, hermitian=True)), SQUARE),
    "svdvals": (lambda a: L.svd(a, compute_uv=False), ANY),
    "svdvals hermitian": (lambda a: L.svd(a, compute_uv=False, hermitian=True), SQUARE),
    "pinv": (L.pinv, ANY),
    "pinv hermitian": (lambda a: L.pinv(a, hermitian=True), SQUARE),
    "qr": (L.qr, ANY),
    "qr complete": (lambda a: L.qr(a, "complete"), ("square", "wide")),
    "qr r": (lambda a: L.qr(a, "r"), ANY),
    "qr projection": (qr_projection, ("tall",)),
    "solve": (lambda a: L.solve(a, a[..., :, :1]), SQUARE),
    "inv": (L.inv, SQUARE),
    "det": (L.det, SQUARE),
    "slogdet": (L.slogdet, SQUARE),
    "cholesky": (lambda a: L.cholesky(positive(a)), SQUARE),
    "cholesky upper": (lambda a: L.cholesky(positive(a), upper=True), SQUARE),
    "matrix_power": (lambda a: L.matrix_power(a, -3), SQUARE),
    "tensorinv": (lambda a: L.tensorinv(a, 1), ("square",)),
    "lstsq": (lambda a: [L.lstsq(a, a[:, :2] ** 2)[k] for k in (0, 1, 3)], ("square", "tall", "wide")),
    "lstsq vector": (lambda a: L.lstsq(a, a[:, 0] ** 2)[0], ("square", "tall", "wide")),
    **{
        f"norm {order}": (lambda a, order=order: L.norm(a, order, axis=(-2, -1)), NORMS)
        for order in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf)
    },
    **{
        f"cond {order}": (lambda a, order=order: L.cond(a, order), ("square", "batch"))
        for order in (None, -2, "fro", "nuc", 1, -1, np.inf, -np.inf)
    },
    **{
        f"vector norm {order}": (lambda a, order=order: L.norm(a, order, axis=-1), ("tall",))
        for order in (None, 2, 1, 3, 0.5, -1, np.inf, -np.inf)
    },
}


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize(("name", "shape"), [(name, shape) for name, (_, shapes) in CASES.items() for shape in shapes])
def test_values_and_derivatives(name, shape, kind, monkeypatch):
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")  # what is compiled is tested below
    check(CASES[name][0], separate(kind, *SHAPES[shape]))


def test_complex_results_of_real_matrices():
    a = np.array([[0.0, -2.0, 0.3], [1.0, 0.1, 0.2], [0.4, 0.2, 0.3]])
    check(L.eig, a)
    check(L.eigvals, a)


def test_large_matrices():
    """What is done in strips and blocks."""
    a = numbers("real", 210, 210) / 14
    check(lambda x: L.cholesky(x), positive(a))
    check(lambda x: L.inv(x), a + 2 * np.eye(210), order=1)
    spd = positive(a)
    direction = numbers("real", 210, 210)
    direction = direction + direction.T
    vectors = L.eigh(spd)[1]
    want = np.einsum("ki,kl,li->i", vectors, direction, vectors)
    for function in (L.eigvalsh, lambda x: L.eigh(x)[0]):
        np.testing.assert_allclose(nb.jvp(function, (spd,), (direction,))[1], want, atol=1e-9)
        g = nb.grad(lambda x, f=function: np.sum(f(x) ** 2))(spd)
        np.testing.assert_allclose(g + g.T - np.diag(np.diag(g)), (2 * spd) * (2 - np.eye(210)), atol=1e-9)


@pytest.mark.parametrize(("trans", "lower", "unit"), list(itertools.product("NTC", (False, True), (False, True))))
@pytest.mark.parametrize("n", [4, 150])
def test_triangular_systems(trans, lower, unit, n, monkeypatch):
    if n < 10:
        monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    for kind in ("real", "complex"):
        a, b = numbers(kind, n, n) / (2 * n**0.5) + 2 * np.eye(n), numbers(kind, n, 3 if n < 10 else 70)

        def function(x, y):
            return factorisations.solve_triangular(x, y, trans, lower, unit)

        def reference(x, y):
            return scipy.linalg.solve_triangular(x, y, trans, lower, unit)

        check(function, a, b, reference=reference, order=2 if n < 10 else 1)


# ----- LU and Cholesky as SciPy gives them -----


def _from_triangle(a: np.ndarray, lower: bool) -> np.ndarray:
    """The Hermitian matrix with a triangle of another matrix."""
    strict = np.tril(a, -1) if lower else np.triu(a, 1)
    return strict + adjoint(strict) + np.diag(np.real(np.diag(a)))


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_lu(kind, monkeypatch):
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    for shape in SHAPES.values():
        a = numbers(kind, *shape)
        check(lambda x: triangular_factors.lu(x)[1:], a, reference=lambda x: scipy.linalg.lu(x)[1:])
        for options in ({}, {"permute_l": True}, {"p_indices": True}):
            got, want = triangular_factors.lu(nb.Tensor(a), **options), scipy.linalg.lu(a, **options)
            for one, other in zip(got, want, strict=True):
                np.testing.assert_allclose(one.asnumpy(), other, atol=1e-12)
        if a.ndim == 2:
            got, want = triangular_factors.lu_factor(nb.Tensor(a)), scipy.linalg.lu_factor(a)
            np.testing.assert_allclose(got[0].asnumpy(), want[0], atol=1e-12)
            np.testing.assert_array_equal(got[1].asnumpy(), want[1])
    a, b = numbers(kind, 4, 4), numbers(kind, 4, 2)
    for trans in (0, 1, 2):
        check(
            lambda x, y, t=trans: triangular_factors.lu_solve(triangular_factors.lu_factor(x), y, t),
            a,
            b,
            reference=lambda x, y, t=trans: scipy.linalg.lu_solve(scipy.linalg.lu_factor(x), y, t),
        )
    for lower in (False, True):
        check(
            lambda x, y, low=lower: triangular_factors.cho_solve(triangular_factors.cho_factor(x, low), y),
            positive(a),
            b[:, 0],
            reference=lambda x, y, low=lower: L.solve(_from_triangle(x, low), y),
        )


# ----- Equal values, deficient rank -----


def test_functions_of_equal_eigenvalues():
    unit = np.eye(3)
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(L.eigvalsh(x)))(unit), unit, atol=1e-14)
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(L.eigh(x)[0] ** 3))(2 * unit), 12 * unit, atol=1e-13)
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(L.svd(x, compute_uv=False)))(unit), unit, atol=1e-14)
    # As JAX, PyTorch and TensorFlow; the nuclear norm, as every norm, has derivative 0 at 0.
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(L.svd(x, compute_uv=False)))(0 * unit), unit, atol=1e-14)
    for order in ("nuc", "fro", 2, 1):
        np.testing.assert_array_equal(nb.grad(lambda x, o=order: L.norm(x, o))(0 * unit), 0 * unit)
    np.testing.assert_allclose(nb.grad(lambda x: L.norm(x, "nuc"))(unit), unit, atol=1e-14)
    np.testing.assert_allclose(nb.grad(lambda x: L.norm(x, 2))(unit), unit / 3, atol=1e-14)


def test_a_projection_on_a_space_of_equal_eigenvalues():
    """The derivative of the projection P on the first two of 1, 1, 3 along E is P E Q / (1 - 3) and its adjoint."""
    q = L.qr(numbers("real", 3, 3))[0]
    a = q @ np.diag([1.0, 1.0, 3.0]) @ q.T
    direction = numbers("real", 3, 3)
    direction = direction + direction.T

    def projection(x):
        vectors = L.eigh(x)[1][:, :2]
        return vectors @ vectors.T

    p = projection(a)
    half = p @ direction @ (np.eye(3) - p) / (1 - 3)
    found = nb.jvp(projection, (a,), (direction,))[1]
    # One triangle is read; the direction is symmetric.
    np.testing.assert_allclose(found, half + half.T, atol=1e-12)
    weight = numbers("real", 3, 3)
    g = nb.grad(lambda x: np.sum(weight * projection(x)))(a)
    assert np.sum(g * direction) == pytest.approx(np.sum(weight * (half + half.T)), abs=1e-12)


def test_vectors_of_small_singular_values():
    """Values of 2e-9 and 1e-9 beside 1: their vectors turn as those of the small block alone."""
    u, v = L.qr(numbers("real", 3, 3))[0], L.qr(numbers("real", 3, 3, seed=5))[0]
    block, direction = np.diag([2.0, 1.0]), numbers("real", 2, 2)
    want_u, _, want_vh = nb.jvp(lambda x: tuple(L.svd(x)), (block,), (direction,))[1]
    whole, moved = np.zeros((3, 3)), np.zeros((3, 3))
    whole[0, 0], whole[1:, 1:], moved[1:, 1:] = 1.0, 1e-9 * block, 1e-9 * direction
    a, along = u @ whole @ v.T, u @ moved @ v.T
    vectors = L.svd(a)
    found_u, _, found_vh = nb.jvp(lambda x: tuple(L.svd(x)), (a,), (along,))[1]
    sign = np.sign((u.T @ vectors[0])[1:, 1:].diagonal()) * np.sign(L.svd(block)[0].diagonal())
    np.testing.assert_allclose((u.T @ found_u)[1:, 1:] * sign, want_u, atol=1e-6)
    np.testing.assert_allclose(((found_vh @ v)[1:, 1:].T * sign).T, want_vh, atol=1e-6)


def test_second_derivatives_with_equal_eigenvalues():
    """The sum of squares of the eigenvalues is that of the elements, whatever the eigenvalues are."""
    hessian = nb.hessian(lambda x: np.sum(L.eigvalsh((x + x.T) / 2) ** 2))(np.eye(3))
    symmetric = (np.einsum("ik,jl->ijkl", np.eye(3), np.eye(3)) + np.einsum("il,jk->ijkl", np.eye(3), np.eye(3))) / 2
    # Off the diagonal, equal eigenvalues have no second derivative alone; on it they do.
    for i, k in itertools.product(range(3), repeat=2):
        assert hessian[i, i, k, k] == pytest.approx(2 * symmetric[i, i, k, k])


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_deficient_rank(kind, monkeypatch):
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    left, right, sides = numbers(kind, 5, 2), numbers(kind, 2, 4), numbers(kind, 5)
    check(lambda p, q: L.pinv(p @ q, rcond=1e-9), left, right)
    check(lambda p, q, b: L.lstsq(p @ q, b, rcond=1e-9)[0], left, right, sides)
    a = left @ right
    agree(L.matrix_rank, a)
    agree(lambda x: L.lstsq(x, sides)[1:3], a)
    check(lambda p, q: L.norm(p @ q, "nuc"), left, right)
    monkeypatch.delenv("NBGRAD_DISABLE_JIT")
    assert [int(nb.jit(L.matrix_rank)(x)) for x in (a, a[:, :1], 0 * a)] == [2, 1, 0]


def test_ranks():
    for a in (np.zeros(3), np.array([0.0, 1.0]), np.array(2.0), np.zeros((2, 0)), np.eye(3)[:2], np.ones((2, 3, 3))):
        assert np.array_equal(L.matrix_rank(nb.Tensor(a)).asnumpy(), L.matrix_rank(a))
    tolerances = {"tol": 1.5, "rtol": 0.6}
    for name, value in tolerances.items():
        agree(L.matrix_rank, np.diag([1.0, 2.0, 3.0]), **{name: value})
    agree(L.matrix_rank, np.diag([1.0, -2.0, 3.0]), hermitian=True)
    with pytest.raises(ArgumentError, match="tol or rtol"):
        L.matrix_rank(nb.Tensor(np.eye(2)), tol=1.0, rtol=1.0)


def test_bounds_of_pseudo_inverses():
    a = np.diag([1.0, 1e-3, 1e-17])
    for options in ({"rcond": 1e-2}, {"rtol": 1e-2}, {"rtol": None}, {}, {"rcond": np.array(1e-4)}):
        agree(L.pinv, a, **options)
    agree(L.pinv, np.stack([a, a]), rcond=np.array([1e-2, 1e-4]))
    with pytest.raises(ArgumentError, match="not both"):
        L.pinv(nb.Tensor(a), rcond=1e-2, rtol=1e-2)


def test_condition_of_singular_matrices():
    for order in (None, 1, "fro", np.inf):
        agree(L.cond, np.ones((2, 2)) if order else np.diag([1.0, 0.0]), order)
    with pytest.raises(L.LinAlgError, match="elements"):
        L.cond(nb.Tensor(np.zeros((0, 0))))
    agree(L.cond, np.array([[np.nan, 1.0], [0.0, 1.0]]), 1)


# ----- Dtypes, shapes, transforms -----

VALUES = {
    "eigvalsh": L.eigvalsh,
    "eigh": lambda a: np.abs(L.eigh(a)[1]),
    "svd": lambda a: [np.abs(part) for part in L.svd(a)],
    "svdvals": L.svdvals,
    "pinv": L.pinv,
    "qr": L.qr,
    "inv": L.inv,
    "cond": L.cond,
    "matrix_rank": L.matrix_rank,
    "matrix_norm": L.matrix_norm,
    "vector_norm": L.vector_norm,
    "matrix_transpose": L.matrix_transpose,
    "diagonal": L.diagonal,
    "trace": L.trace,
    "det": L.det,
    "slogdet": L.slogdet,
    "eig": lambda a: [np.sort(np.abs(L.eig(a)[0])), np.abs(L.eigvals(a)).sum(-1)],
}


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "complex128"])
@pytest.mark.parametrize("name", VALUES)
def test_dtypes_and_batches(name, dtype):
    for shape in ((3, 3), (2, 4, 2, 2), (0, 3, 3)):
        a = (numbers("complex", *shape) + 2 * np.eye(shape[-1])).astype(dtype) if "c" in dtype else None
        a = (numbers("real", *shape) + 2 * np.eye(shape[-1])).astype(dtype) if a is None else a
        agree(VALUES[name], a, tolerance=1e-4 if dtype in ("float32", "complex64") else 1e-10)


def test_half_precision():
    """NumPy refuses float16 here; we compute in float32 and round."""
    a = np.array([[2.0, 1.0], [1.0, 3.0]], np.float16)
    for function in (L.eigvalsh, L.svdvals, L.pinv, lambda x: L.qr(x)[1], lambda x: L.eigh(x).eigenvectors, L.cond):
        got = function(nb.Tensor(a))
        assert got.dtype == np.float16
        np.testing.assert_allclose(got.asnumpy(), function(a.astype(float)), rtol=3e-3, atol=3e-3)
        assert nb.grad(lambda x, f=function: np.sum(f(x)))(a).dtype == np.float16
    real = np.linalg.eigvals(a.astype(np.float32)).dtype.kind == "f"  # NumPy before 2.5
    assert L.eigvals(nb.Tensor(a)).dtype == (np.float16 if real else np.complex64)
    assert L.eigvals(nb.Tensor(np.array([[0, 1], [-1, 0]], np.float16))).dtype == np.complex64


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3), (3, 0), (0, 2, 2)])
def test_empty_matrices(shape):
    a = np.zeros(shape)
    functions = [lambda x: L.svd(x), L.svdvals, L.qr]
    if shape[-1] == shape[-2]:
        functions += [L.eigh, L.eigvalsh, L.inv, L.det, L.eig]
    for function in functions:
        agree(function, a)
        g = nb.grad(lambda x, f=function: sum(np.sum(part) for part in _parts(f(x))))(a)
        assert g.shape == shape


def _parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", ["eigvalsh", "eigh", "svd", "svdvals", "pinv", "qr", "cond", "matrix_rank"])
def test_transforms(name):
    many = numbers("real", 4, 3, 3)
    function = VALUES[name]
    one_by_one = [_parts_of(function(nb.Tensor(a))) for a in many]
    at_once = _parts_of(nb.vmap(function)(many))
    for k, part in enumerate(at_once):
        np.testing.assert_allclose(np.asarray(part), np.stack([np.asarray(found[k]) for found in one_by_one]))
    if name == "matrix_rank":
        return

    def total(a):
        return sum(np.sum(part**2 * np.arange(1, part.size + 1).reshape(part.shape)) for part in _parts_of(function(a)))

    want = np.stack([nb.grad(total)(a) for a in many])
    np.testing.assert_allclose(nb.jit(nb.vmap(nb.grad(total)))(many), want, rtol=1e-9, atol=1e-11)
    hessian = nb.jit(nb.hessian(total))(many[0])
    np.testing.assert_allclose(hessian, nb.jacfwd(nb.grad(total))(many[0]), rtol=1e-8, atol=1e-9)


def _parts_of(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


def test_eigenvalues_of_real_matrices_are_real_where_numpys_are():
    real, turning = np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([[0.0, 1.0], [-1.0, 0.0]])
    compiled = nb.jit(L.eigvals)
    for a in (real, turning, real):
        for function in (L.eigvals, compiled):
            got = function(nb.Tensor(a))
            assert got.dtype == L.eigvals(a).dtype
            np.testing.assert_allclose(got.asnumpy(), L.eigvals(a), atol=1e-15)
    assert nb.vmap(L.eigvals)(np.stack([real, turning])).dtype == np.complex128


def test_least_squares_under_vmap():
    a, b = numbers("real", 3, 5, 2), numbers("real", 3, 5)
    want = np.stack([L.lstsq(x, y)[0] for x, y in zip(a, b, strict=True)])
    np.testing.assert_allclose(nb.vmap(lambda x, y: L.lstsq(x, y)[0])(a, b), want, rtol=1e-10)
    deficient = np.ones((2, 3, 2))
    with pytest.raises(MatrixError, match="full rank"):
        nb.vmap(lambda x, y: L.lstsq(x, y)[0])(deficient, np.ones((2, 3)))


def test_results_have_names():
    a = nb.Tensor(np.eye(2))
    assert L.eigh(a)._fields == L.eigh(np.eye(2))._fields
    assert L.eig(a)._fields == L.eig(np.eye(2))._fields
    assert L.svd(a)._fields == L.svd(np.eye(2))._fields
    assert L.qr(a)._fields == L.qr(np.eye(2))._fields
    assert L.slogdet(a)._fields == L.slogdet(np.eye(2))._fields


def test_all_names_of_numpy_linalg_are_there():
    public = {name for name in dir(L) if not name.startswith("_") and callable(getattr(L, name))} - {"test"}
    assert public == set(linalg.__all__)
    assert dropped_in.linalg.svd is linalg.svd


# ----- Errors -----


def test_errors():
    a = nb.Tensor(np.ones((2, 3)))
    for function in (L.eigh, L.eigvalsh, L.eig, L.eigvals, lambda x: L.cond(x, 1)):
        with pytest.raises(ShapeError, match="square"):
            function(a)
    for function in (L.svd, L.svdvals, L.pinv, L.qr):
        with pytest.raises(ShapeError, match="matrices"):
            function(a[0])
    with pytest.raises(ArgumentError, match="reflections"):
        L.qr(a, "raw")
    with pytest.raises(ArgumentError, match="'economy'"):
        L.qr(a, "economy")
    with pytest.raises(ArgumentError, match="UPLO"):
        L.eigh(a[:, :2], "M")
    with pytest.raises(ShapeError, match="as many rows"):
        L.lstsq(a, np.ones(3))
    with pytest.raises(ShapeError, match="unknowns"):
        L.tensorsolve(a, np.ones(2))
    with pytest.raises(ArgumentError, match="positive"):
        L.tensorinv(a, 0)
    with pytest.raises(ShapeError, match="as many elements"):
        L.tensorinv(a, 1)
    with pytest.raises(ShapeError, match="one axis or two"):
        L.norm(nb.Tensor(np.ones((2, 2, 2))), 2)
    with pytest.raises(MatrixError):
        L.eigvals(nb.Tensor(np.array([[np.nan, 1.0], [0.0, 1.0]])))


def test_tensor_systems():
    check(L.tensorsolve, numbers("complex", 2, 3, 6), numbers("complex", 2, 3))
    agree(L.tensorsolve, numbers("real", 3, 2, 6).transpose(2, 0, 1), numbers("real", 3, 2), axes=(0,))
    check(L.tensorinv, numbers("real", 2, 3, 3, 2))


def test_cotangents_are_taken_apart():
    """Pieces that are zero by construction are found, so that nothing is computed for them."""
    first, second = constant(np.ones((2, 3))), constant(np.full((2, 4), 2.0))
    nothing = zeros((2, 4), first.dtype)
    sizes = [3, 4]
    assert pieces_of(concatenate([first, second], 1), sizes) == [first, second]
    assert pieces_of(concatenate([first, nothing], 1), sizes) == [first, None]
    assert pieces_of(pad(second, [(0, 0), (3, 0)]), sizes) == [None, second]
    both = pad(first, [(0, 0), (0, 4)]) + pad(second, [(0, 0), (3, 0)])
    assert pieces_of(both, sizes) == [first, second]
    assert pieces_of(literal(0.0, first.dtype), []) == []
    whole = constant(np.arange(14.0).reshape(2, 7))
    assert [part.shape for part in pieces_of(whole, sizes) if part is not None] == [(2, 3), (2, 4)]
    found = pieces_of(pair(concatenate([first, nothing], 1), pad(second, [(0, 0), (3, 0)])), sizes)
    assert [part is None for part in found] == [False, False]
