"""Fused multiply-add where the CPU has no instruction for it.

In: a module's IR text and the machine it is for. Out: the text, in which calls of `llvm.fma` have become calls of
functions defined with it, if LLVM would make library calls of them, one per element. Called by text_passes.py for every
module. The kernels use `llvm.fma` only where they need the rounding error of a product (elsewhere they use
`llvm.fmuladd`), so the functions find that error: for double by Dekker's product of halved significands (1971) and
Knuth's sum, 0.5 ULP and an error of 2**-105 of the product; for float by computing in double. Products that overflow,
or errors that underflow, are rounded as if multiplied first.
"""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

import llvmlite.binding as llvm

DEFINITIONS = """
define internal double @nbgrad.fma.f64(double %x, double %y, double %z) alwaysinline {
  %x.bits = bitcast double %x to i64
  %y.bits = bitcast double %y to i64
  %x.top = and i64 %x.bits, -134217728
  %y.top = and i64 %y.bits, -134217728
  %x.high = bitcast i64 %x.top to double
  %y.high = bitcast i64 %y.top to double
  %x.low = fsub double %x, %x.high
  %y.low = fsub double %y, %y.high
  %product = fmul double %x, %y
  %hh = fmul double %x.high, %y.high
  %hl = fmul double %x.high, %y.low
  %lh = fmul double %x.low, %y.high
  %ll = fmul double %x.low, %y.low
  %r0 = fsub double %hh, %product
  %r1 = fadd double %r0, %hl
  %r2 = fadd double %r1, %lh
  %rest = fadd double %r2, %ll
  %sum = fadd double %product, %z
  %back = fsub double %sum, %product
  %first = fsub double %sum, %back
  %lost.product = fsub double %product, %first
  %lost.z = fsub double %z, %back
  %lost = fadd double %lost.product, %lost.z
  %error = fadd double %lost, %rest
  %exact = fadd double %sum, %error
  %ordered = fcmp ord double %error, 0.0
  %result = select i1 %ordered, double %exact, double %sum
  ret double %result
}

define internal float @nbgrad.fma.f32(float %x, float %y, float %z) alwaysinline {
  %x.wide = fpext float %x to double
  %y.wide = fpext float %y to double
  %z.wide = fpext float %z to double
  %product = fmul double %x.wide, %y.wide
  %sum = fadd double %product, %z.wide
  %result = fptrunc double %sum to float
  ret float %result
}
"""

_PROBE = """
declare double @llvm.fma.f64(double, double, double)
define double @probe(double %x, double %y, double %z) {
  %r = call double @llvm.fma.f64(double %x, double %y, double %z)
  ret double %r
}
"""

_missing: WeakKeyDictionary[llvm.TargetMachine, bool] = WeakKeyDictionary()


def without_library_calls(text: str, machine: llvm.TargetMachine) -> str:
    """The text of a module, with functions of its own for `llvm.fma` if the machine has no instruction for it."""
    if "@llvm.fma." not in text or not _calls_library(machine):
        return text
    text = re.sub(r"^declare [^\n]*@llvm\.fma\.f(?:32|64)\([^\n]*\n", "", text, flags=re.M)
    return re.sub(r"@llvm\.fma\.(f32|f64)\(", r"@nbgrad.fma.\1(", text) + DEFINITIONS


def _calls_library(machine: llvm.TargetMachine) -> bool:
    """Whether LLVM makes a library call of `llvm.fma` for this machine: it does so in a module of one."""
    if machine not in _missing:
        module = llvm.parse_assembly(_PROBE)
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        # The name of the library's function alone, not within that of an instruction.
        _missing[machine] = re.search(r"(?<!\w)_?fma(?!\w)", machine.emit_assembly(module)) is not None
    return _missing[machine]
