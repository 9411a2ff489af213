"""New arrays, ranges, grids, diagonals and triangles agree with NumPy, and differentiate in what they are made of."""

from __future__ import annotations

import numpy as np
import pytest

from nbgrad.errors import ArgumentError, ShapeError
from nbgrad.functions.arrays import creation
from nbgrad.graph.ir import topological
from nbgrad.record.tensor import Tensor

from .agreement import agree, check_derivative, gradients, record

rng = np.random.default_rng(2)
X, Y, Z = rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=(2, 3, 4))
F4 = X.astype(np.float32)
I8 = rng.integers(-9, 9, (3, 4)).astype(np.int8)
S, E = np.array(2.5), np.zeros((0, 3))


def same(tensor, array):
    assert isinstance(tensor, Tensor)
    assert (tensor.dtype, tensor.shape) == (array.dtype, array.shape)
    np.testing.assert_allclose(tensor.asnumpy(), array, rtol=1e-14)


def test_like():
    for function in (np.zeros_like, np.ones_like):
        for array in (X, I8, F4, S, E):
            agree(function, array)
            agree(function, array, dtype=np.float32)
            agree(function, array, shape=(2,))
    assert np.empty_like(Tensor(F4)).dtype == np.float32
    for array, value in ((X, 3), (I8, 3), (I8, 3.7), (X, Y)):
        agree(np.full_like, array, value)
    agree(np.full, (2, 4), Y)


def test_by_name():
    same(creation.zeros((2, 3)), np.zeros((2, 3)))
    same(creation.ones(3, np.int32), np.ones(3, np.int32))
    same(creation.full((2, 2), 7), np.full((2, 2), 7))
    same(creation.full(2, 1.5, np.float32), np.full(2, 1.5, np.float32))
    same(creation.identity(3), np.identity(3))
    assert creation.empty((2, 3)).shape == (2, 3)
    same(creation.indices((2, 3)), np.indices((2, 3)))
    for got, want in zip(creation.indices((2, 3), sparse=True), np.indices((2, 3), sparse=True), strict=True):
        same(got, want)
    for arguments in ((3,), (3, 4, 1), (4, 3, -2), (0,), (3, 2, 5)):
        for dtype in (float, int, np.float32):
            same(creation.eye(*arguments, dtype=dtype), np.eye(*arguments, dtype=dtype))
            same(creation.tri(*arguments, dtype=dtype), np.tri(*arguments, dtype=dtype))


def test_constants_take_no_memory():
    for tensor in (creation.zeros((1000, 1000)), creation.eye(1000), creation.arange(10**6), creation.tri(1000)):
        assert all(node.value is None or node.value.size < 2 for node in topological([tensor._node]))


@pytest.mark.parametrize("k", range(-4, 6))
def test_diagonals_and_triangles(k):
    for array in (X, Y, Z, I8, np.zeros((3, 0)), S):
        for function in (np.diag, np.tril, np.triu, np.diagflat, np.diagonal):
            agree(function, array, k)
    agree(np.diagonal, Z, k, 2, 0)
    agree(np.diagonal, Z, k, -1, 1)
    agree(np.linalg.diagonal, Z, offset=k)


def test_ranges():
    for arguments in (
        (5,),
        (2, 9),
        (2, 9, 3),
        (9, 2, -2),
        (0.0, 1.0, 0.1),
        (5.5,),
        (1, 2, 0.3),
        (3, 3),
        (5, 1),
        (-1.5, 7, 0.7),
        (1e6, 1e6 + 3, 0.1),
        (np.float32(1), 3),
    ):
        same(creation.arange(*arguments), np.arange(*arguments))
    same(creation.arange(3, dtype=np.float32), np.arange(3, dtype=np.float32))
    same(creation.arange(Tensor(np.array(4))), np.arange(4))
    with pytest.raises(ArgumentError, match="step"):
        creation.arange(1, 2, 0)


