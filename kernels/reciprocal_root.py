"""1 / sqrt(x), where vectors are wide without a division and without a square root.

In:  scalars.  Out: scalars of the same type.  Called through kernels.SCALARS.
Halving the exponent by a shift of the bits gives 1 / sqrt(x) to 3.5 % (Lomont 2003, "Fast inverse square root"); each
step of Newton's method, y + y (1/2 - x/2 y**2), squares the error.  On vectors of 512 bits this takes a third of the
time of the two instructions that it replaces; on narrower ones it takes longer than they do.
"""

import math

import numpy as np

from .bits import (
    float32_to_int32,
    float64_to_int64,
    fma,
    int32_to_float32,
    int64_to_float64,
    square_root,
    wide_registers,
    with_sign,
)

f32 = np.float32
ZERO = f32(0.0)
HALF = f32(0.5)
ONE = f32(1.0)
INFINITY = f32(math.inf)
NAN = f32(math.nan)
SMALLEST = f32(2.0**-126)
SCALE = f32(2.0**24)
SCALE_ROOT = f32(2.0**12)
MAGIC = 0x5F3759DF


def rsqrt(x):
    """1 / sqrt(x): 1.5 ULP; infinite at zero, with its sign; NaN below."""
    if not wide_registers():
        return 1.0 / square_root(x)
    return newton(x)


def newton(x):
    """1 / sqrt(x) by Newton's method."""
    tiny = x < 2.0**-1022
    scaled = x * 2.0**106 if tiny else x
    half = 0.5 * scaled
    y = int64_to_float64(0x5FE6EB50C7B537A9 - (float64_to_int64(scaled) >> 1))
    y = fma(y, fma(-half * y, y, 0.5), y)
    y = fma(y, fma(-half * y, y, 0.5), y)
    y = fma(y, fma(-half * y, y, 0.5), y)
    # The last step with the rounding error of its product.
    part = half * y
    y = fma(y, fma(-part, y, 0.5) - fma(half, y, -part) * y, y)
    y = y * 2.0**53 if tiny else y
    y = 0.0 if x == math.inf else y
    y = with_sign(math.inf, x) if x == 0.0 else y
    return math.nan if x < 0.0 else y


def rsqrt_float32(x):
    """1 / sqrt(x) of a float32: 1.5 ULP; infinite at zero, with its sign; NaN below."""
    if not wide_registers():
        return ONE / square_root(x)
    return newton_float32(x)


def newton_float32(x):
    """1 / sqrt(x) of a float32 by Newton's method."""
    tiny = x < SMALLEST
    scaled = x * SCALE if tiny else x
    half = HALF * scaled
    y = int32_to_float32(MAGIC - (float32_to_int32(scaled) >> 1))
    y = fma(y, fma(-half * y, y, HALF), y)
    y = fma(y, fma(-half * y, y, HALF), y)
    part = half * y
    y = fma(y, fma(-part, y, HALF) - fma(half, y, -part) * y, y)
    y = y * SCALE_ROOT if tiny else y
    y = ZERO if x == INFINITY else y
    y = with_sign(INFINITY, x) if x == ZERO else y
    return NAN if x < ZERO else y
