"""Rules of `custom_vjp` and `custom_jvp`: those that call the function itself, or code that needs plain arrays (SciPy,
a simulator), or read values from outside; and rules of nbgrad's own that are the derivatives of other functions."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import nbgrad as nb
from nbgrad.errors import ArgumentError, ShapeError, TracedValueError
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


# ----- What rules are about -----


def test_a_rule_gets_what_is_not_differentiated_first() -> None:
    """A fixed point of Newton's step for a square root, whose slope by the implicit function theorem is 1 / (2 x)."""

    @functools.partial(nb.custom_vjp, nondiff_argnums=(0, 1))
    def fixed_point(step: Any, count: int, a: Any, start: Any = 1.0) -> Any:
        x = start
        for _ in range(count):
            x = step(a, x)
        return x

    def forward(step: Any, count: int, a: Any, start: Any) -> Any:
        x = fixed_point(step, count, a, start)
        return x, (a, x)

    def backward(step: Any, count: int, kept: Any, g: Any) -> Any:
        a, x = kept
        by_x = nb.vjp(lambda x: step(a, x), x)[1]
        u = g
        for _ in range(count):
            u = g + by_x(u)[0]
        return nb.vjp(lambda a: step(a, x), a)[1](u)[0], None

    fixed_point.defvjp(forward, backward)
    newton = lambda a, x: 0.5 * (x + a / x)  # noqa: E731
    for root in (lambda a: fixed_point(newton, 40, a), lambda a: fixed_point(newton, a=a, start=2.0, count=40)):
        np.testing.assert_allclose(root(9.0), 3.0)
        np.testing.assert_allclose(nb.grad(root)(9.0), 1 / 6)
        np.testing.assert_allclose(nb.grad(nb.grad(root))(9.0), -1 / 108)
        np.testing.assert_allclose(nb.jit(nb.vmap(nb.grad(root)))(np.array([1.0, 4.0])), [0.5, 0.25])
    summed = nb.grad(lambda a: nb.scan(lambda total, x: (total + fixed_point(newton, 40, a * x), x), 0.0, X)[0])
    np.testing.assert_allclose(summed(4.0), np.sum(np.sqrt(X)) / 4)
    named = nb.custom_vjp(lambda x, power: x**power, nondiff_argnames="power")
    named.defvjp(lambda x, power: (x**power, x), lambda power, x, g: (10 * g * power * x ** (power - 1),))
    np.testing.assert_allclose(nb.grad(lambda x: named(x, power=3))(2.0), 120.0)
    with pytest.raises(ArgumentError, match=r"nondiff_argnums is \(5,\), but the call has 2 arguments"):
        nb.grad(nb.custom_vjp(fixed_point.fn, nondiff_argnums=5))(1.0, 2.0)


def test_none_says_it_of_a_whole_container() -> None:
    chosen = nb.custom_vjp(lambda x, table: x * table["a"] + table["b"])
    chosen.defvjp(lambda x, table: (x * table["a"] + table["b"], table["a"]), lambda a, g: (g * a, None))
    found = nb.grad(chosen, (0, 1))(2.0, {"a": 3.0, "b": 4.0})
    assert found == (3.0, {"a": 0.0, "b": 0.0})


def scaled(kind: Any, scale: Any) -> Any:
    """A function that reads `scale` from outside, with ten times its slope."""
    function = kind(lambda x: x * scale)
    if kind is nb.custom_vjp:
        function.defvjp(lambda x: (x * scale, None), lambda _, g: (10 * g * scale,))
    else:
        function.defjvp(lambda x, t: (function(*x), 10 * t[0] * scale))
    return function


