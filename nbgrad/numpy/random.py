"""`nbgrad.numpy.random`: NumPy's own random numbers, which are constants of a computation.

In: NumPy's names. Out: NumPy's objects. Their parameters are numbers, not recorded values: for a gradient with respect
to a mean or a scale, write `mean + scale * rng.standard_normal(n)`. (Random numbers that compiled code draws anew at
each call are those of nbgrad.Generator and nbgrad.ops.)
"""

from __future__ import annotations

from typing import Any

import numpy.random as _numpys


def __getattr__(name: str) -> Any:
    return getattr(_numpys, name)


def __dir__() -> list[str]:
    return dir(_numpys)
