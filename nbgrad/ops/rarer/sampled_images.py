"""Images at places between pixels, adaptive windows of volumes, and maxima put back to their places.

In: images (N, C, ...) and places. Out: Tensors. Called by users and by layers; class_table.py names some of
them. Places may be computed: they differentiate where values are joined by straight lines.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy

from ...errors import ArgumentError, ShapeError
from ...record.axes_and_dtypes import integer, integers, only
from ...record.tensor import Tensor
from ..docstrings import documented
from ..pooling import adaptive_max_pool2d
from .special_values import float_of, value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

# ----- Places between pixels -----


def _picked(images: Any, rows: Any, places: Sequence[Any]) -> Any:
    """Elements of images (N, C, ...) at integer places, which are inside; the channels come last."""
    return images[(rows, slice(None), *places)]


def between_pixels(images: Any, rows: Any, places: Sequence[Any], mode: str, outside: Any) -> Any:
    """Values at places in pixels; corners beyond the border count as `outside`, or if None as the border."""
    extents = images.shape[2:]
    if mode == "nearest":
        corners = [([np.rint(place) for place in places], None)]
    else:
        low = [np.floor(place) for place in places]
        part = [place - floor for place, floor in zip(places, low, strict=True)]
        corners = []
        for choice in itertools.product((0, 1), repeat=len(places)):
            weight: Any = 1.0
            for up, share in zip(choice, part, strict=True):
                weight = weight * (share if up else 1.0 - share)
            corners.append(([floor + up for up, floor in zip(choice, low, strict=True)], weight))
    total: Any = 0.0
    for corner, weight in corners:
        inside: Any = True
        key = []
        for place, n in zip(corner, extents, strict=True):
            inside = inside & (place >= 0) & (place <= n - 1)
            key.append(np.clip(place, 0, n - 1).astype(np.int64))
        value = _picked(images, rows, key)
        if outside is not None:
            value = np.where(inside[..., None], value, outside)
        total = total + (value if weight is None else value * weight[..., None])
    return total


def _mirrored(place: Any, n: int, align_corners: bool) -> Any:
    """Places reflected at the borders until they are inside."""
    low, width = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
    if width <= 0:
        return 0.0 * place
    distance = np.abs(place - low)
    rest = np.fmod(distance, 2 * width)
    return np.clip(np.where(rest > width, 2 * width - rest, rest) + low, 0, n - 1)


@documented
def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Images or volumes at places that a grid gives.

    input : Tensor or ndarray, shape (N, C, H, W) or (N, C, D, H, W)
    grid : Tensor or ndarray, shape (N, h, w, 2) or (N, d, h, w, 3)
        The places, x first: -1 and 1 are the ends.
    mode : {"bilinear", "nearest"}
    padding_mode : {"zeros", "border", "reflection"}
        The values beyond the ends.
    align_corners : bool, optional
        Whether the ends are the centres of the last pixels; else their outer borders.
    -> Tensor, shape (N, C, h, w) or (N, C, d, h, w)
    ShapeError : If the shapes do not belong to each other.
    """
    images, places = float_of(input), float_of(grid)
    only("mode", mode, "bilinear", "nearest")
    only("padding_mode", padding_mode, "zeros", "border", "reflection")
    axes = images.ndim - 2
    if axes not in (2, 3) or places.ndim != images.ndim or places.shape[-1] != axes or len(places) != len(images):
        message = (
            f"grid_sample needs images (N, C, H, W) and a grid (N, h, w, 2), or volumes and a grid of three "
            f"coordinates, but the shapes are {images.shape} and {places.shape}."
        )
        raise ShapeError(message)
    found = []
    for axis, n in enumerate(images.shape[2:]):
        at = places[..., axes - 1 - axis]
        at = (at + 1) / 2 * (n - 1) if align_corners else ((at + 1) * n - 1) / 2
        if padding_mode == "border":
            at = np.clip(at, 0, n - 1)
        elif padding_mode == "reflection":
            at = _mirrored(at, n, bool(align_corners))
        found.append(at)
    rows = np.arange(images.shape[0]).reshape((-1,) + (1,) * axes)
    rows = np.broadcast_to(rows, places.shape[:-1])
    value = between_pixels(images, rows, found, mode, 0.0 if padding_mode == "zeros" else None)
    return np.moveaxis(value, -1, 1)


