"""float32 kernels that compute in float64: functions that have no arithmetic of their own in float32.

In:  float32 scalars.  Out: a float64, which the compiler rounds to float32: 0.51 ULP.
Who calls: the table in __init__.py, for dtype float32.  As branch-free as the float64 kernels that they call.  The
polynomials of `power` are minimax fits, as long as a float32 needs.
"""

import math

import numpy as np

from . import error_function, gamma
from . import power as powers
from .bits import float64_to_int64, int64_to_float64, muladd, square_root
from .exponential import ROUNDER, power_of_two
from .logarithm import EXPONENT_MASK, ROUNDER_BITS, SQRT_HALF_BITS

erfc_wide = error_function.erfc
gammaln_wide = gamma.gammaln
digamma_wide = gamma.digamma
power_special = powers.power_special


def erfc(x):
    """1 - erf(x)."""
    return erfc_wide(np.float64(x))


def gammaln(x):
    """log|Gamma(x)|."""
    return gammaln_wide(np.float64(x))


def digamma(x):
    """The logarithmic derivative of Gamma."""
    return digamma_wide(np.float64(x))


def hypot(x, y):
    """sqrt(x**2 + y**2); the squares of float32 fit a float64."""
    x = np.float64(x)
    y = np.float64(y)
    result = square_root(x * x + y * y)
    return math.inf if (abs(x) == math.inf) | (abs(y) == math.inf) else result


def log2_of(x):
    """log2 of a positive, finite float64 above 2**-1022: relative error 2**-38, without a division."""
    i = float64_to_int64(x)
    shift = (i - SQRT_HALF_BITS) & EXPONENT_MASK
    k = int64_to_float64((shift >> 52) + ROUNDER_BITS) - ROUNDER
    f = int64_to_float64(i - shift) - 1.0
    p = muladd(f, -0.06973844315688987, 0.13251703346203644)
    p = muladd(f, p, -0.1346334446463257)
    p = muladd(f, p, 0.13027519950138508)
    p = muladd(f, p, -0.1424977511554781)
    p = muladd(f, p, 0.16021661766070736)
    p = muladd(f, p, -0.18043682112201334)
    p = muladd(f, p, 0.20610712952146915)
    p = muladd(f, p, -0.24044643108991026)
    p = muladd(f, p, 0.2885387955093098)
    p = muladd(f, p, -0.36067379317384024)
    p = muladd(f, p, 0.48089834880509186)
    p = muladd(f, p, -0.7213475203273965)
    p = muladd(f, p, 1.4426950408865715)
    return muladd(f, p, k)


def exp2_of(x):
    """2**x for -1000 < x < 1000: relative error 2**-34."""
    n = (x + ROUNDER) - ROUNDER
    r = x - n
    p = muladd(r, 1.5314971750306832e-05, 0.00015467135829961174)
    p = muladd(r, p, 0.0013333430684941653)
    p = muladd(r, p, 0.009618036836960667)
    p = muladd(r, p, 0.055504109626873833)
    p = muladd(r, p, 0.24022651076310045)
    p = muladd(r, p, 0.6931471805416249)
    return muladd(r, p, 1.0) * power_of_two(n)


def power(x, y):
    """x**y = 2**(y log2 x), with C's pow at zeros, infinities, NaN and negative numbers.

    The product is below 160 where the result is a float32, so that 2**-38 in the logarithm are 2**-30 in the result.
    """
    x = np.float64(x)
    y = np.float64(y)
    a = abs(x)
    # Zero, infinity and NaN have logarithms that send the product where it belongs.
    high = log2_of(a) if (a > 0.0) & (a < math.inf) else (-math.inf if a == 0.0 else a)
    # A finite exponent, so that (-1)**inf is 1.
    product = min(max(y, -1e300), 1e300) * high
    product = max(product, -200.0)
    product = min(product, 200.0)
    return power_special(x, y, exp2_of(product))
