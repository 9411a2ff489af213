"""The cache on disk: machine code and scalar IR by content, and the counters that users can read.

In: a kind, a key (a digest of everything that went into the result) and bytes. Out: the bytes, or None. Called by
scalars.py, cpu.py and adjoints/derived.py. An entry is a header with the SHA-256 of its payload, written to a
temporary file and renamed, so readers never see half an entry; a damaged one is ignored and written anew. The folder
and its entries must belong to the user and be closed to others, or they are not used: entries are executed. Other
files in the folder are left alone. Nothing here ever raises: without a usable folder everything is compiled in
memory.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from ..process.locks import ForkSafeLock
from ..process.private_folder import is_private, open_private

MAGIC = b"nbgrad1\n"
HEADER = len(MAGIC) + 32
SIZE_LIMIT = 512 * 1024 * 1024
"""The most bytes that all entries may have, but for those of the last writes."""
ENTRY_LIMIT = 64 * 1024 * 1024
"""The most bytes that an entry may have. A file with more is no entry."""
WRITES = 64
"""One write in this many, by chance, counts the entries: most processes write few."""
SHARE = 50
"""A process that writes many counts them for at most one part of its time in this many."""
QUICK = 0.01
"""Seconds of processor time; a count that takes less may follow another at once."""
DAY = 86_400.0
"""An entry's time is that of its last use, give or take this many seconds: most uses write nothing."""
WRITING = re.compile(r"\.writing-[0-9a-f]{16}")
OWN = re.compile(rf"(?:object|scalar|kernel)-[0-9a-f]{{64}}|{WRITING.pattern}")
"""The names of entries, and of those that are being written or were abandoned meanwhile."""
READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""The flags for reading entries: without following links, and without waiting for the other end of a pipe."""
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)

counters: dict[str, int] = {"compiled": 0, "loaded": 0, "numba_compiles": 0, "rejected": 0}
"""Kernels compiled, kernels loaded from disk, scalar kernels that Numba compiled, damaged entries: in this process."""


# ----- Keys -----


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
    """A digest of all that turns kernels into code: our own compiler and kernels, Numba, LLVM, NumPy and the CPU.

    Kernels of GPUs are left out; nbgrad/device/kernels/ptx.py has a digest of them.
    """
    total = hashlib.sha256()
    versions = [str(sys.version_info[:2]), np.__version__, llvmlite.__version__, numba_version()]
    total.update(" ".join([*versions, cpu_name(), cpu_features()]).encode())
    here = Path(__file__).resolve().parent
    for path in [*sorted(here.rglob("*.py")), *sorted(kernels_folder().glob("*.py"))]:
        if not path.name.startswith("device"):
            total.update(path.name.encode())
            total.update(path.read_bytes())
    return total.hexdigest()


@cache
def numba_version() -> str:
    """Numba's version as its own file states it: importing Numba takes a second."""
    from importlib.util import find_spec

    spec = find_spec("numba")
    assert spec is not None and spec.origin is not None
    try:
        return Path(spec.origin).with_name("_version.py").read_text(encoding="utf-8")
    except OSError:
        from importlib.metadata import version

        return version("numba")


@cache
def kernels_folder() -> Path:
    """The folder of the kernels' sources, found without importing them."""
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


# ----- The folder -----

_lock = ForkSafeLock()
_next_count = 0.0
"""The time, by `time.perf_counter`, before which this process does not count entries again."""
_held: tuple[str, int, tuple[int, int]] | None = None
"""The folder's path, its descriptor, and its identity: programs close descriptors, and get the same for other files."""


def _path() -> str | None:
    """The path that the environment asks for."""
    chosen = os.environ.get("NBGRAD_CACHE_DIR")
    if chosen:
        return chosen
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "nbgrad") if os.path.isabs(base) else None


def _identity(handle: int) -> tuple[int, int] | None:
    """Device and inode of an open folder; None for anything else, or if it was deleted or opened to others."""
    try:
        status = os.fstat(handle)
    except OSError:
        return None
    usable = stat.S_ISDIR(status.st_mode) and status.st_nlink > 0 and is_private(status)
    return (status.st_dev, status.st_ino) if usable else None


def _folder() -> int | None:
    """The folder's descriptor; None if there is none that is safe to use. The lock is held."""
    global _held, _next_count
    path = _path()
    if _held is not None:
        known, handle, identity = _held
        same = _identity(handle) == identity
        if same and known == path:
            return handle
        _held = None
        if same:
            os.close(handle)
    if path is None:
        return None
    try:
        handle = open_private(path)
    except OSError:
        return None
    identity = _identity(handle)
    if identity is None:
        os.close(handle)
        return None
    _held = path, handle, identity
    _next_count = 0.0
    return handle


