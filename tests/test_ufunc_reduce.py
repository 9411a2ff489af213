"""`ufunc.reduce` of ufuncs without a primitive for it agrees with NumPy, and its derivative with differences."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from .agreement import agree, check_derivative, lift

pytestmark = pytest.mark.unoptimized

rng = np.random.default_rng(5)
REDUCIBLE = (
    "subtract divide hypot logaddexp logaddexp2 fmax fmin fmod remainder floor_divide copysign nextafter heaviside"
).split()


@pytest.mark.parametrize("name", REDUCIBLE)
def test_reduce_of_any_ufunc(name):
    ufunc = getattr(np, name)
    a = np.abs(rng.normal(size=(3, 4, 2))) + 0.2
    for array in (a, a[:1], -a[:, :1], a[:0], a.astype(np.float32), a[..., 0], a[:, 0, 0]):
        for options in ({}, {"axis": -1, "keepdims": True}, {"axis": None}, {"axis": (0, 1)}, {"initial": 1.5}):
            agree(ufunc.reduce, array, **options, tolerance=2e-4)
        agree(ufunc.reduce, array, where=array > 0.7, initial=2.0, tolerance=2e-4)
        agree(ufunc.reduce, array, where=array > 0.7, tolerance=2e-4)
    if name not in ("fmod", "remainder", "floor_divide", "nextafter", "heaviside", "copysign"):
        check_derivative(lambda x: ufunc.reduce(x, axis=1), a[..., 0])
        check_derivative(lambda x: ufunc.reduce(x, axis=1, where=x > 0.7, initial=1.1), a[..., 0])


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "logical_xor", "equal"])
def test_reduce_of_integers(name):
    ufunc = getattr(np, name)
    a = rng.integers(1, 20, (3, 4))
    for array in (a, a[:1], a[:0], a > 5, a.astype(np.uint8)):
        for options in ({}, {"axis": 1}, {"axis": None}, {"initial": 4}):
            agree(ufunc.reduce, array, **options)


def test_reduce_of_powers():
    """From first to last; NumPy's own results are others along the last axis of an array."""
    a = np.abs(rng.normal(size=(3, 4))) + 0.2
    for ufunc in (np.power, np.arctan2):
        want = functools.reduce(ufunc, a.T)
        np.testing.assert_allclose(ufunc.reduce(lift(a), axis=1), want)
        np.testing.assert_allclose(ufunc.reduce(lift(a), axis=0), functools.reduce(ufunc, a))
