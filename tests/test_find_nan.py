"""`nb.find_nan` names the line, the turn and the operands of a NaN that is made on a line known from outside."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

pytestmark = [pytest.mark.unoptimized, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

FILE = Path(__file__).name


def root(x: Any) -> Any:
    y = x - 1.0
    z = np.sqrt(y)
    return np.sum(z * x)


def line_of(fn: Callable[..., Any], text: str) -> int:
    """The number of the first line of a function that has a text in it."""
    lines, first = inspect.getsourcelines(fn)
    return next(first + k for k, line in enumerate(lines) if text in line)


@pytest.mark.parametrize("fn", [root, nb.jit(root), nb.grad(root), nb.jit(nb.value_and_grad(root))])
def test_a_root_of_a_negative_number(fn: Any) -> None:
    found = nb.find_nan(fn, np.array([2.0, 0.5, 3.0, 0.25]))
    assert found is not None
    assert (found.kind, found.operation, found.line) == ("NaN", "sqrt", line_of(root, "np.sqrt"))
    assert (found.index, found.count, found.derivative, found.turns) == ((1,), 2, False, ())
    assert found.operands[0].value == -0.5
    assert str(found) == (
        f"NaN is made by sqrt in {FILE}:{found.line} at [1], and 1 more: z = np.sqrt(y)\n  operand 0: float64[4], -0.5"
    )


def test_a_gradient_that_is_not_finite_though_the_value_is() -> None:
    given = np.array([2.0, 1.0])
    assert nb.find_nan(root, given) is None
    found = nb.find_nan(nb.grad(root), given)
    assert found is not None
    # The slope of a root at zero is 1 / 0.
    assert (found.kind, found.line, found.derivative, found.index) == (
        "an infinity",
        line_of(root, "np.sqrt"),
        True,
        (1,),
    )


def test_branches_that_are_not_taken_hide_nothing_and_are_not_found() -> None:
    def masked(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.log(x), 0.0))

    assert nb.find_nan(masked, np.array([1.0, -1.0])) is None
    assert nb.find_nan(nb.grad(masked), np.array([1.0, 0.0])) is None

    def branched(x: Any) -> Any:
        if x > 0:
            return np.log(x)
        return np.log(-x) / (x - x)

    assert nb.find_nan(branched, 2.0) is None
    found = nb.find_nan(branched, -2.0)
    assert found is not None
    assert (found.kind, found.line) == ("an infinity", line_of(branched, "np.log(-x)"))


def softmax(x: Any) -> Any:
    powers = np.exp(x)
    return powers / np.sum(powers)


def test_a_nan_of_infinities_names_where_these_were_made() -> None:
    found = nb.find_nan(softmax, np.array([1.0, 1000.0]))
    assert found is not None and found.cause is not None
    assert (found.kind, found.operation, found.line) == ("NaN", "divide", line_of(softmax, "/ np.sum"))
    assert (found.cause.kind, found.cause.operation, found.cause.line) == (
        "an infinity",
        "exp",
        line_of(softmax, "exp"),
    )
    assert found.cause.operands[0].value == 1000.0


def test_arguments_and_infinite_numbers_of_the_text() -> None:
    found = nb.find_nan(root, np.array([2.0, np.nan]))
    assert found is not None
    assert (found.operation, found.index) == ("argument", (1,))
    assert str(found) == "argument 0 of root() holds NaN at [1]"
    assert nb.find_nan(lambda x: np.where(x > 1.0, -np.inf, x), np.array([0.0, 2.0])) is None


def falling(x: Any) -> Any:
    for _ in range(300):
        x = x - 0.01
        step = np.sqrt(x)
        x = x + 0.001 * step
    return x


@pytest.mark.parametrize("fn", [falling, nb.grad(falling)])
@pytest.mark.parametrize("rolls", [True, False])
def test_the_turn_of_a_loop(fn: Any, rolls: bool) -> None:
    x, turn = 1.0, 0
    while x - 0.01 >= 0:
        x = x - 0.01
        x = x + 0.001 * np.sqrt(x)
        turn += 1
    with nb.config.rolled(rolls):
        found = nb.find_nan(fn, 1.0)
    assert found is not None
    assert (found.operation, found.line) == ("sqrt", line_of(falling, "np.sqrt"))
    assert found.turns == ((turn,) if rolls else ())
    assert found.operands[0].value == pytest.approx(x - 0.01, rel=1e-12)


def test_infinities_that_a_loop_starts_from_hide_no_nan() -> None:
    def largest(x: Any, rows: Any) -> Any:
        most = -np.inf * np.ones(2)
        for k in range(300):
            most = np.maximum(most, np.sqrt(rows[k] - x))
        return most

    rows = np.linspace(2.0, 3.0, 600).reshape(300, 2)
    assert nb.find_nan(largest, 1.0, rows) is None
    rows[250, 1] = 0.0
    found = nb.find_nan(largest, 1.0, rows)
    assert found is not None
    assert (found.kind, found.operation, found.turns, found.index) == ("NaN", "sqrt", (250,), (1,))


def test_long_loops_are_searched_in_their_first_bad_turn() -> None:
    def doubled(x: Any) -> Any:
        for _ in range(3000):
            x = x * 2.0
        return x

    found = nb.find_nan(doubled, 1.0)
    assert found is not None
    # 2 ** 1024 is too large.
    assert (found.kind, found.turns, found.operands[0].value) == ("an infinity", (1023,), 2.0**1023)


def test_a_loop_that_only_passes_a_nan_on() -> None:
    def passed(x: Any) -> Any:
        y = np.log(x)
        for _ in range(300):
            y = np.sin(y) + x
        return y

    found = nb.find_nan(nb.grad(passed), -1.0)
    assert found is not None
    assert (found.operation, found.line, found.turns) == ("log", line_of(passed, "np.log"), ())


def test_loops_that_are_said() -> None:
    def summed(rows: Any) -> Any:
        def turn(carry: Any, row: Any) -> Any:
            return carry + np.log(row), carry

        return nb.scan(turn, 0.0, rows)[0]

    found = nb.find_nan(summed, np.array([1.0, 2.0, 3.0, -4.0, 5.0]))
    assert found is not None
    assert (found.operation, found.turns, found.line) == ("log", (3,), line_of(summed, "np.log"))
    assert found.operands[0].value == -4.0


def test_matrices_and_layers() -> None:
    dense = nb.nn.Dense(2, 2)
    dense.weight.set_data(nb.Tensor(np.array([[np.inf, 0.0], [0.0, 1.0]], np.float32)))
    found = nb.find_nan(dense, nb.Tensor(np.ones((1, 2), np.float32)))
    assert found is not None
    assert found.operation in ("argument", "matmul")
