"""The common elementary functions in float32 arithmetic, for loops of twice the width.

In:  a float32.  Out: a float32.  Who calls: the table in __init__.py, for dtype float32.
Branch-free, without library calls.  The methods are those of the float64 kernels (exponential.py, logarithm.py,
trigonometric.py, hyperbolic.py, error_function.py) with shorter polynomials.  Every literal is a float32: a bare
Python float would turn the arithmetic into float64.  single_angles.py and single_hyperbolic.py have the rest; gamma
functions, powers and erfc run in float64 (widened.py).
"""

import math

import numpy as np

from .bits import float32_to_int32, fma, int32_to_float32, muladd, rare_cos, rare_sin, with_sign

f32 = np.float32
LOG2_E = f32(1.442695)
LOG2_E_LOW = f32(1.925963e-08)
LOG10_E = f32(0.4342945)
LOG10_E_LOW = f32(-1.010305e-08)
# So few bits that its products with exponents are exact.
LOG10_2 = f32(0.301025390625)
LOG10_2_LOW = f32(4.605039e-06)
LN2 = f32(0.6931472)
LN2_REST = f32(-1.9046542e-09)
LN2_HIGH = f32(0.693145751953125)
LN2_LOW = f32(1.4286068e-06)
# 1.5 * 2**23 rounds to a whole number; 127 more makes it a biased exponent.
ROUNDER = f32(12582912.0)
ROUNDER_BITS = 0x4B400000
EXPONENT_ROUNDER = f32(12583039.0)
SQRT_HALF_BITS = 0x3F3504F3
EXPONENT_MASK = -0x800000
TWO_OVER_PI = f32(0.63661975)
HALF_PI = f32(1.5707964)
HALF_PI_SECOND = f32(-4.371139e-08)
HALF_PI_THIRD = f32(-1.7151245e-15)
LARGEST_REDUCED = f32(65536.0)
ZERO = f32(0.0)
HALF = f32(0.5)
ONE = f32(1.0)
TWO = f32(2.0)
THIRD = f32(0.33333334)
INFINITY = f32(math.inf)
NAN = f32(math.nan)
TINY = f32(1e-9)


def exp_tail(r):
    """(exp(r) - 1 - r) / r**2 for |r| <= 0.347."""
    p = muladd(r, f32(0.0013933734), f32(0.008363236))
    p = muladd(r, p, f32(0.041666463))
    p = muladd(r, p, f32(0.16666576))
    return muladd(r, p, HALF)


def power_of_two(n):
    """2**n for a whole n from -126 to 127."""
    return int32_to_float32(float32_to_int32(n + EXPONENT_ROUNDER) << 23)


def scaled_by_power(y, n):
    """y * 2**n for a whole n, in two steps, of which one may be too small or too large for a float32."""
    shifted = muladd(n, HALF, EXPONENT_ROUNDER)
    rest = n - (shifted - EXPONENT_ROUNDER)
    return y * int32_to_float32(float32_to_int32(shifted) << 23) * power_of_two(rest)


def exp_parts(x):
    """(y, n) with e**x = y 2**n, for -104.5 <= x <= 89."""
    n = muladd(x, LOG2_E, ROUNDER) - ROUNDER
    r = muladd(n, -LN2_LOW, muladd(n, -LN2_HIGH, x))
    return muladd(r * r, exp_tail(r), r) + ONE, n


def exp(x):
    """e**x: 1.1 ULP on the whole line."""
    x = f32(-104.5) if x < f32(-104.5) else x
    y, n = exp_parts(f32(89.0) if x > f32(89.0) else x)
    return scaled_by_power(y, n)


def expm1(x):
    """e**x - 1: 1.5 ULP on the whole line."""
    bounded = f32(-20.0) if x < f32(-20.0) else x
    bounded = f32(89.0) if bounded > f32(89.0) else bounded
    n = muladd(bounded, LOG2_E, ROUNDER) - ROUNDER
    high = muladd(n, -LN2_HIGH, bounded)
    r = muladd(n, -LN2_LOW, high)
    rest = muladd(n, -LN2_LOW, high - r)
    half = power_of_two(n - ONE)
    tail = muladd(r * r, exp_tail(r), rest)
    base = muladd(half, r, half - HALF)
    lost = muladd(half, r, (half - HALF) - base)
    result = TWO * (base + muladd(half, tail, lost))
    return x if abs(x) < TINY else result


def expit(x):
    """1 / (1 + e**-x): 1.6 ULP on the whole line."""
    shrunk = exp(-abs(x))
    total = ONE + shrunk
    lost = (ONE - total) + shrunk
    above = ONE if x >= ZERO else shrunk
    inverse = ONE / total
    ratio = above * inverse
    return muladd(muladd(-ratio, lost, fma(-ratio, total, above)), inverse, ratio)


