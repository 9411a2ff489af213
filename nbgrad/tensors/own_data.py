"""`Data`: what `x.data` is, the values of a Tensor without how they were made.

In: a Tensor that remembers how it was made, or a Parameter. Out: a Tensor that always has its values; writes to one are
writes to the other, even if that is a differentiable leaf. Used by parameter.py and further_members.py.
"""

from __future__ import annotations

from ..graph.ir import Node
from ..process.modes import within
from ..record.tensor import Tensor
from ..remembered.leaves import detached, remembers


class Data(Tensor):
    """The values of another Tensor, which are read and written through this one."""

    __slots__ = ("_source",)
    _source: Tensor
    _operates_in_place = True

    @staticmethod
    def of(source: Tensor) -> Data:
        """The data of a Tensor."""
        made = object.__new__(Data)
        made._source = source
        return made

    @property
    def _node(self) -> Node:  # pyright: ignore[reportIncompatibleVariableOverride]
        node = self._source._node
        return detached(node) if remembers(node) else node

    @_node.setter
    def _node(self, node: Node) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._take(node)

    def _take(self, node: Node) -> None:
        with within(remembers=False):
            self._source._replace(node)  # pyright: ignore[reportAttributeAccessIssue] - mutation.py
