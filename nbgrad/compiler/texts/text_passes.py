"""All changes of LLVM IR as text, in one list: each with its reason, and the spelling of LLVM that it relies on.

In: IR text, and the machine that it is compiled for. Out: IR text. `FOR_NUMBA` is for lowering.py, after Numba has
compiled, `FOR_CPU` for cpu.py, before a module is parsed; passes for GPUs are in device/kernels/dialect.py, as
`FOR_GPU`. LLVM may spell its text otherwise in another version: tests/test_text_passes.py has LLVM print each kind of
line, and fails where a pass no longer changes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import llvmlite.binding as llvm

from ..lowering import cleaned, contracted
from .float_parts import with_definitions
from .half import with_conversions
from .hints import with_hints
from .multiply_add import without_library_calls
from .wide_registers import with_answer


class NumbaPass(NamedTuple):
    """One change of the text that Numba has compiled, given the function's symbol."""

    name: str
    why: str
    relies_on: str
    run: Callable[[str, str], str]


FOR_NUMBA: Sequence[NumbaPass] = (
    NumbaPass(
        "own conventions",
        "attribute groups and metadata clash between modules, and helpers and constants have names that other modules "
        "use too; declarations of library functions keep their attributes, because LLVM vectorises a loop around a "
        "rare call only if it knows that the call has no effects",
        "groups `#0 = { ... }`, metadata `, !tbaa !1`, private and internal constants",
        cleaned,
    ),
    NumbaPass(
        "contraction",
        "sums and products of kernels may fuse into multiply-adds; Numba's flags would be for all operations",
        "fadd, fsub and fmul directly behind the equals sign",
        lambda text, symbol: contracted(text),
    ),
)
"""Changes that lowering.py makes to the output of Numba: the first always, the second for `CONTRACTED`."""

FUNCTION = re.compile(r"^(define (?!.* alwaysinline).*) \{$", re.MULTILINE)
HINTED = "!1000 = distinct "
"""The first hint that hints.py writes."""


class Target(NamedTuple):
    """The machine that a module is compiled for; `quick` is without LLVM's optimisations."""

    machine: llvm.TargetMachine
    features: str
    quick: bool


class TextPass(NamedTuple):
    """One change of IR text."""

    name: str
    why: str
    relies_on: str
    run: Callable[[str, Target], str]


def _aligned(text: str, target: Target) -> str:
    return FUNCTION.sub(r'\1 "stackrealign" {', text) if target.machine.triple.startswith("x86_64") else text


FOR_CPU: Sequence[TextPass] = (
    TextPass(
        "parts of floats",
        "AVX-512 has instructions for them, which LLVM makes only of their own names (float_parts.py)",
        "declarations and calls of @nbgrad.exponent.f32 and so on",
        lambda text, target: with_definitions(text, target.features),
    ),
    TextPass(
        "multiply-add",
        "where the CPU has no instruction for llvm.fma, LLVM calls a library function for each element",
        "declarations and calls of @llvm.fma.f32 and .f64",
        lambda text, target: without_library_calls(text, target.machine),
    ),
    TextPass(
        "aligned stack",
        "LLVM finds out that vectors are to be kept on the stack when it is too late to align it (the frame's register "
        "is taken): each is spread over two cache lines, and where the stack happens to lie so that one is spread over "
        "two pages, a loop takes half again as long",
        "the first line of a definition ends with an opening brace",
        _aligned,
    ),
    TextPass(
        "vectors without remainder",
        "a loop of much arithmetic compiles in a third of the time if its rest is done by masks; a short one is slow "
        "with masks where the CPU has no registers for them (hints.py)",
        "labels and jumps of emit.py, which LLVM has not changed yet",
        lambda text, target: text if target.quick else with_hints(text, target.features)[0],
    ),
    TextPass(
        "float16",
        "conversions that the CPU lacks are library functions, which not every system has",
        "the type's name, half",
        lambda text, target: with_conversions(text),
    ),
    TextPass(
        "width of registers",
        "kernels ask for it where another way is faster without AVX-512 (wide_registers.py)",
        "declarations and calls of @nbgrad.registers.wide",
        lambda text, target: with_answer(text, target.features),
    ),
)
"""Before a module for the CPU is parsed, in this order."""


def run(passes: Sequence[TextPass], text: str, target: Target) -> str:
    """All passes, one after the other."""
    for step in passes:
        text = step.run(text, target)
    return text
