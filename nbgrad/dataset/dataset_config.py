"""MindSpore's `dataset.config`: the seed of shuffles, and the number of worker threads.

In: numbers. Out: the same. Called by users, and by the other files of this folder when an epoch begins.
"""

from __future__ import annotations

import enum
import itertools
import os
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..nn.layer_arguments import flag, positive, whole
from ..tensors.generator import get_seed as get_global_seed

__all__ = [
    "Shuffle",
    "get_num_parallel_workers",
    "get_prefetch_size",
    "get_seed",
    "set_num_parallel_workers",
    "set_prefetch_size",
    "set_seed",
]


class Shuffle(str, enum.Enum):
    """How rows of files are shuffled; only arrays and images are read, which are shuffled as a whole or not at all."""

    FALSE = "false"
    FILES = "files"
    GLOBAL = "global"


_values: dict[str, Any] = {
    "seed": None,
    "num_parallel_workers": min(os.cpu_count() or 1, 4),
    "prefetch_size": 16,
    "numa_enable": False,
    "enable_shared_mem": True,
    "enable_autotune": False,
    "auto_num_workers": False,
    "monitor_sampling_interval": 1000,
}
_streams = itertools.count()
"""Numbers for the random numbers of pipelines, in the order in which they are made."""


def set_seed(seed: int) -> None:
    """Fix the order of shuffles and the numbers of random transforms, of pipelines that are made from now on.

    Parameters
    ----------
    seed : int
        Not negative.

    Raises
    ------
    DtypeError, ArgumentError
        If it is no integer, or negative.

    Examples
    --------
    >>> import nbgrad as nb
    >>> def order():
    ...     nb.dataset.config.set_seed(3)
    ...     return [int(x) for (x,) in nb.dataset.NumpySlicesDataset([1, 2, 3, 4], shuffle=True)]
    >>> order() == order()
    True
    """
    global _streams
    if whole(seed, "seed") < 0:
        message = f"seed must not be negative, but got {seed}."
        raise ArgumentError(message)
    _values["seed"] = int(seed)
    _streams = itertools.count()


def get_seed() -> int | None:
    """The seed of shuffles, if one was set."""
    return _values["seed"]


def new_stream() -> np.random.SeedSequence:
    """Random numbers for a new pipeline: by the seed set here, or by `nb.set_seed`, or others each time."""
    seed = _values["seed"] if _values["seed"] is not None else get_global_seed()
    return np.random.SeedSequence() if seed is None else np.random.SeedSequence([seed, next(_streams)])


def set_num_parallel_workers(num: int) -> None:
    """Choose how many threads compute transforms, where a pipeline does not say it."""
    _values["num_parallel_workers"] = positive(num, "num")


def get_num_parallel_workers() -> int:
    """How many threads compute transforms."""
    return _values["num_parallel_workers"]


def set_prefetch_size(size: int) -> None:
    """Choose how many rows are computed ahead."""
    _values["prefetch_size"] = positive(size, "size")


def get_prefetch_size() -> int:
    """How many rows are computed ahead."""
    return _values["prefetch_size"]


def _option(name: str) -> None:
    """Both functions of an option that has no effect with threads of one process."""

    def set_option(value: bool) -> None:
        _values[name] = flag(value, name)

    def get_option() -> bool:
        return _values[name]

    set_option.__doc__ = f"Note MindSpore's option {name}; it has no effect."
    get_option.__doc__ = f"MindSpore's option {name}."
    set_option.__name__, get_option.__name__ = f"set_{name}", f"get_{name}"
    globals().update({f"set_{name}": set_option, f"get_{name}": get_option})


for _name in ("numa_enable", "enable_shared_mem", "enable_autotune", "auto_num_workers"):
    _option(_name)
