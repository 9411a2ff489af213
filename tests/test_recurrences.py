"""`ops.LSTM`, `DynamicRNN`, `DynamicGRUV2`, maxima of volumes with places, deformed windows and SSIM, by formulas.

MindSpore's results for those that its CPU has are in test_mindspore_world.py.
"""

from __future__ import annotations

import itertools
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor, nn, ops
from nbgrad.errors import ArgumentError, ShapeError

pytestmark = pytest.mark.unoptimized

RANDOM = np.random.default_rng(7)
T, N, INPUTS, HIDDEN = 4, 2, 3, 2


def drawn(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


X, W, B, H, C = (
    drawn(T, N, INPUTS),
    drawn(INPUTS + HIDDEN, 4 * HIDDEN),
    drawn(4 * HIDDEN),
    drawn(N, HIDDEN),
    drawn(N, HIDDEN),
)


def lstm_by_hand(clip: float = np.inf, forget_bias: float = 0.0, order: str = "igfo") -> list[np.ndarray]:
    """The outputs of DynamicRNN, turn by turn."""
    h, c, rows = H, C, []
    for x in X:
        gates = dict(zip(order, np.split(np.concatenate([x, h], 1) @ W + B, 4, axis=1), strict=True))
        i, g, f, o = sigmoid(gates["i"]), np.tanh(gates["g"]), sigmoid(gates["f"] + forget_bias), sigmoid(gates["o"])
        c = np.clip(f * c + i * g, -clip, clip)
        h = o * np.tanh(c)
        rows.append((h, h, c, i, g, f, o, np.tanh(c)))
    return [np.stack(one) for one in zip(*rows, strict=True)]


@pytest.mark.parametrize("options", [{}, {"forget_bias": 1.0, "cell_clip": 0.4}])
def test_ascends_lstm(options: dict[str, float]) -> None:
    found = ops.DynamicRNN(**options)(X, W, B, None, H[None], C[None])
    expected = lstm_by_hand(options.get("cell_clip", np.inf), options.get("forget_bias", 0.0))
    assert len(found) == 8
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other, rtol=1e-12, atol=1e-14)


def test_ascends_lstm_begins_with_zeros() -> None:
    first = ops.DynamicRNN()(X, W, B)[0][0]
    gates = np.split(X[0] @ W[:INPUTS] + B, 4, axis=1)
    np.testing.assert_allclose(
        first.asnumpy(), sigmoid(gates[3]) * np.tanh(sigmoid(gates[0]) * np.tanh(gates[1])), rtol=1e-12
    )


@pytest.mark.parametrize("order", ["rzh", "zrh"])
def test_ascends_gru(order: str) -> None:
    of_inputs, of_states, b, d = (
        drawn(INPUTS, 3 * HIDDEN),
        drawn(HIDDEN, 3 * HIDDEN),
        drawn(3 * HIDDEN),
        drawn(3 * HIDDEN),
    )
    found = ops.DynamicGRUV2(gate_order=order)(X, of_inputs, of_states, b, d, None, H)
    h, rows = H, []
    for x in X:
        one = dict(zip(order, np.split(x @ of_inputs + b, 3, axis=1), strict=True))
        other = dict(zip(order, np.split(h @ of_states + d, 3, axis=1), strict=True))
        r, z = (sigmoid(one[name] + other[name]) for name in "rz")
        new = np.tanh(one["h"] + r * other["h"])
        h = (1 - z) * new + z * h
        rows.append((h, h, z, r, new, other["h"]))
    for one, other in zip(found, zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(one.asnumpy(), np.stack(other), rtol=1e-12, atol=1e-14)


def test_one_vector_of_weights_is_that_of_the_layer() -> None:
    """`nn.LSTM` is compared with PyTorch; both layouts of the vector give its results, in two layers, both ways."""
    net = nn.LSTM(INPUTS, HIDDEN, 2, bidirectional=True, dtype=np.float64)
    names = ["l0", "l0_reverse", "l1", "l1_reverse"]
    kinds, weights = ("weight_ih", "weight_hh", "bias_ih", "bias_hh"), net.parameters_dict()
    parts = {name: [weights[f"{kind}_{name}"].asnumpy() for kind in kinds] for name in names}
    on_cpus = [
        *(parts[n][0] for n in names),
        *(parts[n][1] for n in names),
        *(parts[n][2] + parts[n][3] for n in names),
    ]
    on_gpus = [*(w for n in names for w in parts[n][:2]), *(b for n in names for b in parts[n][2:])]
    h, c = drawn(4, N, HIDDEN), drawn(4, N, HIDDEN)
    expected, (last_h, last_c) = net(Tensor(X), (Tensor(h), Tensor(c)))
    for layout in (on_cpus, on_gpus):
        vector = np.concatenate([one.ravel() for one in layout]).reshape(-1, 1, 1)
        found = ops.LSTM(INPUTS, HIDDEN, 2, True, True, 0.0)(X, h, c, vector)
        for one, other in zip(found[:3], (expected, last_h, last_c), strict=True):
            np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-12, atol=1e-14)


