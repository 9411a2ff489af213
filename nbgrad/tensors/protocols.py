"""How other libraries read a Tensor: NumPy's `__array__` and `__array_interface__`, Python's buffers, DLPack, and on
CUDA devices `__cuda_array_interface__`.

In: a Tensor. Out: its values, in the memory where they are. Called by NumPy, `memoryview`, any library's `from_dlpack`,
and other users of these protocols. The arrays that NumPy and buffers get cannot be written to and never change. DLPack
shares: a write to one side changes the other, as with `asnumpy`. A Tensor on a device reaches NumPy and buffers only by
a copy that is asked for, `x.asnumpy()`. A value that is being differentiated or compiled leaves by none of these ways,
because it would be cut off from its gradient: that is one error for all of them.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..errors import ArgumentError, DeviceError, TracedValueError
from ..functions.linalg.sparse_products import asked_by_scipy
from ..record import shared_memory
from ..record.foreign_arrays import VERSIONED, called_by_pandas
from ..record.leaks import refuse_numba
from ..record.tensor import Tensor, part_of_tensor
from ..runtime.evaluate import computed, concrete

CPU, CUDA = (1, 0), 2
"""DLPack's names of the CPU's memory, and of the kind of CUDA devices'."""


def _scipy_function() -> str:
    """The name of the function of scipy.sparse that asks for a Tensor as an ndarray; "" for other callers."""
    caller = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    return caller.f_code.co_name if caller.f_globals.get("__name__", "").startswith("scipy.sparse.") else ""


def _buffer_of(value: np.ndarray) -> memoryview:
    return memoryview(value)  # pyright: ignore[reportArgumentType] - NumPy declares it for Python 3.12 only


@part_of_tensor
class Protocols(Tensor):
    """The protocols by which a Tensor is read from outside."""

    __slots__ = ()

    __array_priority__ = 10000.0
    """NumPy's older way to say who computes `a * b`; pandas' Series and Index have 1000."""
    __pandas_priority__ = 10000
    """pandas' way to say who computes `a * b`: `series * tensor` is computed by the Tensor."""

    def _constant_value(self) -> np.ndarray:
        """The value, which is read-only; an error while it is being differentiated or compiled."""
        self._refuse_remembered("call numpy()")
        try:
            self._leaving("become, or be stored into, a plain ndarray")
        except TracedValueError:
            if not called_by_pandas():
                raise
            message = (
                f"pandas cannot hold, or compute with, a Tensor of shape {self._node.shape} that is being "
                "differentiated or compiled. Take the values of the Series or DataFrame first: frame.to_numpy() @ x."
            )
            raise TracedValueError(message) from None
        try:
            value = concrete(self._node, "array").view()
        except TracedValueError:
            if self._node.dtype.kind not in "biu":
                raise
            message = (
                f"The value of a Tensor of shape {self._node.shape} is needed as an ndarray while a function is "
                "recorded, but it differs from call to call. A plain ndarray that it indexes, table[i], shows nobody "
                "its index: make the table an argument, or write nbgrad.numpy.asarray(table)[i]. For np.take, "
                "np.searchsorted and np.arange(i, i + 3), `import nbgrad.numpy as np`. Lengths must be known: in place "
                "of np.arange(i), take a mask, np.arange(n) < i."
            )
            raise TracedValueError(message) from None
        value.flags.writeable = False
        return value

    def _refuse_silent_copy(self) -> None:
        """Raise for a Tensor on a device, of which a reader would get a copy without knowing.

        Raises
        ------
        DeviceError
        """
        if self._node.device is not None:
            message = (
                f"A Tensor of shape {self._node.shape} on {self._node.device} does not become an ndarray by itself, "
                "because that copies it and waits for the device. Use x.asnumpy(), or x.cpu() for a Tensor."
            )
            raise DeviceError(message)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._refuse_silent_copy()
        asking = _scipy_function()
        if asking:
            found = asked_by_scipy(self, asking)
            if found is not None:
                return found
        value = self._constant_value()
        if dtype is not None and value.dtype != dtype:
            if copy is False:
                message = f"A Tensor of {value.dtype} cannot become an ndarray of {np.dtype(dtype)} without a copy."
                raise ArgumentError(message)
            return value.astype(dtype)
        return np.array(value) if copy else value

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The value for libraries that read NumPy's array interface; `data` is a buffer, which keeps it alive."""
        if self._node.device is not None or _scipy_function():
            raise AttributeError  # NumPy asks `__array__` next
        value = self._constant_value()
        if not value.flags.c_contiguous:
            value = np.array(value, order="C")
            value.flags.writeable = False
        # Made by hand, because NumPy makes its own slowly, and reads this one for each np.asarray.
        shape, dtype = value.shape, value.dtype.str
        return {"version": 3, "shape": shape, "typestr": dtype, "data": _buffer_of(value), "strides": None}

    @property
    def _numba_type_(self) -> Any:
        """The attribute that Numba reads when one of its functions gets a Tensor, which none can take: an error."""
        refuse_numba(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
        raise AttributeError

    def tobytes(self, order: Any = "C") -> bytes:
        """The bytes of the value."""
        return self._constant_value().tobytes(order)

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """Write the value to a file, as `ndarray.tofile`."""
        self._constant_value().tofile(fid, sep, format)

    def __buffer__(self, flags: int, /) -> memoryview:
        """The value as a buffer that cannot be written to (Python 3.12 and newer)."""
        if self._node.device is not None or _scipy_function():
            message = "What lives on a device has no buffer: x.asnumpy() copies it."
            raise BufferError(message)  # NumPy asks `__array__` next
        value = self._constant_value()
        if flags & 1:
            message = "The buffer of a Tensor cannot be written to. Write to the Tensor, or to x.asnumpy()."
            raise BufferError(message)
        return _buffer_of(value)

    # ----- DLPack -----

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of this Tensor's memory, which it shares with the library that takes it."""
        self._leaving("be exported", "Use nb.stop_gradient(x) first.")
        self._refuse_remembered("export a DLPack capsule")
        if self._node.device is not None:
            from ..device.memory.dlpack import capsule

            return capsule(computed(self._node), stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        if stream is not None:
            message = f"Tensors are in the CPU's memory, which has no streams, but stream={stream!r} was given."
            raise ArgumentError(message)
        if dl_device is not None and (int(dl_device[0]), int(dl_device[1])) != CPU:
            message = f"Tensors are in the CPU's memory, DLPack's device {CPU}; they cannot go to {dl_device}."
            raise BufferError(message)
        array = None if copy else shared_memory.shared_memory(self)
        if array is None:
            if copy is False:
                message = "Parameters, and what is recorded, cannot be shared: export them with copy=True or copy=None."
                raise BufferError(message)
            array = np.array(concrete(self._node, "array"))
        if max_version is None or not VERSIONED:
            return array.__dlpack__()
        return array.__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's name of the place of the elements: the CPU's memory, or a CUDA device's."""
        device = self._node.device
        return CPU if device is None else (CUDA, device.index)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory of a Tensor on a CUDA device, for readers, which must not write to it (version 3)."""
        device = self._node.device
        if device is None:
            message = "A Tensor in the CPU's memory has no __cuda_array_interface__. Use x.cuda() first."
            raise AttributeError(message)
        self._leaving("be exported", "Use nb.stop_gradient(x) first.")
        from ..device.exchange import interface, keep

        value = computed(self._node)
        keep(self, value)
        return interface(value)
