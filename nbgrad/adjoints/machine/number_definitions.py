"""Functions of numbers in LLVM IR, which programs of derivatives begin with.

In: nothing. Out: `DEFINITIONS`. Called by program_code.py; number_code.py writes calls of these functions.
"""

_MODULO = """
define internal {kind} @nbgrad.modulo.{kind}({kind} %x, {kind} %y) alwaysinline {{
  %rest = frem {kind} %x, %y
  %zero = fcmp oeq {kind} %rest, 0.0
  %below = fcmp olt {kind} %rest, 0.0
  %negative = fcmp olt {kind} %y, 0.0
  %other = xor i1 %below, %negative
  %more = fadd {kind} %rest, %y
  %turned = select i1 %other, {kind} %more, {kind} %rest
  %signed = call {kind} @llvm.copysign.{short}({kind} 0.0, {kind} %y)
  %found = select i1 %zero, {kind} %signed, {kind} %turned
  ret {kind} %found
}}
define internal {kind} @nbgrad.quotient.{kind}({kind} %x, {kind} %y) alwaysinline {{
  %rest = frem {kind} %x, %y
  %part = fsub {kind} %x, %rest
  %exact = fdiv {kind} %part, %y
  %some = fcmp one {kind} %rest, 0.0
  %below = fcmp olt {kind} %rest, 0.0
  %negative = fcmp olt {kind} %y, 0.0
  %other = xor i1 %below, %negative
  %uneven = and i1 %some, %other
  %less = fsub {kind} %exact, 1.0
  %near = select i1 %uneven, {kind} %less, {kind} %exact
  %plain = fdiv {kind} %x, %y
  %whole = call {kind} @llvm.rint.{short}({kind} %near)
  %sign = call {kind} @llvm.copysign.{short}({kind} %whole, {kind} %plain)
  %zero = fcmp oeq {kind} %y, 0.0
  %found = select i1 %zero, {kind} %plain, {kind} %sign
  ret {kind} %found
}}
declare {kind} @llvm.copysign.{short}({kind}, {kind})
declare {kind} @llvm.rint.{short}({kind})
"""
"""Python's `%` and `//` of floats."""
_SORTED = """
define internal i64 @nbgrad.position(ptr %array, i64 %count, double %x, i1 %right) {
entry:
  br label %head
head:
  %low = phi i64 [0, %entry], [%low.next, %turn]
  %high = phi i64 [%count, %entry], [%high.next, %turn]
  %more = icmp slt i64 %low, %high
  br i1 %more, label %turn, label %end
turn:
  %sum = add i64 %low, %high
  %middle = lshr i64 %sum, 1
  %place = getelementptr double, ptr %array, i64 %middle
  %element = load double, ptr %place
  %above = fcmp ogt double %element, %x
  %from = fcmp oge double %element, %x
  %stop = select i1 %right, i1 %above, i1 %from
  %later = add i64 %middle, 1
  %low.next = select i1 %stop, i64 %low, i64 %later
  %high.next = select i1 %stop, i64 %middle, i64 %high
  br label %head
end:
  ret i64 %low
}
"""
"""The place of a number in a sorted array: before equal elements, or after them."""
DEFINITIONS = _MODULO.format(kind="double", short="f64") + _MODULO.format(kind="float", short="f32") + _SORTED
