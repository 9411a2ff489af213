"""MindSpore's `dataset.vision`: images cut, flipped and coloured at random.

In: images, ndarrays (H, W, C) or (H, W), or Pillow's. Out: the same kind. Called by users and, for every row, by
`Dataset.map`, which gives them random numbers that follow from the dataset's seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..nn.layer_arguments import flag, part, positive, real
from .array_transforms import Compose as Compose
from .array_transforms import RandomTransform
from .vision_transforms import (
    Border,
    Inter,
    border_sides,
    bordered,
    cut,
    decoded,
    height_and_width,
    is_pillow,
    pillow,
    resized,
)
from .vision_transforms import (
    brightness as brightness_of,
)

__all__ = [
    "Compose",
    "CutOut",
    "RandomColorAdjust",
    "RandomCrop",
    "RandomCropDecodeResize",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
]


class AtRandom(RandomTransform):
    """A transform of an image by random numbers, of which all columns get the same."""

    def _with_random(self, random: np.random.Generator, *values: Any) -> Any:
        seed = int(random.integers(2**63))
        found = tuple([self._one(value, np.random.default_rng(seed)) for value in values])
        return found[0] if len(found) == 1 else found

    def _one(self, value: Any, random: np.random.Generator) -> Any:
        image = np.asarray(value)
        result = self._image(image, random)
        return pillow().Image.fromarray(result) if is_pillow(value) and result.dtype == np.uint8 else result

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        raise NotImplementedError


class RandomHorizontalFlip(AtRandom):
    """Left and right exchanged, with a probability.

    Parameters
    ----------
    prob : float
    """

    def __init__(self, prob: float = 0.5) -> None:
        self._prob = part(prob, "prob")

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return np.ascontiguousarray(image[:, ::-1]) if random.random() < self._prob else image


class RandomVerticalFlip(RandomHorizontalFlip):
    """Top and bottom exchanged, with a probability."""

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return np.ascontiguousarray(image[::-1]) if random.random() < self._prob else image


class RandomCrop(AtRandom):
    """A piece at a random place.

    Parameters
    ----------
    size : int or (int, int)
    padding : int or tuple of 2 or 4 int, optional
        As for `Pad`, before cutting.
    pad_if_needed : bool
        Whether a smaller image gets a border; else it is an error.
    fill_value : int or tuple of int
    padding_mode : Border
    """

    def __init__(
        self,
        size: Any,
        padding: Any = None,
        pad_if_needed: bool = False,
        fill_value: Any = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self._size = height_and_width(size)
        self._padding = (0, 0, 0, 0) if padding is None else border_sides(padding)
        self._pad_if_needed = flag(pad_if_needed, "pad_if_needed")
        self._value, self._mode = fill_value, Border(padding_mode)

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        image = bordered(image, self._padding, self._value, self._mode.value)
        height, width = (max(n - m, 0) for n, m in zip(self._size, image.shape[:2], strict=True))
        if height or width:
            if not self._pad_if_needed:
                message = f"A piece of size {self._size} does not fit in an image of {image.shape[:2]}."
                raise ShapeError(message)
            image = bordered(image, (width, height, width, height), self._value, self._mode.value)
        top, left = (int(random.integers(m - n + 1)) for n, m in zip(self._size, image.shape[:2], strict=True))
        return cut(image, top, left, self._size)


def _range(pair: Sequence[float], name: str) -> tuple[float, float]:
    """Two positive numbers, the smaller one first."""
    low, high = (real(one, name) for one in pair)
    if not 0 < low <= high:
        message = f"{name} must be two positive numbers, the smaller one first, but got {pair!r}."
        raise ArgumentError(message)
    return low, high


class RandomResizedCrop(AtRandom):
    """A piece of random size and shape, resized.

    Parameters
    ----------
    size : int or (int, int)
    scale : (float, float)
        The least and the largest share of the image.
    ratio : (float, float)
        The least and the largest quotient of width and height.
    interpolation : Inter
    max_attempts : int
        After so many pieces that do not fit, the middle is taken.
    """

    def __init__(
        self,
        size: Any,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Inter = Inter.LINEAR,
        max_attempts: int = 10,
    ) -> None:
        self._size = height_and_width(size)
        self._scale, self._ratio = _range(scale, "scale"), _range(ratio, "ratio")
        self._interpolation = Inter(interpolation)
        self._attempts = positive(max_attempts, "max_attempts")

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        height, width = image.shape[:2]
        for _ in range(self._attempts):
            area = height * width * random.uniform(*self._scale)
            ratio = math.exp(random.uniform(math.log(self._ratio[0]), math.log(self._ratio[1])))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                top, left = int(random.integers(height - h + 1)), int(random.integers(width - w + 1))
                return resized(cut(image, top, left, (h, w)), self._size, self._interpolation)
        ratio = min(max(width / height, self._ratio[0]), self._ratio[1])
        w, h = min(width, round(height * ratio)), min(height, round(width / ratio))
        middle = cut(image, (height - h) // 2, (width - w) // 2, (max(h, 1), max(w, 1)))
        return resized(middle, self._size, self._interpolation)


class RandomCropDecodeResize(RandomResizedCrop):
    """A piece of random size of the image in the bytes of a file, resized; arguments as for `RandomResizedCrop`."""

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return super()._image(decoded(image), random)


def _around(value: Any, name: str, centre: float, least: float) -> tuple[float, float]:
    """A range: as given, or around its centre."""
    if isinstance(value, tuple | list):
        low, high = (real(one, name) for one in value)
    else:
        low, high = max(centre - real(value, name), least), centre + real(value, name)
    if not least <= low <= high:
        message = f"{name} must be a number that is not negative, or the ends of a range, but got {value!r}."
        raise ArgumentError(message)
    return low, high


class RandomColorAdjust(AtRandom):
    """Brightness, contrast, saturation and hue changed at random, in random order.

    Parameters
    ----------
    brightness, contrast, saturation : float or (float, float)
        The ends of the range of the factor; one number b is (max(0, 1 - b), 1 + b).
    hue : float or (float, float)
        The ends of the range that hues are shifted by, in parts of a turn; one number h is (-h, h).
    """

    def __init__(
        self, brightness: Any = (1, 1), contrast: Any = (1, 1), saturation: Any = (1, 1), hue: Any = (0, 0)
    ) -> None:
        self._changes: list[tuple[Callable[..., np.ndarray], tuple[float, float]]] = [
            (_brighter, _around(brightness, "brightness", 1.0, 0.0)),
            (_with_contrast, _around(contrast, "contrast", 1.0, 0.0)),
            (_saturated, _around(saturation, "saturation", 1.0, 0.0)),
            (_shifted_hue, _around(hue, "hue", 0.0, -0.5)),
        ]

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[-1] != 3:
            message = f"RandomColorAdjust takes images (H, W, 3) of uint8, but got {image.dtype} {image.shape}."
            raise DtypeError(message)
        for place in random.permutation(len(self._changes)):
            change, (low, high) = self._changes[place]
            if (low, high) != ((0.0, 0.0) if change is _shifted_hue else (1.0, 1.0)):
                found = change(image.astype(np.float64), random.uniform(low, high))
                image = np.clip(np.rint(found), 0, 255).astype(np.uint8)
        return image


def _brighter(image: np.ndarray, factor: float) -> np.ndarray:
    return image * factor


def _with_contrast(image: np.ndarray, factor: float) -> np.ndarray:
    return (image - (mean := np.rint(brightness_of(image).mean()))) * factor + mean


def _saturated(image: np.ndarray, factor: float) -> np.ndarray:
    gray = brightness_of(image)[..., None]
    return (image - gray) * factor + gray


def _shifted_hue(image: np.ndarray, turn: float) -> np.ndarray:
    """Colours turned in the hexagon of hues (Smith 1978): lightness and saturation of HSV stay."""
    high, low = image.max(-1, keepdims=True), image.min(-1, keepdims=True)
    spread = np.where(high > low, high - low, 1.0)
    red, green, blue = np.moveaxis(image, -1, 0)
    s, top = spread[..., 0], high[..., 0]
    hue = np.where(
        top == red, (green - blue) / s % 6, np.where(top == green, (blue - red) / s + 2, (red - green) / s + 4)
    )
    k = (np.array([5.0, 3.0, 1.0]) + (hue + 6 * turn)[..., None]) % 6
    return high - (high - low) * np.clip(np.minimum(k, 4 - k), 0, 1)


class CutOut(AtRandom):
    """Squares at random places set to zero (DeVries and Taylor 2017).

    Parameters
    ----------
    length : int
    num_patches : int
    is_hwc : bool
        Whether channels are the last axis; else the first.
    """

    def __init__(self, length: int, num_patches: int = 1, is_hwc: bool = True) -> None:
        self._length, self._count = positive(length, "length"), positive(num_patches, "num_patches")
        self._is_hwc = flag(is_hwc, "is_hwc")

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        image = image.copy()
        plane = image if self._is_hwc else image.transpose(1, 2, 0)
        for _ in range(self._count):
            top, left = (int(random.integers(n)) - self._length // 2 for n in plane.shape[:2])
            plane[max(top, 0) : max(top + self._length, 0), max(left, 0) : max(left + self._length, 0)] = 0
        return image
