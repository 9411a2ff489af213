"""Normalisation layers as functions: of a layer, of groups of channels, of a batch, of vectors.

In: arrays, and the scale and shift that are learned. Out: Tensors. Called by users and by nbgrad.nn. All of them are
`standardise`: centre, divide by the standard deviation, scale and shift. The variance is computed in two passes;
float16 is computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, ShapeError
from ..functions.linalg.norms import vector_norm
from ..graph.builders import cast, reduce, reshape, unfold
from ..graph.ir import Node, elementwise
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import FLOAT16, FLOAT32, axis_of, inexact, integer, integers, keep, scalar
from ..record.tensor import Tensor
from .docstrings import documented

# ----- On nodes -----


def wide(node: Node) -> Node:
    """Floating-point numbers in the dtype to add them in: sums, and numbers of elements, soon overflow float16."""
    return cast(node, FLOAT32) if node.dtype == FLOAT16 else node


def _wide(value: Any) -> Node:
    """An input in the dtype that it is computed in."""
    return wide(inexact(as_node(value)))


def _back(node: Node, value: Any) -> Tensor:
    """A result in the dtype of the input."""
    return wrap(cast(node, inexact(as_node(value)).dtype))


def mean_over(x: Node, axes: Sequence[int]) -> Node:
    """The mean over axes, which stay with extent 1."""
    count = math.prod(x.shape[axis] for axis in axes)
    return reshape(reduce("sum", x, axes), keep(x.shape, axes)) / scalar(count, x.dtype)


def moments(x: Node, axes: Sequence[int]) -> tuple[Node, Node, Node]:
    """(x minus its mean, mean, biased variance) over axes, which stay with extent 1."""
    mean = mean_over(x, axes)
    centred = x - mean
    return centred, mean, mean_over(centred * centred, axes)


def _deviation(variance: Node, eps: float) -> Node:
    return elementwise("sqrt", variance + scalar(eps, variance.dtype))


def _standardise(x: Node, axes: Sequence[int], eps: float) -> Node:
    centred, _, variance = moments(x, axes)
    return centred / _deviation(variance, eps)


def _affine(y: Node, weight: Any, bias: Any, shape: Sequence[int], name: str, stretched: Sequence[int]) -> Node:
    """`y * weight + bias`, each of a given shape and read as the shape `stretched`."""
    for factor, what in ((weight, "weight"), (bias, "bias")):
        if factor is None:
            continue
        node = as_node(factor)
        if node.shape != tuple(shape):
            message = f"The {what} of {name} must have shape {tuple(shape)}, but has {node.shape}."
            raise ShapeError(message)
        node = reshape(cast(node, y.dtype), tuple(stretched))
        y = y * node if what == "weight" else y + node
    return y


def _per_channel(y: Node, weight: Any, bias: Any, name: str) -> Node:
    channels = y.shape[1]
    return _affine(y, weight, bias, (channels,), name, (channels, *[1] * (y.ndim - 2)))


def _channels(x: Node, name: str) -> int:
    if x.ndim < 2:
        message = f"The input of {name} must have shape (N, C, ...), but has {x.shape}."
        raise ShapeError(message)
    return x.shape[1]


# ----- Layers and groups -----


@documented
def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Standardise over the last axes (Ba et al. 2016): `(x - mean) / sqrt(var + eps) * weight + bias`.

    input : array-like, shape `(..., *normalized_shape)`
    normalized_shape : int or tuple of int
    weight, bias : array-like, shape `normalized_shape`, optional
    -> Tensor, of the input's shape
    ShapeError : If the input does not end in `normalized_shape`.

    >>> import numpy as np, nbgrad as nb
    >>> nb.ops.layer_norm(np.array([[1.0, 3.0]]), 2, eps=0.0).asnumpy()
    array([[-1.,  1.]])
    """
    x, shape = _wide(input), integers(normalized_shape, "normalized_shape")
    first = x.ndim - len(shape)
    if not shape or first < 0 or x.shape[first:] != shape:
        message = f"The input of layer_norm has shape {x.shape}, which does not end in normalized_shape={shape}."
        raise ShapeError(message)
    y = _standardise(x, range(first, x.ndim), eps)
    return _back(_affine(y, weight, bias, shape, "layer_norm", shape), input)


