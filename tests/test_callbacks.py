"""`nb.callback`: functions of plain arrays beside the same functions written for nbgrad, and beside SciPy."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special
from scipy.linalg.lapack import dgtsv

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError, ShapeError

pytestmark = pytest.mark.unoptimized

X, Y = np.array([0.3, -0.7, 1.1]), np.array([1.2, 0.4, -0.5])


def waves(x: Any, y: Any) -> Any:
    """Two results, one of which is a number."""
    return np.sin(x) * y, np.sum(x * y * y)


def waves_vjp(x: Any, y: Any, first: Any, second: Any, g: Any, h: Any) -> Any:
    assert first.shape == x.shape and second.shape == ()
    return g * np.cos(x) * y + h * y * y, g * np.sin(x) + 2 * h * x * y


def waves_jvp(x: Any, y: Any, first: Any, second: Any, s: Any, t: Any) -> Any:
    return np.cos(x) * y * s + np.sin(x) * t, np.sum(y * y * s + 2 * x * y * t)


CALLBACKS = {
    "rules": nb.callback(waves, vjp=waves_vjp, jvp=waves_jvp),
    "rules and shapes": nb.callback(
        waves, vjp=waves_vjp, jvp=waves_jvp, shape=lambda x, y: [x, ((), x.dtype)], threads=2
    ),
    "central differences": nb.callback(waves, differences="central"),
    "central differences by threads": nb.callback(waves, differences="central", threads=2),
    "forward differences": nb.callback(waves, differences="forward"),
}


def of(function: Callable[..., Any]) -> Callable[..., Any]:
    """A number made of both results."""

    def total(x: Any, y: Any) -> Any:
        first, second = function(x * 1.5, y)
        return np.sum(first**2) + np.exp(second)

    return total


@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks_are_differentiated_compiled_and_mapped(name: str) -> None:
    mine, theirs = of(CALLBACKS[name]), of(waves)
    rough = {"rtol": 1e-5 if name == "forward differences" else 1e-8}
    expected = nb.grad(theirs, (0, 1))(X, Y)
    for gradient in (nb.grad(mine, (0, 1)), nb.jit(nb.grad(mine, (0, 1)))):
        np.testing.assert_allclose(gradient(X, Y), expected, **rough)
    np.testing.assert_allclose(nb.jit(mine)(X, Y), theirs(X, Y), rtol=1e-14)
    np.testing.assert_allclose(nb.jacfwd(mine)(X, Y), expected[0], **rough)
    xs, ys = np.stack([X, 2 * X]), np.stack([Y, Y - 1])
    mapped = nb.vmap(nb.grad(mine, (0, 1)))(xs, ys)
    np.testing.assert_allclose(mapped, nb.vmap(nb.grad(theirs, (0, 1)))(xs, ys), **rough)


@pytest.mark.parametrize("inside", [False, True])
def test_derivatives_of_a_function_of_scipys_by_its_order(inside: bool) -> None:
    """Bessel's function by its order, for which there is no formula of elementary functions."""
    order, x = np.array([0.5, 1.5]), np.array([2.0, 3.0])
    bessel = nb.callback(lambda v, x: special.jv(v, x), differences="central", name="jv")
    gradient = nb.grad(lambda v: np.sum(bessel(v, x)))
    step = 1e-5
    expected = (special.jv(order + step, x) - special.jv(order - step, x)) / (2 * step)
    np.testing.assert_allclose((nb.jit(gradient) if inside else gradient)(order), expected, rtol=1e-7)


def test_a_simulator_that_a_command_starts_runs_in_threads() -> None:
    program = "import sys; a, b = map(float, sys.argv[1:]); print(a * b + a ** 3)"

    def simulated(a: float, b: float) -> float:
        found = subprocess.run([sys.executable, "-c", program, str(a), str(b)], capture_output=True, check=True)
        return float(found.stdout)

    simulator = nb.callback(simulated, differences="central", threads=2)
    assert nb.grad(simulator, (0, 1))(2.0, 3.0) == pytest.approx((3.0 + 3 * 4.0, 2.0), rel=1e-8)


def test_threads_work_at_the_same_time() -> None:
    together = threading.Barrier(2, timeout=20)

    def met(x: float) -> float:
        together.wait()
        return 2 * x

    meeting = nb.callback(met, shape=lambda x: x, threads=2)
    np.testing.assert_array_equal(nb.vmap(meeting)(np.array([1.0, 2.0])), [2.0, 4.0])


def test_the_call_that_shows_the_shapes_counts() -> None:
    """Without a shape rule, the first call's result is used, and later ones need no further call for it."""
    calls: list[float] = []

    def counted(x: float) -> float:
        calls.append(float(x))
        return x * 2

    doubled = nb.callback(counted)
    assert doubled(3.0) == 6.0 and calls == [3.0]
    assert doubled(4.0) == 8.0 and calls == [3.0, 4.0]
    compiled = nb.jit(doubled)
    assert compiled(5.0) == 10.0 and compiled(6.0) == 12.0
    assert calls == [3.0, 4.0, 5.0, 6.0]


