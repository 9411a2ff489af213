"""The cache under random faults: machine code is right or compiled again, no error reaches the user, no file is lost.

A state machine of Hypothesis runs four small functions through the cache, and between any two system calls damages
entries, puts other things in their place, takes the folder away, changes the clock, or lets a call fail.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock
from weakref import WeakValueDictionary

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nbgrad.compiler import cache, cpu
from nbgrad.process import private_folder

FUNCTIONS = range(4)
ERRORS = [errno.EACCES, errno.EIO, errno.ENOENT, errno.ENOSPC, errno.EMFILE, errno.ESTALE, errno.EROFS]
CALLS = ("open", "fstat", "stat", "mkdir", "replace", "unlink", "scandir", "utime", "readlink")
SIZE_LIMIT = 8000


def constant(number: int) -> str:
    """IR of a function that returns its number."""
    return f"define i64 @constant() {{\n  ret i64 {number + 40}\n}}\n"


def name_of(number: int) -> str:
    """The name of a function's entry."""
    return f"object-{cache.digest(f'constant {number}')}"


# ----- Damage to an entry -----


def rewritten(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def flipped(data: bytes, at: int) -> bytes:
    at %= max(1, len(data))
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] if data else data


def replaced(path: Path, make: Callable[[Path], Any]) -> None:
    path.rename(path.with_name("aside"))
    path.with_name("aside").unlink()
    make(path)


def sparse(path: Path) -> None:
    with open(path, "wb") as file:
        file.write(cache.MAGIC)
        file.truncate(8 << 30)


DAMAGE: dict[str, Callable[[Path, int], Any]] = {
    "delete": lambda path, _: path.unlink(),
    "truncate": lambda path, at: rewritten(path, lambda data: data[: at % (len(data) + 1)]),
    "flip a bit": lambda path, at: rewritten(path, lambda data: flipped(data, at)),
    "append": lambda path, at: rewritten(path, lambda data: data + bytes(at)),
    "swap": lambda path, at: rewritten(path, lambda _: path.with_name(name_of(at % 4)).read_bytes()),
    "pipe": lambda path, _: replaced(path, os.mkfifo),
    "folder": lambda path, _: replaced(path, os.mkdir),
    "link to another entry": lambda path, at: replaced(path, lambda p: p.symlink_to(name_of(at % 4))),
    "link to a device": lambda path, _: replaced(path, lambda p: p.symlink_to("/dev/zero")),
    "huge": lambda path, _: replaced(path, sparse),
    "unreadable": lambda path, _: path.chmod(0),
    "writable by others": lambda path, _: path.chmod(0o666),
    "old": lambda path, at: os.utime(path, (at, at)),
}


