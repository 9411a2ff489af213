"""The cache on disk: a damaged, foreign or unusable one never changes a result, and a warm one compiles nothing.

Most tests run scripts in processes of their own, each with its own cache folder.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nbgrad.compiler import cache

GRADIENT = """
import numpy as np, nbgrad as nb
x = np.linspace(-1, 1, 7)
got = nb.grad(lambda x: np.sum(np.exp(x) * np.sin(x)))(x)
np.testing.assert_allclose(got, np.exp(x) * (np.sin(x) + np.cos(x)), rtol=1e-13)
"""
PRODUCT = """
import numpy as np, nbgrad as nb
a, b = np.arange(12.0).reshape(3, 4), np.arange(8.0).reshape(4, 2)
ga, gb = nb.grad(lambda a, b: np.sum((a @ b) ** 2), (0, 1))(a, b)
np.testing.assert_allclose(ga, 2 * a @ b @ b.T)
np.testing.assert_allclose(gb, 2 * a.T @ a @ b)
"""
REPORT = """
import json, sys
from nbgrad.compiler.cache import counters
print(json.dumps({**counters, "numba": "numba" in sys.modules, "scipy": "scipy" in sys.modules,
                  "scipy.linalg": "scipy.linalg" in sys.modules}))
"""


def run(script: str, folder: Path, **environment: str) -> dict[str, int]:
    """Run a script in a process of its own; the counters that it ends with."""
    settings = {**os.environ, "NBGRAD_CACHE_DIR": str(folder), **environment}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script + REPORT], env=settings, capture_output=True, text=True
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr[-3000:]}"
    return json.loads(done.stdout.splitlines()[-1])


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.startswith(("object-", "scalar-")))


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which both gradients were compiled."""
    folder = tmp_path_factory.mktemp("warm") / "cache"
    first = run(GRADIENT + PRODUCT, folder)
    assert first["compiled"] > 0 and first["rejected"] == 0
    return folder


def copy_of(warm: Path, tmp_path: Path) -> Path:
    """A private copy of a warm cache."""
    target = tmp_path / "cache"
    target.mkdir(mode=0o700)
    for path in entries(warm):
        (target / path.name).write_bytes(path.read_bytes())
    return target


# ----- A warm cache -----


@pytest.mark.parametrize(("name", "script"), [("elementwise", GRADIENT), ("matrix product", PRODUCT)])
def test_a_second_process_compiles_nothing(name: str, script: str, warm: Path) -> None:
    found = run(script, warm)
    assert (found["compiled"], found["numba_compiles"], found["rejected"]) == (0, 0, 0), name
    assert found["loaded"] > 0
    assert not found["numba"], f"{name} imports numba"
    # SciPy's table of BLAS pointers loads the top of the package, but nothing of weight.
    assert not found["scipy" if script is GRADIENT else "scipy.linalg"], f"{name} imports scipy"


def test_the_folder_is_private(warm: Path) -> None:
    assert stat.S_IMODE(warm.stat().st_mode) == 0o700
    for path in entries(warm):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path.name
    assert not [path for path in warm.iterdir() if path.name.startswith(".writing")]


# ----- Damage -----


