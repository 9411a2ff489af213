"""DLPack for arrays on CUDA devices: capsules out, capsules in.

In: a `DeviceArray` and the reader's stream, or an object with `__dlpack__`. Out: a capsule, or a `DeviceArray` with its
strides. Called by exchange.py and by Tensor. The structures are those of DLPack 1.1
(https://dmlc.github.io/dlpack/latest/c_api.html), the meaning of streams is the Python specification's
(https://dmlc.github.io/dlpack/latest/python_spec.html).
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from ...compiler.cpu import Function, function_address
from ...errors import ArgumentError, DtypeError
from ...graph.ir import plain_dtype
from .arrays import Device, DeviceArray, Memory
from .streams import handle_of, number_of

CPU, CUDA = 1, 2
READ_ONLY, COPIED = 1, 2
VERSION = (1, 1)
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_KINDS = {code: kind for kind, code in _CODES.items()}
_OLD, _NEW = b"dltensor", b"dltensor_versioned"
_USED = {_OLD: b"used_dltensor", _NEW: b"used_dltensor_versioned"}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


def _python(name: str, result: Any, *arguments: Any) -> Any:
    function = ctypes.pythonapi[name]
    function.restype, function.argtypes = result, list(arguments)
    return function


_NATIVE = f"""
@old = internal constant [9 x i8] c"dltensor\\00"
@new = internal constant [19 x i8] c"dltensor_versioned\\00"
declare i32 @PyCapsule_IsValid(ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare void @Py_DecRef(ptr)

define internal void @nbgrad_forget(ptr %holder) {{
  %state = call i32 @PyGILState_Ensure()
  call void @Py_DecRef(ptr %holder)
  call void @PyGILState_Release(i32 %state)
  ret void
}}

define internal void @nbgrad_delete_old(ptr %managed) {{
  %place = getelementptr i8, ptr %managed, i64 {_Managed.context.offset}
  %holder = load ptr, ptr %place
  call void @nbgrad_forget(ptr %holder)
  ret void
}}

define internal void @nbgrad_delete_new(ptr %managed) {{
  %place = getelementptr i8, ptr %managed, i64 {_Versioned.context.offset}
  %holder = load ptr, ptr %place
  call void @nbgrad_forget(ptr %holder)
  ret void
}}

define internal void @nbgrad_destroy(ptr %capsule) {{
  %is_old = call i32 @PyCapsule_IsValid(ptr %capsule, ptr @old)
  %old_unread = icmp ne i32 %is_old, 0
  br i1 %old_unread, label %one, label %other
one:
  %first = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr @old)
  call void @nbgrad_delete_old(ptr %first)
  ret void
other:
  %is_new = call i32 @PyCapsule_IsValid(ptr %capsule, ptr @new)
  %new_unread = icmp ne i32 %is_new, 0
  br i1 %new_unread, label %two, label %done
two:
  %second = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr @new)
  call void @nbgrad_delete_new(ptr %second)
  ret void
done:
  ret void
}}

