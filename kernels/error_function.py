"""The error function of float64 numbers and its complement.

In:  a float64.  Out: a float64.  Who calls: the table in __init__.py.
Branch-free, without library calls, so that loops over them vectorise.  erf(x) / x is a polynomial in x**2 up to 1;
beyond, erfc(x) = exp(-x**2) g(t) / (x + 1.5) with t = (x - 1.5) / (x + 1.5), a substitution as in Shepherd and
Laframboise, "Chebyshev approximation of (1 + 2x) exp(x**2) erfc x" (1981).  Polynomials: Chebyshev interpolation in
60 digits.
"""

from .bits import fma, with_sign
from .exponential import exp_pair


def erf_excess(x):
    """erf(x) / x - 1 for |x| <= 1; it starts from 2 / sqrt(pi) - 1 = 0.128..."""
    z = x * x
    p = fma(z, -7.795036883030873e-10, 1.3719678327897085e-08)
    p = fma(z, p, -1.6208412987858903e-07)
    p = fma(z, p, 1.6447418013221171e-06)
    p = fma(z, p, -1.4924736585063891e-05)
    p = fma(z, p, 0.00012055294900211572)
    p = fma(z, p, -0.0008548325975666227)
    p = fma(z, p, 0.005223977607131722)
    p = fma(z, p, -0.02686617064324086)
    p = fma(z, p, 0.11283791670945034)
    p = fma(z, p, -0.37612638903183543)
    return fma(z, p, 0.1283791670955126)


def erfc_beyond(a):
    """erfc(a) for 0.99 <= a <= 27.5."""
    square = a * a
    t = (a - 1.5) / (a + 1.5) - 0.346
    u = t * t
    even = fma(u, -8.382786454941434e-06, 4.020357014053784e-06)
    even = fma(u, even, 5.0724206244570404e-05)
    even = fma(u, even, -0.00015295229101801322)
    even = fma(u, even, 0.00021309862750419568)
    even = fma(u, even, 8.649294724975022e-06)
    even = fma(u, even, -0.0011334565565692227)
    even = fma(u, even, 0.0052774677355940745)
    even = fma(u, even, -0.022630797738289743)
    even = fma(u, even, 0.11550285853656996)
    even = fma(u, even, 0.7999084775477517)
    odd = fma(u, -1.936904105782532e-05, 5.3383032005411566e-05)
    odd = fma(u, odd, -4.536890739540298e-05)
    odd = fma(u, odd, -9.396576163291516e-05)
    odd = fma(u, odd, 0.0004597050707046394)
    odd = fma(u, odd, -0.001143444145550372)
    odd = fma(u, odd, 0.002312192339032988)
    odd = fma(u, odd, -0.005128573679229238)
    odd = fma(u, odd, 0.02563794582411703)
    odd = fma(u, odd, -0.4403860785247363)
    return exp_pair(-square, -fma(a, a, -square)) * (fma(t, odd, even) / (a + 1.5))


def erf(x):
    """The error function: 1.0 ULP on the whole line."""
    a = abs(x)
    bounded = min(a, 6.0)
    bounded = bounded if a > 1.0 else 1.0
    large = 1.0 - erfc_beyond(bounded)
    return fma(x, erf_excess(x), x) if a < 1.0 else with_sign(large if a >= 1.0 else a, x)


def erfc(x):
    """1 - erf(x): 2.5 ULP up to 6, 3.2 ULP beyond."""
    a = abs(x)
    bounded = min(a, 27.5)
    bounded = bounded if a > 1.0 else 1.0
    large = erfc_beyond(bounded)
    large = 2.0 - large if x < 0.0 else large
    high = 1.0 - x
    lost = (1.0 - high) - x
    small = high - fma(x, erf_excess(x), -lost)
    return small if a < 1.0 else (large if a >= 1.0 else a)
