"""Activation functions and attention agree with recorded PyTorch."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor, ops
from nbgrad.errors import ArgumentError, DtypeError, ShapeError

from .recorded_cases import cases, check, name

pytestmark = pytest.mark.unoptimized

CASES = cases(
    *"relu relu6 leaky_relu prelu elu celu selu sigmoid gelu silu mish softplus logsigmoid softsign tanhshrink".split(),
    *"hardtanh hardsigmoid hardswish hardshrink softshrink softmax log_softmax softmin glu".split(),
    "scaled_dot_product_attention",
)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_with_pytorch(case):
    check(case)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_in_float32(case):
    check(case, "float32")


X = np.array([-1.3, -0.4, 0.3, 2.1])
SMOOTH = "elu celu selu gelu silu mish softplus logsigmoid tanhshrink sigmoid softmax log_softmax softmin".split()
POINTWISE = [
    *SMOOTH[:10],
    *"relu relu6 leaky_relu hardtanh hardsigmoid hardswish hardshrink softshrink softsign".split(),
]


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("function", SMOOTH)
def test_derivatives_of_second_order(function):
    nb.check_grads(getattr(ops, function), (X,), order=3)


@pytest.mark.parametrize("function", POINTWISE)
def test_any_shape_and_dtype(function):
    call = getattr(ops, function)
    values = call(Tensor(X)).asnumpy()
    for dtype in ("float16", "float32", "float64"):
        for shape in ((4,), (2, 2), (4, 1, 1), (0, 3), ()):
            x = np.resize(X, shape).astype(dtype)
            result = call(Tensor(x))
            assert (result.shape, result.dtype) == (shape, np.dtype(dtype))
            want = np.resize(values, shape)
            np.testing.assert_allclose(result.asnumpy(), want, rtol=4e-3 if dtype == "float16" else 2e-6, atol=1e-3)
            assert nb.grad(call)(x).dtype == dtype
    assert call(Tensor([1, -2])).dtype.kind in ("f" if function != "relu" else "i")
    assert np.isnan(call(Tensor([np.nan])).item())


@pytest.mark.parametrize("function", [*POINTWISE, *SMOOTH[10:]])
def test_no_gradient_is_nan_far_out(function):
    x = np.array([-1e4, -1000.0, 0.0, 1000.0, 1e4])
    for dtype in ("float32", "float64"):
        assert np.isfinite(nb.grad(getattr(ops, function))(x.astype(dtype))).all()


def test_softmax_far_out():
    for function, want in ((ops.softmax, [0.0, 1.0]), (ops.log_softmax, [-2000.0, 0.0])):
        np.testing.assert_array_equal(function(Tensor(np.array([-1000.0, 1000.0]))).asnumpy(), want)
    assert ops.softmax(Tensor(3.0)).item() == 1
    assert ops.log_softmax(Tensor(3.0)).item() == 0
    assert ops.softmax(Tensor([1, 2]), dtype=nb.float32).dtype == np.float32
    assert ops.softmax(Tensor(np.zeros((0, 3)))).shape == (0, 3)
    with pytest.raises(ShapeError):
        ops.softmax(Tensor(3.0), 1)
    with pytest.raises(DtypeError, match="floating"):
        ops.softmax(Tensor([1, 2]), dtype=nb.int32)


def test_tails_have_all_digits():
    """Against mpmath, where subtracting from 1 would lose everything."""
    x = -40.0
    with mpmath.workdps(40):
        wanted = {"logsigmoid": -mpmath.log1p(mpmath.exp(40)), "silu": x / (1 + mpmath.exp(40))}
        wanted["softplus"] = mpmath.log1p(mpmath.exp(-40))
    for function, want in wanted.items():
        np.testing.assert_allclose(getattr(ops, function)(Tensor(np.array(x))).item(), float(want), rtol=1e-15)


def test_parameters_differentiate():
    for function, parameter in (("elu", 1.5), ("celu", 1.5), ("leaky_relu", 0.1), ("softplus", 0.8)):
        nb.check_grads(getattr(ops, function), (X, parameter))
    nb.check_grads(ops.prelu, (np.stack([X, X + 0.1]), np.array([0.1, 0.2, 0.3, 0.4])))


def test_sizes_do_not_compile_again():
    step = nb.grad(lambda x: ops.softmax(ops.gelu(x)) * x)
    step(np.ones((3, 5), np.float32))
    before = nb.counters["compiled"]
    step(np.ones((4, 7), np.float32))
    assert nb.counters["compiled"] == before


def test_attention_of_queries_that_see_nothing():
    q, v = np.ones((2, 3)), np.array([[1.0], [2.0]])
    mask = np.array([[False, False], [True, False]])

    def function(q, v):
        return ops.scaled_dot_product_attention(q, q, v, attn_mask=mask)

    np.testing.assert_array_equal(function(Tensor(q), Tensor(v)).asnumpy(), [[0.0], [1.0]])
    for g in nb.grad(function, (0, 1))(q, v):
        assert np.isfinite(g).all()
    nb.check_grads(function, (q, v))


def test_attention_is_the_formula():
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(3, 6, 5)), rng.normal(size=(6, 2))
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(5)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    got = ops.scaled_dot_product_attention(Tensor(q), Tensor(k), Tensor(v)).asnumpy()
    np.testing.assert_allclose(got, weights @ v, rtol=1e-13)
    nb.check_grads(ops.scaled_dot_product_attention, (q[0, 0], k[0], v))


def test_errors():
    with pytest.raises(ArgumentError, match=r"'none' or 'tanh', but is 'fast'"):
        ops.gelu(Tensor(X), approximate="fast")
    with pytest.raises(ShapeError, match="must be even"):
        ops.glu(Tensor(X[:3]))
    with pytest.raises(ShapeError, match="1 or 3 elements"):
        ops.prelu(Tensor(np.ones((2, 3))), Tensor(np.ones(2)))
    with pytest.raises(ShapeError, match="one number"):
        ops.elu(Tensor(X), Tensor(X))
    with pytest.raises(ArgumentError, match="not both"):
        ops.scaled_dot_product_attention(np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 1)), np.ones((2, 2)), 0.0, True)
    with pytest.raises(ShapeError, match="value of shape"):
        ops.scaled_dot_product_attention(np.ones((2, 3)), np.ones((2, 4)), np.ones((2, 1)))
    with pytest.raises(ShapeError, match="attn_mask has shape"):
        ops.scaled_dot_product_attention(np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 1)), np.ones((3, 3)))
