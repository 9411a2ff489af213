"""scipy.sparse matrices as constants in recorded functions: values and derivatives against dense NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import nbgrad as nb
from nbgrad.errors import DtypeError, NbgradError, ShapeError, TracedValueError

pytestmark = pytest.mark.unoptimized(but=16)

FORMATS = ["csr", "csc", "coo", "dia", "lil", "dok", "bsr"]
KINDS = [f"{form}_{kind}" for form in FORMATS for kind in ("array", "matrix")]
DENSE = np.array(
    [[1.0, 0.0, -2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.5, 3.0, 0.0, 0.0], [0.0, 0.0, 4.0, -1.0], [2.0, 0, 0, 1]]
)
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "A @ x": lambda A, x: A @ x,
    "A.dot(x)": lambda A, x: A.dot(x) if scipy.sparse.issparse(A) else A @ x,
    "x @ A.T": lambda A, x: x @ A.T,
    "A.T @ (A @ x)": lambda A, x: A.T @ (A @ x),
    "nonlinear": lambda A, x: np.sin(x) * (A.T @ np.exp(A @ x / 4)),
    "A @ X": lambda A, x: A @ np.stack([x, x**2, np.sin(x)], axis=1),
    "X @ A.T": lambda A, x: np.stack([x, x**2]) @ A.T,
    "A + x": lambda A, x: (A + x) * x,
    "x - A": lambda A, x: x - A,
}
"""Expressions that mean the same for a dense and a sparse A."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_products_are_those_of_dense_matrices(kind: str, form: str) -> None:
    matrix, fn = getattr(scipy.sparse, kind)(DENSE), FORMS[form]
    x = np.array([0.5, -1.0, 2.0, 0.25])
    expected = fn(DENSE, x)
    derivative = nb.jacfwd(lambda x: fn(DENSE, x))(x)
    for value in (nb.jit(lambda x: fn(matrix, x))(x), fn(matrix, nb.Tensor(x)).asnumpy()):
        assert value.shape == expected.shape and value.dtype == np.float64
        np.testing.assert_allclose(value, expected, rtol=1e-14, atol=1e-15)
    for jacobian in (nb.jacfwd, nb.jacrev):
        np.testing.assert_allclose(jacobian(lambda x: fn(matrix, x))(x), derivative, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_the_older_kind_multiplies_matrices_by_a_star(kind: str) -> None:
    matrix = getattr(scipy.sparse, kind)(DENSE)
    x = np.array([0.5, -1.0, 2.0, 0.25])
    if kind.endswith("matrix"):
        np.testing.assert_allclose(nb.jacrev(lambda x: matrix * x)(x), DENSE)
        np.testing.assert_allclose(nb.jacrev(lambda x: x * matrix.T)(x), DENSE)
        np.testing.assert_allclose(nb.jacrev(lambda x: matrix * x[:, None])(x)[:, 0], DENSE)
    else:
        with pytest.raises(NbgradError):
            nb.jacrev(lambda x: matrix * x)(x)
        with pytest.raises(NbgradError, match="sparse array is a constant here"):
            nb.jacrev(lambda x: x * matrix)(x)


def test_second_derivatives_and_check() -> None:
    matrix = scipy.sparse.csr_array(DENSE)
    x = np.array([0.5, -1.0, 2.0, 0.25])

    def energy(x: Any) -> Any:
        return np.sum((matrix @ x) ** 2) / 2

    np.testing.assert_allclose(nb.grad(energy)(x), DENSE.T @ DENSE @ x, rtol=1e-14)
    np.testing.assert_allclose(nb.hessian(energy)(x), DENSE.T @ DENSE, rtol=1e-14)
    np.testing.assert_allclose(nb.hvp(energy, x, np.ones(4)), DENSE.T @ DENSE @ np.ones(4), rtol=1e-14)
    nb.check_grads(lambda x: np.tanh(matrix @ x) @ matrix, (x,))


def test_patterns_go_through_products() -> None:
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.csr_array(rng.standard_normal((200, 300)) * (rng.random((200, 300)) < 0.01))
    jacobian = nb.sparse_jacobian(lambda x: matrix @ np.sin(x))
    x = np.linspace(0, 1, 300)
    assert jacobian(x).nnz == matrix.nnz
    np.testing.assert_allclose(jacobian(x).toarray(), matrix.toarray() * np.cos(x), rtol=1e-14)


@pytest.mark.parametrize("of_matrix", ["float64", "float32", "int64", "bool", "complex128"])
@pytest.mark.parametrize("of_vector", ["float64", "float32", "int32", "bool", "complex64"])
def test_dtypes_are_those_of_numpy(of_matrix: str, of_vector: str) -> None:
    dense = DENSE.astype(of_matrix)
    matrix = scipy.sparse.csr_array(dense)
    x = np.array([0.5, -1.0, 2.0, 0.0]).astype(of_vector)
    expected, found = dense @ x, nb.jit(lambda x: matrix @ x)(x)
    assert found.dtype == expected.dtype == (matrix @ x).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_half_precision_is_added_in_single() -> None:
    matrix = scipy.sparse.csr_array(np.ones((1, 4096), np.float32))
    x = np.ones(4096, np.float16)
    assert nb.jit(lambda x: matrix @ x)(x)[0] == 4096.0


def test_one_dimensional_arrays_and_empty_ones() -> None:
    row = scipy.sparse.coo_array(np.array([1.0, 0.0, 3.0]))
    x = np.array([2.0, 3.0, 4.0])
    value, slope = nb.value_and_grad(lambda x: row @ x)(x)
    assert value == 14.0 and slope.tolist() == [1.0, 0.0, 3.0]
    assert nb.grad(lambda x: x @ row)(x).tolist() == [1.0, 0.0, 3.0]
    empty = scipy.sparse.csr_array((3, 0))
    assert nb.jit(lambda x: empty @ x)(np.zeros(0)).tolist() == [0.0, 0.0, 0.0]
    assert nb.jit(lambda x: empty.T @ x)(np.ones(3)).shape == (0,)


def test_duplicates_are_added() -> None:
    matrix = scipy.sparse.coo_array((np.array([1.0, 2.0]), ([0, 0], [1, 1])), shape=(2, 2))
    assert nb.grad(lambda x: np.sum(matrix @ x))(np.ones(2)).tolist() == [0.0, 3.0]


def test_a_matrix_that_is_changed_later_does_not_change_what_was_recorded() -> None:
    matrix = scipy.sparse.csr_array(DENSE)
    x = nb.Tensor(np.ones(4))
    product = matrix @ x
    matrix.data[:] = 0.0
    np.testing.assert_array_equal(np.asarray(product), DENSE @ np.ones(4))


def test_values_are_taken_where_nothing_is_recorded() -> None:
    x: Any = nb.Tensor(np.array([0.5, -1.0, 2.0, 0.25]))
    np.testing.assert_array_equal(scipy.sparse.csr_array(x[None]).toarray(), x.asnumpy()[None])


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda A, x: A.multiply(x), NbgradError, "."),  # older versions of SciPy get to another error
        (lambda A, x: A / x, NbgradError, "sparse array is a constant here"),
        (lambda A, x: x[0] * A, DtypeError, "a multiple as t"),
        (lambda A, x: x / A, DtypeError, "numpy.divide does not work on a csr_array"),
        (lambda A, x: x > A, DtypeError, "numpy.greater"),
        (lambda A, x: A @ x[:3], ShapeError, r"\(5, 4\) cannot be multiplied with a Tensor of shape \(3,\)"),
        (lambda A, x: x @ A, ShapeError, r"shape \(4,\) cannot be multiplied"),
        (lambda A, x: A @ x[0], ShapeError, r"shape \(\)"),
        (lambda A, x: scipy.sparse.csr_array(x[None]), TracedValueError, "plain ndarray"),
        (lambda A, x: A[:4] + scipy.sparse.dia_array(x[None]), TracedValueError, "plain ndarray"),
    ],
)
def test_what_would_be_sparse_is_refused(call: Callable[..., Any], error: type[Exception], said: str) -> None:
    matrix = scipy.sparse.csr_array(DENSE)
    with pytest.raises(error, match=said):
        nb.grad(lambda x: np.sum(call(matrix, x)))(np.ones(4))


