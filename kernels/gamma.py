"""log|Gamma|, digamma and the derivatives of digamma.

In:  a float64; of `polygamma` the order (a whole number as a float) and a float.  Out: a float64.  Who calls: the table
in __init__.py.  All but `polygamma`, which loops, are branch-free, without library calls, so that loops over them
vectorise.  Arguments from 0 to 1 and negative ones are brought to 1 and above by the recurrence and by reflection
(Abramowitz & Stegun 6.1.17, 6.3.7).  There log Gamma(x) is (x - 1) (x - 2) times a polynomial in (x - c) / (x + c),
c = sqrt(3), up to 3, and Stirling's formula beyond; digamma(x) is the logarithm of a function that differs little from
x - 1/2, so that it is precise at its zero too.  Polynomials: minimax (Remez) in 50 digits.
"""

import math

import numpy as np

from .bits import fma, muladd, round_down
from .logarithm import log, log_of_sum, log_parts

MIDDLE = 1.7320508075688772
# log(2 pi) / 2 - 1/2.
STIRLING = 0.4189385332046727
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


def sine_rest(z):
    """sin(pi f) / (pi f) - 1 for z = f**2 <= 1/4."""
    p = muladd(z, 2.4526141747848586e-07, -6.972341803349484e-06)
    p = muladd(z, p, 0.0001484279449578938)
    p = muladd(z, p, -0.002346080918773656)
    p = muladd(z, p, 0.02614784780850229)
    p = muladd(z, p, -0.19075182412170344)
    p = muladd(z, p, 0.8117424252833467)
    p = muladd(z, p, -1.6449340668482264)
    return z * p


def cosine_rest(z):
    """cos(pi f) - 1 for z = f**2 <= 1/4."""
    p = muladd(z, 4.147090368788241e-06, -0.00010456436870306574)
    p = muladd(z, p, 0.0019295555151990882)
    p = muladd(z, p, -0.02580688860824259)
    p = muladd(z, p, 0.23533063011884187)
    p = muladd(z, p, -1.3352627688431267)
    p = muladd(z, p, 4.058712126416504)
    p = muladd(z, p, -4.934802200544677)
    return z * p


def from_nearest(a):
    """a minus the nearest whole number, for a >= 0."""
    nearest = (a + 4503599627370496.0) - 4503599627370496.0
    return a - nearest if a < 4503599627370496.0 else 0.0


def gammaln_ratio(t):
    """log Gamma(x) / ((x - 1) (x - 2)) for t = (x - c) / (x + c), 1 <= x <= 3."""
    square = t * t
    even = muladd(square, 0.006510060912358451, 0.03564679372340881)
    even = muladd(square, even, 0.030350430028634773)
    even = muladd(square, even, 0.03608114011261106)
    even = muladd(square, even, 0.04203159884117794)
    even = muladd(square, even, 0.0504943322098831)
    even = muladd(square, even, 0.06316879998799847)
    even = muladd(square, even, 0.08421552335649095)
    even = muladd(square, even, 0.12726680089542136)
    even = muladd(square, even, 0.4522983645115129)
    odd = muladd(square, -0.03901164545291903, -0.03028074311051317)
    odd = muladd(square, odd, -0.03679927032286454)
    odd = muladd(square, odd, -0.04299848995979213)
    odd = muladd(square, odd, -0.052032446559609355)
    odd = muladd(square, odd, -0.06592235941668206)
    odd = muladd(square, odd, -0.0901916619966934)
    odd = muladd(square, odd, -0.14479693984172187)
    odd = muladd(square, odd, -0.4194972324433307)
    return muladd(t, odd, even)


def stirling_rest(z):
    """x times what Stirling's formula lacks, for z = x**-2, x >= 3."""
    p = muladd(z, -0.05512024521938409, 0.0435450495431196)
    p = muladd(z, p, -0.017768905399550852)
    p = muladd(z, p, 0.0056447322760368795)
    p = muladd(z, p, -0.0018827731233003744)
    p = muladd(z, p, 0.0008407070638625421)
    p = muladd(z, p, -0.0005952186681706462)
    p = muladd(z, p, 0.0007936505913483949)
    p = muladd(z, p, -0.0027777777768021013)
    return muladd(z, p, 0.08333333333333194)


