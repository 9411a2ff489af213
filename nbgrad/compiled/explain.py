"""`explain`: the compiled code of a function, as text.

In: a function and arguments. Out: the Python loops that were found, the recorded graph, the fused kernels as readable
loops with their bytes and flops, the memory plan, and the times of compiling and running. Called by users and by
`python -m nbgrad explain`.
"""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Callable
from typing import Any

from ..compiler import cache
from ..compiler.fuse import Special
from ..compiler.loops import Loop, show
from ..compiler.scalar_turns import ScalarTurns
from ..errors import ArgumentError
from ..graph.custom_calls import OWN_KERNEL
from ..graph.loops.loop_body import turns_of
from ..graph.loops.noted import noting
from ..graph.show import show as show_graph
from ..graph.window_rows import multiplications
from ..runtime.cpu_plan import Plan, Step
from ..runtime.cpu_program import Program
from ..runtime.loop_plan import TurnPlan
from ..transforms.arguments import name_of
from .explain_device import explain_device
from .jit import Jitted, jit
from .loop_report import loop_report


def explain(fn: Callable[..., Any], *args: Any) -> str:
    """The graph, the loops, the memory plan and the time of a function, as text.

    For a function made by `nb.kernel` it says what its derivative stores and computes again, and for some arguments
    the bytes and the times; without arguments, for the dtypes of the last call.

    For Python loops it says which lines they come from, their turns and operations, and why others were not found. For
    that the function is recorded twice.

    Parameters
    ----------
    fn : callable
        Any function, for example `nb.value_and_grad(loss)`.
    *args : arrays
        The arguments of a call.

    Returns
    -------
    str

    Raises
    ------
    ArgumentError
        If compilation is switched off.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> print(nb.explain(lambda x: np.sum(np.sin(x)), np.zeros(3)))  # doctest: +ELLIPSIS
    <lambda>: 1 kernel...
    """
    own = getattr(fn, "explained", None)
    if own is not None:
        return own(*args)
    before = dict(cache.counters)
    start = time.perf_counter()
    compiled = _fresh(fn)
    compiled(*args)
    first = time.perf_counter() - start
    program = _program_of(compiled)
    runs = 1 + int(min(200, 0.2 / max(first, 1e-6)))
    samples = [_timed(compiled, args) for _ in range(max(runs, 5))]
    made = {key: cache.counters[key] - before[key] for key in ("compiled", "loaded")}
    if not isinstance(program, Program):
        count = len(program.plan.actions)
        seconds = sorted(samples)[len(samples) // 2]
        head = [
            f"{name_of(fn)}: {count} action{'s' if count != 1 else ''} on {program.device}",
            f"first call {first * 1e3:.1f} ms, then {seconds * 1e6:.2f} us a call on the host",
        ]
        return explain_device(program, head)
    count = len(program.plan.steps)
    flops = sum(_cost(step)[1] for step in program.plan.steps)
    moved = sum(_cost(step)[0] for step in program.plan.steps)
    seconds = sorted(samples)[len(samples) // 2]
    lines = [
        f"{name_of(fn)}: {count} kernel{'s' if count != 1 else ''}, {flops:,} flops, {moved:,} bytes read and written",
        (
            f"first call {first * 1e3:.1f} ms ({made['compiled']} compiled, {made['loaded']} from the cache), "
            f"then {seconds * 1e6:.2f} us a call"
        ),
        "",
        *_loops(fn, args),
        show_graph(program.graph),
        "",
    ]
    position = 0
    for number, group in enumerate(program.plan.groups):
        share = f"{group.chunks} chunks{', parallel' if group.parallel else ''}" if group.chunks > 1 else "1 chunk"
        if len(group.steps) > 1:
            last = position + len(group.steps) - 1
            lines.append(
                f"group {number}: kernels {position} to {last} go through their rows together, a chunk at a time, so "
                "that what passes between them stays in cache"
            )
        for step in group.steps:
            bytes_, work = _cost(step)
            lines.append(f"kernel {position} of group {number}: {share}, {work:,} flops, {bytes_:,} bytes")
            lines.append(_kernel(step, program.plan))
            lines.append("")
            position += 1
    lines += [_memory(program), *map(str, program.schedules)]
    if program.file is not None:
        lines.append(f"file in {program.file.folder}: {program.file.size:,} bytes")
    return "\n".join(lines)


def _fresh(fn: Callable[..., Any]) -> Jitted:
    """A function that is not compiled yet."""
    return Jitted(fn.fn, (), fn.budget) if isinstance(fn, Jitted) else jit(fn)


def _loops(fn: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """Which loops are found while a function is recorded: it is recorded again, with the lines of all operations."""
    with noting(sys._getframe()) as notes:  # pyright: ignore[reportPrivateUsage]
        _fresh(fn)(*args)
    lines = loop_report(notes)
    return [*lines, ""] if lines else []


def _timed(function: Callable[..., Any], args: tuple[Any, ...]) -> float:
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def _program_of(compiled: Jitted) -> Any:
    program = next(iter(compiled.programs()), None)
    if program is None:
        message = "Nothing was compiled: NBGRAD_DISABLE_JIT is set. Unset it to see what would be compiled."
        raise ArgumentError(message)
    return program


def _cost(step: Step) -> tuple[int, int]:
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
    return turns_of(turns.kernel.node) * sum(_cost(step)[1] for step in turns.plan.steps)


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
    inner = [textwrap.indent(_kernel(one, turns.plan), "  ") for one in steps]
    return "\n".join([head, memory, *inner])


def host_title(params: tuple[Any, ...]) -> str:
    """The name of the function of a `host` node."""
    if params[0] is OWN_KERNEL:
        return f"own kernel {params[1]}"
    shown = f" {params[1]}" if params[0].name == "message" else ""
    return f"library function {params[0].name}{shown}"


def _kernel(step: Step, plan: Plan) -> str:
    kernel = step.kernel
    where = plan.where
    if step.turns is not None:
        return _loop_text(step, plan)
    if isinstance(kernel, Special):
        shapes = ", ".join(f"{s.dtype}{list(v.shape)}" for s, v in zip(kernel.reads, kernel.views, strict=True))
        places = ", ".join(where(node) for node in kernel.reads)
        target = f"{kernel.node.dtype}{list(kernel.node.shape)}"
        name = host_title(kernel.node.params) if kernel.node.name == "host" else kernel.node.name
        return f"{name}({shapes}) -> {target}\n# reads {places}; writes {where(kernel.node)}"
    buffers = [f"b{k} = {where(node)}" for k, node in enumerate(dict.fromkeys(kernel.buffers))]
    return f"# {', '.join(buffers)}\n{show(kernel)}"


def _memory(program: Program) -> str:
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
