"""NumPy's functions of an array that do not compute with it: dtype rules, text, memory, files.

In: Tensors and other objects that NumPy takes. Out: plain Python values, or files. Called through table.py only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...record import shared_memory
from ...record.tensor import Tensor


def _dtype_of(value: Any) -> Any:
    """A value as NumPy's dtype rules see it: a Tensor is its dtype, or a Python number where it is weak."""
    if not isinstance(value, Tensor):
        return value
    node = value._node
    if node.weak and node.dtype.kind in "fic":
        return {"f": 0.0, "i": 0, "c": 0j}[node.dtype.kind]
    return node.dtype


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype that operands promote to."""
    return np.result_type(*[_dtype_of(value) for value in arrays_and_dtypes])


def common_type(*arrays: Any) -> Any:
    """The float type that holds all arrays."""
    return np.common_type(*[np.empty(0, a._node.dtype) if isinstance(a, Tensor) else a for a in arrays])


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Whether a cast is allowed."""
    return np.can_cast(from_.dtype if isinstance(from_, Tensor) else from_, to, casting)


def min_scalar_type(a: Any, /) -> np.dtype[Any]:
    """The smallest dtype that holds a value; a Tensor's own."""
    return a._node.dtype if isinstance(a, Tensor) else np.min_scalar_type(a)


def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether two arrays have an element in common."""
    return shared_memory.share_memory(a, b, asked=True)


def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether the memory between the first and the last element of two arrays overlaps."""
    return shared_memory.share_memory(a, b, bounds=True, asked=True)


def _value(a: Any) -> Any:
    """A Tensor's value, for text."""
    return a.asnumpy() if isinstance(a, Tensor) else a


def array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    """The value as text, with NumPy's options."""
    return np.array2string(_value(a), *args, **kwargs)


def array_str(a: Any, *args: Any, **kwargs: Any) -> str:
    """The value as text, with NumPy's options."""
    return np.array_str(_value(a), *args, **kwargs)


def array_repr(arr: Any, *args: Any, **kwargs: Any) -> str:
    """The value as NumPy would show it."""
    return np.array_repr(_value(arr), *args, **kwargs)


# ----- Files: what is written are values, without gradients -----


def save(file: Any, arr: Any, *args: Any, **kwargs: Any) -> None:
    """Write the value to a file of NumPy's format."""
    np.save(file, _value(arr), *args, **kwargs)


def savetxt(fname: Any, X: Any, *args: Any, **kwargs: Any) -> None:
    """Write the value to a text file."""
    np.savetxt(fname, _value(X), *args, **kwargs)


def _archive(write: Callable[..., None]) -> Callable[..., None]:
    def save_all(file: Any, *args: Any, **kwargs: Any) -> None:
        write(file, *[_value(value) for value in args], **{name: _value(value) for name, value in kwargs.items()})

    save_all.__name__ = save_all.__qualname__ = write.__name__
    save_all.__doc__ = f"Write values to an archive, as `numpy.{write.__name__}`."
    return save_all


savez, savez_compressed = _archive(np.savez), _archive(np.savez_compressed)