@documented
def affine_grid(theta: Any, size: Any, align_corners: bool = False) -> Tensor:
    """The grid for `grid_sample` of linear maps of images or volumes.

    theta : Tensor or ndarray, shape (N, 2, 3) or (N, 3, 4)
        The maps of places of the result to places of the input.
    size : tuple of int
        The shape of the result, (N, C, H, W) or (N, C, D, H, W).
    align_corners : bool
        As in `grid_sample`.
    """
    maps, extents = float_of(theta), integers(size, "size")[2:]
    lines = []
    for n in extents:
        line = np.linspace(-1, 1, n) if align_corners else (2 * np.arange(n) + 1) / n - 1
        lines.append(line if n > 1 or not align_corners else np.zeros(n))
    grid = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*grid[::-1], np.ones_like(grid[0])], -1).astype(np.dtype(maps.dtype.name))
    flat = base.reshape(-1, len(extents) + 1) @ np.swapaxes(maps, -1, -2)
    return flat.reshape((maps.shape[0], *extents, len(extents)))


@documented
def crop_and_resize(
    image: Any,
    boxes: Any,
    box_indices: Any,
    crop_size: Any,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Tensor:
    """Boxes cut out of images, in one size.

    image : Tensor or ndarray, shape (N, H, W, C)
    boxes : Tensor or ndarray, shape (k, 4)
        Top, left, bottom and right, where 0 and 1 are the centres of the first and the last pixels.
    box_indices : Tensor or ndarray of int, shape (k,)
        The image of each box.
    crop_size : pair of int
    method : {"bilinear", "nearest"}
    extrapolation_value : float
        The value of places outside of the image.
    -> Tensor, shape (k, height, width, C)
    """
    only("method", method, "bilinear", "nearest")
    images, box = float_of(image), float_of(boxes)
    height, width = integers(crop_size, "crop_size")
    places, inside = [], True
    for axis, count in enumerate((height, width)):
        n, first, last = images.shape[axis + 1] - 1, box[:, axis : axis + 1], box[:, axis + 2 : axis + 3]
        step = np.arange(count) / (count - 1) if count > 1 else np.full(1, 0.5)
        at = first * n + (last - first) * n * step.astype(np.float32)
        places.append(at[:, :, None] if axis == 0 else at[:, None, :])
    shape = (box.shape[0], height, width)
    places = [np.broadcast_to(at, shape) for at in places]
    for at, n in zip(places, images.shape[1:3], strict=True):
        inside = inside & (at >= 0) & (at <= n - 1)
    rows = np.broadcast_to(value_of(box_indices).reshape(-1, 1, 1), shape)
    value = between_pixels(np.moveaxis(images, -1, 1), rows, places, method, None)
    return np.where(value_of(inside)[..., None], value, extrapolation_value)


def aligned_regions(
    features: Any,
    rois: Any,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sample_num: int,
    roi_end_mode: int,
) -> Tensor:
    """Means of the values at places within regions of images, in one size.

    A region is (image, left, top, right, bottom), scaled; each of its bins has `sample_num` places along each axis.
    """
    images, region = float_of(features), float_of(rois)
    ends = region[:, 1:] * spatial_scale
    left, top, right, bottom = (ends[:, k] for k in range(4))
    if roi_end_mode:
        right, bottom = right + spatial_scale, bottom + spatial_scale
    places = []
    for first, last, count in ((top, bottom, pooled_height), (left, right, pooled_width)):
        length = np.maximum(last - first, 0.0 if roi_end_mode else 1.0)
        step = (np.arange(count * sample_num) + 0.5) / (count * sample_num)
        places.append(first[:, None] + length[:, None] * step.astype(np.float32))
    rows_at, columns_at = places
    shape = (region.shape[0], pooled_height * sample_num, pooled_width * sample_num)
    y, x = np.broadcast_to(rows_at[:, :, None], shape), np.broadcast_to(columns_at[:, None, :], shape)
    height, width = images.shape[2:]
    inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    at = [np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)]
    numbers = np.broadcast_to(region[:, 0].astype(np.int64)[:, None, None], shape)
    value = np.where(inside[..., None], between_pixels(images, numbers, at, "bilinear", None), 0.0)
    bins = value.reshape((shape[0], pooled_height, sample_num, pooled_width, sample_num, images.shape[1]))
    return np.moveaxis(np.mean(bins, (2, 4)), -1, 1)


def _cubic(distance: Any, a: float) -> Any:
    """The weights of Keys' cubic kernel."""
    size = np.abs(distance)
    near = ((a + 2) * size - (a + 3)) * size**2 + 1
    far = a * (((size - 5) * size + 8) * size - 4)
    return np.where(size <= 1, near, np.where(size < 2, far, 0.0))


