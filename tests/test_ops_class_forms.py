"""MindSpore's class forms do what the functions do, with the options of the constructor."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import ops
from nbgrad.errors import ArgumentError, DtypeError, ShapeError
from nbgrad.ops.class_forms import FORMS
from nbgrad.ops.class_table import REQUIRED

pytestmark = pytest.mark.unoptimized

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)
Y = np.array([[2.0, 2.0, 1.0], [1.0, 3.0, 3.0]], np.float32)
P = np.abs(X) / 8
I = np.array([2, 0])  # noqa: E741
V = np.array([1.0, 2.0, 3.0], np.float32)
SOFTMAX = np.exp(X) / np.exp(X).sum(-1, keepdims=True)

CASES = {
    "MatMul()": ((X, Y.T), X @ Y.T),
    "MatMul(transpose_b=True)": ((X, Y), X @ Y.T),
    "MatMul(True, False)": ((X, Y), X.T @ Y),
    "BatchMatMul(transpose_a=True)": ((np.stack([X, Y]), np.stack([Y, X])), np.stack([X.T @ Y, Y.T @ X])),
    "Add()": ((X, Y), X + Y),
    "RealDiv()": ((X, 2), X / 2),
    "FloorDiv()": ((X, 2), X // 2),
    "FloorMod()": ((X, 2), X % 2),
    "Mod()": ((np.array([-4.0, 5.0, 6.0]), np.array([3.0, 2.0, 3.0])), np.array([-1.0, 1.0, 0.0])),
    "Pow()": ((P, 3), P**3),
    "Rsqrt()": ((P,), 1 / np.sqrt(P)),
    "SquaredDifference()": ((X, Y), (X - Y) ** 2),
    "L2Loss()": ((X,), np.float32(45.5)),
    "AddN()": (((X, Y, X),), X + Y + X),
    "BiasAdd()": ((X, V), X + V),
    "BiasAdd('NHWC')": ((np.stack([X, Y]), V), np.stack([X, Y]) + V),
    "L2Normalize(axis=1)": ((X,), X / np.linalg.norm(X, axis=1, keepdims=True)),
    "L2Normalize()": ((np.zeros((1, 2)),), np.zeros((1, 2))),
    "Identity()": ((X,), X),
    "ReLU()": ((X,), np.maximum(X, 0)),
    "ReLU6()": ((X * 2,), np.clip(X * 2, 0, 6)),
    "Sigmoid()": ((X,), 1 / (1 + np.exp(-X))),
    "Tanh()": ((X,), np.tanh(X)),
    "Softmax()": ((X,), SOFTMAX),
    "Softmax(axis=0)": ((X.T,), SOFTMAX.T),
    "LogSoftmax()": ((X,), np.log(SOFTMAX)),
    "GeLU()": ((X,), 0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)))),
    "Elu(1.0)": ((X,), np.where(X > 0, X, np.expm1(X))),
    "HShrink(3.5)": ((X,), np.where(np.abs(X) > 3.5, X, 0)),
    "ReduceSum()": ((X,), X.sum()),
    "ReduceSum(keep_dims=True)": ((X, 1), X.sum(1, keepdims=True)),
    "ReduceSum(skip_mode=True)": ((X, ()), X),
    "ReduceMean()": ((X, (0, 1)), X.mean()),
    "ReduceMax()": ((X, 0), X.max(0)),
    "ReduceMin(True)": ((X, -1), X.min(-1, keepdims=True)),
    "ReduceProd()": ((X, 1), X.prod(1)),
    "ReduceAll()": ((X > 0, 1), (X > 0).all(1)),
    "ReduceAny()": ((X > 4, 1), (X > 4).any(1)),
    "Argmax()": ((X,), X.argmax(-1).astype(np.int32)),
    "Argmin(axis=0, output_type='int64')": ((X,), X.argmin(0)),
    "ArgMaxWithValue(1)": ((X,), (X.argmax(1), X.max(1))),
    "ArgMinWithValue(keep_dims=True)": ((X,), (X.argmin(0)[None], X.min(0, keepdims=True))),
    "CumSum()": ((X, 1), X.cumsum(1)),
    "CumSum(True)": ((V, 0), np.array([0, 1, 3], np.float32)),
    "CumSum(reverse=True)": ((V, 0), np.array([6, 5, 3], np.float32)),
    "CumSum(True, True)": ((V, 0), np.array([5, 3, 0], np.float32)),
    "CumProd(exclusive=True)": ((V, 0), np.array([1, 1, 2], np.float32)),
    "Reshape()": ((X, (3, -1)), X.reshape(3, 2)),
    "Transpose()": ((X, (1, 0)), X.T),
    "ExpandDims()": ((X, 1), X[:, None]),
    "Squeeze()": ((X[None, :, None],), X),
    "Squeeze(0)": ((X[None, :, None],), X[:, None]),
    "Concat(axis=1)": (((X, Y),), np.concatenate((X, Y), 1)),
    "Stack(axis=1)": (((X, Y),), np.stack((X, Y), 1)),
    "Unstack(axis=1, num=3)": ((X,), tuple(X.T)),
    "Split(1, 3)": ((X,), tuple(np.split(X, 3, 1))),
    "Tile()": ((X, (2, 1)), np.tile(X, (2, 1))),
    "BroadcastTo((2, 2, 3))": ((X,), np.stack([X, X])),
    "Flatten()": ((X[:, :, None],), X),
    "ReverseV2([1])": ((X,), X[:, ::-1]),
    "Meshgrid(indexing='ij')": (((V, I),), tuple(np.meshgrid(V, I, indexing="ij"))),
    "Tril()": ((X,), np.tril(X)),
    "Triu(1)": ((X,), np.triu(X, 1)),
    "Pad(((1, 0), (0, 2)))": ((X,), np.pad(X, ((1, 0), (0, 2)))),
    "Cast()": ((X, np.int32), X.astype(np.int32)),
    "Gather()": ((X, I, 1), X[:, I]),
    "GatherD()": ((X, 1, np.array([[0, 2], [1, 1]])), np.array([[1, 3], [5, 5]], np.float32)),
    "GatherNd()": ((X, np.array([[0, 2], [1, 0]])), np.array([3, 4], np.float32)),
    "OneHot()": ((I, 3, 1.0, 0.0), np.eye(3, dtype=np.float32)[I]),
    "Select()": ((X > 0, X, Y), np.where(X > 0, X, Y)),
    "Sort(descending=True)": ((V,), (V[::-1], np.array([2, 1, 0], np.int32))),
    "TopK()": ((V, 2), (V[:0:-1], np.array([2, 1], np.int32))),
    "Unique()": ((I,), (np.array([2, 0]), np.array([0, 1], np.int32))),
    "StridedSlice()": ((X, (0, 1), (2, 3), (1, 1)), X[0:2, 1:3]),
    "StridedSlice(begin_mask=1)": ((X, (1, 1), (2, 3), (1, 1)), X[:2, 1:3]),
    "Zeros()": (((2,), np.float16), np.zeros(2, np.float16)),
    "OnesLike()": ((X,), np.ones_like(X)),
    "Fill()": ((np.int32, (2,), 3), np.array([3, 3], np.int32)),
    "Range()": ((0, 6, 2), np.array([0, 2, 4])),
    "LinSpace()": ((0, 1, 3), np.array([0, 0.5, 1], np.float32)),
    "Equal()": ((X, Y), X == Y),
    "LogicalAnd()": ((X > 0, Y > 1), (X > 0) & (Y > 1)),
    "Lerp()": ((X, Y, 0.5), (X + Y) / 2),
}


@pytest.mark.parametrize("text", CASES)
def test_results(text):
    arguments, want = CASES[text]

    def lift(value):
        if isinstance(value, np.ndarray):
            return nb.Tensor(value)
        return tuple(lift(v) for v in value) if isinstance(value, tuple) else value

    form = eval(text, vars(ops) | {name: getattr(ops, name) for name in FORMS})
    got = form(*[lift(a) for a in arguments])
    assert isinstance(form, ops.Primitive)
    assert isinstance(got, tuple) == isinstance(want, tuple)
    pairs = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
    for one, other in pairs:
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one.asnumpy(), other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", FORMS)
def test_every_class_exists_and_shows_its_options(name):
    kind = getattr(ops, name)
    assert name in ops.NAMES["class_forms"].split()
    assert kind.__doc__.startswith(f"{name}(")
    options = {key: (1 if value is REQUIRED else value) for key, value in FORMS[name].options.items()}
    form = kind(**options)
    assert repr(form) == f"{name}({', '.join(f'{key}={value!r}' for key, value in options.items())})"
    assert repr(pickle.loads(pickle.dumps(form))) == repr(form)


def test_classes_are_named_in_the_table_of_names():
    assert set(ops.NAMES["class_forms"].split()) == {"Primitive", *FORMS}


def test_wrong_options_are_errors():
    for wrong in (
        lambda: ops.MatMul(transpose=True),
        lambda: ops.Concat(1, axis=1),
        lambda: ops.BroadcastTo(),
        lambda: ops.Add(1, 2),
    ):
        with pytest.raises(ArgumentError, match="options"):
            wrong()
    for wrong in (
        lambda: ops.MatMul()(np.ones((2, 2, 2)), X),
        lambda: ops.BiasAdd()(X, np.ones(2)),
        lambda: ops.Split(1, 2)(X),
        lambda: ops.Unstack(0, 3)(X),
    ):
        with pytest.raises(ShapeError):
            wrong()
    for wrong in (lambda: ops.MatMul(X, Y), lambda: ops.MatMul(1), lambda: ops.Concat(nb.Tensor(X))):
        with pytest.raises(DtypeError, match="option"):
            wrong()
    with pytest.raises(ArgumentError, match="keep_prob"):
        ops.Dropout(0.0)(X)


def test_shape_gives_numbers():
    assert (ops.Shape()(X), ops.Rank()(X), ops.Size()(X)) == ((2, 3), 2, 6)


def test_dropout_keeps_or_drops():
    x = nb.Tensor(np.arange(1, 2001, dtype=np.float32))
    out, mask = ops.Dropout(keep_prob=0.75)(x)
    out, mask = out.asnumpy(), mask.asnumpy()
    assert set(np.unique(mask)) == {0.0, 1.0}
    np.testing.assert_allclose(out, x.asnumpy() * mask / 0.75, rtol=1e-6)
    # Within five standard deviations of a binomial distribution.
    assert abs(mask.mean() - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 2000)


def test_gradients_flow():
    w = nb.Tensor(np.array([[0.5, -1.0, 2.0]]))

    def loss(w, x):
        return ops.ReduceSum()(ops.Tanh()(ops.MatMul(transpose_b=True)(x, w)))

    x = nb.Tensor(X.astype(np.float64))
    gradient = nb.grad(loss)(w, x).asnumpy()
    # d tanh(u) = 1 - tanh(u)**2.
    u = X @ np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(gradient, ((1 - np.tanh(u) ** 2) @ X)[None], rtol=1e-6)
    nb.check_grads(loss, (w, x))
    nb.check_grads(lambda x: ops.L2Normalize(axis=1)(x), (x,))
    nb.check_grads(lambda x: ops.CumSum(True, True)(x, 1), (x,))


def test_compiled():
    form = ops.Softmax(axis=0)
    np.testing.assert_allclose(nb.jit(lambda x: form(x))(nb.Tensor(X.T)).asnumpy(), SOFTMAX.T, rtol=1e-6)
