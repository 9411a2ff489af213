"""`nb.profile` counts the calls, recordings and bytes of programs, and leaves nothing behind."""

from __future__ import annotations

import inspect
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiled import jit as jit_module
from nbgrad.compiled.jit import Jitted
from nbgrad.runtime import evaluate

pytestmark = pytest.mark.unoptimized

PLAIN = Jitted.__call__, jit_module.specialize, evaluate._found


def scaled(x: Any, factor: Any) -> Any:
    return x * factor + 1.0


def test_calls_recordings_and_bytes() -> None:
    compiled = nb.jit(scaled)
    with nb.profile() as found:
        for _ in range(5):
            compiled(np.ones(1000), 2.0)
        compiled(np.ones(10), 2.0)
    rows = {row.arguments: row for row in found.programs}
    assert set(rows) == {"float64[1000], float64[]", "float64[10], float64[]"}
    large = rows["float64[1000], float64[]"]
    # It reads 1000 numbers and one, and writes 1000.
    assert (large.name, large.calls, large.bytes, large.memory) == ("scaled", 5, 16008, 0)
    assert min(large.recording, large.compiling, large.running) > 0
    assert large.recording + large.compiling + large.running < found.seconds


def test_calls_of_known_programs_record_nothing() -> None:
    compiled = nb.jit(scaled)
    first = compiled(np.ones(10), 2.0)
    with nb.profile() as found:
        second = compiled(np.ones(10), 2.0)
    (row,) = found.programs
    assert (row.calls, row.recording, row.compiling) == (1, 0.0, 0.0)
    np.testing.assert_array_equal(first, second)


def test_un_jitted_computations_have_the_line_that_asks_for_them() -> None:
    def asked(x: Any) -> Any:
        return nb.grad(lambda a: np.sum(np.sin(a)))(x)

    with nb.profile() as found:
        for _ in range(3):
            asked(np.ones(7))
    line = inspect.getsourcelines(asked)[1] + 1
    assert [(row.name, row.calls) for row in found.programs] == [(f"{Path(__file__).name}:{line}, un-jitted", 3)]


def test_functions_inside_of_others_are_parts_of_these() -> None:
    inner = nb.jit(scaled)
    outer = nb.jit(lambda x: np.sum(inner(x, 3.0)))
    with nb.profile() as found:
        outer(np.ones(5))
    assert [row.name for row in found.programs] == ["<lambda>"]


def test_waiting_is_not_counted_as_running() -> None:
    with nb.profile() as found:
        time.sleep(0.05)
        nb.jit(scaled)(np.ones(3), 1.0)
    (row,) = found.programs
    assert found.seconds >= 0.05
    assert row.recording + row.compiling + row.running < found.seconds - 0.04


def test_all_threads_and_profiles_inside_of_profiles() -> None:
    compiled = nb.jit(scaled)
    compiled(np.ones(4), 1.0)
    with nb.profile() as whole:
        threads = [threading.Thread(target=compiled, args=(np.ones(4), 1.0)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with nb.profile() as part:
            compiled(np.ones(4), 1.0)
        assert Jitted.__call__ is not PLAIN[0]
    assert (whole.programs[0].calls, part.programs[0].calls) == (5, 1)


def test_nothing_stands_in_front_of_calls_afterwards() -> None:
    with pytest.raises(ZeroDivisionError), nb.profile():
        raise ZeroDivisionError
    assert (Jitted.__call__, jit_module.specialize, evaluate._found) == PLAIN


def test_tables_as_text_and_in_notebooks() -> None:
    with nb.profile() as found:
        nb.jit(lambda x: x + 1)(np.ones(3))
    head, columns, row = str(found).split("\n")
    assert head.startswith("1 program: ")
    assert columns.split()[:3] == ["program", "arguments", "calls"]
    assert row.split()[:3] == ["<lambda>", "float64[3]", "1"]
    assert "&lt;lambda&gt;" in found._repr_html_()
    with nb.profile() as nothing:
        pass
    assert str(nothing).startswith("0 programs")
