"""Elementary functions through the C library: correct everywhere, not vectorised.

In:  float scalars.  Out: floats of the same dtype.  Who calls: the table in __init__.py.
"""

import math

import numpy as np

LOG_2 = math.log(2.0)


def exp(x):
    return math.exp(x)


def exp2(x):
    return math.exp2(x)


def expm1(x):
    return math.expm1(x)


def log(x):
    return math.log(x)


def log2(x):
    return math.log2(x)


def log10(x):
    return math.log10(x)


def log1p(x):
    return math.log1p(x)


def sin(x):
    return math.sin(x)


def cos(x):
    return math.cos(x)


def tan(x):
    return math.tan(x)


def arcsin(x):
    return math.asin(x)


def arccos(x):
    return math.acos(x)


def arctan(x):
    return math.atan(x)


def arctan2(x, y):
    return math.atan2(x, y)


def sinh(x):
    return math.sinh(x)


def cosh(x):
    return math.cosh(x)


def tanh(x):
    return math.tanh(x)


def arcsinh(x):
    return math.asinh(x)


def arccosh(x):
    return math.acosh(x)


def arctanh(x):
    return math.atanh(x)


def power(x, y):
    return math.pow(x, y)


def cbrt(x):
    return np.cbrt(x)


def logaddexp(x, y):
    gap = x - y
    larger = x if gap > 0.0 else y
    result = larger + math.log1p(math.exp(-abs(gap)))
    return x + LOG_2 if x == y else (gap if math.isnan(gap) else result)


def logaddexp2(x, y):
    gap = x - y
    larger = x if gap > 0.0 else y
    result = larger + math.log1p(math.exp2(-abs(gap))) / LOG_2
    return x + 1.0 if x == y else (gap if math.isnan(gap) else result)


def erf(x):
    return math.erf(x)


def erfc(x):
    return math.erfc(x)


def expit(x):
    shrunk = math.exp(-abs(x))
    return (1.0 if x >= 0.0 else shrunk) / (1.0 + shrunk)


def logit(x):
    centred = 2.0 * x - 1.0
    return (
        2.0 * math.atanh(centred)
        if abs(centred) < 0.5
        else math.log(x) - math.log1p(-x)
    )


def xlogy(x, y):
    return 0.0 if (x == 0.0) & (not math.isnan(y)) else x * math.log(y)


def gammaln(x):
    return x if abs(x) == math.inf else math.lgamma(x)
