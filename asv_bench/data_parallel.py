"""A step of training on several processes beside the same step on one, and a sum of gradients with work beside it.

In: the ranks of `mpiexec -n 2 python data_parallel.py`. Out: times in milliseconds, which one call of ten is below, of
a step without other ranks ("alone", on all ranks side by side), of a step that sums gradients, of mpi4py's sum of as
many bytes, and of such a sum before products of matrices, and begun before them and waited for after them. Called by
hand.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from statistics import quantiles

os.environ.setdefault("NBGRAD_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from mpi4py import MPI

import nbgrad as nb
from nbgrad import nn
from nbgrad.communication import init

WORLD = MPI.COMM_WORLD


def times(calls: dict[str, Callable[[], object]], rounds: int = 40) -> dict[str, float]:
    """A time of each call that one of ten is below; the calls are made in turn, and all processes begin at once."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            WORLD.Barrier()
            start = time.perf_counter()
            call()
            found[name].append(time.perf_counter() - start)
    return {name: 1e3 * quantiles(some, n=10)[0] for name, some in found.items()}


def step_of(sizes: tuple[int, ...], group: object) -> nn.Cell:
    """A step of a network of dense layers."""
    nb.set_seed(0)
    layers = [nn.Dense(a, b, activation="tanh") for a, b in itertools.pairwise(sizes)]
    net = nn.WithLossCell(nn.SequentialCell(*layers), nn.MSELoss())
    return nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 1e-3), communicator=group).set_train()


def beside_others(sizes: tuple[int, ...], rows: int) -> None:
    """Print the times of a network."""
    random = np.random.default_rng(WORLD.rank)
    x, y = (nb.Tensor(random.normal(size=(rows, n)).astype(np.float32)) for n in (sizes[0], sizes[-1]))
    alone, together = step_of(sizes, MPI.COMM_SELF), step_of(sizes, MPI.COMM_WORLD)
    flat = np.ones(sum(p.size for p in together.trainable_params()), np.float32)
    total = np.empty_like(flat)
    a = np.ones((400, 400), np.float32)

    def work() -> None:
        for _ in range(4):
            np.dot(a, a)

    def in_turn() -> None:
        WORLD.Allreduce(flat, total)
        work()

    def beside() -> None:
        request = WORLD.Iallreduce(flat, total)
        work()
        request.Wait()

    found = times(
        {
            "step alone": lambda: alone(x, y).asnumpy(),
            "step together": lambda: together(x, y).asnumpy(),
            "mpi4py's sum": lambda: WORLD.Allreduce(flat, total),
            "work": work,
            "sum, work": in_turn,
            "sum beside work": beside,
        }
    )
    if WORLD.rank == 0:
        shown = ", ".join(f"{name} {value:.3g}" for name, value in found.items())
        print(f"{'-'.join(map(str, sizes))}, {flat.nbytes} bytes of gradients: {shown}", flush=True)


if __name__ == "__main__":
    init()
    for sizes, rows in (((8, 16, 16, 1), 32), ((784, 256, 128, 10), 128), ((1024, 1024, 1024, 10), 128)):
        beside_others(sizes, rows)