def test_recurrences_have_gradients() -> None:
    nb.check_grads(lambda x, w, b: (ops.DynamicRNN()(x, w, b)[0] ** 2).sum(), (X, W, B), order=2)
    of_inputs, of_states = drawn(INPUTS, 3 * HIDDEN), drawn(HIDDEN, 3 * HIDDEN)
    nb.check_grads(lambda x, u, v: (ops.DynamicGRUV2()(x, u, v)[1] ** 2).sum(), (X, of_inputs, of_states), order=2)
    form, zeros = ops.LSTM(INPUTS, HIDDEN, 1, False, False, 0.0), np.zeros((1, N, HIDDEN))
    vector = drawn(4 * HIDDEN * (INPUTS + HIDDEN), 1, 1)
    nb.check_grads(lambda x, w: (form(x, zeros, zeros, w)[0] ** 2).sum(), (X, vector), order=2)


# ----- Windows -----


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation", "ceil"),
    [
        ((2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1), False),
        ((2, 3, 2), (2, 1, 3), (1, 1, 1), (1, 1, 1), True),
        ((3, 3, 3), (2, 2, 2), (1, 0, 1), (1, 2, 1), True),
        ((2, 2, 2), (1, 1, 1), (0, 0, 0), (2, 2, 2), False),
    ],
)
def test_maxima_of_volumes_and_their_places(kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> None:
    x = drawn(1, 2, 5, 6, 7)
    values, places = ops.max_pool3d(x, kernel, stride, padding, dilation, ceil, True)
    sizes = []
    for n, k, s, p, d in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True):
        rest = n + 2 * p - d * (k - 1) - 1
        count = (-(-rest // s) if ceil else rest // s) + 1
        sizes.append(count - 1 if ceil and (count - 1) * s >= n + p else count)
    assert values.shape == places.shape == (1, 2, *sizes)
    for channel, *at in itertools.product(range(2), *map(range, sizes)):
        window = {}
        for step in itertools.product(*map(range, kernel)):
            spot = tuple(a * s - p + t * d for a, s, p, t, d in zip(at, stride, padding, step, dilation, strict=True))
            if all(0 <= one < n for one, n in zip(spot, x.shape[2:], strict=True)):
                window[spot] = x[(0, channel, *spot)]
        best = max(window, key=lambda spot: window[spot])
        assert values[(0, channel, *at)] == window[best]
        assert places[(0, channel, *at)] == np.ravel_multi_index(best, x.shape[2:])
    assert ops.max_pool3d(x, kernel, stride, padding, dilation, ceil).tolist() == values.tolist()
    nb.check_grads(
        lambda x: (ops.max_pool3d(x, kernel, stride, padding, dilation, ceil, True)[0] ** 2).sum(), (x,), order=1
    )


def test_windows_that_are_not_moved_are_those_of_a_convolution() -> None:
    x, w, b = drawn(2, 4, 6, 7), drawn(6, 2, 3, 2), drawn(6)
    offsets = np.zeros((2, 3 * 2 * 6, 3, 6))
    offsets[:, 24:] = 0.5  # what each element counts
    found = ops.deformable_conv2d(x, w, offsets, (3, 2), (1, 1, 2, 1), (1, 0, 0, 1), b, (1, 1, 1, 2), 2, 2)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 1)))
    plain = ops.conv2d(padded, w, b, (2, 1), "valid", 0, (1, 2), 2)
    np.testing.assert_allclose(
        found.asnumpy() - b[:, None, None], 0.5 * (plain.asnumpy() - b[:, None, None]), rtol=1e-12, atol=1e-12
    )


