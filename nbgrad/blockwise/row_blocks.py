"""Arrays cut into blocks of rows, of which each is read when it is asked for.

In: arrays that give rows by a slice: ndarrays, memory-mapped files, Zarr and HDF5 arrays, dask arrays. Out: a sequence
of tuples of ndarrays. Called by users, whose blocks go to `map_reduce`.
"""

from __future__ import annotations

import mmap
import operator
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, overload

import numpy as np

from ..errors import ArgumentError, ShapeError

BYTES = 1 << 24
"""A block's bytes, where neither the user nor the array says how many rows it has."""


class Blocks(Sequence[tuple[np.ndarray, ...]]):
    """A sequence of blocks of rows; a slice of it is one again. Made by `blocks`."""

    def __init__(self, arrays: Sequence[Any], bounds: Sequence[tuple[int, int]], starts: Sequence[int]) -> None:
        self._arrays, self._bounds, self._starts = tuple(arrays), list(bounds), tuple(starts)

    def __len__(self) -> int:
        return len(self._bounds)

    @overload
    def __getitem__(self, index: int) -> tuple[np.ndarray, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> Blocks: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return Blocks(self._arrays, self._bounds[index], self._starts)
        low, high = self._bounds[index]
        return tuple(
            [np.asarray(a[low - start : high - start]) for a, start in zip(self._arrays, self._starts, strict=True)]
        )

    def __iter__(self) -> Iterator[tuple[np.ndarray, ...]]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} blocks of {sum(high - low for low, high in self._bounds)} rows>"

    def rows(self, index: int) -> tuple[int, int]:
        """The first row of a block, and the one after its last."""
        return self._bounds[index]

    def __reduce__(self) -> Any:
        """A copy for another process: with the needed rows of arrays in memory, and with the names of mapped files."""
        low = min([low for low, _ in self._bounds], default=0)
        high = max([high for _, high in self._bounds], default=0)
        arrays, starts = [], []
        for array, start in zip(self._arrays, self._starts, strict=True):
            kept, left_out = _portable(array, low - start, high - start)
            arrays.append(kept)
            starts.append(start + left_out)
        return _again, (arrays, self._bounds, starts)


class _File:
    """A memory-mapped array by the name of its file."""

    def __init__(self, *facts: Any) -> None:
        self.facts = facts

    def mapped(self) -> np.ndarray:
        """The array."""
        name, dtype, offset, shape = self.facts
        return np.memmap(name, dtype, "r", offset, shape)


def _portable(array: Any, low: int, high: int) -> tuple[Any, int]:
    """An array for another process, and how many of its first rows are left out."""
    if isinstance(array, np.memmap) and array.filename is not None and array.flags.c_contiguous:
        mapping = array._mmap  # pyright: ignore[reportAttributeAccessIssue]
        start = np.frombuffer(mapping, np.uint8).ctypes.data
        begin = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
        return _File(array.filename, array.dtype, begin + array.ctypes.data - start, array.shape), 0
    return (np.array(array[low:high]), low) if isinstance(array, np.ndarray) else (array, 0)


def _again(arrays: Sequence[Any], bounds: Any, starts: Any) -> Blocks:
    return Blocks([a.mapped() if isinstance(a, _File) else a for a in arrays], bounds, starts)


def blocks(*arrays: Any, rows: int | None = None) -> Blocks:
    """Arrays cut into blocks of rows, of which each is read when it is asked for.

    Parameters
    ----------
    *arrays : array_like
        Arrays with as many rows each: ndarrays, memory-mapped ones, Zarr, HDF5 or dask arrays, or others that a slice
        of rows can be taken from.
    rows : int, optional
        The rows of a block; the last one may have fewer. By default blocks follow the chunks of the first array that
        has some, and have about 16 MB.

    Returns
    -------
    Blocks
        A sequence of tuples of ndarrays, one for each array. Slices of it are such sequences: `blocks(x)[rank::size]`.
        Arrays without rows make one block without rows.

    Raises
    ------
    ArgumentError, ShapeError
        If there is no array, if one has no rows or another number of them, or if `rows` is no positive number.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> x, y = np.arange(10.0).reshape(5, 2), np.arange(5.0)
    >>> parts = nb.blocks(x, y, rows=2)
    >>> parts
    <3 blocks of 5 rows>
    >>> parts[2]
    (array([[8., 9.]]), array([4.]))
    """
    if not arrays:
        message = "blocks takes at least one array, but got none."
        raise ArgumentError(message)
    known = [a if hasattr(a, "shape") and hasattr(a, "__getitem__") else np.asarray(a) for a in arrays]
    counts: list[Any] = [a.shape[0] if len(a.shape) else None for a in known]
    if not all(isinstance(n, int) for n in counts) or len({*counts}) > 1:
        message = f"blocks takes arrays with the same, known number of rows, but got arrays of shapes {_listed(known)}."
        raise ShapeError(message)
    return Blocks(known, _bounds(known, counts[0], rows), [0] * len(known))


def _listed(arrays: Sequence[Any]) -> str:
    return ", ".join(str(tuple(a.shape)) for a in arrays)


def _bounds(arrays: Sequence[Any], count: int, rows: Any) -> list[tuple[int, int]]:
    """The first row of each block, and the one after its last."""
    if rows is None:
        width = sum(prod(a.shape[1:]) * np.dtype(a.dtype).itemsize for a in arrays)
        step = max(1, BYTES // max(width, 1))
        chunks = next((found for a in arrays if (found := _chunk_ends(a, count))), None)
    else:
        step, chunks = operator.index(rows) if hasattr(rows, "__index__") else 0, None
        if step < 1:
            message = f"rows must be a positive number of rows of a block, but got {rows!r}."
            raise ArgumentError(message)
    ends = [*range(step, count, step), count] if chunks is None else _joined(chunks, step)
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _chunk_ends(array: Any, count: int) -> list[int]:
    """The ends of an array's chunks of rows; none for an array without chunks or rows."""
    # Zarr's shards are files, of which chunks are parts.
    chunks = getattr(array, "shards", None) or getattr(array, "chunks", None)
    if not chunks or not count:
        return []
    if isinstance(chunks[0], tuple):  # of dask, where they may differ
        return np.cumsum(chunks[0]).tolist()
    return [*range(int(chunks[0]), count, int(chunks[0])), count]


def _joined(ends: Sequence[int], most: int) -> list[int]:
    """The ends of blocks that are whole chunks with at most so many rows together, or single chunks."""
    found: list[int] = []
    start = 0
    for end, after in zip(ends, [*ends[1:], None], strict=True):
        if after is None or after - start > most:
            found.append(end)
            start = end
    return found
