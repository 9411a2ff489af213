"""Rows for what networks are made of: activations, losses, normalisation and convolution.

`nb.ops` has them; the expected values come from their definitions, written in NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import nbgrad as nb

from .operation import Operation, apart, between, operation, real

o = nb.ops


def activation(name: str, reference: Any, peers: str = "", function: Any = None, **options: Any) -> Operation:
    """A function of `nb.ops` of one array, and NumPy's expression for it, which works on Tensors as well."""
    own = function or getattr(o, name)

    def both(x: Any) -> Any:
        return own(x), reference(x)

    samples = (real(3, 4), real())
    return operation(name, both, *samples, reference=lambda x: (reference(x), reference(x)), peers=peers, **options)


def softplus(x: Any) -> Any:
    return np.logaddexp(x, 0)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


ACTIVATIONS = [
    activation("relu", lambda x: np.maximum(x, 0), "jax:relu torch:nn.functional.relu"),
    activation("relu6", lambda x: np.clip(x, 0, 6), "jax:relu6 torch:nn.functional.relu6"),
    activation("leaky_relu", lambda x: np.where(x > 0, x, 0.2 * x), "torch:nn.functional.leaky_relu"),
    activation(
        "prelu",
        lambda x: np.where(x > 0, x, 0.3 * x),
        "torch:nn.functional.prelu torch:nn.functional.rrelu",
        lambda x: np.where(x > 0, x, 0.3 * x),
    ),
    activation(
        "threshold",
        lambda x: np.where(x > 0.5, x, -1.0),
        "torch:nn.functional.threshold",
        lambda x: np.where(x > 0.5, x, -1.0),
    ),
    activation("elu", lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), "jax:elu torch:nn.functional.elu"),
    activation(
        "celu",
        lambda x: np.where(x > 0, x, 1.5 * np.expm1(np.minimum(x, 0) / 1.5)),
        "torch:nn.functional.celu",
        lambda x: o.celu(x, 1.5),
    ),
    activation(
        "selu",
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
        "torch:nn.functional.selu",
    ),
    activation("gelu", lambda x: x * scipy.special.ndtr(x), "torch:nn.functional.gelu", dtypes=("float32",)),
    activation("silu", lambda x: x * sigmoid(x), "torch:nn.functional.silu"),
    activation("mish", lambda x: x * np.tanh(softplus(x)), "jax:mish torch:nn.functional.mish jax:testMishGrad"),
    activation("softplus", softplus, "jax:softplus torch:nn.functional.softplus"),
    activation("logsigmoid", lambda x: -softplus(-x), "torch:nn.functional.logsigmoid"),
    activation("softsign", lambda x: x / (1 + np.abs(x)), "torch:nn.functional.softsign"),
    activation("tanhshrink", lambda x: x - np.tanh(x), "torch:nn.functional.tanhshrink"),
    activation("hardtanh", lambda x: np.clip(x, -1, 1), "torch:nn.functional.hardtanh"),
    activation("hardsigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), "torch:nn.functional.hardsigmoid"),
    activation("hardswish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "torch:nn.functional.hardswish"),
    activation("hardshrink", lambda x: np.where(np.abs(x) > 0.5, x, 0.0), "torch:nn.functional.hardshrink"),
    activation("softshrink", lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), "torch:nn.functional.softshrink"),
    activation("sigmoid", sigmoid, "jax:logistic torch:sigmoid"),
    activation(
        "squareplus", lambda x: (x + np.sqrt(x * x + 4)) / 2, "jax:squareplus", lambda x: (x + np.sqrt(x * x + 4)) / 2
    ),
    activation(
        "sparse_plus",
        lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
        "jax:sparse_plus",
        lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    ),
    operation(
        "log1mexp",
        lambda x: np.where(x > 0.7, np.log1p(-np.exp(-x)), np.log(-np.expm1(-x))),
        real(5, low=0, high=3),
        peers="jax:log1mexp",
    ),
    operation(
        "softmax and its logarithm",
        lambda x: (softmax(x), np.log(softmax(x)), softmax(-x)),
        apart(3, 4),
        apart(4),
        peers=(
            "jax:softmax torch:softmax torch:log_softmax torch:nn.functional.softmin torch:masked.softmin "
            "torch:_softmax_backward_data"
        ),
    ),
    operation(
        "glu", o.glu, real(3, 4), reference=lambda x: x[:, :2] * sigmoid(x[:, 2:]), peers="torch:nn.functional.glu"
    ),
]

