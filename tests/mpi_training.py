"""Checks of training in parallel on one rank of several: `mpiexec -n 3 python -m tests.mpi_training operations`.

In: names of checks. Out: nothing, or an exception, which ends all ranks. Called by test_mpi_training.py.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import nbgrad as nb
from nbgrad import communication, mpi, nn, ops
from nbgrad.mpi import checkpoints

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size
RANDOM = np.random.default_rng(3)
ROWS = 7
X, Y = RANDOM.normal(size=(ROWS, 3)), RANDOM.normal(size=ROWS)
"""Of all ranks; parts are unequal."""
PART = slice(ROWS * RANK // SIZE, ROWS * (RANK + 1) // SIZE)
START = np.array([0.5, -1.0, 2.0])


class Line(nn.Cell):
    """The sum of squares of a line's misfits."""

    def __init__(self, start: np.ndarray = START) -> None:
        super().__init__()
        self.w = nb.Parameter(nb.Tensor(start), name="w")
        self.b = nb.Parameter(nb.Tensor(np.array(0.25)), name="b")

    def construct(self, x: Any, y: Any) -> Any:
        """The loss of a batch."""
        return ((x @ self.w + self.b - y) ** 2).sum()


def trained(steps: int, rate: float, momentum: float = 0.9, scale: float = 1.0) -> np.ndarray:
    """The weights after steps on all rows, in plain NumPy."""
    w = np.append(START, 0.25)
    speed = np.zeros(4)
    rows = np.column_stack([X, np.ones(ROWS)])
    for _ in range(steps):
        speed = momentum * speed + scale * 2 * rows.T @ (rows @ w - Y)
        w = w - rate * speed
    return w


def weights(net: Line) -> np.ndarray:
    """All weights in one row."""
    return np.append(net.w.asnumpy(), net.b.asnumpy())


def check_groups() -> None:
    """Ranks, sizes and groups by MindSpore's names."""
    communication.init()
    communication.init()
    assert (communication.get_rank(), communication.get_group_size()) == (RANK, SIZE)
    assert (communication.get_local_rank(), communication.get_local_rank_size()) == (RANK, SIZE)
    communication.create_group("last", [SIZE - 1])
    communication.create_group("turned", list(range(SIZE))[::-1])
    assert communication.get_rank("turned") == SIZE - 1 - RANK
    assert communication.get_process_group_ranks("turned") == list(range(SIZE))[::-1]
    assert communication.get_group_rank_from_world_rank(0, "turned") == SIZE - 1
    if RANK == SIZE - 1:
        assert communication.get_group_size("last") == 1
        assert communication.get_world_rank_from_group_rank("last", 0) == RANK
        assert ops.AllReduce(group="last")(nb.Tensor([3.0])).tolist() == [3.0]
    else:
        refused(lambda: communication.get_rank("last"), "no member")
    refused(lambda: communication.create_group("far", [SIZE]), f"from 0 to {SIZE - 1}")
    refused(lambda: nb.set_auto_parallel_context(device_num=SIZE + 1), f"must be {SIZE}")
    assert nb.get_auto_parallel_context("device_num") == SIZE
    communication.destroy_group("turned")
    refused(lambda: communication.get_rank("turned"), "no group")


def refused(call: Any, text: str) -> None:
    """Raise unless a call is an error with a text."""
    with pytest.raises(nb.errors.NbgradError, match=re.escape(text)):
        call()