define void @dlpack(ptr %to) {{
  store ptr @nbgrad_destroy, ptr %to
  %second = getelementptr i8, ptr %to, i64 8
  store ptr @nbgrad_delete_old, ptr %second
  %third = getelementptr i8, ptr %to, i64 16
  store ptr @nbgrad_delete_new, ptr %third
  ret void
}}
"""
"""Functions for the end of a capsule, and for the end of a reader's use of its array. Both may run while an exception
is on its way, where Python code must not run. The context of a structure is the holder of all that it refers to."""


@cache
def _native() -> tuple[int, int, int]:
    """The addresses of `nbgrad_destroy`, `nbgrad_delete_old` and `nbgrad_delete_new`."""
    address = function_address(Function(f"dlpack {_NATIVE}", "dlpack", lambda: _NATIVE, finished=True))
    found = (ctypes.c_uint64 * 3)()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(ctypes.addressof(found))
    return found[0], found[1], found[2]


_new = _python("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_name = _python("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
_pointer = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_hold = _python("Py_IncRef", None, ctypes.py_object)


class _Holder:
    """Holds the objects that a structure refers to, and the structure itself."""

    __slots__ = ("__weakref__", "parts")

    def __init__(self, *parts: Any) -> None:
        self.parts = parts


# ----- Out -----


def capsule(
    array: DeviceArray,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A capsule of an array, for a reader that works on `stream`.

    Parameters
    ----------
    array : DeviceArray
    stream : int, optional
        1 and None: the default stream; 2: that of each thread; -1: the reader takes care of the order; else a handle.
    max_version : (int, int), optional
        The newest DLPack that the reader knows.
    dl_device : (int, int), optional
        Where the reader wants it: this device, or the CPU, for which it is copied.
    copy : bool, optional
        Whether it must, or must not, be copied.

    Raises
    ------
    ArgumentError
        For a stream of 0, which could mean two.
    BufferError
        For another device, or a copy to the CPU that must be none.
    """
    place = (CUDA, array.device.index) if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
    if place[0] == CPU:
        if copy is False:
            message = f"An array on {array.device} reaches the CPU only by a copy, but copy=False was given."
            raise BufferError(message)
        host: Any = array.to_host()
        return host.__dlpack__() if max_version is None else host.__dlpack__(max_version=max_version)
    if place != (CUDA, array.device.index):
        message = f"An array on {array.device} cannot go to DLPack's device {place}. Use x.to(...) first."
        raise BufferError(message)
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int) or stream == 0 or stream < -1):
        message = f"stream must be 1, 2, -1, the handle of a CUDA stream, or None, but is {stream!r}."
        raise ArgumentError(message)
    if copy:
        array = copied(array)
    if stream != -1:
        reader = handle_of(stream)
        array.ready_on(reader)
        if isinstance(array.owner, Memory):
            array.owner.used_on(reader)
    extents = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    steps, step = [0] * array.ndim, 1
    for axis in reversed(range(array.ndim)):
        steps[axis], step = step, step * array.shape[axis]
    strides = (ctypes.c_int64 * max(array.ndim, 1))(*steps)
    dtype = array.dtype
    code = _CODES[dtype.kind]
    described = _Tensor(
        array.pointer, CUDA, array.device.index, array.ndim, code, 8 * dtype.itemsize, 1, extents, strides, 0
    )
    destroy, delete_old, delete_new = _native()
    made: Any
    if max_version is None or max_version[0] < 1:
        made, name = _Managed(described, None, delete_old), _OLD
    else:
        made, name = _Versioned(*VERSION, None, delete_new, COPIED if copy else 0, described), _NEW
    holder = _Holder(made, array, extents, strides)
    made.context = id(holder)
    _hold(holder)
    return _new(ctypes.addressof(made), name, destroy)


def copied(array: DeviceArray) -> DeviceArray:
    """Another array on the same device with the same values."""
    made = DeviceArray.empty(array.shape, array.dtype, array.device)
    if made.pointer:
        array.ready_on(made.stream)
        array.device.driver.use(array.device.index)
        array.device.driver.copy(made.pointer, array.pointer, array.nbytes, made.stream)
    return made


# ----- In -----


class _Owner:
    """Holds the structure of a capsule, and tells its producer when the structure is not needed any more."""

    __slots__ = ("__weakref__", "address", "deleter")

    def __init__(self, address: int, deleter: int | None) -> None:
        self.address, self.deleter = address, deleter

    def __del__(self) -> None:
        if self.deleter:
            _Deleter(self.deleter)(self.address)


def taken(value: Any, device: Device) -> tuple[DeviceArray, tuple[int, ...]]:
    """Another library's array, and its strides in bytes; the current stream waits until it is there."""
    stream = number_of(device.stream)
    device.driver.use(device.index)
    try:
        given = value.__dlpack__(stream=stream, max_version=VERSION)
    except TypeError:
        given = value.__dlpack__(stream=stream)
    name = _name(given) if type(given).__name__ == "PyCapsule" else None
    if name not in _USED:
        message = f"__dlpack__() of this {type(value).__name__} gives {given!r}, which is no capsule of DLPack."
        raise DtypeError(message)
    address = _pointer(given, name)
    managed = (_Managed if name == _OLD else _Versioned).from_address(address)
    tensor = managed.tensor
    if name == _NEW and managed.major != VERSION[0]:
        message = f"This {type(value).__name__} speaks DLPack {managed.major}.{managed.minor}, nbgrad {VERSION[0]}."
        raise DtypeError(message)
    kind, size = _KINDS.get(tensor.code), tensor.bits // 8
    if kind is None or tensor.lanes != 1 or tensor.bits % 8 or not _exists(kind, size):
        what = f"DLPack's type ({tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes)"
        message = f"This {type(value).__name__} has elements of {what}, which Tensors cannot have."
        raise DtypeError(message)
    dtype = plain_dtype(np.dtype(f"{kind}{size}"))
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides:
        strides = tuple([step * size for step in tensor.strides[: tensor.ndim]])
    else:
        strides = tuple([size * int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))])
    pointer = (tensor.data or 0) + tensor.byte_offset
    _rename(given, _USED[name])
    owner = _Owner(address, managed.deleter)
    return DeviceArray(pointer, shape, dtype, device, device.stream, owner), strides


def _exists(kind: str, size: int) -> bool:
    """Whether Tensors have such elements."""
    return size in {"f": (2, 4, 8), "c": (8, 16), "b": (1,)}.get(kind, (1, 2, 4, 8))
