"""Rules of functions with several outputs: one call gets the cotangents of all.

In: `custom` nodes, one for each output of a call, and their cotangents as a walk over the graph comes to them. Out: the
cotangents of what the call was given, when the walk has come to the last of its nodes. Called by differentiate.py; the
rules are those of custom_vjp, of PyTorch's Function and of TensorFlow's custom_gradient. A rule may do anything with
its cotangents, clip them by their common norm for instance: a call for each, with zeros for the others, would do
something else.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from ..ir import Node
from ..primitives import PRIMITIVES

CUSTOM = PRIMITIVES["custom"]


class Place(NamedTuple):
    """The place of a node: what all outputs of one call have in common, and the number of this one."""

    call: Hashable
    output: int


class SharedRule:
    """A rule that is asked for the cotangents of all outputs of a call at once. Its nodes have the parameters (rule,
    number of the output), and the same inputs but for the first, their own value."""

    def place(self, node: Node) -> Place:
        """The place of one of its nodes."""
        return Place((id(self), node.inputs[1:]), node.params[1])

    def cotangents_together(self, given: Mapping[int, Node], node: Node) -> list[Node | None]:
        """The cotangents of the inputs of a node but the first, given those of outputs by their numbers."""
        raise NotImplementedError

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The cotangents of the inputs, given that of one output."""
        return self.cotangents_together({node.params[1]: g}, node)


class Calls:
    """The cotangents that wait until all of a call have come."""

    def __init__(self, order: Iterable[Node], add: Callable[[Node, Node], Node]) -> None:
        self._add = add
        self._last: dict[Hashable, Node] = {}
        """The node of each call that a walk against the order comes to last."""
        self._given: dict[Hashable, dict[int, Node]] = {}
        for node in order:
            place = place_of(node)
            if place is not None:
                self._last.setdefault(place.call, node)

    def cotangents(self, node: Node, place: Place, g: Node | None) -> list[Node | None] | None:
        """The cotangents of the inputs of a node but the first; None if they have gone with another output's, or will
        go."""
        given = self._given.setdefault(place.call, {})
        if g is not None:
            given[place.output] = self._add(given[place.output], g) if place.output in given else g
        if self._last[place.call] is not node or not given:
            return None
        rule: Any = node.params[0]
        return rule.cotangents_together(given, node)


def place_of(node: Node) -> Place | None:
    """The place of a node whose rule is shared; None for any other node."""
    if node.primitive is not CUSTOM:
        return None
    place = getattr(node.params[0], "place", None)
    return None if place is None else place(node)
