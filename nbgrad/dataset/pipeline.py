"""Dataset: the base of all, and the stages that follow a source: map, batch, shuffle, repeat, zip.

In: another dataset, and functions of arrays. Out: rows, tuples of ndarrays with a name for each column; iterators over
them. Called by users, by sources.py and by `train.Model`. A stage holds the one before it and makes its rows when they
are asked for; transforms run in threads (worker_threads.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..nn.layer_arguments import flag, positive
from .dataset_config import new_stream
from .row_values import BatchInfo, Epochs, Row, as_array, name_list, padded
from .worker_threads import in_order


class Dataset:
    """Rows of named columns; subclasses define `_names`, `_size` and `_rows`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> data = nb.dataset.NumpySlicesDataset({"x": np.arange(5.0), "y": np.arange(5)}, shuffle=False)
    >>> data = data.map(lambda x: x * 10, "x").batch(2)
    >>> for x, y in data.create_tuple_iterator():
    ...     print(x, y)
    [ 0. 10.] [0 1]
    [20. 30.] [2 3]
    [40.] [4]
    """

    def __init__(self, *before: Dataset) -> None:
        self._before = before
        self._stream = new_stream()
        self._epoch = 0

    def _names(self) -> list[str]:
        """The names of the columns."""
        return self._before[0]._names()

    def _size(self) -> int:
        """The number of rows of an epoch."""
        return self._before[0]._size()

    def _rows(self) -> Iterator[Row]:
        """The rows of the next epoch."""
        raise NotImplementedError

    def _random(self) -> np.random.Generator:
        """Random numbers of the next epoch."""
        self._epoch += 1
        return np.random.default_rng(np.random.SeedSequence(self._stream.entropy, spawn_key=(self._epoch,)))

    # ----- Stages -----

    def map(
        self,
        operations: Any,
        input_columns: Any = None,
        output_columns: Any = None,
        column_order: Any = None,
        num_parallel_workers: int | None = None,
        **kwargs: Any,
    ) -> Dataset:
        """Apply functions to columns.

        Parameters
        ----------
        operations : callable, or list of callable
            Each gets the columns as ndarrays, in order, and returns one array or a tuple.
        input_columns : str or list of str, optional
            The first column by default.
        output_columns : str or list of str, optional
            The names of the results: those of the input, by default.
        column_order : list of str, optional
            The columns that are kept, and their order.
        num_parallel_workers : int, optional
            The number of threads; the order of the rows stays.
        **kwargs
            MindSpore's options of processes, caches and callbacks have no effect.

        Raises
        ------
        ArgumentError
            If there is no such column, or functions return another number of arrays. An error of a function comes as it
            is.
        """
        dataset: Dataset = MapDataset(self, operations, input_columns, output_columns, num_parallel_workers)
        return dataset if column_order is None else dataset.project(column_order)

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        per_batch_map: Callable[..., Any] | None = None,
        input_columns: Any = None,
        output_columns: Any = None,
        **kwargs: Any,
    ) -> Dataset:
        """Stack rows.

        Parameters
        ----------
        batch_size : int
        drop_remainder : bool
            Whether the last rows are left out if they do not fill a batch.
        num_parallel_workers : int, optional
            Has no effect: stacking is done where the batch is asked for.
        per_batch_map : callable, optional
            Gets the columns of a batch as lists of arrays, and a BatchInfo; returns as many lists.
        input_columns, output_columns : str or list of str, optional
            The columns of `per_batch_map`, and the names of its results.

        Raises
        ------
        ShapeError
            While iterating, if arrays of a column differ in shape.
        """
        return BatchDataset(self, batch_size, drop_remainder, per_batch_map, input_columns, output_columns)

    def padded_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        pad_info: Mapping[str, Any] | None = None,
    ) -> Dataset:
        """Stack rows after padding arrays to one shape: the largest of the batch, or that of `pad_info`.

        Parameters
        ----------
        batch_size, drop_remainder, num_parallel_workers
            As for `batch`.
        pad_info : dict, optional
            Name of a column -> (shape or None, number to pad with).
        """
        return BatchDataset(self, batch_size, drop_remainder, None, None, None, pad_info or {})

    def shuffle(self, buffer_size: int) -> Dataset:
        """Give rows in random order: each is drawn from a buffer of so many, which is filled again."""
        return ShuffleDataset(self, buffer_size)

    def repeat(self, count: int | None = None) -> Dataset:
        """Make an epoch of so many epochs; without a number, of one after the other without end."""
        return RepeatDataset(self, count)

    def take(self, count: int = -1) -> Dataset:
        """The first rows of each epoch."""
        return _Numbered(self, slice(0, None if count == -1 else positive(count, "count")))

    def skip(self, count: int) -> Dataset:
        """All rows but the first ones."""
        return _Numbered(self, slice(positive(count, "count") if count else 0, None))

    def filter(
        self, predicate: Callable[..., Any], input_columns: Any = None, num_parallel_workers: int | None = None
    ) -> Dataset:
        """The rows for which a function of columns is true."""
        return _Filtered(self, predicate, input_columns)

    def rename(self, input_columns: Any, output_columns: Any) -> Dataset:
        """Give columns other names."""
        old, new = name_list(input_columns, "input_columns"), name_list(output_columns, "output_columns")
        places = self._places(old)
        if len(new) != len(old):
            message = f"There are {len(old)} columns to rename, but {len(new)} new names."
            raise ArgumentError(message)
        names = self._names()
        for place, name in zip(places, new, strict=True):
            names[place] = name
        return _Columns(self, list(range(len(names))), name_list(names, "The columns"))

    def project(self, columns: Any) -> Dataset:
        """Keep columns, in the order given."""
        names = name_list(columns, "columns")
        return _Columns(self, self._places(names), names)

    def zip(self, datasets: Any) -> Dataset:
        """Put the columns of datasets side by side."""
        return ZipDataset((self, *(datasets if isinstance(datasets, tuple | list) else (datasets,))))

    def concat(self, datasets: Any) -> Dataset:
        """Put the rows of datasets one after the other."""
        return _Joined((self, *(datasets if isinstance(datasets, tuple | list) else (datasets,))))

    def __add__(self, datasets: Any) -> Dataset:
        return self.concat(datasets)

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """The dataset that a function makes of this one."""
        return apply_func(self)

    def split(self, sizes: Sequence[float], randomize: bool = True) -> tuple[Dataset, ...]:
        """Parts of the dataset.

        Parameters
        ----------
        sizes : list of int or list of float
            Numbers of rows, or shares that sum to 1.
        randomize : bool
            Whether rows are drawn at random, once; else the parts are pieces one after the other.

        Raises
        ------
        ArgumentError
            If the sizes do not make up the dataset.
        """
        total = self._size()
        counts = [size if isinstance(size, int) else round(size * total) for size in sizes]
        if counts and not isinstance(sizes[0], int) and math.isclose(sum(sizes), 1.0):
            counts[0] += total - sum(counts)
        if sum(counts) != total or min(counts, default=0) <= 0:
            message = f"The parts {list(sizes)} do not make up {total} rows."
            raise ArgumentError(message)
        order = self._random().permutation(total) if flag(randomize, "randomize") else np.arange(total)
        ends = np.cumsum(counts)
        return tuple(
            [_Numbered(self, frozenset(order[end - n : end].tolist())) for n, end in zip(counts, ends, strict=True)]
        )

    # ----- Iterating -----

    def create_tuple_iterator(
        self, columns: Any = None, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = True
    ) -> Iterable[list[Any]]:
        """An iterator over epochs: each `for` loop over it is one.

        Parameters
        ----------
        columns : list of str, optional
            The columns, in their order.
        num_epochs : int
            After so many loops it gives nothing more; -1: always.
        output_numpy : bool
            Whether rows hold ndarrays; else Tensors.
        do_copy : bool
            Has no effect: arrays are never shared with the source.
        """
        dataset = self if columns is None else self.project(columns)
        return Epochs(dataset, num_epochs, flag(output_numpy, "output_numpy"), None)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = True
    ) -> Iterable[dict[str, Any]]:
        """An iterator over epochs, of dicts of names and arrays; arguments as for `create_tuple_iterator`."""
        return Epochs(self, num_epochs, flag(output_numpy, "output_numpy"), self._names())

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(self.create_tuple_iterator())

    # ----- Facts -----

    def __len__(self) -> int:
        return self.get_dataset_size()

    def get_dataset_size(self) -> int:
        """The number of rows, or of batches, in an epoch."""
        return self._size()

    def get_col_names(self) -> list[str]:
        """The names of the columns."""
        return self._names()

    def _kept(self, name: str, default: Any) -> Any:
        """A fact of the stages before."""
        for stage in self._before:
            return stage._kept(name, default)
        return default

    def get_batch_size(self) -> int:
        """The number of rows of a batch; 1 without batches."""
        return self._kept("batch_size", 1)

    def get_repeat_count(self) -> int:
        """How many epochs make one."""
        return self._kept("count", 1)

    def num_classes(self) -> int | None:
        """The number of classes, if the source knows it."""
        return self._kept("classes", None)

    def get_class_indexing(self) -> dict[str, int]:
        """The numbers of the classes by name, if the source has names."""
        return self._kept("class_indexing", {})

    def _first(self) -> Row:
        for row in self._rows():
            return row
        return ()

    def output_shapes(self, estimate: bool = False) -> list[list[int]]:
        """The shapes of the columns of the first row."""
        return [list(np.shape(value)) for value in self._first()]

    def output_types(self) -> list[Any]:
        """The dtypes of the columns of the first row."""
        return [as_array(value).dtype for value in self._first()]

    def reset(self) -> None:
        """Begin again with the first epoch."""
        self._epoch = 0
        for stage in self._before:
            stage.reset()

    def _places(self, names: Iterable[str]) -> list[int]:
        """The places of columns."""
        known = self._names()
        missing = [name for name in names if name not in known]
        if missing:
            message = f"There is no column {missing[0]!r}; the columns are: {', '.join(known)}."
            raise ArgumentError(message)
        return [known.index(name) for name in names]


# ----- The stages -----


class MapDataset(Dataset):
    """Functions of columns."""

    def __init__(self, before: Dataset, operations: Any, inputs: Any, outputs: Any, workers: int | None) -> None:
        super().__init__(before)
        self._operations = list(operations) if isinstance(operations, list | tuple) else [operations]
        if not self._operations or not all(callable(operation) for operation in self._operations):
            message = f"operations must be functions, but got {operations!r:.80}."
            raise DtypeError(message)
        names = before._names()
        self._inputs = names[:1] if inputs is None else name_list(inputs, "input_columns")
        self._outputs = self._inputs if outputs is None else name_list(outputs, "output_columns")
        self._at = before._places(self._inputs)
        self._rest = [place for place in range(len(names)) if place not in self._at]
        self._workers = None if workers is None else positive(workers, "num_parallel_workers")

    def _names(self) -> list[str]:
        names = self._before[0]._names()
        if len(self._outputs) == len(self._at):
            for place, name in zip(self._at, self._outputs, strict=True):
                names[place] = name
            return names
        return [*self._outputs, *[names[place] for place in self._rest]]

    def _rows(self) -> Iterator[Row]:
        random = self._random()
        rows = ((row, int(random.integers(2**63))) for row in self._before[0]._rows())
        return in_order(self._mapped, rows, self._workers)

    def _mapped(self, work: tuple[Row, int]) -> Row:
        row, seed = work
        values: tuple[Any, ...] = tuple([row[place] for place in self._at])
        random = np.random.default_rng(seed)
        for operation in self._operations:
            draw = getattr(operation, "_with_random", None)
            found = operation(*values) if draw is None else draw(random, *values)
            values = found if isinstance(found, tuple) else (found,)
        if len(values) != len(self._outputs):
            message = f"The functions of map return {len(values)} arrays, but the columns are {self._outputs}."
            raise ArgumentError(message)
        arrays = [as_array(value) for value in values]
        if len(self._outputs) != len(self._at):
            return (*arrays, *[row[place] for place in self._rest])
        result = list(row)
        for place, array in zip(self._at, arrays, strict=True):
            result[place] = array
        return tuple(result)


class BatchDataset(Dataset):
    """Stacked rows."""

    def __init__(
        self,
        before: Dataset,
        batch_size: int,
        drop_remainder: bool,
        per_batch_map: Callable[..., Any] | None,
        inputs: Any,
        outputs: Any,
        padding: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(before)
        self.batch_size = positive(batch_size, "batch_size")
        self._drop = flag(drop_remainder, "drop_remainder")
        self._map = per_batch_map
        names = before._names()
        self._inputs = before._places(names if inputs is None else name_list(inputs, "input_columns"))
        own = [names[place] for place in self._inputs]
        self._outputs = own if outputs is None else name_list(outputs, "output_columns")
        self._padding = padding
        if padding:
            before._places(padding)

    def _kept(self, name: str, default: Any) -> Any:
        return self.batch_size if name == "batch_size" else super()._kept(name, default)

    def _size(self) -> int:
        rows = self._before[0]._size()
        return rows // self.batch_size if self._drop else -(-rows // self.batch_size)

    def _names(self) -> list[str]:
        names = self._before[0]._names()
        if self._map is None:
            return names
        return [*self._outputs, *[name for place, name in enumerate(names) if place not in self._inputs]]

    def _rows(self) -> Iterator[Row]:
        self._epoch += 1
        batch: list[Row] = []
        number = 0
        for row in self._before[0]._rows():
            batch.append(row)
            if len(batch) == self.batch_size:
                yield self._stacked(batch, number)
                batch, number = [], number + 1
        if batch and not self._drop:
            yield self._stacked(batch, number)

    def _stacked(self, rows: list[Row], number: int) -> Row:
        columns: list[Any] = [list(column) for column in zip(*rows, strict=True)]
        names = self._before[0]._names()
        if self._map is not None:
            found = self._map(*[columns[place] for place in self._inputs], BatchInfo(number, self._epoch - 1))
            made = list(found) if isinstance(found, tuple) else [found]
            if len(made) != len(self._outputs):
                message = f"per_batch_map returns {len(made)} columns, but the columns are {self._outputs}."
                raise ArgumentError(message)
            columns = [*made, *[column for place, column in enumerate(columns) if place not in self._inputs]]
            names = self._names()
        return tuple([self._column(name, column) for name, column in zip(names, columns, strict=True)])

    def _column(self, name: str, values: Any) -> np.ndarray:
        arrays = [as_array(value) for value in values]
        if self._padding is not None and (not self._padding or name in self._padding):
            arrays = padded(arrays, *self._padding.get(name, (None, 0)))
        shapes = {array.shape for array in arrays}
        if len(shapes) > 1:
            message = (
                f"The arrays of the column {name!r} differ in shape: {', '.join(map(str, sorted(shapes)))}. Make them "
                "alike with map, or use padded_batch."
            )
            raise ShapeError(message)
        return np.stack(arrays)


class ShuffleDataset(Dataset):
    """Rows drawn from a buffer."""

    def __init__(self, before: Dataset, buffer_size: int) -> None:
        super().__init__(before)
        if positive(buffer_size, "buffer_size") < 2:
            message = "buffer_size must be at least 2."
            raise ArgumentError(message)
        self._buffer_size = buffer_size

    def _rows(self) -> Iterator[Row]:
        random, buffer = self._random(), []
        for row in self._before[0]._rows():
            buffer.append(row)
            if len(buffer) > self._buffer_size:
                place = int(random.integers(self._buffer_size))
                yield buffer[place]
                buffer[place] = buffer.pop()
        for place in random.permutation(len(buffer)):
            yield buffer[place]


class RepeatDataset(Dataset):
    """Several epochs as one."""

    def __init__(self, before: Dataset, count: int | None) -> None:
        super().__init__(before)
        self.count = None if count in (None, -1) else positive(count, "count")

    def _kept(self, name: str, default: Any) -> Any:
        return (self.count or -1) if name == "count" else super()._kept(name, default)

    def _size(self) -> int:
        return self._before[0]._size() * (self.count or 1)

    def _rows(self) -> Iterator[Row]:
        done = 0
        while self.count is None or done < self.count:
            found = False
            for row in self._before[0]._rows():
                found = True
                yield row
            if not found:
                return
            done += 1


class _Numbered(Dataset):
    """The rows from one to another, or those of a set, by their numbers."""

    def __init__(self, before: Dataset, numbers: slice | frozenset[int]) -> None:
        super().__init__(before)
        self._numbers = numbers

    def _size(self) -> int:
        numbers = self._numbers
        return len(range(self._before[0]._size())[numbers]) if isinstance(numbers, slice) else len(numbers)

    def _rows(self) -> Iterator[Row]:
        rows, numbers = self._before[0]._rows(), self._numbers
        if isinstance(numbers, slice):
            return islice(rows, numbers.start, numbers.stop)
        return (row for number, row in enumerate(rows) if number in numbers)


class _Filtered(Dataset):
    """The rows for which a function is true."""

    def __init__(self, before: Dataset, predicate: Callable[..., Any], inputs: Any) -> None:
        super().__init__(before)
        self._predicate = predicate
        self._at = before._places(before._names() if inputs is None else name_list(inputs, "input_columns"))

    def _size(self) -> int:
        return sum(1 for _ in self._rows())

    def _rows(self) -> Iterator[Row]:
        return (row for row in self._before[0]._rows() if self._predicate(*[row[place] for place in self._at]))


class _Columns(Dataset):
    """Some columns, under other names."""

    def __init__(self, before: Dataset, places: list[int], names: list[str]) -> None:
        super().__init__(before)
        self._at, self._called = places, names

    def _names(self) -> list[str]:
        return list(self._called)

    def _rows(self) -> Iterator[Row]:
        return (tuple([row[place] for place in self._at]) for row in self._before[0]._rows())


def _datasets(datasets: Any) -> tuple[Dataset, ...]:
    if not isinstance(datasets, tuple | list) or not all(isinstance(one, Dataset) for one in datasets) or not datasets:
        message = f"A tuple of datasets is needed, but got {datasets!r:.80}."
        raise DtypeError(message)
    return tuple(datasets)


class ZipDataset(Dataset):
    """Datasets side by side; the shortest one ends the epoch. `nb.dataset.zip` is another name of the class.

    Parameters
    ----------
    datasets : tuple of Dataset
        With different names of columns.

    Examples
    --------
    >>> import nbgrad as nb
    >>> x = nb.dataset.NumpySlicesDataset([1, 2], ["x"], shuffle=False)
    >>> y = nb.dataset.NumpySlicesDataset([3, 4], ["y"], shuffle=False)
    >>> [(int(a), int(b)) for a, b in nb.dataset.zip((x, y))]
    [(1, 3), (2, 4)]
    """

    def __init__(self, datasets: Any) -> None:
        super().__init__(*_datasets(datasets))
        self._called = name_list([name for one in self._before for name in one._names()], "The columns")

    def _names(self) -> list[str]:
        return list(self._called)

    def _size(self) -> int:
        return min(one._size() for one in self._before)

    def _rows(self) -> Iterator[Row]:
        for rows in zip(*[one._rows() for one in self._before], strict=False):
            yield tuple([value for row in rows for value in row])


class _Joined(Dataset):
    """Datasets one after the other."""

    def __init__(self, datasets: Any) -> None:
        super().__init__(*_datasets(datasets))
        if any(one._names() != self._before[0]._names() for one in self._before):
            message = f"Datasets to join need the same columns, but got {[one._names() for one in self._before]}."
            raise ArgumentError(message)

    def _size(self) -> int:
        return sum(one._size() for one in self._before)

    def _rows(self) -> Iterator[Row]:
        for one in self._before:
            yield from one._rows()
