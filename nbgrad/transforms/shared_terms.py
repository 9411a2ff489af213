"""Equal terms of a recording as one, before it is differentiated.

In: the outputs of a recording, and the nodes that they are differentiated by. Out: outputs of the same value, in which
equal terms are one node. Called by `grad`, `vjp` and `jacrev`.

A function that calls itself records the same terms many times: the minors of a determinant by cofactors, the bases of
lower degree of a B-spline. Compiling makes one node of equal ones, but the cotangents of such terms differ, so their
derivatives would stay as many as were recorded. Differentiated once for each term, a gradient costs a small multiple of
the compiled value again. Slices of joined arrays are looked through: parts of matrices that were put together in
different ways are equal then. No other rule of simplification is applied, because derivatives are those of the
primitives that the user has called (design/0107). Only terms that were recorded since the nodes that are differentiated
by are looked at: no other has a cotangent, and a gradient in each turn of a loop would look at all turns before it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..graph.ir import PRIMITIVES, Earlier, Node, topological
from ..graph.loops.origins import walked
from ..graph.simplify import RULES, Simplifier

FEWEST = 64
"""Nodes of a recording that is worth a look."""
MOST = 4096
"""Nodes that are looked at, from the beginning, to find out whether terms are repeated."""
REPEATED = 0.25
"""The part of these that must be repeated, or be slices of joined arrays, for terms to be shared."""
SHRUNK = 0.75
"""The part of the nodes that may be left."""
MOVEMENTS = {PRIMITIVES[name]: RULES[name] for name in ("reshape", "transpose", "slice")}
SLICE, JOIN = PRIMITIVES["slice"], PRIMITIVES["concatenate"]


class _Numbers(dict[Node, int]):
    """Numbers of nodes; those that stay as they are have one when they are asked for."""

    def __init__(self, kept: Earlier) -> None:
        self.kept = kept

    def __missing__(self, node: Node) -> int:
        self[node] = number = len(self)
        return number

    def __contains__(self, node: object) -> bool:
        return super().__contains__(node) or node in self.kept


class _Sharing(Simplifier):
    """A walk that moves slices towards their sources, and keeps earlier nodes and those that are differentiated by."""

    def __init__(self, kept: Earlier) -> None:
        super().__init__({})
        self.kept = kept
        self.number = _Numbers(kept)

    def run(self, outputs: Sequence[Node]) -> list[Node]:
        new: dict[Node, Node] = {}
        for node in walked(topological(outputs, self.kept)):
            new[node] = self.intern(node, tuple([new.get(source, source) for source in node.inputs]))
        return [new.get(node, node) for node in outputs]

    def rewrite(self, node: Node) -> Node | None:
        rule = MOVEMENTS.get(node.primitive)
        return None if rule is None else rule(node)


def shared(outputs: Sequence[Node], wrt: Collection[Node], tokens: Collection[Node]) -> Sequence[Node]:
    """Outputs of the same value in which equal terms are one node, if many are; else the same outputs.

    Parameters
    ----------
    outputs : sequence of Node
        What is differentiated.
    wrt : collection of Node
        What it is differentiated by. They stay the nodes that they are.
    tokens : collection of Node
        Those of calls that the recording has made. If there are any, all stays as it was recorded, in its order.

    Returns
    -------
    sequence of Node
    """
    if tokens:
        return outputs
    kept = Earlier(min([node.serial for node in wrt], default=0), frozenset(wrt))
    order = topological(outputs, kept)
    first = order[:MOST]
    if len(order) < FEWEST or _repeated(first, kept) < REPEATED * len(first):
        return outputs
    found = _Sharing(kept).run(outputs)
    return found if len(topological(found, kept)) < SHRUNK * len(order) else outputs


def _repeated(order: Sequence[Node], kept: Earlier) -> int:
    """How many nodes have an equal one before them, or are slices of joined arrays."""
    first: dict[Any, int] = {}
    number: dict[Node, int] = _Numbers(kept)
    count = 0
    for position, node in enumerate(order):
        inputs = node.inputs
        if not inputs and not node.params:
            number[node] = -1 - position
            continue
        key = (node.primitive, node.params, node.dtype.num, *[number[source] for source in inputs])
        number[node] = known = first.setdefault(key, -1 - position)
        if inputs and (known != -1 - position or (node.primitive is SLICE and inputs[0].primitive is JOIN)):
            count += 1
    return count
