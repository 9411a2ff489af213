"""Tensors that share memory: slices, asnumpy, from_numpy. The same programs run on ndarrays say what is right."""

from __future__ import annotations

import copy
import gc

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor
from nbgrad.transforms.arguments import lift

pytestmark = pytest.mark.unoptimized


def rows(x):
    r, e = x[1], x[1][2:]
    e[...] = 5.0
    x[0, 0] = 7.0
    return x, r, e


def through_the_base(x):
    views = [x[0], x[:, 1], x[..., ::2], x[None, 1:], x[-1:]]
    x[...] = np.arange(12.0).reshape(3, 4)
    x[2, 3] = -1.0
    return x, *views


def through_a_view(x):
    views = [x[0], x[:, 1], x[0:2]]
    views[1][0] = 9.0
    views[2][1, :] = 4.0
    return x, *views


def in_place(x):
    r = x[1]
    r += 1.0
    r *= x[0]
    x[2] += r
    x[:, 0] -= 3.0
    return x, r


def out_argument(x):
    r = x[1]
    np.multiply(x[0], 2.0, out=r)
    np.negative(x, out=x)
    return x, r


def advanced_indices_copy(x):
    picked, masked = x[[0, 1]], x[x > 0]
    x[...] = 8.0
    return x, picked, masked


def a_view_of_a_view_of_a_view(x):
    a = x[1:]
    b = a[:, 1:]
    c = b[0]
    c[0] = 0.5
    a[0, 2] = 0.6
    return x, a, b, c


PROGRAMS = [
    rows,
    through_the_base,
    through_a_view,
    in_place,
    out_argument,
    advanced_indices_copy,
    a_view_of_a_view_of_a_view,
]


def start():
    return np.linspace(-1.0, 1.0, 12).reshape(3, 4)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_views_are_numpys(program):
    expected = program(start())
    results = [program(lift(start()))]
    if program is not advanced_indices_copy:  # a mask gives jit no shape
        results.append(nb.jit(program)(start()))
    for got in results:
        for ours, theirs in zip(got, expected, strict=True):
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-15)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_views_differentiate(program):
    def total(x):
        return sum(np.sum(part**3) for part in program(x * 1.0))

    # Central differences; the programs are polynomials away from the kinks.
    x, step = start() + 0.05, 1e-6
    numeric = np.zeros_like(x)
    for k in np.ndindex(x.shape):
        shifted = np.zeros_like(x)
        shifted[k] = step
        numeric[k] = (total(x + shifted) - total(x - shifted)) / (2 * step)
    np.testing.assert_allclose(nb.grad(total)(x), numeric, rtol=1e-6, atol=1e-6)


def test_many_views_are_forgotten():
    x = Tensor(np.zeros(3))
    for _ in range(2000):
        x[0]
    keep = [x[0] for _ in range(10)]
    gc.collect()
    x[0]
    assert len(x._views) <= 300
    x[0] = 2.0
    assert all(float(k) == 2.0 for k in keep)


def test_views_of_parameters():
    w = nb.Parameter(np.zeros(3), name="w")
    head = w[:2]
    head[0] = 5.0
    assert w.asnumpy().tolist() == [5.0, 0.0, 0.0]
    w.set_data(np.ones(3))
    assert w.asnumpy().tolist() == [1.0, 1.0, 1.0]


def test_asnumpy_shares():
    x = Tensor([1.0, 2.0])
    array = x.asnumpy()
    y = x * 1
    array[0] = 50.0
    assert x.tolist() == [50.0, 2.0] and y.tolist() == [1.0, 2.0] and float(x[0]) == 50.0
    assert x.asnumpy() is array and isinstance(x, Tensor) and type(x).__name__ == "Tensor"
    x[1] = 3.0
    assert array.tolist() == [50.0, 3.0]
    assert nb.grad(lambda t: (t * x).sum())(Tensor([1.0, 1.0])).tolist() == [50.0, 3.0]
    f = nb.jit(lambda t: t * 2)
    assert f(x).tolist() == [100.0, 6.0]
    array[0] = 1.0
    assert f(x).tolist() == [2.0, 6.0] and (x.shape, x.size, x.ndim, str(x.dtype)) == ((2,), 2, 1, "Float32")
    del array
    assert x.tolist() == [1.0, 3.0]


