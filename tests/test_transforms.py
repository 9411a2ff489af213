"""Transforms of functions: what they compute, nested in any way, and the structure of what they return."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized

RNG = np.random.default_rng(0)
X = RNG.normal(size=4)
M = RNG.normal(size=(3, 4))


def f(x: Any, y: Any, z: Any = 2.0) -> Any:
    """The gradients of its sum are (2 x y, x**2, 1) at each element."""
    return x**2 * y + z


def same(got: Any, want: Any, tolerance: float = 1e-12) -> None:
    """Equal structure, kinds and values."""
    assert type(got) is type(want), f"{type(got)} instead of {type(want)}"
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other, tolerance)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            same(got[key], want[key], tolerance)
    else:
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


# ----- Structure: MindSpore's rules -----


@pytest.mark.parametrize(
    ("position", "want"),
    [
        (0, 2 * 3.0 * 5.0),
        ((0,), 2 * 3.0 * 5.0),
        (1, 9.0),
        ((1,), 9.0),
        ((0, 1), (30.0, 9.0)),
        ((1, 0), (9.0, 30.0)),
        ((2, 0), (1.0, 30.0)),
        (True, 9.0),
    ],
)
def test_grad_position(position: Any, want: Any) -> None:
    got = nb.grad(f, position)(3.0, 5.0, 7.0)
    assert got == want
    assert isinstance(got, tuple) == isinstance(want, tuple)
    value, same_gradients = nb.value_and_grad(f, position)(3.0, 5.0, 7.0)
    assert (value, same_gradients) == (52.0, want)


def test_weights() -> None:
    w, b = nb.Tensor(np.array([1.0, 2.0])), nb.Tensor(np.array([3.0, 4.0]))

    def loss(x: Any) -> Any:
        return (w * x + b) * x

    x = np.array([5.0, 6.0])
    of_x, of_w, of_b = 2 * np.array([1.0, 2.0]) * x + [3, 4], x * x, x
    gradient = nb.grad(loss, None, w)(x)
    assert isinstance(gradient, nb.Tensor)
    np.testing.assert_array_equal(gradient.asnumpy(), of_w)
    (only,) = nb.grad(loss, None, [w])(x)
    np.testing.assert_array_equal(only.asnumpy(), of_w)
    assert nb.grad(loss, None, [])(x) == ()
    g, (gw, gb) = nb.grad(loss, 0, (w, b))(x)
    for got, want in ((g, of_x), (gw.asnumpy(), of_w), (gb.asnumpy(), of_b)):
        np.testing.assert_array_equal(got, want)
    g, gw = nb.grad(loss, (0,), w)(x)
    np.testing.assert_array_equal(g, of_x)
    np.testing.assert_array_equal(gw.asnumpy(), of_w)
    unused = nb.Tensor(np.ones(3))
    (zero,) = nb.grad(loss, None, [unused])(x)
    np.testing.assert_array_equal(zero.asnumpy(), np.zeros(3))
    one, two = nb.grad(loss, None, [w, w])(x)
    np.testing.assert_array_equal(one.asnumpy(), of_w)
    np.testing.assert_array_equal(two.asnumpy(), of_w)


def test_aux() -> None:
    def with_aux(x: Any) -> Any:
        return np.sum(x**2), x + 1, ("text", {"deep": x * 2})

    gradient, aux = nb.grad(with_aux, has_aux=True)(X)
    same(gradient, 2 * X)
    assert isinstance(aux, tuple) and len(aux) == 2
    same(aux[0], X + 1)
    assert aux[1][0] == "text"
    same(aux[1][1]["deep"], X * 2)
    value, gradient = nb.value_and_grad(with_aux, has_aux=True)(X)
    assert isinstance(value, tuple) and len(value) == 3
    np.testing.assert_allclose(value[0], np.sum(X**2))
    same(gradient, 2 * X)
    out, tangent, aux = nb.jvp(lambda x: (x**2, x + 1), X, np.ones(4), has_aux=True)
    same(aux, X + 1)
    same((out, tangent), (X**2, 2 * X))
    out, vjp_fn, aux = nb.vjp(lambda x: (x**2, x + 1, 7), X, has_aux=True)
    assert isinstance(aux, tuple) and aux[1] == 7
    same(vjp_fn(np.ones(4)), (2 * X,))
    jacobian, aux = nb.jacrev(lambda x: (x**2, "aux"), has_aux=True)(X)
    assert aux == "aux"
    same(jacobian, np.diag(2 * X))


def test_outputs_are_summed() -> None:
    same(nb.grad(lambda x: x**3)(X), 3 * X**2)
    same(nb.grad(lambda x: (x**3, [x.sum(), {"a": 2 * x}], "no", None))(X), 3 * X**2 + 3)
    assert nb.grad(lambda x: (x, 1, np.array([5])))(2.0) == 1.0


def test_several_outputs_of_vjp_and_jvp() -> None:
    (a, b), vjp_fn = nb.vjp(lambda x, y: (x * y, x + y), X, 2 * X)
    same((a, b), (2 * X * X, 3 * X))
    same(vjp_fn(np.ones(4), np.zeros(4)), (2 * X, X))
    same(vjp_fn(np.zeros(4), X), (X, X))
    out, tangent = nb.jvp(lambda x, y: (x * y, x + y), (X, 2 * X), (np.ones(4), np.zeros(4)))
    same(out, (2 * X * X, 3 * X))
    same(tangent, (2 * X, np.ones(4)))
    same(nb.jvp(np.exp, [X], [X])[1], X * np.exp(X))


def test_jacobians_have_the_output_first() -> None:
    def g(x: Any, y: Any) -> Any:
        return x @ y, np.outer(x[:2], y)

    x, y = np.arange(1.0, 5.0), X
    for jacobian in (nb.jacrev, nb.jacfwd):
        by_output = jacobian(g, (0, 1))(x, y)
        assert isinstance(by_output, tuple) and all(isinstance(row, tuple) for row in by_output)
        (dx, dy), (ox, oy) = by_output
        same(dx, y)
        same(dy, x)
        same(ox, np.einsum("ik,j->ijk", np.eye(4)[:2], y))
        same(oy, np.einsum("i,jk->ijk", x[:2], np.eye(4)))
        same(jacobian(np.sin)(M), np.einsum("ij,ik,jl->ijkl", np.cos(M), np.eye(3), np.eye(4)))
        same(jacobian(lambda v: v * 3.0)(np.float64(2.0)), np.float64(3.0))
        assert jacobian(lambda v: v[:0])(X).shape == (0, 4)
        assert jacobian(lambda v: v.sum())(X[:0]).shape == (0,)


def test_hessian_and_hvp() -> None:
    def quartic(x: Any) -> Any:
        return np.sum(x**2) ** 2 + x[0] * x[1]

    cross = np.zeros((4, 4))
    cross[0, 1] = cross[1, 0] = 1
    want = 8 * np.outer(X, X) + 4 * np.sum(X**2) * np.eye(4) + cross
    same(nb.hessian(quartic)(X), want)
    v = np.arange(4.0)
    same(nb.hvp(quartic, X, v), want @ v)
    blocks = nb.hessian(lambda x, y: np.sum(x * y**2), (0, 1))(X, 2 * X)
    assert isinstance(blocks, tuple) and isinstance(blocks[0], tuple)
    same(blocks[0][0], np.zeros((4, 4)))
    same(blocks[0][1], np.diag(4 * X))
    same(blocks[1][1], np.diag(2 * X))
    product = nb.hvp(lambda x, y: np.sum(x * y**2), (X, 2 * X), (v, v))
    same(product, (4 * X * v, 4 * X * v + 2 * X * v))


# ----- Kinds of results -----


def test_kinds_mirror_the_arguments() -> None:
    square = nb.value_and_grad(lambda x: np.sum(x * x))
    for x in (X, X.astype(np.float32), X.astype(np.float16), np.array(3.0), np.array(3.0, np.float32)):
        value, gradient = square(x)
        assert isinstance(gradient, np.ndarray) and (gradient.dtype, gradient.shape) == (x.dtype, x.shape), x.dtype
        assert isinstance(value, np.floating) and value.dtype == x.dtype
        np.testing.assert_array_equal(gradient, 2 * x)
    value, gradient = square(3.0)
    assert (type(value), type(gradient)) == (np.float64, np.float64)
    value, gradient = square(np.float32(3.0))
    assert (type(value), type(gradient)) == (np.float32, np.float32)
    value, gradient = square(nb.Tensor(X))
    assert isinstance(value, nb.Tensor) and isinstance(gradient, nb.Tensor)
    value, (gx, gt) = nb.value_and_grad(lambda x, t: np.sum(x * t), (0, 1))(X, nb.Tensor(X))
    assert isinstance(gx, np.ndarray) and isinstance(gt, nb.Tensor) and isinstance(value, nb.Tensor)


def test_results_are_writable_and_the_users_own() -> None:
    x = X.copy()
    gradient = nb.grad(np.sum)(x)
    gradient += 1
    np.testing.assert_array_equal(nb.grad(np.sum)(x), np.ones(4))
    value, _ = nb.value_and_grad(lambda v: v)(x)
    value += 1
    np.testing.assert_array_equal(x, X)


# ----- Arguments -----


def test_unused_inputs_have_zero_gradients() -> None:
    same(nb.grad(lambda x, y: np.sum(x), 1)(X, M), np.zeros((3, 4)))
    same(nb.grad(lambda x: 1.0)(X), np.zeros(4))
    same(nb.grad(lambda x: np.floor(x))(X), np.zeros(4))
    same(nb.grad(lambda x: 0 * x.astype(int))(X), np.zeros(4))


def test_integer_and_other_arguments_pass_through() -> None:
    def power(x: Any, n: int, mode: str, table: Any, nothing: None) -> Any:
        assert type(n) is int and type(mode) is str and nothing is None
        return x**n * table["scale"] if mode == "up" else x[np.array([0, 0])]

    same(nb.grad(power)(X, 3, "up", {"scale": 2}, None), 6 * X**2)
    same(nb.grad(lambda x, i: x[i], 0)(X, np.array([1, 1, 2])), np.array([0.0, 2, 1, 0]))
    same(nb.grad(lambda i, x: x * i, 1)(np.array([1, 2, 3, 4]), X), np.array([1.0, 2, 3, 4]))


def test_keywords_and_defaults() -> None:
    assert nb.grad(f)(3.0, y=5.0) == 30.0
    assert nb.grad(f)(3.0, 5.0, z=1.0) == 30.0
    assert nb.grad(f, 1)(3.0, y=5.0) == 9.0
    assert nb.grad(f, (0, 1))(y=5.0, x=3.0) == (30.0, 9.0)
    assert nb.grad(functools.partial(f, y=5.0))(3.0) == 30.0

    class Model:
        scale = 4.0

        def __call__(self, x: Any) -> Any:
            return self.scale * x**2

        def method(self, x: Any) -> Any:
            return self.scale * x

    assert nb.grad(Model())(3.0) == 24.0
    assert nb.grad(Model().method)(3.0) == 4.0


def test_the_same_array_twice() -> None:
    same(nb.grad(lambda x, y: np.sum(x**2 * y), (0, 1))(X, X), (2 * X * X, X**2))
    same(nb.grad(lambda x: np.sum(x * X))(X), X)
    t = nb.Tensor(X)
    a, b = nb.grad(lambda x, y: np.sum(x**2 * y), (0, 1))(t, t)
    np.testing.assert_allclose(a.asnumpy(), 2 * X * X)
    np.testing.assert_allclose(b.asnumpy(), X * X)
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(x * t))(t).asnumpy(), X)


def test_captured_arrays_may_change_afterwards() -> None:
    captured = np.ones(4)

    def loss(x: Any) -> Any:
        product = x * captured
        captured[:] = 100
        return product

    same(nb.grad(loss)(X), np.ones(4))
    captured[:] = 5
    same(nb.grad(lambda x: x * captured)(X), np.full(4, 5.0))
    captured[:] = 6
    same(nb.grad(lambda x: x * captured)(X), np.full(4, 6.0))


def test_an_argument_array_may_change_after_vjp() -> None:
    x = np.array([1.0, 2.0])
    _, vjp_fn = nb.vjp(lambda v: v * v, x)
    x[:] = 100
    same(vjp_fn(np.ones(2)), (np.array([2.0, 4.0]),))


# ----- Python inside -----


def test_control_flow_on_values() -> None:
    def collatz(x: Any) -> Any:
        steps = 0
        while x > 1.0:
            x = x / 2 if int(x) % 2 == 0 else 3 * x + 1
            steps += 1
        return x * steps

    # 6 3 10 5 16 8 4 2 1: the slope is the product of 1/2 and 3 over the eight steps, times eight.
    assert nb.grad(collatz)(6.0) == 8 * 0.5**6 * 3**2
    branch = nb.grad(lambda x: np.sum(x**2) if x.sum() > 0 else np.sum(3 * x))
    same(branch(np.ones(2)), np.full(2, 2.0))
    same(branch(-np.ones(2)), np.full(2, 3.0))
    same(nb.grad(lambda x: sum(x[i] * i for i in range(len(x))))(X), np.arange(4.0))
    same(nb.grad(lambda x: x[int(np.argmax(x))])(np.array([1.0, 3.0, 2.0])), np.array([0.0, 1, 0]))


def test_item_assignment() -> None:
    def assigned(x: Any) -> Any:
        y = np.zeros_like(x)
        y[1:] = x[:-1] ** 2
        y[0] = 5.0
        y[::2] += x[::2]
        return y

    want = 2 * X
    want[3] = 0
    want[::2] += 1
    same(nb.grad(assigned)(X), want)

    def overwritten(x: Any) -> Any:
        y = x * 1.0
        y[1] = 3.0
        y[2] = x[0] * x[3]
        return y

    same(nb.grad(overwritten)(X), np.array([1 + X[3], 0, 0, 1 + X[0]]))

    def in_place(x: Any) -> Any:
        y = x + 0.0
        y *= x
        y -= 1
        return y**2

    same(nb.grad(in_place)(X), 4 * X * (X**2 - 1))
    x = X.copy()

    def writes_to_its_argument(v: Any) -> Any:
        v[0] = 9.0
        return v * v

    same(nb.grad(writes_to_its_argument)(x), np.array([0.0, *(2 * X[1:])]))
    np.testing.assert_array_equal(x, [9.0, *X[1:]])


def test_side_effects_and_closures_run_on_every_call() -> None:
    calls: list[int] = []
    factor = [2.0]

    def loss(x: Any) -> Any:
        calls.append(1)
        return factor[0] * x

    gradient = nb.grad(loss)
    assert gradient(1.0) == 2.0
    factor[0] = 3.0
    assert gradient(1.0) == 3.0
    assert len(calls) == 2


def test_exceptions_of_the_function_pass_through() -> None:
    class OwnError(Exception):
        pass

    def broken(x: Any) -> Any:
        if x.sum() > 0:
            raise OwnError("mine")
        return x

    for _ in range(2):
        with pytest.raises(OwnError, match=r"^mine$"):
            nb.grad(broken)(np.ones(2))
        same(nb.grad(broken)(-np.ones(2)), np.ones(2))


# ----- Nesting -----


def test_no_perturbation_confusion() -> None:
    assert nb.grad(lambda x: x * nb.grad(lambda y: x + y)(1.0))(1.0) == 1.0
    assert nb.grad(lambda x: x * nb.grad(lambda y: x * y)(2.0))(3.0) == 6.0
    inner = lambda x: nb.jvp(lambda y: x * y, 2.0, 1.0)[1]  # noqa: E731
    assert nb.grad(lambda x: x * inner(x))(3.0) == 6.0
    assert nb.jvp(lambda x: x * nb.jvp(lambda y: x + y, 1.0, 1.0)[1], 1.0, 1.0)[1] == 1.0
    mixed = nb.jvp(lambda x: nb.grad(lambda y: x * y**2)(x), 3.0, 1.0)[1]
    assert mixed == 12.0  # d/dx of 2 x y at y = x


@pytest.mark.parametrize("function", [np.sin, np.exp, np.tanh, lambda x: x**5, lambda x: 1 / (1 + x * x), np.log1p])
def test_third_and_fourth_derivatives(function: Callable[[Any], Any]) -> None:
    with mpmath.workdps(40):
        table = {np.sin: mpmath.sin, np.exp: mpmath.exp, np.tanh: mpmath.tanh, np.log1p: mpmath.log1p}
        want = [float(mpmath.diff(table.get(function, function), mpmath.mpf("0.7"), n)) for n in range(5)]
    derivatives = [function]
    forward = [function]
    for _ in range(4):
        derivatives.append(nb.grad(derivatives[-1]))
        forward.append(lambda x, g=forward[-1]: nb.jvp(g, x, 1.0)[1])
    for n in range(5):
        np.testing.assert_allclose(derivatives[n](0.7), want[n], rtol=1e-12, err_msg=f"order {n}, reverse")
        np.testing.assert_allclose(forward[n](0.7), want[n], rtol=1e-12, err_msg=f"order {n}, forward")


def test_second_derivatives_through_reductions_and_products() -> None:
    v = np.arange(1.0, 5.0)
    same(nb.hvp(lambda x: x.sum() ** 2, X, v), np.full(4, 2 * v.sum()))
    same(nb.hvp(lambda x: np.exp(x @ x), X, v), np.exp(X @ X) * (2 * v + 4 * X * (X @ v)))
    norm = np.linalg.norm(X)
    same(nb.hvp(lambda x: np.sqrt(x @ x), X, v), v / norm - X * (X @ v) / norm**3)
    softmax = np.exp(X) / np.exp(X).sum()
    same(nb.hvp(lambda x: np.log(np.sum(np.exp(x))), X, v), softmax * v - softmax * (softmax @ v))
    same(nb.hvp(lambda x: np.prod(x), np.ones(4), v), v.sum() - v)
    same(nb.hvp(lambda x: np.sum((M @ x) ** 2), X, v), 2 * M.T @ (M @ v))
    same(nb.grad(lambda x: np.sum(nb.grad(lambda y: np.sum(np.cumsum(y) ** 3))(x)))(X), _cubic_scan(X))


def _cubic_scan(x: np.ndarray) -> np.ndarray:
    """The gradient of the sum of the gradient of sum(cumsum(x)**3)."""
    n = len(x)
    lower = np.tril(np.ones((n, n)))
    hessian = lower.T @ np.diag(6 * np.cumsum(x)) @ lower
    return hessian @ np.ones(n)


def test_transforms_of_transforms() -> None:
    same(nb.jacfwd(nb.grad(lambda x: np.sum(x**3)))(X), np.diag(6 * X))
    same(nb.jacrev(nb.grad(lambda x: np.sum(x**3)))(X), np.diag(6 * X))
    same(nb.grad(lambda x: nb.vjp(lambda y: y**3, x)[1](np.ones(4))[0])(X), 6 * X)
    same(nb.grad(lambda x: np.sum(nb.jacrev(lambda y: y**2)(x) * np.eye(4)))(X), np.full(4, 2.0))
    same(nb.grad(lambda x: np.trace(nb.hessian(lambda y: np.sum(y**3))(x)))(X), np.full(4, 6.0))
    value, gradient = nb.value_and_grad(lambda x: nb.value_and_grad(lambda y: y**3 * x)(x)[1])(2.0)
    assert (value, gradient) == (3 * 4 * 2, 9 * 4)  # 3 x**3 and its slope
    same(nb.grad(lambda x: np.sum(nb.grad(lambda y, z: np.sum(y * z**2), (0, 1))(x, x)[1]))(X), 4 * X)


def test_jacobian_of_everything_that_batches() -> None:
    """Batched linear graphs of each kind of operation: rows of the Jacobian are gradients of the elements."""
    index = np.array([2, 0, 2])
    functions = [
        lambda x: np.cumsum(x) * x,
        lambda x: np.cumprod(x),
        lambda x: np.sort(x) ** 2,
        lambda x: x[index] * x[1],
        lambda x: np.concatenate([x[1:], x[:1]]) * np.pad(x, 1)[:-2],
        lambda x: x.reshape(2, 2) @ x.reshape(2, 2),
        lambda x: np.maximum.accumulate(x) + x.max() - x.min(),
        lambda x: np.prod(x.reshape(2, 2), axis=0),
        lambda x: x[::-1] - x.mean(),
        lambda x: np.where(x > 0, x, x**2),
        lambda x: (x[:, None] * x[None, :]).sum(0),
        lambda x: np.outer(x, x[:2]).T,
        lambda x: nb.stop_gradient(x) * x,
        lambda x: _doubled(x) ** 2,
        lambda x: np.std(x) * np.ones(2),
    ]
    for position, function in enumerate(functions):
        rows = nb.jacrev(function)(X)
        np.testing.assert_allclose(nb.jacfwd(function)(X), rows, rtol=1e-12, atol=1e-12, err_msg=f"function {position}")
        count = rows.size // 4
        for k in range(count):
            row = nb.grad(lambda x, g=function, k=k: g(x).reshape(-1)[k])(X)
            np.testing.assert_allclose(
                rows.reshape(count, 4)[k], row, rtol=1e-12, atol=1e-12, err_msg=f"function {position}, row {k}"
            )


# ----- stop_gradient and custom_vjp -----


@nb.custom_vjp
def _doubled(x: Any) -> Any:
    return np.exp(x)


_doubled.defvjp(lambda x: (np.exp(x), x), lambda x, g: (2.0 * g * np.exp(x),))


def test_stop_gradient() -> None:
    same(nb.grad(lambda x: x * nb.stop_gradient(x))(X), X)
    same(nb.grad(lambda x: nb.stop_gradient({"a": x * 2, "b": 3})["a"] + x)(X), np.ones(4))
    assert nb.stop_gradient(5) == 5 and nb.stop_gradient(None) is None and nb.stop_gradient("t") == "t"
    assert nb.grad(nb.grad(lambda x: x * nb.stop_gradient(x**2)))(3.0) == 0.0


def test_custom_vjp() -> None:
    same(_doubled(X), np.exp(X))
    same(nb.grad(_doubled)(X), 2 * np.exp(X))
    same(nb.jvp(_doubled, X, X)[1], 2 * X * np.exp(X))
    same(nb.grad(lambda x: nb.grad(_doubled)(x).sum())(X), 2 * np.exp(X))
    same(nb.jit(nb.grad(_doubled))(X), 2 * np.exp(X))
    mixed = nb.custom_vjp(lambda x, y: x * y)
    mixed.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, g: (10 * g * kept[1], None))
    same(nb.grad(mixed, (0, 1))(X, 2 * X), (20 * X, np.zeros(4)))
    pair = nb.custom_vjp(lambda x: (x, x * 2))
    pair.defvjp(lambda x: ((x, x * 2), None), lambda _, g: (g[0] + 100 * g[1],))
    same(nb.grad(lambda x: pair(x)[0] + pair(x)[1])(X), np.full(4, 101.0))
    bprop = nb.custom_vjp(np.sin, lambda x, out, dout: (dout * out,))
    same(nb.grad(bprop)(X), np.sin(X))


def test_a_custom_rule_that_does_not_fit_is_an_error() -> None:
    unruly = nb.custom_vjp(lambda x: x * 1.0)
    with pytest.raises(ValueError, match="no reverse rule"):
        nb.grad(unruly)(X)
    unruly.defvjp(lambda x: (x * 1.0, None), lambda _, g: (g, g))
    with pytest.raises(ValueError, match="one gradient per array argument"):
        nb.grad(unruly)(X)
    unruly.defvjp(lambda x: (x * 1.0, None), lambda _, g: (g[:2],))
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        nb.grad(unruly)(X)


# ----- Size -----


def test_deep_chains() -> None:
    def deep(x: Any) -> Any:
        for _ in range(5000):
            x = x * 1.0001
        return x

    np.testing.assert_allclose(nb.grad(deep)(np.ones(3)), np.full(3, 1.0001**5000), rtol=1e-11)
    x = nb.Tensor(np.ones(2))
    for _ in range(3000):
        x = x + 1.0
    assert float(x.sum()) == 6002.0


def test_many_arguments() -> None:
    count = 60
    arrays = [np.full(3, float(k)) for k in range(count)]
    gradients = nb.grad(lambda *xs: sum(x * k for k, x in enumerate(xs)), tuple(range(count)))(*arrays)
    for k, g in enumerate(gradients):
        np.testing.assert_array_equal(g, np.full(3, float(k)))


def test_matches_a_known_gradient() -> None:
    """Rosenbrock's function: Rosenbrock (1960), in any number of variables."""

    def rosenbrock(x: Any) -> Any:
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    x = RNG.normal(size=10)
    want = np.zeros(10)
    want[:-1] += -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    want[1:] += 200 * (x[1:] - x[:-1] ** 2)
    value, gradient = nb.value_and_grad(rosenbrock)(x)
    same(gradient, want)
    assert math.isclose(value, rosenbrock(x), rel_tol=1e-14)
    same(nb.grad(rosenbrock)(np.ones(10)), np.zeros(10))