T = np.array([0, 3, 1])
SIGNS = np.array([1.0, -1.0, 1.0])


def rows_picked(x: Any) -> Any:
    """Minus the logarithm of the probability of each row's class."""
    return -np.log(softmax(x))[np.arange(3), T]


LOSSES = [
    operation(
        "mse_loss",
        lambda x, y: (o.mse_loss(x, y), np.mean((x - y) ** 2)),
        (real(3, 4), real(3, 4)),
        reference=lambda x, y: (np.mean((x - y) ** 2),) * 2,
        peers="torch:nn.functional.mse_loss",
    ),
    operation(
        "l1_loss",
        lambda x, y: (o.l1_loss(x, y), np.mean(np.abs(x - y))),
        (apart(3, 4), apart(3, 4, shift=0.17)),
        reference=lambda x, y: (np.mean(np.abs(x - y)),) * 2,
        peers="torch:nn.functional.l1_loss",
    ),
    operation(
        "huber_loss",
        lambda x, y: o.huber_loss(x, y, delta=0.7),
        (apart(3, 4), apart(3, 4, shift=0.17)),
        reference=lambda x, y: np.mean(scipy.special.huber(0.7, x - y)),
        peers="torch:nn.functional.huber_loss",
    ),
    operation(
        "smooth_l1_loss",
        lambda x, y: o.smooth_l1_loss(x, y, beta=0.7, reduction="mean"),
        (apart(3, 4), apart(3, 4, shift=0.17)),
        reference=lambda x, y: np.mean(scipy.special.huber(0.7, x - y)) / 0.7,
        peers="torch:nn.functional.smooth_l1_loss",
    ),
    operation(
        "cross_entropy",
        lambda x: o.cross_entropy(x, nb.Tensor(T)),
        real(3, 4),
        reference=lambda x: np.mean(rows_picked(x)),
        peers="torch:nn.functional.cross_entropy torch:nn.functional.linear_cross_entropy",
    ),
    operation(
        "nll_loss",
        lambda x: o.nll_loss(x, nb.Tensor(T)),
        real(3, 4),
        reference=lambda x: -np.mean(x[np.arange(3), T]),
        peers="torch:nn.functional.nll_loss",
    ),
    operation(
        "binary_cross_entropy",
        o.binary_cross_entropy,
        (between(0.1, 0.9, 3), between(0.1, 0.9, 3)),
        reference=lambda p, y: -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)),
        peers="torch:nn.functional.binary_cross_entropy",
    ),
    operation(
        "binary_cross_entropy of logits",
        lambda x, y: np.mean(softplus(x) - x * y),
        (real(3), between(0, 1, 3)),
        peers="torch:nn.functional.binary_cross_entropy_with_logits",
    ),
    operation(
        "kl_div",
        lambda x, y: o.kl_div(x, y, "sum"),
        (real(3, 4), between(0.1, 1, 3, 4)),
        reference=lambda x, y: np.sum(y * (np.log(y) - x)),
        peers="torch:nn.functional.kl_div",
    ),
    operation(
        "margin_ranking_loss",
        lambda a, b: o.margin_ranking_loss(a, b, nb.Tensor(SIGNS), 0.1),
        (apart(3), apart(3, shift=0.17)),
        reference=lambda a, b: np.mean(np.maximum(0, -SIGNS * (a - b) + 0.1)),
        peers="torch:nn.functional.margin_ranking_loss",
    ),
    operation(
        "cosine_similarity",
        lambda x, y: o.cosine_similarity(x, y),
        (real(3, 4), real(3, 4)),
        reference=lambda x, y: np.sum(x * y, 1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1),
        peers="torch:nn.functional.cosine_similarity",
    ),
    operation(
        "cosine similarity in NumPy",
        lambda x, y: np.sum(x * y, 1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1),
        (real(3, 4), real(1, 4)),
        peers="torch:nn.functional.cosine_similarity torch:nn.functional.cosine_embedding_loss",
    ),
    operation(
        "gaussian nll",
        lambda x, y, v: np.mean(np.log(v) + (x - y) ** 2 / v) / 2,
        (real(3), real(3), between(0.5, 2, 3)),
        peers="torch:nn.functional.gaussian_nll_loss",
    ),
    operation(
        "poisson nll",
        lambda x, y: np.mean(np.exp(x) - y * x),
        (real(3), real(3)),
        peers="torch:nn.functional.poisson_nll_loss",
    ),
    operation(
        "soft margin loss",
        lambda x: np.mean(np.log1p(np.exp(-SIGNS * x))),
        real(3),
        peers="torch:nn.functional.soft_margin_loss torch:nn.functional.multilabel_soft_margin_loss",
    ),
    operation(
        "hinge embedding loss",
        lambda x: np.mean(np.where(SIGNS > 0, x, np.maximum(0, 1 - x))),
        real(3),
        peers="torch:nn.functional.hinge_embedding_loss",
    ),
    operation(
        "multi-class margin loss",
        lambda x: np.mean(np.maximum(0, 0.95 - x[np.arange(3), T][:, None] + x)),
        apart(3, 4),
        peers="torch:nn.functional.multi_margin_loss torch:nn.functional.multilabel_margin_loss",
    ),
    operation(
        "triplet loss",
        lambda a, p, n: np.mean(np.maximum(np.linalg.norm(a - p, axis=1) - np.linalg.norm(a - n, axis=1) + 1, 0)),
        (real(3, 4), real(3, 4), real(3, 4)),
        peers="torch:nn.functional.triplet_margin_loss torch:nn.functional.triplet_margin_with_distance_loss",
    ),
]


