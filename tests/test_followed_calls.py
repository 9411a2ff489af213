"""Loops that are followed: calls that are expected make their results at once, and those that are not are seen.

The oracle is NumPy, bit for bit: each program does the same for many turns, and something else in some of them.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
import nbgrad.numpy as xp
from nbgrad.autograd import no_grad
from nbgrad.errors import ArgumentError, RangeError
from nbgrad.graph import ir
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, due, placeholder
from nbgrad.graph.loops import follower, window
from nbgrad.graph.loops.follower import Followed
from nbgrad.graph.trace import recording
from nbgrad.process import gc_pause, modes
from nbgrad.record.tensor import Tensor
from nbgrad.runtime.memory_order import strides_of
from nbgrad.transforms.rolled import nodes_in, roll_up

from .followed_programs import PROGRAMS, X, a_complex_state, step, the_same_in_all_turns

pytestmark = [pytest.mark.unoptimized(but=16), pytest.mark.usefixtures("unseen")]


@pytest.fixture(autouse=True)
def _short_windows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loops are looked for early, and followed soon."""
    monkeypatch.setattr(ir, "OFTEN", 15)
    monkeypatch.setattr(window, "FIRST", 300)
    monkeypatch.setattr(window, "MOST", 600)
    yield
    assert not any(due)


def recorded(fn: Callable[[Any], Any], size: int = 3) -> list[Node]:
    """The nodes of what a function of a vector returns, rolled."""
    argument = placeholder((size,), np.dtype(float), X[:size])
    with recording([argument], rolls=strides_of) as trace:
        output = fn(Tensor._of(argument))
        roll_up(trace, nodes_in(output), [argument])
    return nodes_in(output)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_have_the_same_bits(name: str) -> None:
    for value, expected in zip(interpret(recorded(PROGRAMS[name])), PROGRAMS[name](X.copy()), strict=True):
        if name == "inputs_of_an_operand_are_read":  # the square of a length has no root
            np.testing.assert_allclose(value, expected, rtol=1e-14)
            continue
        np.testing.assert_array_equal(value, expected)
        np.testing.assert_array_equal(np.signbit(value), np.signbit(expected))


