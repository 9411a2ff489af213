"""PyTorch's `torch.utils`: data, and blocks whose values are computed again in the backward pass.

In: nothing. Out: modules. Called by users, as `torch_names.utils`.
"""

from __future__ import annotations

from . import data_loading as data
from . import recomputed_blocks as checkpoint

__all__ = ["checkpoint", "data"]
