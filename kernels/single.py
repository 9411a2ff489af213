"""The common elementary functions in float32 arithmetic, for loops of twice the width.

In:  a float32.  Out: a float32.  Who calls: the table in __init__.py, for dtype float32.
Branch-free, without library calls.  The methods are those of the float64 kernels (exponential.py, logarithm.py,
trigonometric.py, hyperbolic.py, error_function.py) with shorter polynomials.  Every literal is a float32: a bare
Python float would turn the arithmetic into float64.  single_angles.py and single_hyperbolic.py have the rest; gamma
functions, powers and erfc run in float64 (widened.py).
"""

import math

import numpy as np

from .bits import (
    exponent_of,
    float32_to_int32,
    fma,
    fraction_of,
    int32_to_float32,
    muladd,
    rare_cos,
    rare_sin,
    times_two_to,
    with_sign,
)

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
EXPONENT_ROUNDER = f32(12583039.0)
SQRT_TWO = f32(1.4142135)
# What a float's bits lose with half its size.
HALVED = 0x800000
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


def exp_parts(x):
    """(y, n) with e**x = y 2**n, for -104.5 <= x <= 89."""
    n = muladd(x, LOG2_E, ROUNDER) - ROUNDER
    r = muladd(n, -LN2_LOW, muladd(n, -LN2_HIGH, x))
    return muladd(r * r, exp_tail(r), r) + ONE, n


def exp(x):
    """e**x: 1.1 ULP on the whole line."""
    x = f32(-104.5) if x < f32(-104.5) else x
    y, n = exp_parts(f32(89.0) if x > f32(89.0) else x)
    return times_two_to(y, n)


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


def log_tail(f, m, square):
    """log(m) - f + square for m = 1 + f from sqrt(1/2) to sqrt(2) and square = f**2 / 2; logarithm.py's formula."""
    s = f / (ONE + m)
    z = s * s
    p = muladd(z, f32(0.29871863), f32(0.39977536))
    p = muladd(z, p, f32(0.66666776))
    return s * muladd(z, p, square)


def split(x):
    """(k, m) with x = 2**k m, m from sqrt(1/2) to sqrt(2), of positive x; logarithm.py tells of other numbers."""
    k = exponent_of(x)
    m = fraction_of(x)
    large = m > SQRT_TWO
    # Half of m by its bits: processors have more units for sums of whole numbers than for products.
    halved = int32_to_float32(float32_to_int32(m) - np.int32(HALVED if large else 0))
    return (k + ONE if large else k), halved


def log(x):
    """The natural logarithm: 1.0 ULP for all positive numbers."""
    k, m = split(x)
    f = m - ONE
    square = HALF * f * f
    low = muladd(k, LN2_LOW, log_tail(f, m, square))
    return muladd(k, LN2_HIGH, f - (square - low))


def fraction_parts(m):
    """log(m) as the sum of two floats, for m from sqrt(1/2) to sqrt(2)."""
    f = m - ONE
    minus = -HALF * f
    square = -minus * f
    high = f - square
    return high, ((f - high) - square) + fma(minus, f, square) + log_tail(f, m, square)


def log2(x):
    """The logarithm to base 2: 1.0 ULP for all positive numbers."""
    k, m = split(x)
    high, low = fraction_parts(m)
    # What is added to k is at most 1/2, so that its rounding is half of that of a sum.
    return k + muladd(high, LOG2_E, muladd(low, LOG2_E, high * LOG2_E_LOW))


def log10(x):
    """The logarithm to base 10: 1.0 ULP for all positive numbers."""
    k, m = split(x)
    high, low = fraction_parts(m)
    base = k * LOG10_2
    total = fma(high, LOG10_E, base)
    gone = base - total
    gone = gone if gone > -ONE else -ONE
    rest = muladd(high, LOG10_E_LOW, k * LOG10_2_LOW)
    return total + (fma(high, LOG10_E, gone) + muladd(low, LOG10_E, rest))


def exp2(x):
    """2**x: 1.1 ULP on the whole line."""
    x = f32(-151.0) if x < f32(-151.0) else x
    x = f32(129.0) if x > f32(129.0) else x
    n = (x + ROUNDER) - ROUNDER
    rest = x - n
    r = rest * LN2
    low = muladd(rest, LN2_REST, fma(rest, LN2, -r))
    y = (muladd(r * r, exp_tail(r), low) + r) + ONE
    return times_two_to(y, n)


def log_of_sum(total, lost):
    """log(total + lost) for |lost| at most an ULP of total: 1.2 ULP, also near 1, where `lost` decides.

    As `log` where total is not positive and finite, whatever `lost` is.
    """
    k, m = split(total)
    lost = times_two_to(lost, -k) if abs(k) < INFINITY else ZERO
    high = m - ONE
    f = high + lost
    rest = (high - f) + lost
    square = HALF * f * f
    low = muladd(k, LN2_LOW, log_tail(f, m, square)) + muladd(-f, rest, rest)
    return muladd(k, LN2_HIGH, f - (square - low))


def log1p(x):
    """log(1 + x): 1.2 ULP for x >= -1."""
    total = ONE + x
    part = total - x
    lost = (x - (total - part)) + (ONE - part)
    # The sign is that of x, also of a zero.
    return with_sign(log_of_sum(total, lost), x)


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
    """The cube root: 0.6 ULP on the whole line.

    w and w**(-1/3) = r as in power.py, by a longer polynomial (error 2**-20).  A root of 12 bits has an exact square,
    and what is missing from w divided by 3 / r**2 is d - d**2 r, where d is what is missing from the root.
    """
    a = abs(x)
    m = fraction_of(a)
    k = exponent_of(a)
    q = muladd(k, THIRD, ROUNDER) - ROUNDER
    j = muladd(q, -f32(3.0), k)
    w = times_two_to(m, j)
    r = muladd(m, f32(0.010388389), f32(-0.11040847))
    r = muladd(m, r, f32(0.50198746))
    r = muladd(m, r, f32(-1.2733554))
    r = muladd(m, r, f32(1.9769827))
    r = muladd(m, r, f32(-1.985377))
    r = muladd(m, r, f32(1.8797812))
    r = r * muladd(j, muladd(j, f32(0.026810788), f32(-0.23311026)), ONE)
    square = r * r
    root = int32_to_float32(np.int32(float32_to_int32(w * square) + 0x800) & -0x1000)
    d = fma(-root * root, root, w) * THIRD * square
    root = root + muladd(d * d, r, d)
    result = with_sign(times_two_to(root, q), x)
    # Zero, infinity and NaN.
    return result if abs(k) < INFINITY else x
