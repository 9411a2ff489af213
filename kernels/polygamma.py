"""The derivatives of digamma.

In:  the order (a whole number as a float) and x, float scalars.  Out: a float64.  Who calls: the table in __init__.py.
These loop and branch: not vectorised.
"""

import math

import numpy as np

from .bits import round_down
from .gamma import digamma

# Bernoulli numbers B(2k) / (2k)!, k = 1 .. 10, of the Euler-Maclaurin remainder.
BERNOULLI_RATIO = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)


def hurwitz_zeta(s, x):
    """The sum of (x + k)**-s over k = 0, 1, ...: s at least 2, x positive.

    Direct sum up to x = 12 + s / 2 and the Euler-Maclaurin remainder (Johansson, "Rigorous high-precision computation
    of the Hurwitz zeta function"); relative error about 1e-15.
    """
    total = 0.0
    start = 12.0 + 0.5 * s
    while x < start:
        term = x ** (-s)
        if term <= 1e-18 * total:
            return total + term
        total += term
        x += 1.0
    power = x ** (-s)
    total += x ** (1.0 - s) / (s - 1.0) + 0.5 * power
    factor = s * power / x
    rise = s
    for ratio in BERNOULLI_RATIO:
        term = factor * ratio
        total += term
        if abs(term) <= 1e-17 * abs(total):
            break
        factor *= (rise + 1.0) * (rise + 2.0) / (x * x)
        rise += 2.0
    return total


def polygamma(n, x):
    """The n-th derivative of digamma; n a whole number as a float, 0 for digamma itself.

    n! (-1)**(n + 1) times the Hurwitz zeta function at n + 1; a negative x splits into three sums over positive
    numbers, so the cost does not grow with |x|.  Relative error about 1e-14 away from zeros; inf at the poles.
    """
    n = np.float64(n)
    x = np.float64(x)
    if n == 0.0:
        return digamma(x)
    if (math.isnan(x)) | (n < 0.0) | (n != round_down(n)):
        return math.nan
    s = n + 1.0
    odd = n - 2.0 * round_down(0.5 * n) == 1.0
    factorial = 1.0 if odd else -1.0
    k = 2.0
    while (k <= n) & (k <= 171.0):
        factorial *= k
        k += 1.0
    if x == math.inf:
        return 0.0 * factorial
    if x == -math.inf:
        return factorial * math.inf
    if x > 0.0:
        return factorial * hurwitz_zeta(s, x)
    whole = round_down(-x)
    fraction = -x - whole
    if fraction == 0.0:
        return factorial * math.inf
    below = hurwitz_zeta(s, fraction) - hurwitz_zeta(s, 1.0 - x)
    return factorial * (hurwitz_zeta(s, 1.0 - fraction) + (below if odd else -below))
