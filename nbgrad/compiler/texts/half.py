"""float16 where the CPU, or LLVM, has no instruction for it: the conversions that LLVM calls as library functions.

In: a module's IR text. Out: the text, with internal functions that have the names that LLVM expects, if it uses
float16; a module that defines them needs no such library, which not every system has. Called by text_passes.py. The
conversions are exact or round to nearest, ties to even; from double through a float rounded to odd, so that only the
last rounding counts.
"""

from __future__ import annotations

import re

_KEPT = re.compile(r'^@llvm\.compiler\.used = appending global \[\d+ x ptr\] \[(.*)\], section "llvm.metadata"$', re.M)


def with_conversions(text: str) -> str:
    """The text of a module with the conversions, if it uses float16."""
    if " half " not in text:
        return text
    # LLVM calls them only when it selects instructions; a module has one list of all that must last until then.
    kept = [f"ptr @{name}" for name in ("__truncsfhf2", "__truncdfhf2", "__extendhfsf2")]
    known = _KEPT.search(text)
    if known is not None:
        kept += known[1].split(", ")
        text = text[: known.start()] + text[known.end() :]
    used = f'@llvm.compiler.used = appending global [{len(kept)} x ptr] [{", ".join(kept)}], section "llvm.metadata"'
    return f"{text}{CONVERSIONS}\n{used}\n"


CONVERSIONS = """
define internal half @__truncsfhf2(float %value) {
  %all = bitcast float %value to i32
  %sign = and i32 %all, -2147483648
  %size = xor i32 %all, %sign
  %isnan = icmp ugt i32 %size, 2139095040
  %special = select i1 %isnan, i32 32256, i32 31744
  %large = icmp uge i32 %size, 1199570944
  %float = bitcast i32 %size to float
  %shifted = fadd float %float, 5.000000e-01
  %tiny = bitcast float %shifted to i32
  %subnormal = sub i32 %tiny, 1056964608
  %below = icmp ult i32 %size, 947912704
  %last = lshr i32 %size, 13
  %odd = and i32 %last, 1
  %rebased = add i32 %size, -939520001
  %rounded = add i32 %rebased, %odd
  %normal = lshr i32 %rounded, 13
  %small = select i1 %below, i32 %subnormal, i32 %normal
  %picked = select i1 %large, i32 %special, i32 %small
  %top = lshr i32 %sign, 16
  %both = or i32 %picked, %top
  %bits = trunc i32 %both to i16
  %result = bitcast i16 %bits to half
  ret half %result
}

define internal half @__truncdfhf2(double %value) {
  %near = fptrunc double %value to float
  %back = fpext float %near to double
  %inexact = fcmp one double %back, %value
  %bits = bitcast float %near to i32
  %positive = fcmp ogt double %value, 0.0
  %over = fcmp ogt double %back, %value
  %under = fcmp olt double %back, %value
  %above = select i1 %positive, i1 %over, i1 %under
  %one = zext i1 %above to i32
  %down = sub i32 %bits, %one
  %odd = or i32 %down, 1
  %picked = select i1 %inexact, i32 %odd, i32 %bits
  %single = bitcast i32 %picked to float
  %result = fptrunc float %single to half
  ret half %result
}

define internal float @__extendhfsf2(half %value) {
  %bits = bitcast half %value to i16
  %all = zext i16 %bits to i32
  %size = and i32 %all, 32767
  %shifted = shl i32 %size, 13
  %exponent = and i32 %shifted, 260046848
  %rebased = add i32 %shifted, 939524096
  %full = icmp eq i32 %exponent, 260046848
  %special = add i32 %rebased, 939524096
  %none = icmp eq i32 %exponent, 0
  %raised = add i32 %rebased, 8388608
  %float = bitcast i32 %raised to float
  %lowered = fsub float %float, 0x3F10000000000000
  %subnormal = bitcast float %lowered to i32
  %normal = select i1 %full, i32 %special, i32 %rebased
  %picked = select i1 %none, i32 %subnormal, i32 %normal
  %above = and i32 %all, 32768
  %sign = shl i32 %above, 16
  %both = or i32 %picked, %sign
  %result = bitcast i32 %both to float
  ret float %result
}
"""
