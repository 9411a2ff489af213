"""Products, Einstein sums and norms of Tensors agree with NumPy, and differentiate to second order."""

from __future__ import annotations

import numpy as np
import pytest

from nbgrad.errors import ArgumentError, ShapeError
from nbgrad.functions.linalg import matrix_products as linear_algebra
from nbgrad.graph.ir import topological
from nbgrad.record.tensor import Tensor

from .agreement import agree, check_derivative, gradients, lift, lower, record

pytestmark = pytest.mark.unoptimized

rng = np.random.default_rng(3)
X, Y, Z = rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=(2, 3, 4))
F4, F2 = X.astype(np.float32), X.astype(np.float16)
I8 = rng.integers(-9, 9, (3, 4)).astype(np.int8)
I64 = rng.integers(-5, 5, (3, 4))
B = I64 > 0
S = np.array(2.5)
LEFT = [rng.normal(size=shape) for shape in ((4,), (3, 4), (2, 3, 4), (5, 1, 3, 4), (1, 3, 4))]
RIGHT = [rng.normal(size=shape) for shape in ((4,), (4, 3), (2, 4, 3), (2, 4, 1), (1, 4, 2), (0, 4, 3), (4, 0))]


def normal(*shape):
    return rng.normal(size=shape)


@pytest.mark.parametrize("left", LEFT, ids=lambda a: str(a.shape))
def test_shapes_of_products(left):
    functions = [np.matmul, np.dot, np.vecdot, np.inner, np.outer]
    functions += [getattr(np, name) for name in ("matvec", "vecmat") if hasattr(np, name)]
    for right in RIGHT:
        for function in functions:
            agree(function, left, right)
        if left.ndim + right.ndim < 5:
            agree(np.kron, left, right)


@pytest.mark.parametrize(
    "function", [np.matmul, np.dot, np.inner, np.vdot, np.kron, np.outer], ids=lambda f: f.__name__
)
def test_dtypes_of_products(function):
    pairs = [
        (I64, I64.T),
        (B, B.T),
        (I8, I8.T),
        (I8, X.T),
        (F2, F2.T),
        (F4, X.T),
        (B, I64.T),
        (I64, I64),
        (X, S),
        (S, X),
        (F4, np.ones(4, np.float32)),
        (I64, np.arange(4)),
        (B, B[0]),
        (F4, 3.0),
    ]
    for left, right in pairs:
        agree(function, left, right)
    if function in (np.matmul, np.dot):
        agree(function, np.zeros((3, 0)), np.zeros((0, 2)))
        agree(function, np.zeros((3, 0), bool), np.zeros((0, 2), bool))


def test_tensordot():
    for axes in (0, 1, 2, ((1,), (0,)), (1, 0), ([0, 1], [1, 0]), ([-1], [0]), 5, ([0], [0, 1])):
        agree(np.tensordot, X, X.T.copy(), axes)
        agree(np.tensordot, Z, normal(4, 3, 2), axes)
        agree(np.tensordot, I64, I64.T, axes)
    agree(np.tensordot, Z, Z, ([0, 2], [0, 2]))


EINSUMS = [
    ("ij,jk->ik", (X, X.T)),
    ("ij,jk", (X, X.T)),
    ("ij->ji", (X,)),
    ("ij", (X,)),
    ("ba", (X,)),
    ("ii", (X[:, :3],)),
    ("ii->i", (X[:, :3],)),
    ("iij->j", (normal(3, 3, 4),)),
    ("iii->i", (normal(3, 3, 3),)),
    ("ij,ij->i", (X, X)),
    ("ij,ij", (X, X)),
    ("ij,j->i", (X, Y)),
    ("i,j", (Y, Y)),
    ("i,j->ji", (Y, Y)),
    ("...j,j", (Z, Y)),
    ("...ij,...jk->...ik", (Z, normal(2, 4, 5))),
    ("...ij,jk", (Z, X.T)),
    ("ij...,jk...->ik...", (Z, normal(3, 2, 4))),
    ("ij,jk,kl->il", (X, X.T, X)),
    ("ij, jk, kl, lm -> im", (X, X.T, X, X.T)),
    ("i,i,i->i", (Y, Y, Y)),
    ("i,i,i", (Y, Y, Y)),
    ("ij,ik,il->jkl", (X, X, X)),
    ("bij,bjk,bk->bi", (Z, normal(2, 4, 5), normal(2, 5))),
    ("ij->", (X,)),
    ("ij->i", (X,)),
    ("ij->j", (I64,)),
    ("ij,jk", (I64, I64.T)),
    ("ij,kj->ik", (B, B)),
    ("ij->i", (B,)),
    ("ij,jk", (F2, F2.T)),
    (",ij", (S, X)),
    ("ij,ij->ij", (X[:1], X)),
    ("ij,jk->ik", (X[:, :1], X.T)),
    ("ij,kl", (X, X)),
    ("ij,jk->ijk", (X, X.T)),
    ("ij,k->i", (X, Y)),
    ("ijk,ijl->kl", (Z, Z)),
    ("bhqd,bhkd->bhqk", (normal(2, 3, 4, 5), normal(2, 3, 6, 5))),
    ("...,...", (X, Y)),
    ("a...a->...", (normal(3, 2, 3),)),
    ("ij,ij,ij->ij", (I8, X, F4)),
    ("ij,jk->ik", (np.zeros((3, 0)), np.zeros((0, 2)))),
    ("abcd,abce,aef->dbf", (normal(2, 3, 4, 5), normal(2, 3, 4, 6), normal(2, 6, 3))),
    ("ijk,ilm,njm,nlk,abc->", (normal(3, 3, 3),) * 5),
    # errors
    ("ij,ij", (X, Y)),
    ("ij->ijk", (X,)),
    ("ij,jk", (X, X)),
    ("ii->i", (X,)),
    ("i1", (X,)),
    ("ij->ii", (X,)),
    ("...i->i", (X,)),
]


