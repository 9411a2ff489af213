"""Messages between processes, by MPI, with derivatives: sums over ranks, neighbours, grids of which each has a part.

In: arrays, on each of the processes that `mpiexec` starts. Out: arrays. Called by users. Needs
mpi4py and an MPI library: pip install "nbgrad[mpi]". docs/mpi.md says more.

When this module is imported, an exception that ends one process ends all of them.
"""

from .abort import install as _install
from .call_check import check_calls as check_calls
from .checkpoints import load_checkpoint as load_checkpoint
from .checkpoints import save_checkpoint as save_checkpoint
from .collectives import allgather as allgather
from .collectives import allreduce as allreduce
from .collectives import alltoall as alltoall
from .collectives import barrier as barrier
from .collectives import bcast as bcast
from .collectives import gather as gather
from .collectives import reduce as reduce
from .collectives import reduce_scatter as reduce_scatter
from .collectives import replicated as replicated
from .collectives import scan as scan
from .collectives import scatter as scatter
from .decomposed_systems import linear_solve as linear_solve
from .gpu_memory import cuda_aware as cuda_aware
from .grid import Grid as Grid
from .grid_transforms import fftn as fftn
from .grid_transforms import ifftn as ifftn
from .grid_transforms import irfftn as irfftn
from .grid_transforms import rfftn as rfftn
from .grid_transforms import spectrum as spectrum
from .inner_products import dot as dot
from .inner_products import norm as norm
from .inner_products import vdot as vdot
from .nccl import use_nccl as use_nccl
from .point_to_point import Request as Request
from .point_to_point import irecv as irecv
from .point_to_point import isend as isend
from .point_to_point import recv as recv
from .point_to_point import send as send
from .point_to_point import sendrecv as sendrecv
from .point_to_point import wait as wait

__all__ = [
    "Grid",
    "Request",
    "allgather",
    "allreduce",
    "alltoall",
    "barrier",
    "bcast",
    "check_calls",
    "cuda_aware",
    "dot",
    "fftn",
    "gather",
    "ifftn",
    "irecv",
    "irfftn",
    "isend",
    "linear_solve",
    "load_checkpoint",
    "norm",
    "recv",
    "reduce",
    "reduce_scatter",
    "replicated",
    "rfftn",
    "save_checkpoint",
    "scan",
    "scatter",
    "send",
    "sendrecv",
    "spectrum",
    "use_nccl",
    "vdot",
    "wait",
]

_install()
