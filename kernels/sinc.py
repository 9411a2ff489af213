"""Derivatives of NumPy's sinc, sin(pi x) / (pi x).

In:  the order n (a whole number as a float) and x.  Out: the n-th derivative at x.  Who calls: the table in
__init__.py.  The orders 0 and 1 are branch-free, so that LLVM vectorises them where the order is known; others loop.
"""

import math

import numpy as np

from .bits import float64_to_int64, fma, int64_to_float64, muladd, round_to_even
from .trigonometric import ROUNDER, cosine_part, sine_part

PI_LOW = 1.2246467991473532e-16
"""The digits of pi behind those of math.pi."""


def sinc_derivative(n, x):
    """The n-th derivative of sin(pi x) / (pi x); n = 0 is sinc itself.

    With z = pi x and S(n) the n-th derivative of sin(z) / z, z S(n) + n S(n-1) = sin(z + n pi / 2).  Upwards this is
    stable for orders below |z|, downwards above it (Miller's algorithm; Gautschi, "Computational aspects of three-term
    recurrence relations", 1967); the error is about 1e-15 of the largest value, pi**n / (n + 1), and relative at 0.
    """
    n = np.float64(n)
    x = np.float64(x)
    # sin and cos of z from the distance to the nearest even number: exact reduction.
    sine, cosine = _sine_and_cosine_of_half_turns(x - 2.0 * round_to_even(0.5 * x))
    z = math.pi * x
    if n == 0.0:
        return sine / z if x != 0.0 else 1.0
    if n == 1.0:
        return math.pi * _slope(z, sine, cosine)
    if (abs(x) == math.inf) | (n < 0.0) | (n > 1000.0) | (n != round_to_even(n)):
        return math.nan
    scale = 1.0
    if abs(z) > n:
        value = sine / z if x != 0.0 else 1.0
        k = 0.0
        while k < n:
            k += 1.0
            # sin(z + k pi / 2): each order turns (sine, cosine) by a quarter.
            sine, cosine = cosine, -sine
            value = (sine - k * value) / z
            scale *= math.pi
        return scale * value
    top = n + 24.0 + 10.0 * math.sqrt(n + 1.0)
    top = 4.0 * math.ceil(0.25 * top)
    value = 0.0
    k = top
    while k > n:
        # sin(z + k pi / 2); top is a multiple of four, where this is sin(z).
        value = (sine - z * value) / k
        sine, cosine = -cosine, sine
        k -= 1.0
    while k > 0.0:
        scale *= math.pi
        k -= 1.0
    return scale * value


def _slope(z, sine, cosine):
    """The derivative of sin(z) / z; its Taylor series where the terms of the quotient cancel."""
    near = abs(z) <= 1.0
    w = z * z if near else 0.0
    p = muladd(w, -4.498331606952833e-14, 1.0706029224547743e-11)
    p = muladd(w, p, -1.9270852604185937e-09)
    p = muladd(w, p, 2.505210838544172e-07)
    p = muladd(w, p, -2.2045855379188714e-05)
    p = muladd(w, p, 0.0011904761904761906)
    p = muladd(w, p, -0.03333333333333333)
    p = muladd(w, p, 0.3333333333333333)
    divisor = 1.0 if near else z
    return -z * p if near else (cosine - sine / divisor) / divisor


def _sine_and_cosine_of_half_turns(x):
    """sin(pi x) and cos(pi x) for |x| at most 1, exact at multiples of 1/2."""
    shifted = 2.0 * x + ROUNDER
    quadrant = float64_to_int64(shifted)
    rest = x - 0.5 * (shifted - ROUNDER)
    r = math.pi * rest
    low = fma(math.pi, rest, -r) + PI_LOW * rest
    high, part = cosine_part(r, low)
    sine, cosine = r + sine_part(r, low), high + part
    odd = (quadrant & 1) != 0
    above, along = (cosine if odd else sine), (sine if odd else cosine)
    above = int64_to_float64(float64_to_int64(above) ^ ((quadrant & 2) << 62))
    along = int64_to_float64(float64_to_int64(along) ^ (((quadrant + 1) & 2) << 62))
    return above, along
