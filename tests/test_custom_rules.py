"""Rules of `custom_vjp` that call the function itself, or code that needs plain arrays: SciPy, a simulator; and rules
of nbgrad's own that are the derivatives of other functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import nbgrad as nb
from nbgrad.errors import TracedValueError
from nbgrad.graph.differentiate import pullback
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import constant, elementwise

X = np.array([0.5, 1.0, 2.0])


@nb.custom_vjp
def cube(x: Any) -> Any:
    return x**3


cube.defvjp(lambda x: (cube(x), x), lambda x, g: (g * 30 * x**2,))  # ten times too large, so that its use shows


def test_a_forward_rule_calls_its_function() -> None:
    np.testing.assert_allclose(cube(X), X**3)
    value, gradient = nb.value_and_grad(lambda x: np.sum(cube(x)))(X)
    np.testing.assert_allclose(value, np.sum(X**3))
    np.testing.assert_allclose(gradient, 30 * X**2)
    np.testing.assert_allclose(nb.jit(nb.grad(lambda x: np.sum(cube(x))))(X), 30 * X**2)
    np.testing.assert_allclose(nb.vmap(nb.grad(cube))(X), 30 * X**2)
    np.testing.assert_allclose(nb.grad(nb.grad(cube))(2.0), 120)
    np.testing.assert_allclose(nb.grad(lambda x: cube(cube(x)))(1.0), 900)
    np.testing.assert_allclose(nb.jvp(cube, X, np.ones(3))[1], 30 * X**2)


def test_each_of_two_functions_calls_the_other() -> None:
    sine, cosine = nb.custom_vjp(np.sin), nb.custom_vjp(np.cos)
    sine.defvjp(lambda x: (sine(x), cosine(x)), lambda c, g: (2 * g * c,))
    cosine.defvjp(lambda x: (cosine(x), sine(x)), lambda s, g: (-3 * g * s,))
    np.testing.assert_allclose(nb.grad(sine)(0.3), 2 * np.cos(0.3))
    np.testing.assert_allclose(nb.grad(nb.grad(sine))(0.3), -6 * np.sin(0.3))
    np.testing.assert_allclose(nb.grad(cosine)(0.3), -3 * np.sin(0.3))


# ----- Code that needs plain arrays -----


def _root(a: float) -> float:
    """y with y**3 + y = a, which SciPy finds."""
    return scipy.optimize.brentq(lambda y: y**3 + y - a, -10.0, 10.0, xtol=1e-14)  # pyright: ignore


ROOT = _root(3.0)
SLOPE = 1 / (3 * ROOT**2 + 1)


def root_with_rule() -> Any:
    function = nb.custom_vjp(_root)

    def forward(a: Any) -> Any:
        y = _root(a)
        return y, (a, y)

    function.defvjp(forward, lambda kept, g: (g / (3 * kept[1] ** 2 + 1),))
    return function


def test_scipy_in_a_forward_rule() -> None:
    root = root_with_rule()
    np.testing.assert_allclose(root(3.0), ROOT)
    value, gradient = nb.value_and_grad(root)(3.0)
    np.testing.assert_allclose([value, gradient], [ROOT, SLOPE], rtol=1e-10)
    chained = nb.grad(lambda a: np.sin(2 * root(a * a)))(np.sqrt(3.0))
    np.testing.assert_allclose(chained, np.cos(2 * ROOT) * 2 * SLOPE * 2 * np.sqrt(3.0), rtol=1e-10)
    np.testing.assert_allclose(nb.jvp(root, 3.0, 1.0), (ROOT, SLOPE), rtol=1e-10)


def test_scipy_in_a_forward_rule_is_called_by_compiled_programs() -> None:
    root = root_with_rule()
    step = nb.jit(nb.value_and_grad(lambda a: 2 * root(a)))
    for a in (3.0, 10.0, -2.0, 3.0):
        y = _root(a)
        np.testing.assert_allclose(step(a), (2 * y, 2 / (3 * y**2 + 1)), rtol=1e-10)
    values = np.array([3.0, 10.0, -2.0])
    want = [1 / (3 * _root(a) ** 2 + 1) for a in values]
    for mapped in (nb.vmap(nb.grad(root)), nb.jit(nb.vmap(nb.grad(root)))):
        np.testing.assert_allclose(mapped(values), want, rtol=1e-10)
        np.testing.assert_allclose(mapped(values[::-1].copy()), want[::-1], rtol=1e-10)
    np.testing.assert_allclose(nb.grad(lambda v: np.sum(nb.vmap(root)(v)))(values), want, rtol=1e-10)


def test_second_order_by_the_reverse_rule() -> None:
    """The root's derivative is written by the root itself, which has the rule."""
    root = nb.custom_vjp(_root)

    def backward(a: Any, g: Any) -> Any:
        return (g / (3 * root(a) ** 2 + 1),)

    root.defvjp(lambda a: (root(a), a), backward)
    want = -6 * ROOT * SLOPE**3
    np.testing.assert_allclose(nb.grad(root)(3.0), SLOPE, rtol=1e-10)
    np.testing.assert_allclose(nb.grad(nb.grad(root))(3.0), want, rtol=1e-9)
    np.testing.assert_allclose(nb.jit(nb.grad(nb.grad(root)))(3.0), want, rtol=1e-9)
    np.testing.assert_allclose(nb.vmap(nb.grad(nb.grad(root)))(np.array([3.0, 3.0])), [want, want], rtol=1e-9)


