"""Fourier transforms of grids of which each rank has a block: `fftn`, `rfftn` and their inverses.

In: this rank's block of a grid, and the grid. Out: this rank's block of the frequencies, and the way back. Called by
users.

Axes that lie on one rank are transformed there. A split axis is made whole first, by a message from each rank along it
to each other one, which splits another axis in its place: the transposition of the slab and pencil decompositions of
FFTW, P3DFFT and mpi4py-fft (L. Dalcin, M. Mortensen and D. E. Keyes, "Fast parallel multidimensional FFT using advanced
MPI", 2019). The transforms and the messages have derivatives, so that these have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..functions.analysis.fft_functions import checked_norm
from ..functions.analysis.fourier import from_half_spectrum, half_spectrum, transform
from ..graph.builders import concatenate, reshape, slice_axes, transpose
from ..graph.complex_numbers import is_complex, pair
from ..graph.ir import Node, zeros
from ..record.axes_and_dtypes import inexact
from .arrays_given import given, line, returned
from .communicators import Group, group_of, groups
from .grid import Grid
from .message_nodes import sent
from .messages import Message


def fftn(x: Any, grid: Grid, norm: str | None = None, transposed: bool = False) -> Any:
    """Discrete Fourier transform of a grid of which each rank has a block, along all axes.

    Parameters
    ----------
    x : array
        This rank's block, of shape `grid.local`; further axes may follow, which are not transformed.
    grid : Grid
        Of two axes or more. Where the first axis alone is split (`blocks=(ranks, 1, ...)`, slabs), two messages are
        sent; where others are (pencils, blocks), two for each.
    norm : {None, "backward", "ortho", "forward"}
        As for `numpy.fft.fftn`.
    transposed : bool
        Whether the frequencies stay where they are after the last axis was transformed, each split axis having passed
        its blocks on to the next one. That takes half of the messages; FFTW calls it FFTW_MPI_TRANSPOSED_OUT.

    Returns
    -------
    array, complex
        This rank's block of the frequencies, as `spectrum(grid, transposed=transposed)` says.

    Raises
    ------
    ShapeError
        If it is no such block, or the grid has one split axis alone.
    ArgumentError, DtypeError
        If the norm does not exist, the last axis of a transposed transform is split, or `x` is no array of numbers.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> from nbgrad import mpi
    >>> grid = mpi.Grid((2, 2), halo=0)
    >>> u = np.array([[1.0, 2.0], [3.0, 5.0]])[grid.slices]
    >>> mpi.fftn(u, grid).real
    array([[11., -3.],
           [-5.,  1.]])
    >>> nb.grad(lambda u: np.sum(np.abs(mpi.fftn(u, grid)) ** 2))(u)
    array([[ 8., 16.],
           [24., 40.]])
    """
    plan = _Plan("fftn", grid, False, transposed)
    node = _block(x, grid.local, grid, "fftn")
    return returned(plan.forward(_as_complex(inexact(node)), checked_norm(norm)), x)


def ifftn(x: Any, grid: Grid, norm: str | None = None, transposed: bool = False) -> Any:
    """Inverse of `fftn`.

    Parameters
    ----------
    x : array
        This rank's block of the frequencies.
    grid : Grid
        That of the result.
    norm : {None, "backward", "ortho", "forward"}
    transposed : bool
        Whether the frequencies lie as `fftn(..., transposed=True)` leaves them.

    Returns
    -------
    array, complex
        This rank's block, of shape `grid.local`.

    Raises
    ------
    ShapeError, ArgumentError, DtypeError
        As `fftn`.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> grid = mpi.Grid((2, 2), halo=0)
    >>> u = np.array([[1.0, 2.0], [3.0, 5.0]])[grid.slices]
    >>> mpi.ifftn(mpi.fftn(u, grid, transposed=True), grid, transposed=True).real
    array([[1., 2.],
           [3., 5.]])
    """
    plan = _Plan("ifftn", grid, False, transposed)
    node = _block(x, plan.spectrum().local, grid, "ifftn")
    return returned(plan.backward(_as_complex(inexact(node)), checked_norm(norm)), x)


def rfftn(x: Any, grid: Grid, norm: str | None = None, transposed: bool = False) -> Any:
    """Discrete Fourier transform of a real grid of which each rank has a block; of the last axis the first half.

    Parameters
    ----------
    x : array
        This rank's block, real, of shape `grid.local`; further axes may follow.
    grid : Grid
    norm : {None, "backward", "ortho", "forward"}
    transposed : bool
        As for `fftn`.

    Returns
    -------
    array, complex
        This rank's block of the frequencies, as `spectrum(grid, real=True, transposed=transposed)` says: of the last
        axis, which has n points, n // 2 + 1.

    Raises
    ------
    ShapeError, ArgumentError, DtypeError
        As `fftn`, and for complex numbers.

    Examples
    --------
    The solution of a Poisson equation on a periodic square:

    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> grid = mpi.Grid((8, 8), halo=0, periodic=True)
    >>> there = mpi.spectrum(grid, real=True, transposed=True)
    >>> k0, k1 = np.meshgrid(np.fft.fftfreq(8, 1 / 8), np.fft.rfftfreq(8, 1 / 8), indexing="ij")
    >>> squares = (k0**2 + k1**2)[there.slices]
    >>> squares[squares == 0] = np.inf
    >>> x = 2 * np.pi * np.arange(8)[:, None] / 8
    >>> source = (np.cos(x) + np.zeros(8))[grid.slices]
    >>> u = mpi.irfftn(mpi.rfftn(source, grid, transposed=True) / squares, grid, transposed=True)
    >>> bool(np.allclose(u, source))
    True
    """
    plan = _Plan("rfftn", grid, True, transposed)
    node = _block(x, grid.local, grid, "rfftn")
    if is_complex(node):
        message = f"rfftn needs real numbers, but got {node.dtype}. Use fftn, or x.real."
        raise DtypeError(message)
    return returned(plan.forward(inexact(node), checked_norm(norm)), x)


def irfftn(x: Any, grid: Grid, norm: str | None = None, transposed: bool = False) -> Any:
    """Inverse of `rfftn`.

    Parameters
    ----------
    x : array
        This rank's block of the frequencies.
    grid : Grid
        That of the result, with all points of the last axis.
    norm : {None, "backward", "ortho", "forward"}
    transposed : bool
        Whether the frequencies lie as `rfftn(..., transposed=True)` leaves them.

    Returns
    -------
    array, real
        This rank's block, of shape `grid.local`.

    Raises
    ------
    ShapeError, ArgumentError, DtypeError
        As `fftn`.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> grid = mpi.Grid((2, 3), halo=0)
    >>> u = np.array([[1.0, 2.0, 0.0], [3.0, 5.0, 1.0]])[grid.slices]
    >>> mpi.irfftn(mpi.rfftn(u, grid), grid).round(12) + 0.0
    array([[1., 2., 0.],
           [3., 5., 1.]])
    """
    plan = _Plan("irfftn", grid, True, transposed)
    node = _block(x, plan.spectrum().local, grid, "irfftn")
    return returned(plan.backward(_as_complex(inexact(node)), checked_norm(norm)), x)


def spectrum(grid: Grid, real: bool = False, transposed: bool = False) -> Grid:
    """The grid of the frequencies of `fftn` or `rfftn`: its `slices` say which of them this rank has.

    Parameters
    ----------
    grid : Grid
        That of the points.
    real : bool
        Whether the frequencies are those of `rfftn`.
    transposed : bool
        Whether they lie as a transposed transform leaves them.

    Returns
    -------
    Grid

    Raises
    ------
    ShapeError, ArgumentError
        As `fftn`.

    Examples
    --------
    >>> from nbgrad import mpi
    >>> mpi.spectrum(mpi.Grid((4, 6), halo=0), real=True).shape
    (4, 4)
    """
    return _Plan("spectrum", grid, real, transposed).spectrum()


def _block(x: Any, local: Sequence[int], grid: Grid, name: str) -> Node:
    """The node of a block.

    Raises
    ------
    ShapeError
        If it has another shape.
    """
    node = given(x, name)
    if node.shape[: len(local)] != tuple(local):
        message = (
            f"{name} takes this rank's block, of shape {tuple(local)} for {grid}, but got one of shape {node.shape}."
        )
        raise ShapeError(message)
    return node


def _as_complex(node: Node) -> Node:
    return node if is_complex(node) else pair(node, zeros(node.shape, node.dtype))


@dataclass(frozen=True)
class _Move:
    """An axis made whole by splitting another one, over the ranks along an axis of the grid's blocks."""

    whole: int
    split: int
    along: int


