"""Branches and loops in functions that `differentiable_source` converts: programs beside Python, slopes beside complex
steps and differences, and how often each one is recorded and compiled."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import NbgradError
from nbgrad.graph.builders import accumulate, reduce
from nbgrad.graph.ir import placeholder
from nbgrad.graph.loops import loop_derivatives

from . import flowing_programs as code

pytestmark = pytest.mark.unoptimized(but=16)

SOLVER = code.Solver(1e-12)
PROGRAMS: list[tuple[Callable[[Any], Any], str, int, tuple[float, ...]]] = [
    (code.newton, "complex step", 2, (2.0, 3.0, 50.0, 5.0)),
    (code.newton_with_break, "complex step", 3, (2.0, 3.0, 1e4, 5.0)),
    (code.newton_with_return, "complex step", 3, (2.0, 3.0, 50.0, 5.0)),
    (code.newton_with_else, "complex step", 1, (2.0, 3.0, 1e4, 5.0)),
    (code.series, "complex step", 3, (1.0, 0.1, 20.0, -3.0)),
    (code.roots, "complex step", 4, (2.0, 50.0, 3.0)),
    (SOLVER.root, "complex step", 3, (2.0, 3.0, 1e4, 5.0)),
    (code.by_closure, "complex step", 2, (2.0, 3.0, 50.0, 5.0)),
    (code.bisection, "paper", 1, (2.0, 3.0, 50.0)),
    (code.falling, "differences", 3, (5.0, 10.0, 30.0)),
    (code.adaptive, "differences", 4, (1.0, 4.0, 30.0, 9.0)),
    (code.roots_up_to, "differences", 3, (2.2, 5.5, 30.1)),
    (code.pieces, "differences", 1, (-2.0, 0.5, 3.0, 7.0)),
    (code.logic, "differences", 1, (-2.0, 0.5, 0.9, 2.5, 7.0)),
    (code.arrays, "differences", 2, (0.3, 2.0, 0.1)),  # v stays an array, or becomes another one: each side has a way
    (code.written, "differences", 1, (1.0, 3.0, -1.0)),
    (code.skipping, "differences", 3, (0.31, 1.7, 3.3)),
    (code.set_in_the_loop, "differences", 1, (0.4, 1.3)),
    (code.limited, "differences", 1, (0.31, 1.7, 3.3, -0.4)),
    (code.defined_in_the_loop, "differences", 4, (0.2, 1.3, 3.0)),
    (code.halved_until_small, "differences", 4, (0.2, 1.3, 9.0)),
    (code.rows_set_in_the_loop, "differences", 4, (0.4, 1.3, 4.0)),
]
"""A function, how its slope is known, at most how many recordings serve all arguments, and these."""
NAMES = [getattr(row[0], "__name__", "") for row in PROGRAMS]


def of_bisection(x: float) -> float:
    """All decisions stay as they are, so the middle is proportional to the first interval."""
    root = code.bisection(x) / np.sqrt(x)
    return root / (1 + x) * np.sqrt(x) + root / (2 * np.sqrt(x))


def slope(function: Callable[[Any], Any], way: str, x: float) -> float:
    """The derivative of a plain Python function."""
    if way == "paper":
        return of_bisection(x)
    if way == "complex step":
        return complex(function(x + 1e-30j)).imag / 1e-30
    return (function(x + 1e-6) - function(x - 1e-6)) / 2e-6


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize(("function", "way", "recordings", "arguments"), PROGRAMS, ids=NAMES)
def test_one_program_serves_many_numbers_of_turns(
    function: Callable[[Any], Any], way: str, recordings: int, arguments: tuple[float, ...]
) -> None:
    converted = nb.differentiable_source(function)
    recorded: list[int] = []

    def counted(x: Any) -> Any:
        recorded.append(1)
        return converted(x)

    value, gradient = nb.jit(counted), nb.jit(nb.grad(converted))
    value(arguments[0])
    gradient(arguments[0])
    for x in arguments:
        np.testing.assert_allclose(value(x), function(x), rtol=1e-12)
        expected = slope(function, way, x)
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-6 if way == "differences" else 1e-9, atol=1e-8)
        np.testing.assert_allclose(nb.grad(converted)(x), expected, rtol=1e-6, atol=1e-8)
    assert len(recorded) <= recordings
    before = nb.counters["compiled"]
    for x in arguments:
        value(1.01 * x)
    assert nb.counters["compiled"] == before


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize(("function", "way", "recordings", "arguments"), PROGRAMS, ids=NAMES)
def test_each_mapped_value_has_its_own_number_of_turns(
    function: Callable[[Any], Any], way: str, recordings: int, arguments: tuple[float, ...]
) -> None:
    converted = nb.differentiable_source(function)
    x = np.array(arguments)
    np.testing.assert_allclose(nb.vmap(converted)(x), [function(v) for v in arguments], rtol=1e-12)
    found = nb.vmap(nb.grad(converted))(x)
    np.testing.assert_allclose(found, [slope(function, way, v) for v in arguments], rtol=1e-6, atol=1e-8)


def test_integers_and_two_arguments() -> None:
    collatz, powers = nb.jit(nb.differentiable_source(code.collatz)), nb.jit(nb.differentiable_source(code.powers))
    for n in (1, 2, 3, 6, 27, 97):
        assert collatz(np.array(n)) == code.collatz(n)
    for n in (0, 1, 2, 5, 9, 20):
        np.testing.assert_allclose(powers(np.array(n), 0.7), code.powers(n, 0.7), rtol=1e-14)
    above, x = nb.jit(nb.differentiable_source(code.first_above)), np.array([0.1, 0.5, 0.9, 1.3])
    for level in (0.0, 0.4, 1.0, 2.0):
        assert above(x, level) == code.first_above(x, level)


@pytest.mark.parametrize(
    "function", [code.by_generator, code.collected, code.different, code.by_object, code.in_a_list]
)
def test_other_statements_are_recorded_for_each_way(function: Callable[[Any], Any]) -> None:
    converted = nb.differentiable_source(function)
    gradient = nb.jit(nb.grad(converted))
    for x in (3.0, 17.0, 100.0, 5.0, -2.0):
        if function is code.collected and x < 0:
            continue
        np.testing.assert_allclose(gradient(x), (function(x + 1e-6) - function(x - 1e-6)) / 2e-6, rtol=1e-7)


@pytest.mark.parametrize(
    ("function", "message", "line"),
    [
        (code.by_generator, "vmap records", "while value > 1.0:"),
        (code.collected, r"line \d+ calls append for what it does", "while x > 1.0:"),
        (code.different, "y is float64\\[2\\] on one side and float64\\[3\\] on the other", "if x > 0:"),
        (code.by_object, "a turn changes attributes of Stepper", "while going:"),
        (code.in_a_list, "elements of parts are set, which is of list", "if x > 0:"),
        (code.one_side_only, "y is set on one side only", "if x > 0:"),
    ],
)
def test_what_cannot_be_turned_is_an_error_where_many_values_are_asked_for(
    function: Callable[[Any], Any], message: str, line: str
) -> None:
    with pytest.raises(NbgradError, match=message) as caught:
        nb.vmap(nb.differentiable_source(function))(np.array([2.0, -3.0]))
    assert any(entry.line == line for entry in traceback.extract_tb(caught.tb))
    assert "flowing_programs.py" in str(caught.value)


@pytest.mark.parametrize(
    "function",
    [
        code.left_at_once,
        code.counted_in_the_condition,
        code.set_in_a_comparison,
        code.left_through_finally,
        code.tried_again,
        code.rows_until,
    ],
)
def test_each_way_out_of_a_loop_ends_as_in_python(function: Callable[[Any], Any]) -> None:
    converted = nb.differentiable_source(function)
    value, gradient = nb.jit(converted), nb.jit(nb.grad(converted))
    for x in (0.3, 0.7, 1.3, 2.2):
        for found in (converted(x), value(x)):
            np.testing.assert_allclose(found, function(x), rtol=1e-14)
        np.testing.assert_allclose(gradient(x), slope(function, "differences", x), rtol=1e-7)


@pytest.mark.parametrize("function", [code.left_at_once, code.counted_in_the_condition, code.rows_until])
def test_each_mapped_value_has_its_own_way_out(function: Callable[[Any], Any]) -> None:
    x = np.array([0.3, 0.7, 1.3, 2.2])
    np.testing.assert_allclose(nb.vmap(nb.differentiable_source(function))(x), [function(v) for v in x], rtol=1e-14)


def test_turns_that_are_read_late_are_no_circle() -> None:
    rng = np.random.default_rng(1098)
    slope = nb.jit(nb.grad(nb.differentiable_source(code.read_late)))
    for _ in range(2):
        x, a, b = rng.normal(size=5), rng.normal(), rng.normal()
        steps = 1e-6 * np.eye(5)
        want = [(code.read_late(x + h, a, b) - code.read_late(x - h, a, b)) / 2e-6 for h in steps]
        np.testing.assert_allclose(slope(x, a, b), want, rtol=1e-6, atol=1e-6)


def test_a_function_that_nothing_records_runs_as_it_was_written() -> None:
    converted = nb.differentiable_source(code.newton)
    assert converted(2.0) == code.newton(2.0)
    assert type(converted(2.0)) is type(code.newton(2.0))
    with pytest.raises(UnboundLocalError):
        nb.differentiable_source(code.one_side_only)(-1.0)


def test_extrema_are_found_again_among_values_that_are_computed_again() -> None:
    """Sums of products may be rounded otherwise in the loop that goes back: an extremum that was kept would be none of
    them, and its derivative lost."""
    x = placeholder((4,), np.dtype(float))
    extrema = [reduce("max", x, (0,)), reduce("min", x, (0,)), accumulate("maximum", x)]
    assert not any(map(loop_derivatives._is_kept, extrema))
    assert loop_derivatives._is_kept(reduce("sum", x, (0,)))

    def peaks(x: Any) -> Any:
        for _ in range(20):
            height = np.max(np.abs(0.3 * (2 * x / 9 + x * x / 7 - x[::-1] / 5)))
            x = x - 0.1 * height * x * x + 0.01 * np.maximum.accumulate(x * 0.7 + 0.2 * x * x)
        return np.sum(x)

    at = np.array([0.3, -0.8, 0.5, 1.1, -0.2])
    steps = 1e-6 * np.eye(5)
    want = [(peaks(at + step) - peaks(at - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(nb.jit(nb.grad(peaks))(at), want, rtol=1e-7)