@pytest.mark.parametrize(("subscripts", "operands"), EINSUMS, ids=lambda v: v if isinstance(v, str) else "")
def test_einsum(subscripts, operands):
    agree(np.einsum, subscripts, *operands)


def test_einsum_interleaved():
    agree(np.einsum, X, [0, 1], X, [2, 1], [0, 2])
    agree(np.einsum, X, [0, 1], [1, 0])
    agree(np.einsum, Z, [Ellipsis, 0], Y, [0])


def test_cross():
    v, w, flat = normal(4, 3), normal(4, 3), normal(4, 2)
    for left, right in ((v, w), (v[0], w), (v[0], w[0]), (v[:, None], w)):
        agree(np.cross, left, right)
    # Vectors of length 2 lie in the plane z = 0; NumPy 2.5 refuses them.
    solid = np.concatenate([flat, np.zeros((4, 1))], axis=1)
    np.testing.assert_array_equal(np.cross(Tensor(v), flat).asnumpy(), np.cross(v, solid))
    np.testing.assert_array_equal(np.cross(flat, Tensor(v)).asnumpy(), np.cross(solid, v))
    np.testing.assert_array_equal(np.cross(Tensor(flat), flat[::-1]).asnumpy(), np.cross(solid, solid[::-1])[:, 2])
    agree(np.cross, v.T, w.T, axis=0)
    agree(np.cross, v.T, w, axisa=0, axisc=0)
    agree(np.cross, v, np.ones((4, 4)))
    agree(np.linalg.cross, v, w)
    agree(np.cross, I64[:, :3], I64[:, 1:])


def test_traces_and_outer():
    for k in (-1, 0, 1, 9):
        agree(np.trace, X, k)
        agree(np.trace, Z, k, 1, 2)
    agree(np.trace, I8)
    agree(np.linalg.trace, Z)
    agree(np.trace, Y)
    agree(np.linalg.outer, Y, Y)
    agree(np.linalg.outer, X, Y)


@pytest.mark.parametrize("order", [None, 2, 1, np.inf, -np.inf, 0, 3, 1.5, -1, -2, 0.5, "fro"])
def test_norm(order):
    for array in (X, Y, Z, F4, I8, np.zeros((2, 3))):
        for axis in (None, 0, -1, (0, 1), (1, 0)):
            matrix = isinstance(axis, tuple) or (axis is None and array.ndim == 2)
            if (matrix and order in (2, -2)) or (not array.any() and order in (-1, -2)):
                continue  # singular values; division by zero
            agree(np.linalg.norm, array, order, axis)
            agree(np.linalg.norm, array, order, axis=axis, keepdims=True)
    if order not in ("fro", None):
        agree(np.linalg.vector_norm, Z, ord=order, axis=(0, 1))
    agree(np.linalg.matrix_norm, Z)
    agree(np.linalg.matrix_norm, Z, ord=1)


def test_chains_and_powers():
    for chain in ([X, X.T, X], [Y, X.T, X, Y], [X, X.T], [X, X.T, X, X.T, X], [X, Y], [X]):
        agree(np.linalg.multi_dot, chain)
    for n in (0, 1, 2, 3, 5, 7):
        for array in (X[:, :3], Z[:, :, :3], I64[:, :3]):
            agree(np.linalg.matrix_power, array, n)
    agree(np.linalg.matrix_power, X, 2)


def test_multi_dot_takes_the_cheap_order():
    _, outputs = record(
        lambda a, b, c: linear_algebra.multi_dot([a, b, c]), (np.ones((9, 9)), np.ones((9, 9)), np.ones(9))
    )
    extents = [node.shape for node in topological(outputs) if node.name == "matmul"]
    assert extents == [(1, 9, 1), (1, 9, 1)]


