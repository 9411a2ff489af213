"""SummaryRecord and SummaryCollector: numbers of a training, in files that TensorBoard reads.

In: names, numbers and steps. Out: files of events: records of a length, the record and their checksums, as in
TFRecord, each with a message of protocol buffers. Called by users. Scalars are written; images, histograms and graphs
are refused.
"""

from __future__ import annotations

import os
import struct
import time
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..record.axes_and_dtypes import integer
from .callbacks import Callback

_PLUGINS = ("graph", "scalar", "image", "tensor", "histogram", "train_lineage", "eval_lineage", "dataset_graph")

# ----- The format -----


def _crc_table() -> list[int]:
    """CRC-32C of every byte: the polynomial 0x1EDC6F41, bits reversed."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def masked_crc(data: bytes) -> int:
    """The CRC-32C of bytes, rotated by 15 bits plus a constant, as TFRecord has it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _text(field: int, data: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(data)) + data


def event(wall_time: float, step: int, content: bytes) -> bytes:
    """A record of one event: time (field 1), step (2) and content."""
    message = b"\x09" + struct.pack("<d", wall_time) + b"\x10" + _varint(step) + content
    length = struct.pack("<Q", len(message))
    sums = [struct.pack("<I", masked_crc(part)) for part in (length, message)]
    return length + sums[0] + message + sums[1]


def scalar(name: str, value: float) -> bytes:
    """The content of an event with one number: a summary (5) with a value (1) of tag (1) and number (2)."""
    return _text(5, _text(1, _text(1, name.encode()) + b"\x15" + struct.pack("<f", value)))


# ----- What users call -----


class SummaryRecord:
    """A file of numbers by step.

    Parameters
    ----------
    log_dir : str
        The folder, which is made if it is not there.
    file_prefix, file_suffix : str
        Parts of the file's name.
    num_process, network, max_file_size, raise_exception, export_options
        MindSpore's; they have no effect.

    Raises
    ------
    ArgumentError
        When another kind of value than a scalar is added.

    Examples
    --------
    >>> import os, tempfile
    >>> from nbgrad.train import SummaryRecord
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with SummaryRecord(folder) as record:
    ...         record.add_value("scalar", "loss", 0.5)
    ...         record.record(1)
    ...     len(os.listdir(folder))
    True
    1
    """

    def __init__(
        self,
        log_dir: str,
        file_prefix: str = "events",
        file_suffix: str = "_MS",
        num_process: int = 32,
        network: Any = None,
        max_file_size: int | None = None,
        raise_exception: bool = False,
        export_options: Any = None,
    ) -> None:
        del num_process, network, max_file_size, raise_exception, export_options
        self._folder = os.path.abspath(str(log_dir))
        os.makedirs(self._folder, exist_ok=True)
        now = time.time()
        name = f"{file_prefix}.out.tfevents.summary.{int(now * 1e6)}{file_suffix}"
        self.full_file_name = os.path.join(self._folder, name)
        self._file = open(self.full_file_name, "wb")  # noqa: SIM115 (close() closes it)
        self._file.write(event(now, 0, _text(3, b"brain.Event:2")))
        self._values: dict[str, float] = {}
        self._mode = "train"

    @property
    def log_dir(self) -> str:
        """The folder."""
        return self._folder

    def __enter__(self) -> SummaryRecord:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def set_mode(self, mode: str) -> None:
        """Set what the numbers are of: "train" or "eval"."""
        if mode not in ("train", "eval"):
            message = f"mode must be 'train' or 'eval', but is {mode!r}."
            raise ArgumentError(message)
        self._mode = mode

    def add_value(self, plugin: str, name: str, value: Any) -> None:
        """Keep a number for the next call of `record`; `plugin` must be "scalar", the value one number."""
        if plugin not in _PLUGINS:
            message = f"plugin must be one of {', '.join(_PLUGINS)}, but is {plugin!r}."
            raise ArgumentError(message)
        if plugin != "scalar":
            message = f"SummaryRecord writes scalars only, but {name!r} has the plugin {plugin!r}."
            raise ArgumentError(message)
        number = np.asarray(value)
        if number.size != 1:
            message = f"A scalar is one number, but {name!r} has the shape {number.shape}."
            raise ArgumentError(message)
        self._values[name] = float(number.reshape(()))

    def record(self, step: int, train_network: Any = None, plugin_filter: Any = None) -> bool:
        """Write the numbers that were added, for a step; whether there is a file to write to."""
        del train_network, plugin_filter
        if self._file.closed:
            return False
        step = integer(step, "step")
        for name, value in self._values.items():
            self._file.write(event(time.time(), step, scalar(name, value)))
        self._values = {}
        return True

    def flush(self) -> None:
        """Write everything to the disk."""
        if not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class SummaryCollector(Callback):
    """A callback of Model that writes the loss every so many steps.

    Parameters
    ----------
    summary_dir : str
    collect_freq : int
    num_process, collect_specified_data, keep_default_action, custom_lineage_data, collect_tensor_freq, max_file_size, \
export_options
        MindSpore's; they have no effect: the loss is what is collected.
    """

    def __init__(
        self,
        summary_dir: str,
        collect_freq: int = 10,
        num_process: int = 32,
        collect_specified_data: Any = None,
        keep_default_action: bool = True,
        custom_lineage_data: Any = None,
        collect_tensor_freq: Any = None,
        max_file_size: Any = None,
        export_options: Any = None,
    ) -> None:
        super().__init__()
        self._folder, self._every = summary_dir, integer(collect_freq, "collect_freq")
        self._record: SummaryRecord | None = None

    def on_train_begin(self, run_context: Any) -> None:
        """Open a file."""
        self._record = SummaryRecord(self._folder)

    def on_train_step_end(self, run_context: Any) -> None:
        """Write the loss."""
        step = run_context.original_args()
        if self._record is None or step.cur_step_num % self._every:
            return
        loss = step.net_outputs
        loss = loss[0] if isinstance(loss, tuple | list) else loss
        self._record.add_value("scalar", "loss", np.mean(np.asarray(loss)))
        self._record.record(step.cur_step_num)

    def on_train_end(self, run_context: Any) -> None:
        """Close the file."""
        if self._record is not None:
            self._record.close()
