"""Logarithms of float64: log, log2, log10, log1p, logaddexp, logaddexp2, logit, xlogy.

In:  float64 scalars.  Out: a float64.  Who calls: the table in __init__.py, and the inverse hyperbolic functions.
Branch-free, without library calls, so that loops over them vectorise.  The reduction is that of fdlibm's e_log.c:
x = 2**k m with m from sqrt(1/2) to sqrt(2), f = m - 1, s = f / (2 + f), log m = f - (f**2/2 - s (f**2/2 + R(s**2)));
the polynomial R comes from Chebyshev interpolation in 60 digits.
"""

import math

from .bits import float64_to_int64, fma, int64_to_float64, muladd
from .exponential import LN2_HIGH, LN2_LOW, exp, exp2

SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
EXPONENT_MASK = -0x10000000000000
# The bits of 1.5 * 2**52, and that number: an integer k below 2**51 becomes a float by adding and subtracting these.
ROUNDER_BITS = 0x4338000000000000
ROUNDER = 6755399441055744.0
SMALLEST_NORMAL = 2.2250738585072014e-308
INVERSE_LN2 = 1.4426950408889634
INVERSE_LN2_REST = 2.0355273740931033e-17
INVERSE_LN10 = 0.4342944819032518
INVERSE_LN10_REST = 1.098319650216765e-17
LOG10_2 = 0.3010299956639812
LOG10_2_REST = -2.8037281277851704e-18


def split(x):
    """(k, m) with x = 2**k m, m from sqrt(1/2) to sqrt(2); x positive and finite, also subnormal; k is a float."""
    tiny = x < SMALLEST_NORMAL
    i = float64_to_int64(x * 18014398509481984.0 if tiny else x)
    shift = (i - SQRT_HALF_BITS) & EXPONENT_MASK
    k = int64_to_float64((shift >> 52) + ROUNDER_BITS) - ROUNDER
    return (k - 54.0 if tiny else k), int64_to_float64(i - shift)


def log_tail(f):
    """s (f**2/2 + R) of the module's formula: log(1 + f) is f - (f**2/2 - this); f from -0.293 to 0.415."""
    s = f / (2.0 + f)
    z = s * s
    square = z * z
    p01 = muladd(z, 0.3999999999989839, 0.666666666666667)
    p23 = muladd(z, 0.2222221106056441, 0.2857142862645262)
    p456 = muladd(square, 0.14618452072714802, muladd(z, 0.15331554743280912, 0.18182894320084278))
    p = muladd(square, muladd(square, p456, p23), p01)
    return s * muladd(z, p, 0.5 * f * f)


def log_special(x, result):
    """The logarithm of 0, infinity, NaN and negative numbers; `result` elsewhere."""
    result = result if x < math.inf else x
    result = result if x > 0.0 else math.nan
    result = -math.inf if x == 0.0 else result
    return x if math.isnan(x) else result


def log(x):
    """The natural logarithm: 0.9 ULP for all positive numbers."""
    k, m = split(x)
    f = m - 1.0
    square = 0.5 * f * f
    low = muladd(k, LN2_LOW, log_tail(f))
    return log_special(x, muladd(k, LN2_HIGH, f - (square - low)))


def fraction_parts(m):
    """log(m) as the sum of two floats with an error of 2**-57, for m from sqrt(1/2) to sqrt(2)."""
    f = m - 1.0
    square = 0.5 * f * f
    high = f - square
    return high, ((f - high) - square) + fma(-0.5 * f, f, square) + log_tail(f)


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
    product = high * inverse
    product_low = fma(high, inverse, -product) + muladd(low, inverse, high * inverse_rest)
    base = k * unit
    base_low = fma(k, unit, -base) + k * unit_rest
    total = base + product
    lost = (base - total) + product
    lost = lost if k != 0.0 else 0.0
    return log_special(x, total + (lost + (product_low + base_low)))


def log2(x):
    """The logarithm to base 2: 0.8 ULP, exact at powers of two."""
    return log_scaled(x, INVERSE_LN2, INVERSE_LN2_REST, 1.0, 0.0)


def log10(x):
    """The logarithm to base 10: 0.8 ULP, exact at powers of ten."""
    return log_scaled(x, INVERSE_LN10, INVERSE_LN10_REST, LOG10_2, LOG10_2_REST)


def log_of_sum(total, lost):
    """log(total + lost) for |lost| at most an ULP of total: 1.2 ULP, also near 1, where `lost` decides."""
    i = float64_to_int64(total)
    shift = (i - SQRT_HALF_BITS) & EXPONENT_MASK
    k = int64_to_float64((shift >> 52) + ROUNDER_BITS) - ROUNDER
    # lost * 2**-k; where the factor would overflow, it no longer matters.
    scale = int64_to_float64(0x3FF0000000000000 - shift)
    lost = lost * scale if abs(k) < 1000.0 else 0.0
    high = int64_to_float64(i - shift) - 1.0
    f = high + lost
    rest = (high - f) + lost
    square = 0.5 * f * f
    low = muladd(k, LN2_LOW, log_tail(f)) + muladd(-f, rest, rest)
    return muladd(k, LN2_HIGH, f - (square - low))


def log1p(x):
    """log(1 + x): 1.0 ULP for x >= -1."""
    total = 1.0 + x
    # What 1 + x lost, exactly (Knuth's two-sum).
    part = total - x
    lost = (x - (total - part)) + (1.0 - part)
    result = log_special(total, log_of_sum(total, lost))
    return x if abs(x) < 1e-16 else result


def log_of_one_plus(e):
    """log(1 + e): 0.9 ULP for 0 <= e <= 1."""
    # (1 + e) / 2 where that is closer to 1.
    halved = e > 0.4142135623730951
    f = muladd(0.5, e, -0.5) if halved else e
    square = 0.5 * f * f
    low = (LN2_LOW if halved else 0.0) + log_tail(f)
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
