"""New arrays under MindSpore's names: filled arrays, ranges, the identity.

In: shapes and numbers. Out: Tensors that a user made, so that they promote by MindSpore's rules; float32 unless a dtype
is given or the numbers are integers. Called by users and by class_forms.py. Values may be Tensors, which differentiate.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..functions.arrays import creation
from ..graph.ir import Node
from ..record.as_node import as_node
from ..record.axes_and_dtypes import FLOAT32, Dtype, integer, real_dtype
from ..record.promotion import common_dtype
from ..record.tensor import Tensor
from ..runtime.evaluate import concrete
from .declarations import as_numpy, spelled
from .docstrings import documented


def _dtype_of(dtype: Any, *values: Node) -> Dtype:
    """The dtype of a result: the one asked for, else that of the values, Python floats being float32."""
    if dtype is not None:
        return real_dtype(dtype)
    found = common_dtype(values)
    return (
        FLOAT32 if found.kind == "f" and builtins.all(node.weak or node.dtype.kind != "f" for node in values) else found
    )


@documented
def zeros(size: Any, dtype: Any = None) -> Tensor:
    """An array of zeros.

    size : int or tuple of int
        Its shape.
    dtype : dtype, optional
        float32 by default.

    >>> nb.ops.zeros((2, 2)).dtype == "float32"
    True
    """
    return Tensor(creation.full(size, 0, FLOAT32 if dtype is None else dtype))


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """An array of ones, float32 by default."""
    return Tensor(creation.full(shape, 1, FLOAT32 if dtype is None else dtype))


@documented
def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """An array that repeats a value.

    dtype : dtype, optional
        By default that of the value: bool, int64 or float32 for Python's bool, int and float.

    >>> nb.ops.full((2,), 3.5)
    Tensor(shape=[2], dtype=Float32, value= [ 3.50000000e+00, 3.50000000e+00])
    """
    value = as_node(fill_value)
    return Tensor(creation.full(size, Tensor._of(value), _dtype_of(dtype, value)))


def fill(type: Any, shape: Any, value: Any) -> Tensor:
    """An array of a dtype and shape that repeats a value."""
    return Tensor(creation.full(shape, value, type))


@as_numpy(creation.zeros_like, "Zeros in the shape and dtype of another array.", result=Tensor)
def zeros_like(input: Any, *, dtype: Any = None) -> Tensor: ...
@as_numpy(creation.ones_like, "Ones in the shape and dtype of another array.", result=Tensor)
def ones_like(input: Any, *, dtype: Any = None) -> Tensor: ...
@as_numpy(creation.full_like, "A value repeated in the shape and dtype of another array.", result=Tensor)
def full_like(input: Any, fill_value: Any, *, dtype: Any = None) -> Tensor: ...


@documented
def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Tensor:
    """Numbers from `start` up to, but not including, `end`.

    start, end, step : number or 0-d Tensor
        With one argument, the numbers from 0 up to it.
    dtype : dtype, optional
        int64 by default if all three are integers, else float32 (or a wider dtype that a Tensor has).
    ArgumentError : If the step is 0, or leads away from the end.

    >>> nb.ops.arange(3).tolist(), nb.ops.arange(0.0, 1.0, 0.5).tolist()
    ([0, 1, 2], [0.0, 0.5])
    """
    start, end = (0, start) if end is None else (start, end)
    nodes = [as_node(value) for value in (start, end, step)]
    first, last, width = (concrete(n, "int" if n.dtype.kind in "iub" else "float").item() for n in nodes)
    if width * (last - first) < 0:
        message = f"A step of {width!r} does not lead from {first!r} to {last!r}. Change its sign."
        raise ArgumentError(message)
    return Tensor(creation.arange(first, last, width, _dtype_of(dtype, *nodes)))


def range(start: Any, end: Any, step: Any = 1, maxlen: int = 1000000) -> Tensor:
    """`arange`, with at most `maxlen` elements."""
    result = arange(start, end, step)
    if result.size > maxlen:
        message = f"The range has {result.size} elements, more than maxlen={maxlen}."
        raise ArgumentError(message)
    return result


@documented
def linspace(start: Any, end: Any, steps: Any) -> Tensor:
    """Evenly spaced points from `start` to `end`, both included; differentiable in both.

    start, end : number or Tensor
        Tensors with axes give a new first axis.
    steps : int
        The number of points.
    -> Tensor
        float32 for numbers, else of the dtype of the Tensors.

    >>> nb.ops.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    first, last = as_node(start), as_node(end)
    return Tensor(creation.linspace(Tensor._of(first), Tensor._of(last), steps, dtype=_float_of(first, last)))


def logspace(start: Any, end: Any, steps: Any, base: Any = 10, *, dtype: Any = "float32") -> Tensor:
    """Powers of `base` whose exponents are evenly spaced from `start` to `end`; float32 by default."""
    powers = creation.logspace(start, end, steps, base=base)
    return Tensor(powers, real_dtype(dtype))


def _float_of(*nodes: Node) -> Dtype:
    """float32, or the widest floating dtype that one of several Tensors has."""
    given = [node.dtype for node in nodes if not node.weak and node.dtype.kind == "f"]
    return np.result_type(*given) if given else FLOAT32


@spelled
def eye(n: Any, m: Any = None, dtype: Any = None) -> Tensor:
    """Ones on the diagonal of an n by m matrix (n by n, if m is None), zeros elsewhere; float32 by default."""
    columns = None if m is None else integer(m, "m")
    return Tensor(creation.eye(integer(n, "n"), columns, dtype=FLOAT32 if dtype is None else dtype))
