"""Writes to arrays in branches and loops by value: they reach the arrays that they reach in NumPy, and no others.

A branch or a turn of a loop makes a name another array, or makes two names one array, and elements are set before or
after that. `differentiable_source` runs each program, compiled, on both ways, beside NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import NbgradError, TracedValueError

from .random_writes import Lines, defined, shrunk, text_of, write_lines

pytestmark = pytest.mark.unoptimized

EACH = 10
"""Random programs of a test."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "first" in metafunc.fixturenames:
        seed, count = (metafunc.config.getoption(name) for name in ("seed", "count"))
        metafunc.parametrize("first", range(seed, seed + count, EACH))


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
while np.max(w) < 6: w = w * 2 $ w[0] += 2; r = keep
while np.max(w) < 6: x = np.copy(w); x[0] = 1; w = x * 2 + 1 $ r = w + keep
while np.max(w) < 6: w = np.copy(w); w *= 2; w[0] += 1 $ r = w + keep
for row in np.outer(a, w): $   w = row $   if row[0] > 0.3: break $ w += 1; r = w
m = np.outer(a, a) $ for row in m: $   if row[0] > 0.3: break $   row += 1 $ r = m[0]
m = np.outer(a, a) $ for row in m: $   w = row $   if row[0] > 0.3: break $ w += 1; r = m[0] + m[2]
def bumped(x): x[1] += 1; return x $ if t: v = bumped(w) $ r = v + 2 * keep
def bumped(x): x[1] += 1; return x $ t and bumped(w)[0] > 1 $ r = w
def either(x, y): $   if t: return x $   return y $ v = either(w, v); w[0] = 3; r = v
d = {'k': w} $ if t: d['k'][0] = 4 $ r = w
d = {'k': w}; e = {'k': v}; c = d if t else e; c['k'] = a * 1 $ r = d['k'] + 2 * e['k']
d = [w]; e = [v]; c = d $ if t: c = e $ c.append(a); r = d[0] + e[-1]
u = w[1:] $ while np.max(w) < 6: v = v + u[0]; w += 1 $ r = v
def noted(s, x): s.add(1); return x $ s = set() $ if t: v = noted(s, w) $ r = v * len(s)
def noted(s, x): s[2] = 1; return x $ s = {1: 0} $ if t: v = noted(s, w) $ r = v * len(s)
def noted(s, x): s[1] = s[0]; return x $ s = [1, 2] $ if t: v = noted(s, w) $ r = v * sum(s)
m = np.eye(3) * (a[0] - 0.3) $ if a[0] > 0.31: v = np.linalg.solve(m, v) $ r = v
if t: c = [w, v] $ else: c = [v, a] $ c.append(a); r = c[0] + 2 * c[1] + c[2]
"""
"""Lines of a function of `a`, with `t` a truth value, `b` the same array as `a`, and `keep` the same one as `w`."""


def of_row(row: str) -> Callable[[Any], Any]:
    """The function of a row."""
    head = ["t = np.max(a) < 1.44", "b = a; w = a * 1; v = a * 3; keep = w"]
    body = [*head, *re.split(r" ?\$ ?", row), "return r * 1"]
    return defined("\n".join(["def program(a):", *[f"    {line}" for line in body]]) + "\n")


@pytest.mark.parametrize("lines", PROGRAMS.strip().splitlines())
def test_writes_reach_what_they_reach_in_numpy(lines: str) -> None:
    program = of_row(lines)
    compiled = nb.jit(nb.differentiable_source(program))
    for size in (1.0, 2.0, 0.1):
        mine, theirs = np.array([0.3, 0.7, 1.1]) * size, np.array([0.3, 0.7, 1.1]) * size
        np.testing.assert_allclose(compiled(mine), program(theirs), rtol=1e-14)
        np.testing.assert_array_equal(mine, theirs)


def difference(lines: Lines) -> str | None:
    """A difference between NumPy and compiled or mapped code; None where there is none."""
    program = defined(text_of(lines))
    given = np.outer((1.0, 2.0, 0.1, -0.5), (0.3, 0.7, 1.1))
    theirs = given.copy()
    try:
        results = [program(row) * 1 for row in theirs]
    except Exception:  # a shrunk program may lack a name
        return None
    converted = nb.differentiable_source(program)
    compiled = nb.jit(converted)
    mine = given.copy()
    if not np.allclose([compiled(row) for row in mine], results, rtol=1e-10):
        return "values"
    if not np.allclose(mine, theirs, rtol=1e-10):
        return "arguments"
    mine = given.copy()
    try:
        found = nb.vmap(converted)(mine)
    except NbgradError:  # where no statement can be left to Python
        return None
    same = np.allclose(found, results, rtol=1e-10) and np.allclose(mine, theirs, rtol=1e-10)
    return None if same else "mapped values"


@pytest.mark.fuzz
def test_random_programs_write_as_in_numpy(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + EACH):
        monkeypatch.setenv("NBGRAD_DISABLE_JIT", "" if seed % EACH == 0 else "1")  # one of a test is compiled
        lines = write_lines(seed)
        kind = difference(lines)
        assert kind is None, (seed, kind, text_of(shrunk(lines, lambda fewer, kind=kind: difference(fewer) == kind)))


def test_an_array_that_was_chosen_and_is_written_to_is_an_error_where_both_sides_count() -> None:
    program = nb.differentiable_source(of_row("v = w * 1 if t else v; u = w if t else v $ u[0] = 9; r = w"))
    with pytest.raises(TracedValueError, match=r"may have another name: the statement in line 4 .* np\.copy\(x\)"):
        nb.vmap(program)(np.ones((2, 3)))
    program = nb.differentiable_source(of_row("v = np.copy(w if t else v) $ v[0] = 9; r = v"))
    np.testing.assert_array_equal(nb.vmap(program)(np.ones((2, 3)))[:, 0], 9.0)


TABLE = np.array([1.0, 2.0, 3.0, 4.0])


def test_a_plain_array_that_was_chosen_is_not_written_to() -> None:
    def chosen(a: Any) -> Any:
        x = TABLE[:3] if np.max(a) < 2 else a * 1
        x[0] = 9.0
        return x

    with pytest.raises(TracedValueError, match="may have another name"):
        nb.vmap(nb.differentiable_source(chosen))(np.ones((2, 3)))
    np.testing.assert_array_equal(TABLE, [1, 2, 3, 4])


def test_sides_that_are_not_taken_leave_what_is_outside() -> None:
    """Plain arrays, Tensors that share them, Tensors and Parameters: `jit` records the side alone that is taken."""
    tensor, parameter = nb.Tensor(np.ones(3)), nb.Parameter(nb.Tensor(np.ones(3)), name="p")
    shared = nb.numpy.asarray(TABLE)

    def writing(a: Any, k: int) -> Any:
        if np.max(a) > 2:
            if k == 0:
                TABLE[0] = 9.0
            elif k == 1:
                shared[0] = 9.0
            elif k == 2:
                tensor[0] = 9.0
            else:
                parameter[0] = a[0]
        return a * 2 + np.array([TABLE[0], float(tensor[1]), 1.0])

    for k in range(4):
        compiled = nb.jit(nb.differentiable_source(lambda a, k=k: writing(a, k)))
        np.testing.assert_array_equal(compiled(np.ones(3)), [3.0, 3.0, 3.0])
        np.testing.assert_array_equal(TABLE, [1, 2, 3, 4])
        np.testing.assert_array_equal(tensor.asnumpy(), 1.0)
        np.testing.assert_array_equal(parameter.asnumpy(), 1.0)
        with pytest.raises(TracedValueError, match=r"it (changes|writes to) an array|elements of \w+ are set"):
            nb.vmap(nb.differentiable_source(lambda a, k=k: writing(a, k)))(np.ones((2, 3)))
        np.testing.assert_array_equal(TABLE, [1, 2, 3, 4])


def test_lists_that_stay_as_they_are_may_be_chosen() -> None:
    recorded: list[int] = []
    program = nb.differentiable_source(of_row("d = [w]; e = [v]; c = d if t else e $ r = c[0] + d[0]"))

    def counted(a: Any) -> Any:
        recorded.append(1)
        return program(a)

    compiled = nb.jit(counted)
    for size in (1.0, 2.0):
        given = np.array([0.3, 0.7, 1.1]) * size
        np.testing.assert_allclose(compiled(given), 2 * given if size == 1.0 else 4 * given)
    assert len(recorded) == 1


def test_functions_of_cond_write_where_they_are_chosen() -> None:
    def first_set(x: Any) -> Any:
        y = x * 1

        def setting(value: Any) -> Any:
            y[0] = value[1]
            return value * 1

        return nb.cond(x[0] > 0, setting, lambda value: value * 2, x) + 10 * y

    compiled = nb.jit(first_set)
    for x in (np.array([1.0, 2.0]), np.array([-1.0, 2.0])):
        expected = first_set(x)
        np.testing.assert_array_equal(compiled(x), expected)
    np.testing.assert_array_equal(compiled(np.array([1.0, 2.0])), [21.0, 22.0])
    np.testing.assert_array_equal(compiled(np.array([-1.0, 2.0])), [-12.0, 24.0])


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "while_loop"])
def test_turns_that_write_to_what_the_function_has_made_are_an_error(loop: str) -> None:
    def outside(x: Any) -> Any:
        y = x * 1

        def turn(value: Any, *_: Any) -> Any:
            y[0] += 5.0
            return value * 2

        if loop == "scan":
            return nb.scan(lambda value, _: (turn(value), None), x, None, 3)[0] + y
        if loop == "fori_loop":
            return nb.fori_loop(0, 3, lambda k, value: turn(value), x) + y
        return nb.while_loop(lambda value: value[0] < 10, turn, x) + y

    def inside(x: Any) -> Any:
        def turn(k: Any, value: Any) -> Any:
            found = np.copy(x) + 0 * value
            kept = np.copy(x)
            kept[0] = 3.0
            found[0] = k
            return found + kept

        return nb.fori_loop(0, 3, turn, x)

    with pytest.raises(TracedValueError, match=rf"writes to a Tensor of shape \(2,\) .*in a turn of {loop}\(\)"):
        nb.jit(outside)(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(nb.jit(inside)(np.array([1.0, 2.0])), [5.0, 4.0])


def test_a_statement_is_left_to_python_once_for_all_recordings() -> None:
    """The first recording shows that a chosen array is written to; later ones know it."""
    recorded: list[int] = []
    program = nb.differentiable_source(of_row("if t: v = w $ v[1] = 3; r = w"))

    def counted(a: Any) -> Any:
        recorded.append(1)
        return program(a)

    compiled = nb.jit(counted)
    for size in (1.0, 2.0, 1.0, 2.0):
        compiled(np.array([0.3, 0.7, 1.1]) * size)
    assert len(recorded) == 3
