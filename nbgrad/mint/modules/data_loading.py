"""PyTorch's `utils.data`: data sets that are indexed, and batches of them.

In: Tensors, or objects with `__getitem__` and `__len__`. Out: batches. Called by users, as `torch_names.utils.data`.
All is computed in this process; orders come from the generator that `manual_seed` seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ... import ops
from ...errors import ArgumentError, ShapeError
from ...record.tensor import Tensor
from ..own_parameters import randperm

__all__ = [
    "BatchSampler",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "random_split",
]


def _order(count: int) -> list[int]:
    return [int(k) for k in randperm(count).asnumpy()]


class Dataset:
    """The base of data sets with `__getitem__` and `__len__`."""

    def __getitem__(self, index: Any) -> Any:
        message = f"{type(self).__name__} has no __getitem__ method."
        raise NotImplementedError(message)

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """The base of data sets that are only iterated over."""


class TensorDataset(Dataset):
    """Rows of Tensors with the same first extent."""

    def __init__(self, *tensors: Any) -> None:
        if any(one.shape[0] != tensors[0].shape[0] for one in tensors):
            message = "Size mismatch between tensors"
            raise ShapeError(message)
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple([one[index] for one in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class Subset(Dataset):
    """Some examples of a data set."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[int(self.indices[index])]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """Several data sets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        self.cumulative_sizes = np.cumsum([len(one) for one in self.datasets]).tolist()

    def __getitem__(self, index: int) -> Any:
        at = index + len(self) if index < 0 else index
        number = int(np.searchsorted(self.cumulative_sizes, at, side="right"))
        before = self.cumulative_sizes[number - 1] if number else 0
        return self.datasets[number][at - before]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Parts of a data set at random, of numbers of examples or of fractions that sum to 1."""
    del generator
    counts = list(lengths)
    if all(isinstance(one, float) for one in counts) and abs(sum(counts) - 1) < 1e-6:
        counts = [int(len(dataset) * one) for one in counts]
        for k in range(len(dataset) - sum(counts)):
            counts[k % len(counts)] += 1
    if sum(counts) != len(dataset):
        message = "Sum of input lengths does not equal the length of the input dataset!"
        raise ArgumentError(message)
    order, ends = _order(len(dataset)), np.cumsum(counts)
    return [Subset(dataset, order[int(end - count) : int(end)]) for end, count in zip(ends, counts, strict=True)]


# ----- Orders -----


class Sampler:
    """The base of orders of examples."""

    def __init__(self, data_source: Any = None) -> None:
        self.data_source = data_source


class SequentialSampler(Sampler):
    """One example after the other."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Examples in a random order; with `replacement` some of them several times."""

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        del generator
        super().__init__(data_source)
        self.replacement = replacement
        self.num_samples = len(data_source) if num_samples is None else num_samples

    def __iter__(self) -> Iterator[int]:
        count = len(self.data_source)
        if self.replacement:
            return iter([int(k) for k in ops.randint(0, count, (self.num_samples,)).asnumpy()])
        rounds = -(-self.num_samples // count)
        return iter([k for _ in range(rounds) for k in _order(count)][: self.num_samples])

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Some examples in a random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        del generator
        self.indices = indices

    def __iter__(self) -> Iterator[int]:
        return iter([self.indices[k] for k in _order(len(self.indices))])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Examples by weights."""

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None) -> None:
        del generator
        self.weights = np.asarray(weights.asnumpy() if isinstance(weights, Tensor) else weights, np.float64)
        self.num_samples, self.replacement = num_samples, replacement

    def __iter__(self) -> Iterator[int]:
        parts = self.weights / self.weights.sum()
        draws = ops.rand(self.num_samples if self.replacement else parts.size, dtype="float64").asnumpy()
        if self.replacement:
            return iter(np.searchsorted(np.cumsum(parts), draws).clip(max=parts.size - 1).tolist())
        with np.errstate(divide="ignore"):
            keys = np.log(draws) / parts
        return iter(np.argsort(-keys)[: self.num_samples].tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of `batch_size` positions of another order."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool = False) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


# ----- Batches -----


def default_collate(batch: Sequence[Any]) -> Any:
    """One example after the other, joined: Tensors along a new first axis, numbers as a Tensor, containers by parts."""
    first = batch[0]
    if isinstance(first, Tensor):
        return ops.stack(list(batch))
    if isinstance(first, np.ndarray | np.generic):
        return Tensor(np.stack(list(batch)))
    if isinstance(first, bool | int):
        return Tensor(np.array(batch))
    if isinstance(first, float):
        return Tensor(np.array(batch, np.float64))
    if isinstance(first, str | bytes):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate([one[key] for one in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*[default_collate(list(part)) for part in zip(*batch, strict=True)])
    if isinstance(first, tuple | list):
        return [default_collate(list(part)) for part in zip(*batch, strict=True)]
    message = f"default_collate takes Tensors, arrays, numbers, texts and containers, but got {type(first).__name__}."
    raise ArgumentError(message)


class DataLoader:
    """Batches of a data set.

    Parameters
    ----------
    dataset : object with `__getitem__` and `__len__`, or iterable
    batch_size : int, optional
        None for examples one by one.
    shuffle : bool
        Whether each pass has another order.
    sampler, batch_sampler : iterable, optional
        The order of examples, or the lists of positions.
    collate_fn : callable, optional
        Makes a batch of a list of examples.
    drop_last : bool
        Whether a last batch that is smaller is left out.
    num_workers, pin_memory, generator and others
        PyTorch's; have no effect.

    Examples
    --------
    >>> import nbgrad.mint.torch_names as torch
    >>> data = torch.utils.data.TensorDataset(torch.arange(5), torch.zeros(5, 2))
    >>> [x.tolist() for x, y in torch.utils.data.DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        **others: Any,
    ) -> None:
        del num_workers, pin_memory, timeout, worker_init_fn, others
        if sampler is not None and shuffle:
            message = "sampler option is mutually exclusive with shuffle"
            raise ArgumentError(message)
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.collate_fn = default_collate if collate_fn is None else collate_fn
        self._iterates = isinstance(dataset, IterableDataset)
        self._converts = collate_fn
        if self._iterates:
            return
        if sampler is None:
            sampler = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler

    def __iter__(self) -> Iterator[Any]:
        if self._iterates:
            yield from self._batches_of_iterable()
        elif self.batch_sampler is None:
            for index in self.sampler:
                example = self.dataset[index]
                yield example if self._converts is None else self._converts(example)
        else:
            for indices in self.batch_sampler:
                if self._converts is None and type(self.dataset) is TensorDataset:
                    yield list(self.dataset[Tensor(np.array(indices, np.int64))])
                else:
                    yield self.collate_fn([self.dataset[index] for index in indices])

    def _batches_of_iterable(self) -> Iterator[Any]:
        if self.batch_size is None:
            yield from self.dataset
            return
        batch: list[Any] = []
        for example in self.dataset:
            batch.append(example)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.collate_fn(batch)

    def __len__(self) -> int:
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
