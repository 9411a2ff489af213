"""Loops as graph: a `loop` node runs one body again and again, and its `item` nodes are what comes out of it.

In: placeholders for the values of one turn, what they are at the start, and the graph of a turn. Out: a `LoopNodes`,
from which the results are taken: a carried value after the last turn, or any value of the body for every turn. Called
by the control functions of users, by rolling, and by loop_derivatives.py.

A `loop` node has the inputs of its `Body` in order: the first values of what is carried from turn to turn, arrays whose
first axis counts the turns, and constants. It is no array: only `item` nodes read it. An item names a node of the body
by its position, so that whatever asks for one more value of each turn (the reverse mode does) changes no other node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from ..complex_numbers import pair, parts
from ..graph_key import structure
from ..ir import Earlier, Node, Params, by_serial, make, placeholder, topological, with_inputs
from ..primitives import PRIMITIVES
from .loop_rows import EVERY, LAST
from .origins import walked

LOOP, ITEM = PRIMITIVES["loop"], PRIMITIVES["item"]


class Body:
    """The graph of one turn.

    Parameters
    ----------
    carried, scanned, constants : sequences of nodes
        Placeholders: of the values that a turn gets from the one before, of its part of each array that is scanned, and
        of what is the same in all turns.
    following : sequence of nodes
        The carried values after the turn.
    results : sequence of nodes
        Further nodes that items may ask for.
    again : bool
        Whether the reverse mode keeps nothing of a turn but what it starts from, and computes all else again.

    Raises
    ------
    AssertionError
        If a node has no place in the body: it is made of something that is none of the inputs.
    """

    def __init__(
        self,
        carried: Sequence[Node],
        scanned: Sequence[Node],
        constants: Sequence[Node],
        following: Sequence[Node],
        results: Sequence[Node] = (),
        again: bool = False,
    ) -> None:
        self.carried, self.scanned, self.constants = tuple(carried), tuple(scanned), tuple(constants)
        self.again = again
        self.following, self.results = tuple(following), tuple(results)
        for before, after in zip(self.carried, self.following, strict=True):
            assert (before.shape, before.dtype) == (after.shape, after.dtype), (before, after)
        roots = [*self.inputs, *self.following, *self.results]
        self.nodes = tuple(by_serial(roots))
        self.position = {node: k for k, node in enumerate(self.nodes)}
        self.custom: list[Node] = []
        """Nodes with a user's rule, which is no part of the identity."""
        key, leaves = structure(roots, self.custom)
        assert set(leaves) == set(self.inputs), "a body is made of its inputs"
        self._key = (len(self.carried), len(self.scanned), again, key)
        self._hash = hash(self._key)
        self.extends: Extension | None = None
        """The body that this one was made of by adding to it: its loops do those of the other too."""
        self.made_from: dict[int, Node | None] = {}
        """Positions in another body, whose transform this one is, and the nodes that stand for them here."""
        self.masks: dict[Node, Node] = {}
        """Of tangents in this body: the masks that say where they may be other than zero."""
        self.unchanged: frozenset[int] = frozenset()
        """Positions in another body, of which this one is a batch, of values that are the same for all."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """All placeholders, in the order of the loop's inputs."""
        return (*self.carried, *self.scanned, *self.constants)

    def is_scanned(self, position: int) -> bool:
        """Whether an input is an array of which each turn gets a part."""
        return len(self.carried) <= position < len(self.carried) + len(self.scanned)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Body) and self._hash == other._hash and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<body of {len(self.nodes)} nodes>"


@dataclass(frozen=True)
class Extension:
    """A body inside a larger one, and the places of its inputs and nodes there."""

    body: Body
    inputs: tuple[int, ...]
    nodes: tuple[int, ...]


@dataclass
class LoopNodes:
    """A `loop` node that was just made, and the nodes of its body that stand for those it was made of.

    A loop has real values only: complex ones are two. `halves` has the parts of complex results.
    """

    node: Node
    inside: Mapping[Node, Node]
    carried: Sequence[Node]
    halves: Mapping[Node, tuple[Node, Node]]

    @property
    def body(self) -> Body:
        """The loop's body."""
        return self.node.params[0]

    def another(self, node: Node) -> LoopNodes:
        """The nodes of another loop over this body."""
        return LoopNodes(node, self.inside, self.carried, self.halves)

    def gives(self, node: Node) -> bool:
        """Whether a value of the body can be had in every turn."""
        return node in self.halves or self.inside.get(node, node) in self.body.position

    def last(self, position: int) -> Node:
        """A carried value after the last turn."""
        first = sum(2 if node.dtype.kind == "c" else 1 for node in self.carried[:position])
        found = item(self.node, (LAST, first))
        return pair(found, item(self.node, (LAST, first + 1))) if self.carried[position].dtype.kind == "c" else found

    def at_end(self) -> list[Node]:
        """All carried values after the last turn."""
        return [self.last(position) for position in range(len(self.carried))]

    def every(self, node: Node) -> Node:
        """A value of the body in every turn, with an axis in front that counts the turns."""
        if node.dtype.kind == "c":
            return pair(*[self.every(half) for half in self.halves[node]])
        return item(self.node, (EVERY, self.body.position[self.inside.get(node, node)]))


def item(loop: Node, which: Params) -> Node:
    """A result of a loop: (LAST, number of a carried value) or (EVERY, position of a node of the body)."""
    return make("item", (loop,), which)


def turns_of(loop: Node) -> int:
    """The number of turns."""
    return loop.params[1]


def is_reversed(loop: Node) -> bool:
    """Whether the first turn is the last along the arrays that are scanned, and along results of every turn."""
    return loop.params[2]