def resize_bicubic(image: Any, size: Any, align_corners: bool, half_pixel_centers: bool) -> Tensor:
    """Images of another size by cubic curves through four pixels along each axis.

    Places between pixels are rounded to 1 / 1024, as in MindSpore. With `half_pixel_centers`, pixels beyond the border
    do not count; else the border goes on.
    """
    images = float_of(image)
    counts = integers(np.asarray(size).tolist() if not isinstance(size, int) else size, "size")
    for axis, count in zip((2, 3), counts, strict=True):
        n = images.shape[axis]
        step = (n - 1) / (count - 1) if align_corners and count > 1 else n / count
        place = (np.arange(count) + 0.5) * step - 0.5 if half_pixel_centers else np.arange(count) * step
        first = np.floor(place).astype(int)
        part = np.rint((place - first) * 1024) / 1024
        weights = np.zeros((count, n))
        for k in range(-1, 3):
            share = _cubic(part - k, -0.5 if half_pixel_centers else -0.75)
            if half_pixel_centers:
                share = np.where((first + k >= 0) & (first + k < n), share, 0.0)
            np.add.at(weights, (np.arange(count), np.clip(first + k, 0, n - 1)), share)
        weights /= weights.sum(axis=1, keepdims=True)
        moved = np.moveaxis(images, axis, -1) @ weights.T.astype(np.dtype(images.dtype.name))
        images = np.moveaxis(moved, -1, axis)
    return images


def cubic_through_pixels(images: Any, counts: Sequence[int], steps: Sequence[float], align_corners: bool) -> Tensor:
    """Images of another size by cubic curves, as in PyTorch: places are exact, and the border goes on."""
    for axis, count, step in zip((2, 3), counts, steps, strict=True):
        n = images.shape[axis]
        even = (n - 1) / (count - 1) if count > 1 else 0.0
        place = np.arange(count) * even if align_corners else (np.arange(count) + 0.5) * step - 0.5
        first = np.floor(place).astype(int)
        weights = np.zeros((count, n))
        for k in range(-1, 3):
            at = np.arange(count), np.clip(first + k, 0, n - 1)
            np.add.at(weights, at, _cubic(place - first - k, -0.75))
        moved = np.moveaxis(images, axis, -1) @ weights.T.astype(np.dtype(images.dtype.name))
        images = np.moveaxis(moved, -1, axis)
    return images


# ----- Adaptive windows -----


