"""Origins: of each node that a pass makes, the node that it is made for.

In: the nodes that a pass walks through, in their order. Out: the same nodes; while notes are taken (noted.py), nodes
that are made between one of them and the next are noted as made for the first. Called by the passes over graphs, as
`for node in walked(nodes)`; without notes that is a loop over the nodes themselves.

Serial numbers only grow, so that one number for each step of a walk says for which node all later ones are made.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from math import nan
from typing import Any

from ..ir import RECORDED, Node, next_serial

_recorded = RECORDED.get


class Origins:
    """The nodes that others are made for.

    `now` is the serial number of the node that a walk is at, NaN outside of walks; `derivative` tells whether the walk
    makes derivatives.
    """

    def __init__(self) -> None:
        self.now, self.derivative = nan, False
        self._starts, self._of = array("d"), array("d")
        self._derivatives = array("b")
        self._made, self._made_for = array("d"), array("d")
        self._made_derivatives = array("b")
        self._before: dict[float, float] = {}

    def walk(self, nodes: Iterable[Node], derivative: bool) -> Iterator[Node]:
        """The nodes of a pass, each of which is the origin of the nodes that are made before the next one."""
        before = self.now, self.derivative
        try:
            for node in nodes:
                self._turn(node.serial, derivative or before[1])
                yield node
        finally:
            self._turn(*before)

    def _turn(self, serial: float, derivative: bool) -> None:
        self.now, self.derivative = serial, derivative
        recorded = _recorded()
        if recorded is None or type(recorded) is list:
            # Nothing else notes nodes that are made now.
            self._starts.append(next_serial())
            self._of.append(serial)
            self._derivatives.append(derivative)

    def made(self, node: Node) -> None:
        """Note a node that was made now, where nodes are recorded."""
        self._made.append(node.serial)
        self._made_for.append(self.now)
        self._made_derivatives.append(self.derivative)

    def renumber(self, node: Node, serial: float) -> None:
        """Note that a node gets another serial number."""
        self._before[serial] = self._before.get(node.serial, node.serial)

    def first_number(self, serial: float) -> float:
        """The serial number with which a node was made."""
        return self._before.get(serial, serial)

    def origin_of(self, serial: float) -> tuple[float, bool] | None:
        """The serial number of the node that another one is made for, and whether as its derivative; None if a pass
        has not made it."""
        serial = self.first_number(serial)
        at = bisect_left(self._made, serial)
        if at < len(self._made) and self._made[at] == serial:
            return self._made_for[at], bool(self._made_derivatives[at])
        at = bisect_right(self._starts, serial) - 1
        if at < 0 or self._of[at] != self._of[at]:
            return None
        return self._of[at], bool(self._derivatives[at])


_open: ContextVar[Any] = ContextVar("nbgrad_notes", default=None)
"""The notes that are taken now."""
take_notes, leave_notes, current = _open.set, _open.reset, _open.get


def walked(nodes: Iterable[Node], derivative: bool = False) -> Iterable[Node]:
    """The nodes that a pass walks through; each is the origin of the nodes that are made while the pass is at it.

    Parameters
    ----------
    nodes : iterable of nodes
    derivative : bool
        Whether derivatives are made.
    """
    notes = current()
    return nodes if notes is None else notes.walk(nodes, derivative)
