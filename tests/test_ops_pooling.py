"""Pooling and resampling agree with recorded PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor, ops
from nbgrad.errors import ArgumentError, ShapeError

from .recorded_cases import cases, check, name

pytestmark = pytest.mark.unoptimized

CASES = cases(
    *"max_pool1d max_pool2d avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d".split(),
    *"adaptive_max_pool2d interpolate".split(),
)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_with_pytorch(case):
    check(case)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_in_float32(case):
    check(case, "float32")


rng = np.random.default_rng(11)
X = rng.permutation(2 * 3 * 7 * 6).reshape(2, 3, 7, 6) / 50.0
SIGNAL = X[:, :, 0]
POOLS = {
    "max": lambda x: ops.max_pool2d(x * x, 3, 2, 1),
    "max1d": lambda x: ops.max_pool1d(x[:, :, 0] * x[:, :, 1], 2),
    "avg": lambda x: ops.avg_pool2d(x * x, 3, 2, 1, count_include_pad=False),
    "avg side by side": lambda x: ops.avg_pool2d(x[:, :, :6] ** 3, (3, 2), None),
    "adaptive avg": lambda x: ops.adaptive_avg_pool2d(x * x, (3, 4)),
    "adaptive max": lambda x: ops.adaptive_max_pool2d(x * x, (3, 4)),
    "nearest": lambda x: ops.interpolate(x * x, (5, 9)),
    "bilinear": lambda x: ops.interpolate(x * x, (5, 9), mode="bilinear"),
}


@pytest.mark.parametrize("name", POOLS)
def test_derivatives(name):
    nb.check_grads(POOLS[name], (X,))


@pytest.mark.parametrize("name", POOLS)
def test_narrow_dtypes_and_jacobians(name):
    want = POOLS[name](Tensor(X)).asnumpy()
    for dtype, tolerance in (("float32", 1e-5), ("float16", 1e-2)):
        got = POOLS[name](Tensor(X.astype(dtype)))
        assert got.dtype == dtype
        np.testing.assert_allclose(got.asnumpy(), want, rtol=tolerance, atol=tolerance)
    x = X[:1, :1]
    np.testing.assert_allclose(nb.jacrev(POOLS[name])(x), nb.jacfwd(POOLS[name])(x), rtol=1e-12, atol=1e-13)


def test_maximum_is_numpys():
    windows = np.lib.stride_tricks.sliding_window_view(X, (3, 2), axis=(2, 3))[:, :, ::2]
    np.testing.assert_array_equal(ops.max_pool2d(Tensor(X), (3, 2), (2, 1)).asnumpy(), windows.max(axis=(-1, -2)))
    np.testing.assert_allclose(
        ops.avg_pool2d(Tensor(X), (3, 2), (2, 1)).asnumpy(), windows.mean(axis=(-1, -2)), rtol=1e-14
    )


def test_first_maximum_gets_the_gradient():
    gradient = nb.grad(lambda x: ops.max_pool2d(x, 2))(np.ones((1, 1, 4, 4)))
    np.testing.assert_array_equal(gradient[0, 0], np.kron(np.ones((2, 2)), [[1, 0], [0, 0]]))


def test_nan_and_padding():
    x = np.full((1, 1, 4, 4), -5.0)
    assert (ops.max_pool2d(Tensor(x), 3, 1, 1).asnumpy() == -5).all()
    x[0, 0, 1, 1] = np.nan
    assert np.isnan(ops.max_pool2d(Tensor(x), 2).asnumpy()[0, 0, 0, 0])
    x[0, 0, 1, 1] = -np.inf
    assert ops.max_pool2d(Tensor(x), 2).asnumpy()[0, 0, 0, 0] == -5


def test_indices_find_the_maxima():
    best, at = ops.max_pool2d(Tensor(X), 3, 2, 1, return_indices=True)
    assert at.dtype == np.int64
    planes = X.reshape(2, 3, -1)
    np.testing.assert_array_equal(
        np.take_along_axis(planes, at.asnumpy().reshape(2, 3, -1), -1), best.asnumpy().reshape(2, 3, -1)
    )


def test_large_windows_do_not_make_large_graphs():
    x = rng.normal(size=(1, 2, 40, 40))
    for function in (ops.max_pool2d, ops.avg_pool2d):
        gradients = [nb.grad(lambda x, f=function, k=k: f(x, k, 1)) for k in (2, 15)]
        small, large = [len(nb.explain(gradient, x).splitlines()) for gradient in gradients]
        assert large <= small + 5


def test_sizes_do_not_compile_again():
    step = nb.jit(nb.grad(lambda x: ops.max_pool2d(x, 3, 2, 1) ** 2 + ops.avg_pool2d(x, 3, 2, 1)))
    step(X)
    before = nb.counters["compiled"]
    step(rng.normal(size=(1, 3, 11, 10)))
    assert nb.counters["compiled"] == before


def test_empty_batches_and_single_images():
    assert ops.max_pool2d(Tensor(X[:0]), 2).shape == (0, 3, 3, 3)
    assert ops.avg_pool2d(Tensor(X[:0]), 3, 2, 1).shape == (0, 3, 4, 3)
    for function in (ops.max_pool2d, ops.avg_pool2d):
        np.testing.assert_array_equal(function(Tensor(X[0]), 2).asnumpy(), function(Tensor(X), 2).asnumpy()[0])
    np.testing.assert_array_equal(
        ops.max_pool1d(Tensor(SIGNAL[0]), 2).asnumpy(), ops.max_pool1d(Tensor(SIGNAL), 2).asnumpy()[0]
    )


def test_errors():
    with pytest.raises(ShapeError, match="windows of max_pool2d do not fit"):
        ops.max_pool2d(Tensor(X), 9)
    with pytest.raises(ArgumentError, match="at most half of the kernel"):
        ops.max_pool2d(Tensor(X), 2, padding=2)
    with pytest.raises(ShapeError, match="contain a part of the input"):
        ops.max_pool2d(Tensor(X[:, :, :1]), (2, 1), padding=(2, 0), dilation=(3, 1))
    with pytest.raises(ArgumentError, match="one integer"):
        ops.avg_pool1d(Tensor(SIGNAL), (2, 2))
    with pytest.raises(ShapeError, match="cannot make an output"):
        ops.adaptive_avg_pool2d(Tensor(X), 0)
    with pytest.raises(ArgumentError, match="one or two integers"):
        ops.adaptive_avg_pool2d(Tensor(X), (1, 2, 3))
    with pytest.raises(ArgumentError, match="either size or scale_factor"):
        ops.interpolate(Tensor(X))
    with pytest.raises(ArgumentError, match="mode must be one of"):
        ops.interpolate(Tensor(X), 3, mode="cubic")
    with pytest.raises(ShapeError, match="with 3 axes"):
        ops.interpolate(Tensor(X), 3, mode="linear")
    with pytest.raises(ArgumentError, match="align_corners"):
        ops.interpolate(Tensor(X), 3, align_corners=True)
    with pytest.raises(ShapeError, match="must be positive"):
        ops.interpolate(Tensor(X), scale_factor=0.1)
