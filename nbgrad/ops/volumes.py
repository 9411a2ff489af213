"""Convolutions and pools of volumes (N, C, D, H, W), by those of images.

In: volumes, weights. Out: Tensors. Called by users, by image_forms.py and by the layers of `nn`. A slice of depth of
the kernel is a convolution of images; the result is the sum over these slices, or the maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..functions.analysis.padding import pad
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact, only
from ..record.tensor import Tensor
from .convolution import conv2d, conv_transpose2d
from .docstrings import documented
from .pooling import avg_pool2d, max_pool2d
from .shape_functions import reshape, stack, transpose

Triple = tuple[int, int, int]
Ends = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]


def triple(value: Any, name: str, least: int = 1) -> Triple:
    """Three integers, or one for all.

    Raises
    ------
    ArgumentError
        If it is something else.
    """
    given = tuple(value) if isinstance(value, list | tuple) else (value,) * 3
    if len(given) != 3 or not all(isinstance(one, int | np.integer) and one >= least for one in given):
        message = f"{name} must be an integer of at least {least}, or three of them, but got {value!r}."
        raise ArgumentError(message)
    return int(given[0]), int(given[1]), int(given[2])


def ends_of(
    pad_mode: str, padding: Any, size: Sequence[int], kernel: Sequence[int], stride: Triple, dilation: Triple
) -> Ends:
    """The padding before and after each axis.

    Raises
    ------
    ArgumentError
        If the mode does not exist, or padding is given to a mode that does not use it.
    """
    mode = pad_mode.lower() if isinstance(pad_mode, str) else pad_mode
    only("pad_mode", mode, "valid", "same", "pad")
    given = tuple(padding) if isinstance(padding, list | tuple) else (padding,) * 3
    if len(given) not in (3, 6) or any(not isinstance(one, int | np.integer) or one < 0 for one in given):
        message = f"padding must be an integer, or three or six, none negative, but got {padding!r}."
        raise ArgumentError(message)
    if mode != "pad" and any(given):
        message = f"padding={padding!r} is only used with pad_mode='pad', but pad_mode is {pad_mode!r}."
        raise ArgumentError(message)
    if mode == "same":
        missing = [
            max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
            for n, k, s, d in zip(size, kernel, stride, dilation, strict=True)
        ]
        pairs = [(one // 2, one - one // 2) for one in missing]
    else:
        six = given if len(given) == 6 else tuple([one for n in given for one in (n, n)])
        pairs = [(int(six[0]), int(six[1])), (int(six[2]), int(six[3])), (int(six[4]), int(six[5]))]
    return pairs[0], pairs[1], pairs[2]


def _volume(value: Any, name: str) -> tuple[Tensor, bool]:
    """A volume with a batch axis, and whether it had one."""
    x = wrap(inexact(as_node(value)))
    if x.ndim not in (4, 5):
        message = f"{name} takes volumes (N, C, D, H, W) or (C, D, H, W), but got the shape {x.shape}."
        raise ShapeError(message)
    return (x, True) if x.ndim == 5 else (reshape(x, (1, *x.shape)), False)


def _slices(x: Tensor, kernel: int, stride: int, dilation: int, name: str) -> tuple[list[Tensor], int]:
    """For each slice of the kernel, the images (N * od, C, H, W) that it meets; and od."""
    depth = x.shape[2]
    count = (depth - dilation * (kernel - 1) - 1) // stride + 1
    if count < 1:
        message = f"The kernel of {name} is deeper than its input: {kernel} and {depth} with padding."
        raise ShapeError(message)
    planes = transpose(x, (0, 2, 1, 3, 4))
    found: list[Tensor] = []
    for k in range(kernel):
        start = k * dilation
        part: Any = planes[:, start : start + (count - 1) * stride + 1 : stride]
        found.append(reshape(part, (-1, *part.shape[2:])))
    return found, count


def _volumes(images: Tensor, count: int, batched: bool) -> Tensor:
    """Images (N * od, C, H, W) as volumes."""
    y = transpose(reshape(images, (-1, count, *images.shape[1:])), (0, 2, 1, 3, 4))
    return y if batched else reshape(y, y.shape[1:])


@documented
def conv3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    pad_mode: str = "valid",
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over the last three axes.

    input : array-like, shape (N, C, D, H, W) or (C, D, H, W)
    weight : array-like, shape (Cout, C / groups, kd, kh, kw)
    bias : array-like, shape (Cout,), optional
    stride, dilation : int or three int
    pad_mode : {"valid", "same", "pad"}
        As for `conv2d`.
    padding : int, three int, or (front, back, top, bottom, left, right)
        Only for `pad_mode="pad"`.
    groups : int
        Channels are split into groups that do not see each other.
    -> Tensor, shape (N, Cout, od, oh, ow) or (Cout, od, oh, ow)
    ShapeError, ArgumentError : If shapes do not fit, or padding is given in a mode that does not use it.

    >>> nb.ops.conv3d(nb.ops.ones((1, 1, 3, 3, 3)), nb.ops.ones((2, 1, 2, 2, 2))).shape
    (1, 2, 2, 2, 2)
    """
    x, batched = _volume(input, "conv3d")
    w = wrap(inexact(as_node(weight)))
    if w.ndim != 5:
        message = f"The weight of conv3d has shape {w.shape}; expected (Cout, C / groups, kd, kh, kw)."
        raise ShapeError(message)
    kernel, steps, spread = w.shape[2:], triple(stride, "stride"), triple(dilation, "dilation")
    front, top, left = ends_of(pad_mode, padding, x.shape[2:], kernel, steps, spread)
    x = pad(x, [(0, 0), (0, 0), front, (0, 0), (0, 0)]) if any(front) else x
    parts, count = _slices(x, kernel[0], steps[0], spread[0], "conv3d")
    around = (*top, *left)
    mode = "pad" if any(around) else "valid"
    y: Any = None
    for k, part in enumerate(parts):
        slice_ = conv2d(part, w[:, :, k], bias if k == 0 else None, steps[1:], mode, around, spread[1:], groups)
        y = slice_ if y is None else y + slice_
    return _volumes(y, count, batched)


