"""Special functions that `math` lacks, in the Python that Numba compiles for CPUs and GPUs alike.

In: numbers. Out: a number; no error is raised outside a function's domain. Called by the text that numba_source.py
writes: it copies these functions into it, so that they use nothing but `math`, builtins and each other.
"""

from __future__ import annotations

import math


def nbgrad_cbrt(x: float) -> float:
    """The cube root: a power, and a step of Newton's method that removes its error."""
    a = abs(x)
    if a == 0.0 or a == math.inf or a != a:
        return x
    z = math.pow(a, 1.0 / 3.0)
    return math.copysign(z - (z - a / (z * z)) / 3.0, x)


def nbgrad_digamma(x: float) -> float:
    """The derivative of log Gamma (Abramowitz & Stegun 6.3.5, 6.3.7 and 6.3.18), absolute error below 1e-14."""
    if x == 0.0:
        return -math.copysign(math.inf, x)
    total = 0.0
    if x < 0.0:
        fraction = x % 1.0
        if fraction == 0.0 or x == -math.inf:
            return math.nan
        total = -math.pi / math.tan(math.pi * fraction)
        x = 1.0 - x
    while x < 10.0:
        total -= 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    series = 1.0 / 240.0 - f * (1.0 / 132.0 - f * (691.0 / 32760.0 - f / 12.0))
    series = f * (1.0 / 12.0 - f * (1.0 / 120.0 - f * (1.0 / 252.0 - f * series)))
    return total + math.log(x) - 0.5 / x - series


def nbgrad_polygamma(n: float, x: float) -> float:
    """The n-th derivative of digamma, n >= 0: (-1)**(n + 1) n! zeta(n + 1, x), summed by Euler and Maclaurin.

    Source: Abramowitz & Stegun 6.4.10 and 23.2.9.
    """
    if n == 0.0:
        return nbgrad_digamma(x)
    if x <= 0.0 and x % 1.0 == 0.0:
        return math.inf if n % 2.0 == 1.0 else math.nan
    s = n + 1.0
    total = 0.0
    while x <= 20.0:
        total += math.pow(x, -s)
        x += 1.0
    power = math.pow(x, -s)
    total += power * x / n + 0.5 * power
    term = power * s / x
    total += term / 12.0
    term *= (s + 1.0) * (s + 2.0) / (x * x)
    total -= term / 720.0
    term *= (s + 3.0) * (s + 4.0) / (x * x)
    total += term / 30240.0
    term *= (s + 5.0) * (s + 6.0) / (x * x)
    total -= term / 1209600.0
    term *= (s + 7.0) * (s + 8.0) / (x * x)
    total += term / 47900160.0
    term *= (s + 9.0) * (s + 10.0) / (x * x)
    total -= term * 691.0 / 1307674368000.0
    factorial = math.exp(math.lgamma(s)) if n > 20.0 else 1.0
    k = 2.0
    while k <= n and n <= 20.0:
        factorial *= k
        k += 1.0
    return total * factorial if n % 2.0 == 1.0 else -total * factorial
