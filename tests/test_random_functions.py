"""Random functions of numbers, with nested branches, loops, and jumps out of both: `nb.elementwise` gives Python's
values, its gradient agrees with differences of them, and `nb.device_function` gives the same value and gradient."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized

NAMES = "abxy"
EACH = 25


class Writer:
    """Writes functions of x and y."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def expression(self, depth: int = 2) -> str:
        draw = self.random.random()
        if depth == 0 or draw < 0.3:
            return self.random.choice([*NAMES, str(round(self.random.uniform(-1, 1), 2))])
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        if draw < 0.7:
            return f"({left} {self.random.choice('+-*')} {right})"
        if draw < 0.8:
            return f"min({left}, {right})"
        return f"({left} if {self.condition()} else {right})" if draw < 0.9 else f"math.tanh({left})"

    def condition(self, depth: int = 1) -> str:
        draw = self.random.random()
        if depth == 0 or draw < 0.5:
            return f"{self.expression(1)} {self.random.choice(['<', '>', '<=', '>='])} {self.expression(1)}"
        if draw < 0.9:
            return f"({self.condition(0)} {'and' if draw < 0.7 else 'or'} {self.condition(0)})"
        return f"not ({self.condition(0)})"

    def block(self, depth: int, indent: int, in_loop: bool) -> list[str]:
        lines: list[str] = []
        margin = "    " * indent
        for _ in range(self.random.randint(1, 3)):
            draw = self.random.random()
            if depth == 0 or draw < 0.4:
                operator = self.random.choice(["=", "+=", "*="])
                lines.append(f"{margin}{self.random.choice(NAMES)} {operator} math.tanh({self.expression()})")
            elif draw < 0.7:
                lines += [f"{margin}if {self.condition()}:", *self.block(depth - 1, indent + 1, in_loop)]
                if self.random.random() < 0.3:
                    lines += [f"{margin}elif {self.condition()}:", *self.block(depth - 1, indent + 1, in_loop)]
                if self.random.random() < 0.6:
                    lines += [f"{margin}else:", *self.block(depth - 1, indent + 1, in_loop)]
            elif draw < 0.85:
                count = self.random.randint(1, 3)
                lines += [f"{margin}for k{indent} in range({count}):", *self.block(depth - 1, indent + 1, True)]
                if self.random.random() < 0.3:
                    lines += [f"{margin}else:", *self.block(depth - 1, indent + 1, in_loop)]
            elif draw < 0.93 and in_loop:
                return [*lines, f"{margin}{self.random.choice(['break', 'continue'])}"]
            elif draw < 0.96:
                return [*lines, f"{margin}return {self.expression()}"]
            else:
                lines += [f"{margin}if {self.condition()}:", f"{margin}    return {self.expression()}"]
        return lines

    def function(self, name: str) -> str:
        head = [f"def {name}(x, y):", "    a = x * y", "    b = x - y"]
        return "\n".join([*head, *self.block(3, 1, False), f"    return {self.expression()}"])


def functions_of(seed: int, folder: Path) -> list[Any]:
    """Random functions, in a file of their own."""
    writer = Writer(seed)
    path = folder / f"random_functions_{seed}.py"
    path.write_text("\n\n\n".join(["import math", *[writer.function(f"f{k}") for k in range(EACH)]]) + "\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [getattr(module, f"f{k}") for k in range(EACH)]


@pytest.mark.parametrize("seed", [0, 1, *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20)]])
def test_random_functions(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbgrad.config.interpret", lambda: True)  # compiling each takes longer than all the rest
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 40))
    step = 1e-6
    for function in functions_of(seed, tmp_path):
        where = f"{function.__name__} of seed {seed}"
        expected = np.array([float(function(*pair)) for pair in zip(x, y, strict=True)])
        fast = nb.elementwise(function)
        np.testing.assert_allclose(fast(x, y), expected, rtol=1e-12, atol=1e-12, err_msg=where)
        slopes = nb.grad(lambda x, fast=fast: np.sum(fast(x, y)))(x)
        around = [[function(a + d, b) for a, b in zip(x, y, strict=True)] for d in (step, -step)]
        ahead, behind = np.array(around, float)
        # Where a condition compares what is equal up to rounding, the function jumps.
        smooth = np.abs(ahead + behind - 2 * expected) < 1e-8
        differences = (ahead - behind)[smooth] / (2 * step)
        np.testing.assert_allclose(slopes[smooth], differences, rtol=1e-4, atol=1e-4, err_msg=where)
        whole = nb.device_function(nb.value_and_grad(function))
        found = np.array([whole(*pair) for pair in zip(x, y, strict=True)])
        np.testing.assert_allclose(found, np.stack([expected, slopes], 1), rtol=1e-9, atol=1e-9, err_msg=where)
