"""How a loop computes its values: scalar kernels whose IR it includes, or which it calls for many points at once.

In: a `Loop`, and the names of values in its IR. Out: lines of IR, and the texts that these need. Called by emit.py,
whose emitters are kinds of `ComputedValues`, on both targets; GPUs include all kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...process.once import computed_once
from ..called_scalars import called_name, declarations, is_long, wide
from ..ir_text import IRText
from ..loops import READS, Loop, Value
from ..scalars import LLVM_TYPES, convert, kernel_module, scalar_ir

UNCALLED = READS | {"number"}
"""Values that no kernel computes."""
FEW = 2
"""Sines and cosines of the same angles that a loop includes; more of them take too long to compile."""
FLOAT32 = np.dtype(np.float32)
FLOAT16 = np.dtype(np.float16).num
TYPES = {np.dtype(code).num: LLVM_TYPES[np.dtype(code).name] for code in "?bBhHiIlLqQefd"}
"""LLVM's types by dtype number: a dtype's name takes NumPy a microsecond. Some types have two numbers."""


def register_type(dtype: np.dtype[Any]) -> str:
    """The LLVM type of a scalar value."""
    return TYPES[dtype.num]


class ComputedValues(IRText):
    """Writes the computation of single values."""

    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self.loop = loop
        self.scalars: dict[str, str] = {}
        """The IR of the scalar kernels that are included."""
        self.called: set[str] = set()
        """The symbols of those that are called."""
        self.calling = False
        """Whether long kernels are called where lines are written now."""
        self.included: list[Value] = []
        """Values whose kernels are included all the same."""
        self.intrinsics: set[str] = set()
        self.hints: list[str] = []

    def texts(self) -> list[str]:
        """The IR that the lines need."""
        return [*self.scalars.values(), "\n".join(sorted(self.intrinsics)), declarations(sorted(self.called))]

    def told(self, hint: str) -> str:
        """The metadata of a loop's last branch that give LLVM a hint."""
        name = f"!{10 + len(self.hints)}"
        self.hints.append(f"{name} = distinct !{{{name}, {hint}}}")
        return f", !llvm.loop {name}"

    def wide_turns(self) -> int | None:
        """The points of a turn of the loop, if it calls elementary functions."""
        computed = [value for value in self.loop.values if value.operation not in READS]
        if not any(map(self.lines_of, computed)):
            return None
        points = wide() // max(4, *[value.dtype.itemsize for value in computed])
        return points // 2 if self.pairs else points

    @computed_once
    def pairs(self) -> list[Value]:
        """Sines and cosines of the same angles, which have most of their work in common, if they are few and the loop
        calls little else."""
        sin, cos = ({v.operands: v for v in self.loop.values if v.operation == name} for name in ("sin", "cos"))
        found = [pair[angle] for angle in sin if angle in cos for pair in (sin, cos)]
        others = sum(self.lines_of(value) for value in self.loop.values if value not in found)
        few = len(found) <= 2 * FEW and 2 * others < sum(map(self.lines_of, found))
        return found if few else []

    def lines_of(self, value: Value) -> int:
        """The size of a value's kernel, if it may be called; else 0."""
        if value.operation in UNCALLED:
            return 0
        symbol, text = self.scalar(*self.kernel_of(value))
        return text.count("\n") if is_long(symbol, text) else 0

    def in_vectors(self, width: int) -> str:
        """The hint to LLVM that a turn of the loop is for so many points."""
        hints = f'!{{!"llvm.loop.vectorize.width", i32 {width}}}, !{{!"llvm.loop.interleave.count", i32 1}}, !4'
        return self.told(hints)

    def cast(self, value: str, source: np.dtype[Any], target: np.dtype[Any]) -> str:
        if source == target:
            return value
        name = self.fresh("cast")
        lines = convert(value, source.name, target.name, name)
        if any("llvm.fabs" in line for line in lines):
            self.intrinsics.add("declare double @llvm.fabs.f64(double)")
        self.lines.extend(lines)
        return name

    def scalar(self, name: str, dtypes: Sequence[np.dtype[Any]], result: np.dtype[Any]) -> tuple[str, str]:
        """A scalar kernel of the target."""
        return scalar_ir(name, dtypes, result)

    def kernel_of(self, value: Value) -> tuple[str, list[np.dtype[Any]], np.dtype[Any]]:
        """The scalar kernel of a value: its name, and the dtypes of its operands and its result."""
        dtypes = [self.loop.values[o].dtype for o in value.operands]
        wide = [FLOAT32 if d.num == FLOAT16 else d for d in dtypes]
        result = FLOAT32 if value.dtype.num == FLOAT16 else value.dtype
        half = any(d.num == FLOAT16 for d in dtypes)
        name = kernel_module().OF_HALF.get(value.operation, value.operation) if half else value.operation
        return name, wide, result

    def call(self, value: Value, names: list[str]) -> str:
        """Call a scalar kernel; float16 is computed in float32 and rounded after each operation."""
        name, wide, result = self.kernel_of(value)
        dtypes = [self.loop.values[o].dtype for o in value.operands]
        operands = [self.cast(names[o], d, w) for o, d, w in zip(value.operands, dtypes, wide, strict=True)]
        symbol, text = self.scalar(name, wide, result)
        if self.calling and is_long(symbol, text) and value not in self.included:
            self.called.add(symbol)
            symbol = called_name(symbol)
        else:
            self.scalars[symbol] = text
        arguments = ", ".join(f"{register_type(d)} {v}" for d, v in zip(wide, operands, strict=True))
        called = self.let(f"call {register_type(result)} @{symbol}({arguments})")
        return self.cast(called, result, value.dtype)
