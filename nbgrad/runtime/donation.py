"""Donation: results of a program that take the memory of arguments which the caller gives up.

In: a plan, and the positions of the donated arguments. Out: for some outputs the argument whose memory they take.
Called by cpu_program.py. An output may overwrite an argument if nothing reads the argument any more when the output is
written, or if one loop reads each element just before it writes the same element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..graph.ir import Node
from .cpu_plan import Plan
from .overwriting import Overwriting


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
    steps = [(number, step) for number, group in enumerate(plan.groups) for step in group.steps]
    writers = [(number, step) for number, step in steps if output in step.kernel.targets]
    if len(writers) != 1:
        return False
    at, writer = writers[0]
    # Steps of one group run in turns, block by block.
    if any(number >= at and step is not writer and argument in step.kernel.reads for number, step in steps):
        return False
    return argument not in writer.kernel.reads or Overwriting(writer.kernel).may(output, argument)