def test_spaces():
    cases = [(0, 1, 5), (1.0, 3.0), (X, 2.0, 4), (Y, X, 3), (F4, 1.0, 3), (0, 10, 4), (I8, 3, 4), (0, 1, -1)]
    for case in cases:
        for options in ({}, {"endpoint": False}, {"dtype": int}, {"axis": -1}):
            if any(isinstance(v, np.ndarray) for v in case):
                agree(np.linspace, *case, **options)
                agree(np.logspace, *case, **options)
            elif case[-1] >= 0:
                same(creation.linspace(*case, **options), np.linspace(*case, **options))
    agree(np.linspace, X, 2.0, 4, retstep=True)
    same(creation.linspace(2, 1, 1), np.linspace(2, 1, 1))
    same(creation.linspace(2, 1, 0), np.linspace(2, 1, 0))
    same(creation.logspace(0, 2, 4, base=2), np.logspace(0, 2, 4, base=2))
    for case in ((1, 1000, 4), (-1.0, -8.0, 4)):
        same(creation.geomspace(*case), np.geomspace(*case))
    agree(np.geomspace, np.array([1.0, -2]), np.array([3.0, -8.0]), 5)
    agree(np.geomspace, np.array([1.0, -2]), np.array([3.0, -8.0]), 5, endpoint=False)


def test_grids():
    for options in ({}, {"sparse": True}, {"indexing": "ij"}, {"indexing": "ij", "sparse": True}):
        agree(np.meshgrid, Y, np.arange(3), S, **options)
        agree(np.meshgrid, Y, **options)
        agree(np.meshgrid, Y, I8[0], **options)
    agree(np.meshgrid, X, Y)
    for array in (Y, np.arange(4), Y.astype(np.float32), np.array([True, False]), X):
        agree(np.vander, array)
        agree(np.vander, array, 3, increasing=True)
        agree(np.vander, array, 0)


DERIVATIVES = {
    "full": lambda x: np.full_like(x, 2.0) * x,
    "diag": lambda x: np.diag(x[:, :3] ** 2, 1),
    "diag of a vector": lambda x: np.diag(x[0] ** 2, -1),
    "diagonal": lambda x: np.diagonal(x * x, -1),
    "tril": lambda x: np.tril(x * x, 1),
    "triu": lambda x: np.triu(x * x),
    "linspace": lambda x: np.linspace(x[0] ** 2, x[1], 5),
    "linspace open": lambda x: np.linspace(x[0] ** 2, x[1], 5, endpoint=False, axis=1),
    "logspace": lambda x: np.logspace(x[0], x[1], 3, base=2.0),
    "geomspace": lambda x: np.geomspace(x[0] ** 2 + 1, x[1] ** 2 + 2, 4),
    "meshgrid": lambda x: np.prod(np.stack(np.meshgrid(x[0], x[1])), axis=0),
    "vander": lambda x: np.vander(x[0], 4) * np.arange(4.0),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    check_derivative(DERIVATIVES[name], X)


def test_vander_at_zero():
    (g,) = gradients(lambda x: np.vander(x, 3), np.array([0.0, 2.0]))
    np.testing.assert_array_equal(g, [1.0, 5.0])


def test_diagonals_are_slices():
    for function in (np.diag, np.diagonal, np.trace, lambda x: np.diag(x[0])):
        _, outputs = record(function, (X,))
        kinds = {node.primitive.kind for node in topological(outputs)}
        assert kinds <= {"source", "movement", "reduction"}


def test_errors():
    with pytest.raises(ShapeError, match="negative"):
        creation.zeros((2, -1))
    with pytest.raises(ArgumentError, match="device must be"):
        creation.zeros(2, device="tpu")
    with pytest.raises(ArgumentError, match="number of points"):
        creation.linspace(0, 1, -1)
    with pytest.raises(ShapeError, match="differ"):
        np.diagonal(Tensor(Z), 0, 1, 1)
    with pytest.raises(ArgumentError, match="indexing"):
        np.meshgrid(Tensor(Y), Tensor(Y), indexing="yx")
