"""Layers of `torch.nn` that MindSpore's `mint.nn` lacks, or has with other Parameters: convolutions, bags, distances.

In: options; then Tensors. Out: Cells. Used by users. Rows name a function and its options with their defaults.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from ... import nn
from ...errors import ArgumentError
from ...nn.function_layers import REQUIRED, function_layer
from ...nn.layer_arguments import flag, parameter, positive
from ...record.axes_and_dtypes import only
from ...record.tensor import Tensor
from ...tensors.initial_values import Normal, Uniform
from . import functional
from .trained_layers import _dtype

_layer = partial(function_layer, home="nbgrad.mint.nn.functional")

# ----- Activations -----

CELU = _layer("CELU", "celu", alpha=1.0, inplace=False)
Softmin = _layer("Softmin", "softmin", dim=None)
Softsign = _layer("Softsign", "softsign")
Tanhshrink = _layer("Tanhshrink", "tanhshrink")
RReLU = _layer("RReLU", "rrelu", {"training": True}, lower=1.0 / 8, upper=1.0 / 3, inplace=False)
Dropout1d, Dropout3d, AlphaDropout, FeatureAlphaDropout = (
    _layer(name, function, {"training": True}, p=0.5, inplace=False)
    for name, function in (
        ("Dropout1d", "dropout1d"),
        ("Dropout3d", "dropout3d"),
        ("AlphaDropout", "alpha_dropout"),
        ("FeatureAlphaDropout", "feature_alpha_dropout"),
    )
)

# ----- Windows and shapes -----

_WINDOW: dict[str, Any] = {
    "kernel_size": REQUIRED,
    "stride": None,
    "padding": 0,
    "dilation": 1,
    "return_indices": False,
    "ceil_mode": False,
}
MaxPool1d, MaxPool3d = (_layer(f"MaxPool{axes}d", f"max_pool{axes}d", **_WINDOW) for axes in (1, 3))
LocalResponseNorm = _layer("LocalResponseNorm", "local_response_norm", size=REQUIRED, alpha=1e-4, beta=0.75, k=1.0)
CircularPad1d, CircularPad2d, CircularPad3d = (
    function_layer(f"CircularPad{axes}d", "pad", {"mode": "circular"}, base=nn.ZeroPad1d.__mro__[1], padding=REQUIRED)
    for axes in (1, 2, 3)
)

# ----- Distances and losses -----

PairwiseDistance = _layer("PairwiseDistance", "pairwise_distance", p=2.0, eps=1e-6, keepdim=False)
CosineSimilarity = _layer("CosineSimilarity", "cosine_similarity", dim=1, eps=1e-8)
HuberLoss = _layer("HuberLoss", "huber_loss", reduction="mean", delta=1.0)
MarginRankingLoss = _layer("MarginRankingLoss", "margin_ranking_loss", margin=0.0, reduction="mean")
HingeEmbeddingLoss = _layer("HingeEmbeddingLoss", "hinge_embedding_loss", margin=1.0, reduction="mean")
MultiMarginLoss = _layer("MultiMarginLoss", "multi_margin_loss", p=1, margin=1.0, weight=None, reduction="mean")
MultiLabelMarginLoss = _layer("MultiLabelMarginLoss", "multilabel_margin_loss", reduction="mean")
MultiLabelSoftMarginLoss = _layer(
    "MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", weight=None, reduction="mean"
)
GaussianNLLLoss = _layer("GaussianNLLLoss", "gaussian_nll_loss", full=False, eps=1e-6, reduction="mean")
PoissonNLLLoss = _layer("PoissonNLLLoss", "poisson_nll_loss", log_input=True, full=False, eps=1e-8, reduction="mean")
TripletMarginLoss = _layer(
    "TripletMarginLoss", "triplet_margin_loss", margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"
)
TripletMarginWithDistanceLoss = _layer(
    "TripletMarginWithDistanceLoss",
    "triplet_margin_with_distance_loss",
    distance_function=None,
    margin=1.0,
    swap=False,
    reduction="mean",
)
CTCLoss = _layer("CTCLoss", "ctc_loss", blank=0, reduction="mean", zero_infinity=False)


# ----- Convolutions -----


def _uniform(fan_in: int) -> Any:
    return Uniform(1.0 / math.sqrt(fan_in)) if fan_in else "zeros"


def _each(value: Any, axes: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,) * axes


class _Convolution(nn.Cell):
    """Convolutions and their adjoints, with weights of the shape that PyTorch has."""

    axes: int
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: Any = None,
        *,
        output_padding: Any = 0,
    ) -> None:
        super().__init__()
        modes = ("zeros",) if self.transposed else ("zeros", "reflect", "replicate", "circular")
        only("padding_mode", padding_mode, *modes)
        self.in_channels = positive(in_channels, "in_channels")
        self.out_channels = positive(out_channels, "out_channels")
        self.groups = positive(groups, "groups")
        for name, count in (("in_channels", in_channels), ("out_channels", out_channels)):
            if count % groups:
                message = f"{name} must be divisible by groups, but {count} is not divisible by {groups}."
                raise ArgumentError(message)
        self.kernel_size, self.stride = _each(kernel_size, self.axes), _each(stride, self.axes)
        self.padding = padding if isinstance(padding, str) else _each(padding, self.axes)
        self.dilation, self.output_padding = _each(dilation, self.axes), _each(output_padding, self.axes)
        self.padding_mode = padding_mode
        pair = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (pair[0], pair[1] // groups, *self.kernel_size)
        start = _uniform(math.prod(shape[1:]))
        self.weight = parameter(start, shape, _dtype(dtype))
        self.bias = parameter(start, (out_channels,), _dtype(dtype)) if flag(bias, "bias") else None

    def construct(self, input: Any) -> Tensor:
        """Convolve arrays (N, in_channels, ...) or (in_channels, ...)."""
        function = getattr(functional, f"conv{self.axes}d")
        options = (self.stride, self.padding, self.dilation, self.groups)
        if self.padding_mode == "zeros":
            return function(input, self.weight, self.bias, *options)
        widths = []
        for kernel, dilation, one in zip(self.kernel_size, self.dilation, _each(self.padding, self.axes), strict=True):
            total = dilation * (kernel - 1) if one == "same" else 0 if one == "valid" else 2 * one
            widths = [total // 2, total - total // 2, *widths]
        bordered = functional.pad(input, tuple(widths), self.padding_mode)
        return function(bordered, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)

    def extend_repr(self) -> str:
        """The sizes."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        return text if self.bias is not None else f"{text}, bias=False"


