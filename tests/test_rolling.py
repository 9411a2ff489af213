"""Python loops that are recorded become loops again: each program against itself, written out.

The oracle is the interpreter on the graph as it was recorded, which is what NumPy computes. The rolled form has the
same bits there; compiled, and differentiated, it agrees to rounding.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest

import nbgrad as nb
import nbgrad.numpy as xp
from nbgrad.compiled import specialize
from nbgrad.graph import ir
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, by_serial, placeholder
from nbgrad.graph.loops import alignment, growth, repetition, rolling, window
from nbgrad.graph.loops.loop_body import LOOP, turns_of
from nbgrad.graph.loops.rolling import roll
from nbgrad.graph.trace import recording
from nbgrad.record.tensor import Tensor
from nbgrad.runtime.memory_order import strides_of
from nbgrad.transforms.rolled import joint_guards, nodes_in, roll_up

from .rolled_programs import BY_VALUE, CARRIED, PROGRAMS, P, U

pytestmark = pytest.mark.unoptimized(but=16)


def recorded(program: Any, rolls: Any = None) -> tuple[list[Node], list[Node]]:
    """The arguments and the outputs of a program, rolled if `rolls` says how."""
    arguments = [placeholder(value.shape, value.dtype, value) for value in (U, P)]
    with recording(arguments, rolls=rolls) as trace:
        output = program(*map(Tensor._of, arguments))
        roll_up(trace, nodes_in(output), arguments)
    return arguments, nodes_in(output)


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("at", ["at the end", "while recording"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_rolled_graph_has_the_same_bits(name: str, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, loops = PROGRAMS[name]
    arguments, outputs = recorded(program)
    known = dict(zip(arguments, (U, P), strict=True))
    expected = [value.copy() for value in interpret(outputs, known)]
    count = len(by_serial(outputs))
    if at == "while recording":
        monkeypatch.setattr(ir, "OFTEN", 15)
        monkeypatch.setattr(window, "FIRST", 1000)
    arguments, outputs = recorded(program, strides_of)
    known = dict(zip(arguments, (U, P), strict=True))
    order = by_serial(outputs)
    found = [(turns_of(node), len(node.params[0].nodes)) for node in order if node.primitive is LOOP]
    for value, other in zip(interpret(outputs, known), expected, strict=True):
        np.testing.assert_array_equal(value, other)
    assert len(found) == len(loops), found
    for (turns, size), (least, most) in zip(sorted(found), sorted(loops), strict=True):
        assert abs(turns - least) <= 2 and size <= most, (found, loops)
    assert len(order) < count / 3 or count < 1000, (count, len(order))


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "value and gradient": lambda f: nb.value_and_grad(f, (0, 1))(U, P),
    "jit": lambda f: nb.jit(nb.value_and_grad(f, (0, 1)))(U, P),
    "jvp of gradient": lambda f: nb.jvp(nb.grad(f), (U, P), (np.ones(3), np.arange(3.0))),
    "vmap": lambda f: nb.vmap(f, (0, None))(np.stack([U, 0.9 * U]), P),
}


@pytest.mark.sampled(of=8)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_derived_agrees(name: str, transform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, _ = PROGRAMS[name]
    if transform == "vmap" and name in BY_VALUE:
        return

    def total(u: Any, p: Any) -> Any:
        return np.sum(program(u, p) ** 2)

    found = TRANSFORMS[transform](total)
    monkeypatch.setenv("NBGRAD_ROLL", "0")
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    expected = TRANSFORMS[transform](total)
    for value, other in zip(optree.tree_leaves(found), optree.tree_leaves(expected), strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CARRIED)
def test_arrays_that_are_filled_are_not_carried(name: str) -> None:
    _, outputs = recorded(PROGRAMS[name][0], strides_of)
    loops = [node for node in by_serial(outputs) if node.primitive is LOOP]
    found = [[inside.shape for inside in loop.params[0].carried] for loop in loops]
    assert sum(inside.size for loop in loops for inside in loop.params[0].carried) == CARRIED[name], found


# ----- Details -----


def test_turns_that_read_nothing_of_an_array_that_they_fill() -> None:
    """Gauss and Seidel's iteration: the first row has nothing before it, the last one nothing after it."""

    def solved(a: Any, b: Any) -> Any:
        x = xp.zeros(3)
        for _ in range(40):
            for i in range(3):
                x[i] = (b[i] - a[i, :i] @ x[:i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
        return x.sum()

    a, b = np.array([[4.0, 1.0, 0.5], [-1.0, 5.0, 1.0], [0.3, 1.0, 3.0]]), np.ones(3)
    expected = np.linalg.solve(a.T, np.ones(3))
    np.testing.assert_allclose(nb.grad(solved, 1)(a, b), expected, rtol=1e-12)
    np.testing.assert_allclose(nb.jit(nb.grad(solved))(a, b), -np.outer(expected, np.linalg.solve(a, b)), rtol=1e-12)


def test_a_while_loop_that_ends_by_value_compiles_once_for_all_numbers_of_turns() -> None:
    @nb.jit
    @nb.grad
    def height(v: Any) -> Any:
        y, t = 1.0 + 0.0 * v, 0.0 * v
        while y > 0:
            v = v - 0.05 * 9.81 * (1 + 0.01 * v * v)
            y = y + 0.05 * v
            t = t + 0.05 * np.cos(v)
        return t

    def plain(v: float) -> float:
        y, t = 1.0, 0.0
        while y > 0:
            v = v - 0.05 * 9.81 * (1 + 0.01 * v * v)
            y = y + 0.05 * v
            t = t + 0.05 * np.cos(v)
        return t

    height(30.0)
    height(31.0)
    before = nb.counters["compiled"]
    for v in (20.0, 35.0, 25.0, 40.0):
        slope = (plain(v + 1e-7) - plain(v - 1e-7)) / 2e-7
        np.testing.assert_allclose(height(v), slope, rtol=1e-5, atol=1e-6)
    assert nb.counters["compiled"] == before


def test_blocks_say_whether_loops_are_found() -> None:
    function = nb.jit(nb.grad(lambda u: np.sum(PROGRAMS["forced"][0](u, P))))
    rolled = function(U)
    with nb.config.rolled(False):
        calls = [function(U) for _ in range(4)]
        with nb.config.rolled():
            calls += [function(U) for _ in range(3)]
        inside: list[Any] = []
        thread = threading.Thread(target=lambda: inside.append(nb.config.roll()))
        thread.start()
        thread.join()
        assert inside == [True] and not nb.config.roll()
    calls += [function(U) for _ in range(3)]
    for value in calls:
        np.testing.assert_allclose(value, rolled, rtol=1e-12)
    assert nb.config.roll() and function.compiled_signatures == 2 and not nb.config.blocks
    plans = [program.plan for program in function.programs()]
    loops = [sum(step.turns is not None for group in plan.groups for step in group.steps) for plan in plans]
    assert sorted(loops) == [0, 2]


def test_the_block_counts_and_not_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_ROLL", "0")
    assert not nb.config.roll()
    with pytest.raises(ZeroDivisionError), nb.config.rolled():
        assert nb.config.roll()
        _ = 1 / 0
    assert not nb.config.roll()


def test_sides_that_alternate_without_order_are_one_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another sequence of sides is recorded again; the same one is not, whatever the values are."""

    def drop(x: Any, turns: int = 100) -> Any:
        height, speed = x[0] + 1.0, x[1]
        for k in range(turns):
            speed = speed - 0.981 * (1 + 0.1 * np.sin(0.1 * k))
            height = height + 0.1 * speed
            if height < 0:
                height, speed = -0.95 * height, -0.95 * speed + 0.3 * x[2]
        return height * speed

    joined: list[int] = []

    def noted(guards: Any) -> Any:
        found = joint_guards(guards)
        joined.append(len(found))
        return found

    monkeypatch.setattr(specialize, "joint_guards", noted)
    compiled = nb.jit(nb.value_and_grad(drop))
    for shift in (0.0, 1e-9, 0.2, -0.3, 0.2, 0.0):
        x = U + shift
        with monkeypatch.context() as patch:
            patch.setenv("NBGRAD_ROLL", "0")
            patch.setenv("NBGRAD_DISABLE_JIT", "1")
            expected = nb.value_and_grad(drop)(x)
        value, gradient = compiled(x)
        np.testing.assert_allclose(value, expected[0], rtol=1e-9)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-9, atol=1e-12)
    assert len(joined) == 3 and max(joined) <= 4, joined


def test_what_a_side_does_only_where_it_is_taken_needs_no_values_of_other_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Square roots and logarithms of numbers that are negative in turns that do not take them."""

    def f(x: Any, w: Any) -> Any:
        total, y = 0.0, x
        for k in range(200):
            if k % 7 in (1, 2) or k % 11 == 3:
                y = y - 1.5
                total = total + w * y
            elif k % 5 == 1 or k % 13 == 4:
                y = abs(y) + 0.1
                total = total + np.sqrt(y) * w + np.log(y) * w
            else:
                total = total + 0.1 * y
            y = y * 0.99 + 0.01 * w
        return total

    derived = {
        "reverse": lambda: nb.value_and_grad(f, (0, 1))(0.3, 2.0),
        "forward": lambda: nb.jvp(f, (0.3, 2.0), (1.0, 1.0)),
        "both": lambda: nb.jvp(nb.grad(f, (0, 1)), (0.3, 2.0), (1.0, 1.0)),
    }
    found = {name: one() for name, one in derived.items()}
    arguments = [placeholder((), np.dtype(float), np.array(value)) for value in (0.3, 2.0)]
    with recording(arguments, rolls=strides_of) as trace:
        outputs = nodes_in(f(*map(Tensor._of, arguments)))
        roll_up(trace, outputs, arguments)
    assert sum(node.primitive is LOOP for node in by_serial(outputs)) == 1
    monkeypatch.setenv("NBGRAD_ROLL", "0")
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    for name, one in derived.items():
        for value, other in zip(optree.tree_leaves(found[name]), optree.tree_leaves(one()), strict=True):
            np.testing.assert_allclose(value, other, rtol=1e-11)


def test_later_calls_with_other_numbers_are_right() -> None:
    """The same program serves numbers that differ, equal ones that become different, and the reverse."""

    def walk(x: Any, steps: Any) -> Any:
        for step in steps:
            x = np.sin(x) + step * x
        return np.sum(x)

    for steps in ([0.1] * 200, [0.2] * 200, list(np.linspace(0, 1, 200)), [0.1] * 100 + [0.3] * 100, [0.2] * 200):
        slope = walk(U + 1e-30j * np.array([1.0, 0.0, 0.0]), steps).imag / 1e-30
        np.testing.assert_allclose(nb.grad(walk)(U, steps)[0], slope, rtol=1e-10)


def test_values_that_are_kept_from_the_middle_stay_right() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        for k in range(200):
            x = np.cos(x) * 0.9 + 0.1
            if k in (50, 120, 199):
                kept.append(x)
        return kept[-3] * kept[-2] * kept[-1]

    step = 1e-30
    value, slope = nb.value_and_grad(f)(0.4)
    np.testing.assert_allclose(slope, f(0.4 + 1j * step).imag / step, rtol=1e-12)
    np.testing.assert_allclose(value, f(0.4), rtol=1e-14)


def test_aux_of_a_loop_comes_from_the_same_loop() -> None:
    def f(x: Any) -> Any:
        out = []
        for _ in range(200):
            x = np.sin(x) + 0.1
            out.append(x)
        return np.sum(x), np.stack(out)

    gradient, aux = nb.grad(f, has_aux=True)(U)
    np.testing.assert_allclose(aux[0], f(U)[1], rtol=1e-14)
    slope = [f(U + 1e-30j * unit)[0].imag / 1e-30 for unit in np.eye(3)]
    np.testing.assert_allclose(gradient, slope, rtol=1e-12)


def test_parameters_and_cells_are_rolled() -> None:
    class Net(nb.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = nb.Parameter(np.array([0.5, -0.3, 0.8]), name="w")

        def construct(self, x: Any) -> Any:
            for _ in range(100):
                x = nb.ops.tanh(x * self.w) + 0.1 * x
            return x.sum()

    net = Net()
    found = nb.grad(net, None, net.trainable_params())(nb.Tensor(U))[0].asnumpy()
    for k in range(3):
        w = np.array([0.5, -0.3, 0.8], complex)
        w[k] += 1e-30j
        x = U.astype(complex)
        for _ in range(100):
            x = np.tanh(x * w) + 0.1 * x
        np.testing.assert_allclose(found[k], x.sum().imag / 1e-30, rtol=1e-12)


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_ROLL", "0")
    _, outputs = recorded(PROGRAMS["runge_kutta"][0], strides_of)
    assert not any(node.primitive is LOOP for node in by_serial(outputs))


def test_an_infinite_slope_of_a_value_that_nothing_reads_does_not_count() -> None:
    """The last square root is that of zero, and is not used; so is the first, of a constant."""

    def backwards(x: Any) -> Any:
        a, b, total = x, 0.0 * x, 0.0
        for _ in range(100):
            total = total + b
            b = np.sqrt(a)
            a = a - 1.0
        return total

    expected = np.sum(0.5 / np.sqrt(np.arange(1, 100)))
    for transform in (nb.grad, nb.jacfwd, lambda f: nb.jit(nb.grad(f))):
        np.testing.assert_allclose(transform(backwards)(99.0), expected, rtol=1e-13)

    def forwards(x: Any) -> Any:
        s = nb.numpy.zeros(3)
        for _ in range(100):
            s = np.sqrt(s) * 0.5 + x
        return np.sum(s)

    unit = np.array([1.0, 0.0, 0.0])
    s, slope = np.zeros(3), np.zeros(3)
    for k in range(100):
        slope = unit + (0.25 * slope / np.sqrt(s) if k else 0.0)
        s = np.sqrt(s) * 0.5 + np.ones(3)
    for found in (nb.jvp(forwards, np.ones(3), unit)[1], nb.grad(forwards)(np.ones(3)) @ unit):
        np.testing.assert_allclose(found, np.sum(slope), rtol=1e-13)


def test_only_the_last_of_all_results_is_read() -> None:
    def f(x: Any) -> Any:
        out = []
        for k in range(100):
            out.append(np.sqrt(x * (99 - k) * (k - 50) * (k - 50)))
            x = x + 0.0
        return np.stack(out)[98]

    np.testing.assert_allclose(nb.grad(f)(4.0), 0.5 / 2 * 48, rtol=1e-13)


def test_a_few_large_arrays_that_are_kept_take_no_more_memory_than_they_are() -> None:
    """Not an array of every turn: the loop ends where something is kept, and goes on."""

    def simulated(x: Any) -> Any:
        kept = []
        for k in range(200):
            x = x + 0.1 * (np.roll(x, 1, 0) - x)
            if k % 50 == 49:
                kept.append(x)
        return kept

    start = np.random.default_rng(0).normal(size=(128, 128))
    argument = placeholder(start.shape, start.dtype, start)
    with recording([argument]):
        outputs = nodes_in(simulated(Tensor._of(argument)))
    expected = simulated(start)
    roll(outputs, [argument], strides_of)
    order = by_serial(outputs)
    assert len([node for node in order if node.primitive is LOOP]) >= 4
    assert all(node.size <= 128 * 128 for node in order)
    for value, other in zip(interpret(outputs), expected, strict=True):
        np.testing.assert_array_equal(value, other)


def test_what_only_the_last_turn_gives_takes_no_more_memory_than_it_is() -> None:
    def simulated(x: Any) -> Any:
        y = x
        for _ in range(200):
            y = np.tanh(x)
            x = x + 0.1 * (np.roll(y, 1) - y)
        return [x, y]

    start = np.random.default_rng(0).normal(size=16)
    argument = placeholder(start.shape, start.dtype, start)
    with recording([argument]):
        outputs = nodes_in(simulated(Tensor._of(argument)))
    roll(outputs, [argument], strides_of)
    order = by_serial(outputs)
    assert LOOP in [node.primitive for node in order] and all(node.size <= start.size for node in order)
    for value, other in zip(interpret(outputs), simulated(start), strict=True):
        np.testing.assert_array_equal(value, other)


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_windows_that_overlap(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copied side by side before the loop, or read out of the array in each turn."""
    monkeypatch.setattr("nbgrad.graph.loops.turn_graph.MOST_GATHERED", most)
    signal = np.random.default_rng(1).normal(size=120)

    def filtered(x: Any, taps: Any) -> Any:
        total = 0.0
        for k in range(100):
            total = np.tanh(0.5 * total + x[k : k + 7] @ taps)
        return total

    taps = np.linspace(0.1, 0.5, 7)
    slopes = nb.grad(filtered, (0, 1))(signal, taps)
    for found, other, place in ((slopes[0], signal, 0), (slopes[1], taps, 1)):
        for k in (0, 3, other.size - 1):
            moved = [signal.astype(complex), taps.astype(complex)]
            moved[place][k] += 1e-30j
            np.testing.assert_allclose(found[k], filtered(*moved).imag / 1e-30, rtol=1e-10, atol=1e-18)


def test_a_users_rule_inside_a_loop_is_asked_at_each_call() -> None:
    """The same graph with another rule is not mistaken for it, un-jitted and jitted."""

    def stepped(factor: float) -> Callable[..., Any]:
        @nb.custom_vjp
        def step(x: Any) -> Any:
            return np.sin(x)

        step.defvjp(lambda x: (np.sin(x), x), lambda x, g: (factor * g,))

        def f(x: Any) -> Any:
            for _ in range(100):
                x = step(x) + 0.1 * x
            return x

        return f

    for factor in (0.5, 0.7, 0.5):
        for transform in (nb.grad, lambda f: nb.jit(nb.grad(f))):
            np.testing.assert_allclose(transform(stepped(factor))(0.3), (factor + 0.1) ** 100, rtol=1e-12)


def test_an_array_that_is_filled_is_not_kept_for_every_turn() -> None:
    turns = 400

    def filled(w: Any) -> Any:
        x = xp.zeros(turns)
        x[0] = w
        for k in range(1, turns):
            x[k] = 0.5 * np.sin(x[k - 1]) + w * 0.1
        return np.sum(x * x)

    gradient = nb.jit(nb.grad(filled))
    h = 1e-30
    z = [0.8 + h * 1j]
    for _ in range(1, turns):
        z.append(0.5 * np.sin(z[-1]) + (0.8 + h * 1j) * 0.1)
    np.testing.assert_allclose(gradient(0.8), np.sum(np.square(z)).imag / h, rtol=1e-12)
    assert gradient.programs()[0].plan.arena_bytes < 20 * 8 * turns


def test_elements_of_short_arguments_belong_to_no_turn() -> None:
    """A loop has all turns, although its first one is the first to read them."""
    _, outputs = recorded(lambda u, p: _steps(u, p, 50), strides_of)
    loops = [node for node in by_serial(outputs) if node.primitive is LOOP]
    assert [turns_of(loop) for loop in loops] == [50]


def _steps(u: Any, p: Any, turns: int) -> Any:
    for _ in range(turns):
        u = u + 0.1 * (p[0] * np.sin(u) - p[1] * u) + p[2] * 0.01
    return u


def _with_recordings_inside() -> dict[str, Callable[[Any], Any]]:
    mapped, again = nb.vmap(lambda t: np.sin(t) * t + 0.1), nb.checkpoint(lambda t: np.sin(t) * t + 0.1)
    slopes = nb.jacrev(lambda t: np.sin(t) * t)
    return {
        "vmap": mapped,
        "checkpoint": again,
        "a Jacobian": lambda x: x - 0.1 * slopes(x) @ x,
        "apply_along_axis": lambda x: np.apply_along_axis(lambda r: np.cumsum(r) * 0.3 + 0.1 * r, 0, x),
        "while_loop": lambda x: nb.while_loop(lambda s: np.sum(s) > 1.5, lambda s: s * 0.9, np.sin(x) + 1.0),
        "elements of an inner argument": nb.grad(lambda p: p[0] * np.sin(p[1]) + np.cos(p[2]) * p[1]),
        "elements of a copy": lambda x: np.cos(x) * x.copy()[0] + x.copy()[1] * 0.1,
        "a view in the order of memory": lambda x: np.outer(x, U).T.ravel(order="K")[:3],
    }


@pytest.mark.parametrize("name", _with_recordings_inside())
def test_what_stands_for_values_of_recordings_inside_is_no_part_of_a_loop(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = _with_recordings_inside()[name]

    def total(x: Any) -> Any:
        for _ in range(60):
            x = 0.6 * turn(x) + np.cos(x) * 0.3
        return np.sum(x)

    with monkeypatch.context() as patch:
        patch.setattr(ir, "OFTEN", 15)
        patch.setattr(window, "FIRST", 300)
        found = nb.grad(total)(U), nb.jvp(total, (U,), (P,))[1]
    monkeypatch.setenv("NBGRAD_ROLL", "0")
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    expected = nb.grad(total)(U), nb.jvp(total, (U,), (P,))[1]
    for value, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("turns", "period"), [(300, 10), pytest.param(9000, 70, marks=pytest.mark.slow)])
def test_a_loop_of_loops_carries_none_of_them(turns: int, period: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an inner loop gives is read in its own turn of the outer one, wherever that begins."""

    def total(x: Any) -> Any:
        y = x * P
        for k in range(turns, 0, -1):
            y = 0.7 * (y - x[::-1]) + 0.01
            if k % period == 0:
                y = 0.7 * y / (1 + np.concatenate([y[1:], y[:1]]) ** 2) + 0.01
        return np.sum(y * y)

    if turns < 1000:
        monkeypatch.setattr(ir, "OFTEN", 15)
        monkeypatch.setattr(window, "FIRST", 100)
        for module in (repetition, alignment, rolling, window):
            monkeypatch.setattr(module, "LEAST_NODES", 24)
    step = 1e-6 * P
    expected = (total(U + step) - total(U - step)) / 2e-6
    np.testing.assert_allclose(nb.grad(total)(U) @ P, expected, rtol=1e-7)


@pytest.mark.parametrize("kept", [64, 1 << 24])
def test_data_of_later_turns_is_that_of_these_turns(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the recording goes on, when a branch asks for a value, and in loops that stay apart."""
    monkeypatch.setattr(ir, "OFTEN", 15)
    monkeypatch.setattr(window, "FIRST", 300)
    for module in (growth, rolling):
        monkeypatch.setattr(module, "MOST_KEPT", kept)
    data = np.random.default_rng(2).normal(size=(400, 3))

    def total(u: Any, data: Any) -> Any:
        kept, seen = [], []
        for k in range(300):
            u = 0.9 * u + 0.1 * np.sin(data[k]) * u[::-1] + 0.01 * data[399 - k]
            if k % 90 == 50:
                kept.append(u)
            if k == 200:
                seen.append(float(nb.stop_gradient(u)[0]))
        return sum(np.sum(value) for value in [*kept, u]), seen

    (value, seen), (slope, by_data) = nb.value_and_grad(total, (0, 1), has_aux=True)(U, data)
    np.testing.assert_allclose(value, total(U, data)[0], rtol=1e-12)
    np.testing.assert_allclose(seen, total(U, data)[1], rtol=1e-12)
    h = 1e-6
    np.testing.assert_allclose(np.sum(slope), (total(U + h, data)[0] - total(U - h, data)[0]) / (2 * h), rtol=1e-7)
    moved = (total(U, data + h)[0] - total(U, data - h)[0]) / (2 * h)
    np.testing.assert_allclose(np.sum(by_data), moved, rtol=1e-7)


def test_a_loop_inside_shares_no_nodes_with_what_is_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks of positions are made of numbers: the inner loop has its own, and those of the outer turns may change."""
    monkeypatch.setattr(ir, "OFTEN", 15)
    monkeypatch.setattr(window, "FIRST", 200)
    for module in (repetition, alignment, rolling, window):
        monkeypatch.setattr(module, "LEAST_NODES", 24)

    def filled(u: Any, p: Any, zeros: Any = xp.zeros) -> Any:
        w, c = zeros((20, 3)), u
        for k in range(150):
            c = c * 1.0
            c[k % 3] = p[1] * 0.5
            for j in range(12):
                w[j % 20] = p
            c = 0.7 * c * np.maximum(p, 0.1) + 0.01
            c = w[k % 20] * 0.9 + 0.1 * c
        return c

    arguments, outputs = recorded(filled, strides_of)
    found = interpret(outputs, dict(zip(arguments, (U, P), strict=True)))
    np.testing.assert_array_equal(found[0], filled(U, P, np.zeros))