def test_the_ndarray_that_was_given_is_never_shared():
    data = np.array([1.0, 2.0])
    x = Tensor(data)
    data[0] = 9.0
    assert x.tolist() == [1.0, 2.0]
    x.asnumpy()[0] = 7.0
    assert data.tolist() == [9.0, 2.0]


def test_copies_do_not_share():
    x = Tensor([1.0, 2.0])
    y, z = x.copy(), Tensor(x)
    x.asnumpy()[0] = 50.0
    assert y.tolist() == z.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("layout", ["C", "F", "strided", "0d", "empty"])
def test_from_numpy_shares(layout):
    data = {
        "C": np.zeros((2, 3)),
        "F": np.zeros((2, 3), order="F"),
        "strided": np.zeros((4, 6))[::2, ::-2],
        "0d": np.zeros(()),
        "empty": np.zeros((0, 3)),
    }[layout]
    x = Tensor.from_numpy(data)
    data[...] = 4.0
    np.testing.assert_array_equal(np.asarray(x * 2), data * 2)
    np.testing.assert_array_equal(nb.jit(lambda t: t + 1)(x), data + 1)


def test_from_numpy_refuses_what_a_tensor_cannot_hold():
    for bad in ([1.0], np.array(["a"]), np.array([1j], np.clongdouble)):
        with pytest.raises(TypeError):
            nb.from_numpy(bad)


# ----- Copies of Tensors that were there before the recording -----

COPIES = {
    "copy": lambda x: x.copy(),
    "array": lambda x: nb.numpy.array(x),
    "np.copy": np.copy,
    "flatten": lambda x: x.flatten(),
    "astype": lambda x: x.astype(np.float64),
    "positive": lambda x: +x,
    "conjugate": np.conjugate,
    "deepcopy": copy.deepcopy,
    "copy.copy": copy.copy,
    "concatenate": lambda x: nb.numpy.concatenate([x]),
    "tile": lambda x: nb.numpy.tile(x, 1),
    "assigned": lambda x: assigned(nb.numpy.empty(3), x),
    "view of a copy": lambda x: np.moveaxis(x.copy(), 0, 0).ravel()[:],
}


def assigned(target, x):
    target[...] = x
    return target


@pytest.mark.parametrize("name", COPIES)
def test_recorded_functions_write_to_copies(name):
    outside = nb.numpy.array([1.0, 2.0, 3.0])

    def written(x):
        made = COPIES[name](outside)
        made *= 2
        made[0] = x[0]
        return np.sum(made * x)

    x = np.array([0.3, 1.0, 2.0])
    want = 0.3**2 + 4.0 * 1.0 + 6.0 * 2.0
    assert nb.jit(written)(x) == pytest.approx(want)
    assert nb.vmap(written)(x[None])[0] == pytest.approx(want)
    np.testing.assert_allclose(nb.jit(nb.grad(written))(x), [0.6, 4.0, 6.0])
    assert nb.jit(lambda x: nb.jit(written)(x) + nb.vmap(written)(x[None])[0])(x) == pytest.approx(2 * want)
    assert outside.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("name", ["itself", "asarray", "slice", "ravel", "reshape", "moveaxis"])
def test_recorded_functions_do_not_write_to_what_was_there(name):
    outside = nb.numpy.array([1.0, 2.0, 3.0])
    views = {
        "itself": lambda: outside,
        "asarray": lambda: nb.numpy.asarray(outside),
        "slice": lambda: outside[:],
        "ravel": lambda: outside.ravel(),
        "reshape": lambda: outside.reshape(3, 1),
        "moveaxis": lambda: np.moveaxis(outside, 0, 0),
    }

    def written(x):
        part = views[name]()
        part *= x[0]
        return np.sum(part)

    for transformed in (nb.jit(written), lambda x: nb.vmap(written)(x[None])):
        with pytest.raises(nb.errors.TracedValueError, match="writes to a Tensor"):
            transformed(np.array([0.3, 1.0, 2.0]))
    assert outside.tolist() == [1.0, 2.0, 3.0]