def log_tail(f):
    """log(1 + f) - f + f**2/2, for f from -0.293 to 0.415: a polynomial, since a division takes longer."""
    p = muladd(f, f32(-0.076381996), f32(0.12764442))
    p = muladd(f, p, f32(-0.13160044))
    p = muladd(f, p, f32(0.14201292))
    p = muladd(f, p, f32(-0.16623326))
    p = muladd(f, p, f32(0.2000125))
    p = muladd(f, p, f32(-0.25000823))
    p = muladd(f, p, f32(0.3333333))
    return f * f * f * p


def log_special(x, result):
    """The logarithm of 0, infinity, NaN and negative numbers; `result` elsewhere."""
    result = result if x < INFINITY else x
    result = result if x > ZERO else NAN
    result = -INFINITY if x == ZERO else result
    return x if math.isnan(x) else result


def exponent_and_rest(x):
    """(k, f) with x = 2**k (1 + f), f from -0.293 to 0.415, of positive x."""
    tiny = x < f32(1.1754944e-38)
    i = float32_to_int32(x * f32(33554432.0) if tiny else x)
    # As 32 bits, so that nothing is computed with 64.
    shift = np.int32(i - SQRT_HALF_BITS) & EXPONENT_MASK
    k = int32_to_float32((shift >> 23) + ROUNDER_BITS) - ROUNDER
    return k - f32(25.0) if tiny else k, int32_to_float32(i - shift) - ONE


def log(x):
    """The natural logarithm: 1.0 ULP for all positive numbers."""
    k, f = exponent_and_rest(x)
    square = HALF * f * f
    low = muladd(k, LN2_LOW, log_tail(f))
    return log_special(x, muladd(k, LN2_HIGH, f - (square - low)))


def scaled_log(x, scale, scale_low, two, two_low):
    """The logarithm times scale + scale_low, where that of 2 is two + two_low: sums and products of pairs."""
    k, f = exponent_and_rest(x)
    square = HALF * f * f
    main = f - square
    rest = ((f - main) - square) + log_tail(f)
    part = main * scale
    part_low = fma(main, scale, -part) + muladd(main, scale_low, rest * scale)
    whole = k * two
    total = whole + part
    lost = (whole - total) + part
    return log_special(x, total + (lost + muladd(k, two_low, part_low)))


def log2(x):
    """The logarithm to base 2: 1.0 ULP for all positive numbers."""
    return scaled_log(x, LOG2_E, LOG2_E_LOW, ONE, ZERO)


def log10(x):
    """The logarithm to base 10: 1.0 ULP for all positive numbers."""
    return scaled_log(x, LOG10_E, LOG10_E_LOW, LOG10_2, LOG10_2_LOW)


def exp2(x):
    """2**x: 1.1 ULP on the whole line."""
    x = f32(-151.0) if x < f32(-151.0) else x
    x = f32(129.0) if x > f32(129.0) else x
    n = (x + ROUNDER) - ROUNDER
    rest = x - n
    r = rest * LN2
    low = muladd(rest, LN2_REST, fma(rest, LN2, -r))
    y = (muladd(r * r, exp_tail(r), low) + r) + ONE
    return scaled_by_power(y, n)


def log_of_sum(total, lost):
    """log(total + lost) for |lost| at most an ULP of total: 1.2 ULP, also near 1, where `lost` decides."""
    i = float32_to_int32(total)
    shift = np.int32(i - SQRT_HALF_BITS) & EXPONENT_MASK
    k = int32_to_float32((shift >> 23) + ROUNDER_BITS) - ROUNDER
    # lost * 2**-k; where the factor would overflow, it no longer matters.
    scale = int32_to_float32(0x3F800000 - shift)
    lost = lost * scale if abs(k) < f32(100.0) else ZERO
    high = int32_to_float32(i - shift) - ONE
    f = high + lost
    rest = (high - f) + lost
    square = HALF * f * f
    low = muladd(k, LN2_LOW, log_tail(f)) + muladd(-f, rest, rest)
    return muladd(k, LN2_HIGH, f - (square - low))


def log1p(x):
    """log(1 + x): 1.2 ULP for x >= -1."""
    total = ONE + x
    part = total - x
    lost = (x - (total - part)) + (ONE - part)
    result = log_special(total, log_of_sum(total, lost))
    return x if abs(x) < TINY else result


