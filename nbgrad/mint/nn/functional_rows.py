"""Functions of `mint.nn.functional` whose parameters or defaults differ from those of `nbgrad.ops`.

In: Tensors. Out: Tensors. Called by users; layers.py names them. With `inplace`, and under names that end in an
underscore, the input is written to as well.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...errors import ArgumentError
from ...functions.elementwise.special_functions import log_softmax as plain_log_softmax
from ...functions.elementwise.special_functions import softmax as plain_softmax
from ...ops import (
    activations,
    convolution,
    gathering,
    losses,
    normalisation,
    pooling,
    random_tensors,
    shape_functions,
    volumes,
)
from ...ops.declarations import as_numpy
from ...ops.docstrings import documented
from ...ops.rarer import resized_images, sampled_images, smoothed_images
from ...ops.rarer.arranged_values import embedding as embedding
from ...ops.rarer.special_values import float_of
from ...process.modes import within
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import integer, only, write
from ...record.tensor import Tensor

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _value(x: Any) -> Any:
    return wrap(as_node(x))


def _in_place(input: Any, result: Tensor, inplace: bool) -> Tensor:
    """The result; with `inplace` the input, which has its values."""
    if not inplace:
        return result
    input[...] = result
    return input


# ----- Normalisation -----


@documented
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Channels standardised by running statistics, or by those of the batch, which then go into the running ones.

    running_mean, running_var : Tensor or ndarray, shape (C,), or None
        Written to while training, if they are Tensors.
    weight, bias : Tensor or ndarray, shape (C,), optional
    training : bool
    momentum : float
        The weight of the batch in the running statistics.
    """
    if not training:
        return normalisation.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    result, *new = normalisation.batch_norm_training(input, running_mean, running_var, weight, bias, momentum, eps)
    with within(remembers=False):
        for statistic, value in zip((running_mean, running_var), new, strict=True):
            if isinstance(statistic, Tensor):
                write(statistic, as_node(value), "batch_norm")
    return result


# ----- Activations -----


@documented
def relu(input: Any, inplace: bool = False) -> Tensor:
    """x where it is positive, else 0.

    inplace : bool
        Whether the input is written to.
    """
    return _in_place(input, activations.relu(input), inplace)


def relu_(input: Any) -> Tensor:
    """`relu`, written to the input."""
    return relu(input, True)


@documented
def relu6(input: Any, inplace: bool = False) -> Tensor:
    """x limited to the interval from 0 to 6.

    inplace : bool
        Whether the input is written to.
    """
    return _in_place(input, activations.relu6(input), inplace)


@documented
def silu(input: Any, inplace: bool = False) -> Tensor:
    """x times its sigmoid.

    inplace : bool
        Whether the input is written to.
    """
    return _in_place(input, activations.silu(input), inplace)


def sigmoid_(input: Any) -> Tensor:
    """The sigmoid, written to the input."""
    return _in_place(input, activations.sigmoid(input), True)


@documented
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, else alpha * (exp(x) - 1).

    alpha : float
    inplace : bool
        Whether the input is written to.
    """
    return _in_place(input, activations.elu(input, alpha), inplace)


def elu_(input: Any, alpha: float = 1.0) -> Tensor:
    """`elu`, written to the input."""
    return elu(input, alpha, True)


@documented
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to an interval.

    min_val, max_val : float
    inplace : bool
        Whether the input is written to.
    """
    return _in_place(input, activations.hardtanh(input, min_val, max_val), inplace)


