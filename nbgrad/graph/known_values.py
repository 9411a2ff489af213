"""Values that were computed once and are kept, so that each question costs the nodes recorded since the last one.

In: a node whose value Python asks for. Out: a `Piece`, the nodes that must be computed for it, and `held()`, those of
them that something recorded later can still read; their values go into the `KnownValues` of the recording. Called by
evaluate.py.

Nodes never change, so a value stays right. A node that only nodes of its piece refer to can be read by nothing that is
recorded later, so its value is not kept: the kept values are those that the function itself would hold if it ran on
arrays. References are counted as CPython counts them. A wrong count would cost time or memory, never a wrong value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from sys import getrefcount
from typing import Any

from .ir import LEFT_OUT, RECORDED, Node, constant, with_inputs
from .primitives import PRIMITIVES

MOST_BYTES = 1 << 28
"""Of all values that one recording keeps, beside those of its last piece; beyond that, the oldest are forgotten."""
FEW_BYTES = 1 << 23
"""From this on, values that nothing can read any more are looked for."""
OVERHEAD = 256
"""The approximate bytes of an array beside its elements."""
BROADCAST, LITERAL, LOOP = (PRIMITIVES[name] for name in "broadcast literal loop".split())
_serial = attrgetter("serial")


def held(nodes: Mapping[Node, int], others: int = 0) -> list[Node]:
    """Those that something refers to beside the mapping, the list of what is recorded, the nodes that read them, and
    some `others`.

    Parameters
    ----------
    nodes : mapping from Node to int
        How often nodes that count for nothing read each.
    others : int
        References to each node that count for nothing either.

    Examples
    --------
    >>> import numpy as np
    >>> x = constant(np.ones(2))
    >>> len(held({x: 0})), len(held({x: 1})), len(held({x * x: 0}))
    (1, 0, 0)
    """
    own = _OWN[0] + others
    recorded = RECORDED.get()
    since = next((node.serial for node in recorded or () if node is not LEFT_OUT), float("inf"))
    return [n for n, readers in nodes.items() if getrefcount(n) > readers + own + (n.serial >= since)]


_OWN = [0]
"""The references that a mapping and `held` itself make, which is not the same in all versions of Python."""
while held({Node(LITERAL, (), (), (), None): 0}):  # type: ignore[arg-type]
    _OWN[0] += 1


class Piece:
    """The nodes that must be computed for one, each after its inputs, when some values are known already.

    `readers` has them, and how often nodes of the piece read each; `known` the same of nodes whose values are known.
    """

    __slots__ = ("known", "readers")

    def __init__(self, node: Node, values: Mapping[Node, Any]) -> None:
        found: set[Node] = set()
        waiting = [node]
        for one in waiting:
            if one.value is None and one not in values and one not in found:
                found.add(one)
                waiting += one.inputs
        readers = self.readers = dict.fromkeys(sorted(found, key=_serial), 0)
        known = self.known = dict[Node, int]()
        for one in readers:
            for source in one.inputs:
                if source in found:
                    readers[source] += 1
                else:
                    known[source] = known.get(source, 0) + 1

    def held(self) -> list[Node]:
        """The nodes that something outside of the piece refers to, other than loops, numbers and repeated numbers."""
        return [
            node
            for node in held(self.readers)
            if node.inputs
            and node.primitive is not LOOP
            and not (node.primitive is BROADCAST and node.inputs[0].primitive is LITERAL)
        ]

    def over_constants(self, nodes: Iterable[Node], values: Mapping[Node, Any]) -> list[Node]:
        """Copies of nodes, in a graph in which nodes with known values are constants."""
        new: dict[Node, Node] = {}
        for node in self.known:
            new[node] = node
            if node.inputs:
                new[node] = leaf = constant(values.get(node, node.value))
                leaf.tensor, leaf.place = node.tensor, node.place
        for node in self.readers:
            new[node] = with_inputs(node, tuple([new[source] for source in node.inputs]))
        return [new[node] for node in nodes]


class KnownValues:
    """The values that a recording keeps, by node.

    `readers` has the same nodes, and how often nodes that were computed read each.
    """

    __slots__ = ("bytes", "enough", "readers", "values")

    def __init__(self) -> None:
        self.values: dict[Node, Any] = {}
        self.readers: dict[Node, int] = {}
        self.bytes = 0
        self.enough = FEW_BYTES

    def keep(self, piece: Piece, nodes: Iterable[Node], values: Iterable[Any]) -> None:
        """Keep values of a piece's nodes."""
        for source, readers in piece.known.items():
            if source in self.readers:
                self.readers[source] += readers
        for node, value in zip(nodes, values, strict=True):
            base = getattr(value, "base", None)
            # A small part would keep the whole in memory.
            self.values[node] = value.copy() if getattr(base, "nbytes", 0) > 2 * value.nbytes else value
            self.readers[node] = piece.readers[node]
            self.bytes += value.nbytes + OVERHEAD
        if self.bytes > self.enough:
            self._forget(piece)

    def forget_unused(self) -> None:
        """Forget values that nothing can read any more."""
        needed = set(held(self.readers, 1))
        for node in list(self.values):
            if node not in needed:
                self._drop(node)

    def _drop(self, node: Node) -> None:
        del self.readers[node]
        self.bytes -= self.values.pop(node).nbytes + OVERHEAD

    def _forget(self, last: Piece) -> None:
        """Forget values that nothing can read any more, and the oldest if the rest is too much."""
        self.forget_unused()
        for node in list(self.values) if self.bytes > MOST_BYTES else ():
            if node not in last.readers:
                self._drop(node)
        self.enough = max(FEW_BYTES, 2 * self.bytes)
