"""Loops on a device, turn by turn: the programs of rolled_programs.py, whose results are the CPU's.

All run in the simulator in both orders of threads; the CPU's results are those of NumPy (test_rolling.py). Which array
lies where in each turn is worked out by hand in the last tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.simulator.simulator import Simulator
from nbgrad.graph.loops import window
from nbgrad.runtime import device_turns
from nbgrad.runtime.device_turns import DeviceTurns

from .gpu import Place, close, on
from .rolled_programs import PROGRAMS, P, U

pytestmark = pytest.mark.unoptimized


@pytest.fixture(params=["forward", "reversed"])
def simulator(request: Any) -> Iterator[Simulator]:
    """A simulated device, whose threads run in one order or the other."""
    made = Simulator(order=request.param)
    with using(made):
        yield made
        made.check()


def turns_in(plan: Any) -> list[DeviceTurns]:
    """The loops of a plan, with those in their bodies."""
    found = [planned.action for planned in plan.actions if isinstance(planned.action, DeviceTurns)]
    return [*found, *[one for outer in found for one in turns_in(outer.plan)]]


def loops_in(jitted: Any) -> list[DeviceTurns]:
    """The loops of all programs of a compiled function on devices."""
    plans = [program.plan for program in jitted.programs() if hasattr(program, "device")]
    return [one for plan in plans for one in turns_in(plan)]


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, dtype: str, simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_turns, "is_short", lambda _: False)
    program, loops = PROGRAMS[name]

    def total(u: Any, p: Any) -> Any:
        return np.sum(program(u, p) ** 2)

    given = [array.astype(dtype) for array in (U, P)]
    both = nb.jit(nb.value_and_grad(total, (0, 1)))
    expected, slopes = both(*[nb.Tensor(array) for array in given])
    for _ in range(2):
        found, gradients = both(*[nb.Tensor(array, device="cuda") for array in given])
        bound = 2e-4 if dtype == "float32" else 1e-10
        for one, other in zip((found, *gradients), (expected, *slopes), strict=True):
            np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=bound, atol=bound)
    assert bool(loops_in(both)) == bool(loops)


@pytest.mark.parametrize("transform", ["vmap", "jvp of gradient", "gradient of gradient", "no jit"])
def test_transforms(simulator: Simulator, transform: str) -> None:
    def total(u: Any) -> Any:
        for k in range(150):
            u = u + 0.01 * np.sin(u[::-1] + 0.1 * k) * u
        return np.sum(u**2)

    def along(f: Any, x: Any, v: Any) -> Any:
        return nb.jvp(nb.grad(f), (x,), (v,))[1]

    apply: Any = {
        "vmap": lambda x: nb.jit(nb.vmap(nb.grad(total)))(x),
        "jvp of gradient": lambda x: nb.jit(lambda x: along(total, x[0], x[1]))(x),
        "gradient of gradient": lambda x: nb.jit(nb.grad(lambda x: np.sum(nb.grad(total)(x[0]) * x[1])))(x),
        "no jit": lambda x: nb.grad(lambda x: total(x[0]))(x),
    }[transform]
    x = np.random.default_rng(4).normal(size=(4, 5))
    close(apply(nb.Tensor(x, device="cuda")), apply(nb.Tensor(x)).asnumpy(), 1e-12)


def test_more_turns_than_a_table_has_rows(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """x[k + 1] = 0.9 x[k] + 1/2: the sum of all is worked out by the geometric series."""
    monkeypatch.setattr(device_turns, "ROWS", 64)

    def states(x: Any) -> Any:
        found = []
        for _ in range(300):
            x = 0.9 * x + 0.5
            found.append(x)
        return np.stack(found)

    both = nb.jit(nb.value_and_grad(lambda x: np.sum(states(x))))
    value, slope = both(nb.Tensor(7.0, nb.float64, device="cuda"))
    powers = 0.9 * (1 - 0.9**300) / 0.1
    np.testing.assert_allclose(float(value), 5.0 * 300 + (7.0 - 5.0) * powers, rtol=1e-13)
    np.testing.assert_allclose(float(slope), powers, rtol=1e-13)
    assert len(loops_in(both)) == 2


def test_states_of_all_turns_and_the_last_one(simulator: Simulator) -> None:
    def total(x: Any, y: Any) -> Any:
        found = []
        for _ in range(120):
            x, y = x + 0.01 * np.sin(y), y - 0.01 * x[::-1]
            found.append(y)
        return np.sum(np.stack(found) ** 2) + np.sum(x * y) + y[0]

    both = nb.jit(nb.value_and_grad(total, (0, 1)))
    x, y = np.linspace(0.1, 0.9, 5), np.linspace(1.0, -1.0, 5)
    expected, slopes = both(nb.Tensor(x), nb.Tensor(y))
    found, gradients = both(nb.Tensor(x, device="cuda"), nb.Tensor(y, device="cuda"))
    for one, other in zip((found, *gradients), (expected, *slopes), strict=True):
        close(one, other.asnumpy(), 1e-12)
    assert loops_in(both)


@pytest.mark.parametrize(("dtype", "count"), [("float64", 8), ("float64", 7), ("float32", 7)])
def test_loops_in_loops(simulator: Simulator, monkeypatch: pytest.MonkeyPatch, dtype: str, count: int) -> None:
    """Rows of states may begin anywhere, and then those of the loop inside do."""
    monkeypatch.setattr(device_turns, "is_short", lambda _: False)

    def total(x: Any) -> Any:
        def outer(k: Any, state: Any) -> Any:
            x, kept = state
            y = nb.fori_loop(0, 30, lambda _, y: y + 0.01 * np.cos(y[::-1] * x[0]), x[1:])
            x = np.concatenate([x[:1] + 0.001 * np.cos(x[1:2]), 0.5 * (x[1:] + y)])
            return x, kept + np.sum(x) * 0.01

        return nb.fori_loop(0, 40, outer, (x, 0.0 * x[0]))[1]

    both = nb.jit(nb.value_and_grad(total))
    x = np.linspace(0.1, 0.9, count).astype(dtype)
    expected, slopes = both(nb.Tensor(x))
    found, gradient = both(nb.Tensor(x, device="cuda"))
    close(found, expected.asnumpy(), 1e-12 if dtype == "float64" else 1e-5)
    close(gradient, slopes.asnumpy(), 1e-11 if dtype == "float64" else 1e-5)
    assert any(turns_in(one.plan) for one in loops_in(both))


def test_a_few_turns_of_one_kernel_are_written_out(simulator: Simulator) -> None:
    def total(x: Any) -> Any:
        for _ in range(20):
            x = 3.7 * x * (1.0 - x)
        return np.sum(x)

    value = nb.jit(total)
    x = np.linspace(0.1, 0.9, 50)
    close(value(nb.Tensor(x, device="cuda")), value(nb.Tensor(x)).asnumpy(), 1e-9)
    (program,) = [program for program in value.programs() if hasattr(program, "device")]
    assert not turns_in(program.plan) and len(program.plan.actions) <= 2


def test_many_turns(place: Place) -> None:
    """Heat on a ring, and its gradient: what is constant stays, and the mean is kept."""
    n, steps = place.size(100_000, 64), place.size(1000, 60)

    def heat(x: Any) -> Any:
        for _ in range(steps):
            x = x + 0.2 * (np.roll(x, 1) + np.roll(x, -1) - 2.0 * x)
        return x

    weights = np.random.default_rng(3).normal(size=n)
    gradient = nb.jit(nb.grad(lambda x, w: np.sum(heat(x) * w)))
    for dtype, bound in (("float64", 1e-12), ("float32", 1e-5)):
        w = weights.astype(dtype)
        # The matrix of a step is symmetric: the gradient is the weights, heated.
        expected = nb.jit(heat)(weights)
        for _ in range(6):  # the later ones by a graph
            close(gradient(on(np.ones(n, dtype)), on(w)), expected, bound)
    assert len(loops_in(gradient)) == 2 or steps < 100


class Lent:
    """Another library's array: elements of a Tensor, from the second one on."""

    def __init__(self, whole: nb.Tensor) -> None:
        self.whole, pointer = whole, whole.__cuda_array_interface__["data"][0]
        own = {"shape": (len(whole) - 1,), "typestr": "<f4", "data": (pointer + 4, False), "version": 3}
        self.__cuda_array_interface__ = {**own, "strides": None, "stream": None}


