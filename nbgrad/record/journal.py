"""Writes to Tensors in a block of code that may not count: they are noted, and undone at its end.

In: a block that a recording runs. Out: the Tensors that it has written to and that were there before, with the values
that they had at its end. Called where something is recorded that only some calls, or every turn of a loop, will do: the
sides of branches, turns, operands that may not be needed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from ..graph.ir import Node, next_serial
from ..graph.trace import current_trace
from .shared_memory import is_view, shares_data, written
from .tensor import Tensor


class Journal:
    """The writes of a block; complete when the block is left."""

    def __init__(self) -> None:
        self._began = next_serial()
        self._written: list[tuple[weakref.ref[Tensor], Node]] = []
        self.shares_data = False
        """Whether one of the Tensors shares its data with a plain array."""

    def hold(self, tensor: Tensor, node: Node) -> None:
        """Let a Tensor that owns its memory hold a value in the block, without a write."""
        trace = current_trace()
        assert trace is not None and trace.journal is not None
        trace.journal.setdefault(id(tensor), (tensor, tensor._node, type(tensor)))
        tensor._node = node
        written(tensor)

    def arrays(self) -> list[tuple[Tensor, Node]]:
        """The Tensors that own their memory, were there before the block and are still, with their values at its end.

        A Tensor that the block has made as a copy of another one counts, too, for as long as it is in use.
        """
        alive = [(reference(), after) for reference, after in self._written]
        return [(tensor, after) for tensor, after in alive if tensor is not None and not is_view(tensor)]


@contextmanager
def undone_writes() -> Iterator[Journal]:
    """A block in a recording whose writes to Tensors are noted, and undone at its end."""
    trace = current_trace()
    assert trace is not None
    before, trace.journal = trace.journal, {}
    found = Journal()
    try:
        yield found
    finally:
        for one in trace.undo_journal():
            found.shares_data |= shares_data(one.kind)
            if one.before.serial < found._began:
                found._written.append((weakref.ref(one.tensor), one.after))
        trace.journal = before
