"""sin, cos and tan of float64 numbers.

In:  a float64 in radians.  Out: a float64; NaN for infinities.  Who calls: the table in __init__.py.
x = n pi / 2 + r is reduced with pi / 2 in three parts (Cody and Waite, with fused multiply-add) to a pair r + low that
is good to 2**-120, then polynomials as in fdlibm's k_sin.c and k_cos.c (Chebyshev interpolation in 60 digits).  All
of this is branch-free.  Only where |x| exceeds 2**30, or is not finite, a function with more digits of pi is called for
that element alone, behind a branch with which loops still vectorise (see intrinsics.py).
"""

from .bits import float64_to_int64, fma, int64_to_float64, muladd, rare_cos, rare_sin, rare_tan

TWO_OVER_PI = 0.6366197723675814
HALF_PI = 1.5707963267948966
HALF_PI_SECOND = 6.123233995736766e-17
HALF_PI_THIRD = -1.4973849048591698e-33
# Adding 1.5 * 2**52 rounds to a whole number and leaves it in the low bits.
ROUNDER = 6755399441055744.0
LARGEST_REDUCED = 1073741824.0


def reduce_angle(x):
    """(quadrant bits, r, low) with x = n pi / 2 + r + low, |r| <= 0.79; the bits end in those of n."""
    shifted = muladd(x, TWO_OVER_PI, ROUNDER)
    n = shifted - ROUNDER
    # Exact: a multiple of 2**-53 below 1.
    first = fma(-n, HALF_PI, x)
    second = n * HALF_PI_SECOND
    r = first - second
    low = ((first - r) - second) - fma(n, HALF_PI_SECOND, -second)
    return float64_to_int64(shifted), r, muladd(-n, HALF_PI_THIRD, low)


def sine_part(r, low):
    """sin(r + low) - r."""
    z = r * r
    p = muladd(z, 1.5915316089588854e-10, -2.5051092417084502e-08)
    p = muladd(z, p, 2.7557315911537272e-06)
    p = muladd(z, p, -0.0001984126983638678)
    p = muladd(z, p, 0.0083333333333307)
    p = muladd(z, p, -0.16666666666666666)
    return muladd(z * r, p, muladd(-0.5 * z, low, low))


def cosine_part(r, low):
    """(h, c) with cos(r + low) = h + c, |c| at most half an ULP of 1 plus r**4 / 24."""
    z = r * r
    p = muladd(z, -1.1380872011237785e-11, 2.0876121595015522e-09)
    p = muladd(z, p, -2.755731715219148e-07)
    p = muladd(z, p, 2.4801587298533006e-05)
    p = muladd(z, p, -0.0013888888888887241)
    p = muladd(z, p, 0.041666666666666664)
    half = 0.5 * z
    high = 1.0 - half
    lost = (1.0 - high) - half
    return high, lost + muladd(z * z, p, fma(-0.5 * r, r, half) - r * low)


def sin(x):
    """The sine: 0.9 ULP up to 2**30, 1.0 ULP beyond."""
    quadrant, r, low = reduce_angle(x)
    high, rest = cosine_part(r, low)
    value = high + rest if quadrant & 1 else r + sine_part(r, low)
    result = int64_to_float64(float64_to_int64(value) ^ ((quadrant & 2) << 62))
    result = x if x == 0.0 else result
    if not abs(x) <= LARGEST_REDUCED:
        result = rare_sin(x)
    return result


def cos(x):
    """The cosine: 0.9 ULP up to 2**30, 1.0 ULP beyond."""
    quadrant, r, low = reduce_angle(x)
    high, rest = cosine_part(r, low)
    value = r + sine_part(r, low) if quadrant & 1 else high + rest
    result = int64_to_float64(float64_to_int64(value) ^ (((quadrant + 1) & 2) << 62))
    if not abs(x) <= LARGEST_REDUCED:
        result = rare_cos(x)
    return result


def tan(x):
    """The tangent: 1.0 ULP up to 2**30, 1.4 ULP beyond; a quotient of pairs."""
    quadrant, r, low = reduce_angle(x)
    part = sine_part(r, low)
    sine = r + part
    sine_rest = (r - sine) + part
    high, rest = cosine_part(r, low)
    cosine = high + rest
    cosine_rest = (high - cosine) + rest
    odd = (quadrant & 1) != 0
    above = -cosine if odd else sine
    above_rest = -cosine_rest if odd else sine_rest
    below = sine if odd else cosine
    below_rest = sine_rest if odd else cosine_rest
    inverse = 1.0 / below
    ratio = above * inverse
    error = fma(-ratio, below, above) + muladd(-ratio, below_rest, above_rest)
    result = muladd(error, inverse, ratio)
    result = x if abs(x) < 1e-300 else result
    if not abs(x) <= LARGEST_REDUCED:
        result = rare_tan(x)
    return result
