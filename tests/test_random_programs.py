"""Random programs of plain NumPy do with nbgrad what they do with NumPy: values, dtypes, gradients, `jit`, `vmap`.

A sample runs with all tests; `pytest -m fuzz --count 20000 --seed 1` runs as many as one likes (`-n 2` on two cores).
What differs is made smaller and printed as a script that can be pasted into an issue.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

from .program_checks import Case, Finding, leaves, shrunk
from .random_programs import Program, write_program

pytestmark = pytest.mark.unoptimized

EACH = 25
"""Programs of a test."""
COMPILED = 12
"""One in so many is compiled; the others run in the interpreter."""
KNOWN: frozenset[str] = frozenset()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "first" not in metafunc.fixturenames:
        return
    seed, count = (metafunc.config.getoption(name) for name in ("seed", "count"))
    metafunc.parametrize("first", range(seed, seed + count, EACH))


PLANTED = Program(
    arguments={"a": "rng.normal(size=(2, 3))", "b": "float(rng.normal())", "c": "rng.normal(size=3)"},
    body=[
        "v0 = a * 2.0",
        "v1 = v0.T",
        "v2 = np.sin(c)",
        "for i in range(2):\n    v2 = v2 * b\n    v0[i] = v2",
        "v3 = v1 * 1.0",
        "v4 = v3 + 1",
    ],
    result="v4, v2, v3",
)
"""Its view sees what is written to the array, if all is well."""


def found(program: Program, compiled: bool) -> Finding | None:
    return Case(program, compiled).run()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_planted_mistake_is_found_shrunk_and_printed(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(PLANTED, compiled) is None
    monkeypatch.setattr("nbgrad.record.shared_memory._write_down", lambda base, known: None)  # views keep their values
    finding = found(PLANTED, compiled)
    assert finding is not None and finding.check == "values" and "value[0] is" in finding.message
    small = shrunk(finding)
    assert len(small.program.body) < len(PLANTED.body)
    assert list(small.program.arguments) != list(PLANTED.arguments)
    printed: list[object] = []
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "")
    exec(str(small), {"print": printed.append})  # runs as it is
    expected, ((_, result), _) = printed
    assert not np.allclose(leaves(result)[0], leaves(expected[1])[0])


def test_a_planted_derivative_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program({"a": "rng.normal(size=3)"}, body=["v1 = np.tanh(a)"], result="v1")
    assert found(program, False) is None
    monkeypatch.setattr("nbgrad.value_and_grad", halved(nb.value_and_grad))
    finding = found(program, False)
    assert finding is not None and "differences give" in finding.message


def halved(transform: Any) -> Any:
    """A transform whose gradients are half as large as they should be."""

    def wrong(*given: Any, **options: Any) -> Any:
        function = transform(*given, **options)

        def call(*args: Any) -> Any:
            value, gradient = function(*args)
            return value, gradient / 2

        return call

    return wrong


@pytest.mark.fuzz
def test_random_programs(first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + EACH):
        finding = Case(write_program(seed, KNOWN), seed % COMPILED == 0, KNOWN, counts).run()
        if finding is not None:
            pytest.fail(f"seed {seed}\n\n{shrunk(finding, KNOWN)}", pytrace=False)
    assert counts["refused in values"] <= EACH / 2
    assert counts["differences"] >= EACH / 3