def check_operations() -> None:
    """The class forms of `ops`, beside NumPy, as they are and compiled, and their gradients."""
    communication.init()
    last = SIZE - 1
    every = [np.random.default_rng(rank).normal(size=(2 * SIZE, 3)) for rank in range(SIZE)]
    x = nb.Tensor(every[RANK])
    part = slice(2 * RANK, 2 * RANK + 2)
    total = np.sum(every, axis=0)
    pieces = [[np.split(one, SIZE, axis=0)[rank] for one in every] for rank in range(SIZE)]
    nothing = np.zeros((0, 3))
    rows: list[tuple[Any, Any, Any]] = [
        (ops.AllReduce(), total, SIZE),
        (ops.AllReduce(ops.ReduceOp.MAX), np.max(every, axis=0), None),
        (ops.AllGather(), np.concatenate(every), SIZE),
        (ops.ReduceScatter(), total[part], 1),
        (ops.ReduceScatter(ops.ReduceOp.PROD), np.prod(every, axis=0)[part], None),
        (ops.Reduce(last), total * (last == RANK or SIZE == 1), 1),
        (ops.Broadcast(last), every[last], SIZE * (last == RANK)),
        (ops.AlltoAll(SIZE, 0, 1), np.concatenate(pieces[RANK], axis=1), 1),
        (ops.CollectiveScatter(last), every[last][part], float(last == RANK)),
        (ops.CollectiveGather(last), np.concatenate(every) if last == RANK else nothing, 1),
    ]
    for form, expected, slope in rows:
        for way in (form, nb.jit(form)):
            found = way(x)
            np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-13, atol=1e-13, err_msg=repr(form))
        if slope is not None:
            gradient = nb.jit(nb.grad(lambda u, form=form: form(u).sum()))(x)
            np.testing.assert_allclose(gradient.asnumpy(), np.full(x.shape, slope), err_msg=repr(form))
    first, second = ops.Broadcast(0)((x, x * 2))
    assert np.array_equal(first.asnumpy() * 2, second.asnumpy())
    ops.Barrier()()
    refused(lambda: ops.AllReduce("mean")(x), "op must be")
    refused(lambda: ops.AlltoAll(SIZE + 1, 0, 1)(x), "split_count")
    if SIZE > 1:
        refused(lambda: ops.ReduceScatter()(x[:1]), "equal parts")
        if RANK == 0:
            ops.Send(sr_tag=4, dest_rank=1)(x)
        if RANK == 1:
            received = ops.Receive(sr_tag=4, src_rank=0, shape=x.shape, dtype=nb.float64)(x)
            assert np.array_equal(received.asnumpy(), every[0])
    else:
        refused(lambda: ops.Send(sr_tag=0, dest_rank=0)(x), "alone")


def check_training() -> None:
    """Steps of all ranks on parts of the rows are those of NumPy on all rows."""
    communication.init()
    # Ranks begin with other weights: those of the first one count.
    net = Line(START + RANK)
    nb.set_auto_parallel_context(parallel_mode=nb.ParallelMode.DATA_PARALLEL)
    step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    assert step.reducer_flag == (SIZE > 1)
    own = step(nb.Tensor(X[PART]), nb.Tensor(Y[PART]))
    np.testing.assert_allclose(own.asnumpy(), np.sum((X[PART] @ START + 0.25 - Y[PART]) ** 2))
    for _ in range(3):
        step(nb.Tensor(X[PART]), nb.Tensor(Y[PART]))
    np.testing.assert_allclose(weights(net), trained(4, 0.01), rtol=1e-6)
    # The mean over ranks, in the mode that Model and amp use, with a scaled loss.
    nb.set_auto_parallel_context(gradients_mean=True)
    net = Line()
    rule = nn.FixedLossScaleUpdateCell(1024.0)
    scaled = nn.TrainOneStepWithLossScaleCell(net, nn.Momentum(net.trainable_params(), 0.01, 0.9), rule)
    for _ in range(3):
        _, overflow, _ = scaled(nb.Tensor(X[PART]), nb.Tensor(Y[PART]))
        assert not overflow
    np.testing.assert_allclose(weights(net), trained(3, 0.01, scale=1 / SIZE), rtol=1e-6)
    # One rank overflows, and no rank takes the step.
    before = weights(net)
    _, overflow, _ = scaled(nb.Tensor(X[PART] * (np.inf if RANK == SIZE - 1 else 1.0)), nb.Tensor(Y[PART]))
    assert overflow
    assert np.array_equal(weights(net), before)
    nb.reset_auto_parallel_context()
    # A communicator in place of the mode; a step of one's own; ranks that train alone.
    net = Line()
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.01), communicator=WORLD)
    step(nb.Tensor(X[PART]), nb.Tensor(Y[PART]))
    np.testing.assert_allclose(weights(net), trained(1, 0.01), rtol=1e-6)
    reducer = nn.DistributedGradReducer(net.trainable_params(), mean=True, degree=SIZE)
    half = nb.Tensor(np.full(2, RANK, np.float16))
    found = reducer((half, [nb.Tensor(np.full((300, 500), RANK, np.float64))], half * 2))
    middle = (SIZE - 1) / 2
    assert found[0].asnumpy().tolist() == [middle] * 2 and found[0].dtype == nb.float16
    assert np.all(found[1][0].asnumpy() == middle) and found[2].tolist() == [2 * middle] * 2
    net = Line()
    alone = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.01))
    assert not alone.reducer_flag
    refused(lambda: nn.DistributedGradReducer([], degree=SIZE + 1), "degree")
    if SIZE > 1:
        other = Line(np.ones(3 + RANK))
        optimizer = nn.SGD(other.trainable_params(), 0.01)
        refused(lambda: nn.TrainOneStepCell(other, optimizer, communicator=WORLD), "different networks")
        nb.set_auto_parallel_context(parallel_mode="semi_auto_parallel")
        refused(lambda: nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.01)), "data_parallel")
        nb.reset_auto_parallel_context()


