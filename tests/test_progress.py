"""What long recordings and compilations say: one line of progress, and one warning where no loop is found."""

from __future__ import annotations

import io
import os
import re
import warnings
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import LongRecordingWarning
from nbgrad.graph import ir
from nbgrad.graph.loops import watch, window
from nbgrad.process import progress


class Terminal(io.StringIO):
    """Standard error as a terminal, or a pipe."""

    def __init__(self, terminal: bool = True) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def lines(self) -> list[str]:
        """Each form of the line."""
        return [line for line in map(str.strip, self.getvalue().split("\r")) if line]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error, on which everything takes long. Nothing comes from the disk."""
    monkeypatch.setenv("NBGRAD_CACHE_DIR", os.devnull)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "PERIOD", 0.0)
    found = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=found))
    return found


def swing(angle: Any, turns: int = 1500) -> Any:
    speed = 0.0
    for _ in range(turns):
        speed = speed - 0.01 * np.sin(angle)
        angle = angle + 0.01 * speed
    return angle


def test_recording_and_compiling_show_one_line_that_goes(impatient: Terminal) -> None:
    nb.jit(nb.grad(swing))(1.0)
    lines = impatient.lines()
    recorded = [line for line in lines if line.startswith("recording")]
    assert len(recorded) >= 3
    assert all(re.fullmatch(r"recording swing: [\d,]+ operations, 0 s", line) for line in recorded)
    compiled = [line for line in lines if line.startswith("compiling")]
    total = len(compiled)
    assert compiled == [f"compiling swing: {k} of {total} kernels" for k in range(1, total + 1)] and total > 1
    assert "\n" not in impatient.getvalue() and impatient.getvalue().endswith(" \r"), "the line is removed"


def test_a_program_without_a_name(impatient: Terminal) -> None:
    nb.grad(lambda x: swing(x) * np.cosh(1.75 * x))(1.0)
    assert any(re.fullmatch(r"compiling \d+ of \d+ kernels", line) for line in impatient.lines())


def test_an_error_removes_the_line(impatient: Terminal) -> None:
    with pytest.raises(ZeroDivisionError):
        nb.grad(lambda x: swing(x) / (1 // 0))(1.0)
    assert impatient.lines() and impatient.getvalue().endswith(" \r")


@pytest.mark.parametrize("why", ["a pipe", "switched off", "no standard error", "not yet"])
def test_nothing_is_shown(why: str, impatient: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    if why == "a pipe":
        impatient.terminal = False
    elif why == "switched off":
        monkeypatch.setenv("NBGRAD_PROGRESS", "0")
    elif why == "no standard error":
        monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=None))
    else:
        monkeypatch.setattr(progress, "PATIENCE", 60.0)
    nb.jit(nb.grad(swing))(1.0)
    assert impatient.getvalue() == ""


# ----- The warning -----


def without_a_loop(x: Any, turns: int = 150) -> Any:
    total = 0.0
    for k in range(turns):
        x = np.concatenate([x, x[:1]])  # it grows
        total = total + np.sum(np.sin(x) * x + k * x)
    return total


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand operations are many."""
    monkeypatch.setattr(watch, "MANY", 1000)
    monkeypatch.setattr(watch, "_warned", set())
    monkeypatch.setattr(ir, "OFTEN", 63)


@pytest.mark.usefixtures("few")
def test_a_long_recording_without_a_loop_warns_once() -> None:
    with pytest.warns(LongRecordingWarning, match=r"without_a_loop\(\) has recorded 1,000 operations") as found:
        nb.grad(without_a_loop)(np.ones(2))
    assert len(found) == 1 and found[0].filename == __file__
    first = without_a_loop.__code__.co_firstlineno
    assert found[0].lineno in (first + 3, first + 4)
    assert f"most of them at {__file__}:{found[0].lineno}" in str(found[0].message)
    for way in ("nb.scan", "nb.fori_loop", "whole arrays"):
        assert way in str(found[0].message)
    nb.jit(nb.grad(without_a_loop))(np.ones(2))  # and no more


@numba.njit
def decay(x: Any) -> Any:
    carry = 0.0
    for _ in range(1000):
        carry = carry - 0.01 * np.sin(carry) + x
    return carry


@pytest.mark.usefixtures("few")
def test_a_kernel_that_runs_as_python_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MANY_OF_KERNEL", 2000)
    converted = nb.differentiable_source(decay)
    with pytest.warns(
        LongRecordingWarning, match=r"decay\(\) runs one element at a time.* nb\.kernel\(decay\)"
    ) as found:
        nb.grad(converted)(0.5)
    assert len(found) == 1 and found[0].filename == __file__
    nb.grad(converted)(0.25)  # and no more


@pytest.mark.usefixtures("few")
def test_a_long_loop_that_is_found_does_not_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "FIRST", 1 << 20)  # the warning itself looks first
    nb.grad(swing)(1.0)


@pytest.mark.usefixtures("few")
def test_as_an_error_it_leaves_everything_usable() -> None:
    with warnings.catch_warnings(), pytest.raises(LongRecordingWarning):
        warnings.simplefilter("error")
        nb.grad(without_a_loop)(np.ones(2))
    assert nb.grad(swing)(0.0, 3) == pytest.approx(1.0, abs=1e-2)
