"""Recipes of what writes at computed positions: sums of updates, and the last update of each position.

In: a `Special` whose node is a "scatter_add", "scatter_rows" or "scatter_last". Out: its recipe. Called by recipes.py.
Kernels: kernels/gpu/device_scatter.py.

Sums are made by atomic additions. Those of whole numbers are the same each time; those of floats depend on the order in
which threads run, unless `SETTINGS.deterministic` says otherwise: then the positions are sorted, and each element of
the result looks for its updates.
"""

from __future__ import annotations

from collections.abc import Callable

from ...compiler.fuse import Special
from ...graph.ir import Node
from .launches import Fill, Launch, Recipe
from .python_kernels import KernelTable
from .python_launches import MOST_BLOCKS, THREADS, launch, power_of_two, wide_dtype
from .settings import SETTINGS
from .sorts import sorting

ATOMIC = ("int32", "uint32", "int64", "uint64", "float32", "float64")
"""Dtypes that devices add to in one step; sums of other dtypes are made in int32."""
FEW = 1 << 11
"""Results up to this length are added up in shared memory, if there are many updates."""
LONG = 64
"""With so many updates for each element of the result, a block adds up one element."""


def scatter_add_recipe(kernel: Special) -> Recipe:
    """Zeros with updates added at positions."""
    return _sums(kernel.node, kernel.node.inputs[0].size, 1)


def scatter_rows_recipe(kernel: Special) -> Recipe:
    """Zeros with whole rows added from their starts on."""
    return _sums(kernel.node, *kernel.node.inputs[1].shape)


def _sums(node: Node, rows: int, length: int) -> Recipe:
    if rows * length == 0:
        return Recipe((Fill(2, 0, node.size * node.dtype.itemsize),))
    if SETTINGS.deterministic and node.dtype.kind == "f":
        return _sorted_sums(node, rows, length)
    dtype = node.dtype.name
    direct = dtype in ATOMIC
    target, wide = (2, dtype) if direct else (3, "int32")
    fill = Fill(target, 0, node.size * (node.dtype.itemsize if direct else 4))
    actions = [fill, _atomic_sums(node, rows, length, target, wide)]
    if direct:
        return Recipe(tuple(actions))
    actions.append(
        launch("gpu.device_scatter.narrow", [(3, wide), (2, dtype)], [node.size], _grid(node.size), readonly=1)
    )
    return Recipe(tuple(actions), (node.size * 4,))


def _grid(count: int) -> int:
    return min(-(-count // THREADS), MOST_BLOCKS)


def _atomic_sums(node: Node, rows: int, length: int, target: int, wide: str) -> Launch:
    operands = [(0, "int64"), (1, node.dtype.name), (target, wide)]
    if length > 1:
        shift = min(power_of_two(length), THREADS).bit_length() - 1
        blocks = min(-(-rows // (THREADS >> shift)), MOST_BLOCKS)
        return launch("gpu.device_scatter.add_rows", operands, [rows, length, shift], blocks, readonly=2)
    if node.size <= FEW and rows >= 16 * node.size:
        # Each block adds its sums to the result once: it should have many updates.
        blocks = max(1, min(rows // (16 * max(node.size, THREADS)), 1024))
        numbers = [rows, node.size]
        return launch("gpu.device_scatter.add_shared", operands, numbers, blocks, shared=8 * node.size, readonly=2)
    return launch("gpu.device_scatter.add", operands, [rows], _grid(rows), readonly=2)


def _sorted_sums(node: Node, rows: int, length: int) -> Recipe:
    """Each element of the result adds up its updates in their order."""
    dtype, order = node.dtype.name, 3
    bits = (node.size - 1).bit_length()
    actions, workspaces = sorting(1, rows, "int64", source=0, order=order, workspace=order + 1, bits=bits)
    operands = [(0, "int64"), (1, dtype), (order, "int64"), (2, dtype), (2, wide_dtype(dtype))]
    numbers = [rows, length, node.size]
    if rows * length >= LONG * node.size:
        blocks = min(node.size, MOST_BLOCKS)
        total = launch("gpu.device_scatter.sum_sorted_long", operands, numbers, blocks, shared=8 * THREADS, readonly=3)
    else:
        total = launch(
            "gpu.device_scatter.sum_sorted", operands, numbers, _grid(node.size), shared=8 * THREADS, readonly=3
        )
    return Recipe((*actions, total), (8 * rows, *workspaces))


def scatter_last_recipe(kernel: Special) -> Recipe:
    """For each position the number of the last update, or -1."""
    count, size = kernel.node.inputs[0].size, kernel.node.size
    operands = [(0, "int64"), (1, "int64")]
    return Recipe(
        (Fill(1, 0xFF, 8 * size), launch("gpu.device_scatter.last", operands, [count], _grid(count), readonly=1))
    )


KERNELS: KernelTable = {
    "gpu.device_scatter.add": ("int64 * *", 1, "int32 int64 float32 float64"),
    "gpu.device_scatter.add_shared": ("int64 * *", 2, "int32 int64 float32 float64"),
    "gpu.device_scatter.add_rows": ("int64 * *", 3, "int32 int64 float32 float64"),
    "gpu.device_scatter.sum_sorted": ("int64 * int64 * *", 3, "float32 float64"),
    "gpu.device_scatter.sum_sorted_long": ("int64 * int64 * *", 3, "float32 float64"),
    "gpu.device_scatter.narrow": ("int32 *", 1, "int8 int16"),
    "gpu.device_scatter.last": ("int64 int64", 1, "int64"),
}
"""The functions in kernels/ that are launched here, as python_kernels.py has them."""
RECIPES: dict[str, Callable[[Special], Recipe]] = {
    "scatter_add": scatter_add_recipe,
    "scatter_rows": scatter_rows_recipe,
    "scatter_last": scatter_last_recipe,
}
"""By the name of the primitive."""
