"""`nb.explain` tells which Python loops were found, from which lines, and why others were not.

A table of programs with the lines that are expected: in these, `{k}` is the number of the program's line k, where its
`def` is line 0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiled import loop_report as loop_report_module
from nbgrad.compiled.loop_report import loop_report
from nbgrad.graph.loops import noted, window
from nbgrad.graph.loops.noted import noting
from nbgrad.graph.show import show

pytestmark = pytest.mark.unoptimized(but=16)

X, LARGE = np.array([0.3, -0.8]), np.linspace(0.0, 1.0, 5000)
Program = Callable[..., Any]
TABLE: list[tuple[Program, tuple[Any, ...], list[str]]] = []
TEXT, FILE = Path(__file__).read_text(encoding="utf-8"), Path(__file__).name
FOUND, APART = "loops found while recording:", "loops written out:"


def says(*lines: str, given: tuple[Any, ...] = (X,)) -> Callable[[Program], Program]:
    """Enter a program into the table."""

    def enter(program: Program) -> Program:
        TABLE.append((program, given, list(lines)))
        return program

    return enter


def report(program: Program, *given: Any) -> list[str]:
    with noting(sys._getframe()) as notes:
        program(*given)
    return loop_report(notes)


# ----- What is found -----


@says(FOUND, "  {file}:{2}-{4} (leaky): 300 turns of 7 operations", given=(np.ones(300), 0.1))
def leaky(signal: Any, rate: Any) -> Any:
    level = total = 0.0
    for value in signal:
        level = level + rate * (value - level)
        total = total + np.tanh(level)
    return total


def _turn(u: Any) -> Any:
    v = np.sin(u) * u
    return v + np.cos(v)


TURN = [TEXT.count("\n", 0, TEXT.index("def _turn(")) + k for k in (2, 3)]


@says(FOUND, "  {file}:{turn[0]}-{turn[1]} (_turn): 200 turns of 4 operations")
def the_turn_is_a_function(u: Any) -> Any:
    for _ in range(200):
        u = _turn(u)
    return u


@says(
    FOUND,
    "  {file}:{3}-{5} (nested): 149 turns of 322 operations",
    "    {file}:{3}-{4} (nested): 79 to 80 turns of 4 operations, 150 times",
)
def nested(u: Any) -> Any:
    for _ in range(150):
        for _ in range(80):
            u = np.sin(u) * 0.5
            u = u * u + 0.1
        u = np.cos(u) + 1.0
    return u


@says(FOUND, "  {file}:{1}-{3} (ends_by_value): 142 turns of 7 operations")
def ends_by_value(x: Any) -> Any:
    while x[0] > 1e-7:
        x = 0.9 * x
        x = x * 1.0 + 0.0 * x
    return x


@says()
def no_loop(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


@says(FOUND, "  {file}:{2} (one_instruction): 300 turns of 1 operation")
def one_instruction(x: Any) -> Any:
    for _ in range(300):
        x = np.sin(x)
    return x


# ----- What is not -----


@says(
    FOUND,
    "  {file}:{3}-{4} (few_loops): 79 to 80 turns of 4 operations, 10 times",
    APART,
    "  {file}:{1}-{5} (few_loops): 10 turns of 56 operations and 10 loops together, fewer than 256",
)
def few_loops(u: Any) -> Any:
    for _ in range(10):
        for _ in range(80):
            u = np.sin(u) * 0.5
            u = u * u + 0.1
        u = np.cos(u) + 1.0
    return u


@says(APART, "  {file}:{1}-{3} (few_turns): 5 turns, fewer than 8")
def few_turns(x: Any) -> Any:
    for _ in range(5):
        x = np.sin(x) * x
        x = x + 1.0
    return x


@says(APART, "  {file}:{1}-{2} (short): 20 turns of 40 operations together, fewer than 256")
def short(x: Any) -> Any:
    for _ in range(20):
        x = np.sin(x) * x
    return x


@says(APART, "  {file}:{2}-{4} (grows): 60 turns, shapes vary: line {3}")
def grows(x: Any) -> Any:
    total = 0.0
    for k in range(60):
        x = np.concatenate([x, x[:1]])
        total = total + np.sum(np.sin(x) * x + k * x)
    return total


@says(
    FOUND,
    "  {file}:{4}-{5} (other_operand): 15 turns of 18 operations",
    APART,
    "  {file}:{2}-{5} (other_operand): 14 of 30 turns, turn 17 multiplies by a different operand: line {4}",
)
def other_operand(x: Any) -> Any:
    y = x
    for k in range(1, 31):
        z = y if k != 17 else x
        x, y = np.sin(x) * z + 0.1 * k * x, x
        x = x + np.cos(x) * np.exp(-x * x) + np.sqrt(1 + x * x) - np.tanh(x) * np.arctan(x)
    return x


@says(APART, "  {file}:{2}-{6} (by_chance): 200 turns, turns take different ways: line {6}")
def by_chance(x: Any) -> Any:
    random = np.random.default_rng(3)
    for _ in range(200):
        if random.random() < 0.5:
            x = np.sin(x) * x
        else:
            x = np.cos(x) + np.cumsum(x)
    return x


@says(FOUND, "  {file}:{4}-{7} (by_dice): 199 turns of 2 kinds, 3 to 4 operations")
def by_dice(x: Any) -> Any:
    random = np.random.default_rng(3)
    for _ in range(200):
        if random.random() < 0.5:
            x = np.sin(x) * x
        else:
            x = np.cos(x) + x * x
        x = x * 0.5
    return x


@says(
    APART,
    "  {file}:{2}-{3} (large_arrays): 40 turns, turns read different arrays of more than 4096 elements: line {3}",
    given=(LARGE,),
)
def large_arrays(x: Any) -> Any:
    random = np.random.default_rng(3)
    for _ in range(40):
        x = np.sin(x) + random.normal(size=5000) * x * x + np.cos(x) * x - x
    return x


@says(FOUND, "  {file}:{3} (flattened): 435 turns of 2 operations")
def flattened(x: Any) -> Any:
    for k in range(30):
        for _ in range(k):
            x = np.sin(x) * x
    return x


@says(FOUND, "  {file}:{3}-{4} (longer): 299 turns of 2 kinds, 2 to 4 operations")
def longer(x: Any) -> Any:
    for k in range(25):
        for _ in range(k):
            x = np.sin(x) * x
        x = x + np.cos(x)
    return x


@pytest.mark.parametrize("transform", ["jit", "jit of grad"])
@pytest.mark.parametrize(("program", "given", "lines"), [pytest.param(*row, id=row[0].__name__) for row in TABLE])
def test_report(
    transform: str, program: Program, given: tuple[Any, ...], lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    monkeypatch.setattr(window, "FIRST", 1 << 20)
    definition = TEXT.index(f"def {program.__name__}(")
    numbers = [TEXT.count("\n", 0, definition) + 1 + k for k in range(10)]
    expected = [line.format(*numbers, file=FILE, turn=TURN) for line in lines]
    compiled = nb.jit(program) if transform == "jit" else nb.jit(nb.grad(lambda *a: np.sum(program(*a))))
    assert report(compiled, *given) == expected


def recursion(x: Any, depth: int = 150) -> Any:
    if depth == 0:
        return x
    function = (np.sin, np.cos, np.tanh, np.arctan, np.cbrt, np.arcsinh, np.abs, np.exp2, np.expm1)[
        np.random.default_rng(depth).integers(9)
    ]
    return function(recursion(x, depth - 1)) * (0.5 if depth % 7 else x)


def test_operations_without_a_loop_of_the_text() -> None:
    assert report(nb.jit(recursion), X) == ["no loop: no repetition found in 300 operations"]


# ----- The notes themselves -----


def swing(angle: Any, turns: int = 5000) -> Any:
    speed = 0.0
    for _ in range(turns):
        speed = speed - 0.01 * np.sin(angle)
        angle = angle + 0.01 * speed
    return angle


def test_turns_that_are_found_while_recording_are_counted() -> None:
    (head, line) = report(nb.jit(nb.grad(swing)), 1.0)
    assert head == FOUND and line.endswith("(swing): 4,999 turns of 5 operations")


def test_notes_change_nothing() -> None:
    with noting(sys._getframe()):
        first = nb.jit(nb.grad(swing))
        first(1.0)
    usual = nb.jit(nb.grad(swing))
    usual(1.0)
    assert show(first.programs()[0].graph) == show(usual.programs()[0].graph)


def test_of_very_many_operations_the_first_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noted, "MOST_NOTED", 1000)
    monkeypatch.setattr(loop_report_module, "MOST_NOTED", 1000)
    lines = report(nb.jit(swing), 1.0)
    assert lines[1].endswith("(swing): 4,999 turns of 5 operations")
    assert lines[2:] == ["only the first 1,000 operations were looked at"]


def test_explain_has_the_report() -> None:
    text = nb.explain(nb.grad(lambda signal: leaky(signal, 0.1)), np.ones(300)).splitlines()
    assert text[3:6] == [FOUND, text[4], ""] and text[4].endswith("(leaky): 300 turns of 7 operations")
    assert FOUND not in nb.explain(no_loop, X)


def test_text_that_cannot_be_read() -> None:
    scope: dict[str, Any] = {"np": np}
    exec("def f(x):\n    for k in range(70):\n        x = np.concatenate([x, x[:1]]) * np.sum(x)\n    return x", scope)
    assert report(nb.jit(scope["f"]), np.ones(1)) == ["no loop: no repetition found in 349 operations"]
