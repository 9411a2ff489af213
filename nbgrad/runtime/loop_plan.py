"""Loops planned: the body as a plan of its own, and where its arrays are in each turn.

In: a `Special` whose node is a loop. Out: a `TurnPlan`: the plan of the body, the scratch memory that the loop needs,
and the table that turns.py reads. Called by cpu_plan.py, which passes its own function for the body. The
plan of a body does not depend on the number of turns.

What a turn writes goes at once to where it is wanted: into an array of every turn, or into the array of the last value.
Where only the next turn reads it, two buffers are written in turns, so that no turn writes what it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..compiler.fuse import Special
from ..graph.ir import Node
from ..graph.loops.loop_body import Body, is_reversed, turns_of
from ..graph.loops.loop_rows import EVERY, LAST
from . import native, turns
from .front import Front, base_words, front
from .lifetimes import aligned, nbytes

LOOK_AFTER = 1 << 16
"""Elements after which a loop looks whether it is interrupted."""


@dataclass
class Written:
    """A value of the body that each turn writes, and where it goes: numbers of pointers, -1 where there is none."""

    node: Node
    every: int = -1
    before: int = -1
    last: int = -1
    buffers: int = -1


@dataclass
class TurnPlan:
    """A loop's body, planned; `plan` is a `Plan` of cpu_plan.py."""

    kernel: Special
    front: Front
    plan: Any
    written: list[Written]
    carried: list[int]
    """For each carried value, the number of what is written that carries it on."""
    copies: list[tuple[int, int]] = field(default_factory=list)
    """At the end: the number of a pointer, and of what is written whose last value goes there."""
    beginnings: list[tuple[int, int]] = field(default_factory=list)
    """At the beginning: the number of a pointer, and of a carried value whose first goes there."""
    workspace: int = 0
    scratch: int = 0
    arena: int = 0

    @property
    def elements(self) -> int:
        """All turns together, as in `Plan.elements`."""
        return turns_of(self.kernel.node) * self.plan.elements

    @property
    def base_count(self) -> int:
        """The words of the body's bases: arena, inputs and constants, literals, what is written."""
        return 2 + len(self.plan.bases) + len(self.written)

    def table(self, steps: int, kept: list[Any]) -> list[int]:
        """The words that turns.py reads; `steps` is the address of the table of the body's steps."""
        made = self.front
        bases = base_words(len(made.arguments), made.constants, self.plan.literals, len(self.written), kept)
        template = np.array(bases, np.int64)
        kept.append(template)
        first = 2 + len(self.plan.bases)
        body: Body = self.kernel.node.params[0]
        words: list[int] = []
        for position, node in enumerate(body.inputs):
            carries = first + self.carried[position] if position < len(self.carried) else 0
            words += [1 + position, position, nbytes(node) if body.is_scanned(position) else 0, carries]
        for number, one in enumerate(self.written):
            words += [first + number, nbytes(one.node), one.every, one.before, one.last, one.buffers]
        for target, number in self.copies:
            words += [target, first + number, nbytes(self.written[number].node)]
        for target, number in self.beginnings:
            words += [target, number, nbytes(body.carried[number])]
        head = [0] * turns.HEAD
        head[turns.TURNS], head[turns.REVERSE] = turns_of(self.kernel.node), int(is_reversed(self.kernel.node))
        context = native.context()
        head[turns.CONTEXT], head[turns.TABLE] = context.ctypes.data, steps
        head[turns.RUN], head[turns.FAILED] = native.run_address(), context[native.FAILED]
        head[turns.TEMPLATE], head[turns.BASES] = template.ctypes.data, self.base_count
        head[turns.SCRATCH], head[turns.ARENA] = self.scratch, self.arena
        head[turns.INPUTS], head[turns.OUTPUTS] = len(body.inputs), len(self.written)
        head[turns.MOVING] = len(body.carried) + len(body.scanned)
        head[turns.COPIES], head[turns.WORKSPACE] = len(self.copies), len(self.kernel.reads)
        head[turns.MOVE], head[turns.BEGINNINGS] = turns.move_address(), len(self.beginnings)
        head[turns.LOOK] = native.interrupted_address()
        head[turns.LOOK_EVERY] = max(1, LOOK_AFTER // max(1, self.plan.elements))
        return [*head, *words]


def turn_plan(kernel: Special, plan: Callable[..., Any], slots: int) -> TurnPlan:
    """Plan the body of a loop for the items that something reads."""
    body: Body = kernel.node.params[0]
    written, carried, copies, beginnings = what_turns_write(kernel, body)
    made = front([one.node for one in written], body.inputs)
    inner = plan(made.fused, made.arguments, made.constants, slots)
    found = TurnPlan(kernel, made, inner, written, carried, copies, beginnings)
    found.scratch = aligned(8 * found.base_count)
    end = found.scratch + aligned(8 * (native.GROUP_DATA + inner.width * slots))
    for number in set(carried):
        one = written[number]
        if one.every < 0:
            one.buffers = end
            end += aligned(2 * nbytes(one.node))
    found.arena = end
    found.workspace = end + inner.arena_bytes
    return found


def what_turns_write(
    kernel: Special, body: Body
) -> tuple[list[Written], list[int], list[tuple[int, int]], list[tuple[int, int]]]:
    """All that a turn writes, the number of what carries each carried value on, copies at the end and the beginning.

    An array of the values that a turn starts from gets those where the turn before writes them.
    """
    first = len(kernel.reads) + 1
    pointers = {node.params: first + k for k, node in enumerate(kernel.targets)}
    numbers = {node: k for k, node in enumerate(dict.fromkeys(body.following))}
    written = [Written(node) for node in numbers]
    carried = [numbers[node] for node in body.following]
    copies: list[tuple[int, int]] = []
    beginnings: list[tuple[int, int]] = []
    every = {body.nodes[position]: pointer for (kind, position), pointer in pointers.items() if kind == EVERY}
    for node, pointer in every.items():
        number = body.carried.index(node) if node in body.carried else -1
        one = written[carried[number]] if number >= 0 else None
        if one is not None and one.before < 0 and one.node not in every:
            one.before = pointer
            beginnings.append((pointer, number))
        else:
            if node not in numbers:
                numbers[node] = len(written)
                written.append(Written(node))
            written[numbers[node]].every = pointer
    for (kind, position), pointer in pointers.items():
        if kind == LAST:
            one = written[carried[position]]
            if one.every >= 0 or one.last >= 0:
                copies.append((pointer, carried[position]))
            else:
                one.last = pointer
    return written, carried, copies, beginnings
