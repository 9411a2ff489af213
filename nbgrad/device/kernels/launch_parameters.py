"""Kernels with more parameters than a launch can have.

In: a `Launch`. Out: an equal one whose integers are read from memory. Called by the runtime's device program. A launch
takes 4096 bytes of parameters (CUDA C++ Programming Guide, "Function Parameters"; more only on newer drivers), which is
512 words; a long row pass, or a kernel that reads a hundred arrays, has more sizes and strides than that.
"""

from __future__ import annotations

import re

from .launches import DeviceKernel, Launch

MOST_WORDS = 500


def fits(launch: Launch) -> bool:
    """Whether a launch may have so many parameters."""
    return len(launch.pointers) + len(launch.numbers) <= MOST_WORDS


def with_numbers_in_memory(kernel: DeviceKernel) -> DeviceKernel:
    """A kernel that reads its integers from an array, to which its last pointer points."""
    return DeviceKernel(f"numbers in memory: {kernel.key}", lambda: _text(kernel.make()))


def _text(text: str) -> str:
    found = re.search(r"^define void @kernel\(([^\n]*)\) \{$", text, re.M)
    assert found is not None, text[:200]
    parameters = found[1].split(", ")
    pointers = [parameter for parameter in parameters if parameter.startswith("ptr")]
    integers = [parameter.split()[-1] for parameter in parameters if parameter.startswith("i64")]
    given = ", ".join([*[f"ptr {parameter.split()[-1]}" for parameter in pointers], *[f"i64 {n}" for n in integers]])
    lines = [f"define void @kernel({', '.join([*pointers, 'ptr noalias readonly %numbers'])}) {{"]
    for position, name in enumerate(integers):
        lines.append(f"  %at.{position} = getelementptr i64, ptr %numbers, i64 {position}")
        lines.append(f"  {name} = load i64, ptr %at.{position}, !invariant.load !0")
    lines += [f"  call void @kernel.body({given})", "  ret void", "}", ""]
    inner = f"define internal void @kernel.body({found[1]}) alwaysinline {{"
    text = text[: found.start()] + inner + text[found.end() :]
    metadata = "" if re.search(r"^!0 = ", text, re.M) else "!0 = !{}\n"
    return text + "\n".join(lines) + metadata
