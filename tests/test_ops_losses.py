"""Loss functions agree with recorded PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import nbgrad as nb
from nbgrad import Tensor, ops
from nbgrad.errors import ArgumentError, DtypeError, RangeError, ShapeError

from .recorded_cases import cases, check, name

pytestmark = pytest.mark.unoptimized

CASES = cases(
    *"mse_loss l1_loss smooth_l1_loss huber_loss cross_entropy nll_loss kl_div cosine_embedding_loss".split(),
    *"binary_cross_entropy binary_cross_entropy_with_logits margin_ranking_loss cosine_similarity".split(),
)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_with_pytorch(case):
    check(case)


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_in_float32(case):
    check(case, "float32")


rng = np.random.default_rng(5)
X, Y = rng.normal(size=(3, 4)), rng.uniform(0.1, 0.9, size=(3, 4))
LABELS = np.array([2, 0, 3])
LOSSES = {
    "mse_loss": lambda x, y: ops.mse_loss(x, y),
    "smooth_l1_loss": lambda x, y: ops.smooth_l1_loss(x, y, beta=0.5),
    "huber_loss": lambda x, y: ops.huber_loss(x, y, delta=0.5),
    "cross_entropy": lambda x, y: ops.cross_entropy(x, y, label_smoothing=0.1),
    "binary_cross_entropy": lambda x, y: ops.binary_cross_entropy(ops.sigmoid(x), y),
    "binary_cross_entropy_with_logits": lambda x, y: ops.binary_cross_entropy_with_logits(x, y),
    "kl_div": lambda x, y: ops.kl_div(x, y, "batchmean"),
    "cosine_embedding_loss": lambda x, y: ops.cosine_embedding_loss(x, y, np.array([1, -1, 1])),
    "cosine_similarity": ops.cosine_similarity,
}


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives(name):
    nb.check_grads(LOSSES[name], (X, Y), order=2)


@pytest.mark.parametrize("name", LOSSES)
def test_dtypes(name):
    want = LOSSES[name](Tensor(X), Tensor(Y)).asnumpy()
    for dtype, tolerance in (("float32", 1e-5), ("float16", 2e-2)):
        got = LOSSES[name](Tensor(X.astype(dtype)), Tensor(Y.astype(dtype)))
        assert got.dtype == dtype
        np.testing.assert_allclose(got.asnumpy(), want, rtol=tolerance, atol=tolerance)


def test_cross_entropy_of_classes_is_the_formula():
    log_p = X - scipy.special.logsumexp(X, axis=1, keepdims=True)
    want = -log_p[np.arange(3), LABELS]
    for labels in (LABELS, LABELS.astype(np.int32), LABELS.astype(np.uint8)):
        got = ops.cross_entropy(Tensor(X), Tensor(labels), reduction="none")
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-14)
    nb.check_grads(lambda x: ops.cross_entropy(x, LABELS), (X,))
    one_hot = np.eye(4)[LABELS]
    for labels, sparse in ((LABELS, True), (one_hot, False), (one_hot.astype(int), False)):
        got = ops.softmax_cross_entropy_with_logits(Tensor(X), Tensor(labels), sparse)
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-14)


def test_gradient_of_cross_entropy_is_softmax_minus_one_hot():
    gradient = nb.grad(lambda x: ops.cross_entropy(x, LABELS, reduction="sum"))(X)
    np.testing.assert_allclose(gradient, scipy.special.softmax(X, axis=1) - np.eye(4)[LABELS], rtol=1e-13, atol=1e-15)


def test_losses_far_out():
    """At logits of +-1000 losses are exact and gradients numbers."""
    x = np.array([[1000.0, -1000.0], [-1000.0, 1000.0], [0.0, 0.0]])
    for dtype in ("float32", "float64"):
        labels = np.array([1, 1, 0])
        value, gradient = nb.value_and_grad(lambda x, t=labels: ops.cross_entropy(x, t, reduction="sum"))(
            x.astype(dtype)
        )
        np.testing.assert_allclose(float(value), 2000 + np.log(2), rtol=1e-6)
        np.testing.assert_array_equal(gradient, [[1, -1], [0, 0], [-0.5, 0.5]])
        z = np.array([1000.0, -1000.0, 1000.0, -1000.0], dtype)
        y = np.array([1.0, 0.0, 0.0, 1.0], dtype)
        loss = lambda z, y=y: ops.binary_cross_entropy_with_logits(z, y, reduction="sum")  # noqa: E731
        value, gradient = nb.value_and_grad(loss)(z)
        assert float(value) == 2000
        np.testing.assert_array_equal(gradient, [0, 0, 1, -1])
        assert np.isfinite(nb.grad(nb.grad(loss))(z)).all()


def test_binary_cross_entropy_at_certainty():
    p, y = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0])
    value, gradient = nb.value_and_grad(lambda p: ops.binary_cross_entropy(p, y, reduction="sum"))(p)
    assert float(value) == 200
    assert np.isfinite(gradient).all()


def test_kl_div_of_zeros():
    x, y = np.log(np.array([0.3, 0.7])), np.array([0.0, 1.0])
    value, gradients = nb.value_and_grad(lambda x, y: ops.kl_div(x, y, "sum"), (0, 1))(x, y)
    np.testing.assert_allclose(float(value), -np.log(0.7), rtol=1e-14)
    assert all(np.isfinite(g).all() for g in gradients)


def test_losses_of_zero_vectors():
    for function in (ops.cosine_similarity, lambda x, y: ops.cosine_embedding_loss(x, y, np.ones(3))):
        assert all(np.isfinite(g).all() for g in nb.grad(function, (0, 1))(0 * X, Y))


def test_ignored_classes_have_no_gradient():
    labels = np.array([2, -100, 3])
    gradient = nb.grad(lambda x: ops.cross_entropy(x, labels))(X)
    np.testing.assert_array_equal(gradient[1], 0)
    assert np.isnan(float(ops.cross_entropy(Tensor(X), np.full(3, -100))))
    assert float(ops.cross_entropy(Tensor(X), np.full(3, -100), reduction="sum")) == 0


def test_scalars_and_empty_arrays():
    assert float(ops.mse_loss(Tensor(3.0), Tensor(1.0))) == 4
    assert float(ops.l1_loss(Tensor(np.zeros((0, 3))), Tensor(np.zeros((0, 3))), "sum")) == 0
    assert ops.cross_entropy(Tensor(np.zeros((0, 3))), Tensor(np.zeros(0, int)), reduction="none").shape == (0,)
    assert ops.mse_loss(Tensor(np.ones((2, 1))), Tensor(np.ones(3)), "none").shape == (2, 3)


def test_classes_are_checked_at_every_call():
    step = nb.jit(lambda x, t: ops.cross_entropy(x, t))
    step(X, LABELS)
    with pytest.raises(RangeError, match="from 0 to 3"):
        step(X, LABELS + 1)
    for wrong in (LABELS + 1, -LABELS):
        with pytest.raises(RangeError, match="neither in the range"):
            ops.cross_entropy(Tensor(X), Tensor(wrong))


@pytest.mark.parametrize(
    "name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "kl_div"]
)
def test_reductions_are_checked(name):
    for reduction in ("avg", None, 1):
        with pytest.raises(ArgumentError, match="reduction must be one of"):
            getattr(ops, name)(Tensor(Y), Tensor(Y), reduction=reduction)


def test_errors():
    with pytest.raises(ShapeError, match="do not broadcast"):
        ops.mse_loss(Tensor(X), Tensor(X[:, :3]))
    with pytest.raises(ShapeError, match=r"shape \(3,\) for an input of shape \(3, 4\)"):
        ops.cross_entropy(Tensor(X), Tensor([1, 2]))
    with pytest.raises(DtypeError, match="must be integers"):
        ops.cross_entropy(Tensor(X), Tensor([1.0, 2.0, 0.0]))
    with pytest.raises(ShapeError, match="one per class"):
        ops.cross_entropy(Tensor(X), LABELS, weight=np.ones(3))
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        ops.cross_entropy(Tensor(X), LABELS, label_smoothing=2.0)
    with pytest.raises(ShapeError, match="axis of classes"):
        ops.nll_loss(Tensor(1.0), Tensor(0))
    with pytest.raises(ShapeError, match="sparse=True"):
        ops.softmax_cross_entropy_with_logits(Tensor(X), LABELS)
    with pytest.raises(ArgumentError, match="beta"):
        ops.smooth_l1_loss(Tensor(X), Tensor(Y), beta=-1.0)
    with pytest.raises(ShapeError, match="target of shape"):
        ops.cosine_embedding_loss(Tensor(X), Tensor(Y), np.ones(4))
