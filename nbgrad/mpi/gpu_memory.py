"""Memory of GPUs as MPI takes it: itself, where the library can, or through pinned memory of the host.

In: an address, a layout, a context of a device program. Out: `GpuArray`, `staged`. Called by gpu_messages.py.

A library that was built for CUDA takes addresses of GPUs in place of the host's. It knows no streams: all work on the
stream is finished before it gets them. Other libraries get a copy in pinned memory, which a GPU reads and writes
without the driver's own copy.
"""

from __future__ import annotations

import ctypes
import os
import threading
from types import EllipsisType
from typing import Any

import numpy as np

from ..device.memory.custom_launches import KernelArray
from .communicators import library
from .messages import Layout, nbytes

SMALLEST = 1 << 16
"""Bytes of a block of pinned memory, at least."""


class GpuArray(KernelArray):
    """An array in C order in the memory of a GPU, which mpi4py takes by `__cuda_array_interface__`.

    Parameters
    ----------
    address : int
    layout : Layout
    context : object
        With a `driver`, and the `stream` that the memory is used on.
    """

    __slots__ = ("context",)

    def __init__(self, address: int, layout: Layout, context: Any) -> None:
        super().__init__(address, *layout)
        self.context = context

    def __setitem__(self, at: EllipsisType, value: GpuArray | int) -> None:
        """Fill it with zeros, or with another array, and wait for that."""
        driver, stream = self.context.driver, self.context.stream
        if value is self:
            return
        if isinstance(value, GpuArray):
            driver.copy(self.address, value.address, self.nbytes, stream)
        else:
            assert value == 0
            driver.fill(self.address, 0, self.nbytes, stream)
        driver.synchronise(stream)


class _Blocks(threading.local):
    """Pinned memory of this thread, for data and for results."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, str], np.ndarray] = {}


_blocks = _Blocks()


def staged(layout: Layout, use: str, driver: Any) -> np.ndarray:
    """An array in pinned memory, until it is asked for the same use again."""
    shape, dtype = layout
    size = nbytes(layout)
    block = _blocks.known.get((driver, use))
    if block is None or block.nbytes < size:
        block = _blocks.known[driver, use] = driver.pinned(max(SMALLEST, 1 << (size - 1).bit_length()))
    return block[:size].view(dtype).reshape(shape)


class _Awareness:
    """Whether MPI takes addresses of GPUs, once it is known."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: bool | None = None


_awareness = _Awareness()


def cuda_aware(on: bool | None = None) -> bool:
    """Whether MPI is given the memory of GPUs itself.

    Parameters
    ----------
    on : bool, optional
        From now on, whether it is; without it, nothing changes.

    Returns
    -------
    bool
        By default, as the library says: Open MPI and MPICH do if they were built with CUDA. The environment variable
        `NBGRAD_MPI_CUDA_AWARE`, 0 or 1, says so for libraries that do not.

    Notes
    -----
    Without, arrays are copied to pinned memory of the host and back.

    Examples
    --------
    >>> from nbgrad import mpi
    >>> mpi.cuda_aware()
    False
    """
    if on is not None:
        _awareness.known = bool(on)
    if _awareness.known is None:
        said = os.environ.get("NBGRAD_MPI_CUDA_AWARE", "")
        _awareness.known = said != "0" if said else _said_by_library()
    return _awareness.known


def _said_by_library() -> bool:
    """The answer of Open MPI or MPICH to the question for CUDA; False from libraries that do not know it."""
    functions = ctypes.CDLL(library().__file__)
    loaded: Any = ctypes.CDLL(None)
    for place in (functions, loaded):
        if hasattr(place, "MPIX_Query_cuda_support"):
            return bool(place.MPIX_Query_cuda_support())
        if hasattr(place, "MPIX_GPU_query_support"):
            found = ctypes.c_int(0)
            return place.MPIX_GPU_query_support(0, ctypes.byref(found)) == 0 and bool(found.value)
    return False
