"""The suite over all functions (asv_bench/surface.py) has a case for each, and its page is read and written alike."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .numpy_surface import NAMESPACES, TABLES, named

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "asv_bench"))
try:
    import surface
    import surface_cases
finally:
    sys.path.pop(0)

pytestmark = pytest.mark.unoptimized

SMALL = 400
WORKING = ("derivative", "zero", "integers")
FEW = [case for number, case in enumerate(surface_cases.CASES.values()) if number % 6 == 0]


def test_every_function_has_a_case():
    for space, table in TABLES.items():
        for name, row in table.items():
            there = named(NAMESPACES[space][0], name) is not None and "depends on values" not in row.remark
            assert (f"{space}.{name}" in surface_cases.CASES) == (row.kind in WORKING and there), name


def test_other_calls_are_about_functions_of_the_table():
    assert surface_cases.LARGE.keys() <= surface_cases.CASES.keys()


@pytest.mark.parametrize("case", FEW, ids=lambda case: case.name)
def test_values_agree_with_numpy(case: Any) -> None:
    """A ratio is measured only where results agree."""
    with np.errstate(all="ignore"):
        sides = surface.Sides(case, SMALL, np.float64, case.name < "numpy.l", None)
        sides.value(0.0)


def test_the_page_has_the_cases_and_is_read_as_it_is_written():
    lines = surface.read_page()
    assert lines.keys() <= surface_cases.CASES.keys()
    assert len(lines) > 0.9 * len(surface_cases.CASES)
    assert surface.page(lines) == surface.PAGE.read_text()
