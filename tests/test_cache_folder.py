"""The cache's folder: who can get at it, what in it is nbgrad's, and what is removed when there is too much."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nbgrad.compiler import cache

DAY = 86_400
PAYLOAD = bytes(1000)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of a test's own, that has room for ten payloads and counts them at each write."""
    path = tmp_path / "cache"
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(path))
    monkeypatch.setattr(cache, "SIZE_LIMIT", 10 * (len(PAYLOAD) + cache.HEADER))
    monkeypatch.setattr(cache, "WRITES", 1)
    path.mkdir(mode=0o700)
    return path


def key(number: int) -> str:
    return f"{number:064x}"


def entry(folder: Path, number: int) -> Path:
    return folder / f"object-{key(number)}"


def aged(path: Path, days: float) -> None:
    """Set a file's times."""
    os.utime(path, (time.time() - days * DAY,) * 2)


def present(folder: Path, numbers: range) -> list[int]:
    return [number for number in numbers if entry(folder, number).exists()]


# ----- Eviction -----


def test_too_much_is_removed(folder: Path) -> None:
    for number in range(100):
        cache.store("object", key(number), PAYLOAD)
    count, size = cache.usage()
    assert 0 < count <= 10 and size <= cache.SIZE_LIMIT
    assert cache.load("object", key(99)) == PAYLOAD


def test_many_short_processes_are_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One write in 64 counts the entries, whichever process writes."""
    monkeypatch.setattr(cache, "WRITES", 64)
    monkeypatch.setattr(cache, "QUICK", np.inf)  # this one process stands for many
    limit = cache.SIZE_LIMIT // cache.HEADER
    # The chance of 1250 writes without a count is 3e-9.
    for number in range(limit + 1500):
        cache.store("object", key(number), b"")
    assert len(list(folder.iterdir())) < limit + 1250


def test_counts_that_take_long_are_made_seldom(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are many entries, a process that writes many counts them for a fiftieth of its time."""
    clock, counts = [1000.0], []

    def count(place: int) -> None:
        counts.append(clock[0])
        clock[0] += 0.02

    def now() -> float:
        return clock[0]

    monkeypatch.setattr(cache, "time", SimpleNamespace(time=time.time, perf_counter=now, thread_time=now))
    monkeypatch.setattr(cache, "_evict", count)
    for _ in range(2500):
        cache.store("object", key(0), PAYLOAD)
        clock[0] += 0.001
    assert len(counts) == 3
    np.testing.assert_allclose(np.diff(counts), 1.0, atol=0.01)
    # Another folder has its own.
    before = len(counts)
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(folder.with_name("other")))
    cache.store("object", key(0), PAYLOAD)
    assert len(counts) == before + 1


def test_what_was_used_longest_ago_goes_first(folder: Path) -> None:
    for number in range(10):
        cache.store("object", key(number), PAYLOAD)
        aged(entry(folder, number), 100 - number)
    assert cache.load("object", key(0)) == cache.load("object", key(3)) == PAYLOAD
    cache.store("object", key(10), PAYLOAD)
    assert present(folder, range(11)) == [0, 3, *range(5, 11)]


def test_times_to_come_say_nothing(folder: Path) -> None:
    """The clock was wrong when entries were written: they do not stay for ever, unless they are used."""
    for number in range(10):
        cache.store("object", key(number), PAYLOAD)
        aged(entry(folder, number), -1000 if number < 5 else 1)
    assert cache.load("object", key(2)) == PAYLOAD
    cache.store("object", key(10), PAYLOAD)
    left = present(folder, range(11))
    assert set(left) >= {2, 5, 6, 7, 8, 9, 10} and len(left) == 8


