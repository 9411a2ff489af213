"""`checkpoint`: the same derivatives as without it, in less memory, in every place where a function can be called."""

from __future__ import annotations

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Parameter, Tensor, nn
from nbgrad.errors import DtypeError

pytestmark = pytest.mark.unoptimized
RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 3)) / 2


def block(x, w):
    """Functions, a product of matrices, a sum, and what is kept by default."""
    y = np.tanh(x @ w)
    return np.exp(-y * y) * np.sin(x) + np.sum(y, axis=-1, keepdims=True)


def by_keywords(x, *, parts, power=2):
    """Containers in and out, a keyword, a number, a result that is no array."""
    y = np.sin(parts["w"] @ x.T) ** power
    return {"sum": np.sum(y), "pair": (y, 3.0)}, "text"


def counted(x, w):
    """A Python loop inside, which is rolled."""
    for k in range(60):
        x = np.sin(x + 0.01 * k) + 0.1 * np.cos(w[0])
        x = x / (1.0 + x * x) + np.exp(-x * x) * 0.1
    return x


def in_place(x, w):
    """Writes to an array that it has made, and gives a view of it."""
    y = np.exp(x @ w)
    y[0] = 2.0 * y[1]
    y += 1.0
    return y[:2]


def branching(x, w):
    """A branch by a value."""
    return np.exp(x) @ w if np.sum(x) > -1e3 else x


def complex_values(x, w):
    """Complex numbers inside."""
    return np.abs(np.fft.fft(x @ w)) ** 2


def nested(x, w):
    """A checkpointed function in a checkpointed one."""
    return nb.checkpoint(block)(block(x, w), w)


def with_closure(x, w):
    """What is read from outside is an input too."""
    return nb.checkpoint(lambda y: block(y, w * w))(x)


def scanned(x, w):
    """A scan inside."""
    return nb.scan(lambda c, k: (np.tanh(c @ w) + k, np.exp(c)), x, np.arange(3.0))[1]


PROGRAMS = [block, counted, in_place, branching, complex_values, nested, with_closure, scanned]


def total(f):
    """A scalar of two blocks."""
    return lambda x, w: np.sum(f(np.sin(x), w) ** 2) + np.sum(f(x, w) * 0.5)


TRANSFORMS = {
    "value": lambda f: f,
    "grad": lambda f: nb.grad(f, (0, 1)),
    "value_and_grad": lambda f: nb.value_and_grad(f, (0, 1)),
    "jit": lambda f: nb.jit(nb.grad(f, (0, 1))),
    "grad of jit": lambda f: nb.grad(nb.jit(f), 1),
    "vjp": lambda f: lambda x, w: nb.vjp(f, x, w)[1](np.float64(2.0)),
    "jvp": lambda f: lambda x, w: nb.jvp(f, (x, w), (w[:2], x.T @ x)),
    "hessian": lambda f: nb.hessian(f, 0),
    "forward over reverse": lambda f: nb.jacfwd(nb.grad(f, 1), 0),
    "reverse over reverse": lambda f: nb.jacrev(nb.grad(f, 1), 0),
    "vmap": lambda f: lambda x, w: nb.vmap(nb.grad(f), (0, None))(np.stack([x, 2 * x]), w),
}


def flat(result):
    """All numbers of a result."""
    if isinstance(result, tuple | list):
        return np.concatenate([flat(part) for part in result])
    return np.ravel(np.asarray(result))


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_same_numbers_as_without(program, transform):
    if program is branching and transform == "vmap":
        pytest.skip("a branch by value has no meaning for many values at once")
    make = TRANSFORMS[transform]
    expected = flat(make(total(program))(X, W))
    found = flat(make(total(nb.checkpoint(program)))(X, W))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_keywords_containers_and_other_values():
    def loss(f):
        def of(x, w):
            found, text = f(x, parts={"w": w}, power=3)
            assert text == "text"
            return found["sum"] + np.sum(found["pair"][0] ** 2) * found["pair"][1]

        return nb.grad(of, (0, 1))(X, W)

    for a, b in zip(loss(nb.checkpoint(by_keywords)), loss(by_keywords), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_outside_of_transforms_it_is_the_function():
    calls = []
    f = nb.checkpoint(lambda x: calls.append(1) or np.exp(x))
    assert type(f(X)) is np.ndarray
    np.testing.assert_array_equal(f(X), np.exp(X))
    assert len(calls) == 2


def test_decorated_methods_keep_name_and_text():
    class Model:
        @nb.checkpoint
        def step(self, x):
            """One step."""
            return np.exp(np.sin(x))

    assert Model.step.__name__ == "step" and Model.step.__doc__ == "One step."
    np.testing.assert_allclose(nb.grad(Model().step)(0.3), np.exp(np.sin(0.3)) * np.cos(0.3))


def test_loops_whose_turns_are_checkpointed():
    def turn(x, w):
        return np.tanh(w @ np.exp(np.sin(x)))

    def by_scan(f):
        return lambda x, w: np.sum(nb.scan(lambda c, _: (f(c, w), None), x, length=20)[0])

    def by_python(f):
        def loop(x, w):
            for _ in range(100):
                x = f(x, w)
            return np.sum(x)

        return loop

    for loop in (by_scan, by_python):
        expected = nb.grad(loop(turn), (0, 1))(X[0], W)
        for way in (lambda f: f, nb.jit):
            found = way(nb.grad(loop(nb.checkpoint(turn)), (0, 1)))(X[0], W)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10)
    h = nb.hessian(by_scan(turn))(X[0], W)
    np.testing.assert_allclose(nb.hessian(by_scan(nb.checkpoint(turn)))(X[0], W), h, rtol=1e-9, atol=1e-12)


