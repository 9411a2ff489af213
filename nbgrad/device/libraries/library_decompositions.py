"""QR, singular value and eigenvalue decompositions on a device, by cuSOLVER.

In: the layouts and static values of a `host` node, and the device. Out: a `Recipe` of one call from Python, whose
result lies as the library function on the CPU lays it out: several results one after the other. Called by
library_calls.py through `DEVICE_ROUTINES`. cuSOLVER reads and writes columns: matrices are copied into that order and
back. Where it does not converge, the result is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...graph.shapes import Shape
from ..driver.libraries import LETTERS, LOWER, TYPES, UPPER, VALUES, VALUES_AND_VECTORS, aligned, real
from ..kernels.launches import Recipe, Routine
from ..memory.arrays import Device
from .matrix_kernels import Loaded, Workspaces, copy, load, load_copy, parts
from .solvers import Dtype, Scratch, cholesky_recipe, lu_recipe, solver, triangular_solve_recipe

Layout = tuple[Shape, Dtype]
"""Shape and dtype of an operand or a result, as the library function on the CPU knows it."""


def _batch(shape: Shape) -> int:
    return math.prod(shape[:-2])


@dataclass(frozen=True)
class _Work:
    """Common data of all decompositions: the dtype, number and extents of the matrices, and kernels."""

    dtype: Dtype
    batch: int
    rows: int
    columns: int
    copies: Loaded
    spoil: Loaded

    @staticmethod
    def on(device: Device, layout: Layout) -> _Work:
        """For matrices of a layout."""
        shape, dtype = layout
        copies, spoil = load_copy(device, dtype), load(device, "spoil", dtype)
        return _Work(dtype, _batch(shape), shape[-2], shape[-1], copies, spoil)

    def copy(
        self,
        context: Any,
        source: int,
        target: int,
        shape: Sequence[int],
        source_strides: Sequence[int],
        target_strides: Sequence[int],
    ) -> None:
        """Between layouts, strides in elements of the dtype."""
        copy(self.copies, context, source, target, shape, source_strides, target_strides, parts(self.dtype))

    def turn(self, context: Any, source: int, target: int, rows: int, columns: int, apart: tuple[int, int]) -> None:
        """Transpose (B, rows, columns) in C order; the matrices of source and target lie `apart`."""
        shape = (self.batch, rows, columns)
        self.copy(context, source, target, shape, (apart[0], columns, 1), (apart[1], 1, rows))

    def spoiled(self, context: Any, info: int, out: int, length: int) -> None:
        """NaN in the result, of `length` elements for each matrix, where a routine has failed."""
        words = length * parts(self.dtype)
        self.spoil.launch(context, self.batch * words, info, out, words, self.batch * words)

    def bytes(self, count: int) -> int:
        """Bytes of `count` elements for each matrix."""
        return self.batch * count * self.dtype.itemsize


# ----- QR -----


@dataclass(frozen=True)
class _QR:
    """Q (m, columns) and R (n, n) of (m, n)."""

    work: _Work
    columns: int
    upper: Loaded
    geqrf: Scratch
    orgqr: int
    capturable = False

    def __call__(self, context: Any, places: Sequence[int]) -> None:
        w = self.work
        a, out, matrices, tau, info, scratch = aligned(places, 2)
        m, n, dtype = w.rows, w.columns, w.dtype
        size, kind, item = m * self.columns, TYPES[dtype.name], dtype.itemsize
        length = size + n * n
        w.turn(context, a, matrices, m, n, (m * n, size))
        library = context.driver.library("cusolver", context.device.index)
        with library.on(context.stream) as handle:
            for k in range(w.batch):
                at = matrices + k * size * item
                arguments = (m, n, kind, at, m, kind, tau + k * n * item, kind, *self.geqrf.arguments(scratch))
                library.call("cusolverDnXgeqrf", handle, library.params, *arguments, info + 4 * k)
        count = w.batch * n * n * parts(dtype)
        self.upper.launch(context, count, matrices, out + size * item, n, parts(dtype), count, m, size, length)
        with library.on(context.stream) as handle:
            for k in range(w.batch):
                at = matrices + k * size * item
                arguments = (m, self.columns, n, at, m, tau + k * n * item, scratch, self.orgqr, info + 4 * k)
                library.call(_orgqr(dtype), handle, *arguments)
        w.turn(context, matrices, out, self.columns, m, (size, length))


def _orgqr(dtype: Dtype) -> str:
    return f"cusolverDn{LETTERS[dtype.name]}{'un' if dtype.kind == 'c' else 'or'}gqr"


def _qr(device: Device, layouts: Sequence[Layout], complete: bool) -> Recipe | None:
    w = _Work.on(device, layouts[0])
    m, n, kind = w.rows, w.columns, TYPES[w.dtype.name]
    columns = m if complete else n
    if not n:
        return None
    library = solver(device)
    geqrf = Scratch.of(library, "cusolverDnXgeqrf", m, n, kind, 0, m, kind, 0, kind)
    length = np.zeros(1, np.int32)
    with library.on(0) as handle:
        library.call(f"{_orgqr(w.dtype)}_bufferSize", handle, m, columns, n, 0, m, 0, length.ctypes.data)
    orgqr = int(length[0])
    room = Workspaces(2)
    for nbytes in (w.bytes(m * columns), w.bytes(n), 4 * w.batch, max(geqrf.device, orgqr * w.dtype.itemsize)):
        room.take(nbytes)
    run = _QR(w, columns, load(device, "copy_upper", w.dtype), geqrf, orgqr)
    return Recipe((Routine(run, room.pointers),), tuple(room.sizes))


# ----- Singular values -----


@dataclass(frozen=True)
class _SVD:
    """U, S, V^H one after the other, or S alone. cuSOLVER wants no fewer rows than columns: it gets A^T else."""

    work: _Work
    letter: str
    scratch: Scratch
    capturable = False

    def __call__(self, context: Any, places: Sequence[int]) -> None:
        w = self.work
        a, out, matrices, values, left, right, info, scratch = aligned(places, 2)
        dtype, item = w.dtype, w.dtype.itemsize
        tall = w.rows >= w.columns
        m, n = max(w.rows, w.columns), min(w.rows, w.columns)
        kind, real_kind = TYPES[dtype.name], TYPES[real(dtype).name]
        if tall:
            w.turn(context, a, matrices, m, n, (m * n, m * n))
        else:
            context.driver.copy(matrices, a, w.bytes(m * n), context.stream)
        # U has m columns if all are wanted; V is square.
        columns = m if self.letter == "A" else n
        library = context.driver.library("cusolver", context.device.index)
        with library.on(context.stream) as handle:
            for k in range(w.batch):
                u, vt = left + k * m * columns * item, right + k * n * n * item
                job = (ord(self.letter), ord(self.letter))
                given = (kind, matrices + k * m * n * item, m, real_kind, values + k * n * real(dtype).itemsize)
                wanted = (kind, u, m, kind, vt, n, kind, *self.scratch.arguments(scratch))
                library.call("cusolverDnXgesvd", handle, library.params, *job, m, n, *given, *wanted, info + 4 * k)
        if self.letter == "N":
            context.driver.copy(out, values, w.batch * n * real(dtype).itemsize, context.stream)
            w.spoil.launch(context, w.batch * n, info, out, n, w.batch * n)
            return
        first = n * n if not tall else m * columns
        length = m * columns + n + n * n
        _values(w, context, values, out, first, length)
        if tall:
            w.turn(context, left, out, columns, m, (m * columns, length))
            w.turn(context, right, out + (first + n) * item, n, n, (n * n, length))
        else:
            # A^T = U S V^H, so that A has the left vectors V^H^T and the right ones U^T: what lies there, read by rows.
            w.copy(context, right, out, (w.batch, n * n), (n * n, 1), (length, 1))
            place = out + (first + n) * item
            w.copy(context, left, place, (w.batch, m * columns), (m * columns, 1), (length, 1))
        w.spoiled(context, info, out, length)


def _values(w: _Work, context: Any, values: int, out: int, start: int, length: int) -> None:
    """Write real values from element `start` on into results of a length; imaginary parts become 0."""
    n, both = min(w.rows, w.columns), parts(w.dtype)
    if both == 2:
        context.driver.fill(out, 0, w.bytes(length), context.stream)
    place = out + start * w.dtype.itemsize
    copy(w.copies, context, values, place, (w.batch, n), (n, 1), (length * both, both))


def _svd_run(device: Device, layouts: Sequence[Layout], letter: str) -> Recipe | None:
    w = _Work.on(device, layouts[0])
    m, n = max(w.rows, w.columns), min(w.rows, w.columns)
    if not n:
        return None
    kind, real_kind = TYPES[w.dtype.name], TYPES[real(w.dtype).name]
    job = (ord(letter), ord(letter))
    arguments = (*job, m, n, kind, 0, m, real_kind, 0, kind, 0, m, kind, 0, n, kind)
    scratch = Scratch.of(solver(device), "cusolverDnXgesvd", *arguments)
    columns = {"A": m, "S": n, "N": 0}[letter]
    room = Workspaces(2)
    sizes = (w.bytes(m * n), w.bytes(n), w.bytes(m * columns), w.bytes(n * n), 4 * w.batch, scratch.device)
    for nbytes in sizes:
        room.take(nbytes)
    return Recipe((Routine(_SVD(w, letter, scratch), room.pointers),), tuple(room.sizes))


# ----- Eigenvalues of symmetric matrices -----


@dataclass(frozen=True)
class _Eigh:
    """Values, then the vectors: in rows for real matrices, in columns for complex ones; or the values alone."""

    work: _Work
    uplo: int
    vectors: bool
    scratch: Scratch
    together: bool
    capturable = False

    def __call__(self, context: Any, places: Sequence[int]) -> None:
        w = self.work
        a, out, matrices, values, info, scratch = aligned(places, 2)
        n, dtype, item = w.rows, w.dtype, w.dtype.itemsize
        kind, real_kind = TYPES[dtype.name], TYPES[real(dtype).name]
        w.turn(context, a, matrices, n, n, (n * n, n * n))
        job = VALUES_AND_VECTORS if self.vectors else VALUES
        library = context.driver.library("cusolver", context.device.index)
        room = self.scratch.arguments(scratch)
        with library.on(context.stream) as handle:
            begin = (handle, library.params, job, self.uplo, n, kind)
            if self.together:
                arguments = (matrices, n, real_kind, values, kind, *room, info, w.batch)
                library.call("cusolverDnXsyevBatched", *begin, *arguments)
            for k in range(0 if self.together else w.batch):
                at, found = matrices + k * n * n * item, values + k * n * real(dtype).itemsize
                library.call("cusolverDnXsyevd", *begin, at, n, real_kind, found, kind, *room, info + 4 * k)
        if not self.vectors:
            context.driver.copy(out, values, w.batch * n * real(dtype).itemsize, context.stream)
            w.spoil.launch(context, w.batch * n, info, out, n, w.batch * n)
            return
        length = n + n * n
        _values(w, context, values, out, 0, length)
        if dtype.kind == "c":
            w.turn(context, matrices, out + n * item, n, n, (n * n, length))
        else:
            w.copy(context, matrices, out + n * item, (w.batch, n * n), (n * n, 1), (length, 1))
        w.spoiled(context, info, out, length)


def _eigh_run(device: Device, layouts: Sequence[Layout], triangle: str, vectors: bool) -> Recipe | None:
    w = _Work.on(device, layouts[0])
    n = w.rows
    if not n:
        return None
    uplo = LOWER if triangle == "L" else UPPER
    kind, real_kind = TYPES[w.dtype.name], TYPES[real(w.dtype).name]
    job = VALUES_AND_VECTORS if vectors else VALUES
    library = solver(device)
    # CUDA 12.6 brought the routine for batches.
    both = w.batch > 1 and library.has("cusolverDnXsyevBatched")
    function, batch = ("cusolverDnXsyevBatched", (w.batch,)) if both else ("cusolverDnXsyevd", ())
    scratch = Scratch.of(library, function, job, uplo, n, kind, 0, n, real_kind, 0, kind, batch=batch)
    room = Workspaces(2)
    for nbytes in (w.bytes(n * n), w.bytes(n), 4 * w.batch, scratch.device):
        room.take(nbytes)
    return Recipe((Routine(_Eigh(w, uplo, vectors, scratch, both), room.pointers),), tuple(room.sizes))


# ----- The table -----


def _square(recipe: Callable[[Device, Dtype, int, int], Recipe]) -> Callable[..., Recipe | None]:
    def make(device: Device, layouts: Sequence[Layout]) -> Recipe:
        shape, dtype = layouts[0]
        return recipe(device, dtype, _batch(shape), shape[-1])

    return make


def _triangular(device: Device, layouts: Sequence[Layout], lower: bool, adjoint: bool, unit: bool) -> Recipe:
    shape, dtype = layouts[1]
    return triangular_solve_recipe(device, dtype, (_batch(shape), shape[-2], shape[-1]), lower, adjoint, unit)


DEVICE_ROUTINES: dict[str, Callable[..., Recipe | None]] = {
    "qr": _qr,
    "svd": lambda device, layouts, full: _svd_run(device, layouts, "A" if full else "S"),
    "svdvals": lambda device, layouts, full: _svd_run(device, layouts, "N"),
    "eigh": lambda device, layouts, triangle: _eigh_run(device, layouts, triangle, True),
    "eigvalsh": lambda device, layouts, triangle="L": _eigh_run(device, layouts, triangle, False),
    "lu": _square(lu_recipe),
    "cholesky": _square(cholesky_recipe),
    "triangular solve": _triangular,
}
"""By the name of a host function: `make(device, layouts, *static)` gives its recipe, or None for a case that is left to
the host. `layouts` are those of the operands and of the result."""