@documented
def conv_transpose3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The adjoint of a convolution of volumes, which enlarges them: the gradient of `conv3d` by its volume.

    input : array-like, shape (N, C, D, H, W) or (C, D, H, W)
    weight : array-like, shape (C, Cout / groups, kd, kh, kw)
    bias : array-like, shape (Cout,), optional
    stride, dilation : int or three int
    padding : int, three int, or (front, back, top, bottom, left, right)
        Of the convolution whose adjoint this is.
    output_padding : int or three int
        Added at the end.
    groups : int
    -> Tensor
    ShapeError, ArgumentError : If shapes do not fit.
    """
    x, batched = _volume(input, "conv_transpose3d")
    w = wrap(inexact(as_node(weight)))
    if w.ndim != 5:
        message = f"The weight of conv_transpose3d has shape {w.shape}; expected (C, Cout / groups, kd, kh, kw)."
        raise ShapeError(message)
    steps, spread = triple(stride, "stride"), triple(dilation, "dilation")
    extra = triple(output_padding, "output_padding", 0)
    front, top, left = ends_of("pad", padding, x.shape[2:], w.shape[2:], steps, spread)
    n, _, depth = x.shape[:3]
    full = (depth - 1) * steps[0] + spread[0] * (w.shape[2] - 1) + 1
    length = full - sum(front) + extra[0]
    if length < 1:
        message = f"The output of conv_transpose3d would have the depth {length}: the padding is too large."
        raise ShapeError(message)
    planes = reshape(transpose(x, (0, 2, 1, 3, 4)), (-1, x.shape[1], *x.shape[3:]))
    y: Any = None
    for k in range(w.shape[2]):
        part = conv_transpose2d(planes, w[:, :, k], None, steps[1:], (*top, *left), extra[1:], groups, spread[1:])
        images = reshape(part, (n, depth, *part.shape[1:]))
        spaced = _spaced(images, steps[0])
        before, after = k * spread[0], full + extra[0] - k * spread[0] - spaced.shape[1]
        placed = pad(spaced, [(0, 0), (before, after), (0, 0), (0, 0), (0, 0)])
        y = placed if y is None else y + placed
    y = transpose(y[:, front[0] : front[0] + length], (0, 2, 1, 3, 4))
    if bias is not None:
        y = y + reshape(bias, (-1, 1, 1, 1))
    return y if batched else reshape(y, y.shape[1:])


def _spaced(images: Tensor, step: int) -> Tensor:
    """Planes with zeros between them: (N, D, ...) to (N, (D - 1) * step + 1, ...)."""
    if step == 1:
        return images
    zeros = [images * 0] * (step - 1)
    n, depth = images.shape[:2]
    together = reshape(stack([images, *zeros], 2), (n, depth * step, *images.shape[2:]))
    return together[:, : (depth - 1) * step + 1]


def _pooled(
    x: Any, kernel_size: Any, stride: Any, pad_mode: str, padding: Any, name: str, dilation: Triple = (1, 1, 1)
) -> Any:
    """A volume, the windows and the padding."""
    volume, batched = _volume(x, name)
    kernel = triple(kernel_size, "kernel_size")
    steps = kernel if stride is None else triple(stride, "stride")
    return volume, batched, kernel, steps, ends_of(pad_mode, padding, volume.shape[2:], kernel, steps, dilation)


@documented
def max_pool3d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
    pad_mode: str = "pad",
) -> Any:
    """The greatest element of every window of volumes.

    x : array-like, shape (N, C, D, H, W) or (C, D, H, W)
    kernel_size, dilation : int or three int
    stride : int or three int, optional
        By default the kernel's size.
    padding : int, three int, or (front, back, top, bottom, left, right)
        Padding is never the greatest element.
    ceil_mode : bool
        Also use windows that reach beyond the padded volume, if they start inside of it.
    return_indices : bool
        Also give the positions `(plane * H + row) * W + column` of the elements.
    pad_mode : {"pad", "valid", "same"}
    -> Tensor; with `return_indices` a pair of them
    """
    spread = triple(dilation, "dilation")
    volume, batched, kernel, steps, ends = _pooled(x, kernel_size, stride, pad_mode, padding, "max_pool3d", spread)
    front, top, left = ends
    depth, height, width = volume.shape[2:]
    if ceil_mode:
        front = (front[0], front[1] + _missing(depth, front, spread[0] * (kernel[0] - 1) + 1, steps[0]))
    if any(front):
        volume = pad(volume, [(0, 0), (0, 0), front, (0, 0), (0, 0)], constant_values=-np.inf)
    parts, count = _slices(volume, kernel[0], steps[0], spread[0], "max_pool3d")
    windows = kernel[1:], steps[1:], (*top, *left), spread[1:]
    if not return_indices:
        best: Any = parts[0]
        for part in parts[1:]:
            best = np.maximum(best, part)
        return _volumes(max_pool2d(best, *windows, False, ceil_mode), count, batched)
    best: Any
    place: Any
    inside: Any
    best = place = inside = None
    for k, part in enumerate(parts):
        value, at = max_pool2d(part, *windows, True, ceil_mode)
        plane = np.arange(count) * steps[0] + k * spread[0] - front[0]
        here = np.tile((plane >= 0) & (plane < depth), len(part) // count)[:, None, None, None]
        at = at + np.tile(plane * height * width, len(part) // count)[:, None, None, None]
        if k == 0:
            best, place, inside = value, at, here
            continue
        better = here & (~inside | (value > best) | (np.isnan(value) & ~np.isnan(best)))
        best, place, inside = np.where(better, value, best), np.where(better, at, place), inside | here
    return _volumes(best, count, batched), _volumes(place, count, batched)


def _missing(length: int, ends: tuple[int, int], kernel: int, step: int) -> int:
    """How many planes a last window lacks that starts before the end of the volume."""
    rest = length + sum(ends) - kernel
    count = -(-rest // step) + 1
    if (count - 1) * step >= length + ends[0]:
        count -= 1
    return max((count - 1) * step - rest, 0)


@documented
def avg_pool3d(
    input_x: Any,
    kernel_size: Any = 1,
    stride: Any = 1,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int = 0,
    *,
    pad_mode: str = "pad",
) -> Tensor:
    """The mean of every window of volumes.

    input_x : array-like, shape (N, C, D, H, W) or (C, D, H, W)
    kernel_size, stride : int or three int
    padding : int, three int, or (front, back, top, bottom, left, right)
    ceil_mode : bool
        Also use windows that reach beyond the padded volume, if they start inside of it.
    count_include_pad : bool
        Whether padding counts as zeros, or not at all.
    divisor_override : int
        The divisor of sums, instead of the number of elements; 0 for none.
    pad_mode : {"pad", "valid", "same"}
    -> Tensor
    """
    volume, batched, kernel, steps, ends = _pooled(input_x, kernel_size, stride, pad_mode, padding, "avg_pool3d")
    beyond = [0, 0, 0]
    if ceil_mode:
        beyond = [_missing(*one) for one in zip(volume.shape[2:], ends, kernel, steps, strict=True)]
    wide: Any = tuple([(first, last + more) for (first, last), more in zip(ends, beyond, strict=True)])
    total = _window_sums(volume, kernel, steps, wide, batched)
    if divisor_override:
        return total / float(divisor_override)
    if not any(beyond) and (count_include_pad or not any(map(any, ends))):
        return total / float(np.prod(kernel))
    ones: Any = Tensor(np.ones((1, 1, *volume.shape[2:]), volume.dtype.dtype))
    if count_include_pad:
        ones = pad(ones, [(0, 0), (0, 0), *ends], constant_values=1)
        wide = tuple([(0, more) for more in beyond])
    counts = _window_sums(ones, kernel, steps, wide, True)
    return total / (counts if batched else counts[0])


def _window_sums(volume: Tensor, kernel: Triple, steps: Triple, ends: Ends, batched: bool) -> Any:
    front, top, left = ends
    if any(map(any, ends)):
        volume = pad(volume, [(0, 0), (0, 0), front, top, left])
    parts, count = _slices(volume, kernel[0], steps[0], 1, "avg_pool3d")
    total: Any = parts[0]
    for part in parts[1:]:
        total = total + part
    means = avg_pool2d(total, kernel[1:], steps[1:])
    return _volumes(means * float(kernel[1] * kernel[2]), count, batched)
