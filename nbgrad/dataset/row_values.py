"""Rows of datasets: their values as arrays, the names of columns, epochs, padding.

In: anything that a source or a function returns. Out: ndarrays, and Tensors at the end. Called by pipeline.py and
sources.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..record.tensor import Tensor

Row = tuple[Any, ...]


def as_array(value: Any) -> np.ndarray:
    """A value of a row as an ndarray."""
    if isinstance(value, Tensor):
        return value.asnumpy()
    try:
        array = np.asarray(value)
    except ValueError as error:
        message = f"A column is no array: {error}"
        raise ShapeError(message) from None
    if array.dtype == object:
        message = f"A column holds {type(value).__name__}, which is no array, number or text."
        raise DtypeError(message)
    return array


def name_list(names: Any, what: str) -> list[str]:
    """A name, or several, as a list."""
    found = [names] if isinstance(names, str) else list(names)
    if not all(isinstance(name, str) and name for name in found) or len(set(found)) != len(found):
        message = f"{what} must be different names, but got {names!r:.80}."
        raise ArgumentError(message)
    return found


class Epochs:
    """Epochs of a dataset, one for each loop."""

    def __init__(self, dataset: Any, num_epochs: int, as_numpy: bool, names: list[str] | None) -> None:
        self._dataset, self._left, self._as_numpy, self._names = dataset, num_epochs, as_numpy, names
        self._running: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        if self._left == 0:
            return
        self._left -= 1
        for row in self._dataset._rows():
            arrays = [as_array(value) for value in row]
            values = [array if self._as_numpy or array.dtype.kind in "USO" else Tensor(array) for array in arrays]
            yield values if self._names is None else dict(zip(self._names, values, strict=True))

    def __next__(self) -> Any:
        if self._running is None:
            self._running = iter(self)
        try:
            return next(self._running)
        except StopIteration:
            self._running = None
            raise

    def get_dataset_size(self) -> int:
        """The number of rows of an epoch."""
        return self._dataset.get_dataset_size()


class BatchInfo:
    """The number of a batch and of its epoch, for `per_batch_map`."""

    def __init__(self, batch: int, epoch: int) -> None:
        self._batch, self._epoch = batch, epoch

    def get_batch_num(self) -> int:
        """The number of the batch, from 0."""
        return self._batch

    def get_epoch_num(self) -> int:
        """The number of the epoch, from 0."""
        return self._epoch


def padded(arrays: list[np.ndarray], shape: Any, value: Any) -> list[np.ndarray]:
    """Arrays of one shape, with a number at the ends."""
    largest = [max(extents) for extents in zip(*[array.shape for array in arrays], strict=True)]
    wanted = [high if n is None else n for high, n in zip(largest, shape or [None] * len(largest), strict=True)]
    return [
        np.pad(
            array[tuple([slice(n) for n in wanted])],
            [(0, max(n - m, 0)) for n, m in zip(wanted, array.shape, strict=True)],
            constant_values=value or 0,
        )
        for array in arrays
    ]
