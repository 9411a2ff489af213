"""Derivatives of NumPy's sinc, sin(pi x) / (pi x).

In:  the order n (a whole number as a float) and x.  Out: the n-th derivative at x.  Who calls: the table in
__init__.py.  Loops over orders: not vectorised.
"""

import math

import numpy as np

from .bits import round_to_even


def sinc_derivative(n, x):
    """The n-th derivative of sin(pi x) / (pi x); n = 0 is sinc itself.

    With z = pi x and S(n) the n-th derivative of sin(z) / z, z S(n) + n S(n-1) = sin(z + n pi / 2).  Upwards this is
    stable for orders below |z|, downwards above it (Miller's algorithm; Gautschi, "Computational aspects of three-term
    recurrence relations", 1967); the error is about 1e-15 of the largest value, pi**n / (n + 1), and relative at 0.
    """
    n = np.float64(n)
    x = np.float64(x)
    if (abs(x) == math.inf) | (n < 0.0) | (n > 1000.0) | (n != round_to_even(n)):
        return math.nan
    # sin and cos of z from the distance to the nearest even number: exact reduction.
    distance = x - 2.0 * round_to_even(0.5 * x)
    sine, cosine = _sine_and_cosine_of_half_turns(distance)
    z = math.pi * x
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


def _sine_and_cosine_of_half_turns(x):
    """sin(pi x) and cos(pi x) for |x| at most 1, exact at multiples of 1/2."""
    quarter = round_to_even(2.0 * x)
    rest = math.pi * (x - 0.5 * quarter)
    sine = math.sin(rest)
    cosine = math.cos(rest)
    if quarter == 0.0:
        return sine, cosine
    if quarter == 1.0:
        return cosine, -sine
    if quarter == -1.0:
        return -cosine, sine
    return -sine, -cosine
