"""float16: functions that depend on its own neighbours and exponents, of every float16, as NumPy computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

from .operation import interpreted

EVERY = np.arange(2**16, dtype=np.uint16).view(np.float16)
OTHERS = {
    "inf": np.full_like(EVERY, np.inf),
    "-inf": np.full_like(EVERY, -np.inf),
    "0": np.zeros_like(EVERY),
    "-0": np.negative(np.zeros_like(EVERY)),
    "its negative": -EVERY,
    "the reverse": EVERY[::-1].copy(),
    "itself": EVERY,
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "spacing": np.spacing,
    "fraction": lambda x: np.frexp(x)[0],
    "exponent": lambda x: np.frexp(x)[1],
    "integral part": lambda x: np.modf(x)[1],
    "sign bit": np.signbit,
    "doubled": lambda x: np.ldexp(x, 1),
}
BINARY = [np.nextafter, np.maximum, np.minimum, np.fmax, np.fmin, np.copysign, np.fmod, np.heaviside]


def assert_identical(got: Any, want: Any) -> None:
    """The same numbers, and the same signs of zeros."""
    got = np.asarray(got)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


def results(function: Callable[..., Any], *arrays: np.ndarray) -> list[Any]:
    with interpreted():
        reference = nb.jit(function)(*arrays)
    return [nb.jit(function)(*arrays), function(*map(nb.Tensor, arrays)), reference]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_every_float16(name: str) -> None:
    with np.errstate(all="ignore"):
        want = UNARY[name](EVERY)
        for got in results(UNARY[name], EVERY):
            assert_identical(got, want)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("ufunc", BINARY, ids=lambda ufunc: ufunc.__name__)
def test_functions_of_every_float16_and_another(ufunc: np.ufunc, other: str) -> None:
    with np.errstate(all="ignore"):
        want = ufunc(EVERY, OTHERS[other])
        for got in results(ufunc, EVERY, OTHERS[other]):
            assert_identical(got, want)


def test_the_next_number_has_slope_one() -> None:
    x = np.array([-1.0, 6e-8, 1.0, 1024.0], np.float16)
    gradient = nb.grad(lambda x: np.sum(np.nextafter(x, np.float16(np.inf))))(x)
    np.testing.assert_array_equal(gradient, np.ones(4, np.float16))
