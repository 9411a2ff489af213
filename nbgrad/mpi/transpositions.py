"""Transpositions of grids of which each rank has a block, and the steps of a Fourier transform between them.

In: a grid, and nodes of blocks. Out: nodes of blocks of the frequencies, and back. Called by grid_transforms.py.

A transform goes along axes that each rank has whole. A split axis is made whole by a message from each rank along it to
each other one, which splits another axis in its place: L. Dalcin, M. Mortensen and D. E. Keyes, "Fast parallel
multidimensional FFT using advanced MPI", 2019.
"""

from __future__ import annotations

import itertools
import weakref
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..functions.analysis.fourier import from_half_spectrum, half_spectrum, transform
from ..graph.builders import concatenate, reshape, slice_axes, transpose
from ..graph.ir import Node, zeros
from .arrays_given import line
from .communicators import Group, group_of, groups
from .grid import Grid
from .message_nodes import known_result, sent
from .messages import Message


@dataclass(frozen=True)
class Move:
    """An axis made whole by splitting another one, over the ranks along an axis of the grid's blocks."""

    whole: int
    split: int
    along: int


class Plan:
    """The steps of a transform: moves, and sets of axes to transform. The inverse has them in reverse order."""

    def __init__(self, name: str, grid: Grid, real: bool, transposed: bool) -> None:
        if not isinstance(grid, Grid):
            message = f"{name} takes a Grid, but got {type(grid).__name__}."
            raise ArgumentError(message)
        self.grid, self.real, self.line = grid, real, line()
        axes = len(grid.shape)
        self.blocks: list[int] = [*grid.blocks]
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
        local: list[Move | tuple[int, ...]] = [tuple(whole)] if whole else []
        self.steps: list[Move | tuple[int, ...]] = []
        for axis in reversed(range(axes)):
            # The last axis of real numbers comes first, then those that lie on one rank.
            if axis != last or not real:
                self.steps, local = [*self.steps, *local], []
            if axis in whole:
                continue
            other = axis + 1 if transposed else max(whole or {*range(axes)} - {axis}, key=lambda k: grid.shape[k])
            self.steps += [Move(axis, other, axis), (axis,)]
            if transposed:
                self.blocks[axis], self.blocks[other] = 1, self.blocks[axis]
            else:
                self.steps.append(Move(other, axis, axis))
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
        self._agree()
        last, extents = len(self.blocks) - 1, _split_extents(self.grid.shape, self.grid.blocks)
        for step in self.steps:
            if isinstance(step, Move):
                node = self._moved(node, step, extents)
                continue
            axes = tuple([axis - node.ndim for axis in step])
            half = self.real and last in step
            node = half_spectrum(node, axes, norm) if half else transform(node, axes, True, norm)
        return node

    def backward(self, node: Node, norm: str) -> Node:
        """The block of some frequencies."""
        self._agree()
        last, extents = len(self.blocks) - 1, _split_extents(self._frequencies(), self.blocks)
        for step in reversed(self.steps):
            if isinstance(step, Move):
                node = self._moved(node, Move(step.split, step.whole, step.along), extents)
                continue
            axes = tuple([axis - node.ndim for axis in step])
            half = self.real and last in step
            count = self.grid.shape[last]
            node = from_half_spectrum(node, count, axes, norm) if half else transform(node, axes, False, norm)
        return node

    def _agree(self) -> None:
        """Raise on all ranks unless they have the same grid, once for each grid.

        Raises
        ------
        ShapeError
            If they have not.
        """
        grid = self.grid
        if grid in _agreed or grid.comm.size == 1:
            return
        group = group_of(grid.comm)
        own = np.array(zlib.crc32(f"{grid.shape} {grid.blocks}".encode()))
        message = Message("allgather", group.number, ((), own.dtype), ((group.size,), own.dtype), line=self.line)
        other = next((rank for rank, one in enumerate(known_result(message, own)) if one != own), None)
        if other is not None:
            text = f"All ranks of a transform must give the same grid, but rank {other} gives another one than {grid}."
            raise ShapeError(text)
        _agreed.add(grid)

    def _moved(self, node: Node, move: Move, extents: list[list[int]]) -> Node:
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


_agreed: weakref.WeakSet[Grid] = weakref.WeakSet()
"""Grids that are the same on all ranks."""
_lines: dict[tuple[int, tuple[int, ...], int], int] = {}
"""The numbers of groups of ranks along an axis of blocks; all ranks ask for one at once."""


def _split_extents(shape: Sequence[int], blocks: Sequence[int]) -> list[list[int]]:
    return [[n] if count > 1 else [] for n, count in zip(shape, blocks, strict=True)]


def _parts(extent: int, count: int) -> list[int]:
    """The extents of the blocks that a grid makes of an axis."""
    bounds = [extent * k // count for k in range(count + 1)]
    return [high - low for low, high in itertools.pairwise(bounds)]


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
    """A transposition of equal parts: one row for each rank, which compiled programs send without Python."""
    shape, part = node.shape, node.shape[split] // count
    parts = reshape(node, (*shape[:split], count, part, *shape[split + 1 :]))
    rows = transpose(parts, (split, *[k for k in range(parts.ndim) if k != split]))
    layout = (rows.shape, rows.dtype)
    found = sent(Message("alltoall", group.number, layout, layout, line=place), rows)
    # The rank that a row comes from is its place along the axis that becomes whole.
    joined = transpose(found, (*range(1, whole + 1), 0, *range(whole + 1, found.ndim)))
    final = [part if k == split else n * count if k == whole else n for k, n in enumerate(shape)]
    return reshape(joined, tuple(final))
