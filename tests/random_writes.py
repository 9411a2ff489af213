"""Random functions whose branches and loops by value give names other arrays, and that set elements of arrays.

In: a random generator. Out: `Lines`, the body of a function of one array `a`, and the function itself; fewer lines that
still do what a test asks. Called by test_writes_in_branches.py.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

HEAD = """
t = np.max(a) < 1.44
s = np.sum(a) > 2.5
b = a
w = a * 1
v = a * 3
u = v * 1 + 1
keep = w
"""
"""The names that programs begin with: `b` is `a`, `keep` is `w`."""
HELPERS = """
def either(test, x, y):
    if test:
        return x
    return y

def bumped(x):
    x[1] += 1
    return x

def turned(test, x):
    if test:
        x = x[::-1]
    x[0] += 2
    return x
"""
NAMES = "a b w v u keep".split()
SIMPLE = [
    "{0} = {1}",
    "{0} = {1} * 1.5",
    "{0} = {1}[::-1]",
    "{0}, {1} = {1}, {0}",
    "{0}[0] = 7",
    "{0}[1:] += 1",
    "{0} += {1} * 0.5",
    "{0} *= 0.75",
    "np.add({0}, 1, out={0})",
    "{0}.sort()",
    "{0} = {1} if {c} else {2}",
    "{0} = either({c}, {1}, {2})",
    "{0} = bumped({1})",
    "{0} = turned({c}, {1})",
    "{0} = np.where({c}, {1}, {2})",
    "{0} = {1}.reshape(3)",
    "{0} = min({1}, {2}, key=lambda one: float(np.size(one)))",
    "({0} if {c} else {1})[2] = 4",
]
CONDITIONS = ["t", "s", "not t", "np.max({0}) < 3", "{0}[0] < 1", "t and {0}[1] > 0.5", "{0}[0] < {1}[1] < 9"]
Lines = list[Any]
"""Lines, and pairs of a line that ends in a colon and the lines below it."""


def _filled(one: str, rng: random.Random) -> str:
    names = rng.sample(NAMES, 3)
    condition = rng.choice(CONDITIONS).format(*rng.sample(NAMES, 2))
    return one.format(*names, c=condition)


def _block(rng: random.Random, depth: int, loops: bool) -> Lines:
    found: Lines = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        if depth == 0 or kind < 0.55:
            found.append(_filled(rng.choice(SIMPLE), rng))
        elif kind < 0.85:
            found.append((_filled("if {c}:", rng), _block(rng, depth - 1, loops)))
            if rng.random() < 0.4:
                found.append(("else:", _block(rng, depth - 1, loops)))
            if loops and rng.random() < 0.2:
                found[-1][1].append(rng.choice(["break", "continue"]))
            elif rng.random() < 0.1:
                found[-1][1].append(_filled("return {0} * 1", rng))
        elif kind < 0.93:
            found.append(("for k in range(3):", _block(rng, depth - 1, True)))
        else:
            name = rng.choice(NAMES)
            turn = [rng.choice(["{0} = {0} * 2 + 1", "{0} += 1"]).format(name), *_block(rng, depth - 1, False)]
            count = f"n{depth}{len(found)}"
            found += [f"{count} = 0", (f"while np.max({name}) < 6 and {count} < 4:", [f"{count} += 1", *turn])]
    return found


def write_lines(seed: int) -> Lines:
    """A random program."""
    rng = random.Random(seed)
    shown = rng.sample(NAMES, rng.choice([2, 3, 6]))
    body = _block(rng, 2, False) + _block(rng, 2, False)
    return [*body, "return " + " + ".join(f"{weight} * {name}" for weight, name in zip((2, 3, 5, 7, 11, 13), shown))]  # noqa: B905


def text_of(lines: Lines) -> str:
    """The source of a program."""

    def indented(block: Lines, depth: int) -> Iterator[str]:
        for one in block:
            if isinstance(one, str):
                yield "    " * depth + one
            else:
                yield "    " * depth + one[0]
                yield from indented(one[1] or ["pass"], depth + 1)

    return "\n".join([HELPERS, "def program(a):", *indented([*HEAD.strip().splitlines(), *lines], 1)]) + "\n"


def defined(text: str) -> Callable[[Any], Any]:
    """The function `program` of a text, which can be read as that of a file."""
    place = f"<program {hash(text)}>"
    linecache.cache[place] = (len(text), None, text.splitlines(True), place)
    space: dict[str, Any] = {"np": np, "__name__": "programs"}
    exec(compile(text, place, "exec"), space)
    return space["program"]


def shrunk(lines: Lines, fails: Callable[[Lines], bool]) -> Lines:
    """Fewer lines that still fail."""
    while True:
        for fewer in _fewer(lines):
            if fails(fewer):
                lines = fewer
                break
        else:
            return lines


def _fewer(lines: Lines) -> Iterator[Lines]:
    for position, one in enumerate(lines):
        before, after = lines[:position], lines[position + 1 :]
        if not (isinstance(one, str) and one.startswith("return") and not after):
            rest = after[1:] if after and isinstance(after[0], tuple) and after[0][0] == "else:" else after
            yield before + rest
        if isinstance(one, tuple):
            if one[0] != "else:" and not (after and isinstance(after[0], tuple) and after[0][0] == "else:"):
                yield before + [line for line in one[1] if line not in ("break", "continue")] + after
            for inner in _fewer(one[1]):
                yield [*before, (one[0], inner), *after]
