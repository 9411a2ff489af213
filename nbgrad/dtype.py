"""Element types under MindSpore's names: `nb.float32`, `nb.int64`, `nb.bool_`, ...

In: nothing. Out: `DType` objects, which print as MindSpore's do and which NumPy takes wherever it takes a dtype. Called
by users (`from nbgrad import dtype as mstype`) and by Tensor, whose `dtype` is one of them. Inside nbgrad, graph and
compiler only know NumPy's dtypes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import DtypeError

__all__ = [
    "DType",
    "Type",
    "bfloat16",
    "bool_",
    "byte",
    "complex64",
    "complex128",
    "complex_",
    "double",
    "dtype_to_nptype",
    "dtype_to_pytype",
    "float16",
    "float32",
    "float64",
    "float_",
    "float_type",
    "get_py_obj_dtype",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "int_type",
    "intc",
    "number_type",
    "pytype_to_dtype",
    "short",
    "single",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uint_type",
]


class DType:
    """One element type.

    It equals NumPy's dtype, its name and its scalar type, has all attributes of NumPy's dtype, and hashes like it.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> print(nb.float32, nb.Tensor([1]).dtype)
    Float32 Int64
    >>> nb.float32 == np.float32, np.zeros(2, nb.float32)
    (True, array([0., 0.], dtype=float32))
    """

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """NumPy's class, so that `isinstance(x.dtype, np.dtype)` holds, which others' code asks."""
        return np.dtype

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dtype, name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.dtype == other.dtype
        try:
            return bool(self.dtype == other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __str__(self) -> str:
        name = self.dtype.name.replace("uint", "UInt")
        return name[:1].upper() + name[1:]

    def __repr__(self) -> str:
        # What MindSpore prints, which ported code and its recorded output compare with.
        name = self.dtype.name
        return f"mindspore.{name}_" if name == "bool" else f"mindspore.{name}"

    def __reduce__(self) -> Any:
        return dtype_of, (self.dtype.name,)


Type = DType
"""MindSpore's name of the class of element types, for annotations and `isinstance`."""


class _Absent:
    """An element type that has only its name: scripts may compare with it, and no array has it."""

    def __init__(self, name: str, instead: str) -> None:
        self.name, self._instead = name, instead

    @property
    def dtype(self) -> Any:
        """An error: NumPy asks for it wherever an array gets an element type."""
        message = f"Arrays of {self.name} are not supported. Use {self._instead}."
        raise DtypeError(message)

    def __str__(self) -> str:
        return "BFloat16"

    def __repr__(self) -> str:
        return f"mindspore.{self.name}"

    def __reduce__(self) -> Any:
        return self.name


_BY_DTYPE: dict[Any, DType] = {
    np.dtype(name): DType(name)
    for name in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
    ).split()
}


def dtype_of(dtype: Any) -> DType:
    """The `DType` of anything that `np.dtype` takes; one object per type."""
    found = _BY_DTYPE.get(dtype)
    return found if found is not None else _BY_DTYPE.setdefault(np.dtype(dtype), DType(dtype))


bool_ = dtype_of("bool")
int8, int16, int32, int64 = (dtype_of(name) for name in ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = (dtype_of(name) for name in ("uint8", "uint16", "uint32", "uint64"))
float16, float32, float64 = (dtype_of(name) for name in ("float16", "float32", "float64"))
byte, short, intc, int_ = int8, int16, int32, int64
complex64, complex128 = dtype_of("complex64"), dtype_of("complex128")
complex_ = complex128
bfloat16 = _Absent("bfloat16", "float16, which has three more bits of precision, or float32, which has its range")
half, single, double, float_ = float16, float32, float64, float64

int_type = (int8, int16, int32, int64)
uint_type = (uint8, uint16, uint32, uint64)
float_type = (float16, float32, float64)
number_type = (*int_type, *uint_type, *float_type)


def dtype_to_nptype(type_: Any) -> type[np.generic]:
    """NumPy's scalar type of an element type.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.dtype_to_nptype(nb.int32)
    <class 'numpy.int32'>
    """
    return np.dtype(type_).type


def pytype_to_dtype(obj: type) -> DType:
    """The element type that MindSpore gives to a Python or NumPy type: float is float64, int is int64.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.pytype_to_dtype(float))
    Float64
    """
    return dtype_of(np.dtype(obj))


def dtype_to_pytype(type_: Any) -> type:
    """Python's type of the numbers of an element type.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.dtype_to_pytype(nb.int8)
    <class 'int'>
    """
    return {"b": bool, "f": float, "c": complex}.get(np.dtype(type_).kind, int)


def get_py_obj_dtype(obj: Any) -> DType:
    """The element type of a Python number or type, or of an array.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.get_py_obj_dtype(1), nb.get_py_obj_dtype(float))
    Int64 Float64
    """
    return dtype_of(np.dtype(obj if isinstance(obj, type) else getattr(obj, "dtype", type(obj))))


def __getattr__(name: str) -> Any:
    # Not a name of its own, because the module and star imports of it use Python's.
    if name == "bool":
        return bool_
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
