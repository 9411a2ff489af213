"""Functions that write to their arguments: the caller's arrays see it, as they do when Python calls the function.

Expected values are those of the function itself, run by NumPy on copies of the arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, NbgradError, TracedValueError

pytestmark = pytest.mark.unoptimized

W, G = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])


def step(w: Any, g: Any) -> Any:
    w -= 0.1 * g
    return np.sum(w**2)


def border(w: Any, g: Any) -> Any:
    w[0] = w[-1] = 0.0
    g[1:] += w[1:]
    return np.sum(w * g)


def ordered(w: Any, g: Any) -> Any:
    np.negative(w, out=w)
    w.sort()
    return np.sum(w * g)


def through_a_view(w: Any, g: Any) -> Any:
    w[1:][::-1][0] = 7.0
    return np.sum(w * g)


FUNCTIONS = [step, border, ordered, through_a_view]
CALLS: list[Callable[..., Any]] = [
    lambda f, w, g: nb.grad(f)(w, g),
    lambda f, w, g: nb.value_and_grad(f, (0, 1))(w, g)[0],
    lambda f, w, g: nb.jit(f)(w, g),
    lambda f, w, g: nb.jit(nb.value_and_grad(f))(w, g)[0],
    lambda f, w, g: nb.vjp(f, w, g)[0],
    lambda f, w, g: nb.jvp(f, (w, g), (np.ones(3), np.ones(3)))[0],
    lambda f, w, g: nb.jacrev(f)(w, g),
    lambda f, w, g: nb.hessian(f)(w, g),
    lambda f, w, g: nb.vmap(f)(w[None], g[None]),
    lambda f, w, g: nb.vmap(f, (1, 1))(w[:, None], g[:, None]),
]


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", [np.array, lambda a: nb.Tensor(a), lambda a: np.repeat(a, 2)[::2]])
def test_the_callers_arrays_see_it(function: Callable[..., Any], call: Callable[..., Any], kind: Any) -> None:
    if kind(W).__class__ is nb.Tensor and function is step:
        pytest.skip("`x -= y` binds a name anew for Tensors that users made, as in MindSpore")
    expected_w, expected_g = W.copy(), G.copy()
    w, g = kind(W), kind(G)
    for _ in range(2):
        value = function(expected_w, expected_g)
        found = call(function, w, g)
        if np.shape(found) == ():
            np.testing.assert_allclose(float(found), value, rtol=1e-14)
        np.testing.assert_allclose(np.asarray(w), expected_w, rtol=1e-14)
        np.testing.assert_allclose(np.asarray(g), expected_g, rtol=1e-14)


def test_gradients_are_those_at_the_values_before() -> None:
    w = W.copy()
    np.testing.assert_allclose(nb.grad(step)(w, G), 2 * (W - 0.1 * G), rtol=1e-15)
    compiled = nb.jit(nb.grad(step))
    for _ in range(3):
        before = w.copy()
        np.testing.assert_allclose(compiled(w, G), 2 * (before - 0.1 * G), rtol=1e-15)


def test_containers_and_nested_transforms() -> None:
    def loss(params: Any) -> Any:
        params["a"][0] = 5.0
        return np.sum(params["a"] * params["b"][0])

    for transform in (nb.grad, nb.value_and_grad, nb.jit, lambda f: nb.jit(nb.grad(f))):
        params = {"a": W.copy(), "b": [G.copy()]}
        transform(loss)(params)
        np.testing.assert_array_equal(params["a"], [5.0, 2.0, 3.0])
        np.testing.assert_array_equal(params["b"][0], G)

    def outer(x: Any) -> Any:
        def inner(y: Any) -> Any:
            y[0] = x[1]
            return np.sum(y * y)

        return np.sum(nb.grad(inner)(x) * x)  # (0, 2 x1, ...) times x, of which x0 is x1 by now

    x = W.copy()
    value, gradient = nb.value_and_grad(outer)(x)
    assert value == 2 * (W[1] ** 2 + W[2] ** 2)
    np.testing.assert_allclose(gradient, [0.0, 4 * W[1], 4 * W[2]], rtol=1e-15)
    np.testing.assert_array_equal(x, [2.0, 2.0, 3.0])


def overlapping() -> list[tuple[Any, Any]]:
    p, t = np.arange(1.0, 6.0), nb.Tensor(np.arange(1.0, 6.0))
    v, pair = np.arange(3.0), nb.Tensor(np.arange(3.0))
    return [(v, v), (p[:4], p[1:]), (p[1:], p[:4]), (p[:3], p[2::-1]), (pair, pair), (t[:4], t[1:])]


@pytest.mark.parametrize("case", range(6))
def test_arguments_that_share_memory_are_an_error(case: int) -> None:
    for function in (border, through_a_view):
        for transform in (nb.grad, nb.jit, lambda f: nb.jvp(f, overlapping()[case], overlapping()[case])):
            a, b = overlapping()[case]
            before = np.array(np.asarray(a))
            with pytest.raises(ArgumentError, match=r"shares memory with another one.*\(at .*:\d+\)"):
                transform(function)(a, b)
            np.testing.assert_array_equal(np.asarray(a), before)


def test_a_compiled_function_looks_at_each_call() -> None:
    compiled = nb.jit(border)
    p = np.arange(1.0, 9.0)
    compiled(p[:3], p[4:7])
    with pytest.raises(ArgumentError, match="shares memory"):
        compiled(p[:3], p[1:4])
    p.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        compiled(p[:3], p[4:7])


def test_reading_arguments_that_share_memory_is_fine() -> None:
    p = np.arange(1.0, 6.0)
    np.testing.assert_array_equal(nb.grad(lambda a, b: np.sum(a * b))(p[:4], p[1:]), p[1:])
    np.testing.assert_array_equal(nb.grad(lambda a, b: np.sum(a * b))(p, p), p)


@pytest.mark.parametrize("transform", [nb.grad, nb.jit, nb.value_and_grad])
def test_read_only_arrays_are_an_error_where_they_are_written_to(transform: Any) -> None:
    w = W.copy()
    w.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        transform(step)(w, G)


def test_vmap_of_a_write_to_what_is_not_mapped() -> None:
    def counting(total: Any, x: Any) -> Any:
        total += x
        return total * 1

    with pytest.raises(NbgradError, match="differs from one mapped value"):
        nb.vmap(counting, (None, 0))(np.zeros(2), np.ones((3, 2)))


@pytest.mark.parametrize("outer", [lambda f: f, nb.jit], ids=["called", "jit"])
def test_vmap_over_numbers_gives_scalars_which_share_no_memory(outer: Any) -> None:
    def moved(x: Any) -> Any:
        if x < -5:
            x = -x * 0.5
        x -= 1.0
        return x * x

    x = np.array([1.0, -6.0])
    np.testing.assert_allclose(outer(nb.vmap(nb.differentiable_source(moved)))(x), [0.0, 4.0])
    np.testing.assert_array_equal(x, [1.0, -6.0])


def test_an_error_in_the_function_leaves_the_arrays_alone() -> None:
    def fails(w: Any) -> Any:
        w[0] = 9.0
        raise KeyError("no")

    for transform in (nb.grad, nb.jit):
        w = W.copy()
        with pytest.raises(KeyError):
            transform(fails)(w)
        np.testing.assert_array_equal(w, W)


@pytest.mark.parametrize("view", [nb.numpy.asarray, nb.numpy.ravel, lambda a: nb.numpy.reshape(a, (3, 1))[:, 0]])
def test_a_plain_array_outside_cannot_hold_what_is_recorded(view: Any) -> None:
    plain = np.zeros(3)

    def f(x: Any) -> Any:
        view(plain)[0] = x
        return np.sum(plain) * x

    for call in (nb.grad(f), nb.jit(f)):
        with pytest.raises(TracedValueError, match=r"shares memory with a plain array.*np.array\(x\).*callers_arrays"):
            call(2.5)

    def g(x: Any) -> Any:
        view(plain)[0] = 7.0
        return np.sum(plain) * x

    assert nb.grad(g)(2.5) == 7.0
    assert plain[0] == 7.0
