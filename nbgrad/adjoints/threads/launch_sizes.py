"""The numbers of blocks and threads with which users want their kernels to be launched.

In: the kernel that `nb.kernel` gets, and its `launch=`. Out: a `Launch` for the arguments of a call. Called by
kernel.py; thread_kernels.py and others get a `Launch`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ArgumentError
from .thread_names import is_cuda_function


@dataclass(frozen=True)
class Launch:
    """The numbers of blocks and of threads in a block, along three axes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        """The number of threads in a block."""
        return math.prod(self.block)

    @property
    def kind(self) -> tuple[tuple[bool, ...], tuple[int, ...]]:
        """The sizes that derivatives depend on: the axes with several blocks, and the sizes of a block."""
        return tuple([n > 1 for n in self.grid]), self.block

    @property
    def several(self) -> list[bool]:
        """Whether there are several threads along each axis."""
        return [a * b > 1 for a, b in zip(self.grid, self.block, strict=True)]


def with_configuration(function: Any, launch: Any) -> tuple[Any, Any]:
    """A kernel and its launch, given the kernel itself or one that has a launch: `kernel[blocks, threads]`."""
    inner = getattr(function, "dispatcher", None)
    if is_cuda_function(inner):
        sizes = function.griddim, function.blockdim, function.sharedmem
        function = inner
    elif is_cuda_function(function):
        sizes = (getattr(function, "grid_dim", None), getattr(function, "block_dim", None))
        sizes = (*sizes, getattr(function, "dynshared_size", 0))
    else:
        if launch is not None:
            message = "launch= of nb.kernel is for kernels of cuda.jit, which this one is not. Leave it out."
            raise ArgumentError(message)
        return function, None
    if sizes[2]:
        message = "nb.kernel got a kernel with dynamic shared memory. Give its shared arrays their shapes."
        raise ArgumentError(message)
    if launch is None and sizes[0] is None:
        message = (
            "nb.kernel needs the launch of a kernel of cuda.jit: nb.kernel(f[blocks, threads]), or launch=, a function "
            "of the arguments, such as launch=lambda x, out: ((x.size + 127) // 128, 128)."
        )
        raise ArgumentError(message)
    return function, sizes[:2] if launch is None else launch


def launch_for(launch: Any, name: str, arguments: Sequence[Any]) -> Launch:
    """The launch for the arguments of a call, in which arrays are described."""
    found = launch
    if callable(launch):
        try:
            found = launch(*arguments)
        except Exception as error:
            message = f"The launch= of {name}() has raised {type(error).__name__}: {error}."
            raise ArgumentError(message) from error
    if isinstance(found, tuple) and len(found) == 2:
        grid, block = map(_three, found)
        if grid is not None and block is not None:
            return Launch(grid, block)
    message = (
        f"launch= of {name}() must give the blocks and the threads in a block, such as (80, 128) or ((8, 8), (16, 8)), "
        f"but gave {found!r}."
    )
    raise ArgumentError(message)


def _three(sizes: Any) -> tuple[int, int, int] | None:
    """Sizes along three axes; None if they are none."""
    many = sizes if isinstance(sizes, tuple | list) else (sizes,)
    if not 1 <= len(many) <= 3 or not all(isinstance(one, int | np.integer) and one > 0 for one in many):
        return None
    x, y, z = (*[int(one) for one in many], 1, 1)[:3]
    return x, y, z
