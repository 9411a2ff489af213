"""Recipes of special nodes: those that are no loop nests.

In: a `Special` of compiler/fuse.py, and the device. Out: its `Recipe`, whose operands are the arrays that it reads, the
node, and the workspaces. Called by the runtime's device plan. An installed library computes the nodes for which it is
better than our kernels; a kernel of our own computes the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..compiler.fuse import Special
from ..compiler.loops import Loop
from ..errors import DeviceError, LibraryError
from ..graph.ir import Node
from .kernels import matrix_recipes, scans, scatters, sorts, transposes, window_recipes
from .kernels.launches import Recipe
from .kernels.matrix_recipes import is_small
from .kernels.python_kernels import KernelTable
from .kernels.scans import is_ones
from .libraries import matrix_kernels

if TYPE_CHECKING:
    from .memory.arrays import Device

FAMILIES = (scans, scatters, sorts, window_recipes, matrix_recipes)
RECIPES: dict[str, Callable[[Special], Recipe]] = {
    name: make for family in FAMILIES for name, make in family.RECIPES.items()
}
"""Kernels of our own, by the name of the primitive."""
PYTHON_KERNELS: KernelTable = {
    place: row for family in (*FAMILIES, transposes, matrix_kernels) for place, row in family.KERNELS.items()
}
"""All kernels that are written in Python, which the package comes with."""


def recipe(kernel: Special, device: Device | None = None) -> Recipe:
    """The recipe of a special node; without a device, one of our own kernels.

    Raises
    ------
    DeviceError
        If only a library can do it, and it is not installed.
    """
    if kernel.node.size == 0:
        return Recipe(())
    own = RECIPES.get(kernel.node.name)
    if device is not None and not is_small(kernel):
        from .libraries.library_calls import library_recipe

        try:
            found = library_recipe(kernel, device)
        except LibraryError:
            if own is None:
                raise
            found = None
        if found is not None:
            return found
    if own is None:
        message = f"No kernel for devices does {kernel.node.name!r}; it needs a library, and none was given a device."
        raise DeviceError(message)
    return own(kernel)


def needed(steps: Sequence[Loop | Special], outputs: Sequence[Node]) -> list[Loop | Special]:
    """The steps without those that fill arrays which no recipe reads: the ones that make a recurrence a sum."""
    lean = [_without_ones(step) if isinstance(step, Special) else step for step in steps]
    read = set(outputs)
    kept: list[Loop | Special] = []
    for step in reversed(lean):
        if isinstance(step, Loop) and read.isdisjoint(step.targets):
            continue
        read.update(step.reads)
        kept.append(step)
    return kept[::-1]


def _without_ones(kernel: Special) -> Special:
    if kernel.node.name != "recurrence" or not is_ones(kernel.node.inputs[0]):
        return kernel
    return replace(kernel, reads=kernel.reads[1:] * 2, views=kernel.views[1:] * 2)
