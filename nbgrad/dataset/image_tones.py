"""MindSpore's `dataset.vision`: the tones of images changed: contrast, histograms, sharpness, colours.

In: images of uint8, ndarrays (H, W, C) or (H, W), or Pillow's. Out: the same kind. Called by users and, for every row,
by `Dataset.map`. Changes of one size come first, those at random after them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..nn.layer_arguments import part, real, whole
from .array_transforms import RandomTransform
from .random_images import AtRandom
from .vision_transforms import OfImage, brightness

__all__ = [
    "AdjustBrightness",
    "AdjustContrast",
    "AdjustSaturation",
    "AdjustSharpness",
    "AutoContrast",
    "Equalize",
    "Invert",
    "Posterize",
    "RandomAutoContrast",
    "RandomColor",
    "RandomEqualize",
    "RandomGrayscale",
    "RandomInvert",
    "RandomPosterize",
    "RandomSelectSubpolicy",
    "RandomSharpness",
    "RandomSolarize",
    "Solarize",
]


def _bytes(image: np.ndarray, name: str, channels: int | None = None) -> np.ndarray:
    """An image of uint8.

    Raises
    ------
    DtypeError
        For others.
    """
    if image.dtype != np.uint8 or (channels is not None and (image.ndim != 3 or image.shape[2] != channels)):
        shape = "(H, W, C)" if channels is None else f"(H, W, {channels})"
        message = f"{name} takes images {shape} of uint8, but got {image.dtype} {image.shape}."
        raise DtypeError(message)
    return image


def _by_channel(image: np.ndarray, table_of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Each channel by a table of 256 new values, which its histogram gives."""
    planes = image.reshape(*image.shape[:2], -1)
    tables = [table_of(np.bincount(plane.ravel(), minlength=256)) for plane in np.moveaxis(planes, -1, 0)]
    found = np.stack([table[plane] for table, plane in zip(tables, np.moveaxis(planes, -1, 0), strict=True)], -1)
    return found.reshape(image.shape)


def _whole(values: np.ndarray) -> np.ndarray:
    """Numbers as uint8, without their fractions, the nearest where they lie outside."""
    return np.clip(values, 0, 255).astype(np.uint8)


# ----- Histograms -----


class AutoContrast(OfImage):
    """Every channel stretched, so that its darkest pixel becomes 0 and its brightest 255.

    Parameters
    ----------
    cutoff : float
        The share of pixels, in percent, that are left out at both ends.
    ignore : int or list of int, optional
        Values of pixels that do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad.dataset import vision
    >>> vision.AutoContrast()(np.array([[50, 60, 100]], np.uint8)).tolist()
    [[0, 51, 255]]
    """

    def __init__(self, cutoff: float = 0.0, ignore: Any = None) -> None:
        self._cutoff = real(cutoff, "cutoff")
        if not 0 <= self._cutoff < 50:
            message = f"cutoff must be at least 0 and below 50, but got {cutoff!r}."
            raise ArgumentError(message)
        self._ignore = [] if ignore is None else [whole(one, "ignore") for one in np.ravel(ignore).tolist()]

    def _image(self, image: np.ndarray) -> np.ndarray:
        return _by_channel(_bytes(image, type(self).__name__), self._table)

    def _table(self, counts: np.ndarray) -> np.ndarray:
        counts = counts.copy()
        counts[self._ignore] = 0
        left_out = int(counts.sum() * self._cutoff / 100.0)
        for direction in (1, -1):
            before = np.concatenate([[0], np.cumsum(counts[::direction])[:-1]])
            counts[::direction] -= np.clip(left_out - before, 0, counts[::direction])
        used = np.flatnonzero(counts)
        if used.size < 2:
            return np.arange(256, dtype=np.uint8)
        low, high = used[0], used[-1]
        scale = np.float32(255.0 / (high - low))
        return _whole(np.arange(256, dtype=np.float32) * scale - np.float32(low) * scale)


class Equalize(OfImage):
    """Every channel by the running sum of its histogram, so that all values are about as frequent: from 0 to 255."""

    def _image(self, image: np.ndarray) -> np.ndarray:
        return _by_channel(_bytes(image, type(self).__name__), self._table)

    def _table(self, counts: np.ndarray) -> np.ndarray:
        used = np.flatnonzero(counts)
        if used.size < 2:
            return np.arange(256, dtype=np.uint8)
        above = np.cumsum(counts) - counts[used[0]]
        return _whole(np.rint(above * np.float32(255.0 / above[-1])))


class Invert(OfImage):
    """The negative: 255 minus every pixel."""

    def _image(self, image: np.ndarray) -> np.ndarray:
        return 255 - _bytes(image, type(self).__name__)


