"""Donation: which results of a program may take the memory of arguments that the caller gives up.

In: a plan, and the positions of the donated arguments. Out: for some outputs the argument whose memory they take.
Called by program.py. An output may overwrite an argument if nothing reads the argument any more when the output is
written, or if one loop reads each element just before it writes the same element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..compiler.loops import Loop
from ..graph.ir import Node
from .plan import Plan, Step, reads_and_writes


def donors(
    plan: Plan, outputs: Sequence[Node], results: Sequence[Node], arguments: Sequence[Node], donated: Iterable[int]
) -> dict[int, int]:
    """For outputs that may take an argument's memory, the position of that argument.

    Parameters
    ----------
    plan : Plan
    outputs, results : sequences of nodes
        The arrays that the plan writes, and the results that they are, which may have another shape.
    arguments : sequence of nodes
    donated : iterable of int
        Positions of arguments.
    """
    found: dict[int, int] = {}
    for position in donated:
        argument = arguments[position]
        for number, (output, result) in enumerate(zip(outputs, results, strict=True)):
            fits = result.shape == argument.shape and output.dtype == argument.dtype and number not in found
            alone = result.size > 0 and result.ndim > 0 and outputs.count(output) == 1
            if fits and alone and _may_take(plan, output, argument):
                found[number] = position
                break
    return found


def _may_take(plan: Plan, output: Node, argument: Node) -> bool:
    writers = [(g, step) for g, group in enumerate(plan.groups) for step in group.steps if _touches(step, output, 1)]
    if len(writers) != 1:
        return False
    at, writer = writers[0]
    for number, group in enumerate(plan.groups):
        for step in group.steps:
            # Steps of one group run in turns, block by block.
            if number >= at and step is not writer and _touches(step, argument, 0):
                return False
    return not _touches(writer, argument, 0) or _in_step(writer, output, argument)


def _touches(step: Step, node: Node, side: int) -> bool:
    """Whether a step reads (0) or writes (1) a node."""
    return node in reads_and_writes(step.kernel)[side]


def _in_step(step: Step, output: Node, argument: Node) -> bool:
    """Whether a loop writes each element of an array after it has read the same element of another, and never again.

    What it writes must be made of what it reads: the order of the two is then certain, although the code was compiled
    for arrays that do not overlap.
    """
    loop = step.kernel
    if not isinstance(loop, Loop):
        return False
    reads = [k for k, a in enumerate(loop.accesses) if a.buffer >= 0 and loop.buffers[a.buffer] is argument]
    writes = [k for k, a in enumerate(loop.accesses) if a.buffer >= 0 and loop.buffers[a.buffer] is output]
    stores = [store for store in loop.stores if store.access in writes]
    if len(reads) != 1 or len(writes) != 1 or len(stores) != 1:
        return False
    view = loop.accesses[reads[0]].view
    if view != loop.accesses[writes[0]].view or any(masked is not None for masked in view.valid):
        return False
    if any(stride == 0 for n, stride in zip(view.shape, view.strides, strict=True) if n > 1):
        return False
    loads = {k for k, value in enumerate(loop.values) if value.access == reads[0] and value.operation == "load"}
    others = {k for k, value in enumerate(loop.values) if value.access == reads[0] and value.operation != "load"}
    if len(loads) != 1 or others:
        return False
    needed, stack = set(), [stores[0].value]
    while stack:
        value = stack.pop()
        if value not in needed:
            needed.add(value)
            stack.extend(loop.values[value].operands)
    return not loads.isdisjoint(needed)