def normalised(x: Any, axes: Any) -> Any:
    return (x - np.mean(x, axis=axes, keepdims=True)) / np.sqrt(np.var(x, axis=axes, keepdims=True) + 1e-5)


NORMALISATION = [
    operation(
        "layer_norm",
        lambda x, w, b: o.layer_norm(x, (4,), w, b),
        (real(3, 4), real(4), real(4)),
        reference=lambda x, w, b: normalised(x, -1) * w + b,
        peers="torch:nn.functional.layer_norm torch:native_layer_norm",
        tolerance=1e-6,
    ),
    operation(
        "layer normalisation in NumPy",
        lambda x, w, b: normalised(x, -1) * w + b,
        (real(3, 4), real(4), real(4)),
        peers="torch:nn.functional.layer_norm",
        tolerance=1e-6,
    ),
    operation(
        "batch normalisation",
        lambda x: normalised(x, (0, 2)),
        real(4, 2, 3),
        peers=(
            "torch:nn.functional.batch_norm torch:native_batch_norm torch:_native_batch_norm_legit "
            "torch:_batch_norm_with_update"
        ),
        tolerance=1e-6,
    ),
    operation(
        "group_norm",
        lambda x: o.group_norm(x, 2),
        real(2, 4, 3),
        reference=lambda x: normalised(x.reshape(2, 2, 6), -1).reshape(2, 4, 3),
        peers="torch:nn.functional.group_norm torch:native_group_norm",
        tolerance=1e-6,
    ),
    operation(
        "instance_norm",
        lambda x: o.instance_norm(x),
        real(2, 2, 5),
        reference=lambda x: normalised(x, -1),
        peers="torch:nn.functional.instance_norm",
        tolerance=1e-6,
    ),
    operation(
        "rms_norm",
        lambda x, w: o.rms_norm(x, w)[0],
        (real(3, 4), real(4)),
        reference=lambda x, w: x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-6) * w,
        peers="torch:nn.functional.rms_norm",
    ),
    operation(
        "normalize",
        lambda x: o.normalize(x),
        real(3, 4),
        reference=lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
        peers="torch:nn.functional.normalize torch:masked.normalize",
    ),
    operation(
        "local_response_norm",
        lambda x: x / (1 + 0.3 * sum(np.pad(x * x, ((0, 0), (1, 1)))[:, k : k + 4] for k in range(3)) / 3) ** 0.75,
        real(2, 4),
        peers="torch:nn.functional.local_response_norm",
    ),
]


