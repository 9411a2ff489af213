"""Products with unit vectors: Jacobians against formulas on paper, and the graphs that they leave."""

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.graph.ir import topological

pytestmark = pytest.mark.unoptimized(but=16)

RNG = np.random.default_rng(5)
X = RNG.standard_normal((4, 3))
A = RNG.standard_normal((5, 4))
S = RNG.standard_normal((2, 4, 3))
V = RNG.standard_normal(4)
EYE = np.eye(20)

# name, function, point, its Jacobian by NumPy, whether a matrix product or a sum remains in reverse and in forward mode
CASES = [
    ("matrix times vector", lambda x: A @ x, V, A, (0, 0)),
    ("scaled rows", lambda x: np.tanh(A @ x), V, A * (1 - np.tanh(A @ V) ** 2)[:, None], (1, 1)),
    ("left factor", lambda a: a @ X, A, np.einsum("ik,lj->ijkl", np.eye(5), X), (0, 0)),
    ("right factor", lambda x: A @ x, X, np.einsum("ik,jl->ijkl", A, np.eye(3)), (0, 0)),
    ("batch", lambda s: A @ s, S, np.einsum("ab,ik,jl->aijbkl", np.eye(2), A, np.eye(3)), (0, 0)),
    ("shared factor", lambda a: a @ S, A, np.einsum("ik,alj->aijkl", np.eye(5), S), (1, 0)),
    ("row sums", lambda x: np.sum(x * x, axis=1), X, 2 * np.einsum("ik,kl->ikl", np.eye(4), X), (0, 0)),
    (
        "outer product",
        lambda x: x[:, None] * x,
        V,
        EYE[:4, None, :4] * V[:, None] + V[:, None, None] * EYE[:4, :4],
        (0, 0),
    ),
    ("transpose", lambda x: x.T, X, np.einsum("il,jk->ijkl", np.eye(3), np.eye(4)), (0, 0)),
    ("empty", lambda x: A[:, :0] @ x, X[:0], np.zeros((5, 3, 0, 3)), (0, 0)),
]


@pytest.mark.parametrize("transform", [nb.jacrev, nb.jacfwd])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("function", "point", "expected", "left"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_jacobians(transform, dtype, function, point, expected, left):
    compiled = nb.jit(transform(function))
    found = compiled(point.astype(dtype))
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype is np.float32 else 1e-12, atol=1e-6)
    names = [node.name for node in topological(compiled.programs()[0].graph)]
    assert ("matmul" in names or "sum" in names) == bool(left[transform is nb.jacfwd])


def test_hessian_of_a_quadratic_form():
    q = A.T @ A
    compiled = nb.jit(nb.hessian(lambda x: x @ q @ x / 2))
    np.testing.assert_allclose(compiled(V), q, rtol=1e-12)
    assert "matmul" not in [node.name for node in topological(compiled.programs()[0].graph)]


def test_hessian_of_rows():
    # log of a sum of exponentials: diag(p) - p p', by rows.
    def f(x):
        return np.sum(np.log(np.sum(np.exp(x), axis=1)))

    p = np.exp(X) / np.sum(np.exp(X), axis=1, keepdims=True)
    expected = np.zeros((4, 3, 4, 3))
    for i in range(4):
        expected[i, :, i] = np.diag(p[i]) - np.outer(p[i], p[i])
    np.testing.assert_allclose(nb.jit(nb.hessian(f))(X), expected, atol=1e-14)


def test_zeros_of_unit_vectors_are_exact():
    a = np.array([[1.0, np.inf], [2.0, 3.0]])
    for transform in (nb.jacrev, nb.jacfwd):
        np.testing.assert_array_equal(nb.jit(transform(lambda x: a @ x))(np.ones(2)), a)


def test_identities_of_the_user_are_multiplied():
    # NumPy's rule: 0 * inf is NaN.
    a = np.array([[1.0, np.inf], [2.0, 3.0]])
    found = nb.jit(lambda v: nb.numpy.eye(2) * v @ a)(np.ones(2))
    np.testing.assert_array_equal(found, [[1.0, np.inf], [2.0, np.nan]])


def test_third_derivatives():
    third = nb.jit(nb.jacfwd(nb.jacrev(nb.jacrev(lambda x: np.sum(np.exp(A @ x))))))
    np.testing.assert_allclose(third(V), np.einsum("r,ri,rj,rk->ijk", np.exp(A @ V), A, A, A), rtol=1e-11)
