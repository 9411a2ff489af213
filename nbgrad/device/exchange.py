"""Arrays that change hands on a device without being copied: CuPy's, PyTorch's, Numba's, JAX's, and ours.

In: an array of another library, or a `DeviceArray` that another library shall have. Out: the other one, over the same
memory. Called by Tensor's protocols (nbgrad/tensors/protocols.py), by `nb.from_dlpack` and `nb.cuda.as_tensor`, and by
transforms, which give results back as arrays of the library that the arguments came from.

Arrays are taken by `__cuda_array_interface__` (version 3,
https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html), which is a dict, or else by DLPack (dlpack.py).
The order of work on streams is part of both protocols: no thread waits, one stream waits for another.
"""

from __future__ import annotations

import math
import sys
import weakref
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, DeviceError, DtypeError
from ..graph.ir import plain_dtype
from .memory import dlpack
from .memory.arrays import Device, DeviceArray, Memory, device_named
from .memory.streams import current, handle_of, number_of

MAKERS = {
    "cupy": ("cupy", "asarray", {}),
    "torch": ("torch", "from_dlpack", {}),
    "numba": ("numba.cuda", "as_cuda_array", {"sync": False}),
    "numba_cuda_mlir": ("numba_cuda_mlir.cuda", "as_cuda_array", {"sync": False}),
    "jax": ("jax.dlpack", "from_dlpack", {}),
}
"""By the library of an array: the module and the function that make such an array of another one, without a copy."""
_SAME = {"jaxlib": "jax", "numba_cuda": "numba", "cupy_backends": "cupy"}