def layer_norm_from(
    input: Any,
    weight: Any = None,
    bias: Any = None,
    begin_norm_axis: int = -1,
    begin_params_axis: int = -1,
    eps: float = 1e-7,
) -> Tensor:
    """`layer_norm` over the axes from `begin_norm_axis`; weight and bias belong to those from `begin_params_axis`."""
    x = _wide(input)
    first, start = axis_of(begin_norm_axis, x.ndim), axis_of(begin_params_axis, x.ndim)
    y = _standardise(x, range(first, x.ndim), eps)
    shape = x.shape[start:]
    return _back(_affine(y, weight, bias, shape, "layer_norm", shape), input)


@documented
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Standardise groups of channels of every example (Wu and He 2018).

    input : array-like, shape (N, C, ...)
    num_groups : int
        Divides C.
    weight, bias : array-like, shape (C,), optional
    -> Tensor, of the input's shape
    ShapeError : If the groups do not divide the channels.
    """
    x = _wide(input)
    channels, groups = _channels(x, "group_norm"), integer(num_groups, "num_groups")
    if groups < 1 or channels % groups:
        message = f"num_groups must divide the {channels} channels of the input, but is {groups}."
        raise ShapeError(message)
    grouped = reshape(x, (x.shape[0], groups, channels // groups, *x.shape[2:]))
    y = reshape(_standardise(grouped, range(2, grouped.ndim), eps), x.shape)
    return _back(_per_channel(y, weight, bias, "group_norm"), input)


def instance_norm(input: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Standardise every channel of every example; parameters as in `group_norm`, with a group for each channel."""
    x = _wide(input)
    channels = _channels(x, "instance_norm")
    if x.ndim == 2:
        message = f"The input of instance_norm must have shape (N, C, L, ...), but has {x.shape}."
        raise ShapeError(message)
    return group_norm(input, max(1, channels), weight, bias, eps)


# ----- Batches -----


