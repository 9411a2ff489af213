"""Training in parallel by MindSpore's names: one run of several checks on each number of ranks.

The checks are in mpi_training.py, and run on each rank.
"""

from __future__ import annotations

import pytest

from .test_mpi import MPIEXEC, run

pytestmark = [
    pytest.mark.unoptimized,
    pytest.mark.skipif(MPIEXEC is None, reason="needs mpiexec, of the MPI library that mpi4py uses"),
]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_training_on_ranks(ranks: int) -> None:
    checks = (
        "forgotten groups operations training normalisation"
        if ranks == 2
        else "groups operations training normalisation"
    )
    done = run(ranks, *checks.split(), module="mpi_training")
    assert done.returncode == 0, done.stdout + done.stderr