def test_a_use_is_noted_once_a_day(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[int] = []
    utime = os.utime
    monkeypatch.setattr(os, "utime", lambda *arguments: (noted.append(1), utime(*arguments)))
    cache.store("object", key(0), PAYLOAD)
    for days, count in ((0, 0), (0.9, 0), (1.1, 1), (365, 1), (-0.9, 0), (-365, 1)):
        utime(entry(folder, 0), (time.time() - days * DAY,) * 2)
        noted.clear()
        for _ in range(3):
            assert cache.load("object", key(0)) == PAYLOAD
        assert len(noted) == count, days


FOREIGN = [
    "weights.npy",
    "object-notes.txt",
    f"object-{key(77)}.bak",
    f"object-{key(0xABC).upper()}",
    f"scalar-{key(0)[:-1]}",
    f"object-{key(55)}",
    f"kind-{key(0)}",
    ".writing-thesis",
    ".writing-0123456789abcdef",
    "-rf",
]


def test_files_of_others_stay(folder: Path) -> None:
    """Names of nbgrad's own, too, if what is in them does not begin as entries do."""
    for name in FOREIGN:
        (folder / name).write_bytes(b"years of work" * 1000)
        aged(folder / name, 10_000)
    (folder / "results").mkdir()
    (folder / "results" / entry(folder, 1).name).write_bytes(b"more")
    (folder / entry(folder, 66).name).mkdir()
    entry(folder, 67).symlink_to(folder / "weights.npy")
    for number in range(100, 200):
        cache.store("object", key(number), PAYLOAD)
    for name in FOREIGN:
        assert (folder / name).read_bytes() == b"years of work" * 1000, name
    assert (folder / "results" / entry(folder, 1).name).read_bytes() == b"more"
    assert entry(folder, 66).is_dir() and entry(folder, 67).is_symlink()
    # They take no room from entries either.
    assert 8 <= len(present(folder, range(100, 200))) <= 10


def test_what_a_killed_process_was_writing_goes(folder: Path) -> None:
    abandoned = folder / ".writing-00ff00ff00ff00ff"
    abandoned.write_bytes(cache.MAGIC + PAYLOAD)
    aged(abandoned, 1)
    for number in range(11):
        cache.store("object", key(number), PAYLOAD)
    assert not abandoned.exists()


# ----- In place of an entry -----


def huge(path: Path) -> None:
    with open(path, "wb") as file:
        file.write(cache.MAGIC)
        file.truncate(8 << 30)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        # The path of a socket is limited to 107 bytes.
        here = os.open(path.parent, os.O_RDONLY)
        opened.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
    path.with_name("socket").rename(path)


def link_to_an_entry(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


REPLACED: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a socket": listening,
    "a link to a good entry": link_to_an_entry,
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "8 GiB of nothing": huge,
}


@pytest.mark.parametrize("what", REPLACED)
def test_in_place_of_an_entry(what: str, folder: Path) -> None:
    cache.store("object", key(1), PAYLOAD)
    if what != "a link to a good entry":
        entry(folder, 1).unlink()
    REPLACED[what](entry(folder, 1))
    found: list[object] = []
    # Whoever opens a pipe the ordinary way waits for ever.
    thread = threading.Thread(target=lambda: found.append(cache.load("object", key(1))), daemon=True)
    thread.start()
    thread.join(30)
    assert found == [None]
    cache.store("object", key(1), PAYLOAD)
    assert cache.load("object", key(1)) == (None if what == "a folder" else PAYLOAD)


def test_large_results_are_not_stored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "ENTRY_LIMIT", 10_000)
    for size in (10_000 - cache.HEADER, 10_001 - cache.HEADER):
        cache.store("object", key(size), bytes(size))
        assert entry(folder, size).exists() == (size + cache.HEADER <= 10_000)
        cache.load("object", key(size))


# ----- The way to the folder -----


def owned_by(path: Path, owner: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file seem another user's."""
    known = os.lstat(path)

    def seen(status: os.stat_result) -> os.stat_result:
        fields = list(status)
        if (status.st_dev, status.st_ino) == (known.st_dev, known.st_ino):
            fields[4] = owner
        return os.stat_result(fields)

    for name in ("fstat", "stat"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, real=real, **k: seen(real(*a, **k)))


@pytest.mark.parametrize(
    ("mode", "safe"), [(0o777, False), (0o757, False), (0o1777, True), (0o755, True), (0o775, True), (0o711, True)]
)
def test_folders_on_the_way(mode: int, safe: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    above = tmp_path / "above"
    (above / "between" / "cache").mkdir(parents=True)
    (above / "between" / "cache").chmod(0o700)
    above.chmod(mode)
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(above / "between" / "cache"))
    assert (cache.folder() is not None) == safe
    (tmp_path / "link").symlink_to(above / "between")
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(tmp_path / "link" / "cache"))
    assert (cache.folder() is not None) == safe
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(tmp_path / "link" / ".." / "between" / "." / "cache") + "/")
    assert (cache.folder() is not None) == safe


