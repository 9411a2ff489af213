"""MindSpore's `dataset.vision`: images turned, moved, scaled and sheared.

In: images, ndarrays (H, W, C) or (H, W), or Pillow's, and angles in degrees, against the clock. Out: the same kind.
Called by users and, for every row, by `Dataset.map`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..nn.layer_arguments import flag, real
from .random_images import AtRandom
from .vision_transforms import Inter, OfImage

__all__ = ["Affine", "RandomAffine", "RandomRotation", "Rotate"]

Matrix = np.ndarray
"""Two rows of three: from the place (x, y, 1) in the new image to the place in the old one."""


def _fill(value: Any) -> np.ndarray:
    return np.asarray(value if isinstance(value, tuple | list) else [value], np.float64)


def _moved(image: np.ndarray, matrix: Matrix, size: tuple[int, int], resample: Inter, fill: np.ndarray) -> np.ndarray:
    """The image of a size whose pixels lie elsewhere in the old one; a colour outside of it."""
    if resample not in (Inter.NEAREST, Inter.BILINEAR):
        message = f"resample must be Inter.NEAREST or Inter.BILINEAR, but got {resample!r}."
        raise ArgumentError(message)
    planes = image.reshape(*image.shape[:2], -1)
    height, width, channels = planes.shape
    colour = np.broadcast_to(fill, (channels,))
    y, x = np.mgrid[: size[0], : size[1]]
    # Places in 1024ths of a pixel, as OpenCV has them, so that halves go the same way.
    at_x, at_y = (np.rint(row[0] * x * 1024) + np.rint((row[1] * y + row[2]) * 1024) for row in matrix)

    def picked(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
        found = planes[np.clip(i, 0, height - 1), np.clip(j, 0, width - 1)]
        return np.where(inside[..., None], found, colour)

    if resample is Inter.NEAREST:
        found = picked(*(np.floor_divide(at + 512, 1024).astype(int) for at in (at_y, at_x)))
    else:
        parts = [np.floor_divide(at + 16, 32).astype(int) for at in (at_y, at_x)]
        (i, j), (down, right) = (one // 32 for one in parts), (one[..., None] % 32 / 32 for one in parts)
        top = picked(i, j) * (1 - right) + picked(i, j + 1) * right
        bottom = picked(i + 1, j) * (1 - right) + picked(i + 1, j + 1) * right
        found = top * (1 - down) + bottom * down
    if image.dtype.kind in "iu":
        found = np.rint(found)
    return found.astype(image.dtype).reshape(*size, *image.shape[2:])


def _rotated(image: np.ndarray, angle: float, resample: Inter, expand: bool, center: Any, fill: np.ndarray) -> Any:
    height, width = image.shape[:2]
    x, y = ((width - 1) / 2, (height - 1) / 2) if center is None else center
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    size, to_x, to_y = (height, width), x, y
    if expand:
        # The extents of the turned rectangle; rounding keeps a quarter of a turn from growing by a pixel.
        wide = round(abs(width * cos) + abs(height * sin), 4)
        high = round(abs(width * sin) + abs(height * cos), 4)
        size = int(high), int(wide)
        to_x, to_y = x + (wide - width) / 2, y + (high - height) / 2
    matrix = np.array([[cos, -sin, x - cos * to_x + sin * to_y], [sin, cos, y - sin * to_x - cos * to_y]])
    return _moved(image, matrix, size, resample, fill)


class Rotate(OfImage):
    """An image turned.

    Parameters
    ----------
    degrees : float
        The angle, against the clock.
    resample : Inter
        NEAREST or BILINEAR.
    expand : bool
        Whether the result is as large as the turned image needs; else it has the old size.
    center : (float, float), optional
        Column and row that stay where they are; the middle by default.
    fill_value : int or tuple of int
        The colour outside.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad.dataset import vision
    >>> vision.Rotate(90)(np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.uint8)).tolist()
    [[3, 6, 9], [2, 5, 8], [1, 4, 7]]
    """

    def __init__(
        self,
        degrees: float,
        resample: Inter = Inter.NEAREST,
        expand: bool = False,
        center: tuple[float, float] | None = None,
        fill_value: Any = 0,
    ) -> None:
        self._degrees = real(degrees, "degrees")
        self._options = Inter(resample), flag(expand, "expand"), center, _fill(fill_value)

    def _image(self, image: np.ndarray) -> np.ndarray:
        return _rotated(image, self._degrees, *self._options)


def _range(value: Any, name: str) -> tuple[float, float]:
    """The ends of a range; one number is that far both ways."""
    pair = (-value, value) if isinstance(value, int | float) else tuple(value)
    if len(pair) != 2 or pair[0] > pair[1]:
        message = f"{name} must be a number that is not negative, or the ends of a range, but got {value!r}."
        raise ArgumentError(message)
    return real(pair[0], name), real(pair[1], name)


class RandomRotation(AtRandom):
    """An image turned by an angle from a range.

    Parameters
    ----------
    degrees : float or (float, float)
        The ends of the range; one number d is (-d, d).
    resample, expand, center, fill_value
        As for `Rotate`.
    """

    def __init__(
        self,
        degrees: Any,
        resample: Inter = Inter.NEAREST,
        expand: bool = False,
        center: tuple[float, float] | None = None,
        fill_value: Any = 0,
    ) -> None:
        self._degrees = _range(degrees, "degrees")
        self._options = Inter(resample), flag(expand, "expand"), center, _fill(fill_value)

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return _rotated(image, random.uniform(*self._degrees), *self._options)


def _affine(
    image: np.ndarray, degrees: float, shift: Sequence[float], scale: float, shear: Sequence[float], resample: Inter,
    fill: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """An image turned with the clock, sheared, scaled and moved, about its middle."""
    height, width = image.shape[:2]
    angle, right, down = math.radians(degrees), math.radians(shear[0]), math.radians(shear[1])
    a = math.cos(angle - down) / math.cos(down)
    b = -math.cos(angle - down) * math.tan(right) / math.cos(down) - math.sin(angle)
    c = math.sin(angle - down) / math.cos(down)
    d = -math.sin(angle - down) * math.tan(right) / math.cos(down) + math.cos(angle)
    back = np.linalg.inv(np.array([[a, b], [c, d]]) * scale)
    middle = np.array([(width - 1) / 2, (height - 1) / 2])
    matrix = np.column_stack([back, middle - back @ (middle + np.asarray(shift))])
    return _moved(image, matrix, (height, width), resample, fill)


def _shears(shear: Any) -> tuple[float, float]:
    pair = (shear, 0.0) if isinstance(shear, int | float) else tuple(shear)
    return real(pair[0], "shear"), real(pair[1], "shear")


def _positive(scale: Any) -> float:
    number = real(scale, "scale")
    if number <= 0:
        message = f"scale must be positive, but got {scale!r}."
        raise ArgumentError(message)
    return number


class Affine(OfImage):
    """An image turned with the clock, sheared, scaled and moved.

    Parameters
    ----------
    degrees : float
    translate : (float, float)
        How far it is moved to the right and down, in parts of width and height.
    scale : float
    shear : float or (float, float)
        The angles of the shear along rows, and along columns.
    resample : Inter
        NEAREST or BILINEAR.
    fill_value : int or tuple of int
        The colour outside.
    """

    def __init__(
        self,
        degrees: float,
        translate: Sequence[float],
        scale: float,
        shear: Any,
        resample: Inter = Inter.NEAREST,
        fill_value: Any = 0,
    ) -> None:
        self._degrees, self._scale, self._shear = real(degrees, "degrees"), _positive(scale), _shears(shear)
        right, down = (real(one, "translate") for one in translate)
        self._shift = right, down
        self._options = Inter(resample), _fill(fill_value)

    def _image(self, image: np.ndarray) -> np.ndarray:
        shift = self._shift[0] * image.shape[1], self._shift[1] * image.shape[0]
        return _affine(image, self._degrees, shift, self._scale, self._shear, *self._options)


class RandomAffine(AtRandom):
    """`Affine` by numbers from ranges.

    Parameters
    ----------
    degrees : float or (float, float)
        The ends of the range of angles; one number d is (-d, d).
    translate : (float, float) or tuple of four float, optional
        The ends of the range of moves to the right, then of those down, in parts of the size; else nothing is moved.
    scale : (float, float), optional
    shear : float, or tuple of two or four float, optional
        The ends of the ranges of angles along rows, and along columns.
    resample, fill_value
        As for `Affine`.
    """

    def __init__(
        self,
        degrees: Any,
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: Any = None,
        resample: Inter = Inter.NEAREST,
        fill_value: Any = 0,
    ) -> None:
        self._degrees = _range(degrees, "degrees")
        self._shift = _two_ranges(translate, "translate")
        self._scale = (1.0, 1.0) if scale is None else _range(scale, "scale")
        _positive(self._scale[0])
        self._shear = _two_ranges((-shear, shear) if isinstance(shear, int | float) else shear, "shear")
        self._options = Inter(resample), _fill(fill_value)

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        degrees = random.uniform(*self._degrees)
        shift = [random.uniform(*ends) * n for ends, n in zip(self._shift, image.shape[1::-1], strict=True)]
        scale, shear = random.uniform(*self._scale), [random.uniform(*ends) for ends in self._shear]
        return _affine(image, degrees, [round(one) for one in shift], scale, shear, *self._options)


def _two_ranges(value: Any, name: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Two ranges of two or four numbers; the second one is zero if there are two."""
    numbers = (0.0, 0.0) if value is None else tuple(value)
    if len(numbers) not in (2, 4):
        message = f"{name} must be two or four numbers, but got {value!r}."
        raise ArgumentError(message)
    return _range(numbers[:2], name), _range(numbers[2:] or (0.0, 0.0), name)
