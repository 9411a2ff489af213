"""Grids of which each rank has a block: where it lies, and halos of the neighbours' points around it.

In: the shape of the whole grid, and blocks. Out: blocks with halos, whole grids. Called by users.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..graph.builders import concatenate, slice_axes
from ..graph.ir import Node, make, zeros
from .arrays_given import given, line, returned
from .collectives import allreduce
from .communicators import group_of, library
from .message_nodes import sent
from .messages import Message


class Grid:
    """A grid of points whose blocks lie on the ranks of a communicator.

    Parameters
    ----------
    shape : tuple of int
        The points of the whole grid along each axis.
    halo : int or tuple of int
        The neighbours' points that `exchange` puts around a block, along each axis.
    periodic : bool or tuple of bool
        Whether the grid's ends meet, along each axis. Otherwise the halo beyond an end is zeros.
    comm : mpi4py.MPI.Comm, optional
        By default all processes.
    blocks : tuple of int, optional
        The number of blocks along each axis, whose product is that of the ranks; MPI chooses where it is 0. By default
        MPI chooses all.

    Attributes
    ----------
    blocks : tuple of int
        The number of blocks along each axis.
    place : tuple of int
        The place of this rank's block among them; ranks are in C order.
    local : tuple of int
        The shape of this rank's block.
    slices : tuple of slice
        Where it lies in the whole grid.

    Raises
    ------
    ArgumentError
        If there are not as many facts as axes, or not as many blocks as ranks.
    ShapeError
        If a block has fewer points than its neighbours' halo.

    Examples
    --------
    On one rank, which is its own neighbour:

    >>> import numpy as np, nbgrad as nb
    >>> from nbgrad import mpi
    >>> grid = mpi.Grid((4,), halo=1, periodic=True)
    >>> u = np.array([1.0, 2.0, 3.0, 4.0])[grid.slices]
    >>> grid.exchange(u)
    array([4., 1., 2., 3., 4., 1.])
    >>> nb.grad(lambda u: np.sum(grid.exchange(u) ** 2))(u)
    array([ 4.,  4.,  6., 16.])
    """

    def __init__(
        self,
        shape: Sequence[int],
        halo: int | Sequence[int] = 1,
        periodic: bool | Sequence[bool] = False,
        comm: Any = None,
        blocks: Sequence[int] | None = None,
    ) -> None:
        group = group_of(comm)
        self.comm = group.comm
        self.shape = _numbers(shape, "shape", None)
        axes = len(self.shape)
        self.halo = _numbers(halo, "halo", axes)
        self.periodic = tuple(map(bool, _numbers(periodic, "periodic", axes)))
        wanted = _numbers(0 if blocks is None else blocks, "blocks", axes)
        try:
            self.blocks = tuple(library().Compute_dims(group.size, list(wanted)))
        except library().Exception:
            self.blocks = ()
        if int(np.prod(self.blocks, dtype=np.int64)) != group.size or not self.blocks:
            message = f"blocks are {wanted}, but there are {group.size} ranks: their product must be that number."
            raise ArgumentError(message)
        self.place = tuple(map(int, np.unravel_index(group.rank, self.blocks)))
        starts = [[n * k // count for k in range(count + 1)] for n, count in zip(self.shape, self.blocks, strict=True)]
        self.slices = tuple([slice(start[k], start[k + 1]) for start, k in zip(starts, self.place, strict=True)])
        self.local = tuple([part.stop - part.start for part in self.slices])
        for axis, start in enumerate(starts):
            least = int(min(np.diff(start)))
            if least < self.halo[axis]:
                message = (
                    f"The {self.shape[axis]} points of axis {axis} make {self.blocks[axis]} blocks, of which one has "
                    f"{least}: fewer than the halo of {self.halo[axis]}. Give other blocks, or use fewer ranks."
                )
                raise ShapeError(message)

    def __repr__(self) -> str:
        return f"Grid({self.shape}, halo={self.halo}, periodic={self.periodic}, blocks={self.blocks})"

    def neighbour(self, axis: int, step: int) -> int | None:
        """The rank whose block comes `step` blocks after this one along an axis; None beyond an end.

        Parameters
        ----------
        axis, step : int

        Returns
        -------
        int or None

        Raises
        ------
        ArgumentError
            If there is no such axis.

        Examples
        --------
        >>> from nbgrad import mpi
        >>> mpi.Grid((4,), periodic=True, comm=None).neighbour(0, 0)
        0
        """
        if not 0 <= axis < len(self.shape):
            message = f"axis must be from 0 to {len(self.shape) - 1}, but got {axis!r}."
            raise ArgumentError(message)
        place = list(self.place)
        place[axis] += step
        if not self.periodic[axis] and not 0 <= place[axis] < self.blocks[axis]:
            return None
        place[axis] %= self.blocks[axis]
        return int(np.ravel_multi_index(place, self.blocks))

    def exchange(self, x: Any) -> Any:
        """A block with the neighbours' points around it, corners too.

        Parameters
        ----------
        x : array
            This rank's block, of shape `local`; further axes may follow.

        Returns
        -------
        array
            Of twice the halo more points along each axis.

        Raises
        ------
        ShapeError, DtypeError
            If it is no such block.

        Notes
        -----
        Two messages along each axis, one to each neighbour. The cotangent of a point is the sum of those of all its
        copies.

        Examples
        --------
        >>> import numpy as np
        >>> from nbgrad import mpi
        >>> grid = mpi.Grid((2,), halo=1)
        >>> grid.exchange(np.ones(grid.local)).shape == (grid.local[0] + 2,)
        True
        """
        node = given(x, "exchange")
        if node.shape[: len(self.local)] != self.local:
            message = f"exchange takes this rank's block, of shape {self.local}, but got one of shape {node.shape}."
            raise ShapeError(message)
        place, group = line(), group_of(self.comm)
        for axis, width in enumerate(self.halo):
            if not width:
                continue
            before, after = (self.neighbour(axis, step) for step in (-1, 1))
            size = node.shape[axis]
            if self.periodic[axis] and self.blocks[axis] == 1:
                low, high = _part(node, axis, size - width, width), _part(node, axis, 0, width)
            elif before is None and after is None:
                low = high = zeros((*node.shape[:axis], width, *node.shape[axis + 1 :]), node.dtype)
            else:
                low = _moved(_part(node, axis, size - width, width), after, before, group.number, place)
                high = _moved(_part(node, axis, 0, width), before, after, group.number, place)
            node = concatenate([low, node, high], axis)
        return returned(make("alias", (node,)), x)

    def gather(self, x: Any) -> Any:
        """The whole grid on all ranks.

        Parameters
        ----------
        x : array
            This rank's block, of shape `local`.

        Returns
        -------
        array
            Of the shape of the grid.

        Raises
        ------
        ShapeError, DtypeError
            If it is no such block.

        Examples
        --------
        >>> import numpy as np
        >>> from nbgrad import mpi
        >>> grid = mpi.Grid((3,))
        >>> grid.gather(np.arange(3.0)[grid.slices])
        array([0., 1., 2.])
        """
        node = given(x, "gather")
        if node.shape != self.local:
            message = f"gather takes this rank's block, of shape {self.local}, but got an array of shape {node.shape}."
            raise ShapeError(message)
        widths = [(part.start, n - part.stop) for part, n in zip(self.slices, self.shape, strict=True)]
        whole = returned(make("pad", (node,), (tuple(widths),)), x)
        return allreduce(whole, comm=self.comm)


def _moved(part: Node, dest: int | None, source: int | None, group: int, place: str) -> Node:
    """A part of a block sent to a neighbour, and what comes in its place from the other."""
    layout = (part.shape, part.dtype)
    to, back = (-1 if rank is None else rank for rank in (dest, source))
    return sent(Message("sendrecv", group, layout, layout, to=to, source=back, line=place), part)


def _part(node: Node, axis: int, start: int, width: int) -> Node:
    ranges = [(0, n, 1) for n in node.shape]
    ranges[axis] = (start, width, 1)
    return slice_axes(node, ranges)


def _numbers(value: Any, name: str, count: int | None) -> tuple[int, ...]:
    """One number for each axis; a single one for all.

    Raises
    ------
    ArgumentError
        If it is something else.
    """
    try:
        single = count is not None and np.ndim(value) == 0
        found = tuple([operator.index(n) for n in ([value] * (count or 0) if single else value)])
    except (TypeError, ValueError):
        found = (-1,)
    if not found or min(found) < 0 or (count is not None and len(found) != count):
        axes = "one for each axis" if count is None else f"one, or one for each of the {count} axes"
        message = f"{name} must be numbers of at least 0, {axes}, but got {value!r}."
        raise ArgumentError(message)
    return found
