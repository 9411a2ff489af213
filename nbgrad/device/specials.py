"""Recipes of special nodes: those that are no loop nests.

In: a `Special` of compiler/fuse.py. Out: its `Recipe`, whose operands are the sources, then the node, then the
workspaces. Called by the runtime's device program. A library does it where there is a better one than our kernels and
it is installed; a kernel of our own does it otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

from ..compiler.fuse import Special
from .launches import Recipe
from .scans import accumulate_recipe, recurrence_recipe

RECIPES: dict[str, Callable[[Special], Recipe]] = {
    "recurrence": recurrence_recipe,
    "accumulate": accumulate_recipe,
}


def recipe(kernel: Special) -> Recipe:
    """What is done for a special node."""
    if kernel.node.size == 0:
        return Recipe(())
    return RECIPES[kernel.node.name](kernel)