@pytest.mark.parametrize("kind", [nb.custom_vjp, nb.custom_jvp])
def test_rules_read_values_from_outside(kind: Any) -> None:
    """They may be others for each value of a batch, and for each turn of a loop; derivatives by them would be lost."""
    scales = np.array([1.0, 2.0, 5.0])
    for make in (lambda f: f, nb.jit):
        over_scales = make(nb.vmap(lambda s: nb.grad(lambda x: scaled(kind, s)(x))(3.0)))
        np.testing.assert_allclose(over_scales(scales), 10 * scales)
        by_all = make(nb.grad(lambda x: np.sum(nb.vmap(lambda s, x: scaled(kind, s)(x))(scales, x))))
        np.testing.assert_allclose(by_all(X), 10 * scales)
        by_one = make(nb.grad(lambda x: np.sum(nb.vmap(lambda s: scaled(kind, s)(x))(scales))))
        np.testing.assert_allclose(by_one(2.0), 80.0)
        forward = make(lambda x: nb.jvp(lambda x: nb.vmap(lambda s: scaled(kind, s)(x))(scales), x, 1.0)[1])
        np.testing.assert_allclose(forward(2.0), 10 * scales)
        turns = make(nb.grad(lambda x: nb.scan(lambda c, s: (scaled(kind, s)(c), c), x, scales)[0]))
        np.testing.assert_allclose(turns(2.0), 1e4)
    for derivative in (nb.grad, nb.jacfwd):
        with pytest.raises(ArgumentError, match=r"reads a value from outside that is differentiated"):
            derivative(lambda s: np.sum(nb.vmap(lambda x: scaled(kind, s)(x))(X)))(2.0)
        with pytest.raises(ArgumentError, match=r"reads a value from outside that is differentiated"):
            derivative(lambda x: nb.scan(lambda c, y: (scaled(kind, c)(y), c), x, X)[0])(2.0)
        cut = derivative(lambda s: np.sum(scaled(kind, nb.stop_gradient(s))(s * X)))
        np.testing.assert_allclose(cut(2.0), 20 * np.sum(X))


# ----- Forward rules -----


@nb.custom_jvp
def steep(x: Any, y: Any = 2.0) -> Any:
    return np.sin(x) * y


@steep.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x, y), (x_dot, y_dot) = primals, tangents
    return steep(x, y), 3 * np.cos(x) * x_dot * y + np.sin(x) * y_dot  # three times too large, so that its use shows


def test_a_forward_rule_holds_in_all_modes() -> None:
    """On paper: D f = (3 y cos x, sin x), and D of these is theirs as they are written."""
    first, second = 3 * 2.0 * np.cos(X), -3 * 2.0 * np.sin(X)
    np.testing.assert_allclose(steep(X), 2 * np.sin(X))
    for make in (lambda f: f, nb.jit):
        np.testing.assert_allclose(make(nb.grad(lambda x, y: np.sum(steep(x, y)), (0, 1)))(X, 2.0)[0], first)
        np.testing.assert_allclose(make(nb.grad(lambda y: np.sum(steep(X, y=y))))(2.0), np.sum(np.sin(X)))
        np.testing.assert_allclose(make(nb.jacfwd(steep))(X), np.diag(first))
        np.testing.assert_allclose(make(nb.jacrev(steep))(X), np.diag(first))
        np.testing.assert_allclose(make(nb.vmap(nb.grad(steep)))(X), first)
        np.testing.assert_allclose(make(nb.vmap(nb.vmap(nb.grad(steep))))(np.array([X, 2 * X]))[0], first)
        for hessian in (nb.hessian, lambda f: nb.jacrev(nb.jacrev(f)), lambda f: nb.jacfwd(nb.jacfwd(f))):
            np.testing.assert_allclose(make(hessian(lambda x: np.sum(steep(x))))(X), np.diag(second))
    np.testing.assert_allclose(nb.jvp(steep, (X, 2.0), (np.ones(3), 1.0))[1], first + np.sin(X))
    np.testing.assert_allclose(nb.linearize(steep, X, 2.0)[1](np.ones(3), 0.0), first)
    np.testing.assert_allclose(nb.grad(nb.checkpoint(steep))(0.5), 6 * np.cos(0.5))


def test_a_forward_rule_in_loops() -> None:
    """c -> f(c, w) + x, with the two derivatives of the recurrence carried along by hand."""
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    c, slope, curvature = 0.3, 1.0, 0.0
    for w in weights:
        curvature = -3 * np.sin(c) * w * slope**2 + 3 * np.cos(c) * w * curvature
        c, slope = np.sin(c) * w + 0.3, 3 * np.cos(c) * w * slope + 1

    def scanned(x: Any) -> Any:
        return nb.scan(lambda c, w: (steep(c, w) + x, c), x, weights)[0]

    def written(x: Any) -> Any:
        return functools.reduce(lambda c, w: steep(c, w) + x, weights, x)

    for function in (scanned, written):
        for make in (lambda f: f, nb.jit):
            np.testing.assert_allclose(make(nb.grad(function))(0.3), slope)
            np.testing.assert_allclose(make(nb.grad(nb.grad(function)))(0.3), curvature)
            np.testing.assert_allclose(make(nb.hessian(function))(0.3), curvature)
            np.testing.assert_allclose(make(nb.vmap(nb.grad(function)))(np.array([0.3, 0.3])), [slope, slope])
        np.testing.assert_allclose(nb.jvp(function, 0.3, 1.0), (c, slope))


