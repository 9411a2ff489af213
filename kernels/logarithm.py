"""Logarithms of float64: log, log2, log10, log1p, logaddexp, logaddexp2, logit, xlogy.

In:  float64 scalars.  Out: a float64.  Who calls: the table in __init__.py, and the inverse hyperbolic functions.
Branch-free, without library calls, so that loops over them vectorise.  The reduction is that of fdlibm's e_log.c:
x = 2**k m with m from sqrt(1/2) to sqrt(2), f = m - 1, s = f / (2 + f), log m = f - (f**2/2 - s (f**2/2 + R(s**2)));
the polynomial R comes from Chebyshev interpolation in 60 digits.
"""

import math

from .bits import exponent_of, float64_to_int64, fma, fraction_of, int64_to_float64, muladd, times_two_to, with_sign
from .exponential import LN2_HIGH, LN2_LOW, exp, exp2

SQRT_TWO = 1.4142135623730951
# What a float's bits lose with half its size.
HALVED = 0x10000000000000
INVERSE_LN2 = 1.4426950408889634
INVERSE_LN2_REST = 2.0355273740931033e-17
INVERSE_LN10 = 0.4342944819032518
INVERSE_LN10_REST = 1.098319650216765e-17
# So few bits that its products with exponents are exact; the rest is positive.
LOG10_2 = 0.30102999566395283
LOG10_2_REST = 2.8363394551044964e-14


def split(x):
    """(k, m) with x = 2**k m, m from sqrt(1/2) to sqrt(2), of positive x; k is a float.

    Other numbers have k and m for which the logarithms below are as they should be: k is infinite for 0 and infinity,
    m is NaN below zero, and one of them for NaN.
    """
    k = exponent_of(x)
    m = fraction_of(x)
    large = m > SQRT_TWO
    # Half of m by its bits: processors have more units for sums of whole numbers than for products.
    halved = int64_to_float64(float64_to_int64(m) - (HALVED if large else 0))
    return (k + 1.0 if large else k), halved


def log_tail(f, m, square):
    """s (f**2/2 + R) of the module's formula: log(m) is f - (square - this); m = 1 + f, square = f**2/2."""
    s = f / (1.0 + m)
    z = s * s
    fourth = z * z
    p01 = muladd(z, 0.3999999999989839, 0.666666666666667)
    p23 = muladd(z, 0.2222221106056441, 0.2857142862645262)
    p456 = muladd(fourth, 0.14618452072714802, muladd(z, 0.15331554743280912, 0.18182894320084278))
    p = muladd(fourth, muladd(fourth, p456, p23), p01)
    return s * muladd(z, p, square)


def log(x):
    """The natural logarithm: 0.9 ULP for all positive numbers."""
    k, m = split(x)
    f = m - 1.0
    square = 0.5 * f * f
    low = muladd(k, LN2_LOW, log_tail(f, m, square))
    return muladd(k, LN2_HIGH, f - (square - low))


def fraction_parts(m):
    """log(m) as the sum of two floats with an error of 2**-57, for m from sqrt(1/2) to sqrt(2)."""
    f = m - 1.0
    square = 0.5 * f * f
    high = f - square
    return high, ((f - high) - square) + fma(-0.5 * f, f, square) + log_tail(f, m, square)


def log_parts(x):
    """log(x) as the sum of two floats, for finite positive x."""
    k, m = split(x)
    high, low = fraction_parts(m)
    base = k * LN2_HIGH
    total = base + high
    return total, ((base - total) + high) + muladd(k, LN2_LOW, low)


def log_scaled(x, inverse, inverse_rest, unit, unit_rest):
    """log(x) times a constant (given in two parts), where 2 has the logarithm `unit` (given in two parts)."""
    k, m = split(x)
    high, low = fraction_parts(m)
    # The sum of both main terms, and what its rounding lost: exact, as the product is at most half of `unit`.
    base = k * unit
    total = fma(high, inverse, base)
    gone = base - total
    # Not NaN where k is infinite.
    gone = gone if gone > -1.0 else -1.0
    rest = muladd(high, inverse_rest, k * unit_rest)
    return total + (fma(high, inverse, gone) + muladd(low, inverse, rest))


