"""Checks of messages on one rank of several: `mpiexec -n 3 python -m tests.mpi_ranks rows`.

In: the name of a check. Out: nothing, or an exception, which ends all ranks. Called by test_mpi.py.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import nbgrad as nb
from nbgrad import mpi

from . import mpi_decomposed
from .mpi_rows import Row, rows

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size
AFTER, BEFORE = (RANK + 1) % SIZE, (RANK - 1) % SIZE


def drawn(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray:
    """Numbers for this rank that lie in memory with gaps, in another order."""
    random = np.random.default_rng([seed, RANK])
    values = random.normal(size=(*shape[::-1], 2))
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.normal(size=values.shape)
    return values.astype(dtype)[..., 0].T


def close(found: Any, expected: Any, row: str, what: str, dtype: Any = "d") -> None:
    """Raise if two arrays differ by more than rounding."""
    tolerance = 2e-5 if np.dtype(dtype).itemsize in (4, 8) and np.dtype(dtype).char in "fF" else 1e-12
    assert np.shape(found) == np.shape(expected), (RANK, row, what, np.shape(found), np.shape(expected))
    difference = np.abs(np.asarray(found) - np.asarray(expected))
    assert (difference <= tolerance * (1 + np.abs(expected))).all(), (RANK, row, what, found, expected)


def inner(a: Any, b: Any) -> float:
    """The real inner product of all ranks' arrays."""
    return WORLD.allreduce(float(np.sum(np.real(np.conj(a) * b))))


def check_row(row: Row, dtype: str) -> None:
    """Value, tangent, cotangent by the inner product of both, and second order, as they are and compiled."""
    x, v = (drawn(row.shape(RANK), dtype, seed) for seed in (1, 2))
    xs, vs = WORLD.allgather(x), WORLD.allgather(v)
    f = row.function
    value, moved = row.expected(xs, RANK), row.moved(xs, vs, RANK)
    w = drawn(np.shape(value), dtype, 3)
    assert type(f(x)) is (np.ndarray if np.ndim(value) else np.dtype(dtype).type), row.name
    close(f(x), value, row.name, "value", dtype)

    def all_of(x: Any, v: Any, w: Any) -> tuple[Any, ...]:
        out, pull = nb.vjp(f, x)
        return out, nb.jvp(f, (x,), (v,))[1], pull(w)[0]

    ways = [all_of, nb.jit(all_of)] if dtype in "dD" and SIZE < 3 else [nb.jit(all_of)]
    for way in ways:
        out, tangent, back = way(x, v, w)
        close(out, value, row.name, "recorded", dtype)
        close(tangent, moved, row.name, "tangent", dtype)
        close(inner(w, tangent), inner(back, v), row.name, "cotangent", dtype)
    if dtype == "d" and row.slope is None and SIZE < 3:

        def loss(x: Any) -> Any:
            return np.sum(f(x**3) * w)

        close(nb.jit(lambda x: nb.hvp(loss, x, v))(x), 6 * x * v * nb.vjp(f, x)[1](w)[0], row.name, "second order")


def check_rows() -> None:
    """All rows."""
    comm = WORLD.Split(RANK % 2, RANK)
    for row in rows(RANK, SIZE, comm):
        # Each rank takes processor time while it waits for the others: of three and more, one dtype is enough.
        for dtype in row.dtypes if SIZE < 3 else row.dtypes[0]:
            check_row(row, dtype)
    numbers = np.arange(4) + RANK
    for op, of in (("sum", np.sum), ("max", np.max), ("min", np.min), ("prod", np.prod)):
        every = [np.arange(4) + k for k in range(SIZE)]
        close(nb.jit(lambda x, op=op: mpi.allreduce(x, op))(numbers), of(every, axis=0), op, "of integers")
        close(mpi.scan(numbers, op), of(every[: RANK + 1], axis=0), op, "of integers before")