def test_derivatives_of_derivatives_follow_the_rule() -> None:
    """With a forward rule that computes the square itself: on paper, f' = 10 x and (f^2)'' = 2 f'^2 + 2 f f''."""

    @nb.custom_vjp
    def square(x: Any) -> Any:
        return x**2

    square.defvjp(lambda x: (x**2, x), lambda x, g: (10 * g * x,))
    assert nb.grad(nb.grad(lambda x: square(x) ** 2))(1.0) == 2 * 10**2 + 2 * 10
    assert nb.jit(nb.hessian(lambda x: square(x) ** 2))(1.0) == 220.0


def test_second_order_through_what_host_code_kept_is_an_error() -> None:
    root = root_with_rule()
    with pytest.raises(ValueError, match=r"forward rule of _root.* runs on plain arrays"):
        nb.grad(nb.grad(root))(3.0)


def test_a_reverse_rule_on_plain_arrays() -> None:
    """An adjoint that is a loop over plain numbers."""
    filtered = nb.custom_vjp(lambda x: x)

    def forward(x: Any) -> Any:
        return np.array([float(v) ** 2 for v in x.tolist()]), x

    def backward(x: Any, g: Any) -> Any:
        out = np.empty(len(x))
        for k in range(len(x)):
            out[k] = 2 * float(x[k]) * float(g[k])
        return (out,)

    filtered.defvjp(forward, backward)
    gradient = nb.grad(lambda x: np.sum(filtered(x) * np.arange(3.0)))
    np.testing.assert_allclose(gradient(X), 2 * X * np.arange(3))
    step = nb.jit(gradient)
    np.testing.assert_allclose(step(X), 2 * X * np.arange(3))
    np.testing.assert_allclose(step(-X), -2 * X * np.arange(3))
    rows = np.array([X, 3 * X])
    np.testing.assert_allclose(nb.vmap(gradient)(rows), 2 * rows * np.arange(3))
    with pytest.raises(ValueError, match=r"reverse rule of .* runs on plain arrays"):
        nb.hessian(lambda x: np.sum(filtered(x)))(X)


def test_errors_of_host_code() -> None:
    def diverging(a: Any) -> Any:
        raise OverflowError("the simulator diverges at " + format(a, ".1f"))

    function = nb.custom_vjp(np.sin)
    function.defvjp(diverging, lambda kept, g: (g,))
    with pytest.raises(OverflowError, match=r"diverges at 1.5"):
        nb.grad(function)(1.5)

    class Factors:
        """What a solver may keep."""

    keeping = nb.custom_vjp(np.sin)
    keeping.defvjp(lambda a: (np.sin(float(a)), (Factors(), np.cos(float(a)))), lambda kept, g: (g * kept[1],))
    np.testing.assert_allclose(nb.grad(keeping)(1.5), np.cos(1.5))
    with pytest.raises(ValueError, match="Factors, which may differ from call to call"):
        nb.jit(nb.grad(keeping))(1.5)

    growing = nb.custom_vjp(np.sum)
    growing.defvjp(
        lambda x: (float(np.sum(x)), np.ones(int(float(x[0])))), lambda kept, g: (g * np.sum(kept) * np.ones(3),)
    )
    step = nb.jit(nb.grad(growing))
    np.testing.assert_allclose(step(np.ones(3)), np.ones(3))
    with pytest.raises(ValueError, match="only the numbers in arrays may differ"):
        step(np.full(3, 2.0))


