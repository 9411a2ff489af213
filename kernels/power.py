"""Powers, cube roots and lengths of float64 numbers.

In:  float64 scalars.  Out: a float64.  Who calls: the table in __init__.py.
Branch-free, without library calls, so that loops over them vectorise.  x**y is exp(y log x) with the logarithm as a
pair of floats good to 2**-65 (double-double arithmetic as in Dekker, "A floating-point technique for extending the
available precision", 1971, with fused multiply-add), since an error in it grows by |y log x| up to 745.
"""

import math

from .bits import fma, round_to_even, round_to_zero, square_root, with_sign
from .exponential import LN2_HIGH, LN2_LOW, exp_pair, power_of_two
from .logarithm import split

THIRD = 0.3333333333333333
THIRD_REST = 1.850371707708594e-17


def log_pair(x):
    """log(x) as the sum of two floats, for finite positive x: relative error 2**-65."""
    k, m = split(x)
    f = m - 1.0
    below = m + 1.0
    below_rest = m - (below - 1.0)
    inverse = 1.0 / below
    s = f * inverse
    s_rest = (fma(-s, below, f) - s * below_rest) * inverse
    # log(m) / 2 = s + s z (1/3 + z (1/5 + ...)) with z = s**2.
    z = s * s
    z_rest = fma(s, s, -z) + 2.0 * s * s_rest
    square = z * z
    p01 = fma(z, 0.1428571428566878, 0.20000000000000015)
    p23 = fma(z, 0.09090904092411325, 0.11111111135753428)
    p456 = fma(square, 0.06457648165026292, fma(z, 0.06642908614180434, 0.07692789586482696))
    p = z * fma(square, fma(square, p456, p23), p01)
    c = THIRD + p
    c_rest = ((THIRD - c) + p) + THIRD_REST
    u = z * c
    u_rest = fma(z, c, -u) + fma(z, c_rest, z_rest * c)
    v = s * u
    v_rest = fma(s, u, -v) + fma(s, u_rest, s_rest * u)
    half = s + v
    half_rest = ((s - half) + v) + (s_rest + v_rest)
    base = k * LN2_HIGH
    total = fma(2.0, half, base)
    lost = fma(2.0, half, base - total)
    lost = lost + fma(2.0, half_rest, k * LN2_LOW)
    high = total + lost
    return high, (total - high) + lost


def power_special(x, y, result):
    """`result`, which is |x|**y, with the sign and the exceptions of C's pow(x, y)."""
    whole = round_to_zero(y) == y
    half = 0.5 * y
    odd = whole & (round_to_zero(half) != half)
    result = math.nan if (x < 0.0) & (x > -math.inf) & (not whole) else result
    result = with_sign(result, x) if odd else result
    result = math.nan if math.isnan(x) | math.isnan(y) else result
    return 1.0 if (y == 0.0) | (x == 1.0) | ((x == -1.0) & (abs(y) == math.inf)) else result


def power(x, y):
    """x**y: 1.0 ULP, with C's pow at zeros, infinities, NaN and negative numbers."""
    a = abs(x)
    high, rest = log_pair(a)
    # Zero and infinity have logarithms that send the product where it belongs.
    ordinary = (a > 0.0) & (a < math.inf)
    high = high if ordinary else (-math.inf if a == 0.0 else math.inf)
    product = y * high
    product_rest = fma(y, high, -product) + y * rest
    product_rest = product_rest if ordinary & (abs(product) < 800.0) else 0.0
    result = exp_pair(product, product_rest)
    return power_special(x, y, result)


def cbrt(x):
    """The cube root: 0.7 ULP on the whole line.

    x = 8**q w with w from 0.35 to 2.83; w**(-1/3) by a polynomial and two steps of fourth order (h is what is
    missing from 1, and (1 - h)**(-1/3) = 1 + h/3 + 2 h**2/9 + ...), and a last correction of the root itself.
    """
    a = abs(x)
    k, m = split(a)
    q = round_to_even(k * THIRD)
    w = m * power_of_two(k - 3.0 * q)
    r = fma(w, 0.05050118643571321, -0.39976705911564786)
    r = fma(w, r, 1.193484993667852)
    r = fma(w, r, -1.73511466230081)
    r = fma(w, r, 1.8847040711725191)
    h = fma(-w * r, r * r, 1.0)
    r = fma(r * h, fma(h, fma(h, 0.1728395061728395, 0.2222222222222222), THIRD), r)
    h = fma(-w * r, r * r, 1.0)
    r = fma(r * h, fma(h, fma(h, 0.1728395061728395, 0.2222222222222222), THIRD), r)
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
    correction = (fma(-root, root, total) + lost) * 0.5 / root if total > 0.0 else 0.0
    result = (root + correction) * back
    result = a + b if math.isnan(a) | math.isnan(b) else result
    return math.inf if (a == math.inf) | (b == math.inf) else result
