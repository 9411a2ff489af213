"""`interpolate` with all its modes, those by curves and by areas too.

In: signals, images or volumes, and a size. Out: Tensors. Called by users and by layers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...errors import ArgumentError, ShapeError
from ...record.axes_and_dtypes import integers
from ...record.tensor import Tensor
from .. import pooling
from ..docstrings import documented
from .sampled_images import adaptive_avg_pool3d, resize_bicubic
from .special_values import float_of, value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


@documented
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:
    """Resample signals, images or volumes.

    input : array-like, shape (N, C, L), (N, C, H, W) or (N, C, D, H, W)
    size : int or tuple of int, optional
        The extents of the output.
    scale_factor : float or tuple of float, optional
        The output's extents divided by the input's, instead of `size`.
    mode : {"nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"}
        "nearest" takes the element in which the start of an output's element lies, "nearest-exact" that of its centre.
        "linear" is for signals, "bilinear" and "bicubic" for images, "trilinear" for volumes. "area" has the means of
        areas of equal size.
    align_corners : bool, optional
        Whether the first and last elements stay where they are; else elements are areas, and their centres count.
    recompute_scale_factor : bool, optional
        Whether places follow from the sizes instead of from `scale_factor`, where it does not give whole sizes.
    -> Tensor, shape (N, C, ol), (N, C, oh, ow) or (N, C, od, oh, ow)
    ArgumentError, ShapeError : If arguments do not fit.

    >>> import numpy as np, nbgrad as nb
    >>> x = np.array([[[0.0, 1.0]]])
    >>> nb.ops.interpolate(x, 4).asnumpy()
    array([[[0., 0., 1., 1.]]])
    >>> nb.ops.interpolate(x, 3, mode="linear", align_corners=True).asnumpy()
    array([[[0. , 0.5, 1. ]]])
    >>> nb.ops.interpolate(x, 1, mode="area").asnumpy()
    array([[[0.5]]])
    """
    if mode not in ("bicubic", "area"):
        return pooling.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)
    x = float_of(input)
    axes = (4,) if mode == "bicubic" else (3, 4, 5)
    if x.ndim not in axes or 0 in x.shape[2:]:
        message = (
            f"interpolate with mode={mode!r} needs an input with {axes[-1]} axes, none empty, but it has {x.shape}."
        )
        raise ShapeError(message)
    if (size is None) == (scale_factor is None) or (mode == "area" and align_corners):
        message = "Give interpolate either size or scale_factor, and no align_corners for mode 'area'."
        raise ArgumentError(message)
    counts = tuple(pooling.resampled_sizes(x.shape[2:], size, scale_factor, False)[0])
    if mode == "bicubic":
        return resize_bicubic(x, counts, bool(align_corners), not align_corners)
    if x.ndim == 3:
        return pooling.adaptive_avg_pool1d(x, counts[0])
    return (pooling.adaptive_avg_pool2d if x.ndim == 4 else adaptive_avg_pool3d)(x, counts)


upsample = interpolate


def means_of_areas(images: Any, size: Any, align_corners: bool) -> Tensor:
    """Images (N, H, W, C) in another size, by the mean of the area of each pixel, as float32."""
    x = value_of(images).astype("float32")
    rows, columns = (
        _areas(n, count, align_corners) for n, count in zip(x.shape[1:3], integers(size, "size"), strict=True)
    )
    return np.einsum("ih,jw,nhwc->nijc", rows, columns, x)


def _areas(n: int, count: int, align_corners: bool) -> numpy.ndarray:
    """The part of each of n pixels in each of some wider ones; what lies beyond the end is the last pixel."""
    step = (n - 1) / (count - 1) if align_corners and count > 1 else n / count
    weights = numpy.zeros((count, n), numpy.float32)
    for k in range(count):
        for j in range(int(k * step), math.ceil((k + 1) * step - 1e-6)):
            weights[k, min(j, n - 1)] += min(j + 1, (k + 1) * step) - max(j, k * step)
    return weights / weights.sum(1, keepdims=True)