class Conv1d(_Convolution):
    """Convolution of signals.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, dilation : int
    padding : int, "valid" or "same"
        On both sides.
    groups : int
    bias : bool
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter, shape (out_channels, in_channels / groups, kernel_size)
    bias : Parameter, shape (out_channels,)
        None without bias.
    """

    axes = 1


class Conv2d(_Convolution):
    """Convolution of images; parameters as `Conv1d`, each number also one for each axis."""

    axes = 2


class Conv3d(_Convolution):
    """Convolution of volumes; parameters as `Conv1d`, each number also one for each axis."""

    axes = 3


class _Adjoint(_Convolution):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            dtype,
            output_padding=output_padding,
        )

    def construct(self, input: Any, output_size: Any = None) -> Tensor:
        """Enlarge arrays (N, in_channels, ...) or (in_channels, ...), to a size if it is given."""
        ends = self.output_padding
        if output_size is not None:
            windows = zip(
                output_size[-self.axes :],
                np.shape(input)[-self.axes :],
                self.stride,
                self.padding,
                self.dilation,
                self.kernel_size,
                strict=True,
            )
            ends = tuple([size - ((n - 1) * s - 2 * p + d * (k - 1) + 1) for size, n, s, p, d, k in windows])
        function = getattr(functional, f"conv_transpose{self.axes}d")
        return function(input, self.weight, self.bias, self.stride, self.padding, ends, self.groups, self.dilation)


class ConvTranspose1d(_Adjoint):
    """The derivative of a convolution by its signals, as a layer.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, padding, output_padding : int
    groups : int
    bias : bool
    dilation : int
    padding_mode : {"zeros"}
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter, shape (in_channels, out_channels / groups, kernel_size)
    bias : Parameter, shape (out_channels,)
        None without bias.
    """

    axes = 1


class ConvTranspose2d(_Adjoint):
    """`ConvTranspose1d` of images; each number also one for each axis."""

    axes = 2


