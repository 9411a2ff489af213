"""jit: one recording for each signature and branch, the same results, and no compilation that is not needed."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiled.specialization import Specialization
from nbgrad.compiler.cache import counters
from nbgrad.errors import DtypeError, RangeError, TracedValueError
from nbgrad.runtime.cpu_program import MISSED

X = np.random.default_rng(0).normal(size=5)


def counted(fn: Any) -> Any:
    """The function, with the number of times that its Python code ran."""

    def run(*args: Any, **kwargs: Any) -> Any:
        run.calls += 1
        return fn(*args, **kwargs)

    run.calls = 0
    return run


def compiled_kernels() -> int:
    """What was compiled or loaded so far."""
    return counters["compiled"] + counters["loaded"] + counters["numba_compiles"]


# ----- Signatures -----


def test_records_once_per_signature() -> None:
    plain = counted(lambda x, y: np.sin(x) * y)
    f = nb.jit(plain)
    for _ in range(3):
        for x, y in ((X, X), (X[:2], X[:2]), (X.astype(np.float32), np.float32(2)), (2.0, X), (X, 2.0), (1.5, 2.5)):
            got, want = f(x, y), np.sin(x) * y
            assert np.asarray(got).dtype == np.asarray(want).dtype
            np.testing.assert_allclose(got, want, rtol=1e-6 if got.dtype == np.float32 else 1e-15)
    assert plain.calls == f.compiled_signatures == 6


def test_python_floats_are_runtime_inputs() -> None:
    plain = counted(lambda x, a: x * a + a)
    f = nb.jit(plain)
    for a in (0.0, 1.0, 2.5, np.inf, -0.0):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(f(X, a), X * a + a)
    assert plain.calls == 1
    single = X.astype(np.float32)
    assert f(single, 2.5).dtype == np.float32  # a Python float does not widen
    assert f(single, np.float64(2.5)).dtype == np.float64


def test_other_values_are_part_of_the_signature() -> None:
    plain = counted(lambda x, n, mode: x**n if mode == "power" else x + n)
    f = nb.jit(plain)
    for n in (2, 3):
        np.testing.assert_allclose(f(X, n, "power"), X**n, rtol=1e-14)
        np.testing.assert_allclose(f(X, n, "add"), X + n, rtol=1e-14)
    assert plain.calls == 4
    np.testing.assert_array_equal(f(X, True, "add"), X + True)  # True is not 1
    assert plain.calls == 5


def test_new_lengths_compile_nothing() -> None:
    f = nb.jit(nb.value_and_grad(lambda x, y: np.sum(np.log(np.exp(x * y) + np.sin(x) ** 2 + 1))))
    f(X, X)
    f(np.ones(40_000), np.ones(40_000))
    before = compiled_kernels()
    for n in (2, 3, 100, 777, 50_000, 123_457):
        x = np.linspace(-1, 1, n)
        value, gradient = f(x, x)
        inner = np.exp(x * x) + np.sin(x) ** 2 + 1
        np.testing.assert_allclose(value, np.log(inner).sum(), rtol=1e-13)
        np.testing.assert_allclose(gradient, (x * np.exp(x * x) + np.sin(2 * x)) / inner, rtol=1e-12, atol=1e-14)
    assert compiled_kernels() == before


def test_gradients_without_jit_compile_nothing_for_new_lengths_either() -> None:
    gradient = nb.grad(lambda x: np.sum(np.exp(x) * x))
    gradient(X)
    before = compiled_kernels()
    for n in (2, 3, 7, 400, 999):
        gradient(np.ones(n))
    assert compiled_kernels() == before


# ----- Arguments and results -----


def test_containers_keywords_and_tensors() -> None:
    def model(params: Any, x: Any, *, scale: Any = 1.0, extra: Any = None) -> Any:
        return {"out": (params["w"] * x + params["b"][0]) * scale, "n": [x, 3]}

    f = nb.jit(model)
    params = {"w": X, "b": [np.float64(2.0)]}
    for scale in (1.0, 4.0):
        got = f(params, X, scale=scale)
        np.testing.assert_allclose(got["out"], (X * X + 2) * scale, rtol=1e-15)
        np.testing.assert_array_equal(got["n"][0], X)
        assert got["n"][1] == 3 and isinstance(got["out"], np.ndarray)
    got = f({"w": nb.Tensor(X), "b": [2.0]}, X)
    assert isinstance(got["out"], nb.Tensor)
    np.testing.assert_allclose(got["out"].asnumpy(), X * X + 2)
    assert f.compiled_signatures == 2


def test_kinds_of_results() -> None:
    total = nb.jit(np.sum)(X)
    assert isinstance(total, np.float64)
    assert isinstance(nb.jit(lambda x: x + 1)(2.0), np.float64)
    assert isinstance(nb.jit(lambda x: x + 1)(np.array(2.0)), np.float64)
    assert isinstance(nb.jit(np.sum)(nb.Tensor(X)), nb.Tensor)
    assert nb.jit(lambda x: x > 0)(X).dtype == np.bool_
    assert nb.jit(lambda x: x > 0)(1.0) is np.True_
    nested = nb.jit(lambda x: ((x, (x + 1,)), x.sum()))(X)
    np.testing.assert_array_equal(nested[0][1][0], X + 1)
    assert isinstance(nested, tuple) and isinstance(nested[0][1], tuple)


def test_outputs_that_are_inputs_constants_or_equal() -> None:
    f = nb.jit(lambda x, y: (x, y, x, np.float64(3.0), 7, "s", None, x * 0 + 1, x * 0 + 1))
    x = X.copy()
    a, b, c, three, seven, text, none, one, again = f(x, 2.0)
    assert (b, three, seven, text, none) == (2.0, 3.0, 7, "s", None)
    a += 1
    one += 1
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(c, X)
    np.testing.assert_array_equal(again, np.ones(5))
    np.testing.assert_array_equal(nb.jit(lambda x: x)(x), X)
    assert nb.jit(lambda x: x)(x) is not x
    np.testing.assert_array_equal(nb.jit(lambda x: x.T)(np.ones((2, 3))), np.ones((3, 2)))
    np.testing.assert_array_equal(nb.jit(lambda x: np.ones(3) * x)(2.0), np.full(3, 2.0))


def test_results_of_two_calls_are_different_arrays() -> None:
    f = nb.jit(lambda x: x * 2)
    first = f(X)
    kept = first.copy()
    f(X + 1)
    np.testing.assert_array_equal(first, kept)
    first[:] = 0
    np.testing.assert_array_equal(f(X), 2 * X)


def test_nothing_leaks() -> None:
    x = X.copy()
    f = nb.jit(lambda x, a: (x * a, (x.sum(), a)))
    for call in (lambda: f(x, 2.0), lambda: f(nb.Tensor(x), 2.0), lambda: nb.grad(np.sum)(x)):
        call()
        before = [sys.getrefcount(thing) for thing in (x, x.dtype, np.ndarray, float)]
        for _ in range(100):
            call()
        after = [sys.getrefcount(thing) for thing in (x, x.dtype, np.ndarray, float)]
        assert max(b - a for a, b in zip(before, after, strict=True)) < 10


def test_methods_and_decorator() -> None:
    class Model:
        def __init__(self, a: float) -> None:
            self.a = a

        @nb.jit
        def scaled(self, x: Any) -> Any:
            return x * self.a

    one, two = Model(2.0), Model(3.0)
    for _ in range(2):
        np.testing.assert_array_equal(one.scaled(X), 2 * X)
        np.testing.assert_array_equal(two.scaled(X), 3 * X)

    @nb.jit
    def documented(x: Any) -> Any:
        """Text."""
        return x

    assert documented.__doc__ == "Text." and documented.__name__ == "documented"
    assert nb.jit(documented) is documented


def test_empty_and_zero_dimensional() -> None:
    f = nb.jit(lambda x: (x * 2, x.sum()))
    for x in (np.zeros(0), np.zeros((3, 0)), np.array(4.0)):
        doubled, total = f(x)
        np.testing.assert_array_equal(doubled, 2 * x)
        assert total == x.sum() and np.shape(doubled) == x.shape


# ----- Guards -----


def test_branches_are_recorded_once_each() -> None:
    def branching(x: Any) -> Any:
        if x.sum() > 0:
            return x * 2
        if x[0] < -5:
            return x * 3
        return -x

    plain = counted(branching)
    f = nb.jit(plain)
    inputs = [np.ones(3), -np.ones(3), np.array([-9.0, 1, 1])]
    for _ in range(3):
        for x in inputs:
            np.testing.assert_array_equal(f(x), branching(x))
    assert plain.calls == 3
    assert f.compiled_signatures == 1


def test_loops_that_depend_on_values() -> None:
    def halvings(x: Any) -> Any:
        n = 0
        while x > 1:
            x = x / 2
            n += 1
        return x, n

    f = nb.jit(halvings)
    for value in (0.5, 3.0, 100.0, 3.0, 7.0, 1e6):
        assert f(value) == halvings(value)


def test_integers_of_values_become_guards() -> None:
    f = nb.jit(lambda x, i: x[int(i)] * 2)
    for i in (0, 3, 0, 4):
        assert f(X, np.int64(i)) == 2 * X[i]


@pytest.mark.parametrize(
    ("asked", "values", "ways"),
    [
        (int, [2.1, 2.7, 2.5, 3.2, 3.0000000000000004], 2),
        (bool, [2.5, -1.0, np.nan, 0.0, -0.0], 2),
        (round, [2.2, 1.9, 2.0], 1),
        (lambda x: bool(np.int64(3) * np.sum(x > np.arange(5.0))), [2.5, 0.5, 4.5, -1.0], 2),
        (lambda x: bool(x * 1j), [2.5, 0.0, 1.0], 2),
    ],
)
def test_a_guard_is_about_what_python_gets(asked: Any, values: list[float], ways: int) -> None:
    plain = counted(lambda x: x * 10 + float(asked(x)))
    f = nb.jit(plain)
    for x in values:
        np.testing.assert_allclose(f(x), x * 10 + float(asked(np.float64(x))), rtol=1e-14)
    assert plain.calls == ways


def test_a_condition_that_rounding_decides_takes_the_recorded_way() -> None:
    def settled(x: Any) -> Any:
        for _ in range(200):
            new = np.exp(-x) * x**0.5
            if new == x:
                break
            x = new
        return x

    f = nb.jit(settled)
    for x in np.linspace(0.5, 2.0, 30):
        np.testing.assert_allclose(f(x), settled(x), rtol=1e-14)


def test_a_call_that_no_guard_fits_takes_the_recorded_way() -> None:
    signs = itertools.cycle([1.0, -1.0])
    sign = nb.callback(lambda x: next(signs) * x, shape=lambda x: x)

    def moved(x: Any, y: Any) -> Any:
        x += 1.0
        return 2 * y if sign(y) > 0 else 3 * y

    f = nb.jit(moved)
    x, out = np.zeros(2), np.zeros(())
    for k in range(1, 4):
        assert f(x, 1.0) == 2.0
        np.testing.assert_array_equal(x, k)
    f(x, 1.0, out=out)
    assert out == 2.0


def test_a_needed_float_is_an_error_that_leaves_it_usable() -> None:
    f = nb.jit(lambda x, mode: x * float(x.sum()) if mode else x + 1)
    for _ in range(2):
        with pytest.raises(TracedValueError):
            f(X, True)
        np.testing.assert_array_equal(f(X, False), X + 1)


def test_exceptions_leave_it_usable() -> None:
    def broken(x: Any) -> Any:
        if x.ndim == 2:
            message = "two axes"
            raise KeyError(message)
        return x + 1

    f = nb.jit(broken)
    for _ in range(2):
        with pytest.raises(KeyError, match="two axes"):
            f(np.ones((2, 2)))
        np.testing.assert_array_equal(f(X), X + 1)
    np.testing.assert_array_equal(nb.grad(f)(X), np.ones(5))


def test_an_index_out_of_range_is_found_at_run_time() -> None:
    f = nb.jit(lambda x, i: x[i])
    np.testing.assert_array_equal(f(X, np.array([0, -1])), X[[0, -1]])
    for bad in ([0, 5], [-6, 0]):
        with pytest.raises(RangeError):
            f(X, np.array(bad))
        with pytest.raises(IndexError):
            f(X, np.array(bad))
    np.testing.assert_array_equal(f(X, np.array([4, 1])), X[[4, 1]])


# ----- With other transforms -----


def test_jit_in_grad_and_grad_in_jit() -> None:
    square = nb.jit(lambda x: np.sum(x**2 * 3))
    np.testing.assert_allclose(nb.grad(square)(X), 6 * X, rtol=1e-15)
    np.testing.assert_allclose(nb.jit(nb.grad(square))(X), 6 * X, rtol=1e-15)
    np.testing.assert_allclose(nb.grad(lambda x: nb.jit(nb.grad(square))(x).sum())(X), np.full(5, 6.0), rtol=1e-15)
    np.testing.assert_allclose(nb.jit(nb.hessian(square))(X), 6 * np.eye(5), rtol=1e-15)
    np.testing.assert_allclose(nb.jit(lambda x: nb.jvp(square, x, x)[1])(X), 6 * X @ X, rtol=1e-14)
    value, (gx, gy) = nb.jit(nb.value_and_grad(lambda x, y: np.sum(x * y), (0, 1)))(X, 2 * X)
    np.testing.assert_allclose(value, 2 * X @ X, rtol=1e-15)
    np.testing.assert_array_equal(gx, 2 * X)
    np.testing.assert_array_equal(gy, X)


def test_guards_inside_gradients() -> None:
    gradient = nb.jit(nb.grad(lambda x: np.sum(x**2) if x[0] > 0 else np.sum(5 * x)))
    for _ in range(2):
        np.testing.assert_array_equal(gradient(np.ones(2)), [2.0, 2.0])
        np.testing.assert_array_equal(gradient(-np.ones(2)), [5.0, 5.0])


def test_captured_arrays_are_frozen_when_recorded() -> None:
    captured = np.ones(5)
    f = nb.jit(lambda x: x + captured)
    f(X)
    captured[:] = 100
    np.testing.assert_array_equal(f(X), X + 1)


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    before = compiled_kernels()
    f = nb.jit(nb.value_and_grad(lambda x: np.sum(x**3) if x[0] > -10 else x.sum()))
    for _ in range(2):
        value, gradient = f(X)
        np.testing.assert_allclose(value, np.sum(X**3))
        np.testing.assert_allclose(gradient, 3 * X**2)
    np.testing.assert_array_equal(nb.grad(np.sum)(X), np.ones(5))
    assert compiled_kernels() == before


def test_compiled_after_and_before_the_compiler_was_off(monkeypatch: pytest.MonkeyPatch) -> None:
    f = nb.jit(lambda x: x * 2)
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    np.testing.assert_array_equal(f(X), 2 * X)
    monkeypatch.delenv("NBGRAD_DISABLE_JIT")
    np.testing.assert_array_equal(f(X), 2 * X)
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    np.testing.assert_array_equal(f(X), 2 * X)


# ----- Bad input -----


def test_what_jit_refuses() -> None:
    with pytest.raises(DtypeError, match="expects a function"):
        nb.jit(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DtypeError, match="not hashable"):
        nb.jit(lambda x, s: x)(X, {1, 2})
    with pytest.raises(DtypeError, match="complex256"):
        nb.jit(lambda x: x)((X + 1j).astype(np.clongdouble))
    with pytest.raises(DtypeError, match="return"):
        nb.jit(lambda x: None)(X)


def test_jit_of_a_closure_over_what_is_being_differentiated() -> None:
    """The jitted function's own arguments are plain arrays; the derivative comes through its closure."""
    x = np.array([1.0, 2.0, 3.0])
    assert nb.grad(lambda w: nb.jit(lambda x: x * w)(x).sum())(2.0) == 6.0
    assert nb.grad(nb.grad(lambda w: nb.jit(lambda x: x * w**3)(x).sum()))(2.0) == 72.0
    np.testing.assert_array_equal(nb.jvp(lambda w: nb.jit(lambda x: x * w)(x), 2.0, 1.0)[1], x)
    outer = nb.jit(lambda w: nb.jit(lambda x: x * w)(x).sum())
    assert (outer(2.0), outer(5.0)) == (12.0, 30.0)
    branch = nb.jit(lambda w: nb.jit(lambda x: x if w > 0 else -x)(x).sum())
    assert (branch(1.0), branch(-1.0)) == (6.0, -6.0)


