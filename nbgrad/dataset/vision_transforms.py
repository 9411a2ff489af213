"""MindSpore's `dataset.vision`: images, decoded, cut, resized, turned and normalised.

In: images, ndarrays (H, W, C) or (H, W), or Pillow's. Out: ndarrays, or Pillow's where those came in. Called by users
and, for every row, by `Dataset.map`. Pillow decodes files; all else is NumPy. Random changes are in random_images.py.
"""

from __future__ import annotations

import enum
import io
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..nn.layer_arguments import flag, positive, real, whole
from .array_transforms import Transform

__all__ = [
    "HWC2CHW",
    "Border",
    "CenterCrop",
    "Crop",
    "Decode",
    "Grayscale",
    "HorizontalFlip",
    "Inter",
    "Normalize",
    "Pad",
    "Rescale",
    "Resize",
    "ToNumpy",
    "ToPIL",
    "ToTensor",
    "VerticalFlip",
]


class Inter(enum.IntEnum):
    """How pixels between pixels are computed."""

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(str, enum.Enum):
    """The pixels around images."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


def pillow() -> Any:
    """The package Pillow.

    Raises
    ------
    ArgumentError
        If it is not installed.
    """
    try:
        import_module("PIL.Image")
    except ImportError:
        message = "Decoding images needs Pillow. Install it with: python -m pip install pillow"
        raise ArgumentError(message) from None
    return import_module("PIL")


def decoded(data: Any) -> np.ndarray:
    """The image (H, W, 3) that the bytes of a file hold.

    Raises
    ------
    ArgumentError
        If Pillow is not installed, or cannot read them.
    """
    raw = data if isinstance(data, bytes) else np.asarray(data, np.uint8).tobytes()
    try:
        return np.asarray(pillow().Image.open(io.BytesIO(raw)).convert("RGB"))
    except (OSError, SyntaxError) as error:
        message = f"{len(raw)} bytes cannot be decoded as an image: {error}."
        raise ArgumentError(message) from None


def is_pillow(value: Any) -> bool:
    return type(value).__module__.startswith("PIL.")


class OfImage(Transform):
    """A transform of an array (H, W, C) or (H, W); Pillow's images become arrays and come back."""

    def __call__(self, *values: Any) -> Any:
        """The image, transformed; of several columns, each."""
        found = tuple([self._converted(value) for value in values])
        return found[0] if len(found) == 1 else found

    def _converted(self, value: Any) -> Any:
        image = np.asarray(value)
        if image.ndim not in (2, 3) or image.dtype.kind not in "uif":
            message = f"{type(self).__name__} takes images (H, W, C) or (H, W), but got {image.dtype} {image.shape}."
            raise ShapeError(message)
        result = self._image(image)
        return pillow().Image.fromarray(result) if is_pillow(value) and result.dtype == np.uint8 else result

    def _image(self, image: np.ndarray) -> np.ndarray:
        raise NotImplementedError


def height_and_width(value: Any, name: str = "size") -> tuple[int, int]:
    """Height and width."""
    pair = (value, value) if isinstance(value, int | np.integer) else tuple(value)
    if len(pair) != 2:
        message = f"{name} must be a number, or height and width, but got {value!r}."
        raise ArgumentError(message)
    return positive(pair[0], name), positive(pair[1], name)


# ----- Formats -----


class Decode(Transform):
    """Bytes of a file as an image (H, W, 3).

    Parameters
    ----------
    to_pil : bool
        Whether the image is Pillow's.
    """

    def __init__(self, to_pil: bool = False) -> None:
        self._to_pil = flag(to_pil, "to_pil") if not isinstance(to_pil, str) else False

    def __call__(self, *values: Any) -> Any:
        """The image."""
        image = decoded(*values)
        return pillow().Image.fromarray(image) if self._to_pil else image


class ToPIL(Transform):
    """An array as an image of Pillow's."""

    def __call__(self, *values: Any) -> Any:
        """The image."""
        (image,) = values
        return image if is_pillow(image) else pillow().Image.fromarray(np.asarray(image))


class ToNumpy(Transform):
    """An image of Pillow's as an array."""

    def __call__(self, *values: Any) -> np.ndarray:
        """The array."""
        return np.array(*values)


class ToTensor(OfImage):
    """An image (H, W, C) as numbers from 0 to 1, of shape (C, H, W).

    Parameters
    ----------
    output_type : dtype
        float32 by default.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.dataset.vision.ToTensor()(np.array([[[0, 51, 255]]], np.uint8)).tolist()
    [[[0.0]], [[0.20000000298023224]], [[1.0]]]
    """

    def __init__(self, output_type: Any = np.float32) -> None:
        self._dtype = np.dtype(output_type)

    def _image(self, image: np.ndarray) -> np.ndarray:
        channels = image if image.ndim == 3 else image[..., None]
        return np.ascontiguousarray(channels.transpose(2, 0, 1)).astype(self._dtype) / self._dtype.type(255)


