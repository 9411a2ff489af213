"""Arrays of every memory layout give right gradients, and are written to only by functions that write to them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError

BASE = np.random.default_rng(0).normal(size=(4, 6))


class Subclass(np.ndarray):
    """A subclass with no behaviour of its own."""


def unaligned(x: np.ndarray) -> np.ndarray:
    """A copy at an odd address."""
    raw = np.zeros(x.nbytes + 1, np.uint8)
    out = raw[1:].view(x.dtype).reshape(x.shape)
    out[...] = x
    assert not out.flags.aligned
    return out


def read_only(x: np.ndarray) -> np.ndarray:
    """A copy that cannot be written to."""
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[], np.ndarray]] = {
    "C order": lambda: BASE.copy(),
    "Fortran order": lambda: np.asfortranarray(BASE),
    "transposed": lambda: BASE.copy().T,
    "negative strides": lambda: BASE.copy()[::-1, ::-1],
    "one negative stride": lambda: BASE.copy()[:, ::-1],
    "every other column": lambda: BASE.copy()[:, ::2],
    "window": lambda: BASE.copy()[1:3, 2:5],
    "column": lambda: BASE.copy()[:, 2],
    "diagonal": lambda: np.diagonal(BASE.copy()),
    "sliding windows": lambda: np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3),
    "broadcast": lambda: np.broadcast_to(np.arange(3.0), (4, 3)),
    "broadcast scalar": lambda: np.broadcast_to(2.5, (2, 3)),
    "read-only": lambda: read_only(BASE),
    "byte-swapped": lambda: BASE.astype(BASE.dtype.newbyteorder()),
    "unaligned": lambda: unaligned(BASE),
    "byte-swapped and unaligned": lambda: unaligned(BASE.astype(BASE.dtype.newbyteorder())),
    "field of a record": lambda: np.array([(1, 2.5), (3, 4.5)], dtype=[("n", "i4"), ("x", "f8")])["x"],
    "subclass": lambda: BASE.copy().view(Subclass),
    "subclass, strided": lambda: BASE.copy().view(Subclass)[::2, 1:],
    "0-d": lambda: np.array(1.5),
    "0-d view": lambda: BASE.copy()[1, 1, ...],
    "empty": lambda: np.zeros((0, 3)),
    "empty, strided": lambda: np.zeros((4, 0))[::2],
    "one element": lambda: np.array([[2.0]]),
    "axes of length one": lambda: BASE.copy()[:, None, :, None],
    "memory map": lambda: np.frombuffer(BASE.tobytes()).reshape(BASE.shape),
    "float32, strided": lambda: BASE.astype(np.float32)[::-1, ::3],
    "float16, transposed": lambda: BASE.astype(np.float16).T,
    "unpickled": lambda: pickle.loads(pickle.dumps(BASE)),
    "from a buffer": lambda: np.asarray(memoryview(BASE.copy())),
}


def loss(x: Any) -> Any:
    """The gradient is 2 x weights + cos(x), with weights that tell all positions apart."""
    weights = np.arange(x.size, dtype=x.dtype).reshape(x.shape) / 16
    return np.sum(x * x * weights) + np.sum(np.sin(x))


def expected(x: np.ndarray) -> np.ndarray:
    plain = np.array(x, dtype=float)
    return 2 * plain * np.arange(x.size).reshape(x.shape) / 16 + np.cos(plain)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_every_layout(layout: str) -> None:
    x = LAYOUTS[layout]()
    before = x.tobytes()
    tolerance = {2: 2e-2, 4: 1e-5}.get(x.dtype.itemsize, 1e-13)
    jitted = nb.jit(nb.value_and_grad(loss))
    for name, function in (("un-jitted", nb.value_and_grad(loss)), ("jit", jitted), ("jit again", jitted)):
        value, gradient = function(x)
        assert gradient.shape == x.shape, f"{layout}, {name}"
        assert gradient.dtype == x.dtype.newbyteorder("="), f"{layout}, {name}"
        assert np.asarray(gradient).flags.writeable
        where = f"{layout}, {name}"
        np.testing.assert_allclose(
            np.asarray(gradient, float), expected(x), rtol=tolerance, atol=tolerance, err_msg=where
        )
        np.testing.assert_allclose(float(value), float(loss(np.array(x, float))), rtol=10 * tolerance, err_msg=where)
    assert x.tobytes() == before, f"{layout}: the input was written to"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_and_second_arguments_of_every_layout(layout: str) -> None:
    """As an argument that is not differentiated, as a captured array, and as a Tensor."""
    x = LAYOUTS[layout]()
    before = x.tobytes()
    plain = np.array(x, dtype=x.dtype.newbyteorder("="))
    ones = np.ones(x.shape, plain.dtype)
    for name, got in (
        ("argument", nb.grad(lambda y, a: np.sum(y * a))(ones, x)),
        ("argument of jit", nb.jit(nb.grad(lambda y, a: np.sum(y * a)))(ones, x)),
        ("captured", nb.grad(lambda y: np.sum(y * x))(ones)),
        ("captured by jit", nb.jit(lambda y: y * x)(ones)),
        ("Tensor", nb.Tensor(x).asnumpy()),
        ("forward mode", nb.jvp(lambda y: y * 1.0, x, ones)[0]),
        ("tangent", nb.jvp(lambda y: y * 1.0, ones, x)[1]),
        ("cotangent", nb.vjp(lambda y: y * 1.0, ones)[1](x)[0]),
    ):
        got = np.asarray(got)
        assert got.dtype == plain.dtype, f"{layout}, {name}"
        np.testing.assert_array_equal(got, plain, err_msg=f"{layout}, {name}")
    assert x.tobytes() == before, f"{layout}: the input was written to"


def test_a_specialization_takes_all_layouts_of_one_order() -> None:
    f = nb.jit(lambda x: x * 2 + x.sum())
    for x in (BASE, np.asfortranarray(BASE), BASE[::-1], unaligned(BASE), BASE.view(Subclass), BASE.astype(">f8")):
        np.testing.assert_allclose(f(x), np.array(x, float) * 2 + np.sum(BASE), rtol=1e-12)
    assert f.compiled_signatures == 2  # in C and in Fortran order


def test_functions_that_write_to_the_input() -> None:
    def writes(x: Any) -> Any:
        x[0] = 0.0
        x *= 2
        return x.sum()

    want, changed = np.full(BASE.shape, 2.0), 2 * BASE
    want[0] = changed[0] = 0
    for function in (nb.grad(writes), nb.jit(nb.grad(writes))):
        x = BASE.copy()
        np.testing.assert_array_equal(function(x), want)
        np.testing.assert_array_equal(x, changed)
        with pytest.raises(ArgumentError, match="read-only"):
            function(read_only(x))
