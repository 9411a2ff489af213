"""A model of the cost of messages, fitted on this machine, and its times for three workloads on up to 1,000 ranks.

In: the ranks of `mpiexec -n 2 python mpi_model.py`. Out: the fitted numbers, and a table, printed by rank 0. Called by
hand. design/0092 says what the model is, and how its numbers are to be read.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("NBGRAD_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from mpi4py import MPI

import nbgrad as nb
from nbgrad import mpi, nn
from nbgrad.communication import init

WORLD = MPI.COMM_WORLD
OTHER = (WORLD.rank + 1) % WORLD.size
SIZES = (8, 512, 8192, 131072, 1 << 20, 1 << 23, 1 << 25)
"""Bytes of messages."""


@dataclass
class Network:
    """Seconds of a message without bytes, of a byte, and of a byte that is added."""

    name: str
    latency: float
    byte: float
    summed: float

    def exchange(self, surface: float, faces: int) -> float:
        """One exchange of halos: a message for each face, one after the other."""
        return faces * (self.latency + surface * self.byte)

    def allreduce(self, size: float, ranks: int) -> float:
        """A sum of so many bytes over all ranks: halving and doubling, there and back."""
        rounds = math.ceil(math.log2(ranks)) if ranks > 1 else 0
        return 2 * rounds * self.latency + 2 * (1 - 1 / ranks) * size * self.summed


def least(call: Callable[[], Any], tries: int, count: int = 1) -> float:
    """Seconds of a call on the slowest rank: the least of several means."""
    found = []
    call()
    for _ in range(tries):
        WORLD.Barrier()
        start = time.perf_counter()
        for _ in range(count):
            call()
        found.append((time.perf_counter() - start) / count)
    return WORLD.allreduce(min(found), MPI.MAX)


def fitted(times: dict[int, float]) -> tuple[float, float]:
    """Latency and seconds of a byte, by least squares of relative errors."""
    sizes = np.array(list(times), float)
    seconds = np.array(list(times.values()))
    rows = np.column_stack([np.ones_like(sizes), sizes]) / seconds[:, None]
    latency, byte = np.linalg.lstsq(rows, np.ones_like(sizes), rcond=None)[0]
    return float(latency), float(byte)


def messages(way: Callable[[Any], Any]) -> dict[int, float]:
    """Times of a compiled function of arrays of all sizes, which are given their memory."""
    compiled = nb.jit(way)
    found = {}
    for size in SIZES:
        x, out = np.ones(size // 8), np.empty(size // 8)
        found[size] = least(lambda x=x, out=out: compiled(x, out=out), 9, 200 if size < 1 << 16 else 3)
    return found


def of_wave(n: int, steps: int) -> float:
    """Seconds of a point and a step of the gradient of a wave equation, without other ranks."""
    grid = mpi.Grid((n, n), comm=MPI.COMM_SELF, periodic=True)

    def misfit(speed: Any, start: Any) -> Any:
        def step(i: Any, both: Any) -> Any:
            u, before = both
            p = grid.exchange(u)
            return 2 * u - before + speed * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u), u

        return np.sum(nb.fori_loop(0, steps, step, (start, start))[0] ** 2)

    gradient = nb.jit(nb.grad(misfit))
    start = np.random.default_rng(0).normal(size=(n, n))
    return least(lambda: gradient(np.full((n, n), 0.1), start), 5) / n**2 / steps


def of_product(n: int) -> float:
    """Seconds of a point and an iteration of conjugate gradients, without other ranks."""

    def iteration(x: Any, r: Any, d: Any) -> Any:
        p = np.pad(d, 1)
        q = 4.1 * d - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]
        square = np.sum(r * r)
        step = square / np.sum(d * q)
        left = r - step * q
        return x + step * d, left, left + np.sum(left * left) / square * d

    compiled, r = nb.jit(iteration), np.random.default_rng(0).normal(size=(n, n))
    return least(lambda: compiled(r, r, r), 9) / n**2


def of_training(rows: int) -> tuple[float, int]:
    """Seconds of a step of training, and bytes of its gradients."""
    nb.set_seed(0)
    layers = [nn.Dense(1024, 1024, activation="tanh") for _ in range(2)]
    net = nn.WithLossCell(nn.SequentialCell(*layers, nn.Dense(1024, 10)), nn.MSELoss())
    step: Any = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 1e-3)).set_train()
    x, y = (nb.Tensor(np.ones((rows, n), np.float32)) for n in (1024, 10))
    return least(lambda: step(x, y).asnumpy(), 9), sum(p.nbytes for p in net.trainable_params())


def of_files() -> tuple[float, float]:
    """Seconds of a checkpoint without bytes, and of a byte of all ranks together."""
    with tempfile.TemporaryDirectory() as own:
        folder = WORLD.bcast(own)
        found = {}
        for size in (64, 1 << 26):
            grid = mpi.Grid((WORLD.size * size // 8,), halo=0)
            block = np.ones(grid.local)
            save: Callable[[], Any] = lambda block=block, grid=grid: mpi.save_checkpoint(  # noqa: E731
                folder, blocks={"u": block}, grid=grid
            )
            found[size * WORLD.size] = least(save, 3)
        WORLD.Barrier()
    (few, first), (many, second) = found.items()
    return first, (second - first) / (many - few)


def main() -> None:
    """Print the fit and the table."""
    init()
    sent = messages(lambda x: mpi.sendrecv(x, OTHER, OTHER))
    summed = messages(mpi.allreduce)
    here = Network("this machine", *fitted(sent), fitted(summed)[1])
    point = of_wave(512, 50)
    step, size = of_training(128)
    product = of_product(512)
    start, byte = of_files()
    if WORLD.rank:
        return
    print(f"sendrecv: {here.latency * 1e6:.2f} us + {1e-9 / here.byte:.2f} GB/s a message")
    for name, times, model in (
        ("sendrecv", sent, lambda n: here.latency + n * here.byte),
        ("allreduce", summed, lambda n: here.allreduce(n, WORLD.size)),
    ):
        print(name, *(f"{n} B: {1e6 * t:.1f} us, model {1e6 * model(n):.1f};" for n, t in times.items()))
    print(f"sums: {1e-9 / here.summed:.2f} GB/s; wave: {point * 1e9:.2f} ns a point and step of the gradient;")
    print(f"CG: {product * 1e9:.2f} ns a point and iteration; training: {step * 1e3:.1f} ms, {size} bytes")
    print(f"checkpoint: {start * 1e3:.1f} ms + {1e-9 / byte:.2f} GB/s of all ranks")
    networks = (here, Network("assumed: 2 us, 10 GB/s", 2e-6, 1e-10, 1e-10))
    for network in networks:
        print(f"\n{network.name}: part of the time that is work, by ranks")
        for ranks in (2, 16, 128, 1000):
            side = 4096 / math.sqrt(ranks)
            work = point * side**2
            strong = work / (work + 2 * network.exchange(8 * side, 4))
            weak = step / (step + network.allreduce(size, ranks))
            # Conjugate gradients of the same grid: an exchange and two sums of a number for each product.
            once = product * side**2
            solve = once / (once + network.exchange(8 * side, 4) + 2 * network.allreduce(8, ranks))
            field = start + 8 * 512**2 * ranks * byte
            print(
                f"{ranks:5d}: wave 4096 x 4096 {strong:.2f}; training {weak:.2f}; CG 4096 x 4096 {solve:.2f}; "
                f"checkpoint of 2 MB a rank {field:.2f} s"
            )


if __name__ == "__main__":
    main()
