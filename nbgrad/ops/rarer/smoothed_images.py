"""Images of another size whose pixels are means of all that they cover: antialiasing, as PyTorch has it.

In: Tensors of images, extents. Out: Tensors. Called by `mint.nn.functional.interpolate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ...record.tensor import Tensor

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _triangle(x: Any) -> Any:
    return np.maximum(1.0 - np.abs(x), 0.0)


def _bump(x: Any) -> Any:
    """The cubic kernel of Keys with a = -1/2."""
    a, x = -0.5, np.abs(x)
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    far = (((x - 5.0) * x + 8.0) * x - 4.0) * a
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def smoothed(images: Any, counts: Sequence[int], steps: Sequence[float], cubic: bool, align_corners: bool) -> Tensor:
    """Images of another size by weighted means, whose windows are as wide as the step from pixel to pixel.

    Parameters
    ----------
    images : Tensor, shape (N, C, H, W)
    counts : sequence of int
        The new height and width.
    steps : sequence of float
        The distances of new pixels in old ones.
    cubic : bool
        Whether the weights are a cubic curve, not a triangle.
    align_corners : bool
        Whether distances are those of pixels from corner to corner.
    """
    for axis, count, given in zip((2, 3), counts, steps, strict=True):
        n = images.shape[axis]
        step = given if not align_corners else (n - 1) / (count - 1) if count > 1 else 0.0
        width = max(step, 1.0)
        support = (2.0 if cubic else 1.0) * width
        center = step * (np.arange(count) + 0.5)
        first = np.maximum((center - support + 0.5).astype(int), 0)
        last = np.minimum((center + support + 0.5).astype(int), n)
        pixels = np.arange(n)
        weights = (_bump if cubic else _triangle)((pixels - center[:, None] + 0.5) / width)
        weights = np.where((pixels >= first[:, None]) & (pixels < last[:, None]), weights, 0.0)
        weights = weights / weights.sum(axis=1, keepdims=True)
        moved = np.moveaxis(images, axis, -1) @ weights.T.astype(np.dtype(images.dtype.name))
        images = np.moveaxis(moved, -1, axis)
    return images
