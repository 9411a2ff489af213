"""Ufuncs whose results are integers that NumPy itself computes at run time: gcd, lcm, bitwise_count, frexp.

In: nodes in the dtypes of the ufunc's loop. Out: nodes. Called by ufuncs.py through its table of rules. Integers have
no derivative; the fraction that `frexp` gives is its operand times a constant power of two, and differentiates as such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...graph.builders import cast
from ...graph.host_functions import HostFunction, host
from ...graph.ir import Node, broadcast, elementwise
from ...graph.shapes import joint_shape
from ..arrays.result_order import as_loop

INT32 = np.dtype(np.int32)
UINT8 = np.dtype(np.uint8)


def _elementwise(name: str, dtype: np.dtype[Any] | None, run: Callable[..., np.ndarray]) -> HostFunction:
    """A library function of arrays of one shape; its results have that shape, and the given dtype or the operands'."""
    return HostFunction(name, lambda inputs, params: (inputs[0].shape, dtype or inputs[0].dtype), run)


GCD = _elementwise("gcd", None, np.gcd)
LCM = _elementwise("lcm", None, np.lcm)
BITWISE_COUNT = _elementwise("bitwise_count", UINT8, np.bitwise_count)
FREXP_EXPONENT = _elementwise("frexp exponent", INT32, lambda x: np.frexp(x)[1])


def _pair(function: HostFunction) -> Callable[[Node, Node], Node]:
    def rule(x: Node, y: Node) -> Node:
        shape = joint_shape(x.shape, y.shape)
        return host(function, (broadcast(x, shape), broadcast(y, shape)))

    return as_loop(rule)


def _frexp(x: Node) -> tuple[Node, Node]:
    exponent = host(FREXP_EXPONENT, (elementwise("stop_gradient", x),))
    fraction = x
    # Two factors, because one could overflow.
    half = elementwise("floor_divide", exponent, 2)
    for part in (half, exponent - half):
        fraction = elementwise("multiply", fraction, elementwise("exp2", cast(-part, x.dtype)))
    return fraction, exponent


INTEGER_UFUNC_RULES: dict[str, Callable[..., Any]] = {
    "gcd": _pair(GCD),
    "lcm": _pair(LCM),
    "bitwise_count": as_loop(lambda x: host(BITWISE_COUNT, (x,))),
    "frexp": as_loop(_frexp),
}
"""By the ufunc's `__name__`."""