def check_programs() -> None:
    """Loops, batches, Jacobians, ranks that do different things, shared parameters, and second order of these."""
    x = drawn((3,), "d", 4)
    v = drawn((3,), "d", 5)

    def ring(u: Any) -> Any:
        return u + 0.1 * mpi.sendrecv(np.sin(u), AFTER, BEFORE)

    def one_way(u: Any) -> Any:
        # Ranks do different things, and their messages have no result on one of them.
        if RANK == 0:
            mpi.send(u**2, SIZE - 1) if SIZE > 1 else None
            return u * 1.5
        return np.sin(u) + (mpi.recv(u, 0) if RANK == SIZE - 1 else 0.0)

    for name, step in (("ring", ring), ("one way", one_way)):

        def unrolled(u: Any, step: Any = step) -> Any:
            for _ in range(4):
                u = step(u)
            return np.sum(u**2)

        def rolled(u: Any, step: Any = step) -> Any:
            return np.sum(nb.fori_loop(0, 4, lambda i, u: step(u), u) ** 2)

        expected = nb.value_and_grad(unrolled)(x)
        curved = nb.hvp(unrolled, x, v)
        moved = WORLD.allreduce(float(nb.jvp(unrolled, x, v)[1]))
        close(inner(expected[1], v), moved, name, "gradient by tangents")
        h = 1e-6
        slopes = [nb.grad(unrolled)(x + k * h * v) for k in (-1, 1)]
        differences = (slopes[1] - slopes[0]) / (2 * h)
        assert np.abs(differences / curved - 1).max() < 1e-6, (name, differences, curved)
        for way in (unrolled, rolled):
            for made in (lambda f: f, nb.jit):
                found = made(nb.value_and_grad(way))(x)
                close(found[0], expected[0], name, "value")
                close(found[1], expected[1], name, "gradient")
            close(nb.jit(lambda u, way=way: nb.hvp(way, u, v))(x), curved, name, "second order")
        out, pull = nb.vjp(lambda u, step=step: nb.fori_loop(0, 4, lambda i, u: step(u), u), x)
        close(pull(2 * out)[0], expected[1], name, "pullback")
        many = nb.jit(nb.grad(lambda u, f=unrolled: np.sum(nb.vmap(f)(u))))(np.stack([x, x + 1]))
        close(many[0], expected[1], name, "batch")
        jacobians = [made(lambda u, s=step: s(s(u)))(x) for made in (nb.jacrev, nb.jacfwd)]
        by_rank = [np.array(WORLD.allreduce(np.array(j))) for j in jacobians]
        close(by_rank[0], by_rank[1], name, "Jacobians summed over ranks")

    long = nb.jit(nb.grad(lambda u: np.sum(_repeated(ring, u, 40) ** 2)))(x)
    close(long, nb.jit(nb.grad(lambda u: np.sum(nb.fori_loop(0, 40, lambda i, u: ring(u), u) ** 2)))(x), "ring", "long")

    close(nb.jit(lambda u: nb.jit(ring)(u) * 2)(x), ring(x) * 2, "ring", "nested jit")

    # A value that one rank uses and the others do not.
    def use(u: Any) -> Any:
        given = mpi.bcast(u, 0)
        return np.sum(given * u) if RANK == SIZE - 1 else np.sum(u)

    used = nb.jit(nb.grad(use))(x)
    other = WORLD.allgather(x)
    expected = np.zeros(3) if RANK == SIZE - 1 else np.ones(3)
    expected = expected + (other[0] if RANK == SIZE - 1 else 0) + (other[-1] if RANK == 0 else 0)
    close(used, expected, "bcast", "used on one rank")

    # Shared parameters: the gradient of the sum of all ranks' losses, the same on all.
    w = np.array([0.5, -1.0, 2.0])

    def loss(w: Any) -> Any:
        shared = mpi.replicated(w)
        return np.sum((shared - x) ** 2 * shared)

    every = WORLD.allgather(x)
    whole = sum(3 * w**2 - 4 * w * each + each**2 for each in every)
    for made in (lambda f: f, nb.jit):
        close(made(nb.grad(loss))(w), whole, "replicated", "gradient")
    close(nb.hvp(loss, w, v * 0 + 1), sum(6 * w - 4 * each for each in every), "replicated", "second order")
    close(nb.grad(lambda u: mpi.reduce(mpi.dot(u, u) / SIZE))(x), 2 * x, "dot", "reduced to one rank")
    close(mpi.norm(x), np.sqrt(inner(x, x)), "norm", "value")
    close(nb.grad(mpi.norm)(np.zeros(2)), np.zeros(2), "norm", "at zero")

    weight = nb.Parameter(nb.Tensor(w), name="w")
    of_weight = nb.jit(nb.value_and_grad(lambda: np.sum((mpi.replicated(weight) - x) ** 2), None, [weight]))
    close(of_weight()[1][0], sum(2 * (w - each) for each in every), "replicated", "Parameter")
    mpi.barrier()


def _repeated(step: Callable[[Any], Any], u: Any, turns: int) -> Any:
    for _ in range(turns):
        u = step(u)
    return u


