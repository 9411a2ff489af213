"""Powers, cube roots and lengths of float64 numbers.

In:  float64 scalars.  Out: a float64.  Who calls: the table in __init__.py.
Branch-free, without library calls, so that loops over them vectorise.  x**y is 2**(y log2 x) with the logarithm as a
pair of floats good to 2**-62 (double-double arithmetic as in Dekker, "A floating-point technique for extending the
available precision", 1971, with fused multiply-add), since an error in it grows by |y log2 x| up to 1074.
"""

import math

from .bits import float64_to_int64, fma, int64_to_float64, muladd, square_root, with_sign
from .exponential import ROUNDER, power_of_two, times_power_of_two
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


def power_special(x, y, result):
    """`result`, which is |x|**y, with the sign and the exceptions of C's pow(x, y)."""
    a = abs(x)
    b = min(abs(y), 2.0 * WHOLE)
    # Bit 0 of y, if y is a whole number, is bit 0 of y + 2**52; from 2**52 on it is its own.
    shift = 0.0 if b >= WHOLE else WHOLE
    shifted = b + shift
    whole = shifted - shift == b
    sign = (float64_to_int64(shifted) << 63) & float64_to_int64(x) if whole else 0
    result = int64_to_float64(float64_to_int64(result) | (sign & SIGN_BIT))
    result = math.nan if (x < 0.0) & (a < math.inf) & (not whole) else result
    return 1.0 if (y == 0.0) | (x == 1.0) else result


def power(x, y):
    """x**y: 1.3 ULP, with C's pow at zeros, infinities, NaN and negative numbers."""
    a = abs(x)
    high, rest = log2_pair(a)
    # Zero, infinity and NaN have logarithms that send the product where it belongs.
    ordinary = (a > 0.0) & (a < math.inf)
    high = high if ordinary else (-math.inf if a == 0.0 else a)
    # A finite exponent, so that (-1)**inf is 1.
    bounded = min(max(y, -1e300), 1e300)
    product = bounded * high
    rest = muladd(bounded, rest, fma(bounded, high, -product))
    rest = rest if ordinary & (abs(product) < 1100.0) else 0.0
    product = max(product, -1080.0)
    product = min(product, 1030.0)
    n = (product + ROUNDER) - ROUNDER
    r = (product - n) + rest
    result = times_power_of_two(muladd(r, exp2_ratio(r), 1.0), n)
    return power_special(x, y, result)


def cbrt(x):
    """The cube root: 0.7 ULP on the whole line.

    x = 8**q w with w from 0.35 to 2.83; w**(-1/3) by a polynomial and two steps of fourth order (h is what is
    missing from 1, and (1 - h)**(-1/3) = 1 + h/3 + 2 h**2/9 + ...), and a last correction of the root itself.
    """
    a = abs(x)
    k, m = split(a)
    q = muladd(k, THIRD, ROUNDER) - ROUNDER
    w = m * power_of_two(k - 3.0 * q)
    r = muladd(w, 0.05050118643571321, -0.39976705911564786)
    r = muladd(w, r, 1.193484993667852)
    r = muladd(w, r, -1.73511466230081)
    r = muladd(w, r, 1.8847040711725191)
    h = fma(-w * r, r * r, 1.0)
    r = muladd(r * h, muladd(h, muladd(h, 0.1728395061728395, 0.2222222222222222), THIRD), r)
    h = fma(-w * r, r * r, 1.0)
    r = muladd(r * h, muladd(h, muladd(h, 0.1728395061728395, 0.2222222222222222), THIRD), r)
    root = w * r * r
    square = root * root
    missing = fma(-square, root, w) - fma(root, root, -square) * root
    root = fma(missing * THIRD, r * r, root)
    result = with_sign(root * power_of_two(q), x)
    return result if (a > 0.0) & (a < math.inf) else x


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
