"""Calls from JAX's programs on the CPU: a handler of XLA's foreign functions that runs a function on the buffers.

In: functions of NumPy arrays, by number, and XLA's call frame: addresses of arguments and of results. Out: the results,
written where XLA wants them. Called by jax_operations.py. `jax.pure_callback` makes arrays of JAX's of the buffers and
back, which takes 150 microseconds; here NumPy arrays are views of the buffers, and a call takes 20.

The structures are those of the public header `xla/ffi/api/c_api.h`, version 0.x, whose fields keep their places.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from .result_types import write_results

TARGET = "nbgrad_call"
_numbers = itertools.count()
_called: WeakValueDictionary[int, Called] = WeakValueDictionary()
"""By number: the functions that the handler calls."""

_DTYPES = {1: "|b1", 2: "|i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "|u1", 7: "<u2", 8: "<u4", 9: "<u8"}
_DTYPES |= {10: "<f2", 11: "<f4", 12: "<f8", 15: "<c8", 18: "<c16"}
_METADATA = 1
_EXECUTE = 3
_INTERNAL = 13
_OLDEST_MINOR = 1
"""The version of the interface that the handler says it was written for."""
_word, _address = ctypes.c_int64, ctypes.c_void_p


class _Extension(ctypes.Structure):
    _fields_ = [("size", _word), ("kind", ctypes.c_int), ("next", _address), ("metadata", _address)]


class _Metadata(ctypes.Structure):
    _fields_ = [
        *[("size", _word), ("version_size", _word), ("version_extension", _address)],
        *[("major", ctypes.c_int), ("minor", ctypes.c_int), ("traits", ctypes.c_uint32)],
    ]


class _Listed(ctypes.Structure):
    """Arguments, or results: how many there are, their kinds, and where they are described."""

    _fields_ = [("size", _word), ("extension", _address), ("count", _word), ("kinds", _address), ("items", _address)]


class _Attributes(ctypes.Structure):
    _fields_ = [
        *[("size", _word), ("extension", _address), ("count", _word), ("kinds", _address)],
        *[("names", _address), ("items", _address)],
    ]


class _Frame(ctypes.Structure):
    _fields_ = [
        *[("size", _word), ("extension", _address), ("api", _address), ("context", _address), ("stage", ctypes.c_int)],
        *[("arguments", _Listed), ("results", _Listed), ("attributes", _Attributes), ("future", _address)],
    ]


class _Buffer(ctypes.Structure):
    _fields_ = [
        *[("size", _word), ("extension", _address), ("dtype", ctypes.c_int), ("data", _address)],
        *[("rank", _word), ("extents", _address)],
    ]


class _Api(ctypes.Structure):
    """The beginning of XLA's table of functions."""

    _fields_ = [
        *[("size", _word), ("extension", _address), ("version_size", _word), ("version_extension", _address)],
        *[("major", ctypes.c_int), ("minor", ctypes.c_int), ("internal", _address), ("make_error", _address)],
    ]


class _Error(ctypes.Structure):
    _fields_ = [("size", _word), ("extension", _address), ("message", ctypes.c_char_p), ("code", ctypes.c_int)]


class Called:
    """A function that the handler calls; its number is what JAX's programs know of it.

    Parameters
    ----------
    run : callable
        Takes arrays, which are views of XLA's memory, and gives one or a tuple of them.
    title : str
        Its name in messages.
    """

    def __init__(self, run: Callable[..., Any], title: str) -> None:
        self.run, self.title = run, title
        self.number = next(_numbers)
        _called[self.number] = self

    def __call__(self, results: Any, *args: Any) -> Any:
        """The results, of known shapes and dtypes, within a program of JAX's for the CPU."""
        import jax  # pyright: ignore[reportMissingImports]

        _registered()
        return jax.ffi.ffi_call(TARGET, results, vmap_method="sequential")(*args, number=np.int64(self.number))


class _Memory:
    """Memory of XLA's as NumPy takes it."""

    def __init__(self, shape: tuple[int, ...], dtype: str, address: int, fixed: bool) -> None:
        self.__array_interface__ = {"shape": shape, "typestr": dtype, "data": (address, fixed), "version": 3}


@cache
def _words(count: int) -> Any:
    """The type of so many words; kept, because it takes longer to make than a call."""
    return _word * count


def _arrays(listed: _Listed, fixed: bool) -> list[np.ndarray]:
    """Views of buffers, which may be written to unless they are `fixed`."""
    found: list[np.ndarray] = []
    for place in _words(listed.count).from_address(listed.items) if listed.count else ():
        buffer = _Buffer.from_address(place)
        shape = tuple(_words(buffer.rank).from_address(buffer.extents)) if buffer.rank else ()
        dtype = _DTYPES[buffer.dtype]
        memory = np.empty(shape, dtype) if 0 in shape else _Memory(shape, dtype, buffer.data, fixed)
        found.append(np.asarray(memory))
    return found


def _number(attributes: _Attributes) -> int:
    """The one attribute: an integer behind its dtype."""
    value = _word.from_address(_word.from_address(attributes.items).value + 8).value
    return _word.from_address(value).value


def _handle(place: int) -> int:
    """XLA's handler: 0, or an error of XLA's."""
    frame = _Frame.from_address(place)
    if frame.extension:
        extension = _Extension.from_address(frame.extension)
        if extension.kind == _METADATA:
            about = _Metadata.from_address(extension.metadata)
            about.major, about.minor, about.traits = 0, _OLDEST_MINOR, 0
            return 0
    if frame.stage != _EXECUTE:
        return 0
    try:
        called = _called[_number(frame.attributes)]
        found = called.run(*_arrays(frame.arguments, True))
        listed = found if isinstance(found, tuple) else (found,)
        write_results(called.title, _arrays(frame.results, False), listed)
    except BaseException as error:
        message = f"{type(error).__name__}: {error}".encode()
        about = _Error(ctypes.sizeof(_Error), None, message, _INTERNAL)
        make = ctypes.CFUNCTYPE(_address, _address)(_Api.from_address(frame.api).make_error)
        return make(ctypes.addressof(about)) or 0
    return 0


_handler = ctypes.CFUNCTYPE(_address, _address)(_handle)


@cache
def _registered() -> None:
    """Tell XLA of the handler, once in a process."""
    import jax  # pyright: ignore[reportMissingImports]

    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(_handler), platform="cpu", api_version=1)
