"""Images of another size and elements in other places, as MindSpore's class forms do it.

In: arrays (N, C, H, W). Out: Tensors. Called by class_forms.py and by the layers of `nn`; `interpolate` in pooling.py
is the function for users.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..graph.builders import reshape, transpose
from ..graph.ir import Node, constant
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact, take_positions
from ..record.tensor import Tensor
from .convolution import pair


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
