"""Recipes of copies in which another axis becomes the innermost one.

In: a `Loop`. Out: its recipe, or None if it is no such copy. Called by grid_loops.py. Kernel:
kernels/gpu/device_transpose.py.
"""

from __future__ import annotations

from ...compiler.loops import Loop
from .launches import Recipe
from .python_kernels import KernelTable
from .python_launches import THREADS, launch

TILE, PITCH = 32, 33
"""Rows of a tile, and their distance in shared memory; kernels/gpu/device_transpose.py has the same numbers."""
NARROW = 8
"""Axes that are shorter than this are as well copied without tiles."""

KERNELS: KernelTable = {
    "gpu.device_transpose.transpose": ("* *", 11, "int8 int16 int32 int64"),
}
"""The functions in kernels/ that are launched here, as python_kernels.py has them."""


def transpose_recipe(loop: Loop) -> Recipe | None:
    """The recipe of a loop that reads along one axis and writes along another; None if it is no such loop.

    The operands are those of the loop: the array that is read and the one that is written, in the order of its
    accesses.
    """
    if loop.reductions or len(loop.values) != 1 or len(loop.stores) != 1 or loop.values[0].operation != "load":
        return None
    positions = (loop.values[0].access, loop.stores[0].access)
    source, target = [loop.accesses[position] for position in positions]
    if source.dtype != target.dtype or source.buffer < 0 or len(loop.accesses) != 2:
        return None
    views = (source.view, target.view)
    if any(view.is_masked for view in views) or source.dtype.itemsize not in (1, 2, 4, 8):
        return None
    axes = [axis for axis, extent in enumerate(loop.shape) if extent > 1]
    inner = [[axis for axis in axes if view.strides[axis] == 1] for view in views]
    if not all(inner) or inner[0] == inner[1] or len(axes) > 4:
        return None
    read, written = inner[0][-1], inner[1][-1]
    if min(loop.shape[read], loop.shape[written]) < NARROW:
        return None
    others = [axis for axis in axes if axis not in (read, written)]
    extents = [1] * (2 - len(others)) + [loop.shape[axis] for axis in others]
    steps = [[0] * (2 - len(others)) + [view.strides[axis] for axis in others] for view in views]
    tiles = [-(-loop.shape[axis] // TILE) for axis in (read, written)]
    numbers = [loop.shape[read], loop.shape[written], views[0].strides[written], views[1].strides[read], *tiles]
    numbers += [extents[1], steps[0][0], steps[1][0], steps[0][1], steps[1][1]]
    dtype = f"int{8 * source.dtype.itemsize}"
    blocks = tiles[0] * tiles[1] * extents[0] * extents[1]
    shared = TILE * PITCH * source.dtype.itemsize
    operands = [(position, dtype) for position in positions]
    return Recipe((launch("gpu.device_transpose.transpose", operands, numbers, blocks, THREADS, shared, readonly=1),))