class ConvTranspose3d(_Adjoint):
    """`ConvTranspose1d` of volumes; each number also one for each axis."""

    axes = 3


# ----- Others with Parameters -----


class Bilinear(nn.Cell):
    """`x1 @ weight[k] @ x2 + bias[k]` for every output k.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
    bias : bool
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter, shape (out_features, in1_features, in2_features)
    bias : Parameter, shape (out_features,)
        None without bias.
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        start = _uniform(positive(in1_features, "in1_features"))
        self.weight = parameter(start, (out_features, in1_features, in2_features), _dtype(dtype))
        self.bias = parameter(start, (out_features,), _dtype(dtype)) if flag(bias, "bias") else None

    def construct(self, input1: Any, input2: Any) -> Tensor:
        """The products of arrays (..., in1_features) and (..., in2_features)."""
        return functional.bilinear(input1, input2, self.weight, self.bias)


class EmbeddingBag(nn.Cell):
    """Sums, means or maxima of rows of a trained table.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        The number of rows, and of elements of a row.
    max_norm, norm_type, scale_grad_by_freq, sparse
        Only their defaults: None, 2.0, False; `sparse` has no effect.
    mode : {"mean", "sum", "max"}
    _weight : Tensor, optional
        The table; standard normal numbers by default.
    include_last_offset : bool
        Whether the last offset is the end of the last bag.
    padding_idx : int, optional
        A row that does not count.
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter, shape (num_embeddings, embedding_dim)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.mode, self.include_last_offset, self.padding_idx = mode, include_last_offset, padding_idx
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        shape = (num_embeddings, embedding_dim)
        self.weight = parameter(Normal(1.0) if _weight is None else _weight, shape, _dtype(dtype))
        if padding_idx is not None and _weight is None:
            kept = np.ones((num_embeddings, 1), np.float32)
            kept[padding_idx] = 0.0
            self.weight.set_data(self.weight * Tensor(kept))

    def construct(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Tensor:
        """The bags of positions (N, L), or of (L,) with offsets."""
        return functional.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            False,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )


class RMSNorm(nn.Cell):
    """The last axes divided by their root mean square.

    Parameters
    ----------
    normalized_shape : int or tuple of int
    eps : float, optional
        The spacing of the dtype at 1 by default.
    elementwise_affine : bool
        Whether there is a weight.
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter, shape `normalized_shape`
    """

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, flag(elementwise_affine, "elementwise_affine")
        self.weight = parameter("ones", self.normalized_shape, _dtype(dtype)) if elementwise_affine else None

    def construct(self, x: Any) -> Tensor:
        """Scale the input, of any shape that ends in `normalized_shape`."""
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class _InstanceNorm(nn.Cell):
    """Standardise every channel of every example."""

    axes: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = positive(num_features, "num_features"), eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        shape = (num_features,)
        self.weight = parameter("ones", shape, _dtype(dtype)) if affine else None
        self.bias = parameter("zeros", shape, _dtype(dtype)) if affine else None
        if track_running_stats:
            self.running_mean = parameter("zeros", shape, _dtype(dtype), False)
            self.running_var = parameter("ones", shape, _dtype(dtype), False)
        else:
            self.running_mean = self.running_var = None

    def construct(self, input: Any) -> Tensor:
        """Standardise arrays (N, C, ...) or (C, ...)."""
        single = np.ndim(input) == self.axes + 1
        x = input[None] if single else input
        own = self.training or not self.track_running_stats
        statistics = (self.running_mean, self.running_var) if self.track_running_stats else (None, None)
        found = functional.instance_norm(x, *statistics, self.weight, self.bias, own, self.momentum, self.eps)
        return found[0] if single else found


class InstanceNorm1d(_InstanceNorm):
    """Standardise every channel of every signal.

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps : float
        Added to the variance.
    momentum : float
        The weight of the batch in the running statistics.
    affine : bool
        Whether there are a weight and a bias.
    track_running_stats : bool
        Whether running statistics are kept, and used outside of training.
    dtype : dtype, optional
    """

    axes = 1


class InstanceNorm2d(_InstanceNorm):
    """Standardise every channel of every image; parameters as `InstanceNorm1d`."""

    axes = 2


class InstanceNorm3d(_InstanceNorm):
    """Standardise every channel of every volume; parameters as `InstanceNorm1d`."""

    axes = 3
