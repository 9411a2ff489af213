"""Messages between processes: one run of several checks on each number of ranks, since their start costs most.

The checks are in mpi_ranks.py and mpi_decomposed.py, and run on each rank; mpi_rows.py has a row for each function.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

pytest.importorskip("mpi4py", reason="needs mpi4py and an MPI library: pip install 'nbgrad[mpi]'")
OWN = Path(sys.executable).with_name("mpiexec")
MPIEXEC = str(OWN) if OWN.exists() else shutil.which("mpiexec")
pytestmark = [
    pytest.mark.unoptimized,
    pytest.mark.skipif(MPIEXEC is None, reason="needs mpiexec, of the MPI library that mpi4py uses"),
]
LONGEST = 200
"""Seconds of a run on a machine that does other things, too."""
SETTINGS = {
    "NBGRAD_OPTIMIZE": "0",
    "NBGRAD_NUM_THREADS": "1",
    # Open MPI refuses more ranks than cores, and containers' only user.
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def run(ranks: int, *checks: str, module: str = "mpi_ranks") -> subprocess.CompletedProcess[str]:
    """The checks on so many ranks."""
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, "-W", "error", "-m", f"tests.{module}", *checks]
    surroundings = {**os.environ, **SETTINGS}
    root = Path(__file__).parent.parent
    return subprocess.run(
        command, cwd=root, env=surroundings, capture_output=True, text=True, timeout=LONGEST, check=False
    )


@pytest.mark.parametrize(
    ("ranks", "checks"),
    [
        (1, "rows"),
        (2, "rows programs wave short waiting explained differing"),
        (2, "fourier fourier_derivatives products systems complex unequal refused"),
        (3, "rows programs systems complex unequal"),
        (4, "wave fourier"),
    ],
)
def test_messages_on_ranks(ranks: int, checks: str) -> None:
    done = run(ranks, *checks.split())
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("ranks", "checks"),
    [
        (2, "rows:staged rows:direct programs:nccl refused:nccl refused:staged"),
        (3, "rows:nccl programs:staged"),
    ],
)
def test_messages_of_arrays_on_gpus(ranks: int, checks: str) -> None:
    done = run(ranks, *checks.split(), module="mpi_gpu")
    assert done.returncode == 0, done.stdout + done.stderr


def test_nccl_of_one_process(place: Any) -> None:
    from nbgrad import mpi

    try:
        device = mpi.use_nccl()
    except nb.errors.LibraryError as error:  # a GPU without NCCL's package; the simulator has its double
        pytest.skip(str(error))
    x = nb.Tensor(np.arange(4.0), device=device)
    try:
        value, slope = nb.jit(nb.value_and_grad(lambda x: np.sum(mpi.allreduce(x) * mpi.bcast(x) ** 2)))(x)
        moved = nb.jit(lambda x: mpi.sendrecv(x, 0, 0) + mpi.scatter(mpi.gather(x)))(x)
        assert mpi.cuda_aware() in (False, True)
    finally:
        mpi.communicators.group_of().nccl = None
    assert float(value) == 36.0
    assert slope.asnumpy().tolist() == [0.0, 3.0, 12.0, 27.0] and str(slope.device) == str(device)
    assert moved.asnumpy().tolist() == [0.0, 2.0, 4.0, 6.0]


def test_a_rank_that_fails_ends_all_with_its_traceback() -> None:
    start = time.monotonic()
    done = run(2, "failing")
    assert done.returncode != 0
    assert time.monotonic() - start < 10 or os.getloadavg()[0] > 2
    for part in ("Rank 1 of 2 has failed", "in check_failing", "ValueError: this rank has failed"):
        assert part in done.stderr, done.stderr


def _refused() -> dict[str, tuple[Any, str]]:
    from nbgrad import mpi

    x: Any = np.ones((2, 2))
    half: Any = 1.5
    leaf = nb.Tensor([1.0, 2.0])
    leaf.requires_grad = True
    request = mpi.isend(x, None)
    mpi.wait(request)
    return {
        "op": (lambda: mpi.allreduce(x, "mean"), "'sum', 'max', 'min', 'prod', but got 'mean'"),
        "array": (lambda: mpi.allreduce("x"), "sends arrays and numbers"),
        "booleans": (lambda: mpi.allreduce(x > 0), r"no sum of bool. Convert it"),
        "complex": (lambda: mpi.allreduce(x * 1j, "max"), "np.abs"),
        "half": (lambda: mpi.bcast(x.astype(np.float16)), "MPI does not know"),
        "root": (lambda: mpi.bcast(x, 3), "root must be a rank from 0 to 0, but got 3"),
        "dest": (lambda: mpi.send(x, half), "dest must be a rank from 0 to 0 or None"),
        "tag": (lambda: mpi.send(x, None, tag=-1), "tag must be an int from 0"),
        "counts": (lambda: mpi.allgather(x, counts=[1, 2]), "counts must be 1 numbers of rows"),
        "rows": (lambda: mpi.allgather(x, counts=[3]), "rank 0 gives 2 rows, but counts say 3"),
        "rows to send": (lambda: mpi.alltoall(x, [3], [3]), "3 rows together, but the array has 2"),
        "scatter": (lambda: mpi.scatter(x), "a row for each of the 1 ranks"),
        "number": (lambda: mpi.gather(1.0, counts=[1]), "but got a number"),
        "comm": (lambda: mpi.allreduce(x, comm=0), "comm must be a communicator of mpi4py"),
        "shapes": (lambda: mpi.dot(x, x[0]), "two arrays of one shape"),
        "wait": (lambda: mpi.wait(x), "takes what isend or irecv gives"),
        "again": (request.wait, "was waited for before"),
        "leaf": (lambda: mpi.allreduce(leaf * 2), "remembers how it was made"),
        "tape": (lambda: nb.autograd.grad(mpi.allreduce(leaf).sum(), leaf), "remembers how it was made"),
        "sparse": (lambda: nb.sparse_jacobian(mpi.allreduce)(np.ones(3)), "Use nb.jacrev"),
        "block": (lambda: mpi.Grid((4,)).exchange(np.ones(3)), r"of shape \(4,\), but got"),
        "halo": (lambda: mpi.Grid((2,), halo=3), "fewer than the halo of 3"),
        "blocks": (lambda: mpi.Grid((4,), blocks=(3,)), "there are 1 ranks"),
        "axes": (lambda: mpi.Grid((4, 4), halo=(1, 1, 1)), "one for each of the 2 axes"),
        "seconds": (lambda: mpi.check_calls(seconds=0), "a positive number of seconds"),
        "value": (lambda: nb.jit(lambda x: x if float(mpi.allreduce(x)[0, 0]) else -x)(x), "Python float"),
        "choice": (lambda: nb.jit(lambda x: x if mpi.allreduce(x)[0, 0] > 0 else -x)(x), "depends on messages"),
        "while": (
            lambda: nb.while_loop(lambda u: np.sum(u) < 9, lambda u: mpi.allreduce(u) + 1, np.ones(2)),
            "in a while_loop",
        ),
    }


@pytest.mark.parametrize("case", list(_refused()))
def test_what_cannot_be_sent_is_refused(case: str) -> None:
    call, text = _refused()[case]
    with pytest.raises(nb.errors.NbgradError, match=text):
        call()


def test_compiled_messages_need_no_python() -> None:
    from nbgrad import mpi
    from nbgrad.mpi import message_calls

    def all_of(x: Any) -> Any:
        row = mpi.scatter(mpi.alltoall(mpi.allgather(mpi.gather(x)[0])))
        moved = mpi.sendrecv(mpi.bcast(mpi.reduce(row)), 0, 0) + mpi.recv(x, None)
        mpi.send(x, None)
        mpi.barrier()
        return mpi.scan(mpi.allreduce(moved, "max"))

    compiled = nb.jit(nb.value_and_grad(lambda x: np.sum(all_of(x) ** 2)))
    x = np.arange(3.0)
    expected = compiled(x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_calls, "_send", None)
        value, gradient = compiled(x)
    assert value == expected[0] == 5.0
    np.testing.assert_array_equal(gradient, 2 * x)


def test_the_page_on_mpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parent.parent / "docs" / "mpi.md").read_text()
    from nbgrad import mpi

    space: dict[str, Any] = {}
    for part in page.split("```python\n")[1:]:
        exec(part.split("```")[0], space)
    w, data = np.array([1.0, 1.5]), np.linspace(0.0, 1.0, 100)
    rest = w[0] + w[1] * data - np.exp(data)
    np.testing.assert_allclose(space["total"], np.sum(rest**2))
    np.testing.assert_array_equal(space["whole"], space["gradient"])
    np.testing.assert_array_equal(space["speed"], space["gradient"])
    assert all(f"`{name}" in page or f"mpi.{name}" in page for name in mpi.__all__ if name != "Request")
