"""Recipes of sorting: the positions that bring the last axis into order.

In: a `Special` whose node is an "argsort", or what `sorting` is told. Out: its recipe, or launches. Called by
recipes.py and scatters.py. Kernels: kernels/gpu/device_sort.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...compiler.fuse import Special
from .launches import Launch, Recipe
from .python_kernels import KernelTable
from .python_launches import THREADS, launch, power_of_two

TILE = 1024
"""Elements of a tile; kernels/gpu/device_sort.py has the same number."""


def argsort_recipe(kernel: Special) -> Recipe:
    """Positions that sort the last axis: stable, NaN last."""
    node = kernel.node
    length = node.shape[-1]
    dtype = node.inputs[0].dtype.name
    return Recipe(*sorting(node.size // length, length, dtype, source=0, order=1, workspace=2))


def sorting(
    rows: int, length: int, dtype: str, source: int, order: int, workspace: int
) -> tuple[tuple[Launch, ...], tuple[int, ...]]:
    """Launches that sort rows, and the bytes of their workspaces.

    Parameters
    ----------
    rows, length : int
        The rows lie one after the other.
    dtype : str
        Of the elements.
    source, order, workspace : int
        The operands: elements, the positions to be written, and the first workspace.
    """
    passes = 0
    while TILE << passes < length:
        passes += 1
    tiles = -(-length // TILE)
    span = TILE if tiles > 1 else power_of_two(length)
    size = rows * length
    # Positions go back and forth between the result and a workspace, elements between two others.
    places = [(order, "int64"), (workspace + 2, "int64")]
    keys = [(workspace, dtype), (workspace + 1, dtype)]
    now = passes % 2
    kept = keys[now] if passes else (order, dtype)
    blocks = rows * tiles if tiles > 1 else -(-rows // (TILE // span))
    numbers = [rows, length, tiles, span.bit_length() - 1, int(passes > 0)]
    operands = [(source, dtype), places[now], kept]
    actions = [launch("gpu.device_sort.sort_tiles", operands, numbers, blocks, THREADS, 32 * TILE, readonly=1)]
    for number in range(passes):
        after = 1 - now
        operands = [keys[now], places[now], keys[after], places[after]]
        numbers = [length, tiles, TILE << number, int(number < passes - 1)]
        shared = 8 * TILE + 16
        actions.append(
            launch("gpu.device_sort.merge_runs", operands, numbers, rows * tiles, THREADS, shared, readonly=2)
        )
        now = after
    nbytes = np.dtype(dtype).itemsize * size
    return tuple(actions), (nbytes, nbytes, 8 * size) if passes else ()


KERNELS: KernelTable = {
    "gpu.device_sort.sort_tiles": ("* int64 *", 5, "int32 int64 float32 float64"),
    "gpu.device_sort.merge_runs": ("* int64 * int64", 4, "int32 int64 float32 float64"),
}
"""The functions in kernels/ that are launched here, as python_kernels.py has them."""
RECIPES: dict[str, Callable[[Special], Recipe]] = {
    "argsort": argsort_recipe,
}
"""By the name of the primitive."""
