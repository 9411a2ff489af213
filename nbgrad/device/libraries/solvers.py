"""Factorisations and triangular systems of batches of square matrices on a device, by cuSOLVER and cuBLAS.

In: the operation, a dtype and sizes, and the device. Out: a `Recipe` of one call from Python. Called by
library_calls.py. Results lie as on the CPU (kernels/linalg.py), so that the same derivative rules hold. The libraries
see every matrix transposed: its lower triangle is their upper one.

Many small matrices go into one call, which reads their addresses from memory; large ones follow one after the other.
Workspaces are asked for when the recipe is made, so that nothing is allocated when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..driver.libraries import (
    ADJOINT,
    LETTERS,
    LOWER,
    NO_TRANSPOSE,
    NOT_UNIT,
    RIGHT,
    TRANSPOSE,
    TYPES,
    UNIT,
    UPPER,
    Library,
    aligned,
)
from ..kernels.launches import Recipe, Routine
from ..memory.arrays import Device
from .library_products import one, workspace_bytes
from .matrix_kernels import Loaded, Workspaces, copy, load, load_copy, parts

SMALL_MATRIX = 256
"""Up to this extent, one call works on all matrices of a batch."""

Dtype = np.dtype[Any]


class Scratch(NamedTuple):
    """The workspace of a routine of cuSOLVER: bytes on the device, and memory of the host."""

    device: int
    host: np.ndarray

    @staticmethod
    def of(library: Library, function: str, *arguments: Any, batch: tuple[int, ...] = ()) -> Scratch:
        """The workspace that the routine wants for these arguments."""
        on_device, on_host = library.sizes(function, *arguments, batch=batch)
        return Scratch(on_device, np.empty(max(on_host, 1), np.uint8))

    def arguments(self, at: int) -> tuple[int, int, int, int]:
        """The four arguments by which cuSOLVER gets it; `at` is where it lies on the device."""
        return at, self.device, self.host.ctypes.data, self.host.size


def solver(device: Device) -> Library:
    """cuSOLVER, started."""
    device.driver.use(device.index)
    library = device.driver.library("cusolver", device.index)
    library.start()
    return library


def products(device: Device) -> Library:
    """cuBLAS, started."""
    device.driver.use(device.index)
    library = device.driver.library("cublas", device.index)
    library.start()
    return library


def together(batch: int, n: int) -> bool:
    """Whether one call does the whole batch."""
    return batch > 1 and n <= SMALL_MATRIX


@dataclass(frozen=True)
class _LU:
    """The routine of the primitive `lu`: a[:, order] = lower @ upper, then `order` and its inverse."""

    dtype: Dtype
    batch: int
    n: int
    copies: Loaded
    orders: Loaded
    addresses: Loaded | None
    scratch: Scratch
    capturable = False

    def __call__(self, context: Any, places: Sequence[int]) -> None:
        dtype, batch, n = self.dtype, self.batch, self.n
        a, out, pivots, info, work = aligned(places, 2)
        whole = (n + 2) * n
        copy(self.copies, context, a, out, (batch, n * n), (n * n, 1), (whole, 1), parts(dtype))
        distance = whole * dtype.itemsize
        driver, device = context.driver, context.device.index
        if self.addresses is not None:
            self.addresses.launch(context, batch, work, out, distance, batch)
            library = driver.library("cublas", device)
            with library.on(context.stream) as handle:
                library.call(f"cublas{LETTERS[dtype.name]}getrfBatched", handle, n, work, n, pivots, info, batch)
        else:
            library = driver.library("cusolver", device)
            kind = TYPES[dtype.name]
            with library.on(context.stream) as handle:
                for k in range(batch):
                    matrix = (kind, out + k * distance, n, pivots + 8 * n * k, kind)
                    scratch = self.scratch.arguments(work)
                    library.call("cusolverDnXgetrf", handle, library.params, n, n, *matrix, *scratch, info + 4 * k)
        self.orders.launch(context, batch, pivots, out, n, parts(dtype), batch)


def lu_recipe(device: Device, dtype: Dtype, batch: int, n: int) -> Recipe:
    """(B, n, n) to (B, n + 2, n), as the primitive `lu`."""
    if not batch * n:
        return Recipe(())
    room = Workspaces(2)
    small = together(batch, n)
    if small:
        products(device)
        scratch = Scratch(8 * batch, np.empty(0, np.uint8))
        addresses = load(device, "addresses", dtype)
    else:
        kind = TYPES[dtype.name]
        scratch = Scratch.of(solver(device), "cusolverDnXgetrf", n, n, kind, 0, n, kind)
        addresses = None
    orders = load(device, "order_of" if small else "order_of_long", dtype)
    # The pivots, the status of each matrix, and the routine's own scratch or the addresses.
    for nbytes in ((4 if small else 8) * batch * n, 4 * batch, scratch.device):
        room.take(nbytes)
    run = _LU(dtype, batch, n, load_copy(device, dtype), orders, addresses, scratch)
    return Recipe((Routine(run, room.pointers),), tuple(room.sizes))


@dataclass(frozen=True)
class _Cholesky:
    """The routine of the primitive `cholesky`: the lower triangular factor, NaN where there is none."""

    dtype: Dtype
    batch: int
    n: int
    finish: Loaded
    addresses: Loaded | None
    scratch: Scratch
    capturable = False

    def __call__(self, context: Any, places: Sequence[int]) -> None:
        dtype, batch, n = self.dtype, self.batch, self.n
        a, out, info, work = aligned(places, 2)
        distance = n * n * dtype.itemsize
        driver = context.driver
        driver.copy(out, a, batch * distance, context.stream)
        library = driver.library("cusolver", context.device.index)
        kind = TYPES[dtype.name]
        if self.addresses is not None:
            self.addresses.launch(context, batch, work, out, distance, batch)
        with library.on(context.stream) as handle:
            if self.addresses is not None:
                routine = f"cusolverDn{LETTERS[dtype.name]}potrfBatched"
                library.call(routine, handle, UPPER, n, work, n, info, batch)
            else:
                for k in range(batch):
                    matrix = (UPPER, n, kind, out + k * distance, n, kind)
                    scratch = self.scratch.arguments(work)
                    library.call("cusolverDnXpotrf", handle, library.params, *matrix, *scratch, info + 4 * k)
        count = batch * n * n * parts(dtype)
        self.finish.launch(context, count, info, out, n, parts(dtype), count)


def cholesky_recipe(device: Device, dtype: Dtype, batch: int, n: int) -> Recipe:
    """(B, n, n) to (B, n, n), as the primitive `cholesky`."""
    if not batch * n:
        return Recipe(())
    room = Workspaces(2)
    library = solver(device)
    if together(batch, n):
        scratch = Scratch(8 * batch, np.empty(0, np.uint8))
        addresses = load(device, "addresses", dtype)
    else:
        kind = TYPES[dtype.name]
        scratch = Scratch.of(library, "cusolverDnXpotrf", UPPER, n, kind, 0, n, kind)
        addresses = None
    for nbytes in (4 * batch, scratch.device):
        room.take(nbytes)
    run = _Cholesky(dtype, batch, n, load(device, "keep_lower", dtype), addresses, scratch)
    return Recipe((Routine(run, room.pointers),), tuple(room.sizes))


@dataclass(frozen=True)
class _TriangularSolve:
    """The x of a @ x = b, in the memory of a copy of b."""

    dtype: Dtype
    batch: int
    n: int
    columns: int
    letters: tuple[int, int, int, int]
    addresses: Loaded | None
    nbytes: int
    capturable = True

    def __call__(self, context: Any, places: Sequence[int]) -> None:
        dtype, batch, n, columns = self.dtype, self.batch, self.n, self.columns
        a, b, out, work, both = aligned(places, 3)
        matrix, right = n * n * dtype.itemsize, n * columns * dtype.itemsize
        context.driver.copy(out, b, batch * right, context.stream)
        letter, alpha = LETTERS[dtype.name], one(dtype)
        library = context.driver.library("cublas", context.device.index)
        if self.addresses is not None:
            other = both + 8 * batch
            self.addresses.launch(context, batch, both, a, matrix, batch)
            self.addresses.launch(context, batch, other, out, right, batch)
            with library.on(context.stream, work, self.nbytes) as handle:
                sizes = (columns, n, alpha, both, n, other, columns, batch)
                library.call(f"cublas{letter}trsmBatched_64", handle, *self.letters, *sizes)
            return
        with library.on(context.stream, work, self.nbytes) as handle:
            for k in range(batch):
                sizes = (columns, n, alpha, a + k * matrix, n, out + k * right, columns)
                library.call(f"cublas{letter}trsm_v2_64", handle, *self.letters, *sizes)


def triangular_solve_recipe(
    device: Device, dtype: Dtype, shape: tuple[int, int, int], lower: bool, transposed: bool, unit: bool
) -> Recipe:
    """One triangle of (B, n, n), and (B, n, k), to (B, n, k); `transposed` means the adjoint for complex matrices.

    x' A' = b' for matrices in C order is a system from the right to cuBLAS.
    """
    batch, n, columns = shape
    if not batch * n * columns:
        return Recipe(())
    products(device)
    mode = NO_TRANSPOSE if not transposed else ADJOINT if dtype.kind == "c" else TRANSPOSE
    letters = (RIGHT, UPPER if lower else LOWER, mode, UNIT if unit else NOT_UNIT)
    small = together(batch, n)
    room = Workspaces(3)
    nbytes = workspace_bytes(device, batch * n * n * columns)
    for size in (nbytes, 16 * batch if small else 1):
        room.take(size)
    addresses = load(device, "addresses", dtype) if small else None
    run = _TriangularSolve(dtype, batch, n, columns, letters, addresses, nbytes)
    return Recipe((Routine(run, room.pointers),), tuple(room.sizes))