DERIVATIVES = {
    "matmul": (np.matmul, (X, normal(4, 2))),
    "matmul batch": (np.matmul, (Z, normal(2, 4, 2))),
    "matmul broadcast": (np.matmul, (X, normal(2, 4, 2))),
    "matmul vectors": (np.matmul, (Y, normal(2, 4, 2))),
    "dot": (np.dot, (Z, normal(2, 4, 3))),
    "dot of vectors": (np.dot, (Y, normal(4))),
    "inner": (np.inner, (Z, X)),
    "outer": (np.outer, (Y, X)),
    "vdot": (np.vdot, (X, normal(3, 4))),
    "vecdot": (np.vecdot, (Z, X)),
    "tensordot": (lambda a, b: np.tensordot(a, b, ([0, 1], [1, 0])), (X, normal(4, 3, 2))),
    "kron": (np.kron, (X, normal(2, 2))),
    "cross": (np.cross, (normal(4, 3), normal(4, 3))),
    "trace": (lambda x: np.trace(x @ x.T), (X,)),
    "norm": (np.linalg.norm, (X,)),
    "norm axis": (lambda x: np.linalg.norm(x, axis=1), (X,)),
    "norm 1": (lambda x: np.linalg.norm(x, 1, axis=1), (X,)),
    "norm 3": (lambda x: np.linalg.norm(x, 3, axis=0), (X,)),
    "norm inf": (lambda x: np.linalg.norm(x, np.inf, axis=0), (X,)),
    "norm matrix 1": (lambda x: np.linalg.norm(x * x, 1), (X,)),
    "multi_dot": (lambda a, b, c: np.linalg.multi_dot([a, b, c]), (X, normal(4, 3), normal(3))),
    "matrix_power": (lambda x: np.linalg.matrix_power(x, 5), (X[:, :3] * 0.5,)),
    "einsum product": (lambda a, b: np.einsum("ij,kj->ki", a, b), (X, normal(2, 4))),
    "einsum batch": (lambda a, b: np.einsum("bij,bjk->bik", a, b), (Z, normal(2, 4, 2))),
    "einsum diagonal": (lambda a: np.einsum("ii->i", a), (normal(3, 3),)),
    "einsum trace": (lambda a, b: np.einsum("iij,j->", a, b), (normal(3, 3, 4), Y)),
    "einsum three": (lambda a, b, c: np.einsum("ij,jk,ik->k", a, b, c), (X, normal(4, 2), normal(3, 2))),
    "einsum broadcast": (lambda a, b: np.einsum("ij,jk->ik", a, b), (X[:, :1], normal(4, 2))),
    "einsum ellipsis": (lambda a, b: np.einsum("...i,...i", a, b), (Z, X)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    function, arrays = DERIVATIVES[name]
    check_derivative(function, *arrays)


@pytest.mark.parametrize("order", [None, 1, 2, 3, 1.5, np.inf])
def test_norm_of_zero_has_derivative_zero(order):
    (g,) = gradients(lambda x: np.linalg.norm(x, order), np.zeros(4))
    np.testing.assert_array_equal(g, np.zeros(4))


def test_dtypes_of_gradients():
    (g, h) = gradients(np.matmul, F4, np.ones((4, 2)))
    assert (g.dtype, h.dtype) == (np.float32, np.float64)


def test_the_batch_is_folded_into_one_product():
    _, outputs = record(np.matmul, (normal(5, 2, 3, 4), normal(4, 6)))
    (product,) = [node for node in topological(outputs) if node.name == "matmul"]
    assert product.shape == (1, 30, 6)


def test_products_of_vectors_fuse():
    for function in (np.dot, np.inner, lambda a, b: np.einsum("i,i->", a, b)):
        _, outputs = record(function, (Y, Y))
        assert "matmul" not in {node.name for node in topological(outputs)}


def test_operators_and_out():
    np.testing.assert_allclose(lower(lift(X) @ X.T), X @ X.T)
    np.testing.assert_allclose(lower(X @ lift(X.T)), X @ X.T)
    target = Tensor(np.zeros((3, 3)))
    assert np.dot(lift(X), lift(X.T), out=target) is target
    np.testing.assert_allclose(lower(target), X @ X.T)


def test_errors():
    x = Tensor(X)
    with pytest.raises(ShapeError, match=r"\(3, 4\) and \(3, 4\).*test_linear_algebra.py"):
        x @ x
    with pytest.raises(ArgumentError, match="'nuc'"):
        np.linalg.norm(x, "sup")
    with pytest.raises(ShapeError, match="label 'j'"):
        np.einsum("ij,jk", x, x)
    with pytest.raises(ArgumentError, match="name 2 operands"):
        np.einsum("ij,jk", x)
    with pytest.raises(ShapeError, match="2 or 3 elements"):
        np.cross(x, x)
