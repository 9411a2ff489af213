"""sinh, cosh, tanh and their inverses for float64 numbers.

In:  a float64.  Out: a float64; NaN outside the domain.  Who calls: the table in __init__.py.
Branch-free, without library calls, so that loops over them vectorise.  x = n log 2 + r as for exp; with c = cosh(r) - 1
and s = sinh(r), both polynomials (Chebyshev interpolation in 60 digits), sinh(x) = a (1 + c) + b s and
cosh(x) = b (1 + c) + a s, where a and b are (2**n -+ 2**-n) / 2.  The leading products are kept to twice the precision.
"""

import math

from .bits import fma, muladd, square_root, with_sign
from .exponential import LN2_HIGH, LN2_LOW, LOG2_E, ROUNDER, exp_tail, power_of_two
from .logarithm import log_of_sum


def parts(a):
    """(a, b, r, s - r, c) of the module's formulas divided by 2, for 0 <= x < 710.7."""
    n = muladd(a, LOG2_E, ROUNDER) - ROUNDER
    high = muladd(n, -LN2_HIGH, a)
    r = muladd(n, -LN2_LOW, high)
    rest = muladd(n, -LN2_LOW, high - r)
    grown = power_of_two(n - 2.0)
    shrunk = power_of_two(-n - 2.0) if n < 100.0 else 0.0
    z = r * r
    p = muladd(z, 2.5100473199074727e-08, 2.7557268275236702e-06)
    p = muladd(z, p, 0.00019841269863172812)
    p = muladd(z, p, 0.008333333333330037)
    p = muladd(z, p, 0.16666666666666669)
    q = muladd(z, 2.0911299199227972e-09, 2.7557282837757543e-07)
    q = muladd(z, q, 2.4801587317229506e-05)
    q = muladd(z, q, 0.0013888888888886535)
    q = muladd(z, q, 0.041666666666666664)
    c = muladd(z, muladd(z, q, 0.5), r * rest)
    return grown - shrunk, grown + shrunk, r, muladd(z * r, p, rest), c


def sinh(x):
    """The hyperbolic sine: 1.3 ULP on the whole line."""
    a = abs(x)
    bounded = min(a, 710.6)
    difference, total, r, tail, c = parts(bounded)
    base = fma(total, r, difference)
    lost = fma(total, r, difference - base)
    result = 2.0 * (base + (lost + muladd(difference, c, total * tail)))
    return with_sign(result if a > 1e-100 else a, x)


def cosh(x):
    """The hyperbolic cosine: 1.3 ULP on the whole line."""
    a = abs(x)
    a = min(a, 710.6)
    difference, total, r, tail, c = parts(a)
    base = fma(difference, r, total)
    lost = fma(difference, r, total - base)
    return 2.0 * (base + (lost + muladd(total, c, difference * tail)))


def tanh(x):
    """The hyperbolic tangent: 1.1 ULP on the whole line; E / (E + 2) with E = e**(2 |x|) - 1 as a pair."""
    a = 2.0 * abs(x)
    a = min(a, 44.0)
    n = muladd(a, LOG2_E, ROUNDER) - ROUNDER
    high = muladd(n, -LN2_HIGH, a)
    r = muladd(n, -LN2_LOW, high)
    rest = muladd(n, -LN2_LOW, high - r)
    grown = power_of_two(n)
    base = muladd(grown, r, grown - 1.0)
    lost = muladd(grown, r, (grown - 1.0) - base)
    lost = muladd(grown, muladd(r * r, exp_tail(r), rest), lost)
    above = base + lost
    above_rest = (base - above) + lost
    below = above + 2.0
    below_rest = (2.0 - below) + above + above_rest
    inverse = 1.0 / below
    ratio = above * inverse
    error = muladd(-ratio, below_rest, fma(-ratio, below, above)) + above_rest
    return with_sign(muladd(error, inverse, ratio), x)


def arcsinh(x):
    """log(x + sqrt(x**2 + 1)): 1.5 ULP on the whole line."""
    a = abs(x)
    huge = a > 1e150
    bounded = 1.0 if huge else a
    # The root as a pair, from the square as a pair.
    square = bounded * bounded
    square_rest = fma(bounded, bounded, -square)
    total = square + 1.0
    large = max(square, 1.0)
    lost = (large - total) + min(square, 1.0) + square_rest
    root = square_root(total)
    root_rest = (fma(-root, root, total) + lost) * 0.5 / root
    # x + sqrt(x**2 + 1) as a pair; its logarithm.
    high = root + bounded
    low = ((root - high) + bounded) + root_rest
    result = log_of_sum(
        2.0 * a if (a > 1e150) & (a < 1e300) else (a if huge else high),
        0.0 if huge else low,
    )
    result = result + math.log(2.0) if a >= 1e300 else result
    result = a if a < 1e-8 else result
    return with_sign(result if a < math.inf else a, x)


def arccosh(x):
    """log(x + sqrt(x**2 - 1)): 1.5 ULP for x >= 1; NaN below."""
    huge = x > 1e150
    bounded = 1.0 if huge else x
    # The root of (x - 1) (x + 1) as a pair; x - 1 is exact where it matters.
    less = bounded - 1.0
    more = bounded + 1.0
    more_rest = bounded - (more - 1.0)
    product = less * more
    product_rest = fma(less, more, -product) + less * more_rest
    root = square_root(product)
    root_rest = (fma(-root, root, product) + product_rest) * 0.5 / (root + 1e-300)
    high = bounded + root
    low = ((bounded - high) + root) + root_rest
    result = log_of_sum(2.0 * x if huge & (x < 1e300) else (x if huge else high), 0.0 if huge else low)
    result = result + math.log(2.0) if x >= 1e300 else result
    result = result if x >= 1.0 else math.nan
    return x if math.isinf(x) & (x > 0.0) else result


def arctanh(x):
    """log((1 + x) / (1 - x)) / 2: 1.5 ULP; infinite at 1, NaN beyond."""
    a = abs(x)
    above = 1.0 + a
    above_rest = a - (above - 1.0)
    below = 1.0 - a
    below_rest = (1.0 - below) - a
    below = below if below > 0.0 else 1.0
    inverse = 1.0 / below
    ratio = above * inverse
    error = fma(-ratio, below, above) + muladd(-ratio, below_rest, above_rest)
    result = 0.5 * log_of_sum(ratio, error * inverse)
    result = a if a < 1e-8 else result
    result = math.inf if a == 1.0 else result
    return with_sign(result if a <= 1.0 else math.nan, x)
