"""A step of a program on a device: launches of kernels and calls of libraries, in order.

In: nothing. Out: the data that lies between those who know how an operation is done (loops.py, recipes.py,
libraries.py) and those who run it (the runtime's device program). Nothing here knows of memory: pointers are numbers of
operands. The operands of a step are, in order, what the kernel reads and writes (the accesses of a `Loop` that have a
buffer; the buffers of a `Special`), and after them its workspaces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

LARGEST_GRID = (1 << 31) - 1
"""Blocks along the first axis of a grid, the only one that is used."""


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel: `key` says completely what it is, `make` writes its IR.

    The IR (dialect.py) defines `void @kernel(...)` with the pointers first and 64-bit integers after them.
    """

    key: str
    make: Callable[[], str]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceKernel) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class Launch(NamedTuple):
    """One launch: a grid of `blocks` blocks of `threads` threads with `shared` bytes of memory for each block."""

    kernel: DeviceKernel
    blocks: int
    threads: int
    shared: int
    pointers: tuple[int, ...]
    numbers: tuple[int, ...]


class Routine(NamedTuple):
    """One call of a library, or of a user's launcher, from Python.

    `run(context, addresses, *params)` gets the addresses of its operands and enqueues its work on `context.stream`.
    """

    run: Callable[..., None]
    pointers: tuple[int, ...]
    params: tuple[Any, ...] = ()


class Fill(NamedTuple):
    """Sets each of an operand's first `nbytes` bytes."""

    pointer: int
    byte: int
    nbytes: int


class Recipe(NamedTuple):
    """All that is done for one step, and the bytes of each workspace that it needs meanwhile."""

    actions: tuple[Launch | Routine | Fill, ...]
    workspaces: tuple[int, ...] = ()