def _flip(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "header only": lambda data: data[:20],
    "truncated": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "with a byte more": lambda data: data + b"\0",
    "bit flipped in the header": lambda data: _flip(data, 3),
    "bit flipped in the checksum": lambda data: _flip(data, 12),
    "bit flipped in the payload": lambda data: _flip(data, len(data) - 50),
    "of another program": lambda data: b"\x7fELF" + data[4:],
    "text": lambda data: b"# not an object file\n" * 50,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_entries_are_not_there(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(tmp_path / "cache"))
    cache.store("kind", "key", os.urandom(1000))
    path = tmp_path / "cache" / "kind-key"
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    before = cache.counters["rejected"]
    assert cache.load("kind", "key") is None, damage
    assert cache.counters["rejected"] == before + 1
    cache.store("kind", "key", b"anew")
    assert cache.load("kind", "key") == b"anew"


@pytest.mark.parametrize(
    "damage",
    [pytest.param(d, marks=() if d == "bit flipped in the payload" else pytest.mark.slow) for d in DAMAGE],
)
def test_damaged_entries_are_compiled_again(damage: str, warm: Path, tmp_path: Path) -> None:
    folder = copy_of(warm, tmp_path)
    for path in entries(folder):
        if path.name.startswith("object-"):
            path.write_bytes(DAMAGE[damage](path.read_bytes()))
    found = run(GRADIENT, folder)
    assert found["rejected"] > 0 and found["loaded"] == 0 and found["compiled"] == found["rejected"], damage
    assert run(GRADIENT, folder)["compiled"] == 0, f"{damage}: not written anew"


@pytest.mark.slow
def test_entries_under_another_name_are_not_executed(warm: Path, tmp_path: Path) -> None:
    """Every object under the name of its neighbour: intact, but not what was asked for."""
    folder = copy_of(warm, tmp_path)
    objects = [path for path in entries(folder) if path.name.startswith("object-")]
    contents = [path.read_bytes() for path in objects]
    for path, content in zip(objects, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    found = run(GRADIENT, folder)
    assert found["rejected"] > 0 and found["loaded"] == 0


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o777])
def test_what_others_can_write_is_not_trusted(mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(tmp_path / "cache"))
    cache.store("kind", "key", b"payload")
    (tmp_path / "cache" / "kind-key").chmod(mode)
    before = cache.counters["rejected"]
    assert cache.load("kind", "key") is None
    assert cache.counters["rejected"] == before + 1
    open_to_others = tmp_path / "open"
    open_to_others.mkdir()
    open_to_others.chmod(mode)
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(open_to_others))
    assert cache.folder() is None


@pytest.mark.slow
def test_entries_that_others_can_write_are_not_executed(warm: Path, tmp_path: Path) -> None:
    folder = copy_of(warm, tmp_path)
    for path in entries(folder):
        path.chmod(0o620)
    found = run(GRADIENT, folder)
    assert found["rejected"] > 0 and found["loaded"] == 0


@pytest.mark.slow
def test_a_folder_that_others_can_write_is_not_used(warm: Path, tmp_path: Path) -> None:
    folder = copy_of(warm, tmp_path)
    folder.chmod(0o770)
    found = run(GRADIENT, folder)
    assert found["loaded"] == 0 and found["compiled"] > 0


@pytest.mark.slow
def test_links_and_folders_in_place_of_entries(warm: Path, tmp_path: Path) -> None:
    folder = copy_of(warm, tmp_path)
    for path in entries(folder):
        path.unlink()
        path.mkdir()
    assert run(GRADIENT, folder)["compiled"] > 0


def test_other_owners_are_not_trusted(warm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the folder and its files belonged to another user."""
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(warm))
    kind, key = entries(warm)[0].name.split("-", 1)
    assert cache.load(kind, key) is not None
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert cache.load(kind, key) is None
    assert cache.folder() is None


# ----- Unusable folders -----


def test_a_read_only_folder(warm: Path, tmp_path: Path) -> None:
    folder = copy_of(warm, tmp_path)
    victim = next(path for path in entries(folder) if path.name.startswith("object-"))
    victim.unlink()
    folder.chmod(0o500)
    try:
        run(GRADIENT, folder)
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("where", ["file", "below a file", "/proc/1/nbgrad", "/dev/null/x"])
def test_a_folder_that_cannot_be(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    folder = str(tmp_path / "file") + ("/below" if "below" in where else "") if "file" in where else where
    monkeypatch.setenv("NBGRAD_CACHE_DIR", folder)
    assert cache.folder() is None
    cache.store("kind", "key", b"payload")
    assert cache.load("kind", "key") is None


def test_gradients_without_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = run(GRADIENT, tmp_path / "file")
    assert found["compiled"] > 0 and found["loaded"] == 0


@pytest.mark.slow
def test_no_home(tmp_path: Path) -> None:
    settings = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME", "NBGRAD_CACHE_DIR")}
    settings["HOME"] = str(tmp_path / "missing")
    subprocess.run([sys.executable, "-c", GRADIENT], env=settings, check=True, capture_output=True)


def test_without_a_compiler(tmp_path: Path) -> None:
    found = run(GRADIENT + PRODUCT, tmp_path / "cache", NBGRAD_DISABLE_JIT="1")
    assert found["compiled"] == found["loaded"] == found["numba_compiles"] == 0
    assert not found["numba"] and not found["scipy"]
    assert not (tmp_path / "cache").exists()


def test_store_and_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(tmp_path / "a" / "b"))
    for payload in (b"", b"x", os.urandom(100_000)):
        cache.store("kind", "key", payload)
        assert cache.load("kind", "key") == payload
    assert cache.load("kind", "other") is None
    cache.store_text("kind", "text", "ä")
    assert cache.load_text("kind", "text") == "ä"


# ----- Many writers -----


@pytest.mark.fork
def test_two_processes_and_a_forked_child_write_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    forking = f"""
import os, sys
child = os.fork()
script = {GRADIENT!r}
exec(script)
if child == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    environment = {**os.environ, "NBGRAD_CACHE_DIR": str(folder)}
    started = [
        subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.PIPE, text=True)
        for script in (GRADIENT, forking)
    ]
    for process in started:
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
    found = run(GRADIENT, folder)
    assert (found["compiled"], found["rejected"]) == (0, 0)


