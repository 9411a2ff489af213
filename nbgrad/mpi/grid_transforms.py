"""Fourier transforms of grids of which each rank has a block: `fftn`, `rfftn` and their inverses.

In: this rank's block of a grid, and the grid. Out: this rank's block of the frequencies, and the way back. Called by
users.

Axes that lie on one rank are transformed there; split ones are made whole by transposition (transpositions.py), as in
the slab and pencil decompositions of FFTW, P3DFFT and mpi4py-fft. Local transforms and messages have derivatives, so
that these have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import DtypeError, ShapeError
from ..functions.analysis.fft_functions import checked_norm
from ..graph.complex_numbers import is_complex, pair
from ..graph.ir import Node, zeros
from ..record.axes_and_dtypes import inexact
from .arrays_given import given, returned
from .grid import Grid
from .transpositions import Plan


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
    plan = Plan("fftn", grid, False, transposed)
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
    plan = Plan("ifftn", grid, False, transposed)
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
    plan = Plan("rfftn", grid, True, transposed)
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
    plan = Plan("irfftn", grid, True, transposed)
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
    return Plan("spectrum", grid, real, transposed).spectrum()


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
