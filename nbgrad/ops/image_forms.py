"""Functions that only exist as class forms, of images, losses and boxes.

In: arrays and the options of a form. Out: Tensors. Called by class_forms.py, whose table names them, and by
`nn.ResizeBilinear`; `interpolate` in pooling.py is the function of sizes for users.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..functions.elementwise.ufunc_functions import rint as rint
from ..functions.linalg.einsum import einsum as plain_einsum
from ..graph.builders import cast, reshape, transpose
from ..graph.ir import Node, constant
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact, only, take_positions
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter
from . import losses, volumes
from . import reduction_functions as reductions
from .convolution import conv2d, pair, resolve_padding
from .gathering import tensor_scatter_add, tensor_scatter_update
from .pooling import avg_pool2d, max_pool2d
from .random_tensors import rand, randint, randn


def convolution_2d(
    x: Any,
    weight: Any,
    out_channel: int,
    kernel_size: Any,
    mode: int,
    pad_mode: str,
    pad: Any,
    stride: Any,
    dilation: Any,
    group: int,
    data_format: str,
) -> Tensor:
    """`ops.conv2d` with a weight of the shape that the options say."""
    only("data_format", data_format, "NCHW")
    only("mode", mode, 1)
    kernel = pair(kernel_size, "kernel_size")
    shape = as_node(weight).shape
    if shape[:1] + shape[2:] != (out_channel, *kernel):
        message = f"The weight of Conv2D has shape {shape}, but the options say ({out_channel}, ..., {kernel})."
        raise ShapeError(message)
    steps = stride[2:] if isinstance(stride, tuple) and len(stride) == 4 else stride
    spread = dilation[2:] if isinstance(dilation, tuple) and len(dilation) == 4 else dilation
    return conv2d(x, weight, None, steps, pad_mode.lower(), pad if pad_mode.lower() == "pad" else 0, spread, group)


def windows_around(x: Any, kernel_size: Any, strides: Any, pad_mode: str, data_format: str) -> tuple[Any, Any, Any]:
    """Windows, their steps and their padding, as `max_pool2d` takes them."""
    only("data_format", data_format, "NCHW")
    mode = pad_mode.lower()
    only("pad_mode", mode, "valid", "same")
    kernel, steps = (one[2:] if isinstance(one, tuple) and len(one) == 4 else one for one in (kernel_size, strides))
    kernel, steps = pair(kernel, "kernel_size"), pair(steps, "strides")
    shape = as_node(x).shape
    rows, columns = resolve_padding(mode, 0, (shape[-2], shape[-1]), kernel, steps, (1, 1))
    return kernel, steps, (*rows, *columns)


def max_pool(x: Any, kernel_size: Any, strides: Any, pad_mode: str, data_format: str) -> Tensor:
    """The greatest element of every window."""
    kernel, steps, around = windows_around(x, kernel_size, strides, pad_mode, data_format)
    return max_pool2d(x, kernel, steps, around)


def avg_pool(x: Any, kernel_size: Any, strides: Any, pad_mode: str, data_format: str) -> Tensor:
    """The mean of every window, of the elements that are there."""
    kernel, steps, around = windows_around(x, kernel_size, strides, pad_mode, data_format)
    return avg_pool2d(x, kernel, steps, around, count_include_pad=False)


def max_pool_3d(
    x: Any, kernel_size: Any, strides: Any, pad_mode: str, pad_list: Any, ceil_mode: Any, data_format: str
) -> Tensor:
    """The greatest element of every window of volumes."""
    only("data_format", data_format, "NCDHW")
    return volumes.max_pool3d(x, kernel_size, strides, pad_list, 1, bool(ceil_mode), pad_mode=pad_mode)


def avg_pool_3d(
    x: Any,
    kernel_size: Any,
    strides: Any,
    pad_mode: str,
    pad: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int,
    data_format: str,
) -> Tensor:
    """The mean of every window of volumes."""
    only("data_format", data_format, "NCDHW")
    windows = kernel_size, strides, pad, bool(ceil_mode), count_include_pad, divisor_override
    return volumes.avg_pool3d(x, *windows, pad_mode=pad_mode)


# ----- Sizes -----


def _images(value: Any, size: Any, name: str) -> tuple[Node, tuple[int, int]]:
    x = as_node(value)
    if x.ndim != 4 or 0 in x.shape[2:]:
        message = f"{name} takes images (N, C, H, W) that are not empty, but got the shape {x.shape}."
        raise ShapeError(message)
    return x, pair(size, "size")


def _steps(n: int, count: int, align_corners: bool) -> float:
    """The distance of new elements in old ones."""
    return (n - 1) / (count - 1) if align_corners and count > 1 else n / count


def resize_bilinear(x: Any, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> Tensor:
    """Images of another size, by straight lines between pixels.

    Without flags, the new pixel k lies at k * H / h; with `align_corners` at k * (H - 1) / (h - 1); with
    `half_pixel_centers` at (k + 1/2) * H / h - 1/2.
    """
    if align_corners and half_pixel_centers:
        message = "Of align_corners and half_pixel_centers, only one can be true."
        raise ArgumentError(message)
    node, counts = _images(x, size, "ResizeBilinear")
    node = inexact(node)
    for axis, count in enumerate(counts, 2):
        n = node.shape[axis]
        step = _steps(n, count, align_corners)
        place = np.arange(count) * step if not half_pixel_centers else (np.arange(count) + 0.5) * step - 0.5
        place = np.clip(place, 0, n - 1)
        low = place.astype(np.int64)
        part = (place - low).astype(node.dtype).reshape(count, *[1] * (3 - axis))
        below, above = (take_positions(node, axis, np.minimum(low + k, n - 1)) for k in (0, 1))
        node = below + (above - below) * constant(part)
    return wrap(node)


def resize_nearest(x: Any, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> Tensor:
    """Images of another size, by the pixels that are there; places as for `resize_bilinear`, rounded down.

    With `align_corners` they are rounded to the nearest one.
    """
    node, counts = _images(x, size, "ResizeNearestNeighbor")
    for axis, count in enumerate(counts, 2):
        n = node.shape[axis]
        place = (np.arange(count) + (0.5 if half_pixel_centers else 0.0)) * _steps(n, count, align_corners)
        place = np.floor(place + 0.5) if align_corners else np.floor(place)
        node = take_positions(node, axis, np.minimum(place.astype(np.int64), n - 1))
    return wrap(node)


def depth_to_space(x: Any, block_size: int) -> Tensor:
    """Channels (N, b * b * C, H, W) as blocks of pixels: (N, C, b * H, b * W)."""
    node, (b, _) = _images(x, block_size, "DepthToSpace")
    n, c, h, w = node.shape
    if c % (b * b):
        message = f"DepthToSpace needs a multiple of {b * b} channels, but got {c}."
        raise ShapeError(message)
    parts = transpose(reshape(node, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    return wrap(reshape(parts, (n, c // (b * b), h * b, w * b)))


def space_to_depth(x: Any, block_size: int) -> Tensor:
    """Blocks of pixels (N, C, b * H, b * W) as channels: (N, b * b * C, H, W)."""
    node, (b, _) = _images(x, block_size, "SpaceToDepth")
    n, c, h, w = node.shape
    if h % b or w % b:
        message = f"SpaceToDepth needs multiples of {b} rows and columns, but got {h} and {w}."
        raise ShapeError(message)
    parts = transpose(reshape(node, (n, c, h // b, b, w // b, b)), (0, 3, 5, 1, 2, 4))
    return wrap(reshape(parts, (n, c * b * b, h // b, w // b)))


# ----- Random numbers -----


def uniform_real(shape: Any, seed: int, seed2: int) -> Tensor:
    """Uniform numbers in [0, 1), from the generator that `nb.set_seed` seeds; seeds here have no effect."""
    return rand(*shape)


def standard_normal_of(shape: Any, seed: int, seed2: int) -> Tensor:
    """Normal numbers, from the generator that `nb.set_seed` seeds; seeds here have no effect."""
    return randn(*shape)


def uniform_int(shape: Any, minval: Any, maxval: Any, seed: int, seed2: int) -> Tensor:
    """Integers from minval to maxval - 1, as int32, from the generator that `nb.set_seed` seeds."""
    low, high = (int(np.asarray(one)) for one in (minval, maxval))
    return wrap(cast(randint(low, high, tuple(shape))._node, np.dtype(np.int32)))


# ----- Losses -----


def softmax_cross_entropy(logits: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """The cross entropy of each row of logits with probabilities, and its gradient by the logits."""
    loss = losses.softmax_cross_entropy_with_logits(logits, labels)
    x, y = wrap(as_node(logits)), wrap(as_node(labels))
    shares: Any = np.exp(x - reductions.logsumexp(x, -1, keep_dims=True))
    return loss, shares - y


def sparse_softmax_cross_entropy(logits: Any, labels: Any, is_grad: bool) -> Tensor:
    """The mean cross entropy of rows of logits with class indices; with `is_grad` its gradient by the logits."""
    if not is_grad:
        return losses.softmax_cross_entropy_with_logits(logits, labels, sparse=True, reduction="mean")
    x = wrap(as_node(logits))
    shares: Any = np.exp(x - reductions.logsumexp(x, -1, keep_dims=True))
    classes = np.arange(x.shape[1])
    one_hot: Any = (wrap(as_node(labels)).reshape(-1, 1) == classes).astype(x.dtype)
    return (shares - one_hot) / float(x.shape[0])


def sigmoid_cross_entropy(logits: Any, label: Any) -> Tensor:
    """The cross entropy of `sigmoid(logits)` with labels, of each element."""
    return losses.binary_cross_entropy_with_logits(logits, label, reduction="none")


def cross_entropy_with_logits(logits: Any, label: Any, weight: Any, pos_weight: Any, reduction: str) -> Tensor:
    """The cross entropy of `sigmoid(logits)` with labels."""
    return losses.binary_cross_entropy_with_logits(logits, label, weight, pos_weight, reduction)


def cross_entropy_of_probabilities(logits: Any, labels: Any, weight: Any = None, *, reduction: str) -> Tensor:
    """The cross entropy of probabilities with labels."""
    return losses.binary_cross_entropy(logits, labels, weight, reduction)


def negative_log_likelihood(logits: Any, labels: Any, weight: Any, reduction: str, ignore_index: int) -> Any:
    """The negative of the logits at the labels, and the sum of the weights of the labels."""
    total: Any = np.take(wrap(as_node(weight)), wrap(as_node(labels))).sum()
    return losses.nll_loss(logits, labels, weight, ignore_index, reduction), total


# ----- Boxes (x1, y1, x2, y2) -----


def _boxes(value: Any) -> Any:
    """Boxes (N, 4)."""
    boxes = wrap(as_node(value))
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        message = f"Boxes must be an array (N, 4), but have the shape {boxes.shape}."
        raise ShapeError(message)
    return boxes


def iou(anchor_boxes: Any, gt_boxes: Any, mode: str = "iou") -> Tensor:
    """The common area of boxes divided by that of both together ("iou"), or by that of the second ("iof"): (M, N)."""
    only("mode", mode, "iou", "iof")
    a, b = _boxes(anchor_boxes)[None], _boxes(gt_boxes)[:, None]

    def area(box: Any) -> Any:
        return (box[..., 2] - box[..., 0] + 1) * (box[..., 3] - box[..., 1] + 1)

    wide = np.minimum(a[..., 2], b[..., 2]) - np.maximum(a[..., 0], b[..., 0]) + 1
    high = np.minimum(a[..., 3], b[..., 3]) - np.maximum(a[..., 1], b[..., 1]) + 1
    common = np.maximum(wide, 0) * np.maximum(high, 0)
    whole = area(b) + (area(a) - common if mode == "iou" else 0 * common)
    return common / whole


def _centres(boxes: Any) -> tuple[Any, Any, Any, Any]:
    """Centres and extents of boxes whose last pixels belong to them."""
    wide, high = boxes[:, 2] - boxes[:, 0] + 1.0, boxes[:, 3] - boxes[:, 1] + 1.0
    return (boxes[:, 0] + boxes[:, 2]) * 0.5, (boxes[:, 1] + boxes[:, 3]) * 0.5, wide, high


def bounding_box_encode(
    anchor_box: Any, groundtruth_box: Any, means: Any = (0.0, 0.0, 0.0, 0.0), stds: Any = (1.0, 1.0, 1.0, 1.0)
) -> Tensor:
    """Boxes relative to anchors: shifts in parts of the extents, and logarithms of the quotients of extents."""
    x, y, w, h = _centres(_boxes(groundtruth_box))
    ax, ay, aw, ah = _centres(_boxes(anchor_box))
    deltas = np.stack([(x - ax) / aw, (y - ay) / ah, np.log(w / aw), np.log(h / ah)], -1)
    return (deltas - np.asarray(means, np.float32)) / np.asarray(stds, np.float32)  # pyright: ignore


def bounding_box_decode(
    anchor_box: Any,
    deltas: Any,
    max_shape: Any,
    means: Any = (0.0, 0.0, 0.0, 0.0),
    stds: Any = (1.0, 1.0, 1.0, 1.0),
    wh_ratio_clip: float = 0.016,
) -> Tensor:
    """The boxes that shifts relative to anchors mean, cut to an image of `max_shape`."""
    given = _boxes(deltas) * np.asarray(stds, np.float32) + np.asarray(means, np.float32)
    ax, ay, aw, ah = _centres(_boxes(anchor_box))
    most = abs(float(np.log(wh_ratio_clip)))
    w, h = (size * np.exp(np.clip(given[:, k], -most, most)) for k, size in ((2, aw), (3, ah)))
    x, y = ax + aw * given[:, 0], ay + ah * given[:, 1]
    rows, columns = max_shape[0], max_shape[1]
    left, right = (np.clip(x + sign * (w * 0.5 - 0.5), 0, columns) for sign in (-1, 1))
    top, bottom = (np.clip(y + sign * (h * 0.5 - 0.5), 0, rows) for sign in (-1, 1))
    return np.stack([left, top, right, bottom], -1)  # pyright: ignore


def check_valid(bboxes: Any, img_metas: Any) -> Tensor:
    """Whether boxes lie in an image of (height, width) times a ratio."""
    box = _boxes(bboxes)
    meta: Any = wrap(as_node(img_metas))
    right, bottom = meta[1] * meta[2] - 1, meta[0] * meta[2] - 1
    return (box[:, 0] >= 0) & (box[:, 1] >= 0) & (box[:, 2] <= right) & (box[:, 3] <= bottom)


# ----- Others -----


def einsum_of(arrays: Any, equation: str) -> Tensor:
    """A sum of products by an equation, of a tuple of arrays."""
    return plain_einsum(equation, *arrays)


def lp_norm(x: Any, axis: Any, p: int, keep_dims: bool, epsilon: float) -> Tensor:
    """The p-th root of the sum of p-th powers of absolute values, at least `epsilon`."""
    axes = tuple(axis) if isinstance(axis, list) else axis
    total: Any = np.sum(np.abs(wrap(as_node(x))) ** p, axis=axes, keepdims=keep_dims)
    return np.maximum(total ** (1.0 / p), epsilon)


def written(input_x: Any, indices: Any, updates: Any, use_locking: bool, kind: str) -> Tensor:
    """A Parameter with new values at positions, or with values added there; the Parameter is changed."""
    if not isinstance(input_x, Parameter):
        message = f"The array that is written to must be a Parameter, but got {type(input_x).__name__}."
        raise DtypeError(message)
    change = tensor_scatter_update if kind == "update" else tensor_scatter_add
    input_x.set_data(change(input_x.value(), indices, updates))
    return input_x.value()
