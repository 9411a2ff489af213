"""Python numbers as nodes, and the dtypes that nodes can have.

In: numbers, dtypes. Out: weak 0-d nodes, which take the dtype of the arrays that they meet. Called by promotion.py and
as_node.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DtypeError
from ..graph.complex_numbers import pair
from ..graph.ir import BOOL, INT64, Node, constant, literal

FLOAT64 = np.dtype(np.float64)
UINT64 = np.dtype(np.uint64)
BAKED = frozenset([*range(-16, 17), 0.5, -0.5, 0.25, 1.5, 100])


def number(value: complex) -> Node:
    """A Python number as a weak 0-d node: common ones are baked into the program, other floats are run-time inputs."""
    if isinstance(value, complex):
        node = pair(number(value.real), number(value.imag))
        node.weak = True
        return node
    if isinstance(value, bool):
        return literal(value, BOOL, weak=True)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            message = f"The integer {value} does not fit in 64 bits. Use a float."
            raise DtypeError(message)
        return literal(value, INT64 if value < 2**63 else UINT64, weak=True)
    if value in BAKED:
        return literal(value, FLOAT64, weak=True)
    return constant(np.array(value, FLOAT64), weak=True)


def supported(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of a dtype can be computed with: booleans, integers and floats of at most 64 bits, and complex
    numbers of two of those."""
    return dtype.itemsize <= (16 if dtype.kind == "c" else 8) and dtype.kind in "fiubc"


def python_numbers(value: Any) -> bool:
    """Whether a value is a nested list of nothing but Python numbers (or one such number)."""
    if isinstance(value, list | tuple):
        return all(python_numbers(v) for v in value)
    return type(value) in (float, int, bool)
