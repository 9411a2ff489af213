"""Windows of other means than the average, and windows at uneven places: power means, fractional pooling.

In: images and the sizes of windows. Out: Tensors. Called by users and layers, and by class forms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from ...errors import ArgumentError, DtypeError, ShapeError
from ...record.axes_and_dtypes import integers, only
from ...record.tensor import Tensor
from ..docstrings import documented
from ..pooling import avg_pool1d, avg_pool2d
from ..random_tensors import rand
from ..volumes import conv_transpose3d
from .special_values import float_of, value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

# ----- Power means -----


def _power(norm_type: Any, name: str) -> float:
    """The exponent of a norm.

    Raises
    ------
    DtypeError, ArgumentError
        If it is no number, or 0.
    """
    if isinstance(norm_type, bool) or not isinstance(norm_type, int | float):
        message = f"norm_type of {name} must be a number, but is {norm_type!r:.40}."
        raise DtypeError(message)
    if norm_type == 0:
        message = f"norm_type of {name} must not be 0. Give the exponent of a norm, such as 2."
        raise ArgumentError(message)
    return float(norm_type)


@documented
def lp_pool1d(x: Any, norm_type: float, kernel_size: int, stride: int | None = None, ceil_mode: bool = False) -> Tensor:
    """The root of the sum of powers of every window: `sum(x ** norm_type) ** (1 / norm_type)`.

    x : Tensor or ndarray, shape (N, C, L) or (C, L)
    norm_type : float
        The exponent, not 0; with 1 the sum.
    kernel_size : int
    stride : int, optional
        The kernel's size by default.
    ceil_mode : bool
        Also use a last window that reaches beyond the end, whose mean counts for the whole window.

    >>> print(nb.ops.lp_pool1d(nb.Tensor([[[3.0, 4.0, 6.0, 8.0]]]), 2, 2))
    [[[ 5. 10.]]]
    """
    power = _power(norm_type, "lp_pool1d")
    means = avg_pool1d(float_of(x) ** power, kernel_size, kernel_size if stride is None else stride, 0, ceil_mode)
    return (means * kernel_size) ** (1.0 / power)


@documented
def lp_pool2d(x: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The root of the sum of powers of every window of images; see `lp_pool1d`.

    x : Tensor or ndarray, shape (N, C, H, W) or (C, H, W)
    norm_type : float
    kernel_size, stride : int or pair of int
    ceil_mode : bool
    """
    power = _power(norm_type, "lp_pool2d")
    kernel = tuple(kernel_size) if isinstance(kernel_size, tuple | list) else (kernel_size, kernel_size)
    means = avg_pool2d(float_of(x) ** power, kernel, kernel if stride is None else stride, 0, ceil_mode)
    return (means * math.prod(kernel)) ** (1.0 / power)


# ----- Windows at uneven places -----


def _extents(value: Any, axes: int, name: str) -> tuple[int, ...]:
    found = integers(value, name) if isinstance(value, tuple | list) else [*integers(value, name)] * axes
    if len(found) != axes or min(found) < 1:
        message = f"{name} must be a positive number or {axes} of them, but is {value!r}."
        raise ArgumentError(message)
    return tuple(found)


def _wanted_size(size: Any, ratio: Any, extents: Sequence[int]) -> tuple[int, ...]:
    """The extents of the result, given as they are or as parts of the input's."""
    if size is not None:
        return _extents(size, len(extents), "output_size")
    if ratio is None:
        message = "Give output_size or output_ratio: one of them says how large the result is."
        raise ArgumentError(message)
    parts = tuple(ratio) if isinstance(ratio, tuple | list) else (ratio,) * len(extents)
    if len(parts) != len(extents) or not all(0 < part < 1 for part in parts):
        message = f"output_ratio must be a number between 0 and 1 or {len(extents)} of them, but is {ratio!r}."
        raise ArgumentError(message)
    return tuple([int(n * part) for n, part in zip(extents, parts, strict=True)])


def _starts(samples: Any, extent: int, count: int, kernel: int) -> Any:
    """Where windows begin: `count` places for each random number, the last one at the end of the axis."""
    last = extent - kernel
    if last < 0 or not 1 <= count <= extent:
        message = f"{count} windows of {kernel} elements do not fit an axis of {extent}."
        raise ShapeError(message)
    end = np.full((*samples.shape, 1), last)
    if count == 1:
        return end
    step = np.dtype(samples.dtype.name).type(last / (count - 1))
    drawn = samples[..., None]
    turns = np.arange(count - 1, dtype=np.dtype(samples.dtype.name))
    begins = ((turns + drawn) * step).astype(np.int64) - (drawn * step).astype(np.int64)
    return np.concatenate([begins, end], -1)


