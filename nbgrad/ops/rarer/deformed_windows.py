"""Convolutions whose windows have learned shapes: `deformable_conv2d`.

In: images, kernels, and for every element of every window how far it is moved and how much it counts. Out: Tensors.
Called by users.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...errors import ArgumentError, ShapeError
from ...record.axes_and_dtypes import integer, integers, only
from ...record.tensor import Tensor
from ..docstrings import documented
from .sampled_images import between_pixels
from .special_values import float_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _of_four(value: Any, name: str) -> tuple[int, int]:
    """The two last of four integers, whose first are 1.

    Raises
    ------
    ArgumentError
        For others.
    """
    numbers = tuple(integers(value, name))
    if len(numbers) != 4 or numbers[:2] != (1, 1) or min(numbers) < 1:
        message = f"{name} must be four integers (1, 1, rows, columns), but got {value!r}."
        raise ArgumentError(message)
    return numbers[2], numbers[3]


@documented
def deformable_conv2d(
    x: Any,
    weight: Any,
    offsets: Any,
    kernel_size: Any,
    strides: Any,
    padding: Any,
    bias: Any = None,
    dilations: Any = (1, 1, 1, 1),
    groups: int = 1,
    deformable_groups: int = 1,
    modulated: bool = True,
) -> Tensor:
    """A convolution whose windows are moved element by element, and weighted (Zhu et al. 2018).

    x : array-like, shape (N, C, H, W)
    weight : array-like, shape (O, C / groups, h, w)
    offsets : array-like, shape (N, 3 * deformable_groups * h * w, rows, columns)
        How far each element is moved to the right, then how far down, then its factor.
    kernel_size : (int, int)
    strides, dilations : tuple of four int
        Of which the first two are 1.
    padding : (int, int, int, int)
        Zeros above, below, left and right.
    bias : array-like, shape (O,), optional
    groups, deformable_groups : int
        Into how many parts the channels are divided for the product, and for the moves.
    modulated : bool
        True: there are factors.
    -> Tensor, shape (N, O, rows, columns)
    ShapeError, ArgumentError : If shapes or numbers do not fit.

    >>> x = nb.numpy.arange(16.0).reshape(1, 1, 4, 4)
    >>> half = nb.ops.concat([nb.ops.full((1, 1, 4, 4), v) for v in (0.5, 0.0, 1.0)], 1)  # of a column to the right
    >>> found = nb.ops.deformable_conv2d(x, nb.ops.ones((1, 1, 1, 1)), half, (1, 1), (1, 1, 1, 1), (0, 0, 0, 0))
    >>> found[0, 0, 0].tolist()
    [0.5, 1.5, 2.5, 1.5]
    """
    only("modulated", modulated, True)
    images, kernel, moves = float_of(x), float_of(weight), float_of(offsets)
    if images.ndim != 4 or kernel.ndim != 4 or moves.ndim != 4:
        message = (
            "deformable_conv2d takes images, kernels and offsets of 4 axes, but got the shapes "
            f"{images.shape}, {kernel.shape} and {moves.shape}."
        )
        raise ShapeError(message)
    (n, channels, height, width), (outputs, depth, h, w) = images.shape, kernel.shape
    parts, products = integer(deformable_groups, "deformable_groups"), integer(groups, "groups")
    (step_y, step_x), (spread_y, spread_x) = _of_four(strides, "strides"), _of_four(dilations, "dilations")
    top, bottom, left, right = integers(padding, "padding")
    rows = (height + top + bottom - (h - 1) * spread_y - 1) // step_y + 1
    columns = (width + left + right - (w - 1) * spread_x - 1) // step_x + 1
    fits = (
        tuple(integers(kernel_size, "kernel_size")) == (h, w)
        and parts > 0
        and products > 0
        and channels % parts == 0
        and depth * products == channels
        and outputs % products == 0
        and moves.shape == (n, 3 * parts * h * w, rows, columns)
    )
    if not fits:
        message = (
            f"deformable_conv2d got images {images.shape}, kernels {kernel.shape} in {products} groups, kernel_size="
            f"{kernel_size!r} and offsets {moves.shape} in {parts} groups, which do not fit: offsets must have the "
            f"shape {(n, 3 * parts * h * w, rows, columns)}."
        )
        raise ShapeError(message)
    shifts = moves.reshape(n, 3, parts, h, w, rows, columns)
    at_y = (np.arange(rows) * step_y - top)[:, None] + (np.arange(h) * spread_y)[:, None, None, None]
    at_x = (np.arange(columns) * step_x - left) + (np.arange(w) * spread_x)[:, None, None]
    places = [
        (base + move).reshape(n * parts, h, w, rows, columns)
        for base, move in ((at_y.astype(np.float32), shifts[:, 1]), (at_x.astype(np.float32), shifts[:, 0]))
    ]
    of_parts = images.reshape(n * parts, channels // parts, height, width)
    which = np.arange(n * parts).reshape(-1, 1, 1, 1, 1)
    picked = between_pixels(of_parts, which, places, "bilinear", 0.0)
    picked = picked * shifts[:, 2].reshape(n * parts, h, w, rows, columns)[..., None]
    picked = np.moveaxis(picked, -1, 1).reshape(n, products, depth * h * w, rows * columns)
    product = kernel.reshape(products, outputs // products, depth * h * w) @ picked
    result = product.reshape(n, outputs, rows, columns)
    return result if bias is None else result + float_of(bias).reshape(-1, 1, 1)