class Exported:
    """A `DeviceArray` as other libraries see it; it keeps the memory alive."""

    __slots__ = ("__weakref__", "array")

    def __init__(self, array: DeviceArray) -> None:
        self.array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return interface(self.array)

    def __dlpack__(self, **options: Any) -> Any:
        return dlpack.capsule(self.array, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self.array.device.index


def interface(array: DeviceArray) -> dict[str, Any]:
    """The `__cuda_array_interface__` of an array. Its reader's stream must wait for the stream that it names."""
    if isinstance(array.owner, Memory):
        array.owner.used_on(0)  # the reader does not say on which stream it works
    return {
        "version": 3,
        "shape": array.shape,
        "typestr": array.dtype.str,
        "data": (array.pointer, False),
        "strides": None,
        "stream": number_of(array.stream),
    }


_kept: dict[int, dict[int, DeviceArray]] = {}
"""Arrays that readers of a Tensor's `__cuda_array_interface__` use, while the Tensor lives: they hold only that."""


def keep(holder: Any, array: DeviceArray) -> None:
    """Keep an array as long as its holder, whose readers know the address, even if the holder gets another value."""
    known = _kept.get(id(holder))
    if known is None:
        known = _kept[id(holder)] = {}
        weakref.finalize(holder, _kept.pop, id(holder), None)
    known[array.pointer] = array


# ----- Taking -----


def taken(value: Any) -> DeviceArray:
    """Another library's array as one of ours, over the same memory if it is in C order.

    Raises
    ------
    DtypeError
        If it has none of the two protocols, masks, or elements that Tensors cannot have.
    ArgumentError
        If it requires a gradient, or is not in a device's memory.
    DeviceError
        If its memory was freed.
    """
    if getattr(value, "requires_grad", False) is True:
        message = (
            f"This {_name(value)} requires a gradient, which would be lost: nbgrad does not record in another "
            "library's graph. Pass x.detach()."
        )
        raise ArgumentError(message)
    description = getattr(value, "__cuda_array_interface__", None)
    if description is None:
        return _from_dlpack(value)
    if not isinstance(description, dict) or not {"shape", "typestr", "data", "version"} <= description.keys():
        message = f"The __cuda_array_interface__ of this {_name(value)} lacks shape, typestr, data or version."
        raise DtypeError(message)
    if description.get("mask") is not None:
        message = f"This {_name(value)} has a mask, which would be lost. Pass its data and its mask apart."
        raise DtypeError(message)
    dtype = _dtype(description["typestr"], value)
    shape = tuple([int(extent) for extent in description["shape"]])
    pointer = int(description["data"][0] or 0)
    device = _device_of(pointer, math.prod(shape), value)
    producer = description.get("stream")
    if producer is not None and (type(producer) is not int or producer == 0):
        message = (
            f"The stream in the __cuda_array_interface__ of this {_name(value)} is {producer!r}, which names none."
        )
        raise ArgumentError(message)
    if producer is None:
        stream = _unsaid_stream(value, device)
    else:
        stream = handle_of(producer)
    array = DeviceArray(pointer, shape, dtype, device, stream, value)
    strides = description.get("strides")
    return array if strides is None else _in_order(array, tuple([int(step) for step in strides]))


def _unsaid_stream(value: Any, device: Device) -> int:
    """The stream of an array that says none: of PyTorch's it is the current one, others need not be waited for."""
    streams = getattr(sys.modules.get("torch"), "cuda", None) if _library(value) == "torch" else None
    if not hasattr(streams, "current_stream"):
        return device.stream
    return handle_of(streams.current_stream(device.index))  # type: ignore[union-attr]


def _library(value: Any) -> str:
    """The library of an array."""
    found = type(value).__module__.partition(".")[0]
    return _SAME.get(found, found)


def is_writeable(value: Any) -> bool:
    """Whether code that takes an array may write to it."""
    description = getattr(value, "__cuda_array_interface__", None)
    return description is None or not description["data"][1]


def _from_dlpack(value: Any) -> DeviceArray:
    where = getattr(value, "__dlpack_device__", None)
    if where is None or not hasattr(value, "__dlpack__"):
        message = f"Expected an array with __cuda_array_interface__ or __dlpack__, but got {_name(value)}."
        raise DtypeError(message)
    kind, index = where()
    if int(kind) != dlpack.CUDA:
        message = (
            f"This {_name(value)} is not in the memory of a GPU, but on DLPack's device {(int(kind), int(index))}."
        )
        raise ArgumentError(message)
    device = device_named(int(index))
    assert device is not None
    return _in_order(*dlpack.taken(value, device))


def _in_order(array: DeviceArray, strides: tuple[int, ...]) -> DeviceArray:
    """An array with these strides, in bytes, as one in C order: itself, or a copy."""
    step = array.dtype.itemsize
    plain = True
    for extent, stride in zip(reversed(array.shape), reversed(strides), strict=True):
        plain = plain and (extent == 1 or stride == step)
        step *= extent
    if plain or not array.size:
        return array
    # The layout is the copy's business; the memory of a strided array is read on our stream.
    copying: Any = import_module(".libraries.copying", __package__)
    array.ready_on(array.device.stream)
    return copying.contiguous(array.pointer, array.shape, strides, array.dtype, array.device)


def _dtype(typestr: Any, value: Any) -> np.dtype[Any]:
    try:
        dtype = np.dtype(typestr)
    except TypeError:
        dtype = None
    kinds = {"f": 8, "i": 8, "u": 8, "b": 1, "c": 16}
    if dtype is None or not dtype.isnative or dtype.itemsize > kinds.get(dtype.kind, 0):
        message = (
            f"This {_name(value)} has elements of type {typestr!r}. Expected booleans, integers or floats of at most "
            "64 bits, or complex numbers, in the order of bytes of this machine."
        )
        raise DtypeError(message)
    return plain_dtype(dtype)


def _device_of(pointer: int, size: int, value: Any) -> Device:
    """The device whose memory an address is."""
    anywhere = device_named("cuda")
    assert anywhere is not None
    if not size:
        return anywhere
    index = anywhere.driver.owner_of(pointer) if pointer else None
    if index is None:
        message = (
            f"The memory of this {_name(value)}, at {pointer:#x}, is not in use on any device: it was freed, or "
            "belongs to the CPU or to another driver."
        )
        raise DeviceError(message)
    device = device_named(index)
    assert device is not None
    return device


def _name(value: Any) -> str:
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    return kind.__name__ if library == "builtins" else f"{library}.{kind.__name__}"


# ----- Giving back -----


class Giver(NamedTuple):
    """Gives results back as arrays of the library that an argument came from, on the stream that it came on."""

    library: str
    device: Device
    stream: int

    def give(self, array: Any) -> Any:
        """The library's array over the same memory."""
        if isinstance(array, np.ndarray | np.generic):
            array = DeviceArray.of(np.asarray(array), self.device)
        module, name, options = MAKERS[self.library]
        with self.working():
            return getattr(import_module(module), name)(Exported(array), **options)

    def working(self) -> Any:
        """A context in which work goes to that stream, unless the user has chosen one for nbgrad."""
        return current(self.device, self.device.stream or self.stream)


def giver(value: Any, array: DeviceArray) -> Giver:
    """The `Giver` of results as arrays like `value`, which `array` was made of.

    Raises
    ------
    DtypeError
        If nbgrad does not know how to make such arrays.
    """
    library = _library(value)
    if library not in MAKERS:
        message = (
            f"Results cannot be given back as arrays like this {_name(value)}. Pass nb.cuda.as_tensor(x), which shares "
            "its memory; results are Tensors then."
        )
        raise DtypeError(message)
    return Giver(library, array.device, array.stream)