def test_cells_and_what_they_write():
    class Net(nn.Cell):
        def __init__(self, wrap):
            super().__init__()
            self.first, self.second = nn.Dense(3, 5), nn.Dense(5, 2)
            self.count = Parameter(Tensor([0.0]), name="count", requires_grad=False)
            for p in self.trainable_params():
                p.set_data(Tensor(np.linspace(-1, 1, p.size).reshape(p.shape)))
            self.wrap = wrap

        def construct(self, x):
            self.count += 1.0
            return self.wrap(lambda y: self.second(nb.numpy.tanh(self.first(y))))(x)

    plain, less = Net(lambda f: f), Net(nb.checkpoint)
    x = Tensor(X)
    for way in (lambda f: f, nb.jit):
        expected = way(nb.grad(plain, 0, plain.trainable_params()))(x)
        found = way(nb.grad(less, 0, less.trainable_params()))(x)
        np.testing.assert_allclose(found[0].asnumpy(), expected[0].asnumpy(), rtol=1e-6)
        for a, b in zip(found[1], expected[1], strict=True):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6)
    assert float(less.count[0]) == float(plain.count[0]) == 2.0
    whole = nb.checkpoint(plain)
    np.testing.assert_allclose(nb.grad(whole)(x).asnumpy(), nb.grad(plain)(x).asnumpy(), rtol=1e-6)


def test_mindspores_forms():
    def twice(cell):
        def f(x):
            return nb.numpy.sum(cell(cell(x)) ** 2)

        compiled = nb.jit(nb.grad(f, 0, cell.trainable_params()))
        found = compiled(Tensor(RNG.normal(size=(64, 8)).astype(np.float32) * 0 + 0.1))
        return [found[0].asnumpy(), *[g.asnumpy() for g in found[1]]], compiled.programs()[0].plan.arena_bytes

    class Block(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(8, 8)
            for p in self.trainable_params():
                p.set_data(Tensor(np.linspace(-1, 1, p.size, dtype=np.float32).reshape(p.shape)))

        def construct(self, x):
            for _ in range(4):
                x = nb.numpy.tanh(nb.numpy.exp(-self.dense(x)))
            return x

    plain, less = Block(), Block()
    less.recompute()
    (expected, most), (found, bytes_needed) = twice(plain), twice(less)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert bytes_needed < most
    by_call = nb.grad(lambda x: nb.numpy.sum(nb.recompute(plain, nb.recompute(plain, x)) ** 2))
    np.testing.assert_allclose(by_call(Tensor(np.full((64, 8), 0.1, np.float32))).asnumpy(), expected[0], rtol=1e-4)


def test_dropout_is_the_same_in_both_runs():
    layer = nn.Dropout(p=0.5)
    layer.set_train()

    def f(x):
        return nb.numpy.sum(nb.checkpoint(lambda y: layer(nb.numpy.exp(y)) * 2.0)(x))

    x = Tensor(np.zeros(1000))
    value, gradient = nb.value_and_grad(f)(x)
    np.testing.assert_allclose(float(value), gradient.asnumpy().sum(), rtol=1e-5)  # exp is its own derivative


def arena(function, *args):
    """Bytes for intermediates in the plan of a compiled function."""
    compiled = nb.jit(function)
    compiled(*args)
    return compiled.programs()[0].plan.arena_bytes


def layers(layer, count=20):
    """Layers with weights of their own."""

    def net(x, w):
        for k in range(count):
            x = layer(x, w[k])
        return np.sum(x * x)

    return nb.grad(net, (0, 1))


def heavy(x, w):
    """Two products of matrices and five functions."""
    y = np.tanh(x @ w)
    y = np.exp(-y * y) @ w
    return np.sin(y) * np.cos(y) + x


def test_twenty_layers_need_the_memory_of_their_inputs():
    x, w = RNG.normal(size=(100, 60)), RNG.normal(size=(20, 60, 60)) / 8
    plain, less = arena(layers(heavy), x, w), arena(layers(nb.checkpoint(heavy)), x, w)
    inputs = 20 * x.nbytes
    assert inputs <= less <= 1.4 * inputs
    assert less <= 0.3 * plain


def test_a_scan_keeps_what_it_carries():
    x, w = RNG.normal(size=(100, 60)), RNG.normal(size=(60, 60)) / 8

    def loss(f):
        return nb.grad(lambda x, w: np.sum(nb.scan(lambda c, _: (f(c, w), None), x, length=50)[0] ** 2), (0, 1))

    plain, less = arena(loss(heavy), x, w), arena(loss(nb.checkpoint(heavy)), x, w)
    assert 50 * x.nbytes <= less <= 1.3 * 50 * x.nbytes
    assert less <= 0.35 * plain


def test_scalar_turns_stay_one_function():
    def turn(x, _):
        return nb.checkpoint(lambda x: np.sin(x) * np.exp(-x * x))(x), None

    f = nb.grad(lambda x: nb.scan(turn, x, length=1000)[0])
    assert "scalars a turn" in nb.explain(f, 0.3)


def test_what_is_no_function():
    with pytest.raises(DtypeError, match=r"checkpoint expects a function or a Cell, but got int"):
        nb.checkpoint(3)  # type: ignore[arg-type]
