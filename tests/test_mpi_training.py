"""Training in parallel by MindSpore's names: one run of several checks on each number of ranks.

The checks are in mpi_training.py, and run on each rank.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from .test_mpi import MPIEXEC, run

pytestmark = [
    pytest.mark.unoptimized,
    pytest.mark.skipif(MPIEXEC is None, reason="needs mpiexec, of the MPI library that mpi4py uses"),
]


@pytest.mark.parametrize("ranks", [2, 3])
def test_training_on_ranks(ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_TEST_FOLDER", str(tmp_path))
    checks = (
        "forgotten groups operations training normalisation checkpoint"
        if ranks == 2
        else "groups operations training normalisation checkpoint"
    )
    done = run(ranks, *checks.split(), module="mpi_training")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_run_goes_on_with_other_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_TEST_FOLDER", str(tmp_path))
    begun = run(2, "begin", module="mpi_training")
    assert begun.returncode == 0, begun.stdout + begun.stderr
    start = time.monotonic()
    killed = run(2, "killed", module="mpi_training")
    assert killed.returncode != 0
    assert "KeyboardInterrupt" in killed.stderr
    assert time.monotonic() - start < 30
    resumed = run(1, "resume", module="mpi_training")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
