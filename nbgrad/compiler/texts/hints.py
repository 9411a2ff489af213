"""Hints for LLVM's vectoriser: loops of much arithmetic are vectorised without a scalar remainder.

In: the IR text of a fused kernel, and the features of the CPU. Out: the text, with metadata at the innermost loops
whose bodies are not short. Called by text_passes.py.

LLVM makes three loops of one: wide vectors, narrower ones for the rest, and scalars for the rest of that. For a body of
hundreds of instructions, that is two thirds of the time that compilation takes, and arrays shorter than a vector run in
the slowest of the three. With masks one loop does it all. The masks cost nothing beside such a body, but would in a
short one, so that those stay as they are. Registers of masks came with AVX-512: elsewhere they are computed with
vectors of integers, and a masked store may take 20 cycles, so that loops which emit.py wants with masks get none.

Bodies of medium length do two vectors at a time: an elementary function is one long chain of operations, each of which
waits for the last, and processors look only a hundred or so operations ahead.
"""

from __future__ import annotations

import re

from .wide_registers import has_wide_registers

LONG = 400
"""Instructions of a long body."""
MEDIUM = 30
"""Those of a body that does two vectors at a time."""
REGISTER = 512
"""Bits of the vector registers that have masks."""


MASKED, UNMASKED = (f'"llvm.loop.vectorize.predicate.enable", i1 {on}' for on in ("true", "false"))


def with_hints(text: str, features: str) -> tuple[str, bool]:
    """The text with its hints, and whether there are any.

    Parameters
    ----------
    text : str
        As emit.py makes it: loops have labels `L1.test`, which the last jump of the loop goes to.
    features : str
        The CPU's, as LLVM writes them.
    """
    if not has_wide_registers(features):
        return text.replace(MASKED, UNMASKED), False
    start = text.find("define internal void @body(")
    if start < 0:
        return text, False
    sizes = _sizes(text[:start])
    blocking = _blocking(text[:start])
    lines = text[start:].split("\n")
    metadata: list[str] = []
    for first, last in _innermost(lines):
        body = lines[first:last]
        called = re.findall(r" call [^@]*@([\w.]+)\(", "\n".join(body))
        size = len(body) + sum(sizes.get(name, 0) for name in called)
        if size < MEDIUM or not blocking.isdisjoint(called):
            continue
        # text_passes.py tells long bodies by their numbers.
        number = (1000 if size >= LONG else 2000) + len(metadata)
        lines[last] += f", !llvm.loop !{number}"
        if size < LONG:
            metadata += [
                f"!{number} = distinct !{{!{number}, !{number + 1}}}",
                f'!{number + 1} = !{{!"llvm.loop.interleave.count", i32 2}}',
            ]
            continue
        width = REGISTER // (64 if _has_words(body) else 32)
        metadata += [
            f"!{number} = distinct !{{!{number}, !{number + 1}, !{number + 2}}}",
            f"!{number + 1} = !{{!{MASKED}}}",
            f'!{number + 2} = !{{!"llvm.loop.vectorize.width", i32 {width}}}',
        ]
    return (text[:start] + "\n".join([*lines, *metadata, ""]), True) if metadata else (text, False)


def _has_words(body: list[str]) -> bool:
    """Whether a loop computes with 64 bits, other than addresses."""
    return any("double" in line or re.search(r"@nbgrad\S*(int64|float64)", line) for line in body)


def _sizes(definitions: str) -> dict[str, int]:
    """The number of lines of each function."""
    functions = re.findall(r"^define [^@]*@([\w.]+)\(.*?^\}", definitions, re.MULTILINE | re.DOTALL)
    bodies = re.split(r"^define ", definitions, flags=re.MULTILINE)[1:]
    return {name: body.count("\n") for name, body in zip(functions, bodies, strict=True)}


def _blocking(definitions: str) -> set[str]:
    """The functions that call a library's with two arguments (fmod): where one is a constant, LLVM finds no variant of
    it for vectors, and would say so on stderr if it had been told to make some."""
    found = set(re.findall(r"^declare [^@]*@(?!llvm\.)([\w.]+)\([^,)]+,", definitions, re.MULTILINE))
    if not found:
        return found
    callers = {
        name: set(re.findall(r" call [^@]*@([\w.]+)\(", body))
        for name, body in re.findall(r"^define [^@]*@([\w.]+)\((.*?)^\}", definitions, re.MULTILINE | re.DOTALL)
    }
    more = found
    while more:
        more = {name for name, called in callers.items() if name not in found and not called.isdisjoint(found)}
        found |= more
    return found


def _innermost(lines: list[str]) -> list[tuple[int, int]]:
    """The first line, and the line of the jump back, of each innermost loop without a hint."""
    found: list[tuple[int, int]] = []
    opened: list[tuple[int, bool]] = []
    for position, line in enumerate(lines):
        if line.startswith("L") and line.endswith(".test:"):
            opened = [(first, False) for first, _ in opened]
            opened.append((position, True))
        elif opened and line.startswith(f"  br label %{lines[opened[-1][0]][:-1]}"):
            first, innermost = opened.pop()
            if innermost and "!llvm.loop" not in line:
                found.append((first, position))
    return found