def test_moved_windows_have_gradients() -> None:
    x, w, offsets = drawn(1, 2, 4, 4), drawn(2, 2, 2, 2), 0.3 * drawn(1, 12, 3, 3)

    def total(x: Any, w: Any, offsets: Any) -> Any:
        return (ops.deformable_conv2d(x, w, offsets, (2, 2), (1, 1, 1, 1), (0, 0, 0, 0)) ** 2).sum()

    nb.check_grads(total, (x, w, offsets), order=1)


def test_similarity_of_images() -> None:
    images = RANDOM.uniform(size=(2, 3, 24, 24))
    assert nn.SSIM()(images, images).tolist() == pytest.approx([1.0, 1.0], rel=1e-12)
    darker, noisy = 0.7 * images, images + 0.3 * RANDOM.normal(size=images.shape)
    assert all(nn.SSIM()(images, darker).asnumpy() > nn.SSIM()(images, noisy).asnumpy())
    nb.check_grads(lambda x: nn.MSSSIM(power_factors=(0.4, 0.6), filter_size=3)(x, images).sum(), (noisy,), order=1)


def deformed(strides: Any) -> Any:
    ones = np.ones((1, 1, 3, 3))
    return ops.deformable_conv2d(ones, ones, ones, (3, 3), strides, (0, 0, 0, 0))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ops.DynamicRNN(direction="BIDIRECTIONAL")(X, W, B), ArgumentError),
        (lambda: ops.DynamicRNN()(X, W, B, np.array([3, 4])), ArgumentError),
        (lambda: ops.DynamicRNN()(X, W[1:], B), ShapeError),
        (lambda: ops.DynamicGRUV2(gate_order="hzr")(X, W, W), ArgumentError),
        (lambda: ops.DynamicGRUV2()(X[0], W, W), ShapeError),
        (lambda: ops.LSTM(INPUTS, HIDDEN, 1, True, False, 0.0)(X, H[None], C[None], np.ones(5)), ShapeError),
        (lambda: ops.LSTM(INPUTS + 1, HIDDEN, 1, True, False, 0.0)(X, H[None], C[None], np.ones(5)), ShapeError),
        (lambda: deformed((1, 1, 1, 1)), ShapeError),
        (lambda: deformed((1, 2)), ArgumentError),
        (lambda: nn.SSIM()(np.ones((1, 1, 5, 5)), np.ones((1, 1, 5, 5))), ShapeError),
        (lambda: nn.SSIM(0.0), ArgumentError),
        (lambda: ops.Randperm(2)(Tensor([3])), ArgumentError),
    ],
)
def test_bad_input(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


# ----- Smaller forms -----


def test_copies_and_random_orders() -> None:
    x = Tensor([1.0, 2.0])
    y = ops.Identity()(x)
    y[0] = 9.0
    assert (x.tolist(), y.tolist()) == ([1.0, 2.0], [9.0, 2.0])
    found = ops.Randperm(5, pad=-1)(Tensor([3])).tolist()
    assert sorted(found[:3]) == [0, 1, 2]
    assert found[3:] == [-1, -1]
    assert sorted(ops.RandpermV2(3, 4)(6).tolist()) == list(range(6))
    assert ops.RandpermV2(3, 4)(6).tolist() == ops.RandpermV2(3, 4)(6).tolist()
    numpy: Any = nb.numpy  # whose stubs have NumPy's names only
    drawn_integers = numpy.randint(2, 5, (200,))
    assert ({*drawn_integers.tolist()}, drawn_integers.dtype) == ({2, 3, 4}, nb.int32)
    assert numpy.randn(2, 3).shape == numpy.rand(2, 3).shape == (2, 3)
    assert import_module("nbgrad.ops.functional").pows(Tensor([3.0]), 2.0).tolist() == [9.0]