def _ends(n: int, count: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The first and last positions (not included) of adaptive windows."""
    y = np.arange(count)
    return y * n // count, -(-(y + 1) * n // count)


def _counts(output_size: Any, extents: Sequence[int], name: str) -> list[int]:
    wanted = list(output_size) if isinstance(output_size, list | tuple) else [output_size] * len(extents)
    if len(wanted) != len(extents):
        message = f"output_size of {name} must have {len(extents)} elements, but is {output_size!r}."
        raise ArgumentError(message)
    found = [n if w is None else integer(w, "output_size") for w, n in zip(wanted, extents, strict=True)]
    if min(found) < 1 or min(extents) < 1:
        message = f"{name} cannot make an output of {tuple(found)} from an input of {tuple(extents)}."
        raise ShapeError(message)
    return found


@documented
def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """The means of as many windows of volumes as the output has.

    input : Tensor or ndarray, shape (N, C, D, H, W) or (C, D, H, W)
    output_size : int or tuple of (int or None)
        None keeps an extent.
    ShapeError, ArgumentError : If the output's size is not positive.
    """
    x = float_of(input)
    for axis, count in zip((-3, -2, -1), _counts(output_size, x.shape[-3:], "adaptive_avg_pool3d"), strict=True):
        first, last = _ends(x.shape[axis], count)
        place = np.arange(x.shape[axis])
        inside = (place >= first[:, None]) & (place < last[:, None])
        weights = (inside / inside.sum(axis=1, keepdims=True)).T.astype(np.dtype(x.dtype.name))
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ weights, -1, axis)
    return x


@documented
def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The greatest elements of as many windows of volumes as the output has; parameters as `adaptive_avg_pool3d`.

    output_size : int or tuple of (int or None)
    return_indices : bool
        Whether to give the flat positions in the volumes, too.
    """
    x = float_of(input)
    extents = x.shape[-3:]
    counts = _counts(output_size, extents, "adaptive_max_pool3d")
    places = []
    for n, count in zip(extents, counts, strict=True):
        first, last = _ends(n, count)
        # Shorter windows name their last position again.
        places.append(np.minimum(first[:, None] + np.arange((last - first).max()), last[:, None] - 1))
    d, h, w = (
        place.reshape([place.shape[0] if j == k else place.shape[1] if j == k + 3 else 1 for j in range(6)])
        for k, place in enumerate(places)
    )
    flat = (d * extents[1] + h) * extents[2] + w
    flat = flat.reshape((*counts, -1))
    windows = x.reshape((*x.shape[:-3], -1))[..., flat]
    at = np.argmax(windows, -1)
    best = np.take_along_axis(windows, at[..., None], -1)[..., 0]
    if not return_indices:
        return best
    places = np.take_along_axis(np.broadcast_to(value_of(flat), windows.shape), at[..., None], -1)[..., 0]
    return best, places.astype(np.int32)


@documented
def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The greatest elements of as many windows of signals as the output has.

    input : Tensor or ndarray, shape (N, C, L) or (C, L)
    output_size : int
    return_indices : bool
        Whether to give the positions, too.
    """
    x = float_of(input)
    size = output_size[0] if isinstance(output_size, list | tuple) else output_size
    found = adaptive_max_pool2d(x[..., None, :], (1, size), return_indices)
    return tuple([one[..., 0, :] for one in found]) if return_indices else found[..., 0, :]


# ----- Maxima put back -----


def _put_back(
    x: Any, indices: Any, axes: int, kernel_size: Any, stride: Any, padding: Any, output_size: Any, name: str
) -> Tensor:
    """Zeros with elements at flat positions of the last axes."""
    values, places = value_of(x), value_of(indices)
    if values.shape != places.shape or values.ndim not in (axes + 1, axes + 2):
        message = f"{name} needs positions in the shape of the values, but got {values.shape} and {places.shape}."
        raise ShapeError(message)

    def each(value: Any, what: str) -> tuple[int, ...]:
        numbers = integers(value, what)
        return tuple(numbers) * axes if len(numbers) == 1 else tuple(numbers)[-axes:]

    kernel = each(kernel_size, "kernel_size")
    steps = kernel if stride in (None, 0, ()) else each(stride, "stride")
    ends = each(padding, "padding")
    found = tuple((n - 1) * s - 2 * p + k for n, s, p, k in zip(values.shape[-axes:], steps, ends, kernel, strict=True))
    if output_size is not None and tuple(output_size):
        found = tuple(output_size)[-axes:]
    lead = values.shape[:-axes]
    count = int(np.prod(lead))
    flat = np.zeros((count, int(np.prod(found))), np.dtype(values.dtype.name))
    target = value_of(flat).copy()
    target[np.arange(count)[:, None], places.reshape((count, -1))] = values.reshape((count, -1))
    return target.reshape((*lead, *found))


@documented
def max_unpool1d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Zeros with the maxima of `max_pool1d` at the places that they came from.

    x : Tensor or ndarray, shape (N, C, L) or (C, L)
    indices : Tensor or ndarray of int
        The places, in the shape of x.
    kernel_size, stride, padding : int
        Of the pooling.
    output_size : tuple of int, optional
        The shape of the result, if it does not follow from these.
    ShapeError : If there are not as many places as maxima.
    """
    return _put_back(x, indices, 1, kernel_size, stride, padding, output_size, "max_unpool1d")


@documented
def max_unpool2d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Zeros with the maxima of `max_pool2d` at the places that they came from; parameters as `max_unpool1d`.

    kernel_size, stride, padding : int or pair of int
    output_size : tuple of int, optional
    """
    return _put_back(x, indices, 2, kernel_size, stride, padding, output_size, "max_unpool2d")


@documented
def max_unpool3d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Zeros with maxima of volumes at the places that they came from; parameters as `max_unpool1d`.

    kernel_size, stride, padding : int or tuple of int
    output_size : tuple of int, optional
    """
    return _put_back(x, indices, 3, kernel_size, stride, padding, output_size, "max_unpool3d")


def put_back_2d(
    x: Any, argmax: Any, ksize: Any, strides: Any, pads: Any, output_shape: Any, data_format: str
) -> Tensor:
    """`max_unpool2d` by the options of its class form."""
    only("data_format", data_format, "NCHW")
    return max_unpool2d(x, argmax, ksize, strides, pads, output_shape)


def put_back_3d(
    x: Any, argmax: Any, ksize: Any, strides: Any, pads: Any, output_shape: Any, data_format: str
) -> Tensor:
    """`max_unpool3d` by the options of its class form."""
    only("data_format", data_format, "NCDHW")
    return max_unpool3d(x, argmax, ksize, strides, pads, output_shape)
