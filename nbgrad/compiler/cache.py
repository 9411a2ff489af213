"""The cache on disk: machine code and scalar IR by content, and the counters that users can read.

In: a kind, a key (a digest of everything that went into the result) and bytes. Out: the bytes, or None. Called by
scalars.py and cpu.py. An entry is a header with the SHA-256 of its payload, written to a temporary file and renamed, so
readers never see half an entry; a damaged one is ignored and written anew. The folder must belong to the user and be
closed to others, or it is not used: what lies in it is executed. Nothing here ever raises: without a usable folder
everything is compiled in memory.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

MAGIC = b"nbgrad1\n"
SIZE_LIMIT = 512 * 1024 * 1024

counters: dict[str, int] = {"compiled": 0, "loaded": 0, "numba_compiles": 0, "rejected": 0}
"""Kernels compiled, kernels loaded from disk, scalar kernels that Numba compiled, damaged entries: in this process."""


@cache
def cpu_name() -> str:
    """The CPU that code is compiled for."""
    return os.environ.get("NBGRAD_CPU_NAME") or llvm.get_host_cpu_name()


@cache
def cpu_features() -> str:
    """The CPU's features, as LLVM writes them."""
    if os.environ.get("NBGRAD_CPU_NAME"):
        return ""
    return llvm.get_host_cpu_features().flatten()


@cache
def toolchain() -> str:
    """A digest of all that turns kernels into code: our own compiler and kernels, LLVM and the CPU.

    Kernels of GPUs are left out; nbgrad/device/ptx.py has a digest of them.
    """
    total = hashlib.sha256()
    total.update(f"{sys.version_info[:2]} {llvmlite.__version__} {cpu_name()} {cpu_features()}".encode())
    here = Path(__file__).resolve().parent
    for folder in (here, kernels_folder()):
        for path in sorted(folder.glob("*.py")):
            if not path.name.startswith("device"):
                total.update(path.name.encode())
                total.update(path.read_bytes())
    return total.hexdigest()


@cache
def kernels_folder() -> Path:
    """Where the kernels' sources lie, without importing them."""
    from importlib.util import find_spec

    spec = find_spec("nbgrad.kernels")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).resolve().parent


def digest(*parts: str) -> str:
    """The key of something made from `parts` by this toolchain."""
    total = hashlib.sha256(toolchain().encode())
    for part in parts:
        total.update(b"\0" + part.encode())
    return total.hexdigest()


@cache
def _open_folder(setting: str | None) -> Path | None:
    if setting is not None:
        folder = Path(setting)
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        folder = Path(base) / "nbgrad"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if _private(os.stat(folder), stat.S_ISDIR) else None
    except OSError:
        return None


def folder() -> Path | None:
    """The cache folder ($NBGRAD_CACHE_DIR or ~/.cache/nbgrad), or None if there is none that is safe to use."""
    return _open_folder(os.environ.get("NBGRAD_CACHE_DIR"))


def _private(status: os.stat_result, kind: object) -> bool:
    """Whether an entry is of the right kind, the user's own, and writable by nobody else."""
    if not callable(kind) or not kind(status.st_mode):
        return False
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def load(kind: str, key: str) -> bytes | None:
    """The payload stored under a key, or None; whatever is wrong with an entry, it is as if it were not there."""
    place = folder()
    if place is None:
        return None
    path = place / f"{kind}-{key}"
    try:
        with open(path, "rb") as file:
            if not _private(os.fstat(file.fileno()), stat.S_ISREG):
                counters["rejected"] += 1
                return None
            data = file.read()
    except OSError:
        return None
    head = len(MAGIC)
    payload = data[head + 32 :]
    if data[:head] != MAGIC or hashlib.sha256(key.encode() + payload).digest() != data[head : head + 32]:
        counters["rejected"] += 1
        return None
    return payload


def store(kind: str, key: str, payload: bytes) -> None:
    """Store a payload; a failure (full or read-only disk) is silent, because the result is there anyway."""
    place = folder()
    if place is None:
        return
    data = MAGIC + hashlib.sha256(key.encode() + payload).digest() + payload
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=".writing-", dir=place)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, place / f"{kind}-{key}")
        temporary = None
        _bound(place)
    except OSError:
        pass
    finally:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


_written = 0


def _bound(place: Path) -> None:
    """Every few hundred writes, drop the entries that were used longest ago beyond the size limit."""
    global _written
    _written += 1
    if _written % 256:
        return
    with os.scandir(place) as listed:
        entries = [(entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in listed]
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= SIZE_LIMIT:
            break
        os.unlink(path)
        total -= size


def load_text(kind: str, key: str) -> str | None:
    """`load` for text."""
    data = load(kind, key)
    return None if data is None else data.decode()


def store_text(kind: str, key: str, text: str) -> None:
    """`store` for text."""
    store(kind, key, text.encode())