def check_normalisation() -> None:
    """Batch normalisation by the batches of all ranks, beside NumPy on all rows and differences."""
    communication.init()
    rows = [np.random.default_rng(rank).normal(size=(3 + rank, 2, 2)) for rank in range(SIZE)]
    ways = [np.random.default_rng(9 + rank).normal(size=rows[rank].shape) for rank in range(SIZE)]

    def layer() -> nn.Cell:
        return nn.SyncBatchNorm(2, momentum=0.5, dtype=np.float64).set_train()

    def expected(parts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        every = np.concatenate(parts)
        mean, variance = (of(every, axis=(0, 2)) for of in (np.mean, np.var))
        shown = (every - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5)
        return shown, 0.5 * mean, 0.5 + 0.5 * np.var(every, axis=(0, 2), ddof=1)

    net = layer()
    found, mean, variance = net(nb.Tensor(rows[RANK])), *expected(rows)[1:]
    start = sum(len(part) for part in rows[:RANK])
    np.testing.assert_allclose(found.asnumpy(), expected(rows)[0][start : start + 3 + RANK], rtol=1e-12)
    np.testing.assert_allclose(net.moving_mean.asnumpy(), mean, rtol=1e-12)
    np.testing.assert_allclose(net.moving_variance.asnumpy(), variance, rtol=1e-12)
    gradient = nb.grad(lambda x: (layer()(x) * ways[RANK]).sum())(nb.Tensor(rows[RANK])).asnumpy()
    h, slopes = 1e-6, []
    for sign in (1, -1):
        moved = [part + sign * h * (rank == RANK) * ways[rank] for rank, part in enumerate(rows)]
        slopes.append(np.sum(expected(moved)[0] * np.concatenate(ways)))
    np.testing.assert_allclose(np.sum(gradient * ways[RANK]), (slopes[0] - slopes[1]) / (2 * h), rtol=1e-6)


FOLDER = Path(os.environ.get("NBGRAD_TEST_FOLDER", "."))
"""Of checkpoints, which runs on several numbers of ranks share."""
FIELD = np.random.default_rng(8).normal(size=(7, 5, 2)) * (1 + 2j)


def check_checkpoint() -> None:
    """A checkpoint of blocks, shared and own arrays; errors on one rank, after which the last one is still there."""
    grid = mpi.Grid((7, 5), halo=0)
    block, place = FIELD[grid.slices], f"rank {RANK}"
    kept = {"w": np.arange(3.0), "step": 3, "on": np.array([True])}

    def save(shift: float = 0.0, shape: Any = ..., name: str = "z") -> None:
        blocks = {"u": block[shape].real + shift, name: block}
        mpi.save_checkpoint(FOLDER / "all", kept, blocks=blocks, grid=grid, own={"seed": np.arange(RANK + 1)})

    def check() -> None:
        found = mpi.load_checkpoint(FOLDER / "all", grid=grid)
        assert np.array_equal(found["u"], block.real) and found["u"].dtype == np.float64, place
        assert np.array_equal(found["z"], block) and found["z"].dtype == np.complex128, place
        assert np.array_equal(found["seed"], np.arange(RANK + 1)), place
        assert np.array_equal(found["w"], kept["w"]) and found["step"] == 3 and found["on"].dtype == bool, place
        other = mpi.Grid((7, 5), halo=0, blocks=(1, SIZE))
        assert np.array_equal(mpi.load_checkpoint(FOLDER / "all", other)["z"], FIELD[other.slices]), place
        assert np.array_equal(mpi.load_checkpoint(FOLDER / "all")["z"], FIELD), place
        WORLD.Barrier()
        assert len(list((FOLDER / "all").iterdir())) == SIZE + 1, place

    for shift in (1.0, 0.0):
        save(shift)
        WORLD.Barrier()
    check()
    last = RANK == SIZE - 1
    refused(lambda: save(shape=slice(1) if last else ...), "this rank's block" if last else f"Rank {SIZE - 1} has")
    check()
    if SIZE > 1:
        refused(lambda: save(name="y" if last else "z"), f"Rank {SIZE - 1} saves 'z' as nothing, but rank 0 as blocks")
        check()
    written = checkpoints.write_arrays
    checkpoints.write_arrays = no_space if last else written
    with pytest.raises(OSError if last else nb.errors.CheckpointError, match="No space left"):
        save(1.0)
    checkpoints.write_arrays = written
    WORLD.Barrier()
    check()
    refused(lambda: mpi.save_checkpoint(FOLDER / "all", {}), "nothing to save")
    refused(lambda: mpi.save_checkpoint(FOLDER / "all", {"a": "b"}), "must be an array")
    refused(lambda: mpi.save_checkpoint(FOLDER / "all", {"a": 1}, own={"a": 2}), "called 'a'")
    refused(lambda: mpi.save_checkpoint(FOLDER / "all", blocks={"a": block}), "their grid")
    refused(lambda: mpi.load_checkpoint(FOLDER / "all", mpi.Grid((7, 6))), "grid of shape (7, 5, 2)")
    with pytest.raises(FileNotFoundError, match="no checkpoint of ranks"):
        mpi.load_checkpoint(FOLDER)
    WORLD.Barrier()


def no_space(path: str, arrays: Any) -> None:
    """In place of a function that writes a file."""
    raise OSError(28, "No space left on device", path)


def _resumed() -> tuple[Line, nn.TrainOneStepCell]:
    net = Line()
    return net, nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.01, 0.9), communicator=WORLD)


