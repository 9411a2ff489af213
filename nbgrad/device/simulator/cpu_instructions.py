"""The approximate instructions of GPUs (kernels/approximate.py) for this machine's CPU.

In: the text of a kernel. Out: IR that defines those that it calls. Called by cpu_dialect.py. They are computed in
double and rounded, so a simulated kernel is more precise than a real one; a test sets `ERRORS` to be as imprecise as
the documentation allows.
"""

from __future__ import annotations

from ...compiler.scalars import kernel_module
from ..kernels.dialect import called

ERRORS: str | None = None
"""None, or how results are off by their bounds: "up", "down", or "mixed", by a bit of the operand."""

_NAME = "nbgrad.approximate.{}.f32"
_BODIES = {
    "exp2": """
  %w = fpext float %f to double
  %y = call double @nbgrad.wide.exp2(double %w)
  %r = fptrunc double %y to float""",
    "log2": """
  %w = fpext float %f to double
  %y = call double @nbgrad.wide.log2(double %w)
  %r = fptrunc double %y to float""",
    "reciprocal": "\n  %r = fdiv float 1.0, %f",
    "rsqrt": """
  %w = fpext float %x to double
  %q = call double @llvm.sqrt.f64(double %w)
  %y = fdiv double 1.0, %q
  %r = fptrunc double %y to float""",
    "normal_rsqrt": """
  %w = fpext float %f to double
  %q = call double @llvm.sqrt.f64(double %w)
  %y = fdiv double 1.0, %q
  %r = fptrunc double %y to float""",
}
_FLUSHED = frozenset(["exp2", "log2", "reciprocal", "normal_rsqrt"])
"""Instructions for which subnormal numbers count as zero."""
_MULADD = """
define internal float @nbgrad.approximate.muladd.f32(float %x, float %y, float %z) alwaysinline {
  %s = call float @llvm.fma.f32(float %x, float %y, float %z)
  %above = fcmp ogt float %s, 0.0
  %low = select i1 %above, float %s, float 0.0
  %below = fcmp olt float %low, 1.0
  %r = select i1 %below, float %low, float 1.0
  ret float %r
}
"""
_HELPERS = """
define internal float @nbgrad.flushed(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %tiny = fcmp olt float %size, 0x3810000000000000
  %zero = call float @llvm.copysign.f32(float 0.0, float %x)
  %r = select i1 %tiny, float %zero, float %x
  ret float %r
}
declare float @llvm.fabs.f32(float)
declare float @llvm.copysign.f32(float, float)
declare float @llvm.fma.f32(float, float, float)
declare double @llvm.sqrt.f64(double)
"""


def definitions(text: str) -> str:
    """IR of the instructions that a text calls; it may call functions that `dialect.complete` defines."""
    used = called(text)
    parts = [_definition(name) for name in _BODIES if _NAME.format(name) in used]
    if _NAME.format("muladd") in used:
        parts.append(_MULADD)
    return "".join([*parts, _HELPERS]) if parts else ""


def _definition(name: str) -> str:
    flushed = name in _FLUSHED
    given = "%f" if flushed else "%x"
    lines = f"\ndefine internal float @{_NAME.format(name)}(float %x) alwaysinline {{"
    lines += "\n  %f = call float @nbgrad.flushed(float %x)" if flushed else ""
    lines += _BODIES[name] + _error(name, given)
    return lines + (
        "\n  %e = call float @nbgrad.flushed(float %o)\n  ret float %e\n}" if flushed else "\n  ret float %o\n}"
    )


def _error(name: str, given: str) -> str:
    """From %r to %o: off by the largest documented error. Special values are documented to be exact."""
    if ERRORS is None:
        return "\n  %o = fadd float %r, -0.0"
    bounds = kernel_module("approximate")
    sign = {"up": "add i32 1, 0", "down": "add i32 -1, 0", "mixed": "sub i32 %twice, 1"}[ERRORS]
    if name == "log2":
        change = f"""
  %large = fcmp ogt float %size.r, 1.0
  %scale = select i1 %large, float %size.r, float 1.0
  %error = fmul float %scale, {bounds.LOG2_BOUND}
  %sign.float = sitofp i32 %sign to float
  %other = call float @llvm.fma.f32(float %error, float %sign.float, float %r)"""
    else:
        change = f"""
  %change = mul i32 %sign, {bounds.BOUNDS[name]}
  %bits = bitcast float %r to i32
  %moved = add i32 %bits, %change
  %other = bitcast i32 %moved to float"""
    return f"""
  %given = bitcast float {given} to i32
  %spread = mul i32 %given, -1640531527
  %bit = lshr i32 %spread, 31
  %twice = shl i32 %bit, 1
  %sign = {sign}
  %size.r = call float @llvm.fabs.f32(float %r)
  %size.x = call float @llvm.fabs.f32(float {given}){change}
  %normal = fcmp ogt float %size.r, 0x3820000000000000
  %finite = fcmp olt float %size.r, 0x47EFFFFF00000000
  %nonzero = fcmp ogt float %size.x, 0.0
  %ordinary = and i1 %normal, %finite
  %inexact = and i1 %ordinary, %nonzero
  %o = select i1 %inexact, float %other, float %r"""
