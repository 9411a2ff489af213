"""Recipes of windows on images: columns for convolutions, their transpose, and window maxima.

In: a `Special` whose node is an "unfold", "fold" or "window_argmax". Out: its recipe. Called by recipes.py. Kernels:
kernels/gpu/device_windows.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...compiler.fuse import Special
from ...graph.ir import Node
from ...graph.shapes import Shape
from .launches import Recipe
from .python_kernels import KernelTable
from .python_launches import MOST_BLOCKS, THREADS, launch, power_of_two

ROWS = 4
"""A thread goes through at most about so many rows."""


def unfold_recipe(kernel: Special) -> Recipe:
    """The windows of images."""
    node = kernel.node
    return _planes(kernel, [(0, node.dtype.name), (1, node.dtype.name)], node.params[4])


def fold_recipe(kernel: Special) -> Recipe:
    """Windows added up in images."""
    node = kernel.node
    return _planes(kernel, [(0, node.dtype.name), (1, node.dtype.name)], node.params[5])


def _planes(kernel: Special, operands: Sequence[tuple[int, str]], plane: tuple[int, int]) -> Recipe:
    """A thread for each place in planes of some height and width; a block has several planes if they are small."""
    count, channels = images_of(kernel.node)[:2]
    height, width = plane
    x = min(power_of_two(width), THREADS)
    y = min(power_of_two(height), THREADS // x)
    pieces = -(-height // (y * ROWS))
    groups = -(-count * channels // (THREADS // (x * y)))
    numbers = [x.bit_length() - 1, y.bit_length() - 1, pieces, *_numbers(kernel.node)]
    place = f"gpu.device_windows.{kernel.node.name}"
    return Recipe((launch(place, operands, numbers, groups * pieces, readonly=1),))


def window_argmax_recipe(kernel: Special) -> Recipe:
    """The position of each window's first maximum."""
    node = kernel.node
    blocks = min(-(-node.size // THREADS), MOST_BLOCKS)
    operands = [(0, node.inputs[0].dtype.name), (1, "int64")]
    return Recipe((launch("gpu.device_windows.window_argmax", operands, _numbers(node), blocks, readonly=1),))


def images_of(node: Node) -> Shape:
    """The shape of the images that are read or written."""
    return node.shape if node.name == "fold" else node.inputs[0].shape


def _numbers(node: Node) -> list[int]:
    return [*images_of(node), *[number for pair in node.params[:5] for number in pair]]


KERNELS: KernelTable = {
    "gpu.device_windows.unfold": ("* *", 17, "float32 float64"),
    "gpu.device_windows.fold": ("* *", 17, "float32 float64"),
    "gpu.device_windows.window_argmax": ("* int64", 14, "float32 float64"),
}
"""The functions in kernels/ that are launched here, as python_kernels.py has them."""
RECIPES: dict[str, Callable[[Special], Recipe]] = {
    "unfold": unfold_recipe,
    "fold": fold_recipe,
    "window_argmax": window_argmax_recipe,
}
"""By the name of the primitive."""