# ----- Ctrl-C -----

INTERRUPTED = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background may have inherited to ignore it
import numpy as np, nbgrad as nb
{first}
timer = threading.Timer({delay}, os.kill, (os.getpid(), signal.SIGINT))
timer.start()
interrupted = False
try:
    for k in range(100_000):
        {work}
except KeyboardInterrupt:
    interrupted = True
assert interrupted
timer.join()
"""


@pytest.mark.parametrize(
    "delay", [0.3, *[pytest.param(d, marks=pytest.mark.slow) for d in (0.02, 0.1, 0.2, 0.4, 0.6, 0.8, 1.2, 2.0, 3.0)]]
)
def test_ctrl_c_while_compiling(delay: float, tmp_path: Path) -> None:
    work = "nb.grad(lambda x: np.sum(np.sin(x * k) ** (k % 5 + 1) + np.tanh(x) * (k % 97)))(np.ones(k % 3 + 1))"
    script = INTERRUPTED.format(first="", delay=delay, work=work)
    run(script + GRADIENT, tmp_path / "cache")
    found = run(GRADIENT, tmp_path / "cache")
    assert found["rejected"] == 0 and found["compiled"] == 0


@pytest.mark.parametrize("jitted", [False, True])
def test_ctrl_c_while_running(jitted: bool, warm: Path) -> None:
    first = "x = np.linspace(-1, 1, 1_000_000); f = nb.grad(lambda x: np.sum(np.exp(x) * np.sin(x)))"
    first += "; f = nb.jit(f)" if jitted else ""
    script = INTERRUPTED.format(first=first + "; want = f(x)", delay=0.2, work="f(x)")
    run(script + "np.testing.assert_array_equal(f(x), want)\n" + GRADIENT, warm)


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_no_half_entry(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    environment = {**os.environ, "NBGRAD_CACHE_DIR": str(folder)}
    process = subprocess.Popen([sys.executable, "-c", GRADIENT], env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not (folder.exists() and entries(folder)):
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert run(GRADIENT, folder)["rejected"] == 0


@pytest.mark.slow
def test_results_do_not_depend_on_the_cache(warm: Path, tmp_path: Path) -> None:
    script = "x = np.random.default_rng(0).normal(size=1000)\n"
    script = "import numpy as np, nbgrad as nb\n" + script
    script += "np.save({0!r}, nb.grad(lambda x: np.sum(np.exp(x) * np.sin(x)))(x))\n"
    results = []
    for name, folder in (("cold", tmp_path / "cache"), ("warm", tmp_path / "cache"), ("none", Path("/dev/null/x"))):
        path = tmp_path / f"{name}.npy"
        run(script.format(str(path)), folder)
        results.append(np.load(path))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