# ----- Outputs of integers and booleans -----


def test_a_cotangent_for_each_output() -> None:
    """Integers and booleans do not change when x changes a little: their cotangents have no effect, and may be None."""

    def function(x: Any) -> Any:
        return {"a": x * 2, "b": np.argmax(x), "c": x > 1.0, "d": np.sum(x**2)}

    out, pull = nb.vjp(function, X)
    assert out["b"].dtype == np.int64 and out["c"].dtype == bool
    for of_b, of_c in ((None, None), (0, np.zeros(4)), (7, X), (out["b"], out["c"])):
        same(pull({"a": X, "b": of_b, "c": of_c, "d": 3.0})[0], 2 * X + 6 * X)
    same(pull(*flattened(out))[0], 4 * X + 2 * X * np.sum(X**2))
    with pytest.raises(ValueError, match=r"4 outputs.* got 2"):
        pull(X, 3.0)
    with pytest.raises(ValueError, match=r"Cotangent 2 must have the shape \(4,\)"):
        pull(X, None, np.zeros(3), 3.0)
    with pytest.raises(TypeError, match="Cotangent 0 must be an array"):
        pull(None, None, None, 3.0)
    pair = nb.GradOperation(sens_param=True)(lambda x: (np.argmax(x), x * 2))
    for sens in ((None, X), (np.int64(3), X)):
        same(pair(X, sens), 2 * X)


def flattened(tree: dict[str, Any]) -> list[Any]:
    return [tree[name] for name in sorted(tree)]
