"""Random loops: whatever they carry, read and keep, the rolled graph gives the same bits as the recorded one.

Programs of a few variables, with a random body, random periods, values of some turns ago, data by the turn's number,
lists, branches in the middle or without any order, inner loops of one length or of many. Every value that a program
keeps is compared, from every turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbgrad as nb
from nbgrad.graph import ir
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import placeholder
from nbgrad.graph.loops import alignment, growth, mixed_turns, repetition, rolling, window
from nbgrad.graph.trace import recording
from nbgrad.record.tensor import Tensor
from nbgrad.runtime.memory_order import strides_of
from nbgrad.transforms.rolled import nodes_in, roll_up

DATA = np.random.default_rng(5).normal(size=(400, 3))
SIDES = np.random.default_rng(6).random(size=(60, 2)) < (0.5, 0.1)
LENGTHS = np.random.default_rng(7).integers(0, 6, size=60)
WIDE = np.random.default_rng(8).normal(size=(3, 3)) / 2
UNARY = [np.sin, np.cos, np.tanh, np.negative, lambda x: x * 0.5, lambda x: np.roll(x, 1), lambda x: x[::-1] + 0.1]
UNARY += [lambda x: WIDE @ x, lambda x: np.concatenate([x[1:], WIDE[0, :1]]), lambda x: WIDE[1] - x[(slice(None),)]]
BINARY = [np.add, np.subtract, np.multiply, np.maximum, lambda a, b: a * np.sum(b), lambda a, b: np.where(a > b, a, b)]
VARIABLES = 3
step = st.tuples(st.integers(0, 99), st.integers(0, VARIABLES - 1), st.integers(0, VARIABLES + 6), st.integers(0, 8))
body = st.lists(step, min_size=1, max_size=5)
loops = st.fixed_dictionaries(
    {
        "turns": st.integers(1, 60),
        "body": body,
        "other": body,
        "period": st.sampled_from([0, 0, 0, 2, 3, 7]),
        "breaks": st.sampled_from([None, None, 0, 9, 30]),
        "inner": st.sampled_from([0, 0, 0, 3, 20, "rising", "falling", "irregular"]),
        "sides": st.sampled_from([None, None, None, 0, 1]),
        "keeps": st.sampled_from([0, 0, 1, 5]),
        "swaps": st.booleans(),
    }
)


def _operand(which: int, state: Sequence[Any], past: Sequence[Any], k: int) -> Any:
    """A variable, a value of some turns ago, data of the turn, or a number."""
    if which < VARIABLES:
        return state[which]
    choices = [past[-1], past[-2], past[-3], DATA[k], DATA[399 - 2 * k % 300], 0.1 * k, DATA[k, 1]]
    return choices[which - VARIABLES]


def _turn(lines: Sequence[tuple[int, int, int, int]], state: list[Any], past: Sequence[Any], k: int) -> None:
    for function, target, operand, kind in lines:
        value = _operand(operand, state, past, k)
        if kind < 4 and operand < VARIABLES + 5:
            value = UNARY[function % len(UNARY)](value)
        state[target] = 0.7 * BINARY[function % len(BINARY)](state[target], value) + 0.01


def _inner_turns(inner: int | str, k: int) -> int:
    """The turns of a loop in turn k."""
    return inner if isinstance(inner, int) else {"rising": k, "falling": 60 - k, "irregular": int(LENGTHS[k])}[inner]


def run(parts: Sequence[dict[str, Any]], x: Any, y: Any) -> list[Any]:
    """All that a program of loops, one after the other, has kept and computed at its end."""
    state, kept = [x, y, x * y], list[Any]()
    past = [x, y, x]
    for part in parts:
        for k in range(part["turns"]):
            other = part["period"] and k % part["period"] == 0
            broken = part["breaks"] is not None and k >= part["breaks"]
            _turn(part["other"] if other or broken else part["body"], state, past, k)
            if part["sides"] is not None and SIDES[k, part["sides"]]:
                _turn(part["other"], state, past, k)
            for j in range(_inner_turns(part["inner"], k)):
                state[0] = np.cos(state[0]) * 0.9 + 0.05 * state[j % 2]
            if part["swaps"]:
                state[0], state[1] = state[1], state[0]
            past = [*past[-2:], state[k % VARIABLES]]
            if part["keeps"] and k % part["keeps"] == 0:
                kept.append(state[2])
    return [*kept, *state, *past]


X, Y = np.array([0.3, -0.8, 0.5]), np.array([0.9, 0.4, -1.1])


@pytest.fixture(autouse=True, scope="module")
def _short_loops_too() -> Iterator[None]:
    """Loops of few operations are rolled as well."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (repetition, alignment, rolling, window, mixed_turns):
            patch.setattr(module, "LEAST_NODES", 24)
        yield


def check_values(parts: Sequence[dict[str, Any]], new: int, kept: int) -> None:
    """The rolled graph gives what NumPy gives, bit for bit, also if loops are looked for after so many new nodes.

    Arrays of every turn of more than `kept` bytes are avoided.
    """
    arguments = [placeholder(value.shape, value.dtype, value) for value in (X, Y)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ir, "OFTEN", 15)
        patch.setattr(window, "FIRST", new)
        patch.setattr(window, "MOST", 4 * new)
        patch.setattr(window, "MOST_HELD", 3 * new)
        for module in (growth, rolling):
            patch.setattr(module, "MOST_KEPT", kept)
        with recording(arguments, rolls=strides_of) as trace:
            outputs = nodes_in(run(parts, *map(Tensor._of, arguments)))
            roll_up(trace, outputs, arguments)
    with np.errstate(all="ignore"):
        expected = run(parts, X, Y)
    for value, other in zip(interpret(outputs), expected, strict=True):
        np.testing.assert_array_equal(value, other)


news = st.sampled_from([64, 200, 10**6])
kepts = st.sampled_from([256, 1 << 24])


@given(st.lists(loops, min_size=1, max_size=3), news, kepts)
@settings(max_examples=5, deadline=None)
def test_random_loops_have_the_same_bits(parts: list[dict[str, Any]], new: int, kept: int) -> None:
    check_values(parts, new, kept)


@pytest.mark.slow
@given(st.lists(loops, min_size=1, max_size=3), news, kepts)
@settings(max_examples=10_000, deadline=None)
def test_ten_thousand_random_loops(parts: list[dict[str, Any]], new: int, kept: int) -> None:
    check_values(parts, new, kept)


def test_inner_loops_that_are_found_after_the_outer_one() -> None:
    """A loop that is found inside of what was recorded last leaves no turn of the outer one to be followed."""
    one: dict[str, Any] = dict.fromkeys(["sides", "breaks"]) | {"swaps": False, "keeps": 0, "period": 0}
    one |= {"turns": 19, "inner": 20, "other": [(0, 0, 1, 7)], "body": [(92, 2, 7, 3), (74, 2, 6, 3), (74, 2, 6, 3)]}
    check_values([one], 64, 1 << 24)


@given(st.lists(loops, min_size=1, max_size=2))
@settings(max_examples=3, deadline=None)
def test_gradients_of_random_loops(parts: list[dict[str, Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NBGRAD_DISABLE_JIT", "1")

        def total(x: Any, y: Any) -> Any:
            return sum(np.sum(value) for value in run(parts, x, y))

        found = nb.grad(total, (0, 1))(X, Y)
        patch.setenv("NBGRAD_ROLL", "0")
        expected = nb.grad(total, (0, 1))(X, Y)
    for value, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-9, atol=1e-12)
