"""Times of what works on grids over ranks, beside the same by hand: `mpiexec -n 2 python mpi_decomposed.py`.

In: the ranks that mpiexec starts. Out: a table, printed by rank 0: Fourier transforms beside NumPy's with mpi4py's
messages, conjugate gradients beside those in NumPy, and a step of a stencil with its halos exchanged before the work
and beside it. Called by hand.

Each time is the median over rounds of the shortest of a few, the longest of all ranks.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI
from mpi_beside import shortest

import nbgrad as nb
from nbgrad import mpi

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size
ROUNDS = 7


def times(*calls: Callable[[], Any], count: int = 1) -> list[float]:
    """Milliseconds of calls, which take turns."""
    for call in calls:
        call()
    rounds = [[shortest(call, count) for call in calls] for _ in range(ROUNDS)]
    return [1e3 * statistics.median(column) for column in zip(*rounds, strict=True)]


def fourier(n: int) -> str:
    """Transforms of a complex square."""
    grid = mpi.Grid((n, n), 0, blocks=(SIZE, 1))
    z = np.random.default_rng(RANK).normal(size=grid.local) + 0j
    rows = grid.local[0]
    got = np.empty((SIZE, rows, rows), complex)

    def by_hand() -> np.ndarray:
        lines = np.fft.fft(z, axis=1).reshape(rows, SIZE, rows)
        WORLD.Alltoall(np.ascontiguousarray(lines.transpose(1, 0, 2)), got)
        return np.fft.fft(got.reshape(n, rows), axis=0)

    transposed = nb.jit(lambda z: mpi.fftn(z, grid, transposed=True))
    back = nb.jit(lambda z: mpi.fftn(z, grid))
    slope = nb.jit(nb.grad(lambda z: np.sum(np.abs(mpi.fftn(z, grid, transposed=True)) ** 2)))
    assert np.allclose(transposed(z), by_hand())
    hand, one, two, gradient = times(by_hand, lambda: transposed(z), lambda: back(z), lambda: slope(z))
    return f"fftn {n} x {n}: by hand {hand:.2f} ms, transposed {one:.2f}, in place {two:.2f}, gradient {gradient:.2f}"


def gradients(n: int) -> str:
    """Conjugate gradients for a Poisson equation."""
    grid = mpi.Grid((n, n), 1, blocks=(SIZE, 1))
    b = np.random.default_rng(RANK).normal(size=grid.local)
    padded = np.zeros((grid.local[0] + 2, n + 2))
    up, down = (MPI.PROC_NULL if r is None else r for r in (grid.neighbour(0, -1), grid.neighbour(0, 1)))
    turns = 0

    def stencil(p: Any) -> Any:
        return 4.1 * p[1:-1, 1:-1] - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]

    def by_hand() -> np.ndarray:
        nonlocal turns
        x, rest, way = np.zeros_like(b), b.copy(), b.copy()
        square = WORLD.allreduce(np.sum(rest * rest))
        limit, turns = 1e-8 * np.sqrt(square), 0
        while np.sqrt(square) > limit:
            padded[1:-1, 1:-1] = way
            WORLD.Sendrecv(padded[-2], down, 0, padded[0], up)
            WORLD.Sendrecv(padded[1], up, 0, padded[-1], down)
            product = stencil(padded)
            step = square / WORLD.allreduce(np.sum(way * product))
            x, rest = x + step * way, rest - step * product
            after = WORLD.allreduce(np.sum(rest * rest))
            way, square = rest + (after / square) * way, after
            turns += 1
        return x

    def solved(b: Any) -> Any:
        return mpi.linear_solve(lambda v: stencil(grid.exchange(v)), b, rtol=1e-8)

    own, slope = nb.jit(solved), nb.jit(nb.grad(lambda b: np.sum(solved(b) ** 2)))
    assert np.allclose(own(b), by_hand(), atol=1e-6)
    hand, found, gradient = times(by_hand, lambda: own(b), lambda: slope(b))
    return f"cg {n} x {n}, {turns} turns: by hand {hand:.1f} ms, linear_solve {found:.1f}, its gradient {gradient:.1f}"


def beside(rows: int, columns: int) -> str:
    """A step of a stencil: its halos exchanged before all work, and begun before the work on inner points."""
    grid = mpi.Grid((rows * SIZE, columns), (1, 0), True, blocks=(SIZE, 1))
    u = np.random.default_rng(RANK).normal(size=grid.local)
    up, down = grid.neighbour(0, -1), grid.neighbour(0, 1)

    def bent(p: Any) -> Any:
        return np.sin(p[1:-1]) * np.cos(p[2:] + p[:-2])

    def before(u: Any) -> Any:
        return bent(grid.exchange(u))

    def together(u: Any) -> Any:
        requests = [
            mpi.irecv(u[:1], up, 0),
            mpi.irecv(u[:1], down, 1),
            mpi.isend(u[-1:], down, 0),
            mpi.isend(u[:1], up, 1),
        ]
        inner = bent(u)
        low, high, _, _ = [mpi.wait(request) for request in requests]
        first, last = bent(np.concatenate([low, u[:2]])), bent(np.concatenate([u[-2:], high]))
        return np.concatenate([first, inner, last])

    ways = [nb.jit(way) for way in (before, together, bent)]
    assert np.allclose(ways[0](u), ways[1](u))
    one, two, alone = times(*[lambda way=way: way(u) for way in ways], count=5)
    return f"stencil {rows} x {columns}: work {alone:.3f} ms, halos before it {one:.3f}, beside it {two:.3f}"


if __name__ == "__main__":
    table = [fourier(256), fourier(1024), gradients(128), gradients(512)]
    table += [beside(*shape) for shape in ((16, 1024), (256, 1024), (16, 65_536))]
    if RANK == 0:
        print("\n".join(table))
