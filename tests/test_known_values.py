"""Values that Python asks for while a function runs: each question costs what was recorded since the last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.graph import known_values
from nbgrad.graph.ir import constant, topological
from nbgrad.graph.known_values import KnownValues, Piece
from nbgrad.graph.trace import Trace, current_trace, recording
from nbgrad.record.as_node import wrap
from nbgrad.runtime import evaluate

pytestmark = pytest.mark.unoptimized

SHORT, LONG = 6, 24


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of nodes that are computed for each question."""
    counts: list[int] = []

    class Counted(Piece):
        def __init__(self, node: Any, values: Any) -> None:
            super().__init__(node, values)
            counts.append(len(self.readers))

    monkeypatch.setattr(evaluate, "Piece", Counted)
    return counts


def fall(x: Any, turns: int) -> Any:
    """An array that shrinks; a truth value is asked for at each turn."""
    count = 0
    while x[1] > 0.0 and count < turns:
        x = x - 1e-3 * np.sin(x)
        count += 1
    return np.sum(x * x)


def elements(p: Any, turns: int) -> Any:
    """The same with elements of an array that is written to, as scientific code does it."""
    x = np.zeros(2)
    x[0], x[1] = p[0], p[1]
    count = 0
    while x[1] > 0.0 and count < turns:
        x[0] += 0.01 * x[1]
        x[1] -= 1e-4 * p[1]
        count += 1
    return x[0] + x[1]


def two_names(x: Any, turns: int) -> Any:
    """Newton's iteration, which holds two values, and a list of all of them, which nothing asks about."""
    every = []
    for _ in range(turns):
        better = 0.5 * (x + 4.0 / x)
        every.append(better * 2.0)
        if np.all(better < 0.0):
            break
        x = better
    return np.sum(x) + sum(np.sum(one) for one in every)


def filtered(theta: Any, turns: int) -> Any:
    """A Kalman filter: at each turn, two solutions and a determinant, which check for singular matrices."""
    turn, mean, spread = np.array([[1.0, 0.1], [0.0, 1.0]]), np.zeros(2), np.eye(2)
    total = 0.0
    for k in range(turns):
        mean, spread = turn @ mean, turn @ spread @ turn.T + theta[0] * np.eye(2)
        wide = spread + theta[1] * np.eye(2)
        off = np.array([np.sin(k), np.cos(k)]) - mean
        gain = np.linalg.solve(wide, spread).T
        total = total - 0.5 * (np.linalg.slogdet(wide)[1] + off @ np.linalg.solve(wide, off))
        mean, spread = mean + gain @ off, spread - gain @ wide @ gain.T
    return total


def mapped(theta: Any, turns: int) -> Any:
    return np.sum(nb.vmap(lambda t: filtered(t, turns))(np.stack([theta, 2.0 * theta])))


def on_tensors(x: Any, turns: int) -> Any:
    """Without a transform."""
    return fall(nb.Tensor(x), turns).asnumpy()


