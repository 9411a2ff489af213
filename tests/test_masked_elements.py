"""`x[mask]` where the mask is recorded: values as NumPy's, derivatives as differences', for any number of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, RangeError, TracedValueError

pytestmark = pytest.mark.unoptimized

POINTS = np.array(
    [[-1.0, 0.02, 0.003, 0.52, 1.01, 3.0], [-1.0, 2.0, 1.5, -0.5, 1.3, 0.3], [0.6, 0.7, 0.8, 0.25, 0.65, 0.75]]
)
WEIGHTS = np.cos(np.arange(6.0))


def written_at_positions(x: Any) -> Any:
    y = x * 1.1
    y[np.where(np.logical_and(y < 1e-2, y >= 0))] = 0.1
    y[np.where(y < -0.7)[0]] = 0.3
    y[np.nonzero(y > 1)] += 2
    return np.sum(WEIGHTS / y)


def changed_in_place(x: Any) -> Any:
    y = x * 1.1
    y[y < 0.3] = 0.25
    y[(y > 1) & (y < 2)] *= 3
    y[y > 2] -= 0.5
    y[y > 0.4] = np.sqrt(y[y > 0.4]) + y[y > 0.4]
    return np.sum(WEIGHTS * y**2)


def functions_where_they_are_defined(x: Any) -> Any:
    positive = x > 0
    out = np.zeros_like(x)
    out[positive] = np.log(x[positive]) * 2
    out[~positive] = x[~positive] ** 2 - 1
    return np.sum(out * WEIGHTS)


def reductions(x: Any) -> Any:
    y = x * 1.1
    chosen = np.where(y > -0.6)
    some = y[y > 0]
    return np.sum(y[chosen] ** 2) + some.mean() + np.max(some) * np.min(y[chosen]) + np.var(some) + np.prod(some + 1)


def counts(x: Any) -> Any:
    y = x * 1.1
    at = np.flatnonzero(y > -0.2)
    scaled = np.where(y[at] > 1, y[at], 0.5 * y[at])
    return scaled.sum() / y[y > 0].size + at.size * np.clip(y[at], 0.35, 2).sum() + np.count_nonzero(y > 0) * y.sum()


def rows(x: Any) -> Any:
    table = np.outer(x, WEIGHTS) + np.eye(6)
    table[table > 0.9] = 1 / table[table > 0.9]
    chosen = x > 0.1
    table[chosen] = table[chosen] * WEIGHTS + x[chosen].sum()
    inner = np.dot(x[chosen], x[chosen]) + np.linalg.norm(x[chosen])
    return table[chosen].sum(0)[1] + inner + (table[chosen] @ WEIGHTS).sum() + np.sum(table * table)


def parts_of_rows(x: Any) -> Any:
    table = np.outer(x, WEIGHTS)
    for column in range(3):
        low, high = np.where(table[:, column] < -0.3), np.where(table[:, column] > 1.05)
        table[low, column] *= -1
        table[high, column] = 2.1 - table[high, column]
        table[x > 0.31, 3:5] -= x[0]
    table[x > 0.31, 5] = 0.5
    return np.sum(table**2 * np.arange(6)) + table[x > 0.31, 1].sum()


def masks_of_chosen_elements(x: Any) -> Any:
    y = np.zeros_like(x)
    positive = x > 0
    z = x[positive].copy()
    found = np.full_like(z, 0.25)
    large = z > 0.55
    found[large] = np.log(z[large]) * z[large]
    found[~large] *= z[~large]
    found[z > 2.5] = 7.0
    y[positive] = found
    return np.sum(y * WEIGHTS) + z[large].sum()


def through_a_view(x: Any) -> Any:
    z = x * 1.0
    part = z[1:]
    part[part > 0.4] -= 0.1
    return (z**2).sum() + part[part > 0.4].std(ddof=0)


def in_a_loop(x: Any) -> Any:
    y = x * 1.0
    for _ in range(12):
        y[y > 1] *= 0.5
        small = y < 0.1
        y[small] = y[small] * 3 + 0.01
        y = y + 0.1 * np.sin(x) * y[y > 0.2].mean()
    return np.sum(y * WEIGHTS)


def kept_when_the_array_changes(x: Any) -> Any:
    y = x * 1.0
    mask = y > 0.4
    before = y[mask]
    y[:] = 7.0
    mask[:] = True
    return np.sum(before) + np.sum(y * x)


PROGRAMS = [
    written_at_positions, changed_in_place, functions_where_they_are_defined, reductions, counts, rows, parts_of_rows,
    masks_of_chosen_elements, through_a_view, in_a_loop, kept_when_the_array_changes,
]  # fmt: skip


def slopes(function: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    return np.array([(function(x + step) - function(x - step)) / 2e-6 for step in 1e-6 * np.eye(x.size)])


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("convert", [lambda f: f, nb.differentiable_source], ids=["plain", "converted"])
def test_one_program_for_any_number_of_elements(function: Any, convert: Any) -> None:
    call = nb.jit(nb.value_and_grad(convert(function)))
    curvature = nb.jit(nb.jacfwd(nb.grad(convert(function))))
    for x in POINTS:
        value, gradient = call(x)
        np.testing.assert_allclose(value, function(x), rtol=1e-12)
        np.testing.assert_allclose(gradient, slopes(function, x), rtol=2e-6, atol=2e-7)
        np.testing.assert_allclose(curvature(x), nb.jacfwd(nb.grad(function))(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_vmap_maps_masks(function: Any) -> None:
    expected = [nb.grad(function)(x) for x in POINTS]
    np.testing.assert_allclose(nb.vmap(nb.grad(function))(POINTS), expected, rtol=1e-12, atol=1e-12)


def test_turns_of_a_scan() -> None:
    def body(carried: Any, factor: Any) -> Any:
        y = carried * factor
        y[y > 1] *= 0.5
        return y, y[y > 0].sum()

    def total(x: Any) -> Any:
        last, sums = nb.scan(body, x, np.linspace(0.9, 1.2, 7))
        return np.sum(last) + np.sum(sums)

    def by_turns(x: Any) -> Any:
        sums = []
        for factor in np.linspace(0.9, 1.2, 7):
            x, found = body(x, factor)
            sums.append(found)
        return np.sum(x) + sum(sums)

    for x in POINTS:
        np.testing.assert_allclose(nb.jit(nb.grad(total))(x), slopes(by_turns, x), rtol=1e-7)


def written_to_rows(x: Any) -> Any:
    y = np.outer(x, x)
    y[x > 0] = x[x > 0]
    return y.sum()


def written_elsewhere(x: Any) -> Any:
    y = x * 1.0
    y[:3] = x[x > 0]
    return y.sum()


UNKNOWN: dict[str, Callable[[Any], Any]] = {
    "Returned": lambda x: x[x > 0],
    "Returned: the": lambda x: np.where(x > 0),
    "Asked for a length": lambda x: len(x[x > 0]),
    "Asked for a shape": lambda x: x[x > 0].shape[0],
    "Asked for an array": lambda x: np.asarray(x[x > 0]).sum(),
    "np.median": lambda x: np.median(x[x > 0]),
    "np.cumsum": lambda x: np.cumsum(x[x > 0])[-1],
    "np.add with options": lambda x: np.add.reduce(x[x > 0]),
    "an array of a length of its own": lambda x: (x[x > 0] * np.arange(6)).sum(),
    "Elements of two masks": lambda x: (x[x > 0] + x[x < 0]).sum(),
    "A product of matrices": lambda x: WEIGHTS @ np.outer(x, x)[x > 0],
    "different numbers of axes": lambda x: (np.outer(x, x)[x > 0] * x[x > 0]).sum(),
    "another number of axes": lambda x: written_to_rows(x),
    "other positions": lambda x: np.outer(x, x)[np.where(x > 0), [0, 1]].sum(),
    r"The shape of x\[mask\] depends": lambda x: np.outer(x, x)[x > 0, [0, 1]].sum(),
    "written elsewhere": lambda x: written_elsewhere(x),
    "Indexed again": lambda x: x[x > 0][0],
    "Iterated": lambda x: sum(v for v in x[x > 0]),
    "not all of them in their order": lambda x: np.outer(x, x)[np.where(np.outer(x, x) > 0)[::-1]].sum(),
    "Computed with positions": lambda x: (np.where(x > 0)[0] + 1).sum(),
}


@pytest.mark.parametrize("words", UNKNOWN)
def test_uses_that_depend_on_the_number_are_errors(words: str) -> None:
    with pytest.raises(TracedValueError, match=f"{words}.*differ from call to call.*test_masked_elements"):
        nb.jit(UNKNOWN[words])(POINTS[1])


def test_the_largest_of_no_elements_is_numpys_error() -> None:
    largest = nb.jit(lambda x: np.max(x[x > 2.5]))
    assert largest(POINTS[0]) == 3.0
    with pytest.raises(ArgumentError, match="of no elements"):
        largest(POINTS[1])
    assert nb.jit(lambda x: np.sum(x[x > 9]))(POINTS[0]) == 0.0
    with np.errstate(invalid="ignore"):
        assert np.isnan(nb.jit(lambda x: x[x > 9].mean())(POINTS[0]))


def test_a_mask_of_another_shape_is_numpys_error() -> None:
    with pytest.raises(RangeError, match=r"shape \(2, 6\) does not match"):
        nb.jit(lambda x: np.sum(x[np.stack([x, x]) > 0]))(POINTS[0])


def test_what_is_not_chosen_has_derivative_zero() -> None:
    root = nb.jit(nb.grad(lambda x: np.sqrt(x[x > 0]).sum()))
    np.testing.assert_array_equal(root(np.array([-1.0, 0.0, 4.0])), [0, 0, 0.25])
