"""Copies of arrays that are not in C order.

In: an address, a shape, and strides in bytes, of another library's array. Out: a new `DeviceArray`. Called by
exchange.py. The kernel (kernels/gpu/device_linalg.py) copies three axes at a time: axes that lie side by side are one,
and the loops over axes beyond three are here.
"""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...errors import DtypeError
from ..memory.arrays import Device, DeviceArray
from .matrix_kernels import copy, load, parts

AXES = 3


def contiguous(
    pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], device: Device
) -> DeviceArray:
    """A copy in C order, made on the device's current stream.

    Parameters
    ----------
    pointer : int
        The address of the first element.
    shape, strides : tuple of int
        Strides in bytes; they may be zero or negative.
    dtype : dtype
    device : Device

    Returns
    -------
    DeviceArray

    Raises
    ------
    DtypeError
        If a stride is not a number of elements.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> with nb.cuda.simulator():
    ...     x = nb.Tensor(np.arange(6.0).reshape(2, 3), device="cuda")
    ...     pointer, device = x.__cuda_array_interface__["data"][0], x.device
    ...     contiguous(pointer, (3, 2), (8, 24), np.dtype(np.float64), device).to_host()
    array([[0., 3.],
           [1., 4.],
           [2., 5.]])
    """
    size = dtype.itemsize
    if any(stride % size for stride, extent in zip(strides, shape, strict=True) if extent > 1):
        message = f"An array of {dtype} has strides of {strides} bytes, which are no whole elements. Copy it first."
        raise DtypeError(message)
    made = DeviceArray.empty(shape, dtype, device)
    if not made.pointer:
        return made
    extents, steps = _merged(shape, [stride // size for stride in strides])
    outer, inner = extents[:-AXES], extents[-AXES:]
    both = parts(dtype)
    kernel = load(device, "copy_strided", np.dtype(f"int{8 * size // both}"))
    context = SimpleNamespace(driver=device.driver, stream=made.stream)
    apart = [math.prod(inner[axis + 1 :]) for axis in range(len(inner))]
    for number, position in enumerate(itertools.product(*map(range, outer))):
        begin = pointer + size * sum(k * step for k, step in zip(position, steps, strict=False))
        end = made.pointer + size * number * math.prod(inner)
        copy(kernel, context, begin, end, inner, steps[len(outer) :], apart, both)
    return made


def _merged(shape: tuple[int, ...], steps: list[int]) -> tuple[list[int], list[int]]:
    """Extents and steps that visit equal elements in equal order with as few axes as possible."""
    extents: list[int] = []
    apart: list[int] = []
    for extent, step in zip(shape, steps, strict=True):
        if extent == 1:
            continue
        if extents and apart[-1] == step * extent:
            extents[-1] *= extent
            apart[-1] = step
        else:
            extents.append(extent)
            apart.append(step)
    return extents, apart
