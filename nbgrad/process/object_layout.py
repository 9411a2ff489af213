"""Offsets of fields in the objects of CPython and NumPy: all that native code relies on, measured.

In: the interpreter that runs. Out: functions such as `tuple_items()`, in bytes from an object's begin, which native.py,
native_tensors.py and blocks.py call like instructions: the code that is compiled for this process has the numbers in
their place (`definitions`). `check()` is called when nbgrad is imported. An object with known contents is searched for
them: CPython 3.14 moved the items of tuples by 8 bytes, and nothing else says so. What is not found is never guessed.

Not measured are function tables and structs of C that CPython and NumPy promise: PyMethodDef, the handler of memory,
and positions in NumPy's table of functions.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

SUPPORTED = "CPython 3.10 to 3.15 with the global interpreter lock"
GET_HANDLER = 305
"""The position of PyDataMem_GetHandler in NumPy's table of functions."""
PREFIX = "nbgrad.offset."
"""Begins the names of the offsets in IR."""


# ----- What native code calls -----


def object_type() -> int:
    """In any object: its type."""
    return measured()["object_type"]


def tuple_items() -> int:
    """In a tuple: the first item."""
    return measured()["tuple_items"]


def array_data() -> int:
    """In an ndarray: the address of its first element."""
    return measured()["array_data"]


def array_rank() -> int:
    """In an ndarray: the number of its axes, an int32."""
    return measured()["array_rank"]


def array_extents() -> int:
    """In an ndarray: the address of its extents."""
    return measured()["array_extents"]


def array_strides() -> int:
    """In an ndarray: the address of its strides."""
    return measured()["array_strides"]


def array_dtype() -> int:
    """In an ndarray: its dtype."""
    return measured()["array_dtype"]


def array_flags() -> int:
    """In an ndarray: its flags, an int32 with four unused bytes after it."""
    return measured()["array_flags"]


def array_handler() -> int:
    """In an ndarray: the handler that frees its memory."""
    return measured()["array_handler"]


OFFSETS: tuple[Callable[[], int], ...] = (
    object_type,
    tuple_items,
    array_data,
    array_rank,
    array_extents,
    array_strides,
    array_dtype,
    array_flags,
    array_handler,
)


def definitions() -> str:
    """IR that defines the offsets as constants."""
    lines = [
        f"define internal i64 @{PREFIX}{name}() alwaysinline {{ ret i64 {at} }}" for name, at in measured().items()
    ]
    return "\n".join([*lines, ""])


# ----- Scalars -----

SCALARS = frozenset([float, complex, *[np.dtype(code).type for code in "?bhilqBHILQefdFD"]])
"""Types of numbers that have a value in the object, as an array without axes would hold it."""


@cache
def scalar_values() -> dict[type, int]:
    """For each of these types, the offset of the value in its objects; types where that cannot be seen are left out."""
    found = {kind: _value_of(kind) for kind in SCALARS}
    return {kind: at for kind, at in found.items() if at is not None}


def _value_of(kind: type) -> int | None:
    """The one offset at which several numbers of a type have their values."""
    numbers = [kind(k) for k in ((0, 1) if kind is np.bool_ else (17, 53, 82, 110))]
    values = [np.asarray(number).tobytes() for number in numbers]
    objects = [memory(number, kind.__basicsize__) for number in numbers]
    size = len(values[0])
    places = [
        at
        for at in range(object_type() + 8, kind.__basicsize__ - size + 1, min(size, 8))
        if all(data[at : at + size] == value for data, value in zip(objects, values, strict=True))
    ]
    return places[0] if len(places) == 1 else None


@cache
def slice_parts() -> int:
    """The offset of the start in a slice, before its stop and step.

    Raises
    ------
    LookupError
        If that cannot be seen.
    """
    parts = object(), object(), object()
    words = _words(slice(*parts), slice.__basicsize__)
    found = [words[k : len(words) - 2 + k] == id(part) for k, part in enumerate(parts)]
    return _only(found[0] & found[1] & found[2], "the parts of slices")


# ----- Measuring -----


def check() -> None:
    """Refuse an interpreter whose objects native code does not know.

    Raises
    ------
    ImportError
        For another interpreter than CPython, one without the global interpreter lock, or an unknown layout.
    """
    if sys.implementation.name != "cpython":
        raise ImportError(_refusal("it is another implementation of Python"))
    if "t" in getattr(sys, "abiflags", "") or not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError(_refusal("it has no global interpreter lock, on which the compiled code relies"))
    measured()