class Posterize(OfImage):
    """Pixels of which only some bits are kept.

    Parameters
    ----------
    bits : int
        How many, from 0 to 8.
    """

    def __init__(self, bits: int) -> None:
        self._mask = _mask(bits)

    def _image(self, image: np.ndarray) -> np.ndarray:
        return _bytes(image, type(self).__name__) & self._mask


def _mask(bits: Any) -> np.uint8:
    count = whole(bits, "bits")
    if not 0 <= count <= 8:
        message = f"bits must be from 0 to 8, but got {bits!r}."
        raise ArgumentError(message)
    return np.uint8(256 - (1 << 8 - count))


class Solarize(OfImage):
    """The negative of pixels within a range.

    Parameters
    ----------
    threshold : int or (int, int)
        The ends of the range, which belong to it; one number is its begin.
    """

    def __init__(self, threshold: Any) -> None:
        self._range = _thresholds(threshold)

    def _image(self, image: np.ndarray) -> np.ndarray:
        return _solarized(_bytes(image, type(self).__name__), *self._range)


def _thresholds(threshold: Any) -> tuple[int, int]:
    pair = (threshold, 255) if isinstance(threshold, int | float) else tuple(threshold)
    low, high = (whole(one, "threshold") for one in pair)
    if not 0 <= low <= high <= 255:
        message = f"threshold must be from 0 to 255, the smaller number first, but got {threshold!r}."
        raise ArgumentError(message)
    return low, 255 if low == high else high


def _solarized(image: np.ndarray, low: int, high: int) -> np.ndarray:
    return np.where((image >= low) & (image <= high), 255 - image, image).astype(np.uint8)


# ----- Between two images -----


def _smooth(image: np.ndarray) -> np.ndarray:
    """The weighted means of pixels and their neighbours, the middle five times; pixels of the border as they are."""
    found = image.astype(np.float64)
    if min(image.shape[:2]) < 3:
        return found
    total = 4.0 * found[1:-1, 1:-1]
    for down in range(3):
        for right in range(3):
            total += image[down : image.shape[0] - 2 + down, right : image.shape[1] - 2 + right]
    found[1:-1, 1:-1] = np.rint(total / 13.0)
    return found


def _blended(image: np.ndarray, other: np.ndarray, factor: float) -> np.ndarray:
    """The other image for 0, the image for 1, in between and beyond."""
    return np.clip(np.rint(other + factor * (image - other)), 0, 255).astype(np.uint8)


def _sharpened(image: np.ndarray, factor: float) -> np.ndarray:
    return _blended(image.astype(np.float64), _smooth(image), factor)


def _coloured(image: np.ndarray, factor: float) -> np.ndarray:
    return _blended(image.astype(np.float64), np.rint(brightness(image))[..., None], factor)


def _contrasted(image: np.ndarray, factor: float) -> np.ndarray:
    return _blended(image.astype(np.float64), np.floor(brightness(image).mean() + 0.5), factor)


def _brightened(image: np.ndarray, factor: float) -> np.ndarray:
    return _blended(image.astype(np.float64), np.zeros(()), factor)


class _Adjust(OfImage):
    """A change by a factor: 1 leaves the image as it is."""

    _change: Callable[[np.ndarray, float], np.ndarray]
    _channels: int | None = 3

    def __init__(self, factor: float, name: str) -> None:
        self._factor = real(factor, name)
        if self._factor < 0:
            message = f"{name} must not be negative, but got {factor!r}."
            raise ArgumentError(message)

    def _image(self, image: np.ndarray) -> np.ndarray:
        return type(self)._change(_bytes(image, type(self).__name__, self._channels), self._factor)


class AdjustSharpness(_Adjust):
    """A blurred image for 0, the image for 1, a sharper one for more.

    Parameters
    ----------
    sharpness_factor : float
    """

    _change, _channels = staticmethod(_sharpened), None

    def __init__(self, sharpness_factor: float) -> None:
        super().__init__(sharpness_factor, "sharpness_factor")


class AdjustSaturation(_Adjust):
    """A grey image for 0, the image for 1, more colourful ones for more.

    Parameters
    ----------
    saturation_factor : float
    """

    _change = staticmethod(_coloured)

    def __init__(self, saturation_factor: float) -> None:
        super().__init__(saturation_factor, "saturation_factor")


class AdjustContrast(_Adjust):
    """A grey plane for 0, the image for 1, more contrast for more.

    Parameters
    ----------
    contrast_factor : float
    """

    _change = staticmethod(_contrasted)

    def __init__(self, contrast_factor: float) -> None:
        super().__init__(contrast_factor, "contrast_factor")


class AdjustBrightness(_Adjust):
    """A black image for 0, the image for 1, brighter ones for more.

    Parameters
    ----------
    brightness_factor : float
    """

    _change = staticmethod(_brightened)

    def __init__(self, brightness_factor: float) -> None:
        super().__init__(brightness_factor, "brightness_factor")