def correlated(x: np.ndarray, w: np.ndarray, stride: int = 1, pad: int = 0, dilation: int = 1) -> np.ndarray:
    """Correlation of images (N, C, H, W) with kernels (O, C, h, w), window by window."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    kh, kw = w.shape[2:]
    rows = range(0, x.shape[2] - (kh - 1) * dilation, stride)
    columns = range(0, x.shape[3] - (kw - 1) * dilation, stride)

    def at(i: int, j: int) -> np.ndarray:
        window = x[:, :, i : i + kh * dilation : dilation, j : j + kw * dilation : dilation]
        return np.tensordot(window[:, :, :kh, :kw], w, axes=([1, 2, 3], [1, 2, 3]))

    return np.stack([np.stack([at(i, j) for j in columns], -1) for i in rows], -2)


def spread(x: np.ndarray, w: np.ndarray, stride: int) -> np.ndarray:
    """The transpose of a correlation."""
    n, _, h, wide = x.shape
    kh, kw = w.shape[2:]
    out = np.zeros((n, w.shape[1], (h - 1) * stride + kh, (wide - 1) * stride + kw), np.result_type(x, w))
    for i in range(h):
        for j in range(wide):
            part = np.tensordot(x[:, :, i, j], w, axes=(1, 0))
            out[:, :, i * stride : i * stride + kh, j * stride : j * stride + kw] += part
    return out


def windows(x: Any, k: int, stride: int) -> Any:
    """All windows of the last axis, by slices."""
    return [x[..., i : i + (x.shape[-1] - k) // stride * stride + 1 : stride] for i in range(k)]


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])) @ v


CONVOLUTION = [
    operation(
        "linear", lambda x, w, b: x @ w.T + b, (real(3, 4), real(2, 4), real(2)), peers="torch:nn.functional.linear"
    ),
    operation(
        "bilinear",
        lambda x, w, y: np.einsum("ni,oij,nj->no", x, w, y),
        (real(3, 2), real(4, 2, 3), real(3, 3)),
        peers="torch:nn.functional.bilinear",
    ),
    operation(
        "conv2d",
        lambda x, w: o.conv2d(x, w),
        (real(2, 3, 5, 4), real(2, 3, 2, 3)),
        reference=correlated,
        peers="torch:nn.functional.conv2d jax:testConvGrad",
    ),
    operation(
        "conv2d with options",
        lambda x, w: o.conv2d(x, w, stride=2, pad_mode="pad", padding=2, dilation=2),
        (real(2, 2, 5, 6), real(3, 2, 2, 2)),
        reference=lambda x, w: correlated(x, w, 2, 2, 2),
        peers="jax:testConvWithGeneralPaddingGrad jax:testConvGeneralDilatedGrad torch:nn.functional.conv2d",
    ),
    operation(
        "conv1d",
        lambda x, w: o.conv1d(x, w),
        (real(2, 3, 6), real(2, 3, 3)),
        reference=lambda x, w: correlated(x[:, :, None], w[:, :, None])[:, :, 0],
        peers="torch:nn.functional.conv1d",
    ),
    operation(
        "conv_transpose2d",
        lambda x, w: o.conv_transpose2d(x, w, stride=2),
        (real(2, 3, 3, 2), real(3, 2, 2, 3)),
        reference=lambda x, w: spread(x, w, 2),
        peers="torch:nn.functional.conv_transpose2d",
    ),
    operation(
        "conv_transpose1d",
        lambda x, w: o.conv_transpose2d(x[:, :, None], w[:, :, None], stride=(1, 1))[:, :, 0],
        (real(2, 3, 4), real(3, 2, 3)),
        reference=lambda x, w: spread(x[:, :, None], w[:, :, None], 1)[:, :, 0],
        peers="torch:nn.functional.conv_transpose1d",
    ),
    operation(
        "convolution of volumes by slices",
        lambda x, w: sum(
            x[:, i : i + 2, j : j + 2, k : k + 3] * w[i, j, k] for i in range(2) for j in range(2) for k in range(2)
        ),
        (real(2, 3, 3, 4), real(2, 2, 2)),
        peers="torch:nn.functional.conv3d",
        complexes=True,
    ),
    operation(
        "windows of images",
        lambda x: o.unfold(x, 2),
        real(1, 2, 3, 4),
        reference=lambda x: np.stack(
            [x[:, c, i : i + 2, j : j + 3].reshape(1, -1) for c in range(2) for i in range(2) for j in range(2)], 1
        ),
        peers="torch:nn.functional.unfold",
    ),
    operation(
        "sums of windows",
        lambda x: sum(windows(x, 3, 2)),
        real(4, 7),
        real(3, 2, 4, 7),
        peers=(
            "jax:testReduceWindowGrad-add jax:testReduceWindowCustomSameAsMonoid-add jax:_reduce_custom_add "
            "torch:nn.functional.avg_pool1d"
        ),
        complexes=True,
    ),
    operation(
        "maxima of windows",
        lambda x: np.max(np.stack(windows(x, 3, 2)), axis=0),
        apart(4, 7),
        peers="jax:testReduceWindowGrad-max torch:nn.functional.max_pool1d",
    ),
    operation(
        "minima of windows",
        lambda x: np.min(np.stack(windows(x, 3, 1)), axis=0),
        apart(4, 7),
        peers="jax:testReduceWindowGrad-min",
    ),
    operation(
        "products of windows",
        lambda x: np.prod(np.stack(windows(x, 3, 1)), axis=0),
        real(4, 7),
        peers="jax:_reduce_custom_mul",
    ),
    operation(
        "differences of windows",
        lambda x: windows(x, 2, 1)[0] - windows(x, 2, 1)[1],
        real(4, 7),
        peers="jax:_reduce_custom_sub",
    ),
    operation(
        "avg_pool2d",
        lambda x: o.avg_pool2d(x, 2, 2),
        real(1, 2, 4, 6),
        reference=lambda x: x.reshape(1, 2, 2, 2, 3, 2).mean(axis=(3, 5)),
        peers=(
            "torch:nn.functional.avg_pool2d torch:nn.functional.adaptive_avg_pool2d "
            "torch:nn.functional.adaptive_avg_pool1d"
        ),
    ),
    operation(
        "max_pool2d",
        lambda x: o.max_pool2d(x, 2, 2),
        apart(1, 2, 4, 6),
        reference=lambda x: x.reshape(1, 2, 2, 2, 3, 2).max(axis=(3, 5)),
        peers=(
            "torch:nn.functional.max_pool2d torch:nn.functional.adaptive_max_pool2d "
            "torch:nn.functional.adaptive_max_pool1d torch:max_pool2d_with_indices_backward"
        ),
    ),
    operation(
        "pooling of volumes by reshaping",
        lambda x: (
            np.mean(x.reshape(1, 2, 2, 1, 2, 3, 2), axis=(2, 4, 6)),
            np.max(x.reshape(1, 2, 2, 1, 2, 3, 2), axis=(2, 4, 6)),
        ),
        apart(1, 4, 2, 6),
        peers=(
            "torch:nn.functional.avg_pool3d torch:nn.functional.max_pool3d torch:nn.functional.adaptive_avg_pool3d "
            "torch:nn.functional.adaptive_max_pool3d"
        ),
    ),
    operation(
        "adaptive_avg_pool2d",
        lambda x: o.adaptive_avg_pool2d(x, (2, 3)),
        real(1, 2, 4, 6),
        reference=lambda x: x.reshape(1, 2, 2, 2, 3, 2).mean(axis=(3, 5)),
        peers="torch:nn.functional.adaptive_avg_pool2d",
    ),
    operation(
        "upsampling",
        lambda x: np.repeat(np.repeat(x, 2, axis=-1), 3, axis=-2),
        real(1, 2, 3),
        peers="torch:nn.functional.upsample_nearest torch:nn.functional.interpolate",
    ),
    operation(
        "linear resampling",
        lambda x: o.interpolate(x, size=5, mode="linear", align_corners=True),
        real(1, 2, 3),
        reference=lambda x: x @ (np.maximum(0, 1 - np.abs(np.linspace(0, 2, 5) - np.arange(3)[:, None]))),
        peers="torch:nn.functional.interpolate torch:nn.functional.upsample_bilinear jax:resize",
    ),
    operation(
        "bilinear resampling by matrices",
        lambda x: np.maximum(0, 1 - np.abs(np.linspace(0, 2, 5)[:, None] - np.arange(3))) @ x,
        real(2, 3, 4),
        peers="jax:resize torch:_upsample_bilinear2d_aa",
    ),
    operation(
        "samples between grid points",
        lambda x, t: (1 - t) * x[np.array([0, 2])] + t * x[np.array([1, 3])],
        (real(4), between(0.1, 0.9, 2)),
        peers="torch:nn.functional.grid_sample torch:grid_sampler_2d torch:grid_sampler_3d",
    ),
    operation(
        "pixel shuffle",
        lambda x: x.reshape(1, 2, 2, 2, 3, 2).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 6, 4) ** 2,
        real(1, 8, 3, 2),
        peers=(
            "torch:nn.functional.pixel_shuffle torch:nn.functional.pixel_unshuffle torch:nn.functional.channel_shuffle"
        ),
    ),
    operation(
        "attention",
        attention,
        (real(2, 3, 4), real(2, 5, 4), real(2, 5, 4)),
        peers=(
            "torch:nn.functional.scaled_dot_product_attention torch:nn.functional.multi_head_attention_forward "
            "torch:torch.ops.aten._efficient_attention_forward torch:torch.ops.aten._flash_attention_forward"
        ),
    ),
    operation(
        "scaled_dot_product_attention",
        o.scaled_dot_product_attention,
        (real(1, 2, 3, 4), real(1, 2, 5, 4), real(1, 2, 5, 4)),
        reference=attention,
        peers="torch:nn.functional.scaled_dot_product_attention",
    ),
    operation(
        "embedding", lambda w: w[np.array([[0, 2], [2, 1]])] ** 2, real(3, 4), peers="torch:nn.functional.embedding"
    ),
    operation(
        "bags of embeddings",
        lambda w: np.stack([np.sum(w[np.array([0, 2])], axis=0), np.mean(w[np.array([1, 1, 2])], axis=0)]),
        real(3, 4),
        peers="torch:nn.functional.embedding_bag",
    ),
    operation(
        "sums of segments", lambda x: np.add.reduceat(x, [0, 2, 3]), real(5), real(5, 2), peers="torch:_segment_reduce"
    ),
    operation(
        "dropout by a given mask",
        lambda x: x * np.array([1.0, 0.0, 1.0, 1.0]) / 0.75,
        real(3, 4),
        peers="torch:native_dropout_backward",
    ),
]

OPERATIONS = [*ACTIVATIONS, *LOSSES, *NORMALISATION, *CONVOLUTION]
