"""Modified Bessel functions of the first kind, I0 and I1, as they are and times exp(-|x|).

In:  a float.  Out: a float.  Who calls: the table in __init__.py.
Branch-free, so that loops over them vectorise.  Up to |x| = 8 the power series say what to approximate: with
a = (x / 2)**2, I0 is 1 + a P0(a) and I1 is x / 2 times 1 + a P1(a); beyond, exp(-x) sqrt(x) I(x) is a polynomial in
8 / x (NIST Digital Library of Mathematical Functions, 10.25.2 and 10.40.1).  Polynomials: interpolation at Chebyshev's
nodes in 60 digits.
"""

from .bits import muladd, square_root
from .exponential import exp

FAR = 8.0
# exp(x) is taken in two parts, of which the first is finite wherever the result is, and x - SHIFT has no rounding.
SHIFT = 16.0
EXP_SHIFT = 8886110.520507872


def near_0(a):
    """P0, for a from 0 to 16."""
    z = a * a
    even = muladd(z, 5.062353740472856e-25, 2.5722398177811744e-20)
    even = muladd(z, even, 6.275948796822122e-16)
    even = muladd(z, even, 7.594057685381156e-12)
    even = muladd(z, even, 3.936759887993035e-08)
    even = muladd(z, even, 6.944444444440493e-05)
    even = muladd(z, even, 0.027777777777777762)
    even = muladd(z, even, 1.0)
    odd = muladd(z, 3.548836657975522e-27, 1.3440225063774028e-22)
    odd = muladd(z, odd, 4.359498405380122e-18)
    odd = muladd(z, odd, 7.594070019494474e-14)
    odd = muladd(z, odd, 6.151187361364193e-10)
    odd = muladd(z, odd, 1.929012345705309e-06)
    odd = muladd(z, odd, 0.001736111111111147)
    odd = muladd(z, odd, 0.25)
    return muladd(a, odd, even)


def far_0(v):
    """exp(-x) sqrt(x) I0(x), for v = 8 / x from 0 to 1."""
    w = v - 0.5
    z = w * w
    even = muladd(z, 0.0004564239425667149, -0.0007836894098240403)
    even = muladd(z, even, 0.0006286718331505669)
    even = muladd(z, even, -0.00031773497243190536)
    even = muladd(z, even, 0.00011124392597742774)
    even = muladd(z, even, -2.1145673240326198e-05)
    even = muladd(z, even, -6.96932359693279e-06)
    even = muladd(z, even, 5.518543644134078e-06)
    even = muladd(z, even, 5.67817895612456e-06)
    even = muladd(z, even, 2.3741561380955162e-05)
    even = muladd(z, even, 0.0005448642975674877)
    even = muladd(z, even, 0.4021765094450081)
    odd = muladd(z, 7.393134027107563e-05, -0.00014408019540841768)
    odd = muladd(z, odd, 0.00014318996352491407)
    odd = muladd(z, odd, -0.00010218748514180268)
    odd = muladd(z, odd, 5.999256154212674e-05)
    odd = muladd(z, odd, -2.7278947516456838e-05)
    odd = muladd(z, odd, 3.856581845788223e-06)
    odd = muladd(z, odd, 5.034146010996802e-06)
    odd = muladd(z, odd, 9.51550610608901e-06)
    odd = muladd(z, odd, 8.914427042066946e-05)
    odd = muladd(z, odd, 0.006721103967335447)
    return muladd(w, odd, even)


def near_1(a):
    """P1, for a from 0 to 16."""
    z = a * a
    even = muladd(z, 3.225202860362286e-26, 1.8384424828664606e-21)
    even = muladd(z, even, 5.2299955491802355e-17)
    even = muladd(z, even, 7.594058023571055e-13)
    even = muladd(z, even, 4.920949860801085e-09)
    even = muladd(z, even, 1.1574074074071924e-05)
    even = muladd(z, even, 0.006944444444444443)
    even = muladd(z, even, 0.5)
    odd = muladd(z, 2.037850369395233e-28, 8.926111154793565e-24)
    odd = muladd(z, odd, 3.353212008562119e-19)
    odd = muladd(z, odd, 6.9036957952589725e-15)
    odd = muladd(z, odd, 6.834652604146068e-11)
    odd = muladd(z, odd, 2.755731922412906e-07)
    odd = muladd(z, odd, 0.0003472222222222242)
    odd = muladd(z, odd, 0.08333333333333333)
    return muladd(a, odd, even)


def far_1(v):
    """exp(-x) sqrt(x) I1(x), for v = 8 / x from 0 to 1."""
    w = v - 0.5
    z = w * w
    even = muladd(z, -0.00047516802365472427, 0.0008169111870851609)
    even = muladd(z, even, -0.0006569895501652006)
    even = muladd(z, even, 0.00033384145233997584)
    even = muladd(z, even, -0.00011833383614798194)
    even = muladd(z, even, 2.3440087152452223e-05)
    even = muladd(z, even, 6.958155253951883e-06)
    even = muladd(z, even, -5.985968986521877e-06)
    even = muladd(z, even, -6.400781208831973e-06)
    even = muladd(z, even, -2.9358562463463235e-05)
    even = muladd(z, even, -0.000876943055335316)
    even = muladd(z, even, 0.38939845902587233)
    odd = muladd(z, -6.853001182404322e-05, 0.0001353800453011478)
    odd = muladd(z, odd, -0.0001373127021070912)
    odd = muladd(z, odd, 0.00010065476206844142)
    odd = muladd(z, odd, -6.0887329469430106e-05)
    odd = muladd(z, odd, 2.857497620922901e-05)
    odd = muladd(z, odd, -4.304551341863842e-06)
    odd = muladd(z, odd, -5.5209363998394625e-06)
    odd = muladd(z, odd, -1.1148329828387449e-05)
    odd = muladd(z, odd, -0.00012030837769019385)
    odd = muladd(z, odd, -0.019499154386471217)
    return muladd(w, odd, even)


def parts_0(size):
    """I0(x) as it is up to x = 8, and exp(-x) I0(x) beyond."""
    return muladd(0.25 * size * size, near_0(0.25 * size * size), 1.0), far_0(FAR / size) / square_root(size)


def parts_1(size):
    """I1(x) as it is up to x = 8, and exp(-x) I1(x) beyond."""
    near = 0.5 * size * muladd(0.25 * size * size, near_1(0.25 * size * size), 1.0)
    return near, far_1(FAR / size) / square_root(size)


def i0(x):
    """I0(x): 4 ULP on the whole line, also where exp(|x|) overflows and it does not."""
    size = abs(x)
    near, far = parts_0(size)
    far = far * exp(size - SHIFT) * EXP_SHIFT
    return far if size > FAR else near


def i1(x):
    """I1(x): 4 ULP on the whole line, also where exp(|x|) overflows and it does not."""
    size = abs(x)
    near, far = parts_1(size)
    far = far * exp(size - SHIFT) * EXP_SHIFT
    result = far if size > FAR else near
    return -result if x < 0.0 else result


def i0e(x):
    """exp(-|x|) I0(x): 4 ULP on the whole line."""
    size = abs(x)
    near, far = parts_0(size)
    near = near * exp(-size)
    return far if size > FAR else near


def i1e(x):
    """exp(-|x|) I1(x): 4 ULP on the whole line."""
    size = abs(x)
    near, far = parts_1(size)
    near = near * exp(-size)
    result = far if size > FAR else near
    return -result if x < 0.0 else result
