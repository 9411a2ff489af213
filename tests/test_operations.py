"""Every operation of the tables: value, both modes of the first derivative, second order, dtypes, layouts.

One operation is one test; operation.py says what is checked and against what.
"""

from __future__ import annotations

import numpy as np
import pytest

import nbgrad as nb

from . import (
    operations_arrays,
    operations_elementwise,
    operations_fourier,
    operations_linalg,
    operations_networks,
    operations_programs,
    operations_reductions,
    operations_special,
)
from .operation import (
    Operation,
    check_batched,
    check_compiled,
    check_first,
    check_layouts,
    check_narrow,
    check_second,
    check_value,
    interpreted,
)

pytestmark = pytest.mark.unoptimized

FAMILIES = (
    operations_elementwise,
    operations_reductions,
    operations_arrays,
    operations_linalg,
    operations_fourier,
    operations_special,
    operations_networks,
    operations_programs,
)
ROWS = [row for family in FAMILIES for row in family.OPERATIONS]
OPERATIONS: dict[str, Operation] = {row.name: row for row in ROWS if not row.needs or hasattr(np, row.needs)}


def test_names_are_unique() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("name", OPERATIONS)
def test_real_arguments(name: str) -> None:
    row = OPERATIONS[name]
    for sample in range(len(row.samples)):
        check_value(row, sample)
        if row.order >= 1:
            check_first(row, sample)
        if row.order >= 2:
            check_second(row, sample)
    for dtype in row.dtypes:
        check_narrow(row, dtype)
    if row.order >= 1:
        check_layouts(row)


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("name", [row.name for row in OPERATIONS.values() if row.complexes])
def test_complex_arguments(name: str) -> None:
    row = OPERATIONS[name]
    for sample in range(min(2, len(row.samples))):
        check_value(row, sample, "complex128")
        if row.order >= 1:
            check_first(row, sample, "complex128")
        if row.order >= 2:
            check_second(row, sample, "complex128")
    if "float32" in row.dtypes:
        check_narrow(row, "complex64")
    check_batched(row, "complex128")


COMPILED = [row.name for row in OPERATIONS.values() if row.compiled and any(a.smooth for a in row.samples[0])]


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("name", COMPILED)
def test_batches_and_jacobians(name: str) -> None:
    check_batched(OPERATIONS[name])


@pytest.mark.sampled(of=4)
@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name: str) -> None:
    check_compiled(OPERATIONS[name])


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("values", [[np.inf, np.inf], [1, np.inf, np.inf, 2], [np.inf, -np.inf], [0, 1, np.inf]])
def test_medians_of_infinities(name: str, values: list[float]) -> None:
    x, function = np.array(values, float), getattr(np, name)
    with interpreted():
        np.testing.assert_array_equal(nb.vjp(function, x)[0], function(x))
