"""Writes to arrays in branches and loops by value: they reach the arrays that they reach in NumPy, and no others.

A branch or a turn of a loop makes a name another array, or makes two names one array, and elements are set before or
after that. `differentiable_source` runs each program, compiled, on both ways, beside NumPy.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized

PROGRAMS = """
if t: a = a * 2; a += 1 $ r = a
if t: b = a * 2; b += 1 $ r = b
if t: w = a * 2; w += 1 $ r = keep
if t: a += 1; a = a * 2; a += 3 $ r = a
if t: w[0] = 7; w = w * 2; w[1] = 2 $ r = keep
if t: a = a * 2 $ a += 1; r = a
if t: b = b * 2 $ np.add(b, 1, out=b); r = b
if t: w = a * 2 $ w[0] = 9; r = keep
if t: a = np.ravel(a) $ a += 1; r = a
if t: v = w; w[0] = 5 $ w[1] = 3; r = v
if t: v = w[::-1] $ w += 1; r = v
if t: v = w $ w[1] = 3; r = v
if t: v = w $ v[1] = 3; r = w
if t: v = w[::-1] $ v.sort(); r = w
for k in range(3): $   if np.max(a) < 6: a = a * 2; a += 1 $ r = a
while np.max(a) < 6: a = a * 2; a += 1 $ r = a
while np.max(w) < 6: w += 1; w = w * 2 $ r = keep
while np.max(w) < 6: w = w * 2; w[0] += 2 $ r = keep
while np.max(w) < 6: v = w; w = w * 2; w[0] += 1 $ r = v
while np.max(w) < 6: v = w[::-1]; w += 1 $ w += 1; r = v
while np.max(w) < 6: v, w = w, v; w += 2 $ r = w + 3 * v + 5 * keep
for k in range(3): $   if np.max(w) < 2: w, v = v, w $   w[0] += 1; v[1] += 2 $ r = w + 3 * v
while np.max(w) < 6: u = w[1:]; u += 2; w = w.reshape(3) $ r = w + keep
if t: w[0] = 9; v = keep * 2 $ r = v
if t: w[0] = 9; keep[1] = 4 $ r = w + v
u = [w] $ if t: w[0] = 9; v = u[0] * 2 $ r = v
while np.max(w) < 6: w += 1; v = keep * 2 $ r = v
while np.max(w) < 6: w += 1; keep[0] += 1 $ r = w
while np.max(w) < 6: v = keep if t else v; w = w * 2 $ keep[1] = 5; r = v
if t: u = w if a[0] < 0.2 else v; v = u $ w[1] = 5; r = v
u = b; a[1:] *= 0.5 $ if t: v = u.ravel() $ a += w; r = v
v = w if t else v $ v[0] = 9; r = w
v = w[1:] if t else w[:2] $ v[0] = 9; r = w
if t: np.copyto(w, 3 * a) $ r = keep
if not t: u = w[1:]; u[0] = 5; w = w * 2 $ r = w + keep
if not t: u = a[1:]; u[0] = 5; a = a * 2 $ r = a
"""
"""Lines of a function of `a`, with `t` a truth value, `b` the same array as `a`, and `keep` the same one as `w`."""


def defined(lines: str) -> Callable[[Any], Any]:
    """The function of a row. Its text can be read as that of a file."""
    head = ["t = np.max(a) < 1.44", "b = a; w = a * 1; v = a * 3; keep = w"]
    body = [*head, *re.split(r" ?\$ ?", lines), "return r * 1"]
    text = "\n".join(["def program(a):", *[f"    {line}" for line in body]]) + "\n"
    place = f"<{lines}>"
    linecache.cache[place] = (len(text), None, text.splitlines(True), place)
    space: dict[str, Any] = {"np": np, "__name__": "programs"}
    exec(compile(text, place, "exec"), space)
    return space["program"]


@pytest.mark.parametrize("lines", PROGRAMS.strip().splitlines())
def test_writes_reach_what_they_reach_in_numpy(lines: str) -> None:
    program = defined(lines)
    compiled = nb.jit(nb.differentiable_source(program))
    for size in (1.0, 2.0, 0.1):
        mine, theirs = np.array([0.3, 0.7, 1.1]) * size, np.array([0.3, 0.7, 1.1]) * size
        np.testing.assert_allclose(compiled(mine), program(theirs), rtol=1e-14)
        np.testing.assert_array_equal(mine, theirs)