def check_wave() -> None:
    """The gradient of a wave equation's misfit by its speeds equals that of one rank alone."""
    shape, steps = (12, 10), 12
    random = np.random.default_rng(6)
    speed, start, seen = (random.uniform(0.1, 0.4, shape) for _ in range(3))

    def laplacian(p: Any) -> Any:
        return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * p[1:-1, 1:-1]

    def misfit(padded: Callable[[Any], Any], speed: Any, start: Any, seen: Any) -> Any:
        def step(i: Any, both: Any) -> Any:
            u, before = both
            return 2 * u - before + speed * laplacian(padded(u)), u

        u, _ = nb.fori_loop(0, steps, step, (start, start))
        return np.sum((u - seen) ** 2)

    def alone(u: Any) -> Any:
        u = np.concatenate([u[-1:], u, u[:1]])
        edge = np.zeros((u.shape[0], 1))
        return np.concatenate([edge, u, edge], axis=1)

    expected = nb.jit(nb.value_and_grad(lambda c: misfit(alone, c, start, seen)))(speed)
    grid = mpi.Grid(shape, 1, (True, False))
    part = grid.slices
    found = nb.jit(nb.value_and_grad(lambda c: misfit(grid.exchange, c, start[part], seen[part])))(speed[part])
    close(WORLD.allreduce(float(found[0])), expected[0], "wave", "misfit")
    close(found[1], expected[1][part], "wave", "gradient")


def check_explained() -> None:
    """However long the first call takes on a rank, all send the same messages."""

    def repeated(x: Any) -> Any:
        time.sleep(0.06 * RANK)  # when it is recorded
        return nb.fori_loop(0, 3, lambda i, u: mpi.allreduce(u) / SIZE, x)

    found = nb.explain(nb.jit(repeated), np.ones(3))
    assert "message" in str(found)
    assert "message" in found._repr_html_()


def check_differing() -> None:
    """Ranks that make different calls: an error on each, with the lines of both."""
    x = np.ones(2)
    lines = []
    calls = (
        lambda: mpi.allreduce(x) if RANK else mpi.bcast(x),
        lambda: nb.jit(nb.grad(lambda u: np.sum(mpi.allreduce(u, "max" if RANK else "sum"))))(x),
        lambda: mpi.barrier() if RANK else None,
        lambda: mpi.recv(x, BEFORE, tag=1) if RANK else None,
    )
    for divergent, seconds in zip(calls, (9.0, 9.0, 0.4, 0.4), strict=True):
        mpi.check_calls(True, seconds)
        try:
            divergent()
        except nb.errors.NbgradError as error:
            lines.append(str(error))
        else:
            lines.append("")
        WORLD.Barrier()
    for text in lines[:2]:
        assert text.count("mpi_ranks.py:") >= 2, text
        assert "bcast" in text or "sum" in text, text
    assert ("no such call" in lines[2]) == ("no call" in lines[3]) == bool(RANK), lines


def check_short() -> None:
    """A message with fewer elements than the array that receives it, which MPI takes for good."""
    receive = {
        "recv": lambda x: mpi.recv(x, 0),
        "irecv": lambda x: mpi.wait(mpi.irecv(x, 0)),
        "sendrecv": lambda x: mpi.sendrecv(x, None, 0),
    }
    for name, received in receive.items():
        for made in (lambda f: f, nb.jit):
            text = ""
            try:
                if RANK:
                    made(received)(np.ones(3))
                else:
                    mpi.send(np.ones(2), 1)
            except nb.errors.NbgradError as error:
                text = str(error)
            assert ("fewer elements" in text) == bool(RANK), (name, text)


def check_waiting() -> None:
    """A compiled program that waits for a message lets other threads of Python run."""
    received = nb.jit(lambda x: mpi.recv(x, 0))
    for turn in range(2):
        WORLD.Barrier()
        if RANK == 0:
            time.sleep(0.3 * turn)
            mpi.send(np.arange(3.0), 1)
            continue
        ticks: list[float] = []
        done = threading.Event()

        def tick(ticks: list[float] = ticks, done: threading.Event = done) -> None:
            while not done.wait(0.01):
                ticks.append(time.monotonic())

        thread = threading.Thread(target=tick)
        thread.start()
        close(received(np.ones(3)), np.arange(3.0), "waiting", "received")
        done.set()
        thread.join()
        assert len(ticks) >= 4 * turn, ticks


def check_failing() -> None:
    """One rank fails while the others wait for it."""
    if RANK == SIZE - 1:
        message = "this rank has failed"
        raise ValueError(message)
    mpi.allreduce(np.ones(2))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        (globals().get(f"check_{name}") or getattr(mpi_decomposed, f"check_{name}"))()