@pytest.mark.parametrize("whose", ["above", "above/cache", "link"])
def test_folders_and_links_of_other_users(whose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "above" / "cache").mkdir(parents=True, mode=0o700)
    (tmp_path / "above" / "cache").chmod(0o700)
    (tmp_path / "link").symlink_to("above")
    for way in ("above", "link"):
        monkeypatch.setenv("NBGRAD_CACHE_DIR", str(tmp_path / way / "cache"))
        assert cache.folder() is not None
    owned_by(tmp_path / whose, 4321, monkeypatch)
    assert cache.folder() is None or whose in ("above", "link"), "the folder itself is looked at in each call"
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(tmp_path / "link" / "cache") + "/")
    assert cache.folder() is None


def test_links_in_circles_and_long_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for path in (tmp_path / "a" / "cache", Path(tmp_path, *["a.."] * 300)):
        monkeypatch.setenv("NBGRAD_CACHE_DIR", str(path))
        assert cache.folder() is None


def test_new_folders_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(tmp_path / "x" / "y" / "z"))
    before = os.umask(0)
    try:
        cache.store("object", key(1), PAYLOAD)
    finally:
        os.umask(before)
    for name in ("x", "x/y", "x/y/z"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700
    assert entry(tmp_path / "x/y/z", 1).stat().st_mode & 0o777 == 0o600


def test_another_folder_in_its_place_is_not_used(folder: Path, tmp_path: Path) -> None:
    cache.store("object", key(1), PAYLOAD)
    folder.rename(tmp_path / "moved")
    folder.mkdir(mode=0o700)
    cache.store("object", key(2), PAYLOAD)
    assert [path.name for path in sorted((tmp_path / "moved").iterdir())] == [entry(folder, k).name for k in (1, 2)]
    assert not list(folder.iterdir())


def test_a_deleted_folder_is_made_anew(folder: Path) -> None:
    for number in range(3):
        cache.store("object", key(number), PAYLOAD)
        assert cache.load("object", key(number)) == PAYLOAD
        entry(folder, number).unlink()
        folder.rmdir()


def test_a_descriptor_that_became_another_file(folder: Path, tmp_path: Path) -> None:
    """Daemons close all descriptors, and get the same numbers for files of their own."""
    cache.store("object", key(1), PAYLOAD)
    assert cache._held is not None
    number = cache._held[1]
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    os.close(number)
    opened = os.open(other, os.O_RDONLY)
    if opened != number:
        os.dup2(opened, number)
    try:
        cache.store("object", key(2), PAYLOAD)
        assert cache.load("object", key(1)) == cache.load("object", key(2)) == PAYLOAD
        assert not list(other.iterdir())
        assert os.fstat(number).st_ino == other.stat().st_ino, "it was closed"
    finally:
        for descriptor in {opened, number}:
            os.close(descriptor)


def test_a_folder_that_was_opened_to_others_is_not_used(folder: Path) -> None:
    cache.store("object", key(1), PAYLOAD)
    folder.chmod(0o777)
    assert cache.load("object", key(1)) is None and cache.folder() is None
    folder.chmod(0o700)
    assert cache.load("object", key(1)) == PAYLOAD


def test_settings_without_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty setting is none; a relative XDG_CACHE_HOME does not count, as its specification says."""
    monkeypatch.setenv("NBGRAD_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert cache.folder() == tmp_path / ".cache" / "nbgrad"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.folder() == tmp_path / "xdg" / "nbgrad"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert cache.folder() is None
    assert sorted(path.name for path in tmp_path.iterdir()) == [".cache", "xdg"]


# ----- Keys -----


@pytest.mark.parametrize("of", ["numpy", "numba", "llvmlite", "python"])
def test_every_version_is_part_of_the_key(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def key_now() -> str:
        cache.toolchain.cache_clear()
        return cache.digest("something")

    before = key_now()
    assert key_now() == before
    try:
        if of == "numpy":
            monkeypatch.setattr(np, "__version__", "2.99")
        elif of == "numba":
            monkeypatch.setattr(cache, "numba_version", lambda: "0.99")
        elif of == "llvmlite":
            monkeypatch.setattr("llvmlite.__version__", "0.99")
        else:
            monkeypatch.setattr("sys.version_info", (3, 99))
        assert key_now() != before
    finally:
        monkeypatch.undo()
        cache.toolchain.cache_clear()


def test_every_file_of_the_compiler_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    of_path = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.as_posix()) or of_path(path))
    cache.toolchain.cache_clear()
    cache.toolchain()
    for name in ("compiler/fuse.py", "compiler/emitters/emit.py", "compiler/matrices/matmul.py", "kernels/scatter.py"):
        assert any(path.endswith(name) for path in read), name


def test_the_version_of_numba() -> None:
    from importlib.metadata import version

    assert version("numba") in cache.numba_version()
