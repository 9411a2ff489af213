"""The elementary functions of float32 numbers on GPUs, where an instruction for 2**x, 1/x or 1/sqrt(x) is cheap.

In:  float32 numbers.  Out: a float32.  Who calls: nbgrad/device/kernels/device_scalars.py, for the functions in the
table `SCALARS`; all others are the CPU's kernels (single.py, widened.py).  The errors in the docstrings hold for the
largest documented errors of the instructions (approximate.py).  Polynomials are fitted for the least largest error,
with coefficients rounded one after the other.
"""

import math

import numpy as np

from ..approximate import (
    approximate_exp2,
    approximate_log2,
    approximate_reciprocal,
    approximate_rsqrt,
    saturated_muladd,
)
from ..bits import float32_to_int32, fma, int32_to_float32, muladd, with_sign
from .device_angles import cos, sin, tan

f32 = np.float32
ZERO = f32(0.0)
HALF = f32(0.5)
ONE = f32(1.0)
TWO = f32(2.0)
QUARTER = f32(0.25)
INFINITY = f32(math.inf)
NAN = f32(math.nan)
SMALLEST = f32(2.0**-126)
LARGEST = f32(3.4028235e38)
LOG2_E = f32(1.442695)
LOG2_E_LOW = f32(1.925963e-08)
LN2 = f32(0.6931472)
LN2_HIGH = f32(0.693145751953125)
LN2_LOW = f32(1.4286068e-06)
# 1.5 * 2**23 rounds to a whole number.
ROUNDER = f32(12582912.0)
STEPS = f32(252.0)
STEPS_INVERSE = f32(1.0 / 252.0)
LOG2_E_STEP = f32(1.4426950408889634 / 252.0)
FIRST_STEP = f32(12582912.0 + 1.0)
MIDDLE_STEP = f32(12582912.0 + 127.0)
TWO_THIRDS_BITS = 0x3F2AAAAB
SQRT_HALF_BITS = 0x3F3504F3
FOUR_BITS = 0x40800000
EXPONENT_MASK = -0x800000
SIGN = -0x80000000
INFINITY_BITS = 0x7F800000
UNIT = f32(2.0**-23)


def exp(x):
    """e**x: 3.7 ULP.  2**n 2**r, where n stays within -126 and 126 and r takes the rest: then the product rounds."""
    shifted = muladd(saturated_muladd(x, LOG2_E_STEP, HALF), STEPS, FIRST_STEP)
    n = shifted - MIDDLE_STEP
    r = fma(x, LOG2_E_LOW, fma(x, LOG2_E, -n))
    return approximate_exp2(r) * int32_to_float32(float32_to_int32(shifted) << 23)


def exp2(x):
    """2**x: 3.5 ULP, infinite from 128 on."""
    shifted = muladd(saturated_muladd(x, STEPS_INVERSE, HALF), STEPS, FIRST_STEP)
    r = x - (shifted - MIDDLE_STEP)
    result = approximate_exp2(r) * int32_to_float32(float32_to_int32(shifted) << 23)
    return INFINITY if x >= f32(128.0) else result


def exp_tail(r):
    """(exp(r) - 1 - r) / r**2 for |r| <= 0.347."""
    p = muladd(r, f32(0.001394155), f32(0.008369012))
    p = muladd(r, p, f32(0.041666392))
    p = muladd(r, p, f32(0.16666518))
    return muladd(r, p, HALF)


def expm1(x):
    """e**x - 1: 1.6 ULP."""
    bounded = min(max(x, f32(-20.0)), f32(89.0))
    shifted = fma(bounded, LOG2_E, ROUNDER + f32(126.0))
    n = shifted - (ROUNDER + f32(126.0))
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, bounded))
    p = muladd(r * r, exp_tail(r), r)
    # Half of 2**n, since 2**n overflows before the result does.
    half = int32_to_float32(float32_to_int32(shifted) << 23)
    result = TWO * fma(half, p, half - HALF)
    return result if abs(x) >= f32(1e-9) else x


def expit(x):
    """1 / (1 + e**-x): 2.4 ULP."""
    bounded = min(abs(x), f32(104.0))
    # With 2**(n + 64) nothing is subnormal before the last product.
    shifted = fma(bounded, -LOG2_E, ROUNDER + f32(64.0))
    n = shifted - (ROUNDER + f32(64.0))
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, -bounded))
    y = muladd(r, muladd(r, exp_tail(r), ONE), ONE)
    shrunk = int32_to_float32(float32_to_int32(y) + (float32_to_int32(shifted) << 23)) * f32(2.0**-64)
    total = ONE + shrunk
    above = ONE if x >= ZERO else shrunk
    inverse = approximate_reciprocal(total)
    ratio = above * inverse
    result = fma(fma(-ratio, total, above), inverse, ratio)
    return result if abs(x) <= INFINITY else x


