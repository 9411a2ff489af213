"""`TFRecordDataset` on files that are written here, byte by byte, by the definitions of TFRecord and protocol buffers.

What becomes of the values is what MindSpore 2.10 gave for the same files.
"""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.dataset import Schema, Shuffle, TFRecordDataset
from nbgrad.errors import ArgumentError, DtypeError, ShapeError

pytestmark = pytest.mark.unoptimized


def checksum(data: bytes) -> int:
    """CRC-32C bit by bit, masked as TFRecord does."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1))
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(values: Sequence[Any], packed: bool) -> bytes:
    if isinstance(values[0], bytes):
        return field(1, b"".join(field(1, one) for one in values))
    if isinstance(values[0], float):
        numbers = [struct.pack("<f", one) for one in values]
        return field(2, field(1, b"".join(numbers)) if packed else b"".join(b"\x0d" + one for one in numbers))
    numbers = [varint(one) for one in values]
    return field(3, field(1, b"".join(numbers)) if packed else b"".join(b"\x08" + one for one in numbers))


def example(row: Mapping[str, Sequence[Any]], packed: bool = True) -> bytes:
    entries = [field(1, name.encode()) + field(2, feature(values, packed)) for name, values in row.items()]
    return field(1, b"".join(field(1, entry) for entry in entries))


def records(rows: Sequence[Mapping[str, Sequence[Any]]], packed: bool = True) -> bytes:
    found = b""
    for row in rows:
        data = example(row, packed)
        head = struct.pack("<Q", len(data))
        found += head + struct.pack("<I", checksum(head)) + data + struct.pack("<I", checksum(data))
    return found


ROWS = [
    {"b": [b"abc"], "name": [b"x", b"yz"], "f": [1.5, -2.0, 3.0, 4.0], "i": [k, -k - 1], "a": [7]} for k in range(3)
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "rows.tfrecord"
    found.write_bytes(records(ROWS))
    return found


def rows_of(data: Any) -> list[dict[str, Any]]:
    return list(data.create_dict_iterator(num_epochs=1, output_numpy=True))


def test_the_checksum_is_that_of_the_standard() -> None:
    # RFC 3720, B.4: the CRC-32C of 32 bytes of zeros is 8a9136aa.
    crc = 0x8A9136AA
    assert checksum(bytes(32)) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@pytest.mark.parametrize("packed", [True, False])
def test_columns_without_a_schema(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "rows"
    path.write_bytes(records(ROWS, packed))
    data = TFRecordDataset(str(path), shuffle=False)
    assert data.get_col_names() == ["a", "b", "f", "i", "name"]
    assert data.get_dataset_size() == 3
    row = rows_of(data)[1]
    assert {name: (str(value.dtype), value.tolist()) for name, value in row.items()} == {
        "a": ("int64", [7]),
        "b": ("uint8", [97, 98, 99]),
        "f": ("float32", [1.5, -2.0, 3.0, 4.0]),
        "i": ("int64", [1, -2]),
        "name": ("uint8", [120, 32, 121, 122]),
    }


def test_columns_of_a_schema(path: Path) -> None:
    schema = Schema()
    schema.add_column("f", nb.float64, [-1, 2])
    schema.add_column("i", nb.int16)
    schema.add_column("name", "string", [2])
    schema.add_column("a", nb.int64, [])
    schema.add_column("b", nb.uint8)
    row = rows_of(TFRecordDataset(path, schema, shuffle=False))[0]
    assert {name: (value.dtype.kind, value.tolist()) for name, value in row.items()} == {
        "f": ("f", [[1.5, -2.0], [3.0, 4.0]]),
        "i": ("i", [0, -1]),
        "name": ("U", ["x", "yz"]),
        "a": ("i", 7),
        "b": ("u", [97, 98, 99]),
    }
    assert row["f"].dtype == np.float64
    assert row["i"].dtype == np.int16
    joined = Schema()
    joined.add_column("name", nb.uint8)
    assert rows_of(TFRecordDataset(path, joined, shuffle=False))[0]["name"].tolist() == [120, 121, 122]


@pytest.mark.parametrize(
    ("columns", "count"),
    [
        ({"a": {"type": "int64", "rank": 1, "t_impl": "dense"}, "f": {"type": "float32", "shape": [2, 2]}}, 2),
        ([{"name": "a", "type": "int64", "rank": 1}, {"name": "f", "type": "float32", "shape": [2, 2]}], None),
    ],
)
def test_schemas_in_files(path: Path, tmp_path: Path, columns: Any, count: int | None) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps({"datasetType": "TF", "columns": columns} | ({"numRows": count} if count else {})))
    data = TFRecordDataset(path, str(file), shuffle=False)
    assert data.get_dataset_size() == (count or 3)
    assert [row["f"].shape for row in rows_of(data)] == [(2, 2)] * (count or 3)
    assert json.loads(Schema(file).to_json())["columns"][1] == {
        "name": "f",
        "rank": 2,
        "shape": [2, 2],
        "type": "float32",
    }


def test_parts_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(records([{"i": [k]} for k in range(20, 25)]))
    (tmp_path / "b").write_bytes(records([{"i": [k]} for k in range(10, 12)]))
    files = [str(tmp_path / "c"), str(tmp_path / "b")]

    def read(**options: Any) -> list[int]:
        data = TFRecordDataset(files, None, ["i"], **{"shuffle": False, **options})
        found = [int(row["i"][0]) for row in rows_of(data)]
        assert data.get_dataset_size() == len(found)
        return found

    assert read() == [10, 11, 20, 21, 22, 23, 24]
    assert read(num_samples=3) == [10, 11, 20]
    assert read(num_shards=2, shard_id=0) == [10, 11]
    assert read(num_shards=2, shard_id=1) == [20, 21, 22, 23, 24]
    assert read(num_shards=2, shard_id=0, shard_equal_rows=True) == [10, 11, 20, 21]
    assert read(num_shards=2, shard_id=1, shard_equal_rows=True) == [22, 23, 24, 10]
    nb.dataset.config.set_seed(1)
    orders = [read(shuffle=True) for _ in range(4)]
    assert all(sorted(order) == read() for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    by_file = {tuple(read(shuffle=Shuffle.FILES)) for _ in range(12)}
    assert by_file == {(10, 11, 20, 21, 22, 23, 24), (20, 21, 22, 23, 24, 10, 11)}


@pytest.mark.parametrize(("name", "pack"), [("GZIP", gzip.compress), ("ZLIB", zlib.compress)])
def test_compressed_files(tmp_path: Path, name: str, pack: Any) -> None:
    path = tmp_path / "packed"
    path.write_bytes(pack(records(ROWS)))
    data = TFRecordDataset(path, shuffle=False, compression_type=name)
    assert [row["i"].tolist() for row in rows_of(data)] == [[0, -1], [1, -2], [2, -3]]
    with pytest.raises(ArgumentError):
        TFRecordDataset(path)
    path.write_bytes(records(ROWS))
    with pytest.raises(ArgumentError, match="not compressed"):
        TFRecordDataset(path, compression_type=name)


def test_files_that_are_something_else(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    for name, data in {"short": whole[:-1], "other": b"x" * 100, "changed": b"\x01" + whole[1:]}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ArgumentError, match="no file of TFRecord"):
            TFRecordDataset(tmp_path / name)
    head = struct.pack("<Q", 3)
    (tmp_path / "bad").write_bytes(head + struct.pack("<I", checksum(head)) + b"\x0a\xff\xff" + bytes(4))
    with pytest.raises(ArgumentError, match=r"no tf\.train\.Example"):
        TFRecordDataset(tmp_path / "bad")
    with pytest.raises(ArgumentError, match="no file"):
        TFRecordDataset(tmp_path / "nothing")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ArgumentError, match="need a schema"):
        TFRecordDataset(tmp_path / "empty")


def test_rows_that_do_not_fit(path: Path) -> None:
    def read(name: str, kind: Any, shape: Any = None) -> Any:
        schema = Schema()
        schema.add_column(name, kind, shape)
        return rows_of(TFRecordDataset(path, schema))

    with pytest.raises(ShapeError, match="4 elements"):
        read("f", nb.float32, [3])
    with pytest.raises(ArgumentError, match="no feature 'zz'"):
        read("zz", nb.float32)
    with pytest.raises(DtypeError, match="holds texts"):
        read("f", "string")
    with pytest.raises(ArgumentError, match="no column 'zz'"):
        TFRecordDataset(path, columns_list=["zz"])
    with pytest.raises(ArgumentError, match="one may be -1"):
        Schema().add_column("f", nb.float32, [-1, -1])
    with pytest.raises(ArgumentError, match='must have "columns"'):
        Schema().from_json({})
    with pytest.raises(ArgumentError, match="shard_id"):
        TFRecordDataset(path, num_shards=2, shard_id=2)


def test_rows_are_read_once(path: Path) -> None:
    cache = nb.dataset.DatasetCache(1)
    data = TFRecordDataset(path, columns_list=["f", "i"], shuffle=False, cache=cache)
    first = rows_of(data)
    assert cache.get_stat() == {"rows": 3, "bytes": 3 * (4 * 4 + 2 * 8)}
    first[0]["f"][...] = 0.0
    size = path.stat().st_size
    path.write_bytes(bytes(size))  # a reader of the file finds no rows now
    assert [(row["f"].tolist(), row["i"].tolist()) for row in rows_of(data)] == [
        ([1.5, -2.0, 3.0, 4.0], [k, -k - 1]) for k in range(3)
    ]


def test_caches_have_limits_and_rows_of_several_datasets(tmp_path: Path) -> None:
    rows = [{"f": [float(k)] * 50_000} for k in range(8)]
    for name in "ab":
        (tmp_path / name).write_bytes(records(rows if name == "a" else rows[::-1]))
    cache = nb.dataset.DatasetCache(1, size=1)
    several = [TFRecordDataset(tmp_path / name, shuffle=False, cache=cache) for name in "ab"]
    for _ in range(2):
        found = [[row["f"][0] for row in rows_of(data)] for data in several]
        assert found == [list(range(8)), list(range(8))[::-1]]
    assert cache.get_stat() == {"rows": 5, "bytes": 5 * 200_000}  # of 2**20
    with pytest.raises(DtypeError, match="must be a DatasetCache"):
        TFRecordDataset(tmp_path / "a", cache=3)
    with pytest.raises(ArgumentError, match="not be negative"):
        nb.dataset.DatasetCache(1, -1)


def test_columns_of_files_are_mapped(path: Path) -> None:
    data = TFRecordDataset(path, shuffle=False).map(lambda x: x * 2, "i").batch(3)
    (row,) = rows_of(data)
    assert row["i"].tolist() == [[0, -2], [2, -4], [4, -6]]
    assert row["f"].shape == (3, 4)
    assert data.get_dataset_size() == 1
