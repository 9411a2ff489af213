"""Between Python values and Tensors: dtypes, tuples of numbers, printing; under MindSpore's names.

In: Tensors, numbers, tuples. Out: the same the other way. Called by users, mostly by the names in `ops.functional`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..dtype import DType, dtype_of
from ..errors import DtypeError
from ..record.as_node import as_node, wrap
from ..record.tensor import Tensor
from .declarations import also
from .docstrings import documented


@documented
def dtype(input: Any) -> DType:
    """The element type of an array.

    input : array-like
    -> DType

    >>> print(nb.ops.dtype(nb.Tensor([1.0])))
    Float32
    """
    return dtype_of(as_node(input).dtype)


@documented
def identity(input: Any) -> Any:
    """The argument itself."""
    return input


@documented
def tuple_to_array(input_x: Any) -> Tensor:
    """A Tensor of the numbers of a tuple.

    input_x : tuple or list of numbers
        All of one type.
    -> Tensor
        Of float32, or of int64.
    DtypeError : If they are no numbers, or ints and floats together.

    >>> nb.ops.tuple_to_array((1, 2, 3))
    Tensor(shape=[3], dtype=Int64, value= [1, 2, 3])
    """
    kinds = {type(value) for value in input_x} if isinstance(input_x, tuple | list) else set()
    if len(kinds) > 1 or not kinds <= {int, float, bool}:
        message = f"tuple_to_array takes a tuple of ints, or of floats, but got {input_x!r:.60}."
        raise DtypeError(message)
    return Tensor(np.array(input_x, np.float32 if float in kinds else np.int64))


@documented
def scalar_to_tensor(input_x: Any, dtype: Any = None) -> Tensor:
    """A Tensor without axes of a number.

    input_x : int, float or bool
    dtype : dtype
        Chosen by the number if absent: bool, int64 or float32.
    -> Tensor
    DtypeError : If it is no number.

    >>> nb.ops.scalar_to_tensor(1)
    Tensor(shape=[], dtype=Int64, value= 1)
    """
    if not isinstance(input_x, bool | int | float):
        message = f"scalar_to_tensor takes a number, but got {type(input_x).__name__}."
        raise DtypeError(message)
    chosen = {bool: np.bool_, int: np.int64, float: np.float32}[type(input_x)] if dtype is None else np.dtype(dtype)
    return Tensor(np.array(input_x, chosen))


@documented
def scalar_cast(input_x: Any, input_y: Any) -> Any:
    """A number as another Python type.

    input_x : number
    input_y : dtype
    -> int or float or bool

    >>> nb.ops.scalar_cast(2.75, nb.int32)
    2
    """
    kind = np.dtype(input_y).kind
    return {"b": bool, "f": float}.get(kind, int)(input_x)


@documented
def make_range(start: int, limit: int | None = None, delta: int = 1) -> tuple[int, ...]:
    """The integers of an interval, as a tuple.

    start, limit, delta : int
        As Python's `range` takes them.
    -> tuple of int

    >>> nb.ops.make_range(1, 7, 2)
    (1, 3, 5)
    """
    return tuple(range(start) if limit is None else range(start, limit, delta))


@documented
def tuple_len(x: Any) -> int:
    """The length of a tuple."""
    return len(x)


@also(dtype="dst_dtype")
@documented
def mixed_precision_cast(dtype: Any, x: Any) -> Any:
    """Floating-point Tensors in another dtype, also inside tuples, lists and dicts; other values as they are.

    dtype : dtype
    x : Tensor or structure of them

    >>> nb.ops.mixed_precision_cast(nb.float16, (nb.Tensor([1.5]), 2))
    (Tensor(shape=[1], dtype=Float16, value= [ 1.5000e+00]), 2)
    """
    if isinstance(x, tuple | list):
        return type(x)([mixed_precision_cast(dtype, value) for value in x])
    if isinstance(x, dict):
        return {name: mixed_precision_cast(dtype, value) for name, value in x.items()}
    return x.astype(dtype) if isinstance(x, Tensor) and x.dtype.kind == "f" else x


@documented
def print_(*input_x: Any) -> None:
    """Print Tensors and texts, each on a line of its own.

    *input_x : Tensor or str or number

    >>> nb.ops.print_("loss", nb.Tensor([1.0]))
    loss
    Tensor(shape=[1], dtype=Float32, value= [ 1.00000000e+00])
    """
    for value in input_x:
        sys.stdout.write(f"{value!r}\n" if isinstance(value, Tensor) else f"{value}\n")


@documented
def summary_(name: str, value: Any) -> None:
    """A value of a network for MindSpore's summaries, which are not collected from networks here.

    name : str
    value : Tensor
        `SummaryRecord.add_value` writes numbers.
    DtypeError : If the name is no text, or the value no array.
    """
    if not isinstance(name, str) or not isinstance(value, Tensor | np.ndarray):
        message = f"A summary takes a name and a Tensor, but got {type(name).__name__} and {type(value).__name__}."
        raise DtypeError(message)


@documented
def npu_alloc_float_status() -> Tensor:
    """The flag of an overflow as eight zeros: only Ascend processors have it, and it stays clear elsewhere.

    -> Tensor
        Of shape (8,) and dtype float32.
    """
    return Tensor(np.zeros(8, np.float32))


@documented
def npu_get_float_status(x: Any) -> Tensor:
    """The flag of `npu_alloc_float_status` as it is, since no arithmetic here sets it."""
    return wrap(as_node(x))


@documented
def npu_clear_float_status(x: Any) -> Tensor:
    """A clear flag, as `npu_alloc_float_status` gives it."""
    return npu_alloc_float_status()


@documented
def float_status(x: Any) -> Tensor:
    """1 if an array has a NaN or an infinity, else 0.

    -> Tensor
        Of shape (1,) and dtype float32.

    >>> nb.ops.float_status(nb.Tensor([1.0, float("nan")]))
    Tensor(shape=[1], dtype=Float32, value= [ 1.00000000e+00])
    """
    value: Any = wrap(as_node(x))
    if value.dtype.kind != "f":
        message = f"float_status takes floating-point numbers, but got {value.dtype}."
        raise DtypeError(message)
    return (~np.isfinite(value)).any().reshape(1).astype(np.float32)  # pyright: ignore[reportAttributeAccessIssue]
