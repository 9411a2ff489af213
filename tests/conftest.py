"""All tests share this: Hypothesis without time limits (a first example compiles), markers that skip and sample, tests
without LLVM's optimisations, and searches for garbage that leave out what was there before.

The examples are the same in every run; `--hypothesis-profile=explore` looks for new ones.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings

# Idle threads of BLAS wait in a loop, which takes as much time as all the rest where several processes test. It is told
# before NumPy loads it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from nbgrad.info import cuda_devices
from nbgrad.process import modes
from nbgrad.runtime import evaluate

settings.register_profile("nbgrad", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("nbgrad")


REASONS = {
    "fork": lambda: "" if hasattr(os, "fork") else "this system cannot fork",
    "gpu": cache(lambda: "" if cuda_devices() else "no CUDA device"),
}
"""Why this machine cannot run the tests with a marker; empty if it can."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many random programs of tests/test_random_programs.py, and from which one on."""
    parser.addoption("--count", type=int, default=100, help="random programs to try")
    parser.addoption("--seed", type=int, default=0, help="the first random program")
    parser.addoption("--optimize", action="store_true", help="optimise what tests compile, in all modules")
    parser.addoption("--native-python", action="store_true", help="run native code as Python, for coverage and pdb")


@pytest.fixture(scope="session", autouse=True)
def native_code(request: pytest.FixtureRequest) -> Iterator[None]:
    """With --native-python, programs run the Python of native code (native_python.py)."""
    if not request.config.getoption("--native-python"):
        yield
        return
    from .native_python import in_place_of_compiled_code

    with in_place_of_compiled_code():
        yield


@pytest.fixture(params=[pytest.param("gpu", marks=pytest.mark.gpu), "simulator"])
def place(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The GPU, and the simulator in its place: a test with it runs in both (gpu.py)."""
    from .gpu import places

    yield from places(request.param)


@pytest.fixture
def unseen() -> Iterator[None]:
    """Finished operations are looked at by nothing, although another test has made complex values that remember."""
    before = modes.attentive[:]
    modes.attentive.clear()
    yield
    modes.attentive[:] = before


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Workers keep to parts of the suite: a kernel that one has compiled serves its next tests."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The objects of all tests, more than a million, are left out of every later search for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        _leave_out()
        gc.enable()


def _leave_out() -> None:
    """What is in use now is left out of every later search for garbage."""
    gc.collect()
    gc.freeze()


_finished = count(1)
"""The number of tests that have run."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logfinish() -> None:
    """What tests and what they import leave behind, millions of objects in the end, is left out as well."""
    if next(_finished) % 64 == 0:
        _leave_out()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The examples of NumPy's functions run in the modules that have them, not under their second address too."""
    items[:] = [item for item in items if not item.nodeid.startswith("nbgrad/numpy/__init__.py::nbgrad.numpy.")]


def pytest_itemcollected(item: pytest.Item) -> None:
    """What is not in the sample of its test is slow.

    Numba warns of small kernels, and of kernels that are given the host's arrays: tests for GPUs have both.
    """
    sampled = item.get_closest_marker("sampled")
    if sampled and crc32(item.nodeid.encode()) % sampled.kwargs["of"]:
        item.add_marker(pytest.mark.slow)
    if item.get_closest_marker("gpu"):
        item.add_marker(pytest.mark.filterwarnings("ignore:.*Grid size", "ignore:.*Host array used"))


_unoptimized: list[pytest.MonkeyPatch] = []
"""Holds NBGRAD_OPTIMIZE=0 while tests without LLVM's optimisations run."""


def _optimises(item: pytest.Item) -> bool:
    """Whether LLVM optimises what a test compiles: not in doctests, nor in modules marked `unoptimized`, where with
    `unoptimized(but=n)` it does in one test of n."""
    if item.config.getoption("--optimize"):
        return True
    marker = item.get_closest_marker("unoptimized")
    if marker is None:
        return not isinstance(item, pytest.DoctestItem)
    but = marker.kwargs.get("but")
    return but is not None and crc32(item.nodeid.encode()) % but == 0


def _set_level(optimise: bool) -> None:
    """Compile so from now on. Programs that un-jitted computations keep are of the other kind, and are dropped."""
    if optimise == bool(_unoptimized):
        evaluate._programs.clear()
        if optimise:
            _unoptimized.pop().undo()
        else:
            _unoptimized.append(pytest.MonkeyPatch())
            _unoptimized[0].setenv("NBGRAD_OPTIMIZE", "0")


def pytest_unconfigure() -> None:
    """The environment is as it was."""
    _set_level(True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine cannot run, and set the level at which the test compiles.

    All skips say it from here, which makes one line in the report of each reason.
    """
    _set_level(_optimises(item))
    for marker, reason in REASONS.items():
        if item.get_closest_marker(marker) and reason():
            pytest.skip(reason())
