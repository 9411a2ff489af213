"""Marks of Cells for MindSpore's compiler and for training on many devices: kept, and without effect.

In: names and values. Out: the Cell itself, so that calls can follow each other. Called by cell.py, whose class takes
its methods from here, and by users of MindSpore's model collections (`network.add_flags(defer_inline=True)`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class MarkedCell:
    """The marks of a Cell."""

    _flags: tuple[str, ...] = ()
    apply: Callable[..., Any]

    def add_flags(self, **flags: Any) -> Any:
        """Set attributes that MindSpore's compiler would read; returns the Cell.

        Examples
        --------
        >>> import nbgrad as nb
        >>> net = nb.nn.ReLU().add_flags(defer_inline=True)
        >>> net.get_flags(), net.defer_inline
        ({'defer_inline': True}, True)
        """
        for name, value in flags.items():
            setattr(self, name, value)
        self._flags = (*self._flags, *[name for name in flags if name not in self._flags])
        return self

    def add_flags_recursive(self, **flags: Any) -> Any:
        """Set attributes of the whole tree that MindSpore's compiler would read; returns the Cell."""
        return self.apply(lambda cell: cell.add_flags(**flags))

    def get_flags(self) -> dict[str, Any]:
        """The attributes that `add_flags` has set."""
        return {name: getattr(self, name) for name in self._flags}

    def set_comm_fusion(self, fusion_type: int, recurse: bool = True) -> Any:
        """Say how gradients of processes would be sent together; returns the Cell.

        Parameters
        ----------
        fusion_type : int
        recurse : bool
            Whether the sub-cells are meant, too.
        """
        return self

    def set_broadcast_flag(self, mode: bool = True) -> Any:
        """Say whether the gradients of processes would be broadcast; returns the Cell."""
        return self

    def set_inputs(self, *inputs: Any, **kwargs: Any) -> None:
        """Say which shapes inputs may have; they may have any."""