@cache
def measured() -> dict[str, int]:
    """All offsets, by the names of the functions above."""
    try:
        return {**_of_objects(), **_of_arrays()}
    except LookupError as error:
        # From no other error: it would say nothing to users.
        raise ImportError(_refusal(f"its objects have {error.args[0]} in no place that is known")) from None


def _refusal(reason: str) -> str:
    version = f"{sys.implementation.name} {sys.version.split(' (', maxsplit=1)[0]}"
    return f"nbgrad cannot run on {version} ({sys.executable}): {reason}. Use {SUPPORTED}."


def memory(thing: object, size: int) -> bytes:
    """The first bytes of an object."""
    return ctypes.string_at(id(thing), size)


def _words(thing: object, size: int) -> np.ndarray:
    return np.frombuffer(memory(thing, size // 8 * 8), np.int64)


def _only(found: np.ndarray, name: str, width: int = 8) -> int:
    """The offset of the one word for which something is true."""
    places = np.flatnonzero(found)
    if len(places) != 1:
        raise LookupError(name)
    return width * int(places[0])


class _Plain:
    __slots__ = ()


def _of_objects() -> dict[str, int]:
    plain, items = _Plain(), (object(), object())
    words = _words(items, items.__sizeof__())
    found = (words[:-1] == id(items[0])) & (words[1:] == id(items[1]))
    return {
        "object_type": _only(_words(plain, _Plain.__basicsize__) == id(_Plain), "types"),
        "tuple_items": _only(found, "the items of tuples"),
    }


def _of_arrays() -> dict[str, int]:
    """Of two arrays that agree in nothing: a number that is in both by accident is not in the same place."""
    arrays = np.empty((2,) * 5), np.empty((1,) * 11, np.float32, "F")[...]
    arrays[1].flags.writeable = False
    size = np.ndarray.__basicsize__
    words = [_words(array, size) for array in arrays]
    halves = [_words(array, size).view(np.int32) for array in arrays]

    def place(values: Sequence[int], name: str, parts: Sequence[np.ndarray] = words) -> int:
        found = [part == value for part, value in zip(parts, values, strict=True)]
        return _only(found[0] & found[1], f"the {name} of arrays", parts[0].itemsize)

    # NumPy keeps extents and strides side by side, so that the second address follows from the first.
    after = [np.append(part[1:], 0) - part == 8 * array.ndim for part, array in zip(words, arrays, strict=True)]
    name = "the extents of arrays"
    extents = _only(after[0] & after[1], name)
    for part, array in zip(words, arrays, strict=True):
        if ctypes.string_at(int(part[extents // 8]), 8 * array.ndim) != np.array(array.shape, np.int64).tobytes():
            raise LookupError(name)
    handler = _only(words[0] == id(numpy_function(GET_HANDLER, ctypes.py_object)()), "the handlers of arrays")
    return {
        "array_data": place([array.__array_interface__["data"][0] for array in arrays], "data"),
        "array_rank": place([array.ndim for array in arrays], "ranks", halves),
        "array_extents": extents,
        "array_strides": extents + 8,
        "array_dtype": place([id(array.dtype) for array in arrays], "dtypes"),
        "array_flags": place([array.flags.num for array in arrays], "flags", halves),
        "array_handler": handler,
    }


def numpy_table() -> Any:
    """The table of NumPy's functions for C, as an array of addresses."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(import_module("numpy._core._multiarray_umath")._ARRAY_API, None)
    return ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))


def numpy_function(position: int, result: Any, *arguments: Any) -> Any:
    """A function of NumPy's table."""
    return ctypes.PYFUNCTYPE(result, *arguments)(numpy_table()[position])


def slots(kind: type, names: Sequence[str]) -> dict[str, int]:
    """The offsets of the slots of a class written in Python in its objects.

    Raises
    ------
    LookupError
        If that cannot be seen.

    Examples
    --------
    >>> class Pair:
    ...     __slots__ = ("first", "second")
    >>> found = slots(Pair, ["first", "second"])
    >>> sorted(found), len(set(found.values()))
    (['first', 'second'], 2)
    """
    probe = object.__new__(kind)
    marks = {name: object() for name in names}
    for name, mark in marks.items():
        kind.__dict__[name].__set__(probe, mark)
    words = _words(probe, kind.__basicsize__)
    return {name: _only(words == id(mark), name) for name, mark in marks.items()}