def exp_digamma_rest(s):
    """exp(digamma(x)) - x + 1/2 for s = 1 / (x + 1/2), x >= 1."""
    square = s * s
    even = muladd(square, -0.07489293894522847, -0.45002169447729573)
    even = muladd(square, even, -0.5184101870245929)
    even = muladd(square, even, -0.12060104145175819)
    even = muladd(square, even, 0.0027531444138005757)
    even = muladd(square, even, -0.005411864078402283)
    even = muladd(square, even, 0.006677294344086907)
    even = muladd(square, even, 0.03524305548130512)
    even = muladd(square, even, 0.04166666666667017)
    odd = muladd(square, 0.010984969878286168, 0.23542781588213715)
    odd = muladd(square, odd, 0.5786138107353492)
    odd = muladd(square, odd, 0.31856567013415665)
    odd = muladd(square, odd, 0.01648809018397324)
    odd = muladd(square, odd, 0.004023259901762963)
    odd = muladd(square, odd, -0.004802988322389195)
    odd = muladd(square, odd, 0.022395838679405304)
    odd = muladd(square, odd, 0.04166666666682869)
    return s * muladd(s, odd, even)


def gammaln(x):
    """log|Gamma(x)|: 3.1 ULP, of the result or 1 for negative x; inf at the poles,
    and -inf at -inf (as SciPy).

    With a = |x|, log Gamma(a) = log Gamma(1 + a) - log(a) below 1, and log|Gamma(-a)| = log(pi / (a sin(pi a))) -
    log Gamma(a).
    """
    a = abs(x)
    negative = x < 0.0
    small = a < 1.0
    y = 1.0 + a if small else a
    above_one = a if small else a - 1.0
    above_two = a - 1.0 if small else a - 2.0
    # One quotient for both: (y - c) / (y + c) below 3, and 1 / a.
    middle = y < 3.0
    above = y - MIDDLE if middle else 1.0
    below = y + MIDDLE if middle else a
    quotient = above / below
    # Adding zero makes -0.0 positive.
    near = above_one * above_two * gammaln_ratio(quotient) + 0.0
    # (a - 1/2) (log(a) - 1) + log(2 pi) / 2 - 1/2 + rest, the logarithm being a pair.
    total, lost = log_parts(a)
    less = total - 1.0
    lost = ((total - less) - 1.0) + lost
    factor = a - 0.5
    product = factor * less
    product_rest = fma(factor, less, -product) + factor * lost
    rest = quotient * stirling_rest(quotient * quotient)
    far = product + (STIRLING + (rest + product_rest))
    far = far if a < 1e300 else factor * (less + lost)
    result = near if middle else far
    f = from_nearest(a)
    size = abs(f)
    sine = muladd(size, sine_rest(f * f), size)
    outside = (sine if small else sine * a) if negative else (a if small else 1.0)
    result = (-result if negative else result) - log(outside)
    result = math.inf if negative & (f == 0.0) else result
    return result if a < math.inf else x


def digamma(x):
    """The logarithmic derivative of Gamma: 2 ULP for positive x, 3.2 ULP of the result or 1 for negative x.

    digamma(x) = digamma(1 + x) - 1/x below 1 and digamma(-a) = digamma(1 + a) + pi cot(pi a); NaN at negative
    integers, -inf at 0 and inf at -0.0 (as SciPy).
    """
    a = abs(x)
    negative = x < 0.0
    shifted = x < 1.0
    y = 1.0 + a if shifted else a
    lost = (1.0 - (y - a) if a > 1.0 else a - (y - 1.0)) if shifted else 0.0
    base = y - 0.5
    rest = exp_digamma_rest(1.0 / (y + 0.5))
    high = base + rest
    result = log_of_sum(high, ((base - high) + rest) + lost)
    f = from_nearest(a)
    z = f * f
    # pi cot(pi f) as a quotient of pairs, or -1 / x.
    rest = cosine_rest(z)
    cosine = 1.0 + rest
    above = cosine if negative else -1.0
    above_rest = ((1.0 - cosine) + rest) if negative else 0.0
    rest = f * sine_rest(z)
    sine = f + rest
    below = sine if negative else x
    below_rest = ((f - sine) + rest) if negative else 0.0
    inverse = 1.0 / below
    ratio = above * inverse
    error = (muladd(-ratio, below_rest, fma(-ratio, below, above)) + above_rest) * inverse
    ratio = ratio + (error if abs(ratio) < 1e300 else 0.0)
    result = result + ratio if shifted else result
    result = math.nan if (negative & (f == 0.0)) | (x == -math.inf) else result
    return result if x < math.inf else x


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
