"""Functions of matrices and transforms in `nb.ops`: MindSpore's names and order of results, SciPy's values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import scipy.linalg

import nbgrad as nb
from nbgrad import ops
from nbgrad.errors import ArgumentError, ShapeError

from .plane import check

pytestmark = pytest.mark.unoptimized


def numbers(kind: str, *shape: int) -> np.ndarray:
    """Random numbers, real or complex."""
    rng = np.random.default_rng([13, *shape])
    found = rng.normal(size=shape)
    return found + 1j * rng.normal(size=shape) if kind == "complex" else found


KINDS = pytest.mark.parametrize("kind", ["real", "complex"])


@KINDS
def test_decompositions(kind):
    a = numbers(kind, 4, 3)
    s, u, v = (part.asnumpy() for part in ops.svd(nb.Tensor(a)))
    np.testing.assert_allclose(u @ np.diag(s) @ v.conj().T, a, atol=1e-12)
    np.testing.assert_allclose(ops.svd(nb.Tensor(a), compute_uv=False).asnumpy(), s)
    assert [part.shape for part in ops.svd(nb.Tensor(a), True)] == [(3,), (4, 4), (3, 3)]
    q, r = (part.asnumpy() for part in ops.qr(nb.Tensor(a)))
    np.testing.assert_allclose(q @ r, a, atol=1e-12)
    square = a[:3] + 2 * np.diag([1, 2, 4])
    values, vectors = (part.asnumpy() for part in ops.eig(nb.Tensor(square)))
    assert values.dtype == vectors.dtype == ops.eigvals(nb.Tensor(square)).dtype == np.complex128
    np.testing.assert_allclose(square @ vectors, vectors * values, atol=1e-12)
    np.testing.assert_allclose(ops.matrix_exp(nb.Tensor(square)).asnumpy(), scipy.linalg.expm(square))
    np.testing.assert_allclose(ops.cond(nb.Tensor(square)).asnumpy(), np.linalg.cond(square))
    with pytest.raises(ArgumentError, match="mode"):
        ops.qr(nb.Tensor(a), "r")


@KINDS
def test_pseudo_inverses(kind):
    a = np.diag([2.0, 0.1, 1e-3]).astype(numbers(kind, 1).dtype)
    for options, want in (
        ({}, [0.5, 10, 1000]),
        ({"atol": 0.01}, [0.5, 10, 0]),
        ({"rtol": 0.06}, [0.5, 0, 0]),
        ({"atol": 0.01, "rtol": 0.06}, [0.5, 0, 0]),
    ):
        np.testing.assert_allclose(ops.pinv(nb.Tensor(a), **options).asnumpy(), np.diag(want), atol=1e-12)
    check(lambda x: ops.pinv(x, atol=1e-9), numbers(kind, 4, 3), reference=np.linalg.pinv)


def test_logarithms_of_determinants():
    a = np.stack([np.diag([2.0, 3.0]), np.diag([-2.0, 3.0])])
    np.testing.assert_allclose(ops.logdet(nb.Tensor(a)).asnumpy(), [np.log(6), np.nan])
    np.testing.assert_allclose(ops.logdet(nb.Tensor(a + 0j)).asnumpy(), np.log([6 + 0j, -6 + 0j]))
    spd = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(nb.grad(ops.logdet)(spd), np.linalg.inv(spd).T, rtol=1e-12)


@KINDS
def test_reflections(kind, monkeypatch):
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    (geqrf, form, multiply) = scipy.linalg.get_lapack_funcs(
        ("geqrf", "ungqr" if kind == "complex" else "orgqr", "unmqr" if kind == "complex" else "ormqr"),
        (numbers(kind, 1),),
    )
    a, other = numbers(kind, 5, 3), numbers(kind, 5, 2)
    packed, tau, *_ = geqrf(a)
    check(ops.orgqr, packed, tau, reference=lambda h, t: form(h, t)[0])
    letter = "C" if kind == "complex" else "T"
    for left in (True, False):
        for transpose in (False, True):
            side, operand = ("L", other) if left else ("R", other.T.copy())
            check(
                lambda h, t, x, left=left, transpose=transpose: ops.ormqr(h, t, x, left, transpose),
                packed,
                tau,
                operand,
                reference=lambda h, t, x, side=side, transpose=transpose: multiply(
                    side, letter if transpose else "N", h, t, x, 1000
                )[0],
                order=1,
            )
    with pytest.raises(ShapeError, match="reflections"):
        ops.orgqr(nb.Tensor(packed), np.ones(4))
    with pytest.raises(ShapeError, match="5 rows"):
        ops.ormqr(nb.Tensor(packed), tau, np.ones((3, 2)))


@KINDS
def test_special_matrices(kind, monkeypatch):
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    a, b, c = numbers(kind, 2, 3), numbers(kind, 2), numbers(kind, 1, 1)
    check(ops.block_diag, a, b, c, reference=scipy.linalg.block_diag)
    column, row = numbers(kind, 4), numbers(kind, 3)
    check(ops.toeplitz, column, row, reference=scipy.linalg.toeplitz)
    check(ops.toeplitz, column, reference=scipy.linalg.toeplitz)
    check(ops.toeplitz, column[:1], reference=scipy.linalg.toeplitz)
    with pytest.raises(ShapeError, match="vector"):
        ops.toeplitz(nb.Tensor(a))
    with pytest.raises(ShapeError, match="matrices"):
        ops.block_diag(nb.Tensor(np.ones((1, 1, 1))))


TRANSFORMS = (
    "fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn hfftn ihfftn fft2 ifft2 rfft2 irfft2 hfft2 ihfft2".split()
)


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name, norm, monkeypatch):
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    a = numbers("real" if name.startswith(("rfft", "ihfft")) else "complex", 3, 4)
    ours, theirs = getattr(ops, name), getattr(scipy.fft, name)
    check(lambda x: ours(x, norm=norm), a, reference=lambda x: theirs(x, norm=norm), order=1)
    if name.endswith("fft"):
        check(lambda x: ours(x, 5, dim=0), a, reference=lambda x: theirs(x, 5, axis=0), order=1)
    else:
        check(lambda x: ours(x, (2, 5), dim=(1, 0)), a, reference=lambda x: theirs(x, (2, 5), axes=(1, 0)), order=1)


def test_frequencies():
    np.testing.assert_allclose(ops.fftfreq(5, 0.5).asnumpy(), np.fft.fftfreq(5, 0.5), rtol=1e-6)
    assert ops.rfftfreq(5).dtype == np.float32
    assert ops.rfftfreq(5, dtype=nb.float64).dtype == np.float64
    x = numbers("real", 5)
    np.testing.assert_array_equal(ops.ifftshift(ops.fftshift(nb.Tensor(x))).asnumpy(), x)


def test_names_of_scipy():
    for name in "eigh eigvalsh solve_triangular expm logm sqrtm solve_sylvester lu lu_factor cho_factor".split():
        assert getattr(ops, name).__name__ == name