def log_fraction(f):
    """log(1 + f) for |f| <= 1/3."""
    p = muladd(f, f32(-0.12883718), f32(0.13987412))
    p = muladd(f, p, f32(-0.12186025))
    p = muladd(f, p, f32(0.14005226))
    p = muladd(f, p, f32(-0.16680364))
    p = muladd(f, p, f32(0.20010449))
    p = muladd(f, p, f32(-0.249998))
    p = muladd(f, p, f32(0.33333215))
    p = muladd(f, p, f32(-0.5))
    return muladd(f * f, p, f)


def log_split(x):
    """(k, f, s) with x = 2**k (1 + f), |f| <= 1/3, for positive finite x; s has the sign and the class of x."""
    tiny = x < SMALLEST
    scaled = x * f32(8388608.0) if tiny else x
    i = float32_to_int32(scaled)
    shift = (i - TWO_THIRDS_BITS) & EXPONENT_MASK
    k = muladd(f32(np.int32(shift)), UNIT, f32(-23.0) if tiny else ZERO)
    return k, int32_to_float32(i - shift) - ONE, scaled


def is_ordinary(x):
    """Whether a number is positive and finite; of whole numbers LLVM makes one comparison."""
    i = float32_to_int32(x)
    return (i > 0) & (i < INFINITY_BITS)


def log(x):
    """The natural logarithm: 1.0 ULP."""
    k, f, scaled = log_split(x)
    special = approximate_log2(scaled)
    result = muladd(k, LN2, log_fraction(f))
    return result if is_ordinary(x) else special


def xlogy(x, y):
    """x log(y), and 0 where x is 0 (unless y is NaN): 2.0 ULP."""
    product = x * log(y)
    return ZERO if (x == ZERO) & (not math.isnan(y)) else product


def log2(x):
    """The logarithm to base 2: 1.9 ULP, exact at powers of two."""
    k, f, scaled = log_split(x)
    special = approximate_log2(scaled)
    result = muladd(log_fraction(f), LOG2_E, k)
    return result if is_ordinary(x) else special


def log10(x):
    """The logarithm to base 10: 2.6 ULP."""
    k, f, scaled = log_split(x)
    special = approximate_log2(scaled)
    result = muladd(
        k, f32(0.30102920532226562), muladd(log_fraction(f), f32(0.4342944819032518), k * f32(7.9034151668e-07))
    )
    return result if is_ordinary(x) else special


def log1p(x):
    """log(1 + x): 1.6 ULP."""
    total = ONE + x
    special = approximate_log2(total)
    shift = (float32_to_int32(total) - TWO_THIRDS_BITS) & EXPONENT_MASK
    # x 2**-k + (2**-k - 1), from 4 * 2**-k, which is never subnormal.
    rest = fma(int32_to_float32(FOUR_BITS - shift), QUARTER, -ONE)
    f = int32_to_float32(float32_to_int32(x) - shift) + rest
    k = f32(np.int32(shift)) * UNIT
    result = with_sign(muladd(k, LN2, log_fraction(f)), x)
    return result if is_ordinary(total) else special


def tanh(x):
    """The hyperbolic tangent: 3.1 ULP."""
    a = abs(x)
    large = fma(approximate_reciprocal(approximate_exp2(a * f32(2.8853900817779268)) + ONE), -TWO, ONE)
    z = a * a
    p = muladd(z, f32(0.0017455011), f32(-0.0076715946))
    p = muladd(z, p, f32(0.021460991))
    p = muladd(z, p, f32(-0.053895276))
    p = muladd(z, p, f32(0.13332726))
    p = muladd(z, p, f32(-0.33333316))
    small = muladd(z * a, p, a)
    return with_sign(large if a >= f32(0.75) else small, x)


def erf(x):
    """The error function: 1.8 ULP; 1 - 2**(|x| p(|x|)) from 1 on."""
    a = abs(x)
    p = muladd(a, f32(-2.0141171e-05), f32(0.00050577614))
    p = muladd(a, p, f32(-0.005420816))
    p = muladd(a, p, f32(0.03463906))
    p = muladd(a, p, f32(-0.1536914))
    p = muladd(a, p, f32(-0.9160675))
    p = muladd(a, p, f32(-1.6283617))
    large = ONE - approximate_exp2(a * p)
    z = a * a
    q = muladd(z, f32(-0.00055965927), f32(0.0049103037))
    q = muladd(z, q, f32(-0.02670629))
    q = muladd(z, q, f32(0.112800494))
    q = muladd(z, q, f32(-0.37612316))
    q = muladd(z, q, f32(0.12837912))
    return with_sign(large if a >= f32(1.0) else muladd(a, q, a), x)


