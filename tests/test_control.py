"""`while_loop`, `cond`, `switch` and `associative_scan`: values and slopes against NumPy, complex steps, known sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized(but=16)

# ----- while_loop -----


def newton(a: Any) -> Any:
    return nb.while_loop(lambda x: abs(x * x - a) > 1e-13 * a, lambda x: 0.5 * (x + a / x), a)


@pytest.mark.parametrize("transform", [lambda f: f, nb.jit])
def test_newtons_iteration_and_its_slope(transform: Callable[..., Any]) -> None:
    value, slope = transform(newton), transform(nb.grad(newton))
    for a in (2.0, 3.0, 1e4, 0.5, 1.0, 2.0):
        np.testing.assert_allclose(value(a), math.sqrt(a), rtol=1e-12)
        if a != 1.0:  # there it has no turn: the value is the argument itself
            np.testing.assert_allclose(slope(a), 0.5 / math.sqrt(a), rtol=1e-9)
    assert nb.grad(newton)(1.0) == 1.0


def test_another_number_of_turns_compiles_nothing() -> None:
    halved = nb.jit(
        nb.grad(lambda x: nb.while_loop(lambda s: s[0] > 1.0, lambda s: (s[0] * 0.5, s[1] + s[0] ** 2), (x, 0.0))[1])
    )
    halved(10.0)
    halved(100.0)
    before = nb.counters["compiled"]
    for x in (5e3, 3.0, 1e6, 17.0):
        turns = math.ceil(math.log2(x))
        np.testing.assert_allclose(halved(x), 2 * x * sum(0.25**k for k in range(turns)), rtol=1e-13)
    assert nb.counters["compiled"] == before


def test_many_turns_are_counted() -> None:
    state = nb.while_loop(
        lambda s: s["k"] < 100_000, lambda s: {"k": s["k"] + 1, "x": s["x"] * 1.00001}, {"k": 0, "x": 1.0}
    )
    assert state["k"] == 100_000
    np.testing.assert_allclose(state["x"], 1.00001**100_000, rtol=1e-9)


def test_a_while_loop_uses_values_from_outside_and_second_derivatives() -> None:
    def decay(rate: Any) -> Any:
        return nb.while_loop(lambda s: s[1] < 5, lambda s: (s[0] * np.exp(-rate), s[1] + 1), (1.0, 0))[0]

    rate = 0.3
    np.testing.assert_allclose(decay(rate), math.exp(-5 * rate))
    np.testing.assert_allclose(nb.grad(decay)(rate), -5 * math.exp(-5 * rate))
    np.testing.assert_allclose(nb.grad(nb.grad(decay))(rate), 25 * math.exp(-5 * rate))
    np.testing.assert_allclose(nb.jvp(decay, rate, 2.0)[1], -10 * math.exp(-5 * rate))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nb.while_loop(lambda x: x, lambda x: x, 1.0), "truth value"),
        (lambda: nb.while_loop(lambda x: x > 0, lambda x: x, np.ones(3)), r"\[\(3,\)\]"),
        (lambda: nb.while_loop(lambda x: x > 0, lambda x: np.append(x, x), np.ones(1)), "shape"),
        (lambda: nb.while_loop(3, lambda x: x, 1.0), "while_loop"),
    ],
)
def test_while_loops_that_cannot_be(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(nb.errors.NbgradError, match=message):
        call()


def test_an_interrupt_ends_a_loop_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from nbgrad.control import while_loops

    seen: list[int] = []
    made = while_loops._until

    def counted(*arguments: Any) -> Any:
        seen.append(arguments[4])
        if len(seen) > 3:
            raise KeyboardInterrupt
        return made(*arguments)

    monkeypatch.setattr(while_loops, "_until", counted)
    with pytest.raises(KeyboardInterrupt):
        nb.while_loop(lambda x: x > 0, lambda x: x, 1.0)
    assert seen == sorted(seen)
    monkeypatch.undo()
    np.testing.assert_allclose(newton(2.0), math.sqrt(2))


ROOTS = np.arange(1.0, 2000.0, 97.0)


def roots_of_many(a: Any) -> Any:
    """In `vmap`."""
    return np.sum(nb.vmap(lambda x: newton(a * x))(ROOTS))


def roots_in_turns(a: Any) -> Any:
    """In the turns of a scan, whose numbers of turns differ."""
    return nb.scan(lambda total, x: (total + newton(a * x), None), 0.0, ROOTS)[0]


def roots_in_a_while(a: Any) -> Any:
    """In the turns of another loop that ends by a value."""
    following = nb.while_loop(lambda s: s[1] < 2000.0, lambda s: (s[0] + newton(a * s[1]), s[1] + 97.0), (0.0 * a, 1.0))
    return following[0]


def roots_of_many_in_turns(a: Any) -> Any:
    """In `vmap` in the turns of a scan."""
    rows = ROOTS.reshape(-1, 3)
    return nb.scan(lambda total, row: (total + np.sum(nb.vmap(lambda x: newton(a * x))(row)), None), 0.0, rows)[0]


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("function", [roots_of_many, roots_in_turns, roots_in_a_while, roots_of_many_in_turns])
@pytest.mark.parametrize("transform", [lambda f: f, nb.jit, lambda f: lambda a: nb.vmap(f)(np.array([a, 3.0]))[0]])
def test_loops_that_end_by_a_value_inside_others(function: Callable[..., Any], transform: Callable[..., Any]) -> None:
    value, slope = transform(function), transform(nb.grad(function))
    for a in (2.0, 1.5, 5e4, 0.3):
        np.testing.assert_allclose(value(a), np.sum(np.sqrt(a * ROOTS)), rtol=1e-10)
        np.testing.assert_allclose(slope(a), np.sum(np.sqrt(ROOTS / a)) / 2, rtol=1e-9)
        np.testing.assert_allclose(nb.jvp(function, a, 1.0)[1], np.sum(np.sqrt(ROOTS / a)) / 2, rtol=1e-9)


def test_few_specializations_serve_all_numbers_of_turns() -> None:
    recorded: list[int] = []

    def count(x: Any) -> Any:
        recorded.append(1)
        return nb.while_loop(lambda s: s[0] > 1.0, lambda s: (s[0] - 1.0, s[1] + x), (x, 0.0))[1]

    total = nb.jit(count)
    for x in np.arange(400, 0, -1) + 0.5:
        assert total(x) == x * np.floor(x)
    assert len(recorded) <= 9


def test_a_turn_after_the_end_is_never_seen() -> None:
    """At their ends, the values divide by zero and read before the array."""
    table = nb.Tensor(np.array([3.0, 5.0, 7.0]))

    def product(n: Any, x: Any) -> Any:
        return nb.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, s[1] * table[s[0] - 1] * x / s[0]), (n, 1.0))[1]

    counts = np.array([0, 1, 3, 2])
    expected = [1.0, 3.0 * 2, 105.0 * 8 / 6, 15.0 * 4 / 2]
    np.testing.assert_allclose(nb.vmap(product, (0, None))(counts, 2.0), expected)
    slopes = nb.vmap(nb.grad(product, 1), (0, None))(counts, 2.0)
    np.testing.assert_allclose(slopes, [0.0, 3.0, 105.0 * 3 * 4 / 6, 15.0 * 2 * 2 / 2])
    for n, value in zip(counts, expected, strict=True):
        np.testing.assert_allclose(nb.jit(product)(n, 2.0), value)


# ----- cond and switch -----


def safe_root(x: Any) -> Any:
    return nb.cond(x > 0, lambda x: np.sqrt(x), lambda x: 0.0 * x, x)


WAYS: dict[str, Callable[..., Any]] = {
    "as it is": lambda f, x: f(x),
    "jit": lambda f, x: nb.jit(f)(x),
    "vmap": lambda f, x: nb.vmap(f)(np.array([x, x]))[0],
    "scan": lambda f, x: nb.scan(lambda c, _: (c, f(c)), x, length=1)[1][0],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_branch_that_is_not_taken_has_no_slope(way: str) -> None:
    for x, value, slope in ((4.0, 2.0, 0.25), (-4.0, 0.0, 0.0), (0.0, 0.0, 0.0)):
        np.testing.assert_allclose(WAYS[way](safe_root, x), value, atol=0)
        np.testing.assert_allclose(WAYS[way](nb.grad(safe_root), x), slope, atol=0)


@pytest.mark.parametrize("way", ["as it is", "jit", "vmap"])
def test_a_function_is_chosen_by_its_position(way: str) -> None:
    functions = [np.sin, np.exp, np.square]
    for index, chosen in ((-3, 0), (0, 0), (1, 1), (2, 2), (9, 2)):
        if way == "vmap":
            found = nb.vmap(lambda k, x: nb.switch(k, functions, x))(np.array([index, 0]), np.array([0.7, 0.2]))[0]
        else:
            call = (
                (lambda k, x: nb.switch(k, functions, x))
                if way == "as it is"
                else nb.jit(lambda k, x: nb.switch(k, functions, x))
            )
            found = call(np.array(index), 0.7)
        np.testing.assert_allclose(found, functions[chosen](0.7), rtol=1e-15)


def test_a_branch_in_a_loop_with_several_results() -> None:
    def step(x: Any, up: Any) -> Any:
        x, size = nb.cond(up, lambda x: (x * 2.0, x), lambda x: (x - 1.0, -x), x)
        return x, size

    ups = np.array([True, False, True, True])
    last, sizes = nb.scan(step, 3.0, ups)
    np.testing.assert_array_equal(sizes, [3.0, -6.0, 5.0, 10.0])
    assert last == 20.0
    assert nb.grad(lambda x: nb.scan(step, x, ups)[0])(3.0) == 8.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nb.cond(np.array([True, False]), np.sin, np.cos, 1.0), "one value"),
        (lambda: nb.jit(lambda p: nb.cond(p > 0, lambda: np.ones(2), lambda: np.ones(3)))(1.0), "must give the same"),
        (lambda: nb.switch(0, []), "at least one"),
        (lambda: nb.switch(0.5, [np.sin, np.cos], 1.0), "integer"),
        (lambda: nb.cond(True, 1, np.sin, 1.0), "cond"),
    ],
)
def test_branches_that_cannot_be(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(nb.errors.NbgradError, match=message):
        call()


# ----- associative_scan -----


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_products(count: int, reverse: bool) -> None:
    x = np.random.default_rng(count).uniform(0.5, 1.5, (count, 2))
    expected = np.cumprod(x[::-1], 0)[::-1] if reverse else np.cumprod(x, 0)
    np.testing.assert_allclose(nb.associative_scan(np.multiply, x, reverse=reverse), expected, rtol=1e-14)
    np.testing.assert_allclose(nb.associative_scan(np.multiply, x.T, reverse=reverse, axis=-1), expected.T, rtol=1e-14)


def test_running_products_of_matrices_keep_the_order_of_the_scan() -> None:
    """JAX's docstring: f(f(z, y), x), f(z, y), z from the end."""
    x = np.random.default_rng(1).normal(size=(6, 2, 2))
    found = nb.associative_scan(np.matmul, x)
    back = nb.associative_scan(np.matmul, x, reverse=True)
    for k in range(6):
        np.testing.assert_allclose(found[k], np.linalg.multi_dot([*x[: k + 1], np.eye(2)]), rtol=1e-12)
        np.testing.assert_allclose(back[k], np.linalg.multi_dot([*x[k:][::-1], np.eye(2)]), rtol=1e-12)


