"""Comparisons, tests, logic, bit operations, choice and extrema.

In:  scalars of one dtype (`select` has a boolean condition first).  Out: a boolean for comparisons, tests and logic;
the operands' dtype otherwise.  Who calls: the table in __init__.py.  All are exact and branch-free.
"""

import math

from .bits import float32_to_int32, float64_to_int64, int32_to_float32, int64_to_float64, with_sign


def equal(x, y):
    """x == y."""
    return x == y


def not_equal(x, y):
    """x != y."""
    return x != y


def less(x, y):
    """x < y."""
    return x < y


def less_equal(x, y):
    """x <= y."""
    return x <= y


def greater(x, y):
    """x > y."""
    return x > y


def greater_equal(x, y):
    """x >= y."""
    return x >= y


def logical_and(x, y):
    """Both are non-zero."""
    return (x != 0) & (y != 0)


def logical_or(x, y):
    """Either is non-zero."""
    return (x != 0) | (y != 0)


def logical_xor(x, y):
    """Exactly one is non-zero."""
    return (x != 0) != (y != 0)


def logical_not(x):
    """x is zero."""
    return x == 0


def both(x, y):
    """x and y, for booleans."""
    return x & y


def either(x, y):
    """x or y, for booleans."""
    return x | y


def differ(x, y):
    """x exclusive-or y, for booleans."""
    return x != y


def negation(x):
    """not x, for a boolean."""
    return not x


def bitwise_and(x, y):
    """Bits set in both."""
    return x & y


def bitwise_or(x, y):
    """Bits set in either."""
    return x | y


def bitwise_xor(x, y):
    """Bits set in exactly one."""
    return x ^ y


def invert(x):
    """Every bit flipped."""
    return ~x


def left_shift(x, y):
    """x shifted left; 0 where the count is negative or at least the width."""
    inside = (y >= 0) & (y < 64)
    return (x << (y if inside else 0)) if inside else 0


def right_shift_signed(x, y):
    """x shifted right with its sign; 0 or -1 where the count is negative or at least the width."""
    inside = (y >= 0) & (y < 64)
    return x >> (y if inside else 63)


def left_shift_unsigned(x, y):
    """x shifted left; 0 where the count is at least the width."""
    zero = x - x
    return (x << (y if y < 64 else zero)) if y < 64 else zero


def right_shift_unsigned(x, y):
    """x shifted right; 0 where the count is at least the width."""
    zero = x - x
    return (x >> (y if y < 64 else zero)) if y < 64 else zero


def isnan(x):
    """x is not a number."""
    return math.isnan(x)


def isinf_float(x):
    """x is infinite."""
    return abs(x) == math.inf


def isfinite_float(x):
    """x is neither infinite nor NaN."""
    return abs(x) < math.inf


def never(x):
    """False: integers and booleans are always finite numbers."""
    return False


def always(x):
    """True: integers and booleans are always finite numbers."""
    return True


def signbit_float64(x):
    """The sign bit is set (also for -0.0 and negative NaN)."""
    return float64_to_int64(x) < 0


def signbit_float32(x):
    """The sign bit is set (also for -0.0 and negative NaN)."""
    return float32_to_int32(x) < 0


def signbit_integer(x):
    """x < 0."""
    return x < 0


def copysign(x, y):
    """The magnitude of x with the sign of y."""
    return with_sign(x, y)


def select(condition, x, y):
    """x where the condition holds, otherwise y."""
    return x if condition else y


def maximum(x, y):
    """The larger; NaN if either is NaN."""
    return x if (x > y) | (math.isnan(x)) else y


def minimum(x, y):
    """The smaller; NaN if either is NaN."""
    return x if (x < y) | (math.isnan(x)) else y


def maximum_half(x, y):
    """The larger of two numbers of float16, the first of equal ones (zeros); NaN if either is NaN."""
    return x if (x >= y) | (math.isnan(x)) else y


def minimum_half(x, y):
    """The smaller of two numbers of float16, the first of equal ones (zeros); NaN if either is NaN."""
    return x if (x <= y) | (math.isnan(x)) else y


def fmax(x, y):
    """The larger; ignores a NaN where the other is a number."""
    return x if (x >= y) | (math.isnan(y)) else y


def fmin(x, y):
    """The smaller; ignores a NaN where the other is a number."""
    return x if (x <= y) | (math.isnan(y)) else y


def nextafter_float64(x, y):
    """The float64 next to x in the direction of y."""
    bits = float64_to_int64(x)
    step = 1 if (y > x) == (x > 0.0) else -1
    moved = int64_to_float64(bits + step)
    smallest = with_sign(5e-324, y)
    result = y if x == y else (smallest if x == 0.0 else moved)
    return x + y if (math.isnan(x)) | (math.isnan(y)) else result


def nextafter_float32(x, y):
    """The float32 next to x in the direction of y."""
    bits = float32_to_int32(x)
    step = 1 if (y > x) == (x > 0.0) else -1
    moved = int32_to_float32(bits + step)
    smallest = with_sign(int32_to_float32(1), y)
    result = y if x == y else (smallest if x == 0.0 else moved)
    return x + y if (math.isnan(x)) | (math.isnan(y)) else result


def nextafter_half(x, y):
    """The float16 next to x in the direction of y, which are float32 numbers; x itself where they are equal."""
    size = abs(x)
    grows = (y > x) == (x > 0.0)
    # Neighbours differ by 2**13 in the bits of a float32, or by 2**-24 where float16 is subnormal.
    bits = float32_to_int32(size)
    moved = int32_to_float32(bits + (8192 if grows else -8192))
    smallest = int32_to_float32(0x33800000)
    fine = size + (smallest if grows else -smallest)
    lowest_normal = int32_to_float32(0x38800000)
    subnormal = (size < lowest_normal) | ((size == lowest_normal) & (not grows))
    largest = int32_to_float32(0x477FE000)
    near = fine if subnormal else (largest if size == math.inf else moved)
    result = with_sign(smallest, y) if x == 0.0 else with_sign(near, x)
    result = x if x == y else result
    return x + y if (math.isnan(x)) | (math.isnan(y)) else result
