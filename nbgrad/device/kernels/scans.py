"""Recipes of what runs along rows: recurrences, sums, running maxima and minima.

In: a `Special` whose node is a "recurrence" or an "accumulate". Out: its recipe. Called by recipes.py. Kernels:
kernels/gpu/device_scan.py and kernels/gpu/device_recurrence.py.
"""

from __future__ import annotations

from collections.abc import Callable

from ...compiler.fuse import Special
from ...graph.ir import Node, literal_value
from .launches import Launch, Recipe
from .python_kernels import KernelTable
from .python_launches import THREADS, launch, whole_warps, wide_dtype

ITEMS = 8
"""Elements for each thread, as in kernels/gpu/device_scan.py."""
TILE = THREADS * ITEMS
MOST_WARPS = 32
"""Of a block, as in kernels/gpu/device_scan.py."""
SHORT = 16
"""Rows up to this length have one thread each."""


def accumulate_recipe(kernel: Special) -> Recipe:
    """Running maxima or minima."""
    return _scan(kernel.node, kernel.node.params[0], source=0, out=1, reverse=False)


def recurrence_recipe(kernel: Special) -> Recipe:
    """s[i] = a[i] * s[i-1] + b[i]; sums of rows if a is 1 everywhere."""
    node = kernel.node
    if is_ones(node.inputs[0]):
        return _scan(node, "sum", source=1, out=2, reverse=node.params[0])
    return _recurrence(node)


def is_ones(node: Node) -> bool:
    """Whether a node is the literal 1 in some shape, or an array that is filled with it."""
    while node.name in ("alias", "broadcast", "reshape"):
        node = node.inputs[0]
    return node.name == "literal" and bool(literal_value(node) == 1)


def _shape(node: Node) -> tuple[int, int, int, int]:
    """(rows, their length, threads of a block, tiles of a row)."""
    length = node.shape[-1]
    threads = whole_warps(-(-length // ITEMS))
    return node.size // length, length, threads, -(-length // (threads * ITEMS))


def _slots(count: int) -> int:
    """Elements of shared memory that a tile takes; kernels/gpu/device_scan.py says where each lies."""
    return count + count // 32 + 1


def _carrying(count: int) -> int:
    """Threads of the block that has a row's tiles."""
    return whole_warps(count, 32 * MOST_WARPS)


def _scan(node: Node, kind: str, source: int, out: int, reverse: bool) -> Recipe:
    dtype, wide = node.dtype.name, wide_dtype(node.dtype.name)
    rows, length, threads, count = _shape(node)
    back = int(reverse)
    place = f"gpu.device_scan.{kind}"
    if length <= SHORT:
        operands = [(source, dtype), (out, dtype), (out, wide)]
        numbers = [rows, length, back]
        return Recipe((launch(f"{place}_rows", operands, numbers, -(-rows // 128), 128, 128 * 8, readonly=1),))
    shared = 8 * (_slots(threads * ITEMS) + threads // 32)
    numbers = [rows, length, count, back]
    actions: list[Launch] = []
    carries = out
    if count > 1:
        carries = out + 1
        totals = [(source, dtype), (carries, wide)]
        actions.append(launch(f"{place}_totals", totals, numbers, rows * count, threads, shared, readonly=1))
        shared_carries = 8 * (MOST_WARPS + 1)
        actions.append(
            launch(f"{place}_carries", [(carries, wide)], [rows, count], rows, _carrying(count), shared_carries)
        )
    operands = [(source, dtype), (carries, wide), (out, dtype)]
    actions.append(launch(f"{place}_tiles", operands, numbers, rows * count, threads, shared, readonly=1))
    return Recipe(tuple(actions), (8 * rows * count,) if count > 1 else ())


def _recurrence(node: Node) -> Recipe:
    dtype, wide = node.dtype.name, wide_dtype(node.dtype.name)
    rows, length, threads, count = _shape(node)
    back, scaled = int(node.params[0]), int(node.dtype.kind == "f")
    place = "gpu.device_recurrence.recurrence"
    sources, out = [(0, dtype), (1, dtype)], 2
    if length <= SHORT:
        operands = [*sources, (out, dtype), (out, wide)]
        numbers = [rows, length, back]
        return Recipe((launch(f"{place}_rows", operands, numbers, -(-rows // 128), 128, 128 * 16, readonly=2),))
    shared = 16 * _slots(threads * ITEMS) + 32 + 512 + 256
    numbers = [rows, length, count, back, scaled]
    actions: list[Launch] = []
    first, second, third = (out, out, out) if count == 1 else (out + 1, out + 2, out + 3)
    if count > 1:
        parts = [(first, wide), (second, wide), (third, "int64")]
        operands = [*sources, *parts]
        actions.append(launch(f"{place}_totals", operands, numbers, rows * count, threads, shared, readonly=2))
        shared_carries = 32 + 24 * MOST_WARPS + 8
        actions.append(launch(f"{place}_carries", parts, [rows, count, scaled], rows, _carrying(count), shared_carries))
    operands = [*sources, (second, wide), (out, dtype), (third, "int64")]
    actions.append(launch(f"{place}_tiles", operands, numbers, rows * count, threads, shared, readonly=2))
    return Recipe(tuple(actions), (8 * rows * count,) * 3 if count > 1 else ())


KERNELS: KernelTable = {
    "gpu.device_scan.sum_rows": ("* * *", 3, "int64 float32 float64"),
    "gpu.device_scan.sum_totals": ("* *", 4, "int64 float32 float64"),
    "gpu.device_scan.sum_carries": ("*", 2, "int64 float32 float64"),
    "gpu.device_scan.sum_tiles": ("* * *", 4, "int64 float32 float64"),
    "gpu.device_scan.maximum_rows": ("* * *", 3, "int64 float32 float64"),
    "gpu.device_scan.maximum_totals": ("* *", 4, "int64 float32 float64"),
    "gpu.device_scan.maximum_carries": ("*", 2, "int64 float32 float64"),
    "gpu.device_scan.maximum_tiles": ("* * *", 4, "int64 float32 float64"),
    "gpu.device_scan.minimum_rows": ("* * *", 3, "int64 float32 float64"),
    "gpu.device_scan.minimum_totals": ("* *", 4, "int64 float32 float64"),
    "gpu.device_scan.minimum_carries": ("*", 2, "int64 float32 float64"),
    "gpu.device_scan.minimum_tiles": ("* * *", 4, "int64 float32 float64"),
    "gpu.device_recurrence.recurrence_rows": ("* * * *", 3, "int64 float32 float64"),
    "gpu.device_recurrence.recurrence_totals": ("* * * * int64", 5, "int64 float32 float64"),
    "gpu.device_recurrence.recurrence_carries": ("* * int64", 3, "int64 float32 float64"),
    "gpu.device_recurrence.recurrence_tiles": ("* * * * int64", 5, "int64 float32 float64"),
}
"""The functions in kernels/ that are launched here, as python_kernels.py has them."""
RECIPES: dict[str, Callable[[Special], Recipe]] = {
    "recurrence": recurrence_recipe,
    "accumulate": accumulate_recipe,
}
"""By the name of the primitive."""
