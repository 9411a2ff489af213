"""Arithmetic of floats, integers and booleans, with NumPy's rules.

In:  scalars of one dtype.  Out: a scalar that the compiler casts (integers: truncates) to that dtype.
Who calls: the table in __init__.py.  Integer kernels never trap: dividing by zero gives 0, as in NumPy, and the
lowest integer divided by -1 wraps.  All are exact or correctly rounded unless the docstring says otherwise.
"""

import math

import numpy as np

from .bits import (
    exponent_of,
    fma,
    fraction_of,
    rare_fmod,
    round_down,
    round_to_even,
    round_to_zero,
    round_up,
    square_root,
    with_sign,
)

UNSIGNED_ZERO = np.uint64(0)
UNSIGNED_ONE = np.uint64(1)


def add(x, y):
    """x + y."""
    return x + y


def subtract(x, y):
    """x - y."""
    return x - y


def multiply(x, y):
    """x * y."""
    return x * y


def divide(x, y):
    """x / y for floats; zero divided by zero is NaN."""
    return x / y


def negative(x):
    """-x."""
    return -x


def positive(x):
    """x."""
    return x


def sqrt(x):
    """Correctly rounded square root; NaN below zero."""
    return square_root(x)


def absolute(x):
    """|x|; the lowest signed integer stays as it is."""
    return abs(x)


def sign_float(x):
    """-1, 0 or 1; NaN stays NaN."""
    return x if math.isnan(x) else (1.0 if x > 0.0 else (-1.0 if x < 0.0 else 0.0))


def sign_signed(x):
    """-1, 0 or 1."""
    return (x > 0) * 1 - (x < 0) * 1


def sign_unsigned(x):
    """0 or 1."""
    return (x != 0) * 1


def fmod_float(x, y):
    """The exact remainder of x / y that has the sign of x.

    With q = trunc(x / y) off by at most one, x - q y is a float, so that one fused operation finds it exactly.
    Quotients beyond 2**52, and those of a subnormal y, go to the C library.
    """
    a = abs(np.float64(x))
    b = abs(np.float64(y))
    quotient = round_to_zero(a / b)
    rest = fma(-quotient, b, a)
    rest = rest + b if rest < 0.0 else rest
    rest = rest - b if rest >= b else rest
    rest = a if a < b else rest
    if (a < math.inf) & ((quotient > 4503599627370496.0) | (b < 1e-290)):
        rest = rare_fmod(a, b)
    rest = math.nan if a == math.inf else rest
    return with_sign(rest, np.float64(x))


def remainder_float(x, y):
    """The remainder of x / y that has the sign of y; 0.5 ULP."""
    y = np.float64(y)
    rest = fmod_float(x, y)
    shifted = rest + y if (rest < 0.0) != (y < 0.0) else rest
    return with_sign(0.0, y) if rest == 0.0 else shifted


def floor_divide_float(x, y):
    """floor(x / y), the whole number that belongs to `remainder`, as NumPy computes it."""
    x = np.float64(x)
    y = np.float64(y)
    rest = fmod_float(x, y)
    quotient = (x - rest) / y
    quotient = quotient - 1.0 if (rest != 0.0) & ((rest < 0.0) != (y < 0.0)) else quotient
    floored = round_down(quotient)
    floored = floored + 1.0 if quotient - floored > 0.5 else floored
    result = with_sign(0.0, x / y) if quotient == 0.0 else floored
    return x / y if y == 0.0 else result


def floor_divide_signed(x, y):
    """floor(x / y); 0 where y is 0."""
    minus = y == -1
    safe = 1 if (y == 0) | minus else y
    quotient = x // safe
    return 0 if y == 0 else (-x if minus else quotient)


def remainder_signed(x, y):
    """x - y * floor(x / y); 0 where y is 0."""
    safe = 1 if (y == 0) | (y == -1) else y
    return 0 if y == 0 else x % safe


def fmod_signed(x, y):
    """The remainder of x / y that has the sign of x; 0 where y is 0."""
    safe = 1 if (y == 0) | (y == -1) else y
    rest = x % safe
    return rest - safe if (rest != 0) & ((rest < 0) != (x < 0)) else rest


def floor_divide_unsigned(x, y):
    """floor(x / y); 0 where y is 0."""
    return x // y if y != 0 else x - x


def remainder_unsigned(x, y):
    """x - y * floor(x / y); 0 where y is 0."""
    return x % y if y != 0 else x - x


def power_signed(x, y):
    """x ** y by repeated squaring, wrapping; a negative exponent gives the truncated 1 / x ** -y (0 where x is 0)."""
    result = 1
    base = x
    exponent = max(0, y)
    while exponent > 0:
        result = result * base if exponent & 1 else result
        base = base * base
        exponent = exponent >> 1
    inverse = 1 if x == 1 else ((-1 if y & 1 else 1) if x == -1 else 0)
    return inverse if y < 0 else result


def power_unsigned(x, y):
    """x ** y by repeated squaring, wrapping."""
    result = UNSIGNED_ONE
    base = np.uint64(x)
    exponent = np.uint64(y)
    while exponent != 0:
        result = result * base if exponent & UNSIGNED_ONE else result
        base = base * base
        exponent = exponent >> UNSIGNED_ONE
    return result


# ----- Rounding to whole numbers: a float of the same dtype; signed zeros, infinities and NaN are kept -----


def floor(x):
    """The largest whole number that is at most x."""
    return round_down(x)


def ceil(x):
    """The smallest whole number that is at least x."""
    return round_up(x)


def trunc(x):
    """x without its fraction."""
    return round_to_zero(x)


def rint(x):
    """The nearest whole number, ties to even."""
    return round_to_even(x)


def gcd(x, y):
    """The greatest common divisor by Euclid's algorithm; the other number where one is 0."""
    x = np.uint64(x)
    y = np.uint64(y)
    while y != UNSIGNED_ZERO:
        x, y = y, x % y
    return x


def gcd_signed(x, y):
    """`gcd` of the sizes of numbers."""
    return gcd(abs(np.int64(x)), abs(np.int64(y)))


def lcm(x, y):
    """The least common multiple, wrapping; 0 where a number is 0."""
    x = np.uint64(x)
    y = np.uint64(y)
    divisor = gcd(x, y)
    return x // divisor * y if divisor != UNSIGNED_ZERO else divisor


def lcm_signed(x, y):
    """`lcm` of the sizes of numbers."""
    return lcm(abs(np.int64(x)), abs(np.int64(y)))


def bit_count(x):
    """The number of bits that are 1, added in pairs, fours and bytes."""
    x = np.int64(x)
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    x = x + (x >> 8)
    x = x + (x >> 16)
    return (x + (x >> 32)) & 127


def bit_count_signed(x):
    """`bit_count` of the size of a number."""
    return bit_count(abs(np.int64(x)))


def frexp_fraction(x):
    """The number f of x = 2**k f with 0.5 <= |f| < 1; x itself if it is 0, infinite or NaN."""
    size = abs(x)
    return with_sign(fraction_of(size) * 0.5, x) if (size > 0) & (size < math.inf) else x


def frexp_exponent(x):
    """The whole number k of x = 2**k f with 0.5 <= |f| < 1, as a float; 0 if x is 0, infinite or NaN."""
    size = abs(x)
    return exponent_of(x) + 1 if (size > 0) & (size < math.inf) else 0
