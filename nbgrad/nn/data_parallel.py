"""Training in parallel: each process has all weights and a part of each batch, and gradients are summed over all.

In: gradients, Parameters, and groups of processes. Out: sums of gradients; Parameters that are equal in all processes.
Called by the steps of training (training.py), and by users who write their own. MPI sends (nbgrad.mpi).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..communication.parallel_context import get_auto_parallel_context, sums_gradients
from ..communication.process_groups import WORLD_GROUP, communicator
from ..errors import ArgumentError, ShapeError
from ..record.container_leaves import map_leaves
from ..record.tensor import Tensor
from .cell import Cell
from .layer_arguments import flag, positive

LARGE = 1 << 20
"""Bytes from which a gradient goes by itself. Smaller ones are joined: a copy costs less than a message."""
HALF = np.dtype(np.float16)


class DistributedGradReducer(Cell):
    """The gradients of all processes summed, or their mean; with one process, its own.

    Parameters
    ----------
    parameters : list of Parameter
        Not used: the gradients say all.
    mean : bool, optional
        Whether sums are divided by `degree`; by default the option `gradients_mean` of `set_auto_parallel_context`.
    degree : int, optional
        The number of processes of the group.
    fusion_type : int
        Has no effect: small gradients are sent together.
    group : str
        The name of a group, or a communicator of mpi4py.

    Raises
    ------
    ArgumentError
        For another number of processes than there are, and an unknown group.

    Examples
    --------
    >>> import nbgrad as nb
    >>> reducer = nb.nn.DistributedGradReducer(nb.nn.Dense(1, 1).trainable_params())
    >>> print(*reducer((nb.Tensor([2.0]),)))
    [2.]
    """

    def __init__(
        self,
        parameters: Any,
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: Any = WORLD_GROUP,
    ) -> None:
        super().__init__(auto_prefix=False)
        self._comm = communicator(group)
        self.degree = 1 if self._comm is None else self._comm.size
        if degree is not None and positive(degree, "degree") != self.degree:
            message = f"degree must be the number of processes of the group, {self.degree}, but got {degree}."
            raise ArgumentError(message)
        self.mean = get_auto_parallel_context("gradients_mean") if mean is None else flag(mean, "mean")

    def construct(self, grads: Any) -> Any:
        """The gradients of all processes, in the container of this one's."""
        if self._comm is None:
            return grads
        own: list[Tensor] = []
        map_leaves(lambda leaf: own.append(leaf) if isinstance(leaf, Tensor) else None, grads)
        every = iter(summed(own, self._comm))
        return map_leaves(lambda leaf: self._divided(next(every)) if isinstance(leaf, Tensor) else leaf, grads)

    def _divided(self, total: Any) -> Any:
        return total / self.degree if self.mean else total


def summed(arrays: Sequence[Tensor], comm: Any) -> list[Tensor]:
    """The sums of arrays over all processes of a communicator, each of which calls this with arrays of the same shapes.

    Small ones of one dtype that follow each other are sent together.
    """
    from ..mpi import allreduce

    found: list[Any] = []
    for (dtype, large), some in itertools.groupby(arrays, lambda x: (np.dtype(x.dtype), x.nbytes >= LARGE)):
        # MPI has no numbers of 16 bits.
        wide = [x.astype(np.float32) if dtype == HALF else x for x in some]
        if large or len(wide) == 1:
            sums = [allreduce(x, comm=comm) for x in wide]
        else:
            total = allreduce(np.concatenate([x.reshape(-1) for x in wide]), comm=comm)
            ends = np.cumsum([x.size for x in wide])
            sums = [total[end - x.size : end].reshape(x.shape) for x, end in zip(wide, ends.tolist(), strict=True)]
        found += [x.astype(dtype) if dtype == HALF else x for x in sums]
    return found


def group_to_sum_over(group: Any) -> Any:
    """The communicator of the processes that train together: that of a group, or of all in data parallel mode.

    None for a step of this process alone.
    """
    if group is None and not sums_gradients():
        return None
    return communicator(WORLD_GROUP if group is None else group)


def make_equal(cell: Cell, comm: Any) -> None:
    """Give the Parameters of a Cell the values that the first process of a communicator has.

    Raises
    ------
    ShapeError
        If the processes have different Parameters.
    """
    from ..mpi import bcast
    from ..mpi.agreed_errors import Agreement

    own = [(p.name, tuple(p.shape), str(np.dtype(p.dtype))) for p in cell.get_parameters()]
    first = comm.bcast(own)
    with Agreement(comm, ShapeError, "none trains"):
        pair = next((pair for pair in itertools.zip_longest(own, first) if pair[0] != pair[1]), None)
        if pair is not None:
            message = (
                f"The processes train different networks: rank {comm.rank} has {_shown(pair[0])} where rank 0 has "
                f"{_shown(pair[1])}. Make the same network and optimizer in all."
            )
            raise ShapeError(message)
    for parameter in cell.get_parameters():
        if np.dtype(parameter.dtype) == HALF:
            parameter.set_data(bcast(parameter.value().astype(np.float32), comm=comm).astype(HALF))
        else:
            parameter.set_data(bcast(parameter.value(), comm=comm))


def _shown(fact: tuple[str, tuple[int, ...], str] | None) -> str:
    return "no more Parameters" if fact is None else f"{fact[0]!r} of shape {fact[1]} and dtype {fact[2]}"