class _Plan:
    """The steps of a transform: moves, and sets of axes to transform. The inverse has them in reverse order."""

    def __init__(self, name: str, grid: Grid, real: bool, transposed: bool) -> None:
        if not isinstance(grid, Grid):
            message = f"{name} takes a Grid, but got {type(grid).__name__}."
            raise ArgumentError(message)
        self.grid, self.real, self.line = grid, real, line()
        axes = len(grid.shape)
        self.blocks = list(grid.blocks)
        whole = [axis for axis in range(axes) if self.blocks[axis] == 1]
        last = axes - 1
        if axes == 1 and not whole:
            message = "A Fourier transform over ranks takes a grid of two axes or more, of which one can be split."
            raise ShapeError(message)
        if transposed and last not in whole:
            message = (
                f"A transposed transform needs the whole last axis on each rank, but it has {self.blocks[-1]} blocks. "
                "Give other blocks to the grid, or leave transposed out."
            )
            raise ArgumentError(message)
        local: list[_Move | tuple[int, ...]] = [tuple(whole)] if whole else []
        self.steps: list[_Move | tuple[int, ...]] = []
        for axis in reversed(range(axes)):
            # The last axis of real numbers comes first, then those that lie on one rank.
            if axis != last or not real:
                self.steps, local = [*self.steps, *local], []
            if axis in whole:
                continue
            other = axis + 1 if transposed else max(whole or {*range(axes)} - {axis}, key=lambda k: grid.shape[k])
            self.steps += [_Move(axis, other, axis), (axis,)]
            if transposed:
                self.blocks[axis], self.blocks[other] = 1, self.blocks[axis]
            else:
                self.steps.append(_Move(other, axis, axis))
        self.steps += local

    def spectrum(self) -> Grid:
        """The grid of the frequencies."""
        grid = self.grid
        return Grid(self._frequencies(), 0, grid.periodic, grid.comm, self.blocks)

    def _frequencies(self) -> tuple[int, ...]:
        shape = self.grid.shape
        return (*shape[:-1], shape[-1] // 2 + 1) if self.real else shape

    def forward(self, node: Node, norm: str) -> Node:
        """The frequencies of a block."""
        last, extents = len(self.blocks) - 1, _split_extents(self.grid.shape, self.grid.blocks)
        for step in self.steps:
            if isinstance(step, _Move):
                node = self._moved(node, step, extents)
                continue
            axes = tuple([axis - node.ndim for axis in step])
            half = self.real and last in step
            node = half_spectrum(node, axes, norm) if half else transform(node, axes, True, norm)
        return node

    def backward(self, node: Node, norm: str) -> Node:
        """The block of some frequencies."""
        last, extents = len(self.blocks) - 1, _split_extents(self._frequencies(), self.blocks)
        for step in reversed(self.steps):
            if isinstance(step, _Move):
                node = self._moved(node, _Move(step.split, step.whole, step.along), extents)
                continue
            axes = tuple([axis - node.ndim for axis in step])
            half = self.real and last in step
            count = self.grid.shape[last]
            node = from_half_spectrum(node, count, axes, norm) if half else transform(node, axes, False, norm)
        return node

    def _moved(self, node: Node, move: _Move, extents: list[list[int]]) -> Node:
        """One axis made whole, another one split; `extents` are those of each axis before each time it was split."""
        extent = extents[move.whole].pop()
        extents[move.split].append(node.shape[move.split])
        return _transposed(node, move.whole, extent, move.split, self._along(move.along), self.line)

    def _along(self, axis: int) -> Group:
        """The ranks whose blocks differ along one axis of the grid alone."""
        grid = self.grid
        group = group_of(grid.comm)
        if grid.blocks[axis] == group.size:
            return group
        key = (group.number, grid.blocks, axis)
        if key not in _lines:
            others = (*grid.place[:axis], 0, *grid.place[axis + 1 :])
            color = int(np.ravel_multi_index(others, grid.blocks))
            _lines[key] = group_of(grid.comm.Split(color, grid.place[axis])).number
        return groups[_lines[key]]


_lines: dict[tuple[int, tuple[int, ...], int], int] = {}
"""The numbers of groups of ranks along an axis of blocks; all ranks ask for one at once."""


def _split_extents(shape: Sequence[int], blocks: Sequence[int]) -> list[list[int]]:
    return [[n] if count > 1 else [] for n, count in zip(shape, blocks, strict=True)]


def _parts(extent: int, count: int) -> list[int]:
    """The extents of the blocks that a grid makes of an axis."""
    bounds = [extent * k // count for k in range(count + 1)]
    return [high - low for low, high in zip(bounds, bounds[1:], strict=False)]


def _transposed(node: Node, whole: int, extent: int, split: int, group: Group, place: str) -> Node:
    """A block with one axis, of which each rank has a part, made whole, and another one split in its place."""
    count, rank = group.size, group.rank
    if count == 1:
        return node
    sends, receives = _parts(node.shape[split], count), _parts(extent, count)
    if len({*sends}) == len({*receives}) == 1:
        return _transposed_equally(node, whole, split, count, group, place)
    front = transpose(node, (split, *[k for k in range(node.ndim) if k != split]))
    other = int(np.prod(front.shape[1:], dtype=np.int64))
    own = [sends[rank] if k == split else n for k, n in enumerate(node.shape)]
    shapes = [[*own[:whole], part, *own[whole + 1 :]] for part in receives]
    there, back = [other * part for part in sends], [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
    data, result = (((sum(sizes),), node.dtype) for sizes in (there, back))
    message = Message("alltoall", group.number, data, result, counts=(*there,), given_counts=(*back,), line=place)
    found, at, parts = sent(message, reshape(front, (front.size,))), 0, []
    order = (*range(1, split + 1), 0, *range(split + 1, node.ndim))
    for shape, size in zip(shapes, back, strict=True):
        if size:
            ahead = (shape[split], *[n for k, n in enumerate(shape) if k != split])
            parts.append(transpose(reshape(slice_axes(found, [(at, size, 1)]), ahead), order))
        at += size
    if not parts:
        return zeros((*own[:whole], extent, *own[whole + 1 :]), node.dtype)
    return concatenate(parts, whole)


def _transposed_equally(node: Node, whole: int, split: int, count: int, group: Group, place: str) -> Node:
    """The same of equal parts: one row for each rank, which compiled programs send without Python."""
    shape, part = node.shape, node.shape[split] // count
    parts = reshape(node, (*shape[:split], count, part, *shape[split + 1 :]))
    rows = transpose(parts, (split, *[k for k in range(parts.ndim) if k != split]))
    layout = (rows.shape, rows.dtype)
    found = sent(Message("alltoall", group.number, layout, layout, line=place), rows)
    # The rank that a row comes from is its place along the axis that becomes whole.
    joined = transpose(found, (*range(1, whole + 1), 0, *range(whole + 1, found.ndim)))
    final = [part if k == split else n * count if k == whole else n for k, n in enumerate(shape)]
    return reshape(joined, tuple(final))
