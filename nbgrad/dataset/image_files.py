"""Datasets of images in files: folders by class, MNIST, CIFAR.

In: a folder. Out: Datasets with the columns "image" and "label". Called by users. Files are read by threads when their
rows are asked for; the binary formats are read whole.
"""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..errors import ArgumentError
from ..nn.layer_arguments import flag
from .row_cache import checked_cache
from .row_values import Row
from .samplers import chosen_sampler
from .sources import Indexed
from .vision_transforms import decoded


def _folder(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not Path(path).is_dir():
        message = f"dataset_dir must be a folder that exists, but got {path!r}."
        raise ArgumentError(message)
    return Path(path)


class VisionBaseDataset(Indexed):
    """The base of the datasets of images, for `isinstance`."""


class ImageFolderDataset(VisionBaseDataset):
    """Images in one folder for each class.

    Parameters
    ----------
    dataset_dir : str or path
    num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id
        As for `GeneratorDataset`.
    extensions : list of str, optional
        Such as [".png"]; by default those of JPEG, PNG, BMP and WebP.
    class_indexing : dict, optional
        Name of a folder -> number of the class; by default they are numbered in alphabetical order.
    decode : bool
        Whether images are decoded; else "image" has the bytes of a file.
    **kwargs
        `cache`, a `DatasetCache`; MindSpore's decryption is refused.

    Raises
    ------
    ArgumentError
        If there is no such folder, or it has no images.
    """

    def __init__(
        self,
        dataset_dir: Any,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        extensions: Sequence[str] | None = None,
        class_indexing: Mapping[str, int] | None = None,
        decode: bool = False,
        num_shards: int | None = None,
        shard_id: int | None = None,
        **kwargs: Any,
    ) -> None:
        cache = kwargs.pop("cache", None)
        _refuse(kwargs)
        chosen = chosen_sampler(sampler, shuffle, num_samples, num_shards, shard_id)
        super().__init__(chosen, num_parallel_workers, cache)
        folder = _folder(dataset_dir)
        found = {one.name: k for k, one in enumerate(sorted(path for path in folder.iterdir() if path.is_dir()))}
        self.class_indexing = dict(found if class_indexing is None else class_indexing)
        self.classes = len(self.class_indexing)
        endings = tuple([one.lower() for one in extensions or (".jpg", ".jpeg", ".png", ".bmp", ".webp")])
        self._files = [
            (path, label)
            for name, label in self.class_indexing.items()
            for path in sorted((folder / name).rglob("*"))
            if path.name.lower().endswith(endings)
        ]
        if not self._files:
            message = f"The folders in {folder} have no images with the endings {', '.join(endings)}."
            raise ArgumentError(message)
        self._decode = flag(decode, "decode")

    def _kept(self, name: str, default: Any) -> Any:
        return getattr(self, name, default) if name in ("classes", "class_indexing") else default

    def _names(self) -> list[str]:
        return ["image", "label"]

    def _count(self) -> int:
        return len(self._files)

    def _row(self, index: int) -> Row:
        path, label = self._files[index]
        image = np.fromfile(path, np.uint8)
        return decoded(image) if self._decode else image, np.array(label, np.int32)


def _refuse(options: Mapping[str, Any]) -> None:
    """Raise for options that would change what is read."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        message = f"The option {given[0]!r} does not exist here: files are not encrypted."
        raise ArgumentError(message)


class _InMemory(VisionBaseDataset):
    """Images and labels that are read as a whole."""

    def __init__(
        self,
        dataset_dir: Any,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        **kwargs: Any,
    ) -> None:
        checked_cache(kwargs.pop("cache", None))  # the rows are in memory
        _refuse(kwargs)
        super().__init__(chosen_sampler(sampler, shuffle, num_samples, num_shards, shard_id), num_parallel_workers or 1)
        if usage not in (None, "train", "test", "all"):
            message = f'usage must be "train", "test" or "all", but got {usage!r}.'
            raise ArgumentError(message)
        folder = _folder(dataset_dir)
        parts = [part for part in ("train", "test") if usage in (None, "all", part)]
        read = [pair for part in parts for pair in self._read(folder, part)]
        if not read:
            message = f"{folder} has no files of {type(self).__name__} for usage={usage!r}."
            raise ArgumentError(message)
        self._columns = [np.concatenate(column) for column in zip(*read, strict=True)]

    def _read(self, folder: Path, part: str) -> list[tuple[np.ndarray, ...]]:
        """Columns of each file that is there."""
        raise NotImplementedError

    def _names(self) -> list[str]:
        return ["image", "label"]

    def _count(self) -> int:
        return len(self._columns[0])

    def _row(self, index: int) -> Row:
        return tuple([np.array(column[index]) for column in self._columns])


class MnistDataset(_InMemory):
    """MNIST (LeCun, Cortes, Burges): images (28, 28, 1) of uint8, labels of uint32.

    Parameters
    ----------
    dataset_dir : str or path
        With the files train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-..., also with the ending ".gz".
    usage : {"train", "test", "all"}, optional
        All by default.
    num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id
        As for `GeneratorDataset`.

    Raises
    ------
    ArgumentError
        If there are no such files, or they are damaged.
    """

    def _read(self, folder: Path, part: str) -> list[tuple[np.ndarray, ...]]:
        word = {"train": "train", "test": "t10k"}[part]
        images, labels = (_idx(folder, f"{word}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1"))
        return [] if images is None or labels is None else [(images[..., None], labels.astype(np.uint32))]


class FashionMnistDataset(MnistDataset):
    """Fashion-MNIST (Xiao, Rasul, Vollgraf 2017): pictures of clothes in the files, shapes and dtypes of MNIST."""


def _idx(folder: Path, name: str) -> np.ndarray | None:
    """The array of bytes in a file of the IDX format: two zeros, 8, the number of axes, extents, data."""
    path = next((one for one in (folder / name, folder / f"{name}.gz") if one.exists()), None)
    if path is None:
        return None
    data = path.read_bytes() if path.suffix != ".gz" else gzip.decompress(path.read_bytes())
    head = data[:4]
    shape = (
        struct.unpack(f">{head[3]}I", data[4 : 4 + 4 * head[3]]) if len(head) == 4 and head[:3] == b"\0\0\x08" else ()
    )
    if not shape or len(data) != 4 + 4 * len(shape) + int(np.prod(shape)):
        message = f"{path} is not a file of the IDX format, or is damaged ({len(data)} bytes)."
        raise ArgumentError(message)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


class _Cifar(_InMemory):
    """Binary files of CIFAR: labels and an image (3, 32, 32), byte by byte."""

    files: ClassVar[Mapping[str, Sequence[str]]]
    labels = 1

    def _read(self, folder: Path, part: str) -> list[tuple[np.ndarray, ...]]:
        found: list[tuple[np.ndarray, ...]] = []
        for name in self.files[part]:
            if not (folder / name).exists():
                continue
            data = np.fromfile(folder / name, np.uint8)
            width = self.labels + 3072
            if data.size % width:
                message = f"{folder / name} has {data.size} bytes, which are no rows of {width} bytes."
                raise ArgumentError(message)
            rows = data.reshape(-1, width)
            image = rows[:, self.labels :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
            found.append((image, *[rows[:, k].astype(np.uint32) for k in reversed(range(self.labels))]))
        return found


class Cifar10Dataset(_Cifar):
    """CIFAR-10 (Krizhevsky 2009): images (32, 32, 3) of uint8, labels of uint32.

    Parameters
    ----------
    dataset_dir : str or path
        With the binary files data_batch_1.bin, ..., test_batch.bin.
    usage, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id
        As for `MnistDataset`.
    """

    files: ClassVar[Mapping[str, Sequence[str]]] = {
        "train": [f"data_batch_{k}.bin" for k in range(1, 6)],
        "test": ["test_batch.bin"],
    }


class Cifar100Dataset(_Cifar):
    """CIFAR-100: the columns "image", "fine_label" and "coarse_label"; files train.bin and test.bin."""

    files: ClassVar[Mapping[str, Sequence[str]]] = {"train": ["train.bin"], "test": ["test.bin"]}
    labels = 2

    def _names(self) -> list[str]:
        return ["image", "fine_label", "coarse_label"]
