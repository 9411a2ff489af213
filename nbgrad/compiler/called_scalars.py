"""Scalar kernels that loops call instead of including them: sin, exp, gammaln and so on, compiled once for all loops.

In: the symbols and the IR of scalar kernels; or object code. Out: which of them are called, their declarations, and the
IR of the functions behind these; the names of the functions that object code calls. Called by
emitters/computed_values.py, by cpu.py, which links the functions, and by nbgrad/precompile.py.

An elementary function is one long chain of operations, each of which waits for the last. So a call computes several
vectors side by side, with constants that are read once for all of them: that takes two thirds to a half of the time
that a loop takes which includes the function, and LLVM compiles a loop of calls in a quarter of the time (design/0126).
Each function exists for single numbers and for vectors of several widths, under names that LLVM's vectoriser knows.
The operations are those of the kernel, and so are the results, bit for bit.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import numpy as np

from .conversions import LLVM_TYPES
from .scalars import MASKED, merge, scalar_ir
from .shipped_objects import cpu_features
from .texts import wide_registers

LONG = 25
"""Lines of IR of a kernel that may be called."""
SYMBOL = "scalar_kernel"
"""The name of a function's entry, before cpu.py makes it unique."""

WIDE, NARROW = 128, 64
"""Bytes of results that a call computes where there are as many: several chains of operations, side by side, in the
registers of CPUs with vectors of 256 bits or more, and of others."""
WIDTHS = (4, 8, 16, 32)
"""Elements of the vectors that there are functions for."""

_PREFIX = "nbgrad.called."


@functools.cache
def is_long(symbol: str, text: str) -> bool:
    """Whether a kernel is worth a call: of floats, without functions of libraries but for rare elements, and without a
    way of its own for wide registers, because such a kernel is short elsewhere."""
    _, dtypes, result = _parts(symbol)
    if text.count("\n") < LONG or not {*dtypes, result} <= {"float32", "float64"}:
        return False
    declared = [line for line in text.splitlines() if line.startswith("declare ")]
    known = all("@llvm." in line or "@nbgrad." in line or MASKED in line for line in declared)
    return known and f"@{wide_registers.NAME}" not in text


def _parts(symbol: str) -> tuple[str, list[str], str]:
    """The primitive of a kernel, the dtypes of its operands, and that of its result, as in its symbol."""
    _, name, *dtypes, result = symbol.split(".")
    return name, dtypes, result


def _types(symbol: str) -> tuple[str, list[str]]:
    """The LLVM type of a kernel's result, and those of its operands."""
    _, dtypes, result = _parts(symbol)
    return LLVM_TYPES[result], [LLVM_TYPES[dtype] for dtype in dtypes]


def called_name(symbol: str) -> str:
    """The name of the function that computes a kernel."""
    return symbol.replace("nbgrad.", _PREFIX, 1)


def declarations(symbols: Sequence[str]) -> str:
    """Kernels as functions that LLVM knows to be pure, and by which names it finds them for vectors."""
    if not symbols:
        return ""
    lines: list[str] = []
    vectors: list[str] = []
    for symbol in symbols:
        result, operands = _types(symbol)
        name = called_name(symbol)
        variants = ",".join(f"_ZGV_LLVM_N{width}{'v' * len(operands)}_{name}({name}.v{width})" for width in WIDTHS)
        attributes = f'nounwind willreturn memory(none) "vector-function-abi-variant"="{variants}"'
        lines.append(f"declare {result} @{name}({', '.join(operands)}) {attributes}")
        for width in WIDTHS:
            given = ", ".join(f"<{width} x {operand}>" for operand in operands)
            lines.append(f"declare <{width} x {result}> @{name}.v{width}({given})")
            vectors.append(f"ptr @{name}.v{width}")
    # What nothing uses would be gone before LLVM vectorises.
    kept = f"[{len(vectors)} x ptr] [{', '.join(vectors)}]"
    return "\n".join([*lines, f'@llvm.compiler.used = appending global {kept}, section "llvm.metadata"'])


def wide() -> int:
    """The bytes of results of a call on this CPU."""
    return WIDE if {"+avx2", "+sve"}.intersection(cpu_features().split(",")) else NARROW


def variants(symbol: str) -> list[str]:
    """The names of a kernel's functions that loops of its dtype call: for many elements, for few, and for one."""
    name, most = called_name(symbol), WIDE // np.dtype(_parts(symbol)[2]).itemsize
    return [*[f"{name}.v{width}" for width in (most, most // 2, most // 4)], name]


def names_in(data: bytes) -> set[str]:
    """The names of the functions that object code calls."""
    return {name.decode() for name in re.findall(rb"nbgrad\.called\.[\w.]+", data)}


def function_text(name: str) -> str:
    """The IR of the function behind a name, with the entry `SYMBOL`."""
    symbol, _, width = name.replace(_PREFIX, "nbgrad.", 1).partition(".v")
    primitive, dtypes, dtype = _parts(symbol)
    _, scalar = scalar_ir(primitive, [np.dtype(d) for d in dtypes], np.dtype(dtype))
    result, operands = _types(symbol)
    if not width:
        parameters = ", ".join(f"{operand} %x{k}" for k, operand in enumerate(operands))
        lines = [
            f"define {result} @{SYMBOL}({parameters}) nounwind {{",
            f"  %r = call {result} @{symbol}({parameters})",
            f"  ret {result} %r",
            "}",
        ]
        return "\n".join([merge([scalar], ()), *lines, ""])
    return "\n".join([merge([scalar], (int(width),)), *_vector_function(symbol, int(width)), ""])


def _vector_function(symbol: str, width: int) -> list[str]:
    """A function of vectors, as a loop over their elements that LLVM makes one turn of."""
    result, operands = _types(symbol)
    given = ", ".join(f"<{width} x {operand}> %x{k}" for k, operand in enumerate(operands))
    lines = [f'define <{width} x {result}> @{SYMBOL}({given}) nounwind "prefer-vector-width"="512" {{', "entry:"]
    for k, operand in enumerate(operands):
        lines += [f"  %in{k} = alloca <{width} x {operand}>", f"  store <{width} x {operand}> %x{k}, ptr %in{k}"]
    lines += [
        f"  %out = alloca <{width} x {result}>",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
    ]
    for k, operand in enumerate(operands):
        lines += [
            f"  %at{k} = getelementptr {operand}, ptr %in{k}, i64 %i",
            f"  %e{k} = load {operand}, ptr %at{k}",
        ]
    elements = ", ".join(f"{operand} %e{k}" for k, operand in enumerate(operands))
    return [
        *lines,
        f"  %r = call {result} @{symbol}({elements})",
        f"  %to = getelementptr {result}, ptr %out, i64 %i",
        f"  store {result} %r, ptr %to",
        "  %next = add nuw nsw i64 %i, 1",
        f"  %more = icmp ult i64 %next, {width}",
        "  br i1 %more, label %loop, label %done, !llvm.loop !2",
        "done:",
        f"  %all = load <{width} x {result}>, ptr %out",
        f"  ret <{width} x {result}> %all",
        "}",
        "!2 = distinct !{!2, !3, !4, !5}",
        f'!3 = !{{!"llvm.loop.vectorize.width", i32 {width}}}',
        '!4 = !{!"llvm.loop.interleave.count", i32 1}',
        '!5 = !{!"llvm.loop.unroll.disable"}',
    ]
