"""The reverse rule of a function as a function of arrays itself, so that rules of any order are of one kind.

In: a function of arrays and other values. Out: a function of the same arguments and of the cotangents of its results.
Called by torch_functions.py and jax_functions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..transforms.jacobians import vjp


def pullback(function: Callable[..., Any], count: int, wanted: Sequence[int]) -> Callable[..., Any]:
    """The function from `count` arguments and all cotangents to the cotangents of the `wanted` arguments."""

    def pulled(*given: Any) -> tuple[Any, ...]:
        arguments, cotangents = list(given[:count]), given[count:]

        def part(*points: Any) -> Any:
            for position, point in zip(wanted, points, strict=True):
                arguments[position] = point
            return function(*arguments)

        return vjp(part, *[arguments[position] for position in wanted])[1](*cotangents)

    return pulled


def conjugate_pullback(function: Callable[..., Any], count: int, wanted: Sequence[int]) -> Callable[..., Any]:
    """`pullback` for JAX, whose cotangents of complex numbers are the conjugates of nbgrad's and PyTorch's."""
    pulled = pullback(function, count, wanted)

    def conjugated(*given: Any) -> tuple[Any, ...]:
        # JAX's cotangents of integers have a dtype of their own, without numbers.
        cotangents = [np.conj(one) if one.dtype.kind in "fc" else one for one in given[count:]]
        return tuple([np.conj(one) for one in pulled(*given[:count], *cotangents)])

    return conjugated
