"""Recipes of sorting: the positions that bring the last axis into order, and the elements in order.

In: a `Special` whose node is an "argsort" or a "sort", or what `sorting` is told. Out: its recipe, or launches. Called
by recipes.py and scatters.py; device_turns.py asks for `by_digits`. Kernels: kernels/gpu/device_radix.py for long
rows, kernels/gpu/device_sort.py for others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...compiler.fuse import Special
from .launches import Launch, Recipe
from .python_kernels import KernelTable
from .python_launches import THREADS, launch, power_of_two, whole_warps

Operand = tuple[int, str]
"""The number of an operand, and the dtype of what it points to."""
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
    if by_digits(length, dtype, bits):
        return _by_digits(rows, length, dtype, source, order, workspace, _passes(dtype, bits))
    return _by_merging(rows, length, dtype, source, order, workspace)


def _passes(dtype: str, bits: int | None) -> int:
    """The digits of elements."""
    return max(1, -(-(8 * np.dtype(dtype).itemsize if bits is None else bits) // 8))


def by_digits(length: int, dtype: str, bits: int | None = None) -> bool:
    """Whether rows of a length are sorted by their digits."""
    return LONG * _passes(dtype, bits) <= length < LONGEST


class _Parts:
    """The division of rows of a length into parts, each of which a block brings into the order of a digit."""

    def __init__(self, rows: int, length: int, dtype: str) -> None:
        tiles = -(-length // RADIX_TILE)
        each = -(-tiles // max(1, min(tiles, MOST_PARTS // rows)))
        self.rows, self.length = rows, length
        self.count = -(-tiles // each)
        self.size = each * RADIX_TILE
        self.tile_bytes = RADIX_TILE * np.dtype(dtype).itemsize
        self.workspaces = (4 * rows * DIGITS * self.count, 4 * rows * DIGITS)
        """Bytes of the counts and the totals."""

    def counting(self, x: Operand, counts: Operand, totals: Operand, shift: int) -> list[Launch]:
        """The launches before elements are moved by the digit from bit `shift` on."""
        warps = DIGITS // 32
        numbers = [self.length, self.count, self.size, shift]
        blocks, shared = self.rows * self.count, 4 * DIGITS * warps
        threads = whole_warps(self.count)
        return [
            launch("gpu.device_radix.count_digits", [x, counts], numbers, blocks, DIGITS, shared, readonly=1),
            launch(
                "gpu.device_radix.sum_counts", [counts, totals], [self.count], self.rows * DIGITS, threads, 4 * warps
            ),
        ]

    def moving(self, name: str, operands: Sequence[Operand], shift: int, more: Sequence[int], readonly: int) -> Launch:
        """The launch that moves elements; `more` integers follow."""
        numbers = [self.length, self.count, self.size, shift, self.tile_bytes, *more]
        each = 2 if name == "move_values" else 6
        shared = self.tile_bytes + each * RADIX_TILE + 4 * DIGITS * (DIGITS // 32 + 1) + DIGITS // 8
        blocks = self.rows * self.count
        return launch(f"gpu.device_radix.{name}", operands, numbers, blocks, DIGITS, shared, readonly)


def _by_digits(
    rows: int, length: int, dtype: str, source: int, order: int, workspace: int, passes: int
) -> tuple[tuple[Launch, ...], tuple[int, ...]]:
    """Passes over digits of eight bits, the lowest first."""
    parts = _Parts(rows, length, dtype)
    keys = [(workspace, dtype), (workspace + 1, dtype)]
    counts, totals, short = (workspace + 3, "int32"), (workspace + 4, "int32"), (workspace + 3, "int16")
    # The result holds positions, too, but not those that the last pass reads.
    places = [(workspace + 2, "int32"), (order, "int32")][:: 1 if passes % 2 == 0 else -1]
    actions: list[Launch] = []
    now, positions = (source, dtype), counts
    for number in range(passes):
        actions += parts.counting(now, counts, totals, 8 * number)
        operands, first = [now, positions, counts, totals], [int(number == 0)]
        if number < passes - 1:
            now, positions = keys[number % 2], places[number % 2]
            actions.append(parts.moving("move_on", [*operands, now, positions, short], 8 * number, first, readonly=4))
        else:
            last = [*operands, (order, "int64"), short]
            actions.append(parts.moving("move_last", last, 8 * number, first, readonly=4))
    itemsize, size = np.dtype(dtype).itemsize, rows * length
    one, other = [itemsize * size if passes > least else itemsize for least in (1, 2)]
    return tuple(actions), (one, other, 4 * size, *parts.workspaces)


def sort_recipe(kernel: Special) -> Recipe:
    """Elements in the order of `argsort`, of rows that are sorted by digits."""
    node = kernel.node
    length, dtype = node.shape[-1], node.dtype.name
    passes = _passes(dtype, None)
    parts = _Parts(node.size // length, length, dtype)
    counts, totals, short = (3, "int32"), (4, "int32"), (3, "int16")
    # The last pass writes the result.
    targets = [(1, dtype), (2, dtype)]
    actions: list[Launch] = []
    now = (0, dtype)
    for number in range(passes):
        actions += parts.counting(now, counts, totals, 8 * number)
        after = targets[(passes - 1 - number) % 2]
        operands = [now, counts, totals, after, short]
        actions.append(parts.moving("move_values", operands, 8 * number, [], readonly=3))
        now = after
    return Recipe(tuple(actions), (node.dtype.itemsize * (node.size if passes > 1 else 1), *parts.workspaces))


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
    "gpu.device_radix.move_values": ("* int32 int32 * int16", 5, "int32 int64 float32 float64"),
    "gpu.device_sort.sort_tiles": ("* int64 *", 5, "int32 int64 float32 float64"),
    "gpu.device_sort.merge_runs": ("* int64 * int64", 4, "int32 int64 float32 float64"),
}
"""The functions in kernels/ that are launched here, as python_kernels.py has them."""
RECIPES: dict[str, Callable[[Special], Recipe]] = {
    "argsort": argsort_recipe,
    "sort": sort_recipe,
}
"""By the name of the primitive."""
