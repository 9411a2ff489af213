"""sin, cos and tan of huge float64 angles: functions that a vectorised loop calls for single elements beyond 2**30.

In: nothing. Out: `REDUCTION`, and `DEFINITIONS`: IR of `nbgrad.huge.sin` and so on by the name of the library function
that each takes the place of. Called by scalars.py. C libraries reduce such angles with too few digits of pi for those
closest to its multiples (measured: 14 ULP). Here the bits of 2 / pi that matter are multiplied exactly (Payne and
Hanek, "Radian reduction for trigonometric functions", 1983): x = m 2**e with a whole m below 2**53; bits of 2 / pi that
are worth 2**(2 - e) or more only add whole turns, the next 256 leave an error of 2**-200. The library's functions then
see an angle below pi / 4, with a remainder: 1.4 ULP.
"""

from __future__ import annotations

# The table is 2 / pi in words of 64 bits, after one of zeros.
REDUCTION = """
@nbgrad.two.over.pi = internal constant [22 x i64] [
  i64 0, i64 -6703182060581546711, i64 -277156292786332224, i64 -2638381946312093631,
  i64 -121206125134887583, i64 -5249950069107600672, i64 452944820249399836, i64 -135693905287338178,
  i64 -1692731182770600828, i64 -1613291254968254911, i64 4148332274289687028, i64 -7168499653074671557,
  i64 2303758334597371919, i64 -1211730484530615009, i64 7869616827067468215, i64 5712322887342352941,
  i64 8441921394348257659, i64 4397547296490951402, i64 7780917995555872008, i64 6197850593633725355,
  i64 -1094449336203069923, i64 -6204956014196417784
]

declare i256 @llvm.ctlz.i256(i256, i1)
declare i256 @llvm.abs.i256(i256, i1)
declare i64 @llvm.fshl.i64(i64, i64, i64)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.fabs.f64(double)

define internal { i64, double, double } @nbgrad.huge.angle(double %x) noinline cold {
  %bits = bitcast double %x to i64
  %biased = lshr i64 %bits, 52
  %exponent = and i64 %biased, 2047
  %fraction = and i64 %bits, 4503599627370495
  %m = or i64 %fraction, 4503599627370496
  ; The window starts at the bit of 2 / pi that is worth 2**(1 - e): the (e + 62)-th of the table, e = exponent - 1075.
  %start = sub i64 %exponent, 1013
  %first = lshr i64 %start, 6
  %shift = and i64 %start, 63
  %at = getelementptr i64, ptr @nbgrad.two.over.pi, i64 %first
  %at1 = getelementptr i64, ptr %at, i64 1
  %at2 = getelementptr i64, ptr %at, i64 2
  %at3 = getelementptr i64, ptr %at, i64 3
  %at4 = getelementptr i64, ptr %at, i64 4
  %w0 = load i64, ptr %at
  %w1 = load i64, ptr %at1
  %w2 = load i64, ptr %at2
  %w3 = load i64, ptr %at3
  %w4 = load i64, ptr %at4
  %v0 = call i64 @llvm.fshl.i64(i64 %w0, i64 %w1, i64 %shift)
  %v1 = call i64 @llvm.fshl.i64(i64 %w1, i64 %w2, i64 %shift)
  %v2 = call i64 @llvm.fshl.i64(i64 %w2, i64 %w3, i64 %shift)
  %v3 = call i64 @llvm.fshl.i64(i64 %w3, i64 %w4, i64 %shift)
  %z0 = zext i64 %v0 to i256
  %z1 = zext i64 %v1 to i256
  %z2 = zext i64 %v2 to i256
  %z3 = zext i64 %v3 to i256
  %s0 = shl i256 %z0, 192
  %s1 = shl i256 %z1, 128
  %s2 = shl i256 %z2, 64
  %o1 = or i256 %s0, %s1
  %o2 = or i256 %s2, %z3
  %window = or i256 %o1, %o2
  %wide = zext i64 %m to i256
  ; x * 2 / pi modulo 4, in units of 2**-254.
  %quarters = mul i256 %window, %wide
  %top = lshr i256 %quarters, 253
  %halves = trunc i256 %top to i64
  %above = add i64 %halves, 1
  %nearest = lshr i64 %above, 1
  ; What is left of a quarter turn, from -1/2 to 1/2, in units of 2**-256.
  %rest = shl i256 %quarters, 2
  %negative = icmp slt i256 %rest, 0
  %size = call i256 @llvm.abs.i256(i256 %rest, i1 false)
  %zeros = call i256 @llvm.ctlz.i256(i256 %size, i1 false)
  %aligned = shl i256 %size, %zeros
  %high.bits = lshr i256 %aligned, 203
  %low.bits = lshr i256 %aligned, 150
  %high.int = trunc i256 %high.bits to i64
  %low.all = trunc i256 %low.bits to i64
  %low.int = and i64 %low.all, 9007199254740991
  %high = uitofp i64 %high.int to double
  %low.large = uitofp i64 %low.int to double
  %low = fmul double %low.large, 0x3CA0000000000000
  ; Times pi / 2, as a pair.
  %r = fmul double %high, 0x3FF921FB54442D18
  %minus = fneg double %r
  %lost = call double @llvm.fma.f64(double %high, double 0x3FF921FB54442D18, double %minus)
  %p1 = fmul double %high, 0x3C91A62633145C07
  %p2 = fmul double %low, 0x3FF921FB54442D18
  %p3 = fadd double %p1, %p2
  %r.low = fadd double %lost, %p3
  ; Times 2**(-53 - zeros), and the signs.
  %count = trunc i256 %zeros to i64
  %scale.exponent = sub i64 970, %count
  %scale.bits = shl i64 %scale.exponent, 52
  %scale.size = bitcast i64 %scale.bits to double
  %scale.minus = fneg double %scale.size
  %scale = select i1 %negative, double %scale.minus, double %scale.size
  %backwards = icmp slt i64 %bits, 0
  %turned = fneg double %scale
  %signed = select i1 %backwards, double %turned, double %scale
  %back = sub i64 0, %nearest
  %quadrant = select i1 %backwards, i64 %back, i64 %nearest
  %angle = fmul double %r, %signed
  %angle.low = fmul double %r.low, %signed
  %t0 = insertvalue { i64, double, double } poison, i64 %quadrant, 0
  %t1 = insertvalue { i64, double, double } %t0, double %angle, 1
  %t2 = insertvalue { i64, double, double } %t1, double %angle.low, 2
  ret { i64, double, double } %t2
}
"""

