"""Exponentials, logarithms and roots of matrices, and Sylvester's equation, agree with SciPy and with closed forms."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.linalg

import nbgrad as nb
from nbgrad.errors import ShapeError
from nbgrad.functions.linalg.matrix_batches import MatrixError
from nbgrad.functions.linalg.matrix_functions import expm, logm, solve_sylvester, sqrtm

from .plane import check

pytestmark = pytest.mark.unoptimized


def numbers(kind: str, *shape: int) -> np.ndarray:
    """Random numbers, real or complex."""
    rng = np.random.default_rng([9, *shape])
    found = rng.normal(size=shape)
    return found + 1j * rng.normal(size=shape) if kind == "complex" else found


def near_unit(kind: str, *shape: int) -> np.ndarray:
    """Matrices whose logarithm and square root exist."""
    return 3 * np.eye(shape[-1]) + 0.4 * numbers(kind, *shape)


def each(function):
    """SciPy's function of one matrix for a batch, whatever the release of SciPy."""

    def batched(a):
        flat = [function(matrix) for matrix in a.reshape(-1, *a.shape[-2:])]
        return np.stack(flat).reshape(a.shape)

    return batched


FUNCTIONS = {
    "expm": (expm, each(scipy.linalg.expm), numbers),
    "logm": (logm, each(scipy.linalg.logm), near_unit),
    "sqrtm": (sqrtm, each(scipy.linalg.sqrtm), near_unit),
}


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives(name, kind, monkeypatch):
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    function, reference, inputs = FUNCTIONS[name]
    for shape in ((3, 3), (2, 3, 3), (1, 1), (2, 1, 2, 2)):
        check(function, inputs(kind, *shape), reference=reference)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_third_derivatives(name):
    function, _, inputs = FUNCTIONS[name]
    nb.check_grads(function, (inputs("real", 2, 2),), order=3)


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_sylvester(kind, monkeypatch):
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    a, b, q = near_unit(kind, 3, 3), near_unit(kind, 2, 2), numbers(kind, 3, 2)
    check(solve_sylvester, a, b, q, reference=scipy.linalg.solve_sylvester)
    many = solve_sylvester(nb.Tensor(np.stack([a, 2 * a])), b, q).asnumpy()
    np.testing.assert_allclose(many[1], scipy.linalg.solve_sylvester(2 * a, b, q), rtol=1e-12)


def test_frechet_derivatives_of_the_exponential():
    """SciPy's Frechet derivative, and the closed form for a direction that commutes with the matrix."""
    a, e = numbers("real", 4, 4), numbers("real", 4, 4)[::-1].copy()
    found = nb.jvp(expm, (a,), (e,))[1]
    np.testing.assert_allclose(found, scipy.linalg.expm_frechet(a, e, compute_expm=False), rtol=1e-11)
    np.testing.assert_allclose(nb.jvp(expm, (a,), (a @ a,))[1], a @ a @ scipy.linalg.expm(a), rtol=1e-10, atol=1e-10)
    # A direction of any size, because the derivative is linear.
    np.testing.assert_allclose(nb.jvp(expm, (a,), (1e8 * e,))[1], 1e8 * np.asarray(found), rtol=1e-10)
    np.testing.assert_allclose(nb.jvp(logm, (near_unit("real", 3, 3),), (1e8 * np.eye(3),))[1],
                               1e8 * np.linalg.inv(near_unit("real", 3, 3)), rtol=1e-9)  # fmt: skip


def test_derivative_of_a_root_of_equal_eigenvalues():
    """Where eigenvectors have no derivative, the square root has: half of the direction for the unit matrix."""
    e = numbers("real", 3, 3)
    np.testing.assert_allclose(nb.jvp(sqrtm, (np.eye(3),), (e,))[1], e / 2, atol=1e-14)
    np.testing.assert_allclose(nb.jvp(logm, (np.eye(3),), (e,))[1], e, atol=1e-14)
    np.testing.assert_allclose(nb.jvp(expm, (np.zeros((3, 3)),), (e,))[1], e, atol=1e-14)


def test_gradient_of_a_determinant_of_an_exponential():
    """det(expm(A)) = exp(trace(A)), whose gradient is that times the unit matrix."""
    a = numbers("real", 3, 3)
    g = nb.jit(nb.grad(lambda x: np.linalg.det(expm(x))))(a)
    np.testing.assert_allclose(g, np.exp(np.trace(a)) * np.eye(3), rtol=1e-10, atol=1e-12)


def test_an_exponential_in_high_precision():
    a = np.array([[1.0, -3.0], [0.25, 2.0]])
    with mpmath.workdps(40):
        want = np.array(mpmath.expm(mpmath.matrix(a.tolist())).tolist(), dtype=float)
    np.testing.assert_allclose(expm(nb.Tensor(a)).asnumpy(), want, rtol=1e-14)


def test_dtypes_batches_and_compiled_code():
    for dtype, tolerance in (("float16", 2e-3), ("float32", 1e-5), ("complex64", 1e-5), ("complex128", 1e-12)):
        a = near_unit("complex" if "c" in dtype else "real", 2, 3, 3).astype(dtype)
        for name, (function, reference, _) in FUNCTIONS.items():
            got = function(nb.Tensor(a)).asnumpy()
            assert got.dtype == dtype, name
            want = reference(a.astype(np.result_type(dtype, float)))
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    a = near_unit("real", 4, 3, 3)
    for function in (expm, logm, sqrtm):
        want = np.stack([nb.grad(lambda x, f=function: np.sum(f(x) ** 2))(x) for x in a])
        found = nb.jit(nb.vmap(nb.grad(lambda x, f=function: np.sum(f(x) ** 2))))(a)
        np.testing.assert_allclose(found, want, rtol=1e-10)
        for shape in ((0, 0), (0, 2, 2)):
            assert function(nb.Tensor(np.zeros(shape))).shape == shape


def test_what_is_refused():
    turned = np.diag([-1.0, 1.0])
    for function, name in ((logm, "log"), (sqrtm, "sqrt")):
        with pytest.raises(MatrixError, match=f"{name} is complex.*complex128"):
            function(nb.Tensor(turned)).asnumpy()
        assert function(nb.Tensor(turned.astype(complex))).asnumpy()[0, 0].imag != 0
    for function in (expm, logm, sqrtm):
        with pytest.raises(ShapeError, match="square"):
            function(nb.Tensor(np.ones((2, 3))))
    with pytest.raises(ShapeError, match="shape"):
        solve_sylvester(np.eye(2), np.eye(3), np.ones((3, 2)))