def log2(x):
    """The logarithm to base 2: 0.8 ULP, exact at powers of two."""
    k, m = split(x)
    high, low = fraction_parts(m)
    total = fma(high, INVERSE_LN2, k)
    gone = k - total
    gone = gone if gone > -1.0 else -1.0
    return total + (fma(high, INVERSE_LN2, gone) + muladd(low, INVERSE_LN2, high * INVERSE_LN2_REST))


def log10(x):
    """The logarithm to base 10: 0.8 ULP, exact at powers of ten."""
    return log_scaled(x, INVERSE_LN10, INVERSE_LN10_REST, LOG10_2, LOG10_2_REST)


def log_of_sum(total, lost):
    """log(total + lost) for |lost| at most an ULP of total: 1.2 ULP, also near 1, where `lost` decides.

    As `log` where total is not positive and finite, whatever `lost` is.
    """
    k, m = split(total)
    lost = times_two_to(lost, -k) if abs(k) < math.inf else 0.0
    high = m - 1.0
    f = high + lost
    rest = (high - f) + lost
    square = 0.5 * f * f
    low = muladd(k, LN2_LOW, log_tail(f, m, square)) + muladd(-f, rest, rest)
    return muladd(k, LN2_HIGH, f - (square - low))


def log1p(x):
    """log(1 + x): 1.0 ULP for x >= -1."""
    total = 1.0 + x
    # What 1 + x lost, exactly (Knuth's two-sum).
    part = total - x
    lost = (x - (total - part)) + (1.0 - part)
    # The sign is that of x, also of a zero.
    return with_sign(log_of_sum(total, lost), x)


def log_of_one_plus(e):
    """log(1 + e): 0.9 ULP for 0 <= e <= 1."""
    # (1 + e) / 2 where that is closer to 1.
    halved = e > 0.4142135623730951
    f = muladd(0.5, e, -0.5) if halved else e
    square = 0.5 * f * f
    low = (LN2_LOW if halved else 0.0) + log_tail(f, 1.0 + f, square)
    return (LN2_HIGH if halved else 0.0) + (f - (square - low))


def logaddexp(x, y):
    """log(e**x + e**y) without overflow: 2 ULP of the larger operand, 1.9 ULP where the result is larger still."""
    gap = x - y
    larger = x if gap > 0.0 else y
    result = larger + log_of_one_plus(exp(-abs(gap)))
    # Equal infinities, or NaN.
    return (x if x == y else gap) if math.isnan(gap) else result


def logaddexp2(x, y):
    """log2(2**x + 2**y) without overflow: 2 ULP of the larger operand."""
    gap = x - y
    larger = x if gap > 0.0 else y
    result = larger + INVERSE_LN2 * log_of_one_plus(exp2(-abs(gap)))
    result = x + 1.0 if gap == 0.0 else result
    return (x if x == y else gap) if math.isnan(gap) else result


def logit(x):
    """log(x / (1 - x)): 1.2 ULP; infinite at 0 and 1, NaN outside."""
    # Below 1e-300 the logarithm is that of x; 2**100 x is not subnormal.
    tiny = x < 1e-300
    below = 1.0 - x
    below_rest = (1.0 - below) - x
    safe = below if below > 0.0 else 1.0
    inverse = 1.0 / safe
    above = x * 1.2676506002282294e30 if tiny else x
    ratio = above * inverse
    error = muladd(-ratio, below_rest, fma(-ratio, safe, above)) * inverse
    result = log_of_sum(ratio, error) - (69.31471805599453 if tiny else 0.0)
    result = math.inf if x == 1.0 else result
    result = -math.inf if x == 0.0 else result
    return result if (x >= 0.0) & (x <= 1.0) else math.nan


def xlogy(x, y):
    """x log(y), and 0 where x is 0 (unless y is NaN): 1.8 ULP."""
    product = x * log(y)
    return 0.0 if (x == 0.0) & (not math.isnan(y)) else product