def check_begin() -> None:
    """Two steps, and a checkpoint."""
    net, step = _resumed()
    for _ in range(2):
        step(nb.Tensor(X[PART]), nb.Tensor(Y[PART]))
    mpi.save_checkpoint(FOLDER / "run", step, own={"rank": RANK})
    np.testing.assert_allclose(weights(net), trained(2, 0.01), rtol=1e-6)


def check_killed() -> None:
    """A rank that ends while it writes."""
    _, step = _resumed()
    if RANK == SIZE - 1:
        checkpoints.write_arrays = killed
    mpi.save_checkpoint(FOLDER / "run", step, own={"rank": RANK})


def killed(path: str, arrays: Any) -> None:
    """In place of a function that writes a file: half of it, and Ctrl-C."""
    Path(path).with_name(f".{Path(path).name}.0123456789ab.part").write_bytes(b"half")
    Path(path).with_name(f".{checkpoints.INDEX}.0123456789ab.part").write_bytes(b"half")
    raise KeyboardInterrupt


def check_resume() -> None:
    """Two more steps on another number of ranks."""
    net, step = _resumed()
    refused(lambda: mpi.load_checkpoint(FOLDER / "run"), "own=False")
    found = mpi.load_checkpoint(FOLDER / "run", own=False)
    assert nb.load_param_into_net(step, found, strict_load=True) == ([], [])
    for _ in range(2):
        step(nb.Tensor(X[PART]), nb.Tensor(Y[PART]))
    np.testing.assert_allclose(weights(net), trained(4, 0.01), rtol=1e-6)
    refused(lambda: nb.load_param_into_net(nn.Dense(3, 2), found), "do not fit")
    mpi.save_checkpoint(FOLDER / "run", step)
    # Files of the run that was killed are gone, and rank 1 has nothing to write.
    assert len(list((FOLDER / "run").iterdir())) == 2


def check_forgotten() -> None:
    """Several processes without `init`."""
    refused(communication.get_rank, "init()")
    refused(lambda: ops.AllReduce()(nb.Tensor([1.0])), "init()")
    nb.set_auto_parallel_context(parallel_mode="data_parallel")
    net = Line()
    refused(lambda: nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.01)), "init()")
    nb.reset_auto_parallel_context()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[f"check_{name}"]()