def test_a_linear_recurrence_and_its_slope() -> None:
    def recurrence(a: Any, b: Any) -> Any:
        return np.sum(nb.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a, b))[1] ** 2)

    a, b = np.random.default_rng(2).uniform(0.2, 0.9, (2, 9))

    def plain(a: Any, b: Any) -> Any:
        x, total = 0.0, 0.0
        for p, q in zip(a, b, strict=True):
            x = p * x + q
            total = total + x * x
        return total

    slopes = nb.grad(recurrence, (0, 1))(a, b)
    for k in range(9):
        unit = 1e-30j * np.eye(9)[k]
        np.testing.assert_allclose(slopes[0][k], plain(a + unit, b).imag / 1e-30, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(slopes[1][k], plain(a, b + unit).imag / 1e-30, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nb.associative_scan(np.add, (np.ones(3), np.ones(4))), "one length"),
        (lambda: nb.associative_scan(np.add, np.ones(3), axis=1), "axis 1"),
        (lambda: nb.associative_scan(lambda a, b: a[:1], np.ones(4)), "keep the shapes"),
    ],
)
def test_scans_that_cannot_be(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(nb.errors.NbgradError, match=message):
        call()


# ----- MindSpore's names -----


def test_mindspores_loops() -> None:
    """From the examples of its documentation."""
    assert nb.ops.WhileLoop()(lambda x: x < 1e4, lambda x: x * 2.0, 1.0) == 2.0**14
    assert nb.ops.ForiLoop()(0, 4, lambda i, x: x + i, 10) == 16
    last, every = nb.ops.Scan()(lambda total, x: (total + x, total), 0.0, np.array([1.0, 2.0, 3.0]), 3)
    assert last == 6.0
    np.testing.assert_array_equal(every, [0.0, 1.0, 3.0])


def test_turns_that_depend_on_an_argument_of_the_turn_alone_are_counted_again() -> None:
    """The first condition is a constant; the later ones are not."""

    @nb.jit
    def turns(rate: Any) -> Any:
        return nb.while_loop(lambda s: s[0] > 1e-3, lambda s: (s[0] * rate, s[1] + 1), (1.0, 0))[1]

    for rate in (0.5, 0.1, 0.9, 0.5):
        x, count = 1.0, 0
        while x > 1e-3:
            x, count = x * rate, count + 1
        assert turns(rate) == count


def test_truth_values_of_a_turn_are_put_together() -> None:
    def turn(v: Any, shift: Any) -> Any:
        some, every = np.any(v > shift), np.all(v > shift)
        return np.where(some, v * 0.5, v + 1.0), np.where(every, v[0], v[1])

    shifts = np.linspace(0.1, 2.0, 30)
    v, found = np.array([1.5, 0.2, 0.7]), []
    for shift in shifts:
        v, each = turn(v, shift)
        found.append(each)
    last, every = nb.scan(turn, np.array([1.5, 0.2, 0.7]), shifts)
    np.testing.assert_allclose(last, v, rtol=1e-15)
    np.testing.assert_allclose(every, found, rtol=1e-15)


@pytest.mark.parametrize("transform", [lambda f: f, nb.jit])
def test_bounds_of_fori_loop_that_differ_from_value_to_value(transform: Callable[..., Any]) -> None:
    """Factorials, and x^n with its slope; a loop inside of a loop whose turns begin where the other's stand."""
    counts = np.array([5, 2, 0, 1])
    factorial = nb.vmap(lambda n: nb.fori_loop(1, n + 1, lambda i, c: c * i, 1.0))
    np.testing.assert_allclose(transform(factorial)(counts), [120, 2, 1, 1])
    x = np.array([0.5, 1.5, 2.0, 3.0])
    power = nb.vmap(lambda n, x: nb.fori_loop(0, n, lambda _, c: {"c": c["c"] * x}, {"c": 1.0})["c"])
    np.testing.assert_allclose(transform(power)(counts, x), x**counts)
    slopes = transform(nb.grad(lambda x: np.sum(power(counts, x))))
    np.testing.assert_allclose(slopes(x), counts * x ** np.maximum(counts - 1, 0))
    np.testing.assert_allclose(nb.jvp(lambda x: power(counts, x), x, np.ones(4))[1], slopes(x))

    def pairs(x: Any) -> Any:
        """The sum of all x_i x_j with i < j: ((sum x)^2 - sum x^2) / 2."""
        x = nb.numpy.asarray(x)
        inner = lambda j, c: nb.fori_loop(j + 1, 4, lambda i, c: c + x[i] * x[j], c)  # noqa: E731
        return nb.fori_loop(0, 4, inner, 0.0)

    np.testing.assert_allclose(transform(pairs)(x), (np.sum(x) ** 2 - np.sum(x**2)) / 2)
    np.testing.assert_allclose(transform(nb.grad(pairs))(x), np.sum(x) - x)
    scanned = transform(lambda x: nb.scan(lambda c, n: (nb.fori_loop(0, n, lambda i, c: c * x, c), c), 1.0, counts)[0])
    np.testing.assert_allclose(scanned(1.1), 1.1**8)
    with pytest.raises(TypeError, match="counts turns by integers"):
        nb.vmap(lambda n: nb.fori_loop(0, n, lambda i, c: c, 1.0))(x)


def test_jaxs_older_form_of_cond() -> None:
    assert nb.cond(True, lambda x: 2 * x, lambda x: x, operand=3.0) == 6.0
    assert nb.grad(lambda x: nb.cond(x > 1, lambda _: 0.0 * x, lambda _: 5.0 * x, operand=None))(0.5) == 5.0
