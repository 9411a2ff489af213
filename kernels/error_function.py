"""The error function of float64 numbers and its complement.

In:  a float64.  Out: a float64.  Who calls: the table in __init__.py.
Branch-free, without library calls, so that loops over them vectorise.  erf(x) / x is a polynomial in x**2 up to 1;
beyond, erfc(x) = exp(-x**2) g(t) / (x + 1.5) with t = (x - 1.5) / (x + 1.5), a substitution as in Shepherd and
Laframboise, "Chebyshev approximation of (1 + 2x) exp(x**2) erfc x" (1981).  Polynomials: Chebyshev interpolation in
60 digits.
"""

import math

from .bits import fma, muladd, times_two_to, with_sign
from .exponential import exp, exp_parts


def erf_excess(x):
    """erf(x) / x - 1 for |x| <= 1; it starts from 2 / sqrt(pi) - 1 = 0.128..."""
    z = x * x
    p = muladd(z, -7.795036883030873e-10, 1.3719678327897085e-08)
    p = muladd(z, p, -1.6208412987858903e-07)
    p = muladd(z, p, 1.6447418013221171e-06)
    p = muladd(z, p, -1.4924736585063891e-05)
    p = muladd(z, p, 0.00012055294900211572)
    p = muladd(z, p, -0.0008548325975666227)
    p = muladd(z, p, 0.005223977607131722)
    p = muladd(z, p, -0.02686617064324086)
    p = muladd(z, p, 0.11283791670945034)
    p = muladd(z, p, -0.37612638903183543)
    return muladd(z, p, 0.1283791670955126)


def log_erfc(t):
    """log(erfc(1 + t)) for 0 <= t <= 4.95; erfc from it has an absolute error of 2**-56."""
    square = t * t
    even = muladd(square, 1.1817462037190355e-12, 4.050181193034957e-10)
    even = muladd(square, even, 1.5936185419154992e-08)
    even = muladd(square, even, 1.0449697984879216e-07)
    even = muladd(square, even, -2.0456749124347937e-06)
    even = muladd(square, even, -2.7150307133476206e-05)
    even = muladd(square, even, 0.00023732402848729184)
    even = muladd(square, even, 0.01003382543433672)
    even = muladd(square, even, -0.8431072563583902)
    even = muladd(square, even, -1.8496055099332482)
    odd = muladd(square, -3.222292424234702e-11, -3.1014963462903536e-09)
    odd = muladd(square, odd, -5.516334377767851e-08)
    odd = muladd(square, odd, 1.3142007000077407e-07)
    odd = muladd(square, odd, 9.595954962739176e-06)
    odd = muladd(square, odd, 2.627350397130103e-05)
    odd = muladd(square, odd, -0.0019779029447505583)
    odd = muladd(square, odd, -0.041561098047538894)
    odd = muladd(square, odd, -2.638967514234794)
    return muladd(t, odd, even)


def erfc_beyond(a):
    """erfc(a) for 0.75 <= a <= 27.5: 1.3 ULP."""
    square = a * a
    below = a + 1.5
    below_rest = (a - below) + 1.5 if a > 1.5 else (1.5 - below) + a
    inverse = 1.0 / below
    inverse_rest = muladd(-inverse, below_rest, fma(-inverse, below, 1.0)) * inverse
    t = fma(-3.0, inverse, 0.72) - 3.0 * inverse_rest
    u = t * t
    even = muladd(u, 1.9197107162030392e-06, -1.2039683336516237e-05)
    even = muladd(u, even, 2.369298171984938e-05)
    even = muladd(u, even, -2.5167268918942616e-06)
    even = muladd(u, even, -9.140603385556402e-05)
    even = muladd(u, even, 0.00024038339769821506)
    even = muladd(u, even, -0.00025881464227763614)
    even = muladd(u, even, -0.0004722451434120768)
    even = muladd(u, even, 0.004098388707015751)
    even = muladd(u, even, -0.020618130495955383)
    even = muladd(u, even, 0.10985125004888253)
    odd = muladd(u, -1.206453766882758e-06, -5.523849453163577e-06)
    odd = muladd(u, odd, 3.47691653539287e-05)
    odd = muladd(u, odd, -6.868246044714853e-05)
    odd = muladd(u, odd, 2.059268991800186e-05)
    odd = muladd(u, odd, 0.0002736340105709286)
    odd = muladd(u, odd, -0.001053409224317846)
    odd = muladd(u, odd, 0.0027337052931878498)
    odd = muladd(u, odd, -0.006991412297506123)
    odd = muladd(u, odd, 0.03136033787528789)
    odd = muladd(u, odd, -0.4552719189582055)
    rest = muladd(t, odd, u * even)
    g = 0.8294692958077735 + rest
    g_rest = (0.8294692958077735 - g) + rest
    ratio = g * inverse
    ratio_rest = fma(g, inverse, -ratio) + muladd(g, inverse_rest, g_rest * inverse)
    y, y_rest, n = exp_parts(-square)
    y_rest = muladd(-y, fma(a, a, -square), y_rest)
    product = y * ratio
    product_rest = fma(y, ratio, -product) + muladd(y, ratio_rest, y_rest * ratio)
    return times_two_to(product + product_rest, n)


def erf(x):
    """The error function: 1.1 ULP on the whole line."""
    a = abs(x)
    bounded = a - 1.0
    bounded = bounded if bounded > 0.0 else 0.0
    bounded = min(bounded, 4.95)
    large = 1.0 - exp(log_erfc(bounded))
    result = muladd(a, erf_excess(a), a) if a < 1.0 else large
    return with_sign(x if math.isnan(x) else result, x)


def erfc(x):
    """1 - erf(x): 1.5 ULP on the whole line."""
    a = abs(x)
    bounded = a if a > 0.75 else 0.75
    large = erfc_beyond(min(bounded, 27.5))
    large = 2.0 - large if x < 0.0 else large
    high = 1.0 - x
    lost = (1.0 - high) - x
    small = high - muladd(x, erf_excess(x), -lost)
    return small if a < 0.75 else (large if a >= 0.75 else a)