def make_loop(
    turns: int,
    carried: Sequence[tuple[Node, Node, Node]],
    scanned: Sequence[tuple[Node, Node]] = (),
    constants: Sequence[tuple[Node, Node]] = (),
    results: Iterable[Node] = (),
    reverse: bool = False,
    invariant: Mapping[Node, Node] | None = None,
    again: bool = False,
) -> LoopNodes:
    """A loop. What the body is not given is computed before the loop, and becomes a constant.

    Parameters
    ----------
    turns : int
    carried : sequence of (node inside, first value, value after a turn)
        The node inside is a placeholder, or a node of another body that is an input of this one.
    scanned : sequence of (node inside, array whose first axis counts the turns)
    constants : sequence of (node inside, value)
    results : iterable of nodes
        What every turn shall give, apart from what the carried values are made of.
    reverse : bool
        Whether to walk the arrays from their ends.
    invariant : mapping, optional
        Further constants, from nodes inside to values; what is made of them alone is computed before the loop, too.
    again : bool
        As for `Body`.

    Examples
    --------
    The powers of two, by doubling.

    >>> import numpy as np
    >>> from nbgrad.graph.interpret import interpret
    >>> from nbgrad.graph.ir import constant
    >>> one = constant(np.array(1.0))
    >>> x = placeholder((), one.dtype)
    >>> powers = make_loop(5, [(x, one, x + x)])
    >>> interpret([powers.last(0), powers.every(x)])
    [array(32.), array([ 1.,  2.,  4.,  8., 16.])]
    """
    following, wanted = [after for _, _, after in carried], list(results)
    given = [real_parts([inside for inside, *_ in group]) for group in (carried, scanned, constants)]
    outside = [value for group in (carried, scanned, constants) for _, value, *_ in group]
    halves = {node: parts(node) for node in wanted if node.dtype.kind == "c"}
    following, wanted = real_parts(following), [half for node in wanted for half in halves.get(node, (node,))]
    inside, fresh = closed([*following, *wanted], [node for group in given for node in group], invariant or {})
    groups = [[inside.get(node, node) for node in group] for group in (*given, following, wanted)]
    groups[2] += real_parts(list(fresh.values()))
    node = make("loop", tuple(real_parts([*outside, *fresh])), (Body(*groups, again=again), turns, reverse))
    return LoopNodes(node, inside, [first for _, first, _ in carried], halves)


def real_parts(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, with the two parts of complex ones in their place."""
    return [half for node in nodes for half in (parts(node) if node.dtype.kind == "c" else (node,))]


_REPEATING = frozenset(["broadcast", "reshape", "transpose"])


def closed(
    outputs: Sequence[Node], inputs: Sequence[Node], invariant: Mapping[Node, Node]
) -> tuple[dict[Node, Node], dict[Node, Node]]:
    """The nodes of the outputs' graph over the inputs alone: the nodes that stand for those that had to be made anew,
    and the placeholders of values from outside.

    What does not depend on the inputs is computed outside. But numbers, and what repeats them or smaller arrays, are
    made inside, where they take no memory and can be folded.
    """
    depends = set(inputs)
    new = {node: like(node) for node in inputs if node.inputs}
    fresh: dict[Node, Node] = {}
    before = dict(invariant)
    inside: set[Node] = set()

    def inner(node: Node) -> Node:
        if node in depends or node in inside:
            return new.get(node, node)
        outside = before.get(node, node)
        chain = [outside]
        while chain[-1].name in _REPEATING:
            chain.append(chain[-1].inputs[0])
        while chain[-1].size == outside.size and len(chain) > 1:
            chain.pop()
        made = root = chain.pop()
        if root.name not in ("literal", "iota"):
            if root not in fresh:
                fresh[root] = like(root)
            made = fresh[root]
        for move in reversed(chain):
            made = with_inputs(move, (made,))
        return made

    since = min([node.serial for node in (*inputs, *invariant)], default=inf)
    for node in walked(topological(outputs, Earlier(since, depends.copy()))):
        if not depends.isdisjoint(node.inputs):
            depends.add(node)
        else:
            if not before.keys().isdisjoint(node.inputs):
                before[node] = with_inputs(node, tuple([before.get(source, source) for source in node.inputs]))
            if node.name not in ("literal", "iota") and not _is_repeated(node, inside):
                continue
            inside.add(node)
        operands = tuple([inner(source) for source in node.inputs])
        # Nodes of the recording around may change in place, those of a body never.
        if operands != node.inputs or (node in inside and operands):
            new[node] = with_inputs(node, operands)
    for node in outputs:
        if node not in depends:
            new[node] = inner(node)
    return new, fresh


def _is_repeated(node: Node, inside: set[Node]) -> bool:
    """Whether a node repeats a smaller array or a number, or is made of such nodes alone."""
    if node.name == "broadcast" and node.size > node.inputs[0].size:
        return True
    kind = node.primitive.kind
    light = kind == "movement" or (kind == "elementwise" and node.primitive.light)
    return light and bool(node.inputs) and all(n in inside or _is_early_repeat(n) for n in node.inputs)


def _is_early_repeat(node: Node) -> bool:
    """Whether a node is a number, or repeats a smaller array."""
    return node.name == "literal" or (node.name == "broadcast" and node.size > node.inputs[0].size)


def like(node: Node, shape: tuple[int, ...] | None = None) -> Node:
    """A placeholder for a value such as a node's; for a complex one, the pair of two."""
    if node.dtype.kind == "c":
        return pair(*[like(half, shape) for half in parts(node)])
    made = placeholder(node.shape if shape is None else shape, node.dtype, weak=node.weak)
    made.tensor, made.place = node.tensor, node.place
    return made