def folder() -> Path | None:
    """The cache folder ($NBGRAD_CACHE_DIR or ~/.cache/nbgrad), or None if there is none that is safe to use."""
    with _lock.held():
        path = _path()
        return Path(path) if path is not None and _folder() is not None else None


def usage() -> tuple[int, int]:
    """The number of entries in the folder, and their bytes."""
    with _lock.held():
        place = _folder()
        try:
            sizes = [] if place is None else [size for _, size, _ in _listed(place)]
        except OSError:
            sizes = []
    return len(sizes), sum(sizes)


# ----- Entries -----


def load(kind: str, key: str) -> bytes | None:
    """The payload stored under a key, or None; whatever is wrong with an entry, it is as if it were not there."""
    with _lock.held():
        place = _folder()
        if place is None:
            return None
        try:
            payload = _read(place, f"{kind}-{key}", key)
        except FileNotFoundError:
            return None
        except (OSError, MemoryError):
            payload = None
        if payload is None:
            counters["rejected"] += 1
        return payload


def _read(place: int, name: str, key: str) -> bytes | None:
    """An entry's payload; None if it is damaged or not to be trusted."""
    handle = os.open(name, READ, dir_fd=place)
    try:
        status = os.fstat(handle)
        size = status.st_size
        if not (stat.S_ISREG(status.st_mode) and is_private(status) and HEADER <= size <= ENTRY_LIMIT):
            return None
        with open(handle, "rb", closefd=False) as file:
            data = file.read(size + 1)
        payload = data[HEADER:]
        if len(data) != size or data[:HEADER] != _header(key, payload):
            return None
        if abs(time.time() - status.st_mtime) > DAY:
            with suppress(OSError):
                os.utime(handle)
        return payload
    finally:
        os.close(handle)


def _header(key: str, payload: bytes) -> bytes:
    return MAGIC + hashlib.sha256(key.encode() + payload).digest()


def store(kind: str, key: str, payload: bytes) -> None:
    """Store a payload; a failure (full or read-only disk) is silent, because the result is there anyway."""
    if HEADER + len(payload) > ENTRY_LIMIT:
        return
    with _lock.held(), suppress(OSError, MemoryError):
        place = _folder()
        if place is None:
            return
        _write(place, f"{kind}-{key}", _header(key, payload) + payload)
        if os.urandom(1)[0] * WRITES < 256 and time.perf_counter() >= _next_count:
            _count(place)


def _write(place: int, name: str, data: bytes) -> None:
    temporary = f".writing-{os.urandom(8).hex()}"
    try:
        with open(os.open(temporary, WRITE, 0o600, dir_fd=place), "wb") as file:
            file.write(data)
        os.replace(temporary, name, src_dir_fd=place, dst_dir_fd=place)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=place)
        raise


def load_text(kind: str, key: str) -> str | None:
    """`load` for text."""
    data = load(kind, key)
    return None if data is None else data.decode()


def store_text(kind: str, key: str, text: str) -> None:
    """`store` for text."""
    store(kind, key, text.encode())


# ----- Eviction -----


def _count(place: int) -> None:
    """Evict what is too much, and put the next count off if this one took long: a folder may have 10,000 entries."""
    global _next_count
    begun, used = time.perf_counter(), time.thread_time()
    try:
        _evict(place)
    finally:
        took = time.thread_time() - used
        _next_count = begun + SHARE * took if took > QUICK else 0.0


def _evict(place: int) -> None:
    """Beyond the size limit, remove the entries that were used longest ago, until an eighth of it is free."""
    if sum(size for _, size, _ in _listed(place)) <= SIZE_LIMIT:
        return
    entries = [entry for entry in _listed(place) if _has_form(place, entry[2])]
    total = sum(size for _, size, _ in entries)
    if total <= SIZE_LIMIT:
        return
    # Times to come are of a clock that was wrong: they say nothing about the last use.
    latest = time.time() + DAY
    for _, size, name in sorted((used if used <= latest else 0.0, size, name) for used, size, name in entries):
        if total <= SIZE_LIMIT - SIZE_LIMIT // 8:
            break
        with suppress(OSError):
            os.unlink(name, dir_fd=place)
            total -= size


def _listed(place: int) -> list[tuple[float, int, str]]:
    """Last use, bytes and name of each file that has an entry's name, and no more than an entry's bytes."""
    found: list[tuple[float, int, str]] = []
    with os.scandir(place) as listed:
        for entry in listed:
            if OWN.fullmatch(entry.name):
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode) and status.st_size <= ENTRY_LIMIT:
                        found.append((status.st_mtime, status.st_size, entry.name))
    return found


def _has_form(place: int, name: str) -> bool:
    """Whether a file begins as entries do."""
    try:
        handle = os.open(name, READ, dir_fd=place)
        try:
            return os.read(handle, len(MAGIC)) == MAGIC
        finally:
            os.close(handle)
    except OSError:
        return False
