"""The table of a plan's steps, which native code walks.

In: a `Plan` of cpu_plan.py. Out: its table as words (native.py has the layout), with all machine code compiled and
loaded. Called by cpu_program.py. A loop's step has the table of its body, which is of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler import cpu
from ..compiler.loops import Loop
from ..compiler.scalar_turns import ScalarTurns
from ..compiler.special import special_address, special_sizes
from ..compiler.tiles import emit
from . import native
from .cpu_plan import Plan, Step, combining_loops
from .loop_plan import TurnPlan
from .turns import turns_address


def loop_code(loop: Loop) -> cpu.Code:
    """A fused loop's code."""
    return cpu.function_code(f"loop {loop.identity}", "kernel", lambda: emit(loop))


def kept_array(words: Sequence[int], kept: list[Any]) -> np.ndarray:
    """An int64 array that lives as long as `kept`."""
    array = np.array(words or [0], np.int64)
    kept.append(array)
    return array


def count_kernels(plan: Plan) -> int:
    """The number of kernels of a plan, and of the bodies of its loops."""
    return sum(count_kernels(step.turns.plan) if isinstance(step.turns, TurnPlan) else 1 for step in plan.steps)


def step_table(plan: Plan, kept: list[Any], tell: Callable[[], object]) -> list[int]:
    """The table; `kept` gets all that must live as long as it is used, and `tell` is called before each kernel."""
    table = [len(plan.groups), plan.slots, plan.width]
    for group in plan.groups:
        words: list[int] = []
        for step in group.steps:
            sizes = kept_array(_sizes(step, kept, tell), kept)
            if not isinstance(step.turns, TurnPlan):
                tell()
            words += [_address(step, kept), len(step.places), sizes.ctypes.data]
            for place in step.places:
                words += [place.base, place.offset, place.shift, place.apart]
        table += [len(group.steps), group.chunks, int(group.parallel), len(words), *words]
    return table


def _address(step: Step, kept: list[Any]) -> int:
    """The address of a step's machine code."""
    if isinstance(step.kernel, Loop):
        # Compile now what a longer array will need: a new length compiles nothing.
        kept += [loop_code(combining) for combining in combining_loops(step.kernel)]
        code = loop_code(step.kernel)
        kept.append(code)
        return code.address
    if isinstance(step.turns, ScalarTurns):
        code = cpu.function_code(f"turns {step.turns.identity}", "kernel", step.turns.ir)
        kept.append(code)
        return code.address
    if step.turns is not None:
        return turns_address()
    address = special_address(step.kernel)
    kept.append(step.kernel.call)
    return address


def _sizes(step: Step, kept: list[Any], tell: Callable[[], object]) -> list[int]:
    """The integers that a step's kernel is called with."""
    if isinstance(step.kernel, Loop):
        return step.kernel.sizes(step.step, step.apart)
    if isinstance(step.turns, ScalarTurns):
        return step.turns.words(native.interrupted_address(), native.context().ctypes.data)
    if step.turns is not None:
        body = kept_array(step_table(step.turns.plan, kept, tell), kept)
        return step.turns.table(body.ctypes.data, kept)
    return special_sizes(step.kernel)
