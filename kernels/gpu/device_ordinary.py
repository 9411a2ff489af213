"""Operations on float32 numbers of ordinary magnitude on GPUs: without the cases that are rare.

In:  float32 numbers.  Out: a float32, and whether it holds: if not, the whole operation gives the result.  Who calls:
nbgrad/device/kernels/device_scalars.py, for the operations in the table `ORDINARY`; the emitter does several points
at once, and tests them with one branch.

`divide` and `sqrt` are rounded correctly: they are the instructions that NVIDIA's compiler makes of div.rn and sqrt.rn
for operands for which it calls no function. A division is that for inverses that are one float off, too, unless all
bits of the divisor's fraction are set.
"""

import numpy as np

from ..approximate import approximate_reciprocal, normal_rsqrt
from ..bits import float32_to_int32, fma, int32_to_float32, muladd
from .device_math import EXPONENT_MASK, LN2, TWO_THIRDS_BITS, UNIT, log_fraction

f32 = np.float32
HALF = f32(0.5)
ONE = f32(1.0)
SMALL = f32(2.0**-125)
LARGE = f32(2.0**126)
EXACT = f32(2.0**-101)
"""From here on the rest of a division is no subnormal number."""
EXACT_ROOT = f32(2.0**-50)
"""From here on the rest of a square root is none."""


def divide(x, y):
    """x / y: divisions by the same number share the inverse."""
    inverse = approximate_reciprocal(y)
    inverse = fma(fma(-y, inverse, ONE), inverse, inverse)
    quotient = x * inverse
    return fma(fma(-y, quotient, x), inverse, quotient)


def divide_holds(quotient, x, y):
    """Whether nothing is subnormal: infinite inverses have made the quotient NaN, flushed ones have made it 0."""
    return (abs(x) >= EXACT) & (abs(quotient) >= SMALL)


def sqrt(x):
    """The square root."""
    inverse = normal_rsqrt(x)
    root = x * inverse
    return fma(fma(-root, root, x), HALF * inverse, root)


def sqrt_holds(root, x):
    """Whether x is finite and above 2**-100; the root of others is NaN, too small, or (below zero) infinite."""
    return (root >= EXACT_ROOT) & (root <= LARGE)


def rsqrt(x):
    """1 / sqrt(x): 3.0 ULP."""
    return normal_rsqrt(x)


def rsqrt_holds(inverse, x):
    """Whether x is not subnormal."""
    return x >= SMALL


def log(x):
    """The natural logarithm: 1.0 ULP."""
    i = float32_to_int32(x)
    shift = (i - TWO_THIRDS_BITS) & EXPONENT_MASK
    return muladd(f32(np.int32(shift)) * UNIT, LN2, log_fraction(int32_to_float32(i - shift) - ONE))


def log_holds(logarithm, x):
    """Whether x is positive, normal and finite."""
    return (x >= SMALL) & (x <= LARGE)


ORDINARY = {
    "divide": (divide, divide_holds),
    "sqrt": (sqrt, sqrt_holds),
    "rsqrt": (rsqrt, rsqrt_holds),
    "log": (log, log_holds),
}
"""By primitive: the operation, and the test of its result and operands."""
