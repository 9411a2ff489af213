"""MindSpore's `TFRecordDataset`: the rows of files of TFRecord, and `Schema`, which says what their columns are.

In: paths, and a schema. Out: a Dataset. Called by users. The files are read by tf_examples.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..nn.layer_arguments import flag, positive, whole
from ..record.axes_and_dtypes import only, real_dtype
from .dataset_config import Shuffle
from .row_values import Row, name_list
from .samplers import chosen_sampler
from .sources import Indexed
from .tf_examples import Feature, RecordFile, features_of
from .worker_threads import in_order


@dataclass(frozen=True)
class Column:
    """A column: the name of its dtype, and its shape, with -1 for an extent that each row has for itself."""

    name: str
    type: str
    shape: tuple[int, ...] | None = None
    rank: int = 1

    def described(self) -> dict[str, Any]:
        """The column as MindSpore writes it."""
        shape = {} if self.shape is None else {"shape": list(self.shape)}
        rank = self.rank if self.shape is None else len(self.shape)
        return {"name": self.name, "rank": rank, **shape, "type": self.type}


class Schema:
    """The columns of files.

    Parameters
    ----------
    schema_file : str, optional
        A file in JSON: {"numRows": 3, "columns": {"x": {"type": "float32", "shape": [2]}}}, or with a list of columns
        that have a "name".

    Raises
    ------
    ArgumentError
        If the file does not describe columns.

    Examples
    --------
    >>> import nbgrad as nb
    >>> schema = nb.dataset.Schema()
    >>> schema.add_column("x", nb.float32, [2, 2])
    >>> schema.add_column("name", "string")
    >>> schema.to_json().replace("\\n", "").replace(" ", "")
    '{"columns":[{"name":"x","rank":2,"shape":[2,2],"type":"float32"},{"name":"name","rank":1,"type":"string"}]}'
    """

    def __init__(self, schema_file: str | os.PathLike[str] | None = None) -> None:
        self.columns: dict[str, Column] = {}
        self._count: int | None = None
        self.dataset_type = ""
        if schema_file is not None:
            try:
                with open(schema_file, encoding="utf-8") as file:
                    described = json.load(file)
            except (OSError, ValueError) as error:
                message = f"The schema {os.fspath(schema_file)!r} cannot be read: {error}."
                raise ArgumentError(message) from None
            self.from_json(described)

    def add_column(self, name: str, de_type: Any, shape: Sequence[int] | None = None) -> None:
        """Add a column.

        Parameters
        ----------
        name : str
        de_type : dtype or str
            "string" for texts; bytes as numbers are of uint8.
        shape : list of int, optional
            One of them may be -1.

        Raises
        ------
        DtypeError, ArgumentError
            For a dtype or a shape that cannot be.
        """
        text = de_type in ("string", str) or getattr(de_type, "name", "") in ("string", "String")
        kind = "string" if text else np.dtype(real_dtype(de_type)).name
        extents = None if shape is None else tuple([int(one) for one in shape])
        if extents is not None and (extents.count(-1) > 1 or any(one < -1 for one in extents)):
            message = f"The shape of {name!r} must have extents, of which one may be -1, but got {shape!r}."
            raise ArgumentError(message)
        self.columns[name] = Column(name, kind, extents)

    def parse_columns(self, columns: Any) -> None:
        """Add columns that a list or a dict describes.

        Raises
        ------
        DtypeError, ArgumentError
            If it does not.
        """
        if isinstance(columns, Mapping):
            columns = [{"name": name, **described} for name, described in columns.items()]
        if not isinstance(columns, Sequence) or not all(isinstance(one, Mapping) for one in columns):
            message = f"columns must be a list or a dict of dicts, but got {columns!r:.80}."
            raise DtypeError(message)
        for described in columns:
            if "name" not in described or "type" not in described:
                message = f'A column must have a "name" and a "type", but got {described!r:.80}.'
                raise ArgumentError(message)
            self.add_column(described["name"], described["type"], described.get("shape"))

    def from_json(self, json_obj: Mapping[str, Any]) -> None:
        """Take the columns, and the number of rows, from a dict.

        Raises
        ------
        ArgumentError
            If it has no columns.
        """
        if "columns" not in json_obj:
            message = f'A schema must have "columns", but has: {", ".join(json_obj)}.'
            raise ArgumentError(message)
        count = json_obj.get("numRows")
        self._count = None if count is None else positive(count, "numRows")
        self.dataset_type = str(json_obj.get("datasetType", ""))
        self.parse_columns(json_obj["columns"])

    def to_json(self) -> str:
        """The columns as a text in JSON."""
        head: dict[str, Any] = {"columns": [column.described() for column in self.columns.values()]}
        return json.dumps(head if self._count is None else {**head, "numRows": self._count}, indent=2)

    def get_num_rows(self) -> int | None:
        """The most rows to read; None without a limit."""
        return self._count


def _column(name: str, values: Feature) -> Column:
    """A column by its values in the first row."""
    return Column(name, "uint8" if isinstance(values, list) else values.dtype.name)


def _array(column: Column, values: Feature, shaped: bool, path: str) -> np.ndarray:
    """The values of a column in one row.

    Raises
    ------
    ShapeError, DtypeError
        If they do not fit the schema.
    """
    if column.type == "string":
        if not isinstance(values, list):
            message = f"The schema says that {column.name!r} holds texts, but {path!r} has numbers."
            raise DtypeError(message)
        array: np.ndarray = np.array([one.decode() for one in values])
    elif isinstance(values, list):
        most = max(map(len, values), default=0)
        joined = b"".join(values if shaped else [one.ljust(most) for one in values])
        array = np.frombuffer(joined, np.uint8)
    else:
        array = values
    array = array if column.type == "string" else array.astype(column.type)
    if column.shape is None:
        return array
    try:
        return array.reshape(column.shape)
    except ValueError:
        message = f"The schema gives {column.name!r} the shape {column.shape}, but {path!r} has {array.size} elements."
        raise ShapeError(message) from None


class TFRecordDataset(Indexed):
    """The rows of files of TFRecord, whose records are messages `tf.train.Example`.

    Parameters
    ----------
    dataset_files : str, or list of str
        Read in the order of their names.
    schema : Schema or str, optional
        The columns, or the path of a file that describes them. Without one the first row does, by the alphabet: bytes
        become arrays of uint8, numbers those of int64 and float32.
    columns_list : list of str, optional
        The columns to read.
    num_samples : int, optional
        The most rows to read.
    num_parallel_workers : int, optional
    shuffle : bool or Shuffle
        Rows by default; `Shuffle.FILES` shuffles files only.
    num_shards, shard_id : int, optional
        Read one of several parts: whole files, or rows with `shard_equal_rows`.
    shard_equal_rows : bool
        Whether all parts have the same number of rows, for which some rows may be read twice.
    cache : DatasetCache, optional
    compression_type : {None, "", "GZIP", "ZLIB"}

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        If a file does not exist or is something else, or does not fit the schema.
    """

    def __init__(
        self,
        dataset_files: Any,
        schema: Any = None,
        columns_list: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: Any = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        shard_equal_rows: bool = False,
        cache: Any = None,
        compression_type: str | None = None,
    ) -> None:
        only("compression_type", compression_type, None, "", "GZIP", "ZLIB")
        order = Shuffle(shuffle) if isinstance(shuffle, str) else Shuffle.GLOBAL if shuffle else Shuffle.FALSE
        chosen = chosen_sampler(None, order is Shuffle.GLOBAL, num_samples, None, None)
        super().__init__(chosen, num_parallel_workers, cache)
        paths = [dataset_files] if isinstance(dataset_files, str | os.PathLike) else list(dataset_files)
        if not paths:
            message = "TFRecordDataset needs at least one file."
            raise ArgumentError(message)
        self._files = [RecordFile.opened(path, compression_type or "") for path in sorted(map(os.fspath, paths))]
        self._by_file = order is Shuffle.FILES
        self._located = self._part(num_shards, shard_id, flag(shard_equal_rows, "shard_equal_rows"))
        self._shaped = schema is not None
        if schema is not None:
            read = schema if isinstance(schema, Schema) else Schema(schema)
            columns = dict(read.columns)
            self._located = self._located[: read.get_num_rows()]
        else:
            columns = {name: _column(name, values) for name, values in sorted(self._first_features().items())}
        names = list(columns) if columns_list is None else name_list(columns_list, "columns_list")
        missing = [name for name in names if name not in columns]
        if missing:
            message = f"The files have no column {missing[0]!r}; they have: {', '.join(columns)}."
            raise ArgumentError(message)
        self._columns = [columns[name] for name in names]

    def _part(self, num_shards: int | None, shard_id: int | None, equal: bool) -> list[tuple[int, int]]:
        """The files and numbers of the rows that are read."""
        rows = [(k, row) for k, file in enumerate(self._files) for row in range(len(file.spans))]
        if num_shards is None and shard_id is None:
            return rows
        count, which = positive(num_shards, "num_shards"), whole(shard_id, "shard_id")
        if not 0 <= which < count:
            message = f"shard_id must be below num_shards={count}, and not negative, but is {which}."
            raise ArgumentError(message)
        if not equal:
            return [place for place in rows if place[0] % count == which]
        each = -(-len(rows) // count)
        return [rows[(which * each + k) % len(rows)] for k in range(each)] if rows else []

    def _first_features(self) -> dict[str, Feature]:
        """The features of the first row of all files."""
        for file in self._files:
            if file.spans:
                return features_of(file.record(0), file.path)
        message = f"{self._files[0].path!r} has no rows, so that columns need a schema."
        raise ArgumentError(message)

    def _names(self) -> list[str]:
        return [column.name for column in self._columns]

    def _count(self) -> int:
        return len(self._located)

    def _rows(self) -> Iterator[Row]:
        if not self._by_file:
            return super()._rows()
        order = self._random().permutation(len(self._files)).tolist()
        rows = sorted(range(self._count()), key=lambda index: (order.index(self._located[index][0]), index))
        return in_order(self._fetched, iter(rows[: self._size()]), self._workers)

    def _row(self, index: int) -> Row:
        place, number = self._located[index]
        file = self._files[place]
        found = features_of(file.record(number), file.path)
        missing = [column.name for column in self._columns if column.name not in found]
        if missing:
            message = f"Row {number} of {file.path!r} has no feature {missing[0]!r}."
            raise ArgumentError(message)
        return tuple([_array(column, found[column.name], self._shaped, file.path) for column in self._columns])