def test_mindspores_ways_to_write_it():
    @nb.jit(capture_mode="ast", jit_level="O0")
    def double(x):
        return x * 2

    @nb.jit()
    def triple(x):
        return x * 3

    assert double(np.ones(1)).tolist() == [2.0] and triple(np.ones(1)).tolist() == [3.0]
    assert nb.ms_function(double) is double
    with pytest.raises(TypeError, match="jit has no option nothing"):
        nb.jit(nothing=1)


def test_python_floats_are_arrays_for_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbgrad.config.interpret", lambda: True)
    np.testing.assert_array_equal(nb.jit(lambda one: nb.numpy.arange(4.0) * one)(1.5), np.arange(4.0) * 1.5)


# ----- Conditions at the edge of rounding -----


def at_the_edge(x: Any, edge: Any) -> Any:
    y = x * 2.0
    if y.sum() == edge:
        y = y + 1.0
    return (y * y).sum()


def test_sums_that_round_otherwise_in_the_program() -> None:
    f = nb.jit(at_the_edge)
    for seed in range(12):
        x = np.random.default_rng(seed).normal(size=37).astype(np.float32)
        x -= x.mean()
        edge = np.float32(2) * x.sum()
        found = float(f(x, edge))  # one way or the other, never none
        ways = [float((y * y).sum()) for y in (2.0 * x.astype(float), 2.0 * x.astype(float) + 1.0)]
        assert min(abs(found - way) for way in ways) < 1e-3


def test_a_program_that_disagrees_with_its_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    w = nb.Parameter(nb.Tensor([1.0]), name="w")

    def step(x: Any) -> Any:
        if x.sum() > 0.0:
            nb.ops.assign_add(w, x)
        return x * 2.0

    as_it_is = Specialization.run

    def run(one: Specialization, inputs: Any, out: Any = None, guarded: bool = True) -> Any:
        return MISSED if guarded else as_it_is(one, inputs, out, guarded)

    monkeypatch.setattr(Specialization, "run", run)
    assert nb.jit(step)(nb.Tensor([3.0])).tolist() == [6.0]
    assert w.value().tolist() == [4.0]
    out = np.zeros(1, np.float32)
    assert nb.jit(lambda x: x + 1.0 if x.sum() > 0.0 else x)(np.ones(1, np.float32), out=out) is out
    assert out.tolist() == [2.0]