def looks_with_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the looks at a recording which find that a loop goes on as expected."""
    seen = [0]
    usual = follower.Follower.go_on

    def counted(self: Any, taken: int) -> None:
        seen[0] += len(self.steps) > 1
        usual(self, taken)

    monkeypatch.setattr(follower.Follower, "go_on", counted)
    return seen


@pytest.mark.parametrize(
    "name",
    [
        "the_same_in_all_turns",
        "parts_that_are_views",
        "values_of_two_turns_ago",
        "data_of_the_turn",
        "arrays_in_calls_of_every_kind",
        "one_array_in_two_places",
        "one_number_in_two_places",
        "numbers_that_are_not_numbers",
    ],
)
def test_loops_are_followed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = looks_with_steps(monkeypatch)
    recorded(PROGRAMS[name])
    assert seen[0]


def test_loops_are_followed_after_complex_values_have_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    before = modes.attentive.copy(), modes._always.copy()
    modes.look_at_results()
    try:
        seen = looks_with_steps(monkeypatch)
        for value, expected in zip(interpret(recorded(a_complex_state)), a_complex_state(X.copy()), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-13)
        assert seen[0]
    finally:
        modes.attentive[:], modes._always[:] = before


@pytest.mark.parametrize(
    "name",
    [
        "every_value_is_kept",
        "one_more_call_in_some_turns",
        "an_operand_of_another_turn",
        "written_in_some_turns",
        "one_array_in_two_places",
    ],
)
def test_gradients_are_those_of_the_program_written_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def total(x: Any) -> Any:
        return sum(np.sum(value) for value in PROGRAMS[name](x * 1.0))

    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    found = nb.grad(total)(X)
    monkeypatch.setenv("NBGRAD_ROLL", "0")
    np.testing.assert_allclose(found, nb.grad(total)(X), rtol=1e-10, atol=1e-13)


def test_a_turn_makes_nothing_but_the_results_of_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [0]
    usual = Node.__init__

    def counted(self: Node, *args: Any, **kwargs: Any) -> None:
        made[0] += 1
        usual(self, *args, **kwargs)

    monkeypatch.setattr(Node, "__init__", counted)

    def run(turns: int) -> int:
        made[0] = 0

        def loop(u: Any) -> Any:
            for _ in range(turns):
                u = step(u)
            return u

        recorded(loop)
        return made[0]

    few = run(500)
    # Each look at a list of turns makes a few nodes of its own.
    assert run(2500) - few < 2000 * 4


def test_values_that_are_asked_for_are_those_of_the_turn() -> None:
    def run(u: Any) -> tuple[Any, list[bool]]:
        asked: list[bool] = []
        for k in range(300):
            u = step(u)
            if k in (100, 101, 250):
                asked.append(bool(u[0] > u[1]))
                u = u - 0.1 if asked[-1] else u + 0.1
        return np.sum(u), asked

    (value, found), _ = nb.value_and_grad(run, has_aux=True)(X)
    expected, sides = run(X)
    assert found == sides
    np.testing.assert_allclose(value, expected, rtol=1e-12)


def test_facts_of_a_result_are_known_at_once() -> None:
    shapes: set[Any] = set()
    kinds: set[type] = set()

    def run(u: Any) -> Any:
        for _ in range(200):
            v: Any = np.stack([u[0], u[1]])
            kinds.add(type(v._node))
            shapes.add((v.shape, v.dtype.name, v.ndim, v._node.name, type(v._node)))
            u = step(u)
        return u

    recorded(run)
    assert shapes == {((2,), "float64", 1, "concatenate", Node)}
    assert kinds == {Node, Followed}


def test_a_wrong_operand_is_refused_in_its_turn() -> None:
    def run(u: Any) -> Any:
        n = np.floor(u).astype(np.int64)
        for k in range(300):
            u = step(u) + n**2
            if k == 200:
                return n**-1
        return u

    with pytest.raises(ArgumentError, match="negative"):
        recorded(run)


def test_conditions_of_every_turn_are_checked() -> None:
    """A power of integers by integers asks for values: it may not be expected to be right as in the turn before."""

    def run(u: Any, n: Any) -> Any:
        for _ in range(300):
            u = step(u) + 2**n
            n = n - 1
        return np.sum(u)

    with pytest.raises(RangeError, match="negative"):
        nb.grad(run)(X, np.array([200, 210, 220]))


def test_an_error_in_the_middle_leaves_nothing_behind() -> None:
    def run(u: Any) -> Any:
        for k in range(300):
            u = step(u)
            if k == 200:
                raise KeyError(k)
        return u

    with pytest.raises(KeyError):
        recorded(run)
    assert not any(due)
    np.testing.assert_array_equal(interpret(recorded(the_same_in_all_turns))[0], the_same_in_all_turns(X)[0])


def test_gradients_inside_of_a_turn() -> None:
    def run(u: Any) -> Any:
        for _ in range(120):
            u = u - 0.1 * nb.grad(lambda v: np.sum(step(v) ** 2))(u)
        return np.sum(u)

    slope = nb.grad(run)(X)
    h = 1e-6 * np.eye(3)
    rest = [float(run(X + e) - run(X - e)) / 2e-6 for e in h]
    np.testing.assert_allclose(slope, rest, rtol=1e-5, atol=1e-8)


def test_threads_record_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    expected = nb.grad(lambda x: np.sum(the_same_in_all_turns(x)[0]))(X)
    found: list[Any] = []

    def work() -> None:
        found.append(nb.grad(lambda x: np.sum(the_same_in_all_turns(x)[0]))(X))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(np.array_equal(one, expected) for one in found)


@pytest.mark.parametrize("short", [1, 64, 500])
def test_turns_are_followed_several_at_a_time(short: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "SHORT", short)

    def run(u: Any) -> list[Any]:
        for _ in range(900):
            u = np.sin(u) * 1.1
        return [u]

    np.testing.assert_array_equal(interpret(recorded(run))[0], run(X)[0])


def test_views_of_expected_calls_share_memory() -> None:
    """A write to a part, or to the array that it is a part of, is seen in the other one, as in NumPy."""

    def run(u: Any) -> list[Any]:
        kept: list[Any] = []
        for k in range(300):
            a = np.sin(u) * 0.9
            b = a[1:]
            c = b[None, ::-1]
            u = np.concatenate([c[0], a[:1]]) + 0.1 * u
            if k == 200:
                c[0, 0] = 0.125
                kept += [a, b]
            if k == 210:
                a[2] = 0.5
                kept += [b, c]
        return [*kept, u]

    for value, expected in zip(interpret(recorded(run)), run(X), strict=True):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("position", [1, 2])
def test_a_key_may_be_another_in_some_turn(position: int) -> None:
    def run(u: Any) -> list[Any]:
        for k in range(300):
            end = 2 if k == 200 else 3
            v = np.sin(u[position - 1 : end]) * 0.7
            u = 0.3 * u * u[position if k != 220 else 0] + 0.3 * np.sum(v) + np.cos(u)
        return [u]

    np.testing.assert_array_equal(interpret(recorded(run))[0], run(X)[0])


@pytest.mark.parametrize("within", [range(700, 760), range(900)])
def test_gradients_stop_within_some_turns(within: range) -> None:
    """Each turn multiplies by 1.01, and its derivative is 1 where half of it is no longer differentiated."""

    def run(u: Any) -> Any:
        for k in range(900):
            with no_grad() if k in within else nullcontext():
                v = xp.multiply(u, 0.01)
            u = u + v
        return xp.sum(u)

    expected = 1.01 ** (900 - len(within))
    np.testing.assert_allclose(nb.grad(run)(X), np.full(3, expected), rtol=1e-12)


class Computes:
    """In a cycle, so that the collector ends it: at any time, and it computes then."""

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        (Tensor(np.ones(2)) * 2.0).asnumpy()


@pytest.mark.parametrize("seldom", [25, 100_000])
def test_finalizers_compute(seldom: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ended, when the collector ran while a context variable was reset."""

    def run(u: Any) -> Any:
        for _ in range(300):
            Computes()
            u = xp.tanh(u * 0.9 + xp.stack([u[1], u[2], u[0]]) * 0.2)
        return xp.sum(u)

    expected = nb.grad(run)(X)
    monkeypatch.setattr(gc_pause, "SELDOM", seldom)
    usual = gc.get_threshold()
    gc.set_threshold(20)
    try:
        np.testing.assert_allclose(nb.grad(run)(X), expected)
    finally:
        gc.set_threshold(*usual)