def test_sparse_arguments_are_refused_with_advice() -> None:
    matrix, x = scipy.sparse.csr_array(DENSE), np.ones(4)
    for transform in (nb.jit, lambda f: nb.sparse_jacobian(f, 1), lambda f: nb.grad(f, 0)):
        with pytest.raises(DtypeError, match=r"lambda x: f\(A, x\)"):
            transform(lambda A, x: np.sum(A @ x))(matrix, x)
    np.testing.assert_allclose(nb.grad(lambda A, x: np.sum(A @ x), 1)(matrix, x), DENSE.sum(axis=0))


def test_complex_products() -> None:
    dense = DENSE * (1 + 2j)
    z = np.array([1 + 1j, 2 - 1j, 0.5j, 3.0])
    for matrix, reference in ((scipy.sparse.csr_array(dense), dense), (scipy.sparse.csr_array(DENSE), DENSE)):
        np.testing.assert_allclose(nb.jit(lambda z, A=matrix: A @ z)(z), reference @ z, rtol=1e-14)
        for jacobian in (nb.jacfwd, nb.jacrev):
            found = jacobian(lambda z, A=matrix: A @ z, holomorphic=True)(z)
            np.testing.assert_allclose(found, reference, rtol=1e-14)
        gradient = nb.grad(lambda z, A=matrix: np.sum(np.abs(A @ z) ** 2))(z)
        np.testing.assert_allclose(gradient, 2 * reference.conj().T @ reference @ z, rtol=1e-13)