def test_a_rule_that_is_the_derivative_of_a_function() -> None:
    """Of x sin(y), also where both operands are one node."""
    x, y, g = (constant(value) for value in (X, X + 1.0, np.array([1.0, -2.0, 3.0])))
    for second, values in ((y, X + 1.0), (x, X)):
        found = pullback(lambda a, b: a * elementwise("sin", b), [x, second], g)
        first, other = interpret([node for node in found if node is not None])
        np.testing.assert_allclose(first, np.sin(values) * [1.0, -2.0, 3.0])
        np.testing.assert_allclose(other, X * np.cos(values) * [1.0, -2.0, 3.0])


def clipped(gs: Any) -> Any:
    """Cotangents of several outputs, divided by their common norm."""
    total = sum((np.sum(g * g) for g in gs), 0.0)
    return tuple(g / np.sqrt(total) for g in gs)


@nb.custom_vjp
def passed_on(x: Any, y: Any) -> Any:
    return x * 1.0, y * 1.0


passed_on.defvjp(lambda x, y: ((x * 1.0, y * 1.0), None), lambda _, g: clipped(g))


def squares(x: Any, y: Any) -> Any:
    a, b = passed_on(x, y)
    return np.sum(a * a) + np.sum(np.sin(b) * b)


def test_a_rule_of_several_outputs_gets_the_cotangents_of_all_at_once() -> None:
    """A rule may do anything with them, as in JAX: here they are divided by their common norm."""
    x, y = X, X + 1.0
    sent = [2 * x, np.cos(y) * y + np.sin(y)]
    size = np.sqrt(sum(np.sum(g * g) for g in sent))
    for make in (lambda f: f, nb.jit):
        found = make(nb.grad(squares, (0, 1)))(x, y)
        np.testing.assert_allclose(found, [g / size for g in sent], rtol=1e-12)
    for one, other in zip(nb.vmap(nb.grad(squares))(np.stack([x, 2 * x]), np.stack([y, y])), (x, 2 * x), strict=True):
        np.testing.assert_allclose(one, nb.grad(squares)(other, y), rtol=1e-12)
    nested = nb.vmap(nb.vmap(nb.grad(squares)))(np.stack([x, 2 * x])[None], np.stack([y, y])[None])
    np.testing.assert_allclose(nested[0, 1], nb.grad(squares)(2 * x, y), rtol=1e-12)
    # One output alone, and the same one twice.
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(3 * passed_on(x, y)[0]))(x), np.full(3, 1 / np.sqrt(3)))
    np.testing.assert_allclose(
        nb.grad(lambda x: (lambda a, b: np.sum(a) + np.sum(2 * a) + 0 * np.sum(b))(*passed_on(x, y)))(x),
        np.full(3, 1 / np.sqrt(3)),
    )


def test_calls_of_a_rule_are_told_apart() -> None:
    """Outputs of one call may go into another call of the same function."""
    x = np.array([3.0, 4.0])

    def chained(x: Any) -> Any:
        a, b = passed_on(x, 2 * x)
        c, d = passed_on(a, b)
        return np.sum(c) + np.sum(d) + np.sum(a)

    first = np.full(4, 0.5)
    second = np.concatenate([first[:2] + 1.0, first[2:]])
    second /= np.linalg.norm(second)
    np.testing.assert_allclose(nb.grad(chained)(x), second[:2] + 2 * second[2:], rtol=1e-12)


def test_forward_mode_says_why_a_rule_has_none() -> None:
    x, y = X, X + 1.0
    with pytest.raises(TracedValueError, match=r"the reverse rule of passed_on\(\), which is not linear"):
        nb.jvp(lambda x: passed_on(x, y)[0], x, np.ones(3))
    plain = nb.custom_vjp(np.sin)
    plain.defvjp(lambda a: (np.sin(a), a), lambda a, g: (float(g[0]) * np.cos(a),))
    with pytest.raises(TracedValueError, match=r"the reverse rule of sin\(\), which asks for the value of a cotangent"):
        nb.jvp(plain, x, np.ones(3))
