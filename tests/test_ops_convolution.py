"""Convolutions agree with recorded PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import nbgrad as nb
from nbgrad import Tensor, ops
from nbgrad.errors import ArgumentError, ShapeError
from nbgrad.graph import builders
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import constant
from nbgrad.runtime.evaluate import compute

from .recorded_cases import cases, check, name

pytestmark = pytest.mark.unoptimized

CASES = cases(*"conv1d conv2d conv_transpose2d unfold fold".split())


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_with_pytorch(case):
    check(case)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_in_float32(case):
    check(case, "float32")


rng = np.random.default_rng(7)
X, W = rng.normal(size=(2, 4, 6, 5)), rng.normal(size=(6, 2, 3, 2))


def conv(x, w):
    return ops.conv2d(x, w, stride=(2, 1), pad_mode="pad", padding=(1, 2), groups=2)


def test_convolution_is_scipys():
    want = np.zeros((2, 3, 4, 4))
    w = rng.normal(size=(3, 4, 3, 2))
    for n, o, c in np.ndindex(2, 3, 4):
        want[n, o] += scipy.signal.correlate2d(X[n, c], w[o, c], "valid")
    np.testing.assert_allclose(ops.conv2d(Tensor(X), Tensor(w)).asnumpy(), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("stride", [1, 2, (2, 3)])
@pytest.mark.parametrize("kernel", [(1, 1), (2, 3), (3, 3), (4, 2)])
def test_same_has_the_size_of_the_input_divided_by_the_stride(stride, kernel):
    w = rng.normal(size=(3, 4, *kernel))
    steps = stride if isinstance(stride, tuple) else (stride, stride)
    got = ops.conv2d(Tensor(X), Tensor(w), stride=stride, pad_mode="same")
    assert got.shape == (2, 3, -(-6 // steps[0]), -(-5 // steps[1]))
    back = ops.conv_transpose2d(Tensor(X), Tensor(np.swapaxes(w, 0, 1)), stride=stride, pad_mode="same")
    assert back.shape == (2, 3, 6 * steps[0], 5 * steps[1])
    valid = ops.conv_transpose2d(Tensor(X), Tensor(np.swapaxes(w, 0, 1)), stride=stride, pad_mode="valid")
    assert valid.shape == (2, 3, *[n * s + max(k - s, 0) for n, s, k in zip((6, 5), steps, kernel, strict=True)])


@pytest.mark.parametrize("pad_mode", ["same", "valid", "pad"])
@pytest.mark.parametrize("stride", [1, 2])
def test_transposed_convolution_is_the_adjoint(stride, pad_mode):
    """<conv(x, w), y> = <x, conv_transpose(y, w)> for images of stride times the size."""
    padding = {"padding": (1, 0, 1, 2)} if pad_mode == "pad" else {}
    w = rng.normal(size=(3, 2, 3, 3))
    y = rng.normal(size=(2, 3, 4, 5))
    adjoint = ops.conv_transpose2d(Tensor(y), Tensor(w), stride=stride, pad_mode=pad_mode, **padding).asnumpy()
    x = rng.normal(size=adjoint.shape)
    forward = ops.conv2d(Tensor(x), Tensor(w), stride=stride, pad_mode=pad_mode, **padding).asnumpy()
    assert forward.shape == y.shape
    np.testing.assert_allclose(np.sum(forward * y), np.sum(x * adjoint), rtol=1e-12)
    np.testing.assert_allclose(
        nb.grad(lambda x: ops.conv2d(x, w, stride=stride, pad_mode=pad_mode, **padding) * y)(x), adjoint, rtol=1e-11
    )


def test_fold_is_the_adjoint_of_unfold():
    options = {"kernel_size": (3, 2), "stride": (1, 2), "padding": 1, "dilation": (1, 2)}
    columns = ops.unfold(Tensor(X), **options).asnumpy()
    y = rng.normal(size=columns.shape)
    images = ops.fold(Tensor(y), (6, 5), **options).asnumpy()
    np.testing.assert_allclose(np.sum(columns * y), np.sum(X * images), rtol=1e-12)


def test_derivatives_of_second_order():
    nb.check_grads(conv, (X, W))
    nb.check_grads(lambda x, w: conv(x * x, w) ** 2, (X[:1], W), order=3, modes=["rev"])
    nb.check_grads(
        lambda x, w: ops.conv_transpose2d(x, w, stride=2, groups=2), (X[:1, :, :3], rng.normal(size=(4, 1, 2, 2)))
    )
    nb.check_grads(lambda x, w: ops.conv1d(x, w, stride=2) ** 2, (X[0], rng.normal(size=(2, 6, 2))))


def test_jacobians_are_those_of_one_example():
    """Jacobians batch the primitives: compare with the gradient of every output."""
    x, w = X[:1], W
    jacobian = nb.jacrev(lambda x: conv(x, w))(x)
    forward = nb.jacfwd(lambda x: conv(x, w))(x)
    np.testing.assert_allclose(jacobian, forward, rtol=1e-12, atol=1e-13)
    for place in ((0, 0, 0, 0), (0, 3, 1, 2), (0, 5, 2, 4)):
        one = nb.grad(lambda x, p=place: conv(x, w)[p])(x)
        np.testing.assert_allclose(jacobian[place], one, rtol=1e-12, atol=1e-13)
    weights = nb.jacrev(lambda w: conv(x, w))(w)
    np.testing.assert_allclose(weights, nb.jacfwd(lambda w: conv(x, w))(w), rtol=1e-12, atol=1e-13)


def test_vmap_does_each_batch_of_images_by_itself():
    """Several images in each batch, so that no two of the axes have one length."""
    options = {"kernel_size": (3, 2), "stride": (1, 2), "padding": 1}
    batches = rng.normal(size=(3, 2, 4, 6, 5))
    columns = nb.vmap(lambda x: ops.unfold(x, **options))(batches)
    one_by_one = np.stack([ops.unfold(Tensor(x), **options).asnumpy() for x in batches])
    np.testing.assert_array_equal(columns, one_by_one)
    images = nb.vmap(lambda y: ops.fold(y, (6, 5), **options))(one_by_one)
    np.testing.assert_array_equal(
        images, np.stack([ops.fold(Tensor(y), (6, 5), **options).asnumpy() for y in one_by_one])
    )


def test_narrow_dtypes():
    want = conv(Tensor(X), Tensor(W)).asnumpy()
    for dtype, tolerance in (("float32", 1e-5), ("float16", 2e-2)):
        got = conv(Tensor(X.astype(dtype)), Tensor(W.astype(dtype)))
        assert got.dtype == dtype
        np.testing.assert_allclose(got.asnumpy(), want, rtol=tolerance, atol=tolerance)
        assert [g.dtype for g in nb.grad(conv, (0, 1))(X.astype(dtype), W.astype(dtype))] == [dtype, dtype]
    assert ops.conv2d(Tensor([[[1, 2]]]), Tensor([[[[2]]]])).asnumpy().tolist() == [[[2.0, 4.0]]]


def test_windows_anywhere():
    """Any geometry, also windows that lie outside of the image: compiled as interpreted."""
    for k in range(120):
        size, kernel, stride, dilation, before, count = (
            tuple(int(n) for n in rng.integers(low, high, 2))
            for low, high in ((1, 7), (1, 5), (1, 4), (1, 4), (0, 6), (1, 9))
        )
        if k % 2:
            # The windows of "same" convolutions are copied in another way.
            stride, count = (1, 1), (count[0], size[1])
        windows = (kernel, stride, dilation, before, count)
        columns = builders.unfold(constant(rng.normal(size=(2, 3, *size))), windows)
        nodes = [columns, builders.fold(columns * columns, windows, size)]
        for got, want in zip(compute(nodes), interpret(nodes), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13, err_msg=f"{windows} on {size}")


def test_empty_batches():
    y = ops.conv2d(Tensor(X[:0]), Tensor(W), groups=2)
    assert y.shape == (0, 6, 4, 4)
    _, gradients = nb.value_and_grad(lambda x, w: ops.conv2d(x, w, groups=2), (0, 1))(X[:0], W)
    assert gradients[0].shape == (0, 4, 6, 5)
    np.testing.assert_array_equal(gradients[1], 0 * W)


def test_sizes_do_not_compile_again():
    step = nb.jit(nb.grad(lambda x, w: conv(x, w) ** 2, (0, 1)))
    step(X.astype(np.float32), W.astype(np.float32))
    before = nb.counters["compiled"]
    x = rng.normal(size=(3, 4, 9, 8)).astype(np.float32)
    step(x, W.astype(np.float32))
    assert nb.counters["compiled"] == before


def test_large_batches_use_threads_and_give_the_same():
    x, w = rng.normal(size=(40, 8, 14, 14)).astype(np.float32), rng.normal(size=(8, 8, 3, 3)).astype(np.float32)
    step = nb.jit(nb.grad(lambda x, w: ops.conv2d(x, w, pad_mode="same") ** 2, (0, 1)))
    threads = nb.get_num_threads()
    results = []
    for count in (1, 2):
        nb.set_num_threads(count)
        results.append(step(x, w))
    nb.set_num_threads(threads)
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-4, atol=1e-3)
    single = nb.grad(lambda x: ops.conv2d(x, w, pad_mode="same") ** 2)(x[7:8])
    np.testing.assert_allclose(results[0][0][7:8], single, rtol=1e-4, atol=1e-3)


def test_errors():
    with pytest.raises(ArgumentError, match="pad_mode must be one of valid, same, pad"):
        ops.conv2d(Tensor(X), Tensor(W), groups=2, pad_mode="full")
    with pytest.raises(ArgumentError, match="only used with pad_mode='pad'"):
        ops.conv2d(Tensor(X), Tensor(W), groups=2, padding=1)
    with pytest.raises(ShapeError, match="has 4 channels and the weight 2 in each of 1 groups"):
        ops.conv2d(Tensor(X), Tensor(W))
    with pytest.raises(ShapeError, match="must divide the 4 channels"):
        ops.conv2d(Tensor(X), Tensor(W), groups=3)
    with pytest.raises(ShapeError, match="larger than its padded input"):
        ops.conv2d(Tensor(X), Tensor(np.ones((1, 4, 7, 1))))
    with pytest.raises(ShapeError, match="one per output channel"):
        ops.conv2d(Tensor(X), Tensor(W), np.ones(4), groups=2)
    with pytest.raises(ShapeError, match=r"\(N, C, H, W\) or \(C, H, W\)"):
        ops.conv2d(Tensor(X[0, 0]), Tensor(W))
    with pytest.raises(ArgumentError, match="stride must be one or two integers of at least 1"):
        ops.conv2d(Tensor(X), Tensor(W), stride=0, groups=2)
    with pytest.raises(ArgumentError, match="1, 2 or 4 integers"):
        ops.conv2d(Tensor(X), Tensor(W), pad_mode="pad", padding=(1, 1, 1), groups=2)
    with pytest.raises(ArgumentError, match="one integer"):
        ops.conv1d(Tensor(X[0]), Tensor(W[:, :, 0]), stride=(1, 2))
    with pytest.raises(ArgumentError, match="smaller than the stride"):
        ops.conv_transpose2d(Tensor(X), Tensor(np.ones((4, 1, 2, 2))), output_padding=1)
    with pytest.raises(ShapeError, match="the padding is too large"):
        ops.conv_transpose2d(Tensor(X), Tensor(np.ones((4, 1, 1, 1))), padding=3)
    with pytest.raises(ShapeError, match="input of fold"):
        ops.fold(Tensor(X[0, 0]), (4, 4), 2)


@pytest.mark.parametrize("size", [(8, 9), (3, 4)], ids=["an image at a time", "all images at once"])
@pytest.mark.parametrize("groups", [1, 2])
def test_filters_of_one_pixel_are_products(size: tuple[int, int], groups: int) -> None:
    """Sums over channels at each pixel: einsum's value and derivatives."""
    rng = np.random.default_rng(5)
    x, w, c = (rng.normal(size=shape) for shape in [(3, 4, *size), (6, 4 // groups, 1, 1), (3, 6, *size)])
    apart = x.reshape(3, groups, 4 // groups, *size)
    filters = w.reshape(groups, 6 // groups, 4 // groups)
    cotangents = c.reshape(3, groups, 6 // groups, *size)
    value = np.einsum("ngchw,goc->ngohw", apart, filters).reshape(c.shape)
    by_x = np.einsum("ngohw,goc->ngchw", cotangents, filters).reshape(x.shape)
    by_w = np.einsum("ngohw,ngchw->goc", cotangents, apart).reshape(w.shape)

    def loss(x: Any, w: Any) -> Any:
        return (ops.conv2d(x, w, groups=groups) * c).sum()

    np.testing.assert_allclose(nb.jit(lambda x, w: ops.conv2d(x, w, groups=groups))(x, w), value, rtol=1e-12)
    for found, expected in zip(nb.jit(nb.grad(loss, (0, 1)))(x, w), (by_x, by_w), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    step = rng.normal(size=w.shape)
    _, tangent = nb.jvp(lambda w: nb.grad(loss)(x, w), (w,), (step,))
    np.testing.assert_allclose(
        tangent,
        np.einsum("ngohw,goc->ngchw", cotangents, step.reshape(filters.shape)).reshape(x.shape),
        rtol=1e-11,
        atol=1e-12,
    )
