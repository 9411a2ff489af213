"""The tests that need a GPU, the most telling first, in processes that may die.

In: a `Setup`, how long it may take, and a function that gets each result. Out: nothing; every test that was found has
one result: passed, failed, skipped, timed out, died, or not run. Called by .ci/gpu.

Each process of pytest runs a batch of tests and writes down what it starts and ends (gpu_plugin.py). When it dies,
hangs, or loses the device, the test at fault gets that result, and another process goes on with the next one.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gpu_process import Process, Setup

Told = Callable[[dict[str, Any]], None]

FIRST = "tests/test_gpu_smoke.py"
ORDER = [
    *[f"test_gpu.py::test_{name}" for name in ("loops", "sums", "training", "products", "operations", "graphs")],
    *[f"test_gpu.py::test_{name}" for name in ("linear_algebra", "scatter_add", "streams", "threads", "random")],
    "test_device_driver.py",
    "test_device_libraries.py",
    "test_gpu_interop.py",
    "test_gpu_libraries.py",
    "test_device_specials.py",
    "test_own_kernels.py",
    "test_gpu.py",  # the primitives
]
"""Beginnings of ids, after the first ones, in the order in which they are run; the other ones come last."""
ALONE = ("_full_device_", "_memory_is_used_again", "_32_bits_", "_after_a_fault_")
"""Tests that need the whole device: one at a time, after all others."""
BATCH = 24
START_LIMIT = 300.0
"""Seconds until a process begins with its first test."""
NOTHING = "none of the first tests has passed: nothing works here"
USUAL = (0, 1, 2, 5)
"""The codes with which pytest ends: all passed, some failed, the device was lost or a file not read, no test."""


def candidates(folder: Path) -> list[Path]:
    """The files that have tests with the marker, or with the fixture `place`."""
    return [path for path in sorted(folder.glob("test_*.py")) if re.search(r"mark\.gpu|: Place\b", path.read_text())]


def rank(name: str) -> int:
    """The place of a test in the order, by its id."""
    fits = [(len(start), place) for place, start in enumerate(ORDER) if name.partition("/")[2].startswith(start)]
    return max(fits)[1] if fits else len(ORDER)


def batches(names: list[str]) -> tuple[list[str], list[list[str]], list[list[str]]]:
    """Tests in their order: the first ones, batches that may run at the same time, and such as run alone."""
    single = [name for name in names if any(part in name for part in ALONE)]
    ordered = sorted([name for name in names if name not in single], key=rank)
    first = [name for name in ordered if name.startswith(FIRST)]
    rest = [name for name in ordered if name not in first]
    cut = [rest[k : k + BATCH] for k in range(0, len(rest), BATCH)]
    return first, cut, [[name] for name in sorted(single, key=rank)]


class _Pytest(Process):
    """A process of pytest with a plan; with no tests named, it only lists them."""

    def __init__(self, setup: Setup, files: list[str], tests: list[str] | None, limit: float) -> None:
        folder = Path(tempfile.mkdtemp(dir=setup.work, prefix="pytest-"))
        self._record, self._read = folder / "record.txt", 0
        self._record.touch()
        plan = {"tests": tests, "simulator": setup.simulator, "record": str(self._record)}
        (folder / "plan.json").write_text(json.dumps(plan))
        arguments = ["-m", "pytest", "-q", "-c", str(setup.root / "pyproject.toml"), "--rootdir", str(setup.root)]
        arguments += ["-m", "", "-p", "gpu_plugin", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
        arguments += ["--capture=no"]  # the last words of a process that dies are kept
        arguments += ["-o", f"faulthandler_timeout={0.8 * limit:.1f}"]  # says where a test hangs, before it is killed
        arguments += [str(setup.root / file) for file in files]
        arguments += [] if tests is not None else ["--collect-only"]
        super().__init__(setup, folder, arguments, GPU_TESTS_PLAN=str(folder / "plan.json"))

    def events(self) -> Iterator[dict[str, Any]]:
        """What it has told since this was asked the last time."""
        with self._record.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # still being written
                self._read += len(line)
                yield json.loads(line)


def collect(setup: Setup, told: Told, expression: str = "") -> list[str]:
    """The ids of all tests, and a failure for each file that cannot be read; with `expression`, those that match it."""
    files = [str(path.relative_to(setup.root)) for path in candidates(setup.root / "tests")]
    process = _Pytest(setup, files, None, START_LIMIT)
    how = process.wait(setup, time.monotonic() + START_LIMIT)
    names: list[str] = []
    listed = False
    for event in process.events():
        if "collected" in event:
            names, listed = event["collected"], True
        elif event.get("unread"):
            told({"id": event["unread"], "outcome": "failed", "why": event["why"], "text": event["text"]})
    if not listed:
        why = f"pytest could not list the tests ({how if how != 'ended' else process.ending()})"
        told({"id": "tests", "outcome": "died", "why": why, "text": process.told()})
    return [name for name in names if re.search(expression, name)]


def run_tests(
    setup: Setup, names: list[str], until: float, limit: float, workers: int, told: Told, works: Callable[[], bool]
) -> None:
    """Run tests until all have a result, or the time is up.

    Parameters
    ----------
    names : list of str
        Their ids.
    until : float
        When the time is up, by `time.monotonic`.
    limit : float
        Seconds that a test may take.
    workers : int
        How many processes run at the same time.
    told : callable
        Gets each result, possibly from several threads: a dict with `id`, `outcome`, `seconds`, `why` and `text`.
    works : callable
        Asked after the first tests (`FIRST`): whether it makes sense to run the others.
    """
    first, together, single = batches(names)
    _run_batch(setup, first, until, limit, told)
    if first and not works():
        for name in [name for batch in together + single for name in batch]:
            told({"id": name, "outcome": "not run", "why": NOTHING})
        return
    with ThreadPoolExecutor(workers) as pool:
        try:
            for done in [pool.submit(_run_batch, setup, batch, until, limit, told) for batch in together]:
                done.result()
        except BaseException:
            setup.stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    for batch in single:
        _run_batch(setup, batch, until, limit, told)


def _run_batch(setup: Setup, tests: list[str], until: float, limit: float, told: Told) -> None:
    left = list(tests)
    while left and time.monotonic() < until and not setup.stop.is_set():
        files = list(dict.fromkeys([name.partition("::")[0] for name in left]))
        process = _Pytest(setup, files, left, limit)
        try:
            ended = _watch(setup, process, until, limit, told)
        finally:
            process.kill()
        remaining = [name for name in left if name not in ended]
        if len(remaining) == len(left) and time.monotonic() < until and not setup.stop.is_set():
            why = f"pytest {process.ending()} before its first test"
            for name in left:
                told({"id": name, "outcome": "not run", "why": why, "text": process.told()})
            return
        left = remaining


def _watch(setup: Setup, process: _Pytest, until: float, limit: float, told: Told) -> set[str]:
    """Pass on what a process tells until it ends or has to; the tests that have a result."""
    ended: set[str] = set()
    running, last, since, allowed = "", "collecting", time.monotonic(), START_LIMIT
    while True:
        alive = process.process.poll() is None  # asked before reading: what a dead process told is complete
        for event in process.events():
            since = time.monotonic()
            if "started" in event:
                running, allowed = event["started"], limit
            elif "ended" in event:
                running, last = "", event["ended"]
                ended.add(last)
                told({"id": event.pop("ended"), **event})
        now = time.monotonic()
        seconds = round(now - since, 3)
        if not alive:
            if running:
                ended.add(running)
                why = f"the process {process.ending()}"
                told({"id": running, "outcome": "died", "why": why, "text": process.told(), "seconds": seconds})
            elif ended and process.process.returncode not in USUAL:
                name = f"the end of the process after {last}"
                told({"id": name, "outcome": "died", "why": f"it {process.ending()}", "text": process.told()})
            return ended
        if now > until or setup.stop.is_set():
            if running:
                ended.add(running)
                why = f"cut off after {seconds:.0f} s, because the time was up"
                told({"id": running, "outcome": "not run", "why": why, "seconds": seconds})
            return ended
        if seconds > allowed:
            process.kill()
            if running:
                ended.add(running)
                why = f"took longer than {limit:.0f} s"
                told({"id": running, "outcome": "timed out", "why": why, "text": process.told(), "seconds": seconds})
            return ended
        time.sleep(0.05)