def quarter_exp(x):
    """e**x / 4 for x >= 0: 1.2 ULP; finite where sinh and cosh are."""
    shifted = muladd(saturated_muladd(x, f32(1.4426950408889634 / 130.0), ZERO), f32(130.0), ROUNDER + f32(125.0))
    n = shifted - (ROUNDER + f32(125.0))
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, x))
    return muladd(r, muladd(r, exp_tail(r), ONE), ONE) * int32_to_float32(float32_to_int32(shifted) << 23)


def cosh(x):
    """The hyperbolic cosine: 1.5 ULP."""
    grown = quarter_exp(abs(x))
    return fma(approximate_reciprocal(grown), f32(0.125), TWO * grown)


def sinh(x):
    """The hyperbolic sine: 1.8 ULP."""
    a = abs(x)
    grown = quarter_exp(a)
    large = fma(approximate_reciprocal(grown), f32(-0.125), TWO * grown)
    z = a * a
    p = muladd(z, f32(2.783925e-06), f32(0.00019842635))
    p = muladd(z, p, f32(0.008333311))
    p = muladd(z, p, f32(0.16666667))
    return with_sign(large if a >= ONE else muladd(z * a, p, a), x)


def small_angle(t):
    """arctan(t) for 0 <= t <= 1."""
    z = t * t
    p = muladd(z, f32(-0.0018247393), f32(0.011053138))
    p = muladd(z, p, f32(-0.03143414))
    p = muladd(z, p, f32(0.058212325))
    p = muladd(z, p, f32(-0.08418121))
    p = muladd(z, p, f32(0.109571025))
    p = muladd(z, p, f32(-0.14265151))
    p = muladd(z, p, f32(0.1999863))
    p = muladd(z, p, f32(-0.33333302))
    return muladd(z * t, p, t)


def arctan(x):
    """The angle whose tangent is x: 2.5 ULP."""
    a = abs(x)
    inverse = approximate_reciprocal(a)
    angle = small_angle(inverse if a > ONE else a)
    return with_sign(f32(1.5707964) - angle if a > ONE else angle, x)


def arctan2(x, y):
    """The angle of the point (y, x), from -pi to pi: 2.0 ULP."""
    a = abs(x)
    b = abs(y)
    small = min(a, b)
    t = small / max(a, b)
    t = ZERO if small == ZERO else t
    t = ONE if small == INFINITY else t
    angle = small_angle(t)
    angle = f32(1.5707964) - angle if a > b else angle
    angle = f32(3.1415927) - angle if float32_to_int32(y) < 0 else angle
    return x + y if math.isnan(x) | math.isnan(y) else with_sign(angle, x)


def rsqrt(x):
    """1 / sqrt(x): 3.0 ULP."""
    return approximate_rsqrt(x)


def arcsine_tail(z):
    """(arcsin(s) / s - 1) / z for z = s**2 <= 1/4."""
    p = muladd(z, f32(0.04221852), f32(0.02414885))
    p = muladd(z, p, f32(0.04547653))
    p = muladd(z, p, f32(0.0749525))
    return muladd(z, p, f32(0.16666754))


def half_chord(a):
    """sqrt((1 - a) / 2), and its square, for 1/2 < a <= 1; NaN above."""
    z = fma(a, -HALF, HALF)
    inverse = approximate_rsqrt(z)
    s = z * inverse
    s = fma(fma(-s, s, z), HALF * inverse, s)
    return (s if z != ZERO else ZERO), z


def arcsin(x):
    """The angle whose sine is x: 2.4 ULP."""
    a = abs(x)
    s, z = half_chord(a)
    large = a > HALF
    s = s if large else a
    z = z if large else a * a
    angle = muladd(z * s, arcsine_tail(z), s)
    return with_sign(fma(angle, -TWO, f32(1.5707964)) if large else angle, x)


def arccos(x):
    """The angle whose cosine is x: 1.3 ULP."""
    a = abs(x)
    s, z = half_chord(a)
    large = a > HALF
    s = s if large else a
    z = z if large else a * a
    angle = muladd(z * s, arcsine_tail(z), s)
    positive = TWO * angle if large else f32(1.5707964) - angle
    negative = fma(angle, -TWO, f32(3.1415927)) if large else f32(1.5707964) + angle
    return positive if x >= ZERO else negative


