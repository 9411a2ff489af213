"""vmap: agrees with a Python loop over the values, at any axes, in any nesting with derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor, nn

pytestmark = pytest.mark.unoptimized

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((4, 3)), RNG.standard_normal((4, 3))
M = RNG.standard_normal((4, 3, 3))
I = RNG.integers(0, 3, (4, 2))  # noqa: E741

FUNCTIONS = {
    "elementwise": (lambda a, b: np.sin(a) * b + a**2, (A, B)),
    "reductions": (lambda a, b: (a.sum(), np.max(b), np.mean(a * b, keepdims=True)), (A, B)),
    "product": (lambda m, a: m @ a, (M, A)),
    "products": (lambda m, n: m @ n.T, (M, M[::-1])),
    "movement": (lambda a, m: np.concatenate([a[::-1], m[0], m.T.ravel()[2:5]]), (A, M)),
    "gather": (lambda a, i: a[i] * 2, (A, I)),
    "scatter": (lambda a, i: nb.ops.tensor_scatter_update(nb.Tensor(np.zeros(3)), i[:1, None], a[:1]), (A, I)),
    "where": (lambda a, b: np.where(a > b, a, b * 2), (A, B)),
    "sort": (lambda a, b: np.sort(a) + np.cumsum(b), (A, B)),
    "solve": (lambda m, a: np.linalg.solve(m + 5 * np.eye(3), a), (M, A)),
    "softmax": (lambda a, b: nb.ops.softmax(a) * nb.ops.layer_norm(b, (3,)), (A, B)),
    "scan": (lambda a, b: np.cumprod(a) * b, (A, B)),
}


def looped(function, arrays):
    """The results for the single values, stacked."""
    singles = [function(*[Tensor(a[k]) for a in arrays]) for k in range(len(arrays[0]))]
    if isinstance(singles[0], tuple):
        return tuple(np.stack([np.asarray(s[j]) for s in singles]) for j in range(len(singles[0])))
    return np.stack([np.asarray(s) for s in singles])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_a_loop(name):
    function, arrays = FUNCTIONS[name]
    expected = looped(function, arrays)
    for mapped in (nb.vmap(function), nb.jit(nb.vmap(function))):
        got = mapped(*arrays)
        pairs = zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]
        for ours, theirs in pairs:
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["elementwise", "product", "movement", "gather", "solve", "softmax", "scan"])
def test_derivatives_of_it_and_in_it(name):
    function, arrays = FUNCTIONS[name]

    def total(*values):
        return np.sum(function(*values) ** 2)

    inner = nb.vmap(nb.grad(total))(*arrays)
    outer = nb.grad(lambda *values: np.sum(nb.vmap(total)(*values)))(*arrays)
    by_loop = np.stack([nb.grad(total)(*[a[k] for a in arrays]) for k in range(4)])
    np.testing.assert_allclose(inner, by_loop, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(outer, by_loop, rtol=1e-10, atol=1e-12)
    hessians = nb.vmap(nb.hessian(total))(*arrays)
    np.testing.assert_allclose(hessians[1], nb.hessian(total)(*[a[1] for a in arrays]), rtol=1e-9, atol=1e-10)


def test_axes():
    def f(a, b):
        return a * b, a

    x, y = RNG.standard_normal((2, 5)), RNG.standard_normal(2)
    product, same = nb.vmap(f, in_axes=(1, None), out_axes=(1, 0))(x, y)
    np.testing.assert_array_equal(product, x * y[:, None])
    np.testing.assert_array_equal(same, x.T)
    assert nb.vmap(f, (-1, None), -1)(x, y)[0].shape == (2, 5)
    # An output that depends on nothing mapped is repeated, or with None given once.
    assert nb.vmap(lambda a, b: b, (1, None))(x, y).shape == (5, 2)
    assert nb.vmap(lambda a, b: (a, b), (1, None), (0, None))(x, y)[1].shape == (2,)
    # Nested: the outer product.
    outer = nb.vmap(nb.vmap(np.multiply, (None, 0)), (0, None))(x[0], y)
    np.testing.assert_array_equal(outer, np.outer(x[0], y))


def test_containers_keywords_and_other_values():
    def f(pair, scale, *, mode, shift):
        return {"a": pair["u"] * scale + shift, "mode": mode, "v": pair["v"]}

    got = nb.vmap(f, in_axes=({"u": 0, "v": None}, None))(
        {"u": np.arange(3.0), "v": np.ones(2)}, 2.0, mode="m", shift=np.array([0.0, 1.0, 2.0])
    )
    assert got["a"].tolist() == [0.0, 3.0, 6.0] and got["mode"] == "m" and got["v"].shape == (3, 2)


def test_kinds():
    assert isinstance(nb.vmap(np.sin)(A), np.ndarray) and isinstance(nb.vmap(np.sin)(Tensor(A)), Tensor)
    assert nb.vmap(np.sin)(Tensor([1, 2])).dtype == nb.float32 and nb.vmap(np.sin)(np.array([1, 2])).dtype == np.float64
    assert nb.vmap(np.sum)(np.zeros((0, 3))).shape == (0,)


def test_gradients_for_every_sample():
    nb.set_seed(1)
    net, loss = nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 1)), nn.MSELoss()
    weights = net.trainable_params()
    x, y = Tensor(A.astype(np.float32)), Tensor(B[:, :1].astype(np.float32))
    gradient = nb.grad(lambda x, y: loss(net(x), y), None, weights)
    each = nb.vmap(gradient)(x, y)
    for k in range(4):
        for ours, theirs in zip(each, gradient(x[k], y[k]), strict=True):
            np.testing.assert_allclose(np.asarray(ours)[k], np.asarray(theirs), rtol=1e-5, atol=1e-7)


def test_random_numbers_are_shared():
    nb.set_seed(3)
    rows = np.asarray(nb.vmap(lambda x: x * 0 + nb.ops.rand(2))(Tensor(np.zeros((3, 2), np.float32))))
    assert (rows == rows[0]).all() and rows[0, 0] != rows[0, 1]


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: nb.vmap(3), TypeError, "vmap expects a function"),
        (lambda: nb.vmap(np.sin, in_axes="a"), TypeError, "in_axes must be an int"),
        (lambda: nb.vmap(np.sin, out_axes=True), TypeError, "out_axes must be an int"),
        (lambda: nb.vmap(np.add)(np.ones(3), np.ones(2)), ValueError, r"lengths \[2, 3\]"),
        (lambda: nb.vmap(np.add, (None, None))(A, A), ValueError, "no argument is mapped"),
        (lambda: nb.vmap(np.add)(np.ones(3), 2.0), ValueError, r"array 1 of its arguments.*shape \(\)"),
        (lambda: nb.vmap(np.sin, 2)(A), ValueError, "maps axis 2"),
        (lambda: nb.vmap(np.sin, (0, 0))(A), ValueError, "structure"),
        (lambda: nb.vmap(np.sin, 0, 2)(A), ValueError, "out_axes has 2"),
        (lambda: nb.vmap(np.sin, 0, None)(A), ValueError, "out_axes is None for an output of sin"),
        (lambda: nb.vmap(lambda x: x if x.sum() > 0 else -x)(A), TypeError, r"vmap records the function.*np\.where"),
        (lambda: nb.vmap(lambda x: float(x[0]))(A), TypeError, "."),
    ],
)
def test_bad_use(act, error, text):
    with pytest.raises(error, match=text):
        act()


def test_parameters_cannot_be_written():
    norm = nn.BatchNorm1d(3).set_train()
    before = norm.moving_mean.asnumpy()
    with pytest.raises(ValueError, match=r"writes to the Parameter mean inside vmap"):
        nb.vmap(norm)(Tensor(RNG.standard_normal((4, 2, 3)).astype(np.float32)))
    assert (norm.moving_mean.asnumpy() == before).all()


def test_spectral_steps_with_plain_complex_numbers():
    """A loop that is found reads the same complex factors for all values: simplifying them came to no end."""

    def stepped(u, turns=12):
        total = 0.0
        for _ in range(turns):
            u = u + 0.1 * np.fft.irfft(np.fft.rfft(u) / (1j * np.arange(1.0, 10.0)), 16)
            total = total + np.sum(u**2)
        return total

    u = RNG.standard_normal((3, 16))
    np.testing.assert_allclose(nb.vmap(stepped)(u), [stepped(one) for one in u], rtol=1e-12)
    each = np.stack([nb.grad(stepped)(one) for one in u])
    np.testing.assert_allclose(nb.vmap(nb.grad(stepped))(u), each, rtol=1e-12)