MATRICES: dict[str, Callable[[Any, Any], Any]] = {
    "a condition in each turn": lambda np, s: np.linalg.solve(s + 3 * np.eye(3), s),
    "two conditions": lambda np, s: np.linalg.solve(s + 3 * np.eye(3), s) @ np.linalg.inv(s * s + 2 * np.eye(3)),
    "views": lambda np, s: (s.T + s[::-1].T @ np.reshape(s, (3, 3)) - s.ravel()[:9].reshape(3, 3)).T,
    "several results": lambda np, s: (
        s * np.linalg.slogdet(s + 3 * np.eye(3))[1] - np.linalg.slogdet(s + 2 * np.eye(3)).sign + np.divmod(s, 0.7)[1]
    ),
    "one of several results": lambda np, s: s * 0.5 - np.linalg.eigh(s + s.T)[0] * 0.1,
    "the shape is asked for": lambda np, s: np.linalg.solve(s + s.shape[0] * np.eye(len(s)), s),
    "methods": lambda np, s: s.dot(s).clip(-1, 1) - s.sum(0) * s.mean() + s.transpose(1, 0),
    "matrices of numbers": lambda np, s: s * np.eye(3) + np.tri(3) @ s,
}
"""A turn of a loop over a matrix."""
MATRIX = np.array([[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [0.2, 0.1, 0.7]])


def turned(xp: Any, name: str, turns: int) -> Callable[[Any], Any]:
    """The sum of a matrix after turns of the table, each scaled."""

    def run(s: Any) -> Any:
        for _ in range(turns):
            s = xp.tanh(MATRICES[name](xp, s)) * 0.9
        return xp.sum(s)

    return run


@pytest.mark.parametrize("name", MATRICES)
def test_functions_of_matrices_are_followed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = looks_with_steps(monkeypatch)
    value, slope = nb.jit(nb.value_and_grad(turned(xp, name, 200)))(MATRIX)
    assert seen[0]
    np.testing.assert_allclose(value, turned(np, name, 200)(MATRIX), rtol=1e-9, atol=1e-30)
    h = 1e-6 * np.eye(9)[4].reshape(3, 3)
    rest = (turned(np, name, 200)(MATRIX + h) - turned(np, name, 200)(MATRIX - h)) / 2e-6
    np.testing.assert_allclose(slope[1, 1], rest, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("turns", [40, 200, 203])
def test_turns_may_begin_inside_of_a_call(turns: int) -> None:
    """Fewer values go into `lu_solve` than between any other operations: implicit steps of a diffusion."""

    def run(np: Any, p: Any) -> Any:
        s = np.outer(np.sin(np.arange(3) + p[0]), np.cos(np.arange(3) * p[1]))
        for _ in range(turns):
            matrix = np.eye(3) * (1 + 0.2 * p[2]) - 0.1 * p[2] * (np.eye(3, k=1) + np.eye(3, k=-1))
            change = np.roll(s, 1, axis=1) + np.roll(s, -1, axis=1) - 2 * s
            s = np.linalg.solve(matrix, s + 0.1 * p[2] * change).T
        return np.sum(s**2 * np.arange(3))

    p = np.array([0.7, 0.9, 0.4])
    expected = [run(np, p + 1e-30j * e).imag / 1e-30 for e in np.eye(3)]
    for _ in range(2):
        value, slopes = nb.jit(nb.value_and_grad(lambda p: run(xp, p)))(p)
        np.testing.assert_allclose(value, run(np, p), rtol=1e-9)
        np.testing.assert_allclose(slopes, expected, rtol=1e-9)


def shrinking(at: Any, asks: int = -1) -> Callable[[Any], Any]:
    """Turns that solve with a matrix whose rows are equal but for the number `at[k]` on the diagonal."""

    def run(s: Any) -> Any:
        for k in range(200):
            s = xp.linalg.solve(xp.ones((3, 3)) * 0.5 + xp.eye(3) * at[k], xp.tanh(s)) * 0.5 + 0.1 * at[k]
            if k == asks and not bool(xp.all(xp.abs(s) < 1e6)):
                message = "too large"
                raise ArithmeticError(message)
        return xp.sum(s)

    return run


def test_a_matrix_may_be_singular_in_any_turn() -> None:
    """The conditions of expected calls hold in the recording, and one of them does not in a later call."""
    fast = nb.jit(nb.grad(lambda s, at: shrinking(at)(s)))
    assert np.isfinite(fast(MATRIX, np.ones(200))).all()
    for turn in range(200):
        at = np.ones(200)
        at[turn] = 0.0
        with pytest.raises(np.linalg.LinAlgError, match=r"(?i)singular"):
            fast(MATRIX, at)


@pytest.mark.parametrize("turn", [170, 171, 172, 173])
def test_conditions_are_checked_before_a_question_is_answered(turn: int) -> None:
    at = np.where(np.arange(200) == turn, 0.0, 1.0)
    with pytest.raises(np.linalg.LinAlgError, match=r"(?i)singular"):
        nb.jit(nb.grad(lambda s, at: shrinking(at, asks=turn)(s)))(MATRIX, at)