# ----- At random -----


class _Within(AtRandom):
    """A change by a factor from a range.

    Parameters
    ----------
    degrees : (float, float)
        The ends of the range.
    """

    _change: Callable[[np.ndarray, float], np.ndarray]
    _channels: int | None = 3

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)) -> None:
        low, high = (real(one, "degrees") for one in degrees)
        if not 0 <= low <= high:
            message = f"degrees must be two numbers that are not negative, the smaller one first, but got {degrees!r}."
            raise ArgumentError(message)
        self._degrees = low, high

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return type(self)._change(_bytes(image, type(self).__name__, self._channels), random.uniform(*self._degrees))


class RandomSharpness(_Within):
    """`AdjustSharpness` by a factor from a range; `degrees` are its ends."""

    _change, _channels = staticmethod(_sharpened), None


class RandomColor(_Within):
    """`AdjustSaturation` by a factor from a range; `degrees` are its ends."""

    _change = staticmethod(_coloured)


class RandomPosterize(AtRandom):
    """`Posterize` with a number of bits from a range.

    Parameters
    ----------
    bits : int or (int, int)
        The least and the greatest number; one number is both.
    """

    def __init__(self, bits: Any = (8, 8)) -> None:
        pair = (bits, bits) if isinstance(bits, int) else tuple(bits)
        self._bits = whole(pair[0], "bits"), whole(pair[1], "bits")
        for one in self._bits:
            _mask(one)
        if self._bits[0] > self._bits[1]:
            message = f"bits must have the smaller number first, but got {bits!r}."
            raise ArgumentError(message)

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return _bytes(image, "RandomPosterize") & _mask(int(random.integers(self._bits[0], self._bits[1] + 1)))


class RandomSolarize(AtRandom):
    """`Solarize` with a range from within a range.

    Parameters
    ----------
    threshold : (int, int)
    """

    def __init__(self, threshold: Any = (0, 255)) -> None:
        low, high = (whole(one, "threshold") for one in threshold)
        _thresholds((low, high))
        self._range = low, high

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        low, high = sorted(random.integers(self._range[0], self._range[1] + 1, 2).tolist())
        return _solarized(_bytes(image, "RandomSolarize"), low, 255 if low == high else high)


class RandomAutoContrast(AtRandom):
    """`AutoContrast` with a probability.

    Parameters
    ----------
    cutoff, ignore
        As for `AutoContrast`.
    prob : float
    """

    def __init__(self, cutoff: float = 0.0, ignore: Any = None, prob: float = 0.5) -> None:
        self._change, self._prob = AutoContrast(cutoff, ignore), part(prob, "prob")

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return self._change(image) if random.random() < self._prob else image


class RandomEqualize(AtRandom):
    """`Equalize` with a probability.

    Parameters
    ----------
    prob : float
    """

    _change: Any = Equalize()

    def __init__(self, prob: float = 0.5) -> None:
        self._prob = part(prob, "prob")

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return self._change(image) if random.random() < self._prob else image


class RandomInvert(RandomEqualize):
    """`Invert` with a probability.

    Parameters
    ----------
    prob : float
    """

    _change = Invert()


class RandomGrayscale(AtRandom):
    """Grey with a probability; the channels stay, and are equal.

    Parameters
    ----------
    prob : float
    """

    def __init__(self, prob: float = 0.1) -> None:
        self._prob = part(prob, "prob")

    def _image(self, image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return _coloured(_bytes(image, "RandomGrayscale", 3), 0.0) if random.random() < self._prob else image


class RandomSelectSubpolicy(RandomTransform):
    """One of several lists of transforms, each of which happens with its probability.

    Parameters
    ----------
    policy : list of list of (callable, float)

    Raises
    ------
    DtypeError
        If it is something else.
    """

    def __init__(self, policy: Sequence[Sequence[tuple[Any, float]]]) -> None:
        rows = policy if isinstance(policy, list | tuple) else ()
        pairs = [pair for row in rows if isinstance(row, list | tuple) for pair in row]
        right = [isinstance(pair, list | tuple) and len(pair) == 2 and callable(pair[0]) for pair in pairs]
        if not rows or not all(isinstance(row, list | tuple) and row for row in rows) or not all(right):
            message = f"policy must be a list of lists of pairs (transform, probability), but got {policy!r:.80}."
            raise DtypeError(message)
        self._policy = [[(change, part(chance, "a probability")) for change, chance in row] for row in policy]

    def _with_random(self, random: np.random.Generator, *values: Any) -> Any:
        for change, chance in self._policy[int(random.integers(len(self._policy)))]:
            if random.random() < chance:
                draw = getattr(change, "_with_random", None)
                found = change(*values) if draw is None else draw(random, *values)
                values = found if isinstance(found, tuple) else (found,)
        return values[0] if len(values) == 1 else values
