"""Mutation testing: each kind of mutation is made, a wrong mutant is killed, and an equivalent one lives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .mutants import ROOT, TESTS, Plugin, entries, listed
from .mutations import Mutator, mutations

CHANGES: dict[str, list[str]] = {
    "a = b - 2": ["a = b {- => +} 2", "a = {b - 2 => 2 - b}", "a = b - {2 => 3}", "a = b - {2 => 1}"],
    "a = b < c": ["a = b {< => <=} c", "a = b {< => >} c"],
    "a = b and c": ["a = b {and => or} c", "a = {b => True} and c", "a = b and {c => True}"],
    "a = not b": ["a = {not b => b}"],
    "a = -b": ["a = {-b => b}"],
    "a = -(b)": ["a = {-(b) => (b)}"],
    "a = b if c else d": [
        "a = b if {c => not (c)} else d",
        "a = b if {c => True} else d",
        "a = b if {c => False} else d",
    ],
    "a = f(b, c)": ["a = f({b, c => c, b})"],
    "a = 'text', 0.5, True": ["a = 'text', {0.5 => 1.5}, True", "a = 'text', 0.5, {True => False}"],
    'a = "exp log".split()': ['a = "{exp => }log".split()', 'a = "exp {log => }".split()'],
    "if a: b()": ["if {a => not (a)}: b()", "if {a => False}: b()", "if a: {b() => pass}"],
    "a: int = b\nassert a > 0": [],
    "a = f(b, strict=True)": [],
    "if 'é': sin(b)": [
        "if {'é' => not ('é')}: sin(b)",
        "if {'é' => False}: sin(b)",
        "if 'é': {sin(b) => pass}",
        "if 'é': {sin => cos}(b)",
    ],
}


@pytest.mark.parametrize("text", CHANGES)
def test_the_mutations_of_a_line(text: str) -> None:
    found = mutations(text)
    assert [mutation.change for mutation in found] == CHANGES[text]
    for mutation in found:
        compile(mutation.text, "mutant", "exec")
        assert mutation.text != text


def test_mutations_know_the_row_and_the_function_that_runs_them() -> None:
    text = (
        "def f(x):\n    return x\n\nTABLE = {\n    'row': lambda x: (\n        x + y\n    ),\n}\n\ndef g():\n    f(1)\n"
    )
    assert [(m.function, m.change, m.runs_with) for m in mutations(text)] == [
        ("row", "x {+ => -} y", 5),
        ("g", "{f(1) => pass}", 10),
        ("g", "f({1 => 2})", 10),
        ("g", "f({1 => 0})", 10),
    ]


def test_the_listed_survivors_are_mutants_and_have_reasons() -> None:
    made = {
        entry
        for file in TESTS
        for mutation in mutations((ROOT / "nbgrad" / f"{file}.py").read_text())
        for entry in entries(file, mutation)
    }
    for mutant, reason in listed().items():
        assert mutant in made
        assert reason.startswith(("equivalent: ", "speed: ")), mutant


def test_an_entry_is_a_change_a_line_or_a_function() -> None:
    for mutation in mutations("def f(x):\n    return  x + 1"):
        assert entries("file", mutation) == [("file", "f", c) for c in (mutation.change, "return x + 1", "*")]


def test_every_test_that_the_script_runs_exists() -> None:
    for tests in TESTS.values():
        for test in tests.split():
            assert (ROOT / "tests" / f"test_{test}.py").exists()


def test_the_functions_that_a_test_or_an_import_reaches_are_noted() -> None:
    plugin, before = Plugin(Path(mutations.__code__.co_filename), None), sys.gettrace()
    try:
        plugin.watch("")
        Mutator("import a")
        plugin.watch("test")
        mutations("import b")
    finally:
        sys.settrace(before)
    first, second = (function.__code__.co_firstlineno for function in (Mutator.__init__, mutations))
    assert plugin.reached == {"": {first}, "test": plugin.reached["test"]}
    assert {first, second} < plugin.reached["test"]


@pytest.mark.fork
def test_a_wrong_mutant_is_killed_and_an_equivalent_one_survives(tmp_path: Path) -> None:
    common = ["--file", "graph/rules/elementwise_rules", "--tests", "tests/test_simplify.py", "--folder", str(tmp_path)]
    wrong = ["--only", "_subtract: return x {+ => -} y.inputs[0]"]
    equivalent = ["--listed", "--only", "_add: for a, b in ({(x, y), (y, x) =>"]
    script = f"from tests.mutants import main\nmain({common + wrong})\nmain({common + equivalent})"
    surroundings = {**os.environ, "NBGRAD_OPTIMIZE": "0"}
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=surroundings, capture_output=True, text=True, check=True
    )
    assert "1 of 1 killed" in run.stdout, run.stdout + run.stderr
    assert "1 survive" in run.stdout
