"""arcsin, arccos, arctan and arctan2 of float64 numbers.

In:  float64 scalars.  Out: an angle in radians; NaN outside the domain.  Who calls: the table in __init__.py.
Branch-free, without library calls, so that loops over them vectorise.  The reductions are those of fdlibm's e_asin.c
and of Cephes' atan.c (Moshier); the polynomials come from Chebyshev interpolation in 60 digits.
"""

import math

from .bits import fma, muladd, square_root, with_sign

HALF_PI = 1.5707963267948966
HALF_PI_REST = 6.123233995736766e-17
QUARTER_PI = 0.7853981633974483
QUARTER_PI_REST = 3.061616997868383e-17
PI = 3.141592653589793
PI_REST = 1.2246467991473532e-16
# Keeps a division of zero by zero from being one, and changes no other float of interest.
TINY = 1e-300
TAN_EIGHTH_PI = 0.41421356237309503


def arcsin_tail(z):
    """(arcsin(x) - x) / x for z = x**2 <= 1/4."""
    p = muladd(z, 0.028378686449840543, -0.011030889608557972)
    p = muladd(z, p, 0.016199152840445038)
    p = muladd(z, p, 0.007749300055871743)
    p = muladd(z, p, 0.011886406701919202)
    p = muladd(z, p, 0.013928228461830651)
    p = muladd(z, p, 0.017355379238156842)
    p = muladd(z, p, 0.022372041412248148)
    p = muladd(z, p, 0.030381947556017117)
    p = muladd(z, p, 0.04464285710048538)
    p = muladd(z, p, 0.07500000000022543)
    p = muladd(z, p, 0.16666666666666646)
    return z * p


def arctan_tail(t):
    """arctan(t) - t for |t| <= tan(pi / 8)."""
    z = t * t
    p = muladd(z, -0.019187738709819418, 0.039241636415908866)
    p = muladd(z, p, -0.05085838124468131)
    p = muladd(z, p, 0.05858232320831037)
    p = muladd(z, p, -0.06664522239632623)
    p = muladd(z, p, 0.07692184052871426)
    p = muladd(z, p, -0.09090904619951323)
    p = muladd(z, p, 0.11111111016419961)
    p = muladd(z, p, -0.14285714284682957)
    p = muladd(z, p, 0.1999999999999561)
    p = muladd(z, p, -0.3333333333333333)
    return t * z * p


def arcsin(x):
    """The angle from -pi/2 to pi/2 whose sine is x: 1.1 ULP."""
    a = abs(x)
    outer = a > 0.5
    z = fma(-0.5, a, 0.5) if outer else a * a
    root = square_root(z)
    s = root if outer else a
    rest = fma(-root, root, z) * 0.5 / (root + TINY) if outer else 0.0
    tail = muladd(s, arcsin_tail(z), rest)
    result = HALF_PI - 2.0 * s
    lost = (HALF_PI - result) - 2.0 * s
    large = result + (lost + (HALF_PI_REST - 2.0 * tail))
    return with_sign(large if outer else s + tail, x)


def arccos(x):
    """The angle from 0 to pi whose cosine is x: 1.1 ULP."""
    a = abs(x)
    outer = a > 0.5
    z = fma(-0.5, a, 0.5) if outer else a * a
    root = square_root(z)
    s = root if outer else x
    rest = fma(-root, root, z) * 0.5 / (root + TINY) if outer else 0.0
    tail = muladd(s, arcsin_tail(z), rest)
    # The angle is base + factor * (s + tail).
    negative = outer & (x < 0.0)
    factor = (-2.0 if negative else 2.0) if outer else -1.0
    base = (PI if negative else 0.0) if outer else HALF_PI
    base_rest = (PI_REST if negative else 0.0) if outer else HALF_PI_REST
    main = factor * s
    result = base + main
    lost = (base - result) + main
    lost = lost if base > 0.0 else 0.0
    return result + (lost + muladd(factor, tail, base_rest))


def arctan(x):
    """The angle from -pi/2 to pi/2 whose tangent is x: 1.9 ULP."""
    a = abs(x)
    inner = a <= TAN_EIGHTH_PI
    outer = a > 1.0 / TAN_EIGHTH_PI
    above = a if inner else (-1.0 if outer else a - 1.0)
    below = 1.0 if inner else (a if outer else a + 1.0)
    base = 0.0 if inner else (HALF_PI if outer else QUARTER_PI)
    base_rest = 0.0 if inner else (HALF_PI_REST if outer else QUARTER_PI_REST)
    t = above / below
    return with_sign(base + (t + (base_rest + arctan_tail(t))), x)


def arctan2(y, x):
    """The angle of the point (x, y), from -pi to pi: 0.8 ULP, with the signs of C's atan2 at zeros and infinities."""
    rise = abs(y)
    run = abs(x)
    steep = rise > run
    small = run if steep else rise
    large = rise if steep else run
    # Keep the sums below finite and the products normal.
    scale = 2.0**-600 if large > 2.0**600 else (2.0**600 if large < 2.0**-400 else 1.0)
    infinite = large == math.inf
    small = (1.0 if small == math.inf else 0.0) if infinite else small * scale
    large = 1.0 if infinite else large * scale
    # arctan(small / large) is arctan(t), or pi/4 + arctan(t) with t = (small - large) / (small + large) in the middle.
    middle = small > TAN_EIGHTH_PI * large
    above = small - large if middle else small
    below = small + large if middle else large
    above_rest = (small - (above + large)) if middle else 0.0
    below_rest = ((large - below) + small) if middle else 0.0
    inverse = 1.0 / (below if below > 0.0 else 1.0)
    t = above * inverse
    rest = muladd(-t, below_rest, fma(-t, below, above) + above_rest) * inverse
    tail = arctan_tail(t) + muladd(-t * t, rest, rest)
    base = QUARTER_PI if middle else 0.0
    base_rest = QUARTER_PI_REST if middle else 0.0
    # The angle is corner + sign * (base + t).
    backward = with_sign(1.0, x) < 0.0
    sign = -1.0 if steep != backward else 1.0
    corner = HALF_PI if steep else (PI if backward else 0.0)
    corner_rest = HALF_PI_REST if steep else (PI_REST if backward else 0.0)
    total = muladd(sign, base, corner)
    total_rest = muladd(sign, base_rest, corner_rest)
    angle = muladd(sign, t, total)
    lost = muladd(sign, t, total - angle) if total > 0.0 else 0.0
    result = angle + (lost + muladd(sign, tail, total_rest))
    result = x + y if math.isnan(x) | math.isnan(y) else result
    return with_sign(result, y)
