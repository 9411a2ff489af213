"""PyTorch's `torch.utils.checkpoint`: blocks whose values are computed again in the backward pass.

In: a function and its arguments. Out: the function's result. Called by users, as `torch_names.utils.checkpoint`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...transforms.recomputed import checkpoint as recomputing

__all__ = ["checkpoint"]


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: Any = None, **kwargs: Any) -> Any:
    """A function's result, whose values inside are computed again in the backward pass instead of being kept."""
    del use_reentrant
    return recomputing(function)(*args, **kwargs)
