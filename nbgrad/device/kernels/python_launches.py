"""A launch of a kernel that is written in Python, as recipes.py and its parts put it into their recipes.

In: the kernel's place, its operands with their dtypes, its integers, the grid. Out: a `Launch`.
"""

from __future__ import annotations

from collections.abc import Sequence

from .launches import Launch
from .python_kernels import python_kernel

THREADS = 256
"""Threads of a block, unless a kernel needs another number: eight blocks fill a multiprocessor."""
MOST_BLOCKS = 1 << 16
"""More than any GPU runs at once: kernels whose threads go on in steps of the whole grid get no more."""


def launch(
    place: str,
    operands: Sequence[tuple[int, str]],
    numbers: Sequence[int],
    blocks: int,
    threads: int = THREADS,
    shared: int = 0,
    readonly: int = 0,
) -> Launch:
    """A launch of the function at a place.

    Parameters
    ----------
    place : str
        As `python_kernel` has it.
    operands : sequence of (int, str)
        Per pointer the number of the operand and the dtype of what it points to.
    numbers : sequence of int
        The integers.
    blocks, threads, shared : int
        The grid.
    readonly : int
        So many of the first pointers are only read, and no other points to the same.
    """
    dtypes = tuple([dtype for _, dtype in operands])
    kernel = python_kernel(place, dtypes, len(numbers), readonly)
    pointers = tuple([operand for operand, _ in operands])
    return Launch(kernel, max(1, blocks), threads, shared, pointers, tuple([int(number) for number in numbers]))


def wide_dtype(dtype: str) -> str:
    """The dtype that sums of elements are computed with: floats as they are, whole numbers with 64 bits."""
    return dtype if dtype in ("float32", "float64", "uint64") else "int64"


def whole_warps(count: int, most: int = THREADS) -> int:
    """The smallest number of threads that is at least `count` and fills warps, or `most`."""
    return min(most, max(32, -(-count // 32) * 32))


def power_of_two(count: int) -> int:
    """The smallest power of two that is at least `count`."""
    return 1 << max(0, count - 1).bit_length()
