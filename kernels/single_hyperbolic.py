"""sinh, cosh, their inverses, and functions made of logarithms, in float32 arithmetic.

In:  float32 scalars.  Out: a float32.  Who calls: the table in __init__.py, for dtype float32.
Branch-free, without library calls.  The methods are those of hyperbolic.py and logarithm.py with shorter polynomials.
"""

import math

import numpy as np

from .bits import fma, muladd, square_root, with_sign
from .single import (
    HALF,
    INFINITY,
    LN2,
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    NAN,
    ONE,
    ROUNDER,
    TWO,
    ZERO,
    exp,
    exp2,
    log,
    log_of_sum,
    log_tail,
    power_of_two,
)

f32 = np.float32
HUGE = f32(1e15)
# Twice this is still finite.
HALF_OF_LARGEST = f32(1e38)
# Squares of smaller numbers are nothing beside 1.
SMALL = f32(1e-4)


def parts(a):
    """(a, b, r, s - r, c) of hyperbolic.py's formulas divided by 2, for 0 <= x < 90."""
    n = muladd(a, LOG2_E, ROUNDER) - ROUNDER
    high = muladd(n, -LN2_HIGH, a)
    r = muladd(n, -LN2_LOW, high)
    rest = muladd(n, -LN2_LOW, high - r)
    grown = power_of_two(n - TWO)
    shrunk = power_of_two(-n - TWO) if n < f32(50.0) else ZERO
    z = r * r
    p = muladd(z, f32(0.008366543), f32(0.16666543))
    q = muladd(z, f32(0.0013935426), f32(0.04166646))
    c = muladd(z, muladd(z, q, HALF), r * rest)
    return grown - shrunk, grown + shrunk, r, muladd(z * r, p, rest), c


def sinh(x):
    """The hyperbolic sine: 1.1 ULP on the whole line."""
    a = abs(x)
    bounded = f32(89.6) if a > f32(89.6) else a
    difference, total, r, tail, c = parts(bounded)
    base = fma(total, r, difference)
    lost = fma(total, r, difference - base)
    result = TWO * (base + (lost + muladd(difference, c, total * tail)))
    return with_sign(result if a > f32(1e-30) else a, x)


def cosh(x):
    """The hyperbolic cosine: 1.8 ULP on the whole line."""
    a = abs(x)
    bounded = f32(89.6) if a > f32(89.6) else a
    difference, total, r, tail, c = parts(bounded)
    base = fma(difference, r, total)
    lost = fma(difference, r, total - base)
    return TWO * (base + (lost + muladd(total, c, difference * tail)))


def arcsinh(x):
    """log(x + sqrt(x**2 + 1)): 1.5 ULP on the whole line."""
    a = abs(x)
    huge = a > HUGE
    bounded = ONE if huge else a
    # The root as a pair, from the square as a pair.
    square = bounded * bounded
    square_rest = fma(bounded, bounded, -square)
    total = square + ONE
    large = square if square > ONE else ONE
    small = ONE if square > ONE else square
    lost = (large - total) + small + square_rest
    root = square_root(total)
    root_rest = (fma(-root, root, total) + lost) * HALF / root
    # x + sqrt(x**2 + 1) as a pair; its logarithm.
    high = root + bounded
    larger = root if root > bounded else bounded
    smaller = bounded if root > bounded else root
    low = ((larger - high) + smaller) + root_rest
    doubled = TWO * a if a < HALF_OF_LARGEST else a
    result = log_of_sum(doubled if huge else high, ZERO if huge else low)
    result = result if a < HALF_OF_LARGEST else result + LN2
    result = a if a < SMALL else result
    return with_sign(result if a < INFINITY else a, x)


def arccosh(x):
    """log(x + sqrt(x**2 - 1)): 1.5 ULP for x >= 1; NaN below."""
    huge = x > HUGE
    bounded = ONE if huge else x
    # The root of (x - 1) (x + 1) as a pair; x - 1 is exact where it matters.
    less = bounded - ONE
    more = bounded + ONE
    more_rest = bounded - (more - ONE)
    product = less * more
    product_rest = fma(less, more, -product) + less * more_rest
    root = square_root(product)
    root_rest = (fma(-root, root, product) + product_rest) * HALF / (root + f32(1e-30))
    high = bounded + root
    low = ((bounded - high) + root) + root_rest
    doubled = TWO * x if x < HALF_OF_LARGEST else x
    result = log_of_sum(doubled if huge else high, ZERO if huge else low)
    result = result if x < HALF_OF_LARGEST else result + LN2
    result = result if x >= ONE else NAN
    return x if x == INFINITY else result


def arctanh(x):
    """log((1 + x) / (1 - x)) / 2: 1.5 ULP; infinite at 1, NaN beyond."""
    a = abs(x)
    above = ONE + a
    above_rest = a - (above - ONE)
    below = ONE - a
    below_rest = (ONE - below) - a
    below = below if below > ZERO else ONE
    inverse = ONE / below
    ratio = above * inverse
    error = fma(-ratio, below, above) + muladd(-ratio, below_rest, above_rest)
    result = HALF * log_of_sum(ratio, error * inverse)
    result = a if a < SMALL else result
    result = INFINITY if a == ONE else result
    return with_sign(result if a <= ONE else NAN, x)


def logit(x):
    """log(x / (1 - x)): 1.5 ULP; infinite at 0 and 1, NaN outside."""
    # Below 1e-30 the logarithm is that of x; 2**60 x is not subnormal.
    tiny = x < f32(1e-30)
    below = ONE - x
    below_rest = (ONE - below) - x
    safe = below if below > ZERO else ONE
    inverse = ONE / safe
    above = x * f32(2.0**60) if tiny else x
    ratio = above * inverse
    error = muladd(-ratio, below_rest, fma(-ratio, safe, above)) * inverse
    result = log_of_sum(ratio, error) - (f32(41.588830833596715) if tiny else ZERO)
    result = INFINITY if x == ONE else result
    result = -INFINITY if x == ZERO else result
    return result if (x >= ZERO) & (x <= ONE) else NAN


def log_of_one_plus(e):
    """log(1 + e): 0.9 ULP for 0 <= e <= 1."""
    # (1 + e) / 2 where that is closer to 1.
    halved = e > f32(0.41421357)
    f = muladd(HALF, e, -HALF) if halved else e
    square = HALF * f * f
    low = (LN2_LOW if halved else ZERO) + log_tail(f, ONE + f, square)
    return (LN2_HIGH if halved else ZERO) + (f - (square - low))


def logaddexp(x, y):
    """log(e**x + e**y) without overflow: 2 ULP of the larger operand, 1.9 ULP where the result is larger still."""
    gap = x - y
    larger = x if gap > ZERO else y
    result = larger + log_of_one_plus(exp(-abs(gap)))
    # Equal infinities, or NaN.
    return (x if x == y else gap) if math.isnan(gap) else result


def logaddexp2(x, y):
    """log2(2**x + 2**y) without overflow: 2 ULP of the larger operand."""
    gap = x - y
    larger = x if gap > ZERO else y
    result = larger + LOG2_E * log_of_one_plus(exp2(-abs(gap)))
    result = x + ONE if gap == ZERO else result
    return (x if x == y else gap) if math.isnan(gap) else result


def xlogy(x, y):
    """x log(y), and 0 where x is 0 (unless y is NaN): 2 ULP."""
    product = x * log(y)
    return ZERO if (x == ZERO) & (not math.isnan(y)) else product