@documented
def batch_norm(
    input_x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Standardise channels, by running statistics or by those of the batch (Ioffe and Szegedy 2015).

    input_x : array-like, shape (N, C, ...)
    running_mean, running_var : array-like, shape (C,)
        The statistics that are used unless `training`.
    weight, bias : array-like, shape (C,), optional
    training : bool
        Use the mean and the biased variance of the batch. Nothing is written: `batch_norm_training` also gives the new
        running statistics.
    momentum : float
        Not used here; the weight of the batch in new running statistics.
    -> Tensor, of the input's shape
    ShapeError : If shapes do not fit.

    >>> import numpy as np, nbgrad as nb
    >>> nb.ops.batch_norm(np.array([[3.0], [5.0]]), [1.0], [4.0], eps=0.0).asnumpy()
    array([[1.],
           [2.]])
    """
    if training:
        return batch_norm_training(input_x, running_mean, running_var, weight, bias, momentum, eps)[0]
    x = _wide(input_x)
    channels = _channels(x, "batch_norm")
    if running_mean is None or running_var is None:
        message = "batch_norm needs running_mean and running_var unless training=True."
        raise ArgumentError(message)
    stretched = (channels, *[1] * (x.ndim - 2))
    mean, variance = [
        reshape(cast(_statistic(value, channels, what), x.dtype), stretched)
        for value, what in ((running_mean, "running_mean"), (running_var, "running_var"))
    ]
    y = (x - mean) / _deviation(variance, eps)
    return _back(_per_channel(y, weight, bias, "batch_norm"), input_x)


def _statistic(value: Any, channels: int, what: str) -> Node:
    node = as_node(value)
    if node.shape != (channels,):
        message = f"{what} must have shape ({channels},), one per channel, but has {node.shape}."
        raise ShapeError(message)
    return node


@documented
def batch_norm_training(
    input_x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """`batch_norm` by the statistics of the batch, and the new running statistics.

    input_x : array-like, shape (N, C, ...)
    running_mean, running_var : array-like, shape (C,), or None
    weight, bias : array-like, shape (C,), optional
    momentum : float
        New statistics are `(1 - momentum) * running + momentum * batch`. MindSpore's layers have 1 - momentum for it.
    -> output : Tensor, of the input's shape
        Standardised by the biased variance.
    -> running_mean, running_var : Tensor, shape (C,), or None
        No gradient flows through them. The running variance is of the unbiased variances.
    ShapeError : If there is only one value per channel, which has no variance.
    """
    x = _wide(input_x)
    channels = _channels(x, "batch_norm")
    axes = [axis for axis in range(x.ndim) if axis != 1]
    count = math.prod(x.shape[axis] for axis in axes)
    if count < 2:
        message = f"Training batch_norm needs more than one value per channel, but the input has shape {x.shape}."
        raise ShapeError(message)
    centred, mean, variance = moments(x, axes)
    y = _per_channel(centred / _deviation(variance, eps), weight, bias, "batch_norm")
    unbiased = variance * scalar(count / (count - 1), x.dtype)
    fresh: list[Tensor | None] = []
    for old, new, what in ((running_mean, mean, "running_mean"), (running_var, unbiased, "running_var")):
        if old is None:
            fresh.append(None)
            continue
        before = _statistic(old, channels, what)
        batch = elementwise("stop_gradient", cast(reshape(new, (channels,)), before.dtype))
        part = scalar(momentum, before.dtype)
        fresh.append(wrap(elementwise("stop_gradient", before + (batch - before) * part)))
    return _back(y, input_x), fresh[0], fresh[1]


# ----- Vectors -----


@documented
def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide by the p-norm along an axis, or by eps where that is larger.

    -> Tensor, of the input's shape

    >>> import numpy as np, nbgrad as nb
    >>> nb.ops.normalize(np.array([[3.0, 4.0]])).asnumpy()
    array([[0.6, 0.8]])
    """
    x = _wide(input)
    norm = as_node(vector_norm(wrap(x), axis=axis_of(dim, x.ndim), keepdims=True, ord=p))
    least = scalar(eps, x.dtype)
    return _back(x / elementwise("select", elementwise("less", norm, least), least, norm), input)


@documented
def rms_norm(x: Any, gamma: Any, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Divide by the root mean square over the last axes, those of gamma (Zhang and Sennrich 2019).

    x : array-like, shape `(..., *gamma.shape)`
    gamma : array-like
    -> output : Tensor, of the shape of x
        `x / sqrt(mean(x**2) + epsilon) * gamma`.
    -> rstd : Tensor
        `1 / sqrt(mean(x**2) + epsilon)`, with the axes of gamma of extent 1.
    ShapeError : If x does not end in the shape of gamma.
    """
    node, shape = _wide(x), as_node(gamma).shape
    first = node.ndim - len(shape)
    if not shape or first < 0 or node.shape[first:] != shape:
        message = f"x of rms_norm has shape {node.shape}, which does not end in the shape of gamma, {shape}."
        raise ShapeError(message)
    inverse = 1.0 / _deviation(mean_over(node * node, range(first, node.ndim)), epsilon)
    y = _affine(node * inverse, gamma, None, shape, "rms_norm", shape)
    return _back(y, x), _back(inverse, x)


@documented
def lrn(
    x: Any,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    norm_region: str = "ACROSS_CHANNELS",
) -> Tensor:
    """Divide by `(bias + alpha * s)**beta`, where s sums squares over nearby channels (Krizhevsky et al. 2012).

    x : array-like, shape (N, C, H, W)
    depth_radius : int
        Channels on either side that count.
    norm_region : {"ACROSS_CHANNELS"}
    -> Tensor, of the input's shape

    Notes
    -----
    Differs from `torch.nn.functional.local_response_norm`, which divides alpha by the number of channels.
    """
    node = _wide(x)
    if norm_region != "ACROSS_CHANNELS":
        message = f"norm_region={norm_region!r} is not supported; use 'ACROSS_CHANNELS'."
        raise ArgumentError(message)
    channels, radius = _channels(node, "lrn"), integer(depth_radius, "depth_radius")
    rows = reshape(node * node, (node.shape[0], 1, channels, math.prod(node.shape[2:])))
    size = (channels, rows.shape[3])
    windows = unfold(rows, ((2 * radius + 1, 1), (1, 1), (1, 1), (radius, 0), size))
    total = reshape(reduce("sum", windows, (0, 1, 2)), node.shape)
    base = total * scalar(alpha, node.dtype) + scalar(bias, node.dtype)
    return _back(node / elementwise("power", base, scalar(beta, node.dtype)), x)
