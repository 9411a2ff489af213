"""Samplers: which rows of a source are read in an epoch, and in which order.

In: the number of rows. Out: indices. Called by sources.py, and by users, who give them to datasets and may write their
own with `__iter__`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..nn.layer_arguments import flag, positive, whole


class Sampler:
    """The base of samplers; subclasses define `__iter__`, which gives indices of rows.

    Parameters
    ----------
    num_samples : int, optional
        How many rows at most.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Backwards(nb.dataset.Sampler):
    ...     def __iter__(self):
    ...         return iter(range(self.dataset_size - 1, -1, -1))
    >>> [int(x) for (x,) in nb.dataset.NumpySlicesDataset([1, 2, 3], sampler=Backwards())]
    [3, 2, 1]
    """

    dataset_size = 0
    """The number of rows of the dataset that uses it."""

    def __init__(self, num_samples: int | None = None) -> None:
        self.num_samples = None if not num_samples else positive(num_samples, "num_samples")

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError

    def order(self, size: int, random: np.random.Generator) -> Iterable[int]:
        """The indices of an epoch."""
        self.dataset_size = size
        found = [int(index) for index in self]
        return found[: self.num_samples]

    def count(self, size: int) -> int:
        """The number of rows of an epoch."""
        return len(list(self.order(size, np.random.default_rng(0))))


class SequentialSampler(Sampler):
    """Rows in their order.

    Parameters
    ----------
    start_index : int, optional
    num_samples : int, optional
    """

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.start_index = whole(start_index or 0, "start_index")

    def order(self, size: int, random: np.random.Generator) -> Iterable[int]:
        """The indices of an epoch."""
        stop = size if self.num_samples is None else min(size, self.start_index + self.num_samples)
        return range(self.start_index, stop)


class RandomSampler(Sampler):
    """Rows in random order.

    Parameters
    ----------
    replacement : bool
        Whether a row may come twice.
    num_samples : int, optional
    """

    def __init__(self, replacement: bool = False, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.replacement = flag(replacement, "replacement")

    def order(self, size: int, random: np.random.Generator) -> Iterable[int]:
        """The indices of an epoch."""
        if self.replacement:
            return random.integers(0, size, size if self.num_samples is None else self.num_samples)
        return random.permutation(size)[: self.num_samples]


class DistributedSampler(Sampler):
    """Every `num_shards`-th row, so that several processes share a dataset.

    Parameters
    ----------
    num_shards, shard_id : int
    shuffle : bool
        Whether rows are shuffled before, by the seed `seed` and the number of the epoch.
    num_samples : int, optional
    offset : int
        The shard that gets the first row; -1 for shard 0.

    Notes
    -----
    All shards have the same number of rows: the first rows come again at the end where they do not divide.

    Examples
    --------
    >>> import nbgrad as nb
    >>> sampler = nb.dataset.DistributedSampler(2, 1, shuffle=False)
    >>> [int(x) for (x,) in nb.dataset.NumpySlicesDataset([10, 11, 12, 13, 14], sampler=sampler)]
    [11, 13, 10]
    """

    def __init__(
        self,
        num_shards: int,
        shard_id: int,
        shuffle: bool = True,
        num_samples: int | None = None,
        offset: int = -1,
        seed: int = 0,
    ) -> None:
        super().__init__(num_samples)
        self.num_shards, self.shard_id = positive(num_shards, "num_shards"), whole(shard_id, "shard_id")
        if not 0 <= self.shard_id < self.num_shards:
            message = f"shard_id must be at least 0 and less than {num_shards}, but got {shard_id}."
            raise ArgumentError(message)
        self.shuffle = flag(shuffle, "shuffle")
        self.offset = max(whole(offset, "offset"), 0)
        self.seed, self.epoch = seed, 0

    def order(self, size: int, random: np.random.Generator) -> Iterable[int]:
        """The indices of an epoch."""
        rows = np.arange(size)
        if self.shuffle:
            rows = np.random.default_rng([self.seed, self.epoch]).permutation(size)
            self.epoch += 1
        count = math.ceil(size / self.num_shards)
        first = (self.shard_id - self.offset) % self.num_shards
        return rows[(first + self.num_shards * np.arange(count)) % max(size, 1)][: self.num_samples]

    def count(self, size: int) -> int:
        """The number of rows of an epoch."""
        count = math.ceil(size / self.num_shards)
        return count if self.num_samples is None else min(count, self.num_samples)


class SubsetSampler(Sampler):
    """Chosen rows, in the order given.

    Parameters
    ----------
    indices : list of int
    num_samples : int, optional
    """

    def __init__(self, indices: Sequence[int], num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.indices = [whole(index, "Every index") for index in np.asarray(indices).tolist()]

    def order(self, size: int, random: np.random.Generator) -> Iterable[int]:
        """The indices of an epoch."""
        return self.indices[: self.num_samples]


class SubsetRandomSampler(SubsetSampler):
    """Chosen rows, in random order."""

    def order(self, size: int, random: np.random.Generator) -> Iterable[int]:
        """The indices of an epoch."""
        return random.permutation(np.asarray(self.indices, np.int64))[: self.num_samples]


class WeightedRandomSampler(Sampler):
    """Rows drawn with probabilities.

    Parameters
    ----------
    weights : list of float
        One for each row.
    num_samples : int, optional
        As many as weights by default.
    replacement : bool
        Whether a row may come twice.
    """

    def __init__(self, weights: Sequence[float], num_samples: int | None = None, replacement: bool = True) -> None:
        super().__init__(num_samples)
        self.weights = np.asarray(weights, np.float64)
        if self.weights.ndim != 1 or not self.weights.size or (self.weights < 0).any() or not self.weights.sum():
            message = "weights must be a list of numbers, none negative and not all zero."
            raise ArgumentError(message)
        self.replacement = flag(replacement, "replacement")

    def order(self, size: int, random: np.random.Generator) -> Iterable[int]:
        """The indices of an epoch."""
        count = len(self.weights) if self.num_samples is None else self.num_samples
        return random.choice(len(self.weights), count, self.replacement, self.weights / self.weights.sum())


def chosen_sampler(
    sampler: Any, shuffle: Any, num_samples: Any, num_shards: Any, shard_id: Any, default_shuffle: bool = True
) -> Any:
    """The sampler that the arguments of a dataset mean.

    Raises
    ------
    ArgumentError, DtypeError
        If they contradict each other.
    """
    if sampler is not None:
        if shuffle is not None or num_shards is not None or shard_id is not None or num_samples is not None:
            message = "A sampler says all about order and number: leave out shuffle, num_samples and shards."
            raise ArgumentError(message)
        if not isinstance(sampler, Iterable):
            message = f"A sampler must be iterable, but got {type(sampler).__name__}."
            raise DtypeError(message)
        return sampler if isinstance(sampler, Sampler) else SubsetSampler(list(sampler))
    shuffled = default_shuffle if shuffle is None else flag(shuffle, "shuffle")
    if (num_shards is None) != (shard_id is None):
        message = "num_shards and shard_id are given together."
        raise ArgumentError(message)
    if num_shards is not None:
        return DistributedSampler(num_shards, shard_id, shuffled, num_samples)
    return RandomSampler(num_samples=num_samples) if shuffled else SequentialSampler(num_samples=num_samples)
