"""Between users' values and graph: what every function in `nbgrad.numpy` does first and last.

In: Tensors, ndarrays, NumPy scalars, Python numbers, nested lists of them. Out: nodes, and Tensors of nodes. An ndarray
that can still be changed is copied when it is used, so that changing it later never changes what was recorded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DtypeError
from ..graph.complex_numbers import pair
from ..graph.ir import BOOL, INT64, Node, constant, literal, snapshot
from ..interop import conversion_of, device_node, on_cuda, values_of
from ..runtime.evaluate import LONGEST_CHAIN, settle
from ..tensor import Tensor

FLOAT64 = np.dtype(np.float64)
UINT64 = np.dtype(np.uint64)
_BAKED = frozenset([*range(-16, 17), 0.5, -0.5, 0.25, 1.5, 100])


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
    if value in _BAKED:
        return literal(value, FLOAT64, weak=True)
    return constant(np.array(value, FLOAT64), weak=True)


def supported(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of a dtype can be computed with: booleans, integers and floats of at most 64 bits, and complex
    numbers of two of those."""
    return dtype.itemsize <= (16 if dtype.kind == "c" else 8) and dtype.kind in "fiubc"


def as_node(value: Any) -> Node:
    """The node of anything array-like.

    Raises
    ------
    DtypeError
        If the value is not an array of numbers or booleans.
    """
    if isinstance(value, Tensor):
        return value._node
    if type(value) in (float, int, bool, complex):
        return number(value)
    if type(value) is np.ndarray or isinstance(value, np.generic):
        array = np.asarray(value)
    elif isinstance(value, list | tuple):
        if any_tensor(value):
            from .construction import assembled

            return assembled(value)
        array = np.array(value)
    elif on_cuda(value):
        return device_node(value, copy=True)
    else:
        array = values_of(value)
    if not supported(array.dtype):
        message = (
            "Expected an array of booleans, or of integers or floats of at most 64 bits, or complex ones, but got "
            f"{type(value).__name__} with dtype {array.dtype}. {conversion_of(array.dtype)}"
        )
        raise DtypeError(message)
    if array.dtype.isnative and type(value) is np.ndarray and (array.flags.writeable or array.base is not None):
        return snapshot(array)
    return constant(array)


def any_tensor(values: Any) -> bool:
    """Whether nested lists and tuples hold a Tensor anywhere."""
    stack = [values]
    while stack:
        value = stack.pop()
        if isinstance(value, Tensor):
            return True
        if isinstance(value, list | tuple):
            stack.extend(value)
    return False


def wrap(node: Node) -> Tensor:
    """The Tensor of a node; long chains that nothing is recording are computed now."""
    if node.depth > LONGEST_CHAIN:
        settle(node)
    tensor = _new(Tensor)
    tensor._node = node
    return tensor


_new = object.__new__
