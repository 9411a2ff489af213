"""Exponentials of float64: exp, exp2, expm1, expit.

In:  a float64.  Out: a float64.  Who calls: the table in __init__.py, and the kernels built on exponentials.
Branch-free, without library calls, so that loops over them vectorise.  The method is that of Cody and Waite ("Software
Manual for the Elementary Functions"): x = n log 2 + r with |r| <= log(2) / 2, a polynomial in r (Chebyshev
interpolation in 60 digits), and a scaling by 2**n in two steps, so that subnormal results round once.
"""

from .bits import float64_to_int64, fma, int64_to_float64, muladd, times_two_to

LOG2_E = 1.4426950408889634
# log 2 in two parts; n * LN2_HIGH is exact for |n| < 2**20.
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
# log 2 rounded, and what the rounding left.
LN2 = 0.6931471805599453
LN2_REST = 2.3190468138462996e-17
# Adding 1.5 * 2**52 rounds to a whole number and leaves it in the low bits; 1023 more makes it a biased exponent.
ROUNDER = 6755399441055744.0
EXPONENT_ROUNDER = 6755399441056767.0


def exp_tail(r):
    """(exp(r) - 1 - r) / r**2 for |r| <= 0.347; error 2**-53."""
    square = r * r
    p01 = muladd(r, 0.1666666666666667, 0.5000000000000001)
    p23 = muladd(r, 0.008333333333326082, 0.04166666666662382)
    p45 = muladd(r, 0.00019841269875003973, 0.0013888888917368964)
    p67 = muladd(r, 2.7557255168123062e-06, 2.4801521055364205e-05)
    p89 = muladd(r, 2.5105313423078524e-08, 2.76202026313159e-07)
    high = muladd(square * square, p89, muladd(square, p67, p45))
    return muladd(square * square, high, muladd(square, p23, p01))


def power_of_two(n):
    """2**n for a whole n from -1022 to 1023."""
    return int64_to_float64(float64_to_int64(n + EXPONENT_ROUNDER) << 52)


def exp(x):
    """e**x: 1.1 ULP on the whole line."""
    x = max(x, -746.0)
    x = min(x, 710.0)
    n = muladd(x, LOG2_E, ROUNDER) - ROUNDER
    r = muladd(n, -LN2_LOW, muladd(n, -LN2_HIGH, x))
    return times_two_to(muladd(r * r, exp_tail(r), r) + 1.0, n)


def exp2(x):
    """2**x: 0.9 ULP on the whole line, exact at whole numbers."""
    x = max(x, -1076.0)
    x = min(x, 1025.0)
    n = (x + ROUNDER) - ROUNDER
    fraction = x - n
    r = fraction * LN2
    rest = fma(fraction, LN2, -r) + fraction * LN2_REST
    return times_two_to(muladd(r * r, exp_tail(r), rest) + r + 1.0, n)


def expm1(x):
    """e**x - 1: 1.6 ULP on the whole line."""
    bounded = max(x, -40.0)
    bounded = min(bounded, 710.0)
    n = muladd(bounded, LOG2_E, ROUNDER) - ROUNDER
    high = muladd(n, -LN2_HIGH, bounded)
    r = muladd(n, -LN2_LOW, high)
    rest = muladd(n, -LN2_LOW, high - r)
    # Half of 2**n, since 2**n overflows before the result does.
    half = power_of_two(n - 1.0)
    tail = muladd(r * r, exp_tail(r), rest)
    base = muladd(half, r, half - 0.5)
    lost = muladd(half, r, (half - 0.5) - base)
    result = 2.0 * (base + muladd(half, tail, lost))
    return x if abs(x) < 1e-16 else result


def exp_parts(x):
    """(y, rest, n) with e**x = (y + rest) * 2**n, error 2**-54, for -746 <= x <= 710."""
    n = muladd(x, LOG2_E, ROUNDER) - ROUNDER
    high = muladd(n, -LN2_HIGH, x)
    r = muladd(n, -LN2_LOW, high)
    more = muladd(r * r, exp_tail(r), muladd(n, -LN2_LOW, high - r))
    y = 1.0 + r
    rest = (1.0 - y) + r
    total = y + more
    return total, ((y - total) + more) + rest, n


def expit(x):
    """1 / (1 + e**-x): 1.6 ULP on the whole line."""
    shrunk = exp(-abs(x))
    total = 1.0 + shrunk
    lost = (1.0 - total) + shrunk
    above = 1.0 if x >= 0.0 else shrunk
    inverse = 1.0 / total
    ratio = above * inverse
    return muladd(muladd(-ratio, lost, fma(-ratio, total, above)), inverse, ratio)
