"""MindSpore's `mindrecord` and `MindDataset`: rows with a schema in files of their own format.

In: dicts of numbers, texts, bytes and arrays. Out: files, and Datasets of their rows. Called by users who prepare data
once. The files are nbgrad's own (design/0094): a schema in JSON, rows, each with a head in JSON, and where each row
begins. MindSpore's files are neither read nor written.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..nn.layer_arguments import flag, positive
from .row_values import Row, as_array, name_list
from .samplers import chosen_sampler
from .sources import Indexed

__all__ = ["FileReader", "FileWriter", "MindDataset"]

_MAGIC = b"nbgrad rows 1\n"
_NUMBERS = ("int32", "int64", "float32", "float64")


def _field(name: str, described: Any) -> None:
    """Raise unless a field of a schema has a type that exists."""
    kind = described.get("type") if isinstance(described, Mapping) else None
    if kind not in (*_NUMBERS, "string", "bytes") or ("shape" in described and kind not in _NUMBERS):
        message = (
            f'The field {name!r} must have a "type" among {", ".join(_NUMBERS)}, string and bytes, and numbers may '
            f'have a "shape", but got {described!r:.80}.'
        )
        raise ArgumentError(message)


def _packed(name: str, described: Mapping[str, Any], value: Any) -> tuple[Any, bytes]:
    """The head and the bytes of a value."""
    kind = described["type"]
    fits = {"string": str, "bytes": bytes | bytearray}.get(kind, int | float | list | np.ndarray | np.generic)
    if not isinstance(value, fits):
        message = f"The field {name!r} has the type {kind}, but got {type(value).__name__}."
        raise DtypeError(message)
    if kind in ("string", "bytes"):
        data = value.encode() if isinstance(value, str) else bytes(value)
        return len(data), data
    array = np.asarray(value)
    shape = described.get("shape")
    if not np.can_cast(array.dtype, kind, "same_kind") or (shape is None) != (array.ndim == 0):
        message = f"The field {name!r} has the type {kind} and shape {shape}, but got {array.dtype} of {array.shape}."
        raise DtypeError(message)
    try:
        array = array if shape is None else array.reshape(shape)
    except ValueError:
        message = f"The field {name!r} has the shape {shape}, but got an array of {array.shape}."
        raise ArgumentError(message) from None
    return list(array.shape), np.ascontiguousarray(array, np.dtype(kind).newbyteorder("<")).tobytes()


class FileWriter:
    """Writes rows to one file, or to several.

    Parameters
    ----------
    file_name : str
    shard_num : int
        The number of files; of several, each has its number at the end of its name.
    overwrite : bool
        Whether files that exist are replaced.

    Raises
    ------
    ArgumentError
        If a file exists.

    Examples
    --------
    >>> import nbgrad as nb, numpy as np, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "rows")
    ...     writer = nb.mindrecord.FileWriter(name)
    ...     _ = writer.add_schema({"x": {"type": "float32", "shape": [-1]}, "label": {"type": "int32"}})
    ...     _ = writer.write_raw_data([{"x": np.ones(2, np.float32), "label": k} for k in range(3)])
    ...     _ = writer.commit()
    ...     data = nb.dataset.MindDataset(name, ["label", "x"], shuffle=False)
    ...     print(*[(int(label), x.tolist()) for label, x in data])
    (0, [1.0, 1.0]) (1, [1.0, 1.0]) (2, [1.0, 1.0])
    """

    def __init__(self, file_name: str | os.PathLike[str], shard_num: int = 1, overwrite: bool = False) -> None:
        name, count = os.fspath(file_name), positive(shard_num, "shard_num")
        width = len(str(count - 1))
        self._paths = [name] if count == 1 else [f"{name}{k:0{width}}" for k in range(count)]
        self._schema: dict[str, Any] = {}
        self._rows = 0
        taken = [path for path in self._paths if os.path.exists(path)]
        if taken and not flag(overwrite, "overwrite"):
            message = f"The file {taken[0]!r} exists. Remove it, or give overwrite=True."
            raise ArgumentError(message)
        self._begins: list[list[int]] = []

    def add_schema(self, content: Mapping[str, Any], desc: str | None = None) -> int:
        """Describe the fields of rows: {"label": {"type": "int32"}, "x": {"type": "float32", "shape": [-1]}}.

        Raises
        ------
        ArgumentError
            For types that do not exist.
        """
        for name, described in content.items():
            _field(name, described)
        self._schema = {name: dict(described) for name, described in content.items()}
        return 0

    def add_index(self, index_fields: Sequence[str]) -> None:
        """Name fields by which rows would be searched; it has no effect, but the fields must exist."""
        missing = [name for name in index_fields if name not in self._schema]
        if missing:
            message = f"The schema has no field {missing[0]!r}."
            raise ArgumentError(message)

    def write_raw_data(self, raw_data: Sequence[Mapping[str, Any]], parallel_writer: bool = False) -> bool:
        """Write rows; True.

        Raises
        ------
        ArgumentError, DtypeError
            If there is no schema, or a row does not fit it. The rows before it are written.
        """
        if not self._schema:
            message = "Rows need a schema: call add_schema first."
            raise ArgumentError(message)
        self._begin()
        with ExitStack() as stack:
            files = [stack.enter_context(open(f"{path}.part", "ab")) for path in self._paths]
            for row in raw_data:
                missing = [name for name in self._schema if name not in row]
                if missing:
                    message = f"A row has no value for the field {missing[0]!r}."
                    raise ArgumentError(message)
                parts = [_packed(name, described, row[name]) for name, described in self._schema.items()]
                head = json.dumps([part[0] for part in parts]).encode()
                place = self._rows % len(files)
                self._begins[place].append(files[place].tell())
                files[place].write(struct.pack("<I", len(head)) + head + b"".join([part[1] for part in parts]))
                self._rows += 1
        return True

    def _begin(self) -> None:
        """Write the heads of the files, before the first row."""
        if self._begins:
            return
        shards = [os.path.basename(path) for path in self._paths]
        head = json.dumps({"schema": self._schema, "shards": shards}).encode()
        for path in self._paths:
            with open(f"{path}.part", "wb") as file:
                file.write(_MAGIC + struct.pack("<I", len(head)) + head)
            self._begins.append([])

    def commit(self) -> bool:
        """Finish the files, which have their names from now on; True.

        Raises
        ------
        ArgumentError
            If there is no schema.
        """
        if not self._schema:
            message = "Rows need a schema: call add_schema first."
            raise ArgumentError(message)
        self._begin()
        for path, begins in zip(self._paths, self._begins, strict=True):
            with open(f"{path}.part", "ab") as file:
                file.write(np.asarray(begins, "<i8").tobytes() + struct.pack("<Q", len(begins)) + _MAGIC)
            os.replace(f"{path}.part", path)
        self._begins = []
        return True


class _Shard:
    """One file."""

    def __init__(self, path: str) -> None:
        self.path = path
        if not os.path.isfile(path):
            message = f"There is no file {path!r}."
            raise ArgumentError(message)
        size, end = os.path.getsize(path), len(_MAGIC)
        if size < 2 * end + 12 or self._at(0, end) != _MAGIC or self._at(size - end, end) != _MAGIC:
            message = f"{path!r} is no file of nbgrad's FileWriter, or is not complete. MindSpore's are not read."
            raise ArgumentError(message)
        head = struct.unpack("<I", self._at(end, 4))[0]
        record = json.loads(self._at(end + 4, head))
        self.schema, self.shards = record["schema"], record["shards"]
        count = struct.unpack("<Q", self._at(size - end - 8, 8))[0]
        self.begins = np.frombuffer(self._at(size - end - 8 - 8 * count, 8 * count), "<i8")

    def _at(self, begin: int, length: int) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(begin)
            return file.read(length)

    def row(self, index: int) -> dict[str, Any]:
        """The values of a row by name."""
        begin = int(self.begins[index])
        length = struct.unpack("<I", self._at(begin, 4))[0]
        begin += 4 + length
        values: dict[str, Any] = {}
        for (name, described), head in zip(
            self.schema.items(), json.loads(self._at(begin - length, length)), strict=True
        ):
            kind = described["type"]
            size = head if isinstance(head, int) else np.dtype(kind).itemsize * int(np.prod(head))
            data = self._at(begin, size)
            begin += size
            if kind == "string":
                values[name] = data.decode()
            elif kind == "bytes":
                values[name] = data
            else:
                values[name] = np.frombuffer(data, np.dtype(kind).newbyteorder("<")).reshape(head).astype(kind)
        return values


def _shards(names: Any) -> list[_Shard]:
    """The files, and the others that belong to a single one."""
    if not isinstance(names, str | os.PathLike):
        return [_Shard(os.fspath(name)) for name in names]
    path = os.fspath(names)
    path = path if os.path.exists(path) or not os.path.exists(f"{path}0") else f"{path}0"
    return [_Shard(os.path.join(os.path.dirname(path), name)) for name in _Shard(path).shards]


class FileReader:
    """Reads rows one after the other.

    Parameters
    ----------
    file_name : str, or list of str
    num_consumer : int, optional
        Has no effect.
    columns : list of str, optional
    """

    def __init__(self, file_name: Any, num_consumer: int | None = None, columns: Sequence[str] | None = None) -> None:
        self._shards, self._columns = _shards(file_name), columns

    def get_next(self) -> Iterator[dict[str, Any]]:
        """The rows as dicts."""
        for shard in self._shards:
            for index in range(len(shard.begins)):
                row = shard.row(index)
                yield row if self._columns is None else {name: row[name] for name in self._columns}

    def close(self) -> None:
        """Does nothing: a file is open only while a row is read."""


class MindDataset(Indexed):
    """The rows of files that `FileWriter` has written.

    Parameters
    ----------
    dataset_files : str, or list of str
        One file of several means all of them; a list means its files only.
    columns_list : list of str, optional
        All fields by default; "bytes" come as arrays of uint8.
    num_parallel_workers, shuffle, num_shards, shard_id, sampler, num_samples
        As for `GeneratorDataset`.
    **kwargs
        `cache`, a `DatasetCache`; MindSpore's paddings are refused.

    Raises
    ------
    ArgumentError
        If a file does not exist or another program wrote it, or has no such field.
    """

    def __init__(
        self,
        dataset_files: Any,
        columns_list: Any = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sampler: Any = None,
        num_samples: int | None = None,
        **kwargs: Any,
    ) -> None:
        cache = kwargs.pop("cache", None)
        given = [name for name, value in kwargs.items() if value is not None]
        if given:
            message = f"The option {given[0]!r} does not exist here."
            raise ArgumentError(message)
        chosen = chosen_sampler(sampler, shuffle, num_samples, num_shards, shard_id)
        super().__init__(chosen, num_parallel_workers, cache)
        self._shards = _shards(dataset_files)
        fields = list(self._shards[0].schema)
        self._called = fields if columns_list is None else name_list(columns_list, "columns_list")
        missing = [name for name in self._called if name not in fields]
        if missing:
            message = f"The files have no field {missing[0]!r}; they have: {', '.join(fields)}."
            raise ArgumentError(message)
        self._ends = np.cumsum([len(shard.begins) for shard in self._shards])

    def _names(self) -> list[str]:
        return list(self._called)

    def _count(self) -> int:
        return int(self._ends[-1])

    def _row(self, index: int) -> Row:
        place = int(np.searchsorted(self._ends, index, "right"))
        row = self._shards[place].row(index - (int(self._ends[place - 1]) if place else 0))
        values = [row[name] for name in self._called]
        return tuple([np.frombuffer(v, np.uint8) if isinstance(v, bytes) else as_array(v) for v in values])