_OPENING = """
define internal double @nbgrad.huge.<NAME>(double %x) noinline cold {
entry:
  %magnitude = call double @llvm.fabs.f64(double %x)
  %finite = fcmp olt double %magnitude, 0x7FF0000000000000
  br i1 %finite, label %reduce, label %nan
nan:
  %nothing = fsub double %x, %x
  ret double %nothing
reduce:
  %all = call { i64, double, double } @nbgrad.huge.angle(double %x)
  %n = extractvalue { i64, double, double } %all, 0
  %r = extractvalue { i64, double, double } %all, 1
  %low = extractvalue { i64, double, double } %all, 2
"""

# The sine of the angle <TURN> quarter turns further on; sin(r + low) = sin(r) + low cos(r).
_SINE = """  %quadrant = add i64 %n, <TURN>
  %s = call double @sin(double %r)
  %c = call double @cos(double %r)
  %lc = fmul double %low, %c
  %ls = fmul double %low, %s
  %sine = fadd double %s, %lc
  %cosine = fsub double %c, %ls
  %one = and i64 %quadrant, 1
  %odd = icmp eq i64 %one, 1
  %value = select i1 %odd, double %cosine, double %sine
  %opposite = fneg double %value
  %two = and i64 %quadrant, 2
  %turned = icmp eq i64 %two, 2
  %result = select i1 %turned, double %opposite, double %value
  ret double %result
}
"""

# tan(r + low) = tan(r) + low (1 + tan(r)**2), and minus its reciprocal a quarter turn further on.
_TANGENT = """  %t = call double @tan(double %r)
  %square = fmul double %t, %t
  %slope = fadd double %square, 1.0
  %more = fmul double %low, %slope
  %tangent = fadd double %t, %more
  %tangent.first = fsub double %t, %tangent
  %tangent.rest = fadd double %tangent.first, %more
  %quotient = fdiv double -1.0, %tangent
  %missing = call double @llvm.fma.f64(double %quotient, double %tangent, double 1.0)
  %missing.rest = fmul double %quotient, %tangent.rest
  %missing.all = fadd double %missing, %missing.rest
  %inverse = call double @llvm.fma.f64(double %quotient, double %missing.all, double %quotient)
  %one = and i64 %n, 1
  %odd = icmp eq i64 %one, 1
  %result = select i1 %odd, double %inverse, double %tangent
  ret double %result
}
"""

DEFINITIONS = {
    "sin": (_OPENING + _SINE).replace("<NAME>", "sin").replace("<TURN>", "0"),
    "cos": (_OPENING + _SINE).replace("<NAME>", "cos").replace("<TURN>", "1"),
    "tan": (_OPENING + _TANGENT).replace("<NAME>", "tan"),
}


def texts_for(names: set[str]) -> list[str]:
    """The IR that calls of `nbgrad.huge.NAME` for these library functions need, with the functions that it calls."""
    used = [DEFINITIONS[name] for name in sorted(names & DEFINITIONS.keys())]
    calls = "\n".join(f"declare double @{name}(double)" for name in DEFINITIONS)
    return [REDUCTION, calls, *used] if used else []