class Calls:
    """Stands for the module `os` in the cache: before one of its calls something happens, or it fails."""

    def __init__(self) -> None:
        self.left = 0
        self.event: Callable[[], None] | None = None

    def __getattr__(self, name: str) -> Any:
        function = getattr(os, name)
        if name not in CALLS:
            return function

        def call(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left < 0 and self.event is not None:
                event, self.event = self.event, None
                event()
            return function(*arguments, **options)

        return call


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can be longer than a few bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class Faults(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.folder = self.place / "cache"
        self.calls = Calls()
        self.foreign: dict[str, bytes] = {}
        self.usable = True
        self.written = 0
        self.patches = [
            mock.patch.dict(os.environ, NBGRAD_CACHE_DIR=str(self.folder)),
            mock.patch.object(cache, "os", self.calls),
            mock.patch.object(private_folder, "os", self.calls),
            mock.patch.object(cache, "SIZE_LIMIT", SIZE_LIMIT),
            mock.patch.object(cache, "WRITES", 1),
        ]
        for patch in self.patches:
            patch.start()

    def teardown(self) -> None:
        for patch in reversed(self.patches):
            patch.stop()
        with suppress(OSError):
            self.folder.chmod(0o700)
        shutil.rmtree(self.place)

    def entry(self, number: int) -> Path:
        return self.folder / name_of(number)

    def run(self, number: int) -> str:
        """Call a function as a new process would; says whether it was compiled or loaded."""
        before = dict(cache.counters)
        with mock.patch.object(cpu, "_loaded", WeakValueDictionary()):
            code = cpu.function_code(cpu.Function(f"constant {number}", "constant", lambda: constant(number)))
        assert ctypes.CFUNCTYPE(ctypes.c_int64)(code.address)() == number + 40
        done = {name: cache.counters[name] - before[name] for name in ("compiled", "loaded")}
        assert sum(done.values()) == 1
        self.calls.event = None
        return next(name for name, count in done.items() if count)

    # ----- Ordinary use -----

    @rule(number=st.sampled_from(FUNCTIONS))
    def call(self, number: int) -> None:
        self.run(number)

    @precondition(lambda self: self.usable)
    @rule(number=st.sampled_from(FUNCTIONS))
    def call_twice(self, number: int) -> None:
        """After whatever damage, the second call loads what the first one has stored; and no more is kept than may."""
        if self.entry(number).is_dir():
            self.entry(number).rmdir()
        self.run(number)
        assert self.run(number) == "loaded"
        if self.run((number + 1) % 4) == "compiled":
            assert self.own_bytes() <= SIZE_LIMIT

    @precondition(lambda self: self.usable)
    @rule(number=st.sampled_from(FUNCTIONS))
    def exchange(self, number: int) -> None:
        """Two intact entries get each other's name: neither may be used."""
        paths = [self.entry(number), self.entry((number + 1) % 4)]
        if not any(path.is_dir() for path in paths):
            self.run(number)
            self.run((number + 1) % 4)
            contents = [path.read_bytes() for path in paths if path.exists()]
            for path, content in zip(paths, reversed(contents), strict=False):
                path.write_bytes(content)
            done = [self.run((number + k) % 4) for k in range(2)]
            assert len(contents) < 2 or done == ["compiled", "compiled"]

    @rule(count=st.integers(1, 30))
    def others_write(self, count: int) -> None:
        for _ in range(count):
            self.written += 1
            cache.store("scalar", f"{self.written:064x}", bytes(300))

    # ----- Faults -----

    @rule(number=st.sampled_from(FUNCTIONS), how=st.sampled_from(sorted(DAMAGE)), at=st.integers(0, 5000))
    def damage(self, number: int, how: str, at: int) -> None:
        """An entry is damaged, if there is one."""
        with suppress(OSError):
            if stat.S_ISREG(os.lstat(self.entry(number)).st_mode) and os.lstat(self.entry(number)).st_size < 10**6:
                DAMAGE[how](self.entry(number), at)

    @rule(
        number=st.sampled_from(FUNCTIONS),
        left=st.integers(0, 12),
        other=st.sampled_from(FUNCTIONS),
        how=st.sampled_from(sorted(DAMAGE)),
        at=st.integers(0, 5000),
    )
    def damage_meanwhile(self, number: int, left: int, other: int, how: str, at: int) -> None:
        """An entry is damaged between two system calls."""
        self.calls.left, self.calls.event = left, lambda: self.damage(other, how, at)
        self.run(number)

    @rule(number=st.sampled_from(FUNCTIONS), left=st.integers(0, 12), error=st.sampled_from(ERRORS))
    def fail(self, number: int, left: int, error: int) -> None:
        """A system call fails."""

        def event() -> None:
            raise OSError(error, os.strerror(error))

        self.calls.left, self.calls.event = left, event
        self.run(number)

    @rule(number=st.sampled_from(FUNCTIONS), left=st.integers(0, 12))
    def evict_meanwhile(self, number: int, left: int) -> None:
        """Another process removes entries between two system calls."""

        def event() -> None:
            with suppress(OSError), mock.patch.object(cache, "SIZE_LIMIT", 1000):
                handle = os.open(self.folder, os.O_RDONLY)
                try:
                    cache._evict(handle)
                finally:
                    os.close(handle)

        self.calls.left, self.calls.event = left, event
        self.run(number)

    @rule(number=st.sampled_from(FUNCTIONS), left=st.integers(0, 12))
    def folder_goes_meanwhile(self, number: int, left: int) -> None:
        """The folder is deleted between two system calls, with all that is in it."""
        self.calls.left, self.calls.event = left, self.delete_folder
        self.run(number)

    @rule(number=st.sampled_from(FUNCTIONS))
    def disk_full(self, number: int) -> None:
        with full_disk():
            self.run(number)

    @rule(days=st.integers(-1000, 1000))
    def clock(self, days: int) -> None:
        """The clock is set: all files get older or younger."""
        for path in self.folder.glob("*-*"):
            with suppress(OSError):
                used = os.lstat(path).st_mtime + 86_400 * days
                os.utime(path, (used, used), follow_symlinks=False)

    @rule(mode=st.sampled_from([0o777, 0o500, 0o000, 0o700]))
    def change_mode(self, mode: int) -> None:
        with suppress(OSError):
            self.folder.chmod(mode)
            self.usable = mode == 0o700 and self.folder.is_dir()

    @rule()
    def delete_folder(self) -> None:
        with suppress(OSError):
            self.folder.chmod(0o700)
        if self.folder.is_dir() and not self.folder.is_symlink():
            shutil.rmtree(self.folder)
        else:
            self.folder.unlink(missing_ok=True)
        self.foreign.clear()
        self.usable = True

    @rule()
    def file_in_its_place(self) -> None:
        self.delete_folder()
        self.folder.write_text("a file")
        self.usable = False

    @rule()
    def move_folder(self) -> None:
        """To where a link in its place leads; nbgrad makes no such link, but users do."""
        if self.usable and self.folder.exists() and not self.folder.is_symlink():
            self.folder.rename(self.place / f"moved{time.monotonic_ns()}")
            self.folder.symlink_to(max(self.place.glob("moved*")))

    @rule(
        name=st.sampled_from(["weights.npy", "object-1", ".writing-draft"])
        | st.binary(min_size=32, max_size=32).map(lambda data: f"scalar-{data.hex()}"),
        data=st.binary(max_size=20),
    )
    def put_file(self, name: str, data: bytes) -> None:
        """Another program's file, which may be named as an entry is."""
        with suppress(OSError):
            (self.folder / name).write_bytes(b"own" + data)
            os.utime(self.folder / name, (0, 0))
            self.foreign[name] = b"own" + data

    # ----- What must hold -----

    def own_bytes(self) -> int:
        """The bytes of all entries."""
        total = 0
        for path in self.folder.glob("*"):  # nothing, where a link to it is gone
            status = os.lstat(path)
            if cache.OWN.fullmatch(path.name) and stat.S_ISREG(status.st_mode) and status.st_size <= cache.ENTRY_LIMIT:
                with suppress(OSError), open(path, "rb") as file:
                    total += status.st_size if file.read(len(cache.MAGIC)) == cache.MAGIC else 0
        return total

    @invariant()
    def files_of_others_are_there(self) -> None:
        if self.usable:
            for name, data in self.foreign.items():
                assert (self.folder / name).read_bytes() == data

    @invariant()
    def nothing_is_left_half_written(self) -> None:
        with suppress(OSError):
            assert not [name for name in os.listdir(self.folder) if cache.WRITING.fullmatch(name)]


TestFaults = Faults.TestCase
TestFaults.settings = settings(max_examples=25, stateful_step_count=25)


def test_processes_that_write_and_evict_at_once(tmp_path: Path) -> None:
    """Four processes, one small folder: each gets what was stored under a key, or nothing."""
    script = """
import hashlib, random, sys
from nbgrad.compiler import cache
cache.SIZE_LIMIT, cache.WRITES = 20_000, 4
order = random.Random(int(sys.argv[1]))
for _ in range(1500):
    key = hashlib.sha256(bytes([order.randrange(60)])).hexdigest()
    payload = key.encode() * 10
    found = cache.load("object", key)
    assert found in (None, payload)
    if found is None:
        cache.store("object", key, payload)
assert cache.counters["rejected"] == 0, cache.counters
"""
    environment = {**os.environ, "NBGRAD_CACHE_DIR": str(tmp_path / "cache")}
    started = [
        subprocess.Popen([sys.executable, "-c", script, str(k)], env=environment, stderr=subprocess.PIPE, text=True)
        for k in range(4)
    ]
    for process in started:
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
    sizes = [path.stat().st_size for path in (tmp_path / "cache").iterdir()]
    assert sum(sizes) < 20_000 + 60 * 700 and len(sizes) < 60