class HWC2CHW(OfImage):
    """Axes (H, W, C) as (C, H, W)."""

    def _image(self, image: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray((image if image.ndim == 3 else image[..., None]).transpose(2, 0, 1))


class Grayscale(OfImage):
    """The brightness of colours: 0.299 R + 0.587 G + 0.114 B (ITU-R 601).

    Parameters
    ----------
    num_output_channels : {1, 3}
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        if num_output_channels not in (1, 3):
            message = f"num_output_channels must be 1 or 3, but got {num_output_channels!r}."
            raise ArgumentError(message)
        self._count = num_output_channels

    def _image(self, image: np.ndarray) -> np.ndarray:
        gray = brightness(image)
        gray = np.rint(gray).astype(image.dtype) if image.dtype.kind in "iu" else gray
        return gray if self._count == 1 else np.repeat(gray[..., None], 3, -1)


def brightness(image: np.ndarray) -> np.ndarray:
    return image.astype(np.float64) if image.ndim == 2 else image[..., :3] @ np.array([0.299, 0.587, 0.114])


# ----- Numbers -----


class Rescale(OfImage):
    """`rescale * x + shift`, as float32.

    Parameters
    ----------
    rescale, shift : float
    """

    def __init__(self, rescale: float, shift: float) -> None:
        self._rescale, self._shift = np.float32(real(rescale, "rescale")), np.float32(real(shift, "shift"))

    def _image(self, image: np.ndarray) -> np.ndarray:
        return image.astype(np.float32) * self._rescale + self._shift


class Normalize(OfImage):
    """`(x - mean) / std` for each channel, as float32.

    Parameters
    ----------
    mean, std : list of float
        One for each channel.
    is_hwc : bool, optional
        Whether channels are the last axis; else the first. By default the axis that has as many elements as `mean`, the
        last one if both do.

    Raises
    ------
    ArgumentError, ShapeError
        If a `std` is not positive, or the image has another number of channels.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.dataset.vision.Normalize([1.0, 2.0], [2.0, 4.0])(np.full((1, 1, 2), 3, np.uint8)).tolist()
    [[[1.0, 0.25]]]
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], is_hwc: bool | None = None) -> None:
        self._mean, self._std = np.asarray(mean, np.float32).ravel(), np.asarray(std, np.float32).ravel()
        if self._mean.shape != self._std.shape or not (self._std > 0).all():
            message = "mean and std must have one number for each channel, and those of std must be positive."
            raise ArgumentError(message)
        self._is_hwc = is_hwc if is_hwc is None else flag(is_hwc, "is_hwc")

    def _image(self, image: np.ndarray) -> np.ndarray:
        channels = image if image.ndim == 3 else image[..., None]
        count = len(self._mean)
        last = channels.shape[-1] == count if self._is_hwc is None else self._is_hwc
        if channels.shape[-1 if last else 0] != count and count != 1:
            message = f"Normalize has {count} channels, but the image has the shape {image.shape}."
            raise ShapeError(message)
        by = (lambda numbers: numbers) if last else (lambda numbers: numbers[:, None, None])
        return ((channels.astype(np.float32) - by(self._mean)) / by(self._std)).reshape(image.shape)


# ----- Sizes -----


def _weights(old: int, new: int, interpolation: Inter) -> np.ndarray:
    """The share of each old pixel in each new one along an axis: centres keep their places, ends are continued."""
    scale = old / new
    if interpolation == Inter.NEAREST:
        places, kernel = np.minimum(np.floor(np.arange(new) * scale), old - 1)[:, None], np.ones((new, 1))
    else:
        centres = (np.arange(new) + 0.5) * scale - 0.5
        low = np.floor(centres)
        d = (centres - low)[:, None]
        if interpolation == Inter.LINEAR:
            kernel, places = np.concatenate([1 - d, d], 1), low[:, None] + [0, 1]
        else:
            kernel, places = _cubic(d), low[:, None] + [-1, 0, 1, 2]
    matrix = np.zeros((new, old))
    np.add.at(matrix, (np.arange(new)[:, None], np.clip(places, 0, old - 1).astype(int)), kernel)
    return matrix


def _cubic(d: np.ndarray, a: float = -0.75) -> np.ndarray:
    """Keys's cubic convolution kernel (1981) at the distances 1 + d, d, 1 - d, 2 - d."""

    def near(t: np.ndarray) -> np.ndarray:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def far(t: np.ndarray) -> np.ndarray:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    return np.concatenate([far(1 + d), near(d), near(1 - d), far(2 - d)], 1)


def resized(image: np.ndarray, size: tuple[int, int], interpolation: Inter) -> np.ndarray:
    """An image of another size."""
    if image.shape[:2] == size:
        return image
    if 0 in image.shape[:2]:
        message = f"An image of shape {image.shape}, which is empty, cannot be resized."
        raise ShapeError(message)
    if interpolation in (Inter.ANTIALIAS, Inter.AREA, Inter.PILCUBIC):
        names = {Inter.ANTIALIAS: "LANCZOS", Inter.AREA: "BOX", Inter.PILCUBIC: "BICUBIC"}
        pil = pillow().Image
        return np.asarray(pil.fromarray(image).resize(size[::-1], getattr(pil.Resampling, names[interpolation])))
    rows = _weights(image.shape[0], size[0], interpolation)
    columns = _weights(image.shape[1], size[1], interpolation)
    found = np.tensordot(columns, np.tensordot(rows, image.astype(np.float64), 1), (1, 1)).swapaxes(0, 1)
    if image.dtype.kind in "iu":
        limits = np.iinfo(image.dtype)
        found = np.clip(np.rint(found), limits.min, limits.max)
    return found.astype(image.dtype)


