"""Operations that Python's scalars lack: bit casts, one-rounding fused multiply-add, float-to-float rounding.

In:  Python or NumPy scalars.  Out: scalars of the same width.
Who calls: every other kernel, by bare name.  The functions here are slow stand-ins with the exact meaning, so that a
kernel also runs as ordinary Python; the compiler replaces each one by a single machine operation (intrinsics.py).
Kernels must use these rather than `math.floor` and friends, which compile to library calls that stop vectorisation.
"""

import math
from fractions import Fraction

import numpy as np


def float64_to_int64(x):
    """The 64 bits of a float64, as a signed integer."""
    return int(np.float64(x).view(np.int64))


def int64_to_float64(i):
    """The float64 that has these 64 bits."""
    return float(np.uint64(int(i) & 0xFFFFFFFFFFFFFFFF).view(np.float64))


def float32_to_int32(x):
    """The 32 bits of a float32, as a signed integer."""
    return np.float32(x).view(np.int32)


def int32_to_float32(i):
    """The float32 that has these 32 bits."""
    return np.uint32(int(i) & 0xFFFFFFFF).view(np.float32)


def fma(x, y, z):
    """x * y + z with one rounding."""
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return type(x)(float(x) * float(y) + float(z))
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if exact == 0:
        return type(x)(float(x) * float(y) + float(z))
    try:
        return type(x)(float(exact))
    except OverflowError:
        return type(x)(math.copysign(math.inf, exact))


def muladd(x, y, z):
    """x * y + z with one rounding or two, whichever is faster: for the terms of polynomials, where either will do."""
    return x * y + z


def round_down(x):
    """floor(x), as a float."""
    return np.floor(x)


def round_up(x):
    """ceil(x), as a float."""
    return np.ceil(x)


def round_to_zero(x):
    """trunc(x), as a float."""
    return np.trunc(x)


def round_to_even(x):
    """The nearest integer as a float, ties to even."""
    return np.rint(x)


def square_root(x):
    """Correctly rounded square root; NaN below zero."""
    return np.sqrt(x) if x >= 0 else x + math.nan if math.isnan(x) else type(x)(math.nan)


def exponent_of(x):
    """The exponent of |x| as a float: |x| = 2**k f with 1 <= f < 2; -inf of 0, and inf and NaN of themselves."""
    if not math.isfinite(x) or x == 0:
        return abs(x) if x != 0 else type(x)(-math.inf)
    return type(x)(math.frexp(float(x))[1] - 1)


def fraction_of(x):
    """The factor f of `exponent_of`; 1 for 0 and infinity, NaN for negative numbers, anything for NaN."""
    if not 0 < x < math.inf:
        return type(x)(math.nan if x < 0 or math.isnan(x) else 1)
    return type(x)(math.frexp(float(x))[0] * 2)


def times_two_to(x, n):
    """x * 2**n, rounded once, for a whole number n of any size."""
    return type(x)(math.ldexp(float(x), int(n)))


def wide_registers():
    """Whether vectors have 512 bits; a constant where a kernel is compiled."""
    return False


def rare_sin(x):
    """The C library's sine; for a branch that hardly ever runs."""
    return np.sin(x)


def rare_cos(x):
    """The C library's cosine; for a branch that hardly ever runs."""
    return np.cos(x)


def rare_tan(x):
    """The C library's tangent; for a branch that hardly ever runs."""
    return np.tan(x)


def rare_fmod(x, y):
    """The C library's fmod; for a branch that hardly ever runs."""
    return np.fmod(x, y)


def with_sign(x, y):
    """The magnitude of x with the sign of y."""
    return np.copysign(x, y)
