"""Random programs of plain NumPy do with nbgrad what they do with NumPy: values, dtypes, gradients, `jit`, `vmap`.

A sample runs with all tests; `pytest -m fuzz --count 20000 --seed 1` runs as many as one likes (`-n 2` on two cores).
What differs is made smaller and printed as a script that can be pasted into an issue.
"""

from __future__ import annotations

from collections import Counter

import pytest

from .program_checks import Case, shrunk
from .random_programs import write_program

EACH = 25
"""Programs of a test."""
COMPILED = 12
"""One in so many is compiled; the others run in the interpreter."""
KNOWN = frozenset(["memory order", "writes to arguments", "einsum views", "0-d results"])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    seed, count = (metafunc.config.getoption(name) for name in ("seed", "count"))
    metafunc.parametrize("first", range(seed, seed + count, EACH))


@pytest.mark.fuzz
def test_random_programs(first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + EACH):
        finding = Case(write_program(seed, KNOWN), seed % COMPILED == 0, KNOWN, counts).run()
        if finding is not None:
            pytest.fail(f"seed {seed}\n\n{shrunk(finding, KNOWN)}", pytrace=False)
    assert counts["refused in values"] <= EACH / 5
    assert counts["differences"] >= EACH / 3
