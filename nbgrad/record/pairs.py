"""Values and their positions, as functions of order give them.

In: two Tensors. Out: a pair with PyTorch's names of its parts, which is printed as any tuple. Called by functions and
methods that sort, choose or rank.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class ValuesAndIndices(NamedTuple):
    """Values and where they were."""

    values: Any
    indices: Any

    def __repr__(self) -> str:
        return tuple.__repr__(self)
