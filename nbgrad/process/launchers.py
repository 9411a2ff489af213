"""The number of processes that a launcher, such as mpiexec or srun, says it has started together.

In: environment variables. Out: a number. Called by nbgrad.mpi and nbgrad.communication, before MPI has begun or to see
whether it has connected all of them.
"""

from __future__ import annotations

import os

VARIABLES = {
    "OMPI_COMM_WORLD_SIZE": "mpiexec",
    "PMI_SIZE": "mpiexec",
    "MV2_COMM_WORLD_SIZE": "mpiexec",
    "SLURM_STEP_NUM_TASKS": "srun",
}
"""Variables with that number, and the launchers that set them. In a job of Slurm, mpiexec knows better than the step
that it runs in; the script of a job itself is no step."""


def launched() -> int:
    """The number of processes that were started together, as far as is known without MPI; 1 by default.

    Examples
    --------
    >>> launched()
    1
    """
    return _said()[0]


def launcher() -> str:
    """The program that has started them, for messages.

    Examples
    --------
    >>> launcher()
    'mpiexec'
    """
    return _said()[1]


def _said() -> tuple[int, str]:
    for name, program in VARIABLES.items():
        if os.environ.get(name, "").isdecimal():
            return int(os.environ[name]), program
    return 1, "mpiexec"


def unconnected() -> str | None:
    """The text of an error if several processes were started, for a process that MPI says is alone; otherwise None.

    Examples
    --------
    >>> unconnected() is None
    True
    """
    count, program = _said()
    if count < 2:
        return None
    way = "Use the mpiexec of the MPI library that mpi4py uses"
    if program == "srun":
        way = "Give srun the --mpi= that the MPI library of mpi4py needs (srun --mpi=list shows all)"
    return (
        f"{program} has started {count} processes, but MPI has not connected them: each takes itself for the only one. "
        f"{way}, or work alone with comm=MPI.COMM_SELF."
    )