TURNS: dict[str, Callable[[Any], Any]] = {
    "scan": lambda f: nb.scan(lambda c, x: (f(c, x), c.sum()), X, np.stack([Y, X]), reverse=True)[1],
    "scan of complex values": lambda f: np.abs(
        nb.scan(lambda c, x: (f(c, x), c), X + 1j * Y, np.stack([Y, 1j * X]))[0]
    ),
    "scan of no turns": lambda f: nb.scan(lambda c, x: (f(c, x), c), X, np.zeros((0, 3)))[0],
    "scan in scan": lambda f: nb.scan(lambda c, x: (nb.scan(lambda d, y: (f(d, x * y), d), c, X)[0], c), X, Y)[0],
    "scan in jit in vmap": lambda f: nb.vmap(nb.jit(lambda x: nb.fori_loop(0, 3, lambda i, c: f(c, x), Y)))(X),
    "fori_loop": lambda f: nb.fori_loop(0, 3, lambda i, c: f(c, Y * i), X),
    "while_loop": lambda f: nb.while_loop(lambda c: np.sum(c + f(c, Y)) < 9.0, lambda c: c + f(c, Y) + 2.0, X),
    "map": lambda f: nb.map(lambda row: f(row, Y), np.stack([X, Y])),
    "root": lambda f: nb.solvers.root(lambda y: y + 0.1 * f(y, Y) - 1.0, X).x,
    "quad": lambda f: nb.solvers.quad(lambda t: f(t, 2.0), 0.0, 1.0)[0],
    "lbfgs": lambda f: nb.optim.lbfgs(lambda y: np.sum((y + 0.1 * f(y, Y) - 1.0) ** 2), X).x,
    "solve_ivp": lambda f: nb.solvers.solve_ivp(lambda t, y: -f(y, Y), (0.0, 1.0), X, t_eval=[1.0]).y,
}


@pytest.mark.parametrize("name", TURNS)
def test_shapes_are_known_in_turns_of_loops_and_in_solvers(name: str) -> None:
    def plain(x: Any, y: Any) -> Any:
        return np.sin(x) * y

    def jvp(x: Any, y: Any, z: Any, s: Any, t: Any) -> Any:
        return np.cos(x) * y * s + np.sin(x) * t

    def vjp(x: Any, y: Any, z: Any, g: Any) -> Any:
        return g * np.cos(x) * y, g * np.sin(x)

    hidden = nb.callback(plain, vjp=vjp, jvp=jvp, name=name)
    np.testing.assert_allclose(TURNS[name](hidden), TURNS[name](plain), rtol=1e-6, atol=1e-12)


def test_keyword_arguments_and_integers() -> None:
    def powers(x: Any, k: Any, scale: float = 1.0) -> Any:
        return scale * x**k

    raised = nb.callback(powers, vjp=lambda x, k, out, g, scale=1.0: g * scale * k * x ** (k - 1))
    gradient = nb.grad(lambda x: np.sum(raised(x, np.array([2, 3, 1]), scale=2.0)))(X)
    np.testing.assert_allclose(gradient, [4 * X[0], 6 * X[1] ** 2, 2.0])


def test_a_decorator_and_empty_arrays() -> None:
    @nb.callback(differences="central")
    def squared(x: Any) -> Any:
        """The squares."""
        return x * x

    assert squared.__name__ == "squared" and squared.__doc__ == "The squares."
    assert nb.grad(lambda x: np.sum(squared(x)))(np.zeros(0)).shape == (0,)
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(squared(x)))(np.float32([1, 2])), [2, 4], rtol=1e-3)


def system(low: Any, main: Any, right: Any) -> Any:
    return dgtsv(low, main, low, right)[3]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"vjp": lambda *a: a[0]}, ShapeError, "the vjp of system has returned 1 gradients, but 3 are needed"),
        ({"vjp": lambda *a: (a[0][:1], a[1], a[2])}, ShapeError, r"gradient 0 of shape \(1,\), but \(2,\) is needed"),
        ({"vjp": lambda *a: (1j * a[0], a[1], a[2])}, DtypeError, "gradient 0 of complex128, but float64 is needed"),
        ({}, ArgumentError, r"system has no vjp, but its gradient .* Give nb.callback\(..., vjp=...\): .* returns the"),
        ({"differences": "both"}, ArgumentError, 'must be "central" or "forward"'),
        ({"differences": "central", "step": -1.0}, ArgumentError, "step of nb.callback must be a positive number"),
        ({"threads": 0}, ArgumentError, "threads of nb.callback must be a positive integer"),
        ({"vjp": 3}, DtypeError, "vjp of nb.callback must be a function, but is an int"),
    ],
)
def test_misuse_is_an_error_with_the_name(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        solve = nb.callback(system, **given)
        nb.grad(lambda m: np.sum(solve(np.ones(2), m, np.ones(3))))(np.full(3, 4.0))


def test_results_that_do_not_fit_are_errors() -> None:
    changing = nb.callback(lambda x: np.zeros(len(x) if x[0] > 0 else 1), name="changing")
    compiled = nb.jit(changing)
    compiled(X)
    with pytest.raises(ShapeError, match=r"changing has returned result 0 of shape \(1,\), but \(3,\) is needed"):
        compiled(-X)
    with pytest.raises(DtypeError, match=r"words has returned a .*str.*, but must return an array or number"):
        nb.callback(lambda x: "three", name="words")(X)
    with pytest.raises(DtypeError, match="the vjp of conjugate by differences is for real arguments"):
        conjugate = nb.callback(np.conj, differences="central", name="conjugate")
        nb.grad(lambda z: np.sum(np.real(conjugate(z))))(1j * X)