class Resize(OfImage):
    """An image of another size.

    Parameters
    ----------
    size : int or (int, int)
        Height and width; one number is that of the shorter side, and the other side follows.
    interpolation : Inter

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.dataset.vision.Resize((1, 4))(np.array([[0, 100]], np.uint8)).tolist()
    [[0, 25, 75, 100]]
    """

    def __init__(self, size: Any, interpolation: Inter = Inter.LINEAR) -> None:
        self._shorter = positive(size, "size") if isinstance(size, int) else None
        self._size = None if isinstance(size, int) else height_and_width(size)
        self._interpolation = Inter(interpolation)

    def _image(self, image: np.ndarray) -> np.ndarray:
        size = self._size
        if size is None:
            height, width = image.shape[:2]
            short = self._shorter or 1
            size = (short, short * width // height) if height <= width else (short * height // width, short)
        return resized(image, size, self._interpolation)


def cut(image: np.ndarray, top: int, left: int, size: tuple[int, int]) -> np.ndarray:
    return np.ascontiguousarray(image[top : top + size[0], left : left + size[1]])


class Crop(OfImage):
    """A piece of an image.

    Parameters
    ----------
    coordinates : (int, int)
        Its upper left corner: row and column.
    size : int or (int, int)
    """

    def __init__(self, coordinates: Sequence[int], size: Any) -> None:
        self._corner, self._size = tuple([whole(one, "coordinates") for one in coordinates]), height_and_width(size)
        if len(self._corner) != 2 or min(self._corner) < 0:
            message = f"coordinates must be a row and a column, none negative, but got {coordinates!r}."
            raise ArgumentError(message)

    def _image(self, image: np.ndarray) -> np.ndarray:
        top, left = self._corner
        if top + self._size[0] > image.shape[0] or left + self._size[1] > image.shape[1]:
            message = f"The piece of size {self._size} at {self._corner} leaves the image of {image.shape[:2]}."
            raise ShapeError(message)
        return cut(image, top, left, self._size)


class CenterCrop(OfImage):
    """The middle of an image; zeros are put around a smaller one.

    Parameters
    ----------
    size : int or (int, int)
    """

    def __init__(self, size: Any) -> None:
        self._size = height_and_width(size)

    def _image(self, image: np.ndarray) -> np.ndarray:
        missing = [max(n - m, 0) for n, m in zip(self._size, image.shape[:2], strict=True)]
        if any(missing):
            image = bordered(image, (missing[1] // 2, missing[0] // 2, -(-missing[1] // 2), -(-missing[0] // 2)))
        top, left = ((m - n) // 2 for m, n in zip(image.shape[:2], self._size, strict=True))
        return cut(image, top, left, self._size)


def border_sides(padding: Any) -> tuple[int, int, int, int]:
    """Left, top, right, bottom."""
    given = (padding,) if isinstance(padding, int) else tuple(padding)
    if len(given) not in (1, 2, 4) or any(whole(one, "padding") < 0 for one in given):
        message = f"padding must be one, two or four numbers that are not negative, but got {padding!r}."
        raise ArgumentError(message)
    left, top, right, bottom = given if len(given) == 4 else given * (4 // len(given))
    return left, top, right, bottom


def bordered(image: np.ndarray, sides: tuple[int, int, int, int], value: Any = 0, mode: str = "constant") -> np.ndarray:
    left, top, right, bottom = sides
    widths = [(top, bottom), (left, right)] + [(0, 0)] * (image.ndim - 2)
    if mode != "constant":
        return np.pad(image, widths, mode=mode)  # pyright: ignore[reportCallIssue, reportArgumentType]
    result = np.empty([n + sum(pair) for n, pair in zip(image.shape, widths, strict=True)], image.dtype)
    result[...] = value
    result[top : top + image.shape[0], left : left + image.shape[1]] = image
    return result


class Pad(OfImage):
    """An image with a border.

    Parameters
    ----------
    padding : int or tuple of 2 or 4 int
        On all sides; left and right, top and bottom; or left, top, right, bottom.
    fill_value : int or tuple of int
    padding_mode : Border
    """

    def __init__(self, padding: Any, fill_value: Any = 0, padding_mode: Border = Border.CONSTANT) -> None:
        self._at, self._value, self._mode = border_sides(padding), fill_value, Border(padding_mode)

    def _image(self, image: np.ndarray) -> np.ndarray:
        return bordered(image, self._at, self._value, self._mode.value)


class HorizontalFlip(OfImage):
    """An image with left and right exchanged."""

    def _image(self, image: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(image[:, ::-1])


class VerticalFlip(OfImage):
    """An image with top and bottom exchanged."""

    def _image(self, image: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(image[::-1])
