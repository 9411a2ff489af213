"""Programs with loops that are followed: each does the same for many turns, and something else in some of them.

In: a vector. Out: a list of values. Called by test_followed_calls.py, which runs them recorded and beside NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

X = np.array([0.3, -0.8, 0.5])
DATA = np.random.default_rng(2).normal(size=(400, 3))
Program = Callable[[Any, int], Any]
PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Enter a program into the table: a function of a vector, which returns a list of values."""
    PROGRAMS[fn.__name__] = fn
    return fn


def step(u: Any) -> Any:
    """Some of every kind of call: operators, numbers, functions, elements, lists."""
    v = np.stack([u[1] * 0.5, u[2] - u[0], np.sin(u[0])])
    return np.where(v > 0.1, v, 0.9 * v) + 0.1 * np.maximum(-u, v) * np.sum(u, 0)


@program
def the_same_in_all_turns(u: Any) -> list[Any]:
    for _ in range(300):
        u = step(u)
    return [u]


@program
def a_value_of_some_turns_is_kept(u: Any) -> list[Any]:
    kept: list[Any] = []
    for k in range(300):
        u = step(u)
        if k % 17 == 3:
            kept.append(u)
    return [*kept, u]


@program
def every_value_is_kept(u: Any) -> list[Any]:
    kept: list[Any] = []
    for _ in range(200):
        v = np.sin(u) * 0.7
        kept += [v, v[0]]
        u = step(v)
    return [*kept, u]


@program
def one_more_call_in_some_turns(u: Any) -> list[Any]:
    for k in range(300):
        u = step(u)
        if k in (150, 151, 220):
            u = u * u
    return [u]


@program
def another_call_in_one_turn(u: Any) -> list[Any]:
    for k in range(300):
        u = step(u) * 0.5
        u = u - 0.1 if k == 200 else u + 0.1
    return [u]


@program
def operands_in_another_order(u: Any) -> list[Any]:
    v = u * 0.5
    for k in range(300):
        a, b = (v, u) if k > 180 else (u, v)
        u, v = step(a - b), np.cos(a)
    return [u, v]


@program
def an_operand_of_another_turn(u: Any) -> list[Any]:
    before = u
    for k in range(300):
        v = before if k == 190 else u
        before, u = u, step(v) * v
    return [u]


@program
def values_of_two_turns_ago(u: Any) -> list[Any]:
    before = 0.9 * u
    for _ in range(300):
        before, u = u, 0.5 * step(u) - 0.4 * before
    return [u, before]


@program
def values_of_three_turns_ago_and_others(u: Any) -> list[Any]:
    past = [u, 0.5 * u, 0.25 * u]
    for k in range(300):
        past = [*past[1:], step(past[2]) * 0.5 - 0.4 * past[0 if k != 222 else 1]]
    return past


def a_complex_state(u: Any) -> list[Any]:
    z = u * (0.6 + 0.8j)
    for k in range(300):
        z = z * (0.6 - 0.8j) + 0.01 * z * np.conj(z) * (0.5 if k != 250 else 0.25)
        z = z[::-1] - 0.1 * z.real
    return [z]


@program
def another_number(u: Any) -> list[Any]:
    for k in range(300):
        u = step(u) * (0.5 if k < 170 else 0.75)
    return [u]


@program
def a_number_of_every_turn(u: Any) -> list[Any]:
    for k in range(300):
        u = step(u) * (0.01 * k)
    return [u]


@program
def numbers_of_every_turn(u: Any) -> list[Any]:
    """Floats of Python's and of NumPy's, and in some turns zeros, integers, arrays, or what equals nothing."""
    odd: dict[int, Any] = {180: 0.0, 190: -0.0, 200: 2, 210: np.float32(0.3), 220: np.array(0.7), 230: True, 240: 1.0}
    for k in range(300):
        t = odd.get(k, float(np.sin(k)))
        row: Any = DATA[k, 1] if k != 205 else DATA[k, 1:2]
        u = np.tanh(u * t + np.copysign(0.1, np.minimum(u, t) * t)) - row * u
        u = (u + np.float64(0.25)) / (1.5 + t) - t + (t - u) * 0.1 + np.maximum(row, u) ** 2.0
        u = np.sin(u) + abs(np.cos(u) + 2.0) ** (1.0 + 0.01 * k) * 0.1
    return [u]


@program
def numbers_that_are_not_numbers(u: Any) -> list[Any]:
    for k in range(300):
        v = u * (float("nan") if k % 50 == 49 else 0.01 * k)
        u = np.where(np.isnan(v), 0.5, np.cos(v)) * 0.5
    return [u]


@program
def one_number_in_two_places(u: Any) -> list[Any]:
    for k in range(300):
        t = 0.01 * k
        s = t if k not in (170, 215) else 1.5
        u = np.sin(u * t) + np.cos(u * s) * 0.3 - np.float64(t) * u + s
    return [u]


@program
def zeros_with_another_sign(u: Any) -> list[Any]:
    for k in range(300):
        u = step(u) + np.copysign(0.5, np.minimum(u, 1.0) * (0.0 if k < 200 else -0.0))
    return [u]


@program
def equal_numbers_of_another_kind(u: Any) -> list[Any]:
    n = np.floor(u * 3).astype(np.int64)
    for k in range(300):
        u, n = step(u), (n + n) * (1 if k < 200 else True) - n
    return [u, n]


