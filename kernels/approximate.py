"""The approximate instructions of GPUs, for float32.

In: float32 numbers.  Out: a float32.  Who calls: the kernels in device_math.py, by bare name.  The compiler replaces
each function by a call that the target defines (intrinsics.py).  Here they are rounded correctly; on NVIDIA GPUs the
documentation (PTX ISA, "Floating Point Instructions") says how far they may be off from that: `BOUNDS`.  Subnormal
numbers count as zero, given or found, except in `approximate_rsqrt` and `saturated_muladd`; `normal_rsqrt` takes none.
"""

import math

import numpy as np

from .bits import fma

BOUNDS = {"exp2": 2, "reciprocal": 1, "rsqrt": 2, "normal_rsqrt": 2}
"""How many floats ex2.approx, rcp.approx and rsqrt.approx (2**-22.9) may be away from the correctly rounded result."""
LOG2_BOUND = 2.0**-22
"""The largest error of lg2.approx, relative to its result or, where that is less than 1, absolute."""


def _flushed(x):
    """A number as a float32, and zero instead of a subnormal one."""
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.float32(x)
    return narrow if not abs(narrow) < 2.0**-126 else np.copysign(np.float32(0.0), narrow)


def approximate_exp2(x):
    """2**x."""
    with np.errstate(over="ignore", under="ignore"):
        return _flushed(np.exp2(np.float64(_flushed(x))))


def approximate_log2(x):
    """The logarithm to base 2; minus infinity at 0, NaN below.  Near 1 only its absolute error is small."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return _flushed(np.log2(np.float64(_flushed(x))))


def approximate_reciprocal(x):
    """1 / x."""
    with np.errstate(divide="ignore"):
        return _flushed(1.0 / np.float64(_flushed(x)))


def approximate_rsqrt(x):
    """1 / sqrt(x); infinite at zero, with its sign, NaN below."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.float32(1.0 / np.sqrt(np.float64(x)))


def normal_rsqrt(x):
    """1 / sqrt(x) for x that is not subnormal: one instruction instead of five."""
    return approximate_rsqrt(_flushed(x))


def saturated_muladd(x, y, z):
    """x * y + z, rounded once, moved into the range from 0 to 1; 0 if that is NaN.  Exact on all GPUs."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = fma(x, y, z)
    return np.float32(0.0) if math.isnan(total) else np.float32(min(max(total, 0.0), 1.0))
