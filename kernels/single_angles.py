"""Angles and their tangents in float32 arithmetic: tan, arcsin, arccos, arctan, arctan2.

In:  float32 scalars.  Out: a float32.  Who calls: the table in __init__.py, for dtype float32.
Branch-free, without library calls.  The reductions are those of trigonometric.py and inverse_trigonometric.py; the
polynomials are minimax fits (Lawson's reweighted least squares, one coefficient rounded after the other).
"""

import math

import numpy as np

from .bits import fma, muladd, rare_tan, square_root, with_sign
from .single import HALF, LARGEST_REDUCED, ONE, TWO, ZERO, reduce_angle

f32 = np.float32
PI = f32(3.1415927)
PI_REST = f32(-8.742278e-08)
HALF_PI = f32(1.5707964)
HALF_PI_REST = f32(-4.371139e-08)
QUARTER_PI = f32(0.7853982)
QUARTER_PI_REST = f32(-2.1855694e-08)
INFINITY = f32(math.inf)


def tan(x):
    """The tangent: 1.8 ULP on the whole line."""
    quadrant, r, low = reduce_angle(x)
    z = r * r
    p = muladd(z, f32(0.009477199), f32(0.002954665))
    p = muladd(z, p, f32(0.024540782))
    p = muladd(z, p, f32(0.053377658))
    p = muladd(z, p, f32(0.13339245))
    p = muladd(z, p, f32(0.33333138))
    # tan(r + low) = r + tail; the slope of the tangent is 1 + tan(r)**2.
    tail = muladd(z * r, p, low)
    tangent = r + tail
    lost = (r - tangent) + tail
    odd = (quadrant & 1) != 0
    inverse = -ONE / tangent
    # What the rounded tangent and the division left.
    missing = muladd(inverse, lost, fma(inverse, tangent, ONE))
    result = muladd(inverse, missing, inverse) if odd else tangent
    result = x if x == ZERO else result
    if not abs(x) <= LARGEST_REDUCED:
        result = rare_tan(x)
    return result


def arcsin_tail(z):
    """(arcsin(x) - x) / x for z = x**2 <= 1/4."""
    p = muladd(z, f32(0.042211797), f32(0.024152093))
    p = muladd(z, p, f32(0.04547604))
    p = muladd(z, p, f32(0.07495252))
    p = muladd(z, p, f32(0.16666754))
    return z * p


def arcsin(x):
    """The angle from -pi/2 to pi/2 whose sine is x: 1.7 ULP."""
    a = abs(x)
    outer = a > HALF
    z = fma(-HALF, a, HALF) if outer else a * a
    s = square_root(z) if outer else a
    tail = s * arcsin_tail(z)
    large = HALF_PI - (TWO * s - muladd(-TWO, tail, HALF_PI_REST))
    return with_sign(large if outer else s + tail, x)


def arccos(x):
    """The angle from 0 to pi whose cosine is x: 1.2 ULP."""
    a = abs(x)
    outer = a > HALF
    z = fma(-HALF, a, HALF) if outer else a * a
    s = square_root(z) if outer else x
    tail = s * arcsin_tail(z)
    # The angle is base + factor * (s + tail).
    negative = outer & (x < ZERO)
    factor = (-TWO if negative else TWO) if outer else -ONE
    base = (PI if negative else ZERO) if outer else HALF_PI
    base_rest = (PI_REST if negative else ZERO) if outer else HALF_PI_REST
    return base + (factor * s + muladd(factor, tail, base_rest))


def arctan_tail(t):
    """arctan(t) - t for |t| <= 1/2."""
    z = t * t
    p = muladd(z, f32(-0.05138324), f32(0.10163606))
    p = muladd(z, p, f32(-0.14175783))
    p = muladd(z, p, f32(0.19994292))
    p = muladd(z, p, f32(-0.33333236))
    return t * z * p


def arctan(x):
    """The angle from -pi/2 to pi/2 whose tangent is x: 1.4 ULP."""
    a = abs(x)
    inner = a <= HALF
    outer = a > TWO
    above = a if inner else (-ONE if outer else a - ONE)
    below = ONE if inner else (a if outer else a + ONE)
    base = ZERO if inner else (HALF_PI if outer else QUARTER_PI)
    base_rest = ZERO if inner else (HALF_PI_REST if outer else QUARTER_PI_REST)
    t = above / below
    return with_sign(base + (t + (base_rest + arctan_tail(t))), x)


def arctan2(y, x):
    """The angle of the point (x, y), from -pi to pi: 1.6 ULP, with the signs of C's atan2 at zeros and infinities."""
    rise = abs(y)
    run = abs(x)
    steep = rise > run
    small = run if steep else rise
    large = rise if steep else run
    # Keep the sums below finite; where this makes the smaller one subnormal, their ratio is below the smallest float.
    scale = f32(2.0**-24) if large > f32(2.0**100) else ONE
    infinite = large == INFINITY
    small = (ONE if small == INFINITY else ZERO) if infinite else small * scale
    large = ONE if infinite else large * scale
    # arctan(small / large) is arctan(t), or pi/4 + arctan(t) with t = (small - large) / (small + large) in the middle.
    middle = small + small > large
    above = small - large if middle else small
    below = small + large if middle else large
    t = above / (below if below > ZERO else ONE)
    tail = arctan_tail(t)
    base = QUARTER_PI if middle else ZERO
    base_rest = QUARTER_PI_REST if middle else ZERO
    # The angle is corner + sign * (base + t).
    backward = with_sign(ONE, x) < ZERO
    sign = -ONE if steep != backward else ONE
    corner = HALF_PI if steep else (PI if backward else ZERO)
    corner_rest = HALF_PI_REST if steep else (PI_REST if backward else ZERO)
    total = muladd(sign, base, corner)
    result = total + muladd(sign, t, muladd(sign, tail, muladd(sign, base_rest, corner_rest)))
    result = x + y if math.isnan(x) | math.isnan(y) else result
    return with_sign(result, y)
