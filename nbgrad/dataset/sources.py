"""Sources of datasets: Python generators and sequences, and arrays.

In: a generator function, a sequence, arrays, a dict of arrays. Out: Datasets. Called by users, and by image_files.py,
whose rows are files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..nn.layer_arguments import positive
from .pipeline import Dataset
from .row_cache import checked_cache
from .row_values import Row, as_array, name_list
from .samplers import chosen_sampler
from .worker_threads import in_order


class Indexed(Dataset):
    """Rows that have numbers: a sampler chooses which are read, and threads read them."""

    def __init__(self, sampler: Any, workers: int | None, cache: Any = None) -> None:
        super().__init__()
        self._sampler, self._cache = sampler, checked_cache(cache)
        self._workers = None if workers is None else positive(workers, "num_parallel_workers")

    def _count(self) -> int:
        """The number of all rows."""
        raise NotImplementedError

    def _row(self, index: int) -> Row:
        raise NotImplementedError

    def _size(self) -> int:
        return self._sampler.count(self._count())

    def _rows(self) -> Iterator[Row]:
        count = self._count()
        order = self._sampler.order(count, self._random())
        return in_order(self._fetched, (self._checked(int(index), count) for index in order), self._workers)

    def _fetched(self, index: int) -> Row:
        """A row, from the cache if there is one."""
        return self._row(index) if self._cache is None else self._cache.row(self, index, self._row)

    def _checked(self, index: int, count: int) -> int:
        if not 0 <= index < count:
            message = f"The sampler gives the row {index}, but there are {count}."
            raise ArgumentError(message)
        return index

    def add_sampler(self, new_sampler: Any) -> None:
        """Use another sampler."""
        self._sampler = chosen_sampler(new_sampler, None, None, None, None)

    use_sampler = add_sampler


class GeneratorDataset(Indexed):
    """Rows from Python code.

    Parameters
    ----------
    source : callable or iterable
        A function that returns an iterator; an iterable; or a sequence, with `__getitem__` and `__len__`, whose rows
        can be read in any order and by threads. A row is an array, a number, a text, or a tuple of them.
    column_names : str or list of str
    column_types : list of dtype, optional
        Rows with other dtypes are an error.
    schema : object, optional
        Has no effect.
    num_samples : int, optional
        How many rows at most.
    num_parallel_workers : int
        The number of threads that read a sequence.
    shuffle : bool, optional
        Whether a sequence is read in random order: True by default, as in MindSpore.
    sampler : Sampler or iterable of int, optional
    num_shards, shard_id : int, optional
        Read one part of a sequence.
    batch_sampler : iterable of list of int, optional
        The rows of each batch.
    collate_fn : callable, optional
        Makes a batch of the rows of `batch_sampler`; they are stacked by default.
    **kwargs
        MindSpore's options of processes have no effect.

    Raises
    ------
    ArgumentError, DtypeError
        If arguments do not fit; while iterating, if a row has another number of columns. An error of the source comes
        as it is.

    Examples
    --------
    >>> import nbgrad as nb
    >>> def squares():
    ...     for k in range(3):
    ...         yield k, k * k
    >>> [(int(x), int(y)) for x, y in nb.dataset.GeneratorDataset(squares, ["x", "y"])]
    [(0, 0), (1, 1), (2, 4)]
    """

    def __init__(
        self,
        source: Any,
        column_names: Any = None,
        column_types: Sequence[Any] | None = None,
        schema: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        python_multiprocessing: bool = True,
        max_rowsize: Any = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._source = source
        self._is_sequence = hasattr(source, "__getitem__") and hasattr(source, "__len__") and not callable(source)
        self._is_sequence |= hasattr(type(source), "__getitem__") and hasattr(type(source), "__len__")
        if not self._is_sequence and not callable(source) and not isinstance(source, Iterable):
            message = f"source must be a function, an iterable or a sequence, but got {type(source).__name__}."
            raise DtypeError(message)
        if not self._is_sequence and (shuffle or sampler is not None or num_shards is not None or batch_sampler):
            message = "Only a source with __getitem__ and __len__ can be read in another order, or in parts."
            raise ArgumentError(message)
        chosen = chosen_sampler(sampler, shuffle, num_samples, num_shards, shard_id, default_shuffle=self._is_sequence)
        super().__init__(chosen, num_parallel_workers)
        if column_names is None:
            message = "column_names must name the columns of the source."
            raise ArgumentError(message)
        self._called = name_list(column_names, "column_names")
        self._types = None if column_types is None else [np.dtype(kind) for kind in column_types]
        self._num_samples = num_samples
        self._batches, self._collate = batch_sampler, collate_fn

    def _names(self) -> list[str]:
        return list(self._called)

    def _count(self) -> int:
        return len(self._source)

    def _size(self) -> int:
        if self._batches is not None:
            return len(list(self._batches))
        if self._is_sequence:
            return super()._size()
        if hasattr(self._source, "__len__"):
            count = len(self._source)
        else:
            count = sum(1 for _ in self._iterated())
        return count if self._num_samples is None else min(count, self._num_samples)

    def _row(self, index: int) -> Row:
        return self._taken(self._source[index])

    def _taken(self, row: Any) -> Row:
        """A row of the source as arrays."""
        values = row if isinstance(row, tuple) else (row,)
        if len(values) != len(self._called):
            message = f"A row of the source has {len(values)} columns, but the columns are {self._called}."
            raise ArgumentError(message)
        arrays = tuple([as_array(value) for value in values])
        for name, array, wanted in zip(self._called, arrays, self._types or [], strict=False):
            if array.dtype != wanted:
                message = f"The column {name!r} has dtype {array.dtype}, but column_types says {wanted}."
                raise DtypeError(message)
        return arrays

    def _iterated(self) -> Iterator[Any]:
        rows: Any = self._source() if callable(self._source) else self._source
        return iter(rows)

    def _rows(self) -> Iterator[Row]:
        if self._batches is not None:
            return (self._batch([int(index) for index in indices]) for indices in self._batches)
        if self._is_sequence:
            return super()._rows()
        return self._in_turn()

    def _in_turn(self) -> Iterator[Row]:
        for number, row in enumerate(self._iterated()):
            if self._num_samples is not None and number >= self._num_samples:
                return
            yield self._taken(row)

    def _batch(self, indices: list[int]) -> Row:
        rows = [self._source[index] for index in indices]
        if self._collate is not None:
            return self._taken(self._collate(rows))
        columns = zip(*[self._taken(row) for row in rows], strict=True)
        return tuple([np.stack(column) for column in columns])


class NumpySlicesDataset(Indexed):
    """The slices of arrays along their first axis.

    Parameters
    ----------
    data : list, tuple, dict or ndarray
        A list or an array is one column; a tuple has several, and a dict several with their names.
    column_names : list of str, optional
        "column_0", "column_1", ... by default.
    num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id
        As for `GeneratorDataset`.

    Raises
    ------
    ShapeError
        If columns differ in length.
    ArgumentError
        If there are not as many names as columns.

    Examples
    --------
    >>> import nbgrad as nb
    >>> data = nb.dataset.NumpySlicesDataset(([1, 2], [[3.0, 4.0], [5.0, 6.0]]), ["a", "b"], shuffle=False)
    >>> for row in data.create_dict_iterator(output_numpy=True):
    ...     print(row["a"], row["b"])
    1 [3. 4.]
    2 [5. 6.]
    """

    def __init__(
        self,
        data: Any,
        column_names: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        super().__init__(chosen_sampler(sampler, shuffle, num_samples, num_shards, shard_id), num_parallel_workers)
        columns = (
            list(data.values()) if isinstance(data, Mapping) else list(data) if isinstance(data, tuple) else [data]
        )
        self._columns = [as_array(column) for column in columns]
        lengths = {len(column) if column.ndim else -1 for column in self._columns}
        if len(lengths) != 1 or -1 in lengths:
            message = f"Columns must be arrays of one length, but have the shapes {[c.shape for c in self._columns]}."
            raise ShapeError(message)
        default = list(data) if isinstance(data, Mapping) else [f"column_{k}" for k in range(len(self._columns))]
        self._called = name_list(default if column_names is None else column_names, "column_names")
        if len(self._called) != len(self._columns):
            message = f"There are {len(self._columns)} columns, but the names {self._called}."
            raise ArgumentError(message)

    def _names(self) -> list[str]:
        return list(self._called)

    def _count(self) -> int:
        return len(self._columns[0])

    def _row(self, index: int) -> Row:
        return tuple([np.array(column[index]) for column in self._columns])
