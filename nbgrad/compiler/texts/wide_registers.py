"""Whether the CPU has AVX-512: vectors of 512 bits with registers of masks.

In: the features of the CPU as LLVM writes them, and a module's IR text in which kernels ask by calling
`nbgrad.registers.wide` (`wide_registers` in kernels/bits.py). Out: the answer, and the text with it as a constant, so
that LLVM drops the side of the kernel for other machines. Called by text_passes.py, float_parts.py and hints.py, and by
GPUs' code, which has neither.

Kernels ask where the faster way depends on it. A division of a vector takes twice as long for one of twice the width,
and multiply-adds do not: in the time of one division, 512 bits get twice as many of them done.
"""

from __future__ import annotations

import re

NAME = "nbgrad.registers.wide"
_DECLARED = re.compile(rf"^declare [^\n]*@{re.escape(NAME)}\([^\n]*\n", re.MULTILINE)


def has_wide_registers(features: str) -> bool:
    """Whether a CPU with these features has AVX-512 for vectors of every width."""
    return "+avx512vl" in features and "+avx512dq" in features


def definition(wide: bool) -> str:
    """The function that gives the answer."""
    return f"\ndefine internal i1 @{NAME}() alwaysinline {{\n  ret i1 {str(wide).lower()}\n}}\n"


def with_answer(text: str, features: str) -> str:
    """The text of a module with the function, if it is called and not there yet."""
    if f"@{NAME}(" not in text or f"i1 @{NAME}() alwaysinline" in text:
        return text
    return _DECLARED.sub("", text) + definition(has_wide_registers(features))
