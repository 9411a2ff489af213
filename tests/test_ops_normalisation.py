"""Normalisation agree with recorded PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor, ops
from nbgrad.errors import ArgumentError, ShapeError

from .recorded_cases import cases, check, name

pytestmark = pytest.mark.unoptimized

CASES = cases(*"layer_norm group_norm instance_norm batch_norm normalize rms_norm lrn".split())


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_with_pytorch(case):
    check(case)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_in_float32(case):
    check(case, "float32")


rng = np.random.default_rng(3)
X, W, B = rng.normal(size=(3, 4, 5)), rng.normal(size=4), rng.normal(size=4)


def test_layer_norm_from_an_axis():
    """As nn.LayerNorm: normalise from one axis on, scale from another on."""
    for axis, params, shape in ((-1, -1, (5,)), (1, 2, (5,)), (1, 1, (4, 5)), (0, -1, (5,))):
        gamma, beta = rng.normal(size=shape), rng.normal(size=shape)
        axes = tuple(range(axis % 3, 3))
        want = (X - X.mean(axes, keepdims=True)) / np.sqrt(X.var(axes, keepdims=True) + 1e-7) * gamma + beta
        got = ops.layer_norm_from(Tensor(X), gamma, beta, axis, params)
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-12, atol=1e-13)


def test_training_batch_norm_gives_new_statistics():
    """torch.nn.functional.batch_norm(x, running_mean, running_var, training=True, momentum=0.3): unbiased variance."""
    mean, var = np.zeros(4, np.float32), np.ones(4, np.float32)
    y, new_mean, new_var = ops.batch_norm_training(Tensor(X.astype(np.float32)), mean, var, momentum=0.3)
    np.testing.assert_allclose(new_mean.asnumpy(), 0.3 * X.mean((0, 2)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(new_var.asnumpy(), 0.7 + 0.3 * X.var((0, 2), ddof=1), rtol=1e-5)
    assert y.dtype == new_mean.dtype == new_var.dtype == np.float32
    np.testing.assert_allclose(y.asnumpy().mean((0, 2)), 0, atol=1e-6)
    np.testing.assert_allclose(y.asnumpy().var((0, 2)), 1, rtol=1e-4)
    assert ops.batch_norm_training(Tensor(X), None, None)[1:] == (None, None)


def test_no_gradient_through_running_statistics():
    def function(x):
        _, mean, var = ops.batch_norm_training(x, np.zeros(4), np.ones(4))
        return mean + var

    np.testing.assert_array_equal(nb.grad(function)(X), 0 * X)


def test_training_under_jit():
    step = nb.jit(lambda x, m, v: ops.batch_norm_training(x, m, v, W, B))
    mean, var = Tensor(np.zeros(4)), Tensor(np.ones(4))
    for _ in range(200):
        _, mean, var = step(Tensor(X), mean, var)
    np.testing.assert_allclose(mean.asnumpy(), X.mean((0, 2)), rtol=1e-6)
    np.testing.assert_allclose(var.asnumpy(), X.var((0, 2), ddof=1), rtol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ops.layer_norm(x, (4, 5)),
        lambda x: ops.group_norm(x, 2, W, B),
        lambda x: ops.instance_norm(x, W, B),
        lambda x: ops.batch_norm(x, None, None, W, B, training=True),
        lambda x: ops.batch_norm(x, B, np.exp(W), W, B),
        lambda x: ops.normalize(x, dim=-1),
        lambda x: ops.rms_norm(x, W[:4] if x.shape[-1] == 4 else B[:1] * np.ones(5))[0],
        lambda x: ops.lrn(x[..., None], 1),
    ],
    ids="layer group instance batch-training batch normalize rms lrn".split(),
)
def test_derivatives_and_dtypes(function):
    nb.check_grads(function, (X,))
    want = function(Tensor(X)).asnumpy()
    for dtype, tolerance in (("float32", 2e-5), ("float16", 2e-2)):
        got = function(Tensor(X.astype(dtype)))
        assert got.dtype == dtype
        np.testing.assert_allclose(got.asnumpy(), want, rtol=tolerance, atol=tolerance)


def test_equal_elements_have_finite_gradients():
    for function in (lambda x: ops.layer_norm(x, 5), lambda x: ops.normalize(x * 0.0, dim=-1)):
        assert np.isfinite(nb.grad(function)(np.ones((2, 5)))).all()


def test_large_offsets_do_not_cancel():
    x = rng.normal(size=(2, 50))
    got = ops.layer_norm(Tensor(x + 1e8), 50).asnumpy()
    np.testing.assert_allclose(got, ops.layer_norm(Tensor(x), 50).asnumpy(), rtol=1e-6, atol=1e-6)


def test_half_precision_does_not_overflow():
    x = np.array([[300.0, -300.0, 100.0, -100.0]], np.float16)
    want = x.astype(float) / np.sqrt(50000.0)
    np.testing.assert_allclose(ops.layer_norm(Tensor(x), 4).asnumpy(), want, rtol=2e-3)


def test_errors():
    with pytest.raises(ShapeError, match="does not end in"):
        ops.layer_norm(Tensor(X), 4)
    with pytest.raises(ShapeError, match=r"weight of layer_norm must have shape \(5,\)"):
        ops.layer_norm(Tensor(X), 5, W)
    with pytest.raises(ShapeError, match="must divide the 4 channels"):
        ops.group_norm(Tensor(X), 3)
    with pytest.raises(ShapeError, match="more than one value"):
        ops.batch_norm(Tensor(X[:1, :, :1]), None, None, training=True)
    with pytest.raises(ArgumentError, match="running_mean and running_var"):
        ops.batch_norm(Tensor(X), None, None)
    with pytest.raises(ShapeError, match="running_var must have shape"):
        ops.batch_norm(Tensor(X), W, W[:2])
    with pytest.raises(ShapeError, match="shape of gamma"):
        ops.rms_norm(Tensor(X), W)
    with pytest.raises(ShapeError, match="must have shape"):
        ops.instance_norm(Tensor(X[0]))
    with pytest.raises(ArgumentError, match="norm_region"):
        ops.lrn(Tensor(X), norm_region="WITHIN_CHANNEL")
