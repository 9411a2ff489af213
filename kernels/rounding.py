"""Rounding to whole numbers: floor, ceil, rint, trunc.

In:  a float scalar (integers round to themselves: see `positive`).  Out: a float of the same dtype.
Who calls: the table in __init__.py.  Exact; signed zeros, infinities and NaN are kept.
"""

from .bits import round_down, round_to_even, round_to_zero, round_up


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
