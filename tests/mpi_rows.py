"""Messages in rows: what each function gives on each rank, in plain NumPy from the arrays of all ranks.

In: a rank and the number of ranks. Out: rows. Called by mpi_ranks.py, on each rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbgrad import mpi


@dataclass
class Row:
    """A function of this rank's array; its value on a rank, given the arrays of all; the shape of a rank's array.

    `slope` gives the tangent from the arrays and tangents of all ranks; by default the function is linear.
    """

    name: str
    function: Callable[[Any], Any]
    expected: Callable[[Sequence[np.ndarray], int], Any]
    shape: Callable[[int], tuple[int, ...]] = lambda rank: (2, 3)
    slope: Callable[[Sequence[np.ndarray], Sequence[np.ndarray], int], Any] | None = None
    dtypes: str = "d"

    def moved(self, xs: Sequence[np.ndarray], vs: Sequence[np.ndarray], rank: int) -> Any:
        """The tangent on a rank."""
        return self.expected(vs, rank) if self.slope is None else self.slope(xs, vs, rank)


def _winner(xs: Sequence[np.ndarray], vs: Sequence[np.ndarray], pick: Any) -> np.ndarray:
    return np.take_along_axis(np.array(vs), pick(np.array(xs), axis=0)[None], 0)[0]


def _product_slope(xs: Sequence[np.ndarray], vs: Sequence[np.ndarray], count: int) -> np.ndarray:
    every = range(count)
    return sum((vs[k] * np.prod([xs[j] for j in every if j != k], axis=0) for k in every), np.zeros_like(xs[0]))


def rows(rank: int, size: int, comm: Any) -> list[Row]:
    """All rows; `comm` is a communicator of the ranks of this one's parity."""
    root, last = size // 2, size - 1
    after, before = (rank + 1) % size, (rank - 1) % size
    counts = [k % 3 for k in range(size)]
    total = sum(counts)
    starts = np.cumsum([0, *counts])
    sends = [[(p + 2 * q) % 3 for q in range(size)] for p in range(size)]
    received = [row[rank] for row in sends]

    def chained(x: Any) -> Any:
        mpi.send(x * 2, rank + 1 if rank < last else None, tag=7)
        return mpi.recv(x, rank - 1 if rank else None, tag=7)

    def under_way(x: Any) -> Any:
        there, here = mpi.irecv(x, before, tag=3), mpi.isend(x * 3, after, tag=3)
        mpi.wait(here)
        return here and there.wait()

    def of_all(xs: Sequence[np.ndarray], r: int) -> np.ndarray:
        parts = [np.split(xs[p], np.cumsum(sends[p])[:-1])[r] for p in range(size)]
        return np.concatenate(parts)

    def largest_before(xs: Sequence[np.ndarray], r: int) -> np.ndarray:
        return np.max(xs[: r + 1], axis=0)

    grid = mpi.Grid((2 * size + 1, 5), halo=(1, 2), periodic=(True, False), blocks=(size, 1))
    bounds = [(2 * size + 1) * k // size for k in range(size + 1)]

    def halos(xs: Sequence[np.ndarray], r: int) -> np.ndarray:
        whole = np.pad(np.pad(np.concatenate(xs), ((1, 1), (0, 0)), mode="wrap"), ((0, 0), (2, 2)))
        return whole[bounds[r] : bounds[r + 1] + 2]

    return [
        Row("allreduce", mpi.allreduce, lambda xs, r: sum(xs), dtypes="dfDF"),
        Row("allreduce of numbers", mpi.allreduce, lambda xs, r: sum(xs), lambda r: ()),
        Row("allreduce of nothing", mpi.allreduce, lambda xs, r: sum(xs), lambda r: (0, 3)),
        Row("allreduce among some", lambda x: mpi.allreduce(x, comm=comm), lambda xs, r: sum(xs[r % 2 :: 2])),
        Row(
            "allreduce max",
            lambda x: mpi.allreduce(x, "max"),
            lambda xs, r: np.max(xs, axis=0),
            slope=lambda xs, vs, r: _winner(xs, vs, np.argmax),
            dtypes="df",
        ),
        Row(
            "allreduce min",
            lambda x: mpi.allreduce(x, op="min"),
            lambda xs, r: np.min(xs, axis=0),
            slope=lambda xs, vs, r: _winner(xs, vs, np.argmin),
        ),
        Row(
            "allreduce prod",
            lambda x: mpi.allreduce(x, "prod"),
            lambda xs, r: np.prod(xs, axis=0),
            slope=lambda xs, vs, r: _product_slope(xs, vs, size),
        ),
        Row("reduce", lambda x: mpi.reduce(x, root=root), lambda xs, r: sum(xs) * (r == root), dtypes="dD"),
        Row(
            "reduce max",
            lambda x: mpi.reduce(x, "max", root),
            lambda xs, r: np.max(xs, axis=0) * (r == root),
            slope=lambda xs, vs, r: _winner(xs, vs, np.argmax) * (r == root),
        ),
        Row("bcast", lambda x: mpi.bcast(x, root), lambda xs, r: xs[root], dtypes="dfD"),
        Row(
            "gather",
            lambda x: mpi.gather(x, root),
            lambda xs, r: np.array(xs) if r == root else np.zeros((0, 2, 3)),
            dtypes="dD",
        ),
        Row(
            "gather of unequal parts",
            lambda x: mpi.gather(x, root, counts),
            lambda xs, r: np.concatenate(xs) if r == root else np.zeros((0, 2)),
            lambda r: (counts[r], 2),
        ),
        Row("allgather", mpi.allgather, lambda xs, r: np.array(xs), dtypes="df"),
        Row(
            "allgather of unequal parts",
            lambda x: mpi.allgather(x, counts),
            lambda xs, r: np.concatenate(xs),
            lambda r: (counts[r], 2),
            dtypes="dD",
        ),
        Row("scatter", lambda x: mpi.scatter(x, root), lambda xs, r: xs[root][r], lambda r: (size, 2), dtypes="dD"),
        Row(
            "scatter of unequal parts",
            lambda x: mpi.scatter(x, root, counts),
            lambda xs, r: xs[root][starts[r] : starts[r + 1]],
            lambda r: (total if r == root else 1, 2),
        ),
        Row("alltoall", mpi.alltoall, lambda xs, r: np.array([x[r] for x in xs]), lambda r: (size, 2), dtypes="df"),
        Row(
            "alltoall of unequal parts",
            lambda x: mpi.alltoall(x, sends[rank], received),
            of_all,
            lambda r: (sum(sends[r]), 2),
        ),
        Row(
            "reduce_scatter",
            mpi.reduce_scatter,
            lambda xs, r: sum(xs)[r],
            lambda r: (size, 2),
            dtypes="dF",
        ),
        Row(
            "reduce_scatter of unequal parts",
            lambda x: mpi.reduce_scatter(x, counts=counts),
            lambda xs, r: sum(xs)[starts[r] : starts[r + 1]],
            lambda r: (total, 2),
        ),
        Row(
            "reduce_scatter max",
            lambda x: mpi.reduce_scatter(x, "max", counts),
            lambda xs, r: np.max(xs, axis=0)[starts[r] : starts[r + 1]],
            lambda r: (total, 2),
            slope=lambda xs, vs, r: _winner(xs, vs, np.argmax)[starts[r] : starts[r + 1]],
        ),
        Row("scan", mpi.scan, lambda xs, r: sum(xs[: r + 1]), dtypes="dF"),
        Row(
            "scan max",
            lambda x: mpi.scan(x, "max"),
            largest_before,
            slope=lambda xs, vs, r: _winner(xs[: r + 1], vs[: r + 1], np.argmax),
        ),
        Row(
            "scan prod",
            lambda x: mpi.scan(x, "prod"),
            lambda xs, r: np.prod(xs[: r + 1], axis=0),
            slope=lambda xs, vs, r: _product_slope(xs, vs, r + 1),
        ),
        Row("sendrecv", lambda x: mpi.sendrecv(x, after, before), lambda xs, r: xs[(r - 1) % size], dtypes="dfD"),
        Row(
            "sendrecv of another shape",
            lambda x: mpi.sendrecv(x, after, before, like=np.empty(1 + before)),
            lambda xs, r: xs[(r - 1) % size],
            lambda r: (1 + r,),
        ),
        Row("send and recv", chained, lambda xs, r: xs[r - 1] * 2 if r else np.zeros((2, 3)), dtypes="dD"),
        Row("isend, irecv and wait", under_way, lambda xs, r: xs[(r - 1) % size] * 3, dtypes="df"),
        Row("halos", grid.exchange, halos, lambda r: (bounds[r + 1] - bounds[r], 5)),
        Row("whole grids", grid.gather, lambda xs, r: np.concatenate(xs), lambda r: (bounds[r + 1] - bounds[r], 5)),
    ]