def cbrt(x):
    """The cube root: 1.7 ULP; one step of Newton's method from 2**(log2(x) / 3)."""
    a = abs(x)
    tiny = a < SMALLEST
    scaled = a * f32(2.0**24) if tiny else a
    r = approximate_exp2(approximate_log2(scaled) * f32(1.0 / 3.0))
    step = fma(approximate_reciprocal(r * r), -scaled, r)
    r = fma(step, f32(-1.0 / 3.0), r)
    r = r * f32(2.0**-8) if tiny else r
    return with_sign(r, x) if (a > ZERO) & (a < INFINITY) else x


def power(x, y):
    """x**y: 2.4 ULP, with C's pow at zeros, infinities, NaN and negative numbers."""
    a = abs(x)
    tiny = a < SMALLEST
    scaled = a * f32(8388608.0) if tiny else a
    special = approximate_log2(scaled)
    i = float32_to_int32(scaled)
    exponent = (i - SQRT_HALF_BITS) & EXPONENT_MASK
    k = muladd(f32(np.int32(exponent)), UNIT, f32(-23.0) if tiny else ZERO)
    f = int32_to_float32(i - exponent) - ONE
    # log(1 + f) = q + q**3 / 12 + ... with q = 2 f / (2 + f), which is the sum of two floats, as its square is.
    inverse = approximate_reciprocal(TWO + f)
    q = TWO * f * inverse
    lost = inverse * fma(-q, f, TWO * (f - q))
    z = q * q
    p = muladd(z, f32(0.0006574379513040185), f32(0.00321813952177763))
    p = muladd(z, p, f32(0.018033714964985847))
    p = muladd(z, p, f32(0.12022458761930466))
    cube = muladd(q * p, fma(q, q, -z), q * p * z)
    high = q * LOG2_E
    low = fma(q, LOG2_E, -high) + muladd(lost, muladd(z, f32(0.36067376), LOG2_E), muladd(q, LOG2_E_LOW, cube))
    # The logarithm to base 2 as the sum of two floats.
    total = k + high
    low = ((k - total) + high) + low
    high = total + low
    low = (total - high) + low
    high = high if is_ordinary(a) else special
    # A finite exponent, so that (-1)**inf is 1.
    bounded = min(max(y, -LARGEST), LARGEST)
    product = bounded * high
    rest = muladd(bounded, low, fma(bounded, high, -product))
    rest = rest if abs(product) < f32(256.0) else ZERO
    product = min(max(product, f32(-160.0)), f32(130.0))
    shifted = product + ROUNDER
    r = (product - (shifted - ROUNDER)) + rest
    p = muladd(r, f32(0.00015461664588656276), f32(0.001339117530733347))
    p = muladd(r, p, f32(0.009618065319955349))
    p = muladd(r, p, f32(0.055503591895103455))
    p = muladd(r, p, f32(0.24022650718688965))
    p = muladd(r, p, f32(0.6931471824645996))
    p = muladd(r, p, ONE)
    # Two factors, since 2**n may be subnormal or infinite.
    negative = product < ZERO
    exponent = (float32_to_int32(shifted) << 23) + (0x20000000 if negative else -0x20000000)
    result = int32_to_float32(float32_to_int32(p) + exponent) * (f32(2.0**-64) if negative else f32(2.0**64))
    # Bit 0 of y, if y is a whole number, is bit 0 of |y| + 2**23; from 2**23 on it is its own.
    b = min(abs(y), f32(16777216.0))
    shift = ZERO if b >= f32(8388608.0) else f32(8388608.0)
    shifted = b + shift
    whole = shifted - shift == b
    sign = (float32_to_int32(shifted) << 31) & float32_to_int32(x) if whole else 0
    result = int32_to_float32(float32_to_int32(result) | (sign & SIGN))
    result = NAN if (x < ZERO) & (a < INFINITY) & (not whole) else result
    result = x + y if math.isnan(x) | math.isnan(y) else result
    return ONE if (y == ZERO) | (x == ONE) else result


SCALARS = {
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "expit": expit,
    "log": log,
    "log2": log2,
    "log10": log10,
    "log1p": log1p,
    "xlogy": xlogy,
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "arcsin": arcsin,
    "arccos": arccos,
    "arctan": arctan,
    "arctan2": arctan2,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "erf": erf,
    "rsqrt": rsqrt,
    "cbrt": cbrt,
    "power": power,
}
"""The primitives that have a kernel here, for float32."""
