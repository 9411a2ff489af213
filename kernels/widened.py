"""float32 kernels that compute in float64: functions that have no arithmetic of their own in float32.

In:  float32 scalars.  Out: a float64, which the compiler rounds to float32: 0.51 ULP.
Who calls: the table in __init__.py, for dtype float32.  As branch-free as the float64 kernels that they call.  The
polynomials of `power` are minimax fits, as long as a float32 needs.
"""

import math

import numpy as np

from . import bessel, error_function, gamma
from . import power as powers
from .bits import muladd, square_root, times_two_to
from .exponential import ROUNDER
from .logarithm import split

erfc_wide = error_function.erfc
gammaln_wide = gamma.gammaln
digamma_wide = gamma.digamma
i0_wide = bessel.i0
i1_wide = bessel.i1
i0e_wide = bessel.i0e
i1e_wide = bessel.i1e
power_special = powers.power_special
WHOLE = powers.WHOLE


def erfc(x):
    """1 - erf(x)."""
    return erfc_wide(np.float64(x))


def gammaln(x):
    """log|Gamma(x)|."""
    return gammaln_wide(np.float64(x))


def digamma(x):
    """The logarithmic derivative of Gamma."""
    return digamma_wide(np.float64(x))


def i0(x):
    """The modified Bessel function I0(x)."""
    return i0_wide(np.float64(x))


def i1(x):
    """The modified Bessel function I1(x)."""
    return i1_wide(np.float64(x))


def i0e(x):
    """exp(-|x|) I0(x)."""
    return i0e_wide(np.float64(x))


def i1e(x):
    """exp(-|x|) I1(x)."""
    return i1e_wide(np.float64(x))


def hypot(x, y):
    """sqrt(x**2 + y**2); the squares of float32 fit a float64."""
    x = np.float64(x)
    y = np.float64(y)
    result = square_root(x * x + y * y)
    return math.inf if (abs(x) == math.inf) | (abs(y) == math.inf) else result


def log2_of(x):
    """log2 of a positive float64: relative error 2**-37; infinite of 0 and infinity, NaN of NaN."""
    k, m = split(x)
    f = m - 1.0
    s = f / (m + 1.0)
    z = s * s
    fourth = z * z
    p01 = muladd(z, 0.961796673275675, 2.885390081790147)
    p23 = muladd(z, 0.411672109644596, 0.5770835961834353)
    return muladd(s, muladd(fourth, muladd(fourth, 0.34074045193550945, p23), p01), k)


def exp2_of(x):
    """2**x for -1000 < x < 1000: relative error 2**-34."""
    n = (x + ROUNDER) - ROUNDER
    r = x - n
    square = r * r
    p01 = muladd(r, 0.6931471805416249, 1.0)
    p23 = muladd(r, 0.055504109626873833, 0.24022651076310045)
    p45 = muladd(r, 0.0013333430684941653, 0.009618036836960667)
    p67 = muladd(r, 1.5314971750306832e-05, 0.00015467135829961174)
    high = muladd(square, p67, p45)
    return times_two_to(muladd(square, muladd(square, high, p23), p01), n)


def power(x, y):
    """x**y = 2**(y log2 x), with C's pow at zeros, infinities, NaN and negative numbers.

    The product is below 160 where the result is a float32, so that 2**-37 in the logarithm are 2**-29 in the result.
    """
    x = np.float64(x)
    y = np.float64(y)
    # Zero, infinity and NaN have logarithms that send the product where it belongs.
    product = y * log2_of(abs(x))
    product = max(product, -200.0)
    product = min(product, 200.0)
    # As in power.py; float32 beyond 2**52 are even, also with 2**52 more.
    b = min(abs(y), 2.0 * WHOLE)
    shifted = b + WHOLE
    return power_special(x, y, shifted - WHOLE == b, shifted, exp2_of(product))