def fractional_maxima(
    x: Any, samples: Any, kernel: Any, size: Any, axes: int, order: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """The greatest element of windows whose distances are one of two whole numbers (Graham 2014), and its place.

    Parameters
    ----------
    x : Tensor
        Its last axes have the windows, and two others are before them.
    samples : Tensor, shape (N, C, axes)
        Between 0 and 1; they say where the longer distances are.
    kernel, size : int or tuple of int
        Of a window, and of the result.
    axes : int
    order : sequence of int
        The number of `samples` of each axis.
    """
    extents = x.shape[-axes:]
    width, count = _extents(kernel, axes, "kernel_size"), _extents(size, axes, "output_size")
    drawn = np.broadcast_to(samples, (*x.shape[:2], axes))
    places: Any = 0
    for axis in range(axes):
        begins = _starts(drawn[..., order[axis]], extents[axis], count[axis], width[axis])
        along = begins[..., None] + np.arange(width[axis])
        shape = [*x.shape[:2], *[1] * (2 * axes)]
        shape[2 + axis], shape[2 + axes + axis] = along.shape[2:]
        places = places * extents[axis] + along.reshape(shape)
    flat = x.reshape((*x.shape[:2], -1))
    places = places.reshape((*x.shape[:2], math.prod(count), math.prod(width)))
    rows, channels = np.ogrid[: x.shape[0], : x.shape[1]]
    windows = flat[rows[..., None, None], channels[..., None, None], places]
    best = np.argmax(windows, -1)[..., None]
    chosen = np.take_along_axis(windows, best, -1)[..., 0]
    found = np.take_along_axis(value_of(places), best, -1)[..., 0]
    shape = (*x.shape[:2], *count)
    return chosen.reshape(shape), found.reshape(shape)


def _fractional(
    input: Any, kernel: Any, size: Any, ratio: Any, with_places: bool, samples: Any, axes: int, order: Sequence[int]
) -> Any:
    x = float_of(input)
    if x.ndim not in (axes + 1, axes + 2):
        message = f"fractional_max_pool{axes}d takes {axes + 1} or {axes + 2} axes, but the shape is {x.shape}."
        raise ShapeError(message)
    batch = x if x.ndim == axes + 2 else x[None]
    wanted = _wanted_size(size, ratio, batch.shape[2:])
    drawn = rand(*batch.shape[:2], axes) if samples is None else value_of(samples)
    if x.ndim == axes + 1 and drawn.shape[0] != 1:
        drawn = np.swapaxes(drawn, 0, 1)
    values, places = fractional_maxima(batch, drawn, kernel, wanted, axes, order)
    if x.ndim == axes + 1:
        values, places = values[0], places[0]
    return (values, places.astype(np.int64)) if with_places else values


@documented
def fractional_max_pool2d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """The greatest element of windows of images at uneven places (Graham 2014).

    input : Tensor or ndarray, shape (N, C, H, W) or (C, H, W)
    kernel_size : int or pair of int
    output_size : int or pair of int, optional
    output_ratio : float or pair of float, optional
        In place of the size, as a part of the input's.
    return_indices : bool
        Whether to give the flat place of each element in its image, too.
    _random_samples : Tensor, shape (N, C, 2), optional
        Numbers between 0 and 1 for width and height; drawn by default.
    -> Tensor, or a tuple of two
    """
    return _fractional(input, kernel_size, output_size, output_ratio, return_indices, _random_samples, 2, (1, 0))


@documented
def fractional_max_pool3d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """The greatest element of windows of volumes at uneven places; see `fractional_max_pool2d`.

    input : Tensor or ndarray, shape (N, C, D, H, W) or (C, D, H, W)
    kernel_size, output_size : int or three int
    output_ratio : float or three float, optional
    return_indices : bool
    _random_samples : Tensor, shape (N, C, 3), optional
        Numbers between 0 and 1 for depth, height and width; drawn by default.
    -> Tensor, or a tuple of two
    """
    return _fractional(input, kernel_size, output_size, output_ratio, return_indices, _random_samples, 3, (0, 1, 2))


def fractional_maxima_2d(x: Any, samples: Any, ksize: Any, output_shape: Any, data_format: str) -> Any:
    """`fractional_max_pool2d` by the options of its class form."""
    only("data_format", data_format, "NCHW")
    return fractional_max_pool2d(x, ksize, output_shape, None, True, samples)


def fractional_maxima_3d(x: Any, samples: Any, ksize: Any, output_shape: Any, data_format: str) -> Any:
    """`fractional_max_pool3d` by the options of its class form."""
    only("data_format", data_format, "NCDHW")
    return fractional_max_pool3d(x, ksize, output_shape, None, True, samples)


# ----- Volumes -----


@documented
def conv3d_transpose(
    inputs: Any,
    weight: Any,
    pad_mode: str = "valid",
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    group: int = 1,
    output_padding: Any = 0,
) -> Tensor:
    """`conv_transpose3d` with MindSpore's parameters.

    inputs : Tensor or ndarray, shape (N, C, D, H, W)
    weight : Tensor or ndarray, shape (C, Cout / group, kd, kh, kw)
    pad_mode : {"valid", "pad"}
    padding : int, three int, or six int
        Only for `pad_mode="pad"`.
    stride, dilation, output_padding : int or three int
    group : int
    """
    only("pad_mode", pad_mode, "valid", "pad")
    ends = padding if pad_mode == "pad" else 0
    return conv_transpose3d(inputs, weight, None, stride, ends, output_padding, group, dilation)
