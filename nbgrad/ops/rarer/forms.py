"""Functions that only exist as class forms: of normalisation, windows, boxes, sequences, convolutions.

In: arrays and the options of a form. Out: Tensors. class_table.py names them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy

from ...errors import ArgumentError, ShapeError
from ...record.axes_and_dtypes import integers, only, real_dtype
from ...record.tensor import Tensor
from ...tensors.parameter import Parameter
from ...transforms.custom import stop_gradient
from .. import image_forms
from ..convolution import conv_transpose2d, fold, unfold
from ..docstrings import documented
from ..filled_arrays import full, logspace
from ..gathering import bincount, searchsorted
from ..image_forms import resize_bilinear, resize_nearest
from ..linear_algebra import cross
from ..normalisation import batch_norm, batch_norm_training, layer_norm_from
from ..parameters import assign
from ..pooling import max_pool2d
from ..random_tensors import dropout2d, dropout3d
from ..volumes import max_pool3d
from .sampled_images import grid_sample
from .special_values import float_of, value_of
from .windows import hamming_window, stft

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

# ----- Normalisation -----


def normalized_batch(
    input_x: Any, scale: Any, bias: Any, mean: Any, variance: Any, is_training: bool, epsilon: float, momentum: float,
    data_format: str,
) -> tuple[Any, ...]:  # fmt: skip
    """`batch_norm`, and the statistics that it used; in training, moving ones that are Parameters take new values."""
    only("data_format", data_format, "NCHW")
    if is_training:
        result, *moving = batch_norm_training(input_x, mean, variance, scale, bias, momentum, epsilon)
        for kept, value in zip((mean, variance), moving, strict=True):
            if isinstance(kept, Parameter):
                assign(kept, value)
        x = float_of(input_x)
        axes = tuple([k for k in range(x.ndim) if k != 1])
        found = np.mean(x, axes), np.var(x, axes)
    else:
        result = batch_norm(input_x, mean, variance, scale, bias, False, momentum, epsilon)
        found = value_of(mean), value_of(variance)
    return (result, *found, *found)


def normalized_layer(
    input_x: Any, gamma: Any, beta: Any, begin_norm_axis: int, begin_params_axis: int, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm_from`, and the means and variances."""
    x = float_of(input_x)
    axes = tuple(range(begin_norm_axis % x.ndim, x.ndim))
    result = layer_norm_from(x, gamma, beta, begin_norm_axis, begin_params_axis, epsilon)
    return result, np.mean(x, axes, keepdims=True), np.var(x, axes, keepdims=True)


def _with_mask(drop: Any, x: Any, keep_prob: float) -> tuple[Tensor, Tensor]:
    scaled = drop(np.ones_like(float_of(x)), 1 - keep_prob)
    return scaled * value_of(x), scaled != 0


def dropped_images(x: Any, keep_prob: float) -> tuple[Tensor, Tensor]:
    """Channels of images kept with a probability, and the mask of what was kept."""
    return _with_mask(dropout2d, x, keep_prob)


def dropped_volumes(x: Any, keep_prob: float) -> tuple[Tensor, Tensor]:
    """Channels of volumes kept with a probability, and the mask of what was kept."""
    return _with_mask(dropout3d, x, keep_prob)


# ----- Windows and convolutions -----


def columns(x: Any, ksizes: Any, strides: Any, dilations: Any, pads: Any) -> Tensor:
    """The elements of windows as columns: (N, C, window, positions)."""
    images = value_of(x)
    found = unfold(images, ksizes, dilations, pads, strides)
    return found.reshape((*images.shape[:2], -1, found.shape[-1]))


@documented
def col2im(input_x: Any, output_size: Any, kernel_size: Any, dilation: Any, padding_value: Any, stride: Any) -> Tensor:
    """The sums of columns (N, C, window, positions) at the places of their windows, as images.

    output_size : Tensor or pair of int
        The extents of the images.
    kernel_size, dilation, padding_value, stride : int or pair of int
    """
    return images_of(input_x, output_size, kernel_size, dilation, padding_value, stride)


