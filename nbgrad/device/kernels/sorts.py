"""Recipes of sorting: the positions that bring the last axis into order.

In: a `Special` whose node is an "argsort", or what `sorting` is told. Out: its recipe, or launches. Called by
recipes.py and scatters.py. Kernels: kernels/gpu/device_radix.py
and kernels/gpu/device_sort.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...compiler.fuse import Special
from .launches import Launch, Recipe
from .python_kernels import KernelTable
from .python_launches import THREADS, launch, power_of_two, whole_warps

TILE = 1024
"""Elements of a tile that is merged; kernels/gpu/device_sort.py has the same number."""
RADIX_TILE = 3840
"""Elements of a tile that is sorted by a digit; kernels/gpu/device_radix.py has the same number."""
DIGITS = 256
"""Of eight bits: threads of a block of kernels/gpu/device_radix.py."""
MOST_PARTS = 2048
"""Parts of all rows together, if they are long: more blocks than any GPU runs at once, and few counts to add up."""
LONG = 1 << 14
"""Elements of a row for each pass over a digit from which on digits are faster than merging."""
LONGEST = 1 << 31
"""Positions below that have 32 bits."""


def argsort_recipe(kernel: Special) -> Recipe:
    """Positions that sort the last axis: stable, NaN last."""
    node = kernel.node
    length = node.shape[-1]
    dtype = node.inputs[0].dtype.name
    return Recipe(*sorting(node.size // length, length, dtype, source=0, order=1, workspace=2))


def sorting(
    rows: int, length: int, dtype: str, source: int, order: int, workspace: int, bits: int | None = None
) -> tuple[tuple[Launch, ...], tuple[int, ...]]:
    """Launches that sort rows, and the bytes of their workspaces: by digits if the rows are long, else by merging.

    Parameters
    ----------
    rows, length : int
        The rows lie one after the other.
    dtype : str
        Of the elements.
    source, order, workspace : int
        The operands: elements, the positions to be written, and the first workspace.
    bits : int, optional
        The elements are whole numbers that differ in so many of their lowest bits only; in all if absent.
    """
    passes = max(1, -(-(8 * np.dtype(dtype).itemsize if bits is None else bits) // 8))
    if LONG * passes <= length < LONGEST:
        return _by_digits(rows, length, dtype, source, order, workspace, passes)
    return _by_merging(rows, length, dtype, source, order, workspace)


def _by_digits(
    rows: int, length: int, dtype: str, source: int, order: int, workspace: int, passes: int
) -> tuple[tuple[Launch, ...], tuple[int, ...]]:
    """Passes over digits of eight bits, the lowest first."""
    tiles = -(-length // RADIX_TILE)
    each = -(-tiles // max(1, min(tiles, MOST_PARTS // rows)))
    parts = -(-tiles // each)
    size, part = rows * length, each * RADIX_TILE
    itemsize = np.dtype(dtype).itemsize
    keys = [(workspace, dtype), (workspace + 1, dtype)]
    counts, totals = (workspace + 3, "int32"), (workspace + 4, "int32")
    # The result holds positions, too, but not those that the last pass reads.
    places = [(workspace + 2, "int32"), (order, "int32")][:: 1 if passes % 2 == 0 else -1]
    tile_bytes = itemsize * RADIX_TILE
    warps = DIGITS // 32
    shared = tile_bytes + 6 * RADIX_TILE + 4 * DIGITS * (warps + 1) + 4 * warps
    actions: list[Launch] = []
    now, positions = (source, dtype), counts
    for number in range(passes):
        numbers = [length, parts, part, 8 * number]
        counting = [now, counts]
        actions += [
            launch(
                "gpu.device_radix.count_digits", counting, numbers, rows * parts, DIGITS, 4 * DIGITS * warps, readonly=1
            ),
            launch(
                "gpu.device_radix.sum_counts", [counts, totals], [parts], rows * DIGITS, whole_warps(parts), 4 * warps
            ),
        ]
        operands, numbers = [now, positions, counts, totals], [*numbers, tile_bytes, int(number == 0)]
        if number < passes - 1:
            place = "gpu.device_radix.move_on"
            now, positions = keys[number % 2], places[number % 2]
            operands += [now, positions]
        else:
            place = "gpu.device_radix.move_last"
            operands.append((order, "int64"))
        operands.append((workspace + 3, "int16"))
        actions.append(launch(place, operands, numbers, rows * parts, DIGITS, shared, readonly=4))
    first, second = [itemsize * size if passes > least else itemsize for least in (1, 2)]
    return tuple(actions), (first, second, 4 * size, 4 * rows * DIGITS * parts, 4 * rows * DIGITS)


def _by_merging(
    rows: int, length: int, dtype: str, source: int, order: int, workspace: int
) -> tuple[tuple[Launch, ...], tuple[int, ...]]:
    """Tiles that are sorted in shared memory, and passes that merge pairs of sorted runs."""
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
    "gpu.device_radix.count_digits": ("* int32", 4, "int32 int64 float32 float64"),
    "gpu.device_radix.sum_counts": ("int32 int32", 1, "int32"),
    "gpu.device_radix.move_on": ("* int32 int32 int32 * int32 int16", 6, "int32 int64 float32 float64"),
    "gpu.device_radix.move_last": ("* int32 int32 int32 int64 int16", 6, "int32 int64 float32 float64"),
    "gpu.device_sort.sort_tiles": ("* int64 *", 5, "int32 int64 float32 float64"),
    "gpu.device_sort.merge_runs": ("* int64 * int64", 4, "int32 int64 float32 float64"),
}
"""The functions in kernels/ that are launched here, as python_kernels.py has them."""
RECIPES: dict[str, Callable[[Special], Recipe]] = {
    "argsort": argsort_recipe,
}
"""By the name of the primitive."""
