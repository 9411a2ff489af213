"""Times of messages in compiled functions beside mpi4py's own: `mpiexec -n 2 python mpi_beside.py`.

In: the ranks that mpiexec starts. Out: a table, printed by rank 0; with `--scaling`, that of a wave equation whose grid
grows with the ranks, to be compared with that of one rank; with `--beside`, that of messages with work beside them.
Called by hand.

Each line is the median over rounds of the shortest time of a few; in each round, both do the same messages in turn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import nbgrad as nb
from nbgrad import mpi

WORLD = MPI.COMM_WORLD
OTHER = (WORLD.rank + 1) % WORLD.size
ROUNDS, TRIES = 21, 5


def shortest(call: Callable[[], Any], count: int) -> float:
    """Seconds of a call: the shortest of a few means over `count` calls."""
    times = []
    for _ in range(TRIES):
        WORLD.Barrier()
        start = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - start) / count)
    return WORLD.allreduce(min(times), MPI.MAX)


def pairs(length: int, count: int) -> dict[str, tuple[float, float]]:
    """Times of mpi4py and of compiled functions for arrays of a length; of long ones, into memory that is given."""
    x, given = np.ones(length), np.empty(length)
    place: dict[str, Any] = {"out": np.ones(length)} if length > 10_000 else {}

    def exchanged() -> None:
        WORLD.Sendrecv(x, OTHER, 0, given, OTHER)

    summed = nb.jit(mpi.allreduce)
    moved = nb.jit(lambda x: mpi.sendrecv(x, OTHER, OTHER))
    nothing = nb.jit(lambda x: -x)
    ways: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "allreduce": (lambda: WORLD.Allreduce(x, given), lambda: summed(x, **place)),
        "sendrecv": (exchanged, lambda: moved(x, **place)),
        "call of a compiled function": (lambda: np.negative(x, out=given), lambda: nothing(x, **place)),
    }
    found: dict[str, tuple[float, float]] = {}
    for name, (theirs, own) in ways.items():
        own()
        rounds = [(shortest(theirs, count), shortest(own, count)) for _ in range(ROUNDS if length < 1000 else 5)]
        found[name] = statistics.median(a for a, _ in rounds), statistics.median(b for _, b in rounds)
    return found


def wave(rows: int, columns: int, steps: int) -> float:
    """Seconds of the gradient of a wave equation, on a grid of so many rows for each rank."""
    grid = mpi.Grid((rows * WORLD.size, columns), 1, True, blocks=(WORLD.size, 1))
    speed, start = np.full(grid.local, 0.1), np.random.default_rng(WORLD.rank).normal(size=grid.local)

    def misfit(speed: Any) -> Any:
        def step(i: Any, both: Any) -> Any:
            u, before = both
            p = grid.exchange(u)
            spread = p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u
            return 2 * u - before + speed * spread, u

        return np.sum(nb.fori_loop(0, steps, step, (start, start))[0] ** 2)

    gradient = nb.jit(nb.grad(misfit))
    gradient(speed)
    return statistics.median(shortest(lambda: gradient(speed), 1) for _ in range(5))


def beside(length: int) -> tuple[float, float, float]:
    """Seconds of work on a block, after halos have come and beside them, by mpi4py; and of the work alone."""
    sent, got, block = np.ones(length), np.empty(length), np.ones((1000, 100))
    out = np.empty_like(block)

    def work() -> None:
        for _ in range(5):
            np.sin(block, out=out)

    def after() -> None:
        WORLD.Sendrecv(sent, OTHER, 0, got, OTHER)
        work()

    def together() -> None:
        requests = [WORLD.Irecv(got, OTHER), WORLD.Isend(sent, OTHER)]
        work()
        MPI.Request.Waitall(requests)

    rounds = [[shortest(call, 5) for call in (after, together, work)] for _ in range(9)]
    first, second, third = (statistics.median(column) for column in zip(*rounds, strict=True))
    return first, second, third


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--beside", action="store_true")
    lines: list[str] = []
    asked = parser.parse_args()
    if asked.beside:
        for length in (128, 1024, 8192, 65_536, 1 << 20):
            after, together, alone = (1e6 * seconds for seconds in beside(length))
            lines.append(f"{length:8} float64: work {alone:.0f} us, after {after:.0f}, beside {together:.0f}")
    elif asked.scaling:
        lines.append(f"wave equation, {WORLD.size} ranks: {1e3 * wave(512, 512, 50):.1f} ms")
    else:
        for length, count in ((8, 2000), (1000, 500), (4_000_000, 2)):
            for name, (theirs, own) in pairs(length, count).items():
                line = f"{name:28} {length:>8} float64: mpi4py {1e6 * theirs:10.2f}, nbgrad {1e6 * own:10.2f} us"
                lines.append(f"{line} ({1e6 * (own - theirs):+.2f} us, {theirs / own:.2f} of its speed)")
    if WORLD.rank == 0:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
