"""Products of matrices on a device: cuBLAS.

In: the `Special` of a product. Out: a `Recipe` that calls cuBLAS once for the whole batch. Called by
library_calls.py. Matrices in C order are transposed ones to cuBLAS, and C = A B is C' = B' A': the operands change
places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...compiler.fuse import Special
from ...compiler.views import matrix_layout
from ..driver.libraries import (
    ALIGNMENT,
    COMPUTE_32,
    COMPUTE_64,
    COMPUTE_TF32,
    DEFAULT_ALGORITHM,
    NO_TRANSPOSE,
    TRANSPOSE,
    TYPES,
    Library,
)
from ..kernels.launches import Fill, Recipe, Routine
from ..kernels.settings import SETTINGS
from ..memory.arrays import Device

COMPUTED_IN = {"float16": COMPUTE_32, "float32": COMPUTE_32, "float64": COMPUTE_64}
"""The dtypes that cuBLAS multiplies here, and in which numbers it adds up; others have a kernel of our own."""
SCALED_IN = {"float16": "float32", "float32": "float32", "float64": "float64", "complex64": "", "complex128": ""}
ONES_AND_ZEROS = {name: np.array([1, 0], SCALED_IN[name] or name) for name in SCALED_IN}
"""By dtype, the factors that cuBLAS reads from the host."""
HOPPER_WORKSPACE, WORKSPACE, SMALL_WORKSPACE = 32 << 20, 4 << 20, 1 << 20
"""Bytes that NVIDIA recommends for cuBLAS, for Hopper and for others; and those that suffice for small products."""
VARYING = (0, 7, 11, 16)
"""Positions of the handle, the right operand, the left one, and the result in the arguments of cuBLAS."""
LARGE = 1 << 24
"""Multiplications from which on a product is no small one."""


def one(dtype: np.dtype[Any]) -> int:
    """The address of a 1 to multiply products of a dtype by."""
    return ONES_AND_ZEROS[dtype.name].ctypes.data


def zero(dtype: np.dtype[Any]) -> int:
    """The address of a 0."""
    both = ONES_AND_ZEROS[dtype.name]
    return both.ctypes.data + both.itemsize


def workspace_bytes(device: Device, multiplications: int) -> int:
    """Bytes of memory that cuBLAS is given to work in."""
    if multiplications < LARGE:
        return SMALL_WORKSPACE
    return HOPPER_WORKSPACE if device.properties.capability[0] == 9 else WORKSPACE


def matmul_recipe(kernel: Special, device: Device) -> Recipe | None:
    """The recipe of (B, m, k) @ (B, k, n); None for dtypes that cuBLAS does not multiply.

    The views say how the operands lie; a batch whose matrices lie 0 apart is one matrix. Factors of float32 are rounded
    to TF32 only if `SETTINGS.allow_tf32` says so now.
    """
    node = kernel.node
    dtype = node.dtype
    if dtype.name not in COMPUTED_IN:
        return None
    batch, m, n = node.shape
    k = node.inputs[0].shape[2]
    if not node.size:
        return Recipe(())
    if not k:
        return Recipe((Fill(2, 0, node.size * dtype.itemsize),))
    operands: list[tuple[int, int, int]] = []
    for view in kernel.views:
        layout = matrix_layout(view)
        assert layout is not None, kernel
        transposed, leading = layout
        operands.append((TRANSPOSE if transposed else NO_TRANSPOSE, leading, view.strides[0]))
    (ta, lda, da), (tb, ldb, db) = operands
    dc, ldc = (n, batch * n) if kernel.interleaved else (m * n, n)
    compute = COMPUTED_IN[dtype.name]
    if dtype == np.float32 and SETTINGS.allow_tf32:
        compute = COMPUTE_TF32
    nbytes = workspace_bytes(device, batch * m * n * k)
    kind, alpha, beta = TYPES[dtype.name], one(dtype), zero(dtype)
    like_a, like_b, like_c = (kind, lda, da), (kind, ldb, db), (kind, ldc, dc)
    # The handle and the three addresses are those of a call.
    arguments = (
        *(0, tb, ta, n, m, k, alpha),
        *(0, *like_b, 0, *like_a, beta, 0, *like_c),
        *(batch, compute, DEFAULT_ALGORITHM),
    )
    device.driver.use(device.index)
    library = device.driver.library("cublas", device.index)
    library.start()
    run = _Product(library, library.prepared("cublasGemmStridedBatchedEx_64", arguments, VARYING), nbytes)
    return Recipe((Routine(run, (0, 1, 2, 3)),), (nbytes + ALIGNMENT,))


@dataclass(frozen=True)
class _Product:
    """One call of cuBLAS."""

    library: Library
    call: Callable[..., None]
    nbytes: int
    capturable = True

    def __call__(self, context: Any, addresses: Sequence[int]) -> None:
        a, b, c, workspace = addresses
        library = self.library
        with library.lock.held():
            handle = library.ready(context.stream, -(-workspace // ALIGNMENT) * ALIGNMENT, self.nbytes)
            self.call(handle, b, a, c)
