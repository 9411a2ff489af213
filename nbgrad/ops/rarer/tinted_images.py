"""Class forms of images: colours as hue, saturation and value; adaptive maxima; volumes of another size.

In: images, with the colours in the last axis, or volumes. Out: Tensors. class_table.py names them.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...errors import ArgumentError, ShapeError
from ...record.axes_and_dtypes import integers
from ...record.tensor import Tensor
from ..pooling import adaptive_max_pool2d
from .resized_images import interpolate
from .sampled_images import adaptive_max_pool3d
from .special_values import float_of, value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

# ----- Colours -----


def _colours(images: Any, name: str) -> Any:
    x = float_of(images)
    if x.ndim == 0 or x.shape[-1] != 3:
        message = f"{name} takes colours as three numbers in the last axis, but the shape is {x.shape}."
        raise ShapeError(message)
    return x


def hue_saturation_value(images: Any) -> Tensor:
    """Red, green and blue as hue, saturation and value; hues from 0 to 1."""
    x = _colours(images, "RGBToHSV")
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    value = np.max(x, -1)
    width = value - np.min(x, -1)
    safe = np.where(width > 0, width, 1)
    hue = np.where(
        value == red,
        (green - blue) / safe,
        np.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    hue = np.where(width > 0, hue / 6, 0)
    saturation = np.where(value > 0, width / np.where(value > 0, value, 1), 0)
    return np.stack([np.where(hue < 0, hue + 1, hue), saturation, value], -1)


def red_green_blue(images: Any) -> Tensor:
    """Hue, saturation and value as red, green and blue."""
    x = _colours(images, "HSVToRGB")
    hue, saturation, value = x[..., 0], x[..., 1], x[..., 2]
    turned = hue * 6
    distance = np.stack([np.abs(turned - 3) - 1, 2 - np.abs(turned - 2), 2 - np.abs(turned - 4)], -1)
    part = np.clip(distance, 0, 1)
    return ((part - 1) * saturation[..., None] + 1) * value[..., None]


def turned_hue(image: Any, delta: Any) -> Tensor:
    """Colours whose hue is moved by a part of a turn."""
    colours = hue_saturation_value(_colours(image, "AdjustHue"))
    hue = (colours[..., 0] + value_of(delta)) % 1
    return red_green_blue(np.stack([hue, colours[..., 1], colours[..., 2]], -1))


def scaled_saturation(image: Any, scale: Any) -> Tensor:
    """Colours whose saturation is multiplied by a number, up to 1."""
    colours = hue_saturation_value(_colours(image, "AdjustSaturation"))
    saturation = np.clip(colours[..., 1] * value_of(scale), 0, 1)
    return red_green_blue(np.stack([colours[..., 0], saturation, colours[..., 2]], -1))


# ----- Windows and sizes -----


def maxima_2d(input_x: Any, output_size: Any) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool2d` with positions."""
    return adaptive_max_pool2d(input_x, output_size, True)


def maxima_3d(x: Any, output_size: Any) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool3d` with positions, its size given as an array."""
    values, places = adaptive_max_pool3d(x, tuple(integers(output_size, "output_size")), True)
    return values, places.astype(np.int32)


def _enlarged(x: Any, output_size: Any, scales: Any, mode: str, align_corners: bool | None) -> Tensor:
    if (output_size is None) == (scales is None):
        message = "Give either output_size or scales, and None for the other."
        raise ArgumentError(message)
    size = None if output_size is None else tuple(integers(output_size, "output_size"))
    factors = None if scales is None else tuple(float(one) for one in scales)
    return interpolate(x, size, factors, mode, align_corners)


def repeated_volumes(x: Any, output_size: Any, scales: Any) -> Tensor:
    """Volumes of another size, by the nearest elements."""
    return _enlarged(x, output_size, scales, "nearest", None)


def smooth_volumes(x: Any, output_size: Any, scales: Any, align_corners: bool) -> Tensor:
    """Volumes of another size, by straight lines."""
    return _enlarged(x, output_size, scales, "trilinear", align_corners)
