"""Kernels for GPUs that differ in one operation: the same function with another one called by name.

In:  a plain function, and functions for some of the names that it calls.  Out: another plain function.  Who calls: the
kernels in the files device_*.py, when they are imported.
"""

from types import FunctionType


def variant(function, name, **called):
    """A function with the same code under another name, in which some global names mean other functions.

    Examples
    --------
    >>> def twice(x):
    ...     return joined(x, x)
    >>> variant(twice, "doubled", joined=lambda x, y: x + y)(4)
    8
    """
    made = FunctionType(function.__code__, {**function.__globals__, **called}, name, function.__defaults__)
    made.__qualname__ = name
    made.__doc__ = function.__doc__
    return made
