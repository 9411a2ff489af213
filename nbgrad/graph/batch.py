"""Batching: a graph for one value becomes a graph for many at once.

In: outputs, and for some of the nodes that they depend on a batched version with a leading axis. Out: the outputs with
that leading axis. Called by the Jacobians (jacobians.py), which push a whole basis through one linear graph, and by
`vmap`. A primitive's row may have a rule of its own; nodes that do not depend on a batched one stay as they are.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from .builders import placed, spread, spread_all
from .cotangents.shared_rules import Place, place_of
from .ir import Earlier, Node, make, placeholder, topological
from .loops.loop_body import ITEM, LOOP
from .loops.loop_derivatives import batched_item, batched_loop
from .loops.origins import walked


def batch(outputs: Sequence[Node], batched: Mapping[Node, Node], size: int) -> list[Node]:
    """The outputs for `size` values at once; those that do not depend on a batched node are repeated."""
    return batch_further(outputs, dict(batched), size, min([node.serial for node in batched], default=inf))


def batch_further(
    outputs: Sequence[Node], known: dict[Node, Node | None], size: int, since: float = -inf
) -> list[Node]:
    """The outputs for `size` values at once, given the nodes that are `known` already.

    `known` holds a node's batched version, or None for a node that is the same for all values. All nodes that are
    visited are entered, so that the next call only visits newer ones. Nodes that were made before the serial number
    `since` are the same for all values.
    """
    for node in walked(topological(outputs, Earlier(since, known))):
        operands = [known.get(source) for source in node.inputs]
        if all(operand is None for operand in operands):
            known[node] = None
            continue
        made = _batched(node, operands, size, known, since)
        known[node] = made if made.place is not None or node.place is None else placed(made, node.place)
    return [spread(node, known.get(node), size) for node in outputs]


def _batched(node: Node, operands: list[Node | None], size: int, around: dict[Node, Node | None], since: float) -> Node:
    if node.primitive.batch is not None:
        return node.primitive.batch(node, operands, size)
    if node.primitive is LOOP:
        return batched_loop(node, operands, size, batch_further)
    if node.primitive is ITEM:
        assert operands[0] is not None
        return batched_item(node, operands[0], size)
    params = (BatchedRule(node, size, around, since),) if node.name == "custom" else node.params
    return make(node.name, tuple(spread_all(node, operands, size)), params)


class BatchedRule:
    """A user's reverse rule, applied to every value of a batch.

    What the rule reads from outside, not from its node, is looked up in the batch `around` it, whose nodes are those
    `since` a serial number.
    """

    def __init__(self, node: Node, size: int, around: dict[Node, Node | None], since: float) -> None:
        self.node = node
        self.size = size
        self.around, self.since = around, since
        self.argument_count = getattr(node.params[0], "argument_count", len(node.inputs))
        self.tangent = None if getattr(node.params[0], "tangent", None) is None else self._tangent
        own = place_of(node)
        if own is not None:
            self.place = lambda batched: Place((size, own.call, batched.inputs[1:]), own.output)

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """Trace the rule for one value, then batch the graph that it built."""
        return self._batched({0: g}, node, lambda given, single: self.node.params[0].cotangents(given[0], single))

    def cotangents_together(self, given: Mapping[int, Node], node: Node) -> list[Node | None]:
        """The cotangents of a call with several outputs (shared_rules.py)."""
        return self._batched(given, node, self.node.params[0].cotangents_together)

    def _batched(
        self, given: Mapping[int, Node], node: Node, rule: Callable[[Mapping[int, Node], Node], list[Node | None]]
    ) -> list[Node | None]:
        stand_ins = [placeholder(s.shape, s.dtype) for s in self.node.inputs]
        single = Node(self.node.primitive, tuple(stand_ins), self.node.params, self.node.shape, self.node.dtype)
        singles = {output: placeholder(g.shape[1:], g.dtype) for output, g in given.items()}
        found = rule(singles, single)
        known = dict(zip(stand_ins, node.inputs, strict=True))
        known.update({singles[output]: g for output, g in given.items()})
        results = iter(self._for_all([part for part in found if part is not None], known))
        return [None if part is None else next(results) for part in found]

    def _tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """Trace the rule's own jvp for one value, then batch the graph that it built."""
        stand_ins = [placeholder(s.shape, s.dtype) for s in self.node.inputs]
        single = Node(self.node.primitive, tuple(stand_ins), self.node.params, self.node.shape, self.node.dtype)
        moves = [None if t is None else placeholder(s.shape, s.dtype) for s, t in zip(stand_ins, tangents, strict=True)]
        found = self.node.params[0].tangent(single, moves)
        known = dict(zip(stand_ins, node.inputs, strict=True))
        known.update({one: t for one, t in zip(moves, tangents, strict=True) if one is not None and t is not None})
        return self._for_all([found], known)[0]

    def _for_all(self, found: list[Node], known: Mapping[Node, Node | None]) -> list[Node]:
        """The nodes that the rule built for one value, for all values."""
        everything: Any = ChainMap(dict(known), self.around)
        return batch_further(found, everything, self.size, self.since)
