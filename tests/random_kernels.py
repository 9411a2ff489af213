"""Random kernels that overwrite arrays in nested loops: text for test_random_kernels.py.

In: a seed. Out: a function, and its arguments. Indices are affine, reversed, indirect or negative; values are
overwritten, added to, read before and after, under branches on values, and carried by numbers and arrays.
"""

from __future__ import annotations

import linecache
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

SIDE = 5


class _Text:
    """Writes a kernel of `u` (a vector), `m` (a matrix), `c` (only read) and `at` (integers)."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops: list[str] = []
        self.names = 0
        self.scalars = ["s", "v"]

    def choice(self, *options: Any) -> Any:
        return self.random.choice(options)

    def index(self) -> str:
        """An index within the arrays: from -SIDE to SIDE - 1."""
        if not self.loops or self.random.random() < 0.1:
            return str(self.random.randrange(-2, SIDE))
        turn = self.random.choice(self.loops)
        return self.choice(turn, turn, turn, f"{turn} - 1", f"{turn} - 1", f"at[{turn}]", f"{SIDE - 1} - {turn}", "k")

    def place(self) -> str:
        """An element of an array that is written to."""
        return self.choice(f"u[{self.index()}]", f"m[{self.index()}, {self.index()}]")

    def number(self) -> str:
        return self.choice(self.place(), self.place(), f"c[{self.index()}]", *self.scalars)

    def value(self) -> str:
        one, other = self.number(), self.number()
        return self.choice(
            f"0.6 * {one} + 0.3 * {other}",
            f"math.sin({one}) + 0.2 * {other}",
            f"{one} * math.cos({other})",
            f"0.5 * {one}",
            f"max({one}, {other})",
            f"{one} / (2.0 + {other} * {other})",
        )

    def add(self, line: str, depth: int) -> None:
        self.lines.append("    " * depth + line)

    def block(self, depth: int, deepest: int) -> None:
        for _ in range(self.random.randrange(1, 4)):
            kind = self.random.random()
            if kind < 0.35 and len(self.loops) < deepest:
                self.loop(depth, deepest)
            elif kind < 0.5:
                self.add(f"{self.choice(*self.scalars)} = {self.value()}", depth)
            elif kind < 0.6:
                self.add(f"if {self.number()} > {self.number()} * 0.9 + 0.05:", depth)
                self.add(f"{self.place()} = {self.value()}", depth + 1)
                if self.random.random() < 0.5:
                    self.add("else:", depth)
                    self.add(f"v = {self.value()}", depth + 1)
            elif kind < 0.65 and self.loops:
                self.add(f"k = (k + 1) % {SIDE}", depth)
            elif kind < 0.85:
                self.add(f"{self.place()} = {self.value()}", depth)
            else:
                op, function = self.choice(("+=", "0.3 * math.sin"), ("-=", "0.3 * math.sin"), ("*=", "math.cos"))
                self.add(f"{self.place()} {op} {function}({self.number()})", depth)

    def loop(self, depth: int, deepest: int) -> None:
        self.names += 1
        turn = f"i{self.names}"
        bounds = [str(SIDE), f"1, {SIDE}", f"{SIDE - 1}, -1, -1", "2", f"0, {SIDE}, 2", "len(u)", "len(u) - 1, 0, -1"]
        if self.loops:
            bounds += [f"{self.loops[-1]}, {SIDE}", self.loops[-1]]
        self.add(f"for {turn} in range({self.choice(*bounds)}):", depth)
        self.loops.append(turn)
        self.block(depth + 1, deepest)
        if self.random.random() < 0.1:
            self.add(f"if {self.number()} > 1.2:", depth + 1)
            self.add("break", depth + 2)
        self.loops.pop()

    def whole(self) -> str:
        self.lines = ["def kernel(u, m, c, at):"]
        self.add("s = 0.5", 1)
        self.add("v = c[0]", 1)
        self.add("k = 0", 1)
        for _ in range(self.random.randrange(1, 3)):
            self.loop(1, self.random.randrange(1, 4))
        self.add("return s + 0.5 * v", 1)
        return "\n".join(self.lines) + "\n"


def random_kernel(seed: int) -> tuple[Callable[..., Any], list[np.ndarray], np.ndarray, str]:
    """A kernel, its arguments of floats, that of integers, and its text."""
    text = _Text(seed).whole()
    place = f"<random kernel {seed}>"
    linecache.cache[place] = (len(text), None, text.splitlines(True), place)
    namespace: dict[str, Any] = {"math": math, "__name__": __name__}
    exec(compile(text, place, "exec"), namespace)
    numbers = np.random.default_rng(seed)
    floats = [numbers.uniform(0.2, 1.0, SIDE), numbers.uniform(0.2, 1.0, (SIDE, SIDE)), numbers.uniform(0.2, 1.0, SIDE)]
    return namespace["kernel"], floats, numbers.permutation(SIDE), text
