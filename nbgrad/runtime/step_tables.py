"""The table of a plan's steps, which native code walks.

In: a `Plan` of cpu_plan.py. Out: its table as words (native.py has the layout), with all machine code compiled and
loaded. Called by cpu_program.py. A loop's step has the table of its body, which is of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler import cpu
from ..compiler.emitters.loop_ir import emit
from ..compiler.loops import Loop
from ..compiler.scalar_turns import ScalarTurns
from ..compiler.special import special_address, special_function, special_sizes
from . import native
from .cpu_plan import Plan, Step, combining_loops
from .loop_plan import TurnPlan
from .turns import turns_address


def _plan_functions(plan: Plan) -> Iterator[cpu.Function]:
    """The native functions of a plan's steps, and of the bodies of its loops, apart from code of the host."""
    for step in plan.steps:
        if isinstance(step.kernel, Loop):
            # Compile now what a longer array will need: a new length compiles nothing.
            yield from map(_loop_function, (*combining_loops(step.kernel), step.kernel))
        elif isinstance(step.turns, TurnPlan):
            yield from _plan_functions(step.turns.plan)
        elif isinstance(step.turns, ScalarTurns):
            yield _turns_function(step.turns)
        elif step.kernel.node.name != "host":
            yield special_function(step.kernel)


def _loop_function(loop: Loop) -> cpu.Function:
    return cpu.Function(f"loop {loop.identity}", "kernel", lambda: emit(loop))


def _turns_function(turns: ScalarTurns) -> cpu.Function:
    return cpu.Function(f"turns {turns.identity}", "kernel", turns.ir)


def kept_array(words: Sequence[int], kept: list[Any]) -> np.ndarray:
    """An int64 array that lives as long as `kept`."""
    array = np.array(words or [0], np.int64)
    kept.append(array)
    return array


def plan_table(plan: Plan, kept: list[Any], threads: int, tell: Callable[[int, int], object]) -> list[int]:
    """The table; `kept` gets all that must live as long as it is used; `threads` and `tell` are for the compiler."""
    functions = list(_plan_functions(plan))
    codes = cpu.function_codes(functions, threads, tell)
    kept += codes
    return _step_table(plan, kept, {function.key: code for function, code in zip(functions, codes, strict=True)})


def _step_table(plan: Plan, kept: list[Any], codes: Mapping[str, cpu.Code]) -> list[int]:
    table = [len(plan.groups), plan.slots, plan.width]
    for group in plan.groups:
        words: list[int] = []
        for step in group.steps:
            sizes = kept_array(_sizes(step, kept, codes), kept)
            words += [_address(step, kept, codes), len(step.places), sizes.ctypes.data]
            for place in step.places:
                words += [place.base, place.offset, place.shift, place.apart]
        table += [len(group.steps), group.chunks, int(group.parallel), len(words), *words]
    return table


def _address(step: Step, kept: list[Any], codes: Mapping[str, cpu.Code]) -> int:
    """The address of a step's machine code."""
    if isinstance(step.kernel, Loop):
        return codes[_loop_function(step.kernel).key].address
    if isinstance(step.turns, ScalarTurns):
        return codes[_turns_function(step.turns).key].address
    if step.turns is not None:
        return turns_address()
    address = special_address(step.kernel)
    kept.append(step.kernel.call)
    return address


def _sizes(step: Step, kept: list[Any], codes: Mapping[str, cpu.Code]) -> list[int]:
    """The integers that a step's kernel is called with."""
    if isinstance(step.kernel, Loop):
        return step.kernel.sizes(step.step, step.apart)
    if isinstance(step.turns, ScalarTurns):
        return step.turns.words(native.interrupted_address(), native.context().ctypes.data)
    if step.turns is not None:
        body = kept_array(_step_table(step.turns.plan, kept, codes), kept)
        return step.turns.table(body.ctypes.data, kept)
    return special_sizes(step.kernel)
