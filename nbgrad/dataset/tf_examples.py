"""Files of TensorFlow's TFRecord, and the messages `tf.train.Example` in them.

In: paths, bytes. Out: where records lie, and their features as arrays. Called by tfrecord_dataset.py. A record is its
length, a checksum of that, its bytes and their checksum; a message is in the wire format of protocol buffers.
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..train.summaries import masked_crc

Feature = np.ndarray | list[bytes]
"""Integers, floats, or texts as bytes."""


@dataclass
class RecordFile:
    """A file of records: where each begins and how long it is. A compressed file is kept in memory."""

    path: str
    spans: list[tuple[int, int]]
    content: bytes | None = None

    @classmethod
    def opened(cls, path: Any, compression: str) -> RecordFile:
        """Find the records of a file.

        Raises
        ------
        ArgumentError
            If there is none, or it is something else, or ends within a record.
        """
        name = os.fspath(path)
        if not os.path.isfile(name):
            message = f"There is no file {name!r}."
            raise ArgumentError(message)
        if compression:
            with open(name, "rb") as file:
                content = file.read()
            try:
                content = gzip.decompress(content) if compression == "GZIP" else zlib.decompress(content)
            except (OSError, EOFError, zlib.error) as error:
                message = f"{name!r} is not compressed by {compression}: {error}."
                raise ArgumentError(message) from None
            made = cls(name, [], content)
            made.spans = list(made._found(len(content)))
            return made
        made = cls(name, [])
        made.spans = list(made._found(os.path.getsize(name)))
        return made

    def _found(self, size: int) -> Iterator[tuple[int, int]]:
        at = 0
        if self.content is not None:
            while at < size:
                length = self._length(self.content[at : at + 12], at, size)
                yield at + 12, length
                at += length + 16
            return
        with open(self.path, "rb") as file:
            while at < size:
                file.seek(at)
                length = self._length(file.read(12), at, size)
                yield at + 12, length
                at += length + 16

    def _length(self, head: bytes, at: int, size: int) -> int:
        """The length of a record, by the 12 bytes before it."""
        if len(head) == 12 and struct.unpack("<I", head[8:])[0] == masked_crc(head[:8]):
            length = struct.unpack("<Q", head[:8])[0]
            if at + length + 16 <= size:
                return length
        message = f"{self.path!r} is no file of TFRecord, or ends early: there is no record at byte {at}."
        raise ArgumentError(message)

    def record(self, index: int) -> bytes:
        """The bytes of a record."""
        begin, length = self.spans[index]
        if self.content is not None:
            return self.content[begin : begin + length]
        with open(self.path, "rb") as file:
            file.seek(begin)
            return file.read(length)


# ----- Messages -----


class _BrokenError(Exception):
    """A message that ends early, or has a part of a kind that does not exist."""


def _number(data: bytes, at: int) -> tuple[int, int]:
    """An integer of as many bytes as it needs, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise _BrokenError
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The numbers of fields, and their values: integers, or bytes."""
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _number(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _number(data, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise _BrokenError
        if at + length > len(data):
            raise _BrokenError
        yield key >> 3, data[at : at + length]
        at += length


def _integers(value: Any) -> Iterator[int]:
    """One integer, or several in a row, with their signs."""
    if isinstance(value, int):
        yield value - (value >> 63 << 64)
        return
    at = 0
    while at < len(value):
        one, at = _number(value, at)
        yield one - (one >> 63 << 64)


def _feature(data: bytes) -> Feature:
    """The values of a feature, of which a message has one kind."""
    for kind, content in _fields(data):
        values = [value for number, value in _fields(content) if number == 1]
        if kind == 1:
            return values
        if kind == 2:
            return np.frombuffer(b"".join(values), "<f4").astype(np.float32)
        if kind == 3:
            return np.array([one for value in values for one in _integers(value)], np.int64)
    return np.zeros(0, np.float32)


def features_of(data: bytes, path: str) -> dict[str, Feature]:
    """The features of an Example by their names.

    Raises
    ------
    ArgumentError
        If the bytes are something else.
    """
    found: dict[str, Feature] = {}
    try:
        for number, features in _fields(data):
            if number != 1:
                continue
            for place, entry in _fields(features):
                if place == 1:
                    parts = dict(_fields(entry))
                    found[parts[1].decode()] = _feature(parts.get(2, b""))
    except (_BrokenError, AttributeError, KeyError, TypeError, ValueError):
        message = f"A record of {path!r} is no tf.train.Example."
        raise ArgumentError(message) from None
    return found
