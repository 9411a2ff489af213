"""float32 kernels that compute in float64: the functions that single.py does not have.

In:  float32 scalars.  Out: a float64, which the compiler rounds to float32: 0.51 ULP.
Who calls: the table in __init__.py, for dtype float32.  As branch-free as the float64 kernels that they call.
"""

import math

import numpy as np

from . import error_function, exponential, gamma, hyperbolic, inverse_trigonometric, logarithm, trigonometric
from . import power as powers
from .bits import square_root

exp_wide = exponential.exp
log_wide = logarithm.log
logaddexp_wide = logarithm.logaddexp
logaddexp2_wide = logarithm.logaddexp2
logit_wide = logarithm.logit
tan_wide = trigonometric.tan
arcsin_wide = inverse_trigonometric.arcsin
arccos_wide = inverse_trigonometric.arccos
arctan_wide = inverse_trigonometric.arctan
arctan2_wide = inverse_trigonometric.arctan2
sinh_wide = hyperbolic.sinh
cosh_wide = hyperbolic.cosh
arcsinh_wide = hyperbolic.arcsinh
arccosh_wide = hyperbolic.arccosh
arctanh_wide = hyperbolic.arctanh
erfc_wide = error_function.erfc
cbrt_wide = powers.cbrt
gammaln_wide = gamma.gammaln
digamma_wide = gamma.digamma
power_special = powers.power_special


def logit(x):
    """log(x / (1 - x))."""
    return logit_wide(np.float64(x))


def tan(x):
    """The tangent."""
    return tan_wide(np.float64(x))


def arcsin(x):
    """The angle whose sine is x."""
    return arcsin_wide(np.float64(x))


def arccos(x):
    """The angle whose cosine is x."""
    return arccos_wide(np.float64(x))


def arctan(x):
    """The angle whose tangent is x."""
    return arctan_wide(np.float64(x))


def sinh(x):
    """The hyperbolic sine."""
    return sinh_wide(np.float64(x))


def cosh(x):
    """The hyperbolic cosine."""
    return cosh_wide(np.float64(x))


def arcsinh(x):
    """The inverse of sinh."""
    return arcsinh_wide(np.float64(x))


def arccosh(x):
    """The inverse of cosh."""
    return arccosh_wide(np.float64(x))


def arctanh(x):
    """The inverse of tanh."""
    return arctanh_wide(np.float64(x))


def erfc(x):
    """1 - erf(x)."""
    return erfc_wide(np.float64(x))


def gammaln(x):
    """log|Gamma(x)|."""
    return gammaln_wide(np.float64(x))


def digamma(x):
    """The logarithmic derivative of Gamma."""
    return digamma_wide(np.float64(x))


def cbrt(x):
    """The cube root."""
    return cbrt_wide(np.float64(x))


def logaddexp(x, y):
    """log(e**x + e**y)."""
    return logaddexp_wide(np.float64(x), np.float64(y))


def logaddexp2(x, y):
    """log2(2**x + 2**y)."""
    return logaddexp2_wide(np.float64(x), np.float64(y))


def arctan2(x, y):
    """The angle of the point (y, x), from -pi to pi."""
    return arctan2_wide(np.float64(x), np.float64(y))


def hypot(x, y):
    """sqrt(x**2 + y**2); the squares of float32 fit a float64."""
    x = np.float64(x)
    y = np.float64(y)
    result = square_root(x * x + y * y)
    return math.inf if (abs(x) == math.inf) | (abs(y) == math.inf) else result


def power(x, y):
    """x**y; a plain float64 logarithm is precise enough for a float32 result."""
    x = np.float64(x)
    y = np.float64(y)
    # A finite exponent, so that (-1)**inf is 1.
    bounded = min(max(y, -1e300), 1e300)
    return power_special(x, y, exp_wide(bounded * log_wide(abs(x))))


def xlogy(x, y):
    """x log(y), and 0 where x is 0 (unless y is NaN)."""
    product = np.float64(x) * log_wide(np.float64(y))
    return 0.0 if (x == 0.0) & (not math.isnan(y)) else product