def images_of(x: Any, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    """The sums of columns (N, C, window, positions) at the places of their windows."""
    parts = value_of(x)
    flat = parts.reshape((parts.shape[0], -1, parts.shape[-1]))
    sizes = tuple(np.asarray(output_size).tolist())
    kernel, spread, ends, steps = (
        tuple(integers(value, "an option")) if isinstance(value, list | tuple) else value
        for value in (kernel_size, dilation, padding, stride)
    )
    return fold(flat, sizes, kernel, spread, ends, steps)


def maxima_and_places(
    x: Any, kernel_size: Any, strides: Any, pads: Any, dilation: Any, ceil_mode: bool, argmax_type: Any
) -> tuple[Tensor, Tensor]:
    """The greatest element of every window, and its flat position."""
    values, places = max_pool2d(x, kernel_size, strides, pads, dilation, True, ceil_mode)
    return values, places.astype(real_dtype(argmax_type))


def maxima_and_places_padded(
    x: Any, kernel_size: Any, strides: Any, pad_mode: str, data_format: str
) -> tuple[Tensor, Tensor]:
    """The greatest element of every window, and its flat position in its image (C, H, W)."""
    kernel, steps, around = image_forms.windows_around(x, kernel_size, strides, pad_mode, data_format)
    values, places = max_pool2d(x, kernel, steps, around, 1, True)
    channels, height, width = value_of(x).shape[-3:]
    return values, (places + (np.arange(channels) * height * width)[:, None, None]).astype(np.int32)


def maxima_and_places_3d(
    x: Any, ksize: Any, strides: Any, pads: Any, dilation: Any, ceil_mode: bool, data_format: str, argmax_type: Any
) -> tuple[Tensor, Tensor]:
    """The greatest element of every window of volumes, and its flat position in its volume."""
    only("data_format", data_format, "NCDHW")
    values, places = max_pool3d(x, ksize, strides, pads, dilation, ceil_mode, True)
    return values, places.astype(real_dtype(argmax_type))


def transposed_convolution(
    dout: Any, weight: Any, input_size: Any, out_channel: int, kernel_size: Any, pad_mode: str, pad: Any,
    pad_list: Any, mode: int, stride: Any, dilation: Any, group: int, data_format: str,
) -> Tensor:  # fmt: skip
    """The derivative of a convolution by its images, of the shape `input_size`."""
    only("data_format", data_format, "NCHW")
    only("pad_mode", pad_mode.lower(), "valid", "pad", "same")
    del out_channel, kernel_size, mode, pad_list
    wanted = tuple(integers(input_size, "input_size"))
    if pad_mode.lower() == "same":
        result = conv_transpose2d(dout, weight, None, stride, 0, 0, group, dilation, pad_mode="same")
        if result.shape != wanted:
            message = f"With pad_mode='same' the input_size must be {result.shape}, but is {wanted}."
            raise ShapeError(message)
        return result
    result = conv_transpose2d(dout, weight, None, stride, pad, 0, group, dilation)
    missing = [n - m for n, m in zip(wanted[2:], result.shape[2:], strict=True)]
    return np.pad(result, ((0, 0), (0, 0), (0, missing[0]), (0, missing[1])))


def resized_nearest(image: Any, size: Any, align_corners: bool, half_pixel_centers: bool) -> Tensor:
    """`ResizeNearestNeighbor` with the size as an array."""
    return resize_nearest(image, tuple(np.asarray(size).tolist()), align_corners, half_pixel_centers)


def resized_bilinear(image: Any, size: Any, align_corners: bool, half_pixel_centers: bool) -> Tensor:
    """`ResizeBilinear` with the size as an array."""
    return resize_bilinear(image, tuple(np.asarray(size).tolist()), align_corners, half_pixel_centers)


def resized_linear(x: Any, size: Any, coordinate_transformation_mode: str) -> Tensor:
    """Signals (N, C, L) of another length, by straight lines."""
    mode = coordinate_transformation_mode
    only("coordinate_transformation_mode", mode, "align_corners", "half_pixel", "asymmetric")
    images = value_of(x)[:, :, None, :]
    length = int(np.asarray(size).reshape(()))
    return resize_bilinear(images, (1, length), mode == "align_corners", mode == "half_pixel")[:, :, 0, :]


def sampled(input_x: Any, grid: Any, interpolation_mode: str, padding_mode: str, align_corners: bool) -> Tensor:
    """`grid_sample` by the options of its class form."""
    return grid_sample(input_x, grid, interpolation_mode, padding_mode, align_corners)


def hamming(length: Any, periodic: bool, alpha: float, beta: float, dtype: Any) -> Tensor:
    """`hamming_window` by the options of its class form."""
    return hamming_window(length, periodic, alpha, beta, dtype=dtype)


def short_transforms(
    x: Any, window: Any, n_fft: int, hop_length: int, win_length: int, normalized: bool, onesided: bool,
    return_complex: bool,
) -> Tensor:  # fmt: skip
    """`stft` without a border."""
    return stft(x, n_fft, hop_length, win_length, window, False, "REFLECT", normalized, onesided, return_complex)


# ----- Positions and numbers -----


def search(sorted_x: Any, values: Any, out_type: Any, right: bool) -> Tensor:
    """`searchsorted` in an integer dtype."""
    return searchsorted(sorted_x, values, right=right).astype(real_dtype(out_type))


def search_by_order(sorted_sequence: Any, values: Any, sorter: Any = None, *, dtype: Any, right: bool) -> Tensor:
    """`searchsorted` by the options of its class form."""
    return searchsorted(sorted_sequence, values, right=right, sorter=sorter).astype(real_dtype(dtype))


def counts(array: Any, size: Any, weights: Any) -> Tensor:
    """The sums of weights of the numbers below `size`."""
    count = int(np.asarray(size))
    numbers = value_of(array)
    kept = np.flatnonzero(np.asarray(numbers) < count)
    found = bincount(numbers[kept], value_of(weights)[kept], count)
    return found.astype(np.dtype(value_of(weights).dtype.name))


def filled(shape: Any, value: Any) -> Tensor:
    """A value repeated in a shape that is an array."""
    number = value_of(value)
    return full(tuple(np.asarray(shape).tolist()), number, dtype=number.dtype)


def powers(start: Any, end: Any, steps: int, base: int, dtype: Any) -> Tensor:
    """`logspace` by the options of its class form."""
    return logspace(start, end, steps, base, dtype=dtype)


def product_across(input: Any, other: Any, dim: int) -> Tensor:
    """`cross`, along the first axis of extent 3 by default."""
    return cross(input, other, None if dim == -65530 else dim)


def joined(values: Any) -> Tensor:
    """Arrays joined along their first axis."""
    return np.concatenate([value_of(value) for value in values])


def partially(function: Any, *args: Any) -> Any:
    """A function with its first arguments given."""
    return partial(function, *args)


def copied(x: Any) -> Any:
    """A copy: what is written to it later does not reach the argument."""
    return value_of(x).copy() if not isinstance(x, tuple | list) else type(x)([copied(one) for one in x])


def stopped(value: Any) -> Any:
    """`stop_gradient`."""
    return stop_gradient(value)


# ----- Boxes and sequences -----


def separate_boxes(bboxes: Any, iou_threshold: float) -> tuple[Tensor, Tensor, Tensor]:
    """Boxes with scores, the greatest score first, their places, and which overlap none before them too much."""
    boxes = np.asarray(value_of(bboxes))
    order = np.argsort(-boxes[:, 4], kind="stable")
    found = boxes[order]
    area = (found[:, 2] - found[:, 0]) * (found[:, 3] - found[:, 1])
    kept = np.ones(len(found), bool)
    for row in range(len(found)):
        if kept[row]:
            low = np.maximum(found[row, :2], found[row + 1 :, :2])
            high = np.minimum(found[row, 2:4], found[row + 1 :, 2:4])
            common = np.prod(np.maximum(high - low, 0), axis=1)
            kept[row + 1 :] &= common / (area[row] + area[row + 1 :] - common) <= iou_threshold
    return Tensor(found), Tensor(np.arange(len(found), dtype=np.int32)), Tensor(kept)


def without_repeated_runs(state_seq: Any, log_probs: Any, ngram_size: int) -> Tensor:
    """Log-probabilities, the lowest number for tokens that would repeat a run of tokens."""
    tokens, scores = np.asarray(value_of(state_seq)), value_of(log_probs)
    if not 0 < ngram_size <= tokens.shape[-1]:
        message = f"ngram_size must be from 1 to the length {tokens.shape[-1]}, but is {ngram_size}."
        raise ArgumentError(message)
    barred = np.zeros(scores.shape, bool)
    for place in np.ndindex(tokens.shape[:-1]):
        line, size = tokens[place], ngram_size - 1
        end = line[line.size - size :]
        for start in range(line.size - size):
            if np.array_equal(line[start : start + size], end):
                barred[place][line[start + size]] = True
    lowest = np.finfo(np.dtype(scores.dtype.name)).min
    return np.where(barred, lowest, scores)


def edit_distances(
    hypothesis_indices: Any, hypothesis_values: Any, hypothesis_shape: Any, truth_indices: Any, truth_values: Any,
    truth_shape: Any, normalize: bool,
) -> Tensor:  # fmt: skip
    """The least numbers of changes from sparse sequences to other ones, divided by the lengths of these."""
    extents = np.maximum(np.asarray(hypothesis_shape), np.asarray(truth_shape))[:-1]
    found = np.zeros(extents, np.float32)
    first, second = (
        {
            place: np.asarray(values)[(np.asarray(indices)[:, :-1] == place).all(axis=1)]
            for place in np.ndindex(*extents)
        }
        for indices, values in ((hypothesis_indices, hypothesis_values), (truth_indices, truth_values))
    )
    for place in np.ndindex(*extents):
        given, wanted = first[place], second[place]
        row = np.arange(wanted.size + 1.0)
        for k, token in enumerate(given):
            last, row = row, row + 1
            for j, other in enumerate(wanted):
                row[j + 1] = min(last[j + 1] + 1, row[j] + 1, last[j] + (token != other))
            row[0] = k + 1
        length = wanted.size if normalize else 1
        found[place] = row[-1] / length if length else np.inf if given.size else 0.0
    return Tensor(found)