@program
def data_of_the_turn(u: Any) -> list[Any]:
    for k in range(300):
        u = step(u) + DATA[k] * 0.1
    return [u]


@program
def arrays_in_calls_of_every_kind(u: Any) -> list[Any]:
    fixed, weights = np.array([0.5, 0.25, -0.5]), np.random.default_rng(4).normal(size=(3, 3)) / 4
    for k in range(300):
        row = DATA[k].copy()
        if k == 230:
            fixed[1] = -0.0
        if k == 240:
            weights *= 0.5
        if k == 250:
            row = row[::-1]
        if k == 260:
            row = row.astype(np.float32)
        other = row if k != 200 else DATA[399]
        u = np.tanh(np.concatenate([row, u]) @ np.concatenate((DATA[:3], weights), 0) + fixed * u)
        u = 0.1 * np.sum((u - other) ** 2) * np.minimum(fixed - u, other - row * u) + weights @ u + np.dot(DATA[:3], u)
        u = np.tanh(u) * (row[:1] if k == 270 else row) + np.copysign(0.1, fixed * np.abs(u))
    return [u]


@program
def one_array_in_two_places(u: Any) -> list[Any]:
    for k in range(300):
        row, other = DATA[k], DATA[k] * 1.0
        if k in (180, 210, 211):
            other[1] = DATA[399 - k, 1]
        u = np.hypot(u * row, np.sin(u) - other) + np.concatenate([other, u])[2:5] * row
        u = np.tanh(np.stack([u, row, row]).sum(0))
    return [u]


@program
def an_array_that_is_written_to(u: Any) -> list[Any]:
    before = np.zeros(3)
    for k in range(300):
        before[k % 3] += 0.125
        u = np.sin(u) + before * 0.5
        before[0] = -before[0]
        u = u * 0.5 - before
    return [u]


@program
def inputs_of_an_operand_are_read(u: Any) -> list[Any]:
    for _ in range(300):
        u = np.square(np.hypot(u, 0.5)) - step(u)
        u = u * 0.3
    return [u]


@program
def parts_that_are_views(u: Any) -> list[Any]:
    for k in range(300):
        v = step(u)[::-1]
        u = v[1:] * v[:-1]
        u = np.concatenate([u, v[:1]]) if k != 250 else np.concatenate([v[:1], u])
    return [u]


@program
def keys_of_every_kind(u: Any) -> list[Any]:
    """Numbers that are other objects in each turn, equal ones of another class, and parts of what has many views."""
    fixed, kept = np.tile(np.sin(u), 130), []
    for k in range(300):
        at = 300 + 0 * k
        one: Any = {150: True, 170: np.int64(1), 180: 3, 190: 1.5}.get(k, 1)
        v = np.stack([u, u * 0.5])[:, None][..., ::-1]
        if k in (180, 190):
            with pytest.raises(IndexError):
                u[one]
            one = 1
        u = step(u) + fixed[at : at + 3] * np.sum(u[one]) + fixed[at + 2] * v[(0, 0) if k != 200 else (0, 0, slice(3))]
        if k % 30 == 0:
            kept.append(v[one:, 0])
    return [u, *kept]


@program
def written_in_some_turns(u: Any) -> list[Any]:
    for k in range(300):
        u = step(u)
        if k % 100 == 50:
            u[1] = 0.25
            u *= 2.0
    return [u]


@program
def results_that_are_written_into_an_array(u: Any) -> list[Any]:
    a, b = u * 0.5, u * 0.25
    for _ in range(200):
        np.stack([u[2], u[1], u[0]], 0, a)
        np.concatenate([u[1:], u[:1]], out=b)
        u = 0.5 * np.sin(a * 2.0) + np.cos(b) * 0.3
    return [u, a, b]


@program
def a_smaller_array_from_some_turn_on(u: Any) -> list[Any]:
    for k in range(300):
        u = np.sin(u) * 0.9 + 0.2 * u
        u = u * 0.5 - np.cos(u)
        if k == 180:
            u = u[:2]
    return [u]


@program
def elements_of_the_argument(u: Any) -> list[Any]:
    p = u
    for k in range(200):
        u = np.sin(u * p[0]) * p[1] + p[2 if k != 150 else 1]
    return [u]


@program
def every_kind_of_argument(u: Any) -> list[Any]:
    for k in range(200):
        v = np.concatenate((u[1:], u[:1]), axis=0) * 1.5
        w = np.stack([v, np.where(u > 0.0, u, v)], 1).sum(1)
        u = np.clip(-w, -0.75, 1.0) + (np.sum(u, keepdims=True) if k != 150 else np.sum(u, keepdims=False)) * 0.01
    return [u]


@program
def arguments_of_other_kinds_in_some_turns(u: Any) -> list[Any]:
    for k in range(200):
        both: Any = [u, u * 0.5]
        if k in (120, 150):
            both = (u, u * 0.5) if k == 120 else [u, u * 0.5, u]
        v = np.sum(np.stack(both, 0), 0) if k != 135 else np.sum(np.stack(both, 0), axis=0)
        u = np.sin(v) * np.clip(u, -1.0 if k != 140 else -1, 0.5) + 0.1
    return [u]