def hardtanh_(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh`, written to the input."""
    return hardtanh(input, min_val, max_val, True)


@documented
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is above a threshold, else a value.

    threshold, value : float
    inplace : bool
        Whether the input is written to.
    """
    x = _value(input)
    return _in_place(input, np.where(x > threshold, x, value).astype(x.dtype), inplace)


def threshold_(input: Any, threshold: float, value: float) -> Tensor:
    """`threshold`, written to the input."""
    x = _value(input)
    return _in_place(input, np.where(x > threshold, x, value).astype(x.dtype), True)


@as_numpy(activations.leaky_relu, "x where it is positive, else negative_slope * x.")
def leaky_relu(input: Any, negative_slope: float = 0.01) -> Tensor: ...


def _axis(dim: int | None, ndim: int) -> int:
    """The axis of a softmax; the first one of arrays with 0, 1 or 3 axes by default, the second one of others."""
    return dim if dim is not None else 0 if ndim in (0, 1, 3) else 1


@documented
def softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Exponentials along an axis, divided by their sum.

    dim : int, optional
        By default the first axis of arrays with 0, 1 or 3 axes, and the second one of others.
    """
    x = _value(input) if dtype is None else _value(input).astype(dtype)
    return plain_softmax(x, _axis(dim, x.ndim))


@documented
def glu(input: Any, dim: int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second half (Dauphin et al. 2017)."""
    return activations.glu(_value(input), dim)


@documented
def log_softmax(input: Any, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`; parameters as there.

    dim : int, optional
    """
    x = _value(input) if dtype is None else _value(input).astype(dtype)
    return plain_log_softmax(x, _axis(dim, x.ndim))


@documented
def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Elements 0 with a probability, the others divided by the probability that they stay.

    p : float
    training : bool
        If not, the input as it is.
    inplace : bool
        Whether the input is written to.
    """
    return _in_place(input, random_tensors.dropout(input, p, training), inplace)


@documented
def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of images.

    p : float
    training, inplace : bool
    """
    return _in_place(input, random_tensors.dropout2d(input, p, training), inplace)


# ----- Convolutions and windows -----


def _padded_convolution(
    function: Any, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    mode, ends = "pad", padding
    if isinstance(padding, str):
        only("padding", padding, "valid", "same")
        mode, ends = padding, 0
    elif isinstance(padding, tuple | list) and len(padding) > 1:
        # PyTorch names one width for both ends of an axis.
        ends = tuple([width for width in padding for _ in range(2)])
    elif isinstance(padding, tuple | list):
        ends = next(iter(padding))
    return function(input, weight, bias, stride, mode, ends, dilation, groups)


@documented
def conv1d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Convolution of signals.

    input : Tensor or ndarray, shape (N, C, L)
    weight : Tensor or ndarray, shape (out, C / groups, k)
    bias : Tensor, optional, shape (out,)
    padding : int, "valid" or "same"
        Zeros on both sides.
    groups : int
    """
    return _padded_convolution(convolution.conv1d, input, weight, bias, stride, padding, dilation, groups)


@documented
def conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Convolution of images; parameters as `conv1d`.

    input : Tensor or ndarray, shape (N, C, H, W)
    weight : Tensor or ndarray, shape (out, C / groups, kh, kw)
    bias : Tensor, optional, shape (out,)
    padding : int, pair of int, "valid" or "same"
    groups : int
    """
    return _padded_convolution(convolution.conv2d, input, weight, bias, stride, padding, dilation, groups)


@documented
def conv3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Convolution of volumes; parameters as `conv1d`.

    input : Tensor or ndarray, shape (N, C, D, H, W)
    weight : Tensor or ndarray, shape (out, C / groups, kd, kh, kw)
    bias : Tensor, optional, shape (out,)
    padding : int, tuple of int, "valid" or "same"
    groups : int
    """
    return _padded_convolution(volumes.conv3d, input, weight, bias, stride, padding, dilation, groups)


@documented
def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest element of every window of images.

    kernel_size, padding : int or pair of int
    stride : int or pair of int, optional
        That of the kernel by default.
    ceil_mode : bool
        Whether the last window may reach beyond the image.
    return_indices : bool
        Whether to give the flat positions in the images, too.
    """
    return pooling.max_pool2d(input, kernel_size, stride, padding, dilation, return_indices, ceil_mode)


@documented
def avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of every window of signals.

    kernel_size, padding : int
    stride : int, optional
        That of the kernel by default.
    ceil_mode : bool
        Whether the last window may reach beyond the signal.
    count_include_pad : bool
        Whether zeros around the signal count.
    """
    step = kernel_size if stride is None else stride
    return pooling.avg_pool1d(input, kernel_size, step, padding, ceil_mode, count_include_pad)


@documented
def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of every window of images; parameters as `avg_pool1d`.

    kernel_size, padding : int or pair of int
    stride : int or pair of int, optional
    ceil_mode, count_include_pad : bool
    divisor_override : int, optional
        Divides the sums instead of the numbers of elements.
    """
    step = kernel_size if stride is None else stride
    return pooling.avg_pool2d(input, kernel_size, step, padding, ceil_mode, count_include_pad, divisor_override or 0)


@documented
def avg_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of every window of volumes; parameters as `avg_pool1d`.

    kernel_size, padding : int or tuple of int
    stride : int or tuple of int, optional
    ceil_mode, count_include_pad : bool
    divisor_override : int, optional
    """
    step = kernel_size if stride is None else stride
    return volumes.avg_pool3d(input, kernel_size, step, padding, ceil_mode, count_include_pad, divisor_override or 0)


@documented
def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """The array with borders; `nbgrad.ops.pad` says more.

    pad : tuple of int
        Widths (before, after) of the last axis, then of the one before it, and so on.
    mode : {"constant", "reflect", "replicate", "circular"}
    value : number, optional
        Of mode "constant"; 0 by default.
    """
    return shape_functions.pad(input, pad, mode, value)


@documented
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Signals, images or volumes of another size; `nbgrad.ops.interpolate` says more.

    size : int or tuple of int, optional
    scale_factor : float or tuple of float, optional
    mode : {"nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"}
        "bicubic" gives PyTorch's numbers, that of `nbgrad.ops.interpolate` MindSpore's.
    align_corners : bool, optional
    recompute_scale_factor : bool, optional
    antialias : bool
        Whether smaller images ("bilinear", "bicubic") are means of all pixels that they cover.
    """
    x = _value(input)
    if antialias:
        only("mode of antialias", mode, "bilinear", "bicubic")
        sizes, steps = pooling.resampled_sizes(x.shape[2:], size, scale_factor, bool(recompute_scale_factor))
        return smoothed_images.smoothed(float_of(x), sizes, steps, mode == "bicubic", bool(align_corners))
    one_given = (size is None) != (scale_factor is None)
    if mode != "bicubic" or x.ndim != 4 or 0 in x.shape[2:] or not one_given:
        return resized_images.interpolate(x, size, scale_factor, mode, align_corners, recompute_scale_factor)
    sizes = pooling.resampled_sizes(x.shape[2:], size, scale_factor, bool(recompute_scale_factor))
    return sampled_images.cubic_through_pixels(float_of(x), *sizes, bool(align_corners))


@documented
def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Signals, images or volumes of another size; `interpolate` says more.

    size : int or tuple of int, optional
    scale_factor : float or tuple of float, optional
    mode : {"nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"}
    align_corners : bool, optional
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


# ----- Tables -----


@documented
def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """Classes as rows of zeros with a one, as int64.

    tensor : Tensor or ndarray of int
    num_classes : int
        The extent of the new last axis; one more than the greatest class, if -1.
    ArgumentError : If a class is not below it, or negative.
    """
    classes = _value(tensor)
    known = np.asarray(classes)
    count = integer(num_classes, "num_classes")
    most = int(known.max(initial=-1)) + 1
    if known.size and (known.min() < 0 or most > count >= 0):
        message = f"one_hot has {count} classes, but the classes go from {known.min()} to {most - 1}."
        raise ArgumentError(message)
    return gathering.one_hot(classes, most if count == -1 else count, 1, 0)


# ----- Losses -----


@documented
def binary_cross_entropy(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """The cross entropy of probabilities.

    target : Tensor or ndarray
    weight : Tensor, optional
    """
    return losses.binary_cross_entropy(input, target, weight, reduction)


@documented
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    """The cross entropy of logits.

    target : Tensor or ndarray
    weight, pos_weight : Tensor, optional
        Of the losses, and of their part where the target is 1.
    """
    return losses.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


@documented
def nll_loss(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """Minus the log-probability of the target's class.

    target : Tensor or ndarray of int
    weight : Tensor, optional
        Of the classes.
    ignore_index : int
        A class that does not count.
    """
    return losses.nll_loss(input, target, weight, ignore_index, reduction)


@documented
def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Squares up to a distance, straight from there on.

    target : Tensor or ndarray
    beta : float
        The distance.
    """
    return losses.smooth_l1_loss(input, target, beta, reduction)


@documented
def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The divergence of two distributions, the first one by its logarithm.

    target : Tensor or ndarray
    log_target : bool
        Whether the target is a logarithm, too.
    """
    if not log_target:
        return losses.kl_div(input, target, reduction)
    second = _value(target)
    loss = np.exp(second) * (second - _value(input))
    only("reduction", reduction, "none", "mean", "sum", "batchmean")
    if reduction == "none":
        return loss
    total = np.sum(loss)
    return total if reduction == "sum" else total / (loss.size if reduction == "mean" else loss.shape[0])
