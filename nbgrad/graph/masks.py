"""Masks: where cotangents and tangents are zero by construction.

In: nodes of cotangents (in forward mode, of tangents), and how each was made of others. Out: for a node, a boolean node
that is false where it is zero whatever the values are, or None. Called by differentiate.py, which multiplies masked
elements by no slope that may be infinite: 0 * inf would be NaN.

Two kinds of nodes have masks: `select(condition, g, 0)`, whose mask is the condition; and padded or scattered nodes,
for which a rule is kept and the mask is made only if such a slope asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from .builders import reshape
from .ir import BOOL, PRIMITIVES, Node, elementwise, filled, literal_value, zeros

BROADCAST, LITERAL, SELECT = PRIMITIVES["broadcast"], PRIMITIVES["literal"], PRIMITIVES["select"]
AND, NOT, OR = PRIMITIVES["logical_and"], PRIMITIVES["logical_not"], PRIMITIVES["logical_or"]
REPEATED = frozenset(PRIMITIVES[name] for name in "broadcast reshape transpose".split())
"""Primitives that repeat or move all elements of their operand."""
Mask = Node | None
"""None: nothing is known to be zero."""


def _is_zero_branch(node: Node) -> bool:
    """Whether a node is a literal zero, possibly broadcast."""
    while node.primitive is BROADCAST:
        node = node.inputs[0]
    return node.primitive is LITERAL and literal_value(node) == 0


def masked(node: Node) -> bool:
    """Whether a node is `select(condition, g, 0)`."""
    return node.primitive is SELECT and _is_zero_branch(node.inputs[2])


def everywhere(like: Node) -> Node:
    """The mask of a node that is zero nowhere."""
    return filled(True, BOOL, like.shape)


def for_all(mask: Node, depth: int = 4) -> Mask:
    """A truth value without which all elements of a mask are false, as of a branch that was not taken; or None."""
    negated = mask.primitive is NOT
    one = mask.inputs[0] if negated else mask
    while one.size > 1 and one.primitive in REPEATED:
        one = one.inputs[0]
    if one.size == 1:
        return reshape(elementwise("logical_not", one) if negated else one, ())
    both = mask.primitive is AND
    if not depth or not (both or mask.primitive is OR or mask.primitive.kind == "movement"):
        return None
    found = list(dict.fromkeys([for_all(one, depth - 1) for one in mask.inputs]))
    known = [one for one in found if one is not None]
    if not known or (len(known) < len(found) and not both):
        return None
    return reduce(lambda one, other: elementwise("logical_and" if both else "logical_or", one, other), known)


class Masks:
    """The masks of one derivative: rules for nodes that have one, and which were made."""

    __slots__ = ("made", "rules")

    def __init__(self) -> None:
        self.rules: dict[Node, tuple[Callable[..., Mask], tuple[Node, ...]]] = {}
        self.made: dict[Node, Mask] = {}

    def put(self, node: Node, rule: Callable[..., Mask], *sources: Node) -> None:
        """Note how to make a node's mask: by `rule`, of the masks of `sources`."""
        if node.dtype.kind == "f" and node not in sources:
            self.rules.setdefault(node, (rule, sources))

    def share(self, node: Node, source: Node) -> None:
        """A node has the mask of another, together with its own if it has one."""
        if masked(node):
            condition = node.inputs[0]
            self.put(node, lambda mask: intersection(condition, mask), source)
        else:
            self.rules.setdefault(node, self.rules[source])

    def possible(self, node: Node) -> bool:
        """Whether a node may have a mask."""
        return node in self.rules or masked(node)

    def of(self, node: Node) -> Mask:
        """The mask of a node, made now; no recursion, because rules may be as many as a loop has turns."""
        stack = [node]
        while stack:
            current = stack[-1]
            rule, sources = self.rules.get(current, (None, ()))
            missing = [source for source in sources if source not in self.made]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if rule is not None:
                self.made[current] = rule(*[self.made[source] for source in sources])
            else:
                self.made[current] = current.inputs[0] if masked(current) else None
        return self.made[node]

    def applied(self, node: Node) -> Node:
        """The node as a `select` by its mask, if a rule gives it one."""
        mask = self.of(node) if node in self.rules else None
        if mask is None:
            return node
        inner = node.inputs[1] if masked(node) else node
        return elementwise("select", mask, inner, zeros(node.shape, node.dtype))


def union(first: Mask, second: Mask) -> Mask:
    """The mask of a sum."""
    if first is None or second is None:
        return None
    return first if first is second else elementwise("logical_or", first, second)


def intersection(first: Node, second: Mask) -> Node:
    """The mask of elements that both masks keep."""
    return first if second is None or first is second else elementwise("logical_and", first, second)