def reduce_angle(x):
    """(quadrant bits, r, low) with x = n pi / 2 + r + low, |r| <= 0.79; the bits end in those of n."""
    shifted = muladd(x, TWO_OVER_PI, ROUNDER)
    n = shifted - ROUNDER
    first = fma(-n, HALF_PI, x)
    second = n * HALF_PI_SECOND
    r = first - second
    low = ((first - r) - second) - fma(n, HALF_PI_SECOND, -second)
    return float32_to_int32(shifted), r, muladd(-n, HALF_PI_THIRD, low)


def sine_part(r, low):
    """sin(r + low) - r."""
    z = r * r
    p = muladd(z, f32(-0.00019582892), f32(0.008332725))
    p = muladd(z, p, f32(-0.16666664))
    return muladd(z * r, p, muladd(-HALF * z, low, low))


def cosine_part(r, low):
    """(h, c) with cos(r + low) = h + c."""
    z = r * r
    p = muladd(z, f32(2.4542922e-05), f32(-0.0013888279))
    p = muladd(z, p, f32(0.041666664))
    half = HALF * z
    high = ONE - half
    lost = (ONE - high) - half
    return high, lost + muladd(z * z, p, fma(-HALF * r, r, half) - r * low)


def sin(x):
    """The sine: 0.9 ULP on the whole line."""
    quadrant, r, low = reduce_angle(x)
    high, rest = cosine_part(r, low)
    value = high + rest if quadrant & 1 else r + sine_part(r, low)
    result = int32_to_float32(float32_to_int32(value) ^ ((quadrant & 2) << 30))
    result = x if x == ZERO else result
    if not abs(x) <= LARGEST_REDUCED:
        result = rare_sin(x)
    return result


def cos(x):
    """The cosine: 0.9 ULP on the whole line."""
    quadrant, r, low = reduce_angle(x)
    high, rest = cosine_part(r, low)
    value = r + sine_part(r, low) if quadrant & 1 else high + rest
    result = int32_to_float32(float32_to_int32(value) ^ (((quadrant + 1) & 2) << 30))
    if not abs(x) <= LARGEST_REDUCED:
        result = rare_cos(x)
    return result


def tanh(x):
    """The hyperbolic tangent: 1.5 ULP on the whole line."""
    a = abs(x)
    bounded = f32(10.0) if a > f32(10.0) else a
    y, n = exp_parts(TWO * bounded)
    large = ONE - TWO / muladd(y, power_of_two(n), ONE)
    z = x * x
    p = muladd(z, f32(-0.0060536973), f32(0.020968188))
    p = muladd(z, p, f32(-0.05384499))
    p = muladd(z, p, f32(0.13332734))
    p = muladd(z, p, f32(-0.33333328))
    return with_sign(muladd(z * a, p, a) if a < f32(0.625) else large, x)


def erf(x):
    """The error function: 1.7 ULP on the whole line."""
    a = abs(x)
    bounded = f32(4.0) if a > f32(4.0) else a
    t = (bounded - f32(1.5)) / (bounded + f32(1.5))
    p = muladd(t, f32(-0.0088700345), f32(-0.008343832))
    p = muladd(t, p, f32(0.04774179))
    p = muladd(t, p, f32(0.07563086))
    p = muladd(t, p, f32(-0.50784963))
    p = muladd(t, p, f32(0.9647562))
    large = ONE - exp(-bounded * bounded) * p / (bounded + f32(1.5))
    z = x * x
    q = muladd(z, f32(-0.00056518236), f32(0.004922764))
    q = muladd(z, q, f32(-0.026715985))
    q = muladd(z, q, f32(0.11280352))
    q = muladd(z, q, f32(-0.3761235))
    q = muladd(z, q, f32(0.12837912))
    return muladd(x, q, x) if a < ONE else with_sign(large, x)


def cbrt(x):
    """The cube root: 0.6 ULP on the whole line; power.py has the formula."""
    a = abs(x)
    k, f = exponent_and_rest(a)
    q = muladd(k, THIRD, ROUNDER) - ROUNDER
    w = (f + ONE) * power_of_two(k - f32(3.0) * q)
    r = muladd(w, f32(0.050501186), f32(-0.39976707))
    r = muladd(w, r, f32(1.193485))
    r = muladd(w, r, f32(-1.7351147))
    r = muladd(w, r, f32(1.884704))
    h = fma(-w * r, r * r, ONE)
    r = muladd(r * h, muladd(h, muladd(h, f32(0.17283951), f32(0.22222222)), THIRD), r)
    root = w * r * r
    square = root * root
    missing = fma(-square, root, w) - fma(root, root, -square) * root
    root = fma(missing * THIRD, r * r, root)
    result = with_sign(root * power_of_two(q), x)
    return result if (a > ZERO) & (a < INFINITY) else x
