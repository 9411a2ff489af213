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
from .scatters import scatter_add_recipe, scatter_last_recipe, scatter_rows_recipe
from .sorts import argsort_recipe
from .window_recipes import fold_recipe, unfold_recipe, window_argmax_recipe

RECIPES: dict[str, Callable[[Special], Recipe]] = {
    "recurrence": recurrence_recipe,
    "accumulate": accumulate_recipe,
    "argsort": argsort_recipe,
    "scatter_add": scatter_add_recipe,
    "scatter_rows": scatter_rows_recipe,
    "scatter_last": scatter_last_recipe,
    "unfold": unfold_recipe,
    "fold": fold_recipe,
    "window_argmax": window_argmax_recipe,
}


def recipe(kernel: Special) -> Recipe:
    """What is done for a special node."""
    if kernel.node.size == 0:
        return Recipe(())
    return RECIPES[kernel.node.name](kernel)
