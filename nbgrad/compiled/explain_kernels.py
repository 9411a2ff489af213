"""Kernels and memory of a program on the CPU, as text.

In: a program, its plan, and the steps in it. Out: the cost of a kernel, its loops, and the arrays with their
places. Called by explain.py and explanation_page.py.
"""

from __future__ import annotations

import textwrap
from typing import Any

from ..compiler.fuse import Special
from ..compiler.loops import Loop, show
from ..compiler.scalar_turns import ScalarTurns
from ..graph.custom_calls import OWN_KERNEL
from ..graph.loops.loop_body import turns_of
from ..graph.window_rows import multiplications
from ..runtime.cpu_plan import Plan, Step
from ..runtime.cpu_program import Program
from ..runtime.loop_plan import TurnPlan


def cost(step: Step) -> tuple[int, int]:
    """(bytes, flops) of a kernel."""
    kernel = step.kernel
    if isinstance(kernel, Loop):
        return kernel.bytes, kernel.flops
    if step.turns is not None:
        touched = sum(node.size * node.dtype.itemsize for node in kernel.buffers)
        return touched, _turn_cost(step.turns)
    node = kernel.node
    touched = sum(s.size * s.dtype.itemsize for s in kernel.buffers)
    return touched, 2 * multiplications(node) or node.size


def _turn_cost(turns: ScalarTurns | TurnPlan) -> int:
    """Operations of all turns of a loop."""
    if isinstance(turns, ScalarTurns):
        return turns.elements
    return turns_of(turns.kernel.node) * sum(cost(step)[1] for step in turns.plan.steps)


def _loop_text(step: Step, plan: Plan) -> str:
    """A loop: how it runs, and the kernels of a turn."""
    turns, kernel = step.turns, step.kernel
    assert isinstance(kernel, Special)
    memory = f"# reads {', '.join(map(plan.where, kernel.reads))}; writes {', '.join(map(plan.where, kernel.targets))}"
    if isinstance(turns, ScalarTurns):
        kept = sum(map(len, turns.following))
        head = f"loop of {turns.turns} turns in one function: {len(turns.values)} scalars a turn, {kept} in registers"
        return f"{head}\n{memory}"
    assert turns is not None
    steps = turns.plan.steps
    many = "s" if len(steps) != 1 else ""
    head = f"loop of {turns_of(kernel.node)} turns, each {len(steps)} kernel{many} with {turns.workspace:,} bytes:"
    inner = [textwrap.indent(kernel_text(one, turns.plan), "  ") for one in steps]
    return "\n".join([head, memory, *inner])


def host_title(params: tuple[Any, ...]) -> str:
    """The name of the function of a `host` node."""
    if params[0] is OWN_KERNEL:
        return f"own kernel {params[1]}"
    shown = f" {params[1]}" if params[0].name == "message" else ""
    return f"library function {params[0].name}{shown}"


def kernel_text(step: Step, plan: Plan) -> str:
    kernel = step.kernel
    where = plan.where
    if step.turns is not None:
        return _loop_text(step, plan)
    if isinstance(kernel, Special):
        shapes = ", ".join(f"{s.dtype}{list(v.shape)}" for s, v in zip(kernel.reads, kernel.views, strict=True))
        places = ", ".join(where(node) for node in kernel.reads)
        target = ", ".join(f"{node.dtype}{list(node.shape)}" for node in kernel.targets)
        name = host_title(kernel.node.params) if kernel.node.name == "host" else kernel.node.name
        return f"{name}({shapes}) -> {target}\n# reads {places}; writes {', '.join(map(where, kernel.targets))}"
    buffers = [f"b{k} = {where(node)}" for k, node in enumerate(dict.fromkeys(kernel.buffers))]
    return f"# {', '.join(buffers)}\n{show(kernel)}"


def memory_text(program: Program) -> str:
    plan = program.plan
    lines = [
        (
            f"memory: arena {plan.arena_bytes:,} bytes for all intermediates ({plan.unshared_bytes:,} without "
            f"sharing), {len(plan.bases)} inputs and constants, {len(program.outputs)} outputs"
        )
    ]
    for node, (first, last) in plan.lifetimes.items():
        reason = f"; {plan.reasons[node]}" if node in plan.reasons else ""
        lines.append(
            f"  {plan.where(node)}: {node.name} {node.dtype}{list(node.shape)}, groups {first} to {last}{reason}"
        )
    for node, reason in plan.reasons.items():
        if node not in plan.lifetimes and reason.startswith("not stored"):
            lines.append(f"  {node.name} {node.dtype}{list(node.shape)}: {reason}")
    return "\n".join(lines)
