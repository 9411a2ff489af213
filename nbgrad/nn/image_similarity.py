"""How alike images are to an eye: `SSIM` of one size, `MSSSIM` of several sizes.

In: the largest value of a pixel and a window; then two batches of images. Out: Cells. Called by users, also as losses:
both differentiate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..ops.convolution import conv2d
from ..ops.pooling import avg_pool2d
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact
from ..record.tensor import Tensor
from .cell import Cell
from .layer_arguments import positive, real


def _above_zero(value: Any, name: str) -> float:
    number = real(value, name)
    if number <= 0:
        message = f"{name} must be positive, but got {value!r}."
        raise ArgumentError(message)
    return number


class SSIM(Cell):
    """The structural similarity of images (Wang, Bovik, Sheikh and Simoncelli 2004): 1 for equal ones.

    Parameters
    ----------
    max_val : number
        The largest value of a pixel.
    filter_size : int
        The extent of the Gaussian window.
    filter_sigma : float
        Its standard deviation.
    k1, k2 : float
        By how much of `max_val` means and deviations are kept away from zero.

    Raises
    ------
    ArgumentError, ShapeError
        For numbers that are not positive; for arrays of different shapes, or less than a window.

    Examples
    --------
    >>> import nbgrad as nb
    >>> images = nb.numpy.linspace(0.0, 1.0, 288).reshape(2, 1, 12, 12)
    >>> similarity = nb.nn.SSIM(filter_size=5)
    >>> print(similarity(images, images))
    [1. 1.]
    >>> bool(nb.grad(lambda x: similarity(x, images).sum())(0.9 * images).max() > 0)
    True
    """

    def __init__(
        self,
        max_val: float = 1.0,
        filter_size: int = 11,
        filter_sigma: float = 1.5,
        k1: float = 0.01,
        k2: float = 0.03,
    ) -> None:
        super().__init__()
        self.max_val = _above_zero(max_val, "max_val")
        self.filter_size = positive(filter_size, "filter_size")
        self.filter_sigma = _above_zero(filter_sigma, "filter_sigma")
        self.k1, self.k2 = real(k1, "k1"), real(k2, "k2")
        bell = np.exp(-0.5 * ((np.arange(self.filter_size) - (self.filter_size - 1) / 2) / self.filter_sigma) ** 2)
        self._bell = bell / bell.sum()

    def construct(self, img1: Any, img2: Any) -> Tensor:
        """One number for each image of two batches (N, C, H, W)."""
        return self._parts(*self._images(img1, img2))[0].mean(-1)

    def _images(self, img1: Any, img2: Any) -> tuple[Any, Any]:
        """Two batches of images of one shape, of floats, whose greatest value is 1.

        Raises
        ------
        ShapeError
            For others.
        """
        one, other = wrap(inexact(as_node(img1))), wrap(inexact(as_node(img2)))
        if one.ndim != 4 or one.shape != other.shape or min(one.shape[2:]) < self.filter_size:
            message = (
                f"{self.cls_name} takes two arrays of one shape (N, C, H, W) with at least {self.filter_size} rows and "
                f"columns, but got {one.shape} and {other.shape}."
            )
            raise ShapeError(message)
        return one, other

    def _smoothed(self, x: Any) -> Any:
        """The means of channels over all windows."""
        n, channels, height, width = x.shape
        planes = x.reshape(n * channels, 1, height, width)
        bell = Tensor(self._bell.astype(np.dtype(x.dtype.name)))
        rows = conv2d(planes, bell.reshape(1, 1, -1, 1))
        means: Any = conv2d(rows, bell.reshape(1, 1, 1, -1))
        return means.reshape(n, channels, *means.shape[2:])

    def _parts(self, one: Any, other: Any) -> tuple[Any, Any]:
        """The similarity of each channel, and its factor of contrast and structure."""
        c1, c2 = (self.k1 * self.max_val) ** 2, (self.k2 * self.max_val) ** 2
        mean, other_mean = self._smoothed(one), self._smoothed(other)
        product, squares = mean * other_mean, mean * mean + other_mean * other_mean
        luminance = (2 * product + c1) / (squares + c1)
        together = 2 * (self._smoothed(one * other) - product)
        spread = self._smoothed(one * one + other * other) - squares
        structure = (together + c2) / (spread + c2)
        return (luminance * structure).mean((2, 3)), structure.mean((2, 3))


class MSSSIM(SSIM):
    """Structural similarity over several sizes (Wang, Simoncelli and Bovik 2003), each half of the one before,
    without an odd last row or column.

    Parameters
    ----------
    max_val : number
    power_factors : sequence of float
        The exponents of the sizes, the largest first.
    filter_size, filter_sigma, k1, k2
        As for `SSIM`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> images = nb.numpy.linspace(0.0, 1.0, 256).reshape(1, 1, 16, 16)
    >>> print(nb.nn.MSSSIM(power_factors=(0.5, 0.5), filter_size=5)(images, images))
    [1.]
    """

    def __init__(
        self,
        max_val: float = 1.0,
        power_factors: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
        filter_size: int = 11,
        filter_sigma: float = 1.5,
        k1: float = 0.01,
        k2: float = 0.03,
    ) -> None:
        super().__init__(max_val, filter_size, filter_sigma, k1, k2)
        self.power_factors = tuple([real(one, "power_factors") for one in power_factors])
        if not self.power_factors:
            message = "MSSSIM needs at least one of power_factors."
            raise ArgumentError(message)

    def construct(self, img1: Any, img2: Any) -> Tensor:
        """One number for each image of two batches (N, C, H, W)."""
        one, other = self._images(img1, img2)
        result: Any = 1.0
        for k, power in enumerate(self.power_factors):
            if k:
                one, other = self._images(avg_pool2d(one, 2, 2), avg_pool2d(other, 2, 2))
            whole, structure = self._parts(one, other)
            last = k == len(self.power_factors) - 1
            result = result * np.maximum(whole if last else structure, 0.0) ** power
        return result.mean(-1)
