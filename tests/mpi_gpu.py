"""Checks of messages of arrays on GPUs on one rank of several: `mpiexec -n 2 python -m tests.mpi_gpu rows:staged`.

In: names of checks, each with a way to send. Out: nothing, or an exception, which ends all ranks. Called by
test_mpi.py. The GPUs are the simulator's, one for each rank; NCCL is its double there.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import nbgrad as nb
from nbgrad import mpi, nn

from .mpi_ranks import AFTER, BEFORE, RANK, SIZE, WORLD, close, drawn, inner
from .mpi_rows import Row, rows
from .mpi_training import PART, Line, X, Y, trained, weights


def there(array: Any) -> nb.Tensor:
    """An array on this rank's GPU."""
    return nb.Tensor(np.array(array, order="C"), device="cuda:0")


def here(x: Any) -> Any:
    """Its numbers."""
    return x.asnumpy() if isinstance(x, nb.Tensor) else np.asarray(x)


def check_row(row: Row, dtype: str) -> None:
    """Value, tangent, and cotangent by the inner product of both, on the GPU, as they are and compiled."""
    x, v = (drawn(row.shape(RANK), dtype, seed) for seed in (1, 2))
    xs, vs = WORLD.allgather(x), WORLD.allgather(v)
    value, moved = row.expected(xs, RANK), row.moved(xs, vs, RANK)
    w = drawn(np.shape(value), dtype, 3)
    close(here(row.function(there(x))), value, row.name, "value", dtype)

    def all_of(x: Any, v: Any, w: Any) -> tuple[Any, ...]:
        out, pull = nb.vjp(row.function, x)
        return out, nb.jvp(row.function, (x,), (v,))[1], pull(w)[0]

    for way in (all_of, nb.jit(all_of)):
        found = way(there(x), there(v), there(w))
        assert way is all_of or {str(one.device) for one in found} == {"cuda:0"}, (row.name, found)
        out, tangent, back = map(here, found)
        close(out, value, row.name, "recorded", dtype)
        close(tangent, moved, row.name, "tangent", dtype)
        close(inner(w, tangent), inner(back, v), row.name, "cotangent", dtype)


def check_rows() -> None:
    """All rows."""
    comm = WORLD.Split(RANK % 2, RANK)
    if NCCL:
        mpi.use_nccl(comm, device="cuda:0")
    for row in rows(RANK, SIZE, comm):
        for dtype in row.dtypes[0] if SIZE > 2 else row.dtypes[:: len(row.dtypes) - 1 or 1]:
            check_row(row, dtype)
    numbers = np.arange(4) + RANK
    for dtype in ("int8", "int16", "uint64", "int64"):
        for op, of in (("sum", np.sum), ("max", np.max), ("min", np.min), ("prod", np.prod)):
            every = [np.arange(4) + k for k in range(SIZE)]
            found = mpi.allreduce(there(numbers.astype(dtype)), op)
            assert str(found.device) == "cuda:0" and found.dtype == dtype, (op, found)
            close(here(found), of(every, axis=0), op, "of integers")
    assert here(mpi.bcast(there(numbers > 1))).tolist() == [False, False, True, True]


def check_programs() -> None:
    """Loops, batches, grids, and training."""
    x = drawn((3,), "d", 4)

    def ring(u: Any) -> Any:
        return u + 0.1 * mpi.sendrecv(np.sin(u), AFTER, BEFORE)

    def loss(u: Any) -> Any:
        return np.sum(nb.fori_loop(0, 4, lambda i, u: ring(u), u) ** 2)

    expected = nb.value_and_grad(loss)(x)
    for made in (lambda f: f, nb.jit):
        for k, one in enumerate(made(nb.value_and_grad(loss))(there(x))):
            close(here(one), expected[k], "ring", "on a GPU")
    many = nb.jit(nb.grad(lambda u: np.sum(nb.vmap(loss)(u))))
    close(here(many(there([x, x + 1]))), many(np.stack([x, x + 1])), "ring", "batch")

    grid = mpi.Grid((8, 6), 1, (True, False))
    block = drawn(grid.local, "d", 5)

    def rough(u: Any) -> Any:
        p = grid.exchange(u)
        return np.sum((p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u) ** 2)

    gradient = nb.jit(nb.grad(rough))
    close(here(gradient(there(block))), gradient(block), "grid", "gradient")

    net = Line().to("cuda:0")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    step = nn.TrainOneStepCell(net, optimizer, communicator=WORLD)
    for _ in range(3):
        step(there(X[PART]), there(Y[PART]))
    assert str(net.w.device) == "cuda:0"
    close(weights(net), trained(3, 0.01), "training", "weights")


def check_refused() -> None:
    """A GPU that is not the one of NCCL, and ranks that use different memory."""
    if NCCL:
        other = nb.Tensor([1.0], device="cuda:1")
        assert "its ranks use NCCL on cuda:0" in refused(lambda: mpi.allreduce(other))
    if SIZE > 1 and NCCL:
        mpi.check_calls(True, 9.0)
        x = np.ones(2)
        text = refused(lambda: mpi.allreduce(there(x) if RANK else x))
        assert "NCCL" in text and "same calls" in text, text
        mpi.check_calls(False)
    text = refused(lambda: mpi.use_nccl(device="cpu" if RANK == SIZE - 1 else "cuda:0"))
    assert "NCCL sends arrays on GPUs" in text, text
    assert NCCL or "NCCL is not used" in text or RANK == SIZE - 1, text


def refused(call: Any) -> str:
    """The error of a call."""
    try:
        call()
    except nb.errors.NbgradError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        check, way = argument.split(":")
        with nb.cuda.simulator(devices=2):
            NCCL = way == "nccl"
            mpi.cuda_aware(way == "direct")
            if NCCL:
                mpi.use_nccl(device="cuda:0")
            globals()[f"check_{check}"]()
            mpi.communicators.group_of().nccl = None
