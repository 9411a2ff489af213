"""sin, cos and tan of float32 numbers on GPUs: an angle is reduced once for all that is computed of it.

In:  a float32; the functions that end in _at also get what `angle` gives for it.  Out: a float32, or an integer. Who
calls: nbgrad/device/kernels/device_scalars.py, for the functions in `SCALARS` of device_math.py and in `AT_ANGLE`.
"""

import math

import numpy as np

from ..approximate import approximate_reciprocal
from ..bits import float32_to_int32, fma, int32_to_float32, muladd

f32 = np.float32
HALF = f32(0.5)
ONE = f32(1.0)
INFINITY = f32(math.inf)
NAN = f32(math.nan)
# 1.5 * 2**23 rounds to a whole number.
ROUNDER = f32(12582912.0)
SIGN = -0x80000000
LOW_WORD = 0xFFFFFFFF
TWO_OVER_PI = f32(0.63661975)
HALF_PI = f32(1.5707963)
HALF_PI_SECOND = f32(7.5497894e-08)
HALF_PI_THIRD = f32(5.3903025e-15)
LARGEST_REDUCED = f32(65536.0)


def reduce_angle(x):
    """(quadrant, r) with x = quadrant pi / 2 + r and |r| <= 0.79, for |x| <= 65536; the bits end in the quadrant's."""
    shifted = fma(x, TWO_OVER_PI, ROUNDER)
    n = shifted - ROUNDER
    r = fma(n, -HALF_PI_THIRD, fma(n, -HALF_PI_SECOND, fma(n, -HALF_PI, x)))
    return float32_to_int32(shifted), r


def reduce_huge_angle(a):
    """The result of `reduce_angle` for a > 65536, by 96 bits of 2 / pi (Payne and Hanek 1983); NaN if not finite."""
    i = int(float32_to_int32(a))
    mantissa = ((i & 0x7FFFFF) | 0x800000) << 8
    exponent = (i >> 23) - 126
    # The four words from number exponent // 32 on, of those of 2 / pi behind one that is zero.
    far = (exponent & 128) != 0
    w0 = 0x7D4D3770 if far else 0
    w1 = 0x36D8A566 if far else 0x28BE60DB
    w2 = 0x4F10E410 if far else 0x9391054A
    w3 = 0x7F9458EA if far else 0x7F09D5F4
    second = (exponent & 64) != 0
    w0 = w2 if second else w0
    w1 = w3 if second else w1
    w2 = 0x7D4D3770 if second else w2
    w3 = 0x36D8A566 if second else w3
    w4 = 0x4F10E410 if second else 0x7D4D3770
    first = (exponent & 32) != 0
    w0 = w1 if first else w0
    w1 = w2 if first else w1
    w2 = w3 if first else w2
    w3 = w4 if first else w3
    # Three words from bit exponent % 32 on.
    shift = exponent & 31
    high = (((w0 << 32) | w1) << shift) >> 32 & LOW_WORD
    middle = (((w1 << 32) | w2) << shift) >> 32 & LOW_WORD
    low = (((w2 << 32) | w3) << shift) >> 32 & LOW_WORD
    # Bits 62 and 63 of the product are the quadrant, those below a fraction of it.
    product = mantissa * middle + ((mantissa * low) >> 32 & LOW_WORD) + (mantissa * high << 32)
    fraction = product & 0x3FFFFFFFFFFFFFFF
    above = fraction >= 0x2000000000000000
    rest = fraction - 0x4000000000000000 if above else fraction
    quadrant = (product >> 62) + (1 if above else 0)
    r = f32(np.float64(rest) * 3.4061215800304862e-19)
    return np.int32(quadrant & 3), (r if a < INFINITY else NAN)


def circular(r, odd):
    """cos(r) if `odd`, else sin(r)."""
    z = r * r
    p = muladd(z, f32(-0.00019518394), f32(0.00833219))
    p = muladd(z, p, f32(-0.16666655))
    q = muladd(z, f32(2.4430661e-05), f32(-0.0013887301))
    q = muladd(z, q, f32(0.041666646))
    q = muladd(z, q, f32(-0.5))
    # Both, and then a choice: a gradient needs the other one too.
    sine = muladd(z * r, p, r)
    cosine = muladd(z, q, ONE)
    return cosine if odd else sine


def angle(x):
    """`reduce_angle` of |x|, whatever it is, in one integer: the bits of r below those of the quadrant."""
    a = abs(x)
    quadrant, r = reduce_angle(a)
    if not a <= LARGEST_REDUCED:
        quadrant, r = reduce_huge_angle(a)
    return (int(quadrant) << 32) | (int(float32_to_int32(r)) & LOW_WORD)


def ordinary_angle(x):
    """`angle` of ordinary angles."""
    quadrant, r = reduce_angle(abs(x))
    return (int(quadrant) << 32) | (int(float32_to_int32(r)) & LOW_WORD)


def is_ordinary_angle(reduced, x):
    """Whether `reduced` is the `angle` of x, if `ordinary_angle` gave it."""
    return abs(x) <= LARGEST_REDUCED


def sin_at(x, reduced):
    """The sine of x, whose `angle` is given."""
    quadrant = reduced >> 32
    value = circular(int32_to_float32(reduced), (quadrant & 1) != 0)
    sign = ((quadrant << 30) ^ int(float32_to_int32(x))) & SIGN
    return int32_to_float32(int(float32_to_int32(value)) ^ sign)


def cos_at(x, reduced):
    """The cosine of x, whose `angle` is given."""
    quadrant = reduced >> 32
    value = circular(int32_to_float32(reduced), (quadrant & 1) == 0)
    return int32_to_float32(int(float32_to_int32(value)) ^ (((quadrant + 1) << 30) & SIGN))


def tan_at(x, reduced):
    """The tangent of x, whose `angle` is given."""
    r = int32_to_float32(reduced)
    z = r * r
    p = muladd(z, f32(0.004380844533443451), f32(8.306430390803143e-05))
    p = muladd(z, p, f32(0.01083818357437849))
    p = muladd(z, p, f32(0.02128264680504799))
    p = muladd(z, p, f32(0.054059457033872604))
    p = muladd(z, p, f32(0.1333267241716385))
    p = muladd(z, p, f32(0.33333349227905273))
    result = muladd(z * r, p, r)
    # -1 / tan(r), by one step of Newton's method.
    inverse = approximate_reciprocal(result)
    inverse = fma(fma(-result, inverse, ONE), inverse, inverse)
    result = -inverse if ((reduced >> 32) & 1) != 0 else result
    return int32_to_float32(int(float32_to_int32(result)) ^ (int(float32_to_int32(x)) & SIGN))


def sin(x):
    """The sine: 1.6 ULP on the whole line."""
    return sin_at(x, angle(x))


def cos(x):
    """The cosine: 1.6 ULP on the whole line."""
    return cos_at(x, angle(x))


def tan(x):
    """The tangent: 2.5 ULP on the whole line."""
    return tan_at(x, angle(x))


AT_ANGLE = {"sin": sin_at, "cos": cos_at, "tan": tan_at}
"""The functions of an angle that is reduced already."""
