"""The small kernels around calls of cuSOLVER (kernels/gpu/device_linalg.py), and the common parts of such calls.

In: a device, when a recipe is made; addresses, when it runs. Out: kernels that are loaded and can be launched from a
`Routine`; workspaces in their order. Called by solvers.py and library_decompositions.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..driver.libraries import ALIGNMENT, real
from ..kernels.python_kernels import KernelTable, python_kernel
from ..memory.arrays import Device

THREADS = 256
MOST_BLOCKS = 1 << 16

KERNELS: KernelTable = {
    "gpu.device_linalg.copy_strided": ("* *", 12, "int8 int16 int32 int64"),
    "gpu.device_linalg.copy_upper": ("* *", 6, "float32 float64"),
    "gpu.device_linalg.keep_lower": ("int32 *", 3, "float32 float64"),
    "gpu.device_linalg.spoil": ("int32 *", 2, "float32 float64"),
    "gpu.device_linalg.order_of": ("int32 *", 3, "float32 float64"),
    "gpu.device_linalg.order_of_long": ("int64 *", 3, "float32 float64"),
    "gpu.device_linalg.addresses": ("int64", 3, "int64"),
}
"""The functions in kernels/ that are launched here, as python_kernels.py has them."""


@dataclass(frozen=True)
class Loaded:
    """A kernel on a device, which goes through `count` things with any number of threads."""

    function: int

    def launch(self, context: Any, count: int, *words: int) -> None:
        """Launch it; `words` are its pointers and its integers."""
        blocks = min(-(-count // THREADS), MOST_BLOCKS)
        context.driver.launch(self.function, blocks, THREADS, 0, np.array(words, np.int64), context.stream)


def load(device: Device, name: str, dtype: np.dtype[Any]) -> Loaded:
    """A kernel of device_linalg.py, for arrays of a dtype: of the real one for complex numbers."""
    place = f"gpu.device_linalg.{name}"
    dtypes, numbers, _ = KERNELS[place]
    kernel = python_kernel(place, tuple(dtypes.replace("*", real(dtype).name).split()), numbers)
    device.driver.use(device.index)
    return Loaded(device.driver.function(kernel, device.index))


def load_copy(device: Device, dtype: np.dtype[Any]) -> Loaded:
    """The kernel that copies between layouts: of words as long as a real number of the dtype."""
    return load(device, "copy_strided", np.dtype(f"int{8 * real(dtype).itemsize}"))


def parts(dtype: np.dtype[Any]) -> int:
    """The number of real numbers in one of a dtype."""
    return 2 if dtype.kind == "c" else 1


def copy(
    kernel: Loaded,
    context: Any,
    source: int,
    target: int,
    shape: Sequence[int],
    source_strides: Sequence[int],
    target_strides: Sequence[int],
    both: int = 1,
) -> None:
    """Copy arrays of up to three axes between strides, in elements; each element is `both` words."""
    missing = 3 - len(shape)
    extents = [*[1] * missing, *shape, both]
    strides = [[*[0] * missing, *[s * both for s in given], 1] for given in (source_strides, target_strides)]
    kernel.launch(
        context, math.prod(extents), source, target, *extents[1:], math.prod(extents), *strides[0], *strides[1]
    )


@dataclass
class Workspaces:
    """The workspaces of a recipe, numbered after its operands."""

    operands: int
    sizes: list[int] = field(default_factory=list)

    def take(self, nbytes: int) -> int:
        """One more, with room to align it; its number among all that the routine gets."""
        self.sizes.append(max(nbytes, 1) + ALIGNMENT)
        return self.operands + len(self.sizes) - 1

    @property
    def pointers(self) -> tuple[int, ...]:
        """Operands and workspaces, all of which the routine gets."""
        return tuple(range(self.operands + len(self.sizes)))
