"""Arrays in files of the safetensors format, which are replaced as a whole or not at all.

In: arrays by name, and a path. Out: a file; arrays by name. Called by checkpoints (nn/checkpoint.py, and
mpi/checkpoints.py).
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import CheckpointError
from .numbers import supported


def safetensors() -> Any:
    """The package, or a message that says how to get it."""
    try:
        safetensors = import_module("safetensors")
        import_module("safetensors.numpy")
    except ImportError:
        message = (
            "Checkpoints need the package safetensors. Install it with: python -m pip install 'nbgrad[checkpoint]'"
        )
        raise CheckpointError(message) from None
    return safetensors


def _flush(folder: str) -> None:
    """Let the names of a folder's files be on the disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextlib.contextmanager
def replaced(path: str) -> Iterator[str]:
    """The path of a file to write, which takes the place of another one when it is complete.

    Raises
    ------
    FileNotFoundError
        If there is no folder for it.
    """
    path = os.path.realpath(path)
    folder, base = os.path.split(path)
    if not os.path.isdir(folder):
        message = f"There is no folder {folder!r} to save {base!r} in."
        raise FileNotFoundError(message)
    temporary = os.path.join(folder, f".{base}.{os.urandom(6).hex()}.part")
    try:
        with open(temporary, "xb") as file:
            mode = os.fstat(file.fileno()).st_mode
        yield temporary
        # Some versions of safetensors make files that only their owner can read.
        os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode if os.path.exists(path) else mode))
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        with contextlib.suppress(OSError):  # not all systems of files have it for folders
            _flush(folder)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def write_arrays(path: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a file as a whole or not at all."""
    save_file = safetensors().numpy.save_file
    with replaced(path) as temporary:
        save_file(dict(arrays), temporary, metadata={"format": "np"})


@contextlib.contextmanager
def opened(path: str) -> Iterator[Any]:
    """A file of arrays, open for reading.

    Raises
    ------
    CheckpointError
        If it has another format, or is damaged.
    """
    package = safetensors()
    try:
        with package.safe_open(path, framework="np") as file:
            yield file
    except (package.SafetensorError, TypeError, ValueError, KeyError, AttributeError) as error:
        message = (
            f"{path!r} ({os.path.getsize(path)} bytes) cannot be read as a checkpoint in the safetensors format: "
            f"{error}. It is damaged, or another program wrote it in another format. (MindSpore writes this format "
            "with format='safetensors'.)"
        )
        raise CheckpointError(message) from None


def read_arrays(path: str) -> dict[str, np.ndarray]:
    """The arrays of a file."""
    with opened(path) as file:
        found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, array in found.items():
        if not supported(array.dtype):
            message = f"{name} in {path!r} has dtype {array.dtype}, which nbgrad does not compute with."
            raise CheckpointError(message)
    return found
