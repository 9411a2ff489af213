"""Zeros by construction that go from turn to turn: masks of what a differentiated loop carries.

In: the cotangents or tangents that a loop carries, and how those of the next turn follow from them. Out: the same, with
a boolean for each element that may be zero whatever the values are, to be carried beside. Called by
loop_derivatives.py. A value that nothing reads in the last turn has the cotangent zero there; a slope that is infinite
at that point must not be multiplied by it. What nobody asks for is left out when the loop is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..ir import BOOL, Node, filled, placeholder
from ..masks import Masks, everywhere

Derive = Callable[[Masks], "Sequence[Node | None]"]
"""From the masks of what is carried to what is carried on, and further results."""


@dataclass
class Masked:
    """The results of a turn, and the masks that are carried and scanned: (stand-in, at the start, after the turn)."""

    results: Sequence[Node | None]
    inner: Masks
    carried: dict[int, tuple[Node, Node, Node]] = field(default_factory=dict)
    """By the number of the cotangent or tangent."""
    scanned: list[tuple[Node, Node]] = field(default_factory=list)

    def of(self, node: Node) -> Node | None:
        """The mask of a result."""
        return self.inner.of(node) if self.inner.possible(node) else None


def with_masks(
    carried: Sequence[tuple[Node, Node | None]],
    scanned: Sequence[tuple[Node, Node]],
    derive: Derive,
    outer: Masks,
) -> Masked:
    """Derive a turn, with masks of all that may be zero by construction in some turn.

    Parameters
    ----------
    carried : sequence of (stand-in, what it is at the start; None for zero)
    scanned : sequence of (stand-in, array of every turn)
    derive : callable
        Its first results are what is carried on.
    outer : Masks
        Those of the nodes outside.
    """
    parts = {inside: placeholder(inside.shape, BOOL) for inside, whole in scanned if outer.possible(whole)}
    masked = {k for k, (_, start) in enumerate(carried) if start is None or outer.possible(start)}
    stand_ins: dict[int, Node] = {}
    while True:
        inner = Masks()
        for k in masked:
            stand_ins.setdefault(k, placeholder(carried[k][0].shape, BOOL))
            inner.put(carried[k][0], lambda mask=stand_ins[k]: mask)
        for inside, part in parts.items():
            inner.put(inside, lambda mask=part: mask)
        found = Masked(derive(inner), inner)
        more = {k for k in range(len(carried)) if k not in masked and _is_masked(found, k)}
        if not more:
            break
        masked |= more
    for k in sorted(masked):
        inside, start = carried[k]
        after = found.results[k]
        first = _nowhere(inside) if start is None else (outer.of(start) or everywhere(inside))
        following = _nowhere(inside) if after is None else (found.of(after) or everywhere(inside))
        found.carried[k] = (stand_ins[k], first, following)
    found.scanned = [
        (parts[inside], outer.of(whole) or everywhere(whole)) for inside, whole in scanned if inside in parts
    ]
    return found


def _is_masked(found: Masked, k: int) -> bool:
    after = found.results[k]
    return after is None or found.of(after) is not None


def _nowhere(like: Node) -> Node:
    """The mask of a node that is zero everywhere."""
    return filled(False, BOOL, like.shape)