@pytest.mark.parametrize("turns", [1, 150])
def test_a_constant_may_begin_anywhere(turns: int, simulator: Simulator) -> None:
    values = np.linspace(0, 1, 65, dtype=np.float32)
    held = nb.cuda.as_tensor(Lent(on(values)))

    def many(x: Any, held: Any) -> Any:
        for k in range(turns):
            x = 0.5 * np.cos(x) + held * held[0] + np.float32(0.01) * k
        return x

    found = nb.jit(lambda x: many(x, held))
    close(found(on(values[:64])), many(values[:64], values[1:]), 1e-5)
    assert bool(loops_in(found)) == (turns > 1)


@pytest.mark.parametrize("turns", [1, 150])
def test_streams_wait_for_the_stream_of_a_constant(turns: int, simulator: Simulator) -> None:
    x = on(np.linspace(0, 1, 64))
    one, other = nb.cuda.Stream(), nb.cuda.Stream()
    with nb.cuda.stream(one):
        held = nb.jit(np.sin)(x)

    @nb.jit
    def found(x: Any) -> Any:
        for k in range(turns):
            x = 0.5 * np.cos(x[::-1]) + held + 0.01 * k
        return x

    for stream, handle in ((None, 0), (other, other.handle)):
        with nb.cuda.stream(stream):
            found(x)
            found(x)
        assert simulator.waits.count((handle, one.handle)) == 1


def test_programs_made_while_recording_are_no_turns(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a position is in range is seen at once, by a program for each turn."""
    monkeypatch.setattr(window, "FIRST", 30)
    rows = np.random.default_rng(7).integers(0, 7, (60, 7))

    def slope(device: str) -> Any:
        places = nb.Tensor(rows, device=device)

        def total(x: Any) -> Any:
            for k in range(60):
                x = 0.9 * x + 0.1 * x[places[k]]
            return np.sum(x**3)

        return nb.grad(total)(nb.Tensor(np.linspace(-1, 1, 7), device=device))

    close(slope("cuda"), slope("cpu").asnumpy(), 1e-12)
