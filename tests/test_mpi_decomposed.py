"""Fourier transforms, inner products and linear systems over ranks: on one of them, and what is refused.

test_mpi.py runs the checks on several ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbgrad as nb

from .test_mpi import MPIEXEC

pytestmark = [
    pytest.mark.unoptimized,
    pytest.mark.skipif(MPIEXEC is None, reason="needs mpi4py and an MPI library"),
]


@pytest.mark.parametrize("check", ["fourier", "systems", "unequal"])
def test_one_rank(check: str) -> None:
    from . import mpi_decomposed

    getattr(mpi_decomposed, f"check_{check}")()


def _refused() -> dict[str, tuple[Any, str]]:
    from nbgrad import mpi

    x, z = np.ones((2, 3)), np.ones((2, 3)) * 1j
    grid: Any = mpi.Grid((2, 3), 0)
    any_value: Any = "max"
    leaf = nb.Tensor([1.0, 2.0])
    leaf.requires_grad = True
    return {
        "block": (lambda: mpi.fftn(x[:1], grid), r"fftn takes this rank's block, of shape \(2, 3\).*of shape \(1, 3\)"),
        "half": (lambda: mpi.irfftn(x, grid), r"of shape \(2, 2\)"),
        "complex": (lambda: mpi.rfftn(z, grid), "rfftn needs real numbers, but got complex128"),
        "fourier norm": (lambda: mpi.fftn(x, grid, any_value), "norm"),
        "grid": (lambda: mpi.fftn(x, any_value), "fftn takes a Grid, but got str"),
        "vdot": (lambda: mpi.vdot(x, x[0]), "vdot takes two arrays of one shape"),
        "ord": (lambda: mpi.norm(x, any_value), "ord of norm must be None, inf"),
        "ord 0": (lambda: mpi.norm(x, 0), "ord of norm must be"),
        "method": (lambda: mpi.linear_solve(lambda v: v, x, method="qmr"), "method must be one of 'cg', 'bicgstab'"),
        "start": (lambda: mpi.linear_solve(lambda v: v, x, x0=x[0]), r"x0 of linear_solve\(\) has shape \(3,\)"),
        "product": (lambda: mpi.linear_solve(lambda v: v[0], x), r"must return an array of shape \(2, 3\)"),
        "complex system": (lambda: mpi.linear_solve(lambda v: 1j * v, x), "give b as complex numbers"),
        "not linear": (lambda: mpi.linear_solve(lambda v: v * v, x), "is not linear in its vector"),
        "leaf": (lambda: mpi.linear_solve(lambda v: v, leaf), "remember how they were made"),
    }


@pytest.mark.parametrize("case", list(_refused()))
def test_what_does_not_fit_is_refused(case: str) -> None:
    call, text = _refused()[case]
    with pytest.raises(nb.errors.NbgradError, match=text):
        call()


def test_processes_that_mpi_has_not_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    from nbgrad import communication, mpi
    from nbgrad.communication import process_groups
    from nbgrad.mpi import communicators
    from nbgrad.process import launchers

    monkeypatch.setattr(communicators, "_numbers", {})
    monkeypatch.setattr(process_groups, "_groups", {})
    for name, text in (("OMPI_COMM_WORLD_SIZE", "mpiexec has started 4"), ("SLURM_STEP_NUM_TASKS", "srun has")):
        with monkeypatch.context() as patch:
            for other in launchers.VARIABLES if name.startswith("SLURM") else ():
                patch.delenv(other, raising=False)
            patch.setenv(name, "4")
            for call in (lambda: mpi.allreduce(1.0), communication.init, communication.get_rank):
                with pytest.raises(nb.errors.NbgradError, match=text):
                    call()
            assert mpi.allreduce(1.0, comm=communicators.library().COMM_SELF) == 1.0