def differentiated(f: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    return lambda x, turns: nb.grad(lambda x: f(x, turns))(x)


CASES: dict[str, Callable[[Any, int], Any]] = {
    "Tensors": on_tensors,
    "grad": differentiated(fall),
    "grad of grad": lambda x, turns: nb.hvp(lambda x: fall(x, turns), x, x),
    "jit": lambda x, turns: nb.jit(lambda x: fall(x, turns))(x),
    "differentiable_source": differentiated(nb.differentiable_source(elements)),
    "two names": differentiated(two_names),
    "linear algebra": differentiated(filtered),
    "linear algebra, jit": lambda x, turns: nb.jit(lambda x: filtered(x, turns))(x),
    "linear algebra, vmap": mapped,
}


@pytest.mark.parametrize("name", CASES)
def test_a_loop_computes_what_it_records(name: str, visited: list[int]) -> None:
    """Four times the turns compute four times the nodes, not sixteen times."""
    x = np.array([1.0, 2.0])
    CASES[name](x, SHORT)
    short = sum(visited)
    visited.clear()
    CASES[name](x, LONG)
    long = sum(visited)
    assert short >= SHORT
    assert long <= 1.1 * (LONG / SHORT) * short


def test_no_question_costs_more_than_the_one_before(visited: list[int]) -> None:
    nb.grad(lambda x: fall(x, LONG))(np.array([1.0, 2.0]))
    assert max(visited[1:]) == min(visited[2:])


@pytest.mark.parametrize("transform", [nb.grad, lambda f: lambda x: f(nb.Tensor(x)).asnumpy()])
def test_large_arrays_are_computed_by_one_program_for_all_turns(transform: Any, visited: list[int]) -> None:
    size = evaluate.INTERPRETED_SIZE + 1

    def f(x: Any, turns: int) -> Any:
        for _ in range(turns):
            x = 0.5 * x + 1.0
            assert (2.0 * x).asnumpy().shape == (size,)
        return np.sum(x)

    for turns in (3, 4):
        transform(lambda x, n=turns: f(x, n))(np.ones(size))
    visited.clear()
    before = len(evaluate._programs)
    got = transform(lambda x: f(x, 12))(np.ones(size))
    assert len(evaluate._programs) - before <= 2  # the last sum, and its gradient
    assert max(visited[1:-1]) == min(visited[1:-1])
    want = np.full(size, 0.5**12) if transform is nb.grad else size * (2.0 - 0.5**12)
    np.testing.assert_allclose(got, want, rtol=1e-14)


def test_values_are_those_of_numpy() -> None:
    """Values that are asked for in between, kept or not, and what is computed of them later."""
    x = np.array([0.3, 2.0])
    seen: list[Any] = []

    def f(v: Any) -> Any:
        first = np.exp(v)
        second = first[::-1] * 2.0
        seen.append(bool(second[0] > 14.0))
        third = second + first
        seen.append(bool(third[1] > 14.0))
        seen.append(int(second[0]))
        total = np.sum(third)
        seen.extend([bool(total > 1.0), bool(total)])  # of a value that was kept for another question
        v = third.copy()
        v[0] = 100.0
        seen.extend([bool(v[0] > 99.0), bool(third[0] > 99.0)])
        return np.sum(v * second)

    want = f(x)
    numpys = list(seen)
    seen.clear()
    value, _ = nb.value_and_grad(f)(x)
    assert seen == numpys == [True, False, 14, True, True, True, False]
    np.testing.assert_allclose(value, want, rtol=1e-15)


def recorded() -> Trace:
    trace = current_trace()
    assert trace is not None
    return trace


def test_what_the_function_holds_is_kept_and_nothing_else() -> None:
    x = np.ones(1000)
    with recording():
        held = wrap(constant(x)) * 2.0
        for _ in range(10):
            held = np.sqrt(held + 1.0) * 0.5
            assert np.sum(held) > 0.0
        known = recorded().known
        known._forget(Piece(constant(x), {}))
        assert list(known.values) == [held._node]


def test_values_take_limited_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list holds everything; the values of the oldest are forgotten, and computed again when they are asked for."""
    size = 1000
    monkeypatch.setattr(known_values, "FEW_BYTES", 8 * size)
    monkeypatch.setattr(known_values, "MOST_BYTES", 50 * size)
    with recording():
        every = [wrap(constant(np.ones(size)))]
        for _ in range(40):
            every.append(every[-1] + 1.0)
            assert np.max(every[-1]) < 100.0
        known = recorded().known
        assert known.bytes == sum(value.nbytes + known_values.OVERHEAD for value in known.values.values())
        assert known.bytes <= 2 * 50 * size + 9 * size
        assert every[-1]._node in known.values
        assert every[3]._node not in known.values
        assert float(nb.stop_gradient(every[3][5])) == 4.0


def test_a_part_does_not_keep_the_whole_in_memory() -> None:
    known = KnownValues()
    whole = constant(np.ones(1000))
    part = (wrap(whole) * 2.0)[:3]
    assert np.sum(part) == 6.0
    with recording():
        part = (wrap(whole) * 2.0)[:3]
        assert np.sum(part) == 6.0
        known = recorded().known
        assert known.values[part._node].base is None


def test_numbers_stay_what_they_are() -> None:
    """Ones in a shape are one node for all graphs, which a question about them must not change."""
    nodes = [wrap(constant(np.arange(3.0))) * 2.0 for _ in range(2)]
    ones = nodes[0]._node.inputs[1]
    assert np.sum(nodes[0]) == 6.0
    assert np.sum(wrap(ones)) == 6.0
    assert ones.name == "broadcast"
    assert ones in topological([nodes[1]._node])


def test_the_first_call_has_the_structure_of_the_second() -> None:
    """Numbers that were never used before come first in a graph, as they do when it is recorded again."""

    def f(x: Any) -> Any:
        return np.sum(np.exp(x * 37.0) / 41.0 + x * np.ones(2) * 43.0 + (x > 0.0))

    nb.grad(f)(np.ones(2))
    before = len(evaluate._programs)
    nb.grad(f)(np.ones(2))
    assert len(evaluate._programs) == before