def test_a_forward_rule_of_containers_and_functions() -> None:
    @functools.partial(nb.custom_jvp, nondiff_argnums=(0, 2))
    def applied(g: Any, x: Any, power: int) -> Any:
        return {"value": g(x) ** power, "a": x["a"]}

    @applied.defjvp
    def _(g: Any, power: int, primals: Any, tangents: Any) -> Any:
        value, slope = nb.jvp(g, primals, tangents)
        tangent = {"value": 5 * power * value ** (power - 1) * slope, "a": 2 * tangents[0]["a"]}
        return applied(g, primals[0], power), tangent

    def total(x: Any) -> Any:
        found = applied(lambda x: x["a"] * x["b"], x, 3)
        return found["value"] + found["a"] ** 2

    a, b = 1.5, 2.0
    want = {"a": 15 * (a * b) ** 2 * b + 2 * 2 * a, "b": 15 * (a * b) ** 2 * a}
    for make in (lambda f: f, nb.jit):
        assert make(nb.grad(total))({"a": a, "b": b}) == pytest.approx(want)
    assert nb.vmap(nb.grad(total), ({"a": 0, "b": None},))({"a": np.array([a]), "b": b})["a"] == pytest.approx(
        want["a"]
    )


def test_one_forward_rule_for_each_argument() -> None:
    product = nb.custom_jvp(lambda x, y, z: x * y + z)
    product.defjvps(lambda t, out, x, y, z: 2 * t * out, None, lambda t, out, x, y, z: t)
    assert nb.grad(product, (0, 1, 2))(2.0, 3.0, 4.0) == (20.0, 0.0, 1.0)
    product.defjvps(lambda t, out, x, y, z: t)
    with pytest.raises(ArgumentError, match=r"called with 3 arguments, but defjvps has got 1 rules"):
        nb.grad(product)(2.0, 3.0, 4.0)


def test_errors_of_forward_rules() -> None:
    function = nb.custom_jvp(np.sin)
    with pytest.raises(ArgumentError, match=r"no forward rule yet: call sin.defjvp"):
        nb.grad(function)(1.0)
    function.defjvp(lambda x, t: (np.sin(x[0]), t[0] ** 2))
    assert nb.jvp(function, 1.0, 3.0)[1] == 9.0
    with pytest.raises(TracedValueError, match=r"forward rule of sin\(\), which is not linear in the tangents"):
        nb.grad(function)(1.0)
    function.defjvp(lambda x, t: (np.sin(x[0]), np.sum(t[0])))
    with pytest.raises(ShapeError, match=r"a tangent of shape \(\) for an output of shape \(3,\)"):
        nb.jvp(function, X, X)
    function.defjvp(lambda x, t: (np.sin(x[0]), (t[0], t[0])))
    with pytest.raises(ArgumentError, match=r"must return a tangent with the structure of the output"):
        nb.jvp(function, X, X)
    function.defjvp(lambda x, t: t[0])
    with pytest.raises(ArgumentError, match=r"must return a pair \(output, tangent\)"):
        nb.jvp(function, X, X)
    with pytest.raises(ArgumentError, match="symbolic_zeros is not supported"):
        function.defjvp(lambda x, t: (x, t), symbolic_zeros=True)


def test_complex_numbers_in_a_forward_rule() -> None:
    """The real part of the square of x + iy is x^2 - y^2, with the gradient 2 x - 2 i y."""
    square = nb.custom_jvp(lambda z: z * z)
    square.defjvp(lambda z, t: (z[0] * z[0], 2 * z[0] * t[0]))
    z = np.array([1.0 + 2.0j, 3.0 - 1.0j])
    plain = nb.grad(lambda z: np.sum(np.real(z * z)))(z)
    np.testing.assert_allclose(nb.grad(lambda z: np.sum(np.real(square(z))))(z), plain)
    np.testing.assert_allclose(plain, 2 * z.conj())
    np.testing.assert_allclose(nb.jvp(square, z, 1j * z)[1], 2j * z * z)


