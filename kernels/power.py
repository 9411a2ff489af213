"""Powers, cube roots and lengths of float64 numbers.

In:  float64 scalars.  Out: a float64.  Who calls: the table in __init__.py.
Branch-free, without library calls, so that loops over them vectorise.  x**y is 2**(y log2 x) with the logarithm as a
pair of floats good to 2**-62 (double-double arithmetic as in Dekker, "A floating-point technique for extending the
available precision", 1971, with fused multiply-add), since an error in it grows by |y log2 x| up to 1074.
"""

import math

from .bits import (
    exponent_of,
    float64_to_int64,
    fma,
    fraction_of,
    int64_to_float64,
    muladd,
    square_root,
    times_two_to,
    with_sign,
)
from .exponential import ROUNDER
from .logarithm import split

THIRD = 0.3333333333333333
# 2 / log(2) in two parts.
SERIES_START = 2.8853900817779268
SERIES_START_REST = 4.0710547481862066e-17
SIGN_BIT = -0x8000000000000000
# 2**52: larger floats are whole numbers; added to a smaller one it leaves a whole number in the low bits.
WHOLE = 4503599627370496.0


def log2_series(z):
    """(log2((1 + s) / (1 - s)) - 2 s / log(2)) / s**3 without its first term, for z = s**2 <= 0.0295."""
    square = z * z
    even = muladd(square, 0.19091307331034577, 0.22198717511333488)
    even = muladd(square, even, 0.3205989034674611)
    even = muladd(square, even, 0.5770780163556545)
    odd = muladd(square, 0.19119107227770474, 0.26230761863726576)
    odd = muladd(square, odd, 0.4121985830825036)
    return muladd(z, odd, even)


def log2_pair(x):
    """log2(x) as the sum of two floats, for finite positive x: relative error 2**-62."""
    k, m = split(x)
    f = m - 1.0
    below = m + 1.0
    below_rest = m - (below - 1.0)
    inverse = 1.0 / below
    s = f * inverse
    s_rest = muladd(-s, below_rest, fma(-s, below, f)) * inverse
    # log2(m) = s (C + z (D + z series(z))) with z = s**2, every factor as a pair.
    z = s * s
    z_rest = muladd(2.0 * s, s_rest, fma(s, s, -z))
    series = log2_series(z)
    t = muladd(z, series, 0.9617966939259756)
    t_rest = muladd(z, series, 0.9617966939259756 - t)
    u = z * t
    u_rest = muladd(z, t_rest, muladd(z_rest, t, fma(z, t, -u)))
    v = SERIES_START + u
    v_rest = ((SERIES_START - v) + u) + (u_rest + SERIES_START_REST)
    fraction = s * v
    fraction_rest = muladd(s_rest, v, muladd(s, v_rest, fma(s, v, -fraction)))
    high = k + fraction
    return high, ((k - high) + fraction) + fraction_rest


def exp2_ratio(r):
    """(2**r - 1) / r for |r| <= 0.5001."""
    square = r * r
    even = muladd(square, 4.4999767349953793e-10, 1.0177766416344299e-07)
    even = muladd(square, even, 1.5252734522947356e-05)
    even = muladd(square, even, 0.0013333558145730536)
    even = muladd(square, even, 0.0555041086648242)
    even = muladd(square, even, 0.6931471805599453)
    odd = muladd(square, 7.0743800432379116e-09, 1.3215431678537581e-06)
    odd = muladd(square, odd, 0.00015403530464460513)
    odd = muladd(square, odd, 0.009618129107588403)
    odd = muladd(square, odd, 0.24022650695910144)
    return muladd(r, odd, even)


def power_special(x, y, whole, shifted, result):
    """`result`, which is |x|**y where |x| is not 1, with the sign and the exceptions of C's pow(x, y).

    Whether y is a whole number is `whole`; bit 0 of it is then that of the bits of `shifted`.
    """
    result = 1.0 if (y == 0.0) | (abs(x) == 1.0) else result
    sign = (float64_to_int64(shifted) << 63) & float64_to_int64(x) if whole else 0
    result = int64_to_float64(float64_to_int64(result) | (sign & SIGN_BIT))
    negative = (x < 0.0) & (x > -math.inf)
    result = math.nan if negative & (not whole) else result
    return 1.0 if x == 1.0 else result


def power(x, y):
    """x**y: 1.3 ULP, with C's pow at zeros, infinities, NaN and negative numbers."""
    # Zero, infinity and NaN have logarithms that send the product where it belongs.
    high, rest = log2_pair(abs(x))
    exact = y * high
    product = max(exact, -1080.0)
    product = min(product, 1030.0)
    # The rest is NaN where the logarithm or the product is infinite.
    rest = muladd(y, rest, fma(y, high, -exact)) if product == exact else 0.0
    n = (product + ROUNDER) - ROUNDER
    r = (product - n) + rest
    result = times_two_to(muladd(r, exp2_ratio(r), 1.0), n)
    # Bit 0 of a whole number y is bit 0 of |y| + 2**52; from 2**52 on it is its own.
    b = min(abs(y), 2.0 * WHOLE)
    shift = 0.0 if b >= WHOLE else WHOLE
    shifted = b + shift
    return power_special(x, y, shifted - shift == b, shifted, result)


def cbrt(x):
    """The cube root: 0.7 ULP on the whole line.

    |x| = 8**q w with w = m 2**j, m from 1 to 2, and j = -1, 0 or 1; w**(-1/3) by a polynomial in m (minimax, error
    2**-12), times 2**(-j/3) by one in j, and a step of third order (h is what is missing from 1, and (1 - h)**(-1/3) =
    1 + h/3 + 2 h**2/9 + ...); then one of Newton's method for the root itself, where what is missing is a pair.
    """
    a = abs(x)
    m = fraction_of(a)
    k = exponent_of(a)
    q = muladd(k, THIRD, ROUNDER) - ROUNDER
    j = muladd(q, -3.0, k)
    w = times_two_to(m, j)
    r = muladd(m, -0.04993689536942642, 0.3177570907645207)
    r = muladd(m, r, -0.809960266654692)
    r = muladd(m, r, 1.5418869841557792)
    r = r * muladd(j, muladd(j, 0.026810787939486325, -0.2331102619553866), 1.0)
    h = fma(-w * r, r * r, 1.0)
    r = muladd(r * h, muladd(h, 0.2222222222222222, THIRD), r)
    square = r * r
    root = w * square
    high = root * root
    missing = fma(-high, root, w) - fma(root, root, -high) * root
    root = muladd(missing * THIRD, square, root)
    result = with_sign(times_two_to(root, q), x)
    # Zero, infinity and NaN.
    return result if abs(k) < math.inf else x


def hypot(x, y):
    """sqrt(x**2 + y**2) without overflow: 0.6 ULP; infinite if either is."""
    a = abs(x)
    b = abs(y)
    large = max(b, a)
    small = min(a, b)
    scale = 2.0**-600 if large > 2.0**500 else (2.0**600 if large < 2.0**-400 else 1.0)
    back = 2.0**600 if large > 2.0**500 else (2.0**-600 if large < 2.0**-400 else 1.0)
    u = large * scale
    v = small * scale
    square = u * u
    other = v * v
    total = square + other
    lost = ((square - total) + other) + (fma(u, u, -square) + fma(v, v, -other))
    root = square_root(total)
    correction = (fma(-root, root, total) + lost) * 0.5 / (root + 1e-300)
    result = (root + correction) * back
    result = a + b if math.isnan(a) | math.isnan(b) else result
    return math.inf if (a == math.inf) | (b == math.inf) else result
