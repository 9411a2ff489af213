"""Patterns of whole blocks: every entry of a block of which there is one.

In: the pattern of a matrix and the size of its blocks. Out: the larger pattern, and the order in which SciPy's matrices
of blocks hold its entries. Called by sparse_derivatives.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError

Block = tuple[int, int]


def checked(block: Any) -> Block | None:
    """The rows and the columns of a block; None for none.

    Raises
    ------
    DtypeError, ArgumentError
        For what is no size.
    """
    if block is None:
        return None
    given = tuple(block) if isinstance(block, tuple | list) else (block, block)
    if len(given) != 2 or not all(isinstance(one, int | np.integer) and not isinstance(one, bool) for one in given):
        message = f"block must be a number of rows and columns, or a pair of numbers, but got {block!r}."
        raise DtypeError(message)
    if min(given) < 1:
        message = f"block must be at least 1, but got {block!r}."
        raise ArgumentError(message)
    return int(given[0]), int(given[1])


def whole_blocks(pattern: Any, block: Block) -> Any:
    """The pattern of all blocks with an entry, as a csr_array of bool.

    Raises
    ------
    ShapeError
        If the blocks do not divide the matrix.
    """
    if pattern.shape[0] % block[0] or pattern.shape[1] % block[1]:
        message = f"Blocks of {block[0]} x {block[1]} do not divide a matrix of shape {pattern.shape}."
        raise ShapeError(message)
    blocks = pattern.tobsr(block)
    blocks.data[...] = True
    found = blocks.tocsr()
    found.sort_indices()
    return found


def order_in_blocks(pattern: Any, block: Block) -> Any:
    """A bsr_array whose entries are the numbers that those of a pattern of whole blocks have in their own order."""
    import scipy.sparse

    numbers = np.arange(pattern.indices.size)
    return scipy.sparse.csr_array((numbers, pattern.indices, pattern.indptr), shape=pattern.shape).tobsr(block)