def test_scipy_in_a_function_with_a_forward_rule() -> None:
    root = nb.custom_jvp(_root)
    root.defjvp(lambda a, t: (root(a[0]), t[0] / (3 * root(a[0]) ** 2 + 1)))
    for make in (lambda f: f, nb.jit):
        np.testing.assert_allclose(make(nb.value_and_grad(root))(3.0), (ROOT, SLOPE), rtol=1e-10)
        np.testing.assert_allclose(make(nb.grad(nb.grad(root)))(3.0), -6 * ROOT * SLOPE**3, rtol=1e-9)


def test_arguments_by_name_that_leave_others_out() -> None:
    @nb.custom_jvp
    def picked(x: Any, index: Any, option: Any = None, scale: float = 1.0) -> Any:
        assert option is None
        return np.sin(x)[index] * scale

    @picked.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        x, index, _, scale = primals
        return picked(*primals), 10 * (np.cos(x) * tangents[0])[index] * scale + np.sin(x)[index] * tangents[3]

    index = np.array([0, 2])
    want = 20 * np.cos(X) * [1, 0, 1]
    np.testing.assert_allclose(nb.jit(nb.grad(lambda x, i: np.sum(picked(x, i, scale=2.0))))(X, index), want)
    np.testing.assert_allclose(nb.jacfwd(lambda s: picked(X, index, scale=s))(2.0), np.sin(X)[index])


def test_rules_in_backward_passes_and_on_tapes() -> None:
    """PyTorch's and TensorFlow's words go through forward rules, too: f' = 6 cos x, and f'' = -6 sin x."""
    words: Any = nb.autograd
    x: Any = nb.tensor(X, requires_grad=True)
    np.sum(steep(x)).backward()
    np.testing.assert_allclose(x.grad, 6 * np.cos(X))
    (slope,) = words.grad(np.sum(steep(x)), x, create_graph=True)
    (curvature,) = words.grad(np.sum(slope), x)
    np.testing.assert_allclose(curvature, -6 * np.sin(X))
    watched: Any = nb.Tensor(X)
    tape: Any = nb.GradientTape()
    with tape:
        tape.watch(watched)
        total = np.sum(steep(watched))
    np.testing.assert_allclose(tape.gradient(total, watched), 6 * np.cos(X))
    with words.forward_ad.dual_level():
        dual = words.forward_ad.make_dual(nb.Tensor(X), nb.Tensor(np.ones(3)))
        np.testing.assert_allclose(words.forward_ad.unpack_dual(steep(dual)).tangent, 6 * np.cos(X))


@pytest.mark.parametrize("kind", [nb.custom_vjp, nb.custom_jvp])
def test_arguments_that_are_parts_of_other_values_are_not_read_from_outside(kind: Any) -> None:
    """What is made of an argument may be a node from before the call: parts that were taken already, the array behind a
    transposed one, the parts of a complex one."""
    turned = kind(lambda a: np.sum(a.T.reshape(4)[:2] * a[0, 0]))
    square = kind(lambda z: z * np.conj(z))
    if kind is nb.custom_vjp:
        turned.defvjp(lambda a: (turned(a), a), lambda a, g: (g * np.ones((2, 2)),))
        square.defvjp(lambda z: (square(z), z), lambda z, g: (3 * g * z,))
    else:
        turned.defjvp(lambda p, t: (turned(*p), np.sum(t[0])))
        square.defjvp(lambda p, t: (square(*p), 3 * np.real(np.conj(p[0]) * t[0])))

    def function(x: Any) -> Any:
        a = x.reshape(2, 2).T
        return a[0, 0] + turned(a)

    x = np.arange(4.0)
    for make in (lambda f: f, nb.jit):
        np.testing.assert_allclose(make(nb.grad(function))(x), [2.0, 1.0, 1.0, 1.0])
        np.testing.assert_allclose(make(nb.jacfwd(function))(x), [2.0, 1.0, 1.0, 1.0])
        found = make(nb.grad(lambda x: np.real(square(x + 1j * x * x))))(2.0)  # |z|^2, three times half its slope
        np.testing.assert_allclose(found, 3 * (2.0 + 4.0 * 4.0))


def test_a_function_with_a_rule_may_write_to_its_argument() -> None:
    doubled = nb.custom_vjp(lambda x: x * 1.0)

    def forward(x: Any) -> Any:
        x[0] = 5.0
        return x * 2.0, None

    doubled.defvjp(forward, lambda _, g: (g * 2.0,))

    def function(x: Any) -> Any:
        y = x * 3.0
        return np.sum(doubled(y)) + y[0]

    assert nb.value_and_grad(function)(np.ones(2))[0] == 10.0 + 6.0 + 5.0
