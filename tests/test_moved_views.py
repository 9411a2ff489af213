"""Views that are no slices: transposed, reshaped, split, real parts. Writes to them, and to what they are of.

In every case NumPy says what must come out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor
from nbgrad.errors import ArgumentError
from nbgrad.graph.ir import constant

pytestmark = pytest.mark.unoptimized

RNG = np.random.default_rng(11)
REAL = RNG.normal(size=(3, 4))
COMPLEX = REAL + 1j * RNG.normal(size=(3, 4))


def put(target: Any, key: Any, value: Any) -> None:
    target[key] = value


WRITES: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: put(x.T, (0, 1), 5.0),
    "twice": lambda x: put(x.T.T, 0, 9.0),
    "reshaped": lambda x: put(x.reshape(4, 3), (slice(None), 1), 7.0),
    "flat": lambda x: put(x.ravel(), slice(2, 9, 3), 7.0),
    "a copy, since strides cannot say it": lambda x: put(x.T.reshape(-1), 0, 99.0),
    "a slice transposed": lambda x: put(x[1:, ::2].T, 1, 9.0),
    "rows reshaped": lambda x: put(x[1:].reshape(-1), 1, 9.0),
    "columns reshaped, a copy": lambda x: put(x[:, 1:].reshape(-1), 1, 9.0),
    "new axes": lambda x: put(np.expand_dims(x, 1).squeeze(), 1, 9.0),
    "axes swapped": lambda x: put(np.swapaxes(x, 0, 1), (1, 2), 9.0),
    "axes moved": lambda x: put(np.moveaxis(x[None], 0, 2), (0, 1), 9.0),
    "flipped": lambda x: put(np.flip(x, 0), 0, 9.0),
    "rotated": lambda x: put(np.rot90(x), (0, 0), 9.0),
    "split": lambda x: put(np.split(x, 2, axis=1)[1], 0, 9.0),
    "in columns": lambda x: put(np.hsplit(x, 4)[2], slice(None), 9.0),
    "at least three axes": lambda x: put(np.atleast_3d(x), 0, 9.0),
    "added in place": lambda x: np.add(x.T, 1.0, out=x.T),
    "real part": lambda x: put(x.real, 0, 9.0),
    "real part of transposed": lambda x: put(x.T.real, 0, 9.0),
    "one keyword": lambda x: put(np.transpose(a=x), 1, 9.0),
    "copy": lambda x: put(x.T.copy(), 0, 9.0),
    "converted": lambda x: put(x.T.astype(x.dtype), 0, 9.0),
    "flat copy": lambda x: put(x.flatten(), 0, 9.0),
}


@pytest.mark.parametrize("array", [REAL, COMPLEX], ids=["real", "complex"])
@pytest.mark.parametrize("name", WRITES)
def test_writes_to_views(name: str, array: np.ndarray) -> None:
    write = WRITES[name]
    expected = array.copy()
    write(expected)

    tensor = Tensor._of(constant(array.copy()))
    write(tensor)
    np.testing.assert_array_equal(tensor.asnumpy(), expected)

    def recorded(x: Any) -> Any:
        x = x * 1.0
        write(x)
        return x

    np.testing.assert_array_equal(nb.jit(recorded)(array), expected)
    shared = array.copy()
    write(nb.from_numpy(shared))
    np.testing.assert_array_equal(shared, expected)


@pytest.mark.parametrize("array", [REAL, COMPLEX], ids=["real", "complex"])
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x.reshape(-1),
        lambda x: x.T.reshape(-1),
        lambda x: x.real,
        lambda x: x[1].reshape(2, 2),
        lambda x: np.broadcast_to(x, (2, 3, 4)),
        lambda x: np.broadcast_to(x[0], (2, 4)).T,
        lambda x: x.T[1:].copy(),
    ],
)
def test_views_see_later_writes(view: Callable[[Any], Any], array: np.ndarray) -> None:
    def later(x: Any) -> Any:
        x = x * 1.0
        part = view(x)
        x[0] = 3.0
        x[1] = x[1] * 2
        return part

    np.testing.assert_array_equal(nb.jit(later)(array), later(array))


def test_gradients_follow_writes_through_views() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y.T[0] = x[:, 1] ** 2
        y.reshape(-1)[3] = np.sum(x)
        y.T[1:].T[0] = y[1, 1:] * x[0, 1:]
        return np.sum(y * y)

    nb.check_grads(f, (REAL,), order=2)

    def g(x: Any) -> Any:
        z = x * (1 + 1j)
        z.real[0] = x[1] ** 2
        z.imag = x
        return np.sum(np.abs(z) ** 2)

    nb.check_grads(g, (REAL,), order=2)


def test_what_repeats_elements_is_read_only() -> None:
    with pytest.raises(ArgumentError, match="read-only"):
        np.broadcast_to(Tensor(REAL), (2, 3, 4))[0] = 1.0  # type: ignore
